//! How often columns come again in a few drawn groups of rows: the entries of 128 rows that follow each
//! other (how many of them a fetched row of B serves), and the rows of B that a row of A picks (how many
//! multiplications make an entry of C).
//!
//! A group with more than [`MOST_KEPT`] columns is not counted whole: of its columns only those are kept
//! whose hash is below a bound, about [`MOST_KEPT`] of them, each as often as it comes. What is kept
//! depends on the columns alone, so that the CPU and the GPU (kernels/convert/distinct.cu) find the same.

use rayon::prelude::*;

use crate::matrix::compressed::Pattern;
use crate::select::survey::run_of;
use crate::types::Index;

/// Rows of a window.
pub const WINDOW: usize = 128;
/// Windows, and rows of a product, that are looked at, at the most: about one a multiprocessor of an H100.
pub const WINDOWS: u64 = 128;
/// See [`WINDOWS`].
pub const PRODUCT_ROWS: u64 = 128;
/// Columns that are kept of a group, about.
pub const MOST_KEPT: u64 = 2048;
/// A group of which more different ones are kept is not counted: the GPU has 4096 places for them.
pub const MOST_DISTINCT: usize = 3072;
/// A group with more columns is not looked at: it would outlast all others.
pub const MOST_LOOKED: u64 = 1 << 20;
/// Neither is a row of a product that picks more rows.
pub const MOST_PICKED: usize = 1 << 13;

/// What is counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Distinct {
    /// Groups.
    pub groups: u64,
    /// Columns that were kept, each as often as it comes,
    pub kept: u64,
    /// and each once.
    pub distinct: u64,
}

impl Distinct {
    /// From three words of a GPU.
    pub(crate) fn of_words(words: &[u64]) -> Self {
        Distinct { groups: words[0], kept: words[1], distinct: words[2] }
    }

    fn with(self, other: Self) -> Self {
        Distinct {
            groups: self.groups + other.groups,
            kept: self.kept + other.kept,
            distinct: self.distinct + other.distinct,
        }
    }

    /// How often a column comes, in the mean; 1 where there are none.
    pub fn ratio(&self) -> f64 {
        match self.distinct {
            0 => 1.0,
            distinct => self.kept as f64 / distinct as f64,
        }
    }
}

/// log2 of the columns of which one is kept.
fn one_in_log2(count: u64) -> u32 {
    count.div_ceil(MOST_KEPT).max(1).next_power_of_two().ilog2()
}

/// Whether a column is kept.
fn is_kept(column: usize, one_in_log2: u32) -> bool {
    let hash = (column as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    one_in_log2 == 0 || hash >> (64 - one_in_log2) == 0
}

/// Of `count` columns.
fn of_group(columns: impl Iterator<Item = usize>, count: u64, kept: &mut Vec<usize>) -> Distinct {
    if count == 0 || count > MOST_LOOKED {
        return Distinct::default();
    }
    let one_in_log2 = one_in_log2(count);
    kept.clear();
    kept.extend(columns.filter(|&column| is_kept(column, one_in_log2)));
    let all = kept.len() as u64;
    kept.sort_unstable();
    kept.dedup();
    match kept.len() {
        0..=MOST_DISTINCT => Distinct { groups: 1, kept: all, distinct: kept.len() as u64 },
        _ => Distinct::default(),
    }
}

fn sum(groups: u64, of: impl Fn(u64, &mut Vec<usize>) -> Distinct + Sync) -> Distinct {
    let found = (0..groups).into_par_iter().map_init(Vec::new, |kept, k| of(k, kept));
    found.reduce(Distinct::default, Distinct::with)
}

/// Windows that are looked at.
pub fn window_samples(rows: usize) -> u64 {
    (rows.div_ceil(WINDOW) as u64).min(WINDOWS)
}

/// Rows of A·A that are looked at.
pub fn product_samples(rows: usize, cols: usize) -> u64 {
    if rows == cols {
        (rows as u64).min(PRODUCT_ROWS)
    } else {
        0
    }
}

/// In windows of 128 rows of a valid pattern.
pub fn in_windows<I: Index, J: Index>(pattern: &Pattern<'_, I, J>) -> Distinct {
    let rows = if pattern.offsets.is_empty() { 0 } else { pattern.major };
    let windows = rows.div_ceil(WINDOW) as u64;
    let samples = window_samples(rows);
    sum(samples, |k, kept| {
        let first = run_of(k, samples, windows) as usize * WINDOW;
        let entries = pattern.range(first).start..pattern.range(rows.min(first + WINDOW) - 1).end;
        let count = entries.len() as u64;
        of_group(entries.map(|at| pattern.index(at)), count, kept)
    })
}

/// In rows of A·A; nothing if A is not square.
pub fn in_products<I: Index, J: Index>(pattern: &Pattern<'_, I, J>) -> Distinct {
    let rows = if pattern.offsets.is_empty() { 0 } else { pattern.major };
    let samples = product_samples(rows, pattern.minor);
    sum(samples, |k, kept| {
        let row = pattern.range(run_of(k, samples, rows as u64) as usize);
        if row.len() > MOST_PICKED {
            return Distinct::default();
        }
        let picked = || row.clone().map(|at| pattern.index(at));
        let count = picked().map(|row| pattern.range(row).len() as u64).sum();
        of_group(picked().flat_map(|row| pattern.range(row)).map(|at| pattern.index(at)), count, kept)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::gallery;
    use crate::select::features::{self, compression};
    use crate::select::survey::tests::pattern;

    #[test]
    fn features_all_of_few_columns_are_kept() {
        // 300 rows of 7 entries: 128 have 896.
        let a = gallery::band(300, 3, 3).unwrap();
        let found = in_windows(&pattern(&a));
        assert_eq!((found.groups, found.kept), (3, a.nnz() as u64));
        // Three windows and what sticks out of them.
        assert_eq!(found.distinct, 131 + 134 + 47);
        // Rows of A·A have 13 entries but for those at the ends.
        let found = in_products(&pattern(&a));
        assert_eq!(found.groups, 128);
        assert!((found.ratio() - 49.0 / 13.0).abs() < 0.05, "{}", found.ratio());
        assert_eq!(in_products(&pattern(&gallery::uniform(40, 50, 5, 3).unwrap())), Distinct::default());
    }

    #[test]
    fn features_a_part_of_many_columns_is_like_the_whole() {
        for (a, tolerance) in [
            (gallery::band(2000, 100, 80).unwrap(), 0.05),
            (gallery::pruned(512, 512, 0.8, 1).unwrap(), 0.15),
            // Other rows are looked at.
            (gallery::rmat(12, 8, 0.57, 0.19, 0.19, 1).unwrap().into_pattern(), 0.5),
        ] {
            let whole = features::Pattern { cols: a.cols, offsets: &a.offsets, indices: &a.indices };
            let ratio = in_products(&pattern(&a)).ratio();
            let expected = compression(&whole, &whole).unwrap().ratio();
            assert!((ratio / expected - 1.0).abs() < tolerance, "{}: {ratio} of {expected}", a.rows);
        }
    }

    #[test]
    fn features_groups_that_are_too_large_are_left_out() {
        let mut kept = Vec::new();
        assert_eq!(of_group(0..10, MOST_LOOKED + 1, &mut kept), Distinct::default());
        // All of these are kept, since the hash of 0 is 0; they are one.
        let found = of_group(std::iter::repeat_n(0, 100_000), 100_000, &mut kept);
        assert_eq!(found, Distinct { groups: 1, kept: 100_000, distinct: 1 });
        // Columns that are kept of so many: too many of them.
        let chosen: Vec<usize> = (0..).filter(|&column| is_kept(column, 6)).take(MOST_DISTINCT + 1).collect();
        assert_eq!(of_group(chosen.into_iter(), 100_000, &mut kept), Distinct::default());
        assert_eq!([0, 1, 2048, 2049, 1 << 20].map(one_in_log2), [0, 0, 0, 1, 9]);
    }
}

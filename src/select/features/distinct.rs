//! How often columns come again in a few drawn groups of rows: the entries of windows of up to 128 rows
//! (how many of them a fetched row of B serves, and how full blocks of 16 rows are), and the rows of B that
//! a row of A picks (how many multiplications make an entry of C).
//!
//! A group costs about as much as any other: of one with more than [`MOST_READ`] entries only those in a
//! drawn part of its columns are read, which sorted rows find by a search, and of more than [`MOST_KEPT`]
//! only those are kept whose column has a hash below a bound, each as often as it comes. What is read and
//! kept depends on the group's number and its columns alone, so that the CPU and the GPU
//! (kernels/convert/distinct.cu) find the same.

use std::ops::Range;

use rayon::prelude::*;

use crate::matrix::compressed::Pattern;
use crate::select::survey::run_of;
use crate::types::Index;

/// Rows of a window.
pub const WINDOW: usize = 128;
/// Rows of the windows that it is cut into.
pub const HEIGHTS: [usize; 5] = [8, 16, 32, 64, 128];
/// Windows, and rows of a product, that are looked at, at the most: about one a multiprocessor of an H100.
pub const WINDOWS: u64 = 128;
/// See [`WINDOWS`].
pub const PRODUCT_ROWS: u64 = 128;
/// Entries that are read of a group, about: eight of each of the threads of a GPU's block, four times.
pub const MOST_READ: u64 = 1 << 14;
/// A group that turns out to have more in its part is not counted: it would outlast all others.
pub const MOST_LOOKED: u64 = 1 << 16;
/// Columns that are kept of a group, about.
pub const MOST_KEPT: u64 = 2048;
/// A group of which more different ones are kept is not counted: the GPU has 4096 places for them.
pub const MOST_DISTINCT: usize = 3072;
/// A row of a product that picks more rows is not looked at.
pub const MOST_PICKED: usize = 1 << 13;
/// Parts of a group's columns begin at multiples of so many, the widest span.
const ALIGNED: u64 = 16;

/// Kinds of windows: of columns, and of spans of 8 and of 16.
pub(crate) const WINDOW_KINDS: u64 = 3;
/// Words of a GPU: groups, what is kept, and what is different of [`HEIGHTS`]; then groups, kept and
/// different of spans of 8 and of 16 columns, and of products.
pub(crate) const WORDS: usize = 2 + HEIGHTS.len() + 3 * 3;

/// What is counted of groups of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Distinct {
    /// Groups.
    pub groups: u64,
    /// Entries that were kept, times the parts of a group of which one was,
    pub kept: u64,
    /// and the different columns (or spans) that they have, alike.
    pub distinct: u64,
}

impl Distinct {
    fn of_words(groups: u64, kept: u64, distinct: u64) -> Self {
        Distinct { groups, kept, distinct }
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

    /// Entries over places, if each different one stands for so many; 0 where there are none.
    pub fn fill(&self, places: usize) -> f64 {
        match self.distinct {
            0 => 0.0,
            distinct => self.kept as f64 / (distinct as f64 * places as f64),
        }
    }
}

/// What is counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Repeats {
    /// Columns of windows of [`HEIGHTS`] rows.
    pub windows: [Distinct; HEIGHTS.len()],
    /// Spans of 8 and of 16 columns, from a multiple of that on, of windows of 16 rows.
    pub spans: [Distinct; 2],
    /// Columns of rows of A·A before equal ones are added; nothing if A is not square.
    pub products: Distinct,
}

/// log2 of the parts, a power of 2, that have at most `most` of so many.
fn parts_log2(count: u64, most: u64) -> u32 {
    count.div_ceil(most).max(1).next_power_of_two().ilog2()
}

/// Whether entries of a column (or span) are kept.
fn is_kept(key: u64, one_in_log2: u32) -> bool {
    one_in_log2 == 0 || key.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (64 - one_in_log2) == 0
}

/// Rows of a group.
struct Group {
    /// Its number.
    k: u64,
    /// log2 of the columns of a key.
    unit_log2: u32,
    /// Rows that set one bit of a key.
    rows_of_bit: usize,
}

impl Group {
    /// Different ones are counted for each number of bits that are taken together, from the first on.
    fn count<const N: usize, I: Index, J: Index>(
        &self,
        pattern: &Pattern<'_, I, J>,
        rows: impl Iterator<Item = Range<usize>> + Clone,
        first: usize,
        kept: &mut Vec<(u64, usize)>,
    ) -> [Distinct; N] {
        let none = [Distinct::default(); N];
        let filled = || rows.clone().enumerate().filter(|(_, row)| !row.is_empty());
        let count: u64 = filled().map(|(_, row)| row.len() as u64).sum();
        let column = |at: usize| pattern.index(at) as u64;
        let low = filled().map(|(_, row)| column(row.start)).min();
        let high = filled().map(|(_, row)| column(row.end - 1)).max();
        let (Some(low), Some(high)) = (low, high) else { return none };
        let cut_log2 = parts_log2(count, MOST_READ);
        let edge = |part: u64| (low + (((high + 1 - low) * part) >> cut_log2)) / ALIGNED * ALIGNED;
        let part = match cut_log2 {
            0 => 0,
            _ => self.k.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (64 - cut_log2),
        };
        let upto = if part + 1 == 1 << cut_log2 { high + 1 } else { edge(part + 1) };
        let place = |row: &Range<usize>, from: u64| {
            row.start
                + pattern.indices[row.clone()]
                    .partition_point(|col| (col.to_i64() - pattern.base) < from as i64)
        };
        let inside = || filled().map(|(at, row)| (at, place(&row, edge(part))..place(&row, upto)));
        let looked: u64 = inside().map(|(_, row)| row.len() as u64).sum();
        if looked == 0 || looked > MOST_LOOKED {
            return none;
        }
        let one_in_log2 = parts_log2(count >> cut_log2, MOST_KEPT);
        kept.clear();
        for (at, row) in inside() {
            let keys = row.map(|at| column(at) >> self.unit_log2).filter(|&key| is_kept(key, one_in_log2));
            kept.extend(keys.map(|key| (key, at / self.rows_of_bit)));
        }
        let all = kept.len() as u64;
        kept.sort_unstable();
        kept.dedup();
        let distinct =
            |bits: usize| kept.chunk_by(|a, b| (a.0, a.1 / bits) == (b.0, b.1 / bits)).count() as u64;
        if distinct(usize::MAX) > MOST_DISTINCT as u64 {
            return none;
        }
        // As many as there are of the whole group, about.
        let times = 1 << (cut_log2 + one_in_log2);
        std::array::from_fn(|at| Distinct {
            groups: 1,
            kept: all * times,
            distinct: distinct(first << at) * times,
        })
    }
}

fn sum<const N: usize>(
    groups: u64,
    of: impl Fn(u64, &mut Vec<(u64, usize)>) -> [Distinct; N] + Sync,
) -> [Distinct; N] {
    let found = (0..groups).into_par_iter().map_init(Vec::new, |kept, k| of(k, kept));
    let with = |a: [Distinct; N], b: [Distinct; N]| std::array::from_fn(|at| a[at].with(b[at]));
    found.reduce(|| [Distinct::default(); N], with)
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

/// Of windows with 8 rows, or `first` times as many, twice, four times…
fn in_windows<const N: usize, I: Index, J: Index>(
    pattern: &Pattern<'_, I, J>,
    unit_log2: u32,
    first: usize,
) -> [Distinct; N] {
    let rows = if pattern.offsets.is_empty() { 0 } else { pattern.major };
    let (windows, samples) = (rows.div_ceil(WINDOW) as u64, window_samples(rows));
    sum(samples, |k, kept| {
        let start = run_of(k, samples, windows) as usize * WINDOW;
        let of_window = (start..rows.min(start + WINDOW)).map(|row| pattern.range(row));
        let group = Group { k, unit_log2, rows_of_bit: HEIGHTS[0] };
        group.count(pattern, of_window, first, kept)
    })
}

fn in_products<I: Index, J: Index>(pattern: &Pattern<'_, I, J>) -> Distinct {
    let rows = if pattern.offsets.is_empty() { 0 } else { pattern.major };
    let samples = product_samples(rows, pattern.minor);
    let [found] = sum(samples, |k, kept| {
        let row = pattern.range(run_of(k, samples, rows as u64) as usize);
        if row.len() > MOST_PICKED {
            return [Distinct::default()];
        }
        let picked = row.map(|at| pattern.range(pattern.index(at)));
        Group { k, unit_log2: 0, rows_of_bit: MOST_PICKED }.count(pattern, picked, 1, kept)
    });
    found
}

impl Repeats {
    /// Looks at a valid pattern of sorted rows, on the threads of the caller's pool.
    pub fn of<I: Index, J: Index>(pattern: &Pattern<'_, I, J>) -> Self {
        let [of_8] = in_windows(pattern, 3, 2);
        let [of_16] = in_windows(pattern, 4, 2);
        Repeats { windows: in_windows(pattern, 0, 1), spans: [of_8, of_16], products: in_products(pattern) }
    }

    /// From [`WORDS`] of a GPU.
    pub(crate) fn of_words(words: &[u64]) -> Self {
        let three = |at: usize| Distinct::of_words(words[at], words[at + 1], words[at + 2]);
        let first = 2 + HEIGHTS.len();
        Repeats {
            windows: std::array::from_fn(|at| Distinct::of_words(words[0], words[1], words[2 + at])),
            spans: [three(first), three(first + 3)],
            products: three(first + 6),
        }
    }

    /// Entries of a window of so many rows (one of [`HEIGHTS`]) for each of its columns.
    pub fn reuse(&self, height: usize) -> f64 {
        HEIGHTS.iter().position(|&other| other == height).map_or(1.0, |at| self.windows[at].ratio())
    }

    /// Entries over places in the blocks of 16 rows and 8 or 16 columns that have one.
    pub fn fill(&self, cols: usize) -> f64 {
        self.spans[usize::from(cols == 16)].fill(16 * cols)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::testing::pattern;
    use matrices::gallery;
    use matrices::owned::OwnedCsr;

    #[test]
    fn features_all_of_few_columns_are_kept() {
        // 300 rows of 7 entries: 128 have 896.
        let a = gallery::band(300, 3, 3).unwrap();
        let found = Repeats::of(&pattern(&a));
        let whole = found.windows[4];
        assert_eq!((whole.groups, whole.kept), (3, a.nnz() as u64));
        // Three windows and what sticks out of them.
        assert_eq!(whole.distinct, 131 + 134 + 47);
        // The same of windows of 8 rows: 37 whole ones and one of 4 rows.
        assert_eq!(found.windows[0].distinct, 37 * 14 - 3 + 7);
        assert_eq!(found.windows.map(|windows| (windows.groups, windows.kept)), [(3, a.nnz() as u64); 5]);
        // Rows of A·A have 13 entries but for those at the ends.
        assert_eq!(found.products.groups, 128);
        assert!((found.products.ratio() - 49.0 / 13.0).abs() < 0.05, "{}", found.products.ratio());
        let found = Repeats::of(&pattern(&gallery::uniform(40, 50, 5, 3).unwrap()));
        assert_eq!(found.products, Distinct::default());
    }

    /// Blocks of 16 rows and 8 or 16 columns, full and scattered.
    #[test]
    fn features_blocks_are_counted() {
        let blocks = (0..64).flat_map(|row: i32| (0..16).map(move |col| (row, row / 16 * 48 + col, 1.0)));
        let a = OwnedCsr::from_triplets(64, 200, blocks.collect::<Vec<_>>()).unwrap();
        let found = Repeats::of(&pattern(&a));
        assert_eq!((found.fill(8), found.fill(16)), (1.0, 1.0));
        assert_eq!([8, 16, 32, 64, 128].map(|height| found.reuse(height)), [8.0, 16.0, 16.0, 16.0, 16.0]);
        assert_eq!(found.spans.map(|spans| spans.distinct), [8, 4]);
        let empty = Repeats::of(&pattern(&gallery::empty(30, 30).unwrap()));
        assert_eq!((empty.fill(8), empty.reuse(64), empty), (0.0, 1.0, Repeats::default()));
    }

    #[test]
    fn features_a_part_of_many_columns_is_like_the_whole() {
        for (a, tolerance) in [
            (gallery::band(2000, 100, 80).unwrap(), 0.05),
            (gallery::pruned(512, 512, 0.8, 1).unwrap(), 0.15),
            // Most groups are cut in several parts.
            (gallery::band(3000, 150, 150).unwrap(), 0.1),
            (gallery::pruned(700, 700, 0.6, 1).unwrap(), 0.1),
            // Other rows are looked at.
            (gallery::rmat(12, 8, 0.57, 0.19, 0.19, 1).unwrap().into_pattern(), 0.5),
        ] {
            let found = Repeats::of(&pattern(&a));
            let row = |row: usize| &a.indices[a.offsets[row] as usize..a.offsets[row + 1] as usize];
            let different = |columns: &mut dyn Iterator<Item = i32>| {
                let mut seen = vec![false; a.cols];
                columns.filter(|&col| !std::mem::replace(&mut seen[col as usize], true)).count()
            };
            // Of some rows of A·A.
            let (mut products, mut entries) = (0, 0);
            for at in (0..a.rows).step_by(a.rows / 50) {
                let columns = || row(at).iter().flat_map(|&col| row(col as usize)).copied();
                products += columns().count();
                entries += different(&mut columns());
            }
            let expected = products as f64 / entries as f64;
            let ratio = found.products.ratio();
            assert!((ratio / expected - 1.0).abs() < tolerance, "{}: {ratio} of {expected}", a.rows);
            // Of all windows, by sets.
            for height in HEIGHTS {
                let columns =
                    |first: usize| different(&mut (first..a.rows.min(first + height)).flat_map(row).copied());
                let all: usize = (0..a.rows).step_by(height).map(columns).sum();
                let expected = a.nnz() as f64 / all as f64;
                let ratio = found.reuse(height);
                assert!((ratio / expected - 1.0).abs() < 0.1, "{} {height}: {ratio} of {expected}", a.rows);
            }
        }
    }

    #[test]
    fn features_groups_that_are_too_large_are_left_out() {
        let of = |indices: &[i32]| {
            let offsets = [0, indices.len() as i64];
            let (major, minor, offsets) = (1, 1 << 30, &offsets[..]);
            Repeats::of(&Pattern { major, minor, base: 0, offsets, indices, by_columns: false }).windows[4]
        };
        // The hash of 0 is 0.
        assert_eq!(of(&[0; 16_000]), Distinct { groups: 1, kept: 8 * 16_000, distinct: 8 });
        // Column 0 is in the part that the first window looks at, with too many entries.
        let mut many = vec![0; 70_000];
        many.push(1 << 20);
        assert_eq!(of(&many), Distinct::default());
        // Columns that are kept of so many: too many of them.
        let chosen: Vec<i32> = (0..)
            .filter(|&column| is_kept(column, 3))
            .take(MOST_DISTINCT + 1)
            .map(|column| column as i32)
            .collect();
        let twice: Vec<i32> = chosen.iter().flat_map(|&column| [column; 5]).collect();
        assert_eq!(of(&twice), Distinct::default());
        assert_eq!([0, 1, 2048, 2049, 1 << 20].map(|count| parts_log2(count, MOST_KEPT)), [0, 0, 0, 1, 9]);
    }
}

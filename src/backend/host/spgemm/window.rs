//! The accumulator of rows with neighbouring columns: one sum and one flag for each column from the row's
//! first to its last, in order, so that nothing is searched or sorted. Rows of the right factor without gaps
//! are added by vector code.
//!
//! The window spans the first and last columns of the rows of the right factor, as if these were sorted, or
//! all columns of a product that has few. A row that is not sorted may leave the window; it is then computed
//! by another accumulator.

use std::ops::Range;

use super::places::Key;
use super::rows::{sample, walk};
use crate::backend::host::operand::Factor;
use crate::types::{Accumulator, Index, Storage};

/// Columns of the widest window: its sums in fp64 take a quarter of a second-level cache of 1 MiB.
pub const WINDOW: usize = 1 << 15;

/// Maximum number of columns of a window per entry of the row. 32 columns without an entry take about a
/// nanosecond, and sorting an entry takes 2 to 8.
pub const SPREAD: usize = 32;

/// Maximum number of columns of a window per product when entries are counted: a column takes about a fifth
/// of the time of a product, and there may be many times as many products as entries.
pub const SPREAD_COUNT: usize = 4;

/// Minimum number of entries for which a window is tried: rows of a road network, with 5 entries, took 1.5
/// times as long with windows.
const FEW: usize = 16;

/// Number of columns per entry up to which all columns of the product are the window, without reading the
/// row.
const DENSE: usize = 4;

/// Minimum length of a run of consecutive columns that is added by vector code.
const RUN: usize = 8;

/// Number of flags that are tested together: a vector of AVX2.
const GROUP: usize = 32;

/// The memory of a window. It is all zeros between rows.
pub struct Window<'a, T> {
    /// Sums by column; empty in the symbolic phase.
    pub sums: &'a mut [T],
    /// 1 for the columns that the row has, otherwise 0; its length is a multiple of [`GROUP`].
    pub seen: &'a mut [u8],
}

/// Returns the columns of the memory for windows of rows of at most `most` entries.
pub fn width(most: usize, cols: usize, window: usize) -> usize {
    cols.min(window).min(most.saturating_mul(SPREAD)).next_multiple_of(GROUP)
}

/// Returns the index range from the first to the last column that a row of the product has or may have, if
/// the rows of the right factor are sorted. `None` if it is longer than `widest` or a window does not suit a
/// row of at most `most` entries.
#[inline(always)]
pub fn span<J: Index>(
    left: &Factor,
    row: usize,
    right: &Factor,
    indices: &[J],
    most: usize,
    widest: usize,
) -> Option<Range<i64>> {
    if most < FEW || widest == 0 {
        return None;
    }
    if right.cols <= widest.min(most.saturating_mul(DENSE)) {
        return Some(right.base..right.base + right.cols as i64);
    }
    let (mut first, mut last) = (i64::MAX, i64::MIN);
    let mut widen = |row: &[J]| {
        if let (Some(start), Some(end)) = (row.first(), row.last()) {
            first = first.min(start.to_i64());
            last = last.max(end.to_i64());
        }
        last.checked_sub(first).is_none_or(|width| width < widest as i64)
    };
    // Most rows that are too wide are so by their first and last entry; they are not walked along.
    let positions = left.range(row);
    let mut ends = [positions.start, positions.end - 1].into_iter();
    if !ends.all(|position| widen(&indices[right.range(left.col(position))])) {
        return None;
    }
    let mut fits = true;
    walk(left, row, right, indices, |row| fits = widen(row));
    // Rows that are not sorted may end before they begin.
    (fits && first <= last).then_some(first..last + 1)
}

/// Returns whether windows suit more than half of the products of a sample of rows. `row_of` gives a row's
/// largest number of entries and the widest window that it may have. With `runs`, only rows count that meet a
/// row of consecutive columns, which vector code adds: other rows gain by windows only where their columns must
/// be sorted. Where few rows have a window, looking for one in every row takes more time than they save.
pub fn suits<J: Index>(
    left: &Factor,
    right: &Factor,
    indices: &[J],
    runs: bool,
    row_of: impl Fn(usize) -> (usize, usize),
) -> bool {
    let (mut all, mut inside) = (0, 0);
    for row in sample(left.rows) {
        let (most, widest) = row_of(row);
        let mut met = left.range(row).map(|position| &indices[right.range(left.col(position))]);
        all += most;
        if (!runs || met.nth(left.range(row).len() / 2).is_some_and(is_run))
            && span(left, row, right, indices, most, widest).is_some()
        {
            inside += most;
        }
    }
    inside > all / 2
}

/// Returns whether the indices are consecutive, and at least [`RUN`].
#[inline(always)]
fn is_run<J: Index>(indices: &[J]) -> bool {
    let (Some(&first), Some(&last)) = (indices.first(), indices.last()) else {
        return false;
    };
    let first = first.to_i64();
    // Unlike `all`, a fold without an early exit is compiled to vector code.
    let holds = |(i, index): (usize, &J)| *index == J::from_i64(first + i as i64);
    indices.len() >= RUN
        && last.to_i64() - first == indices.len() as i64 - 1
        && indices.iter().enumerate().fold(true, |all, index| all & holds(index))
}

impl<T> Window<'_, T> {
    /// Returns the number of distinct columns of a row; `None` if the row leaves the window.
    #[inline(always)]
    pub fn count<J: Index>(
        &mut self,
        left: &Factor,
        row: usize,
        right: &Factor,
        indices: &[J],
        span: Range<i64>,
    ) -> Option<usize> {
        let width = (span.end - span.start) as usize;
        let seen = &mut self.seen[..width];
        let mut inside = true;
        walk(left, row, right, indices, |row| {
            if is_run(row) {
                let at = (row[0].to_i64() - span.start) as usize;
                match seen.get_mut(at..at.wrapping_add(row.len())) {
                    Some(part) => part.fill(1),
                    None => inside = false,
                }
                return;
            }
            for index in row {
                match seen.get_mut((index.to_i64() - span.start) as usize) {
                    Some(flag) => *flag = 1,
                    None => inside = false,
                }
            }
        });
        let count = seen.iter().map(|&flag| u32::from(flag)).sum::<u32>();
        seen.fill(0);
        inside.then_some(count as usize)
    }
}

impl<T: Accumulator> Window<'_, T> {
    /// Adds `factor` times a row of the right factor to the window that begins at index `start` and has
    /// `width` columns, and with FLAGS marks its columns. Returns false if the row leaves the window.
    #[inline(always)]
    pub fn add<const FLAGS: bool, J: Index, R: Storage<T>>(
        &mut self,
        (start, width): (i64, usize),
        (indices, values): (&[J], &[R]),
        factor: T,
    ) -> bool {
        let (sums, seen) = (&mut self.sums[..width], &mut self.seen[..width]);
        let values = &values[..indices.len()];
        if is_run(indices) {
            let at = (indices[0].to_i64() - start) as usize;
            let Some(sums) = sums.get_mut(at..at.wrapping_add(indices.len())) else {
                return false;
            };
            for (sum, value) in sums.iter_mut().zip(values) {
                *sum += factor * value.widen();
            }
            if FLAGS {
                seen[at..at + indices.len()].fill(1);
            }
            return true;
        }
        for (index, value) in indices.iter().zip(values) {
            let at = (index.to_i64() - start) as usize;
            let Some(sum) = sums.get_mut(at) else {
                return false;
            };
            *sum += factor * value.widen();
            if FLAGS {
                seen[at] = 1;
            }
        }
        true
    }

    /// Moves the sums of the flagged columns to `sums` and the columns to `list`, in order, and clears the
    /// first `width` columns. Returns the number of flagged columns; those beyond the end of `list` or `sums`
    /// are dropped.
    #[inline(always)]
    pub fn take<K: Key>(&mut self, (first, width): (i64, usize), list: &mut [K], sums: &mut [T]) -> usize {
        let mut count = 0;
        let seen = &mut self.seen[..width.next_multiple_of(GROUP)];
        for (group, flags) in seen.chunks_exact_mut(GROUP).enumerate() {
            if flags == [0; GROUP] {
                continue;
            }
            for (word, flags) in flags.chunks_exact(8).enumerate() {
                let flags = u64::from_le_bytes(flags.try_into().expect("8 of them"));
                // Gathers the lowest bits of eight bytes in the highest byte.
                let mut rest = flags.wrapping_mul(0x0102_0408_1020_4080) >> 56;
                while rest != 0 {
                    let at = group * GROUP + word * 8 + rest.trailing_zeros() as usize;
                    let found = std::mem::replace(&mut self.sums[at], T::ZERO);
                    if let (Some(col), Some(sum)) = (list.get_mut(count), sums.get_mut(count)) {
                        (*col, *sum) = (K::from_i64(first + at as i64), found);
                    }
                    count += 1;
                    rest &= rest - 1;
                }
            }
            flags.fill(0);
        }
        count
    }

    /// Clears the first `width` columns.
    pub fn clear(&mut self, width: usize) {
        self.sums[..width].fill(T::ZERO);
        self.seen[..width].fill(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_have_no_gap_and_no_other_order() {
        let run: Vec<i32> = (5..25).collect();
        assert!(is_run(&run));
        assert!(!is_run(&run[..RUN - 1]));
        assert!(!is_run::<i32>(&[]));
        for at in 1..19 {
            let mut turned = run.clone();
            turned.swap(at, 19 - at);
            assert!(!is_run(&turned));
            let mut twice = run.clone();
            twice[at] = twice[at - 1];
            assert!(!is_run(&twice));
        }
    }

    #[test]
    fn windows_give_columns_in_order_and_are_clean_after() {
        let width = 100usize;
        let (mut sums, mut seen) = ([0.0; 128], [0; 128]);
        let mut window = Window { sums: &mut sums, seen: &mut seen };
        let at = (1000, width);
        let run: Vec<i32> = (1010..1030).collect();
        assert!(window.add::<true, _, _>(at, (&run, &[1.0; 20][..]), 2.0));
        assert!(window.add::<true, _, _>(at, (&[1099, 1000, 1010][..], &[3.0, 5.0, 7.0][..]), 1.0));
        let (mut list, mut packed) = ([0i32; 22], [0.0; 22]);
        // The base of the indices is 1.
        assert_eq!(window.take((999, width), &mut list, &mut packed), 22);
        let expected: Vec<i32> = [999].into_iter().chain(1009..1029).chain([1098]).collect();
        assert_eq!(list[..], expected);
        assert_eq!((packed[0], packed[1], packed[2], packed[21]), (5.0, 9.0, 2.0, 3.0));

        // Rows that leave the window on either side are noticed, and nothing is written outside.
        let after: Vec<i32> = (1090..1110).collect();
        let before: Vec<i32> = (990..1010).collect();
        for outside in [&[1050, 1100][..], &[1050, 999], &after[..], &before[..]] {
            let values = vec![1.0; outside.len()];
            assert!(!window.add::<true, _, _>(at, (outside, &values[..]), 1.0));
            window.clear(width);
        }
        // Columns beyond the end of a list that is too short are dropped.
        assert!(window.add::<true, _, _>(at, (&run, &[1.0; 20][..]), 2.0));
        assert_eq!(window.take((1000, width), &mut list[..3], &mut packed[..3]), 20);
        assert!(sums.iter().all(|&sum| sum == 0.0) && seen.iter().all(|&flag| flag == 0));
    }
}

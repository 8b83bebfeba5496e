//! Rows with neighbouring columns: one flag for each column from the row's first to its last, in order, so that
//! nothing is searched or sorted. Rows of the right factor without gaps are flagged by vector code.
//!
//! The window spans the first and last columns of the rows of the right factor, as if these were sorted, or
//! all columns of a product that has few. A row that is not sorted may leave the window; it is then computed
//! by an accumulator ([`super::places`]). A window of all columns is tested now and then: once all are flagged, the
//! rest of the row's products adds none.

use std::ops::Range;

use super::places::Key;
use super::rows::{sample, Ahead};
use crate::backend::host::operand::Factor;
use crate::types::Index;

/// Columns of the widest window.
pub const WINDOW: usize = 1 << 15;

/// Maximum ratio of the columns of a window to the products of its row: a column takes about a fifth of the time of a product.
pub const SPREAD: usize = 4;

/// Maximum ratio where columns are sorted, which takes 2 to 8 nanoseconds a column: 32 columns without an entry
/// take about one. Twice as wide windows lost on graphs and on the products of multigrid.
pub const SPREAD_SORTED: usize = 20;

/// Minimum number of entries for which a window is tried: rows of a road network, with 5 entries, took 1.5
/// times as long with windows.
const FEW: usize = 16;

/// Number of columns per entry up to which all columns of the product are the window, without reading the
/// row.
const DENSE: usize = 4;

/// Minimum number of products per column of a row for which all columns are the window whatever the order of the
/// row's columns may be: flags take less time than a list of columns then, and rows of nearly dense products have
/// all columns, which is seen early.
const FULL: usize = 4;

/// Minimum length of a run of consecutive columns that is added by vector code.
const RUN: usize = 8;

/// Number of flags that are tested together: a vector of AVX2.
const GROUP: usize = 32;

/// The memory of a window. It is all zeros between rows.
pub struct Window<'a> {
    /// Flag for each column of the window: 1 if the row has it, otherwise 0. The length is a multiple of [`GROUP`].
    pub seen: &'a mut [u8],
}

/// Returns the columns of the memory for windows of at most `window` columns, of `cols`.
pub fn width(cols: usize, window: usize) -> usize {
    cols.min(window).next_multiple_of(GROUP)
}

/// Returns the index range from the first to the last column that a row of the product has or may have, if
/// the rows of the right factor are sorted. `None` if it is longer than `widest` or a window does not suit a
/// row of at most `most` entries.
#[inline(always)]
pub fn span<J: Index>(
    (left, right): (&Factor, &Factor),
    ahead: &mut Ahead<'_>,
    row: usize,
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
    ahead.walk(row, indices, |row| fits = widen(row));
    // Rows that are not sorted may end before they begin.
    (fits && first <= last).then_some(first..last + 1)
}

/// Returns whether windows suit more than half of the products of a sample of rows. `row_of` gives a row's
/// largest number of entries and the widest window that it may have. With `runs`, only rows count that meet a
/// row of consecutive columns, which vector code adds, or that have many products for each column: other rows gain
/// by windows only where their columns must be sorted. Where few rows have a window, looking for one in every row
/// takes more time than they save.
pub fn suits<J: Index>(
    left: &Factor,
    right: &Factor,
    indices: &[J],
    runs: bool,
    row_of: impl Fn(usize) -> (usize, usize),
) -> bool {
    let (mut all, mut inside) = (0, 0);
    let mut ahead = Ahead::new(left, right, &[]);
    for row in sample(left.rows) {
        let (most, widest) = row_of(row);
        let mut met = left.range(row).map(|position| &indices[right.range(left.col(position))]);
        all += most;
        let products =
            || left.range(row).map(|position| right.range(left.col(position)).len()).sum::<usize>();
        if (!runs
            || met.nth(left.range(row).len() / 2).is_some_and(is_run)
            || products() / FULL >= right.cols)
            && span((left, right), &mut ahead, row, indices, most, widest).is_some()
        {
            inside += most;
        }
    }
    inside > all / 2
}

/// Returns whether more than half of a sample of rows, by their entries, meet a row of consecutive columns in
/// the middle.
pub fn meets_runs<J: Index>(left: &Factor, right: &Factor, indices: &[J]) -> bool {
    let (mut all, mut runs) = (0, 0);
    for row in sample(left.rows) {
        let positions = left.range(row);
        let (entries, middle) = (positions.len(), positions.start + positions.len() / 2);
        all += entries;
        if entries > 0 && is_run(&indices[right.range(left.col(middle))]) {
            runs += entries;
        }
    }
    runs > all / 2
}

/// Returns whether the indices are consecutive, and at least [`RUN`].
#[inline(always)]
pub fn is_run<J: Index>(indices: &[J]) -> bool {
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

/// Returns whether all columns are flagged.
#[inline(never)]
fn is_full(seen: &[u8]) -> bool {
    let mut groups = seen.chunks_exact(GROUP);
    groups.all(|flags| flags == [1; GROUP]) && groups.remainder().iter().all(|&flag| flag == 1)
}

impl Window<'_> {
    /// Writes the distinct columns of a row to `list`, in order, and returns their number; `None` if the row
    /// leaves the window.
    #[inline(always)]
    pub fn list<K: Key>(
        &mut self,
        ahead: &mut Ahead<'_>,
        row: usize,
        (indices, base, cols): (&[K], i64, usize),
        span: Range<i64>,
        list: &mut [K],
    ) -> Option<usize> {
        let width = (span.end - span.start) as usize;
        let seen = &mut self.seen[..width];
        let (mut inside, mut full, mut met) = (true, false, 0);
        // No column is outside the window then, whatever the order of the right factor's rows.
        let mut test_at = if width == cols { 2 * width } else { usize::MAX };
        ahead.walk(row, indices, |row| {
            if full {
                return;
            }
            met += row.len();
            if met >= test_at {
                full = is_full(seen);
                test_at = met + width;
            }
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
        if !inside {
            seen.fill(0);
            return None;
        }
        Some(self.take((span.start - base, width), list))
    }

    /// Moves the flagged columns of the first `width` to `list`, in order; `first` is the first one. Returns
    /// their number.
    #[inline(always)]
    fn take<K: Key>(&mut self, (first, width): (i64, usize), list: &mut [K]) -> usize {
        let mut count = 0;
        let seen = &mut self.seen[..width.next_multiple_of(GROUP)];
        for (group, flags) in seen.chunks_exact_mut(GROUP).enumerate() {
            if flags == [0; GROUP] {
                continue;
            }
            let start = first + (group * GROUP) as i64;
            if let Some(list) = list.get_mut(count..count + GROUP).filter(|_| flags == [1; GROUP]) {
                for (col, at) in list.iter_mut().zip(start..) {
                    *col = K::from_i64(at);
                }
                count += GROUP;
                flags.fill(0);
                continue;
            }
            for (word, flags) in flags.chunks_exact(8).enumerate() {
                let flags = u64::from_le_bytes(flags.try_into().expect("8 of them"));
                // Gathers the lowest bits of eight bytes in the highest byte.
                let mut rest = flags.wrapping_mul(0x0102_0408_1020_4080) >> 56;
                while rest != 0 {
                    list[count] = K::from_i64(start + (word * 8) as i64 + i64::from(rest.trailing_zeros()));
                    count += 1;
                    rest &= rest - 1;
                }
            }
            flags.fill(0);
        }
        count
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::host::operand::Ints;

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

    /// A factor with rows of 20, 3 and 3 entries.
    fn right(indices: &[i32]) -> Factor<'_> {
        let offsets = Ints::I64(&[1, 21, 24, 27]);
        Factor { rows: 3, cols: 2000, base: 1, offsets, indices: indices.into() }
    }

    #[test]
    fn windows_give_columns_in_order_and_are_clean_after() {
        let run = 1010..1030;
        let mut indices: Vec<i32> = run.chain([1099, 1000, 1010]).chain([1050, 1100, 1001]).collect();
        let (mut seen, mut list) = ([0; 128], [0i32; 23]);
        let mut window = Window { seen: &mut seen };
        let left = |cols: &'static [i32]| {
            // The base of the indices is 1.
            let (offsets, indices) = (Ints::I64(&[0, 2]), cols.into());
            Factor { rows: 1, cols: 3, base: 0, offsets, indices }
        };
        for (cols, found) in [(&[0, 1][..], Some(22)), (&[1, 2], None), (&[0, 1], Some(22))] {
            let right = right(&indices);
            let left = left(cols);
            let mut ahead = Ahead::new(&left, &right, &[]);
            let count = window.list(&mut ahead, 0, (&indices, 1, 2000), 1000..1100, &mut list);
            assert_eq!(count, found);
            if count.is_some() {
                let expected: Vec<i32> = [999].into_iter().chain(1009..1029).chain([1098]).collect();
                assert_eq!(list[..22], expected);
            }
            assert!(window.seen.iter().all(|&flag| flag == 0));
        }
        // Runs that leave the window on either side are noticed.
        for first in [990, 1090] {
            indices[..20].iter_mut().zip(first..).for_each(|(index, at)| *index = at);
            let right = right(&indices);
            let left = left(&[0, 1]);
            let mut ahead = Ahead::new(&left, &right, &[]);
            assert_eq!(window.list(&mut ahead, 0, (&indices, 1, 2000), 1000..1100, &mut list), None);
            assert!(window.seen.iter().all(|&flag| flag == 0));
        }
    }

    /// Products of rows that have all columns early, late, with the last entry alone, or never.
    #[test]
    fn rows_with_all_columns_have_them_wherever_they_come() {
        for cols in [40_usize, 64, 75] {
            // Rows of the right factor: even columns, odd ones in turned order, the last one, all but the last two.
            let last = cols as i32 - 1;
            let evens = (0..last).filter(|col| col % 2 == 0);
            let odds = (0..last).filter(|col| col % 2 == 1).rev();
            let rows: [Vec<i32>; 4] = [evens.collect(), odds.collect(), vec![last], (0..last - 1).collect()];
            let mut offsets = vec![0_i64];
            offsets.extend(rows.iter().scan(0, |at, row| {
                *at += row.len() as i64;
                Some(*at)
            }));
            let indices = rows.concat();
            let right =
                Factor { rows: 4, cols, base: 0, offsets: Ints::I64(&offsets), indices: indices[..].into() };
            let mut seen = vec![0; cols.next_multiple_of(GROUP)];
            let mut window = Window { seen: &mut seen };
            for (met, expected) in [
                ([vec![0, 1, 2], vec![3; 50]].concat(), cols),
                ([vec![3; 50], vec![1, 0, 2], vec![3; 50]].concat(), cols),
                ([vec![3; 50], vec![1, 0, 2]].concat(), cols),
                ([vec![3; 50], vec![0, 1]].concat(), cols - 1),
                ([vec![2], vec![3; 50]].concat(), cols - 1),
            ] {
                let met_offsets = [0, met.len() as i64];
                let left = Factor {
                    rows: 1,
                    cols: 4,
                    base: 0,
                    offsets: Ints::I64(&met_offsets),
                    indices: met[..].into(),
                };
                let mut list = vec![-1_i32; cols];
                let mut ahead = Ahead::new(&left, &right, &[]);
                let of_right = (&indices[..], 0, cols);
                let count = window.list(&mut ahead, 0, of_right, 0..cols as i64, &mut list).unwrap();
                let mut distinct: Vec<i32> = met.iter().flat_map(|&row| rows[row as usize].clone()).collect();
                distinct.sort();
                distinct.dedup();
                assert_eq!((count, &list[..count]), (expected, &distinct[..]), "{cols}");
                assert!(window.seen.iter().all(|&flag| flag == 0));
            }
        }
    }
}

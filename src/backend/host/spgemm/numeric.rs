//! The numeric phase: computes the values of each row of the product, whose columns the symbolic phase has
//! listed; where there was no memory for that, it finds them again.

use std::ops::Range;

use super::lists::{Columns, Lists, Packed};
use super::output::Output;
use super::places::{pattern_changed, Key, Places, Rule, Sums};
use super::ranks::SharedRanks;
use super::rows::{Ahead, Array, NEW};
use super::scratch::{Scratch, Set};
use super::symbolic::{fingerprint, Counted, Finder};
use crate::backend::host::operand::Factor;
use crate::types::{Accumulator, IndexType, Storage};

/// Data that all rows share.
#[derive(Clone, Copy)]
pub struct Task<'a, K: Key> {
    /// Left factor.
    pub left: Factor<'a>,
    /// Right factor.
    pub right: Factor<'a>,
    /// Column indices of the right factor.
    pub columns: &'a [K],
    /// Row offsets of the product, and how the columns of a row follow from those of the row before.
    pub counted: &'a Counted,
    /// Items of rows ([`super::rows::cut_items`]).
    pub items: &'a [i64],
    /// Columns of the product, or what finds them.
    pub lists: std::result::Result<&'a Lists, Finder<'a, K>>,
    /// Ranks of the products, if the plan keeps them.
    pub ranks: Option<SharedRanks<'a>>,
    /// Rule that chooses the accumulator of a row.
    pub rule: Rule,
    /// True if many rows of the right factor are runs of columns.
    pub runs: bool,
    /// True if rows of the right factor are prefetched.
    pub far: bool,
}

impl<'a, K: Key> Task<'a, K> {
    fn range(&self, row: usize) -> Range<usize> {
        self.counted.offsets[row] as usize..self.counted.offsets[row + 1] as usize
    }

    /// Calls `f(set, row, columns)` for the rows of an item that have entries, one after the other.
    #[inline(always)]
    fn for_each_row<T>(
        &self,
        set: &mut Set<'_, K, T>,
        item: usize,
        rows: Range<usize>,
        mut f: impl FnMut(&mut Set<'_, K, T>, usize, &[K]),
    ) {
        let mut packed = self.lists.map_or(Packed::EMPTY, |lists| lists.item(item));
        let (mut previous, mut ahead) = (0, self.lists.as_ref().err().map(Finder::ahead));
        for row in rows.clone() {
            let count = self.range(row).len();
            if count > 0 {
                match self.lists {
                    Ok(_) => match packed.next::<K>(count) {
                        Columns::Plain(columns) => {
                            f(set, row, columns);
                            continue;
                        }
                        columns => columns.unpack(&mut set.row.list[..count]),
                    },
                    Err(_) if row > rows.start && self.counted.steps[row] != NEW && previous == count => {
                        set.row.follow(count, self.counted.steps[row]);
                    }
                    Err(ref finder) => {
                        let ahead = ahead.as_mut().expect("there are no lists");
                        if finder.find::<false, _>(set, ahead, row, finder.most(row), count) != count {
                            pattern_changed();
                        }
                    }
                }
                // The list is taken out for the time of the row.
                let list = std::mem::take(&mut set.row.list);
                f(set, row, &list[..count]);
                set.row.list = list;
            }
            previous = count;
        }
    }

    /// Returns the number of products of a row whose ranks the next rows use, up to `room`.
    fn traced(&self, row: usize, end: usize, room: usize) -> usize {
        if row + 1 >= end || self.counted.steps[row + 1] == NEW {
            return 0;
        }
        let lengths = self.left.range(row).map(|position| self.right.range(self.left.col(position)).len());
        Some(lengths.sum()).filter(|&products| products <= room).unwrap_or(0)
    }
}

/// Returns whether column indices of C have 64 bits. Traces, windows and sums by column are not compiled for
/// these, which are rare.
pub const fn is_wide<K: Key>() -> bool {
    matches!(K::TYPE, IndexType::I64)
}

/// Writes C's pattern and zeros, the result for alpha = 0, without reading A's and B's values. C has an entry
/// wherever there is a product, as for any other alpha.
pub fn write_pattern<K: Key, T, Y>(task: &Task<'_, K>, scratch: &mut Scratch<K, T>, out: &Output<K, Y>)
where
    T: Accumulator,
    Y: Storage<T>,
{
    scratch.for_each_item(task.items, |set, item, rows| {
        task.for_each_row(set, item, rows, |_, row, columns| {
            // SAFETY: each row is in one item, which one thread processes.
            unsafe { out.row(task.range(row), columns) }.fill(Y::round(T::ZERO));
        });
    });
}

/// Computes C = alpha · left · right by rows (Gustavson 1978, "Two fast algorithms for sparse matrices:
/// multiplication and permuted transposition"): row i of C is the sum of left_ik times row k of right, over
/// the entries of left's row in their order, and of right's rows in theirs. The order does not depend on the
/// accumulator or the thread. Each value of C is rounded once, from alpha times the sum.
pub fn multiply<K: Key, L, R, T, Y>(
    task: &Task<'_, K>,
    left_values: &[L],
    right_values: &[R],
    alpha: T,
    scratch: &mut Scratch<K, T>,
    out: &Output<K, Y>,
) where
    L: Storage<T>,
    R: Storage<T>,
    T: Accumulator,
    Y: Storage<T>,
{
    // Sums by column go to every column, also those that a row does not have, and ranks are not looked at again
    // once they are recorded.
    let by_column = task.ranks.is_none() && scratch.sums_by_column();
    let records = task.ranks.is_some_and(|ranks| !ranks.recorded);
    if (by_column || records) && fingerprint(&task.left, &task.right) != task.counted.fingerprint {
        pattern_changed();
    }
    let factors = Factors { task, left_values, right_values, alpha, out };
    scratch.for_each_item(task.items, |set, item, rows| factors.multiply_rows(set, item, rows));
}

/// The factors with their values, and C.
struct Factors<'a, K: Key, L, R, T, Y> {
    task: &'a Task<'a, K>,
    left_values: &'a [L],
    right_values: &'a [R],
    alpha: T,
    out: &'a Output<K, Y>,
}

/// Maximum number of traced products of a row: their ranks are read again for each row that follows from this
/// one, and have to stay in the first-level cache.
pub const TRACE: usize = 2048;

impl<K: Key, L, R, T: Accumulator, Y: Storage<T>> Factors<'_, K, L, R, T, Y>
where
    L: Storage<T>,
    R: Storage<T>,
{
    /// Computes the rows of an item.
    fn multiply_rows(&self, set: &mut Set<'_, K, T>, item: usize, rows: Range<usize>) {
        let Task { right, counted, rule, ranks, .. } = self.task;
        let arrays = [Array::of(self.task.columns), Array::of(self.right_values)];
        let mut ahead = Ahead::new(&self.task.left, right, if self.task.far { &arrays } else { &[] });
        let ahead = &mut ahead;
        // SAFETY: each row is in one item, which one thread processes.
        let ranks_of = |row| ranks.map(|ranks| unsafe { ranks.row(row) });
        if ranks.is_some_and(|ranks| ranks.recorded) {
            return self.task.for_each_row(set, item, rows, |set, row, columns| {
                if let Some(ranks) = ranks_of(row) {
                    self.add_ranked(ahead, row, columns, set.row.sums, ranks);
                }
            });
        }
        let by_column = !is_wide::<K>() && !set.by_column.is_empty() && ranks.is_none();
        if let (Ok(lists), true) = (self.task.lists, by_column && set.trace.is_empty() && !counted.repeats) {
            if rule.array(0, right.cols) {
                return match self.task.runs {
                    true => self.sum_rows::<true>(set, ahead, lists.item(item), rows),
                    false => self.sum_rows::<false>(set, ahead, lists.item(item), rows),
                };
            }
        }
        // Products of the row before whose ranks are in the trace, and that row.
        let (mut traced, mut before, end) = (0, usize::MAX, rows.end);
        self.task.for_each_row(set, item, rows, |set, row, columns| {
            let mut kept = ranks_of(row);
            let follows = traced > 0 && before.wrapping_add(1) == row && counted.steps[row] != NEW;
            before = row;
            if !is_wide::<K>() && follows {
                self.add_ranked(ahead, row, columns, set.row.sums, &set.trace[..traced]);
            } else {
                traced = match is_wide::<K>() || set.trace.is_empty() {
                    true => 0,
                    false => self.task.traced(row, end, set.trace.len()),
                };
                let in_array = rule.array(columns.len(), right.cols);
                if by_column && in_array && traced == 0 {
                    return match (counted.repeats, self.task.runs) {
                        (true, _) => self.sum_groups(row, columns, set.by_column),
                        (_, true) => self.sum_by_column::<true>(ahead, row, columns, set.by_column),
                        (_, false) => self.sum_by_column::<false>(ahead, row, columns, set.by_column),
                    };
                }
                let trace = match kept.as_deref_mut() {
                    Some(kept) if traced == 0 => kept,
                    _ => &mut set.trace[..traced],
                };
                if in_array {
                    self.find_places(ahead, row, columns, &mut set.array, set.row.sums, trace);
                } else {
                    self.find_places(ahead, row, columns, &mut set.hash, set.row.sums, trace);
                }
            }
            if let Some(kept) = kept.filter(|_| traced > 0) {
                kept.copy_from_slice(&set.trace[..traced]);
            }
        });
    }

    /// Calls `f(columns, values, factor)` for each row of the right factor that corresponds to an entry of a
    /// row of the left one.
    #[inline(always)]
    fn each(&self, ahead: &mut Ahead<'_>, row: usize, mut f: impl FnMut(&[K], &[R], T)) {
        let columns = self.task.columns;
        ahead.meet(row, |position, entries| {
            let factor = self.left_values[position].widen();
            f(&columns[entries.clone()], &self.right_values[entries], factor);
        });
    }

    /// Computes the rows of an item with a sum for each column of the product, where these are all that is needed.
    fn sum_rows<const RUNS: bool>(
        &self,
        set: &mut Set<'_, K, T>,
        ahead: &mut Ahead<'_>,
        mut packed: Packed<'_>,
        rows: Range<usize>,
    ) {
        let (base, alpha, mut sums) = (self.task.right.base, self.alpha, Sums(&mut *set.by_column));
        let indices = self.task.columns;
        // As long as the columns, so that a range is tested once.
        let values = &self.right_values[..indices.len()];
        for row in rows {
            let range = self.task.range(row);
            let columns = match packed.next::<K>(range.len()) {
                Columns::Plain(columns) => columns,
                columns => {
                    let list = &mut set.row.list[..range.len()];
                    columns.unpack(list);
                    list
                }
            };
            ahead.meet(row, |position, entries| {
                let (factor, indices) = (self.left_values[position].widen(), &indices[entries.clone()]);
                sums.add::<RUNS, _, _>((indices, base, &values[entries]), factor);
            });
            // SAFETY: each row is in one item, which one thread processes.
            unsafe { self.out.write(range, columns, |col| Y::round(alpha * sums.take(col))) };
        }
    }

    /// Writes a row of C.
    #[inline(always)]
    fn write(&self, row: usize, columns: &[K], sums: impl Iterator<Item = T>) {
        // SAFETY: each row is in one item, which one thread processes.
        let values = unsafe { self.out.row(self.task.range(row), columns) };
        for (value, sum) in values.iter_mut().zip(sums) {
            *value = Y::round(self.alpha * sum);
        }
    }

    /// Computes a row with a sum for each column of the product.
    fn sum_by_column<const RUNS: bool>(
        &self,
        ahead: &mut Ahead<'_>,
        row: usize,
        columns: &[K],
        sums: &mut [T],
    ) {
        let (base, mut sums) = (self.task.right.base, Sums(sums));
        self.each(ahead, row, |indices, values, factor| {
            sums.add::<RUNS, _, _>((indices, base, values), factor);
        });
        self.write(row, columns, columns.iter().map(|&col| sums.take(col)));
    }

    /// Does the same where many rows of the right factor repeat the row before: up to three of them are added
    /// at once, so that a sum is loaded and stored once for them.
    fn sum_groups(&self, row: usize, columns: &[K], sums: &mut [T]) {
        let Task { left, right, columns: indices, counted, .. } = self.task;
        let (base, mut sums) = (right.base, Sums(sums));
        let factor = |position: usize| self.left_values[position].widen();
        left.meet_groups(row, (right, &counted.right_steps), 3, |position, entries, count| {
            let length = entries.len();
            let values = |at: usize| &self.right_values[entries.start + at * length..][..length];
            let indices = &indices[entries.clone()];
            match count {
                3 => {
                    let factors = [factor(position), factor(position + 1), factor(position + 2)];
                    sums.add_rows((indices, base), [values(0), values(1), values(2)], factors);
                }
                2 => {
                    let factors = [factor(position), factor(position + 1)];
                    sums.add_rows((indices, base), [values(0), values(1)], factors);
                }
                _ => sums.add::<false, _, _>((indices, base, values(0)), factor(position)),
            }
        });
        self.write(row, columns, columns.iter().map(|&col| sums.take(col)));
    }

    /// Computes a row by a hash table or an array, and records the ranks of its products in `trace` unless
    /// that is empty.
    fn find_places<P: Places<K>>(
        &self,
        ahead: &mut Ahead<'_>,
        row: usize,
        columns: &[K],
        places: &mut P,
        sums: &mut [T],
        trace: &mut [u16],
    ) {
        let (base, sums) = (self.task.right.base, &mut sums[..columns.len()]);
        places.begin(columns.len());
        // The columns are added in C's order, so that a column's place is its rank in C.
        places.each(columns, 0, |_, _, _, _| ());
        sums.fill(T::ZERO);
        if trace.is_empty() {
            self.each(ahead, row, |indices, values, factor| {
                let values = &values[..indices.len()];
                places.each(indices, base, |i, _, place, new| {
                    if new {
                        pattern_changed();
                    }
                    sums[place] += factor * values[i].widen();
                });
            });
        } else {
            let mut rest = &mut *trace;
            self.each(ahead, row, |indices, values, factor| {
                let (trace, later) = std::mem::take(&mut rest).split_at_mut(indices.len());
                let values = &values[..indices.len()];
                places.each(indices, base, |i, _, place, new| {
                    if new {
                        pattern_changed();
                    }
                    trace[i] = place as u16;
                    sums[place] += factor * values[i].widen();
                });
                rest = later;
            });
        }
        self.write(row, columns, sums.iter().copied());
    }

    /// Computes a row whose columns and ranks of products are known.
    fn add_ranked(
        &self,
        ahead: &mut Ahead<'_>,
        row: usize,
        columns: &[K],
        sums: &mut [T],
        mut ranks: &[u16],
    ) {
        let sums = &mut sums[..columns.len()];
        sums.fill(T::ZERO);
        self.each(ahead, row, |_, values, factor| {
            let (part, later) = ranks.split_at(values.len());
            for (value, &rank) in values.iter().zip(part) {
                sums[usize::from(rank)] += factor * value.widen();
            }
            ranks = later;
        });
        self.write(row, columns, sums.iter().copied());
    }
}

//! The numeric phase: computes the columns and values of each row of the product.

use std::ops::Range;

use super::output::Output;
use super::places::{order, pattern_changed, Key, Places, Rule};
use super::ranks::SharedRanks;
use super::rows::{walk, Array, NEW, NEXT};
use super::scratch::{Row, Scratch, Set};
use super::symbolic::Counted;
use super::window::{self, Window};
use crate::backend::host::operand::Factor;
use crate::types::{Accumulator, IndexType, Storage};

/// Data that all rows share.
#[derive(Clone, Copy)]
pub struct Task<'a, K> {
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
    /// Columns of the product, if an earlier run computed them.
    pub known: Option<&'a [K]>,
    /// Ranks of the products, if the plan keeps them; if they are recorded, the columns are known.
    pub ranks: Option<SharedRanks<'a>>,
    /// Rule that chooses the accumulator of a row.
    pub rule: Rule,
    /// True if the columns of each row of the product must ascend. Otherwise they stay in the order of the
    /// first products, except for rows that are computed in a window, whose columns ascend without being
    /// sorted.
    pub sorted: bool,
}

/// The way in which a row of the product is computed.
#[derive(Clone, Copy, Debug)]
enum Way {
    /// By the trace of the row before, which has the ranks of this many products.
    Follow(usize),
    /// By an accumulator, recording the ranks of this many products in the trace. If it is 0 the row may also
    /// be computed in a window.
    Find(usize),
}

impl<'a, K: Key> Task<'a, K> {
    fn range(&self, row: usize) -> Range<usize> {
        self.counted.offsets[row] as usize..self.counted.offsets[row + 1] as usize
    }

    fn known(&self, range: &Range<usize>) -> Option<&'a [K]> {
        self.known.map(|columns| &columns[range.clone()])
    }

    /// Calls `f` for the rows of an item that have entries, one after the other, with the way in which each
    /// is computed; a trace has room for `room` products. Windows and traces are not compiled for products so
    /// wide that their columns take 64 bits, which are rare.
    #[inline(always)]
    fn for_each_row(&self, rows: Range<usize>, room: usize, mut f: impl FnMut(usize, Way)) {
        let Task { left, right, counted, .. } = self;
        let steps = &counted.steps[..rows.end];
        // Products of the row before whose ranks are in the trace.
        let mut traced = 0;
        for row in rows {
            if self.range(row).is_empty() {
                continue;
            }
            if !Self::IS_WIDE && traced > 0 && steps[row] != NEW {
                f(row, Way::Follow(traced));
                continue;
            }
            traced = match steps.get(row + 1) {
                None | Some(&NEW) => 0,
                _ if Self::IS_WIDE => 0,
                _ => {
                    let lengths = left.range(row).map(|position| right.range(left.col(position)).len());
                    Some(lengths.sum()).filter(|&products| products <= room).unwrap_or(0)
                }
            };
            f(row, Way::Find(traced));
        }
    }

    /// True if column indices of C have 64 bits.
    const IS_WIDE: bool = matches!(K::TYPE, IndexType::I64);

    /// Returns the window of a row, if the row may be computed in one.
    #[inline(always)]
    fn window(&self, row: usize) -> Option<Range<i64>> {
        let count = self.range(row).len();
        let widest = self.rule.window.min(count.saturating_mul(window::SPREAD));
        window::span(&self.left, row, &self.right, self.columns, count, widest)
    }
}

/// Writes C's pattern and zeros, the result for alpha = 0, without reading A's and B's values. C has an entry
/// wherever there is a product, as for any other alpha.
pub fn write_pattern<K: Key, T, Y>(task: &Task<'_, K>, scratch: &mut Scratch<K, T>, out: &Output<K, Y>)
where
    T: Accumulator,
    Y: Storage<T>,
{
    fn find_columns<K: Key, P: Places<K>>(task: &Task<'_, K>, row: usize, places: &mut P, list: &mut [K]) {
        places.begin(list.len());
        walk(&task.left, row, &task.right, task.columns, |row| places.list(row, task.right.base, list));
        check_count(places.count(), list.len());
    }
    /// Returns whether [`multiply`] leaves the columns of a row in ascending order when it computes the row
    /// in this way.
    fn ascends<K: Key, T>(task: &Task<'_, K>, row: usize, way: Way, window: &mut Window<'_, T>) -> bool {
        task.sorted
            || matches!(way, Way::Find(0)) && !Task::<K>::IS_WIDE && {
                let span = task.window(row);
                span.is_some_and(|span| {
                    window.count(&task.left, row, &task.right, task.columns, span).is_some()
                })
            }
    }
    scratch.for_each_item(task.items, |set, rows| {
        let Set { hash, array, window, trace, row: Row { list, bits, spare, .. }, .. } = set;
        task.for_each_row(rows, trace.len(), |row, way| {
            let range = task.range(row);
            let count = range.len();
            let columns = match task.known(&range) {
                Some(columns) => columns,
                None => {
                    let list = &mut list[..count];
                    if task.rule.array(count, task.right.cols) {
                        find_columns(task, row, array, list);
                    } else {
                        find_columns(task, row, hash, list);
                    }
                    if ascends(task, row, way, window) {
                        order(list, bits, spare);
                    }
                    list
                }
            };
            // SAFETY: each row is in one item, which one thread processes.
            unsafe { out.row(range, columns) }.fill(Y::round(T::ZERO));
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
    let factors = Factors { task, left_values, right_values, alpha, out };
    scratch.for_each_item(task.items, |set, rows| factors.multiply_rows(set, rows));
}

/// The factors with their values, and C.
struct Factors<'a, K, L, R, T, Y> {
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
    fn multiply_rows(&self, set: &mut Set<'_, K, T>, rows: Range<usize>) {
        let Task { right, counted, rule, .. } = self.task;
        // SAFETY: each row is in one item, which one thread processes.
        let ranks_of = |row| self.task.ranks.map(|ranks| unsafe { ranks.row(row) });
        if self.task.ranks.is_some_and(|ranks| ranks.recorded) {
            for row in rows {
                if let (Some(columns), Some(ranks)) = (self.task.known(&self.task.range(row)), ranks_of(row))
                {
                    self.add_ranked(row, columns, &mut set.row.sums[..columns.len()], ranks);
                }
            }
            return;
        }
        let by_column = !set.by_column.is_empty() && self.task.ranks.is_none();
        let timed = set.pace.begin(by_column && self.task.known.is_none() && !rows.is_empty());
        self.task.for_each_row(rows, set.trace.len(), |row, way| {
            let in_array = rule.array(self.task.range(row).len(), right.cols);
            let mut kept = ranks_of(row);
            let (Way::Follow(traced) | Way::Find(traced)) = way;
            match way {
                Way::Follow(_) => self.follow(row, &mut set.row, counted.steps[row], &set.trace[..traced]),
                Way::Find(0) if !Task::<K>::IS_WIDE && self.in_window(row, set) => {
                    match kept.as_deref_mut() {
                        Some(kept) if in_array => self.find_ranks(row, &mut set.array, &set.row, kept),
                        Some(kept) => self.find_ranks(row, &mut set.hash, &set.row, kept),
                        None => {}
                    }
                }
                Way::Find(0) if in_array && by_column => match self.task.known(&self.task.range(row)) {
                    Some(columns) => self.sum_known(row, columns, set),
                    None if set.pace.branches() => self.sum_by_column::<true>(row, set),
                    None => self.sum_by_column::<false>(row, set),
                },
                Way::Find(_) => {
                    let trace = match kept.as_deref_mut() {
                        Some(kept) if traced == 0 => kept,
                        _ => &mut set.trace[..traced],
                    };
                    if in_array {
                        self.find_places(row, &mut set.array, &mut set.row, trace)
                    } else {
                        self.find_places(row, &mut set.hash, &mut set.row, trace)
                    }
                }
            }
            if let Some(kept) = kept.filter(|_| traced > 0) {
                kept.copy_from_slice(&set.trace[..traced]);
            }
        });
        set.pace.end(timed);
    }

    /// Calls `f(columns, values, factor)` for each row of the right factor that corresponds to an entry of a
    /// row of the left one.
    #[inline(always)]
    fn each(&self, row: usize, mut f: impl FnMut(&[K], &[R], T)) {
        let Task { left, right, columns, .. } = self.task;
        let arrays = [Array::of(columns), Array::of(self.right_values)];
        left.meet(row, right, &arrays, |position, entries| {
            let factor = self.left_values[position].widen();
            f(&columns[entries.clone()], &self.right_values[entries], factor);
        });
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

    /// Computes a row by an array with a sum for each column of the product.
    fn sum_by_column<const BRANCH: bool>(&self, row: usize, set: &mut Set<'_, K, T>) {
        let Set { array, by_column: sums, row: memory, .. } = set;
        let (range, base) = (self.task.range(row), self.task.right.base);
        let (count, list) = (range.len(), &mut memory.list[..range.len() + 1]);
        Places::<K>::begin(array, count);
        self.each(row, |indices, values, factor| {
            array.add_by_column::<BRANCH, _, _, _, _>((indices, base, values), factor, list, sums);
        });
        check_count(Places::<K>::count(array), count);
        let list = &mut list[..count];
        if self.task.sorted {
            order(list, memory.bits, memory.spare);
        }
        self.take_sums(row, list, sums);
    }

    /// Computes a row whose columns are known with a sum for each column of the product.
    fn sum_known(&self, row: usize, columns: &[K], Set { array, by_column: sums, .. }: &mut Set<'_, K, T>) {
        let base = self.task.right.base;
        Places::<K>::begin(array, columns.len());
        Places::<K>::mark(array, columns, 0);
        self.each(row, |indices, values, factor| {
            array.add_known((indices, base, values), factor, sums);
        });
        self.take_sums(row, columns, sums);
    }

    /// Writes a row of C from sums by column, which are zero afterwards.
    #[inline(always)]
    fn take_sums(&self, row: usize, columns: &[K], sums: &mut [T]) {
        let take = |col: &K| std::mem::replace(&mut sums[col.to_i64() as usize], T::ZERO);
        self.write(row, columns, columns.iter().map(take));
    }

    /// Computes a row by a hash table or an array, and records the ranks of its products in `trace` unless
    /// that is empty.
    fn find_places<P: Places<K>>(
        &self,
        row: usize,
        places: &mut P,
        memory: &mut Row<'_, K, T>,
        trace: &mut [u16],
    ) {
        let (range, base) = (self.task.range(row), self.task.right.base);
        let known = self.task.known(&range);
        let (list, sums) = (&mut memory.list[..range.len()], &mut memory.sums[..range.len()]);
        places.begin(list.len());
        if let Some(columns) = known {
            // The columns are added in C's order, so that a column's place is its rank in C.
            places.list(columns, 0, list);
        }
        sums.fill(T::ZERO);
        if trace.is_empty() {
            self.each(row, |indices, values, factor| places.add((indices, base, values), factor, list, sums));
        } else {
            let mut rest = &mut *trace;
            self.each(row, |indices, values, factor| {
                let (trace, later) = std::mem::take(&mut rest).split_at_mut(indices.len());
                places.each(indices, base, |i, col, place, new| {
                    if new {
                        list[place] = col;
                    }
                    trace[i] = place as u16;
                    sums[place] += factor * values[i].widen();
                });
                rest = later;
            });
        }
        check_count(places.count(), list.len());
        if known.is_some() || !self.task.sorted {
            return self.write(row, list, sums.iter().copied());
        }
        order(list, memory.bits, memory.spare);
        if !trace.is_empty() {
            let ranks = &mut memory.ranks[..list.len()];
            for (rank, &col) in (0..=u16::MAX).zip(&*list) {
                ranks[places.find(col)] = rank;
            }
            trace.iter_mut().for_each(|place| *place = ranks[usize::from(*place)]);
        }
        self.write(row, list, list.iter().map(|&col| sums[places.find(col)]));
    }

    /// Finds the ranks of the products of a row whose columns are in memory.
    fn find_ranks<P: Places<K>>(
        &self,
        row: usize,
        places: &mut P,
        memory: &Row<'_, K, T>,
        mut ranks: &mut [u16],
    ) {
        let Task { left, right, columns, .. } = self.task;
        let list = &memory.list[..self.task.range(row).len()];
        places.begin(list.len());
        places.each(list, 0, |_, _, _, _| ());
        walk(left, row, right, columns, |indices| {
            let (part, later) = std::mem::take(&mut ranks).split_at_mut(indices.len());
            places.each(indices, right.base, |i, _, place, _| part[i] = place as u16);
            ranks = later;
        });
    }

    /// Computes a row whose products have the ranks of those of the row before.
    fn follow(&self, row: usize, memory: &mut Row<'_, K, T>, step: u8, ranks: &[u16]) {
        let count = self.task.range(row).len();
        let (list, sums) = (&mut memory.list[..count], &mut memory.sums[..count]);
        if step == NEXT {
            list.iter_mut().for_each(|col| *col = K::from_i64(col.to_i64() + 1));
        }
        self.add_ranked(row, list, sums, ranks);
    }

    /// Computes a row whose columns and ranks of products are known.
    fn add_ranked(&self, row: usize, columns: &[K], sums: &mut [T], mut ranks: &[u16]) {
        sums.fill(T::ZERO);
        self.each(row, |_, values, factor| {
            let (part, later) = ranks.split_at(values.len());
            for (value, &rank) in values.iter().zip(part) {
                sums[usize::from(rank)] += factor * value.widen();
            }
            ranks = later;
        });
        self.write(row, columns, sums.iter().copied());
    }

    /// Computes a row in a window if possible, and returns whether it did.
    fn in_window(&self, row: usize, set: &mut Set<'_, K, T>) -> bool {
        let Some(span) = self.task.window(row) else {
            return false;
        };
        let (window, count) = (&mut set.window, self.task.range(row).len());
        let (first, width) = (span.start - self.task.right.base, (span.end - span.start) as usize);
        let (list, sums) = (&mut set.row.list[..count], &mut set.row.sums[..count]);
        let mut inside = true;
        if width == count {
            // The row has every column of the window.
            self.each(row, |indices, values, factor| {
                inside &= window.add::<false, _, _>((span.start, width), (indices, values), factor);
            });
            if inside {
                for (col, at) in list.iter_mut().zip(first..) {
                    *col = K::from_i64(at);
                }
                self.write(row, list, window.sums[..width].iter().copied());
            }
            window.clear(width);
            return inside;
        }
        self.each(row, |indices, values, factor| {
            inside &= window.add::<true, _, _>((span.start, width), (indices, values), factor);
        });
        if !inside {
            window.clear(width);
            return false;
        }
        check_count(window.take((first, width), list, sums), count);
        self.write(row, list, sums.iter().copied());
        true
    }
}

/// Panics unless a row has as many distinct columns as the symbolic phase counted, since otherwise parts of C
/// would not be written.
fn check_count(found: usize, counted: usize) {
    if found != counted {
        pattern_changed();
    }
}

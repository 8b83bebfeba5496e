//! The numeric phase: columns and values of each row of the product.

use std::ops::Range;

use super::output::Output;
use super::places::{order, Key, Places, Rule};
use super::rows::{walk, with_indices, Factor};
use super::scratch::{Scratch, Set};
use crate::types::{Accumulator, Index, Storage};

/// What all rows share.
#[derive(Clone, Copy)]
pub struct Task<'a, K> {
    /// Left factor.
    pub left: Factor<'a>,
    /// Right factor.
    pub right: Factor<'a>,
    /// Row offsets of the product.
    pub offsets: &'a [i64],
    /// Cuts of the rows.
    pub items: &'a [i64],
    /// Columns of the product, if an earlier run found them.
    pub known: Option<&'a [K]>,
    /// Choice of accumulators.
    pub rule: Rule,
}

impl<'a, K> Task<'a, K> {
    fn range(&self, row: usize) -> Range<usize> {
        self.offsets[row] as usize..self.offsets[row + 1] as usize
    }

    fn known(&self, range: &Range<usize>) -> Option<&'a [K]> {
        self.known.map(|columns| &columns[range.clone()])
    }
}

/// C's pattern and zeros: what alpha = 0 gives without reading A's and B's
/// values. Structure is kept: an entry of C exists where a product does.
pub fn write_pattern<K: Key, T, Y>(task: &Task<'_, K>, scratch: &mut Scratch<K, T>, out: &Output<K, Y>)
where
    T: Accumulator,
    Y: Storage<T>,
{
    fn find_columns<K: Key, J: Index, P: Places<K>>(
        task: &Task<'_, K>,
        row: usize,
        indices: &[J],
        places: &mut P,
        list: &mut [K],
    ) {
        places.begin(list.len());
        walk(&task.left, row, &task.right, indices, |row| {
            for index in row {
                let col = K::from_i64(index.to_i64() - task.right.base);
                let (place, new) = places.place(col);
                if new {
                    list[place] = col;
                }
            }
        });
        check_count(places.count(), list.len());
    }
    with_indices!(task.right, indices => scratch.for_each_item(task.items, |set, rows| {
        let Set { hash, array, list, bits, .. } = set;
        for row in rows {
            let range = task.range(row);
            let count = range.len();
            if count == 0 {
                continue;
            }
            let columns = match task.known(&range) {
                Some(columns) => columns,
                None => {
                    let list = &mut list[..count];
                    if task.rule.array(count, task.right.cols) {
                        find_columns(task, row, indices, array, list);
                    } else {
                        find_columns(task, row, indices, hash, list);
                    }
                    order(list, bits);
                    list
                }
            };
            // SAFETY: each row is in one item, which one thread takes.
            unsafe { out.row(range, columns) }.fill(Y::round(T::ZERO));
        }
    }));
}

/// C = alpha · left · right by rows (Gustavson 1978, "Two fast algorithms for
/// sparse matrices: multiplication and permuted transposition"): row i of C is
/// the sum of left_ik times row k of right, over the entries of left's row in
/// their order, and of right's rows in theirs; whoever computes the row adds
/// in that order. Each value of C is rounded once, from alpha times the sum.
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
    with_indices!(task.right, indices => {
        let factors = Factors { task, left_values, indices, right_values };
        scratch.for_each_item(task.items, |set, rows| {
            let Set { hash, array, list, bits, sums } = set;
            let first = rows.start;
            for row in rows {
                let count = task.range(row).len();
                if count == 0 {
                    continue;
                }
                let (list, sums) = (&mut list[..count], &mut sums[..count]);
                // A row of the same columns as the one before, which was not
                // empty either, finds them where that one has left them.
                let repeats = row > first && task.known.is_none() && task.left.repeats(row);
                if task.rule.array(count, task.right.cols) {
                    factors.multiply_row(row, repeats, array, list, bits, sums, alpha, out);
                } else {
                    factors.multiply_row(row, repeats, hash, list, bits, sums, alpha, out);
                }
            }
        });
    });
}

/// The factors with their values.
struct Factors<'a, K, L, J, R> {
    task: &'a Task<'a, K>,
    left_values: &'a [L],
    indices: &'a [J],
    right_values: &'a [R],
}

impl<K: Key, L, J: Index, R> Factors<'_, K, L, J, R> {
    #[allow(clippy::too_many_arguments)]
    fn multiply_row<P: Places<K>, T: Accumulator, Y: Storage<T>>(
        &self,
        row: usize,
        repeats: bool,
        places: &mut P,
        list: &mut [K],
        bits: &mut [u64],
        sums: &mut [T],
        alpha: T,
        out: &Output<K, Y>,
    ) where
        L: Storage<T>,
        R: Storage<T>,
    {
        let range = self.task.range(row);
        let known = self.task.known(&range);
        if !repeats {
            places.begin(list.len());
        }
        if let Some(columns) = known {
            // In ascending order, so that a column's place is its rank in C.
            for &col in columns {
                places.place(col);
            }
        }
        sums.fill(T::ZERO);
        self.add_products(row, places, list, sums);
        check_count(places.count(), list.len());
        match known {
            Some(columns) => {
                // SAFETY: each row is in one item, which one thread takes.
                let values = unsafe { out.row(range, columns) };
                for (value, &sum) in values.iter_mut().zip(&*sums) {
                    *value = Y::round(alpha * sum);
                }
            }
            None => {
                if !repeats {
                    order(list, bits);
                }
                // SAFETY: as above.
                let values = unsafe { out.row(range, list) };
                for (value, &col) in values.iter_mut().zip(&*list) {
                    *value = Y::round(alpha * sums[places.find(col)]);
                }
            }
        }
    }

    fn add_products<P: Places<K>, T: Accumulator>(
        &self,
        row: usize,
        places: &mut P,
        list: &mut [K],
        sums: &mut [T],
    ) where
        L: Storage<T>,
        R: Storage<T>,
    {
        let Task { left, right, .. } = self.task;
        for position in left.range(row) {
            left.fetch_ahead(position, right, self.indices, self.right_values);
            let factor = self.left_values[position].widen();
            let entries = right.range(left.col(position));
            let row = (&self.indices[entries.clone()], right.base, &self.right_values[entries]);
            places.add(row, factor, list, sums);
        }
    }
}

/// A row must have as many distinct columns as symbolic counted, else parts of
/// C would stay unwritten.
fn check_count(found: usize, counted: usize) {
    assert!(found == counted, "the pattern of A or B changed after tarsiaPlan_analyze");
}

//! The two factors as Gustavson's algorithm reads them, the multiplications
//! that each row needs, and the items of rows that threads take.

use std::ops::Range;

use rayon::prelude::*;

use crate::backend::host::operand::{with_rows, Operand};
use crate::backend::host::pool;
use crate::backend::{Buffer, Context};
use crate::error::{Error, Result};
use crate::types::{Element, Index};

/// Entries of the left factor between the one that is multiplied and the one
/// whose row of the right factor is fetched into the cache. Rows of the right
/// factor come in no order, and one is too short to hide the next one's
/// misses: on scattered rows of 4 to 8 entries the fetch halves the time, on
/// stencils it costs 5%. Distances from 4 to 10 are alike.
const AHEAD: usize = 6;

/// Fetches an element into the cache; there may be none at `at`.
#[inline(always)]
fn fetch<T>(slice: &[T], at: usize) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the instruction is in every x86-64 processor, and fetching an
    // address that is not mapped does nothing.
    unsafe {
        use std::arch::x86_64::{_mm_prefetch, _MM_HINT_T0};
        _mm_prefetch::<_MM_HINT_T0>(slice.as_ptr().wrapping_add(at).cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (slice, at);
}

/// Offsets or indices of either width. The factor that is walked row by row is
/// read through it: one predictable branch an entry, and the code exists once
/// instead of once per pair of types.
#[derive(Clone, Copy, Debug)]
pub enum Ints<'a> {
    /// 32 bits.
    I32(&'a [i32]),
    /// 64 bits.
    I64(&'a [i64]),
}

impl Ints<'_> {
    fn len(&self) -> usize {
        match self {
            Ints::I32(slice) => slice.len(),
            Ints::I64(slice) => slice.len(),
        }
    }

    #[inline(always)]
    fn get(&self, at: usize) -> i64 {
        match self {
            Ints::I32(slice) => i64::from(slice[at]),
            Ints::I64(slice) => slice[at],
        }
    }
}

impl<'a> From<&'a [i32]> for Ints<'a> {
    fn from(slice: &'a [i32]) -> Self {
        Ints::I32(slice)
    }
}

impl<'a> From<&'a [i64]> for Ints<'a> {
    fn from(slice: &'a [i64]) -> Self {
        Ints::I64(slice)
    }
}

/// Rows of a factor, without its values. The pattern has been validated.
#[derive(Clone, Copy, Debug)]
pub struct Factor<'a> {
    /// Rows.
    pub rows: usize,
    /// Columns.
    pub cols: usize,
    /// 0 or 1.
    pub base: i64,
    /// `rows + 1` offsets; empty if there are no rows.
    pub offsets: Ints<'a>,
    /// Columns of the entries.
    pub indices: Ints<'a>,
}

impl Factor<'_> {
    /// Positions of a row's entries.
    #[inline(always)]
    pub fn range(&self, row: usize) -> Range<usize> {
        (self.offsets.get(row) - self.base) as usize..(self.offsets.get(row + 1) - self.base) as usize
    }

    /// Column of the entry at a position.
    #[inline(always)]
    pub fn col(&self, position: usize) -> usize {
        (self.indices.get(position) - self.base) as usize
    }

    /// Whether a row has the same columns, in the same order, as the one before:
    /// so do the rows of one node of a mesh with several unknowns a node, and
    /// their rows of a product have the same columns too.
    #[inline]
    pub fn repeats(&self, row: usize) -> bool {
        let (before, this) = (self.range(row - 1), self.range(row));
        before.len() == this.len()
            && match self.indices {
                Ints::I32(slice) => slice[before] == slice[this],
                Ints::I64(slice) => slice[before] == slice[this],
            }
    }

    /// Fetches what entries after the one at `position`, of this row or the
    /// next ones, need of `right`: the offset first, its entries later.
    #[inline(always)]
    pub fn fetch_ahead<J, V>(&self, position: usize, right: &Factor, indices: &[J], values: &[V]) {
        let far = position + 2 * AHEAD;
        if far < self.indices.len() {
            match right.offsets {
                Ints::I32(offsets) => fetch(offsets, self.col(far)),
                Ints::I64(offsets) => fetch(offsets, self.col(far)),
            }
            let start = right.range(self.col(position + AHEAD)).start;
            fetch(indices, start);
            fetch(values, start);
        }
    }
}

/// The rows of an operand and its values; errors name the argument `name`.
pub fn open<'a, V: Element>(operand: &'a Operand<V>, name: &str) -> Result<(Factor<'a>, &'a [V])> {
    with_rows!(operand, name, rows => {
        let factor = Factor {
            rows: rows.rows(),
            cols: rows.cols(),
            base: rows.pattern.base,
            offsets: rows.pattern.offsets.into(),
            indices: rows.pattern.indices.into(),
        };
        Ok((factor, rows.values))
    })
}

/// Runs `$body` with `$indices: &[J]`, the columns of a factor, once per type.
macro_rules! with_indices {
    ($factor:expr, $indices:ident => $body:expr) => {
        match $factor.indices {
            $crate::backend::host::spgemm::rows::Ints::I32($indices) => $body,
            $crate::backend::host::spgemm::rows::Ints::I64($indices) => $body,
        }
    };
}
pub(super) use with_indices;

/// Calls `f` with the indices of each row of `right` that the entries of one
/// row of `left` meet, in their order; `indices` are `right`'s.
#[inline(always)]
pub fn walk<J: Index>(left: &Factor, row: usize, right: &Factor, indices: &[J], mut f: impl FnMut(&[J])) {
    let no_values: [u8; 0] = [];
    for position in left.range(row) {
        left.fetch_ahead(position, right, indices, &no_values);
        f(&indices[right.range(left.col(position))]);
    }
}

/// Rows that one parallel task counts multiplications for.
const ROWS: usize = 1024;

/// Multiplications that each row of left · right needs, and their sum.
pub fn count_products(cx: &Context, left: &Factor, right: &Factor) -> Result<(Buffer<i64>, i64)> {
    let mut products = Buffer::<i64>::zeroed(&cx.allocator, left.rows)?;
    let count_row = |row: usize| {
        let lengths = left.range(row).map(|position| right.range(left.col(position)).len());
        checked_sum(lengths)
    };
    let total = pool::run(|| {
        let chunks = products.par_chunks_mut(ROWS).enumerate();
        let sums = chunks.map(|(chunk, counts)| {
            for (i, count) in counts.iter_mut().enumerate() {
                *count = count_row(chunk * ROWS + i)?;
            }
            checked_sum(counts.iter().map(|&count| count as usize))
        });
        sums.try_reduce(|| 0, i64::checked_add)
    });
    match total {
        Some(total) => Ok((products, total)),
        None => Err(Error::unsupported("A, B: the product needs more than 2^63 − 1 multiplications")),
    }
}

fn checked_sum(mut terms: impl Iterator<Item = usize>) -> Option<i64> {
    terms.try_fold(0i64, |sum, term| sum.checked_add(i64::try_from(term).ok()?))
}

/// Work that an item has at the least: some 20 µs, against the microsecond
/// that taking an item costs at the worst.
const ITEM_WORK: i64 = 1 << 14;

/// Items at the most: enough to level the load of some hundred threads.
const ITEMS: i64 = 4096;

/// Work of a row besides its multiplications (begin, sort, write), in
/// multiplications, so that empty rows are shared out as well.
const ROW_WORK: i64 = 8;

/// Cuts the rows into items of about the same work; item i is the rows
/// `items[i]..items[i + 1]`. The cuts depend on the matrices alone.
pub fn cut_items(cx: &Context, products: &[i64]) -> Result<Buffer<i64>> {
    let work = |count: i64| count.saturating_add(ROW_WORK);
    let total = products.iter().fold(0i64, |sum, &count| sum.saturating_add(work(count)));
    let target = ITEM_WORK.max(total / ITEMS);
    // Calls `end` with the last row + 1 of each item.
    let cut = |end: &mut dyn FnMut(usize)| {
        let mut item = 0i64;
        for (row, &count) in products.iter().enumerate() {
            item = item.saturating_add(work(count));
            if item >= target || row + 1 == products.len() {
                end(row + 1);
                item = 0;
            }
        }
    };
    let mut count = 0;
    cut(&mut |_| count += 1);
    let mut items = Buffer::<i64>::zeroed(&cx.allocator, count + 1)?;
    let mut at = 0;
    cut(&mut |row| {
        at += 1;
        items[at] = row as i64;
    });
    Ok(items)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_that_overflow_are_noticed() {
        assert_eq!(checked_sum([1, 2, 3].into_iter()), Some(6));
        assert_eq!(checked_sum([i64::MAX as usize, 1].into_iter()), None);
        assert_eq!(checked_sum([usize::MAX].into_iter()), None);
    }
}

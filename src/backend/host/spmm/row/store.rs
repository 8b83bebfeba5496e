//! Stores of sums to C: blocks of rows, past the caches where C is large, tiles of a C whose columns are contiguous, and
//! rows that were divided.

use std::ops::Range;

use super::{Block, Masks, RowProduct};
use crate::backend::host::spmm::{Old, Opened};
use crate::backend::host::vector::Vector;
use crate::support::Combo;
use crate::types::{Accumulator, Storage};

impl<C: Combo, X: Storage<C::Acc>> RowProduct<'_, C, X> {
    /// Writes a block of a row of C.
    ///
    /// # Safety
    /// The requirements of [`Self::block`].
    #[inline(always)]
    pub(super) unsafe fn store<V: Vector<C::Acc>, const VECTORS: usize, const MASKED: bool>(
        &self,
        row: usize,
        block: Block,
        alpha: V,
        sums: &[V; VECTORS],
    ) {
        if !self.overwrites {
            return self.store_sums(row, block.first, block.of(sums));
        }
        let row = self.order.map_or(row, |order| order[row] as usize);
        let at = row * self.opened.c_strides.0 + block.first;
        // SAFETY: an order has each row once; only one item has this row, only this call these columns of it,
        // and C is borrowed until all items are done. C has the type of the sums. If it is streamed, vectors are whole
        // lines of it, or blocks begin at multiples of their vectors, since those before had the same or wider ones.
        unsafe {
            let to = self.opened.c.part(at..at + block.columns).as_mut_ptr().cast::<C::Acc>();
            let (to, masks) = (to.wrapping_sub(block.skipped), block.masks::<C::Acc, V, VECTORS>());
            store_vectors::<_, _, VECTORS, MASKED>(sums, alpha, to, masks, self.streams);
        }
    }

    /// Writes a part of a row of C.
    #[inline(always)]
    fn store_sums(&self, row: usize, first: usize, sums: &[C::Acc]) {
        let Opened { c, c_strides: (row_stride, col_stride), old, scalars, .. } = self.opened;
        let row = self.order.map_or(row, |order| order[row] as usize);
        // A C of one row may be contiguous although its old values are not.
        if *col_stride == 1 && old.is_none_or(|old| old.strides.1 == 1) {
            let at = row * row_stride + first;
            // SAFETY: as in `store`.
            let c = unsafe { c.part(at..at + sums.len()) };
            if let Some(Old { values, strides }) = old {
                c.copy_from_slice(&values[row * strides.0 + first..][..sums.len()]);
            }
            for (c, sum) in c.iter_mut().zip(sums) {
                scalars.store(*sum, c);
            }
        } else {
            for (lane, sum) in sums.iter().enumerate() {
                self.opened.store(row, first + lane, *sum);
            }
        }
    }

    /// Writes some rows of a C whose columns are contiguous, column by column: a cache line at one time,
    /// where rows are in their own order.
    #[inline(always)]
    pub(super) fn store_tile<V: Vector<C::Acc>, const VECTORS: usize>(
        &self,
        row: usize,
        first: usize,
        tile: &[[V; VECTORS]],
    ) {
        let Opened { c, c_strides: (row_stride, col_stride), old, scalars, .. } = self.opened;
        for lane in 0..VECTORS * V::LANES {
            if self.order.is_none() && old.is_none() && *row_stride == 1 {
                let at = row + (first + lane) * col_stride;
                // SAFETY: as in `store`.
                let c = unsafe { c.part(at..at + tile.len()) };
                for (at, c) in c.iter_mut().enumerate() {
                    scalars.store(V::as_slice(&tile[at])[lane], c);
                }
            } else {
                for (at, sums) in tile.iter().enumerate() {
                    let row = self.order.map_or(row + at, |order| order[row + at] as usize);
                    self.opened.store(row, first + lane, V::as_slice(sums)[lane]);
                }
            }
        }
    }

    /// Adds up the partial sums of a row that was divided, and writes the row.
    pub(super) fn long_row(&self, row: usize, slots: Range<usize>) {
        let n = self.opened.n;
        // SAFETY: all items are done, and no other row has these slots.
        let sums = unsafe { self.opened.scratch.part(slots.start * n..slots.end * n) };
        let (sums, others) = sums.split_at_mut(n);
        for other in others.chunks_exact(n) {
            for (sum, other) in sums.iter_mut().zip(other) {
                *sum += *other;
            }
        }
        self.store_sums(row, 0, sums);
    }
}

/// Stores alpha times sums, past the caches if that is said; vectors with masks are stored as they are.
///
/// # Safety
/// The processor has the vectors, and `to` has room for them, or for the lanes of the masks; if they are streamed, it is a
/// multiple of a vector's bytes.
#[inline(always)]
pub(super) unsafe fn store_vectors<T: Accumulator, V: Vector<T>, const VECTORS: usize, const MASKED: bool>(
    sums: &[V; VECTORS],
    alpha: V,
    to: *mut T,
    masks: Masks,
    streams: bool,
) {
    for (vector, sum) in sums.iter().enumerate() {
        // SAFETY: the caller's promise.
        unsafe {
            let (sum, to) = (alpha.times(*sum), to.wrapping_add(vector * V::LANES));
            if MASKED && vector == 0 {
                sum.store_lanes(to, masks.first);
            } else if MASKED && vector + 1 == VECTORS {
                sum.store_lanes(to, masks.last);
            } else if streams {
                sum.stream(to);
            } else {
                sum.store(to);
            }
        }
    }
}

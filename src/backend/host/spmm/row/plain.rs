//! Rows of a matrix whose offsets and columns have 32 bits, where rows of C are in their own order and only written:
//! the loops that most products take. Columns are the user's, which are checked, or the plan's own.

use std::ops::Range;

use super::store::store_vectors;
use super::{
    adds_four, outside, prefetch_part, total, Block, Masks, RowProduct, AHEAD, CHECKED, COLUMNS_AHEAD, FOUR,
    NARROW, VALUES_AHEAD,
};
use crate::backend::host::columns::ColumnIndex;
use crate::backend::host::operand::Ints;
use crate::backend::host::vector::{prefetch, Vector};
use crate::support::Combo;
use crate::types::{Accumulator, Storage};

impl<'a, C: Combo, X: Storage<C::Acc>> RowProduct<'a, C, X> {
    /// Returns offsets and columns for [`Self::plain_rows`], if these are of 32 bits and rows of C are in their
    /// own order and only written.
    #[inline(always)]
    pub(super) fn plain_pattern(&self) -> Option<(&'a [i32], &'a [i32])> {
        match (self.rows.offsets, self.rows.indices) {
            (Ints::I32(offsets), Ints::I32(columns))
                if self.overwrites && self.order.is_none() && i32::try_from(self.rows.cols).is_ok() =>
            {
                Some((offsets, columns))
            }
            _ => None,
        }
    }

    /// Returns whether blocks of so many vectors have these loops.
    pub(super) const fn has_plain_rows<V: Vector<C::Acc>, const VECTORS: usize, const MASKED: bool>() -> bool
    {
        // A row of as many columns has one vector more where the first and last ones are masked.
        VECTORS <= NARROW + MASKED as usize || adds_four::<V, C::Acc>(VECTORS)
    }

    /// Computes these columns of whole rows, with the sums of [`RowProduct::block`] in the same order, and fewer
    /// instructions: with one vector and seven entries a row, those for the row itself and not for its entries took two
    /// thirds of the time.
    ///
    /// # Safety
    /// The requirements of [`Self::block`].
    #[inline(always)]
    pub(super) unsafe fn plain_rows<
        V: Vector<C::Acc>,
        const VECTORS: usize,
        const CHAINS: usize,
        const MASKED: bool,
        J: ColumnIndex,
    >(
        &self,
        rows: Range<usize>,
        (offsets, columns): (&[i32], &[J]),
        block: Block,
    ) {
        if rows.is_empty() {
            return;
        }
        let (base, stride) = (self.rows.base, self.opened.c_strides.0);
        let (values, streams) = (self.values, self.streams);
        let nnz = columns.len().min(values.len());
        // Row `column` of B, where columns count from their base.
        let row_bytes = self.b_strides.0.wrapping_mul(size_of::<X>());
        let before = (J::base(base) as usize).wrapping_mul(row_bytes);
        let b = self.part_of_b(block).wrapping_byte_sub(before);
        // Said so that the compiler leaves the loop out: it took a fifth of the time of short rows.
        let blocks = if adds_four::<V, C::Acc>(VECTORS) { block.blocks } else { 1 };
        let masks = block.masks::<C::Acc, V, VECTORS>();
        // SAFETY: only this item has these rows of C.
        let mut c = unsafe {
            let end = (rows.end - 1) * stride + block.first + blocks * block.columns;
            let c = self.opened.c.part(rows.start * stride + block.first..end);
            c.as_mut_ptr().cast::<C::Acc>().wrapping_sub(block.skipped)
        };
        // SAFETY: the caller's promise.
        let alpha = unsafe { V::splat(self.opened.scalars.alpha()) };
        let offsets = &offsets[rows.start..=rows.end];
        let last = ((i64::from(offsets[rows.len()]) - base) as usize).min(nnz);
        let mut end = (i64::from(offsets[0]) - base) as usize;
        let mut checked = end;
        for &offset in &offsets[1..] {
            let entry = end;
            end = (i64::from(offset) - base) as usize;
            if J::IS_CHECKED && VECTORS == 1 && end > checked {
                let after = last.min(checked.saturating_add(CHECKED)).max(end);
                if after > nnz || !J::are_inside(&columns[checked..after], base, self.rows.cols) {
                    outside();
                }
                checked = after;
            }
            if entry > end || end > nnz {
                outside();
            }
            // SAFETY: the arrays have these entries, and `nnz` is no more than there are columns; with one vector the
            // columns have been checked, or they are the plan's own. C has the row, and has the type of the sums; streamed
            // rows are as in `store`. The rest is the caller's promise.
            unsafe {
                let (values, own) = (values.get_unchecked(entry..end), columns.get_unchecked(entry..end));
                let ahead = columns.get_unchecked(nnz.min(entry + AHEAD)..);
                for part in 0..blocks {
                    let at = part * VECTORS * V::LANES;
                    let b = b.wrapping_add(at);
                    let sums = self.plain_sums::<V, VECTORS, CHAINS, MASKED, J>(values, own, ahead, b, masks);
                    store_vectors::<_, _, VECTORS, MASKED>(&sums, alpha, c.wrapping_add(at), masks, streams);
                }
            }
            // It is not used behind the last row.
            c = c.wrapping_add(stride);
        }
    }

    /// Returns the sums over these entries of a row; `b` is as in [`Self::add_column`], and `ahead` has the columns from
    /// [`AHEAD`] entries behind the first one on. It goes along by pointers, which takes fewer instructions than
    /// positions.
    ///
    /// # Safety
    /// The requirements of [`Self::add_column`].
    #[inline(always)]
    unsafe fn plain_sums<
        V: Vector<C::Acc>,
        const VECTORS: usize,
        const CHAINS: usize,
        const MASKED: bool,
        J: ColumnIndex,
    >(
        &self,
        values: &[C::A],
        columns: &[J],
        ahead: &[J],
        b: *const X,
        masks: Masks,
    ) -> [V; VECTORS] {
        // Entries of an iteration, a multiple of the chains, and of those for which prefetches are made. With two vectors
        // two took less time for short rows, with four vectors four for long rows.
        let step = if VECTORS == 2 || VECTORS == 3 { 2 } else { 4 };
        const { assert!(2 % CHAINS == 0 || (4 % CHAINS == 0 && VECTORS != 2 && VECTORS != 3)) };
        let (mut value, mut column, mut left) = (values.as_ptr(), columns.as_ptr(), values.len());
        let prefetches = self.prefetches_a;
        let row_bytes = self.b_strides.0 * size_of::<X>();
        // SAFETY: pointers stay within the entries, or just behind them; the rest is the caller's promise.
        unsafe {
            let mut sums = [[V::splat(C::Acc::ZERO); VECTORS]; CHAINS];
            while left >= step {
                if prefetches {
                    prefetch(value.wrapping_byte_add(VALUES_AHEAD));
                    prefetch(column.wrapping_byte_add(COLUMNS_AHEAD));
                }
                if adds_four::<V, C::Acc>(VECTORS) {
                    let at = values.len() - left;
                    if self.prefetches && at + FOUR <= ahead.len() {
                        for &column in &ahead[at..at + FOUR] {
                            let row = column.index().wrapping_mul(row_bytes);
                            prefetch_part::<V, C::Acc, X>(b.wrapping_byte_add(row), VECTORS);
                        }
                    }
                    let columns: [J; FOUR] = column.cast::<[J; FOUR]>().read();
                    if !columns.iter().all(|&column| self.is_inside(column)) {
                        outside();
                    }
                    let rows = columns.map(J::index);
                    self.add_four(&mut sums[0], value, b, rows);
                } else {
                    for at in 0..step {
                        let (value, column) = (*value.add(at), *column.add(at));
                        let sums = &mut sums[at % CHAINS];
                        self.add_column::<V, VECTORS, MASKED, J>(sums, value, b, column, masks);
                    }
                }
                (value, column) = (value.add(step), column.add(step));
                left -= step;
            }
            for at in 0..step - 1 {
                if at < left {
                    let (value, column) = (*value.add(at), *column.add(at));
                    let sums = &mut sums[at % CHAINS];
                    self.add_column::<V, VECTORS, MASKED, J>(sums, value, b, column, masks);
                }
            }
            total(sums)
        }
    }

    /// Adds `value` times a part of row `column` of B; `b` is that part of the row that has the number 0. Blocks of several
    /// vectors check the column here; for those of one it takes fewer instructions to check many at once, which their
    /// callers do.
    ///
    /// # Safety
    /// The requirements of [`Self::block`], and with one vector B has the row, as it has all rows that the plan's own columns
    /// name.
    #[inline(always)]
    unsafe fn add_column<V: Vector<C::Acc>, const VECTORS: usize, const MASKED: bool, J: ColumnIndex>(
        &self,
        sums: &mut [V; VECTORS],
        value: C::A,
        b: *const X,
        column: J,
        masks: Masks,
    ) {
        if VECTORS > 1 && !self.is_inside(column) {
            outside();
        }
        // SAFETY: B has the row; the rest is the caller's promise.
        unsafe { self.add_row::<V, VECTORS, MASKED>(sums, value, b, column.index(), masks) };
    }

    /// Returns whether a column is inside of the matrix.
    #[inline(always)]
    fn is_inside<J: ColumnIndex>(&self, column: J) -> bool {
        J::are_inside(&[column], self.rows.base, self.rows.cols)
    }
}

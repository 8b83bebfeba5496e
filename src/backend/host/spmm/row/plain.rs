//! Rows of a matrix whose offsets and columns have 32 bits, where rows of C are in their own order and only written:
//! the loops that most products take. Columns are the user's, which are checked, or the plan's own.

use std::marker::PhantomData;
use std::ops::Range;

use super::blocks::{adds_four, prefetch_part, total, Block, Masks, AHEAD, FOUR};
use super::store::store_vectors;
use super::{outside, RowProduct};
use crate::backend::host::columns::ColumnIndex;
use crate::backend::host::operand::{Ints, Shared};
use crate::backend::host::vector::{prefetch, run_compiled, Vector, VectorCode};
use crate::select::spmm::own_columns::MOST_ROW_BYTES;
use crate::types::{Accumulator, Storage};

/// Column indices that are checked together, or those of a row that has more.
const CHECKED: usize = 256;
/// Bytes by which prefetches of the values of A are ahead.
const VALUES_AHEAD: usize = 1024;
/// Bytes by which prefetches of the columns of A are ahead: where blocks have one vector the check reads them first.
const COLUMNS_AHEAD: usize = 2048;
/// Most vectors of a block whose rows have a loop of their own, but for AVX2, where all have.
const NARROW: usize = 4;

/// The arrays of a product whose offsets have 32 bits and whose rows of C are in their own order and only written.
#[derive(Clone, Copy)]
pub(super) struct Plain<'a, T, J> {
    offsets: &'a [i32],
    columns: &'a [J],
    c: &'a Shared<T>,
}

impl<'a, T> Plain<'a, T, i32> {
    /// Returns the arrays with other columns, those of the plan's own.
    #[inline(always)]
    pub fn with<J>(self, columns: &'a [J]) -> Plain<'a, T, J> {
        Plain { offsets: self.offsets, columns, c: self.c }
    }
}

/// [`RowProduct::plain_rows`] as code that is compiled for the vectors.
struct PlainCode<'p, T, V, J, const VECTORS: usize, const CHAINS: usize, const MASKED: bool> {
    rows: Range<usize>,
    plain: Plain<'p, T, J>,
    block: Block,
    vectors: PhantomData<V>,
}

impl<A, X, T, V, J, const VECTORS: usize, const CHAINS: usize, const MASKED: bool>
    VectorCode<RowProduct<'_, A, X, T>> for PlainCode<'_, T, V, J, VECTORS, CHAINS, MASKED>
where
    A: Storage<T>,
    X: Storage<T>,
    T: Accumulator,
    V: Vector<T>,
    J: ColumnIndex,
{
    #[inline(always)]
    unsafe fn run(self, product: &RowProduct<'_, A, X, T>) {
        // SAFETY: the caller's promise.
        unsafe { product.plain_rows::<V, VECTORS, CHAINS, MASKED, J>(self.rows, self.plain, self.block) };
    }
}

impl<'a, A: Storage<T>, X: Storage<T>, T: Accumulator> RowProduct<'a, A, X, T> {
    /// Returns the arrays for [`Self::plain_rows`], with the user's columns, if offsets and columns have 32 bits and rows of
    /// C are in their own order and only written.
    #[inline(always)]
    pub(super) fn plain(&self) -> Option<Plain<'a, T, i32>> {
        match (self.rows.offsets, self.rows.indices, self.output.in_order()) {
            (Ints::I32(offsets), Ints::I32(columns), Some(c)) if i32::try_from(self.rows.cols).is_ok() => {
                Some(Plain { offsets, columns, c })
            }
            _ => None,
        }
    }

    /// Returns whether blocks of so many vectors are compiled for columns of the plan's own: those of the products for
    /// which plans have them.
    pub(super) const fn may_read_own_columns<V: Vector<T>, const VECTORS: usize, const MASKED: bool>() -> bool
    {
        let is_converted = size_of::<X>() != size_of::<T>();
        // A row of as many columns has one vector more where the first and last ones are masked.
        let bytes = (VECTORS - MASKED as usize) * V::LANES * size_of::<T>();
        let is_narrow = bytes <= MOST_ROW_BYTES && Self::has_plain_rows::<V, VECTORS, MASKED>();
        is_narrow && !is_converted && !T::TYPE.is_complex()
    }

    /// Calls [`Self::plain_rows`], compiled for the vectors.
    ///
    /// # Safety
    /// The requirements of [`Self::plain_rows`], and on x86-64 the processor has AVX2.
    #[inline(always)]
    pub(super) unsafe fn run_plain<
        V: Vector<T>,
        const VECTORS: usize,
        const CHAINS: usize,
        const MASKED: bool,
        J: ColumnIndex,
    >(
        &self,
        rows: Range<usize>,
        plain: Plain<'_, T, J>,
        block: Block,
    ) {
        let vectors = PhantomData;
        let code = PlainCode::<T, V, J, VECTORS, CHAINS, MASKED> { rows, plain, block, vectors };
        // SAFETY: the caller's promise.
        unsafe { run_compiled::<T, V, _>(self, code) };
    }

    /// Returns whether blocks of so many vectors have these loops.
    pub(super) const fn has_plain_rows<V: Vector<T>, const VECTORS: usize, const MASKED: bool>() -> bool {
        // A row of as many columns has one vector more where the first and last ones are masked.
        VECTORS <= NARROW + MASKED as usize || adds_four::<V, T>(VECTORS)
    }

    /// Computes these columns of whole rows, with the sums of [`RowProduct::block`] in the same order, and fewer
    /// instructions: with one vector and seven entries a row, those for the row itself and not for its entries took two
    /// thirds of the time.
    ///
    /// # Safety
    /// The requirements of [`Self::block`].
    #[inline(always)]
    pub(super) unsafe fn plain_rows<
        V: Vector<T>,
        const VECTORS: usize,
        const CHAINS: usize,
        const MASKED: bool,
        J: ColumnIndex,
    >(
        &self,
        rows: Range<usize>,
        plain: Plain<'_, T, J>,
        block: Block,
    ) {
        if rows.is_empty() {
            return;
        }
        let Plain { offsets, columns, c } = plain;
        let (base, stride) = (self.rows.base, self.output.strides.0);
        let (values, streams) = (self.values, self.streams);
        let nnz = columns.len().min(values.len());
        // Row `column` of B, where columns count from their base.
        let row_bytes = self.b_strides.0.wrapping_mul(size_of::<X>());
        let before = (J::base(base) as usize).wrapping_mul(row_bytes);
        let b = self.part_of_b(block).wrapping_byte_sub(before);
        // Said so that the compiler leaves the loop out: it took a fifth of the time of short rows.
        let blocks = if adds_four::<V, T>(VECTORS) { block.blocks } else { 1 };
        let masks = block.masks::<T, V, VECTORS>();
        // SAFETY: only this item has these rows of C.
        let mut c = unsafe {
            let end = (rows.end - 1) * stride + block.first + blocks * block.columns;
            let c = c.part(rows.start * stride + block.first..end);
            c.as_mut_ptr().wrapping_sub(block.skipped)
        };
        // SAFETY: the caller's promise.
        let alpha = unsafe { V::splat(self.output.alpha) };
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
            // columns have been checked, or they are the plan's own. C has the row; streamed rows
            // are as in `block`. The rest is the caller's promise.
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
        V: Vector<T>,
        const VECTORS: usize,
        const CHAINS: usize,
        const MASKED: bool,
        J: ColumnIndex,
    >(
        &self,
        values: &[A],
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
            let mut sums = [[V::splat(T::ZERO); VECTORS]; CHAINS];
            while left >= step {
                if prefetches {
                    prefetch(value.wrapping_byte_add(VALUES_AHEAD));
                    prefetch(column.wrapping_byte_add(COLUMNS_AHEAD));
                }
                if adds_four::<V, T>(VECTORS) {
                    let at = values.len() - left;
                    if self.prefetches && at + FOUR <= ahead.len() {
                        for &column in &ahead[at..at + FOUR] {
                            let row = column.index().wrapping_mul(row_bytes);
                            prefetch_part::<V, T, X>(b.wrapping_byte_add(row), VECTORS);
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
    unsafe fn add_column<V: Vector<T>, const VECTORS: usize, const MASKED: bool, J: ColumnIndex>(
        &self,
        sums: &mut [V; VECTORS],
        value: A,
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

//! Blocks that read columns of the plan's own, which need no check. They are functions of their own, so that the loops
//! which check columns keep their registers.

use std::ops::Range;

use super::{Block, RowProduct};
use crate::backend::host::columns::{ColumnIndex, Columns};
use crate::backend::host::schedule::Work;
use crate::backend::host::vector::Vector;
#[cfg(target_arch = "x86_64")]
use crate::backend::host::vector::Width;
use crate::select::spmm::own_columns::MOST_ROW_BYTES;
use crate::support::Combo;
use crate::types::{Element, Storage};

impl<C: Combo, X: Storage<C::Acc>> RowProduct<'_, C, X> {
    /// Computes these columns of an item if it has whole rows and the plan has columns for it; returns whether it did.
    ///
    /// # Safety
    /// The requirements of [`Self::block`].
    #[inline(always)]
    pub(super) unsafe fn own_item<
        V: Vector<C::Acc>,
        const VECTORS: usize,
        const CHAINS: usize,
        const MASKED: bool,
    >(
        &self,
        work: &Work,
        block: Block,
    ) -> bool {
        if const { !Self::may_read_own_columns::<V, VECTORS, MASKED>() } {
            return false;
        }
        let (Work::Rows(rows), Some(own), Some((offsets, _))) =
            (work, self.own_columns, self.plain_pattern())
        else {
            return false;
        };
        // SAFETY: the caller's promise. The plan's own columns are less than their matrix's number of columns, which
        // `multiply_by` has compared with the rows of B.
        unsafe {
            match own.columns() {
                Columns::Narrow(columns) => {
                    let pattern = (offsets, columns);
                    self.own_rows::<V, VECTORS, CHAINS, MASKED, u16>(rows.clone(), pattern, block);
                }
                Columns::Wide(columns) => {
                    let pattern = (offsets, columns);
                    self.own_rows::<V, VECTORS, CHAINS, MASKED, u32>(rows.clone(), pattern, block);
                }
            }
        }
        true
    }

    /// Returns whether blocks of so many vectors are compiled for columns of the plan's own: those of the products for
    /// which plans have them.
    const fn may_read_own_columns<V: Vector<C::Acc>, const VECTORS: usize, const MASKED: bool>() -> bool {
        let is_converted = size_of::<X>() != size_of::<C::Acc>();
        // A row of as many columns has one vector more where the first and last ones are masked.
        let bytes = (VECTORS - MASKED as usize) * V::LANES * size_of::<C::Acc>();
        let is_narrow = bytes <= MOST_ROW_BYTES && Self::has_plain_rows::<V, VECTORS, MASKED>();
        is_narrow && !is_converted && !C::Acc::TYPE.is_complex()
    }

    /// Calls [`Self::plain_rows`], compiled for the processor.
    ///
    /// # Safety
    /// The requirements of [`Self::block`].
    unsafe fn own_rows<
        V: Vector<C::Acc>,
        const VECTORS: usize,
        const CHAINS: usize,
        const MASKED: bool,
        J: ColumnIndex,
    >(
        &self,
        rows: Range<usize>,
        pattern: (&[i32], &[J]),
        block: Block,
    ) {
        // SAFETY: the caller's promise.
        unsafe {
            match (V::WIDTH, self.vectors) {
                #[cfg(avx512)]
                (Width::Zmm, _) => {
                    self.own_rows_avx512::<V, VECTORS, CHAINS, MASKED, J>(rows, pattern, block)
                }
                #[cfg(target_arch = "x86_64")]
                (width, best) if width == Width::Ymm || best >= Width::Ymm => {
                    self.own_rows_avx2::<V, VECTORS, CHAINS, MASKED, J>(rows, pattern, block);
                }
                _ => self.plain_rows::<V, VECTORS, CHAINS, MASKED, J>(rows, pattern, block),
            }
        }
    }

    /// # Safety
    /// The processor has these features.
    #[cfg(avx512)]
    #[target_feature(enable = "avx512f,avx512vl,avx512bw,avx512dq,avx2,fma,f16c")]
    unsafe fn own_rows_avx512<
        V: Vector<C::Acc>,
        const VECTORS: usize,
        const CHAINS: usize,
        const MASKED: bool,
        J: ColumnIndex,
    >(
        &self,
        rows: Range<usize>,
        pattern: (&[i32], &[J]),
        block: Block,
    ) {
        // SAFETY: the caller's promise.
        unsafe { self.plain_rows::<V, VECTORS, CHAINS, MASKED, J>(rows, pattern, block) };
    }

    /// # Safety
    /// The processor has these features.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn own_rows_avx2<
        V: Vector<C::Acc>,
        const VECTORS: usize,
        const CHAINS: usize,
        const MASKED: bool,
        J: ColumnIndex,
    >(
        &self,
        rows: Range<usize>,
        pattern: (&[i32], &[J]),
        block: Block,
    ) {
        // SAFETY: the caller's promise.
        unsafe { self.plain_rows::<V, VECTORS, CHAINS, MASKED, J>(rows, pattern, block) };
    }
}

//! Copies of op(B) in the workspace, in rows of whole packs of 16 bytes.

use super::super::kernels::pack_kernel;
use super::super::{copy_b, saturating_product, Strides};
use super::{DenseOperand, PACK_ROWS, THREADS};
use crate::backend::cuda::device::Device;
use crate::backend::cuda::launch::{blocks_of_grid, launch, Kernel};
use crate::backend::cuda::memory;
use crate::error::Result;
use crate::memory::Context;
use crate::select::spmm::copies::PACK;
use crate::types::{Address, DataType};

/// Kernels that copy op(B) into padded rows.
pub(super) struct Packs {
    /// Kernel for a B by rows, which adds zeros behind each row.
    rows: Kernel,
    /// Kernel for a B by columns.
    columns: Kernel,
    /// Bytes of an element.
    size: usize,
}

/// Number of elements of a row of `n`, padded to whole packs.
pub(super) fn padded(n: usize, size: usize) -> usize {
    let in_pack = PACK / size;
    n.div_ceil(in_pack).saturating_mul(in_pack)
}

impl Packs {
    pub(super) fn load(device: &Device, value_type: DataType) -> Result<Self> {
        let size = value_type.size();
        Ok(Packs {
            rows: PACK_ROWS.load(device, (8 * size,))?,
            columns: pack_kernel(device, value_type)?,
            size,
        })
    }

    /// Bytes of a copy of k × n elements.
    pub(super) fn bytes(&self, k: usize, n: usize) -> usize {
        saturating_product(&[k, padded(n, self.size), self.size])
    }

    /// Returns whether all rows of B begin at whole packs already.
    pub(super) fn has(&self, b: DenseOperand) -> bool {
        let row_bytes = (b.strides.row as usize).saturating_mul(self.size);
        b.is_by_rows() && b.at.is_aligned(PACK) && row_bytes % PACK == 0
    }

    /// Copies B, which is k × n, to `to`, as `padded_k` rows; the elements behind the last column and row become
    /// 0.
    pub(super) fn copy(
        &self,
        cx: &Context,
        b: DenseOperand,
        (k, padded_k, n): (usize, usize, usize),
        to: Address,
    ) -> Result<DenseOperand> {
        let ld = padded(n, self.size);
        if b.is_by_rows() {
            let packs = saturating_product(&[k, ld / (PACK / self.size)]);
            let blocks = blocks_of_grid(
                packs.div_ceil(THREADS as usize),
                "B: it has more elements than one launch can copy",
            )?;
            // SAFETY: B is as its descriptor says; the workspace holds the copy.
            unsafe {
                launch!(self.rows, blocks, THREADS, 0, cx.stream;
                    b.at, b.strides.row, to, k as i64, n as i64, ld as i64)?;
            }
        } else {
            if ld > n {
                memory::zero(to, self.bytes(k, n), cx.stream)?;
            }
            let from = (b.at, b.strides, self.size);
            copy_b(cx, &self.columns, from, (k as i64, n), (to, ld as i64), 0, Address::NULL)?;
        }
        if padded_k > k {
            memory::zero(to.offset(self.bytes(k, n)), self.bytes(padded_k - k, n), cx.stream)?;
        }
        Ok(DenseOperand { at: to, strides: Strides { row: ld as i64, col: 1 }, ..b })
    }
}

//! Products without a plan that read and write columns of B and C where they are (kernels/spmm/columns.cu). Whether
//! they do is decided on the device, by a kernel in front of the product.

use super::{Offsets, Strides};
use crate::backend::cuda::device::{Device, DeviceCall, Relaxed};
use crate::backend::cuda::launch::{blocks_of_grid, launch, Kernel};
use crate::backend::cuda::layouts::same_layout;
use crate::backend::cuda::module::kinds::kernel_kinds;
use crate::backend::cuda::operand::Rows;
use crate::backend::cuda::scalars::Scalar;
use crate::backend::cuda::types_name;
use crate::error::Result;
use crate::matrix::DenseMatrix;
use crate::problem::SpmmProblem;
use crate::select::spmm::columns::{blocks_of_columns, deciding_blocks, ColumnLimits, ROWS};
use crate::support::Types;
use crate::types::{Address, IndexType, Order};

kernel_kinds! { "spmm/columns" {
    COLUMNS(String, IndexType) = "columns"
        for [["f64", "f32", "f32f64", "f16", "f16f32", "bf16", "bf16f32"], index_types()];
    DECIDE(IndexType) = "decide" for [index_types()];
} }

same_layout!(ColumnLimits = "spmm/columns.cu ColumnLimits" { longest, sectors });

/// Threads of a block of `decide`.
const DECIDING: u32 = 256;

/// The two kernels for one combination of types.
pub(super) struct ColumnKernels {
    multiply: Kernel,
    decide: Kernel,
}

impl ColumnKernels {
    pub(super) fn load(device: &Device, types: Types, width: IndexType) -> Result<Self> {
        // The call may come during a capture.
        let _relaxed = Relaxed::enter();
        Ok(ColumnKernels {
            multiply: COLUMNS.load(device, (types_name(types), width))?,
            decide: DECIDE.load(device, (width,))?,
        })
    }

    /// Enqueues the kernel that decides, and the product, which ends at once if the decision is 0. `state` are the words
    /// of the handle's counters that make lists; at `lengths` are the lengths of two lists, and behind them the
    /// decision, 1 or 0, whose address is returned.
    pub(super) fn enqueue(
        &self,
        cx: &DeviceCall<'_>,
        rows: &Rows,
        limits: ColumnLimits,
        (b, c): (&DenseMatrix, &DenseMatrix),
        (alpha, beta): (Scalar, Scalar),
        (state, lengths): (Address, Address),
    ) -> Result<Address> {
        let decision = lengths.offset(2 * size_of::<i64>());
        let offsets = Offsets { pointer: rows.offsets, wide: rows.offset_type.wide() };
        let multiprocessors = i64::from(cx.device.properties().multiprocessors);
        let deciding = deciding_blocks(rows.rows, multiprocessors);
        let blocks =
            blocks_of_grid((rows.rows + ROWS - 1) / ROWS, "A: it has more rows than one launch can take")?;
        let n = c.cols as usize;
        let size = b.value_type.size() as i64;
        // SAFETY: a caller without a plan promises the pattern; B and C are as their descriptors say; the workspace
        // has room for the lengths, and the handle lends its counters to one call at a time.
        unsafe {
            launch!(&self.decide, deciding, DECIDING, 0, cx.stream;
                offsets, rows.indices, rows.base, rows.rows, size, limits, state, lengths)?;
            launch!(&self.multiply, (blocks, blocks_of_columns(rows.rows, n, multiprocessors) as u32), ROWS as u32, 0, cx.stream;
                offsets, rows.indices, rows.values, rows.base, rows.rows, b.values, b.ld, c.values, c.ld, n as i64,
                alpha, beta, decision)?;
        }
        Ok(decision)
    }
}

/// Returns whether columns of op(B) and of C are contiguous.
pub(super) fn has_columns(problem: &SpmmProblem) -> bool {
    let b = Strides::new(problem.b_order, problem.op_b.transposes(), 0);
    problem.c_order == Order::Col && b.row == 1
}

/// Returns the limits for a product of this problem, whose rows are not too many for lists; `None` if columns of
/// B or C are not contiguous, if their types have no kernel, or if the copies are as fast.
pub(super) fn limits(device: &Device, problem: &SpmmProblem, rows: &Rows) -> Option<ColumnLimits> {
    let x = problem.types.x;
    if !has_columns(problem) || x.is_complex() || problem.types.y.is_complex() {
        return None;
    }
    let multiprocessors = i64::from(device.properties().multiprocessors);
    ColumnLimits::new((rows.rows, rows.cols, rows.nnz), problem.columns(), x.size(), multiprocessors)
}

#[cfg(test)]
mod tests;

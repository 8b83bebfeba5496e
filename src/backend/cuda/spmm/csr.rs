//! SpMM algorithm `csr`: rows are distributed over the 32 warps of a block, in their own order or in an order
//! by name (kernels/spmm/csr.cu). One launch, no workspace.

use std::sync::Arc;

use super::analysis::{Analysis, InspectedRows};
use super::{Offsets, Strides};
use crate::backend::cuda::device::Device;
use crate::backend::cuda::launch::{blocks_of_grid, launch_product, Kernel};
use crate::backend::cuda::memory::{filled, filled_members};
use crate::backend::cuda::module::kinds::kernel_kinds;
use crate::backend::cuda::operand::Operand;
use crate::backend::cuda::order::{methods_of_ordered_rows, Order};
use crate::backend::cuda::scalars::scalars;
use crate::backend::cuda::types_name;
use crate::backend::DenseExecutor;
use crate::error::Result;
use crate::matrix::DenseMatrix;
use crate::memory::Context;
use crate::problem::SpmmProblem;
use crate::select::spmm::csr::{rows_of_block, strip_of, STRIP};
use crate::select::{RowOrder, Source};
use crate::types::{Address, IndexType, Operation, Reorder, ScalarsAt};

/// Threads of a block, as in the paper and in csr.cu.
const THREADS: u32 = 1024;

kernel_kinds! { "spmm/csr" {
    PRODUCT(String, IndexType, usize) = "product" for [types(Algorithm::SpmmCsr), index_types(), [1, STRIP]];
} }

/// Executor of SpMM `csr`.
pub(super) struct CsrSpmm {
    device: Arc<Device>,
    problem: SpmmProblem,
    operand: Operand,
    order: Order,
    /// Number of rows with entries, if the order puts empty rows last; else number of rows.
    filled: i64,
    /// Kernels for strips of one column and of [`STRIP`] columns.
    kernels: [Kernel; 2],
}

impl CsrSpmm {
    pub(super) fn build(analysis: &Analysis<'_>, source: Source, order: &RowOrder) -> Result<Self> {
        let &Analysis { cx, problem, .. } = analysis;
        let InspectedRows { operand, stats, .. } = analysis.rows_in_order(source, order)?;
        let (operand, order) = Order::apply(cx, operand, problem.types.a, order)?;
        let rows = operand.rows();
        let empty = if order.policy() == Reorder::Dcsr { stats.empty } else { 0 };
        let kernel =
            |strip: usize| PRODUCT.load(cx.device, (types_name(problem.types), rows.index_type, strip));
        let kernels = [kernel(1)?, kernel(STRIP)?];
        let executor = CsrSpmm {
            device: Arc::clone(cx.device),
            problem: *problem,
            operand,
            order,
            filled: rows.rows - empty,
            kernels,
        };
        filled(cx, executor)
    }
}
filled_members!(CsrSpmm { operand, order });

impl DenseExecutor<DenseMatrix> for CsrSpmm {
    methods_of_ordered_rows!();

    fn workspace_bytes(&self, _n: usize) -> usize {
        0
    }

    fn product(&self, cx: &Context, (alpha, beta): ScalarsAt, [b, _, c]: [&DenseMatrix; 3]) -> Result<()> {
        let cx = &self.device.call(cx)?;
        let (alpha, beta) = scalars(cx, self.problem.types.compute.scalar(), alpha, beta)?;
        let rows = self.operand.rows();
        let n = c.cols as usize;
        if rows.rows == 0 || n == 0 {
            return Ok(());
        }
        let op_b = self.problem.op_b;
        let (from, to) = (Strides::new(b.order, op_b.transposes(), b.ld), Strides::new(c.order, false, c.ld));
        let conjugated = op_b == Operation::ConjugateTranspose && b.value_type.is_complex();
        let strip = strip_of(n);
        let kernel = self.kernels[usize::from(strip > 1)];
        let strips = n.div_ceil(strip) as i64;
        let of_block = rows_of_block(rows.rows, strips, i64::from(self.device.properties().multiprocessors));
        let blocks = strips.saturating_mul((rows.rows + of_block - 1) / of_block);
        let blocks = blocks_of_grid(blocks, "C: it has more columns than one launch can take")?;
        let offsets = Offsets { pointer: rows.offsets, wide: rows.offset_type.wide() };
        // SAFETY: the operands are as their descriptors say, the pattern was checked by analysis, and the
        // order has each row of C once.
        unsafe {
            launch_product!(kernel, blocks, THREADS, 0, cx.stream;
                offsets, rows.indices, rows.values, rows.base, rows.rows, self.filled, of_block,
                self.order.address(), b.values, from.row, from.col, c.values, to.row, to.col, n as i64,
                alpha, beta, i32::from(conjugated))
        }
    }

    fn update_values(&mut self, cx: &Context, values: Address) -> Result<()> {
        let cx = &self.device.call(cx)?;
        let a = (&mut self.problem.a, self.problem.op);
        self.operand.update_values(cx, a, values, "A")
    }
}

#[cfg(test)]
mod tests;

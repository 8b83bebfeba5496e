//! Kernels that read columns of B and write columns of C where they are (kernels/spmm/row_merge_columns.cu).

use super::{launch_of, prefetched};
use crate::backend::cuda::device::{Device, DeviceCall, Relaxed};
use crate::backend::cuda::launch::{launch_product, Kernel};
use crate::backend::cuda::module::kinds::kernel_kinds;
use crate::backend::cuda::operand::Rows;
use crate::backend::cuda::prefetch::Prefetch;
use crate::backend::cuda::scalars::Scalar;
use crate::backend::cuda::types_name;
use crate::error::Result;
use crate::matrix::DenseMatrix;
use crate::select::spmm::merge::{Path, Tile, KINDS_OF_COLUMNS};
use crate::support::Types;
use crate::types::{Address, IndexType};

kernel_kinds! { "spmm/row_merge_columns" {
    MERGE_COLUMNS(String, IndexType, usize, usize) = "mergecolumns"
        for [["f64", "f32f64", "f32", "f16", "f16f32", "bf16", "bf16f32"], index_types(), [4, 8, 16], [8]],
            [["f64", "f32f64", "f32", "f16", "f16f32", "bf16", "bf16f32"], index_types(), [4, 8], [2, 4]];
} }

/// Kernels for columns of B and C and one combination of types, in the order of [`KINDS_OF_COLUMNS`].
pub(in crate::backend::cuda::spmm) struct ColumnMergeKernels(Vec<Kernel>);

impl ColumnMergeKernels {
    pub(in crate::backend::cuda::spmm) fn load(
        device: &Device,
        types: Types,
        width: IndexType,
    ) -> Result<Self> {
        // The call may come during a capture.
        let _relaxed = Relaxed::enter();
        let load = |&(lanes, columns)| MERGE_COLUMNS.load(device, (types_name(types), width, lanes, columns));
        Ok(ColumnMergeKernels(KINDS_OF_COLUMNS.iter().map(load).collect::<Result<_>>()?))
    }

    /// Enqueues a product with a B and a C whose columns are contiguous, for values of A of `a_size` bytes. The partial
    /// sums of split rows go to `partial` in the workspace.
    pub(in crate::backend::cuda::spmm) fn enqueue(
        &self,
        cx: &DeviceCall<'_>,
        (rows, path, a_size): (&Rows, &Path, usize),
        (b, c): (&DenseMatrix, &DenseMatrix),
        (alpha, beta): (Scalar, Scalar),
        partial: Address,
    ) -> Result<()> {
        let is_kind = |&(lanes, columns)| (lanes, Tile::Columns { columns }) == (path.lanes, path.tile);
        let at = KINDS_OF_COLUMNS.iter().position(is_kind);
        let kernel = &self.0[at.expect("paths are of these kinds")];
        let (blocks, offsets, of_kernel) = launch_of(cx, rows, path, false)?;
        let size = b.value_type.size();
        let may = alpha.is_known_and_not_zero() && b.ld == rows.cols;
        let prefetched = match may {
            true => prefetched(cx, rows, path.n, a_size, (path.n.saturating_mul(size), size)),
            false => Prefetch::NONE,
        };
        // SAFETY: a caller without a plan promises the pattern; B and C are as their descriptors say, with contiguous
        // columns; the workspace has room for the partial sums, and the handle lends its counters to one call at a
        // time.
        unsafe {
            launch_product!(kernel, (blocks, path.tiles), super::super::ROW_THREADS, 0, cx.stream;
                offsets, rows.indices, rows.values, rows.base, of_kernel, b.values, b.ld, c.values, c.ld, path.n as i32,
                alpha, beta, partial, path.sums_of_row as i64, prefetched)
        }
    }
}

//! Products without a plan whose warps find their rows by a search of the offsets (kernels/spmm/row_merge.cuh): one
//! launch, for rows of B and C that are aligned to 16 bytes, or for columns of both.

mod columns;

pub(super) use self::columns::ColumnMergeKernels;
use super::Offsets;
use crate::backend::cuda::device::{Device, DeviceCall, Relaxed};
use crate::backend::cuda::launch::{blocks_of_grid, launch_product, Kernel};
use crate::backend::cuda::layouts::kernel_structs;
use crate::backend::cuda::module::kinds::kernel_kinds;
use crate::backend::cuda::operand::Rows;
use crate::backend::cuda::prefetch::Prefetch;
use crate::backend::cuda::scalars::Scalar;
use crate::backend::cuda::types_name;
use crate::error::Result;
use crate::select::spmm::copies::LINE;
use crate::select::spmm::merge::{kinds, Path, Tile};
use crate::select::spmm::prefetch::Operands;
use crate::support::Types;
use crate::types::{Address, IndexType};

kernel_kinds! { "spmm/row_merge" {
    MERGE(String, IndexType, usize, usize) = "merge"
        for [["f64", "f32f64"], index_types(), [4, 8, 16], [1]], [["f64", "f32f64"], index_types(), [16], [2]],
            [["f32"], index_types(), [2, 4, 8], [1]], [["f32"], index_types(), [8], [2]],
            [["f16", "f16f32", "bf16", "bf16f32"], index_types(), [4, 8, 16], [1]];
} }

kernel_structs! {
    /// Division of rows and entries among warps, laid out as the kernels' `MergePath`.
    struct MergePath = "spmm/row_merge.cuh MergePath" {
        rows: i32,
        length: i32,
        work: i32,
        warps: i32,
        longest_unsplit_row: i32,
        is_raw: i32,
        counters: Address,
    }
}

/// Kernels for rows of B and C and one combination of types, in the order of [`kinds`].
pub(super) struct MergeKernels(Vec<Kernel>);

/// Operands of a product: the size of a value of A, and a B and a C whose rows are aligned, with so many bytes of B and
/// elements of C from row to row.
pub(super) struct AlignedOperands {
    pub(super) a_size: usize,
    pub(super) b: Address,
    pub(super) b_row_bytes: i64,
    pub(super) b_size: usize,
    pub(super) c: Address,
    pub(super) c_row: i64,
    /// True if C gets sums, which are scaled later.
    pub(super) is_raw: bool,
    /// True if the threads may prefetch B: not where it is a copy that has just been written.
    pub(super) prefetches: bool,
}

impl AlignedOperands {
    /// Returns whether rows of B, of which there are so many, are aligned to 16 bytes, and 32 bits can number their packs.
    pub(super) fn has_aligned_b(&self, rows: i64) -> bool {
        let is_aligned = self.b.is_aligned(16) && self.b_row_bytes % 16 == 0;
        is_aligned && rows.saturating_mul(self.b_row_bytes / 16) <= i64::from(u32::MAX)
    }
}

impl MergeKernels {
    pub(super) fn load(device: &Device, types: Types, width: IndexType) -> Result<Self> {
        // The call may come during a capture.
        let _relaxed = Relaxed::enter();
        let load = |&(lanes, packs)| MERGE.load(device, (types_name(types), width, lanes, packs));
        Ok(MergeKernels(kinds(types.x.size()).iter().map(load).collect::<Result<_>>()?))
    }

    /// Enqueues a product on these rows. The partial sums of split rows go to `partial` in the workspace.
    pub(super) fn enqueue(
        &self,
        cx: &DeviceCall<'_>,
        (rows, path): (&Rows, &Path),
        operands: &AlignedOperands,
        (alpha, beta): (Scalar, Scalar),
        partial: Address,
    ) -> Result<()> {
        let is_kind =
            |&(lanes, packs): &(usize, usize)| (lanes, Tile::Rows { packs }) == (path.lanes, path.tile);
        let at = kinds(operands.b_size).iter().position(is_kind);
        let kernel = &self.0[at.expect("paths are of these kinds")];
        let (blocks, offsets, of_kernel) = launch_of(cx, rows, path, operands.is_raw)?;
        let b = (operands.b_row_bytes as usize, operands.b_size);
        let may = operands.prefetches && alpha.is_known_and_not_zero();
        let prefetched = if may { prefetched(cx, rows, path.n, operands.a_size, b) } else { Prefetch::NONE };
        // SAFETY: a caller without a plan promises the pattern; the rows of B and C are aligned to 16 bytes, and 32
        // bits can number the packs of B; the workspace has room for the partial sums, and the handle lends its
        // counters to one call at a time.
        unsafe {
            launch_product!(kernel, (blocks, path.tiles), super::ROW_THREADS, 0, cx.stream;
                offsets, rows.indices, rows.values, rows.base, of_kernel, operands.b, (operands.b_row_bytes / 16) as u32,
                operands.c, operands.c_row, path.n as i32, alpha, beta, partial, path.n as i64, prefetched)
        }
    }
}

/// Returns the number of blocks, the row offsets and the division of the rows for a launch.
fn launch_of(
    cx: &DeviceCall<'_>,
    rows: &Rows,
    path: &Path,
    is_raw: bool,
) -> Result<(u32, Offsets, MergePath)> {
    let blocks = blocks_of_grid(path.blocks(), "A: it has more rows than one launch can take")?;
    let of_kernel = MergePath {
        rows: rows.rows as i32,
        length: (rows.rows + rows.nnz) as i32,
        work: path.work,
        warps: path.warps,
        longest_unsplit_row: path.longest_unsplit_row,
        is_raw: i32::from(is_raw),
        counters: cx.counters,
    };
    Ok((blocks, Offsets { pointer: rows.offsets, wide: rows.offset_type.wide() }, of_kernel))
}

/// Lines of the row offsets, columns, values and of B that the threads prefetch, for `n` columns, values of A of `a_size`
/// bytes, and a B with so many bytes in a row and in an element.
fn prefetched(
    cx: &DeviceCall<'_>,
    rows: &Rows,
    n: usize,
    a_size: usize,
    (b_row_bytes, b_size): (usize, usize),
) -> Prefetch {
    // Whole lines: nothing behind the user's arrays is asked for.
    let bytes = |count: i64, size: usize| (count as usize).saturating_mul(size) / LINE * LINE;
    let arrays = [
        bytes(rows.rows, rows.offset_type.size()),
        bytes(rows.nnz, rows.index_type.size()),
        bytes(rows.nnz, a_size),
    ];
    let of_product = Operands {
        rows: rows.rows,
        nnz: rows.nnz,
        a_bytes: arrays.iter().fold(0, |sum, &bytes| sum.saturating_add(bytes)),
        b_rows: rows.cols,
        b_row_bytes,
        b_size,
        n,
        l2_bytes: cx.device.properties().l2_bytes,
    };
    match of_product.of_row_without_plan() {
        true => Prefetch::new([arrays[0], arrays[1], arrays[2], of_product.b_bytes()]),
        false => Prefetch::NONE,
    }
}

#[cfg(test)]
mod tests;

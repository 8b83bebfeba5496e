//! SpMM algorithm `sell`: C = alpha · op(A) · op(B) + beta · C on the slices of src/format/warp_sell.rs, for
//! few columns (kernels/spmm/sell.cu). Analysis makes the slices as for SpMV, whose kernel multiplies by a
//! single column.
//!
//! Execution is one launch; a B whose columns are contiguous, or whose rows are not aligned for the loads of
//! lanes, is copied to the workspace by one more.

use std::sync::Arc;

use super::analysis::Analysis;
use super::{copy_b, saturating_product, whole_lines, Strides};
use crate::backend::cuda::device::{Device, DeviceCall};
use crate::backend::cuda::launch::{blocks_of_grid, launch_product, Kernel};
use crate::backend::cuda::layouts::kernel_structs;
use crate::backend::cuda::module::kinds::kernel_kinds;
use crate::backend::cuda::operand::{Operand, RowStats};
use crate::backend::cuda::prefetch::Prefetch;
use crate::backend::cuda::scalars::scalars;
use crate::backend::cuda::spmv::sell::{self as spmv_sell, for_columns, Arrays, Refill};
use crate::backend::cuda::spmv::StorageProperties;
use crate::backend::cuda::types_name;
use crate::backend::{DenseExecutor, LayoutInfo};
use crate::error::{Error, Result};
use crate::format::fill_ratio;
use crate::matrix::DenseMatrix;
use crate::memory::Context;
use crate::problem::{SpmmProblem, SpmvProblem};
use crate::select::spmm::copies::sell_reads_b;
use crate::select::spmm::prefetch::Operands;
use crate::select::spmm::sell::{kernels, takes_spmv, LaneShape, Slots};
use crate::select::spmm::tiles;
use crate::types::{Address, LayoutKind, ScalarsAt};

/// Warps and threads of a block.
const WARPS: u64 = 4;
const BLOCK: u32 = 128;

kernel_kinds! { "spmm/sell" {
    PRODUCT(String, usize, usize) = "product" for [types(Algorithm::SpmmSell), [1, 2, 3], [2, 4]],
        [["f32"], [1, 2, 3], [8]], [HALVES, [1, 2, 3], [8, 16]];
} }

kernel_structs! {
    /// Dense operands, laid out as the kernels' `Dense`.
    struct Dense = "spmm/sell.cu Dense" {
        b: Address,
        b_row_bytes: i64,
        c: Address,
        c_row: i64,
        c_col: i64,
        old: Address,
        old_row: i64,
        old_col: i64,
        n: i64,
        group_log2: i32,
        packs: i32,
    }

    /// Workspace for partial sums of split rows, laid out as the kernels' `Join`.
    struct Join = "spmm/sell.cu Join" {
        sums: Address,
        counters: Address,
        block_count: i64,
        counter_count: i64,
    }
}

/// Numbers of the layout that tell whether lanes share a slice.
fn slots(arrays: &Arrays) -> Slots {
    Slots {
        rows: arrays.rows,
        entries: arrays.nnz,
        item_rows: arrays.rules.item_rows,
        slots: arrays.slots,
        columns: arrays.narrow.len() + arrays.wide.len(),
    }
}

/// Workspace offsets, in bytes.
struct SellWorkspaceOffsets {
    packed_b: usize,
    total: usize,
    /// Leading dimension of a packed B, in elements.
    ld: usize,
}

/// Executor of SpMM `sell`.
pub(super) struct SellSpmm {
    device: Arc<Device>,
    problem: SpmmProblem,
    arrays: Arrays,
    shares: bool,
    /// Kernels in the order of [`kernels`].
    kernels: Vec<Kernel>,
    /// SpMV's kernel, for a single column.
    single: Kernel,
    pack: Kernel,
    refill: Refill,
}

fn make_arrays(
    cx: &DeviceCall<'_>,
    problem: &SpmmProblem,
    checked: Option<(Operand, RowStats)>,
    properties: Option<StorageProperties>,
) -> Result<Arrays> {
    let SpmmProblem { op, a, types, value_updates, .. } = *problem;
    for_columns(cx, &SpmvProblem { op, a, types, value_updates }, checked, properties)
}

impl SellSpmm {
    /// Builds the executor.
    pub(super) fn build(analysis: &Analysis<'_>) -> Result<Self> {
        let &Analysis { cx, problem, .. } = analysis;
        let checked = analysis.checked_rows()?;
        let properties = checked.as_ref().and_then(|_| analysis.take_properties());
        let arrays = make_arrays(cx, problem, checked, properties)?;
        let rows = arrays.rules.item_rows;
        let types = problem.types;
        let kernel = |&elements: &usize| PRODUCT.load(cx.device, (types_name(types), rows, elements));
        let refill = Refill::new(cx.device, (problem.op, types.a), arrays.origins.as_ref())?;
        Ok(SellSpmm {
            device: Arc::clone(cx.device),
            problem: *problem,
            kernels: kernels(types.x.size()).iter().map(kernel).collect::<Result<_>>()?,
            single: spmv_sell::PRODUCT.load(cx.device, (types_name(types), 2, rows))?,
            pack: super::kernels::pack_kernel(cx.device, types.x)?,
            shares: slots(&arrays).are_shared(),
            arrays,
            refill,
        })
    }

    fn shape(&self, n: usize) -> LaneShape {
        LaneShape::new(n, self.problem.types.x.size(), self.shares)
    }

    /// Number of columns of op(A), which is that of rows of op(B).
    fn inner(&self) -> i64 {
        self.problem.a.shape_of(self.problem.op).1
    }

    /// Number of tiles along N in one launch, which the counters for split rows limit.
    fn tiles_at_once(&self) -> usize {
        tiles::at_once(self.arrays.blocks, tiles::COUNTERS)
    }

    /// Workspace offsets for `n` columns. There is always room for a copy of B, because its alignment is not
    /// known yet.
    fn workspace_offsets(&self, n: usize) -> SellWorkspaceOffsets {
        let shape = self.shape(n);
        let tiles = n.div_ceil(shape.columns()).min(self.tiles_at_once());
        let blocks = self.arrays.blocks << shape.group_log2;
        let types = self.problem.types;
        let sums = saturating_product(&[tiles, blocks, shape.columns(), types.compute.scalar().size()]);
        let ld = n.div_ceil(shape.elements()).saturating_mul(shape.elements());
        let packed = saturating_product(&[self.inner() as usize, ld, types.x.size()]);
        let packed_b = whole_lines(sums);
        SellWorkspaceOffsets { packed_b, total: packed_b.saturating_add(whole_lines(packed)), ld }
    }
}

impl DenseExecutor<DenseMatrix> for SellSpmm {
    fn workspace_bytes(&self, n: usize) -> usize {
        self.workspace_offsets(n).total
    }

    fn product(&self, cx: &Context, (alpha, beta): ScalarsAt, [b, old, c]: [&DenseMatrix; 3]) -> Result<()> {
        // If SpMV's kernel computes C, both C and its old values are columns without gaps.
        let cx = &self.device.call(cx)?;
        let (alpha, beta) = scalars(cx, self.problem.types.compute.scalar(), alpha, beta)?;
        let (n, arrays) = (c.cols as usize, &self.arrays);
        if arrays.rows == 0 || n == 0 {
            return Ok(());
        }
        let offsets = self.workspace_offsets(n);
        cx.workspace.require(offsets.total)?;
        let size = b.value_type.size();
        let shape = self.shape(n);
        let from = Strides::new(b.order, self.problem.op_b.transposes(), b.ld);
        let (to, was) = (Strides::new(c.order, false, c.ld), Strides::new(old.order, false, old.ld));

        let pack = (shape.elements() * size).min(16);
        let aligned = |at: Address, ld: i64, size: usize, pack: usize| {
            at.is_aligned(pack) && (ld as usize).wrapping_mul(size) % pack == 0
        };
        let row_bytes = from.row.saturating_mul(size as i64);
        // SpMV's kernel reads and writes columns without gaps.
        let single = takes_spmv(n, to.row);
        let direct = match single {
            true => from.row == 1,
            false => {
                let is_aligned = aligned(b.values, from.row, size, pack);
                sell_reads_b(n, shape.elements(), from.col == 1, is_aligned, row_bytes)
            }
        };
        let (mut b_at, mut ldb) = (b.values, from.row);
        let inner = self.inner();
        if !direct && inner > 0 {
            let ld = if single { 1 } else { offsets.ld };
            (b_at, ldb) = (cx.workspace.address.offset(offsets.packed_b), ld as i64);
            copy_b(
                cx,
                &self.pack,
                (b.values, from, b.value_type.size()),
                (inner, n),
                (b_at, ldb),
                0,
                Address::NULL,
            )?;
        }
        let Arrays { rows, order, heads, values, narrow, wide, .. } = arrays;
        let slices = arrays.slices as i64;
        if single {
            let blocks = (slices as u64).div_ceil(WARPS) as u32;
            // SAFETY: as below; SpMV's kernel takes these slices, and the counters as its slots.
            return unsafe {
                launch_product!(self.single, blocks, BLOCK, 0, cx.stream;
                    slices, *rows, heads.address(), order.address(), values.address(), narrow.address(),
                    wide.address(), b_at, c.values, old.values, alpha, beta, cx.counters)
            };
        }
        let bytes = ldb.saturating_mul(size as i64);
        if bytes > i64::from(i32::MAX) {
            return Err(Error::unsupported(
                "B: algorithm sell takes rows that are less than 2^31 bytes apart",
            ));
        }
        let c_size = c.value_type.size();
        let c_pack = (shape.elements() * c_size).min(16);
        // A C of one row that is stored by columns may be contiguous while its old values are not.
        let packs = (to.col, was.col) == (1, 1)
            && aligned(c.values, to.row, c_size, c_pack)
            && aligned(old.values, was.row, c_size, c_pack)
            && n % shape.elements() == 0;
        let operands = Operands {
            rows: arrays.rows,
            nnz: arrays.nnz,
            a_bytes: values.bytes() + narrow.bytes() + wide.bytes(),
            b_rows: inner,
            b_row_bytes: bytes as usize,
            b_size: size,
            n,
            l2_bytes: self.device.properties().l2_bytes,
        };
        // With alpha = 0 nothing is read; a copy of B has just been written to L2.
        let prefetched = match direct && alpha.is_known_and_not_zero() && operands.of_sell() {
            true => Prefetch::new([operands.b_bytes(), values.bytes(), narrow.bytes(), wide.bytes()]),
            false => Prefetch::NONE,
        };
        let join = Join {
            sums: cx.workspace.address,
            counters: cx.counters,
            block_count: (arrays.blocks as i64) << shape.group_log2,
            counter_count: arrays.blocks as i64,
        };
        let blocks = ((slices as u64) << shape.group_log2).div_ceil(WARPS);
        let blocks = blocks_of_grid(blocks, "A: it has more slices than one launch can take")?;
        let step = self.tiles_at_once().saturating_mul(shape.columns());
        for first in (0..n).step_by(step) {
            let columns = (n - first).min(step);
            let dense = Dense {
                b: b_at.offset(first * size),
                b_row_bytes: bytes,
                c: c.values.offset(first * to.col as usize * c_size),
                c_row: to.row,
                c_col: to.col,
                old: old.values.offset(first * was.col as usize * c_size),
                old_row: was.row,
                old_col: was.col,
                n: columns as i64,
                group_log2: shape.group_log2 as i32,
                packs: i32::from(packs),
            };
            let tiles = columns.div_ceil(shape.columns()) as u32;
            // SAFETY: analysis has made the arrays; the operands are as their descriptors say, with rows of B
            // aligned and padded for the loads of lanes; the workspace holds the sums of these tiles' split
            // rows, and the handle lends its counters to one call at a time.
            unsafe {
                launch_product!(self.kernels[shape.elements], (blocks, tiles), BLOCK, 0, cx.stream;
                    slices, *rows, heads.address(), order.address(), values.address(), narrow.address(),
                    wide.address(), dense, alpha, beta, join, prefetched)?;
            }
        }
        Ok(())
    }

    fn reads_elsewhere(&self, c: &DenseMatrix, d: &DenseMatrix) -> bool {
        let single = |c: &DenseMatrix| takes_spmv(c.cols as usize, Strides::new(c.order, false, c.ld).row);
        // `c` and `d` must go through the same kernel, since another one gives different bits.
        !single(d) || single(c)
    }

    fn update_values(&mut self, cx: &Context, values: Address) -> Result<()> {
        let cx = &self.device.call(cx)?;
        let problem = SpmmProblem { a: self.problem.a.with_values(values), ..self.problem };
        let to = (self.arrays.slots, self.arrays.values.address());
        if !self.refill.run(cx, (values, self.arrays.origins.as_ref()), to)? {
            self.arrays = make_arrays(cx, &problem, None, None)?;
        }
        self.problem = problem;
        Ok(())
    }

    fn layout(&self) -> LayoutInfo {
        let fill = fill_ratio(self.arrays.slots, self.arrays.nnz as usize);
        LayoutInfo { kind: LayoutKind::Sell, in_place: false, fill }
    }

    fn details(&self) -> String {
        match self.arrays.rules.item_rows {
            1 => String::new(),
            rows => format!("columns stored once for {rows} rows that share them"),
        }
    }
}

#[cfg(test)]
mod tests;

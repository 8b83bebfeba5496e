//! SpMM algorithm `smat`: C = alpha · op(A) · op(B) + beta · C on the blocks of src/format/bcsr.rs by tensor
//! cores (kernels/spmm/smat.cuh).
//!
//! Execution is one launch. A B whose columns are contiguous goes through the workspace by one more, except
//! where it has few columns or the blocks are well filled.

mod build;

use std::sync::Arc;

use build::{Arrays, Source};

use super::analysis::{reorder_of, Analysis, SharedResults};
use super::packing::{is_wide, Packed, Packing};
use super::{saturating_product, whole_lines, Strides};
use crate::backend::cuda::convert::Origins;
use crate::backend::cuda::device::Device;
use crate::backend::cuda::launch::{blocks_of_grid, launch_product, Kernel};
use crate::backend::cuda::layouts::kernel_structs;
use crate::backend::cuda::memory::DeviceBuffer;
use crate::backend::cuda::module::kinds::kernel_kinds;
use crate::backend::cuda::operand::Operand;
use crate::backend::cuda::reorder::cluster;
use crate::backend::cuda::scalars::scalars;
use crate::backend::cuda::types_name;
use crate::backend::{DenseExecutor, LayoutInfo};
use crate::error::Result;
use crate::format::bcsr::{details, widest, ROWS};
use crate::format::window::fill_ratio;
use crate::matrix::DenseMatrix;
use crate::memory::Context;
use crate::problem::SpmmProblem;
use crate::reorder::jaccard::When;
use crate::select::spmm::smat as select;
use crate::select::Clusters;
use crate::types::{Address, LayoutKind, Order, Reorder, ScalarsAt};

kernel_kinds! { "spmm/smat" {
    ROWS_OF_B(String, usize, usize) = "rows"
        for [HALVES, [8, 16], [8, 32, 64]], [["f32"], [8], [8, 32, 64]], [["f64"], [8], [8, 32]];
    COLUMNS_OF_B(String, usize, usize) = "columns"
        for [HALVES, [16], [8, 32, 64]], [HALVES, [8], [8]], [["f32"], [8], [8, 32, 64]], [["f64"], [8], [8, 32]];
} }
/// Warps of a block of threads (WARPS of kernels/spmm/smat.cuh); each multiplies one item by one tile of
/// columns.
const WARPS: usize = 4;

kernel_structs! {
    /// Layout of the matrix, laid out as the kernels' `Matrix`.
    struct SmatMatrix = "spmm/smat.cuh Matrix" {
        items: Address,
        parts: Address,
        columns: Address,
        values: Address,
        masks: Address,
        order: Address,
        item_count: i64,
        rows: i64,
        cols: i64,
    }

    /// Dense operands, laid out as the kernels' `Dense`.
    struct Dense = "spmm/smat.cuh Dense" {
        b: Address,
        ldb: i64,
        c: Address,
        c_row: i64,
        c_col: i64,
        n: i64,
        flags: i64,
    }
}

/// Variant of the kernels for one number of columns.
#[derive(Clone, Copy)]
struct Form {
    kernel: Kernel,
    /// Columns of C per warp.
    columns: usize,
    /// Bytes of dynamic shared memory.
    shared: u32,
}

/// Stages of the kernel for values of `size` bytes and so many columns of C per warp (kernels/spmm/smat.cu).
fn stages(size: usize, columns: usize) -> usize {
    match (size, columns) {
        (2 | 4, 8) => 4,
        (2 | 4, 32) | (_, 8) => 3,
        _ => 2,
    }
}

/// Variants by columns of C, in the order of [`select::form_of`].
struct Forms([Form; 3]);

impl Forms {
    /// Loads the variants for a B by rows or by columns. Narrow blocks of halves have only the first one for
    /// a B by columns.
    fn load(device: &Device, problem: &SpmmProblem, width: usize, by_columns: bool) -> Result<Self> {
        let size = problem.types.a.size();
        let form = |columns: usize| {
            let kind = if by_columns { COLUMNS_OF_B } else { ROWS_OF_B };
            let kernel = kind.load(device, (types_name(problem.types), width, columns))?;
            // Rows of B, and as many columns of A, that two MMAs multiply.
            let depth = if size == 2 { 32 } else { 16 };
            let shared = (WARPS * stages(size, columns) * depth * (columns + ROWS) * size) as u32;
            kernel.allow_shared(shared)?;
            Ok(Form { kernel, columns, shared })
        };
        let [few, some, many] = select::forms(size, width, by_columns);
        Ok(Forms([form(few)?, form(some)?, form(many)?]))
    }

    fn of(&self, n: usize) -> &Form {
        &self.0[select::form_of([0, 1, 2].map(|at: usize| self.0[at].columns), n)]
    }
}

/// Executor of SpMM `smat`.
pub(super) struct SmatSpmm {
    device: Arc<Device>,
    problem: SpmmProblem,
    arrays: Arrays,
    forms: Forms,
    by_columns: Forms,
    packing: Packing,
}

/// Makes the layout. `width` is that of blocks; `None` lets the cost model choose it.
fn make_arrays(
    analysis: &Analysis<'_>,
    (clusters, width): (&Clusters, Option<usize>),
    operand: &Operand,
    positions: Origins<'_>,
) -> Result<Arrays> {
    let &Analysis { cx, problem, .. } = analysis;
    let value_type = problem.types.a;
    let (rows, size) = (operand.rows(), value_type.size());
    let ratios = cx.device.machine().ratios(problem.types.compute);
    let mut order = None;
    if clusters.may_be() {
        let shape = select::CLUSTER;
        let found = cluster(cx, &rows, shape, When::Promising)?;
        let is_decided = *clusters != Clusters::IfFaster;
        if is_decided || select::clusters_gain(problem, shape, (found.before, found.after), &ratios) {
            order = found.places;
        }
    }
    let source = Source { rows: &rows, value_type, order, positions };
    let (n, multiprocessors) =
        (problem.n_hint.max(1) as usize, cx.device.properties().multiprocessors as usize);
    let cut = source.cut(cx)?;
    let mut taken = width.unwrap_or(widest(size));
    let mut counted = source.count(cx, &cut, taken)?;
    if width.is_none() && taken > 8 {
        let narrow = source.count(cx, &cut, 8)?;
        let by_columns = n > select::columns_of_few(size) && gathers(problem);
        let blocks = (narrow.blocks, counted.blocks);
        if select::takes_narrow_blocks(rows.nnz as usize, blocks, problem.n_hint, by_columns, &ratios) {
            (taken, counted) = (8, narrow);
        }
    }
    let tiles = n.div_ceil(select::columns_of_many(size));
    let rules = select::rules_on_device(select::rules(size, taken), multiprocessors, tiles);
    Arrays::build(cx, source, &cut, counted, rules)
}

/// Returns whether the columns of op(B), not its rows, are contiguous.
fn gathers(problem: &SpmmProblem) -> bool {
    Strides::new(problem.b_order, problem.op_b.transposes(), 0).col != 1
}

/// Builds the executor.
pub(super) fn build_from(
    analysis: &Analysis<'_>,
    (clusters, width): (&Clusters, Option<usize>),
) -> Result<SmatSpmm> {
    let arrays =
        analysis.with_rows(|rows, positions| make_arrays(analysis, (clusters, width), rows, positions))?;
    SmatSpmm::new(analysis.cx.device, analysis.problem, arrays)
}

impl SmatSpmm {
    fn new(device: &Arc<Device>, problem: &SpmmProblem, arrays: Arrays) -> Result<Self> {
        Ok(SmatSpmm {
            device: Arc::clone(device),
            problem: *problem,
            forms: Forms::load(device, problem, arrays.width, false)?,
            by_columns: Forms::load(device, problem, arrays.width, true)?,
            packing: Packing::new(device, problem, (arrays.columns.len() * arrays.width) as i64)?,
            arrays,
        })
    }

    /// Returns whether the kernels read this B by columns; otherwise they read rows of it.
    fn reads_columns(&self, b: &DenseMatrix, n: usize) -> bool {
        let (size, Arrays { width, columns, nnz, .. }) = (b.value_type.size(), &self.arrays);
        let blocks = (columns.len(), *width);
        let pays = select::columns_pay(n, size, *nnz as usize, blocks);
        pays && gathers(&self.problem) && is_wide(b.values, b.ld, size)
    }

    /// Bytes of the sums of cut row blocks, behind which the copy of B begins.
    fn sums_bytes(&self, n: usize) -> usize {
        let form = self.forms.of(n);
        let tiles = n.div_ceil(form.columns).min(self.arrays.lists.tiles_at_once());
        let bytes = saturating_product(&[
            tiles,
            self.arrays.lists.parts.len(),
            ROWS,
            form.columns,
            self.problem.types.compute.scalar().size(),
        ]);
        whole_lines(bytes)
    }
}

impl DenseExecutor<DenseMatrix> for SmatSpmm {
    fn workspace_bytes(&self, n: usize) -> usize {
        self.sums_bytes(n).saturating_add(self.packing.bytes(n))
    }

    fn product(&self, cx: &Context, (alpha, beta): ScalarsAt, [b, _, c]: [&DenseMatrix; 3]) -> Result<()> {
        let cx = &self.device.call(cx)?;
        let (alpha, beta) = scalars(cx, self.problem.types.compute.scalar(), alpha, beta)?;
        let (n, arrays) = (c.cols as usize, &self.arrays);
        if arrays.row_count == 0 || n == 0 {
            return Ok(());
        }
        let sums = self.sums_bytes(n);
        cx.workspace.require(self.workspace_bytes(n))?;
        let by_columns = self.reads_columns(b, n);
        let from = match by_columns {
            true => Packed { address: b.values, ld: b.ld, padded: false },
            false => self.packing.rows(cx, b, n, cx.workspace.address.offset(sums), "smat")?,
        };
        let (c_row, c_col) = if c.order == Order::Row { (c.ld, 1) } else { (1, c.ld) };
        let (b_size, c_size) = (b.value_type.size(), c.value_type.size());
        let wide_c = c.order == Order::Row && is_wide(c.values, c.ld, c_size);
        let flags = i64::from(is_wide(from.address, from.ld, b_size))
            | i64::from(wide_c) << 1
            | i64::from(from.padded) << 2;
        let address =
            |buffer: Option<&DeviceBuffer<u32>>| buffer.map_or(Address::NULL, DeviceBuffer::address);
        let matrix = SmatMatrix {
            items: arrays.lists.items.address(),
            parts: arrays.lists.parts.address(),
            columns: arrays.columns.address(),
            values: arrays.values.address(),
            masks: arrays.masks.address(),
            order: address(arrays.order.as_ref()),
            item_count: arrays.lists.items.len() as i64,
            rows: arrays.row_count,
            cols: arrays.col_count,
        };
        let join = arrays.lists.join(cx, cx.workspace.address);
        let form = if by_columns { &self.by_columns } else { &self.forms }.of(n);
        let step = self.arrays.lists.tiles_at_once().saturating_mul(form.columns);
        for first in (0..n).step_by(step) {
            let end = n.min(first.saturating_add(step));
            let tiles = (end - first).div_ceil(form.columns);
            let together = select::tiles_of_item(tiles, WARPS);
            let blocks = blocks_of_grid(
                arrays.lists.items.len().div_ceil(WARPS / together),
                "A: it has more row blocks than one launch can take",
            )?;
            let b_at = if by_columns { first.saturating_mul(from.ld as usize) } else { first };
            let dense = Dense {
                b: from.address.offset(b_at.saturating_mul(b_size)),
                ldb: from.ld,
                c: c.values.offset(first.saturating_mul(c_col as usize).saturating_mul(c_size)),
                c_row,
                c_col,
                n: (end - first) as i64,
                flags,
            };
            let grid = (blocks, tiles.div_ceil(together) as u32);
            // SAFETY: the operands are as their descriptors say, the layout is complete, and the workspace is
            // large enough for the parts of these tiles.
            unsafe {
                launch_product!(form.kernel, (grid.0, grid.1), WARPS as u32 * 32, form.shared, cx.stream;
                    matrix, dense, alpha, beta, join, together as i32)?;
            }
        }
        Ok(())
    }

    fn update_values(&mut self, cx: &Context, values: Address) -> Result<()> {
        let cx = &self.device.call(cx)?;
        let problem = SpmmProblem { a: self.problem.a.with_values(values), ..self.problem };
        match &self.arrays.slots {
            Some(slots) => slots.scatter(cx, values, self.arrays.values.address())?,
            None => {
                let (device, shared) = (&self.device, &SharedResults::new(&self.device));
                let analysis = Analysis { cx, problem: &problem, shared };
                let clusters = if self.arrays.order.is_some() { Clusters::Yes } else { Clusters::No };
                let wanted = (&clusters, Some(self.arrays.width));
                let arrays =
                    analysis.with_rows(|rows, positions| make_arrays(&analysis, wanted, rows, positions))?;
                *self = SmatSpmm::new(device, &problem, arrays)?;
            }
        }
        self.problem = problem;
        Ok(())
    }

    fn layout(&self) -> LayoutInfo {
        let places = self.arrays.columns.len() * ROWS * self.arrays.width;
        let fill = fill_ratio(places, self.arrays.nnz as usize);
        LayoutInfo { kind: LayoutKind::Bcsr, in_place: false, fill }
    }

    fn reorder(&self) -> Reorder {
        reorder_of(self.arrays.order.is_some())
    }

    fn block_width(&self) -> Option<usize> {
        Some(self.arrays.width)
    }

    fn details(&self) -> String {
        let Arrays { width, columns, nnz, order, .. } = &self.arrays;
        details(*width, columns.len(), *nnz as usize, order.is_some())
    }
}

#[cfg(test)]
mod tests;

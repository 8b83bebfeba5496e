//! SpMM algorithm `window` for values of 4 and 8 bytes: C = alpha · op(A) · op(B) + beta · C on the windows
//! of src/format/masked_window.rs by tensor cores (kernels/spmm/masked_f32.cuh, kernels/spmm/masked_f64.cuh).
//!
//! Execution is one launch. A B or a C whose columns are contiguous goes through the workspace, by one more
//! launch each.

use std::sync::Arc;

use super::analysis::{reorder_of, Analysis, SharedResults};
use super::masked_window::Arrays;
use super::packing::{is_wide, Packing};
use super::parts::Join;
use super::window::Dense;
use super::{grid_x, grid_y, lines, product};
use crate::backend::cuda::device::Device;
use crate::backend::cuda::launch::{blocks_of_grid, launch, Kernel};
use crate::backend::cuda::layouts::same_layout;
use crate::backend::cuda::memory::DeviceBuffer;
use crate::backend::cuda::module::kinds::kernel_kinds;
use crate::backend::cuda::scalars::scalars;
use crate::backend::cuda::{result_name, types_name};
use crate::backend::{LayoutInfo, SpmmExecutor};
use crate::error::Result;
use crate::format::masked_window::{details, Rules, BLOCK, SHAPE};
use crate::matrix::DenseMatrix;
use crate::memory::Context;
use crate::problem::SpmmProblem;
use crate::select::spmm::{masked_window as select, tiles};
use crate::support::Types;
use crate::types::{Address, ComputeType, LayoutKind, Order, Reorder, ScalarsAt};

/// Threads of a block of kernels with one thread per element.
const THREADS: u32 = 256;

/// Layout of the matrix, laid out as the kernels' `Matrix`.
#[derive(Clone, Copy)]
#[repr(C)]
struct MaskedMatrix {
    items: Address,
    parts: Address,
    columns: Address,
    masks: Address,
    starts: Address,
    values: Address,
    item_count: i64,
    rows: i64,
    order: Address,
}
same_layout!(MaskedMatrix = "spmm/masked.cuh Matrix" { items, parts, columns, masks, starts, values, item_count, rows, order });

/// Variant of the kernels: a block of threads multiplies one item (a window or a piece of one) for so many
/// columns of C.
#[derive(Clone, Copy, Debug)]
struct MaskedKernelShape {
    /// Rows of a window.
    height: usize,
    /// Columns of C per block.
    columns: usize,
    /// Columns of A that one stage of shared memory holds.
    depth: usize,
    /// Number of stages that shared memory holds.
    stages: usize,
    /// Warps per block.
    warps: u32,
}

impl MaskedKernelShape {
    /// Bytes of shared memory for rows of B, values, masks and starts of tiles, as the kernels' `Step` and
    /// `Stage` have them.
    fn shared(&self, types: &Types) -> u32 {
        let tiles = self.depth / BLOCK * (self.height / BLOCK);
        let rows = self.depth * self.columns * types.x.size();
        let values = self.depth * self.height * types.a.size() + 16;
        let stage = rows + values + tiles * (size_of::<u64>() + size_of::<u32>());
        (self.stages * stage.next_multiple_of(128)) as u32
    }
}

const fn shape(height: usize, columns: usize, depth: usize, stages: usize, warps: u32) -> MaskedKernelShape {
    MaskedKernelShape { height, columns, depth, stages, warps }
}

/// Variants by columns of C, as in the kernels' files.
const F32: [MaskedKernelShape; 4] =
    [shape(16, 8, 16, 3, 1), shape(16, 32, 16, 3, 1), shape(16, 64, 16, 3, 1), shape(16, 128, 16, 3, 1)];
const TF32: [MaskedKernelShape; 4] =
    [shape(16, 8, 16, 3, 1), shape(16, 32, 16, 3, 1), shape(16, 64, 16, 3, 1), shape(16, 128, 16, 2, 1)];
const F64: [MaskedKernelShape; 9] = [
    shape(16, 8, 32, 2, 1),
    shape(16, 32, 16, 2, 1),
    shape(16, 64, 16, 2, 2),
    shape(32, 8, 16, 2, 1),
    shape(32, 32, 32, 2, 2),
    shape(32, 128, 16, 2, 4),
    shape(64, 8, 16, 2, 2),
    shape(64, 32, 32, 2, 4),
    shape(64, 64, 16, 2, 4),
];

kernel_kinds! {
    "spmm/masked_f64" {
        DOUBLES(String, usize, usize) = "product"
            for [["f64", "f32f64"], [16, 32, 64], [8, 32]], [["f64", "f32f64"], [16, 64], [64]],
                [["f64", "f32f64"], [32], [128]];
    }
    "spmm/masked_f32" { SINGLES(String, usize, usize) = "product" for [["f32", "tf32"], [16], [8, 32, 64, 128]]; }
}

/// Chooses the rules by which the windows of a plan are made. Blocks.
fn rules(analysis: &Analysis<'_>, clusters: bool) -> Result<Rules> {
    let n = analysis.problem.n_hint.max(1) as usize;
    match analysis.problem.types.compute {
        ComputeType::R64F => Ok(select::rules_of_doubles(&analysis.window_counts(clusters, SHAPE)?, n)),
        _ => Ok(select::rules_of_singles(n)),
    }
}

/// Kernels of a plan for different numbers of columns, with their bytes of shared memory.
struct Forms(Vec<(MaskedKernelShape, u32, Kernel)>);

impl Forms {
    /// Loads the kernels for windows of that height and for at most `most` columns per block.
    fn load(device: &Device, types: Types, height: usize, most: usize) -> Result<Self> {
        let (kind, name, shapes): (_, _, &[MaskedKernelShape]) = match types.compute {
            ComputeType::R64F => (DOUBLES, types_name(types), &F64),
            ComputeType::Tf32 => (SINGLES, "tf32".to_string(), &TF32),
            _ => (SINGLES, types_name(types), &F32),
        };
        let load = |shape: &MaskedKernelShape| {
            let kernel = kind.load(device, (name.clone(), shape.height, shape.columns))?;
            let shared = shape.shared(&types);
            kernel.allow_shared(shared)?;
            // All operands but C go through shared memory.
            kernel.prefer_shared()?;
            Ok((*shape, shared, kernel))
        };
        let wanted = shapes.iter().filter(|shape| shape.height == height && shape.columns <= most);
        Ok(Forms(wanted.map(load).collect::<Result<_>>()?))
    }

    /// Returns the kernel for `n` columns of C.
    fn of(&self, n: usize) -> &(MaskedKernelShape, u32, Kernel) {
        &self.0[select::form_of(self.0.iter().map(|(shape, ..)| shape.columns), n)]
    }
}

/// Workspace offsets, in bytes.
struct MaskedWorkspaceOffsets {
    sums: usize,
    packed_b: usize,
    raw_c: usize,
    total: usize,
}

/// Executor of SpMM `window` with masked tiles.
pub(super) struct MaskedSpmm {
    device: Arc<Device>,
    problem: SpmmProblem,
    arrays: Arrays,
    rules: Rules,
    /// Row of C for each row of `arrays`, if the rows are clustered.
    order: Option<Arc<DeviceBuffer<u32>>>,
    forms: Forms,
    packing: Packing,
    finish: Kernel,
}

fn arrange(
    analysis: &Analysis<'_>,
    clusters: bool,
    rules: Rules,
) -> Result<(Arrays, Option<Arc<DeviceBuffer<u32>>>)> {
    let &Analysis { cx, device, problem, .. } = analysis;
    let size = problem.types.a.size();
    analysis.with_window_rows(clusters, |from| {
        Ok((Arrays::build(cx, device, &from.rows, size, rules, from.positions)?, from.order.cloned()))
    })
}

impl MaskedSpmm {
    /// Builds the executor. The context must be current.
    pub(super) fn build(analysis: &Analysis<'_>, clusters: bool) -> Result<Self> {
        Self::new(analysis, clusters, rules(analysis, clusters)?)
    }

    fn new(analysis: &Analysis<'_>, clusters: bool, rules: Rules) -> Result<Self> {
        let &Analysis { device, problem, .. } = analysis;
        let (arrays, order) = arrange(analysis, clusters, rules)?;
        let types = problem.types;
        let (rows, cols, _) = problem.a.shape();
        let cols = problem.op.shape(rows, cols).1;
        let sizes = (arrays.nnz as usize, arrays.distinct as usize, cols as usize);
        let most = select::widest_tile(types, sizes, device.properties().l2_bytes);
        Ok(MaskedSpmm {
            device: Arc::clone(device),
            problem: *problem,
            forms: Forms::load(device, types, arrays.height, most)?,
            packing: Packing::new(device, problem, arrays.distinct)?,
            finish: super::FINISH.load(device, (result_name(types),))?,
            arrays,
            rules,
            order,
        })
    }

    /// Number of rows of C.
    fn rows(&self) -> i64 {
        let (rows, cols, _) = self.problem.a.shape();
        self.problem.op.shape(rows, cols).0
    }

    fn finishes_c(&self) -> bool {
        self.problem.c_order == Order::Col
    }

    /// Number of tiles along N in one launch, which the counters for its cut windows limit.
    fn tiles_at_once(&self) -> usize {
        tiles::at_once(self.arrays.cut as usize, tiles::COUNTERS)
    }

    fn workspace_offsets(&self, n: usize) -> MaskedWorkspaceOffsets {
        let acc = self.problem.types.compute.scalar().size();
        let columns = self.forms.of(n).0.columns;
        let tiles = n.div_ceil(columns).min(self.tiles_at_once());
        let sums = product(&[tiles, self.arrays.parts.len(), self.arrays.height, columns, acc]);
        let raw = match self.finishes_c() {
            true => product(&[self.rows() as usize, n, acc]),
            false => 0,
        };
        let packed_b = lines(sums);
        let raw_c = packed_b.saturating_add(lines(self.packing.bytes(n)));
        MaskedWorkspaceOffsets { sums: 0, packed_b, raw_c, total: raw_c.saturating_add(lines(raw)) }
    }
}

impl SpmmExecutor for MaskedSpmm {
    fn workspace_bytes(&self, n: usize) -> usize {
        self.workspace_offsets(n).total
    }

    fn product(&self, cx: &Context, (alpha, beta): ScalarsAt, [b, _, c]: [&DenseMatrix; 3]) -> Result<()> {
        let _entered = self.device.enter()?;
        let accumulator = self.problem.types.compute.scalar();
        let (alpha, beta) = scalars(cx, accumulator, alpha, beta)?;
        let (n, arrays) = (c.cols as usize, &self.arrays);
        if arrays.row_count == 0 || n == 0 {
            return Ok(());
        }
        let offsets = self.workspace_offsets(n);
        cx.workspace.require(offsets.total)?;
        let workspace_at = |offset: usize| cx.workspace.address.offset(offset);
        let packed = self.packing.take(cx, b, n, workspace_at(offsets.packed_b), "window")?;
        let raw = self.finishes_c();
        let (c_at, ldc, c_size) = match raw {
            true => (workspace_at(offsets.raw_c), n as i64, accumulator.size()),
            false => (c.values, c.ld, c.value_type.size()),
        };
        let b_size = b.value_type.size();
        let flags = i64::from(is_wide(packed.address, packed.ld, b_size))
            | i64::from(is_wide(c_at, ldc, c_size)) << 1
            | i64::from(raw) << 2;
        let matrix = MaskedMatrix {
            items: arrays.items.address(),
            parts: arrays.parts.address(),
            columns: arrays.columns.address(),
            masks: arrays.masks.address(),
            starts: arrays.starts.address(),
            values: arrays.values.address(),
            item_count: arrays.items.len() as i64,
            rows: arrays.row_count,
            order: self.order.as_ref().map_or(Address::NULL, |order| order.address()),
        };
        let join = Join {
            sums: workspace_at(offsets.sums),
            counters: cx.counters,
            part_count: arrays.parts.len() as i64,
            counter_count: arrays.cut,
        };
        let (shape, shared, kernel) = self.forms.of(n);
        let step = self.tiles_at_once().saturating_mul(shape.columns);
        for first in (0..n).step_by(step) {
            let end = n.min(first + step);
            let tiles = (end - first).div_ceil(shape.columns);
            let side = select::neighbours(tiles, accumulator.size() == 8);
            let blocks = blocks_of_grid(
                arrays.items.len().saturating_mul(side),
                "A: algorithm window has too many windows for one launch",
            )?;
            let dense = Dense {
                b: packed.address.offset(first * b_size),
                ldb: packed.ld,
                c: c_at.offset(first * c_size),
                ldc,
                n: (end - first) as i64,
                flags,
            };
            let grid = (blocks, tiles.div_ceil(side) as u32);
            // SAFETY: the operands are as their descriptors say, the layout is complete, and the workspace is
            // large enough for the pieces of these tiles.
            unsafe {
                launch!(kernel, (grid.0, grid.1), 32 * shape.warps, *shared, cx.stream;
                    matrix, dense, alpha, beta, join, side as i32)?;
            }
        }
        if raw {
            // SAFETY: the workspace holds all sums.
            unsafe {
                launch!(self.finish, (grid_x(c.rows)?, grid_y(n)), THREADS, 0, cx.stream;
                    c_at, c.values, 1i64, c.ld, c.rows, n as i64, alpha, beta)?;
            }
        }
        Ok(())
    }

    fn update_values(&mut self, cx: &Context, values: Address) -> Result<()> {
        let _entered = self.device.enter()?;
        let problem = SpmmProblem { a: self.problem.a.with_values(values), ..self.problem };
        if !self.arrays.refill(cx, &self.device, values)? {
            // The same pattern leads to the same rules.
            let (device, shared) = (&self.device, &SharedResults::new(&self.device));
            let analysis = Analysis { cx, device, problem: &problem, shared };
            (self.arrays, self.order) = arrange(&analysis, self.order.is_some(), self.rules)?;
        }
        self.problem = problem;
        Ok(())
    }

    fn layout(&self) -> LayoutInfo {
        LayoutInfo { kind: LayoutKind::Window, in_place: false, fill: 1.0 }
    }

    fn reorder(&self) -> Reorder {
        reorder_of(self.order.is_some())
    }

    fn details(&self) -> String {
        let Arrays { height, nnz, distinct, .. } = self.arrays;
        details(height, nnz as usize, distinct as usize, self.order.is_some())
    }
}

#[cfg(test)]
mod tests;

//! SpMM algorithm `window` for 16-bit values: C = alpha · op(A) · op(B) + beta · C on the windows of
//! src/format/window.rs by tensor cores (kernels/spmm/window.cuh). Analysis makes the windows on the device
//! (kernels/format/window.cu).
//!
//! Execution is one launch. A B or a C whose columns are contiguous goes through the workspace, by one more
//! launch each.

mod arrays;
pub(super) mod number;

use std::sync::Arc;

use self::arrays::Arrays;
use super::analysis::{reorder_of, Analysis, SharedResults};
use super::packing::{is_wide, Packing};
use super::parts::Join;
use super::{grid_x, grid_y, lines, product};
use crate::backend::cuda::check::blocks;
use crate::backend::cuda::convert::values;
use crate::backend::cuda::device::Device;
use crate::backend::cuda::launch::{launch, Kernel};
use crate::backend::cuda::layouts::same_layout;
use crate::backend::cuda::memory::DeviceBuffer;
use crate::backend::cuda::module::kinds::kernel_kinds;
use crate::backend::cuda::scalars::scalars;
use crate::backend::cuda::{result_name, types_name};
use crate::backend::{LayoutInfo, SpmmExecutor};
use crate::error::Result;
use crate::format::window::{details, fill_ratio, Rules, SHAPE};
use crate::matrix::DenseMatrix;
use crate::memory::Context;
use crate::problem::SpmmProblem;
use crate::select;
use crate::select::spmm::tiles;
use crate::select::spmm::window::Form::{Direct, Staged};
use crate::select::spmm::window::{form_of, forms, has_many_parts};
use crate::support::Types;
use crate::types::{Address, DataType, LayoutKind, Order, Reorder, ScalarsAt};

/// Threads of a block of kernels with one thread per element.
const THREADS: u32 = 256;

/// Layout of the matrix, laid out as the kernels' `Matrix`.
#[derive(Clone, Copy)]
#[repr(C)]
struct WindowMatrix {
    items: Address,
    parts: Address,
    columns: Address,
    tiles: Address,
    values: Address,
    stored: Address,
    item_count: i64,
    rows: i64,
    order: Address,
}
same_layout!(WindowMatrix = "spmm/window.cuh Matrix" { items, parts, columns, tiles, values, stored, item_count, rows, order });

/// Dense operands, laid out as the kernels' `Dense`, which both kinds of windows use.
#[derive(Clone, Copy)]
#[repr(C)]
pub(super) struct Dense {
    pub(super) b: Address,
    pub(super) ldb: i64,
    pub(super) c: Address,
    pub(super) ldc: i64,
    pub(super) n: i64,
    pub(super) flags: i64,
}
same_layout!(Dense = "spmm/windows.cuh Dense" { b, ldb, c, ldc, n, flags });

/// Variant of the kernels for one number of columns.
#[derive(Clone, Copy)]
struct Form {
    kernel: Kernel,
    /// Columns of C per block of threads.
    columns: usize,
    /// Threads per block.
    threads: u32,
    /// Items (windows or pieces of windows) per block.
    items: u32,
    /// Warps that share an item in the direct form; 0 for the staged form.
    sharing: u32,
    /// Bytes of dynamic shared memory.
    shared: u32,
}

/// Variants for one type of C, by columns of C, in the order of [`select::spmm::window::form_of`].
struct Forms([Form; 4]);

kernel_kinds! { "spmm/window" {
    DIRECT(String, usize, usize) = "direct" for [HALVES, [8, 16], [32, 64]];
    STAGED(String, usize, usize) = "staged" for [HALVES, [16, 32], [128, 256]], [HALVES, [64], [128]];
    STAGED_PARTS(String, usize, usize) = "staged_parts" for [HALVES, [16], [128, 256]];
} }

impl Forms {
    /// Loads the variants. `parts` is the number of items that are pieces of cut windows, and that of all
    /// items.
    fn load(device: &Device, types: Types, height: usize, sharing: u32, parts: [usize; 2]) -> Result<Self> {
        let staged = |columns: usize| {
            let (stages, warps) = staged_shape(height, columns);
            // Each stage has 32 rows of B and two blocks of A.
            let shared = stages * (32 * columns as u32 * 2 + height as u32 * 32 * 2);
            let kind = if has_many_parts(height, parts) { STAGED_PARTS } else { STAGED };
            let kernel = kind.load(device, (types_name(types), height, columns))?;
            kernel.allow_shared(shared)?;
            Ok(Form { kernel, columns, threads: 32 * warps, items: 1, sharing: 0, shared })
        };
        let direct = |columns: usize| {
            // All warps that share a window, or four warps with a window each.
            let warps = sharing.max(4);
            let sums = (height * columns * size_of::<f32>()) as u32;
            Ok(Form {
                kernel: DIRECT.load(device, (types_name(types), height, columns))?,
                columns,
                threads: 32 * warps,
                items: warps / sharing,
                sharing,
                shared: if sharing > 1 { warps * sums } else { 0 },
            })
        };
        let form = |form: select::spmm::window::Form| match form {
            Direct(columns) => direct(columns),
            Staged(columns) => staged(columns),
        };
        let [few, some, many, wide] = forms(height);
        Ok(Forms([form(few)?, form(some)?, form(many)?, form(wide)?]))
    }

    fn of(&self, n: usize) -> &Form {
        &self.0[form_of(n)]
    }
}

/// Numbers of stages and warps of the staged form (kernels/spmm/window.cu).
fn staged_shape(height: usize, columns: usize) -> (u32, u32) {
    match (height, columns) {
        (16, 128) => (2, 2),
        (32, 128) => (3, 4),
        _ => (2, 4),
    }
}

/// Workspace offsets, in bytes.
struct WindowWorkspaceOffsets {
    sums: usize,
    packed_b: usize,
    raw_c: usize,
    total: usize,
}

/// Executor of SpMM `window` with 16-bit values.
pub(super) struct WindowSpmm {
    device: Arc<Device>,
    problem: SpmmProblem,
    arrays: Arrays,
    rules: Rules,
    /// Row of C for each row of `arrays`, if the rows are clustered.
    order: Option<Arc<DeviceBuffer<u32>>>,
    /// Kernels that store C, or sums in the workspace if the columns of C are contiguous.
    forms: Forms,
    packing: Packing,
    finish: Kernel,
    refill: Kernel,
}

/// Chooses the rules by which the windows of a plan are made. Blocks.
fn rules(analysis: &Analysis<'_>, clusters: bool) -> Result<Rules> {
    let n = analysis.problem.n_hint.max(1) as usize;
    let multiprocessors = analysis.device.properties().multiprocessors as usize;
    Ok(select::spmm::window::rules(&analysis.window_counts(clusters, SHAPE)?, n, multiprocessors))
}

fn arrange(
    analysis: &Analysis<'_>,
    clusters: bool,
    rules: Rules,
) -> Result<(Arrays, Option<Arc<DeviceBuffer<u32>>>)> {
    let &Analysis { cx, device, .. } = analysis;
    analysis.with_window_rows(clusters, |from| {
        Ok((Arrays::build(cx, device, &from.rows, rules, from.positions)?, from.order.cloned()))
    })
}

/// Builds the executor. The context must be current.
pub(super) fn build_from(analysis: &Analysis<'_>, clusters: bool) -> Result<WindowSpmm> {
    WindowSpmm::new(analysis, clusters, rules(analysis, clusters)?)
}

impl WindowSpmm {
    fn new(analysis: &Analysis<'_>, clusters: bool, rules: Rules) -> Result<Self> {
        let &Analysis { device, problem, .. } = analysis;
        let (arrays, order) = arrange(analysis, clusters, rules)?;
        let types = problem.types;
        let mut stored = types;
        if problem.c_order == Order::Col {
            stored.y = DataType::R32F;
        }
        let parts = [arrays.parts.len(), arrays.items.len()];
        let forms = Forms::load(device, stored, arrays.height, arrays.sharing as u32, parts)?;
        Ok(WindowSpmm {
            device: Arc::clone(device),
            problem: *problem,
            packing: Packing::of_windows(device, problem, arrays.nnz)?,
            arrays,
            rules,
            order,
            forms,
            finish: super::FINISH.load(device, (result_name(types),))?,
            refill: values::scatter(device, types.a.size())?,
        })
    }

    fn finishes_c(&self) -> bool {
        self.problem.c_order == Order::Col
    }

    /// Number of tiles along N in one launch, which the counters for cut windows limit.
    fn tiles_at_once(&self) -> usize {
        tiles::at_once(self.arrays.cut as usize, tiles::COUNTERS)
    }

    /// Number of rows of C.
    fn rows(&self) -> i64 {
        let (rows, cols, _) = self.problem.a.shape();
        self.problem.op.shape(rows, cols).0
    }

    fn workspace_offsets(&self, n: usize) -> WindowWorkspaceOffsets {
        let form = self.forms.of(n);
        let tiles = n.div_ceil(form.columns).min(self.tiles_at_once());
        let part = [tiles, self.arrays.parts.len(), self.arrays.height, form.columns, size_of::<f32>()];
        let raw = match self.finishes_c() {
            true => product(&[self.rows() as usize, n, size_of::<f32>()]),
            false => 0,
        };
        let packed_b = lines(product(&part));
        let raw_c = packed_b.saturating_add(lines(self.packing.bytes(n)));
        WindowWorkspaceOffsets { sums: 0, packed_b, raw_c, total: raw_c.saturating_add(lines(raw)) }
    }
}

impl SpmmExecutor for WindowSpmm {
    fn workspace_bytes(&self, n: usize) -> usize {
        self.workspace_offsets(n).total
    }

    fn product(&self, cx: &Context, (alpha, beta): ScalarsAt, [b, _, c]: [&DenseMatrix; 3]) -> Result<()> {
        let _entered = self.device.enter()?;
        let (alpha, beta) = scalars(cx, DataType::R32F, alpha, beta)?;
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
            true => (workspace_at(offsets.raw_c), n as i64, size_of::<f32>()),
            false => (c.values, c.ld, c.value_type.size()),
        };
        let flags = i64::from(is_wide(packed.address, packed.ld, 2))
            | i64::from(is_wide(c_at, ldc, c_size)) << 1
            | i64::from(raw) << 2
            | i64::from(packed.padded) << 3;
        let matrix = WindowMatrix {
            items: arrays.items.address(),
            parts: arrays.parts.address(),
            columns: arrays.columns.address(),
            tiles: arrays.tiles.address(),
            values: arrays.values.address(),
            stored: arrays.stored.address(),
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
        let form = self.forms.of(n);
        let items = (arrays.items.len() as u64).div_ceil(u64::from(form.items)) as u32;
        let step = self.tiles_at_once().saturating_mul(form.columns);
        for first in (0..n).step_by(step) {
            let tiles = (n - first).min(step).div_ceil(form.columns) as u32;
            let end = n.min(first + step);
            let dense = Dense {
                b: packed.address.offset(first * 2),
                ldb: packed.ld,
                c: c_at.offset(first * c_size),
                ldc,
                n: (end - first) as i64,
                flags,
            };
            // SAFETY: the operands are as their descriptors say, the layout is complete, and the workspace is
            // large enough for the pieces of these tiles.
            unsafe {
                launch!(form.kernel, (items, tiles), form.threads, form.shared, cx.stream;
                    matrix, dense, alpha, beta, join, form.sharing as i32)?;
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
        match &self.arrays.slots {
            Some(slots) => {
                let count = self.arrays.nnz;
                // SAFETY: there is a slot among our values for each of the user's values.
                unsafe {
                    launch!(self.refill, blocks(&self.device, count), THREADS, 0, cx.stream;
                        values, slots.address(), count, self.arrays.values.address())?;
                }
            }
            None => {
                let (device, shared) = (&self.device, &SharedResults::new(&self.device));
                let analysis = Analysis { cx, device, problem: &problem, shared };
                (self.arrays, self.order) = arrange(&analysis, self.order.is_some(), self.rules)?;
            }
        }
        self.problem = problem;
        Ok(())
    }

    fn layout(&self) -> LayoutInfo {
        let fill = fill_ratio(self.arrays.values.len(), self.arrays.nnz as usize);
        LayoutInfo { kind: LayoutKind::Window, in_place: false, fill }
    }

    fn reorder(&self) -> Reorder {
        reorder_of(self.order.is_some())
    }

    fn details(&self) -> String {
        let Arrays { height, nnz, distinct, values, .. } = &self.arrays;
        details(*height, *nnz as usize, *distinct as usize, values.len(), self.order.is_some())
    }
}

#[cfg(test)]
mod tests;

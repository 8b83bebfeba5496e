//! SpMM algorithm `window`: C = alpha · op(A) · op(B) + beta · C on the windows of src/format/window.rs by tensor
//! cores. The windows have one of two kinds of tiles: [`DenseTiles`] for 16-bit values, [`MaskedTiles`] for values
//! of 4 and 8 bytes. Analysis makes them on the device.
//!
//! Execution is one launch. A B or a C whose columns are contiguous goes through the workspace, by one more
//! launch each.

mod arrays;
mod dense_tiles;
mod masked_tiles;
pub(super) mod number;

use std::sync::Arc;

use self::arrays::{Arrays, TileStore};
pub(super) use self::dense_tiles::DenseTiles;
pub(super) use self::masked_tiles::MaskedTiles;
use super::analysis::{reorder_of, Analysis, SharedResults};
use super::packing::{is_wide, Packing};
use super::{finish_columns, saturating_product, whole_lines};
use crate::backend::cuda::device::Device;
use crate::backend::cuda::launch::{launch_product, Kernel};
use crate::backend::cuda::layouts::kernel_structs;
use crate::backend::cuda::memory::DeviceBuffer;
use crate::backend::cuda::result_name;
use crate::backend::cuda::scalars::scalars;
use crate::backend::{DenseExecutor, LayoutInfo};
use crate::error::Result;
use crate::format::window::Rules;
use crate::matrix::DenseMatrix;
use crate::memory::Context;
use crate::problem::SpmmProblem;
use crate::select::spmm::prefetch::Operands;
use crate::types::{Address, LayoutKind, Order, Reorder, ScalarsAt};

kernel_structs! {
    /// Dense operands, laid out as the kernels' `Dense`, which those of both kinds of tiles take.
    struct Dense = "spmm/windows.cuh Dense" {
        b: Address,
        ldb: i64,
        c: Address,
        ldc: i64,
        n: i64,
        flags: i64,
    }
}

/// Variant of the kernels for one number of columns.
#[derive(Clone, Copy)]
pub(in crate::backend::cuda::spmm) struct Form {
    kernel: Kernel,
    /// Columns of C per block of threads.
    columns: usize,
    /// Threads per block.
    threads: u32,
    /// Items (windows or parts of windows) per block.
    items: u32,
    /// Warps that share an item in the direct form of dense tiles; else 0.
    sharing: u32,
    /// Bytes of dynamic shared memory.
    shared: u32,
}

/// Workspace offsets, in bytes.
struct WindowWorkspaceOffsets {
    sums: usize,
    packed_b: usize,
    raw_c: usize,
    total: usize,
}

/// Executor of SpMM `window`.
pub(super) struct WindowSpmm<T: TileStore> {
    device: Arc<Device>,
    problem: SpmmProblem,
    arrays: Arrays<T>,
    rules: Rules,
    /// Row of C for each row of `arrays`, if the rows are clustered.
    order: Option<Arc<DeviceBuffer<u32>>>,
    /// Kernels, which store sums in the workspace if the columns of C are contiguous.
    forms: Vec<Form>,
    packing: Packing,
    finish: Kernel,
}

/// Arrays, and row of C for each row of them if the rows are clustered.
type Ordered<T> = (Arrays<T>, Option<Arc<DeviceBuffer<u32>>>);

fn make_arrays<T: TileStore>(analysis: &Analysis<'_>, clusters: bool, rules: Rules) -> Result<Ordered<T>> {
    let &Analysis { cx, problem, .. } = analysis;
    let size = problem.types.a.size();
    analysis.with_window_rows(clusters, |from| {
        Ok((Arrays::build(cx, &from.rows, size, rules, from.positions)?, from.order.cloned()))
    })
}

impl<T: TileStore> WindowSpmm<T> {
    /// Builds the executor.
    pub(super) fn build(analysis: &Analysis<'_>, clusters: bool) -> Result<Self> {
        Self::new(analysis, clusters, T::rules(analysis, clusters)?)
    }

    fn new(analysis: &Analysis<'_>, clusters: bool, rules: Rules) -> Result<Self> {
        let &Analysis { cx, problem, .. } = analysis;
        let device = cx.device;
        let (arrays, order) = make_arrays(analysis, clusters, rules)?;
        Ok(WindowSpmm {
            device: Arc::clone(device),
            problem: *problem,
            forms: T::forms(device, problem, &arrays, &rules)?,
            packing: T::packing(device, problem, &arrays)?,
            finish: super::kernels::FINISH.load(device, (result_name(problem.types),))?,
            arrays,
            rules,
            order,
        })
    }

    fn form(&self, n: usize) -> &Form {
        &self.forms[T::form_of(&self.forms, n)]
    }

    fn finishes_c(&self) -> bool {
        self.problem.c_order == Order::Col
    }

    fn workspace_offsets(&self, n: usize) -> WindowWorkspaceOffsets {
        let acc = self.problem.types.compute.scalar().size();
        let Arrays { lists, height, .. } = &self.arrays;
        let columns = self.form(n).columns;
        let tiles = n.div_ceil(columns).min(lists.tiles_at_once());
        let sums = saturating_product(&[tiles, lists.parts.len(), *height, columns, acc]);
        let raw = match self.finishes_c() {
            true => saturating_product(&[self.problem.a.shape_of(self.problem.op).0 as usize, n, acc]),
            false => 0,
        };
        let packed_b = whole_lines(sums);
        let raw_c = packed_b.saturating_add(whole_lines(self.packing.bytes(n)));
        WindowWorkspaceOffsets { sums: 0, packed_b, raw_c, total: raw_c.saturating_add(whole_lines(raw)) }
    }
}

impl<T: TileStore> DenseExecutor<DenseMatrix> for WindowSpmm<T> {
    fn workspace_bytes(&self, n: usize) -> usize {
        self.workspace_offsets(n).total
    }

    fn product(&self, cx: &Context, (alpha, beta): ScalarsAt, [b, _, c]: [&DenseMatrix; 3]) -> Result<()> {
        let cx = &self.device.call(cx)?;
        let accumulator = self.problem.types.compute.scalar();
        let (alpha, beta) = scalars(cx, accumulator, alpha, beta)?;
        let (n, arrays) = (c.cols as usize, &self.arrays);
        if arrays.row_count == 0 || n == 0 {
            return Ok(());
        }
        let offsets = self.workspace_offsets(n);
        cx.workspace.require(offsets.total)?;
        let workspace_at = |offset: usize| cx.workspace.address.offset(offset);
        let packed = self.packing.rows(cx, b, n, workspace_at(offsets.packed_b), "window")?;
        let raw = self.finishes_c();
        let (c_at, ldc, c_size) = match raw {
            true => (workspace_at(offsets.raw_c), n as i64, accumulator.size()),
            false => (c.values, c.ld, c.value_type.size()),
        };
        let b_size = b.value_type.size();
        let flags = i64::from(is_wide(packed.address, packed.ld, b_size))
            | i64::from(is_wide(c_at, ldc, c_size)) << 1
            | i64::from(raw) << 2
            | T::flags(&packed);
        let order = self.order.as_ref().map_or(Address::NULL, |order| order.address());
        let operands = Operands {
            rows: arrays.row_count,
            nnz: arrays.nnz,
            a_bytes: arrays.values.bytes() + arrays.columns.bytes(),
            b_rows: self.problem.a.shape_of(self.problem.op).1,
            b_row_bytes: packed.ld as usize * b_size,
            b_size,
            n,
            l2_bytes: self.device.properties().l2_bytes,
        };
        // With alpha = 0 nothing is read; a copy of B, which is padded, has just been written to L2.
        let prefetches = !packed.padded && alpha.is_known_and_not_zero() && operands.of_window();
        let matrix = arrays.tiles.matrix(arrays, order, prefetches.then_some(&operands));
        let join = arrays.lists.join(cx, workspace_at(offsets.sums));
        let form = self.form(n);
        let step = arrays.lists.tiles_at_once().saturating_mul(form.columns);
        for first in (0..n).step_by(step) {
            let end = n.min(first + step);
            let tiles = (end - first).div_ceil(form.columns);
            let ((blocks, deep), last) = T::grid(form, &self.problem, arrays.lists.items.len(), tiles)?;
            let dense = Dense {
                b: packed.address.offset(first * b_size),
                ldb: packed.ld,
                c: c_at.offset(first * c_size),
                ldc,
                n: (end - first) as i64,
                flags,
            };
            // SAFETY: the operands are as their descriptors say, the layout is complete, and the workspace is
            // large enough for the parts of these tiles.
            unsafe {
                launch_product!(form.kernel, (blocks, deep), form.threads, form.shared, cx.stream;
                    matrix, dense, alpha, beta, join, last)?;
            }
        }
        match raw {
            true => finish_columns(cx, &self.finish, c_at, c, (alpha, beta)),
            false => Ok(()),
        }
    }

    fn update_values(&mut self, cx: &Context, values: Address) -> Result<()> {
        let cx = &self.device.call(cx)?;
        let problem = SpmmProblem { a: self.problem.a.with_values(values), ..self.problem };
        match &self.arrays.slots {
            Some(slots) => slots.scatter(cx, values, self.arrays.values.address())?,
            None => {
                // The same pattern leads to the same rules.
                let shared = &SharedResults::new(cx.device);
                let analysis = Analysis { cx, problem: &problem, shared };
                (self.arrays, self.order) = make_arrays(&analysis, self.order.is_some(), self.rules)?;
            }
        }
        self.problem = problem;
        Ok(())
    }

    fn layout(&self) -> LayoutInfo {
        LayoutInfo { kind: LayoutKind::Window, in_place: false, fill: T::fill_ratio(&self.arrays) }
    }

    fn reorder(&self) -> Reorder {
        reorder_of(self.order.is_some())
    }

    fn details(&self) -> String {
        T::details(&self.arrays, self.order.is_some())
    }
}

#[cfg(test)]
mod tests;

//! Dense tiles of windows with 16-bit values (src/format/window.rs), filled by kernels/format/window.cu and
//! multiplied by kernels/spmm/window.cuh.

use super::arrays::{Arrays, TileStore};
use super::number::{Numbering, FILL};
use super::Form;
use crate::backend::cuda::device::{Device, DeviceCall};
use crate::backend::cuda::launch::launch;
use crate::backend::cuda::layouts::kernel_structs;
use crate::backend::cuda::memory::{filled_members, DeviceBuffer};
use crate::backend::cuda::module::kinds::kernel_kinds;
use crate::backend::cuda::operand::Rows;
use crate::backend::cuda::prefetch::Prefetch;
use crate::backend::cuda::spmm::analysis::Analysis;
use crate::backend::cuda::spmm::packing::{Packed, Packing};
use crate::backend::cuda::types_name;
use crate::error::{Error, Result};
use crate::format::window::{details, fill_ratio, tile_values, Rules, WindowShape, LANES, SHAPE};
use crate::memory::Context;
use crate::problem::SpmmProblem;
use crate::select::spmm::prefetch::Operands;
use crate::select::spmm::window as select;
use crate::select::spmm::window::Form::{Direct, Staged};
use crate::types::{Address, DataType, Order};

kernel_structs! {
    /// Layout of the matrix, laid out as the kernels' `Matrix`.
    pub(crate) struct WindowMatrix = "spmm/window.cuh Matrix" {
        items: Address,
        parts: Address,
        columns: Address,
        tiles: Address,
        values: Address,
        stored: Address,
        item_count: i64,
        rows: i64,
        order: Address,
        prefetched: Prefetch,
    }
}

kernel_kinds! { "spmm/window" {
    DIRECT(String, usize, usize) = "direct" for [HALVES, [8, 16], [32, 64]];
    STAGED(String, usize, usize) = "staged" for [HALVES, [16, 32], [128, 256]], [HALVES, [64], [128]];
    STAGED_PARTS(String, usize, usize) = "staged_parts" for [HALVES, [16], [128, 256]];
} }

/// Numbers of stages and warps of the staged form (kernels/spmm/window.cu).
fn staged_shape(height: usize, columns: usize) -> (u32, u32) {
    match (height, columns) {
        (16, 128) => (2, 2),
        (32, 128) => (3, 4),
        _ => (2, 4),
    }
}

/// Arrays of dense tiles besides their values.
pub(in crate::backend::cuda::spmm) struct DenseTiles {
    pub(super) tiles: DeviceBuffer<u32>,
    pub(super) stored: DeviceBuffer<u8>,
}
filled_members!(DenseTiles { tiles, stored });

impl TileStore for DenseTiles {
    type Value = u16;
    type Matrix = WindowMatrix;
    const NUMBERED: WindowShape = SHAPE;

    fn rules(analysis: &Analysis<'_>, clusters: bool) -> Result<Rules> {
        let n = analysis.problem.n_hint.max(1) as usize;
        let multiprocessors = analysis.cx.device.properties().multiprocessors as usize;
        Ok(select::rules(&analysis.window_counts(clusters, SHAPE)?, n, multiprocessors))
    }

    fn check_entries(nnz: i64) -> Result<()> {
        match u32::try_from(nnz) {
            Ok(_) => Ok(()),
            Err(_) => {
                Err(Error::unsupported(format!("A: algorithm window takes at most {} entries", u32::MAX)))
            }
        }
    }

    fn new(
        cx: &Context,
        found: &Numbering,
        height: usize,
        _: (usize, usize),
    ) -> Result<(Self, DeviceBuffer<u16>)> {
        let (blocks, count) = (found.blocks as usize, found.tiles as usize);
        let tiles = DeviceBuffer::<u32>::new(cx, if height > 16 { blocks } else { 0 })?;
        let values = DeviceBuffer::<u16>::zeroed(cx, count * tile_values(height))?;
        let stored = DeviceBuffer::<u8>::zeroed(cx, count * LANES)?;
        Ok((DenseTiles { tiles, stored }, values))
    }

    fn empty(cx: &Context) -> Result<Self> {
        Ok(DenseTiles { tiles: DeviceBuffer::new(cx, 0)?, stored: DeviceBuffer::new(cx, 0)? })
    }

    fn fill(
        &self,
        cx: &DeviceCall<'_>,
        rows: &Rows,
        found: &Numbering,
        (height, _): (usize, usize),
        [columns, values, from, to]: [Address; 4],
    ) -> Result<()> {
        let kernel = FILL.load(cx.device, (rows.widths(),))?;
        let threads = select::threads_of(rows.nnz, found.windows);
        // SAFETY: the arrays have the lengths that the numbering says, with nnz 16-bit values.
        unsafe {
            launch!(kernel, found.windows as u32, threads, 0, cx.stream;
                rows.offsets, rows.indices, rows.values, rows.base, rows.rows, rows.nnz, found.windows,
                height as i32, found.numbers(), columns, self.tiles.address(), values, self.stored.address(),
                from, to)
        }
    }

    fn matrix(&self, arrays: &Arrays<Self>, order: Address, prefetched: Option<&Operands>) -> WindowMatrix {
        let prefetched = prefetched.map_or(Prefetch::NONE, |operands| {
            Prefetch::new([operands.b_bytes(), arrays.values.bytes(), arrays.columns.bytes(), 0])
        });
        WindowMatrix {
            items: arrays.lists.items.address(),
            parts: arrays.lists.parts.address(),
            columns: arrays.columns.address(),
            tiles: self.tiles.address(),
            values: arrays.values.address(),
            stored: self.stored.address(),
            item_count: arrays.lists.items.len() as i64,
            rows: arrays.row_count,
            order,
            prefetched,
        }
    }

    /// Loads the variants for one type of C, in the order of [`select::form_of`]. Where the columns of C are
    /// contiguous they store sums in the workspace.
    fn forms(
        device: &Device,
        problem: &SpmmProblem,
        arrays: &Arrays<Self>,
        rules: &Rules,
    ) -> Result<Vec<Form>> {
        let mut types = problem.types;
        if problem.c_order == Order::Col {
            types.y = DataType::R32F;
        }
        let (height, sharing) = (arrays.height, rules.sharing as u32);
        let parts = [arrays.lists.parts.len(), arrays.lists.items.len()];
        let form = |form| match form {
            Staged(columns) => {
                let (stages, warps) = staged_shape(height, columns);
                // Each stage has 32 rows of B and two blocks of A.
                let shared = stages * (32 * columns as u32 * 2 + height as u32 * 32 * 2);
                let kind = if select::has_many_parts(height, parts) { STAGED_PARTS } else { STAGED };
                let kernel = kind.load(device, (types_name(types), height, columns))?;
                kernel.allow_shared(shared)?;
                Ok(Form { kernel, columns, threads: 32 * warps, items: 1, sharing: 0, shared })
            }
            Direct(columns) => {
                let kernel = DIRECT.load(device, (types_name(types), height, columns))?;
                // All warps that share a window, or four warps with a window each.
                let warps = sharing.max(4);
                let sums = (height * columns * size_of::<f32>()) as u32;
                let shared = if sharing > 1 { warps * sums } else { 0 };
                Ok(Form { kernel, columns, threads: 32 * warps, items: warps / sharing, sharing, shared })
            }
        };
        select::forms(height).into_iter().map(form).collect()
    }

    fn form_of(_: &[Form], n: usize) -> usize {
        select::form_of(n)
    }

    fn grid(form: &Form, _: &SpmmProblem, items: usize, tiles: usize) -> Result<((u32, u32), i32)> {
        let blocks = (items as u64).div_ceil(u64::from(form.items)) as u32;
        Ok(((blocks, tiles as u32), form.sharing as i32))
    }

    fn packing(device: &Device, problem: &SpmmProblem, arrays: &Arrays<Self>) -> Result<Packing> {
        Packing::of_windows(device, problem, arrays.nnz)
    }

    fn flags(b: &Packed) -> i64 {
        i64::from(b.padded) << 3
    }

    fn fill_ratio(arrays: &Arrays<Self>) -> f64 {
        fill_ratio(arrays.values.len(), arrays.nnz as usize)
    }

    fn details(arrays: &Arrays<Self>, clustered: bool) -> String {
        let Arrays { height, nnz, distinct, values, .. } = arrays;
        details(*height, *nnz as usize, *distinct as usize, values.len(), clustered)
    }
}

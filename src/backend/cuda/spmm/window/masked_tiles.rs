//! Masked tiles of windows with values of 4 and 8 bytes (src/format/masked_window.rs), filled by
//! kernels/format/masked_window.cu and multiplied by kernels/spmm/masked_f32.cuh and kernels/spmm/masked_f64.cuh.

use super::arrays::{Arrays, TileStore};
use super::number::Numbering;
use super::Form;
use crate::backend::cuda::device::{Device, DeviceCall};
use crate::backend::cuda::launch::{blocks_of_grid, launch};
use crate::backend::cuda::layouts::kernel_structs;
use crate::backend::cuda::memory::{self, filled_members, DeviceBuffer};
use crate::backend::cuda::module::kinds::kernel_kinds;
use crate::backend::cuda::operand::{Rows, Widths};
use crate::backend::cuda::spmm::analysis::Analysis;
use crate::backend::cuda::spmm::packing::{Packed, Packing};
use crate::backend::cuda::types_name;
use crate::error::Result;
use crate::format::masked_window::{check_entries, details, Rules, BLOCK, SHAPE};
use crate::format::window::{WindowShape, HEIGHTS};
use crate::memory::Context;
use crate::problem::SpmmProblem;
use crate::select::spmm::masked_window as select;
use crate::select::spmm::prefetch::Operands;
use crate::select::spmm::window::threads_for;
use crate::support::Types;
use crate::types::{Address, ComputeType};

/// Bytes of a pack, in which values are read.
const PACK: usize = 16;

kernel_structs! {
    /// Layout of the matrix, laid out as the kernels' `Matrix`.
    pub(crate) struct MaskedMatrix = "spmm/masked.cuh Matrix" {
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

    /// Arrays to fill, laid out as the kernels' `Arrays`.
    struct Filled = "format/masked_window.cu Arrays" {
        columns: Address,
        masks: Address,
        starts: Address,
        values: Address,
        from: Address,
        slots: Address,
    }
}

/// Variant of the kernels: a block of threads multiplies one item (a window or a part of one) for so many
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
    "format/masked_window" { FILL(usize, Widths) = "fill" for [[32, 64], widths()]; }
    "spmm/masked_f64" {
        DOUBLES(String, usize, usize) = "product"
            for [["f64", "f32f64"], [16, 32, 64], [8, 32]], [["f64", "f32f64"], [16, 64], [64]],
                [["f64", "f32f64"], [32], [128]];
    }
    "spmm/masked_f32" { SINGLES(String, usize, usize) = "product" for [["f32", "tf32"], [16], [8, 32, 64, 128]]; }
}

/// Arrays of masked tiles besides their values.
pub(in crate::backend::cuda::spmm) struct MaskedTiles {
    masks: DeviceBuffer<u64>,
    starts: DeviceBuffer<u32>,
}
filled_members!(MaskedTiles { masks, starts });

impl TileStore for MaskedTiles {
    /// Values are bytes, padded to a multiple of a pack.
    type Value = u8;
    type Matrix = MaskedMatrix;
    /// For numbering columns only: the masks replace the information which groups of rows have a tile, so one
    /// group covers any window.
    const NUMBERED: WindowShape = WindowShape { block: BLOCK, group: HEIGHTS[3] };

    fn rules(analysis: &Analysis<'_>, clusters: bool) -> Result<Rules> {
        let n = analysis.problem.n_hint.max(1) as usize;
        match analysis.problem.types.compute {
            ComputeType::R64F => Ok(select::rules_of_doubles(&analysis.window_counts(clusters, SHAPE)?, n)),
            _ => Ok(select::rules_of_singles(n)),
        }
    }

    fn check_entries(nnz: i64) -> Result<()> {
        check_entries(nnz as usize)
    }

    fn new(
        cx: &Context,
        found: &Numbering,
        height: usize,
        (nnz, size): (usize, usize),
    ) -> Result<(Self, DeviceBuffer<u8>)> {
        let count = found.blocks as usize * (height / BLOCK);
        let masks = DeviceBuffer::<u64>::zeroed(cx, count)?;
        let starts = DeviceBuffer::<u32>::new(cx, count + 1)?;
        let values = DeviceBuffer::<u8>::new(cx, (nnz * size).next_multiple_of(PACK))?;
        // Kernels copy whole packs; nothing uses the bytes behind the last value.
        memory::zero(values.at(nnz * size), values.len() - nnz * size, cx.stream)?;
        Ok((MaskedTiles { masks, starts }, values))
    }

    fn empty(cx: &Context) -> Result<Self> {
        Ok(MaskedTiles { masks: DeviceBuffer::new(cx, 0)?, starts: DeviceBuffer::zeroed(cx, 1)? })
    }

    fn fill(
        &self,
        cx: &DeviceCall<'_>,
        rows: &Rows,
        found: &Numbering,
        (height, size): (usize, usize),
        [columns, values, from, slots]: [Address; 4],
    ) -> Result<()> {
        let (masks, starts) = (self.masks.address(), self.starts.address());
        let arrays = Filled { columns, masks, starts, values, from, slots };
        let kernel = FILL.load(cx.device, (8 * size, rows.widths()))?;
        // SAFETY: the arrays have the lengths that the numbering says, with nnz values of this size.
        unsafe {
            launch!(kernel, found.windows as u32, threads_for(rows.nnz / found.windows), 0, cx.stream;
                rows.offsets, rows.indices, rows.values, rows.base, rows.rows, rows.nnz, found.windows,
                height as i32, found.numbers(), arrays)
        }
    }

    fn matrix(&self, arrays: &Arrays<Self>, order: Address, _: Option<&Operands>) -> MaskedMatrix {
        MaskedMatrix {
            items: arrays.lists.items.address(),
            parts: arrays.lists.parts.address(),
            columns: arrays.columns.address(),
            masks: self.masks.address(),
            starts: self.starts.address(),
            values: arrays.values.address(),
            item_count: arrays.lists.items.len() as i64,
            rows: arrays.row_count,
            order,
        }
    }

    fn forms(device: &Device, problem: &SpmmProblem, arrays: &Arrays<Self>, _: &Rules) -> Result<Vec<Form>> {
        let types = problem.types;
        let cols = problem.a.shape_of(problem.op).1;
        let sizes = (arrays.nnz as usize, arrays.distinct as usize, cols as usize);
        let most = select::widest_tile(types, sizes, device.properties().l2_bytes);
        let (kind, name, shapes): (_, _, &[MaskedKernelShape]) = match types.compute {
            ComputeType::R64F => (DOUBLES, types_name(types), &F64),
            ComputeType::Tf32 => (SINGLES, "tf32".to_string(), &TF32),
            _ => (SINGLES, types_name(types), &F32),
        };
        let load = |shape: &MaskedKernelShape| {
            let (columns, shared) = (shape.columns, shape.shared(&types));
            let kernel = kind.load(device, (name.clone(), shape.height, columns))?;
            kernel.allow_shared(shared)?;
            // All operands but C go through shared memory.
            kernel.prefer_shared()?;
            Ok(Form { kernel, columns, threads: 32 * shape.warps, items: 1, sharing: 0, shared })
        };
        let wanted = shapes.iter().filter(|shape| shape.height == arrays.height && shape.columns <= most);
        wanted.map(load).collect()
    }

    fn form_of(forms: &[Form], n: usize) -> usize {
        select::form_of(forms.iter().map(|form| form.columns), n)
    }

    fn grid(_: &Form, problem: &SpmmProblem, items: usize, tiles: usize) -> Result<((u32, u32), i32)> {
        let side = select::neighbours(tiles, problem.types.compute.scalar().size() == 8);
        let blocks = blocks_of_grid(
            items.saturating_mul(side),
            "A: algorithm window has too many windows for one launch",
        )?;
        Ok(((blocks, tiles.div_ceil(side) as u32), side as i32))
    }

    fn packing(device: &Device, problem: &SpmmProblem, arrays: &Arrays<Self>) -> Result<Packing> {
        Packing::new(device, problem, arrays.distinct)
    }

    fn flags(_: &Packed) -> i64 {
        0
    }

    fn fill_ratio(_: &Arrays<Self>) -> f64 {
        1.0
    }

    fn details(arrays: &Arrays<Self>, clustered: bool) -> String {
        details(arrays.height, arrays.nnz as usize, arrays.distinct as usize, clustered)
    }
}

#[cfg(test)]
mod layout_tests;
#[cfg(test)]
mod product_tests;

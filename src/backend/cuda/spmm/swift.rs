//! SpMM algorithm `swift`: C = alpha · op(A) · op(B) + beta · C on the columns of src/format/swift.rs, in
//! fp32 and fp64.
//!
//! There are two forms. Blocks (kernels/spmm/swift.cuh) are the paper's: one launch clears the sums, which
//! are in the workspace, one adds segments and pieces to them by atomics, so that the bits differ from run to
//! run, and one computes alpha · sums + beta · C. (Products are not scaled by alpha earlier, since alpha
//! times a part of a sum may overflow where alpha times the sum does not.) Where alpha is 1 or 0 and the rows
//! of C are contiguous, the first launch computes beta · C, the second adds to that, and there is no third.
//! Bands (kernels/spmm/swift_bands.cuh) are one launch without atomics, for deterministic mode. In both forms
//! a B whose columns are contiguous goes through the workspace by one more launch.

mod build;

use std::sync::Arc;

use build::{with_columns, BandArrays, BlockArrays};

use super::packing::{is_wide, Packed, Packing};
use super::{finish_c, saturating_product, whole_lines, Strides};
use crate::backend::cuda::device::{Device, DeviceCall};
use crate::backend::cuda::launch::{blocks_of_grid, launch, Kernel};
use crate::backend::cuda::layouts::kernel_structs;
use crate::backend::cuda::module::kinds::kernel_kinds;
use crate::backend::cuda::scalars::{scalars, Scalar};
use crate::backend::cuda::types_name;
use crate::backend::{DenseExecutor, LayoutInfo};
use crate::error::Result;
use crate::format::swift::bands::ROWS;
use crate::format::swift::{LANES, TOGETHER};
use crate::matrix::DenseMatrix;
use crate::memory::Context;
use crate::problem::SpmmProblem;
use crate::select::grids;
use crate::select::spmm::copies::PACK;
use crate::select::spmm::{swift as select, tiles};
use crate::types::{Address, LayoutKind, ScalarsAt};

/// Threads of a block of the kernels that scale and finish C.
const THREADS: u32 = 256;
/// Bands per block of threads (WARPS of kernels/spmm/swift_bands.cuh).
const WARPS: usize = 4;
/// Lanes per group: of kernels that add packs, which exist for fp32 only, and of kernels that add single
/// elements, for fp32 and fp64.
const GROUPS: &[usize] = &[8, 16, 32];
const SINGLES: &[usize] = &[4, 32];
const SINGLES_F64: &[usize] = &[4, 8, 16, 32];

kernel_kinds! { "spmm/swift" {
    PRODUCT(String, usize, usize) = "product"
        for [["f32"], [4], GROUPS.to_vec()], [["f32"], [1], SINGLES.to_vec()], [["f64"], [1], SINGLES_F64.to_vec()];
    FINISH(String) = "finish" for [["f32", "f64"]];
    SCALE(String) = "scale" for [["f32", "f64"]];
    BANDS(String, usize) = "bands" for [["f32"], [1, 4]], [["f64"], [1, 2]];
} }

/// Kernel of form blocks, with the lanes of a group and the columns of C that a group computes.
#[derive(Clone, Copy)]
struct Group {
    lanes: usize,
    columns: usize,
    kernel: Kernel,
}

kernel_structs! {
    /// Layout of form blocks, laid out as the kernels' `Matrix`.
    struct SwiftMatrix = "spmm/swift.cuh Matrix" {
        order: Address,
        columns: Address,
        values: Address,
        rows: Address,
        positions: Address,
        offsets: Address,
        pieces: Address,
        blocks: i64,
        piece_count: i64,
        cols: i64,
    }

    /// Dense operands, laid out as the kernels' `Dense`.
    struct Dense = "spmm/swift.cuh Dense" {
        b: Address,
        ldb: i64,
        c: Address,
        ldc: i64,
        n: i64,
    }

    /// Layout of form bands, laid out as the kernels' `Bands`.
    struct Bands = "spmm/swift_bands.cuh Bands" {
        items: Address,
        parts: Address,
        columns: Address,
        values: Address,
        rows: Address,
        item_count: i64,
        row_count: i64,
    }

    /// Destination C of form bands, laid out as the kernels' `Out`.
    struct Out = "spmm/swift_bands.cuh Out" {
        c: Address,
        row_stride: i64,
        col_stride: i64,
    }
}

/// Layout and kernels of either form. A plan has one, so the size of the enum does not matter.
#[allow(clippy::large_enum_variant)]
enum Form {
    Blocks {
        arrays: BlockArrays,
        /// Empty if packs cannot be added.
        packs: Vec<Group>,
        singles: Vec<Group>,
        scale: Kernel,
        finish_rows: Kernel,
        finish_columns: Kernel,
    },
    Bands {
        arrays: BandArrays,
        packs: Kernel,
        singles: Kernel,
    },
}

/// Executor of SpMM `swift`.
pub(super) struct SwiftSpmm {
    device: Arc<Device>,
    problem: SpmmProblem,
    deterministic: bool,
    /// Numbers of rows and columns of op(A).
    shape: (i64, i64),
    form: Form,
    packing: Packing,
}

/// Builds the executor. If `deterministic`, its products have the same bits from run to run.
pub(super) fn build(cx: &DeviceCall<'_>, problem: &SpmmProblem, deterministic: bool) -> Result<SwiftSpmm> {
    let name = || types_name(problem.types);
    let pack = PACK / problem.types.a.size();
    let form = if deterministic {
        Form::Bands {
            arrays: with_columns(cx, problem, |columns| BandArrays::build(cx, columns))?,
            packs: BANDS.load(cx.device, (name(), pack))?,
            singles: BANDS.load(cx.device, (name(), 1))?,
        }
    } else {
        let groups = |pack: usize, lanes: &[usize]| -> Result<Vec<Group>> {
            let group = |&lanes: &usize| {
                Ok(Group {
                    lanes,
                    columns: lanes * pack,
                    kernel: PRODUCT.load(cx.device, (name(), pack, lanes))?,
                })
            };
            lanes.iter().map(group).collect()
        };
        let (packs, singles) = match pack {
            4 => (groups(4, GROUPS)?, groups(1, SINGLES)?),
            _ => (Vec::new(), groups(1, SINGLES_F64)?),
        };
        Form::Blocks {
            arrays: with_columns(cx, problem, |columns| BlockArrays::build(cx, columns))?,
            packs,
            singles,
            scale: SCALE.load(cx.device, (name(),))?,
            finish_rows: FINISH.load(cx.device, (name(),))?,
            finish_columns: super::kernels::FINISH.load(cx.device, (name(),))?,
        }
    };
    let (rows, cols, _) = problem.a.shape();
    Ok(SwiftSpmm {
        device: Arc::clone(cx.device),
        problem: *problem,
        deterministic,
        shape: problem.op.shape(rows, cols),
        form,
        // Unaligned rows are read by single elements and need no copy.
        packing: Packing::new(cx.device, problem, 0)?,
    })
}

/// Checks the number of blocks of a launch.
fn grid(count: usize) -> Result<u32> {
    blocks_of_grid(count, "A: it has more blocks than one launch can take")
}

/// Scalars, B and C of a product.
struct Operands {
    alpha: Scalar,
    beta: Scalar,
    b: Packed,
    c: Address,
    c_row: i64,
    c_col: i64,
    n: usize,
}

impl SwiftSpmm {
    fn size(&self) -> usize {
        self.problem.types.a.size()
    }

    /// Returns whether the columns of C are contiguous; a C of one column counts as stored by rows.
    fn is_by_columns(&self, n: usize) -> bool {
        n > 1 && Strides::new(self.problem.c_order, false, 0).col != 1
    }

    /// Bytes of the sums, behind which the copy of B begins.
    fn sums_bytes(&self, n: usize) -> usize {
        whole_lines(match &self.form {
            Form::Blocks { .. } => saturating_product(&[self.shape.0 as usize, n, self.size()]),
            Form::Bands { arrays, .. } => {
                // Columns of the wider tiles; the narrower ones need no more.
                let columns = LANES * PACK / self.size();
                let most = arrays.lists.tiles_at_once().saturating_mul(columns);
                let all = n.div_ceil(columns).saturating_mul(columns).min(most);
                saturating_product(&[arrays.lists.parts.len(), ROWS, all, self.size()])
            }
        })
    }

    fn by_blocks(&self, cx: &Context, arrays: &BlockArrays, o: &Operands) -> Result<()> {
        let Form::Blocks { packs, singles, scale, finish_rows, finish_columns, .. } = &self.form else {
            unreachable!("it has blocks")
        };
        let (n, size, pack) = (o.n, self.size(), PACK / self.size());
        let by_columns = self.is_by_columns(n);
        // If alpha is 0, nothing is added.
        let in_place = !by_columns && (o.alpha.is(1.0) || o.alpha.is(0.0));
        let (c, ldc, beta) = match in_place {
            true => (o.c, o.c_row, o.beta),
            false => (cx.workspace.address, n as i64, Scalar::real(self.problem.types.compute.scalar(), 0.0)),
        };
        // Rows without gaps are treated as one row.
        let rows = self.shape.0;
        let (runs, each) = if ldc == n as i64 { (1, rows * n as i64) } else { (rows, n as i64) };
        let vector = is_wide(c, if runs == 1 { 0 } else { ldc }, size) && each % pack as i64 == 0;
        let elements = if vector { rows * n as i64 / pack as i64 } else { rows * n as i64 };
        let multiprocessors = self.device.properties().multiprocessors;
        let blocks = |elements: i64| grids::blocks(elements as u64, THREADS.into(), multiprocessors);
        // SAFETY: C is as its descriptor says, or the workspace holds its sums.
        unsafe {
            launch!(scale, blocks(elements), THREADS, 0, cx.stream; c, ldc, runs, each, beta, i32::from(vector))?;
        }
        let matrix = SwiftMatrix {
            order: arrays.order.address(),
            columns: arrays.columns.address(),
            values: arrays.values.address(),
            rows: arrays.rows.address(),
            positions: arrays.positions.address(),
            offsets: arrays.offsets.address(),
            pieces: arrays.pieces.address(),
            blocks: arrays.blocks,
            piece_count: arrays.pieces.len() as i64,
            cols: arrays.cols,
        };
        let wide = is_wide(o.b.address, o.b.ld, size) && is_wide(c, ldc, size) && n % pack == 0;
        let of_loads = if wide && !packs.is_empty() { packs } else { singles };
        let Group { lanes, columns, kernel } =
            of_loads[select::group_of(of_loads.iter().map(|group| group.columns), n)];
        let groups = (arrays.blocks as usize).div_ceil(TOGETHER);
        // A block of threads has as many groups of lanes as a group has blocks.
        let blocks_x = grid(groups + arrays.pieces.len().div_ceil(TOGETHER))?;
        for first in (0..n).step_by(tiles::MOST * columns) {
            let count = (n - first).min(tiles::MOST * columns);
            let dense = Dense {
                b: o.b.address.offset(first * size),
                ldb: o.b.ld,
                c: c.offset(first * size),
                ldc,
                n: count as i64,
            };
            let tiles = count.div_ceil(columns) as u32;
            // SAFETY: B and C are as their descriptors say or in the workspace, and aligned as was checked;
            // the layout is complete.
            unsafe {
                launch!(kernel, (blocks_x, tiles), (lanes * TOGETHER) as u32, 0, cx.stream;
                    matrix, dense, o.alpha, groups as i64)?;
            }
        }
        if by_columns {
            let to = (o.c, Strides { row: o.c_row, col: o.c_col });
            finish_c(cx, finish_columns, c, to, (rows, n as i64), (o.alpha, o.beta), Address::NULL)?;
        } else if !in_place {
            // SAFETY: the workspace holds all sums; C is as its descriptor says.
            unsafe {
                launch!(finish_rows, blocks(rows * n as i64), THREADS, 0, cx.stream;
                    c, o.c, o.c_row, rows, n as i64, o.alpha, o.beta)?;
            }
        }
        Ok(())
    }

    fn by_bands(&self, cx: &Context, arrays: &BandArrays, o: &Operands) -> Result<()> {
        let Form::Bands { packs, singles, .. } = &self.form else { unreachable!("it has bands") };
        let (n, size, pack) = (o.n, self.size(), PACK / self.size());
        let wide_c = o.c_col != 1 || is_wide(o.c, o.c_row, size);
        let wide = select::bands_have_packs(n, pack, wide_c && is_wide(o.b.address, o.b.ld, size));
        let (kernel, columns) = if wide { (packs, LANES * pack) } else { (singles, LANES) };
        let bands = Bands {
            items: arrays.lists.items.address(),
            parts: arrays.lists.parts.address(),
            columns: arrays.columns.address(),
            values: arrays.values.address(),
            rows: arrays.rows.address(),
            item_count: arrays.lists.items.len() as i64,
            row_count: arrays.row_count,
        };
        let join = arrays.lists.join(cx, cx.workspace.address);
        let step = arrays.lists.tiles_at_once().saturating_mul(columns);
        for first in (0..n).step_by(step) {
            let count = (n - first).min(step);
            let dense = Dense {
                b: o.b.address.offset(first * size),
                ldb: o.b.ld,
                c: Address::NULL,
                ldc: 0,
                n: count as i64,
            };
            let out = Out {
                c: o.c.offset(first * o.c_col as usize * size),
                row_stride: o.c_row,
                col_stride: o.c_col,
            };
            let grid = (grid(arrays.lists.items.len().div_ceil(WARPS))?, count.div_ceil(columns) as u32);
            // SAFETY: as above; the workspace holds the sums of the parts of these tiles, and the handle
            // lends its counters to one call at a time.
            unsafe {
                launch!(kernel, (grid.0, grid.1), (WARPS * LANES) as u32, 0, cx.stream;
                    bands, dense, out, o.alpha, o.beta, join)?;
            }
        }
        Ok(())
    }
}

impl DenseExecutor<DenseMatrix> for SwiftSpmm {
    fn workspace_bytes(&self, n: usize) -> usize {
        self.sums_bytes(n).saturating_add(self.packing.bytes(n))
    }

    fn product(&self, cx: &Context, (alpha, beta): ScalarsAt, [b, _, c]: [&DenseMatrix; 3]) -> Result<()> {
        let cx = &self.device.call(cx)?;
        let (alpha, beta) = scalars(cx, self.problem.types.compute.scalar(), alpha, beta)?;
        let n = c.cols as usize;
        if self.shape.0 == 0 || n == 0 {
            return Ok(());
        }
        cx.workspace.require(self.workspace_bytes(n))?;
        let copy = cx.workspace.address.offset(self.sums_bytes(n));
        let b = self.packing.rows(cx, b, n, copy, "swift")?;
        let Strides { row: c_row, col: c_col } = Strides::new(c.order, false, c.ld);
        let operands = Operands { alpha, beta, b, c: c.values, c_row, c_col, n };
        match &self.form {
            Form::Blocks { arrays, .. } => self.by_blocks(cx, arrays, &operands),
            Form::Bands { arrays, .. } => self.by_bands(cx, arrays, &operands),
        }
    }

    fn update_values(&mut self, cx: &Context, values: Address) -> Result<()> {
        let cx = &self.device.call(cx)?;
        let problem = SpmmProblem { a: self.problem.a.with_values(values), ..self.problem };
        let (slots, to) = match &self.form {
            Form::Blocks { arrays, .. } => (&arrays.slots, arrays.values.address()),
            Form::Bands { arrays, .. } => (&arrays.slots, arrays.values.address()),
        };
        match slots {
            Some(slots) => slots.scatter(cx, values, to)?,
            None => *self = build(cx, &problem, self.deterministic)?,
        }
        self.problem = problem;
        Ok(())
    }

    fn is_deterministic(&self) -> bool {
        matches!(self.form, Form::Bands { .. })
    }

    fn layout(&self) -> LayoutInfo {
        LayoutInfo { kind: LayoutKind::Swift, in_place: false, fill: 1.0 }
    }

    fn details(&self) -> String {
        match &self.form {
            Form::Blocks { arrays, .. } => arrays.details.clone(),
            Form::Bands { arrays, .. } => {
                format!("{} bands of {ROWS} rows or parts of them", arrays.lists.items.len())
            }
        }
    }
}

#[cfg(test)]
mod tests;

//! SpGEMM on a device, algorithm `tile`: C = alpha · op(A) · op(B) on sparse tiles of 16 × 16
//! (src/format/tile.rs), in the three steps of Niu et al., TileSpGEMM (PPoPP 2022), section 3.3
//! (kernels/spgemm/tile.cu). The paper's step 3 has two accumulators: a packed one for tiles of C with less
//! than 192 entries, and a dense one of 256 sums for the others; both are updated by atomics. Here all tiles
//! have a dense accumulator in registers, and each sum belongs to one lane, which adds in order: packed sums
//! up to the paper's threshold took longer (docs/algorithms/tile.md).
//!
//! The build phase makes the tiles of A and B. The symbolic phase finds the tiles of C (step 1), their
//! entries (step 2), and the positions of these in C. The numeric phase launches step 3, which writes into
//! the user's arrays if C is stored by the dimension that is computed (rows of C, or its columns with
//! `transposed_product`). Otherwise the rows are staged in the plan's memory and transposed. If there is no
//! memory for all tiles of C at one time, both phases process some rows of tiles after the others
//! ([`parts`]).

mod parts;

use std::sync::Arc;

use super::columns::{allowance, ByParts, Origin, Part, Transposition};
use super::factors::{left_and_right, number_of_products, Factors};
use super::rows::{self, types_of_factors, Factor, Ints};
use super::tiles::{bytes, ByColumns, ConvertKernels, DeviceTiles, TilesView};
use super::{target, tile_matrix};
use crate::backend::cuda::check::blocks;
use crate::backend::cuda::convert::device_wide::{scan, starts};
use crate::backend::cuda::device::{Device, DeviceCall};
use crate::backend::cuda::launch::{launch, Kernel};
use crate::backend::cuda::layouts::kernel_structs;
use crate::backend::cuda::memory::{self, filled_members, optional, DeviceBuffer, Fill};
use crate::backend::cuda::module::kinds::kernel_kinds;
use crate::backend::cuda::operand::{Operand, Rows};
use crate::backend::cuda::scalars::Scalar;
use crate::backend::cuda::spgemm::kernels::Name;
use crate::backend::{LayoutInfo, SpgemmExecutor};
use crate::error::{Error, Result, Status};
use crate::format::tile::SIDE;
use crate::matrix::tiles::{TileFactors, Tiles};
use crate::matrix::{Compressed, SparseMatrix};
use crate::memory::Context;
use crate::operation::not_counted;
use crate::problem::SpgemmProblem;
use crate::select::spgemm::columns::{Staging, Way};
use crate::select::spgemm::row_structures::takes_matrix_units;
use crate::select::spgemm::tiles::{lanes, SetShape};
use crate::select::{Choice, Source};
use crate::types::{Address, DataType, Format, IndexType, LayoutKind};

/// Threads of a block of step 1, and of steps 2 and 3, in which a warp processes a tile of C.
const BLOCK: u32 = 128;
/// Warps of a block of steps 2 and 3.
const WARPS: usize = 4;

kernel_structs! {
    /// Arrays that receive the entries of C; `Output` of kernels/spgemm/tile.cu.
    struct Output = "spgemm/tile.cu Output" {
        row_starts: Address,
        entries_before: Address,
        columns: Address,
        values: Address,
        wide: i64,
        base: i64,
    }
}

kernel_kinds! { "spgemm/tile" {
    MULTIPLY(&'static str) = "multiply" for [["f64", "f32", "c32", "c64"]];
    /// Kernels of step 3 on tensor cores.
    MMA(&'static str) = "mma" for [["f64", "f32"]];
} }

/// Kernels of the product of tiles.
struct Kernels {
    products: Kernel,
    count: Kernel,
    fill: Kernel,
    masks: Kernel,
    flags: Kernel,
    compact: Kernel,
    first: Kernel,
    multiply: Kernel,
    entries_before: Kernel,
}

impl Kernels {
    fn new(device: &Device, sums: DataType, dense: bool, convert: &ConvertKernels) -> Result<Self> {
        let dense = dense && matches!(sums, DataType::R64F | DataType::R32F);
        let types = types_of_factors(sums);
        let kernel = |name: &str| device.modules().kernel("spgemm/tile", name);
        let kernels = Kernels {
            products: kernel("spgemm_tile_products")?,
            count: kernel("spgemm_tile_count")?,
            fill: kernel("spgemm_tile_fill")?,
            masks: kernel("spgemm_tile_masks")?,
            flags: kernel("spgemm_tile_flags")?,
            compact: kernel("spgemm_tile_compact")?,
            first: kernel("spgemm_tile_first")?,
            multiply: if dense { MMA } else { MULTIPLY }.load(device, (types,))?,
            entries_before: convert.entries_before,
        };
        kernels.fill.allow_shared(SetShape::LARGEST.fill)?;
        Ok(kernels)
    }
}

/// Pattern of C, in tiles: the result of the symbolic phase.
struct Product {
    tiles: usize,
    /// Row of tiles and column of tiles of each tile, and masks of the columns in its rows.
    tile_rows: DeviceBuffer<u32>,
    columns: DeviceBuffer<u32>,
    masks: DeviceBuffer<u16>,
    /// For each of the 16 rows of each tile, the number of entries that this row of C has before the tile.
    entries_before: DeviceBuffer<u32>,
    /// Row offsets of C, base 0.
    row_starts: DeviceBuffer<i64>,
    nnz: i64,
    /// True if there was no memory for all tiles: none are stored, and the numeric phase finds them again.
    by_parts: bool,
}

filled_members!(Product { tile_rows, columns, masks, entries_before, row_starts });

/// Rows of C in the plan's memory, before they are transposed into the user's arrays.
struct Staged {
    columns: DeviceBuffer<i32>,
    values: DeviceBuffer<u8>,
    transposition: Option<Transposition>,
}

/// Executor of SpGEMM `tile` on a device.
pub struct CudaTile {
    device: Arc<Device>,
    problem: SpgemmProblem,
    /// Arrays of A and B; `None` for a matrix that the user passes in tiles.
    a: Option<Operand>,
    b: Option<Operand>,
    /// Choice of the plan, which says how A and B are read.
    choice: Choice,
    /// True if Cᵀ = op(B)ᵀ · op(A)ᵀ is computed, with B as the left factor.
    transposed: bool,
    kernels: Kernels,
    shared_kernels: rows::Kernels,
    left: Arc<DeviceTiles>,
    /// Tiles of the right factor; `None` if they are those of the left factor.
    right: Option<Arc<DeviceTiles>>,
    by_columns: ByColumns,
    /// Number of rows of the left factor and of columns of the right factor.
    shape: (i64, i64),
    products: i64,
    product: Option<Product>,
    staged: Option<Staged>,
}

/// Returns a grid of `blocks` blocks; an error if a launch takes fewer. `what` names the work in the error.
fn grid(blocks: usize, what: &str) -> Result<u32> {
    i32::try_from(blocks).map(|count| count as u32).map_err(|_| {
        Error::unsupported(format!("C: algorithm tile cannot launch {blocks} blocks for {what}"))
    })
}

/// Makes the tiles of a factor of the product; errors call it `name`. Blocks.
fn tiles_of(
    cx: &DeviceCall<'_>,
    problem: &SpgemmProblem,
    rows: &Rows,
    value_type: DataType,
    name: &str,
) -> Result<DeviceTiles> {
    let kernels = ConvertKernels::new(cx.device, value_type)?;
    DeviceTiles::build(cx, kernels, rows, problem.types.compute.scalar().size(), name)
}

/// Returns the error for new values of a matrix that the user passed in tiles.
fn no_values(name: &str) -> Error {
    Error::invalid(name, "it is in tiles and takes no array of values")
}

/// Returns whether `a` and `b` are the same arrays, values included.
fn same(a: &Rows, b: &Rows) -> bool {
    (a.offsets, a.indices, a.values) == (b.offsets, b.indices, b.values)
        && (a.rows, a.cols, a.nnz, a.base) == (b.rows, b.cols, b.nnz, b.base)
        && (a.offset_type, a.index_type) == (b.offset_type, b.index_type)
}

impl CudaTile {
    /// Makes the tiles of A and B and counts the multiplications. Blocks.
    pub fn new(
        cx: &DeviceCall<'_>,
        problem: &SpgemmProblem,
        choice: &Choice,
        factors: Factors,
    ) -> Result<Self> {
        let (transposed, keep) = (choice.method.is_transposed(), problem.value_updates);
        let (a, b) = factors.sides(false);
        let sides = [(a.operand.rows(), "A", problem.types.a), (b.operand.rows(), "B", problem.types.x)];
        let (left, right) = left_and_right(transposed, sides[0], sides[1]);
        let convert =
            |(rows, name, values): &(Rows, &str, DataType)| tiles_of(cx, problem, rows, *values, name);
        let shared_kernels = rows::Kernels::new(cx.device, problem.types, (right.0.index_type, right.0.cols));
        shared_kernels.get(Name::WriteOffsets)?;
        let shape = (left.0.rows, right.0.cols);
        let entries = left.0.nnz as f64 * right.0.nnz as f64;
        let pattern = [Factor::of(&left.0), Factor::of(&right.0)];
        let nnz = left.0.nnz;
        // For A · A, tiles are made once, unless the values of one factor may be renewed at any time.
        let shared = !keep && left.2 == right.2 && same(&left.0, &right.0);
        let mut right = if shared { None } else { Some(convert(&right)?) };
        let mut left = convert(&left)?;
        let tiles = left.tiles as f64 * right.as_ref().unwrap_or(&left).tiles as f64;
        let dense = takes_matrix_units(entries, tiles);
        let kernels = Kernels::new(cx.device, problem.types.y, dense, left.kernels())?;
        let report = DeviceBuffer::<u64>::zeroed(cx, 2)?;
        // SAFETY: the patterns have been validated, and there are two words for the sum.
        unsafe {
            launch!(kernels.products, blocks(cx.device, nnz), 256, 0, cx.stream;
                pattern[0], pattern[1], nnz, report.address())?;
        }
        let products = number_of_products(&report.read(0, 2)?)?;
        let by_columns = ByColumns::build(cx, right.as_ref().unwrap_or(&left))?;
        // The builders have synchronized the stream.
        let [a, b] = factors.filled();
        left.mark_filled();
        right.mark_filled();
        Ok(CudaTile {
            device: Arc::clone(cx.device),
            problem: *problem,
            a: Some(a),
            b: Some(b),
            choice: choice.clone(),
            transposed,
            kernels,
            shared_kernels,
            left: Arc::new(left),
            right: right.map(Arc::new),
            by_columns,
            shape,
            products,
            product: None,
            staged: None,
        })
    }

    /// Builds the executor if the user passes A or B in tiles. Blocks.
    pub fn of_tiles(
        cx: &DeviceCall<'_>,
        problem: &SpgemmProblem,
        choice: &Choice,
        factors: &TileFactors,
    ) -> Result<Self> {
        let transposed = choice.method.is_transposed();
        let keep = problem.value_updates;
        let sides = [
            (&factors[0], &problem.a, problem.op_a, choice.a, "A"),
            (&factors[1], &problem.b, problem.op_b, choice.b, "B"),
        ];
        let mut made = Vec::with_capacity(2);
        for (tiles, matrix, op, source, name) in sides {
            // Shape of op(A) or op(B), or of its transpose if columns of C are computed.
            let (rows, cols, _) = matrix.shape();
            let (rows, cols) = op.shape(rows, cols);
            let shape = if transposed { (cols, rows) } else { (rows, cols) };
            if let Some(tiles) = tiles {
                let in_place = source == Source::InPlace;
                made.push((tile_matrix::factor(cx, tiles, op, in_place, name)?, shape, None));
                continue;
            }
            let (mut operand, _) = Operand::build(cx, matrix, op, source, name, keep)?;
            let mut tiles = tiles_of(cx, problem, &operand.rows(), matrix.value_type(), name)?;
            operand.mark_filled();
            tiles.mark_filled();
            made.push((Arc::new(tiles), shape, Some(operand)));
        }
        let (Some((b_tiles, b_shape, b)), Some((a_tiles, a_shape, a))) = (made.pop(), made.pop()) else {
            return Err(Error::state("plan: not analyzed"));
        };
        let ((left, left_shape), (right, right_shape)) =
            left_and_right(transposed, (a_tiles, a_shape), (b_tiles, b_shape));
        let (shape, inner) = ((left_shape.0, right_shape.1), right_shape.0);
        let tiles = left.tiles as f64 * right.tiles as f64;
        let dense = takes_matrix_units(left.entries(cx)? as f64 * right.entries(cx)? as f64, tiles);
        let kernels = Kernels::new(cx.device, problem.types.y, dense, left.kernels())?;
        // For the kernels that transpose C, which has 32-bit column indices here.
        let shared_kernels = rows::Kernels::new(cx.device, problem.types, (IndexType::I32, shape.1));
        shared_kernels.get(Name::WriteOffsets)?;
        let products = tile_matrix::count_products(cx, &left, &right, inner)?;
        let by_columns = ByColumns::build(cx, &right)?;
        Ok(CudaTile {
            device: Arc::clone(cx.device),
            problem: *problem,
            a,
            b,
            choice: choice.clone(),
            transposed,
            kernels,
            shared_kernels,
            left,
            right: Some(right),
            by_columns,
            shape,
            products,
            product: None,
            staged: None,
        })
    }

    /// Returns the tiles of the right factor.
    fn right(&self) -> &DeviceTiles {
        self.right.as_ref().unwrap_or(&self.left)
    }

    /// Gives the right factor tiles of its own, with its present values, if it shares those of the left
    /// factor. Blocks.
    fn part(&mut self, cx: &DeviceCall<'_>) -> Result<()> {
        let (operand, values, name) = if self.transposed {
            (&self.a, self.problem.types.a, "A")
        } else {
            (&self.b, self.problem.types.x, "B")
        };
        let operand = operand.as_ref().ok_or_else(|| no_values(name))?;
        let mut tiles = tiles_of(cx, &self.problem, &operand.rows(), values, name)?;
        tiles.mark_filled();
        self.right = Some(Arc::new(tiles));
        Ok(())
    }

    /// Returns the number of lanes that process a tile of the left factor in step 1.
    fn lanes(&self) -> i32 {
        lanes(self.right().tiles, self.right().tile_rows)
    }

    /// Counts the tiles that C may have: returns the number of those before each row of tiles, and of all.
    fn count_tiles(&self, cx: &Context) -> Result<DeviceBuffer<i64>> {
        let (left, right) = (self.left.view(), self.right().view());
        let (tile_rows, set) = (self.left.tile_rows, SetShape::of(self.right().tile_cols));
        let lanes = self.lanes();
        let rows = DeviceBuffer::<i64>::zeroed(cx, tile_rows + 1)?;
        // SAFETY: the factors' tiles are as the kernel reads them, `rows` has an element for each row of
        // tiles and one more, and the shared memory is what the kernel needs.
        unsafe {
            launch!(self.kernels.count, tile_rows as u32, BLOCK, set.count, cx.stream;
                left.rows, left.columns, right.rows, right.columns, lanes, set.bits, rows.address())?;
        }
        scan(cx, &rows)?;
        Ok(rows)
    }

    /// Runs steps 1 and 2 and computes the positions of the entries of C. Blocks.
    fn find(&self, cx: &Context) -> Result<Product> {
        let whole = optional(self.find_whole(cx))?;
        let product = match whole {
            Some(whole) => whole,
            None => self.find_parts(cx)?,
        };
        target::require_room_for_c(&self.problem, (self.shape.0, self.shape.1, product.nnz), &self.device)?;
        Ok(product)
    }

    /// Runs [`Self::find`] for all tiles of C at one time.
    fn find_whole(&self, cx: &Context) -> Result<Product> {
        let tile_rows = self.left.tile_rows;
        let rows = self.count_tiles(cx)?;
        let met = rows.read(tile_rows, 1)?[0] as usize;
        self.require_room(met)?;
        let met_rows = DeviceBuffer::<u32>::new(cx, met)?;
        let met_columns = DeviceBuffer::<u32>::new(cx, met)?;
        let met_masks = DeviceBuffer::<u16>::new(cx, bytes(met, SIDE)?)?;
        let counts = DeviceBuffer::<u32>::new(cx, met)?;
        let ranks = DeviceBuffer::<i64>::new(cx, met + 1)?;
        let count = met as i64;
        let all = Part { rows: 0..tile_rows, entries: 0..count };
        let arrays = [met_rows.address(), met_columns.address()];
        self.fill_tiles(cx, &all, rows.address(), arrays, [met_masks.address(), counts.address()])?;
        // SAFETY: as above; every array has room for the tiles that were counted.
        unsafe {
            launch!(self.kernels.flags, blocks(&self.device, count + 1), 256, 0, cx.stream;
                counts.address(), count, ranks.address())?;
        }
        let tiles = starts(cx, &ranks)? as usize;
        let (found_rows, found_columns, masks) = if tiles == met {
            (met_rows, met_columns, met_masks)
        } else {
            // Removes tiles without entries.
            let found_rows = DeviceBuffer::<u32>::new(cx, tiles)?;
            let found_columns = DeviceBuffer::<u32>::new(cx, tiles)?;
            let masks = DeviceBuffer::<u16>::new(cx, tiles * SIDE)?;
            // SAFETY: there is room for every tile with entries, and each row of tiles has its offset in
            // `rows`.
            unsafe {
                launch!(self.kernels.compact, blocks(&self.device, count), 256, 0, cx.stream;
                    ranks.address(), counts.address(), count, met_rows.address(), met_columns.address(),
                    met_masks.address(), found_rows.address(), found_columns.address(), masks.address())?;
                launch!(self.kernels.first, blocks(&self.device, tile_rows as i64 + 1), 256, 0, cx.stream;
                    ranks.address(), rows.address(), tile_rows as i64 + 1, rows.address())?;
            }
            (found_rows, found_columns, masks)
        };
        let (m, _) = self.shape;
        let entries_before = DeviceBuffer::<u32>::new(cx, bytes(tiles, SIDE)?)?;
        let row_starts = DeviceBuffer::<i64>::zeroed(cx, m as usize + 1)?;
        // SAFETY: `entries_before` has 16 elements for each tile, and `row_starts` one for each row and one more.
        unsafe {
            launch!(self.kernels.entries_before, tile_rows as u32, 256, 0, cx.stream;
                rows.address(), masks.address(), m, entries_before.address(), row_starts.address())?;
        }
        let nnz = starts(cx, &row_starts)?;
        let mut product = Product {
            tiles,
            tile_rows: found_rows,
            columns: found_columns,
            masks,
            entries_before,
            row_starts,
            nnz,
            by_parts: false,
        };
        product.mark_filled();
        Ok(product)
    }

    /// Returns the left factor's tiles from a row of tiles on.
    fn left_from(&self, tile_row: usize) -> TilesView {
        let view = self.left.view();
        TilesView { rows: view.rows.offset(tile_row * size_of::<i64>()), ..view }
    }

    /// Fills the arrays of the tiles that C may have in some rows of tiles: row and column of tiles of each, masks,
    /// and numbers of entries. `rows` has the number of tiles before each of these rows of tiles. Only launches.
    fn fill_tiles(
        &self,
        cx: &Context,
        part: &Part,
        rows: Address,
        [tile_rows, columns]: [Address; 2],
        [masks, counts]: [Address; 2],
    ) -> Result<()> {
        let (left, right) = (self.left_from(part.rows.start), self.right().view());
        let set = SetShape::of(self.right().tile_cols);
        let (count, before) = (part.count(), part.entries.start as usize);
        let many = grid((count as usize).div_ceil(WARPS), "the tiles of C")?;
        // SAFETY: rows of tiles of the left factor are as the kernels read them, from the part's first on;
        // tiles are numbered from the first of all, so the addresses of the part's arrays are moved back
        // accordingly; the arrays have room for the tiles that were counted; the shared memory is what the
        // kernel needs.
        unsafe {
            launch!(self.kernels.fill, part.rows.len() as u32, BLOCK, set.fill, cx.stream;
                left.rows, left.columns, right.rows, right.columns, self.lanes(), set.bits, rows,
                columns.rebased(before * 4), tile_rows.rebased(before * 4))?;
            launch!(self.kernels.masks, many, 32 * WARPS as u32, 0, cx.stream;
                left, right, self.by_columns.view(), tile_rows, columns, count, masks, counts)
        }
    }

    /// Returns an error if the device cannot hold the arrays of step 2 for `met` tiles at all.
    fn require_room(&self, met: usize) -> Result<()> {
        let needed = met as u128 * (3 * 4 + 2 * SIDE as u128 + 8);
        target::require_room(needed, format_args!("{met} tiles"), &self.device)
    }

    /// Launches step 3, which writes the rows of C.
    fn multiply(&self, cx: &Context, alpha: Scalar, product: &Product, out: &Output) -> Result<()> {
        let many = grid(product.tiles.div_ceil(WARPS), "the tiles of C")?;
        // SAFETY: the tiles were made by this file's kernels, and C has been checked, or is the plan's own,
        // and has room for the entries that were counted.
        unsafe {
            launch!(self.kernels.multiply, many, 32 * WARPS as u32, 0, cx.stream;
                self.left.view(), self.right().view(), self.by_columns.view(), self.left.values.address(),
                self.right().values.address(), alpha, product.tile_rows.address(), product.columns.address(),
                product.masks.address(), product.tiles as i64, *out)
        }
    }

    /// Runs step 3 and writes C's arrays, part by part if there is no memory for all tiles at one time.
    fn write(
        &self,
        cx: &DeviceCall<'_>,
        alpha: Scalar,
        c: &Compressed,
        direct: bool,
        product: &Product,
        staged: &mut Option<Staged>,
    ) -> Result<()> {
        if !product.by_parts {
            match self.write_whole(cx, alpha, c, direct, product, staged) {
                Err(error) if !direct && error.lacks_memory() => *staged = None,
                done => return done,
            }
        }
        self.write_parts(cx, alpha, c, direct, product)
    }

    /// Returns the sizes of the staged rows, from which the way of the transposition is chosen.
    fn staging(&self, product: &Product) -> Staging {
        let (value, cols) = (self.problem.types.y.size(), self.shape.1);
        Staging { index: IndexType::I32, value, cols, entries: product.nnz as usize }
    }

    /// Returns the transposition of the rows into C with up to `room` bytes, some rows after the others from
    /// multiples of `step` on.
    fn by_parts<'a>(
        &'a self,
        cx: &'a DeviceCall<'_>,
        product: &'a Product,
        step: usize,
        room: usize,
    ) -> ByParts<'a> {
        let (kernels, rows) = (&self.shared_kernels, self.staging(product));
        ByParts { cx, kernels, rows, offsets: &product.row_starts, step, room }
    }

    /// Runs [`Self::write`] for all tiles at one time. `staged` is allocated if it is needed and missing.
    fn write_whole(
        &self,
        cx: &DeviceCall<'_>,
        alpha: Scalar,
        c: &Compressed,
        direct: bool,
        product: &Product,
        staged: &mut Option<Staged>,
    ) -> Result<()> {
        let (rows, nnz) = (self.shape.0, product.nnz as usize);
        let base = i64::from(c.base.code());
        let mut out = Output {
            row_starts: product.row_starts.address(),
            entries_before: product.entries_before.address(),
            columns: c.indices,
            values: c.values,
            wide: c.index_type.wide(),
            base,
        };
        if direct {
            self.multiply(cx, alpha, product, &out)?;
            let starts = product.row_starts.address();
            return target::write_offsets(cx, &self.shared_kernels, starts, c);
        }
        // Memory that is kept for later phases is not limited: they gain from it.
        let room = match self.problem.value_updates {
            true => usize::MAX,
            false => allowance(cx, &self.problem, c),
        };
        let staging = self.staging(product);
        let there = match staged.take() {
            Some(there) => there,
            None => Staged {
                columns: DeviceBuffer::new(cx, nnz)?,
                values: DeviceBuffer::new(cx, bytes(nnz, self.problem.types.compute.scalar().size())?)?,
                transposition: None,
            },
        };
        let there = staged.insert(there);
        (out.columns, out.values) = (there.columns.address(), there.values.address());
        (out.wide, out.base) = (0, 0);
        self.multiply(cx, alpha, product, &out)?;
        if there.transposition.is_none() && staging.way(room) != Way::Whole {
            let staged = [there.columns.address(), there.values.address()];
            let room = room.saturating_sub(there.columns.bytes() + there.values.bytes());
            let by_parts = self.by_parts(cx, product, 1, room);
            return by_parts.write(c, Origin::Staged(staged));
        }
        if there.transposition.is_none() {
            let columns = Ints::new(there.columns.address(), IndexType::I32);
            let (kernels, cols) = (&self.shared_kernels, self.shape.1);
            let mut made = Transposition::new(cx, kernels, columns, nnz, cols)?;
            // The sort has synchronized the stream, but not after its last kernels.
            memory::synchronize(cx.stream)?;
            made.mark_filled();
            there.columns.mark_filled();
            there.values.mark_filled();
            there.transposition = Some(made);
        }
        let Some(transposition) = &there.transposition else {
            return Ok(());
        };
        let values = (there.values.address(), self.problem.types.y.size());
        transposition.write(cx, &self.shared_kernels, (&product.row_starts, rows), values, c)
    }
}

impl SpgemmExecutor for CudaTile {
    fn symbolic(&mut self, cx: &Context) -> Result<i64> {
        let device = Arc::clone(&self.device);
        let cx = &device.call(cx)?;
        if self.product.is_none() {
            self.product = Some(self.find(cx)?);
        }
        Ok(self.product.as_ref().map_or(0, |product| product.nnz))
    }

    fn numeric(&mut self, cx: &Context, alpha: Address, c: &SparseMatrix) -> Result<()> {
        let device = Arc::clone(&self.device);
        let cx = &device.call(cx)?;
        let product = self.product.as_ref().ok_or_else(not_counted)?;
        let shape = (self.shape.0, self.shape.1, product.nnz);
        let arrays = target::check(&device, &self.problem, self.transposed, c, shape)?;
        let alpha = Scalar::of_argument(cx, "alpha", self.problem.types.compute.scalar(), alpha)?;
        // True if C's compressed dimension is that of the rows that are computed.
        let direct = (c.format() == Format::Csc) == self.transposed;
        let mut staged = self.staged.take();
        let result = self.write(cx, alpha, &arrays, direct, product, &mut staged);
        // Incomplete memory is dropped after the work on it has ended; without value updates nothing is kept.
        let complete = staged.as_ref().is_some_and(|there| there.transposition.is_some());
        if self.problem.value_updates && complete {
            self.staged = staged;
        } else if staged.is_some() {
            memory::synchronize(cx.stream)?;
        }
        result
    }

    /// Updates A's values first: if B's then fail (out of memory), A's new values stay, and the call can be
    /// repeated.
    fn update_values(&mut self, cx: &Context, a: Address, b: Address) -> Result<()> {
        let device = Arc::clone(&self.device);
        let cx = &device.call(cx)?;
        if self.right.is_none() {
            self.part(cx)?;
        }
        let left = &*self.left;
        let right = self.right.as_deref().unwrap_or(left);
        let (of_a, of_b) = left_and_right(self.transposed, left, right);
        let problem = &mut self.problem;
        let sides = [
            (a, &mut self.a, &mut problem.a, problem.op_a, of_a, "A"),
            (b, &mut self.b, &mut problem.b, problem.op_b, of_b, "B"),
        ];
        for (values, operand, matrix, op, tiles, name) in sides {
            if !values.is_null() {
                let operand = operand.as_mut().ok_or_else(|| no_values(name))?;
                operand.update_values(cx, (matrix, op), values, name)?;
                tiles.fill(cx, &operand.rows())?;
            }
        }
        Ok(())
    }

    fn numeric_tiles(&mut self, cx: &Context, into: &Context, alpha: Address) -> Result<Tiles> {
        let device = Arc::clone(&self.device);
        let cx = &device.call(cx)?;
        let product = self.product.as_ref().ok_or_else(not_counted)?;
        let alpha = Scalar::of_argument(cx, "alpha", self.problem.types.compute.scalar(), alpha)?;
        let parts =
            (product.tiles, product.tile_rows.address(), product.columns.address(), product.masks.address());
        let kernels = ConvertKernels::new(&self.device, self.problem.types.y)?;
        let tiles = DeviceTiles::of_masks(
            &device.call(into)?,
            kernels,
            self.shape,
            parts,
            self.problem.types.compute.scalar().size(),
        )?;
        if tiles.entries(cx)? != product.nnz {
            return Err(Error::new(
                Status::InsufficientResources,
                "C: the plan has no memory for all of its tiles at one time, which C in tiles needs; CSR and CSC \
                 are written part by part",
            ));
        }
        let out = Output {
            row_starts: tiles.starts.address(),
            entries_before: Address::NULL,
            columns: tiles.index.address(),
            values: tiles.values.address(),
            wide: 0,
            base: 0,
        };
        self.multiply(cx, alpha, product, &out)?;
        memory::synchronize(cx.stream)?;
        tile_matrix::contents(cx, tiles, self.shape, self.problem.types.y, self.transposed)
    }

    /// Replaces the tiles of the factors. The old ones are dropped after the work on this stream has read
    /// them.
    fn update_tiles(&mut self, cx: &Context, factors: &TileFactors) -> Result<()> {
        let device = Arc::clone(&self.device);
        let cx = &device.call(cx)?;
        if memory::is_capturing(cx.stream)? {
            return Err(Error::state(
                "plan: new values of a matrix in tiles cannot be taken inside a capture",
            ));
        }
        let sides = [
            (&factors[0], self.problem.op_a, self.choice.a, "A"),
            (&factors[1], self.problem.op_b, self.choice.b, "B"),
        ];
        for (at, (tiles, op, source, name)) in sides.into_iter().enumerate() {
            let Some(tiles) = tiles else {
                continue;
            };
            let in_place = source == Source::InPlace;
            let renewed = tile_matrix::factor(cx, tiles, op, in_place, name)?;
            let is_left = (at == 0) != self.transposed;
            let present = if is_left { &self.left } else { self.right.as_ref().unwrap_or(&self.left) };
            if Arc::ptr_eq(present, &renewed) {
                continue;
            }
            if !present.same_pattern(cx, &renewed)? {
                return Err(crate::matrix::tiles::other_pattern(name));
            }
            memory::synchronize(cx.stream)?;
            if is_left {
                self.left = renewed;
            } else {
                self.right = Some(renewed);
            }
        }
        Ok(())
    }

    fn layout(&self) -> LayoutInfo {
        LayoutInfo { kind: LayoutKind::Tile, in_place: false, fill: 1.0 }
    }

    fn products(&self) -> i64 {
        self.products
    }
}

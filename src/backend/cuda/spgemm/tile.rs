//! SpGEMM on a device, algorithm `tile`: C = alpha · op(A) · op(B) on sparse tiles of 16 × 16
//! (src/format/tile.rs), in the three steps of Niu et al., TileSpGEMM (PPoPP 2022), section 3.3
//! (kernels/spgemm/tile.cu). The paper's step 3 has two accumulators: tiles of C with less than 192
//! entries add in packed ones, others in dense ones of 256, both by atomics. Here registers are the
//! dense accumulator of all tiles, and each sum is one lane's, in order: packed sums up to the
//! paper's threshold took longer (docs/algorithms/tile.md).
//!
//! build makes the tiles of A and B; symbolic finds those of C (step 1), which entries they have
//! (step 2), and where they go in C; numeric launches step 3, which writes into the user's arrays
//! where C is stored by what is computed (rows of C, or with `transposed_product` its columns).
//! Otherwise the rows are put into the plan's memory and transposed. Where there is no memory for
//! all tiles of C at one time, both phases take some rows of tiles after the others ([`parts`]).

mod parts;

use std::sync::Arc;

use super::columns::{allowance, ByParts, Origin, Transposition};
use super::factors::{renew_values, Factors};
use super::rows::{self, Factor, Ints};
use super::tiles::{bytes, ByColumns, ConvertKernels, DeviceTiles};
use super::{target, tile_matrix};
use crate::backend::cuda::check::blocks;
use crate::backend::cuda::convert::device_wide::exclusive_scan;
use crate::backend::cuda::device::Device;
use crate::backend::cuda::launch::{launch, Kernel};
use crate::backend::cuda::layouts::same_layout;
use crate::backend::cuda::memory::{self, optional, DeviceBuffer};
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
use crate::problem::SpgemmProblem;
use crate::select::spgemm::columns::{Staging, Way};
use crate::select::spgemm::row_structures::takes_matrix_units;
use crate::select::spgemm::tiles::{lanes, SetShape};
use crate::select::{Choice, Source};
use crate::types::{Address, DataType, Format, IndexBase, IndexType, LayoutKind};

/// Threads of a block of step 1; of a block of steps 2 and 3, in which a warp has a tile of C.
const BLOCK: u32 = 128;
/// Warps of such a block.
const WARPS: usize = 4;

/// `Output` of kernels/spgemm/tile.cu.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
struct Output {
    row_starts: Address,
    places: Address,
    columns: Address,
    values: Address,
    wide: i64,
    base: i64,
}

same_layout!(Output = "spgemm/tile.cu Output" { row_starts, places, columns, values, wide, base });

kernel_kinds! { "spgemm/tile" {
    MULTIPLY(&'static str) = "multiply" for [["f64", "f32", "c32", "c64"]];
    /// By tensor cores.
    MMA(&'static str) = "mma" for [["f64", "f32"]];
} }

struct Kernels {
    products: Kernel,
    count: Kernel,
    fill: Kernel,
    masks: Kernel,
    flags: Kernel,
    compact: Kernel,
    first: Kernel,
    multiply: Kernel,
    places: Kernel,
}

impl Kernels {
    fn new(device: &Device, sums: DataType, dense: bool, convert: &ConvertKernels) -> Result<Self> {
        let dense = dense && matches!(sums, DataType::R64F | DataType::R32F);
        let types = match sums {
            DataType::R64F => "f64",
            DataType::C32F => "c32",
            DataType::C64F => "c64",
            _ => "f32",
        };
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
            places: convert.places,
        };
        kernels.fill.allow_shared(SetShape::LARGEST.fill)?;
        Ok(kernels)
    }
}

/// Tiles of C.
struct Product {
    tiles: usize,
    /// Row and column of tiles of each, and its rows as masks.
    tile_rows: DeviceBuffer<u32>,
    columns: DeviceBuffer<u32>,
    masks: DeviceBuffer<u16>,
    /// Entries of each row of a tile's row of tiles that come before the tile.
    places: DeviceBuffer<u32>,
    /// Offsets of the rows of C, and their last.
    row_starts: DeviceBuffer<i64>,
    nnz: i64,
    /// The tiles were too many for the memory: none are here, the numeric phase finds them again.
    by_parts: bool,
}

impl Product {
    /// The stream has been waited for.
    fn seal(&mut self) {
        self.tile_rows.seal();
        self.columns.seal();
        self.masks.seal();
        self.places.seal();
        self.row_starts.seal();
    }
}

/// C by rows in the plan's memory, to be transposed into the user's.
struct Staged {
    columns: DeviceBuffer<i32>,
    values: DeviceBuffer<u8>,
    transposition: Option<Transposition>,
}

/// The executor.
pub struct CudaTile {
    device: Arc<Device>,
    problem: SpgemmProblem,
    /// The arrays of A and B; none of a matrix in tiles.
    a: Option<Operand>,
    b: Option<Operand>,
    /// How A and B are read.
    choice: Choice,
    /// The product is Cᵀ = op(B)ᵀ · op(A)ᵀ: B is the left factor.
    transposed: bool,
    kernels: Kernels,
    shared_kernels: rows::Kernels,
    left: Arc<DeviceTiles>,
    /// None: the left factor's are the right one's, too.
    right: Option<Arc<DeviceTiles>>,
    by_columns: ByColumns,
    /// Rows of the left factor and columns of the right one.
    shape: (i64, i64),
    products: i64,
    product: Option<Product>,
    staged: Option<Staged>,
}

/// A grid of so many blocks; `what` needs it.
fn grid(blocks: usize, what: &str) -> Result<u32> {
    i32::try_from(blocks).map(|count| count as u32).map_err(|_| {
        Error::unsupported(format!("C: algorithm tile cannot launch {blocks} blocks for {what}"))
    })
}

fn no_values(name: &str) -> Error {
    Error::invalid(name, "it is in tiles and takes no array of values")
}

/// Whether rows of both are the same arrays.
fn same(a: &Rows, b: &Rows) -> bool {
    (a.offsets, a.indices, a.values) == (b.offsets, b.indices, b.values)
        && (a.rows, a.cols, a.nnz, a.base) == (b.rows, b.cols, b.nnz, b.base)
        && (a.offset_type, a.index_type) == (b.offset_type, b.index_type)
}

impl CudaTile {
    /// Makes tiles of A and B. Blocks. The context is current.
    pub fn new(
        cx: &Context,
        device: &Arc<Device>,
        problem: &SpgemmProblem,
        choice: &Choice,
        factors: Factors,
    ) -> Result<Self> {
        let (transposed, keep) = (choice.method.is_transposed(), problem.value_updates);
        let (a, b) = factors.sides(false);
        let sides = [(a.operand.rows(), "A", problem.types.a), (b.operand.rows(), "B", problem.types.x)];
        let [left, right] = if transposed { [sides[1], sides[0]] } else { sides };
        let convert = |(rows, name, values): &(Rows, &str, DataType)| {
            let kernels = ConvertKernels::new(device, *values)?;
            DeviceTiles::build(cx, kernels, rows, problem.types.compute.scalar().size(), name)
        };
        let shared_kernels = rows::Kernels::new(device, problem.types, &right.0);
        shared_kernels.get(Name::WriteOffsets)?;
        let shape = (left.0.rows, right.0.cols);
        let entries = left.0.nnz as f64 * right.0.nnz as f64;
        let pattern = [Factor::of(&left.0), Factor::of(&right.0)];
        let nnz = left.0.nnz;
        // A · A is made once, but where one factor's values may be renewed at any time.
        let shared = !keep && left.2 == right.2 && same(&left.0, &right.0);
        let mut right = if shared { None } else { Some(convert(&right)?) };
        let mut left = convert(&left)?;
        let tiles = left.tiles as f64 * right.as_ref().unwrap_or(&left).tiles as f64;
        let dense = takes_matrix_units(entries, tiles);
        let kernels = Kernels::new(device, problem.types.y, dense, left.kernels())?;
        let report = DeviceBuffer::<u64>::zeroed(cx, 2)?;
        // SAFETY: the patterns have been validated, and there are two sums.
        unsafe {
            launch!(kernels.products, blocks(device, nnz), 256, 0, cx.stream;
                pattern[0], pattern[1], nnz, report.address())?;
        }
        let report = report.read(0, 2)?;
        let products = u128::from(report[0]) + (u128::from(report[1]) << 32);
        let Ok(products) = i64::try_from(products) else {
            return Err(Error::unsupported("A, B: the product needs more than 2^63 − 1 multiplications"));
        };
        let by_columns = ByColumns::build(cx, device, right.as_ref().unwrap_or(&left))?;
        // The builders have waited for the stream.
        let [a, b] = factors.sealed();
        left.seal();
        right.iter_mut().for_each(DeviceTiles::seal);
        Ok(CudaTile {
            device: Arc::clone(device),
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

    /// The same where A or B is in tiles. Blocks. The context is current.
    pub fn of_tiles(
        cx: &Context,
        device: &Arc<Device>,
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
            // Rows and columns of op(A), and where columns of C are computed of its transpose.
            let (rows, cols, _) = matrix.shape();
            let (rows, cols) = op.shape(rows, cols);
            let shape = if transposed { (cols, rows) } else { (rows, cols) };
            if let Some(tiles) = tiles {
                let in_place = source == Source::InPlace;
                made.push((tile_matrix::factor(cx, device, tiles, op, in_place, name)?, shape, None));
                continue;
            }
            let (mut operand, _) = Operand::build(cx, device, matrix, op, source, name, keep)?;
            let kernels = ConvertKernels::new(device, matrix.value_type())?;
            let mut tiles = DeviceTiles::build(
                cx,
                kernels,
                &operand.rows(),
                problem.types.compute.scalar().size(),
                name,
            )?;
            operand.seal();
            tiles.seal();
            made.push((Arc::new(tiles), shape, Some(operand)));
        }
        let (Some((b_tiles, b_shape, b)), Some((a_tiles, a_shape, a))) = (made.pop(), made.pop()) else {
            return Err(Error::state("plan: not analyzed"));
        };
        let (left, right, shape, inner) = if transposed {
            (b_tiles, a_tiles, (b_shape.0, a_shape.1), a_shape.0)
        } else {
            (a_tiles, b_tiles, (a_shape.0, b_shape.1), b_shape.0)
        };
        let tiles = left.tiles as f64 * right.tiles as f64;
        let dense = takes_matrix_units(left.entries(cx)? as f64 * right.entries(cx)? as f64, tiles);
        let kernels = Kernels::new(device, problem.types.y, dense, left.kernels())?;
        // Of the kernels that turn C, which have 32-bit columns here.
        let columns = Compressed {
            major: shape.0,
            minor: shape.1,
            nnz: 0,
            offsets: Address::NULL,
            indices: Address::NULL,
            values: Address::NULL,
            offset_type: IndexType::I64,
            index_type: IndexType::I32,
            base: IndexBase::Zero,
            value_type: problem.types.y,
        };
        let shared_kernels = rows::Kernels::new(device, problem.types, &Rows::of(&columns));
        shared_kernels.get(Name::WriteOffsets)?;
        let products = tile_matrix::count_products(cx, device, &left, &right, inner)?;
        let by_columns = ByColumns::build(cx, device, &right)?;
        Ok(CudaTile {
            device: Arc::clone(device),
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

    fn right(&self) -> &DeviceTiles {
        self.right.as_ref().unwrap_or(&self.left)
    }

    /// Makes the right factor's own tiles, of its present values. Blocks.
    fn part(&mut self, cx: &Context) -> Result<()> {
        let (operand, values, name) = if self.transposed {
            (&self.a, self.problem.types.a, "A")
        } else {
            (&self.b, self.problem.types.x, "B")
        };
        let operand = operand.as_ref().ok_or_else(|| no_values(name))?;
        let kernels = ConvertKernels::new(&self.device, values)?;
        let mut tiles = DeviceTiles::build(
            cx,
            kernels,
            &operand.rows(),
            self.problem.types.compute.scalar().size(),
            name,
        )?;
        tiles.seal();
        self.right = Some(Arc::new(tiles));
        Ok(())
    }

    /// Threads that take a tile of the left factor in step 1.
    fn lanes(&self) -> i32 {
        lanes(self.right().tiles, self.right().tile_rows)
    }

    /// Tiles that C may have in the rows of tiles before each, and in all.
    fn count_tiles(&self, cx: &Context) -> Result<DeviceBuffer<i64>> {
        let (left, right) = (self.left.view(), self.right().view());
        let (tile_rows, set) = (self.left.tile_rows, SetShape::of(self.right().tile_cols));
        let lanes = self.lanes();
        let rows = DeviceBuffer::<i64>::zeroed(cx, tile_rows + 1)?;
        // SAFETY: rows of tiles of the left factor are as the kernel reads them, there is a count
        // for each and one more, and the shared memory is what the kernel says.
        unsafe {
            launch!(self.kernels.count, tile_rows as u32, BLOCK, set.count, cx.stream;
                left.rows, left.columns, right.rows, right.columns, lanes, set.bits, rows.address())?;
            exclusive_scan(cx, rows.address(), rows.address(), tile_rows + 1)?;
        }
        Ok(rows)
    }

    /// Steps 1 and 2, and where the entries of C go. Blocks.
    fn find(&self, cx: &Context) -> Result<Product> {
        let whole = optional(self.find_whole(cx))?;
        let product = match whole {
            Some(whole) => whole,
            None => self.find_parts(cx)?,
        };
        target::require_room_for_c(&self.problem, (self.shape.0, self.shape.1, product.nnz), &self.device)?;
        Ok(product)
    }

    fn find_whole(&self, cx: &Context) -> Result<Product> {
        let (left, right) = (self.left.view(), self.right().view());
        let (tile_rows, set) = (self.left.tile_rows, SetShape::of(self.right().tile_cols));
        let lanes = self.lanes();
        let rows = self.count_tiles(cx)?;
        let met = rows.read(tile_rows, 1)?[0] as usize;
        self.require_room(met)?;
        let met_rows = DeviceBuffer::<u32>::new(cx, met)?;
        let met_columns = DeviceBuffer::<u32>::new(cx, met)?;
        let met_masks = DeviceBuffer::<u16>::new(cx, bytes(met, SIDE)?)?;
        let counts = DeviceBuffer::<u32>::new(cx, met)?;
        let ranks = DeviceBuffer::<i64>::new(cx, met + 1)?;
        let (count, many) = (met as i64, grid(met.div_ceil(WARPS), "the tiles of C")?);
        // SAFETY: as above; every array has room for the tiles that were counted.
        unsafe {
            launch!(self.kernels.fill, tile_rows as u32, BLOCK, set.fill, cx.stream;
                left.rows, left.columns, right.rows, right.columns, lanes, set.bits, rows.address(),
                met_columns.address(), met_rows.address())?;
            launch!(self.kernels.masks, many, 32 * WARPS as u32, 0, cx.stream;
                left, right, self.by_columns.view(), met_rows.address(), met_columns.address(), count,
                met_masks.address(), counts.address())?;
            launch!(self.kernels.flags, blocks(&self.device, count + 1), 256, 0, cx.stream;
                counts.address(), count, ranks.address())?;
            exclusive_scan(cx, ranks.address(), ranks.address(), met + 1)?;
        }
        let tiles = ranks.read(met, 1)?[0] as usize;
        let (found_rows, found_columns, masks) = if tiles == met {
            (met_rows, met_columns, met_masks)
        } else {
            // Tiles without entries go.
            let found_rows = DeviceBuffer::<u32>::new(cx, tiles)?;
            let found_columns = DeviceBuffer::<u32>::new(cx, tiles)?;
            let masks = DeviceBuffer::<u16>::new(cx, tiles * SIDE)?;
            // SAFETY: there is room for every tile with entries; rows are counted from ranks.
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
        let places = DeviceBuffer::<u32>::new(cx, bytes(tiles, SIDE)?)?;
        let row_starts = DeviceBuffer::<i64>::zeroed(cx, m as usize + 1)?;
        // SAFETY: there are places for the rows of every tile, and a count for each row and one more.
        unsafe {
            launch!(self.kernels.places, tile_rows as u32, 256, 0, cx.stream;
                rows.address(), masks.address(), m, places.address(), row_starts.address())?;
            exclusive_scan(cx, row_starts.address(), row_starts.address(), m as usize + 1)?;
        }
        let nnz = row_starts.read(m as usize, 1)?[0];
        let mut product = Product {
            tiles,
            tile_rows: found_rows,
            columns: found_columns,
            masks,
            places,
            row_starts,
            nnz,
            by_parts: false,
        };
        product.seal();
        Ok(product)
    }

    /// Step 2 of so many tiles, and what it leaves.
    fn require_room(&self, met: usize) -> Result<()> {
        let needed = met as u128 * (3 * 4 + 2 * SIDE as u128 + 8);
        target::require_room(needed, format_args!("{met} tiles"), &self.device)
    }

    /// Step 3, into rows of C.
    fn multiply(&self, cx: &Context, alpha: Scalar, product: &Product, out: &Output) -> Result<()> {
        let many = grid(product.tiles.div_ceil(WARPS), "the tiles of C")?;
        // SAFETY: the tiles are what the kernels of this file made, and C has been checked, or is
        // the plan's, and has room for the entries that were counted.
        unsafe {
            launch!(self.kernels.multiply, many, 32 * WARPS as u32, 0, cx.stream;
                self.left.view(), self.right().view(), self.by_columns.view(), self.left.values.address(),
                self.right().values.address(), alpha, product.tile_rows.address(), product.columns.address(),
                product.masks.address(), product.tiles as i64, *out)
        }
    }

    /// Step 3 and C's arrays, part by part where memory is missing for all at one time.
    fn write(
        &self,
        cx: &Context,
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

    /// Rows of C that become its columns.
    fn staging(&self, product: &Product) -> Staging {
        let (value, cols) = (self.problem.types.y.size(), self.shape.1);
        Staging { index: IndexType::I32, value, cols, entries: product.nnz as usize }
    }

    /// The same of all. What is staged is made where it is missing.
    fn write_whole(
        &self,
        cx: &Context,
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
            places: product.places.address(),
            columns: c.indices,
            values: c.values,
            wide: c.index_type.wide(),
            base,
        };
        if direct {
            self.multiply(cx, alpha, product, &out)?;
            let starts = product.row_starts.address();
            return target::write_offsets(cx, &self.device, &self.shared_kernels, starts, c);
        }
        // What is kept is paid for by the phases after this one.
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
            let by_parts = ByParts {
                cx,
                device: &self.device,
                kernels: &self.shared_kernels,
                rows: staging,
                offsets: &product.row_starts,
                step: 1,
                room: room.saturating_sub(there.columns.bytes() + there.values.bytes()),
            };
            return by_parts.write(c, Origin::Staged(staged));
        }
        if there.transposition.is_none() {
            let columns = Ints::new(there.columns.address(), IndexType::I32);
            let (kernels, cols) = (&self.shared_kernels, self.shape.1);
            let mut made = Transposition::new(cx, &self.device, kernels, columns, nnz, cols)?;
            // Sorting has waited for the stream; its last kernels have not been.
            memory::synchronize(cx.stream)?;
            made.seal();
            there.columns.seal();
            there.values.seal();
            there.transposition = Some(made);
        }
        let Some(transposition) = &there.transposition else {
            return Ok(());
        };
        let values = (there.values.address(), self.problem.types.y.size());
        transposition.write(cx, &self.device, &self.shared_kernels, (&product.row_starts, rows), values, c)
    }
}

impl SpgemmExecutor for CudaTile {
    fn symbolic(&mut self, cx: &Context) -> Result<i64> {
        let device = Arc::clone(&self.device);
        let _entered = device.enter()?;
        if self.product.is_none() {
            self.product = Some(self.find(cx)?);
        }
        Ok(self.product.as_ref().map_or(0, |product| product.nnz))
    }

    fn numeric(&mut self, cx: &Context, alpha: Address, c: &SparseMatrix) -> Result<()> {
        let device = Arc::clone(&self.device);
        let _entered = device.enter()?;
        let Some(product) = &self.product else {
            return Err(Error::state("plan: tarsiaSpGEMM_numeric needs tarsiaSpGEMM_symbolic first"));
        };
        let shape = (self.shape.0, self.shape.1, product.nnz);
        let arrays = target::check(&device, &self.problem, self.transposed, c, shape)?;
        let alpha = Scalar::of_argument(cx, "alpha", self.problem.types.compute.scalar(), alpha)?;
        // C's compressed dimension is that of the rows that are computed.
        let direct = (c.format() == Format::Csc) == self.transposed;
        let mut staged = self.staged.take();
        let result = self.write(cx, alpha, &arrays, direct, product, &mut staged);
        // What is half made goes, behind its work; without value updates nothing stays.
        let complete = staged.as_ref().is_some_and(|there| there.transposition.is_some());
        if self.problem.value_updates && complete {
            self.staged = staged;
        } else if staged.is_some() {
            memory::synchronize(cx.stream)?;
        }
        result
    }

    /// A's values first: if B's fail (out of memory), A's new ones stay, and the call can be
    /// repeated.
    fn update_values(&mut self, cx: &Context, a: Address, b: Address) -> Result<()> {
        let device = Arc::clone(&self.device);
        let _entered = device.enter()?;
        if self.right.is_none() {
            self.part(cx)?;
        }
        if !a.is_null() {
            let operand = self.a.as_mut().ok_or_else(|| no_values("A"))?;
            renew_values(cx, operand, (&mut self.problem.a, self.problem.op_a), a, "A")?;
            let rows = operand.rows();
            let tiles = if self.transposed { self.right() } else { &self.left };
            tiles.fill(cx, &rows)?;
        }
        if !b.is_null() {
            let operand = self.b.as_mut().ok_or_else(|| no_values("B"))?;
            renew_values(cx, operand, (&mut self.problem.b, self.problem.op_b), b, "B")?;
            let rows = operand.rows();
            let tiles = if self.transposed { &self.left } else { self.right() };
            tiles.fill(cx, &rows)?;
        }
        Ok(())
    }

    fn numeric_tiles(&mut self, cx: &Context, into: &Context, alpha: Address) -> Result<Tiles> {
        let device = Arc::clone(&self.device);
        let _entered = device.enter()?;
        let Some(product) = &self.product else {
            return Err(Error::state("plan: tarsiaSpGEMM_numeric needs tarsiaSpGEMM_symbolic first"));
        };
        let alpha = Scalar::of_argument(cx, "alpha", self.problem.types.compute.scalar(), alpha)?;
        let parts =
            (product.tiles, product.tile_rows.address(), product.columns.address(), product.masks.address());
        let kernels = ConvertKernels::new(&self.device, self.problem.types.y)?;
        let tiles = DeviceTiles::of_masks(
            into,
            &self.device,
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
            places: Address::NULL,
            columns: tiles.index.address(),
            values: tiles.values.address(),
            wide: 0,
            base: 0,
        };
        self.multiply(cx, alpha, product, &out)?;
        memory::synchronize(cx.stream)?;
        tile_matrix::contents(cx, tiles, self.shape, self.problem.types.y, self.transposed)
    }

    /// The old contents go when what runs on this stream has read them.
    fn update_tiles(&mut self, cx: &Context, factors: &TileFactors) -> Result<()> {
        let device = Arc::clone(&self.device);
        let _entered = device.enter()?;
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
            let renewed = tile_matrix::factor(cx, &self.device, tiles, op, in_place, name)?;
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

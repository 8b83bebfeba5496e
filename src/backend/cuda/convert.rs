//! Conversion to canonical CSR on the device: makes the arrays that src/format/csr.rs describes from every
//! format, operation, index base and index width, without a detour through the host and bit-identical to the
//! host's.
//!
//! Entries are ordered by (row, column, position) of op(A), so one stable sort is enough. The pattern decides
//! which one is the cheapest:
//! - rows of op(A) are sorted already: no sort, a copy;
//! - columns of op(A) ascend over the whole matrix (a transpose): a sort by row;
//! - otherwise: a sort by one key of row and column.
//!
//! Keys have as many bits as rows and columns need. BSR is sorted by blocks and then expanded.

pub mod device_wide;
pub mod statistics;
pub mod stream;
#[cfg(test)]
pub(super) mod testing;
#[cfg(test)]
mod tests;
pub mod values;

use self::device_wide::{Narrow, Pair, Wide, WideKeys};
use self::values::Gather;
use super::check::{blocks, PatternReport};
use super::device::DeviceCall;
use super::launch::{launch, Kernel};
use super::memory::{self, filled_members, DeviceBuffer, Fill, Numbers};
use super::operand::{Rows, Widths};
use crate::backend::cuda::module::kinds::kernel_kinds;
use crate::error::{Error, Result};
use crate::matrix::{no_arrays, Bsr, Compressed, Coo, SparseArrays, SparseMatrix};
use crate::types::{Address, DataType, IndexType, Operation, Order};
use std::fmt;

const MODULE: &str = "format/rows";
/// Entries of the tile that one block works on, as in kernels/format/rows.cu.
const TILE: u64 = 2048;

kernel_kinds! { "format/rows" {
    KEYS_OF_COMPRESSED(Widths, [usize; 2]) = "keys_of_compressed"
            for [narrow_offsets(), narrow_sorts()], [wide_offsets(), sorts()];
    KEYS_OF_PAIRS(IndexType, [usize; 2]) = "keys_of_pairs" for [index_types(), sorts()];
    ROWS_OF_ENTRIES(IndexType) = "rows_of_entries" for [index_types()];
    COPY_OFFSETS(IndexType) = "copy_offsets" for [index_types()];
    PERMUTED_LENGTHS(IndexType) = "permuted_lengths" for [index_types()];
    PERMUTED_POSITIONS(IndexType) = "permuted_positions" for [index_types()];
    OFFSETS_OF_KEYS(usize) = "offsets_of_keys" for [[32, 64]];
    COLUMNS_OF_KEYS(usize) = "columns_of_keys" for [[32, 64]];
    GATHER_COLUMNS(IndexType, &'static str) = "gather_columns" for [index_types(), ["32", "64"]];
    EXPAND_BLOCKS(&'static str, &'static str) = "expand_blocks" for [["32"], ["32", "64"]], [["64"], ["64"]];
} }

/// Canonical CSR of op(A) on the device.
pub struct DeviceCsr {
    /// Kernel that gathers values through 64-bit positions.
    gather: Gather,
    conjugate: bool,
    rows: i64,
    cols: i64,
    offsets: DeviceBuffer<i64>,
    indices: DeviceBuffer<i32>,
    values: DeviceBuffer<u8>,
    positions: Positions,
    /// Positions of the values in the copy with the original row order, only for rows in another order whose own
    /// positions were dropped.
    through: Option<DeviceBuffer<u64>>,
}

/// Source of a copy's values: their positions in the user's array.
#[derive(Debug)]
pub enum Positions {
    /// Every value has the same position in the user's array.
    Identity,
    /// `nnz` positions, which fit i64 as well.
    Kept(DeviceBuffer<u64>),
    /// No positions, since the caller did not ask to keep them.
    Dropped,
}

impl Fill for Positions {
    fn mark_filled(&mut self) {
        if let Positions::Kept(positions) = self {
            positions.mark_filled();
        }
    }
}

/// Positions that a layout needs to take new values from the user's array later. `None`: values will not be
/// updated. `Some(None)`: entry i is value i of the user's array. `Some(Some(positions))`, for a copy: the
/// positions say which value each entry is.
pub type Origins<'a> = Option<Option<&'a Positions>>;

/// Address of the positions; NULL if each entry has its own position in the user's array.
pub fn origins_address(origins: Origins<'_>) -> Address {
    match origins {
        Some(Some(Positions::Kept(positions))) => positions.address(),
        _ => Address::NULL,
    }
}

/// Positions while a copy is being made.
enum Source {
    Identity,
    Kept(Numbers),
}

/// A pattern in canonical order.
struct Sorted {
    offsets: DeviceBuffer<i64>,
    indices: DeviceBuffer<i32>,
    source: Source,
}

impl fmt::Debug for DeviceCsr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DeviceCsr({} × {}, {} entries)", self.rows, self.cols, self.indices.len())
    }
}

impl DeviceCsr {
    /// Makes the canonical copy of a matrix that has been inspected with this operation. `keep_positions`:
    /// [`DeviceCsr::refill`] will be used. Blocks.
    ///
    /// Temporary memory: 16 bytes per entry for a sort by row, 24 for a sort by row and column (32 from 2^32
    /// entries on).
    pub fn build(
        cx: &DeviceCall<'_>,
        a: &SparseMatrix,
        op: Operation,
        report: &PatternReport,
        keep_positions: bool,
    ) -> Result<Self> {
        let (rows, cols, nnz) = a.shape();
        let (rows, cols) = op.shape(rows, cols);
        if i32::try_from(cols).is_err() {
            return Err(Error::unsupported(format!(
                "a canonical copy numbers columns by 32 bits, not {cols}"
            )));
        }
        let tools = Tools { cx };
        let value_type = a.value_type();
        let Sorted { offsets, indices, source } = tools.canonical(a, op, report)?;
        let values = DeviceBuffer::new(cx, (nnz as usize).saturating_mul(value_type.size()))?;
        let conjugate = op.conjugates() && value_type.is_complex();
        tools.gather_values(value_type, a.values(), &source, nnz, conjugate, values.address())?;
        let positions = match source {
            Source::Identity => Positions::Identity,
            _ if !keep_positions => Positions::Dropped,
            Source::Kept(Numbers::Wide(positions)) => Positions::Kept(positions),
            Source::Kept(Numbers::Narrow(positions)) => Positions::Kept(tools.widen(&positions)?),
        };
        let gather = Gather::load(cx.device, value_type, "64")?;
        let through = None;
        Ok(DeviceCsr { gather, conjugate, rows, cols, offsets, indices, values, positions, through })
    }

    /// Arrays of the copy as rows of op(A).
    pub fn rows(&self) -> Rows {
        Rows {
            offsets: self.offsets.address(),
            indices: self.indices.address(),
            values: self.values.address(),
            offset_type: IndexType::I64,
            index_type: IndexType::I32,
            base: 0,
            rows: self.rows,
            cols: self.cols,
            nnz: self.indices.len() as i64,
        }
    }

    /// Positions of the values in the user's array.
    pub fn positions(&self) -> &Positions {
        &self.positions
    }

    /// Enqueues the gathering of new values from an array in the user's order, without allocation or wait.
    /// Returns false, and does nothing, if positions were not kept.
    pub fn refill(&self, cx: &DeviceCall<'_>, values: Address) -> Result<bool> {
        let nnz = self.indices.len() as i64;
        let positions = match &self.positions {
            Positions::Identity if !self.conjugate => {
                memory::copy(self.values.address(), values, self.values.bytes(), cx.stream)?;
                return Ok(true);
            }
            Positions::Identity => Address::NULL,
            Positions::Kept(positions) => positions.address(),
            Positions::Dropped => return Ok(false),
        };
        let to = (nnz, self.values.address());
        self.gather.launch(cx, (values, positions), self.conjugate, to)?;
        Ok(true)
    }

    /// Refills the values from those of A where positions were not kept, by finding the positions again. The
    /// pattern must be the one of `build`; the arrays of the copy stay where they are. Blocks.
    pub fn rebuild(
        &self,
        cx: &DeviceCall<'_>,
        a: &SparseMatrix,
        op: Operation,
        report: &PatternReport,
    ) -> Result<()> {
        let tools = Tools { cx };
        let sorted = tools.canonical(a, op, report)?;
        let nnz = self.indices.len() as i64;
        let gather =
            |to| tools.gather_values(a.value_type(), a.values(), &sorted.source, nnz, self.conjugate, to);
        let Some(through) = &self.through else {
            gather(self.values.address())?;
            return memory::synchronize(cx.stream);
        };
        let unordered = DeviceBuffer::<u8>::new(cx, self.values.bytes())?;
        gather(unordered.address())?;
        // The values are conjugated already.
        let from = (unordered.address(), through.address());
        self.gather.launch(cx, from, false, (nnz, self.values.address()))?;
        memory::synchronize(cx.stream)
    }
}
filled_members!(DeviceCsr { offsets, indices, values, positions, through });

/// Makes a copy of `rows` in another order: row r of the result is row `permutation[r]` of `rows`, with its
/// entries in the same order; the result's positions refer to `rows.values`. `permutation` holds every row
/// once, numbered below 2^31, and [`Windows::HOLE`](crate::reorder::Windows::HOLE) where the result has an
/// empty row. Blocks.
pub fn permute_rows(
    cx: &DeviceCall<'_>,
    rows: &Rows,
    value_type: DataType,
    permutation: &DeviceBuffer<u32>,
) -> Result<DeviceCsr> {
    let permuted = permutation.len() as i64;
    assert!(permuted >= rows.rows);
    let tools = Tools { cx };
    let count = permutation.len() + 1;
    let offsets = DeviceBuffer::<i64>::new(cx, count)?;
    let indices = DeviceBuffer::<i32>::new(cx, rows.nnz as usize)?;
    let values = DeviceBuffer::<u8>::new(cx, (rows.nnz as usize).saturating_mul(value_type.size()))?;
    let positions = DeviceBuffer::<u64>::new(cx, rows.nnz as usize)?;
    if permuted == 0 {
        memory::zero(offsets.address(), offsets.bytes(), cx.stream)?;
    } else {
        let lengths = PERMUTED_LENGTHS.load(cx.device, (rows.offset_type,))?;
        let fill = PERMUTED_POSITIONS.load(cx.device, (rows.offset_type,))?;
        // SAFETY: there are rows + 1 offsets of this type, a length for each row of the result and one more,
        // and nnz positions; the permutation holds row numbers or holes.
        unsafe {
            launch!(lengths, tools.blocks(permuted + 1), 256, 0, cx.stream;
                rows.offsets, permutation.address(), permuted, offsets.address())?;
            device_wide::scan(cx, &offsets)?;
            launch!(fill, tiles(rows.nnz), 256, 0, cx.stream;
                offsets.address(), rows.offsets, permutation.address(), rows.base, permuted, rows.nnz,
                positions.address())?;
        }
    }
    let source = Source::Kept(positions.into());
    tools.gather_columns(rows.indices, rows.index_type, rows.base, &source, rows.nnz, &indices)?;
    tools.gather_values(value_type, rows.values, &source, rows.nnz, false, values.address())?;
    let positions = match source {
        Source::Kept(Numbers::Wide(positions)) => Positions::Kept(positions),
        _ => Positions::Dropped,
    };
    Ok(DeviceCsr {
        gather: Gather::load(cx.device, value_type, "64")?,
        conjugate: false,
        rows: permuted,
        cols: rows.cols,
        offsets,
        indices,
        values,
        positions,
        through: None,
    })
}

impl DeviceCsr {
    /// Applies [`permute_rows`] to this copy. The result's positions refer to the user's array if they were
    /// kept here; else they are dropped, and [`Self::rebuild`] finds them again.
    pub fn permuted(
        &self,
        cx: &DeviceCall<'_>,
        value_type: DataType,
        permutation: &DeviceBuffer<u32>,
    ) -> Result<Self> {
        let mut out = permute_rows(cx, &self.rows(), value_type, permutation)?;
        out.conjugate = self.conjugate;
        out.positions = match (&self.positions, out.positions) {
            (Positions::Identity, through) => through,
            (Positions::Kept(from), Positions::Kept(through)) => {
                let composed = DeviceBuffer::<u64>::new(cx, through.len())?;
                let compose = cx.device.modules().kernel(MODULE, "compose_positions")?;
                let nnz = through.len() as i64;
                // SAFETY: all three arrays have nnz positions, each less than nnz.
                unsafe {
                    launch!(compose, blocks(cx.device, nnz), 256, 0, cx.stream;
                        from.address(), through.address(), nnz, composed.address())?;
                }
                Positions::Kept(composed)
            }
            (_, Positions::Kept(through)) => {
                out.through = Some(through);
                Positions::Dropped
            }
            _ => Positions::Dropped,
        };
        Ok(out)
    }
}

/// Number of bits that numbers below `count` need; at least 1.
pub fn bits_of(count: i64) -> u32 {
    (64 - (count.max(2) as u64 - 1).leading_zeros()).max(1)
}

/// Number of blocks for kernels in which each block works on one tile of entries.
fn tiles(nnz: i64) -> u32 {
    // No array that fits in memory needs more than i32::MAX tiles.
    (nnz as u64).div_ceil(TILE).min(i32::MAX as u64) as u32
}

/// Returns whether positions below `count` need 64 bits; all ones is reserved for "no position".
fn is_wide(count: i64) -> bool {
    #[cfg(test)]
    if tests::WIDE.get() {
        return true;
    }
    count > i64::from(u32::MAX)
}

/// Size of a value as the names of kernels spell it: a pair of numbers for complex types.
pub fn bits_of_values(value_type: DataType) -> Result<&'static str> {
    Ok(match value_type {
        DataType::R16F | DataType::R16BF => "16",
        DataType::R32F | DataType::R32I => "32",
        DataType::R64F => "64",
        DataType::C32F => "32x2",
        DataType::C64F => "64x2",
        DataType::R8I => return Err(Error::unsupported("no operation takes int8 values")),
    })
}

impl Source {
    fn address(&self) -> Address {
        match self {
            Source::Identity => Address::NULL,
            Source::Kept(positions) => positions.address(),
        }
    }

    /// Bits of a position, as the names of kernels spell it.
    fn bits(&self) -> &'static str {
        match self {
            Source::Kept(positions) => positions.bits(),
            Source::Identity => "64",
        }
    }
}

/// Calls `$method::<P>` with the narrowest pair of types for keys of `$bits` bits and positions below `$nnz`.
macro_rules! with_pair {
    ($bits:expr, $nnz:expr, $tools:ident.$method:ident($($argument:expr),* $(,)?)) => {
        match ($bits > 32, is_wide($nnz)) {
            (_, true) => $tools.$method::<Wide>($($argument),*),
            (true, false) => $tools.$method::<WideKeys>($($argument),*),
            (false, false) => $tools.$method::<Narrow>($($argument),*),
        }
    };
}

/// Shape of op(A) and its number of entries.
#[derive(Clone, Copy)]
struct OperandShape {
    rows: i64,
    cols: i64,
    nnz: i64,
}

/// Array of indices, the user's or the library's own.
#[derive(Clone, Copy)]
struct Indices {
    address: Address,
    index_type: IndexType,
    base: i64,
}

/// Kernels of a conversion, in a call.
struct Tools<'a> {
    cx: &'a DeviceCall<'a>,
}

impl Tools<'_> {
    fn kernel(&self, name: &str) -> Result<Kernel> {
        self.cx.device.modules().kernel(MODULE, name)
    }

    fn blocks(&self, count: i64) -> u32 {
        blocks(self.cx.device, count)
    }

    /// Makes the pattern of op(A) in canonical order.
    fn canonical(&self, a: &SparseMatrix, op: Operation, report: &PatternReport) -> Result<Sorted> {
        let transposed = op.transposes();
        match &a.arrays {
            SparseArrays::Csr(m) => self.compressed(m, transposed, report),
            SparseArrays::Csc(m) => self.compressed(m, !transposed, report),
            SparseArrays::Coo(m) => self.coordinates(m, transposed, report),
            SparseArrays::Bsr(m) => self.blocked(m, transposed, report),
            SparseArrays::Tile(_) => Err(no_arrays("A")),
        }
    }

    /// Allocates the array of row offsets. It comes before any sort, so that a matrix with more rows than
    /// memory holds fails early.
    fn offsets(&self, rows: i64) -> Result<DeviceBuffer<i64>> {
        DeviceBuffer::new(self.cx, (rows as usize).saturating_add(1))
    }

    fn empty(&self, rows: i64) -> Result<Sorted> {
        let offsets = self.offsets(rows)?;
        memory::zero(offsets.address(), offsets.bytes(), self.cx.stream)?;
        Ok(Sorted { offsets, indices: DeviceBuffer::new(self.cx, 0)?, source: Source::Identity })
    }

    /// Sorts a compressed pattern. `across`: the rows of op(A) are the dimension that is not compressed.
    fn compressed(&self, m: &Compressed, across: bool, report: &PatternReport) -> Result<Sorted> {
        let (rows, cols) = if across { (m.minor, m.major) } else { (m.major, m.minor) };
        let shape = OperandShape { rows, cols, nnz: m.nnz };
        if m.nnz == 0 {
            return self.empty(rows);
        }
        let base = i64::from(m.base.code());
        let indices = Indices { address: m.indices, index_type: m.index_type, base };
        let offsets = self.offsets(rows)?;
        let stream = self.cx.stream;
        if across {
            // Columns of op(A) ascend with the positions.
            let columns = |source: &Source, out: &DeviceBuffer<i32>| {
                let majors = DeviceBuffer::<i32>::new(self.cx, m.nnz as usize)?;
                let kernel = ROWS_OF_ENTRIES.load(self.cx.device, (m.offset_type,))?;
                // SAFETY: there are major + 1 offsets of this type, and room for nnz numbers.
                unsafe {
                    launch!(kernel, tiles(m.nnz), 256, 0, stream;
                        m.offsets, base, m.major, m.nnz, majors.address())?;
                }
                self.gather_columns(majors.address(), IndexType::I32, 0, source, m.nnz, out)
            };
            return with_pair!(bits_of(rows), m.nnz, self.sort_by_row(shape, indices, offsets, &columns));
        }
        if report.structure.sorted {
            let kernel = COPY_OFFSETS.load(self.cx.device, (m.offset_type,))?;
            // SAFETY: both arrays have rows + 1 offsets.
            unsafe {
                launch!(kernel, self.blocks(rows + 1), 256, 0, stream;
                    m.offsets, base, rows + 1, offsets.address())?;
            }
            return self.in_order(shape, indices, offsets);
        }
        let shift = bits_of(cols);
        let keys = |pair: [usize; 2], keys: Address, positions: Address| {
            let kernel = KEYS_OF_COMPRESSED.load(self.cx.device, (Rows::of(m).widths(), pair))?;
            // SAFETY: the arrays have the sizes that the descriptor says; keys and positions have nnz
            // elements.
            unsafe {
                launch!(kernel, tiles(m.nnz), 256, 0, stream;
                    m.offsets, m.indices, base, m.major, m.nnz, shift as i32, keys, positions)
            }
        };
        let bits = self.key_bits(shape)?;
        with_pair!(bits, m.nnz, self.sort_by_both(shape, offsets, &keys))
    }

    fn coordinates(&self, m: &Coo, transposed: bool, report: &PatternReport) -> Result<Sorted> {
        let base = i64::from(m.base.code());
        let indices = |address| Indices { address, index_type: m.index_type, base };
        let (first, second) = (indices(m.row_indices), indices(m.col_indices));
        let (shape, major, minor) = if transposed {
            (OperandShape { rows: m.cols, cols: m.rows, nnz: m.nnz }, second, first)
        } else {
            (OperandShape { rows: m.rows, cols: m.cols, nnz: m.nnz }, first, second)
        };
        if m.nnz == 0 {
            return self.empty(shape.rows);
        }
        let offsets = self.offsets(shape.rows)?;
        if report.structure.sorted {
            // Valid indices are not negative, so their bits can serve as a key.
            self.offsets_of_keys(8 * m.index_type.size(), major.address, shape, 0, base, &offsets)?;
            return self.in_order(shape, minor, offsets);
        }
        if report.columns_ascend {
            let columns = |source: &Source, out: &DeviceBuffer<i32>| {
                self.gather_columns(minor.address, minor.index_type, base, source, m.nnz, out)
            };
            return with_pair!(bits_of(shape.rows), m.nnz, self.sort_by_row(shape, major, offsets, &columns));
        }
        let shift = bits_of(shape.cols);
        let keys = |pair: [usize; 2], keys: Address, positions: Address| {
            self.keys_of_pairs(pair, major, Some(minor), m.nnz, shift, keys, positions)
        };
        let bits = self.key_bits(shape)?;
        with_pair!(bits, m.nnz, self.sort_by_both(shape, offsets, &keys))
    }

    fn blocked(&self, m: &Bsr, transposed: bool, report: &PatternReport) -> Result<Sorted> {
        let blocks = self.compressed(&m.pattern(), transposed, report)?;
        let area = m.row_block * m.col_block;
        if area == 1 {
            return Ok(blocks);
        }
        let ((rows, _), nnz) = (blocks_shape(m, transposed), m.stored());
        if nnz == 0 {
            return self.empty(rows);
        }
        let (height, width) =
            if transposed { (m.col_block, m.row_block) } else { (m.row_block, m.col_block) };
        let by_columns = (m.block_order == Order::Col) != transposed;
        let offsets = self.offsets(rows)?;
        let indices = DeviceBuffer::<i32>::new(self.cx, nnz as usize)?;
        let expand_offsets = self.kernel("expand_offsets")?;
        let wide = is_wide(nnz);
        // NULL positions fit either type.
        let from = if wide { blocks.source.bits() } else { "32" };
        let expand = EXPAND_BLOCKS.load(self.cx.device, (from, if wide { "64" } else { "32" }))?;
        let source = Source::Kept(Numbers::new(self.cx, nnz as usize, wide)?);
        // SAFETY: the pattern of blocks is canonical and has rows / height
        // rows; outputs have rows + 1 and nnz elements.
        unsafe {
            launch!(expand_offsets, self.blocks(rows + 1), 256, 0, self.cx.stream;
                blocks.offsets.address(), rows, height, width, offsets.address())?;
            launch!(expand, self.blocks(nnz), 256, 0, self.cx.stream;
                blocks.offsets.address(), blocks.indices.address(), blocks.source.address(), rows / height, nnz,
                height, width, i32::from(by_columns), indices.address(), source.address())?;
        }
        Ok(Sorted { offsets, indices, source })
    }

    fn in_order(&self, shape: OperandShape, columns: Indices, offsets: DeviceBuffer<i64>) -> Result<Sorted> {
        let indices = DeviceBuffer::<i32>::new(self.cx, shape.nnz as usize)?;
        let source = Source::Identity;
        self.gather_columns(columns.address, columns.index_type, columns.base, &source, shape.nnz, &indices)?;
        Ok(Sorted { offsets, indices, source })
    }

    /// Bits of a sort key of row and column.
    fn key_bits(&self, shape: OperandShape) -> Result<u32> {
        let bits = bits_of(shape.rows) + bits_of(shape.cols);
        if bits > 64 {
            return Err(Error::unsupported(format!(
                "sorting the entries of {} rows and {} columns needs keys of more than 64 bits",
                shape.rows, shape.cols
            )));
        }
        Ok(bits)
    }

    /// Sorts by a key of row and column; `keys(pair, keys, positions)` fills the arrays.
    fn sort_by_both<P: Pair>(
        &self,
        shape: OperandShape,
        offsets: DeviceBuffer<i64>,
        keys: &dyn Fn([usize; 2], Address, Address) -> Result<()>,
    ) -> Result<Sorted>
    where
        DeviceBuffer<P::Position>: Into<Numbers>,
    {
        let shift = bits_of(shape.cols);
        let (cx, n) = (self.cx, shape.nnz as usize);
        let (sorted, positions) =
            device_wide::sorted::<P>(cx, n, self.key_bits(shape)?, |sorted, positions| {
                keys(P::BITS, sorted, positions)
            })?;
        self.offsets_of_keys(P::BITS[0], sorted.address(), shape, shift, 0, &offsets)?;
        let indices = DeviceBuffer::<i32>::new(self.cx, shape.nnz as usize)?;
        let kernel = COLUMNS_OF_KEYS.load(self.cx.device, (P::BITS[0],))?;
        let mask = (1_i64 << shift) - 1;
        // SAFETY: both arrays have nnz elements.
        unsafe {
            launch!(kernel, self.blocks(shape.nnz), 256, 0, self.cx.stream;
                sorted.address(), shape.nnz, mask, indices.address())?;
        }
        Ok(Sorted { offsets, indices, source: Source::Kept(positions.into()) })
    }

    /// Sorts by row alone; `columns(source, out)` gathers the column indices.
    fn sort_by_row<P: Pair>(
        &self,
        shape: OperandShape,
        rows: Indices,
        offsets: DeviceBuffer<i64>,
        columns: &dyn Fn(&Source, &DeviceBuffer<i32>) -> Result<()>,
    ) -> Result<Sorted>
    where
        DeviceBuffer<P::Position>: Into<Numbers>,
    {
        let (cx, n) = (self.cx, shape.nnz as usize);
        let (keys, positions) = device_wide::sorted::<P>(cx, n, bits_of(shape.rows), |keys, positions| {
            self.keys_of_pairs(P::BITS, rows, None, shape.nnz, 0, keys, positions)
        })?;
        self.offsets_of_keys(P::BITS[0], keys.address(), shape, 0, 0, &offsets)?;
        drop(keys);
        let source = Source::Kept(positions.into());
        let indices = DeviceBuffer::<i32>::new(self.cx, shape.nnz as usize)?;
        columns(&source, &indices)?;
        Ok(Sorted { offsets, indices, source })
    }

    #[allow(clippy::too_many_arguments)]
    fn keys_of_pairs(
        &self,
        pair: [usize; 2],
        first: Indices,
        second: Option<Indices>,
        nnz: i64,
        shift: u32,
        keys: Address,
        positions: Address,
    ) -> Result<()> {
        let kernel = KEYS_OF_PAIRS.load(self.cx.device, (first.index_type, pair))?;
        let second = second.map_or(Address::NULL, |second| second.address);
        // SAFETY: every array that is not NULL has nnz elements.
        unsafe {
            launch!(kernel, self.blocks(nnz), 256, 0, self.cx.stream;
                first.address, second, first.base, nnz, shift as i32, keys, positions)
        }
    }

    fn offsets_of_keys(
        &self,
        key_bits: usize,
        keys: Address,
        shape: OperandShape,
        shift: u32,
        base: i64,
        out: &DeviceBuffer<i64>,
    ) -> Result<()> {
        let kernel = OFFSETS_OF_KEYS.load(self.cx.device, (key_bits,))?;
        // SAFETY: the nnz keys ascend; there is room for rows + 1 offsets.
        unsafe {
            launch!(kernel, self.blocks(shape.rows + 1), 256, 0, self.cx.stream;
                keys, shape.nnz, shape.rows, shift as i32, base, out.address())
        }
    }

    fn gather_columns(
        &self,
        from: Address,
        index_type: IndexType,
        base: i64,
        source: &Source,
        nnz: i64,
        out: &DeviceBuffer<i32>,
    ) -> Result<()> {
        let kernel = GATHER_COLUMNS.load(self.cx.device, (index_type, source.bits()))?;
        // SAFETY: every array has nnz elements, and positions are below nnz.
        unsafe {
            launch!(kernel, self.blocks(nnz), 256, 0, self.cx.stream;
                from, source.address(), base, nnz, out.address())
        }
    }

    fn gather_values(
        &self,
        value_type: DataType,
        from: Address,
        source: &Source,
        nnz: i64,
        conjugate: bool,
        out: Address,
    ) -> Result<()> {
        if matches!(source, Source::Identity) && !conjugate {
            return memory::copy(out, from, nnz as usize * value_type.size(), self.cx.stream);
        }
        let gather = Gather::load(self.cx.device, value_type, source.bits())?;
        gather.launch(self.cx, (from, source.address()), conjugate, (nnz, out))
    }

    fn widen(&self, positions: &DeviceBuffer<u32>) -> Result<DeviceBuffer<u64>> {
        let out = DeviceBuffer::new(self.cx, positions.len())?;
        let nnz = positions.len() as i64;
        let kernel = self.kernel("widen_positions")?;
        // SAFETY: both arrays have nnz elements.
        unsafe {
            launch!(kernel, self.blocks(nnz), 256, 0, self.cx.stream; positions.address(), nnz, out.address())?;
        }
        Ok(out)
    }
}

/// Returns (rows, columns) of op(A), counted in scalars.
fn blocks_shape(m: &Bsr, transposed: bool) -> (i64, i64) {
    if transposed {
        (m.cols(), m.rows())
    } else {
        (m.rows(), m.cols())
    }
}

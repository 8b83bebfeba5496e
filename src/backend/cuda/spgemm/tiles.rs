//! Sparse tiles on the device (src/format/tile.rs): conversion from CSR (kernels/format/tile.cu), and the
//! list of tiles by columns of tiles.

use super::rows::{types_of_factors, Factor};
use crate::backend::cuda::check::blocks;
use crate::backend::cuda::convert::device_wide::{exclusive_scan, scan, sorted, starts, Narrow};
use crate::backend::cuda::device::{Device, DeviceCall};
use crate::backend::cuda::launch::{launch, Kernel};
use crate::backend::cuda::layouts::kernel_structs;
use crate::backend::cuda::memory::{self, filled, filled_members, DeviceBuffer};
use crate::backend::cuda::module::kinds::kernel_kinds;
use crate::backend::cuda::operand::Rows;
use crate::error::{Error, Result};
use crate::format::tile::SIDE;
use crate::memory::Context;
use crate::select::spgemm::tiles::SetShape;
use crate::types::{Address, DataType};

/// Threads of a block that processes a row of tiles; the kernels have the same constant.
const BLOCK: u32 = 128;

kernel_structs! {
    /// Addresses of a matrix in tiles; the kernels' `Tiles`.
    pub struct TilesView = "spgemm/tile.cuh Tiles" {
        pub rows: Address,
        pub columns: Address,
        pub starts: Address,
        pub row_ptr: Address,
        pub masks: Address,
        pub used: Address,
    }

    /// Addresses of a list of tiles by columns; the kernels' `TileColumns`.
    pub struct ColumnsView = "spgemm/tile.cuh TileColumns" {
        starts: Address,
        rows: Address,
        tiles: Address,
    }

    /// Output arrays of the conversion to tiles; `Out` of kernels/format/tile.cu.
    struct Out = "format/tile.cu Out" {
        rows: Address,
        columns: Address,
        starts: Address,
        row_ptr: Address,
        masks: Address,
        used: Address,
        tile_rows: Address,
        index: Address,
        values: Address,
        counts: Address,
        flags: Address,
        firsts: Address,
    }
}

kernel_kinds! { "format/tile" {
    FILL(&'static str) = "fill" for [types(Algorithm::Tile)];
    TO_ROWS(&'static str) = "to_rows" for [["f32", "f64", "c32", "c64"]];
} }

/// Kernels that convert matrices to tiles and back.
#[derive(Clone, Copy)]
pub struct ConvertKernels {
    count: Kernel,
    fill: Kernel,
    keys: Kernel,
    columns: Kernel,
    gather: Kernel,
    pub entries_before: Kernel,
    pub complete: Kernel,
    pub to_rows: Kernel,
    pub products: Kernel,
}

impl ConvertKernels {
    /// Loads the kernels for matrices with values of this type.
    pub fn new(device: &Device, values: DataType) -> Result<Self> {
        let types = types_of_factors(values);
        let kernel = |name: &str| device.modules().kernel("format/tile", name);
        let kernels = ConvertKernels {
            count: kernel("tile_count")?,
            fill: FILL.load(device, (types,))?,
            keys: kernel("tile_keys")?,
            columns: kernel("tile_columns")?,
            gather: kernel("tile_gather")?,
            entries_before: kernel("tile_entries_before")?,
            complete: kernel("tile_complete")?,
            to_rows: TO_ROWS.load(
                device,
                match types {
                    // Tiles made from 16-bit values store 32-bit ones, the type of sums.
                    "f16f32" | "bf16f32" => ("f32",),
                    _ => (types,),
                },
            )?,
            products: kernel("tile_products")?,
        };
        kernels.fill.allow_shared(SetShape::LARGEST.fill)?;
        Ok(kernels)
    }
}

/// Returns the number of tiles before each row of tiles, and of all, of a matrix with less than 2^31 rows and
/// columns.
fn count_rows(cx: &Context, kernels: &ConvertKernels, matrix: &Rows) -> Result<DeviceBuffer<i64>> {
    let tile_rows = (matrix.rows as usize).div_ceil(SIDE);
    let shape = SetShape::of((matrix.cols as usize).div_ceil(SIDE));
    let rows = DeviceBuffer::<i64>::zeroed(cx, tile_rows + 1)?;
    // SAFETY: the pattern has been validated, `rows` has an element for each row of tiles and one more, and
    // the shared memory is what the kernel needs.
    unsafe {
        launch!(kernels.count, tile_rows as u32, BLOCK, shape.count, cx.stream;
            Factor::of(matrix), matrix.rows, shape.bits, rows.address())?;
        scan(cx, &rows)?;
    }
    Ok(rows)
}

/// Counts the tiles of a matrix; `usize::MAX` if it has too many rows or columns for tiles. Blocks.
pub fn count(cx: &Context, kernels: &ConvertKernels, matrix: &Rows) -> Result<usize> {
    if matrix.rows.max(matrix.cols) > i64::from(i32::MAX) {
        return Ok(usize::MAX);
    }
    let rows = count_rows(cx, kernels, matrix)?;
    Ok(rows.read(rows.len() - 1, 1)?[0] as usize)
}

/// Matrix in tiles, in the device's memory (src/format/tile.rs describes the arrays).
pub struct DeviceTiles {
    kernels: ConvertKernels,
    shape: SetShape,
    pub tile_rows: usize,
    pub tile_cols: usize,
    pub tiles: usize,
    pub(super) rows: DeviceBuffer<i64>,
    pub(super) columns: DeviceBuffer<u32>,
    pub(super) starts: DeviceBuffer<i64>,
    pub(super) row_ptr: DeviceBuffer<u8>,
    pub(super) masks: DeviceBuffer<u16>,
    used: DeviceBuffer<u32>,
    tile_row: DeviceBuffer<u32>,
    pub(super) index: DeviceBuffer<u8>,
    pub(super) values: DeviceBuffer<u8>,
    counts: DeviceBuffer<i64>,
    flags: DeviceBuffer<u32>,
    /// First entry of each row of tiles, if entries at equal positions were added up.
    firsts: Option<DeviceBuffer<i64>>,
}

impl DeviceTiles {
    /// Converts a matrix with a valid pattern; values get `value_bytes` bytes. It must have less than 2^31
    /// rows and columns; errors call the argument `name`. Blocks. The context must be current.
    pub fn build(
        cx: &Context,
        kernels: ConvertKernels,
        matrix: &Rows,
        value_bytes: usize,
        name: &str,
    ) -> Result<Self> {
        let too_large = |what: &str| {
            Error::unsupported(format!(
                "{name}: algorithm tile takes less than 2^31 rows and columns and 2^32 {what}"
            ))
        };
        if matrix.rows.max(matrix.cols) > i64::from(i32::MAX) {
            return Err(too_large("tiles"));
        }
        let (tile_rows, tile_cols) =
            ((matrix.rows as usize).div_ceil(SIDE), (matrix.cols as usize).div_ceil(SIDE));
        let rows = count_rows(cx, &kernels, matrix)?;
        let tiles = rows.read(tile_rows, 1)?[0] as usize;
        if u32::try_from(tiles).is_err() {
            return Err(too_large("tiles"));
        }
        let mut built = DeviceTiles {
            counts: DeviceBuffer::zeroed(cx, tile_rows + 1)?,
            flags: DeviceBuffer::zeroed(cx, 1)?,
            ..DeviceTiles::new(cx, kernels, (tile_rows, tile_cols), rows, tiles)?
        };
        memory::zero(built.starts.address(), built.starts.bytes(), cx.stream)?;
        built.allocate_entries(cx, matrix.nnz as usize, value_bytes)?;
        built.fill(cx, matrix)?;
        if built.flags.read(0, 1)?[0] != 0 {
            let firsts = DeviceBuffer::<i64>::new(cx, tile_rows + 1)?;
            // SAFETY: both have an element for each row of tiles and one more.
            unsafe { exclusive_scan(cx, built.counts.address(), firsts.address(), tile_rows + 1)? };
            built.firsts = Some(firsts);
            built.fill(cx, matrix)?;
        }
        memory::synchronize(cx.stream)?;
        Ok(built)
    }

    /// Builds a matrix from the tiles whose rows of tiles (ascending), columns of tiles and masks are given;
    /// each tile must have an entry. Copies these arrays and computes the others, except `index` and
    /// `values`, which are only allocated. Blocks.
    pub fn of_masks(
        cx: &DeviceCall<'_>,
        kernels: ConvertKernels,
        (row_count, col_count): (i64, i64),
        (tiles, tile_rows, columns, masks): (usize, Address, Address, Address),
        value_bytes: usize,
    ) -> Result<Self> {
        let sides = |extent: i64| (extent as usize).div_ceil(SIDE);
        let (rows_of_tiles, tile_cols) = (sides(row_count), sides(col_count));
        let rows = DeviceBuffer::new(cx, rows_of_tiles + 1)?;
        let mut built = DeviceTiles::new(cx, kernels, (rows_of_tiles, tile_cols), rows, tiles)?;
        memory::copy(built.columns.address(), columns, built.columns.bytes(), cx.stream)?;
        memory::copy(built.masks.address(), masks, built.masks.bytes(), cx.stream)?;
        memory::copy(built.tile_row.address(), tile_rows, built.tile_row.bytes(), cx.stream)?;
        let (count, rows) = (tiles as i64, rows_of_tiles as i64);
        // SAFETY: arrays have an element or 16 for each tile, `starts` one for each tile and one more, and
        // `rows` one for each row of tiles and one more.
        unsafe {
            launch!(kernels.columns, blocks(cx.device, rows + 1), 256, 0, cx.stream;
                built.tile_row.address(), count, rows, built.rows.address())?;
            launch!(kernels.complete, blocks(cx.device, count + 1), 256, 0, cx.stream;
                built.masks.address(), count, built.row_ptr.address(), built.used.address(),
                built.starts.address())?;
        }
        let entries = starts(cx, &built.starts)? as usize;
        built.allocate_entries(cx, entries, value_bytes)?;
        Ok(built)
    }

    /// Allocates the arrays that have an element, or 16, for each of `tiles` tiles; those for entries are empty.
    fn new(
        cx: &Context,
        kernels: ConvertKernels,
        (tile_rows, tile_cols): (usize, usize),
        rows: DeviceBuffer<i64>,
        tiles: usize,
    ) -> Result<Self> {
        Ok(DeviceTiles {
            kernels,
            shape: SetShape::of(tile_cols),
            tile_rows,
            tile_cols,
            tiles,
            rows,
            columns: DeviceBuffer::new(cx, tiles)?,
            starts: DeviceBuffer::new(cx, tiles + 1)?,
            row_ptr: DeviceBuffer::new(cx, bytes(tiles, SIDE)?)?,
            masks: DeviceBuffer::new(cx, bytes(tiles, SIDE)?)?,
            used: DeviceBuffer::new(cx, tiles)?,
            tile_row: DeviceBuffer::new(cx, tiles)?,
            index: DeviceBuffer::new(cx, 0)?,
            values: DeviceBuffer::new(cx, 0)?,
            counts: DeviceBuffer::new(cx, 0)?,
            flags: DeviceBuffer::new(cx, 0)?,
            firsts: None,
        })
    }

    /// Allocates the arrays for entries and their values, of `value_bytes` bytes each.
    fn allocate_entries(&mut self, cx: &Context, entries: usize, value_bytes: usize) -> Result<()> {
        self.index = DeviceBuffer::new(cx, entries)?;
        self.values = DeviceBuffer::new(cx, bytes(entries, value_bytes)?)?;
        Ok(())
    }

    /// Returns the number of stored entries. Blocks.
    pub fn entries(&self, cx: &Context) -> Result<i64> {
        Ok(memory::download(self.starts.at(self.tiles), 1, cx.stream)?[0])
    }

    /// Returns the address of the array with the row of tiles of each tile.
    pub fn tile_row(&self) -> Address {
        self.tile_row.address()
    }

    /// Returns whether both have the same pattern. Blocks, and copies the patterns to the host.
    pub fn same_pattern(&self, cx: &Context, other: &Self) -> Result<bool> {
        fn same<T: bytemuck::Pod + PartialEq>(
            cx: &Context,
            a: &DeviceBuffer<T>,
            b: &DeviceBuffer<T>,
        ) -> Result<bool> {
            let read = |of: &DeviceBuffer<T>| memory::download::<T>(of.address(), of.len(), cx.stream);
            Ok(a.len() == b.len() && read(a)? == read(b)?)
        }
        let sizes = |of: &Self| (of.tile_rows, of.tile_cols, of.tiles);
        Ok(sizes(self) == sizes(other)
            && same(cx, &self.rows, &other.rows)?
            && same(cx, &self.columns, &other.columns)?
            && same(cx, &self.masks, &other.masks)?)
    }

    /// Fills all arrays except `rows`; also used for new values of the same pattern. Only launches.
    pub fn fill(&self, cx: &Context, matrix: &Rows) -> Result<()> {
        let out = Out {
            rows: self.rows.address(),
            columns: self.columns.address(),
            starts: self.starts.address(),
            row_ptr: self.row_ptr.address(),
            masks: self.masks.address(),
            used: self.used.address(),
            tile_rows: self.tile_row.address(),
            index: self.index.address(),
            values: self.values.address(),
            counts: self.counts.address(),
            flags: self.flags.address(),
            firsts: self.firsts.as_ref().map_or(Address::NULL, DeviceBuffer::address),
        };
        // SAFETY: the pattern has been validated, the arrays are as large as was counted, and the shared
        // memory is what the kernel needs.
        unsafe {
            launch!(self.kernels.fill, self.tile_rows as u32, BLOCK, self.shape.fill, cx.stream;
                Factor::of(matrix), matrix.values, matrix.rows, self.shape.bits, out)
        }
    }

    /// Returns the kernels with which the matrix was made.
    pub fn kernels(&self) -> &ConvertKernels {
        &self.kernels
    }

    /// Returns the addresses as a kernel parameter.
    pub fn view(&self) -> TilesView {
        TilesView {
            rows: self.rows.address(),
            columns: self.columns.address(),
            starts: self.starts.address(),
            row_ptr: self.row_ptr.address(),
            masks: self.masks.address(),
            used: self.used.address(),
        }
    }
}
filled_members!(DeviceTiles {
    rows,
    columns,
    starts,
    row_ptr,
    masks,
    used,
    tile_row,
    index,
    values,
    counts,
    flags,
    firsts
});

/// List of the tiles of a matrix by columns of tiles.
pub struct ByColumns {
    pub(super) starts: DeviceBuffer<i64>,
    pub(super) rows: DeviceBuffer<u32>,
    pub(super) tiles: DeviceBuffer<u32>,
}

impl ByColumns {
    /// Sorts the tiles by column; their entries stay as they are. Blocks.
    pub fn build(cx: &DeviceCall<'_>, of: &DeviceTiles) -> Result<Self> {
        let (kernels, count) = (&of.kernels, of.tiles as i64);
        let bits = 64 - (of.tile_cols.max(2) as u64 - 1).leading_zeros();
        let (keys, tiles) = sorted::<Narrow>(cx, of.tiles, bits, |keys, numbers| {
            // SAFETY: every array has an element for each tile.
            unsafe {
                launch!(kernels.keys, blocks(cx.device, count), 256, 0, cx.stream;
                    of.columns.address(), count, keys, numbers)
            }
        })?;
        let starts = DeviceBuffer::<i64>::new(cx, of.tile_cols + 1)?;
        let rows = DeviceBuffer::<u32>::new(cx, of.tiles)?;
        // SAFETY: as above, and `starts` has an element for each column of tiles and one more.
        unsafe {
            let columns = of.tile_cols as i64;
            launch!(kernels.columns, blocks(cx.device, columns + 1), 256, 0, cx.stream;
                keys.address(), count, columns, starts.address())?;
            launch!(kernels.gather, blocks(cx.device, count), 256, 0, cx.stream;
                of.tile_row.address(), tiles.address(), count, rows.address())?;
        }
        filled(cx, ByColumns { starts, rows, tiles })
    }

    /// Returns the addresses as a kernel parameter.
    pub fn view(&self) -> ColumnsView {
        ColumnsView { starts: self.starts.address(), rows: self.rows.address(), tiles: self.tiles.address() }
    }
}

filled_members!(ByColumns { starts, rows, tiles });

/// Returns the bytes of an array of `count` elements; an error if the number overflows.
pub fn bytes(count: usize, size: usize) -> Result<usize> {
    count.checked_mul(size).ok_or_else(|| Error::out_of_memory(usize::MAX))
}

//! Matrices in tiles that the library owns (src/matrix/tiles.rs), on a device: conversion from and to CSR and
//! CSC, and their use as factors of algorithm `tile`.

use std::sync::Arc;

use super::columns::Transposition;
use super::factors::number_of_products;
use super::rows::{self, Ints};
use super::target;
use super::tiles::{bytes, ConvertKernels, DeviceTiles};
use crate::backend::cuda::check::blocks;
use crate::backend::cuda::convert::device_wide::scan;
use crate::backend::cuda::device::DeviceCall;
use crate::backend::cuda::launch::launch;
use crate::backend::cuda::memory::{self, filled, filled_members, DeviceBuffer, Fill};
use crate::backend::cuda::operand::Operand;
use crate::error::{Error, Result};
use crate::format::tile::SIDE;
use crate::matrix::tiles::Tiles;
use crate::matrix::{Compressed, SparseArrays, SparseMatrix, TileShape};
use crate::memory::Context;
use crate::select::Source;
use crate::support::Types;
use crate::types::{ComputeType, DataType, Format, IndexBase, IndexType, Operation};

/// Wraps tiles with values of type `value_type` as a matrix. `by_columns` says that they are the tiles of its
/// transpose, whose shape is given.
pub fn contents(
    cx: &Context,
    mut tiles: DeviceTiles,
    (row_count, col_count): (i64, i64),
    value_type: DataType,
    by_columns: bool,
) -> Result<Tiles> {
    let nnz = tiles.entries(cx)?;
    tiles.mark_filled();
    let (rows, cols) = if by_columns { (col_count, row_count) } else { (row_count, col_count) };
    let shape = TileShape { rows, cols, nnz, tiles: tiles.tiles as i64, value_type, by_columns };
    Ok(Tiles { shape, contents: Box::new(Arc::new(tiles)) })
}

/// Returns the device's tiles of a matrix; an error if they are those of another backend.
pub fn tiles_of(tiles: &Tiles, name: &str) -> Result<Arc<DeviceTiles>> {
    tiles
        .contents
        .downcast_ref::<Arc<DeviceTiles>>()
        .map(Arc::clone)
        .ok_or_else(|| Error::invalid(name, "its tiles are of another backend than the plan's"))
}

/// Returns the type of sums of products of values of this type.
fn sums(values: DataType) -> DataType {
    match values {
        DataType::R16F | DataType::R16BF => DataType::R32F,
        other => other,
    }
}

/// Converts a CSR or CSC matrix; see [`crate::backend::Backend::make_tiles`].
pub fn make(cx: &DeviceCall<'_>, a: &SparseMatrix) -> Result<Tiles> {
    let (mut operand, _) = Operand::build(cx, a, Operation::NonTranspose, Source::InPlace, "A", false)?;
    let kernels = ConvertKernels::new(cx.device, a.value_type())?;
    let (rows, values) = (operand.rows(), sums(a.value_type()));
    let tiles = DeviceTiles::build(cx, kernels, &rows, values.size(), "A")?;
    operand.mark_filled();
    contents(cx, tiles, (rows.rows, rows.cols), values, a.format() == Format::Csc)
}

/// Returns the row offsets of a matrix of `rows` rows in tiles, and for each of the 16 rows of each tile the
/// number of entries that the matrix's row has before the tile. Blocks.
fn entries_before(
    cx: &Context,
    tiles: &DeviceTiles,
    rows: i64,
) -> Result<(DeviceBuffer<i64>, DeviceBuffer<u32>)> {
    let row_starts = DeviceBuffer::<i64>::zeroed(cx, rows as usize + 1)?;
    let entries_before = DeviceBuffer::<u32>::new(cx, bytes(tiles.tiles, SIDE)?)?;
    // SAFETY: `entries_before` has 16 elements for each tile, and `row_starts` one for each row and one more.
    unsafe {
        launch!(tiles.kernels().entries_before, tiles.tile_rows as u32, 256, 0, cx.stream;
            tiles.rows.address(), tiles.masks.address(), rows, entries_before.address(), row_starts.address())?;
    }
    scan(cx, &row_starts)?;
    memory::synchronize(cx.stream)?;
    Ok((row_starts, entries_before))
}

/// Writes the entries of tiles into the indices and values of CSR, or of CSC if the tiles are by columns.
/// `row_starts` and `entries_before` are the result of [`entries_before`].
fn write_rows(
    cx: &DeviceCall<'_>,
    tiles: &DeviceTiles,
    (row_starts, entries_before): (&DeviceBuffer<i64>, &DeviceBuffer<u32>),
    m: &Compressed,
) -> Result<()> {
    let count = tiles.tiles as i64;
    let wide = m.index_type.wide();
    // SAFETY: there is room for every entry at the positions that were counted.
    unsafe {
        launch!(tiles.kernels().to_rows, blocks(cx.device, 32 * count), 256, 0, cx.stream;
            tiles.view(), tiles.tile_row(), tiles.index.address(), tiles.values.address(), count,
            row_starts.address(), entries_before.address(), m.indices, wide, i64::from(m.base.code()), m.values)
    }
}

/// Copy of a matrix in tiles as CSR of base 0, or as CSC if the tiles are by columns.
struct Plain {
    arrays: Compressed,
    matrix: SparseMatrix,
    offsets: DeviceBuffer<i64>,
    indices: DeviceBuffer<i32>,
    _values: DeviceBuffer<u8>,
}

impl Plain {
    /// Copies a matrix; errors call the argument `name`. Blocks.
    fn of(cx: &DeviceCall<'_>, of: &Tiles, name: &str) -> Result<Self> {
        let tiles = tiles_of(of, name)?;
        let TileShape { rows, cols, nnz, value_type, by_columns, .. } = of.shape;
        let (major, minor) = if by_columns { (cols, rows) } else { (rows, cols) };
        let (offsets, entries_before) = entries_before(cx, &tiles, major)?;
        let indices = DeviceBuffer::<i32>::new(cx, nnz as usize)?;
        let values = DeviceBuffer::<u8>::new(cx, bytes(nnz as usize, value_type.size())?)?;
        let arrays = Compressed {
            major,
            minor,
            nnz,
            offsets: offsets.address(),
            indices: indices.address(),
            values: values.address(),
            offset_type: IndexType::I64,
            index_type: IndexType::I32,
            base: IndexBase::Zero,
            value_type,
        };
        write_rows(cx, &tiles, (&offsets, &entries_before), &arrays)?;
        let of_format = if by_columns { SparseArrays::Csc(arrays) } else { SparseArrays::Csr(arrays) };
        let matrix = SparseMatrix { arrays: of_format, writable: true, temporary: false };
        filled(cx, Plain { arrays, matrix, offsets, indices, _values: values })
    }
}
filled_members!(Plain { offsets, indices, _values });

/// Writes a matrix in tiles to CSR or CSC; see [`crate::backend::Backend::write_tiles`].
pub fn write(cx: &DeviceCall<'_>, tiles: &Tiles, b: &SparseMatrix) -> Result<()> {
    let (SparseArrays::Csr(m) | SparseArrays::Csc(m)) = b.arrays else {
        return Err(Error::unsupported(format!("B: tiles do not become {}", b.format().short())));
    };
    let (value, by_columns) = (tiles.shape.value_type, tiles.shape.by_columns);
    let compute = match value {
        DataType::R64F => ComputeType::R64F,
        DataType::C32F => ComputeType::C32F,
        DataType::C64F => ComputeType::C64F,
        _ => ComputeType::R32F,
    };
    let types = Types { a: value, x: value, y: value, compute };
    let kernels = rows::Kernels::new(cx.device, types, (m.index_type, m.minor));
    if (b.format() == Format::Csc) == by_columns {
        let of = tiles_of(tiles, "A")?;
        let (row_starts, entries_before) = entries_before(cx, &of, m.major)?;
        write_rows(cx, &of, (&row_starts, &entries_before), &m)?;
        target::write_offsets(cx, &kernels, row_starts.address(), &m)?;
        return memory::synchronize(cx.stream);
    }
    let plain = Plain::of(cx, tiles, "A")?;
    let from = &plain.arrays;
    let columns = Ints::new(plain.indices.address(), IndexType::I32);
    let turn = Transposition::new(cx, &kernels, columns, from.nnz as usize, from.minor)?;
    turn.write(cx, &kernels, (&plain.offsets, from.major), (from.values, value.size()), &m)?;
    memory::synchronize(cx.stream)
}

/// Returns the tiles of op(A) for an A in tiles: A's own if they are read `in_place`, or else converted ones.
/// Blocks.
pub fn factor(
    cx: &DeviceCall<'_>,
    tiles: &Tiles,
    op: Operation,
    in_place: bool,
    name: &str,
) -> Result<Arc<DeviceTiles>> {
    if in_place {
        return tiles_of(tiles, name);
    }
    let plain = Plain::of(cx, tiles, name)?;
    let (mut operand, _) = Operand::build(cx, &plain.matrix, op, Source::Canonical, name, false)?;
    let kernels = ConvertKernels::new(cx.device, tiles.shape.value_type)?;
    let value_bytes = tiles.shape.value_type.size();
    let mut made = DeviceTiles::build(cx, kernels, &operand.rows(), value_bytes, name)?;
    operand.mark_filled();
    made.mark_filled();
    Ok(Arc::new(made))
}

/// Counts the multiplications of the product of `left` and `right`; `rows` are the rows of `right`. Blocks.
pub fn count_products(
    cx: &DeviceCall<'_>,
    left: &DeviceTiles,
    right: &DeviceTiles,
    rows: i64,
) -> Result<i64> {
    let (row_starts, _) = entries_before(cx, right, rows)?;
    let report = DeviceBuffer::<u64>::zeroed(cx, 2)?;
    let count = left.tiles as i64;
    // SAFETY: columns of the left factor are rows of the right factor; there are two words for the sum.
    unsafe {
        launch!(left.kernels().products, blocks(cx.device, 32 * count), 256, 0, cx.stream;
            left.view(), left.index.address(), count, row_starts.address(), report.address())?;
    }
    number_of_products(&report.read(0, 2)?)
}

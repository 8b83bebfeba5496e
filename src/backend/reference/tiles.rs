//! Matrices in sparse tiles, in the oracle's form: the arrays of a CSR matrix, or of a CSC matrix if the
//! tiles are by columns, without duplicates.

use std::sync::Arc;

use super::arrays::{Indices, Values};
use super::entries::{self, Entry};
use super::number::Number;
use crate::error::{Error, Result};
use crate::matrix::tiles::{self, Tiles};
use crate::matrix::{Compressed, SparseArrays, SparseMatrix, TileShape};
use crate::memory::{Buffer, Context};
use crate::types::{DataType, Format};
use num_complex::Complex64;

/// Number of rows and of columns of a tile.
const SIDE: usize = 16;

/// CSR or CSC arrays of a matrix in tiles.
pub(super) type Plain = tiles::Plain<i64>;

/// Returns whether two matrices have entries at the same positions.
pub(super) fn have_same_pattern(a: &Plain, b: &Plain) -> bool {
    a.matrix.format() == b.matrix.format()
        && a.matrix.shape() == b.matrix.shape()
        && a.offsets[..] == b.offsets[..]
        && a.indices[..] == b.indices[..]
}

/// Returns the arrays in the contents of a matrix in tiles; an error if another backend made it.
pub(super) fn plain_of(tiles: &Tiles, name: &str) -> Result<Arc<Plain>> {
    let found = tiles.contents.downcast_ref::<Arc<Plain>>().map(Arc::clone);
    found.ok_or_else(|| Error::invalid(name, "its tiles are of another backend than the plan's"))
}

/// Returns the value type of tiles that are made from values of a type: that of their sums.
fn type_of_tiles(value_type: DataType) -> DataType {
    match value_type {
        DataType::R16F | DataType::R16BF => DataType::R32F,
        other => other,
    }
}

/// Implements [`crate::operation::SpgemmBackend::make_tiles`].
pub(super) fn make(cx: &Context, a: &SparseMatrix) -> Result<Tiles> {
    let (rows, cols, _) = a.shape();
    if rows.max(cols) > i64::from(i32::MAX) {
        let most = rows.max(cols);
        return Err(Error::unsupported(format!(
            "A: algorithm tile takes less than 2^31 rows and columns, not {most}"
        )));
    }
    match a.value_type().is_complex() {
        true => make_of::<Complex64>(cx, a),
        false => make_of::<f64>(cx, a),
    }
}

fn make_of<N: Number>(cx: &Context, a: &SparseMatrix) -> Result<Tiles> {
    let by_columns = a.format() == Format::Csc;
    let place = |entry: &Entry| match by_columns {
        true => (entry.col, entry.row),
        false => (entry.row, entry.col),
    };
    let mut entries = entries::read(cx, a, "A")?;
    entries.sort_unstable_by_key(|entry| (place(entry), entry.position));
    let is_first = |at: usize| at == 0 || place(&entries[at - 1]) != place(&entries[at]);
    let nnz = (0..entries.len()).filter(|&at| is_first(at)).count() as i64;
    let mut tiles = Buffer::<[usize; 2]>::zeroed(&cx.allocator, entries.len())?;
    for (tile, entry) in tiles.iter_mut().zip(&entries[..]) {
        *tile = [entry.row / SIDE, entry.col / SIDE];
    }
    tiles.sort_unstable();
    let count = (0..tiles.len()).filter(|&at| at == 0 || tiles[at - 1] != tiles[at]).count() as i64;
    let (rows, cols, _) = a.shape();
    let value_type = type_of_tiles(a.value_type());
    let shape = TileShape { rows, cols, nnz, tiles: count, value_type, by_columns };
    let mut out = Plain::room(cx, &shape)?;
    let from = Values::read("A", a)?;
    let mut to = Values::write("A", &out.matrix)?;
    let (mut at, mut to_at) = (0, 0);
    while at < entries.len() {
        let (major, minor) = place(&entries[at]);
        let mut sum = N::of(from.get(entries[at].position));
        at += 1;
        while at < entries.len() && !is_first(at) {
            sum += N::of(from.get(entries[at].position));
            at += 1;
        }
        to.set(to_at, sum.value());
        out.indices[to_at] = minor as i64;
        out.offsets[major + 1] += 1;
        to_at += 1;
    }
    for major in 1..out.offsets.len() {
        out.offsets[major] += out.offsets[major - 1];
    }
    Ok(Tiles { shape, contents: Box::new(Arc::new(out)) })
}

/// Implements [`crate::operation::SpgemmBackend::write_tiles`]. The caller has compared shapes and types.
pub(super) fn write(cx: &Context, tiles: &Tiles, b: &SparseMatrix) -> Result<()> {
    let plain = plain_of(tiles, "A")?;
    let a = &plain.matrix;
    let (m, by_columns) = match &b.arrays {
        SparseArrays::Csr(m) => (m, false),
        SparseArrays::Csc(m) => (m, true),
        _ => {
            let format = b.format().short();
            return Err(Error::unsupported(format!("B: SpGEMM does not write format {format}")));
        }
    };
    let mut entries = entries::read(cx, a, "A")?;
    let place = |entry: &Entry| match by_columns {
        true => (entry.col, entry.row),
        false => (entry.row, entry.col),
    };
    entries.sort_unstable_by_key(place);
    let mut lengths = Buffer::<usize>::zeroed(&cx.allocator, m.major as usize)?;
    entries.iter().for_each(|entry| lengths[place(entry).0] += 1);
    // SAFETY: B's descriptor promises room for nnz indices, which nothing else accesses while this call runs.
    let mut indices = unsafe { Indices::open_mut("B", m.indices, entries.len(), m.index_type)? };
    let from = Values::read("A", a)?;
    let mut to = Values::write("B", b)?;
    write_offsets("B", m, &mut lengths)?;
    for (at, entry) in entries.iter().enumerate() {
        indices.set(at, place(entry).1 as i64 + i64::from(m.base.code()))?;
        to.set(at, from.get(entry.position));
    }
    Ok(())
}

/// Replaces the lengths of a matrix's rows or columns by their start positions, and writes these as its
/// offsets.
pub(super) fn write_offsets(name: &str, m: &Compressed, lengths: &mut [usize]) -> Result<()> {
    if lengths.is_empty() && m.offsets.is_null() {
        // Without rows (columns) there is only one offset, the base, or no array.
        return Ok(());
    }
    let (base, major) = (i64::from(m.base.code()), lengths.len());
    // SAFETY: the descriptor promises room for major + 1 offsets, which nothing else accesses while this call
    // runs.
    let mut offsets = unsafe { Indices::open_mut(name, m.offsets, major + 1, m.offset_type)? };
    let mut total = 0;
    for (at, length) in lengths.iter_mut().enumerate() {
        offsets.set(at, total as i64 + base)?;
        total += std::mem::replace(length, total);
    }
    offsets.set(major, total as i64 + base)
}

//! Sparse tiles of 16 × 16, after Niu et al., TileSpGEMM (PPoPP 2022), section 3.2.
//!
//! [`SIDE`] rows of the matrix are a row of tiles. A tile's columns begin at a multiple of [`SIDE`]; it
//! exists where one of the rows has an entry in it. Names in brackets are the paper's. Arrays:
//! - `rows` [tilePtr]: i64, rows of tiles + 1, the first tile of each
//! - `columns` [tileColIdx]: u32 per tile, its column of tiles, ascending in a row of tiles
//! - `starts` [tileNnz]: i64, tiles + 1, the first entry of each; 64 bits, and the number of a tile's entries
//!   is a difference, so that a full tile of 256 needs no special treatment
//! - `row_ptr` [rowPtr]: 16 × u8 per tile, the number of the tile's entries before each row: at most 240
//! - `masks` [mask]: 16 × u16 per tile, the columns of each row, one bit each from the lowest up
//! - `index` [rowIdx, colIdx] (on a device): u8 per entry, row << 4 | column in the tile
//! - `values` [val]: one per entry, tile by tile, in a tile by row and column
//!
//! Entries that the user stored twice are added up in their order, so values have the type of the sums. Rows
//! need not be sorted. A tile of a product may be empty. The inverse is `TileLayout::for_each_entry`. The
//! CUDA backend builds the same arrays on the device (kernels/format/tile.cu).

use std::ops::Range;
use std::sync::Arc;

use crate::error::Result;
use crate::matrix::compressed::Pattern;
use crate::memory::{pieces, pool, Allocator, Buffer};
use crate::types::{Accumulator, Index, Storage};

/// Number of rows and columns of a tile.
pub const SIDE: usize = 16;

/// Pattern of a tiled matrix.
#[derive(Debug)]
pub struct TilePattern {
    /// Number of rows of the matrix.
    pub row_count: usize,
    /// Number of columns of the matrix.
    pub col_count: usize,
    /// First tile of each row of tiles, and the number of tiles at the end.
    pub rows: Buffer<i64>,
    /// Column of tiles of each tile.
    pub columns: Buffer<u32>,
    /// First entry of each tile, and the number of entries at the end.
    pub starts: Buffer<i64>,
    /// Number of the tile's entries before each of its rows, 16 per tile.
    pub row_ptr: Buffer<u8>,
    /// Mask of the columns in each row, 16 per tile.
    pub masks: Buffer<u16>,
}

/// Tiled matrix in host memory.
#[derive(Debug)]
pub struct TileLayout<T: Accumulator> {
    /// Pattern; that of a product is shared with its plan.
    pub pattern: Arc<TilePattern>,
    /// Value of each entry.
    pub values: Buffer<T>,
}

/// Source of the entries from which a [`TilePattern`] is built.
pub trait TileSource: Sync {
    /// Returns an estimate of the work for a row of tiles.
    fn weight(&self, tile_row: usize) -> usize;
    /// Calls `f` with the columns of tiles in a row of tiles, in any order, each at least once.
    fn for_each_column(&self, tile_row: usize, f: impl FnMut(usize));
    /// Sets the bits of all entries of a row of tiles in `masks` (16 per tile of the row); `slots[column of
    /// tiles]` is the number of its tile in the row.
    fn mark(&self, tile_row: usize, slots: &[u32], masks: &mut [u16]);
}

/// Divides the rows of tiles into at most as many ranges as there are threads, of about the same weight.
pub fn shares(tile_rows: usize, weight: impl Fn(usize) -> usize) -> Vec<Range<usize>> {
    let threads = pool::size();
    let total: usize = (0..tile_rows).map(|row| weight(row) + 1).sum();
    let mut out = Vec::with_capacity(threads);
    let (mut first, mut sum) = (0, 0);
    for row in 0..tile_rows {
        sum += weight(row) + 1;
        if sum * threads >= total * (out.len() + 1) {
            out.push(first..row + 1);
            first = row + 1;
        }
    }
    if first < tile_rows {
        out.push(first..tile_rows);
    }
    out
}

/// Cuts the first `len` elements off the slice `rest`, and returns them.
pub fn cut<'a, T>(rest: &mut &'a mut [T], len: usize) -> &'a mut [T] {
    let (part, tail) = std::mem::take(rest).split_at_mut(len);
    *rest = tail;
    part
}

/// Replaces the counts by their inclusive prefix sums, in place; the last is the sum of all.
fn scan(counts: &mut [i64]) {
    for at in 1..counts.len() {
        counts[at] += counts[at - 1];
    }
}

/// Returns the number of columns of a mask before column `column`.
#[inline(always)]
pub fn before(mask: u16, column: usize) -> usize {
    (mask & ((1 << column) - 1)).count_ones() as usize
}

/// Iterates over the columns of a mask.
#[inline(always)]
pub fn bits(mut mask: u16) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let column = mask.trailing_zeros() as usize;
        let found = mask != 0;
        mask &= mask.wrapping_sub(1);
        found.then_some(column)
    })
}

impl TilePattern {
    /// Builds the tiles of a matrix of `row_count` × `col_count`.
    pub fn build(
        allocator: &Arc<Allocator>,
        (row_count, col_count): (usize, usize),
        source: &impl TileSource,
    ) -> Result<Self> {
        let (tile_rows, tile_cols) = (row_count.div_ceil(SIDE), col_count.div_ceil(SIDE));
        let shares = shares(tile_rows, |row| source.weight(row));
        let mut rows = Buffer::<i64>::zeroed(allocator, tile_rows + 1)?;
        // In the first pass 1 + the last row of tiles that had the column; in the second the number of the
        // column's tile in its row.
        let mut marks = Buffer::<u32>::zeroed(allocator, tile_cols.saturating_mul(shares.len()))?;
        {
            struct TileShare<'a>(Range<usize>, &'a mut [u32], &'a mut [i64]);
            let (mut rest, mut counts) = (&mut marks[..], &mut rows[1..]);
            let part = |rows: &Range<usize>| {
                TileShare(rows.clone(), cut(&mut rest, tile_cols), cut(&mut counts, rows.len()))
            };
            let mut parts: Vec<_> = shares.iter().map(part).collect();
            let count = |TileShare(rows, marks, counts): &mut TileShare| {
                for (row, count) in rows.clone().zip(counts.iter_mut()) {
                    let stamp = row as u32 + 1;
                    source.for_each_column(row, |column| {
                        *count += i64::from(marks[column] != stamp);
                        marks[column] = stamp;
                    });
                }
            };
            pieces::for_each(pieces::each(&mut parts), |_, part| count(part));
        }
        scan(&mut rows);
        let tiles = rows[tile_rows] as usize;
        let mut columns = Buffer::<u32>::zeroed(allocator, tiles)?;
        let mut starts = Buffer::<i64>::zeroed(allocator, tiles + 1)?;
        let mut row_ptr = Buffer::<u8>::zeroed(allocator, tiles.saturating_mul(SIDE))?;
        let mut masks = Buffer::<u16>::zeroed(allocator, tiles.saturating_mul(SIDE))?;
        {
            struct TileShare<'a> {
                rows: Range<usize>,
                marks: &'a mut [u32],
                columns: &'a mut [u32],
                counts: &'a mut [i64],
                row_ptr: &'a mut [u8],
                masks: &'a mut [u16],
            }
            let (mut rest, mut to_columns, mut counts) = (&mut marks[..], &mut columns[..], &mut starts[1..]);
            let (mut to_ptr, mut to_masks) = (&mut row_ptr[..], &mut masks[..]);
            let part = |range: &Range<usize>| {
                let tiles = (rows[range.end] - rows[range.start]) as usize;
                TileShare {
                    rows: range.clone(),
                    marks: cut(&mut rest, tile_cols),
                    columns: cut(&mut to_columns, tiles),
                    counts: cut(&mut counts, tiles),
                    row_ptr: cut(&mut to_ptr, tiles * SIDE),
                    masks: cut(&mut to_masks, tiles * SIDE),
                }
            };
            let mut parts: Vec<_> = shares.iter().map(part).collect();
            let fill = |part: &mut TileShare| {
                let (mut columns, mut masks) = (&mut part.columns[..], &mut part.masks[..]);
                for row in part.rows.clone() {
                    let tiles = (rows[row + 1] - rows[row]) as usize;
                    let columns = cut(&mut columns, tiles);
                    let mut next = 0;
                    // Differs from the stamps of the first pass and from the numbers of tiles in a row, of
                    // which there are less than 2^28.
                    let stamp = !(row as u32);
                    source.for_each_column(row, |column| {
                        if std::mem::replace(&mut part.marks[column], stamp) != stamp {
                            columns[next] = column as u32;
                            next += 1;
                        }
                    });
                    columns.sort_unstable();
                    for (slot, &column) in columns.iter().enumerate() {
                        part.marks[column as usize] = slot as u32;
                    }
                    source.mark(row, part.marks, cut(&mut masks, tiles * SIDE));
                }
                let tiles = part.masks.chunks_exact(SIDE).zip(part.row_ptr.chunks_exact_mut(SIDE));
                for (count, (masks, row_ptr)) in part.counts.iter_mut().zip(tiles) {
                    for (mask, row_ptr) in masks.iter().zip(row_ptr) {
                        // At most 240 entries are before the last row.
                        *row_ptr = *count as u8;
                        *count += i64::from(mask.count_ones());
                    }
                }
            };
            pieces::for_each(pieces::each(&mut parts), |_, part| fill(part));
        }
        scan(&mut starts);
        Ok(TilePattern { row_count, col_count, rows, columns, starts, row_ptr, masks })
    }

    /// Returns the tiles of a row of tiles.
    #[inline(always)]
    pub fn tiles(&self, tile_row: usize) -> Range<usize> {
        self.rows[tile_row] as usize..self.rows[tile_row + 1] as usize
    }

    /// Returns the number of rows of tiles.
    pub fn tile_rows(&self) -> usize {
        self.rows.len() - 1
    }

    /// Returns the number of columns of tiles.
    pub fn tile_cols(&self) -> usize {
        self.col_count.div_ceil(SIDE)
    }

    /// Returns the number of stored entries.
    pub fn nnz(&self) -> usize {
        self.starts[self.columns.len()] as usize
    }

    /// Returns the entries in the tiles of a row of tiles.
    pub fn entries(&self, tile_row: usize) -> Range<usize> {
        let tiles = self.tiles(tile_row);
        self.starts[tiles.start] as usize..self.starts[tiles.end] as usize
    }

    /// Returns the mask of the columns in a row of a tile.
    #[inline(always)]
    pub fn mask(&self, tile: usize, row: usize) -> u16 {
        self.masks[tile * SIDE + row]
    }

    /// Returns the position of the first entry of a row of a tile.
    #[inline(always)]
    pub fn position(&self, tile: usize, row: usize) -> usize {
        self.starts[tile] as usize + usize::from(self.row_ptr[tile * SIDE + row])
    }

    /// Calls f(column, position) for the entries of a row of the matrix, by ascending column.
    pub fn for_each_of_row(&self, row: usize, mut f: impl FnMut(usize, usize)) {
        for tile in self.tiles(row / SIDE) {
            let first = self.position(tile, row % SIDE);
            for (i, column) in bits(self.mask(tile, row % SIDE)).enumerate() {
                f(self.columns[tile] as usize * SIDE + column, first + i);
            }
        }
    }

    /// Fills `values`, one for each entry, by rows of tiles in parallel. `fill` gets the number of a row of
    /// tiles, the number of its tile in each column of tiles, and the values of its entries; `weight` returns
    /// its work.
    pub fn fill_rows<T: Send>(
        &self,
        allocator: &Arc<Allocator>,
        mut values: &mut [T],
        weight: impl Fn(usize) -> usize,
        fill: impl Fn(usize, &[u64], &mut [T]) + Sync,
    ) -> Result<()> {
        let (shares, tile_cols) = (shares(self.tile_rows(), weight), self.tile_cols());
        let mut tables = Buffer::<u64>::zeroed(allocator, tile_cols.saturating_mul(shares.len()))?;
        let mut rest = &mut tables[..];
        let part = |rows: &Range<usize>| {
            let entries = self.entries(rows.end - 1).end - self.entries(rows.start).start;
            (rows.clone(), cut(&mut rest, tile_cols), cut(&mut values, entries))
        };
        let mut parts: Vec<_> = shares.iter().map(part).collect();
        pieces::for_each(pieces::each(&mut parts), |_, (rows, tiles_of, values)| {
            let mut values = &mut values[..];
            for row in rows.clone() {
                for tile in self.tiles(row) {
                    tiles_of[self.columns[tile] as usize] = tile as u64;
                }
                fill(row, tiles_of, cut(&mut values, self.entries(row).len()));
            }
        });
        Ok(())
    }

    /// Returns the row offsets that the matrix has in CSR.
    pub fn row_offsets(&self, allocator: &Arc<Allocator>) -> Result<Buffer<i64>> {
        let mut offsets = Buffer::<i64>::zeroed(allocator, self.row_count + 1)?;
        for row in 0..self.row_count {
            let counts = self.tiles(row / SIDE).map(|tile| self.mask(tile, row % SIDE).count_ones());
            offsets[row + 1] = offsets[row] + i64::from(counts.sum::<u32>());
        }
        Ok(offsets)
    }
}

/// Tile source for a matrix in CSR.
struct CsrRows<'a, I, J>(&'a Pattern<'a, I, J>);

impl<I: Index, J: Index> CsrRows<'_, I, J> {
    fn positions(&self, tile_row: usize) -> impl Iterator<Item = (usize, usize)> + '_ {
        let rows = tile_row * SIDE..((tile_row + 1) * SIDE).min(self.0.major);
        rows.flat_map(|row| self.0.range(row).map(move |at| (row % SIDE, at)))
    }
}

impl<I: Index, J: Index> TileSource for CsrRows<'_, I, J> {
    fn weight(&self, tile_row: usize) -> usize {
        let last = ((tile_row + 1) * SIDE).min(self.0.major) - 1;
        self.0.range(last).end - self.0.range(tile_row * SIDE).start
    }

    fn for_each_column(&self, tile_row: usize, mut f: impl FnMut(usize)) {
        self.positions(tile_row).for_each(|(_, at)| f(self.0.index(at) / SIDE));
    }

    fn mark(&self, tile_row: usize, slots: &[u32], masks: &mut [u16]) {
        for (row, at) in self.positions(tile_row) {
            let column = self.0.index(at);
            masks[slots[column / SIDE] as usize * SIDE + row] |= 1 << (column % SIDE);
        }
    }
}

impl<T: Accumulator> TileLayout<T> {
    /// Builds the layout of a valid pattern with `values` in its order. There may be at most 2^31 rows and
    /// columns.
    pub fn build<I: Index, J: Index, V: Storage<T>>(
        allocator: &Arc<Allocator>,
        matrix: &Pattern<'_, I, J>,
        values: &[V],
    ) -> Result<Self> {
        let rows = matrix.major;
        let pattern = TilePattern::build(allocator, (rows, matrix.minor), &CsrRows(matrix))?;
        let places = Buffer::<T>::zeroed(allocator, pattern.nnz())?;
        let mut layout = TileLayout { pattern: Arc::new(pattern), values: places };
        layout.refill(allocator, matrix, values)?;
        Ok(layout)
    }

    /// Copies in new values of the matrix that the layout was built from.
    pub fn refill<I: Index, J: Index, V: Storage<T>>(
        &mut self,
        allocator: &Arc<Allocator>,
        matrix: &Pattern<'_, I, J>,
        values: &[V],
    ) -> Result<()> {
        let (pattern, rows) = (&self.pattern, CsrRows(matrix));
        let weight = |row: usize| rows.weight(row);
        pattern.fill_rows(allocator, &mut self.values, weight, |row, tiles_of, places| {
            let own = pattern.entries(row);
            let twice = own.len() != rows.weight(row);
            if twice {
                places.fill(T::ZERO);
            }
            for (row, at) in rows.positions(row) {
                let column = matrix.index(at);
                let tile = tiles_of[column / SIDE] as usize;
                let place = pattern.position(tile, row) + before(pattern.mask(tile, row), column % SIDE);
                let value = values[at].widen();
                let place = &mut places[place - own.start];
                *place = if twice { *place + value } else { value };
            }
        })
    }

    /// Inverse of [`TileLayout::build`]: calls f(row, column, value) for the entries, by row and column.
    #[cfg(test)]
    pub fn for_each_entry(&self, mut f: impl FnMut(usize, usize, T)) {
        for row in 0..self.pattern.row_count {
            self.pattern.for_each_of_row(row, |column, at| f(row, column, self.values[at]));
        }
    }
}

#[cfg(test)]
mod tests;

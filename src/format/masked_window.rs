//! Windows of rows with the columns that they have, for matrix units: packed values.
//!
//! [`Rules::height`] rows, h of them (8, 16, 32 or 64), are a window. Its columns are
//! those of src/format/window.rs: ascending, a column that a row stores m times is
//! there m times. They are cut into blocks of [`BLOCK`], the last of which is padded.
//! A group of 8 rows and a block are a tile of 8 × 8 places, which a 64-bit mask
//! describes; only entries have values. Dense tiles of doubles would be three to six
//! times the bytes of CSR at the fill that windows of 16 to 64 rows have (15 to 35 %);
//! this is less than CSR: a value an entry, a bit a place, 4 bytes a column.
//!
//! The order of places is that in which the lanes of mma.m16n8k8 hold a tile, whichever
//! operand it is: lane 4 · r + c has row r and the columns c and c + 4, [`bit`]. So a
//! lane's place in a word of 32 bits is its own number, and its value is as far from the
//! word's first one as there are bits below it.
//!
//! Rows must be sorted. Arrays:
//! - `items`, `parts`: as in src/format/window.rs, in blocks of 8 columns
//! - `columns`: u32, [`BLOCK`] a block; with [`PADDING`] set: the window's last column
//!   again, which no place of the block stores
//! - `masks`: u64, h / 8 a block: those of its tiles, group after group
//! - `starts`: u32, one a tile and one more: the tile's first value
//! - `values`: nnz, tile after tile, by bit
//! - `slots` (only where values will be updated): u64 an entry, in the order of the
//!   user's values: its place in `values`
//!
//! The inverse is `MaskedWindow::for_each_entry`. The CUDA backend makes the arrays on the
//! device (src/backend/cuda/spmm/masked_window.rs), bit for bit as [`MaskedWindow::build`].

use std::ops::Range;
use std::sync::Arc;

use super::sell::Origin;
use super::window::{self, Counts, Entry, Item, Part, Shape, HEIGHTS, PADDING};
use crate::error::{Error, Result};
use crate::matrix::compressed::Pattern;
use crate::memory::{Allocator, Buffer};
use crate::types::{Element, Index};

/// Columns of a block, and rows of a tile.
pub const BLOCK: usize = 8;
/// Shape of blocks and tiles.
pub const SHAPE: Shape = Shape { block: BLOCK, group: BLOCK };

/// How windows are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// Rows of a window.
    pub height: usize,
    /// Blocks of the longest part, since the launch ends with it.
    pub most: usize,
}

impl Rules {
    /// Blocks of the longest window that is not cut, of a matrix of so many; even.
    pub fn limit(&self, blocks: usize) -> usize {
        window::limit(self.most, blocks)
    }
}

/// The bit of a tile's mask of row `row` and column `k`.
pub fn bit(row: usize, k: usize) -> usize {
    k / 4 * 32 + row * 4 + k % 4
}

/// The layout in host memory.
#[derive(Debug)]
pub struct MaskedWindow<V: Element> {
    /// Rows of op(A).
    pub row_count: usize,
    /// Rows of a window.
    pub height: usize,
    /// Columns of all windows.
    pub distinct: usize,
    /// Windows and parts.
    pub items: Buffer<Item>,
    /// Parts.
    pub parts: Buffer<Part>,
    /// Columns of blocks.
    pub columns: Buffer<u32>,
    /// Masks of tiles.
    pub masks: Buffer<u64>,
    /// First values of tiles.
    pub starts: Buffer<u32>,
    /// Values.
    pub values: Buffer<V>,
    /// Where the user's values go.
    pub slots: Option<Buffer<u64>>,
}

/// The error of a matrix that has too many entries.
pub fn too_many_entries() -> Error {
    Error::unsupported(format!("A: algorithm window takes less than {} entries", u32::MAX))
}

/// Refuses a number of entries that 32 bits do not count.
pub fn check_entries(count: usize) -> Result<()> {
    if count < u32::MAX as usize {
        Ok(())
    } else {
        Err(too_many_entries())
    }
}

impl<V: Element> MaskedWindow<V> {
    /// Arranges a valid pattern of sorted rows, with `values` in its order; `rules`
    /// gives them for what was counted. Less than 2^31 columns. `NOT_SUPPORTED` for
    /// 2^28 blocks and for 2^32 entries.
    pub fn build<I: Index, J: Index>(
        allocator: &Arc<Allocator>,
        pattern: &Pattern<'_, I, J>,
        values: &[V],
        origin: Origin<'_>,
        rules: impl Fn(&Counts) -> Rules,
    ) -> Result<Self> {
        let rows = if pattern.offsets.is_empty() { 0 } else { pattern.major };
        let nnz = pattern.indices.len();
        check_entries(nnz)?;
        let most = window::windows(rows, HEIGHTS[3])
            .map(|rows| pattern.range(rows.end - 1).end - pattern.range(rows.start).start)
            .max();
        let mut scratch = Buffer::<Entry>::zeroed(allocator, most.unwrap_or(0))?;
        let rules = rules(&Counts::of(pattern, rows, SHAPE, &mut scratch));
        let (height, groups) = (rules.height, rules.height / BLOCK);
        let window_count = rows.div_ceil(height);

        let mut before = Buffer::<u64>::zeroed(allocator, window_count + 1)?;
        let mut distinct = 0;
        for (number, rows) in window::windows(rows, height).enumerate() {
            let entries = window::gather(pattern, rows, &mut scratch);
            let columns = window::numbered(entries.iter()).last().map_or(0, |(last, _)| last + 1);
            distinct += columns;
            before[number + 1] = before[number] + columns.div_ceil(BLOCK) as u64;
        }
        let blocks = before[window_count] as usize;
        window::check_count("blocks", blocks)?;
        let (items, parts) = window::schedule(allocator, &before, rules.limit(blocks))?;
        let mut out = MaskedWindow {
            row_count: rows,
            height,
            distinct,
            items,
            parts,
            columns: Buffer::zeroed(allocator, blocks * BLOCK)?,
            masks: Buffer::zeroed(allocator, blocks * groups)?,
            starts: Buffer::zeroed(allocator, blocks * groups + 1)?,
            values: Buffer::zeroed(allocator, nnz)?,
            slots: if origin.keep { Some(Buffer::zeroed(allocator, nnz)?) } else { None },
        };
        let mut start = 0;
        for (number, rows) in window::windows(rows, height).enumerate() {
            let blocks = before[number] as usize..before[number + 1] as usize;
            let entries = window::gather(pattern, rows, &mut scratch);
            let mut last = 0;
            for (at, entry) in window::numbered(entries.iter()) {
                last = blocks.start * BLOCK + at;
                out.columns[last] = (entry[0] >> 32) as u32;
                let row = window::row_of(entry);
                out.masks[last / BLOCK * groups + row / BLOCK] |= 1 << bit(row % BLOCK, at % BLOCK);
            }
            if !blocks.is_empty() {
                let padding = out.columns[last] | PADDING;
                out.columns[last + 1..blocks.end * BLOCK].fill(padding);
            }
            for tile in blocks.start * groups..blocks.end * groups {
                out.starts[tile] = start;
                start += out.masks[tile].count_ones();
            }
            for (at, entry) in window::numbered(entries.iter()) {
                let from = window::number_of(entry);
                let to = out.place(blocks.start + at / BLOCK, window::row_of(entry), at % BLOCK);
                out.values[to] = values[from];
                if let Some(slots) = &mut out.slots {
                    slots[origin.positions.map_or(from, |positions| positions[from] as usize)] = to as u64;
                }
            }
        }
        out.starts[blocks * groups] = start;
        Ok(out)
    }

    /// Where the value of row `row` of the window and column `k` of a block is.
    fn place(&self, block: usize, row: usize, k: usize) -> usize {
        let tile = block * (self.height / BLOCK) + row / BLOCK;
        let below = (1 << bit(row % BLOCK, k)) - 1;
        (self.starts[tile] + (self.masks[tile] & below).count_ones()) as usize
    }

    /// How many blocks there are.
    #[cfg(test)]
    pub fn blocks(&self) -> usize {
        self.columns.len() / BLOCK
    }

    /// Calls f(window, its blocks) for the item at this place; of parts only for the
    /// first one.
    pub fn window_at(&self, item: usize) -> Option<(usize, Range<usize>)> {
        window::window_at(&self.items, &self.parts, item)
    }

    /// Calls f(row of the window, column, value) for the entries of a block, those of a
    /// row in their order.
    #[inline(always)]
    pub fn for_each_of_block(&self, block: usize, mut f: impl FnMut(usize, usize, V)) {
        let groups = self.height / BLOCK;
        let of_block = self.starts[block * groups] as usize..self.starts[(block + 1) * groups] as usize;
        let mut values = self.values[of_block].iter();
        for (group, &mask) in self.masks[block * groups..][..groups].iter().enumerate() {
            let mut left = mask;
            while left != 0 {
                let bit = left.trailing_zeros() as usize;
                left &= left - 1;
                let (row, k) = (bit % 32 / 4, bit / 32 * 4 + bit % 4);
                let column = (self.columns[block * BLOCK + k] & !PADDING) as usize;
                if let Some(&value) = values.next() {
                    f(group * BLOCK + row, column, value);
                }
            }
        }
    }

    /// Takes new values in the order of the user's array; false if the layout does
    /// not know where they go.
    pub fn refill(&mut self, values: &[V], conjugate: bool) -> bool {
        super::scatter(&mut self.values, self.slots.as_deref(), values, conjugate)
    }

    /// The way back: calls f(row, number of the entry in its row, column, value)
    /// with every stored entry.
    #[cfg(test)]
    pub fn for_each_entry(&self, mut f: impl FnMut(usize, usize, usize, V)) {
        for item in 0..self.items.len() {
            let Some((window, blocks)) = self.window_at(item) else { continue };
            let mut counts = [0; HEIGHTS[3]];
            for block in blocks {
                self.for_each_of_block(block, |row, column, value| {
                    f(window * self.height + row, counts[row], column, value);
                    counts[row] += 1;
                });
            }
        }
    }

    /// For people: height and ρ.
    pub fn details(&self) -> String {
        details(self.height, self.values.len(), self.distinct, false)
    }
}

/// For people: height and ρ of windows that have `distinct` columns.
pub fn details(height: usize, nnz: usize, distinct: usize, clustered: bool) -> String {
    let rows = if clustered { " in clusters" } else { "" };
    format!("windows of {height} rows{rows}, {:.2} entries a column", nnz as f64 / distinct.max(1) as f64)
}

#[cfg(test)]
pub(crate) mod tests;

//! Equal tiles of nonzeros, after the merge path (Merrill and Garland 2016,
//! "Merge-based parallel sparse matrix-vector multiplication") and CSR5 (Liu and
//! Vinter 2015): whatever the lengths of the rows, every warp has the same work,
//! and every array but rare ones is at a place that the tile's number says.
//!
//! A *slot* is a stored entry, in CSR order, or stands for an empty row: row i has
//! max(length, 1) slots, so that the rows whose slots end in a tile have
//! consecutive numbers. A *tile* is [`tile_slots`] slots, one warp's work; a
//! *block* is [`BLOCK_TILES`] tiles. Slots behind the last row's are padding.
//!
//! Arrays, for t tiles of T slots:
//! - `values`: t · T × V, in the order of the slots; 0 where there is no entry
//! - `lows`: t · T × u16, low halves of columns relative to the tile's `base`
//! - `highs`: T × u16 a tile that spans more than 2^16 columns, their high halves;
//!   for all tiles where [`StreamLayout::all_high`]
//! - `ends`: t · T bits, set where a slot is the last of its row; bit i is bit
//!   i mod 32 of word i / 32
//! - `voids`: t · T bits, set where a slot stands for an empty row; no array where
//!   no row is empty. Executors never multiply such a slot, nor padding.
//! - `tiles`: t × [`Tile`]
//! - `splits`: [`Split`], rows that several blocks add up
//! - `positions` (only where values will be updated and are not in the order of
//!   the slots): i64 a slot, where in the user's value array it comes from, −1 for
//!   no entry
//!
//! A row that ends no more than [`overhang`] slots behind the end of a block
//! belongs to the block before, which reads these slots as well. Any other row
//! that reaches over the end of a block is *split*: each of its blocks makes a
//! part of its sum, and the parts are added in the order of the blocks.
//!
//! The inverse is `StreamLayout::for_each_entry`.

use std::sync::Arc;

use bytemuck::{Pod, Zeroable};

use super::GRAIN;
use crate::error::{Error, Result};
use crate::format::sell::Origin;
use crate::matrix::compressed::Pattern;
use crate::memory::{pieces, Allocator, Buffer};
use crate::types::{Element, Index};

mod fill;
#[cfg(test)]
mod tests;

/// Tiles of a block: a block of 128 threads leaves the multiprocessor soon, and
/// the carries of four warps are added in no time.
pub const BLOCK_TILES: usize = 4;

/// Slots of a tile with values of this many bytes: 8 or 16 for each of 32 lanes,
/// 2 KiB of 8-byte and of 4-byte values. What a tile costs beside its entries
/// must be shared by more of them where they are smaller.
pub const fn tile_slots(value_bytes: usize) -> usize {
    if value_bytes <= 4 {
        512
    } else {
        256
    }
}

/// How far behind the end of its block a row may end without being split: what
/// 32 lanes read by one more load each.
pub const fn overhang(value_bytes: usize) -> usize {
    tile_slots(value_bytes) / 4
}

/// Columns that a low half numbers.
const SPAN: i64 = 1 << 16;

/// Of so many tiles at least one must be wide for all to have high halves: a tile
/// that reads its head before it knows that it has high halves waits for memory
/// once more, which costs more than their bytes.
pub const WIDE_OF: usize = 4;

/// What a warp reads first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Tile {
    /// The first slot's row, plus [`Tile::JOINS`] where it has slots before.
    pub row: u32,
    /// The smallest column; 0 if there is no entry.
    pub base: u32,
    /// The tile's number among those with high halves, or [`Tile::NARROW`].
    pub high: u32,
    /// How the tile's block shares rows with others. Of the block's first tile,
    /// which may join a row of a block before: [`Tile::TAKEN`] where the block
    /// before adds that row up, else the split's number + 1. Of its last tile,
    /// whose last row may go on: [`Tile::OVER`] + slots of it in the next tile,
    /// where this block adds them; else its split's number + 1 if the row starts
    /// in this block. 0 otherwise.
    pub link: u32,
}

impl Tile {
    /// Flag of `row`.
    pub const JOINS: u32 = 1 << 31;
    /// `high` of a tile without high halves.
    pub const NARROW: u32 = u32::MAX;
    /// `link` of a first tile.
    pub const TAKEN: u32 = u32::MAX;
    /// Flag in `link` of a last tile.
    pub const OVER: u32 = 1 << 31;

    /// The first slot's row.
    #[inline(always)]
    pub fn row(&self) -> usize {
        (self.row & !Tile::JOINS) as usize
    }

    /// Whether the first slot's row has slots in tiles before.
    #[inline(always)]
    pub fn joins(&self) -> bool {
        self.row & Tile::JOINS != 0
    }
}

/// A row with parts in several blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Split {
    /// Its number.
    pub row: u32,
    /// The block in which it starts.
    pub first_block: u32,
    /// Its first part among all; they follow each other as their blocks do.
    pub first_part: u32,
    /// How many.
    pub parts: u32,
}

/// Equal tiles of nonzeros.
#[derive(Debug)]
pub struct StreamLayout<V: Element> {
    /// Rows of op(A).
    #[cfg(test)]
    pub row_count: usize,
    /// Slots without padding.
    pub slot_count: usize,
    /// Heads of the tiles.
    pub tiles: Buffer<Tile>,
    /// Ends of rows.
    pub ends: Buffer<u32>,
    /// Slots of empty rows.
    pub voids: Buffer<u32>,
    /// Low halves of columns.
    pub lows: Buffer<u16>,
    /// High halves of columns.
    pub highs: Buffer<u16>,
    /// Values.
    pub values: Buffer<V>,
    /// Split rows.
    pub splits: Buffer<Split>,
    positions: Places,
    entries: usize,
}

/// Where values come from in the user's array.
#[derive(Debug)]
enum Places {
    /// Nobody asked.
    Dropped,
    /// Slot by slot in its order.
    Identity,
    /// As the array says.
    Kept(Buffer<i64>),
}

impl<V: Element> StreamLayout<V> {
    /// Slots of a tile.
    pub const TILE: usize = tile_slots(size_of::<V>());
    /// Slots of a block.
    pub const BLOCK: usize = BLOCK_TILES * Self::TILE;
    /// Words of bits of a tile.
    const WORDS: usize = Self::TILE / 32;

    /// Arranges a valid pattern of rows, with `values` in its order. At most
    /// 2^31 − 1 rows and 2^32 columns.
    ///
    /// Cost: O(nnz + rows), reading columns and values once (columns of wide tiles
    /// twice), and 8 bytes a row of temporary memory.
    pub fn build<I: Index, J: Index>(
        allocator: &Arc<Allocator>,
        pattern: &Pattern<'_, I, J>,
        values: &[V],
        origin: Origin<'_>,
    ) -> Result<Self> {
        let rows = pattern.major;
        let mut starts = Buffer::<i64>::zeroed(allocator, rows + 1)?;
        let mut empty_rows = 0;
        for row in 0..rows {
            let length = pattern.range(row).len();
            empty_rows += usize::from(length == 0);
            starts[row + 1] = starts[row] + length.max(1) as i64;
        }
        let slot_count = starts[rows] as usize;
        let tile_count = slot_count.div_ceil(Self::TILE);
        if tile_count >= 1 << 31 {
            return Err(Error::unsupported(format!(
                "A: algorithm stream numbers {tile_count} tiles by 31 bits"
            )));
        }
        let (slots, words) = (tile_count * Self::TILE, tile_count * Self::WORDS);
        let mut out = StreamLayout {
            #[cfg(test)]
            row_count: rows,
            slot_count,
            tiles: Buffer::zeroed(allocator, tile_count)?,
            ends: Buffer::zeroed(allocator, words)?,
            voids: Buffer::zeroed(allocator, if empty_rows > 0 { words } else { 0 })?,
            lows: Buffer::zeroed(allocator, slots)?,
            highs: Buffer::zeroed(allocator, 0)?,
            values: Buffer::zeroed(allocator, slots)?,
            splits: Buffer::zeroed(allocator, 0)?,
            positions: Places::Dropped,
            entries: pattern.indices.len(),
        };
        let source = fill::Source { pattern, starts: &starts, tile: Self::TILE };
        out.fill(&source, values);
        out.fill_highs(allocator, &source)?;
        out.link(allocator, &starts)?;
        if origin.keep {
            out.positions = if origin.positions.is_none() && empty_rows == 0 {
                Places::Identity
            } else {
                let mut positions = Buffer::<i64>::zeroed(allocator, slots)?;
                source.fill_positions(origin.positions, &mut positions);
                Places::Kept(positions)
            };
        }
        Ok(out)
    }

    /// New values in the order of the user's array; false if where they go is not
    /// known, and then nothing changes.
    pub fn refill(&mut self, values: &[V], conjugate: bool) -> bool {
        let filled = &mut self.values;
        match &self.positions {
            Places::Dropped => return false,
            Places::Identity => pieces::for_each(pieces::chunks(filled, GRAIN), |at, slots| {
                for (slot, &value) in slots.iter_mut().zip(&values[at * GRAIN..]) {
                    *slot = if conjugate { value.conjugate() } else { value };
                }
            }),
            Places::Kept(positions) => return super::refill(filled, Some(positions), values, conjugate),
        }
        true
    }

    /// Whether every tile has high halves.
    #[cfg(test)]
    pub fn all_high(&self) -> bool {
        !self.highs.is_empty() && self.highs.len() == self.lows.len()
    }

    /// Blocks.
    pub fn block_count(&self) -> usize {
        self.tiles.len().div_ceil(BLOCK_TILES)
    }

    /// Parts of all split rows.
    #[cfg(test)]
    pub fn part_count(&self) -> usize {
        self.splits.last().map_or(0, |split| (split.first_part + split.parts) as usize)
    }

    /// Slots for values over stored entries.
    pub fn fill_ratio(&self) -> f64 {
        super::fill_ratio(self.values.len(), self.entries)
    }

    /// Whether a slot is the last of its row.
    #[inline(always)]
    pub fn is_end(&self, slot: usize) -> bool {
        self.ends[slot / 32] >> (slot % 32) & 1 != 0
    }

    /// Whether a slot, not of the padding, stands for an empty row.
    #[inline(always)]
    pub fn is_void(&self, slot: usize) -> bool {
        self.voids.get(slot / 32).is_some_and(|word| word >> (slot % 32) & 1 != 0)
    }

    /// Column of a slot of this tile.
    #[inline(always)]
    pub fn column(&self, tile: &Tile, slot: usize) -> usize {
        let high = match tile.high {
            Tile::NARROW => 0,
            high => u32::from(self.highs[high as usize * Self::TILE + slot % Self::TILE]),
        };
        (tile.base + (u32::from(self.lows[slot]) | high << 16)) as usize
    }

    /// The way back: calls `f(row, column, value)` with every stored entry, in the
    /// order of the pattern.
    #[cfg(test)]
    pub fn for_each_entry(&self, mut f: impl FnMut(usize, usize, V)) {
        for (number, tile) in self.tiles.iter().enumerate() {
            let mut row = tile.row();
            let first = number * Self::TILE;
            for slot in first..(first + Self::TILE).min(self.slot_count) {
                if !self.is_void(slot) {
                    f(row, self.column(tile, slot), self.values[slot]);
                }
                row += usize::from(self.is_end(slot));
            }
        }
    }
}

//! Equal tiles of nonzeros, after the merge path (Merrill and Garland 2016, "Merge-based parallel sparse
//! matrix-vector multiplication") and CSR5 (Liu and Vinter 2015): whatever the lengths of the rows, every
//! warp has the same amount of work, and the tile's number alone says where its elements of every array are,
//! except for rare arrays.
//!
//! A *slot* is a stored entry, in CSR order, or stands for an empty row: row i has max(length, 1) slots, so
//! that the rows whose slots end in a tile have consecutive numbers. A *tile* is [`tile_slots`] slots, one
//! warp's work; a *block* is [`BLOCK_TILES`] tiles. Slots behind the last row's are padding.
//!
//! Arrays, for t tiles of T slots:
//! - `values`: t · T × V, in the order of the slots; 0 where there is no entry
//! - `lows`: t · T × u16, low halves of columns relative to the tile's `base`
//! - `highs`: T × u16 per tile that spans more than 2^16 columns, their high halves; for all tiles where
//!   [`StreamLayout::all_high`]
//! - `ends`: t · T bits, set where a slot is the last of its row; bit i is bit i mod 32 of word i / 32
//! - `voids`: t · T bits, set where a slot stands for an empty row; no array where no row is empty. Kernels
//!   never multiply such a slot, nor padding.
//! - `tiles`: t × [`Tile`]
//! - `splits`: one [`Split`] per row that several blocks add up
//! - `positions` (only where values will be updated and are not in the order of the slots): i64 per slot, the
//!   index in the user's value array that it comes from, −1 for no entry
//!
//! A row that ends no more than [`overhang`] slots behind the end of a block belongs to that block, which
//! reads these slots as well. Any other row that reaches beyond the end of a block is *split*: each of its
//! blocks computes a partial sum, and the partial sums are added in the order of the blocks.
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

/// Number of tiles of a block: a block of 128 threads soon leaves the multiprocessor, and adding the carries
/// of four warps costs next to nothing.
pub const BLOCK_TILES: usize = 4;

/// Returns the number of slots of a tile for values of `value_bytes` bytes: 8 or 16 for each of 32 lanes, 2
/// KiB of 8-byte and of 4-byte values. The fixed cost of a tile must be shared by more entries where entries
/// are smaller.
pub const fn tile_slots(value_bytes: usize) -> usize {
    if value_bytes <= 4 {
        512
    } else {
        256
    }
}

/// Returns how many slots behind the end of its block a row may end without being split: as many as 32 lanes
/// read by one more load each.
pub const fn overhang(value_bytes: usize) -> usize {
    tile_slots(value_bytes) / 4
}

/// Number of columns that a low half can number.
const SPAN: i64 = 1 << 16;

/// Number of tiles per wide tile up to which all tiles get high halves, wide or not: a tile that has to read its head
/// before it knows whether it has high halves waits for memory once more, which costs more than their bytes.
pub const WIDE_OF: usize = 4;

/// Head of a tile, which a warp reads first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Tile {
    /// Row of the first slot, plus [`Tile::JOINS`] if that row has slots in tiles before.
    pub row: u32,
    /// The smallest column; 0 if there is no entry.
    pub base: u32,
    /// Number of the tile among those with high halves, or [`Tile::NARROW`].
    pub high: u32,
    /// Code for the way in which the tile's block shares rows with other blocks. In the block's first tile, if that continues a row
    /// of the block before: [`Tile::TAKEN`] where the block before adds that row up, else 1 + the number of
    /// the row's split. In the block's last tile, if its last row continues in the next block: [`Tile::OVER`]
    /// plus the number of that row's slots there, where this block adds them; else, if the row starts in this
    /// block, 1 + the number of its split. 0 in all other cases.
    pub link: u32,
}

impl Tile {
    /// Flag of `row`: the first slot's row has slots in tiles before.
    pub const JOINS: u32 = 1 << 31;
    /// Value of `high` for a tile without high halves.
    pub const NARROW: u32 = u32::MAX;
    /// Value of `link` for a first tile whose first row the block before adds up.
    pub const TAKEN: u32 = u32::MAX;
    /// Flag in `link` of a last tile whose last row this block adds to its end.
    pub const OVER: u32 = 1 << 31;

    /// Returns the row of the first slot.
    #[inline(always)]
    pub fn row(&self) -> usize {
        (self.row & !Tile::JOINS) as usize
    }

    /// Returns whether the first slot's row has slots in tiles before.
    #[inline(always)]
    pub fn joins(&self) -> bool {
        self.row & Tile::JOINS != 0
    }
}

/// Row with partial sums from several blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Split {
    /// Number of the row in op(A).
    pub row: u32,
    /// Block in which the row starts.
    pub first_block: u32,
    /// Index of the row's first partial sum among those of all split rows; they are in the order of their blocks.
    pub first_part: u32,
    /// Number of the row's partial sums.
    pub parts: u32,
}

/// Stream layout in host memory: equal tiles of nonzeros.
#[derive(Debug)]
pub struct StreamLayout<V: Element> {
    /// Number of rows of op(A).
    #[cfg(test)]
    pub row_count: usize,
    /// Number of slots without padding.
    pub slot_count: usize,
    /// Heads of the tiles.
    pub tiles: Buffer<Tile>,
    /// Bits of the slots that are the last of their row.
    pub ends: Buffer<u32>,
    /// Bits of the slots that stand for empty rows.
    pub voids: Buffer<u32>,
    /// Low halves of the columns.
    pub lows: Buffer<u16>,
    /// High halves of the columns.
    pub highs: Buffer<u16>,
    /// Value of each slot.
    pub values: Buffer<V>,
    /// Split rows.
    pub splits: Buffer<Split>,
    positions: SlotPositions,
    entries: usize,
}

/// Mapping from slots to the user's value array.
#[derive(Debug)]
enum SlotPositions {
    /// No positions: they are not kept, since values will not be updated.
    Dropped,
    /// Slot i takes value i.
    Identity,
    /// Index of each slot's value in the user's array.
    Kept(Buffer<i64>),
}

impl<V: Element> StreamLayout<V> {
    /// Number of slots of a tile.
    pub const TILE: usize = tile_slots(size_of::<V>());
    /// Number of slots of a block.
    pub const BLOCK: usize = BLOCK_TILES * Self::TILE;
    /// Number of 32-bit words that hold one bit per slot of a tile.
    const WORDS: usize = Self::TILE / 32;

    /// Builds the layout of a valid pattern of rows, with `values` in its order. There may be at most 2^31 −
    /// 1 rows and 2^32 columns.
    ///
    /// Cost: O(nnz + rows), reading values once and columns twice, and 8 bytes per row of temporary memory.
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
            positions: SlotPositions::Dropped,
            entries: pattern.indices.len(),
        };
        let in_order = origin.positions.is_none() && empty_rows == 0;
        let kept = if origin.keep && !in_order { slots } else { 0 };
        let mut positions = Buffer::<i64>::zeroed(allocator, kept)?;
        out.fill(allocator, (pattern, &starts), values, origin, &mut positions)?;
        out.link(allocator, &starts)?;
        out.positions = match origin.keep {
            false => SlotPositions::Dropped,
            true if in_order => SlotPositions::Identity,
            true => SlotPositions::Kept(positions),
        };
        Ok(out)
    }

    /// Copies in new values, given in the order of the user's array. Returns false, and changes nothing, if
    /// the layout does not know where they go.
    pub fn refill(&mut self, values: &[V], conjugate: bool) -> bool {
        let filled = &mut self.values;
        match &self.positions {
            SlotPositions::Dropped => return false,
            SlotPositions::Identity => pieces::for_each(pieces::chunks(filled, GRAIN), |at, slots| {
                for (slot, &value) in slots.iter_mut().zip(&values[at * GRAIN..]) {
                    *slot = if conjugate { value.conjugate() } else { value };
                }
            }),
            SlotPositions::Kept(positions) => {
                return super::refill(filled, Some(positions), values, conjugate)
            }
        }
        true
    }

    /// Returns whether every tile has high halves.
    #[cfg(test)]
    pub fn all_high(&self) -> bool {
        !self.highs.is_empty() && self.highs.len() == self.lows.len()
    }

    /// Returns the number of blocks.
    pub fn block_count(&self) -> usize {
        self.tiles.len().div_ceil(BLOCK_TILES)
    }

    /// Returns the number of partial sums of all split rows.
    #[cfg(test)]
    pub fn part_count(&self) -> usize {
        self.splits.last().map_or(0, |split| (split.first_part + split.parts) as usize)
    }

    /// Returns the number of slots for values divided by the number of stored entries.
    pub fn fill_ratio(&self) -> f64 {
        super::fill_ratio(self.values.len(), self.entries)
    }

    /// Returns whether a slot is the last of its row.
    #[inline(always)]
    pub fn is_end(&self, slot: usize) -> bool {
        self.ends[slot / 32] >> (slot % 32) & 1 != 0
    }

    /// Returns whether a slot, which must not be padding, stands for an empty row.
    #[inline(always)]
    pub fn is_void(&self, slot: usize) -> bool {
        self.voids.get(slot / 32).is_some_and(|word| word >> (slot % 32) & 1 != 0)
    }

    /// Returns the column of a slot of this tile.
    #[inline(always)]
    pub fn column(&self, tile: &Tile, slot: usize) -> usize {
        let high = match tile.high {
            Tile::NARROW => 0,
            high => u32::from(self.highs[high as usize * Self::TILE + slot % Self::TILE]),
        };
        (tile.base + (u32::from(self.lows[slot]) | high << 16)) as usize
    }

    /// Inverse of [`StreamLayout::build`]: calls `f(row, column, value)` for every stored entry, in the order
    /// of the pattern.
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

//! Windows of rows with the union of their columns, for matrix units, with packed values.
//!
//! [`Rules::height`] rows, h of them (8, 16, 32 or 64), are a window. Its columns are those of
//! src/format/window.rs: ascending, and a column that a row stores m times occurs m times. They are cut into
//! blocks of [`BLOCK`], the last of which is padded. A group of 8 rows and a block make a tile of 8 × 8
//! slots, which a 64-bit mask describes; only entries have values. Dense tiles of doubles would take three to
//! six times the bytes of CSR at the fill that windows of 16 to 64 rows have (15 to 35 %); this layout takes
//! less than CSR: one value per entry, one bit per slot, 4 bytes per column.
//!
//! The order of the slots, given by [`bit`], is that in which the lanes of mma.m16n8k8 hold a tile, whichever
//! operand it is: lane 4 · r + c has row r and the columns c and c + 4. So a lane's bit in a word of 32 bits
//! has the lane's own number, and its value is as far behind the word's first one as there are bits set below
//! it.
//!
//! Rows must be sorted. Arrays:
//! - `items`, `parts`: as in src/format/window.rs, in blocks of 8 columns
//! - `columns`: u32, [`BLOCK`] per block; with [`PADDING`] set: the window's last column again, for which the
//!   block has no entry
//! - `masks`: u64, h / 8 per block: those of its tiles, group after group
//! - `starts`: u32, one per tile and one more: the tile's first value
//! - `values`: nnz, tile after tile, in the order of the bits
//! - `slots` (only where values will be updated): u64 per entry, in the order of the user's values: its index
//!   in `values`
//!
//! The inverse is `MaskedWindow::for_each_entry`. The CUDA backend builds the arrays on the device
//! (src/backend/cuda/spmm/window/masked_tiles.rs), bit for bit as `MaskedWindow::build` does.

use std::ops::Range;
use std::sync::Arc;

pub use super::window::Rules;
use super::window::{TileStore, WindowLayout, WindowShape};
use crate::error::{Error, Result};
use crate::memory::{Allocator, Buffer};

/// Number of columns of a block, and of rows of a tile.
pub const BLOCK: usize = 8;
/// Shape of blocks and tiles.
pub const SHAPE: WindowShape = WindowShape { block: BLOCK, group: BLOCK };

/// Returns the bit of row `row` and column `k` in a tile's mask.
pub fn bit(row: usize, k: usize) -> usize {
    k / 4 * 32 + row * 4 + k % 4
}

/// Layout of windows with masked tiles.
pub type MaskedWindow<V> = WindowLayout<V, MaskedTiles>;

/// Arrays of masked tiles besides their values.
#[derive(Debug)]
pub struct MaskedTiles {
    /// Number of tiles of a block.
    groups: usize,
    /// Masks of the tiles.
    pub masks: Buffer<u64>,
    /// First value of each tile.
    pub starts: Buffer<u32>,
}

/// Returns the error for a matrix with too many entries.
pub fn too_many_entries() -> Error {
    Error::unsupported(format!("A: algorithm window takes less than {} entries", u32::MAX))
}

/// Returns an error if 32 bits cannot count the entries.
pub fn check_entries(count: usize) -> Result<()> {
    if count < u32::MAX as usize {
        Ok(())
    } else {
        Err(too_many_entries())
    }
}

impl TileStore for MaskedTiles {
    const SHAPE: WindowShape = SHAPE;

    fn new(
        allocator: &Arc<Allocator>,
        height: usize,
        blocks: usize,
        _tiles: usize,
        nnz: usize,
    ) -> Result<(Self, usize)> {
        check_entries(nnz)?;
        let groups = height / BLOCK;
        let masks = Buffer::zeroed(allocator, blocks * groups)?;
        let starts = Buffer::zeroed(allocator, blocks * groups + 1)?;
        Ok((MaskedTiles { groups, masks, starts }, nnz))
    }

    fn mark(&mut self, block: usize, row: usize, k: usize) {
        self.masks[block * self.groups + row / BLOCK] |= 1 << bit(row % BLOCK, k);
    }

    fn number(&mut self, blocks: Range<usize>) {
        for tile in blocks.start * self.groups..blocks.end * self.groups {
            self.starts[tile + 1] = self.starts[tile] + self.masks[tile].count_ones();
        }
    }

    fn enter(&mut self, block: usize, row: usize, k: usize) -> usize {
        let tile = block * self.groups + row / BLOCK;
        let below = (1 << bit(row % BLOCK, k)) - 1;
        (self.starts[tile] + (self.masks[tile] & below).count_ones()) as usize
    }

    #[inline(always)]
    fn for_each<V: Copy>(&self, values: &[V], block: usize, mut f: impl FnMut(usize, usize, V)) {
        let tiles = block * self.groups..(block + 1) * self.groups;
        let mut values = values[self.starts[tiles.start] as usize..self.starts[tiles.end] as usize].iter();
        for (group, &mask) in self.masks[tiles].iter().enumerate() {
            let mut left = mask;
            while left != 0 {
                let bit = left.trailing_zeros() as usize;
                left &= left - 1;
                let (row, k) = (bit % 32 / 4, bit / 32 * 4 + bit % 4);
                if let Some(&value) = values.next() {
                    f(group * BLOCK + row, k, value);
                }
            }
        }
    }

    fn details(height: usize, nnz: usize, distinct: usize, _value_count: usize) -> String {
        details(height, nnz, distinct, false)
    }
}

/// Returns a readable summary: height and ρ of windows that have `distinct` columns in all.
pub fn details(height: usize, nnz: usize, distinct: usize, clustered: bool) -> String {
    let rows = if clustered { " in clusters" } else { "" };
    format!("windows of {height} rows{rows}, {:.2} entries a column", nnz as f64 / distinct.max(1) as f64)
}

#[cfg(test)]
pub(crate) mod tests;

//! Steps of building the stream layout: filling tiles and linking blocks that share rows.

use std::sync::Arc;

use super::{overhang, Split, StreamLayout, Tile, BLOCK_TILES, SPAN, WIDE_OF};
use crate::error::Result;
use crate::format::sell::Origin;
use crate::matrix::compressed::Pattern;
use crate::memory::{Allocator, Buffer};
use crate::types::{Element, Index};

fn set(bits: &mut [u32], at: usize) {
    bits[at / 32] |= 1 << (at % 32);
}

impl<V: Element> StreamLayout<V> {
    /// Fills in all arrays except for the splits and the links of tiles. `starts` has the first slot of each
    /// row, and the number of slots at the end; `positions` has an element for each slot, or none.
    pub(super) fn fill<I: Index, J: Index>(
        &mut self,
        allocator: &Arc<Allocator>,
        (pattern, starts): (&Pattern<'_, I, J>, &[i64]),
        values: &[V],
        origin: Origin<'_>,
        positions: &mut [i64],
    ) -> Result<()> {
        let slots_of = |row: usize| starts[row] as usize..starts[row + 1] as usize;
        positions.fill(-1);
        // Until all columns of a tile are known, `base` and `high` are the least and the greatest of them.
        self.tiles.iter_mut().for_each(|tile| tile.base = u32::MAX);
        for row in 0..pattern.major {
            let (slots, entries) = (slots_of(row), pattern.range(row));
            if entries.is_empty() {
                set(&mut self.voids, slots.start);
            }
            set(&mut self.ends, slots.end - 1);
            for tile in slots.start.div_ceil(Self::TILE)..slots.end.div_ceil(Self::TILE) {
                let joins = if tile * Self::TILE > slots.start { Tile::JOINS } else { 0 };
                self.tiles[tile].row = row as u32 | joins;
            }
            for (slot, entry) in slots.clone().zip(entries.clone()) {
                let (tile, column) = (&mut self.tiles[slot / Self::TILE], pattern.index(entry) as u32);
                (tile.base, tile.high) = (tile.base.min(column), tile.high.max(column));
                if let Some(position) = positions.get_mut(slot) {
                    *position = origin.of(entry);
                }
            }
            self.values[slots.start..slots.start + entries.len()].copy_from_slice(&values[entries]);
        }
        for tile in self.tiles.iter_mut() {
            // There is no difference in a tile without entries.
            let span = tile.high.checked_sub(tile.base);
            if span.is_none() {
                tile.base = 0;
            }
            tile.high = if span.is_some_and(|span| i64::from(span) >= SPAN) { 0 } else { Tile::NARROW };
        }
        let wide = self.tiles.iter().filter(|tile| tile.high != Tile::NARROW).count();
        let all = wide > 0 && wide * WIDE_OF >= self.tiles.len();
        let mut count = 0;
        for tile in self.tiles.iter_mut().filter(|tile| all || tile.high != Tile::NARROW) {
            tile.high = count as u32;
            count += 1;
        }
        self.highs = Buffer::zeroed(allocator, count * Self::TILE)?;
        for row in 0..pattern.major {
            for (slot, entry) in slots_of(row).zip(pattern.range(row)) {
                let tile = &self.tiles[slot / Self::TILE];
                let column = pattern.index(entry) as u32 - tile.base;
                self.lows[slot] = column as u16;
                if tile.high != Tile::NARROW {
                    self.highs[tile.high as usize * Self::TILE + slot % Self::TILE] = (column >> 16) as u16;
                }
            }
        }
        Ok(())
    }

    /// Finds the split rows, and records in the tiles how blocks share rows.
    pub(super) fn link(&mut self, allocator: &Arc<Allocator>, starts: &[i64]) -> Result<()> {
        let blocks = self.block_count();
        let tiles = &mut self.tiles;
        let extent = |row: usize| Extent::of::<V>(starts[row] as usize, starts[row + 1] as usize);
        // Row that continues behind the end of a block.
        let open = |tiles: &[Tile], block: usize| {
            tiles.get((block + 1) * BLOCK_TILES).filter(|next| next.joins()).map(Tile::row)
        };
        let starting = |tiles: &[Tile], block: usize| {
            let row = open(tiles, block)?;
            let extent = extent(row);
            (extent.is_split() && extent.first == block).then_some((row, extent))
        };
        let count = (0..blocks).filter(|&block| starting(tiles, block).is_some()).count();
        let mut splits = Buffer::<Split>::zeroed(allocator, count)?;
        let (mut next, mut first_part) = (0, 0);
        for block in 0..blocks {
            if let Some((row, extent)) = starting(tiles, block) {
                let parts = (extent.last - extent.first + 1) as u32;
                splits[next] = Split { row: row as u32, first_block: block as u32, first_part, parts };
                (next, first_part) = (next + 1, first_part + parts);
            }
        }
        let number = |extent: &Extent| {
            splits.partition_point(|split| (split.first_block as usize) < extent.first) as u32 + 1
        };
        for block in 0..blocks {
            let first = block * BLOCK_TILES;
            if tiles[first].joins() {
                let extent = extent(tiles[first].row());
                tiles[first].link = if block > extent.last { Tile::TAKEN } else { number(&extent) };
            }
            if let Some(row) = open(tiles, block) {
                let extent = extent(row);
                tiles[first + BLOCK_TILES - 1].link = if block == extent.last {
                    Tile::OVER | (starts[row + 1] as usize - (block + 1) * Self::BLOCK) as u32
                } else if block == extent.first {
                    number(&extent)
                } else {
                    0
                };
            }
        }
        self.splits = splits;
        Ok(())
    }
}

/// Range of blocks that add up a row.
struct Extent {
    first: usize,
    last: usize,
}

impl Extent {
    /// Returns the blocks for a row with the slots from `start` to `end`.
    fn of<V: Element>(start: usize, end: usize) -> Self {
        let block = StreamLayout::<V>::BLOCK;
        let (first, mut last) = (start / block, (end - 1) / block);
        if last > first && end - last * block <= overhang(size_of::<V>()) {
            last -= 1;
        }
        Extent { first, last }
    }

    fn is_split(&self) -> bool {
        self.first < self.last
    }
}

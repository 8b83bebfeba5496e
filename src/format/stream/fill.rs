//! Steps of building the stream layout: filling tiles and linking blocks that share rows.

use std::sync::Arc;

use super::{overhang, Split, StreamLayout, Tile, BLOCK_TILES, SPAN, WIDE_OF};
use crate::error::Result;
use crate::format::GRAIN;
use crate::matrix::compressed::Pattern;
use crate::memory::{pieces, Allocator, Buffer};
use crate::types::{Element, Index};

/// Input that all tasks read.
pub(super) struct Source<'a, I, J> {
    pub pattern: &'a Pattern<'a, I, J>,
    /// First slot of each row, and the number of slots at the end.
    pub starts: &'a [i64],
    /// Number of slots of a tile.
    pub tile: usize,
}

/// Consecutive slots of one row in one tile.
struct Piece {
    /// First slot, counted from the tile's first.
    at: usize,
    /// Number of slots.
    len: usize,
    /// Entry of the first slot; `None` for an empty row.
    entry: Option<usize>,
    /// True if the row ends here.
    ends: bool,
}

impl<I: Index, J: Index> Source<'_, I, J> {
    /// Returns the row of a slot.
    fn row_of(&self, slot: usize) -> usize {
        self.starts.partition_point(|&start| start <= slot as i64) - 1
    }

    fn for_each_piece(&self, tile: usize, mut f: impl FnMut(&Piece)) {
        let (first, end) = (tile * self.tile, ((tile + 1) * self.tile).min(self.slots()));
        let (mut row, mut slot) = (self.row_of(first), first);
        while slot < end {
            let (start, stop) = (self.starts[row] as usize, self.starts[row + 1] as usize);
            let range = self.pattern.range(row);
            let entry = (!range.is_empty()).then(|| range.start + (slot - start));
            let next = stop.min(end);
            f(&Piece { at: slot - first, len: next - slot, entry, ends: next == stop });
            (slot, row) = (next, row + 1);
        }
    }

    fn slots(&self) -> usize {
        self.starts.last().map_or(0, |&slots| slots as usize)
    }

    pub(super) fn fill_positions(&self, from: Option<&[i64]>, positions: &mut [i64]) {
        let tiles = GRAIN.div_ceil(self.tile);
        pieces::for_each(pieces::chunks(positions, tiles * self.tile), |group, positions| {
            for (at, positions) in positions.chunks_mut(self.tile).enumerate() {
                positions.fill(-1);
                self.for_each_piece(group * tiles + at, |piece| {
                    for (entry, position) in piece.entries().zip(&mut positions[piece.at..]) {
                        *position = from.map_or(entry as i64, |from| from[entry]);
                    }
                });
            }
        });
    }
}

impl Piece {
    fn entries(&self) -> std::ops::Range<usize> {
        self.entry.map_or(0..0, |entry| entry..entry + self.len)
    }
}

fn set(bits: &mut [u32], at: usize) {
    bits[at / 32] |= 1 << (at % 32);
}

impl<V: Element> StreamLayout<V> {
    /// Fills all arrays except for high halves, positions and the links between blocks. The `high` of a wide
    /// tile is set to a value other than [`Tile::NARROW`].
    pub(super) fn fill<I: Index, J: Index>(&mut self, source: &Source<'_, I, J>, values: &[V]) {
        let tiles = GRAIN.div_ceil(Self::TILE);
        let bits =
            (pieces::chunks(&mut self.tiles, tiles), pieces::chunks(&mut self.ends, tiles * Self::WORDS));
        let slots = tiles * Self::TILE;
        let entries = (pieces::chunks(&mut self.lows, slots), pieces::chunks(&mut self.values, slots));
        pieces::for_each((bits, entries), |group, ((found, ends), (lows, slots))| {
            let bits = found.iter_mut().zip(ends.chunks_mut(Self::WORDS));
            let entries = lows.chunks_mut(Self::TILE).zip(slots.chunks_mut(Self::TILE));
            for (at, ((tile, ends), (lows, slots))) in bits.zip(entries).enumerate() {
                *tile = Self::fill_tile(source, group * tiles + at, values, ends, lows, slots);
            }
        });
        pieces::for_each(pieces::chunks(&mut self.voids, tiles * Self::WORDS), |group, voids| {
            for (at, voids) in voids.chunks_mut(Self::WORDS).enumerate() {
                source.for_each_piece(group * tiles + at, |piece| {
                    if piece.entry.is_none() {
                        set(voids, piece.at);
                    }
                });
            }
        });
    }

    fn fill_tile<I: Index, J: Index>(
        source: &Source<'_, I, J>,
        number: usize,
        values: &[V],
        ends: &mut [u32],
        lows: &mut [u16],
        slots: &mut [V],
    ) -> Tile {
        let (pattern, starts) = (source.pattern, source.starts);
        let (mut low, mut high) = (i64::MAX, 0);
        source.for_each_piece(number, |piece| {
            if piece.ends {
                set(ends, piece.at + piece.len - 1);
            }
            let entries = piece.entries();
            for index in &pattern.indices[entries.clone()] {
                let column = index.to_i64() - pattern.base;
                (low, high) = (low.min(column), high.max(column));
            }
            slots[piece.at..piece.at + entries.len()].copy_from_slice(&values[entries]);
        });
        let base = if low == i64::MAX { 0 } else { low };
        source.for_each_piece(number, |piece| {
            let entries = piece.entries();
            for (low, index) in lows[piece.at..].iter_mut().zip(&pattern.indices[entries]) {
                *low = (index.to_i64() - pattern.base - base) as u16;
            }
        });
        let first = number * Self::TILE;
        let row = source.row_of(first);
        let joins = if starts[row] < first as i64 { Tile::JOINS } else { 0 };
        let high = if high - base < SPAN { Tile::NARROW } else { 0 };
        Tile { row: row as u32 | joins, base: base as u32, high, link: 0 }
    }

    /// Numbers the tiles that get high halves, and fills these in.
    pub(super) fn fill_highs<I: Index, J: Index>(
        &mut self,
        allocator: &Arc<Allocator>,
        source: &Source<'_, I, J>,
    ) -> Result<()> {
        let wide = self.tiles.iter().filter(|tile| tile.high != Tile::NARROW).count();
        let all = wide > 0 && wide * WIDE_OF >= self.tiles.len();
        let mut count = 0;
        for tile in self.tiles.iter_mut().filter(|tile| all || tile.high != Tile::NARROW) {
            tile.high = count as u32;
            count += 1;
        }
        // Index in `tiles` of each tile with high halves.
        let mut numbers = Buffer::<u32>::zeroed(allocator, count)?;
        for (number, tile) in self.tiles.iter().enumerate().filter(|(_, tile)| tile.high != Tile::NARROW) {
            numbers[tile.high as usize] = number as u32;
        }
        self.highs = Buffer::zeroed(allocator, count * Self::TILE)?;
        let (tiles, highs, pattern) = (&self.tiles, &mut self.highs, source.pattern);
        pieces::for_each(pieces::chunks(highs, Self::TILE), |at, highs| {
            let number = numbers[at] as usize;
            let base = pattern.base + i64::from(tiles[number].base);
            source.for_each_piece(number, |piece| {
                let indices = &pattern.indices[piece.entries()];
                for (high, index) in highs[piece.at..].iter_mut().zip(indices) {
                    *high = ((index.to_i64() - base) >> 16) as u16;
                }
            });
        });
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

//! Windows of rows with the columns that they have, for matrix units.
//!
//! [`Rules::height`] rows, h of them (8, 16, 32 or 64), are a window. Its columns,
//! ascending, are the union of those of its rows; a column that a row stores m times
//! is there m times, so that each entry has a place of its own. They are cut into
//! blocks of [`BLOCK`] columns, the last of which is padded. So a product reads a row
//! of B once a window and not once an entry: ρ_h = nnz / (columns of all windows) says
//! how much less that is, and what the choice of h goes by (src/select/spmm/window.rs).
//!
//! Values lie as dense tiles of 16 rows (8 where h = 8) × 16 columns, the operand A of
//! mma.m16n8k16 (the operand B where h = 8: rows and columns swapped), in the order in
//! which its lanes hold them: [`place`]. Places without an entry are 0. A block of a
//! window of 32 or 64 rows has a tile for each 16 rows that have an entry in it.
//!
//! Rows must be sorted. Arrays:
//! - `items`: an [`Item`] a window, or several where it has more blocks than
//!   [`Rules::limit`]: its parts. First the parts, window after window, part p at place
//!   p; then windows of more than [`long_from`] blocks, which should start first; then
//!   the others. Each class is in the order of the rows, since neighbours share rows
//!   of B.
//! - `parts`: a [`Part`] a part
//! - `columns`: u32, [`BLOCK`] a block; with [`PADDING`] set: the window's last column
//!   again, which no place of the block stores
//! - `tiles` (h > 16): u32 a block: 16 · its first tile, plus a bit for each 16 rows
//!   that have a tile; where h ≤ 16 tile b is block b's
//! - `values`: 256 (h = 8: 128) a tile
//! - `stored`: u8, 32 a tile: which of a lane's places hold an entry. What multiplies
//!   tiles has multiplied zeros, too; where that matters (0 · Inf) this tells them
//!   apart.
//! - `slots` (only where values will be updated): u64 an entry, in the order of the
//!   user's values: its place in `values`
//!
//! The inverse is `Window::for_each_entry`. The CUDA backend makes the arrays on the
//! device (src/backend/cuda/spmm/window.rs), bit for bit as [`Window::build`].

pub mod survey;

use std::ops::Range;
use std::sync::Arc;

use bytemuck::{Pod, Zeroable};

pub use self::survey::{Counts, Shape};
pub use super::fill_ratio;
use super::masked_window;
use super::sell::Origin;
use crate::error::{Error, Result};
use crate::matrix::compressed::Pattern;
use crate::memory::{Allocator, Buffer, COUNTER_BYTES};
use crate::types::{Element, Index};

/// Columns of a block.
pub const BLOCK: usize = 16;
/// Shape of blocks and tiles.
pub const SHAPE: Shape = Shape { block: BLOCK, group: 16 };
/// Lanes that hold a tile.
pub const LANES: usize = 32;
/// The heights of windows.
pub const HEIGHTS: [usize; 4] = [8, 16, 32, 64];
/// Set in the columns that pad a block.
pub const PADDING: u32 = 1 << 31;
/// [`Item::part`] of a whole window.
pub const WHOLE: u32 = u32::MAX;
/// Windows that may be cut: a handle's counters.
pub const MOST_CUT: usize = COUNTER_BYTES / size_of::<u32>();
/// Tiles that 28 bits number.
const MOST_TILES: usize = 1 << 28;

/// A window, or a part of one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C, align(16))]
pub struct Item {
    /// The window.
    pub window: u32,
    /// First block.
    pub first: u32,
    /// What follows the last block.
    pub end: u32,
    /// Number of the part, or [`WHOLE`].
    pub part: u32,
}

/// A part of a window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C, align(16))]
pub struct Part {
    /// The window.
    pub window: u32,
    /// Its first part.
    pub first: u32,
    /// How many it has.
    pub count: u32,
    /// Number of the window among those that are cut.
    pub counter: u32,
}

/// How windows are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// Rows of a window.
    pub height: usize,
    /// Blocks of the longest part, since the launch ends with it.
    pub most: usize,
    /// Warps that share a window of few columns of C.
    pub sharing: usize,
}

impl Rules {
    /// Blocks of the longest window that is not cut, of a matrix of so many; even.
    pub fn limit(&self, blocks: usize) -> usize {
        limit(self.most, blocks)
    }
}

/// `most` blocks, or more where a matrix of so many would have too many windows cut.
pub(super) fn limit(most: usize, blocks: usize) -> usize {
    most.max(blocks.div_ceil(MOST_CUT)).next_multiple_of(2)
}

/// Columns of B up to which a warp takes a window (kernels/spmm/window.cuh).
pub const MOST_DIRECT: usize = 64;

/// Parts of a window of so many blocks, and blocks of each but the last: an even
/// number, since two blocks are staged at a time. No parts: it is whole.
pub fn deal(blocks: usize, limit: usize) -> (usize, usize) {
    if blocks <= limit {
        return (0, blocks);
    }
    let size = blocks.div_ceil(blocks.div_ceil(limit)).next_multiple_of(2);
    (blocks.div_ceil(size), size)
}

/// Blocks from which on a window comes before others, of so many windows that have so
/// many blocks.
pub fn long_from(blocks: usize, windows: usize) -> usize {
    (4 * blocks / windows.max(1)).max(16)
}

/// Values of a tile.
pub fn tile_values(height: usize) -> usize {
    height.min(16) * BLOCK
}

/// Lane, and which of its values, of row `row` and column `k` of a tile: the fragment
/// of mma.m16n8k16's operand A, or for 8 rows that of B.
pub fn place(height: usize, row: usize, k: usize) -> (usize, usize) {
    let lane = row % 8 * 4 + k % 8 / 2;
    let slot = if height == 8 { k / 8 * 2 + k % 2 } else { k / 8 * 4 + row / 8 * 2 + k % 2 };
    (lane, slot)
}

/// How the tiles of windows say which of their places hold an entry.
pub trait Tiles: Sized {
    /// Shape of blocks and tiles.
    const SHAPE: Shape;

    /// For windows of `height` rows that have so many blocks and tiles and `nnz` entries, and how many values
    /// they take.
    fn new(
        allocator: &Arc<Allocator>,
        height: usize,
        blocks: usize,
        tiles: usize,
        nnz: usize,
    ) -> Result<(Self, usize)>;

    /// A row of the window has an entry in column `k` of the block.
    fn mark(&mut self, block: usize, row: usize, k: usize);

    /// Says where the tiles of a window's blocks begin, all entries of which are marked, and those of the blocks
    /// before are numbered.
    fn number(&mut self, blocks: Range<usize>);

    /// Where the value of a marked entry goes.
    fn enter(&mut self, block: usize, row: usize, k: usize) -> usize;

    /// Calls f(row of the window, column of the block, value) for the entries of a block, those of a row in
    /// their order.
    fn for_each<V: Copy>(&self, values: &[V], block: usize, f: impl FnMut(usize, usize, V));

    /// For people: height, ρ and fill of windows that have `distinct` columns.
    fn details(height: usize, nnz: usize, distinct: usize, places: usize) -> String;
}

/// Windows in host memory, whatever their tiles.
#[derive(Debug)]
pub struct WindowLayout<V: Element, T> {
    /// Rows of op(A).
    pub row_count: usize,
    /// Rows of a window.
    pub height: usize,
    /// Stored entries.
    pub nnz: usize,
    /// Columns of all windows.
    pub distinct: usize,
    /// Windows and parts.
    pub items: Buffer<Item>,
    /// Parts.
    pub parts: Buffer<Part>,
    /// Columns of blocks.
    pub columns: Buffer<u32>,
    /// Which places hold an entry.
    pub store: T,
    /// Values.
    pub values: Buffer<V>,
    /// Where the user's values go.
    pub slots: Option<Buffer<u64>>,
}

/// Windows with dense tiles.
pub type Window<V> = WindowLayout<V, DenseTiles>;

/// The arrays of dense tiles beside their values.
#[derive(Debug)]
pub struct DenseTiles {
    height: usize,
    /// Tiles of blocks.
    pub tiles: Buffer<u32>,
    /// Which values are entries.
    pub stored: Buffer<u8>,
}

/// An entry while a window is made: (column · 2^32 + how often its row has had it,
/// row of the window · 2^56 + number).
pub(crate) type Entry = [u64; 2];

pub(super) fn row_of(entry: &Entry) -> usize {
    (entry[1] >> 56) as usize
}

/// Which entry of A it is.
pub(super) fn number_of(entry: &Entry) -> usize {
    (entry[1] & ((1 << 56) - 1)) as usize
}

/// The entries of these rows by column, those of a column by row.
pub(super) fn gather<'a, I: Index, J: Index>(
    pattern: &Pattern<'_, I, J>,
    rows: Range<usize>,
    scratch: &'a mut [Entry],
) -> &'a [Entry] {
    let mut count = 0;
    for row in rows.clone() {
        // A value that no column has stands for "none yet", as in `numbered`.
        let (mut last, mut again) = (usize::MAX, 0);
        for at in pattern.range(row) {
            let column = pattern.index(at);
            again = if last == column { again + 1 } else { 0 };
            last = column;
            scratch[count] = [(column as u64) << 32 | again, ((row - rows.start) as u64) << 56 | at as u64];
            count += 1;
        }
    }
    let entries = &mut scratch[..count];
    entries.sort_unstable();
    entries
}

/// A number for each entry: which column of the window it has.
pub(super) fn numbered<'a>(
    entries: impl Iterator<Item = &'a Entry>,
) -> impl Iterator<Item = (usize, &'a Entry)> {
    // A number that no column has, and not `None`: optimized code may compare what a `None` holds, which
    // is not set, before it asks whether there is anything, and valgrind reports that.
    let (mut number, mut last) = (0, u64::MAX);
    entries.map(move |entry| {
        number += usize::from(last != u64::MAX && last != entry[0]);
        last = entry[0];
        (number, entry)
    })
}

pub(super) fn windows(rows: usize, height: usize) -> impl Iterator<Item = Range<usize>> {
    (0..rows.div_ceil(height)).map(move |window| window * height..rows.min((window + 1) * height))
}

/// The error of a matrix that has too many blocks or tiles.
pub fn too_many(what: &str, count: usize) -> Error {
    Error::unsupported(format!(
        "A: algorithm window takes at most {MOST_TILES} {what} of 16 × 16 places; there are {count}"
    ))
}

/// Refuses numbers of blocks or tiles that the arrays have no room for.
pub fn check_count(what: &str, count: usize) -> Result<()> {
    if count < MOST_TILES {
        Ok(())
    } else {
        Err(too_many(what, count))
    }
}

impl<V: Element, T: Tiles> WindowLayout<V, T> {
    /// Arranges a valid pattern of sorted rows, with `values` in its order; `rules`
    /// gives them for what was counted. Less than 2^31 columns. `NOT_SUPPORTED` for
    /// 2^28 blocks or dense tiles, and for 2^32 entries in masked ones.
    pub fn build<I: Index, J: Index>(
        allocator: &Arc<Allocator>,
        pattern: &Pattern<'_, I, J>,
        values: &[V],
        origin: Origin<'_>,
        rules: impl Fn(&Counts) -> Rules,
    ) -> Result<Self> {
        let (rows, nnz, width) = (pattern.major, pattern.indices.len(), T::SHAPE.block);
        let most = windows(rows, HEIGHTS[3])
            .map(|rows| pattern.range(rows.end - 1).end - pattern.range(rows.start).start)
            .max();
        let mut scratch = Buffer::<Entry>::zeroed(allocator, most.unwrap_or(0))?;
        let rules = rules(&Counts::of(pattern, rows, T::SHAPE, &mut scratch));
        let height = rules.height;

        // All windows of this height are counted, to know where the blocks of each begin.
        let (at, mut counts) = (survey::place(height), Counts::default());
        let mut before = Buffer::<u64>::zeroed(allocator, rows.div_ceil(height) + 1)?;
        for (number, rows) in windows(rows, height).enumerate() {
            counts.add(at, gather(pattern, rows, &mut scratch).iter(), T::SHAPE);
            before[number + 1] = counts.blocks[at] as u64;
        }
        let (blocks, tiles) = (counts.blocks[at], counts.tiles[at]);
        check_count("blocks", blocks)?;
        let (items, parts) = schedule(allocator, &before, rules.limit(blocks))?;
        let (store, places) = T::new(allocator, height, blocks, tiles, nnz)?;
        let mut out = WindowLayout {
            row_count: rows,
            height,
            nnz,
            distinct: counts.columns[at],
            items,
            parts,
            columns: Buffer::zeroed(allocator, blocks * width)?,
            store,
            values: Buffer::zeroed(allocator, places)?,
            slots: origin.slots(allocator, nnz)?,
        };
        for (number, rows) in windows(rows, height).enumerate() {
            let blocks = before[number] as usize..before[number + 1] as usize;
            let entries = gather(pattern, rows, &mut scratch);
            let mut last = 0;
            for (at, entry) in numbered(entries.iter()) {
                last = blocks.start * width + at;
                out.columns[last] = (entry[0] >> 32) as u32;
                out.store.mark(last / width, row_of(entry), at % width);
            }
            if !blocks.is_empty() {
                let padding = out.columns[last] | PADDING;
                out.columns[last + 1..blocks.end * width].fill(padding);
            }
            out.store.number(blocks.clone());
            for (at, entry) in numbered(entries.iter()) {
                let from = number_of(entry);
                let to = out.store.enter(blocks.start + at / width, row_of(entry), at % width);
                out.values[to] = values[from];
                origin.note(&mut out.slots, from, to);
            }
        }
        Ok(out)
    }

    /// How many blocks there are.
    #[cfg(test)]
    pub fn blocks(&self) -> usize {
        self.columns.len() / T::SHAPE.block
    }

    /// The window and its blocks of the item at this place; of parts only for the
    /// first one.
    pub fn window_at(&self, item: usize) -> Option<(usize, Range<usize>)> {
        window_at(&self.items, &self.parts, item)
    }

    /// Calls f(row of the window, column, value) for the entries of a block, those of a
    /// row in their order.
    #[inline(always)]
    pub fn for_each_of_block(&self, block: usize, mut f: impl FnMut(usize, usize, V)) {
        self.store.for_each(&self.values, block, |row, k, value| {
            f(row, (self.columns[block * T::SHAPE.block + k] & !PADDING) as usize, value);
        });
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

    /// Places of all tiles over stored entries.
    pub fn fill_ratio(&self) -> f64 {
        fill_ratio(self.values.len(), self.nnz)
    }

    /// For people: height, ρ and fill.
    pub fn details(&self) -> String {
        T::details(self.height, self.nnz, self.distinct, self.values.len())
    }
}

impl DenseTiles {
    /// The tile of a block for the rows from 16 · group on, if it has one.
    fn tile(&self, block: usize, group: usize) -> Option<usize> {
        if self.height <= 16 {
            return Some(block);
        }
        let word = self.tiles[block];
        let before = (word & ((1 << group) - 1)).count_ones();
        (word >> group & 1 != 0).then_some(((word >> 4) + before) as usize)
    }
}

impl Tiles for DenseTiles {
    const SHAPE: Shape = SHAPE;

    fn new(
        allocator: &Arc<Allocator>,
        height: usize,
        blocks: usize,
        tiles: usize,
        _nnz: usize,
    ) -> Result<(Self, usize)> {
        check_count("tiles", tiles)?;
        let store = DenseTiles {
            height,
            tiles: Buffer::zeroed(allocator, if height > 16 { blocks } else { 0 })?,
            stored: Buffer::zeroed(allocator, tiles * LANES)?,
        };
        Ok((store, tiles * tile_values(height)))
    }

    fn mark(&mut self, block: usize, row: usize, _k: usize) {
        if self.height > 16 {
            self.tiles[block] |= 1 << (row / 16);
        }
    }

    fn number(&mut self, blocks: Range<usize>) {
        if self.height > 16 {
            let last = blocks.start.checked_sub(1).map_or(0, |last| self.tiles[last]);
            let mut next = (last >> 4) + (last & 0xf).count_ones();
            for word in &mut self.tiles[blocks] {
                let mask = *word;
                *word = next << 4 | mask;
                next += mask.count_ones();
            }
        }
    }

    fn enter(&mut self, block: usize, row: usize, k: usize) -> usize {
        let tile = self.tile(block, row / 16).expect("the entry is marked");
        let (lane, slot) = place(self.height, row % 16, k);
        self.stored[tile * LANES + lane] |= 1 << slot;
        (tile * LANES + lane) * (tile_values(self.height) / LANES) + slot
    }

    #[inline(always)]
    fn for_each<V: Copy>(&self, values: &[V], block: usize, mut f: impl FnMut(usize, usize, V)) {
        let per_lane = tile_values(self.height) / LANES;
        for group in 0..self.height.div_ceil(16) {
            let Some(tile) = self.tile(block, group) else { continue };
            for row in 0..self.height.min(16) {
                for k in 0..BLOCK {
                    let (lane, slot) = place(self.height, row, k);
                    let lane = tile * LANES + lane;
                    if self.stored[lane] >> slot & 1 != 0 {
                        f(group * 16 + row, k, values[lane * per_lane + slot]);
                    }
                }
            }
        }
    }

    fn details(height: usize, nnz: usize, distinct: usize, places: usize) -> String {
        details(height, nnz, distinct, places, false)
    }
}

/// The window and its blocks of the item at this place; of parts only for the first one.
pub(super) fn window_at(items: &[Item], parts: &[Part], item: usize) -> Option<(usize, Range<usize>)> {
    let Item { window, first, mut end, part } = items[item];
    if part != WHOLE {
        let own = parts[part as usize];
        if own.first != part {
            return None;
        }
        end = items[(own.first + own.count - 1) as usize].end;
    }
    Some((window as usize, first as usize..end as usize))
}

/// Items and parts of windows whose blocks start there.
pub(super) fn schedule(
    allocator: &Arc<Allocator>,
    starts: &[u64],
    limit: usize,
) -> Result<(Buffer<Item>, Buffer<Part>)> {
    let counts = || starts.windows(2).map(|pair| (pair[1] - pair[0]) as usize);
    let window_count = starts.len() - 1;
    let long_from = long_from(starts[window_count] as usize, window_count);
    let is_long = |count: usize| count > long_from;
    let part_count = counts().map(|count| deal(count, limit).0).sum();
    let cut = counts().filter(|&count| count > limit).count();
    let long = counts().filter(|&count| count <= limit && is_long(count)).count();
    let mut items = Buffer::<Item>::zeroed(allocator, part_count + window_count - cut)?;
    let mut parts = Buffer::<Part>::zeroed(allocator, part_count)?;
    let (mut part, mut counter, mut long_at, mut at) = (0, 0, part_count, part_count + long);
    for (window, count) in counts().enumerate() {
        let (first, end) = (starts[window] as usize, starts[window + 1] as usize);
        let (own, size) = deal(count, limit);
        let window = window as u32;
        if own > 0 {
            let head = Part { window, first: part as u32, count: own as u32, counter };
            for number in 0..own {
                parts[part] = head;
                items[part] = Item {
                    window,
                    first: (first + number * size) as u32,
                    end: end.min(first + (number + 1) * size) as u32,
                    part: part as u32,
                };
                part += 1;
            }
            counter += 1;
            continue;
        }
        let to = if is_long(count) { &mut long_at } else { &mut at };
        items[*to] = Item { window, first: first as u32, end: end as u32, part: WHOLE };
        *to += 1;
    }
    Ok((items, parts))
}

/// For people: height, ρ and fill of windows that have `distinct` columns.
pub fn details(height: usize, nnz: usize, distinct: usize, places: usize, clustered: bool) -> String {
    let full = 100.0 * nnz as f64 / places.max(1) as f64;
    format!("{}, tiles {full:.1} % full", masked_window::details(height, nnz, distinct, clustered))
}

#[cfg(test)]
pub(crate) mod tests;

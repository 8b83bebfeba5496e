//! Windows of rows with the union of their columns, for matrix units.
//!
//! [`Rules::height`] rows, h of them (8, 16, 32 or 64), are a window. Its columns, ascending, are the union
//! of those of its rows; a column that a row stores m times occurs m times, so that each entry has a slot of
//! its own. They are cut into blocks of [`BLOCK`] columns, the last of which is padded. So a product reads a
//! row of B once per window instead of once per entry: ρ_h = nnz / (columns of all windows) says how much
//! less that is, and the choice of h is based on it (src/select/spmm/window.rs).
//!
//! Values are stored as dense tiles of 16 rows (8 where h = 8) × 16 columns, the operand A of mma.m16n8k16
//! (the operand B where h = 8: rows and columns swapped), in the order in which its lanes hold them, see
//! [`fragment_position`]. Slots without an entry are 0. A block of a window of 32 or 64 rows has a tile for each 16 rows
//! that have an entry in it.
//!
//! Rows must be sorted. Arrays:
//! - `items`: one [`WorkItem`] per window, or one per part of a window that is split because it has more blocks
//!   than [`Rules::limit`]. First come the parts, window after window, part p at index p; then windows of
//!   more than [`long_from`] blocks, which should start first; then the others. Each class is in the order of
//!   the rows, since neighbours share rows of B.
//! - `parts`: a [`WindowPart`] per part of a split window
//! - `columns`: u32, [`BLOCK`] per block; with [`PADDING`] set: the window's last column again, for which the
//!   block has no entry
//! - `tiles` (h > 16): u32 per block: 16 · its first tile, plus a bit for each 16 rows that have a tile;
//!   where h ≤ 16, tile b is block b's
//! - `values`: 256 (h = 8: 128) per tile
//! - `stored`: u8, 32 per tile: a bit for each slot of a lane, set where it holds an entry. A kernel that
//!   multiplies whole tiles also multiplies the zeros of empty slots; where that matters (0 · Inf) these bits
//!   tell them from entries.
//! - `slots` (only where values will be updated): u64 per entry, in the order of the user's values: its index
//!   in `values`
//!
//! The inverse is `Window::for_each_entry`. The CUDA backend builds the arrays on the device
//! (src/backend/cuda/spmm/window/arrays.rs), bit for bit as [`Window::build`] does.

pub mod statistics;

use std::ops::Range;
use std::sync::Arc;

use bytemuck::{Pod, Zeroable};

pub use self::statistics::{Counts, WindowShape};
pub use super::fill_ratio;
use super::masked_window;
use super::sell::Origin;
use crate::error::{Error, Result};
use crate::matrix::compressed::Pattern;
use crate::memory::{Allocator, Buffer, COUNTER_BYTES};
use crate::types::{Element, Index};

/// Number of columns of a block.
pub const BLOCK: usize = 16;
/// Shape of blocks and tiles.
pub const SHAPE: WindowShape = WindowShape { block: BLOCK, group: 16 };
/// Number of lanes that hold a tile.
pub const LANES: usize = 32;
/// Heights that windows may have.
pub const HEIGHTS: [usize; 4] = [8, 16, 32, 64];
/// Bit that is set in the columns that pad a block.
pub const PADDING: u32 = 1 << 31;
/// Value of [`WorkItem::part`] for a whole window.
pub const WHOLE: u32 = u32::MAX;
/// Largest number of windows that may be split: the number of a handle's counters.
pub const MOST_SPLIT: usize = COUNTER_BYTES / size_of::<u32>();
/// Number of blocks, and of tiles, from which on a matrix is refused: 28 bits number the tiles.
const MOST_TILES: usize = 1 << 28;

/// Work item: a window, or a part of a split one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C, align(16))]
pub struct WorkItem {
    /// The window.
    pub window: u32,
    /// First block.
    pub first: u32,
    /// One behind the last block.
    pub end: u32,
    /// Index of the part in `parts`, or [`WHOLE`].
    pub part: u32,
}

/// Part of a split window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C, align(16))]
pub struct WindowPart {
    /// The window.
    pub window: u32,
    /// First part of the window.
    pub first: u32,
    /// Number of parts of the window.
    pub count: u32,
    /// Number of the window among the split ones.
    pub counter: u32,
}

/// Parameters of the window layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// Number of rows of a window.
    pub height: usize,
    /// Largest number of blocks of a part, since the launch ends with the longest one.
    pub most: usize,
    /// Number of warps that share a window where C has few columns.
    pub sharing: usize,
}

impl Rules {
    /// Returns the number of blocks of the longest window that is not split, for a matrix of `blocks` blocks;
    /// always even.
    pub fn limit(&self, blocks: usize) -> usize {
        limit(self.most, blocks)
    }
}

/// Returns `most`, or more where a matrix of `blocks` blocks would have too many windows split.
pub(super) fn limit(most: usize, blocks: usize) -> usize {
    most.max(blocks.div_ceil(MOST_SPLIT)).next_multiple_of(2)
}

/// Largest number of columns of B with which one warp takes a window (kernels/spmm/window.cuh).
pub const MOST_DIRECT: usize = 64;

/// Returns the number of parts of a window of `blocks` blocks, and the blocks of each but the last: an even
/// number, since two blocks are staged at a time. 0 parts: the window is not split.
pub fn division(blocks: usize, limit: usize) -> (usize, usize) {
    if blocks <= limit {
        return (0, blocks);
    }
    let size = blocks.div_ceil(blocks.div_ceil(limit)).next_multiple_of(2);
    (blocks.div_ceil(size), size)
}

/// Returns the number of blocks above which a window is scheduled before others, for `windows` windows that
/// have `blocks` blocks in all.
pub fn long_from(blocks: usize, windows: usize) -> usize {
    (4 * blocks / windows.max(1)).max(16)
}

/// Returns the number of values of a tile.
pub fn tile_values(height: usize) -> usize {
    height.min(16) * BLOCK
}

/// Returns the lane that holds row `row` and column `k` of a tile, and which of the lane's values they are: the
/// fragment of mma.m16n8k16's operand A, or for 8 rows that of B.
pub fn fragment_position(height: usize, row: usize, k: usize) -> (usize, usize) {
    let lane = row % 8 * 4 + k % 8 / 2;
    let number = if height == 8 { k / 8 * 2 + k % 2 } else { k / 8 * 4 + row / 8 * 2 + k % 2 };
    (lane, number)
}

/// Storage of a window's tiles, which records which slots hold an entry.
pub trait TileStore: Sized {
    /// Shape of blocks and tiles.
    const SHAPE: WindowShape;

    /// Allocates the storage for windows of `height` rows that have `blocks` blocks, `tiles` tiles and `nnz`
    /// entries, and returns it with the number of values.
    fn new(
        allocator: &Arc<Allocator>,
        height: usize,
        blocks: usize,
        tiles: usize,
        nnz: usize,
    ) -> Result<(Self, usize)>;

    /// Marks that a row of the window has an entry in column `k` of the block.
    fn mark(&mut self, block: usize, row: usize, k: usize);

    /// Assigns the start of each tile in the blocks of a window, after all its entries are marked and the
    /// blocks before it are numbered.
    fn number(&mut self, blocks: Range<usize>);

    /// Returns the index in `values` of a marked entry.
    fn enter(&mut self, block: usize, row: usize, k: usize) -> usize;

    /// Calls f(row of the window, column of the block, value) for the entries of a block; those of one row
    /// come in their order.
    fn for_each<V: Copy>(&self, values: &[V], block: usize, f: impl FnMut(usize, usize, V));

    /// Returns a readable summary: height, ρ and fill of windows that have `distinct` columns in all.
    fn details(height: usize, nnz: usize, distinct: usize, value_count: usize) -> String;
}

/// Window layout in host memory, with either kind of tiles.
#[derive(Debug)]
pub struct WindowLayout<V: Element, T> {
    /// Number of rows of op(A).
    pub row_count: usize,
    /// Number of rows of a window.
    pub height: usize,
    /// Number of stored entries.
    pub nnz: usize,
    /// Number of columns of all windows.
    pub distinct: usize,
    /// Work items: whole windows and parts of split ones.
    pub items: Buffer<WorkItem>,
    /// Parts of split windows.
    pub parts: Buffer<WindowPart>,
    /// Columns of the blocks.
    pub columns: Buffer<u32>,
    /// Record of the slots that hold entries.
    pub store: T,
    /// Values of the tiles.
    pub values: Buffer<V>,
    /// Index in `values` of each of the user's values, if values will be updated.
    pub slots: Option<Buffer<u64>>,
}

/// Window layout with dense tiles.
pub type Window<V> = WindowLayout<V, DenseTiles>;

/// Arrays of dense tiles besides their values.
#[derive(Debug)]
pub struct DenseTiles {
    height: usize,
    /// First tile of each block, and which groups of 16 rows have one.
    pub tiles: Buffer<u32>,
    /// Bits of the slots that hold entries.
    pub stored: Buffer<u8>,
}

/// Sort key of an entry while its window is built: (column · 2^32 + how many entries of that column its row
/// has before, row of the window · 2^56 + number of the entry).
pub(crate) type Entry = [u64; 2];

pub(super) fn row_of(entry: &Entry) -> usize {
    (entry[1] >> 56) as usize
}

/// Returns the number of the entry in A.
pub(super) fn number_of(entry: &Entry) -> usize {
    (entry[1] & ((1 << 56) - 1)) as usize
}

/// Returns the entries of these rows sorted by column, those of a column by how many of its entries their row
/// has before, then by row.
pub(super) fn gather<'a, I: Index, J: Index>(
    pattern: &Pattern<'_, I, J>,
    rows: Range<usize>,
    scratch: &'a mut [Entry],
) -> &'a [Entry] {
    let mut count = 0;
    for row in rows.clone() {
        // A value that no column has means "none yet", as in `numbered`.
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

/// Pairs each entry with the number of its column in the window.
pub(super) fn numbered<'a>(
    entries: impl Iterator<Item = &'a Entry>,
) -> impl Iterator<Item = (usize, &'a Entry)> {
    // A value that no column has, and not `None`: optimized code may compare the uninitialized payload of a
    // `None` before it tests whether there is one, which valgrind reports.
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

/// Returns the error for a matrix with too many blocks or tiles.
pub fn too_many(what: &str, count: usize) -> Error {
    Error::unsupported(format!("A: algorithm window takes fewer than {MOST_TILES} {what}; there are {count}"))
}

/// Returns an error unless there are fewer blocks or tiles than [`MOST_TILES`].
pub fn check_count(what: &str, count: usize) -> Result<()> {
    if count < MOST_TILES {
        Ok(())
    } else {
        Err(too_many(what, count))
    }
}

impl<V: Element, T: TileStore> WindowLayout<V, T> {
    /// Builds the layout of a valid pattern of sorted rows, with `values` in its order; `rules` returns the
    /// parameters, given the counts. op(A) has less than 2^31 columns. Fails with `NOT_SUPPORTED` for 2^28
    /// blocks or dense tiles or more, and for 2^32 − 1 entries or more in masked tiles.
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

        // All windows of this height are counted, for the first block of each.
        let (at, mut counts) = (statistics::height_index(height), Counts::default());
        let mut before = Buffer::<u64>::zeroed(allocator, rows.div_ceil(height) + 1)?;
        for (number, rows) in windows(rows, height).enumerate() {
            counts.add(at, gather(pattern, rows, &mut scratch).iter(), T::SHAPE);
            before[number + 1] = counts.blocks[at] as u64;
        }
        let (blocks, tiles) = (counts.blocks[at], counts.tiles[at]);
        check_count("blocks", blocks)?;
        let (items, parts) = schedule(allocator, &before, rules.limit(blocks))?;
        let (store, value_count) = T::new(allocator, height, blocks, tiles, nnz)?;
        let mut out = WindowLayout {
            row_count: rows,
            height,
            nnz,
            distinct: counts.columns[at],
            items,
            parts,
            columns: Buffer::zeroed(allocator, blocks * width)?,
            store,
            values: Buffer::zeroed(allocator, value_count)?,
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

    /// Returns the number of blocks.
    #[cfg(test)]
    pub fn blocks(&self) -> usize {
        self.columns.len() / T::SHAPE.block
    }

    /// Returns the window of a work item, and all blocks of it. For a split window only its first part
    /// returns them, the others `None`.
    pub fn window_at(&self, item: usize) -> Option<(usize, Range<usize>)> {
        window_at(&self.items, &self.parts, item)
    }

    /// Calls f(row of the window, column, value) for the entries of a block; those of one row come in their
    /// order.
    #[inline(always)]
    pub fn for_each_of_block(&self, block: usize, mut f: impl FnMut(usize, usize, V)) {
        self.store.for_each(&self.values, block, |row, k, value| {
            f(row, (self.columns[block * T::SHAPE.block + k] & !PADDING) as usize, value);
        });
    }

    /// Copies in new values, given in the order of the user's array. Returns false if the layout has no
    /// `slots`.
    pub fn refill(&mut self, values: &[V], conjugate: bool) -> bool {
        super::scatter(&mut self.values, self.slots.as_deref(), values, conjugate)
    }

    /// Inverse of [`Window::build`]: calls f(row, number of the entry in its row, column, value) for every
    /// stored entry.
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

    /// Returns the number of slots of all tiles divided by the number of stored entries.
    pub fn fill_ratio(&self) -> f64 {
        fill_ratio(self.values.len(), self.nnz)
    }

    /// Returns a readable summary: height, ρ and fill.
    pub fn details(&self) -> String {
        T::details(self.height, self.nnz, self.distinct, self.values.len())
    }
}

impl DenseTiles {
    /// Returns the tile of a block for the rows from 16 · group on, if it has one.
    fn tile(&self, block: usize, group: usize) -> Option<usize> {
        if self.height <= 16 {
            return Some(block);
        }
        let word = self.tiles[block];
        let before = (word & ((1 << group) - 1)).count_ones();
        (word >> group & 1 != 0).then_some(((word >> 4) + before) as usize)
    }
}

impl TileStore for DenseTiles {
    const SHAPE: WindowShape = SHAPE;

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
        let (lane, number) = fragment_position(self.height, row % 16, k);
        self.stored[tile * LANES + lane] |= 1 << number;
        (tile * LANES + lane) * (tile_values(self.height) / LANES) + number
    }

    #[inline(always)]
    fn for_each<V: Copy>(&self, values: &[V], block: usize, mut f: impl FnMut(usize, usize, V)) {
        let per_lane = tile_values(self.height) / LANES;
        for group in 0..self.height.div_ceil(16) {
            let Some(tile) = self.tile(block, group) else { continue };
            for row in 0..self.height.min(16) {
                for k in 0..BLOCK {
                    let (lane, number) = fragment_position(self.height, row, k);
                    let lane = tile * LANES + lane;
                    if self.stored[lane] >> number & 1 != 0 {
                        f(group * 16 + row, k, values[lane * per_lane + number]);
                    }
                }
            }
        }
    }

    fn details(height: usize, nnz: usize, distinct: usize, value_count: usize) -> String {
        details(height, nnz, distinct, value_count, false)
    }
}

/// Returns the window of a work item, and all blocks of it; `None` for parts of a split window but the
/// first.
pub(super) fn window_at(
    items: &[WorkItem],
    parts: &[WindowPart],
    item: usize,
) -> Option<(usize, Range<usize>)> {
    let WorkItem { window, first, mut end, part } = items[item];
    if part != WHOLE {
        let own = parts[part as usize];
        if own.first != part {
            return None;
        }
        end = items[(own.first + own.count - 1) as usize].end;
    }
    Some((window as usize, first as usize..end as usize))
}

/// Returns the work items and parts of windows whose blocks start at `starts`.
pub(super) fn schedule(
    allocator: &Arc<Allocator>,
    starts: &[u64],
    limit: usize,
) -> Result<(Buffer<WorkItem>, Buffer<WindowPart>)> {
    let counts = || starts.windows(2).map(|pair| (pair[1] - pair[0]) as usize);
    let window_count = starts.len() - 1;
    let long_from = long_from(starts[window_count] as usize, window_count);
    let is_long = |count: usize| count > long_from;
    let part_count = counts().map(|count| division(count, limit).0).sum();
    let split_count = counts().filter(|&count| count > limit).count();
    let long = counts().filter(|&count| count <= limit && is_long(count)).count();
    let mut items = Buffer::<WorkItem>::zeroed(allocator, part_count + window_count - split_count)?;
    let mut parts = Buffer::<WindowPart>::zeroed(allocator, part_count)?;
    let (mut part, mut counter, mut long_at, mut at) = (0, 0, part_count, part_count + long);
    for (window, count) in counts().enumerate() {
        let (first, end) = (starts[window] as usize, starts[window + 1] as usize);
        let (own, size) = division(count, limit);
        let window = window as u32;
        if own > 0 {
            let head = WindowPart { window, first: part as u32, count: own as u32, counter };
            for number in 0..own {
                parts[part] = head;
                items[part] = WorkItem {
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
        items[*to] = WorkItem { window, first: first as u32, end: end as u32, part: WHOLE };
        *to += 1;
    }
    Ok((items, parts))
}

/// Returns a readable summary: height, ρ and fill of windows that have `distinct` columns in all.
pub fn details(height: usize, nnz: usize, distinct: usize, value_count: usize, clustered: bool) -> String {
    let full = 100.0 * nnz as f64 / value_count.max(1) as f64;
    format!("{}, tiles {full:.1} % full", masked_window::details(height, nnz, distinct, clustered))
}

#[cfg(test)]
pub(crate) mod tests;

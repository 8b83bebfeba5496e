//! BCSR: dense blocks of the shape of a matrix unit's operand, after Okanovic et al.,
//! SMaT (SC 2024), section IV-B.
//!
//! [`ROWS`] row positions are a row block. A block of it is [`Rules::width`] columns wide and begins at a
//! column that is a multiple of that; it exists where one of the rows has an entry in it. A block has one
//! slot for each of its rows and columns. An entry whose slot another entry of the row has already taken (a
//! column stored twice) goes to a further block of the same columns. So each entry has a slot of its own, and
//! visiting the blocks of a row block in order yields the entries of each row in their order.
//!
//! Rows must be sorted. Arrays:
//! - `order` (only where rows are permuted): u32 per row position, the row that stands there or [`HOLE`];
//!   without it, position p has row p
//! - `items` and `parts`: as in src/format/window.rs, whose windows are the row blocks here, split where they
//!   have more blocks than [`Rules::limit`]
//! - `columns`: u32 per block, its first column divided by the width
//! - `values`: [`ROWS`] · width per block, in the order in which the lanes of a warp hold them as operand A
//!   of mma.m16n8k16 (halves) or mma.m16n8k8 (other types), see [`place`]. Slots without an entry are 0.
//! - `masks`: width / 8 bytes per row of a block, one bit per column from the lowest bit up, set where the
//!   slot holds an entry. A kernel that multiplies whole blocks also multiplies the zeros of empty slots;
//!   where that matters (0 · Inf) the masks tell them from entries.
//! - `slots` (only where values will be updated): u64 per entry, in the order of the user's values: its index
//!   in `values`
//!
//! The inverse is `Bcsr::for_each_entry`. The CUDA backend builds the arrays on the device
//! (kernels/format/bcsr.cu), bit for bit as [`Bcsr::build`] does.

use std::ops::Range;
use std::sync::Arc;

use super::sell::Origin;
use super::window::{self, fill_ratio, WindowPart, WorkItem};
use crate::error::{Error, Result};
use crate::matrix::compressed::Pattern;
use crate::memory::{Allocator, Buffer};
use crate::types::{Element, Index};

/// Number of rows of a block.
pub const ROWS: usize = 16;
/// Widths that a block may have; 16 is for halves only.
#[cfg(test)]
pub const WIDTHS: [usize; 2] = [8, 16];
/// Entry of `order` for a position without a row.
pub const HOLE: u32 = u32::MAX;
/// Largest number of blocks that one warp takes, as a whole row block or as a part of a split one. Limits of
/// 64 and 32 blocks of 16 columns took 66 and 126 µs for dc2 with 8 columns of B in fp16, 1.45 and 1.62 ms
/// for cop20k with 128 columns. Two narrow blocks of halves go into one MMA.
pub const MOST_BLOCKS: usize = 64;
/// Smallest number of blocks that a part should have: adding up its partial sums costs about as much as 8
/// blocks.
const LEAST_BLOCKS: usize = 8;
/// Limit on the number of blocks, which are numbered by 31 bits.
const MOST: usize = 1 << 31;

/// Parameters of the block layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// Number of columns of a block.
    pub width: usize,
    /// Largest number of blocks of a part, since the launch ends with the longest one.
    pub most: usize,
    /// Number of work items to aim for, as long as parts do not become too small for it.
    pub wanted: usize,
}

impl Rules {
    /// Returns the largest number of blocks, always even, of a row block that is not split, for a matrix of
    /// `blocks` blocks in `row_blocks` row blocks. Where most row blocks are short, a part has at most twice
    /// their mean number of blocks, so that the items that start last are not the longest: limits of 64 and
    /// 128 narrow blocks took 41.1 and 47.5 µs for scircuit (35 blocks per row block) with 8 columns, 54.9
    /// and 46.6 µs for dnn90 (512) with 128 columns.
    pub fn limit(&self, blocks: usize, row_blocks: usize) -> usize {
        let mean = blocks / row_blocks.max(1);
        let top = (2 * mean).max(MOST_BLOCKS).min(self.most);
        let most = (blocks / self.wanted).clamp(LEAST_BLOCKS.min(top), top);
        window::limit(most, blocks)
    }

    /// Returns the number of slots of a block.
    pub fn places(&self) -> usize {
        ROWS * self.width
    }
}

/// Returns the largest block width for values of `bytes` bytes: as many columns as one MMA takes.
pub fn widest(bytes: usize) -> usize {
    if bytes == 2 {
        16
    } else {
        8
    }
}

/// Returns the index, among a block's values, of row `row` and column `k` in a block of `width` columns: the
/// order in which lanes hold operand A of mma.m16n8k16 for values of 2 bytes, of mma.m16n8k8 for others. Two
/// blocks of 8 columns of halves make one operand.
pub fn place(bytes: usize, width: usize, row: usize, k: usize) -> usize {
    if bytes == 2 {
        let (lane, slot) = (row % 8 * 4 + k % 8 / 2, k / 8 * 4 + row / 8 * 2 + k % 2);
        lane * (width / 2) + slot
    } else {
        (row % 8 * 4 + k % 4) * 4 + k / 4 * 2 + row / 8
    }
}

/// BCSR layout in host memory.
#[derive(Debug)]
pub struct Bcsr<V: Element> {
    /// Number of rows of op(A).
    pub row_count: usize,
    /// Number of columns of a block.
    pub width: usize,
    /// Number of stored entries.
    pub nnz: usize,
    /// Number of row blocks.
    #[cfg(test)]
    pub row_blocks: usize,
    /// Row at each position, if rows are permuted.
    pub order: Option<Buffer<u32>>,
    /// Work items: whole row blocks and parts of split ones.
    pub items: Buffer<WorkItem>,
    /// Parts of split row blocks.
    pub parts: Buffer<WindowPart>,
    /// First column of each block, divided by the width.
    pub columns: Buffer<u32>,
    /// Values of all blocks, slot by slot.
    pub values: Buffer<V>,
    /// Bit masks of the slots that hold entries.
    pub masks: Buffer<u8>,
    /// Slot of each of the user's values, if values will be updated.
    pub slots: Option<Buffer<u64>>,
}

/// Returns the row at a position, if it has one.
fn row_at(order: Option<&[u32]>, rows: usize, place: usize) -> Option<usize> {
    match order {
        Some(order) => order.get(place).filter(|&&row| row != HOLE).map(|&row| row as usize),
        None => Some(place).filter(|&place| place < rows),
    }
}

/// Cuts the entries of the given sorted rows into blocks of `width` columns that begin at a multiple of
/// `width`, by ascending column. An entry of a column that its row already has in a block goes to a further
/// block of the same columns. Calls f(number of the block, row, column, entry) for the entries, block by
/// block and in each block row by row, and returns the number of blocks.
#[inline(always)]
pub(super) fn sweep<I: Index, J: Index>(
    pattern: &Pattern<'_, I, J>,
    rows: &mut [Range<usize>],
    width: usize,
    mut f: impl FnMut(usize, usize, usize, usize),
) -> usize {
    let mut blocks = 0;
    let next = |row: &Range<usize>| (!row.is_empty()).then(|| pattern.index(row.start));
    while let Some(first) = rows.iter().filter_map(next).min() {
        for (number, row) in rows.iter_mut().enumerate() {
            let mut last = None;
            while let Some(column) = next(row) {
                // The slot is taken: the entry belongs to the next block.
                if column / width != first / width || last == Some(column) {
                    break;
                }
                f(blocks, number, column, row.start);
                last = Some(column);
                row.start += 1;
            }
        }
        blocks += 1;
    }
    blocks
}

/// Returns an error if the number of blocks does not fit the arrays.
pub fn check_count(blocks: usize) -> Result<()> {
    if blocks < MOST {
        return Ok(());
    }
    Err(Error::unsupported(format!("A: algorithm smat takes less than {MOST} blocks; there are {blocks}")))
}

impl<V: Element> Bcsr<V> {
    /// Builds the layout of a valid pattern of sorted rows, with `values` in its order. `order` has, for
    /// [`ROWS`] positions per row block, the row at each or [`HOLE`]; every row is at exactly one position.
    /// op(A) has less than 2^31 columns. Fails with `NOT_SUPPORTED` for 2^31 blocks or more.
    pub fn build<I: Index, J: Index>(
        allocator: &Arc<Allocator>,
        pattern: &Pattern<'_, I, J>,
        values: &[V],
        origin: Origin<'_>,
        rules: Rules,
        order: Option<&[u32]>,
    ) -> Result<Self> {
        let rows = pattern.major;
        let nnz = pattern.indices.len();
        let width = rules.width;
        let row_blocks = order.map_or(rows, <[u32]>::len).div_ceil(ROWS);
        let ranges = |row_block: usize| -> [_; ROWS] {
            std::array::from_fn(|at| {
                row_at(order, rows, row_block * ROWS + at).map_or(0..0, |row| pattern.range(row))
            })
        };
        let mut starts = Buffer::<u64>::zeroed(allocator, row_blocks + 1)?;
        for number in 0..row_blocks {
            let blocks = sweep(pattern, &mut ranges(number), width, |_, _, _, _| ());
            starts[number + 1] = starts[number] + blocks as u64;
        }
        let blocks = starts[row_blocks] as usize;
        check_count(blocks)?;
        let (items, parts) = window::schedule(allocator, &starts, rules.limit(blocks, row_blocks))?;
        let mut columns = Buffer::<u32>::zeroed(allocator, blocks)?;
        let mut places = Buffer::<V>::zeroed(allocator, blocks.saturating_mul(rules.places()))?;
        let mut masks = Buffer::<u8>::zeroed(allocator, blocks.saturating_mul(rules.places() / 8))?;
        let mut slots = origin.slots(allocator, nnz)?;
        for number in 0..row_blocks {
            let first = starts[number] as usize;
            sweep(pattern, &mut ranges(number), width, |block, row, column, from| {
                let (block, k) = (first + block, column % width);
                let to = block * rules.places() + place(size_of::<V>(), width, row, k);
                columns[block] = (column / width) as u32;
                places[to] = values[from];
                masks[(block * ROWS + row) * (width / 8) + k / 8] |= 1 << (k % 8);
                origin.note(&mut slots, from, to);
            });
        }
        Ok(Bcsr {
            row_count: rows,
            width,
            nnz,
            #[cfg(test)]
            row_blocks,
            order: order.map(|order| Buffer::from_slice(allocator, order)).transpose()?,
            items,
            parts,
            columns,
            values: places,
            masks,
            slots,
        })
    }

    /// Returns the row at position `at` of a row block, if it has one.
    pub fn row(&self, row_block: usize, at: usize) -> Option<usize> {
        row_at(self.order.as_deref(), self.row_count, row_block * ROWS + at)
    }

    /// Returns the row block of a work item, and all blocks of it. For a split row block only its first part
    /// returns them, the others `None`.
    pub fn row_block_at(&self, item: usize) -> Option<(usize, Range<usize>)> {
        window::window_at(&self.items, &self.parts, item)
    }

    /// Calls f(row in the block, column, value) for the entries of a block; the entries of one row come in
    /// their order.
    #[inline(always)]
    pub fn for_each_of_block(&self, block: usize, mut f: impl FnMut(usize, usize, V)) {
        let (width, first) = (self.width, self.columns[block] as usize * self.width);
        for row in 0..ROWS {
            for byte in 0..width / 8 {
                let mut mask = self.masks[(block * ROWS + row) * (width / 8) + byte];
                while mask != 0 {
                    let k = byte * 8 + mask.trailing_zeros() as usize;
                    let at = block * ROWS * width + place(size_of::<V>(), width, row, k);
                    f(row, first + k, self.values[at]);
                    mask &= mask - 1;
                }
            }
        }
    }

    /// Copies in new values, given in the order of the user's array. Returns false if the layout has no
    /// `slots`.
    pub fn refill(&mut self, values: &[V], conjugate: bool) -> bool {
        super::scatter(&mut self.values, self.slots.as_deref(), values, conjugate)
    }

    /// Inverse of [`Bcsr::build`]: calls f(row, number of the entry in its row, column, value) for every
    /// stored entry.
    #[cfg(test)]
    pub fn for_each_entry(&self, mut f: impl FnMut(usize, usize, usize, V)) {
        for item in 0..self.items.len() {
            let Some((row_block, blocks)) = self.row_block_at(item) else { continue };
            let rows: [_; ROWS] = std::array::from_fn(|at| self.row(row_block, at));
            let mut counts = [0; ROWS];
            for block in blocks {
                self.for_each_of_block(block, |at, column, value| {
                    // Only positions that have a row hold entries.
                    if let Some(row) = rows[at] {
                        f(row, counts[at], column, value);
                    }
                    counts[at] += 1;
                });
            }
        }
    }

    /// Returns the number of slots of all blocks divided by the number of stored entries.
    pub fn fill_ratio(&self) -> f64 {
        fill_ratio(self.values.len(), self.nnz)
    }

    /// Returns a readable summary: shape, number and fill of the blocks.
    pub fn details(&self) -> String {
        details(self.width, self.columns.len(), self.nnz, self.order.is_some())
    }
}

/// Returns a readable summary: shape, number and fill of the blocks.
pub fn details(width: usize, blocks: usize, nnz: usize, permuted: bool) -> String {
    let full = 100.0 * nnz as f64 / (blocks * ROWS * width).max(1) as f64;
    let rows = if permuted { "clustered" } else { "as they are" };
    format!("{blocks} blocks of {ROWS} × {width}, {full:.1} % full, rows {rows}")
}

#[cfg(test)]
pub(crate) mod tests;

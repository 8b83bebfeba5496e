//! BCSR: dense blocks of the shape of a matrix unit's operand, after Okanovic et al.,
//! SMaT (SC 2024), section IV-B.
//!
//! [`ROWS`] places of rows are a row block. A block of it is [`Rules::width`] columns
//! wide and begins at a column that is a multiple of that; it exists where one of the
//! rows has an entry in it. A block has one place for each of its columns and rows; an
//! entry of a column that its row has already there is in a further block of the same
//! columns. So each entry has a place of its own, and going through the blocks of a row
//! block in their order gives the entries of a row in theirs.
//!
//! Rows must be sorted. Arrays:
//! - `order` (only where rows are permuted): u32 a place, the row that stands there or
//!   [`HOLE`]; else place p has row p
//! - `items` and `parts`: as of src/format/window.rs, whose windows are the row blocks
//!   here, cut where they have more blocks than [`Rules::limit`]
//! - `columns`: u32 a block, its first column over the width
//! - `values`: [`ROWS`] · width a block, in the order in which the lanes of a warp hold
//!   them as the operand A of mma.m16n8k16 (halves) or mma.m16n8k8 (others): [`place`].
//!   Places without an entry are 0.
//! - `masks`: width / 8 bytes a row of a block, a bit a column, from the lowest one:
//!   which places hold an entry. What multiplies blocks has multiplied zeros, too; where
//!   that matters (0 · Inf) this tells them apart.
//! - `slots` (only where values will be updated): u64 an entry, in the order of the
//!   user's values: its place in `values`
//!
//! The inverse is `Bcsr::for_each_entry`. The CUDA backend makes the arrays on the
//! device (kernels/format/bcsr.cu), bit for bit as [`Bcsr::build`].

use std::ops::Range;
use std::sync::Arc;

use super::sell::Origin;
use super::window::{self, fill_ratio, Item, Part};
use crate::error::{Error, Result};
use crate::matrix::compressed::Pattern;
use crate::memory::{Allocator, Buffer};
use crate::types::{Element, Index};

/// Rows of a block.
pub const ROWS: usize = 16;
/// The widths of blocks; 16 of halves only.
#[cfg(test)]
pub const WIDTHS: [usize; 2] = [8, 16];
/// A place of `order` without a row.
pub const HOLE: u32 = u32::MAX;
/// Blocks of the longest part, or row block that is whole, which a warp takes: 64 and 32
/// blocks of 16 columns took dc2's 8 columns of B in fp16 66 and 126 µs, cop20k's 128
/// columns 1.45 and 1.62 ms. Two narrow blocks of halves go into one MMA.
pub const MOST_BLOCKS: usize = 64;
/// The least that a part should have, whose sums cost about as much as 8 blocks.
const LEAST_BLOCKS: usize = 8;
/// Blocks that 31 bits number.
const MOST: usize = 1 << 31;

/// How blocks are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// Columns of a block.
    pub width: usize,
    /// Blocks of the longest part, since the launch ends with it.
    pub most: usize,
    /// Items that there should be, if parts need not be too small for it.
    pub wanted: usize,
}

impl Rules {
    /// Blocks of the longest row block that is not cut, of a matrix of so many in so many row
    /// blocks; even. Where most row blocks are short, a part that has twice their blocks at most,
    /// since the last ones to start are not the longest: 64 and 128 narrow blocks took scircuit's
    /// (35 a row block) 8 columns 41.1 and 47.5 µs, dnn90's (512) 128 columns 54.9 and 46.6.
    pub fn limit(&self, blocks: usize, row_blocks: usize) -> usize {
        let mean = blocks / row_blocks.max(1);
        let top = (2 * mean).max(MOST_BLOCKS).min(self.most);
        let most = (blocks / self.wanted).clamp(LEAST_BLOCKS.min(top), top);
        window::limit(most, blocks)
    }

    /// Places of a block.
    pub fn places(&self) -> usize {
        ROWS * self.width
    }
}

/// The widest block of values of so many bytes: as many columns as an MMA takes.
pub fn widest(bytes: usize) -> usize {
    if bytes == 2 {
        16
    } else {
        8
    }
}

/// Where row `row` and column `k` of a block of so many columns stand among its values:
/// as lanes hold the operand A of mma.m16n8k16 for values of 2 bytes, of mma.m16n8k8
/// for others. Of blocks of 8 columns of halves, two make one operand.
pub fn place(bytes: usize, width: usize, row: usize, k: usize) -> usize {
    if bytes == 2 {
        let (lane, slot) = (row % 8 * 4 + k % 8 / 2, k / 8 * 4 + row / 8 * 2 + k % 2);
        lane * (width / 2) + slot
    } else {
        (row % 8 * 4 + k % 4) * 4 + k / 4 * 2 + row / 8
    }
}

/// The layout in host memory.
#[derive(Debug)]
pub struct Bcsr<V: Element> {
    /// Rows of op(A).
    pub row_count: usize,
    /// Columns of a block.
    pub width: usize,
    /// Stored entries.
    pub nnz: usize,
    /// Row blocks.
    #[cfg(test)]
    pub row_blocks: usize,
    /// Rows by place.
    pub order: Option<Buffer<u32>>,
    /// Row blocks and parts.
    pub items: Buffer<Item>,
    /// Parts.
    pub parts: Buffer<Part>,
    /// Columns of blocks over their width.
    pub columns: Buffer<u32>,
    /// Values.
    pub values: Buffer<V>,
    /// Which of them are entries.
    pub masks: Buffer<u8>,
    /// Where the user's values go.
    pub slots: Option<Buffer<u64>>,
}

/// The row at a place.
fn row_at(order: Option<&[u32]>, rows: usize, place: usize) -> Option<usize> {
    match order {
        Some(order) => order.get(place).filter(|&&row| row != HOLE).map(|&row| row as usize),
        None => Some(place).filter(|&place| place < rows),
    }
}

/// Cuts the entries of these sorted rows into blocks of columns that begin at a multiple of `width`, by ascending
/// column; an entry of a column that its row has already in a block is in a further one of the same columns. Calls
/// f(number of the block, row, column, entry) for the entries, block after block and in each row after row, and
/// returns how many blocks there are.
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
                // A place that is taken: the entry is for the next block.
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

/// Refuses numbers of blocks that the arrays have no room for.
pub fn check_count(blocks: usize) -> Result<()> {
    if blocks < MOST {
        return Ok(());
    }
    Err(Error::unsupported(format!("A: algorithm smat takes less than {MOST} blocks; there are {blocks}")))
}

impl<V: Element> Bcsr<V> {
    /// Arranges a valid pattern of sorted rows, with `values` in its order. `order`:
    /// the row at each of [`ROWS`] places a row block or [`HOLE`]; every row is at one.
    /// Less than 2^31 columns. `NOT_SUPPORTED` for 2^31 blocks.
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

    /// The row at place `at` of a row block.
    pub fn row(&self, row_block: usize, at: usize) -> Option<usize> {
        row_at(self.order.as_deref(), self.row_count, row_block * ROWS + at)
    }

    /// The row block of the item at this place and all of its blocks; of parts only for
    /// the first one.
    pub fn row_block_at(&self, item: usize) -> Option<(usize, Range<usize>)> {
        window::window_at(&self.items, &self.parts, item)
    }

    /// Calls f(row of the block, column, value) for the entries of a block, those of a
    /// row in their order.
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
            let Some((row_block, blocks)) = self.row_block_at(item) else { continue };
            let rows: [_; ROWS] = std::array::from_fn(|at| self.row(row_block, at));
            let mut counts = [0; ROWS];
            for block in blocks {
                self.for_each_of_block(block, |at, column, value| {
                    // Only a place that has a row has entries.
                    if let Some(row) = rows[at] {
                        f(row, counts[at], column, value);
                    }
                    counts[at] += 1;
                });
            }
        }
    }

    /// Places of all blocks over stored entries.
    pub fn fill_ratio(&self) -> f64 {
        fill_ratio(self.values.len(), self.nnz)
    }

    /// For people: shape, number and fill of blocks.
    pub fn details(&self) -> String {
        details(self.width, self.columns.len(), self.nnz, self.order.is_some())
    }
}

/// For people: shape, number and fill of blocks.
pub fn details(width: usize, blocks: usize, nnz: usize, permuted: bool) -> String {
    let full = 100.0 * nnz as f64 / (blocks * ROWS * width).max(1) as f64;
    let rows = if permuted { "clustered" } else { "as they are" };
    format!("{blocks} blocks of {ROWS} × {width}, {full:.1} % full, rows {rows}")
}

#[cfg(test)]
pub(crate) mod tests;

//! Blocks with bit masks: 8 or 4 rows × 4 columns of op(A), of which a block stores only the entries that
//! exist and a mask with one bit per slot.
//!
//! A slab is as many rows as a block has. Its entries are cut into blocks whose first column is a multiple
//! of 4, by ascending column. Each block takes from every row the longest run of its next entries that lie in
//! the block's columns and ascend. Where a column is stored twice, the second entry goes to the same slot of
//! another block, so entries keep the order of the row. Rows must be sorted. The blocks of 4 rows are those
//! halves of the blocks of 8 rows that have an entry.
//!
//! The blocks of a slab are divided among 2^[`Rules::shares_log2`] shares of equal numbers of blocks,
//! multiples of [`UNIT`] but for the last share that has any. A slab of more than [`Rules::limit`] blocks is
//! split: its blocks are divided in the same way among parts.
//!
//! Arrays:
//! - `heads`: a [`BlockHead`] per share, slabs one after the other, then one per part. The shares of split
//!   slabs have no blocks.
//! - `parts`: a [`PartHead`] per part of a split slab
//! - `masks`: u16 for four rows of a block, the first four rows first, slabs one after the other; bit 4 r + c
//!   is row r of the four, column c of the block
//! - `values`: the values of the entries and nothing else: block after block, and inside a block in the order
//!   of the bits
//! - `narrow`: u16 per block: number of its columns (first column / 4) relative to that of the first block of
//!   the share or part; 0 where that is wide
//! - `wide`: u32 per block of the shares and parts that span more than 2^16 of these numbers
//! - `positions` (only where values will be updated): the index in the user's value array that each value
//!   comes from
//!
//! A product adds, for each row, the entries of every 32 / rows-th block of a share or part in their order,
//! then these 4 or 8 sums pairwise, (0 + 1) + (2 + 3) and so on, then the sums of shares and parts in fixed
//! orders that depend on the sizes alone.
//!
//! Bytes of half-full blocks beside the values: 6 for the 16 entries of an 8 × 4 block, 4 for the 8 entries
//! of a 4 × 4 block. A matrix gets the block size that takes fewer bytes.
//!
//! The inverse is `MaskBlock::for_each_entry`. The CUDA backend builds the arrays on the device
//! (src/backend/cuda/spmv/mask_block.rs), bit for bit as [`MaskBlock::build`] does.

use std::sync::Arc;

use bytemuck::{Pod, Zeroable};

use super::bcsr::sweep;
use super::sell::Origin;
use crate::error::{Error, Result};
use crate::matrix::compressed::Pattern;
use crate::memory::{Allocator, Buffer};
use crate::types::{Element, Index};

/// Largest number of rows of a block and of its slab.
pub const MOST_ROWS: usize = 8;
/// Rows of a block that one word of `masks` covers; also the smallest number of rows of a slab.
pub const WORD_ROWS: usize = 4;
/// Number of columns of a block.
pub const COLUMNS: usize = 4;
/// Granularity of shares and parts in blocks: as many as a warp has in flight at once.
pub const UNIT: usize = 8;
/// Upper bound of [`Rules::limit_log2`], and its value on a CPU, where a thread takes several slabs or parts
/// of that size.
pub const MOST_LIMIT_LOG2: u32 = 15;
/// Upper bound of [`Rules::shares_log2`]: the warps of a block of threads.
pub const MOST_SHARES_LOG2: u32 = 2;

/// Head of a share or a part of a slab, the work of one warp.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C, align(16))]
pub struct BlockHead {
    /// First value.
    pub first: u64,
    /// First block.
    pub block: u32,
    /// Number that `narrow` columns are relative to; for a wide head, its first index in `wide`.
    pub base: u32,
    /// Number of blocks.
    pub count: u32,
    /// Number of values.
    pub values: u32,
    /// Flags [`WIDE`] and [`CUT`].
    pub flags: u32,
    /// Padding, 0.
    pub unused: u32,
}

/// Flag of a head whose columns are in `wide`.
pub const WIDE: u32 = 1;
/// Flag of a share of a split slab, whose blocks are in its parts.
pub const CUT: u32 = 2;

impl BlockHead {
    /// Returns the range of the blocks that belong to this head.
    pub fn blocks(&self) -> std::ops::Range<usize> {
        self.block as usize..(self.block + self.count) as usize
    }
}

/// Part of a split slab.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C, align(16))]
pub struct PartHead {
    /// The slab.
    pub slab: u32,
    /// First part of the slab.
    pub first: u32,
    /// Number of parts of the slab.
    pub count: u32,
    /// Number of the slab among the split ones.
    pub counter: u32,
}

/// Number of blocks of a matrix in either size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Number of rows of op(A).
    pub rows: usize,
    /// Number of blocks of 8 × 4.
    pub eights: usize,
    /// Number of blocks of 4 × 4.
    pub fours: usize,
}

impl Counts {
    /// Returns the number of blocks of `block_rows` rows.
    pub fn blocks(&self, block_rows: usize) -> usize {
        match block_rows {
            MOST_ROWS => self.eights,
            _ => self.fours,
        }
    }

    /// Returns the bytes besides values: masks, columns of 16 bits and heads of slabs.
    pub fn index_bytes(&self, block_rows: usize) -> usize {
        self.blocks(block_rows) * (block_rows / WORD_ROWS + 1) * size_of::<u16>()
            + self.rows.div_ceil(block_rows) * size_of::<BlockHead>()
    }

    /// Returns the rows of the blocks that take fewer bytes and whose number fits 32 bits.
    pub fn better_rows(&self) -> usize {
        let fits = u32::try_from(self.fours).is_ok();
        if fits && self.index_bytes(WORD_ROWS) < self.index_bytes(MOST_ROWS) {
            WORD_ROWS
        } else {
            MOST_ROWS
        }
    }
}

/// Block size, and how slabs are divided among warps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// Rows of a block: 8 or 4.
    pub block_rows: usize,
    /// log2 of the shares of a slab; at most [`MOST_SHARES_LOG2`].
    pub shares_log2: u32,
    /// log2 of the largest number of blocks of a share or part; at most 15.
    pub limit_log2: u32,
}

/// Division of a slab into shares or parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Division {
    /// Number of parts; 0 if the slab is not split and has shares.
    pub parts: usize,
    /// Number of blocks of each share or part but the last.
    pub size: usize,
}

impl Rules {
    /// Returns the number of blocks of the longest slab that is not split.
    pub fn limit(&self) -> usize {
        1 << (self.limit_log2 + self.shares_log2)
    }

    /// Returns how a slab of `blocks` blocks is divided.
    pub fn division(&self, blocks: usize) -> Division {
        let parts = if blocks > self.limit() { blocks.div_ceil(1 << self.limit_log2) } else { 0 };
        let among = if parts > 0 { parts } else { 1 << self.shares_log2 };
        Division { parts, size: blocks.div_ceil(among).next_multiple_of(UNIT) }
    }
}

/// Mask-block layout in host memory.
#[derive(Debug)]
pub struct MaskBlock<V: Element> {
    /// Number of rows of op(A).
    pub row_count: usize,
    /// Number of rows of a slab and of its blocks.
    pub block_rows: usize,
    /// log2 of the shares of a slab.
    pub shares_log2: u32,
    /// Heads of the shares of all slabs, then of the parts.
    pub heads: Buffer<BlockHead>,
    /// Pieces of split slabs.
    pub parts: Buffer<PartHead>,
    /// Bit masks of the slots that hold entries.
    pub masks: Buffer<u16>,
    /// Values of the entries.
    pub values: Buffer<V>,
    /// Relative 16-bit column numbers.
    pub narrow: Buffer<u16>,
    /// Absolute 32-bit column numbers.
    pub wide: Buffer<u32>,
    /// Index in the user's array that each value comes from, if it was kept.
    pub positions: Option<Buffer<i64>>,
}

impl<V: Element> MaskBlock<V> {
    /// Builds the layout of a valid pattern of sorted rows, with `values` in its order; `rules` returns the
    /// parameters, given the numbers of blocks. Fails with `NOT_SUPPORTED` for 2^32 blocks or more.
    pub fn build<I: Index, J: Index>(
        allocator: &Arc<Allocator>,
        pattern: &Pattern<'_, I, J>,
        values: &[V],
        origin: Origin<'_>,
        rules: impl Fn(&Counts) -> Rules,
    ) -> Result<Self> {
        let rows = pattern.major;
        let mut eights = Buffer::<u64>::zeroed(allocator, rows.div_ceil(MOST_ROWS))?;
        // Two per slab of 8 rows; the last one may have no rows.
        let mut fours = Buffer::<u64>::zeroed(allocator, 2 * eights.len())?;
        let ranges = |slab: usize, height: usize| -> [_; MOST_ROWS] {
            let rows = slab * height..rows.min((slab + 1) * height);
            std::array::from_fn(|at| rows.clone().nth(at).map_or(0..0, |row| pattern.range(row)))
        };
        for (slab, (eight, fours)) in eights.iter_mut().zip(fours.chunks_exact_mut(2)).enumerate() {
            // For each half of the 8 rows, the last block that has an entry in it.
            let mut last = [usize::MAX; 2];
            let blocks = sweep(pattern, &mut ranges(slab, MOST_ROWS), COLUMNS, |block, row, _, _| {
                let half = row / WORD_ROWS;
                fours[half] += u64::from(last[half] != block);
                last[half] = block;
            });
            *eight = blocks as u64;
        }
        let sum = |counts: &[u64]| counts.iter().sum::<u64>() as usize;
        let rules = rules(&Counts { rows, eights: sum(&eights), fours: sum(&fours) });
        let block_rows = rules.block_rows;
        let slabs = rows.div_ceil(block_rows);
        let counts = if block_rows == MOST_ROWS { &eights[..] } else { &fours[..slabs] };
        let blocks = sum(counts);
        if u32::try_from(blocks).is_err() {
            return Err(too_many_blocks(blocks as i64));
        }
        let part_count = counts.iter().map(|&count| rules.division(count as usize).parts).sum();
        let slab_heads = slabs << rules.shares_log2;
        let nnz = pattern.indices.len();
        let words = block_rows / WORD_ROWS;
        let mut out = MaskBlock {
            row_count: rows,
            block_rows,
            shares_log2: rules.shares_log2,
            heads: Buffer::zeroed(allocator, slab_heads + part_count)?,
            parts: Buffer::zeroed(allocator, part_count)?,
            masks: Buffer::zeroed(allocator, blocks * words)?,
            values: Buffer::zeroed(allocator, nnz)?,
            narrow: Buffer::zeroed(allocator, blocks)?,
            wide: Buffer::zeroed(allocator, 0)?,
            positions: if origin.keep { Some(Buffer::zeroed(allocator, nnz)?) } else { None },
        };
        let mut columns = Buffer::<u32>::zeroed(allocator, blocks)?;
        let (mut block, mut value, mut part, mut counter) = (0, 0, 0, 0);
        for (slab, &count) in counts.iter().enumerate() {
            let division = rules.division(count as usize);
            let mut next = slab << rules.shares_log2;
            if division.parts > 0 {
                out.heads[next..next + (1 << rules.shares_log2)]
                    .fill(BlockHead { flags: CUT, ..BlockHead::default() });
                let (first, count) = (part as u32, division.parts as u32);
                out.parts[part..part + division.parts].fill(PartHead {
                    slab: slab as u32,
                    first,
                    count,
                    counter,
                });
                next = slab_heads + part;
                part += division.parts;
                counter += 1;
            }
            let (mut head, mut inside) = (next, 0);
            block += sweep(pattern, &mut ranges(slab, block_rows), COLUMNS, |number, row, column, entry| {
                let block = block + number;
                if number == inside {
                    // This is the first entry of a block.
                    head = next + number / division.size;
                    if number % division.size == 0 {
                        (out.heads[head].first, out.heads[head].block) = (value as u64, block as u32);
                    }
                    out.heads[head].count += 1;
                    columns[block] = (column / COLUMNS) as u32;
                    inside += 1;
                }
                out.heads[head].values += 1;
                let bit = row % WORD_ROWS * COLUMNS + column % COLUMNS;
                out.masks[block * words + row / WORD_ROWS] |= 1 << bit;
                out.values[value] = values[entry];
                if let Some(positions) = &mut out.positions {
                    positions[value] = origin.of(entry);
                }
                value += 1;
            });
        }
        out.narrow_columns(allocator, &columns)?;
        Ok(out)
    }

    /// Fills in the columns of each head, narrow or wide.
    fn narrow_columns(&mut self, allocator: &Arc<Allocator>, columns: &[u32]) -> Result<()> {
        let is_wide = |head: &BlockHead| {
            let columns = &columns[head.blocks()];
            columns.last().is_some_and(|last| last - columns[0] > 0xffff)
        };
        let wide = self.heads.iter().filter(|&head| is_wide(head)).map(|head| head.count as usize).sum();
        self.wide = Buffer::zeroed(allocator, wide)?;
        let mut at = 0;
        for head in self.heads.iter_mut() {
            let columns = &columns[head.blocks()];
            if is_wide(head) {
                head.flags |= WIDE;
                head.base = at as u32;
                self.wide[at..at + columns.len()].copy_from_slice(columns);
                at += columns.len();
            } else if let Some(&first) = columns.first() {
                head.base = first;
                for (to, column) in self.narrow[head.blocks()].iter_mut().zip(columns) {
                    *to = (column - first) as u16;
                }
            }
        }
        Ok(())
    }

    /// Returns the number of slabs.
    pub fn slabs(&self) -> usize {
        (self.heads.len() - self.parts.len()) >> self.shares_log2
    }

    /// Returns the number of blocks.
    pub fn blocks(&self) -> usize {
        self.narrow.len()
    }

    /// Returns the mask of a block: bit 4 r + c is set if row r has an entry in column c.
    pub fn mask(&self, block: usize) -> u32 {
        match self.block_rows {
            MOST_ROWS => u32::from(self.masks[2 * block]) | u32::from(self.masks[2 * block + 1]) << 16,
            _ => u32::from(self.masks[block]),
        }
    }

    /// Returns the heads of the shares of a slab, or of its parts if it is split. `first_part` is the number
    /// of parts of the slabs before it.
    #[cfg(test)]
    pub fn heads_of(&self, slab: usize, first_part: usize) -> std::ops::Range<usize> {
        let first = slab << self.shares_log2;
        if self.heads[first].flags & CUT == 0 {
            return first..first + (1 << self.shares_log2);
        }
        let first = self.heads.len() - self.parts.len() + first_part;
        first..first + self.parts[first_part].count as usize
    }

    /// Calls f(first column, mask, number of the first value) for the blocks of a head.
    #[inline(always)]
    pub fn for_each_block_of(&self, head: &BlockHead, mut f: impl FnMut(usize, u32, usize)) {
        let mut value = head.first as usize;
        for (inside, block) in head.blocks().enumerate() {
            let number = if head.flags & WIDE != 0 {
                self.wide[head.base as usize + inside] as usize
            } else {
                head.base as usize + usize::from(self.narrow[block])
            };
            let mask = self.mask(block);
            f(number * COLUMNS, mask, value);
            value += mask.count_ones() as usize;
        }
    }

    /// Copies in new values, given in the order of the user's array. Returns false if the positions were not
    /// kept.
    pub fn refill(&mut self, values: &[V], conjugate: bool) -> bool {
        super::refill(&mut self.values, self.positions.as_deref(), values, conjugate)
    }

    /// Inverse of [`MaskBlock::build`]: calls f(row, number of the entry in its row, column, value) for every
    /// stored entry.
    #[cfg(test)]
    pub fn for_each_entry(&self, mut f: impl FnMut(usize, usize, usize, V)) {
        let mut first_part = 0;
        for slab in 0..self.slabs() {
            let mut counts = [0; MOST_ROWS];
            let heads = self.heads_of(slab, first_part);
            if self.heads[slab << self.shares_log2].flags & CUT != 0 {
                first_part += heads.len();
            }
            for head in &self.heads[heads] {
                self.for_each_block_of(head, |column, mask, first| {
                    let bits = (0..MOST_ROWS * COLUMNS).filter(|bit| mask >> bit & 1 != 0);
                    for (value, bit) in (first..).zip(bits) {
                        let row = bit / COLUMNS;
                        let column = column + bit % COLUMNS;
                        f(slab * self.block_rows + row, counts[row], column, self.values[value]);
                        counts[row] += 1;
                    }
                });
            }
        }
    }

    /// Returns a readable summary: the size of the blocks.
    pub fn details(&self) -> String {
        details(self.block_rows)
    }

    /// Returns the number of slots of all blocks divided by the number of stored entries: 1 where every block
    /// is full.
    pub fn fill_ratio(&self) -> f64 {
        fill_ratio(self.blocks(), self.block_rows, self.values.len())
    }
}

/// Returns the number of slots of `blocks` blocks of `block_rows` rows divided by the number of stored
/// entries.
pub fn fill_ratio(blocks: usize, block_rows: usize, nnz: usize) -> f64 {
    super::fill_ratio(blocks * block_rows * COLUMNS, nnz)
}

/// Returns a readable summary: the size of blocks of `block_rows` rows.
pub fn details(block_rows: usize) -> String {
    format!("blocks of {block_rows} × {COLUMNS}")
}

/// Returns the error for a matrix with more blocks than 32 bits can number.
pub fn too_many_blocks(blocks: i64) -> Error {
    Error::unsupported(format!("A: algorithm mask_block numbers blocks by 32 bits; there are {blocks}"))
}

#[cfg(test)]
pub(crate) mod tests;

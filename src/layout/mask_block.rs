//! Blocks with bit masks: 8 rows × 4 columns of op(A), of which a block stores
//! the entries that exist and 32 bits that say which those are.
//!
//! Eight rows are a slab. Its entries are cut into blocks whose first column is a
//! multiple of 4, by ascending column. Each block takes from every row the longest
//! run of its next entries that lie in the block's columns and ascend: where a
//! column is stored twice, the second is in another block at the same place, so
//! entries keep the order of the row. Rows must be sorted.
//!
//! A slab of more than [`Rules::limit`] blocks is cut into parts of equal numbers
//! of blocks, multiples of [`UNIT`] but for the last one.
//!
//! Arrays:
//! - `heads`: a [`BlockHead`] a slab, then one a part. Slabs that are cut have no
//!   block of their own.
//! - `parts`: a [`PartHead`] a part
//! - `masks`: u32 a block, slabs one after the other; bit 4 r + c is row r of the
//!   slab, column c of the block
//! - `values`: those of the entries and nothing else: block after block, and inside
//!   one in the order of the bits
//! - `narrow`: u16 a block: number of its columns (first column / 4) relative to
//!   that of the first block of the slab or part; 0 where that is wide
//! - `wide`: u32 a block of the slabs and parts that span more than 2^16 numbers
//! - `positions` (only where values will be updated): where in the user's value
//!   array each value comes from
//!
//! A product adds, for each row and each of the four columns, the blocks of a share
//! in their order, then the four sums as (0 + 1) + (2 + 3), then shares and parts in
//! fixed orders that depend on the sizes alone.
//!
//! Bytes for blocks that are half full: values, and 6 for 16 entries.
//!
//! The inverse is [`MaskBlock::for_each_entry`]. The CUDA backend makes the arrays on
//! the device (src/backend/cuda/spmv/mask_block.rs), bit for bit as
//! [`MaskBlock::build`].

use std::sync::Arc;

use bytemuck::{Pod, Zeroable};

use super::sell::Origin;
use crate::backend::{Allocator, Buffer};
use crate::error::{Error, Result};
use crate::matrix::compressed::Pattern;
use crate::types::{Element, Index};

/// Rows of a slab.
pub const ROWS: usize = 8;
/// Columns of a block.
pub const COLUMNS: usize = 4;
/// Parts have multiples of this many blocks: what a warp has under way at one time.
pub const UNIT: usize = 8;
/// Numbers of blocks of a slab that 16 bits hold.
const MOST_LIMIT_LOG2: u32 = 15;

/// A slab or a part of one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C, align(16))]
pub struct BlockHead {
    /// First value, without the bits in `high`.
    pub first: u32,
    /// First block.
    pub block: u32,
    /// What narrow columns count from; wide: the first one in `wide`.
    pub base: u32,
    /// Blocks.
    pub count: u16,
    /// Bits 32 to 39 of the number of the first value.
    pub high: u8,
    /// [`WIDE`], [`CUT`].
    pub flags: u8,
}

/// Columns are in `wide`.
pub const WIDE: u8 = 1;
/// The slab is the sum of its parts.
pub const CUT: u8 = 2;

impl BlockHead {
    /// Number of the first value.
    pub fn first_value(&self) -> usize {
        (usize::from(self.high) << 32) | self.first as usize
    }

    /// The blocks.
    pub fn blocks(&self) -> std::ops::Range<usize> {
        self.block as usize..self.block as usize + usize::from(self.count)
    }
}

/// A part of a slab.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C, align(16))]
pub struct PartHead {
    /// The slab.
    pub slab: u32,
    /// Its first part.
    pub first: u32,
    /// How many it has.
    pub count: u32,
    /// Number of the slab among those that are cut.
    pub counter: u32,
}

/// How slabs are cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// log2 of the blocks of the longest slab that is not cut; at most 15.
    pub limit_log2: u32,
}

impl Rules {
    /// For a CPU, where a part is only what 16 bits count.
    pub const HOST: Rules = Rules { limit_log2: MOST_LIMIT_LOG2 };

    /// For a matrix of this many blocks on a device that runs `warps` warps at one
    /// time; `most_cut` bounds the number of slabs that are cut.
    pub fn new(blocks: usize, warps: usize, most_cut: usize) -> Self {
        // A launch ends with its longest slab, which should be of the order of what
        // each warp gets anyway; parts of fewer than 64 blocks would cost more in
        // hand-overs, those of 256 some 20 µs.
        let share = blocks.div_ceil(warps.max(1)).next_power_of_two().ilog2();
        let least = blocks.div_ceil(most_cut.max(1)).next_power_of_two().ilog2();
        Rules { limit_log2: share.clamp(6, 8).max(least).min(MOST_LIMIT_LOG2) }
    }

    /// Blocks of the longest slab that is not cut.
    pub fn limit(&self) -> usize {
        1 << self.limit_log2
    }

    /// Number of parts of a slab that is cut, and blocks of each but the last.
    pub fn parts(&self, blocks: usize) -> (usize, usize) {
        let parts = blocks.div_ceil(self.limit());
        (parts, blocks.div_ceil(parts).next_multiple_of(UNIT))
    }
}

/// The layout in host memory.
#[derive(Debug)]
pub struct MaskBlock<V: Element> {
    /// Rows of op(A).
    pub row_count: usize,
    /// Columns of op(A).
    pub col_count: usize,
    /// Slabs, then parts.
    pub heads: Buffer<BlockHead>,
    /// Parts.
    pub parts: Buffer<PartHead>,
    /// Which entries exist.
    pub masks: Buffer<u32>,
    /// Values.
    pub values: Buffer<V>,
    /// 16-bit columns.
    pub narrow: Buffer<u16>,
    /// 32-bit columns.
    pub wide: Buffer<u32>,
    /// Where each value comes from, if it was asked for.
    pub positions: Option<Buffer<i64>>,
}

/// Calls f(column / 4, mask, positions of the entries by bit) for each block of a
/// slab.
fn for_each_block<I: Index, J: Index>(
    pattern: &Pattern<'_, I, J>,
    slab: usize,
    mut f: impl FnMut(usize, u32, &[usize]),
) {
    let rows = (slab * ROWS..pattern.major.min((slab + 1) * ROWS)).map(|row| pattern.range(row));
    let mut rest = [(); ROWS].map(|()| 0..0);
    rest.iter_mut().zip(rows).for_each(|(rest, row)| *rest = row);
    let column = |at: usize| pattern.index(at);
    loop {
        let ahead = rest.iter().filter(|row| row.start < row.end).map(|row| column(row.start) / COLUMNS);
        let Some(block) = ahead.min() else { return };
        let (mut mask, mut entries, mut count) = (0, [0; ROWS * COLUMNS], 0);
        for (number, row) in rest.iter_mut().enumerate() {
            let mut last = None;
            while row.start < row.end {
                let next = column(row.start);
                if next / COLUMNS != block || last >= Some(next) {
                    break;
                }
                last = Some(next);
                mask |= 1 << (number * COLUMNS + next % COLUMNS);
                entries[count] = row.start;
                count += 1;
                row.start += 1;
            }
        }
        f(block, mask, &entries[..count]);
    }
}

/// What the builder writes to, slab after slab.
struct Cut<'a> {
    rules: Rules,
    parts: &'a mut [PartHead],
    part: usize,
    counter: u32,
}

impl<V: Element> MaskBlock<V> {
    /// Arranges a valid pattern of sorted rows, with `values` in its order; `rules`
    /// gives them for a number of blocks. `NOT_SUPPORTED` for 2^32 blocks or more.
    pub fn build<I: Index, J: Index>(
        allocator: &Arc<Allocator>,
        pattern: &Pattern<'_, I, J>,
        values: &[V],
        origin: Origin<'_>,
        rules: impl Fn(usize) -> Rules,
    ) -> Result<Self> {
        let rows = if pattern.offsets.is_empty() { 0 } else { pattern.major };
        let slabs = rows.div_ceil(ROWS);
        let mut counts = Buffer::<u64>::zeroed(allocator, slabs)?;
        let mut blocks = 0;
        for (slab, count) in counts.iter_mut().enumerate() {
            for_each_block(pattern, slab, |_, _, _| *count += 1);
            blocks += *count as usize;
        }
        if u32::try_from(blocks).is_err() {
            return Err(too_many_blocks(blocks as i64));
        }
        let rules = rules(blocks);
        let is_cut = |&count: &u64| count as usize > rules.limit();
        let part_count =
            counts.iter().filter(|&count| is_cut(count)).map(|&count| rules.parts(count as usize).0);
        let part_count: usize = part_count.sum();
        let nnz = pattern.indices.len();
        let mut out = MaskBlock {
            row_count: rows,
            col_count: pattern.minor,
            heads: Buffer::zeroed(allocator, slabs + part_count)?,
            parts: Buffer::zeroed(allocator, part_count)?,
            masks: Buffer::zeroed(allocator, blocks)?,
            values: Buffer::zeroed(allocator, nnz)?,
            narrow: Buffer::zeroed(allocator, blocks)?,
            wide: Buffer::zeroed(allocator, 0)?,
            positions: if origin.keep { Some(Buffer::zeroed(allocator, nnz)?) } else { None },
        };
        let mut columns = Buffer::<u32>::zeroed(allocator, blocks)?;
        let mut cut = Cut { rules, parts: &mut out.parts, part: 0, counter: 0 };
        let (mut block, mut value) = (0, 0);
        for (slab, &count) in counts.iter().enumerate() {
            let (first_part, size) = cut.slab(slab, count as usize);
            let first_block = block;
            out.heads[slab] = head(value, block, count as usize);
            if first_part.is_some() {
                out.heads[slab] = BlockHead { flags: CUT, ..BlockHead::default() };
            }
            for_each_block(pattern, slab, |column, mask, entries| {
                let inside = block - first_block;
                if let (Some(part), true) = (first_part, inside % size == 0) {
                    let count = size.min(count as usize - inside);
                    out.heads[slabs + part + inside / size] = head(value, block, count);
                }
                out.masks[block] = mask;
                columns[block] = column as u32;
                for &entry in entries {
                    out.values[value] = values[entry];
                    if let Some(positions) = &mut out.positions {
                        positions[value] = origin.positions.map_or(entry as i64, |from| from[entry]);
                    }
                    value += 1;
                }
                block += 1;
            });
        }
        out.narrow_columns(allocator, &columns)?;
        Ok(out)
    }

    /// The columns of each head, and where they are.
    fn narrow_columns(&mut self, allocator: &Arc<Allocator>, columns: &[u32]) -> Result<()> {
        let is_wide = |head: &BlockHead| {
            let columns = &columns[head.blocks()];
            columns.last().is_some_and(|last| last - columns[0] > 0xffff)
        };
        let wide = self.heads.iter().filter(|&head| is_wide(head)).map(|head| usize::from(head.count)).sum();
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

    /// Slabs of rows.
    pub fn slabs(&self) -> usize {
        self.heads.len() - self.parts.len()
    }

    /// The slab of a head.
    pub fn slab_of(&self, head: usize) -> usize {
        match head.checked_sub(self.slabs()) {
            None => head,
            Some(part) => self.parts[part].slab as usize,
        }
    }

    /// Calls f(first column, mask, number of the first value) for the blocks of a
    /// head.
    #[inline(always)]
    pub fn for_each_block_of(&self, head: &BlockHead, mut f: impl FnMut(usize, u32, usize)) {
        let mut value = head.first_value();
        for (inside, block) in head.blocks().enumerate() {
            let number = if head.flags & WIDE != 0 {
                self.wide[head.base as usize + inside] as usize
            } else {
                head.base as usize + usize::from(self.narrow[block])
            };
            let mask = self.masks[block];
            f(number * COLUMNS, mask, value);
            value += mask.count_ones() as usize;
        }
    }

    /// Takes new values in the order of the user's array; false if the layout does
    /// not know where they go.
    pub fn refill(&mut self, values: &[V], conjugate: bool) -> bool {
        let Some(positions) = &self.positions else { return false };
        for (to, &from) in self.values.iter_mut().zip(positions.iter()) {
            let value = values[from as usize];
            *to = if conjugate { value.conjugate() } else { value };
        }
        true
    }

    /// The way back: calls f(row, number of the entry in its row, column, value)
    /// with every stored entry.
    pub fn for_each_entry(&self, mut f: impl FnMut(usize, usize, usize, V)) {
        let mut parts = 0..self.parts.len();
        for slab in 0..self.slabs() {
            let mut counts = [0; ROWS];
            let mut read = |head: &BlockHead| {
                self.for_each_block_of(head, |column, mask, first| {
                    let bits = (0..ROWS * COLUMNS).filter(|bit| mask >> bit & 1 != 0);
                    for (value, bit) in (first..).zip(bits) {
                        let row = bit / COLUMNS;
                        f(slab * ROWS + row, counts[row], column + bit % COLUMNS, self.values[value]);
                        counts[row] += 1;
                    }
                });
            };
            read(&self.heads[slab]);
            if self.heads[slab].flags & CUT != 0 {
                for _ in 0..self.parts[parts.start].count {
                    let part = parts.next().expect("a slab's parts are there");
                    read(&self.heads[self.slabs() + part]);
                }
            }
        }
    }

    /// Places of all blocks over stored entries: 1 where every block is full.
    pub fn fill_ratio(&self) -> f64 {
        fill_ratio(self.masks.len(), self.values.len())
    }
}

/// Places of this many blocks over stored entries.
pub fn fill_ratio(blocks: usize, nnz: usize) -> f64 {
    match nnz {
        0 => 1.0,
        nnz => (blocks * ROWS * COLUMNS) as f64 / nnz as f64,
    }
}

/// The error of a matrix that has more blocks than 32 bits number.
pub fn too_many_blocks(blocks: i64) -> Error {
    Error::unsupported(format!("A: algorithm mask_block numbers blocks by 32 bits; there are {blocks}"))
}

fn head(value: usize, block: usize, count: usize) -> BlockHead {
    BlockHead {
        first: value as u32,
        block: block as u32,
        count: count as u16,
        high: (value >> 32) as u8,
        ..BlockHead::default()
    }
}

impl Cut<'_> {
    /// Parts of a slab of this many blocks: the first one's number, if it is cut,
    /// and blocks of each.
    fn slab(&mut self, slab: usize, blocks: usize) -> (Option<usize>, usize) {
        if blocks <= self.rules.limit() {
            return (None, blocks);
        }
        let (first, (count, size)) = (self.part, self.rules.parts(blocks));
        let head =
            PartHead { slab: slab as u32, first: first as u32, count: count as u32, counter: self.counter };
        self.parts[first..first + count].fill(head);
        self.part += count;
        self.counter += 1;
        (Some(first), size)
    }
}

#[cfg(test)]
pub(crate) mod tests;

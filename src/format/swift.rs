//! Columns sorted by length, in blocks as wide as a warp, after Hu et al., Swift, section IV.
//!
//! Columns of op(A) are sorted by ascending number of entries (equal ones keep their order; empty ones come
//! first and are in no block). *Block sets* ([`Set`]) take entries from the top of the columns: the first set
//! begins at the first column and is as high as that is long, the next begins at the first column that has
//! entries left, and so on; a set of at least [`LANES`] columns is no higher than [`HEIGHT`]. A *block* is an
//! entry of each of [`LANES`] neighbouring columns of a set. The blocks are the *regular part*, without
//! padding. Where the number of a set's columns is not a multiple of [`LANES`], the last columns are left
//! over; their entries are the *irregular part*, column by column, from the last one to the left.
//!
//! [`TOGETHER`] blocks belong to one thread block, a *group*: sorted by row, the entries of each row are a
//! segment, which is summed.
//!
//! Arrays, with the paper's names; its `blkPtr` is [`LANES`] · block here:
//! - `order`: u32 per column, the sorted columns of op(A)
//! - `columns` (`blkColIdx`): u32 per block, where its first column is in `order`
//! - `values` (`value`, then `irrValue`): first the regular part, block by block, then the irregular one
//! - `rows` (`rowIdx`, then `irrRowIdx`): u32 per entry. In the regular part they are sorted in each group:
//!   row p is that of the entry at *position* p, and not of value p
//! - `positions` (`positionIdx`): u8 per regular entry, in the order of `values`: its position in its group.
//!   Entries of one row keep their order
//! - `offsets` (`offsetIdx`): i16 per position: at the first position of a segment the number of entries that
//!   follow in it, or -1 if none follow; 0 elsewhere
//! - `starts` (`irrPtr`): u64, where the irregular entries of the last column, the one before it, ... begin;
//!   one more at the end
//! - `pieces` (`colIdxIndex`, `blkStart`, `blkStop`): the irregular columns, those of more than [`LANES`]
//!   entries cut into pieces ([`Piece`])
//! - `slots` (only where values will be updated): u64 per entry, in the order of the user's values: its index
//!   in `values`
//!
//! The inverse is `Swift::for_each_entry`. The CUDA backend builds the arrays on the device
//! (kernels/format/swift.cu), bit for bit as [`Swift::build`] does, from the same [`Outline`].

pub mod bands;

use std::sync::Arc;

use bytemuck::{Pod, Zeroable};

use super::sell::Origin;
use crate::error::{Error, Result};
use crate::matrix::compressed::Pattern;
use crate::memory::{Allocator, Buffer};
use crate::types::{Element, Index};

/// Number of columns of a block: the lanes of a warp.
pub const LANES: usize = 32;
/// Number of blocks whose entries are sorted together: the paper's thread block of 32 × 8.
pub const TOGETHER: usize = 8;
/// Number of entries of a whole group.
pub const ENTRIES: usize = LANES * TOGETHER;
/// Largest height of a set: a group of long columns then has [`TOGETHER`] entries of each of the same
/// [`LANES`] columns. A height of 32 left more segments on pwtk (0.159 per entry, 0.165 with 8) and fewer on
/// consph (0.304, 0.298).
pub const HEIGHT: usize = TOGETHER;
/// Top bit of a [`Piece`]'s column, set if the piece is not the whole column.
pub const PART: u32 = 1 << 31;

/// Set of blocks that take the same entries of their columns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Set {
    /// First block of the set.
    pub first: u64,
    /// First column of the set, as an index of `order`.
    pub column: u32,
    /// Number of entries of each column that the set takes.
    pub height: u32,
    /// Number of entries of each column that the sets before have taken.
    pub taken: u32,
    /// Padding to an alignment of 8 bytes, 0.
    pub zero: u32,
}

/// Run of neighbouring irregular entries of a column.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Run {
    /// Number of the run's first entry among all irregular entries.
    pub first: u64,
    /// The column, counted from the last one of `order`.
    pub column: u32,
    /// Number of the run's first entry among the entries of its column.
    pub taken: u32,
}

/// Piece of a column's irregular entries, at most [`LANES`] of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Piece {
    /// Number of the run's first entry among all irregular entries.
    pub start: u64,
    /// One behind the last.
    pub stop: u64,
    /// The column, counted from the last one of `order`; with [`PART`] set where the column has more entries.
    pub column: u32,
    /// Padding to an alignment of 8 bytes, 0.
    pub zero: u32,
}

/// Structure of the layout as far as it follows from the lengths of the columns alone.
#[derive(Debug)]
pub struct Outline {
    /// Number of stored entries.
    pub nnz: usize,
    /// Number of regular blocks.
    pub blocks: usize,
    /// Block sets that have blocks.
    pub sets: Buffer<Set>,
    /// Runs of irregular entries by column, from the last one.
    pub runs: Buffer<Run>,
    /// Start of each column's irregular entries, counted from the last column.
    pub starts: Buffer<u64>,
    /// Pieces of the irregular columns.
    pub pieces: Buffer<Piece>,
}

/// Calls f(set, number of its columns) for all sets of columns of these ascending lengths.
fn walk(lengths: &[u32], mut f: impl FnMut(Set, usize)) {
    let (mut column, mut taken, mut first) = (0, 0, 0);
    loop {
        // Lengths ascend, so that the columns without entries left are the first ones.
        column += lengths[column..].partition_point(|&length| length <= taken);
        let Some(&length) = lengths.get(column) else { return };
        let columns = lengths.len() - column;
        let most = if columns < LANES { u32::MAX } else { HEIGHT as u32 };
        let height = (length - taken).min(most);
        f(Set { first, column: column as u32, height, taken, zero: 0 }, columns);
        first += (columns / LANES) as u64 * u64::from(height);
        taken += height;
    }
}

/// Calls f(run, length) for the runs of irregular entries of a column, which is counted from the last one;
/// `first` is the number of its first irregular entry.
fn walk_runs(lengths: &[u32], column: usize, mut first: u64, mut f: impl FnMut(Run, u64)) {
    let mut run: Option<(Run, u64)> = None;
    walk(lengths, |set, columns| {
        if columns % LANES <= column {
            return;
        }
        let height = u64::from(set.height);
        match &mut run {
            Some((run, length)) if u64::from(run.taken) + *length == u64::from(set.taken) => {
                *length += height
            }
            other => {
                if let Some((run, length)) = other.take() {
                    f(run, length);
                }
                *other = Some((Run { first, column: column as u32, taken: set.taken }, height));
            }
        }
        first += height;
    });
    if let Some((run, length)) = run {
        f(run, length);
    }
}

impl Outline {
    /// Computes the outline for columns of these ascending lengths.
    pub fn new(allocator: &Arc<Allocator>, lengths: &[u32]) -> Result<Self> {
        let nnz: u64 = lengths.iter().map(|&length| u64::from(length)).sum();
        let (mut blocks, mut sets) = (0, 0);
        walk(lengths, |set, columns| {
            let own = (columns / LANES) as u64 * u64::from(set.height);
            blocks += own;
            sets += usize::from(own > 0);
        });
        let mut starts = Buffer::<u64>::zeroed(allocator, LANES)?;
        let (mut runs, mut pieces, mut total) = (0, 0, 0);
        for column in 0..LANES - 1 {
            walk_runs(lengths, column, 0, |_, length| {
                runs += 1;
                total += length;
            });
            starts[column + 1] = total;
            pieces += ((total - starts[column]) as usize).div_ceil(LANES);
        }
        let mut out = Outline {
            nnz: nnz as usize,
            blocks: blocks as usize,
            sets: Buffer::zeroed(allocator, sets)?,
            runs: Buffer::zeroed(allocator, runs)?,
            starts,
            pieces: Buffer::zeroed(allocator, pieces)?,
        };
        let mut at = 0;
        walk(lengths, |set, columns| {
            if columns >= LANES {
                out.sets[at] = set;
                at += 1;
            }
        });
        let (mut run_at, mut piece_at) = (0, 0);
        for column in 0..LANES - 1 {
            let (first, end) = (out.starts[column], out.starts[column + 1]);
            walk_runs(lengths, column, first, |run, _| {
                out.runs[run_at] = run;
                run_at += 1;
            });
            let part = if end - first > LANES as u64 { PART } else { 0 };
            for start in (first..end).step_by(LANES) {
                let stop = end.min(start + LANES as u64);
                out.pieces[piece_at] = Piece { start, stop, column: column as u32 | part, zero: 0 };
                piece_at += 1;
            }
        }
        Ok(out)
    }

    /// Returns the number of entries of the regular part.
    pub fn regular(&self) -> usize {
        self.blocks * LANES
    }

    /// Returns the number of entries of the irregular part.
    pub fn irregular(&self) -> usize {
        self.nnz - self.regular()
    }

    /// Returns the number of groups of blocks.
    pub fn groups(&self) -> usize {
        self.blocks.div_ceil(TOGETHER)
    }

    /// Returns which entries a block has: its first sorted column, and the number of the entry in each of its
    /// columns.
    pub fn block(&self, block: usize) -> (usize, usize) {
        let set = self.sets[self.sets.partition_point(|set| set.first <= block as u64) - 1];
        let own = block as u64 - set.first;
        let (across, down) = (own / u64::from(set.height), own % u64::from(set.height));
        (set.column as usize + across as usize * LANES, set.taken as usize + down as usize)
    }
}

/// Swift layout in host memory.
#[derive(Debug)]
pub struct Swift<V: Element> {
    /// Number of rows of op(A).
    pub row_count: usize,
    /// Block sets and the structure of the irregular part.
    pub outline: Outline,
    /// Columns of op(A), sorted by length.
    pub order: Buffer<u32>,
    /// First column of each block, as an index in `order`.
    pub columns: Buffer<u32>,
    /// Values of both parts.
    pub values: Buffer<V>,
    /// Rows of both parts.
    pub rows: Buffer<u32>,
    /// Position by row of each regular entry in its group.
    pub positions: Buffer<u8>,
    /// Lengths of segments, at their first positions.
    pub offsets: Buffer<i16>,
    /// Number of segments of all groups: sums of regular entries.
    pub segments: usize,
    /// Index in `values` of each of the user's values, if values will be updated.
    pub slots: Option<Buffer<u64>>,
}

/// Returns an error if 32 bits cannot number the rows, the columns or the entries of a column.
pub fn check_counts(rows: usize, cols: usize, longest: usize) -> Result<()> {
    if rows.max(cols) <= i32::MAX as usize && longest < u32::MAX as usize {
        return Ok(());
    }
    Err(Error::unsupported(
        "A: algorithm swift takes less than 2^31 rows and columns of op(A), and columns of less than 2^32 - 1 entries",
    ))
}

impl<V: Element> Swift<V> {
    /// Builds the layout of a valid pattern of *columns* of op(A), whose rows ascend, with `values` in its
    /// order.
    pub fn build<I: Index, J: Index>(
        allocator: &Arc<Allocator>,
        columns: &Pattern<'_, I, J>,
        values: &[V],
        origin: Origin<'_>,
    ) -> Result<Self> {
        let cols = columns.major;
        let longest = (0..cols).map(|column| columns.range(column).len()).max();
        check_counts(columns.minor, cols, longest.unwrap_or(0))?;
        let mut order = Buffer::<u32>::zeroed(allocator, cols)?;
        order.iter_mut().zip(0..).for_each(|(to, column)| *to = column);
        order.sort_unstable_by_key(|&column| (columns.range(column as usize).len(), column));
        let mut lengths = Buffer::<u32>::zeroed(allocator, cols)?;
        for (to, &column) in lengths.iter_mut().zip(order.iter()) {
            *to = columns.range(column as usize).len() as u32;
        }
        let outline = Outline::new(allocator, &lengths)?;
        drop(lengths);
        let (regular, nnz) = (outline.regular(), outline.nnz);
        let mut out = Swift {
            row_count: columns.minor,
            order,
            columns: Buffer::zeroed(allocator, outline.blocks)?,
            values: Buffer::zeroed(allocator, nnz)?,
            rows: Buffer::zeroed(allocator, nnz)?,
            positions: Buffer::zeroed(allocator, regular)?,
            offsets: Buffer::zeroed(allocator, regular)?,
            segments: 0,
            slots: origin.slots(allocator, nnz)?,
            outline,
        };
        let entry = |out: &mut Self, column: usize, number: usize, to: usize| {
            let at = columns.range(out.order[column] as usize).start + number;
            out.values[to] = values[at];
            origin.note(&mut out.slots, at, to);
            columns.index(at) as u32
        };
        for group in 0..out.outline.groups() {
            let blocks = group * TOGETHER..((group + 1) * TOGETHER).min(out.outline.blocks);
            let first = blocks.start * LANES;
            let count = blocks.len() * LANES;
            let mut sorted = [(0, 0); ENTRIES];
            for block in blocks {
                let (column, number) = out.outline.block(block);
                out.columns[block] = column as u32;
                for lane in 0..LANES {
                    let to = block * LANES + lane;
                    let row = entry(&mut out, column + lane, number, to);
                    sorted[to - first] = (row, (to - first) as u8);
                }
            }
            let sorted = &mut sorted[..count];
            sorted.sort_unstable();
            for (position, &(row, number)) in sorted.iter().enumerate() {
                out.rows[first + position] = row;
                out.positions[first + usize::from(number)] = position as u8;
            }
            let mut position = 0;
            while position < count {
                let row = sorted[position].0;
                let length = sorted[position..].iter().take_while(|entry| entry.0 == row).count();
                out.offsets[first + position] = if length > 1 { length as i16 - 1 } else { -1 };
                out.segments += 1;
                position += length;
            }
        }
        for run in 0..out.outline.runs.len() {
            let Run { first, column, taken } = out.outline.runs[run];
            for at in first..out.run_end(run) {
                let (to, number) = (regular + at as usize, taken as usize + (at - first) as usize);
                out.rows[to] = entry(&mut out, cols - 1 - column as usize, number, to);
            }
        }
        Ok(out)
    }

    /// Returns the number of the irregular entry behind the last one of a run.
    fn run_end(&self, run: usize) -> u64 {
        self.outline.runs.get(run + 1).map_or(self.outline.irregular() as u64, |next| next.first)
    }

    /// Calls f(column, row, value) for the entries of a group: segment after segment, by ascending row, and
    /// within a segment in the order in which the paper's kernel has them in shared memory.
    #[inline(always)]
    pub fn for_each_of_group(&self, group: usize, mut f: impl FnMut(usize, usize, V)) {
        let blocks = group * TOGETHER..((group + 1) * TOGETHER).min(self.outline.blocks);
        let (first, count) = (blocks.start * LANES, blocks.len() * LANES);
        let mut at = [0_u8; ENTRIES];
        for number in 0..count {
            at[usize::from(self.positions[first + number])] = number as u8;
        }
        for (position, &number) in at[..count].iter().enumerate() {
            let number = usize::from(number);
            let column = self.columns[blocks.start + number / LANES] as usize + number % LANES;
            let row = self.rows[first + position] as usize;
            f(self.order[column] as usize, row, self.values[first + number]);
        }
    }

    /// Calls f(column, row, value) for the irregular entries of a piece.
    #[inline(always)]
    pub fn for_each_of_piece(&self, piece: usize, mut f: impl FnMut(usize, usize, V)) {
        let Piece { start, stop, column, .. } = self.outline.pieces[piece];
        let column = self.order[self.order.len() - 1 - (column & !PART) as usize] as usize;
        let regular = self.outline.regular();
        for at in regular + start as usize..regular + stop as usize {
            f(column, self.rows[at] as usize, self.values[at]);
        }
    }

    /// Copies in new values, given in the order of the user's array. Returns false if the layout has no
    /// `slots`.
    pub fn refill(&mut self, values: &[V]) -> bool {
        super::scatter(&mut self.values, self.slots.as_deref(), values, false)
    }

    /// Inverse of [`Swift::build`]: calls f(column, number of the entry in its column, row, value) for every
    /// stored entry.
    #[cfg(test)]
    pub fn for_each_entry(&self, mut f: impl FnMut(usize, usize, usize, V)) {
        let regular = self.outline.regular();
        for block in 0..self.outline.blocks {
            let (column, number) = self.outline.block(block);
            for lane in 0..LANES {
                let at = block * LANES + lane;
                let position = block / TOGETHER * ENTRIES + usize::from(self.positions[at]);
                let (column, row) = (self.order[column + lane] as usize, self.rows[position] as usize);
                f(column, number, row, self.values[at]);
            }
        }
        for run in 0..self.outline.runs.len() {
            let Run { first, column, taken } = self.outline.runs[run];
            let column = self.order[self.order.len() - 1 - column as usize] as usize;
            for at in first..self.run_end(run) {
                let (from, number) = (regular + at as usize, taken as usize + (at - first) as usize);
                f(column, number, self.rows[from] as usize, self.values[from]);
            }
        }
    }

    /// Returns a readable summary: blocks, and how much of the matrix they hold.
    pub fn details(&self) -> String {
        details(&self.outline, self.segments)
    }
}

/// Returns a readable summary: blocks, how much of the matrix they hold, and the number of sums per entry.
pub fn details(outline: &Outline, segments: usize) -> String {
    let share = 100.0 * outline.regular() as f64 / outline.nnz.max(1) as f64;
    let sums = segments as f64 / outline.regular().max(1) as f64;
    format!(
        "{} blocks of {LANES} columns in {} sets have {share:.1} % of the entries, {sums:.2} sums an entry",
        outline.blocks,
        outline.sets.len()
    )
}

#[cfg(test)]
pub(crate) mod tests;

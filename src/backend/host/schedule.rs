//! Division of the rows of a sparse operand into items of about equal work.
//!
//! The division depends on the row offsets alone, never on the number of threads, and every row (every chunk
//! of a long row) is summed by one thread in one order: results have the same bits whatever the number of
//! threads.
//!
//! Arrays:
//! - `items`: each is a range of whole rows, or a chunk of one long row whose partial sum is stored in a slot
//!   of the workspace. Together they contain every row and every entry exactly once.
//! - `long_rows`: rows that were divided into chunks; their slots are added in ascending order after all
//!   items are done.

use std::ops::Range;
use std::sync::Arc;

use bytemuck::{Pod, Zeroable};

use super::operand::Ints;
use crate::error::Result;
use crate::memory::{pool, Allocator, Buffer};

/// Sizes of items and chunks, in units. A unit is a row or a nonzero: a row costs about as much as a nonzero,
/// and empty rows must be written too.
#[derive(Clone, Copy, Debug)]
pub struct Grain {
    /// Units of an item of whole rows; its last row may exceed this size.
    item: usize,
    /// Rows with more nonzeros than this are divided. It is at least `item`, so that only the last row of an
    /// item can be so long.
    long: usize,
    /// Nonzeros of one chunk of a long row.
    chunk: usize,
}

impl Grain {
    /// Sizes for SpMV. An item is about 10 µs of work, 50 times the cost of taking an item from another
    /// thread, and each thread starts with a run of items, so many items cost little. A row of `long`
    /// nonzeros takes 50–100 µs: the time that a shorter row keeps a single thread busy at the end does not
    /// justify a second pass.
    pub const SPMV: Grain = Grain { item: 1 << 13, long: 1 << 16, chunk: 1 << 15 };

    /// Returns sizes for SpMM, where a unit costs as much as its part of a row of B and `bytes` are those of the sums
    /// of a row of C; 0 if they are not known. An item is at most about 10 µs of work, and of long rows more: where
    /// rows of C are short it has more units, since taking an item costs time. An item of 1,024 units of 12 bytes stays in
    /// the first-level cache while it is swept once per block of columns; larger ones are swept once or, with a number
    /// of columns that fills no vectors, a few times. One slot of n sums per 8,192 nonzeros is less than a thousandth
    /// of the rows of B that those nonzeros read.
    pub const fn spmm(bytes: usize) -> Grain {
        let item = match bytes {
            1..=64 => 1 << 12,
            65..=256 => 1 << 11,
            _ => 1 << 10,
        };
        Grain { item, long: 1 << 14, chunk: 1 << 13 }
    }
}

/// Number of units (times columns) below which waking other threads costs more than they save: about 20 µs of
/// work on one thread, where a wake-up takes 5 µs or more.
const PARALLEL_UNITS: usize = 1 << 14;

/// Returns whether this much work should be distributed over threads.
pub fn is_parallel(units: usize) -> bool {
    units >= PARALLEL_UNITS && pool::size() > 1
}

/// Value of `slot` in an item of whole rows.
const NO_SLOT: u64 = u64::MAX;

/// An item in storage: rows `first..last`, or entries `first..last` of a long row.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
struct Item {
    first: u64,
    last: u64,
    slot: u64,
}

#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
struct LongRow {
    row: u64,
    first_slot: u64,
    last_slot: u64,
}

/// An item of work for executors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Work {
    /// Whole rows.
    Rows(Range<usize>),
    /// Entries of a long row, whose partial sum is stored in a slot.
    Chunk {
        /// Positions of the entries.
        positions: Range<usize>,
        /// Slot for the partial sum.
        slot: usize,
    },
}

/// The division of the rows of a sparse operand into items.
#[derive(Debug)]
pub struct Schedule {
    items: Buffer<Item>,
    long_rows: Buffer<LongRow>,
    slots: usize,
    units: usize,
}

impl Schedule {
    /// Divides the rows of a validated pattern; `offsets` is empty or starts at the index base. O(items ·
    /// log(units of an item)).
    pub fn build(allocator: &Arc<Allocator>, offsets: Ints<'_>, grain: Grain) -> Result<Self> {
        let (mut items, mut long_rows, mut slots) = (0, 0, 0);
        walk(offsets, grain, |piece| match piece {
            Piece::Rows(_) => items += 1,
            Piece::Long { positions, .. } => {
                let chunks = positions.len().div_ceil(grain.chunk);
                items += chunks;
                slots += chunks;
                long_rows += 1;
            }
        });
        let mut out = Schedule {
            items: Buffer::zeroed(allocator, items)?,
            long_rows: Buffer::zeroed(allocator, long_rows)?,
            slots,
            units: units(offsets),
        };
        let (mut item, mut long_row, mut slot) = (0, 0, 0);
        walk(offsets, grain, |piece| match piece {
            Piece::Rows(rows) => {
                out.items[item] = Item { first: rows.start as u64, last: rows.end as u64, slot: NO_SLOT };
                item += 1;
            }
            Piece::Long { row, positions } => {
                let first_slot = slot;
                for first in positions.clone().step_by(grain.chunk) {
                    let last = positions.end.min(first + grain.chunk);
                    out.items[item] = Item { first: first as u64, last: last as u64, slot };
                    item += 1;
                    slot += 1;
                }
                out.long_rows[long_row] = LongRow { row: row as u64, first_slot, last_slot: slot };
                long_row += 1;
            }
        });
        Ok(out)
    }

    /// Returns the number of partial sums that the workspace must hold (per column of C).
    pub fn slots(&self) -> usize {
        self.slots
    }

    /// Returns the number of rows plus the number of nonzeros.
    pub fn units(&self) -> usize {
        self.units
    }

    fn work(&self, item: usize) -> Work {
        let item = &self.items[item];
        let range = item.first as usize..item.last as usize;
        match item.slot {
            NO_SLOT => Work::Rows(range),
            slot => Work::Chunk { positions: range, slot: slot as usize },
        }
    }

    /// Calls `f` for all items: on all threads, or in order on this one.
    pub fn for_each_item(&self, parallel: bool, f: impl Fn(Work) + Sync) {
        for_each(parallel, self.items.len(), |item| f(self.work(item)));
    }

    /// Calls `f(row, slots of its chunks)` for each row that was divided.
    pub fn for_each_long_row(&self, parallel: bool, f: impl Fn(usize, Range<usize>) + Sync) {
        for_each(parallel && self.long_rows.len() > 1, self.long_rows.len(), |at| {
            let long = &self.long_rows[at];
            f(long.row as usize, long.first_slot as usize..long.last_slot as usize);
        });
    }
}

/// Calls `f` for all of 0..len: on all threads, or in order on this one.
pub fn for_each(parallel: bool, len: usize, f: impl Fn(usize) + Sync) {
    /// Compiled once for all `f`; inlined, it would contain `f` twice.
    #[inline(never)]
    fn each(parallel: bool, len: usize, f: &(dyn Fn(usize) + Sync)) {
        if parallel {
            pool::for_each(len, f);
        } else {
            (0..len).for_each(f);
        }
    }
    each(parallel, len, &f);
}

enum Piece {
    Rows(Range<usize>),
    Long { row: usize, positions: Range<usize> },
}

fn units(offsets: Ints<'_>) -> usize {
    match offsets.len() {
        0 => 0,
        len => (offsets.get(len - 1) - offsets.get(0)) as usize + len - 1,
    }
}

/// Calls `f` for all pieces in ascending order of rows.
fn walk(offsets: Ints<'_>, grain: Grain, mut f: impl FnMut(Piece)) {
    debug_assert!(0 < grain.item && grain.item <= grain.long && 0 < grain.chunk);
    let rows = offsets.len().saturating_sub(1);
    let position = |row: usize| (offsets.get(row) - offsets.get(0)) as usize;
    let mut first = 0;
    while first < rows {
        let end = position(first) + first + grain.item;
        // Binary search for the first row that starts at least `item` units after `first`. Each row has at
        // least one unit, so it is at most `item` rows away.
        let (mut low, mut high) = (first + 1, rows.min(first + grain.item));
        while low < high {
            let middle = low + (high - low) / 2;
            if position(middle) + middle < end {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        let tail = position(low - 1)..position(low);
        if tail.len() <= grain.long {
            f(Piece::Rows(first..low));
        } else {
            if first < low - 1 {
                f(Piece::Rows(first..low - 1));
            }
            f(Piece::Long { row: low - 1, positions: tail });
        }
        first = low;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::HostMemory;
    use crate::types::Address;

    const TINY: Grain = Grain { item: 8, long: 10, chunk: 4 };

    fn allocator() -> Arc<Allocator> {
        Allocator::new(Arc::new(HostMemory), Address::NULL, usize::MAX)
    }

    fn offsets(base: i64, lengths: &[usize]) -> Vec<i64> {
        let mut offsets = vec![base];
        for &length in lengths {
            offsets.push(offsets.last().unwrap() + length as i64);
        }
        offsets
    }

    /// Checks that every row is written once and every entry read once, in pieces no larger than `grain`
    /// allows.
    fn check(lengths: &[usize], grain: Grain) {
        for base in [0, 1] {
            let offsets = offsets(base, lengths);
            let schedule = Schedule::build(&allocator(), offsets[..].into(), grain).unwrap();
            let position = |row: usize| (offsets[row] - base) as usize;
            let nnz: usize = lengths.iter().sum();
            assert_eq!(schedule.units(), nnz + lengths.len());
            let (mut row_count, mut entry_count) = (vec![0; lengths.len()], vec![0; nnz]);
            let mut slot_count = vec![0; schedule.slots()];
            for item in 0..schedule.items.len() {
                match schedule.work(item) {
                    Work::Rows(rows) => {
                        assert!(!rows.is_empty());
                        let units = position(rows.end) - position(rows.start) + rows.len();
                        assert!(units <= grain.item + grain.long + 1);
                        assert!(rows.clone().all(|row| lengths[row] <= grain.long));
                        rows.clone().for_each(|row| row_count[row] += 1);
                        (position(rows.start)..position(rows.end)).for_each(|p| entry_count[p] += 1);
                    }
                    Work::Chunk { positions, slot } => {
                        assert!(!positions.is_empty() && positions.len() <= grain.chunk);
                        slot_count[slot] += 1;
                        positions.for_each(|p| entry_count[p] += 1);
                    }
                }
            }
            for long in schedule.long_rows.iter() {
                let (row, slots) = (long.row as usize, long.first_slot as usize..long.last_slot as usize);
                assert_eq!(slots.len(), lengths[row].div_ceil(grain.chunk));
                row_count[row] += 1;
                slots.for_each(|slot| slot_count[slot] += 1);
            }
            assert!(row_count.iter().all(|&count| count == 1));
            assert!(entry_count.iter().all(|&count| count == 1));
            // Each slot is written by one chunk and read by one row.
            assert!(slot_count.iter().all(|&count| count == 2));
        }
    }

    #[test]
    fn every_row_and_entry_is_in_one_item() {
        check(&[], TINY);
        check(&[0], TINY);
        check(&[0; 100], TINY);
        check(&[10], TINY);
        check(&[11], TINY);
        check(&[1000], TINY);
        check(&[0, 0, 1000, 0], TINY);
        check(&[3, 1000, 11, 10, 12, 0, 7, 8, 9, 40], TINY);
        check(&[1; 50], TINY);
        check(&[(1 << 16) + 1, 5, 1 << 16, 0, 200_000], Grain::SPMV);
        check(&[(1 << 14) + 1, 5, 1 << 14, 0, 70_000], Grain::spmm(8));
        // Skewed lengths from a seeded generator.
        let mut random = testkit::Random::new(1);
        for rows in [1, 2, 17, 300] {
            let lengths: Vec<usize> = (0..rows).map(|_| random.below(5) * random.below(9)).collect();
            check(&lengths, TINY);
        }
    }

    #[test]
    fn a_matrix_without_rows_has_no_items() {
        let schedule = Schedule::build(&allocator(), Ints::I32(&[]), Grain::SPMV).unwrap();
        assert_eq!((schedule.items.len(), schedule.slots(), schedule.units()), (0, 0, 0));
    }

    #[test]
    fn out_of_memory_is_an_error() {
        let limited = Allocator::new(Arc::new(HostMemory), Address::NULL, 10);
        assert!(Schedule::build(&limited, Ints::I64(&[0, 1]), Grain::SPMV).is_err());
        assert_eq!(limited.live_bytes(), 0);
    }
}

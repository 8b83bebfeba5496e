//! DASP (Lu, Liu 2023, "DASP: Specific Dense Matrix Multiply-Accumulate Units
//! Accelerated General Sparse Matrix-Vector Multiplication", section 3.2): rows in three classes by length,
//! their entries in blocks of 8 × 4 (MMA_M × MMA_K) that one instruction multiplies and sums by rows.
//!
//! - **Long** rows ([`MAX_LEN`] < length) are cut into *groups* of 2 · 8 · 4 entries, the last one padded. Up
//!   to [`TASK_GROUPS`] groups of a row are a [`Task`], the work of one thread block; a row of several tasks
//!   is a [`Split`] row.
//! - **Medium** rows ([`SHORT`] < length) are sorted by descending length (equal lengths keep their order)
//!   and cut into *row-blocks* of 8 rows. Entries 4b to 4b + 3 of the 8 rows are block b of the *regular
//!   part* if at least [`THRESHOLD`] of its 32 slots are taken. (The paper's text says "exceeds"; its
//!   published code and its fill rates include the equal case.) The remaining entries of each row follow in
//!   the *irregular part*, without padding. A longer row never takes fewer slots of a block, so the regular
//!   part is a prefix.
//! - **Short** rows are pieced together to rows of 4 slots: one row of 1 entry and one of 3 (slot 0, slots 1
//!   to 3), or two rows of 2 entries (slots 0 and 1, 2 and 3). As many rows of 1 and 3 are paired as fill
//!   whole blocks; left-over rows of 3 are padded to 4, left-over rows of 1 form a part of their own, and
//!   rows of 4 are stored as they are. Rows without entries are only listed.
//!
//! Slots of `values` and `columns`, part after part ([`DaspPart`]). Padding has value 0 and column
//! [`NO_COLUMN`], by which kernels recognize it: it must never multiply an element of x, which may be Inf or
//! NaN.
//! - long: groups of [`GROUP`] slots in the order of the row
//! - pieced 1 & 3, pieced 2 & 2, rows of 4, regular: blocks of 8 rows and 4 slots per row. Two neighbouring
//!   blocks (in the regular part, of the row-blocks of one warp, see [`loops`]) are stored interleaved, so
//!   that one load gives a lane an element of each: slot k of row r is at 2 (4r + k) for the first block, and
//!   one behind that for the second. In a block without a partner it is at 4r + k.
//! - single: rows of 1
//! - irregular: row after row of the sorted medium rows
//!
//! The short parts are padded to multiples of [`UNIT`] slots, which is one warp's work.
//!
//! Other arrays:
//! - `order`: i32, the row of op(A) that each result belongs to, [`NO_ROW`] for padding, in the order in
//!   which warps produce results: pieced 1 & 3 (for each block 8 rows of 1 and 8 rows of 3), pieced 2 & 2
//!   (for each block the 8 rows of its slots 0 and 1, then those of 2 and 3), rows of 4, single, medium (8
//!   per row-block), rows without entries. All parts but the last are padded to multiples of [`RUN`].
//! - `runs` (on a device): for each [`RUN`] entries of `order`, the first row if the rows are consecutive in
//!   the matrix, so that `order` need not be read, else [`NO_ROW`]
//! - `tasks`, `splits`: of the long rows, in ascending order
//! - `regular`: row-blocks + 1 × i64, the first block of each row-block, counted from the part's start (the
//!   paper's rowblockPtr)
//! - `irregular`: row-blocks + 1 × i64, the first irregular entry of each row-block, counted from the part's
//!   start, and `ends`: 8 × u16 per row-block, where each row's irregular entries end, counted from the
//!   row-block's first (the paper's irregPtr)
//! - `positions` (only where values will be updated): i64 per slot, the index in the user's value array that
//!   it comes from, −1 for padding
//!
//! Rows keep the order of their entries. `DaspLayout::for_each_entry` reads all entries back from the arrays.

use std::ops::Range;

use bytemuck::{Pod, Zeroable};

use crate::memory::Buffer;
use crate::types::Element;

mod build;
#[cfg(test)]
pub(crate) mod tests;

/// MMA_M: number of rows of a block.
pub const ROWS: usize = 8;
/// MMA_K: slots of one row in a block.
pub const PLACES: usize = 4;
/// Number of slots of a block.
pub const BLOCK: usize = ROWS * PLACES;
/// Slots of two blocks that are stored together; also the entries of a group of a long row.
pub const GROUP: usize = 2 * BLOCK;
/// Number of entries of the longest medium row.
pub const MAX_LEN: usize = 256;
/// Number of entries of the longest short row.
pub const SHORT: usize = 4;
/// Least number of entries in a regular block: 0.75 of its slots.
pub const THRESHOLD: usize = BLOCK * 3 / 4;
/// Slots of a short part that one warp takes: two pairs of blocks, so that all of its loads are in flight at
/// once.
pub const UNIT: usize = 2 * GROUP;
/// Largest number of groups of a task: 4 for each of 4 warps. The paper's thread block takes one for each
/// warp and leaves the sum of every row to a second kernel; here rows of up to 1024 entries need no memory
/// for partial sums.
pub const TASK_GROUPS: usize = 16;
/// Entries of `order` that one element of `runs` replaces where their rows are consecutive: the results of
/// one warp. Reading each row number costs about a ninth of a row of four entries in fp64.
pub const RUN: usize = 32;
/// Padding value of `order`.
pub const NO_ROW: i32 = -1;
/// Padding value of `columns`.
pub const NO_COLUMN: i32 = -1;
/// Number of sort keys of rows: 0 for long rows, then by descending length down to length 0.
pub const KEYS: usize = MAX_LEN + 2;

/// Returns the sort key of a row of `length` entries.
pub fn key(length: usize) -> usize {
    MAX_LEN + 1 - length.min(MAX_LEN + 1)
}

/// Returns the number of medium rows of more than `length` entries, given the number of rows of each [`key`].
pub fn medium_rows_over(histogram: &[u64], length: usize) -> usize {
    histogram[1..key(length.clamp(SHORT, MAX_LEN))].iter().sum::<u64>() as usize
}

/// Returns the number of row-blocks that a warp works through (the paper's LOOP_NUM and its limits).
pub fn loops(medium_rows: usize) -> usize {
    match medium_rows {
        0..59_990 => 1,
        59_990..400_000 => 2,
        _ => 4,
    }
}

/// Returns the index of slot `k` of row `r` of block `b` in a sequence of `blocks` blocks, of which
/// neighbours are stored together.
#[inline(always)]
pub fn slot(blocks: usize, b: usize, r: usize, k: usize) -> usize {
    if b | 1 < blocks {
        b / 2 * GROUP + 2 * (PLACES * r + k) + b % 2
    } else {
        b * BLOCK + PLACES * r + k
    }
}

/// Consecutive groups of a long row, the work of one thread block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Task {
    /// First group of the task.
    pub first: i64,
    /// Number of groups of the task.
    pub groups: i32,
    /// The row; for a split row, −1 − its index in `splits`.
    pub row: i32,
}

/// Long row of several tasks, whose partial sums are added in a fixed order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Split {
    /// First task of the row.
    pub first: i64,
    /// Number of tasks of the split rows before this one.
    pub before: i64,
    /// Number of tasks of the row.
    pub tasks: i32,
    /// The row of op(A).
    pub row: i32,
}

/// Parts of the slots, in the order in which they are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DaspPart {
    /// Groups of long rows.
    Long,
    /// Rows of 1 and 3 pieced together.
    OneThree,
    /// Rows of 2 pieced together.
    TwoTwo,
    /// Rows of 4, and of 3 padded.
    Four,
    /// Blocks of medium rows.
    Regular,
    /// Rows of 1.
    Single,
    /// Irregular entries of medium rows.
    Irregular,
}

/// Parts of `order`, in the order in which they are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Results {
    /// Rows of 1 and 3 pieced together.
    OneThree,
    /// Rows of 2 pieced together.
    TwoTwo,
    /// Rows of 4, and of 3 padded.
    Four,
    /// Rows of 1.
    Single,
    /// Medium rows.
    Medium,
    /// Rows without entries.
    Empty,
}

/// Number of rows in each length class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Classes {
    /// Number of long rows.
    pub long: usize,
    /// Number of medium rows.
    pub medium: usize,
    /// Numbers of rows of 4, 3, 2, 1 and no entries.
    pub short: [usize; SHORT + 1],
}

impl Classes {
    /// Counts the classes, given the number of rows of each [`key`].
    pub fn new(histogram: &[u64]) -> Self {
        let count = |keys: Range<usize>| histogram[keys].iter().sum::<u64>() as usize;
        let first = key(SHORT);
        let mut short = [0; SHORT + 1];
        for (rows, &found) in short.iter_mut().zip(&histogram[first..]) {
            *rows = found as usize;
        }
        Classes { long: count(0..1), medium: count(1..first), short }
    }

    /// Returns the index, among the sorted rows, of the first row of `length` ≤ 4 entries.
    pub fn first_short(&self, length: usize) -> usize {
        self.long + self.medium + self.short[..SHORT - length].iter().sum::<usize>()
    }

    /// Returns the number of rows of `length` ≤ 4 entries.
    pub fn of_length(&self, length: usize) -> usize {
        self.short[SHORT - length]
    }

    /// Returns the number of pairs of a row of 1 and a row of 3: as many as fill whole blocks. They are the
    /// first rows of 1 and the last rows of 3.
    pub fn pairs(&self) -> usize {
        self.of_length(1).min(self.of_length(3)) / ROWS * ROWS
    }

    /// Returns the number of row-blocks of the medium rows.
    pub fn row_blocks(&self) -> usize {
        self.medium.div_ceil(ROWS)
    }
}

/// Sizes of the layout: where each part of the slots and of `order` starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DaspShape {
    /// Number of rows in each class.
    pub classes: Classes,
    /// Start of each [`DaspPart`], and the end.
    slots: [usize; 8],
    /// Start of each of [`Results`], and the end.
    results: [usize; 7],
}

/// Returns the starts of consecutive parts of the given sizes, and the end.
fn starts<const N: usize>(sizes: &[usize]) -> [usize; N] {
    let mut out = [0; N];
    for (at, size) in sizes.iter().enumerate() {
        out[at + 1] = out[at] + size;
    }
    out
}

impl DaspShape {
    /// Computes the sizes from the row classes, the groups of long rows, the blocks of the regular part and
    /// the entries of the irregular part.
    pub fn new(rows: Classes, groups: usize, blocks: usize, irregular: usize) -> Self {
        let pieced = |rows: usize| (rows * PLACES).next_multiple_of(UNIT);
        let slots = [
            groups * GROUP,
            pieced(rows.pairs()),
            pieced(rows.of_length(2).div_ceil(2)),
            pieced(rows.of_length(4) + rows.of_length(3) - rows.pairs()),
            blocks * BLOCK,
            (rows.of_length(1) - rows.pairs()).next_multiple_of(UNIT),
            irregular,
        ];
        let size = |part: DaspPart| slots[part as usize];
        let results = [
            size(DaspPart::OneThree) / 2,
            size(DaspPart::TwoTwo) / 2,
            size(DaspPart::Four) / PLACES,
            size(DaspPart::Single),
            (rows.row_blocks() * ROWS).next_multiple_of(RUN),
            rows.of_length(0),
        ];
        DaspShape { classes: rows, slots: starts(&slots), results: starts(&results) }
    }

    /// Returns the slots of a part.
    #[inline(always)]
    pub fn slots(&self, part: DaspPart) -> Range<usize> {
        self.slots[part as usize]..self.slots[part as usize + 1]
    }

    /// Returns the number of slots of all parts.
    pub fn slot_count(&self) -> usize {
        self.slots(DaspPart::Irregular).end
    }

    /// Returns the range of `order` that a part of the results takes.
    #[inline(always)]
    pub fn results(&self, results: Results) -> Range<usize> {
        self.results[results as usize]..self.results[results as usize + 1]
    }

    /// Returns the length of `order`.
    pub fn result_count(&self) -> usize {
        self.results(Results::Empty).end
    }

    /// Returns, for each of [`Results`], where its rows are among the sorted rows: the first and their
    /// number. For pieced 1 & 3 these are the rows of 1; [`DaspShape::threes`] has those of 3.
    pub fn sources(&self) -> [(usize, usize); 6] {
        let rows = &self.classes;
        let pairs = rows.pairs();
        [
            (rows.first_short(1), pairs),
            (rows.first_short(2), rows.of_length(2)),
            (rows.first_short(4), rows.of_length(4) + rows.of_length(3) - pairs),
            (rows.first_short(1) + pairs, rows.of_length(1) - pairs),
            (rows.long, rows.medium),
            (rows.first_short(0), rows.of_length(0)),
        ]
    }

    /// Returns where, among the sorted rows, the rows of 3 begin that are pieced together with rows of 1.
    pub fn threes(&self) -> usize {
        self.classes.first_short(3) + self.classes.of_length(3) - self.classes.pairs()
    }

    /// Returns the number of slots divided by the number of entries.
    pub fn fill_ratio(&self, entries: usize) -> f64 {
        super::fill_ratio(self.slot_count(), entries)
    }

    /// Describes the rows and slots of each class, for getInfo.
    pub fn describe(&self) -> String {
        let rows = &self.classes;
        let short: usize = rows.short[..SHORT].iter().sum();
        let slots = |parts: &[DaspPart]| parts.iter().map(|&part| self.slots(part).len()).sum::<usize>();
        format!(
            "rows: {} long, {} medium, {short} short, {} empty; slots: {} long, {} + {} medium (regular + \
             irregular), {} short",
            rows.long,
            rows.medium,
            rows.of_length(0),
            slots(&[DaspPart::Long]),
            slots(&[DaspPart::Regular]),
            slots(&[DaspPart::Irregular]),
            slots(&[DaspPart::OneThree, DaspPart::TwoTwo, DaspPart::Four, DaspPart::Single]),
        )
    }
}

/// DASP layout in host memory.
#[derive(Debug)]
pub struct DaspLayout<V: Element> {
    /// Number of rows of op(A).
    pub row_count: usize,
    /// Sizes and starts of all parts.
    pub shape: DaspShape,
    /// Value of each slot.
    pub values: Buffer<V>,
    /// Column of each slot.
    pub columns: Buffer<i32>,
    /// Row of op(A) for each result.
    pub order: Buffer<i32>,
    /// Tasks of long rows.
    pub tasks: Buffer<Task>,
    /// Long rows of several tasks.
    pub splits: Buffer<Split>,
    /// First block of each row-block.
    pub regular: Buffer<i64>,
    /// First irregular entry of each row-block.
    pub irregular: Buffer<i64>,
    /// Ends of the irregular entries of each row.
    pub ends: Buffer<u16>,
    /// Index in the user's array that each value comes from, if it was kept.
    positions: Option<Buffer<i64>>,
    entries: usize,
}

impl<V: Element> DaspLayout<V> {
    /// Copies in new values, given in the order of the user's array. Returns false, and changes nothing, if
    /// the positions were not kept.
    pub fn refill(&mut self, values: &[V], conjugate: bool) -> bool {
        super::refill(&mut self.values, self.positions.as_deref(), values, conjugate)
    }

    /// Returns the number of slots for values divided by the number of stored entries.
    pub fn fill_ratio(&self) -> f64 {
        self.shape.fill_ratio(self.entries)
    }

    /// Returns the row of result `at` of a part; `None` for padding.
    #[inline(always)]
    pub fn row(&self, results: Results, at: usize) -> Option<usize> {
        usize::try_from(self.order[self.shape.results(results).start + at]).ok()
    }

    /// Returns the number of tasks of all split rows.
    pub fn split_tasks(&self) -> usize {
        self.splits.last().map_or(0, |last| last.before as usize + last.tasks as usize)
    }

    /// Returns the slots of a task.
    pub fn task_slots(&self, task: &Task) -> Range<usize> {
        let first = task.first as usize * GROUP;
        first..first + task.groups as usize * GROUP
    }

    /// Returns the slots of medium row `r` of a row-block, in the order of the row.
    #[inline(always)]
    pub fn medium_slots(&self, row_block: usize, r: usize) -> impl Iterator<Item = usize> {
        // Blocks are paired across all row-blocks of a warp.
        let loops = loops(self.shape.classes.medium);
        let warp = row_block / loops * loops;
        let warp_end = self.shape.classes.row_blocks().min(warp + loops);
        let block = |row_block: usize| self.regular[row_block] as usize;
        let (origin, of_warp) = (block(warp), block(warp_end) - block(warp));
        let (before, blocks) = (block(row_block) - origin, block(row_block + 1) - block(row_block));
        let base = self.shape.slots(DaspPart::Regular).start + origin * BLOCK;
        let start = self.shape.slots(DaspPart::Irregular).start + self.irregular[row_block] as usize;
        let end = |r: usize| usize::from(self.ends[row_block * ROWS + r]);
        let rest = start + if r == 0 { 0 } else { end(r - 1) }..start + end(r);
        let places = 0..blocks * PLACES;
        places.map(move |e| base + slot(of_warp, before + e / PLACES, r, e % PLACES)).chain(rest)
    }

    /// Returns the slots `places` of row `row` of a short part; rows are counted over all blocks of the part.
    #[inline(always)]
    pub fn short_slots(
        &self,
        part: DaspPart,
        row: usize,
        places: Range<usize>,
    ) -> impl Iterator<Item = usize> {
        let slots = self.shape.slots(part);
        places.map(move |k| slots.start + slot(slots.len() / BLOCK, row / ROWS, row % ROWS, k))
    }

    /// Calls `f(row, first entry, slots)` for each run of slots of each row that has entries, padding
    /// included: the slots hold the row's entries from `first entry` on. The runs of one row come in its
    /// order.
    fn for_each_run(&self, mut f: impl FnMut(usize, usize, &mut dyn Iterator<Item = usize>)) {
        let shape = &self.shape;
        for (number, task) in self.tasks.iter().enumerate() {
            let (row, first) = match usize::try_from(task.row) {
                Ok(row) => (row, number),
                Err(_) => {
                    let split = &self.splits[(-1 - task.row) as usize];
                    (split.row as usize, split.first as usize)
                }
            };
            let before = (task.first - self.tasks[first].first) as usize * GROUP;
            f(row, before, &mut self.task_slots(task));
        }
        for at in 0..shape.results(Results::Medium).len() {
            if let Some(row) = self.row(Results::Medium, at) {
                f(row, 0, &mut self.medium_slots(at / ROWS, at % ROWS));
            }
        }
        for (results, part, cut) in PIECES {
            for at in 0..shape.results(results).len() {
                if let Some(row) = self.row(results, at) {
                    let (line, places) = place(cut, at);
                    f(row, 0, &mut self.short_slots(part, line, places));
                }
            }
        }
        for (at, slot) in shape.slots(DaspPart::Single).enumerate() {
            if let Some(row) = self.row(Results::Single, at) {
                f(row, 0, &mut std::iter::once(slot));
            }
        }
    }

    /// Inverse of [`DaspLayout::build`]: calls `f(row, column, value)` for every stored entry, those of one
    /// row in the order of the pattern.
    #[cfg(test)]
    pub fn for_each_entry(&self, mut f: impl FnMut(usize, usize, V)) {
        self.for_each_run(|row, _, slots| {
            for slot in slots {
                if let Ok(column) = usize::try_from(self.columns[slot]) {
                    f(row, column, self.values[slot]);
                }
            }
        });
    }
}

/// Division of the rows of 4 slots of a short part: `None` for one matrix row each, or the slot at which the
/// second matrix row begins.
pub type Cut = Option<usize>;

/// Short parts, their results and how their rows are pieced together.
pub const PIECES: [(Results, DaspPart, Cut); 3] = [
    (Results::OneThree, DaspPart::OneThree, Some(1)),
    (Results::TwoTwo, DaspPart::TwoTwo, Some(2)),
    (Results::Four, DaspPart::Four, None),
];

/// Returns the block row of result `at` of a short part, and its slots there.
#[inline(always)]
pub fn place(cut: Cut, at: usize) -> (usize, Range<usize>) {
    match cut {
        None => (at, 0..PLACES),
        Some(cut) => {
            let (block, at) = (at / (2 * ROWS), at % (2 * ROWS));
            (block * ROWS + at % ROWS, if at < ROWS { 0..cut } else { cut..PLACES })
        }
    }
}

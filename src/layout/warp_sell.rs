//! SELL for warps: sliced ELLPACK with windows of sorted rows, SELL-C-σ
//! (Kreutzer, Hager, Wellein, Fehske, Bishop 2014; [`super::sell`] is its form
//! for CPUs), where a slice is what the 32 lanes of a warp hold, and a row takes
//! as many lanes as its length deserves.
//!
//! Rows of op(A) are sorted by descending length inside windows of σ rows (equal
//! lengths keep their order). In that order, a slice takes 32 / T rows, T lanes
//! each: T is the least power of two up to 32 that leaves a lane of the slice's
//! first, longest row at most [`Rules::entries`] entries. A row of more than
//! [`Rules::limit`] entries is in no slice of rows: it is cut into parts of that
//! many, each a slice by itself, whose sums are added in their order.
//!
//! A step of a slice has a group of V entries of each lane. Entry k of a row is in
//! step k / VT, in the row's lane (k / V) mod T, at k mod V of the group: entries
//! keep the order of the row, and lanes side by side read what lies side by
//! side. Lengths say which slots hold an entry; the others are padding, never
//! multiplied: 0 · Inf would be NaN.
//!
//! Arrays:
//! - `order`: u32 a row; place p of a window holds the row's number in its window
//!   (16 bits) and its length, at most 2^16 − 1, in the 16 bits above
//! - `heads`: a [`SliceHead`] a slice, window by window: first the parts of the
//!   window's long rows, then slices of 32, 16, … 1 lanes a row
//! - `parts`: a [`PartHead`] a part
//! - `values`: 32 V a step, slices one after the other; padding is 0. Where
//!   [`super::narrowing`] finds a narrower form, in that one: none if all are 1
//! - `narrow`: u16, as many as values: columns relative to the slice's smallest, at
//!   the places of their values; in slices that are runs (lane l of each step has
//!   the column of lane 0 plus l) only lane 0's, all steps' side by side
//! - `wide`: u32, 32 V a step of the slices whose columns span more than 2^16:
//!   columns themselves
//! - `positions` (only where values will be updated): where in the user's value
//!   array each value comes from, all ones for padding
//!
//! The inverse is [`WarpSell::for_each_entry`]. Analysis makes the arrays on the
//! device (src/backend/cuda/spmv/sell.rs), bit for bit as [`WarpSell::build`].

use bytemuck::{Pod, Zeroable};

use crate::matrix::compressed::Pattern;
use crate::types::{Element, Index};

/// Lanes of a slice.
pub const LANES: usize = 32;
/// A row takes at most 2^5 lanes.
const MOST_LANES_LOG2: u32 = 5;
/// `order` has lengths up to this.
const MOST_LENGTH: usize = 0xffff;

/// A slice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C, align(16))]
pub struct SliceHead {
    /// First step, in `values` and `narrow`.
    pub first: u32,
    /// What narrow columns count from; wide: the first step in `wide`.
    pub base: u32,
    /// First place in `order`; even: first row; part: number in `parts`.
    pub place: u32,
    /// Steps.
    pub steps: u16,
    /// log2 of the lanes a row; even, part: slots of the last step that a lane,
    /// or the part, lacks.
    pub detail: u8,
    /// [`WIDE`] and so on.
    pub flags: u8,
}

/// Columns are in `wide`.
pub const WIDE: u8 = 1;
/// Lane l has the columns of lane 0 plus l.
pub const RUNS: u8 = 2;
/// The lanes are 32 rows of one length that follow each other.
pub const EVEN: u8 = 4;
/// A part of a long row.
pub const PART: u8 = 8;

/// A part of a long row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C, align(16))]
pub struct PartHead {
    /// The row.
    pub row: u32,
    /// The row's first part.
    pub first: u32,
    /// How many the row has.
    pub count: u32,
    /// Number of the row among the long ones.
    pub counter: u32,
}

/// How rows become slices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// log2 of σ, at most 16.
    pub window_log2: u32,
    /// Entries that a lane has before a row takes more lanes.
    pub entries: usize,
    /// log2 of V, the entries of a lane in a step.
    pub group_log2: u32,
    /// log2 of the entries of the longest row that is no sum of parts, and of a
    /// part; less than 16.
    pub limit_log2: u32,
}

impl Rules {
    /// For a matrix of these sizes, with values kept in `value_bytes`, on a device that
    /// runs `lanes` lanes at one time; `most_long` bounds the number of long rows.
    pub fn new(rows: usize, nnz: usize, value_bytes: usize, lanes: usize, most_long: usize) -> Self {
        // A lane then has at least half as many, so that all slices of a matrix that is
        // small enough run at one time: conf5 takes 11.5 µs where they do, 12.7 where
        // they are twice as many. Large matrices run in many waves anyway, and are
        // best at 64: si41 takes 54 µs, at 128 59 and at 16 60.
        let least = 2 * nnz.div_ceil(lanes.max(1));
        let entries = if least <= 96 { least.max(8) } else { 64 };
        // Fewer loads, but short rows would be mostly padding. Measured: in fp16 four
        // is better from 8 entries a row on (poisson160 has 7), in fp32 from 24
        // (cop20k, 18 entries: 19.7 µs with four, 18.5 with two).
        let least = match value_bytes {
            ..=2 => 8,
            4 => 24,
            _ => usize::MAX,
        };
        let group_log2 = if nnz / rows.max(1) >= least { 2 } else { 1 };
        // A part is 16 to 32 entries of each lane: longer ones are what a launch
        // waits for at its end (dc2: 17 µs instead of 12), shorter ones cost
        // hand-overs. Beyond 2^29 entries there may be more long rows than
        // `most_long`; analysis counts them.
        let least = (nnz / most_long.max(1)).next_power_of_two().ilog2();
        let limit_log2 = if entries <= 16 { 9 } else { 10 }.max(least).min(15);
        Rules { window_log2: WINDOW_LOG2, entries, group_log2, limit_log2 }
    }

    /// Slots of a step.
    pub fn step(&self) -> usize {
        LANES << self.group_log2
    }

    /// Entries of the longest row that is no sum of parts, and of a part.
    pub fn limit(&self) -> usize {
        1 << self.limit_log2
    }

    /// V.
    fn group(&self) -> usize {
        1 << self.group_log2
    }

    /// log2 of the lanes for a row of this length.
    fn lanes_log2(&self, length: usize) -> u32 {
        (0..MOST_LANES_LOG2).find(|&lanes| length <= self.entries << lanes).unwrap_or(MOST_LANES_LOG2)
    }
}

/// log2 of σ: enough rows for slices of equal lengths, few enough that what they
/// read of x and write of y stays in a cache.
const WINDOW_LOG2: u32 = 10;

/// The layout in host memory: what analysis makes on a device, for tests, and
/// the way back.
#[derive(Clone, Debug, PartialEq)]
pub struct WarpSell<V> {
    /// Rows of op(A).
    pub row_count: usize,
    /// How it was made.
    pub rules: Rules,
    /// Rows in sorted order.
    pub order: Vec<u32>,
    /// Slices.
    pub heads: Vec<SliceHead>,
    /// Parts of long rows.
    pub parts: Vec<PartHead>,
    /// Values.
    pub values: Vec<V>,
    /// 16-bit columns.
    pub narrow: Vec<u16>,
    /// 32-bit columns.
    pub wide: Vec<u32>,
}

/// The row of a lane: its entries from `before` on are the lane's share of them.
#[derive(Clone, Copy, Debug)]
struct Lane {
    row: usize,
    before: usize,
    length: usize,
    rank: usize,
    lanes: usize,
    group: usize,
}

impl Lane {
    /// The entry of the row in a slot of the lane, if there is one.
    fn entry(&self, step: usize, slot: usize) -> Option<usize> {
        let entry = (step * self.lanes + self.rank) * self.group + slot;
        (entry < self.length).then_some(self.before + entry)
    }
}

impl<V: Element> WarpSell<V> {
    /// Arranges a valid pattern of less than 2^31 rows, with `values` in its
    /// order.
    pub fn build<I: Index, J: Index>(pattern: &Pattern<'_, I, J>, values: &[V], rules: Rules) -> Self {
        let rows = if pattern.offsets.is_empty() { 0 } else { pattern.major };
        let mut out = WarpSell {
            row_count: rows,
            rules,
            order: Vec::new(),
            heads: Vec::new(),
            parts: Vec::new(),
            values: Vec::new(),
            narrow: Vec::new(),
            wide: Vec::new(),
        };
        let mut long_rows = 0;
        for first in (0..rows).step_by(1 << rules.window_log2) {
            let end = rows.min(first + (1 << rules.window_log2));
            let mut sorted: Vec<usize> = (first..end).collect();
            sorted.sort_by_key(|&row| std::cmp::Reverse(pattern.range(row).len()));
            let lengths: Vec<usize> = sorted.iter().map(|&row| pattern.range(row).len()).collect();
            let pairs = sorted.iter().zip(&lengths);
            out.order.extend(
                pairs.map(|(row, &length)| (row - first) as u32 | (length.min(MOST_LENGTH) as u32) << 16),
            );
            let long = lengths.iter().take_while(|&&length| length > rules.limit()).count();
            for (row, &length) in sorted.iter().zip(&lengths[..long]) {
                out.add_parts(*row, length, long_rows);
                long_rows += 1;
            }
            let mut at = long;
            while at < lengths.len() {
                let lanes_log2 = rules.lanes_log2(lengths[at]);
                out.add_slice(first + at, lanes_log2, &sorted[at..], &lengths[at..]);
                at += LANES >> lanes_log2;
            }
        }
        for number in 0..out.heads.len() {
            out.fill(pattern, values, number);
        }
        out
    }

    fn add_parts(&mut self, row: usize, length: usize, counter: u32) {
        let (first, count) = (self.parts.len() as u32, length.div_ceil(self.rules.limit()) as u32);
        for part in 0..count {
            let entries = (length - part as usize * self.rules.limit()).min(self.rules.limit());
            let steps = entries.div_ceil(self.rules.step());
            self.heads.push(SliceHead {
                place: first + part,
                steps: steps as u16,
                detail: (steps * self.rules.step() - entries) as u8,
                flags: PART,
                ..SliceHead::default()
            });
            self.parts.push(PartHead { row: row as u32, first, count, counter });
        }
    }

    /// A slice of the first of these rows and lengths, at this place.
    fn add_slice(&mut self, place: usize, lanes_log2: u32, rows: &[usize], lengths: &[usize]) {
        let steps = lengths[0].div_ceil(self.rules.group() << lanes_log2);
        let mut head = SliceHead {
            place: place as u32,
            steps: steps as u16,
            detail: lanes_log2 as u8,
            ..SliceHead::default()
        };
        let is_even = lanes_log2 == 0
            && rows.len() >= LANES
            && lengths[LANES - 1] == lengths[0]
            && rows[LANES - 1] == rows[0] + LANES - 1;
        if is_even {
            head.place = rows[0] as u32;
            head.detail = (steps * self.rules.group() - lengths[0]) as u8;
            head.flags = EVEN;
        }
        self.heads.push(head);
    }

    /// What a lane of a slice holds, if it has a row.
    fn lane(&self, head: &SliceHead, lane: usize) -> Option<Lane> {
        let group = self.rules.group();
        let (place, steps, detail) = (head.place as usize, usize::from(head.steps), usize::from(head.detail));
        if head.flags & EVEN != 0 {
            let (row, length) = (place + lane, steps * self.rules.group() - detail);
            return Some(Lane { row, before: 0, length, rank: 0, lanes: 1, group });
        }
        if head.flags & PART != 0 {
            let part = self.parts[place];
            let before = (head.place - part.first) as usize * self.rules.limit();
            let length = steps * self.rules.step() - detail;
            return Some(Lane { row: part.row as usize, before, length, rank: lane, lanes: LANES, group });
        }
        let window = place >> self.rules.window_log2 << self.rules.window_log2;
        let place = place + (lane >> detail);
        if place >= self.row_count.min(window + (1 << self.rules.window_log2)) {
            return None;
        }
        let found = self.order[place] as usize;
        let lanes = 1 << detail;
        let (row, length) = (window + (found & 0xffff), found >> 16);
        Some(Lane { row, before: 0, length, rank: lane & (lanes - 1), lanes, group })
    }

    /// Calls f(step, slot of the step, position in the pattern or None) for each
    /// slot of a slice.
    fn for_each_slot<I: Index, J: Index>(
        &self,
        pattern: &Pattern<'_, I, J>,
        head: &SliceHead,
        mut f: impl FnMut(usize, usize, Option<usize>),
    ) {
        let lanes: Vec<_> = (0..LANES).map(|lane| self.lane(head, lane)).collect();
        for step in 0..usize::from(head.steps) {
            for (number, lane) in lanes.iter().enumerate() {
                for slot in 0..self.rules.group() {
                    let entry = lane
                        .and_then(|lane| lane.entry(step, slot).map(|k| pattern.range(lane.row).start + k));
                    f(step, number * self.rules.group() + slot, entry);
                }
            }
        }
    }

    /// Values and columns of a slice, and the rest of its head.
    fn fill<I: Index, J: Index>(&mut self, pattern: &Pattern<'_, I, J>, values: &[V], number: usize) {
        let mut head = self.heads[number];
        let (mut low, mut high, mut runs) = (usize::MAX, 0, head.flags & EVEN != 0);
        let (group, step_slots) = (self.rules.group(), self.rules.step());
        let mut of_lane_0 = [0; 4];
        self.for_each_slot(pattern, &head, |_, slot, entry| {
            let Some(entry) = entry else { return };
            let column = pattern.index(entry);
            (low, high) = (low.min(column), high.max(column));
            if slot < group {
                of_lane_0[slot] = column;
            }
            runs &= column == of_lane_0[slot % group] + slot / group;
        });
        let is_empty = low == usize::MAX;
        head.first = (self.values.len() / step_slots) as u32;
        head.base = if is_empty { 0 } else { low as u32 };
        if !is_empty && high - low > 0xffff {
            head.flags |= WIDE;
            head.base = (self.wide.len() / step_slots) as u32;
        } else if !is_empty && runs {
            head.flags |= RUNS;
        }
        let start = self.values.len();
        let slots = usize::from(head.steps) * step_slots;
        let mut filled = vec![V::zeroed(); slots];
        let mut narrow = vec![0_u16; slots];
        let mut wide = vec![0_u32; if head.flags & WIDE != 0 { slots } else { 0 }];
        self.for_each_slot(pattern, &head, |step, slot, entry| {
            let Some(entry) = entry else { return };
            let (at, column) = (step * step_slots + slot, pattern.index(entry));
            filled[at] = values[entry];
            if head.flags & WIDE != 0 {
                wide[at] = column as u32;
            } else if head.flags & RUNS == 0 {
                narrow[at] = (column - low) as u16;
            } else if slot < group {
                narrow[step * group + slot] = (column - low) as u16;
            }
        });
        debug_assert_eq!(start, head.first as usize * step_slots);
        self.values.append(&mut filled);
        self.narrow.append(&mut narrow);
        self.wide.append(&mut wide);
        self.heads[number] = head;
    }

    /// The way back: calls f(row, number of the entry in its row, column, value)
    /// with every stored entry.
    pub fn for_each_entry(&self, mut f: impl FnMut(usize, usize, usize, V)) {
        let (group, step_slots) = (self.rules.group(), self.rules.step());
        for head in &self.heads {
            let first = head.first as usize * step_slots;
            for number in 0..LANES {
                let Some(lane) = self.lane(head, number) else { continue };
                for at in 0..usize::from(head.steps) * group {
                    let (step, slot) = (at / group, at % group);
                    let Some(entry) = lane.entry(step, slot) else { continue };
                    let at = step * step_slots + number * group + slot;
                    let column = if head.flags & WIDE != 0 {
                        self.wide[head.base as usize * step_slots + at] as usize
                    } else if head.flags & RUNS != 0 {
                        head.base as usize + usize::from(self.narrow[first + step * group + slot]) + number
                    } else {
                        head.base as usize + usize::from(self.narrow[first + at])
                    };
                    f(lane.row, entry, column, self.values[first + at]);
                }
            }
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;

//! SELL for warps: sliced ELLPACK with windows of sorted rows, SELL-C-σ
//! (Kreutzer, Hager, Wellein, Fehske, Bishop 2014; [`super::sell`] is its form
//! for CPUs), where a slice is what the 32 lanes of a warp hold, and a row takes
//! as many lanes as its length deserves.
//!
//! An item is a row of op(A), or K rows that follow each other and have the same
//! columns, as those of a node's unknowns do: the columns are stored once, and x is
//! read once for K products. K is one number for the matrix ([`Rules::item_rows`]).
//! Windows of σ rows are cut into items from their first row on.
//!
//! The items of a window are sorted, those of K rows before single rows and both by
//! descending length (equal lengths keep their order). In that order, a slice takes
//! 32 / T items of one kind, T lanes each: T is the least power of two up to 32 that
//! leaves a lane of the slice's first, longest item at most [`Rules::entries`]
//! entries, or more where fewer items are left than that. A row of more than
//! [`Rules::limit`] entries is in no slice of items: it is cut into parts of that
//! many, each a slice by itself, whose sums are added in their order.
//!
//! A step of a slice has a group of V columns of each lane; where V is 2 and values are
//! wide, a half step of one column may come before the others. Column k of an item, counted from behind
//! the half's T, is in step k / VT, in the item's lane (k / V) mod T, at k mod V of the
//! group: entries keep the order of the row, and lanes side by side read what lies side
//! by side. Lengths say which slots hold an entry; the others are padding, never
//! multiplied: 0 · Inf would be NaN.
//!
//! Arrays:
//! - `order`: u32 a row; place p of a window holds the number in the window of the
//!   first row of its item p (16 bits) and the item's length, at most 2^16 − 1, in
//!   the 16 bits above; 0 behind the last item
//! - `heads`: a [`SliceHead`] a slice, window by window: first the parts of the
//!   window's long rows, then the slices of items of K rows, then those of single
//!   rows, both of 32, 16, … 1 lanes an item
//! - `parts`: a [`PartHead`] a part
//! - `values`: slices one after the other; a step has 32 V values (a half 32) of
//!   its items' first rows, then those of the second rows, and so on; padding is 0. Where
//!   [`super::narrowing`] finds a narrower form, in that one: none if all are 1
//! - `narrow`: u16, columns relative to the slice's smallest, in one of three forms,
//!   each padded to a multiple of 32: at the places of the first rows' values; in
//!   slices that are [`RUNS`] only lane 0's, V of each step (a half has one, and 0);
//!   in slices that
//!   are [`ADJACENT`] each lane's first of each step
//! - `wide`: u32, columns themselves, at the places of the first rows' values, of the
//!   slices whose columns span more than 2^16
//! - `positions` (only where values will be updated): where in the user's value
//!   array each value comes from, all ones for padding
//!
//! The inverse is [`WarpSell::for_each_entry`]. Analysis makes the arrays on the
//! device (src/backend/cuda/spmv/sell.rs), bit for bit as [`WarpSell::build`].

use std::ops::Range;

use bytemuck::{Pod, Zeroable};

use crate::matrix::compressed::Pattern;
use crate::types::{Element, Index};

/// Lanes of a slice.
pub const LANES: usize = 32;
/// An item takes at most 2^5 lanes.
const MOST_LANES_LOG2: u32 = 5;
/// `order` has lengths up to this.
const MOST_LENGTH: usize = 0xffff;
/// K is at most this.
pub const MOST_ITEM_ROWS: usize = 3;

/// A slice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C, align(16))]
pub struct SliceHead {
    /// First value, in units of 32.
    pub first: u32,
    /// First column in `narrow` or `wide`, in units of 32.
    pub columns: u32,
    /// What narrow columns count from.
    pub base: u32,
    /// First place in `order`; part: number in `parts`.
    pub place: u32,
    /// The window's first row; even: the slice's first row.
    pub row: u32,
    /// Number of the window.
    pub window: u32,
    /// Full steps.
    pub steps: u16,
    /// Even, part: length of each item, of the part.
    pub length: u16,
    /// log2 of the lanes an item.
    pub lanes_log2: u8,
    /// Items.
    pub items: u8,
    /// [`WIDE`] and so on.
    pub flags: u16,
}

/// Columns are in `wide`.
pub const WIDE: u16 = 1;
/// Lane l has the columns of lane 0 plus l.
pub const RUNS: u16 = 2;
/// The items are 32 single rows of one length that follow each other.
pub const EVEN: u16 = 4;
/// A part of a long row.
pub const PART: u16 = 8;
/// A half step is before the full ones.
pub const HALF: u16 = 16;
/// The columns of each lane's group follow each other.
pub const ADJACENT: u16 = 32;
/// The items are of K rows.
pub const ROWS: u16 = 64;

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
    /// σ, at most 1,024.
    pub window: usize,
    /// K.
    pub item_rows: usize,
    /// Entries that a lane has before an item takes more lanes.
    pub entries: usize,
    /// log2 of V, the columns of a lane in a step: 1 or 2.
    pub group_log2: u32,
    /// log2 of the entries of the longest row that is no sum of parts, and of a
    /// part; 9 to 15.
    pub limit_log2: u32,
    /// Whether slices may have half steps; only where V is 2.
    pub halves: bool,
}

impl Rules {
    /// For a matrix of these sizes, with values kept in `value_bytes`, on a device that
    /// runs `lanes` lanes at one time; `most_long` bounds the number of long rows.
    /// `shared[k]`: entries of items of k + 2 rows, were K that.
    pub fn new(
        rows: usize,
        nnz: usize,
        value_bytes: usize,
        lanes: usize,
        most_long: usize,
        shared: [usize; MOST_ITEM_ROWS - 1],
    ) -> Self {
        // Where fewer entries than that share columns, single rows have V = 4 to gain from narrow values
        // (consph in fp16: K = 2 for two of three rows 16.9 µs, single rows 15.6, K = 3 11.5; in fp64
        // 28.0, 28.4, 24.9).
        let enough = (if value_bytes < 8 { 0.75 } else { 0.6 } * nnz as f64).max(1.0);
        let [twos, threes] = shared;
        let item_rows = match (twos as f64 >= enough, threes as f64 >= enough) {
            // What is not stored: half, or two thirds, of their columns.
            (_, true) if threes * 4 >= twos * 3 => 3,
            (true, _) => 2,
            _ => 1,
        };
        // A lane then has at least half as many, so that all slices of a matrix that is
        // small enough run at one time: conf5 takes 11.5 µs where they do, 12.7 where
        // they are twice as many. Large matrices run in many waves anyway, and are
        // best at 64: si41 takes 54 µs, at 128 59 and at 16 60. Items of several rows are best
        // with more (shipsec1, K = 3: fp64 27.1 µs with 96, 28.1 with 64; fp16 11.6 and 13.5).
        let least = 2 * nnz.div_ceil(lanes.max(1));
        let many = [64, 128, 96][item_rows - 1];
        let entries = if least <= 96 { least.max(8) } else { many };
        // Fewer loads, but short rows would be mostly padding. Measured: in fp16 four
        // is better from 8 entries a row on (poisson160 has 7), in fp32 from 24
        // (cop20k, 18 entries: 19.7 µs with four, 18.5 with two).
        let least = match value_bytes {
            _ if item_rows > 1 => usize::MAX,
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
        // Of narrow values a half saves too little (poisson160 in fp32: 79.5 µs without, 94.7 with).
        let halves = value_bytes >= 8 && group_log2 == 1;
        let window = WINDOW / item_rows * item_rows;
        Rules { window, item_rows, entries, group_log2, limit_log2, halves }
    }

    /// Entries of the longest row that is no sum of parts, and of a part.
    pub fn limit(&self) -> usize {
        1 << self.limit_log2
    }

    /// V.
    pub fn group(&self) -> usize {
        1 << self.group_log2
    }

    /// Slices of a matrix of these sizes, at the most: full ones of a lane an item, those that more
    /// lanes make more (an item of T lanes has over ET / 2K entries), a remainder for each kind and
    /// number of lanes in each window, and parts.
    pub fn most_slices(&self, rows: usize, nnz: usize) -> usize {
        let kinds = 2 * (MOST_LANES_LOG2 as usize + 1);
        let more = (2 * nnz / LANES / self.entries).saturating_add(self.most_parts(nnz));
        (rows / LANES + 2).saturating_add(rows.div_ceil(self.window) * kinds).saturating_add(more)
    }

    /// Parts of a matrix of so many entries, at the most: whole ones and one more a row.
    pub fn most_parts(&self, nnz: usize) -> usize {
        2 * (nnz >> self.limit_log2)
    }

    /// log2 of the lanes for an item of this many entries.
    pub fn lanes_log2(&self, entries: usize) -> u32 {
        (0..MOST_LANES_LOG2).find(|&lanes| entries <= self.entries << lanes).unwrap_or(MOST_LANES_LOG2)
    }

    /// Columns of the slots of each lane of such a slice.
    pub fn lane_slots(&self, length: usize, lanes_log2: u32) -> usize {
        let (steps, half) = self.steps(length, lanes_log2);
        steps * self.group() + usize::from(half)
    }

    /// Full steps of items of up to `length` columns with 2^`lanes_log2` lanes each, and whether a
    /// half is before them.
    fn steps(&self, length: usize, lanes_log2: u32) -> (usize, bool) {
        let full = self.group() << lanes_log2;
        let (steps, rest) = (length / full, length % full);
        match rest {
            0 => (steps, false),
            _ if self.halves && rest <= full / 2 => (steps, true),
            _ => (steps + 1, false),
        }
    }
}

/// σ: enough rows for slices of equal lengths, few enough that what they
/// read of x and write of y stays in a cache. 1,023 where K is 3, so that nodes that begin
/// with row 0 are not cut.
pub const WINDOW: usize = 1 << 10;

impl SliceHead {
    fn is(&self, flag: u16) -> bool {
        self.flags & flag != 0
    }

    /// Steps with a half.
    fn all_steps(&self) -> usize {
        usize::from(self.steps) + usize::from(self.is(HALF))
    }

    /// Columns of a lane in a step of these.
    fn width(&self, group: usize, step: usize) -> usize {
        if self.is(HALF) && step == 0 {
            1
        } else {
            group
        }
    }

    /// Columns of a lane before a step.
    fn before(&self, group: usize, step: usize) -> usize {
        match self.is(HALF) {
            true if step > 0 => 1 + (step - 1) * group,
            _ => step * group,
        }
    }

    /// Columns of the slots of a lane.
    fn lane_slots(&self, group: usize) -> usize {
        self.before(group, self.all_steps())
    }

    /// Numbers of 32 columns that are stored.
    fn column_units(&self, group: usize) -> usize {
        if self.is(RUNS) {
            (self.all_steps() * group).div_ceil(LANES)
        } else if self.is(ADJACENT) {
            self.all_steps()
        } else {
            self.lane_slots(group)
        }
    }

    /// Where a slot's column is, behind the slice's first.
    fn column_slot(&self, group: usize, slot: &Slot) -> usize {
        if self.is(RUNS) {
            slot.step * group + slot.v
        } else if self.is(ADJACENT) {
            slot.step * LANES + slot.lane
        } else {
            self.before(group, slot.step) * LANES + slot.lane * slot.width + slot.v
        }
    }
}

/// A column of a lane.
#[derive(Clone, Copy, Debug)]
struct Slot {
    /// A half is step 0.
    step: usize,
    /// Columns of the lane before and in the step.
    before: usize,
    width: usize,
    lane: usize,
    v: usize,
}

impl Slot {
    /// Where the value of row k of an item of `rows` is, behind the slice's first.
    fn value(&self, rows: usize, k: usize) -> usize {
        self.before * rows * LANES + (k * LANES + self.lane) * self.width + self.v
    }
}

/// The layout in host memory: what analysis makes on a device, for tests, and
/// the way back.
#[derive(Clone, Debug, PartialEq)]
pub struct WarpSell<V> {
    /// Rows of op(A).
    pub row_count: usize,
    /// How it was made.
    pub rules: Rules,
    /// Items in sorted order.
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

/// The item of a lane: its entries from `before` on are the lane's share of them.
#[derive(Clone, Copy, Debug)]
struct Lane {
    row: usize,
    rows: usize,
    before: usize,
    length: usize,
    rank: usize,
    lanes: usize,
}

impl Lane {
    /// The entry of the rows in a slot of the lane, if there is one.
    fn entry(&self, slot: &Slot) -> Option<usize> {
        let entry = slot.before * self.lanes + self.rank * slot.width + slot.v;
        (entry < self.length).then_some(self.before + entry)
    }
}

/// Rows of more entries are in items of their own, whatever the limit is.
pub const MOST_SHARED: usize = 1 << 15;

/// Whether rows are looked at for columns that they share: of under two entries a row
/// there are none to save.
pub fn may_share(rows: usize, nnz: usize) -> bool {
    nnz / rows.max(1) >= 2
}

/// Rows of a window that are one item.
#[derive(Clone, Copy, Debug)]
struct Item {
    row: usize,
    length: usize,
}

/// Whether row `row` + 1 has the columns of row `row`, of which there are 1 to `limit`.
fn same<I: Index, J: Index>(pattern: &Pattern<'_, I, J>, row: usize, limit: usize) -> bool {
    let (a, b) = (pattern.range(row), pattern.range(row + 1));
    (1..=limit).contains(&a.len())
        && a.len() == b.len()
        && a.zip(b).all(|(a, b)| pattern.index(a) == pattern.index(b))
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
        for first in (0..rows).step_by(rules.window) {
            let window = first..rows.min(first + rules.window);
            out.add_window(pattern, window, &mut long_rows);
        }
        for number in 0..out.heads.len() {
            out.fill(pattern, values, number);
        }
        out
    }

    fn add_window<I: Index, J: Index>(
        &mut self,
        pattern: &Pattern<'_, I, J>,
        window: Range<usize>,
        long_rows: &mut u32,
    ) {
        let rules = self.rules;
        let mut items: [Vec<Item>; 2] = [Vec::new(), Vec::new()];
        let mut row = window.start;
        while row < window.end {
            let end = row + rules.item_rows;
            let is_one = rules.item_rows > 1
                && end <= window.end
                && (row..end - 1).all(|row| same(pattern, row, rules.limit()));
            let length = pattern.range(row).len();
            items[usize::from(!is_one)].push(Item { row, length });
            row = if is_one { end } else { row + 1 };
        }
        for items in &mut items {
            items.sort_by_key(|item| std::cmp::Reverse(item.length.min(MOST_LENGTH)));
        }
        let [several, single] = &items;
        let words = several
            .iter()
            .chain(single)
            .map(|item| (item.row - window.start) as u32 | (item.length.min(MOST_LENGTH) as u32) << 16);
        self.order.extend(words);
        self.order.resize(window.end, 0);
        let long = single.iter().take_while(|item| item.length > rules.limit()).count();
        for item in &single[..long] {
            self.add_parts(item, window.start / rules.window, *long_rows);
            *long_rows += 1;
        }
        self.add_slices(&window, window.start, several, ROWS);
        self.add_slices(&window, window.start + several.len() + long, &single[long..], 0);
    }

    fn add_parts(&mut self, item: &Item, window: usize, counter: u32) {
        let limit = self.rules.limit();
        let (first, count) = (self.parts.len() as u32, item.length.div_ceil(limit) as u32);
        for part in 0..count {
            let length = (item.length - part as usize * limit).min(limit);
            let (steps, half) = self.rules.steps(length, MOST_LANES_LOG2);
            self.heads.push(SliceHead {
                place: first + part,
                window: window as u32,
                steps: steps as u16,
                length: length as u16,
                lanes_log2: MOST_LANES_LOG2 as u8,
                items: 1,
                flags: PART | if half { HALF } else { 0 },
                ..SliceHead::default()
            });
            self.parts.push(PartHead { row: item.row as u32, first, count, counter });
        }
    }

    /// Slices of these items, all of one kind, the first of which is at this place.
    fn add_slices(&mut self, window: &Range<usize>, place: usize, items: &[Item], kind: u16) {
        let rules = self.rules;
        let rows = if kind == ROWS { rules.item_rows } else { 1 };
        let mut at = 0;
        while at < items.len() {
            let (longest, left) = (items[at].length, items.len() - at);
            let mut lanes_log2 = rules.lanes_log2(longest * rows);
            // The last ones take all lanes, as long as each has something to do.
            while lanes_log2 < MOST_LANES_LOG2
                && left <= LANES >> (lanes_log2 + 1)
                && longest > rules.group() << lanes_log2
            {
                lanes_log2 += 1;
            }
            let count = left.min(LANES >> lanes_log2);
            let slice = &items[at..at + count];
            let (steps, half) = rules.steps(longest, lanes_log2);
            let is_even = kind == 0
                && lanes_log2 == 0
                && count == LANES
                && longest <= rules.limit()
                && slice[LANES - 1].length == longest
                && slice[LANES - 1].row == slice[0].row + LANES - 1;
            self.heads.push(SliceHead {
                place: (place + at) as u32,
                row: if is_even { slice[0].row } else { window.start } as u32,
                window: (window.start / rules.window) as u32,
                steps: steps as u16,
                length: if is_even { longest as u16 } else { 0 },
                lanes_log2: lanes_log2 as u8,
                items: count as u8,
                flags: kind | if is_even { EVEN } else { 0 } | if half { HALF } else { 0 },
                ..SliceHead::default()
            });
            at += count;
        }
    }

    fn item_rows(&self, head: &SliceHead) -> usize {
        if head.is(ROWS) {
            self.rules.item_rows
        } else {
            1
        }
    }

    /// What a lane of a slice holds, if it has an item.
    fn lane(&self, head: &SliceHead, lane: usize) -> Option<Lane> {
        let lanes = 1 << head.lanes_log2;
        let (item, rank, rows) = (lane / lanes, lane % lanes, self.item_rows(head));
        if item >= usize::from(head.items) {
            return None;
        }
        let length = usize::from(head.length);
        if head.is(EVEN) {
            let row = head.row as usize + item;
            return Some(Lane { row, rows, before: 0, length, rank, lanes });
        }
        if head.is(PART) {
            let part = self.parts[head.place as usize];
            let before = (head.place - part.first) as usize * self.rules.limit();
            return Some(Lane { row: part.row as usize, rows, before, length, rank, lanes });
        }
        let found = self.order[head.place as usize + item] as usize;
        let row = head.row as usize + (found & 0xffff);
        Some(Lane { row, rows, before: 0, length: found >> 16, rank, lanes })
    }

    /// Calls f(slot, item, entry of its rows or None) for each column slot of a slice.
    fn for_each_slot(&self, head: &SliceHead, mut f: impl FnMut(&Slot, Option<(&Lane, usize)>)) {
        let group = self.rules.group();
        let lanes: Vec<_> = (0..LANES).map(|lane| self.lane(head, lane)).collect();
        for step in 0..head.all_steps() {
            let (before, width) = (head.before(group, step), head.width(group, step));
            for (number, lane) in lanes.iter().enumerate() {
                for v in 0..width {
                    let slot = Slot { step, before, width, lane: number, v };
                    let entry = lane.as_ref().and_then(|lane| Some((lane, lane.entry(&slot)?)));
                    f(&slot, entry);
                }
            }
        }
    }

    /// Values and columns of a slice, and the rest of its head.
    fn fill<I: Index, J: Index>(&mut self, pattern: &Pattern<'_, I, J>, values: &[V], number: usize) {
        let mut head = self.heads[number];
        let group = self.rules.group();
        let (mut low, mut high) = (usize::MAX, 0);
        let (mut runs, mut adjacent) = (head.is(EVEN), head.steps > 0);
        let mut of_lane_0 = [0; 4];
        let mut of_group = 0;
        let column = |lane: &Lane, entry: usize| pattern.index(pattern.range(lane.row).start + entry);
        self.for_each_slot(&head, |slot, entry| {
            let Some((lane, entry)) = entry else { return };
            let column = column(lane, entry);
            (low, high) = (low.min(column), high.max(column));
            if slot.lane == 0 {
                of_lane_0[slot.v] = column;
            }
            if slot.v == 0 {
                of_group = column;
            }
            runs &= column == of_lane_0[slot.v] + slot.lane;
            adjacent &= column == of_group + slot.v;
        });
        let is_empty = low == usize::MAX;
        head.first = (self.values.len() / LANES) as u32;
        if is_empty {
            low = 0;
        } else if high - low > 0xffff {
            head.flags |= WIDE;
            low = 0;
        } else if runs {
            head.flags |= RUNS;
        } else if adjacent {
            head.flags |= ADJACENT;
        }
        head.base = low as u32;
        let units = head.column_units(group);
        let (columns, values_at) = match head.is(WIDE) {
            true => (self.wide.len(), self.values.len()),
            false => (self.narrow.len(), self.values.len()),
        };
        head.columns = (columns / LANES) as u32;
        if head.is(WIDE) {
            self.wide.resize(columns + units * LANES, 0);
        } else {
            self.narrow.resize(columns + units * LANES, 0);
        }
        let rows = self.item_rows(&head);
        self.values.resize(values_at + head.lane_slots(group) * rows * LANES, V::zeroed());
        let mut filled = std::mem::take(&mut self.values);
        let (mut narrow, mut wide) = (std::mem::take(&mut self.narrow), std::mem::take(&mut self.wide));
        self.for_each_slot(&head, |slot, entry| {
            let Some((lane, entry)) = entry else { return };
            for k in 0..rows {
                let value = values[pattern.range(lane.row + k).start + entry];
                filled[values_at + slot.value(rows, k)] = value;
            }
            let (at, column) = (columns + head.column_slot(group, slot), column(lane, entry) - low);
            if head.is(WIDE) {
                wide[at] = column as u32;
            } else if !(head.is(RUNS) && slot.lane > 0 || head.is(ADJACENT) && slot.v > 0) {
                narrow[at] = column as u16;
            }
        });
        (self.values, self.narrow, self.wide) = (filled, narrow, wide);
        self.heads[number] = head;
    }

    /// The way back: calls f(row, number of the entry in its row, column, value)
    /// with every stored entry.
    pub fn for_each_entry(&self, mut f: impl FnMut(usize, usize, usize, V)) {
        let group = self.rules.group();
        for head in &self.heads {
            let (first, columns) = (head.first as usize * LANES, head.columns as usize * LANES);
            self.for_each_slot(head, |slot, entry| {
                let Some((lane, entry)) = entry else { return };
                let at = columns + head.column_slot(group, slot);
                let column = if head.is(WIDE) {
                    self.wide[at] as usize
                } else if head.is(RUNS) {
                    usize::from(self.narrow[at]) + slot.lane
                } else if head.is(ADJACENT) {
                    usize::from(self.narrow[at]) + slot.v
                } else {
                    usize::from(self.narrow[at])
                };
                for k in 0..lane.rows {
                    let value = self.values[first + slot.value(lane.rows, k)];
                    f(lane.row + k, entry, head.base as usize + column, value);
                }
            });
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;

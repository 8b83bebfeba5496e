//! The layout in host memory, with which tests compare what analysis makes on a device, and the way back.

use std::ops::Range;

use super::*;
use crate::matrix::compressed::Pattern;
use crate::types::{Element, Index};

/// `order` has lengths up to this.
const MOST_LENGTH: usize = 0xffff;

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
/// A part in the row's last block.
pub const LAST: u16 = 128;

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
    /// Values.
    pub values: Vec<V>,
    /// 16-bit columns.
    pub narrow: Vec<u16>,
    /// 32-bit columns.
    pub wide: Vec<u32>,
}

/// The item of a lane: its entries from `before` on are the lane's share of them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lane {
    pub row: usize,
    pub rows: usize,
    before: usize,
    length: usize,
    pub rank: usize,
    lanes: usize,
}

impl Lane {
    /// The entry of the rows in a slot of the lane, if there is one.
    fn entry(&self, slot: &Slot) -> Option<usize> {
        let entry = slot.before * self.lanes + self.rank * slot.width + slot.v;
        (entry < self.length).then_some(self.before + entry)
    }
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

/// The parts of a long row.
fn add_parts(rules: Rules, item: &Item, window: usize, parts: &mut Vec<SliceHead>) {
    let (blocks, part_length) = rules.cut(item.length);
    let first = parts.len() / BLOCK_PARTS;
    for part in 0..blocks * BLOCK_PARTS {
        let length = item.length.saturating_sub(part * part_length).min(part_length);
        let (steps, half) = rules.steps(length, MOST_LANES_LOG2);
        let is_last = part / BLOCK_PARTS + 1 == blocks;
        parts.push(SliceHead {
            place: first as u32,
            row: item.row as u32,
            window: window as u32,
            steps: steps as u16,
            length: length as u16,
            lanes_log2: MOST_LANES_LOG2 as u8,
            items: 1,
            flags: PART | if half { HALF } else { 0 } | if is_last { LAST } else { 0 },
            ..SliceHead::default()
        });
    }
}

impl<V: Element> WarpSell<V> {
    /// Arranges a valid pattern of less than 2^31 rows, with `values` in its
    /// order.
    pub fn build<I: Index, J: Index>(pattern: &Pattern<'_, I, J>, values: &[V], rules: Rules) -> Self {
        let rows = pattern.major;
        let mut out = WarpSell {
            row_count: rows,
            rules,
            order: Vec::new(),
            heads: Vec::new(),
            values: Vec::new(),
            narrow: Vec::new(),
            wide: Vec::new(),
        };
        let mut parts = Vec::new();
        for first in (0..rows).step_by(rules.window) {
            let window = first..rows.min(first + rules.window);
            out.add_window(pattern, window, &mut parts);
        }
        parts.append(&mut out.heads);
        out.heads = parts;
        let mut numbers: Vec<_> = (0..out.heads.len()).collect();
        numbers.sort_by_key(|&number| out.heads[number].window);
        for number in numbers {
            out.fill(pattern, values, number);
        }
        out
    }

    fn add_window<I: Index, J: Index>(
        &mut self,
        pattern: &Pattern<'_, I, J>,
        window: Range<usize>,
        parts: &mut Vec<SliceHead>,
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
            add_parts(rules, item, window.start / rules.window, parts);
        }
        self.add_slices(&window, window.start, several, ROWS);
        self.add_slices(&window, window.start + several.len() + long, &single[long..], 0);
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

    /// What a lane of slice `number` with this head holds, if it has an item.
    pub(super) fn lane(&self, number: usize, head: &SliceHead, lane: usize) -> Option<Lane> {
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
            // All but the last parts are as long as the first.
            let first = head.place as usize * BLOCK_PARTS;
            let before = (number - first) * usize::from(self.heads[first].length);
            return Some(Lane { row: head.row as usize, rows, before, length, rank, lanes });
        }
        let found = self.order[head.place as usize + item] as usize;
        let row = head.row as usize + (found & 0xffff);
        Some(Lane { row, rows, before: 0, length: found >> 16, rank, lanes })
    }

    /// Calls f(slot, item, entry of its rows or None) for each column slot of slice `number` with
    /// this head.
    fn for_each_slot(
        &self,
        number: usize,
        head: &SliceHead,
        mut f: impl FnMut(&Slot, Option<(&Lane, usize)>),
    ) {
        let group = self.rules.group();
        let lanes: Vec<_> = (0..LANES).map(|lane| self.lane(number, head, lane)).collect();
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
        self.for_each_slot(number, &head, |slot, entry| {
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
        self.for_each_slot(number, &head, |slot, entry| {
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
        for (number, head) in self.heads.iter().enumerate() {
            let (first, columns) = (head.first as usize * LANES, head.columns as usize * LANES);
            self.for_each_slot(number, head, |slot, entry| {
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

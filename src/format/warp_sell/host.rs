//! Builder of the layout in host memory and its inverse, against which tests compare what analysis builds on
//! a device.

use std::ops::Range;

use super::*;
use crate::matrix::compressed::Pattern;
use crate::types::{Element, Index};

/// Largest length that `order` stores.
const MOST_LENGTH: usize = 0xffff;

/// Flag: columns are in `wide`.
pub const WIDE: u16 = 1;
/// Flag: lane l has the columns of lane 0 plus l.
pub const RUNS: u16 = 2;
/// Flag: the items are 32 consecutive single rows of one length.
pub const EVEN: u16 = 4;
/// Flag: the slice is a piece of a split row.
pub const PART: u16 = 8;
/// Flag: a half step comes before the full ones.
pub const HALF: u16 = 16;
/// Flag: the columns of each lane's group are consecutive.
pub const ADJACENT: u16 = 32;
/// Flag: the items have K rows.
pub const ROWS: u16 = 64;
/// Flag: the slice is a piece in the row's last block.
pub const LAST: u16 = 128;

impl SliceHead {
    fn is(&self, flag: u16) -> bool {
        self.flags & flag != 0
    }

    /// Returns the number of steps, the half step included.
    fn all_steps(&self) -> usize {
        usize::from(self.steps) + usize::from(self.is(HALF))
    }

    /// Returns the number of columns for which a lane has slots, given the columns of a group.
    fn lane_slots(&self, group: usize) -> usize {
        usize::from(self.steps) * group + usize::from(self.is(HALF))
    }

    /// Returns how many units of 32 columns are stored.
    fn column_units(&self, group: usize) -> usize {
        if self.is(RUNS) {
            (self.all_steps() * group).div_ceil(LANES)
        } else if self.is(ADJACENT) {
            self.all_steps()
        } else {
            self.lane_slots(group)
        }
    }

    /// Returns the index, behind the slice's first, of the number by which a slot's column is stored, and by
    /// how much the column exceeds that number.
    fn column(&self, group: usize, slot: &Slot) -> (usize, usize) {
        if self.is(RUNS) {
            (slot.step * group + slot.v, slot.lane)
        } else if self.is(ADJACENT) {
            (slot.step * LANES + slot.lane, slot.v)
        } else {
            (slot.value(1, 0), 0)
        }
    }
}

/// Slot for one column of a lane.
#[derive(Clone, Copy, Debug)]
struct Slot {
    /// Number of the step; a half step is step 0.
    step: usize,
    /// Number of columns that the lane has in the steps before; `width` is their number in this step.
    before: usize,
    width: usize,
    lane: usize,
    v: usize,
}

impl Slot {
    /// Returns the index, behind the slice's first, of the value of row k of an item of `rows` rows.
    fn value(&self, rows: usize, k: usize) -> usize {
        self.before * rows * LANES + (k * LANES + self.lane) * self.width + self.v
    }
}

/// Layout in host memory, for tests: the same arrays as analysis builds on a device, and their inverse.
#[derive(Clone, Debug, PartialEq)]
pub struct WarpSell<V> {
    /// Number of rows of op(A).
    pub row_count: usize,
    /// Parameters it was built with.
    pub rules: Rules,
    /// Items of each window in sorted order.
    pub order: Vec<u32>,
    /// Heads of the slices.
    pub heads: Vec<SliceHead>,
    /// Value of each slot.
    pub values: Vec<V>,
    /// Relative 16-bit columns.
    pub narrow: Vec<u16>,
    /// Absolute 32-bit columns.
    pub wide: Vec<u32>,
}

/// Entries of an item that one slice holds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Share {
    pub row: usize,
    pub rows: usize,
    /// Number of the row's entries in pieces before, and in this slice.
    before: usize,
    length: usize,
    /// First lane of the item, and its number of lanes.
    lane: usize,
    lanes: usize,
}

impl Share {
    /// Returns the slot of an entry in the slice with this head, given the columns of a group.
    fn slot(&self, head: &SliceHead, group: usize, entry: usize) -> Slot {
        let half = usize::from(head.is(HALF));
        let Some(rest) = entry.checked_sub(half * self.lanes) else {
            return Slot { step: 0, before: 0, width: 1, lane: self.lane + entry, v: 0 };
        };
        let (step, inside) = (rest / (group * self.lanes), rest % (group * self.lanes));
        let (lane, v) = (self.lane + inside / group, inside % group);
        Slot { step: half + step, before: half + step * group, width: group, lane, v }
    }
}

/// Rows of a window that make one item.
#[derive(Clone, Copy, Debug)]
struct Item {
    row: usize,
    length: usize,
}

/// Returns whether row `row` + 1 has the columns of row `row`, of which there must be 1 to `limit`.
fn same<I: Index, J: Index>(pattern: &Pattern<'_, I, J>, row: usize, limit: usize) -> bool {
    let (a, b) = (pattern.range(row), pattern.range(row + 1));
    (1..=limit).contains(&a.len())
        && a.len() == b.len()
        && a.zip(b).all(|(a, b)| pattern.index(a) == pattern.index(b))
}

/// Appends the pieces of a split row to `parts`.
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
    /// Builds the layout of a valid pattern of less than 2^31 rows, with `values` in its order.
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

    /// Appends the slices of items of one kind, the first of which is at index `place` of `order`.
    fn add_slices(&mut self, window: &Range<usize>, place: usize, items: &[Item], kind: u16) {
        let rules = self.rules;
        let rows = if kind == ROWS { rules.item_rows } else { 1 };
        let mut at = 0;
        while at < items.len() {
            let (longest, left) = (items[at].length, items.len() - at);
            let mut lanes_log2 = rules.lanes_log2(longest * rows);
            // The last items take all lanes, as long as each lane has entries.
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

    /// Returns the share of each of its items that slice `number`, with this head, holds.
    pub(super) fn items(&self, number: usize, head: &SliceHead) -> Vec<Share> {
        let (lanes, rows, length) = (1 << head.lanes_log2, self.item_rows(head), usize::from(head.length));
        let item = |item: usize| {
            let whole = Share { row: head.row as usize, rows, before: 0, length, lane: item * lanes, lanes };
            if head.is(EVEN) {
                return Share { row: whole.row + item, ..whole };
            }
            if head.is(PART) {
                // All pieces but the last ones are as long as the first.
                let first = head.place as usize * BLOCK_PARTS;
                return Share { before: (number - first) * usize::from(self.heads[first].length), ..whole };
            }
            let found = self.order[head.place as usize + item] as usize;
            Share { row: whole.row + (found & 0xffff), length: found >> 16, ..whole }
        };
        (0..usize::from(head.items)).map(item).collect()
    }

    /// Fills in the values and columns of a slice, and the rest of its head.
    fn fill<I: Index, J: Index>(&mut self, pattern: &Pattern<'_, I, J>, values: &[V], number: usize) {
        let mut head = self.heads[number];
        let (group, items) = (self.rules.group(), self.items(number, &head));
        let column =
            |item: &Share, entry: usize| pattern.index(pattern.range(item.row).start + item.before + entry);
        let entries = || items.iter().flat_map(|item| (0..item.length).map(move |entry| (item, entry)));
        let columns = || entries().map(|(item, entry)| column(item, entry));
        let (mut low, high) = (columns().min().unwrap_or(0), columns().max().unwrap_or(0));
        let is_run =
            |(item, entry): (&Share, usize)| column(item, entry) == column(&items[0], entry) + item.lane;
        let is_adjacent = |(item, entry): (&Share, usize)| {
            let v = item.slot(&head, group, entry).v;
            column(item, entry) == column(item, entry - v) + v
        };
        let form = if high - low > 0xffff {
            low = 0;
            WIDE
        } else if head.steps == 0 && !head.is(HALF) {
            0
        } else if head.is(EVEN) && entries().all(is_run) {
            RUNS
        } else if head.steps > 0 && entries().all(is_adjacent) {
            ADJACENT
        } else {
            0
        };
        head.flags |= form;
        head.first = (self.values.len() / LANES) as u32;
        head.base = low as u32;
        let units = head.column_units(group);
        let stored = if form == WIDE { self.wide.len() } else { self.narrow.len() };
        head.columns = (stored / LANES) as u32;
        if form == WIDE {
            self.wide.resize(stored + units * LANES, 0);
        } else {
            self.narrow.resize(stored + units * LANES, 0);
        }
        let (rows, first) = (self.item_rows(&head), self.values.len());
        self.values.resize(first + head.lane_slots(group) * rows * LANES, V::zeroed());
        for (item, entry) in entries() {
            let slot = item.slot(&head, group, entry);
            for k in 0..rows {
                let at = pattern.range(item.row + k).start + item.before + entry;
                self.values[first + slot.value(rows, k)] = values[at];
            }
            let (at, more) = head.column(group, &slot);
            let column = column(item, entry) - low - more;
            if form == WIDE {
                self.wide[stored + at] = column as u32;
            } else {
                self.narrow[stored + at] = column as u16;
            }
        }
        self.heads[number] = head;
    }

    /// Inverse of [`WarpSell::build`]: calls f(row, number of the entry in its row, column, value) for every
    /// stored entry.
    pub fn for_each_entry(&self, mut f: impl FnMut(usize, usize, usize, V)) {
        let group = self.rules.group();
        for (number, head) in self.heads.iter().enumerate() {
            let (first, columns) = (head.first as usize * LANES, head.columns as usize * LANES);
            for item in self.items(number, head) {
                for entry in 0..item.length {
                    let slot = item.slot(head, group, entry);
                    let (at, more) = head.column(group, &slot);
                    let stored = match head.is(WIDE) {
                        true => self.wide[columns + at] as usize,
                        false => usize::from(self.narrow[columns + at]),
                    };
                    for k in 0..item.rows {
                        let value = self.values[first + slot.value(item.rows, k)];
                        f(item.row + k, item.before + entry, head.base as usize + stored + more, value);
                    }
                }
            }
        }
    }
}

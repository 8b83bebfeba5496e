//! Builder of the layout in host memory and its inverse, against which tests compare what analysis builds on
//! a device.

use super::*;
use crate::matrix::compressed::Pattern;
use crate::types::{Element, Index};

/// Bit of a word of `columns` that marks the number of a hot column.
const HOT: u32 = 1 << 31;

/// Returns the hot columns of a pattern, ascending; at most `most`.
fn choose<I: Index, J: Index>(pattern: &Pattern<'_, I, J>, most: usize) -> Vec<u32> {
    let mut counts = vec![0_u32; pattern.minor];
    for at in 0..pattern.indices.len() {
        counts[pattern.index(at)] += 1;
    }
    let bucket_of = |count: u32| (count as usize).min(BUCKETS - 1);
    let mut buckets = vec![0; BUCKETS];
    for &count in &counts {
        buckets[bucket_of(count)] += 1;
    }
    let limit = HotLimit::new(&buckets, most);
    let mut ties = limit.ties;
    let mut is_hot = |count: u32| {
        let bucket = bucket_of(count);
        let is_tie = bucket == limit.bucket && ties > 0;
        ties -= usize::from(is_tie);
        bucket > limit.bucket || is_tie
    };
    let hot = counts.iter().enumerate().filter(|(_, &count)| is_hot(count));
    hot.map(|(column, _)| column as u32).collect()
}

/// Layout in host memory, for tests: the same arrays as analysis builds on a device, and their inverse.
#[derive(Clone, Debug, PartialEq)]
pub struct HotSell<V> {
    /// Parameters it was built with.
    pub rules: Rules,
    /// Rows by descending length.
    pub order: Vec<u32>,
    /// Number of rows that have entries.
    pub filled: usize,
    /// Heads of the slices.
    pub heads: Vec<SliceHead>,
    /// Split rows.
    pub long_rows: Vec<LongRow>,
    /// Value of each slot.
    pub values: Vec<V>,
    /// Column word of each slot.
    pub columns: Vec<u32>,
    /// Hot columns, ascending.
    pub hot: Vec<u32>,
}

/// Entries of one row that one slice holds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Item {
    pub row: usize,
    /// Number of the row's entries in slices before.
    pub before: usize,
    /// First lane of the row, and its number of lanes.
    lane: usize,
    lanes: usize,
}

impl Item {
    /// Returns the slot of an entry, counted from the slice's first.
    fn slot(&self, entry: usize) -> usize {
        let (step, inside) = (entry / (GROUP * self.lanes), entry % (GROUP * self.lanes));
        step * STEP + self.lane * GROUP + inside
    }
}

impl<V: Element> HotSell<V> {
    /// Builds the layout of a valid pattern of less than 2^31 rows and columns, with `values` in its order
    /// and at most `most` hot columns.
    pub fn build<I: Index, J: Index>(
        pattern: &Pattern<'_, I, J>,
        values: &[V],
        rules: Rules,
        most: usize,
    ) -> Self {
        let rows = pattern.major;
        let length = |row: u32| pattern.range(row as usize).len();
        let mut order: Vec<_> = (0..rows as u32).collect();
        order.sort_by_key(|&row| std::cmp::Reverse(length(row)));
        let longer = rules.bounds().map(|bound| order.partition_point(|&row| length(row) > bound) as u64);
        let (classes, slices) = rules.classes(longer);
        let (mut heads, mut long_rows) = (Vec::new(), Vec::new());
        let steps = |entries: usize, lanes_log2: usize| entries.div_ceil(GROUP << lanes_log2) as u16;
        for &row in &order[..classes.cut as usize] {
            let count = length(row).div_ceil(rules.limit);
            let place = long_rows.len() as u32;
            long_rows.push(LongRow { row, first: heads.len() as u32, count: count as u32, unused: 0 });
            for part in 0..count {
                let entries = (length(row) - part * rules.limit).min(rules.limit);
                let steps = steps(entries, CLASSES - 1);
                let lanes_log2 = CLASSES as u8 - 1;
                heads.push(SliceHead { place, steps, lanes_log2, ..SliceHead::default() });
            }
        }
        for class in 0..CLASSES {
            let end = classes.before.get(class + 1).copied().unwrap_or(slices);
            for number in 0..end - classes.before[class] {
                let place = (classes.first[class] + (number << class)) as usize;
                let lanes_log2 = CLASSES - 1 - class;
                heads.push(SliceHead {
                    first: 0,
                    place: place as u32,
                    steps: steps(length(order[place]), lanes_log2),
                    lanes_log2: lanes_log2 as u8,
                    items: (LANES >> lanes_log2).min(classes.filled as usize - place) as u8,
                });
            }
        }
        let mut all = 0;
        for head in &mut heads {
            head.first = all;
            all += u64::from(head.steps);
        }
        let hot = choose(pattern, most);
        let padding = HOT | hot.len() as u32;
        let mut out = HotSell {
            rules,
            order,
            filled: classes.filled as usize,
            heads,
            long_rows,
            values: vec![V::zeroed(); all as usize * STEP],
            columns: vec![padding; all as usize * STEP],
            hot,
        };
        for number in 0..out.heads.len() {
            let first = out.heads[number].first as usize * STEP;
            for item in out.items(number) {
                let range = pattern.range(item.row);
                let mut entries = range.len() - item.before;
                if out.heads[number].items == 0 {
                    entries = entries.min(rules.limit);
                }
                for entry in 0..entries {
                    let (at, slot) = (range.start + item.before + entry, first + item.slot(entry));
                    out.values[slot] = values[at];
                    out.columns[slot] = out.code(pattern.index(at) as u32);
                }
            }
        }
        out
    }

    /// Returns the word that stands for a column.
    fn code(&self, column: u32) -> u32 {
        self.hot.binary_search(&column).map_or(column, |number| HOT | number as u32)
    }

    pub(super) fn items(&self, number: usize) -> Vec<Item> {
        let head = self.heads[number];
        let lanes = 1 << head.lanes_log2;
        if head.items == 0 {
            let row = self.long_rows[head.place as usize];
            let before = (number - row.first as usize) * self.rules.limit;
            return vec![Item { row: row.row as usize, before, lane: 0, lanes }];
        }
        let rows = &self.order[head.place as usize..][..usize::from(head.items)];
        let item = |(i, &row): (usize, &u32)| Item { row: row as usize, before: 0, lane: i * lanes, lanes };
        rows.iter().enumerate().map(item).collect()
    }

    /// Inverse of [`HotSell::build`]: calls f(row, number of the entry in its row, column, value) for every
    /// stored entry.
    pub fn for_each_entry(&self, mut f: impl FnMut(usize, usize, usize, V)) {
        let padding = HOT | self.hot.len() as u32;
        for (number, head) in self.heads.iter().enumerate() {
            let first = head.first as usize * STEP;
            for item in self.items(number) {
                for entry in 0..usize::from(head.steps) * GROUP * item.lanes {
                    let slot = first + item.slot(entry);
                    let word = self.columns[slot];
                    if word == padding {
                        break;
                    }
                    let column = if word & HOT == 0 { word } else { self.hot[(word & !HOT) as usize] };
                    f(item.row, item.before + entry, column as usize, self.values[slot]);
                }
            }
        }
    }
}

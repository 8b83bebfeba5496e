//! SELL with hot columns, for matrices of which a few columns have most entries, as large
//! graphs have them, and whose x does not fit a cache that is near: a kernel keeps x of the hot
//! columns in shared memory. [`super::warp_sell`] is the form for all others.
//!
//! Hot are the columns of most entries; of columns with the same number of entries, or that are
//! both in the last of the [`BUCKETS`], the first ones. Their x are numbered in the order of the
//! columns.
//!
//! The rows of the matrix are sorted by descending length (equal lengths keep their order). In that
//! order, rows of more than [`Rules::limit`] entries are cut into parts of that many, each a
//! slice by itself, whose sums are added in their order. A slice of the others that have
//! entries takes 32 / T rows, T lanes each: T is the least power of two up to 32 that leaves a lane
//! of the slice's first, longest row at most [`Rules::entries`] entries.
//!
//! A step of a slice has two entries of each lane: entry k of a row, or of a part, is in step
//! k / 2T, in the row's lane (k / 2) mod T. What is behind a row's last entry is padding, which
//! reads a zero behind the hot ones, so that it adds 0 · 0.
//!
//! Arrays:
//! - `order`: u32, the rows in their order; those without entries come last
//! - `heads`: a [`SliceHead`] a slice: parts, then slices of rows of 32, 16, … 1 lanes each
//! - `long_rows`: a [`LongRow`] for each that is cut
//! - `values`: 64 of each step, slices one after the other; padding is 0. Where
//!   [`super::narrowing`] finds a narrower form, in that one: none if all are 1
//! - `columns`: u32, at the places of the values: the top bit and the number of a hot column, or
//!   how many there are, which is padding; or the column itself
//! - `hot`: u32, the hot columns, ascending
//! - `positions` (only where values will be updated): where in the user's value
//!   array each value comes from, all ones for padding
//!
//! The inverse is [`HotSell::for_each_entry`]. Analysis makes the arrays on the
//! device (src/backend/cuda/spmv/hot_sell), bit for bit as [`HotSell::build`].

use bytemuck::{Pod, Zeroable};

use crate::matrix::compressed::Pattern;
use crate::types::{Element, Index};

/// Lanes of a slice.
const LANES: usize = 32;
/// Entries of a lane in a step.
const GROUP: usize = 2;
/// Entries of a step.
pub const STEP: usize = LANES * GROUP;
/// Numbers of lanes that a row may have: 1, 2, … 32.
pub const CLASSES: usize = 6;
/// In a word of `columns`: what follows is a number of a hot column.
const HOT: u32 = 1 << 31;
/// Columns are counted by their numbers of entries, those of as many or more together.
pub const BUCKETS: usize = 1 << 12;

/// A slice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C, align(16))]
pub struct SliceHead {
    /// First step: values and columns start at 64 times this.
    pub first: u64,
    /// First place in `order`; part: the row's in `long_rows`.
    pub place: u32,
    /// Steps.
    pub steps: u16,
    /// log2 of the lanes a row.
    pub lanes_log2: u8,
    /// Rows; 0: a part.
    pub items: u8,
}

/// A row that is cut.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C, align(16))]
pub struct LongRow {
    /// The row.
    pub row: u32,
    /// The slice of its first part.
    pub first: u32,
    /// Its parts.
    pub count: u32,
    /// 0.
    pub unused: u32,
}

/// How rows become slices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// Entries that a lane has before a row takes more lanes.
    pub entries: usize,
    /// Entries of the longest row that is not cut, and of a part; at most 2^16.
    pub limit: usize,
}

/// For the matrices that this is for, which have slices enough for all multiprocessors.
pub const RULES: Rules = Rules { entries: 32, limit: 1024 };

/// Places in `order`, and slices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Classes {
    /// Rows that are cut, which come first.
    pub cut: u64,
    /// Rows with entries.
    pub filled: u64,
    /// First places of the slices of rows of 32, 16, … 1 lanes.
    pub first: [u64; CLASSES],
    /// Slices before those, without parts.
    pub before: [u64; CLASSES],
}

impl Rules {
    /// Rows of more entries than each of these are counted: those that are cut, those that have more than 16, 8,
    /// … 1 lanes, those that have entries.
    pub fn bounds(&self) -> [usize; CLASSES + 1] {
        std::array::from_fn(|class| match class {
            0 => self.limit,
            CLASSES => 0,
            _ => self.entries << (CLASSES - 1 - class),
        })
    }

    /// The classes and all their slices, of how many rows are longer than each of the bounds.
    pub fn classes(&self, longer: [u64; CLASSES + 1]) -> (Classes, u64) {
        let (cut, filled) = (longer[0], longer[CLASSES]);
        let mut out = Classes { cut, filled, ..Classes::default() };
        let (mut place, mut slices) = (cut, 0);
        for class in 0..CLASSES {
            (out.first[class], out.before[class]) = (place, slices);
            let of_slice = 1 << class;
            let count = longer[class + 1].saturating_sub(place).div_ceil(of_slice);
            slices += count;
            place = (place + count * of_slice).min(filled);
        }
        (out, slices)
    }
}

/// Which columns are hot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HotLimit {
    /// Those in buckets above this,
    pub bucket: usize,
    /// and so many of those in it.
    pub ties: usize,
    /// All of them.
    pub count: usize,
    /// Entries of other columns: exact unless the limit is the last bucket.
    pub cold: u64,
}

impl HotLimit {
    /// For `most` hot columns, of the numbers of columns in each bucket.
    pub fn new(buckets: &[u32], most: usize) -> Self {
        // Columns without entries are never hot.
        let (mut bucket, mut count) = (buckets.len() - 1, 0);
        while bucket > 1 && count + buckets[bucket] as usize <= most {
            count += buckets[bucket] as usize;
            bucket -= 1;
        }
        let columns = buckets[bucket] as usize;
        let ties = columns.min(most - count);
        let below: u64 = (1..bucket).map(|bucket| bucket as u64 * u64::from(buckets[bucket])).sum();
        HotLimit { bucket, ties, count: count + ties, cold: below + ((columns - ties) * bucket) as u64 }
    }
}

/// The hot columns of a pattern, ascending; at most `most`.
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

/// The layout in host memory: what analysis makes on a device, for tests, and
/// the way back.
#[derive(Clone, Debug, PartialEq)]
pub struct HotSell<V> {
    /// How it was made.
    pub rules: Rules,
    /// Rows by descending length.
    pub order: Vec<u32>,
    /// How many of them have entries.
    pub filled: usize,
    /// Slices.
    pub heads: Vec<SliceHead>,
    /// Rows that are cut.
    pub long_rows: Vec<LongRow>,
    /// Values.
    pub values: Vec<V>,
    /// Words of columns.
    pub columns: Vec<u32>,
    /// Hot columns.
    pub hot: Vec<u32>,
}

/// What a slice has of a row.
#[derive(Clone, Copy, Debug)]
struct Item {
    row: usize,
    /// Entries of the row before.
    before: usize,
    /// Its first lane, and its lanes.
    lane: usize,
    lanes: usize,
}

impl Item {
    /// Where an entry is, behind the slice's first.
    fn slot(&self, entry: usize) -> usize {
        let (step, inside) = (entry / (GROUP * self.lanes), entry % (GROUP * self.lanes));
        step * STEP + self.lane * GROUP + inside
    }
}

impl<V: Element> HotSell<V> {
    /// Arranges a valid pattern of less than 2^31 rows and columns, with `values` in its
    /// order, by up to `most` hot columns.
    pub fn build<I: Index, J: Index>(
        pattern: &Pattern<'_, I, J>,
        values: &[V],
        rules: Rules,
        most: usize,
    ) -> Self {
        let rows = if pattern.offsets.is_empty() { 0 } else { pattern.major };
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

    /// The word of a column.
    fn code(&self, column: u32) -> u32 {
        self.hot.binary_search(&column).map_or(column, |number| HOT | number as u32)
    }

    fn items(&self, number: usize) -> Vec<Item> {
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

    /// The way back: calls f(row, number of the entry in its row, column, value)
    /// with every stored entry.
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

#[cfg(test)]
pub(crate) mod tests;

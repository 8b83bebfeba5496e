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
//! The inverse is `HotSell::for_each_entry`. Analysis makes the arrays on the
//! device (src/backend/cuda/spmv/hot_sell), bit for bit as `HotSell::build`.

use bytemuck::{Pod, Zeroable};

/// Lanes of a slice.
const LANES: usize = 32;
/// Entries of a lane in a step.
const GROUP: usize = 2;
/// Entries of a step.
pub const STEP: usize = LANES * GROUP;
/// Numbers of lanes that a row may have: 1, 2, … 32.
pub const CLASSES: usize = 6;
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

#[cfg(test)]
mod host;
#[cfg(test)]
pub(crate) mod tests;

#[cfg(test)]
pub use host::HotSell;

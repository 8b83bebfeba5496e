//! SELL with hot columns, for matrices in which a few columns have most entries, such as large graphs, and
//! whose x does not fit a nearby cache: a kernel keeps the x of the hot columns in shared memory.
//! [`super::warp_sell`] is the layout for all others.
//!
//! Hot columns are those with the most entries. Among columns with the same number of entries, or that are
//! both in the last of the [`BUCKETS`], the first ones are taken. Hot columns are numbered in ascending order
//! of the columns.
//!
//! The rows of the matrix are sorted by descending length (equal lengths keep their order). In that order,
//! rows of more than [`Rules::limit`] entries are split into pieces of that many, each a slice by itself,
//! whose partial sums are added in order. Of the other rows with entries, a slice takes 32 / T rows, with T
//! lanes per row: T is the least power of two up to 32 that leaves a lane of the slice's first, longest row
//! at most [`Rules::entries`] entries.
//!
//! A step of a slice has two entries per lane: entry k of a row, or of a piece, is in step k / 2T, in the
//! row's lane (k / 2) mod T. Behind a row's last entry is padding, which reads a zero stored behind the x of
//! the hot columns, so that it adds 0 · 0.
//!
//! Arrays:
//! - `order`: u32, the rows in sorted order; those without entries come last
//! - `heads`: a [`SliceHead`] per slice: pieces of split rows first, then slices of rows of 32, 16, … 1 lanes
//!   each
//! - `long_rows`: a [`LongRow`] per split row
//! - `values`: 64 per step, slices one after the other; padding is 0. Where [`super::narrowing`] finds a
//!   narrower form, values are in that; if all are 1, none are stored
//! - `columns`: u32, in the order of the values: for a hot column the top bit and its number; for padding the
//!   top bit and the number of hot columns; otherwise the column itself
//! - `hot`: u32, the hot columns, ascending
//! - `positions` (only where values will be updated): the index in the user's value array that each value
//!   comes from, all ones for padding
//!
//! The inverse is `HotSell::for_each_entry`. Analysis builds the arrays on the device
//! (src/backend/cuda/spmv/hot_sell), bit for bit as `HotSell::build` does.

use bytemuck::{Pod, Zeroable};

/// Number of lanes of a slice.
const LANES: usize = 32;
/// Entries per lane in a step.
const GROUP: usize = 2;
/// Number of entries of a step.
pub const STEP: usize = LANES * GROUP;
/// Number of choices for the lanes per row: 1, 2, … 32.
pub const CLASSES: usize = 6;
/// Number of buckets into which columns are counted by their number of entries; the last one also has all
/// longer columns.
pub const BUCKETS: usize = 1 << 12;

/// Head of a slice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C, align(16))]
pub struct SliceHead {
    /// First step: values and columns start at 64 times this.
    pub first: u64,
    /// First index in `order`; for a piece of a split row, the row's index in `long_rows`.
    pub place: u32,
    /// Number of steps.
    pub steps: u16,
    /// log2 of the lanes per row.
    pub lanes_log2: u8,
    /// Number of rows; 0 for a piece of a split row.
    pub items: u8,
}

/// Row that is split into several slices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C, align(16))]
pub struct LongRow {
    /// The row of op(A).
    pub row: u32,
    /// Slice of the row's first piece.
    pub first: u32,
    /// Number of the row's pieces.
    pub count: u32,
    /// Padding, 0.
    pub unused: u32,
}

/// Parameters that divide rows into slices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// Entries that a lane takes before a row gets more lanes.
    pub entries: usize,
    /// Entries of the longest row that is not split, and of a piece of a split one; at most 2^16.
    pub limit: usize,
}

/// Rows and slices of each class, as starts in `order` and in the slices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Classes {
    /// Number of split rows, which come first.
    pub cut: u64,
    /// Number of rows with entries.
    pub filled: u64,
    /// First index in `order` of the slices with rows of 32, 16, … 1 lanes.
    pub first: [u64; CLASSES],
    /// Number of slices before each of these first slices, pieces of split rows not counted.
    pub before: [u64; CLASSES],
}

impl Rules {
    /// Returns the bounds of row lengths at which classes change: rows of more entries than a bound are those
    /// that are split, those that have more than 16, 8, … 1 lanes, and those that have entries.
    pub fn bounds(&self) -> [usize; CLASSES + 1] {
        std::array::from_fn(|class| match class {
            0 => self.limit,
            CLASSES => 0,
            _ => self.entries << (CLASSES - 1 - class),
        })
    }

    /// Returns the classes and the number of all their slices, given how many rows are longer than each of
    /// the bounds.
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

/// Limit that says which columns are hot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HotLimit {
    /// Bucket of columns above which all columns are hot.
    pub bucket: usize,
    /// Number of the columns in that bucket that are hot, too: the first ones.
    pub ties: usize,
    /// Number of hot columns.
    pub count: usize,
    /// Number of entries in the other columns: exact unless the limit is the last bucket.
    pub cold: u64,
}

impl HotLimit {
    /// Computes the limit for at most `most` hot columns, given the number of columns in each bucket.
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

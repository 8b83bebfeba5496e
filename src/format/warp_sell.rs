//! SELL for warps: sliced ELLPACK with windows of sorted rows, SELL-C-σ (Kreutzer, Hager, Wellein, Fehske,
//! Bishop 2014; [`super::sell`] is the layout for CPUs), where a slice is the work of the 32 lanes of a warp,
//! and a longer row takes more lanes.
//!
//! An item is a row of op(A), or K consecutive rows with the same columns, such as those of the unknowns of
//! one mesh node: the columns are stored once, and x is read once for K products. K is one number for the
//! matrix ([`Rules::item_rows`]). Windows of σ rows are cut into items from their first row on.
//!
//! The items of a window are sorted, those of K rows before single rows and both by descending length (equal
//! lengths keep their order). In that order, a slice takes 32 / T items of one kind, T lanes each: T is the
//! least power of two up to 32 that leaves a lane of the slice's first, longest item at most
//! [`Rules::entries`] entries, or more lanes where so few items are left that the slice would not be full. A
//! row of more than [`Rules::limit`] entries is split instead: it is divided among thread blocks, and in each
//! of these into as many pieces of equal length as a block has warps ([`Rules::cut`]), each a slice by
//! itself. A block adds the partial sums of its pieces in their order, the row's last block adds those of the
//! blocks.
//!
//! A step of a slice has a group of V columns for each lane. Where V is 2 and values are wide, a half step of
//! one column may come before the others. Column k of an item, counted from behind the half step's T columns,
//! is in step k / VT, in the item's lane (k / V) mod T, at k mod V of the group: entries keep the order of
//! the row, and neighbouring lanes read neighbouring entries. Lengths say which slots hold an entry; the
//! others are padding, never multiplied: 0 · Inf would be NaN.
//!
//! Arrays:
//! - `order`: u32 per row; entry p of a window holds, for item p of the window, the number of its first row
//!   in the window (16 bits) and the item's length, at most 2^16 − 1, in the 16 bits above; 0 behind the last
//!   item
//! - `heads`: a [`SliceHead`] per slice: first the pieces of all split rows, so that a block has pieces of
//!   one row only and the longest work starts first; then window by window the slices of items of K rows and
//!   those of single rows, both of 32, 16, … 1 lanes per item
//! - `values`: windows one after the other, of each the pieces, then the other slices; a step has 32 V values
//!   (a half step 32) of its items' first rows, then those of the second rows, and so on; padding is 0. Where
//!   [`super::narrowing`] finds a narrower form, values are in that; if all are 1, none are stored
//! - `narrow`: u16, columns relative to the slice's smallest, in one of three forms, each padded to a
//!   multiple of 32: one for each value of the first rows; in slices that are `RUNS` only lane 0's, V per
//!   step (a half step has one, and 0); in slices that are `ADJACENT` each lane's first of each step
//! - `wide`: u32, absolute columns, one for each value of the first rows, of the slices whose columns span
//!   more than 2^16
//! - `positions` (only where values will be updated): the index in the user's value array that each value
//!   comes from, all ones for padding
//!
//! The inverse is `WarpSell::for_each_entry`. Analysis builds the arrays on the device
//! (src/backend/cuda/spmv/sell.rs), bit for bit as `WarpSell::build` does.

use bytemuck::{Pod, Zeroable};

/// Number of lanes of a slice.
pub const LANES: usize = 32;
/// log2 of the largest number of lanes of an item.
pub const MOST_LANES_LOG2: u32 = 5;
/// Number of pieces of a split row in one thread block: its warps.
pub const BLOCK_PARTS: usize = 4;
/// Largest K, the number of rows of an item.
pub const MOST_ITEM_ROWS: usize = 3;

/// Head of a slice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C, align(16))]
pub struct SliceHead {
    /// First value, in units of 32.
    pub first: u32,
    /// First column in `narrow` or `wide`, in units of 32.
    pub columns: u32,
    /// Column that narrow columns are relative to.
    pub base: u32,
    /// First index in `order`; for a piece of a split row, the number of the row's first block.
    pub place: u32,
    /// First row of the window; for an even slice its first row; for a piece the split row.
    pub row: u32,
    /// Number of the window.
    pub window: u32,
    /// Number of full steps.
    pub steps: u16,
    /// Length of each item of an even slice, or of a piece; else 0.
    pub length: u16,
    /// log2 of the lanes per item.
    pub lanes_log2: u8,
    /// Number of items.
    pub items: u8,
    /// Flags such as `WIDE`; src/format/warp_sell/host.rs defines them.
    pub flags: u16,
}

/// Parameters that divide rows into slices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// σ, the rows of a window: at most 1,024.
    pub window: usize,
    /// K, the rows of an item.
    pub item_rows: usize,
    /// Entries that a lane takes before an item gets more lanes.
    pub entries: usize,
    /// log2 of V, the columns of a lane in a step: 1 or 2.
    pub group_log2: u32,
    /// log2 of the entries of the longest row that is not split, and of the longest piece; 7 to 15.
    pub limit_log2: u32,
    /// True if slices may have half steps; only where V is 2.
    pub halves: bool,
}

impl Rules {
    /// Returns the number of entries of the longest row that is not split, and of the longest piece.
    pub fn limit(&self) -> usize {
        1 << self.limit_log2
    }

    /// Returns V, the columns of a lane in a step.
    pub fn group(&self) -> usize {
        1 << self.group_log2
    }

    /// Returns an upper bound of the number of slices of a matrix of these sizes. It adds full slices of one
    /// lane per item, the further slices for items of more lanes (an item of T lanes has over ET / 2K
    /// entries), one slice that is not full for each kind and number of lanes in each window, and pieces of
    /// split rows.
    pub fn most_slices(&self, rows: usize, nnz: usize) -> usize {
        let kinds = 2 * (MOST_LANES_LOG2 as usize + 1);
        let more = (2 * nnz / LANES / self.entries).saturating_add(self.most_parts(nnz));
        (rows / LANES + 2).saturating_add(rows.div_ceil(self.window) * kinds).saturating_add(more)
    }

    /// Returns an upper bound of the number of pieces of split rows in a matrix of `nnz` entries: only the
    /// last block of a row has pieces that are not full.
    pub fn most_parts(&self, nnz: usize) -> usize {
        ((nnz >> self.limit_log2) + ((nnz / BLOCK_PARTS) >> self.limit_log2)) * BLOCK_PARTS
    }

    /// Returns how a row of `length` entries, more than the limit, is split: the number of blocks, and the
    /// entries of a piece, a multiple of a step's. The last pieces have fewer entries, or none.
    pub fn cut(&self, length: usize) -> (usize, usize) {
        let blocks = length.div_ceil(BLOCK_PARTS << self.limit_log2);
        let part = length.div_ceil(BLOCK_PARTS * blocks);
        (blocks, part.next_multiple_of(LANES << self.group_log2))
    }

    /// Returns log2 of the lanes for an item of `entries` entries.
    pub fn lanes_log2(&self, entries: usize) -> u32 {
        (0..MOST_LANES_LOG2).find(|&lanes| entries <= self.entries << lanes).unwrap_or(MOST_LANES_LOG2)
    }

    /// Returns the number of columns for which each lane of such a slice has slots.
    pub fn lane_slots(&self, length: usize, lanes_log2: u32) -> usize {
        let (steps, half) = self.steps(length, lanes_log2);
        steps * self.group() + usize::from(half)
    }

    /// Returns the number of full steps for items of up to `length` columns with 2^`lanes_log2` lanes each,
    /// and whether a half step comes before them.
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

/// σ: enough rows for slices of equal lengths, few enough that the elements of x that they read and of y that
/// they write stay in a cache. It is 1,023 where K is 3, so that groups of three rows that begin with row 0
/// are not cut.
pub const WINDOW: usize = 1 << 10;

/// Largest number of entries of a row that may be in an item of several rows, whatever the limit is.
pub const MOST_SHARED: usize = 1 << 15;

#[cfg(test)]
mod host;
#[cfg(test)]
pub(crate) mod tests;

#[cfg(test)]
pub use host::{WarpSell, ADJACENT, EVEN, HALF, LAST, PART, ROWS, RUNS, WIDE};

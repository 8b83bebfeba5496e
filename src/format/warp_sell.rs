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
//! [`Rules::limit`] entries is in no slice of items: it is dealt to thread blocks, as many parts
//! of equal length to each as a block has warps ([`Rules::cut`]), each a slice by itself. A
//! block adds its parts' sums in their order, the row's last block those of the blocks.
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
//! - `heads`: a [`SliceHead`] a slice: first the parts of all long rows, so that a block has
//!   parts of one row only and those that a launch waits for start first; then window by
//!   window the slices of items of K rows and those of single rows, both of 32, 16, … 1 lanes
//!   an item
//! - `values`: windows one after the other, of each the parts, then the other slices; a step
//!   has 32 V values (a half 32) of its items' first rows, then those of the second rows, and
//!   so on; padding is 0. Where [`super::narrowing`] finds a narrower form, in that one: none
//!   if all are 1
//! - `narrow`: u16, columns relative to the slice's smallest, in one of three forms,
//!   each padded to a multiple of 32: at the places of the first rows' values; in
//!   slices that are `RUNS` only lane 0's, V of each step (a half has one, and 0);
//!   in slices that
//!   are `ADJACENT` each lane's first of each step
//! - `wide`: u32, columns themselves, at the places of the first rows' values, of the
//!   slices whose columns span more than 2^16
//! - `positions` (only where values will be updated): where in the user's value
//!   array each value comes from, all ones for padding
//!
//! The inverse is `WarpSell::for_each_entry`. Analysis makes the arrays on the
//! device (src/backend/cuda/spmv/sell.rs), bit for bit as `WarpSell::build`.

use bytemuck::{Pod, Zeroable};

/// Lanes of a slice.
pub const LANES: usize = 32;
/// An item takes at most 2^5 lanes.
pub const MOST_LANES_LOG2: u32 = 5;
/// Parts that a thread block has of a long row: its warps.
pub const BLOCK_PARTS: usize = 4;
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
    /// First place in `order`; part: number of the row's first block.
    pub place: u32,
    /// The window's first row; even: the slice's first row; part: the row.
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
    /// `WIDE` and so on: the numbers are in warp_sell/host.rs.
    pub flags: u16,
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
    /// log2 of the entries of the longest row that is no sum of parts, and of the
    /// longest part; 7 to 15.
    pub limit_log2: u32,
    /// Whether slices may have half steps; only where V is 2.
    pub halves: bool,
}

impl Rules {
    /// Entries of the longest row that is no sum of parts, and of the longest part.
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

    /// Parts of a matrix of so many entries, at the most: those of a block are less than full
    /// only in the last one of a row.
    pub fn most_parts(&self, nnz: usize) -> usize {
        ((nnz >> self.limit_log2) + ((nnz / BLOCK_PARTS) >> self.limit_log2)) * BLOCK_PARTS
    }

    /// How a row of so many entries, more than the limit, is cut: blocks, and the entries of a
    /// part, a multiple of a step's. The last parts have fewer, or none.
    pub fn cut(&self, length: usize) -> (usize, usize) {
        let blocks = length.div_ceil(BLOCK_PARTS << self.limit_log2);
        let part = length.div_ceil(BLOCK_PARTS * blocks);
        (blocks, part.next_multiple_of(LANES << self.group_log2))
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

/// Rows of more entries are in items of their own, whatever the limit is.
pub const MOST_SHARED: usize = 1 << 15;

#[cfg(test)]
mod host;
#[cfg(test)]
pub(crate) mod tests;

#[cfg(test)]
pub use host::{WarpSell, ADJACENT, EVEN, HALF, LAST, PART, ROWS, RUNS, WIDE};

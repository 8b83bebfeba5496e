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
const MOST_LANES_LOG2: u32 = 5;
/// Parts that a thread block has of a long row: its warps.
pub const BLOCK_PARTS: usize = 4;
/// Entries of the longest row where a warp has two slices at one time.
const PAIR_LENGTH: usize = 8;
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
    /// For a matrix of these sizes, with values kept in `value_bytes`, on a device that
    /// runs `lanes` lanes at one time; `most_blocks` bounds the number of blocks for long rows.
    /// `shared[k]`: entries of items of k + 2 rows, were K that; `adjacent`: columns of nearly all
    /// entries follow each other, and values are real.
    pub fn new(
        rows: usize,
        nnz: usize,
        value_bytes: usize,
        lanes: usize,
        most_blocks: usize,
        shared: [usize; MOST_ITEM_ROWS - 1],
        adjacent: bool,
    ) -> Self {
        let item_rows = Rules::item_rows(nnz, value_bytes, shared);
        // Fewer loads, but short rows would be mostly padding. Measured: in fp16 four
        // is better from 8 entries a row on (poisson160 has 7), in fp32 from 24
        // (cop20k, 18 entries: 19.7 µs with four, 18.5 with two).
        let least = match value_bytes {
            _ if item_rows > 1 => usize::MAX,
            ..=2 => 8,
            4 => 24,
            // One column for four values instead of two (fp64: band1024 55.7 µs → 52.9, band256 17.7 → 16.6);
            // without that less is under way (rows of any columns: 3 % slower).
            8 if adjacent => 48,
            _ => usize::MAX,
        };
        let group_log2 = if nnz / rows.max(1) >= least { 2 } else { 1 };
        Rules::with(rows, nnz, value_bytes, lanes, most_blocks, (item_rows, group_log2))
    }

    /// The same for products with several columns at a time. V is 2 and
    /// without halves: rows of B take the registers, and most of the time (V = 4: 0.8 of the speed).
    pub fn for_columns(
        rows: usize,
        nnz: usize,
        value_bytes: usize,
        lanes: usize,
        most_blocks: usize,
        shared: [usize; MOST_ITEM_ROWS - 1],
    ) -> Self {
        let item_rows = Rules::item_rows(nnz, value_bytes, shared);
        Rules { halves: false, ..Rules::with(rows, nnz, value_bytes, lanes, most_blocks, (item_rows, 1)) }
    }

    /// K, if that of `shared` is as [`Rules::new`] has it.
    fn item_rows(nnz: usize, value_bytes: usize, shared: [usize; MOST_ITEM_ROWS - 1]) -> usize {
        // Where fewer entries than that share columns, single rows have V = 4 to gain from narrow values
        // (consph in fp16: K = 2 for two of three rows 16.9 µs, single rows 15.6, K = 3 11.5; in fp64
        // 28.0, 28.4, 24.9).
        let enough = (if value_bytes < 8 { 0.75 } else { 0.6 } * nnz as f64).max(1.0);
        let [twos, threes] = shared;
        match (twos as f64 >= enough, threes as f64 >= enough) {
            // What is not stored: half, or two thirds, of their columns.
            (_, true) if threes * 4 >= twos * 3 => 3,
            (true, _) => 2,
            _ => 1,
        }
    }

    fn with(
        rows: usize,
        nnz: usize,
        value_bytes: usize,
        lanes: usize,
        most_blocks: usize,
        (item_rows, group_log2): (usize, u32),
    ) -> Self {
        let mean = nnz as f64 / rows.max(1) as f64;
        let per_lane = nnz as f64 / lanes.max(1) as f64;
        let entries = entries(mean, per_lane, item_rows, group_log2, value_bytes);
        // A part has 8 to 32 entries of each lane. Longer ones are what a launch waits for at
        // its end (dc2, 1,024 instead of 512: 11.9 µs for 10.6, cnr-2000 21.0 for 19.6), shorter ones leave rows of usual length in
        // parts (si41, 256: 74 µs for 53) unless rows are too few for all multiprocessors. Very large
        // matrices may have more blocks of long rows than `most_blocks`; analysis counts them.
        let mut limit_log2 = match entries {
            ..=15 => 8,
            16..=17 => 9,
            _ => 10,
        };
        while 1.5 * mean > f64::from(1 << limit_log2) && rows * LANES > lanes / 4 && limit_log2 < 15 {
            limit_log2 += 1;
        }
        let least = (nnz / 4 * 5 / most_blocks.max(1)).max(1).next_power_of_two().ilog2();
        let limit_log2 = limit_log2.max(least).min(15);
        // Of narrow values a half saves too little (poisson160 in fp32: 79.5 µs without, 94.7 with).
        let halves = value_bytes >= 8 && group_log2 == 1;
        let window = WINDOW / item_rows * item_rows;
        Rules { window, item_rows, entries, group_log2, limit_log2, halves }
    }

    /// Entries of the longest row that is no sum of parts, and of the longest part.
    pub fn limit(&self) -> usize {
        1 << self.limit_log2
    }

    /// Whether a warp takes two slices at one time, of `rows` rows of up to `longest` entries: those of 2
    /// bytes and less (x: 4), of which a slice has half a KB behind three loads that wait for each other
    /// (poisson160 in fp16 68.3 µs without, 53.8 with; in fp32 84.1 and 82.3), if that leaves enough for
    /// `lanes` lanes (usroads in fp16 6.0 and 7.3).
    pub fn pairs(
        &self,
        rows: usize,
        longest: usize,
        value_bytes: usize,
        x_bytes: usize,
        lanes: usize,
    ) -> bool {
        let is_short = longest <= PAIR_LENGTH && self.item_rows == 1 && self.group_log2 == 1;
        is_short && value_bytes <= 2 && x_bytes <= 4 && rows >= 2 * lanes
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

/// Entries that a lane may have before an item takes more lanes, for rows of `mean` entries on average
/// and `per_lane` for each lane of the device.
///
/// What a lane gets of a row of average length is its entries over a power of two. The best such share
/// is the smallest with which all slices still run at one time (fp64: conf5 10.9 µs, with twice as many
/// slices 12.9; shipsec1 27.2, 28.7). Where that leaves a lane too much, slices come in several waves,
/// and what counts is that the last ones end soon: gupta3 takes 40.0 µs with 64 a lane, 38.1 with 32,
/// mip1 53.8 and 50.9. A step of more bytes takes more entries. The limit is an eighth above the
/// share, of items of several rows a quarter: those that are a little longer than the average, as
/// inside a mesh, should not take twice the lanes (cant 18.6 µs, with an eighth 19.6), and shorter ones not
/// hold a slice up: band256 takes 17.6 µs with 32 and 20.6 with 62, where its few rows of under 248 entries
/// have half the others' lanes (band1024, fp32: an eighth 30.6 µs, a quarter 31.5).
fn entries(mean: f64, per_lane: f64, item_rows: usize, group_log2: u32, value_bytes: usize) -> usize {
    let item = mean * item_rows as f64;
    // The largest share in one wave and in several, and what rows of very different lengths are best
    // with, if there are enough for all lanes (fp64 webbase 31.0 µs with 16, 32.0 with 24; fp16 cnr-2000
    // 16.6 and 15.4; items of K rows, fp32: conf5 8.9 µs with 16, 8.3 with 30).
    let (one_wave, several, most_of_least) = match (item_rows, group_log2) {
        (1, 1) => (64.0, 40.0, 16.0),
        (1, _) => (64.0, 64.0, 24.0),
        _ if value_bytes < 8 => (96.0, 96.0, 32.0),
        _ => (96.0, 40.0, 16.0),
    };
    let mut shares = (0..=MOST_LANES_LOG2).map(|lanes| item / f64::from(1 << lanes));
    let smallest = shares.clone().rfind(|&share| share >= per_lane).unwrap_or(item);
    let share = if smallest <= one_wave {
        // More only because an item has all lanes.
        smallest.min(2.0 * per_lane)
    } else {
        // None if rows of average length are cut, or take all lanes anyway.
        shares.find(|&share| share <= several).unwrap_or(0.0)
    };
    let least = (2.0 * per_lane.ceil()).clamp(8.0, most_of_least);
    let above = if item_rows == 1 { 1.125 } else { 1.25 };
    (above * share).ceil().max(least) as usize
}

/// σ: enough rows for slices of equal lengths, few enough that what they
/// read of x and write of y stays in a cache. 1,023 where K is 3, so that nodes that begin
/// with row 0 are not cut.
pub const WINDOW: usize = 1 << 10;

/// Rows of more entries are in items of their own, whatever the limit is.
pub const MOST_SHARED: usize = 1 << 15;

/// Whether rows are looked at for columns that they share: of under two entries a row
/// there are none to save.
pub fn may_share(rows: usize, nnz: usize) -> bool {
    nnz / rows.max(1) >= 2
}

#[cfg(test)]
mod host;
#[cfg(test)]
pub(crate) mod tests;

#[cfg(test)]
pub use host::{WarpSell, ADJACENT, EVEN, HALF, LAST, PART, ROWS, RUNS, WIDE};

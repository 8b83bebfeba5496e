//! Rules by which rows become slices for `sell` on devices, of SpMV and of SpMM (src/format/warp_sell.rs).

use crate::format::warp_sell::{Rules, LANES, MOST_ITEM_ROWS, MOST_LANES_LOG2, WINDOW};

/// Number of lanes that a multiprocessor runs at one time, as limited by registers.
const LANES_OF_MULTIPROCESSOR: usize = 1024;
/// Maximum number of entries of a row for which a warp takes two slices at one time.
const PAIR_LENGTH: usize = 8;

/// Number of lanes that a device runs at one time.
pub fn lanes_at_once(multiprocessors: usize) -> usize {
    multiprocessors * LANES_OF_MULTIPROCESSOR
}

/// Rules for a matrix of this size, with values stored in `value_bytes`, on a device that runs `lanes` lanes
/// at one time. `most_blocks` bounds the number of blocks for long rows; `shared[k]` is the number of entries
/// in items if K were k + 2; `adjacent` says that the columns of nearly all entries follow each other, and
/// that values are real.
pub fn rules(
    rows: usize,
    nnz: usize,
    value_bytes: usize,
    lanes: usize,
    most_blocks: usize,
    shared: [usize; MOST_ITEM_ROWS - 1],
    adjacent: bool,
) -> Rules {
    let item_rows = item_rows(nnz, value_bytes, shared);
    // Groups of four need fewer loads, but short rows would be mostly padding. Measured: in fp16 four is
    // better from 8 entries a row on (poisson160 has 7), in fp32 from 24 (cop20k, 18 entries: 19.7 µs with
    // four, 18.5 with two).
    let least = match value_bytes {
        _ if item_rows > 1 => usize::MAX,
        ..=2 => 8,
        4 => 24,
        // One column is stored for four values instead of two (fp64: band1024 55.7 µs → 52.9, band256 17.7 →
        // 16.6); if columns do not follow each other, fewer loads are in flight (3 % slower).
        8 if adjacent => 48,
        _ => usize::MAX,
    };
    let group_log2 = if nnz / rows.max(1) >= least { 2 } else { 1 };
    with(rows, nnz, value_bytes, lanes, most_blocks, (item_rows, group_log2))
}

/// Rules for products with several columns at a time: V is 2, and there are no half steps, since rows of B
/// take the registers, and most of the time (V = 4: 0.8 of the speed).
pub fn rules_for_columns(
    rows: usize,
    nnz: usize,
    value_bytes: usize,
    lanes: usize,
    most_blocks: usize,
    shared: [usize; MOST_ITEM_ROWS - 1],
) -> Rules {
    let item_rows = item_rows(nnz, value_bytes, shared);
    Rules { halves: false, ..with(rows, nnz, value_bytes, lanes, most_blocks, (item_rows, 1)) }
}

/// K, the number of rows of an item, given `shared` as in [`rules`].
fn item_rows(nnz: usize, value_bytes: usize, shared: [usize; MOST_ITEM_ROWS - 1]) -> usize {
    // If fewer entries than this share columns, single rows gain more by V = 4 with narrow values (consph in
    // fp16: K = 2 for two of three rows 16.9 µs, single rows 15.6, K = 3 11.5; in fp64 28.0, 28.4, 24.9).
    let enough = (if value_bytes < 8 { 0.75 } else { 0.6 } * nnz as f64).max(1.0);
    let [twos, threes] = shared;
    match (twos as f64 >= enough, threes as f64 >= enough) {
        // Columns that are saved: half of them in items of 2, two thirds in items of 3.
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
) -> Rules {
    let mean = nnz as f64 / rows.max(1) as f64;
    let per_lane = nnz as f64 / lanes.max(1) as f64;
    let entries = entries(mean, per_lane, item_rows, group_log2, value_bytes);
    // A piece of a split row has 8 to 32 entries for each lane. A launch waits for longer pieces at its end
    // (dc2, 1,024 instead of 512: 11.9 µs for 10.6, cnr-2000 21.0 for 19.6); shorter ones split rows of usual
    // length (si41, 256: 74 µs for 53), which is right only if rows are too few for all multiprocessors. Very
    // large matrices may have more blocks of long rows than `most_blocks`; analysis counts them.
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
    // Half steps with narrow values save too little (poisson160 in fp32: 79.5 µs without, 94.7 with).
    let halves = value_bytes >= 8 && group_log2 == 1;
    let window = WINDOW / item_rows * item_rows;
    Rules { window, item_rows, entries, group_log2, limit_log2, halves }
}

/// Returns whether a warp takes two slices at one time, for `rows` rows of up to `longest` entries: with
/// values of at most 2 bytes (x: 4), a slice has half a KB behind three dependent loads (poisson160 in fp16
/// 68.3 µs without, 53.8 with; in fp32 84.1 and 82.3); but only if that leaves enough work for `lanes` lanes
/// (usroads in fp16 6.0 and 7.3).
pub fn takes_pairs(
    rules: &Rules,
    rows: usize,
    longest: usize,
    value_bytes: usize,
    x_bytes: usize,
    lanes: usize,
) -> bool {
    let is_short = longest <= PAIR_LENGTH && rules.item_rows == 1 && rules.group_log2 == 1;
    is_short && value_bytes <= 2 && x_bytes <= 4 && rows >= 2 * lanes
}

/// Maximum number of entries of a lane before an item takes more lanes, for rows of `mean` entries on average
/// and `per_lane` for each lane of the device.
///
/// A lane's share of a row of average length is its entries over a power of two. The best share is the
/// smallest with which all slices still run at one time (fp64: conf5 10.9 µs, with twice as many slices 12.9;
/// shipsec1 27.2, 28.7). If a lane then has too many, slices come in several waves, and the last ones should
/// end soon: gupta3 takes 40.0 µs with 64 a lane, 38.1 with 32, mip1 53.8 and 50.9. A step of more bytes
/// takes more entries. The limit is an eighth above the share, and a quarter for items of several rows: rows
/// a little longer than the average, as inside a mesh, should not take twice the lanes (cant 18.6 µs, with an
/// eighth 19.6), and shorter ones not hold a slice up: band256 takes 17.6 µs with 32 and 20.6 with 62, where
/// its few rows of under 248 entries have half the others' lanes (band1024, fp32: an eighth 30.6 µs, a
/// quarter 31.5).
fn entries(mean: f64, per_lane: f64, item_rows: usize, group_log2: u32, value_bytes: usize) -> usize {
    let item = mean * item_rows as f64;
    // Largest share in one wave and in several, and the best limit for rows of very different lengths, if
    // there are enough for all lanes (fp64 webbase 31.0 µs with 16, 32.0 with 24; fp16 cnr-2000 16.6 and
    // 15.4; items of K rows, fp32: conf5 8.9 µs with 16, 8.3 with 30).
    let (one_wave, several, most_of_least) = match (item_rows, group_log2) {
        (1, 1) => (64.0, 40.0, 16.0),
        (1, _) => (64.0, 64.0, 24.0),
        _ if value_bytes < 8 => (96.0, 96.0, 32.0),
        _ => (96.0, 40.0, 16.0),
    };
    let mut shares = (0..=MOST_LANES_LOG2).map(|lanes| item / f64::from(1 << lanes));
    let smallest = shares.clone().rfind(|&share| share >= per_lane).unwrap_or(item);
    let share = if smallest <= one_wave {
        // The share is larger only if an item has all lanes already.
        smallest.min(2.0 * per_lane)
    } else {
        // No share if rows of average length are split, or take all lanes anyway.
        shares.find(|&share| share <= several).unwrap_or(0.0)
    };
    let least = (2.0 * per_lane.ceil()).clamp(8.0, most_of_least);
    let above = if item_rows == 1 { 1.125 } else { 1.25 };
    (above * share).ceil().max(least) as usize
}

/// Returns whether rows are searched for columns that they share: with fewer than two entries a row there are
/// none to save.
pub fn may_share(rows: usize, nnz: usize) -> bool {
    nnz / rows.max(1) >= 2
}

/// log2 of the rows that a warp of analysis searches for columns that they share. If rows are fewer than the
/// warps that the device runs at one time, each has its own warp; else a warp takes up to 32.
pub fn rows_per_warp_log2(rows: u64, multiprocessors: u64) -> u32 {
    rows.div_ceil(64 * multiprocessors).clamp(1, 32).next_power_of_two().ilog2()
}

#[cfg(test)]
mod tests;

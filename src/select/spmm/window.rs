//! The shape of windows of rows for SpMM `window` with values of 16 bits (src/format/window.rs): how many rows they
//! have, and where long ones are cut.

use crate::format::window::{Counts, Rules, BLOCK, MOST_DIRECT, SHAPE};

/// Blocks of the longest part or whole window that a warp takes: with 128 the last one
/// outlasts the others by 30 µs (rmat16: 48 µs for 32 columns; the prototype 18).
const DIRECT_BLOCKS: usize = 32;
/// The same for a thread block that stages them two by two; N = 128, 16 rows, with 32 and
/// 64: dc2 152 and 80 µs, mip1 173 and 140, dnn90 44 and 35, rmat16 33.3 and 33.3.
const STAGED_BLOCKS: usize = 64;

/// For a CPU, which reads rows of B through its caches and has no use for parts.
pub fn rules_on_host(_: &Counts) -> Rules {
    Rules { height: 16, most: STAGED_BLOCKS, sharing: 1 }
}

/// For `n` columns of B and a device of so many multiprocessors.
///
/// Which algorithm is best is not chosen here: this plan has been made for windows.
/// The rules are of the 25 comparison matrices (benches/NOTES.md): a warp takes
/// windows of few columns of C, else a thread block, which stages rows of B.
pub fn rules(counts: &Counts, n: usize, multiprocessors: usize) -> Rules {
    let [of_8, of_16, of_64] = [8, 16, 64].map(|height| counts.reuse(height));
    // Rows that share nothing: warps that don't wait for each other, and 64 columns
    // at one time, whose part of B may fit L2: uniform takes 155 µs for 194 at N =
    // 128, 594 for 791 at 512, cop20k 393 for 411; but rmat20 (ρ_16 1.01) 912 for 774.
    let alone = of_16 < 1.004;
    if n > MOST_DIRECT && !alone {
        // A second row of tiles must pay: N = 512, 16, 32 and 64 rows: pwtk (ρ_16 9.0,
        // ρ_64 14.4) 266, 271, 321 µs, cant (5.7, 12.4) 116, 120, 128, tsopf (12.0, 27.2) 181,
        // 153, 164, gupta3 (12.8, 32.8) 99, 88, 98, dnn90 (2.0, 6.4) 119, 83, 77, band256
        // (15.1, 51.4) 48, 36, 32; N = 128: cant 38, 40, 36, band1024 (15.8, 60.4) 39, 35, 34.
        let height = match of_16 {
            _ if of_64 >= 6.0 && of_64 >= 3.2 * of_16 => 64,
            10.0.. => 32,
            _ if n < 256 && of_64 >= 6.0 && of_64 >= 2.0 * of_16 => 64,
            _ => 16,
        };
        let (blocks, windows) = (counts.all_blocks(height, SHAPE).0, counts.rows.div_ceil(height));
        let most = staged_most(blocks, windows, n.div_ceil(128), multiprocessors);
        return Rules { height, most, sharing: 1 };
    }
    // 32 columns: 8 rows are best or
    // near it but for pwtk (ρ 6.0, 9.0), tsopf (6.9, 12.0) and the like; 64: 16 rows.
    let height = if !alone && (n > 32 || of_16 >= 1.35 * of_8) { 16 } else { 8 };
    // Warps share windows where one a window leaves the device half empty (16 warps
    // fit a multiprocessor) and where each has several blocks then: dnn80's 256
    // windows of 249 blocks take 22.9 µs in parts and 21.3 so.
    let windows = counts.rows.div_ceil(height);
    let few = windows.saturating_mul(n.div_ceil(32)) < 8 * multiprocessors;
    let is_long = counts.all_columns(height) >= (16 * BLOCK * windows) as f64;
    let sharing = if few && is_long { 8 } else { 1 };
    Rules { height, most: DIRECT_BLOCKS * sharing, sharing }
}

/// Blocks of the longest part of the staged form, for so many tiles of columns.
///
/// Parts fill the device where there are few windows, but each costs as much as
/// [`PART`] blocks, for its sums: band1024 (256 windows of 67 blocks), N = 128, 256 and 512, whole
/// 34, 44 and 82 µs, in two parts 38, 69 and 123; dnn90 (64 of 256), N = 512, whole 96 µs, in two
/// parts 77, in four 88.
fn staged_most(blocks: f64, windows: usize, tiles: usize, multiprocessors: usize) -> usize {
    let mean = blocks / windows.max(1) as f64;
    // By how many parts of windows a multiprocessor has at one time; four fit.
    let rate = |at_once: f64| match at_once {
        4.0.. => 1.0,
        3.0.. => 0.9,
        2.0.. => 0.75,
        _ => 0.45,
    };
    let seconds = |parts: usize| {
        let each = (windows as f64 * tiles as f64 * parts as f64 / multiprocessors.max(1) as f64).max(1.0);
        let own = mean / parts as f64 + if parts > 1 { PART } else { 0.0 };
        each * own / rate(each.round())
    };
    let best = (1..=MOST_PARTS).min_by(|&a, &b| seconds(a).total_cmp(&seconds(b))).unwrap_or(1);
    // Windows that are a little longer than the mean are not cut once more.
    STAGED_BLOCKS.max((1.25 * mean / best as f64) as usize)
}

/// Blocks that take as long as a part's sums: of dnn90's times with 1, 2 and 4 parts.
const PART: f64 = 22.0;
/// Parts that are tried.
const MOST_PARTS: usize = 8;

#[cfg(test)]
mod tests;

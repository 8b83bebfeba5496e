//! The shape of windows of rows for SpMM `window` with values of 16 bits (src/format/window.rs): how many rows they
//! have, and where long ones are cut.

use crate::format::window::{Counts, Rules, BLOCK, MOST_DIRECT, SHAPE};
use crate::reorder;

/// Rows that are put together in clusters, by their columns: those of windows of 16 rows, or half of those of 32.
pub const CLUSTER: reorder::Shape = reorder::Shape { height: 16, width: 1 };

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
/// The rules are of the 25 comparison matrices (docs/algorithms/window.md): a warp takes
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

/// Columns of A that a block of threads marks at one time where it numbers those of a window: 16 KB, and a quarter and up
/// to half as much for sums and masks, leave room for 8 of its kind.
const MOST_KEYS: usize = 1 << 17;

/// Columns that it marks at one time, of so many.
pub fn keys_at_once(cols: i64) -> usize {
    (cols.max(1) as usize).min(MOST_KEYS).next_multiple_of(128)
}

/// A kernel, by the columns of C that a block of threads has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Warps take windows, or share them, and read rows of B as they come to them.
    Direct(usize),
    /// A block takes a window, and stages rows of B in shared memory.
    Staged(usize),
}

/// Columns of the staged form that reads tiles half as often. N = 512, tiles of 128 and of 256:
/// consph 300 and 271 µs, tsopf 177 and 159, cant 126 and 119, scircuit 217 and 213.
const WIDE: usize = 256;

/// Kernels for windows of so many rows, by the columns of C: up to 32, up to [`MOST_DIRECT`], more, and
/// more that fill tiles of [`WIDE`]. Windows of 8 rows have no staged form, those of more
/// than 16 no direct one.
pub fn forms(height: usize) -> [Form; 4] {
    let (direct, staged) = (Form::Direct, Form::Staged);
    match height {
        8 => [direct(32), direct(64), direct(64), direct(64)],
        16 => [direct(32), direct(64), staged(128), staged(WIDE)],
        32 => [staged(128), staged(128), staged(128), staged(WIDE)],
        _ => [staged(128); 4],
    }
}

/// Which of [`forms`] takes `n` columns of C.
pub fn form_of(n: usize) -> usize {
    // At most a fifth of the tiles may be half empty.
    let halves = n.div_ceil(WIDE / 2);
    let wide = halves % 2 == 0 || halves >= 5;
    usize::from(n > 32) + usize::from(n > MOST_DIRECT) + usize::from(wide)
}

/// With one part in more items 12 blocks of threads a multiprocessor are better than 10, of which
/// each takes less time, as the launch ends with its longest part: N = 128, dc2 101 and 80 µs,
/// mip1 154 and 140, rmat16 37 and 34, N = 512 (6 and 5 blocks) dc2 253 and 215; but webbase (one in 580) 263 and 277,
/// mac_econ (none) 69 and 72.
const FEW_PARTS: usize = 256;

/// Whether the staged kernel for many parts is taken, for windows of so many rows, and so many parts in so many items.
pub fn has_many_parts(height: usize, [parts, items]: [usize; 2]) -> bool {
    height == 16 && parts * FEW_PARTS > items
}

/// Threads of a block of analysis that has so many entries to look at.
pub fn threads_for(entries: i64) -> u32 {
    match entries {
        ..64 => 64,
        64..2048 => 128,
        _ => 256,
    }
}

/// The same for so many windows that have so many entries. Where there are few, one that is far
/// longer than the others decides (dc2: 114,000 of 760,000 entries, 128 threads, 2.6 ms for all).
pub fn threads_of(entries: i64, windows: i64) -> u32 {
    match windows {
        ..16384 => 256,
        _ => threads_for(entries / windows),
    }
}

#[cfg(test)]
mod tests;

//! Shape of the windows of rows of SpMM `window` with 16-bit values (src/format/window.rs): their height, and
//! where long ones are split.

use crate::format::window::{Counts, Rules, BLOCK, MOST_DIRECT, SHAPE};
use crate::reorder;

/// Shape of the clusters of rows: windows of 16 rows, or half of those of 32, that share columns.
pub const CLUSTER: reorder::BlockShape = reorder::BlockShape { height: 16, width: 1 };

/// Maximum number of blocks of a window, or of a part of a split window, that a warp takes: with 128 the
/// last one outlasts the others by 30 µs (rmat16: 48 µs for 32 columns; the prototype 18).
const DIRECT_BLOCKS: usize = 32;
/// Maximum number of blocks of a window, or of a part, for a thread block that stages them two by two.
/// N = 128, 16 rows, with 32 and 64: dc2 152 and 80 µs, mip1 173 and 140, dnn90 44 and 35, rmat16 33.3 and
/// 33.3.
const STAGED_BLOCKS: usize = 64;

/// Rules for a CPU, which reads rows of B through its caches and gains nothing from splitting windows.
pub fn rules_on_host(_: &Counts) -> Rules {
    Rules { height: 16, most: STAGED_BLOCKS, sharing: 1 }
}

/// Rules for `n` columns of B and a device with this number of multiprocessors.
///
/// The plan has been made for `window`; other algorithms are not considered here. The rules follow the 25
/// comparison matrices (docs/algorithms/window.md): a warp takes windows for few columns of C, else a thread block,
/// which stages rows of B.
pub fn rules(counts: &Counts, n: usize, multiprocessors: usize) -> Rules {
    let [of_8, of_16, of_64] = [8, 16, 64].map(|height| counts.reuse(height));
    // If rows share no columns, warps are better that do not wait for each other, with 64 columns at one
    // time, whose part of B may fit into L2: uniform takes 155 µs instead of 194 at N = 128, 594 instead of
    // 791 at 512, cop20k 393 instead of 411; but rmat20 (ρ_16 1.01) 912 instead of 774.
    let alone = of_16 < 1.004;
    if n > MOST_DIRECT && !alone {
        // A second row of tiles must pay. N = 512 with 16, 32 and 64 rows: pwtk (ρ_16 9.0, ρ_64 14.4) 266,
        // 271, 321 µs, cant (5.7, 12.4) 116, 120, 128, tsopf (12.0, 27.2) 181, 153, 164, gupta3 (12.8, 32.8)
        // 99, 88, 98, dnn90 (2.0, 6.4) 119, 83, 77, band256 (15.1, 51.4) 48, 36, 32; N = 128: cant 38, 40,
        // 36, band1024 (15.8, 60.4) 39, 35, 34.
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
    // For 32 columns 8 rows are the best or near it except for pwtk (ρ 6.0, 9.0), tsopf (6.9, 12.0) and the
    // like; for 64 columns 16 rows are.
    let height = if !alone && (n > 32 || of_16 >= 1.35 * of_8) { 16 } else { 8 };
    // Warps share windows if one warp per window leaves the device half empty (16 warps fit a multiprocessor)
    // and each warp still has several blocks: dnn80's 256 windows of 249 blocks take 22.9 µs as split windows
    // and 21.3 as shared ones.
    let windows = counts.rows.div_ceil(height);
    let few = windows.saturating_mul(n.div_ceil(32)) < 8 * multiprocessors;
    let is_long = counts.all_columns(height) >= (16 * BLOCK * windows) as f64;
    let sharing = if few && is_long { 8 } else { 1 };
    Rules { height, most: DIRECT_BLOCKS * sharing, sharing }
}

/// Maximum number of blocks of a part of a split window in the staged form, for this number of tiles of
/// columns.
///
/// Pieces fill the device if windows are few, but the partial sums of each take as long as [`PART`] blocks:
/// band1024 (256 windows of 67 blocks), N = 128, 256 and 512, whole 34, 44 and 82 µs, in two parts 38, 69
/// and 123; dnn90 (64 of 256), N = 512, whole 96 µs, in two parts 77, in four 88.
fn staged_most(blocks: f64, windows: usize, tiles: usize, multiprocessors: usize) -> usize {
    let mean = blocks / windows.max(1) as f64;
    // Speed by the number of windows' parts that a multiprocessor has at one time; four fit.
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
    // Windows that are a little longer than the mean are not split further.
    STAGED_BLOCKS.max((1.25 * mean / best as f64) as usize)
}

/// Number of blocks that take as long as a part's partial sums, from dnn90's times with 1, 2 and 4 parts.
const PART: f64 = 22.0;
/// Maximum number of parts of a window that are tried.
const MOST_PARTS: usize = 8;

/// Maximum number of columns of A that a block of threads marks at one time when it numbers those of a
/// window: 16 KB, and a quarter to a half as much for sums and masks, leave room for 8 such blocks.
const MOST_KEYS: usize = 1 << 17;

/// Number of columns, out of `cols`, that a block of threads marks at one time when it numbers those of a window.
pub fn keys_at_once(cols: i64) -> usize {
    (cols.max(1) as usize).min(MOST_KEYS).next_multiple_of(128)
}

/// Kernel, with the columns of C that a block of threads takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Warps take windows, or share them, and read rows of B as they need them.
    Direct(usize),
    /// A block takes a window, and stages rows of B in shared memory.
    Staged(usize),
}

/// Columns of the staged form with wide tiles, which reads A half as often. N = 512, tiles of 128 and of 256:
/// consph 300 and 271 µs, tsopf 177 and 159, cant 126 and 119, scircuit 217 and 213.
const WIDE: usize = 256;

/// Kernels for windows of `height` rows, by the columns of C: up to 32, up to [`MOST_DIRECT`], more, and more
/// that fill tiles of [`WIDE`]. Windows of 8 rows have no staged form, and those of more than 16 no direct
/// one.
pub fn forms(height: usize) -> [Form; 4] {
    let (direct, staged) = (Form::Direct, Form::Staged);
    match height {
        8 => [direct(32), direct(64), direct(64), direct(64)],
        16 => [direct(32), direct(64), staged(128), staged(WIDE)],
        32 => [staged(128), staged(128), staged(128), staged(WIDE)],
        _ => [staged(128); 4],
    }
}

/// Index in [`forms`] of the kernel for `n` columns of C.
pub fn form_of(n: usize) -> usize {
    // A wide tile may be half empty if there are at least five halves.
    let halves = n.div_ceil(WIDE / 2);
    let wide = halves % 2 == 0 || halves >= 5;
    usize::from(n > 32) + usize::from(n > MOST_DIRECT) + usize::from(wide)
}

/// Maximum number of items per part of a split window for which 12 blocks of threads a multiprocessor are
/// better than 10 faster ones, as the launch ends with its longest part: N = 128, dc2 101 and 80 µs, mip1
/// 154 and 140, rmat16 37 and 34, N = 512 (6 and 5 blocks) dc2 253 and 215; but webbase (one part in 580
/// items) 263 and 277, mac_econ (none) 69 and 72.
const FEW_PARTS: usize = 256;

/// Returns whether the staged kernel for many parts is taken, for windows of `height` rows and this number
/// of parts among the items.
pub fn has_many_parts(height: usize, [parts, items]: [usize; 2]) -> bool {
    height == 16 && parts * FEW_PARTS > items
}

/// Threads of a block of analysis that reads this many entries.
pub fn threads_for(entries: i64) -> u32 {
    match entries {
        ..64 => 64,
        64..2048 => 128,
        _ => 256,
    }
}

/// Threads of a block of analysis for each of these windows with these entries in all. If windows are few,
/// one that is far longer than the others decides (dc2: 114,000 of 760,000 entries, 128 threads, 2.6 ms for
/// all).
pub fn threads_of(entries: i64, windows: i64) -> u32 {
    match windows {
        ..16384 => 256,
        _ => threads_for(entries / windows),
    }
}

#[cfg(test)]
mod tests;

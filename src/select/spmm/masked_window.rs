//! Shape of the windows of rows of SpMM `window` with 32-bit and 64-bit values (src/format/masked_window.rs):
//! their height, where long ones are split, and the tiles of C.

use crate::format::masked_window::Rules;
use crate::format::window::Counts;
use crate::support::Types;
use crate::types::ComputeType;

/// Maximum number of blocks of a window, or of a part of a split window, that a thread block takes.
const MOST_BLOCKS: usize = 128;
/// Maximum number of columns of B for which fewer warps take a window.
const MOST_NARROW: usize = 32;

/// Rules for a CPU, which reads rows of B through its caches and gains nothing from splitting windows.
pub fn rules_on_host(_: &Counts) -> Rules {
    Rules { height: 16, most: MOST_BLOCKS, sharing: 1 }
}

/// Maximum number of blocks of a part of a split window. With up to 32 columns a warp takes a window, and
/// outlasts the others if that is long; parts of 32 blocks cost more to join than they save.
fn most_blocks(n: usize) -> usize {
    if n <= MOST_NARROW {
        MOST_BLOCKS / 2
    } else {
        MOST_BLOCKS
    }
}

/// Rules for `n` columns of B in doubles on a device (kernels/spmm/masked_f64.cuh).
///
/// Measured on 25 comparison matrices, in µs with 16, 32 and 64 rows. 32 columns: cant (ρ_16, ρ_32,
/// ρ_64 = 5.7, 8.5, 12.4) 45.2, 44.6, 43.0; pwtk (9.0, 12.0, 14.4) 89, 92, 97; dnn80 (3.3, 6.4, 12.8) 53, 43,
/// 43; band1024 (16, 31, 60) 79, 81, 66. 128 columns: pwtk 245, 236, 282; consph (3.0, 3.6, 4.6) 306, 336,
/// 461; cant 131, 117, 130; dnn80 170, 120, 113; band256 (15, 29, 51) 64, 42, 41. 8 columns: more than 16
/// rows gain at most 10 %.
pub fn rules_of_doubles(counts: &Counts, n: usize) -> Rules {
    let [of_16, of_32, of_64] = [16, 32, 64].map(|height| counts.reuse(height));
    let gain = if n <= MOST_NARROW { 1.4 } else { 1.3 };
    let height = match n {
        ..=8 => 16,
        _ if of_64 >= 1.85 * of_32 && of_64 >= 6.0 => 64,
        _ if of_32 >= gain * of_16 => 32,
        _ => 16,
    };
    Rules { height, most: most_blocks(n), sharing: 1 }
}

/// Rules for `n` columns of B in singles, or multiplied as TF32.
pub fn rules_of_singles(n: usize) -> Rules {
    // 32 rows gain (10 %) only for 32 columns of dnn90 and dnn80; all other cases lose up to 25 %.
    Rules { height: 16, most: most_blocks(n), sharing: 1 }
}

/// Returns whether narrow tiles of C are faster, for `nnz` entries that have `distinct` columns in their
/// windows, of `cols` columns in all: entries are doubles that share few columns, L2 does not hold a tile of
/// 64 columns of B, and each row of B is read several times. N = 128, tiles of 64 and 32: uniform (16 a row)
/// 747 and 650 µs, cop20k (18) 430 and 390, poisson160 (7) 5335 and 4897; but mac_econ (6) 237 and 258,
/// mc2depi (4) 462 and 534.
fn has_narrow_tiles(types: Types, (nnz, distinct, cols): (usize, usize, usize), l2_bytes: usize) -> bool {
    types.compute == ComputeType::R64F
        && (nnz as f64) < 1.5 * distinct as f64
        && nnz as f64 > 6.5 * cols as f64
        && cols as f64 * (64 * types.x.size()) as f64 > l2_bytes as f64
}

/// Columns of a narrow tile, for rows that share few columns and a B larger than L2.
const NARROW_TILE: usize = 32;

/// Maximum number of columns of a tile of C; `sizes` are those of [`has_narrow_tiles`].
pub fn widest_tile(types: Types, sizes: (usize, usize, usize), l2_bytes: usize) -> usize {
    match has_narrow_tiles(types, sizes, l2_bytes) {
        true => NARROW_TILE,
        false => usize::MAX,
    }
}

/// Index of the kernel for `n` columns of C, among kernels with tiles of these columns, ascending: the one
/// that leaves fewest columns idle, and among several the widest, which reads A least often; the kernel of 8
/// columns serves only up to 8.
pub fn form_of(columns: impl Iterator<Item = usize>, n: usize) -> usize {
    let fits = columns.enumerate().filter(|&(_, columns)| n <= 8 || columns > 8);
    let best = fits.min_by_key(|&(_, columns)| n.div_ceil(columns).saturating_mul(columns + 8));
    best.map_or(0, |(at, _)| at)
}

/// Number of tiles along N of an item that are neighbours in the grid: they read the same part of A at the
/// same time (fp32, N = 512: 1 to 4 %). In doubles one tile is computed for all rows before the next, so that
/// more of B's tile stays in L2: N = 512 16 % in geomean of 8 matrices, cop20k 3006 and 1696 µs.
const NEIGHBOURS: usize = 8;

/// Number of neighbouring tiles out of `tiles`; `doubles` says that sums are doubles.
pub fn neighbours(tiles: usize, doubles: bool) -> usize {
    tiles.min(if doubles { 1 } else { NEIGHBOURS })
}

#[cfg(test)]
mod tests;

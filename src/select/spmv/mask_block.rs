//! Height of the blocks of SpMV `mask_block` (src/format/mask_block.rs), and distribution of slabs of blocks
//! over warps.

use super::sell;
use crate::format::mask_block::{Counts, Rules, MOST_LIMIT_LOG2, MOST_ROWS, MOST_SHARES_LOG2, UNIT};

/// Longest row for which one warp takes eight rows in analysis (kernels/format/mask_block.cu): it needs 0.8
/// µs a block, at most 0.4 ms. With longer rows several warps share the eight, each some 1000 entries.
const MOST_ENTRIES: i64 = 512;

/// Returns whether analysis distributes eight rows over several warps, given the entries of the longest row.
pub fn shares_rows(longest: i64) -> bool {
    longest > MOST_ENTRIES
}

/// Number of warps that a device runs at one time.
pub fn warps_at_once(multiprocessors: usize) -> usize {
    sell::lanes_at_once(multiprocessors) / 32
}

/// Rules for a CPU.
pub fn rules_on_host(counts: &Counts) -> Rules {
    Rules { block_rows: counts.better_rows(), shares_log2: 0, limit_log2: MOST_LIMIT_LOG2 }
}

/// Rules for a matrix with these counts of blocks on a device that runs `warps` warps at one time; `most_cut`
/// bounds the number of split slabs.
pub fn rules(counts: &Counts, warps: usize, most_cut: usize) -> Rules {
    let block_rows = counts.better_rows();
    let (slabs, blocks) = (counts.rows.div_ceil(block_rows), counts.blocks(block_rows));
    let halves = (MOST_ROWS / block_rows).ilog2();
    // A slab is shared by as many warps as the device has room for, while each has more work than it keeps in
    // flight; and if slabs are not many, so that none has more than some 110 blocks of 8 rows. fp32: tsopf
    // 35.8 → 32.3 µs, band1024 37.0 → 31.1; two shares of half of that are slower: gupta3 26.4 → 27.6,
    // band256 12.3 → 13.3.
    let step = UNIT << halves;
    let shares_log2 = (0..MOST_SHARES_LOG2)
        .find(|&log2| {
            let warps_then = slabs << (log2 + 1);
            let (fits, is_long) = (warps_then <= warps, blocks > (slabs << log2) * 14 * step);
            blocks <= (slabs << log2) * step || !(fits || warps_then <= 4 * warps && is_long)
        })
        .unwrap_or(MOST_SHARES_LOG2);
    // A launch ends with its longest slab, which should be of the order of each warp's share; parts of fewer
    // than 64 blocks of 8 rows would cost more in hand-overs, those of 256 take some 20 µs.
    let share = blocks.div_ceil(warps.max(1)).next_power_of_two().ilog2();
    let least = blocks.div_ceil(most_cut.max(1)).next_power_of_two().ilog2();
    let limit_log2 = share.clamp(6 + halves, 8 + halves).max(least).min(MOST_LIMIT_LOG2);
    Rules { block_rows, shares_log2, limit_log2 }
}

#[cfg(test)]
mod tests;

//! How SpMV `dasp` deals its long and medium rows out to the warps of a device (src/format/dasp.rs,
//! kernels/spmv/dasp.cu).

use crate::format::dasp::{medium_rows_over, PLACES, ROWS};

/// Tasks of long rows a multiprocessor from which on a warp has each, and not a block:
/// then there are warps enough, and each has more under way.
const MANY_TASKS: usize = 8;
/// Warps of a multiprocessor, about, and how many times a warp's share of the blocks a
/// unit of medium rows must have that a block works on it instead of a warp.
const RESIDENT_WARPS: usize = 32;
const SHARES: usize = 4;
/// Blocks of such a unit at the least: two for each warp.
const LEAST_BLOCKS: usize = 8;

/// Whether a warp has each of so many tasks of long rows, and not a block of threads.
pub fn takes_tasks_by_warps(tasks: usize, multiprocessors: usize) -> bool {
    tasks >= MANY_TASKS * multiprocessors
}

/// The first units of medium rows, which have many times the blocks of others: the product would wait for their warps,
/// so that blocks of threads work on them. `histogram`: rows of each sort key; `blocks`: regular blocks of all medium
/// rows; `loops`: row-blocks of a unit.
pub fn shared_units(histogram: &[u64], blocks: usize, loops: usize, multiprocessors: usize) -> usize {
    let warps = multiprocessors * RESIDENT_WARPS;
    let least = (SHARES * blocks / warps).max(LEAST_BLOCKS);
    // A unit of rows of this many entries has that many blocks.
    medium_rows_over(histogram, least * PLACES / loops).div_ceil(ROWS * loops)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::dasp::{KEYS, MAX_LEN};

    #[test]
    fn blocks_take_few_tasks_and_warps_many() {
        assert!(!takes_tasks_by_warps(0, 132) && !takes_tasks_by_warps(8 * 132 - 1, 132));
        assert!(takes_tasks_by_warps(8 * 132, 132));
    }

    /// Rows by length, as the histogram has them.
    fn histogram(rows: &[(usize, u64)]) -> Vec<u64> {
        let mut out = vec![0; KEYS];
        rows.iter().for_each(|&(length, count)| out[MAX_LEN + 1 - length] = count);
        out
    }

    #[test]
    fn blocks_share_units_of_rows_that_are_much_longer_than_others() {
        // 800 rows of 200 entries, 50 blocks a unit, before some of 60 and many of 10: a warp's share is 5 blocks, and
        // units of rows of 60 have 15.
        let uneven = histogram(&[(200, 800), (60, 80), (10, 40_000)]);
        let blocks = (800 * 50 + 80 * 15 + 40_000 * 3) / 8;
        assert_eq!(shared_units(&uneven, blocks, 1, 132), 100);
        // Units of twice as many rows have twice the blocks, so that those of rows of 60 are shared, too.
        assert_eq!(shared_units(&uneven, blocks, 2, 132), 55);
        // Units of up to 8 blocks have a warp, however small the others are.
        assert_eq!(shared_units(&histogram(&[(32, 800)]), 0, 1, 132), 0);
        assert_eq!(shared_units(&histogram(&[(33, 800)]), 0, 1, 132), 100);
        // Where all rows are long, four times a warp's share of the blocks is more than any unit has.
        let even = histogram(&[(200, 800_000)]);
        assert_eq!(shared_units(&even, 800_000 * 50 / 8, 1, 132), 0);
        assert_eq!(shared_units(&histogram(&[]), 0, 4, 132), 0);
    }
}

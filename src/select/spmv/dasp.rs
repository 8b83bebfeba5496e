//! Distribution of the long and medium rows of SpMV `dasp` over the warps of a device (src/format/dasp.rs,
//! kernels/spmv/dasp.cu).

use crate::format::dasp::{medium_rows_over, PLACES, ROWS};

/// Tasks of long rows per multiprocessor from which on a warp takes each instead of a block: then there are
/// warps enough, and each has more loads in flight.
const MANY_TASKS: usize = 8;
/// Approximate number of warps of a multiprocessor, and multiple of a warp's share of the blocks from which
/// on a thread block takes a unit of medium rows instead of a warp.
const RESIDENT_WARPS: usize = 32;
const SHARES: usize = 4;
/// Minimum number of blocks of a unit of medium rows that a thread block takes: two for each warp.
const LEAST_BLOCKS: usize = 8;

/// Returns whether a warp takes each task of long rows, instead of a block of threads.
pub fn takes_tasks_by_warps(tasks: usize, multiprocessors: usize) -> bool {
    tasks >= MANY_TASKS * multiprocessors
}

/// Number of the first units of medium rows that thread blocks take, since they have many times the blocks of
/// others and the product would wait for their warps. `histogram` has the rows of each sort key, `blocks` is
/// the number of regular blocks of all medium rows, and `loops` the number of row blocks of a unit.
pub fn shared_units(histogram: &[u64], blocks: usize, loops: usize, multiprocessors: usize) -> usize {
    let warps = multiprocessors * RESIDENT_WARPS;
    let least = (SHARES * blocks / warps).max(LEAST_BLOCKS);
    // A unit of rows with this many entries has that many blocks.
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

    /// Histogram of rows by length.
    fn histogram(rows: &[(usize, u64)]) -> Vec<u64> {
        let mut out = vec![0; KEYS];
        rows.iter().for_each(|&(length, count)| out[MAX_LEN + 1 - length] = count);
        out
    }

    #[test]
    fn blocks_share_units_of_rows_that_are_much_longer_than_others() {
        // 800 rows of 200 entries, 50 blocks a unit, before some of 60 and many of 10: a warp's share is 5
        // blocks, and units of rows of 60 have 15.
        let uneven = histogram(&[(200, 800), (60, 80), (10, 40_000)]);
        let blocks = (800 * 50 + 80 * 15 + 40_000 * 3) / 8;
        assert_eq!(shared_units(&uneven, blocks, 1, 132), 100);
        // Units of twice as many rows have twice the blocks, so that those of rows of 60 are also shared.
        assert_eq!(shared_units(&uneven, blocks, 2, 132), 55);
        // A warp takes a unit of up to 8 blocks, however small the others are.
        assert_eq!(shared_units(&histogram(&[(32, 800)]), 0, 1, 132), 0);
        assert_eq!(shared_units(&histogram(&[(33, 800)]), 0, 1, 132), 100);
        // If all rows are long, no unit has four times a warp's share of the blocks.
        let even = histogram(&[(200, 800_000)]);
        assert_eq!(shared_units(&even, 800_000 * 50 / 8, 1, 132), 0);
        assert_eq!(shared_units(&histogram(&[]), 0, 4, 132), 0);
    }
}

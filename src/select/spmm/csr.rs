//! Distribution of rows and columns over the blocks of a device for SpMM `csr` (kernels/spmm/csr.cu).

/// Warps of a block, as in the paper and in csr.cu.
const WARPS: i64 = 32;
/// Columns of a strip, if there are as many.
pub const STRIP: usize = 4;
/// Minimum number of blocks per multiprocessor of a launch, if there are rows for them: one runs, and another
/// starts as soon as it ends.
const BLOCKS: i64 = 2;
/// Minimum number of rows per warp where blocks share a strip.
const LEAST_ROWS: i64 = 8;

/// Number of the `n` columns of C that a warp takes at a time.
pub fn strip_of(n: usize) -> usize {
    if n < STRIP {
        1
    } else {
        STRIP
    }
}

/// Number of rows of a block: a multiple of [`WARPS`], so that row i belongs to warp i mod 32 in any block.
pub fn rows_of_block(rows: i64, strips: i64, multiprocessors: i64) -> i64 {
    let (blocks, strips) = (BLOCKS * multiprocessors, strips.max(1));
    let parts = ((blocks + strips - 1) / strips).max(1);
    let least = (rows / parts).max(LEAST_ROWS * WARPS);
    (least + WARPS - 1) / WARPS * WARPS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_have_whole_turns_of_their_warps() {
        for (rows, strips, multiprocessors) in
            [(1, 1, 132), (1000, 8, 132), (1 << 20, 1, 132), (100_000, 4096, 132)]
        {
            let of_block = rows_of_block(rows, strips, multiprocessors);
            assert!(of_block % WARPS == 0 && of_block >= LEAST_ROWS * WARPS);
        }
        // With enough strips, a block takes all rows as in the paper.
        assert!(rows_of_block(30_000, 2 * 132, 132) >= 30_000);
        assert!(rows_of_block(30_000, 132, 132) < 30_000);
    }

    #[test]
    fn strips_are_narrow_where_columns_are_few() {
        assert_eq!([1, 3, 4, 100].map(strip_of), [1, 1, STRIP, STRIP]);
    }
}

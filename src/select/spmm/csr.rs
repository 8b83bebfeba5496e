//! How SpMM `csr` deals rows and columns out to the blocks of a device (kernels/spmm/csr.cu).

/// Warps of a block: the paper's, and csr.cu's.
const WARPS: i64 = 32;
/// Columns of a strip where there are so many.
pub const STRIP: usize = 4;
/// Blocks of a multiprocessor that a launch has at least, if there are rows for them: one runs, and one
/// starts as soon as it ends.
const BLOCKS: i64 = 2;
/// Rows of a warp at least, where blocks share a strip.
const LEAST_ROWS: i64 = 8;

/// Columns of C that a warp takes at a time, of so many.
pub fn strip_of(n: usize) -> usize {
    if n < STRIP {
        1
    } else {
        STRIP
    }
}

/// Rows of a block: a multiple of [`WARPS`], so that row i is warp i mod 32's in any of them.
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
        // The paper's form where there are strips for all.
        assert!(rows_of_block(30_000, 2 * 132, 132) >= 30_000);
        assert!(rows_of_block(30_000, 132, 132) < 30_000);
    }

    #[test]
    fn strips_are_narrow_where_columns_are_few() {
        assert_eq!([1, 3, 4, 100].map(strip_of), [1, 1, STRIP, STRIP]);
    }
}

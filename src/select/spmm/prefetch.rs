//! Products whose launch prefetches its operands into L2 (kernels/ptx/prefetch.cuh): those of small matrices, which
//! wait for memory rather than being bound by its bandwidth.

/// Part of L2 that the operands take at most.
const OF_L2: usize = 3;
/// Minimum mean length of rows for which `sell` gains, for operands of more bytes than are few.
const LEAST_MEAN: i64 = 10;
const FEW_BYTES: usize = 4 << 20;

/// Returns whether `window` with 16-bit values prefetches operands of so many bytes.
pub fn of_window(bytes: usize, l2_bytes: usize) -> bool {
    bytes <= l2_bytes / OF_L2
}

/// Returns whether `sell` prefetches operands of so many bytes, for a matrix with so many rows and entries. Where
/// rows are short, each row of B is read so few times that there is little to wait for.
pub fn of_sell(bytes: usize, (rows, nnz): (i64, i64), l2_bytes: usize) -> bool {
    bytes <= FEW_BYTES.min(l2_bytes / OF_L2) || (bytes <= l2_bytes / OF_L2 && nnz >= LEAST_MEAN * rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    const L2: usize = 50 << 20;

    #[test]
    fn small_operands_are_prefetched() {
        assert_eq!([1 << 20, 16 << 20, 17 << 20].map(|bytes| of_window(bytes, L2)), [true, true, false]);
        let sell = |bytes, mean: i64| of_sell(bytes, (10_000, 10_000 * mean), L2);
        assert_eq!([sell(4 << 20, 3), sell(5 << 20, 3)], [true, false]);
        assert_eq!([sell(16 << 20, 10), sell(17 << 20, 10)], [true, false]);
        // On a device with a small L2.
        assert!(!of_sell(4 << 20, (10_000, 30_000), 6 << 20));
    }
}

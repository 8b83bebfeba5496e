//! Products whose launch prefetches its operands into L2 (kernels/ptx/prefetch.cuh): those of small matrices, which
//! wait for memory rather than being bound by its bandwidth. The limits were chosen on 28 matrices on an H200
//! (docs/algorithms/sell.md; row.md for products without a plan); on devices of other generations nothing was measured.

/// Part of L2 that the operands take at most.
const OF_L2: usize = 3;
/// Minimum mean length of rows for which `sell` gains, for operands of more bytes than are few.
const LEAST_MEAN: i64 = 10;
const FEW_BYTES: usize = 4 << 20;
/// Maximum number of bytes of the operands for which `row` without a plan gains, and of B's elements in a row.
const MOST_OF_ROW: usize = 8 << 20;
const ROW_BYTES: usize = 256;
/// Maximum number of columns of C for which `window` gains.
const WINDOW_COLUMNS: usize = 64;
/// Maximum number of elements of C: with more, a launch may have 2^32 threads, and little to gain.
const MOST_ELEMENTS: usize = 1 << 28;

/// Operands of a product.
pub struct Operands {
    /// Rows of op(A), and number of its entries.
    pub rows: i64,
    pub nnz: i64,
    /// Bytes of the arrays of A.
    pub a_bytes: usize,
    /// Rows of op(B), bytes between them, and bytes of an element.
    pub b_rows: i64,
    pub b_row_bytes: usize,
    pub b_size: usize,
    /// Columns of C.
    pub n: usize,
    pub l2_bytes: usize,
}

impl Operands {
    /// Bytes of B that are prefetched: all rows but the last, so that a launch for later columns, which begins
    /// further on in the rows, ends within B.
    pub fn b_bytes(&self) -> usize {
        ((self.b_rows - 1).max(0) as usize).saturating_mul(self.b_row_bytes)
    }

    /// Returns whether operands of at most `most` bytes are read nearly as a whole: neither is B part of much wider
    /// rows, nor can most of its rows be without an entry.
    fn are_small(&self, most: usize) -> bool {
        self.a_bytes.saturating_add(self.b_bytes()) <= most
            && self.b_row_bytes <= 2 * self.n * self.b_size
            && self.b_rows <= self.nnz
            && (self.rows as usize).saturating_mul(self.n) <= MOST_ELEMENTS
    }

    /// Returns whether `window` with 16-bit values prefetches them.
    pub fn of_window(&self) -> bool {
        self.n <= WINDOW_COLUMNS && self.are_small(self.l2_bytes / OF_L2)
    }

    /// Returns whether `row` without a plan and without lists prefetches them.
    pub fn of_row_without_plan(&self) -> bool {
        self.n * self.b_size <= ROW_BYTES && self.are_small((self.l2_bytes / OF_L2).min(MOST_OF_ROW))
    }

    /// Returns whether `sell` prefetches them: not where rows are short, unless all is small, since rows of B are
    /// then read few times each.
    pub fn of_sell(&self) -> bool {
        let most = self.l2_bytes / OF_L2;
        self.are_small(if self.nnz < LEAST_MEAN * self.rows { most.min(FEW_BYTES) } else { most })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: Operands = Operands {
        rows: 10_000,
        nnz: 200_000,
        a_bytes: 1 << 20,
        b_rows: 10_001,
        b_row_bytes: 32,
        b_size: 4,
        n: 8,
        l2_bytes: 50 << 20,
    };

    #[test]
    fn small_operands_are_prefetched() {
        let of = |a_bytes| Operands { a_bytes, ..SMALL };
        assert_eq!([1 << 20, 16 << 20, 17 << 20].map(|bytes| of(bytes).of_window()), [true, true, false]);
        assert_eq!([1 << 20, 16 << 20, 17 << 20].map(|bytes| of(bytes).of_sell()), [true, true, false]);
        let short = |a_bytes| Operands { nnz: 30_000, ..of(a_bytes) };
        assert_eq!([3 << 20, 4 << 20].map(|bytes| short(bytes).of_sell()), [true, false]);
        assert!(!Operands { l2_bytes: 3 << 20, ..SMALL }.of_sell());
        assert!(!Operands { n: 65, b_row_bytes: 260, ..SMALL }.of_window());
    }

    #[test]
    fn what_is_not_read_is_not_prefetched() {
        // B is part of wide rows, has rows for few of which there are entries, or is empty; C is huge.
        let others = [
            Operands { b_row_bytes: 65, ..SMALL },
            Operands { b_rows: 200_001, ..SMALL },
            Operands { nnz: 0, b_rows: 5, ..SMALL },
            Operands { rows: 1 << 26, nnz: 1 << 30, ..SMALL },
        ];
        assert!(others.iter().all(|operands| !operands.of_window() && !operands.of_sell()));
        assert_eq!(SMALL.b_bytes(), 320_000);
        assert_eq!([0, 1].map(|b_rows| Operands { b_rows, ..SMALL }.b_bytes()), [0, 0]);
    }
}

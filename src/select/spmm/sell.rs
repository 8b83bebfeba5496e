//! Distribution of the columns of C over the lanes of a device for SpMM `sell` (src/format/warp_sell.rs,
//! kernels/spmm/sell.cu).

use crate::types::DataType;

/// Number of columns of C up to which analysis counts what rows share, which `sell` needs, before an algorithm is chosen.
/// Of 28 real matrices in fp32 and fp64, `sell` is chosen for 44 of 56 products with 8 columns and for 6 with 32.
pub const FEW_COLUMNS: i64 = 16;
/// log2 of the most lanes of a group, which are as many as a block has slices.
const MOST_GROUP_LOG2: u32 = 2;
/// Elements of a row of B that a lane reads, by kernel.
const ELEMENTS: [usize; 4] = [2, 4, 8, 16];
/// Bytes of a sector, the smallest unit that caches fetch.
const SECTOR: usize = 32;

/// Returns whether a device begins to make slices before an algorithm is chosen. With 8 columns the default takes `sell`
/// for 25 (fp16) and 26 (fp32) of 28 real matrices, but in fp64 for 18, and what is discarded costs 25 to 43 µs.
pub fn mostly_slices(value_type: DataType, n: i64) -> bool {
    n <= 8 && value_type.size() <= 4
}

/// Elements of a row of B that a lane reads, up to a sector, for each kernel for elements of `size` bytes.
pub fn kernels(size: usize) -> &'static [usize] {
    &ELEMENTS[..ELEMENTS.iter().filter(|&&e| e * size <= SECTOR).count()]
}

/// Returns whether SpMV's kernel computes a product with `n` columns and `c_row` elements between rows of C:
/// it reads and writes one contiguous column.
pub fn takes_spmv(n: usize, c_row: i64) -> bool {
    n == 1 && c_row == 1
}

/// Distribution of a number of columns over lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaneShape {
    /// Index in [`kernels`].
    pub elements: usize,
    /// log2 of the lanes of a group, which share an entry.
    pub group_log2: u32,
}

impl LaneShape {
    /// Shape for n columns of elements of `size` bytes: 32 bytes per lane, or as many as hold n. `shares` is
    /// the result of [`Slots::are_shared`].
    pub fn new(n: usize, size: usize, shares: bool) -> Self {
        let halve = shares && size == 4 && n <= 8;
        let most = kernels(if halve { 2 * size } else { size }).len() - 1;
        let elements = ELEMENTS.iter().position(|&e| e >= n).unwrap_or(most).min(most);
        let lanes = n.div_ceil(ELEMENTS[elements]).next_power_of_two();
        LaneShape { elements, group_log2: lanes.trailing_zeros().min(MOST_GROUP_LOG2) }
    }

    /// Elements of a row of B that a lane reads.
    pub fn elements(&self) -> usize {
        ELEMENTS[self.elements]
    }

    /// Number of columns of a tile.
    pub fn columns(&self) -> usize {
        self.elements() << self.group_log2
    }
}

/// Mean entries per row from which on two lanes may share 8 columns of fp32, reading 16 bytes each: this
/// reduces the shuffles that add the sums of an item. Measured ratio of one lane's time to two's: band256
/// 1.68, dnn80 1.41, band1024 1.22, uniform (16 entries) 1.08, si41 1.03; webbase (3) 0.88, dc2 (7) 0.98.
const LONG: i64 = 12;

/// Properties of a layout that determine how its rows are read.
#[derive(Clone, Copy, Debug)]
pub struct Slots {
    pub rows: i64,
    pub entries: i64,
    /// Rows of an item, which share columns.
    pub item_rows: usize,
    /// Numbers of stored values, and of columns stored for them.
    pub slots: usize,
    pub columns: usize,
}

impl Slots {
    /// Returns whether rows are so long that two lanes should share the columns of one. This is false if rows
    /// share columns (cant 0.73, consph 1.08, shipsec1 1.11), or if most slices have one column a step, whose
    /// lanes read adjacent parts of rows of B (hpcg128: 185 µs by one lane, 325 by two).
    pub fn are_shared(&self) -> bool {
        self.item_rows == 1
            && self.entries >= LONG * self.rows
            && 2 * self.columns >= self.slots
            && self.slots > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_dealt_out_by_sectors() {
        let shape = |n, size| {
            let shape = LaneShape::new(n, size, false);
            assert!(shape.columns() >= n.min(16), "{n} {size}");
            (shape.elements(), 1 << shape.group_log2)
        };
        assert_eq!([1, 2, 3, 4, 5, 8, 9, 500].map(|n| shape(n, 8)).map(|s| s.0), [2, 2, 4, 4, 4, 4, 4, 4]);
        assert_eq!([1, 2, 3, 4, 5, 8, 9, 500].map(|n| shape(n, 8)).map(|s| s.1), [1, 1, 1, 1, 2, 2, 4, 4]);
        assert_eq!(
            [4, 7, 9, 16, 17, 33].map(|n| shape(n, 4)),
            [(4, 1), (8, 1), (8, 2), (8, 2), (8, 4), (8, 4)]
        );
        assert_eq!([8, 9, 17, 40].map(|n| shape(n, 2)), [(8, 1), (16, 1), (16, 2), (16, 4)]);
        for (n, size) in [(8, 8), (8, 2), (9, 4), (4, 4)] {
            assert_eq!(LaneShape::new(n, size, true), LaneShape::new(n, size, false));
        }
        let shared = LaneShape::new(7, 4, true);
        assert_eq!((shared.elements(), shared.group_log2), (4, 1));
    }

    #[test]
    fn a_lane_reads_no_more_than_a_sector() {
        assert_eq!([2, 4, 8, 16].map(|size| kernels(size).len()), [4, 3, 2, 1]);
        assert!(takes_spmv(1, 1) && !takes_spmv(1, 2) && !takes_spmv(2, 1));
    }

    #[test]
    fn lanes_share_long_rows_that_have_columns_of_their_own() {
        // Entries per row: uniform 16, webbase 3, dc2 7.
        let uniform =
            Slots { rows: 200_000, entries: 3_200_000, item_rows: 1, slots: 3_300_000, columns: 3_300_000 };
        assert!(uniform.are_shared());
        let mean = |mean: i64| Slots { entries: mean * 200_000, ..uniform }.are_shared();
        assert_eq!([3, 7, 11, 12].map(mean), [false, false, false, true]);
        // Groups of three rows of cant share columns; slices of hpcg128 have one column a step.
        assert!(!Slots { item_rows: 3, ..uniform }.are_shared());
        assert!(!Slots { columns: 3_300_000 / 32, ..uniform }.are_shared());
        assert!(!Slots { rows: 0, entries: 0, item_rows: 1, slots: 0, columns: 0 }.are_shared());
    }
}

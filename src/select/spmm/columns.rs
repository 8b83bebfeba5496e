//! Decides whether a product without a plan reads and writes contiguous columns of B and C in place, or copies them
//! (kernels/spmm/columns.cu). The kernel `decide` answers on the device, from the lengths of all rows and from a
//! sample of their columns; this file makes the limits that it compares them with.
//!
//! The estimates and the measurements that they are from are in docs/algorithms/row.md, "Columns without copies".

use super::row::{COPIED_WITHOUT_PLAN, LEAST_COPIED, NARROW};

/// Conditions under which B and C are taken by columns; kernels/spmm/columns.cu has the same structure. Both grow
/// with the time that the copies would take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct ColumnLimits {
    /// Largest number of entries of a row, which one thread computes.
    pub longest: i64,
    /// Largest mean number of sectors of 32 bytes of B that a warp reads for an entry and a column of B, times
    /// 1,024.
    pub sectors: i64,
}

/// Columns of C that a thread computes at a time, as in the kernel.
const COLUMNS: usize = 8;
/// Rows of a block, as in the kernel.
pub const ROWS: i64 = 512;
/// Rows that a block of `decide` reads at a time, and its most blocks for each multiprocessor.
const DECIDING_ROWS: i64 = 256;
const DECIDING_BLOCKS: i64 = 4;
/// Bytes of a sector of the second-level cache.
const SECTOR: f64 = 32.0;

/// Seconds that launches and the first loads of the way with columns take, the decision among them.
const LAUNCHES: f64 = 10e-6;
/// Maximum number of blocks of a copy that may have nothing to do: eight for each multiprocessor of a large device.
pub const MOST_IDLE_BLOCKS: i64 = 8 * 132;
/// Seconds for the kernels of each further group of columns that is copied at a time, which end at once.
const IDLE_GROUP: f64 = 2e-6;
/// Bytes a second of copies of B to rows and of sums to columns of C, before copies moved 64 rows at a time.
const COPIED: f64 = 2.5e12;
/// Bytes a second of rows of B, read for rows of A with up to [`SHORT`] entries in the mean.
const ROWS_READ: f64 = 7.5e12;
/// Bytes a second of sectors of columns of B.
const SECTORS_READ: f64 = 8.5e12;
/// Mean length of rows above which neighbouring rows find rows of B in the first-level cache, which is up to
/// [`REUSED`] times as fast.
const SHORT: f64 = 8.0;
const REUSED: f64 = 3.0;
/// Seconds for an entry where `row` reads single elements of up to [`NARROW`] columns.
const NARROW_ENTRY: f64 = 20e-12;
/// Seconds for a block that ends at once, of which `row` has one for 64 rows and 32 columns.
const IDLE_BLOCK: f64 = 1e-9;
const IDLE_ELEMENTS: f64 = 64.0 * 32.0;
/// Seconds for an entry of the longest row, which one thread computes.
const LONGEST_ENTRY: f64 = 0.45e-6;
/// Least predicted seconds of the way with copies for which the decision is made.
const LEAST: f64 = 45e-6;

/// Number of blocks along the columns of C, which share its columns: fewer than [`COLUMNS`] allows if the rows
/// suffice for eight blocks a multiprocessor, so that a block finds its entries of A in the first-level cache.
pub fn blocks_of_columns(rows: i64, n: usize, multiprocessors: i64) -> usize {
    let blocks = (rows / ROWS).max(1);
    let wanted = (8 * multiprocessors + blocks - 1) / blocks;
    n.div_ceil(COLUMNS).min(wanted.max(1) as usize)
}

/// Number of blocks of the kernel that decides.
pub fn deciding_blocks(rows: i64, multiprocessors: i64) -> u32 {
    ((rows + DECIDING_ROWS - 1) / DECIDING_ROWS).min(DECIDING_BLOCKS * multiprocessors) as u32
}

impl ColumnLimits {
    /// Limits for a matrix of `rows` × `cols` with `nnz` entries and `n` columns of elements of `size` bytes;
    /// `None` if the product is too small, or is not expected to gain.
    pub fn new(
        (rows, cols, nnz): (i64, i64, i64),
        n: usize,
        size: usize,
        multiprocessors: i64,
    ) -> Option<Self> {
        if n == 0 {
            return None;
        }
        let row_bytes = n as f64 * size as f64;
        let by_rows = match n > NARROW {
            true => {
                let reuse = (nnz as f64 / rows.max(1) as f64 / SHORT).clamp(1.0, REUSED);
                let read = nnz as f64 * row_bytes / (ROWS_READ * reuse);
                2.0 * (rows + cols) as f64 * row_bytes / COPIED + read
            }
            false => nnz as f64 * NARROW_ENTRY,
        };
        if LAUNCHES + by_rows < LEAST {
            return None;
        }
        // Kernels of the way that is not taken are launched once for each group of columns.
        let column_bytes = (rows + cols) as f64 * size as f64;
        let at_once = (COPIED_WITHOUT_PLAN as f64 / column_bytes).max(LEAST_COPIED as f64);
        let groups = if n > NARROW { (n as f64 / at_once).ceil() } else { 1.0 };
        let launches = LAUNCHES + (groups - 1.0) * IDLE_GROUP;
        let left = by_rows - launches - rows as f64 * n as f64 / IDLE_ELEMENTS * IDLE_BLOCK;
        let turns = n.div_ceil(COLUMNS).div_ceil(blocks_of_columns(rows, n, multiprocessors));
        let longest = (left / (LONGEST_ENTRY * turns as f64)) as i64;
        let sectors = (left * SECTORS_READ / (nnz as f64 * n as f64 * SECTOR) * 1024.0) as i64;
        // Lanes that read 32 neighbouring elements read `size` sectors for 32 entries: a limit below that admits no
        // regular matrix.
        (longest > 0 && sectors > (size as i64 * 1024) / 32).then_some(ColumnLimits { longest, sectors })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Limits on a device of 132 multiprocessors.
    fn limits(shape: (i64, i64, i64), n: usize, size: usize) -> Option<ColumnLimits> {
        ColumnLimits::new(shape, n, size, 132)
    }

    #[test]
    fn grids_are_below_the_limits_and_irregular_matrices_above() {
        // The 7-point stencil of 67³ points reads 0.16 (fp32) and 0.28 (fp64) sectors an entry, a mesh of
        // 156,317 points and 2 million entries 0.40 and 0.55, entries at random 1.
        for (size, stencil, mesh) in [(4, 164, 410), (8, 287, 563)] {
            for n in [32, 128] {
                let found = limits((300_763, 300_763, 2_078_407), n, size).unwrap();
                assert!(found.sectors > stencil && found.sectors < 1024, "{found:?}");
                assert!((40..400).contains(&found.longest), "{found:?}");
                let found = limits((156_317, 156_317, 2_118_662), n, size).unwrap();
                assert!(found.sectors < mesh, "{found:?}");
            }
        }
    }

    /// Stiffness matrices have long rows, of which `row` finds many elements in the first-level cache.
    #[test]
    fn long_rows_are_above_the_limits() {
        for (shape, sectors) in [((13_992, 13_992, 619_488), 235), ((8_738, 8_738, 591_904), 338)] {
            let found = limits(shape, 128, 8);
            assert!(found.is_none_or(|limits| limits.sectors < sectors), "{found:?}");
        }
    }

    /// Kernels of groups of columns that are not copied end at once: several groups hardly lower the limits.
    #[test]
    fn groups_that_are_not_copied_cost_little() {
        // 129,164 crossings of roads, 2.6 entries a row: five groups of columns.
        let found = limits((129_164, 129_164, 330_870), 128, 4).unwrap();
        assert!(found.sectors > 550, "{found:?}");
    }

    #[test]
    fn small_products_are_not_examined() {
        for n in [1, 8, 32] {
            assert_eq!(limits((36_519, 36_519, 289_588), n, 4), None);
        }
        assert_eq!(limits((0, 10, 0), 128, 4), None);
        assert_eq!(limits((1_000_000, 1_000_000, 7_000_000), 0, 4), None);
        assert!(limits((1_000_000, 1_000_000, 7_000_000), 8, 4).is_some());
    }

    #[test]
    fn blocks_share_columns_where_rows_are_few() {
        assert_eq!(blocks_of_columns(5_000, 32, 132), 4);
        assert_eq!(blocks_of_columns(300_763, 128, 132), 2);
        assert_eq!(blocks_of_columns(10_000_000, 128, 132), 1);
        assert_eq!(blocks_of_columns(0, 1, 132), 1);
    }
}

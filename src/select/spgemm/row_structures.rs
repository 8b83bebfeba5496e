//! Structures that a device searches the factors of SpGEMM for before it sorts rows into bins, and the
//! decision whether matrix units multiply tiles.

/// Minimum number of products of a row whose column range is computed: tables for fewer are small.
pub const EXTENT_PRODUCTS: i64 = 257;
/// Mean products per row below which no column ranges are computed: that costs as much as the products
/// themselves, and few rows would gain.
const EXTENT_MEAN: f64 = 32.0;
/// Mean entries per row of the right factor from which on groups are formed: a warp reads one row at a time.
const GROUP_MEAN: f64 = 8.0;
/// Maximum number of products of a row in a group, which a single warp takes.
pub const GROUP_WORK: i64 = 1 << 15;

/// Maximum number of products of a row that a single warp takes in any case, although a block could. This
/// limit made same_pattern_multiply take 74 µs in all on HEP-th (ncu), instead of 237 without a limit.
pub const ALONE_WORK: i64 = 2048;
/// Number of warps that take rows alone at one time, twice as many as an H100 has room for;
/// kernels/spgemm/rows.cu has the same constant.
const ALONE_SHARE: i64 = 4096;

/// Maximum number of products of a row that a single warp takes in a product with `products` multiplications:
/// a row with more than a warp's share would determine the time of the whole.
pub fn alone_work(products: i64) -> i64 {
    ALONE_WORK.max(products / ALONE_SHARE)
}

/// Maximum number of products of a row in a shifted run: such rows have few enough entries for tables in
/// shared memory even if they are not taken together.
pub const SHIFTED_RUN_PRODUCTS: i64 = 1024;
/// Minimum number of rows for which shifted runs are searched: with fewer, the launches cost as much as
/// shifted runs save.
pub const SHIFTED_RUN_ROWS: i64 = 4096;

/// Structures that are searched for in the patterns of both factors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowStructures {
    /// Column range of each row of C.
    pub extents: bool,
    /// Groups of neighbouring rows of the left factor that have the same columns.
    pub groups: bool,
    /// Shifted runs: rows of the left factor whose columns are those of the row before, all shifted by the
    /// same amount.
    pub shifted_runs: bool,
}

impl RowStructures {
    /// Structures to search for, given the rows, the entries of the longest row and the mean entries per row
    /// of the left factor, and the latter two of the right factor. `distinct` says that rows of both factors
    /// are sorted and have each column once.
    pub fn new(
        (rows, left_longest, left_mean): (i64, i64, f64),
        (right_longest, right_mean): (i64, f64),
        distinct: bool,
    ) -> Self {
        // True if some row can have that many products, and rows have many in the mean.
        let many = left_longest.saturating_mul(right_longest) >= EXTENT_PRODUCTS
            && left_mean * right_mean >= EXTENT_MEAN;
        let extents = distinct && many && rows > 0;
        RowStructures {
            extents,
            groups: extents && right_mean >= GROUP_MEAN,
            shifted_runs: distinct
                && rows >= SHIFTED_RUN_ROWS
                && left_mean * right_mean <= SHIFTED_RUN_PRODUCTS as f64,
        }
    }
}

/// Minimum product of the mean entries of a tile of A and of a tile of B for which matrix units multiply two
/// tiles in full: cant's 69 · 69 took 742 µs by them and 913 without, dnn80's 51 · 51 9.3 and 9.7 ms, conf5's
/// 37 · 37 549 and 528 µs, dnn90's 26 · 26 8.3 and 6.4 ms.
const DENSE: f64 = 40.0 * 40.0;

/// Returns whether matrix units multiply tiles. `entries` is the product of the factors' numbers of entries,
/// `tiles` that of their numbers of tiles.
pub fn takes_matrix_units(entries: f64, tiles: f64) -> bool {
    entries >= DENSE * tiles
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn structures_are_searched_in_rows_with_work() {
        let none = RowStructures { extents: false, groups: false, shifted_runs: false };
        assert_eq!(RowStructures::new((1000, 100, 100.0), (100, 100.0), false), none);
        assert_eq!(RowStructures::new((0, 0, 0.0), (0, 0.0), true), none);
        // Many short rows; fewer of them; long rows; a right factor of short rows.
        assert_eq!(
            RowStructures::new((SHIFTED_RUN_ROWS, 7, 7.0), (7, 7.0), true),
            RowStructures { shifted_runs: true, ..none }
        );
        assert_eq!(RowStructures::new((SHIFTED_RUN_ROWS - 1, 7, 7.0), (7, 7.0), true), none);
        let long = RowStructures::new((1000, 64, 64.0), (64, 64.0), true);
        assert_eq!(long, RowStructures { extents: true, groups: true, shifted_runs: false });
        assert_eq!(
            RowStructures::new((1000, 64, 64.0), (7, 7.0), true),
            RowStructures { groups: false, ..long }
        );
    }

    #[test]
    fn a_warp_takes_its_share_alone() {
        assert_eq!([0, 8_000_000, 8_392_704].map(alone_work), [2048, 2048, 2049]);
        assert_eq!(alone_work(300_000_000), 73_242);
    }

    #[test]
    fn matrix_units_multiply_full_tiles() {
        assert!(takes_matrix_units(51.0 * 51.0, 1.0) && !takes_matrix_units(26.0 * 26.0, 1.0));
    }
}

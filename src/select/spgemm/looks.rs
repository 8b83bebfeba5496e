//! What a device looks for in the factors of SpGEMM before it sorts rows into bins, and whether its matrix units multiply
//! tiles.

/// Products of a row from which on its range of columns is looked for: below,
/// tables are small.
pub const EXTENT_PRODUCTS: i64 = 257;
/// Mean products of a row below which no ranges are looked for: the look costs as
/// much as the products' own, and few rows would gain.
const EXTENT_MEAN: f64 = 32.0;
/// Mean entries of a row of the right factor from which on groups are formed: a
/// warp looks at one row at a time.
const GROUP_MEAN: f64 = 8.0;
/// Products of a row of a group at the most: a warp takes it alone.
pub const GROUP_WORK: i64 = 1 << 15;

/// Products of a row that a warp takes alone, in any case, where blocks could. Rows of up to so many
/// products made group_multiply take 74 µs in all on HEP-th (ncu), instead of 237 without a limit.
pub const ALONE_WORK: i64 = 2048;
/// Warps that take rows alone at one time, twice as many as an H100 has room for; the same in kernels/spgemm/rows.cu.
const ALONE_SHARE: i64 = 4096;

/// Products of a row that a warp takes alone, where all rows have so many: a row with more would set the time of all.
pub fn alone_work(products: i64) -> i64 {
    ALONE_WORK.max(products / ALONE_SHARE)
}

/// Products of a row of a slide at the most: those have entries for tables in
/// shared memory whether they are taken together or not.
pub const SLIDE_PRODUCTS: i64 = 1024;
/// Rows below which no slides are looked for: their launches cost as much as they
/// spare.
pub const SLIDE_ROWS: i64 = 4096;

/// What is looked for in the patterns of both factors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Looks {
    /// The range of columns of each row of C.
    pub extents: bool,
    /// Groups of rows of the left factor that have the same columns.
    pub groups: bool,
    /// Slides: rows of the left factor whose columns are those of the row before, moved by as much.
    pub slides: bool,
}

impl Looks {
    /// For a left factor of so many rows, and the entries of the longest row and of rows in the mean of both factors;
    /// `distinct`: rows of both are sorted, and have each column once.
    pub fn new(
        (rows, left_longest, left_mean): (i64, i64, f64),
        (right_longest, right_mean): (i64, f64),
        distinct: bool,
    ) -> Self {
        // No row can have as many, or few have.
        let many = left_longest.saturating_mul(right_longest) >= EXTENT_PRODUCTS
            && left_mean * right_mean >= EXTENT_MEAN;
        let extents = distinct && many && rows > 0;
        Looks {
            extents,
            groups: extents && right_mean >= GROUP_MEAN,
            slides: distinct && rows >= SLIDE_ROWS && left_mean * right_mean <= SLIDE_PRODUCTS as f64,
        }
    }
}

/// Entries of a tile of A times those of a tile of B, in the mean, from which on matrix units
/// multiply all places of two tiles: cant's 69 · 69 took 742 µs by them and 913 without, dnn80's
/// 51 · 51 9.3 and 9.7 ms, conf5's 37 · 37 549 and 528 µs, dnn90's 26 · 26 8.3 and 6.4 ms.
const DENSE: f64 = 40.0 * 40.0;

/// Whether matrix units multiply tiles, of factors whose numbers of entries have this product, and whose numbers of
/// tiles have that one.
pub fn takes_matrix_units(entries: f64, tiles: f64) -> bool {
    entries >= DENSE * tiles
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_are_for_rows_with_work() {
        let none = Looks { extents: false, groups: false, slides: false };
        assert_eq!(Looks::new((1000, 100, 100.0), (100, 100.0), false), none);
        assert_eq!(Looks::new((0, 0, 0.0), (0, 0.0), true), none);
        // Short rows in all, many of them; few; long rows; a factor of short rows.
        assert_eq!(Looks::new((SLIDE_ROWS, 7, 7.0), (7, 7.0), true), Looks { slides: true, ..none });
        assert_eq!(Looks::new((SLIDE_ROWS - 1, 7, 7.0), (7, 7.0), true), none);
        let long = Looks::new((1000, 64, 64.0), (64, 64.0), true);
        assert_eq!(long, Looks { extents: true, groups: true, slides: false });
        assert_eq!(Looks::new((1000, 64, 64.0), (7, 7.0), true), Looks { groups: false, ..long });
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

//! Small products of SpGEMM `hash`, where launches and waits take most of the time: their rows are put into
//! bins by their products alone (src/backend/cuda/spgemm/small.rs).

/// Number of bins whose rows are taken by teams of lanes with a table.
pub const TABLES: usize = 4;
/// Maximum number of products of a row in each bin but the last: the bins of tables, and one whose rows are
/// taken by blocks with few threads. Each is also a limit of the numeric phase's bins.
pub const LIMITS: [i64; TABLES + 1] = [16, 64, 128, 512, 1 << 16];
/// Number of bins: those of tables, and two of blocks with bitmaps, with few and with many threads.
pub const BINS: usize = LIMITS.len() + 1;

/// Maximum expected number of multiplications, in all and per row of C in the mean. Products of more
/// multiplications must have shorter rows: with different builds, 75,000 rows of 103 products (finan512) took
/// 440 µs in bins by entries and 490 in these, 36,000 rows of 64 (fe_pwt) 201 and 167.
const EXPECTED: [(f64, f64); 2] = [(3e6, 128.0), (1e7, 40.0)];
/// Maximum number of multiplications of a small product, checked when the device has counted them.
pub const MOST_PRODUCTS: i64 = 15_000_000;
/// Maximum length of the longest row of the left factor: longer rows are split, with their pieces side by
/// side. The second limit is for products of fewer multiplications, whose long rows a block finishes soon.
const LONGEST: [i64; 2] = [256, 512];
/// Maximum number of multiplications of products with such long rows. A product of 1.1 million with rows of
/// up to 424 entries took 391 µs with split rows and 208 as a small one; one of 9.5 million with rows of up
/// to 574 entries took 700 and 825.
const MOST_WITH_LONG_ROWS: i64 = 3_000_000;

/// Returns whether a product is expected to be small, given the rows and entries of both factors and the
/// entries of the left one's longest row.
pub fn is_small(rows: [i64; 2], entries: [i64; 2], longest: i64) -> bool {
    // Expected multiplications if the left factor's entries meet rows of mean length.
    let expected = entries[0] as f64 * entries[1] as f64 / rows[1].max(1) as f64;
    let is_few = |(all, of_row): (f64, f64)| expected <= all.min(of_row * rows[0] as f64);
    rows[0] > 0
        && longest <= LONGEST[1]
        && expected <= most_products(longest) as f64
        && EXPECTED.into_iter().any(is_few)
}

/// Maximum number of multiplications of a small product whose left factor has this longest row.
pub fn most_products(longest: i64) -> i64 {
    if longest > LONGEST[0] {
        MOST_WITH_LONG_ROWS
    } else {
        MOST_PRODUCTS
    }
}

/// Minimum number of products of a row in a bin: one more than the bin before allows.
pub fn least(bin: usize) -> i64 {
    match bin {
        0 => 1,
        _ => LIMITS[bin - 1] + 1,
    }
}

/// Maximum number of rows that a bin can have: all products together bound them.
pub fn most_rows(bin: usize, rows: i64) -> i64 {
    rows.min(MOST_PRODUCTS / least(bin))
}

/// Blocks of 128 threads, and threads of blocks with a bitmap, that a multiprocessor runs at one time.
const TEAM_BLOCKS: u32 = 16;
const WINDOW_THREADS: u32 = 2048;

/// Number of blocks of teams that count a bin whose number of rows only the device knows; `needed` blocks
/// would suffice for the most rows.
pub fn team_blocks(needed: u32, multiprocessors: u32) -> u32 {
    needed.min(multiprocessors * TEAM_BLOCKS)
}

/// Number of blocks with a bitmap, of `threads` threads and for one row each, that count such a bin.
pub fn window_blocks(rows: i64, threads: u32, multiprocessors: u32) -> u32 {
    (rows as u32).min(multiprocessors * WINDOW_THREADS / threads)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_have_no_more_rows_than_products_allow() {
        assert_eq!([0, 1, TABLES, BINS - 1].map(least), [1, 17, 513, (1 << 16) + 1]);
        assert_eq!(
            [0, 1, BINS - 1].map(|bin| most_rows(bin, 1 << 24)),
            [MOST_PRODUCTS, MOST_PRODUCTS / 17, 228]
        );
        assert_eq!(most_rows(1, 1000), 1000);
        assert_eq!([100, 3000].map(|needed| team_blocks(needed, 132)), [100, 2112]);
        let windows = |threads| [100, 3000].map(|rows| window_blocks(rows, threads, 132));
        assert_eq!([windows(256), windows(1024)], [[100, 1056], [100, 264]]);
    }

    #[test]
    fn a_product_of_few_multiplications_is_small() {
        let square = |rows: i64, entries: i64, longest| is_small([rows; 2], [entries; 2], longest);
        // Circuits of 57,000 and 6,833 unknowns, the smaller one with long rows; a road network of 126,000
        // crossings.
        assert!(square(57_735, 275_094, 200) && square(126_146, 323_900, 7));
        assert!(!square(6833, 43_250, 1442) && square(36_519, 289_794, 15) && !square(74_752, 596_992, 55));
        // A pruned layer; few rows with many products each.
        assert!(!is_small([512, 2048], [209_715; 2], 250) && !is_small([18, 50_000], [200_000; 2], 256));
        // Longer rows.
        assert!(square(7000, 69_336, 424) && !square(17_758, 126_150, 574) && !square(100_000, 600_000, 257));
        assert!(square(100_000, 600_000, 256) && most_products(257) < most_products(256));
        assert!(!square(0, 0, 0) && !square(i64::MAX, i64::MAX, 1) && square(1, 1, 1));
    }
}

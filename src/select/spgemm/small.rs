//! Which products of SpGEMM `hash` are so small that launches and waits are most of what they take: their rows go to bins
//! by their products alone (src/backend/cuda/spgemm/small.rs).

/// Bins whose rows teams of lanes with a table take.
pub const TABLES: usize = 4;
/// Products of a row at the most in each bin but the last: those of tables, and one whose rows blocks with few threads
/// take. Each is a limit of the numeric phase's bins, too.
pub const LIMITS: [i64; TABLES + 1] = [16, 64, 128, 512, 1 << 16];
/// Bins: those of tables, and of bitmaps with few and with many threads.
pub const BINS: usize = LIMITS.len() + 1;

/// Multiplications that are expected at the most, in all and of a row of C in the mean. Products of more multiplications
/// must have shorter rows: in runs of different builds 75,000 rows of 103 products (finan512) took 440 µs by bins of
/// entries and 490 by these, 36,000 rows of 64 (fe_pwt) 201 and 167.
const EXPECTED: [(f64, f64); 2] = [(3e6, 128.0), (1e7, 40.0)];
/// Multiplications at the most, of which the device counts how many there are.
pub const MOST_PRODUCTS: i64 = 15_000_000;
/// Entries of the left factor's longest row at the most: more are taken in parts, side by side. The second limit is for
/// products of fewer multiplications, whose long rows a block has soon done.
const LONGEST: [i64; 2] = [256, 512];
/// Multiplications of products with such rows at the most. Of 1.1 million with rows of up to 424 entries the product took
/// 391 µs by parts and 208 as a small one, of 9.5 million with rows of up to 574 700 and 825.
const MOST_WITH_LONG_ROWS: i64 = 3_000_000;

/// Whether a product is expected to be small: of factors with so many rows and entries, and so many entries in the left
/// one's longest row.
pub fn is_small(rows: [i64; 2], entries: [i64; 2], longest: i64) -> bool {
    // The number that comes out if the left factor's entries meet rows of mean length.
    let expected = entries[0] as f64 * entries[1] as f64 / rows[1].max(1) as f64;
    let is_few = |(all, of_row): (f64, f64)| expected <= all.min(of_row * rows[0] as f64);
    rows[0] > 0
        && longest <= LONGEST[1]
        && expected <= most_products(longest) as f64
        && EXPECTED.into_iter().any(is_few)
}

/// Multiplications at the most of a product that is small, with so many entries in the left factor's longest row.
pub fn most_products(longest: i64) -> i64 {
    if longest > LONGEST[0] {
        MOST_WITH_LONG_ROWS
    } else {
        MOST_PRODUCTS
    }
}

/// Products of a row of a bin at the least: more than those before allow.
pub fn least(bin: usize) -> i64 {
    match bin {
        0 => 1,
        _ => LIMITS[bin - 1] + 1,
    }
}

/// Rows of a bin at the most, of so many in all: they have no more than all products.
pub fn most_rows(bin: usize, rows: i64) -> i64 {
    rows.min(MOST_PRODUCTS / least(bin))
}

/// Blocks of 128 threads, and threads of blocks with a bitmap, that a multiprocessor runs at one time.
const TEAM_BLOCKS: u32 = 16;
const WINDOW_THREADS: u32 = 2048;

/// Blocks of teams that count a bin of which the device alone knows how many rows it has, and for which so many would
/// be needed at the most.
pub fn team_blocks(needed: u32, multiprocessors: u32) -> u32 {
    needed.min(multiprocessors * TEAM_BLOCKS)
}

/// The same of blocks of so many threads with a bitmap, a row each.
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
        // Circuits of 57,000 and 6,833 unknowns, the smaller one with long rows; roads of 126,000 crossings.
        assert!(square(57_735, 275_094, 200) && square(126_146, 323_900, 7));
        assert!(!square(6833, 43_250, 1442) && square(36_519, 289_794, 15) && !square(74_752, 596_992, 55));
        // A pruned layer; few rows with many products each.
        assert!(!is_small([512, 2048], [209_715; 2], 250) && !is_small([18, 50_000], [200_000; 2], 256));
        // Rows that are longer.
        assert!(square(7000, 69_336, 424) && !square(17_758, 126_150, 574) && !square(100_000, 600_000, 257));
        assert!(square(100_000, 600_000, 256) && most_products(257) < most_products(256));
        assert!(!square(0, 0, 0) && !square(i64::MAX, i64::MAX, 1) && square(1, 1, 1));
    }
}

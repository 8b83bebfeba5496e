//! Decision whether SpGEMM `hash` keeps a map of the products, by which a device computes new values
//! (kernels/spgemm/map.cu), and how it builds the map.

/// Maximum ratio of a map's bytes to those of C, with the factors' bytes allowed on top: for doubles this is
/// up to some four and a half products an entry. With a map, numeric phases take 0.68 of the time without one
/// for cop20k (3.9 products an entry). It does not pay for hpcg128 (5.8), whose shifted runs look nothing up
/// either and take 0.81 of a map's time, nor for conf5 (6.4) and cant (18), whose groups of rows look up a
/// slot once for nine products.
const MOST_OF_C: u64 = 3;

/// Returns whether a map is worth its memory, given the bytes of the map, of C and of the factors.
pub fn pays(map: u64, c: u64, factors: u64) -> bool {
    map <= c.saturating_mul(MOST_OF_C).saturating_add(factors)
}

/// Returns whether a map fits into the free memory (`room`), half of which is left to the caller's next
/// arrays.
pub fn fits(map: u64, room: u64) -> bool {
    map <= room / 2
}

/// Returns whether entries of C have so few products that the kernel for few is the faster one: it takes 0.89
/// of the other's time at 1.7 products an entry (cora_features, finan512), 0.97 at 2.5 (fe_pwt), 1.00 at 4.2
/// (bcsstk25) and 1.06 at 9.4 (lp_maros_r7).
pub fn have_few(products: i64, entries: i64) -> bool {
    products <= entries.saturating_mul(4)
}

/// Minimum number of products of a row whose lists a block builds instead of a warp; kernels/spgemm/map.cu
/// has the same constant.
pub const LONG_ROW: i64 = 8192;

/// Lanes that take a row of the right factor when lists are built, given the lanes that take one elsewhere.
/// Rows of 16 entries take half the time with 32 lanes.
pub fn lanes(part: i32) -> i32 {
    if part <= 8 {
        part
    } else {
        32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_products_an_entry_pay() {
        // Products and entries of squared matrices, and entries of the factors.
        let map = |products: u64, entries: u64, nnz: u64| {
            pays(8 * products + 4 * entries, 12 * entries, 2 * 12 * nnz)
        };
        assert!(map(8_391_681, 4_720_129, 2_100_225));
        assert!(map(198_711_040, 101_326_720, 28_518_400));
        assert!(map(122_381_680, 67_009_043, 494_132));
        assert!(!map(313_454_421, 17_508_231, 4_325_625));
        assert!(map(40_951_656, 10_486_176, 2_207_592));
        assert!(!map(1_489_355_288, 254_840_104, 55_742_968));
        assert!(!map(74_760_192, 11_649_024, 1_916_928));
        assert!(pays(u64::MAX, u64::MAX, 1));
    }

    #[test]
    fn few_products_are_four_an_entry() {
        assert!(have_few(7_654_100, 4_440_676) && have_few(4, 1) && have_few(0, 0));
        assert!(!have_few(5, 1) && !have_few(6_271_682, 664_080));
    }

    #[test]
    fn half_of_the_memory_is_left_to_the_caller() {
        assert!(fits(50, 100) && !fits(51, 100) && fits(0, 0) && !fits(1, 1));
    }

    #[test]
    fn lists_of_rows_of_some_length_are_made_by_warps() {
        assert_eq!([4, 8, 16, 32].map(lanes), [4, 8, 32, 32]);
    }
}

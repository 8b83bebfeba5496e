//! Whether SpGEMM `hash` keeps a map of the products for new values on a device (kernels/spgemm/map.cu), and how it makes
//! one.

/// Bytes of a map over those of C, up to which it is made, where the factors' come on top: with
/// doubles up to some four and a half products an entry.
const MOST_OF_C: u64 = 3;
/// The same where most rows are taken one by one: up to some six products an entry.
const MOST_OF_C_ALONE: u64 = 4;
/// Bytes that a map of such rows may take in any case, if C has entries enough for all multiprocessors.
const SMALL: u64 = 64 << 20;
const ENTRIES_OF_SMALL: u64 = 1 << 15;

/// Bytes of a map, of C, and of both factors.
#[derive(Clone, Copy)]
pub struct Sizes {
    pub map: u64,
    pub c: u64,
    pub factors: u64,
    /// Entries of C.
    pub entries: u64,
    /// At least half of the rows are taken one by one, not in groups or slides that look a place up for several products.
    pub alone: bool,
}

impl Sizes {
    /// Whether the map is worth its memory.
    pub fn pays(&self) -> bool {
        let up_to = |times: u64| self.map <= self.c.saturating_mul(times).saturating_add(self.factors);
        let is_small = self.map <= SMALL && self.entries >= ENTRIES_OF_SMALL;
        up_to(MOST_OF_C) || self.alone && (up_to(MOST_OF_C_ALONE) || is_small)
    }
}

/// Whether there is memory for a map of so many bytes, with so many left: the caller's next arrays come before it.
pub fn fits(map: u64, room: u64) -> bool {
    map <= room / 2
}

/// Products of a row from which on a block makes its lists; kernels/spgemm/map.cu has the same.
pub const LONG_ROW: i64 = 8192;

/// Lanes that take a row of the right factor where lists are made, of those that take one elsewhere. Rows of 16 entries
/// take half the time with 32 lanes.
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
        // Products and entries of matrices times themselves, and entries of the factors.
        let sizes = |products: u64, entries: u64, nnz: u64, alone| Sizes {
            map: 8 * products + 4 * entries,
            c: 12 * entries,
            factors: 2 * 12 * nnz,
            entries,
            alone,
        };
        let pays = |products, entries, nnz| sizes(products, entries, nnz, false).pays();
        assert!(pays(8_391_681, 4_720_129, 2_100_225));
        assert!(pays(198_711_040, 101_326_720, 28_518_400));
        assert!(pays(122_381_680, 67_009_043, 494_132));
        assert!(!pays(313_454_421, 17_508_231, 4_325_625));
        assert!(pays(40_951_656, 10_486_176, 2_207_592));
        assert!(!pays(1_489_355_288, 254_840_104, 55_742_968));
        assert!(!pays(74_760_192, 11_649_024, 1_916_928));
        // 5.7 and 9.4 products an entry; 18 × 18 entries of 14,000.
        for (alone, [one, other]) in [(false, [false; 2]), (true, [true; 2])] {
            assert_eq!(sizes(11_295_343, 1_971_009, 171_903, alone).pays(), one);
            assert_eq!(sizes(6_271_682, 664_080, 144_848, alone).pays(), other);
        }
        assert!(!sizes(3_454_509, 246, 558_985, true).pays());
        assert!(sizes(1 << 60, u64::MAX / 12, 1, false).pays());
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

//! Which algorithm of SpGEMM, where the caller leaves it open: tiles, where most rows are such
//! that `hash` has a sum for each column of their range, or has many products that are scattered,
//! and tiles hold so many entries that a pair of them stands for many products.
//!
//! Two tiles with a and b entries have a · b / 16 products in the mean, where entries are spread
//! evenly. On an H100, conversion and search included, a pair takes 0.2 to 0.3 ns where tiles have
//! about 16 entries, 0.4 to 1.8 ns where they are fuller; `hash` takes 4 to 14 ps a product in rows
//! with a sum for each column, 30 in rows of many scattered products, and 3 in groups of rows with
//! the same columns, which no tiles of the measured ones beat.

/// What is known of a product after `hash` has looked at it.
#[derive(Clone, Copy, Debug)]
pub struct Facts {
    /// Rows of the product.
    pub rows: i64,
    /// Those with many products for each column of their range.
    pub wide_rows: i64,
    /// Others with more products than a warp takes alone.
    pub scattered_rows: i64,
    /// Multiplications.
    pub products: i64,
    /// Entries of each factor.
    pub entries: [i64; 2],
}

/// Multiplications below which a second look at the patterns is not worth its time: band64's 67
/// million take 0.7 ms either way.
pub const LEAST_PRODUCTS: i64 = 500_000_000;
/// Products of a pair of tiles from which on they are taken. 164 (dnn80) are a tie.
const LEAST_OF_PAIR: f64 = 200.0;
/// The same where rows are not wide, but scattered: 0.3 ns a pair over 30 ps a product are 10.
const LEAST_OF_SCATTERED: f64 = 12.0;

impl Facts {
    /// Whether tiles may be better, so that they are worth counting.
    pub fn may_suit_tiles(&self) -> bool {
        self.products >= LEAST_PRODUCTS && 2 * (self.wide_rows + self.scattered_rows) >= self.rows
    }

    /// Whether they are, with so many of each factor.
    pub fn suits_tiles(&self, tiles: [usize; 2]) -> bool {
        let least = if 2 * self.wide_rows >= self.rows { LEAST_OF_PAIR } else { LEAST_OF_SCATTERED };
        self.may_suit_tiles() && self.of_pair(tiles) >= least
    }

    /// Products of a pair of tiles, about.
    pub fn of_pair(&self, tiles: [usize; 2]) -> f64 {
        let fill = |factor: usize| self.entries[factor] as f64 / tiles[factor].max(1) as f64;
        fill(0) * fill(1) / 16.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A · A in fp64 on an H100: rows, those that are wide, products, entries, tiles; microseconds
    /// of `hash`, and of `tile` with its conversions (`hash` of gupta3, tsopf and band256 is of before
    /// tiles were chosen).
    const MEASURED: [(&str, [i64; 5], [f64; 2]); 19] = [
        ("mc2depi", [525_825, 0, 8_391_681, 2_100_225, 192_681], [322.0, 1678.0]),
        ("cant", [62_451, 0, 313_454_421, 4_325_625, 62_600], [916.0, 1635.0]),
        ("consph", [83_700, 0, 490_978_800, 6_342_336, 446_643], [1393.0, 11_443.0]),
        ("pwtk", [217_740, 0, 627_544_800, 11_675_808, 121_750], [1545.0, 1990.0]),
        ("shipsec1", [140_454, 0, 403_636_824, 7_518_564, 293_693], [1122.0, 5353.0]),
        ("conf5", [49_152, 0, 74_760_192, 1_916_928, 52_233], [742.0, 1320.0]),
        ("webbase", [1_000_005, 0, 8_186_759, 2_872_605, 1_689_768], [1548.0, 22_800.0]),
        ("rmat16", [65_536, 0, 122_381_680, 494_132, 449_211], [6442.0, 66_707.0]),
        ("cop20k", [120_000, 0, 40_951_656, 2_207_592, 2_006_902], [1070.0, 167_444.0]),
        ("scircuit", [170_998, 0, 8_273_358, 954_252, 298_204], [710.0, 8896.0]),
        ("mac_econ", [206_500, 0, 7_057_406, 1_207_313, 402_438], [491.0, 7607.0]),
        ("si41", [185_193, 23_520, 3_069_708_051, 13_660_545, 870_099], [96_348.0, 48_351.0]),
        ("gupta3", [16_783, 16_783, 6_889_266_667, 9_635_799, 86_188], [97_640.0, 18_156.0]),
        ("tsopf", [38_120, 37_929, 6_414_284_892, 15_490_745, 99_619], [49_352.0, 6352.0]),
        ("band64", [16_384, 16_384, 66_999_616, 1_047_552, 5115], [678.0, 654.0]),
        ("band256", [16_384, 16_384, 1_066_751_232, 4_177_920, 17_336], [4697.0, 963.0]),
        ("dnn90", [4096, 4096, 688_077_421, 1_678_790, 65_578], [3432.0, 7721.0]),
        ("dnn80", [4096, 4096, 2_748_133_681, 3_355_041, 65_528], [10_607.0, 10_981.0]),
        ("hpcg128", [2_097_152, 0, 1_489_355_288, 55_742_968, 14_000_000], [9133.0, 48_738.0]),
    ];

    /// 24 µs of band64 are less than looking costs.
    const LEFT: [&str; 1] = ["band64"];

    impl Facts {
        /// Of a measured product; only rows of si41 are scattered and have many products.
        fn measured(matrix: &str, [rows, wide_rows, products, entries, _]: [i64; 5]) -> Facts {
            let scattered_rows = if matrix == "si41" { rows - wide_rows } else { 0 };
            Facts { rows, wide_rows, scattered_rows, products, entries: [entries; 2] }
        }
    }

    #[test]
    fn the_better_one_is_chosen() {
        for (matrix, numbers, [hash, tile]) in MEASURED {
            let suits = Facts::measured(matrix, numbers).suits_tiles([numbers[4] as usize; 2]);
            let chosen = if suits { tile } else { hash };
            let best = hash.min(tile);
            assert!(chosen == best || LEFT.contains(&matrix), "{matrix}: {chosen} of {best}");
        }
    }

    #[test]
    fn tiles_are_counted_where_they_may_be_chosen() {
        let counted =
            MEASURED.iter().filter(|(matrix, numbers, _)| Facts::measured(matrix, *numbers).may_suit_tiles());
        let counted: Vec<_> = counted.map(|(matrix, ..)| *matrix).collect();
        assert_eq!(counted, ["si41", "gupta3", "tsopf", "band256", "dnn90", "dnn80"]);
        let nothing = Facts { rows: 0, wide_rows: 0, scattered_rows: 0, products: 0, entries: [0; 2] };
        assert!(!nothing.suits_tiles([0; 2]));
    }
}

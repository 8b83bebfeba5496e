//! Choice between the SpGEMM algorithms `hash` and `tile` where the caller leaves it open. Tiles are taken
//! where most rows are wide (`hash` keeps a sum for each column of their range) or have many scattered
//! products, and where tiles hold so many entries that a pair of them stands for many products.
//!
//! Two tiles with a and b entries have a · b / 16 products in the mean, if entries are spread evenly. On an
//! H100, conversion and search included, a pair takes 0.2 to 0.3 ns for tiles of about 16 entries, and 0.4 to
//! 1.8 ns for fuller ones. `hash` takes 4 to 14 ps a product in rows with a sum for each column, 30 in rows
//! of many scattered products, and 3 in groups of rows with the same columns, where no measured tiles were
//! faster.
//!
//! For fewer than [`LEAST_PRODUCTS`] products, this choice is made before either algorithm has gathered more
//! than the lengths of rows, since counting takes as long as a small product: times are predicted from counts
//! of tiles ([`Counts`]), where the [`Lengths`] leave the choice open. The constants of `tile` are fitted to
//! 1,802 sampled products (train/spgemm.py); those of `hash` were fitted likewise before long rows were
//! split, and are now set by the 29 products of the tests here. All are times of an H100, which [`Ratios`]
//! scale to the device in use.

pub mod bins;
pub mod columns;
pub mod dense;
pub mod map;
pub mod row_structures;
pub mod rows;
pub mod small;
pub mod tiles;
pub mod wide;
pub mod windows;

use super::device::Ratios;

/// Row lengths of both factors.
#[derive(Clone, Copy, Debug)]
pub struct Lengths {
    /// Rows of the product, rows of the right factor, and columns of the product.
    pub shape: [i64; 3],
    /// Stored entries of each factor.
    pub entries: [i64; 2],
    /// Entries of the longest row of each factor.
    pub longest: [i64; 2],
}

/// Pattern statistics that are counted where row lengths leave the choice open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counts {
    /// Number of tiles of 16 × 16 in each factor.
    pub tiles: [u64; 2],
    /// Largest number of tiles in 16 rows of the left factor.
    pub most_tiles: u64,
    /// Number of pairs of a tile of the left factor and one of the right factor that it meets.
    pub pairs: u64,
    /// Number of multiplications.
    pub products: u64,
    /// Multiplications of the row with the most.
    pub most_products: u64,
}

impl Lengths {
    /// Maximum number of rows and columns of factors for which tiles are counted: with more, tiles were never
    /// faster in measurements.
    pub const MOST: i64 = 1 << 17;
    /// Maximum number of entries in a row of the left factor for which tiles are counted: for longer rows of
    /// dense matrices the work of tiles grows with the square of the length.
    pub const LONGEST: i64 = 1 << 14;
    /// Minimum time of `hash`, in microseconds and approximately, for its longest row and all products: for
    /// small products `tile` takes 200 more.
    const LEAST_US: f64 = 115.0;

    /// Returns whether tiles may be faster, so that counting them (30 to 115 µs) is worthwhile.
    pub fn may_suit_tiles(&self, device: &Ratios) -> bool {
        let products = self.entries[0] as f64 * self.entries[1] as f64 / self.shape[1].max(1) as f64;
        // A product takes longer if there is at least one for each element of C.
        let product = if products >= self.shape[0] as f64 * self.shape[2] as f64 { 4e-6 } else { 2.5e-6 };
        let product = of_product(product, device);
        // Expected products if entries meet by chance, and those of the longest rows if they meet each other.
        let of_longest = self.longest[0] as f64 * self.longest[1] as f64;
        // Matrix units multiply nearly dense factors in any case.
        let is_dense = || {
            dense::Wanted::expected(self.shape, self.entries)
                .is_some_and(|wanted| wanted.panels(device).is_some())
        };
        self.shape.iter().all(|&extent| extent <= Self::MOST)
            && self.longest[0] <= Self::LONGEST
            && self.longest[1] <= Self::MOST
            && 0.1 * self.longest[0].min(1000) as f64 + product * (products + of_longest) >= Self::LEAST_US
            && !is_dense()
    }

    /// Predicted microseconds of all phases of `hash` and of `tile` in fp64, on a device with these ratios to
    /// an H100.
    pub fn predicted(&self, counts: &Counts, device: &Ratios) -> [f64; 2] {
        let Counts { tiles, most_tiles, pairs, products, most_products } = *counts;
        let [pairs, products, most_products] = [pairs, products, most_products].map(|count| count as f64);
        // Loads of short rows of the right factor wait for each other, within a piece of a split row.
        let in_turn = self.longest[0].min(HASH_ENTRIES_IN_TURN) as f64;
        let longest = (HASH_PRODUCT_OF_LONGEST * most_products)
            .min(HASH_ENTRY_OF_LONGEST * in_turn + HASH_MORE_OF_LONGEST * most_products);
        let hash = HASH_BASE
            + longest
            + of_product(HASH_PRODUCT, device) * products
            + HASH_ENTRY / device.cycles * self.entries[0] as f64;
        // Upper bound of the number of tiles of C.
        let of_c = pairs.min(self.shape[0] as f64 * self.shape[2] as f64 / 256.0);
        let tile = TILE_BASE
            + TILE_OF_LONGEST * most_tiles as f64
            + of_pair(TILE_PAIR, device) * pairs
            + TILE_TILE / device.memory * (tiles[0] as f64 + tiles[1] as f64) / 2.0
            + TILE_PRODUCT / device.cycles * products
            + TILE_OF_C / device.memory * of_c;
        [hash, tile]
    }

    /// Ratio of `hash`'s predicted time to that of `tile`, if `hash` takes longer. Larger products are left
    /// to [`ProductStatistics`].
    pub fn gain(&self, counts: &Counts, device: &Ratios) -> Option<f64> {
        let [hash, tile] = self.predicted(counts, device);
        (self.may_suit_tiles(device) && counts.products < LEAST_PRODUCTS as u64 && hash > tile)
            .then_some(hash / tile)
    }
}

/// Multiply-adds of a pair of 16 × 16 tiles, zeros included.
const OF_PAIR: f64 = 4096.0;

/// Microseconds per product by plain instructions on a device, from those on an H100.
fn of_product(us: f64, device: &Ratios) -> f64 {
    us / device.cycles + 1e6 * device.doubles[0]
}

/// Microseconds per pair of tiles by matrix units on a device, from those on an H100.
fn of_pair(us: f64, device: &Ratios) -> f64 {
    us / device.cycles + 1e6 * OF_PAIR * device.doubles[1]
}

// Microseconds of `hash`: of a call without work; of the longest row (per product while an entry has few,
// else per entry, up to the length of a piece of a split row, and per product); per product; per entry of the
// left factor.
const HASH_BASE: f64 = 200.0;
const HASH_PRODUCT_OF_LONGEST: f64 = 0.01;
const HASH_ENTRY_OF_LONGEST: f64 = 0.25;
const HASH_ENTRIES_IN_TURN: i64 = 256;
const HASH_MORE_OF_LONGEST: f64 = 2.1e-3;
const HASH_PRODUCT: f64 = 4e-6;
const HASH_ENTRY: f64 = 48e-6;
// Microseconds of `tile`: of a call without work; per tile of the row of tiles with the most; per pair of
// tiles that meet; per tile of a factor; per product; per tile of C.
const TILE_BASE: f64 = 340.0;
const TILE_OF_LONGEST: f64 = 4.3;
const TILE_PAIR: f64 = 240e-6;
const TILE_TILE: f64 = 2.8e-3;
const TILE_PRODUCT: f64 = 1.8e-6;
const TILE_OF_C: f64 = 860e-6;

/// Statistics of a product after `hash` has examined its rows.
#[derive(Clone, Copy, Debug)]
pub struct ProductStatistics {
    /// Rows of the product.
    pub rows: i64,
    /// Rows with many products for each column of their range.
    pub wide_rows: i64,
    /// Other rows with more products than a warp takes alone.
    pub scattered_rows: i64,
    /// Number of multiplications.
    pub products: i64,
    /// Stored entries of each factor.
    pub entries: [i64; 2],
}

/// Number of multiplications below which further statistics of the patterns are not worth their time:
/// band64's 67 million take 0.7 ms either way.
pub const LEAST_PRODUCTS: i64 = 500_000_000;
/// Minimum number of products per pair of tiles for which `tile` is taken where rows are wide. 164 (dnn80)
/// are a tie.
const LEAST_OF_PAIR: f64 = 200.0;
/// Minimum number of products per pair of tiles where rows are scattered: 0.3 ns a pair over 30 ps a product
/// are 10.
const LEAST_OF_SCATTERED: f64 = 12.0;
/// Microseconds per product that these limits assume, in wide rows and in scattered ones.
const PRODUCTS_OF_ROWS: [f64; 2] = [4.5e-6, 30e-6];

/// Minimum number of products per pair of tiles for which `tile` is taken on a device: as many as `hash`
/// computes in the time of a pair. `product` is their time in microseconds on an H100.
fn least_of_pair(on_h100: f64, product: f64, device: &Ratios) -> f64 {
    let pair = on_h100 * product;
    on_h100 * (of_pair(pair, device) / pair) / (of_product(product, device) / product)
}

impl ProductStatistics {
    /// Returns whether tiles may be faster, so that they are worth counting.
    pub fn may_suit_tiles(&self) -> bool {
        self.products >= LEAST_PRODUCTS && 2 * (self.wide_rows + self.scattered_rows) >= self.rows
    }

    /// Returns whether tiles are faster on a device, given their number in each factor.
    pub fn suits_tiles(&self, tiles: [usize; 2], device: &Ratios) -> bool {
        let [wide, scattered] = PRODUCTS_OF_ROWS;
        let least = match 2 * self.wide_rows >= self.rows {
            true => least_of_pair(LEAST_OF_PAIR, wide, device),
            false => least_of_pair(LEAST_OF_SCATTERED, scattered, device),
        };
        self.may_suit_tiles() && self.of_pair(tiles) >= least
    }

    /// Approximate number of products per pair of tiles.
    pub fn of_pair(&self, tiles: [usize; 2]) -> f64 {
        let fill = |factor: usize| self.entries[factor] as f64 / tiles[factor].max(1) as f64;
        fill(0) * fill(1) / 16.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A · A in fp64 on an H100: rows, wide rows, products, entries, tiles; microseconds of `hash`, and of
    /// `tile` with its conversions (`hash` of gupta3, tsopf and band256 was measured before tiles were
    /// chosen).
    const MEASURED: [(&str, [i64; 5], [f64; 2]); 19] = [
        ("mc2depi", [525_825, 0, 8_391_681, 2_100_225, 192_681], [323.0, 1678.0]),
        ("cant", [62_451, 0, 313_454_421, 4_325_625, 62_600], [1065.0, 1635.0]),
        ("consph", [83_700, 0, 490_978_800, 6_342_336, 446_643], [1614.0, 11_443.0]),
        ("pwtk", [217_740, 0, 627_544_800, 11_675_808, 121_750], [1471.0, 1990.0]),
        ("shipsec1", [140_454, 0, 403_636_824, 7_518_564, 293_693], [1103.0, 5353.0]),
        ("conf5", [49_152, 0, 74_760_192, 1_916_928, 52_233], [753.0, 1320.0]),
        ("webbase", [1_000_005, 0, 8_186_759, 2_872_605, 1_689_768], [1079.0, 22_800.0]),
        ("rmat16", [65_536, 0, 122_381_680, 494_132, 449_211], [6317.0, 66_707.0]),
        ("cop20k", [120_000, 0, 40_951_656, 2_207_592, 2_006_902], [995.0, 167_444.0]),
        ("scircuit", [170_998, 0, 8_273_358, 954_252, 298_204], [549.0, 8896.0]),
        ("mac_econ", [206_500, 0, 7_057_406, 1_207_313, 402_438], [479.0, 7607.0]),
        ("si41", [185_193, 23_520, 3_069_708_051, 13_660_545, 870_099], [96_348.0, 48_351.0]),
        ("gupta3", [16_783, 16_783, 6_889_266_667, 9_635_799, 86_188], [97_640.0, 18_156.0]),
        ("tsopf", [38_120, 37_929, 6_414_284_892, 15_490_745, 99_619], [49_352.0, 6352.0]),
        ("band64", [16_384, 16_384, 66_999_616, 1_047_552, 5115], [678.0, 654.0]),
        ("band256", [16_384, 16_384, 1_066_751_232, 4_177_920, 17_336], [4697.0, 963.0]),
        ("dnn90", [4096, 4096, 688_077_421, 1_678_790, 65_578], [3044.0, 7721.0]),
        ("dnn80", [4096, 4096, 2_748_133_681, 3_355_041, 65_528], [4535.0, 10_981.0]),
        ("hpcg128", [2_097_152, 0, 1_489_355_288, 55_742_968, 14_000_000], [8692.0, 48_738.0]),
    ];

    /// The 24 µs that band64 would gain are less than counting costs.
    const LEFT: [&str; 1] = ["band64"];

    impl ProductStatistics {
        /// Statistics of a measured product; only rows of si41 are scattered with many products.
        fn measured(matrix: &str, [rows, wide_rows, products, entries, _]: [i64; 5]) -> ProductStatistics {
            let scattered_rows = if matrix == "si41" { rows - wide_rows } else { 0 };
            ProductStatistics { rows, wide_rows, scattered_rows, products, entries: [entries; 2] }
        }
    }

    #[test]
    fn the_better_one_is_chosen() {
        for (matrix, numbers, [hash, tile]) in MEASURED {
            let suits = ProductStatistics::measured(matrix, numbers)
                .suits_tiles([numbers[4] as usize; 2], &Ratios::SAME);
            let chosen = if suits { tile } else { hash };
            let best = hash.min(tile);
            assert!(chosen == best || LEFT.contains(&matrix), "{matrix}: {chosen} of {best}");
        }
    }

    /// A · A or A · Aᵀ in fp64 on an H100, from tables of benches/training: shape, entries, entries of the
    /// longest rows; tiles, most tiles in 16 rows, pairs, products, most products of a row; microseconds of
    /// all phases of `hash` and of `tile`.
    type Small = (&'static str, [i64; 3], i64, [i64; 2], [u64; 5], [f64; 2]);
    const SMALL: [Small; 29] = [
        (
            "c-48",
            [18354, 18354, 18354],
            166080,
            [950, 950],
            [19174, 156, 912312, 6723776, 49916],
            [586.0, 1047.0],
        ),
        (
            "dlmc_tf_mp090_dec0_ffn1",
            [2048, 512, 2048],
            104857,
            [312, 236],
            [4096, 32, 524288, 21563849, 63886],
            [732.0, 892.0],
        ),
        (
            "dlmc_tf_mp080_enc5_ffn2",
            [512, 2048, 512],
            209715,
            [1210, 226],
            [4096, 128, 131072, 24030025, 125270],
            [556.0, 914.0],
        ),
        (
            "fast0507",
            [507, 63009, 507],
            409349,
            [7753, 12],
            [44509, 2241, 531585, 2791519, 57400],
            [349.0, 7257.0],
        ),
        (
            "qp_A_BOYD1",
            [18, 93261, 18],
            558985,
            [93261, 11],
            [6087, 5829, 6603, 3454509, 558985],
            [336.0, 67895.0],
        ),
        (
            "bcsstk33",
            [8738, 8738, 8738],
            591904,
            [141, 141],
            [10399, 41, 212505, 42361950, 7538],
            [663.0, 628.0],
        ),
        (
            "rajat01",
            [6833, 6833, 6833],
            43250,
            [1442, 1442],
            [4493, 333, 195390, 5373531, 9932],
            [517.0, 1212.0],
        ),
        (
            "memplus",
            [17758, 17758, 17758],
            126150,
            [574, 574],
            [7842, 140, 285012, 9518740, 39523],
            [711.0, 806.0],
        ),
        (
            "dlmc_rn50_vd095_final",
            [1000, 2048, 1000],
            259091,
            [449, 473],
            [8064, 128, 508032, 35882465, 62190],
            [649.0, 949.0],
        ),
        (
            "HEP-th",
            [27240, 27240, 27240],
            342437,
            [562, 562],
            [267151, 472, 38153601, 7187290, 13715],
            [607.0, 6695.0],
        ),
        (
            "dlmc_tf_l0070_dec2_ffn1",
            [2048, 512, 2048],
            383955,
            [321, 951],
            [4096, 32, 524288, 290179429, 242083],
            [559.0, 1044.0],
        ),
        (
            "SiH4",
            [5041, 5041, 5041],
            171903,
            [205, 205],
            [11444, 75, 487108, 11295343, 37102],
            [571.0, 817.0],
        ),
        (
            "mc2depi",
            [525825, 525825, 525825],
            2100225,
            [4, 4],
            [192791, 6, 1134910, 8391681, 16],
            [340.0, 1666.0],
        ),
        (
            "cnr-2000",
            [325557, 325557, 325557],
            3216152,
            [2716, 2716],
            [206514, 751, 4346724, 96065788, 34537],
            [3697.0, 3850.0],
        ),
        (
            "webbase",
            [1000005, 1000005, 1000005],
            2872605,
            [4425, 4425],
            [1650516, 2813, 42955529, 8186759, 16842],
            [1106.0, 29344.0],
        ),
        (
            "conf5",
            [49152, 49152, 49152],
            1916928,
            [39, 39],
            [52224, 21, 912384, 74760192, 1521],
            [787.0, 1931.0],
        ),
        (
            "scircuit",
            [170998, 170998, 170998],
            954252,
            [407, 407],
            [296528, 374, 10726926, 8273358, 2961],
            [578.0, 12020.0],
        ),
        (
            "band64",
            [16384, 16384, 16384],
            1047552,
            [64, 64],
            [5114, 5, 25550, 66999616, 4096],
            [726.0, 609.0],
        ),
        (
            "cop20k",
            [120000, 120000, 120000],
            2207592,
            [19, 19],
            [2057096, 289, 564588994, 40951656, 361],
            [1049.0, 174362.0],
        ),
        (
            "mac_econ",
            [206500, 206500, 206500],
            1207313,
            [9, 9],
            [406348, 53, 12793971, 7057406, 76],
            [526.0, 10248.0],
        ),
        (
            "arrow",
            [5459, 5459, 5459],
            70925,
            [5459, 5459],
            [1704, 342, 122406, 30586023, 70925],
            [1242.0, 1843.0],
        ),
        (
            "dense:5360",
            [5360, 5360, 5360],
            48220,
            [5360, 5360],
            [24955, 335, 1856977, 466010, 48220],
            [371.0, 2129.0],
        ),
        (
            "uniform",
            [360, 1432, 360],
            515520,
            [1432, 360],
            [2070, 90, 47610, 185587200, 515520],
            [986.0, 976.0],
        ),
        ("banded", [281, 281, 281], 78959, [281, 281], [324, 18, 5832, 22186919, 78959], [579.0, 494.0]),
        (
            "mesh",
            [40128, 40128, 40128],
            2818432,
            [72, 72],
            [45536, 22, 830296, 199549952, 5184],
            [1820.0, 1339.0],
        ),
        (
            "skewed",
            [1448, 467, 1448],
            317277,
            [395, 731],
            [2730, 30, 248430, 215716079, 268342],
            [482.0, 963.0],
        ),
        (
            "dense:39375",
            [39375, 39375, 39375],
            472472,
            [39375, 39375],
            [351207, 2461, 50116502, 5590655, 472472],
            [31376.0, 28716.0],
        ),
        (
            "rmat:15",
            [32768, 32768, 32768],
            385794,
            [3396, 3396],
            [213341, 1498, 72164468, 103683066, 260795],
            [5248.0, 20021.0],
        ),
        (
            "dense:19114",
            [19114, 19114, 19114],
            76453,
            [19114, 19114],
            [57357, 1195, 2758958, 363136, 76453],
            [1203.0, 2439.0],
        ),
    ];

    impl Lengths {
        fn measured((_, shape, entries, longest, ..): &Small) -> Lengths {
            Lengths { shape: *shape, entries: [*entries; 2], longest: *longest }
        }
    }

    impl Counts {
        fn measured((.., [tiles, most_tiles, pairs, products, most_products], _): &Small) -> Counts {
            let [most_tiles, pairs] = [*most_tiles, *pairs];
            let [products, most_products] = [*products, *most_products];
            Counts { tiles: [*tiles; 2], most_tiles, pairs, products, most_products }
        }
    }

    /// Matrices where `hash` is slower than predicted: rows of mesh form groups with many products an entry,
    /// and banded, a full matrix, has so few that the pieces of its split rows take as long.
    const SLOWER: [&str; 2] = ["mesh", "banded"];

    #[test]
    fn the_better_one_of_small_products_is_chosen() {
        let mut shares = 0.0;
        for small in &SMALL {
            let (matrix, .., [hash, tile]) = *small;
            let gain = Lengths::measured(small).gain(&Counts::measured(small), &Ratios::SAME);
            let chosen = if gain.is_some() { tile } else { hash };
            let share = hash.min(tile) / chosen;
            assert!(share > 0.9 || SLOWER.contains(&matrix) && share > 0.7, "{matrix}: {share}");
            shares += share.ln();
        }
        assert!(shares / SMALL.len() as f64 > -0.03);
    }

    /// Matrix of the CUDA backend's test of this choice (src/backend/cuda/spgemm/tests/inspection.rs): sixteen
    /// full blocks of 256 rows and columns, where `tile` must be clearly faster.
    #[test]
    fn tiles_are_chosen_for_full_blocks_on_the_diagonal() {
        let lengths = Lengths { shape: [4096; 3], entries: [4096 * 256; 2], longest: [256; 2] };
        let counts = Counts {
            tiles: [4096; 2],
            most_tiles: 16,
            pairs: 65_536,
            products: 268_435_456,
            most_products: 65_536,
        };
        assert!(lengths.gain(&counts, &Ratios::SAME).unwrap() > 1.5);
    }

    #[test]
    fn tiles_of_large_or_scattered_matrices_are_not_counted() {
        let counted = SMALL.iter().filter(|small| Lengths::measured(small).may_suit_tiles(&Ratios::SAME));
        let counted: Vec<_> = counted.map(|(matrix, ..)| *matrix).collect();
        for matrix in ["webbase", "scircuit", "mc2depi", "mac_econ", "cop20k", "cnr-2000", "qp_A_BOYD1"] {
            assert!(!counted.contains(&matrix));
        }
        let nothing = Lengths { shape: [0; 3], entries: [0; 2], longest: [0; 2] };
        assert!(!nothing.may_suit_tiles(&Ratios::SAME));
        // `hash` first examines larger products.
        let small = &SMALL[0];
        let counts =
            Counts { products: LEAST_PRODUCTS as u64, most_products: 1 << 40, ..Counts::measured(small) };
        assert_eq!(Lengths::measured(small).gain(&counts, &Ratios::SAME), None);
    }

    #[test]
    fn tiles_are_counted_where_they_may_be_chosen() {
        let counted = MEASURED
            .iter()
            .filter(|(matrix, numbers, _)| ProductStatistics::measured(matrix, *numbers).may_suit_tiles());
        let counted: Vec<_> = counted.map(|(matrix, ..)| *matrix).collect();
        assert_eq!(counted, ["si41", "gupta3", "tsopf", "band256", "dnn90", "dnn80"]);
        let nothing =
            ProductStatistics { rows: 0, wide_rows: 0, scattered_rows: 0, products: 0, entries: [0; 2] };
        assert!(!nothing.suits_tiles([0; 2], &Ratios::SAME));
    }

    #[test]
    fn times_follow_the_device() {
        use crate::select::device::tests::{A100, H200, HALVES, RTX_4090};
        use crate::select::device::FITTED;
        use crate::types::ComputeType;
        let ratios = |device, compute| Ratios::of(device).of_compute(compute);
        for small in &SMALL {
            let (lengths, counts) = (Lengths::measured(small), Counts::measured(small));
            let of = |device| lengths.predicted(&counts, &ratios(device, ComputeType::R64F));
            let ([hash, tile], [few, many]) = (of(&FITTED), [&HALVES[0], &HALVES[1]].map(of));
            // The devices have half the multiprocessors, and half the bandwidth, which `hash` does not depend
            // on for small products.
            assert!(few[0] > hash && few[0] < 2.0 * hash && few[1] > tile && few[1] < 2.0 * tile);
            assert!(many[0] == hash && many[1] > tile && many[1] < 2.0 * tile);
            let [h200, a100, rtx] = [&H200, &A100, &RTX_4090].map(of);
            assert!(h200[0] == hash && h200[1] < tile && a100[0] > hash && a100[1] > tile);
            // A pair of tiles is 4,096 multiply-adds of doubles, for which that card has few units.
            let singles = lengths.predicted(&counts, &ratios(&RTX_4090, ComputeType::R32F));
            let doubles = Ratios::of(&RTX_4090).doubles.map(|seconds| 1e6 * seconds);
            let more = [0, 1].map(|at| rtx[at] - singles[at]);
            let expected = [counts.products as f64 * doubles[0], counts.pairs as f64 * OF_PAIR * doubles[1]];
            assert!([0, 1].iter().all(|&at| (more[at] - expected[at]).abs() < 1e-6 * rtx[at]));
        }
        // For large products: the tiles of si41 are nearly empty, those of tsopf full.
        let suits = |name: &str, device, compute| {
            let (matrix, numbers, _) = MEASURED.iter().find(|(matrix, ..)| *matrix == name).unwrap();
            let statistics = ProductStatistics::measured(matrix, *numbers);
            statistics.suits_tiles([numbers[4] as usize; 2], &ratios(device, compute))
        };
        for device in [&FITTED, &H200, &HALVES[0], &HALVES[1]] {
            assert!(["si41", "tsopf", "gupta3", "band256"].iter().all(|name| suits(
                name,
                device,
                ComputeType::R64F
            )));
        }
        assert!(suits("tsopf", &RTX_4090, ComputeType::R64F) && suits("tsopf", &A100, ComputeType::R64F));
        assert!(!suits("si41", &RTX_4090, ComputeType::R64F) && suits("si41", &RTX_4090, ComputeType::R32F));
    }
}

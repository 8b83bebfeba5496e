//! Distances of a matrix's entries from its diagonal. They determine how many rows of B must stay in L2 for
//! `row` to find them there when it reads them again, and so how many of their columns a launch should take
//! at a time (kernels/spmm/tasks.cu counts distances).

/// Number of bins of the kernel's histogram: four an octave.
pub const BINS: usize = 256;
/// Number of rows, and approximate number of entries, that are sampled.
const ROWS: i64 = 8192;
const ENTRIES: i64 = 1 << 20;

/// Step between sampled rows, for this number of rows with this mean length.
pub fn sample_step(rows: i64, mean: i64) -> i64 {
    let wanted = (ENTRIES / mean.max(1)).clamp(64, ROWS);
    (rows / wanted).max(1)
}

/// Mean entries per row from which on rows of B that are read in any order are read often enough: uniform and
/// cop20k (16 and 18 entries a row) gain up to 40 % by narrow tiles, dc2 and rmat16 (7 entries, many in a few
/// columns) lose 4 to 8 %.
const OFTEN: i64 = 12;
/// Ratio of the longest row to the mean length beyond which a matrix is skewed: a few columns then probably
/// also have many of the entries, and stay in L2 anyway.
const SKEWED: i64 = 4;

/// Histogram of the entries' distances from the diagonal, or from where it would be in a matrix that is not
/// square.
pub struct Reach {
    rows: i64,
    cols: i64,
    mean: i64,
    skewed: bool,
    bins: Vec<u64>,
    l2_bytes: usize,
}

impl Reach {
    /// Distances in a matrix of this size, with their histogram `bins`, on a device with `l2_bytes` of L2.
    pub fn new((rows, cols, nnz): (i64, i64, i64), longest: i64, bins: Vec<u64>, l2_bytes: usize) -> Self {
        let mean = nnz / rows.max(1);
        Reach { rows, cols, mean, skewed: longest / SKEWED > mean, bins, l2_bytes }
    }

    /// Returns a distance within which at least this percentage of the entries lie.
    fn within(&self, percent: u64) -> f64 {
        let all: u64 = self.bins.iter().sum();
        let mut sum = 0;
        let bin = self.bins.iter().position(|count| {
            sum += count;
            sum * 100 >= all * percent
        });
        // Bin b has distances d with 4 log2(1 + d) of about b, as kernels count them.
        bin.map_or(0.0, |bin| (1.0 + ((bin + 1) % 4) as f64 / 4.0) * 2f64.powi((bin as i32 + 1) / 4))
    }

    /// Number of rows of B that must stay in L2 for this percentage of the entries to find theirs there.
    fn in_use(&self, percent: u64) -> f64 {
        (2.0 * self.within(percent)).min(self.cols as f64)
    }

    /// Returns whether neighbouring rows of A read almost neighbouring rows of B.
    fn is_band(&self, percent: u64) -> bool {
        self.in_use(percent) * 8.0 <= self.cols as f64
    }

    /// Returns whether half of the entries are within 4,096 columns of the diagonal, and rows are short.
    pub fn is_near(&self, short: i64) -> bool {
        self.mean < short && !self.bins.is_empty() && self.within(50) <= 4096.0
    }

    /// Maximum number of bytes of a row of B that a tile should have for rows to be in L2 when they are read
    /// again; at least a line. It returns `usize::MAX` if the width does not matter, or nothing helps.
    ///
    /// A band reads each row again once, so that a tile that is a little too wide always misses (poisson160,
    /// N = 128 in fp32: 2,793 µs with 27 MB in use, 2,134 with 13); with columns in any order only the excess
    /// misses.
    pub fn tile_bytes(&self, line: usize) -> usize {
        let (in_use, share) = if self.is_band(80) {
            (self.in_use(80), 0.5)
        } else if self.mean >= OFTEN && !self.skewed {
            (self.cols as f64, 0.6)
        } else {
            return usize::MAX;
        };
        let fits = share * self.l2_bytes as f64 / in_use.max(1.0);
        if fits < line as f64 {
            return usize::MAX;
        }
        (fits as usize).max(1).checked_next_power_of_two().map_or(usize::MAX, |above| {
            if above as f64 > fits {
                above / 2
            } else {
                above
            }
        })
    }

    /// Returns whether all tiles of rows of B with this number of bytes stay in L2 while they are in use:
    /// then those of a row should follow each other, which makes better use of memory pages (mc2depi, N = 512
    /// in fp32: 876 µs, 839 together).
    pub fn takes_rows(&self, row_bytes: usize) -> bool {
        self.rows > 0
            && !self.bins.is_empty()
            && self.is_band(90)
            && self.in_use(90) * row_bytes as f64 <= 0.5 * self.l2_bytes as f64
    }
}

#[cfg(test)]
mod tests {
    use super::{sample_step, Reach};

    fn reach(cols: i64, mean: i64, bin: usize) -> Reach {
        let mut bins = vec![0; super::BINS];
        bins[bin] = 10;
        Reach { rows: cols, cols, mean, skewed: false, bins, l2_bytes: 50 << 20 }
    }

    /// Bin of a distance, as computed by the kernel.
    fn bin(distance: i64) -> usize {
        ((((1 + distance) as f32).to_bits() >> 21) - (127 << 2)) as usize
    }

    #[test]
    fn about_a_million_entries_are_looked_at() {
        // All rows are sampled if they are few, 8,192 of many short ones, and fewer of long ones, but at
        // least 64.
        assert_eq!([sample_step(0, 0), sample_step(8192, 7), sample_step(16_383, 7)], [1, 1, 1]);
        assert_eq!([sample_step(1 << 20, 7), sample_step(1 << 20, 1 << 10)], [128, 1 << 10]);
        assert_eq!(sample_step(1 << 20, 1 << 30), 1 << 14);
    }

    #[test]
    fn distances_are_within_their_bin() {
        for distance in [0, 1, 2, 3, 7, 100, 4095, 25_600, 1 << 30] {
            let within = reach(1 << 40, 4, bin(distance)).within(80);
            assert!(
                within > distance as f64 && within <= 1.25 * distance as f64 + 2.0,
                "{distance}: {within}"
            );
        }
    }

    #[test]
    fn tiles_are_as_narrow_as_what_stays_in_use_asks_for() {
        let band = |distance| reach(4_000_000, 7, bin(distance)).tile_bytes(128);
        // Planes of grids of 160³ and of 128³ points.
        assert_eq!((band(25_600), band(16_512)), (256, 512));
        assert!(band(10) >= 1 << 20);
        // Columns in any order: 200,000; 120,000; too many; few entries in each.
        let any = |cols: i64, mean| reach(cols, mean, bin(cols / 2)).tile_bytes(128);
        assert_eq!((any(200_000, 16), any(120_000, 18)), (128, 256));
        assert_eq!((any(2_000_000, 16), any(200_000, 4)), (usize::MAX, usize::MAX));
        let skewed = Reach { skewed: true, ..reach(200_000, 16, bin(100_000)) };
        assert_eq!(skewed.tile_bytes(128), usize::MAX);
    }

    #[test]
    fn tiles_follow_each_other_in_bands_that_fit() {
        let near = reach(500_000, 4, bin(1000));
        assert!(near.takes_rows(2048) && !near.takes_rows(1 << 20) && near.is_near(20) && !near.is_near(4));
        assert!(!reach(4096, 4, bin(1000)).takes_rows(2048));
        let empty = Reach { bins: Vec::new(), ..reach(0, 0, 0) };
        assert!(!empty.takes_rows(64) && !empty.is_near(20));
    }
}

//! How rows that are dealt to the warps of a thread block in turn share its work and the cache
//! lines of a dense B: what the learned row permutations are chosen from (twenty-four numbers;
//! "Sparse Matrix Feature Set", Table II, section V.A of the paper on row permutations for SpMM).
//!
//! The kernel that the numbers are about keeps C in registers: row i is warp i mod 32's, its 32
//! lanes go along the row's entries, B is column-major, and 32 elements of a column of B are one
//! line of the cache. A *request* is a row's need of a line: the block of 32 columns that the line
//! stands for has an entry of the row, counted once a row.
//!
//! Lengths of rows are of all of them. The rest is of all rows of matrices with up to
//! [`SAMPLE_ENTRIES`] entries, else of a seeded sample of strips of 32 rows, one of each of equal
//! parts of the matrix, with about so many entries; sums over a warp's or a line's rows are then as
//! much larger as there are more rows. All sums are of integers, so that they do not depend on the
//! number of threads, nor on whether they are a CPU's ([`Striped::of`]) or a GPU's
//! (kernels/convert/striped.cu).
//!
//! Of the same rows it says how many multiplications the matrix times itself takes, since a pass over
//! their entries is made anyway.

use std::ops::Range;

use rayon::prelude::*;

use super::features::is_drawn;
use crate::matrix::compressed::Pattern;
use crate::types::Index;

/// Warps of a thread block, which take its rows in turn.
pub const WARPS: usize = 32;
/// Lanes of a warp, each with an entry of a row at a time.
const LANES: u64 = 32;
/// Columns of a block: elements of 4 bytes of a cache line.
const LINE: i64 = 32;
/// Entries of the rows that are looked at, about, if there are more.
pub const SAMPLE_ENTRIES: usize = 1 << 20;
/// Numbers of [`Striped::numbers`].
pub const NUMBERS: usize = 24;

/// Names of [`Striped::numbers`], in their order.
pub const NAMES: [&str; NUMBERS] = [
    "rows",
    "cols",
    "density",
    "row_entries_min",
    "row_entries_mean",
    "row_entries_max",
    "row_blocks_min",
    "row_blocks_mean",
    "row_blocks_max",
    "warp_load_min",
    "warp_load_mean",
    "warp_load_max",
    "line_requests_min",
    "line_requests_mean",
    "line_requests_max",
    "warp_lines_min",
    "warp_lines_mean",
    "warp_lines_max",
    "warp_requests_min",
    "warp_requests_mean",
    "warp_requests_max",
    "neighbour_distance_min",
    "neighbour_distance_mean",
    "neighbour_distance_max",
];

/// Places of what a GPU counts, as kernels/convert/striped.cu has them. Words of a least count are its
/// complement, 0 where there are none.
pub(crate) mod word {
    pub const LEAST_ENTRIES: usize = 0;
    pub const MOST_ENTRIES: usize = 1;
    pub const SQUARES: usize = 2;
    pub const SAMPLED_ENTRIES: usize = 3;
    pub const PRODUCTS: usize = 4;
    /// Least, sum and most.
    pub const BLOCKS: usize = 5;
    /// Alike.
    pub const DISTANCE: usize = 8;
    pub const LEAST_LINE: usize = 11;
    pub const MOST_LINE: usize = 12;
    /// Lines that a row requests.
    pub const LINES: usize = 13;
    /// Lines that found no place: the others are wrong.
    pub const LOST: usize = 15;
    /// A word a warp.
    pub const LOAD: usize = 16;
    pub const REQUESTS: usize = LOAD + super::WARPS;
    pub const WARP_LINES: usize = REQUESTS + super::WARPS;
    pub const COUNT: usize = WARP_LINES + super::WARPS;
}

/// Least, sum and most of some counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spread {
    /// 0 of none.
    pub least: u64,
    /// Sum.
    pub sum: u64,
    /// 0 of none.
    pub most: u64,
    /// How many there are.
    pub count: u64,
}

impl Spread {
    const NONE: Spread = Spread { least: 0, sum: 0, most: 0, count: 0 };

    fn of(counts: impl IntoIterator<Item = u64>) -> Self {
        counts.into_iter().fold(Spread::NONE, Spread::and)
    }

    fn and(self, count: u64) -> Self {
        self.with(Spread { least: count, sum: count, most: count, count: 1 })
    }

    /// From words of a GPU.
    fn of_words(inverse_least: u64, sum: u64, most: u64, count: u64) -> Self {
        match inverse_least {
            0 => Spread::NONE,
            _ => Spread { least: !inverse_least, sum, most, count },
        }
    }

    /// Of both.
    fn with(self, other: Self) -> Self {
        match (self.count, other.count) {
            (0, _) => other,
            (_, 0) => self,
            _ => Spread {
                least: self.least.min(other.least),
                sum: self.sum + other.sum,
                most: self.most.max(other.most),
                count: self.count + other.count,
            },
        }
    }

    /// Of all lines of a column of B, where these are requested.
    fn of_lines(self, cols: usize) -> Self {
        let all = cols.div_ceil(LINE as usize) as u64;
        match self.count < all {
            // The others are not.
            true => Spread { least: 0, count: all, ..self },
            false => self,
        }
    }

    /// Least, mean and most, each `times` as large.
    fn numbers(&self, times: f64) -> [f64; 3] {
        let mean = if self.count == 0 { 0.0 } else { self.sum as f64 / self.count as f64 };
        [self.least as f64, mean, self.most as f64].map(|number| number * times)
    }
}

/// What is counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Striped {
    /// Number of rows.
    pub rows: usize,
    /// Number of columns.
    pub cols: usize,
    /// Stored entries.
    pub nnz: u64,
    /// Rows that were looked at.
    pub sampled_rows: usize,
    /// Entries of these.
    pub sampled_entries: u64,
    /// Entries of a row, of all rows.
    pub row_entries: Spread,
    /// Σ entries², of all rows: below 2⁶⁴ as long as entries times the longest row are.
    pub row_squares: u64,
    /// Blocks of 32 columns in which a row has an entry.
    pub row_blocks: Spread,
    /// Steps that a warp takes: Σ over its rows ⌈entries / 32⌉.
    pub warp_load: Spread,
    /// Requests for a line, of all lines of a column of B.
    pub line_requests: Spread,
    /// Lines that a warp requests, each once.
    pub warp_lines: Spread,
    /// Requests of a warp.
    pub warp_requests: Spread,
    /// Lines that one of two rows that follow each other requests, and the other does not (the
    /// Hamming distance of their masks).
    pub neighbour_distance: Spread,
    /// Multiplications of the rows that were looked at in A·A: Σ over their entries (i, j) of the
    /// length of row j; 0 if A is not square.
    pub products: u64,
}

/// The strips of 32 rows that are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Strips of the matrix.
    pub strips: u64,
    /// How many are looked at: one of each of so many equal parts, drawn with a fixed seed.
    pub drawn: u64,
}

impl Sample {
    /// Of a matrix.
    pub fn new(rows: u64, nnz: u64) -> Self {
        Sample::of_entries(rows, nnz, SAMPLE_ENTRIES as u64)
    }

    fn of_entries(rows: u64, nnz: u64, entries: u64) -> Self {
        let strips = rows.div_ceil(WARPS as u64);
        let wanted = u128::from(strips) * u128::from(entries);
        let drawn =
            wanted.checked_div(u128::from(nnz)).map_or(strips, |drawn| drawn.min(strips.into()) as u64);
        Sample { strips, drawn: drawn.clamp(1, strips.max(1)).min(strips) }
    }

    /// Whether a strip is looked at.
    pub fn has(&self, strip: u64) -> bool {
        is_drawn(strip as usize, self.strips as usize, self.drawn as usize)
    }

    /// Rows that are looked at, of so many in all.
    pub fn rows(&self, rows: u64) -> u64 {
        if self.drawn == 0 {
            return 0;
        }
        let missing = self.strips * WARPS as u64 - rows;
        self.drawn * WARPS as u64 - if self.has(self.strips - 1) { missing } else { 0 }
    }
}

/// Of some strips.
struct Part {
    entries: u64,
    products: u64,
    row_blocks: Spread,
    neighbour_distance: Spread,
    load: [u64; WARPS],
    requests: [u64; WARPS],
    /// Line · 32 + warp of each request.
    keys: Vec<u64>,
}

impl Part {
    fn none() -> Self {
        Part {
            entries: 0,
            products: 0,
            row_blocks: Spread::NONE,
            neighbour_distance: Spread::NONE,
            load: [0; WARPS],
            requests: [0; WARPS],
            keys: Vec::new(),
        }
    }

    fn with(mut self, mut other: Self) -> Self {
        if self.keys.len() < other.keys.len() {
            std::mem::swap(&mut self, &mut other);
        }
        self.entries += other.entries;
        self.products += other.products;
        self.row_blocks = self.row_blocks.with(other.row_blocks);
        self.neighbour_distance = self.neighbour_distance.with(other.neighbour_distance);
        for warp in 0..WARPS {
            self.load[warp] += other.load[warp];
            self.requests[warp] += other.requests[warp];
        }
        self.keys.append(&mut other.keys);
        self
    }

    fn of_rows<I: Index, J: Index>(pattern: &Pattern<'_, I, J>, rows: Range<usize>) -> Self {
        let mut part = Part::none();
        let row_of = |row: usize| &pattern.indices[pattern.range(row)];
        let blocks = |cols| blocks(cols, pattern.base);
        for row in rows {
            let (cols, warp) = (row_of(row), row % WARPS);
            part.entries += cols.len() as u64;
            if pattern.major == pattern.minor {
                let length = |at: usize| pattern.range(pattern.index(at)).len() as u64;
                part.products += pattern.range(row).map(length).sum::<u64>();
            }
            part.load[warp] += (cols.len() as u64).div_ceil(LANES);
            let before = part.keys.len();
            part.keys.extend(blocks(cols).map(|block| block * WARPS as u64 + warp as u64));
            let own = (part.keys.len() - before) as u64;
            part.requests[warp] += own;
            part.row_blocks = part.row_blocks.and(own);
            if row > 0 {
                let distance = distance(blocks(row_of(row - 1)), blocks(cols));
                part.neighbour_distance = part.neighbour_distance.and(distance);
            }
        }
        part
    }
}

/// Blocks of 32 columns that these ascending ones are in.
fn blocks<J: Index>(cols: &[J], base: i64) -> impl Iterator<Item = u64> + '_ {
    let block = move |col: &J| (col.to_i64() - base) / LINE;
    cols.chunk_by(move |a, b| block(a) == block(b)).map(move |cols| block(&cols[0]) as u64)
}

/// Blocks that one of two rows has alone.
fn distance(one: impl Iterator<Item = u64>, other: impl Iterator<Item = u64>) -> u64 {
    let (mut one, mut other) = (one.peekable(), other.peekable());
    let mut alone = 0;
    loop {
        match (one.peek(), other.peek()) {
            (Some(a), Some(b)) if a == b => {
                one.next();
                other.next();
            }
            (Some(a), Some(b)) if a < b => {
                alone += 1;
                one.next();
            }
            (_, Some(_)) => {
                alone += 1;
                other.next();
            }
            (Some(_), None) => {
                alone += 1;
                one.next();
            }
            (None, None) => return alone,
        }
    }
}

impl Striped {
    /// Looks at a valid pattern of sorted rows, on the threads of the caller's pool: the offsets, and
    /// the columns of the sample, which are sorted by block.
    pub fn of<I: Index, J: Index>(pattern: &Pattern<'_, I, J>) -> Self {
        Striped::with_sample(pattern, SAMPLE_ENTRIES)
    }

    fn with_sample<I: Index, J: Index>(pattern: &Pattern<'_, I, J>, entries: usize) -> Self {
        let rows = if pattern.offsets.is_empty() { 0 } else { pattern.major };
        let (cols, nnz) = (pattern.minor, pattern.indices.len());
        let sample = Sample::of_entries(rows as u64, nnz as u64, entries as u64);
        let strip = |strip: usize| strip * WARPS..rows.min((strip + 1) * WARPS);
        let drawn = (0..sample.strips as usize).into_par_iter().filter(|&at| sample.has(at as u64));
        let parts = drawn.map(|at| Part::of_rows(pattern, strip(at)));
        let part = parts.reduce(Part::none, Part::with);
        let Part { entries, products, row_blocks, neighbour_distance, load, requests, mut keys } = part;
        keys.par_sort_unstable();
        let lines = keys.chunk_by(|a, b| a / WARPS as u64 == b / WARPS as u64);
        let line_requests = Spread::of(lines.map(|line| line.len() as u64)).of_lines(cols);
        keys.dedup();
        let mut own = [0; WARPS];
        keys.iter().for_each(|key| own[(key % WARPS as u64) as usize] += 1);
        let lengths = (0..rows).into_par_iter().map(|row| pattern.range(row).len() as u64);
        let none = || (Spread::NONE, 0_u64);
        let (row_entries, row_squares) = lengths
            .fold(none, |(spread, squares), length| {
                (spread.and(length), squares.wrapping_add(length.wrapping_mul(length)))
            })
            .reduce(none, |a, b| (a.0.with(b.0), a.1.wrapping_add(b.1)));
        Striped {
            rows,
            cols,
            nnz: nnz as u64,
            sampled_rows: sample.rows(rows as u64) as usize,
            sampled_entries: entries,
            row_entries,
            row_squares,
            row_blocks,
            warp_load: Spread::of(load),
            line_requests,
            warp_lines: Spread::of(own),
            warp_requests: Spread::of(requests),
            neighbour_distance,
            products,
        }
    }

    /// From the [`word`]s that a GPU has counted in a matrix of so many rows, columns and entries.
    pub(crate) fn of_words((rows, cols, nnz): (usize, usize, u64), words: &[u64]) -> Self {
        let sampled_rows = Sample::new(rows as u64, nnz).rows(rows as u64);
        let three =
            |first: usize, count| Spread::of_words(words[first], words[first + 1], words[first + 2], count);
        let of_warps = |first: usize| Spread::of(words[first..first + WARPS].iter().copied());
        let requests = of_warps(word::REQUESTS);
        let lines = Spread::of_words(
            words[word::LEAST_LINE],
            requests.sum,
            words[word::MOST_LINE],
            words[word::LINES],
        );
        // All but the first row have one before.
        let is_first = sampled_rows > 0 && Sample::new(rows as u64, nnz).has(0);
        Striped {
            rows,
            cols,
            nnz,
            sampled_rows: sampled_rows as usize,
            sampled_entries: words[word::SAMPLED_ENTRIES],
            row_entries: Spread::of_words(
                words[word::LEAST_ENTRIES],
                nnz,
                words[word::MOST_ENTRIES],
                rows as u64,
            ),
            row_squares: words[word::SQUARES],
            row_blocks: three(word::BLOCKS, sampled_rows),
            warp_load: of_warps(word::LOAD),
            line_requests: lines.of_lines(cols),
            warp_lines: of_warps(word::WARP_LINES),
            warp_requests: requests,
            neighbour_distance: three(word::DISTANCE, sampled_rows - u64::from(is_first)),
            products: words[word::PRODUCTS],
        }
    }

    /// The paper's numbers, in the order of [`NAMES`]. Sums over rows of a sample are scaled to all
    /// rows; lines that a warp requests once are as the sample has them.
    pub fn numbers(&self) -> [f64; NUMBERS] {
        let places = self.rows as f64 * self.cols as f64;
        let density = if places == 0.0 { 0.0 } else { self.nnz as f64 / places };
        let times = if self.sampled_rows == 0 { 1.0 } else { self.rows as f64 / self.sampled_rows as f64 };
        let spreads = [
            self.row_entries.numbers(1.0),
            self.row_blocks.numbers(1.0),
            self.warp_load.numbers(times),
            self.line_requests.numbers(times),
            self.warp_lines.numbers(1.0),
            self.warp_requests.numbers(times),
            self.neighbour_distance.numbers(1.0),
        ];
        let mut out = [0.0; NUMBERS];
        out[..3].copy_from_slice(&[self.rows as f64, self.cols as f64, density]);
        out[3..].copy_from_slice(spreads.as_flattened());
        out
    }

    /// Variance of the entries of a row.
    pub fn variance(&self) -> f64 {
        // n · Σ l² − (Σ l)², exact until the division.
        let (rows, nnz) = (self.rows as u128, u128::from(self.nnz));
        match rows {
            0 => 0.0,
            _ => {
                (rows * u128::from(self.row_squares)).saturating_sub(nnz * nnz) as f64 / (rows * rows) as f64
            }
        }
    }

    /// Multiplications of A·A for an entry of A: the mean length of the rows that entries lead to.
    pub fn products_of_entry(&self) -> f64 {
        match self.sampled_entries {
            0 => 0.0,
            entries => self.products as f64 / entries as f64,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;
    use matrices::SplitMix64;

    struct Owned {
        cols: usize,
        offsets: Vec<i32>,
        indices: Vec<i32>,
    }

    impl Owned {
        fn new(cols: usize, rows: impl IntoIterator<Item = BTreeSet<usize>>) -> Self {
            let (mut offsets, mut indices) = (vec![0], vec![]);
            for row in rows {
                indices.extend(row.iter().map(|&col| col as i32));
                offsets.push(indices.len() as i32);
            }
            Owned { cols, offsets, indices }
        }

        fn random(rows: usize, cols: usize, most: u64) -> Self {
            let mut rng = SplitMix64::new(rows as u64 * 31 + cols as u64);
            Owned::new(
                cols,
                (0..rows).map(|_| {
                    let length = rng.below(most + 1) * rng.below(3);
                    (0..length).map(|_| rng.below(cols as u64) as usize).collect()
                }),
            )
        }

        fn pattern(&self) -> Pattern<'_, i32, i32> {
            let (major, minor) = (self.offsets.len() - 1, self.cols);
            let (offsets, indices) = (&self.offsets[..], &self.indices[..]);
            Pattern { major, minor, base: 0, offsets, indices, by_columns: false }
        }
    }

    /// By sets.
    fn naive(matrix: &Owned) -> Striped {
        let pattern = matrix.pattern();
        let rows = pattern.major;
        let cols = |row: usize| pattern.range(row).map(|at| pattern.index(at));
        let masks: Vec<BTreeSet<u64>> =
            (0..rows).map(|row| cols(row).map(|col| col as u64 / 32).collect()).collect();
        let length = |row: usize| pattern.range(row).len() as u64;
        let products = |row: usize| cols(row).map(length).sum::<u64>();
        let of_warp = |warp: usize| (warp..rows).step_by(32);
        let mut lines: BTreeMap<u64, u64> =
            (0..matrix.cols.div_ceil(32)).map(|line| (line as u64, 0)).collect();
        masks.iter().flatten().for_each(|line| *lines.get_mut(line).unwrap() += 1);
        Striped {
            rows,
            cols: matrix.cols,
            nnz: matrix.indices.len() as u64,
            sampled_rows: rows,
            sampled_entries: matrix.indices.len() as u64,
            row_entries: Spread::of((0..rows).map(length)),
            row_squares: (0..rows).map(|row| length(row).pow(2)).sum(),
            row_blocks: Spread::of(masks.iter().map(|mask| mask.len() as u64)),
            warp_load: Spread::of(
                (0..32).map(|warp| of_warp(warp).map(|row| length(row).div_ceil(32)).sum()),
            ),
            line_requests: Spread::of(lines.into_values()),
            warp_lines: Spread::of((0..32).map(|warp| {
                of_warp(warp).flat_map(|row| masks[row].iter().copied()).collect::<BTreeSet<_>>().len() as u64
            })),
            warp_requests: Spread::of(
                (0..32).map(|warp| of_warp(warp).map(|row| masks[row].len() as u64).sum()),
            ),
            neighbour_distance: Spread::of(
                masks.windows(2).map(|two| two[0].symmetric_difference(&two[1]).count() as u64),
            ),
            products: if rows == matrix.cols { (0..rows).map(products).sum() } else { 0 },
        }
    }

    #[test]
    fn counts_are_those_of_sets() {
        for (rows, cols, most) in [
            (1, 1, 1),
            (31, 40, 5),
            (32, 32, 32),
            (33, 100, 90),
            (300, 300, 40),
            (200, 1000, 40),
            (700, 65, 9),
            (100, 5000, 300),
        ] {
            let matrix = Owned::random(rows, cols, most);
            assert_eq!(Striped::of(&matrix.pattern()), naive(&matrix), "{rows} × {cols}");
        }
        for (rows, cols) in [(0, 0), (0, 70), (5, 0), (40, 33)] {
            let empty = Owned::new(cols, (0..rows).map(|_| BTreeSet::new()));
            assert_eq!(Striped::of(&empty.pattern()), naive(&empty), "{rows} × {cols} of nothing");
            assert!(Striped::of(&empty.pattern()).numbers().iter().all(|number| number.is_finite()));
        }
    }

    /// Rows of 33 and of 64 entries take two steps of a warp each (section II.C).
    #[test]
    fn the_papers_example() {
        let matrix = Owned::new(2048, [(0..33).collect(), (0..64).map(|at| at * 32).collect()]);
        let found = Striped::of(&matrix.pattern());
        assert_eq!((found.warp_load.most, found.warp_load.sum, found.warp_load.count), (2, 4, 32));
        // 32 columns that follow each other are one line, and 64 far ones 64.
        assert_eq!((found.row_blocks.least, found.row_blocks.most), (2, 64));
        assert_eq!(found.neighbour_distance, Spread { least: 62, sum: 62, most: 62, count: 1 });
        let numbers = found.numbers();
        let number = |name: &str| numbers[NAMES.iter().position(|other| *other == name).unwrap()];
        assert_eq!((number("rows"), number("cols"), number("density")), (2.0, 2048.0, 97.0 / 4096.0));
        assert_eq!((number("row_entries_mean"), number("line_requests_max")), (48.5, 2.0));
        assert_eq!((number("warp_requests_mean"), number("warp_lines_max")), (66.0 / 32.0, 64.0));
    }

    #[test]
    fn a_sample_is_near_the_whole() {
        let matrix = Owned::random(40_000, 3000, 20);
        let (all, some) = (Striped::of(&matrix.pattern()), Striped::with_sample(&matrix.pattern(), 60_000));
        assert_eq!(all.sampled_rows, 40_000);
        let share = some.sampled_rows as f64 / 40_000.0;
        assert!((share * all.nnz as f64 / 60_000.0 - 1.0).abs() < 0.05, "{share}");
        assert_eq!((some.row_entries, some.rows, some.nnz), (all.row_entries, all.rows, all.nnz));
        let near = |name: &str, found: f64, wanted: f64| {
            assert!((found / wanted - 1.0).abs() < 0.05, "{name}: {found} of {wanted}");
        };
        for ((name, found), wanted) in NAMES.into_iter().zip(some.numbers()).zip(all.numbers()) {
            if name.ends_with("mean") && name != "warp_lines_mean" {
                near(name, found, wanted);
            }
        }
        assert_eq!(Striped::with_sample(&matrix.pattern(), 60_000), some);
    }
}

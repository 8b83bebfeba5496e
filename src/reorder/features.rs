//! Features of a pattern by which learned row permutations are chosen: the twenty-four numbers of "Sparse
//! Matrix Feature Set", Table II, section V.A of Mehrabi et al. ([`policy`](super::policy) has the title).
//! The networks behind `TARSIA_REORDER_LEARNED` read them (src/select/orders.rs), `tarsia sample` writes them
//! as training data, and `tarsia inspect --explain` prints them.
//!
//! They describe the paper's kernel, which keeps C in registers: the rows are dealt to the 32 warps of a
//! thread block in turn, the 32 lanes of a warp go along a row's entries, B is column-major, and 32 elements
//! of a column of B are one cache line. A *request* is a row's need of a line: the row has an entry in the
//! block of 32 columns to which the line belongs. It is counted once per row.
//!
//! Entries per row are counted in all rows. The other features are taken from all rows of matrices with up to
//! [`SAMPLE_ENTRIES`] entries, else from a sample of strips of 32 rows with about so many entries; sums over
//! the rows of a warp or a line are then scaled to all rows. All counts are integers and the sample is drawn
//! with a fixed seed, so that the numbers do not depend on the number of threads.

use std::ops::Range;

use rayon::prelude::*;

use super::masks::{distance, warp_load, LANES, WARPS};
use super::{block_columns, split_mix};
use crate::matrix::compressed::Pattern;
use crate::types::Index;

/// Length of [`FeatureSet::numbers`].
pub const NUMBERS: usize = 24;

/// Approximate number of entries in the sampled rows of a matrix that has more.
pub const SAMPLE_ENTRIES: usize = 1 << 20;
/// Random seed of the samples.
const SEED: u64 = 0x5EED_B10C;

/// Minimum, sum and maximum of a set of counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Summary {
    /// Minimum; 0 if there are no counts.
    pub least: u64,
    /// Sum of all counts.
    pub sum: u64,
    /// Maximum; 0 if there are no counts.
    pub most: u64,
    /// Number of counts.
    pub count: u64,
}

impl Summary {
    const NONE: Summary = Summary { least: 0, sum: 0, most: 0, count: 0 };

    fn of(counts: impl IntoIterator<Item = u64>) -> Self {
        counts.into_iter().fold(Summary::NONE, Summary::and)
    }

    fn and(self, count: u64) -> Self {
        self.with(Summary { least: count, sum: count, most: count, count: 1 })
    }

    /// Returns the summary of the counts of both summaries.
    fn with(self, other: Self) -> Self {
        match (self.count, other.count) {
            (0, _) => other,
            (_, 0) => self,
            _ => Summary {
                least: self.least.min(other.least),
                sum: self.sum + other.sum,
                most: self.most.max(other.most),
                count: self.count + other.count,
            },
        }
    }

    /// Returns the summary with as many zeros added as make `count` counts.
    fn with_zeros(self, count: u64) -> Self {
        match self.count < count {
            true => Summary { least: 0, count, ..self },
            false => self,
        }
    }

    /// Returns minimum, mean and maximum, each multiplied by `times`.
    fn numbers(&self, times: f64) -> [f64; 3] {
        let mean = if self.count == 0 { 0.0 } else { self.sum as f64 / self.count as f64 };
        [self.least as f64, mean, self.most as f64].map(|number| number * times)
    }
}

/// Counts from which the features are computed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FeatureSet {
    /// Number of rows.
    pub rows: usize,
    /// Number of columns.
    pub cols: usize,
    /// Number of stored entries.
    pub nnz: u64,
    /// Number of sampled rows.
    pub sampled_rows: usize,
    /// Entries per row, over all rows. (nnz-per-row in the paper.)
    pub row_entries: Summary,
    /// Blocks of 32 columns in which a row has an entry, per row. (nnz-blocks-per-row)
    pub row_blocks: Summary,
    /// Steps per warp: Σ over its rows ⌈entries / 32⌉. (warp load)
    pub warp_load: Summary,
    /// Requests per line, over all lines of a column of B. (same-cache-lines)
    pub line_requests: Summary,
    /// Lines requested per warp, each counted once. (distinct-cache-lines-per-warp)
    pub warp_lines: Summary,
    /// Requests per warp. (total-cache-lines-per-warp)
    pub warp_requests: Summary,
    /// Lines that one of two consecutive rows requests and the other does not, per pair: the Hamming distance
    /// of their bit masks. (adjacent-vector-distance)
    pub neighbour_distance: Summary,
}

/// Counts of some strips of rows.
struct Strips {
    row_blocks: Summary,
    neighbour_distance: Summary,
    load: [u64; WARPS],
    requests: [u64; WARPS],
    /// Line · 32 + warp of each request.
    keys: Vec<u64>,
}

impl Strips {
    fn none() -> Self {
        Strips {
            row_blocks: Summary::NONE,
            neighbour_distance: Summary::NONE,
            load: [0; WARPS],
            requests: [0; WARPS],
            keys: Vec::new(),
        }
    }

    /// Returns the counts of both, added up.
    fn with(mut self, mut other: Self) -> Self {
        if self.keys.len() < other.keys.len() {
            std::mem::swap(&mut self, &mut other);
        }
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
        let mut out = Strips::none();
        let blocks = |row: usize| block_columns(pattern, row, LANES).map(|block| block as u64);
        // Blocks of the row before, and the row's own.
        let mut before: Vec<_> = rows.start.checked_sub(1).map(blocks).into_iter().flatten().collect();
        let mut own = Vec::new();
        for row in rows {
            let warp = row % WARPS;
            own.clear();
            own.extend(blocks(row));
            out.keys.extend(own.iter().map(|block| block * WARPS as u64 + warp as u64));
            out.load[warp] += u64::from(warp_load(pattern.range(row).len()));
            out.requests[warp] += own.len() as u64;
            out.row_blocks = out.row_blocks.and(own.len() as u64);
            if row > 0 {
                out.neighbour_distance = out.neighbour_distance.and(distance(&before, &own) as u64);
            }
            std::mem::swap(&mut before, &mut own);
        }
        out
    }
}

/// Returns whether part `at` of `all` is one of the `drawn` (at most `all`) parts of a sample, which has one
/// part from each of `drawn` equal ranges of parts, by a fixed seed.
pub fn is_drawn(at: usize, all: usize, drawn: usize) -> bool {
    let range = at * drawn / all;
    let first = |range: usize| (range * all).div_ceil(drawn);
    let others = (first(range + 1) - first(range)) as u64;
    let random = split_mix(SEED, range as u64);
    // A number below `others`, from the upper half of the product.
    at == first(range) + ((u128::from(random) * u128::from(others)) >> 64) as usize
}

/// Returns how many strips of a matrix are sampled for about `entries` entries; at least one, if there is
/// one.
fn drawn_strips(strips: usize, nnz: usize, entries: usize) -> usize {
    let wanted = (strips as u128 * entries as u128).checked_div(nnz as u128);
    wanted.map_or(strips, |wanted| wanted.min(strips as u128) as usize).max(1).min(strips)
}

impl FeatureSet {
    /// Version number, raised when the meaning, the order or the number of [`Self::NAMES`] changes.
    pub const VERSION: u32 = 3;
    /// Names of [`Self::numbers`], in their order.
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

    /// Computes the counts of a valid pattern of sorted rows, on the threads of the caller's pool. Reads the
    /// offsets, and the columns of the sample.
    pub fn of<I: Index, J: Index>(pattern: &Pattern<'_, I, J>) -> Self {
        FeatureSet::with_sample(pattern, SAMPLE_ENTRIES)
    }

    fn with_sample<I: Index, J: Index>(pattern: &Pattern<'_, I, J>, entries: usize) -> Self {
        let (rows, cols, nnz) = (pattern.major, pattern.minor, pattern.indices.len());
        let strips = rows.div_ceil(WARPS);
        let drawn = drawn_strips(strips, nnz, entries);
        let strip = |at: usize| at * WARPS..rows.min((at + 1) * WARPS);
        let sample = || (0..strips).into_par_iter().filter(|&at| is_drawn(at, strips, drawn));
        let counts = sample().map(|at| Strips::of_rows(pattern, strip(at)));
        let Strips { row_blocks, neighbour_distance, load, requests, mut keys } =
            counts.reduce(Strips::none, Strips::with);
        keys.par_sort_unstable();
        let lines = keys.chunk_by(|a, b| a / WARPS as u64 == b / WARPS as u64);
        let line_requests = Summary::of(lines.map(|line| line.len() as u64));
        keys.dedup();
        let mut own = [0; WARPS];
        keys.iter().for_each(|key| own[(key % WARPS as u64) as usize] += 1);
        let lengths = (0..rows).into_par_iter().map(|row| pattern.range(row).len() as u64);
        FeatureSet {
            rows,
            cols,
            nnz: nnz as u64,
            sampled_rows: sample().map(|at| strip(at).len()).sum(),
            row_entries: lengths.fold(|| Summary::NONE, Summary::and).reduce(|| Summary::NONE, Summary::with),
            row_blocks,
            warp_load: Summary::of(load),
            line_requests: line_requests.with_zeros(cols.div_ceil(LANES) as u64),
            warp_lines: Summary::of(own),
            warp_requests: Summary::of(requests),
            neighbour_distance,
        }
    }

    /// Returns the paper's numbers, in the order of [`Self::NAMES`]. Sums over rows of a sample are scaled to
    /// all rows; the distinct lines of a warp are not scaled.
    pub fn numbers(&self) -> [f64; NUMBERS] {
        let places = self.rows as f64 * self.cols as f64;
        let density = if places == 0.0 { 0.0 } else { self.nnz as f64 / places };
        let times = if self.sampled_rows == 0 { 1.0 } else { self.rows as f64 / self.sampled_rows as f64 };
        let summaries = [
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
        out[3..].copy_from_slice(summaries.as_flattened());
        out
    }
}

#[cfg(test)]
mod tests;

//! Cost model of SpMM: seconds of each algorithm, from the pattern statistics in a [`SpmmStatistics`].
//!
//! seconds = start + serial · (entries of the longest row) + bytes of A, B and C / memory
//!           + bytes of rows of B as often as they are fetched / fetch
//!           + bytes of rows of B, once for each 64 rows of A that have entries there / near
//!           + work · (entries, tiles or blocks, each for 32 columns of C) + unit · (rows or windows)
//!
//! start, serial, work and unit are seconds, memory, fetch and near bytes a second. They are the fields of a
//! [`Kernel`], of which each algorithm has its own. `fetch` stands for the traffic of a multiprocessor's cache
//! and `near` for what the cache has to get from L2, since neighbouring rows are computed on one
//! multiprocessor: by an earlier fit, the rates of `row` for many columns are off by 16 to 18 % without `near`,
//! and by 11 to 12 with it.
//!
//! The terms are added, and not the slowest taken, since waiting for loads and computing overlap only in
//! part, and sums were nearer to the measurements. The rates ([`rates`]) are fitted to measured products
//! (`select::spmm::fit` prints them); `select::spmm::tests` checks how near the choice then is to the best.

pub mod columns;
pub mod copies;
pub mod csr;
pub mod dense;
pub mod masked_window;
pub mod merge;
pub mod own_columns;
pub mod prefetch;
mod rates;
pub mod reach;
pub mod row;
pub mod sell;
pub mod smat;
pub mod swift;
pub mod tiles;
pub mod window;

pub use self::rates::H100;
use std::ops::Range;

use super::device::Ratios;
use super::learned::Correction;
use super::roofline::Machine;
use crate::algorithm::Algorithm;
use crate::format;
use crate::format::window::{Counts, WindowShape, HEIGHTS};
use crate::matrix::compressed::Pattern;
use crate::problem::SpmmProblem;
use crate::support::Types;
use crate::types::{ComputeType, DataType, Index};

/// Pattern statistics of a matrix for SpMM.
#[derive(Clone, Copy, Debug)]
pub struct SpmmStatistics {
    /// Columns of op(A).
    pub cols: usize,
    /// Entries of the longest row.
    pub longest: usize,
    /// Statistics of windows, in the shape of the value type ([`shape`]).
    pub counts: Counts,
}

impl SpmmStatistics {
    /// Counts the statistics of a valid pattern of sorted rows in memory, for values of this type.
    pub fn of<I: Index, J: Index>(pattern: &Pattern<'_, I, J>, value: DataType) -> Self {
        let rows = if pattern.offsets.is_empty() { 0 } else { pattern.major };
        let length = |rows: Range<usize>| pattern.range(rows.end - 1).end - pattern.range(rows.start).start;
        let windows = (0..rows).step_by(HEIGHTS[3]);
        let most = windows.map(|first| length(first..rows.min(first + HEIGHTS[3]))).max();
        let mut scratch = vec![[0; 2]; most.unwrap_or(0)];
        let counts = Counts::of(pattern, rows, shape(value), &mut scratch);
        let longest = (0..rows).map(|row| pattern.range(row).len()).max().unwrap_or(0);
        SpmmStatistics { cols: pattern.minor, longest, counts }
    }

    /// Statistics as text, for the reason of a choice.
    pub fn describe(&self) -> String {
        let counts = &self.counts;
        let of = |height| counts.reuse(height);
        format!(
            "a row of B serves {:.1}, {:.1}, {:.1}, {:.1} entries of windows of 8, 16, 32, 64 rows; longest row {}",
            of(8), of(16), of(32), of(64), self.longest
        )
    }
}

/// Shape of blocks and tiles of windows with values of this type.
pub fn shape(value: DataType) -> WindowShape {
    match value.size() {
        2 => format::window::SHAPE,
        _ => format::masked_window::SHAPE,
    }
}

/// Rates of a kernel.
#[derive(Clone, Copy, Debug)]
pub struct Kernel {
    /// Seconds of a product with almost no work, with flushed caches.
    pub start: f64,
    /// Additional seconds for each entry of the longest row.
    pub serial: f64,
    /// Bytes a second of the operands, each counted once.
    pub memory: f64,
    /// Bytes a second of rows of B, counted as often as they are fetched.
    pub fetch: f64,
    /// Bytes a second of rows of B, counted once for each 64 rows of A.
    pub near: f64,
    /// Seconds per entry, tile or block, for 32 columns of C.
    pub work: f64,
    /// Seconds per row or window.
    pub unit: f64,
}

/// Maximum number of columns of C for which kernels take their narrow form.
pub const NARROW: i64 = 64;

/// Rates of a kernel for up to [`NARROW`] columns of C, and for more.
pub type Forms = [Kernel; 2];

/// Rates of SpMM's kernels on a kind of machine. The kernels come first, since the fit identifies them by
/// their position.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Rates {
    /// `row` by the kernels that take any rows, for values of 2, 4 and 8 bytes.
    pub row: [Forms; 3],
    /// `row` by the kernels for aligned rows ([`row::Kernel::Groups`]), likewise.
    pub row_groups: [Forms; 3],
    /// `sell`, for values of 2, 4 and 8 bytes.
    pub sell: [Forms; 3],
    /// `window`, for halves, TF32, fp32 and fp64.
    pub window: [Forms; 4],
    /// `smat`, for halves, TF32 and fp64.
    pub smat: [Forms; 3],
    /// `dense`, for halves, TF32, fp32 and fp64.
    pub dense: [Forms; 4],
    /// Number of multiprocessors, which determines how high windows are.
    pub multiprocessors: usize,
    /// Additional seconds per multiply-add of doubles beyond the fitted rates, by plain instructions and by
    /// matrix units.
    pub doubles: [f64; 2],
    /// Seconds of clustering rows, as [`CLUSTERS`].
    pub clusters: [f64; 3],
}

impl Rates {
    /// Rates scaled by the ratios of a device to an H100.
    pub fn scaled(&self, ratios: &Ratios) -> Self {
        let forms = |forms: Forms| forms.map(|kernel| kernel.scaled(ratios));
        Rates {
            row: self.row.map(forms),
            row_groups: self.row_groups.map(forms),
            sell: self.sell.map(forms),
            window: self.window.map(forms),
            smat: self.smat.map(forms),
            dense: self.dense.map(forms),
            multiprocessors: (self.multiprocessors as f64 * ratios.multiprocessors).round() as usize,
            doubles: ratios.doubles,
            clusters: [self.clusters[0], self.clusters[1] / ratios.memory, self.clusters[2] / ratios.memory],
        }
    }

    /// Kernel of an algorithm for `n` columns of C and so many rows and entries of A. `row` has its kernel for aligned
    /// rows if the product suits it, although not all operands of such a product are aligned.
    fn of(&self, algorithm: Algorithm, types: Types, n: i64, counts: (i64, i64)) -> &Kernel {
        let form = usize::from(n > NARROW);
        let bytes = match types.a.size() {
            2 => 0,
            4 => 1,
            _ => 2,
        };
        let unit = match (types.a.size(), types.compute) {
            (2, _) => 0,
            (_, ComputeType::Tf32) => 1,
            (4, ComputeType::R32F) => 2,
            _ => 3,
        };
        match algorithm {
            Algorithm::Window => &self.window[unit][form],
            Algorithm::Smat => &self.smat[[0, 1, 1, 2][unit]][form],
            Algorithm::Dense => &self.dense[unit][form],
            Algorithm::SpmmSell => &self.sell[bytes][form],
            _ if row::suits_groups(types.x, n, counts) => &self.row_groups[bytes][form],
            _ => &self.row[bytes][form],
        }
    }
}

/// Predicted traffic and time of an algorithm.
#[derive(Clone, Copy, Debug)]
pub struct Estimate {
    /// Bytes of A, and of B and C, each counted once.
    pub bytes: f64,
    /// Seconds.
    pub seconds: f64,
}

/// Amounts of work of a product, which the rates of a [`Kernel`] apply to in the same order.
#[derive(Clone, Copy, Debug)]
pub struct Work {
    /// Entries of the longest row; for `dense`, columns that a tile of C takes one after the other.
    pub longest: f64,
    /// Bytes of A, B and C, each counted once.
    pub bytes: f64,
    /// Bytes of rows of B, counted as often as they are fetched.
    pub fetched: f64,
    /// Bytes of rows of B, counted once for each 64 rows of A.
    pub near: f64,
    /// Entries, tiles or blocks, counted for each 32 columns of C.
    pub work: f64,
    /// Rows or windows, counted for each 32 columns of C.
    pub units: f64,
    /// Multiply-adds, including those with zeros of tiles and blocks.
    pub products: f64,
}

impl Kernel {
    fn scaled(&self, ratios: &Ratios) -> Self {
        Kernel {
            memory: self.memory * ratios.memory,
            fetch: self.fetch * ratios.cycles,
            near: self.near * ratios.cycles,
            work: self.work / ratios.cycles,
            unit: self.unit / ratios.cycles,
            ..*self
        }
    }

    /// Predicted seconds of this work.
    fn seconds(&self, work: &Work) -> f64 {
        self.start
            + self.serial * work.longest
            + work.bytes / self.memory
            + work.fetched / self.fetch
            + work.near / self.near
            + self.work * work.work
            + self.unit * work.units
    }
}

/// Work of an algorithm for `n` columns of C on a device with this many multiprocessors.
pub fn work(
    statistics: &SpmmStatistics,
    algorithm: Algorithm,
    types: Types,
    n: i64,
    multiprocessors: usize,
) -> Work {
    let counts = &statistics.counts;
    let (rows, cols, nnz) = (counts.rows as f64, statistics.cols as f64, counts.nnz as f64);
    let (value, columns) = (types.a.size() as f64, n.max(1) as f64);
    let row_of_b = (columns * types.x.size() as f64).max(SECTOR);
    // Kernels compute at least a tile of 32 columns.
    let tiles = (columns / 32.0).max(1.0);
    let dense = columns * (cols * types.x.size() as f64 + rows * types.y.size() as f64);
    let mut longest = statistics.longest as f64;
    let mut near = counts.all_columns(64);
    let (matrix, fetched, work, units, slots) = match algorithm {
        Algorithm::Window => {
            let shape = shape(types.a);
            let height = height(counts, types, n, multiprocessors);
            let (blocks, group_tiles) = counts.all_blocks(height, shape);
            let matrix = match shape.block {
                16 => blocks * 64.0 + group_tiles * (shape.block * height.min(16)) as f64 * (value + 0.125),
                _ => blocks * (32.0 + height as f64) + nnz * value,
            };
            let slots = blocks * (shape.block * height) as f64;
            (matrix, counts.all_columns(height), blocks, rows / height as f64, slots)
        }
        Algorithm::Smat => {
            let blocks = counts.all_spans(16, value == 2.0);
            let width = if value == 2.0 { 16.0 } else { 8.0 };
            let matrix = blocks * (4.0 + 16.0 * width * (value + 0.125));
            (matrix, blocks * width, blocks, rows / 16.0, blocks * 16.0 * width)
        }
        Algorithm::Dense => {
            // If C has few tiles, each takes all of the columns one after the other: 507 rows of 63,009
            // columns take 10 ms.
            longest = cols * (cols / (8.0 * rows.max(1.0))).max(1.0);
            near = 0.0;
            (rows * cols * value, rows / 128.0 * cols, rows * cols / 256.0, 0.0, rows * cols)
        }
        _ => {
            // Longer rows are split.
            longest = longest.min(PARTS);
            // `sell` has 16-bit columns and no offsets.
            let column = if algorithm == Algorithm::SpmmSell { 2.0 } else { 4.0 };
            (nnz * (value + column) + rows * 8.0, nnz, nnz, rows, nnz)
        }
    };
    Work {
        longest,
        bytes: matrix + dense,
        fetched: fetched * row_of_b,
        near: near * row_of_b,
        work: work * tiles,
        units: units * tiles,
        products: slots * columns,
    }
}

/// Approximate number of entries of a long row that a single warp takes; longer rows are cut into parts.
const PARTS: f64 = 1024.0;
/// Bytes of the smallest memory access.
const SECTOR: f64 = 32.0;

/// Number of rows of a window.
fn height(counts: &Counts, types: Types, n: i64, multiprocessors: usize) -> usize {
    let n = n.max(1) as usize;
    match types.a.size() {
        2 => window::rules(counts, n, multiprocessors).height,
        _ if types.compute == ComputeType::R64F => masked_window::rules_of_doubles(counts, n).height,
        _ => 16,
    }
}

/// Predicted traffic and time of an algorithm on a machine with these rates.
pub fn estimate(
    rates: &Rates,
    statistics: &SpmmStatistics,
    algorithm: Algorithm,
    types: Types,
    n: i64,
) -> Estimate {
    let work = work(statistics, algorithm, types, n, rates.multiprocessors);
    let kernel = rates.of(algorithm, types, n, counts_of(statistics));
    let [plain, by_matrix_units] = rates.doubles;
    let doubles = match (types.compute, algorithm) {
        (ComputeType::R64F, Algorithm::Window | Algorithm::Smat | Algorithm::Dense) => by_matrix_units,
        (ComputeType::R64F, _) => plain,
        (ComputeType::C64F, _) => 4.0 * plain,
        _ => 0.0,
    };
    Estimate { bytes: work.bytes, seconds: kernel.seconds(&work) + work.products * doubles }
}

/// Predicted seconds of `row` by the kernels that take any rows.
pub fn seconds_of_any_rows(rates: &Rates, statistics: &SpmmStatistics, types: Types, n: i64) -> f64 {
    let of_any = Rates { row_groups: rates.row, ..*rates };
    estimate(&of_any, statistics, Algorithm::Row, types, n).seconds
}

/// Numbers of rows and entries of a matrix.
fn counts_of(statistics: &SpmmStatistics) -> (i64, i64) {
    (statistics.counts.rows as i64, statistics.counts.nnz as i64)
}

/// Share of the windows' columns that is expected to remain where rows with similar columns are put in
/// clusters and that helps. Measured: cop20k 0.35, consph 0.45, shipsec1 0.56; others more.
const HOPED: f64 = 0.45;
/// Limits for clusters of rows, as shares of the time of the best algorithm with the rows in their order.
struct ClusterLimits {
    /// Clusters are computed only if a product with the expected columns would take less than this share.
    worth: f64,
    /// Clusters are taken if `window` with them takes less than this share.
    pays: f64,
}

/// Limits for times by the rates alone, which are off by a fifth: clusters of a stencil were predicted to gain 7 to 15 %
/// and lost 10 to 14, since rows of B that L2 had held were further apart then (poisson160, fp16, N = 128: 1169 and 1333
/// µs).
const BY_RATES: ClusterLimits = ClusterLimits { worth: 0.75, pays: 0.85 };
/// Limits for times that are corrected by what was learned, which are off by a tenth.
const CORRECTED: ClusterLimits = ClusterLimits { worth: 0.85, pays: 0.9 };

impl ClusterLimits {
    fn of(is_corrected: bool) -> &'static Self {
        if is_corrected {
            &CORRECTED
        } else {
            &BY_RATES
        }
    }
}

/// Ratio to the best time, both by the rates, from which on clusters are not considered: of 1,136 products of 71 matrices,
/// 324 are beyond it, two of which would have been considered by corrected times.
const FAR: f64 = 1.4;
/// Approximate seconds of clustering rows on an H100: a fixed start, per entry, and per row
/// (docs/algorithms/orders.md, row clusters).
pub const CLUSTERS: [f64; 3] = [1.5e-3, 0.15e-9, 1e-9];
/// Maximum number of products with [`BUDGET_COLUMNS`] columns whose time clustering may take.
const BUDGET: f64 = 150.0;
const BUDGET_COLUMNS: i64 = 128;

/// Returns whether clustering rows may be worth its time if the choice is among these algorithms, by the time
/// that `window` could save for `n` columns of C and the cost of clustering. `row` counts with the kernels that the
/// product's size suits, whatever its operands are.
pub fn clusters_may_pay(
    machine: &Machine,
    statistics: &SpmmStatistics,
    types: Types,
    n: i64,
    among: &[Algorithm],
) -> bool {
    let Some(rates) = machine.spmm_rates() else { return false };
    if !among.contains(&Algorithm::Window) || statistics.counts.sampled_nnz == 0 {
        return false;
    }
    let [start, entry, row] = rates.clusters;
    let cost = start + entry * statistics.counts.nnz as f64 + row * statistics.counts.rows as f64;
    let hoped = SpmmStatistics { counts: statistics.counts.hoped(HOPED), ..*statistics };
    let window = |n| estimate(rates, &hoped, Algorithm::Window, types, n).seconds;
    if cost >= BUDGET * window(BUDGET_COLUMNS) {
        return false;
    }
    let of = |algorithm| (algorithm, estimate(rates, statistics, algorithm, types, n).seconds);
    let mut in_order: Vec<_> = among.iter().map(|&algorithm| of(algorithm)).collect();
    in_order.sort_by(|x, y| x.1.total_cmp(&y.1));
    if in_order.first().is_none_or(|(_, least)| window(n) >= FAR * least) {
        return false;
    }
    let of_hoped = correction_of_clusters(machine, &hoped, types, n, (&in_order, window(n)));
    let with = corrected(of_hoped.as_ref(), Algorithm::Window, window(n));
    let own = correction(machine, statistics, types, n, &in_order);
    let worth = ClusterLimits::of(own.is_some()).worth;
    // A correction takes microseconds: the first that is fast enough ends the search.
    in_order.iter().all(|&(algorithm, seconds)| with < worth * corrected(own.as_ref(), algorithm, seconds))
}

/// Correction of the predicted seconds of algorithms by what was learned for the machine, if anything was.
pub fn correction(
    machine: &Machine,
    statistics: &SpmmStatistics,
    types: Types,
    n: i64,
    predicted: &[(Algorithm, f64)],
) -> Option<Correction<'static>> {
    Correction::spmm(machine.learned.map(|trees| trees()), statistics, types, n, predicted)
}

/// Correction for rows in clusters with these statistics: from the predicted seconds for rows in their order, and those
/// of `window` with the clusters.
pub fn correction_of_clusters(
    machine: &Machine,
    clustered: &SpmmStatistics,
    types: Types,
    n: i64,
    (in_order, seconds): (&[(Algorithm, f64)], f64),
) -> Option<Correction<'static>> {
    let mut all = in_order.to_vec();
    let window = all.iter_mut().filter(|(algorithm, _)| *algorithm == Algorithm::Window);
    window.for_each(|(_, of_window)| *of_window = seconds);
    correction(machine, clustered, types, n, &all)
}

/// Predicted seconds of an algorithm, corrected where there is a correction.
pub fn corrected(correction: Option<&Correction<'_>>, algorithm: Algorithm, seconds: f64) -> f64 {
    correction.map_or(seconds, |known| known.seconds(algorithm, seconds))
}

/// Returns whether rows are put in clusters, given the seconds of a product with clusters and the least
/// seconds with the rows in their order, and whether these are corrected by what was learned.
pub fn clusters_pay(clustered: f64, in_order: f64, are_corrected: bool) -> bool {
    clustered < ClusterLimits::of(are_corrected).pays * in_order
}

/// Returns whether clusters make `window` faster, given the statistics of the rows in clusters and of the
/// rows in their order.
pub fn clusters_gain(
    machine: &Machine,
    problem: &SpmmProblem,
    clustered: &SpmmStatistics,
    in_order: &SpmmStatistics,
) -> bool {
    let Some(rates) = machine.spmm_rates() else { return false };
    let seconds =
        |statistics| estimate(rates, statistics, Algorithm::Window, problem.types, problem.n_hint).seconds;
    clusters_pay(seconds(clustered), seconds(in_order), false)
}

#[cfg(test)]
mod fit;
#[cfg(test)]
pub(super) mod tests;

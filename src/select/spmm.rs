//! Seconds of an SpMM by each algorithm, from what a [`Survey`] has counted.
//!
//! seconds = start + serial · (entries of the longest row) + bytes of A, B and C / memory
//!           + bytes of rows of B as often as they are fetched / fetch
//!           + bytes of rows of B, once for each 64 rows of A that have entries there / near
//!           + work · (entries, tiles or blocks, each for 32 columns of C) + unit · (rows or windows)
//!
//! `fetch` and `near` are the traffic of a multiprocessor's cache and what it has to get from L2,
//! since rows near each other are computed on one: without the second the rates of `row` for many
//! columns are off by 16 to 18 %, with it by 11 to 12.
//!
//! A sum and not the slowest part: what loads wait for and what is computed overlap only in
//! part, and sums were nearer to the measurements. The rates ([`rates`]) are fitted to
//! benches/results/h100-spmm.tsv (`select::spmm::fit` prints them); `select::spmm::tests` says
//! how near the choice then is to the best.

pub mod copies;
pub mod csr;
pub mod dense;
pub mod masked_window;
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
use super::roofline::Machine;
use crate::algorithm::Algorithm;
use crate::format;
use crate::format::window::{Counts, Shape, HEIGHTS};
use crate::matrix::compressed::Pattern;
use crate::problem::SpmmProblem;
use crate::support::Types;
use crate::types::{ComputeType, DataType, Index};

/// What is known of a matrix.
#[derive(Clone, Copy, Debug)]
pub struct Survey {
    /// Columns of op(A).
    pub cols: usize,
    /// Entries of the longest row.
    pub longest: usize,
    /// Counts of windows, in the shape of the value type ([`shape`]).
    pub counts: Counts,
}

impl Survey {
    /// Of a valid pattern of sorted rows in memory, for these values.
    pub fn of<I: Index, J: Index>(pattern: &Pattern<'_, I, J>, value: DataType) -> Self {
        let rows = if pattern.offsets.is_empty() { 0 } else { pattern.major };
        let length = |rows: Range<usize>| pattern.range(rows.end - 1).end - pattern.range(rows.start).start;
        let windows = (0..rows).step_by(HEIGHTS[3]);
        let most = windows.map(|first| length(first..rows.min(first + HEIGHTS[3]))).max();
        let mut scratch = vec![[0; 2]; most.unwrap_or(0)];
        let counts = Counts::of(pattern, rows, shape(value), &mut scratch);
        let longest = (0..rows).map(|row| pattern.range(row).len()).max().unwrap_or(0);
        Survey { cols: pattern.minor, longest, counts }
    }

    /// For the reason of a choice.
    pub fn describe(&self) -> String {
        let counts = &self.counts;
        let of = |height| counts.reuse(height);
        format!(
            "a row of B serves {:.1}, {:.1}, {:.1}, {:.1} entries of windows of 8, 16, 32, 64 rows; longest row {}",
            of(8), of(16), of(32), of(64), self.longest
        )
    }
}

/// The shape of blocks and tiles of windows with these values.
pub fn shape(value: DataType) -> Shape {
    match value.size() {
        2 => format::window::SHAPE,
        _ => format::masked_window::SHAPE,
    }
}

/// How fast a kernel is.
#[derive(Clone, Copy, Debug)]
pub struct Kernel {
    /// Seconds of a product of next to nothing, caches flushed.
    pub start: f64,
    /// Seconds more for each entry of the longest row.
    pub serial: f64,
    /// Bytes a second, each operand once.
    pub memory: f64,
    /// Bytes a second of rows of B, as often as they are fetched.
    pub fetch: f64,
    /// Bytes a second of rows of B, once for each 64 rows of A.
    pub near: f64,
    /// Seconds of an entry, a tile or a block, for 32 columns of C.
    pub work: f64,
    /// Seconds of a row or a window.
    pub unit: f64,
}

/// Columns of C up to which kernels take their narrow form.
pub const NARROW: i64 = 64;

/// A kernel's rates for up to [`NARROW`] columns of C, and for more.
pub type Forms = [Kernel; 2];

/// How fast a kind of machine is. The kernels come first: the fit tells them by their place.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Rates {
    /// `row`, by values of 2, 4 and 8 bytes.
    pub row: [Forms; 3],
    /// `sell`, alike.
    pub sell: [Forms; 3],
    /// `window`: halves, tf32, fp32, fp64.
    pub window: [Forms; 4],
    /// `smat`: halves, tf32, fp64.
    pub smat: [Forms; 3],
    /// `dense`: halves, tf32, fp32, fp64.
    pub dense: [Forms; 4],
    /// Multiprocessors, which decide how high windows are.
    pub multiprocessors: usize,
    /// Seconds that a multiply-add of doubles takes more than the rates count, by plain instructions
    /// and by matrix units.
    pub doubles: [f64; 2],
    /// Seconds that clusters take, as [`CLUSTERS`].
    pub clusters: [f64; 3],
}

impl Rates {
    /// As a device is to an H100.
    pub fn scaled(&self, ratios: &Ratios) -> Self {
        let forms = |forms: Forms| forms.map(|kernel| kernel.scaled(ratios));
        Rates {
            row: self.row.map(forms),
            sell: self.sell.map(forms),
            window: self.window.map(forms),
            smat: self.smat.map(forms),
            dense: self.dense.map(forms),
            multiprocessors: (self.multiprocessors as f64 * ratios.multiprocessors).round() as usize,
            doubles: ratios.doubles,
            clusters: [self.clusters[0], self.clusters[1] / ratios.memory, self.clusters[2] / ratios.memory],
        }
    }

    fn of(&self, algorithm: Algorithm, types: Types, n: i64) -> &Kernel {
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
            _ => &self.row[bytes][form],
        }
    }
}

/// What an algorithm moves, and how long it takes.
#[derive(Clone, Copy, Debug)]
pub struct Estimate {
    /// Bytes of A, and of B and C once.
    pub bytes: f64,
    /// Seconds.
    pub seconds: f64,
}

/// What a product does: the factors of a kernel's rates, in their order.
#[derive(Clone, Copy, Debug)]
pub struct Work {
    /// Entries of the longest row.
    pub longest: f64,
    /// Bytes of A, B and C once.
    pub bytes: f64,
    /// Bytes of rows of B, as often as they are fetched.
    pub fetched: f64,
    /// Bytes of rows of B, once for each 64 rows of A.
    pub near: f64,
    /// Entries, tiles or blocks, each for 32 columns of C.
    pub work: f64,
    /// Rows or windows, alike.
    pub units: f64,
    /// Multiply-adds, those with zeros of tiles and blocks included.
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

    /// Seconds of so much work.
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

/// What an algorithm does for `n` columns of C on a device of so many multiprocessors.
pub fn work(survey: &Survey, algorithm: Algorithm, types: Types, n: i64, multiprocessors: usize) -> Work {
    let counts = &survey.counts;
    let (rows, cols, nnz) = (counts.rows as f64, survey.cols as f64, counts.nnz as f64);
    let (value, columns) = (types.a.size() as f64, n.max(1) as f64);
    let row_of_b = (columns * types.x.size() as f64).max(SECTOR);
    // A tile of 32 columns at the least.
    let tiles = (columns / 32.0).max(1.0);
    let dense = columns * (cols * types.x.size() as f64 + rows * types.y.size() as f64);
    let mut longest = survey.longest as f64;
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
            // A few tiles of C take all of the columns one after the other: 507 rows of 63,009
            // columns take 10 ms.
            longest = cols * (cols / (8.0 * rows.max(1.0))).max(1.0);
            near = 0.0;
            (rows * cols * value, rows / 128.0 * cols, rows * cols / 256.0, 0.0, rows * cols)
        }
        _ => {
            // Longer ones are cut.
            longest = longest.min(PARTS);
            // `sell` has columns of 16 bits, no offsets.
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

/// Entries of a row that one warp takes at the most, about.
const PARTS: f64 = 1024.0;
/// Bytes that are read at the least.
const SECTOR: f64 = 32.0;

/// Rows of a window.
fn height(counts: &Counts, types: Types, n: i64, multiprocessors: usize) -> usize {
    let n = n.max(1) as usize;
    match types.a.size() {
        2 => window::rules(counts, n, multiprocessors).height,
        _ if types.compute == ComputeType::R64F => masked_window::rules_of_doubles(counts, n).height,
        _ => 16,
    }
}

/// What an algorithm takes on a machine with these rates.
pub fn estimate(rates: &Rates, survey: &Survey, algorithm: Algorithm, types: Types, n: i64) -> Estimate {
    let work = work(survey, algorithm, types, n, rates.multiprocessors);
    let kernel = rates.of(algorithm, types, n);
    let [plain, by_matrix_units] = rates.doubles;
    let doubles = match (types.compute, algorithm) {
        (ComputeType::R64F, Algorithm::Window | Algorithm::Smat | Algorithm::Dense) => by_matrix_units,
        (ComputeType::R64F, _) => plain,
        (ComputeType::C64F, _) => 4.0 * plain,
        _ => 0.0,
    };
    Estimate { bytes: work.bytes, seconds: kernel.seconds(&work) + work.products * doubles }
}

/// What clusters of rows leave of windows' columns where they help: cop20k 0.35, consph 0.45, shipsec1
/// 0.56; of others more.
const HOPED: f64 = 0.45;
/// Predictions are off by a fifth: clusters are looked for where a product with what they are hoped to
/// leave would take less than so much of one by the best algorithm.
const WORTH: f64 = 0.75;
/// And taken where windows with what they have left take less than so much of what is best without:
/// a stencil's clusters were predicted to gain 7 to 15 % and lost 10 to 14, since rows of B that L2 had
/// were further apart then (poisson160, fp16, N = 128: 1169 and 1333 µs).
const PAYS: f64 = 0.85;
/// Seconds that clusters take on an H100, about: to begin with, an entry, and a row (docs/algorithms/orders.md, row
/// clusters).
pub const CLUSTERS: [f64; 3] = [1.5e-3, 0.15e-9, 1e-9];
/// Products of [`BUDGET_COLUMNS`] columns that they may take the time of.
const BUDGET: f64 = 150.0;
const BUDGET_COLUMNS: i64 = 128;

/// Whether clusters of rows are worth their time, if the choice is among these algorithms: what windows
/// of them could save for `n` columns of C at a time, and what they cost.
pub fn clusters_may_pay(rates: &Rates, survey: &Survey, types: Types, n: i64, among: &[Algorithm]) -> bool {
    if !among.contains(&Algorithm::Window) || survey.counts.looked == 0 {
        return false;
    }
    let hoped = Survey { counts: survey.counts.hoped(HOPED), ..*survey };
    let window = |n| estimate(rates, &hoped, Algorithm::Window, types, n).seconds;
    let all = among.iter().map(|&algorithm| estimate(rates, survey, algorithm, types, n).seconds);
    let best = all.fold(f64::INFINITY, f64::min);
    let [start, entry, row] = rates.clusters;
    let cost = start + entry * survey.counts.nnz as f64 + row * survey.counts.rows as f64;
    window(n) < WORTH * best && cost < BUDGET * window(BUDGET_COLUMNS)
}

/// Whether to put rows in clusters where a product takes so many seconds then, and so many at best if
/// they stay in order.
pub fn clusters_pay(clustered: f64, in_order: f64) -> bool {
    clustered < PAYS * in_order
}

/// The same of `window`, of which a survey with the rows in clusters and one with the rows in their order are known.
pub fn clusters_gain(
    machine: &Machine,
    problem: &SpmmProblem,
    clustered: &Survey,
    in_order: &Survey,
) -> bool {
    let Some(rates) = machine.spmm_rates() else { return false };
    let seconds = |survey| estimate(rates, survey, Algorithm::Window, problem.types, problem.n_hint).seconds;
    clusters_pay(seconds(clustered), seconds(in_order))
}

#[cfg(test)]
mod fit;
#[cfg(test)]
pub(super) mod tests;

//! Seconds that analysis takes, and what a choice costs a program that says how often it will execute:
//!
//! seconds = analysis + executes · execute
//! analysis = start + entry · (stored entries) + row · (rows of op(A)), and a copy's where rows are not in place
//!
//! The H100's numbers are fitted to the column analysis_ms of benches/results/h100-spmv.tsv, h100-spmm.tsv,
//! h100-spgemm.tsv, h100-spmm-swift.tsv and h100-spmm-orders.tsv (least absolute relative errors, which are 10
//! to 60 % in the mean, `dense` more: it depends on the columns, too), the host's to
//! zen4-2-threads-spmv.tsv, -spmm.tsv and -spgemm.tsv. What was not measured says so.
//!
//! On other GPUs entries and rows take what their memory makes of it, since conversions are passes over arrays, and the
//! start, launches and waits, is the same.

use super::roofline::Machine;
use super::{Choice, Source};
use crate::algorithm::Algorithm;
use crate::matrix::SparseMatrix;
use crate::types::{Effort, Operation, Reorder};

/// What an analysis takes.
#[derive(Clone, Copy, Debug)]
pub struct Cost {
    /// Seconds to begin with.
    start: f64,
    /// Seconds of a stored entry.
    entry: f64,
    /// Seconds of a row.
    row: f64,
}

/// Microseconds to begin with, picoseconds of an entry and of a row.
const fn cost(start: f64, entry: f64, row: f64) -> Cost {
    Cost { start: start * 1e-6, entry: entry * 1e-12, row: row * 1e-12 }
}

impl Cost {
    /// On a machine whose memory is so many times as fast as that of the one it was fitted on: conversions are
    /// passes over arrays.
    fn seconds(&self, size: &Size, memory: f64) -> f64 {
        self.start + self.entry / memory * size.entries + self.row / memory * size.rows
    }
}

/// What analyses take on a kind of machine.
#[derive(Clone, Copy, Debug)]
pub struct Costs {
    /// What an analysis for an algorithm costs, where an operation has several to choose among.
    algorithms: &'static [(Algorithm, Cost)],
    /// A sorted copy of rows that are not in place.
    copy: Cost,
    /// Columns of 16 bits of rows in place.
    columns: Cost,
    /// Rows in order of length, and in Gray code order.
    orders: [Cost; 2],
    /// Counting what decides, of SpMV, SpMM and SpGEMM.
    surveys: [f64; 3],
}

/// An H100. Surveys: the median of what the default takes beyond its choice by name; SpGEMM's is of docs/choosing.md.
/// Estimated: `copy`, by the 0.2 ms and more that analyses with a sort of the columns take beyond those
/// without, and 20 passes over 12 bytes an entry; `columns`, by two passes over 4 bytes an entry and one over 2, of
/// memory that is new, a launch and a wait.
pub const H100: Costs = Costs {
    algorithms: &[
        (Algorithm::Csr, cost(72.0, 2.0, 32.0)),
        (Algorithm::Sell, cost(195.0, 15.0, 111.0)),
        (Algorithm::Stream, cost(241.0, 8.7, 29.0)),
        (Algorithm::Dasp, cost(362.0, 19.0, 49.0)),
        (Algorithm::MaskBlock, cost(323.0, 25.0, 251.0)),
        (Algorithm::Row, cost(199.0, 0.0, 99.0)),
        (Algorithm::Window, cost(236.0, 64.0, 577.0)),
        (Algorithm::Smat, cost(1678.0, 131.0, 4650.0)),
        (Algorithm::Dense, cost(118.0, 90.0, 7048.0)),
        (Algorithm::SpmmSell, cost(185.0, 21.0, 120.0)),
        (Algorithm::Swift, cost(578.0, 206.0, 1875.0)),
        (Algorithm::SpmmCsr, cost(93.0, 0.0, 305.0)),
        (Algorithm::Hash, cost(101.0, 25.0, 0.0)),
        (Algorithm::Tile, cost(294.0, 42.0, 434.0)),
    ],
    copy: cost(200.0, 80.0, 50.0),
    columns: cost(30.0, 7.0, 5.0),
    orders: [cost(331.0, 0.0, 67_300.0), cost(1522.0, 2355.0, 59_600.0)],
    surveys: [61e-6, 150e-6, 100e-6],
};

/// Two threads of a server processor. Measured: `sell` as SpMV's default, `row` as SpMM's, `hash` as SpGEMM's.
/// Estimated: `csr` as `row`, which checks and cuts the same rows; the other layouts as `sell`, blocks of rows at
/// twice as much; `copy` as `sell` without what `row` takes, `columns` as a fourth of that (no plan has them there);
/// orders as on the H100, where the host makes them.
pub const HOST: Costs = Costs {
    algorithms: &[
        (Algorithm::Csr, cost(129.0, 216.0, 911.0)),
        (Algorithm::Sell, cost(178.0, 2337.0, 560.0)),
        (Algorithm::Stream, cost(178.0, 2337.0, 560.0)),
        (Algorithm::Dasp, cost(178.0, 2337.0, 560.0)),
        (Algorithm::MaskBlock, cost(178.0, 4674.0, 1120.0)),
        (Algorithm::Row, cost(129.0, 216.0, 911.0)),
        (Algorithm::Window, cost(178.0, 4674.0, 1120.0)),
        (Algorithm::Smat, cost(178.0, 4674.0, 1120.0)),
        (Algorithm::Dense, cost(178.0, 2337.0, 560.0)),
        (Algorithm::SpmmSell, cost(178.0, 2337.0, 560.0)),
        (Algorithm::Swift, cost(178.0, 4674.0, 1120.0)),
        (Algorithm::SpmmCsr, cost(129.0, 216.0, 911.0)),
        (Algorithm::Hash, cost(102.0, 1259.0, 6532.0)),
        (Algorithm::Tile, cost(102.0, 4674.0, 6532.0)),
    ],
    copy: cost(50.0, 2121.0, 560.0),
    columns: cost(12.0, 530.0, 140.0),
    orders: [cost(331.0, 0.0, 67_300.0), cost(1522.0, 2355.0, 59_600.0)],
    surveys: [0.0; 3],
};

impl Costs {
    /// Nothing for an algorithm that there is no choice of.
    fn of(&self, algorithm: Algorithm) -> Cost {
        let known = self.algorithms.iter().find(|known| known.0 == algorithm);
        known.map_or(cost(0.0, 0.0, 0.0), |known| known.1)
    }
}

/// What analysis works on.
#[derive(Clone, Copy, Debug)]
struct Size {
    entries: f64,
    rows: f64,
}

/// A product of which a program says how often it will be executed.
#[derive(Clone, Copy, Debug)]
pub struct Amortized {
    costs: &'static Costs,
    /// Bytes a second of memory, over those of the machine that the costs are of.
    memory: f64,
    size: Size,
    /// Rows of op(A) lie in the user's arrays.
    is_in_place: bool,
    /// 0: nobody knows.
    executes: i64,
}

/// Predictions are off by up to this factor: their errors' logarithms have a root mean square of 0.13 to 0.40
/// (docs/algorithms/choice.md, "Choices that were learned").
const OFF: f64 = 2.0;
/// Executes that a measurement is made of, the one that is not timed included.
const TIMED_EXECUTES: f64 = 6.0;

impl Amortized {
    /// Of a product with a sparse matrix, so many times.
    pub fn new(machine: &Machine, a: &SparseMatrix, op: Operation, executes: i64) -> Self {
        let (rows, _, nnz) = a.shape_of(op);
        let size = Size { entries: nnz as f64, rows: rows as f64 };
        let memory = machine.memory_ratio();
        Amortized { costs: machine.analysis, memory, size, is_in_place: super::in_place(a, op), executes }
    }

    /// Whether a number is known.
    pub fn is_known(&self) -> bool {
        self.executes > 0
    }

    /// Seconds of analysis, but for surveys.
    pub fn analysis(&self, choice: &Choice) -> f64 {
        // Orders are made by the host.
        let order = match choice.method.reorder() {
            Reorder::Lpt => self.costs.orders[0].seconds(&self.size, 1.0),
            order if order.is_named() => self.costs.orders[1].seconds(&self.size, 1.0),
            _ => 0.0,
        };
        let columns =
            if choice.narrow_columns { self.costs.columns.seconds(&self.size, self.memory) } else { 0.0 };
        self.analysis_of(choice.algorithm(), choice.a) + order + columns
    }

    /// Of rows in their order.
    fn analysis_of(&self, algorithm: Algorithm, source: Source) -> f64 {
        // A copy is made where rows are not in place, and of `csr` and `row` by choice.
        let is_copied = match source {
            Source::InPlace => false,
            Source::Canonical => !self.is_in_place || !algorithm.is_converted(),
        };
        let copy = if is_copied { self.costs.copy.seconds(&self.size, self.memory) } else { 0.0 };
        self.costs.of(algorithm).seconds(&self.size, self.memory) + copy
    }

    /// What is minimised: seconds of analysis and all executes, or where their number is not known of one
    /// execute; of the predicted seconds of an execute.
    pub fn total(&self, choice: &Choice, execute: f64) -> f64 {
        match self.is_known() {
            true => self.analysis(choice) + self.executes as f64 * execute,
            false => execute,
        }
    }

    /// Whether counting a pattern may pay, whose product by the simplest algorithm is predicted to take
    /// `execute` seconds at the least: all executes together take longer than the counting and the cheapest
    /// conversion, even if they take longer than is predicted.
    fn may_look(&self, execute: f64, survey: f64, simplest: Algorithm, others: &[Algorithm]) -> bool {
        let seconds = |algorithm| self.costs.of(algorithm).seconds(&self.size, self.memory);
        let cheapest = others.iter().map(|&other| seconds(other)).fold(f64::INFINITY, f64::min);
        let more = (cheapest - seconds(simplest)).max(0.0);
        !self.is_known() || self.executes as f64 * execute * 2.0 * OFF > survey + more
    }

    /// The same for SpMV.
    pub fn may_look_spmv(&self, execute: f64) -> bool {
        use Algorithm::{Csr, Dasp, MaskBlock, Sell, Stream};
        self.may_look(execute, self.costs.surveys[0], Csr, &[Sell, Stream, Dasp, MaskBlock])
    }

    /// The same for SpMM.
    pub fn may_look_spmm(&self, execute: f64) -> bool {
        use Algorithm::{Dense, Row, SpmmSell, Window};
        self.may_look(execute, self.costs.surveys[1], Row, &[SpmmSell, Window, Dense])
    }

    /// The same for SpGEMM; seconds of `hash`.
    pub fn may_look_spgemm(&self, execute: f64) -> bool {
        self.may_look(execute, self.costs.surveys[2], Algorithm::Hash, &[Algorithm::Tile])
    }

    /// Whether columns of 16 bits pay that save so many seconds of an execute.
    pub fn may_narrow(&self, gain: f64) -> bool {
        !self.is_known() || self.executes as f64 * gain > self.costs.columns.seconds(&self.size, self.memory)
    }

    /// Whether rows may be put in clusters, which takes so many seconds at the least.
    pub fn may_cluster(&self, execute: f64, seconds: f64) -> bool {
        !self.is_known() || self.executes as f64 * execute * OFF > seconds
    }

    /// Whether `tile` costs less than `hash`, which takes `gain` times as long as `tile` does, and `execute`
    /// seconds.
    pub fn takes_tiles(&self, execute: f64, gain: f64) -> bool {
        let [hash, tile] = [Algorithm::Hash, Algorithm::Tile]
            .map(|algorithm| self.costs.of(algorithm).seconds(&self.size, self.memory));
        !self.is_known() || self.executes as f64 * execute * (1.0 - 1.0 / gain) > tile - hash
    }

    /// What effort TUNED times, and how many choices that are at the front then: with a known number of
    /// executes only what may gain more than to build and time it costs. The others stay behind, for
    /// where one cannot be built.
    pub fn worth_timing(
        &self,
        effort: Effort,
        choices: Vec<Choice>,
        most: usize,
    ) -> (Effort, Vec<Choice>, usize) {
        if effort != Effort::Tuned || !self.is_known() || choices.is_empty() {
            return (effort, choices, most);
        }
        let first = choices[0].predicted_seconds;
        let may_gain = |choice: &Choice| {
            let gain = self.executes as f64 * (first - choice.predicted_seconds / OFF);
            gain > self.analysis(choice) + TIMED_EXECUTES * (first + choice.predicted_seconds)
        };
        let mut kept = Vec::new();
        let mut others = Vec::new();
        for (at, choice) in choices.into_iter().enumerate() {
            match at == 0 || (at < most && may_gain(&choice)) {
                true => kept.push(choice),
                false => others.push(choice),
            }
        }
        let timed = kept.len();
        if timed == 1 {
            kept[0].reason.push_str("; nothing is timed, since no other may gain what that takes");
        }
        kept.append(&mut others);
        // One alone is the choice, whatever it takes.
        (if timed > 1 { Effort::Tuned } else { Effort::Default }, kept, timed)
    }

    /// What each algorithm is predicted to take with its analysis and all executes, for reasons; nothing where
    /// their number is not known.
    pub fn compare(&self, choices: &[Choice]) -> String {
        if !self.is_known() || choices.len() < 2 {
            return String::new();
        }
        let mut totals: Vec<(&str, f64)> = Vec::new();
        for choice in choices {
            let name = choice.algorithm().name();
            if totals.iter().all(|(other, _)| *other != name) {
                totals.push((name, self.total(choice, choice.predicted_seconds)));
            }
        }
        let all: Vec<_> = totals.iter().map(|(name, seconds)| format!("{name} {seconds:.1e} s")).collect();
        format!("; with analysis: {}", all.join(", "))
    }

    /// Says in the reason how many executes the choice is for.
    pub fn explain(&self, choice: &mut Choice) {
        if self.is_known() {
            let (analysis, execute) = (self.analysis(choice), choice.predicted_seconds);
            let s = if self.executes == 1 { "" } else { "s" };
            choice.reason = format!(
                "for {} execute{s} of {execute:.2e} s and an analysis of {analysis:.2e} s: {}",
                self.executes, choice.reason
            );
        }
    }
}

#[cfg(test)]
mod tests;

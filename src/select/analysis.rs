//! Cost model of analysis, and of a plan whose number of executions the program states:
//!
//! seconds = analysis + executes · execute
//! analysis = start + entry · (stored entries) + row · (rows of op(A)), and a copy if rows are not in place
//!
//! The H100's numbers are fitted to the column analysis_ms of a table like benches/results/h100-analysis.tsv, of
//! an earlier state of the same day (mean relative errors on that file: 9 to 37 %). Those of `smat`, `dense`,
//! `swift`, SpGEMM and orders are fitted to h100-spmm.tsv, h100-spmm-swift.tsv, h100-spgemm.tsv and
//! h100-spmm-orders.tsv, by least absolute relative errors, which are 10 to 60 % in the mean (more for `dense`,
//! which also depends on the number of columns); the host's numbers to zen4-2-threads-spmv.tsv, -spmm.tsv and
//! -spgemm.tsv. Estimates that were not measured are marked as such.
//!
//! On other GPUs the costs of entries and rows are scaled by memory bandwidth, since conversions are passes
//! over arrays; the start, which is launches and waits, is the same.

use super::roofline::Machine;
use super::{duration, Choice, Source};
use crate::algorithm::Algorithm;
use crate::matrix::SparseMatrix;
use crate::types::{Effort, Operation, Reorder};

/// Cost of one analysis.
#[derive(Clone, Copy, Debug)]
pub struct Cost {
    /// Fixed seconds.
    start: f64,
    /// Seconds per stored entry.
    entry: f64,
    /// Seconds per row.
    row: f64,
}

/// Cost from a fixed time in microseconds and times per entry and per row in picoseconds.
const fn cost(start: f64, entry: f64, row: f64) -> Cost {
    Cost { start: start * 1e-6, entry: entry * 1e-12, row: row * 1e-12 }
}

impl Cost {
    /// Seconds of an analysis on a machine with `memory` times the bandwidth of the one that the cost was
    /// fitted on: conversions are passes over arrays.
    fn seconds(&self, size: &Size, memory: f64) -> f64 {
        self.start + self.entry / memory * size.entries + self.row / memory * size.rows
    }
}

/// Costs of analyses on a kind of machine.
#[derive(Clone, Copy, Debug)]
pub struct Costs {
    /// Cost of an analysis for each algorithm of an operation that has several to choose among.
    algorithms: &'static [(Algorithm, Cost)],
    /// Cost of a sorted copy of rows that are not in place.
    copy: Cost,
    /// Cost of columns of the plan's own for rows in place.
    columns: Cost,
    /// Costs of ordering rows by length (LPT), and of any other order by name (measured in Gray code order).
    orders: [Cost; 2],
    /// Seconds of counting the pattern statistics of SpMV, SpMM and SpGEMM.
    statistics: [f64; 3],
    /// Share of its least time that an execution of SpMV and of SpMM is likely to gain by another algorithm than the
    /// simplest.
    gains: [f64; 2],
    /// Least seconds of an execution.
    least_execute: f64,
}

/// Costs on an H100. `statistics` has the medians of what the default takes beyond the same algorithm by name;
/// SpGEMM's is from docs/choosing.md. Two are estimates: `copy`, from the 0.2 ms and more that analyses with
/// a sort of the columns take beyond those without, and 20 passes over 12 bytes an entry; `columns`, from two
/// passes over 4 bytes an entry and one over 2, in newly allocated memory, with a launch and a wait. `gains` are
/// more than what is gained in the mean of 28 real matrices, fp64 and fp32: `csr` takes 1.36 and 1.40 times as long as
/// `sell`, and SpMM's `row` with N = 32 1.06 and 1.03 times as long as the best algorithm (at most 1.96).
/// `least_execute` is an empty kernel and a chain of dependent loads (docs/algorithms/row.md, "What bounds small products").
pub const H100: Costs = Costs {
    algorithms: &[
        (Algorithm::Csr, cost(30.0, 2.0, 80.0)),
        (Algorithm::Sell, cost(120.0, 30.0, 0.0)),
        (Algorithm::Stream, cost(120.0, 0.0, 200.0)),
        (Algorithm::Dasp, cost(250.0, 0.0, 500.0)),
        (Algorithm::MaskBlock, cost(210.0, 80.0, 20.0)),
        (Algorithm::Row, cost(50.0, 5.0, 80.0)),
        (Algorithm::Window, cost(140.0, 120.0, 2000.0)),
        (Algorithm::Smat, cost(1678.0, 131.0, 4650.0)),
        (Algorithm::Dense, cost(118.0, 90.0, 7048.0)),
        (Algorithm::SpmmSell, cost(120.0, 8.0, 200.0)),
        (Algorithm::Swift, cost(578.0, 206.0, 1875.0)),
        (Algorithm::SpmmCsr, cost(25.0, 0.0, 40.0)),
        (Algorithm::Hash, cost(101.0, 25.0, 0.0)),
        (Algorithm::Tile, cost(294.0, 42.0, 434.0)),
    ],
    copy: cost(200.0, 80.0, 50.0),
    columns: cost(30.0, 7.0, 5.0),
    orders: [cost(331.0, 0.0, 67_300.0), cost(1522.0, 2355.0, 59_600.0)],
    statistics: [30e-6, 70e-6, 100e-6],
    gains: [0.45, 0.3],
    least_execute: 5e-6,
};

/// Costs on two threads of a server processor. Measured are `sell` as SpMV's default, `row` as SpMM's and
/// `hash` as SpGEMM's. `columns` are those of SpMM `row`, a little more than was measured on one thread of an Ice
/// Lake server (docs/algorithms/host.md, "Columns of the plan's own"). Estimated are `csr` like `row`, which checks and cuts the same
/// rows; the other layouts like `sell`, those of blocks of rows at twice as much; `copy` like `sell` without what `row`
/// takes; and orders as on the H100, where the host computes them.
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
    columns: cost(10.0, 800.0, 0.0),
    orders: [cost(331.0, 0.0, 67_300.0), cost(1522.0, 2355.0, 59_600.0)],
    statistics: [0.0; 3],
    gains: [0.45, 0.3],
    least_execute: 0.0,
};

impl Costs {
    /// Cost of an analysis for an algorithm; zero for the only algorithm of its operation.
    fn of(&self, algorithm: Algorithm) -> Cost {
        let known = self.algorithms.iter().find(|known| known.0 == algorithm);
        known.map_or(cost(0.0, 0.0, 0.0), |known| known.1)
    }
}

/// Size of the matrix that an analysis works on.
#[derive(Clone, Copy, Debug)]
struct Size {
    entries: f64,
    rows: f64,
}

/// Cost model of a product whose number of executions the program may have stated.
#[derive(Clone, Copy, Debug)]
pub struct Amortized {
    costs: &'static Costs,
    /// Memory bandwidth relative to the machine that the costs were fitted on.
    memory: f64,
    size: Size,
    /// True if rows of op(A) are contiguous in the user's arrays.
    is_in_place: bool,
    /// Number of executions; 0 if unknown.
    executes: i64,
}

/// Factor by which predictions may be off: the root mean square of the errors' logarithms is 0.13 to 0.40
/// (docs/algorithms/choice.md, "Choices that were learned").
const OFF: f64 = 2.0;
/// Number of executions of one measurement, including the first one, which is not timed.
const TIMED_EXECUTES: f64 = 6.0;

impl Amortized {
    /// Cost model of a product with the sparse matrix op(A) that is executed `executes` times (0: unknown).
    pub fn new(machine: &Machine, a: &SparseMatrix, op: Operation, executes: i64) -> Self {
        let (rows, _, nnz) = a.shape_of(op);
        let size = Size { entries: nnz as f64, rows: rows as f64 };
        let memory = machine.memory_ratio();
        Amortized { costs: machine.analysis, memory, size, is_in_place: super::in_place(a, op), executes }
    }

    /// Returns whether the number of executions is known.
    pub fn is_known(&self) -> bool {
        self.executes > 0
    }

    /// Seconds of analysis, without those of counting pattern statistics.
    pub fn analysis(&self, choice: &Choice) -> f64 {
        // The host computes orders, whatever the device.
        let order = match choice.method.reorder() {
            Reorder::Lpt => self.costs.orders[0].seconds(&self.size, 1.0),
            order if order.is_named() => self.costs.orders[1].seconds(&self.size, 1.0),
            _ => 0.0,
        };
        let columns =
            if choice.keeps_columns { self.costs.columns.seconds(&self.size, self.memory) } else { 0.0 };
        self.analysis_of(choice.algorithm(), choice.a) + order + columns
    }

    /// Seconds of analysis with the rows in their own order.
    fn analysis_of(&self, algorithm: Algorithm, source: Source) -> f64 {
        // A copy is made where rows are not in place; and also of rows in place if `csr` or `row` is to read
        // a copy.
        let is_copied = match source {
            Source::InPlace => false,
            Source::Canonical => !self.is_in_place || !algorithm.is_converted(),
        };
        let copy = if is_copied { self.costs.copy.seconds(&self.size, self.memory) } else { 0.0 };
        self.costs.of(algorithm).seconds(&self.size, self.memory) + copy
    }

    /// Cost that selection minimises, given `execute`, the predicted seconds of one execution: the seconds of
    /// analysis and all executions, or `execute` itself if the number of executions is unknown.
    pub fn total(&self, choice: &Choice, execute: f64) -> f64 {
        match self.is_known() {
            true => self.analysis(choice) + self.executes as f64 * execute,
            false => execute,
        }
    }

    /// Returns whether counting the pattern statistics may pay: what all executions together may gain, `gain` seconds
    /// each, must exceed the counting and what the cheapest other conversion costs more.
    fn may_inspect(&self, gain: f64, counting: f64, simplest: Algorithm, others: &[Algorithm]) -> bool {
        let seconds = |algorithm| self.costs.of(algorithm).seconds(&self.size, self.memory);
        let cheapest = others.iter().map(|&other| seconds(other)).fold(f64::INFINITY, f64::min);
        let more = (cheapest - seconds(simplest)).max(0.0);
        !self.is_known() || self.executes as f64 * gain > counting + more
    }

    /// Returns whether counting the pattern statistics of SpMV may pay.
    pub fn may_inspect_spmv(&self, execute: f64) -> bool {
        use Algorithm::{Csr, Dasp, MaskBlock, Sell, Stream};
        let gain = self.costs.gains[0] * execute.max(self.costs.least_execute);
        self.may_inspect(gain, self.costs.statistics[0], Csr, &[Sell, Stream, Dasp, MaskBlock])
    }

    /// Returns whether counting the pattern statistics of SpMM may pay.
    pub fn may_inspect_spmm(&self, execute: f64) -> bool {
        use Algorithm::{Dense, Row, SpmmSell, Window};
        let gain = self.costs.gains[1] * execute.max(self.costs.least_execute);
        self.may_inspect(gain, self.costs.statistics[1], Row, &[SpmmSell, Window, Dense])
    }

    /// Returns whether counting the pattern statistics of SpGEMM may pay, given the seconds of `hash`.
    pub fn may_inspect_spgemm(&self, execute: f64) -> bool {
        self.may_inspect(2.0 * OFF * execute, self.costs.statistics[2], Algorithm::Hash, &[Algorithm::Tile])
    }

    /// Returns whether columns of the plan's own, which save `gain` seconds of each execution, pay for themselves.
    pub fn may_keep_columns(&self, gain: f64) -> bool {
        !self.is_known() || self.executes as f64 * gain > self.costs.columns.seconds(&self.size, self.memory)
    }

    /// Returns whether clustering rows, which takes at least `seconds`, may pay.
    pub fn may_cluster(&self, execute: f64, seconds: f64) -> bool {
        !self.is_known() || self.executes as f64 * execute * self.costs.gains[1] > seconds
    }

    /// Returns whether `tile` costs less in total than `hash`, which takes `execute` seconds, `gain` times as
    /// long as `tile`.
    pub fn takes_tiles(&self, execute: f64, gain: f64) -> bool {
        let [hash, tile] = [Algorithm::Hash, Algorithm::Tile]
            .map(|algorithm| self.costs.of(algorithm).seconds(&self.size, self.memory));
        !self.is_known() || self.executes as f64 * execute * (1.0 - 1.0 / gain) > tile - hash
    }

    /// Effort and choices that remain after dropping measurements that cannot pay, and the number of choices
    /// to time, which come first. With a known number of executions, effort TUNED times only choices that may
    /// gain more than it costs to build and time them. The others stay behind these, in case a choice cannot
    /// be built.
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
        // A single choice is taken without timing.
        (if timed > 1 { Effort::Tuned } else { Effort::Default }, kept, timed)
    }

    /// Predicted seconds of each algorithm, with its analysis and all executions, as text for reasons; empty
    /// if their number is unknown.
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
        let all: Vec<_> =
            totals.iter().map(|(name, seconds)| format!("{name} {}", duration(*seconds))).collect();
        format!("; with analysis: {}", all.join(", "))
    }

    /// Adds to the reason how many executions the choice is for.
    pub fn explain(&self, choice: &mut Choice) {
        if self.is_known() {
            let (analysis, execute) = (self.analysis(choice), choice.predicted_seconds);
            let s = if self.executes == 1 { "" } else { "s" };
            choice.reason = format!(
                "for {} execute{s} of {} and an analysis of {}: {}",
                self.executes,
                duration(execute),
                duration(analysis),
                choice.reason
            );
        }
    }
}

#[cfg(test)]
mod tests;

//! `--explain`: the statistics of the cost model, its predictions for every candidate, its choice and the
//! reason; for a GPU and for a CPU, whatever this machine has.

use std::io::{self, Write};

use matrices::owned::OwnedCsr;
use serde::Serialize;
use tarsia::facade::{
    run_in_pool, BackendKind, Choice, ComputeType, CountedProblem, DataType, Element as _, Operation,
    SpmmStatistics, SpmvStatistics,
};

use super::choices::Number;
use super::layouts;
use super::statistics::MatrixStatistics;
use crate::features::{Feature, Features};
use crate::table::{note, size};
use crate::Result;

/// The choice for one operation on one machine.
#[derive(Debug, Serialize)]
pub struct Explanation {
    pub operation: String,
    pub machine: &'static str,
    pub precision: &'static str,
    /// Pattern statistics, by name.
    pub features: Vec<Feature>,
    /// Candidates in the order of the model's preference.
    pub candidates: Vec<Candidate>,
    pub chosen: &'static str,
    pub reason: String,
}

/// An algorithm among which the model chooses.
#[derive(Debug, Serialize)]
pub struct Candidate {
    pub algorithm: &'static str,
    /// Bytes of the matrix and the dense operands; `None` if the model has no number.
    pub bytes: Option<f64>,
    pub seconds: Option<f64>,
}

/// Explains the choices for a matrix and for its copy in half as many bits, SpMM with `n` columns.
pub fn of<T: Number>(a: &OwnedCsr<T>, statistics: &MatrixStatistics, n: i64) -> Result<Vec<Explanation>> {
    let mut out = in_type(a, statistics, n, (T::TYPE, T::COMPUTE), T::NAME)?;
    out.extend(in_type(a, statistics, n, (T::Half::TYPE, T::HALF_COMPUTE), T::HALF_NAME)?);
    Ok(out)
}

fn in_type<V: Sync>(
    a: &OwnedCsr<V>,
    statistics: &MatrixStatistics,
    n: i64,
    (value_type, compute): (DataType, ComputeType),
    precision: &'static str,
) -> Result<Vec<Explanation>> {
    let pattern = layouts::pattern(a);
    let asked = Asked {
        statistics: run_in_pool(|| SpmvStatistics::of(&pattern, value_type.size())),
        windows: run_in_pool(|| SpmmStatistics::of(&pattern, value_type)),
        problem: |backend| layouts::counted(a, backend, (value_type, compute)),
        precision,
    };
    let machines = [("H100", BackendKind::Cuda), ("host", BackendKind::Host)];
    let mut out = Vec::new();
    for (name, backend) in machines {
        out.push(asked.spmv(name, backend)?);
        out.push(asked.spmm(name, backend, n)?);
        out.push(asked.spgemm(name, backend, statistics)?);
    }
    Ok(out)
}

/// Statistics and settings that do not depend on the machine.
struct Asked<P> {
    statistics: SpmvStatistics,
    windows: SpmmStatistics,
    problem: P,
    precision: &'static str,
}

impl<P: Fn(BackendKind) -> CountedProblem> Asked<P> {
    fn explanation(
        &self,
        operation: String,
        machine: &'static str,
        features: Vec<Feature>,
        choices: &[Choice],
    ) -> Explanation {
        let known = |number: f64| (number > 0.0).then_some(number);
        let mut candidates: Vec<Candidate> = Vec::new();
        for choice in choices {
            let algorithm = choice.algorithm().name();
            // An algorithm may occur twice, in place and as a copy; only the first is kept.
            if candidates.iter().all(|other| other.algorithm != algorithm) {
                let (bytes, seconds) = (known(choice.bytes), known(choice.predicted_seconds));
                candidates.push(Candidate { algorithm, bytes, seconds });
            }
        }
        let (chosen, reason) = choices
            .first()
            .map_or(("none", String::new()), |first| (first.algorithm().name(), first.reason.clone()));
        Explanation { operation, machine, precision: self.precision, features, candidates, chosen, reason }
    }

    fn spmv(&self, name: &'static str, backend: BackendKind) -> Result<Explanation> {
        let choices = (self.problem)(backend).spmv(&self.statistics)?;
        let statistics = &self.statistics;
        let features = features(&[
            ("entries of a row, mean", statistics.mean()),
            ("entries of the longest row", statistics.longest() as f64),
            ("empty rows", statistics.empty_rows() as f64),
            ("share of runs with 16-bit columns", statistics.narrow()),
            ("sectors of x for 32 entries along a row", statistics.sectors_along()),
            ("sectors of x for 32 rows", statistics.sectors_across()),
            ("entries of a block of 8 x 4", statistics.entries_of_block()),
            ("entries of a block of 4 x 4", statistics.entries_of_half_block()),
        ]);
        Ok(self.explanation("SpMV".into(), name, features, &choices))
    }

    fn spmm(&self, name: &'static str, backend: BackendKind, n: i64) -> Result<Explanation> {
        let choices = (self.problem)(backend).spmm(&self.windows, n)?;
        let counts = &self.windows.counts;
        let features = features(&[
            ("entries that a row of B serves in windows of 8 rows", counts.reuse(8)),
            ("of 16 rows", counts.reuse(16)),
            ("of 32 rows", counts.reuse(32)),
            ("of 64 rows", counts.reuse(64)),
            ("entries of the longest row", self.windows.longest as f64),
        ]);
        Ok(self.explanation(format!("SpMM, N = {n}"), name, features, &choices))
    }

    fn spgemm(
        &self,
        name: &'static str,
        backend: BackendKind,
        statistics: &MatrixStatistics,
    ) -> Result<Explanation> {
        let op =
            if statistics.rows == statistics.cols { Operation::NonTranspose } else { Operation::Transpose };
        let found = &statistics.spgemm;
        let products = i64::try_from(found.products).unwrap_or(i64::MAX);
        let choices = (self.problem)(backend).spgemm(op, products)?;
        let features = features(&[
            ("multiplications", found.products as f64),
            ("multiplications for an entry of C", found.compression),
            ("entries of C", found.nnz),
        ]);
        Ok(self.explanation(format!("SpGEMM, {}", found.product), name, features, &choices))
    }
}

/// Names of the statistics that are counts; all others are means, shares or ratios.
const COUNTS: [&str; 4] = ["entries of the longest row", "empty rows", "multiplications", "entries of C"];

fn features(all: &[(&'static str, f64)]) -> Vec<Feature> {
    let feature = |&(name, value)| Feature { name, value, is_count: COUNTS.contains(&name) };
    all.iter().map(feature).collect()
}

/// Prints the features of learned row orders.
pub fn print_features(out: &mut impl Write, features: &Features) -> io::Result<()> {
    let Features { version, micros, numbers } = features;
    let count = numbers.len();
    writeln!(
        out,
        "\nFeatures  list {version}, {count} numbers by which learned orders of rows are chosen, in {micros:.0} µs"
    )?;
    // Two features per line.
    for pair in numbers.chunks(2) {
        let cell = |Feature { name, value, is_count }: &Feature| {
            let value = if *is_count {
                format!("{value:.0}")
            } else if *value == 0.0 || (1e-3..1e9).contains(value) {
                format!("{value:.4}")
            } else {
                format!("{value:.3e}")
            };
            format!("{name:24} {value:>18}")
        };
        writeln!(out, "  {}", pair.iter().map(cell).collect::<Vec<_>>().join("    "))?;
    }
    Ok(())
}

/// Prints the explanations.
pub fn print(out: &mut impl Write, all: &[Explanation]) -> io::Result<()> {
    writeln!(out, "\nWhy       what the cost model counts, expects of each candidate, and takes (*)")?;
    for found in all {
        writeln!(out, "\n{}, {}, {}", found.operation, found.precision, found.machine)?;
        for feature in &found.features {
            let digits = if feature.is_count { 0 } else { 2 };
            writeln!(out, "  {:52} {:>14}", feature.name, format!("{:.digits$}", feature.value))?;
        }
        for candidate in &found.candidates {
            let mark = if candidate.algorithm == found.chosen { '*' } else { ' ' };
            let bytes = candidate.bytes.map_or("-".into(), size);
            let micros = candidate.seconds.map_or("-".into(), |seconds| format!("{:.1} µs", seconds * 1e6));
            writeln!(out, "  {mark} {:10} {bytes:>12} {micros:>14}", candidate.algorithm)?;
        }
        note(out, &found.reason)?;
    }
    Ok(())
}

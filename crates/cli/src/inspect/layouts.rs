//! Predictions of the cost model for each SpMV layout, on a GPU and on a CPU, whatever this machine has.

use std::io::{self, Write};

use matrices::owned::OwnedCsr;
use serde::Serialize;
use tarsia::facade::{
    run_in_pool, BackendKind, ComputeType, CountedProblem, DataType, Pattern, SpmvStatistics, Types,
};

use super::choices::Number;
use crate::table::{size, Table};
use crate::Result;

/// Prediction for a layout on a machine.
#[derive(Debug, Serialize)]
pub struct Prediction {
    pub machine: &'static str,
    pub precision: &'static str,
    pub algorithm: &'static str,
    /// Bytes of matrix, x and y.
    pub bytes: f64,
    pub seconds: f64,
    /// True if effort default chooses this layout.
    pub chosen: bool,
}

/// Makes the predictions for a matrix and for its copy in half as many bits, with layouts in the order of the
/// model's preference.
pub fn of<T: Number>(a: &OwnedCsr<T>) -> Result<Vec<Prediction>> {
    use tarsia::facade::Element;
    let mut out = in_type(a, (T::TYPE, T::COMPUTE), T::NAME)?;
    out.extend(in_type(a, (T::Half::TYPE, T::HALF_COMPUTE), T::HALF_NAME)?);
    Ok(out)
}

/// Returns the pattern of a matrix by rows.
pub fn pattern<V>(a: &OwnedCsr<V>) -> Pattern<'_, i64, i32> {
    Pattern {
        major: a.rows,
        minor: a.cols,
        base: 0,
        offsets: &a.offsets[..],
        indices: &a.indices[..],
        by_columns: false,
    }
}

/// Describes the matrix, with values of one type, for the cost model.
pub fn counted<V>(
    a: &OwnedCsr<V>,
    backend: BackendKind,
    (value_type, compute): (DataType, ComputeType),
) -> CountedProblem {
    let types = Types { a: value_type, x: value_type, y: value_type, compute };
    CountedProblem { rows: a.rows, cols: a.cols, nnz: a.nnz(), types, backend }
}

fn in_type<V: Sync>(
    a: &OwnedCsr<V>,
    (value_type, compute): (DataType, ComputeType),
    precision: &'static str,
) -> Result<Vec<Prediction>> {
    let pattern = pattern(a);
    let statistics = run_in_pool(|| SpmvStatistics::of(&pattern, value_type.size()));
    let mut out: Vec<Prediction> = Vec::new();
    for (name, backend) in [("H100", BackendKind::Cuda), ("host", BackendKind::Host)] {
        let choices = counted(a, backend, (value_type, compute)).spmv(&statistics)?;
        let first = out.len();
        for choice in choices {
            let algorithm = choice.algorithm().name();
            // csr occurs twice: in place, and as a copy.
            if out[first..].iter().any(|other| other.algorithm == algorithm) {
                continue;
            }
            let (bytes, seconds) = (choice.bytes, choice.predicted_seconds);
            let chosen = out.len() == first;
            out.push(Prediction { machine: name, precision, algorithm, bytes, seconds, chosen });
        }
    }
    Ok(out)
}

/// Prints the table.
pub fn print(out: &mut impl Write, predictions: &[Prediction]) -> io::Result<()> {
    writeln!(out, "Layouts   SpMV by the cost model: bytes and µs a product; * is chosen")?;
    let Some(first) = predictions.first() else { return Ok(()) };
    let same = |a: &Prediction, b: &Prediction| a.machine == b.machine && a.precision == b.precision;
    let mut groups: Vec<&Prediction> = Vec::new();
    for found in predictions {
        if !groups.iter().any(|other| same(other, found)) {
            groups.push(found);
        }
    }
    let heads = groups.iter().map(|group| format!(">{} {}", group.machine, group.precision));
    let mut table = Table::new(["layout".to_string()].into_iter().chain(heads));
    for of_first in predictions.iter().filter(|found| same(found, first)) {
        let name = of_first.algorithm;
        let cell = |group: &&Prediction| {
            let found = predictions.iter().find(|found| same(found, group) && found.algorithm == name);
            found.map_or("by name only".into(), |found| {
                let mark = if found.chosen { '*' } else { ' ' };
                format!("{} {:9.1}{mark}", size(found.bytes), found.seconds * 1e6)
            })
        };
        table.row([name.to_string()].into_iter().chain(groups.iter().map(cell)));
    }
    write!(out, "{table}")?;
    writeln!(out)
}

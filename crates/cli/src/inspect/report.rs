//! Output of `tarsia inspect`.

use std::io::{self, Write};

use super::choices::Choice;
use super::explain;
use super::layouts;
use super::spy::Grid;
use super::statistics::{MatrixStatistics, ValueSymmetry};
use super::Report;
use crate::table::{grouped, size, time, Table};
use crate::Result;

/// Length in characters of the longest bar of the histogram.
const BAR: f64 = 40.0;

/// Prints the whole report.
pub fn print(out: &mut impl Write, report: &Report, grid: &Grid) -> Result<()> {
    let statistics = &report.statistics;
    let Report { file, format, field, symmetry, .. } = report;
    let (rows, cols) = (grouped(statistics.rows as u64), grouped(statistics.cols as u64));
    writeln!(out, "File      {file}: {format} {field} {symmetry}, {}", size(report.file_bytes as f64))?;
    let rate = report.file_bytes as f64 / report.read_seconds / 1e6;
    writeln!(out, "          read in {:.3} s, {rate:.0} MB/s of file", report.read_seconds)?;
    writeln!(out, "Matrix    {rows} × {cols}, {} entries", grouped(statistics.nnz))?;
    pattern(out, statistics)?;
    writeln!(out, "\nSpy plot  {} × {} cells", grid.height, grid.width)?;
    let edge = "-".repeat(grid.width);
    writeln!(out, "  +{edge}+")?;
    for line in grid.lines() {
        writeln!(out, "  |{line}|")?;
    }
    writeln!(out, "  +{edge}+\n")?;
    layouts::print(out, &report.predictions)?;
    write!(out, "Choices   backend {}", report.backend)?;
    match report.copy_bytes_per_second {
        Some(rate) => writeln!(out, ", copies {:.1} GB/s", rate / 1e9)?,
        None => writeln!(out)?,
    }
    write!(out, "{}", choices(&report.choices))?;
    if !report.explanations.is_empty() {
        explain::print(out, &report.explanations)?;
    }
    if let Some(features) = &report.features {
        explain::print_features(out, features)?;
    }
    Ok(())
}

fn pattern(out: &mut impl Write, statistics: &MatrixStatistics) -> io::Result<()> {
    match (statistics.pattern_symmetry, &statistics.value_symmetry) {
        (Some(share), Some(values)) => {
            writeln!(out, "Symmetry  pattern {}; values {}", percent(share), common(values))?;
        }
        (Some(share), None) => {
            writeln!(out, "Symmetry  pattern {}; the file has no values", percent(share))?;
        }
        _ => writeln!(out, "Symmetry  none: not square")?,
    }
    let length = &statistics.row_length;
    writeln!(
        out,
        "Rows      {} to {} entries, mean {:.2}, variance {:.2}; {} empty",
        grouped(length.min),
        grouped(length.max),
        length.mean,
        length.variance,
        grouped(length.empty_rows)
    )?;
    let most = length.histogram.iter().map(|bucket| bucket.rows).max().unwrap_or(0);
    for bucket in length.histogram.iter().skip_while(|bucket| bucket.rows == 0) {
        let range = match (bucket.from, bucket.to) {
            (from, to) if from == to => grouped(from),
            (from, to) => format!("{}–{}", grouped(from), grouped(to)),
        };
        // Every bucket with rows has a bar.
        let bar = "#".repeat((BAR * bucket.rows as f64 / most as f64).ceil() as usize);
        writeln!(out, "{}", format!("  {range:>25} {:>15} {bar}", grouped(bucket.rows)).trim_end())?;
    }
    let zeros = match statistics.diagonal_zeros {
        0 => String::new(),
        zeros => format!(", {} of them 0", grouped(zeros)),
    };
    writeln!(
        out,
        "Place     bandwidth {} below, {} above; diagonal: {} of {} stored{zeros}",
        grouped(statistics.bandwidth_below),
        grouped(statistics.bandwidth_above),
        grouped(statistics.diagonal),
        grouped(statistics.rows.min(statistics.cols) as u64)
    )?;
    writeln!(
        out,
        "Columns   near: {} of the entries, all of {} of the rows; mean distance {:.1}",
        percent(statistics.near_entries),
        percent(statistics.near_rows),
        statistics.neighbour_distance
    )?;
    write!(out, "Blocks   ")?;
    for blocks in &statistics.blocks {
        write!(out, " {0}×{0} {1}{2}", blocks.size, percent(blocks.fill), separator(blocks.size))?;
    }
    writeln!(out)?;
    let spgemm = &statistics.spgemm;
    writeln!(
        out,
        "SpGEMM    {}: {} multiplications, about {:.2} for an entry of C ({:.2e} entries)",
        spgemm.product,
        grouped(spgemm.products.try_into().unwrap_or(u64::MAX)),
        spgemm.compression,
        spgemm.nnz
    )
}

fn separator(size: usize) -> &'static str {
    if size < 8 {
        ","
    } else {
        ""
    }
}

/// Describes the symmetry of the values of mirrored pairs.
fn common(values: &ValueSymmetry) -> String {
    let ValueSymmetry { pairs, equal, opposite, conjugate } = *values;
    match pairs {
        0 => "have no mirrored pairs".into(),
        _ if equal == pairs => "symmetric".into(),
        _ if conjugate == pairs => "hermitian".into(),
        _ if opposite == pairs => "skew-symmetric".into(),
        _ => {
            let share = |count: u64| percent(count as f64 / pairs as f64);
            format!("equal in {}, opposite in {} of the mirrored pairs", share(equal), share(opposite))
        }
    }
}

fn choices(choices: &[Choice]) -> Table {
    let numbers = [">bytes as CSR", ">at copy", ">predicted", ">analysis"];
    let mut table = Table::new(["operation", "precision", "layout"].into_iter().chain(numbers));
    let time = |seconds: Option<f64>| seconds.map_or("-".into(), time);
    for choice in choices {
        let Choice { operation, precision, .. } = choice;
        let (layout, predicted, analysis) = match &choice.plan {
            Some(plan) => (&plan.layout[..], plan.predicted_seconds, Some(plan.analysis_seconds)),
            None => ("none", None, None),
        };
        let numbers = [size(choice.bytes), time(choice.roofline_seconds), time(predicted), time(analysis)];
        table.row([operation.as_str(), precision, layout].map(String::from).into_iter().chain(numbers));
        match (&choice.plan, &choice.error) {
            (Some(plan), _) => table.note(&plan.reason),
            (None, Some(error)) => table.note(error),
            (None, None) => {}
        }
    }
    table
}

/// Formats a share, such as `0 %`, `12.3 %`, `100 %`; only exact shares of 0 and 1 are printed as `0 %` and
/// `100 %`.
fn percent(share: f64) -> String {
    match share {
        0.0 => "0 %".into(),
        1.0 => "100 %".into(),
        _ => format!("{:.1} %", (100.0 * share).clamp(0.1, 99.9)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares() {
        assert_eq!([0.0, 1.0, 0.5, 1e-9, 0.9999].map(percent), ["0 %", "100 %", "50.0 %", "0.1 %", "99.9 %"]);
    }
}

//! Results against a table of times, group by group.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;

use super::report::{Key, Line, Row, Table};
use crate::Result;

/// A loss is to be slower by more than the clock's noise.
const LOSS: f64 = 0.98;
/// Losses that a line names.
const SHOWN: usize = 6;

/// Times of somebody else, in microseconds.
#[derive(Debug, Default)]
pub struct Reference {
    times: HashMap<Key, f64>,
}

impl Reference {
    /// The times in `column` of the lines that have these values in these
    /// columns; of several for one case the best.
    pub fn new(table: &Table, column: &str, filters: &[(&str, &str)]) -> Result<Self> {
        let mut times = HashMap::new();
        table.each(|line: &Line<'_>| {
            for (name, wanted) in filters {
                if line.text(name)? != *wanted {
                    return Ok(());
                }
            }
            // Tables leave a case without a time empty, or say −1.
            let time: f64 = match line.text(column)?.trim() {
                "" | "-" => return Ok(()),
                _ => line.parse(column)?,
            };
            if time > 0.0 {
                let texts = (line.text("op")?, line.text("precision")?, line.text("matrix")?);
                let key: Key = (texts.0.into(), texts.1.into(), line.parse("N")?, texts.2.into());
                let best = times.entry(key).or_insert(time);
                *best = best.min(time);
            }
            Ok(())
        })?;
        Ok(Reference { times })
    }

    fn time(&self, row: &Row) -> Option<f64> {
        let case = &row.case;
        let key = (case.op.clone(), case.precision.clone(), case.n, case.matrix.clone());
        self.times.get(&key).copied()
    }
}

/// What happened in a group.
#[derive(Debug, Default)]
struct Group<'a> {
    /// Speed-up of each matrix, with its name.
    speedups: Vec<(f64, &'a str)>,
    /// ln of our time over the limit.
    over_limit: Vec<f64>,
    /// Matrices without a right result of ours.
    failed: Vec<&'a str>,
}

/// A table of speed-ups: a line per operation, precision, N and algorithm asked for.
pub fn summary(rows: &[Row], reference: &Reference, title: &str) -> Result<String> {
    let mut groups: BTreeMap<_, Group<'_>> = BTreeMap::new();
    for row in rows {
        let Some(time) = reference.time(row) else { continue };
        let case = &row.case;
        let group = groups.entry((&case.op, &case.precision, case.n, row.alg.as_str())).or_default();
        if row.counts() {
            group.speedups.push((time / row.median_us, &case.matrix));
            group.over_limit.push(row.over_limit());
        } else {
            group.failed.push(&case.matrix);
        }
    }
    let mut out = String::new();
    writeln!(out, "{title}")?;
    if groups.is_empty() {
        writeln!(out, "  no case in common")?;
        return Ok(out);
    }
    writeln!(
        out,
        "{:7} {:9} {:>5} {:8} {:>8} {:>8} {:>8}  {:20} losses",
        "op", "precision", "N", "alg", "matrices", "geomean", "÷ limit", "worst"
    )?;
    for ((op, precision, n, alg), mut group) in groups {
        group.speedups.sort_by(|a, b| a.0.total_cmp(&b.0));
        let speedups: Vec<f64> = group.speedups.iter().map(|(speedup, _)| *speedup).collect();
        let worst =
            group.speedups.first().map_or("-".into(), |(speedup, name)| format!("{speedup:.2} {name}"));
        let losses: Vec<_> = group.speedups.iter().filter(|(speedup, _)| *speedup < LOSS).collect();
        write!(
            out,
            "{op:7} {precision:9} {n:>5} {alg:8} {:>8} {:>8.3} {:>8.2}  {worst:20} {}",
            speedups.len(),
            geomean(&speedups),
            geomean(&group.over_limit),
            losses.len()
        )?;
        for (speedup, name) in losses.iter().take(SHOWN) {
            write!(out, ", {name} {speedup:.2}")?;
        }
        if losses.len() > SHOWN {
            write!(out, ", …")?;
        }
        if !group.failed.is_empty() {
            write!(out, "; no result: {}", group.failed.join(" "))?;
        }
        writeln!(out)?;
    }
    Ok(out)
}

/// The geometric mean; NaN of none.
fn geomean(values: &[f64]) -> f64 {
    (values.iter().map(|value| value.ln()).sum::<f64>() / values.len() as f64).exp()
}

#[cfg(test)]
mod tests {
    use super::super::report::Case;
    use super::*;

    fn row(matrix: &str, median_us: f64) -> Row {
        let (op, precision) = ("spmv".to_string(), "f64".to_string());
        let case = Case { op, precision, n: 1, matrix: matrix.into(), rows: 4, nnz: 9 };
        let note = if median_us == 7.0 { "WRONG;runs=1".to_string() } else { String::new() };
        Row {
            case,
            implementation: "tarsia".into(),
            alg: "default".into(),
            median_us,
            floor_us: 1.4,
            note,
            ..Row::default()
        }
    }

    #[test]
    fn groups_means_and_losses() {
        let mut reference = Reference::default();
        for matrix in ["a", "b", "c", "d"] {
            reference.times.insert(("spmv".into(), "f64".into(), 1, matrix.into()), 10.0);
        }
        let rows = [row("a", 5.0), row("b", 20.0), row("c", -1.0), row("d", 7.0), row("unknown", 1.0)];
        let text = summary(&rows, &reference, "title").unwrap();
        let line = text.lines().nth(2).unwrap().split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(line, "spmv f64 1 auto 2 1.000 2.00 0.50 b 1, b 0.50; no result: c d");
    }
}

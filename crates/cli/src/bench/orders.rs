//! Speed-ups of row orders over the rows' own order in the same kernel, as in table I of Mehrabi et al.,
//! "Learning sparse matrix row permutations for efficient SpMM on GPU architectures".

use std::collections::BTreeMap;
use std::fmt::Write;

use super::args::IN_ORDER;
use super::compare::geomean;
use super::report::{split_layout, Row};
use crate::table::Table;
use crate::Result;

/// Splits an algorithm's name into the algorithm without an order, and the order.
fn split(alg: &str) -> (String, Option<&str>) {
    let (name, layout) = split_layout(alg);
    match name.split_once(IN_ORDER) {
        Some((name, order)) => (format!("{name}{layout}"), Some(order)),
        None => (format!("{name}{layout}"), None),
    }
}

/// Formats, for each operation, precision, N and algorithm, the largest, mean and least speed-up of each
/// order, and of the oracle, which takes the best order for each matrix, the rows' own order included. Empty
/// if there are no results with orders.
pub fn summary(rows: &[Row]) -> Result<String> {
    let ours = || rows.iter().filter(|row| row.is_ours() && row.is_product() && row.counts());
    // Times by group, matrix and order.
    let mut groups: BTreeMap<_, BTreeMap<&str, BTreeMap<&str, f64>>> = BTreeMap::new();
    for row in ours() {
        let (alg, order) = split(&row.alg);
        let case = &row.case;
        let group = groups.entry((&case.op, &case.precision, case.n, alg)).or_default();
        group.entry(&case.matrix).or_default().insert(order.unwrap_or(""), row.median_us);
    }
    let mut out = String::new();
    for ((op, precision, n, alg), matrices) in groups {
        let mut speedups: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
        let mut best: BTreeMap<&str, usize> = BTreeMap::new();
        for times in matrices.values() {
            let Some(&own) = times.get("") else { continue };
            if times.len() == 1 {
                continue;
            }
            for (order, time) in times.iter().filter(|(order, _)| !order.is_empty()) {
                speedups.entry(order).or_default().push(own / time);
            }
            if let Some((order, time)) = times.iter().min_by(|a, b| a.1.total_cmp(b.1)) {
                speedups.entry(ORACLE).or_default().push(own / time);
                *best.entry(if order.is_empty() { "own order" } else { order }).or_default() += 1;
            }
        }
        if speedups.is_empty() {
            continue;
        }
        writeln!(out, "Speed-up of orders of rows, {op} {precision} N = {n}, {alg}")?;
        let mut table = Table::new(["order", ">max", ">mean", ">geomean", ">min", ">matrices"]);
        for (order, found) in &speedups {
            let count = found.len() as f64;
            let mean = found.iter().sum::<f64>() / count;
            let most = found.iter().copied().fold(0.0, f64::max);
            let least = found.iter().copied().fold(f64::INFINITY, f64::min);
            let numbers = [format!("{most:.2}"), format!("{mean:.3}"), format!("{:.3}", geomean(found))];
            let last = [format!("{least:.2}"), found.len().to_string()];
            table.row([order.to_string()].into_iter().chain(numbers).chain(last));
        }
        out += &table.to_string();
        let best: Vec<String> = best.iter().map(|(order, count)| format!("{order} {count}")).collect();
        writeln!(out, "fastest: {}", best.join(", "))?;
    }
    Ok(out)
}

/// Name of the oracle, which sorts behind all orders in the table.
const ORACLE: &str = "~oracle";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::report::{Case, OURS};

    #[test]
    fn speedups_are_over_the_own_order() {
        let row = |matrix: &str, alg: &str, median_us: f64| Row {
            case: Case {
                op: "spmm".into(),
                precision: "f32".into(),
                n: 8,
                matrix: matrix.into(),
                ..Case::default()
            },
            implementation: OURS.into(),
            alg: alg.into(),
            median_us,
            ..Row::default()
        };
        let rows = [
            row("a", "csr_col", 10.0),
            row("a", "csr+lpt_col", 5.0),
            row("a", "csr+dcsr_col", 20.0),
            row("b", "csr_col", 10.0),
            row("b", "csr+lpt_col", 20.0),
            row("b", "row_col", 1.0),
        ];
        let text = summary(&rows).unwrap();
        let line = |order: &str| -> Vec<String> {
            let line = text.lines().find(|line| line.starts_with(order)).unwrap();
            line.split_whitespace().skip(1).map(str::to_string).collect()
        };
        assert_eq!(line("lpt"), ["2.00", "1.250", "1.000", "0.50", "2"]);
        assert_eq!(line("dcsr"), ["0.50", "0.500", "0.500", "0.50", "1"]);
        assert_eq!(line(ORACLE), ["2.00", "1.500", "1.414", "1.00", "2"]);
        assert!(text.contains("N = 8, csr_col") && text.contains("fastest: lpt 1, own order 1"), "{text}");
        assert!(!text.contains("row_col"));
        assert_eq!(summary(&rows[5..]).unwrap(), "");
    }
}

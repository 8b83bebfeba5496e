//! Total costs of SpMV and SpMM: one preparation and a number of executes, the vendor's best over ours.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;

use super::compare::geomean;
use super::report::{Key, Row};
use super::Op;
use crate::demo::products::median;
use crate::table::Table;
use crate::Result;

/// Numbers of executes for which totals are compared.
const EXECUTES: [u32; 4] = [1, 10, 100, 1000];

/// Cost of an entry of the table, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Cost {
    /// Analysis, or the vendor's preprocess; paid once.
    preparation: f64,
    /// Each execute, with cold caches.
    execute: f64,
}

impl Cost {
    fn total(self, executes: f64) -> f64 {
        self.preparation + executes * self.execute
    }

    /// Returns the cost of a row if its preparation is known. It is unknown for a vendor's formats other than
    /// CSR: the conversion, which the benchmark makes on the host, is not timed.
    fn of(row: &Row) -> Option<Self> {
        let is_dense = [Op::Spmv.name(), Op::Spmm.name()].contains(&row.case.op.as_str());
        let is_converted = row.is_vendors() && row.who().contains('-');
        let is_known = is_dense && row.counts() && row.analysis_ms >= 0.0 && !is_converted;
        is_known.then_some(Cost { preparation: 1e3 * row.analysis_ms, execute: row.median_us })
    }
}

/// Comparison of the costs of one product.
#[derive(Debug, PartialEq)]
struct Comparison {
    /// For each of [`EXECUTES`], the least total of the others over ours.
    ratios: [f64; EXECUTES.len()],
    /// Least number of executes from which on our total is never above the least of the others; infinite if
    /// it is above for all large numbers.
    break_even: f64,
}

/// Compares our cost with those of others; `None` if there are no others.
fn compare(ours: Cost, others: &[Cost]) -> Option<Comparison> {
    if others.is_empty() {
        return None;
    }
    let least =
        |executes: f64| others.iter().map(|other| other.total(executes)).fold(f64::INFINITY, f64::min);
    let ratios = EXECUTES.map(f64::from).map(|executes| least(executes) / ours.total(executes));
    let meets = |other: &Cost| {
        let (behind, gain) = (ours.preparation - other.preparation, other.execute - ours.execute);
        match gain {
            _ if gain > 0.0 => (behind / gain).ceil().max(1.0),
            _ if gain == 0.0 && behind <= 0.0 => 1.0,
            _ => f64::INFINITY,
        }
    };
    Some(Comparison { ratios, break_even: others.iter().map(meets).fold(1.0, f64::max) })
}

/// Formats, for each operation, precision, N and algorithm of ours, the geometric mean of the totals' ratios
/// with the worst matrix, and the number of executes to break even: its median, and the largest number that
/// nine of ten matrices need. Empty if nothing can be compared.
pub fn summary(rows: &[Row]) -> Result<String> {
    let mut others: HashMap<Key, Vec<Cost>> = HashMap::new();
    for row in rows.iter().filter(|row| row.is_vendors()) {
        if let Some(cost) = Cost::of(row) {
            others.entry(row.key()).or_default().push(cost);
        }
    }
    let mut groups: BTreeMap<_, Vec<(Comparison, &str)>> = BTreeMap::new();
    for row in rows.iter().filter(|row| row.is_ours()) {
        let Some(costs) = others.get(&row.key()) else { continue };
        let Some(found) = Cost::of(row).and_then(|ours| compare(ours, costs)) else { continue };
        let case = &row.case;
        let group = groups.entry((&case.op, &case.precision, case.n, &row.alg)).or_default();
        group.push((found, &case.matrix));
    }
    let mut out = String::new();
    if groups.is_empty() {
        return Ok(out);
    }
    writeln!(
        out,
        "Preparation and K executes: the vendor's least total over ours, geomean (worst); executes to break even, \
         median and of nine in ten"
    )?;
    let columns = ["op", "precision", ">N", "alg", ">matrices"].map(String::from).into_iter();
    let columns = columns.chain(EXECUTES.map(|executes| format!("K = {executes}")));
    let mut table = Table::new(columns.chain(["break even".into()]));
    for ((op, precision, n, alg), found) in groups {
        let case = [op.clone(), precision.clone(), n.to_string(), alg.clone(), found.len().to_string()];
        let total = |at: usize| {
            let ratios: Vec<f64> = found.iter().map(|(found, _)| found.ratios[at]).collect();
            let worst = found.iter().min_by(|a, b| a.0.ratios[at].total_cmp(&b.0.ratios[at]));
            let worst =
                worst.map_or(String::new(), |(found, name)| format!("{:.2} {name}", found.ratios[at]));
            format!("{:.3} ({worst})", geomean(&ratios))
        };
        let totals = std::array::from_fn::<_, { EXECUTES.len() }, _>(total);
        let mut executes: Vec<f64> = found.iter().map(|(found, _)| found.break_even).collect();
        executes.sort_by(f64::total_cmp);
        let of_most = executes[(9 * executes.len()).div_ceil(10) - 1];
        let [half, most] =
            [median(executes), of_most].map(|at| if at.is_finite() { at.to_string() } else { "∞".into() });
        table.row(case.into_iter().chain(totals).chain([format!("{half}, {most}")]));
    }
    Ok(out + &table.to_string())
}

#[cfg(test)]
mod tests {
    use super::super::report::Case;
    use super::*;

    fn cost(preparation: f64, execute: f64) -> Cost {
        Cost { preparation, execute }
    }

    #[test]
    fn totals_are_of_preparation_and_executes() {
        // Ours: 190 and 10 per execute; others: 100 and 20, or 0 and 30.
        let found = compare(cost(190.0, 10.0), &[cost(100.0, 20.0), cost(0.0, 30.0)]).unwrap();
        let expected = [30.0 / 200.0, 300.0 / 290.0, 2100.0 / 1190.0, 20100.0 / 10190.0];
        for (found, expected) in found.ratios.iter().zip(expected) {
            assert!((found - expected).abs() < 1e-12, "{found} {expected}");
        }
        // Equal to the second at 9.5 executes, to the first at 9.
        assert_eq!(found.break_even, 10.0);
        assert_eq!(compare(cost(1.0, 1.0), &[]), None);
    }

    #[test]
    fn what_never_breaks_even_is_infinite() {
        let break_even = |ours, other| compare(ours, &[other]).unwrap().break_even;
        assert_eq!(break_even(cost(9.0, 5.0), cost(0.0, 4.0)), f64::INFINITY);
        // Ahead at first, behind in the end.
        assert_eq!(break_even(cost(0.0, 5.0), cost(100.0, 4.0)), f64::INFINITY);
        assert_eq!(break_even(cost(0.0, 4.0), cost(100.0, 5.0)), 1.0);
        assert_eq!(break_even(cost(1.0, 4.0), cost(0.0, 4.0)), f64::INFINITY);
        assert_eq!(break_even(cost(0.0, 4.0), cost(0.0, 4.0)), 1.0);
        assert_eq!(break_even(cost(8.0, 4.0), cost(0.0, 5.0)), 8.0);
        // All others must be beaten.
        let never = compare(cost(0.0, 4.0), &[cost(0.0, 5.0), cost(50.0, 3.0)]).unwrap();
        assert_eq!(never.break_even, f64::INFINITY);
    }

    #[test]
    fn groups_have_a_line_with_the_worst_matrix() {
        let row = |op: &str, matrix: &str, (implementation, alg): (&str, &str), analysis_ms, median_us| Row {
            case: Case {
                op: op.into(),
                precision: "f32".into(),
                n: 8,
                matrix: matrix.into(),
                ..Case::default()
            },
            implementation: implementation.into(),
            alg: alg.into(),
            analysis_ms,
            median_us,
            ..Row::default()
        };
        let ours = ("tarsia", "default");
        let rows = [
            row("spmm", "a", ours, 0.09, 10.0),
            row("spmm", "a", ("cusparse@12.6.3", "X"), 0.0, 20.0),
            row("spmm", "a", ("cusparse@12.9.4", "Y"), 0.4, 12.5),
            // The time of a conversion is unknown, as is an analysis of −1; a failure has no time.
            row("spmm", "a", ("cusparse-bsr@12.9.4", "Z"), 0.0, 1.0),
            row("spmm", "a", ("cusparse", "unknown"), -1.0, 1.0),
            row("spmm", "a", ("cusparse", "failed"), 0.0, -1.0),
            row("spmm", "b", ours, 0.0, 10.0),
            row("spmm", "b", ("cusparse", "X"), 0.0, 5.0),
            row("spmm", "c", ours, 0.0, 10.0),
            // Another layout is another product; SpGEMM's time includes its analysis.
            row("spmm", "c", ("cusparse", "X_bt"), 0.0, 5.0),
            row("spgemm", "c", ours, 0.0, 10.0),
            row("spgemm", "c", ("cusparse", "X"), 0.0, 5.0),
        ];
        let text = summary(&rows).unwrap();
        assert_eq!(text.lines().count(), 3, "{text}");
        let words = text.lines().nth(2).unwrap().split_whitespace().collect::<Vec<_>>().join(" ");
        // a: 20, 200, 1650 and 12900 over 100, 190, 1090 and 10090; b: one half. a breaks even at 9, b never.
        let mean = |ratio: f64| (0.5 * ratio).sqrt();
        let [first, second, third, fourth] =
            [20.0 / 100.0, 200.0 / 190.0, 1650.0 / 1090.0, 12900.0 / 10090.0].map(mean);
        let expected = format!(
            "spmm f32 8 default 2 {first:.3} (0.20 a) {second:.3} (0.50 b) {third:.3} (0.50 b) {fourth:.3} (0.50 b) ∞, ∞"
        );
        assert_eq!(words, expected);
        let text = summary(&rows[..6]).unwrap();
        assert!(text.lines().nth(2).unwrap().ends_with(" 9, 9"), "{text}");
        assert_eq!(summary(&rows[8..]).unwrap(), "");
    }
}

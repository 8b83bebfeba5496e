//! Comparison of the library's results with those of others, group by group.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;

use super::machine::Machines;
use super::report::{self, is_implementation, split_layout, Key, Line, Row, NONE};
use super::reproduce::Factors;
use super::Op;
use crate::table::Table;
use crate::Result;

/// A speed-up below this counts as a loss; between this and 1 it may be noise of the clock.
const LOSS: f64 = 0.98;

/// Times that ours are compared with, in microseconds.
#[derive(Clone, Debug, Default)]
pub struct Baseline {
    times: HashMap<Key, f64>,
}

impl Baseline {
    /// Reads the times in `column` of the lines that have these values in these columns; the best of several
    /// for one case.
    pub fn new(table: &report::Table, column: &str, filters: &[(&str, &str)]) -> Result<Self> {
        let mut out = Baseline::default();
        table.each(|line: &Line<'_>| {
            for (name, wanted) in filters {
                let text = line.text(name)?;
                let is_it = if *name == "impl" { is_implementation(text, wanted) } else { text == *wanted };
                if !is_it {
                    return Ok(());
                }
            }
            if let Some(time) = line.time(column)? {
                out.add(line.layout_key()?, time);
            }
            Ok(())
        })?;
        Ok(out)
    }

    /// Collects the best correct result of a vendor for each case.
    pub fn best_vendor(rows: &[Row]) -> Self {
        let mut out = Baseline::default();
        for row in rows.iter().filter(|row| row.is_vendors() && row.counts()) {
            out.add(row.key(), row.median_us);
        }
        out
    }

    /// Scales the times to a machine that is slower by `factors`.
    pub fn corrected(&self, factors: &Factors) -> Self {
        let factor = |key: &Key| factors.of(split_layout(&key.0).0);
        let times = self.times.iter().map(|(key, time)| (key.clone(), time * factor(key)));
        Baseline { times: times.collect() }
    }

    fn add(&mut self, key: Key, time: f64) {
        let best = self.times.entry(key).or_insert(time);
        *best = best.min(time);
    }

    /// Returns whether there are no times.
    pub fn is_empty(&self) -> bool {
        self.times.is_empty()
    }

    /// Returns the time for a result's case.
    pub fn time(&self, row: &Row) -> Option<f64> {
        self.times.get(&row.key()).copied()
    }
}

/// Results of a group of cases.
#[derive(Debug, Default)]
struct Group<'a> {
    /// Speed-up of each matrix, with its name.
    speedups: Vec<(f64, &'a str)>,
    /// Our times divided by the machine's limit.
    over_limit: Vec<f64>,
    /// Matrices for which we have no correct result.
    failed: Vec<&'a str>,
}

/// Formats a table of speed-ups of the library: a line per operation, precision, N and algorithm asked for.
pub fn summary(rows: &[Row], baseline: &Baseline, title: &str) -> Result<String> {
    let machines = Machines::of(rows);
    let mut groups: BTreeMap<_, Group<'_>> = BTreeMap::new();
    for row in rows.iter().filter(|row| row.is_ours()) {
        let Some(time) = baseline.time(row) else { continue };
        let case = &row.case;
        let group = groups.entry((&case.op, &case.precision, case.n, &row.alg)).or_default();
        if row.counts() {
            group.speedups.push((time / row.median_us, &case.matrix));
            group.over_limit.push(machines.over_limit(row));
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
    let columns = ["op", "precision", ">N", "alg", ">matrices", ">geomean", ">÷ limit", "worst", "losses"];
    let mut table = Table::new(columns);
    for ((op, precision, n, alg), mut group) in groups {
        group.speedups.sort_by(|a, b| a.0.total_cmp(&b.0));
        let speedups: Vec<f64> = group.speedups.iter().map(|(speedup, _)| *speedup).collect();
        let worst =
            group.speedups.first().map_or("-".into(), |(speedup, name)| format!("{speedup:.2} {name}"));
        let losses: Vec<_> = group.speedups.iter().filter(|(speedup, _)| *speedup < LOSS).collect();
        let mut lost = losses.len().to_string();
        for (speedup, name) in &losses {
            lost += &format!(", {name} {speedup:.2}");
        }
        if !group.failed.is_empty() {
            lost += &format!("; no result: {}", group.failed.join(" "));
        }
        let [geomean, over_limit] = [&speedups, &group.over_limit].map(|values| geomean(values));
        let numbers = [speedups.len().to_string(), format!("{geomean:.3}"), format!("{over_limit:.2}")];
        let case = [op.clone(), precision.clone(), n.to_string(), alg.clone()];
        table.row(case.into_iter().chain(numbers).chain([worst, lost]));
    }
    Ok(out + &table.to_string())
}

/// Selects the products of SpGEMM, with the time of the numeric phase for new values (`reuse_us` of the note)
/// as their time. A vendor without that time counts with its whole product; the list is empty if none of ours
/// has it.
pub fn with_new_values(rows: &[Row]) -> Vec<Row> {
    let row = |row: &Row| {
        let whole = if row.is_ours() { NONE } else { row.median_us };
        Row { median_us: row.noted("reuse_us").unwrap_or(whole), ..row.clone() }
    };
    let products = || rows.iter().filter(|row| row.case.op == Op::Spgemm.name());
    if !products().any(|row| row.is_ours() && row.noted("reuse_us").is_some()) {
        return Vec::new();
    }
    products().map(row).collect()
}

/// Returns the geometric mean; NaN for no values.
pub fn geomean(values: &[f64]) -> f64 {
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
        let mut baseline = Baseline::default();
        for matrix in ["a", "b", "c", "d"] {
            baseline.times.insert(("spmv".into(), "f64".into(), 1, matrix.into()), 10.0);
        }
        let mut rows =
            vec![row("a", 5.0), row("b", 20.0), row("c", -1.0), row("d", 7.0), row("unknown", 1.0)];
        // The result of another implementation is no result of ours.
        rows.push(Row { implementation: "cusparse".into(), ..row("a", 1.0) });
        let text = summary(&rows, &baseline, "title").unwrap();
        let line = text.lines().nth(2).unwrap().split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(line, "spmv f64 1 default 2 1.000 2.00 0.50 b 1, b 0.50; no result: c d");
    }

    #[test]
    fn new_values_are_compared_with_new_values() {
        let product = |matrix: &str, who: &str, median_us, note: &str| {
            let mut row = row(matrix, median_us);
            row.case.op = "spgemm".into();
            Row { implementation: who.into(), note: note.into(), ..row }
        };
        let rows = [
            // Ratios of runs in turns are not used as times.
            product(
                "a",
                "tarsia",
                100.0,
                "reuse_us=10.00;paired=3.1;reuse_paired=4.1;reuse_rival=cusparse/A;rounds=25",
            ),
            product("a", "cusparse", 90.0, "products=3"),
            product("a", "cusparse", 300.0, "products=3;reuse_us=40.00"),
            // A vendor that keeps no pattern counts with its whole product.
            product("b", "tarsia", 100.0, "chosen=hash;reuse_us=20.00"),
            product("b", "cusparse", 30.0, "reuse: no memory"),
            product("c", "tarsia", 100.0, "reuse: no memory;chosen=hash"),
            product("c", "cusparse", 5.0, "reuse_us=4.00"),
            row("a", 5.0),
        ];
        let again = with_new_values(&rows);
        let times: Vec<f64> = again.iter().map(|row| row.median_us).collect();
        assert_eq!(times, [10.0, 90.0, 40.0, 20.0, 30.0, -1.0, 4.0]);
        let text = summary(&again, &Baseline::best_vendor(&again), "t").unwrap();
        let line = text.lines().nth(2).unwrap().split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(line.starts_with("spgemm f64 1 default 2 2.449 "), "{text}");
        assert!(line.ends_with(" 1.50 b 0; no result: c"), "{text}");
        assert!(with_new_values(&rows[7..]).is_empty() && with_new_values(&rows[5..]).is_empty());
    }

    #[test]
    fn lines_of_a_table_are_of_a_version_and_a_layout() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let text = "op\tprecision\tN\tmatrix\timpl\talg\tmedian_us\n\
                    spmm\tf64\t1\ta\tcusparse@12.6.3\tX\t10.0\n\
                    spmm\tf64\t1\ta\tcusparse@12.9.4\tX\t20.0\n\
                    spmm\tf64\t1\ta\tcusparse-bsr@12.9.4\tX\t3.0\n\
                    spmm\tf64\t1\ta\tcusparse@12.9.4\tX_col_bt\t5.0\n\
                    spmm\tf64\t1\ta\tcusparse@12.9.4\tX_bt\t7.0\n";
        std::fs::write(file.path(), text).unwrap();
        let table = report::Table::read(file.path()).unwrap();
        let time = |implementation: &str, alg: &str| {
            let baseline = Baseline::new(&table, "median_us", &[("impl", implementation)]).unwrap();
            let mut row = Row { alg: alg.into(), ..row("a", 1.0) };
            row.case.op = "spmm".into();
            baseline.time(&row)
        };
        assert_eq!(time("cusparse", "default"), Some(10.0));
        assert_eq!(time("cusparse@12.9.4", "default"), Some(20.0));
        assert_eq!((time("cusparse", "default_bt"), time("cusparse", "once_col_bt")), (Some(7.0), Some(5.0)));
        assert_eq!((time("cusparse", "default_col"), time("cusparse@12", "default")), (None, None));
    }

    #[test]
    fn the_best_vendor_is_right() {
        let vendor = |matrix: &str, time| Row { implementation: "mkl".into(), ..row(matrix, time) };
        // The result with time 7 is marked as wrong.
        let rows = [vendor("a", 7.0), vendor("a", 9.0), vendor("a", 8.0), vendor("b", -1.0), row("a", 4.0)];
        let best = Baseline::best_vendor(&rows);
        assert_eq!((best.time(&rows[4]), best.times.len()), (Some(8.0), 1));
        let text = summary(&rows, &best, "t").unwrap();
        assert!(text.contains(" 2.000 "), "{text}");
        // A product with another order of B and C is another case.
        let other = Row { alg: "default_col".into(), ..row("a", 4.0) };
        assert_eq!(best.time(&other), None);
        let factors = Factors::of_pairs(&[("spmv", 3.0), ("spmv", 12.0)]);
        assert_eq!(best.corrected(&factors).time(&rows[4]).map(f64::round), Some(48.0));
    }
}

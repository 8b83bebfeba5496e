//! Comparison of a run's vendor times with those of an earlier table: whether the clock can be trusted, and
//! by which factor times of that table are corrected.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;

use super::compare::geomean;
use super::report::{self, is_vendors, noted_version, split_version, Case, Key, Row};
use crate::table::Table;
use crate::Result;

/// Largest difference of two times that agree, as a fraction of the earlier time.
const PART: f64 = 0.05;
/// Times below SHORT µs agree if they differ by at most SHORT_US µs instead.
const SHORT: f64 = 10.0;
const SHORT_US: f64 = 1.0;
/// Version of cuSPARSE for tables that record no version.
const VERSION: &str = "12.6.3";

/// A vendor's algorithm for a case: case, implementation, algorithm, version.
type Who = (Key, String, String, String);

/// Earlier times of a vendor, each with its implementation, algorithm and version.
#[derive(Debug, Default)]
pub struct Earlier {
    times: HashMap<Who, f64>,
}

impl Earlier {
    /// Reads the lines of a table of results, or of a bar, which has the best of several times for a case and
    /// whose it was.
    pub fn new(table: &report::Table, column: &str) -> Result<Self> {
        let mut out = Earlier::default();
        table.each(|line| {
            // A bar need not say whose its times are; then none of them can come out again.
            let is_bar = line.text("bar_us").is_ok();
            let names = if is_bar { ("bar_impl", "bar_alg") } else { ("impl", "alg") };
            let found = if is_bar { line.optional(names.0) } else { line.text(names.0)? };
            let (implementation, in_name) = split_version(found);
            let column = if is_bar { column } else { "median_us" };
            // The bar's version belongs to its best time and to no other column.
            if !is_vendors(&implementation) || (is_bar && column != "bar_us") {
                return Ok(());
            }
            if let Some(time) = line.time(column)? {
                let version = match (line.optional("bar_version"), in_name) {
                    ("", None) => version_of(line.optional("note")),
                    ("", Some(version)) => version,
                    (version, _) => version,
                };
                let alg = line.text(names.1)?.to_string();
                out.times.insert((line.key()?, implementation, alg, version.to_string()), time);
            }
            Ok(())
        })?;
        Ok(out)
    }

    /// Returns the vendor's results that both have, with the same version: (result, earlier time).
    fn common<'a>(&self, rows: &'a [Row]) -> Vec<(&'a Row, f64)> {
        let with = |row: &'a Row| {
            let version = row.version().unwrap_or(VERSION).to_string();
            Some((row, *self.times.get(&(row.case.key(), row.who(), row.alg.clone(), version))?))
        };
        rows.iter().filter(|row| row.is_vendors() && row.median_us > 0.0).filter_map(with).collect()
    }

    /// Returns the factors by which this run is slower.
    pub fn factors(&self, rows: &[Row]) -> Factors {
        let common = self.common(rows);
        let pairs: Vec<_> =
            common.iter().map(|(row, time)| (row.case.op.as_str(), row.median_us / time)).collect();
        Factors::of_pairs(&pairs)
    }

    /// Formats how many of the earlier times this run reproduces, group by group and in all, and which it
    /// does not.
    pub fn summary(&self, rows: &[Row], title: &str) -> Result<String> {
        let common = self.common(rows);
        let mut out = String::new();
        writeln!(out, "Reproduction of {title}: {} of its {} times", common.len(), self.times.len())?;
        if common.is_empty() {
            return Ok(out);
        }
        let mut groups: BTreeMap<_, Vec<(&Row, f64)>> = BTreeMap::new();
        for &(row, time) in &common {
            let group = groups.entry((&row.case.op, row.who(), &row.alg)).or_default();
            group.push((row, time));
        }
        let columns = ["op", "impl", "alg", ">common", ">within 5 %", ">share", ">geomean"];
        let mut table = Table::new(columns);
        let mut line = |name: [&str; 3], of: &[(&Row, f64)]| {
            let near = of.iter().filter(|(row, time)| agrees(row.median_us, *time)).count();
            let ratios: Vec<f64> = of.iter().map(|(row, time)| row.median_us / time).collect();
            let share = 100.0 * near as f64 / of.len() as f64;
            let numbers = [of.len().to_string(), near.to_string(), format!("{share:.1} %")];
            let cells = name.map(String::from).into_iter().chain(numbers);
            table.row(cells.chain([format!("{:.3}", geomean(&ratios))]));
        };
        for ((op, implementation, alg), of) in &groups {
            line([op, implementation, alg], of);
        }
        line(["all", "", ""], &common);
        out += &table.to_string();
        let mut outliers: Vec<_> =
            common.into_iter().filter(|(row, time)| !agrees(row.median_us, *time)).collect();
        outliers.sort_by(|a, b| {
            let distance = |(row, time): &(&Row, f64)| (row.median_us / time).ln().abs();
            distance(b).total_cmp(&distance(a))
        });
        if outliers.is_empty() {
            return Ok(out);
        }
        let columns = ["op", "precision", ">N", "matrix", "impl", "alg", ">earlier µs", ">now µs", ">ratio"];
        let mut table = Table::new(columns);
        for (row, time) in outliers {
            let Case { op, precision, n, matrix, .. } = &row.case;
            let case = [op.clone(), precision.clone(), n.to_string(), matrix.clone()];
            let names = [row.implementation.clone(), row.alg.clone()];
            let times = [time, row.median_us].map(|micros| format!("{micros:.2}"));
            let ratio = [format!("{:.3}", row.median_us / time)];
            table.row(case.into_iter().chain(names).chain(times).chain(ratio));
        }
        out += &format!("Times that differ by more\n{table}");
        Ok(out)
    }
}

fn agrees(found: f64, earlier: f64) -> bool {
    let allowed = if earlier < SHORT { SHORT_US } else { PART * earlier };
    (found - earlier).abs() <= allowed
}

fn version_of(note: &str) -> &str {
    noted_version(note).unwrap_or(VERSION)
}

/// Geometric means of ratios, one for each operation.
#[derive(Debug, Default)]
pub struct Factors {
    by_op: BTreeMap<String, (f64, usize)>,
}

impl Factors {
    /// Computes the means of (operation, ratio) pairs.
    pub fn of_pairs(pairs: &[(&str, f64)]) -> Self {
        let mut groups: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
        for (op, ratio) in pairs {
            groups.entry(op).or_default().push(*ratio);
        }
        let means = groups.into_iter().map(|(op, ratios)| (op.into(), (geomean(&ratios), ratios.len())));
        Factors { by_op: means.collect() }
    }

    /// Returns the factor of an operation; 1 if there is none.
    pub fn of(&self, op: &str) -> f64 {
        self.by_op.get(op).map_or(1.0, |(factor, _)| *factor)
    }

    /// Returns whether there are no factors.
    pub fn is_empty(&self) -> bool {
        self.by_op.is_empty()
    }

    /// Formats the factors, such as `spmm × 1.012 (of 900 times), …`.
    pub fn describe(&self) -> String {
        let each = self.by_op.iter().map(|(op, (factor, of))| format!("{op} × {factor:.3} (of {of} times)"));
        each.collect::<Vec<_>>().join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(text: &str) -> report::Table {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        report::Table::read(file.path()).unwrap()
    }

    fn row(matrix: &str, implementation: &str, alg: &str, median_us: f64, note: &str) -> Row {
        let case = Case {
            op: "spmv".into(),
            precision: "f64".into(),
            n: 1,
            matrix: matrix.into(),
            ..Case::default()
        };
        let (implementation, alg, note) = (implementation.into(), alg.into(), note.into());
        Row { case, implementation, alg, median_us, note, ..Row::default() }
    }

    #[test]
    fn times_of_one_version_are_compared() {
        let earlier = table(
            "op\tprecision\tN\tmatrix\timpl\talg\tmedian_us\tnote\n\
             spmv\tf64\t1\ta\tcusparse\tX\t100.0\t\n\
             spmv\tf64\t1\tb\tcusparse\tX\t5.0\t\n\
             spmv\tf64\t1\tc\tcusparse-bsr\tX\t100.0\t\n\
             spmv\tf64\t1\td\tcusparse\tX\t-1.00\tskipped\n\
             spmv\tf64\t1\te\tcusparse-12.9.4\tX\t50.0\t\n\
             spmv\tf64\t1\ta\tdasp\tX\t50.0\t\n",
        );
        let earlier = Earlier::new(&earlier, "median_us").unwrap();
        assert_eq!(earlier.times.len(), 4);
        let rows = [
            row("a", "cusparse", "X", 104.0, "warm_us=1;version=12.6.3"),
            row("b", "cusparse", "X", 5.9, ""),
            row("c", "cusparse-bsr", "X", 150.0, ""),
            row("c", "cusparse", "X", 100.0, ""),
            row("d", "cusparse", "X", 100.0, ""),
            row("e", "cusparse", "X", 50.0, "version=12.6.3"),
            row("a", "tarsia", "X", 1.0, ""),
        ];
        let text = earlier.summary(&rows, "t").unwrap();
        assert!(text.starts_with("Reproduction of t: 3 of its 4 times\n"), "{text}");
        let all = text.lines().find(|line| line.starts_with("all")).unwrap();
        let mean = geomean(&[1.04, 1.18, 1.5]);
        let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(words(all), format!("all 3 2 66.7 % {mean:.3}"));
        let outliers: Vec<_> =
            text.lines().skip_while(|line| !line.starts_with("Times that")).skip(2).collect();
        assert!(outliers.len() == 1 && outliers[0].contains("cusparse-bsr"), "{outliers:?}");
        assert!((earlier.factors(&rows).of("spmv") - mean).abs() < 1e-12);
        assert_eq!(earlier.factors(&rows).of("spmm"), 1.0);
    }

    #[test]
    fn each_version_is_compared_with_itself() {
        let earlier = table(
            "op\tprecision\tN\tmatrix\timpl\talg\tmedian_us\tnote\n\
             spmv\tf64\t1\ta\tcusparse@12.6.3\tX\t100.0\t\n\
             spmv\tf64\t1\ta\tcusparse@12.9.4\tX\t50.0\tversion=12.9.4\n",
        );
        let earlier = Earlier::new(&earlier, "median_us").unwrap();
        let rows = [
            row("a", "cusparse@12.9.4", "X", 55.0, "version=12.9.4"),
            // A single library has no version in its name.
            row("a", "cusparse", "X", 120.0, "version=12.6.3"),
            row("a", "cusparse@13.0.0", "X", 1.0, ""),
        ];
        let found = earlier.factors(&rows).of("spmv");
        assert!((found - geomean(&[1.1, 1.2])).abs() < 1e-12, "{found}");
        let text = earlier.summary(&rows, "t").unwrap();
        assert!(text.starts_with("Reproduction of t: 2 of its 2 times\n"), "{text}");
        // Both versions count in the line of cuSPARSE.
        let of_both = text.lines().filter(|line| line.starts_with("spmv  cusparse  X ")).count();
        assert_eq!(of_both, 1, "{text}");
    }

    #[test]
    fn a_bar_names_who_it_is_of() {
        let bar = table(
            "op\tprecision\tN\tmatrix\tbar_us\tbar_impl\tbar_alg\tbar_version\tcsr_us\n\
             spmv\tf64\t1\ta\t10.0\tcusparse-12.6.3-sell\tSELL32\t12.6.3\t20.0\n\
             spmv\tf64\t1\tb\t10.0\tcusparse\tX\t12.9.4\t20.0\n",
        );
        let rows = [row("a", "cusparse-sell", "SELL32", 11.0, ""), row("b", "cusparse", "X", 30.0, "")];
        let factors = Earlier::new(&bar, "bar_us").unwrap().factors(&rows);
        assert!((factors.of("spmv") - 1.1).abs() < 1e-12, "{}", factors.describe());
        assert!(Earlier::new(&bar, "csr_us").unwrap().factors(&rows).is_empty());
    }

    #[test]
    fn short_times_agree_within_a_microsecond() {
        assert!(agrees(5.9, 5.0) && !agrees(6.1, 5.0) && agrees(104.9, 100.0) && !agrees(94.9, 100.0));
        // The borders meet: at 10 µs a twentieth is half a microsecond.
        assert!(agrees(9.99 + 0.9, 9.99) && !agrees(10.6, 10.0));
    }
}

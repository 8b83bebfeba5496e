//! The table of results: tab-separated, a line of names, then a line per result.

use std::collections::HashMap;
use std::fs;
use std::io::Write;
use std::path::Path;

use crate::Result;

/// Copy bandwidth of an H100 in GB/s: the measure of `floor_us`, on every machine.
const COPY: f64 = 3028.0;
/// What an empty launch measures on an H100 with an event before and after it.
const LAUNCH_US: f64 = 3.6;
/// What stands for a number that there is none of.
const NONE: f64 = -1.0;

const COLUMNS: &str = "op\tprecision\tN\tmatrix\trows\tnnz\timpl\talg\tmedian_us\tgflops\tfloor_us\t\
                       analysis_ms\tmax_rel_err\tnote";

/// What was asked of which matrix.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    /// `spmv`, `spmm`, `spgemm`.
    pub op: String,
    /// `f64`, …
    pub precision: String,
    /// Columns of the dense matrix; 1 for SpMV, 0 for SpGEMM.
    pub n: usize,
    /// Its name.
    pub matrix: String,
    /// Rows.
    pub rows: usize,
    /// Entries.
    pub nnz: usize,
}

/// A result.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Of what.
    pub case: Case,
    /// `auto:csr` (asked: chosen), `csr`, `once`.
    pub alg: String,
    /// Median microseconds; negative if there are none.
    pub median_us: f64,
    /// 10⁹ operations a second.
    pub gflops: f64,
    /// What the least traffic takes at [`COPY`].
    pub floor_us: f64,
    /// Milliseconds of analysis.
    pub analysis_ms: f64,
    /// Largest error over Σ|a·x|; negative if it was not checked.
    pub max_rel_err: f64,
    /// `name=value`, separated by semicolons.
    pub note: String,
}

/// Microseconds of so many bytes at the copy bandwidth.
pub fn floor_us(bytes: f64) -> f64 {
    bytes / COPY / 1e3
}

impl Row {
    /// A case that gave no result, and why.
    pub fn failed(case: Case, alg: String, floor_us: f64, reason: &str) -> Row {
        let note = reason.split_whitespace().collect::<Vec<_>>().join(" ");
        let [median_us, max_rel_err] = [NONE; 2];
        Row { case, alg, median_us, gflops: 0.0, floor_us, analysis_ms: 0.0, max_rel_err, note }
    }

    /// The result was found to be wrong.
    pub fn is_wrong(&self) -> bool {
        self.note.starts_with("WRONG")
    }

    /// There is a time, of a result that was not found to be wrong.
    pub fn counts(&self) -> bool {
        self.median_us > 0.0 && !self.is_wrong()
    }

    /// Time over the least that a launch can take.
    pub fn over_limit(&self) -> f64 {
        self.median_us / (self.floor_us + LAUNCH_US)
    }

    /// The part of `alg` that says what was asked for.
    pub fn asked(&self) -> &str {
        self.alg.split(':').next().unwrap_or_default()
    }

    fn line(&self) -> String {
        let Case { op, precision, n, matrix, rows, nnz } = &self.case;
        let Row { alg, median_us, gflops, floor_us, analysis_ms, note, .. } = self;
        let max_rel_err = scientific(self.max_rel_err);
        format!(
            "{op}\t{precision}\t{n}\t{matrix}\t{rows}\t{nnz}\ttarsia\t{alg}\t{median_us:.2}\t{gflops:.2}\t\
             {floor_us:.2}\t{analysis_ms:.3}\t{max_rel_err}\t{note}"
        )
    }

    fn of(line: &Line<'_>) -> Result<Row> {
        Ok(Row {
            case: Case {
                op: line.text("op")?.into(),
                precision: line.text("precision")?.into(),
                n: line.parse("N")?,
                matrix: line.text("matrix")?.into(),
                rows: line.parse("rows")?,
                nnz: line.parse("nnz")?,
            },
            alg: line.text("alg")?.into(),
            median_us: line.parse("median_us")?,
            gflops: line.parse("gflops")?,
            floor_us: line.parse("floor_us")?,
            analysis_ms: line.parse("analysis_ms")?,
            max_rel_err: line.parse("max_rel_err")?,
            note: line.text("note")?.into(),
        })
    }
}

/// As C's `%.2e`: the exponent has a sign and two digits.
fn scientific(value: f64) -> String {
    let text = format!("{value:.2e}");
    match text.split_once('e').and_then(|(digits, exponent)| Some((digits, exponent.parse::<i32>().ok()?))) {
        Some((digits, exponent)) => format!("{digits}e{exponent:+03}"),
        None => text,
    }
}

/// Where results go, each as soon as it is there.
pub struct Writer {
    out: Box<dyn Write>,
}

impl Writer {
    /// To a file, or to stdout.
    pub fn new(path: Option<&Path>) -> Result<Self> {
        let mut out: Box<dyn Write> = match path {
            Some(path) => {
                let file = fs::File::create(path).map_err(|error| format!("{}: {error}", path.display()))?;
                Box::new(file)
            }
            None => Box::new(std::io::stdout()),
        };
        writeln!(out, "{COLUMNS}")?;
        Ok(Writer { out })
    }

    /// Writes a line.
    pub fn write(&mut self, row: &Row) -> Result<()> {
        writeln!(self.out, "{}", row.line())?;
        Ok(self.out.flush()?)
    }
}

/// A table as it is in a file.
pub struct Table {
    path: String,
    text: String,
}

/// A line of a [`Table`].
pub struct Line<'a> {
    place: String,
    columns: &'a HashMap<&'a str, usize>,
    fields: Vec<&'a str>,
}

impl Table {
    /// Reads it.
    pub fn read(path: &Path) -> Result<Table> {
        let path_text = path.display().to_string();
        let text = fs::read_to_string(path).map_err(|error| format!("{path_text}: {error}"))?;
        Ok(Table { path: path_text, text })
    }

    /// Calls `visit` with each line.
    pub fn each(&self, mut visit: impl FnMut(&Line<'_>) -> Result<()>) -> Result<()> {
        let mut lines = self.text.lines().enumerate();
        let head = lines.next().map(|(_, line)| line).unwrap_or_default();
        let columns = head.split('\t').enumerate().map(|(at, name)| (name, at)).collect();
        for (number, line) in lines.filter(|(_, line)| !line.trim().is_empty()) {
            let place = format!("{}:{}", self.path, number + 1);
            visit(&Line { place, columns: &columns, fields: line.split('\t').collect() })?;
        }
        Ok(())
    }

    /// Its lines as results.
    pub fn rows(&self) -> Result<Vec<Row>> {
        let mut out = Vec::new();
        self.each(|line| {
            out.push(Row::of(line)?);
            Ok(())
        })?;
        Ok(out)
    }
}

impl<'a> Line<'a> {
    /// The field of a column; empty where the line ends before it.
    pub fn text(&self, column: &str) -> Result<&'a str> {
        let at = self.columns.get(column).ok_or_else(|| format!("{}: no column '{column}'", self.place))?;
        Ok(self.fields.get(*at).copied().unwrap_or_default())
    }

    /// The field as a number.
    pub fn parse<T: std::str::FromStr>(&self, column: &str) -> Result<T> {
        let text = self.text(column)?;
        Ok(text.trim().parse().map_err(|_| format!("{}: {column} is '{text}'", self.place))?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_read_back() {
        let case = Case {
            op: "spmm".into(),
            precision: "f16".into(),
            n: 32,
            matrix: "cant".into(),
            rows: 62_451,
            nnz: 4_325_625,
        };
        let row = Row {
            case: case.clone(),
            alg: "auto:row".into(),
            median_us: 12.5,
            gflops: 3.25,
            floor_us: 1.5,
            analysis_ms: 0.125,
            max_rel_err: 1e-3,
            note: "warm_us=1.00".into(),
        };
        let failed = Row::failed(case, "row".into(), 1.5, "no\troom\nat all");
        let text = format!("{COLUMNS}\n{}\n\n{}\n", row.line(), failed.line());
        let table = Table { path: "t".into(), text };
        assert_eq!(table.rows().unwrap(), [row.clone(), failed.clone()]);
        assert!(row.counts() && !failed.counts() && row.asked() == "auto");
    }

    #[test]
    fn numbers_look_as_in_the_baselines() {
        let found = [0.0, -1.0, 1.26e-16, 3e120, f64::INFINITY].map(scientific);
        assert_eq!(found, ["0.00e+00", "-1.00e+00", "1.26e-16", "3.00e+120", "inf"]);
    }

    #[test]
    fn the_floor_is_that_of_the_baselines() {
        // spmv f64 mc2depi
        let bytes = 2_100_225.0 * 12.0 + 525_825.0 * (4.0 + 8.0 + 8.0);
        assert_eq!(format!("{:.2}", floor_us(bytes)), "11.80");
    }
}

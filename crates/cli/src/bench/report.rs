//! The table of results: tab-separated, a line of column names, then a line per result.

use std::collections::HashMap;
use std::fs;
use std::io::{IsTerminal, Write};
use std::path::Path;

use clap::ValueEnum;
use matrices::gallery::name_in_table;

use super::args::Against;
use crate::progress::aside;
use crate::Result;

/// Copy bandwidth of an H100 in GB/s, at which `floor_us` is computed, unless the line `copy` of a table
/// gives another rate (`floor_GB/s` in its note), as in tables of the CPU.
pub const COPY: f64 = 3028.0;
/// Time in microseconds of an empty launch on an H100, with an event before and after it.
pub const LAUNCH_US: f64 = 3.6;
/// Placeholder for a number that does not exist.
pub const NONE: f64 = -1.0;
/// Contents of the column `impl` for the library.
pub const OURS: &str = "tarsia";
/// Contents of the column `alg` for the library's own choice.
pub const DEFAULT: &str = "default";

const COLUMNS: &str = "op\tprecision\tN\tmatrix\trows\tnnz\timpl\talg\tmedian_us\tgflops\tfloor_us\t\
                       analysis_ms\tmax_rel_err\tnote\tpeak_bytes\tanalysis_executes\tdevice\tdriver\t\
                       date\tcommit";

/// Operation, types and matrix of a result.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Case {
    /// `spmv`, `spmm` or `spgemm`; `copy` and `empty` for the machine alone.
    pub op: String,
    /// Precision, such as `f64`.
    pub precision: String,
    /// Columns of the dense matrix; 1 for SpMV, 0 for SpGEMM.
    pub n: usize,
    /// Name of the matrix.
    pub matrix: String,
    /// Rows of the matrix.
    pub rows: usize,
    /// Stored entries of the matrix.
    pub nnz: usize,
}

/// Machine, date and program of a measurement.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Origin {
    /// Name of the device.
    pub device: String,
    /// Versions of its driver.
    pub driver: String,
    /// Date of the measurement.
    pub date: String,
    /// Commit of the program.
    pub commit: String,
}

/// A row of the table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Row {
    /// Case of the result.
    pub case: Case,
    /// Implementation: `tarsia`, `cusparse`, `mkl`, …
    pub implementation: String,
    /// `default`, or an algorithm's name.
    pub alg: String,
    /// Median microseconds; negative if there is no result.
    pub median_us: f64,
    /// 10⁹ operations a second.
    pub gflops: f64,
    /// Microseconds for the least traffic at [`COPY`], or at the rate of the line `copy`.
    pub floor_us: f64,
    /// Milliseconds of analysis; negative if unknown.
    pub analysis_ms: f64,
    /// Largest error over Σ|a·x|; negative if it was not checked.
    pub max_rel_err: f64,
    /// Remarks, `name=value`, separated by semicolons.
    pub note: String,
    /// Largest number of bytes at one time beside A in CSR and the dense operands; for SpGEMM including C.
    /// Negative if unknown.
    pub peak_bytes: f64,
    /// Machine, date and program.
    pub origin: Origin,
}

/// Separator between a vendor's library and its version where several versions take part in a run.
pub const AT_VERSION: char = '@';
/// Separator between a version and the number of the library where several libraries report that version.
pub const COPY_OF_VERSION: char = '#';
/// Ending of the names of SpMM's algorithms where B and C are column-major.
pub const COLUMN_MAJOR: &str = "_col";
/// Ending, behind that one, where B is stored as its transpose.
pub const B_TRANSPOSED: &str = "_bt";

/// Splits a name in the column `impl` into the name without its version, and the version if the name has one.
/// `cusparse-bsr@12.9.4` and `cusparse-12.9.4-bsr`, the form of older tables, are both `cusparse-bsr` of
/// version 12.9.4. All readers of tables use this function.
pub fn split_version(implementation: &str) -> (String, Option<&str>) {
    if let Some((name, version)) = implementation.split_once(AT_VERSION) {
        return (name.into(), version.split(COPY_OF_VERSION).next());
    }
    let is_version = |part: &&str| part.starts_with(|first: char| first.is_ascii_digit());
    let version = implementation.split('-').find(is_version);
    let rest: Vec<&str> = implementation.split('-').filter(|part| !is_version(part)).collect();
    (rest.join("-"), version)
}

/// Returns whether a name in the column `impl` is the wanted one; a wanted name without a version means every
/// version.
pub fn is_implementation(name: &str, wanted: &str) -> bool {
    name == wanted || split_version(name).0 == wanted
}

/// Splits an algorithm's name into the name proper and its suffix for the layout of SpMM's dense operands:
/// [`COLUMN_MAJOR`], [`B_TRANSPOSED`], one behind the other, or nothing.
pub fn split_layout(alg: &str) -> (&str, &str) {
    let name = alg.strip_suffix(B_TRANSPOSED).unwrap_or(alg);
    let name = name.strip_suffix(COLUMN_MAJOR).unwrap_or(name);
    alg.split_at(name.len())
}

/// Returns whether a name in the column `impl` is that of a vendor whose products are compared with ours.
pub fn is_vendors(implementation: &str) -> bool {
    Against::value_variants().iter().any(|vendor| implementation.starts_with(vendor.name()))
}

/// Returns the version in a note.
pub fn noted_version(note: &str) -> Option<&str> {
    note.split(';').find_map(|part| part.strip_prefix("version="))
}

/// Key of a case in tables: operation, precision, N and matrix.
pub type Key = (String, String, usize, String);

impl Case {
    /// Returns the key that the same case of another table has, too.
    pub fn key(&self) -> Key {
        (self.op.clone(), self.precision.clone(), self.n, self.matrix.clone())
    }
}

/// Returns the microseconds that `bytes` bytes take at [`COPY`].
pub fn floor_us(bytes: f64) -> f64 {
    bytes / COPY / 1e3
}

impl Row {
    /// Makes the row of a case that gave no result, with the reason.
    pub fn failed(case: Case, who: (&str, &str), floor_us: f64, reason: &str) -> Row {
        let note = reason.split_whitespace().collect::<Vec<_>>().join(" ");
        let (implementation, alg) = (who.0.into(), who.1.into());
        let [median_us, max_rel_err, peak_bytes] = [NONE; 3];
        Row {
            case,
            implementation,
            alg,
            median_us,
            floor_us,
            max_rel_err,
            note,
            peak_bytes,
            ..Row::default()
        }
    }

    /// Returns whether the result was found to be wrong.
    pub fn is_wrong(&self) -> bool {
        self.note.starts_with("WRONG")
    }

    /// Returns whether there is a time, and the result was not found to be wrong.
    pub fn counts(&self) -> bool {
        self.median_us > 0.0 && !self.is_wrong()
    }

    /// Returns whether it is a result of the library.
    pub fn is_ours(&self) -> bool {
        self.implementation == OURS
    }

    /// Returns whether it is a result of a vendor whose products are compared with ours.
    pub fn is_vendors(&self) -> bool {
        is_vendors(&self.implementation)
    }

    /// Returns the implementation's name without the version.
    pub fn who(&self) -> String {
        split_version(&self.implementation).0
    }

    /// Returns the version of the vendor's library, from the name or from the note.
    pub fn version(&self) -> Option<&str> {
        split_version(&self.implementation).1.or_else(|| noted_version(&self.note))
    }

    /// Returns whether it is a result of a product, and not of the machine alone.
    pub fn is_product(&self) -> bool {
        self.case.op != "copy" && self.case.op != "empty"
    }

    /// Returns a number of the note by its name.
    pub fn noted(&self, name: &str) -> Option<f64> {
        let value = |part: &str| part.strip_prefix(name)?.strip_prefix('=')?.parse().ok();
        self.note.split(';').find_map(value)
    }

    /// Returns the key of results that can be compared with this one: those with dense operands in the same
    /// layout.
    pub fn key(&self) -> Key {
        let mut key = self.case.key();
        key.0 += split_layout(&self.alg).1;
        key
    }

    /// Returns the time of analysis as a number of executions.
    pub fn analysis_executes(&self) -> f64 {
        if self.median_us > 0.0 && self.analysis_ms >= 0.0 {
            1e3 * self.analysis_ms / self.median_us
        } else {
            NONE
        }
    }

    fn line(&self) -> String {
        let Case { op, precision, n, matrix, rows, nnz } = &self.case;
        let Row { implementation, alg, median_us, gflops, floor_us, analysis_ms, note, .. } = self;
        let Origin { device, driver, date, commit } = &self.origin;
        let (max_rel_err, executes) = (scientific(self.max_rel_err), self.analysis_executes());
        let peak_bytes = self.peak_bytes;
        format!(
            "{op}\t{precision}\t{n}\t{matrix}\t{rows}\t{nnz}\t{implementation}\t{alg}\t{median_us:.2}\t\
             {gflops:.2}\t{floor_us:.2}\t{analysis_ms:.3}\t{max_rel_err}\t{note}\t{peak_bytes:.0}\t\
             {executes:.2}\t{device}\t{driver}\t{date}\t{commit}"
        )
    }

    fn of(line: &Line<'_>) -> Result<Row> {
        let mut row = Row {
            case: Case {
                op: line.text("op")?.into(),
                precision: line.text("precision")?.into(),
                n: line.parse("N")?,
                matrix: line.matrix()?,
                rows: line.parse("rows")?,
                nnz: line.parse("nnz")?,
            },
            implementation: line.text("impl")?.into(),
            alg: line.text("alg")?.into(),
            median_us: line.parse("median_us")?,
            gflops: line.number("gflops", 0.0)?,
            floor_us: line.number("floor_us", 0.0)?,
            analysis_ms: line.number("analysis_ms", NONE)?,
            max_rel_err: line.number("max_rel_err", NONE)?,
            note: line.text("note")?.into(),
            // Older tables do not have these columns.
            peak_bytes: line.optional("peak_bytes").parse().unwrap_or(NONE),
            origin: Origin {
                device: line.optional("device").into(),
                driver: line.optional("driver").into(),
                date: line.optional("date").into(),
                commit: line.optional("commit").into(),
            },
        };
        // Older tables recorded the chosen algorithm in this form.
        if let Some(chosen) = row.alg.strip_prefix("auto:") {
            row.note = if row.is_wrong() {
                format!("{};chosen={chosen}", row.note)
            } else {
                format!("chosen={chosen};{}", row.note)
            };
            row.alg = DEFAULT.into();
        }
        Ok(row)
    }
}

/// Formats like C's `%.2e`: the exponent has a sign and two digits.
fn scientific(value: f64) -> String {
    let text = format!("{value:.2e}");
    match text.split_once('e').and_then(|(digits, exponent)| Some((digits, exponent.parse::<i32>().ok()?))) {
        Some((digits, exponent)) => format!("{digits}e{exponent:+03}"),
        None => text,
    }
}

/// Returns whether both stdout and stderr are seen on a terminal.
pub fn is_on_terminal() -> bool {
    std::io::stdout().is_terminal() && std::io::stderr().is_terminal()
}

/// Writer of the table, which writes each result at once.
pub struct Writer {
    out: Box<dyn Write>,
}

impl Writer {
    /// Opens a file, or stdout, for a new table. On a terminal there is none: the lines on stderr say the same
    /// in columns for the eye, and those of the table would stand between them.
    pub fn new(path: Option<&Path>) -> Result<Self> {
        let mut out: Box<dyn Write> = match path {
            Some(path) => {
                let file = fs::File::create(path).map_err(|error| format!("{}: {error}", path.display()))?;
                Box::new(file)
            }
            None if is_on_terminal() => Box::new(std::io::sink()),
            None => Box::new(std::io::stdout()),
        };
        writeln!(out, "{COLUMNS}")?;
        Ok(Writer { out })
    }

    /// Opens a table of this program to append to it; also returns its rows.
    pub fn append(path: &Path) -> Result<(Self, Vec<Row>)> {
        if !path.exists() {
            return Ok((Writer::new(Some(path))?, Vec::new()));
        }
        let table = Table::read(path)?;
        if table.text.lines().next() != Some(COLUMNS) {
            let path = path.display();
            return Err(format!("{path}: its columns are not those of a table to append to").into());
        }
        let rows = table.rows()?;
        let file = fs::OpenOptions::new().append(true).open(path);
        let mut out = file.map_err(|error| format!("{}: {error}", path.display()))?;
        // A line that was cut off in the middle must not swallow the next one.
        if !table.text.ends_with('\n') {
            writeln!(out)?;
        }
        Ok((Writer { out: Box::new(out) }, rows))
    }

    /// Writes a row.
    pub fn write(&mut self, row: &Row) -> Result<()> {
        aside(|| {
            writeln!(self.out, "{}", row.line())?;
            Ok(self.out.flush()?)
        })
    }
}

/// A table as read from a file.
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
    /// Reads the file.
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

    /// Returns its lines as results.
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
    /// Returns the field of a column; empty if the line ends before it.
    pub fn text(&self, column: &str) -> Result<&'a str> {
        let at = self.columns.get(column).ok_or_else(|| format!("{}: no column '{column}'", self.place))?;
        Ok(self.fields.get(*at).copied().unwrap_or_default())
    }

    /// Parses the field of a column as a number.
    pub fn parse<T: std::str::FromStr>(&self, column: &str) -> Result<T> {
        let text = self.text(column)?;
        Ok(text.trim().parse().map_err(|_| format!("{}: {column} is '{text}'", self.place))?)
    }

    /// Parses the field as a number; returns `otherwise` if it is empty.
    fn number(&self, column: &str, otherwise: f64) -> Result<f64> {
        match self.text(column)?.trim() {
            "" | "-" => Ok(otherwise),
            _ => self.parse(column),
        }
    }

    /// Returns the key of results that can be compared, like [`Row::key`].
    pub fn layout_key(&self) -> Result<Key> {
        let mut key = self.key()?;
        key.0 += split_layout(self.optional("alg")).1;
        Ok(key)
    }

    /// Returns the matrix' name, that of a stand-in with its mark.
    fn matrix(&self) -> Result<String> {
        Ok(name_in_table(self.text("matrix")?, self.optional("nnz").parse().ok()))
    }

    /// Returns the case's key.
    pub fn key(&self) -> Result<Key> {
        Ok((self.text("op")?.into(), self.text("precision")?.into(), self.parse("N")?, self.matrix()?))
    }

    /// Returns the positive number of a column; for a case without a time, tables have an empty field or −1.
    pub fn time(&self, column: &str) -> Result<Option<f64>> {
        let time: f64 = match self.text(column)?.trim() {
            "" | "-" => return Ok(None),
            _ => self.parse(column)?,
        };
        Ok(Some(time).filter(|time| *time > 0.0))
    }

    /// Returns the field, or an empty text if there is no such column.
    pub fn optional(&self, column: &str) -> &'a str {
        self.text(column).unwrap_or_default()
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
            matrix: "cant~".into(),
            rows: 62_451,
            nnz: 4_325_625,
        };
        let origin = Origin {
            device: "NVIDIA H100 80GB HBM3".into(),
            driver: "580.159".into(),
            date: "2026-01-02".into(),
            commit: "abc".into(),
        };
        let row = Row {
            case: case.clone(),
            implementation: "cusparse-bsr".into(),
            alg: "BSR_ALG1_b3".into(),
            median_us: 12.5,
            gflops: 3.25,
            floor_us: 1.5,
            analysis_ms: 0.125,
            max_rel_err: 1e-3,
            note: "warm_us=1.00".into(),
            peak_bytes: 77.0,
            origin,
        };
        let failed = Row::failed(case, (OURS, "row"), 1.5, "no\troom\nat all");
        let text = format!("{COLUMNS}\n{}\n\n{}\n", row.line(), failed.line());
        let table = Table { path: "t".into(), text };
        assert_eq!(table.rows().unwrap(), [row.clone(), failed.clone()]);
        assert!(row.counts() && row.is_vendors() && !failed.counts() && failed.is_ours());
        assert_eq!(row.analysis_executes(), 10.0);
    }

    #[test]
    fn names_have_a_version_and_a_layout() {
        let split = |name| split_version(name);
        assert_eq!(split("cusparse-bsr@12.9.4"), ("cusparse-bsr".into(), Some("12.9.4")));
        assert_eq!(split("cusparse@12.9.4#2"), ("cusparse".into(), Some("12.9.4")));
        assert_eq!(split("cusparse-12.9.4-bsr"), ("cusparse-bsr".into(), Some("12.9.4")));
        assert_eq!(split("cusparse-bsr"), ("cusparse-bsr".into(), None));
        assert!(is_implementation("cusparse@12.6.3", "cusparse") && is_implementation("mkl", "mkl"));
        assert!(is_implementation("cusparse@12.6.3", "cusparse@12.6.3"));
        assert!(!is_implementation("cusparse@12.6.3", "cusparse@12.9.4"));
        assert!(
            ["mkl@2026.2", "aocl", "cublas"].iter().all(|name| is_vendors(name)) && !is_vendors("tarsia")
        );
        assert!(!is_implementation("cusparse-bsr@12.6.3", "cusparse") && !is_implementation("mkl", "mkl@1"));
        for (alg, parts) in [
            ("default", ("default", "")),
            ("csr+lpt_col", ("csr+lpt", "_col")),
            ("DEFAULT-nopre_bt", ("DEFAULT-nopre", "_bt")),
            ("once_col_bt", ("once", "_col_bt")),
        ] {
            assert_eq!(split_layout(alg), parts);
        }
        let row = |implementation: &str, note: &str| Row {
            implementation: implementation.into(),
            note: note.into(),
            ..Row::default()
        };
        assert_eq!(row("cusparse-coo@12.6.3", "version=1").version(), Some("12.6.3"));
        assert_eq!(row("cusparse", "buf=7;version=12.9.4").version(), Some("12.9.4"));
        assert_eq!(
            (row("cusparse-coo@12.6.3", "").who(), row("mkl", "").version()),
            ("cusparse-coo".into(), None)
        );
    }

    #[test]
    fn older_tables_are_read() {
        let head = "op\tprecision\tN\tmatrix\trows\tnnz\timpl\talg\tmedian_us\tgflops\tfloor_us\t\
                    analysis_ms\tmax_rel_err\tnote";
        let line = "spmv\tf64\t1\tcant\t4\t9\ttarsia\tauto:csr\t2.00\t1.00\t\t0.5\t0.00e+00\tfill=1";
        let table = Table { path: "t".into(), text: format!("{head}\n{line}\n") };
        let rows = table.rows().unwrap();
        assert_eq!((rows[0].alg.as_str(), rows[0].note.as_str()), ("default", "chosen=csr;fill=1"));
        assert_eq!(rows[0].peak_bytes, NONE);
    }

    #[test]
    fn a_table_is_continued() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.tsv");
        let case = Case { op: "spmv".into(), matrix: "a".into(), ..Case::default() };
        let row = Row::failed(case, (OURS, "x"), 1.0, "no");
        let (mut writer, rows) = Writer::append(&path).unwrap();
        assert!(rows.is_empty());
        writer.write(&row).unwrap();
        let (mut writer, rows) = Writer::append(&path).unwrap();
        assert_eq!(rows, std::slice::from_ref(&row));
        writer.write(&row).unwrap();
        assert_eq!(Table::read(&path).unwrap().rows().unwrap().len(), 2);
        std::fs::write(&path, "op\timpl\n").unwrap();
        assert!(Writer::append(&path).is_err());
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

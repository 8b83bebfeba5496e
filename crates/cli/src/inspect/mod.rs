//! `tarsia inspect`: shows a matrix, and the library's choices for it.
//!
//! - [`statistics`]: statistics of the matrix
//! - [`layouts`]: predictions of the cost model for each SpMV layout
//! - [`choices`]: plans of each operation, and their information
//! - [`explain`]: statistics, predictions and choices of the cost model
//! - [`spy`]: positions of the entries, as text and as a picture
//! - [`report`]: printing of the results

mod choices;
mod explain;
pub mod layouts;
pub mod pattern;
mod report;
mod spy;
mod statistics;

use std::path::PathBuf;
use std::time::Instant;

use client::Session;
use matrices::file::{read_file, FileMatrix};
use matrices::market::{MarketField, MarketSymmetry, MarketValues};
use matrices::owned::OwnedCsr;
use serde::Serialize;
use tarsia::facade::{run_in_pool, BackendKind, Effort};

use self::choices::{Choice, Number};
use self::explain::Explanation;
use self::layouts::Prediction;
use self::spy::Grid;
use self::statistics::MatrixStatistics;
use crate::demo::bandwidth;
use crate::features::Features;
use crate::options::{backend_name, Backend};
use crate::plot::Format;
use crate::progress::step;
use crate::Result;

const EXPLAIN: &str = "\
What is printed:
  symmetry    share of the entries (i, j) off the diagonal with (j, i) stored too, and what the
              values of these pairs have in common, if the file has values
  rows        number of entries of the rows, and how many rows have how many
  place       bandwidth is the largest i − j (below the diagonal) and j − i (above)
  columns     near: the column less the first of its row is below 2^16, so that 16 bits hold it;
              distance: mean distance of two neighbouring entries of a row
  blocks      entries over places in the b x b blocks that hold an entry: 100 % is full
  SpGEMM      multiplications of A·A (A·Aᵀ if A is not square), and of how many an entry of C is
              the sum, from up to 1,024 rows of C
  spy plot    one character or point for each part of the matrix, darker where more is stored

The table of layouts is the cost model's, for a GPU (H100, caches flushed) and for a CPU, whatever
this machine has: bytes of the matrix in each layout with x and y, and microseconds; the layout
with the star is what effort default takes. In a layout of narrow columns they are fewer than as CSR.

With --explain the 24 features come last by which Mehrabi et al. (Learning sparse matrix row
permutations for efficient SpMM on GPU architectures, ISPASS 2021) choose an order of rows, with the
version of their list and the time that counting them takes on the CPU. TARSIA_REORDER_LEARNED
predicts an order from them.

The table of choices comes from plans that are made and analyzed through the public C functions.
  bytes as    what the product moves at least with the user's arrays, in whatever layout the plan has:
  CSR         A in CSR with 32-bit columns and the dense operands, each once; of SpGEMM A twice and
              the estimated C
  at copy     that over this machine's copy bandwidth, measured now (not on a GPU)
  predicted   seconds of one execution by the library's cost model (- where it has none)

Examples:
  tarsia inspect matrix.mtx.gz
  tarsia inspect matrix.mtx --plot spy.png
  tarsia inspect matrix.mtx --explain
  tarsia inspect matrix.mtx --json --effort tuned";

/// Arguments of `tarsia inspect`.
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXPLAIN)]
pub struct Args {
    /// File: Matrix Market (.mtx, .mtx.gz), packed (.tsm) or .bin
    matrix: PathBuf,

    /// Draw the spy plot into this file, too, as PNG or SVG by its ending
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,

    /// Print one JSON object instead, for programs
    #[arg(long)]
    json: bool,

    /// Backend whose choices are shown
    #[arg(long, value_enum, default_value_t = Backend::Auto)]
    backend: Backend,

    /// How much the plans' analysis may cost; tuned times the best candidates
    #[arg(long, value_enum, default_value_t = PlanEffort::Default)]
    effort: PlanEffort,

    /// Print what the cost model counts, expects and takes for each operation, and why, too
    #[arg(long)]
    explain: bool,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum PlanEffort {
    Quick,
    Default,
    Tuned,
}

impl PlanEffort {
    fn effort(self) -> Effort {
        match self {
            PlanEffort::Quick => Effort::Quick,
            PlanEffort::Default => Effort::Default,
            PlanEffort::Tuned => Effort::Tuned,
        }
    }
}

/// All results of the command.
#[derive(Debug, Serialize)]
struct Report {
    file: String,
    file_bytes: u64,
    read_seconds: f64,
    format: String,
    field: String,
    symmetry: String,
    /// True if the file has values; if not, its entries count as 1.
    #[serde(skip)]
    has_values: bool,
    #[serde(flatten)]
    statistics: MatrixStatistics,
    backend: String,
    /// Copy bandwidth; `None` on a GPU, whose memory is not this machine's.
    copy_bytes_per_second: Option<f64>,
    predictions: Vec<Prediction>,
    choices: Vec<Choice>,
    /// Filled with --explain only.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    explanations: Vec<Explanation>,
    /// Filled with --explain only.
    #[serde(skip_serializing_if = "Option::is_none")]
    features: Option<Features>,
}

/// Runs the command.
pub fn run(args: &Args) -> Result<bool> {
    let path = &args.matrix;
    let in_file = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let plot = args.plot.as_ref().map(|path| Format::of(path).map(|format| (path, format))).transpose();
    let plot = plot.map_err(|error| format!("--plot {error}"))?;
    // Opened first: without the backend there is no need to read a large file.
    let session = Session::new(args.backend.kind())?;
    let start = Instant::now();
    let matrix = step(&format!("reading {}", path.display()), || run_in_pool(|| read_file(path)));
    let matrix = matrix.map_err(|error| in_file(&error))?;
    let read_seconds = start.elapsed().as_secs_f64();
    let (format, symmetry) = form(&matrix);
    let (field, values) = matrix.into_values().map_err(|error| in_file(&error))?;
    let mut report = Report {
        file: path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned(),
        file_bytes: std::fs::metadata(path).map_err(|error| in_file(&error))?.len(),
        read_seconds,
        format,
        field: format!("{field:?}").to_lowercase(),
        symmetry,
        has_values: field != MarketField::Pattern,
        statistics: MatrixStatistics::default(),
        backend: backend_name(session.kind()),
        copy_bytes_per_second: match session.kind() {
            BackendKind::Cuda => None,
            _ => Some(step("measuring the copy bandwidth", bandwidth::measure)?.bytes_per_second),
        },
        predictions: Vec::new(),
        choices: Vec::new(),
        explanations: Vec::new(),
        features: None,
    };
    match &values {
        MarketValues::Real(a) => report_on(args, &session, a, plot, &mut report)?,
        MarketValues::Complex(a) => report_on(args, &session, a, plot, &mut report)?,
    }
    Ok(true)
}

/// Returns the names of the file's format and of the symmetry by which it leaves entries out; only a Matrix Market
/// file does.
fn form(matrix: &FileMatrix) -> (String, String) {
    let header = match matrix {
        FileMatrix::Market(matrix) => matrix.header,
        FileMatrix::Packed(_) => return ("packed".into(), "general".into()),
        FileMatrix::Generated(_) => return ("generated".into(), "general".into()),
    };
    let symmetry = match header.symmetry {
        MarketSymmetry::SkewSymmetric => "skew-symmetric".into(),
        other => format!("{other:?}").to_lowercase(),
    };
    (format!("{:?}", header.format).to_lowercase(), symmetry)
}

fn report_on<T: Number>(
    args: &Args,
    session: &Session,
    a: &OwnedCsr<T>,
    plot: Option<(&PathBuf, Format)>,
    report: &mut Report,
) -> Result<()> {
    report.statistics = step("looking at the pattern", || MatrixStatistics::of(a))?;
    if !report.has_values {
        // The values of a pattern are made up, all of them 1.
        report.statistics.value_symmetry = None;
    }
    report.predictions = layouts::of(a)?;
    report.choices = choices::of(session, a, args.effort.effort(), report)?;
    if args.explain {
        let n = choices::N as i64;
        report.explanations = step("explaining", || explain::of(a, &report.statistics, n))?;
        let count = || Features::of((a.rows, a.cols), &a.offsets, &a.indices);
        report.features = Some(step("counting features", count));
    }
    if let Some((path, format)) = plot {
        step("drawing", || spy::plot(a, &report.file, path, format))?;
    }
    let mut out = anstream::stdout().lock();
    if args.json {
        serde_json::to_writer_pretty(&mut out, report).map_err(std::io::Error::from)?;
        return Ok(std::io::Write::write_all(&mut out, b"\n")?);
    }
    report::print(&mut out, report, &Grid::for_terminal(a)?)
}

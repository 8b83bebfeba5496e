//! `tarsia bench`: times products, checks them, sets them against other tables.
//!
//! - [`input`]: matrices from files
//! - [`number`]: precisions, seeded operands
//! - [`timer`]: clocks with cold and with warm caches
//! - [`runs`]: a case, from the plan to the line of the table
//! - [`check`]: results against sums in twice the digits
//! - [`report`]: the table of results
//! - [`compare`]: speed-ups over other tables

mod check;
mod compare;
mod cuda;
mod input;
mod number;
mod report;
mod runs;
mod timer;

use std::error::Error;
use std::fmt;
use std::path::PathBuf;

use tarsia::capi::client::Session;
use tarsia::error::Status;
use tarsia::types::{BackendKind, SpgemmAlg, SpmmAlg, SpmvAlg};

use self::compare::{summary, Reference};
use self::number::{Number, Precision};
use self::report::{Case, Row, Table, Writer};
use self::runs::{Operands, Setting};
use crate::progress::step;
use crate::Result;

/// Name of the algorithm that the library chooses.
const AUTO: &str = "auto";
/// Name of the one-call form.
const ONCE: &str = "once";

const NOTES: &str = "\
FILES may be Matrix Market (.mtx, .mtx.gz), what `tarsia pack` writes, and what the generator of
the comparison matrices writes (.bin). Only patterns are read: values are seeded, ±[0.5, 1) with
full mantissas, the same in every run and for any number of threads.

The table (--out, else stdout), tab-separated:
  op precision N matrix rows nnz impl alg median_us gflops floor_us analysis_ms max_rel_err note
  N            columns of the dense matrix; 1 for SpMV, 0 for SpGEMM (A·A; A·Aᵀ if not square)
  alg          auto:NAME, what the library chose; NAME, what --alg asked for; once
  median_us    SpMV, SpMM: of up to --repeat runs, caches cleared by reads before each; SpGEMM: wall
               time of plan, analysis, symbolic and numeric phase, without the allocation of C;
               -1: no result, the note says why
  floor_us     the matrix with 32-bit indices and the dense operands (SpGEMM: A twice and C), each
               once, at 3028 GB/s, the copy rate of an H100
  max_rel_err  largest |found − exact| / Σ|a·x| over all rows (below 10⁷ multiplications), else over
               1,000 seeded rows with the longest among them; the note begins with WRONG where
               |found − exact| is over (terms) · eps · Σ|a·x| + the rounding of the store
  note         warm_us: runs back to back; with_alloc_us: C's allocation included; …

Exit code: 0; 1 if a result is wrong or a case failed (no memory for it, or nothing that supports
it, is no failure); 2 if the benchmark could not run.

Examples:
  tarsia bench cant.bin --op spmv --types f64,f32
  tarsia bench *.bin --op spmm --n 32,128 --out mine.tsv --bar bar.tsv
  tarsia bench --results mine.tsv --against h100.tsv --impl cusparse --against-alg DEFAULT-nopre";

/// Arguments of `tarsia bench`.
#[derive(Debug, clap::Args)]
#[command(after_long_help = NOTES)]
pub struct Args {
    /// Matrices
    #[arg(value_name = "FILES", required_unless_present = "results", conflicts_with = "results")]
    files: Vec<PathBuf>,

    /// Operations
    #[arg(long, value_enum, value_delimiter = ',', default_value = "spmv,spmm,spgemm")]
    op: Vec<Op>,

    /// Precisions
    #[arg(long, value_enum, value_delimiter = ',', default_value = "f64,f32,f16")]
    types: Vec<Precision>,

    /// Columns of SpMM's dense matrices
    #[arg(long, value_delimiter = ',', default_value = "8,32,128,512",
          value_parser = clap::value_parser!(u32).range(1..=65_536))]
    n: Vec<u32>,

    /// Algorithms by name; `auto` lets the library choose
    #[arg(long, value_name = "NAMES", value_delimiter = ',', default_value = AUTO)]
    alg: Vec<String>,

    /// Time SpMV in one call without a plan, too
    #[arg(long)]
    once: bool,

    /// Who executes
    #[arg(long, value_enum, default_value_t = Backend::Auto)]
    backend: Backend,

    /// Most executions behind a median
    #[arg(long, default_value_t = 25, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    repeat: u32,

    /// Do not compare results with the host's
    #[arg(long)]
    no_check: bool,

    /// Largest C that SpGEMM may make, in GiB
    #[arg(long, value_name = "GIB", default_value_t = 64.0)]
    max_c_gib: f64,

    /// Write the table here instead of stdout
    #[arg(long, value_name = "TSV")]
    out: Option<PathBuf>,

    /// Measure nothing, read an earlier table
    #[arg(long, value_name = "TSV")]
    results: Option<PathBuf>,

    /// Compare with a table of one time a case
    #[arg(long, value_name = "TSV")]
    bar: Option<PathBuf>,

    /// Its column of times
    #[arg(long, value_name = "NAME", default_value = "bar_us", requires = "bar")]
    bar_column: String,

    /// Compare with a table like this one (the best of the lines that --impl and --against-alg leave)
    #[arg(long, value_name = "TSV")]
    against: Option<PathBuf>,

    /// Only its lines with this `impl`
    #[arg(long = "impl", value_name = "NAME", requires = "against")]
    implementation: Option<String>,

    /// Only its lines with this `alg`
    #[arg(long, value_name = "NAME", requires = "against")]
    against_alg: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Op {
    /// y = A·x
    Spmv,
    /// C = A·B, B dense
    Spmm,
    /// C = A·A
    Spgemm,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Backend {
    /// The best that there is on this machine
    Auto,
    /// The threads of the CPU
    Host,
    /// An NVIDIA GPU
    Cuda,
    /// One thread, obviously right, slow
    Reference,
}

impl Backend {
    fn kind(self) -> BackendKind {
        match self {
            Backend::Auto => BackendKind::Auto,
            Backend::Host => BackendKind::Host,
            Backend::Cuda => BackendKind::Cuda,
            Backend::Reference => BackendKind::Reference,
        }
    }
}

/// A case that is not run, for a reason that is no failure.
#[derive(Debug)]
struct Declined(String);

impl fmt::Display for Declined {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for Declined {}

/// The library has no such case, or the machine no room for it.
fn is_declined(error: &(dyn Error + 'static)) -> bool {
    let statuses = [Status::NotSupported, Status::InsufficientResources, Status::AllocFailed];
    let status = error.downcast_ref::<tarsia::error::Error>().map(|error| error.status);
    error.is::<Declined>() || status.is_some_and(|status| statuses.contains(&status))
}

/// Largest number that is looked at in an enum of algorithms.
const LAST_CODE: i32 = 255;

/// An algorithm by its lower-case name.
fn algorithm<A: Copy>(
    name: &str,
    prefix: &str,
    from_code: impl Fn(i32) -> Option<A>,
    c_name: impl Fn(A) -> &'static str,
) -> Option<A> {
    let name = if name == AUTO { "default" } else { name };
    let is_it = |alg: &A| c_name(*alg).strip_prefix(prefix).is_some_and(|end| end.eq_ignore_ascii_case(name));
    (0..=LAST_CODE).filter_map(from_code).find(is_it)
}

fn spmv_alg(name: &str) -> Option<SpmvAlg> {
    algorithm(name, "TARSIA_SPMV_ALG_", SpmvAlg::from_code, SpmvAlg::c_name)
}

fn spmm_alg(name: &str) -> Option<SpmmAlg> {
    algorithm(name, "TARSIA_SPMM_ALG_", SpmmAlg::from_code, SpmmAlg::c_name)
}

fn spgemm_alg(name: &str) -> Option<SpgemmAlg> {
    algorithm(name, "TARSIA_SPGEMM_ALG_", SpgemmAlg::from_code, SpgemmAlg::c_name)
}

impl Args {
    /// Each name must be an algorithm of one of the operations.
    fn check_algorithms(&self) -> Result<()> {
        let known = |op: &Op, name: &str| match op {
            Op::Spmv => spmv_alg(name).is_some(),
            Op::Spmm => spmm_alg(name).is_some(),
            Op::Spgemm => spgemm_alg(name).is_some(),
        };
        match self.alg.iter().find(|name| !self.op.iter().any(|op| known(op, name))) {
            Some(name) => Err(format!("--alg: none of the operations has an algorithm '{name}'").into()),
            None => Ok(()),
        }
    }
}

/// Runs the benchmark; false if a result is wrong or a case failed.
pub fn run(args: &Args) -> Result<bool> {
    args.check_algorithms()?;
    // Before hours of measuring: what they will be compared with.
    let references = references(args)?;
    let (rows, passed) = match &args.results {
        Some(path) => (Table::read(path)?.rows()?, true),
        None => measure(args)?,
    };
    for (title, reference) in &references {
        print!("{}", summary(&rows, reference, title)?);
    }
    Ok(passed && !rows.iter().any(Row::is_wrong))
}

fn references(args: &Args) -> Result<Vec<(String, Reference)>> {
    let mut out = Vec::new();
    if let Some(path) = &args.bar {
        let title = format!("Speed-up over {} of {}", args.bar_column, path.display());
        out.push((title, Reference::new(&Table::read(path)?, &args.bar_column, &[])?));
    }
    if let Some(path) = &args.against {
        let (implementation, alg) = (args.implementation.as_deref(), args.against_alg.as_deref());
        let wanted = [("impl", implementation), ("alg", alg)];
        let filters: Vec<_> = wanted.into_iter().filter_map(|(name, value)| Some((name, value?))).collect();
        let who: Vec<&str> = filters.iter().map(|(_, value)| *value).collect();
        let title = format!("Speed-up over {} of {}", who.join(" "), path.display());
        out.push((title, Reference::new(&Table::read(path)?, "median_us", &filters)?));
    }
    Ok(out)
}

fn measure(args: &Args) -> Result<(Vec<Row>, bool)> {
    let session = Session::new(args.backend.kind())?;
    let timer = timer::of(&session)?;
    let setting = Setting {
        session: &session,
        timer: &*timer,
        repeat: args.repeat as usize,
        check: !args.no_check,
        max_c_bytes: args.max_c_gib * 1024f64.powi(3),
    };
    let writer = Writer::new(args.out.as_deref())?;
    let mut bench = Bench { args, setting, writer, rows: Vec::new(), passed: true };
    for path in &args.files {
        let input = step(&path.display().to_string(), || input::read(path))?;
        for &precision in &args.types {
            match precision {
                Precision::F64 => bench.matrix::<f64>(&input, precision)?,
                Precision::F32 | Precision::Tf32 => bench.matrix::<f32>(&input, precision)?,
                Precision::F16 => bench.matrix::<half::f16>(&input, precision)?,
                Precision::Bf16 => bench.matrix::<half::bf16>(&input, precision)?,
            }
        }
    }
    Ok((bench.rows, bench.passed))
}

/// A benchmark in progress.
struct Bench<'a> {
    args: &'a Args,
    setting: Setting<'a>,
    writer: Writer,
    rows: Vec<Row>,
    passed: bool,
}

impl Bench<'_> {
    /// All that was asked for of one matrix in one precision.
    fn matrix<T: Number>(&mut self, input: &input::Input, precision: Precision) -> Result<()> {
        let (args, session) = (self.args, self.setting.session);
        let a = &Operands::<T>::new(session, &input.name, &input.pattern, precision)
            .map_err(|error| format!("{}: {error}", input.name))?;
        for &op in &args.op {
            match op {
                // There is no TF32 but in SpMM, and no half type of C in SpGEMM.
                Op::Spmv if precision == Precision::Tf32 => {}
                Op::Spgemm if !matches!(precision, Precision::F64 | Precision::F32) => {}
                Op::Spmv => {
                    let floor = a.dense_floor_us(1);
                    for name in &args.alg {
                        let Some(alg) = spmv_alg(name) else { continue };
                        self.case((a.case("spmv", 1), floor), name, |s| s.spmv(a, (name, alg)))?;
                    }
                    if args.once {
                        self.case((a.case("spmv", 1), floor), ONCE, |s| s.spmv_once(a))?;
                    }
                }
                Op::Spmm => {
                    for n in args.n.iter().map(|&n| n as usize) {
                        for name in &args.alg {
                            let Some(alg) = spmm_alg(name) else { continue };
                            let case = (a.case("spmm", n), a.dense_floor_us(n));
                            self.case(case, name, |s| s.spmm(a, n, (name, alg)))?;
                        }
                    }
                }
                Op::Spgemm => {
                    for name in &args.alg {
                        let Some(alg) = spgemm_alg(name) else { continue };
                        self.case((a.case("spgemm", 0), -1.0), name, |s| s.spgemm(a, (name, alg)))?;
                    }
                }
            }
        }
        Ok(())
    }

    /// One case: its line goes to the table, and a short one to stderr.
    fn case(
        &mut self,
        (case, floor_us): (Case, f64),
        asked: &str,
        run: impl FnOnce(&Setting<'_>) -> Result<Row>,
    ) -> Result<()> {
        let what = format!("{:6} {:4} {:4} {:12}", case.op, case.precision, case.n, case.matrix);
        let row = match run(&self.setting) {
            Ok(row) => {
                let verdict = if row.is_wrong() { "WRONG" } else { "" };
                eprintln!(
                    "{what} {:12} {:12.2} µs {:8.1} GFLOP/s {verdict}",
                    row.alg, row.median_us, row.gflops
                );
                row
            }
            Err(error) => {
                let declined = is_declined(&*error);
                self.passed &= declined;
                eprintln!("{what} {asked:12} {}: {error}", if declined { "not run" } else { "FAILED" });
                Row::failed(case, asked.into(), floor_us, &error.to_string())
            }
        };
        self.writer.write(&row)?;
        self.rows.push(row);
        Ok(())
    }
}

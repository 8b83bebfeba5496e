//! `tarsia sample`: measures all candidates of a choice on many matrices, as training data for choosers.
//!
//! - [`again`]: matrices and products of an older table
//! - [`draw`]: matrices with sampled parameters
//! - [`cases`]: statistics and predictions for each matrix
//! - [`measure`]: times of each candidate
//!
//! Other threads make and count the next matrices while one is measured.

mod again;
mod cases;
mod draw;
mod measure;

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{sync_channel, SyncSender};
use std::thread;
use std::time::{Duration, Instant};

use clap::ArgGroup;
use client::Session;
use flate2::write::GzEncoder;
use flate2::Compression;
use matrices::gallery;
use rayon::ThreadPoolBuilder;
use tarsia::facade::{Algorithm, FeatureSet, SpmmStatistics};

use self::again::Products;
use self::cases::{Case, SampledMatrix, Wanted};
use self::draw::Draw;
use self::measure::{Meter, Time};
use super::{input, machine, timer};
use crate::generate::spelled_out;
use crate::options::Backend;
use crate::progress::{aside, say, Bar};
use crate::Result;

const NOTES: &str = "\
Matrices are drawn from all kinds of the gallery, with sampled parameters; number k of a seed is always
the same matrix. Each is measured in some groups of products, drawn too: SpMV in one precision, SpMM in
one precision and with 32 or 128 columns, SpGEMM. FILES and --gallery are measured in all groups: what a
chooser that has learned is tested on. --orders measures, of all matrices of up to 131,072 rows, SpMV `csr`
and SpMM `row` and `csr` in fp32 with their rows in every order, and nothing else. --algorithms measures the
algorithms that it names alone; with --again in the products of a table of drawn matrices, e.g. where their
kernels have changed since (`train/renew.py` puts the times into the table).

The table, tab-separated, begins with lines of #: the device, and the names of the numbers of each operation.
  number matrix rows cols nnz op precision n numbers times
  number     of the matrix; -1: it was named
  matrix     what `tarsia generate` and `tarsia bench --gallery` make again
  op         matrix: numbers of it, no times; spmv, spmm, spgemm; with --orders: orders-spmv-csr,
             orders-spmm-row (B and C row-major), orders-spmm-csr (column-major), whose candidates are the
             orders of rows of `tarsiaPlan_setReorder`, none for the rows' own. (Older tables have the op
             orders: SpMM `csr`, column-major, of a matrix whose rows, and those of C, are in four orders.)
  numbers    what is counted, separated by spaces: of a matrix the 24 features that learned orders of rows
             are chosen by, of SpMM and SpGEMM what their choices are made from, else nothing
  times      CANDIDATE:PREDICTED:MEASURED:ANALYSIS, separated by spaces: microseconds by the cost model for
             an H100 (SpMM: with --memory times its bytes a second; 0: none), median microseconds (caches
             flushed; SpGEMM: wall time of all phases), milliseconds (without the time in which an order
             of rows is computed). What is predicted to take five times the best is not measured.

Results are compared with the host's in six places of each.

Exit code: 0; 1 if a result was wrong or a candidate failed; 2 if it could not run.

Examples:
  tarsia sample --count 10000 --seed 1 --seconds 300 --out train.tsv.gz
  tarsia sample --count 10000 --seed 3 --seconds 300 --orders --out orders.tsv.gz
  tarsia sample --again train.tsv.gz --algorithms row --seconds 300 --out row.tsv.gz
  tarsia sample matrices/*.mtx.gz --gallery comparison --out test.tsv.gz";

/// Arguments of `tarsia sample`.
#[derive(Debug, clap::Args)]
#[command(
    after_long_help = NOTES,
    group(ArgGroup::new("matrices").args(["files", "gallery", "count", "again"]).required(true).multiple(true))
)]
pub struct Args {
    /// Matrices to measure in all groups, as `tarsia bench` takes them
    #[arg(value_name = "FILES")]
    files: Vec<PathBuf>,

    /// Matrices of the gallery by name, also in all groups
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    gallery: Vec<String>,

    /// Number of matrices to draw
    #[arg(long, value_name = "N", default_value_t = 0)]
    count: u64,

    /// Seed of the draws
    #[arg(long, default_value_t = 1)]
    seed: u64,

    /// First number that is drawn
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    first: u64,

    /// Number of groups of products in which a drawn matrix is measured
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    groups: u32,

    /// Measure row orders only, all of them in each form of product that supports them
    #[arg(long)]
    orders: bool,

    /// Measure these algorithms only, in the products that have them
    #[arg(long, value_name = "NAMES", value_delimiter = ',', conflicts_with = "orders")]
    algorithms: Vec<String>,

    /// Measure the algorithms again in the products of this table that have them
    #[arg(long, value_name = "TSV", requires = "algorithms")]
    again: Option<PathBuf>,

    /// Least number of entries of a drawn matrix, approximately
    #[arg(long, value_name = "ENTRIES", default_value_t = 1e3)]
    least: f64,

    /// Largest number of entries of a drawn matrix, approximately
    #[arg(long, value_name = "ENTRIES", default_value_t = 1e7)]
    most: f64,

    /// Number of executions behind a median
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    repeat: u32,

    /// Begin no new matrix after this many seconds
    #[arg(long)]
    seconds: Option<u64>,

    /// Bytes a second of the device's memory over an H100's (an H200: 1.4667), for predictions of SpMM
    #[arg(long, value_name = "RATIO", default_value_t = 1.0, conflicts_with = "orders")]
    memory: f64,

    /// Threads that make matrices [default: all cores but two]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    threads: Option<u32>,

    /// Backend that computes the products
    #[arg(long, value_enum, default_value_t = Backend::Auto)]
    backend: Backend,

    /// Write the table here instead of stdout, gzipped if the name ends in .gz
    #[arg(long, value_name = "TSV")]
    out: Option<PathBuf>,

    /// Commit of the program, for the table
    #[arg(long, value_name = "ID")]
    commit: Option<String>,
}

/// Source of a matrix.
enum Source {
    File(PathBuf),
    Named(String),
    Drawn(u64),
    Again(Products),
}

impl Args {
    fn sources(&self) -> Result<Vec<Source>> {
        let positive = |least: f64| least.is_finite() && least >= 1.0;
        if !positive(self.least) || !positive(self.most) || self.least > self.most {
            return Err("--least, --most: they are numbers of entries, the first at most the second".into());
        }
        if !(self.memory.is_finite() && self.memory > 0.0) {
            return Err("--memory: it is a ratio above 0".into());
        }
        let is_candidate = |name: &str| cases::ALGORITHMS.iter().any(|algorithm| algorithm.name() == name);
        if let Some(name) = self.algorithms.iter().find(|name| !is_candidate(name)) {
            let all = cases::ALGORITHMS.map(Algorithm::name).join(", ");
            return Err(format!("--algorithms {name}: what can be measured is {all}").into());
        }
        let files = self.files.iter().cloned().map(Source::File);
        let named = spelled_out(&self.gallery).into_iter().map(Source::Named);
        let drawn = (self.first..self.first.saturating_add(self.count)).map(Source::Drawn);
        let again = match &self.again {
            Some(table) => again::products(table, &self.algorithms)?,
            None => Vec::new(),
        };
        Ok(files.chain(named).chain(drawn).chain(again.into_iter().map(Source::Again)).collect())
    }

    fn make(&self, source: &Source) -> Result<SampledMatrix> {
        let mut made = self.make_all(source)?;
        if !self.algorithms.is_empty() {
            made.keep(&self.algorithms);
        }
        Ok(made)
    }

    fn make_all(&self, source: &Source) -> Result<SampledMatrix> {
        let (name, pattern) = match source {
            Source::File(path) => {
                let found = input::read(path)?;
                (found.name, found.pattern)
            }
            Source::Named(name) => (name.clone(), input::generate(name)?.pattern),
            Source::Drawn(number) => {
                let mut draw = Draw::new(self.seed, *number);
                let name = draw.matrix((self.least, self.most));
                let pattern = gallery::named(&name).map_err(|error| format!("{name}: {error}"))?;
                let wanted = match self.orders {
                    true => Wanted::Orders,
                    false => Wanted::Some(self.groups as usize, &mut draw),
                };
                return SampledMatrix::new(*number as i64, &name, pattern, wanted, self.memory);
            }
            Source::Again(Products { number, matrix, groups }) => {
                let pattern = gallery::named(matrix).map_err(|error| format!("{matrix}: {error}"))?;
                return SampledMatrix::new(*number, matrix, pattern, Wanted::These(groups), self.memory);
            }
        };
        let wanted = if self.orders { Wanted::Orders } else { Wanted::All };
        SampledMatrix::new(-1, &name, pattern, wanted, self.memory)
    }

    fn workers(&self, sources: usize) -> usize {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let wanted = self.threads.map_or(cores.saturating_sub(2), |threads| threads as usize);
        wanted.clamp(1, sources.max(1))
    }
}

/// Runs the command; false if a result was wrong or a candidate failed.
pub fn run(args: &Args) -> Result<bool> {
    let begin = Instant::now();
    let sources = args.sources()?;
    let session = Session::new(args.backend.kind())?;
    let timer = timer::of(&session)?;
    let mut out = Out::new(args.out.as_deref())?;
    head(&mut out, args, &session)?;
    let deadline = args.seconds.map(|seconds| begin + Duration::from_secs(seconds));
    let mut meter = Meter::new(&session, &*timer, args.repeat as usize);
    let (next, mut count, mut broken) = (AtomicU64::new(0), 0, 0);
    let workers = args.workers(sources.len());
    thread::scope(|scope| -> Result<()> {
        let (sender, receiver) = sync_channel(workers);
        for _ in 0..workers {
            let (sender, sources, next) = (sender.clone(), &sources, &next);
            scope.spawn(move || work(args, sources, next, &sender));
        }
        drop(sender);
        let bar = Bar::new(sources.len());
        for made in receiver {
            if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                say("time is up");
                break;
            }
            match made {
                Ok(matrix) => {
                    lines(&mut out, &matrix, &mut meter)?;
                    count += 1;
                }
                Err(error) => {
                    say(error);
                    broken += 1;
                }
            }
            bar.advance();
        }
        // Makes the workers stop: there are no more sources.
        next.store(u64::MAX / 2, Ordering::Relaxed);
        Ok(())
    })?;
    out.finish()?;
    let seconds = begin.elapsed().as_secs_f64();
    let failed = meter.failed;
    say(format!("{count} matrices in {seconds:.1} s; {broken} were not made, {failed} candidates failed"));
    Ok(failed == 0 && broken == 0)
}

/// Makes matrices until there are no more, or the receiver is closed.
fn work(
    args: &Args,
    sources: &[Source],
    next: &AtomicU64,
    sender: &SyncSender<std::result::Result<SampledMatrix, String>>,
) {
    // A pool of one thread per worker: there are as many workers as threads are wanted.
    let pool = ThreadPoolBuilder::new().num_threads(1).build().ok();
    loop {
        let at = next.fetch_add(1, Ordering::Relaxed);
        let Some(source) = usize::try_from(at).ok().and_then(|at| sources.get(at)) else { return };
        let make = || args.make(source).map_err(|error| error.to_string());
        let made = match &pool {
            Some(pool) => pool.install(make),
            None => make(),
        };
        if sender.send(made).is_err() {
            return;
        }
    }
}

/// Writer of the table.
enum Out {
    Plain(Box<dyn Write>),
    Gzip(Box<GzEncoder<BufWriter<File>>>),
}

impl Out {
    fn new(path: Option<&Path>) -> Result<Self> {
        let Some(path) = path else { return Ok(Out::Plain(Box::new(io::stdout().lock()))) };
        let file = File::create(path).map_err(|error| format!("{}: {error}", path.display()))?;
        let file = BufWriter::new(file);
        Ok(match path.extension().is_some_and(|ending| ending == "gz") {
            true => Out::Gzip(Box::new(GzEncoder::new(file, Compression::default()))),
            false => Out::Plain(Box::new(file)),
        })
    }

    fn line(&mut self, text: &str) -> Result<()> {
        match self {
            Out::Plain(out) => aside(|| writeln!(out, "{text}"))?,
            Out::Gzip(out) => writeln!(out, "{text}")?,
        }
        Ok(())
    }

    fn finish(self) -> Result<()> {
        match self {
            Out::Plain(mut out) => out.flush()?,
            Out::Gzip(out) => out.finish()?.flush()?,
        }
        Ok(())
    }
}

fn head(out: &mut Out, args: &Args, session: &Session) -> Result<()> {
    let origin = machine::origin(session, args.commit.as_deref())?;
    let (device, driver, date, commit) = (origin.device, origin.driver, origin.date, origin.commit);
    let (seed, repeat, groups) = (args.seed, args.repeat, args.groups);
    if !args.algorithms.is_empty() {
        out.line(&format!("# algorithms {}", args.algorithms.join(" ")))?;
    }
    out.line(&format!("# device {device} · {driver} · {date} · {commit}"))?;
    out.line(&format!(
        "# seed {seed} · groups {groups} · repeat {repeat} · features {} · numbers {} · memory {}",
        FeatureSet::VERSION,
        SpmmStatistics::VERSION,
        args.memory
    ))?;
    let names: [(&str, &[&str]); 3] =
        [("matrix", &FeatureSet::NAMES), ("spmm", &SpmmStatistics::NAMES), ("spgemm", &cases::SPGEMM)];
    for (op, names) in names {
        out.line(&format!("# names {op} {}", names.join(" ")))?;
    }
    out.line("number\tmatrix\trows\tcols\tnnz\top\tprecision\tn\tnumbers\ttimes")
}

/// Writes the lines of a matrix.
fn lines(out: &mut Out, matrix: &SampledMatrix, meter: &mut Meter<'_>) -> Result<()> {
    let a = &matrix.pattern;
    let start = format!("{}\t{}\t{}\t{}\t{}", matrix.number, matrix.name, a.rows, a.cols, a.nnz());
    out.line(&format!("{start}\tmatrix\t-\t0\t{}\t", joined(&matrix.features)))?;
    for case in &matrix.cases {
        let times = match meter.case(matrix, case) {
            Ok(times) => times,
            // Memory does not suffice for the operands; another matrix may be smaller.
            Err(error) => {
                say(format!("{} {:?}: {error}", matrix.name, case.group));
                continue;
            }
        };
        let (op, precision, n) = case.group.names();
        let times: Vec<_> = times.iter().map(|time| field(case, time)).collect();
        let numbers = joined(&case.numbers);
        out.line(&format!("{start}\t{op}\t{precision}\t{n}\t{numbers}\t{}", times.join(" ")))?;
    }
    Ok(())
}

fn field(case: &Case, time: &Time) -> String {
    let candidate = &case.candidates[time.at];
    let (name, predicted) = (candidate.name, candidate.predicted_us as f32);
    format!("{name}:{predicted}:{:.2}:{:.3}", time.micros, time.analysis_ms)
}

fn joined(numbers: &[f32]) -> String {
    numbers.iter().map(f32::to_string).collect::<Vec<_>>().join(" ")
}

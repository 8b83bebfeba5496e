//! `tarsia demo`: solves a problem by conjugate gradients; times the three products, checks them, and compares them
//! with a naive loop, with another library, and with the machine's copy bandwidth.
//!
//! - [`scalar`]: f64 and complex f64
//! - [`problem`]: the built-in problem, and files
//! - [`products`]: the library's products of owned matrices
//! - [`bandwidth`]: the copy bandwidth with which the products are compared
//! - [`cg`]: the solver
//! - [`runs`]: the three products, timed
//! - [`naive`], [`rival`]: the same products by loops of a textbook, and by the vendor's library
//! - [`rows`], [`check`]: which rows are compared with the reference, and how

pub mod bandwidth;
mod cg;
mod check;
mod naive;
mod problem;
pub mod products;
mod rival;
pub mod rows;
mod runs;
mod scalar;

use std::io::Write;
use std::path::PathBuf;
use std::str::FromStr;

use client::{Plan, Session};
use matrices::SplitMix64;
use tarsia::facade::{BackendKind, Operation};

use self::bandwidth::last_level_cache;
use self::cg::Outcome as Ending;
use self::check::Oracle;
use self::problem::{File, System};
use self::products::{zeros, Stored};
use self::rival::Rival;
use self::runs::{Compared, Outcome, Timing};
use self::scalar::Scalar;
use crate::options::{backend_name, positive, Backend};
use crate::progress::step;
use crate::table::{grouped, note, ratio, size, three_digits, time, verdict, Cell, Table};
use crate::Result;

/// Seed of the right-hand side and of the products' operands.
const SEED: u64 = 2026;

const EXAMPLES: &str = "\
Without MATRIX the demo assembles the stiffness matrix of an elastic brick of NXxNYxNZ hexahedral
elements, clamped at one end (3 unknowns a node, up to 81 entries a row), and solves for the
displacements under a body force. With MATRIX it reads a file: Matrix Market, real or complex,
plain or gzipped, or packed; entries of a pattern get seeded values in [0.5, 1.5), because ones would
hide lost digits.

What happens, every product through the public C functions:
  1. Conjugate gradients with Jacobi preconditioning, where A is square, Hermitian and has a positive
     diagonal: to a relative residual of 1e-8; for a file at most 500 iterations or 10 s.
  2. SpMV (y = A·x), SpMM (C = A·B, B dense and row-major with N columns) and SpGEMM (C = A·A, or
     A·Aᵀ where A is not square). The operands have full mantissas and are the same in every run.
  3. Each result is compared with the reference backend: one thread, obviously right, slow.

The table:
  time         median of several executions, after an analysis of the matrix that is done once; of
               SpGEMM all phases together: analysis, symbolic and numeric
  speed        of SpMV the bytes that must move at least, in a second: A's arrays in the widths of
               the layout and the dense operands, each once; of SpMM and SpGEMM the additions and
               multiplications: 2 (complex: 8) for each stored entry and column, or for each
               multiplication
  of a copy    the bytes that must move at least, in a second, as a part of the copy bandwidth of
               this machine: two arrays much larger than the last-level cache, as many threads as the
               library's, read and written bytes, median; `in cache` where it is more than that and
               these bytes fit into the last-level cache. A larger product may have more than 100 %,
               too: a part of it stays in the cache, and reading is faster than writing. Not on a
               GPU, whose memory is not this machine's
  naive loop   how much faster the library is than loops over the rows of CSR in one thread, as a
               textbook writes them; they are a part of this program
  MKL          how much faster it is than MKL (libmkl_rt, where the loader finds it), or on a GPU
               than the fastest of cuSPARSE's algorithms for CSR (libcusparse); with their analysis
               done before, SpGEMM with all phases
  result       PASS: every check of the library's result passed
Below each line: the algorithm, whether it reads the user's arrays in place or a sorted copy, and why.

The error of a check is the largest |y − y_ref| / (entries of the row · eps · Σ|a·x|), eps = 2⁻⁵². Two
sums of the same products in different orders differ by at most 1 in this unit (complex: 2); more is
a FAIL. Results of the naive loop and of the other library are checked, too, and not compared where
they are wrong.

All rows are compared where a product has fewer than 10⁷ multiplications; else up to 1,000 seeded
rows, the longest among them; then SpGEMM is also checked by C·v = A·(B·v) in all rows. C's structure is
checked always. A C of more than --max-c-gib, or of more than 5·10⁹ multiplications, is not made:
the demo says how large it would be, and some rows of it are made and checked instead.

Exit code: 0 if every check passed; 1 if one failed, or if CG did not solve the built-in problem (a
file may be a matrix that CG cannot solve); 2 if the demo could not run.

Examples:
  tarsia demo
  tarsia demo --size 80x48x48 --n 64
  tarsia demo matrix.mtx.gz --backend host
  TARSIA_NUM_THREADS=1 tarsia demo";

/// Arguments of `tarsia demo`.
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub struct Args {
    /// File: Matrix Market (.mtx, .mtx.gz), packed (.tsm) or .bin; instead of the built-in problem
    matrix: Option<PathBuf>,

    /// Elements of the built-in brick along x, y and z
    #[arg(long, value_name = "NXxNYxNZ", default_value = "40x24x24", conflicts_with = "matrix")]
    size: BrickSize,

    /// Backend that computes the products
    #[arg(long, value_enum, default_value_t = Backend::Auto)]
    backend: Backend,

    /// Columns of the dense matrix in SpMM
    #[arg(long, default_value_t = 32, value_parser = clap::value_parser!(u32).range(1..=65_536))]
    n: u32,

    /// Largest C that SpGEMM may make, in GiB
    #[arg(long, value_name = "GIB", default_value = "4", value_parser = positive)]
    max_c_gib: f64,
}

/// Numbers of elements along x, y and z.
#[derive(Clone, Copy, Debug)]
struct BrickSize([usize; 3]);

impl FromStr for BrickSize {
    type Err = String;
    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let parse = |part: &str| part.parse::<usize>().ok().filter(|&count| count > 0);
        let counts: Option<Vec<usize>> = text.split(['x', '×']).map(parse).collect();
        let counts = counts.and_then(|counts| counts.try_into().ok());
        counts.map(BrickSize).ok_or_else(|| "expected three positive numbers, such as 40x24x24".into())
    }
}

/// Runs the demo; false if a check failed.
pub fn run(args: &Args) -> Result<bool> {
    match &args.matrix {
        None => Demo::new(args, problem::brick(args.size.0)?)?.run(),
        Some(path) => match problem::read(path)? {
            File::Real(system) => Demo::new(args, system)?.run(),
            File::Complex(system) => Demo::new(args, system)?.run(),
        },
    }
}

/// One run of the demo.
struct Demo<T> {
    session: Session,
    oracle: Oracle,
    system: System<T>,
    rng: SplitMix64,
    n: usize,
    max_c_bytes: f64,
}

impl<T: Scalar> Demo<T> {
    fn new(args: &Args, system: System<T>) -> Result<Self> {
        Ok(Demo {
            session: Session::new(args.backend.kind())?,
            oracle: Oracle::new()?,
            system,
            rng: SplitMix64::new(SEED),
            n: args.n as usize,
            max_c_bytes: args.max_c_gib * 1024f64.powi(3),
        })
    }

    fn run(mut self) -> Result<bool> {
        let mut out = anstream::stdout();
        let copy = self.introduce(&mut out)?.map(|copy| copy.bytes_per_second);
        let solved = self.solve(&mut out)?;
        let rival = T::rival(&self.session);
        let runs = runs::Setting {
            session: &self.session,
            oracle: &self.oracle,
            a: &self.system.a,
            n: self.n,
            max_c_bytes: self.max_c_bytes,
            rival: rival.as_deref().ok(),
        };
        let rng = &mut self.rng;
        let mut outcomes = vec![runs.spmv(rng)?, runs.spmm(rng)?];
        outcomes.extend(runs.spgemm(rng)?);
        writeln!(out, "\n{}", overview(&outcomes, rival.as_deref().ok(), copy, last_level_cache()))?;
        match &rival {
            Ok(rival) => note(&mut out, &format!("{}: {}", rival.name(), rival.version()))?,
            Err(why) => note(&mut out, &why.to_string())?,
        }
        let passed = conclude::<T>(&mut out, &outcomes)?;
        writeln!(out, "{}", verdict(passed && solved))?;
        Ok(passed && solved)
    }

    /// Prints backend, matrix and machine, and measures the copy bandwidth; `None` on a GPU, whose memory is not
    /// this machine's.
    fn introduce(&self, out: &mut impl Write) -> Result<Option<bandwidth::Bandwidth>> {
        let a = &self.system.a;
        let backend = backend_name(self.session.backend()?);
        let lengths = rows::row_lengths(a, Operation::NonTranspose);
        let mean = a.nnz() as f64 / (a.rows as f64).max(1.0);
        writeln!(out, "tarsia {}, backend {backend}", env!("CARGO_PKG_VERSION"))?;
        writeln!(out, "Matrix   {}, {}", self.system.name, T::TYPE.short())?;
        if self.system.made_up_values {
            writeln!(
                out,
                "         a pattern: entries get values in [0.5, 1.5), symmetric where the pattern is"
            )?;
        }
        writeln!(
            out,
            "         {} × {}, {} entries (mean {mean:.1} a row, longest row {}), {} as CSR",
            grouped(a.rows as u64),
            grouped(a.cols as u64),
            grouped(a.nnz() as u64),
            grouped(lengths.iter().copied().max().unwrap_or(0)),
            size((a.nnz() * (4 + size_of::<T>()) + (a.rows + 1) * 8) as f64)
        )?;
        if self.session.kind() == BackendKind::Cuda {
            return Ok(None);
        }
        let copy = step("measuring the copy bandwidth", bandwidth::measure)?;
        writeln!(
            out,
            "Machine  copies {:.1} GB/s (read + written; {} threads, two arrays of {}, last-level cache {})",
            copy.bytes_per_second / 1e9,
            copy.threads,
            size(copy.array_bytes as f64),
            size(last_level_cache() as f64)
        )?;
        Ok(Some(copy))
    }

    /// Runs conjugate gradients if the matrix may be positive definite; false if the built-in problem was not
    /// solved.
    fn solve(&mut self, out: &mut impl Write) -> Result<bool> {
        let System { a, b, limits, .. } = &mut self.system;
        let must = b.is_some();
        let why_not = step("testing for symmetry", || problem::not_a_candidate(a));
        if let Some(why) = why_not {
            writeln!(out, "CG       not symmetric positive definite: no CG ({why})")?;
            return Ok(true);
        }
        let rng = &mut self.rng;
        let b = b.take().unwrap_or_else(|| (0..a.rows).map(|_| T::random(rng)).collect());
        let mut diagonal: Vec<f64> = zeros(a.rows)?;
        for (row, d) in diagonal.iter_mut().enumerate() {
            *d = a.get(row, row).map_or(0.0, |value| value.real());
        }
        let session = &self.session;
        let stored = Stored::new(session, a)?;
        let (mut device_p, mut device_q) = (session.upload(&b)?, session.upload(&b)?);
        let plan: Plan<'_> = products::spmv_plan(session, &stored, Operation::NonTranspose)?;
        let product = |p: &[T], q: &mut [T]| {
            device_p.write(0, p)?;
            plan.run_spmv(session, T::ONE, &device_p, T::ZERO, &mut device_q)?;
            Ok(device_q.download_to(q)?)
        };
        let report = step("conjugate gradients", || {
            cg::solve(product, &diagonal, problem::row_sum_norm(a), &b, *limits)
        })?;
        let after = report.iterations;
        match report.outcome {
            Ending::Converged => write!(out, "CG       converged in {after} iterations")?,
            Ending::Stopped => write!(out, "CG       did not converge in {after} iterations")?,
            Ending::Stagnated => write!(out, "CG       stagnated after {after} iterations")?,
            Ending::NotPositiveDefinite => {
                write!(out, "CG       not positive definite: p·Ap ≤ 0 in iteration {after}")?;
            }
            Ending::NotFinite => write!(out, "CG       an Inf or NaN came up in iteration {after}")?,
        }
        writeln!(out, "; ‖b − A·x‖ / ‖b‖ = {:.1e}, goal {:.0e}", report.residual, cg::TOLERANCE)?;
        if report.outcome == Ending::Converged && report.residual > cg::DRIFT * cg::TOLERANCE {
            let attainable = report.attainable;
            writeln!(
                out,
                "         A is so ill-conditioned that rounding leaves up to {attainable:.1e} of b"
            )?;
        }
        writeln!(
            out,
            "         Jacobi preconditioner, {:.2} s, {:.3} ms an iteration, {:.0} % of it SpMV{}",
            report.seconds,
            1e3 * report.seconds / after.max(1) as f64,
            100.0 * report.product_seconds / report.seconds.max(f64::MIN_POSITIVE),
            match (report.outcome == Ending::Converged, must) {
                (true, _) => "",
                (false, true) => ": FAIL",
                (false, false) => "; the demo goes on",
            }
        )?;
        Ok(report.outcome == Ending::Converged || !must)
    }
}

/// Makes the table of the products; `copy` is the copy bandwidth in bytes a second if it is known, and `cache` the
/// size of the last-level cache.
fn overview<T>(outcomes: &[Outcome], rival: Option<&dyn Rival<T>>, copy: Option<f64>, cache: usize) -> Table {
    let rival = rival.map(|rival| format!(">{}", rival.name()));
    let columns = ["product", "computed", ">time", ">speed", ">of a copy", ">naive loop"].map(String::from);
    let mut out = Table::new(columns.into_iter().chain(rival).chain(["result".into()]));
    for outcome in outcomes {
        let mut cells: Vec<Cell> = vec![outcome.operation.into(), outcome.formula.as_str().into()];
        let mut beyond = false;
        if let Some(timing) = &outcome.timing {
            let Timing { seconds, flops, bytes, naive, rival } = timing;
            let rate = |amount: &f64| if *seconds > 0.0 { amount / seconds / 1e9 } else { 0.0 };
            cells.push(time(*seconds).into());
            cells.push(match outcome.operation {
                "SpMV" => three_digits(rate(bytes), "GB/s").into(),
                _ => three_digits(rate(flops), "Gflop/s").into(),
            });
            cells.push(match copy.map(|copy| 1e9 * rate(bytes) / copy) {
                None => "-".into(),
                Some(part) if part > 1.0 && *bytes <= cache as f64 => "in cache".into(),
                Some(part) => {
                    beyond = part > 1.0;
                    format!("{:.0} %", 100.0 * part).into()
                }
            });
            cells.extend(std::iter::once(naive).chain(rival).map(|other| faster(*seconds, other)));
            cells.push(verdict(outcome.checks.iter().all(|check| check.passed)));
        }
        out.row(cells);
        outcome.notes.iter().for_each(|text| out.note(text));
        if beyond {
            out.note(
                "more than 100 % of a copy: reading is faster than writing, and a part stays in the cache",
            );
        }
        let Some(Timing { naive, rival, .. }) = &outcome.timing else { continue };
        for (name, other) in [("naive loop", Some(naive)), ("the other library", rival.as_ref())] {
            if let Some(Err(why)) = other {
                out.note(format!("{name}: {why}"));
            }
        }
    }
    out
}

/// Says how much faster the library is than another implementation.
fn faster(seconds: f64, other: &Compared) -> Cell {
    let factor = match other {
        Ok(other) => other / seconds.max(f64::MIN_POSITIVE),
        Err(_) => return "none".into(),
    };
    match factor {
        ..0.95 => Cell::news(format!("{}× slower", digits(1.0 / factor)), false),
        ..1.05 => "as fast".into(),
        _ => Cell::news(format!("{}× faster", digits(factor)), true),
    }
}

/// Formats a factor with two or three digits.
fn digits(factor: f64) -> String {
    match factor {
        ..10.0 => format!("{factor:.1}"),
        _ => grouped(factor.round() as u64),
    }
}

/// Prints the checks; false if one failed.
fn conclude<T: Scalar>(out: &mut impl Write, outcomes: &[Outcome]) -> Result<bool> {
    writeln!(out)?;
    let unit = "|y − y_ref| / (entries of the row · eps · Σ|a·x|)";
    writeln!(out, "Checks against the reference backend (error: the largest {unit};")?;
    writeln!(out, "at most {} is what two orders of summation explain)", T::LIMIT)?;
    let mut all_passed = true;
    for outcome in outcomes {
        for check in &outcome.checks {
            let error = if check.error > 0.0 && check.error.is_finite() {
                format!(", error {}", ratio(check.error))
            } else {
                String::new()
            };
            note(out, &format!("{} {}: {}{error}", verdict(check.passed), outcome.name, check.what))?;
            all_passed &= check.passed;
        }
    }
    Ok(all_passed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        assert_eq!("40x24x1".parse::<BrickSize>().unwrap().0, [40, 24, 1]);
        for bad in ["", "40", "40x24", "40x24x0", "40x24x24x2", "ax1x1", "-1x1x1"] {
            assert!(bad.parse::<BrickSize>().is_err(), "{bad}");
        }
    }

    #[test]
    fn comparisons_are_in_plain_words() {
        let said = |other: Compared| {
            let cell = faster(0.5, &other).to_string();
            anstream::adapter::strip_str(&cell).to_string()
        };
        let found = [Ok(1.25), Ok(0.51), Ok(0.25), Ok(600.0), Err("no".into())].map(said);
        assert_eq!(found, ["2.5× faster", "as fast", "2.0× slower", "1,200× faster", "none"]);
    }

    /// A product that is faster than a copy counts as in a cache only if its data fit there.
    #[test]
    fn speeds_are_parts_of_a_copy_or_in_cache() {
        let outcome = |bytes| Outcome {
            operation: "SpMV",
            formula: "y = A·x".into(),
            name: "SpMV".into(),
            timing: Some(Timing { seconds: 1.0, flops: 2e9, bytes, naive: Ok(2.0), rival: None }),
            notes: vec!["why".into()],
            checks: Vec::new(),
        };
        let text = overview::<f64>(&[outcome(8e9), outcome(16e9), outcome(18e9)], None, Some(10e9), 16 << 30);
        let text = text.to_string();
        let text = anstream::adapter::strip_str(&text).to_string();
        let row = |at: usize| text.lines().nth(at).unwrap().split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(row(1), "SpMV y = A·x 1.00 s 8.00 GB/s 80 % 2.0× faster PASS");
        assert_eq!(row(3), "SpMV y = A·x 1.00 s 16.0 GB/s in cache 2.0× faster PASS");
        assert_eq!(row(5), "SpMV y = A·x 1.00 s 18.0 GB/s 180 % 2.0× faster PASS");
        assert_eq!((row(4), row(6)), ("why".into(), "why".into()));
        assert!(row(7).starts_with("more than 100 % of a copy"), "{text}");
        assert_eq!(text.matches("more than 100 %").count(), 1);
    }
}

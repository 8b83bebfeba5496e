//! `tarsia demo`: solves a problem by conjugate gradients; times the three products, compares them with the
//! machine's copy bandwidth, and checks them.
//!
//! - [`scalar`]: f64 and complex f64
//! - [`problem`]: the built-in problem, and files
//! - [`products`]: the library's products of owned matrices
//! - [`bandwidth`]: the copy bandwidth with which the products are compared
//! - [`cg`]: the solver
//! - [`runs`]: the three products, timed
//! - [`rows`], [`check`]: which rows are compared with the reference, and how
//! - [`table`]: printing of the results

pub mod bandwidth;
mod cg;
mod check;
mod problem;
pub mod products;
pub mod rows;
mod runs;
mod scalar;
pub mod table;

use std::io::Write;
use std::path::PathBuf;
use std::str::FromStr;

use client::{Plan, Session};
use matrices::SplitMix64;
use tarsia::facade::{BackendKind, Operation};

use self::cg::Outcome;
use self::check::{CheckResult, Oracle};
use self::problem::{File, System};
use self::products::{zeros, Stored};
use self::scalar::Scalar;
use self::table::{grouped, note, size, verdict};
use crate::progress::step;
use crate::Result;

/// Seed of the right-hand side and of the products' operands.
const SEED: u64 = 2026;

const EXAMPLES: &str = "\
Without MATRIX the demo assembles the stiffness matrix of an elastic brick of NXxNYxNZ hexahedral
elements, clamped at one end (3 unknowns a node, up to 81 entries a row), and solves for the
displacements under a body force. With MATRIX it reads a Matrix Market file, real or complex,
plain or gzipped; entries of a pattern get seeded values in [0.5, 1.5), because ones would hide
lost digits.

What happens, every product through the public C functions:
  1. Conjugate gradients with Jacobi preconditioning, where A is square, Hermitian and has a positive
     diagonal: to a relative residual of 1e-8; for a file at most 500 iterations or 10 s.
  2. SpMV (y = A·x), SpMM (C = A·B, B dense and row-major with N columns) and SpGEMM (C = A·A, or
     A·Aᵀ where A is not square). The operands have full mantissas and are the same in every run.
  3. Each result is compared with the reference backend: one thread, obviously right, slow.

The table:
  layout       the algorithm, and whether it reads the user's arrays in place or a sorted copy of
               them; below it, why
  analysis ms  wall time of tarsiaPlan_analyze, once per matrix
  execute ms   median of several executions; of SpGEMM the symbolic and the numeric phase together
  GFLOP/s      2 operations (complex: 8) per stored entry (SpMV), per entry and column (SpMM), per
               multiplication (SpGEMM), over execute
  GB/s         the least that the product must move, over execute: A's arrays in the widths of the
               layout and the dense operands, each once; for SpGEMM the arrays of A, the rows of B
               that A meets, and the arrays of C, each once (of A·A, A twice)
  of copy      the same as a part of this machine's copy bandwidth: two arrays much larger than the
               last-level cache, as many threads as the library's, read and written bytes, median.
               Over 100 %: the operands stay in a cache, or reading is faster than writing
  error        the largest |y − y_ref| / (entries of the row · eps · Σ|a·x|), eps = 2⁻⁵². Two sums
               of the same products in different orders differ by at most 1 in this unit (complex: 2);
               more is a FAIL

All rows are compared where a product has fewer than 10⁷ multiplications; else up to 1,000 seeded
rows, the longest among them; then SpGEMM is also checked by C·v = A·(B·v) in all rows. C's structure is
checked always. A C of more than --max-c-gib, or of more than 5·10⁹ multiplications, is not made:
the table says how large it would be, and some rows of it are made and checked instead.

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
    /// Matrix Market file (.mtx, .mtx.gz), instead of the built-in problem
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

/// Backend that computes the products.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub enum Backend {
    /// CUDA if there is a device, else the host
    Auto,
    /// The threads of the CPU
    Host,
    /// An NVIDIA GPU
    Cuda,
    /// One thread, simple and slow (the checks then compare it with itself)
    Reference,
}

impl Backend {
    /// Returns the library's enumerator of this backend.
    pub fn kind(self) -> BackendKind {
        match self {
            Backend::Auto => BackendKind::Auto,
            Backend::Host => BackendKind::Host,
            Backend::Cuda => BackendKind::Cuda,
            Backend::Reference => BackendKind::Reference,
        }
    }
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

fn positive(text: &str) -> std::result::Result<f64, String> {
    let number = text.parse::<f64>().ok().filter(|number| number.is_finite() && *number > 0.0);
    number.ok_or_else(|| "expected a positive number".into())
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
        let mut out = std::io::stdout();
        let copy = self.introduce(&mut out)?;
        let solved = self.solve(&mut out)?;
        writeln!(out)?;
        let runs = runs::Setting {
            session: &self.session,
            oracle: &self.oracle,
            a: &self.system.a,
            copy: copy.bytes_per_second,
            n: self.n,
            max_c_bytes: self.max_c_bytes,
        };
        table::head(&mut out)?;
        let mut results = Vec::new();
        results.extend(runs.spmv(&mut out, &mut self.rng)?);
        results.extend(runs.spmm(&mut out, &mut self.rng)?);
        results.extend(runs.spgemm(&mut out, &mut self.rng)?);
        let passed = conclude::<T>(&mut out, &results)?;
        writeln!(out, "{}", verdict(passed && solved))?;
        Ok(passed && solved)
    }

    /// Prints backend, matrix and machine, and measures the copy bandwidth.
    fn introduce(&self, out: &mut impl Write) -> Result<bandwidth::Bandwidth> {
        let a = &self.system.a;
        let copy = step("measuring the copy bandwidth", bandwidth::measure)?;
        let backend = self.session.backend()?.c_name().trim_start_matches("TARSIA_BACKEND_").to_lowercase();
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
        writeln!(
            out,
            "Machine  copies {:.1} GB/s (read + written; {} threads, two arrays of {}, last-level cache {})",
            copy.bytes_per_second / 1e9,
            copy.threads,
            size(copy.array_bytes as f64),
            size(bandwidth::last_level_cache() as f64)
        )?;
        Ok(copy)
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
            Outcome::Converged => write!(out, "CG       converged in {after} iterations")?,
            Outcome::Stopped => write!(out, "CG       did not converge in {after} iterations")?,
            Outcome::Stagnated => write!(out, "CG       stagnated after {after} iterations")?,
            Outcome::NotPositiveDefinite => {
                write!(out, "CG       not positive definite: p·Ap ≤ 0 in iteration {after}")?;
            }
            Outcome::NotFinite => write!(out, "CG       an Inf or NaN came up in iteration {after}")?,
        }
        writeln!(out, "; ‖b − A·x‖ / ‖b‖ = {:.1e}, goal {:.0e}", report.residual, cg::TOLERANCE)?;
        if report.outcome == Outcome::Converged && report.residual > cg::DRIFT * cg::TOLERANCE {
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
            match (report.outcome == Outcome::Converged, must) {
                (true, _) => "",
                (false, true) => ": FAIL",
                (false, false) => "; the demo goes on",
            }
        )?;
        Ok(report.outcome == Outcome::Converged || !must)
    }
}

/// Prints the checks; false if one failed.
fn conclude<T: Scalar>(out: &mut impl Write, results: &[(String, CheckResult)]) -> Result<bool> {
    writeln!(out)?;
    let unit = "|y − y_ref| / (entries of the row · eps · Σ|a·x|)";
    writeln!(out, "Checks against the reference backend (error: the largest {unit};")?;
    writeln!(out, "at most {} is what two orders of summation explain)", T::LIMIT)?;
    for (operation, result) in results {
        let error = if result.error > 0.0 && result.error.is_finite() {
            format!(", error {}", table::ratio(result.error))
        } else {
            String::new()
        };
        note(out, &format!("{} {operation}: {}{error}", verdict(result.passed), result.what))?;
    }
    Ok(results.iter().all(|(_, result)| result.passed))
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
        for bad in ["0", "-1", "nan", "inf", "x"] {
            assert!(positive(bad).is_err(), "{bad}");
        }
    }
}

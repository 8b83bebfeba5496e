//! The three products of the table: run, timed, checked.

use std::io::Write;

use client::Session;
use matrices::owned::OwnedCsr;
use matrices::SplitMix64;
use tarsia::facade::Operation;

use super::check::{CheckResult, Computed, Oracle, BUDGET};
use super::products::{self, median, median_seconds, row_major, timed, zeros, Info, SparseProduct, Stored};
use super::rows::{largest, row_lengths, row_products, RowSample};
use super::scalar::Scalar;
use super::table::{self, grouped, note, size, Timing};
use crate::progress::step;
use crate::Result;

/// A C of more multiplications than this is not made: it takes about half a minute on two cores.
const MAX_PRODUCTS: u64 = 5_000_000_000;
/// Seconds after which a SpGEMM is not repeated.
const PATIENCE: f64 = 3.0;
/// Largest number of runs of a SpGEMM.
const SPARSE_RUNS: usize = 7;

/// Results of the checks, each with its operation's name.
type CheckResults = Vec<(String, CheckResult)>;

/// Operands and settings of the products.
pub struct Setting<'a, T> {
    /// Session of the backend.
    pub session: &'a Session,
    /// The reference backend.
    pub oracle: &'a Oracle,
    /// Matrix A of all products.
    pub a: &'a OwnedCsr<T>,
    /// The machine's copy bandwidth in bytes a second.
    pub copy: f64,
    /// Number of columns of SpMM.
    pub n: usize,
    /// Largest C of SpGEMM, in bytes.
    pub max_c_bytes: f64,
}

/// Result of a SpGEMM.
struct SparseRun<T> {
    c: OwnedCsr<T>,
    info: Info,
    /// Median times, in seconds.
    analysis: f64,
    symbolic: f64,
    numeric: f64,
    execute: f64,
}

/// The reason why a SpGEMM is not run: its C is too large.
struct TooLarge {
    why: String,
}

fn random<T: Scalar>(rng: &mut SplitMix64, len: usize) -> Result<Vec<T>> {
    let mut out = zeros(len)?;
    out.fill_with(|| T::random(rng));
    Ok(out)
}

impl<T: Scalar> Setting<'_, T> {
    fn matrix(&self) -> f64 {
        self.a.nnz() as f64
    }

    /// Times and checks y = A · x.
    pub fn spmv(&self, out: &mut impl Write, rng: &mut SplitMix64) -> Result<CheckResults> {
        let a = self.a;
        let (x, mut y): (Vec<T>, Vec<T>) = (random(rng, a.cols)?, zeros(a.rows)?);
        let session = self.session;
        let (stored, device_x, mut device_y) =
            (Stored::new(session, a)?, session.upload(&x)?, session.upload(&y)?);
        let plan = step("SpMV: analysis", || products::spmv_plan(session, &stored, Operation::NonTranspose))?;
        let mut once = || {
            plan.run_spmv(session, T::ONE, &device_x, T::ZERO, &mut device_y)?;
            Ok(session.synchronize()?)
        };
        let execute = step("SpMV", || median_seconds(&mut once))?;
        device_y.download_to(&mut y)?;
        let info = Info::of(&plan)?;
        let timing = Timing {
            analysis: info.analysis_seconds,
            execute,
            flops: T::FLOPS * self.matrix(),
            bytes: info.matrix_bytes::<T>(a.rows, a.nnz()) + self.dense_bytes(1),
        };
        let result = step("SpMV: checks", || self.oracle.check_spmv(a, &x, &y))?;
        self.print(out, "SpMV", &info, &timing, vec![result])
    }

    /// Times and checks C = A · B with n columns.
    pub fn spmm(&self, out: &mut impl Write, rng: &mut SplitMix64) -> Result<CheckResults> {
        let (a, n) = (self.a, self.n);
        let b: Vec<T> = random(rng, a.cols.saturating_mul(n))?;
        let mut c: Vec<T> = zeros(a.rows.saturating_mul(n))?;
        let session = self.session;
        let (stored, device_b, mut device_c) =
            (Stored::new(session, a)?, session.upload(&b)?, session.upload(&c)?);
        let plan = step("SpMM: analysis", || products::spmm_plan(session, &stored, n))?;
        let (b_shape, c_shape) = (row_major(a.cols, n), row_major(a.rows, n));
        let mut once = || {
            plan.run_spmm(session, T::ONE, (&device_b, b_shape), T::ZERO, (&mut device_c, c_shape))?;
            Ok(session.synchronize()?)
        };
        let execute = step("SpMM", || median_seconds(&mut once))?;
        device_c.download_to(&mut c)?;
        let info = Info::of(&plan)?;
        let timing = Timing {
            analysis: info.analysis_seconds,
            execute,
            flops: T::FLOPS * self.matrix() * n as f64,
            bytes: info.matrix_bytes::<T>(a.rows, a.nnz()) + self.dense_bytes(n),
        };
        let result = step("SpMM: checks", || self.oracle.check_spmm(a, &b, &c, n))?;
        self.print(out, &format!("SpMM, N = {n}"), &info, &timing, vec![result])
    }

    /// Times and checks C = A · A or A · Aᵀ, or some rows of it.
    pub fn spgemm(&self, out: &mut impl Write, rng: &mut SplitMix64) -> Result<CheckResults> {
        let a = self.a;
        let square = a.rows == a.cols;
        let (op_b, name) = if square {
            (Operation::NonTranspose, "SpGEMM, A·A")
        } else {
            (Operation::Transpose, "SpGEMM, A·Aᵀ")
        };
        match self.multiply(a, op_b)? {
            Ok(run) => self.report_sparse(out, rng, name, a, op_b, &run),
            Err(TooLarge { why }) => {
                let rows = self.affordable(op_b);
                table::remark(out, name, "not made: C is too large")?;
                note(out, &format!("{why}; instead, A is cut to {}:", rows.describe()))?;
                let part = rows.of(a);
                let part = part.as_ref().unwrap_or(a);
                let name = format!("SpGEMM, {} rows", grouped(part.rows as u64));
                match self.multiply(part, op_b)? {
                    Ok(run) => self.report_sparse(out, rng, &name, part, op_b, &run),
                    Err(TooLarge { why }) => {
                        note(out, &format!("not made either: {why}"))?;
                        let what = "not run, so not checked".into();
                        Ok(vec![(name, CheckResult { what, error: f64::INFINITY, passed: false })])
                    }
                }
            }
        }
    }

    /// Selects rows of A whose product is small enough to be made and to be compared.
    fn affordable(&self, op_b: Operation) -> RowSample {
        let a = self.a;
        let costs = row_products(a, &row_lengths(a, op_b));
        let longest = largest(&row_lengths(a, Operation::NonTranspose));
        // A multiplication adds at most one entry.
        let entries = self.max_c_bytes / entry_bytes::<T>();
        RowSample::sample(&costs, longest.as_slice(), BUDGET.min(entries as u64))
    }

    /// Runs A · op(B) with B the whole matrix, unless C is too large.
    fn multiply(
        &self,
        a: &OwnedCsr<T>,
        op_b: Operation,
    ) -> Result<std::result::Result<SparseRun<T>, TooLarge>> {
        let session = self.session;
        let (left, right) = (Stored::new(session, a)?, Stored::new(session, self.a)?);
        let create = || SparseProduct::new(session, &left, &right, op_b);
        let mut product = step("SpGEMM: analysis", create)?;
        let info = product.info()?;
        let (rows, cols) = product.shape();
        let c_bytes = |entries: f64| entries * entry_bytes::<T>() + (rows + 1) as f64 * 8.0;
        let limit = format!("--max-c-gib is {}", self.max_c_bytes / 1024f64.powi(3));
        if info.products > MAX_PRODUCTS {
            let most = c_bytes((info.products as f64).min(rows as f64 * cols as f64));
            let (products, limit) = (grouped(info.products), grouped(MAX_PRODUCTS));
            let why = format!(
                "it takes {products} multiplications (the demo does {limit} at the most), and C has up to {}",
                size(most)
            );
            return Ok(Err(TooLarge { why }));
        }
        let (mut symbolic, mut nnz) = step("SpGEMM: symbolic phase", || timed(|| product.symbolic(session)))?;
        let bytes = c_bytes(nnz as f64);
        if bytes > self.max_c_bytes {
            let why = format!(
                "{} multiplications give {} entries of C, {}; {limit}",
                grouped(info.products),
                grouped(nnz as u64),
                size(bytes)
            );
            return Ok(Err(TooLarge { why }));
        }
        let mut c = product.room(session, nnz)?;
        let [mut analyses, mut symbolics, mut numerics, mut sums] = [const { Vec::new() }; 4];
        step("SpGEMM", || -> Result<()> {
            let mut total = 0.0;
            loop {
                let (numeric, ()) = timed(|| product.numeric(session, &mut c))?;
                analyses.push(product.info()?.analysis_seconds);
                symbolics.push(symbolic);
                numerics.push(numeric);
                sums.push(symbolic + numeric);
                total += symbolic + numeric;
                if total > PATIENCE || sums.len() == SPARSE_RUNS {
                    return Ok(());
                }
                // A new plan is needed: its symbolic phase does the work again.
                product = create()?;
                (symbolic, nnz) = timed(|| product.symbolic(session))?;
                if nnz != c.nnz() {
                    return Err(format!("C had {} entries and now has {nnz}", c.nnz()).into());
                }
            }
        })?;
        let [analysis, symbolic, numeric, execute] = [analyses, symbolics, numerics, sums].map(median);
        let c = c.download()?;
        Ok(Ok(SparseRun { c, info, analysis, symbolic, numeric, execute }))
    }

    fn report_sparse(
        &self,
        out: &mut impl Write,
        rng: &mut SplitMix64,
        name: &str,
        a: &OwnedCsr<T>,
        op_b: Operation,
        run: &SparseRun<T>,
    ) -> Result<CheckResults> {
        let SparseRun { c, info, .. } = run;
        let (b_rows, b_entries) = met(a, &row_lengths(self.a, op_b));
        let factors = info.matrix_bytes::<T>(a.rows, a.nnz()) + info.matrix_bytes::<T>(b_rows, b_entries);
        let timing = Timing {
            analysis: run.analysis,
            execute: run.execute,
            flops: T::FLOPS * info.products as f64,
            bytes: factors + c.nnz() as f64 * entry_bytes::<T>() + (c.rows + 1) as f64 * 8.0,
        };
        let v: Vec<T> = random(rng, c.cols)?;
        let computed = Computed { a, b: self.a, op_b, c };
        let results = step("SpGEMM: checks", || self.oracle.check_spgemm(self.session, &computed, &v))?;
        let results = self.print(out, name, info, &timing, results)?;
        let compression = info.products as f64 / (c.nnz() as f64).max(1.0);
        note(
            out,
            &format!(
                "{} multiplications, {} entries of C ({compression:.1} each); symbolic {:.1} ms + numeric {:.1} ms",
                grouped(info.products),
                grouped(c.nnz() as u64),
                1e3 * run.symbolic,
                1e3 * run.numeric
            ),
        )?;
        Ok(results)
    }

    /// Returns the bytes of the dense operands.
    fn dense_bytes(&self, n: usize) -> f64 {
        (self.a.rows + self.a.cols) as f64 * n as f64 * size_of::<T>() as f64
    }

    fn print(
        &self,
        out: &mut impl Write,
        name: &str,
        info: &Info,
        timing: &Timing,
        results: Vec<CheckResult>,
    ) -> Result<CheckResults> {
        let error = results.iter().map(|result| result.error).fold(0.0, f64::max);
        let passed = results.iter().all(|result| result.passed);
        table::line(out, name, &info.layout(), timing, self.copy, (error, passed))?;
        note(out, &info.reason)?;
        Ok(results.into_iter().map(|result| (name.to_string(), result)).collect())
    }
}

/// Returns the number of rows of B that A's columns refer to, and the number of their entries.
fn met<V>(a: &OwnedCsr<V>, b_lengths: &[u64]) -> (usize, usize) {
    let mut is_met = vec![false; a.cols];
    for &col in &a.indices {
        is_met[col as usize] = true;
    }
    let lengths = b_lengths.iter().zip(is_met).filter(|(_, is_met)| *is_met);
    lengths.fold((0, 0), |(rows, entries), (&len, _)| (rows + 1, entries + len as usize))
}

/// Returns the bytes of an entry of C: a 32-bit column and a value.
fn entry_bytes<T>() -> f64 {
    (4 + size_of::<T>()) as f64
}

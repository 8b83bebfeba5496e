//! The three products of the table: run, timed, checked.

use client::Session;
use matrices::owned::OwnedCsr;
use matrices::SplitMix64;
use tarsia::facade::Operation;

use super::check::{CheckResult, Factors, Oracle, BUDGET};
use super::naive;
use super::products::{
    self, median, median_of, median_seconds, row_major, timed, zeros, Info, SparseProduct, Stored,
};
use super::rival::{Other, Rival};
use super::rows::{largest, row_lengths, row_products, RowSample};
use super::scalar::Scalar;
use crate::progress::step;
use crate::table::{grouped, size, time};
use crate::Result;

/// A C of more multiplications than this is not made: it takes about half a minute on two cores.
const MAX_PRODUCTS: u64 = 5_000_000_000;
/// Seconds after which a SpGEMM is not repeated.
const PATIENCE: f64 = 1.0;
/// Largest number of runs of a SpGEMM.
const SPARSE_RUNS: usize = 7;
/// Most multiplications for which the naive loop is run: it takes about ten seconds for so many of them.
const MOST_NAIVE: u64 = 1_000_000_000;
/// Seconds for runs of the naive loop, of which there is at least one.
const NAIVE_SECONDS: f64 = 0.25;

/// A product of the table.
pub struct Outcome {
    /// Operation: SpMV, SpMM or SpGEMM.
    pub operation: &'static str,
    /// Formula of what was computed.
    pub formula: String,
    /// Name in the list of checks.
    pub name: String,
    /// Times; `None` if it was not computed.
    pub timing: Option<Timing>,
    /// Text for the reader, a paragraph each.
    pub notes: Vec<String>,
    /// Results of the checks.
    pub checks: Vec<CheckResult>,
}

/// Seconds of another implementation, or the reason why it has none.
pub type Compared = std::result::Result<f64, String>;

/// A timed product.
#[derive(Clone, Debug)]
pub struct Timing {
    /// Median seconds: of SpMV and SpMM an execution, of SpGEMM all phases.
    pub seconds: f64,
    /// Number of operations.
    pub flops: f64,
    /// Least number of bytes that must move.
    pub bytes: f64,
    /// Time of the naive loop for this product.
    pub naive: Compared,
    /// Time of the other library for this product, if there is one.
    pub rival: Option<Compared>,
}

/// Operands and settings of the products.
pub struct Setting<'a, T> {
    /// Session of the backend.
    pub session: &'a Session,
    /// The reference backend.
    pub oracle: &'a Oracle,
    /// Matrix A of all products.
    pub a: &'a OwnedCsr<T>,
    /// The other library, if the machine has it.
    pub rival: Option<&'a dyn Rival<T>>,
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
    total: f64,
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
    /// Times and checks y = A · x.
    pub fn spmv(&self, rng: &mut SplitMix64) -> Result<Outcome> {
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
        let seconds = step("SpMV", || median_seconds(&mut once))?;
        device_y.download_to(&mut y)?;
        let parts = ("SpMV", "y = A·x".to_string(), "SpMV".to_string());
        self.dense(parts, &Info::of(&plan)?, seconds, (&x, 1), &y)
    }

    /// Times and checks C = A · B with n columns.
    pub fn spmm(&self, rng: &mut SplitMix64) -> Result<Outcome> {
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
        let seconds = step("SpMM", || median_seconds(&mut once))?;
        device_c.download_to(&mut c)?;
        let parts = ("SpMM", format!("C = A·B, B of {n} columns"), format!("SpMM, N = {n}"));
        self.dense(parts, &Info::of(&plan)?, seconds, (&b, n), &c)
    }

    /// Checks the product C with a dense operand, and compares it with other implementations of it.
    fn dense(
        &self,
        (operation, formula, name): (&'static str, String, String),
        info: &Info,
        seconds: f64,
        (b, n): (&[T], usize),
        c: &[T],
    ) -> Result<Outcome> {
        let a = self.a;
        let expected = step(&format!("{operation}: checks"), || self.oracle.dense(a, b, n))?;
        let naive = match a.nnz() as u64 * n as u64 {
            MOST_NAIVE.. => Err("it takes too long".into()),
            _ => {
                let mut c: Vec<T> = zeros(a.rows * n)?;
                let loops = || match n {
                    1 => naive::spmv(a, b, &mut c),
                    _ => naive::spmm(a, b, &mut c, n),
                };
                let seconds = step(&format!("{operation}: the naive loop"), || repeated(loops))?;
                believed(seconds, expected.check(&c).passed)
            }
        };
        let rival = self.against(operation, |rival| {
            let Other { seconds, result } = rival.dense(a, b, n)?;
            Ok((seconds, expected.check(&result).passed))
        });
        let dense_bytes = (a.rows + a.cols) as f64 * n as f64 * size_of::<T>() as f64;
        let timing = Timing {
            seconds,
            flops: T::FLOPS * a.nnz() as f64 * n as f64,
            bytes: info.matrix_bytes::<T>(a.rows, a.nnz()) + dense_bytes,
            naive,
            rival,
        };
        let notes = vec![format!("{}; prepared once in {}", chosen(info), time(info.analysis_seconds))];
        Ok(Outcome { operation, formula, name, timing: Some(timing), notes, checks: vec![expected.check(c)] })
    }

    /// Runs the other library, if there is one: `run` returns its seconds, and whether its result is right.
    fn against(
        &self,
        operation: &str,
        run: impl FnOnce(&dyn Rival<T>) -> Result<(f64, bool)>,
    ) -> Option<Compared> {
        let rival = self.rival?;
        let found = step(&format!("{operation}: {}", rival.name()), || run(rival));
        let found = found.map_err(|error| error.to_string());
        Some(found.and_then(|(seconds, is_right)| believed(seconds, is_right)))
    }

    /// Times and checks C = A · A or A · Aᵀ, or some rows of it.
    pub fn spgemm(&self, rng: &mut SplitMix64) -> Result<Vec<Outcome>> {
        let a = self.a;
        let (op_b, product) = match a.rows == a.cols {
            true => (Operation::NonTranspose, "A·A"),
            false => (Operation::Transpose, "A·Aᵀ"),
        };
        let name = format!("SpGEMM, {product}");
        let outcome = |formula, name, notes, checks| Outcome {
            operation: "SpGEMM",
            formula,
            name,
            timing: None,
            notes,
            checks,
        };
        let why = match self.multiply(a, op_b)? {
            Ok(run) => return Ok(vec![self.sparse(rng, (format!("C = {product}"), name), a, op_b, run)?]),
            Err(TooLarge { why }) => why,
        };
        let rows = self.affordable(op_b);
        let notes = vec![
            "not made: C is too large".into(),
            format!("{why}; instead, A is cut to {}:", rows.describe()),
        ];
        let whole = outcome(format!("C = {product}"), name, notes, Vec::new());
        let part = rows.of(a);
        let part = part.as_ref().unwrap_or(a);
        let count = grouped(part.rows as u64);
        let (formula, name) = (format!("{count} rows of {product}"), format!("SpGEMM, {count} rows"));
        let cut = match self.multiply(part, op_b)? {
            Ok(run) => self.sparse(rng, (formula, name), part, op_b, run)?,
            Err(TooLarge { why }) => {
                let what = "not run, so not checked".into();
                let check = CheckResult { what, error: f64::INFINITY, passed: false };
                outcome(formula, name, vec![format!("not made either: {why}")], vec![check])
            }
        };
        Ok(vec![whole, cut])
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
                let analysis = product.info()?.analysis_seconds;
                analyses.push(analysis);
                symbolics.push(symbolic);
                numerics.push(numeric);
                sums.push(analysis + symbolic + numeric);
                total += analysis + symbolic + numeric;
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
        let [analysis, symbolic, numeric, total] = [analyses, symbolics, numerics, sums].map(median);
        let c = c.download()?;
        Ok(Ok(SparseRun { c, info, analysis, symbolic, numeric, total }))
    }

    /// Checks a product of sparse matrices, and compares it with other implementations of it.
    fn sparse(
        &self,
        rng: &mut SplitMix64,
        (formula, name): (String, String),
        a: &OwnedCsr<T>,
        op_b: Operation,
        run: SparseRun<T>,
    ) -> Result<Outcome> {
        let SparseRun { c, info, analysis, symbolic, numeric, total } = run;
        let (b_rows, b_entries) = met(a, &row_lengths(self.a, op_b));
        let bytes = info.matrix_bytes::<T>(a.rows, a.nnz()) + info.matrix_bytes::<T>(b_rows, b_entries);
        let bytes = bytes + c.nnz() as f64 * entry_bytes::<T>() + (c.rows + 1) as f64 * 8.0;
        let v: Vec<T> = random(rng, c.cols)?;
        let factors = Factors { a, b: self.a, op_b };
        let expected = step("SpGEMM: checks", || self.oracle.sparse(factors, &v))?;
        let check = |c: &OwnedCsr<T>| step("SpGEMM: checks", || expected.check(self.session, c));
        let right = |c: &OwnedCsr<T>| check(c).map(|results| results.iter().all(|result| result.passed));
        let checks = check(&c)?;
        let compression = info.products as f64 / (c.nnz() as f64).max(1.0);
        let notes = vec![
            chosen(&info),
            format!(
                "{} multiplications, {} entries of C ({compression:.1} each); analysis {} + symbolic phase {} + \
                 numeric phase {}",
                grouped(info.products),
                grouped(c.nnz() as u64),
                time(analysis),
                time(symbolic),
                time(numeric)
            ),
        ];
        let entries = c.nnz();
        drop(c);
        let transposed = if op_b.transposes() { Some(self.a.transpose()?) } else { None };
        let b = transposed.as_ref().unwrap_or(self.a);
        let naive = match info.products {
            MOST_NAIVE.. => Err("it takes too long".into()),
            _ => {
                let loops = || timed(|| naive::spgemm(a, b, entries));
                let (seconds, c) = step("SpGEMM: the naive loop", loops)?;
                believed(seconds, right(&c)?)
            }
        };
        let rival = self.against("SpGEMM", |rival| {
            let Other { seconds, result } = rival.sparse(a, b)?;
            Ok((seconds, right(&result)?))
        });
        let flops = T::FLOPS * info.products as f64;
        let timing = Some(Timing { seconds: total, flops, bytes, naive, rival });
        Ok(Outcome { operation: "SpGEMM", formula, name, timing, notes, checks })
    }
}

/// Says which algorithm was chosen, and why.
fn chosen(info: &Info) -> String {
    format!("{}: {}", info.layout(), info.reason)
}

/// Returns the median seconds of a naive loop.
fn repeated(mut work: impl FnMut()) -> Result<f64> {
    median_of(1, NAIVE_SECONDS, || {
        work();
        Ok(())
    })
}

/// Returns the seconds of another implementation, unless its result is wrong.
fn believed(seconds: f64, is_right: bool) -> Compared {
    match is_right {
        true => Ok(seconds),
        false => Err("its result is wrong".into()),
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

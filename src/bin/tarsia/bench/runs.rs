//! One case: operands on the backend, plan, analysis, the clock, the check.

use std::time::Instant;

use tarsia::capi::client::{Array, Plan, Session, Shape, Sparse};
use tarsia::matrix::owned::OwnedCsr;
use tarsia::types::{Accumulator, Index, IndexBase, Operation, Order, SpgemmAlg, SpmmAlg, SpmvAlg};

use super::check::{self, Accuracy};
use super::number::{blank, room, value, values, Number, Precision};
use super::report::{floor_us, Case, Row};
use super::timer::{self, Timer, Times};
use crate::demo::products::{median, Info};
use crate::demo::rows::{row_lengths, row_products};
use crate::progress::step;
use crate::Result;

/// Seeds of the matrix' values and of the dense operand.
const MATRIX_SEED: u64 = 1;
const DENSE_SEED: u64 = 2;
/// SpGEMM is not repeated after so many seconds.
const SPARSE_PATIENCE: f64 = 4.0;
const AS_STORED: Operation = Operation::NonTranspose;

/// What all cases have in common.
pub struct Setting<'s> {
    /// Who executes.
    pub session: &'s Session,
    /// Its clock.
    pub timer: &'s dyn Timer,
    /// Most executions behind a median.
    pub repeat: usize,
    /// Whether results are compared with the host's.
    pub check: bool,
    /// Largest C of a SpGEMM in bytes.
    pub max_c_bytes: f64,
}

/// A matrix in one storage type, on the host and on the backend.
pub struct Operands<'s, T: Number> {
    name: String,
    precision: Precision,
    host: OwnedCsr<T>,
    offsets: Array<'s, i32>,
    indices: Array<'s, i32>,
    values: Array<'s, T>,
}

impl<'s, T: Number> Operands<'s, T> {
    /// The pattern with seeded values.
    pub fn new(
        session: &'s Session,
        name: &str,
        pattern: &OwnedCsr<()>,
        precision: Precision,
    ) -> Result<Self> {
        let mut at = 0;
        let host = pattern.map_values(|()| {
            at += 1;
            T::narrow(value(MATRIX_SEED, at - 1))
        })?;
        let mut offsets = room(host.offsets.len())?;
        for &offset in &host.offsets {
            offsets.push(i32::try_from(offset).map_err(|_| "more than 2^31 - 1 entries")?);
        }
        let (offsets, indices) = (session.upload(&offsets)?, session.upload(&host.indices)?);
        let values = session.upload(&host.values)?;
        Ok(Operands { name: name.into(), precision, host, offsets, indices, values })
    }

    fn describe(&self) -> Result<Sparse<'_>> {
        let shape = (self.host.rows as i64, self.host.cols as i64);
        Ok(Sparse::csr(shape, &self.offsets, &self.indices, &self.values, IndexBase::Zero)?)
    }

    /// The case of an operation with this matrix.
    pub fn case(&self, op: &str, n: usize) -> Case {
        Case {
            op: op.into(),
            precision: self.precision.name().into(),
            n,
            matrix: self.name.clone(),
            rows: self.host.rows,
            nnz: self.host.nnz(),
        }
    }

    /// Bytes of the matrix with 32-bit offsets and columns.
    fn bytes(&self) -> f64 {
        csr_bytes::<T>(self.host.rows, self.host.nnz())
    }

    /// The least time of a product with a dense matrix of so many columns.
    pub fn dense_floor_us(&self, n: usize) -> f64 {
        let dense = (self.host.rows + self.host.cols) as f64 * n as f64 * size_of::<T>() as f64;
        floor_us(self.bytes() + dense)
    }

    /// The matrix by which it is multiplied in SpGEMM: itself, or its transpose.
    fn partner(&self) -> Operation {
        if self.host.rows == self.host.cols {
            AS_STORED
        } else {
            Operation::Transpose
        }
    }
}

fn csr_bytes<T>(rows: usize, nnz: usize) -> f64 {
    nnz as f64 * (size_of::<T>() + 4) as f64 + 4.0 * rows as f64
}

fn row_major(rows: usize, n: usize) -> Shape {
    Shape { rows: rows as i64, cols: n as i64, ld: n as i64, order: Order::Row }
}

/// An analysis: milliseconds, and what it chose.
struct Analysis {
    ms: f64,
    info: Info,
    bytes: usize,
}

fn analyze(session: &Session, plan: &Plan<'_>) -> Result<Analysis> {
    let start = Instant::now();
    step("analysis", || plan.analyze(session))?;
    let ms = 1e3 * start.elapsed().as_secs_f64();
    plan.prepare(session)?;
    Ok(Analysis { ms, info: Info::of(plan)?, bytes: plan.info()?.planBytes })
}

/// `auto:csr`: what was asked for, then what was chosen if that was open.
fn label(asked: &str, info: &Info) -> String {
    if asked == super::AUTO {
        format!("{asked}:{}", info.algorithm)
    } else {
        asked.into()
    }
}

impl Setting<'_> {
    fn accuracy(&self, judge: impl FnOnce() -> Accuracy) -> Option<Accuracy> {
        self.check.then(|| step("check", judge))
    }

    /// A row of a product with a dense operand.
    fn dense_row<T: Number>(
        &self,
        a: &Operands<'_, T>,
        case: Case,
        (alg, analysis_ms): (String, f64),
        times: Times,
        accuracy: Option<Accuracy>,
        more: &str,
    ) -> Row {
        let gflops = 2e-3 * a.host.nnz() as f64 * case.n as f64 / times.cold_us;
        let floor_us = a.dense_floor_us(case.n);
        let note = format!("{}warm_us={:.2};runs={}{more}", wrong(accuracy), times.warm_us, times.runs);
        let max_rel_err = accuracy.map_or(-1.0, |accuracy| accuracy.relative);
        Row { case, alg, median_us: times.cold_us, gflops, floor_us, analysis_ms, max_rel_err, note }
    }

    /// y = A·x with a plan.
    pub fn spmv<T: Number>(&self, a: &Operands<'_, T>, (asked, alg): (&str, SpmvAlg)) -> Result<Row> {
        let session = self.session;
        let (compute, types) = (a.precision.compute(), (T::TYPE, T::TYPE));
        let plan = Plan::spmv(session, AS_STORED, &a.describe()?, types, compute, alg)?;
        let analysis = analyze(session, &plan)?;
        let x = values::<T>(DENSE_SEED, a.host.cols)?;
        let (device_x, mut y) = (session.upload(&x)?, session.upload(&blank::<T>(a.host.rows)?)?);
        let (one, zero) = (T::Sum::ONE, T::Sum::ZERO);
        let times = timer::measure(self.timer, self.repeat, &mut || {
            Ok(plan.run_spmv(session, one, &device_x, zero, &mut y)?)
        })?;
        let y = y.download()?;
        let accuracy = self.accuracy(|| check::dense(&a.host, &x, &y, 1, a.precision));
        let alg = (label(asked, &analysis.info), analysis.ms);
        Ok(self.dense_row(a, a.case("spmv", 1), alg, times, accuracy, &describe(&analysis)))
    }

    /// y = A·x in one call.
    pub fn spmv_once<T: Number>(&self, a: &Operands<'_, T>) -> Result<Row> {
        let session = self.session;
        let (compute, matrix) = (a.precision.compute(), a.describe()?);
        let x = values::<T>(DENSE_SEED, a.host.cols)?;
        let (device_x, mut y) = (session.upload(&x)?, session.upload(&blank::<T>(a.host.rows)?)?);
        let (one, zero) = (T::Sum::ONE, T::Sum::ZERO);
        let times = timer::measure(self.timer, self.repeat, &mut || {
            Ok(session.spmv_once(AS_STORED, one, &matrix, &device_x, zero, &mut y, compute)?)
        })?;
        let y = y.download()?;
        let accuracy = self.accuracy(|| check::dense(&a.host, &x, &y, 1, a.precision));
        Ok(self.dense_row(a, a.case("spmv", 1), (super::ONCE.into(), 0.0), times, accuracy, ""))
    }

    /// C = A·B, B and C row-major with `n` columns.
    pub fn spmm<T: Number>(
        &self,
        a: &Operands<'_, T>,
        n: usize,
        (asked, alg): (&str, SpmmAlg),
    ) -> Result<Row> {
        let session = self.session;
        let (compute, types) = (a.precision.compute(), (T::TYPE, T::TYPE));
        let (ops, orders) = ((AS_STORED, AS_STORED), (Order::Row, Order::Row));
        let plan = Plan::spmm(session, ops, &a.describe()?, orders, n as i64, types, compute, alg)?;
        let analysis = analyze(session, &plan)?;
        let (b_shape, c_shape) = (row_major(a.host.cols, n), row_major(a.host.rows, n));
        let b = step("B", || values::<T>(DENSE_SEED, b_shape.extent()))?;
        let device_b = session.upload(&b)?;
        let mut c = blank::<T>(c_shape.extent())?;
        let mut device_c = session.upload(&c)?;
        let (one, zero) = (T::Sum::ONE, T::Sum::ZERO);
        let times = timer::measure(self.timer, self.repeat, &mut || {
            let (b, c) = ((&device_b, b_shape), (&mut device_c, c_shape));
            Ok(plan.run_spmm(session, one, b, zero, c)?)
        })?;
        device_c.download_to(&mut c)?;
        let accuracy = self.accuracy(|| check::dense(&a.host, &b, &c, n, a.precision));
        let alg = (label(asked, &analysis.info), analysis.ms);
        Ok(self.dense_row(a, a.case("spmm", n), alg, times, accuracy, &describe(&analysis)))
    }

    /// C = A·A, or A·Aᵀ of a rectangular A: all phases each time.
    pub fn spgemm<T: Number>(&self, a: &Operands<'_, T>, alg: (&str, SpgemmAlg)) -> Result<Row> {
        let run = self.sparse_phases::<T>(a, alg.1)?;
        // Offsets as narrow as C allows, which is how the baselines have them.
        if i32::try_from(run.nnz).is_ok() {
            self.sparse_row::<T, i32>(a, alg, run)
        } else {
            self.sparse_row::<T, i64>(a, alg, run)
        }
    }

    fn plan<'a, T: Number>(&self, a: &'a Operands<'_, T>, alg: SpgemmAlg) -> Result<Plan<'a>> {
        let (matrix, ops) = (a.describe()?, (AS_STORED, a.partner()));
        Ok(Plan::spgemm(self.session, ops, &matrix, &matrix, a.precision.compute(), alg)?)
    }

    /// Plan, analysis and the symbolic phase.
    fn sparse_phases<'a, T: Number>(&self, a: &'a Operands<'_, T>, alg: SpgemmAlg) -> Result<Phases<'a>> {
        let start = Instant::now();
        let plan = self.plan(a, alg)?;
        plan.analyze(self.session)?;
        let analysis = start.elapsed().as_secs_f64();
        let nnz = usize::try_from(plan.symbolic(self.session)?)?;
        Ok(Phases { plan, analysis, until_symbolic: start.elapsed().as_secs_f64(), nnz })
    }

    fn sparse_row<T: Number, I: Index>(
        &self,
        a: &Operands<'_, T>,
        (asked, alg): (&str, SpgemmAlg),
        first: Phases<'_>,
    ) -> Result<Row> {
        let (session, nnz, rows) = (self.session, first.nnz, a.host.rows);
        let c_bytes = csr_bytes::<T>(rows, nnz);
        if c_bytes > self.max_c_bytes {
            let gib = 1024f64.powi(3);
            return Err(super::Declined(format!(
                "C takes {:.1} GiB ({nnz} entries), --max-c-gib is {}",
                c_bytes / gib,
                self.max_c_bytes / gib
            ))
            .into());
        }
        let cols = if a.partner().transposes() { rows } else { a.host.cols };
        let mut host_offsets = vec![I::from_i64(0); rows + 1];
        let (mut host_indices, mut host_values) = (vec![0i32; nnz], blank::<T>(nnz)?);
        let mut offsets = session.upload(&host_offsets)?;
        let mut indices = session.upload(&host_indices)?;
        let mut values = session.upload(&host_values)?;

        let (info, peak) = (Info::of(&first.plan)?, first.plan.info()?.peakBytes);
        let [mut analyses, mut symbolics, mut numerics, mut totals] = [const { Vec::new() }; 4];
        let (mut spent, mut next) = (0.0, Some(first));
        // The first round warms up, unless it is the only one that there is time for.
        for round in 0..=self.repeat {
            let phases = match next.take() {
                Some(phases) => phases,
                None => self.sparse_phases(a, alg)?,
            };
            if phases.nnz != nnz {
                return Err(format!("C had {nnz} entries and now has {}", phases.nnz).into());
            }
            let start = Instant::now();
            let (shape, one) = ((rows as i64, cols as i64), T::Sum::ONE);
            let arrays = (&mut offsets, &mut indices, &mut values);
            let (base, plan) = (IndexBase::Zero, &phases.plan);
            plan.numeric_csr(session, one, shape, arrays.0, arrays.1, arrays.2, base)?;
            session.synchronize()?;
            let numeric = start.elapsed().as_secs_f64();
            let total = phases.until_symbolic + numeric;
            spent += total;
            let is_last = spent > SPARSE_PATIENCE;
            if round > 0 || is_last {
                analyses.push(phases.analysis);
                symbolics.push(phases.until_symbolic - phases.analysis);
                numerics.push(numeric);
                totals.push(total);
            }
            if is_last {
                break;
            }
        }
        let runs = totals.len();
        let [analysis, symbolic, numeric, total] = [analyses, symbolics, numerics, totals].map(median);

        offsets.download_to(&mut host_offsets)?;
        indices.download_to(&mut host_indices)?;
        values.download_to(&mut host_values)?;
        let transposed = if a.partner().transposes() { Some(a.host.transpose()?) } else { None };
        let b = transposed.as_ref().unwrap_or(&a.host);
        let c = check::Sparse { offsets: &host_offsets, indices: &host_indices, values: &host_values };
        let accuracy = self.accuracy(|| check::sparse(&a.host, b, &c, a.precision));

        let products: u64 = row_products(&a.host, &row_lengths(b, AS_STORED)).iter().sum();
        let allocation = session.time_allocation(c_bytes as usize)?.as_secs_f64();
        let note = format!(
            "{}products={products};nnzC={nnz};peak_MB={};symbolic_us={:.2};numeric_us={:.2};\
             with_alloc_us={:.2};reps={runs}",
            wrong(accuracy),
            peak / 1_000_000,
            1e6 * symbolic,
            1e6 * numeric,
            1e6 * (total + allocation)
        );
        Ok(Row {
            case: a.case("spgemm", 0),
            alg: label(asked, &info),
            median_us: 1e6 * total,
            gflops: 2e-9 * products as f64 / total,
            floor_us: floor_us(2.0 * a.bytes() + c_bytes),
            analysis_ms: 1e3 * analysis,
            max_rel_err: accuracy.map_or(-1.0, |accuracy| accuracy.relative),
            note,
        })
    }
}

/// A plan of SpGEMM after its symbolic phase, with the seconds that it took.
struct Phases<'a> {
    plan: Plan<'a>,
    /// Plan and analysis.
    analysis: f64,
    /// Those and the symbolic phase.
    until_symbolic: f64,
    /// Entries of C.
    nnz: usize,
}

fn wrong(accuracy: Option<Accuracy>) -> String {
    match accuracy {
        Some(accuracy) if !accuracy.passed() => {
            format!("WRONG by {:.1e} times what is allowed;", accuracy.of_allowed)
        }
        _ => String::new(),
    }
}

fn describe(analysis: &Analysis) -> String {
    let Analysis { info, bytes, .. } = analysis;
    format!(";fill={:.3};plan_bytes={bytes};in_place={}", info.fill, u8::from(info.in_place))
}

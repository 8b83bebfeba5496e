//! Tarsia's rows of the result table for one case: operands on the backend, plan, analysis; SpGEMM with its
//! phases.

use std::time::Instant;

use client::{Array, DenseLayout, Plan, Session, Sparse};
use matrices::owned::OwnedCsr;
use tarsia::facade::{
    Accumulator, Effort, Index, IndexBase, IndexType, Operation, Order, Reorder, SpgemmAlg, SpmmAlg, SpmvAlg,
};

use super::args::sorted_output;
use super::check::{self, Accuracy};
use super::number::{blank, room, Number, Precision, Values};
use super::report::{floor_us, Case, Row, B_TRANSPOSED, COLUMN_MAJOR, OURS};
use super::timer::Timer;
use super::vendor::{Dense, Prepared};
use crate::demo::products::{median, Info};
use crate::demo::rows::{row_lengths, row_products};
use crate::features::Features;
use crate::progress::step;
use crate::Result;

/// Seed of the matrix's values.
const MATRIX_SEED: u64 = 1;
/// Seed of the values of SpGEMM's second factor, if it is another matrix; seed 2 is used for dense operands.
const SECOND_SEED: u64 = 3;
/// SpGEMM is not repeated after this many seconds.
pub const SPARSE_PATIENCE: f64 = 4.0;
/// Largest C in bytes that is read back again to compare its bits.
const REREAD_BYTES: f64 = 8e9;
const AS_STORED: Operation = Operation::NonTranspose;
/// Form of a matrix that is not transposed and has 32-bit indices.
const PLAIN: Stored = (AS_STORED, IndexType::I32);
/// Ending of matrices' names in tables where offsets and columns have 64 bits. It is a part of the matrix's
/// name, not of the algorithm's, so that every reader of a table keeps them apart from those with 32 bits.
const WIDE_MATRIX: &str = ":i64";

/// Settings that all cases share.
pub struct Setting<'s> {
    /// Session of the backend that executes.
    pub session: &'s Session,
    /// Clock of the backend.
    pub timer: &'s dyn Timer,
    /// Largest number of executions behind a median.
    pub repeat: usize,
    /// True if results are compared with sums on the host.
    pub check: bool,
    /// True if features are computed and timed.
    pub features: bool,
    /// Number of executes for which plans of SpMV and SpMM are made; 0: not given.
    pub expected_executes: i64,
    /// Largest C of a SpGEMM in bytes.
    pub max_c_bytes: f64,
}

/// Storage of the dense operands of SpMM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Order of B and C.
    pub order: Order,
    /// Operation that makes the k × n factor from the matrix stored as B.
    pub op_b: Operation,
}

impl Layout {
    /// Row-major and not transposed; also the layout of vectors.
    pub const PLAIN: Layout = Layout { order: Order::Row, op_b: AS_STORED };

    /// Returns the ending of algorithms' names.
    pub fn suffix(self) -> String {
        let order = if self.order == Order::Col { COLUMN_MAJOR } else { "" };
        let op_b = if self.op_b.transposes() { B_TRANSPOSED } else { "" };
        format!("{order}{op_b}")
    }

    /// Returns the shape of the matrix that is stored as B, for a k × n factor.
    pub fn b_shape(self, k: usize, n: usize) -> DenseLayout {
        let (rows, cols) = if self.op_b.transposes() { (n, k) } else { (k, n) };
        dense_shape(rows, cols, self.order)
    }

    /// Returns whether B's elements in memory are those of the factor row by row; else they are column by
    /// column.
    pub fn is_by_rows(self) -> bool {
        (self.order == Order::Row) != self.op_b.transposes()
    }
}

/// Form in which a matrix is stored on the backend: the operation that gives the matrix, and the type of
/// indices.
pub type Stored = (Operation, IndexType);

/// Row offsets and columns on the backend.
pub enum Indices<'s> {
    /// 32-bit offsets and columns.
    Narrow(Array<'s, i32>, Array<'s, i32>),
    /// 64-bit offsets and columns.
    Wide(Array<'s, i64>, Array<'s, i64>),
}

impl Indices<'_> {
    fn upload<'s, T: Number>(
        session: &'s Session,
        stored: &OwnedCsr<T>,
        index: IndexType,
    ) -> Result<Indices<'s>> {
        if index == IndexType::I64 {
            let mut columns = room(stored.indices.len())?;
            columns.extend(stored.indices.iter().copied().map(i64::from));
            return Ok(Indices::Wide(session.upload(&stored.offsets)?, session.upload(&columns)?));
        }
        let mut offsets = room(stored.offsets.len())?;
        for &offset in &stored.offsets {
            offsets.push(i32::try_from(offset).map_err(|_| "more than 2^31 - 1 entries")?);
        }
        Ok(Indices::Narrow(session.upload(&offsets)?, session.upload(&stored.indices)?))
    }

    /// Returns the type of the indices.
    pub fn index(&self) -> IndexType {
        match self {
            Indices::Narrow(..) => IndexType::I32,
            Indices::Wide(..) => IndexType::I64,
        }
    }
}

/// A sparse matrix that is an operand of products: its values on the host, and a copy on the backend.
pub struct MatrixOperand<'s, T: Number> {
    name: String,
    /// Precision of its products, by which tables name them.
    pub precision: Precision,
    /// Matrix of the product, on the host.
    pub host: OwnedCsr<T>,
    /// Operation that gives `host` from the matrix on the backend.
    pub op: Operation,
    /// Row offsets and columns, on the backend.
    pub indices: Indices<'s>,
    /// Values on the backend.
    pub values: Array<'s, T>,
}

impl<'s, T: Number> MatrixOperand<'s, T> {
    /// Gives seeded values to a pattern.
    pub fn new(
        session: &'s Session,
        name: &str,
        pattern: &OwnedCsr<()>,
        (precision, values): (Precision, Values),
        (op, index): Stored,
    ) -> Result<Self> {
        let host = seeded(pattern, values, MATRIX_SEED)?;
        let width = if index == IndexType::I64 { WIDE_MATRIX } else { "" };
        let mark = if op.transposes() { "^T" } else { "" };
        let name = format!("{name}{}{width}{mark}", values.suffix());
        Self::of(session, &name, host, precision, (op, index))
    }

    /// Makes the second factor of a product of two matrices, with values from another seed than the first
    /// one's.
    pub fn second(
        session: &'s Session,
        pattern: &OwnedCsr<()>,
        (precision, values): (Precision, Values),
    ) -> Result<Self> {
        Self::of(session, "", seeded(pattern, values, SECOND_SEED)?, precision, PLAIN)
    }

    /// Uploads a matrix of the host.
    pub fn of(
        session: &'s Session,
        name: &str,
        host: OwnedCsr<T>,
        precision: Precision,
        (op, index): Stored,
    ) -> Result<Self> {
        let transpose = if op.transposes() { Some(host.transpose()?) } else { None };
        let stored = transpose.as_ref().unwrap_or(&host);
        let indices = Indices::upload(session, stored, index)?;
        let values = session.upload(&stored.values)?;
        Ok(MatrixOperand { name: name.into(), precision, host, op, indices, values })
    }

    /// Makes the matrix's descriptor for a plan.
    pub fn describe(&self) -> Result<Sparse<'_>> {
        let (shape, values) = (self.stored_shape(), &self.values);
        Ok(match &self.indices {
            Indices::Narrow(offsets, columns) => {
                Sparse::csr(shape, offsets, columns, values, IndexBase::Zero)?
            }
            Indices::Wide(offsets, columns) => Sparse::csr(shape, offsets, columns, values, IndexBase::Zero)?,
        })
    }

    /// Returns rows and columns of the matrix as it is stored on the backend.
    pub fn stored_shape(&self) -> (i64, i64) {
        self.op.shape(self.host.rows as i64, self.host.cols as i64)
    }

    /// Returns the row offsets and columns, for a library that takes only 32-bit indices.
    pub fn narrow(&self) -> Result<(&Array<'s, i32>, &Array<'s, i32>)> {
        match &self.indices {
            Indices::Narrow(offsets, columns) => Ok((offsets, columns)),
            Indices::Wide(..) => Err("only with 32-bit indices".into()),
        }
    }

    /// Returns the case of an operation with this matrix.
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

    /// Returns the bytes of the matrix with 32-bit offsets and columns.
    pub fn bytes(&self) -> f64 {
        csr_bytes::<T>(self.host.rows, self.host.nnz())
    }

    /// Returns the floor of a product with a dense matrix of `n` columns.
    pub fn dense_floor_us(&self, n: usize) -> f64 {
        let dense = (self.host.rows + self.host.cols) as f64 * n as f64 * size_of::<T>() as f64;
        floor_us(self.bytes() + dense)
    }

    /// Makes the transpose, stored by rows.
    pub fn transposed(&self, session: &'s Session) -> Result<Self> {
        MatrixOperand::of(session, "", self.host.transpose()?, self.precision, PLAIN)
    }

    /// Returns the part of a note with the entries of SpGEMM's second factor, if it is another matrix.
    pub fn entries_of(&self, b: &Self) -> String {
        if std::ptr::eq(self, b) {
            return String::new();
        }
        format!("nnzB={};", b.host.nnz())
    }

    /// Returns whether SpGEMM multiplies the matrix by its transpose, because it is not square.
    pub fn is_by_transpose(&self) -> bool {
        self.host.rows != self.host.cols
    }
}

/// Gives a pattern the values of a seeded sequence.
fn seeded<T: Number>(pattern: &OwnedCsr<()>, values: Values, seed: u64) -> Result<OwnedCsr<T>> {
    let mut at = 0;
    Ok(pattern.map_values(|()| {
        at += 1;
        T::narrow(values.at(seed, at - 1))
    })?)
}

/// Both factors of SpGEMM.
type Factors<'a, 's, T> = (&'a MatrixOperand<'s, T>, &'a MatrixOperand<'s, T>);

/// Returns the bytes of a CSR matrix with 32-bit offsets and columns.
pub fn csr_bytes<T>(rows: usize, nnz: usize) -> f64 {
    nnz as f64 * (size_of::<T>() + 4) as f64 + 4.0 * rows as f64
}

/// Returns the shape of a dense matrix without padding.
pub fn dense_shape(rows: usize, n: usize, order: Order) -> DenseLayout {
    let ld = if order == Order::Row { n } else { rows };
    DenseLayout { rows: rows as i64, cols: n as i64, ld: ld as i64, order }
}

/// Settings of plans of SpMV and SpMM before analysis.
#[derive(Clone, Copy)]
pub struct Wishes {
    pub effort: Effort,
    pub reorder: Reorder,
    /// Expected number of executes; 0: not known.
    pub executes: i64,
}

/// Milliseconds from which on an analysis is not repeated: what the first analysis of a process loads is a
/// small part of it then.
const LONG_MS: f64 = 200.0;

/// Makes a plan and analyzes it with the settings `wishes`. The first analysis of a kind loads kernels, so
/// that a second plan is made and timed. Returns the plan, the milliseconds of its analysis, a note with the
/// plan's information and the first analysis's time, and the bytes of plan (at the peak of its analysis) and
/// workspace together.
fn analyzed<'a>(
    session: &Session,
    wishes: Wishes,
    n: usize,
    make: impl Fn() -> Result<Plan<'a>>,
) -> Result<(Plan<'a>, f64, String, f64)> {
    let once = || -> Result<(Plan<'a>, f64)> {
        let plan = make()?;
        plan.set_effort(wishes.effort)?;
        plan.set_reorder(wishes.reorder)?;
        if wishes.executes > 0 {
            plan.set_expected_executes(wishes.executes)?;
        }
        let ms = step("analysis", || {
            // Timed inside the closure, since `step` starts and joins a thread.
            let start = Instant::now();
            plan.analyze(session).map(|()| 1e3 * start.elapsed().as_secs_f64())
        })?;
        Ok((plan, ms))
    };
    let (first, first_ms) = once()?;
    let (plan, ms) = if first_ms < LONG_MS {
        drop(first);
        once()?
    } else {
        (first, first_ms)
    };
    plan.prepare(session)?;
    let (info, more) = (Info::of(&plan)?, plan.info()?);
    let workspace = plan.workspace_size(n as i64)?;
    let note = format!(
        "chosen={};fill={:.3};plan_bytes={};in_place={};first_analysis_ms={first_ms:.3}",
        info.algorithm,
        info.fill,
        more.planBytes,
        u8::from(info.in_place)
    );
    let bytes = (more.peakBytes.max(more.planBytes) + workspace) as f64;
    Ok((plan, ms, note, bytes))
}

/// Prepares y = A·x with a plan.
pub fn prepare_spmv<'a, T: Number>(
    session: &'a Session,
    alg: SpmvAlg,
    wishes: Wishes,
    a: &'a MatrixOperand<'_, T>,
    x: &'a Array<'_, T>,
    y: &'a mut Array<'_, T>,
) -> Result<Prepared<'a>> {
    let (compute, types) = (a.precision.compute(), (T::TYPE, T::TYPE));
    let make = || Ok(Plan::spmv(session, a.op, &a.describe()?, types, compute, alg)?);
    let (plan, analysis_ms, note, bytes) = analyzed(session, wishes, 1, make)?;
    let run = move || {
        let (one, zero) = (<T::Sum as Accumulator>::ONE, <T::Sum as Accumulator>::ZERO);
        Ok(plan.run_spmv(session, one, x, zero, &mut *y)?)
    };
    Ok(Prepared { analysis_ms, bytes, note, run: Box::new(run) })
}

/// Prepares y = A·x without a plan.
pub fn prepare_once<'a, T: Number>(
    session: &'a Session,
    a: &'a MatrixOperand<'_, T>,
    x: &'a Array<'_, T>,
    y: &'a mut Array<'_, T>,
) -> Result<Prepared<'a>> {
    let (compute, matrix) = (a.precision.compute(), a.describe()?);
    let run = move || {
        let (one, zero) = (<T::Sum as Accumulator>::ONE, <T::Sum as Accumulator>::ZERO);
        Ok(session.spmv_once(a.op, one, &matrix, x, zero, &mut *y, compute)?)
    };
    // The call allocates the memory that it needs, and does not report how much.
    Ok(Prepared { analysis_ms: 0.0, bytes: -1.0, note: String::new(), run: Box::new(run) })
}

/// Prepares C = A·op(B) without a plan; C has the order of B and the columns of op(B).
pub fn prepare_spmm_once<'a, T: Number>(
    session: &'a Session,
    a: &'a MatrixOperand<'_, T>,
    b: Dense<'a, T>,
    c: &'a mut Array<'_, T>,
) -> Result<Prepared<'a>> {
    let (compute, matrix, ops) = (a.precision.compute(), a.describe()?, (a.op, b.layout.op_b));
    let (b_shape, c_shape) = (b.shape(), dense_shape(a.host.rows, b.cols, b.layout.order));
    let b = b.array;
    let run = move || {
        let (one, zero) = (<T::Sum as Accumulator>::ONE, <T::Sum as Accumulator>::ZERO);
        Ok(session.spmm_once(ops, one, &matrix, (b, b_shape), zero, (&mut *c, c_shape), compute)?)
    };
    Ok(Prepared { analysis_ms: 0.0, bytes: -1.0, note: String::new(), run: Box::new(run) })
}

/// Prepares C = A·op(B) with a plan; C has the order of B and the columns of op(B).
pub fn prepare_spmm<'a, T: Number>(
    session: &'a Session,
    (alg, wishes): (SpmmAlg, Wishes),
    a: &'a MatrixOperand<'_, T>,
    b: Dense<'a, T>,
    c: &'a mut Array<'_, T>,
) -> Result<Prepared<'a>> {
    let (compute, types) = (a.precision.compute(), (T::TYPE, T::TYPE));
    let (order, n) = (b.layout.order, b.cols);
    let ops = (a.op, b.layout.op_b);
    let make =
        || Ok(Plan::spmm(session, ops, &a.describe()?, (order, order), n as i64, types, compute, alg)?);
    let (plan, analysis_ms, note, bytes) = analyzed(session, wishes, n, make)?;
    let (b_shape, c_shape) = (b.shape(), dense_shape(a.host.rows, n, order));
    let b = b.array;
    let run = move || {
        let (one, zero) = (<T::Sum as Accumulator>::ONE, <T::Sum as Accumulator>::ZERO);
        Ok(plan.run_spmm(session, one, (b, b_shape), zero, (&mut *c, c_shape))?)
    };
    Ok(Prepared { analysis_ms, bytes, note, run: Box::new(run) })
}

impl Setting<'_> {
    /// Returns the part of a note with the time of the features, if they are asked for.
    pub fn features<T: Number>(&self, a: &MatrixOperand<'_, T>) -> String {
        if !self.features {
            return String::new();
        }
        let OwnedCsr { rows, cols, offsets, indices, .. } = &a.host;
        let count = || Features::of((*rows, *cols), offsets, indices);
        format!(";features_us={:.1}", step("counting features", count).micros)
    }

    /// Runs the check if one is asked for.
    pub fn accuracy(&self, judge: impl FnOnce() -> Accuracy) -> Option<Accuracy> {
        self.check.then(|| step("checking", judge))
    }

    /// Returns an error if C would be larger than the limit.
    pub fn admit(&self, c_bytes: f64, nnz: usize) -> Result<()> {
        if c_bytes <= self.max_c_bytes {
            return Ok(());
        }
        let (gib, most) = (1024f64.powi(3), self.max_c_bytes);
        let (takes, most) = (c_bytes / gib, most / gib);
        Err(super::Declined(format!("C takes {takes:.1} GiB ({nnz} entries), --max-c-gib is {most}")).into())
    }

    /// Times C = A·A, or A·B if there is a `b`, stored by rows as the vendors' libraries need it, with all
    /// phases each time.
    pub fn spgemm<T: Number>(
        &self,
        a: &MatrixOperand<'_, T>,
        b: Option<&MatrixOperand<'_, T>>,
        alg: Alg<'_>,
    ) -> Result<Row> {
        let a = (a, b.unwrap_or(a));
        let run = self.sparse_phases::<T>(a, alg)?;
        // Offsets are as narrow as C allows, as in the baselines.
        if i32::try_from(run.nnz).is_ok() {
            self.sparse_row::<T, i32>(a, alg, run)
        } else {
            self.sparse_row::<T, i64>(a, alg, run)
        }
    }

    fn plan<'a, T: Number>(&self, (a, b): Factors<'a, '_, T>, (name, alg): Alg<'_>) -> Result<Plan<'a>> {
        let (ops, compute) = ((AS_STORED, AS_STORED), a.precision.compute());
        let plan = Plan::spgemm(self.session, ops, &a.describe()?, &b.describe()?, compute, alg)?;
        plan.set_sorted_output(sorted_output(name))?;
        Ok(plan)
    }

    /// Runs plan creation, analysis and the symbolic phase.
    fn sparse_phases<'a, T: Number>(&self, a: Factors<'a, '_, T>, alg: Alg<'_>) -> Result<Phases<'a>> {
        let start = Instant::now();
        let plan = self.plan(a, alg)?;
        plan.analyze(self.session)?;
        let analysis = start.elapsed().as_secs_f64();
        let nnz = usize::try_from(plan.symbolic(self.session)?)?;
        Ok(Phases { plan, analysis, until_symbolic: start.elapsed().as_secs_f64(), nnz })
    }

    /// Makes a plan that keeps C's pattern for new values, and runs its symbolic phase.
    fn keeping<'a, T: Number>(&self, factors: Factors<'a, '_, T>, alg: Alg<'_>) -> Result<Plan<'a>> {
        let plan = self.plan(factors, alg)?;
        plan.set_value_updates(true)?;
        plan.analyze(self.session)?;
        plan.symbolic(self.session)?;
        Ok(plan)
    }

    /// Gives such a plan new values of its factors.
    fn update<T: Number>(&self, plan: &Plan<'_>, (a, b): Factors<'_, '_, T>) -> Result<()> {
        if std::ptr::eq(a, b) {
            plan.update_values(self.session, &a.values)?;
        } else {
            plan.update_both_values(self.session, &a.values, &b.values)?;
        }
        Ok(())
    }

    /// Times new values and a numeric phase, repeatedly; leaves the product in C.
    fn reuse<T: Number, I: Index>(
        &self,
        a: Factors<'_, '_, T>,
        alg: Alg<'_>,
        shape: (i64, i64),
        (offsets, indices, values): (&mut Array<'_, I>, &mut Array<'_, i32>, &mut Array<'_, T>),
    ) -> Result<Again> {
        let (session, plan) = (self.session, self.keeping(a, alg)?);
        let (mut first_us, mut times, mut spent) = (0.0, Vec::new(), 0.0);
        for round in 0..=self.repeat + 1 {
            let start = Instant::now();
            if round > 0 {
                self.update(&plan, a)?;
            }
            let arrays = (&mut *offsets, &mut *indices, &mut *values);
            plan.numeric_csr(session, T::Sum::ONE, shape, arrays.0, arrays.1, arrays.2, IndexBase::Zero)?;
            session.synchronize()?;
            let seconds = start.elapsed().as_secs_f64();
            spent += seconds;
            let is_last = round > 0 && spent > SPARSE_PATIENCE;
            match round {
                0 => first_us = 1e6 * seconds,
                1 if !is_last => {}
                _ => times.push(1e6 * seconds),
            }
            if is_last {
                break;
            }
        }
        Ok(Again { median_us: median(times), first_us, peak: plan.info()?.peakBytes })
    }

    fn sparse_row<T: Number, I: Index>(
        &self,
        factors: Factors<'_, '_, T>,
        alg: Alg<'_>,
        first: Phases<'_>,
    ) -> Result<Row> {
        let (a, b) = (factors.0, &factors.1.host);
        let factor_bytes = a.bytes() + factors.1.bytes();
        let (session, nnz, rows) = (self.session, first.nnz, a.host.rows);
        let c_bytes = csr_bytes::<T>(rows, nnz);
        self.admit(c_bytes, nnz)?;
        let cols = b.cols;
        let mut host_offsets = vec![I::from_i64(0); rows + 1];
        let (mut host_indices, mut host_values) = (vec![0i32; nnz], blank::<T>(nnz)?);
        let mut offsets = session.upload(&host_offsets)?;
        let mut indices = session.upload(&host_indices)?;
        let mut values = session.upload(&host_values)?;

        let (info, peak) = (Info::of(&first.plan)?, first.plan.info()?.peakBytes);
        let [mut analyses, mut symbolics, mut numerics, mut totals] = [const { Vec::new() }; 4];
        let (mut spent, mut next) = (0.0, Some(first));
        // The first round warms up, unless there is time for only one.
        for round in 0..=self.repeat {
            let phases = match next.take() {
                Some(phases) => phases,
                None => self.sparse_phases(factors, alg)?,
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
        // Rows that must be sorted are checked as they are; others are sorted first, since the reference's
        // rows are.
        let mut order = "";
        if !sorted_output(alg.0) && !check::sort_rows(&host_offsets, &mut host_indices, &mut host_values) {
            order = ";columns not sorted";
        }
        let c = check::Sparse { offsets: &host_offsets, indices: &host_indices, values: &host_values };
        let accuracy = self.accuracy(|| check::sparse(&a.host, b, &c, a.precision));

        let products: u64 = row_products(&a.host, &row_lengths(b, AS_STORED)).iter().sum();
        // Memory may not suffice for a second C.
        let allocation = session.time_allocation(c_bytes as usize).ok();
        let with_alloc = allocation.map_or(-1.0, |allocation| 1e6 * (total + allocation.as_secs_f64()));
        let arrays = (&mut offsets, &mut indices, &mut values);
        let mut other = String::new();
        let again = self.reuse(factors, alg, (rows as i64, cols as i64), arrays).unwrap_or_else(|error| {
            other = format!("reuse: {error};");
            Again { median_us: -1.0, first_us: -1.0, peak: 0 }
        });
        if other.is_empty() && c_bytes < REREAD_BYTES {
            let mut last = blank::<T>(nnz)?;
            values.download_to(&mut last)?;
            if !order.is_empty() {
                indices.download_to(&mut host_indices)?;
                check::sort_rows(&host_offsets, &mut host_indices, &mut last);
            }
            if bytemuck::cast_slice::<T, u8>(&last) != bytemuck::cast_slice::<T, u8>(&host_values) {
                other = "WRONG: reuse gives other bits;".into();
            }
        }
        // Bound for the memory of a product, C included.
        let bound = 2.0 * c_bytes + factor_bytes;
        let note = format!(
            "{}{other}chosen={};products={products};{}nnzC={nnz};peak_MB={};of_bound={:.3};symbolic_us={:.2};\
             numeric_us={:.2};with_alloc_us={:.2};reuse_us={:.2};reuse_first_us={:.2};reuse_MB={};reps={runs}{order}",
            wrong(accuracy),
            info.algorithm,
            factors.0.entries_of(factors.1),
            peak / 1_000_000,
            (peak as f64 + c_bytes) / bound,
            1e6 * symbolic,
            1e6 * numeric,
            with_alloc,
            again.median_us,
            again.first_us,
            again.peak / 1_000_000
        );
        Ok(Row {
            case: a.case("spgemm", 0),
            implementation: OURS.into(),
            alg: alg.0.into(),
            median_us: 1e6 * total,
            gflops: 2e-9 * products as f64 / total,
            floor_us: floor_us(factor_bytes + c_bytes),
            analysis_ms: 1e3 * analysis,
            max_rel_err: accuracy.map_or(-1.0, |accuracy| accuracy.relative),
            note,
            peak_bytes: peak as f64 + c_bytes,
            ..Row::default()
        })
    }
}

/// An algorithm of SpGEMM with the name that asked for it, which says whether rows of C are sorted.
type Alg<'n> = (&'n str, SpgemmAlg);

/// Times of numeric phases with value updates.
struct Again {
    /// Median time of new values and a numeric phase that has the pattern.
    median_us: f64,
    /// Time of the first numeric phase, which finds and keeps the pattern.
    first_us: f64,
    /// Largest number of bytes of the plan.
    peak: usize,
}

/// A plan of SpGEMM after its symbolic phase, with the seconds that it took.
struct Phases<'a> {
    plan: Plan<'a>,
    /// Seconds of plan creation and analysis.
    analysis: f64,
    /// Seconds of plan creation, analysis and symbolic phase.
    until_symbolic: f64,
    /// Entries of C.
    nnz: usize,
}

/// Returns the beginning of a note if the result is wrong, else an empty text.
pub fn wrong(accuracy: Option<Accuracy>) -> String {
    match accuracy {
        Some(accuracy) if !accuracy.passed() => {
            format!("WRONG by {:.1e} times what is allowed;", accuracy.of_allowed)
        }
        _ => String::new(),
    }
}

mod sparse;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layouts_say_order_and_shape_of_what_is_stored() {
        let (n, t) = (Operation::NonTranspose, Operation::Transpose);
        let facts = |order, op_b| {
            let layout = Layout { order, op_b };
            let DenseLayout { rows, cols, ld, .. } = layout.b_shape(7, 3);
            (layout.suffix(), (rows, cols, ld), layout.is_by_rows())
        };
        assert_eq!(facts(Order::Row, n), ("".into(), (7, 3, 3), true));
        assert_eq!(facts(Order::Col, n), ("_col".into(), (7, 3, 7), false));
        assert_eq!(facts(Order::Row, t), ("_bt".into(), (3, 7, 7), false));
        assert_eq!(facts(Order::Col, t), ("_col_bt".into(), (3, 7, 3), true));
    }
}

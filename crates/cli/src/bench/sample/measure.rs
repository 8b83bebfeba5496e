//! Times of the candidates of a case. Plans, operands and results are those of `tarsia bench`; dense operands
//! are made once and reused.

use std::time::Instant;

use client::{Array, Plan, Session};
use half::f16;
use matrices::owned::OwnedCsr;
use tarsia::facade::{
    seal_decisions, Accumulator, Effort, IndexBase, IndexType, Operation, Order, Reorder, SpmmAlg, SpmvAlg,
};

use super::cases::{Case, Form, Group, RowOrder, SampledMatrix};
use crate::bench::args::{spgemm_alg, spmm_alg, spmv_alg};
use crate::bench::is_declined;
use crate::bench::number::{value, values, Number, Precision, Values};
use crate::bench::runs::{dense_shape, MatrixOperand};
use crate::bench::timer::Timer;
use crate::demo::products::median;
use crate::progress::say;
use crate::Result;

/// Seed of the dense operands.
const DENSE_SEED: u64 = 2;
/// Number of untimed calls.
const WARM_UP: usize = 2;
/// A work that takes longer than this is timed by one more call only.
const SLOW_US: f64 = 20e3;
/// Number of rounds of all phases of a sparse product, after one that does not count.
const ROUNDS: usize = 3;
/// Largest number of entries of a sparse product.
const MOST_ENTRIES: usize = 50_000_000;
/// Number of columns in each compared row of the result.
const COMPARED: usize = 2;
/// A policy by name whose decisions get other orders put in: its order takes little time to compute, and a
/// layout that is built from an order in decisions does not depend on the policy's name.
const IN_DECISIONS: Reorder = Reorder::PlainSort;
/// Number of bytes of the checksum at the end of decisions; the row order comes before it.
const CHECKSUM: usize = 8;

/// Times of a candidate.
pub struct Time {
    /// Index of the candidate.
    pub at: usize,
    /// Median microseconds of an execution with flushed caches; for SpGEMM wall time of all phases.
    pub micros: f64,
    /// Milliseconds of the plan's analysis.
    pub analysis_ms: f64,
}

/// Dense operands of one type, as large as the largest that was needed.
struct Pair<'s, T: Number> {
    b: Option<Array<'s, T>>,
    c: Option<Array<'s, T>>,
}

impl<T: Number> Default for Pair<'_, T> {
    fn default() -> Self {
        Pair { b: None, c: None }
    }
}

impl<'s, T: Number> Pair<'s, T> {
    /// Returns both operands, with at least these lengths.
    fn of(
        &mut self,
        session: &'s Session,
        b: usize,
        c: usize,
    ) -> Result<(&mut Array<'s, T>, &mut Array<'s, T>)> {
        Ok((at_least(&mut self.b, session, b, dense)?, at_least(&mut self.c, session, c, dense)?))
    }
}

/// Replaces the row order in decisions by another one of equal length, so that an order is computed once for
/// all products, while other matrices are measured.
fn with_order(decisions: &[u8], rows: &[u32]) -> Result<Vec<u8>> {
    let mut out = decisions.to_vec();
    let end = out.len().saturating_sub(CHECKSUM);
    let begin = end.checked_sub(4 * rows.len()).ok_or("the decisions have no order of rows")?;
    out[begin..end]
        .chunks_exact_mut(4)
        .zip(rows)
        .for_each(|(to, row)| to.copy_from_slice(&row.to_le_bytes()));
    seal_decisions(&mut out);
    Ok(out)
}

/// Returns an array with at least this length, made of `make`'s values if the present one is too short.
fn at_least<'o, 's, T: bytemuck::Pod>(
    array: &'o mut Option<Array<'s, T>>,
    session: &'s Session,
    len: usize,
    make: impl FnOnce(usize) -> Result<Vec<T>>,
) -> Result<&'o mut Array<'s, T>> {
    if array.as_ref().is_some_and(|array| array.len() < len) {
        // Frees the old array before a new one is made.
        *array = None;
    }
    if array.is_none() {
        *array = Some(session.upload(&make(len.next_power_of_two())?)?);
    }
    array.as_mut().ok_or_else(|| "no array was made".into())
}

/// Reproducible values of a dense operand.
fn dense<T: Number>(len: usize) -> Result<Vec<T>> {
    values(DENSE_SEED, len)
}

/// Reusable operands of all types.
#[derive(Default)]
struct Pairs<'s> {
    f64: Pair<'s, f64>,
    f32: Pair<'s, f32>,
    f16: Pair<'s, f16>,
    offsets: Option<Array<'s, i32>>,
    indices: Option<Array<'s, i32>>,
}

/// Measures cases with reusable operands.
pub struct Meter<'s> {
    session: &'s Session,
    timer: &'s dyn Timer,
    repeat: usize,
    pairs: Pairs<'s>,
    /// Number of candidates that failed or were wrong.
    pub failed: usize,
}

impl<'s> Meter<'s> {
    /// Makes a meter with this number of executions behind a median.
    pub fn new(session: &'s Session, timer: &'s dyn Timer, repeat: usize) -> Self {
        Meter { session, timer, repeat, pairs: Pairs::default(), failed: 0 }
    }

    /// Times all candidates that can be built.
    pub fn case(&mut self, matrix: &SampledMatrix, case: &Case) -> Result<Vec<Time>> {
        let Meter { session, timer, repeat, .. } = *self;
        let shot = Shot { session, timer, repeat, matrix, case };
        let pairs = &mut self.pairs;
        let (found, failed) = match case.group {
            Group::Spgemm => shot.sparse(pairs)?,
            Group::Orders(form) => shot.orders(&mut pairs.f32, form)?,
            Group::Spmv(precision) | Group::Spmm(precision, _) => match precision {
                Precision::F64 => shot.dense(&mut pairs.f64, precision)?,
                Precision::F16 => shot.dense(&mut pairs.f16, precision)?,
                _ => shot.dense(&mut pairs.f32, precision)?,
            },
        };
        self.failed += failed;
        Ok(found)
    }
}

/// A case that is being measured.
struct Shot<'s, 'm> {
    session: &'s Session,
    timer: &'s dyn Timer,
    repeat: usize,
    matrix: &'m SampledMatrix,
    case: &'m Case,
}

impl<'s> Shot<'s, '_> {
    /// Times all candidates; also returns how many failed.
    fn all(&self, mut time: impl FnMut(usize) -> Result<(f64, f64)>) -> (Vec<Time>, usize) {
        let (mut found, mut failed) = (Vec::new(), 0);
        for (at, candidate) in self.case.candidates.iter().enumerate() {
            match time(at) {
                Ok((micros, analysis_ms)) => found.push(Time { at, micros, analysis_ms }),
                Err(error) if is_declined(&*error) => {}
                Err(error) => {
                    say(format!("{} {:?} {}: {error}", self.matrix.name, self.case.group, candidate.name));
                    failed += 1;
                }
            }
        }
        (found, failed)
    }

    fn dense<T: Number>(&self, pair: &mut Pair<'s, T>, precision: Precision) -> Result<(Vec<Time>, usize)> {
        let pattern = &self.matrix.pattern;
        let n = match self.case.group {
            Group::Spmm(_, n) => n,
            _ => 1,
        };
        let operands = pair.of(self.session, pattern.cols * n, pattern.rows * n)?;
        let a = self.operands::<T>(pattern, precision)?;
        Ok(self.all(|at| {
            let name = self.case.candidates[at].name;
            // Reordering is switched off, since clusters of rows are measured separately.
            let analyze = |plan: &Plan<'_>| self.analyze(plan, Reorder::None, None);
            match self.case.group {
                Group::Spmv(_) => {
                    let (alg, _) = spmv_alg(name).ok_or("no such algorithm")?;
                    self.spmv(&a, alg, (&*operands.0, &mut *operands.1), analyze)
                }
                _ => {
                    let alg = spmm_alg(name).ok_or("no such algorithm")?;
                    self.spmm(&a, alg, (&*operands.0, &mut *operands.1), (n, Order::Row), analyze)
                }
            }
        }))
    }

    /// Times the product of one form with its rows in each order.
    fn orders(&self, pair: &mut Pair<'s, f32>, form: Form) -> Result<(Vec<Time>, usize)> {
        let (pattern, n) = (&self.matrix.pattern, form.columns());
        let (b, c) = pair.of(self.session, pattern.cols * n, pattern.rows * n)?;
        let a = self.operands::<f32>(pattern, Precision::F32)?;
        let plan = || match form {
            Form::SpmvCsr => self.spmv_plan(&a, SpmvAlg::Csr),
            Form::SpmmRow => self.spmm_plan(&a, SpmmAlg::Row, (n, Order::Row)),
            Form::SpmmCsr => self.spmm_plan(&a, SpmmAlg::Csr, (n, Order::Col)),
        };
        let first = plan()?;
        self.analyze(&first, IN_DECISIONS, None)?;
        let decisions = first.decisions(self.session)?;
        drop(first);
        Ok(self.all(|at| {
            let RowOrder { policy, rows } = &self.matrix.orders[at];
            let analyze = |plan: &Plan<'_>| match rows {
                Some(rows) => self.analyze(plan, IN_DECISIONS, Some(&with_order(&decisions, rows)?)),
                None => self.analyze(plan, *policy, None),
            };
            match form {
                Form::SpmvCsr => self.spmv(&a, SpmvAlg::Csr, (b, &mut *c), analyze),
                Form::SpmmRow => self.spmm(&a, SpmmAlg::Row, (b, &mut *c), (n, Order::Row), analyze),
                Form::SpmmCsr => self.spmm(&a, SpmmAlg::Csr, (b, &mut *c), (n, Order::Col), analyze),
            }
        }))
    }

    fn operands<T: Number>(
        &self,
        pattern: &OwnedCsr<()>,
        precision: Precision,
    ) -> Result<MatrixOperand<'s, T>> {
        let numbers = (precision, Values::Full);
        MatrixOperand::new(
            self.session,
            &self.matrix.name,
            pattern,
            numbers,
            (Operation::NonTranspose, IndexType::I32),
        )
    }

    /// Analyzes a plan with a row order, which decisions may contain; returns milliseconds.
    fn analyze(&self, plan: &Plan<'_>, reorder: Reorder, decisions: Option<&[u8]>) -> Result<f64> {
        plan.set_effort(Effort::Default)?;
        plan.set_reorder(reorder)?;
        if let Some(decisions) = decisions {
            plan.set_decisions(self.session, decisions)?;
        }
        let start = Instant::now();
        plan.analyze(self.session)?;
        let ms = 1e3 * start.elapsed().as_secs_f64();
        plan.prepare(self.session)?;
        Ok(ms)
    }

    fn spmv_plan<'a, T: Number>(&self, a: &'a MatrixOperand<'_, T>, alg: SpmvAlg) -> Result<Plan<'a>> {
        let (compute, types) = (a.precision.compute(), (T::TYPE, T::TYPE));
        Ok(Plan::spmv(self.session, Operation::NonTranspose, &a.describe()?, types, compute, alg)?)
    }

    fn spmm_plan<'a, T: Number>(
        &self,
        a: &'a MatrixOperand<'_, T>,
        alg: SpmmAlg,
        (n, order): (usize, Order),
    ) -> Result<Plan<'a>> {
        let (compute, types) = (a.precision.compute(), (T::TYPE, T::TYPE));
        let ops = (Operation::NonTranspose, Operation::NonTranspose);
        let matrix = a.describe()?;
        Ok(Plan::spmm(self.session, ops, &matrix, (order, order), n as i64, types, compute, alg)?)
    }

    fn spmv<T: Number>(
        &self,
        a: &MatrixOperand<'_, T>,
        alg: SpmvAlg,
        (x, y): (&Array<'_, T>, &mut Array<'_, T>),
        analyze: impl Fn(&Plan<'_>) -> Result<f64>,
    ) -> Result<(f64, f64)> {
        let (one, zero) = (<T::Sum as Accumulator>::ONE, <T::Sum as Accumulator>::ZERO);
        let plan = self.spmv_plan(a, alg)?;
        let analysis_ms = analyze(&plan)?;
        self.forget(a, y, 1, Order::Row)?;
        let micros = self.micros(&mut || {
            let (x, y) = (x.part(0..a.host.cols), y.part_mut(0..a.host.rows));
            Ok(plan.run_spmv(self.session, one, x, zero, y)?)
        })?;
        self.compare(a, y, 1, Order::Row)?;
        Ok((micros, analysis_ms))
    }

    fn spmm<T: Number>(
        &self,
        a: &MatrixOperand<'_, T>,
        alg: SpmmAlg,
        (b, c): (&Array<'_, T>, &mut Array<'_, T>),
        (n, order): (usize, Order),
        analyze: impl Fn(&Plan<'_>) -> Result<f64>,
    ) -> Result<(f64, f64)> {
        let (one, zero) = (<T::Sum as Accumulator>::ONE, <T::Sum as Accumulator>::ZERO);
        let plan = self.spmm_plan(a, alg, (n, order))?;
        let analysis_ms = analyze(&plan)?;
        self.forget(a, c, n, order)?;
        let (b_shape, c_shape) = (dense_shape(a.host.cols, n, order), dense_shape(a.host.rows, n, order));
        let micros = self.micros(&mut || {
            Ok(plan.run_spmm(self.session, one, (b, b_shape), zero, (&mut *c, c_shape))?)
        })?;
        self.compare(a, c, n, order)?;
        Ok((micros, analysis_ms))
    }

    fn micros(&self, work: &mut dyn FnMut() -> Result<()>) -> Result<f64> {
        let mut first = 0.0;
        for _ in 0..WARM_UP {
            first = self.timer.cold(work)?;
            if first > SLOW_US {
                break;
            }
        }
        let repeat = if first > SLOW_US { 1 } else { self.repeat };
        let times = (0..repeat).map(|_| self.timer.cold(work)).collect::<Result<_>>()?;
        Ok(median(times))
    }

    /// Lists the compared entries of the result, with their positions in the array.
    fn compared_entries<T: Number>(
        a: &MatrixOperand<'_, T>,
        n: usize,
        order: Order,
    ) -> Vec<(usize, usize, usize)> {
        let rows = a.host.rows;
        let some = [0, rows / 2, rows.saturating_sub(1)].into_iter().filter(|&row| row < rows);
        let place = |row: usize, col: usize| match order {
            Order::Row => row * n + col,
            Order::Col => col * rows + row,
        };
        some.flat_map(|row| [0, n - 1].map(|col| (row, col, place(row, col)))).take(3 * COMPARED).collect()
    }

    /// Overwrites the compared entries with NaN, which no product has.
    fn forget<T: Number>(
        &self,
        a: &MatrixOperand<'_, T>,
        c: &mut Array<'_, T>,
        n: usize,
        order: Order,
    ) -> Result<()> {
        for (.., place) in Self::compared_entries(a, n, order) {
            c.write(place, &[T::narrow(f64::NAN)])?;
        }
        Ok(())
    }

    /// Compares these entries with sums in fp64.
    fn compare<T: Number>(
        &self,
        a: &MatrixOperand<'_, T>,
        c: &Array<'_, T>,
        n: usize,
        order: Order,
    ) -> Result<()> {
        for (row, col, place) in Self::compared_entries(a, n, order) {
            let (cols, entries) = a.host.row(row);
            let (mut exact, mut size) = (0.0, 0.0);
            for (&k, entry) in cols.iter().zip(entries) {
                let at = match order {
                    Order::Row => k as usize * n + col,
                    Order::Col => col * a.host.cols + k as usize,
                };
                let product = entry.wide() * T::narrow(value(DENSE_SEED, at as u64)).wide();
                (exact, size) = (exact + product, size + f64::abs(product));
            }
            let mut found = [T::narrow(0.0)];
            c.read(place, &mut found)?;
            let off = (found[0].wide() - exact).abs();
            let sums = size * (cols.len() + 1) as f64 * T::SUM_EPS;
            let allowed = sums + size * a.precision.factor_error() + exact.abs() * 2.0 * T::STORE + T::TINY;
            if off.is_nan() || off > allowed {
                return Err(format!("WRONG: ({row}, {col}) is off by {off:.1e}").into());
            }
        }
        Ok(())
    }

    fn sparse(&self, pairs: &mut Pairs<'s>) -> Result<(Vec<Time>, usize)> {
        let a = &self.operands::<f64>(&self.matrix.pattern, Precision::F64)?;
        let partner = if a.is_by_transpose() { Some(a.transposed(self.session)?) } else { None };
        let b = partner.as_ref().unwrap_or(a);
        let Pairs { f64: Pair { c: values, .. }, offsets, indices, .. } = pairs;
        let zeros = |len| Ok(vec![0; len]);
        let mut entries = None;
        Ok(self.all(|at| {
            let alg = spgemm_alg(self.case.candidates[at].name).ok_or("no such algorithm")?;
            let (mut totals, mut analyses) = (Vec::new(), Vec::new());
            for round in 0..=ROUNDS {
                let start = Instant::now();
                let (ops, compute) =
                    ((Operation::NonTranspose, Operation::NonTranspose), a.precision.compute());
                let plan = Plan::spgemm(self.session, ops, &a.describe()?, &b.describe()?, compute, alg)?;
                plan.analyze(self.session)?;
                let analysis = start.elapsed().as_secs_f64();
                let nnz = usize::try_from(plan.symbolic(self.session)?)?;
                let symbolic = start.elapsed().as_secs_f64();
                if nnz > MOST_ENTRIES {
                    return Err(crate::bench::Declined(format!("{nnz} entries")).into());
                }
                if *entries.get_or_insert(nnz) != nnz {
                    return Err(format!("WRONG: {nnz} entries").into());
                }
                let offsets = at_least(offsets, self.session, a.host.rows + 1, zeros)?;
                let indices = at_least(indices, self.session, nnz, zeros)?;
                let values = at_least(values, self.session, nnz, dense)?;
                let start = Instant::now();
                plan.numeric_csr(
                    self.session,
                    1.0,
                    (a.host.rows as i64, b.host.cols as i64),
                    offsets.part_mut(0..a.host.rows + 1),
                    indices.part_mut(0..nnz),
                    values.part_mut(0..nnz),
                    IndexBase::Zero,
                )?;
                self.session.synchronize()?;
                if round > 0 {
                    totals.push(1e6 * (symbolic + start.elapsed().as_secs_f64()));
                    analyses.push(1e3 * analysis);
                }
            }
            Ok((median(totals), median(analyses)))
        }))
    }
}

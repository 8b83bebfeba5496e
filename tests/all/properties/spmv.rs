//! Tests of random SpMVs.

use client::{Plan, Session};
use proptest::prelude::*;
use proptest::sample::select;
use tarsia::facade::{
    Algorithm, BackendKind, Effort, OpKind, Operation, PointerMode, Reorder, SpmvAlg, Status, Types,
};

use super::cases::{self, MatrixCase, Scalar, Source, Updates};
use crate::common::check::all_close;
use crate::common::dense::Guarded;
use crate::common::number::factor;
use crate::common::number::{bits, Numbers, Value, Wide};
use crate::common::pattern::Pattern;
use crate::common::staged::Staging;
use crate::common::{backends, ensure, offers, raw, with_types, Outcome};
use testkit::{dense_product, Number as _, Sum};

#[derive(Clone, Debug)]
pub struct Case {
    pub types: Types,
    pub op: Operation,
    pub a: MatrixCase,
    pub alpha: Scalar,
    pub beta: Scalar,
    /// Memory in which alpha and beta are.
    pub mode: PointerMode,
    pub effort: Effort,
    pub updates: Updates,
    /// Requested row order, if the algorithm supports orders.
    pub reorder: Reorder,
    pub alg: SpmvAlg,
    pub wild: bool,
    /// Number of guard elements around x, y and A's values.
    pub guard: usize,
    pub seed: u64,
}

pub fn strategy() -> impl Strategy<Value = Case> {
    let a = cases::matrix(cases::formats_of(OpKind::Spmv), (cases::dimension(), cases::dimension()));
    let scalars = (cases::scalar(), cases::scalar(), cases::pointer_mode());
    let settings = (cases::effort(), (cases::updates(), select(Reorder::ALL)), select(SpmvAlg::ALL));
    let types = select(cases::types_of(OpKind::Spmv));
    let random = (prop::bool::weighted(0.3), 0..=3_usize, any::<u64>());
    (types, cases::operation(), a, scalars, settings, random).prop_map(
        |(types, op, a, (alpha, beta, mode), (effort, (updates, reorder), alg), (wild, guard, seed))| Case {
            types,
            op,
            a,
            alpha,
            beta,
            mode,
            effort,
            updates,
            reorder,
            alg,
            wild,
            guard,
            seed,
        },
    )
}

pub fn run(case: &Case) -> Outcome {
    with_types!(case.types, C => Problem::<C>::new(case).run())
}

/// Case with its arrays and the expected result.
struct Problem<'a, C: Numbers> {
    case: &'a Case,
    pattern: Pattern,
    /// Values at analysis; `values` are those of the product.
    first_values: Guarded<C::A>,
    values: Guarded<C::A>,
    alpha: C::S,
    beta: C::S,
    x: Guarded<C::X>,
    y: Guarded<C::Y>,
    expected: Vec<Sum<C::Wide>>,
}

impl<'a, C: Numbers> Problem<'a, C> {
    fn new(case: &'a Case) -> Self {
        let mut source = Source::new(case.seed, case.wild);
        let pattern = case.a.pattern();
        let entries = pattern.entries();
        let (m, k) = case.op.shape(pattern.rows as i64, pattern.cols as i64);
        let (m, k) = (m as usize, k as usize);
        let alpha: C::S = case.alpha.value(&mut source.rng);
        let beta: C::S = case.beta.value(&mut source.rng);
        let (alpha_is_0, beta_is_0) = (case.alpha == Scalar::Zero, case.beta == Scalar::Zero);

        let mut values: Vec<C::A> = source.numbers(entries.len());
        let mut x: Vec<C::X> = source.numbers(k);
        let mut y: Vec<C::Y> = source.numbers(m);
        let mut is_read = vec![false; k];
        entries.iter().for_each(|&(row, col)| is_read[if case.op.transposes() { row } else { col }] = true);
        for (value, _) in x.iter_mut().zip(is_read).filter(|(_, is_read)| alpha_is_0 || !is_read) {
            *value = source.trap();
        }
        if alpha_is_0 {
            values.fill_with(|| source.trap());
        }
        if beta_is_0 {
            y.fill_with(|| source.trap());
        }
        let first_values = if case.updates.happen() { source.numbers(entries.len()) } else { values.clone() };

        let factor = factor(&entries, &values, case.op);
        let sums = if alpha_is_0 {
            vec![Sum::empty(); m]
        } else {
            dense_product(&factor, (m, 1), |k, _| x[k].widen())
        };
        let combine =
            |(sum, old): (&Sum<C::Wide>, &C::Y)| sum.combine(alpha.widen(), beta.widen(), old.widen());
        let expected = sums.iter().zip(&y).map(combine).collect();
        Problem {
            case,
            pattern,
            first_values: Guarded::new(&first_values, case.guard),
            values: Guarded::new(&values, case.guard),
            alpha,
            beta,
            x: Guarded::new(&x, case.guard),
            y: Guarded::new(&y, case.guard),
            expected,
        }
    }

    fn run(&self) -> Outcome {
        for backend in backends() {
            self.run_on(backend).map_err(|error| format!("{}: {error}", backend.c_name()))?;
        }
        Ok(())
    }

    fn run_on(&self, backend: BackendKind) -> Outcome {
        let (case, types) = (self.case, (C::TYPES.x, C::TYPES.y));
        let session = Session::new(backend)?;
        session.set_pointer_mode(case.mode)?;
        let first = self.pattern.store(backend, &self.first_values);
        let last = self.pattern.store(backend, &self.values);
        let a = first.open()?;
        let create = || Plan::spmv(&session, case.op, &a, types, C::TYPES.compute, case.alg);
        if !offers(OpKind::Spmv, Algorithm::from_spmv(case.alg), backend) {
            let error = create().err().ok_or_else(|| format!("{} was taken", case.alg.c_name()))?;
            ensure!(error.status == Status::NotSupported && error.message.starts_with("alg:"), "{error}");
            return Ok(());
        }
        let takes_orders = matches!(case.alg, SpmvAlg::Default | SpmvAlg::Csr);
        let reorder = cases::reorder(case.reorder, takes_orders, &self.pattern);
        let plan = cases::analyzed(&session, case.seed, || {
            let plan = create()?;
            plan.set_effort(case.effort)?;
            plan.set_value_updates(case.updates.announced())?;
            plan.set_reorder(reorder)?;
            Ok(plan)
        })?;
        // The plan has copied what the descriptor says.
        drop(a);
        cases::is_in_order(&plan, backend, reorder)?;
        if case.updates.happen() {
            // Executed once before the update, so that stale results would be noticed.
            plan.spmv(&session, self.alpha, &self.x, self.beta, &mut self.y.clone())?;
            plan.update_values(&session, last.values())?;
        }

        let mut y = self.y.clone();
        plan.spmv(&session, self.alpha, &self.x, self.beta, &mut y)?;
        all_close::<C>(backend, y.iter().copied(), &self.expected)?;
        y.same_guards()?;
        if case.alpha == Scalar::Zero {
            self.is_exactly_beta_y(&y)?;
        }

        let mut again = self.y.clone();
        plan.spmv(&session, self.alpha, &self.x, self.beta, &mut again)?;
        ensure!(bits(&y) == bits(&again), "a second run has other bits: {y:?} and {again:?}");

        let a = last.open()?;
        let (scalars, mut once) = ((self.alpha, self.beta), self.y.clone());
        raw::spmv_once(&session, case.op, scalars, &a, &self.x, &mut once, C::TYPES.compute)?;
        once.same_guards()?;
        all_close::<C>(backend, once.iter().copied(), &self.expected)
            .map_err(|e| format!("SpMV_once: {e}"))?;
        let same_path = case.effort == Effort::Quick
            && !reorder.is_named()
            && matches!(case.alg, SpmvAlg::Default | SpmvAlg::Csr);
        if same_path && backend != BackendKind::Cuda {
            // Both run the same code, so the bits are the same. On CUDA a plan knows the lengths of the rows
            // and may sum in another order.
            ensure!(bits(&y) == bits(&once), "SpMV_once has other bits: {once:?}, the plan {y:?}");
        }
        Ok(())
    }

    /// Checks that the result is exactly beta · y for a beta of 0, 1 or −1, which needs no rounding.
    fn is_exactly_beta_y(&self, found: &[C::Y]) -> Outcome {
        let sign = match self.case.beta {
            Scalar::Zero => return all_zero(found),
            Scalar::One => C::Wide::new(1.0, 0.0),
            Scalar::MinusOne => C::Wide::new(-1.0, 0.0),
            Scalar::Random => return Ok(()),
        };
        for (found, old) in found.iter().zip(&self.y[..]).filter(|(_, old)| old.widen().is_finite()) {
            ensure!(found.widen() == sign * old.widen(), "alpha is 0: found {found:?}, y was {old:?}");
        }
        Ok(())
    }
}

/// Checks that every element is 0.
pub fn all_zero<V: Value>(found: &[V]) -> Outcome {
    match found.iter().position(|value| value.widen() != V::Wide::zero()) {
        Some(at) => Err(format!("element {at} is {:?}, expected 0", found[at]).into()),
        None => Ok(()),
    }
}

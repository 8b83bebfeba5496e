//! Tests of random SpMMs.

use client::{Plan, Session};
use proptest::prelude::*;
use proptest::sample::select;
use tarsia::facade::{
    Algorithm, BackendKind, Effort, Format, OpKind, Operation, Order, PointerMode, Reorder, SpmmAlg, Status,
    Types, TABLE,
};

use super::cases::{self, MatrixCase, Scalar, Source, Updates};
use super::spmv::all_zero;
use crate::common::check::all_close;
use crate::common::dense::Dense;
use crate::common::number::factor;
use crate::common::number::{bits, Numbers, Wide};
use crate::common::pattern::Pattern;
use crate::common::staged::{first_workspace, Staging};
use crate::common::{backends, ensure, raw, with_types, Outcome};
use testkit::{dense_product, Number as _, Sum};

/// Numbers of columns of C: 0, 1, and values around the block sizes of kernels.
const COLUMNS: [usize; 10] = [0, 1, 2, 3, 7, 8, 31, 32, 33, 64];

/// Order and padding of B or C.
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    pub order: Order,
    /// Number of elements between lines.
    pub padding: usize,
}

#[derive(Clone, Debug)]
pub struct Case {
    pub types: Types,
    pub ops: (Operation, Operation),
    pub a: MatrixCase,
    pub n: usize,
    pub n_hint: usize,
    pub b: Layout,
    pub c: Layout,
    pub alpha: Scalar,
    pub beta: Scalar,
    /// Memory in which alpha and beta are.
    pub mode: PointerMode,
    pub effort: Effort,
    pub updates: Updates,
    /// Requested row order, if the algorithm supports orders.
    pub reorder: Reorder,
    pub alg: SpmmAlg,
    pub wild: bool,
    pub seed: u64,
}

impl Case {
    /// Returns the requested algorithm: the library's choice if that of the case does not support the types.
    fn algorithm(&self) -> SpmmAlg {
        let takes =
            |algorithm| TABLE.iter().any(|row| row.algorithm == algorithm && row.types.contains(&self.types));
        if Algorithm::from_spmm(self.alg).is_none_or(takes) {
            self.alg
        } else {
            SpmmAlg::Default
        }
    }
}

fn layout() -> impl Strategy<Value = Layout> {
    (cases::order(), 0..=5_usize).prop_map(|(order, padding)| Layout { order, padding })
}

pub fn strategy() -> impl Strategy<Value = Case> {
    let a = cases::matrix(cases::formats_of(OpKind::Spmm), (cases::dimension(), cases::dimension()));
    let ops = (cases::operation(), cases::operation());
    let columns = (select(&COLUMNS[..]), select(&COLUMNS[..]));
    let scalars = (cases::scalar(), cases::scalar(), cases::pointer_mode());
    let settings = (cases::effort(), (cases::updates(), select(Reorder::ALL)), select(SpmmAlg::ALL));
    let types = select(cases::types_of(OpKind::Spmm));
    let random = (prop::bool::weighted(0.3), any::<u64>());
    (types, ops, a, columns, (layout(), layout()), scalars, settings, random).prop_map(
        |(
            types,
            ops,
            a,
            (n, n_hint),
            (b, c),
            (alpha, beta, mode),
            (effort, (updates, reorder), alg),
            (wild, seed),
        )| {
            Case {
                types,
                ops,
                a,
                n,
                n_hint,
                b,
                c,
                alpha,
                beta,
                mode,
                effort,
                updates,
                reorder,
                alg,
                wild,
                seed,
            }
        },
    )
}

pub fn run(case: &Case) -> Outcome {
    with_types!(case.types, C => Problem::<C>::new(case).run())
}

/// Case with its arrays and the expected result, row by row.
struct Problem<'a, C: Numbers> {
    case: &'a Case,
    pattern: Pattern,
    /// Values at analysis; `values` are those of the product.
    first_values: Vec<C::A>,
    values: Vec<C::A>,
    alpha: C::S,
    beta: C::S,
    b: Dense<C::X>,
    c: Dense<C::Y>,
    expected: Vec<Sum<C::Wide>>,
}

impl<'a, C: Numbers> Problem<'a, C> {
    fn new(case: &'a Case) -> Self {
        let mut source = Source::new(case.seed, case.wild);
        let pattern = case.a.pattern();
        let entries = pattern.entries();
        let (op, op_b) = case.ops;
        let (m, k) = op.shape(pattern.rows as i64, pattern.cols as i64);
        let (m, k, n) = (m as usize, k as usize, case.n);
        let alpha: C::S = case.alpha.value(&mut source.rng);
        let beta: C::S = case.beta.value(&mut source.rng);
        let (alpha_is_0, beta_is_0) = (case.alpha == Scalar::Zero, case.beta == Scalar::Zero);

        let mut values: Vec<C::A> = source.numbers(entries.len());
        if alpha_is_0 {
            values.fill_with(|| source.trap());
        }
        let mut is_read = vec![false; k];
        entries.iter().for_each(|&(row, col)| is_read[if op.transposes() { row } else { col }] = true);
        let b_shape = if op_b.transposes() { (n, k) } else { (k, n) };
        let mut b: Dense<C::X> = Dense::new(b_shape, case.b.order, case.b.padding);
        b.fill(|i, j| {
            let row_of_op_b = if op_b.transposes() { j } else { i };
            if alpha_is_0 || !is_read[row_of_op_b] {
                source.trap()
            } else {
                source.number()
            }
        });
        let mut c: Dense<C::Y> = Dense::new((m, n), case.c.order, case.c.padding);
        c.fill(|_, _| if beta_is_0 { source.trap() } else { source.number() });
        let first_values = if case.updates.happen() { source.numbers(entries.len()) } else { values.clone() };

        let factor = factor(&entries, &values, op);
        let sums = if alpha_is_0 {
            vec![Sum::empty(); m * n]
        } else {
            dense_product(&factor, (m, n), |k, j| b.get_op(op_b, k, j))
        };
        let combine = |(sum, (i, j)): (&Sum<C::Wide>, (usize, usize))| {
            sum.combine(alpha.widen(), beta.widen(), c.get(i, j).widen())
        };
        let expected = sums.iter().zip(c.places()).map(combine).collect();
        Problem { case, pattern, first_values, values, alpha, beta, b, c, expected }
    }

    fn run(&self) -> Outcome {
        for backend in backends() {
            self.run_on(backend).map_err(|error| format!("{}: {error}", backend.c_name()))?;
        }
        Ok(())
    }

    fn execute(&self, session: &Session, plan: &Plan<'_>) -> Outcome<Dense<C::Y>> {
        let mut c = self.c.clone();
        plan.spmm(session, self.alpha, &self.b, self.beta, &mut c)?;
        Ok(c)
    }

    /// Checks that the product is refused with less than `bytes` bytes of workspace.
    fn is_refused_for_lack_of(&self, bytes: usize, session: &Session, plan: &Plan<'_>) -> Outcome {
        let mut c = self.c.clone();
        let result = plan.spmm(session, self.alpha, &self.b, self.beta, &mut c);
        let error = result.err().ok_or("executed with too small a workspace")?;
        ensure!(
            error.status == Status::InsufficientResources && error.message.contains(&bytes.to_string()),
            "{error}; expected INSUFFICIENT_RESOURCES that says {bytes}"
        );
        ensure!(bits(&c.values) == bits(&self.c.values), "C was written with too small a workspace");
        Ok(())
    }

    fn verify(&self, backend: BackendKind, c: &Dense<C::Y>) -> Outcome {
        c.same_padding(&self.c)?;
        all_close::<C>(backend, c.places().map(|(i, j)| c.get(i, j)), &self.expected)
    }

    fn run_on(&self, backend: BackendKind) -> Outcome {
        let (case, compute) = (self.case, C::TYPES.compute);
        let (orders, types) = ((case.b.order, case.c.order), (C::TYPES.x, C::TYPES.y));
        let session = Session::new(backend)?;
        session.set_pointer_mode(case.mode)?;
        // Its last bits may differ outside of deterministic mode.
        let differs = backend == BackendKind::Cuda && case.algorithm() == SpmmAlg::Swift;
        let deterministic = case.effort != Effort::Tuned && case.seed % 2 == 0;
        session.set_deterministic(deterministic)?;
        let first = self.pattern.store(backend, &self.first_values);
        let last = self.pattern.store(backend, &self.values);
        let a = first.open()?;
        let takes_orders = matches!(case.algorithm(), SpmmAlg::Default | SpmmAlg::Row | SpmmAlg::Csr);
        let reorder = cases::reorder(case.reorder, takes_orders, &self.pattern);
        let plan = cases::analyzed(&session, case.seed, || {
            let (n, alg) = (case.n_hint as i64, case.algorithm());
            let plan = Plan::spmm(&session, case.ops, &a, orders, n, types, compute, alg)?;
            plan.set_effort(case.effort)?;
            if case.algorithm() == SpmmAlg::Smat {
                let widest = if C::TYPES.a.size() == 2 { 16 } else { 8 };
                let (rows, cols) = [(0, 0), (16, 8), (16, widest)][case.seed as usize % 3];
                plan.set_block_dims(rows, cols)?;
            }
            plan.set_value_updates(case.updates.announced())?;
            plan.set_reorder(reorder)?;
            Ok(plan)
        })?;
        // The plan has copied what the descriptor says.
        drop(a);
        cases::is_in_order(&plan, backend, reorder)?;
        // The handle has workspace for nHint columns; for more columns the user must provide it.
        let needed = plan.workspace_size(case.n as i64)?;
        let has = plan.workspace_size(case.n_hint as i64)?.max(first_workspace(backend));
        if needed > has {
            ensure!(case.n > case.n_hint, "fewer columns than nHint need more workspace");
            self.is_refused_for_lack_of(needed, &session, &plan)?;
        }
        let _workspace = raw::UserWorkspace::new(&session, needed)?;
        if case.updates.happen() {
            // Executed once before the update, so that stale results would be noticed.
            self.execute(&session, &plan)?;
            plan.update_values(&session, last.values())?;
        }

        let c = self.execute(&session, &plan)?;
        self.verify(backend, &c)?;
        if case.alpha == Scalar::Zero {
            self.is_exactly_beta_c(&c)?;
        }

        let again = self.execute(&session, &plan)?;
        ensure!(
            differs && !deterministic || bits(&c.values) == bits(&again.values),
            "a second run has other bits: {:?} and {:?}",
            c.values,
            again.values
        );

        let a = last.open()?;
        let (scalars, mut once) = ((self.alpha, self.beta), self.c.clone());
        raw::spmm_once(&session, case.ops, scalars, &a, &self.b, &mut once, compute)?;
        self.verify(backend, &once).map_err(|error| format!("SpMM_once: {error}"))?;
        let is_quick = case.effort == Effort::Quick && !reorder.is_named();
        // On a device, calls without a plan have no analysis, and split rows at other places. Where they make a
        // plan, it is for the columns that C has, and a plan splits rows by nHint.
        let in_place = matches!(
            (case.a.style.format, case.ops.0.transposes()),
            (Format::Csr, false) | (Format::Csc, true)
        );
        let same_path = backend != BackendKind::Cuda || (!in_place && case.n == case.n_hint);
        if is_quick && same_path && matches!(case.algorithm(), SpmmAlg::Default | SpmmAlg::Row) {
            // Both run the same kernels, so the bits are the same.
            ensure!(bits(&c.values) == bits(&once.values), "SpMM_once has other bits than the plan");
        }
        Ok(())
    }

    /// Checks that the result is exactly beta · C for a beta of 0, 1 or −1, which needs no rounding.
    fn is_exactly_beta_c(&self, found: &Dense<C::Y>) -> Outcome {
        let elements: Vec<_> = found.places().map(|(i, j)| found.get(i, j)).collect();
        let sign = match self.case.beta {
            Scalar::Zero => return all_zero(&elements),
            Scalar::One => C::Wide::new(1.0, 0.0),
            Scalar::MinusOne => C::Wide::new(-1.0, 0.0),
            Scalar::Random => return Ok(()),
        };
        let old = self.c.places().map(|(i, j)| self.c.get(i, j).widen());
        for (found, old) in elements.iter().zip(old).filter(|(_, old)| old.is_finite()) {
            ensure!(found.widen() == sign * old, "alpha is 0: found {found:?}, C was {old:?}");
        }
        Ok(())
    }
}

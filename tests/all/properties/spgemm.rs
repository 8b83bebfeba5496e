//! Tests of random SpGEMMs.

use std::collections::BTreeMap;

use client::{Plan, Session};
use proptest::prelude::*;
use proptest::sample::select;
use tarsia::facade::{
    BackendKind, Effort, Format, IndexBase, OpKind, Operation, PointerMode, SpgemmAlg, Types,
};

use super::cases::{self, MatrixCase, Scalar, Source};
use super::spmv::all_zero;
use crate::common::number::factor;
use crate::common::number::{Numbers, Value, Wide};
use crate::common::output::{Output, Target};
use crate::common::pattern::{Pattern, Widths};
use crate::common::{backends, ensure, raw, with_types, Outcome};
use testkit::{sparse_product, sparse_product_of_merged, Factor, Number as _, Sum};

/// Values that are replaced between two numeric phases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Renewed {
    A,
    B,
    Both,
    /// Values of A, by tarsiaPlan_updateValues.
    AByPlan,
}

#[derive(Clone, Debug)]
pub struct Case {
    pub types: Types,
    pub ops: (Operation, Operation),
    pub a: MatrixCase,
    pub b: MatrixCase,
    /// Forms of C in the first and in the later numeric phases.
    pub targets: (Target, Target),
    pub alpha: Scalar,
    /// Memory in which alpha is.
    pub mode: PointerMode,
    pub effort: Effort,
    pub value_updates: bool,
    /// True if the columns of each row of C may be in any order, if the algorithm and the formats of C allow
    /// it.
    pub unsorted: bool,
    pub renewed: Renewed,
    pub alg: SpgemmAlg,
    pub wild: bool,
    pub seed: u64,
}

fn target() -> impl Strategy<Value = Target> {
    let formats = cases::formats_of(OpKind::Spgemm);
    (select(formats), select(&Widths::ALL[..]), select(IndexBase::ALL))
        .prop_map(|(format, widths, base)| Target { format, widths, base })
}

fn factors(
    (op_a, op_b): (Operation, Operation),
    (m, k, n): (usize, usize, usize),
) -> impl Strategy<Value = (MatrixCase, MatrixCase)> {
    let stored = |op: Operation, rows, cols| Just(if op.transposes() { (cols, rows) } else { (rows, cols) });
    let formats = cases::formats_of(OpKind::Spgemm);
    (cases::matrix(formats.clone(), stored(op_a, m, k)), cases::matrix(formats, stored(op_b, k, n)))
}

/// Generates numbers of rows or columns, sometimes more than 2^16, from which on other accumulators are used.
fn rows_or_columns() -> impl Strategy<Value = usize> {
    prop_oneof![120 => cases::dimension(), 1 => Just(70_000)]
}

pub fn strategy() -> impl Strategy<Value = Case> {
    let ops = (cases::operation(), cases::operation());
    let shape = (rows_or_columns(), cases::dimension(), rows_or_columns());
    let factors = (ops, shape).prop_flat_map(|(ops, shape)| (Just(ops), factors(ops, shape)));
    let renewed = select(vec![Renewed::A, Renewed::B, Renewed::Both, Renewed::AByPlan]);
    let settings = (cases::effort(), any::<[bool; 2]>(), renewed, select(SpgemmAlg::ALL));
    let types = select(cases::types_of(OpKind::Spgemm));
    let scalar = (cases::scalar(), cases::pointer_mode());
    let random = (prop::bool::weighted(0.3), any::<u64>());
    (types, factors, (target(), target()), scalar, settings, random).prop_map(
        |(
            types,
            (ops, (a, b)),
            targets,
            (alpha, mode),
            (effort, [value_updates, unsorted], renewed, alg),
            (wild, seed),
        )| Case {
            types,
            ops,
            a,
            b,
            targets,
            alpha,
            mode,
            effort,
            value_updates,
            unsorted,
            renewed,
            alg,
            wild,
            seed,
        },
    )
}

pub fn run(case: &Case) -> Outcome {
    with_types!(case.types, C => Problem::<C>::new(case).run())
}

/// Matrix with the values of both rounds.
struct Operand<V> {
    op: Operation,
    pattern: Pattern,
    entries: Vec<(usize, usize)>,
    values: Vec<V>,
    renewed: Vec<V>,
}

impl<V: Value> Operand<V> {
    fn new(case: &MatrixCase, op: Operation, source: &mut Source, is_renewed: bool) -> Self {
        let pattern = case.pattern();
        let entries = pattern.entries();
        let values: Vec<V> = source.numbers(entries.len());
        let renewed = if is_renewed { source.numbers(entries.len()) } else { values.clone() };
        Operand { op, pattern, entries, values, renewed }
    }

    fn set_traps(&mut self, source: &mut Source, is_trap: impl Fn(usize, usize) -> bool) {
        for (at, &(row, col)) in self.entries.iter().enumerate() {
            let (row, col) = if self.op.transposes() { (col, row) } else { (row, col) };
            if is_trap(row, col) {
                (self.values[at], self.renewed[at]) = (source.trap(), source.trap());
            }
        }
    }

    fn factor<'a>(&'a self, values: &'a [V]) -> Factor<'a, V> {
        factor(&self.entries, values, self.op)
    }

    fn shape(&self) -> (usize, usize) {
        let (rows, cols) = self.op.shape(self.pattern.rows as i64, self.pattern.cols as i64);
        (rows as usize, cols as usize)
    }
}

type Sums<W> = BTreeMap<(usize, usize), Sum<W>>;

/// Case with its arrays and the expected results of both rounds.
struct Problem<'a, C: Numbers> {
    case: &'a Case,
    a: Operand<C::A>,
    b: Operand<C::X>,
    alpha: C::S,
    expected: Sums<C::Wide>,
    renewed: Sums<C::Wide>,
    /// Expected results of algorithm `tile`, if they differ: it first adds up entries at one place.
    of_tiles: Option<[Sums<C::Wide>; 2]>,
}

impl<'a, C: Numbers> Problem<'a, C> {
    fn new(case: &'a Case) -> Self {
        let mut source = Source::new(case.seed, case.wild);
        let alpha: C::S = case.alpha.value(&mut source.rng);
        let mut a = Operand::new(&case.a, case.ops.0, &mut source, case.renewed != Renewed::B);
        let b_is_renewed = matches!(case.renewed, Renewed::B | Renewed::Both);
        let mut b: Operand<C::X> = Operand::new(&case.b, case.ops.1, &mut source, b_is_renewed);
        // Traps are put where the other factor has no entries, or everywhere if alpha is 0.
        let everywhere = case.alpha == Scalar::Zero;
        let k = a.shape().1;
        let (mut met_by_a, mut met_by_b) = (vec![false; k], vec![false; k]);
        a.factor(&a.values).iter().for_each(|(_, k, _)| met_by_a[k] = true);
        b.factor(&b.values).iter().for_each(|(k, _, _)| met_by_b[k] = true);
        a.set_traps(&mut source, |_, k| everywhere || !met_by_b[k]);
        b.set_traps(&mut source, |k, _| everywhere || !met_by_a[k]);

        let zero = C::Wide::zero();
        let scaled = |sums: Sums<C::Wide>| -> Sums<C::Wide> {
            sums.into_iter().map(|(place, sum)| (place, sum.combine(alpha.widen(), zero, zero))).collect()
        };
        let product = |a_values, b_values| scaled(sparse_product(&a.factor(a_values), &b.factor(b_values)));
        let of_merged =
            |a_values, b_values| scaled(sparse_product_of_merged(&a.factor(a_values), &b.factor(b_values)));
        let expected = product(&a.values, &b.values);
        let renewed = product(&a.renewed, &b.renewed);
        let of_tiles = || [of_merged(&a.values, &b.values), of_merged(&a.renewed, &b.renewed)];
        let of_tiles = (case.alg == SpgemmAlg::Tile).then(of_tiles);
        Problem { case, alpha, expected, renewed, of_tiles, a, b }
    }

    fn is_unsorted(&self) -> bool {
        let Case { targets: (first, later), alg, unsorted, .. } = self.case;
        *unsorted && *alg != SpgemmAlg::Tile && [first, later].iter().all(|c| c.format == Format::Csr)
    }

    fn run(&self) -> Outcome {
        for backend in backends() {
            self.run_on(backend).map_err(|error| format!("{}: {error}", backend.c_name()))?;
        }
        Ok(())
    }

    fn run_on(&self, backend: BackendKind) -> Outcome {
        let case = self.case;
        let session = Session::new(backend)?;
        session.set_pointer_mode(case.mode)?;
        let store = |renewed| {
            let (a, b) = (&self.a, &self.b);
            let (a_values, b_values) =
                if renewed { (&a.renewed, &b.renewed) } else { (&a.values, &b.values) };
            (a.pattern.store(backend, a_values), b.pattern.store(backend, b_values))
        };
        let ((a, b), (a_renewed, b_renewed)) = (store(false), store(true));
        let (a, b) = (a.open()?, b.open()?);
        let plan = cases::analyzed(&session, case.seed, || {
            let plan = Plan::spgemm(&session, case.ops, &a, &b, C::TYPES.compute, case.alg)?;
            plan.set_effort(case.effort)?;
            plan.set_value_updates(case.value_updates)?;
            plan.set_sorted_output(!self.is_unsorted())?;
            Ok(plan)
        })?;
        // The plan has copied what the descriptors say.
        drop((a, b));
        for _ in 0..2 {
            let nnz = plan.symbolic(&session)?;
            ensure!(
                nnz == self.expected.len() as i64,
                "{nnz} entries counted, {} expected",
                self.expected.len()
            );
        }
        let info = plan.info()?;
        ensure!(info.nnzC == self.expected.len() as i64, "getInfo says nnzC = {}", info.nnzC);

        let (first, later) = case.targets;
        // The reference has one algorithm for all.
        let of_tiles = self.of_tiles.as_ref().filter(|_| backend != BackendKind::Reference);
        let [expected, renewed] = match of_tiles {
            Some([expected, renewed]) => [expected, renewed],
            None => [&self.expected, &self.renewed],
        };
        self.compute(backend, &session, &plan, first, expected)?;
        self.compute(backend, &session, &plan, later, expected)?;
        match case.renewed {
            Renewed::A => raw::update_spgemm::<_, C::X>(&session, &plan, Some(a_renewed.values()), None)?,
            Renewed::B => raw::update_spgemm::<C::A, _>(&session, &plan, None, Some(b_renewed.values()))?,
            Renewed::Both => {
                raw::update_spgemm(&session, &plan, Some(a_renewed.values()), Some(b_renewed.values()))?
            }
            Renewed::AByPlan => plan.update_values(&session, a_renewed.values())?,
        }
        self.compute(backend, &session, &plan, later, renewed)
            .and_then(|()| self.compute(backend, &session, &plan, first, renewed))
            .map_err(|error| format!("after new values: {error}"))?;
        Ok(())
    }

    /// Runs two numeric phases, whose results must be as expected and have the same bits.
    fn compute(
        &self,
        backend: BackendKind,
        session: &Session,
        plan: &Plan<'_>,
        target: Target,
        expected: &Sums<C::Wide>,
    ) -> Outcome {
        let shape = (self.a.shape().0, self.b.shape().1);
        let mut c = Output::<C::Y>::new(target, shape, expected.len());
        let mut again = c.clone();
        c.compute(session, plan, self.alpha)?;
        let in_order = if self.is_unsorted() { &c.in_order().0 } else { &c };
        in_order.verify::<C>(backend, expected).map_err(|error| format!("C in {target:?}: {error}"))?;
        if self.case.alpha == Scalar::Zero {
            all_zero(&c.values)?;
        }
        again.compute(session, plan, self.alpha)?;
        c.same_bits(&again).map_err(|error| format!("a second numeric phase: {error}").into())
    }
}

//! Tests of self-contained plans (tarsiaPlan_setSelfContained): whatever happens to the arrays of A and B
//! after analysis, products are those of the matrices at analysis.

use crate::common::number::{C64, F16F32, F32, F64};
use client::{arg, check, Plan, Session};
use matrices::SplitMix64;
use tarsia::capi::{spgemm, spmat};
use tarsia::facade::{
    BackendKind, DataType, Effort, Format, IndexBase, IndexType, Operation, Order, SpgemmAlg, SpmmAlg,
    SpmvAlg, Status,
};

use crate::common::backend;
use crate::common::check::all_close;
use crate::common::dense::Dense;
use crate::common::number::factor;
use crate::common::number::{Numbers, Value, Wide};
use crate::common::output::{Output, Target};
use crate::common::pattern::{Pattern, Stored, Style, Widths};
use crate::common::staged::{Staged, Staging};
use testkit::{dense_product, sparse_product, Factor, Number as _};

const ROWS: usize = 160;
const COLS: usize = 120;

fn random<V: Value>(count: usize, seed: u64) -> Vec<V> {
    let mut rng = SplitMix64::new(seed);
    (0..count).map(|_| V::random(&mut rng)).collect()
}

fn one<C: Numbers>() -> C::S {
    C::S::narrow(C::Wide::new(1.0, 0.0))
}

fn zero<C: Numbers>() -> C::S {
    C::S::narrow(C::Wide::new(0.0, 0.0))
}

fn places((rows, cols): (usize, usize), seed: u64) -> Vec<(usize, usize)> {
    let mut rng = SplitMix64::new(seed);
    let mut below = |n: usize| rng.below(n as u64) as usize;
    let mut out: Vec<_> = (0..rows * 6).map(|_| (below(rows), below(cols))).collect();
    out.extend((0..cols).map(|col| (rows / 2, col)));
    out.sort_unstable();
    out.dedup();
    out
}

/// Returns styles that could be read in place (CSR and CSC), and others that are always copied.
fn styles() -> impl Iterator<Item = Style> {
    let base = IndexBase::One;
    let formats = [Format::Csr, Format::Csc, Format::Coo];
    let plain = formats.into_iter().map(|format| Style { format, ..Style::PLAIN });
    plain.chain([Style { base, widths: Widths::Wide, ..Style::PLAIN }])
}

/// Matrix, its arrays in the backend's memory, and new values for it.
struct Problem<V: Value> {
    kind: BackendKind,
    pattern: Pattern,
    entries: Vec<(usize, usize)>,
    values: Vec<V>,
    new: Vec<V>,
}

impl<V: Value> Problem<V> {
    fn new(kind: BackendKind, style: Style, shape: (usize, usize), seed: u64) -> Self {
        let pattern = Pattern::new(style, shape, &places(shape, seed));
        let entries = pattern.entries();
        let (values, new) = (random(entries.len(), seed + 1), random(entries.len(), seed + 2));
        Problem { kind, pattern, entries, values, new }
    }

    fn store(&self) -> Stored<V> {
        self.pattern.store(self.kind, &self.values)
    }

    fn factor(&self, is_new: bool, op: Operation) -> Factor<'_, V> {
        factor(&self.entries, if is_new { &self.new } else { &self.values }, op)
    }
}

/// Analyzes a self-contained plan and then overwrites the arrays.
fn analyzed<V: Value>(session: &Session, plan: &Plan<'_>, arrays: &[&Stored<V>]) {
    plan.set_self_contained(true).unwrap();
    plan.analyze(session).unwrap();
    assert_eq!(plan.info().unwrap().inPlace, 0);
    arrays.iter().for_each(|stored| stored.spoil(session));
}

/// Updates the values; returns false if the plan refuses that since value updates were not announced before
/// analysis.
fn renewed<V: Value>(session: &Session, plan: &Plan<'_>, values: &Staged<V>) -> bool {
    match plan.update_values(session, values.view()) {
        Ok(()) => true,
        Err(error) => {
            assert_eq!(error.status, Status::InvalidState, "{error}");
            assert!(error.message.contains("tarsiaPlan_setValueUpdates"), "{error}");
            false
        }
    }
}

fn dense_operands<C: Numbers>(style: Style, kind: BackendKind) {
    let session = Session::new(kind).unwrap();
    let types = C::TYPES;
    let problem = Problem::<C::A>::new(kind, style, (ROWS, COLS), 3);
    let new_values = Staged::new(kind, &problem.new);
    let mut tested = 0;
    for (op, effort, updates) in [
        (Operation::NonTranspose, Effort::Default, false),
        (Operation::NonTranspose, Effort::Default, true),
        (Operation::NonTranspose, Effort::Quick, true),
        (Operation::Transpose, Effort::Quick, false),
        (Operation::Transpose, Effort::Default, true),
    ] {
        let (m, k) = if op.transposes() { (COLS, ROWS) } else { (ROWS, COLS) };
        let x: Vec<C::X> = random(k, 9);
        for &alg in SpmvAlg::ALL {
            let stored = problem.store();
            let a = stored.open().unwrap();
            let made = Plan::spmv(&session, op, &a, (types.x, types.y), types.compute, alg);
            let Ok(plan) = made else { continue };
            plan.set_effort(effort).unwrap();
            plan.set_value_updates(updates).unwrap();
            analyzed(&session, &plan, &[&stored]);
            let check = |is_new: bool| {
                let mut y = vec![C::Y::nan(); m];
                plan.spmv(&session, one::<C>(), &x, zero::<C>(), &mut y).unwrap();
                let expected = dense_product(&problem.factor(is_new, op), (m, 1), |k, _| x[k].widen());
                all_close::<C>(kind, y, &expected)
                    .unwrap_or_else(|error| panic!("SpMV {alg:?} {op:?} {effort:?} {style:?}: {error}"));
            };
            check(false);
            assert!(!plan.decisions(&session).unwrap().is_empty());
            assert_eq!(renewed(&session, &plan, &new_values), updates, "SpMV {alg:?} {effort:?}");
            check(updates);
            tested += 1;
        }
        let n = 17;
        let (mut b, mut rng) = (Dense::<C::X>::new((k, n), Order::Row, 1), SplitMix64::new(4));
        b.fill(|_, _| C::X::random(&mut rng));
        for &alg in SpmmAlg::ALL {
            let stored = problem.store();
            let (a, orders) = (stored.open().unwrap(), (Order::Row, Order::Row));
            let (ops, values) = ((op, Operation::NonTranspose), (types.x, types.y));
            let made = Plan::spmm(&session, ops, &a, orders, n as i64, values, types.compute, alg);
            let Ok(plan) = made else { continue };
            plan.set_effort(effort).unwrap();
            plan.set_value_updates(updates).unwrap();
            analyzed(&session, &plan, &[&stored]);
            let check = |is_new: bool| {
                let mut c = Dense::<C::Y>::new((m, n), Order::Row, 2);
                plan.spmm(&session, one::<C>(), &b, zero::<C>(), &mut c).unwrap();
                let elements = (0..m * n).map(|at| c.get(at / n, at % n));
                let expected = dense_product(&problem.factor(is_new, op), (m, n), |k, j| b.get(k, j).widen());
                all_close::<C>(kind, elements, &expected)
                    .unwrap_or_else(|error| panic!("SpMM {alg:?} {op:?} {effort:?} {style:?}: {error}"));
            };
            check(false);
            assert_eq!(renewed(&session, &plan, &new_values), updates, "SpMM {alg:?} {effort:?}");
            check(updates);
            tested += 1;
        }
    }
    assert!(tested >= 40, "{tested} of {}", types.describe());
}

fn sparse_factors<C: Numbers>(style: Style, kind: BackendKind) {
    let session = Session::new(kind).unwrap();
    let target = Target { format: Format::Csr, widths: Widths::Mixed, base: IndexBase::Zero };
    let a = Problem::<C::A>::new(kind, style, (ROWS, COLS), 3);
    let b = Problem::<C::X>::new(kind, style, (COLS, ROWS), 13);
    let new_values = Staged::new(kind, &a.new);
    let ops = (Operation::NonTranspose, Operation::NonTranspose);
    let mut tested = 0;
    for &alg in SpgemmAlg::ALL {
        for updates in [false, true] {
            let (a_stored, b_stored) = (a.store(), b.store());
            let (a_open, b_open) = (a_stored.open().unwrap(), b_stored.open().unwrap());
            let made = Plan::spgemm(&session, ops, &a_open, &b_open, C::TYPES.compute, alg);
            let Ok(plan) = made else { continue };
            plan.set_value_updates(updates).unwrap();
            plan.set_self_contained(true).unwrap();
            plan.analyze(&session).unwrap();
            a_stored.spoil(&session);
            b_stored.spoil(&session);
            let nnz = plan.symbolic(&session).unwrap() as usize;
            let check = |is_new: bool| {
                let (a, b) = (a.factor(is_new, ops.0), b.factor(false, ops.1));
                let expected: Vec<_> = sparse_product(&a, &b).into_values().collect();
                for _ in 0..2 {
                    let mut c = Output::<C::Y>::new(target, (ROWS, ROWS), nnz);
                    c.compute(&session, &plan, one::<C>()).unwrap();
                    all_close::<C>(kind, c.values.iter().copied(), &expected)
                        .unwrap_or_else(|error| panic!("SpGEMM {alg:?} {style:?}: {error}"));
                }
            };
            check(false);
            assert_eq!(renewed(&session, &plan, &new_values), updates, "SpGEMM {alg:?}");
            check(updates);
            tested += 1;
        }
    }
    assert!(tested >= 2, "{tested} of {}", C::TYPES.describe());
}

#[test]
fn arrays_may_go_after_analysis() {
    for kind in [BackendKind::Reference, backend()] {
        for style in styles() {
            dense_operands::<F64>(style, kind);
            dense_operands::<F32>(style, kind);
            dense_operands::<F16F32>(style, kind);
            dense_operands::<C64>(style, kind);
        }
    }
}

#[test]
fn factors_may_go_after_analysis() {
    for kind in [BackendKind::Reference, backend()] {
        for style in styles().filter(|style| style.format != Format::Coo) {
            sparse_factors::<F64>(style, kind);
            sparse_factors::<F32>(style, kind);
        }
    }
}

#[test]
fn values_cannot_be_read_where_they_may_be_gone() {
    let (kind, session) = (backend(), Session::new(backend()).unwrap());
    let problem = Problem::<f64>::new(kind, Style::PLAIN, (ROWS, COLS), 3);
    let stored = problem.store();
    let types = F64::TYPES;
    let (a, op) = (stored.open().unwrap(), Operation::NonTranspose);
    let plan = Plan::spmv(&session, op, &a, (types.x, types.y), types.compute, SpmvAlg::Default).unwrap();
    plan.set_self_contained(true).unwrap();
    plan.set_values_in_place(true).unwrap();
    let error = plan.analyze(&session).unwrap_err();
    assert!(error.status == Status::NotSupported && error.message.starts_with("valuesInPlace: "), "{error}");
    plan.set_values_in_place(false).unwrap();
    plan.analyze(&session).unwrap();
    let late = plan.set_self_contained(false).unwrap_err();
    assert_eq!(late.status, Status::InvalidState);
}

/// C may use A's memory if the plan is self-contained.
#[test]
fn a_result_may_have_the_place_of_a_factor() {
    let (kind, session) = (backend(), Session::new(backend()).unwrap());
    let a = Problem::<f64>::new(kind, Style::PLAIN, (ROWS, ROWS), 3);
    let stored = a.store();
    let open = stored.open().unwrap();
    let ops = (Operation::NonTranspose, Operation::NonTranspose);
    // The case that overwrites A comes last.
    for is_self_contained in [false, true] {
        let plan = Plan::spgemm(&session, ops, &open, &open, F64::TYPES.compute, SpgemmAlg::Hash).unwrap();
        plan.set_self_contained(is_self_contained).unwrap();
        plan.analyze(&session).unwrap();
        let nnz = plan.symbolic(&session).unwrap();
        let indices = Staged::new(kind, &vec![0_i32; nnz as usize]);
        let values = Staged::new(kind, &vec![0.0; nnz as usize]);
        let (mut c, side) = (std::ptr::null_mut(), ROWS as i64);
        // SAFETY: the arrays have room for C: A has as many offsets, which may be overwritten where the plan
        // does not need them, and which the call has to refuse to overwrite where it does.
        let found = unsafe {
            let indices = indices.view().as_ptr().cast_mut().cast();
            let values = values.view().as_ptr().cast_mut().cast();
            let offsets = stored.offsets_address().cast_mut();
            let (int, base) = (arg(IndexType::I32), arg(IndexBase::Zero));
            let create = spmat::tarsiaCreateCsr;
            check(create(
                &mut c,
                side,
                side,
                nnz,
                offsets,
                indices,
                values,
                int,
                int,
                base,
                arg(DataType::R64F),
            ))
            .unwrap();
            let one = 1.0_f64;
            check(spgemm::tarsiaSpGEMM_numeric(session.raw(), plan.raw(), (&raw const one).cast(), c))
        };
        spmat::tarsiaDestroySpMat(c);
        match is_self_contained {
            true => found.unwrap(),
            false => assert!(found.unwrap_err().message.contains("share memory")),
        }
    }
}

/// With tarsiaSetChecks, a self-contained plan is not compared with arrays that may be gone, and says so.
#[test]
fn checks_leave_self_contained_plans_alone() {
    for kind in [BackendKind::Reference, backend()] {
        let session = Session::new(kind).unwrap();
        session.set_checks(true).unwrap();
        let problem = Problem::<f64>::new(kind, Style::PLAIN, (ROWS, COLS), 3);
        let x: Vec<f64> = random(COLS, 9);
        for is_self_contained in [false, true] {
            let stored = problem.store();
            let a = stored.open().unwrap();
            let types = F64::TYPES;
            let plan = Plan::spmv(
                &session,
                Operation::NonTranspose,
                &a,
                (types.x, types.y),
                types.compute,
                SpmvAlg::Default,
            )
            .unwrap();
            plan.set_self_contained(is_self_contained).unwrap();
            plan.analyze(&session).unwrap();
            assert_eq!(plan.info().unwrap().checked, i32::from(!is_self_contained));
            stored.spoil(&session);
            let mut y = vec![0.0; ROWS];
            match plan.spmv(&session, 1.0, &x, 0.0, &mut y) {
                Ok(()) => assert!(is_self_contained),
                Err(error) => assert!(!is_self_contained && error.status == Status::InvalidState, "{error}"),
            }
        }
    }
}

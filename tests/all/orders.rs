//! Tests of row orders by name (tarsiaPlan_setReorder): algorithms that support them, results, and errors of
//! the others.

use client::{DenseLayout, Plan, Session, Sparse};
use matrices::gallery;
use matrices::owned::OwnedCsr;
use tarsia::facade::{
    BackendKind, ComputeType, DataType, Effort, Error, IndexBase, OpKind, Operation, Order, Reorder,
    SpgemmAlg, SpmmAlg, SpmvAlg, Status, TABLE,
};

use crate::common::backends;
use crate::common::staged::Staging;

const N: Operation = Operation::NonTranspose;
const ROWS: usize = 150;
/// Columns of B.
const COLUMNS: usize = 6;
const FP64: (DataType, DataType) = (DataType::R64F, DataType::R64F);

/// Returns offsets, columns and values of a square matrix with rows of all lengths, some of them empty.
fn matrix() -> (Vec<i32>, Vec<i32>, Vec<f64>) {
    let (mut offsets, mut indices) = (vec![0], vec![]);
    for row in 0..ROWS {
        let length = if row % 7 == 3 { 0 } else { 1 + row * row % 97 };
        let mut columns: Vec<i32> = (0..length).map(|at| ((row * 31 + at * 3) % ROWS) as i32).collect();
        columns.sort_unstable();
        columns.dedup();
        indices.extend(columns);
        offsets.push(indices.len() as i32);
    }
    let values = (0..indices.len()).map(|at| 1.0 / (at + 3) as f64).collect();
    (offsets, indices, values)
}

fn dense(rows: usize, cols: usize) -> Vec<f64> {
    (0..rows * cols).map(|at| (at as f64 + 0.5).sin()).collect()
}

/// Calls `f` with a session and the matrix, which is given `cols` columns.
fn with_matrix<R>(backend: BackendKind, cols: usize, f: impl FnOnce(&Session, &Sparse<'_>) -> R) -> R {
    let session = Session::new(backend).unwrap();
    let (offsets, indices, values) = matrix();
    let stored = (
        session.upload(&offsets).unwrap(),
        session.upload(&indices).unwrap(),
        session.upload(&values).unwrap(),
    );
    let shape = (ROWS as i64, cols as i64);
    let a = Sparse::csr(shape, &stored.0, &stored.1, &stored.2, IndexBase::Zero).unwrap();
    f(&session, &a)
}

/// Computes an SpMV; returns y and the order in use.
fn spmv(
    backend: BackendKind,
    alg: SpmvAlg,
    reorder: Reorder,
    effort: Effort,
) -> Result<(Vec<f64>, i32), Error> {
    with_matrix(backend, ROWS, |session, a| {
        let plan = Plan::spmv(session, N, a, FP64, ComputeType::R64F, alg)?;
        plan.set_reorder(reorder)?;
        plan.set_effort(effort)?;
        plan.analyze(session)?;
        let (x, mut y) = (dense(ROWS, 1), vec![f64::NAN; ROWS]);
        plan.spmv(session, 1.0, &x, 0.0, &mut y)?;
        Ok((y, plan.info()?.reorder as i32))
    })
}

/// Analyzes an SpMM; returns the algorithm and the order in use.
fn spmm(backend: BackendKind, cols: usize, alg: SpmmAlg, reorder: Reorder) -> Result<(i32, i32), Error> {
    with_matrix(backend, cols, |session, a| {
        let orders = (Order::Col, Order::Col);
        let plan = Plan::spmm(session, (N, N), a, orders, COLUMNS as i64, FP64, ComputeType::R64F, alg)?;
        plan.set_reorder(reorder)?;
        plan.analyze(session)?;
        let info = plan.info()?;
        Ok((info.algorithm, info.reorder as i32))
    })
}

/// Returns the orders that name one policy each; the learned order may be any of them.
fn named() -> impl Iterator<Item = Reorder> {
    Reorder::ALL.iter().copied().filter(|&reorder| reorder.is_named() && reorder != Reorder::Learned)
}

#[test]
fn results_are_in_the_users_order() {
    for backend in backends() {
        let (own, _) = spmv(backend, SpmvAlg::Csr, Reorder::None, Effort::Default).unwrap();
        for reorder in named() {
            for (alg, effort) in [(SpmvAlg::Csr, Effort::Default), (SpmvAlg::Default, Effort::Quick)] {
                let (y, in_force) = spmv(backend, alg, reorder, effort).unwrap();
                for (row, (found, expected)) in y.iter().zip(&own).enumerate() {
                    assert!((found - expected).abs() <= 1e-13, "{reorder:?} row {row}: {found} {expected}");
                }
                match backend {
                    BackendKind::Reference => assert_eq!(in_force, Reorder::None.code()),
                    _ => assert_eq!(in_force, reorder.code()),
                }
                // A row's sum depends only on its entries, whose order does not change.
                assert!(backend == BackendKind::Cuda || y == own, "{reorder:?}");
            }
        }
    }
}

#[test]
fn the_library_chooses_among_what_takes_orders() {
    for backend in backends() {
        for reorder in named() {
            for alg in [SpmmAlg::Default, SpmmAlg::Row, SpmmAlg::Csr] {
                let (algorithm, in_force) = spmm(backend, ROWS, alg, reorder).unwrap();
                let expected = if alg == SpmmAlg::Default { SpmmAlg::Row } else { alg };
                assert_eq!(algorithm, expected.code(), "{reorder:?}");
                assert!(backend == BackendKind::Reference || in_force == reorder.code());
            }
        }
        // Algorithm `csr` is chosen only by name.
        let (algorithm, _) = spmm(backend, ROWS, SpmmAlg::Default, Reorder::Auto).unwrap();
        assert_ne!(algorithm, SpmmAlg::Csr.code());
    }
}

#[test]
fn other_algorithms_refuse_orders() {
    let refused = |error: Error| {
        assert_eq!(error.status, Status::NotSupported, "{}", error.message);
        assert!(error.message.contains("reorder: TARSIA_REORDER_"), "{}", error.message);
    };
    for backend in backends() {
        for row in TABLE.iter().filter(|row| row.op == OpKind::Spmv && !row.takes_orders) {
            let alg = SpmvAlg::from_code(row.code).unwrap();
            refused(spmv(backend, alg, Reorder::Lpt, Effort::Default).unwrap_err());
            refused(spmv(backend, alg, Reorder::Learned, Effort::Default).unwrap_err());
        }
        for alg in [SpmmAlg::Window, SpmmAlg::Smat, SpmmAlg::Dense, SpmmAlg::Sell] {
            refused(spmm(backend, ROWS, alg, Reorder::Dcsr).unwrap_err());
            refused(spmm(backend, ROWS, alg, Reorder::Learned).unwrap_err());
        }
        if backend != BackendKind::Reference {
            refused(spmm(backend, ROWS + 1, SpmmAlg::Row, Reorder::Rcm).unwrap_err());
        }
        let error = with_matrix(backend, ROWS, |session, a| {
            let plan = Plan::spgemm(session, (N, N), a, a, ComputeType::R64F, SpgemmAlg::Default).unwrap();
            plan.set_reorder(Reorder::PlainSort).unwrap();
            refused(plan.analyze(session).unwrap_err());
            plan.set_reorder(Reorder::Learned).unwrap();
            plan.analyze(session).unwrap_err()
        });
        refused(error);
    }
}

/// Results of a product in fp64 whose rows are in the learned order.
struct Learned {
    /// Order in use.
    reorder: i32,
    reason: String,
    result: Vec<f64>,
    /// Result with all values doubled.
    doubled: Vec<f64>,
}

/// Products that support row orders.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Form {
    SpmvCsr,
    SpmmRow,
    SpmmCsr,
}

/// Computes the product of op(A), which is square, with the same dense operands each time.
fn learned(
    session: &Session,
    form: Form,
    op: Operation,
    a: &Sparse<'_>,
    values: &[f64],
    rows: usize,
) -> Learned {
    let (plan, columns) = match form {
        Form::SpmvCsr => (Plan::spmv(session, op, a, FP64, ComputeType::R64F, SpmvAlg::Csr).unwrap(), 1),
        _ => {
            let alg = if form == Form::SpmmRow { SpmmAlg::Row } else { SpmmAlg::Csr };
            let orders = (Order::Col, Order::Col);
            let n = COLUMNS as i64;
            let plan = Plan::spmm(session, (op, N), a, orders, n, FP64, ComputeType::R64F, alg).unwrap();
            (plan, COLUMNS)
        }
    };
    plan.set_reorder(Reorder::Learned).unwrap();
    plan.analyze(session).unwrap();
    plan.prepare(session).unwrap();
    let info = plan.info().unwrap();
    let reason = info.reason.iter().take_while(|&&byte| byte != 0).map(|&byte| byte as u8 as char).collect();
    let b = session.upload(&dense(rows, columns)).unwrap();
    let mut c = session.upload(&vec![f64::NAN; rows * columns]).unwrap();
    let shape = DenseLayout { rows: rows as i64, cols: columns as i64, ld: rows as i64, order: Order::Col };
    let mut run = || {
        match form {
            Form::SpmvCsr => plan.run_spmv(session, 1.0, &b, 0.0, &mut c).unwrap(),
            _ => plan.run_spmm(session, 1.0, (&b, shape), 0.0, (&mut c, shape)).unwrap(),
        }
        session.synchronize().unwrap();
        c.download().unwrap()
    };
    let result = run();
    let doubled: Vec<f64> = values.iter().map(|value| 2.0 * value).collect();
    let values = session.upload(&doubled).unwrap();
    plan.update_values(session, &values).unwrap();
    Learned { reorder: info.reorder as i32, reason, result, doubled: run() }
}

/// Returns a matrix of the gallery with values.
fn of_gallery(name: &str) -> OwnedCsr<f64> {
    let mut at = 0;
    let value = |()| {
        at += 1;
        1.0 / (at % 97 + 3) as f64
    };
    gallery::named(name).unwrap().map_values(value).unwrap()
}

/// Computes the product with `columns` columns of B, with each row summed in its own order.
fn expected(a: &OwnedCsr<f64>, columns: usize) -> Vec<f64> {
    let b = dense(a.cols, columns);
    let mut out = vec![0.0; a.rows * columns];
    for (row, column) in (0..a.rows).flat_map(|row| (0..columns).map(move |column| (row, column))) {
        let (indices, values) = a.row(row);
        let terms = indices.iter().zip(values).map(|(&k, value)| value * b[column * a.cols + k as usize]);
        out[column * a.rows + row] = terms.sum();
    }
    out
}

/// Matrix with entries in 62 of 1,240 rows: `csr` gains much by DCSR.
const FEW_ROWS: &str = "hypersparse:1240x1240:62:25:1600";
/// Matrix with rows of very different lengths.
const UNEVEN: &str = "rmat:10:45:69098";

#[test]
fn the_learned_order_is_a_policy_or_the_rows_own() {
    use Form::{SpmmCsr, SpmmRow, SpmvCsr};
    for backend in backends() {
        let session = Session::new(backend).unwrap();
        let mut found = Vec::new();
        for (name, form) in [FEW_ROWS, UNEVEN, "poisson5:30"]
            .into_iter()
            .flat_map(|name| [SpmvCsr, SpmmRow, SpmmCsr].map(|form| (name, form)))
        {
            let a = of_gallery(name);
            let offsets: Vec<i32> = a.offsets.iter().map(|&offset| offset as i32).collect();
            let stored = (
                session.upload(&offsets).unwrap(),
                session.upload(&a.indices).unwrap(),
                session.upload(&a.values).unwrap(),
            );
            let shape = (a.rows as i64, a.cols as i64);
            let sparse = Sparse::csr(shape, &stored.0, &stored.1, &stored.2, IndexBase::Zero).unwrap();
            let Learned { reorder, reason, result, doubled } =
                learned(&session, form, N, &sparse, &a.values, a.rows);
            let expected = expected(&a, if form == SpmvCsr { 1 } else { COLUMNS });
            let what = format!("{backend:?} {name} {form:?}: {reorder}, {reason}");
            for ((found, twice), expected) in result.iter().zip(&doubled).zip(&expected) {
                assert!((found - expected).abs() < 1e-11 && 2.0 * found == *twice, "{what}");
            }
            if backend == BackendKind::Reference {
                assert_eq!(reorder, Reorder::None.code(), "{what}");
                continue;
            }
            assert!(![Reorder::Auto, Reorder::Learned].map(Reorder::code).contains(&reorder), "{what}");
            let is_none = reorder == Reorder::None.code();
            let policy = named().find(|policy| policy.code() == reorder).map(Reorder::c_name);
            assert!(reason.contains("TARSIA_REORDER_LEARNED"), "{what}");
            assert!(reason.contains(policy.unwrap_or("own order")) && is_none == policy.is_none(), "{what}");
            found.push((name, form, reorder));
        }
        if backend != BackendKind::Reference {
            assert!(found.contains(&(FEW_ROWS, SpmmCsr, Reorder::Dcsr.code())), "{found:?}");
            let is_own = |found: &&(&str, Form, i32)| found.2 == Reorder::None.code();
            let own = found.iter().filter(is_own).count();
            assert!((1..found.len() - 1).contains(&own), "{found:?}");
        }
    }
}

/// The learned order is chosen by features of the rows of op(A), in whatever format these are stored.
#[test]
fn the_learned_order_is_that_of_the_rows_of_op_a() {
    use Operation::Transpose as T;
    for backend in backends() {
        let session = Session::new(backend).unwrap();
        let a = of_gallery(FEW_ROWS);
        let b = a.transpose().unwrap();
        let stored = [&a, &b].map(|a| {
            let offsets: Vec<i32> = a.offsets.iter().map(|&offset| offset as i32).collect();
            (
                session.upload(&offsets).unwrap(),
                session.upload(&a.indices).unwrap(),
                session.upload(&a.values).unwrap(),
            )
        });
        let shape = (a.rows as i64, a.cols as i64);
        let csr = |of: usize| {
            let (offsets, indices, values) = &stored[of];
            Sparse::csr(shape, offsets, indices, values, IndexBase::Zero).unwrap()
        };
        let csc = |of: usize| {
            let (offsets, indices, values) = &stored[of];
            Sparse::csc(shape, offsets, indices, values, IndexBase::Zero).unwrap()
        };
        let run = |op: Operation, sparse: &Sparse<'_>, values: &[f64]| {
            let found = learned(&session, Form::SpmmCsr, op, sparse, values, a.rows);
            (found.reorder, found.result)
        };
        // The rows of A as CSR and as CSC with op N, and as those of Aᵀ with op T.
        let of_a = [
            run(N, &csr(0), &a.values),
            run(N, &csc(1), &b.values),
            run(T, &csr(1), &b.values),
            run(T, &csc(0), &a.values),
        ];
        let of_b = [run(N, &csr(1), &b.values), run(T, &csr(0), &a.values)];
        for (all, matrix) in [(&of_a[..], &a), (&of_b[..], &b)] {
            let expected = expected(matrix, COLUMNS);
            for (reorder, result) in all {
                assert_eq!(*reorder, all[0].0, "{backend:?}");
                let near =
                    result.iter().zip(&expected).all(|(found, expected)| (found - expected).abs() < 1e-11);
                assert!(near, "{backend:?}");
            }
        }
        assert!(of_a[0].0 != of_b[0].0 || backend == BackendKind::Reference, "{} {}", of_a[0].0, of_b[0].0);
    }
}

/// Returns the shape of a column-major dense matrix.
fn by_columns(cols: usize) -> DenseLayout {
    DenseLayout { rows: ROWS as i64, cols: cols as i64, ld: ROWS as i64, order: Order::Col }
}

#[test]
fn new_values_keep_the_order() {
    // Value updates are not announced, but work: a row order keeps the positions from which values come.
    for backend in backends() {
        for reorder in [Reorder::Lpt, Reorder::CtaAware] {
            let found = with_matrix(backend, ROWS, |session, a| {
                let doubled: Vec<f64> = matrix().2.iter().map(|value| 2.0 * value).collect();
                let doubled = session.upload(&doubled).unwrap();
                let orders = (Order::Col, Order::Col);
                let plan = Plan::spmm(
                    session,
                    (N, N),
                    a,
                    orders,
                    COLUMNS as i64,
                    FP64,
                    ComputeType::R64F,
                    SpmmAlg::Row,
                )
                .unwrap();
                plan.set_reorder(reorder).unwrap();
                plan.analyze(session).unwrap();
                plan.prepare(session).unwrap();
                let b = session.upload(&dense(ROWS, COLUMNS)).unwrap();
                let mut c = session.upload(&vec![f64::NAN; ROWS * COLUMNS]).unwrap();
                let mut run = || {
                    let shape = by_columns(COLUMNS);
                    plan.run_spmm(session, 1.0, (&b, shape), 0.0, (&mut c, shape)).unwrap();
                    let mut out = vec![0.0; ROWS * COLUMNS];
                    c.download_to(&mut out).unwrap();
                    out
                };
                let before = run();
                plan.update_values(session, &doubled).unwrap();
                (before, run())
            });
            assert!(found.0.iter().zip(&found.1).all(|(before, after)| 2.0 * before == *after));
            assert!(found.0.iter().any(|&value| value != 0.0));
        }
    }
}

#[test]
fn effort_tuned_times_orders_where_they_are_left_open() {
    for backend in backends() {
        let (own, _) = spmv(backend, SpmvAlg::Csr, Reorder::None, Effort::Default).unwrap();
        for reorder in [Reorder::Auto, Reorder::None] {
            let (reason, before, after) = with_matrix(backend, ROWS, |session, a| {
                let plan = Plan::spmv(session, N, a, FP64, ComputeType::R64F, SpmvAlg::Csr).unwrap();
                plan.set_reorder(reorder).unwrap();
                plan.set_effort(Effort::Tuned).unwrap();
                plan.analyze(session).unwrap();
                let (x, mut before, mut after) = (dense(ROWS, 1), vec![f64::NAN; ROWS], vec![f64::NAN; ROWS]);
                plan.spmv(session, 1.0, &x, 0.0, &mut before).unwrap();
                let doubled: Vec<f64> = matrix().2.iter().map(|value| 2.0 * value).collect();
                let doubled = session.upload(&doubled).unwrap();
                plan.update_values(session, &doubled).unwrap();
                plan.spmv(session, 1.0, &x, 0.0, &mut after).unwrap();
                let info = plan.info().unwrap();
                let reason = info.reason.iter().take_while(|&&byte| byte != 0);
                let reason: String = reason.map(|&byte| byte as u8 as char).collect();
                (reason, before, after)
            });
            // The reference has one algorithm for everything, and says so.
            let tries = reorder == Reorder::Auto && backend != BackendKind::Reference;
            for order in [Reorder::Lpt, Reorder::GrayCode] {
                assert_eq!(reason.contains(order.c_name()), tries, "{reason}");
            }
            for ((before, after), own) in before.iter().zip(&after).zip(&own) {
                assert!((before - own).abs() <= 1e-13 && 2.0 * before == *after, "{before} {after} {own}");
            }
        }
    }
}

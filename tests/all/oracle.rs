//! Tests of every case of `tests/data/scipy.json`, on the reference and the backend under test, with every
//! width of offsets and indices, and with alpha and beta on the host and on the device.

mod schema;

use std::collections::BTreeMap;

use client::{Plan, Session};
use tarsia::facade::{
    Format, IndexBase, OpKind, Operation, PointerMode, SpgemmAlg, SpmmAlg, SpmvAlg, Status, TABLE,
};

use crate::common::check::all_close;
use crate::common::dense::Dense;
use crate::common::number::factor;
use crate::common::number::{Numbers, Value, Wide};
use crate::common::output::{Output, Target};
use crate::common::pattern::{Pattern, Widths};
use crate::common::staged::Staging;
use crate::common::{backends, ensure, with_types, Outcome};
use schema::{operation, stored, wide, Case, DenseMatrix, File, OracleProduct, Sparse, SparseResult};
use testkit::{dense_product, sparse_product, Number as _, Sum};

fn run_all(is_wanted: impl Fn(&OracleProduct) -> bool) {
    let text = include_str!("../data/scipy.json");
    let file: File = serde_json::from_str(text).expect("the file is as its README says");
    let (mut count, mut faults) = (0, Vec::new());
    for case in file.cases.iter().filter(|case| is_wanted(&case.product)) {
        for backend in backends() {
            for (widths, mode) in widths_and_modes() {
                count += 1;
                let run = || -> Outcome {
                    let session = Session::new(backend)?;
                    session.set_pointer_mode(mode)?;
                    with_types!(case.types(), C => run::<C>(case, &session, widths))
                };
                if let Err(error) = run() {
                    let (name, backend) = (&case.name, backend.c_name());
                    faults.push(format!("{name} on {backend}, {widths:?} indices, {mode:?}: {error}"));
                }
            }
        }
    }
    assert!(count > 0, "no such case in the file");
    assert!(faults.is_empty(), "{} of {count} runs failed:\n{}", faults.len(), faults.join("\n"));
}

fn widths_and_modes() -> impl Iterator<Item = (Widths, PointerMode)> {
    Widths::ALL.into_iter().flat_map(|widths| PointerMode::ALL.iter().map(move |mode| (widths, *mode)))
}

#[test]
fn spmv() {
    run_all(|product| matches!(product, OracleProduct::Spmv { .. }));
}

#[test]
fn spmm() {
    run_all(|product| matches!(product, OracleProduct::Spmm { .. }));
}

#[test]
fn spgemm() {
    run_all(|product| matches!(product, OracleProduct::Spgemm { .. }));
}

fn run<C: Numbers>(case: &Case, session: &Session, widths: Widths) -> Outcome {
    match &case.product {
        OracleProduct::Spmv { x, y, expected } => run_spmv::<C>(case, session, widths, (x, y, expected)),
        OracleProduct::Spmm { op_b, b, c, expected } => {
            run_spmm::<C>(case, session, widths, operation(op_b), (b, c, expected))
        }
        OracleProduct::Spgemm { op_b, b, expected } => {
            run_spgemm::<C>(case, session, widths, operation(op_b), (b, expected))
        }
    }
}

/// Combines SciPy's results with the numbers of terms and magnitudes of the naive loops, which determine the
/// tolerance. The loops' results must agree, too.
fn scipy<W: Wide>(naive: &[Sum<W>], values: Vec<W>) -> Outcome<Vec<Sum<W>>> {
    ensure!(naive.len() == values.len(), "{} sums, SciPy has {}", naive.len(), values.len());
    let sums = naive.iter().zip(values).map(|(sum, value)| {
        let tolerance = 2.0 * (sum.terms + 4) as f64 * f64::EPSILON * sum.magnitude;
        let error = (sum.value - value).magnitude();
        ensure!(error <= tolerance, "the naive loops gave {:?}, SciPy {value:?}", sum.value);
        Ok(Sum { value, ..*sum })
    });
    sums.collect()
}

fn run_spmv<C: Numbers>(
    case: &Case,
    session: &Session,
    widths: Widths,
    (x, y, expected): (&[f64], &[f64], &[f64]),
) -> Outcome {
    let (pattern, op) = (case.a.pattern(widths), case.op());
    let (alpha, beta) = case.scalars::<C::S>();
    let values: Vec<C::A> = stored(&case.a.values);
    let (x, mut y): (Vec<C::X>, Vec<C::Y>) = (stored(x), stored(y));

    let entries = pattern.entries();
    let factor = factor(&entries, &values, op);
    let sums = dense_product(&factor, (y.len(), 1), |k, _| x[k].widen());
    let combine = |(sum, old): (&Sum<C::Wide>, &C::Y)| sum.combine(alpha.widen(), beta.widen(), old.widen());
    let naive: Vec<_> = sums.iter().zip(&y).map(combine).collect();
    let expected = scipy(&naive, wide::<C::Y>(expected))?;

    if beta.widen() == C::Wide::zero() {
        y.fill(C::Y::nan());
    }
    let stored = pattern.store(session.kind(), &values);
    let a = stored.open()?;
    let types = (C::TYPES.x, C::TYPES.y);
    let plan = Plan::spmv(session, op, &a, types, C::TYPES.compute, SpmvAlg::Default)?;
    plan.analyze(session)?;
    plan.spmv(session, alpha, &x, beta, &mut y)?;
    all_close::<C>(session.kind(), y, &expected)
}

fn run_spmm<C: Numbers>(
    case: &Case,
    session: &Session,
    widths: Widths,
    op_b: Operation,
    (b, c, expected): (&DenseMatrix, &DenseMatrix, &[f64]),
) -> Outcome {
    let (pattern, op) = (case.a.pattern(widths), case.op());
    let (alpha, beta) = case.scalars::<C::S>();
    let values: Vec<C::A> = stored(&case.a.values);
    let (b, mut c): (Dense<C::X>, Dense<C::Y>) = (b.load(), c.load());
    let before = c.clone();

    let entries = pattern.entries();
    let factor = factor(&entries, &values, op);
    let (m, n) = (c.shape.rows as usize, c.shape.cols as usize);
    let sums = dense_product(&factor, (m, n), |k, j| b.get_op(op_b, k, j));
    let combine = |(sum, (i, j)): (&Sum<C::Wide>, (usize, usize))| {
        sum.combine(alpha.widen(), beta.widen(), before.get(i, j).widen())
    };
    let naive: Vec<_> = sums.iter().zip(c.places()).map(combine).collect();
    let memory = wide::<C::Y>(expected);
    ensure!(memory.len() == c.values.len(), "the expected memory has another size than C");
    let expected = scipy(&naive, c.places().map(|(i, j)| memory[c.at(i, j)]).collect())?;

    if beta.widen() == C::Wide::zero() {
        c.fill(|_, _| C::Y::nan());
    }
    let stored = pattern.store(session.kind(), &values);
    let a = stored.open()?;
    let (orders, types) = ((b.shape.order, c.shape.order), (C::TYPES.x, C::TYPES.y));
    let (n, compute) = (c.shape.cols, C::TYPES.compute);
    let plan = Plan::spmm(session, (op, op_b), &a, orders, n, types, compute, SpmmAlg::Default)?;
    plan.analyze(session)?;
    plan.spmm(session, alpha, &b, beta, &mut c)?;
    c.same_padding(&before)?;
    all_close::<C>(session.kind(), c.places().map(|(i, j)| c.get(i, j)), &expected)
}

fn run_spgemm<C: Numbers>(
    case: &Case,
    session: &Session,
    widths: Widths,
    op_b: Operation,
    (b, product): (&Sparse, &SparseResult),
) -> Outcome {
    let (op_a, (alpha, _)) = (case.op(), case.scalars::<C::S>());
    let (a_values, b_values): (Vec<C::A>, Vec<C::X>) = (stored(&case.a.values), stored(&b.values));
    let (a, b) = (case.a.pattern(widths), b.pattern(widths));

    let (a_entries, b_entries) = (a.entries(), b.entries());
    let left = factor(&a_entries, &a_values, op_a);
    let right = factor(&b_entries, &b_values, op_b);
    let (places, zero) = (product.places(), C::Wide::zero());
    let sums = sparse_product(&left, &right);
    ensure!(sums.keys().eq(&places), "the naive loops found another structure than SciPy");
    let naive: Vec<_> = sums.values().map(|sum| sum.combine(alpha.widen(), zero, zero)).collect();
    let expected = scipy(&naive, wide::<C::Y>(&product.values))?;
    let expected: BTreeMap<_, _> = places.into_iter().zip(expected).collect();

    refused_by_name::<C>(session, (op_a, &a, &a_values), (op_b, &b, &b_values))?;
    let (a, a_values) = as_taken(a, a_values);
    let (b, b_values) = as_taken(b, b_values);
    let (a, b) = (a.store(session.kind(), &a_values), b.store(session.kind(), &b_values));
    let (a_descr, b_descr) = (a.open()?, b.open()?);
    let compute = C::TYPES.compute;
    let plan = Plan::spgemm(session, (op_a, op_b), &a_descr, &b_descr, compute, SpgemmAlg::Default)?;
    plan.analyze(session)?;
    let nnz = plan.symbolic(session)?;
    ensure!(nnz == expected.len() as i64, "symbolic counted {nnz} entries, expected {}", expected.len());
    for format in [Format::Csr, Format::Csc] {
        for base in [IndexBase::Zero, IndexBase::One] {
            let target = Target { format, widths, base };
            let mut c = Output::<C::Y>::new(target, (product.rows, product.cols), expected.len());
            c.compute(session, &plan, alpha)?;
            c.verify::<C>(session.kind(), &expected).map_err(|error| format!("C in {target:?}: {error}"))?;
        }
    }
    Ok(())
}

/// Returns whether SpGEMM supports a format, by the support table.
fn is_taken(format: Format) -> bool {
    TABLE.iter().any(|row| row.op == OpKind::Spgemm && row.formats.contains(&format))
}

/// Returns the matrix in a format that SpGEMM supports: unchanged, or in CSR.
fn as_taken<V: Value>(pattern: Pattern, values: Vec<V>) -> (Pattern, Vec<V>) {
    if is_taken(pattern.style.format) {
        (pattern, values)
    } else {
        pattern.to_csr(&values)
    }
}

/// Checks that createPlan names the argument whose format is not supported.
fn refused_by_name<C: Numbers>(
    session: &Session,
    (op_a, a, a_values): (Operation, &Pattern, &[C::A]),
    (op_b, b, b_values): (Operation, &Pattern, &[C::X]),
) -> Outcome {
    let refused = [("A", a), ("B", b)].into_iter().find(|(_, pattern)| !is_taken(pattern.style.format));
    let Some((name, pattern)) = refused else {
        return Ok(());
    };
    let (a, b) = (a.store(session.kind(), a_values), b.store(session.kind(), b_values));
    let (a, b) = (a.open()?, b.open()?);
    let plan = Plan::spgemm(session, (op_a, op_b), &a, &b, C::TYPES.compute, SpgemmAlg::Default);
    let error = plan.err().ok_or("a format that is not in the support table was taken")?;
    let format = pattern.style.format.short();
    ensure!(
        error.status == Status::NotSupported
            && error.message.starts_with(&format!("{name}:"))
            && error.message.contains(format),
        "{error}; expected NOT_SUPPORTED that names {name} and {format}"
    );
    Ok(())
}

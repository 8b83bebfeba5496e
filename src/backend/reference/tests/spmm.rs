//! Tests of SpMM against products that were computed by hand.

use bytemuck::Zeroable;
use half::{bf16, f16};
use num_complex::{Complex32, Complex64};

use super::{
    address, csr, dense, everywhere, forms, fresh, handle, transpose, Dense, Stored, PADDING, PLAIN,
};
use crate::error::Result;
use crate::matrix::DenseMatrix;
use crate::operation::{self, Planned};
use crate::plan::Plan;
use crate::problem::SpmmProblem;
use crate::support::Types;
use crate::types::{ComputeType, Effort, Element, Operation, Order};

use Operation::{ConjugateTranspose as C, NonTranspose as N, Transpose as T};

const OPS: [Operation; 3] = [N, T, C];
const ORDERS: [Order; 2] = [Order::Col, Order::Row];
const INF: f64 = f64::INFINITY;
const NAN: f64 = f64::NAN;

fn plan<A: Element>(
    a: &Stored<A>,
    ops: (Operation, Operation),
    compute: ComputeType,
    b: &DenseMatrix,
    c: &DenseMatrix,
    effort: Effort,
) -> Plan {
    let problem = SpmmProblem {
        op: ops.0,
        op_b: ops.1,
        a: a.matrix,
        b_order: b.order,
        c_order: c.order,
        n_hint: c.cols,
        types: Types { a: A::TYPE, x: b.value_type, y: c.value_type, compute },
        value_updates: false,
        ieee: false,
    };
    let handle = handle();
    let plan = fresh::<operation::Spmm>(&handle, problem);
    plan.set(|settings| settings.effort = effort).unwrap();
    plan.analyze(&handle).unwrap();
    plan
}

fn execute<S>(plan: &Plan, alpha: S, b: &DenseMatrix, beta: S, c: &DenseMatrix) -> Result<()> {
    let handle = handle();
    plan.prepare(&handle)?;
    let (alpha, beta) = ([alpha], [beta]);
    let (alpha, beta) = (address(&alpha), address(&beta));
    plan.execute(&handle, "tarsiaSpMM", |planned: &Planned<operation::Spmm>, cx| {
        planned.execute(cx, (alpha, beta), b, None, c)
    })
}

/// C = alpha · op(A) · op(B) + beta · C.
fn spmm<A: Element, S, X: Element, Y: Element>(
    a: &Stored<A>,
    ops: (Operation, Operation),
    compute: ComputeType,
    (alpha, b): (S, &Dense<X>),
    (beta, c): (S, &mut Dense<Y>),
) {
    let plan = plan(a, ops, compute, &b.matrix, &c.matrix, Effort::Default);
    execute(&plan, alpha, &b.matrix, beta, &c.matrix).unwrap();
}

/// Asserts that two matrices are equal, counting NaN as equal to NaN of either sign.
fn same<T: Element>(found: &Dense<T>, expected: &Dense<T>, note: &str) {
    let text = |v: &T| format!("{v:?}").replace("-NaN", "NaN");
    let agree = found.values.iter().zip(&expected.values).all(|(f, e)| f == e || text(f) == text(e));
    assert!(agree, "{note}: {:?}, expected {:?}", found.values, expected.values);
}

/// Checks C = alpha · op(A) · op(B) + beta · C for all forms of A from `everywhere`, with B and the results
/// written out; padding must be unchanged.
fn check_everywhere<Y: Element, X: Element, A: Element, S: Copy>(
    compute: ComputeType,
    a: impl Fn(f64) -> A,
    s: impl Fn(f64) -> S,
    x: impl Fn(f64) -> X,
    y: impl Fn(f64) -> Y,
    forms: &[super::Form],
) {
    // B has two columns: x = (1 … 6) as in SpMV's test, and (1, −1, 0, 2, 0, 0).
    //   The second column of A·B is 2; 8; 7 − 8 = −1; 1 − 0 = 1.
    // For Aᵀ: x = (1 … 4) as in SpMV's test, and (1, 0, −1, 1):
    //   the second column is −7 + 1, −8 + 0, −9 + 2, 1, 2, 3.
    // Results are three times that − C, where C is 2 everywhere.
    let b = [[1., 1.], [2., -1.], [3., 0.], [4., 2.], [5., 0.], [6., 0.]];
    let c = [[94., 4.], [229., 22.], [148., -5.], [19., 1.]];
    let bt = [[1., 1.], [2., 0.], [3., -1.], [4., 1.]];
    let ct = [[73., -20.], [70., -26.], [103., -23.], [25., 1.], [34., 4.], [43., 7.]];
    for form in forms {
        for (name, stored) in everywhere(*form, &a) {
            for (op, op_b) in OPS.iter().flat_map(|op| OPS.map(|op_b| (*op, op_b))) {
                for (b_order, c_order) in ORDERS.iter().flat_map(|o| ORDERS.map(|p| (*o, p))) {
                    let note = format!("{name}, {form:?}, {op:?} {op_b:?}, {b_order:?} {c_order:?}");
                    let x = |v: f64| x(v);
                    let run = |b: &Dense<X>, found: &mut Dense<Y>| {
                        spmm(&stored, (op, op_b), compute, (s(3.), b), (s(-1.), found));
                    };
                    if op == N {
                        let b = match op_b {
                            N => dense(b_order, &b.map(|r| r.map(x)), x(NAN)),
                            _ => dense(b_order, &transpose(&b).map(|r| r.map(x)), x(NAN)),
                        };
                        let mut found = dense(c_order, &[[y(2.); 2]; 4], y(PADDING));
                        run(&b, &mut found);
                        same(&found, &dense(c_order, &c.map(|r| r.map(&y)), y(PADDING)), &note);
                    } else {
                        let b = match op_b {
                            N => dense(b_order, &bt.map(|r| r.map(x)), x(NAN)),
                            _ => dense(b_order, &transpose(&bt).map(|r| r.map(x)), x(NAN)),
                        };
                        let mut found = dense(c_order, &[[y(2.); 2]; 6], y(PADDING));
                        run(&b, &mut found);
                        same(&found, &dense(c_order, &ct.map(|r| r.map(&y)), y(PADDING)), &note);
                    }
                }
            }
        }
    }
}

#[test]
fn every_format_form_op_and_order() {
    check_everywhere(ComputeType::R64F, |v| v, |v| v, |v| v, |v| v, &forms());
}

#[test]
fn every_value_type() {
    let f = |v: f64| v as f32;
    let (h, b) = (f16::from_f64, bf16::from_f64);
    let (c, z) = (|v: f64| Complex32::new(v as f32, 0.), |v: f64| Complex64::new(v, 0.));
    let plain = [PLAIN];
    check_everywhere(ComputeType::R32F, f, f, f, f, &plain);
    check_everywhere(ComputeType::Tf32, f, f, f, f, &plain);
    check_everywhere(ComputeType::R64F, f, |v| v, |v| v, |v| v, &plain);
    check_everywhere(ComputeType::R32F, h, f, h, h, &plain);
    check_everywhere(ComputeType::R32F, h, f, h, f, &plain);
    check_everywhere(ComputeType::R32F, b, f, b, b, &plain);
    check_everywhere(ComputeType::R32F, b, f, b, f, &plain);
    check_everywhere(ComputeType::C32F, c, c, c, c, &plain);
    check_everywhere(ComputeType::C64F, z, z, z, z, &plain);
}

#[test]
fn complex_conjugates_of_either_side() {
    let c = Complex64::new;
    // A = [2+i, i], B = [1+3i, 0; 1, 2]; C is a row.
    //   N N: (2+i)(1+3i) + i = −1+8i;         2i
    // With the conjugate of B, stored transposed as Bᵀ:
    //   N C: (2+i)(1−3i) + i = 5−4i;          2i
    // With the conjugate of A, stored as the column Aᵀ:
    //   C N: (2−i)(1+3i) − i = 5+4i;         −2i
    //   C C: (2−i)(1−3i) − i = −1−8i;        −2i
    let row = csr(PLAIN, (1, 2), [&[0, 2], &[0, 1]], &[c(2., 1.), c(0., 1.)]);
    let column = csr(PLAIN, (2, 1), [&[0, 1, 2], &[0, 0]], &[c(2., 1.), c(0., 1.)]);
    let b = [[c(1., 3.), c(0., 0.)], [c(1., 0.), c(2., 0.)]];
    let expected = [
        (&row, N, N, [c(-1., 8.), c(0., 2.)]),
        (&row, N, T, [c(-1., 8.), c(0., 2.)]),
        (&row, N, C, [c(5., -4.), c(0., 2.)]),
        (&column, T, N, [c(-1., 8.), c(0., 2.)]),
        (&column, C, N, [c(5., 4.), c(0., -2.)]),
        (&column, C, T, [c(5., 4.), c(0., -2.)]),
        (&column, T, C, [c(5., -4.), c(0., 2.)]),
        (&column, C, C, [c(-1., -8.), c(0., -2.)]),
    ];
    for (a, op, op_b, result) in expected {
        for order in ORDERS {
            let b = if op_b == N { b } else { transpose(&b) };
            let (b, mut found) = (dense(order, &b, c(NAN, NAN)), dense(order, &[[c(1., 1.); 2]], c(5., 5.)));
            spmm(a, (op, op_b), ComputeType::C64F, (c(1., 0.), &b), (Complex64::zeroed(), &mut found));
            same(&found, &dense(order, &[result], c(5., 5.)), &format!("{op:?} {op_b:?} {order:?}"));
        }
    }
}

#[test]
fn values_that_are_not_finite() {
    // Column 1 of A is stored in row 2 (8) and in row 3 (a 0).
    let rows = |x1: f64| [[1., 1.], [2., x1], [3., 3.], [4., 4.], [5., 5.], [6., 6.]];
    let run = |(alpha, b): (f64, [[f64; 2]; 6]), (beta, c): (f64, [[f64; 2]; 4]), expected: [[f64; 2]; 4]| {
        for (name, a) in everywhere(PLAIN, |v| v) {
            for order in ORDERS {
                let (b, mut found) = (dense(order, &b, NAN), dense(order, &c, NAN));
                spmm(&a, (N, N), ComputeType::R64F, (alpha, &b), (beta, &mut found));
                same(&found, &dense(order, &expected, NAN), name);
            }
        }
    };
    let product = [[32., 32.], [77., 77.], [50., INF], [7., NAN]];
    run((1., rows(INF)), (0., [[NAN; 2]; 4]), product);
    run((1., rows(2.)), (1., [[NAN, 1.]; 4]), [[NAN, 33.], [NAN, 78.], [NAN, 51.], [NAN, 8.]]);
    run((0., [[INF; 2]; 6]), (2., [[1., NAN]; 4]), [[2., NAN]; 4]);
    run((0., [[NAN; 2]; 6]), (0., [[NAN; 2]; 4]), [[0.; 2]; 4]);
}

#[test]
fn empty_shapes() {
    let a = csr::<f64>(PLAIN, (2, 0), [&[0, 0, 0], &[]], &[]);
    for order in ORDERS {
        // Without columns of A: C = beta · C.
        let (b, mut c) = (dense::<f64, 3>(order, &[], NAN), dense(order, &[[1., 2., NAN]; 2], PADDING));
        spmm(&a, (N, N), ComputeType::R64F, (1., &b), (2., &mut c));
        same(&c, &dense(order, &[[2., 4., NAN]; 2], PADDING), "no columns");
        // Without rows of op(A), or without columns of B, nothing is computed.
        let (b, mut c) = (dense(order, &[[1.; 3]; 2], NAN), dense::<f64, 3>(order, &[], PADDING));
        spmm(&a, (T, N), ComputeType::R64F, (1., &b), (2., &mut c));
        let (b, mut c) = (dense::<f64, 0>(order, &[], NAN), dense::<f64, 0>(order, &[[]; 2], PADDING));
        spmm(&a, (N, N), ComputeType::R64F, (1., &b), (2., &mut c));
        same(&c, &dense(order, &[[]; 2], PADDING), "no columns of B");
    }
}

#[test]
fn panels_of_one_matrix() {
    // A 2 × 5 matrix by rows: B is its columns 0 and 1, C its columns 2 and 3, and column 4 is padding; C =
    // A·B with A = [0 2; 3 0].
    let a = csr(PLAIN, (2, 2), [&[0, 1, 2], &[1, 0]], &[2., 3.]);
    let mut values = [1., 2., NAN, NAN, 9., 3., 4., NAN, NAN, 9.];
    let first = super::address_mut(&mut values);
    let b = DenseMatrix {
        rows: 2,
        cols: 2,
        ld: 5,
        values: first,
        value_type: f64::TYPE,
        order: Order::Row,
        writable: true,
    };
    let second = crate::types::Address::new(first.as_ptr::<f64>().wrapping_add(2));
    let c = DenseMatrix { values: second, ..b };
    execute(&plan(&a, (N, N), ComputeType::R64F, &b, &c, Effort::Default), 1., &b, 0., &c).unwrap();
    assert_eq!(values, [1., 2., 6., 8., 9., 3., 4., 3., 6., 9.]);
}

#[test]
fn new_values_and_tuned_effort() {
    let a = csr(PLAIN, (2, 2), [&[0, 1, 2], &[1, 0]], &[2., 3.]);
    for (op_b, effort) in [(N, Effort::Tuned), (T, Effort::Tuned), (N, Effort::Quick)] {
        let (b, c) =
            (dense(Order::Col, &[[1., 2.], [2., 1.]], NAN), dense(Order::Row, &[[NAN; 2]; 2], PADDING));
        let plan = plan(&a, (N, op_b), ComputeType::R64F, &b.matrix, &c.matrix, effort);
        let values = [20., 30.];
        plan.update_values(&handle(), address(&values)).unwrap();
        execute(&plan, 1., &b.matrix, 0., &c.matrix).unwrap();
        same(&c, &dense(Order::Row, &[[40., 20.], [30., 60.]], PADDING), "new values");
    }
}

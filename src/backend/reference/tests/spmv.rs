//! Tests of SpMV against products that were computed by hand.

use half::{bf16, f16};
use num_complex::{Complex32, Complex64};

use super::super::spmv::Spmv;
use super::{
    address, address_mut, analyzed, coo, csc, csr, everywhere, forms, fresh, handle, reference, vector,
    Stored, PLAIN,
};
use crate::backend::DenseExecutor;
use crate::error::{Result, Status};
use crate::memory::{Buffer, Context, Workspace};
use crate::operation::{self, Planned};
use crate::plan::Plan;
use crate::problem::SpmvProblem;
use crate::support::{Combo, Types, F64};
use crate::types::{
    Address, BackendKind, ComputeType, DataType, Effort, Element, IndexBase, LayoutKind, Operation,
};

use Operation::{ConjugateTranspose as C, NonTranspose as N, Transpose as T};

const INF: f64 = f64::INFINITY;
const NAN: f64 = f64::NAN;

fn plan<A>(a: &Stored<A>, op: Operation, compute: ComputeType, x: DataType, y: DataType) -> Plan {
    let types = Types { a: a.matrix.value_type(), x, y, compute };
    let problem = SpmvProblem { op, a: a.matrix, types, value_updates: false };
    analyzed::<operation::Spmv>(&handle(), problem).unwrap()
}

/// Returns the problem y = A · x in fp64.
fn problem64(a: &Stored<f64>) -> SpmvProblem {
    SpmvProblem { op: N, a: a.matrix, types: F64::TYPES, value_updates: false }
}

fn execute<S, X: Element, Y: Element>(plan: &Plan, alpha: S, x: &[X], beta: S, y: &mut [Y]) -> Result<()> {
    let handle = handle();
    plan.prepare(&handle)?;
    let mut out = vector(y);
    out.values = address_mut(y);
    let (alpha, beta) = ([alpha], [beta]);
    let (alpha, beta) = (address(&alpha), address(&beta));
    plan.execute(&handle, "tarsiaSpMV", |planned: &Planned<operation::Spmv>, cx| {
        planned.execute(cx, (alpha, beta), &vector(x), None, &out)
    })
}

/// Computes y = alpha · op(A) · x + beta · y with alpha and beta of the compute type.
fn spmv<A, S, X: Element, Y: Element>(
    a: &Stored<A>,
    op: Operation,
    compute: ComputeType,
    (alpha, x): (S, &[X]),
    (beta, y): (S, &[Y]),
) -> Vec<Y> {
    let mut y = y.to_vec();
    execute(&plan(a, op, compute, X::TYPE, Y::TYPE), alpha, x, beta, &mut y).unwrap();
    y
}

fn spmv64(a: &Stored<f64>, op: Operation, (alpha, x): (f64, &[f64]), (beta, y): (f64, &[f64])) -> Vec<f64> {
    spmv(a, op, ComputeType::R64F, (alpha, x), (beta, y))
}

#[test]
fn every_format_form_and_op() {
    // With x = (1 … 6): rows 0 and 1 are 4 + 10 + 18 = 32 and 16 + 25 + 36 =
    // 77, rows 2 and 3 are 7 + 16 + 27 = 50 and 1 + 0 + 6 = 7.
    // With x = (1 … 4), transposed: columns 21 + 4, 24 + 0, 27 + 8, 1 + 8,
    // 2 + 10, 3 + 12.
    let (x6, x4) = ([1., 2., 3., 4., 5., 6.], [1., 2., 3., 4.]);
    for form in forms() {
        for (name, a) in everywhere(form, |n| n) {
            let note = format!("{name}, {form:?}");
            assert_eq!(spmv64(&a, N, (1., &x6), (0., &[NAN; 4])), [32., 77., 50., 7.], "{note}");
            assert_eq!(spmv64(&a, N, (2., &x6), (-1., &[10.; 4])), [54., 144., 90., 4.], "{note}");
            for op in [T, C] {
                assert_eq!(
                    spmv64(&a, op, (1., &x4), (0., &[NAN; 6])),
                    [25., 24., 35., 9., 12., 15.],
                    "{note}"
                );
                let y = [2., 4., 6., 8., 10., 12.];
                let expected = [-24., -22., -32., -5., -7., -9.];
                assert_eq!(spmv64(&a, op, (-1., &x4), (0.5, &y)), expected, "{note}");
            }
        }
    }
}

#[test]
fn every_value_type() {
    let (x, y, expected) = ([1., 2., 3., 4., 5., 6.], [10.; 4], [54., 144., 90., 4.]);
    fn check<A: Element, S, X: Element, Y: Element>(
        compute: ComputeType,
        a: impl Fn(f64) -> A,
        s: impl Fn(f64) -> S,
        x: (impl Fn(f64) -> X, [f64; 6]),
        y: (impl Fn(f64) -> Y, [f64; 4], [f64; 4]),
    ) {
        for (name, stored) in everywhere(PLAIN, a) {
            let out = spmv(&stored, N, compute, (s(2.), &x.1.map(&x.0)), (s(-1.), &y.1.map(&y.0)));
            assert_eq!(out, y.2.map(&y.0), "{name}, {:?}", Y::TYPE);
        }
    }
    let f32_ = |v: f64| v as f32;
    let f64_ = |v: f64| v;
    let (c32, c64) = (|v: f64| Complex32::new(v as f32, 0.), |v: f64| Complex64::new(v, 0.));
    check(ComputeType::R32F, f32_, f32_, (f32_, x), (f32_, y, expected));
    check(ComputeType::R64F, f32_, f64_, (f64_, x), (f64_, y, expected));
    check(ComputeType::R32F, f16::from_f64, f32_, (f16::from_f64, x), (f16::from_f64, y, expected));
    check(ComputeType::R32F, f16::from_f64, f32_, (f16::from_f64, x), (f32_, y, expected));
    check(ComputeType::R32F, bf16::from_f64, f32_, (bf16::from_f64, x), (bf16::from_f64, y, expected));
    check(ComputeType::R32F, bf16::from_f64, f32_, (bf16::from_f64, x), (f32_, y, expected));
    check(ComputeType::C32F, c32, c32, (c32, x), (c32, y, expected));
    check(ComputeType::C64F, c64, c64, (c64, x), (c64, y, expected));
}

#[test]
fn complex_values_and_conjugates() {
    let c = Complex64::new;
    // A = [1+i, 2; ., 3−2i], x = (1, i).
    // N: (1+i) + 2i = 1+3i; (3−2i)i = 2+3i.
    // T: 1+i; 2 + (3−2i)i = 4+3i.      C: 1−i; 2 + (3+2i)i = 3i.
    let a = csr(PLAIN, (2, 2), [&[0, 2, 3], &[0, 1, 1]], &[c(1., 1.), c(2., 0.), c(3., -2.)]);
    let (x, y) = ([c(1., 0.), c(0., 1.)], [c(1., 0.), c(1., 0.)]);
    let (zero, one, i) = (c(0., 0.), c(1., 0.), c(0., 1.));
    let run = |op, alpha, beta| spmv(&a, op, ComputeType::C64F, (alpha, &x), (beta, &y));
    assert_eq!(run(N, one, zero), [c(1., 3.), c(2., 3.)]);
    assert_eq!(run(T, one, zero), [c(1., 1.), c(4., 3.)]);
    assert_eq!(run(C, one, zero), [c(1., -1.), c(0., 3.)]);
    // i(1+3i) + 1 = −2+i; i(2+3i) + 1 = −2+2i.
    assert_eq!(run(N, i, one), [c(-2., 1.), c(-2., 2.)]);
    // i(1−i) + i = 1+2i; i·3i + i = −3+i.
    assert_eq!(run(C, i, i), [c(1., 2.), c(-3., 1.)]);

    let c = Complex32::new;
    let a = csc(PLAIN, (2, 2), [&[0, 1, 3], &[0, 0, 1]], &[c(1., 1.), c(2., 0.), c(3., -2.)]);
    let (x, y) = ([c(1., 0.), c(0., 1.)], [c(1., 0.), c(1., 0.)]);
    let run = |op| spmv(&a, op, ComputeType::C32F, (c(0., 1.), &x), (c(0., 1.), &y));
    assert_eq!(run(C), [c(1., 2.), c(-3., 1.)]);
}

/// Asserts that two vectors are equal, counting NaN as equal to NaN.
fn same(found: &[f64], expected: &[f64]) {
    let agree = found.iter().zip(expected).all(|(f, e)| f == e || (f.is_nan() && e.is_nan()));
    assert!(agree && found.len() == expected.len(), "{found:?}, expected {expected:?}");
}

#[test]
fn what_is_stored_counts_and_nothing_else() {
    // Only rows 2 and 3 have column 1: 8·Inf and the stored 0·Inf.
    let mut x = [1., 2., 3., 4., 5., 6.];
    for (name, a) in everywhere(PLAIN, |n| n) {
        x[1] = INF;
        same(&spmv64(&a, N, (1., &x), (0., &[NAN; 4])), &[32., 77., INF, NAN]);
        x[1] = NAN;
        same(&spmv64(&a, N, (1., &x), (0., &[NAN; 4])), &[32., 77., NAN, NAN]);
        // Row 3 of A contributes to columns 0, 1 (a stored 0) and 2 only. The untidy CSC stores (3, 0) as 4
        // and −3, each of which is multiplied: Inf − Inf.
        let x4 = [1., 2., 3., INF];
        let first = if name == "untidy CSC" { NAN } else { INF };
        same(&spmv64(&a, T, (1., &x4), (0., &[NAN; 6])), &[first, NAN, INF, 9., 12., 15.]);
    }
}

#[test]
fn factors_of_zero() {
    let x = [1., 2., 3., 4., 5., 6.];
    for (_, a) in everywhere(PLAIN, |_| NAN) {
        // alpha = 0 reads neither A's values nor x; beta = 0 does not read y; both give zeros.
        same(&spmv64(&a, N, (0., &[INF; 6]), (3., &[1., 2., 3., INF])), &[3., 6., 9., INF]);
        same(&spmv64(&a, N, (-0., &[INF; 6]), (0., &[NAN; 4])), &[0.; 4]);
        same(&spmv64(&a, N, (1., &x), (0., &[1.; 4])), &[NAN; 4]);
    }
    for (_, a) in everywhere(PLAIN, |n| n) {
        same(&spmv64(&a, N, (1., &x), (1., &[NAN, 0., INF, -INF])), &[NAN, 77., INF, -INF]);
        // 0.5·Inf + …: y is read since beta is not 0.
        same(&spmv64(&a, N, (1., &x), (0.5, &[INF; 4])), &[INF; 4]);
    }
}

#[test]
fn empty_rows_and_shapes() {
    // Row 1 is empty.
    let a = csr(PLAIN, (3, 2), [&[0, 1, 1, 2], &[0, 1]], &[2., 3.]);
    same(&spmv64(&a, N, (1., &[1., 1.]), (0., &[NAN; 3])), &[2., 0., 3.]);
    same(&spmv64(&a, N, (1., &[INF, 1.]), (2., &[1., 2., 3.])), &[INF, 4., 9.]);
    let none = [0.0; 0];
    for form in forms() {
        // Without columns or entries y = beta · y; without rows nothing is computed.
        for a in [
            csr(form, (2, 0), [&[0, 0, 0], &[]], &none),
            csc(form, (2, 0), [&[], &[]], &none),
            coo(form, (2, 0), [&[], &[]], &none),
        ] {
            same(&spmv64(&a, N, (1., &[]), (3., &[1., 2.])), &[3., 6.]);
            same(&spmv64(&a, N, (1., &[]), (0., &[NAN; 2])), &[0., 0.]);
            same(&spmv64(&a, T, (1., &[1., 1.]), (0., &[])), &[]);
        }
        let a = coo(form, (2, 2), [&[], &[]], &none);
        same(&spmv64(&a, T, (1., &[INF; 2]), (1., &[1., 2.])), &[1., 2.]);
    }
}

#[test]
fn sums_are_wide_and_results_rounded_once() {
    let power = |n: i32| 2_f64.powi(n);
    // 1 + 2⁻¹¹ + 2⁻²⁴ is above the midpoint of 1 and 1 + 2⁻¹⁰ in fp16. It is no f32: rounding to
    // f32 first would give the midpoint, and then 1.
    let row = [1., power(-11), power(-24)].map(f16::from_f64);
    let a = csr(PLAIN, (1, 3), [&[0, 3], &[0, 1, 2]], &row);
    let x = [f16::ONE; 3];
    let y = spmv(&a, N, ComputeType::R32F, (1_f32, &x), (0., &[f16::NAN]));
    assert_eq!(y[0].to_f64(), 1. + power(-10));
    let y = spmv(&a, N, ComputeType::R32F, (1_f32, &x), (0., &[f32::NAN]));
    assert_eq!(f64::from(y[0]), 1. + power(-11));
    // fp16 overflows at 65520 only in the result: 40000 + 40000 − 80000 + 1 = 1.
    let a = csr(PLAIN, (1, 3), [&[0, 3], &[0, 1, 2]], &[40000., 40000., -20000.].map(f16::from_f64));
    let x = [1., 1., 4.].map(f16::from_f64);
    assert_eq!(spmv(&a, N, ComputeType::R32F, (1_f32, &x), (1., &[f16::ONE])), [f16::ONE]);

    let row = [1., power(-8), power(-24)].map(bf16::from_f64);
    let a = csr(PLAIN, (1, 3), [&[0, 3], &[0, 1, 2]], &row);
    let y = spmv(&a, N, ComputeType::R32F, (1_f32, &[bf16::ONE; 3]), (0., &[bf16::NAN]));
    assert_eq!(y[0].to_f64(), 1. + power(-7));

    // 2²⁴ + 1 − 2²⁴: fp32 sums would lose the 1.
    let big = 16_777_216_f32;
    let a = csr(PLAIN, (1, 3), [&[0, 3], &[0, 1, 2]], &[big, 1., -big]);
    assert_eq!(spmv(&a, N, ComputeType::R32F, (1_f32, &[1_f32; 3]), (0., &[0_f32])), [1.]);
}

#[test]
fn new_values_are_read_when_it_executes() {
    let (x, mut y) = ([1., 2., 3., 4., 5., 6.], [0.; 4]);
    for (name, mut a) in everywhere(PLAIN, |n| n) {
        let plan = plan(&a, N, ComputeType::R64F, DataType::R64F, DataType::R64F);
        let twice: Vec<f64> = a.values.iter().map(|v| 2. * v).collect();
        plan.update_values(&handle(), address(&twice)).unwrap();
        a.values.fill(NAN);
        execute(&plan, 1., &x, 0., &mut y).unwrap();
        assert_eq!(y, [64., 154., 100., 14.], "{name}");
    }
}

#[test]
fn a_plan_says_what_it_is() {
    let a = csr(PLAIN, (2, 2), [&[0, 1, 2], &[0, 1]], &[1., 2.]);
    for (effort, value_updates) in [(Effort::Default, false), (Effort::Quick, true), (Effort::Tuned, true)] {
        let (handle, mut y) = (handle(), [0.; 2]);
        let plan = fresh::<operation::Spmv>(&handle, problem64(&a));
        plan.set(|settings| (settings.effort, settings.value_updates) = (effort, value_updates)).unwrap();
        plan.analyze(&handle).unwrap();
        let info = plan.info().unwrap();
        assert_eq!((info.report.layout.kind, info.report.layout.in_place), (LayoutKind::Triplets, false));
        assert_eq!((info.report.layout.fill, info.workspace_bytes), (1., 2 * 8));
        execute(&plan, 1., &[1., 1.], 0., &mut y).unwrap();
        assert_eq!(y, [1., 2.], "{effort:?}");
    }
}

/// Creates an executor without the checks of a plan.
fn executor(cx: &Context, a: &Stored<f64>) -> Spmv {
    Spmv::build(cx, &problem64(a)).unwrap()
}

#[test]
fn what_is_not_needed_is_not_opened() {
    let a = csr(PLAIN, (2, 2), [&[0, 1, 2], &[0, 1]], &[1., 2.]);
    let mut cx = handle().context();
    let mut executor = executor(&cx, &a);
    let workspace = Buffer::<u8>::zeroed(&cx.allocator, executor.workspace_bytes(1)).unwrap();
    let (zero, one) = ([0.0], [1.0]);
    let mut y = [3., 4.];
    let (mut x, mut out) = (vector(&[0.; 2]), vector(&y));
    (x.values, out.values) = (Address::NULL, address_mut(&mut y));
    let short = executor.execute(&cx, address(&zero), &x, address(&one), &out).unwrap_err();
    assert_eq!(short.status, Status::InsufficientResources);
    cx.workspace = Workspace { address: workspace.address(), bytes: workspace.len() };
    let run = |alpha: &[f64; 1], beta: Address| executor.execute(&cx, address(alpha), &x, beta, &out);
    run(&zero, address(&one)).unwrap();
    assert_eq!(y, [3., 4.]);
    assert_eq!(run(&one, address(&zero)).unwrap_err().message, "x: the pointer is NULL");
    assert_eq!(run(&one, Address::NULL).unwrap_err().message, "beta: the pointer is NULL");
    executor.update_values(&cx, Address::NULL).unwrap();
    executor.execute(&cx, address(&zero), &x, address(&zero), &out).unwrap();
    assert_eq!(y, [0., 0.]);
    let error = executor.execute(&cx, address(&one), &x, address(&zero), &out).unwrap_err();
    assert_eq!(error.message, "A: the pointer is NULL");
}

#[test]
fn a_workspace_that_others_used() {
    let a = csr(PLAIN, (2, 2), [&[0, 1, 2], &[0, 1]], &[1., 2.]);
    let (cx, x, y, mut out) = (handle().context(), [1., 1.], [3., 4.], [NAN; 2]);
    let executor = executor(&cx, &a);
    // Buffers have the alignment that a workspace must have.
    let used = Buffer::from_slice(&cx.allocator, &[NAN; 2]).unwrap();
    let workspace = Workspace { address: used.address(), bytes: used.bytes() };
    let cx = Context { workspace, ..cx };
    let (one, two, mut target) = ([1.0], [2.0], vector(&y));
    target.values = address_mut(&mut out);
    for _ in 0..2 {
        executor.execute(&cx, address(&one), &vector(&x), address(&[0.0]), &target).unwrap();
        assert_eq!(out, [1., 2.]);
    }
    executor.execute(&cx, address(&two), &vector(&x), address(&two), &target).unwrap();
    assert_eq!(out, [4., 8.]);
}

#[test]
fn faults_of_the_pattern_stop_analysis() {
    let one = super::Form { base: IndexBase::One, ..PLAIN };
    let a = csr(one, (2, 3), [&[0, 1, 2], &[0, 3]], &[1., 2.]);
    let error = analyzed::<operation::Spmv>(&handle(), problem64(&a)).map(|_| ()).unwrap_err();
    assert_eq!(
        (error.status, error.message.as_str()),
        (Status::InvalidValue, "A: colInd[1] = 4 is outside [1, 3] (positions count from 0)")
    );
}

#[test]
fn memory_limits_are_kept() {
    let a = csr(PLAIN, (2, 2), [&[0, 1, 2], &[0, 1]], &[1., 2.]);
    let handle = handle();
    let plan = fresh::<operation::Spmv>(&handle, problem64(&a));
    // The plan holds two entries of 24 bytes.
    plan.set(|settings| settings.memory_limit = 47).unwrap();
    assert_eq!(plan.analyze(&handle).unwrap_err().status, Status::InsufficientResources);
    plan.set(|settings| settings.memory_limit = 48).unwrap();
    plan.analyze(&handle).unwrap();
    assert_eq!(plan.info().unwrap().plan_bytes, 48);
    assert_eq!(reference().kind(), BackendKind::Reference);
}

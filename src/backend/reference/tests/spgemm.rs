//! Tests of SpGEMM against products that were computed by hand.

use half::{bf16, f16};
use num_complex::{Complex32, Complex64};

use super::{address, analyzed, csc, csr, forms, handle, Form, Stored, PLAIN};
use crate::error::{Result, Status};
use crate::matrix::SparseMatrix;
use crate::operation::{Planned, Spgemm};
use crate::plan::Plan;
use crate::problem::SpgemmProblem;
use crate::support::Types;
use crate::types::{Address, ComputeType, Element, LayoutKind, Operation};

use Operation::{ConjugateTranspose as C, NonTranspose as N, Transpose as T};

/// Format of a matrix: CSR or CSC.
#[derive(Clone, Copy, Debug, PartialEq)]
enum By {
    Rows,
    Columns,
}

const BY: [By; 2] = [By::Rows, By::Columns];

/// ```text
/// A = 1 . 2      B = 4 . 5      A·B = 0 14  5
///     . 3 .          . . 6            . .  18
///                   -2 7 .
/// ```
/// (0, 0) of A·B is 4 − 4, which is stored. There are 2 + 2 products in row 0 and 1 in row 1. With
/// `transposed` the transpose is stored.
fn a<V: Element>(by: By, form: Form, transposed: bool, v: impl Fn(f64) -> V) -> Stored<V> {
    // Rows are in order; columns are untidy: 2 is 5 − 3.
    match (by, transposed) {
        (By::Rows, false) => csr(form, (2, 3), [&[0, 2, 3], &[0, 2, 1]], &[1., 2., 3.].map(v)),
        (By::Rows, true) => csr(form, (3, 2), [&[0, 1, 2, 3], &[0, 1, 0]], &[1., 3., 2.].map(v)),
        (By::Columns, false) => csc(form, (2, 3), [&[0, 1, 2, 4], &[0, 1, 0, 0]], &[1., 3., 5., -3.].map(v)),
        (By::Columns, true) => csc(form, (3, 2), [&[0, 3, 4], &[2, 0, 2, 1]], &[5., 1., -3., 3.].map(v)),
    }
}

fn b<V: Element>(by: By, form: Form, transposed: bool, v: impl Fn(f64) -> V) -> Stored<V> {
    let shape = (3, 3);
    let rows: ([&[i64]; 2], _) = ([&[0, 2, 3, 5], &[2, 0, 2, 0, 1]], [5., 4., 6., -2., 7.]);
    let columns: ([&[i64]; 2], _) = ([&[0, 2, 3, 5], &[0, 2, 2, 0, 1]], [4., -2., 7., 5., 6.]);
    match (by, transposed) {
        (By::Rows, false) => csr(form, shape, rows.0, &rows.1.map(v)),
        (By::Rows, true) => csr(form, shape, columns.0, &columns.1.map(v)),
        (By::Columns, false) => csc(form, shape, columns.0, &columns.1.map(v)),
        (By::Columns, true) => csc(form, shape, rows.0, &rows.1.map(v)),
    }
}

fn plan<V: Element>(
    a: &SparseMatrix,
    b: &SparseMatrix,
    (op_a, op_b): (Operation, Operation),
    compute: ComputeType,
) -> Result<Plan> {
    let types = Types { a: a.value_type(), x: b.value_type(), y: V::TYPE, compute };
    let problem = SpgemmProblem {
        op_a,
        op_b,
        a: *a,
        b: *b,
        types,
        value_updates: false,
        ieee: false,
        sorted_output: true,
    };
    analyzed::<Spgemm>(&handle(), problem)
}

fn symbolic(plan: &Plan) -> i64 {
    plan.modify(&handle(), "tarsiaSpGEMM_symbolic", |planned: &mut Planned<Spgemm>, cx| planned.symbolic(cx))
        .unwrap()
}

fn numeric<S>(plan: &Plan, alpha: S, c: &SparseMatrix) -> Result<()> {
    let alpha = [alpha];
    let alpha = address(&alpha);
    plan.modify(&handle(), "tarsiaSpGEMM_numeric", |planned: &mut Planned<Spgemm>, cx| {
        planned.numeric(cx, alpha, c)
    })
}

/// Allocates an m × n matrix of `nnz` entries with wrong contents.
fn room<V: Element>(by: By, form: Form, (m, n): (i64, i64), nnz: usize, value: V) -> Stored<V> {
    let offsets = vec![55; if by == By::Rows { m } else { n } as usize + 1];
    let (indices, values) = (vec![55; nnz], vec![value; nnz]);
    match by {
        By::Rows => csr(form, (m, n), [&offsets, &indices], &values),
        By::Columns => csc(form, (m, n), [&offsets, &indices], &values),
    }
}

/// Checks C = alpha · A · B of `a` and `b`, in every form and format of C.
fn check_product<V: Element>(plan: &Plan, alpha: f64, v: impl Fn(f64) -> V, s: impl Fn(f64) -> V) {
    assert_eq!(symbolic(plan), 4);
    for form in forms() {
        let base = i64::from(form.base.code());
        for by in BY {
            let c = room(by, form, (2, 3), 4, v(f64::NAN));
            numeric(plan, s(alpha), &c.matrix).unwrap();
            let (offsets, indices, values) = match by {
                By::Rows => (vec![0, 3, 4], [0, 1, 2, 2], [0., 14., 5., 18.]),
                By::Columns => (vec![0, 1, 2, 4], [0, 0, 0, 1], [0., 14., 5., 18.]),
            };
            let based: Vec<i64> = offsets.iter().map(|n| n + base).collect();
            assert_eq!(c.ints[0].numbers(), based, "{by:?} {form:?}");
            assert_eq!(c.ints[1].numbers(), indices.map(|n| n + base), "{by:?} {form:?}");
            assert_eq!(c.values, values.map(|n| v(alpha * n)), "{by:?} {form:?}");
        }
    }
}

#[test]
fn every_format_form_and_op() {
    let ops = [(N, false), (T, true), (C, true)];
    for (form_a, form_b) in forms().into_iter().zip(forms().into_iter().rev()) {
        for (by_a, by_b) in BY.iter().flat_map(|a| BY.map(|b| (*a, b))) {
            for ((op_a, at), (op_b, bt)) in ops.iter().flat_map(|a| ops.map(|b| (*a, b))) {
                let (a, b) = (a(by_a, form_a, at, |v| v), b(by_b, form_b, bt, |v| v));
                let plan = plan::<f64>(&a.matrix, &b.matrix, (op_a, op_b), ComputeType::R64F).unwrap();
                // There are 5 products; 7 where 2 is stored as 5 − 3, since each of these meets a row of two
                // entries.
                let products = if by_a == By::Rows { 5 } else { 7 };
                assert_eq!(plan.info().unwrap().products, products);
                assert_eq!(plan.info().unwrap().report.layout.kind, LayoutKind::Triplets);
                check_product(&plan, -2., |v| v, |s| s);
            }
        }
    }
}

#[test]
fn every_value_type() {
    let product = |f: &dyn Fn(By) -> Plan| BY.map(f);
    let f = |v: f64| v as f32;
    let c = |v: f64| Complex32::new(v as f32, 0.);
    let z = |v: f64| Complex64::new(v, 0.);
    fn make<V: Element, Y: Element>(by: By, compute: ComputeType, v: impl Fn(f64) -> V + Copy) -> Plan {
        // The matrices are leaked, since the plan reads them for as long as it lives.
        let (a, b) =
            (Box::leak(Box::new(a(by, PLAIN, false, v))), Box::leak(Box::new(b(by, PLAIN, false, v))));
        plan::<Y>(&a.matrix, &b.matrix, (N, N), compute).unwrap()
    }
    for plan in product(&|by| make::<f32, f32>(by, ComputeType::R32F, f)) {
        check_product(&plan, 3., f, f);
    }
    for plan in product(&|by| make::<f16, f32>(by, ComputeType::R32F, f16::from_f64)) {
        check_product(&plan, 3., f, f);
    }
    for plan in product(&|by| make::<bf16, f32>(by, ComputeType::R32F, bf16::from_f64)) {
        check_product(&plan, 3., f, f);
    }
    for plan in product(&|by| make::<Complex32, Complex32>(by, ComputeType::C32F, c)) {
        check_product(&plan, 3., c, c);
    }
    for plan in product(&|by| make::<Complex64, Complex64>(by, ComputeType::C64F, z)) {
        check_product(&plan, 3., z, z);
    }
}

#[test]
fn complex_conjugates_of_either_side() {
    let c = Complex64::new;
    // A = [2+i, i], stored as a column for T and C; B = [1+3i; 1], stored as a row for T and C; the numbers
    // are those of SpMM's test.
    let v = [c(2., 1.), c(0., 1.)];
    let (row, column) =
        (csr(PLAIN, (1, 2), [&[0, 2], &[0, 1]], &v), csr(PLAIN, (2, 1), [&[0, 1, 2], &[0, 0]], &v));
    let v = [c(1., 3.), c(1., 0.)];
    let (b, bt) = (csr(PLAIN, (2, 1), [&[0, 1, 2], &[0, 0]], &v), csr(PLAIN, (1, 2), [&[0, 2], &[0, 1]], &v));
    for (a, op_a, b, op_b, expected) in [
        (&row, N, &b, N, c(-1., 8.)),
        (&column, T, &bt, T, c(-1., 8.)),
        (&row, N, &bt, C, c(5., -4.)),
        (&column, C, &b, N, c(5., 4.)),
        (&column, C, &bt, C, c(-1., -8.)),
    ] {
        let plan = plan::<Complex64>(&a.matrix, &b.matrix, (op_a, op_b), ComputeType::C64F).unwrap();
        assert_eq!(symbolic(&plan), 1);
        let out = room(By::Columns, PLAIN, (1, 1), 1, c(0., 0.));
        numeric(&plan, c(0., 1.), &out.matrix).unwrap();
        assert_eq!(out.values, [c(0., 1.) * expected], "{op_a:?} {op_b:?}");
    }
}

#[test]
fn alpha_zero_reads_no_values() {
    let (a, b) = (a(By::Rows, PLAIN, false, |_| f64::NAN), b(By::Rows, PLAIN, false, |_| f64::INFINITY));
    let plan = plan::<f64>(&a.matrix, &b.matrix, (N, N), ComputeType::R64F).unwrap();
    check_product(&plan, 0., |_| 0., |s| s);
}

#[test]
fn values_that_are_not_finite() {
    // A = [0 .; . 1] with the 0 stored, B = [Inf 1; . 2]: 0·Inf is NaN, and row 1 meets no Inf.
    let a = csr(PLAIN, (2, 2), [&[0, 1, 2], &[0, 1]], &[0., 1.]);
    let b = csr(PLAIN, (2, 2), [&[0, 2, 3], &[0, 1, 1]], &[f64::INFINITY, 1., 2.]);
    let plan = plan::<f64>(&a.matrix, &b.matrix, (N, N), ComputeType::R64F).unwrap();
    assert_eq!(symbolic(&plan), 3);
    let c = room(By::Rows, PLAIN, (2, 2), 3, 9_f64);
    numeric(&plan, 1., &c.matrix).unwrap();
    assert!(c.values[0].is_nan());
    assert_eq!(c.values[1..], [0., 2.]);
}

#[test]
fn sums_are_wide() {
    // [2²⁴ 1 −2²⁴]·[1; 1; 1]: fp32 sums would lose the 1.
    let big = 16_777_216_f32;
    let a = csr(PLAIN, (1, 3), [&[0, 3], &[0, 1, 2]], &[big, 1., -big]);
    let b = csr(PLAIN, (3, 1), [&[0, 1, 2, 3], &[0, 0, 0]], &[1_f32; 3]);
    let plan = plan::<f32>(&a.matrix, &b.matrix, (N, N), ComputeType::R32F).unwrap();
    assert_eq!(symbolic(&plan), 1);
    let c = room(By::Rows, PLAIN, (1, 1), 1, 9_f32);
    numeric(&plan, 1_f32, &c.matrix).unwrap();
    assert_eq!(c.values, [1.]);
}

#[test]
fn new_values_of_either_side() {
    let (a, b) = (a(By::Rows, PLAIN, false, |v| v), b(By::Columns, PLAIN, false, |v| v));
    let plan = plan::<f64>(&a.matrix, &b.matrix, (N, N), ComputeType::R64F).unwrap();
    check_product(&plan, 1., |v| v, |s| s);
    let update = |a: Address, b: Address| {
        plan.modify(&handle(), "update", |planned: &mut Planned<Spgemm>, cx| {
            planned.update_values(cx, [("a", a), ("b", b)])
        })
    };
    let (twice, negative) = (a.values.iter().map(|v| 2. * v), b.values.iter().map(|v| -v));
    let (twice, negative): (Vec<f64>, Vec<f64>) = (twice.collect(), negative.collect());
    update(address(&twice), Address::NULL).unwrap();
    check_product(&plan, 1., |v| 2. * v, |s| s);
    update(Address::NULL, address(&negative)).unwrap();
    check_product(&plan, 1., |v| -2. * v, |s| s);
}

#[test]
fn empty_shapes() {
    let shapes = [(0, 0, 0), (2, 0, 3), (0, 2, 3), (2, 3, 0), (2, 2, 2)];
    for (m, k, n) in shapes {
        let zeros = |n: i64| vec![0; n as usize + 1];
        let a = csr::<f64>(PLAIN, (m, k), [&zeros(m), &[]], &[]);
        let b = csc::<f64>(PLAIN, (k, n), [&zeros(n), &[]], &[]);
        let plan = plan::<f64>(&a.matrix, &b.matrix, (N, N), ComputeType::R64F).unwrap();
        assert_eq!((symbolic(&plan), plan.info().unwrap().products), (0, 0));
        for by in BY {
            let c = room(by, PLAIN, (m, n), 0, 0.);
            numeric(&plan, 1., &c.matrix).unwrap();
            let major = if by == By::Rows { m } else { n };
            if major > 0 {
                assert_eq!(c.ints[0].numbers(), zeros(major));
            }
        }
    }
}

#[test]
fn faults_name_a_or_b() {
    let good = csr(PLAIN, (2, 2), [&[0, 1, 2], &[0, 1]], &[1., 2.]);
    let bad = csc(PLAIN, (2, 2), [&[0, 1, 2], &[0, 2]], &[1., 2.]);
    for (a, b, name) in [(&bad, &good, "A"), (&good, &bad, "B")] {
        let error = plan::<f64>(&a.matrix, &b.matrix, (N, N), ComputeType::R64F).map(|_| ()).unwrap_err();
        assert_eq!(error.status, Status::InvalidValue);
        assert_eq!(error.message, format!("{name}: rowInd[1] = 2 is outside [0, 1]"));
    }
}

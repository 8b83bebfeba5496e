//! Tests of what the API promises about special numbers and rounding, on small matrices with results that can
//! be computed by hand.

use crate::common::number::{Bf16, Bf16F32, Tf32, C64, F16, F16F32, F32, F32F64, F64};
use client::{Plan, Session};
use half::{bf16, f16};
use tarsia::facade::{Format, IndexBase, OpKind, Operation, Order, SpgemmAlg, SpmmAlg, SpmvAlg};

use super::cases::types_of;
use crate::common::dense::Dense;
use crate::common::number::factor;
use crate::common::number::{Numbers, Value, Wide};
use crate::common::output::{Output, Target};
use crate::common::pattern::{Pattern, Style, Widths};
use crate::common::staged::Staging;
use crate::common::{backend, backends, ensure, raw, with_types, Outcome};
use testkit::sparse_product;

const INF: f64 = f64::INFINITY;
const NAN: f64 = f64::NAN;

/// Returns a small matrix in every format, with the same entries in the same order.
fn in_every_format(shape: (usize, usize), places: &[(usize, usize)]) -> Vec<Pattern> {
    let style = |format: &Format| Style { format: *format, ..Style::PLAIN };
    let has_arrays = |format: &&Format| **format != Format::Tile;
    Format::ALL.iter().filter(has_arrays).map(|format| Pattern::new(style(format), shape, places)).collect()
}

/// Converts numbers to values.
fn of<V: Value>(numbers: &[f64]) -> Vec<V> {
    numbers.iter().map(|&re| V::narrow(V::Wide::new(re, 0.0))).collect()
}

/// Problem y = alpha · A · x + beta · y with its expected result.
struct Problem<'a> {
    shape: (usize, usize),
    /// Entries (row, column, value), row by row.
    entries: &'a [(usize, usize, f64)],
    alpha: f64,
    beta: f64,
    x: &'a [f64],
    y: &'a [f64],
    expected: &'a [f64],
}

impl Problem<'_> {
    /// Checks that the result is exactly the expected one in every format and on every backend, by SpMV, by
    /// SpMM with equal columns, and by both without a plan.
    fn check<C: Numbers>(&self) {
        let places: Vec<_> = self.entries.iter().map(|&(row, col, _)| (row, col)).collect();
        for pattern in in_every_format(self.shape, &places) {
            // CSC stores entries by columns, so the values are permuted.
            let mut order: Vec<usize> = (0..places.len()).collect();
            if pattern.style.format == Format::Csc {
                order.sort_by_key(|&at| places[at].1);
            }
            let values: Vec<f64> = order.iter().map(|&at| self.entries[at].2).collect();
            if let Err(error) = self.run::<C>(&pattern, &of(&values)) {
                panic!("{} in {}: {error}", C::TYPES.describe(), pattern.style.format.short());
            }
        }
    }

    fn same<Y: Value>(&self, what: &str, found: &[Y]) -> Outcome {
        let expected: Vec<Y> = of(self.expected);
        for (at, (found, expected)) in found.iter().zip(&expected).enumerate() {
            let (a, b) = (found.widen(), expected.widen());
            let both_are_nan = a.parts()[0].is_nan() && b.parts()[0].is_nan();
            ensure!(a == b || both_are_nan, "{what}: y[{at}] = {found:?}, expected {expected:?}");
        }
        Ok(())
    }

    fn run<C: Numbers>(&self, pattern: &Pattern, values: &[C::A]) -> Outcome {
        let (alpha, beta) = (of::<C::S>(&[self.alpha])[0], of::<C::S>(&[self.beta])[0]);
        let (x, y): (Vec<C::X>, Vec<C::Y>) = (of(self.x), of(self.y));
        let (compute, op) = (C::TYPES.compute, Operation::NonTranspose);
        for backend in backends() {
            let name = |what: &str| format!("{what} on {}", backend.c_name());
            let session = Session::new(backend)?;
            let stored = pattern.store(backend, values);
            let a = stored.open()?;
            if C::TYPES != <Tf32 as Numbers>::TYPES {
                let plan = Plan::spmv(&session, op, &a, (C::TYPES.x, C::TYPES.y), compute, SpmvAlg::Default)?;
                plan.analyze(&session)?;
                let mut found = y.clone();
                plan.spmv(&session, alpha, &x, beta, &mut found)?;
                self.same(&name("SpMV"), &found)?;
                let mut found = y.clone();
                raw::spmv_once(&session, op, (alpha, beta), &a, &x, &mut found, compute)?;
                self.same(&name("SpMV_once"), &found)?;
            }
            for (n, order) in [(1, Order::Col), (9, Order::Row), (33, Order::Row), (9, Order::Col)] {
                let mut b: Dense<C::X> = Dense::new((x.len(), n), order, 1);
                b.fill(|i, _| x[i]);
                let mut c: Dense<C::Y> = Dense::new((y.len(), n), order, 1);
                c.fill(|i, _| y[i]);
                let (ops, types, mut once) = ((op, op), (C::TYPES.x, C::TYPES.y), c.clone());
                let plan = Plan::spmm(
                    &session,
                    ops,
                    &a,
                    (order, order),
                    n as i64,
                    types,
                    compute,
                    SpmmAlg::Default,
                )?;
                plan.analyze(&session)?;
                plan.spmm(&session, alpha, &b, beta, &mut c)?;
                raw::spmm_once(&session, ops, (alpha, beta), &a, &b, &mut once, compute)?;
                for j in 0..n {
                    let column = |c: &Dense<C::Y>| (0..y.len()).map(|i| c.get(i, j)).collect::<Vec<_>>();
                    self.same(&name(&format!("SpMM, column {j} of {n}")), &column(&c))?;
                    self.same(&name(&format!("SpMM_once, column {j} of {n}")), &column(&once))?;
                }
            }
        }
        Ok(())
    }

    /// Checks the result with all real types that SpMV or SpMM supports.
    fn check_real(&self) {
        for op in [OpKind::Spmv, OpKind::Spmm] {
            for types in types_of(op).into_iter().filter(|types| !types.a.is_complex()) {
                with_types!(types, C => self.check::<C>());
            }
        }
    }
}

/// Matrix with rows of 3, 0, 1 and 5 entries, without entries in columns 0, 3 and 7.
const SPARSE: [(usize, usize, f64); 9] = [
    (0, 1, 2.0),
    (0, 2, -1.0),
    (0, 4, 0.5),
    (2, 5, 4.0),
    (3, 1, 1.0),
    (3, 2, 0.0),
    (3, 4, -2.0),
    (3, 5, 1.5),
    (3, 6, 3.0),
];

fn sparse<'a>(x: &'a [f64; 8], y: &'a [f64; 4], expected: &'a [f64; 4]) -> Problem<'a> {
    Problem { shape: (4, 8), entries: &SPARSE, alpha: 1.0, beta: 0.0, x, y, expected }
}

#[test]
fn what_is_not_stored_never_contributes() {
    sparse(&[INF, 1.0, 2.0, NAN, 4.0, 8.0, 16.0, -INF], &[NAN; 4], &[2.0, 0.0, 32.0, 53.0]).check_real();
}

#[test]
fn what_is_stored_contributes_even_if_it_is_zero() {
    // Column 2 holds −1 in row 0 and a stored 0 in row 3.
    sparse(&[1.0, 1.0, INF, 1.0, 4.0, 8.0, 16.0, 1.0], &[NAN; 4], &[-INF, 0.0, 32.0, NAN]).check_real();
    sparse(&[1.0, 1.0, NAN, 1.0, 4.0, 8.0, 16.0, 1.0], &[NAN; 4], &[NAN, 0.0, 32.0, NAN]).check_real();
}

#[test]
fn beta_zero_does_not_read_y_and_empty_rows_are_written() {
    let x = [1.0; 8];
    sparse(&x, &[NAN, INF, -INF, 7.0], &[1.5, 0.0, 4.0, 3.5]).check_real();
    // A beta of −0 is 0, too.
    Problem { beta: -0.0, ..sparse(&x, &[NAN; 4], &[1.5, 0.0, 4.0, 3.5]) }.check_real();
    // With any other beta, y is read.
    Problem { beta: 2.0, ..sparse(&x, &[NAN, 3.0, -INF, 0.5], &[NAN, 6.0, -INF, 4.5]) }.check_real();
}

#[test]
fn alpha_zero_reads_neither_a_nor_x() {
    let entries = SPARSE.map(|(row, col, _)| (row, col, NAN));
    let x = [NAN, INF, NAN, INF, NAN, INF, NAN, INF];
    for alpha in [0.0, -0.0] {
        let problem = |beta, y: &'static [f64; 4], expected: &'static [f64; 4]| Problem {
            alpha,
            beta,
            entries: &entries,
            ..sparse(&x, y, expected)
        };
        problem(0.0, &[NAN; 4], &[0.0; 4]).check_real();
        problem(1.0, &[1.5, -2.0, INF, NAN], &[1.5, -2.0, INF, NAN]).check_real();
        problem(-0.5, &[1.5, -2.0, -INF, 0.25], &[-0.75, 1.0, INF, -0.125]).check_real();
    }
}

#[test]
fn duplicates_add_up_one_by_one() {
    // 2 and −2 cancel only after each has been multiplied.
    let entries = [(0, 1, 2.0), (0, 1, -2.0), (0, 0, 1.0), (1, 0, 0.25), (1, 0, 0.25)];
    let problem = |x, expected| Problem {
        shape: (2, 2),
        entries: &entries,
        alpha: 1.0,
        beta: 0.0,
        x,
        y: &[NAN; 2],
        expected,
    };
    problem(&[4.0, 3.0], &[4.0, 2.0]).check_real();
    problem(&[4.0, INF], &[NAN, 2.0]).check_real();
}

/// Checks the result of one row of `count` entries, the first of which is `first` and the others 1, times a
/// vector of `x`.
fn row_sum<C: Numbers>(count: usize, first: f64, x: f64, beta: f64, y: f64, expected: f64) {
    let value = |at| if at == 0 { first } else { 1.0 };
    let entries: Vec<_> = (0..count).map(|at| (0, at, value(at))).collect();
    let problem = Problem {
        shape: (1, count),
        entries: &entries,
        alpha: 1.0,
        beta,
        x: &vec![x; count],
        y: &[y],
        expected: &[expected],
    };
    problem.check::<C>();
}

#[test]
fn half_types_sum_in_32_bits() {
    // In fp16 2048 + 1 is 2048, in bf16 256 + 1 is 256.
    row_sum::<F16>(2049, 2048.0, 1.0, 0.0, NAN, 4096.0);
    row_sum::<F16F32>(2050, 2048.0, 1.0, 0.0, NAN, 4097.0);
    row_sum::<Bf16>(257, 256.0, 1.0, 0.0, NAN, 512.0);
    row_sum::<Bf16F32>(258, 256.0, 1.0, 0.0, NAN, 513.0);
}

#[test]
fn half_types_round_once() {
    // 2048 + 1 is a tie that rounds down to even, and beta · y = 0.5 more makes it round up. If it were
    // rounded before y is added, the sum would be 2048 + 0.5, which is 2048.
    row_sum::<F16>(2, 2048.0, 1.0, 0.5, 1.0, 2050.0);
    row_sum::<Bf16>(2, 256.0, 1.0, 0.5, 1.0, 258.0);
    assert_eq!(
        (f16::from_f32(2049.0), bf16::from_f32(257.0)),
        (f16::from_f32(2048.0), bf16::from_f32(256.0))
    );
}

#[test]
fn nothing_is_computed_in_fewer_bits_than_asked_for() {
    // A factor rounded to TF32 (11 bits) loses its small term, and so does an fp64 factor in an fp32 sum.
    let (single, double) = (1.0 + f64::powi(2.0, -20), 1.0 + f64::powi(2.0, -50));
    row_sum::<F32>(1, single, single, 0.0, NAN, f64::from((single * single) as f32));
    row_sum::<F32F64>(1, single, double, 0.0, NAN, single * double);
    row_sum::<F64>(1, double, double, 0.0, NAN, double * double);
    // 2^40 + 1 needs a sum in 64 bits.
    row_sum::<F32F64>(2, f64::powi(2.0, 40), 1.0, 0.0, NAN, f64::powi(2.0, 40) + 1.0);
}

#[test]
fn complex_numbers_are_conjugated_where_op_says() {
    let i = <C64 as Numbers>::Wide::new(0.0, 1.0);
    // A = [1 + 2i, 3i], x = (1 + i).
    let values = [i + i + 1.0, i * 3.0];
    let x = [i + 1.0];
    for pattern in in_every_format((1, 2), &[(0, 0), (0, 1)]) {
        for backend in backends() {
            for (op, expected) in [
                (Operation::Transpose, [i * 3.0 - 1.0, i * 3.0 - 3.0]),
                (Operation::ConjugateTranspose, [i * -1.0 + 3.0, i * -3.0 + 3.0]),
            ] {
                let session = Session::new(backend).unwrap();
                let stored = pattern.store(backend, &values);
                let a = stored.open().unwrap();
                let (c64, compute) = (<C64 as Numbers>::TYPES.y, <C64 as Numbers>::TYPES.compute);
                let plan = Plan::spmv(&session, op, &a, (c64, c64), compute, SpmvAlg::Default).unwrap();
                plan.analyze(&session).unwrap();
                let mut y = [i * NAN; 2];
                plan.spmv(&session, i * 0.0 + 1.0, &x, i * 0.0, &mut y).unwrap();
                assert_eq!(y, expected, "{} of {:?}", op.c_name(), pattern.style.format);
            }
        }
    }
}

#[test]
fn spgemm_keeps_entries_that_cancel() {
    // [1 1] · [1 −1]ᵀ is a stored 0.
    let a = Pattern::new(Style::PLAIN, (1, 2), &[(0, 0), (0, 1)]);
    let b = Pattern::new(Style::PLAIN, (2, 1), &[(0, 0), (1, 0)]);
    let compute = <F64 as Numbers>::TYPES.compute;
    for backend in backends() {
        let session = Session::new(backend).unwrap();
        let (left, right) = (a.store(backend, &[1.0, 1.0]), b.store(backend, &[1.0, -1.0]));
        let (left, right) = (left.open().unwrap(), right.open().unwrap());
        let ops = (Operation::NonTranspose, Operation::NonTranspose);
        let plan = Plan::spgemm(&session, ops, &left, &right, compute, SpgemmAlg::Default).unwrap();
        plan.analyze(&session).unwrap();
        assert_eq!(plan.symbolic(&session).unwrap(), 1);
        let target = Target { format: Format::Csr, widths: Widths::Narrow, base: IndexBase::One };
        let mut c = Output::<f64>::new(target, (1, 1), 1);
        c.compute(&session, &plan, 1.0).unwrap();
        assert_eq!((c.offsets.to_vec(), c.indices.to_vec(), c.values), (vec![1, 2], vec![1], vec![0.0]));
    }
}

/// SpGEMM with column numbers that do not fit 32 bits. (The reference is not tested: it stores a number for
/// every column, for which there is no memory.)
#[test]
fn spgemm_takes_matrices_wider_than_32_bits() {
    let cols = (1_usize << 33) + 5;
    let style = Style { widths: Widths::Wide, base: IndexBase::One, ..Style::PLAIN };
    let a = Pattern::new(style, (3, 4), &[(0, 3), (0, 0), (2, 1), (2, 3), (2, 1)]);
    let places = [(0, 7), (0, cols - 1), (1, 1 << 32), (1, 3), (3, cols - 1), (3, 1 << 31), (3, 3)];
    let b = Pattern::new(style, (4, cols), &places);
    let a_values = [0.1, 0.2, 0.3, 0.4, 0.5];
    let b_values = [1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7];
    let op = Operation::NonTranspose;
    let expected = sparse_product(&factor(&a.entries(), &a_values, op), &factor(&b.entries(), &b_values, op));

    let session = Session::new(backend()).unwrap();
    let (left, right) = (a.store(backend(), &a_values), b.store(backend(), &b_values));
    let (left, right) = (left.open().unwrap(), right.open().unwrap());
    let compute = <F64 as Numbers>::TYPES.compute;
    let plan = Plan::spgemm(&session, (op, op), &left, &right, compute, SpgemmAlg::Default).unwrap();
    plan.analyze(&session).unwrap();
    let nnz = plan.symbolic(&session).unwrap() as usize;
    for base in [IndexBase::Zero, IndexBase::One] {
        let target = Target { format: Format::Csr, widths: Widths::Wide, base };
        let mut c = Output::<f64>::new(target, (3, cols), nnz);
        c.compute(&session, &plan, 1.0).unwrap();
        c.verify::<F64>(backend(), &expected).unwrap();
    }
}

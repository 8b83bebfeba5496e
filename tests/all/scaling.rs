//! Tests that y = alpha · (A · x) + beta · y is computed as written: alpha multiplies the whole sum, once.
//! Products of alpha and a part of a sum may overflow when the whole does not, and empty rows have a sum,
//! too.

use crate::common::number::{F16F32, F32, F64};
use bytemuck::Pod;
use client::{DenseLayout, Plan, Scalar, Session, Sparse};
use tarsia::facade::{Effort, Element, IndexBase, Operation, Order, SpmmAlg, SpmvAlg, Types};

use crate::common::backend;
use crate::common::number::Numbers;
use crate::common::staged::upload;

const N: Operation = Operation::NonTranspose;
/// Number of rows and columns of A.
const SIDE: usize = 200;
/// Distance of empty rows: every fifth row is empty.
const EMPTY: usize = 5;

/// Matrix whose rows have as many entries `huge` as `-huge`, so that sums are exact in any order: row 0 is
/// full, and the others have two to sixteen entries or none.
struct CsrArrays<V> {
    offsets: Vec<i32>,
    columns: Vec<i32>,
    values: Vec<V>,
}

impl<V: Copy> CsrArrays<V> {
    fn new(huge: V, minus_huge: V) -> Self {
        let mut out = CsrArrays { offsets: vec![0], columns: Vec::new(), values: Vec::new() };
        for row in 0..SIDE {
            let count = match row {
                0 => SIDE,
                _ if row % EMPTY == 1 => 0,
                _ => 2 + 2 * (row % 8),
            };
            // Columns are far apart, so that algorithms which divide columns have them in several parts.
            let mut columns: Vec<_> = (0..count).map(|at| ((row + at * 53) % SIDE) as i32).collect();
            columns.sort_unstable();
            out.values.extend((0..count).map(|at| if at % 2 == 0 { huge } else { minus_huge }));
            out.columns.extend(columns);
            out.offsets.push(out.columns.len() as i32);
        }
        out
    }
}

/// Returns alpha, beta, and the expected value of all rows whose old value is 3.0 (`NAN` for any NaN).
fn cases<S: Copy>(huge: S, numbers: [S; 3]) -> [(S, S, f64); 4] {
    let [zero, one, infinity] = numbers;
    [(huge, zero, 0.0), (huge, one, 3.0), (infinity, zero, f64::NAN), (infinity, one, f64::NAN)]
}

fn check(what: &str, found: impl Iterator<Item = f64>, expected: f64) {
    for (at, found) in found.enumerate() {
        let same = found == expected || found.is_nan() && expected.is_nan();
        assert!(same, "{what}, element {at}: {found:e} instead of {expected:e}");
    }
}

/// Tests products whose alpha · huge overflows. `values` are huge, −huge and 1 in A's type.
fn products<A, S>(types: Types, values: [A; 3], alpha: S, numbers: [S; 3])
where
    A: Element + Pod,
    S: Scalar + Element + Pod + Into<f64> + From<f32>,
{
    let (kind, session) = (backend(), Session::new(backend()).unwrap());
    let [huge, minus_huge, one] = values;
    let a = CsrArrays::new(huge, minus_huge);
    let (offsets, columns) = (upload(kind, &a.offsets), upload(kind, &a.columns));
    let stored = upload(kind, &a.values);
    let shape = (SIDE as i64, SIDE as i64);
    let descr = Sparse::csr(shape, &offsets, &columns, &stored, IndexBase::Zero).unwrap();
    let cases = cases(alpha, numbers);
    let three = S::from(3.0);
    let mut tested = 0;
    for &alg in SpmvAlg::ALL {
        let Ok(plan) = Plan::spmv(&session, N, &descr, (types.x, types.y), types.compute, alg) else {
            continue;
        };
        plan.analyze(&session).unwrap();
        let x = upload(kind, &[one; SIDE]);
        for (alpha, beta, expected) in cases {
            let what = format!("SpMV {alg:?}, {}, alpha {alpha:?}, beta {beta:?}", types.describe());
            let mut y = upload(kind, &[three; SIDE]);
            plan.run_spmv(&session, alpha, &x, beta, &mut y).unwrap();
            session.synchronize().unwrap();
            check(&what, y.download().unwrap().into_iter().map(Into::into), expected);
        }
        tested += 1;
    }
    assert!(tested >= 3, "{}", types.describe());
    for &alg in SpmmAlg::ALL {
        for (deterministic, n) in [(false, 1), (false, 5), (false, 40), (true, 40)] {
            for order in [Order::Row, Order::Col] {
                session.set_deterministic(deterministic).unwrap();
                let orders = (order, order);
                let of = (types.x, types.y);
                let plan = Plan::spmm(&session, (N, N), &descr, orders, n, of, types.compute, alg);
                let Ok(plan) = plan else { continue };
                plan.set_effort(Effort::Default).unwrap();
                plan.analyze(&session).unwrap();
                let ld = if order == Order::Row { n } else { SIDE as i64 };
                let dense = DenseLayout { rows: SIDE as i64, cols: n, ld, order };
                let b = upload(kind, &vec![one; SIDE * n as usize]);
                for (alpha, beta, expected) in cases {
                    let of = types.describe();
                    let what =
                        format!("SpMM {alg:?}, {of}, n {n}, {order:?}, alpha {alpha:?}, beta {beta:?}");
                    let mut c = upload(kind, &vec![three; SIDE * n as usize]);
                    plan.run_spmm(&session, alpha, (&b, dense), beta, (&mut c, dense)).unwrap();
                    session.synchronize().unwrap();
                    check(&what, c.download().unwrap().into_iter().map(Into::into), expected);
                }
                tested += 1;
            }
        }
    }
    assert!(tested >= 30, "{}", types.describe());
}

#[test]
fn alpha_multiplies_sums_of_doubles_once() {
    let huge = 664_f64.exp2();
    products(F64::TYPES, [huge, -huge, 1.0], huge, [0.0, 1.0, f64::INFINITY]);
}

#[test]
fn alpha_multiplies_sums_of_singles_once() {
    let huge = 100_f32.exp2();
    products(F32::TYPES, [huge, -huge, 1.0], huge, [0.0, 1.0, f32::INFINITY]);
}

#[test]
fn alpha_multiplies_sums_of_halves_once() {
    let huge = half::f16::from_f32(4096.0);
    let one = half::f16::ONE;
    products(F16F32::TYPES, [huge, -huge, one], 120_f32.exp2(), [0.0, 1.0, f32::INFINITY]);
}

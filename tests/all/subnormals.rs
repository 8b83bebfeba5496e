//! Tests with subnormal fp16 factors: the error bounds that the header states at TARSIA_COMPUTE_32F hold for
//! every algorithm. When tensor cores align the products that they sum, a subnormal factor counts as 2^-14;
//! elsewhere bounds follow from its true magnitude.

use client::{Plan, Session, Sparse};
use half::f16;
use matrices::SplitMix64;
use tarsia::facade::{BackendKind, ComputeType, DataType, IndexBase, Operation, Order, SpmmAlg, SpmvAlg};

use crate::common::backend;
use crate::common::dense::Dense;
use crate::common::staged::Staging;

const N: Operation = Operation::NonTranspose;
/// Number of rows and columns of A, whose blocks are dense enough for every algorithm to use its usual
/// kernels.
const SIDE: usize = 512;

/// Range of fp16 numbers: (least, greatest) bit pattern without the sign.
type Kind = (u64, u64);
const TINY: Kind = (1, 3);
const SUBNORMAL: Kind = (1, 0x3ff);
/// Numbers from 2^-14 to below 2^11.
const WIDE: Kind = (0x0400, 0x65ff);
/// All numbers below 1, subnormal or not.
const BELOW_1: Kind = (1, 0x3bff);

fn values(count: usize, (least, greatest): Kind, rng: &mut SplitMix64) -> Vec<f16> {
    let value = |word: u64| {
        let magnitude = least + (word >> 1) % (greatest - least + 1);
        f16::from_bits(magnitude as u16 | ((word & 1) << 15) as u16)
    };
    (0..count).map(|_| value(rng.next_u64())).collect()
}

/// Exact value of one element of a result, and sum of magnitudes for its bound.
#[derive(Clone, Copy, Default)]
struct Expected {
    value: f64,
    magnitude: f64,
}

struct SubnormalMatrix {
    offsets: Vec<i32>,
    columns: Vec<i32>,
    values: Vec<f16>,
    entries: usize,
}

impl SubnormalMatrix {
    /// Creates a matrix with `entries` entries per row, among 64 columns that each 64 rows share.
    fn new(entries: usize, kind: Kind, rng: &mut SplitMix64) -> Self {
        let offsets = (0..=SIDE).map(|row| (row * entries) as i32).collect();
        let mut columns = Vec::new();
        for row in 0..SIDE {
            // Some of the 64 columns, in ascending order.
            let mut left = entries as u64;
            for column in 0..64_u64 {
                if left > 0 && rng.next_u64() % (64 - column) < left {
                    columns.push((row / 64 * 64) as i32 + column as i32);
                    left -= 1;
                }
            }
        }
        let values = values(SIDE * entries, kind, rng);
        SubnormalMatrix { offsets, columns, values, entries }
    }

    /// Computes (A · b)_row for one column b, with every factor's magnitude as `counted` returns it.
    fn row(&self, row: usize, b: impl Fn(usize) -> f16, counted: fn(f64) -> f64) -> Expected {
        let mut out = Expected::default();
        for at in row * self.entries..(row + 1) * self.entries {
            let (a, b) = (self.values[at].to_f64(), b(self.columns[at] as usize).to_f64());
            // The sum is exact: products have 22 bits, and these few of them are within 2^±48.
            out.value += a * b;
            out.magnitude += counted(a.abs()) * counted(b.abs());
        }
        out
    }

    /// Returns the header's bound: 3 (n + 2) 2^-23 times the sum of magnitudes.
    fn bound(&self, expected: Expected) -> f64 {
        3.0 * (self.entries + 2) as f64 * (-23_f64).exp2() * expected.magnitude
    }
}

/// Returns the function by which an algorithm counts a factor's magnitude in the bound.
fn counting(on_tensor_cores: bool) -> fn(f64) -> f64 {
    if on_tensor_cores && backend() == BackendKind::Cuda {
        |factor| if factor == 0.0 { 0.0 } else { factor.max((-14_f64).exp2()) }
    } else {
        |factor| factor
    }
}

const KINDS: &[(Kind, Kind)] =
    &[(TINY, WIDE), (WIDE, TINY), (SUBNORMAL, WIDE), (BELOW_1, BELOW_1), (SUBNORMAL, SUBNORMAL)];

/// Checks all elements of a result; the error describes the first wrong one.
fn check(
    what: &str,
    found: impl Iterator<Item = (f32, Expected)>,
    bound: impl Fn(Expected) -> f64,
    stored: impl Fn(f64) -> f64,
) {
    for (at, (found, expected)) in found.enumerate() {
        let (error, allowed) = ((f64::from(found) - expected.value).abs(), bound(expected));
        assert!(
            error <= allowed + stored(expected.value),
            "{what}, element {at}: {found:e} instead of {:e}, off by {error:e}, allowed {allowed:e}",
            expected.value
        );
    }
}

/// Returns the error bound of rounding to fp16 when a result is stored.
fn rounding(value: f64) -> f64 {
    (value.abs() * (-10_f64).exp2()).max((-24_f64).exp2())
}

#[test]
fn spmv_with_subnormal_halves_keeps_its_bound() {
    let session = Session::new(backend()).unwrap();
    let mut rng = SplitMix64::new(13);
    for entries in [1, 3, 16] {
        for &(of_a, of_x) in KINDS {
            let a = SubnormalMatrix::new(entries, of_a, &mut rng);
            let x = values(SIDE, of_x, &mut rng);
            let arrays = (session.upload(&a.offsets).unwrap(), session.upload(&a.columns).unwrap());
            let stored = session.upload(&a.values).unwrap();
            let shape = (SIDE as i64, SIDE as i64);
            let descr = Sparse::csr(shape, &arrays.0, &arrays.1, &stored, IndexBase::Zero).unwrap();
            for &alg in SpmvAlg::ALL {
                let tensor = matches!(alg, SpmvAlg::Default | SpmvAlg::Dasp);
                let counted = counting(tensor);
                let expected: Vec<_> = (0..SIDE).map(|row| a.row(row, |at| x[at], counted)).collect();
                let types = (DataType::R16F, DataType::R32F);
                let plan = Plan::spmv(&session, N, &descr, types, ComputeType::R32F, alg).unwrap();
                plan.analyze(&session).unwrap();
                let mut y = vec![f32::NAN; SIDE];
                plan.spmv(&session, 1.0_f32, &x, 0.0, &mut y).unwrap();
                let what = format!("{} {entries} entries {of_a:?} {of_x:?}", alg.c_name());
                check(&what, y.into_iter().zip(expected), |e| a.bound(e), |_| 0.0);
            }
        }
    }
}

#[test]
fn spmm_with_subnormal_halves_keeps_its_bound() {
    let session = Session::new(backend()).unwrap();
    let mut rng = SplitMix64::new(14);
    for entries in [1, 3, 16] {
        for &(of_a, of_b) in KINDS {
            let a = SubnormalMatrix::new(entries, of_a, &mut rng);
            let arrays = (session.upload(&a.offsets).unwrap(), session.upload(&a.columns).unwrap());
            let stored = session.upload(&a.values).unwrap();
            let shape = (SIDE as i64, SIDE as i64);
            let descr = Sparse::csr(shape, &arrays.0, &arrays.1, &stored, IndexBase::Zero).unwrap();
            // Each number of columns has kernels of its own.
            for columns in [8, 32, 128] {
                let mut b = Dense::<f16>::new((SIDE, columns), Order::Row, 0);
                let numbers = values(SIDE * columns, of_b, &mut rng);
                b.fill(|i, j| numbers[i * columns + j]);
                for &alg in SpmmAlg::ALL {
                    // `swift` does not support halves.
                    if alg == SpmmAlg::Swift {
                        continue;
                    }
                    let tensor =
                        matches!(alg, SpmmAlg::Default | SpmmAlg::Window | SpmmAlg::Smat | SpmmAlg::Dense);
                    let counted = counting(tensor);
                    let expected: Vec<_> = (0..SIDE * columns)
                        .map(|at| a.row(at / columns, |k| numbers[k * columns + at % columns], counted))
                        .collect();
                    let what = format!("{} N = {columns}, {entries} entries {of_a:?} {of_b:?}", alg.c_name());
                    let plan = |c| {
                        let (orders, types) = ((Order::Row, Order::Row), (DataType::R16F, c));
                        let n = columns as i64;
                        let compute = ComputeType::R32F;
                        let plan = Plan::spmm(&session, (N, N), &descr, orders, n, types, compute, alg);
                        let plan = plan.unwrap();
                        plan.analyze(&session).unwrap();
                        plan
                    };
                    let mut c = Dense::<f32>::new((SIDE, columns), Order::Row, 0);
                    plan(DataType::R32F).spmm(&session, 1.0_f32, &b, 0.0, &mut c).unwrap();
                    let found = (0..SIDE * columns).map(|at| c.get(at / columns, at % columns));
                    check(&what, found.zip(expected.iter().copied()), |e| a.bound(e), |_| 0.0);
                    let mut c = Dense::<f16>::new((SIDE, columns), Order::Row, 0);
                    plan(DataType::R16F).spmm(&session, 1.0_f32, &b, 0.0, &mut c).unwrap();
                    let found = (0..SIDE * columns).map(|at| c.get(at / columns, at % columns).to_f32());
                    // Elements that overflow fp16 are not compared.
                    let finite = found.zip(expected).filter(|(_, expected)| expected.value.abs() < 65_000.0);
                    check(&what, finite, |e| a.bound(e), rounding);
                }
            }
        }
    }
}

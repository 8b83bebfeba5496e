//! Errors of products in single precision against their bounds, by TARSIA_COMPUTE_32F and by
//! TARSIA_COMPUTE_32F_PEDANTIC. `cargo test --release --test all -- --nocapture precision::` prints the
//! histograms of docs/algorithms/window.md, on a device where there is one.

use client::{DenseLayout, Plan, Session, Sparse};
use matrices::SplitMix64;
use tarsia::facade::{
    BackendKind, ComputeType, DataType, IndexBase, Operation, Order, SpgemmAlg, SpmmAlg, SpmvAlg, Status,
    TABLE,
};

use crate::common::staged::upload;
use crate::common::{backend, backends};

const N: Operation = Operation::NonTranspose;
const F32: (DataType, DataType) = (DataType::R32F, DataType::R32F);
const F64: (DataType, DataType) = (DataType::R64F, DataType::R64F);
const ROWS: usize = 512;
const COLS: usize = 512;
const COLUMNS: usize = 32;
const EPS: f64 = 1.0 / (1 << 23) as f64;

/// Exponents of A's and B's values: the least, and their number.
#[derive(Clone, Copy, Debug)]
struct Family {
    name: &'static str,
    a: (i32, i32),
    b: (i32, i32),
}

const FAMILIES: [Family; 5] = [
    Family { name: "one magnitude", a: (0, 1), b: (0, 1) },
    Family { name: "graded, 2^-20 to 1", a: (-20, 21), b: (0, 1) },
    Family { name: "graded, 2^-40 to 2^40 in both", a: (-40, 81), b: (-40, 81) },
    Family { name: "A subnormal", a: (-149, 24), b: (60, 20) },
    Family { name: "B subnormal beside normal factors", a: (40, 20), b: (-149, 60) },
];

/// Returns a random number with a full mantissa and one of these exponents; subnormal numbers have fewer
/// bits.
fn factor(rng: &mut SplitMix64, (least, count): (i32, i32)) -> f32 {
    let exponent = least + (rng.next_u64() % count as u64) as i32;
    let magnitude = (1.0 + (rng.next_u64() >> 12) as f64 / (1_u64 << 52) as f64) * f64::from(exponent).exp2();
    let value = magnitude as f32;
    if rng.next_u64() % 2 == 0 {
        value
    } else {
        -value
    }
}

struct Case {
    offsets: Vec<i32>,
    indices: Vec<i32>,
    values: Vec<f32>,
    b: Vec<f32>,
}

impl Case {
    /// Creates a matrix with rows of 1 to 256 entries, in runs of rows that share most columns, which suits
    /// windows.
    fn new(family: Family) -> Self {
        let mut rng = SplitMix64::new(0x5eed);
        let (mut offsets, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
        for row in 0..ROWS {
            let length = 1 << (row / 16 % 9);
            let first = row / 16 * 5 % (COLS - 256);
            for entry in 0..length {
                indices.push((first + entry) as i32);
                values.push(factor(&mut rng, family.a));
            }
            offsets.push(indices.len() as i32);
        }
        let b = (0..COLS * COLUMNS).map(|_| factor(&mut rng, family.b)).collect();
        Case { offsets, indices, values, b }
    }

    fn product(&self, compute: ComputeType, alg: SpmmAlg) -> Vec<f32> {
        let session = Session::new(backend()).unwrap();
        let kind = session.kind();
        let (offsets, indices) = (upload(kind, &self.offsets), upload(kind, &self.indices));
        let (values, b) = (upload(kind, &self.values), upload(kind, &self.b));
        let mut c = upload(kind, &vec![f32::NAN; ROWS * COLUMNS]);
        let shape = (ROWS as i64, COLS as i64);
        let a = Sparse::csr(shape, &offsets, &indices, &values, IndexBase::Zero).unwrap();
        let orders = (Order::Row, Order::Row);
        // With this many columns, `dense` uses the matrix units of a device.
        let n_hint = if alg == SpmmAlg::Dense { 512 } else { COLUMNS };
        let plan = Plan::spmm(&session, (N, N), &a, orders, n_hint as i64, F32, compute, alg).unwrap();
        plan.analyze(&session).unwrap();
        let ld = COLUMNS as i64;
        let of = |rows: usize| DenseLayout { rows: rows as i64, cols: ld, ld, order: Order::Row };
        plan.run_spmm(&session, 1.0_f32, (&b, of(COLS)), 0.0_f32, (&mut c, of(ROWS))).unwrap();
        session.synchronize().unwrap();
        c.download().unwrap()
    }

    /// Returns for each element of C the entries of its row, the sum, the sum of magnitudes, and the largest
    /// magnitude of a factor.
    fn exact(&self) -> Vec<(f64, f64, f64, f64)> {
        let mut out = Vec::new();
        for row in 0..ROWS {
            let entries = self.offsets[row] as usize..self.offsets[row + 1] as usize;
            for col in 0..COLUMNS {
                let (mut sum, mut rest, mut all, mut largest) = (0.0_f64, 0.0_f64, 0.0_f64, 0.0_f64);
                for at in entries.clone() {
                    let (a, b) = (self.values[at], self.b[self.indices[at] as usize * COLUMNS + col]);
                    // The product is exact, and the sum is kept in two doubles (Knuth's TwoSum).
                    let product = f64::from(a) * f64::from(b);
                    let next = sum + product;
                    let back = next - sum;
                    rest += (sum - (next - back)) + (product - back);
                    sum = next;
                    all += product.abs();
                    largest = largest.max(f64::from(a.abs())).max(f64::from(b.abs()));
                }
                out.push((entries.len() as f64, sum + rest, all, largest));
            }
        }
        out
    }
}

/// Counts errors relative to eps · Σ|ab| by powers of two, from 2^-8 on; the first count is of smaller ones,
/// 0 among them.
fn histogram(errors: &[(f64, f64)]) -> [usize; 14] {
    let mut out = [0; 14];
    for &(_, error) in errors {
        let bin = if error == 0.0 { -9.0 } else { error.log2().floor() };
        out[(bin + 9.0).clamp(0.0, 13.0) as usize] += 1;
    }
    out
}

#[test]
fn errors_are_within_their_bounds() {
    println!("errors over 2^-23 Σ|ab|, below 2^-8, then by powers of two up to 2^4 and more; most over n 2^-23 Σ|ab|");
    for family in FAMILIES {
        let case = Case::new(family);
        let exact = case.exact();
        for (alg, compute) in [
            (SpmmAlg::Window, ComputeType::R32F),
            (SpmmAlg::Dense, ComputeType::R32F),
            (SpmmAlg::Dense, ComputeType::R32FPedantic),
            (SpmmAlg::Row, ComputeType::R32FPedantic),
            (SpmmAlg::Sell, ComputeType::R32FPedantic),
            (SpmmAlg::Default, ComputeType::R32FPedantic),
        ] {
            let pedantic = compute.is_pedantic();
            let found = case.product(compute, alg);
            let mut errors = Vec::new();
            for (&found, &(n, sum, all, largest)) in found.iter().zip(&exact) {
                let error = (f64::from(found) - sum).abs();
                // Allowance for results, intermediate sums and bf16 parts that underflow.
                let tiny = match pedantic {
                    true => n * (-149.0_f64).exp2(),
                    false => n * (-149.0_f64).exp2() + 4.0 * n * largest * (-134.0_f64).exp2(),
                };
                let bound = match pedantic {
                    true => (n + 1.0) * EPS / 2.0 * all,
                    false => 3.0 * n * EPS * all + 2.0 * EPS * sum.abs(),
                };
                assert!(error <= bound + tiny, "{family:?} {alg:?}: {error:e} > {bound:e}, {n} entries");
                errors.push((n, if all > 0.0 { error / (EPS * all) } else { 0.0 }));
            }
            let most = errors.iter().map(|(n, error)| error / n).fold(0.0, f64::max);
            let name = if pedantic { format!("{alg:?}, pedantic") } else { format!("{alg:?}") };
            println!("{:35} {name:18} {:?} {most:.3}", family.name, histogram(&errors));
        }
    }
}

/// The tested families contain subnormal numbers and graded magnitudes.
#[test]
fn families_have_subnormals_and_grades() {
    let subnormal = |values: &[f32]| values.iter().filter(|value| value.is_subnormal()).count();
    let [one, _, graded, a, b] = FAMILIES.map(Case::new);
    assert_eq!((subnormal(&one.values), subnormal(&one.b)), (0, 0));
    assert!(subnormal(&a.values) > a.values.len() * 9 / 10 && subnormal(&b.b) > 1000);
    let exponents = |values: &[f32]| {
        let of = |value: &f32| value.abs().log2().floor() as i32;
        values.iter().map(of).max().unwrap() - values.iter().map(of).min().unwrap()
    };
    assert_eq!((exponents(&one.b), exponents(&graded.b)), (0, 80));
}

/// Decisions of plans with one compute type are refused by plans with the other; alpha and beta have the same
/// type in both.
#[test]
fn pedantic_plans_are_other_plans() {
    let offsets = [0, 2, 3, 5];
    let indices = [0, 2, 1, 0, 2];
    let values = [1.0, 2.0, 3.0, 4.0, 5.0_f64];
    for kind in backends() {
        let session = Session::new(kind).unwrap();
        let (o, i, v) = (upload(kind, &offsets), upload(kind, &indices), upload(kind, &values));
        let a = Sparse::csr((3, 3), &o, &i, &v, IndexBase::Zero).unwrap();
        let orders = (Order::Row, Order::Row);
        let plans = |compute| -> [Plan<'_>; 3] {
            [
                Plan::spmv(&session, N, &a, F64, compute, SpmvAlg::Default).unwrap(),
                Plan::spmm(&session, (N, N), &a, orders, 2, F64, compute, SpmmAlg::Default).unwrap(),
                Plan::spgemm(&session, (N, N), &a, &a, compute, SpgemmAlg::Default).unwrap(),
            ]
        };
        let [plain, pedantic] = [ComputeType::R64F, ComputeType::R64FPedantic].map(plans);
        for (plain, pedantic) in plain.iter().zip(&pedantic) {
            plain.analyze(&session).unwrap();
            let error = pedantic.set_decisions(&session, &plain.decisions(&session).unwrap()).unwrap_err();
            assert_eq!(error.status, Status::InvalidValue, "{error}");
            let named = error.message.contains("computeType") || error.message.contains("C's values");
            assert!(named && error.message.contains(" is 1 there and 102 in the plan"), "{error}");
            pedantic.analyze(&session).unwrap();
        }
        let (x, mut y) = (upload(kind, &[1.0, 10.0, 100.0_f64]), upload(kind, &[f64::NAN; 3]));
        pedantic[0].run_spmv(&session, 2.0, &x, 0.0, &mut y).unwrap();
        session.synchronize().unwrap();
        assert_eq!(y.download().unwrap(), [402.0, 60.0, 1008.0]);
    }
}

/// Algorithms that multiply on tensor cores not conforming to IEEE 754 are refused by name and never chosen.
#[test]
fn which_algorithms_are_pedantic() {
    use tarsia::facade::Algorithm;
    use Algorithm::{Dasp, Dense, Smat, Window};
    use BackendKind::{Cuda, Host};

    use crate::common::number::{Bf16, Numbers, Tf32, F16F32, F32, F64};
    let refused = [Window, Smat, Dense, Dasp];
    for algorithm in TABLE.iter().map(|row| row.algorithm) {
        for types in [F16F32::TYPES, Bf16::TYPES] {
            assert_eq!(algorithm.is_pedantic(Cuda, types), !refused.contains(&algorithm), "{algorithm:?}");
            assert!(algorithm.is_pedantic(Host, types));
        }
        assert_eq!(
            algorithm.is_pedantic(Cuda, F32::TYPES),
            !refused[..2].contains(&algorithm),
            "{algorithm:?}"
        );
        assert!(algorithm.is_pedantic(Cuda, F64::TYPES) && !algorithm.is_pedantic(Host, Tf32::TYPES));
    }
    for (types, algorithm, takes) in [
        (F32::TYPES, None, true),
        (F32::TYPES, Some(Window), false),
        (F32::TYPES, Some(Dense), true),
        (F16F32::TYPES, Some(Dense), false),
        (F16F32::TYPES, None, true),
        (F64::TYPES, Some(Window), true),
    ] {
        let compute = match types.compute {
            ComputeType::R64F => ComputeType::R64FPedantic,
            _ => ComputeType::R32FPedantic,
        };
        let query = tarsia::facade::Query {
            op: tarsia::facade::OpKind::Spmm,
            format: tarsia::facade::Format::Csr,
            types: tarsia::facade::Types { compute, ..types },
            backend: BackendKind::Cuda,
            algorithm,
        };
        match query.rows() {
            Ok(rows) => {
                assert!(takes, "{types:?} {algorithm:?}");
                assert!(rows.iter().all(|row| row.algorithm.is_pedantic(BackendKind::Cuda, types)));
            }
            Err(error) => {
                assert!(!takes && error.status == Status::NotSupported, "{types:?} {algorithm:?}: {error}");
                assert!(
                    error.message.starts_with("computeType: ") && error.message.contains("tensor cores"),
                    "{error}"
                );
            }
        }
    }
}

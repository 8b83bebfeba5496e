//! Tests of products against sums in double precision, within the bounds that the kernels' files prove.
//! Skipped without a device.

use bytemuck::Pod;
use std::fmt::Debug;

use super::super::WindowSpmm;
use super::*;
use crate::backend::cuda::convert::testing::context_of_device;
use crate::backend::cuda::device::DeviceCall;
use crate::backend::cuda::spmm::analysis::SharedResults;
use crate::backend::cuda::spmm::testing::{run_product, OnDevice, Placement};
use crate::backend::{DenseExecutor, SpmmExecutor};
use crate::format::masked_window::tests::all_rules;
use crate::format::testing::TestMatrix;
use crate::support::{Combo, Tf32, F32, F64};
use crate::types::Order;
use testkit::sequence;

/// Combination of types whose values all have one type.
trait Kind: Combo<A = Self::Value, X = Self::Value, Y = Self::Value, Acc = Self::Value> {
    type Value: Pod + Debug + Copy + PartialEq + Into<f64>;
    /// Relative rounding error of alpha, beta and the result.
    const ROUNDING: f64 = EPS;
    fn of(value: f64) -> Self::Value;
    /// Bound of the error of a product of n entries with `sum` of |a · b|, for alpha = 1 and beta = 0.
    fn bound(n: usize, sum: f64) -> f64;
}

const EPS: f64 = f32::EPSILON as f64;

impl Kind for F32 {
    type Value = f32;
    fn of(value: f64) -> f32 {
        value as f32
    }
    fn bound(n: usize, sum: f64) -> f64 {
        3.0 * n as f64 * EPS * sum
    }
}

impl Kind for Tf32 {
    type Value = f32;
    fn of(value: f64) -> f32 {
        value as f32
    }
    fn bound(n: usize, sum: f64) -> f64 {
        (EPS * 8192.0 + EPS * 2.0 + 3.0 * n as f64 * EPS) * sum
    }
}

impl Kind for F64 {
    type Value = f64;
    const ROUNDING: f64 = f64::EPSILON;
    fn of(value: f64) -> f64 {
        value
    }
    fn bound(n: usize, sum: f64) -> f64 {
        2.0 * n as f64 * f64::EPSILON * sum
    }
}

/// Choice of the factors' values.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Factors {
    /// Random in all bits of the mantissa, between -2 and 2.
    Plain,
    /// Pairs of neighbours that cancel except for some of the last bits.
    Cancelling,
    /// Sizes from 2^-40 to 2^40.
    Wide,
    /// A few that round to Inf, or nearly so, when they are split; the others are small.
    Huge,
    /// Sizes from 2^-149 to 2^-90, against factors of 2^40 to 2^80.
    Tiny,
    /// Infinities and NaNs in B.
    Special,
}

impl Factors {
    fn values<K: Kind>(self, count: usize, is_b: bool) -> Vec<K::Value> {
        let mut next = sequence(count as u64 + 7 * u64::from(is_b) + 1);
        let mut full = || {
            let bits = next() as u64 % (1 << 31) * (1 << 22) + next() as u64 % (1 << 22);
            let size = 1.0 + bits as f64 / (1_u64 << 53) as f64;
            if next() % 2 == 0 {
                size
            } else {
                -size
            }
        };
        let mut plain: Vec<f64> = (0..count).map(|_| full()).collect();
        let mut power = sequence(count as u64 + 3);
        let mut between = |low: i32, high: i32| 2_f64.powi(low + (power() % (high - low) as usize) as i32);
        match (self, is_b) {
            (Factors::Plain | Factors::Special, _) | (Factors::Cancelling, true) => {}
            (Factors::Cancelling, false) => {
                for pair in plain.chunks_exact_mut(2) {
                    pair[1] = -pair[0] * (1.0 + between(-23, -10));
                }
            }
            (Factors::Wide, _) => plain.iter_mut().for_each(|v| *v *= between(-40, 40)),
            (Factors::Huge, _) => {
                for (at, v) in plain.iter_mut().enumerate() {
                    *v = match at % 97 {
                        5 if !is_b => f64::from(f32::MAX),
                        9 if !is_b => -f64::from(f32::MAX) * (1.0 - 2_f64.powi(-9)),
                        _ => *v * between(-30, -8),
                    };
                }
            }
            (Factors::Tiny, false) => plain.iter_mut().for_each(|v| *v *= between(-149, -90)),
            (Factors::Tiny, true) => plain.iter_mut().for_each(|v| *v *= between(40, 80)),
        }
        plain.into_iter().map(K::of).collect()
    }
}

/// One product to test: a dense operand begins `shift` elements into its array and has `pad` unused elements
/// between its rows or columns.
#[derive(Clone, Copy, Debug)]
struct MaskedTestProduct {
    n: usize,
    orders: (Order, Order),
    shift: usize,
    pad: usize,
    alpha: f64,
    beta: f64,
    factors: Factors,
    /// True if rows are clustered.
    clustered: bool,
    /// True if the values come by an update.
    updated: bool,
}

const PLAIN: MaskedTestProduct = MaskedTestProduct {
    n: 32,
    orders: (Order::Row, Order::Row),
    shift: 0,
    pad: 0,
    alpha: 1.5,
    beta: 0.0,
    factors: Factors::Plain,
    clustered: false,
    updated: false,
};

impl MaskedTestProduct {
    /// Computes the product twice, asserts that both have the same bits, and compares it with sums in double
    /// precision. Returns the largest ratio of an element's error to its bound.
    fn check<K: Kind>(&self, cx: &DeviceCall<'_>, matrix: &TestMatrix, rules: Rules) -> f64 {
        let what = format!("{:?} {self:?} {rules:?}", K::TYPES);
        let &MaskedTestProduct { n, orders, shift, pad, factors, clustered, updated, .. } = self;
        let (alpha, beta) = (K::of(self.alpha), K::of(self.beta));
        let (rows, cols) = (matrix.offsets.len() - 1, matrix.cols);
        let values = factors.values::<K>(matrix.values.len(), false);
        let placement = Placement { n, shift, pad };
        let mut b = factors.values::<K>(placement.extent(orders.0, cols), true);
        if factors == Factors::Special {
            for (at, value) in [f64::INFINITY, f64::NAN, f64::NEG_INFINITY].into_iter().enumerate() {
                let column = matrix.indices[matrix.indices.len() * (at + 1) / 5] - matrix.base;
                b[placement.at(orders.0, cols, (column as usize, at * 7 % n))] = K::of(value);
            }
        }
        // If beta is 0, C must not be read.
        let c = match self.beta == 0.0 {
            true => vec![K::of(f64::NAN); placement.extent(orders.1, rows)],
            false => Factors::Plain.values::<K>(placement.extent(orders.1, rows), true),
        };

        let types = K::TYPES;
        let stored = OnDevice::new(cx, matrix, (types.a, bytemuck::cast_slice(&values)), updated);
        // Clustered rows are tested both with kept slots and without.
        let value_updates = updated && n > 30;
        let problem = SpmmProblem { value_updates, ..stored.problem(types, orders, n) };
        let analysis = Analysis { cx, problem: &problem, shared: &SharedResults::new(cx.device) };
        let mut executor = WindowSpmm::<MaskedTiles>::new(&analysis, clustered, rules).unwrap();
        assert_eq!(executor.details().contains("in clusters"), clustered, "{what}");
        if updated {
            executor.update_values(cx, stored.values()).unwrap();
        }

        let on = (cx, &executor as &SpmmExecutor, &problem);
        let given = [&b, &c].map(|values| bytemuck::cast_slice(values));
        let found = run_product(on, placement, (alpha.into(), beta.into()), given, (true, &what));
        let values_of = found.chunks_exact(size_of::<K::Value>()).map(bytemuck::pod_read_unaligned);
        let found: Vec<K::Value> = values_of.collect();
        let bits = |values: &[K::Value]| bytemuck::cast_slice::<_, u8>(values).to_vec();

        let mut written = vec![false; found.len()];
        let pattern = matrix.pattern();
        let (alpha, beta): (f64, f64) = (alpha.into(), beta.into());
        let mut worst: f64 = 0.0;
        for row in 0..rows {
            for col in 0..n {
                let (mut sum, mut absolute, mut lost) = (0.0, 0.0, 0.0);
                for at in pattern.range(row) {
                    let a: f64 = values[at].into();
                    let b: f64 = b[placement.at(orders.0, cols, (pattern.index(at), col))].into();
                    sum += a * b;
                    absolute += (a * b).abs();
                    // Losses below the least bf16, and of sums below the least fp32 (five per product).
                    lost += (a.abs() + b.abs()) * 2_f64.powi(-134) + 2_f64.powi(-146);
                }
                let at = placement.at(orders.1, rows, (row, col));
                written[at] = true;
                let old: f64 = c[at].into();
                let before = if beta == 0.0 { 0.0 } else { beta * old };
                let exact = if alpha == 0.0 { before } else { alpha * sum + before };
                let got: f64 = found[at].into();
                if !K::of(exact).into().is_finite() {
                    let same = got == K::of(exact).into() || got.is_nan() && exact.is_nan();
                    assert!(same, "{what} {row} {col}: {got} {exact}");
                    continue;
                }
                let of_sum = alpha.abs() * (K::bound(pattern.range(row).len(), absolute) + lost);
                let allowed =
                    of_sum + 2.0 * K::ROUNDING * (alpha.abs() * absolute + before.abs()) + 2_f64.powi(-148);
                let off = (got - exact).abs();
                assert!(off <= allowed, "{what} {row} {col}: {got} {exact} ± {allowed}");
                worst = worst.max(off / allowed);
            }
        }
        let same = |at: usize| written[at] || bits(&found[at..=at]) == bits(&c[at..=at]);
        assert!((0..found.len()).all(same), "{what}: padding was written");
        worst
    }
}

fn for_all_rules(matrix: &TestMatrix, products: &[MaskedTestProduct]) -> f64 {
    let Some((device, cx)) = context_of_device() else { return 0.0 };
    let cx = &device.call(&cx).unwrap();
    let mut worst: f64 = 0.0;
    for rules in all_rules().filter(|rules| rules.height >= 16) {
        for product in products {
            if rules.height == 16 {
                worst = worst.max(product.check::<F32>(cx, matrix, rules));
                product.check::<Tf32>(cx, matrix, rules);
            }
            product.check::<F64>(cx, matrix, rules);
        }
    }
    worst
}

/// Makes a matrix with some long and some empty rows, columns shared by neighbours, and many repeated entries
/// if there are few columns.
fn sample(base: i64, rows: usize, cols: usize) -> TestMatrix {
    let mut next = sequence(rows as u64 + 1);
    let lengths: Vec<usize> = (0..rows).map(|_| next() % 4 * (next() % 19)).collect();
    TestMatrix::new(base, cols, &lengths, |row, entry| (row / 5 * 7 + entry * 131) % cols)
}

#[test]
fn any_number_of_columns() {
    let products =
        [1, 3, 8, 17, 32, 40, 64, 72, 100, 128, 136, 300].map(|n| MaskedTestProduct { n, ..PLAIN });
    for_all_rules(&sample(0, 150, 401), &products);
}

#[test]
fn scalars_and_orders() {
    let mut products = vec![];
    for (number, (alpha, beta)) in [(1.0, 0.0), (-0.5, 2.0), (0.0, 0.5), (0.0, 0.0)].into_iter().enumerate() {
        for b in [Order::Row, Order::Col] {
            for c in [Order::Row, Order::Col] {
                let n = [24, 130, 7, 64][number];
                products.push(MaskedTestProduct { alpha, beta, n, orders: (b, c), pad: 3, ..PLAIN });
            }
        }
    }
    for_all_rules(&sample(1, 90, 300), &products);
}

#[test]
fn any_alignment() {
    let mut products = vec![];
    for (shift, pad) in [(0, 1), (1, 0), (1, 7), (4, 4), (2, 2), (0, 2)] {
        for n in [5, 8, 16, 33, 128, 129] {
            products.push(MaskedTestProduct { shift, pad, n, beta: 1.0, ..PLAIN });
        }
    }
    for_all_rules(&sample(0, 70, 200), &products);
}

#[test]
fn infinities_and_nans_follow_the_stored_entries() {
    let mut products = vec![];
    for n in [5, 32, 64, 128, 200] {
        let special = MaskedTestProduct { n, factors: Factors::Special, ..PLAIN };
        products.push(special);
        products.push(MaskedTestProduct { beta: 0.5, orders: (Order::Col, Order::Col), ..special });
    }
    for_all_rules(&sample(0, 130, 500), &products);
}

#[test]
fn parts_of_long_windows_are_joined() {
    let mut lengths = vec![3; 200];
    (lengths[130], lengths[199]) = (4000, 900);
    let matrix = TestMatrix::new(0, 70_000, &lengths, |row, entry| row + entry * 17);
    let products = [7, 32, 64, 128, 257].map(|n| MaskedTestProduct { n, beta: 1.0, ..PLAIN });
    for_all_rules(&matrix, &products);
    let special = MaskedTestProduct { factors: Factors::Special, ..PLAIN };
    for_all_rules(
        &matrix,
        &[MaskedTestProduct { n: 40, ..special }, MaskedTestProduct { n: 140, ..special }],
    );
}

#[test]
fn the_bound_holds_for_hard_factors() {
    let kinds = [Factors::Plain, Factors::Cancelling, Factors::Wide, Factors::Huge, Factors::Tiny];
    // With alpha = 1 the scaling is exact, so the ratio is that of the sums alone.
    let products: Vec<_> = kinds
        .into_iter()
        .flat_map(|factors| [8, 32, 128].map(|n| MaskedTestProduct { n, factors, alpha: 1.0, ..PLAIN }))
        .collect();
    // Rows of one entry, alone and among longer ones; rows of 2 to 400 entries; all columns of a step.
    let alone = TestMatrix::new(0, 300, &[1; 100], |row, _| row * 37 % 300);
    let mixed: Vec<_> = (0..64).map(|row| if row % 3 == 0 { 1 } else { row * 6 }).collect();
    let mixed = TestMatrix::new(0, 400, &mixed, |row, entry| if row % 3 == 0 { row * 5 } else { entry });
    let full = TestMatrix::new(0, 16, &[16; 40], |_, entry| entry);
    let worst = [&alone, &mixed, &full].map(|matrix| for_all_rules(matrix, &products));
    println!(
        "shares of the bound, fp32: rows of one entry {:.2}, mixed {:.2}, full {:.2}",
        worst[0], worst[1], worst[2]
    );
}

#[test]
fn matrices_without_entries() {
    let products = [8, 128].map(|n| MaskedTestProduct { n, beta: 2.0, ..PLAIN });
    for_all_rules(&TestMatrix::new(0, 10, &[0; 20], |_, _| 0), &products);
}

/// Makes `count` families of 16 rows with common columns, whose rows alternate, and a few more rows.
fn families(base: i64, count: usize) -> TestMatrix {
    let column = |row, entry| row % count * 97 + entry * 8 + row / (16 * count) * 7;
    TestMatrix::new(base, 97 * count + 220, &vec![6; 16 * count + 5], column)
}

#[test]
fn rows_that_are_alike_are_put_together() {
    let mut products = vec![];
    for n in [3, 8, 20, 40, 130, 260] {
        for (b, c) in [(Order::Row, Order::Row), (Order::Col, Order::Col), (Order::Row, Order::Col)] {
            products.push(MaskedTestProduct { clustered: true, orders: (b, c), n, beta: 0.5, ..PLAIN });
        }
    }
    let updated =
        products.iter().map(|product| MaskedTestProduct { updated: true, ..*product }).collect::<Vec<_>>();
    for_all_rules(&families(0, 40), &products);
    for_all_rules(&families(1, 40), &updated);
    let special = MaskedTestProduct { factors: Factors::Special, ..products[0] };
    for_all_rules(&families(0, 40), &[5, 64, 130].map(|n| MaskedTestProduct { n, ..special }));
}

/// Runs all kernels, with few enough products for compute-sanitizer.
#[test]
fn sanitizer_small_matrices() {
    let Some((device, cx)) = context_of_device() else { return };
    let cx = &device.call(&cx).unwrap();
    let matrix = sample(1, 70, 150);
    let mut lengths = vec![2; 70];
    lengths[33] = 200;
    let long = TestMatrix::new(0, 3000, &lengths, |row, entry| row + entry * 14);
    for rules in all_rules().filter(|rules| rules.height >= 16 && rules.most == 5) {
        for n in [8, 33, 130] {
            let orders = if n == 33 { (Order::Col, Order::Col) } else { (Order::Row, Order::Row) };
            let products = [
                (&matrix, MaskedTestProduct { n, orders, pad: n % 2, ..PLAIN }),
                (&long, MaskedTestProduct { n, factors: Factors::Special, beta: 0.5, ..PLAIN }),
                (&families(0, 6), MaskedTestProduct { n, orders, clustered: true, ..PLAIN }),
            ];
            for (matrix, product) in products {
                product.check::<F64>(cx, matrix, rules);
                if rules.height == 16 {
                    product.check::<F32>(cx, matrix, rules);
                    product.check::<Tf32>(cx, matrix, rules);
                }
            }
        }
    }
}

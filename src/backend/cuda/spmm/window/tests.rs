//! Tests against the CPU's layout, bit for bit, and against sums in double precision. Skipped without a
//! device.

use std::sync::Arc;

use half::f16;

use super::number::count_windows;
use super::*;
use crate::backend::cuda::convert::testing::{all, context_of_device, Uploaded, WIDTHS};
use crate::backend::cuda::device::DeviceCall;
use crate::backend::cuda::spmm::testing::{run_product, OnDevice, Placement};
use crate::backend::SpmmExecutor;
use crate::format::sell::Origin;
use crate::format::testing::TestMatrix;
use crate::format::window::tests::all_rules;
use crate::format::window::SHAPE;
use crate::format::Window;
use crate::memory::{Allocator, Context, HostMemory};
use crate::select;
use crate::support::{Bf16, Bf16F32, Combo, Types, F16, F16F32};
use crate::types::IndexType;
use testkit::sequence;

/// Copies a matrix with halves, whose bits are the values on the device.
fn upload(cx: &Context, matrix: &TestMatrix, widths: (IndexType, IndexType)) -> (Uploaded<u16>, Vec<f16>) {
    let values: Vec<_> =
        (0..matrix.values.len()).map(|at| f16::from_f64((at % 97) as f64 / 64.0 - 0.7)).collect();
    let bits = values.iter().map(|value| value.to_bits()).collect();
    (Uploaded::of(cx, matrix, widths, bits), values)
}

fn same(cx: &DeviceCall<'_>, matrix: &TestMatrix, rules: Rules, widths: (IndexType, IndexType)) {
    let (uploaded, values) = upload(cx, matrix, widths);
    let origin = Origin { keep: true, positions: None };
    let allocator = Allocator::new(Arc::new(HostMemory), Address::NULL, usize::MAX);
    let expected = Window::build(&allocator, &matrix.pattern(), &values, origin, |_| rules).unwrap();
    for keep in [false, true] {
        let what = format!("{rules:?} {widths:?} {keep}");
        let found = Arrays::<DenseTiles>::build(cx, &uploaded.rows, 2, rules, keep.then_some(None)).unwrap();
        assert_eq!(all(&found.columns), expected.columns[..], "{what}");
        assert_eq!(all(&found.tiles.tiles), expected.store.tiles[..], "{what}");
        assert_eq!(all(&found.lists.items), expected.items[..], "{what}");
        assert_eq!(all(&found.lists.parts), expected.parts[..], "{what}");
        assert_eq!(all(&found.tiles.stored), expected.store.stored[..], "{what}");
        let values = expected.values.iter().map(|value| value.to_bits());
        assert!(all(&found.values).into_iter().eq(values), "{what}");
        assert_eq!(found.distinct as usize, expected.distinct, "{what}");
        let cut = expected.parts.last().map_or(0, |part| part.counter + 1);
        assert_eq!(found.lists.split_count, i64::from(cut), "{what}");
        assert_eq!(found.slots.is_some(), keep);
        if let Some(slots) = &found.slots {
            assert_eq!(all(&slots.slots), expected.slots.as_ref().unwrap()[..], "{what}");
        }
    }
}

/// Makes a matrix with some long and some empty rows, columns shared by neighbours, and many repeated entries
/// if there are few columns.
pub(super) fn sample(base: i64, rows: usize, cols: usize) -> TestMatrix {
    let mut next = sequence(rows as u64 + 1);
    let lengths: Vec<usize> = (0..rows).map(|_| next() % 4 * (next() % 19)).collect();
    TestMatrix::new(base, cols, &lengths, |row, entry| (row / 5 * 7 + entry * 131) % cols)
}

/// Calls `same` with matrices that have all types of indices and bases, and with each of the rules.
pub(super) fn for_samples(
    rules: impl Fn() -> Vec<Rules>,
    same: impl Fn(&DeviceCall<'_>, &TestMatrix, Rules, (IndexType, IndexType)),
) {
    let Some((device, cx)) = context_of_device() else { return };
    let cx = &device.call(&cx).unwrap();
    for widths in WIDTHS {
        for base in [0, 1] {
            let mut matrices = vec![];
            for rows in [0, 1, 7, 8, 17, 64, 65, 1000] {
                matrices.extend([997, 40, 1 << 30].map(|cols| sample(base, rows, cols)));
            }
            let mut lengths = vec![3; 500];
            (lengths[130], lengths[300], lengths[301]) = (9000, 400, 300);
            matrices.push(TestMatrix::new(base, 200_000, &lengths, |row, entry| row + entry * 17));
            for matrix in matrices {
                rules().into_iter().for_each(|rules| same(cx, &matrix, rules, widths));
            }
        }
    }
}

#[test]
fn the_device_makes_what_the_cpu_makes() {
    for_samples(|| all_rules().collect(), same);
}

/// Runs all kernels on a case small enough for compute-sanitizer: each rule with some of the numbers of
/// columns.
fn small(check: impl Fn(&DeviceCall<'_>, Rules, usize, (Order, Order))) {
    let Some((device, cx)) = context_of_device() else { return };
    let cx = &device.call(&cx).unwrap();
    for (at, rules) in all_rules().filter(|rules| rules.most < 100).enumerate() {
        for n in [[8, 33], [64, 130]][at % 2] {
            let orders = if n == 33 { (Order::Col, Order::Col) } else { (Order::Row, Order::Row) };
            check(cx, rules, n, orders);
        }
    }
}

#[test]
fn sanitizer_small_matrices() {
    let matrix = sample(1, 70, 150);
    small(|cx, rules, n, orders| {
        same(cx, &matrix, rules, WIDTHS[0]);
        WindowTestProduct { n, orders, wide_c: n == 64, ..PLAIN }.check(cx, &matrix, rules);
    });
}

#[test]
fn sanitizer_infinities() {
    let matrix = sample(1, 70, 150);
    small(|cx, rules, n, _| {
        WindowTestProduct { n, special: true, beta: 0.5, ..PLAIN }.check(cx, &matrix, rules);
    });
}

#[test]
fn sanitizer_clusters() {
    small(|cx, rules, n, orders| {
        WindowTestProduct { n, orders, clustered: true, ..PLAIN }.check(cx, &families(0, 6), rules);
    });
}

#[test]
fn sanitizer_long_row() {
    let mut lengths = vec![2; 70];
    lengths[33] = 500;
    let long = TestMatrix::new(0, 300_000, &lengths, |row, entry| row + entry * 599);
    small(|cx, rules, _, _| same(cx, &long, rules, WIDTHS[2]));
}

/// Tests columns too far apart for two chunks of bits, some of them several times in a row.
#[test]
fn wide_rows_and_repeats() {
    let Some((device, cx)) = context_of_device() else { return };
    let cx = &device.call(&cx).unwrap();
    let mut next = sequence(11);
    let lengths: Vec<usize> = (0..300).map(|_| next() % 3 * (next() % 40)).collect();
    let draws: Vec<usize> = (0..300 * 80).map(|_| next()).collect();
    for cols in [1 << 18, 5_000_000, (1 << 31) - 1] {
        for repeats in [1, 2, 5] {
            // Some columns of each window are near each other, the others anywhere.
            let column = |row: usize, entry: usize| match draws[row * 80 + entry / repeats] {
                draw if draw % 2 == 0 => (row / 16 * 100_003 + draw / 2 % 300) % cols,
                draw => draw % cols,
            };
            let matrix = TestMatrix::new(1, cols, &lengths, column);
            for rules in all_rules() {
                same(cx, &matrix, rules, WIDTHS[2]);
            }
        }
    }
}

#[test]
fn the_device_counts_what_the_cpu_counts() {
    let Some((device, cx)) = context_of_device() else { return };
    let cx = &device.call(&cx).unwrap();
    let mut lengths = vec![7; 200_000];
    lengths[3] = 1 << 17;
    let large = TestMatrix::new(0, 300_000, &lengths, |row, entry| (row + entry * entry) % 300_000);
    for matrix in [sample(0, 1000, 997), sample(1, 1000, 40), sample(0, 3000, 1 << 30), large] {
        let (uploaded, _) = upload(cx, &matrix, WIDTHS[1]);
        let found = count_windows(cx, &uploaded.rows, SHAPE).unwrap();
        crate::format::window::tests::build(&matrix, |counts| {
            assert_eq!(*counts, found);
            select::spmm::window::rules_on_host(counts)
        });
    }
}

/// A half type, for converting values to and from its bits.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Half {
    F16,
    Bf16,
}

impl Half {
    fn bits(self, value: f64) -> u16 {
        match self {
            Half::F16 => f16::from_f64(value).to_bits(),
            Half::Bf16 => half::bf16::from_f64(value).to_bits(),
        }
    }

    fn value(self, bits: u16) -> f64 {
        match self {
            Half::F16 => f16::from_bits(bits).to_f64(),
            Half::Bf16 => half::bf16::from_bits(bits).to_f64(),
        }
    }

    /// Half the distance between neighbours of 1: the relative rounding error.
    fn rounding(self) -> f64 {
        match self {
            Half::F16 => 1.0 / 2048.0,
            Half::Bf16 => 1.0 / 256.0,
        }
    }

    fn types(self, wide_c: bool) -> Types {
        match (self, wide_c) {
            (Half::F16, false) => F16::TYPES,
            (Half::F16, true) => F16F32::TYPES,
            (Half::Bf16, false) => Bf16::TYPES,
            (Half::Bf16, true) => Bf16F32::TYPES,
        }
    }
}

/// One product to test: a dense operand begins `shift` elements into its array and has `pad` unused elements
/// between its rows or columns.
#[derive(Clone, Copy, Debug)]
struct WindowTestProduct {
    half: Half,
    wide_c: bool,
    n: usize,
    orders: (Order, Order),
    shift: usize,
    pad: usize,
    alpha: f32,
    beta: f32,
    /// True if B has infinities and NaNs.
    special: bool,
    /// True if rows are clustered.
    clustered: bool,
    /// True if the values come by an update.
    updated: bool,
}

const PLAIN: WindowTestProduct = WindowTestProduct {
    half: Half::F16,
    wide_c: false,
    n: 32,
    orders: (Order::Row, Order::Row),
    shift: 0,
    pad: 0,
    alpha: 1.5,
    beta: 0.0,
    special: false,
    clustered: false,
    updated: false,
};

impl WindowTestProduct {
    /// Computes the product twice, asserts that both have the same bits, and compares it with sums in double
    /// precision.
    fn check(&self, cx: &DeviceCall<'_>, matrix: &TestMatrix, rules: Rules) {
        let what = format!("{self:?} {rules:?}");
        let &WindowTestProduct {
            half,
            wide_c,
            n,
            orders,
            shift,
            pad,
            alpha,
            beta,
            special,
            clustered,
            updated,
        } = self;
        let (rows, cols) = (matrix.offsets.len() - 1, matrix.cols);
        let mut next = sequence(n as u64 + 5);
        let mut number = || (next() % 4001) as f64 / 1024.0 - 2.0;
        let values: Vec<_> = matrix.values.iter().map(|_| half.bits(number())).collect();
        let placement = Placement { n, shift, pad };
        let mut b: Vec<_> = (0..placement.extent(orders.0, cols)).map(|_| half.bits(number())).collect();
        if special {
            for (at, value) in [f64::INFINITY, f64::NAN, f64::NEG_INFINITY].into_iter().enumerate() {
                let column = matrix.indices[matrix.indices.len() * (at + 1) / 5] - matrix.base;
                b[placement.at(orders.0, cols, (column as usize, at * 7 % n))] = half.bits(value);
            }
        }
        // If beta is 0, C must not be read.
        let c: Vec<f64> = (0..placement.extent(orders.1, rows))
            .map(|_| if beta == 0.0 { f64::NAN } else { number() })
            .collect();
        let c_bits: Vec<u32> =
            c.iter().map(|&c| if wide_c { (c as f32).to_bits() } else { u32::from(half.bits(c)) }).collect();
        let old = |at: usize| {
            if wide_c {
                f64::from(f32::from_bits(c_bits[at]))
            } else {
                half.value(c_bits[at] as u16)
            }
        };

        let types = half.types(wide_c);
        let stored = OnDevice::new(cx, matrix, (types.a, bytemuck::cast_slice(&values)), updated);
        // Clustered rows are tested both with kept slots and without.
        let value_updates = updated && n > 30;
        let problem = SpmmProblem { value_updates, ..stored.problem(types, orders, n) };
        let analysis = Analysis { cx, problem: &problem, shared: &SharedResults::new(cx.device) };
        let mut executor = WindowSpmm::<DenseTiles>::new(&analysis, clustered, rules).unwrap();
        assert_eq!(executor.details().contains("in clusters"), clustered, "{what}");
        if updated {
            executor.update_values(cx, stored.values()).unwrap();
        }

        let size = types.y.size();
        let raw: Vec<u8> = c_bits.iter().flat_map(|bits| bits.to_le_bytes()[..size].to_vec()).collect();
        let on = (cx, &executor as &SpmmExecutor, &problem);
        let (scalars, given) = ((alpha.into(), beta.into()), [bytemuck::cast_slice(&b), &raw[..]]);
        let found = run_product(on, placement, scalars, given, (true, &what));
        let bits = |bytes: &[u8]| bytes.iter().rev().fold(0, |bits, &byte| bits << 8 | u32::from(byte));
        let found: Vec<u32> = found.chunks_exact(size).map(bits).collect();

        let mut written = vec![false; found.len()];
        let pattern = matrix.pattern();
        for row in 0..rows {
            for col in 0..n {
                let (mut sum, mut absolute) = (0.0, 0.0);
                for at in pattern.range(row) {
                    let b = b[placement.at(orders.0, cols, (pattern.index(at), col))];
                    let term = half.value(values[at]) * half.value(b);
                    sum += term;
                    absolute += term.abs();
                }
                let at = placement.at(orders.1, rows, (row, col));
                written[at] = true;
                let before = if beta == 0.0 { 0.0 } else { f64::from(beta) * old(at) };
                let exact = if alpha == 0.0 { before } else { f64::from(alpha) * sum + before };
                let got =
                    if wide_c { f64::from(f32::from_bits(found[at])) } else { half.value(found[at] as u16) };
                if !exact.is_finite() {
                    assert!(
                        got == exact || got.is_nan() && exact.is_nan(),
                        "{what} {row} {col}: {got} {exact}"
                    );
                    continue;
                }
                let terms = pattern.range(row).len() + 3;
                let of_sums = terms as f64
                    * f64::from(f32::EPSILON)
                    * (f64::from(alpha.abs()) * absolute + before.abs());
                let of_store = if wide_c { 0.0 } else { half.rounding() * exact.abs() };
                let allowed = of_sums + of_store + 1e-7;
                assert!((got - exact).abs() <= allowed, "{what} {row} {col}: {got} {exact} ± {allowed}");
            }
        }
        let same = |at: usize| written[at] || found[at] == c_bits[at];
        assert!((0..found.len()).all(same), "{what}: padding was written");
    }
}

fn for_all_rules(matrix: &TestMatrix, products: &[WindowTestProduct]) {
    let Some((device, cx)) = context_of_device() else { return };
    let cx = &device.call(&cx).unwrap();
    for rules in all_rules() {
        for product in products {
            product.check(cx, matrix, rules);
        }
    }
}

const COLUMNS: [usize; 13] = [1, 3, 8, 17, 32, 40, 64, 72, 100, 128, 136, 300, 520];

#[test]
fn any_number_of_columns() {
    let products = COLUMNS.map(|n| WindowTestProduct { n, ..PLAIN });
    for_all_rules(&sample(0, 150, 401), &products);
}

#[test]
fn all_types_scalars_and_orders() {
    let mut products = vec![];
    for (number, (half, wide_c)) in
        [Half::F16, Half::Bf16].into_iter().flat_map(|half| [(half, false), (half, true)]).enumerate()
    {
        for (alpha, beta) in [(1.0, 0.0), (-0.5, 2.0), (0.0, 0.5), (0.0, 0.0)] {
            for b in [Order::Row, Order::Col] {
                for c in [Order::Row, Order::Col] {
                    let n = [24, 130, 9, 96][number];
                    products.push(WindowTestProduct {
                        half,
                        wide_c,
                        alpha,
                        beta,
                        n,
                        orders: (b, c),
                        pad: 3,
                        ..PLAIN
                    });
                }
            }
        }
    }
    for_all_rules(&sample(1, 90, 300), &products);
}

#[test]
fn any_alignment() {
    let mut products = vec![];
    for (shift, pad) in [(0, 1), (1, 0), (1, 7), (8, 8), (4, 4), (2, 2)] {
        for (n, wide_c) in [(16, false), (33, true), (128, false), (129, true)] {
            products.push(WindowTestProduct { shift, pad, n, wide_c, beta: 1.0, ..PLAIN });
        }
    }
    for_all_rules(&sample(0, 70, 200), &products);
}

#[test]
fn infinities_and_nans_follow_the_stored_entries() {
    let mut products = vec![];
    for n in [5, 32, 64, 128, 200] {
        for half in [Half::F16, Half::Bf16] {
            products.push(WindowTestProduct { n, half, special: true, ..PLAIN });
            let orders = (Order::Col, Order::Col);
            products.push(WindowTestProduct {
                n,
                half,
                special: true,
                wide_c: true,
                beta: 0.5,
                orders,
                ..PLAIN
            });
        }
    }
    for_all_rules(&sample(0, 130, 500), &products);
}

#[test]
fn parts_of_long_windows_are_joined() {
    let mut lengths = vec![3; 200];
    (lengths[130], lengths[199]) = (4000, 900);
    let matrix = TestMatrix::new(0, 70_000, &lengths, |row, entry| row + entry * 17);
    let products = [7, 32, 64, 128, 257].map(|n| WindowTestProduct { n, beta: 1.0, wide_c: true, ..PLAIN });
    for_all_rules(&matrix, &products);
    for_all_rules(
        &matrix,
        &[
            WindowTestProduct { n: 40, special: true, ..PLAIN },
            WindowTestProduct { n: 140, special: true, ..PLAIN },
        ],
    );
}

#[test]
fn matrices_without_entries() {
    let products = [8, 128].map(|n| WindowTestProduct { n, beta: 2.0, ..PLAIN });
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
            products.push(WindowTestProduct { clustered: true, orders: (b, c), n, beta: 0.5, ..PLAIN });
        }
    }
    let updated =
        products.iter().map(|product| WindowTestProduct { updated: true, ..*product }).collect::<Vec<_>>();
    for_all_rules(&families(0, 40), &products);
    for_all_rules(&families(1, 40), &updated);
    let special = WindowTestProduct { special: true, ..products[0] };
    for_all_rules(&families(0, 40), &[5, 64, 130].map(|n| WindowTestProduct { n, ..special }));
}

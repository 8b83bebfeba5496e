//! Tests against the CPU's layout, bit for bit, and against sums in double precision. Skipped without a
//! device.

use half::{bf16, f16};

use super::*;
use crate::backend::cuda::convert::testing::{all, context_of_device, Uploaded, WIDTHS};
use crate::backend::cuda::device::DeviceCall;
use crate::backend::cuda::operand::Rows;
use crate::backend::cuda::spmm::testing::{run_product, OnDevice, Placement};
use crate::backend::SpmmExecutor;
use crate::format::bcsr::tests::{all_rules, build as build_on_host, scattered};
use crate::format::bcsr::Rules;
use crate::format::testing::TestMatrix;
use crate::support::{Bf16, Bf16F32, Combo, Tf32, Types, F16, F16F32, F64};
use crate::types::{ComputeType, DataType, Element, IndexType};
use testkit::sequence;

/// Calls `f` with all rules for values of so many bytes, with rows in their own order and in another.
fn for_all_rules(bytes: usize, rows: usize, mut f: impl FnMut(Rules, Option<&[u32]>)) {
    let order = scattered(rows);
    for rules in all_rules(bytes) {
        f(rules, None);
        f(rules, Some(&order));
    }
}

/// Asserts that the device makes the same arrays as the CPU.
fn same<V: Element + PartialEq>(
    cx: &DeviceCall<'_>,
    matrix: &TestMatrix,
    widths: (IndexType, IndexType),
    value: impl Fn(usize) -> V,
) {
    let values: Vec<V> = (0..matrix.values.len()).map(value).collect();
    let Uploaded { rows, values, .. } = &Uploaded::of(cx, matrix, widths, values);
    for_all_rules(size_of::<V>(), rows.rows as usize, |rules, order| {
        let what = format!("{rules:?} {widths:?} {}", order.is_some());
        let expected = build_on_host(matrix, values, rules, order);
        for keep in [false, true] {
            let source = Source {
                rows,
                value_type: V::TYPE,
                order: order.map(|order| DeviceBuffer::from_slice(cx, order).unwrap()),
                positions: keep.then_some(None),
            };
            let cut = source.cut(cx).unwrap();
            let counted = source.count(cx, &cut, rules.width).unwrap();
            let found = Arrays::build(cx, source, &cut, counted, rules).unwrap();
            assert_eq!(all(&found.lists.items), expected.items[..], "{what}");
            assert_eq!(all(&found.lists.parts), expected.parts[..], "{what}");
            assert_eq!(all(&found.columns), expected.columns[..], "{what}");
            assert_eq!(all(&found.masks), expected.masks[..], "{what}");
            assert_eq!(all(&found.values), bytemuck::cast_slice::<V, u8>(&expected.values), "{what}");
            let parts_cut = expected.parts.last().map_or(0, |part| part.counter + 1);
            assert_eq!(found.lists.split_count, i64::from(parts_cut), "{what}");
            let slots = found.slots.as_ref().map(|slots| all(&slots.slots));
            let expected_slots = expected.slots.as_ref().filter(|_| keep).map(|slots| slots.to_vec());
            assert_eq!(slots, expected_slots, "{what}");
        }
    });
}

/// Makes a matrix with some long and some empty rows, columns shared by neighbours, and many repeated entries
/// if there are few columns.
fn sample(base: i64, rows: usize, cols: usize) -> TestMatrix {
    let mut next = sequence(rows as u64 + 1);
    let lengths: Vec<usize> = (0..rows).map(|_| next() % 4 * (next() % 19)).collect();
    TestMatrix::new(base, cols, &lengths, |row, entry| (row / 3 * 7 + entry * 131 + row % 3) % cols)
}

#[test]
fn the_device_makes_what_the_cpu_makes() {
    let Some((device, cx)) = context_of_device() else { return };
    let cx = &device.call(&cx).unwrap();
    for widths in WIDTHS {
        for base in [0, 1] {
            let mut matrices = vec![];
            for rows in [0, 1, 15, 16, 17, 100, 1000] {
                matrices.extend([997, 40, 1 << 30].map(|cols| sample(base, rows, cols)));
            }
            let mut lengths = vec![3; 500];
            (lengths[130], lengths[300], lengths[301]) = (9000, 400, 300);
            matrices.push(TestMatrix::new(base, 200_000, &lengths, |row, entry| row + entry * 17));
            for matrix in &matrices {
                let number = |at: usize| (at % 97) as f64 / 64.0 - 0.7;
                same(cx, matrix, widths, |at| f16::from_f64(number(at)));
                same(cx, matrix, widths, |at| number(at) as f32);
                same(cx, matrix, widths, number);
            }
        }
    }
}

/// Bytes of a value in a type; [`from_bytes`] is the inverse.
fn to_bits(value_type: DataType, value: f64) -> [u8; 8] {
    let bits = match value_type {
        DataType::R16F => f16::from_f64(value).to_bits().into(),
        DataType::R16BF => bf16::from_f64(value).to_bits().into(),
        DataType::R32F => (value as f32).to_bits().into(),
        _ => value.to_bits(),
    };
    bits.to_le_bytes()
}
fn from_bytes(value_type: DataType, bytes: &[u8]) -> f64 {
    let bits = bytes.iter().rev().fold(0_u64, |bits, &byte| bits << 8 | u64::from(byte));
    match value_type {
        DataType::R16F => f16::from_bits(bits as u16).to_f64(),
        DataType::R16BF => bf16::from_bits(bits as u16).to_f64(),
        DataType::R32F => f64::from(f32::from_bits(bits as u32)),
        _ => f64::from_bits(bits),
    }
}
/// Relative rounding errors of the type that C stores, and of the type to which factors are rounded.
fn roundings(types: Types) -> (f64, f64) {
    let store = match types.y {
        DataType::R16F => 1.0 / 2048.0,
        DataType::R16BF => 1.0 / 256.0,
        _ => 0.0,
    };
    (store, if types.compute == ComputeType::Tf32 { 1.0 / 2048.0 } else { 0.0 })
}

/// Array of values of a type.
struct Numbers {
    value_type: DataType,
    bytes: Vec<u8>,
}

impl Numbers {
    fn new(value_type: DataType, numbers: impl Iterator<Item = f64>) -> Self {
        let mut bytes = vec![];
        for value in numbers {
            bytes.extend_from_slice(&to_bits(value_type, value)[..value_type.size()]);
        }
        Numbers { value_type, bytes }
    }

    fn get(&self, at: usize) -> f64 {
        let size = self.value_type.size();
        from_bytes(self.value_type, &self.bytes[at * size..(at + 1) * size])
    }

    fn set(&mut self, at: usize, value: f64) {
        let size = self.value_type.size();
        self.bytes[at * size..(at + 1) * size].copy_from_slice(&to_bits(self.value_type, value)[..size]);
    }
}

/// One product to test: a dense operand begins `shift` elements into its array and has `pad` unused elements
/// between its rows or columns.
#[derive(Clone, Copy, Debug)]
struct SmatTestProduct {
    types: Types,
    n: usize,
    orders: (Order, Order),
    shift: usize,
    pad: usize,
    alpha: f64,
    beta: f64,
    /// True if B has infinities and NaNs.
    special: bool,
    /// True if values come by updateValues.
    updated: bool,
    /// True if the executor is built as a plan builds it, with clustered rows.
    clustered: bool,
}

const PLAIN: SmatTestProduct = SmatTestProduct {
    types: F16::TYPES,
    n: 32,
    orders: (Order::Row, Order::Row),
    shift: 0,
    pad: 0,
    alpha: 1.5,
    beta: 0.0,
    special: false,
    updated: false,
    clustered: false,
};

const TYPES: [Types; 6] = [F16::TYPES, F16F32::TYPES, Bf16::TYPES, Bf16F32::TYPES, Tf32::TYPES, F64::TYPES];

impl SmatTestProduct {
    /// Computes the product twice, asserts that both have the same bits, and compares it with sums in double
    /// precision.
    fn check(&self, cx: &DeviceCall<'_>, matrix: &TestMatrix, rules: Rules, row_order: Option<&[u32]>) {
        let what = format!("{self:?} {rules:?} {}", row_order.is_some());
        let &SmatTestProduct { types, n, orders, shift, pad, alpha, beta, special, updated, clustered } =
            self;
        let (rows, cols) = (matrix.offsets.len() - 1, matrix.cols);
        let mut next = sequence(n as u64 + 5);
        // Random in all bits of a double's mantissa.
        let mut number = || {
            let (high, low) = (next() as u64 & 0xff_ffff, next() as u64 & 0xfff_ffff);
            (high << 28 | low) as f64 / (1_u64 << 50) as f64 - 2.0
        };
        let count = matrix.values.len();
        let values = Numbers::new(types.a, (0..count).map(|_| number()));
        let placement = Placement { n, shift, pad };
        let mut b = Numbers::new(types.x, (0..placement.extent(orders.0, cols)).map(|_| number()));
        if special {
            for (at, value) in [f64::INFINITY, f64::NAN, f64::NEG_INFINITY].into_iter().enumerate() {
                let column = matrix.indices[count * (at + 1) / 5] - matrix.base;
                b.set(placement.at(orders.0, cols, (column as usize, at * 7 % n)), value);
            }
        }
        // If beta is 0, C must not be read.
        let old = Numbers::new(
            types.y,
            (0..placement.extent(orders.1, rows)).map(|_| if beta == 0.0 { f64::NAN } else { number() }),
        );

        let stored = OnDevice::new(cx, matrix, (types.a, &values.bytes), updated);
        let problem = SpmmProblem { value_updates: updated, ..stored.problem(types, orders, n) };
        let source = Source {
            rows: &Rows::of(stored.csr()),
            value_type: types.a,
            order: row_order.map(|order| DeviceBuffer::from_slice(cx, order).unwrap()),
            positions: updated.then_some(None),
        };
        let cut = source.cut(cx).unwrap();
        let counted = source.count(cx, &cut, rules.width).unwrap();
        let arrays = Arrays::build(cx, source, &cut, counted, rules).unwrap();
        let mut executor = SmatSpmm::new(cx.device, &problem, arrays).unwrap();
        if clustered {
            let analysis = Analysis { cx, problem: &problem, shared: &SharedResults::new(cx.device) };
            executor = build_from(&analysis, (&Clusters::IfFaster, None)).unwrap();
            assert!(executor.details().ends_with("rows clustered"), "{what}: {}", executor.details());
        }
        if updated {
            executor.update_values(cx, stored.values()).unwrap();
        }

        let (on, given) = ((cx, &executor as &SpmmExecutor, &problem), [&b.bytes[..], &old.bytes]);
        let bytes = run_product(on, placement, (alpha, beta), given, (true, &what));
        let found = Numbers { value_type: types.y, bytes };

        let eps = if types.compute == ComputeType::R64F { f64::EPSILON } else { f64::from(f32::EPSILON) };
        let (store, factor) = roundings(types);
        let mut expected = old.bytes.clone();
        let size = types.y.size();
        let pattern = matrix.pattern();
        for row in 0..rows {
            for col in 0..n {
                let (mut sum, mut absolute) = (0.0, 0.0);
                for at in pattern.range(row) {
                    let from = placement.at(orders.0, cols, (pattern.index(at), col));
                    let term = values.get(at) * b.get(from);
                    sum += term;
                    absolute += term.abs();
                }
                let at = placement.at(orders.1, rows, (row, col));
                let got = found.get(at);
                expected[at * size..(at + 1) * size]
                    .copy_from_slice(&found.bytes[at * size..(at + 1) * size]);
                let before = if beta == 0.0 { 0.0 } else { beta * old.get(at) };
                let exact = if alpha == 0.0 { before } else { alpha * sum + before };
                if !exact.is_finite() {
                    let same = got == exact || got.is_nan() && exact.is_nan();
                    assert!(same, "{what} {row} {col}: {got} {exact}");
                    continue;
                }
                let terms = (pattern.range(row).len() + 3) as f64;
                let of_sums = terms * eps * (alpha.abs() * absolute + before.abs());
                let of_factors = 2.1 * factor * alpha.abs() * absolute;
                let allowed =
                    of_sums + of_factors + store * exact.abs() + if store > 0.0 { 1e-7 } else { 0.0 };
                assert!((got - exact).abs() <= allowed, "{what} {row} {col}: {got} {exact} ± {allowed}");
            }
        }
        assert!(found.bytes == expected, "{what}: padding was written");
    }
}

fn check_all(matrix: &TestMatrix, products: &[SmatTestProduct]) {
    let Some((device, cx)) = context_of_device() else { return };
    let cx = &device.call(&cx).unwrap();
    for product in products {
        for_all_rules(product.types.a.size(), matrix.offsets.len() - 1, |rules, order| {
            product.check(cx, matrix, rules, order);
        });
    }
}

/// Repeats the products for all types.
fn of_types(products: impl IntoIterator<Item = SmatTestProduct>) -> Vec<SmatTestProduct> {
    products.into_iter().flat_map(|product| TYPES.map(|types| SmatTestProduct { types, ..product })).collect()
}

#[test]
fn any_number_of_columns() {
    let columns = [1, 3, 8, 9, 17, 32, 40, 64, 72, 100, 128, 300];
    check_all(&sample(0, 150, 401), &of_types(columns.map(|n| SmatTestProduct { n, ..PLAIN })));
}

#[test]
fn all_scalars_and_orders() {
    let mut products = vec![];
    for (number, (alpha, beta)) in [(1.0, 0.0), (-0.5, 2.0), (0.0, 0.5), (0.0, 0.0)].into_iter().enumerate() {
        for b in [Order::Row, Order::Col] {
            for c in [Order::Row, Order::Col] {
                let n = [24, 130, 9, 7][number];
                products.push(SmatTestProduct { alpha, beta, n, orders: (b, c), pad: 3, ..PLAIN });
            }
        }
    }
    check_all(&sample(1, 90, 300), &of_types(products));
}

#[test]
fn any_alignment() {
    let mut products = vec![];
    for (shift, pad) in [(0, 1), (1, 0), (1, 7), (8, 8), (4, 4), (2, 2)] {
        for n in [8, 16, 33, 128] {
            products.push(SmatTestProduct { shift, pad, n, beta: 1.0, ..PLAIN });
        }
    }
    check_all(&sample(0, 70, 200), &of_types(products));
}

#[test]
fn infinities_and_nans_follow_the_stored_entries() {
    let mut products = vec![];
    for n in [5, 32, 64, 130] {
        products.push(SmatTestProduct { n, special: true, ..PLAIN });
        let orders = (Order::Col, Order::Col);
        products.push(SmatTestProduct { n, special: true, beta: 0.5, orders, ..PLAIN });
    }
    // The last block is wider than the rest of A, and some rows have a column twice.
    for cols in [500, 37] {
        check_all(&sample(0, 130, cols), &of_types(products.clone()));
    }
}

#[test]
fn parts_of_long_row_blocks_are_joined() {
    let mut lengths = vec![3; 200];
    (lengths[130], lengths[199]) = (4000, 900);
    let matrix = TestMatrix::new(0, 20_200, &lengths, |row, entry| row + entry * 5);
    check_all(&matrix, &of_types([7, 32, 64, 130].map(|n| SmatTestProduct { n, beta: 1.0, ..PLAIN })));
    check_all(&matrix, &of_types([SmatTestProduct { n: 40, special: true, ..PLAIN }]));
}

/// Tests a B that is read by columns: with filled blocks, and with few columns. The width of the matrix cuts
/// the last chunks of columns.
#[test]
fn columns_of_b_are_read_as_they_are() {
    let mut products = vec![];
    for n in [3, 8, 20, 32, 64, 70, 130] {
        for (c, special) in [(Order::Row, false), (Order::Col, false), (Order::Row, true)] {
            let orders = (Order::Col, c);
            products.push(SmatTestProduct { n, orders, pad: 3, shift: 8, special, beta: 0.5, ..PLAIN });
        }
    }
    let products = of_types(products);
    check_all(&TestMatrix::new(0, 301, &[120; 70], |row, entry| (row / 16 + entry * 5 / 2) % 301), &products);
    check_all(&sample(1, 50, 301), &products);
}

#[test]
fn new_values_take_the_places_of_old_ones() {
    check_all(&sample(1, 90, 60), &of_types([SmatTestProduct { n: 20, updated: true, ..PLAIN }]));
}

#[test]
fn rows_that_are_alike_are_put_together() {
    let Some((device, cx)) = context_of_device() else { return };
    let cx = &device.call(&cx).unwrap();
    // 40 families of 16 rows with common columns, whose rows alternate. B has so many columns that blocks
    // take most of the time.
    let matrix = TestMatrix::new(0, 4000, &[6; 640], |row, entry| row % 40 * 97 + entry * 8);
    for c in [Order::Row, Order::Col] {
        let product =
            SmatTestProduct { clustered: true, orders: (Order::Row, c), n: 1500, beta: 0.5, ..PLAIN };
        for product in of_types([product, SmatTestProduct { updated: true, ..product }]) {
            product.check(cx, &matrix, select::rules(2, 8), None);
        }
    }
}

#[test]
fn matrices_without_entries() {
    let products = of_types([8, 128].map(|n| SmatTestProduct { n, beta: 2.0, ..PLAIN }));
    check_all(&TestMatrix::new(0, 10, &[0; 20], |_, _| 0), &products);
}

/// Runs all kernels on matrices that are small enough for compute-sanitizer.
#[test]
fn sanitizer_small_matrices() {
    let matrix = sample(1, 40, 90);
    check_all(&matrix, &of_types([8, 33].map(|n| SmatTestProduct { n, beta: 0.5, ..PLAIN })));
    check_all(&matrix, &of_types([SmatTestProduct { n: 20, orders: (Order::Col, Order::Col), ..PLAIN }]));
    let mut lengths = vec![3; 40];
    lengths[17] = 700;
    let long = TestMatrix::new(0, 3600, &lengths, |row, entry| row + entry * 5);
    check_all(&long, &of_types([SmatTestProduct { n: 40, special: true, beta: 1.0, ..PLAIN }]));
}

//! Tests against the CPU's layouts, bit for bit, and against sums in double precision. Skipped without a
//! device.

use super::super::testing::{self, check_types, sample, TestProduct};
use super::build::Sorted;
use super::*;
use crate::algorithm::Algorithm;
use crate::backend::cuda::convert::testing::{all, context_of_device};
use crate::backend::cuda::convert::Positions;
use crate::backend::cuda::device::DeviceCall;
use crate::backend::cuda::memory::DeviceBuffer;
use crate::backend::cuda::operand::Rows;
use crate::format::sell::Origin;
use crate::format::swift::bands::Bands as HostBands;
use crate::format::swift::tests::shapes;
use crate::format::testing::allocator;
use crate::format::testing::TestMatrix;
use crate::format::Swift;
use crate::support::{Combo, Types, F32, F64};
use crate::types::{Element, IndexType, Operation, Order};

const TYPES: [Types; 2] = [F64::TYPES, F32::TYPES];
const PLAIN: TestProduct =
    TestProduct { algorithm: Algorithm::Swift, deterministic: false, ..testing::PLAIN };

/// Checks the products of both forms.
fn check_all(matrix: &TestMatrix, products: impl IntoIterator<Item = TestProduct>) {
    let of_both = |product| [false, true].map(|deterministic| TestProduct { deterministic, ..product });
    check_types(matrix, &TYPES, products.into_iter().flat_map(of_both));
}

/// Asserts that the device makes the same arrays as the CPU. Rows of `matrix` are columns of op(A).
fn same<V: Element + PartialEq>(cx: &DeviceCall<'_>, matrix: &TestMatrix, value: fn(f64) -> V) {
    let values: Vec<V> = matrix.values.iter().map(|&v| value(v)).collect();
    let offsets: Vec<i64> = matrix.offsets.iter().map(|&at| at - matrix.base).collect();
    let indices: Vec<i32> = matrix.indices.iter().map(|&at| (at - matrix.base) as i32).collect();
    let from: Vec<u64> = (0..values.len() as u64).rev().collect();
    let uploaded = DeviceBuffer::from_slice(cx, &offsets).unwrap();
    let uploaded_indices = DeviceBuffer::from_slice(cx, &indices).unwrap();
    let uploaded_values = DeviceBuffer::from_slice(cx, &values).unwrap();
    let kept = Positions::Kept(DeviceBuffer::from_slice(cx, &from).unwrap());
    let columns = Rows {
        offsets: uploaded.address(),
        indices: uploaded_indices.address(),
        values: uploaded_values.address(),
        offset_type: IndexType::I64,
        index_type: IndexType::I32,
        base: 0,
        rows: offsets.len() as i64 - 1,
        cols: matrix.cols as i64,
        nnz: values.len() as i64,
    };
    let longest = offsets.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or(0);
    let signed: Vec<i64> = from.iter().map(|&at| at as i64).collect();
    for (positions, origin) in [
        (None, Origin { keep: false, positions: None }),
        (Some(None), Origin { keep: true, positions: None }),
        (Some(Some(&kept)), Origin { keep: true, positions: Some(&signed) }),
    ] {
        let sorted = Sorted { columns, value_type: V::TYPE, longest, positions };
        let expected = Swift::build(&allocator(), &matrix.pattern(), &values, origin).unwrap();
        let found = BlockArrays::build(cx, &sorted).unwrap();
        assert_eq!(all(&found.order), expected.order[..]);
        assert_eq!(all(&found.columns), expected.columns[..]);
        assert_eq!(all(&found.rows), expected.rows[..]);
        assert_eq!(all(&found.positions), expected.positions[..]);
        assert_eq!(all(&found.offsets), expected.offsets[..]);
        assert_eq!(all(&found.pieces), expected.outline.pieces[..]);
        assert_eq!(all(&found.values), bytemuck::cast_slice::<V, u8>(&expected.values));
        assert_eq!(
            found.slots.as_ref().map(|slots| all(&slots.slots)),
            expected.slots.as_ref().map(|slots| slots.to_vec())
        );
        assert_eq!(found.details, expected.details());

        let expected = HostBands::build(&allocator(), &matrix.pattern(), &values, origin).unwrap();
        let found = BandArrays::build(cx, &sorted).unwrap();
        assert_eq!(all(&found.lists.items), expected.items[..]);
        assert_eq!(all(&found.lists.parts), expected.parts[..]);
        assert_eq!(
            found.lists.split_count,
            expected.parts.last().map_or(0, |part| i64::from(part.counter) + 1)
        );
        assert_eq!(all(&found.columns), expected.columns[..]);
        assert_eq!(all(&found.rows), expected.rows[..]);
        assert_eq!(all(&found.values), bytemuck::cast_slice::<V, u8>(&expected.values));
        assert_eq!(
            found.slots.as_ref().map(|slots| all(&slots.slots)),
            expected.slots.as_ref().map(|slots| slots.to_vec())
        );
    }
}

#[test]
fn the_device_makes_what_the_cpu_makes() {
    let Some((device, cx)) = context_of_device() else { return };
    let cx = &device.call(&cx).unwrap();
    let long = TestMatrix::new(0, 40, &[40; 300], |_, entry| entry);
    for matrix in shapes().iter().chain([&long]) {
        same(cx, matrix, |v| v as f32);
        same(cx, matrix, |v| v);
    }
}

/// Makes a matrix with short rows and columns, one long row, and one long column.
fn skewed() -> TestMatrix {
    let mut lengths = vec![3; 400];
    (lengths[17], lengths[300]) = (3000, 700);
    TestMatrix::new(0, 4000, &lengths, |row, entry| if entry == 0 { 7 } else { row + entry })
}

#[test]
fn any_number_of_columns() {
    let columns = [1, 2, 4, 5, 8, 9, 16, 31, 32, 33, 64, 100, 128, 132, 300];
    check_all(&sample(0, 150, 401), columns.map(|n| TestProduct { n, ..PLAIN }));
    check_all(&sample(1, 700, 20), columns.map(|n| TestProduct { n, beta: 0.5, ..PLAIN }));
}

#[test]
fn all_scalars_and_orders() {
    let mut products = vec![];
    for (number, (alpha, beta)) in [(1.0, 0.0), (-0.5, 2.0), (0.0, 0.5), (0.0, 0.0)].into_iter().enumerate() {
        for b in [Order::Row, Order::Col] {
            for c in [Order::Row, Order::Col] {
                for n in [1, [8, 64, 9, 7][number]] {
                    products.push(TestProduct { alpha, beta, n, orders: (b, c), pad: 3, ..PLAIN });
                }
            }
        }
    }
    check_all(&sample(1, 90, 300), products);
}

#[test]
fn any_alignment() {
    let mut products = vec![];
    for (shift, pad) in [(0, 1), (1, 0), (1, 7), (8, 8), (4, 4), (2, 2)] {
        for n in [1, 4, 8, 16, 33, 64] {
            products.push(TestProduct { shift, pad, n, beta: 1.0, ..PLAIN });
        }
    }
    check_all(&sample(0, 70, 200), products);
}

#[test]
fn transposed_operands() {
    let op = Operation::Transpose;
    check_all(&sample(1, 170, 60), [1, 6, 40].map(|n| TestProduct { n, op, beta: -1.0, ..PLAIN }));
    check_all(&skewed(), [3, 32].map(|n| TestProduct { n, op, ..PLAIN }));
}

#[test]
fn long_rows_and_columns() {
    for orders in [(Order::Row, Order::Row), (Order::Col, Order::Col)] {
        check_all(&skewed(), [1, 30, 32, 128, 200].map(|n| TestProduct { n, orders, beta: 1.0, ..PLAIN }));
    }
}

#[test]
fn infinities_and_nans_follow_the_stored_entries() {
    for n in [5, 8, 32, 40] {
        check_all(&sample(1, 90, 300), [TestProduct { n, special: true, ..PLAIN }]);
    }
}

#[test]
fn new_values() {
    for updated in [Some(false), Some(true)] {
        check_all(&sample(0, 120, 130), [8, 33].map(|n| TestProduct { n, updated, ..PLAIN }));
        let op = Operation::Transpose;
        check_all(&sample(0, 120, 130), [TestProduct { op, updated, ..PLAIN }]);
    }
}

#[test]
fn sanitizer_small_matrices() {
    let matrix = sample(1, 40, 90);
    check_all(&matrix, [1, 8, 33].map(|n| TestProduct { n, beta: 0.5, ..PLAIN }));
    check_all(&matrix, [TestProduct { n: 20, orders: (Order::Col, Order::Col), ..PLAIN }]);
    let long = TestMatrix::new(0, 3600, &[3, 3000, 40], |row, entry| row + entry);
    check_all(&long, [4, 40].map(|n| TestProduct { n, beta: 1.0, ..PLAIN }));
}

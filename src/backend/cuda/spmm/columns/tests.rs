//! Tests of products that read and write columns of B and C where they are, against sums in double precision, and of
//! the decision to do so. Skipped without a device.

use super::super::once;
use super::super::testing::{self, check_all, check_types, sample, TestProduct};
use super::*;
use crate::backend::cuda::convert::testing::context_of_device;
use crate::backend::cuda::memory::DeviceBuffer;
use crate::format::testing::TestMatrix;
use crate::matrix::{Compressed, SparseArrays, SparseMatrix};
use crate::memory::{Context, COUNTER_BYTES};
use crate::support::{Combo, F32, F64};
use crate::types::{DataType, IndexBase, Operation};

/// Limits that every matrix meets whose rows have at most 100 entries.
const LOOSE: ColumnLimits = ColumnLimits { longest: 100, sectors: 1 << 20 };
const BY_COLUMNS: TestProduct = TestProduct {
    once: true,
    column_limits: Some(LOOSE),
    orders: (Order::Col, Order::Col),
    beta: 0.5,
    pad: 1,
    ..testing::PLAIN
};

/// Matrix of `rows` rows of `length` entries side by side, of which the last one has `longest`.
fn band(base: i64, rows: usize, length: usize, longest: usize) -> TestMatrix {
    let mut lengths = vec![length; rows];
    lengths[rows - 1] = longest;
    let cols = rows + length.max(longest);
    TestMatrix::new(base, cols, &lengths, |row, entry| if row + 1 == rows { entry } else { row + entry })
}

#[test]
fn any_columns_types_and_scalars() {
    let columns = [1, 3, 8, 9, 16, 33, 64, 136];
    check_all(&sample(1, 600, 401), columns.map(|n| TestProduct { n, ..BY_COLUMNS }));
    check_all(
        &band(0, 1500, 7, 90),
        columns.map(|n| TestProduct { n, beta: 0.0, special: true, ..BY_COLUMNS }),
    );
    let mut products = vec![];
    for (alpha, beta) in [(1.0, 0.0), (-0.5, 2.0), (0.0, 0.5), (0.0, 0.0)] {
        products.extend([8, 20].map(|n| TestProduct { alpha, beta, n, ..BY_COLUMNS }));
    }
    check_all(&sample(0, 300, 300), products);
    let none = TestMatrix::new(0, 10, &[0; 300], |_, _| 0);
    check_all(&none, [1, 40].map(|n| TestProduct { n, ..BY_COLUMNS }));
}

/// Tests copies of some columns at a time behind both decisions.
#[test]
fn both_decisions_lead_to_the_product() {
    let matrix = band(0, 2700, 5, 3000);
    for longest in [10, 4000] {
        let column_limits = Some(ColumnLimits { longest, ..LOOSE });
        check_types(
            &matrix,
            &[F64::TYPES, F32::TYPES],
            [4, 33, 300].map(|n| TestProduct {
                n,
                column_limits,
                max_copied_bytes: Some(1 << 20),
                ..BY_COLUMNS
            }),
        );
    }
}

/// Tests that columns are chosen exactly up to the limits, that the lists are empty then, and that the handle's
/// counters are zero again.
#[test]
fn decisions_are_by_the_longest_row_and_by_sectors() {
    let Some((device, cx)) = context_of_device() else { return };
    let counters = {
        let cx = device.call(&cx).unwrap();
        DeviceBuffer::from_slice(&cx, &vec![0_u32; COUNTER_BYTES / 4]).unwrap()
    };
    let cx = Context { counters: counters.address(), ..cx };
    let cx = &device.call(&cx).unwrap();
    // Rows of 8 entries side by side: 32 lanes read 32 doubles, which are 8 or 9 sectors, so 0.27 an entry.
    // At random each reads a sector of its own.
    let near = band(1, 40_000, 8, 8);
    let far =
        TestMatrix::new(1, 400_000, &vec![8; 40_000], |row, entry| (row * 7919 + entry * 50_000) % 400_000);
    for (matrix, longest, sectors, expected) in
        [(&near, 8, 290, 1), (&near, 7, 290, 0), (&near, 8, 250, 0), (&far, 8, 1000, 0), (&far, 8, 1024, 1)]
    {
        let offsets: Vec<_> = matrix.offsets.iter().map(|&at| at as i32).collect();
        let indices: Vec<_> = matrix.indices.iter().map(|&at| at as i32).collect();
        let offsets = DeviceBuffer::from_slice(cx, &offsets).unwrap();
        let indices = DeviceBuffer::from_slice(cx, &indices).unwrap();
        let values = DeviceBuffer::from_slice(cx, &vec![1.0_f64; matrix.indices.len()]).unwrap();
        let n = 3;
        let b = DeviceBuffer::from_slice(cx, &vec![1.0_f64; matrix.cols * n]).unwrap();
        let c = DeviceBuffer::from_slice(cx, &vec![-1.0_f64; 40_000 * n]).unwrap();
        let lengths = DeviceBuffer::from_slice(cx, &[-1_i64; 4]).unwrap();
        let a = Compressed {
            major: 40_000,
            minor: matrix.cols as i64,
            nnz: matrix.indices.len() as i64,
            offsets: offsets.address(),
            indices: indices.address(),
            values: values.address(),
            offset_type: IndexType::I32,
            index_type: IndexType::I32,
            base: IndexBase::One,
            value_type: F64::TYPES.a,
        };
        let dense = |values: Address, rows: i64| DenseMatrix {
            rows,
            cols: n as i64,
            ld: rows,
            order: Order::Col,
            values,
            value_type: F64::TYPES.a,
            writable: true,
        };
        let operands = (&dense(b.address(), matrix.cols as i64), &dense(c.address(), 40_000));
        let kernels = ColumnKernels::load(&device, F64::TYPES, IndexType::I32).unwrap();
        let (one, zero) = (Scalar::real(DataType::R64F, 1.0), Scalar::real(DataType::R64F, 0.0));
        let state = counters.address();
        let limits = ColumnLimits { longest, sectors };
        kernels
            .enqueue(cx, &Rows::of(&a), limits, operands, (one, zero), (state, lengths.address()))
            .unwrap();
        let found = lengths.read(0, 4).unwrap();
        let first = if expected == 1 { [0, 0] } else { [-1, -1] };
        assert_eq!(found, [first[0], first[1], expected, -1], "{limits:?}");
        let sums = c.read(0, 40_000 * n).unwrap();
        assert!(sums.iter().all(|&sum| sum == if expected == 1 { 8.0 } else { -1.0 }), "{limits:?}");
        assert!(counters.read(0, COUNTER_BYTES / 4).unwrap().iter().all(|&word| word == 0));
    }
}

/// Tests that a product takes the limits where B and C are by columns and it is large enough, and only then.
#[test]
fn large_products_by_columns_have_limits() {
    let Some((device, cx)) = context_of_device() else { return };
    // Makes the context current.
    let _call = device.call(&cx).unwrap();
    let problem = |rows: i64, (b_order, c_order): (Order, Order)| SpmmProblem {
        op: Operation::NonTranspose,
        op_b: Operation::NonTranspose,
        a: SparseMatrix {
            arrays: SparseArrays::Csr(Compressed {
                major: rows,
                minor: rows,
                nnz: 7 * rows,
                offsets: Address::NULL,
                indices: Address::NULL,
                values: Address::NULL,
                offset_type: IndexType::I32,
                index_type: IndexType::I32,
                base: IndexBase::Zero,
                value_type: F32::TYPES.a,
            }),
            writable: true,
            temporary: false,
        },
        b_order,
        c_order,
        n_hint: 32,
        types: F32::TYPES,
        value_updates: false,
        ieee: false,
    };
    let has_limits = |rows, orders| {
        once::product(&device, &problem(rows, orders)).unwrap().unwrap().column_limits.is_some()
    };
    assert!(has_limits(1_000_000, (Order::Col, Order::Col)));
    assert!(!has_limits(1_000_000, (Order::Row, Order::Col)));
    assert!(!has_limits(1_000_000, (Order::Col, Order::Row)));
    assert!(!has_limits(10_000, (Order::Col, Order::Col)));
}

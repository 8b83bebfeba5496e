//! Tests against the CPU's windows, bit for bit. Skipped without a device.

use super::*;
use crate::backend::cuda::convert::testing::{context_of_device, typed};
use crate::backend::cuda::device::DeviceCall;
use crate::format::testing::{allocator, TestRows};
use crate::matrix::compressed::Pattern;
use crate::memory::Context;
use crate::reorder::jaccard;
use crate::reorder::tests::{families::families, neighbours, rows_of, shuffled};
use crate::types::IndexType;

const WIDTHS: [(IndexType, IndexType); 3] =
    [(IndexType::I32, IndexType::I32), (IndexType::I64, IndexType::I32), (IndexType::I64, IndexType::I64)];
const SHAPES: [BlockShape; 5] = [
    BlockShape { height: 16, width: 16 },
    BlockShape { height: 16, width: 8 },
    BlockShape { height: 8, width: 16 },
    BlockShape { height: 64, width: 3 },
    BlockShape { height: 1, width: 1 },
];

/// Asserts that the device makes the host's windows, for one choice of index types and base.
fn same(cx: &DeviceCall<'_>, matrix: &TestRows<i32, i32>, shape: BlockShape, choice: usize) {
    let (widths, base) = (WIDTHS[choice % 3], (choice / 3 % 2) as i64);
    let shifted = |numbers: &[i32]| -> Vec<i64> { numbers.iter().map(|&n| i64::from(n) + base).collect() };
    let offsets = DeviceBuffer::from_slice(cx, &typed(&shifted(&matrix.offsets), widths.0)).unwrap();
    let indices = DeviceBuffer::from_slice(cx, &typed(&shifted(&matrix.columns), widths.1)).unwrap();
    let rows = Rows {
        offsets: offsets.address(),
        indices: indices.address(),
        values: Address::NULL,
        offset_type: widths.0,
        index_type: widths.1,
        base,
        rows: matrix.rows() as i64,
        cols: matrix.cols as i64,
        nnz: matrix.columns.len() as i64,
    };
    let pattern: Pattern<i32, i32> = matrix.pattern();
    for when in [When::Always, When::Promising] {
        let expected = jaccard::cluster(&allocator(), &pattern, shape, when).unwrap();
        let found = cluster(cx, &rows, shape, when).unwrap();
        assert_eq!((found.before, found.after), (expected.before, expected.after), "{shape:?} {when:?}");
        let places = found.places.map(|places| places.read(0, places.len()).unwrap());
        let expected = expected.windows.map(|windows| windows.places(&allocator(), shape.height).unwrap());
        assert_eq!(places.as_deref(), expected.as_deref(), "{shape:?} {when:?}");
    }
    // The result of sampling is compared even where it is not used.
    if rows.nnz > 0 {
        let found = Clusters::new(cx, &rows, shape).unwrap().promise().unwrap();
        assert_eq!(found, jaccard::promise(&allocator(), &pattern, shape).unwrap(), "{shape:?}");
    }
}

#[test]
fn windows_of_small_matrices_are_the_hosts() {
    let Some((device, cx)) = context_of_device() else { return };
    let cx = &device.call(&cx).unwrap();
    for (number, (_, matrix, _)) in families().into_iter().enumerate() {
        for (at, shape) in SHAPES.into_iter().enumerate() {
            same(cx, &matrix, shape, number + at);
        }
    }
}

#[test]
fn degenerate_matrices() {
    let Some((device, cx)) = context_of_device() else { return };
    let cx = &device.call(&cx).unwrap();
    let all = |rows: usize| (0..rows as u32).collect::<Vec<_>>();
    let matrices = [
        TestRows { cols: 10, base: 0, offsets: vec![0], columns: vec![] },
        rows_of(0, &all(40), |_| vec![]),
        rows_of(100, &all(1), |_| vec![3, 3, 3, 50]),
        // A row with all columns, which all warps of a block share.
        rows_of(50_000, &all(1), |_| (0..50_000).collect()),
        rows_of(100, &all(500), |_| vec![7, 7, 60]),
        rows_of(20_000, &shuffled(777, 4), |row| match row % 50 {
            7 => (0..20_000).collect(),
            8..20 => vec![],
            20 => (0..2049).collect(),
            21 => (0..2048).collect(),
            _ => vec![row % 13 * 150],
        }),
        neighbours(999, 5, 9),
        neighbours(64, 3, 1),
        neighbours(65, 3, 2),
    ];
    for (number, matrix) in matrices.iter().enumerate() {
        for (at, shape) in SHAPES.into_iter().enumerate() {
            same(cx, matrix, shape, number + at);
        }
    }
}

/// A case that is small enough for compute-sanitizer and runs every kernel.
#[test]
fn sanitizer_clusters() {
    let Some((device, cx)) = context_of_device() else { return };
    let cx = &device.call(&cx).unwrap();
    same(cx, &neighbours(300, 5, 7), SHAPES[0], 0);
    // A long row, which the warps of a block share, and empty rows.
    let long = rows_of(3000, &shuffled(100, 4), |row| match row % 20 {
        7 => (0..2500).collect(),
        8..12 => vec![],
        _ => vec![row % 5 * 500],
    });
    same(cx, &long, SHAPES[1], 2);
}

#[test]
fn large_matrices_are_sampled_as_on_the_host() {
    let Some((device, cx)) = context_of_device() else { return };
    let cx = &device.call(&cx).unwrap();
    // Four and eight times as many rows as a sample has; those of the first matrix are shuffled.
    for (number, rows) in [(0, 100_000), (1, 200_001)] {
        let order = if number == 0 { shuffled(rows, 5) } else { (0..rows as u32).collect() };
        let matrix = rows_of(rows + 200, &order, |row| (0..7).map(|at| row + at * 29).collect());
        same(cx, &matrix, SHAPES[0], number);
    }
    // Rows of only two kinds, so that every key occurs many times.
    same(cx, &rows_of(64, &(0..100_000).collect::<Vec<_>>(), |row| vec![row % 2 * 32]), SHAPES[1], 2);
}

#[test]
fn memory_comes_back_and_limits_hold() {
    let Some((device, cx)) = context_of_device() else { return };
    let cx = &device.call(&cx).unwrap();
    let matrix = neighbours(5000, 6, 3);
    let offsets = DeviceBuffer::from_slice(cx, &matrix.offsets).unwrap();
    let indices = DeviceBuffer::from_slice(cx, &matrix.columns).unwrap();
    let rows = Rows {
        offsets: offsets.address(),
        indices: indices.address(),
        values: Address::NULL,
        offset_type: IndexType::I32,
        index_type: IndexType::I32,
        base: 0,
        rows: 5000,
        cols: matrix.cols as i64,
        nnz: matrix.columns.len() as i64,
    };
    for limit in [0, 1000, 100_000, 400_000, usize::MAX] {
        let context = Context { allocator: cx.allocator.scoped(limit), ..Context::clone(cx) };
        let cx = &device.call(&context).unwrap();
        let found = cluster(cx, &rows, SHAPES[0], When::Always);
        assert_eq!(found.is_ok(), limit == usize::MAX, "{limit}");
        drop(found);
        assert_eq!(cx.allocator.live_bytes(), 0);
    }
}

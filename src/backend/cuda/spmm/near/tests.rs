//! Against sums in double precision. Skipped without a device.

use super::super::testing::{Product, PLAIN};
use super::*;
use crate::backend::cuda::convert::testing::context_of_device;
use crate::layout::mask_block::tests::Matrix as Rows64;
use crate::support::{Tf32, Types, F32, F32F64, F64};
use crate::types::{Operation, Order};

const TYPES: [Types; 4] = [F64::TYPES, F32::TYPES, Tf32::TYPES, F32F64::TYPES];

fn stats(rows: i64, nnz: i64, max: i64) -> (Rows, RowStats) {
    let at = Address::NULL;
    let (offset_type, index_type) = (IndexType::I64, IndexType::I32);
    let of = Rows {
        offsets: at,
        indices: at,
        values: at,
        offset_type,
        index_type,
        base: 0,
        rows,
        cols: rows,
        nnz,
    };
    (of, RowStats { rows, nnz, max, empty: 0, longer: Default::default() })
}

#[test]
fn rows_are_many_and_short_and_alike() {
    let suits = |rows, mean: i64, max| {
        let (rows, stats) = stats(rows, rows * mean, max);
        suits(&rows, &stats, 100)
    };
    assert!(suits(1_000_000, 7, 7) && suits(1_000_000, 3, 8) && suits(1_000_000, 19, 32));
    assert!(!suits(1_000_000, 7, 15) && !suits(1_000_000, 20, 20) && !suits(1_000_000, 19, 33));
    assert!(!suits(50_000, 7, 7) && !suits(0, 0, 0));
}

/// Points of a grid with their neighbours, `far` more of these in a distance, for as many rows as are
/// dealt out several times; some are empty.
fn grid(base: i64, rows: usize, far: usize) -> Rows64 {
    let neighbours = |row: usize| -> Vec<usize> {
        if row % 97 == 5 {
            return vec![];
        }
        let steps = [1, 90, 301];
        let after = (0..far).map(|step| row + 302 + step).chain(steps.map(|step| row + step));
        let before = steps.iter().filter_map(|&step| row.checked_sub(step));
        after.chain(before).chain([row]).filter(|&column| column < rows).collect()
    };
    let lengths: Vec<_> = (0..rows).map(|row| neighbours(row).len()).collect();
    Rows64::new(base, rows, &lengths, |row, entry| neighbours(row)[entry])
}

/// Of a grid whose rows these kernels take.
fn check(base: i64, far: usize, products: &[Product]) {
    let Some((device, cx)) = context_of_device() else { return };
    let _entered = device.enter().unwrap();
    // A last chunk, and a last piece, that are not full.
    let rows = device.properties().multiprocessors as usize * (ROUNDS * PIECE * 32) as usize + 341;
    let matrix = grid(base, rows, far);
    for product in products {
        for types in TYPES {
            Product { types, ..*product }.check(&cx, &device, &matrix);
        }
    }
}

#[test]
fn any_number_of_columns() {
    check(0, 0, &[2, 4, 8, 9, 16, 20, 33, 70].map(|n| Product { n, ..PLAIN }));
}

#[test]
fn rows_longer_than_a_groups_entries() {
    check(0, 12, &[4, 8, 16, 32].map(|n| Product { n, beta: -0.5, ..PLAIN }));
}

#[test]
fn arrays_in_place_from_one() {
    check(1, 0, &[8, 24].map(|n| Product { n, in_place: true, ..PLAIN }));
}

#[test]
fn scalars_orders_and_alignment() {
    let columns = (Order::Col, Order::Col);
    check(
        1,
        1,
        &[
            Product { n: 16, alpha: 0.0, beta: 0.5, ..PLAIN },
            Product { n: 8, alpha: 0.0, ..PLAIN },
            Product { n: 12, beta: 2.0, orders: columns, pad: 3, ..PLAIN },
            Product { n: 16, orders: (Order::Row, Order::Col), ..PLAIN },
            Product { n: 16, shift: 1, pad: 1, ..PLAIN },
            Product { n: 16, shift: 4, pad: 4, beta: 1.0, ..PLAIN },
            Product { n: 8, op: Operation::Transpose, ..PLAIN },
        ],
    );
}

#[test]
fn infinities_and_nans_follow_the_stored_entries() {
    check(0, 0, &[8, 40].map(|n| Product { n, special: true, ..PLAIN }));
}

#[test]
fn new_values_take_the_places_of_old_ones() {
    check(0, 0, &[Product { n: 16, updated: Some(true), ..PLAIN }]);
}

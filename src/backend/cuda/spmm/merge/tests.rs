//! Tests of products without a plan whose warps find their rows by a search, against sums in double precision.
//! Skipped without a device.

use super::super::testing::{self, check_all, check_types, sample, Division, TestProduct};
use crate::format::testing::TestMatrix;
use crate::support::{Combo, F32, F64};
use crate::types::Order;

/// Divisions for which warps have as few rows and entries as they may, and as many.
fn divisions(by_columns: bool) -> [Division; 4] {
    [(1 << 20, false), (1 << 20, true), (1, false), (1, true)]
        .map(|(multiprocessors, is_narrow)| Division::Search { multiprocessors, is_narrow, by_columns })
}

/// Numbers of columns for each kernel, with columns and tiles left over.
const COLUMNS: [usize; 8] = [8, 16, 24, 32, 48, 64, 128, 192];
const SEARCHED: TestProduct = TestProduct { once: true, beta: 0.5, ..testing::PLAIN };

fn products(columns: &[usize], product: TestProduct) -> Vec<TestProduct> {
    divided(columns, false, product)
}

const BY_COLUMNS: TestProduct = TestProduct { orders: (Order::Col, Order::Col), ..SEARCHED };

fn by_columns(columns: &[usize], product: TestProduct) -> Vec<TestProduct> {
    divided(columns, true, product)
}

fn divided(columns: &[usize], by_columns: bool, product: TestProduct) -> Vec<TestProduct> {
    let of = |n| divisions(by_columns).map(|division| TestProduct { n, division, ..product });
    columns.iter().copied().flat_map(of).collect()
}

/// Matrix of rows of these lengths, whose columns are far from each other.
fn of_lengths(base: i64, lengths: &[usize]) -> TestMatrix {
    TestMatrix::new(base, 977, lengths, |row, entry| (row * 31 + entry * 131) % 977)
}

#[test]
fn any_columns_types_and_scalars() {
    check_all(&sample(1, 600, 401), products(&COLUMNS, SEARCHED));
    check_all(&sample(0, 600, 401), products(&[8, 64], TestProduct { beta: 0.0, special: true, ..SEARCHED }));
    for (alpha, beta) in [(1.0, 0.0), (-0.5, 2.0), (0.0, 0.5), (0.0, 0.0)] {
        check_all(&sample(0, 300, 300), products(&[16, 64], TestProduct { alpha, beta, ..SEARCHED }));
    }
}

/// Tests rows that many warps share: alone, side by side, at both ends, and between many rows without entries.
#[test]
fn long_rows_are_split_among_warps() {
    let mut lengths = vec![3000, 0, 2, 700, 701, 0, 5];
    lengths.extend([0; 100]);
    lengths.extend([1500, 1, 1, 40, 300, 16, 17, 1200]);
    check_all(&of_lengths(0, &lengths), products(&[8, 32, 64, 128], SEARCHED));
    check_all(&of_lengths(1, &[5000]), products(&[8, 32, 64], SEARCHED));
    check_types(&of_lengths(0, &[400; 200]), &[F64::TYPES, F32::TYPES], products(&[8, 32, 192], SEARCHED));
    check_types(&of_lengths(0, &[33; 500]), &[F64::TYPES, F32::TYPES], products(&[8, 32, 192], SEARCHED));
}

#[test]
fn rows_without_entries() {
    check_all(&of_lengths(0, &[0; 300]), products(&[8, 64], TestProduct { beta: 2.0, ..SEARCHED }));
    check_all(&of_lengths(1, &[0]), products(&[8, 64], SEARCHED));
    check_all(&of_lengths(0, &[1; 4000]), products(&[8, 32], SEARCHED));
}

/// Tests rows with elements between them, a B and a C by columns, which are copied, and rows that are not aligned, for
/// which there are lists.
#[test]
fn other_places_of_dense_operands() {
    let mut lengths: Vec<usize> = (0..500).map(|row| row * 7 % 13).collect();
    lengths[77] = 2000;
    let matrix = of_lengths(0, &lengths);
    for (pad, shift) in [(8, 0), (8, 8), (1, 0), (0, 1)] {
        check_all(&matrix, products(&[16, 32, 64], TestProduct { pad, shift, ..SEARCHED }));
    }
    for orders in [(Order::Col, Order::Row), (Order::Row, Order::Col), (Order::Col, Order::Col)] {
        check_all(&matrix, products(&[8, 16, 64], TestProduct { orders, pad: 1, ..SEARCHED }));
        let alpha = 0.0;
        check_all(&matrix, products(&[32], TestProduct { orders, alpha, ..SEARCHED }));
    }
}

/// Tests a B and a C by columns where they are, with rows that are split among warps, columns left over, and elements
/// between columns.
#[test]
fn columns_where_they_are() {
    let mut lengths: Vec<usize> = (0..300).map(|row| row * 7 % 40).collect();
    (lengths[0], lengths[150], lengths[151], lengths[299]) = (3000, 2500, 700, 1);
    let long_rows = vec![100; 70];
    // Groups of four lanes, and a row that is split.
    let mut one_long = vec![3; 500];
    one_long[200] = 2500;
    for lengths in [lengths, one_long, long_rows, vec![0; 40], vec![4000]] {
        for base in [0, 1] {
            let matrix = of_lengths(base, &lengths);
            for (alpha, beta, pad) in [(1.5, 0.5, 0), (-0.5, 0.0, 3), (0.0, 2.0, 1)] {
                let product = TestProduct { alpha, beta, pad, ..BY_COLUMNS };
                check_all(&matrix, by_columns(&[2, 3, 4, 7, 8, 9, 13, 15, 32], product));
            }
        }
    }
    let special = TestProduct { special: true, beta: 0.0, ..BY_COLUMNS };
    check_all(&sample(1, 200, 150), by_columns(&[2, 5, 8, 20], special));
}

/// Tests rows of all kinds, few and short enough for compute-sanitizer.
#[test]
fn sanitizer_small_matrices() {
    check_all(&sample(1, 70, 90), products(&[8, 48, 64], SEARCHED));
    check_all(&of_lengths(0, &[3, 300, 0, 0, 17, 250]), products(&[16, 64], SEARCHED));
    check_all(&of_lengths(1, &[3, 300, 0, 0, 17, 250]), by_columns(&[3, 4, 8, 13], BY_COLUMNS));
    let mut short_rows = vec![2; 60];
    short_rows[30] = 300;
    check_all(&of_lengths(0, &short_rows), by_columns(&[2, 6, 9], BY_COLUMNS));
}

//! Tests of `csr` and of `row`, in every order of rows, against sums in double precision. Products are
//! skipped without a device.

use super::super::testing::{self, check_all, sample, TestProduct};
use super::*;
use crate::algorithm::Algorithm;
use crate::format::testing::TestMatrix;
use crate::reorder::policy::POLICIES;
use crate::types::Order as DenseOrder;

const PLAIN: TestProduct = TestProduct { algorithm: Algorithm::SpmmCsr, ..testing::PLAIN };
const ORDERS: [DenseOrder; 2] = [DenseOrder::Col, DenseOrder::Row];

#[test]
fn any_number_of_columns() {
    let columns = [1, 2, 3, 4, 5, 7, 8, 12, 17, 33, 64, 100];
    check_all(&sample(0, 150, 401), columns.map(|n| TestProduct { n, ..PLAIN }));
}

#[test]
fn all_scalars_and_orders() {
    let mut products = vec![];
    for (alpha, beta) in [(1.0, 0.0), (-0.5, 2.0), (0.0, 0.5), (0.0, 0.0)] {
        for b in ORDERS {
            for c in ORDERS {
                for reorder in [Reorder::None, Reorder::Dcsr, Reorder::Lpt] {
                    products.push(TestProduct {
                        alpha,
                        beta,
                        n: 9,
                        orders: (b, c),
                        pad: 3,
                        shift: 1,
                        reorder,
                        ..PLAIN
                    });
                }
            }
        }
    }
    check_all(&sample(1, 90, 300), products);
}

#[test]
fn every_order_of_rows() {
    for algorithm in [Algorithm::SpmmCsr, Algorithm::Row] {
        // RCM takes square matrices only.
        for (rows, cols) in [(700, 700), (33, 33), (1, 1)] {
            let products = POLICIES.iter().enumerate().map(|(at, &reorder)| {
                let orders = (ORDERS[at % 2], ORDERS[at / 2 % 2]);
                let n = [5, 32, 3, 20][at % 4];
                TestProduct { algorithm, reorder, n, orders, beta: 0.5, ..PLAIN }
            });
            check_all(&sample(1, rows, cols), products.collect::<Vec<_>>());
        }
    }
}

#[test]
fn long_rows_in_an_order() {
    let mut lengths = vec![3; 200];
    (lengths[130], lengths[131], lengths[199]) = (9000, 150, 1900);
    let matrix = TestMatrix::new(0, 45_200, &lengths, |row, entry| row + entry * 5);
    for algorithm in [Algorithm::SpmmCsr, Algorithm::Row] {
        for reorder in [Reorder::None, Reorder::Lpt, Reorder::Hybrid1] {
            let plain = TestProduct { algorithm, reorder, beta: 1.0, ..PLAIN };
            check_all(&matrix, [1, 8, 40].map(|n| TestProduct { n, ..plain }));
        }
    }
}

#[test]
fn transposed_operands_and_new_values() {
    let op = Operation::Transpose;
    for reorder in [Reorder::None, Reorder::PlainSort, Reorder::WarpAware] {
        check_all(
            &sample(1, 170, 60),
            [1, 6, 16].map(|n| TestProduct { n, op, reorder, beta: -1.0, ..PLAIN }),
        );
        for algorithm in [Algorithm::SpmmCsr, Algorithm::Row] {
            for op in [Operation::NonTranspose, Operation::Transpose] {
                let updated = Some(true);
                check_all(
                    &sample(1, 90, 60),
                    [TestProduct { n: 8, op, updated, reorder, algorithm, ..PLAIN }],
                );
            }
        }
    }
}

#[test]
fn infinities_and_nans_follow_the_stored_entries() {
    for reorder in [Reorder::None, Reorder::CtaAware] {
        for n in [1, 5, 40] {
            check_all(&sample(0, 130, 500), [TestProduct { n, special: true, reorder, ..PLAIN }]);
        }
    }
}

#[test]
fn matrices_without_entries() {
    let matrix = TestMatrix::new(0, 10, &[0; 20], |_, _| 0);
    for reorder in [Reorder::None, Reorder::Dcsr, Reorder::GrayCode] {
        check_all(&matrix, [1, 8, 40].map(|n| TestProduct { n, beta: 2.0, reorder, ..PLAIN }));
    }
}

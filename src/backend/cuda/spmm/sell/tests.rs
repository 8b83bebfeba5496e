//! Tests of SpMM `sell` against sums in double precision. Skipped without a device.

use super::super::analysis::SharedResults;
use super::super::testing::{self, check_all, sample, OnDevice, TestProduct};
use super::*;
use crate::algorithm::Algorithm;
use crate::backend::cuda::convert::testing::context_of_device;
use crate::format::testing::TestMatrix;
use crate::select::{Choice, Source};
use crate::support::{Combo, F32, F64};
use crate::types::{DataType, IndexType, Operation, Order};

const PLAIN: TestProduct = TestProduct { algorithm: Algorithm::SpmmSell, ..testing::PLAIN };

#[test]
fn any_number_of_columns() {
    let columns = [1, 2, 3, 4, 5, 7, 8, 9, 12, 16, 17, 33, 64, 100];
    check_all(&sample(0, 150, 401), columns.map(|n| TestProduct { n, ..PLAIN }));
}

#[test]
fn all_scalars_and_orders() {
    let mut products = vec![];
    for (number, (alpha, beta)) in [(1.0, 0.0), (-0.5, 2.0), (0.0, 0.5), (0.0, 0.0)].into_iter().enumerate() {
        for b in [Order::Row, Order::Col] {
            for c in [Order::Row, Order::Col] {
                for n in [1, [8, 16, 9, 7][number]] {
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
        for n in [1, 4, 8, 16, 33] {
            products.push(TestProduct { shift, pad, n, beta: 1.0, ..PLAIN });
        }
    }
    check_all(&sample(0, 70, 200), products);
}

#[test]
fn a_column_of_a_wider_matrix() {
    // B without gaps and C with gaps, and vice versa.
    for orders in [(Order::Col, Order::Row), (Order::Row, Order::Col)] {
        for pad in [0, 1, 5] {
            check_all(&sample(0, 70, 90), [TestProduct { n: 1, orders, pad, ..PLAIN }]);
        }
    }
}

#[test]
fn transposed_operands() {
    let op = Operation::Transpose;
    check_all(&sample(1, 170, 60), [1, 6, 16].map(|n| TestProduct { n, op, beta: -1.0, ..PLAIN }));
}

#[test]
fn infinities_and_nans_follow_the_stored_entries() {
    let orders = (Order::Col, Order::Col);
    for n in [1, 5, 8, 16, 40] {
        let product = TestProduct { n, special: true, ..PLAIN };
        check_all(&sample(0, 130, 500), [product, TestProduct { beta: 0.5, orders, ..product }]);
    }
}

#[test]
fn rows_with_the_same_columns_share_what_they_read() {
    for same in [2, 3] {
        // Items with one lane, and with several.
        for length in [6, 40, 200] {
            let lengths: Vec<_> = (0..100).map(|row| length + row / same % 3).collect();
            let matrix = TestMatrix::new(0, 3000, &lengths, |row, entry| row / same * 5 + entry * 4);
            check_all(&matrix, [3, 8, 16, 20].map(|n| TestProduct { n, beta: 1.0, ..PLAIN }));
        }
    }
}

#[test]
fn slices_of_diagonals_and_of_adjacent_columns() {
    // Lanes that read adjacent rows of B, consecutive columns, and columns far from each other.
    for (step, cols) in [(1, 4000), (3, 4000), (12_000, 100_000)] {
        let matrix = TestMatrix::new(1, cols, &[7; 200], |row, entry| (row + entry * step) % cols);
        check_all(&matrix, [1, 4, 8, 16].map(|n| TestProduct { n, ..PLAIN }));
    }
}

#[test]
fn long_rows_are_joined() {
    let mut lengths = vec![3; 200];
    (lengths[130], lengths[131], lengths[199]) = (9000, 150, 1900);
    let matrix = TestMatrix::new(0, 45_200, &lengths, |row, entry| row + entry * 5);
    check_all(&matrix, [1, 3, 8, 16, 40].map(|n| TestProduct { n, beta: 1.0, ..PLAIN }));
    check_all(&matrix, [TestProduct { n: 12, special: true, ..PLAIN }]);
}

#[test]
fn few_rows_take_all_lanes() {
    let matrix = TestMatrix::new(0, 900, &[150; 40], |row, entry| row + entry * 5);
    check_all(&matrix, [2, 7, 8, 16, 64].map(|n| TestProduct { n, ..PLAIN }));
}

#[test]
fn new_values_take_the_places_of_old_ones() {
    for op in [Operation::NonTranspose, Operation::Transpose] {
        for announced in [true, false] {
            for n in [1, 8] {
                check_all(&sample(1, 90, 60), [TestProduct { n, op, updated: Some(announced), ..PLAIN }]);
            }
        }
    }
}

#[test]
fn matrices_without_entries() {
    check_all(
        &TestMatrix::new(0, 10, &[0; 20], |_, _| 0),
        [1, 8, 40].map(|n| TestProduct { n, beta: 2.0, ..PLAIN }),
    );
}

/// Before an algorithm is chosen for few columns, analysis counts what rows share; the slices made of that are those
/// that `sell` by name makes, of sorted rows and of others.
#[test]
fn a_chosen_plan_has_the_slices_of_a_named_one() {
    let Some((device, cx)) = context_of_device() else { return };
    let cx = &device.call(&cx).unwrap();
    let alike = |same: usize| {
        let lengths: Vec<_> = (0..900).map(|row| 6 + row / same % 3).collect();
        TestMatrix::new(0, 5000, &lengths, |row, entry| row / same * 5 + entry * 4)
    };
    for (item_rows, matrix) in [(1, alike(1)), (2, alike(2)), (3, alike(3)), (1, sample(1, 700, 401))] {
        let doubles: Vec<f64> = (0..matrix.indices.len()).map(|at| at as f64).collect();
        let floats: Vec<f32> = doubles.iter().map(|&value| value as f32).collect();
        // Slices of floats are begun before the choice.
        for (types, index_type, value_updates) in [
            (F64::TYPES, IndexType::I32, false),
            (F32::TYPES, IndexType::I32, false),
            (F64::TYPES, IndexType::I32, true),
            (F32::TYPES, IndexType::I32, true),
            (F64::TYPES, IndexType::I64, false),
        ] {
            let is_begun = types.a == DataType::R32F;
            let values =
                if is_begun { bytemuck::cast_slice(&floats) } else { bytemuck::cast_slice(&doubles) };
            let stored = OnDevice::with_indices(cx, &matrix, (types.a, values), false, index_type);
            let problem = stored.problem(types, (Order::Row, Order::Row), 8);
            let problem = &SpmmProblem { value_updates, ..problem };
            let slices = |shared: &SharedResults| {
                let made = SellSpmm::build(&Analysis { cx, problem, shared }).unwrap();
                assert_eq!(made.arrays.rules.item_rows, item_rows);
                (made.arrays.contents(), made.arrays.rules)
            };
            let counted = || {
                let shared = SharedResults::for_choice(cx.device);
                Analysis { cx, problem, shared: &shared }.statistics().unwrap();
                shared
            };
            let named = slices(&SharedResults::new(cx.device));
            assert!(slices(&counted()) == named, "{item_rows} {index_type:?} {value_updates}");
            let rules = named.1;
            let shared = counted();
            let analysis = Analysis { cx, problem, shared: &shared };
            let properties = analysis.take_properties().unwrap();
            let begun = properties.begun.borrow().as_ref().map(|begun| begun.rules);
            assert_eq!(begun, is_begun.then_some(rules));
            drop(properties);
            // A plan whose rows and properties another builder has taken inspects them again.
            analysis.take_rows().unwrap();
            assert!(slices(&shared) == named, "{item_rows} {index_type:?} {value_updates}");
        }
    }
    assert_eq!(cx.allocator.live_bytes(), 0);
}

#[test]
fn slices_that_are_not_chosen_are_given_up() {
    let Some((device, cx)) = context_of_device() else { return };
    let cx = &device.call(&cx).unwrap();
    let matrix = sample(1, 700, 401);
    let values: Vec<f32> = (0..matrix.indices.len()).map(|at| at as f32).collect();
    let values = (F32::TYPES.a, bytemuck::cast_slice(&values));
    let stored = OnDevice::with_indices(cx, &matrix, values, false, IndexType::I32);
    let problem = &stored.problem(F32::TYPES, (Order::Row, Order::Row), 8);
    let inspection = super::super::inspect(cx, problem, &[]).unwrap();
    let is_begun = || {
        let shared: &SharedResults = inspection.backend_state.downcast_ref().unwrap();
        let analysis = Analysis { cx, problem, shared };
        let properties = analysis.take_properties().unwrap();
        let is_begun = properties.begun.borrow().is_some();
        analysis.give_properties(properties);
        is_begun
    };
    assert!(is_begun());
    let choice = Choice::new(Algorithm::Row, Source::InPlace);
    let _row = super::super::build(cx, problem, &choice, Some(&inspection)).unwrap();
    assert!(!is_begun());
}

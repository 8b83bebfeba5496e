//! Tests of `dense`, which stores op(A) with its zeros.

use super::super::dense as executors;
use super::*;
use crate::types::LayoutKind;

fn all_of_it() -> Choice {
    Choice::new(Algorithm::Dense, Source::Canonical)
}

fn check_dense<C: Combo>()
where
    C::Acc: Number,
{
    let mut random = Random::new(41);
    // The number of rows is no multiple of the rows that share loads of B, and there are duplicate entries.
    let lengths = [3, 0, 40, 1, 9, 31, 2];
    for (n, widths) in [0, 1, 3, 16, 17, 40].into_iter().zip(WIDTHS.into_iter().cycle()) {
        for (op, op_b) in OPS.into_iter().flat_map(|op| OPS.map(|op_b| (op, op_b))) {
            let base = if n % 2 == 0 { IndexBase::Zero } else { IndexBase::One };
            let matrix = UnsortedMatrix::<C::A>::random::<C::Acc>(&mut random, base, 31, &lengths);
            for orders in ORDERS.into_iter().flat_map(|b| ORDERS.map(|c| (b, c))) {
                let mut case = Case::<C>::new(&mut random, &matrix, (op, op_b), n, orders);
                for (alpha, beta) in [(case.alpha, case.beta), (C::Acc::ZERO, case.beta)] {
                    (case.alpha, case.beta) = (alpha, beta);
                    let executor = build(&context(), &case.problem(widths), &all_of_it()).unwrap();
                    let c = case.execute(&*executor);
                    case.compare(&c);
                }
            }
        }
    }
}

#[test]
fn all_combinations_agree_with_a_naive_loop() {
    check_dense::<F64>();
    check_dense::<F32>();
    check_dense::<Tf32>();
    check_dense::<F16>();
    check_dense::<F16F32>();
    check_dense::<Bf16>();
    check_dense::<Bf16F32>();
}

#[test]
fn what_is_not_stored_is_not_multiplied() {
    let ops = (Operation::NonTranspose, Operation::NonTranspose);
    for (n, order) in [1, 9, 40].into_iter().flat_map(|n| ORDERS.map(|order| (n, order))) {
        // The matrix has one column, and one entry, a stored 0, in row 1 of three.
        let mut matrix =
            UnsortedMatrix::<half::f16>::random::<f32>(&mut Random::new(1), IndexBase::Zero, 1, &[0, 1, 0]);
        matrix.values[0] = half::f16::ZERO;
        let mut case = Case::<F16F32>::new(&mut Random::new(2), &matrix, ops, n, (order, order));
        let executor = build(&context(), &case.problem(WIDTHS[0]), &all_of_it()).unwrap();
        assert_eq!(executor.layout().kind, LayoutKind::Dense);
        assert_eq!(executor.details(), "3 × 1 elements, 33.3 % stored");
        for special in [half::f16::INFINITY, half::f16::NAN] {
            case.b.values.fill(special);
            case.c.values.fill(f32::NAN);
            (case.alpha, case.beta) = (1.0, 0.0);
            let c = case.execute(&*executor);
            for j in 0..n {
                assert_eq!((c.values[c.at(0, j)], c.values[c.at(2, j)]), (0.0, 0.0));
                assert!(c.values[c.at(1, j)].is_nan());
            }
        }
    }
}

#[test]
fn the_same_bits_come_out_on_any_number_of_threads_and_of_new_values() {
    let mut random = Random::new(11);
    let lengths: Vec<usize> = (0..301).map(|_| random.below(30)).collect();
    check_threads_and_updates::<Bf16, _>(&lengths, 200, 21, executors::All::<Bf16>::arrange);
}

#[test]
fn what_takes_too_much_is_refused() {
    let matrix =
        UnsortedMatrix::<f64>::random::<f64>(&mut Random::new(1), IndexBase::Zero, 1 << 20, &[1; 100]);
    let ops = (Operation::NonTranspose, Operation::NonTranspose);
    let case = Case::<F64>::new(&mut Random::new(2), &matrix, ops, 1, (Order::Row, Order::Row));
    let error = build(&context(), &case.problem(WIDTHS[0]), &all_of_it()).err().unwrap();
    assert_eq!(error.status, Status::NotSupported);
    assert!(error.message.contains("838860800 bytes"), "{}", error.message);
}

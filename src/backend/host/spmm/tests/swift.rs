//! Tests of `swift` on the host.

use super::*;

fn blocks() -> Choice {
    Choice::new(Algorithm::Swift, Source::Canonical)
}

/// Returns random lengths of rows, some of them 0.
fn lengths(random: &mut Random, rows: usize) -> Vec<usize> {
    (0..rows).map(|_| random.below(4) * random.below(15)).collect()
}

fn check_blocks<C: Combo>()
where
    C::Acc: Number,
{
    let mut random = Random::new(37);
    let lengths = lengths(&mut random, 120);
    for (n, widths) in [1, 9, 70].into_iter().zip(WIDTHS.into_iter().cycle()) {
        for (op, op_b) in OPS.into_iter().flat_map(|op| OPS.map(|op_b| (op, op_b))) {
            let base = if n % 2 == 0 { IndexBase::Zero } else { IndexBase::One };
            // Too few columns for a whole block, and more than one block needs.
            for cols in [31, 75] {
                let matrix = UnsortedMatrix::<C::A>::random::<C::Acc>(&mut random, base, cols, &lengths);
                for orders in ORDERS.into_iter().flat_map(|b| ORDERS.map(|c| (b, c))) {
                    let mut case = Case::<C>::new(&mut random, &matrix, (op, op_b), n, orders);
                    let executor = build(&context(), &case.problem(widths), &blocks()).unwrap();
                    let c = case.execute(&*executor);
                    case.compare(&c);
                    assert_eq!(executor.layout().kind, crate::types::LayoutKind::Swift);
                    let none = cols == 31 && !op.transposes();
                    assert_eq!(executor.details().starts_with("0 blocks"), none, "{}", executor.details());
                }
            }
        }
    }
}

#[test]
fn columns_in_blocks_agree_with_a_naive_loop() {
    check_blocks::<F32>();
    check_blocks::<F64>();
}

#[test]
fn zeros_of_alpha_and_beta_read_nothing() {
    let ops = (Operation::NonTranspose, Operation::NonTranspose);
    for order in ORDERS {
        let matrix = UnsortedMatrix::<f64>::random::<f64>(&mut Random::new(1), IndexBase::Zero, 40, &[40; 9]);
        let mut case = Case::<F64>::new(&mut Random::new(2), &matrix, ops, 5, (order, order));
        let executor = build(&context(), &case.problem(WIDTHS[0]), &blocks()).unwrap();
        let old = case.c.clone();
        case.beta = 0.0;
        case.c.values.iter_mut().for_each(|value| *value = f64::NAN);
        let c = case.execute(&*executor);
        let inside = |c: &Dense<f64>| {
            (0..9)
                .flat_map(|i| (0..5).map(move |j| (i, j)))
                .map(|(i, j)| c.values[c.at(i, j)])
                .collect::<Vec<_>>()
        };
        assert!(inside(&c).iter().all(|value| value.is_finite()));
        (case.alpha, case.beta, case.c) = (0.0, 2.0, old);
        case.b.values.fill(f64::NAN);
        let c = case.execute(&*executor);
        assert!(inside(&c).iter().zip(inside(&case.c)).all(|(new, old)| *new == 2.0 * old));
    }
}

#[test]
fn columns_in_blocks_have_the_same_bits_on_any_number_of_threads_and_take_new_values() {
    let mut random = Random::new(11);
    let lengths = lengths(&mut random, 3000);
    check_threads_and_updates::<F64, _>(&lengths, 500, 33, super::super::swift::arrange);
}

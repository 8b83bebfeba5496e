//! Tests of `smat` on the host.

use super::super::bcsr as executors;
use super::*;
use crate::select::Clusters;

fn blocks(clusters: Clusters, width: Option<usize>) -> Choice {
    Choice::of(Method::Smat { clusters, width }, Source::Canonical)
}

fn check_blocks<C: Combo>()
where
    C::Acc: Number,
{
    let mut random = Random::new(31);
    let mut lengths = [3; 70];
    (lengths[4], lengths[20], lengths[69]) = (0, 40, 9);
    for (n, widths) in [1, 3, 64, 70].into_iter().zip(WIDTHS.into_iter().cycle()) {
        for (op, op_b) in OPS.into_iter().flat_map(|op| OPS.map(|op_b| (op, op_b))) {
            let base = if n % 2 == 0 { IndexBase::Zero } else { IndexBase::One };
            let matrix = UnsortedMatrix::<C::A>::random::<C::Acc>(&mut random, base, 31, &lengths);
            for orders in ORDERS.into_iter().flat_map(|b| ORDERS.map(|c| (b, c))) {
                for block_width in [None, Some(8)] {
                    let mut case = Case::<C>::new(&mut random, &matrix, (op, op_b), n, orders);
                    let choice = blocks(Clusters::No, block_width);
                    let executor = build(&context(), &case.problem(widths), &choice).unwrap();
                    let c = case.execute(&*executor);
                    case.compare(&c);
                    let wide = size_of::<C::A>() == 2 && block_width.is_none();
                    let shape = if wide { "blocks of 16 × 16" } else { "blocks of 16 × 8" };
                    assert!(executor.details().contains(shape), "{}", executor.details());
                }
            }
        }
    }
}

#[test]
fn blocks_agree_with_a_naive_loop() {
    check_blocks::<F16>();
    check_blocks::<F16F32>();
    check_blocks::<Bf16>();
    check_blocks::<Bf16F32>();
    check_blocks::<F32>();
    check_blocks::<F64>();
}

#[test]
fn blocks_multiply_what_is_stored() {
    let ops = (Operation::NonTranspose, Operation::NonTranspose);
    for (n, order) in [1, 9, 70].into_iter().flat_map(|n| ORDERS.map(|order| (n, order))) {
        // The matrix has one column, and one entry, a stored 0, in row 1 of three.
        let mut matrix =
            UnsortedMatrix::<half::f16>::random::<f32>(&mut Random::new(1), IndexBase::Zero, 1, &[0, 1, 0]);
        matrix.values[0] = half::f16::ZERO;
        let mut case = Case::<F16F32>::new(&mut Random::new(2), &matrix, ops, n, (order, order));
        let executor = build(&context(), &case.problem(WIDTHS[0]), &blocks(Clusters::No, None)).unwrap();
        assert_eq!(executor.layout().kind, crate::types::LayoutKind::Bcsr);
        assert_eq!(executor.details(), "1 blocks of 16 × 16, 0.4 % full, rows as they are");
        case.b.values.fill(half::f16::INFINITY);
        case.c.values.fill(f32::NAN);
        (case.alpha, case.beta) = (1.0, 0.0);
        let c = case.execute(&*executor);
        for j in 0..n {
            assert_eq!((c.values[c.at(0, j)], c.values[c.at(2, j)]), (0.0, 0.0));
            assert!(c.values[c.at(1, j)].is_nan());
        }
    }
}

#[test]
fn blocks_have_the_same_bits_on_any_number_of_threads_and_take_new_values() {
    let mut random = Random::new(11);
    let lengths: Vec<usize> = (0..3000).map(|_| random.below(30)).collect();
    let arrange = |cx: &Context, a: &OpA| executors::arrange(cx, a, &Clusters::No, None);
    check_threads_and_updates::<F64, _>(&lengths, 500, 13, arrange);
}

/// The matrix has 40 families of rows with the same columns, one row of each family after the other, so that
/// clustering brings the rows of a family together.
#[test]
fn rows_that_are_alike_are_put_together() {
    let (families, each) = (40, 16);
    let lengths = vec![6; families * each];
    let mut matrix =
        UnsortedMatrix::<f64>::random::<f64>(&mut Random::new(3), IndexBase::Zero, 4000, &lengths);
    for at in 0..matrix.values.len() {
        let (row, entry) = (at / 6, at % 6);
        matrix.set_column(at, row % families * 97 + entry * 8);
    }
    let ops = (Operation::NonTranspose, Operation::NonTranspose);
    for order in ORDERS {
        let mut case = Case::<F64>::new(&mut Random::new(4), &matrix, ops, 9, (Order::Row, order));
        let details = [Clusters::No, Clusters::IfFaster].map(|clusters| {
            let choice = blocks(clusters, None);
            let executor = build(&context(), &case.problem(WIDTHS[0]), &choice).unwrap();
            let c = case.execute(&*executor);
            case.compare(&c);
            executor.details()
        });
        // Each window has rows of 16 families; there would be 240 blocks if each family had a window of its
        // own.
        assert!(
            details[0].starts_with("3840 blocks of") && details[0].ends_with("as they are"),
            "{details:?}"
        );
        let after: usize = details[1].split(' ').next().unwrap().parse().unwrap();
        assert!(after < 480 && details[1].ends_with("clustered"), "{details:?}");
    }
}

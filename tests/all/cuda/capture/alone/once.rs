//! Tests of SpMM without a plan, captured and replayed: value types, index widths, orders and ops of B.

use super::*;
use crate::common::number::{Bf16, F16F32};
use crate::common::pattern::Widths;
use testkit::Wide;

/// Captures one product and replays it with other numbers in B.
fn replay<C: Numbers>(problem: &Problem<C::A>, widths: Widths, order: Order, op_b: Operation) {
    let (lane, n, cols) = (Lane::new(), 20, problem.pattern.cols);
    let session = &lane.session;
    let style = Style { widths, ..Style::PLAIN };
    let pattern = Pattern::new(style, (problem.pattern.rows, cols), &problem.entries);
    let stored = pattern.store(CUDA, &problem.values);
    memory(CUDA).synchronize().unwrap();
    let a = stored.open().unwrap();
    let rows = problem.pattern.rows;
    let b_shape = if op_b == N { (cols, n) } else { (n, cols) };
    let (b, c) = (Dense::<C::X>::new(b_shape, order, 0), Dense::<C::Y>::new((rows, n), order, 0));
    let mut device_b = session.upload(&b.values[..]).unwrap();
    let mut device_c = session.upload(&vec![C::Y::nan(); c.values.len()]).unwrap();
    let [one, zero] = [1.0, 0.0].map(|number| C::S::narrow(C::Wide::new(number, 0.0)));
    let what = format!("{} {widths:?} {order:?} {op_b:?}", C::TYPES.describe());
    let mut multiply = || {
        let (b, c) = ((&device_b, b.shape), (&mut device_c, c.shape));
        session.spmm_once((N, op_b), one, &a, b, zero, c, C::TYPES.compute).expect(&what);
    };
    // The first call allocates the handle's workspace for column-major operands, which a capture cannot.
    multiply();
    let graph = capture(&lane, multiply);
    for seed in 1..3 {
        let new: Vec<C::X> = random(cols * n, seed);
        device_b.write(0, &new).unwrap();
        device_c.write(0, &vec![C::Y::nan(); rows * n]).unwrap();
        graph.launch(&lane.stream).unwrap();
        let at = |k: usize, j: usize| {
            let (row, col) = if op_b == N { (k, j) } else { (j, k) };
            new[if order == Order::Row { row * b_shape.1 + col } else { col * b_shape.0 + row }].widen()
        };
        let expected = dense_product(&problem.factor(), (rows, n), at);
        let found = device_c.download().unwrap();
        let by_rows = (0..rows * n).map(|i| match order {
            Order::Row => found[i],
            Order::Col => found[i % n * rows + i / n],
        });
        all_close::<C>(CUDA, by_rows, &expected).unwrap_or_else(|error| panic!("{what}: {error}"));
    }
}

fn of_types<C: Numbers>() {
    let problem = Problem::<C::A>::new((ROWS, 2000), 2000, 700);
    for widths in [Widths::Narrow, Widths::Mixed, Widths::Wide] {
        for order in [Order::Row, Order::Col] {
            for op_b in [N, Operation::Transpose] {
                replay::<C>(&problem, widths, order, op_b);
            }
        }
    }
}

#[test]
#[ignore = "captures need a process of their own"]
fn products_without_a_plan_of_all_kinds() {
    if is_skipped("capture::products_without_a_plan_of_all_kinds") {
        return;
    }
    of_types::<F64>();
    of_types::<F32>();
    of_types::<F16F32>();
    of_types::<Bf16>();
}

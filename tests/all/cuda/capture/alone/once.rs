//! Tests of SpMM without a plan, captured and replayed: value types, index widths, orders and ops of B.

use super::*;
use crate::common::number::{Bf16, F16F32};
use crate::common::pattern::Widths;
use client::Sparse;
use tarsia::facade::{Index, IndexBase};
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

/// A product with contiguous columns of B and C decides on the device, from the pattern, whether it copies them. Replays
/// must be right for the pattern that the matrix then has, and for scalars that the device's memory then has.
#[test]
#[ignore = "captures need a process of their own"]
fn replays_follow_pattern_and_scalars_by_columns() {
    if is_skipped("capture::replays_follow_pattern_and_scalars_by_columns") {
        return;
    }
    replay_by_columns(|column| column as i32);
    replay_by_columns(|column| column as i64);
}

fn replay_by_columns<J: Index>(index: impl Fn(usize) -> J) {
    // Large enough for the decision: copies would move 0.2 GB.
    let (rows, length, n) = (200_000, 5, 32);
    let lane = Lane::new();
    let session = &lane.session;
    session.set_pointer_mode(PointerMode::Device).unwrap();
    // Rows that follow each other read neighbouring rows of B, or rows that are far apart.
    let near: Vec<usize> = (0..rows * length).map(|at| (at / length + at % length * 40) % rows).collect();
    let far: Vec<usize> = (0..rows * length).map(|at| (at * 77_773 + at / length * 31) % rows).collect();
    let offsets: Vec<i64> = (0..=rows).map(|row| (row * length) as i64).collect();
    let values: Vec<f64> = random(rows * length, 1);
    let b: Vec<f64> = random(rows * n, 2);
    let device_offsets = session.upload(&offsets).unwrap();
    let indices = |columns: &[usize]| columns.iter().map(|&column| index(column)).collect::<Vec<J>>();
    let device_columns = session.upload(&indices(&near)).unwrap();
    let device_values = session.upload(&values).unwrap();
    let shape = (rows as i64, rows as i64);
    let a = Sparse::csr(
        shape,
        device_offsets.part(0..rows + 1),
        device_columns.part(0..rows * length),
        device_values.part(0..rows * length),
        IndexBase::Zero,
    )
    .unwrap();
    let dense = Dense::<f64>::new((rows, n), Order::Col, 0);
    let device_b = session.upload(&b).unwrap();
    let mut device_c = session.upload(&vec![f64::NAN; rows * n]).unwrap();
    let scalars = session.upload(&[1.0_f64, 0.0]).unwrap();
    let mut multiply = || {
        let (alpha, beta) = (scalars.part(0..1), scalars.part(1..2));
        let (b, c) = ((&device_b, dense.shape), (&mut device_c, dense.shape));
        session.spmm_once((N, N), alpha, &a, b, beta, c, ComputeType::R64F).unwrap();
    };
    // The first call allocates the handle's workspace, which a capture cannot.
    multiply();
    let graph = capture(&lane, multiply);
    for (columns, alpha) in [(&near, 1.0), (&far, -0.5), (&near, 3.0), (&far, 0.25)] {
        overwrite(session, device_columns.part(0..rows * length), &indices(columns));
        overwrite(session, scalars.part(0..2), &[alpha, 0.0]);
        device_c.write(0, &vec![f64::NAN; rows * n]).unwrap();
        graph.launch(&lane.stream).unwrap();
        let found = device_c.download().unwrap();
        for (at, found) in found.iter().enumerate() {
            let (row, j) = (at % rows, at / rows);
            let entries = row * length..(row + 1) * length;
            let sum: f64 = entries.map(|entry| values[entry] * b[columns[entry] + j * rows]).sum();
            assert!((found - alpha * sum).abs() < 1e-13, "row {row}, column {j}, alpha {alpha}");
        }
    }
}

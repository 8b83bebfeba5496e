//! Tests of the arrays against the CPU's, bit for bit, and of products against sums. Skipped without a
//! device.

use bytemuck::Pod;

use super::super::LayoutSpmv;
use super::*;
use crate::backend::cuda::convert::testing::{all, be_alone, context_of_device, typed, WIDTHS};
use crate::backend::cuda::device::DeviceCall;
use crate::backend::cuda::memory::{self, DeviceBuffer, Numbers};
use crate::backend::cuda::operand::Rows;
use crate::backend::cuda::spmv::sell::product_tests::{
    bits, check_sums, round, run, upload, values, vector, Pattern, Real, Stored,
};
use crate::backend::cuda::testing::{Graph, Stream};
use crate::backend::DenseExecutor;
use crate::format::hot_sell::tests::{skewed, SMALL};
use crate::format::hot_sell::HotSell;
use crate::memory::Context;
use crate::memory::Workspace;
use crate::select::spmv::hot_sell::RULES;
use crate::support::{Bf16, Bf16F32, Combo, C32, C64, F16, F16F32, F32, F32F64, F64};
use crate::types::{DataType, Operation};
use testkit::Random;

/// Demands that any matrix meets, with slices of few entries.
const ANY: Demands = Demands { entries: 0, x_bytes: 0, share: 0.0, most: 100, rules: SMALL };

/// Builds the executor if the matrix meets the demands.
fn build_if(cx: &DeviceCall<'_>, problem: &SpmvProblem, demands: Demands) -> Option<LayoutSpmv<HotSellSpmv>> {
    let made = HotSellSpmv::make_if(cx, problem, demands, None).unwrap();
    made.map(|made| LayoutSpmv::of(cx.device, problem, made))
}

fn elements<T: Pod>(bytes: &DeviceBuffer<u8>) -> Vec<T> {
    let bytes = bytes.read(0, bytes.len()).unwrap();
    bytes.chunks_exact(size_of::<T>()).map(bytemuck::pod_read_unaligned).collect()
}
#[test]
fn the_device_makes_what_the_cpu_makes() {
    let Some((device, cx)) = context_of_device() else { return };
    let cx = &device.call(&cx).unwrap();
    for widths in WIDTHS {
        for (base, rows, cols) in [(0, 1, 50), (1, 33, 5000), (0, 1000, 700), (1, 2500, 70_000)] {
            let matrix = skewed(base, rows, cols, 700);
            let offsets = DeviceBuffer::from_slice(cx, &typed(&matrix.offsets, widths.0)).unwrap();
            let indices = DeviceBuffer::from_slice(cx, &typed(&matrix.indices, widths.1)).unwrap();
            let values = DeviceBuffer::from_slice(cx, &matrix.values).unwrap();
            let pattern = matrix.pattern();
            let there = Rows {
                offsets: offsets.address(),
                indices: indices.address(),
                values: values.address(),
                offset_type: widths.0,
                index_type: widths.1,
                base,
                rows: rows as i64,
                cols: cols as i64,
                nnz: matrix.values.len() as i64,
            };
            let longest = (0..rows).map(|row| pattern.range(row).len()).max().unwrap() as i64;
            let build = Build { cx, rows: &there };
            for (rules, most, kept) in
                [(SMALL, 1, false), (SMALL, 40, true), (SMALL, 100_000, false), (RULES, 300, true)]
            {
                let Some(hot) = build.hot_columns(most, 0.0).unwrap() else {
                    assert!(matrix.values.is_empty());
                    continue;
                };
                let origins = kept.then_some(None);
                let arrays = build.run(rules, longest, 1000, hot, DataType::R64F, origins).unwrap().unwrap();
                let expected = HotSell::build(&pattern, &matrix.values, rules, most);
                let found = HotSell {
                    rules,
                    order: all(&arrays.order),
                    filled: arrays.filled as usize,
                    heads: all(&arrays.heads),
                    long_rows: all(&arrays.long_rows),
                    values: elements(&arrays.values),
                    columns: all(&arrays.columns),
                    hot: all(&arrays.hot),
                };
                assert_eq!(found, expected, "{rules:?} {most} {widths:?} {rows}");
                assert_eq!(arrays.parts, expected.heads.iter().filter(|head| head.items == 0).count());
                if kept {
                    let Some(Numbers::Narrow(origins)) = &arrays.origins else {
                        panic!("positions are kept")
                    };
                    let origin = |&at: &u32| matrix.values.get(at as usize).copied().unwrap_or(0.0);
                    assert_eq!(all(origins).iter().map(origin).collect::<Vec<_>>(), expected.values);
                }
            }
        }
    }
}

#[test]
fn only_skewed_matrices_have_hot_columns() {
    let Some((device, cx)) = context_of_device() else { return };
    let cx = &device.call(&cx).unwrap();
    let mut random = Random::new(9);
    for is_skewed in [false, true] {
        let lengths = vec![20; 5000];
        let pattern = Pattern::new(0, 100_000, &lengths, |_, _| match is_skewed && random.below(2) == 0 {
            true => random.below(1000) * 97,
            false => random.below(100_000),
        });
        let stored = Stored::new(cx, &pattern, &vec![0.5_f64; pattern.columns.len()]);
        let problem = SpmvProblem {
            op: Operation::NonTranspose,
            a: stored.matrix,
            types: F64::TYPES,
            value_updates: false,
        };
        let build = |demands| build_if(cx, &problem, demands);
        let demands = Demands { most: 1000, entries: 1, x_bytes: 800_000, ..DEMANDS };
        let plan = build(demands);
        assert_eq!(plan.is_some(), is_skewed);
        if let Some(plan) = plan {
            let hot: Vec<u32> = (0..1000).map(|i| i * 97).collect();
            assert_eq!(all(&plan.made.arrays.hot), hot);
        }
        assert!(build(Demands { x_bytes: 800_001, ..demands }).is_none());
        assert!(build(Demands { entries: 100_001, ..demands }).is_none());
    }
}

/// Makes a pattern with rows of all lengths, some of which are split. Most entries are in columns that are
/// multiples of 14; odd columns and column 0 have none.
fn pattern() -> Pattern {
    let mut random = Random::new(11);
    let mut lengths: Vec<usize> = (0..6000)
        .map(|row| match row % 4 {
            0 => 0,
            1 => random.below(6),
            2 => random.below(70),
            _ => random.below(20),
        })
        .collect();
    (lengths[3000], lengths[3001], lengths[5999]) = (1500, 65, 5000);
    Pattern::new(0, 200_000, &lengths, |_, _| match random.below(3) {
        0 => 2 + 2 * random.below(99_999),
        _ => 14 + 14 * random.below(90),
    })
}

fn problem<C: Combo>(stored: &Stored, op: Operation, value_updates: bool) -> SpmvProblem {
    SpmvProblem { op, a: stored.matrix, types: C::TYPES, value_updates }
}

fn products<C: Combo>(cx: &DeviceCall<'_>, forms: &[Form])
where
    C::Acc: Real,
{
    let pattern = pattern();
    let mut random = Random::new(3);
    // Elements of x whose column has no entry must not be read.
    let x =
        (0..pattern.cols).map(|column| if column == 0 || column % 2 == 1 { f64::NAN } else { random.real() });
    let x: Vec<C::X> = round::<C, _>(&x.collect::<Vec<_>>());
    for &form in forms {
        let values: Vec<C::A> = round::<C, _>(&values(form, pattern.columns.len()));
        let stored = Stored::new(cx, &pattern, &values);
        for rules in [SMALL, RULES] {
            let demands = Demands { rules, ..ANY };
            let [full, kept] = [true, false].map(|updates| {
                let problem = problem::<C>(&stored, Operation::NonTranspose, updates);
                build_if(cx, &problem, demands).unwrap()
            });
            let what = format!("{} {form:?} {rules:?}", C::TYPES.describe());
            assert_eq!((full.made.form, kept.made.form), (Form::Full, form), "{what}");
            assert!(kept.made.arrays.parts > 0 && kept.made.arrays.hot.len() == 100);
            let found = run::<C>(cx, &kept, pattern.rows(), &x);
            check_sums::<C>(&pattern, &values, &x, &found, &what);
            let in_full = run::<C>(cx, &full, pattern.rows(), &x);
            assert!(bits(&found) == bits(&in_full), "{what}: other bits than in full");
            let again = run::<C>(cx, &kept, pattern.rows(), &x);
            assert!(bits(&found) == bits(&again), "{what}: other bits in another run");
        }
    }
}

#[test]
fn products_are_sums() {
    let Some((device, cx)) = context_of_device() else { return };
    let cx = &device.call(&cx).unwrap();
    products::<F64>(cx, &[Form::Full, Form::Single, Form::Half, Form::Ones]);
    products::<F32>(cx, &[Form::Full, Form::Half, Form::Ones]);
    products::<F32F64>(cx, &[Form::Full, Form::Half, Form::Ones]);
    products::<F16>(cx, &[Form::Full, Form::Ones]);
    products::<F16F32>(cx, &[Form::Full, Form::Ones]);
    products::<Bf16>(cx, &[Form::Full, Form::Ones]);
    products::<Bf16F32>(cx, &[Form::Full, Form::Ones]);
}

/// Computes y = alpha · A · x + beta · y; `enqueue` is given a function that enqueues the product.
fn execute<C: Combo>(
    cx: &DeviceCall<'_>,
    plan: &LayoutSpmv<HotSellSpmv>,
    scalars: [C::Acc; 2],
    x: &[C::X],
    y: &[C::Y],
    enqueue: impl FnOnce(&dyn Fn()),
) -> Vec<C::Y> {
    let bytes = plan.workspace_bytes(1);
    let workspace = DeviceBuffer::from_slice(cx, &vec![0xff_u8; bytes]).unwrap();
    let counters = DeviceBuffer::<u8>::zeroed(cx, COUNTER_BYTES).unwrap();
    let context = Context {
        workspace: Workspace { address: workspace.address(), bytes },
        counters: counters.address(),
        ..Context::clone(cx)
    };
    let cx = &cx.device.call(&context).unwrap();
    let (x, y) = (upload(cx, x), upload(cx, y));
    memory::synchronize(cx.stream).unwrap();
    enqueue(&|| {
        let [alpha, beta] = [0, 1].map(|at: usize| Address::new(&raw const scalars[at]));
        plan.execute(cx, alpha, &vector::<C::X>(&x), beta, &vector::<C::Y>(&y)).unwrap();
    });
    memory::synchronize(cx.stream).unwrap();
    assert!(counters.read(0, COUNTER_BYTES).unwrap().iter().all(|&byte| byte == 0));
    elements(&y)
}

/// Tests complex products of small whole numbers, which are exact.
#[test]
fn complex_products_are_exact() {
    let Some((device, cx)) = context_of_device() else { return };
    let cx = &device.call(&cx).unwrap();
    let pattern = pattern();
    macro_rules! check {
        ($combo:ident, $complex:ty, $real:ty) => {{
            let mut random = Random::new(5);
            let mut number = || random.below(9) as $real - 4.0;
            let mut numbers = |count: usize| -> Vec<$complex> {
                (0..count).map(|_| <$complex>::new(number(), number())).collect()
            };
            let (values, x) = (numbers(pattern.columns.len()), numbers(pattern.cols));
            let stored = Stored::new(cx, &pattern, &values);
            let problem = problem::<$combo>(&stored, Operation::NonTranspose, false);
            let plan = build_if(cx, &problem, ANY).unwrap();
            let y = vec![<$complex>::new(<$real>::NAN, 0.0); pattern.rows()];
            let scalars = [<$complex>::new(1.0, 0.0), <$complex>::new(0.0, 0.0)];
            let found = execute::<$combo>(cx, &plan, scalars, &x, &y, |enqueue| enqueue());
            for (row, found) in found.iter().enumerate() {
                let products = pattern.row(row).map(|at| values[at] * x[pattern.columns[at] as usize]);
                assert_eq!(*found, products.sum::<$complex>(), "row {row}");
            }
        }};
    }
    check!(C32, num_complex::Complex32, f32);
    check!(C64, num_complex::Complex64, f64);
}

/// Asserts that neither A nor x is read if alpha is 0.
#[test]
fn alpha_zero_reads_nothing() {
    let Some((device, cx)) = context_of_device() else { return };
    let cx = &device.call(&cx).unwrap();
    let pattern = pattern();
    let stored = Stored::new(cx, &pattern, &vec![f64::NAN; pattern.columns.len()]);
    let problem = problem::<F64>(&stored, Operation::NonTranspose, false);
    let plan = build_if(cx, &problem, ANY).unwrap();
    let x = vec![f64::NAN; pattern.cols];
    let run = |beta: f64, y: f64| {
        execute::<F64>(cx, &plan, [0.0, beta], &x, &vec![y; pattern.rows()], |enqueue| enqueue())
    };
    assert!(run(0.0, f64::NAN).iter().all(|&y| y == 0.0));
    assert!(run(0.5, 3.0).iter().all(|&y| y == 1.5));
}

/// Tests new values, with and without kept positions, for A in place and for a copy of its transpose.
#[test]
fn values_can_be_updated() {
    let Some((device, cx)) = context_of_device() else { return };
    let cx = &device.call(&cx).unwrap();
    let pattern = pattern();
    let count = pattern.columns.len();
    let (old, new) = (values(Form::Ones, count), values(Form::Full, count));
    let (stored, fresh) = (Stored::new(cx, &pattern, &old), Stored::new(cx, &pattern, &new));
    for op in [Operation::NonTranspose, Operation::Transpose] {
        let sizes = [pattern.rows(), pattern.cols];
        let [rows, cols] = if op == Operation::Transpose { [sizes[1], sizes[0]] } else { sizes };
        let mut random = Random::new(4);
        let x: Vec<f64> = (0..cols).map(|_| random.real()).collect();
        let build = |stored: &Stored, updates: bool| {
            let problem = problem::<F64>(stored, op, updates);
            build_if(cx, &problem, ANY).unwrap()
        };
        let expected = run::<F64>(cx, &build(&fresh, true), rows, &x);
        for updates in [false, true] {
            let mut plan = build(&stored, updates);
            plan.update_values(cx, fresh.matrix.values()).unwrap();
            assert!(bits(&run::<F64>(cx, &plan, rows, &x)) == bits(&expected), "{op:?} {updates}");
        }
    }
}

/// Captures the cooperative launch into a graph, which is run several times.
#[test]
fn products_can_be_captured() {
    let Some((device, cx)) = context_of_device() else { return };
    let cx = &device.call(&cx).unwrap();
    let stream = Stream::new(device.ordinal()).unwrap();
    let context = Context { stream: stream.address(), ..Context::clone(cx) };
    let cx = &device.call(&context).unwrap();
    let pattern = pattern();
    let values = values(Form::Full, pattern.columns.len());
    let stored = Stored::new(cx, &pattern, &values);
    let problem = problem::<F64>(&stored, Operation::NonTranspose, false);
    let plan = build_if(cx, &problem, ANY).unwrap();
    let mut random = Random::new(6);
    let x: Vec<f64> = (0..pattern.cols).map(|_| random.real()).collect();
    let y = vec![f64::NAN; pattern.rows()];
    let expected = execute::<F64>(cx, &plan, [1.0, 0.0], &x, &y, |enqueue| enqueue());
    be_alone();
    let found = execute::<F64>(cx, &plan, [1.0, 0.0], &x, &y, |enqueue| {
        Graph::begin(&stream).unwrap();
        enqueue();
        let graph = Graph::end(&stream).unwrap();
        for _ in 0..3 {
            graph.launch(&stream).unwrap();
        }
        memory::synchronize(stream.address()).unwrap();
    });
    assert!(bits(&found) == bits(&expected));
}

//! Tests of the device's layout against the host's, bit for bit, and of products against a naive loop.
//! Skipped without a device.

use std::cell::Cell;

use num_complex::{Complex32, Complex64};

use super::super::LayoutSpmv;
use super::*;
use crate::backend::cuda::convert::testing::{context_of_device, WIDTHS};
use crate::backend::cuda::device::DeviceCall;
use crate::backend::cuda::memory::{self, DeviceBuffer, Fill};
use crate::backend::cuda::operand::Operand;
use crate::backend::DenseExecutor;
use crate::format::sell::Origin;
use crate::format::stream::StreamLayout;
use crate::format::testing::{allocator, TestRows};
use crate::matrix::compressed::Compressed;
use crate::matrix::{SparseArrays, SparseMatrix};
use crate::memory::{Context, Workspace, COUNTER_BYTES};
use crate::select::Source;
use crate::support::{Bf16, Bf16F32, Combo, C32, C64, F16, F16F32, F32, F32F64, F64};
use crate::types::{Accumulator, DataType, Element, IndexBase, IndexType, Operation, Storage};
use testkit::Random;

thread_local! {
    /// Set by tests so that a second launch adds the partial sums, however few rows are split.
    pub(super) static UNCOUNTED: Cell<bool> = const { Cell::new(false) };
}

/// Accumulator that converts to and from pairs of doubles.
trait Number: Accumulator {
    fn of(value: Complex64) -> Self;
    fn get(self) -> Complex64;
}

macro_rules! numbers {
    ($($ty:ty: $of:expr, $get:expr;)*) => { $(impl Number for $ty {
        fn of(value: Complex64) -> Self { ($of)(value) }
        fn get(self) -> Complex64 { ($get)(self) }
    })* };
}
numbers! {
    f32: |v: Complex64| v.re as f32, |v: f32| Complex64::new(f64::from(v), 0.0);
    f64: |v: Complex64| v.re, |v: f64| Complex64::new(v, 0.0);
    Complex32: |v: Complex64| Complex32::new(v.re as f32, v.im as f32),
        |v: Complex32| Complex64::new(f64::from(v.re), f64::from(v.im));
    Complex64: |v: Complex64| v, |v: Complex64| v;
}

type StreamTestRows = TestRows<i64, i64>;

fn empty_rows(matrix: &StreamTestRows) -> i64 {
    matrix.offsets.windows(2).filter(|w| w[0] == w[1]).count() as i64
}

/// Makes matrices of all kinds, with their names.
fn matrices() -> Vec<(String, StreamTestRows)> {
    let mut random = Random::new(5);
    let mut out = vec![];
    for (rows, cols) in [(0, 0), (1, 1), (3, 0), (700, 31), (2000, 300), (5000, 200_000)] {
        for most in [1, 2, 9, 60, 900] {
            let most = if cols == 0 { 1 } else { most };
            // A third of the rows is empty, or none.
            for empties in [false, true] {
                let lengths: Vec<_> = (0..rows.min(400_000 / most))
                    .map(|_| match random.below(3) {
                        0 if empties => 0,
                        _ if cols == 0 => 0,
                        _ => 1 + random.below(most),
                    })
                    .collect();
                let name = format!("{} × {cols}, up to {most}, empty rows {empties}", lengths.len());
                out.push((name, StreamTestRows::new(0, cols, &lengths, |_, _| random.below(cols))));
            }
        }
    }
    // Rows around the ends of blocks of both sizes.
    for block in [1024, 2048] {
        for over in [1, block / 16, block / 16 + 1, block / 4, block, 3 * block + 7, 40 * block] {
            let lengths = [3, block - 3 + over, 0, 5, 2 * block, 1, block - 1, 70_000, 0, 2];
            let name = format!("blocks of {block} and {over}");
            out.push((
                name,
                StreamTestRows::new(0, 1000, &lengths, |row, entry| (row * 31 + entry * 7) % 1000),
            ));
        }
    }
    // A matrix with few tiles that have high halves, and a skewed matrix.
    let mut few = |row: usize, _| if row % 64 == 5 { random.below(300_000) } else { row + random.below(50) };
    out.push(("few wide tiles".into(), StreamTestRows::new(0, 300_000, &[20; 9000], &mut few)));
    let skewed: Vec<_> = (0..20_000).map(|row| 100_000 / (row + 1)).collect();
    out.push((
        "skewed".into(),
        StreamTestRows::new(0, 100_000, &skewed, |row, entry| (row + entry * 13) % 100_000),
    ));
    out
}

/// A matrix with values on the device.
struct Stored<V: Element> {
    values: Vec<V>,
    _arrays: [DeviceBuffer<u8>; 3],
    matrix: SparseMatrix,
}

fn typed(numbers: &[i64], base: i64, index: IndexType) -> Vec<u8> {
    match index {
        IndexType::I64 => numbers.iter().flat_map(|n| (n + base).to_ne_bytes()).collect(),
        _ => numbers.iter().flat_map(|n| ((n + base) as i32).to_ne_bytes()).collect(),
    }
}

fn store<V: Element>(
    cx: &Context,
    matrix: &StreamTestRows,
    values: Vec<V>,
    base: IndexBase,
    (offset_type, index_type): (IndexType, IndexType),
) -> Stored<V> {
    let shift = i64::from(base.code());
    let buffers = [
        DeviceBuffer::from_slice(cx, &typed(&matrix.offsets, shift, offset_type)).unwrap(),
        DeviceBuffer::from_slice(cx, &typed(&matrix.columns, shift, index_type)).unwrap(),
        DeviceBuffer::from_slice(cx, bytemuck::cast_slice(&values)).unwrap(),
    ];
    let arrays = SparseArrays::Csr(Compressed {
        major: matrix.rows() as i64,
        minor: matrix.cols as i64,
        nnz: matrix.columns.len() as i64,
        offsets: buffers[0].address(),
        indices: buffers[1].address(),
        values: buffers[2].address(),
        offset_type,
        index_type,
        base,
        value_type: V::TYPE,
    });
    Stored { values, _arrays: buffers, matrix: SparseMatrix { arrays, writable: false, temporary: false } }
}

fn same<T: bytemuck::Pod + PartialEq + std::fmt::Debug>(found: &DeviceBuffer<T>, expected: &[T], what: &str) {
    assert_eq!(found.len(), expected.len(), "{what}");
    let found = found.read(0, found.len()).unwrap();
    let differs = found.iter().zip(expected).position(|(found, expected)| found != expected);
    if let Some(at) = differs {
        panic!("{what}: element {at} is {:?}, expected {:?}", found[at], expected[at]);
    }
}

/// Compares the arrays of the device with the host's, before and after new values.
fn compare_layouts<V: Element>(
    cx: &DeviceCall<'_>,
    matrix: &StreamTestRows,
    stored: &Stored<V>,
    fresh: &[V],
    what: &str,
) {
    let host = allocator();
    for keep in [false, true] {
        let what = format!("{what}, positions {keep}");
        let pattern = matrix.pattern();
        let origin = Origin { keep: true, positions: None };
        let mut expected = StreamLayout::build(&host, &pattern, &stored.values, origin).unwrap();
        let (operand, stats) =
            Operand::build(cx, &stored.matrix, Operation::NonTranspose, Source::InPlace, "A", keep).unwrap();
        assert_eq!(stats.empty, empty_rows(matrix), "{what}");
        let mut found = DeviceStream::build(cx, &operand, &stats, V::TYPE, false, keep).unwrap();
        memory::synchronize(cx.stream).unwrap();
        found.mark_filled();
        assert_eq!(found.slots as usize, expected.slot_count, "{what}");
        assert_eq!(found.parts, expected.part_count(), "{what}");
        same(&found.ends, &expected.ends, &format!("{what}: ends"));
        same(&found.voids, &expected.voids, &format!("{what}: voids"));
        same(&found.lows, &expected.lows, &format!("{what}: lows"));
        same(&found.tiles, &expected.tiles, &format!("{what}: tiles"));
        same(&found.splits, &expected.splits, &format!("{what}: splits"));
        same(&found.highs, &expected.highs, &format!("{what}: highs"));
        same(&found.values, bytemuck::cast_slice(&expected.values), &format!("{what}: values"));
        let copy = DeviceBuffer::from_slice(cx, fresh).unwrap();
        let known = found.refill(cx, copy.address()).unwrap();
        assert_eq!(known, keep || stats.empty == 0, "{what}");
        if known {
            assert!(expected.refill(fresh, false));
            same(&found.values, bytemuck::cast_slice(&expected.values), &format!("{what}: new values"));
        }
    }
}

#[test]
fn device_and_host_make_the_same_layout() {
    let Some((device, cx)) = context_of_device() else { return };
    let cx = &device.call(&cx).unwrap();
    for (name, matrix) in matrices() {
        let count = matrix.columns.len();
        macro_rules! check {
            ($($value:expr),*) => { $({
                let values: Vec<_> = (0..2 * count).map($value).collect();
                for (widths, base) in WIDTHS.into_iter().zip([IndexBase::One, IndexBase::Zero, IndexBase::One]) {
                    let stored = store(cx, &matrix, values[..count].to_vec(), base, widths);
                    let what = format!("{name}, {widths:?}, {base:?}, {}", stringify!($value));
                    compare_layouts(cx, &matrix, &stored, &values[count..], &what);
                }
            })* };
        }
        check!(
            |at| half::f16::from_f64((at % 2000) as f64),
            |at| at as f32,
            |at| at as f64,
            |at| Complex32::new(at as f32, -1.0),
            |at| Complex64::new(at as f64, 0.5)
        );
    }
}

/// Workspace, and counters that are zero.
struct Scratch {
    workspace: DeviceBuffer<u8>,
    counters: DeviceBuffer<u8>,
    cx: Context,
}

impl Scratch {
    fn new(cx: &Context, bytes: usize) -> Self {
        let workspace = DeviceBuffer::from_slice(cx, &vec![0xff_u8; bytes]).unwrap();
        let counters = DeviceBuffer::zeroed(cx, COUNTER_BYTES).unwrap();
        let cx = Context {
            workspace: Workspace { address: workspace.address(), bytes },
            counters: counters.address(),
            ..cx.clone()
        };
        Scratch { workspace, counters, cx }
    }
}

fn vector<V: Element>(values: &DeviceBuffer<V>) -> DenseVector {
    DenseVector { len: values.len() as i64, values: values.address(), value_type: V::TYPE, writable: true }
}

/// Executes once and returns y.
fn run<C: Combo>(
    executor: &LayoutSpmv<StreamSpmv>,
    scratch: &Scratch,
    (alpha, beta): (C::Acc, C::Acc),
    x: &[C::X],
    y: &[C::Y],
) -> Vec<C::Y> {
    let cx = &scratch.cx;
    let (x, y) = (DeviceBuffer::from_slice(cx, x).unwrap(), DeviceBuffer::from_slice(cx, y).unwrap());
    let scalar = |value: &C::Acc| Address::new(std::ptr::from_ref(value));
    executor.execute(cx, scalar(&alpha), &vector(&x), scalar(&beta), &vector(&y)).unwrap();
    memory::synchronize(cx.stream).unwrap();
    let counters = scratch.counters.read(0, COUNTER_BYTES).unwrap();
    assert!(counters.iter().all(|&byte| byte == 0), "counters are left zero");
    assert!(scratch.workspace.len() >= executor.workspace_bytes(1));
    y.read(0, y.len()).unwrap()
}

fn bytes<V: Element>(values: &[V]) -> &[u8] {
    bytemuck::cast_slice(values)
}

fn check_products<C: Combo>(cx: &DeviceCall<'_>)
where
    C::Acc: Number,
{
    let mut random = Random::new(9);
    let mut number = || Complex64::new(random.real(), random.real());
    for (name, matrix) in matrices() {
        let what = format!("{name}, {}", C::TYPES.describe());
        let values: Vec<C::A> = matrix.columns.iter().map(|_| C::A::round(C::Acc::of(number()))).collect();
        let x: Vec<C::X> = (0..matrix.cols).map(|_| C::X::round(C::Acc::of(number()))).collect();
        let y: Vec<C::Y> = (0..matrix.rows()).map(|_| C::Y::round(C::Acc::of(number()))).collect();
        let stored = store(cx, &matrix, values, IndexBase::One, WIDTHS[0]);
        let problem = SpmvProblem {
            op: Operation::NonTranspose,
            a: stored.matrix,
            types: C::TYPES,
            value_updates: false,
        };
        let build = || LayoutSpmv::<StreamSpmv>::build(cx, &problem, None).unwrap();
        let executor = build();
        let scratch = Scratch::new(cx, executor.workspace_bytes(1));
        for (alpha, beta) in [(1.0, 0.0), (-0.7, 1.3), (0.0, 0.5), (0.0, 0.0)] {
            let scalars = (C::Acc::of(alpha.into()), C::Acc::of(beta.into()));
            let before =
                if beta == 0.0 { vec![C::Y::round(C::Acc::of(f64::NAN.into())); y.len()] } else { y.clone() };
            let found = run::<C>(&executor, &scratch, scalars, &x, &before);
            for row in 0..matrix.rows() {
                let range = matrix.row(row);
                let (mut sum, mut magnitude) = (Complex64::ZERO, 0.0);
                for at in range.clone() {
                    let product =
                        stored.values[at].widen().get() * x[matrix.columns[at] as usize].widen().get();
                    sum += product;
                    magnitude += product.norm();
                }
                let old = if beta == 0.0 { Complex64::ZERO } else { before[row].widen().get() };
                let exact = scalars.0.get() * sum + scalars.1.get() * old;
                let (epsilon, rounding, tiny) = precision::<C>();
                let allowed = 4.0 * (range.len() + 4) as f64 * epsilon * (magnitude + old.norm())
                    + rounding * exact.norm()
                    + tiny;
                let error = (found[row].widen().get() - exact).norm();
                assert!(error <= allowed, "{what} row {row}: error {error:e}, allowed {allowed:e}");
            }
            let again = run::<C>(&executor, &scratch, scalars, &x, &before);
            assert!(bytes(&found) == bytes(&again), "{what}: a second run has other bits");
            UNCOUNTED.set(true);
            let uncounted = build();
            UNCOUNTED.set(false);
            let twice = run::<C>(&uncounted, &scratch, scalars, &x, &before);
            assert!(bytes(&found) == bytes(&twice), "{what}: the second launch gives other bits");
        }
    }
}

/// Relative errors of the accumulator and of storing y, and half of y's smallest number.
fn precision<C: Combo>() -> (f64, f64, f64) {
    let accumulator = match C::Acc::TYPE {
        DataType::R32F | DataType::C32F => f64::from(f32::EPSILON),
        _ => f64::EPSILON,
    };
    match C::Y::TYPE {
        DataType::R16F => (accumulator, 1.0 / 2048.0, 1.0 / f64::from(1 << 25)),
        DataType::R16BF => (accumulator, 1.0 / 256.0, 0.0),
        _ => (accumulator, accumulator, 0.0),
    }
}

#[test]
fn products_agree_with_a_naive_loop() {
    let Some((device, cx)) = context_of_device() else { return };
    let cx = &device.call(&cx).unwrap();
    check_products::<F64>(cx);
    check_products::<F32>(cx);
    check_products::<F32F64>(cx);
    check_products::<F16>(cx);
    check_products::<F16F32>(cx);
    check_products::<Bf16>(cx);
    check_products::<Bf16F32>(cx);
    check_products::<C32>(cx);
    check_products::<C64>(cx);
}

/// Tests that an element of x affects only the rows that store its column, and not empty rows, whose slots,
/// like padding, refer to the first column of their tile.
#[test]
fn voids_and_padding_bring_nothing_into_y() {
    let Some((device, cx)) = context_of_device() else { return };
    let cx = &device.call(&cx).unwrap();
    let lengths: Vec<_> = (0..3000).map(|row| if row % 3 == 0 { 0 } else { 1 + row % 5 }).collect();
    let matrix = StreamTestRows::new(0, 100, &lengths, |row, entry| (row * 7 + entry * 11) % 100);
    let stored = store(cx, &matrix, vec![1.0_f64; matrix.columns.len()], IndexBase::Zero, WIDTHS[1]);
    let problem = SpmvProblem {
        op: Operation::NonTranspose,
        a: stored.matrix,
        types: F64::TYPES,
        value_updates: false,
    };
    let executor = LayoutSpmv::<StreamSpmv>::build(cx, &problem, None).unwrap();
    let scratch = Scratch::new(cx, executor.workspace_bytes(1));
    for bad in [0, 1, 50, 99] {
        let mut x = vec![1.0; 100];
        x[bad] = f64::INFINITY;
        let y = run::<F64>(&executor, &scratch, (1.0, 0.0), &x, &vec![f64::NAN; 3000]);
        for (row, y) in y.iter().enumerate() {
            let range = matrix.row(row);
            let stores = matrix.columns[range.clone()].contains(&(bad as i64));
            assert_eq!(y.is_finite(), !stores, "row {row}");
            if !stores {
                assert_eq!(*y, range.len() as f64);
            }
        }
    }
}

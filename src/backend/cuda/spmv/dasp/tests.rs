//! Tests of the arrays against the host's, bit for bit, and of products against a naive loop. Without a
//! device the tests say so and pass.

use std::sync::Arc;

use bytemuck::Zeroable;
use num_complex::Complex64;

use super::super::LayoutSpmv;
use super::*;
use crate::backend::cuda::convert::testing;
use crate::backend::cuda::device::{Device, DeviceCall};
use crate::backend::cuda::memory::{CudaMemory, DeviceBuffer};
use crate::backend::cuda::testing::{Graph, Stream};
use crate::backend::host::operand as host;
use crate::backend::host::testing::{
    context as on_host, scalar, tolerance, value, Number, Numbers, UnsortedMatrix, WIDTHS,
};
use crate::backend::DenseExecutor;
use crate::format::DaspLayout;
use crate::matrix::{Compressed, SparseArrays, SparseMatrix};
use crate::memory::{Allocator, Context, Workspace};
use crate::select::{self, Source};
use crate::support::{Bf16, Bf16F32, Combo, C32, C64, F16, F16F32, F32, F32F64, F64};
use crate::types::{Accumulator, Element, IndexBase, IndexType, Operation, PointerMode, Storage};
use testkit::Random;

const N: Operation = Operation::NonTranspose;
const OPS: [Operation; 3] = [N, Operation::Transpose, Operation::ConjugateTranspose];

thread_local! {
    /// Set by tests to make maps 64 bits wide, which no test matrix is large enough to require.
    pub(super) static WIDE: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

/// Opens a device and makes a stream, or returns `None` if there is no device.
fn device() -> Option<(Arc<Device>, Stream)> {
    let device = testing::device()?;
    let stream = Stream::new(device.ordinal()).unwrap();
    Some((device, stream))
}

fn context(device: &Arc<Device>, stream: &Stream) -> Context {
    let memory = Arc::new(CudaMemory(Arc::clone(device)));
    Context {
        stream: stream.address(),
        pointer_mode: PointerMode::Host,
        workspace: Workspace { address: Address::NULL, bytes: 0 },
        counters: Address::NULL,
        allocator: Allocator::new(memory, stream.address(), usize::MAX),
    }
}

/// A copy on the device of a CSR matrix in host memory.
struct Copied {
    a: SparseMatrix,
    _arrays: [DeviceBuffer<u8>; 3],
}

impl Copied {
    fn new(cx: &Context, a: &SparseMatrix) -> Self {
        let SparseArrays::Csr(m) = a.arrays else { panic!("not CSR") };
        let copy = |from: Address, bytes: usize| {
            let buffer = DeviceBuffer::<u8>::new(cx, bytes).unwrap();
            memory::copy(buffer.address(), from, bytes, cx.stream).unwrap();
            memory::synchronize(cx.stream).unwrap();
            buffer
        };
        let nnz = m.nnz as usize;
        let arrays = [
            copy(m.offsets, (m.major as usize + 1) * m.offset_type.size()),
            copy(m.indices, nnz * m.index_type.size()),
            copy(m.values, nnz * m.value_type.size()),
        ];
        let [offsets, indices, values] = [0, 1, 2].map(|i: usize| arrays[i].address());
        let arrays_there = SparseArrays::Csr(Compressed { offsets, indices, values, ..m });
        Copied {
            a: SparseMatrix { arrays: arrays_there, writable: false, temporary: false },
            _arrays: arrays,
        }
    }
}

/// Lengths of rows of every class, with enough short rows to be pieced together.
fn lengths(seed: u64, rows: usize) -> Vec<usize> {
    let mut random = Random::new(seed);
    let mut out: Vec<usize> = (0..rows)
        .map(|_| match random.below(20) {
            0 => random.below(400),
            1..5 => 5 + random.below(40),
            _ => random.below(5),
        })
        .collect();
    out.extend([5000, 0, 256, 257, 1024, 1025, 3, 1]);
    out
}

/// Asserts that all arrays of the device's layout are equal to the host's.
fn same<V: Element>(found: &DeviceDasp, expected: &DaspLayout<V>, what: &str) {
    fn read<T: Pod>(buffer: &DeviceBuffer<T>) -> Vec<T> {
        buffer.read(0, buffer.len()).unwrap()
    }
    assert_eq!(found.shape, expected.shape, "{what}");
    assert_eq!(read(&found.order), expected.order[..], "{what}: order");
    assert_eq!(read(&found.runs), crate::format::dasp::tests::runs(&expected.order), "{what}: runs");
    assert_eq!(read(&found.tasks), expected.tasks[..], "{what}: tasks");
    assert_eq!(read(&found.splits), expected.splits[..], "{what}: splits");
    assert_eq!(read(&found.regular), expected.regular[..], "{what}: regular");
    assert_eq!(read(&found.irregular), expected.irregular[..], "{what}: irregular");
    assert_eq!(read(&found.ends), expected.ends[..], "{what}: ends");
    assert_eq!(read(&found.columns), expected.columns[..], "{what}: columns");
    let values = bytemuck::cast_slice::<V, u8>(&expected.values);
    assert!(read(&found.values) == values, "{what}: values");
    assert_eq!(found.split_tasks, expected.split_tasks(), "{what}");
    assert_eq!(found.fill_ratio(), expected.fill_ratio(), "{what}");
}

/// Builds the layout on the device and on the host and compares them, before and after an update.
fn check_arrays<C: Combo>(
    cx: &DeviceCall<'_>,
    matrix: &UnsortedMatrix<C::A>,
    widths: (IndexType, IndexType),
    op: Operation,
    keep: bool,
) where
    C::Acc: Number,
{
    let what = format!("{} rows, {widths:?} {op:?} updates {keep}", matrix.rows);
    let (a, host_cx) = (matrix.describe(widths), on_host());
    let copied = Copied::new(cx, &a);
    let arrange = |a: &SparseMatrix| {
        let source = if select::in_place(a, op) { Source::InPlace } else { Source::Canonical };
        let operand = host::Operand::<C::A>::build(&host_cx, a, op, source, "A", keep).unwrap();
        let origin = operand.origin(keep);
        let build = |rows: &host::HostRows<'_, C::A>| {
            DaspLayout::build(&host_cx.allocator, &rows.pattern, rows.values, origin)
        };
        operand.with_plain(&host_cx, "A", build).unwrap()
    };
    let problem = SpmvProblem { op, a: copied.a, types: C::TYPES, value_updates: keep };
    let mut found = LayoutSpmv::<DaspSpmv>::build(cx, &problem, None).unwrap();
    same(&found.made.built, &arrange(&a), &what);
    let fresh: Vec<C::A> = Random::new(77).numbers(matrix.values.len());
    let fresh_there = DeviceBuffer::from_slice(cx, &fresh).unwrap();
    let before = found.made.layout;
    found.update_values(cx, fresh_there.address()).unwrap();
    memory::synchronize(cx.stream).unwrap();
    assert_eq!(bytemuck::bytes_of(&before), bytemuck::bytes_of(&found.made.layout), "{what}: arrays moved");
    let renewed = a.with_values(Address::new(fresh.as_ptr()));
    same(&found.made.built, &arrange(&renewed), &format!("{what}, updated"));
}

#[test]
fn arrays_are_those_of_the_host() {
    let Some((device, stream)) = device() else { return };
    let cx = context(&device, &stream);
    let cx = &device.call(&cx).unwrap();
    for wide in [false, true] {
        WIDE.set(wide);
        for rows in [0, 1, 100, 5000] {
            let lengths = lengths(rows as u64 + 1, rows);
            for base in [IndexBase::Zero, IndexBase::One] {
                let mut random = Random::new(3);
                let matrix =
                    UnsortedMatrix::<Complex64>::random::<Complex64>(&mut random, base, 3000, &lengths);
                // Matrices with 32-bit offsets always have 32-bit maps.
                let widths = WIDTHS.into_iter().filter(|&(offsets, _)| !wide || offsets == IndexType::I64);
                for (widths, keep) in widths.flat_map(|w| [(w, false), (w, true)]) {
                    for op in OPS {
                        check_arrays::<C64>(cx, &matrix, widths, op, keep);
                    }
                }
            }
        }
    }
    WIDE.set(false);
    // No rows, no entries, and values of each size.
    for lengths in [&[][..], &[0; 300]] {
        let matrix = UnsortedMatrix::<f64>::random::<f64>(&mut Random::new(5), IndexBase::One, 10, lengths);
        check_arrays::<F64>(cx, &matrix, WIDTHS[0], N, true);
    }
    fn sizes<C: Combo>(cx: &DeviceCall<'_>)
    where
        C::Acc: Number,
    {
        let matrix = UnsortedMatrix::<C::A>::random::<C::Acc>(
            &mut Random::new(6),
            IndexBase::One,
            500,
            &lengths(9, 700),
        );
        check_arrays::<C>(cx, &matrix, WIDTHS[0], N, true);
        check_arrays::<C>(cx, &matrix, WIDTHS[0], Operation::Transpose, false);
    }
    sizes::<F64>(cx);
    sizes::<F32>(cx);
    sizes::<F16>(cx);
    sizes::<C32>(cx);
}

/// Memory for executions: a workspace full of NaN, and counters that are zero.
struct Execution {
    cx: Context,
    _workspace: DeviceBuffer<u8>,
    counters: DeviceBuffer<u32>,
}

impl Execution {
    fn new(cx: &Context, bytes: usize) -> Self {
        let buffer = DeviceBuffer::from_slice(cx, &vec![0xff_u8; bytes]).unwrap();
        let counters = DeviceBuffer::zeroed(cx, COUNTERS).unwrap();
        let workspace = Workspace { address: buffer.address(), bytes };
        let allocator = cx.allocator.scoped(0);
        let cx = Context { workspace, counters: counters.address(), allocator, ..cx.clone() };
        Execution { cx, _workspace: buffer, counters }
    }
}

fn vector<V: Element>(buffer: &DeviceBuffer<V>) -> DenseVector {
    let len = buffer.len() as i64;
    DenseVector { len, values: buffer.address(), value_type: V::TYPE, writable: true }
}

/// Computes y = alpha · op(A) · x + beta · y0 on the device twice, and asserts that both have the same bits.
fn run<C: Combo>(
    cx: &DeviceCall<'_>,
    matrix: &UnsortedMatrix<C::A>,
    op: Operation,
    (alpha, beta): (C::Acc, C::Acc),
    (x, y0): (&[C::X], &[C::Y]),
) -> Vec<C::Y> {
    let copied = Copied::new(cx, &matrix.describe(WIDTHS[0]));
    let problem = SpmvProblem { op, a: copied.a, types: C::TYPES, value_updates: false };
    let executor = LayoutSpmv::<DaspSpmv>::build(cx, &problem, None).unwrap();
    let scratch = Execution::new(cx, executor.workspace_bytes(1));
    let x = DeviceBuffer::from_slice(cx, x).unwrap();
    let run = || {
        let y = DeviceBuffer::from_slice(cx, y0).unwrap();
        let (alpha, beta) = (scalar(&alpha), scalar(&beta));
        executor.execute(&scratch.cx, alpha, &vector(&x), beta, &vector(&y)).unwrap();
        let found = y.read(0, y.len()).unwrap();
        assert!(scratch.counters.read(0, COUNTERS).unwrap().iter().all(|&counter| counter == 0));
        found
    };
    let (first, second) = (run(), run());
    let bits = |values: &[C::Y]| bytemuck::cast_slice::<C::Y, u8>(values).to_vec();
    assert!(bits(&first) == bits(&second), "a second run has other bits");
    first
}

/// Vectors x, y before and y after the product.
type Vectors<'a, C> = (&'a [<C as Combo>::X], &'a [<C as Combo>::Y], &'a [<C as Combo>::Y]);

fn compare<C: Combo>(
    matrix: &UnsortedMatrix<C::A>,
    op: Operation,
    (alpha, beta): (C::Acc, C::Acc),
    (x, y0, y): Vectors<C>,
) where
    C::Acc: Number,
{
    let (alpha, beta) = (alpha.get(), beta.get());
    let mut sums = vec![(Complex64::ZERO, 0.0, 0); y.len()];
    for (&(row, col), a) in matrix.entries.iter().zip(&matrix.values) {
        let (row, col) = if op.transposes() { (col, row) } else { (row, col) };
        let a = value::<C::Acc, _>(if op.conjugates() { a.conjugate() } else { *a });
        let product = a * value::<C::Acc, _>(x[col]);
        sums[row].0 += product;
        sums[row].1 += product.norm();
        sums[row].2 += 1;
    }
    for (row, (sum, absolute, terms)) in sums.into_iter().enumerate() {
        let before = if beta == Complex64::ZERO { beta } else { beta * value::<C::Acc, _>(y0[row]) };
        let exact = alpha * sum + before;
        let error = (value::<C::Acc, _>(y[row]) - exact).norm();
        let allowed = tolerance::<C>(terms, alpha.norm() * absolute + before.norm(), exact);
        assert!(error <= allowed, "{} row {row}: error {error}, allowed {allowed}", C::TYPES.describe());
    }
}

fn check_products<C: Combo>(cx: &DeviceCall<'_>)
where
    C::Acc: Number,
{
    let number = |re: f64| C::Acc::new(Complex64::new(re, 0.3 * re));
    let mut random = Random::new(13);
    for rows in [1, 30, 3000] {
        let lengths = lengths(rows as u64, rows);
        let matrix = UnsortedMatrix::<C::A>::random::<C::Acc>(&mut random, IndexBase::One, 2000, &lengths);
        for op in OPS {
            let (m, k) = op.shape(matrix.rows as i64, 2000);
            let (x, y0) = (random.numbers(k as usize), random.numbers::<C::Acc, C::Y>(m as usize));
            for (alpha, beta) in [(1.3, -0.7), (-0.4, 0.0), (0.0, 1.7), (0.0, 0.0)] {
                let scalars = (number(alpha), number(beta));
                // Values that must not be read are NaN.
                let nan = |len: usize| vec![C::Y::round(C::Acc::new(f64::NAN.into())); len];
                let y0 = if beta == 0.0 { nan(y0.len()) } else { y0.clone() };
                let y = run::<C>(cx, &matrix, op, scalars, (&x, &y0));
                compare::<C>(&matrix, op, scalars, (&x, &y0, &y));
            }
        }
    }
    let poison = vec![C::X::round(C::Acc::new(f64::NAN.into())); 2000];
    let matrix =
        UnsortedMatrix::<C::A>::random::<C::Acc>(&mut random, IndexBase::Zero, 2000, &lengths(4, 90));
    let y0 = random.numbers::<C::Acc, C::Y>(matrix.rows);
    let y = run::<C>(cx, &matrix, N, (C::Acc::ZERO, C::Acc::ONE), (&poison, &y0));
    assert!(y == y0, "alpha is 0: x is not read");
}

#[test]
fn every_combination_agrees_with_a_naive_loop() {
    let Some((device, stream)) = device() else { return };
    let cx = context(&device, &stream);
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

/// Tests warps with 1, 2 and 4 row blocks, and the limits between them.
#[test]
fn many_medium_rows_agree() {
    let Some((device, stream)) = device() else { return };
    let cx = context(&device, &stream);
    let cx = &device.call(&cx).unwrap();
    let mut random = Random::new(17);
    for rows in [59_989, 59_990, 100_001, 400_001] {
        // The last row blocks have no regular block, or one.
        let lengths: Vec<usize> = (0..rows)
            .map(|_| if random.below(9) == 0 { 5 + random.below(60) } else { 5 + random.below(4) })
            .collect();
        let matrix = UnsortedMatrix::<f64>::random::<f64>(&mut random, IndexBase::Zero, 5000, &lengths);
        let (x, y0) = (random.numbers(5000), random.numbers(rows));
        let y = run::<F64>(cx, &matrix, N, (0.9, -1.1), (&x, &y0));
        compare::<F64>(&matrix, N, (0.9, -1.1), (&x, &y0, &y));
    }
}

/// Tests more split rows than counters, so that neighbours share a counter.
#[test]
fn many_split_rows_share_counters() {
    let Some((device, stream)) = device() else { return };
    let cx = context(&device, &stream);
    let cx = &device.call(&cx).unwrap();
    let mut random = Random::new(19);
    for rows in [COUNTERS, COUNTERS + 1, 3 * COUNTERS + 5] {
        // Rows of one task are between the split rows.
        let lengths: Vec<usize> = (0..2 * rows)
            .map(|row| if row % 2 == 0 { 1025 + random.below(40) + row % 64 / 62 * 3000 } else { 300 })
            .collect();
        let matrix = UnsortedMatrix::<half::f16>::random::<f32>(&mut random, IndexBase::One, 900, &lengths);
        let (x, y0) = (random.numbers::<f32, _>(900), random.numbers::<f32, f32>(lengths.len()));
        let y = run::<F16F32>(cx, &matrix, N, (1.5, 0.25), (&x, &y0));
        compare::<F16F32>(&matrix, N, (1.5, 0.25), (&x, &y0, &y));
    }
}

/// Asserts that Inf and NaN in x and in A reach the rows that store an entry there, and no row that shares a
/// block, a pieced row or padding with them.
fn check_probes<C: Combo>(cx: &DeviceCall<'_>)
where
    C::Acc: Number,
{
    let mut random = Random::new(23);
    let mut lengths = vec![300, 1100, 260, 9, 9, 8, 7, 7, 7, 6, 6, 5, 5];
    lengths.extend((0..90).map(|row| [1, 3, 2, 4, 0][row % 5]));
    let rows = lengths.len();
    // Row i reads only element i + 1 of x; nothing reads element 0.
    let mut matrix =
        UnsortedMatrix::<C::A>::random::<C::Acc>(&mut random, IndexBase::One, rows + 1, &lengths);
    for at in 0..matrix.entries.len() {
        let row = matrix.entries[at].0;
        matrix.set_column(at, row + 1);
    }
    let (one, zero) = (C::Acc::ONE, C::Acc::ZERO);
    let y0 = vec![C::Y::round(one); rows];
    let finite = |y: &[C::Y]| -> Vec<bool> { y.iter().map(|&y| value::<C::Acc, _>(y).is_finite()).collect() };
    for poison in [f64::INFINITY, f64::NAN] {
        let poison = C::Acc::new(Complex64::new(poison, 0.0));
        let mut x = vec![C::X::round(one); rows + 1];
        x[0] = C::X::round(poison);
        assert!(finite(&run::<C>(cx, &matrix, N, (one, zero), (&x, &y0))).iter().all(|&finite| finite));
        x[0] = C::X::round(one);
        // Every seventh row is bad, so that neighbours in a block differ.
        for first in 0..7 {
            let is_bad = |row: usize| row % 7 == first && lengths[row] > 0;
            let expected: Vec<bool> = (0..rows).map(|row| !is_bad(row)).collect();
            let poisoned: Vec<C::X> = (0..=rows)
                .map(|col| if col > 0 && is_bad(col - 1) { C::X::round(poison) } else { x[col] })
                .collect();
            let y = run::<C>(cx, &matrix, N, (one, zero), (&poisoned, &y0));
            assert_eq!(finite(&y), expected, "{} x", C::TYPES.describe());
            // The last entries of the same rows.
            let values = matrix.values.clone();
            for at in 0..values.len() {
                let row = matrix.entries[at].0;
                let is_last = matrix.entries.get(at + 1).is_none_or(|next| next.0 != row);
                if is_bad(row) && is_last {
                    matrix.values[at] = C::A::round(poison);
                }
            }
            let y = run::<C>(cx, &matrix, N, (one, zero), (&x, &y0));
            assert_eq!(finite(&y), expected, "{} A", C::TYPES.describe());
            matrix.values = values;
        }
    }
}

#[test]
fn infinities_and_nans_stay_in_their_rows() {
    let Some((device, stream)) = device() else { return };
    let cx = context(&device, &stream);
    let cx = &device.call(&cx).unwrap();
    check_probes::<F64>(cx);
    check_probes::<F32>(cx);
    check_probes::<F32F64>(cx);
    check_probes::<F16>(cx);
    check_probes::<F16F32>(cx);
    check_probes::<Bf16>(cx);
    check_probes::<C32>(cx);
    check_probes::<C64>(cx);
}

/// Captures new values and the product into a graph and replays it.
#[test]
fn updates_and_products_can_be_captured() {
    let Some((device, stream)) = device() else { return };
    let cx = context(&device, &stream);
    let cx = &device.call(&cx).unwrap();
    let mut random = Random::new(29);
    let mut matrix =
        UnsortedMatrix::<f32>::random::<f32>(&mut random, IndexBase::One, 700, &lengths(31, 900));
    let copied = Copied::new(cx, &matrix.describe(WIDTHS[1]));
    let op = Operation::Transpose;
    let problem = SpmvProblem { op, a: copied.a, types: F32::TYPES, value_updates: true };
    let mut executor = LayoutSpmv::<DaspSpmv>::build(cx, &problem, None).unwrap();
    let scratch = Execution::new(cx, executor.workspace_bytes(1));
    let fresh = DeviceBuffer::<f32>::zeroed(cx, matrix.values.len()).unwrap();
    let x: Vec<f32> = random.numbers::<f32, _>(matrix.rows);
    let y0: Vec<f32> = random.numbers::<f32, _>(700);
    let (x_there, y) =
        (DeviceBuffer::from_slice(cx, &x).unwrap(), DeviceBuffer::from_slice(cx, &y0).unwrap());
    let (one, zero) = (1.0_f32, 0.0_f32);
    memory::synchronize(cx.stream).unwrap();
    testing::be_alone();
    Graph::begin(&stream).unwrap();
    executor.update_values(&scratch.cx, fresh.address()).unwrap();
    let scalars = (scalar(&one), scalar(&zero));
    executor.execute(&scratch.cx, scalars.0, &vector(&x_there), scalars.1, &vector(&y)).unwrap();
    let graph = Graph::end(&stream).unwrap();
    for _ in 0..2 {
        matrix.values = random.numbers::<f32, _>(matrix.values.len());
        memory::upload(fresh.address(), &matrix.values, cx.stream).unwrap();
        graph.launch(&stream).unwrap();
        let found = y.read(0, 700).unwrap();
        compare::<F32>(&matrix, op, (one, zero), (&x, &y0, &found));
    }
}

#[test]
fn the_kernels_structure_has_its_size() {
    assert_eq!(size_of::<Layout>(), 248);
    assert_eq!(align_of::<Layout>(), 8);
    assert!(Layout::zeroed().blocks.iter().all(|&block| block == 0));
}

//! Tests against sums in double precision, of cublasLt where it is installed and of the library's own
//! kernels. Skipped without a device.

use half::{bf16, f16};

use super::super::analysis::SharedResults;
use super::lt::Copied;
use super::*;
use crate::backend::cuda::convert::testing::{context_of_device, typed, WIDTHS};
use crate::backend::cuda::device::DeviceCall;
use crate::backend::cuda::testing::{Graph, Stream};
use crate::error::Status;
use crate::format::testing::TestMatrix;
use crate::matrix::{Compressed, SparseArrays, SparseMatrix};
use crate::memory::Context;
use crate::memory::COUNTER_BYTES;
use crate::support::{Bf16, Bf16F32, Combo, Tf32, Types, F16, F16F32, F32, F64};
use crate::types::{IndexBase, IndexType, Operation};
use testkit::sequence;

const ALL: [Types; 7] =
    [F16::TYPES, F16F32::TYPES, Bf16::TYPES, Bf16F32::TYPES, Tf32::TYPES, F32::TYPES, F64::TYPES];
/// Bytes of an element.
fn encode(value_type: DataType, value: f64) -> Vec<u8> {
    match value_type {
        DataType::R16F => f16::from_f64(value).to_le_bytes().to_vec(),
        DataType::R16BF => bf16::from_f64(value).to_le_bytes().to_vec(),
        DataType::R32F => (value as f32).to_le_bytes().to_vec(),
        _ => value.to_le_bytes().to_vec(),
    }
}

fn decode(value_type: DataType, bytes: &[u8]) -> f64 {
    match value_type {
        DataType::R16F => f16::from_le_bytes(bytes.try_into().unwrap()).to_f64(),
        DataType::R16BF => bf16::from_le_bytes(bytes.try_into().unwrap()).to_f64(),
        DataType::R32F => f64::from(f32::from_le_bytes(bytes.try_into().unwrap())),
        _ => f64::from_le_bytes(bytes.try_into().unwrap()),
    }
}

/// Half the distance between neighbours of 1: the relative rounding error of a type.
fn rounding(value_type: DataType) -> f64 {
    match value_type {
        DataType::R16F => 1.0 / 2048.0,
        DataType::R16BF => 1.0 / 256.0,
        DataType::R32F => f64::from(f32::EPSILON) / 2.0,
        _ => f64::EPSILON / 2.0,
    }
}

fn encoded(value_type: DataType, values: &[f64]) -> Vec<u8> {
    values.iter().flat_map(|&value| encode(value_type, value)).collect()
}

fn decoded(value_type: DataType, bytes: &[u8]) -> Vec<f64> {
    bytes.chunks_exact(value_type.size()).map(|bytes| decode(value_type, bytes)).collect()
}

/// One product to test: a dense operand begins `shift` elements into its array and has `pad` unused elements
/// between its rows or columns.
#[derive(Clone, Copy, Debug)]
struct DenseTestProduct {
    types: Types,
    op: Operation,
    op_b: Operation,
    n: usize,
    orders: (Order, Order),
    shift: usize,
    pad: usize,
    alpha: f64,
    beta: f64,
    /// True if scalars are on the device.
    on_device: bool,
    /// True if B has infinities and NaNs.
    special: bool,
    /// True if A has an infinity, and a number larger than any finite bf16.
    extreme: bool,
    widths: (IndexType, IndexType),
    /// `Some` for new values before the product, with positions kept or not.
    updates: Option<bool>,
}

/// Multiplier to test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum By {
    Lt,
    /// cublasLt with copies of B in rows of whole packs.
    Copies,
    /// cublasLt with its fastest algorithm.
    Tuned,
    Own,
    /// The library's kernels for fp32 in three parts of bf16.
    Parts,
}

impl By {
    /// Builds the executor; `None` if cublasLt is not installed or the multiplier does not apply.
    fn build(self, cx: &DeviceCall<'_>, problem: &SpmmProblem) -> Option<DenseSpmm> {
        let n = problem.n_hint as usize;
        if self == By::Copies && !Lt::may_pad_n(problem, n) {
            return None;
        }
        if self == By::Parts && problem.types != F32::TYPES {
            return None;
        }
        let is_own = matches!(self, By::Own | By::Parts);
        let by_columns = !is_own && select::spmm::dense::is_by_columns(problem.types, sizes(problem));
        let engine = if is_own {
            Engine::Own(Box::new(Own::load(cx.device, problem.types, self == By::Parts).unwrap()))
        } else {
            let Some(library) = cx.device.cublaslt() else {
                println!("SKIP cublasLt is not installed");
                return None;
            };
            let copied = Copied { pads_n: self == By::Copies, pads_k: Lt::pads_k(problem) };
            Engine::Lt(Lt::new(cx.device, library, problem.types.x, copied).unwrap())
        };
        let shared = &SharedResults::new(cx.device);
        let mut executor = DenseSpmm::build(&Analysis { cx, problem, shared }, engine, by_columns).unwrap();
        if self == By::Tuned {
            executor.tune(cx).unwrap();
        }
        Some(executor)
    }
}

fn build(cx: &DeviceCall<'_>, problem: &SpmmProblem) -> Result<DenseSpmm> {
    build_in(cx, problem, false)
}

fn build_in(cx: &DeviceCall<'_>, problem: &SpmmProblem, deterministic: bool) -> Result<DenseSpmm> {
    let analysis = Analysis { cx, problem, shared: &SharedResults::new(cx.device) };
    build_from(
        &analysis,
        select::spmm::dense::multiplier(problem.types, sizes(problem), deterministic, false),
    )
}

/// Rows and columns of op(A), and columns of C.
fn sizes(problem: &SpmmProblem) -> (usize, usize, usize) {
    let (m, k, _) = problem.a.shape_of(problem.op);
    (m as usize, k as usize, problem.n_hint.max(0) as usize)
}

const PLAIN: DenseTestProduct = DenseTestProduct {
    types: F16::TYPES,
    op: Operation::NonTranspose,
    op_b: Operation::NonTranspose,
    n: 32,
    orders: (Order::Row, Order::Row),
    shift: 0,
    pad: 0,
    alpha: 1.5,
    beta: 0.0,
    on_device: false,
    special: false,
    extreme: false,
    widths: WIDTHS[0],
    updates: None,
};

fn index(order: Order, ld: usize, row: usize, col: usize) -> usize {
    match order {
        Order::Row => row * ld + col,
        Order::Col => row + col * ld,
    }
}

/// Arrays of a product on the device, and the expected result.
struct Made {
    problem: SpmmProblem,
    b: DenseMatrix,
    c: DenseMatrix,
    old_c: Vec<u8>,
    /// For each element of C its expected value and the allowed error; `None` for padding.
    expected: Vec<Option<(f64, f64)>>,
    new_values: DeviceBuffer<u8>,
    out: DeviceBuffer<u8>,
    _arrays: (DeviceBuffer<i64>, DeviceBuffer<i64>, DeviceBuffer<u8>, DeviceBuffer<u8>),
}

impl DenseTestProduct {
    fn make(&self, cx: &Context, matrix: &TestMatrix) -> Made {
        let &DenseTestProduct {
            types, op, op_b, n, orders, shift, pad, alpha, beta, special, extreme, ..
        } = self;
        let (major, minor) = (matrix.offsets.len() - 1, matrix.cols);
        let (rows, cols) = if op.transposes() { (minor, major) } else { (major, minor) };
        let mut next = sequence(n as u64 + 5);
        let mut number = |value_type: DataType| {
            decode(value_type, &encode(value_type, next() as f64 / f64::from(1_u32 << 29) - 2.0))
        };
        let mut values: Vec<_> = matrix.values.iter().map(|_| number(types.a)).collect();
        let (b_rows, b_cols) = if op_b.transposes() { (n, cols) } else { (cols, n) };
        let ld = |order, rows: usize, cols: usize| if order == Order::Row { cols } else { rows }.max(1) + pad;
        let ldb = ld(orders.0, b_rows, b_cols);
        let ldc = ld(orders.1, rows, n);
        let extent = |order, ld: usize, rows: usize, cols: usize| {
            shift + ld * if order == Order::Row { rows } else { cols }
        };
        let b_at = |k: usize, j: usize| {
            let (row, col) = if op_b.transposes() { (j, k) } else { (k, j) };
            shift + index(orders.0, ldb, row, col)
        };
        let mut b: Vec<_> = (0..extent(orders.0, ldb, b_rows, b_cols)).map(|_| number(types.x)).collect();
        if special && cols > 0 {
            for (at, value) in [f64::INFINITY, f64::NAN, f64::NEG_INFINITY].into_iter().enumerate() {
                b[b_at((cols * (at + 1) / 5).min(cols - 1), at * 7 % n)] = value;
            }
        }
        if extreme {
            let pattern = matrix.pattern();
            let (at, count) = (values.len() / 2, values.len());
            let row = (0..major).find(|&row| pattern.range(row).contains(&at)).unwrap();
            let k = if op.transposes() { row } else { pattern.index(at) };
            // The elements of B that meet it are so small that products are finite.
            for j in 0..n {
                b[b_at(k, j)] *= 1e-6;
            }
            values[at] = f64::from(f32::MAX);
            values[count - 1] = f64::NEG_INFINITY;
        }
        // If beta is 0, C must not be read.
        let c: Vec<f64> = (0..extent(orders.1, ldc, rows, n))
            .map(|_| if beta == 0.0 { f64::NAN } else { number(types.y) })
            .collect();

        let mut sums = vec![(0.0, 0.0, 0); rows * n];
        let pattern = matrix.pattern();
        for row in 0..major {
            for at in pattern.range(row) {
                let (i, k) =
                    if op.transposes() { (pattern.index(at), row) } else { (row, pattern.index(at)) };
                for j in 0..n {
                    let term = values[at] * b[b_at(k, j)];
                    let sum: &mut (f64, f64, usize) = &mut sums[i * n + j];
                    *sum = (sum.0 + term, sum.1 + term.abs(), sum.2 + 1);
                }
            }
        }
        let mut expected = vec![None; c.len()];
        let eps = if types.compute == ComputeType::R64F { f64::EPSILON } else { f64::from(f32::EPSILON) };
        for (place, (sum, absolute, terms)) in sums.into_iter().enumerate() {
            let at = shift + index(orders.1, ldc, place / n, place % n);
            let before = if beta == 0.0 { 0.0 } else { beta * c[at] };
            let exact = if alpha == 0.0 { before } else { alpha * sum + before };
            let size = alpha.abs() * absolute + before.abs();
            let of_factors = if types.compute == ComputeType::Tf32 { 2.0 / 2048.0 } else { 0.0 };
            let allowed =
                ((terms + 3) as f64 * eps + of_factors) * size + rounding(types.y) * exact.abs() + 1e-7;
            expected[at] = Some((exact, allowed));
        }

        let offsets = DeviceBuffer::from_slice(cx, &typed(&matrix.offsets, self.widths.0)).unwrap();
        let indices = DeviceBuffer::from_slice(cx, &typed(&matrix.indices, self.widths.1)).unwrap();
        let new_values = DeviceBuffer::from_slice(cx, &encoded(types.a, &values)).unwrap();
        let other: Vec<_> = values.iter().map(|value| 1.0 - value).collect();
        let first = if self.updates.is_some() { other } else { values };
        let first = DeviceBuffer::from_slice(cx, &encoded(types.a, &first)).unwrap();
        let device_b = DeviceBuffer::from_slice(cx, &encoded(types.x, &b)).unwrap();
        let old_c = encoded(types.y, &c);
        let out = DeviceBuffer::from_slice(cx, &old_c).unwrap();
        let a = Compressed {
            major: major as i64,
            minor: minor as i64,
            nnz: matrix.values.len() as i64,
            offsets: offsets.address(),
            indices: indices.address(),
            values: first.address(),
            offset_type: self.widths.0,
            index_type: self.widths.1,
            base: if matrix.base == 0 { IndexBase::Zero } else { IndexBase::One },
            value_type: types.a,
        };
        let problem = SpmmProblem {
            op,
            op_b,
            a: SparseMatrix { arrays: SparseArrays::Csr(a), writable: true, temporary: false },
            b_order: orders.0,
            c_order: orders.1,
            n_hint: n as i64,
            types,
            value_updates: self.updates == Some(true),
            ieee: false,
        };
        let dense =
            |address: Address, (rows, cols): (usize, usize), ld: usize, order, value_type: DataType| {
                DenseMatrix {
                    rows: rows as i64,
                    cols: cols as i64,
                    ld: ld as i64,
                    values: address.offset(shift * value_type.size()),
                    value_type,
                    order,
                    writable: true,
                }
            };
        Made {
            problem,
            b: dense(device_b.address(), (b_rows, b_cols), ldb, orders.0, types.x),
            c: dense(out.address(), (rows, n), ldc, orders.1, types.y),
            old_c,
            expected,
            new_values,
            out,
            _arrays: (offsets, indices, first, device_b),
        }
    }

    /// Computes the product twice, asserts that both have the same bits, and compares it with sums in double
    /// precision.
    fn check(&self, cx: &DeviceCall<'_>, matrix: &TestMatrix) {
        let made = self.make(cx, matrix);
        for by in [By::Lt, By::Copies, By::Own, By::Parts] {
            let Some(mut executor) = by.build(cx, &made.problem) else { continue };
            if self.updates.is_some() {
                executor.update_values(cx, made.new_values.address()).unwrap();
            }
            let found = self.execute(cx, &executor, &made);
            assert_eq!(found, self.execute(cx, &executor, &made), "{self:?} by {by:?}");
            self.compare(&made, &found, &format!("{self:?} by {by:?}"));
        }
    }

    fn execute(&self, cx: &Context, executor: &DenseSpmm, made: &Made) -> Vec<u8> {
        let bytes = executor.workspace_bytes(self.n);
        let scratch = DeviceBuffer::from_slice(cx, &vec![0xff_u8; bytes.max(1)]).unwrap();
        let counters = DeviceBuffer::<u8>::zeroed(cx, COUNTER_BYTES).unwrap();
        let scalar = |value: f64| encoded(self.problem_scalar(), &[value]);
        let (alpha, beta) = (scalar(self.alpha), scalar(self.beta));
        let on_device = [&alpha, &beta].map(|bytes| DeviceBuffer::from_slice(cx, bytes).unwrap());
        let (pointer_mode, alpha, beta) = match self.on_device {
            true => (PointerMode::Device, on_device[0].address(), on_device[1].address()),
            false => (PointerMode::Host, Address::new(alpha.as_ptr()), Address::new(beta.as_ptr())),
        };
        let workspace = Workspace { address: scratch.address(), bytes };
        let cx = Context { workspace, counters: counters.address(), pointer_mode, ..cx.clone() };
        memory::upload(made.out.address(), &made.old_c, cx.stream).unwrap();
        executor.execute(&cx, alpha, &made.b, beta, &made.c).unwrap();
        memory::synchronize(cx.stream).unwrap();
        made.out.read(0, made.out.len()).unwrap()
    }

    fn problem_scalar(&self) -> DataType {
        if self.types.compute == ComputeType::R64F {
            DataType::R64F
        } else {
            DataType::R32F
        }
    }

    fn compare(&self, made: &Made, found: &[u8], what: &str) {
        let size = self.types.y.size();
        let numbers = decoded(self.types.y, found);
        for (at, (&got, expected)) in numbers.iter().zip(&made.expected).enumerate() {
            let Some((exact, allowed)) = *expected else {
                let bytes = at * size..(at + 1) * size;
                assert_eq!(found[bytes.clone()], made.old_c[bytes], "{what}: padding {at} was written");
                continue;
            };
            if !exact.is_finite() {
                assert!(got == exact || got.is_nan() && exact.is_nan(), "{what} {at}: {got} {exact}");
                continue;
            }
            assert!((got - exact).abs() <= allowed, "{what} {at}: {got} {exact} ± {allowed}");
        }
    }
}

/// Makes a matrix with some long and some empty rows, and no column twice in a row.
fn sample(base: i64, rows: usize, cols: usize) -> TestMatrix {
    let mut next = sequence(rows as u64 + 1);
    let lengths: Vec<usize> = (0..rows).map(|_| (next() % 4 * (next() % 19)).min(cols)).collect();
    TestMatrix::new(base, cols, &lengths, |row, entry| (row / 5 * 7 + entry * 131) % cols)
}

/// Makes a matrix with repeated entries, in some rows enough of them for several turns of a loop.
fn repeated(rows: usize, cols: usize) -> TestMatrix {
    let mut next = sequence(rows as u64 + 2);
    let lengths: Vec<usize> = (0..rows).map(|_| next() % 4 * (next() % 29)).collect();
    TestMatrix::new(1, cols, &lengths, |row, entry| (row + entry / 3 * 5) % cols)
}

fn check_all(matrix: &TestMatrix, products: &[DenseTestProduct]) {
    let Some((device, cx)) = context_of_device() else { return };
    let cx = &device.call(&cx).unwrap();
    for product in products {
        product.check(cx, matrix);
    }
}

const COLUMNS: [usize; 9] = [1, 3, 8, 17, 32, 100, 128, 512, 40];

#[test]
fn any_number_of_columns() {
    let products = ALL.map(|types| COLUMNS.map(|n| DenseTestProduct { types, n, ..PLAIN }));
    check_all(&sample(0, 150, 401), products.as_flattened());
    // Tiles of every size, and K in parts.
    let products = ALL
        .map(|types| [32, 256].map(|n| [0.0, 1.0].map(|beta| DenseTestProduct { types, n, beta, ..PLAIN })));
    check_all(&sample(0, 700, 3001), products.as_flattened().as_flattened());
}

/// Tests numbers of columns of A that are a few more than whole steps of cublasLt's kernels, with an entry of
/// every row in the last columns: some of those kernels drop them where they cut K into pieces.
#[test]
fn columns_behind_whole_steps_are_multiplied() {
    let few = [8, 16, 32, 35];
    let shapes = [
        (1736, 4801, few),
        (1000, 9601, few),
        (219, 20_744, [128, 32, 64, 136]),
        (128, 20_488, [8, 16, 128, 256]),
        (300, 33_872, [16, 8, 128, 40]),
    ];
    for (rows, cols, columns) in shapes {
        let matrix = TestMatrix::new(0, cols, &vec![24; rows], |row, entry| match entry {
            0 => cols - 1 - row % (cols % 64),
            _ => (row * 7 + entry * 397) % (cols - 64),
        });
        let product = |types| {
            let by_columns =
                DenseTestProduct { types, n: columns[0], orders: (Order::Col, Order::Col), ..PLAIN };
            columns.map(|n| DenseTestProduct { types, n, ..PLAIN }).into_iter().chain([by_columns])
        };
        let types = [F16::TYPES, F16F32::TYPES, Bf16::TYPES, Tf32::TYPES];
        check_all(&matrix, &types.into_iter().flat_map(product).collect::<Vec<_>>());
    }
}

#[test]
fn all_scalars_orders_and_operations() {
    let mut products = vec![];
    for (at, types) in ALL.into_iter().enumerate() {
        for (alpha, beta) in [(1.0, 0.0), (-0.5, 2.0), (0.0, 0.5), (0.0, 0.0)] {
            for orders in
                [Order::Row, Order::Col].map(|b| [Order::Row, Order::Col].map(|c| (b, c))).as_flattened()
            {
                let n = [24, 130, 9, 96, 17, 33, 64][at];
                let product = DenseTestProduct { types, alpha, beta, n, orders: *orders, pad: 3, ..PLAIN };
                let other = Operation::Transpose;
                products.push(DenseTestProduct { on_device: true, ..product });
                products.push(DenseTestProduct { op: other, ..product });
                products.push(DenseTestProduct { op_b: other, widths: WIDTHS[at % 3], ..product });
            }
        }
    }
    check_all(&sample(1, 90, 300), &products);
}

#[test]
fn any_alignment() {
    let mut products = vec![];
    for types in ALL {
        for (shift, pad) in [(0, 1), (1, 0), (1, 7), (8, 8), (4, 4), (2, 2)] {
            for (n, beta) in [(16, 0.0), (33, 1.0), (128, 0.0), (129, 0.0)] {
                products.push(DenseTestProduct { types, shift, pad, n, beta, ..PLAIN });
            }
        }
    }
    check_all(&sample(0, 70, 200), &products);
}

#[test]
fn infinities_and_nans_follow_the_stored_entries() {
    let mut products = vec![];
    for types in ALL {
        for n in [5, 32, 64, 200] {
            for beta in [0.0, 0.5] {
                products.push(DenseTestProduct { types, n, beta, special: true, ..PLAIN });
                let orders = (Order::Col, Order::Col);
                products.push(DenseTestProduct { types, n, beta, special: true, orders, ..PLAIN });
            }
        }
    }
    check_all(&sample(0, 130, 500), &products);
    // Enough rows for several blocks.
    let products = [0.0, 1.0].map(|beta| DenseTestProduct { n: 40, beta, special: true, pad: 1, ..PLAIN });
    check_all(&sample(0, 3000, 60), &products);
}

#[test]
fn repeated_entries_are_added() {
    let mut products = vec![];
    for types in ALL {
        for (n, beta) in [(8, 0.0), (40, 1.0)] {
            for op in [Operation::NonTranspose, Operation::Transpose] {
                products.push(DenseTestProduct { types, n, beta, op, ..PLAIN });
                products.push(DenseTestProduct { types, n, beta, op, special: true, ..PLAIN });
                products.push(DenseTestProduct { types, n, op, updates: Some(true), ..PLAIN });
            }
        }
    }
    check_all(&repeated(80, 50), &products);
}

#[test]
fn new_values_are_used() {
    let mut products = vec![];
    for types in ALL {
        for op in [Operation::NonTranspose, Operation::Transpose] {
            for updates in [false, true] {
                products.push(DenseTestProduct { types, op, updates: Some(updates), ..PLAIN });
            }
        }
    }
    check_all(&sample(1, 60, 90), &products);
}

#[test]
fn matrices_without_entries() {
    let products = [0.0, 2.0].map(|beta| DenseTestProduct { n: 24, beta, special: true, ..PLAIN });
    check_all(&TestMatrix::new(0, 10, &[0; 20], |_, _| 0), &products);
    check_all(&TestMatrix::new(0, 0, &[0; 20], |_, _| 0), &products);
    check_all(&TestMatrix::new(0, 10, &[], |_, _| 0), &products);
}

#[test]
fn products_wait_in_the_workspace_some_columns_at_a_time() {
    let Some((device, cx)) = context_of_device() else { return };
    let cx = &device.call(&cx).unwrap();
    // With 200,000 rows, 128 columns of sums exceed what the workspace takes at one time.
    let matrix = TestMatrix::new(0, 40, &vec![2; 200_000], |row, entry| (row * 3 + entry * 7) % 40);
    for orders in [(Order::Row, Order::Row), (Order::Row, Order::Col)] {
        let product = DenseTestProduct { n: 150, beta: 1.0, orders, ..PLAIN };
        product.check(cx, &matrix);
        let made = product.make(cx, &matrix);
        let executor = build(cx, &made.problem).unwrap();
        assert_eq!(executor.workspace_offsets(150).columns, 128);
    }
}

#[test]
fn what_takes_too_much_is_refused() {
    let Some((device, cx)) = context_of_device() else { return };
    let cx = &device.call(&cx).unwrap();
    let matrix = TestMatrix::new(0, 1 << 20, &[1; 100], |row, _| row);
    let made = DenseTestProduct { n: 1, ..PLAIN }.make(cx, &matrix);
    let error = build(cx, &made.problem).err().unwrap();
    assert_eq!(error.status, Status::NotSupported);
    assert!(error.message.contains("209715200 bytes"), "{}", error.message);
}

/// Tests numbers of A that no finite bf16 can hold: the sums that they spoil are computed again from the
/// stored entries.
#[test]
fn numbers_too_large_for_parts() {
    let product = DenseTestProduct { types: F32::TYPES, extreme: true, n: 130, ..PLAIN };
    let updated = DenseTestProduct { updates: Some(false), n: 33, ..product };
    let by_columns =
        DenseTestProduct { op: Operation::Transpose, orders: (Order::Col, Order::Col), beta: 1.0, ..product };
    let all = [product, updated, DenseTestProduct { updates: Some(true), ..updated }, by_columns];
    check_all(&sample(0, 150, 401), &all);
    check_all(&sample(1, 700, 3001), &all[..2]);
}

/// A few products, for compute-sanitizer.
#[test]
fn sanitizer_small_matrices() {
    let mut products = vec![];
    for (types, n) in ALL.into_iter().zip([5, 16, 33, 8, 17, 40, 3]) {
        let product = DenseTestProduct { types, n, special: true, ..PLAIN };
        products.push(product);
        products.push(DenseTestProduct { beta: 1.0, orders: (Order::Col, Order::Col), pad: 1, ..product });
    }
    check_all(&sample(0, 40, 70), &products);
    check_all(&repeated(10, 20), &products[..2]);
}

/// Captures new values and the product into a graph and replays it.
#[test]
fn updates_and_products_can_be_captured() {
    let Some((device, cx)) = context_of_device() else { return };
    let cx = &device.call(&cx).unwrap();
    crate::backend::cuda::convert::testing::be_alone();
    let matrix = sample(0, 300, 200);
    for (by, n) in [(By::Lt, 48), (By::Copies, 45), (By::Own, 48), (By::Parts, 48)] {
        for beta in [0.0, 1.0] {
            let stream = Stream::new(device.ordinal()).unwrap();
            let context = Context { stream: stream.address(), ..Context::clone(cx) };
            let cx = &cx.device.call(&context).unwrap();
            let product = DenseTestProduct { n, beta, updates: Some(true), ..PLAIN };
            let made = product.make(cx, &matrix);
            let Some(mut executor) = by.build(cx, &made.problem) else { continue };
            let bytes = executor.workspace_bytes(n);
            let memory = DeviceBuffer::<u8>::new(cx, bytes).unwrap();
            let workspace = Workspace { address: memory.address(), bytes };
            let run = Context { workspace, ..Context::clone(cx) };
            let (alpha, beta) = (product.alpha as f32, beta as f32);
            memory::synchronize(cx.stream).unwrap();
            Graph::begin(&stream).unwrap();
            executor.update_values(&run, made.new_values.address()).unwrap();
            let (alpha, beta) = (Address::new(&raw const alpha), Address::new(&raw const beta));
            executor.execute(&run, alpha, &made.b, beta, &made.c).unwrap();
            let graph = Graph::end(&stream).unwrap();
            for _ in 0..2 {
                memory::upload(made.out.address(), &made.old_c, cx.stream).unwrap();
                graph.launch(&stream).unwrap();
                memory::synchronize(cx.stream).unwrap();
                let found = made.out.read(0, made.out.len()).unwrap();
                product.compare(&made, &found, &format!("captured, by {by:?}"));
            }
        }
    }
}

/// Tests the choice: small products are not for cublasLt, and large ones with unaligned rows get copies.
#[test]
fn who_multiplies() {
    let Some((device, cx)) = context_of_device() else { return };
    let cx = &device.call(&cx).unwrap();
    if device.cublaslt().is_none() {
        println!("SKIP cublasLt is not installed");
        return;
    }
    // Enough entries for a dense copy of 4096 × 4096 doubles.
    let matrix = TestMatrix::new(0, 1 << 12, &[48; 1 << 12], |row, entry| (row / 4 + entry * 61) % (1 << 12));
    let engine = |types, n| {
        let made = DenseTestProduct { types, n, ..PLAIN }.make(cx, &matrix);
        match build(cx, &made.problem).unwrap().engine {
            Engine::Own(_) => By::Own,
            Engine::Lt(lt) => lt.copies(&made.problem, n).map_or(By::Lt, |_| By::Copies),
        }
    };
    let all = [F16::TYPES, Tf32::TYPES, F32::TYPES, F64::TYPES];
    assert_eq!(all.map(|types| engine(types, 64)), [By::Lt, By::Own, By::Lt, By::Lt]);
    assert_eq!(all.map(|types| engine(types, 17)), [By::Copies, By::Own, By::Own, By::Lt]);
    assert_eq!(all.map(|types| engine(types, 101)), [By::Copies, By::Copies, By::Lt, By::Copies]);
    assert_eq!(all.map(|types| engine(types, 1)), [By::Lt, By::Own, By::Own, By::Lt]);
    for (types, n) in all.into_iter().flat_map(|types| [(types, 64), (types, 101)]) {
        let made = DenseTestProduct { types, n, ..PLAIN }.make(cx, &matrix);
        let executor = build_in(cx, &made.problem, true).unwrap();
        assert!(matches!(executor.engine, Engine::Own(_)) && executor.is_deterministic(), "{types:?} {n}");
        let other = build(cx, &made.problem).unwrap();
        assert_eq!(other.is_deterministic(), matches!(other.engine, Engine::Own(_)), "{types:?} {n}");
    }
}

/// Tests effort TUNED: products stay correct, and those of other sizes take the heuristic's first algorithm.
#[test]
fn algorithms_are_timed() {
    let Some((device, cx)) = context_of_device() else { return };
    let cx = &device.call(&cx).unwrap();
    for (types, beta) in ALL.into_iter().zip([0.0, 1.0].into_iter().cycle()) {
        let product = DenseTestProduct { types, beta, n: 48, ..PLAIN };
        let matrix = sample(0, 150, 401);
        let made = product.make(cx, &matrix);
        let Some(mut executor) = By::Tuned.build(cx, &made.problem) else { return };
        let Engine::Lt(lt) = &executor.engine else { panic!("{types:?}") };
        assert_eq!(lt.tuned(), (1, 0), "one product was timed");
        let found = product.execute(cx, &executor, &made);
        product.compare(&made, &found, &format!("{types:?}, tuned"));
        let other = DenseTestProduct { n: 20, ..product };
        // A product of another size and with other values of A.
        let made = other.make(cx, &matrix);
        executor.update_values(cx, made.new_values.address()).unwrap();
        other.compare(&made, &other.execute(cx, &executor, &made), &format!("{types:?}, other columns"));
    }
}

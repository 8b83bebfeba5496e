//! Products of algorithms by name, compared with sums in double precision. Skipped without a device.

use half::{bf16, f16};

use super::once;
use crate::algorithm::Algorithm;
use crate::backend::cuda::convert::testing::{all, context_of_device};
use crate::backend::cuda::device::DeviceCall;
use crate::backend::cuda::memory::DeviceBuffer;
use crate::backend::SpmmExecutor;
use crate::format::testing::TestMatrix;
use crate::matrix::{Compressed, DenseMatrix, SparseArrays, SparseMatrix};
use crate::memory::{Context, Workspace, COUNTER_BYTES};
use crate::problem::SpmmProblem;
use crate::select::spmm::columns::ColumnLimits;
use crate::select::spmm::merge::Path;
use crate::select::{Choice, Clusters, Method, RowOrder, Source};
use crate::support::{Bf16, Bf16F32, Combo, Tf32, Types, F16, F16F32, F32, F32F64, F64};
use crate::types::{Address, DataType, IndexBase, IndexType, Operation, Order, Reorder};
use testkit::sequence;

const TYPES: [Types; 8] = [
    F64::TYPES,
    F32::TYPES,
    Tf32::TYPES,
    F32F64::TYPES,
    F16::TYPES,
    F16F32::TYPES,
    Bf16::TYPES,
    Bf16F32::TYPES,
];

/// Array of values of a type.
struct Numbers {
    value_type: DataType,
    bytes: Vec<u8>,
}

impl Numbers {
    fn new(value_type: DataType, numbers: impl Iterator<Item = f64>) -> Self {
        let mut out = Numbers { value_type, bytes: Vec::new() };
        for value in numbers {
            let at = out.bytes.len() / value_type.size();
            out.bytes.resize(out.bytes.len() + value_type.size(), 0);
            out.set(at, value);
        }
        out
    }

    fn get(&self, at: usize) -> f64 {
        let size = self.value_type.size();
        let bytes = &self.bytes[at * size..(at + 1) * size];
        match self.value_type {
            DataType::R16F => f16::from_le_bytes(bytes.try_into().unwrap()).to_f64(),
            DataType::R16BF => bf16::from_le_bytes(bytes.try_into().unwrap()).to_f64(),
            DataType::R32F => f64::from(f32::from_le_bytes(bytes.try_into().unwrap())),
            _ => f64::from_le_bytes(bytes.try_into().unwrap()),
        }
    }

    fn set(&mut self, at: usize, value: f64) {
        let size = self.value_type.size();
        let to = &mut self.bytes[at * size..(at + 1) * size];
        match self.value_type {
            DataType::R16F => to.copy_from_slice(&f16::from_f64(value).to_le_bytes()),
            DataType::R16BF => to.copy_from_slice(&bf16::from_f64(value).to_le_bytes()),
            DataType::R32F => to.copy_from_slice(&(value as f32).to_le_bytes()),
            _ => to.copy_from_slice(&value.to_le_bytes()),
        }
    }
}

/// One product to test: a dense operand begins `shift` elements into its array and has `pad` unused elements
/// between its rows or columns.
#[derive(Clone, Copy, Debug)]
pub(super) struct TestProduct {
    pub(super) algorithm: Algorithm,
    pub(super) types: Types,
    pub(super) op: Operation,
    pub(super) n: usize,
    /// Number of columns that the plan is made for; `None` for `n`.
    pub(super) planned: Option<usize>,
    pub(super) orders: (Order, Order),
    pub(super) shift: usize,
    pub(super) pad: usize,
    pub(super) alpha: f64,
    pub(super) beta: f64,
    /// True if B has infinities and NaNs.
    pub(super) special: bool,
    /// `Some` if values come by updateValues, announced to the plan or not.
    pub(super) updated: Option<bool>,
    /// True if products must have the same bits from run to run.
    pub(super) deterministic: bool,
    /// Row order by name.
    pub(super) reorder: Reorder,
    /// True for a product without a plan: `row` on A in place.
    pub(super) once: bool,
    /// Limit for the bytes of copies without a plan; `None` for the usual limit.
    pub(super) max_copied_bytes: Option<usize>,
    /// Limits for columns of B and C where they are, without a plan; `None` for the usual decision.
    pub(super) column_limits: Option<ColumnLimits>,
    /// How rows are divided without a plan.
    pub(super) division: Division,
}

/// Division of the rows among the warps of a product without a plan.
#[derive(Clone, Copy, Debug)]
pub(super) enum Division {
    /// The one that the library chooses.
    Chosen,
    /// Lists of rows.
    Lists,
    /// Rows found by a search, among the warps of so many multiprocessors. With 32-bit indices if `is_narrow`.
    /// Columns of B and C are read and written where they are if `by_columns`.
    Search { multiprocessors: i64, is_narrow: bool, by_columns: bool },
}

pub(super) const PLAIN: TestProduct = TestProduct {
    algorithm: Algorithm::Row,
    types: F64::TYPES,
    op: Operation::NonTranspose,
    n: 8,
    planned: None,
    orders: (Order::Row, Order::Row),
    shift: 0,
    pad: 0,
    alpha: 1.5,
    beta: 0.0,
    special: false,
    updated: None,
    deterministic: true,
    reorder: Reorder::None,
    once: false,
    max_copied_bytes: None,
    column_limits: None,
    division: Division::Chosen,
};

/// Where a product's dense operands of `n` columns are: each begins `shift` elements into its array and has
/// `pad` unused elements between its rows or columns.
#[derive(Clone, Copy, Debug)]
pub(super) struct Placement {
    pub(super) n: usize,
    pub(super) shift: usize,
    pub(super) pad: usize,
}

impl Placement {
    /// Leading dimension of a matrix of so many rows.
    fn ld(&self, order: Order, rows: usize) -> usize {
        if order == Order::Row { self.n } else { rows }.max(1) + self.pad
    }

    /// Elements of its array.
    pub(super) fn extent(&self, order: Order, rows: usize) -> usize {
        self.shift + self.ld(order, rows) * if order == Order::Row { rows } else { self.n }
    }

    /// Position of one of its elements in the array.
    pub(super) fn at(&self, order: Order, rows: usize, (row, col): (usize, usize)) -> usize {
        let ld = self.ld(order, rows);
        self.shift
            + match order {
                Order::Row => row * ld + col,
                Order::Col => row + col * ld,
            }
    }

    fn matrix(&self, array: Address, rows: usize, order: Order, value_type: DataType) -> DenseMatrix {
        DenseMatrix {
            rows: rows as i64,
            cols: self.n as i64,
            ld: self.ld(order, rows) as i64,
            values: array.offset(self.shift * value_type.size()),
            value_type,
            order,
            writable: true,
        }
    }
}

/// Matrix on the device, and its values.
pub(super) struct OnDevice {
    _arrays: [DeviceBuffer<u8>; 2],
    values: DeviceBuffer<u8>,
    _zeros: DeviceBuffer<u8>,
    csr: Compressed,
}

impl OnDevice {
    /// Copies the matrix, with the values in `values`. If they will come by an update, it has zeros at first.
    pub(super) fn new(
        cx: &Context,
        matrix: &TestMatrix,
        (value_type, values): (DataType, &[u8]),
        updated: bool,
    ) -> Self {
        OnDevice::with_indices(cx, matrix, (value_type, values), updated, IndexType::I64)
    }

    /// Does the same with offsets and columns of this type.
    pub(super) fn with_indices(
        cx: &Context,
        matrix: &TestMatrix,
        (value_type, values): (DataType, &[u8]),
        updated: bool,
        index_type: IndexType,
    ) -> Self {
        let arrays = [&matrix.offsets, &matrix.indices].map(|array| {
            let bytes: Vec<u8> = match index_type {
                IndexType::I32 => array.iter().flat_map(|&index| (index as i32).to_le_bytes()).collect(),
                _ => array.iter().flat_map(|index| index.to_le_bytes()).collect(),
            };
            DeviceBuffer::from_slice(cx, &bytes).unwrap()
        });
        let zeros = DeviceBuffer::<u8>::zeroed(cx, values.len()).unwrap();
        let values = DeviceBuffer::from_slice(cx, values).unwrap();
        let csr = Compressed {
            major: matrix.offsets.len() as i64 - 1,
            minor: matrix.cols as i64,
            nnz: matrix.indices.len() as i64,
            offsets: arrays[0].address(),
            indices: arrays[1].address(),
            values: if updated { zeros.address() } else { values.address() },
            offset_type: index_type,
            index_type,
            base: if matrix.base == 0 { IndexBase::Zero } else { IndexBase::One },
            value_type,
        };
        OnDevice { _arrays: arrays, values, _zeros: zeros, csr }
    }

    /// Returns the matrix as the kernels' builders take it.
    pub(super) fn csr(&self) -> &Compressed {
        &self.csr
    }

    /// Returns the address of the values.
    pub(super) fn values(&self) -> Address {
        self.values.address()
    }

    /// Returns the problem of a product A · B, without value updates.
    pub(super) fn problem(&self, types: Types, orders: (Order, Order), n_hint: usize) -> SpmmProblem {
        SpmmProblem {
            op: Operation::NonTranspose,
            op_b: Operation::NonTranspose,
            a: SparseMatrix { arrays: SparseArrays::Csr(self.csr), writable: true, temporary: false },
            b_order: orders.0,
            c_order: orders.1,
            n_hint: n_hint as i64,
            types,
            value_updates: false,
            ieee: false,
        }
    }
}

/// Computes a product with the bytes of the arrays of B and of the old C, and returns those of C. The
/// workspace is full of NaN; the counters must be zero afterwards. If `repeats`, asserts that another product
/// has the same bits.
pub(super) fn run_product(
    (cx, executor, problem): (&DeviceCall<'_>, &SpmmExecutor, &SpmmProblem),
    placement: Placement,
    (alpha, beta): (f64, f64),
    [b, old]: [&[u8]; 2],
    (repeats, what): (bool, &str),
) -> Vec<u8> {
    let bytes = executor.workspace_bytes(placement.n);
    let workspace = DeviceBuffer::from_slice(cx, &vec![0xff_u8; bytes.max(1)]).unwrap();
    let counters = DeviceBuffer::<u8>::zeroed(cx, COUNTER_BYTES).unwrap();
    let workspace_of = Workspace { address: workspace.address(), bytes };
    let context = Context { workspace: workspace_of, counters: counters.address(), ..Context::clone(cx) };
    let (m, k, _) = problem.a.shape_of(problem.op);
    let b = DeviceBuffer::from_slice(cx, b).unwrap();
    let types = problem.types;
    let (alphas, betas) = ((alpha, alpha as f32), (beta, beta as f32));
    let scalar = |pair: &(f64, f32)| match types.compute.scalar() {
        DataType::R64F => Address::new(&raw const pair.0),
        _ => Address::new(&raw const pair.1),
    };
    let run = || {
        let out = DeviceBuffer::from_slice(&context, old).unwrap();
        let b = placement.matrix(b.address(), k as usize, problem.b_order, types.x);
        let c = placement.matrix(out.address(), m as usize, problem.c_order, types.y);
        executor.execute(&context, scalar(&alphas), &b, scalar(&betas), &c).unwrap();
        all(&out)
    };
    let found = run();
    assert!(!repeats || found == run(), "{what}");
    assert!(all(&counters).iter().all(|&byte| byte == 0), "{what}");
    found
}

impl TestProduct {
    /// Computes the product twice, asserts that both have the same bits unless they may differ, and compares
    /// it with sums in double precision.
    fn check(&self, cx: &DeviceCall<'_>, matrix: &TestMatrix) {
        let what = format!("{self:?}");
        let &TestProduct {
            algorithm,
            types,
            op,
            n,
            orders,
            shift,
            pad,
            alpha,
            beta,
            special,
            updated,
            reorder,
            ..
        } = self;
        let (major, minor) = (matrix.offsets.len() - 1, matrix.cols);
        let (rows, cols) = if op == Operation::NonTranspose { (major, minor) } else { (minor, major) };
        let mut next = sequence(n as u64 + 5);
        // Random in all bits of a double's mantissa.
        let mut number = || {
            let (high, low) = (next() as u64 & 0xff_ffff, next() as u64 & 0xfff_ffff);
            (high << 28 | low) as f64 / (1_u64 << 50) as f64 - 2.0
        };
        let count = matrix.values.len();
        let values = Numbers::new(types.a, (0..count).map(|_| number()));
        let pattern = matrix.pattern();
        // Entries of each row of op(A), as column and position.
        let mut entries = vec![Vec::new(); rows];
        for row in 0..major {
            for at in pattern.range(row) {
                let column = pattern.index(at);
                match op {
                    Operation::NonTranspose => entries[row].push((column, at)),
                    _ => entries[column].push((row, at)),
                }
            }
        }
        let placement = Placement { n, shift, pad };
        let mut b = Numbers::new(types.x, (0..placement.extent(orders.0, cols)).map(|_| number()));
        if special {
            let some: Vec<_> = entries.iter().flatten().map(|&(column, _)| column).collect();
            for (at, value) in [f64::INFINITY, f64::NAN, f64::NEG_INFINITY].into_iter().enumerate() {
                let column = some[some.len() * (at + 1) / 5];
                b.set(placement.at(orders.0, cols, (column, at * 7 % n)), value);
            }
        }
        // If beta is 0, C must not be read.
        let old = Numbers::new(
            types.y,
            (0..placement.extent(orders.1, rows)).map(|_| if beta == 0.0 { f64::NAN } else { number() }),
        );

        let index_type = match self.division {
            Division::Search { is_narrow: true, .. } => IndexType::I32,
            _ => IndexType::I64,
        };
        let of_values = (types.a, &values.bytes[..]);
        let stored = OnDevice::with_indices(cx, matrix, of_values, updated.is_some(), index_type);
        // The plan sets it in the same way.
        let value_updates = updated == Some(true) || reorder.is_named();
        let problem = stored.problem(types, orders, self.planned.unwrap_or(n));
        let problem = SpmmProblem { op, value_updates, ..problem };
        let clusters = if reorder == Reorder::Auto { Clusters::IfFaster } else { Clusters::No };
        let mut method = match Method::new(algorithm) {
            Method::Window(_) => Method::Window(clusters),
            Method::Smat { width, .. } => Method::Smat { clusters, width },
            Method::Swift { .. } => Method::Swift { deterministic: self.deterministic },
            other => other,
        };
        if let Some(order) = method.row_order_mut() {
            *order = RowOrder::new(reorder);
        }
        let choice = Choice::of(method, Source::Canonical);
        let mut executor: Box<SpmmExecutor> = match self.once {
            true => {
                let mut product = once::product(cx.device, &problem).unwrap().unwrap();
                product.max_copied_bytes = self.max_copied_bytes.unwrap_or(product.max_copied_bytes);
                // The decision stands in front of the lists, for which the workspace has room only if there are any.
                let forced = self.column_limits.filter(|_| product.schedule.list_blocks() > 0);
                product.column_limits = forced.or(product.column_limits);
                let (of_path, counts) =
                    ((types.x, types.compute.scalar().size()), (rows as i64, count as i64));
                product.path = match self.division {
                    _ if forced.is_some() => None,
                    Division::Chosen => product.path,
                    Division::Lists => None,
                    Division::Search { multiprocessors, by_columns: true, .. } => {
                        Path::for_any_columns(of_path, n, counts, multiprocessors)
                    }
                    Division::Search { multiprocessors, .. } => {
                        Path::for_any(of_path, n, counts, multiprocessors)
                    }
                };
                Box::new(product)
            }
            false => crate::backend::cuda::spmm::build(cx, &problem, &choice, None).unwrap(),
        };
        if updated.is_some() {
            executor.update_values(cx, stored.values()).unwrap();
        }

        assert_eq!(executor.is_deterministic(), self.deterministic, "{what}");
        let given = [&b.bytes[..], &old.bytes];
        let on = (cx, &*executor, &problem);
        let bytes = run_product(on, placement, (alpha, beta), given, (self.deterministic, &what));
        let found = Numbers { value_type: types.y, bytes };
        let wide = types.compute.scalar() == DataType::R64F;
        let eps = if wide { f64::EPSILON } else { f64::from(f32::EPSILON) };
        let store = match types.y {
            DataType::R16F => 1.0 / 2048.0,
            DataType::R16BF => 1.0 / 256.0,
            _ => 0.0,
        };
        let mut expected = old.bytes.clone();
        let size = types.y.size();
        for (row, entries) in entries.iter().enumerate() {
            for col in 0..n {
                let (mut sum, mut absolute) = (0.0, 0.0);
                for &(column, at) in entries {
                    let from = placement.at(orders.0, cols, (column, col));
                    let term = values.get(at) * b.get(from);
                    sum += term;
                    absolute += term.abs();
                }
                let at = placement.at(orders.1, rows, (row, col));
                let got = found.get(at);
                expected[at * size..(at + 1) * size]
                    .copy_from_slice(&found.bytes[at * size..(at + 1) * size]);
                let before = if beta == 0.0 { 0.0 } else { beta * old.get(at) };
                let exact = if alpha == 0.0 { before } else { alpha * sum + before };
                if !exact.is_finite() {
                    let same = got == exact || got.is_nan() && exact.is_nan();
                    assert!(same, "{what} {row} {col}: {got} {exact}");
                    continue;
                }
                let terms = (entries.len() + 3) as f64;
                let of_sums = terms * eps * (alpha.abs() * absolute + before.abs());
                let allowed = of_sums + store * exact.abs() + if store > 0.0 { 1e-7 } else { 0.0 };
                assert!((got - exact).abs() <= allowed, "{what} {row} {col}: {got} {exact} ± {allowed}");
            }
        }
        assert!(found.bytes == expected, "{what}: padding was written");
    }
}

/// Checks all products in all types.
pub(super) fn check_all(matrix: &TestMatrix, products: impl IntoIterator<Item = TestProduct>) {
    check_types(matrix, &TYPES, products);
}

/// Checks all products in these types.
pub(super) fn check_types(
    matrix: &TestMatrix,
    types: &[Types],
    products: impl IntoIterator<Item = TestProduct>,
) {
    let Some((device, cx)) = context_of_device() else { return };
    let cx = &device.call(&cx).unwrap();
    for product in products {
        for &types in types {
            TestProduct { types, ..product }.check(cx, matrix);
        }
    }
}

/// Makes a matrix with rows of different lengths, some empty, and some columns twice in a row.
pub(super) fn sample(base: i64, rows: usize, cols: usize) -> TestMatrix {
    let mut next = sequence(rows as u64 + 1);
    let lengths: Vec<usize> = (0..rows).map(|_| next() % 4 * (next() % 19)).collect();
    TestMatrix::new(base, cols, &lengths, |row, entry| (row / 5 * 7 + entry * 131) % cols)
}

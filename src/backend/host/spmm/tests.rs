//! Tests of SpMM against a naive triple loop over the stored entries.

mod bcsr;
mod dense;
mod row;
mod swift;

use num_complex::Complex64;

use super::*;
use crate::algorithm::Algorithm;
use crate::backend::host::testing::{
    context, scalar, tolerance, value, Execution, Number, Numbers, UnsortedMatrix, WIDTHS,
};
use crate::error::Status;
use crate::select::{RowOrder, Source};
use crate::support::{Bf16, Bf16F32, Tf32, C32, C64, F16, F16F32, F32, F32F64, F64};
use crate::types::{IndexBase, IndexType, Operation};
use testkit::Random;

const OPS: [Operation; 3] = [Operation::NonTranspose, Operation::Transpose, Operation::ConjugateTranspose];
const ORDERS: [Order; 2] = [Order::Row, Order::Col];

/// A dense matrix with padding between its rows or columns.
#[derive(Clone)]
struct Dense<V> {
    rows: usize,
    cols: usize,
    ld: usize,
    order: Order,
    values: Vec<V>,
}

impl<V: Element> Dense<V> {
    fn random<A: Number>(random: &mut Random, rows: usize, cols: usize, order: Order, padding: usize) -> Self
    where
        V: Storage<A>,
    {
        let (inner, outer) = if order == Order::Col { (rows, cols) } else { (cols, rows) };
        let ld = inner.max(1) + padding;
        Dense { rows, cols, ld, order, values: random.numbers(ld * outer) }
    }

    fn at(&self, row: usize, col: usize) -> usize {
        match self.order {
            Order::Col => row + col * self.ld,
            Order::Row => row * self.ld + col,
        }
    }

    /// Returns the descriptor. It takes `&mut`, since C is written through the descriptor.
    fn describe(&mut self) -> DenseMatrix {
        DenseMatrix {
            rows: self.rows as i64,
            cols: self.cols as i64,
            ld: self.ld as i64,
            values: Address::new(self.values.as_mut_ptr()),
            value_type: V::TYPE,
            order: self.order,
            writable: true,
        }
    }

    fn is_padding(&self, at: usize) -> bool {
        at % self.ld >= if self.order == Order::Col { self.rows } else { self.cols }
    }
}

/// Operands and scalars of one product.
struct Case<'a, C: Combo> {
    matrix: &'a UnsortedMatrix<C::A>,
    op: Operation,
    op_b: Operation,
    n: usize,
    b: Dense<C::X>,
    c: Dense<C::Y>,
    alpha: C::Acc,
    beta: C::Acc,
}

impl<'a, C: Combo> Case<'a, C>
where
    C::Acc: Number,
{
    fn new(
        random: &mut Random,
        matrix: &'a UnsortedMatrix<C::A>,
        (op, op_b): (Operation, Operation),
        n: usize,
        (b_order, c_order): (Order, Order),
    ) -> Self {
        let (m, k) = op.shape(matrix.rows as i64, matrix.cols as i64);
        let (b_rows, b_cols) = op_b.shape(k, n as i64);
        Case {
            matrix,
            op,
            op_b,
            n,
            b: Dense::random::<C::Acc>(random, b_rows as usize, b_cols as usize, b_order, 3),
            c: Dense::random::<C::Acc>(random, m as usize, n, c_order, 2),
            alpha: random.number(),
            beta: random.number(),
        }
    }

    fn problem(&self, widths: (IndexType, IndexType)) -> SpmmProblem {
        SpmmProblem {
            op: self.op,
            op_b: self.op_b,
            a: self.matrix.describe(widths),
            b_order: self.b.order,
            c_order: self.c.order,
            n_hint: self.n as i64,
            types: C::TYPES,
            value_updates: false,
            ieee: false,
        }
    }

    fn op_a(&self, widths: (IndexType, IndexType), keep: bool) -> OpA {
        OpA { a: self.matrix.describe(widths), op: self.op, keep }
    }

    /// Returns the bytes of the panel into which op(B) is copied if its rows are not contiguous.
    fn panel_bytes(&self) -> usize {
        let by_rows = (self.b.order == Order::Row) != self.op_b.transposes();
        let k = if self.op_b.transposes() { self.b.cols } else { self.b.rows };
        let columns = self.n.min(256 / size_of::<C::Acc>());
        if by_rows || self.n < 4 {
            0
        } else {
            k * columns * size_of::<C::Acc>()
        }
    }

    fn executor(&self, widths: (IndexType, IndexType), source: Source) -> Box<SpmmExecutor> {
        build(&context(), &self.problem(widths), &Choice::new(Algorithm::Row, source)).unwrap()
    }

    /// Executes and returns the resulting C.
    fn execute(&mut self, executor: &SpmmExecutor) -> Dense<C::Y> {
        let scratch = Execution::new(executor.workspace_bytes(self.n));
        let mut c = self.c.clone();
        let (b, out) = (self.b.describe(), c.describe());
        executor.execute(&scratch.cx, scalar(&self.alpha), &b, scalar(&self.beta), &out).unwrap();
        c
    }

    /// Compares C with a naive loop, and checks that padding is unchanged.
    fn compare(&self, c: &Dense<C::Y>) {
        let (alpha, beta) = (self.alpha.get(), self.beta.get());
        let mut sums = vec![(Complex64::ZERO, 0.0, 0); c.rows * self.n];
        for (&(row, col), a) in self.matrix.entries.iter().zip(&self.matrix.values) {
            let (row, col) = if self.op.transposes() { (col, row) } else { (row, col) };
            let a = value::<C::Acc, _>(if self.op.conjugates() { a.conjugate() } else { *a });
            for j in 0..self.n {
                let at = if self.op_b.transposes() { self.b.at(j, col) } else { self.b.at(col, j) };
                let b = self.b.values[at];
                let product = a * value::<C::Acc, _>(if self.op_b.conjugates() { b.conjugate() } else { b });
                let sum = &mut sums[row * self.n + j];
                *sum = (sum.0 + product, sum.1 + product.norm(), sum.2 + 1);
            }
        }
        for (at, (sum, absolute, terms)) in sums.into_iter().enumerate() {
            let at = c.at(at / self.n, at % self.n);
            let before = beta * value::<C::Acc, _>(self.c.values[at]);
            let exact = alpha * sum + before;
            let error = (value::<C::Acc, _>(c.values[at]) - exact).norm();
            let allowed = tolerance::<C>(terms, alpha.norm() * absolute + before.norm(), exact);
            assert!(error <= allowed, "{} at {at}: error {error}, allowed {allowed}", C::TYPES.describe());
        }
        for (at, value) in c.values.iter().enumerate() {
            assert!(!c.is_padding(at) || *value == self.c.values[at], "padding at {at} was written");
        }
    }
}

fn check_combo<C: Combo>()
where
    C::Acc: Number,
{
    let mut random = Random::new(7);
    let lengths = [0, 1, 2, 3, 9, 0, 40];
    for (n, widths) in [0, 1, 3, 7, 8, 31, 70].into_iter().zip(WIDTHS.into_iter().cycle()) {
        for (op, op_b) in OPS.into_iter().flat_map(|op| OPS.map(|op_b| (op, op_b))) {
            let base = if n % 2 == 0 { IndexBase::Zero } else { IndexBase::One };
            let matrix = UnsortedMatrix::<C::A>::random::<C::Acc>(&mut random, base, 11, &lengths);
            for orders in ORDERS.into_iter().flat_map(|b| ORDERS.map(|c| (b, c))) {
                let mut case = Case::<C>::new(&mut random, &matrix, (op, op_b), n, orders);
                let sources = [Source::Canonical, Source::InPlace];
                for source in &sources[..if op == Operation::NonTranspose { 2 } else { 1 }] {
                    let executor = case.executor(widths, *source);
                    assert_eq!(executor.workspace_bytes(n), case.panel_bytes());
                    let c = case.execute(&*executor);
                    case.compare(&c);
                }
            }
        }
    }
}

#[test]
fn real_combinations_agree_with_a_naive_loop() {
    check_combo::<F64>();
    check_combo::<F32>();
    check_combo::<Tf32>();
    check_combo::<F32F64>();
}

#[test]
fn half_and_complex_combinations_agree_with_a_naive_loop() {
    check_combo::<F16>();
    check_combo::<F16F32>();
    check_combo::<Bf16>();
    check_combo::<Bf16F32>();
    check_combo::<C32>();
    check_combo::<C64>();
}

#[test]
fn the_same_bits_come_out_on_any_number_of_threads() {
    let mut random = Random::new(11);
    let mut lengths: Vec<usize> = (0..3000).map(|_| random.below(7)).collect();
    lengths[5] = (1 << 14) + 1;
    lengths[6] = 70_000;
    lengths[9] = 1 << 14;
    let matrix = UnsortedMatrix::<f32>::random::<f32>(&mut random, IndexBase::One, 500, &lengths);
    let ops = (Operation::NonTranspose, Operation::NonTranspose);
    let orders = [(Order::Row, Order::Row), (Order::Col, Order::Col)];
    for (n, orders) in [13, 70].into_iter().flat_map(|n| orders.map(|orders| (n, orders))) {
        let mut case = Case::<F32>::new(&mut random, &matrix, ops, n, orders);
        let (a, order) = (case.op_a(WIDTHS[0], false), RowOrder::new(Reorder::None));
        let layout =
            Csr::<f32>::build(&context(), &a, Source::InPlace, &order, Grain::spmm(n * size_of::<f32>()))
                .unwrap();
        let executor = Spmm::<F32, _>::new(&case.problem(WIDTHS[0]), a, layout);
        // Chunks have 2^13 nonzeros, so the long rows have 3 and 9 chunks.
        let bytes = 12 * n * size_of::<f32>() + case.panel_bytes();
        assert_eq!(executor.workspace_bytes(n), bytes);
        let scratch = Execution::new(bytes);
        let scalars = (scalar(&case.alpha), scalar(&case.beta));
        let b = case.b.describe();
        let mut serial = case.c.clone();
        let out = serial.describe();
        executor.run(&scratch.cx, false, scalars, [&b, &out, &out]).unwrap();
        case.compare(&serial);
        let same =
            |c: &Dense<f32>| c.values.iter().zip(&serial.values).all(|(a, b)| a.to_bits() == b.to_bits());
        for threads in [1, 2, 5] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let mut c = case.c.clone();
            let out = c.describe();
            pool.install(|| executor.run(&scratch.cx, true, scalars, [&b, &out, &out])).unwrap();
            assert!(same(&c), "{threads} threads");
        }
        assert!(same(&case.execute(&executor)));
    }
}

#[test]
fn workspace_is_checked_and_its_size_saturates() {
    let matrix = UnsortedMatrix::<f64>::random::<f64>(&mut Random::new(1), IndexBase::Zero, 4, &[70_000, 1]);
    let ops = (Operation::NonTranspose, Operation::NonTranspose);
    let mut case = Case::<F64>::new(&mut Random::new(2), &matrix, ops, 5, (Order::Row, Order::Row));
    let executor = case.executor(WIDTHS[0], Source::InPlace);
    assert_eq!(executor.workspace_bytes(0), 0);
    assert_eq!(executor.workspace_bytes(usize::MAX / 2), usize::MAX);
    let scratch = Execution::new(executor.workspace_bytes(5) - 1);
    let before = case.c.values.clone();
    let (alpha, beta) = (scalar(&case.alpha), scalar(&case.beta));
    let (b, c) = (case.b.describe(), case.c.describe());
    let error = executor.execute(&scratch.cx, alpha, &b, beta, &c).unwrap_err();
    assert_eq!(error.status, Status::InsufficientResources);
    for (alpha, beta, name) in [(Address::NULL, beta, "alpha"), (alpha, Address::NULL, "beta")] {
        let error = executor.execute(&scratch.cx, alpha, &b, beta, &c).unwrap_err();
        assert_eq!(error.status, Status::InvalidValue);
        assert!(error.message.starts_with(name), "{}", error.message);
    }
    assert_eq!(case.c.values, before);
}

#[test]
fn infinities_and_nans_follow_the_stored_entries() {
    let ops = (Operation::NonTranspose, Operation::NonTranspose);
    for (n, order) in [1, 2, 9, 40].into_iter().flat_map(|n| ORDERS.map(|order| (n, order))) {
        // The matrix has one column, and one entry, a stored 0, in row 1 of three.
        let mut matrix =
            UnsortedMatrix::<f64>::random::<f64>(&mut Random::new(1), IndexBase::Zero, 1, &[0, 1, 0]);
        matrix.values[0] = 0.0;
        let mut case = Case::<F64>::new(&mut Random::new(2), &matrix, ops, n, (order, order));
        let executor = case.executor(WIDTHS[0], Source::InPlace);
        // 0 · Inf is NaN where the entry is stored; NaN in C is not read.
        case.b.values.fill(f64::INFINITY);
        case.c.values.fill(f64::NAN);
        (case.alpha, case.beta) = (1.0, 0.0);
        let c = case.execute(&*executor);
        for j in 0..n {
            assert_eq!((c.values[c.at(0, j)], c.values[c.at(2, j)]), (0.0, 0.0));
            assert!(c.values[c.at(1, j)].is_nan());
        }
        // alpha = 0 reads neither A nor B; padding stays NaN.
        case.alpha = 0.0;
        let c = case.execute(&*executor);
        assert!(c.values.iter().enumerate().all(|(at, v)| if c.is_padding(at) {
            v.is_nan()
        } else {
            *v == 0.0
        }));
        case.c.values.fill(3.0);
        case.beta = 2.0;
        let c = case.execute(&*executor);
        assert!(c.values.iter().enumerate().all(|(at, v)| *v == if c.is_padding(at) { 3.0 } else { 6.0 }));
    }
}

#[test]
fn scaling_large_matrices_in_parallel_leaves_padding_alone() {
    let matrix = UnsortedMatrix::<f64>::random::<f64>(&mut Random::new(1), IndexBase::Zero, 3, &[1; 40_000]);
    let ops = (Operation::NonTranspose, Operation::NonTranspose);
    for order in ORDERS {
        let mut case = Case::<F64>::new(&mut Random::new(2), &matrix, ops, 3, (order, order));
        case.alpha = 0.0;
        let executor = case.executor(WIDTHS[0], Source::InPlace);
        let c = case.execute(&*executor);
        case.compare(&c);
    }
}

#[test]
fn empty_matrices_work() {
    for lengths in [&[][..], &[0, 0, 0]] {
        let matrix = UnsortedMatrix::<f64>::random::<f64>(&mut Random::new(1), IndexBase::One, 5, lengths);
        for (op, order) in OPS.into_iter().flat_map(|op| ORDERS.map(|order| (op, order))) {
            let mut case = Case::<F64>::new(
                &mut Random::new(2),
                &matrix,
                (op, Operation::NonTranspose),
                4,
                (order, order),
            );
            let executor = case.executor(WIDTHS[0], Source::Canonical);
            let c = case.execute(&*executor);
            case.compare(&c);
        }
    }
}

#[test]
fn new_values_are_used() {
    let mut random = Random::new(3);
    let first = UnsortedMatrix::<Complex64>::random::<Complex64>(
        &mut Random::new(9),
        IndexBase::One,
        11,
        &[3, 0, 8, 1],
    );
    let mut second = UnsortedMatrix::<Complex64>::random::<Complex64>(
        &mut Random::new(9),
        IndexBase::One,
        11,
        &[3, 0, 8, 1],
    );
    second.values = random.numbers(second.values.len());
    let orders = (Order::Row, Order::Col);
    for (source, op) in [(Source::InPlace, Operation::NonTranspose), (Source::Canonical, OPS[2])] {
        let ops = (op, Operation::ConjugateTranspose);
        let mut case = Case::<C64>::new(&mut random, &first, ops, 5, orders);
        for value_updates in [false, true] {
            let problem = SpmmProblem { value_updates, ..case.problem(WIDTHS[1]) };
            let mut executor = build(&context(), &problem, &Choice::new(Algorithm::Row, source)).unwrap();
            executor.update_values(&context(), Address::new(second.values.as_ptr())).unwrap();
            case.matrix = &second;
            let c = case.execute(&*executor);
            case.compare(&c);
            case.matrix = &first;
        }
    }
}

#[test]
fn tuning_times_an_execute() {
    use crate::backend::host::Host;
    let matrix = UnsortedMatrix::<Complex64>::random::<Complex64>(
        &mut Random::new(1),
        IndexBase::Zero,
        4,
        &[20_000, 1],
    );
    let ops = (Operation::NonTranspose, Operation::Transpose);
    for (n, order) in [0, 6].into_iter().flat_map(|n| ORDERS.map(|order| (n, order))) {
        let case = Case::<C64>::new(&mut Random::new(2), &matrix, ops, n, (order, order));
        let cx = context();
        let executor =
            build(&cx, &case.problem(WIDTHS[0]), &Choice::new(Algorithm::Row, Source::InPlace)).unwrap();
        let held = cx.allocator.live_bytes();
        assert!(Host.time_spmm(&cx, &case.problem(WIDTHS[0]), &*executor).unwrap() > 0.0);
        assert_eq!(cx.allocator.live_bytes(), held);
    }
}

fn windows() -> Choice {
    Choice::new(Algorithm::Window, Source::Canonical)
}

fn slices() -> Choice {
    Choice::new(Algorithm::SpmmSell, Source::Canonical)
}

/// Compares products with the layout of `choice` with a naive loop.
fn check_layout<C: Combo>(choice: &Choice)
where
    C::Acc: Number,
{
    let mut random = Random::new(8);
    let mut lengths = [3; 70];
    (lengths[4], lengths[20], lengths[69]) = (0, 40, 9);
    for (n, widths) in [0, 1, 3, 8, 33, 70].into_iter().zip(WIDTHS.into_iter().cycle()) {
        for (op, op_b) in OPS.into_iter().flat_map(|op| OPS.map(|op_b| (op, op_b))) {
            let base = if n % 2 == 0 { IndexBase::Zero } else { IndexBase::One };
            let matrix = UnsortedMatrix::<C::A>::random::<C::Acc>(&mut random, base, 31, &lengths);
            for orders in ORDERS.into_iter().flat_map(|b| ORDERS.map(|c| (b, c))) {
                let mut case = Case::<C>::new(&mut random, &matrix, (op, op_b), n, orders);
                for (alpha, beta) in [(case.alpha, case.beta), (C::Acc::ZERO, case.beta)] {
                    (case.alpha, case.beta) = (alpha, beta);
                    let executor = build(&context(), &case.problem(widths), choice).unwrap();
                    let c = case.execute(&*executor);
                    case.compare(&c);
                }
            }
        }
    }
}

#[test]
fn windows_agree_with_a_naive_loop() {
    check_layout::<F16>(&windows());
    check_layout::<F16F32>(&windows());
    check_layout::<Bf16>(&windows());
    check_layout::<Bf16F32>(&windows());
}

#[test]
fn slices_agree_with_a_naive_loop() {
    check_layout::<F64>(&slices());
    check_layout::<F32F64>(&slices());
    check_layout::<F16>(&slices());
    check_layout::<Bf16F32>(&slices());
    check_layout::<F32>(&slices());
}

#[test]
fn windows_multiply_what_is_stored() {
    let ops = (Operation::NonTranspose, Operation::NonTranspose);
    for (n, order) in [1, 9, 40].into_iter().flat_map(|n| ORDERS.map(|order| (n, order))) {
        // The matrix has one column, and one entry, a stored 0, in row 1 of three.
        let mut matrix =
            UnsortedMatrix::<half::f16>::random::<f32>(&mut Random::new(1), IndexBase::Zero, 1, &[0, 1, 0]);
        matrix.values[0] = half::f16::ZERO;
        let mut case = Case::<F16F32>::new(&mut Random::new(2), &matrix, ops, n, (order, order));
        let executor = build(&context(), &case.problem(WIDTHS[0]), &windows()).unwrap();
        assert_eq!(executor.layout().kind, crate::types::LayoutKind::Window);
        assert_eq!(executor.details(), "windows of 16 rows, 1.00 entries a column, tiles 0.4 % full");
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

/// Checks for the layout that `arrange` builds that results have the same bits on any number of threads, and
/// that new values are used.
fn check_threads_and_updates<C: Combo, L: SpmmProduct<C> + 'static>(
    lengths: &[usize],
    cols: usize,
    n: usize,
    arrange: impl Fn(&Context, &OpA) -> Result<L>,
) where
    C::Acc: Number,
{
    let mut random = Random::new(11);
    let matrix =
        || UnsortedMatrix::<C::A>::random::<C::Acc>(&mut Random::new(5), IndexBase::One, cols, lengths);
    let (first, mut second) = (matrix(), matrix());
    second.values = random.numbers(second.values.len());
    for op in [Operation::NonTranspose, Operation::Transpose] {
        let orders = (Order::Row, Order::Col);
        let mut case = Case::<C>::new(&mut random, &first, (op, Operation::NonTranspose), n, orders);
        for value_updates in [false, true] {
            let a = case.op_a(WIDTHS[0], value_updates);
            let layout = arrange(&context(), &a).unwrap();
            let mut executor = Spmm::<C, _>::new(&case.problem(WIDTHS[0]), a, layout);
            executor.update_values(&context(), Address::new(second.values.as_ptr())).unwrap();
            case.matrix = &second;
            let scalars = (scalar(&case.alpha), scalar(&case.beta));
            let b = case.b.describe();
            let mut serial = case.c.clone();
            let out = serial.describe();
            let scratch = Execution::new(executor.workspace_bytes(n));
            executor.run(&scratch.cx, false, scalars, [&b, &out, &out]).unwrap();
            case.compare(&serial);
            for threads in [1, 3] {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                let mut c = case.c.clone();
                let out = c.describe();
                pool.install(|| executor.run(&scratch.cx, true, scalars, [&b, &out, &out])).unwrap();
                let bytes = |c: &Dense<C::Y>| bytemuck::cast_slice::<_, u8>(&c.values).to_vec();
                assert!(bytes(&c) == bytes(&serial), "{threads} threads");
            }
            case.matrix = &first;
        }
    }
}

#[test]
fn windows_have_the_same_bits_on_any_number_of_threads_and_take_new_values() {
    let mut random = Random::new(12);
    let lengths: Vec<usize> = (0..3000).map(|_| random.below(30)).collect();
    check_threads_and_updates::<Bf16, _>(
        &lengths,
        500,
        13,
        window::arrange::<_, crate::format::window::DenseTiles>,
    );
}

#[test]
fn slices_have_the_same_bits_on_any_number_of_threads_and_take_new_values() {
    let mut random = Random::new(12);
    let mut lengths: Vec<usize> = (0..3000).map(|_| random.below(30)).collect();
    // This row is long enough to be divided into pieces.
    lengths[700] = 9000;
    check_threads_and_updates::<Bf16, _>(&lengths, 500, 13, Slices::arrange);
}

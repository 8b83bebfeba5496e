//! Tests of the vectors of `row`: every width of them, every block of columns, and stores past the caches.

use super::*;
use crate::backend::host::vector::Width;
use crate::memory::Buffer;

/// Lists the vectors that the processor has.
fn widths() -> Vec<Width> {
    let all = [
        Width::Arrays,
        #[cfg(target_arch = "x86_64")]
        Width::Ymm,
        #[cfg(avx512)]
        Width::Zmm,
    ];
    all.into_iter().filter(|width| *width <= Width::widest()).collect()
}

/// Compares products by all vectors with a naive loop, with numbers of columns that take every block.
fn check_widths<C: Combo>()
where
    C::Acc: Number,
{
    let mut random = Random::new(17);
    // Columns of blocks of one vector are checked 256 at a time.
    let lengths = [0, 1, 2, 3, 4, 9, 0, 40, 1, 33, 5, 2, 230, 2, 2, 7, 1, 300, 0, 3, 16_390];
    let (a_op, b_op) = (Operation::NonTranspose, Operation::ConjugateTranspose);
    // With 600 columns a row has several blocks of registers of AVX2.
    let columns = [1, 3, 4, 5, 12, 31, 63, 127, 260].into_iter().zip(WIDTHS.into_iter().cycle());
    for (n, indices) in columns.chain([(600, WIDTHS[0])]) {
        // The last row is divided into chunks; the naive loop is slow on it.
        let lengths = &lengths[..lengths.len() - usize::from(n > 12)];
        let matrix = UnsortedMatrix::<C::A>::random::<C::Acc>(&mut random, IndexBase::One, 50, lengths);
        for orders in ORDERS.into_iter().flat_map(|b| ORDERS.map(|c| (b, c))) {
            let mut case = Case::<C>::new(&mut random, &matrix, (a_op, b_op), n, orders);
            let betas = [C::Acc::ZERO, case.beta];
            for (width, beta) in widths().into_iter().flat_map(|width| betas.map(|beta| (width, beta))) {
                case.beta = beta;
                let c = case.product(width, indices);
                case.compare(&c);
            }
        }
    }
}

impl<C: Combo> Case<'_, C>
where
    C::Acc: Number,
{
    /// Computes the product with vectors of this width, on A in place.
    fn product(&mut self, width: Width, indices: (IndexType, IndexType)) -> Dense<C::Y> {
        let (a, order) = (self.op_a(indices, false), RowOrder::new(Reorder::None));
        let grain = Grain::spmm(self.n * size_of::<C::Acc>());
        let layout = Csr::<C::A>::build(&context(), &a, Source::InPlace, &order, grain).unwrap();
        let scratch = layout.scratch_of::<C>(&self.problem(indices), self.n);
        let execution = Execution::new((scratch[0] + scratch[1]) * size_of::<C::Acc>());
        let mut c = self.c.clone();
        let (b, out) = (self.b.describe(), c.describe());
        let scalars = (scalar(&self.alpha), scalar(&self.beta));
        let opened = open::<C>(&execution.cx, false, scalars, self.op_b, (&b, &out, &out), scratch);
        layout.multiply_by(width, false, &opened.unwrap().unwrap()).unwrap();
        c
    }
}

impl<V: Element + crate::format::narrowing::Narrow> Csr<V> {
    fn scratch_of<C: Combo<A = V>>(&self, problem: &SpmmProblem, n: usize) -> [usize; 2] {
        let b_by_rows = (problem.b_order == Order::Row) != problem.op_b.transposes();
        [SpmmProduct::<C>::sums(self, n), SpmmProduct::<C>::panel(self, b_by_rows, n)]
    }
}

#[test]
fn vectors_of_every_width_agree_with_a_naive_loop() {
    check_widths::<F64>();
    check_widths::<F32>();
    check_widths::<F32F64>();
}

#[test]
fn vectors_of_halves_and_arrays_of_complex_numbers_agree_with_a_naive_loop() {
    check_widths::<F16>();
    check_widths::<Bf16F32>();
    check_widths::<C32>();
    check_widths::<C64>();
}

/// A C of more than 8 MiB is written past the caches if its rows are whole cache lines; the bits are those of
/// one that is written through them, and padding stays as it was.
#[test]
fn stores_past_the_caches_write_the_same_bits() {
    let (n, rows) = (36, 36_000);
    let mut random = Random::new(19);
    let lengths: Vec<usize> = (0..rows).map(|_| random.below(4)).collect();
    let matrix = UnsortedMatrix::<f64>::random::<f64>(&mut random, IndexBase::Zero, 90, &lengths);
    let ops = (Operation::NonTranspose, Operation::NonTranspose);
    for b_order in ORDERS {
        let mut case = Case::<F64>::new(&mut random, &matrix, ops, n, (b_order, Order::Row));
        case.beta = 0.0;
        let executor = case.executor(WIDTHS[0], Source::InPlace);
        // Two elements of padding: rows are no whole lines.
        let c = case.execute(&*executor);
        case.compare(&c);
        let execution = Execution::new(executor.workspace_bytes(n));
        let ld = 40;
        let mut lines = Buffer::<f64>::zeroed(&context().allocator, rows * ld).unwrap();
        lines.fill(5.0);
        assert!(lines.address().value() % 64 == 0 && rows * ld * size_of::<f64>() >= 8 << 20);
        let out = DenseMatrix { ld: ld as i64, values: lines.address(), ..case.c.clone().describe() };
        let (b, scalars) = (case.b.describe(), (scalar(&case.alpha), scalar(&case.beta)));
        executor.execute(&execution.cx, scalars.0, &b, scalars.1, &out).unwrap();
        for (row, line) in lines.chunks_exact(ld).enumerate() {
            let through = &c.values[c.at(row, 0)..][..n];
            assert!(line[..n].iter().zip(through).all(|(past, c)| past.to_bits() == c.to_bits()), "{row}");
            assert!(line[n..].iter().all(|padding| *padding == 5.0));
        }
    }
}

/// A B of 4 MiB, whose rows are prefetched with AVX2, rows of C by vectors of every width, and rows that are divided.
#[test]
fn large_operands_and_divided_rows_agree_with_a_naive_loop() {
    let mut random = Random::new(29);
    let mut lengths = vec![11; 30];
    lengths[7] = 16_500;
    for (n, cols) in [(72, 9_000), (130, 5_000)] {
        let matrix = UnsortedMatrix::<f64>::random::<f64>(&mut random, IndexBase::One, cols, &lengths);
        let ops = (Operation::NonTranspose, Operation::NonTranspose);
        let mut case = Case::<F64>::new(&mut random, &matrix, ops, n, (Order::Row, Order::Row));
        let betas = [0.0, case.beta];
        for (width, (beta, indices)) in widths()
            .into_iter()
            .flat_map(|width| betas.into_iter().zip(WIDTHS).map(move |both| (width, both)))
        {
            case.beta = beta;
            let c = case.product(width, indices);
            case.compare(&c);
        }
    }
}

/// Row offsets and columns that change after analysis are noticed before anything outside of the arrays is read, in
/// blocks of one, two and more vectors.
#[test]
fn indices_changed_after_analysis_are_refused() {
    use crate::matrix::SparseArrays;
    let (rows, cols) = (300, 90);
    let mut random = Random::new(23);
    let matrix = UnsortedMatrix::<f32>::random::<f32>(&mut random, IndexBase::One, cols, &vec![7; rows]);
    let ops = (Operation::NonTranspose, Operation::NonTranspose);
    for n in [8, 16, 32, 64, 128] {
        let mut case = Case::<F32>::new(&mut random, &matrix, ops, n, (Order::Row, Order::Row));
        case.beta = 0.0;
        let executor = case.executor(WIDTHS[0], Source::InPlace);
        let SparseArrays::Csr(arrays) = case.problem(WIDTHS[0]).a.arrays else { panic!("it is CSR") };
        let (offsets, columns) = (arrays.offsets.as_mut_ptr::<i32>(), arrays.indices.as_mut_ptr::<i32>());
        let before = case.execute(&*executor);
        let mut changed = |array: *mut i32, at: usize, value: i32| {
            // SAFETY: the array has a place `at`, and nothing reads it while no product runs.
            let kept = unsafe { array.add(at).replace(value) };
            let run = std::panic::AssertUnwindSafe(|| case.execute(&*executor));
            assert!(std::panic::catch_unwind(run).is_err(), "n {n}, {value} in place of {kept} at {at}");
            // SAFETY: as above.
            unsafe { array.add(at).write(kept) };
        };
        for at in [0, 1, 6, 255, 256, 300, 1000, 7 * rows - 1] {
            for column in [0, cols as i32 + 1, -1, i32::MIN, i32::MAX] {
                changed(columns, at, column);
            }
        }
        for at in [1, 150, 299] {
            for offset in [-5, i32::MIN, 7 * rows as i32 + 2, i32::MAX] {
                changed(offsets, at, offset);
            }
        }
        changed(offsets, rows, 7 * rows as i32 + 2);
        assert_eq!(before.values, case.execute(&*executor).values);
    }
}

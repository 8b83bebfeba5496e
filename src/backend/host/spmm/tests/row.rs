//! Tests of the vectors of `row`: every width of them, every block of columns, and stores past the caches.

use super::*;
use crate::backend::host::operand::Ints;
use crate::backend::host::vector::Width;
use crate::matrix::SparseArrays;
use crate::memory::Buffer;
use crate::select::spmm::own_columns::MOST_ROW_BYTES;

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
                let of_own_columns = case.product_of_own_columns(width, indices);
                let (c, own) = [&c, &of_own_columns].map(|c| bytemuck::cast_slice::<_, u8>(&c.values)).into();
                assert!(c == own, "n {n}, {width:?}, {beta:?}");
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
        let mut c = self.c.clone();
        let (b, out) = (self.b.describe(), c.describe());
        self.product_of(width, indices, &b, &out);
        c
    }

    /// Computes the product of columns of the plan's own, with vectors of this width.
    fn product_of_own_columns(&mut self, width: Width, indices: (IndexType, IndexType)) -> Dense<C::Y> {
        let mut c = self.c.clone();
        let (b, out) = (self.b.describe(), c.describe());
        self.product_of_own_columns_in(width, indices, &b, &out);
        c
    }

    /// Computes that product with these matrices in the place of the case's B and C. Where it is to read no others, the
    /// user's columns are wrong meanwhile.
    fn product_of_own_columns_in(
        &self,
        width: Width,
        indices: (IndexType, IndexType),
        b: &DenseMatrix,
        out: &DenseMatrix,
    ) {
        let layout = self.rows_in_place(indices).keep_columns(&context()).unwrap();
        assert_eq!(layout.own_columns.is_some(), indices.1 == IndexType::I32);
        let of_sums = C::TYPES.compute.scalar();
        let are_read = indices == (IndexType::I32, IndexType::I32)
            && (C::TYPES.x, C::TYPES.y) == (of_sums, of_sums)
            && !of_sums.is_complex()
            && self.beta == C::Acc::ZERO
            && (cfg!(not(target_arch = "x86_64")) || width != Width::Arrays)
            && out.order == Order::Row
            && self.n * size_of::<C::Acc>() <= MOST_ROW_BYTES;
        let SparseArrays::Csr(arrays) = self.op_a(indices, false).a.arrays else { panic!("it is CSR") };
        let (kept, wrong) = {
            let (rows, _) = layout.operand.rows("A").unwrap();
            let Ints::I32(columns) = rows.indices else {
                return self.multiply(&layout, width, indices, b, out);
            };
            let mut wrong = columns.to_vec();
            // Rows that are divided have the user's.
            for row in
                (0..rows.rows).map(|row| rows.range(row)).filter(|row| are_read && row.len() <= 1 << 14)
            {
                wrong[row].fill(i32::MIN);
            }
            (columns.to_vec(), wrong)
        };
        let fill = |columns: &[i32]| {
            let to = arrays.indices.as_mut_ptr::<i32>();
            // SAFETY: the case's matrix has as many columns, and nothing reads them meanwhile.
            unsafe { std::ptr::copy_nonoverlapping(columns.as_ptr(), to, columns.len()) };
        };
        fill(&wrong);
        self.multiply(&layout, width, indices, b, out);
        fill(&kept);
    }

    /// The product of the user's columns with these matrices in the place of the case's B and C.
    fn product_of(&self, width: Width, indices: (IndexType, IndexType), b: &DenseMatrix, out: &DenseMatrix) {
        self.multiply(&self.rows_in_place(indices), width, indices, b, out);
    }

    fn rows_in_place(&self, indices: (IndexType, IndexType)) -> Csr<C::A> {
        let (a, order) = (self.op_a(indices, false), RowOrder::new(Reorder::None));
        let grain = Grain::spmm(self.n * size_of::<C::Acc>());
        Csr::<C::A>::build(&context(), &a, Source::InPlace, &order, grain).unwrap()
    }

    fn multiply(
        &self,
        layout: &Csr<C::A>,
        width: Width,
        indices: (IndexType, IndexType),
        b: &DenseMatrix,
        out: &DenseMatrix,
    ) {
        let scratch = layout.scratch_of::<C>(&self.problem(indices), self.n);
        let execution = Execution::new((scratch[0] + scratch[1]) * size_of::<C::Acc>());
        let scalars = (scalar(&self.alpha), scalar(&self.beta));
        let opened = open::<C>(&execution.cx, false, scalars, self.op_b, (b, out, out), scratch);
        layout.multiply_by(width, false, &opened.unwrap().unwrap()).unwrap();
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

/// Compares products whose C has no gaps between its rows or columns with a naive loop; C may have one row.
fn check_without_gaps<C: Combo>()
where
    C::Acc: Number,
{
    let mut random = Random::new(43);
    let ops = (Operation::NonTranspose, Operation::NonTranspose);
    let lengths = [5, 0, 1, 9, 2, 40, 3, 3, 7, 1, 4, 30, 2, 0, 6, 11, 3, 2, 8];
    for (rows, n) in
        [1, 3, 4, 8, 9, 16, 40].into_iter().flat_map(|n| [1, lengths.len()].map(|rows| (rows, n)))
    {
        let matrix =
            UnsortedMatrix::<C::A>::random::<C::Acc>(&mut random, IndexBase::One, 50, &lengths[..rows]);
        for orders in ORDERS.into_iter().flat_map(|b| ORDERS.map(|c| (b, c))) {
            let mut case = Case::<C>::new(&mut random, &matrix, ops, n, orders);
            case.c = Dense::random::<C::Acc>(&mut random, rows, n, orders.1, 0);
            let betas = [C::Acc::ZERO, case.beta];
            for (width, beta) in widths().into_iter().flat_map(|width| betas.map(|beta| (width, beta))) {
                case.beta = beta;
                let c = case.product(width, WIDTHS[0]);
                case.compare(&c);
            }
        }
    }
}

#[test]
fn rows_and_columns_without_gaps_agree_with_a_naive_loop() {
    check_without_gaps::<F64>();
    check_without_gaps::<F32F64>();
    check_without_gaps::<F16>();
    check_without_gaps::<Bf16>();
    check_without_gaps::<C32>();
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

/// Wherever B and C begin, results have the same bits, and what stands beside their rows is neither used nor written:
/// where all rows of B begin behind a cache line, vectors are whole lines of it.
fn check_offsets<T: Number + From<f32>, C: Combo<X = T, Y = T, Acc = T>>() {
    let mut random = Random::new(31);
    let lanes = 64 / size_of::<T>();
    let columns = [
        1,
        3,
        4,
        8,
        lanes,
        lanes + 1,
        2 * lanes - 1,
        2 * lanes,
        3 * lanes,
        4 * lanes - 3,
        4 * lanes,
        7 * lanes,
    ];
    let more = [8 * lanes, 9 * lanes - 1, 13 * lanes, 16 * lanes, 17 * lanes, 18 * lanes + 5, 24 * lanes];
    let lengths = [0, 1, 2, 3, 4, 9, 0, 40, 5, 1, 16_390];
    for (n, indices) in columns.into_iter().chain(more).zip(WIDTHS.into_iter().cycle()) {
        // The last row is divided into chunks; the naive loop is slow on it.
        let lengths = &lengths[..lengths.len() - usize::from(n > 3 * lanes)];
        let matrix = UnsortedMatrix::<C::A>::random::<T>(&mut random, IndexBase::One, 50, lengths);
        let ops = (Operation::NonTranspose, Operation::NonTranspose);
        let mut case = Case::<C>::new(&mut random, &matrix, ops, n, (Order::Row, Order::Row));
        let ld = n.next_multiple_of(lanes);
        case.b = case.b.with_ld(ld, f32::NAN.into());
        case.c = case.c.with_ld(ld, 5.0.into());
        let betas = [T::ZERO, case.beta];
        for (width, beta) in widths().into_iter().flat_map(|width| betas.map(|beta| (width, beta))) {
            case.beta = beta;
            let first = case.product(width, indices);
            case.compare(&first);
            for (b_offset, c_offset) in [(0, 0), (2, 2), (2, 0), (1, lanes - 1), (lanes - 1, lanes - 1)] {
                let room = |len: usize| Buffer::<T>::zeroed(&context().allocator, len + lanes).unwrap();
                let (mut b, mut c) = (room(case.b.values.len()), room(case.c.values.len()));
                b.fill(f32::NAN.into());
                c.fill(5.0.into());
                assert!(b.address().value() % 64 == 0 && c.address().value() % 64 == 0);
                b[b_offset..][..case.b.values.len()].copy_from_slice(&case.b.values);
                c[c_offset..][..case.c.values.len()].copy_from_slice(&case.c.values);
                let of_b =
                    DenseMatrix { values: Address::new(b[b_offset..].as_mut_ptr()), ..case.b.describe() };
                let of_c =
                    DenseMatrix { values: Address::new(c[c_offset..].as_mut_ptr()), ..case.c.describe() };
                for is_own in [false, true] {
                    match is_own {
                        false => case.product_of(width, indices, &of_b, &of_c),
                        true => case.product_of_own_columns_in(width, indices, &of_b, &of_c),
                    }
                    for (at, c) in c.iter().enumerate() {
                        let expected = at.checked_sub(c_offset).and_then(|at| first.values.get(at));
                        let expected = *expected.unwrap_or(&5.0.into());
                        let what = format!("n {n}, {width:?}, {b_offset}, {c_offset}, {is_own}: {at}");
                        assert!(c.get() == expected.get(), "{what}");
                    }
                    c.fill(5.0.into());
                    c[c_offset..][..case.c.values.len()].copy_from_slice(&case.c.values);
                }
            }
        }
    }
}

impl<V: Element> Dense<V> {
    /// Returns the matrix by rows with so many elements from one row to the next, the last of which are padding.
    fn with_ld(&self, ld: usize, padding: V) -> Self {
        let mut values = vec![padding; self.rows * ld];
        for (row, to) in values.chunks_exact_mut(ld).enumerate() {
            to[..self.cols].copy_from_slice(&self.values[self.at(row, 0)..][..self.cols]);
        }
        Dense { ld, values, ..self.clone() }
    }
}

#[test]
fn operands_beside_cache_lines_give_the_same_bits() {
    check_offsets::<f64, F64>();
    check_offsets::<f32, F32>();
    check_offsets::<f64, F32F64>();
}

/// A C of more than 8 MiB whose rows begin behind a cache line, as those of B do, is written past the caches but for the
/// first and the last line of a row.
#[test]
fn stores_past_the_caches_beside_a_line_write_the_same_bits() {
    let (rows, ld, offset) = (8_300, 136, 2);
    let mut random = Random::new(37);
    let lengths: Vec<usize> = (0..rows).map(|_| random.below(4)).collect();
    let matrix = UnsortedMatrix::<f64>::random::<f64>(&mut random, IndexBase::Zero, 90, &lengths);
    let ops = (Operation::NonTranspose, Operation::NonTranspose);
    for n in [128, 131] {
        let mut case = Case::<F64>::new(&mut random, &matrix, ops, n, (Order::Row, Order::Row));
        case.beta = 0.0;
        case.b = case.b.with_ld(ld, f64::NAN);
        case.c = case.c.with_ld(ld, 5.0);
        assert!(size_of_val(&case.c.values[..]) >= 8 << 20);
        let first = case.product(Width::widest(), WIDTHS[0]);
        case.compare(&first);
        let room = |len: usize| Buffer::<f64>::zeroed(&context().allocator, len + ld).unwrap();
        let (mut b, mut c) = (room(case.b.values.len()), room(case.c.values.len()));
        b[offset..][..case.b.values.len()].copy_from_slice(&case.b.values);
        c.fill(5.0);
        assert!(b.address().value() % 64 == 0 && c.address().value() % 64 == 0);
        let of_b = DenseMatrix { values: Address::new(b[offset..].as_mut_ptr()), ..case.b.describe() };
        let of_c = DenseMatrix { values: Address::new(c[offset..].as_mut_ptr()), ..case.c.describe() };
        case.product_of(Width::widest(), WIDTHS[0], &of_b, &of_c);
        let written = &c[offset..][..first.values.len()];
        assert!(written.iter().zip(&first.values).all(|(past, c)| past.to_bits() == c.to_bits()), "n {n}");
        assert!(c[..offset].iter().chain(&c[offset + first.values.len()..]).all(|c| *c == 5.0));
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

/// Products of the plan's own columns do not read the user's, and check row offsets as others do. With more than 2^16
/// columns those of the plan have 32 bits.
#[test]
fn own_columns_are_those_of_analysis() {
    let rows = 300;
    let mut random = Random::new(41);
    let ops = (Operation::NonTranspose, Operation::NonTranspose);
    for cols in [90, 1 << 16, (1 << 16) + 1] {
        let matrix = UnsortedMatrix::<f32>::random::<f32>(&mut random, IndexBase::One, cols, &vec![7; rows]);
        for n in [1, 8, 16, 32, 64] {
            let mut case = Case::<F32>::new(&mut random, &matrix, ops, n, (Order::Row, Order::Row));
            case.beta = 0.0;
            let problem = case.problem(WIDTHS[0]);
            let choice = Choice { keeps_columns: true, ..Choice::new(Algorithm::Row, Source::InPlace) };
            let executor = build(&context(), &problem, &choice).unwrap();
            let before = case.execute(&*executor);
            case.compare(&before);
            let SparseArrays::Csr(arrays) = problem.a.arrays else { panic!("it is CSR") };
            let (offsets, columns) = (arrays.offsets.as_mut_ptr::<i32>(), arrays.indices.as_mut_ptr::<i32>());
            for column in [0, 1, cols as i32, cols as i32 + 1, -1, i32::MIN, i32::MAX] {
                // SAFETY: the array has the place, and nothing reads it while no product runs.
                let kept = unsafe { columns.add(1000).replace(column) };
                assert_eq!(before.values, case.execute(&*executor).values, "{cols} columns, n {n}, {column}");
                // SAFETY: as above.
                unsafe { columns.add(1000).write(kept) };
            }
            for (at, offset) in [(1, -5), (150, i32::MIN), (299, i32::MAX), (rows, 7 * rows as i32 + 2)] {
                // SAFETY: as above.
                let kept = unsafe { offsets.add(at).replace(offset) };
                let run = std::panic::AssertUnwindSafe(|| case.execute(&*executor));
                assert!(std::panic::catch_unwind(run).is_err(), "n {n}, {offset} in place of {kept} at {at}");
                // SAFETY: as above.
                unsafe { offsets.add(at).write(kept) };
            }
            // A product that adds to C reads the user's columns, and checks them.
            case.beta = 0.5;
            // SAFETY: as above.
            let kept = unsafe { columns.add(1000).replace(-1) };
            let run = std::panic::AssertUnwindSafe(|| case.execute(&*executor));
            assert!(std::panic::catch_unwind(run).is_err(), "n {n}, beta");
            // SAFETY: as above.
            unsafe { columns.add(1000).write(kept) };
            let sum = case.execute(&*executor);
            case.compare(&sum);
        }
    }
}

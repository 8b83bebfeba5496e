//! Tests of SpMV on the host against a naive loop over the stored entries.

use num_complex::Complex64;

use super::*;
use crate::algorithm::{Algorithm, TABLE};
use crate::backend::host::slices::Slices;
use crate::backend::host::testing::{
    choice, context, scalar, tolerance, value, Execution, Number, Numbers, UnsortedMatrix, WIDTHS,
};
use crate::error::Status;
use crate::select::{RowOrder, Source};
use crate::support::{Bf16, Bf16F32, C32, C64, F16, F16F32, F32, F32F64, F64};
use crate::types::{Element, IndexBase, IndexType, OpKind, Operation};
use testkit::Random;

const OPS: [Operation; 3] = [Operation::NonTranspose, Operation::Transpose, Operation::ConjugateTranspose];
const SHORT_ROWS: [usize; 12] = [0, 1, 2, 3, 4, 5, 7, 8, 9, 33, 0, 100];

pub(super) fn problem<C: Combo>(
    matrix: &UnsortedMatrix<C::A>,
    op: Operation,
    widths: (IndexType, IndexType),
    value_updates: bool,
) -> SpmvProblem {
    SpmvProblem { op, a: matrix.describe(widths), types: C::TYPES, value_updates }
}

pub(super) fn op_a<V: Element>(
    matrix: &UnsortedMatrix<V>,
    op: Operation,
    widths: (IndexType, IndexType),
    keep: bool,
) -> OpA {
    OpA { a: matrix.describe(widths), op, keep }
}

/// Makes the executor of `csr` with rows in their own order, from `source`.
fn csr<C: Combo>(
    matrix: &UnsortedMatrix<C::A>,
    source: Source,
    widths: (IndexType, IndexType),
) -> Spmv<C, Csr<C::A>> {
    let a = op_a(matrix, Operation::NonTranspose, widths, false);
    let order = RowOrder::new(Reorder::None);
    Spmv::new(a, Csr::build(&context(), &a, source, &order, Grain::SPMV).unwrap())
}

pub(super) fn vector<V: Element>(values: &[V]) -> DenseVector {
    DenseVector {
        len: values.len() as i64,
        values: Address::new(values.as_ptr()),
        value_type: V::TYPE,
        writable: true,
    }
}

/// Describes a vector that is written through.
pub(super) fn output<V: Element>(values: &mut [V]) -> DenseVector {
    DenseVector { values: Address::new(values.as_mut_ptr()), ..vector(values) }
}

/// Vectors x, y before and y after the product.
type Vectors<'a, C> = (&'a [<C as Combo>::X], &'a [<C as Combo>::Y], &'a [<C as Combo>::Y]);

/// Compares y = alpha · op(A) · x + beta · y0 with a naive loop.
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
        let before = beta * value::<C::Acc, _>(y0[row]);
        let exact = alpha * sum + before;
        let error = (value::<C::Acc, _>(y[row]) - exact).norm();
        let allowed = tolerance::<C>(terms, alpha.norm() * absolute + before.norm(), exact);
        assert!(error <= allowed, "{} row {row}: error {error}, allowed {allowed}", C::TYPES.describe());
    }
}

/// Choice of an algorithm on a source.
fn algorithm(source: Source, algorithm: Algorithm) -> Choice {
    Choice::new(algorithm, source)
}

/// Algorithms that run on a copy in a layout of their own.
fn converted_algorithms() -> impl Iterator<Item = Algorithm> {
    TABLE.iter().filter(|row| row.op == OpKind::Spmv && row.is_converted).map(|row| row.algorithm)
}

fn check_combo<C: Combo>()
where
    C::Acc: Number,
{
    let mut random = Random::new(7);
    let scalars = [(1.0, 0.0), (-0.7, 0.0), (1.3, 1.0), (0.9, -1.1), (0.0, 0.6), (0.0, 0.0)];
    for (base, widths) in [IndexBase::Zero, IndexBase::One].into_iter().flat_map(|b| WIDTHS.map(|w| (b, w))) {
        let matrix = UnsortedMatrix::<C::A>::random::<C::Acc>(&mut random, base, 23, &SHORT_ROWS);
        let copies = [Algorithm::Csr].into_iter().chain(converted_algorithms());
        let copies = copies.flat_map(|kind| OPS.map(|op| (algorithm(Source::Canonical, kind), op)));
        let in_place = (choice(Source::InPlace), Operation::NonTranspose);
        for (choice, op) in copies.chain([in_place]) {
            let problem = problem::<C>(&matrix, op, widths, false);
            let executor = build(&context(), &problem, &choice).unwrap();
            assert_eq!(executor.workspace_bytes(1), 0);
            assert_eq!(executor.layout().in_place, choice.a == Source::InPlace);
            let (rows, cols) = op.shape(matrix.rows as i64, matrix.cols as i64);
            let (x, y0) = (random.numbers(cols as usize), random.numbers(rows as usize));
            for (alpha, beta) in scalars {
                let number = |re: f64| C::Acc::new(Complex64::new(re, 0.3 * re));
                let (alpha, beta) = (number(alpha), number(beta));
                let mut y = y0.clone();
                let (scratch, out) = (Execution::new(0), output(&mut y));
                executor.execute(&scratch.cx, scalar(&alpha), &vector(&x), scalar(&beta), &out).unwrap();
                compare::<C>(&matrix, op, (alpha, beta), (&x, &y0, &y));
            }
        }
    }
}

#[test]
fn every_combination_agrees_with_a_naive_loop() {
    check_combo::<F64>();
    check_combo::<F32>();
    check_combo::<F32F64>();
    check_combo::<F16>();
    check_combo::<F16F32>();
    check_combo::<Bf16>();
    check_combo::<Bf16F32>();
    check_combo::<C32>();
    check_combo::<C64>();
}

/// Bytes of y, for comparisons.
pub(super) fn bits<V: Element>(y: &[V]) -> &[u8] {
    bytemuck::cast_slice(y)
}

/// Asserts that y agrees with a naive loop and has the same bits on one thread, on pools of several, and by
/// `execute`.
fn same_on_any_number_of_threads<C: Combo>(
    matrix: &UnsortedMatrix<C::A>,
    random: &mut Random,
    executor: &SpmvExecutor,
    run: impl Fn(&Context, bool, (Address, Address), &DenseVector, &DenseVector) -> Result<()> + Sync,
) where
    C::Acc: Number,
{
    let scratch = Execution::new(executor.workspace_bytes(1));
    let (x, y0) = (random.numbers(matrix.cols), random.numbers(matrix.rows));
    let (alpha, beta): (C::Acc, C::Acc) = (random.number(), random.number());
    let (cx, scalars) = (&scratch.cx, (scalar(&alpha), scalar(&beta)));
    let mut serial = y0.clone();
    run(cx, false, scalars, &vector(&x), &output(&mut serial)).unwrap();
    compare::<C>(matrix, Operation::NonTranspose, (alpha, beta), (&x, &y0, &serial));
    for threads in [1, 2, 5] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let mut y = y0.clone();
        let out = output(&mut y);
        pool.install(|| run(cx, true, scalars, &vector(&x), &out)).unwrap();
        assert!(bits(&y) == bits(&serial), "{threads} threads");
    }
    let mut y = y0.clone();
    executor.execute(cx, scalars.0, &vector(&x), scalars.1, &output(&mut y)).unwrap();
    assert!(bits(&y) == bits(&serial));
}

/// Checks the layout that `arrange` makes like [`same_on_any_number_of_threads`], and returns its executor.
fn check_converted<C: Combo, L: SpmvProduct<C> + 'static>(
    matrix: &UnsortedMatrix<C::A>,
    random: &mut Random,
    arrange: impl Fn(&Context, &OpA) -> Result<L>,
) -> Spmv<C, L>
where
    C::Acc: Number,
{
    let a = op_a(matrix, Operation::NonTranspose, WIDTHS[1], false);
    let executor = Spmv::<C, L>::new(a, arrange(&context(), &a).unwrap());
    same_on_any_number_of_threads::<C>(matrix, random, &executor, |cx, parallel, scalars, x, y| {
        executor.run(cx, parallel, scalars, [x, y, y])
    });
    executor
}

#[test]
fn long_rows_give_the_same_bits_on_any_number_of_threads() {
    let mut random = Random::new(11);
    let lengths = [3, (1 << 16) + 1, 0, 1 << 16, 5, 200_000, 1];
    let matrix = UnsortedMatrix::<f64>::random::<f64>(&mut random, IndexBase::One, 1000, &lengths);
    for source in [Source::InPlace, Source::Canonical] {
        let executor = csr::<F64>(&matrix, source, WIDTHS[1]);
        // Chunks have 2^15 nonzeros: the long rows have 3 and 7 of them.
        assert_eq!(executor.workspace_bytes(1), 10 * size_of::<f64>());
        same_on_any_number_of_threads::<F64>(
            &matrix,
            &mut random,
            &executor,
            |cx, parallel, scalars, x, y| executor.run(cx, parallel, scalars, [x, y, y]),
        );
    }
}

/// Lengths of rows of all kinds: even slices, runs, tails, empty rows, wide spans, long rows.
pub(super) fn rows_of_all_kinds() -> (Vec<usize>, usize) {
    let mut random = Random::new(19);
    let mut lengths = vec![5; 100];
    lengths.extend((0..9000).map(|_| random.below(30) * random.below(3)));
    lengths.extend([20_000, 0, 9000, 300, 8192, 8193]);
    lengths.extend((0..501).map(|_| 1 + random.below(2)));
    (lengths, 200_000)
}

fn check_slices<C: Combo>()
where
    C::Acc: Number,
{
    let (lengths, wide) = rows_of_all_kinds();
    for cols in [wide, 40_000, 9] {
        let mut random = Random::new(23);
        let mut matrix =
            UnsortedMatrix::<C::A>::random::<C::Acc>(&mut random, IndexBase::One, cols, &lengths);
        // The first rows form adjacent diagonals.
        if cols > 1000 {
            for at in 0..500 {
                matrix.set_column(at, at / 5 + at % 5 * 40);
            }
        }
        check_converted::<C, _>(&matrix, &mut random, Slices::<C::A>::arrange);
    }
}

#[test]
fn slices_give_the_same_bits_on_any_number_of_threads() {
    check_slices::<F64>();
    check_slices::<F32>();
    check_slices::<F32F64>();
    check_slices::<F16F32>();
    check_slices::<Bf16>();
    check_slices::<C32>();
}

fn check_quads<C: Combo>()
where
    C::Acc: Number,
{
    let (mut lengths, wide) = rows_of_all_kinds();
    lengths.iter_mut().for_each(|length| *length = (*length).min(4096));
    for cols in [wide, 40_000, 9] {
        let mut random = Random::new(31);
        let matrix = UnsortedMatrix::<C::A>::random::<C::Acc>(&mut random, IndexBase::One, cols, &lengths);
        check_converted::<C, _>(&matrix, &mut random, |cx, a| quads::arrange(cx, a, usize::MAX));
    }
}

#[test]
fn quads_give_the_same_bits_on_any_number_of_threads() {
    check_quads::<F64>();
    check_quads::<F32>();
    check_quads::<F32F64>();
    check_quads::<C32>();
}

#[test]
fn blocks_give_the_same_bits_on_any_number_of_threads() {
    let mut random = Random::new(29);
    // Nearly every entry of the long row is alone in its block, which makes more than 2^15 blocks.
    let lengths: Vec<_> = (0..3000).map(|row| if row == 77 { 40_000 } else { random.below(40) }).collect();
    // Entries far from each other, and rows that fill most of a few columns.
    for (cols, most, parts, rows) in [(1 << 20, usize::MAX, 2, 4), (40, 400, 0, 8)] {
        let lengths: Vec<_> = lengths.iter().map(|&length| length.min(most)).collect();
        let matrix = UnsortedMatrix::<f32>::random::<f32>(&mut random, IndexBase::Zero, cols, &lengths);
        let executor = check_converted::<F32, _>(&matrix, &mut random, mask_block::arrange);
        assert_eq!(executor.details(), format!("blocks of {rows} × 4"));
        // One sum for each row of a piece.
        assert_eq!(executor.workspace_bytes(1), parts * rows * size_of::<f32>());
    }
}

fn check_tiles<C: Combo>()
where
    C::Acc: Number,
{
    let (lengths, wide) = rows_of_all_kinds();
    for cols in [wide, 40_000, 9] {
        let mut random = Random::new(29);
        let matrix = UnsortedMatrix::<C::A>::random::<C::Acc>(&mut random, IndexBase::One, cols, &lengths);
        let executor = check_converted::<C, _>(&matrix, &mut random, stream::arrange);
        assert!(executor.workspace_bytes(1) > 20 * size_of::<C::Acc>());
    }
}

fn check_classes<C: Combo>()
where
    C::Acc: Number,
{
    let mut lengths = rows_of_all_kinds().0;
    lengths.extend((0..200).map(|row| [1, 3, 3, 4, 1, 2][row % 6]));
    let mut random = Random::new(29);
    let matrix = UnsortedMatrix::<C::A>::random::<C::Acc>(&mut random, IndexBase::One, 40_000, &lengths);
    let executor = check_converted::<C, _>(&matrix, &mut random, dasp::arrange);
    // The long rows have 20,000, 9000, 8192 and 8193 entries, in tasks of at most 1024.
    assert_eq!(executor.workspace_bytes(1), (20 + 9 + 8 + 9) * size_of::<C::Acc>());
    assert!(executor.details().starts_with("rows: 5 long, "));
}

#[test]
fn tiles_give_the_same_bits_on_any_number_of_threads() {
    check_tiles::<F64>();
    check_tiles::<F32>();
    check_tiles::<F16F32>();
    check_tiles::<C64>();
}

#[test]
fn classes_of_rows_give_the_same_bits_on_any_number_of_threads() {
    check_classes::<F64>();
    check_classes::<F32F64>();
    check_classes::<F16F32>();
    check_classes::<Bf16>();
    check_classes::<C32>();
}

/// Tests padding, where short rows share a slice with long ones: elements of x in the columns of padding
/// affect only the rows that store them.
#[test]
fn padding_brings_nothing_into_y() {
    fn check_algorithm<C: Combo>(kind: Algorithm)
    where
        C::Acc: Number,
    {
        let lengths = [9, 7, 6, 6, 3, 1, 0, 2, 1];
        let mut matrix =
            UnsortedMatrix::<C::A>::random::<C::Acc>(&mut Random::new(2), IndexBase::Zero, 20, &lengths);
        for at in 0..matrix.entries.len() {
            let row = matrix.entries[at].0;
            matrix.set_column(at, row);
        }
        let problem = problem::<C>(&matrix, Operation::NonTranspose, WIDTHS[0], false);
        let executor = build(&context(), &problem, &algorithm(Source::Canonical, kind)).unwrap();
        assert!(executor.layout().fill > 1.0);
        let (one, zero) = (C::Acc::ONE, C::Acc::ZERO);
        for poison in [f64::INFINITY, f64::NAN] {
            for bad in 0..lengths.len() {
                let mut x = vec![C::X::round(one); 20];
                x[bad] = C::X::round(C::Acc::new(Complex64::new(poison, 0.0)));
                let mut y = vec![C::Y::round(C::Acc::new(Complex64::new(f64::NAN, 0.0))); lengths.len()];
                let (cx, out) = (Execution::new(0), output(&mut y));
                executor.execute(&cx.cx, scalar(&one), &vector(&x), scalar(&zero), &out).unwrap();
                for (row, &y) in y.iter().enumerate() {
                    let finite = value::<C::Acc, _>(y).is_finite();
                    assert_eq!(finite, row != bad || lengths[row] == 0, "row {row}, x[{bad}] = {poison}");
                }
            }
        }
    }
    fn check<C: Combo>()
    where
        C::Acc: Number,
    {
        for kind in converted_algorithms() {
            check_algorithm::<C>(kind);
        }
    }
    check::<F64>();
    check::<F32>();
    check::<F32F64>();
    check::<F16>();
    check::<Bf16F32>();
    check::<C64>();
}

#[test]
fn many_rows_run_in_parallel_with_the_same_bits() {
    let mut random = Random::new(5);
    let lengths: Vec<usize> = (0..20_000).map(|_| random.below(5)).collect();
    let matrix = UnsortedMatrix::<f32>::random::<f32>(&mut random, IndexBase::Zero, 3000, &lengths);
    let x = random.numbers::<f32, f32>(3000);
    let executor = csr::<F32>(&matrix, Source::InPlace, WIDTHS[0]);
    let scratch = Execution::new(0);
    let (one, zero) = (1.0_f32, 0.0_f32);
    let scalars = (scalar(&one), scalar(&zero));
    // beta is 0: y is not read.
    let (mut serial, mut parallel) = (vec![f32::NAN; 20_000], vec![f32::NAN; 20_000]);
    let (input, out) = (vector(&x), output(&mut serial));
    executor.run(&scratch.cx, false, scalars, [&input, &out, &out]).unwrap();
    executor.execute(&scratch.cx, scalars.0, &vector(&x), scalars.1, &output(&mut parallel)).unwrap();
    assert!(serial.iter().zip(&parallel).all(|(a, b)| a.to_bits() == b.to_bits()));
    compare::<F32>(&matrix, Operation::NonTranspose, (one, zero), (&x, &vec![0.0; 20_000], &serial));
    // alpha is 0: only scaling, in several pieces.
    let half = 0.5_f32;
    let mut scaled = serial.clone();
    let pool = rayon::ThreadPoolBuilder::new().num_threads(3).build().unwrap();
    let out = output(&mut scaled);
    pool.install(|| executor.run(&scratch.cx, true, (scalar(&zero), scalar(&half)), [&input, &out, &out]))
        .unwrap();
    assert!(scaled.iter().zip(&serial).all(|(a, b)| a.to_bits() == (0.5 * b).to_bits()));
}

/// Returns y for a 3 × 2 matrix with entries (0, 0) = 0, (2, 1) = a1.
fn small(a1: f64, x: [f64; 2], y: f64, alpha: f64, beta: f64) -> [f64; 3] {
    let mut matrix =
        UnsortedMatrix::<f64>::random::<f64>(&mut Random::new(1), IndexBase::Zero, 1, &[1, 0, 1]);
    matrix.cols = 2;
    matrix.entries[1].1 = 1;
    matrix.values = vec![0.0, a1];
    let indices = [0_i32, 1];
    let mut problem = problem::<F64>(&matrix, Operation::NonTranspose, WIDTHS[0], false);
    if let crate::matrix::SparseArrays::Csr(m) = &mut problem.a.arrays {
        m.indices = Address::new(indices.as_ptr());
    }
    let kinds: Vec<_> = [Algorithm::Csr].into_iter().chain(converted_algorithms()).collect();
    let mut all = vec![[y; 3]; kinds.len()];
    for (out, kind) in all.iter_mut().zip(kinds) {
        let source = if kind == Algorithm::Csr { Source::InPlace } else { Source::Canonical };
        let executor = build(&context(), &problem, &algorithm(source, kind)).unwrap();
        let y = output(out);
        executor.execute(&Execution::new(0).cx, scalar(&alpha), &vector(&x), scalar(&beta), &y).unwrap();
    }
    let csr = all[0];
    for other in &all[1..] {
        for (csr, other) in csr.iter().zip(other) {
            assert!(csr == other || (csr.is_nan() && other.is_nan()), "csr {csr}, other {other}");
        }
    }
    csr
}

#[test]
fn infinities_and_nans_follow_the_stored_entries() {
    const INF: f64 = f64::INFINITY;
    const NAN: f64 = f64::NAN;
    // A stored zero counts; rows that do not store a column never see it.
    let y = small(2.0, [INF, 3.0], 1.0, 1.0, 1.0);
    assert!(y[0].is_nan());
    assert_eq!(y[1..], [1.0, 7.0]);
    assert_eq!(small(2.0, [5.0, INF], 1.0, 1.0, 1.0), [1.0, 1.0, INF]);
    // beta = 0 writes rows without entries and does not read y.
    assert_eq!(small(2.0, [5.0, 3.0], NAN, 1.0, 0.0), [0.0, 0.0, 6.0]);
    assert_eq!(small(2.0, [5.0, 3.0], NAN, 1.0, -0.0), [0.0, 0.0, 6.0]);
    assert!(small(2.0, [5.0, 3.0], NAN, 1.0, 2.0).iter().all(|v| v.is_nan()));
    // alpha = 0 reads neither A nor x.
    assert_eq!(small(NAN, [INF, NAN], 3.0, 0.0, 2.0), [6.0; 3]);
    assert_eq!(small(NAN, [INF, NAN], NAN, 0.0, 0.0), [0.0; 3]);
    // beta · y where y is not finite.
    assert_eq!(small(2.0, [5.0, 3.0], INF, 1.0, -1.0), [-INF; 3]);
}

#[test]
fn alpha_zero_opens_neither_a_nor_x() {
    let matrix = UnsortedMatrix::<f64>::random::<f64>(&mut Random::new(1), IndexBase::Zero, 4, &[2, 1]);
    let problem = problem::<F64>(&matrix, Operation::NonTranspose, WIDTHS[0], false);
    let mut executor = build(&context(), &problem, &choice(Source::InPlace)).unwrap();
    executor.update_values(&context(), Address::NULL).unwrap();
    let (zero, two, mut y) = (0.0, 2.0, [1.0, 2.0]);
    let x = DenseVector { values: Address::NULL, ..vector(&[0.0_f64; 4]) };
    let out = output(&mut y);
    executor.execute(&Execution::new(0).cx, scalar(&zero), &x, scalar(&two), &out).unwrap();
    assert_eq!(y, [2.0, 4.0]);
    // With another alpha the error names the missing array.
    let error = executor.execute(&Execution::new(0).cx, scalar(&two), &vector(&[0.0; 4]), scalar(&two), &out);
    assert!(error.unwrap_err().message.starts_with("A: "));
}

#[test]
fn missing_scalars_and_workspace_are_refused() {
    let matrix = UnsortedMatrix::<f64>::random::<f64>(&mut Random::new(1), IndexBase::Zero, 4, &[70_000, 1]);
    let problem = problem::<F64>(&matrix, Operation::NonTranspose, WIDTHS[0], false);
    let executor = build(&context(), &problem, &choice(Source::InPlace)).unwrap();
    let (one, x, mut y) = (1.0, [1.0; 4], [5.0; 2]);
    let (x, out) = (vector(&x), output(&mut y));
    let cx = Execution::new(executor.workspace_bytes(1));
    for (alpha, beta, name) in [(Address::NULL, scalar(&one), "alpha"), (scalar(&one), Address::NULL, "beta")]
    {
        let error = executor.execute(&cx.cx, alpha, &x, beta, &out).unwrap_err();
        assert_eq!(error.status, Status::InvalidValue);
        assert!(error.message.starts_with(name), "{}", error.message);
    }
    let small = Execution::new(executor.workspace_bytes(1) - 1);
    let error = executor.execute(&small.cx, scalar(&one), &x, scalar(&one), &out).unwrap_err();
    assert_eq!(error.status, Status::InsufficientResources);
    assert_eq!(y, [5.0; 2]);
}

#[test]
fn empty_matrices_work() {
    for lengths in [&[][..], &[0, 0, 0]] {
        let matrix = UnsortedMatrix::<f64>::random::<f64>(&mut Random::new(1), IndexBase::One, 5, lengths);
        for op in OPS {
            let problem = problem::<F64>(&matrix, op, WIDTHS[0], false);
            let executor = build(&context(), &problem, &choice(Source::Canonical)).unwrap();
            let (rows, cols) = op.shape(lengths.len() as i64, 5);
            let (x, mut y) = (vec![1.0; cols as usize], vec![3.0; rows as usize]);
            let (two, out) = (2.0, output(&mut y));
            executor.execute(&Execution::new(0).cx, scalar(&two), &vector(&x), scalar(&two), &out).unwrap();
            assert!(y.iter().all(|&v| v == 6.0));
        }
    }
}

#[test]
fn new_values_are_used() {
    let mut random = Random::new(3);
    let mut matrix =
        UnsortedMatrix::<Complex64>::random::<Complex64>(&mut random, IndexBase::One, 23, &SHORT_ROWS);
    let csr = Algorithm::Csr;
    let mut cases = vec![
        (algorithm(Source::InPlace, csr), Operation::NonTranspose, false),
        (algorithm(Source::Canonical, csr), Operation::ConjugateTranspose, false),
        (algorithm(Source::Canonical, csr), Operation::ConjugateTranspose, true),
    ];
    for kind in converted_algorithms() {
        for op in [Operation::NonTranspose, Operation::ConjugateTranspose] {
            cases.extend([false, true].map(|updates| (algorithm(Source::Canonical, kind), op, updates)));
        }
    }
    for (choice, op, value_updates) in cases {
        let problem = problem::<C64>(&matrix, op, WIDTHS[2], value_updates);
        let mut executor = build(&context(), &problem, &choice).unwrap();
        for _ in 0..2 {
            matrix.values = random.numbers(matrix.values.len());
            executor.update_values(&context(), Address::new(matrix.values.as_ptr())).unwrap();
            let (rows, cols) = op.shape(matrix.rows as i64, matrix.cols as i64);
            let (x, y0) = (random.numbers(cols as usize), random.numbers(rows as usize));
            let (alpha, beta, mut y) = (random.number(), random.number(), y0.clone());
            let (scratch, out) = (Execution::new(0), output(&mut y));
            executor.execute(&scratch.cx, scalar(&alpha), &vector(&x), scalar(&beta), &out).unwrap();
            compare::<C64>(&matrix, op, (alpha, beta), (&x, &y0, &y));
        }
    }
}

/// Tests runs of empty rows of many lengths, of a y that stays in the caches and of one that is stored past
/// them, at all places in a cache line.
#[test]
fn runs_of_empty_rows_are_stored() {
    let mut random = Random::new(23);
    for rows in [3000, PAST_CACHES / size_of::<f64>() + 3000] {
        let mut lengths = vec![0; rows];
        let mut row = 0;
        while row < rows {
            lengths[row] = 1 + random.below(3);
            row += 1 + random.below(if rows > 3000 && row > 2000 { 5000 } else { 70 });
        }
        let matrix = UnsortedMatrix::<f64>::random::<f64>(&mut random, IndexBase::One, 50, &lengths);
        let x: Vec<f64> = random.numbers(50);
        for widths in WIDTHS {
            let executor = csr::<F64>(&matrix, Source::InPlace, widths);
            let scratch = Execution::new(0);
            for (alpha, beta) in [(0.75, 0.0), (-0.5, 1.25)] {
                // An address that is no multiple of a cache line.
                let mut y = vec![if beta == 0.0 { f64::NAN } else { 3.0 }; rows + 1];
                let y0 = if beta == 0.0 { vec![0.0; rows] } else { y[1..].to_vec() };
                executor
                    .execute(&scratch.cx, scalar(&alpha), &vector(&x), scalar(&beta), &output(&mut y[1..]))
                    .unwrap();
                assert!(y[0].is_nan() || y[0] == 3.0);
                compare::<F64>(&matrix, Operation::NonTranspose, (alpha, beta), (&x, &y0, &y[1..]));
            }
            let (alpha, beta) = (f64::INFINITY, 0.0);
            let mut y = vec![0.0_f64; rows];
            executor
                .execute(&scratch.cx, scalar(&alpha), &vector(&x), scalar(&beta), &output(&mut y))
                .unwrap();
            assert!(y.iter().zip(&lengths).all(|(y, &length)| y.is_nan() == (length == 0)));
        }
    }
}

#[test]
fn repetitions_are_counted() {
    for (count, len) in [(0, 0), (0, 5), (3, 3), (15, 40), (16, 16), (16, 40), (17, 40), (100, 101)] {
        let offsets: Vec<i64> = (0..len).map(|at| if at < count { 7 } else { 8 + at as i64 }).collect();
        assert_eq!(repetitions(&offsets, 7), count);
    }
}

#[test]
fn indices_that_change_behind_the_plan_panic_and_touch_nothing_else() {
    let matrix = UnsortedMatrix::<f64>::random::<f64>(&mut Random::new(1), IndexBase::Zero, 4, &[2, 1]);
    let mut problem = problem::<F64>(&matrix, Operation::NonTranspose, WIDTHS[0], false);
    let mut indices = [0_i32, 1, 2];
    if let crate::matrix::SparseArrays::Csr(m) = &mut problem.a.arrays {
        m.indices = Address::new(indices.as_mut_ptr());
    }
    let executor = build(&context(), &problem, &choice(Source::InPlace)).unwrap();
    for wrong in [4, -1, i32::MIN] {
        indices[1] = wrong;
        let (one, mut y) = (1.0, [0.0; 2]);
        let out = output(&mut y);
        let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            executor.execute(&Execution::new(0).cx, scalar(&one), &vector(&[1.0; 4]), scalar(&one), &out)
        }));
        assert!(caught.is_err());
    }
}

#[test]
fn tuning_times_an_execute() {
    use crate::backend::host::Host;
    let matrix =
        UnsortedMatrix::<half::f16>::random::<f32>(&mut Random::new(1), IndexBase::Zero, 4, &[70_000, 1]);
    let problem = problem::<F16F32>(&matrix, Operation::Transpose, WIDTHS[0], false);
    let cx = context();
    let executor = build(&cx, &problem, &choice(Source::Canonical)).unwrap();
    let held = cx.allocator.live_bytes();
    assert!(Host.time_spmv(&cx, &problem, &*executor).unwrap() > 0.0);
    assert_eq!(cx.allocator.live_bytes(), held);
}

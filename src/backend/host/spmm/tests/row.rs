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
    let lengths = [0, 1, 2, 3, 4, 9, 0, 40, 1, 33, 5, 2, 2, 2, 7, 1, 0, 3, 16_390];
    let (a_op, b_op) = (Operation::NonTranspose, Operation::ConjugateTranspose);
    for (n, indices) in [1, 3, 4, 5, 12, 31, 63, 127, 260].into_iter().zip(WIDTHS.into_iter().cycle()) {
        // The last row is divided into chunks; the naive loop is slow on it.
        let lengths = &lengths[..lengths.len() - usize::from(n > 12)];
        let matrix = UnsortedMatrix::<C::A>::random::<C::Acc>(&mut random, IndexBase::One, 50, lengths);
        for orders in ORDERS.into_iter().flat_map(|b| ORDERS.map(|c| (b, c))) {
            let mut case = Case::<C>::new(&mut random, &matrix, (a_op, b_op), n, orders);
            let betas = [C::Acc::ZERO, case.beta];
            for (width, beta) in widths().into_iter().flat_map(|width| betas.map(|beta| (width, beta))) {
                case.beta = beta;
                let (a, order) = (case.op_a(indices, false), RowOrder::new(Reorder::None));
                let layout = Csr::<C::A>::build(
                    &context(),
                    &a,
                    Source::InPlace,
                    &order,
                    Grain::spmm(n * size_of::<C::Acc>()),
                )
                .unwrap();
                let scratch = layout.scratch_of::<C>(&case.problem(indices), n);
                let execution = Execution::new((scratch[0] + scratch[1]) * size_of::<C::Acc>());
                let mut c = case.c.clone();
                let (b, out) = (case.b.describe(), c.describe());
                let scalars = (scalar(&case.alpha), scalar(&case.beta));
                let opened = open::<C>(&execution.cx, false, scalars, b_op, (&b, &out, &out), scratch);
                layout.multiply_by(width, false, &opened.unwrap().unwrap()).unwrap();
                case.compare(&c);
            }
        }
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

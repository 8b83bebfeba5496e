//! Tests of the products on quads, with and without AVX-512, and of when they are taken.

use super::*;
use crate::backend::host::spmv::open;
use crate::backend::host::spmv::tests::{op_a, output, vector};
use crate::backend::host::testing::{context, scalar, Execution, Number, UnsortedMatrix, WIDTHS};
use crate::error::Status;
#[cfg(avx512)]
use crate::format::quads::Cut;
#[cfg(avx512)]
use crate::format::testing::TestRows;
use crate::support::{C64, F16, F32, F32F64, F64};
use crate::types::{Address, IndexBase, Operation};
use testkit::Random;

/// Makes rows of `length` entries in blocks of 4 × 4, of which some have holes, with the last columns among
/// them, and whole numbers, so that sums are the same in any order.
fn blocks<C: Combo>(rows: usize, cols: usize, length: usize) -> UnsortedMatrix<C::A>
where
    C::Acc: Number,
{
    let mut random = Random::new(17);
    let lengths: Vec<_> = (0..rows).map(|row| if row % 9 == 7 { length - 1 } else { length }).collect();
    let mut matrix = UnsortedMatrix::<C::A>::random::<C::Acc>(&mut random, IndexBase::One, cols, &lengths);
    let (mut before, mut entry) = (usize::MAX, 0);
    for at in 0..matrix.entries.len() {
        let row = matrix.entries[at].0;
        entry = if row == before { entry + 1 } else { 0 };
        before = row;
        let first = (row / 4 * 13 + entry / 4 * 29) % (cols - 3);
        matrix.set_column(at, first + entry % 4);
    }
    for value in &mut matrix.values {
        *value = C::A::round(C::Acc::new((random.below(63) as f64 - 31.0 + 0.5).into()));
    }
    matrix
}

fn whole<C: Combo>(random: &mut Random, len: usize) -> Vec<C::X>
where
    C::Acc: Number,
{
    (0..len).map(|_| C::X::round(C::Acc::new((random.below(31) as f64 - 15.0).into()))).collect()
}

/// Computes A · x by the layout, or by the plain code; y has no more and x no fewer elements than A says.
fn product<C: Combo>(layout: &Quads<C::A>, x: &[C::X], only_plain: bool) -> Vec<C::Y>
where
    C::Acc: Number,
{
    let (one, zero) = (C::Acc::ONE, C::Acc::ZERO);
    let (scratch, mut y) =
        (Execution::new(0), vec![C::Y::round(C::Acc::new(f64::NAN.into())); layout.row_count]);
    let (x, out) = (vector(x), output(&mut y));
    let opened = open::<C>(&scratch.cx, false, (scalar(&one), scalar(&zero)), (&x, &out, &out), 0);
    let opened = opened.unwrap().unwrap();
    if only_plain {
        for item in 0..layout.items.len() - 1 {
            plain::<C>(layout, layout.items[item], layout.items[item + 1].slab as usize, &opened);
        }
    } else {
        SpmvProduct::<C>::multiply(layout, true, opened).unwrap();
    }
    y
}

fn naive<C: Combo>(matrix: &UnsortedMatrix<C::A>, x: &[C::X]) -> Vec<C::Y> {
    let mut sums = vec![C::Acc::ZERO; matrix.rows];
    for (&(row, col), &a) in matrix.entries.iter().zip(&matrix.values) {
        sums[row] += a.widen() * x[col].widen();
    }
    sums.into_iter().map(C::Y::round).collect()
}

fn check_code<C: Combo>()
where
    C::Acc: Number,
{
    // The last one has slabs that span more than 2^16 columns.
    for (rows, cols) in [(1003, 900), (40, 45), (2001, 200_000)] {
        let mut matrix = blocks::<C>(rows, cols, 30);
        if cols > 1 << 16 {
            (0..matrix.entries.len()).step_by(30).for_each(|at| matrix.set_column(at, cols - 1 - at % 3));
        }
        let a = op_a(&matrix, Operation::NonTranspose, WIDTHS[0], false);
        let layout = arrange::<C::A>(&context(), &a, usize::MAX).unwrap();
        let missing = arrange::<C::A>(&context(), &a, 0).unwrap_err();
        assert_eq!(missing.status, Status::AllocFailed);
        assert_eq!(layout.slabs.iter().any(|slab| slab.is_wide()), cols > 1 << 16);
        let x = whole::<C>(&mut Random::new(1), cols);
        let expected = naive::<C>(&matrix, &x);
        for only_plain in [true, false] {
            assert!(product::<C>(&layout, &x, only_plain) == expected, "{}", C::TYPES.describe());
        }
        // A number in x reaches only the rows that have its column.
        for col in [0, 1, 2, 3, 40, cols / 2, cols - 4, cols - 2, cols - 1] {
            let mut spoiled = x.clone();
            spoiled[col] = C::X::round(C::Acc::new(f64::NAN.into()));
            let mut has = vec![false; rows];
            matrix.entries.iter().filter(|&&(_, of)| of == col).for_each(|&(row, _)| has[row] = true);
            for only_plain in [true, false] {
                let y = product::<C>(&layout, &spoiled, only_plain);
                for row in 0..rows {
                    match has[row] {
                        true => assert!(y[row].widen().get().re.is_nan(), "row {row}, column {col}"),
                        false => assert!(y[row] == expected[row], "row {row}, column {col}"),
                    }
                }
            }
        }
    }
}

#[test]
fn both_codes_agree_with_a_naive_loop() {
    check_code::<F64>();
    check_code::<F32>();
    check_code::<F32F64>();
    check_code::<F16>();
    check_code::<C64>();
}

/// Makes the executor of `sell`, checks its product and those after two updates of the values, and returns
/// which layout it has.
fn details<C: Combo>(matrix: &mut UnsortedMatrix<C::A>, op: Operation, value_updates: bool) -> String
where
    C::Acc: Number,
{
    let a = op_a(matrix, op, WIDTHS[2], value_updates);
    let mut executor = sell::<C>(&context(), a).unwrap();
    let details = executor.details();
    let len = if op.transposes() { (matrix.rows, matrix.cols) } else { (matrix.cols, matrix.rows) };
    let (x, mut random) = (whole::<C>(&mut Random::new(2), len.0), Random::new(3));
    for round in 0..3 {
        if round > 0 {
            for value in &mut matrix.values {
                *value = C::A::round(C::Acc::new((random.below(63) as f64 - 31.0).into()));
            }
            executor.update_values(&context(), Address::new(matrix.values.as_ptr())).unwrap();
        }
        let scratch = Execution::new(executor.workspace_bytes(1));
        let mut y = vec![C::Y::round(C::Acc::ONE); len.1];
        let (two, out) = (C::Acc::ONE + C::Acc::ONE, output(&mut y));
        executor.execute(&scratch.cx, scalar(&two), &vector(&x), scalar(&two), &out).unwrap();
        let mut sums = vec![C::Acc::ZERO; len.1];
        for (&(row, col), &a) in matrix.entries.iter().zip(&matrix.values) {
            let (row, col) = if op.transposes() { (col, row) } else { (row, col) };
            sums[row] += a.widen() * x[col].widen();
        }
        let expected: Vec<_> = sums.into_iter().map(|sum| C::Y::round(two * sum + two)).collect();
        assert!(y == expected, "round {round}");
    }
    details
}

fn check_choice<C: Combo>()
where
    C::Acc: Number,
{
    let found = if uses_avx512::<C>() { "blocks of 4 × 4" } else { "" };
    for op in [Operation::NonTranspose, Operation::Transpose] {
        let mut matrix = blocks::<C>(2000, 2100, 32);
        // Values that will be updated are kept as they are.
        assert_eq!(details::<C>(&mut matrix, op, true), found);
        // These values fit fp16, which slices keep.
        let narrow = details::<C>(&mut matrix, op, false);
        assert!(narrow != "blocks of 4 × 4", "{narrow}");
    }
    // Scattered entries, a long row, and rows that read x side by side.
    let mut random = Random::new(5);
    let lengths = [16; 3000];
    let mut matrix = UnsortedMatrix::<C::A>::random::<C::Acc>(&mut random, IndexBase::One, 3000, &lengths);
    matrix.values = blocks::<C>(3000, 3000, 16).values.into_iter().cycle().take(48_000).collect();
    assert_eq!(details::<C>(&mut matrix, Operation::NonTranspose, true), "");
    for at in 0..48_000 {
        matrix.set_column(at, (at / 16 + at % 16 * 2) % 3000);
    }
    assert_eq!(details::<C>(&mut matrix, Operation::NonTranspose, true), "");
}

#[test]
fn blocks_are_taken_where_they_are_dense() {
    check_choice::<F64>();
    check_choice::<F32>();
    check_choice::<F32F64>();
}

#[test]
fn blocks_pay_from_some_entries_on() {
    let counts = |entries, side_by_side| Counts { blocks: 100, entries, side_by_side };
    assert!(pays(8, &counts(600, 0)) && !pays(8, &counts(599, 0)));
    assert!(pays(4, &counts(400, 0)) && !pays(4, &counts(399, 0)));
    // A band of full blocks that slices read with one column a step.
    assert!(!pays(8, &counts(1600, 1600)) && pays(8, &counts(1600, 1000)));
    assert!(!pays(8, &Counts::default()));
}

/// Blocks of all groups of four rows: first columns, masks, and positions and numbers of entries of the rows.
#[cfg(avx512)]
fn blocks_of(rows: &TestRows<i64, i32>, cut: &impl Cut) -> Vec<(usize, u32, [usize; SIDE], [usize; SIDE])> {
    let (pattern, mut out) = (rows.pattern(), Vec::new());
    for first in (0..rows.rows()).step_by(SIDE) {
        cut.cut(&pattern, first..rows.rows().min(first + SIDE), |column, mask, starts, counts| {
            out.push((column, mask, *starts, *counts));
        });
    }
    out
}

#[cfg(avx512)]
#[test]
fn the_cut_for_avx512_has_the_same_blocks() {
    let Some(fast) = cut::Avx512::detect() else {
        println!("SKIP: this processor has no AVX-512");
        return;
    };
    let mut random = Random::new(41);
    let most = i32::MAX as usize;
    for (base, cols) in [(0, 4), (1, 5), (0, 60), (1, 3000), (0, most), (1, most - 1)] {
        for gap in [1, 2, 5] {
            let lengths: Vec<_> =
                (0..211).map(|_| random.below(3) * random.below(cols.min(40) / gap + 1)).collect();
            let lengths: Vec<_> = lengths.iter().map(|&length| length.min(cols / gap)).collect();
            // Ascending, up to the last column; a few rows that descend.
            let first: Vec<_> = lengths.iter().map(|&length| cols - length * gap).collect();
            let first: Vec<_> =
                first.iter().map(|&most| [most, random.below(most + 1)][random.below(2)]).collect();
            let mut rows = TestRows::<i64, i32>::new(base, cols, &lengths, |row, entry| {
                let entry = if row % 50 == 3 { lengths[row] - 1 - entry } else { entry };
                first[row] + entry * gap
            });
            assert_eq!(
                blocks_of(&rows, &fast),
                blocks_of(&rows, &AnyProcessor),
                "{cols} columns, {gap} apart"
            );
            // Without the rows in whose place no four entries may be read.
            rows.columns.extend([base as i32; 8]);
            rows.offsets.push(rows.columns.len() as i64 + base);
            assert_eq!(
                blocks_of(&rows, &fast),
                blocks_of(&rows, &AnyProcessor),
                "{cols} columns, {gap} apart"
            );
        }
    }
}

//! Tests that products of values in a narrower form have the same bits as products of the full values.

use half::f16;
use num_complex::Complex64;

use super::*;
use crate::backend::host::lanes::reader;
use crate::backend::host::spmv::tests::{bits, op_a, output, rows_of_all_kinds, vector};
use crate::backend::host::spmv::{open, Spmv};
use crate::backend::host::testing::{context, scalar, Execution, Number, Numbers, UnsortedMatrix, WIDTHS};
use crate::backend::DenseExecutor;
use crate::format::narrowing::Form;
use crate::support::{Bf16, Bf16F32, C64, F16, F16F32, F32, F32F64, F64};
use crate::types::{Address, DataType, Element, IndexBase, Operation};
use testkit::Random;

const FORMS: [Form; 4] = [Form::Ones, Form::Half, Form::Single, Form::Full];

/// Makes values whose narrowest form is this one, if their type has it.
fn values<C: Combo>(random: &mut Random, form: Form, count: usize) -> Vec<C::A>
where
    C::Acc: Number,
{
    let mut value = |at: usize| match form {
        Form::Ones => 1.0,
        // Zeros, −0, subnormals and normals.
        Form::Half => match at % 5 {
            0 => f16::from_bits((random.below(2) << 15 | random.below(0x400)) as u16).to_f64(),
            _ => (random.below(4095) as f64 - 2047.0) / 1024.0,
        },
        Form::Single => f64::from(random.number::<f32, f32>()),
        Form::Full => random.number::<f64, f64>(),
    };
    let mut out: Vec<f64> = (0..count).map(&mut value).collect();
    if form == Form::Half {
        (out[0], out[1]) = (-0.0, 3.0);
    }
    out.into_iter().map(|value| C::A::round(C::Acc::new(value.into()))).collect()
}

/// Form in which values are stored that would have form `form` in fp64.
fn expected(value_type: DataType, form: Form) -> Form {
    let all = Form::of(value_type);
    match form {
        _ if reader().is_none() => Form::Full,
        Form::Half if reader().is_some_and(|reader| !reader.half) => expected(value_type, Form::Single),
        _ if all.contains(&form) => form,
        _ => Form::Full,
    }
}

fn arrange<C: Combo>(matrix: &UnsortedMatrix<C::A>, value_updates: bool) -> Spmv<C, Slices<C::A>> {
    let a = op_a(matrix, Operation::NonTranspose, WIDTHS[0], value_updates);
    Spmv::new(a, Slices::arrange(&context(), &a).unwrap())
}

/// Computes y = 0.75 · A · x over NaN, and then y = −0.5 · A · x + 1.25 · y, in parallel.
fn run<C: Combo>(executor: &Spmv<C, Slices<C::A>>, rows: usize, x: &[C::X]) -> Vec<C::Y>
where
    C::Acc: Number,
{
    let scratch = Execution::new(executor.workspace_bytes(1));
    let mut y = vec![C::Y::round(C::Acc::new(f64::NAN.into())); rows];
    for scalars in [(0.75, 0.0), (-0.5, 1.25)] {
        let scalars = [scalars.0, scalars.1].map(|value| C::Acc::new(Complex64::new(value, 0.0)));
        let scalars = (scalar(&scalars[0]), scalar(&scalars[1]));
        let out = output(&mut y);
        executor.run(&scratch.cx, true, scalars, [&vector(x), &out, &out]).unwrap();
    }
    y
}

/// Computes A · x by the code for any processor; also returns the form of the values.
fn run_plain<C: Combo>(matrix: &UnsortedMatrix<C::A>, value_updates: bool, x: &[C::X]) -> (Form, Vec<C::Y>)
where
    C::Acc: Number,
{
    let slices =
        Slices::arrange(&context(), &op_a(matrix, Operation::NonTranspose, WIDTHS[0], value_updates))
            .unwrap();
    let parts = slices.layout.pieces.len();
    let scratch = Execution::new(parts * size_of::<C::Acc>());
    let (one, zero) = (C::Acc::ONE, C::Acc::ZERO);
    let mut y = vec![C::Y::round(zero); matrix.rows];
    let (x, out) = (vector(x), output(&mut y));
    let opened = open::<C>(&scratch.cx, false, (scalar(&one), scalar(&zero)), (&x, &out, &out), parts);
    let opened = opened.unwrap().unwrap();
    with_stored!(&slices.layout.values, values => {
        let product = Running::new(&slices.layout, values, opened);
        // SAFETY: plain code runs everywhere.
        unsafe {
            let items = slices.items.len() - 1 + parts;
            (0..items).for_each(|item| product.item::<false, false>(&slices.items, item));
        }
        product.long_rows();
    });
    (slices.layout.values.form(), y)
}

/// Asserts equal bits, except that any NaN equals any other: which NaN a sum of two NaNs gives is undefined.
fn same<C: Combo>(found: &[C::Y], expected: &[C::Y], what: &str)
where
    C::Acc: Number,
{
    for (row, (found, expected)) in found.iter().zip(expected).enumerate() {
        let both_nan = found.widen().get().is_nan() && expected.widen().get().is_nan();
        let pair = (std::slice::from_ref(found), std::slice::from_ref(expected));
        assert!(bits(pair.0) == bits(pair.1) || both_nan, "{what} row {row}: {found:?}, not {expected:?}");
    }
}

fn check_products<C: Combo>()
where
    C::Acc: Number,
{
    let (long, wide) = rows_of_all_kinds();
    let short: Vec<_> = long.iter().map(|&length| length.min(40)).collect();
    for (lengths, cols) in [(&long, wide), (&long, 40_000), (&short, 9)] {
        let mut random = Random::new(31);
        let mut matrix = UnsortedMatrix::<C::A>::random::<C::Acc>(&mut random, IndexBase::One, cols, lengths);
        // The first rows form adjacent diagonals.
        if cols > 1000 {
            for at in 0..500 {
                matrix.set_column(at, at / 5 + at % 5 * 40);
            }
        }
        let mut x: Vec<C::X> = random.numbers(cols);
        let finite = x.clone();
        for (at, special) in [f64::INFINITY, f64::NEG_INFINITY, f64::NAN, -0.0].into_iter().enumerate() {
            x[at * 2] = C::X::round(C::Acc::new(special.into()));
        }
        for form in FORMS {
            let what = format!("{}, {form:?}, {cols} columns", C::TYPES.describe());
            matrix.values = values::<C>(&mut random, form, matrix.entries.len());
            let [narrow, full] = [false, true].map(|value_updates| arrange::<C>(&matrix, value_updates));
            let said = expected(C::A::TYPE, form).describe();
            assert_eq!((narrow.details().as_str(), full.details().as_str()), (said, ""), "{what}");
            for x in [&finite, &x] {
                let [narrow, full] = [&narrow, &full].map(|executor| run::<C>(executor, lengths.len(), x));
                same::<C>(&narrow, &full, &what);
                let [narrow, full] = [false, true].map(|updates| run_plain::<C>(&matrix, updates, x));
                assert_eq!((narrow.0, full.0), (expected(C::A::TYPE, form), Form::Full));
                same::<C>(&narrow.1, &full.1, &format!("{what}, plain"));
            }
        }
    }
}

#[test]
fn products_have_the_bits_of_full_values() {
    check_products::<F64>();
    check_products::<F32>();
    check_products::<F32F64>();
    check_products::<F16>();
    check_products::<F16F32>();
    check_products::<Bf16>();
    check_products::<Bf16F32>();
    check_products::<C64>();
}

/// Returns the form in which these values are stored, after asserting that products are equal to those of
/// full values.
fn form_of(values: &[f64]) -> Form {
    let mut random = Random::new(5);
    let lengths = vec![values.len() / 9; 9];
    let mut matrix = UnsortedMatrix::<f64>::random::<f64>(&mut random, IndexBase::Zero, 50, &lengths);
    matrix.values = values.to_vec();
    let x: Vec<f64> = random.numbers(50);
    let [narrow, full] = [false, true].map(|updates| arrange::<F64>(&matrix, updates));
    same::<F64>(&run(&narrow, 9, &x), &run(&full, 9, &x), "one value");
    let kept = FORMS.into_iter().find(|form| form.describe() == narrow.details());
    kept.expect("details name a form")
}

#[test]
fn one_value_that_does_not_fit_prevents_a_form() {
    let half = expected(DataType::R64F, Form::Half);
    let subnormal = f64::from(f32::from_bits(1));
    for (value, form) in [
        (1.0, Form::Ones),
        (-0.0, half),
        (1.0 / f64::from(1 << 24), half),
        (1.5 / f64::from(1 << 24), Form::Single),
        (f64::from(f32::MIN_POSITIVE), Form::Single),
        // Conversions of subnormals depend on a floating-point mode of the caller.
        (subnormal, Form::Full),
        (-f64::from(f32::MIN_POSITIVE) / 2.0, Form::Full),
        (f64::from_bits(1), Form::Full),
        (1.0 + f64::powi(2.0, -40), Form::Full),
        (1e300, Form::Full),
        (f64::INFINITY, Form::Full),
        (f64::NAN, Form::Full),
        (f64::from_bits(0x7ff8_0000_2000_0000), Form::Full),
    ] {
        // Among ones: at the front, in the middle and last; in front of and behind the end of a block.
        for (count, at) in [(18, 0), (4500, 2222), (4500, 4499), (180_000, 1023), (180_000, 179_999)] {
            let mut values = vec![1.0; count];
            values[at] = value;
            assert_eq!(form_of(&values), form, "{value:e} at {at} of {count}");
        }
    }
}

/// Tests that new values take the form that fits them: narrower, wider, and back.
#[test]
fn new_values_have_their_own_form() {
    let mut random = Random::new(17);
    let (lengths, cols) = rows_of_all_kinds();
    for op in [Operation::NonTranspose, Operation::Transpose] {
        let mut matrix = UnsortedMatrix::<f64>::random::<f64>(&mut random, IndexBase::One, cols, &lengths);
        let (rows, cols) = op.shape(lengths.len() as i64, cols as i64);
        let x: Vec<f64> = random.numbers(cols as usize);
        matrix.values = values::<F64>(&mut random, Form::Ones, matrix.entries.len());
        let [mut narrow, mut full] = [false, true].map(|value_updates| {
            let a = op_a(&matrix, op, WIDTHS[0], value_updates);
            Spmv::<F64, _>::new(a, Slices::<f64>::arrange(&context(), &a).unwrap())
        });
        assert_eq!((narrow.details().as_str(), full.details().as_str()), (Form::Ones.describe(), ""));
        for form in [Form::Half, Form::Full, Form::Single, Form::Ones, Form::Full, Form::Half] {
            let new = values::<F64>(&mut random, form, matrix.entries.len());
            for executor in [&mut narrow, &mut full] {
                executor.update_values(&context(), Address::new(new.as_ptr())).unwrap();
            }
            assert_eq!(narrow.details(), expected(DataType::R64F, form).describe());
            // If updates are announced, values are never narrowed.
            assert_eq!(full.details(), "");
            same::<F64>(&run(&narrow, rows as usize, &x), &run(&full, rows as usize, &x), "updated");
            matrix.values = new;
        }
    }
}

/// Tests steps that only some lanes have, whose padding would be 1: elements of x that padding would read
/// affect only the rows that store their column.
#[test]
fn padding_of_ones_brings_nothing_into_y() {
    let lengths = [9, 7, 6, 6, 3, 1, 0, 2, 1];
    let mut matrix = UnsortedMatrix::<f64>::random::<f64>(&mut Random::new(2), IndexBase::Zero, 20, &lengths);
    for at in 0..matrix.entries.len() {
        matrix.set_column(at, matrix.entries[at].0);
    }
    matrix.values = vec![1.0; matrix.entries.len()];
    let executor = arrange::<F64>(&matrix, false);
    assert!(executor.layout().fill > 1.0 && executor.details() == Form::Ones.describe());
    for poison in [f64::INFINITY, f64::NAN] {
        for bad in 0..lengths.len() {
            let mut x = vec![1.0; 20];
            x[bad] = poison;
            let y = run(&executor, lengths.len(), &x);
            let plain = run_plain::<F64>(&matrix, false, &x).1;
            for (row, &length) in lengths.iter().enumerate() {
                let sees = row == bad && length > 0;
                assert_eq!((y[row].is_finite(), plain[row].is_finite()), (!sees, !sees), "row {row}");
            }
        }
    }
}

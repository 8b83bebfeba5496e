//! Tests of plans that store fp64 values in fewer bytes: getInfo reports it, and y has the same bits.

use std::ffi::CStr;

use client::{Plan, Session, Sparse};
use half::f16;
use tarsia::facade::{BackendKind, ComputeType, DataType, IndexBase, Operation, SpmvAlg};

use crate::common::backends;
use crate::common::number::bits;
use crate::common::staged::Staging;

const ROWS: usize = 4000;
/// Entries of a row: few enough that all forms sum in the same order.
const ENTRIES: usize = 5;
const COLS: usize = 70_000;

fn text(field: &[std::ffi::c_char]) -> String {
    let bytes: Vec<u8> = field.iter().map(|&byte| byte as u8).collect();
    CStr::from_bytes_until_nul(&bytes).expect("ended by 0").to_str().expect("UTF-8").to_string()
}

/// Narrowest type in which fp64 values are exact.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Form {
    Ones,
    Half,
    Single,
    Full,
}

impl Form {
    /// Returns the word for this form in the plan's information, and the bytes of a value.
    fn kept(self) -> (&'static str, usize) {
        match self {
            Form::Ones => ("no values kept: all are 1", 0),
            Form::Half => ("values kept as fp16", 2),
            Form::Single => ("values kept as fp32", 4),
            Form::Full => ("", 8),
        }
    }
}

/// Returns the narrowest form in which every value is exact.
fn narrowest(values: &[f64]) -> Form {
    let all = |fits: fn(f64) -> bool| values.iter().all(|&value| fits(value));
    if all(|value| value == 1.0) {
        Form::Ones
    } else if all(|value| f16::from_f64(value).to_f64() == value) {
        Form::Half
    } else if all(|value| f64::from(value as f32) == value) {
        Form::Single
    } else {
        Form::Full
    }
}

fn values(form: Form) -> Vec<f64> {
    let value = |at: usize| match form {
        Form::Ones => 1.0,
        Form::Half => (at % 2047) as f64 / -64.0,
        Form::Single => f64::from(1.0 / (at as f32 + 3.0)),
        Form::Full => 1.0 / (at as f64 + 3.0),
    };
    let values: Vec<f64> = (0..ROWS * ENTRIES).map(value).collect();
    assert_eq!(narrowest(&values), form);
    values
}

/// Returns whether the processor has instructions that widen fp16; without them the host backend stores no
/// values as fp16.
fn host_has_half() -> bool {
    #[cfg(target_arch = "x86_64")]
    return is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("fma")
        && is_x86_feature_detected!("f16c");
    #[cfg(not(target_arch = "x86_64"))]
    false
}

#[test]
fn values_change_their_form_and_products_do_not() {
    for backend in backends() {
        let session = Session::new(backend).unwrap();
        let offsets: Vec<i32> = (0..=ROWS).map(|row| (row * ENTRIES) as i32).collect();
        let indices: Vec<i32> = (0..ROWS * ENTRIES).map(|at| (at * 7919 % COLS) as i32).collect();
        let x: Vec<f64> = (0..COLS).map(|at| 1.0 / (at as f64 + 7.0)).collect();
        let forms = [Form::Ones, Form::Full, Form::Half, Form::Single, Form::Ones];
        let arrays = (session.upload(&offsets).unwrap(), session.upload(&indices).unwrap());
        let stored = forms.map(|form| session.upload(&values(form)).unwrap());
        let shape = (ROWS as i64, COLS as i64);
        let a = Sparse::csr(shape, &arrays.0, &arrays.1, &stored[0], IndexBase::Zero).unwrap();
        let types = (DataType::R64F, DataType::R64F);
        let plans = [false, true].map(|updates| {
            let (op, compute) = (Operation::NonTranspose, ComputeType::R64F);
            let plan = Plan::spmv(&session, op, &a, types, compute, SpmvAlg::Sell).unwrap();
            plan.set_value_updates(updates).unwrap();
            plan.analyze(&session).unwrap();
            plan.prepare(&session).unwrap();
            plan
        });
        for (number, (form, new)) in forms.into_iter().zip(&stored).enumerate() {
            let [narrowed, full] = plans.each_ref().map(|plan| {
                if number > 0 {
                    plan.update_values(&session, new).unwrap();
                }
                let mut y = vec![f64::NAN; ROWS];
                plan.spmv(&session, 1.0, &x, 0.0, &mut y).unwrap();
                y
            });
            assert!(bits(&narrowed) == bits(&full), "{backend:?} {form:?}: other bits");
            let values = values(form);
            let expected = values.chunks(ENTRIES).zip(indices.chunks(ENTRIES)).map(|(values, columns)| {
                values.iter().zip(columns).map(|(value, &column)| value * x[column as usize]).sum::<f64>()
            });
            for (row, (found, expected)) in narrowed.iter().zip(expected).enumerate() {
                let error = (found - expected).abs();
                assert!(
                    error <= 1e-14 * expected.abs(),
                    "{backend:?} {form:?} row {row}: {found} {expected}"
                );
            }
            let form = match (backend, form) {
                (BackendKind::Reference, _) => continue,
                (BackendKind::Host, Form::Half) if !host_has_half() => Form::Single,
                _ => form,
            };
            let [narrowed, full] = plans.each_ref().map(|plan| plan.info().unwrap());
            let [said, said_in_full] = [&narrowed, &full].map(|info| text(&info.reason));
            let (words, bytes) = form.kept();
            assert!(said.ends_with(words), "{said}");
            assert_eq!(said.contains("kept"), form != Form::Full, "{said}");
            assert!(!said_in_full.contains("kept"), "{said_in_full}");
            let saved = full.planBytes - narrowed.planBytes;
            assert!(saved >= (8 - bytes) * ROWS * ENTRIES, "{form:?}: {saved} bytes less");
        }
    }
}

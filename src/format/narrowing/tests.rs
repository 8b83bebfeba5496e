//! Tests of value narrowing, with values at the edges of each form.

use half::bf16;
use num_complex::Complex32;

use super::*;

/// Returns the narrowest form for a reader of all forms.
fn narrowest<V: Element>(values: &[V]) -> Form {
    super::narrowest(values, Reader::ANY)
}

/// Returns fp64 values, each with the narrowest form of an array of that value alone.
pub(crate) fn doubles() -> Vec<(f64, Form)> {
    let tiny = f64::from(f32::from_bits(1));
    // The least fp16, the least normal fp16 and the largest fp16.
    let (least, normal, largest) = (1.0 / f64::from(1 << 24), 1.0 / f64::from(1 << 14), 65504.0);
    let above = |v: f64| f64::from_bits(v.to_bits() + 1);
    let mut out = vec![
        (1.0, Form::Ones),
        (-1.0, Form::Half),
        (0.0, Form::Half),
        (-0.0, Form::Half),
        (2.5, Form::Half),
        // Numbers of 11, 12, 24 and 25 significant bits.
        (2047.0, Form::Half),
        (2049.0, Form::Single),
        (16_777_215.0, Form::Single),
        (16_777_217.0, Form::Full),
        (0.1, Form::Full),
        (f64::from(0.1_f32), Form::Single),
        (above(1.0), Form::Full),
        (tiny, Form::Single),
        (-tiny, Form::Single),
        (tiny / 2.0, Form::Full),
        (1.5 * tiny, Form::Full),
        (f64::from(f32::MIN_POSITIVE), Form::Single),
        (f64::from(f32::MAX), Form::Single),
        (above(f64::from(f32::MAX)), Form::Full),
        (f64::MAX, Form::Full),
        (f64::from_bits(1), Form::Full),
        (65520.0, Form::Single),
        (f64::INFINITY, Form::Full),
        (f64::NEG_INFINITY, Form::Full),
        (f64::NAN, Form::Full),
        (-f64::NAN, Form::Full),
        (f64::from_bits(0x7ff0_0000_2000_0000), Form::Full),
    ];
    for edge in [least, normal, largest] {
        out.extend([(edge, Form::Half), (-edge, Form::Half), (above(edge), Form::Full)]);
    }
    // Numbers half a unit off the fp16 numbers at these edges.
    for off in [least / 2.0, least * 1.5, normal - least / 2.0, largest + 16.0] {
        out.extend([(off, Form::Single), (-off, Form::Single)]);
    }
    out
}

/// Returns fp32 values and their narrowest forms.
pub(crate) fn singles() -> Vec<(f32, Form)> {
    let fits = |&(value, _): &(f64, Form)| f64::from(value as f32).to_bits() == value.to_bits();
    let narrow = |(value, form)| (value as f32, if form == Form::Single { Form::Full } else { form });
    let mut out: Vec<_> = doubles().into_iter().filter(fits).map(narrow).collect();
    out.push((f32::NAN, Form::Full));
    out.push((f32::from_bits(0xff80_2000), Form::Full));
    out
}

#[test]
fn each_value_has_its_form() {
    for (value, form) in doubles() {
        assert_eq!(narrowest(&[value]), form, "{value:e}");
        // The widest form that any of the values needs decides.
        assert_eq!(narrowest(&[1.0, value, 1.0]), form, "{value:e}");
        let with_half = if form == Form::Ones { Form::Half } else { form };
        assert_eq!(narrowest(&[value, 3.0]), with_half, "{value:e}");
    }
    assert!(singles().iter().filter(|(_, form)| *form == Form::Full).count() > 8);
    for (value, form) in singles() {
        assert_eq!(narrowest(&[value]), form, "{value:e}");
        assert_eq!(narrowest(&[1.0, value]), form, "{value:e}");
    }
}

/// All 2^16 fp16 numbers, widened to fp64 and fp32, are found to fit fp16 and come back from it, but for
/// infinities and NaN.
#[test]
fn every_half_is_a_half() {
    for bits in 0..=u16::MAX {
        let value = f16::from_bits(bits);
        let form = match bits {
            0x3c00 => Form::Ones,
            _ if value.is_finite() => Form::Half,
            _ => Form::Full,
        };
        assert_eq!(narrowest(&[value.to_f32()]), form, "{bits:x}");
        assert_eq!(narrowest(&[value.to_f64()]), form, "{bits:x}");
        assert_eq!(narrowest(&[value]) == Form::Ones, bits == 0x3c00);
        assert_eq!(narrowest(&[bf16::from_bits(bits)]) == Form::Ones, bits == 0x3f80);
        if value.is_finite() {
            assert_eq!(f16::from_f32(value.to_f32()).to_bits(), bits);
            assert_eq!(f16::from_f32(value.to_f64() as f32).to_bits(), bits);
            let (single, double): (f16, f16) = (f16::hold(value.to_f32()), f16::hold(value.to_f64()));
            assert_eq!((single.to_bits(), double.to_bits()), (bits, bits));
            let (single, double): (f32, f64) = (single.value(), double.value());
            assert_eq!(
                (single.to_bits(), double.to_bits()),
                (value.to_f32().to_bits(), value.to_f64().to_bits())
            );
        }
    }
}

/// A form that the reader cannot read is not chosen.
#[test]
fn readers_have_their_limits() {
    let tiny = f64::from(f32::from_bits(1));
    for (value, form) in doubles() {
        let of = |half, subnormal| super::narrowest(&[value], Reader { half, subnormal });
        let is_tiny = form == Form::Single && value.abs() < f64::from(f32::MIN_POSITIVE);
        assert_eq!(of(true, false), if is_tiny { Form::Full } else { form }, "{value:e}");
        assert_eq!(of(false, true), if form == Form::Half { Form::Single } else { form }, "{value:e}");
    }
    for (value, form) in singles() {
        let found = super::narrowest(&[value], Reader { half: false, subnormal: false });
        assert_eq!(found, if form == Form::Ones { Form::Ones } else { Form::Full }, "{value:e}");
    }
    assert_eq!(super::narrowest(&[1.0, tiny], Reader { half: true, subnormal: false }), Form::Full);
}

/// A single value that does not fit is found wherever it is: in the first block, at the ends of blocks and at
/// the ends of what one thread tests.
#[test]
fn every_value_is_looked_at() {
    let count = 3 * GRAIN + 5;
    for at in [0, BLOCK - 1, BLOCK, GRAIN - 1, GRAIN, 2 * GRAIN, 3 * GRAIN, count - 1] {
        for (value, form) in [(2.5, Form::Half), (2049.0, Form::Single), (0.1, Form::Full)] {
            let mut values = vec![1.0; count];
            values[at] = value;
            assert_eq!(narrowest(&values), form, "{value} at {at}");
        }
        let mut ones = vec![bf16::ONE; count];
        assert_eq!(narrowest(&ones), Form::Ones);
        ones[at] = bf16::ZERO;
        assert_eq!(narrowest(&ones), Form::Full, "{at}");
    }
}

#[test]
fn no_values_and_complex_ones_stay() {
    assert_eq!(narrowest::<f64>(&[]), Form::Full);
    assert_eq!(narrowest(&[Complex32::ONE; 3]), Form::Full);
    assert_eq!(narrowest(&[f16::from_f32(1.5)]), Form::Full);
}

#[test]
fn forms_have_sizes() {
    for value_type in [DataType::R64F, DataType::R32F, DataType::R16F, DataType::R16BF, DataType::C64F] {
        let forms = Form::of(value_type);
        let sizes: Vec<_> = forms.iter().map(|form| form.bytes(value_type)).collect();
        assert!(sizes.is_sorted() && sizes.iter().all(|&size| size < value_type.size()));
        assert_eq!(Form::Full.bytes(value_type), value_type.size());
        // Forms are lost one after the other.
        let mut lost = 0;
        for &form in forms {
            assert_eq!(Form::without(value_type, lost), form);
            lost |= form.bit();
        }
        assert_eq!((Form::without(value_type, lost), lost), (Form::Full, Form::set(value_type)));
    }
}

//! Tests against the CPU's forms, including the exact conversion back. Skipped without a device.

use half::{bf16, f16};
use num_complex::Complex64;

use super::*;
use crate::backend::cuda::convert::testing::context_of_device;
use crate::backend::cuda::device::DeviceCall;
use crate::backend::cuda::memory::Readback;
use crate::format::narrowing::tests::{doubles, singles};
use crate::types::Element;

fn narrowest(cx: &DeviceCall<'_>, values: Address, count: i64, value_type: DataType) -> Form {
    let mut words = Readback::take(cx).unwrap();
    enqueue(cx, values, count, value_type, words.at(3), &Overlap::new(true)).unwrap();
    words.fetch(cx, 4).unwrap();
    super::narrowest(count, value_type, words.wait(cx).unwrap()[3] as u32)
}

/// Asserts that the device finds the same form as the CPU and stores the values exactly; returns the form.
fn check<V: Element>(cx: &DeviceCall<'_>, values: &[V]) -> Form {
    let expected = narrowing::narrowest(values, narrowing::Reader::ANY);
    // One value in front, since arrays are aligned to their elements only.
    for front in [0, 1] {
        let all: Vec<V> = values[..front.min(values.len())].iter().chain(values).copied().collect();
        let buffer = DeviceBuffer::from_slice(cx, &all).unwrap();
        let at = buffer.at(all.len() - values.len());
        let found = narrowest(cx, at, values.len() as i64, V::TYPE);
        assert_eq!(found, expected, "{} values, {front} in front", values.len());
        let kept = narrowed(cx, at, values.len() as i64, V::TYPE, found).unwrap();
        let kept = kept.map(|kept| kept.read(0, kept.len()).unwrap());
        let halves = |kept: &[u8]| -> Vec<f16> {
            kept.chunks_exact(2)
                .map(|bytes| f16::from_bits(u16::from_ne_bytes([bytes[0], bytes[1]])))
                .collect()
        };
        let widened: Vec<f64> = match (found, &kept) {
            (Form::Full, None) => continue,
            (Form::Ones, Some(kept)) => {
                assert!(kept.is_empty());
                vec![1.0; values.len()]
            }
            (Form::Half, Some(kept)) => halves(kept).into_iter().map(f64::from).collect(),
            (Form::Single, Some(kept)) => {
                let single = |bytes: &[u8]| f32::from_ne_bytes(bytes.try_into().unwrap());
                kept.chunks_exact(4).map(|bytes| f64::from(single(bytes))).collect()
            }
            _ => panic!("{found:?} without values"),
        };
        // The conversion back is exact if the form holds the values.
        let bytes: Vec<u8> = match V::TYPE {
            DataType::R64F => widened.iter().flat_map(|v| v.to_ne_bytes()).collect(),
            DataType::R32F => widened.iter().flat_map(|&v| (v as f32).to_ne_bytes()).collect(),
            DataType::R16BF => widened.iter().flat_map(|&v| bf16::from_f64(v).to_ne_bytes()).collect(),
            _ => widened.iter().flat_map(|&v| f16::from_f64(v).to_ne_bytes()).collect(),
        };
        assert!(bytes == bytemuck::cast_slice::<V, u8>(values), "{found:?} of {} values", values.len());
    }
    expected
}

#[test]
fn the_device_finds_the_forms_of_the_cpu() {
    let Some((device, cx)) = context_of_device() else { return };
    let cx = &device.call(&cx).unwrap();
    // Each value alone, and as the only one that is not 1, at the ends of warps and tiles.
    for (value, form) in doubles() {
        assert_eq!(check(cx, &[value]), form);
        for count in [2, 33, 129, 5000] {
            let mut values = vec![1.0; count];
            values[count - 1] = value;
            assert_eq!(check(cx, &values), form);
        }
    }
    for (value, form) in singles() {
        assert_eq!(check(cx, &[value]), form);
        let mut values = vec![1.0_f32; 1025];
        values[1024] = value;
        assert_eq!(check(cx, &values), form);
    }
    // More values than the grid takes at one time; a value that breaks a form comes late.
    let many = 5_000_000;
    let mut values: Vec<f64> = vec![1.0; many];
    assert_eq!(check(cx, &values), Form::Ones);
    values[many - 7] = -0.0;
    assert_eq!(check(cx, &values), Form::Half);
    values[many / 2] = f64::from(0.1_f32);
    assert_eq!(check(cx, &values), Form::Single);
    values[many - 1] = f64::NAN;
    assert_eq!(check(cx, &values), Form::Full);
    let values: Vec<f64> = (0..many).map(|at| 1.0 / (at + 3) as f64).collect();
    assert_eq!(check(cx, &values), Form::Full);
}

#[test]
fn every_half_comes_back() {
    let Some((device, cx)) = context_of_device() else { return };
    let cx = &device.call(&cx).unwrap();
    let halves: Vec<f16> = (0..=u16::MAX).map(f16::from_bits).filter(|half| half.is_finite()).collect();
    let singles: Vec<f32> = halves.iter().map(|half| half.to_f32()).collect();
    let doubles: Vec<f64> = halves.iter().map(|half| half.to_f64()).collect();
    assert_eq!(check(cx, &singles), Form::Half);
    assert_eq!(check(cx, &doubles), Form::Half);
    assert_eq!(check(cx, &halves), Form::Full);
    let doubles: Vec<f64> = (0..1 << 20)
        .map(|at: u32| f32::from_bits(at.wrapping_mul(4099)))
        .filter(|single| single.is_finite())
        .map(f64::from)
        .collect();
    assert_eq!(check(cx, &doubles), Form::Single);
}

#[test]
fn half_types_have_ones_and_complex_types_no_form() {
    let Some((device, cx)) = context_of_device() else { return };
    let cx = &device.call(&cx).unwrap();
    let (mut halves, mut shorts) = (vec![f16::ONE; 3000], vec![bf16::ONE; 3000]);
    assert_eq!(check(cx, &halves), Form::Ones);
    assert_eq!(check(cx, &shorts), Form::Ones);
    (halves[2999], shorts[0]) = (f16::from_bits(0x3c01), bf16::NEG_ONE);
    assert_eq!(check(cx, &halves), Form::Full);
    assert_eq!(check(cx, &shorts), Form::Full);
    assert_eq!(check(cx, &[Complex64::ONE; 50]), Form::Full);
    assert_eq!(check::<f64>(cx, &[]), Form::Full);
}

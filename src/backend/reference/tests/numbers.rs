//! Tests of the single rounding when results are stored, and of the arithmetic of alpha and beta.

use half::{bf16, f16};

use super::super::number::{combine, round_to_bf16, round_to_f16};

/// Returns a power of 2.
fn two(power: i32) -> f64 {
    2_f64.powi(power)
}

#[test]
fn fp16_is_rounded_once() {
    let cases = [
        (1.0, 1.0),
        // 1 + 2⁻¹¹ is midway between 1 and 1 + 2⁻¹⁰: ties to even gives 1.
        (1.0 + two(-11), 1.0),
        // A little above the midpoint, by bits that f32 does not have.
        (1.0 + two(-11) + two(-24), 1.0 + two(-10)),
        (1.0 + two(-11) + two(-52), 1.0 + two(-10)),
        (1.0 + two(-11) - two(-52), 1.0),
        // Between 1 + 2⁻¹⁰ and 1 + 2⁻⁹ the even neighbour is the upper one.
        (1.0 + 3.0 * two(-11), 1.0 + two(-9)),
        (-(1.0 + two(-11) + two(-52)), -(1.0 + two(-10))),
        // The largest fp16 is 65504; 65520 is the midpoint to the next value, which is Inf.
        (65519.999999999, 65504.0),
        (65520.0, f64::INFINITY),
        (-1e300, f64::NEG_INFINITY),
        // The smallest positive fp16 is 2⁻²⁴.
        (two(-25), 0.0),
        (two(-25) * (1.0 + two(-52)), two(-24)),
        (1e-300, 0.0),
        (f64::INFINITY, f64::INFINITY),
    ];
    for (number, expected) in cases {
        assert_eq!(round_to_f16(number).to_f64(), expected, "{number:e}");
    }
    assert!(round_to_f16(f64::NAN).is_nan());
    assert_eq!(round_to_f16(-1e-300).to_bits(), 0x8000);
    // The crate's own conversion is not used, since it gives one of these depending on the CPU.
    let wrong = f16::from_f64(1.0 + two(-11) + two(-52)).to_f64();
    assert!(wrong == 1.0 || wrong == 1.0 + two(-10));
}

#[test]
fn bf16_is_rounded_once() {
    let cases = [
        (1.0 + two(-8), 1.0),
        (1.0 + two(-8) + two(-24), 1.0 + two(-7)),
        (1.0 + two(-8) + two(-52), 1.0 + two(-7)),
        (1.0 + 3.0 * two(-8), 1.0 + two(-6)),
        // The largest bf16 is (2 − 2⁻⁷)·2¹²⁷; the midpoint to 2¹²⁸ is 2¹²⁸ − 2¹¹⁹.
        (two(127) + (two(127) - two(119)), f64::INFINITY),
        (two(127) + (two(127) - two(119) - two(75)), (2.0 - two(-7)) * two(127)),
        (f64::MAX, f64::INFINITY),
        // The smallest positive bf16 is 2⁻¹³³.
        (two(-134), 0.0),
        (two(-134) * (1.0 + two(-52)), two(-133)),
    ];
    for (number, expected) in cases {
        assert_eq!(round_to_bf16(number).to_f64(), expected, "{number:e}");
    }
    assert!(round_to_bf16(f64::NAN).is_nan());
}

/// Checks for all neighbours that the midpoint is rounded to the even one, and everything else to the nearer
/// one. Midpoints of the 16-bit types are exact in f64.
fn check_all_middles(infinity: u16, widen: impl Fn(u16) -> f64, round: impl Fn(f64) -> u16) {
    for low in 0..infinity {
        let high = low + 1;
        // The successor of the largest value, if the last step were repeated.
        let above = if high == infinity { 2.0 * widen(low) - widen(low - 1) } else { widen(high) };
        let middle = widen(low) / 2.0 + above / 2.0;
        let even = if low % 2 == 0 { low } else { high };
        let bits = middle.to_bits();
        assert_eq!(round(widen(low)), low);
        assert_eq!(round(middle), even, "{middle:e}");
        assert_eq!(round(f64::from_bits(bits - 1)), low, "below {middle:e}");
        assert_eq!(round(f64::from_bits(bits + 1)), high, "above {middle:e}");
        assert_eq!(round(-middle), even | 0x8000, "−{middle:e}");
        assert_eq!(round(-f64::from_bits(bits + 1)), high | 0x8000, "below −{middle:e}");
    }
}

#[test]
fn every_middle_of_fp16() {
    check_all_middles(f16::INFINITY.to_bits(), |b| f16::from_bits(b).to_f64(), |v| round_to_f16(v).to_bits());
}

#[test]
fn every_middle_of_bf16() {
    check_all_middles(
        bf16::INFINITY.to_bits(),
        |b| bf16::from_bits(b).to_f64(),
        |v| round_to_bf16(v).to_bits(),
    );
}

#[test]
fn a_zero_factor_takes_its_term_away() {
    assert_eq!(combine::<f64>(2.0, 3.0, 5.0, || 7.0), 41.0);
    assert_eq!(combine(2.0, 3.0, 0.0, || unreachable!("beta is 0")), 6.0);
    assert_eq!(combine(0.0, f64::NAN, 5.0, || 7.0), 35.0);
    assert_eq!(combine(-0.0, f64::NAN, -0.0, || unreachable!("beta is 0")), 0.0);
    assert_eq!(combine(1.0, 0.0, 5.0, || f64::INFINITY), f64::INFINITY);
}

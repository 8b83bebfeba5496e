//! Comparison of a result with the sum that the naive products expect.

use crate::naive::Sum;
use crate::number::{Number, Wide};

/// Rounding errors of the product that is compared.
#[derive(Clone, Copy, Debug)]
pub struct Rounding {
    /// Largest error of one rounding of a sum, relative to the sum.
    pub sums: f64,
    /// Largest error by rounding the factors of a term, relative to the term; 0 where they are not rounded.
    pub factors: f64,
}

impl Rounding {
    /// Returns the largest allowed error of a product of type Y: c · (terms) · eps(accumulator) · Σ|a·x|, and
    /// one rounding of the storage type.
    ///
    /// A factor 2 is for the error of `expected` itself, and the 4 additional terms are for alpha, beta,
    /// their sum, and the products of complex numbers.
    pub fn tolerance<Y: Number>(self, expected: &Sum<Y::Wide>) -> f64 {
        let sum = 2.0 * (expected.terms + 4) as f64 * (2.0 * self.sums) * expected.magnitude;
        let error = sum + self.factors * expected.magnitude;
        error + Y::ROUNDOFF * (expected.value.magnitude() + error) + Y::TINY
    }

    /// Checks that the result is as expected: within tolerance, or the same Inf or NaN; else returns a text
    /// that describes the difference.
    ///
    /// For complex numbers only whether the result is finite is compared: which part becomes Inf or NaN
    /// depends on how a product of complex numbers is formed.
    pub fn close<Y: Number>(self, found: Y, expected: &Sum<Y::Wide>) -> Result<(), String> {
        let (wide, value) = (found.widen(), expected.value);
        if !value.is_finite() {
            let alike = if Y::Wide::IS_COMPLEX {
                !wide.is_finite()
            } else {
                let (found, expected) = (wide.parts()[0], value.parts()[0]);
                found == expected || (found.is_nan() && expected.is_nan())
            };
            return if alike { Ok(()) } else { Err(format!("found {found:?}, expected {value:?}")) };
        }
        let tolerance = self.tolerance::<Y>(expected);
        let error = (wide - value).magnitude();
        if error <= tolerance {
            return Ok(());
        }
        Err(format!(
            "found {found:?}, expected {value:?}: error {error:e}, tolerance {tolerance:e} ({} terms)",
            expected.terms
        ))
    }
}

#[cfg(test)]
mod tests {
    use half::f16;
    use num_complex::Complex64;

    use super::*;

    const SINGLE: Rounding = Rounding { sums: f32::ROUNDOFF, factors: 0.0 };

    fn sum<W: Wide>(value: W, terms: usize) -> Sum<W> {
        Sum { value, magnitude: value.magnitude(), terms }
    }

    #[test]
    fn errors_of_rounding_are_allowed_and_larger_ones_are_not() {
        let expected = sum(1.0, 4);
        let most = SINGLE.tolerance::<f32>(&expected);
        assert!(most > f32::EPSILON.into() && most < 100.0 * f64::from(f32::EPSILON));
        assert!(SINGLE.close(1.0 + 8.0 * f32::EPSILON, &expected).is_ok());
        assert!(SINGLE.close(1.0 + 80.0 * f32::EPSILON, &expected).is_err());
        assert!(SINGLE.close(f32::NAN, &expected).is_err());
        // Errors of one rounding of the storage type are allowed, subnormal numbers included.
        assert!(SINGLE.close(f16::from_f32(1.0009766), &expected).is_err());
        assert!(SINGLE.close(f16::from_bits(1), &sum(8e-8, 1)).is_ok());
        // Factors rounded to 11 bits.
        assert!(Rounding { factors: 1.0 / 1024.0, ..SINGLE }.close(1.0009_f32, &expected).is_ok());
    }

    #[test]
    fn infinities_are_those_that_are_expected() {
        let infinite = sum(f64::INFINITY, 1);
        assert!(SINGLE.close(f32::INFINITY, &infinite).is_ok());
        for other in [f32::NEG_INFINITY, f32::NAN, f32::MAX] {
            assert!(SINGLE.close(other, &infinite).is_err(), "{other}");
        }
        assert!(SINGLE.close(f32::NAN, &sum(f64::NAN, 1)).is_ok());
        let infinite = sum(Complex64::new(f64::INFINITY, 0.0), 1);
        assert!(SINGLE.close(Complex64::new(f64::NAN, f64::NAN), &infinite).is_ok());
        assert!(SINGLE.close(Complex64::new(1.0, 0.0), &infinite).is_err());
    }
}

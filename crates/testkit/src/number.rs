//! Number types: the stored ones, and the wide ones of the naive products.

use std::fmt::Debug;
use std::ops::{Add, AddAssign, Mul, Sub};

use bytemuck::Pod;
use half::{bf16, f16};
use matrices::SplitMix64;
use num_complex::{Complex32, Complex64};

/// Number type of the naive products: f64 or complex f64. Real types must not be computed with complex
/// numbers: 0 · Inf in an imaginary part would turn an Inf into NaN.
pub trait Wide:
    Copy + Debug + PartialEq + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self> + AddAssign
{
    /// True if numbers of this type have an imaginary part.
    const IS_COMPLEX: bool;
    /// Makes a number of its real and imaginary part; a real type drops the imaginary part.
    fn new(re: f64, im: f64) -> Self;
    /// Returns the real and the imaginary part.
    fn parts(self) -> [f64; 2];
    /// Returns the complex conjugate.
    fn conjugate(self) -> Self;

    /// Returns 0.
    fn zero() -> Self {
        Self::new(0.0, 0.0)
    }
    /// Returns the absolute value.
    fn magnitude(self) -> f64 {
        match self.parts() {
            [re, 0.0] => re.abs(),
            [re, im] => re.hypot(im),
        }
    }
    /// Returns whether no part is Inf or NaN.
    fn is_finite(self) -> bool {
        self.parts().iter().all(|part| part.is_finite())
    }
}

impl Wide for f64 {
    const IS_COMPLEX: bool = false;
    fn new(re: f64, _im: f64) -> Self {
        re
    }
    fn parts(self) -> [f64; 2] {
        [self, 0.0]
    }
    fn conjugate(self) -> Self {
        self
    }
}

impl Wide for Complex64 {
    const IS_COMPLEX: bool = true;
    fn new(re: f64, im: f64) -> Self {
        Complex64::new(re, im)
    }
    fn parts(self) -> [f64; 2] {
        [self.re, self.im]
    }
    fn conjugate(self) -> Self {
        self.conj()
    }
}

/// A number type of stored values.
pub trait Number: Pod + Debug + PartialEq + Send + Sync {
    /// The wider type in which the naive products are computed.
    type Wide: Wide;
    /// Half the distance from 1 to the next number: the largest error of one rounding, relative to a number
    /// that is not subnormal.
    const ROUNDOFF: f64;
    /// The smallest positive number: the largest error of one rounding of a subnormal number.
    const TINY: f64;
    /// Converts exactly to the wide type.
    fn widen(self) -> Self::Wide;
    /// Converts from the wide type; the result need not be correctly rounded.
    fn narrow(wide: Self::Wide) -> Self;

    /// Returns a NaN, in every part.
    fn nan() -> Self {
        Self::narrow(Self::Wide::new(f64::NAN, f64::NAN))
    }
    /// Returns a random number with a full mantissa, every part uniform in [−1, 1).
    fn random(rng: &mut SplitMix64) -> Self {
        Self::narrow(Self::Wide::new(rng.value(), rng.value()))
    }
}

macro_rules! real_values {
    ($($ty:ty, $epsilon:expr, $tiny:expr, $widen:expr, $narrow:expr;)*) => { $(
        impl Number for $ty {
            type Wide = f64;
            const ROUNDOFF: f64 = $epsilon / 2.0;
            const TINY: f64 = $tiny;
            fn widen(self) -> f64 {
                ($widen)(self)
            }
            fn narrow(wide: f64) -> Self {
                ($narrow)(wide)
            }
        }
    )* };
}
// Epsilons and smallest positive numbers are powers of two that follow from the formats: 53, 24, 11, 8
// significant bits; least exponents −1074, −149, −24, −133.
real_values! {
    f64, f64::EPSILON, f64::from_bits(1), |v| v, |w| w;
    f32, f32::EPSILON as f64, f32::from_bits(1) as f64, f64::from, |w: f64| w as f32;
    f16, 0.0009765625, 5.960464477539063e-8, |v: f16| f64::from(v.to_f32()), |w: f64| f16::from_f32(w as f32);
    bf16, 0.0078125, 9.183549615799121e-41, |v: bf16| f64::from(v.to_f32()), |w: f64| bf16::from_f32(w as f32);
}

impl Number for Complex64 {
    type Wide = Complex64;
    const ROUNDOFF: f64 = f64::ROUNDOFF;
    const TINY: f64 = f64::TINY;
    fn widen(self) -> Complex64 {
        self
    }
    fn narrow(wide: Complex64) -> Self {
        wide
    }
}

impl Number for Complex32 {
    type Wide = Complex64;
    const ROUNDOFF: f64 = f32::ROUNDOFF;
    const TINY: f64 = f32::TINY;
    fn widen(self) -> Complex64 {
        Complex64::new(f64::from(self.re), f64::from(self.im))
    }
    fn narrow(wide: Complex64) -> Self {
        Complex32::new(wide.re as f32, wide.im as f32)
    }
}

/// Returns the bytes of a slice, which tests compare to check that results have the same bits.
pub fn bits<V: Pod>(values: &[V]) -> &[u8] {
    bytemuck::cast_slice(values)
}

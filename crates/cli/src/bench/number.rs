//! The precisions that are timed, and the seeded operands.

use half::{bf16, f16};
use matrices::SplitMix64;
use rayon::prelude::*;
use tarsia::facade::{Accumulator, ComputeType, Storage};

/// A combination of types that is timed, as in the column `precision`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Precision {
    /// 64-bit
    F64,
    /// 32-bit
    F32,
    /// 32-bit, factors rounded to TF32 (SpMM only)
    Tf32,
    /// 16-bit, summed in 32 bits
    F16,
    /// 16-bit (bfloat), summed in 32 bits
    Bf16,
}

impl Precision {
    /// Name in the tables, such as `f64`.
    pub fn name(self) -> &'static str {
        self.compute_name().1
    }

    /// Type of the sums.
    pub fn compute(self) -> ComputeType {
        self.compute_name().0
    }

    fn compute_name(self) -> (ComputeType, &'static str) {
        match self {
            Precision::F64 => (ComputeType::R64F, "f64"),
            Precision::F32 => (ComputeType::R32F, "f32"),
            Precision::Tf32 => (ComputeType::Tf32, "tf32"),
            Precision::F16 => (ComputeType::R32F, "f16"),
            Precision::Bf16 => (ComputeType::R32F, "bf16"),
        }
    }

    /// Relative error of a product before it is summed. TF32 has 11 significant bits, and hardware may cut
    /// off the others: each factor has a relative error below 2⁻¹⁰.
    pub fn factor_error(self) -> f64 {
        match self {
            Precision::Tf32 => 2.0 * 2f64.powi(-10) + 2f64.powi(-20),
            _ => 0.0,
        }
    }
}

/// A storage type of operands and results.
pub trait Number: Storage<Self::Sum> {
    /// Type in which products are summed, and type of alpha and beta.
    type Sum: Accumulator + client::Scalar;
    /// Distance from 1 to the next number, in the type of the sums.
    const SUM_EPS: f64;
    /// Largest relative error of the store, half the distance from 1 to the next number; 0 if sums have the
    /// same type.
    const STORE: f64;
    /// Largest absolute error if the result, or a product, is below the normal numbers.
    const TINY: f64;
    /// Converts to the nearest number of this type.
    fn narrow(value: f64) -> Self;
    /// Converts to f64, exactly.
    fn wide(self) -> f64;
}

macro_rules! numbers {
    ($($ty:ty, $sum:ty, $eps:expr, $store:expr, $tiny:expr, $narrow:expr, $wide:expr;)*) => { $(
        impl Number for $ty {
            type Sum = $sum;
            const SUM_EPS: f64 = $eps;
            const STORE: f64 = $store;
            const TINY: f64 = $tiny;
            fn narrow(value: f64) -> Self {
                ($narrow)(value)
            }
            fn wide(self) -> f64 {
                ($wide)(self)
            }
        }
    )* };
}
// bfloat16 has the exponents of f32, so f32's smallest number covers its rounding there.
numbers! {
    f64, f64, f64::EPSILON, 0.0, f64::MIN_POSITIVE, |v| v, |v| v;
    f32, f32, f32::EPSILON as f64, 0.0, f32::MIN_POSITIVE as f64, |v| v as f32, f64::from;
    f16, f32, f32::EPSILON as f64, 1.0 / 2048.0, 1.0 / 33_554_432.0, f16::from_f64, f16::to_f64;
    bf16, f32, f32::EPSILON as f64, 1.0 / 256.0, f32::MIN_POSITIVE as f64, bf16::from_f64, bf16::to_f64;
}

/// Returns element `at` of the sequence of `seed`: ±[0.5, 1) with 52 random bits behind the first. It depends
/// on nothing else, so elements can be computed in any order.
pub fn value(seed: u64, at: u64) -> f64 {
    // Weyl's sequence under the mixer of SplitMix64, entered at any position.
    let bits = SplitMix64::new(seed.wrapping_add(at.wrapping_mul(0x9e37_79b9_7f4a_7c15))).next_u64();
    let (sign, mantissa) = (bits & (1 << 63), bits & ((1 << 52) - 1));
    f64::from_bits(sign | (1022 << 52) | mantissa)
}

/// Kind of A's values: a plan may store values in fewer bytes if they fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Values {
    /// Full mantissas
    Full,
    /// Rounded to 32 bits
    F32,
    /// Rounded to 16 bits
    F16,
    /// All 1: a graph
    Ones,
}

impl Values {
    /// Element `at` of the sequence of `seed`.
    pub fn at(self, seed: u64, at: u64) -> f64 {
        let value = value(seed, at);
        match self {
            Values::Full => value,
            Values::F32 => f64::from(value as f32),
            Values::F16 => f16::from_f64(value).to_f64(),
            Values::Ones => 1.0,
        }
    }

    /// Ending of matrices' names in tables.
    pub fn suffix(self) -> &'static str {
        match self {
            Values::Full => "",
            Values::F32 => ":f32",
            Values::F16 => ":f16",
            Values::Ones => ":ones",
        }
    }
}

/// Returns the first `len` elements of the sequence of `seed`.
pub fn values<T: Number>(seed: u64, len: usize) -> crate::Result<Vec<T>> {
    let mut out = room(len)?;
    out.par_extend((0..len as u64).into_par_iter().map(|at| T::narrow(value(seed, at))));
    Ok(out)
}

/// Returns `len` NaNs, so that elements which nobody writes are noticed.
pub fn blank<T: Number>(len: usize) -> crate::Result<Vec<T>> {
    filled(len, T::narrow(f64::NAN))
}

/// Returns `len` copies of a value.
pub fn filled<T: Copy>(len: usize, value: T) -> crate::Result<Vec<T>> {
    let mut out = room(len)?;
    out.resize(len, value);
    Ok(out)
}

/// Reserves room for `len` elements; running out of memory is an error and does not end the program.
pub fn room<T>(len: usize) -> crate::Result<Vec<T>> {
    let mut out = Vec::new();
    out.try_reserve_exact(len)
        .map_err(|_| format!("out of memory: {len} values of {} bytes were refused", size_of::<T>()))?;
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_seeded_and_full() {
        let found: Vec<f64> = values(3, 1000).unwrap();
        assert!(found.iter().all(|v| (0.5..1.0).contains(&v.abs())));
        let negative = found.iter().filter(|v| **v < 0.0).count();
        assert!((400..600).contains(&negative), "{negative}");
        assert!(found.iter().filter(|v| v.to_bits() & 1 == 1).count() > 400);
        assert_eq!(values::<f64>(3, 10).unwrap(), found[..10]);
        assert_ne!(values::<f64>(4, 10).unwrap(), found[..10]);
    }

    #[test]
    fn values_fit_what_was_asked_for() {
        for at in 0..100 {
            let [full, single, half, one] =
                [Values::Full, Values::F32, Values::F16, Values::Ones].map(|values| values.at(1, at));
            assert_eq!((full, one), (value(1, at), 1.0));
            assert!(f64::from(single as f32) == single && single != full);
            assert!(f16::from_f64(half).to_f64() == half && half != single);
            assert!((single - full).abs() < 1e-7 && (half - full).abs() < 1e-3);
        }
    }
}

//! The oracle's arithmetic: f64 for real types, complex f64 for complex ones.
//! Stored values are widened exactly; a result is rounded once, at the store.

use std::fmt::Debug;
use std::ops::{Add, AddAssign, Mul};

use bytemuck::Pod;
use half::{bf16, f16};
use num_complex::Complex64;

use super::arrays::{Place, Values};
use crate::error::Result;
use crate::types::{Address, ComputeType, Operation};

/// A number that the oracle computes with.
pub(super) trait Number:
    Pod + Send + Sync + Debug + PartialEq + Add<Output = Self> + Mul<Output = Self> + AddAssign
{
    /// 0.
    const ZERO: Self;
    /// Complex conjugate; a real number is its own.
    fn conjugate(self) -> Self;
    /// Of a stored value.
    fn of(value: Complex64) -> Self;
    /// As a value that is stored.
    fn value(self) -> Complex64;
}

/// Whether products of this type are formed with [`Complex64`]. Real ones must
/// not be: 0·Inf in an imaginary part would turn an Inf into NaN.
pub(super) fn is_complex(compute: ComputeType) -> bool {
    compute.scalar().is_complex()
}

impl Number for f64 {
    const ZERO: Self = 0.0;

    fn conjugate(self) -> Self {
        self
    }

    fn of(value: Complex64) -> Self {
        value.re
    }

    fn value(self) -> Complex64 {
        self.into()
    }
}

impl Number for Complex64 {
    const ZERO: Self = Complex64::new(0.0, 0.0);

    fn conjugate(self) -> Self {
        self.conj()
    }

    fn of(value: Complex64) -> Self {
        value
    }

    fn value(self) -> Complex64 {
        self
    }
}

/// `half::f16::from_f64` is not used: it goes through f32 (two roundings) or
/// drops the low 32 bits of the f64 before it rounds, as the CPU has it.
pub(super) fn round_to_f16(number: f64) -> f16 {
    f16::from_f32(f32_for_second_rounding(number))
}

/// As [`round_to_f16`].
pub(super) fn round_to_bf16(number: f64) -> bf16 {
    bf16::from_f32(f32_for_second_rounding(number))
}

/// An f32 that rounds to every half type as `number` itself does: `number`, if
/// f32 has it, else of its two neighbours in f32 the one whose last bit is 1.
/// Values of the half types and the middles between them have zeros in the
/// last bits of an f32, so this one is none of them and lies on the side of
/// them where `number` lies.
fn f32_for_second_rounding(number: f64) -> f32 {
    let nearest = number as f32;
    let widened = f64::from(nearest);
    if number.is_nan() || widened == number {
        return nearest;
    }
    // Bits of floats of one sign ascend with their magnitude. f32 overflow
    // gives Inf, whose lower neighbour is the largest f32: it is odd, and
    // larger than all that the half types hold.
    let towards_zero = if widened.abs() > number.abs() { nearest.to_bits() - 1 } else { nearest.to_bits() };
    f32::from_bits(towards_zero | 1)
}

/// alpha or beta: one value of the compute type, in host memory.
pub(super) fn scalar<N: Number>(name: &str, address: Address, compute: ComputeType) -> Result<N> {
    Ok(N::of(Values::read(name, Place::of_scalar(address, compute))?.get(0)))
}

/// A stored value as op uses it.
pub(super) fn stored<N: Number>(values: &Values<&[u8]>, at: usize, op: Operation) -> N {
    let value = N::of(values.get(at));
    if op.conjugates() {
        value.conjugate()
    } else {
        value
    }
}

/// alpha · sum + beta · old. A factor that is 0 takes its term away, and then
/// `old` is not read; the same with alpha is up to the caller, who makes `sum`.
pub(super) fn combine<N: Number>(alpha: N, sum: N, beta: N, old: impl FnOnce() -> N) -> N {
    match (alpha == N::ZERO, beta == N::ZERO) {
        (true, true) => N::ZERO,
        (true, false) => beta * old(),
        (false, true) => alpha * sum,
        (false, false) => alpha * sum + beta * old(),
    }
}

//! The oracle's arithmetic: f64 for real types, complex f64 for complex ones. Stored values are widened
//! exactly; a result is rounded once, when it is stored.

use std::fmt::Debug;
use std::ops::{Add, AddAssign, Mul};

use bytemuck::Pod;
use half::{bf16, f16};
use num_complex::Complex64;

use super::arrays::{Place, Values};
use crate::error::Result;
use crate::types::{Address, ComputeType, Operation};

/// A number type in which the oracle computes.
pub(super) trait Number:
    Pod + Send + Sync + Debug + PartialEq + Add<Output = Self> + Mul<Output = Self> + AddAssign
{
    /// The number 0.
    const ZERO: Self;
    /// Returns the complex conjugate; a real number is its own.
    fn conjugate(self) -> Self;
    /// Converts a stored value.
    fn of(value: Complex64) -> Self;
    /// Converts to a value to store.
    fn value(self) -> Complex64;
}

/// Returns whether products of this type are computed with [`Complex64`]. Real ones must not be: 0·Inf in an
/// imaginary part would turn an Inf into NaN.
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

/// Rounds once to fp16. `half::f16::from_f64` is not used: depending on the CPU it rounds twice (through f32)
/// or drops the low 32 bits of the f64 before it rounds.
pub(super) fn round_to_f16(number: f64) -> f16 {
    f16::from_f32(f32_for_second_rounding(number))
}

/// Rounds once to bf16, as [`round_to_f16`] does to fp16.
pub(super) fn round_to_bf16(number: f64) -> bf16 {
    bf16::from_f32(f32_for_second_rounding(number))
}

/// Returns an f32 that rounds to every 16-bit type as `number` itself does: `number`, if it is an f32,
/// otherwise the one of its two neighbours in f32 whose last bit is 1. Values of the 16-bit types and the
/// midpoints between them have zeros in the last bits of an f32, so the result is none of them and lies on
/// the same side of them as `number`.
fn f32_for_second_rounding(number: f64) -> f32 {
    let nearest = number as f32;
    let widened = f64::from(nearest);
    if number.is_nan() || widened == number {
        return nearest;
    }
    // The bits of floats of one sign ascend with their magnitude. f32 overflow gives Inf, whose lower
    // neighbour is the largest f32: it is odd, and larger than all values of the 16-bit types.
    let towards_zero = if widened.abs() > number.abs() { nearest.to_bits() - 1 } else { nearest.to_bits() };
    f32::from_bits(towards_zero | 1)
}

/// Reads alpha or beta: one value of the compute type in host memory.
pub(super) fn scalar<N: Number>(name: &str, address: Address, compute: ComputeType) -> Result<N> {
    Ok(N::of(Values::read(name, Place::of_scalar(address, compute))?.get(0)))
}

/// Returns a stored value of A as an element of op(A), conjugated if necessary.
pub(super) fn stored<N: Number>(values: &Values<&[u8]>, at: usize, op: Operation) -> N {
    let value = N::of(values.get(at));
    if op.conjugates() {
        value.conjugate()
    } else {
        value
    }
}

/// Returns alpha · sum + beta · old. A zero factor removes its term: if beta is 0, `old` is not called. The
/// caller, who computes `sum`, skips that if alpha is 0.
pub(super) fn combine<N: Number>(alpha: N, sum: N, beta: N, old: impl FnOnce() -> N) -> N {
    match (alpha == N::ZERO, beta == N::ZERO) {
        (true, true) => N::ZERO,
        (true, false) => beta * old(),
        (false, true) => alpha * sum,
        (false, false) => alpha * sum + beta * old(),
    }
}

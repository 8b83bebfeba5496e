//! The oracle's arithmetic: f64 for real types, complex f64 for complex ones.
//! Stored values are widened exactly; a result is rounded once, at the store.

use std::fmt::Debug;
use std::ops::{Add, AddAssign, Mul};

use bytemuck::Pod;
use half::{bf16, f16};
use num_complex::{Complex32, Complex64};

use super::arrays::{Values, ValuesMut};
use crate::error::Result;
use crate::memory;
use crate::types::{Address, ComputeType, DataType, Operation};

/// A number that the oracle computes with.
pub(super) trait Number:
    Pod + Send + Sync + Debug + PartialEq + Add<Output = Self> + Mul<Output = Self> + AddAssign
{
    /// 0.
    const ZERO: Self;
    /// Complex conjugate; a real number is its own.
    fn conjugate(self) -> Self;
    /// The value at a position, exactly.
    fn read(values: &Values<'_>, at: usize) -> Self;
    /// Stores a number at a position, rounded to nearest, ties to even.
    fn write(values: &mut ValuesMut<'_>, at: usize, number: Self);
}

/// Whether products of this type are formed with [`Complex64`]. Real ones must
/// not be: 0·Inf in an imaginary part would turn an Inf into NaN.
pub(super) fn is_complex(compute: ComputeType) -> bool {
    compute.scalar().is_complex()
}

const MIXED: &str = "the support table never mixes real and complex values";

impl Number for f64 {
    const ZERO: Self = 0.0;

    fn conjugate(self) -> Self {
        self
    }

    fn read(values: &Values<'_>, at: usize) -> Self {
        match values {
            Values::R64F(v) => v[at],
            Values::R32F(v) => f64::from(v[at]),
            Values::R16F(v) => f64::from(v[at].to_f32()),
            Values::R16BF(v) => f64::from(v[at].to_f32()),
            Values::C32F(_) | Values::C64F(_) => unreachable!("{MIXED}"),
        }
    }

    fn write(values: &mut ValuesMut<'_>, at: usize, number: Self) {
        match values {
            ValuesMut::R64F(v) => v[at] = number,
            ValuesMut::R32F(v) => v[at] = number as f32,
            ValuesMut::R16F(v) => v[at] = round_to_f16(number),
            ValuesMut::R16BF(v) => v[at] = round_to_bf16(number),
            ValuesMut::C32F(_) | ValuesMut::C64F(_) => unreachable!("{MIXED}"),
        }
    }
}

impl Number for Complex64 {
    const ZERO: Self = Complex64::new(0.0, 0.0);

    fn conjugate(self) -> Self {
        self.conj()
    }

    fn read(values: &Values<'_>, at: usize) -> Self {
        match values {
            Values::C64F(v) => v[at],
            Values::C32F(v) => Complex64::new(f64::from(v[at].re), f64::from(v[at].im)),
            _ => unreachable!("{MIXED}"),
        }
    }

    fn write(values: &mut ValuesMut<'_>, at: usize, number: Self) {
        match values {
            ValuesMut::C64F(v) => v[at] = number,
            ValuesMut::C32F(v) => v[at] = Complex32::new(number.re as f32, number.im as f32),
            _ => unreachable!("{MIXED}"),
        }
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
    fn one<N: Number, T: Pod>(
        name: &str,
        address: Address,
        values: impl FnOnce(&[T; 1]) -> Values<'_>,
    ) -> Result<N> {
        // SAFETY: execute's caller promises one value of the compute type
        // there, which `scalar` has matched; NULL is checked by the callee.
        let value = [unsafe { memory::read_scalar(name, address)? }];
        Ok(N::read(&values(&value), 0))
    }
    match compute.scalar() {
        DataType::R32F => one(name, address, |v| Values::R32F(v)),
        DataType::R64F => one(name, address, |v| Values::R64F(v)),
        DataType::C32F => one(name, address, |v| Values::C32F(v)),
        DataType::C64F => one(name, address, |v| Values::C64F(v)),
        other => unreachable!("no compute type has scalars of {}", other.short()),
    }
}

/// A stored value as op uses it.
pub(super) fn stored<N: Number>(values: &Values<'_>, at: usize, op: Operation) -> N {
    let value = N::read(values, at);
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

//! Types of the stored values in each form.

use bytemuck::{Pod, Zeroable};
use half::{bf16, f16};
use num_complex::{Complex32, Complex64};

use crate::types::{Accumulator, Element, Storage};

/// Type that holds some values of type V, to the bit.
pub trait Holds<V>: Pod + Send + Sync + std::fmt::Debug {
    /// Converts a value that the type can hold.
    fn hold(value: V) -> Self;
    /// Returns the value.
    fn value(self) -> V;
}

/// Value that is 1 and takes no memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct One;

/// Types of a value type's [forms](super::Form); the type itself where it has no such form.
pub trait Narrow: Element + Holds<Self> {
    /// Type of values stored as fp32.
    type Single: Holds<Self>;
    /// Type of values stored as fp16.
    type Half: Holds<Self>;
    /// The number 1.
    const ONE: Self;
}

impl<V: Narrow> Holds<V> for One {
    #[inline(always)]
    fn hold(_: V) -> Self {
        One
    }
    #[inline(always)]
    fn value(self) -> V {
        V::ONE
    }
}

macro_rules! narrow {
    ($($ty:ty: $single:ty, $half:ty, $one:expr;)*) => { $(
        impl Narrow for $ty {
            type Single = $single;
            type Half = $half;
            const ONE: Self = $one;
        }
    )* };
}
narrow! {
    f64: f32, f16, 1.0;
    f32: f32, f16, 1.0;
    f16: f16, f16, f16::ONE;
    bf16: bf16, bf16, bf16::ONE;
    Complex32: Complex32, Complex32, <Complex32 as Accumulator>::ONE;
    Complex64: Complex64, Complex64, <Complex64 as Accumulator>::ONE;
}

macro_rules! hold_themselves {
    ($($ty:ty)*) => { $(impl Holds<$ty> for $ty {
        #[inline(always)]
        fn hold(value: $ty) -> Self { value }
        #[inline(always)]
        fn value(self) -> $ty { self }
    })* };
}
// The last four are words of a value's size, for code that moves values without computing with them.
hold_themselves! { f64 f32 f16 bf16 Complex32 Complex64 One [u16; 1] [u16; 2] [u16; 4] [u16; 8] }

impl Holds<f64> for f32 {
    #[inline(always)]
    fn hold(value: f64) -> Self {
        value as f32
    }
    #[inline(always)]
    fn value(self) -> f64 {
        self.into()
    }
}

impl Holds<f32> for f16 {
    #[inline(always)]
    fn hold(value: f32) -> Self {
        // Inline and without branches, whereas `from_f32` checks at run time what the processor supports.
        const NORMAL: u32 = (127 - 14) << 23;
        const REBIAS: u32 = (127 - 15) << 23;
        let bits = value.to_bits();
        let magnitude = bits & 0x7fff_ffff;
        // The unit in the last place of subnormal fp16, 2^−24, is that of fp32 from 1/2 on.
        let subnormal = (f32::from_bits(magnitude) + 0.5).to_bits().wrapping_sub(0.5_f32.to_bits());
        let normal = magnitude.wrapping_sub(REBIAS) >> 13;
        let held = if magnitude < NORMAL { subnormal } else { normal };
        f16::from_bits((held | bits >> 16 & 0x8000) as u16)
    }
    #[inline(always)]
    fn value(self) -> f32 {
        self.widen()
    }
}

impl Holds<f64> for f16 {
    #[inline(always)]
    fn hold(value: f64) -> Self {
        f16::hold(value as f32)
    }
    #[inline(always)]
    fn value(self) -> f64 {
        f64::from(self.widen())
    }
}

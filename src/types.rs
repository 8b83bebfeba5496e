//! Data types, index types, operations and orders, which all other modules use. The enums are those of the C
//! API; `enums` lists them.

use std::ops::{Add, AddAssign, Mul};

use bytemuck::Pod;
use half::{bf16, f16};
use num_complex::{Complex32, Complex64};

/// Defines the enums of src/types/enums.rs with the values of the C enums, the C name of each value, the list
/// of all values, and the conversion from an unchecked integer.
macro_rules! code_enums {
    ($(
        $(#[$doc:meta])*
        pub enum $name:ident = $c_type:ident {
            $($(#[$value_doc:meta])* $value:ident = $code:literal, $c_name:ident;)*
        }
    )*) => { $(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(i32)]
        pub enum $name { $($(#[$value_doc])* $value = $code,)* }

        impl $name {
            /// All values, in the order of declaration.
            pub const ALL: &'static [$name] = &[$($name::$value,)*];

            /// Returns the enum value with this number; `None` if there is none.
            pub fn from_code(code: i32) -> Option<Self> {
                match code { $($code => Some($name::$value),)* _ => None }
            }

            /// Returns the number in the C enum.
            pub fn code(self) -> i32 { self as i32 }

            /// Returns the name of the C enumerator.
            pub fn c_name(self) -> &'static str {
                self.c_string().trim_end_matches('\0')
            }

            /// Returns the name of the C enumerator, terminated by 0.
            pub fn c_string(self) -> &'static str {
                match self { $($name::$value => concat!(stringify!($c_name), "\0"),)* }
            }
        }
    )* };
}

pub mod enums;

pub use enums::*;

impl DataType {
    /// Returns the bytes of one value.
    #[inline]
    pub fn size(self) -> usize {
        match self {
            DataType::R8I => 1,
            DataType::R16F | DataType::R16BF => 2,
            DataType::R32F | DataType::R32I => 4,
            DataType::R64F | DataType::C32F => 8,
            DataType::C64F => 16,
        }
    }

    /// Returns the alignment in bytes that a pointer to values must have.
    pub fn align(self) -> usize {
        match self {
            DataType::C32F => 4,
            DataType::C64F => 8,
            other => other.size(),
        }
    }

    /// Returns whether values have an imaginary part.
    pub const fn is_complex(self) -> bool {
        matches!(self, DataType::C32F | DataType::C64F)
    }

    /// Returns a short name such as `fp64`, `bf16` or `complex fp32`.
    pub fn short(self) -> &'static str {
        match self {
            DataType::R32F => "fp32",
            DataType::R64F => "fp64",
            DataType::R16F => "fp16",
            DataType::R8I => "int8",
            DataType::C32F => "complex fp32",
            DataType::C64F => "complex fp64",
            DataType::R32I => "int32",
            DataType::R16BF => "bf16",
        }
    }
}

impl ComputeType {
    /// Returns the type of alpha and beta.
    #[inline]
    pub fn scalar(self) -> DataType {
        match self {
            ComputeType::R32F | ComputeType::Tf32 | ComputeType::R32FPedantic => DataType::R32F,
            ComputeType::R64F | ComputeType::R64FPedantic => DataType::R64F,
            ComputeType::C32F => DataType::C32F,
            ComputeType::C64F => DataType::C64F,
        }
    }

    /// Returns the compute type without pedantic: kernels have no pedantic types, which only restrict the
    /// choice of kernels.
    #[inline]
    pub fn plain(self) -> Self {
        match self {
            ComputeType::R32FPedantic => ComputeType::R32F,
            ComputeType::R64FPedantic => ComputeType::R64F,
            other => other,
        }
    }

    /// Returns the pedantic form of this compute type (IEEE operations alone), if it has one.
    pub fn pedantic(self) -> Option<Self> {
        match self.plain() {
            ComputeType::R32F => Some(ComputeType::R32FPedantic),
            ComputeType::R64F => Some(ComputeType::R64FPedantic),
            _ => None,
        }
    }

    /// Returns whether only IEEE operations are allowed.
    pub fn is_pedantic(self) -> bool {
        self != self.plain()
    }

    /// Returns a short name for tables.
    pub fn short(self) -> &'static str {
        match self {
            ComputeType::Tf32 => "tf32",
            ComputeType::R32FPedantic => "fp32 pedantic",
            ComputeType::R64FPedantic => "fp64 pedantic",
            other => other.scalar().short(),
        }
    }
}

impl IndexType {
    /// Returns 1 for 64-bit indices and 0 otherwise, the form in which kernels take it.
    pub fn wide(self) -> i64 {
        i64::from(self == IndexType::I64)
    }

    /// Returns the bytes of one index.
    pub fn size(self) -> usize {
        match self {
            IndexType::U16 => 2,
            IndexType::I32 => 4,
            IndexType::I64 => 8,
        }
    }

    /// Returns the largest representable index.
    pub fn max(self) -> i64 {
        match self {
            IndexType::U16 => u16::MAX as i64,
            IndexType::I32 => i32::MAX as i64,
            IndexType::I64 => i64::MAX,
        }
    }
}

impl Operation {
    /// Returns whether the operation swaps rows and columns.
    pub fn transposes(self) -> bool {
        self != Operation::NonTranspose
    }

    /// Returns whether the operation conjugates values.
    pub fn conjugates(self) -> bool {
        self == Operation::ConjugateTranspose
    }

    /// Returns the operation that yields the transpose of op(A), up to conjugation.
    pub fn flipped(self) -> Operation {
        match self.transposes() {
            true => Operation::NonTranspose,
            false => Operation::Transpose,
        }
    }

    /// Returns (rows, columns) of op(A) for an A of this shape.
    pub fn shape(self, rows: i64, cols: i64) -> (i64, i64) {
        if self.transposes() {
            (cols, rows)
        } else {
            (rows, cols)
        }
    }
}

impl Format {
    /// Returns a short name such as `CSR` or `CSC`.
    pub fn short(self) -> &'static str {
        match self {
            Format::Csr => "CSR",
            Format::Csc => "CSC",
            Format::Coo => "COO",
            Format::Bsr => "BSR",
            Format::Tile => "tile",
        }
    }
}

impl Reorder {
    /// Returns whether rows are put in an order other than A's by request: a named one, or the learned
    /// choice.
    pub fn is_named(self) -> bool {
        !matches!(self, Reorder::Auto | Reorder::None)
    }
}

/// A number of one of the data types.
pub trait Element: Pod + Send + Sync + Default + PartialEq + std::fmt::Debug {
    /// The data type.
    const TYPE: DataType;
    /// Returns the complex conjugate; a real number is its own.
    #[inline(always)]
    fn conjugate(self) -> Self {
        self
    }
}

/// A number type in which products are summed.
pub trait Accumulator: Element + Add<Output = Self> + Mul<Output = Self> + AddAssign + Storage<Self> {
    /// The number 0.
    const ZERO: Self;
    /// The number 1.
    const ONE: Self;
    /// Returns the sum with a product. Of real numbers the product is not rounded by itself on processors that all
    /// have an instruction for that (AArch64).
    #[inline(always)]
    fn plus_product(self, a: Self, b: Self) -> Self {
        self + a * b
    }
}

/// A storage type with an exact conversion to, and one rounding from, the accumulator `Acc`.
pub trait Storage<Acc>: Element {
    /// Converts exactly to the accumulator.
    fn widen(self) -> Acc;
    /// Rounds once (to nearest, ties to even) to the storage type.
    fn round(acc: Acc) -> Self;
}

/// Implements [`Element`] for value types; complex ones name their method for the conjugate.
macro_rules! elements {
    ($($ty:ty => $code:ident $(, $conjugate:ident)?;)*) => { $(impl Element for $ty {
        const TYPE: DataType = DataType::$code;
        $(#[inline(always)]
        fn conjugate(self) -> Self { self.$conjugate() })?
    })* };
}
elements! { f32 => R32F; f64 => R64F; f16 => R16F; bf16 => R16BF; Complex32 => C32F, conj; Complex64 => C64F, conj; }

/// Implements [`Accumulator`] with its 0 and 1, and for real numbers the method that fuses, and [`Storage`] for the
/// types that are stored from it.
macro_rules! accumulator {
    ($acc:ty, $zero:expr, $one:expr $(, $mul_add:ident)?; $($storage:ty, $widen:expr, $round:expr;)*) => {
        impl Accumulator for $acc {
            const ZERO: Self = $zero;
            const ONE: Self = $one;
            $(#[cfg(target_arch = "aarch64")]
            #[inline(always)]
            fn plus_product(self, a: Self, b: Self) -> Self { a.$mul_add(b, self) })?
        }
        $(impl Storage<$acc> for $storage {
            #[inline(always)]
            fn widen(self) -> $acc { ($widen)(self) }
            #[inline(always)]
            fn round(acc: $acc) -> Self { ($round)(acc) }
        })*
    };
}
accumulator! { f64, 0.0, 1.0, mul_add; f64, |v| v, |v| v; f32, f64::from, |v: f64| v as f32; }
accumulator! {
    f32, 0.0, 1.0, mul_add; f32, |v| v, |v| v; f16, widen_half, round_half; bf16, bf16::to_f32, round_bfloat;
}
accumulator! { Complex32, Complex32::new(0.0, 0.0), Complex32::new(1.0, 0.0); Complex32, |v| v, |v| v; }
accumulator! { Complex64, Complex64::new(0.0, 0.0), Complex64::new(1.0, 0.0); Complex64, |v| v, |v| v; }

/// Converts like `f16::to_f32`, which calls a function per value, but in a form that inlines and vectorises
/// (F. Giesen, half_to_float). No subnormal f32 occurs on the way, so a caller's flush-to-zero mode changes
/// nothing.
#[inline(always)]
fn widen_half(half: f16) -> f32 {
    const SHIFT: u32 = f32::MANTISSA_DIGITS - 11;
    const EXPONENT: u32 = 0x7c00 << SHIFT;
    // The exponent's bias is 127 in f32 and 15 in f16.
    const REBIAS: u32 = (127 - 15) << 23;
    let bits = u32::from(half.to_bits());
    let magnitude = (bits & 0x7fff) << SHIFT;
    // All ones if the condition holds; computed by arithmetic, since a compiler may turn selects into
    // branches.
    let mask = |holds: bool| u32::from(holds).wrapping_neg();
    let (tiny, special) = (mask(magnitude < 1 << 23), mask(magnitude >= EXPONENT));
    let rebiased = magnitude + REBIAS;
    // 1.m · 2^-14 − 1 · 2^-14 = 0.m · 2^-14
    let subnormal = (f32::from_bits(rebiased + (1 << 23)) - f32::from_bits(REBIAS + (1 << 23))).to_bits();
    // Inf and NaN keep the largest exponent.
    let normal = rebiased + (REBIAS & special);
    f32::from_bits((subnormal & tiny) | (normal & !tiny) | (bits & 0x8000) << 16)
}

/// Converts like `f16::from_f32`, which calls a function per value, but in a form that inlines and vectorises
/// (F. Giesen, float_to_half_fast3_rtne): it rounds to nearest, ties to even. A subnormal f32 is added to 1/2, far below
/// whose last place it is, so that a caller's flush-to-zero mode changes nothing.
#[inline(always)]
fn round_half(single: f32) -> f16 {
    const SHIFT: u32 = f32::MANTISSA_DIGITS - 11;
    // The exponent's bias is 127 in f32 and 15 in f16.
    const REBIAS: u32 = (127 - 15) << 23;
    const LEAST_NORMAL: u32 = (127 - 14) << 23;
    const INFINITY: u32 = 0x7c00;
    let bits = single.to_bits();
    let magnitude = bits & 0x7fff_ffff;
    // The unit in the last place of subnormal f16, 2^-24, is that of f32 from 1/2 on, so that the sum is rounded to it.
    let subnormal = (f32::from_bits(magnitude) + 0.5).to_bits().wrapping_sub(0.5_f32.to_bits());
    // Half a unit less one, and one more where the last kept bit is set. A carry may go on into the exponent.
    let half_unit = (1 << (SHIFT - 1)) - 1 + (magnitude >> SHIFT & 1);
    let normal = (magnitude.wrapping_add(half_unit).wrapping_sub(REBIAS) >> SHIFT).min(INFINITY);
    // A NaN stays one, with the first bits of its payload.
    let nan = INFINITY | 0x200 | magnitude >> SHIFT & 0x3ff;
    let finite = if magnitude < LEAST_NORMAL { subnormal } else { normal };
    let rounded = if magnitude > f32::INFINITY.to_bits() { nan } else { finite };
    f16::from_bits((rounded | bits >> 16 & 0x8000) as u16)
}

/// Converts like `bf16::from_f32`, but by selects in place of branches, so that it vectorises: to nearest, ties to even.
#[inline(always)]
fn round_bfloat(single: f32) -> bf16 {
    let bits = single.to_bits();
    // Half a unit less one, and one more where the last kept bit is set. A carry may go on into the exponent.
    let finite = bits.wrapping_add(0x7fff + (bits >> 16 & 1)) >> 16;
    // A NaN stays one, with the first bits of its payload.
    let nan = bits >> 16 | 0x40;
    let is_nan = bits & 0x7fff_ffff > f32::INFINITY.to_bits();
    bf16::from_bits(if is_nan { nan } else { finite } as u16)
}

/// A signed integer type of index arrays.
pub trait Index: Pod + Send + Sync + Ord + std::fmt::Debug {
    /// The index type.
    const TYPE: IndexType;
    /// Converts exactly.
    fn to_i64(self) -> i64;
    /// Converts a value that is known to fit.
    fn from_i64(value: i64) -> Self;
}

impl Index for i32 {
    const TYPE: IndexType = IndexType::I32;
    #[inline(always)]
    fn to_i64(self) -> i64 {
        self as i64
    }
    #[inline(always)]
    fn from_i64(value: i64) -> Self {
        debug_assert!(i32::try_from(value).is_ok());
        value as i32
    }
}

impl Index for i64 {
    const TYPE: IndexType = IndexType::I64;
    #[inline(always)]
    fn to_i64(self) -> i64 {
        self
    }
    #[inline(always)]
    fn from_i64(value: i64) -> Self {
        value
    }
}

/// An address in the memory of a backend. Only backends turn it back into a pointer; all other code passes it
/// on, so it is `Send`, `Sync` and safe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(transparent)]
pub struct Address(usize);

/// Addresses of alpha and beta.
pub type ScalarsAt = (Address, Address);

impl Address {
    /// The NULL address.
    pub const NULL: Address = Address(0);

    /// Returns the address of a pointer.
    pub fn new<T: ?Sized>(pointer: *const T) -> Self {
        Address(pointer.cast::<u8>().expose_provenance())
    }

    /// Returns the address as a pointer.
    pub fn as_ptr<T>(self) -> *const T {
        std::ptr::with_exposed_provenance(self.0)
    }

    /// Returns the address as a pointer for writing.
    #[inline(always)]
    pub fn as_mut_ptr<T>(self) -> *mut T {
        std::ptr::with_exposed_provenance_mut(self.0)
    }

    /// Returns whether the address is NULL.
    pub fn is_null(self) -> bool {
        self.0 == 0
    }

    /// Returns the address as a number.
    pub fn value(self) -> usize {
        self.0
    }

    /// Returns the address this many bytes further on.
    pub fn offset(self, bytes: usize) -> Address {
        Address(self.0 + bytes)
    }

    /// Returns the start of an array of which only the elements from `bytes` on are stored, at this address.
    /// NULL stays NULL.
    pub fn rebased(self, bytes: usize) -> Address {
        Address(if self.0 == 0 { 0 } else { self.0.wrapping_sub(bytes) })
    }

    /// Returns whether the address is a multiple of `align`.
    pub fn is_aligned(self, align: usize) -> bool {
        self.0 % align == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_half_widens_exactly() {
        for bits in 0..=u16::MAX {
            let half = f16::from_bits(bits);
            let (found, expected) = (Storage::<f32>::widen(half), half.to_f32());
            if half.is_nan() {
                assert!(found.is_nan());
            } else {
                assert_eq!(found.to_bits(), expected.to_bits(), "{bits:#x}");
            }
        }
    }

    /// Each half, the numbers half-way to the next one and beside those, and numbers all over the range.
    #[test]
    fn singles_are_rounded_to_the_nearest_half_and_bfloat() {
        let check = |single: f32| {
            let (found, expected) = (<f16 as Storage<f32>>::round(single), f16::from_f32(single));
            assert_eq!(found.to_bits(), expected.to_bits(), "{single:e}, {:#x}", single.to_bits());
            let (found, expected) = (<bf16 as Storage<f32>>::round(single), bf16::from_f32(single));
            assert_eq!(found.to_bits(), expected.to_bits(), "{single:e}, {:#x}", single.to_bits());
        };
        for bits in 0..0x7c00 {
            let [half, next] = [bits, bits + 1].map(|bits| f16::from_bits(bits).to_f32());
            // Beyond the largest half, halves would go on at the same distance.
            let next = if next.is_infinite() { 65536.0 } else { next };
            let between = half + (next - half) / 2.0;
            for bits in [half, between].map(f32::to_bits) {
                for bits in bits.saturating_sub(1)..=bits + 1 {
                    check(f32::from_bits(bits));
                    check(-f32::from_bits(bits));
                }
            }
        }
        // Each bfloat, the numbers half-way to the next one, and beside those.
        for upper in 0..=u32::from(u16::MAX) {
            for lower in [0, 1, 0x7fff, 0x8000, 0x8001, 0xffff] {
                check(f32::from_bits(upper << 16 | lower));
            }
        }
    }
}

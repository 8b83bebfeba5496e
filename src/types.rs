//! Data types, index types, operations, orders: the vocabulary that every
//! other module shares. The enums are those of the C API; `enums` lists them.

use std::ops::{Add, AddAssign, Mul};

use bytemuck::Pod;
use half::{bf16, f16};
use num_complex::{Complex32, Complex64};

/// Makes the enums of src/types/enums.rs: their values are the ones of the C enums, with the C name of
/// each, the list of all, and the conversion from an unchecked integer.
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
            /// Every value, in the order of declaration.
            pub const ALL: &'static [$name] = &[$($name::$value,)*];

            /// The value with this number, if there is one.
            pub fn from_code(code: i32) -> Option<Self> {
                match code { $($code => Some($name::$value),)* _ => None }
            }

            /// The number in the C enum.
            pub fn code(self) -> i32 { self as i32 }

            /// The name of the C enumerator.
            pub fn c_name(self) -> &'static str {
                self.c_string().trim_end_matches('\0')
            }

            /// The same, ended by 0.
            pub fn c_string(self) -> &'static str {
                match self { $($name::$value => concat!(stringify!($c_name), "\0"),)* }
            }
        }
    )* };
}

pub mod enums;

pub use enums::*;

impl DataType {
    /// Bytes of one value.
    pub fn size(self) -> usize {
        match self {
            DataType::R8I => 1,
            DataType::R16F | DataType::R16BF => 2,
            DataType::R32F | DataType::R32I => 4,
            DataType::R64F | DataType::C32F => 8,
            DataType::C64F => 16,
        }
    }

    /// Alignment that a pointer to values must have, in bytes.
    pub fn align(self) -> usize {
        match self {
            DataType::C32F => 4,
            DataType::C64F => 8,
            other => other.size(),
        }
    }

    /// Whether values have an imaginary part.
    pub fn is_complex(self) -> bool {
        matches!(self, DataType::C32F | DataType::C64F)
    }

    /// Short name: `fp64`, `bf16`, `complex fp32` ….
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
    /// Type of alpha and beta.
    pub fn scalar(self) -> DataType {
        match self {
            ComputeType::R32F | ComputeType::Tf32 | ComputeType::R32FPedantic => DataType::R32F,
            ComputeType::R64F | ComputeType::R64FPedantic => DataType::R64F,
            ComputeType::C32F => DataType::C32F,
            ComputeType::C64F => DataType::C64F,
        }
    }

    /// The type that kernels have: what is pedantic is a matter of which of them may be chosen.
    pub fn plain(self) -> Self {
        match self {
            ComputeType::R32FPedantic => ComputeType::R32F,
            ComputeType::R64FPedantic => ComputeType::R64F,
            other => other,
        }
    }

    /// The same by IEEE operations alone, for types that have it.
    pub fn pedantic(self) -> Option<Self> {
        match self.plain() {
            ComputeType::R32F => Some(ComputeType::R32FPedantic),
            ComputeType::R64F => Some(ComputeType::R64FPedantic),
            _ => None,
        }
    }

    /// Whether IEEE operations alone are asked for.
    pub fn is_pedantic(self) -> bool {
        self != self.plain()
    }

    /// Short name for tables.
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
    /// 1 for numbers of 64 bits, else 0, as kernels are told.
    pub fn wide(self) -> i64 {
        i64::from(self == IndexType::I64)
    }

    /// Bytes of one index.
    pub fn size(self) -> usize {
        match self {
            IndexType::U16 => 2,
            IndexType::I32 => 4,
            IndexType::I64 => 8,
        }
    }

    /// Largest value that fits.
    pub fn max(self) -> i64 {
        match self {
            IndexType::U16 => u16::MAX as i64,
            IndexType::I32 => i32::MAX as i64,
            IndexType::I64 => i64::MAX,
        }
    }
}

impl Operation {
    /// Whether rows and columns change places.
    pub fn transposes(self) -> bool {
        self != Operation::NonTranspose
    }

    /// Whether values are conjugated.
    pub fn conjugates(self) -> bool {
        self == Operation::ConjugateTranspose
    }

    /// What gives the transpose, but for conjugates.
    pub fn flipped(self) -> Operation {
        match self.transposes() {
            true => Operation::NonTranspose,
            false => Operation::Transpose,
        }
    }

    /// (rows, columns) of op(A) for A of this shape.
    pub fn shape(self, rows: i64, cols: i64) -> (i64, i64) {
        if self.transposes() {
            (cols, rows)
        } else {
            (rows, cols)
        }
    }
}

impl Format {
    /// `CSR`, `CSC` ….
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
    /// Whether it asks for rows in an order of their own: of a name, or the one that is predicted to be the fastest.
    pub fn is_named(self) -> bool {
        !matches!(self, Reorder::Auto | Reorder::None)
    }
}

/// A plain value of one of the data types.
pub trait Element: Pod + Send + Sync + Default + PartialEq + std::fmt::Debug {
    /// Its code.
    const TYPE: DataType;
    /// Complex conjugate; a real number is its own.
    #[inline(always)]
    fn conjugate(self) -> Self {
        self
    }
}

/// A type in which sums are formed.
pub trait Accumulator: Element + Add<Output = Self> + Mul<Output = Self> + AddAssign + Storage<Self> {
    /// 0.
    const ZERO: Self;
    /// 1.
    const ONE: Self;
}

/// A storage type that widens to, and is rounded once from, accumulator `Acc`.
pub trait Storage<Acc>: Element {
    /// Exact conversion to the accumulator.
    fn widen(self) -> Acc;
    /// One rounding (to nearest, ties to even) to the storage type.
    fn round(acc: Acc) -> Self;
}

/// Types of values: each with its code and, of a complex one, its conjugate.
macro_rules! elements {
    ($($ty:ty => $code:ident $(, $conjugate:ident)?;)*) => { $(impl Element for $ty {
        const TYPE: DataType = DataType::$code;
        $(#[inline(always)]
        fn conjugate(self) -> Self { self.$conjugate() })?
    })* };
}
elements! { f32 => R32F; f64 => R64F; f16 => R16F; bf16 => R16BF; Complex32 => C32F, conj; Complex64 => C64F, conj; }

/// An accumulator with its 0 and 1, and the types that are stored of it: how each widens and is rounded.
macro_rules! accumulator {
    ($acc:ty, $zero:expr, $one:expr; $($storage:ty, $widen:expr, $round:expr;)*) => {
        impl Accumulator for $acc {
            const ZERO: Self = $zero;
            const ONE: Self = $one;
        }
        $(impl Storage<$acc> for $storage {
            #[inline(always)]
            fn widen(self) -> $acc { ($widen)(self) }
            #[inline(always)]
            fn round(acc: $acc) -> Self { ($round)(acc) }
        })*
    };
}
accumulator! { f64, 0.0, 1.0; f64, |v| v, |v| v; f32, f64::from, |v: f64| v as f32; }
accumulator! {
    f32, 0.0, 1.0; f32, |v| v, |v| v; f16, widen_half, f16::from_f32; bf16, bf16::to_f32, bf16::from_f32;
}
accumulator! { Complex32, Complex32::new(0.0, 0.0), Complex32::new(1.0, 0.0); Complex32, |v| v, |v| v; }
accumulator! { Complex64, Complex64::new(0.0, 0.0), Complex64::new(1.0, 0.0); Complex64, |v| v, |v| v; }

/// As `f16::to_f32`, which calls a function per value, in a form that inlines and
/// vectorises (F. Giesen, half_to_float). No subnormal f32 is touched on the
/// way, so that a caller's flush-to-zero mode changes nothing.
#[inline(always)]
fn widen_half(half: f16) -> f32 {
    const SHIFT: u32 = f32::MANTISSA_DIGITS - 11;
    const EXPONENT: u32 = 0x7c00 << SHIFT;
    // The exponent's bias is 127 in f32 and 15 in f16.
    const REBIAS: u32 = (127 - 15) << 23;
    let bits = u32::from(half.to_bits());
    let magnitude = (bits & 0x7fff) << SHIFT;
    // All ones where it holds: arithmetic, since a compiler may make branches
    // of selects.
    let mask = |holds: bool| u32::from(holds).wrapping_neg();
    let (tiny, special) = (mask(magnitude < 1 << 23), mask(magnitude >= EXPONENT));
    let rebiased = magnitude + REBIAS;
    // 1.m · 2^-14 − 1 · 2^-14 = 0.m · 2^-14
    let subnormal = (f32::from_bits(rebiased + (1 << 23)) - f32::from_bits(REBIAS + (1 << 23))).to_bits();
    // Inf and NaN keep the largest exponent.
    let normal = rebiased + (REBIAS & special);
    f32::from_bits((subnormal & tiny) | (normal & !tiny) | (bits & 0x8000) << 16)
}

/// A signed index as the user stores it.
pub trait Index: Pod + Send + Sync + Ord + std::fmt::Debug {
    /// Its code.
    const TYPE: IndexType;
    /// Exact conversion.
    fn to_i64(self) -> i64;
    /// Conversion from a value that is known to fit.
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

/// An address in the memory of a backend. Only backends turn it back into a
/// pointer; everything else passes it on, so it is `Send`, `Sync` and safe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(transparent)]
pub struct Address(usize);

/// Where alpha and beta are.
pub type ScalarsAt = (Address, Address);

impl Address {
    /// The NULL address.
    pub const NULL: Address = Address(0);

    /// The address of a pointer.
    pub fn new<T: ?Sized>(pointer: *const T) -> Self {
        Address(pointer.cast::<u8>().expose_provenance())
    }

    /// The pointer again.
    pub fn as_ptr<T>(self) -> *const T {
        std::ptr::with_exposed_provenance(self.0)
    }

    /// The pointer again, for writing.
    pub fn as_mut_ptr<T>(self) -> *mut T {
        std::ptr::with_exposed_provenance_mut(self.0)
    }

    /// Whether it is NULL.
    pub fn is_null(self) -> bool {
        self.0 == 0
    }

    /// The number.
    pub fn value(self) -> usize {
        self.0
    }

    /// The address this many bytes further.
    pub fn offset(self, bytes: usize) -> Address {
        Address(self.0 + bytes)
    }

    /// The address this many bytes before, of an array whose first elements are not there: what is
    /// read begins `bytes` further. (NULL stays NULL.)
    pub fn rebased(self, bytes: usize) -> Address {
        Address(if self.0 == 0 { 0 } else { self.0.wrapping_sub(bytes) })
    }

    /// Whether it is a multiple of `align`.
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
}

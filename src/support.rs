//! Combinations of the value and compute types of one product. Each is a marker type that implements
//! [`Combo`], with a description at run time ([`Types`], which the table of algorithms uses); [`dispatch`]
//! calls the generic code for such a description.

use half::{bf16, f16};
use num_complex::{Complex32, Complex64};

use crate::error::{Error, Result};
use crate::format::narrowing::Narrow;
use crate::types::{Accumulator, ComputeType, DataType, Element, Storage};

/// A combination of value types of one product, at compile time.
pub trait Combo: Copy + Send + Sync + 'static {
    /// Values of A.
    type A: Storage<Self::Acc> + Narrow;
    /// Values of x, or of B.
    type X: Storage<Self::Acc>;
    /// Values of y, or of C.
    type Y: Storage<Self::Acc>;
    /// Type of products, sums, alpha and beta.
    type Acc: Accumulator;
    /// This combination at run time.
    const TYPES: Types;
}

/// A combination of value types of one product, at run time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Types {
    /// Values of A.
    pub a: DataType,
    /// Values of x, or of B.
    pub x: DataType,
    /// Values of y, or of C.
    pub y: DataType,
    /// Type of products and sums.
    pub compute: ComputeType,
}

/// Defines combinations: name, types of A, of the input, of the output and of sums, and compute type.
macro_rules! define_combos {
    ($($name:ident: $a:ident $x:ident $y:ident $acc:ident $compute:ident;)*) => { $(
        #[doc = concat!("A ", stringify!($a), ", input ", stringify!($x), ", output ", stringify!($y), ", compute ", stringify!($compute), ".")]
        #[derive(Clone, Copy, Debug)]
        pub struct $name;
        impl Combo for $name {
            type A = $a;
            type X = $x;
            type Y = $y;
            type Acc = $acc;
            const TYPES: Types = Types {
                a: <$a as Element>::TYPE,
                x: <$x as Element>::TYPE,
                y: <$y as Element>::TYPE,
                compute: ComputeType::$compute,
            };
        }
    )* };
}
define_combos! {
    F64: f64 f64 f64 f64 R64F;
    F32: f32 f32 f32 f32 R32F;
    Tf32: f32 f32 f32 f32 Tf32;
    F32F64: f32 f64 f64 f64 R64F;
    F16: f16 f16 f16 f32 R32F;
    F16F32: f16 f16 f32 f32 R32F;
    Bf16: bf16 bf16 bf16 f32 R32F;
    Bf16F32: bf16 bf16 f32 f32 R32F;
    C32: Complex32 Complex32 Complex32 Complex32 C32F;
    C64: Complex64 Complex64 Complex64 Complex64 C64F;
}

/// Code that is generic over the combination of types.
pub trait ComboVisitor {
    /// Result of the code.
    type Output;
    /// Runs the code for one combination.
    fn visit<C: Combo>(self) -> Result<Self::Output>;
}

/// Defines functions that dispatch from run-time types to generic code, each with the combinations for which
/// the code is compiled. Other types do not occur: the plan has looked them up in the table of algorithms.
macro_rules! dispatchers {
    ($($(#[$doc:meta])* $function:ident: $($name:ident)*;)*) => { $(
        $(#[$doc])*
        pub fn $function<V: ComboVisitor>(types: Types, visitor: V) -> Result<V::Output> {
            match types {
                $(t if t == $name::TYPES => visitor.visit::<$name>(),)*
                other => Err(Error::unsupported(format!("no code for {}", other.describe()))),
            }
        }
    )* };
}

dispatchers! {
    /// Dispatches on all combinations except TF32, which code without a use for it computes as fp32.
    dispatch: F64 F32 F32F64 F16 F16F32 Bf16 Bf16F32 C32 C64;
    /// Dispatches on the combinations of real values.
    dispatch_real: F64 F32 F32F64 F16 F16F32 Bf16 Bf16F32;
    /// Dispatches on fp64 and fp32 alone.
    dispatch_float: F64 F32;
    /// Dispatches on the combinations of SpGEMM, whose result has the type of the sums.
    dispatch_spgemm: F64 F32 F16F32 Bf16F32 C32 C64;
}

impl Types {
    /// Returns the types with a plain instead of a pedantic compute type, as in the table of algorithms.
    pub fn plain(self) -> Self {
        Types { compute: self.compute.plain(), ..self }
    }

    /// Returns a text such as `A fp16, input fp16, output fp32, compute fp32`.
    pub fn describe(&self) -> String {
        format!(
            "A {}, input {}, output {}, compute {}",
            self.a.short(),
            self.x.short(),
            self.y.short(),
            self.compute.short()
        )
    }
}

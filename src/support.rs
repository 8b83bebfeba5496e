//! Combinations of the value and compute types of one product. Each is a marker
//! type that implements [`Combo`], with its description at run time ([`Types`], of which
//! the table of algorithms consists); [`dispatch`] goes from the description to generic code.

use half::{bf16, f16};
use num_complex::{Complex32, Complex64};

use crate::error::{Error, Result};
use crate::format::narrowing::Narrow;
use crate::types::{Accumulator, ComputeType, DataType, Element, Storage};

/// Value types of one product: A's, the input's (x, B), the output's (y, C)
/// and the accumulator's.
pub trait Combo: Copy + Send + Sync + 'static {
    /// Values of A.
    type A: Storage<Self::Acc> + Narrow;
    /// Values of x, or of B.
    type X: Storage<Self::Acc>;
    /// Values of y, or of C.
    type Y: Storage<Self::Acc>;
    /// Products, sums, alpha and beta.
    type Acc: Accumulator;
    /// The same at run time.
    const TYPES: Types;
}

/// Value types of one product at run time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Types {
    /// Values of A.
    pub a: DataType,
    /// Values of x, or of B.
    pub x: DataType,
    /// Values of y, or of C.
    pub y: DataType,
    /// Products and sums.
    pub compute: ComputeType,
}

/// Defines combinations: name, types of A, of the input, of the output and of sums, compute type.
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

/// Something generic over the combination of types.
pub trait ComboVisitor {
    /// What it makes.
    type Output;
    /// The generic code.
    fn visit<C: Combo>(self) -> Result<Self::Output>;
}

/// Defines functions from run-time types to generic code, each with the combinations that code is compiled for.
/// The types that come are among them: the plan has looked them up in the table of algorithms.
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
    /// All combinations but TF32, which code that has no use for it computes as fp32.
    dispatch: F64 F32 F32F64 F16 F16F32 Bf16 Bf16F32 C32 C64;
    /// Those of real values.
    dispatch_real: F64 F32 F32F64 F16 F16F32 Bf16 Bf16F32;
    /// Those of one type of 4 or 8 bytes.
    dispatch_float: F64 F32;
    /// Those of SpGEMM, whose result has the type of the sums.
    dispatch_spgemm: F64 F32 F16F32 Bf16F32 C32 C64;
}

impl Types {
    /// The same without [`ComputeType::is_pedantic`], as the table has them.
    pub fn plain(self) -> Self {
        Types { compute: self.compute.plain(), ..self }
    }

    /// `A fp16, x fp16, y fp32, compute fp32`.
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

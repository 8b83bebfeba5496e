//! Number types of the products that are tested.

use half::{bf16, f16};
use num_complex::{Complex32, Complex64};
use tarsia::facade::{ComputeType, Element, Operation, Types};
pub use testkit::{bits, Number, Wide};
use testkit::{Factor, Op};

/// Number type that the library supports.
pub trait Value: Number + Element {}

impl<V: Number + Element> Value for V {}

/// Types of one product, as the tests compute with them.
pub trait Numbers: Copy + Send + Sync + 'static {
    /// Type to which all others are widened.
    type Wide: Wide;
    /// Type of values of A.
    type A: Value<Wide = Self::Wide>;
    /// Type of values of x and B.
    type X: Value<Wide = Self::Wide>;
    /// Type of values of y and C.
    type Y: Value<Wide = Self::Wide>;
    /// Type of alpha, beta and sums.
    type S: Value<Wide = Self::Wide>;
    /// Types as values at run time.
    const TYPES: Types;
}

macro_rules! products {
    ($($name:ident: $a:ty, $x:ty, $y:ty, $s:ty, $compute:ident;)*) => { $(
        /// Marker of these types.
        #[derive(Clone, Copy, Debug)]
        pub struct $name;

        impl Numbers for $name {
            type Wide = <$a as Number>::Wide;
            type A = $a;
            type X = $x;
            type Y = $y;
            type S = $s;
            const TYPES: Types = Types {
                a: <$a as Element>::TYPE,
                x: <$x as Element>::TYPE,
                y: <$y as Element>::TYPE,
                compute: ComputeType::$compute,
            };
        }
    )* };
}
products! {
    F64: f64, f64, f64, f64, R64F;
    F32: f32, f32, f32, f32, R32F;
    Tf32: f32, f32, f32, f32, Tf32;
    F32F64: f32, f64, f64, f64, R64F;
    F16: f16, f16, f16, f32, R32F;
    F16F32: f16, f16, f32, f32, R32F;
    Bf16: bf16, bf16, bf16, f32, R32F;
    Bf16F32: bf16, bf16, f32, f32, R32F;
    C32: Complex32, Complex32, Complex32, Complex32, C32F;
    C64: Complex64, Complex64, Complex64, Complex64, C64F;
}

/// Returns a sparse operand of the naive loops.
pub fn factor<'a, V>(entries: &'a [(usize, usize)], values: &'a [V], op: Operation) -> Factor<'a, V> {
    let op = match op {
        Operation::NonTranspose => Op::Plain,
        Operation::Transpose => Op::Transposed,
        Operation::ConjugateTranspose => Op::Adjoint,
    };
    Factor { entries, values, op }
}

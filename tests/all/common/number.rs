//! Numbers of the products that are tested.

use tarsia::support::{Combo, Types};
use tarsia::types::{Element, Operation};
pub use testkit::{bits, Number, Wide};
use testkit::{Factor, Op};

/// A number that the library takes.
pub trait Value: Number + Element {}

impl<V: Number + Element> Value for V {}

/// The types of one product, as the tests compute with them.
pub trait Numbers: Copy + Send + Sync + 'static {
    /// What all of them widen to.
    type Wide: Wide;
    /// Values of A.
    type A: Value<Wide = Self::Wide>;
    /// Values of x and B.
    type X: Value<Wide = Self::Wide>;
    /// Values of y and C.
    type Y: Value<Wide = Self::Wide>;
    /// alpha, beta and sums.
    type S: Value<Wide = Self::Wide>;
    /// The same at run time.
    const TYPES: Types;
}

impl<C: Combo> Numbers for C
where
    C::A: Value,
    C::X: Value<Wide = <C::A as Number>::Wide>,
    C::Y: Value<Wide = <C::A as Number>::Wide>,
    C::Acc: Value<Wide = <C::A as Number>::Wide>,
{
    type Wide = <C::A as Number>::Wide;
    type A = C::A;
    type X = C::X;
    type Y = C::Y;
    type S = C::Acc;
    const TYPES: Types = C::TYPES;
}

/// A sparse operand of the naive loops.
pub fn factor<'a, V>(entries: &'a [(usize, usize)], values: &'a [V], op: Operation) -> Factor<'a, V> {
    let op = match op {
        Operation::NonTranspose => Op::Plain,
        Operation::Transpose => Op::Transposed,
        Operation::ConjugateTranspose => Op::Adjoint,
    };
    Factor { entries, values, op }
}

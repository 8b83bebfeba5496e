//! Helpers that the tests of the library and of its command line share: random numbers, numbers of every
//! value type, naive products, and the tolerances for comparison with them.
//!
//! Everything works on plain arrays and nothing here depends on the library: the library's own unit tests use
//! this crate, and if it depended on the library it would bring them a second copy of it.

#![deny(unsafe_code)]

mod naive;
mod number;
mod random;
mod tolerance;

pub use naive::{dense_product, sparse_product, sparse_product_of_merged, Factor, Op, Sum};
pub use number::{bits, Number, Wide};
pub use random::{sequence, Count, Random};
pub use tolerance::Rounding;

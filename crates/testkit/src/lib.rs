//! What the tests of the library and of its command line share: random numbers, numbers of every type
//! that is stored, naive products, and the errors that these allow.
//!
//! Everything works on plain arrays and nothing here knows the library: its own unit tests use this
//! crate, and a crate that depended on the library would bring them a second copy of it.

#![deny(unsafe_code)]

mod naive;
mod number;
mod random;
mod tolerance;

pub use naive::{dense_product, sparse_product, sparse_product_of_merged, Factor, Op, Sum};
pub use number::{bits, Number, Wide};
pub use random::{sequence, Count, Random};
pub use tolerance::Rounding;

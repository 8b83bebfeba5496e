//! Sparse matrices that a program owns: read from files, or made by generators.
//!
//! The library borrows its user's arrays and knows nothing of this crate; the command line and the
//! tests get their matrices here.
//!
//! - [`owned`]: a CSR matrix with arrays of its own, and [`MatrixError`](owned::MatrixError)
//! - [`market`]: Matrix Market files
//! - [`packed`]: files of few bytes
//! - [`gallery`]: matrices of known structures, the same on every machine
//! - [`SplitMix64`]: the generator of pseudo-random numbers, also of the tests

#![deny(unsafe_code)]

pub mod gallery;
pub mod market;
pub mod owned;
pub mod packed;
mod random;

pub use random::SplitMix64;

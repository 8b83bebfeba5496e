//! Sparse matrices that a program owns, read from files or made by generators.
//!
//! The library borrows its user's arrays and does not use this crate; the command line and the tests get
//! their matrices here.
//!
//! - [`owned`]: a CSR matrix that owns its arrays, and [`MatrixError`](owned::MatrixError)
//! - [`market`]: Matrix Market files
//! - [`packed`]: compact binary files
//! - [`file`]: files of any of these forms
//! - [`gallery`]: matrices of known structures, the same on every machine
//! - [`SplitMix64`]: the generator of pseudo-random numbers, which the tests use too

#![deny(unsafe_code)]

pub mod file;
pub mod gallery;
pub mod market;
pub mod owned;
pub mod packed;
mod random;

pub use random::SplitMix64;

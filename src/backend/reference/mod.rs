//! The oracle: one thread, obviously right. No cleverness is allowed here.
//!
//! A sparse matrix is a list of its entries in the user's order; sums are
//! formed in f64 (complex f64 for complex types), and a result is rounded once,
//! at the store. Patterns are read, and faults in them found, by code of its
//! own: what the tests compare with it shares nothing with it.

mod arrays;
mod entries;
mod fingerprint;
mod number;
mod spgemm;
mod spmm;
mod spmv;
mod tiles;

#[cfg(test)]
mod tests;

use crate::backend::{Backend, LayoutInfo};
use crate::error::Result;
use crate::matrix::fingerprint::Fingerprint;
use crate::matrix::{SparseMatrix, Structure};
use crate::memory::Context;
use crate::types::{BackendKind, LayoutKind};

/// The oracle.
pub struct Reference;

impl Backend for Reference {
    fn kind(&self) -> BackendKind {
        BackendKind::Reference
    }

    fn fingerprint(&self, _cx: &Context, a: &SparseMatrix, name: &str) -> Result<Fingerprint> {
        fingerprint::of_pattern(a, name)
    }

    fn fingerprint_values(&self, _cx: &Context, a: &SparseMatrix, name: &str) -> Result<Fingerprint> {
        fingerprint::of_values(a, name)
    }

    fn check_sparse(&self, cx: &Context, a: &SparseMatrix, name: &str) -> Result<Structure> {
        entries::inspect(cx, a, name)
    }
}

/// What every plan of the oracle holds.
fn triplets() -> LayoutInfo {
    LayoutInfo { kind: LayoutKind::Triplets, in_place: false, fill: 1.0 }
}

//! The oracle: a single-threaded backend that is simple enough to be obviously right. Optimizations are not
//! allowed here.
//!
//! A sparse matrix is a list of its entries in the user's order; sums are formed in f64 (complex f64 for
//! complex types), and a result is rounded once, when it is stored. The oracle reads patterns and finds
//! faults in them by its own code, so that it shares none with the backends that tests compare with it.

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

/// The reference backend, or oracle.
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

/// Returns the layout of every plan of the oracle.
fn triplets() -> LayoutInfo {
    LayoutInfo { kind: LayoutKind::Triplets, in_place: false, fill: 1.0 }
}

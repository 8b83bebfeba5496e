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

use std::sync::Arc;

use crate::backend::{Backend, LayoutInfo};
use crate::error::Result;
use crate::matrix::fingerprint::Fingerprint;
use crate::matrix::{Lines, SparseMatrix, Structure};
use crate::memory::copy::{clear, copy, copy_lines};
use crate::memory::{processor, Context, HostMemory, RawMemory};
use crate::select::roofline::Machine;
use crate::types::{Address, BackendKind, LayoutKind};

/// The oracle.
pub struct Reference;

impl Backend for Reference {
    fn kind(&self) -> BackendKind {
        BackendKind::Reference
    }

    fn device(&self) -> i32 {
        0
    }

    fn memory(&self) -> Arc<dyn RawMemory> {
        Arc::new(HostMemory)
    }

    fn copy_to_device(&self, dst: Address, src: Address, bytes: usize, _stream: Address) -> Result<()> {
        copy(dst, src, bytes)
    }

    fn copy_to_host(&self, dst: Address, src: Address, bytes: usize, _stream: Address) -> Result<()> {
        copy(dst, src, bytes)
    }

    fn synchronize(&self, _stream: Address) -> Result<()> {
        Ok(())
    }

    fn copy_lines(&self, _cx: &Context, from: &Lines, to: &Lines) -> Result<()> {
        copy_lines(from, to);
        Ok(())
    }

    fn clear(&self, address: Address, bytes: usize) -> Result<()> {
        clear(address, bytes);
        Ok(())
    }

    fn machine(&self) -> &Machine {
        &Machine::HOST
    }

    fn model(&self) -> String {
        processor::model()
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

//! Execution by threads of the CPU.

pub(crate) mod fingerprint;
mod lanes;
mod layout;
pub mod operand;
mod scalars;
mod schedule;
mod slices;
pub(crate) mod spgemm;
mod spmm;
mod spmv;
#[cfg(test)]
pub(crate) mod testing;
mod timing;

use std::sync::Arc;

use crate::backend::Backend;
use crate::error::Result;
use crate::matrix::fingerprint::Fingerprint;
use crate::matrix::{Lines, SparseMatrix, Structure};
use crate::memory::copy::{clear, copy, copy_lines};
use crate::memory::{pool, processor, Context, HostMemory, RawMemory};
use crate::reorder::features::FeatureSet;
use crate::select::roofline::Machine;
use crate::types::{Address, BackendKind, Operation};

/// The host.
pub struct Host;

impl Backend for Host {
    fn kind(&self) -> BackendKind {
        BackendKind::Host
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
        fingerprint::of(a, name)
    }

    fn fingerprint_values(&self, _cx: &Context, a: &SparseMatrix, name: &str) -> Result<Fingerprint> {
        fingerprint::of_values(a, name)
    }

    fn check_sparse(&self, _cx: &Context, a: &SparseMatrix, name: &str) -> Result<Structure> {
        a.require_arrays(name)?;
        pool::run(|| operand::with_entries(a, name, operand::Inspect))
    }

    fn row_features(&self, cx: &Context, a: &SparseMatrix, op: Operation) -> Result<Option<FeatureSet>> {
        operand::row_features(cx, a, op, "A").map(Some)
    }
}

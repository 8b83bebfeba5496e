//! The oracle: one thread, obviously right. No cleverness is allowed here.
//!
//! A sparse matrix is a list of its entries in the user's order; sums are
//! formed in f64 (complex f64 for complex types), and a result is rounded once,
//! at the store. Patterns are read, and faults in them found, by code of its
//! own: what the tests compare with it shares nothing with it.

mod arrays;
mod entries;
mod number;
mod spgemm;
mod spmm;
mod spmv;
mod timing;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use crate::backend::host::spgemm::tiles::Plain;
use crate::backend::{host, Backend, LayoutInfo, SpgemmExecutor, SpmmExecutor, SpmvExecutor};
use crate::error::Result;
use crate::matrix::fingerprint::Fingerprint;
use crate::matrix::tiles::{TileFactors, Tiles};
use crate::matrix::{Lines, SparseMatrix, Structure};
use crate::memory::copy::{clear, copy, copy_lines};
use crate::memory::{Context, HostMemory, RawMemory};
use crate::problem::{SpgemmProblem, SpmmProblem, SpmvProblem};
use crate::select::roofline::Machine;
use crate::select::{Choice, SpgemmSurveyed, SpmmSurveyed, Surveyed};
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
        host::model()
    }

    fn fingerprint(&self, _cx: &Context, a: &SparseMatrix, name: &str) -> Result<Fingerprint> {
        host::fingerprint::of(a, name)
    }

    fn fingerprint_values(&self, _cx: &Context, a: &SparseMatrix, name: &str) -> Result<Fingerprint> {
        host::fingerprint::of_values(a, name)
    }

    fn check_sparse(&self, cx: &Context, a: &SparseMatrix, name: &str) -> Result<Structure> {
        entries::inspect(cx, a, name)
    }

    fn build_spmv(
        &self,
        cx: &Context,
        problem: &SpmvProblem,
        _choice: &Choice,
        _surveyed: Option<&Surveyed>,
    ) -> Result<Box<dyn SpmvExecutor>> {
        Ok(Box::new(spmv::Spmv::build(cx, problem)?))
    }

    fn build_spmm(
        &self,
        cx: &Context,
        problem: &SpmmProblem,
        _choice: &Choice,
        _surveyed: Option<&SpmmSurveyed>,
    ) -> Result<Box<dyn SpmmExecutor>> {
        Ok(Box::new(spmm::Spmm::build(cx, problem)?))
    }

    fn time_spmv(&self, cx: &Context, problem: &SpmvProblem, executor: &dyn SpmvExecutor) -> Result<f64> {
        timing::spmv(cx, problem, executor)
    }

    fn time_spmm(&self, cx: &Context, problem: &SpmmProblem, executor: &dyn SpmmExecutor) -> Result<f64> {
        timing::spmm(cx, problem, executor)
    }

    fn build_spgemm(
        &self,
        cx: &Context,
        problem: &SpgemmProblem,
        _choice: &Choice,
        _surveyed: Option<SpgemmSurveyed>,
    ) -> Result<Box<dyn SpgemmExecutor>> {
        Ok(Box::new(spgemm::Spgemm::build(cx, problem, [None, None])?))
    }

    /// Tiles are the host's; they are read and written as CSR or CSC.
    fn build_spgemm_of_tiles(
        &self,
        cx: &Context,
        problem: &SpgemmProblem,
        _choice: &Choice,
        factors: &TileFactors,
    ) -> Result<Box<dyn SpgemmExecutor>> {
        let [a, b] = factors;
        let plain = |tiles: &Option<Arc<Tiles>>| tiles.as_ref().map(|tiles| Plain::of(cx, tiles)).transpose();
        Ok(Box::new(spgemm::Spgemm::build(cx, problem, [plain(a)?, plain(b)?])?))
    }

    fn make_tiles(&self, cx: &Context, a: &SparseMatrix) -> Result<Tiles> {
        host::spgemm::tiles::make(cx, a)
    }

    fn write_tiles(&self, cx: &Context, tiles: &Tiles, b: &SparseMatrix) -> Result<()> {
        host::spgemm::tiles::write(cx, tiles, b)
    }
}

/// What every plan of the oracle holds.
fn triplets() -> LayoutInfo {
    LayoutInfo { kind: LayoutKind::Triplets, in_place: false, fill: 1.0 }
}

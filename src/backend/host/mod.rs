//! The backend that executes on threads of the CPU.

mod columns;
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
mod vector;

use crate::backend::Backend;
use crate::error::Result;
use crate::matrix::fingerprint::Fingerprint;
use crate::matrix::{SparseMatrix, Structure};
use crate::memory::{pool, Context};
use crate::reorder::features::FeatureSet;
use crate::types::{BackendKind, Operation};

/// The backend that executes on threads of the CPU.
pub struct Host;

impl Backend for Host {
    fn kind(&self) -> BackendKind {
        BackendKind::Host
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

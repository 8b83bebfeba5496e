//! Time from bytes: what a product must move, over the bandwidth that the
//! machine sustains, plus what a call costs at the least.

use super::analysis::{self, Costs};
use super::device::Ratios;
use super::learned::{self, Learned};
use super::spmm;
use super::spmv::{self, Rates};
use super::{index_bytes, Source};
use crate::matrix::SparseMatrix;
use crate::types::{ComputeType, DataType, Operation};

/// What the cost model knows of a kind of machine. Constants, and for GPUs what the driver says of the
/// device ([`super::device`]), so that the choice is the same on every machine of the kind.
#[derive(Clone, Copy, Debug)]
pub struct Machine {
    /// Bytes a second that memory sustains.
    bandwidth: f64,
    /// Multiply-adds a second of a product with dense operands whose rows come
    /// from the caches.
    products: f64,
    /// Seconds that a call takes with nothing to do.
    call: f64,
    /// Seconds of one multiplication of a sparse product: about one random
    /// access to an accumulator.
    sparse_product: f64,
    /// What analyses take, on an H100 where this is a GPU.
    pub(super) analysis: &'static Costs,
    /// What it is to the machine that the constants of analyses, of SpGEMM and of SpMM `smat` were fitted on.
    ratios: Ratios,
    /// How fast it is on SpMV's layouts; none: by shapes alone, among `csr` and `sell`.
    pub(super) spmv: Option<Rates>,
    /// The same of SpMM's algorithms; none: `row` unless the caller names another.
    pub(super) spmm: Option<spmm::Rates>,
    /// How far predicted times of SpMM's algorithms were learned to be off; none: they decide alone.
    pub(super) learned: Option<fn() -> &'static Learned>,
}

impl Machine {
    /// Two threads of a current server processor, in fp64 on a matrix of finite
    /// elements (`tarsia demo` prints what a machine does); a call wakes the
    /// thread pool. SpMV: shapes choose between `csr` and `sell`; the executors of the
    /// other layouts are not tuned there and serve by name alone.
    pub const HOST: Machine = Machine {
        bandwidth: 2.4e10,
        products: 1.0e10,
        call: 5.0e-6,
        sparse_product: 1.2e-9,
        analysis: &analysis::HOST,
        ratios: Ratios::SAME,
        spmv: None,
        spmm: None,
        learned: None,
    };
    /// An H100 (HBM3): measured copy rate and empty launch; a product with dense
    /// operands takes a row of B from L2 for each nonzero, at about 5.6 TB/s.
    pub const H100: Machine = Machine {
        bandwidth: 3.03e12,
        products: 7.0e11,
        call: 3.6e-6,
        sparse_product: 5.0e-11,
        analysis: &analysis::H100,
        ratios: Ratios::SAME,
        spmv: Some(spmv::H100),
        spmm: Some(spmm::H100),
        learned: Some(learned::file::h100),
    };

    /// A machine that is to this one as a device is to an H100.
    pub(super) fn scaled(&self, ratios: &Ratios) -> Self {
        Machine {
            bandwidth: self.bandwidth * ratios.memory,
            products: self.products * ratios.cycles,
            sparse_product: self.sparse_product / ratios.cycles,
            spmv: self.spmv.map(|rates| rates.scaled(ratios)),
            spmm: self.spmm.map(|rates| rates.scaled(ratios)),
            ratios: *ratios,
            ..*self
        }
    }

    /// What it is to the machine that constants were fitted on, in this arithmetic.
    pub fn ratios(&self, compute: ComputeType) -> Ratios {
        self.ratios.of_compute(compute)
    }

    /// Bytes a second of memory, over those of the machine that constants were fitted on.
    pub(super) fn memory_ratio(&self) -> f64 {
        self.ratios.memory
    }

    /// How fast it is on SpMM's algorithms, if that is known.
    pub fn spmm_rates(&self) -> Option<&spmm::Rates> {
        self.spmm.as_ref()
    }
}

/// Bytes of A that one product reads.
pub fn matrix_bytes(a: &SparseMatrix, op: Operation, source: Source) -> f64 {
    let (rows, _, nnz) = a.shape_of(op);
    let (index, offset) = index_bytes(a, source);
    nnz as f64 * (a.value_type().size() + index) as f64 + (rows + 1) as f64 * offset as f64
}

/// Bytes of the dense operands of `n` columns, each once.
pub fn dense_bytes(a: &SparseMatrix, op: Operation, n: i64, x: DataType, y: DataType) -> f64 {
    let (m, k, _) = a.shape_of(op);
    n as f64 * (k as f64 * x.size() as f64 + m as f64 * y.size() as f64)
}

/// Seconds of a product that must move this many bytes and do this many
/// multiply-adds: the slower of the two.
pub fn seconds(machine: &Machine, bytes: f64, products: f64) -> f64 {
    machine.call + (bytes / machine.bandwidth).max(products / machine.products)
}

/// Seconds of a sparse product with this many multiplications.
pub fn products_seconds(machine: &Machine, products: i64) -> f64 {
    machine.call + products as f64 * machine.sparse_product
}

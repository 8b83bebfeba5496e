//! Roofline model: the time of a product is the bytes it must move, divided by the sustained bandwidth of the
//! machine, plus the least time of a call.

use super::analysis::{self, Costs};
use super::device::Ratios;
use super::learned::{self, Learned};
use super::spmm;
use super::spmv::{self, Rates};
use super::{index_bytes, Source};
use crate::matrix::SparseMatrix;
use crate::support::Types;
use crate::types::{ComputeType, DataType, Operation};

/// Constants of the cost model for a kind of machine, scaled for GPUs by the attributes that the driver
/// reports ([`super::device`]), so that choices are the same on every machine of the kind.
#[derive(Clone, Copy, Debug)]
pub struct Machine {
    /// Sustained memory bandwidth in bytes a second.
    bandwidth: f64,
    /// Multiply-adds a second of a product with dense operands whose rows come from the caches.
    products: f64,
    /// Seconds of a call without work.
    call: f64,
    /// Seconds per multiplication of a sparse product: about one random access to an accumulator.
    sparse_product: f64,
    /// Costs of analyses; for a GPU, those on an H100.
    pub(super) analysis: &'static Costs,
    /// Seconds per entry that SpMM `row` takes to check the columns of the user's array before it reads rows of B; 0
    /// where it does not check them. The host's is measured (docs/algorithms/host.md, "Columns of the plan's own").
    pub(super) column_check: f64,
    /// Ratios to the machine that the constants of analyses, of SpGEMM and of SpMM `smat` were fitted on.
    ratios: Ratios,
    /// Rates of SpMV's layouts; `None`: shapes alone choose, among `csr` and `sell`.
    pub(super) spmv: Option<Rates>,
    /// Rates of SpMM's algorithms; `None`: `row` unless the caller names another.
    pub(super) spmm: Option<spmm::Rates>,
    /// Learned correction of the predicted times of SpMM's algorithms; `None`: predictions stand uncorrected.
    pub(super) learned: Option<fn() -> &'static Learned>,
}

impl Machine {
    /// Two threads of a current server processor, in fp64 on a finite element matrix (`tarsia demo` prints
    /// the numbers of a machine); a call wakes the thread pool. SpMV: shapes choose between `csr` and `sell`;
    /// the executors of the other layouts are not tuned on the host and serve by name only.
    pub const HOST: Machine = Machine {
        bandwidth: 2.4e10,
        products: 1.0e10,
        call: 5.0e-6,
        sparse_product: 1.2e-9,
        analysis: &analysis::HOST,
        column_check: 1.0e-10,
        ratios: Ratios::SAME,
        spmv: None,
        spmm: None,
        learned: None,
    };
    /// An H100 (HBM3) with its measured copy rate and time of an empty launch; a product with dense operands
    /// takes a row of B from L2 for each nonzero, at about 5.6 TB/s.
    pub const H100: Machine = Machine {
        bandwidth: 3.03e12,
        products: 7.0e11,
        call: 3.6e-6,
        sparse_product: 5.0e-11,
        analysis: &analysis::H100,
        column_check: 0.0,
        ratios: Ratios::SAME,
        spmv: Some(spmv::H100),
        spmm: Some(spmm::H100),
        learned: Some(learned::file::hopper),
    };

    /// Machine with these rates scaled by the ratios of a device.
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

    /// Ratios to the machine that the constants were fitted on, in this arithmetic.
    pub fn ratios(&self, compute: ComputeType) -> Ratios {
        self.ratios.of_compute(compute)
    }

    /// Memory bandwidth relative to the machine that the constants were fitted on.
    pub(super) fn memory_ratio(&self) -> f64 {
        self.ratios.memory
    }

    /// Brings what a choice among SpMM's algorithms reads into the processor's caches, if anything was learned for this
    /// machine and these types: for a time in which the processor has nothing else to do.
    pub fn prepare_spmm_choice(&self, types: Types) {
        if let Some(learned) = self.learned.filter(|_| learned::is_measured(types)) {
            learned().load_into_cache();
        }
    }

    /// Rates of SpMM's algorithms, if they are known.
    pub fn spmm_rates(&self) -> Option<&spmm::Rates> {
        self.spmm.as_ref()
    }
}

/// Bytes of A that one product reads from `source`.
pub fn matrix_bytes(a: &SparseMatrix, op: Operation, source: Source) -> f64 {
    let (rows, _, nnz) = a.shape_of(op);
    let (index, offset) = index_bytes(a, source);
    nnz as f64 * (a.value_type().size() + index) as f64 + (rows + 1) as f64 * offset as f64
}

/// Bytes of the dense operands of `n` columns, each read or written once.
pub fn dense_bytes(a: &SparseMatrix, op: Operation, n: i64, x: DataType, y: DataType) -> f64 {
    let (m, k, _) = a.shape_of(op);
    n as f64 * (k as f64 * x.size() as f64 + m as f64 * y.size() as f64)
}

/// Seconds of a product that moves this many bytes and does this many multiply-adds: the slower of the two,
/// and a call.
pub fn seconds(machine: &Machine, bytes: f64, products: f64) -> f64 {
    machine.call + (bytes / machine.bandwidth).max(products / machine.products)
}

/// Seconds of a sparse product with this many multiplications.
pub fn products_seconds(machine: &Machine, products: i64) -> f64 {
    machine.call + products as f64 * machine.sparse_product
}

//! Cost model for a matrix of which only sizes and pattern statistics are given, on a GPU or a CPU that this
//! machine need not have. `tarsia inspect` explains its choices and `tarsia sample` goes by them. Selection
//! reads no arrays.

use super::device::Ratios;
use super::roofline::{self, Machine};
use super::spmv::statistics::SpmvStatistics;
use super::{spmm, spmv, Choice};
use crate::algorithm::{Algorithm, Query, Row};
use crate::error::Result;
use crate::matrix::{Compressed, SparseArrays, SparseMatrix};
use crate::problem::{SpgemmProblem, SpmmProblem, SpmvProblem};
use crate::select::SpmmInspection;
use crate::settings::Settings;
use crate::support::Types;
use crate::types::{
    Address, BackendKind, Effort, Format, IndexBase, IndexType, OpKind, Operation, Order, Reorder,
};

const N: Operation = Operation::NonTranspose;

/// CSR matrix given by its sizes, with the types of its products and the backend that would compute them.
#[derive(Clone, Copy, Debug)]
pub struct CountedProblem {
    /// Rows.
    pub rows: usize,
    /// Columns.
    pub cols: usize,
    /// Stored entries.
    pub nnz: usize,
    /// Value and compute types.
    pub types: Types,
    /// Backend: the host, or CUDA on an H100.
    pub backend: BackendKind,
}

impl CountedProblem {
    fn machine(&self) -> Machine {
        if self.backend == BackendKind::Cuda {
            Machine::H100
        } else {
            Machine::HOST
        }
    }

    fn candidates(&self, op: OpKind) -> Result<Vec<&'static Row>> {
        let (types, backend) = (self.types, self.backend);
        Query { op, format: Format::Csr, types, backend, algorithm: None }.rows()
    }

    /// Matrix descriptor as a program would pass it, with null arrays.
    fn matrix(&self) -> SparseMatrix {
        let is_narrow = i32::try_from(self.nnz).is_ok();
        let compressed = Compressed {
            major: self.rows as i64,
            minor: self.cols as i64,
            nnz: self.nnz as i64,
            offsets: Address::NULL,
            indices: Address::NULL,
            values: Address::NULL,
            offset_type: if is_narrow { IndexType::I32 } else { IndexType::I64 },
            index_type: IndexType::I32,
            base: IndexBase::Zero,
            value_type: self.types.a,
        };
        SparseMatrix { arrays: SparseArrays::Csr(compressed), writable: false, temporary: false }
    }

    /// Choices of SpMV at effort DEFAULT, best first.
    pub fn spmv(&self, statistics: &SpmvStatistics) -> Result<Vec<Choice>> {
        self.spmv_on(&self.machine(), statistics)
    }

    /// Choices of SpMV on `machine`, best first.
    pub(super) fn spmv_on(&self, machine: &Machine, statistics: &SpmvStatistics) -> Result<Vec<Choice>> {
        let rows = self.candidates(OpKind::Spmv)?;
        let problem = SpmvProblem { op: N, a: self.matrix(), types: self.types, value_updates: false };
        super::spmv(&problem, &rows, Effort::Default, machine, Some(statistics))
    }

    /// Choices of SpMM for `n` columns stored by rows, best first; rows of A stay in their order.
    pub fn spmm(&self, statistics: &spmm::SpmmStatistics, n: i64) -> Result<Vec<Choice>> {
        self.spmm_on(&self.machine(), statistics, n)
    }

    /// Choices of SpMM with `n` columns on `machine`, best first.
    pub(super) fn spmm_on(
        &self,
        machine: &Machine,
        statistics: &spmm::SpmmStatistics,
        n: i64,
    ) -> Result<Vec<Choice>> {
        let rows = self.candidates(OpKind::Spmm)?;
        let problem = SpmmProblem {
            op: N,
            op_b: N,
            a: self.matrix(),
            b_order: Order::Row,
            c_order: Order::Row,
            n_hint: n,
            types: self.types,
            value_updates: false,
            ieee: false,
        };
        let settings = Settings { reorder: Reorder::None, ..Settings::default() };
        // Rows are put in clusters on a device only.
        let inspection =
            SpmmInspection { statistics: *statistics, clustered: None, backend_state: Box::new(()) };
        super::spmm(&problem, &rows, &settings, machine, Some(&inspection))
    }

    /// Choices of SpGEMM A · op(A) with this number of multiplications.
    pub fn spgemm(&self, op: Operation, products: i64) -> Result<Vec<Choice>> {
        let rows = self.candidates(OpKind::Spgemm)?;
        let (a, types) = (self.matrix(), self.types);
        let problem = SpgemmProblem {
            op_a: N,
            op_b: op,
            a,
            b: a,
            types,
            value_updates: false,
            ieee: false,
            sorted_output: true,
        };
        let mut choices = super::spgemm(&problem, &rows)?;
        if let Some(first) = choices.first_mut() {
            first.predicted_seconds = self.products_seconds(products);
            first.reason.push_str(match products >= super::spgemm::LEAST_PRODUCTS {
                true => {
                    "; tile where most rows are wide or scattered and tiles are full, which analysis counts"
                }
                false => "; tile is not looked at for so few multiplications",
            });
        }
        Ok(choices)
    }

    /// Predicted seconds of SpGEMM `hash` for this number of multiplications.
    pub fn products_seconds(&self, products: i64) -> f64 {
        roofline::products_seconds(&self.machine(), products)
    }

    /// Predicted seconds of an SpMV layout on an H100, with 32-bit indices.
    pub fn spmv_seconds(&self, statistics: &SpmvStatistics, algorithm: Algorithm) -> f64 {
        let widths = spmv::Widths { types: self.types, index: (4, 4) };
        spmv::estimate(&spmv::H100, statistics, algorithm, &widths).seconds
    }

    /// Predicted seconds of an SpMM algorithm for `n` columns, on an H100 whose memory moved `memory` times as many
    /// bytes a second: with the memory of an H200, say.
    pub fn spmm_seconds(
        &self,
        statistics: &spmm::SpmmStatistics,
        algorithm: Algorithm,
        n: i64,
        memory: f64,
    ) -> f64 {
        let rates = spmm::H100.scaled(&Ratios { memory, ..Ratios::SAME });
        spmm::estimate(&rates, statistics, algorithm, self.types, n).seconds
    }
}

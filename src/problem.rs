//! Problems: the arguments with which a plan is created, which do not change.

use crate::matrix::SparseMatrix;
use crate::support::Types;
use crate::types::{Operation, Order};

/// SpMV: y = alpha · op(A) · x + beta · y.
#[derive(Clone, Copy, Debug)]
pub struct SpmvProblem {
    /// Operation on A.
    pub op: Operation,
    /// The sparse matrix A.
    pub a: SparseMatrix,
    /// Value and compute types.
    pub types: Types,
    /// True if the plan keeps the data that makes updateValues O(nnz) and asynchronous.
    pub value_updates: bool,
}

/// SpMM: C = alpha · op(A) · op(B) + beta · C.
#[derive(Clone, Copy, Debug)]
pub struct SpmmProblem {
    /// Operation on A.
    pub op: Operation,
    /// Operation on B.
    pub op_b: Operation,
    /// The sparse matrix A.
    pub a: SparseMatrix,
    /// Storage order of B.
    pub b_order: Order,
    /// Storage order of C.
    pub c_order: Order,
    /// Columns of C that the plan is made for.
    pub n_hint: i64,
    /// Value and compute types.
    pub types: Types,
    /// True if the plan keeps the data that makes updateValues O(nnz) and asynchronous.
    pub value_updates: bool,
    /// True if a pedantic compute type was asked for: factors are multiplied without being split.
    pub ieee: bool,
}

impl SpmmProblem {
    /// Returns [`Self::n_hint`] as a size.
    pub fn columns(&self) -> usize {
        usize::try_from(self.n_hint).unwrap_or(0)
    }
}

/// SpGEMM: C = alpha · op(A) · op(B), all sparse.
#[derive(Clone, Copy, Debug)]
pub struct SpgemmProblem {
    /// Operation on A.
    pub op_a: Operation,
    /// Operation on B.
    pub op_b: Operation,
    /// The sparse matrix A.
    pub a: SparseMatrix,
    /// The sparse matrix B.
    pub b: SparseMatrix,
    /// Value and compute types (`x` is B's, `y` is C's).
    pub types: Types,
    /// True if the plan keeps C's pattern, so that numeric phases after the first only compute values.
    pub value_updates: bool,
    /// True if products and sums must be IEEE operations of the compute type: no matrix units multiply 16-bit
    /// types.
    pub ieee: bool,
    /// True if the columns of each row of C must ascend. Otherwise they are in the order that is cheapest for
    /// the backend, which is the same from call to call. The entries of a row and their sums do not depend on
    /// it.
    pub sorted_output: bool,
}

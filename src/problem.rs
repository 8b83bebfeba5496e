//! What a plan computes: the arguments of its creation, which do not change.

use crate::matrix::SparseMatrix;
use crate::support::Types;
use crate::types::{Operation, Order};

/// y = alpha · op(A) · x + beta · y.
#[derive(Clone, Copy, Debug)]
pub struct SpmvProblem {
    /// op.
    pub op: Operation,
    /// A.
    pub a: SparseMatrix,
    /// Value and compute types.
    pub types: Types,
    /// Keep what updateValues needs to be O(nnz) and asynchronous.
    pub value_updates: bool,
}

/// C = alpha · op(A) · op(B) + beta · C.
#[derive(Clone, Copy, Debug)]
pub struct SpmmProblem {
    /// op(A).
    pub op: Operation,
    /// op(B).
    pub op_b: Operation,
    /// A.
    pub a: SparseMatrix,
    /// Order of B.
    pub b_order: Order,
    /// Order of C.
    pub c_order: Order,
    /// Columns of C that the plan is made for.
    pub n_hint: i64,
    /// Value and compute types.
    pub types: Types,
    /// Keep what updateValues needs to be O(nnz) and asynchronous.
    pub value_updates: bool,
    /// The pedantic compute type was asked for: factors are multiplied as they are.
    pub ieee: bool,
}

impl SpmmProblem {
    /// [`Self::n_hint`], as a size.
    pub fn columns(&self) -> usize {
        usize::try_from(self.n_hint).unwrap_or(0)
    }
}

/// C = alpha · op(A) · op(B), all sparse.
#[derive(Clone, Copy, Debug)]
pub struct SpgemmProblem {
    /// op(A).
    pub op_a: Operation,
    /// op(B).
    pub op_b: Operation,
    /// A.
    pub a: SparseMatrix,
    /// B.
    pub b: SparseMatrix,
    /// Value and compute types (`x` is B's, `y` is C's).
    pub types: Types,
    /// Keep C's pattern, so that numeric phases after the first only compute
    /// values.
    pub value_updates: bool,
    /// Products and sums are IEEE operations of the compute type alone: no matrix units multiply halves.
    pub ieee: bool,
    /// The columns of each row of C ascend; else they are in the order that costs a backend least, which is the
    /// same from call to call. What a row has, and its sums, do not depend on it.
    pub sorted_output: bool,
}

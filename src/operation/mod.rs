//! The operation of a plan: what differs between SpMV, SpMM and SpGEMM.

use super::{decisions, SpgemmPlan, SpmmPlan, SpmvPlan};
use crate::algorithm::Row;
use crate::error::Result;
use crate::matrix::SparseMatrix;
use crate::memory::Context;
use crate::reorder::KeptOrder;
use crate::select::Choice;
use crate::types::OpKind;

/// The operation of a plan.
pub enum Task {
    /// y = alpha · op(A) · x + beta · y.
    Spmv(SpmvPlan),
    /// C = alpha · op(A) · op(B) + beta · C.
    Spmm(SpmmPlan),
    /// C = alpha · op(A) · op(B), sparse.
    Spgemm(SpgemmPlan),
}

impl Task {
    /// Whether products of the plan have the same bits from run to run.
    pub(super) fn is_deterministic(&self) -> bool {
        match self {
            Task::Spmm(task) => task.is_deterministic(),
            Task::Spmv(_) | Task::Spgemm(_) => true,
        }
    }

    pub(super) fn kind(&self) -> OpKind {
        match self {
            Task::Spmv(_) => OpKind::Spmv,
            Task::Spmm(_) => OpKind::Spmm,
            Task::Spgemm(_) => OpKind::Spgemm,
        }
    }

    /// Rows that an order of rows has.
    pub(super) fn rows_in_order(&self) -> usize {
        match self {
            Task::Spmv(task) => task.shape().0 as usize,
            Task::Spmm(task) => task.shape().0 as usize,
            Task::Spgemm(_) => 0,
        }
    }

    /// The order of rows that analysis has computed on the host, if it has.
    pub(super) fn row_order(&self, cx: &Context) -> Result<Option<KeptOrder>> {
        match self {
            Task::Spmv(task) => task.row_order(cx),
            Task::Spmm(task) => task.row_order(cx),
            Task::Spgemm(_) => Ok(None),
        }
    }

    /// Rows of the table of algorithms among which analysis chooses.
    pub(super) fn rows(&self) -> &[&'static Row] {
        match self {
            Task::Spmv(task) => &task.rows,
            Task::Spmm(task) => &task.rows,
            Task::Spgemm(task) => &task.rows,
        }
    }

    /// What the plan was created with, in a fixed order for each operation.
    pub(super) fn facts(&self) -> decisions::Facts {
        let mut facts = Vec::new();
        match self {
            Task::Spmv(task) => task.facts(&mut facts),
            Task::Spmm(task) => task.facts(&mut facts),
            Task::Spgemm(task) => task.facts(&mut facts),
        }
        facts
    }

    /// Sparse matrices that are given, with the arguments' names.
    pub(super) fn matrices(&self) -> Vec<(&'static str, SparseMatrix)> {
        match self {
            Task::Spmv(task) => task.matrices(),
            Task::Spmm(task) => task.matrices(),
            Task::Spgemm(task) => task.matrices(),
        }
    }

    /// Whether the arrays of A (and B) may go after analysis.
    pub(super) fn set_temporary(&mut self, temporary: bool) {
        match self {
            Task::Spmv(task) => task.set_temporary(temporary),
            Task::Spmm(task) => task.set_temporary(temporary),
            Task::Spgemm(task) => task.set_temporary(temporary),
        }
    }

    /// A choice that was made elsewhere is one of this plan's.
    pub(super) fn admits(&self, choice: &Choice) -> Result<()> {
        match self {
            Task::Spmv(task) => task.admits(choice),
            Task::Spmm(task) => task.admits(choice),
            Task::Spgemm(task) => task.admits(choice),
        }
    }
}

/// The task of the operation that a function is for.
macro_rules! task_of {
    ($task:expr, $variant:ident, $function:literal) => {
        match $task {
            $crate::plan::Task::$variant(task) => Ok(task),
            _ => Err($crate::error::Error::invalid(
                "plan",
                concat!("it is not a plan that ", $function, " takes: it was made for another operation"),
            )),
        }
    };
}
pub(crate) use task_of;

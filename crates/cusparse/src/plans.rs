//! Plans of matrices that the program has preprocessed: by `cusparseSpMV_preprocess` and
//! `cusparseSpMM_preprocess` it promises that the pattern stays as it is.
//!
//! A plan is kept by the address of the matrix's descriptor, and goes with the descriptor, or when the program
//! gives it other arrays. It serves the product that it was made for, on the handle that it was made with; any
//! other product with the matrix is as without it. The values are read in place, unless
//! `TARSIA_CUSPARSE_VALUES` says that they stay, too.

use std::collections::BTreeMap;
use std::ffi::c_int;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tarsia::facade::direct::{Product, Spmm, Spmv};

use crate::arguments::Object;
use crate::functions::Operation;
use crate::handles;

/// Plan for the products of an operation with a matrix.
pub enum Plan {
    Spmv(Product<Spmv>),
    Spmm(Product<Spmm>),
}

/// A plan, with the arguments of the preprocess that it was made for.
pub struct MatrixPlan {
    pub plan: Plan,
    /// Address of the handle, in whose workspace products run.
    pub handle: usize,
    /// cuSPARSE's number of the algorithm.
    pub algorithm: c_int,
}

/// Address of a matrix's descriptor, and true for SpMM's plan.
type Key = (usize, bool);

/// Plans of all matrices that were preprocessed. There is `None` where none could be made, and after the second
/// preprocess for the same operation: the pattern may have changed between the two, and a program that calls it
/// again and again would get an analysis each time.
static PLANS: Mutex<BTreeMap<Key, Option<Arc<MatrixPlan>>>> = Mutex::new(BTreeMap::new());

fn plans() -> MutexGuard<'static, BTreeMap<Key, Option<Arc<MatrixPlan>>>> {
    PLANS.lock().unwrap_or_else(PoisonError::into_inner)
}

fn key(matrix: Object, operation: Operation) -> Key {
    (matrix.addr(), operation == Operation::Spmm)
}

/// Returns the plan of a matrix for an operation, if it was made with this handle and algorithm.
pub fn find(matrix: Object, of: Operation, handle: Object, algorithm: c_int) -> Option<Arc<MatrixPlan>> {
    let plan = plans().get(&key(matrix, of))?.clone()?;
    (plan.handle == handle.addr() && plan.algorithm == algorithm).then_some(plan)
}

/// Notes a preprocess of a matrix, and returns whether it is the first for this operation, so that a plan is to
/// be made. Drops the plan of an earlier one.
pub fn begin(matrix: Object, of: Operation) -> bool {
    // The plan's memory is freed after the lock is released.
    let earlier = plans().insert(key(matrix, of), None);
    earlier.is_none()
}

/// Keeps a plan, unless the matrix has gone in the meantime.
pub fn keep(matrix: Object, of: Operation, plan: MatrixPlan) {
    if let Some(place) = plans().get_mut(&key(matrix, of)) {
        *place = Some(Arc::new(plan));
    }
}

/// Drops the plans of a matrix that the program destroys, or gives other arrays.
pub fn forget(matrix: Object) {
    if !handles::is_child() {
        for of in [Operation::Spmv, Operation::Spmm] {
            let gone = plans().remove(&key(matrix, of));
            drop(gone);
        }
    }
}

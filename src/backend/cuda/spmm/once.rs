//! SpMM without a plan: algorithm `row` on the user's arrays, with lists of rows that a launch makes before
//! the product. It never waits, and does not check the pattern.

use std::collections::HashMap;
use std::sync::Arc;

use once_cell::sync::Lazy;
use parking_lot::Mutex;

use super::schedule::Schedule;
use super::{product as bytes_of, Kernels, RowKernels, RowSpmm};
use crate::backend::cuda::device::{Device, Relaxed};
use crate::backend::cuda::operand::{Operand, Rows};
use crate::backend::cuda::order::Order;
use crate::error::Result;
use crate::matrix::SparseArrays;
use crate::problem::SpmmProblem;
use crate::select;
use crate::select::spmm::reach::Reach;
use crate::select::spmm::row::COPIED_WITHOUT_PLAN;
use crate::support::Types;
use crate::types::IndexType;

/// Loaded kernels by the address of their device, which lives as long as the process, and by types.
type Loaded = HashMap<(usize, Types, IndexType), Arc<Kernels>>;
static LOADED: Lazy<Mutex<Loaded>> = Lazy::new(Mutex::default);

fn kernels(device: &Arc<Device>, types: Types, width: IndexType) -> Result<Arc<Kernels>> {
    let key = (Arc::as_ptr(device).addr(), types, width);
    let mut loaded = LOADED.lock();
    if let Some(kernels) = loaded.get(&key) {
        return Ok(Arc::clone(kernels));
    }
    // The call may come during a capture.
    let _relaxed = Relaxed::enter();
    Schedule::load_making(device)?;
    let mut kernels = Kernels::load(device, types, width)?;
    kernels.lists = Some(RowKernels::of_lists(device, types, width)?);
    let kernels = Arc::new(kernels);
    loaded.insert(key, Arc::clone(&kernels));
    Ok(kernels)
}

/// Returns the executor for a problem whose rows of op(A) are contiguous in the user's arrays; `None` if they
/// are not, or if the matrix is too large to be multiplied without analysis. The context must be current.
pub(super) fn product(device: &Arc<Device>, problem: &SpmmProblem) -> Result<Option<RowSpmm>> {
    if !select::in_place(&problem.a, problem.op) {
        return Ok(None);
    }
    let (SparseArrays::Csr(m) | SparseArrays::Csc(m)) = &problem.a.arrays else { return Ok(None) };
    let rows = Rows::of(m);
    // Lists number rows by 32 bits, and so do kernels for the entries of a row that is in no list. With more
    // than 2^31 − 1 rows and more than 2^31 − 1 entries, a row may have too many.
    if rows.rows > i64::from(i32::MAX) && rows.nnz > i64::from(i32::MAX) {
        return Ok(None);
    }
    let row_bytes = bytes_of(&[problem.columns(), problem.types.compute.scalar().size()]);
    Ok(Some(RowSpmm {
        device: Arc::clone(device),
        problem: *problem,
        operand: Operand::InPlace(*m),
        order: Order::none(),
        schedule: Schedule::unanalyzed(device, &rows, row_bytes),
        kernels: kernels(device, problem.types, rows.index_type)?,
        mean: rows.nnz / rows.rows.max(1),
        reach: Reach::new((rows.rows, rows.cols, rows.nnz), 0, Vec::new(), device.properties().l2_bytes),
        copied: COPIED_WITHOUT_PLAN,
    }))
}

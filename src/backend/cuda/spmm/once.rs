//! SpMM without a plan: algorithm `row` on the user's arrays, whose rows the product's warps find by a search, or
//! with lists of rows that a launch makes before the product. It never waits, and does not check the pattern.

use std::sync::Arc;

use super::columns::{self, has_columns};
use super::kernels::Kernels;
use super::schedule::Schedule;
use super::{saturating_product, RowSpmm};
use crate::backend::cuda::device::Device;
use crate::backend::cuda::operand::{Operand, Rows};
use crate::backend::cuda::order::Order;
use crate::error::Result;
use crate::matrix::SparseArrays;
use crate::problem::SpmmProblem;
use crate::select;
use crate::select::spmm::merge::{Path, Tile};
use crate::select::spmm::reach::Reach;
use crate::select::spmm::row::COPIED_WITHOUT_PLAN;

/// Returns the executor for a problem whose rows of op(A) are contiguous in the user's arrays; `None` if they
/// are not, or if the matrix is too large to be multiplied without a plan. The context must be current.
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
    let kernels = Kernels::load(device, problem.types, rows.index_type)?;
    kernels.lists(device, problem.types, rows.index_type)?;
    let row_bytes = saturating_product(&[problem.columns(), problem.types.compute.scalar().size()]);
    let schedule = Schedule::unanalyzed(device, &rows, row_bytes);
    let multiprocessors = i64::from(device.properties().multiprocessors);
    let types = (problem.types.x, problem.types.compute.scalar().size());
    let counts = (rows.rows, rows.nnz);
    let of_columns = has_columns(problem)
        .then(|| Path::of_columns(types, problem.columns(), counts, multiprocessors))
        .flatten();
    // The decision stands in front of the lists.
    let column_limits = columns::limits(device, problem, &rows)
        .filter(|_| of_columns.is_none() && schedule.list_blocks() > 0);
    if column_limits.is_some() {
        kernels.columns(device, problem.types, rows.index_type)?;
    }
    let of_rows = || Path::new(types, problem.columns(), counts, multiprocessors);
    let path = of_columns.or_else(of_rows).filter(|_| column_limits.is_none());
    match path.map(|path| path.tile) {
        Some(Tile::Rows { .. }) => _ = kernels.merge(device, problem.types, rows.index_type)?,
        Some(Tile::Columns { .. }) => _ = kernels.column_merge(device, problem.types, rows.index_type)?,
        None => {}
    }
    Ok(Some(RowSpmm {
        device: Arc::clone(device),
        problem: *problem,
        operand: Operand::InPlace(*m),
        order: Order::none(),
        schedule,
        kernels,
        mean: rows.nnz / rows.rows.max(1),
        reach: Reach::new((rows.rows, rows.cols, rows.nnz), 0, Vec::new(), device.properties().l2_bytes),
        max_copied_bytes: COPIED_WITHOUT_PLAN,
        path,
        column_limits,
    }))
}

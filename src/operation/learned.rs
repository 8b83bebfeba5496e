//! `TARSIA_REORDER_LEARNED`: which order of rows it stands for in a plan.

use super::Analysis;
use crate::algorithm::Row;
use crate::error::Result;
use crate::matrix::SparseMatrix;
use crate::select::{self, orders, Choice};
use crate::types::{Operation, Reorder};

/// The order that is predicted to be the fastest for products of op(A) by an algorithm of these rows of the table: a
/// name, or none. Blocks, and reads the pattern; on the reference backend, which has no orders, rows keep theirs.
pub(super) fn order(
    analysis: &Analysis<'_>,
    rows: &[&'static Row],
    (_, op, a): &(&str, Operation, SparseMatrix),
) -> Result<Reorder> {
    let rows = select::rows_in_order(rows, Reorder::Learned)?;
    let algorithm = select::require_learned(a, *op, &rows)?;
    match analysis.backend.row_features(analysis.cx, a, *op)? {
        Some(features) => orders::h100().choose(algorithm, &features),
        None => Ok(Reorder::None),
    }
}

/// Says in the reason of a choice that its order of rows is a learned one.
pub(super) fn explain(order: Reorder, choice: &mut Choice) {
    let found = match order {
        Reorder::None => "the rows' own order",
        policy => policy.c_name(),
    };
    let learned = Reorder::Learned.c_name();
    choice.reason.push_str(&format!("; {learned} predicts that {found} is the fastest order"));
}

//! The choice of the row order that `TARSIA_REORDER_LEARNED` stands for in a plan.

use super::Analysis;
use crate::algorithm::Row;
use crate::error::Result;
use crate::matrix::SparseMatrix;
use crate::select::{self, orders, Choice};
use crate::types::{Operation, Reorder};

/// Returns the order that is predicted to be the fastest for products with op(A) by an algorithm of these
/// rows of the table: a named order or [`Reorder::None`]. Blocks, since it reads the pattern. The reference
/// backend has no orders, so the rows stay in place there.
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

/// Adds to the reason of a choice that its row order is a learned one.
pub(super) fn explain(order: Reorder, choice: &mut Choice) {
    let found = match order {
        Reorder::None => "the rows' own order",
        policy => policy.c_name(),
    };
    let learned = Reorder::Learned.c_name();
    choice.reason.push_str(&format!("; {learned} predicts that {found} is the fastest order"));
}

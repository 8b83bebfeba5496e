//! The arguments of createPlan as numbers, by which decisions are matched with plans.

use super::Op;
use crate::matrix::{Compressed, SparseArrays, SparseMatrix};
use crate::support::Types;

/// Numbers with the names that error messages use for them.
pub type PlanArguments = Vec<(String, i64)>;

/// Appends the value and compute types.
pub fn types(arguments: &mut PlanArguments, types: Types, [x, y]: [&str; 2]) {
    arguments.push((x.into(), types.x.code().into()));
    arguments.push((y.into(), types.y.code().into()));
    arguments.push(("computeType".into(), types.compute.code().into()));
}

/// Appends an op.
pub fn operation(arguments: &mut PlanArguments, name: &str, op: Op) {
    arguments.push((name.into(), op.code().into()));
}

/// Appends the properties of a sparse matrix. The format is first, since the list of the others depends on
/// it.
pub fn matrix(arguments: &mut PlanArguments, name: &str, a: &SparseMatrix) {
    let mut add = |what: &str, value: i64| arguments.push((format!("{name}'s {what}"), value));
    let (rows, cols, nnz) = a.shape();
    add("format", a.format().code().into());
    add("rows", rows);
    add("columns", cols);
    add("stored entries", nnz);
    add("valueType", a.value_type().code().into());
    add("index base", a.base().code().into());
    add("selfContained", a.temporary.into());
    let mut widths = |m: &Compressed| {
        add("offsetType", m.offset_type.code().into());
        add("indexType", m.index_type.code().into());
    };
    match &a.arrays {
        SparseArrays::Csr(m) | SparseArrays::Csc(m) => widths(m),
        SparseArrays::Bsr(m) => {
            widths(&m.pattern());
            add("rowBlockSize", m.row_block);
            add("colBlockSize", m.col_block);
            add("order of blocks", m.block_order.code().into());
        }
        SparseArrays::Coo(m) => add("indexType", m.index_type.code().into()),
        SparseArrays::Tile(_) => {}
    }
}

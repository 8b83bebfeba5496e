//! Descriptors and views of gallery matrices for unit tests.

use matrices::owned::OwnedCsr;

use super::compressed::Pattern;
use super::{Compressed, SparseArrays, SparseMatrix};
use crate::types::{Address, Element, IndexBase, IndexType};

/// Returns the descriptor of a matrix in host memory, which borrows its arrays.
pub(crate) fn csr<V: Element>(a: &OwnedCsr<V>) -> SparseMatrix {
    let arrays = SparseArrays::Csr(Compressed {
        major: a.rows as i64,
        minor: a.cols as i64,
        nnz: a.nnz() as i64,
        offsets: Address::new(a.offsets.as_ptr()),
        indices: Address::new(a.indices.as_ptr()),
        values: Address::new(a.values.as_ptr()),
        offset_type: IndexType::I64,
        index_type: IndexType::I32,
        base: IndexBase::Zero,
        value_type: V::TYPE,
    });
    SparseMatrix { arrays, writable: false, temporary: false }
}

/// Returns the typed view of a matrix's pattern.
pub(crate) fn pattern<V>(a: &OwnedCsr<V>) -> Pattern<'_, i64, i32> {
    Pattern {
        major: a.rows,
        minor: a.cols,
        base: 0,
        offsets: &a.offsets,
        indices: &a.indices,
        by_columns: false,
    }
}

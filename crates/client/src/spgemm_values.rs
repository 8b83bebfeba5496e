//! New values for both factors of SpGEMM.

use std::ptr::null_mut;

use super::{check, length, Element, Memory, Plan, Session, Sparse};
use tarsia::capi::{spgemm, spmat_access};
use tarsia::facade::Result;

/// Returns the number of stored entries of a matrix.
pub fn entries(matrix: &Sparse<'_>) -> Result<usize> {
    let mut nnz = 0;
    // SAFETY: `nnz` is valid for a write; rows and columns are not wanted.
    check(unsafe { spmat_access::tarsiaSpMatGetSize(matrix.raw, null_mut(), null_mut(), &mut nnz) })?;
    Ok(nnz as usize)
}

impl<'a> Plan<'a> {
    /// Calls `tarsiaSpGEMM_updateValues` with values of both factors, in the order of the descriptors'.
    pub fn update_both_values<V: Element>(
        &self,
        session: &Session,
        a: impl Memory<'a, Item = V>,
        b: impl Memory<'a, Item = V>,
    ) -> Result<()> {
        let (a, b) = (a.view(), b.view());
        for (name, values, nnz) in [("newValuesA", &a, self.nnz), ("newValuesB", &b, self.nnz_b)] {
            length(name, values.len, Some(nnz))?;
            self.same_type(name, V::TYPE, self.value_type)?;
            values.place.require(name, session)?;
        }
        // SAFETY: the arrays have the lengths and the type of the factors' values and live for 'a.
        check(unsafe { spgemm::tarsiaSpGEMM_updateValues(session.raw, self.raw, a.void(), b.void()) })
    }
}

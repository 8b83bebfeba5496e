//! Sparse matrix descriptors: create, destroy, check.

use std::mem::MaybeUninit;

use libc::{c_int, c_void};

use super::boundary::{check_enum, guard, guard_handle, out, Out};
use super::enums::{tarsiaDataType_t, tarsiaIndexBase_t, tarsiaIndexType_t, tarsiaOrder_t, tarsiaStatus_t};
use super::objects::{
    self, const_pointer, pointer, sparse, tarsiaConstSpMatDescr_t, tarsiaHandle_t, tarsiaSpMatDescr_t,
    Described, Sparse,
};
use crate::matrix::{no_arrays, Bsr, Compressed, Coo, SparseArrays, SparseMatrix};
use crate::types::Address;

// The functions of descriptors.rs that create one: tarsiaCreateCsr, tarsiaCreateConstCsr ….
include!(concat!(env!("OUT_DIR"), "/spmat_descriptors.rs"));

/// Destroys a sparse matrix descriptor, but not the arrays; for a matrix of tarsiaCreateTile also the tiles,
/// once no plan reads them. NULL does nothing. Plans made with the descriptor stay usable, as long as the
/// arrays are there.
///
/// Statuses: INVALID_VALUE (not a live descriptor).
#[no_mangle]
pub extern "C" fn tarsiaDestroySpMat(A: tarsiaConstSpMatDescr_t) -> tarsiaStatus_t {
    guard(|| objects::SPARSE.destroy("A", A.addr()))
}

/// Validates the whole pattern of a matrix that is not trusted: offsets start at the base, never decrease and
/// end at base + nnz; indices are in range. tarsiaPlan_analyze validates the same; this call also says
/// whether the matrix is sorted and free of duplicates.
///
/// sorted, unique: host, each may be NULL. sorted: 1 if indices ascend inside every row (CSR; BSR: of blocks)
/// or column (CSC), or entries ascend by (row, column) (COO). unique: 1 if it is sorted and nothing is stored
/// twice. An unsorted matrix or one with duplicates is not an error: SpMV, SpMM and SpGEMM take unsorted
/// matrices and add up entries that are stored twice. tarsiaSpMatGetSorted returns this value of sorted from
/// then on.
///
/// Blocks; not inside a capture. Does not read the values.
///
/// Statuses: NOT_INITIALIZED, INVALID_VALUE (A is not a live descriptor, has a
/// NULL array, or its pattern is wrong: the text says where), NOT_SUPPORTED (A is
/// in tiles).
#[no_mangle]
pub unsafe extern "C" fn tarsiaCheckSpMat(
    handle: tarsiaHandle_t,
    A: tarsiaConstSpMatDescr_t,
    sorted: *mut c_int,
    unique: *mut c_int,
) -> tarsiaStatus_t {
    guard_handle(handle, |handle| {
        // SAFETY: the caller promises valid pointers or NULL.
        let (sorted, unique) =
            unsafe { (Out::optional("sorted", sorted)?, Out::optional("unique", unique)?) };
        if let Sparse::Tiles(_) = objects::sparse_or_tiles("A", A)? {
            return Err(no_arrays("A"));
        }
        handle.backend().require_blocking(handle.stream(), "tarsiaCheckSpMat")?;
        let found = handle.backend().check_sparse(&handle.context(), &sparse("A", A)?, "A");
        objects::note_sorted(A, found.as_ref().is_ok_and(|found| found.sorted));
        let found = found?;
        if let Some(out) = sorted {
            out.set(c_int::from(found.sorted))?;
        }
        if let Some(out) = unique {
            out.set(c_int::from(found.unique))?;
        }
        Ok(())
    })
}

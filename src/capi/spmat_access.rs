//! Sparse matrix descriptors: getters and setters.

use libc::{c_int, c_void};

use super::boundary::{answer, guard, out};
use super::enums::{
    tarsiaDataType_t, tarsiaFormat_t, tarsiaIndexBase_t, tarsiaIndexType_t, tarsiaOrder_t, tarsiaStatus_t,
};
use super::objects::{self, sparse, tarsiaConstSpMatDescr_t, tarsiaSpMatDescr_t, Described};
use crate::error::{Error, Result};
use crate::matrix::{no_arrays, Bsr, Compressed, Coo, SparseArrays, SparseMatrix};
use crate::types::{Address, Format};

/// Makes the `INVALID_VALUE` error of a function for one format that is given a matrix of another format.
fn other_format(found: &SparseMatrix, expected: Format) -> Error {
    Error::invalid(
        "A",
        format!("it is a {} matrix, this function is for {}", found.format().short(), expected.short()),
    )
}

/// Returns the matrix, or an error if it is in tiles, which have no arrays of the user.
fn with_arrays(a: SparseMatrix) -> Result<SparseMatrix> {
    match a.arrays {
        SparseArrays::Tile(_) => Err(no_arrays("A")),
        _ => Ok(a),
    }
}

// The functions of descriptors.rs that are for one format: tarsiaCsrGet, tarsiaConstCsrGet,
// tarsiaCsrSetPointers …
include!(concat!(env!("OUT_DIR"), "/spmat_access_descriptors.rs"));

/// Gets the numbers of rows, columns and stored entries, in scalars also for BSR. Answers: host, each may be
/// NULL.
///
/// Statuses: INVALID_VALUE (A is not a live descriptor; a misaligned answer).
#[no_mangle]
pub unsafe extern "C" fn tarsiaSpMatGetSize(
    A: tarsiaConstSpMatDescr_t,
    rows: *mut i64,
    cols: *mut i64,
    nnz: *mut i64,
) -> tarsiaStatus_t {
    guard(|| {
        let shape = sparse("A", A)?.shape();
        answer! {
            rows: set(shape.0),
            cols: set(shape.1),
            nnz: set(shape.2),
        }
    })
}

/// Gets the format of a descriptor.
///
/// format: host.
///
/// Statuses: INVALID_VALUE (A is not a live descriptor, format is NULL).
#[no_mangle]
pub unsafe extern "C" fn tarsiaSpMatGetFormat(
    A: tarsiaConstSpMatDescr_t,
    format: *mut tarsiaFormat_t,
) -> tarsiaStatus_t {
    guard(|| {
        let a = sparse("A", A)?;
        out!(format).set_enum(a.format())
    })
}

/// Gets the index base of a descriptor.
///
/// base: host.
///
/// Statuses: INVALID_VALUE (A is not a live descriptor, base is NULL),
/// NOT_SUPPORTED (A is in tiles).
#[no_mangle]
pub unsafe extern "C" fn tarsiaSpMatGetIndexBase(
    A: tarsiaConstSpMatDescr_t,
    base: *mut tarsiaIndexBase_t,
) -> tarsiaStatus_t {
    guard(|| {
        let a = with_arrays(sparse("A", A)?)?;
        out!(base).set_enum(a.base())
    })
}

/// Gets whether the indices of each row are known to ascend (CSC: of each column; BSR: of blocks; COO:
/// entries by row and column), in the sense of sorted of tarsiaCheckSpMat: an index that is stored twice does
/// not change it.
///
/// sorted: host. 1: the last call of the library that has checked or written the whole pattern of this
/// descriptor found or wrote it sorted: tarsiaCheckSpMat, tarsiaSpGEMM_numeric of a plan whose output is
/// sorted, tarsiaTileToSparse; for a matrix in tiles always. 0: not known. That is the answer for a
/// descriptor that has just been created, after new pointers (tarsiaCsrSetPointers and so on; not
/// tarsiaSpMatSetValues, which leaves the pattern), after tarsiaCheckSpMat has found another order or an
/// error, and after tarsiaSpGEMM_numeric of a plan of tarsiaPlan_setSortedOutput(plan, 0), whatever order it
/// wrote. A call that fails leaves 0, or the previous answer. tarsiaPlan_analyze changes no descriptor.
///
/// Work on a device that writes the matrix may still be under way when the answer is known. The call reads
/// nothing of the matrix: a program that writes indices itself calls tarsiaCheckSpMat again. No operation
/// needs sorted indices.
///
/// Statuses: INVALID_VALUE (A is not a live descriptor, sorted is NULL).
#[no_mangle]
pub unsafe extern "C" fn tarsiaSpMatGetSorted(
    A: tarsiaConstSpMatDescr_t,
    sorted: *mut c_int,
) -> tarsiaStatus_t {
    guard(|| {
        let is_sorted = objects::is_sorted("A", A)?;
        out!(sorted).set(c_int::from(is_sorted))
    })
}

/// Gets the value array of a descriptor.
///
/// values: host.
///
/// Statuses: INVALID_VALUE (A is not a live descriptor or was made from const
/// arrays, values is NULL), NOT_SUPPORTED (A is in tiles).
#[no_mangle]
pub unsafe extern "C" fn tarsiaSpMatGetValues(
    A: tarsiaSpMatDescr_t,
    values: *mut *mut c_void,
) -> tarsiaStatus_t {
    guard(|| {
        let a = with_arrays(SparseMatrix::of("A", A.addr(), true)?)?;
        out!(values).set(a.values().as_mut_ptr())
    })
}

/// Gets the value array of any descriptor, as a pointer to const.
///
/// values: host.
///
/// Statuses: INVALID_VALUE (A is not a live descriptor, values is NULL),
/// NOT_SUPPORTED (A is in tiles).
#[no_mangle]
pub unsafe extern "C" fn tarsiaConstSpMatGetValues(
    A: tarsiaConstSpMatDescr_t,
    values: *mut *const c_void,
) -> tarsiaStatus_t {
    guard(|| {
        let a = with_arrays(sparse("A", A)?)?;
        out!(values).set(a.values().as_ptr())
    })
}

/// Replaces the value array of a descriptor. A plan copies the descriptor's fields, so this reaches no plan:
/// an existing plan keeps its array until tarsiaPlan_updateValues (for the second factor of SpGEMM
/// tarsiaSpGEMM_updateValues) gives it another. (A program calls that after every change of values; until
/// then a product may use the old or the new ones.)
///
/// Statuses: INVALID_VALUE (A is not a live descriptor or was made from const
/// arrays, misaligned values), NOT_SUPPORTED (A is in tiles).
#[no_mangle]
pub unsafe extern "C" fn tarsiaSpMatSetValues(A: tarsiaSpMatDescr_t, values: *mut c_void) -> tarsiaStatus_t {
    guard(|| {
        let a = with_arrays(SparseMatrix::of("A", A.addr(), true)?)?;
        let is_sorted = objects::is_sorted("A", A)?;
        a.with_values(Address::new(values)).replace("A", A.addr())?;
        // The pattern did not change, so the sorted flag stays.
        objects::note_sorted(A, is_sorted);
        Ok(())
    })
}

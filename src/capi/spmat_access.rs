//! Sparse matrix descriptors: getters and setters.

use libc::c_void;

use super::boundary::{answer, guard, out};
use super::enums::{
    tarsiaDataType_t, tarsiaFormat_t, tarsiaIndexBase_t, tarsiaIndexType_t, tarsiaOrder_t, tarsiaStatus_t,
};
use super::objects::{sparse, tarsiaConstSpMatDescr_t, tarsiaSpMatDescr_t, Described};
use crate::error::{Error, Result};
use crate::matrix::{no_arrays, Bsr, Compressed, Coo, SparseArrays, SparseMatrix};
use crate::types::{Address, Format};

/// `INVALID_VALUE` where a function of one format is given a matrix of another.
fn other_format(found: &SparseMatrix, expected: Format) -> Error {
    Error::invalid(
        "A",
        format!("it is a {} matrix, this function is for {}", found.format().short(), expected.short()),
    )
}

/// A matrix whose arrays are the user's.
fn with_arrays(a: SparseMatrix) -> Result<SparseMatrix> {
    match a.arrays {
        SparseArrays::Tile(_) => Err(no_arrays("A")),
        _ => Ok(a),
    }
}

// The functions of descriptors.rs that are for one format: tarsiaCsrGet, tarsiaConstCsrGet, tarsiaCsrSetPointers ….
include!(concat!(env!("OUT_DIR"), "/spmat_access_descriptors.rs"));

/// Rows, columns and stored entries, in scalars also for BSR. Answers: host,
/// each may be NULL.
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
        Ok(())
    })
}

/// Format of a descriptor.
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
        out!(format).set_enum(a.format());
        Ok(())
    })
}

/// Index base of a descriptor.
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
        out!(base).set_enum(a.base());
        Ok(())
    })
}

/// Value array of a descriptor.
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
        out!(values).set(a.values().as_mut_ptr());
        Ok(())
    })
}

/// Value array of any descriptor, to read.
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
        out!(values).set(a.values().as_ptr());
        Ok(())
    })
}

/// Replaces the value array of a descriptor. A plan copies the descriptor's fields, so this
/// reaches no plan: one that was created keeps its array until tarsiaPlan_updateValues (for the
/// second factor of SpGEMM tarsiaSpGEMM_updateValues) gives it another. (After changing values a program calls that in any case; until
/// then a product may have the old or the new ones.)
///
/// Statuses: INVALID_VALUE (A is not a live descriptor or was made from const
/// arrays, misaligned values), NOT_SUPPORTED (A is in tiles).
#[no_mangle]
pub unsafe extern "C" fn tarsiaSpMatSetValues(A: tarsiaSpMatDescr_t, values: *mut c_void) -> tarsiaStatus_t {
    guard(|| {
        let a = with_arrays(SparseMatrix::of("A", A.addr(), true)?)?;
        a.with_values(Address::new(values)).replace("A", A.addr())
    })
}

//! Dense matrix descriptors.

use std::mem::MaybeUninit;

use libc::c_void;

use super::boundary::{answer, check_enum, guard, not_live, Out};
use super::enums::{tarsiaDataType_t, tarsiaOrder_t, tarsiaStatus_t};
use super::objects::{
    self, const_pointer, destroy, matrix, pointer, tarsiaConstDnMatDescr_t, tarsiaDnMatDescr_t,
};
use crate::error::{Error, Result};
use crate::matrix::DenseMatrix;
use crate::types::Address;

fn insert(
    (rows, cols, ld): (i64, i64, i64),
    values: Address,
    value_type: MaybeUninit<tarsiaDataType_t>,
    order: MaybeUninit<tarsiaOrder_t>,
    writable: bool,
) -> Result<usize> {
    let value_type = check_enum("valueType", value_type)?;
    let order = check_enum("order", order)?;
    let v = DenseMatrix { rows, cols, ld, values, value_type, order, writable };
    v.check()?;
    objects::MATRICES.insert(v)
}

fn writable(B: tarsiaDnMatDescr_t) -> Result<DenseMatrix> {
    let v = matrix("B", B)?;
    if !v.writable {
        return Err(Error::invalid("B", "it was made from a const array; use the Const getter"));
    }
    Ok(v)
}

/// Describes a dense matrix of rows × cols elements. Element (i, j) is at
/// values[i + j·ld] in order COL (ld ≥ rows) and at values[i·ld + j] in order ROW
/// (ld ≥ cols); ld ≥ 1, in elements.
///
/// The descriptor borrows the array and copies nothing. values: in the backend's
/// memory, aligned to its elements, NULL allowed until the matrix is used.
///
/// Statuses: INVALID_VALUE (B is NULL, a dimension is negative, ld is too small or
/// the matrix more than memory holds, misaligned values, not a value of an enum),
/// NOT_SUPPORTED (value type that no operation takes), ALLOC_FAILED.
#[no_mangle]
pub unsafe extern "C" fn tarsiaCreateDnMat(
    B: *mut tarsiaDnMatDescr_t,
    rows: i64,
    cols: i64,
    ld: i64,
    values: *mut c_void,
    valueType: MaybeUninit<tarsiaDataType_t>,
    order: MaybeUninit<tarsiaOrder_t>,
) -> tarsiaStatus_t {
    guard(|| {
        // SAFETY: the caller promises a valid pointer or NULL.
        let out = unsafe { Out::new("B", B)? };
        out.set(pointer(insert((rows, cols, ld), Address::new(values), valueType, order, true)?));
        Ok(())
    })
}

/// As tarsiaCreateDnMat, from a const array: the descriptor cannot be C.
///
/// Statuses: those of tarsiaCreateDnMat.
#[no_mangle]
pub unsafe extern "C" fn tarsiaCreateConstDnMat(
    B: *mut tarsiaConstDnMatDescr_t,
    rows: i64,
    cols: i64,
    ld: i64,
    values: *const c_void,
    valueType: MaybeUninit<tarsiaDataType_t>,
    order: MaybeUninit<tarsiaOrder_t>,
) -> tarsiaStatus_t {
    guard(|| {
        // SAFETY: the caller promises a valid pointer or NULL.
        let out = unsafe { Out::new("B", B)? };
        out.set(const_pointer(insert((rows, cols, ld), Address::new(values), valueType, order, false)?));
        Ok(())
    })
}

/// Destroys a dense matrix descriptor, not the array. NULL does nothing.
///
/// Statuses: INVALID_VALUE (not a live descriptor).
#[no_mangle]
pub extern "C" fn tarsiaDestroyDnMat(B: tarsiaConstDnMatDescr_t) -> tarsiaStatus_t {
    guard(|| destroy(&objects::MATRICES, B.addr(), "B", "dense matrix descriptor").map(drop))
}

/// All fields of a dense matrix descriptor. Answers: host, each may be NULL.
///
/// Statuses: INVALID_VALUE (B is not a live descriptor or was made from a const
/// array; a misaligned answer).
#[no_mangle]
pub unsafe extern "C" fn tarsiaDnMatGet(
    B: tarsiaDnMatDescr_t,
    rows: *mut i64,
    cols: *mut i64,
    ld: *mut i64,
    values: *mut *mut c_void,
    valueType: *mut tarsiaDataType_t,
    order: *mut tarsiaOrder_t,
) -> tarsiaStatus_t {
    guard(|| {
        let v = writable(B)?;
        answer! {
            rows: set(v.rows),
            cols: set(v.cols),
            ld: set(v.ld),
            values: set(v.values.as_mut_ptr()),
            valueType: set_enum(v.value_type),
            order: set_enum(v.order),
        }
        Ok(())
    })
}

/// As tarsiaDnMatGet, for any dense matrix descriptor, with a pointer to const.
///
/// Statuses: INVALID_VALUE (B is not a live descriptor; a misaligned answer).
#[no_mangle]
pub unsafe extern "C" fn tarsiaConstDnMatGet(
    B: tarsiaConstDnMatDescr_t,
    rows: *mut i64,
    cols: *mut i64,
    ld: *mut i64,
    values: *mut *const c_void,
    valueType: *mut tarsiaDataType_t,
    order: *mut tarsiaOrder_t,
) -> tarsiaStatus_t {
    guard(|| {
        let v = matrix("B", B)?;
        answer! {
            rows: set(v.rows),
            cols: set(v.cols),
            ld: set(v.ld),
            values: set(v.values.as_ptr()),
            valueType: set_enum(v.value_type),
            order: set_enum(v.order),
        }
        Ok(())
    })
}

/// The array of a dense matrix descriptor.
///
/// values: host.
///
/// Statuses: INVALID_VALUE (B is not a live descriptor or was made from a const
/// array, values is NULL).
#[no_mangle]
pub unsafe extern "C" fn tarsiaDnMatGetValues(
    B: tarsiaDnMatDescr_t,
    values: *mut *mut c_void,
) -> tarsiaStatus_t {
    guard(|| {
        let v = writable(B)?;
        // SAFETY: the caller promises a valid pointer or NULL.
        unsafe { Out::new("values", values)? }.set(v.values.as_mut_ptr());
        Ok(())
    })
}

/// The array of any dense matrix descriptor, to read.
///
/// values: host.
///
/// Statuses: INVALID_VALUE (B is not a live descriptor, values is NULL).
#[no_mangle]
pub unsafe extern "C" fn tarsiaConstDnMatGetValues(
    B: tarsiaConstDnMatDescr_t,
    values: *mut *const c_void,
) -> tarsiaStatus_t {
    guard(|| {
        let v = matrix("B", B)?;
        // SAFETY: the caller promises a valid pointer or NULL.
        unsafe { Out::new("values", values)? }.set(v.values.as_ptr());
        Ok(())
    })
}

/// Replaces the array of a dense matrix descriptor; shape, order and type stay.
///
/// Statuses: INVALID_VALUE (B is not a live descriptor or was made from a const
/// array, misaligned values).
#[no_mangle]
pub unsafe extern "C" fn tarsiaDnMatSetValues(B: tarsiaDnMatDescr_t, values: *mut c_void) -> tarsiaStatus_t {
    guard(|| {
        let v = DenseMatrix { values: Address::new(values), ..writable(B)? };
        v.check()?;
        objects::MATRICES
            .update(B.addr(), |old| *old = v)
            .ok_or_else(|| not_live("B", B.is_null(), "dense matrix descriptor"))
    })
}

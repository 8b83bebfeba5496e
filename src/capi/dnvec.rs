//! Dense vector descriptors.

use std::mem::MaybeUninit;

use libc::c_void;

use super::boundary::{answer, check_enum, guard, not_live, Out};
use super::enums::{tarsiaDataType_t, tarsiaStatus_t};
use super::objects::{
    self, const_pointer, destroy, pointer, tarsiaConstDnVecDescr_t, tarsiaDnVecDescr_t, vector,
};
use crate::error::{Error, Result};
use crate::matrix::DenseVector;
use crate::types::Address;

fn insert(
    size: i64,
    values: Address,
    value_type: MaybeUninit<tarsiaDataType_t>,
    writable: bool,
) -> Result<usize> {
    let value_type = check_enum("valueType", value_type)?;
    let v = DenseVector { len: size, values, value_type, writable };
    v.check()?;
    objects::VECTORS.insert(v)
}

fn writable(x: tarsiaDnVecDescr_t) -> Result<DenseVector> {
    let v = vector("x", x)?;
    if !v.writable {
        return Err(Error::invalid("x", "it was made from a const array; use the Const getter"));
    }
    Ok(v)
}

/// Describes a dense vector of size elements, contiguous.
///
/// The descriptor borrows the array and copies nothing. values: in the backend's
/// memory, aligned to its elements, NULL allowed until the vector is used.
///
/// Statuses: INVALID_VALUE (x is NULL, size is negative or more than memory
/// holds, misaligned values, valueType is not a tarsiaDataType_t), NOT_SUPPORTED
/// (value type that no operation takes), ALLOC_FAILED.
#[no_mangle]
pub unsafe extern "C" fn tarsiaCreateDnVec(
    x: *mut tarsiaDnVecDescr_t,
    size: i64,
    values: *mut c_void,
    valueType: MaybeUninit<tarsiaDataType_t>,
) -> tarsiaStatus_t {
    guard(|| {
        // SAFETY: the caller promises a valid pointer or NULL.
        let out = unsafe { Out::new("x", x)? };
        out.set(pointer(insert(size, Address::new(values), valueType, true)?));
        Ok(())
    })
}

/// As tarsiaCreateDnVec, from a const array: the descriptor cannot be y.
///
/// Statuses: those of tarsiaCreateDnVec.
#[no_mangle]
pub unsafe extern "C" fn tarsiaCreateConstDnVec(
    x: *mut tarsiaConstDnVecDescr_t,
    size: i64,
    values: *const c_void,
    valueType: MaybeUninit<tarsiaDataType_t>,
) -> tarsiaStatus_t {
    guard(|| {
        // SAFETY: the caller promises a valid pointer or NULL.
        let out = unsafe { Out::new("x", x)? };
        out.set(const_pointer(insert(size, Address::new(values), valueType, false)?));
        Ok(())
    })
}

/// Destroys a dense vector descriptor, not the array. NULL does nothing.
///
/// Statuses: INVALID_VALUE (not a live descriptor).
#[no_mangle]
pub extern "C" fn tarsiaDestroyDnVec(x: tarsiaConstDnVecDescr_t) -> tarsiaStatus_t {
    guard(|| destroy(&objects::VECTORS, x.addr(), "x", "dense vector descriptor").map(drop))
}

/// All fields of a dense vector descriptor. Answers: host, each may be NULL.
///
/// Statuses: INVALID_VALUE (x is not a live descriptor or was made from a const
/// array; a misaligned answer).
#[no_mangle]
pub unsafe extern "C" fn tarsiaDnVecGet(
    x: tarsiaDnVecDescr_t,
    size: *mut i64,
    values: *mut *mut c_void,
    valueType: *mut tarsiaDataType_t,
) -> tarsiaStatus_t {
    guard(|| {
        let v = writable(x)?;
        answer! {
            size: set(v.len),
            values: set(v.values.as_mut_ptr()),
            valueType: set_enum(v.value_type),
        }
        Ok(())
    })
}

/// As tarsiaDnVecGet, for any dense vector descriptor, with a pointer to const.
///
/// Statuses: INVALID_VALUE (x is not a live descriptor; a misaligned answer).
#[no_mangle]
pub unsafe extern "C" fn tarsiaConstDnVecGet(
    x: tarsiaConstDnVecDescr_t,
    size: *mut i64,
    values: *mut *const c_void,
    valueType: *mut tarsiaDataType_t,
) -> tarsiaStatus_t {
    guard(|| {
        let v = vector("x", x)?;
        answer! {
            size: set(v.len),
            values: set(v.values.as_ptr()),
            valueType: set_enum(v.value_type),
        }
        Ok(())
    })
}

/// The array of a dense vector descriptor.
///
/// values: host.
///
/// Statuses: INVALID_VALUE (x is not a live descriptor or was made from a const
/// array, values is NULL).
#[no_mangle]
pub unsafe extern "C" fn tarsiaDnVecGetValues(
    x: tarsiaDnVecDescr_t,
    values: *mut *mut c_void,
) -> tarsiaStatus_t {
    guard(|| {
        let v = writable(x)?;
        // SAFETY: the caller promises a valid pointer or NULL.
        unsafe { Out::new("values", values)? }.set(v.values.as_mut_ptr());
        Ok(())
    })
}

/// The array of any dense vector descriptor, to read.
///
/// values: host.
///
/// Statuses: INVALID_VALUE (x is not a live descriptor, values is NULL).
#[no_mangle]
pub unsafe extern "C" fn tarsiaConstDnVecGetValues(
    x: tarsiaConstDnVecDescr_t,
    values: *mut *const c_void,
) -> tarsiaStatus_t {
    guard(|| {
        let v = vector("x", x)?;
        // SAFETY: the caller promises a valid pointer or NULL.
        unsafe { Out::new("values", values)? }.set(v.values.as_ptr());
        Ok(())
    })
}

/// Replaces the array of a dense vector descriptor; size and type stay.
///
/// Statuses: INVALID_VALUE (x is not a live descriptor or was made from a const
/// array, misaligned values).
#[no_mangle]
pub unsafe extern "C" fn tarsiaDnVecSetValues(x: tarsiaDnVecDescr_t, values: *mut c_void) -> tarsiaStatus_t {
    guard(|| {
        let v = DenseVector { values: Address::new(values), ..writable(x)? };
        v.check()?;
        objects::VECTORS
            .update(x.addr(), |old| *old = v)
            .ok_or_else(|| not_live("x", x.is_null(), "dense vector descriptor"))
    })
}

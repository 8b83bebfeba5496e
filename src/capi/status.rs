//! Statuses, error text, version.

use std::mem::MaybeUninit;

use libc::{c_char, c_int};

use super::boundary::{check_enum, copy_last_message, guard, out};
use super::enums::{tarsiaProperty_t, tarsiaStatus_t, CEnum};
use crate::error::{Error, Status};
use crate::types::Property;

fn status_of(status: MaybeUninit<tarsiaStatus_t>) -> Option<Status> {
    check_enum("status", status).ok()
}

/// Returns the name of a status, such as "TARSIA_STATUS_INVALID_VALUE"; "unknown status" for any other
/// integer. The string lives as long as the library; never NULL.
#[no_mangle]
pub extern "C" fn tarsiaGetErrorName(status: MaybeUninit<tarsiaStatus_t>) -> *const c_char {
    let name = status_of(status).map_or("unknown status\0", Status::c_string);
    name.as_ptr().cast()
}

/// Returns one sentence on the meaning of a status. The string lives as long as the library; never NULL.
#[no_mangle]
pub extern "C" fn tarsiaGetErrorString(status: MaybeUninit<tarsiaStatus_t>) -> *const c_char {
    let text = match status_of(status) {
        None => c"this integer is not a status of this library",
        Some(Status::Success) => c"the call succeeded",
        Some(Status::NotInitialized) => c"the handle is NULL or not a live handle",
        Some(Status::AllocFailed) => c"memory could not be allocated",
        Some(Status::InvalidValue) => c"an argument has a value that is not allowed",
        Some(Status::ArchMismatch) => {
            c"the library has no machine code for the device, and the driver cannot compile its PTX"
        }
        Some(Status::MappingError) => c"device memory could not be mapped",
        Some(Status::ExecutionFailed) => c"a kernel could not be launched or failed",
        Some(Status::InternalError) => c"an internal operation of the library failed",
        Some(Status::MatrixTypeNotSupported) => c"the matrix type is not supported",
        Some(Status::ZeroPivot) => c"a zero pivot was met",
        Some(Status::NotSupported) => c"the combination of operation, format and types is not supported",
        Some(Status::InsufficientResources) => c"a workspace, a buffer or the memory limit is too small",
        Some(Status::InvalidState) => c"the call is not allowed in the object's present state",
    };
    text.as_ptr()
}

/// Copies the text of the calling thread's last failed call to buf: which
/// argument, what was found, what was expected. A call that succeeds leaves the
/// text as it is; before the first failure it is empty.
///
/// buf: host, len bytes; the text is cut to fit and always ended by 0 (512
/// bytes hold almost every text).
///
/// Statuses: INVALID_VALUE (buf is NULL or len is 0).
#[no_mangle]
pub unsafe extern "C" fn tarsiaGetLastErrorMessage(buf: *mut c_char, len: usize) -> tarsiaStatus_t {
    if buf.is_null() || len == 0 {
        return guard(|| Err(Error::invalid("buf, len", "NULL or no bytes to write the message to")));
    }
    guard(|| {
        // SAFETY: buf is not NULL and the caller promises len bytes.
        unsafe { copy_last_message(buf, len) };
        Ok(())
    })
}

/// Gets the version of the library as 10000·major + 100·minor + patch. TARSIA_VERSION is the same number for
/// the header that a program was compiled with; TARSIA_VERSION_MAJOR, _MINOR and _PATCH are its parts.
///
/// version: host.
///
/// Statuses: INVALID_VALUE (version is NULL).
#[no_mangle]
pub unsafe extern "C" fn tarsiaGetVersion(version: *mut c_int) -> tarsiaStatus_t {
    guard(|| {
        out!(version)
            .set(number(Property::Major) * 10_000 + number(Property::Minor) * 100 + number(Property::Patch))
    })
}

/// Gets one part of the library's version.
///
/// value: host.
///
/// Statuses: INVALID_VALUE (property is not a tarsiaProperty_t, value is NULL).
#[no_mangle]
pub unsafe extern "C" fn tarsiaGetProperty(
    property: MaybeUninit<tarsiaProperty_t>,
    value: *mut c_int,
) -> tarsiaStatus_t {
    guard(|| {
        let property = check_enum("property", property)?;
        out!(value).set(number(property))
    })
}

fn number(property: <tarsiaProperty_t as CEnum>::Value) -> c_int {
    let text = match property {
        Property::Major => env!("CARGO_PKG_VERSION_MAJOR"),
        Property::Minor => env!("CARGO_PKG_VERSION_MINOR"),
        Property::Patch => env!("CARGO_PKG_VERSION_PATCH"),
    };
    text.parse().expect("Cargo's version numbers are numbers")
}

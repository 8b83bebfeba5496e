//! Memory functions of the backends, with which a program runs on every backend.

use libc::c_void;

use super::boundary::{guard_handle, out};
use super::enums::tarsiaStatus_t;
use super::objects::tarsiaHandle_t;
use crate::error::{refuse_if, Error, Result};
use crate::types::Address;

/// Allocates bytes bytes of the backend's memory, aligned to at least 256 bytes
/// (not through tarsiaSetAllocator). 0 bytes give NULL.
///
/// ptr: host. May block.
///
/// Statuses: NOT_INITIALIZED, INVALID_VALUE (ptr is NULL), ALLOC_FAILED.
#[no_mangle]
pub unsafe extern "C" fn tarsiaMalloc(
    handle: tarsiaHandle_t,
    ptr: *mut *mut c_void,
    bytes: usize,
) -> tarsiaStatus_t {
    guard_handle(handle, |handle| {
        let out = out!(ptr);
        if bytes > isize::MAX as usize {
            return Err(Error::out_of_memory(bytes));
        }
        let address = match bytes {
            0 => Address::NULL,
            _ => handle.backend().memory().allocate(bytes, handle.stream())?,
        };
        out.set(address.as_mut_ptr())
    })
}

/// Frees memory of tarsiaMalloc. NULL does nothing. Returns at once: the memory is reused only after all work
/// that calls of this library, with any handle, have enqueued by now is done, and all work on this handle's
/// stream. Work of the program's own on other streams that uses the memory must be done before.
///
/// Statuses: NOT_INITIALIZED, INVALID_STATE (the handle's stream is being captured).
#[no_mangle]
pub unsafe extern "C" fn tarsiaFree(handle: tarsiaHandle_t, ptr: *mut c_void) -> tarsiaStatus_t {
    guard_handle(handle, |handle| match ptr.is_null() {
        true => Ok(()),
        false => handle.free(Address::new(ptr)),
    })
}

fn check_copy(dst: *mut c_void, src: *const c_void, bytes: usize) -> Result<(Address, Address)> {
    refuse_if!(bytes > 0 && dst.is_null(), invalid("dst"), "the pointer is NULL");
    refuse_if!(bytes > 0 && src.is_null(), invalid("src"), "the pointer is NULL");
    refuse_if!(
        bytes > isize::MAX as usize,
        invalid("bytes"),
        "{bytes} bytes are more than memory can address"
    );
    Ok((Address::new(dst), Address::new(src)))
}

/// Copies bytes bytes from host memory (src) to the backend's memory (dst), in
/// the order of the handle's stream; src may be reused when the call returns.
///
/// Statuses: NOT_INITIALIZED, INVALID_VALUE (a pointer is NULL),
/// EXECUTION_FAILED.
#[no_mangle]
pub unsafe extern "C" fn tarsiaMemcpyToDevice(
    handle: tarsiaHandle_t,
    dst: *mut c_void,
    src: *const c_void,
    bytes: usize,
) -> tarsiaStatus_t {
    guard_handle(handle, |handle| {
        let (dst, src) = check_copy(dst, src, bytes)?;
        handle.backend().copy_to_device(dst, src, bytes, handle.stream())
    })
}

/// Copies bytes bytes from the backend's memory (src) to host memory (dst), in
/// the order of the handle's stream. Blocks until dst is written.
///
/// Statuses: NOT_INITIALIZED, INVALID_VALUE (a pointer is NULL),
/// EXECUTION_FAILED.
#[no_mangle]
pub unsafe extern "C" fn tarsiaMemcpyToHost(
    handle: tarsiaHandle_t,
    dst: *mut c_void,
    src: *const c_void,
    bytes: usize,
) -> tarsiaStatus_t {
    guard_handle(handle, |handle| {
        let (dst, src) = check_copy(dst, src, bytes)?;
        handle.backend().copy_to_host(dst, src, bytes, handle.stream())
    })
}

/// Blocks until all work on the handle's stream is done. Returns at once on the CPU backends, where every
/// call is synchronous.
///
/// Statuses: NOT_INITIALIZED, EXECUTION_FAILED (work on the stream failed).
#[no_mangle]
pub extern "C" fn tarsiaSynchronize(handle: tarsiaHandle_t) -> tarsiaStatus_t {
    guard_handle(handle, |handle| handle.backend().synchronize(handle.stream()))
}

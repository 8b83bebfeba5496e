//! The boundary between C callers and the library: the only place that stops panics, checks for NULL,
//! converts integers to enums and keeps the last error.

use std::any::Any;
use std::cell::RefCell;
use std::mem::MaybeUninit;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::Arc;

use libc::{c_char, c_int};

use super::enums::{tarsiaStatus_t, CEnum};
use super::objects::{self, tarsiaHandle_t, tarsiaPlan_t};
use crate::context::Handle;
use crate::error::{refuse_if, Error, Result, Status};
use crate::memory::{float_env, heap, pool};
use crate::plan::Plan;
use crate::reentrancy;
use crate::types::LogLevel;

#[cfg(panic = "abort")]
compile_error!("tarsia needs panic = \"unwind\": a panic must become a status at the C boundary");

#[cfg(not(target_pointer_width = "64"))]
compile_error!("tarsia needs a 64-bit target: object handles and sizes are 64 bits wide");

/// Length in bytes of the longest error text that is kept without allocating memory.
const SHORT: usize = 1024;

/// Error text of a thread's last failed call. A short text is kept in an array: that works when memory is
/// exhausted, and a thread-local without a destructor needs no entry in the C library's list of destructors,
/// which ends the process if it cannot allocate the entry.
struct Text {
    bytes: [u8; SHORT],
    /// Length in bytes of the text; if it exceeds the array, the text is in `LONG`.
    len: usize,
}

thread_local! {
    static LAST: RefCell<Text> = const { RefCell::new(Text { bytes: [0; SHORT], len: 0 }) };
    /// Error text that is too long for `LAST`, as a long argument can make it.
    static LONG: RefCell<String> = const { RefCell::new(String::new()) };
}

fn keep(message: String) {
    LAST.with_borrow_mut(|last| {
        last.len = message.len();
        match last.bytes.get_mut(..message.len()) {
            Some(bytes) => bytes.copy_from_slice(message.as_bytes()),
            // A thread that is already destroying its thread-locals keeps no long text.
            None => drop(LONG.try_with(|long| *long.borrow_mut() = message)),
        }
    });
}

/// Calls `f` with the error text of this thread's last failed call.
fn with_last(f: impl FnOnce(&str)) {
    LAST.with_borrow(|last| match last.bytes.get(..last.len) {
        Some(bytes) => f(std::str::from_utf8(bytes).unwrap_or_default()),
        None => drop(LONG.try_with(|long| f(&long.borrow()))),
    });
}

/// Returns the text of a panic's payload.
fn panic_text(payload: Box<dyn Any + Send>) -> String {
    let text = match (payload.downcast_ref::<&str>(), payload.downcast_ref::<String>()) {
        (Some(text), _) => (*text).to_string(),
        (_, Some(text)) => text.clone(),
        _ => "a panic without a text".to_string(),
    };
    // Forgotten, not dropped: the payload's destructor may panic.
    std::mem::forget(payload);
    text
}

fn settle(result: std::thread::Result<Result<()>>) -> (Status, Option<String>) {
    match result {
        Ok(Ok(())) => (Status::Success, None),
        Ok(Err(error)) => (error.status, Some(error.message)),
        Err(payload) => (Status::InternalError, Some(format!("internal error: {}", panic_text(payload)))),
    }
}

/// Runs the body of a C function and turns errors and panics into a status and the thread's last message. The
/// body runs in the default floating-point environment, whatever the caller's is.
pub fn guard(f: impl FnOnce() -> Result<()>) -> tarsiaStatus_t {
    let mut f = Some(f);
    guard_any(&mut || f.take().map_or(Ok(()), |f| f()))
}

/// The part of [`guard`] that does not depend on the closure's type, compiled once for the functions without a handle
/// and once for those with one.
#[inline]
fn guard_any(f: &mut dyn FnMut() -> Result<()>) -> tarsiaStatus_t {
    let _default = float_env::Default::enter();
    match catch_unwind(AssertUnwindSafe(f)) {
        Ok(Ok(())) => tarsiaStatus_t::from(Status::Success),
        failed => refused(failed),
    }
}

/// Keeps the message of a call that has failed, and returns its status.
#[cold]
fn refused(result: std::thread::Result<Result<()>>) -> tarsiaStatus_t {
    let (status, message) = settle(result);
    if let Some(message) = message {
        keep(message);
    }
    tarsiaStatus_t::from(status)
}

/// Like [`guard`], but looks up the live handle and passes it to `f`; failures are also logged.
pub(crate) fn guard_handle(handle: tarsiaHandle_t, f: impl FnOnce(&Handle) -> Result<()>) -> tarsiaStatus_t {
    let mut f = Some(f);
    guard_live(handle, &mut |handle| f.take().map_or(Ok(()), |f| f(handle)))
}

/// The part of [`guard_handle`] that does not depend on the closure's type, compiled once for all functions.
fn guard_live(handle: tarsiaHandle_t, f: &mut dyn FnMut(&Handle) -> Result<()>) -> tarsiaStatus_t {
    guard_any(&mut || {
        heap::prepare_thread()?;
        let inner = live_handle(handle)?;
        reentrancy::check_depth()?;
        let _open = inner.enter().ok_or_else(|| no_handle("it is not a live handle"))?;
        match catch_unwind(AssertUnwindSafe(|| f(&inner))) {
            Ok(Ok(())) => match pool::has_warning() {
                false => Ok(()),
                true => logged(&inner, Ok(Ok(()))),
            },
            failed => logged(&inner, failed),
        }
    })
}

/// Logs the library's warning, if there is one, and the error of a call that has failed.
#[cold]
fn logged(handle: &Handle, result: std::thread::Result<Result<()>>) -> Result<()> {
    let (status, message) = settle(result);
    if pool::has_warning() && handle.modes().logger.is_some() {
        if let Some(text) = pool::take_warning() {
            handle.log(LogLevel::Warning, || text);
        }
    }
    let Some(message) = message else {
        return Ok(());
    };
    handle.log(LogLevel::Error, || format!("{}: {message}", status.c_name()));
    Err(Error::new(status, message))
}

/// Returns the handle, or an error if it is not live.
#[inline]
pub(crate) fn live_handle(handle: tarsiaHandle_t) -> Result<Arc<Handle>> {
    objects::HANDLES
        .get(handle.addr())
        .ok_or_else(|| no_handle(if handle.is_null() { "it is NULL" } else { "it is not a live handle" }))
}

#[cold]
fn no_handle(what: &str) -> Error {
    Error::new(Status::NotInitialized, format!("handle: {what}; tarsiaCreate makes one"))
}

/// Returns the plan, or an error if it is not live.
#[inline]
pub(crate) fn live_plan(plan: tarsiaPlan_t) -> Result<Arc<Plan>> {
    objects::PLANS.find("plan", plan.addr())
}

/// Converts an enum argument, for which a C caller may have passed any integer.
pub(crate) fn check_enum<E: CEnum>(name: &str, raw: MaybeUninit<E>) -> Result<E::Value> {
    const { assert!(std::mem::size_of::<E>() == std::mem::size_of::<c_int>()) };
    // SAFETY: a C caller passes an int of this size; every bit pattern of it
    // is a valid c_int.
    let code = unsafe { raw.as_ptr().cast::<c_int>().read() };
    E::from_code(code).ok_or_else(|| Error::invalid(name, format!("{code} is not a value of {}", E::C_NAME)))
}

/// Pointer of the caller to which a call writes an answer.
#[derive(Clone, Copy)]
pub(crate) struct Out<T>(*mut T);

impl<T> Out<T> {
    /// Wraps the pointer; refuses NULL and misaligned pointers. Call it before any work is done.
    ///
    /// # Safety
    /// `pointer` is NULL, or valid for a write of T until the call returns.
    pub unsafe fn new(name: &str, pointer: *mut T) -> Result<Self> {
        refuse_if!(pointer.is_null(), invalid(name), "the pointer to write the answer to is NULL");
        refuse_if!(!pointer.is_aligned(), invalid(name), "the pointer to write the answer to is not aligned");
        Ok(Out(pointer))
    }

    /// Like `new`, but accepts NULL for an answer that the caller does not want.
    ///
    /// # Safety
    /// See `new`.
    pub unsafe fn optional(name: &str, pointer: *mut T) -> Result<Option<Self>> {
        if pointer.is_null() {
            return Ok(None);
        }
        // SAFETY: the caller's promise.
        unsafe { Self::new(name, pointer) }.map(Some)
    }

    /// Writes the answer. It never fails; it returns the `Result` of the C function because it is its last
    /// step.
    pub fn set(self, value: T) -> Result<()> {
        // SAFETY: `new` was promised that the pointer is valid for a write.
        unsafe { self.0.write(value) };
        Ok(())
    }
}

impl<E: CEnum> Out<E> {
    /// Writes an enum as the answer, like [`Self::set`].
    pub fn set_enum(self, value: E::Value) -> Result<()> {
        // SAFETY: as in `set`; a C enum is an int of this size.
        unsafe { self.0.cast::<c_int>().write(E::code(value)) };
        Ok(())
    }
}

/// Makes an [`Out`] of the pointer argument `name`; returns from the function with an error if it is NULL or
/// misaligned.
macro_rules! out {
    ($name:ident) => {
        // SAFETY: the caller of the C function promises a pointer that is NULL or valid for a write.
        unsafe { $crate::capi::boundary::Out::new(stringify!($name), $name) }?
    };
}
pub(super) use out;

/// The last step of a getter: checks all answer pointers, then writes the answers that the caller wants, so
/// that a call that fails writes none. Arguments: `name: set(value)`, or `name: set_enum(value)` for an enum.
macro_rules! answer {
    ($($name:ident: $set:ident($value:expr)),* $(,)?) => {{
        // SAFETY: the caller promises pointers that are NULL or valid for a write.
        $(let $name = unsafe { $crate::capi::boundary::Out::optional(stringify!($name), $name)? };)*
        $(if let Some(out) = $name {
            out.$set($value)?;
        })*
        Ok(())
    }};
}
pub(super) use answer;

/// Number of bytes of `text`, cut at a character boundary, that fit in `room` bytes.
pub(super) fn cut(text: &str, room: usize) -> usize {
    let fits = |&count: &usize| text.is_char_boundary(count);
    (0..=text.len().min(room)).rev().find(fits).unwrap_or(0)
}

/// Copies the last message into the caller's buffer, cut to fit and ended by 0.
///
/// # Safety
/// `buffer` is valid for a write of `len` bytes.
pub(crate) unsafe fn copy_last_message(buffer: *mut c_char, len: usize) {
    let copy = |text: &str| {
        let count = cut(text, len - 1);
        // SAFETY: count + 1 ≤ len bytes, which the caller promised.
        unsafe {
            std::ptr::copy_nonoverlapping(text.as_ptr().cast::<c_char>(), buffer, count);
            buffer.add(count).write(0);
        }
    };
    if len > 0 {
        copy("");
        with_last(copy);
    }
}

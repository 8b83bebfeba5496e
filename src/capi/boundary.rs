//! The only place where panics stop, NULL is looked for, integers become
//! enums, and the last error is kept.

use std::any::Any;
use std::cell::RefCell;
use std::mem::MaybeUninit;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::Arc;

use libc::{c_char, c_int};

use super::enums::{tarsiaStatus_t, CEnum};
use super::objects::{self, tarsiaHandle_t, tarsiaPlan_t};
use crate::context::Handle;
use crate::error::{Error, Result, Status};
use crate::inside;
use crate::memory::{float_env, heap, pool};
use crate::plan::Plan;
use crate::types::LogLevel;

#[cfg(panic = "abort")]
compile_error!("tarsia needs panic = \"unwind\": a panic must become a status at the C boundary");

#[cfg(not(target_pointer_width = "64"))]
compile_error!("tarsia needs a 64-bit target: object handles and sizes are 64 bits wide");

/// Bytes of the longest text that needs no memory.
const SHORT: usize = 1024;

/// The text of a thread's last failed call. In an array, if it is short: that needs no memory when there is
/// none, and a thread's local without a destructor needs no entry in a list of the C library, which ends
/// the process where it has no memory for one.
struct Text {
    bytes: [u8; SHORT],
    /// More than the array has: it is in `LONG`.
    len: usize,
}

thread_local! {
    static LAST: RefCell<Text> = const { RefCell::new(Text { bytes: [0; SHORT], len: 0 }) };
    /// The text that was too long for it, which comes from a long argument.
    static LONG: RefCell<String> = const { RefCell::new(String::new()) };
}

fn keep(message: String) {
    LAST.with_borrow_mut(|last| {
        last.len = message.len();
        match last.bytes.get_mut(..message.len()) {
            Some(bytes) => bytes.copy_from_slice(message.as_bytes()),
            // Nothing to do where the thread is already giving up its locals.
            None => drop(LONG.try_with(|long| *long.borrow_mut() = message)),
        }
    });
}

/// Calls `f` with the text of this thread's last failed call.
fn with_last(f: impl FnOnce(&str)) {
    LAST.with_borrow(|last| match last.bytes.get(..last.len) {
        Some(bytes) => f(std::str::from_utf8(bytes).unwrap_or_default()),
        None => drop(LONG.try_with(|long| f(&long.borrow()))),
    });
}

/// Text of a panic's payload.
fn panic_text(payload: Box<dyn Any + Send>) -> String {
    let text = match (payload.downcast_ref::<&str>(), payload.downcast_ref::<String>()) {
        (Some(text), _) => (*text).to_string(),
        (_, Some(text)) => text.clone(),
        _ => "a panic without a text".to_string(),
    };
    // A payload may panic when it is dropped.
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

/// Runs a call: errors and panics become its status and the last message. It computes in the default
/// floating-point environment, whatever the caller's is.
pub fn guard(f: impl FnOnce() -> Result<()>) -> tarsiaStatus_t {
    let mut f = Some(f);
    guard_any(&mut || f.take().map_or(Ok(()), |f| f()))
}

/// [`guard`], compiled once for all functions.
fn guard_any(f: &mut dyn FnMut() -> Result<()>) -> tarsiaStatus_t {
    let _default = float_env::Default::enter();
    let (status, message) = settle(catch_unwind(AssertUnwindSafe(f)));
    if let Some(message) = message {
        keep(message);
    }
    tarsiaStatus_t::from(status)
}

/// As [`guard`], with the live handle; failures are also logged.
pub(crate) fn guard_handle(handle: tarsiaHandle_t, f: impl FnOnce(&Handle) -> Result<()>) -> tarsiaStatus_t {
    let mut f = Some(f);
    guard_live(handle, &mut |handle| f.take().map_or(Ok(()), |f| f(handle)))
}

/// [`guard_handle`], compiled once for all functions.
fn guard_live(handle: tarsiaHandle_t, f: &mut dyn FnMut(&Handle) -> Result<()>) -> tarsiaStatus_t {
    guard_any(&mut || {
        heap::prepare_thread()?;
        let inner = live_handle(handle)?;
        inside::check_depth()?;
        let _open = inner.enter().ok_or_else(|| no_handle("it is not a live handle"))?;
        let (status, message) = settle(catch_unwind(AssertUnwindSafe(|| f(&inner))));
        if pool::has_warning() && inner.has_logger() {
            if let Some(text) = pool::take_warning() {
                inner.log(LogLevel::Warning, || text);
            }
        }
        let Some(message) = message else {
            return Ok(());
        };
        inner.log(LogLevel::Error, || format!("{}: {message}", status.c_name()));
        Err(Error::new(status, message))
    })
}

/// The handle, if it lives.
pub(crate) fn live_handle(handle: tarsiaHandle_t) -> Result<Arc<Handle>> {
    objects::HANDLES
        .get(handle.addr())
        .ok_or_else(|| no_handle(if handle.is_null() { "it is NULL" } else { "it is not a live handle" }))
}

fn no_handle(what: &str) -> Error {
    Error::new(Status::NotInitialized, format!("handle: {what}; tarsiaCreate makes one"))
}

/// The plan, if it lives.
pub(crate) fn live_plan(plan: tarsiaPlan_t) -> Result<Arc<Plan>> {
    objects::PLANS.find("plan", plan.addr())
}

/// An enum argument; any integer may arrive.
pub(crate) fn check_enum<E: CEnum>(name: &str, raw: MaybeUninit<E>) -> Result<E::Value> {
    const { assert!(std::mem::size_of::<E>() == std::mem::size_of::<c_int>()) };
    // SAFETY: a C caller passes an int of this size; every bit pattern of it
    // is a valid c_int.
    let code = unsafe { raw.as_ptr().cast::<c_int>().read() };
    E::from_code(code).ok_or_else(|| Error::invalid(name, format!("{code} is not a value of {}", E::C_NAME)))
}

/// A place of the caller that a call writes its answer to.
#[derive(Clone, Copy)]
pub(crate) struct Out<T>(*mut T);

impl<T> Out<T> {
    /// Refuses NULL and misalignment; call it before any work is done.
    ///
    /// # Safety
    /// A `pointer` that is not NULL is valid for a write of T until the call returns.
    pub unsafe fn new(name: &str, pointer: *mut T) -> Result<Self> {
        if pointer.is_null() {
            return Err(Error::invalid(name, "the pointer to write the answer to is NULL"));
        }
        if !pointer.is_aligned() {
            return Err(Error::invalid(name, "the pointer to write the answer to is not aligned"));
        }
        Ok(Out(pointer))
    }

    /// As `new`, where the caller may pass NULL for an answer that it does not want.
    ///
    /// # Safety
    /// As `new`.
    pub unsafe fn optional(name: &str, pointer: *mut T) -> Result<Option<Self>> {
        if pointer.is_null() {
            return Ok(None);
        }
        // SAFETY: the caller's promise.
        unsafe { Self::new(name, pointer) }.map(Some)
    }

    /// Writes the answer.
    pub fn set(self, value: T) {
        // SAFETY: `new` was promised that the pointer is valid for a write.
        unsafe { self.0.write(value) }
    }
}

impl<E: CEnum> Out<E> {
    /// Writes an enum answer.
    pub fn set_enum(self, value: E::Value) {
        // SAFETY: as in `set`; a C enum is an int of this size.
        unsafe { self.0.cast::<c_int>().write(E::code(value)) }
    }
}

/// Where the argument `name` wants the answer: an [`Out`]. Returns the error of a pointer that is NULL or misaligned.
macro_rules! out {
    ($name:ident) => {
        // SAFETY: the caller of the C function promises a pointer that is NULL or valid for a write.
        unsafe { $crate::capi::boundary::Out::new(stringify!($name), $name) }?
    };
}
pub(super) use out;

/// Checks all answers of a getter, then writes those that the caller wants: a
/// call that fails writes none. `name: set(value)`, or `set_enum` for an enum.
macro_rules! answer {
    ($($name:ident: $set:ident($value:expr)),* $(,)?) => {{
        // SAFETY: the caller promises pointers that are NULL or valid for a write.
        $(let $name = unsafe { $crate::capi::boundary::Out::optional(stringify!($name), $name)? };)*
        $(if let Some(out) = $name {
            out.$set($value);
        })*
    }};
}
pub(super) use answer;

/// Bytes of the whole characters of a text that `room` bytes hold.
pub(super) fn cut(text: &str, room: usize) -> usize {
    let fits = |&count: &usize| text.is_char_boundary(count);
    (0..=text.len().min(room)).rev().find(fits).unwrap_or(0)
}

/// Copies the last message into the caller's buffer, cut to fit, ended by 0.
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

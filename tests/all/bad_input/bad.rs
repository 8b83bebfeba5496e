//! Calls with one bad argument, and checks of the library's answer.

use std::cell::{Cell, RefCell};

use client::{check, last_message};
use tarsia::capi::enums::tarsiaStatus_t;
use tarsia::facade::{Error, Status};

/// Bad argument of a call, and memory for the results that the call may write.
pub struct Bad {
    name: Option<&'static str>,
    value: Value,
    used: Cell<bool>,
    answers: RefCell<Vec<Answer>>,
}

/// Value that is passed instead of the good one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value {
    /// Value with these bits, cut to the argument's size.
    Bits(u64),
    /// Good pointer plus one byte.
    Misaligned,
}

/// Memory for a result: words that hold a pattern until the call writes them.
struct Answer(*mut [u64; 4]);

const FILL: u64 = 0xa5a5_a5a5_a5a5_a5a5;

impl Answer {
    fn words(&self) -> [u64; 4] {
        // SAFETY: the memory lives as long as this, and no call is running.
        unsafe { self.0.read() }
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        // SAFETY: it came from a box, and no call is running.
        drop(unsafe { Box::from_raw(self.0) });
    }
}

impl Bad {
    /// Describes a call without a bad argument.
    pub fn none() -> Self {
        Bad { name: None, value: Value::Bits(0), used: Cell::new(true), answers: RefCell::default() }
    }

    /// Describes a call whose argument `name` is bad.
    pub fn one(name: &'static str, value: Value) -> Self {
        Bad { name: Some(name), value, used: Cell::new(false), answers: RefCell::default() }
    }

    /// Returns the argument `name`: `good` unless it is the bad one.
    pub fn arg<T: Copy>(&self, name: &str, good: T) -> T {
        const { assert!(cfg!(target_endian = "little") && (size_of::<T>() == 4 || size_of::<T>() == 8)) };
        if self.name != Some(name) {
            return good;
        }
        self.used.set(true);
        let mut bits = [0u8; 8];
        // SAFETY: T has at most 8 bytes, all of them initialised: it is a
        // pointer, a number or an enum's carrier.
        unsafe {
            std::ptr::copy_nonoverlapping((&raw const good).cast::<u8>(), bits.as_mut_ptr(), size_of::<T>())
        };
        let bits = match self.value {
            Value::Bits(bits) => bits,
            Value::Misaligned => u64::from_le_bytes(bits) + 1,
        };
        let bits = bits.to_le_bytes();
        // SAFETY: T is a raw pointer, a number, a MaybeUninit, or an optional
        // function, for which 0 is passed: the bits are a value of it.
        unsafe { bits.as_ptr().cast::<T>().read_unaligned() }
    }

    /// Returns memory for a result.
    pub fn answer<T>(&self) -> *mut T {
        const { assert!(size_of::<T>() <= 8) };
        let words = Box::into_raw(Box::new([FILL; 4]));
        self.answers.borrow_mut().push(Answer(words));
        words.cast()
    }

    /// Returns whether the bad argument was passed at all.
    pub fn was_used(&self) -> bool {
        self.used.get()
    }

    /// Returns the number of results that the call has written.
    pub fn written(&self) -> usize {
        self.answers.borrow().iter().filter(|answer| answer.words() != [FILL; 4]).count()
    }

    /// Returns the number of results that the call could have written.
    pub fn answers(&self) -> usize {
        self.answers.borrow().len()
    }

    /// Returns the first word of the first result.
    pub fn first(&self) -> usize {
        self.answers.borrow()[0].words()[0] as usize
    }
}

/// Text of the last message before every bad call.
const STALE_TEXT: &str = "the message of an earlier call";

/// Makes [`STALE_TEXT`] the last message.
pub fn forget_message() {
    let earlier = || Err(Error::new(Status::InvalidValue, STALE_TEXT));
    crate::boundary::at_boundary(earlier).expect_err("it says so");
}

/// Checks that the call failed with this status.
pub fn failed(code: tarsiaStatus_t, status: Status) -> Result<(), String> {
    if Status::from_code(code as i32) == Some(status) {
        return Ok(());
    }
    Err(format!("{code:?} (`{}`), expected {}", last_message(), status.c_name()))
}

/// Checks that the call failed with this status and a text that starts with the names of the wrong arguments,
/// among them `name`.
pub fn names(code: tarsiaStatus_t, status: Status, name: &str) -> Result<(), String> {
    failed(code, status)?;
    let message = last_message();
    let found = message.split(':').next().unwrap_or_default();
    if found.split(", ").any(|found| found == name) {
        return Ok(());
    }
    Err(format!("`{message}` does not start with {name}"))
}

/// Checks that the call failed with this status and a text with this word in it.
pub fn mentions(code: tarsiaStatus_t, status: Status, word: &str) -> Result<(), String> {
    failed(code, status)?;
    let message = last_message();
    if message.split(|c: char| !c.is_alphanumeric()).any(|found| found == word) {
        return Ok(());
    }
    Err(format!("`{message}` does not mention {word}"))
}

/// Makes a call that must fail with `status` and name the argument `name`.
#[track_caller]
pub fn refuses(what: &str, status: Status, name: &str, call: impl FnOnce() -> tarsiaStatus_t) {
    forget_message();
    if let Err(error) = names(call(), status, name) {
        panic!("{what}: {error}");
    }
}

/// [`refuses`] with `INVALID_VALUE`.
#[track_caller]
pub fn invalid(what: &str, name: &str, call: impl FnOnce() -> tarsiaStatus_t) {
    refuses(what, Status::InvalidValue, name, call);
}

/// Makes a call that must succeed.
#[track_caller]
pub fn accepts(what: &str, code: tarsiaStatus_t) {
    if let Err(error) = check(code) {
        panic!("{what}: {error}");
    }
}

//! Status codes, and the error type that is passed up to the C boundary.

use std::fmt;

pub use crate::types::Status;

/// A status with the message that `tarsiaGetLastErrorMessage` returns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// Status that the C function returns.
    pub status: Status,
    /// Text that names the argument, the value found and the value expected.
    pub message: String,
}

/// Result of all functions below the C boundary.
pub type Result<T> = std::result::Result<T, Error>;

/// Calls `make`, which makes an error, outside of the function that found it. Inlined, the code for its text would spread
/// the instructions of ordinary calls over more cache lines, each of which is a miss where the program has computed
/// something else between two products.
#[cold]
#[inline(never)]
pub fn rare<T>(make: impl FnOnce() -> T) -> T {
    make()
}

impl Error {
    /// Creates an error with this status and message.
    #[cold]
    pub fn new(status: Status, message: impl Into<String>) -> Self {
        Error { status, message: message.into() }
    }

    /// Creates `INVALID_VALUE` for the argument `name`.
    #[cold]
    pub fn invalid(name: &str, reason: impl fmt::Display) -> Self {
        Error::new(Status::InvalidValue, format!("{name}: {reason}"))
    }

    /// Creates `INVALID_STATE`.
    #[cold]
    pub fn state(message: impl Into<String>) -> Self {
        Error::new(Status::InvalidState, message)
    }

    /// Creates `NOT_SUPPORTED`.
    #[cold]
    pub fn unsupported(message: impl Into<String>) -> Self {
        Error::new(Status::NotSupported, message)
    }

    /// Returns whether memory was exhausted, or a limit on it exceeded: another algorithm or layout may need
    /// less.
    pub fn lacks_memory(&self) -> bool {
        matches!(self.status, Status::AllocFailed | Status::InsufficientResources)
    }

    /// Creates `ALLOC_FAILED` for a request of this many bytes.
    #[cold]
    pub fn out_of_memory(bytes: usize) -> Self {
        Error::new(Status::AllocFailed, format!("could not allocate {bytes} bytes"))
    }
}

/// Returns an error from the enclosing function if a condition holds. The error is named by the function of
/// [`Error`] that creates it, with its first argument where it has one, and by the text of its message:
/// `refuse_if!(n < 0, invalid("n"), "{n} is negative")`.
macro_rules! refuse_if {
    ($fault:expr, $kind:ident($first:expr), $($text:tt)+) => {
        if $fault {
            return Err($crate::error::rare(move || $crate::error::Error::$kind($first, format!($($text)+))));
        }
    };
    ($fault:expr, $kind:ident, $($text:tt)+) => {
        if $fault {
            return Err($crate::error::rare(move || $crate::error::Error::$kind(format!($($text)+))));
        }
    };
}
pub(crate) use refuse_if;

/// Returns an error from the enclosing function unless a condition holds, in the form of [`refuse_if`].
macro_rules! require {
    ($holds:expr, $($error:tt)+) => {
        $crate::error::refuse_if!(!$holds, $($error)+)
    };
}
pub(crate) use require;

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.status.c_name(), self.message)
    }
}

impl std::error::Error for Error {}

//! Status codes and the error that travels from the inside of the library to
//! the C boundary.

use std::fmt;

pub use crate::types::Status;

/// A status with the text that `tarsiaGetLastErrorMessage` returns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// What the C function returns.
    pub status: Status,
    /// Which argument, what was found, what was expected.
    pub message: String,
}

/// Result of everything below the C boundary.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// An error with this status and text.
    pub fn new(status: Status, message: impl Into<String>) -> Self {
        Error { status, message: message.into() }
    }

    /// `INVALID_VALUE`: argument `name` is wrong for this reason.
    pub fn invalid(name: &str, reason: impl fmt::Display) -> Self {
        Error::new(Status::InvalidValue, format!("{name}: {reason}"))
    }

    /// `INVALID_STATE`.
    pub fn state(message: impl Into<String>) -> Self {
        Error::new(Status::InvalidState, message)
    }

    /// `NOT_SUPPORTED`.
    pub fn unsupported(message: impl Into<String>) -> Self {
        Error::new(Status::NotSupported, message)
    }

    /// Memory was missing, by a limit or in fact: another way may need less.
    pub fn lacks_memory(&self) -> bool {
        matches!(self.status, Status::AllocFailed | Status::InsufficientResources)
    }

    /// `ALLOC_FAILED` for this many bytes.
    pub fn out_of_memory(bytes: usize) -> Self {
        Error::new(Status::AllocFailed, format!("could not allocate {bytes} bytes"))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.status.c_name(), self.message)
    }
}

impl std::error::Error for Error {}

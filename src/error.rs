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

impl Error {
    /// Creates an error with this status and message.
    pub fn new(status: Status, message: impl Into<String>) -> Self {
        Error { status, message: message.into() }
    }

    /// Creates `INVALID_VALUE` for the argument `name`.
    pub fn invalid(name: &str, reason: impl fmt::Display) -> Self {
        Error::new(Status::InvalidValue, format!("{name}: {reason}"))
    }

    /// Creates `INVALID_STATE`.
    pub fn state(message: impl Into<String>) -> Self {
        Error::new(Status::InvalidState, message)
    }

    /// Creates `NOT_SUPPORTED`.
    pub fn unsupported(message: impl Into<String>) -> Self {
        Error::new(Status::NotSupported, message)
    }

    /// Returns whether memory was exhausted, or a limit on it exceeded: another algorithm or layout may need
    /// less.
    pub fn lacks_memory(&self) -> bool {
        matches!(self.status, Status::AllocFailed | Status::InsufficientResources)
    }

    /// Creates `ALLOC_FAILED` for a request of this many bytes.
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

//! Status codes and the error that travels from the inside of the library to
//! the C boundary.

use std::fmt;

use crate::types::code_enum;

code_enum! {
    /// What a call reports. Names and numbers are cuSPARSE's where the meaning
    /// is the same; ours start at 100.
    pub enum Status {
        /// The call did what it says.
        Success = 0, "TARSIA_STATUS_SUCCESS";
        /// The handle is NULL, destroyed, or of another kind.
        NotInitialized = 1, "TARSIA_STATUS_NOT_INITIALIZED";
        /// Memory could not be allocated; every object stays usable.
        AllocFailed = 2, "TARSIA_STATUS_ALLOC_FAILED";
        /// An argument is wrong; the message names it.
        InvalidValue = 3, "TARSIA_STATUS_INVALID_VALUE";
        /// The device lacks a feature that the operation needs.
        ArchMismatch = 4, "TARSIA_STATUS_ARCH_MISMATCH";
        /// Device memory could not be mapped.
        MappingError = 5, "TARSIA_STATUS_MAPPING_ERROR";
        /// A kernel could not be launched or failed.
        ExecutionFailed = 6, "TARSIA_STATUS_EXECUTION_FAILED";
        /// A fault of the library itself.
        InternalError = 7, "TARSIA_STATUS_INTERNAL_ERROR";
        /// The matrix type is not supported by the operation.
        MatrixTypeNotSupported = 8, "TARSIA_STATUS_MATRIX_TYPE_NOT_SUPPORTED";
        /// A zero pivot was met (reserved for solvers).
        ZeroPivot = 9, "TARSIA_STATUS_ZERO_PIVOT";
        /// The combination of types, format, operation and backend is not in
        /// the support table.
        NotSupported = 10, "TARSIA_STATUS_NOT_SUPPORTED";
        /// A limit (workspace, memory limit) is too small; the message says
        /// the bytes needed.
        InsufficientResources = 11, "TARSIA_STATUS_INSUFFICIENT_RESOURCES";
        /// The call is not allowed in the object's present state.
        InvalidState = 100, "TARSIA_STATUS_INVALID_STATE";
    }
}

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

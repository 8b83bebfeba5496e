//! Helpers of the tests of results: numbers, patterns in every format, dense matrices, the naive loops, the
//! comparison, and the few raw C calls that the safe client does not make.

pub mod alone;
pub mod check;
pub mod dense;
pub mod number;
pub mod output;
pub mod pattern;
pub mod raw;
pub mod staged;

use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::Command;

pub use staged::{backend, backends};
use tarsia::facade::{Algorithm, BackendKind, OpKind, TABLE};

/// Result of a test; the error's text says what was wrong.
pub type Outcome<T = ()> = Result<T, Box<dyn std::error::Error>>;

/// Returns the root folder of the repository: TARSIA_TEST_ROOT if the tests run on another machine than the
/// one that built them.
pub fn root() -> PathBuf {
    std::env::var_os("TARSIA_TEST_ROOT").map_or_else(|| env!("CARGO_MANIFEST_DIR").into(), PathBuf::from)
}

/// Returns the command that runs a program which was built here, or this executable again: by TARSIA_TEST_RUNNER,
/// the words of a command, where the tests are of another processor and run by its emulator (`.ci/aarch64`).
pub fn command_of(program: impl AsRef<OsStr>) -> Command {
    let runner = std::env::var("TARSIA_TEST_RUNNER").unwrap_or_default();
    let mut words = runner.split_whitespace();
    let Some(first) = words.next() else { return Command::new(program) };
    let mut command = Command::new(first);
    command.args(words).arg(program);
    command
}

/// Returns whether a backend has an algorithm, or with `None` any algorithm, for an operation.
pub fn offers(op: OpKind, algorithm: Option<Algorithm>, backend: BackendKind) -> bool {
    TABLE.iter().any(|row| {
        row.op == op
            && row.backends.contains(&backend)
            && algorithm.is_none_or(|algorithm| row.algorithm == algorithm)
    })
}

/// Returns whether TARSIA_TEST_SMALL asks for small matrices, for tools that slow everything down.
pub fn is_small() -> bool {
    std::env::var_os("TARSIA_TEST_SMALL").is_some()
}

/// Prints what is not tested on this machine, and why. It bypasses the test harness, which hides the output
/// of tests that pass.
pub fn skip(what: impl std::fmt::Display) {
    use std::io::Write;
    // If standard error is closed, only this line is lost.
    let _ = writeln!(std::io::stderr(), "SKIP {what}");
}

/// Returns an error unless the condition holds.
macro_rules! ensure {
    ($condition:expr, $($text:tt)*) => {
        let holds: bool = $condition;
        if !holds {
            return Err(format!($($text)*).into());
        }
    };
}
pub(crate) use ensure;

/// Runs `$body` with `$C`, the marker type of `$types` (see `number`). If a new row of the support table has
/// new types, they must be added here.
macro_rules! with_types {
    ($types:expr, $C:ident => $body:expr) => {
        $crate::common::with_types!(@ $types, $C => $body;
            F64 F32 Tf32 F32F64 F16 F16F32 Bf16 Bf16F32 C32 C64)
    };
    (@ $types:expr, $C:ident => $body:expr; $($name:ident)*) => {{
        match $types {
            $(t if t == <$crate::common::number::$name as $crate::common::number::Numbers>::TYPES => {
                type $C = $crate::common::number::$name;
                $body
            })*
            other => panic!("the tests have no code for {}", other.describe()),
        }
    }};
}
pub(crate) use with_types;

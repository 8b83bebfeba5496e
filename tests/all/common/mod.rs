//! What the tests of results share: numbers, patterns in every format, dense
//! matrices, the naive loops, the comparison, and the few raw C calls that the
//! safe client does not make.

pub mod alone;
pub mod check;
pub mod dense;
pub mod number;
pub mod output;
pub mod pattern;
pub mod raw;
pub mod staged;

use std::path::PathBuf;

pub use staged::{backend, backends};
use tarsia::facade::{Algorithm, BackendKind, OpKind, TABLE};

/// A test's answer; the text says what was wrong.
pub type Outcome<T = ()> = Result<T, Box<dyn std::error::Error>>;

/// The folder that holds include/ and the rest: TARSIA_TEST_ROOT where the
/// tests run on another machine than the one that built them.
pub fn root() -> PathBuf {
    std::env::var_os("TARSIA_TEST_ROOT").map_or_else(|| env!("CARGO_MANIFEST_DIR").into(), PathBuf::from)
}

/// Whether a backend has an algorithm, or any where the library chooses.
pub fn offers(op: OpKind, algorithm: Option<Algorithm>, backend: BackendKind) -> bool {
    TABLE.iter().any(|row| {
        row.op == op
            && row.backends.contains(&backend)
            && algorithm.is_none_or(|algorithm| row.algorithm == algorithm)
    })
}

/// Whether TARSIA_TEST_SMALL asks for small matrices, as under tools that slow
/// everything down.
pub fn is_small() -> bool {
    std::env::var_os("TARSIA_TEST_SMALL").is_some()
}

/// Says what is not tested on this machine, and why. Written past the test
/// harness, which keeps what a test that passes prints to itself.
pub fn skip(what: impl std::fmt::Display) {
    use std::io::Write;
    // Nothing is lost where standard error is closed but the line itself.
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

/// Runs `$body` with `$C`, the marker type of `$types` (see `number`).
/// Types that a new row of the support table brings must be added here.
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

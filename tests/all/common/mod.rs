//! What the tests of results share: numbers, patterns in every format, dense
//! matrices, the naive loops, the comparison, and the few raw C calls that the
//! safe client does not make.

pub mod check;
pub mod dense;
pub mod naive;
pub mod number;
pub mod output;
pub mod pattern;
pub mod raw;

use tarsia::types::BackendKind;

/// Backends that compute on this machine whatever it is; the reference first,
/// so that a fault of the host shows as one of the host.
pub const BACKENDS: [BackendKind; 2] = [BackendKind::Reference, BackendKind::Host];

/// A test's answer; the text says what was wrong.
pub type Outcome<T = ()> = Result<T, Box<dyn std::error::Error>>;

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

/// Runs `$body` with `$C`, the marker type of `$types` (see `tarsia::support`).
/// Types that a new row of the support table brings must be added here.
macro_rules! with_types {
    ($types:expr, $C:ident => $body:expr) => {
        $crate::common::with_types!(@ $types, $C => $body;
            F64 F32 Tf32 F32F64 F16 F16F32 Bf16 Bf16F32 C32 C64)
    };
    (@ $types:expr, $C:ident => $body:expr; $($name:ident)*) => {{
        match $types {
            $(t if t == <tarsia::support::$name as $crate::common::number::Numbers>::TYPES => {
                type $C = tarsia::support::$name;
                $body
            })*
            other => panic!("the tests have no code for {}", other.describe()),
        }
    }};
}
pub(crate) use with_types;

//! Where a call goes, and why. Nothing is taken yet, so that there is a reason for every call to be forwarded.

use std::ffi::c_void;
use std::ptr::NonNull;
use std::sync::OnceLock;

use crate::functions::{Function, Operation, Role};
use crate::messages;
use crate::real::{self, Cusparse, Missing};
use crate::settings::{settings, Mode};
use crate::summary;

/// What becomes of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Outcome {
    /// Forwarded, for cuSPARSE always gets it.
    Cusparses,
    /// Forwarded, for `TARSIA_CUSPARSE_TAKE` leaves the operation out.
    NotAskedFor,
    /// Forwarded, for the version of cuSPARSE is unknown.
    UnknownVersion,
    /// Forwarded, for there is no device to compute on.
    NoDevice,
    /// Forwarded, for this version takes no such call.
    NotTaken,
    /// An error is returned, for the program's cuSPARSE has no such function.
    NotInVersion,
    /// An error is returned, for no cuSPARSE is loaded.
    NoCusparse,
}

impl Outcome {
    /// All of them; the place of each is its number.
    pub const ALL: [Outcome; 7] = [
        Outcome::Cusparses,
        Outcome::NotAskedFor,
        Outcome::UnknownVersion,
        Outcome::NoDevice,
        Outcome::NotTaken,
        Outcome::NotInVersion,
        Outcome::NoCusparse,
    ];

    /// Whether cuSPARSE gets the call.
    pub fn is_forwarded(self) -> bool {
        !matches!(self, Outcome::NotInVersion | Outcome::NoCusparse)
    }

    /// What is done with the call, and why.
    pub fn text(self) -> &'static str {
        match self {
            Outcome::Cusparses => "forwarded: cuSPARSE always gets this call",
            Outcome::NotAskedFor => "forwarded: TARSIA_CUSPARSE_TAKE leaves the operation out",
            Outcome::UnknownVersion => "forwarded: unknown version of cuSPARSE",
            Outcome::NoDevice => "forwarded: no CUDA device for Tarsia",
            Outcome::NotTaken => "forwarded: not taken by this version of Tarsia",
            Outcome::NotInVersion => "answered NOT_SUPPORTED: this cuSPARSE does not have the function",
            Outcome::NoCusparse => "answered NOT_INITIALIZED: no cuSPARSE is loaded",
        }
    }
}

/// Decides about a call, of which the real function is given, and remembers it for the summary.
pub fn note(function: Function, real: Result<NonNull<c_void>, Missing>) {
    let settings = settings();
    if settings.mode == Mode::Off && real.is_ok() {
        return;
    }
    messages::problems();
    let outcome = match (real, function.role()) {
        (Err(Missing::Library), _) => Outcome::NoCusparse,
        (Err(Missing::Function), _) => Outcome::NotInVersion,
        (Ok(_), Role::Cusparse) => Outcome::Cusparses,
        (Ok(_), Role::Step(operation)) => step(operation),
    };
    if outcome == Outcome::NoCusparse {
        messages::no_cusparse();
    }
    summary::count(function, outcome);
    if settings.mode == Mode::Trace {
        messages::line(&format!("{} {}", function.name(), outcome.text()));
    }
}

/// Of a step of a product.
fn step(operation: Operation) -> Outcome {
    if !settings().take.contains(&operation) {
        return Outcome::NotAskedFor;
    }
    static OBSTACLE: OnceLock<Option<Outcome>> = OnceLock::new();
    OBSTACLE.get_or_init(|| real::cusparse().and_then(obstacle)).unwrap_or(Outcome::NotTaken)
}

/// What keeps the drop-in from taking anything in this process; one line tells it.
fn obstacle(cusparse: &Cusparse) -> Option<Outcome> {
    let version = version(cusparse);
    if cusparse.version.is_none_or(|[major, ..]| major != KNOWN_MAJOR_VERSION) {
        let file = &cusparse.file;
        messages::line(&format!(
            "every call is forwarded to cuSPARSE: {version} ({file}) is a version that Tarsia does not know"
        ));
        return Some(Outcome::UnknownVersion);
    }
    match tarsia::facade::count_devices() {
        Ok(1..) => return None,
        Ok(0) => no_device("there is no CUDA device"),
        Err(error) => no_device(error.message.trim_start_matches("backend: ")),
    }
    Some(Outcome::NoDevice)
}

fn no_device(reason: &str) {
    messages::line(&format!("every call is forwarded to cuSPARSE: {reason}"));
}

/// That of CUDA 12 and 13, whose functions and types this library was written for.
const KNOWN_MAJOR_VERSION: i32 = 12;

/// What a cuSPARSE says its version is.
pub fn version(cusparse: &Cusparse) -> String {
    match cusparse.version {
        Some([major, minor, patch]) => format!("cuSPARSE {major}.{minor}.{patch}"),
        None => "cuSPARSE without a version".to_string(),
    }
}

//! What becomes of a call, and why: it is taken, or forwarded for one of many reasons.

use std::ffi::{c_int, c_void};
use std::ptr::NonNull;
use std::sync::OnceLock;

use tarsia::facade::direct::Failure;
use tarsia::facade::Error;

use crate::arguments::{self, Frame, SpmmArguments, SpmvArguments};
use crate::catch;
use crate::functions::{Function, Operation, Role};
use crate::handles;
use crate::messages;
use crate::products;
use crate::real::{self, Cusparse, Missing};
use crate::rules::Shape;
use crate::settings::{settings, Mode};
use crate::summary;

macro_rules! outcomes {
    ($($(#[$doc:meta])* $name:ident = $fate:ident $text:literal;)*) => {
        /// What becomes of a call.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(usize)]
        pub enum Outcome {
            $($(#[$doc])* $name,)*
        }

        impl Outcome {
            /// All of them; the place of each is its number.
            pub const ALL: &[Outcome] = &[$(Outcome::$name,)*];

            /// Who gets the call.
            pub fn fate(self) -> Fate {
                const FATES: &[Fate] = &[$(Fate::$fate,)*];
                FATES[self as usize]
            }

            /// What is done with the call, and why.
            pub fn text(self) -> &'static str {
                const TEXTS: &[&str] = &[$($text,)*];
                TEXTS[self as usize]
            }
        }
    };
}

/// Who gets a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Tarsia.
    Taken,
    /// cuSPARSE.
    Forwarded,
    /// Nobody: an error is returned.
    Failed,
}

outcomes! {
    /// Tarsia has enqueued the product.
    Taken = Taken "taken";
    /// Forwarded, and then the size that cuSPARSE answered was raised.
    Sized = Forwarded "forwarded: and the size raised to what Tarsia needs";
    /// It ends or changes an object, or belongs to a way of computing that only cuSPARSE has.
    Cusparses = Forwarded "forwarded: cuSPARSE always gets this call";
    /// By the environment.
    NotAskedFor = Forwarded "forwarded: TARSIA_CUSPARSE_TAKE leaves the operation out";
    /// Its functions may have other signatures.
    UnknownVersion = Forwarded "forwarded: unknown version of cuSPARSE";
    /// Or one that Tarsia cannot use.
    NoDevice = Forwarded "forwarded: no CUDA device for Tarsia";
    /// A function that nothing is computed by.
    NotTaken = Forwarded "forwarded: not taken by this version of Tarsia";
    /// cuSPARSE has answered with an error.
    Unanswered = Forwarded "forwarded: cuSPARSE refuses the arguments";
    /// cuSPARSE's errors are its own.
    Null = Forwarded "forwarded: a pointer is NULL";
    /// One that does not exist, or is for another format.
    Algorithm = Forwarded "forwarded: the algorithm is none of A's format that Tarsia knows";
    /// A's rows of op(A) are not contiguous, or B is conjugated.
    Operation = Forwarded "forwarded: with this operation A would have to be converted";
    /// Blocks and sliced ELL; and COO, whose entries may be in any order: to look takes longer than the product.
    Format = Forwarded "forwarded: a format that is not taken";
    /// Values, indices or sums.
    Types = Forwarded "forwarded: types that are not taken";
    /// Several matrices in one descriptor.
    Batches = Forwarded "forwarded: batches";
    /// A getter fails, or answers what is not known.
    NotDescribed = Forwarded "forwarded: cuSPARSE does not describe an argument";
    /// It would have to take memory.
    FirstInCapture = Forwarded "forwarded: the handle's first call is captured into a graph";
    /// As that of the handle's first call.
    OtherContext = Forwarded "forwarded: the thread is on another device or context";
    /// CUDA does not work there.
    Child = Forwarded "forwarded: in a process that fork has made";
    /// The buffer holds what cuSPARSE has put there.
    Preprocessed = Forwarded "forwarded: the program has preprocessed A by cuSPARSE";
    /// Tarsia needs one, and bufferSize was not called with this handle and the same shapes, types and orders.
    Buffer = Forwarded "forwarded: the buffer may be smaller than Tarsia needs";
    /// Nothing was enqueued.
    Refused = Forwarded "forwarded: Tarsia refuses the arguments";
    /// By a rule (rules.rs).
    Slower = Forwarded "forwarded: cuSPARSE is faster for this shape";
    /// Something was enqueued.
    Broken = Failed "answered EXECUTION_FAILED: Tarsia failed in the midst of the product";
    /// Where the program has it from here.
    NotInVersion = Failed "answered NOT_SUPPORTED: this cuSPARSE does not have the function";
    /// There is nowhere to forward it to.
    NoCusparse = Failed "answered NOT_INITIALIZED: no cuSPARSE is loaded";
}

/// `CUSPARSE_STATUS_SUCCESS`
const SUCCESS: c_int = 0;
/// `CUSPARSE_STATUS_EXECUTION_FAILED`
const EXECUTION_FAILED: c_int = 6;

/// What was decided about a call, with what a trace tells of it.
#[derive(Debug)]
pub struct Decision {
    pub outcome: Outcome,
    pub more: More,
}

/// What a trace tells of a call beside what became of it.
#[derive(Debug)]
pub enum More {
    Nothing,
    /// Of a product that is taken, or lacks a buffer.
    Shape(Shape),
    /// Of a product that a rule forwards: the shape, and why.
    Rule(Shape, &'static str),
    /// What Tarsia says.
    Error(Error),
}

impl From<Outcome> for Decision {
    fn from(outcome: Outcome) -> Self {
        Decision { outcome, more: More::Nothing }
    }
}

impl From<Failure> for Decision {
    fn from(failure: Failure) -> Self {
        let (outcome, error) = match failure {
            Failure::Refused(error) => (Outcome::Refused, error),
            Failure::Broken(error) => (Outcome::Broken, error),
        };
        Decision { outcome, more: More::Error(error) }
    }
}

/// Decides about a call, of which the real function is given, and remembers it for the summary. A status: the call was
/// answered; `None`: it goes on.
pub fn decide(function: Function, real: Result<NonNull<c_void>, Missing>, frame: Frame) -> Option<c_int> {
    let settings = settings();
    if settings.mode == Mode::Off && real.is_ok() {
        return None;
    }
    messages::problems();
    let (decision, answer) = match (real, function.role()) {
        (Err(Missing::Library), _) => (Outcome::NoCusparse.into(), None),
        (Err(Missing::Function), _) => (Outcome::NotInVersion.into(), None),
        (Ok(_), Role::Cusparse) => {
            note_end(function, frame);
            (Outcome::Cusparses.into(), None)
        }
        (Ok(address), Role::Step(operation)) => step(function, operation, address, frame),
    };
    let Decision { outcome, more } = decision;
    if outcome == Outcome::NoCusparse {
        messages::no_cusparse();
    }
    summary::count(function, outcome);
    if settings.mode == Mode::Trace {
        let more = match more {
            More::Nothing => String::new(),
            More::Shape(shape) => format!(" ({})", shape.describe()),
            More::Rule(shape, why) => format!(" ({}; {why})", shape.describe()),
            More::Error(error) => format!(" ({})", error.message),
        };
        messages::line(&format!("{} {}{more}", function.name(), outcome.text()));
    }
    answer
}

/// Forgets what is kept of an object that the program destroys.
fn note_end(function: Function, frame: Frame) {
    match function {
        Function::cusparseDestroy => handles::forget_handle(arguments::object(frame, 0)),
        Function::cusparseDestroySpMat => handles::forget_matrix(arguments::object(frame, 0)),
        _ => {}
    }
}

/// Of a step of a product: what became of it, and a status if the call was answered.
fn step(
    function: Function,
    operation: Operation,
    address: NonNull<c_void>,
    frame: Frame,
) -> (Decision, Option<c_int>) {
    // Whatever may be taken: another operation may be given the same matrix and the same buffer.
    match function {
        Function::cusparseSpMV_preprocess => handles::note_preprocessed(arguments::object(frame, 3)),
        Function::cusparseSpMM_preprocess => handles::note_preprocessed(arguments::object(frame, 4)),
        _ => {}
    }
    if !settings().take.contains(&operation) {
        return (Outcome::NotAskedFor.into(), None);
    }
    static OBSTACLE: OnceLock<Option<Outcome>> = OnceLock::new();
    if let Some(outcome) = OBSTACLE.get_or_init(|| real::cusparse().and_then(obstacle)) {
        return ((*outcome).into(), None);
    }
    match function {
        Function::cusparseSpMV => product(products::spmv(&frame.into())),
        Function::cusparseSpMM => product(products::spmm(&frame.into())),
        Function::cusparseSpMV_bufferSize => {
            let call = SpmvArguments::from(frame);
            // SAFETY: it is the address of this function.
            let status = unsafe { call.call(address.as_ptr()) };
            size(status, call.last, || products::spmv_buffer_bytes(&call))
        }
        Function::cusparseSpMM_bufferSize => {
            let call = SpmmArguments::from(frame);
            // SAFETY: it is the address of this function.
            let status = unsafe { call.call(address.as_ptr()) };
            size(status, call.last, || products::spmm_buffer_bytes(&call))
        }
        _ => (Outcome::NotTaken.into(), None),
    }
}

fn product(result: Result<Shape, Decision>) -> (Decision, Option<c_int>) {
    match result {
        Ok(shape) => (Decision { outcome: Outcome::Taken, more: More::Shape(shape) }, Some(SUCCESS)),
        Err(declined) if declined.outcome == Outcome::Broken => (declined, Some(EXECUTION_FAILED)),
        Err(declined) => (declined, None),
    }
}

/// Raises the size that cuSPARSE has answered with a status; the call is over whatever comes.
fn size(
    status: c_int,
    size: *mut c_void,
    needed: impl FnOnce() -> Result<usize, Decision>,
) -> (Decision, Option<c_int>) {
    if status != SUCCESS {
        return (Outcome::Unanswered.into(), Some(status));
    }
    // cuSPARSE has the call behind it: a panic must not have it forwarded once more.
    match catch(needed).unwrap_or_else(|| Err(Outcome::Refused.into())) {
        Ok(bytes) => {
            // SAFETY: cuSPARSE has written a size there.
            unsafe { arguments::raise(size, bytes) };
            (Outcome::Sized.into(), Some(status))
        }
        Err(declined) => (declined, Some(status)),
    }
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
    if settings().on_host {
        return None;
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

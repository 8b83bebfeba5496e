//! The decision about each intercepted call: taken by Tarsia, forwarded to cuSPARSE, or answered with an
//! error, with the reason.

use std::ffi::{c_int, c_void};
use std::ptr::NonNull;
use std::sync::OnceLock;

use tarsia::facade::direct::{Failure, SpgemmProblem};
use tarsia::facade::Error;

use crate::arguments::{self, Frame, Object, SpmmArguments, SpmvArguments};
use crate::catch;
use crate::functions::{Function, Operation, Role};
use crate::handles;
use crate::messages;
use crate::plans;
use crate::products;
use crate::real::{self, Cusparse, Missing};
use crate::rules::Shape;
use crate::settings::{settings, Mode};
use crate::spgemm;
use crate::spmvop;
use crate::summary;

macro_rules! outcomes {
    ($($(#[$doc:meta])* $name:ident = $fate:ident $text:literal;)*) => {
        /// Outcome of an intercepted call: who gets it, and why.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(usize)]
        pub enum Outcome {
            $($(#[$doc])* $name,)*
        }

        impl Outcome {
            /// All outcomes, in the order of their numbers.
            pub const ALL: &[Outcome] = &[$(Outcome::$name,)*];

            /// Returns who gets the call.
            pub fn fate(self) -> Fate {
                const FATES: &[Fate] = &[$(Fate::$fate,)*];
                FATES[self as usize]
            }

            /// Returns the text of the outcome for traces and the summary.
            pub fn text(self) -> &'static str {
                const TEXTS: &[&str] = &[$($text,)*];
                TEXTS[self as usize]
            }

            /// Returns the text without the word in front that says who gets the call.
            pub fn reason(self) -> &'static str {
                self.text().split_once(": ").map_or(self.text(), |(_, reason)| reason)
            }
        }
    };
}

/// Receiver of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Tarsia computes the product.
    Taken,
    /// cuSPARSE gets the call.
    Forwarded,
    /// Neither gets the call, or Tarsia has failed: an error is returned.
    Failed,
}

outcomes! {
    /// Tarsia has enqueued the product.
    Taken = Taken "taken";
    /// cuSPARSE has answered the size of a buffer, which was then raised to what Tarsia needs.
    Sized = Forwarded "forwarded: and the size raised to what Tarsia needs";
    /// cuSPARSE preprocesses the matrix, and Tarsia makes a plan at the second product after this.
    Promised = Forwarded "forwarded: and Tarsia analyzes the matrix at the second product";
    /// The program preprocesses a matrix for the second time.
    Again = Forwarded "forwarded: the matrix has been preprocessed before, and Tarsia analyzes it once";
    /// The call destroys or changes an object, or belongs to an interface that only cuSPARSE has.
    Cusparses = Forwarded "forwarded: cuSPARSE always gets this call";
    /// `TARSIA_CUSPARSE_TAKE` does not list the operation.
    NotAskedFor = Forwarded "forwarded: TARSIA_CUSPARSE_TAKE leaves the operation out";
    /// This version of cuSPARSE is unknown; its functions may have other signatures.
    UnknownVersion = Forwarded "forwarded: unknown version of cuSPARSE";
    /// There is no CUDA device, or none that Tarsia can use.
    NoDevice = Forwarded "forwarded: no CUDA device for Tarsia";
    /// The function is of `cusparseSpMVOp`, whose products only `TARSIA_CUSPARSE=force` takes.
    NotTaken = Forwarded "forwarded: only TARSIA_CUSPARSE=force takes these products";
    /// The plan of a `cusparseSpMVOp` is unknown, or has an epilogue of the program's.
    Epilogue = Forwarded "forwarded: the plan has an epilogue, or was made without Tarsia";
    /// A `cusparseSpMVOp` has its y and its result in different arrays.
    Apart = Forwarded "forwarded: the result is not where y is";
    /// The call is a later step of an SpGEMM whose first step cuSPARSE has got, or that has had none.
    NotBegun = Forwarded "forwarded: cuSPARSE has got the first step of this product";
    /// nnz(C) could not be set, since the probe of cuSPARSE's descriptors has failed.
    Place = Forwarded "forwarded: this cuSPARSE does not show where a descriptor has its nnz";
    /// The product is added to beta · C, or beta is on the device and C has entries.
    Beta = Forwarded "forwarded: beta may be other than zero";
    /// An SpGEMM blocks, which a capture does not allow.
    Captured = Forwarded "forwarded: it is captured into a graph";
    /// Tarsia has refused a later step of an SpGEMM, whose first step cuSPARSE has got now, too.
    Late = Forwarded "forwarded: Tarsia cannot compute the product after all";
    /// cuSPARSE has answered a call for the size of a buffer, or a preprocess, with an error.
    Unanswered = Forwarded "forwarded: cuSPARSE refuses the arguments";
    /// An argument is NULL; cuSPARSE reports such errors itself.
    Null = Forwarded "forwarded: a pointer is NULL";
    /// The algorithm does not exist or is for another format.
    Algorithm = Forwarded "forwarded: the algorithm is none of A's format that Tarsia knows";
    /// The rows of op(A) are not contiguous in A's arrays, B is conjugated, or the operation does not exist.
    Operation = Forwarded "forwarded: with this operation A would have to be converted";
    /// The format of A is BSR, blocked or sliced ELL, or COO. Entries of COO may be in any order, and a check
    /// of the order takes longer than the product.
    Format = Forwarded "forwarded: a format that is not taken";
    /// The types of the values, the indices or the sums are not supported.
    Types = Forwarded "forwarded: types that are not taken";
    /// A descriptor describes a batch of matrices.
    Batches = Forwarded "forwarded: batches";
    /// A getter of cuSPARSE is missing or fails, or returns a value that is unknown.
    NotDescribed = Forwarded "forwarded: cuSPARSE does not describe an argument";
    /// The handle's first call is captured into a graph, and would have to allocate memory.
    FirstInCapture = Forwarded "forwarded: the handle's first call is captured into a graph";
    /// The thread's current context is not that of the handle's first call.
    OtherContext = Forwarded "forwarded: the thread is on another device or context";
    /// The process is a child made by `fork`, in which CUDA does not work.
    Child = Forwarded "forwarded: in a process that fork has made";
    /// The program has preprocessed the A of an SpMM, so that the buffer holds data of cuSPARSE.
    Preprocessed = Forwarded "forwarded: the program has preprocessed A by cuSPARSE";
    /// Tarsia needs a buffer, and bufferSize was not called with this handle and the same shapes, types and
    /// orders.
    Buffer = Forwarded "forwarded: the buffer may be smaller than Tarsia needs";
    /// Tarsia has refused the call before it enqueued anything.
    Refused = Forwarded "forwarded: Tarsia refuses the arguments";
    /// A rule in rules.rs says that cuSPARSE is faster.
    Slower = Forwarded "forwarded: cuSPARSE is faster for this shape";
    /// Tarsia has failed after it had enqueued part of the product, so the call cannot be forwarded.
    Broken = Failed "answered EXECUTION_FAILED: Tarsia failed in the midst of the product";
    /// Tarsia has refused a later step of an SpGEMM, when cuSPARSE could not get the product any more.
    StepFailed = Failed "answered with an error: Tarsia cannot do this step of the product";
    /// The program found the function in this library, but the loaded cuSPARSE does not have it.
    NotInVersion = Failed "answered NOT_SUPPORTED: this cuSPARSE does not have the function";
    /// No cuSPARSE is loaded to which the call could be forwarded.
    NoCusparse = Failed "answered NOT_INITIALIZED: no cuSPARSE is loaded";
}

/// `CUSPARSE_STATUS_SUCCESS`
pub const SUCCESS: c_int = 0;
/// `CUSPARSE_STATUS_EXECUTION_FAILED`
const EXECUTION_FAILED: c_int = 6;

/// Decision about a call, with details for the trace.
#[derive(Debug)]
pub struct Decision {
    pub outcome: Outcome,
    pub more: More,
}

/// Details of a call that a trace prints behind its outcome.
#[derive(Debug)]
pub enum More {
    Nothing,
    /// Shape of a product that is taken, or that is forwarded because its buffer may be too small.
    Shape(Shape),
    /// Shape of a product that a rule forwards, and the rule's reason.
    Rule(Shape, &'static str),
    /// SpGEMM that is taken.
    Product(Box<SpgemmProblem>),
    /// Error that Tarsia has returned.
    Error(Error),
    /// Reason for which the call would have been forwarded, if that were still possible.
    Instead(Outcome),
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

/// Decides about a call, given the address of the real function, and counts it for the summary. Returns the
/// status if the call has been answered, and `None` if it is to be forwarded.
pub fn decide(function: Function, real: Result<NonNull<c_void>, Missing>, frame: Frame) -> Option<c_int> {
    let settings = settings();
    if settings.mode == Mode::Off && real.is_ok() {
        return None;
    }
    let _inside = handles::Inside::enter();
    messages::problems();
    let (decision, answer) = match (real, function.role()) {
        (Err(Missing::Library), _) => (Outcome::NoCusparse.into(), None),
        (Err(Missing::Function), _) => (Outcome::NotInVersion.into(), None),
        (Ok(_), Role::Cusparse) => {
            note_end(function, frame);
            (Outcome::Cusparses.into(), None)
        }
        (Ok(_), Role::Step(_)) if handles::is_child() => (Outcome::Child.into(), None),
        (Ok(address), Role::Step(operation)) => step(function, operation, address, frame),
    };
    // A panic in what follows must not cause a call to be forwarded that has been answered.
    catch(|| report(function, decision));
    if !matches!(function, Function::cusparseSpMV | Function::cusparseSpMM) {
        catch(handles::release_finished);
    }
    answer
}

/// Counts a call, and prints it in a trace.
fn report(function: Function, Decision { outcome, more }: Decision) {
    if outcome == Outcome::NoCusparse {
        messages::no_cusparse();
    }
    summary::count(function, outcome);
    if settings().mode == Mode::Trace {
        let more = match more {
            More::Nothing => String::new(),
            More::Shape(shape) => format!(" ({})", shape.describe()),
            More::Rule(shape, why) => format!(" ({}; {why})", shape.describe()),
            More::Product(problem) => format!(" ({})", spgemm::describe(&problem)),
            More::Error(error) => format!(" ({})", error.message),
            More::Instead(outcome) => format!(" ({})", outcome.reason()),
        };
        messages::line(&format!("{} {}{more}", function.name(), outcome.text()));
    }
}

/// Removes the state that the drop-in keeps for an object that the program destroys or changes.
fn note_end(function: Function, frame: Frame) {
    match function {
        Function::cusparseDestroy => {
            let handle = arguments::object(frame, 0);
            plans::forget_handle(handle);
            spgemm::forget_handle(handle);
            spmvop::forget_handle(handle);
            handles::forget_handle(handle);
        }
        Function::cusparseDestroySpMat => {
            handles::forget_matrix(arguments::object(frame, 0));
            plans::forget(arguments::object(frame, 0));
            spmvop::forget_matrix(arguments::object(frame, 0));
        }
        // With other arrays the matrix may have another pattern, even at the same addresses.
        Function::cusparseCsrSetPointers | Function::cusparseCscSetPointers => {
            plans::forget(arguments::object(frame, 0));
            spmvop::forget_matrix(arguments::object(frame, 0));
        }
        _ => {}
    }
}

/// Handles a call that is a step of a product. Returns the decision, and the status if the call has been
/// answered.
fn step(
    function: Function,
    operation: Operation,
    address: NonNull<c_void>,
    frame: Frame,
) -> (Decision, Option<c_int>) {
    // Noted for operations that are not taken, too: another one may get the same matrix and buffer.
    match function {
        Function::cusparseSpMV_preprocess => note_preprocessed(arguments::object(frame, 3), operation),
        Function::cusparseSpMM_preprocess => note_preprocessed(arguments::object(frame, 4), operation),
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
        Function::cusparseSpMV_preprocess => {
            let call = SpmvArguments::from(frame);
            // SAFETY: `address` is that of this function, and the arguments are those of the call.
            promised(products::preprocess_spmv(&call), || unsafe { call.call(address.as_ptr()) })
        }
        Function::cusparseSpMM_preprocess => {
            let call = SpmmArguments::from(frame);
            // SAFETY: `address` is that of this function, and the arguments are those of the call.
            promised(products::preprocess_spmm(&call), || unsafe { call.call(address.as_ptr()) })
        }
        Function::cusparseSpMV_bufferSize => {
            let call = SpmvArguments::from(frame);
            // SAFETY: `address` is that of this function, and the arguments are those of the call.
            let status = unsafe { call.call(address.as_ptr()) };
            size(status, call.last, || products::spmv_buffer_bytes(&call))
        }
        Function::cusparseSpMM_bufferSize => {
            let call = SpmmArguments::from(frame);
            // SAFETY: `address` is that of this function, and the arguments are those of the call.
            let status = unsafe { call.call(address.as_ptr()) };
            size(status, call.last, || products::spmm_buffer_bytes(&call))
        }
        _ if operation == Operation::Spgemm => spgemm::step(function, address, frame),
        _ if settings().is_forced() => spmvop::step(function, address, frame),
        _ => (Outcome::NotTaken.into(), None),
    }
}

/// Notes a preprocess, whatever becomes of the call: the pattern may have changed since an earlier one.
fn note_preprocessed(matrix: Object, operation: Operation) {
    handles::note_preprocessed(matrix);
    plans::expire(matrix, operation);
}

/// Handles a preprocess, after which Tarsia may make a plan: cuSPARSE carries it out by `real`, and only if it has
/// done so is there a promise.
fn promised(
    promise: Result<(plans::Key, Shape), Decision>,
    real: impl FnOnce() -> c_int,
) -> (Decision, Option<c_int>) {
    let (key, shape) = match promise {
        Ok(promise) => promise,
        Err(declined) => return (declined, None),
    };
    let status = real();
    if status != SUCCESS {
        return (Outcome::Unanswered.into(), Some(status));
    }
    // cuSPARSE has executed the call: a panic must not cause it to be forwarded a second time.
    let decision = match catch(|| plans::promise(&key)) {
        Some(true) => Decision { outcome: Outcome::Promised, more: More::Shape(shape) },
        Some(false) => Outcome::Again.into(),
        None => Outcome::Refused.into(),
    };
    (decision, Some(status))
}

/// Returns a decision about a product, and the status unless the call is to be forwarded.
pub fn product(result: Result<Shape, Decision>) -> (Decision, Option<c_int>) {
    match result {
        Ok(shape) => (Decision { outcome: Outcome::Taken, more: More::Shape(shape) }, Some(SUCCESS)),
        Err(declined) if declined.outcome == Outcome::Broken => (declined, Some(EXECUTION_FAILED)),
        Err(declined) => (declined, None),
    }
}

/// Finishes a call for the size of a buffer that cuSPARSE has answered with `status`: raises the size to what
/// Tarsia needs. Always returns the status, so that the call is not forwarded again.
fn size(
    status: c_int,
    size: *mut c_void,
    needed: impl FnOnce() -> Result<usize, Decision>,
) -> (Decision, Option<c_int>) {
    if status != SUCCESS {
        return (Outcome::Unanswered.into(), Some(status));
    }
    // cuSPARSE has executed the call: a panic must not cause it to be forwarded a second time.
    match catch(needed).unwrap_or_else(|| Err(Outcome::Refused.into())) {
        Ok(bytes) => {
            // SAFETY: cuSPARSE has written a size to the address, or it is NULL.
            unsafe { arguments::raise(size, bytes) };
            (Outcome::Sized.into(), Some(status))
        }
        Err(declined) => (declined, Some(status)),
    }
}

/// Returns the outcome of all calls of this process if the drop-in cannot take any, and reports the reason in
/// one line.
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

/// Major version of the cuSPARSE in CUDA 12 and 13, for whose functions and types this library was written.
const KNOWN_MAJOR_VERSION: i32 = 12;

/// Returns the version of a cuSPARSE library as text.
pub fn version(cusparse: &Cusparse) -> String {
    match cusparse.version {
        Some([major, minor, patch]) => format!("cuSPARSE {major}.{minor}.{patch}"),
        None => "cuSPARSE without a version".to_string(),
    }
}

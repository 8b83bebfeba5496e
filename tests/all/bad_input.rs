//! Tests of every function of the API with every bad argument: the status is the one that the header
//! promises, the message names the argument, no result is written, and everything still works afterwards.
//!
//! - this file: bad arguments that follow from the types of the header's arguments. A function or an argument
//!   that is added to the header is tested, or fails the tests, without a change here.
//! - the modules: bad arguments that follow from their meaning.

pub mod bad;
mod calls;
mod dense;
mod host_memory;
mod info;
mod operands;
mod patterns;
mod sequence;
mod sparse;
pub mod world;

use client::check;
use tarsia::capi::enums::tarsiaStatus_t;
use tarsia::capi::{dnmat, dnvec, handle, memory, plan, spmat, status};
use tarsia::facade::Status;

use crate::common::backends;
use crate::generated::header;
use bad::{accepts, failed, forget_message, invalid, mentions, names, refuses, Bad, Value};
use calls::Call;
use world::World;

/// Functions that return a text instead of a status.
const TEXTS: [&str; 2] = ["tarsiaGetErrorName", "tarsiaGetErrorString"];

/// Bad value of an argument, and the expected answer of the library.
#[derive(Clone, Debug)]
struct Case {
    what: String,
    value: Value,
    expected: Expected,
}

/// Expected answer of the library to a bad argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expected {
    /// Success: the value is allowed after all.
    Success,
    /// Failure with this status and a text that starts with the argument's name.
    Names(Status),
    /// Failure with this status and a text that has the argument's name somewhere.
    Mentions(Status),
    /// Failure with this status; a module tests the text.
    Fails(Status),
}

/// Returns the index in [`World::stale`] of objects of this C type.
fn object_kind(c: &str) -> Option<usize> {
    match c {
        "tarsiaHandle_t" => Some(0),
        "tarsiaSpMatDescr_t" | "tarsiaConstSpMatDescr_t" => Some(1),
        "tarsiaDnVecDescr_t" | "tarsiaConstDnVecDescr_t" => Some(2),
        "tarsiaDnMatDescr_t" | "tarsiaConstDnMatDescr_t" => Some(3),
        "tarsiaPlan_t" => Some(4),
        _ => None,
    }
}

/// Returns whether this is an output argument of a getter that may be NULL.
fn optional(function: &str, c: &str) -> bool {
    let all_fields =
        function.ends_with("Get") || ["tarsiaCheckSpMat", "tarsiaSpMatGetSize"].contains(&function);
    all_fields && c.ends_with('*') && object_kind(c).is_none()
}

/// Returns whether NULL is a valid value of this argument.
fn may_be_null(function: &str, name: &str) -> bool {
    let array = ["rowOffsets", "colOffsets", "rowInd", "colInd", "values"].contains(&name);
    let described = function.starts_with("tarsiaCreate") || function.contains("Set");
    (array && described)
        || name == "ctx"
        || [("tarsiaSetStream", "stream"), ("tarsiaSetLogger", "callback"), ("tarsiaFree", "ptr")]
            .contains(&(function, name))
        || [("tarsiaPlan_getDecisions", "buffer"), ("tarsiaSetPlanCache", "folder")]
            .contains(&(function, name))
        || ["newValuesA", "newValuesB"].contains(&name)
}

/// Returns all bad values of an argument, by its type in the header.
fn cases(world: &World, header: &header::Header, function: &str, c: &str, name: &str) -> Vec<Case> {
    let refused = Expected::Names(Status::InvalidValue);
    let bits = |what: &str, bits: usize, expected| Case {
        what: what.to_string(),
        value: Value::Bits(bits as u64),
        expected,
    };
    let null = |allowed| bits("NULL", 0, if allowed { Expected::Success } else { refused });
    if let Some(kind) = object_kind(c) {
        let refused = if kind == 0 { Expected::Names(Status::NotInitialized) } else { refused };
        let destroys = function.contains("estroy");
        let live = [world.handle.addr(), world.csr.addr(), world.x.addr(), world.b.addr(), world.spmv.addr()];
        let kinds = ["a handle", "a sparse matrix", "a dense vector", "a dense matrix", "a plan"];
        let mut out = vec![
            bits("NULL", 0, if destroys { Expected::Success } else { refused }),
            bits("destroyed", world.stale[kind], refused),
            bits("a number", 1, refused),
            bits("all bits set", usize::MAX, refused),
            bits("an address", (&raw const live).addr(), refused),
        ];
        let others = (0..5).filter(|&other| other != kind);
        out.extend(others.map(|other| bits(kinds[other], live[other], refused)));
        let of_const_arrays =
            [0, world.const_csr.addr(), world.const_y.addr(), world.const_c.addr(), 0][kind];
        if of_const_arrays != 0 && !c.contains("Const") {
            out.push(bits("of const arrays", of_const_arrays, refused));
        }
        return out;
    }
    if header.enums.iter().any(|(name, _)| name == c) {
        return [77, -1, i32::MAX, i32::MIN]
            .map(|code| bits(&code.to_string(), code as usize, refused))
            .to_vec();
    }
    match c {
        "char*" | "const char*" | "void*" | "const void*" => vec![null(may_be_null(function, name))],
        "tarsiaLogFn_t" => vec![null(may_be_null(function, name))],
        "tarsiaAllocFn_t" | "tarsiaFreeFn_t" => vec![null(false)],
        // A number may be too large because of another argument.
        "int64_t" if ["n", "nHint", "executes"].contains(&name) => {
            vec![bits("-1", usize::MAX, refused), bits("2^63 - 1", i64::MAX as usize, Expected::Success)]
        }
        "int64_t" => {
            // If ld · cols elements are too many, the text names ld.
            let product = function.ends_with("DnMat") && name != "ld";
            let most = if product { Expected::Fails } else { Expected::Mentions }(Status::InvalidValue);
            vec![
                bits("-1", usize::MAX, refused),
                bits("-2^63", i64::MIN as usize, refused),
                bits("2^63 - 1", i64::MAX as usize, if name == "ld" { refused } else { most }),
            ]
        }
        // Some machines have many devices.
        "int" if name == "device" => {
            vec![bits("-1", usize::MAX, refused), bits("1000", 1000, refused)]
        }
        "int" if function == "tarsiaSetNumThreads" => vec![bits("-1", usize::MAX, refused)],
        "int" => vec![bits("-1", usize::MAX, refused), bits("2", 2, refused)],
        // Every number is a valid number of bytes; the modules test wrong ones.
        "size_t" => Vec::new(),
        c if c.ends_with('*') => {
            let misaligned = Case { what: "misaligned".into(), value: Value::Misaligned, expected: refused };
            vec![null(optional(function, c)), misaligned]
        }
        c => panic!("{function}: no bad values for {name} of type {c}: add them here"),
    }
}

/// Destroys the object that a successful call has made.
fn undo(function: &header::Function, bad: &Bad) {
    let made =
        function.args.iter().find(|(c, _)| c.strip_suffix('*').is_some_and(|c| object_kind(c).is_some()));
    let code = match made {
        Some((c, _)) => match object_kind(c.trim_end_matches('*')) {
            Some(0) => handle::tarsiaDestroy(std::ptr::without_provenance_mut(bad.first())),
            Some(1) => spmat::tarsiaDestroySpMat(std::ptr::without_provenance(bad.first())),
            Some(2) => dnvec::tarsiaDestroyDnVec(std::ptr::without_provenance(bad.first())),
            Some(3) => dnmat::tarsiaDestroyDnMat(std::ptr::without_provenance(bad.first())),
            _ => plan::tarsiaPlan_destroy(std::ptr::without_provenance_mut(bad.first())),
        },
        None => return,
    };
    accepts(&format!("destroying what {} made", function.name), code);
}

/// Makes the good call, which must succeed and write every result.
fn good(world: &World, function: &header::Function, call: &Call) {
    let bad = Bad::none();
    let code = (call.call)(world, &bad);
    accepts(&function.name, code);
    assert_eq!(bad.written(), bad.answers(), "{}: an answer is missing", function.name);
    if function.name == "tarsiaMalloc" {
        let pointer = std::ptr::with_exposed_provenance_mut(bad.first());
        // SAFETY: the call has just allocated it.
        accepts("tarsiaFree", unsafe { memory::tarsiaFree(world.handle, pointer) });
    }
    undo(function, &bad);
    world.tidy();
}

/// Makes one bad call; `Err` says what the library did wrong.
fn one_case(
    world: &World,
    function: &header::Function,
    call: &Call,
    name: &'static str,
    case: &Case,
) -> Result<(), String> {
    let bad = Bad::one(name, case.value);
    forget_message();
    let code = (call.call)(world, &bad);
    assert!(bad.was_used(), "{}: the call has no argument {name}", function.name);
    let result = match case.expected {
        Expected::Success => failed(code, Status::Success).map(|()| undo(function, &bad)),
        Expected::Names(status) => names(code, status, name),
        Expected::Mentions(status) => mentions(code, status, name),
        Expected::Fails(status) => failed(code, status),
    };
    world.tidy();
    if case.expected != Expected::Success && bad.written() > 0 {
        return Err("an answer was written although the call failed".into());
    }
    result
}

/// Makes all bad calls of a function, each followed by the good one.
fn sweep(
    world: &World,
    header: &header::Header,
    function: &header::Function,
    call: &Call,
    faults: &mut Vec<String>,
) -> usize {
    let mut count = 0;
    good(world, function, call);
    for ((c, _), &name) in function.args.iter().zip(call.args) {
        for case in cases(world, header, &function.name, c, name) {
            if let Err(error) = one_case(world, function, call, name, &case) {
                faults
                    .push(format!("{:?}: {} with {name} {}: {error}", world.kind, function.name, case.what));
            }
            good(world, function, call);
            world.verify();
            count += 1;
        }
    }
    count
}

#[test]
fn every_argument_of_every_function() {
    let (header, calls) = (header::parse(), calls::all());
    let (mut count, mut faults) = (0, Vec::new());
    for kind in backends() {
        let world = World::new(kind);
        world.verify();
        for function in &header.functions {
            if let Some(call) = calls.iter().find(|call| call.name == function.name) {
                count += sweep(&world, &header, function, call, &mut faults);
            }
        }
    }
    assert!(faults.is_empty(), "{} of {count} bad calls:\n{}", faults.len(), faults.join("\n"));
    // Otherwise cases could get lost unnoticed.
    assert!(count > 1500, "only {count} bad calls");
}

/// Fails if a function of the header, or one of its arguments, has no call here, or if a function with a call
/// here is no longer in the header.
#[test]
fn every_function_of_the_header_is_covered() {
    let (header, calls) = (header::parse(), calls::all());
    for function in &header.functions {
        let call = calls.iter().filter(|call| call.name == function.name).collect::<Vec<_>>();
        let args: Vec<&str> = function.args.iter().map(|(_, name)| name.as_str()).collect();
        match (&call[..], TEXTS.contains(&function.name.as_str())) {
            ([], true) => {}
            ([call], false) => {
                assert_eq!(call.args, args, "{}: arguments differ from the header", function.name)
            }
            (found, _) => {
                panic!("{} has {} calls in tests/all/bad_input/calls.rs", function.name, found.len())
            }
        }
    }
    for call in &calls {
        assert!(header.functions.iter().any(|f| f.name == call.name), "{} is not in the header", call.name);
    }
}

#[test]
fn texts_of_integers_that_are_no_status() {
    use client::raw_arg;
    for code in [77, -1, 12, 99, 101, i32::MIN, i32::MAX] {
        // SAFETY: both return strings that live as long as the library.
        let texts = unsafe {
            [status::tarsiaGetErrorName(raw_arg(code)), status::tarsiaGetErrorString(raw_arg(code))]
                .map(|text| std::ffi::CStr::from_ptr(text).to_str().unwrap())
        };
        assert_eq!(texts, ["unknown status", "this integer is not a status of this library"], "{code}");
    }
}

#[test]
fn buffer_for_the_message_without_bytes() {
    let mut text = [7];
    // SAFETY: no byte may be written.
    invalid("len 0", "len", || unsafe { status::tarsiaGetLastErrorMessage(text.as_mut_ptr(), 0) });
    assert_eq!(text, [7]);
}

/// The helpers of these tests report a wrong name and a wrong status.
#[test]
fn helpers_notice_a_wrong_name_and_a_wrong_status() {
    let call = || -> tarsiaStatus_t {
        // SAFETY: NULL is refused.
        unsafe { status::tarsiaGetVersion(std::ptr::null_mut()) }
    };
    invalid("NULL", "version", call);
    for wrong in [(Status::InvalidValue, "ver"), (Status::NotSupported, "version")] {
        let result = std::panic::catch_unwind(|| refuses("NULL", wrong.0, wrong.1, call));
        assert!(result.is_err(), "{wrong:?} was not noticed");
    }
    assert!(check(call()).is_err());
}

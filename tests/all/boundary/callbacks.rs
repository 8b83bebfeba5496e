//! Tests of loggers and allocators that call the library with the plan and handle of the call that has called
//! them: there must be no deadlock. Each test runs in a process with a time limit.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{CStr, CString};
use std::fs;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::Mutex;

use client::{arg, check, Plan, Session};
use libc::{c_char, c_void};
use tarsia::capi::enums::{tarsiaLogLevel_t, tarsiaStatus_t};
use tarsia::capi::objects::{tarsiaDnMatDescr_t, tarsiaDnVecDescr_t, tarsiaHandle_t, tarsiaPlan_t};
use tarsia::capi::plan::tarsiaPlanInfo_t;
use tarsia::capi::{dnmat, dnvec, handle, memory, plan, spgemm, spmm, spmv};
use tarsia::facade::{BackendKind, DataType, Effort, Order, Result, SpmmAlg, SpmvAlg, Status};

use crate::bad_input::world::made;
use crate::common::staged::{memory as memory_of, upload};
use crate::common::{alone, backends};
use crate::decisions::{matrices, PlannedProduct, Stored};
use crate::memory::heap::{Fail, Heap};

/// Columns of B and C, as `PlannedProduct` has them.
const COLUMNS: i64 = 5;
const OK: i32 = 0;
const INVALID_VALUE: i32 = Status::InvalidValue as i32;
const STATE: i32 = Status::InvalidState as i32;

/// Set of calls of the library that a callback makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Calls {
    /// No calls.
    None,
    /// Calls that do not destroy the plan.
    Keeping,
    /// Calls of [`Self::Keeping`], and those that destroy the handle and the plan.
    All,
    /// Call that destroys the plan.
    Destroy,
}

/// Statuses that each function returned, with their numbers.
type Found = BTreeMap<&'static str, BTreeMap<i32, usize>>;

/// Objects that a callback uses for calls of the library, and the results of these.
struct Caller {
    kind: BackendKind,
    handle: tarsiaHandle_t,
    /// Address of the plan.
    plan: AtomicUsize,
    /// Operands of a square matrix of this size.
    x: tarsiaDnVecDescr_t,
    y: tarsiaDnVecDescr_t,
    b: tarsiaDnMatDescr_t,
    c: tarsiaDnMatDescr_t,
    values: *const c_void,
    calls: Mutex<Calls>,
    /// True during the calls of a callback, in which further callbacks make no calls.
    is_inside: AtomicBool,
    found: Mutex<Found>,
    lines: Mutex<Vec<String>>,
}

impl Caller {
    /// Creates a caller that lives as long as the process, since objects that use it may be destroyed last.
    fn new(session: &Session, stored: &Stored) -> &'static Self {
        let (kind, n) = (session.kind(), stored.shape.0);
        let room = |count: usize| -> *mut c_void {
            // These few bytes live as long as the process.
            Box::leak(Box::new(upload(kind, &vec![1.0_f64; count]))).part_mut(0..count).as_mut_ptr().cast()
        };
        let vector = || {
            // SAFETY: the array has that many elements and lives as long as the process.
            made(|out| unsafe { dnvec::tarsiaCreateDnVec(out, n as i64, room(n), arg(DataType::R64F)) })
        };
        let matrix = || {
            let values = room(n * COLUMNS as usize);
            let (order, of) = (arg(Order::Row), arg(DataType::R64F));
            // SAFETY: as above.
            made(|out| unsafe {
                dnmat::tarsiaCreateDnMat(out, n as i64, COLUMNS, COLUMNS, values, of, order)
            })
        };
        Box::leak(Box::new(Caller {
            kind,
            handle: session.raw(),
            plan: AtomicUsize::new(0),
            x: vector(),
            y: vector(),
            b: matrix(),
            c: matrix(),
            values: stored.values.part(0..0).as_ptr().cast(),
            calls: Mutex::new(Calls::None),
            is_inside: AtomicBool::new(false),
            found: Mutex::default(),
            lines: Mutex::default(),
        }))
    }

    /// Runs `f` with callbacks that make these calls, and returns the results of both.
    fn during<T>(&self, calls: Calls, f: impl FnOnce() -> T) -> (T, Found) {
        *self.calls.lock().unwrap() = calls;
        self.found.lock().unwrap().clear();
        let out = f();
        *self.calls.lock().unwrap() = Calls::None;
        (out, std::mem::take(&mut self.found.lock().unwrap()))
    }

    fn note(&self, function: &'static str, code: tarsiaStatus_t) {
        *self.found.lock().unwrap().entry(function).or_default().entry(code as i32).or_default() += 1;
    }

    /// Makes the calls.
    fn call(&self) {
        let calls = *self.calls.lock().unwrap();
        if calls == Calls::None || self.is_inside.swap(true, Ordering::SeqCst) {
            return;
        }
        let h = self.handle;
        let p: tarsiaPlan_t = std::ptr::without_provenance_mut(self.plan.load(Ordering::SeqCst));
        let one = 1.0_f64;
        let one: *const c_void = (&raw const one).cast();
        if calls != Calls::Destroy {
            let mut info = std::mem::MaybeUninit::<tarsiaPlanInfo_t>::zeroed();
            let (mut bytes, mut nnz) = (0_usize, 0_i64);
            // SAFETY: the size is set first; all answers are valid for a write; the arrays live as long as
            // the process.
            unsafe {
                info.as_mut_ptr().cast::<usize>().write(size_of::<tarsiaPlanInfo_t>());
                self.note("getInfo", plan::tarsiaPlan_getInfo(p, info.as_mut_ptr()));
                self.note("workspaceSize", plan::tarsiaPlan_workspaceSize(p, COLUMNS, &mut bytes));
                self.note("SpMV", spmv::tarsiaSpMV(h, p, one, self.x, one, self.y));
                self.note("SpMM", spmm::tarsiaSpMM(h, p, one, self.b, one, self.c));
                self.note("getDecisions", plan::tarsiaPlan_getDecisions(h, p, null_mut(), 0, &mut bytes));
                self.note("setDecisions", plan::tarsiaPlan_setDecisions(h, p, null_mut(), 0));
                self.note("updateValues", plan::tarsiaPlan_updateValues(h, p, self.values));
                self.note("symbolic", spgemm::tarsiaSpGEMM_symbolic(h, p, &mut nnz));
            }
            self.note("setEffort", plan::tarsiaPlan_setEffort(p, arg(Effort::Quick)));
            self.note("prepare", plan::tarsiaPlan_prepare(h, p));
            self.note("analyze", plan::tarsiaPlan_analyze(h, p));
        }
        if calls == Calls::All {
            self.note("handle", handle::tarsiaDestroy(h));
        }
        if matches!(calls, Calls::All | Calls::Destroy) {
            self.note("destroy", plan::tarsiaPlan_destroy(p));
        }
        self.is_inside.store(false, Ordering::SeqCst);
    }

    /// Sets the session's allocator to this caller's functions.
    fn serve(&self) {
        let ctx = std::ptr::from_ref(self).cast_mut().cast();
        // SAFETY: the tests keep the caller until the handle and its plans are gone.
        check(unsafe { handle::tarsiaSetAllocator(self.handle, Some(allocate), Some(release), ctx) })
            .unwrap();
    }
}

unsafe extern "C-unwind" fn allocate(ctx: *mut c_void, bytes: usize, _: *mut c_void) -> *mut c_void {
    // SAFETY: ctx is the caller, which outlives all that is made with it.
    let caller = unsafe { &*ctx.cast_const().cast::<Caller>() };
    caller.call();
    let mut out = null_mut();
    // SAFETY: the answer is valid for a write.
    check(unsafe { memory::tarsiaMalloc(memory_of(caller.kind).raw(), &mut out, bytes) }).unwrap();
    out
}

unsafe extern "C-unwind" fn release(ctx: *mut c_void, pointer: *mut c_void, _: usize, _: *mut c_void) {
    // SAFETY: as above.
    let caller = unsafe { &*ctx.cast_const().cast::<Caller>() };
    caller.call();
    // SAFETY: it came from tarsiaMalloc in `allocate`.
    check(unsafe { memory::tarsiaFree(memory_of(caller.kind).raw(), pointer) }).unwrap();
}

unsafe extern "C-unwind" fn log(ctx: *mut c_void, _: tarsiaLogLevel_t, message: *const c_char) {
    // SAFETY: ctx is the caller, which outlives the logger; the message ends with 0.
    let (caller, text) = unsafe { (&*ctx.cast_const().cast::<Caller>(), CStr::from_ptr(message)) };
    if !caller.is_inside.load(Ordering::SeqCst) {
        caller.lines.lock().unwrap().push(text.to_str().unwrap().to_string());
    }
    caller.call();
}

fn set_logger(caller: &Caller, on: bool) {
    let logger: handle::tarsiaLogFn_t = if on { Some(log) } else { None };
    let ctx = std::ptr::from_ref(caller).cast_mut().cast();
    // SAFETY: the tests take the logger away before the caller goes.
    check(unsafe { handle::tarsiaSetLogger(caller.handle, logger, ctx) }).unwrap();
}

#[test]
fn an_allocator_that_calls_the_library_never_waits_for_itself() {
    alone::run(module_path!(), "allocators");
}

/// Every function that the allocator calls during a call that changes the plan returns INVALID_STATE. The
/// call itself succeeds, and products have the same bits.
#[test]
#[ignore = "the test above runs it, in a process of its own"]
fn allocators() {
    let called = Called::default();
    for kind in backends() {
        for (name, a) in &matrices() {
            let stored = Stored::new(kind, a);
            // A matrix without values cannot be updated.
            for product in PlannedProduct::all().into_iter().filter(|_| !a.values.is_empty()) {
                allocators_of(&format!("{kind:?} {name} {product:?}"), &stored, product, &called);
            }
        }
    }
    for call in ["analyze", "updateValues", "symbolic", "numeric", "destroy"] {
        // On a device, announced values are updated without an allocation, as the header's table says.
        let expected = call != "updateValues" || backends().contains(&BackendKind::Host);
        assert_eq!(called.borrow().contains(call), expected, "functions of the allocator called in {call}");
    }
}

/// Names of the steps in which a function of the allocator was called.
type Called = RefCell<BTreeSet<&'static str>>;

/// Step of the test: its name and its function.
type Step<'a> = (&'static str, &'a mut dyn FnMut() -> Result<()>);

fn allocators_of(what: &str, stored: &Stored, product: PlannedProduct, called: &Called) {
    let sparse = stored.sparse();
    let plain = Session::new(stored.kind).unwrap();
    // SWIFT's bits differ from run to run otherwise.
    plain.set_deterministic(true).unwrap();
    let Ok(other) = product.plan(&plain, &sparse) else { return };
    other.set_value_updates(true).unwrap();
    other.analyze(&plain).unwrap();
    let expected = product.bits(&other, &plain, stored);

    let session = Session::new(stored.kind).unwrap();
    session.set_deterministic(true).unwrap();
    let caller = Caller::new(&session, stored);
    caller.serve();
    let (plan, second) = (product.plan(&session, &sparse).unwrap(), product.plan(&session, &sparse).unwrap());
    plan.set_value_updates(true).unwrap();
    second.set_value_updates(true).unwrap();
    let refused_of = |plan: &Plan<'_>, calls: Calls, (call, step): Step<'_>| {
        caller.plan.store(plan.raw().addr(), Ordering::SeqCst);
        let (result, found) = caller.during(calls, step);
        result.unwrap_or_else(|error| panic!("{what}, {call}: {error}"));
        for (function, codes) in &found {
            assert!(codes.keys().eq([&STATE]), "{what}: {function} in {call}: {codes:?}");
            called.borrow_mut().insert(call);
        }
    };
    let refused = |plan: &Plan<'_>, step: Step<'_>| refused_of(plan, Calls::All, step);
    refused(&plan, ("analyze", &mut || plan.analyze(&session)));
    if let PlannedProduct::Spgemm(_) = product {
        refused(&plan, ("symbolic", &mut || plan.symbolic(&session).map(|_| ())));
    }
    let mut found = Vec::new();
    let mut numeric = || {
        found = product.bits(&plan, &session, stored);
        Ok(())
    };
    refused(&plan, ("numeric", &mut numeric));
    assert_eq!(found, expected, "{what}");
    // SAFETY: A's own values, which live as long as the plan.
    let update = || check(unsafe { plan::tarsiaPlan_updateValues(session.raw(), plan.raw(), caller.values) });
    refused(&plan, ("updateValues", &mut || update()));
    assert_eq!(product.bits(&plan, &session, stored), expected, "{what}");
    // This call has no handle, so that it may be destroyed in its midst.
    let destroy = |plan: &Plan<'_>| check(plan::tarsiaPlan_destroy(plan.raw()));
    refused_of(&second, Calls::Keeping, ("destroy", &mut || destroy(&second)));
    refused_of(&plan, Calls::Destroy, ("destroy", &mut || destroy(&plan)));
    assert_eq!(plan.workspace_size(1).unwrap_err().status, Status::InvalidValue, "{what}");
}

/// During the analysis of a plan, its allocator may use another plan.
#[test]
fn an_allocator_may_use_another_plan() {
    alone::run(module_path!(), "other_plan");
}

#[test]
#[ignore = "the test above runs it, in a process of its own"]
fn other_plan() {
    for kind in backends() {
        let stored = Stored::new(kind, &matrices()[0].1);
        let sparse = stored.sparse();
        let session = Session::new(kind).unwrap();
        let caller = Caller::new(&session, &stored);
        caller.serve();
        let [busy, free] =
            [(); 2].map(|()| PlannedProduct::Spmv(SpmvAlg::Default).plan(&session, &sparse).unwrap());
        free.analyze(&session).unwrap();
        caller.plan.store(free.raw().addr(), Ordering::SeqCst);
        let (result, found) = caller.during(Calls::Keeping, || busy.analyze(&session));
        result.unwrap();
        for function in ["getInfo", "workspaceSize", "SpMV", "getDecisions", "updateValues"] {
            assert!(found[function].keys().eq([&OK]), "{function}: {found:?}");
        }
        let (result, found) = caller.during(Calls::Destroy, || check(plan::tarsiaPlan_destroy(busy.raw())));
        result.unwrap();
        assert!(found.values().all(|codes| codes.contains_key(&OK)), "{found:?}");
        assert_eq!(free.workspace_size(1).unwrap_err().status, Status::InvalidValue);
    }
}

#[test]
fn a_logger_that_calls_the_library_never_waits_for_itself() {
    alone::run(module_path!(), "loggers");
}

/// At each of the plan cache's three warnings the logger calls every function, with success, since the plan
/// is ready and no lock is held.
#[test]
#[ignore = "the test above runs it, in a process of its own"]
fn loggers() {
    for kind in backends() {
        for calls in [Calls::Keeping, Calls::Destroy] {
            for line in ["is not used", "cannot be built", "does not keep"] {
                for product in
                    [PlannedProduct::Spmv(SpmvAlg::Default), PlannedProduct::Spmm(SpmmAlg::Default)]
                {
                    logger_of(kind, calls, line, product);
                }
            }
        }
    }
}

fn logger_of(kind: BackendKind, calls: Calls, line: &str, product: PlannedProduct) {
    let what = format!("{kind:?} {calls:?} {line} {product:?}");
    let stored = Stored::new(kind, &matrices()[0].1);
    let sparse = stored.sparse();
    let folder = tempfile::tempdir().unwrap();
    let below = folder.path().join("below");
    let path = CString::new(below.to_str().unwrap()).unwrap();
    let plain = Session::new(kind).unwrap();
    plain.set_plan_cache(Some(&path)).unwrap();
    product.plan(&plain, &sparse).unwrap().analyze(&plain).unwrap();
    // Number of the allocation that fails; the plan is built in spite of some of these failures.
    for failing in 1..40 {
        let (heap, session) = (Heap::new(kind), Session::new(kind).unwrap());
        session.set_plan_cache(Some(&path)).unwrap();
        match line {
            "is not used" => {
                for entry in fs::read_dir(&below).unwrap() {
                    fs::write(entry.unwrap().path(), b"damaged").unwrap();
                }
            }
            "cannot be built" => {
                heap.serve(session.raw());
                heap.fail(Fail::Once(failing));
            }
            _ => {
                let _ = fs::remove_dir_all(&below);
            }
        }
        let caller = Caller::new(&session, &stored);
        let plan = product.plan(&session, &sparse).unwrap();
        caller.plan.store(plan.raw().addr(), Ordering::SeqCst);
        set_logger(caller, true);
        let (result, found) = caller.during(calls, || plan.analyze(&session));
        set_logger(caller, false);
        let lines = std::mem::take(&mut *caller.lines.lock().unwrap());
        if !lines.iter().any(|text| text.contains(line)) {
            // Another allocation failed, so that the call did, or none did.
            assert!(line == "cannot be built" && failing < 39, "{what}: {lines:?}");
            drop((plan, session));
            continue;
        }
        result.unwrap_or_else(|error| panic!("{what}: {error}"));
        assert_eq!(lines.len(), 2, "{what}: a warning and what analysis chose: {lines:?}");
        assert!(lines[0].contains(line) && lines[1].contains(" analyzed in "), "{what}: {lines:?}");
        if calls == Calls::Destroy {
            assert_eq!(found["destroy"], BTreeMap::from([(OK, 1), (INVALID_VALUE, 1)]), "{what}");
            assert_eq!(plan.workspace_size(1).unwrap_err().status, Status::InvalidValue, "{what}");
        } else {
            let own = if matches!(product, PlannedProduct::Spmv(_)) { "SpMV" } else { "SpMM" };
            for function in ["getInfo", "workspaceSize", own, "getDecisions", "prepare"] {
                assert_eq!(found[function], BTreeMap::from([(OK, 2)]), "{what}: {function}: {found:?}");
            }
            for function in ["analyze", "setEffort", "setDecisions"] {
                assert_eq!(found[function], BTreeMap::from([(STATE, 2)]), "{what}: {function}: {found:?}");
            }
            let expected = product.plan(&plain, &sparse).unwrap();
            expected.analyze(&plain).unwrap();
            let expected = product.bits(&expected, &plain, &stored);
            assert_eq!(product.bits(&plan, &session, &stored), expected, "{what}");
        }
        drop((plan, session));
        return;
    }
}

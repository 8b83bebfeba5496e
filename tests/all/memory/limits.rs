//! Tests of tarsiaPlan_setMemoryLimit, and of the bytes that a plan reports.

use client::{Plan, Session};
use tarsia::facade::{
    BackendKind, ComputeType, DataType, Effort, Error, Operation, Order, Result, SpgemmAlg, SpmmAlg, SpmvAlg,
    Status,
};

use super::heap::Heap;
use super::scenarios::{numeric, LongCoo, Small, LONG};
use crate::common::backends;
use crate::common::staged::first_workspace;

const F64: DataType = DataType::R64F;
const N: Operation = Operation::NonTranspose;
const R64: ComputeType = ComputeType::R64F;

/// Checks that the error is `INSUFFICIENT_RESOURCES`, with the needed bytes, more than the limit, and the
/// limit in its text.
fn says_bytes(error: &Error, limit: usize) {
    assert_eq!(error.status, Status::InsufficientResources, "{error}");
    let numbers: Vec<usize> =
        error.message.split(|c: char| !c.is_ascii_digit()).filter_map(|word| word.parse().ok()).collect();
    assert!(numbers.contains(&limit), "{error}: the limit is {limit}");
    assert!(numbers.iter().any(|&bytes| bytes > limit), "{error}: no number of bytes that are needed");
}

/// Finds the minimum and maximum memory of a plan in a run without a limit. Then a limit of one byte less
/// must fail, and one of exactly as much must suffice.
fn limited(
    session: &Session,
    heap: &Heap,
    plan: &dyn Fn() -> Result<Plan<'static>>,
    run: &dyn Fn(&Plan) -> Result<()>,
    frugal: bool,
) {
    let free = plan().unwrap();
    run(&free).unwrap();
    let info = free.info().unwrap();
    let (peak, held) = (info.peakBytes, info.planBytes);
    assert!(held > 0 && peak >= held, "the plan holds {held} bytes, at most {peak}");
    drop(free);
    let before = heap.live();
    for limit in [1, 100, peak / 2, peak - 1] {
        let small = plan().unwrap();
        small.set_memory_limit(limit).unwrap();
        match run(&small) {
            Ok(()) => assert!(frugal && limit >= peak / 2, "{limit} bytes are enough, where {peak} are used"),
            Err(error) => says_bytes(&error, limit),
        }
        let info = small.info().unwrap();
        assert!(info.peakBytes <= limit, "{} bytes were held with a limit of {limit}", info.peakBytes);
        if info.analyzed == 0 {
            // The plan is unchanged, and the limit may be raised.
            assert_eq!(heap.live(), before, "the plan kept memory after a failed analysis");
            small.set_memory_limit(peak).unwrap();
            run(&small).unwrap();
            assert!(small.info().unwrap().peakBytes <= peak);
        }
        drop(small);
        assert_eq!(heap.live(), before, "memory was lost");
    }
    for limit in [peak, peak + 1, 0] {
        let enough = plan().unwrap();
        enough.set_memory_limit(limit).unwrap();
        run(&enough).unwrap();
        let info = enough.info().unwrap();
        assert!(limit == 0 || info.peakBytes <= limit);
        // Optional data that only make products faster may not fit under a limit.
        let fits = info.planBytes == held || (frugal && limit != 0 && info.planBytes < held);
        assert!(fits, "the plan holds {} bytes, {held} without a limit", info.planBytes);
    }
    let _ = session;
}

/// Leaks a value, so that plans need no lifetime (a few kilobytes per test run).
fn forever<T>(value: T) -> &'static T {
    Box::leak(Box::new(value))
}

#[test]
fn limits_of_spmv_and_spmm() {
    let coo = LongCoo::new(LONG);
    for kind in backends() {
        let coo = forever(coo.store(kind));
        for (updates, effort) in [(false, Effort::Default), (true, Effort::Default), (false, Effort::Quick)] {
            let (heap, session) = (Heap::new(kind), Session::new(kind).unwrap());
            heap.serve(session.raw());
            let set = |plan: Plan<'static>| {
                plan.set_value_updates(updates)?;
                plan.set_effort(effort)?;
                Ok(plan)
            };
            let spmv =
                || Plan::spmv(&session, N, &coo.describe(), (F64, F64), R64, SpmvAlg::Default).and_then(set);
            let spmm = || {
                let orders = (Order::Row, Order::Row);
                Plan::spmm(&session, (N, N), &coo.describe(), orders, 2, (F64, F64), R64, SpmmAlg::Default)
                    .and_then(set)
            };
            // The handle's workspace is not the plan's memory.
            spmv().unwrap().analyze(&session).unwrap();
            spmm().unwrap().analyze(&session).unwrap();
            // The host rounds large arrays up to whole huge pages where there is memory for that.
            let rounds = kind == BackendKind::Host;
            limited(&session, &heap, &spmv, &|plan| plan.analyze(&session), rounds);
            limited(&session, &heap, &spmm, &|plan| plan.analyze(&session), false);
            heap.check_empty_after(session);
        }
    }
}

/// The host copies columns for SpMM on rows in place if the limit allows it, and reads the user's if it does not.
#[test]
fn limits_of_spmm_in_place() {
    let kind = BackendKind::Host;
    let stored = Small::random(60, 50, 3).store(kind);
    let (heap, session) = (Heap::new(kind), Session::new(kind).unwrap());
    heap.serve(session.raw());
    let analyzed = |effort: Effort, limit: usize| {
        let (a, orders) = (stored.describe(false, false), (Order::Row, Order::Row));
        let plan = Plan::spmm(&session, (N, N), &a, orders, 2, (F64, F64), R64, SpmmAlg::Default).unwrap();
        plan.set_effort(effort).unwrap();
        plan.set_memory_limit(limit).unwrap();
        plan.analyze(&session)?;
        let info = plan.info().unwrap();
        assert!(info.inPlace == 1 && (limit == 0 || info.peakBytes <= limit), "{} bytes", info.peakBytes);
        Ok((info.peakBytes, info.planBytes))
    };
    let (without, least) = analyzed(Effort::Quick, 0).unwrap();
    let (most, held) = analyzed(Effort::Default, 0).unwrap();
    assert!(held > least, "the plan has no columns: {held} and {least} bytes");
    for effort in [Effort::Quick, Effort::Default] {
        let refused: Result<(usize, usize)> = analyzed(effort, without - 1);
        says_bytes(&refused.unwrap_err(), without - 1);
    }
    for limit in [without, without + 1, most - 1] {
        assert_eq!(analyzed(Effort::Default, limit).unwrap().1, least, "a limit of {limit} bytes");
    }
    assert_eq!(analyzed(Effort::Default, most).unwrap().1, held);
    heap.check_empty_after(session);
}

#[test]
fn limits_of_spgemm() {
    let (a, b) = (Small::random(60, 50, 3), Small::random(50, 40, 4));
    let product = a.times(&b);
    for kind in backends() {
        let (a, b) = (forever(a.store(kind)), forever(b.store(kind)));
        for (updates, by_columns) in [(false, false), (true, false), (false, true), (true, true)] {
            let (heap, session) = (Heap::new(kind), Session::new(kind).unwrap());
            heap.serve(session.raw());
            let plan = || {
                // A is read in place, B is converted.
                let (a, b) = (a.describe(false, false), b.describe(true, false));
                let plan = Plan::spgemm(&session, (N, N), &a, &b, R64, SpgemmAlg::Default)?;
                plan.set_value_updates(updates)?;
                Ok(plan)
            };
            let run = |plan: &Plan| {
                if plan.info()?.analyzed == 0 {
                    plan.analyze(&session)?;
                }
                let nnz = plan.symbolic(&session)?;
                let c = numeric(&session, plan, (product.rows, product.cols), nnz, by_columns)?;
                assert_eq!(&c, if by_columns { &product.csc } else { &product.csr });
                Ok(())
            };
            // Both backends have ways that need less memory; the reference has none.
            limited(&session, &heap, &plan, &run, kind != BackendKind::Reference);
            heap.check_empty_after(session);
        }
    }
}

/// The bytes that a plan reports are those that it has allocated.
#[test]
fn plan_bytes_are_the_allocators() {
    let coo = LongCoo::new(LONG);
    for kind in backends() {
        let stored = coo.store(kind);
        let (heap, session) = (Heap::new(kind), Session::new(kind).unwrap());
        heap.serve(session.raw());
        let a = stored.describe();
        let plan = || Plan::spmv(&session, N, &a, (F64, F64), R64, SpmvAlg::Default).unwrap();
        // The first analysis also allocates the handle's workspace.
        plan().analyze(&session).unwrap();
        let workspace = heap.live().1;
        let plan = plan();
        plan.analyze(&session).unwrap();
        let info = plan.info().unwrap();
        assert_eq!(info.planBytes, heap.live().1 - workspace);
        // Every handle has a small workspace from the start.
        if info.workspaceBytes > first_workspace(kind) {
            assert_eq!(info.workspaceBytes, workspace);
        }
        drop(plan);
        heap.check_empty_after(session);
    }
}

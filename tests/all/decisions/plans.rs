//! Plans as bytes, which other plans of the same problem become in place of analysis: the same bits, the
//! same words; and whatever else the bytes may be, an error that changes nothing. Random problems of all
//! types, formats and settings are in `properties`.

use tarsia::capi::client::{Plan, Session};
use tarsia::error::Status;
use tarsia::matrix::gallery;
use tarsia::plan::serial::seal;
use tarsia::types::{BackendKind, Effort, Reorder, SpgemmAlg, SpmmAlg, SpmvAlg};

use super::{matrices, reason, Product, Stored, N, R64};
use crate::common::backends;
use crate::properties::cases::said;

/// Settings of a plan.
#[derive(Clone, Copy, Debug)]
struct Set {
    value_updates: bool,
    reorder: Reorder,
    effort: Effort,
}

impl Set {
    fn on(self, plan: &Plan<'_>) {
        plan.set_value_updates(self.value_updates).unwrap();
        plan.set_reorder(self.reorder).unwrap();
        plan.set_effort(self.effort).unwrap();
    }
}

const PLAIN: Set = Set { value_updates: false, reorder: Reorder::Auto, effort: Effort::Default };

#[track_caller]
fn refused(plan: &Plan<'_>, session: &Session, bytes: &[u8], status: Status, text: &str) {
    let error = plan.deserialize(session, bytes).unwrap_err();
    assert_eq!(error.status, status, "{error}");
    assert!(error.message.contains(text), "{error}, expected {text:?}");
    let info = plan.info().unwrap();
    assert_eq!((info.analyzed, reason(plan)), (0, "not analyzed".to_string()));
}

/// New values, of full mantissas.
fn renewed(count: usize) -> Vec<f64> {
    (0..count).map(|at| 1.0 / (at as f64 - 7.5)).collect()
}

fn round_trip(kind: BackendKind, name: &str, product: Product, set: Set, deterministic: bool) {
    let a = &matrices().into_iter().find(|(other, _)| *other == name).unwrap().1;
    let what = format!("{kind:?} {name} {product:?} {set:?} deterministic {deterministic}");
    let session_of = || {
        let session = Session::new(kind).unwrap();
        session.set_deterministic(deterministic).unwrap();
        session
    };
    // Atomics on C may add in another order the next time.
    let same_bits = deterministic || product != Product::Spmm(SpmmAlg::Swift) || kind != BackendKind::Cuda;
    let (session, stored) = (session_of(), Stored::new(kind, a));
    let sparse = stored.sparse();
    let Ok(first) = product.plan(&session, &sparse) else { return };
    set.on(&first);
    if first.analyze(&session).is_err() {
        return;
    }
    let analyzed = said(&first).unwrap();
    let bytes = first.serialize(&session).unwrap_or_else(|error| panic!("{what}: {error}"));
    assert_eq!(said(&first).unwrap(), analyzed, "{what}: serializing changes nothing");
    let expected = product.bits(&first, &session, &stored);
    let check = |found: Vec<u64>, expected: &[u64], after: &str| {
        assert_eq!(found.len(), expected.len(), "{what} {after}");
        assert!(!same_bits || found == expected, "{what} {after}");
    };

    // Arrays elsewhere, and another handle.
    let (other, elsewhere) = (session_of(), Stored::new(kind, a));
    let sparse = elsewhere.sparse();
    let second = product.plan(&other, &sparse).unwrap();
    set.on(&second);
    second.deserialize(&other, &bytes).unwrap_or_else(|error| panic!("{what}: {error}"));
    assert_eq!(said(&second).unwrap(), analyzed, "{what}");
    let late = second.deserialize(&other, &bytes).unwrap_err();
    assert_eq!(late.status, Status::InvalidState, "{what}: {late}");
    // SpGEMM's has no more of C than the other one had.
    check(product.bits(&second, &other, &elsewhere), &expected, "restored");
    // Its own bytes are another's, too, which nobody has timed again.
    if set.effort != Effort::Tuned {
        let third = product.plan(&other, &sparse).unwrap();
        set.on(&third);
        third.deserialize(&other, &second.serialize(&other).unwrap()).unwrap();
        check(product.bits(&third, &other, &elsewhere), &expected, "restored twice");
    }

    // New values in both.
    let mut values = Stored::new(kind, a);
    values.values.write(0, &renewed(a.nnz())).unwrap();
    if a.nnz() > 0 {
        first.update_values(&session, &values.values).unwrap();
        second.update_values(&other, &values.values).unwrap();
        let expected = product.bits(&first, &session, &stored);
        check(product.bits(&second, &other, &elsewhere), &expected, "updated");
        // Values that were others when the plan was serialized.
        let sparse = values.sparse();
        let late = product.plan(&other, &sparse).unwrap();
        set.on(&late);
        late.deserialize(&other, &bytes).unwrap_or_else(|error| panic!("{what}: {error}"));
        if !matches!(product, Product::Spgemm(_)) {
            check(product.bits(&late, &other, &values), &expected, "with other values");
        } else {
            let same = product.plan(&other, &sparse).unwrap();
            set.on(&same);
            same.analyze(&other).unwrap();
            let expected = product.bits(&same, &other, &values);
            check(product.bits(&late, &other, &values), &expected, "with other values");
        }
    }
}

#[test]
fn the_same_bits_by_every_algorithm() {
    for kind in backends() {
        for (name, _) in &matrices() {
            for product in Product::all() {
                for value_updates in [false, true] {
                    round_trip(kind, name, product, Set { value_updates, ..PLAIN }, false);
                }
            }
        }
        round_trip(kind, "uniform", Product::Spmm(SpmmAlg::Swift), PLAIN, true);
    }
}

#[test]
fn the_same_bits_in_every_order() {
    for kind in backends() {
        for &reorder in Reorder::ALL {
            for product in [
                Product::Spmv(SpmvAlg::Csr),
                Product::Spmm(SpmmAlg::Row),
                Product::Spmm(SpmmAlg::Csr),
                Product::Spmm(SpmmAlg::Smat),
            ] {
                round_trip(kind, "combed", product, Set { reorder, ..PLAIN }, false);
            }
        }
    }
}

#[test]
fn what_was_measured() {
    for kind in backends() {
        for product in
            [Product::Spmv(SpmvAlg::Default), Product::Spmm(SpmmAlg::Default), Product::Spmm(SpmmAlg::Window)]
        {
            round_trip(kind, "uniform", product, Set { effort: Effort::Tuned, ..PLAIN }, false);
        }
    }
}

/// A plan's bytes, and one that takes them, for an algorithm of each operation that converts.
fn with_plans(check: impl Fn(&Session, &Plan<'_>, &[u8])) {
    for kind in backends() {
        let session = Session::new(kind).unwrap();
        let stored = Stored::new(kind, &gallery::banded(40, 3, 7).unwrap());
        let sparse = stored.sparse();
        for product in [
            Product::Spmv(SpmvAlg::Default),
            Product::Spmm(SpmmAlg::Window),
            Product::Spgemm(SpgemmAlg::Default),
        ] {
            let Ok(first) = product.plan(&session, &sparse) else { continue };
            first.analyze(&session).unwrap();
            let bytes = first.serialize(&session).unwrap();
            let second = product.plan(&session, &sparse).unwrap();
            check(&session, &second, &bytes);
            // Whatever was refused, the plan takes what is right, or is analyzed.
            let third = product.plan(&session, &sparse).unwrap();
            assert!(third.deserialize(&session, &bytes[1..]).is_err());
            third.analyze(&session).unwrap();
            second.deserialize(&session, &bytes).unwrap();
            let expected = product.bits(&first, &session, &stored);
            assert_eq!(product.bits(&second, &session, &stored), expected);
            assert_eq!(product.bits(&third, &session, &stored), expected);
        }
    }
}

#[test]
fn damaged_bytes_and_missing_ones() {
    with_plans(|session, plan, bytes| {
        // All of the head, and every some of the arrays.
        let places = || (0..bytes.len()).filter(|at| *at < 64 || at % 23 == 0 || *at > bytes.len() - 20);
        for at in places() {
            for change in [1, 0x80] {
                let mut damaged = bytes.to_vec();
                damaged[at] ^= change;
                let error = plan.deserialize(session, &damaged).unwrap_err();
                let expected = [Status::InvalidValue, Status::NotSupported];
                assert!(expected.contains(&error.status), "byte {at}: {error}");
            }
            if at > 0 {
                refused(plan, session, &bytes[..at], Status::InvalidValue, "");
            }
        }
        let longer = [bytes, &[0; 8]].concat();
        refused(plan, session, &longer, Status::InvalidValue, "buffer says that it has");
        // Swapped words have the same sum but not the same places.
        let mut swapped = bytes.to_vec();
        let (one, other) = (bytes.len() / 16 * 8, bytes.len() / 16 * 8 + 8);
        let words = |at: usize| bytes[at..at + 8].to_vec();
        swapped[one..one + 8].copy_from_slice(&words(other));
        swapped[other..other + 8].copy_from_slice(&words(one));
        if swapped != bytes {
            refused(plan, session, &swapped, Status::InvalidValue, "damaged");
        }
    });
}

#[test]
fn steps_that_are_not_the_plans() {
    // Behind a right checksum: parts that are missing, left over, or of another kind.
    with_plans(|session, plan, bytes| {
        for cut in [8, 16, 24, 64] {
            let mut short = bytes[..bytes.len() - 16 - cut].to_vec();
            short.extend([0; 16]);
            seal(&mut short);
            let _ = plan.info().unwrap();
            // The reference has no steps: what is cut is the text.
            let error = plan.deserialize(session, &short).unwrap_err();
            assert_eq!(error.status, Status::InvalidValue, "{error}");
        }
        let mut long = bytes[..bytes.len() - 16].to_vec();
        long.extend([0; 24]);
        seal(&mut long);
        refused(plan, session, &long, Status::InvalidValue, "left over");
    });
}

fn patched(bytes: &[u8], at: usize, with: &[u8]) -> Vec<u8> {
    let mut out = bytes.to_vec();
    out[at..at + with.len()].copy_from_slice(with);
    // The decisions begin at 24 and have a checksum of their own.
    let length = u32::from_le_bytes(bytes[12..16].try_into().unwrap()) as usize;
    tarsia::plan::decisions::bytes::seal(&mut out[24..24 + length]);
    seal(&mut out);
    out
}

#[test]
fn another_version_backend_and_device_are_named() {
    let not = Status::NotSupported;
    with_plans(|session, plan, bytes| {
        refused(plan, session, &patched(bytes, 8, &[9]), not, "its format has version 9");
        refused(plan, session, &patched(bytes, 24 + 16, &[99]), not, "library version 99.");
        let mine = i32::from_le_bytes(bytes[24 + 28..24 + 32].try_into().unwrap());
        let other = if mine == 1 { BackendKind::Cuda } else { BackendKind::Host };
        refused(plan, session, &patched(bytes, 24 + 28, &[other.code() as u8]), not, other.c_name());
        refused(plan, session, &patched(bytes, 24 + 36, b"X"), not, "device X");
        let text = b"something else that is long enough to be a plan's bytes";
        refused(plan, session, text, Status::InvalidValue, "does not begin");
        let decisions = &bytes[24..bytes.len()];
        refused(plan, session, decisions, Status::InvalidValue, "does not begin");
    });
}

#[test]
fn another_problem_is_named() {
    let invalid = Status::InvalidValue;
    for kind in backends() {
        let session = Session::new(kind).unwrap();
        let stored = Stored::new(kind, &gallery::banded(60, 3, 7).unwrap());
        let sparse = stored.sparse();
        let product = Product::Spmv(SpmvAlg::Default);
        let first = product.plan(&session, &sparse).unwrap();
        let early = first.serialize(&session).unwrap_err();
        assert_eq!(early.status, Status::InvalidState, "{early}");
        first.analyze(&session).unwrap();
        let bytes = first.serialize(&session).unwrap();
        let spmm = Product::Spmm(SpmmAlg::Default).plan(&session, &sparse).unwrap();
        refused(&spmm, &session, &bytes, invalid, "the operation is SpMV there and SpMM in the plan");
        let updated = product.plan(&session, &sparse).unwrap();
        updated.set_value_updates(true).unwrap();
        refused(&updated, &session, &bytes, invalid, "valueUpdates is 0 there and 1 in the plan");
        let other = Stored::new(kind, &gallery::banded(60, 2, 7).unwrap());
        let other_sparse = other.sparse();
        let plan = product.plan(&session, &other_sparse).unwrap();
        refused(&plan, &session, &bytes, invalid, "A's stored entries is");
    }
}

#[test]
fn the_factors_of_spgemm_are_one_matrix_or_two() {
    for kind in backends() {
        let session = Session::new(kind).unwrap();
        let a = gallery::banded(60, 3, 7).unwrap();
        let (one, two) = (Stored::new(kind, &a), Stored::new(kind, &a));
        let (one, two) = (one.sparse(), two.sparse());
        let plan = |b| Plan::spgemm(&session, (N, N), &one, b, R64, SpgemmAlg::Default).unwrap();
        let first = plan(&one);
        first.analyze(&session).unwrap();
        let bytes = first.serialize(&session).unwrap();
        refused(&plan(&two), &session, &bytes, Status::InvalidValue, "A and B are the same arrays");
        plan(&one).deserialize(&session, &bytes).unwrap();
    }
}

#[test]
fn deterministic_mode_takes_no_plan_that_is_not() {
    let kind = crate::common::backend();
    let session = Session::new(kind).unwrap();
    let stored = Stored::new(kind, &gallery::uniform(300, 300, 9, 3).unwrap());
    let sparse = stored.sparse();
    let product = Product::Spmm(SpmmAlg::Swift);
    let first = product.plan(&session, &sparse).unwrap();
    first.analyze(&session).unwrap();
    let bytes = first.serialize(&session).unwrap();
    session.set_deterministic(true).unwrap();
    let second = product.plan(&session, &sparse).unwrap();
    // The host's is deterministic as it is.
    match kind {
        BackendKind::Cuda => refused(&second, &session, &bytes, Status::NotSupported, "deterministic"),
        _ => second.deserialize(&session, &bytes).unwrap(),
    }
    // One that is serves outside the mode, too.
    let third = product.plan(&session, &sparse).unwrap();
    third.analyze(&session).unwrap();
    let bytes = third.serialize(&session).unwrap();
    session.set_deterministic(false).unwrap();
    let fourth = product.plan(&session, &sparse).unwrap();
    fourth.deserialize(&session, &bytes).unwrap();
    assert_eq!(product.bits(&fourth, &session, &stored), product.bits(&third, &session, &stored));
}

#[test]
fn sizes_of_the_buffer_and_the_memory_limit() {
    use tarsia::capi::client::check;
    use tarsia::capi::plan::{tarsiaPlan_deserialize, tarsiaPlan_serialize};
    let session = Session::new(crate::common::backend()).unwrap();
    let stored = Stored::new(session.kind(), &gallery::banded(60, 3, 7).unwrap());
    let sparse = stored.sparse();
    let product = Product::Spmv(SpmvAlg::Dasp);
    let plan = product.plan(&session, &sparse).unwrap();
    plan.analyze(&session).unwrap();
    let (mut buffer, mut bytes) = (vec![0xaa_u8; 1 << 20], 0);
    let get = |buffer: *mut u8, room: usize, bytes: &mut usize| {
        // SAFETY: NULL or an array of at least `room` bytes.
        check(unsafe { tarsiaPlan_serialize(session.raw(), plan.raw(), buffer.cast(), room, bytes) })
    };
    get(std::ptr::null_mut(), 0, &mut bytes).unwrap();
    let needed = std::mem::take(&mut bytes);
    let error = get(buffer.as_mut_ptr(), needed - 1, &mut bytes).unwrap_err();
    assert_eq!((error.status, bytes), (Status::InsufficientResources, 0), "{error}");
    assert!(error.message.contains(&needed.to_string()), "{error}");
    assert!(buffer.iter().all(|&byte| byte == 0xaa), "nothing was written");
    get(buffer.as_mut_ptr(), buffer.len(), &mut bytes).unwrap();
    assert_eq!(bytes, needed);
    assert!(buffer[needed..].iter().all(|&byte| byte == 0xaa));
    let other = product.plan(&session, &sparse).unwrap();
    for (pointer, size, text) in [
        (std::ptr::null(), 5, "buffer: the pointer is NULL"),
        (std::ptr::null(), 0, "buffer: the pointer is NULL"),
        (buffer.as_ptr(), 0, "bytes: it is 0"),
    ] {
        // SAFETY: NULL, or an array of more bytes.
        let code = unsafe { tarsiaPlan_deserialize(session.raw(), other.raw(), pointer.cast(), size) };
        let error = check(code).unwrap_err();
        assert!(error.status == Status::InvalidValue && error.message.starts_with(text), "{error}");
    }
    // Less memory than the arrays take, in both directions.
    let held = plan.info().unwrap().planBytes;
    other.set_memory_limit(held - 1).unwrap();
    let lacking = other.deserialize(&session, &buffer[..needed]).unwrap_err();
    assert_eq!(lacking.status, Status::InsufficientResources, "{lacking}");
    assert_eq!(other.info().unwrap().analyzed, 0);
    other.set_memory_limit(0).unwrap();
    other.deserialize(&session, &buffer[..needed]).unwrap();
    assert_eq!(product.bits(&other, &session, &stored), product.bits(&plan, &session, &stored));
}

/// What a later process saves: prints times, for people. On the device with
/// `--ignored --nocapture plans_take`.
#[test]
#[ignore = "prints times"]
fn plans_take_less_time_than_analysis() {
    use std::time::Instant;
    let kind = crate::common::backend();
    let session = Session::new(kind).unwrap();
    let a = gallery::uniform(1 << 18, 1 << 18, 16, 5).unwrap();
    let stored = Stored::new(kind, &a);
    let sparse = stored.sparse();
    let set = |reorder| Set { reorder, ..PLAIN };
    for (product, set) in [
        (Product::Spmv(SpmvAlg::Default), PLAIN),
        (Product::Spmv(SpmvAlg::Dasp), PLAIN),
        (Product::Spmv(SpmvAlg::MaskBlock), PLAIN),
        (Product::Spmv(SpmvAlg::Csr), set(Reorder::Rcm)),
        (Product::Spmm(SpmmAlg::Default), PLAIN),
        (Product::Spmm(SpmmAlg::Window), PLAIN),
        (Product::Spmm(SpmmAlg::Smat), PLAIN),
        (Product::Spmm(SpmmAlg::Csr), set(Reorder::Hybrid23)),
        (Product::Spgemm(SpgemmAlg::Tile), PLAIN),
    ] {
        let mut times = [Vec::new(), Vec::new(), Vec::new(), Vec::new()];
        let mut size = 0;
        for _ in 0..5 {
            let plan = || {
                let plan = product.plan(&session, &sparse).unwrap();
                set.on(&plan);
                plan
            };
            let mut timed = |which: usize, run: &mut dyn FnMut()| {
                let start = Instant::now();
                run();
                times[which].push(start.elapsed().as_secs_f64() * 1e3);
            };
            let (first, decided, second) = (plan(), plan(), plan());
            let mut bytes = Vec::new();
            timed(0, &mut || first.analyze(&session).unwrap());
            timed(1, &mut || bytes = first.serialize(&session).unwrap());
            decided.set_decisions(&session, &first.decisions(&session).unwrap()).unwrap();
            timed(2, &mut || decided.analyze(&session).unwrap());
            timed(3, &mut || second.deserialize(&session, &bytes).unwrap());
            size = bytes.len();
        }
        let [analyze, serialize, decided, restore] = times.map(|mut times| {
            times.sort_by(f64::total_cmp);
            times[times.len() / 2]
        });
        println!(
            "{product:?} {:?}: {size} bytes; analyze {analyze:.3} ms, with decisions {decided:.3}, serialize \
             {serialize:.3}, deserialize {restore:.3}",
            set.reorder
        );
    }
}

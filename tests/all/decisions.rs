//! Tests of decisions of a plan that are passed to another plan of the same problem, which then has the same
//! bits. Any other bytes are an error that changes nothing.

mod cache;
mod orders;

use client::{Array, DenseLayout, Plan, Session, Sparse};
use matrices::gallery;
use matrices::owned::OwnedCsr;
use proptest::prelude::*;
use tarsia::facade::{
    seal_decisions, BackendKind, ComputeType, DataType, Effort, IndexBase, Operation, Order, Result,
    SpgemmAlg, SpmmAlg, SpmvAlg, Status,
};

use crate::common::backends;
use crate::common::staged::upload;

const F64: DataType = DataType::R64F;
const R64: ComputeType = ComputeType::R64F;
const N: Operation = Operation::NonTranspose;
/// Columns of B and C in SpMM.
const COLUMNS: usize = 5;

/// Matrix in a backend's memory.
pub(crate) struct Stored {
    pub(crate) kind: BackendKind,
    pub(crate) shape: (usize, usize),
    offsets: Array<'static, i32>,
    indices: Array<'static, i32>,
    pub(crate) values: Array<'static, f64>,
}

impl Stored {
    pub(crate) fn new(kind: BackendKind, a: &OwnedCsr<f64>) -> Self {
        let offsets: Vec<i32> = a.offsets.iter().map(|&offset| offset as i32).collect();
        Stored {
            kind,
            shape: (a.rows, a.cols),
            offsets: upload(kind, &offsets),
            indices: upload(kind, &a.indices),
            values: upload(kind, &a.values),
        }
    }

    pub(crate) fn sparse(&self) -> Sparse<'_> {
        let shape = (self.shape.0 as i64, self.shape.1 as i64);
        Sparse::csr(shape, &self.offsets, &self.indices, &self.values, IndexBase::Zero).unwrap()
    }
}

/// Product with a square matrix.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum PlannedProduct {
    Spmv(SpmvAlg),
    Spmm(SpmmAlg),
    Spgemm(SpgemmAlg),
}

impl PlannedProduct {
    pub(crate) fn all() -> Vec<PlannedProduct> {
        let mut out: Vec<_> = SpmvAlg::ALL.iter().map(|&alg| PlannedProduct::Spmv(alg)).collect();
        out.extend(SpmmAlg::ALL.iter().map(|&alg| PlannedProduct::Spmm(alg)));
        out.extend(SpgemmAlg::ALL.iter().map(|&alg| PlannedProduct::Spgemm(alg)));
        out
    }

    pub(crate) fn plan<'a>(self, session: &Session, a: &Sparse<'a>) -> Result<Plan<'a>> {
        match self {
            PlannedProduct::Spmv(alg) => Plan::spmv(session, N, a, (F64, F64), R64, alg),
            PlannedProduct::Spmm(alg) => {
                let orders = (Order::Row, Order::Row);
                Plan::spmm(session, (N, N), a, orders, COLUMNS as i64, (F64, F64), R64, alg)
            }
            PlannedProduct::Spgemm(alg) => Plan::spgemm(session, (N, N), a, a, R64, alg),
        }
    }

    /// Returns the bits of the product, with the same operands every time.
    pub(crate) fn bits(self, plan: &Plan<'_>, session: &Session, a: &Stored) -> Vec<u64> {
        let (kind, (rows, cols)) = (a.kind, a.shape);
        let dense = |count: usize| -> Vec<f64> { (0..count).map(|at| 1.0 / (at + 3) as f64).collect() };
        let bits = |values: Vec<f64>| values.into_iter().map(f64::to_bits).collect::<Vec<_>>();
        let nans = |count: usize| vec![f64::NAN; count];
        match self {
            PlannedProduct::Spmv(_) => {
                let (x, mut y) = (upload(kind, &dense(cols)), upload(kind, &nans(rows)));
                plan.run_spmv(session, 1.5, &x, 0.0, &mut y).unwrap();
                session.synchronize().unwrap();
                bits(y.download().unwrap())
            }
            PlannedProduct::Spmm(_) => {
                let (b, mut c) = (upload(kind, &dense(cols * COLUMNS)), upload(kind, &nans(rows * COLUMNS)));
                let shape = |rows: usize| DenseLayout {
                    rows: rows as i64,
                    cols: COLUMNS as i64,
                    ld: COLUMNS as i64,
                    order: Order::Row,
                };
                plan.run_spmm(session, 1.5, (&b, shape(cols)), 0.0, (&mut c, shape(rows))).unwrap();
                session.synchronize().unwrap();
                bits(c.download().unwrap())
            }
            PlannedProduct::Spgemm(_) => {
                let nnz = plan.symbolic(session).unwrap() as usize;
                let mut offsets = upload(kind, &vec![0_i32; rows + 1]);
                let mut indices = upload(kind, &vec![0_i32; nnz]);
                let mut values = upload(kind, &nans(nnz));
                let shape = (rows as i64, cols as i64);
                let (o, i, v) = (&mut offsets, &mut indices, &mut values);
                plan.numeric_csr(session, 1.5, shape, o, i, v, IndexBase::Zero).unwrap();
                session.synchronize().unwrap();
                let mut out = bits(values.download().unwrap());
                out.extend(offsets.download().unwrap().iter().map(|&offset| offset as u64));
                out.extend(indices.download().unwrap().iter().map(|&index| index as u64));
                out
            }
        }
    }
}

fn reason(plan: &Plan<'_>) -> String {
    let info = plan.info().unwrap();
    info.reason.iter().take_while(|&&byte| byte != 0).map(|&byte| byte as u8 as char).collect()
}

/// Returns a description of the plan's layout.
fn made(plan: &Plan<'_>) -> String {
    let info = plan.info().unwrap();
    // The reference has only one layout.
    format!(
        "algorithm {} layout {:?} reorder {:?} in place {} fill {} bytes {} workspace {}",
        info.algorithm,
        info.layout as i32,
        info.reorder as i32,
        info.inPlace,
        info.fill,
        info.planBytes,
        info.workspaceBytes
    )
}

#[track_caller]
fn refused(plan: &Plan<'_>, session: &Session, bytes: &[u8], status: Status, text: &str) {
    let error = plan.set_decisions(session, bytes).unwrap_err();
    assert_eq!(error.status, status, "{error}");
    assert!(error.message.contains(text), "{error}, expected {text:?}");
    let info = plan.info().unwrap();
    assert_eq!((info.analyzed, reason(plan)), (0, "not analyzed".to_string()));
}

pub(crate) fn matrices() -> Vec<(&'static str, OwnedCsr<f64>)> {
    let mut out = vec![
        ("banded", gallery::banded(200, 4, 7).unwrap()),
        ("uniform", gallery::uniform(300, 300, 9, 3).unwrap()),
        ("empty", gallery::empty(7, 7).unwrap()),
    ];
    // Rows of one kind are far apart, so that clustering moves them together.
    let entries = (0..256_i32)
        .flat_map(|row| (0..12).map(move |k| (row, (row % 16) * 16 + k, 0.5 + f64::from(row * k))));
    out.push(("combed", OwnedCsr::from_triplets(256, 256, entries.collect()).unwrap()));
    out
}

fn round_trip(kind: BackendKind, name: &str, a: &OwnedCsr<f64>, product: PlannedProduct, effort: Effort) {
    let swift = product == PlannedProduct::Spmm(SpmmAlg::Swift);
    for deterministic in [false, true] {
        // Atomic additions to C may have another order the next time.
        let same_bits = deterministic || !swift || kind == BackendKind::Host;
        if !deterministic || swift {
            round_trip_of(kind, name, a, product, effort, (deterministic, same_bits));
        }
    }
}

fn round_trip_of(
    kind: BackendKind,
    name: &str,
    a: &OwnedCsr<f64>,
    product: PlannedProduct,
    effort: Effort,
    (deterministic, same_bits): (bool, bool),
) {
    let session_of = || {
        let session = Session::new(kind).unwrap();
        session.set_deterministic(deterministic).unwrap();
        session
    };
    let session = session_of();
    let stored = Stored::new(kind, a);
    let sparse = stored.sparse();
    let what = format!("{kind:?} {name} {product:?} {effort:?} deterministic {deterministic}");
    let Ok(first) = product.plan(&session, &sparse) else { return };
    first.set_effort(effort).unwrap();
    first.analyze(&session).unwrap();
    let bytes = first.decisions(&session).unwrap();
    let expected = product.bits(&first, &session, &stored);

    // Other arrays, another handle, another effort.
    let (other, elsewhere) = (session_of(), Stored::new(kind, a));
    let sparse = elsewhere.sparse();
    let second = product.plan(&other, &sparse).unwrap();
    second.set_decisions(&other, &bytes).unwrap_or_else(|error| panic!("{what}: {error}"));
    second.analyze(&other).unwrap_or_else(|error| panic!("{what}: {error}"));
    assert!(reason(&second).starts_with("by decisions that were given: "), "{what}: {}", reason(&second));
    // Compared before numeric phases, which may keep more memory.
    if !matches!(product, PlannedProduct::Spgemm(_)) {
        assert_eq!(made(&second), made(&first), "{what}");
    }
    let found = product.bits(&second, &other, &elsewhere);
    assert!(!same_bits || found == expected, "{what}");
    assert_eq!(found.len(), expected.len(), "{what}");
    // The second plan's decisions are the same except for the effort.
    if effort == Effort::Default {
        assert_eq!(second.decisions(&other).unwrap(), bytes, "{what}");
    }
}

#[test]
fn the_same_bits_by_every_algorithm() {
    for kind in backends() {
        for (name, a) in &matrices() {
            for product in PlannedProduct::all() {
                round_trip(kind, name, a, product, Effort::Default);
            }
        }
    }
}

#[test]
fn what_was_measured_serves_without_timing() {
    let a = gallery::uniform(300, 300, 9, 3).unwrap();
    for kind in backends() {
        for product in [PlannedProduct::Spmv(SpmvAlg::Default), PlannedProduct::Spmm(SpmmAlg::Default)] {
            round_trip(kind, "uniform", &a, product, Effort::Tuned);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]
    #[test]
    fn the_same_bits_of_any_matrix(
        entries in proptest::collection::vec((0..40_i32, 0..40_i32, -4.0..4.0_f64), 0..300),
        at in 0..100_usize,
    ) {
        let a = OwnedCsr::from_triplets(40, 40, entries).unwrap();
        let all = PlannedProduct::all();
        for kind in backends() {
            round_trip(kind, "any", &a, all[at % all.len()], Effort::Default);
        }
    }
}

/// Runs `check` with a plan and the decisions of another plan of the same problem.
fn with_decisions(check: impl Fn(&Session, &Plan<'_>, &[u8])) {
    for kind in backends() {
        let session = Session::new(kind).unwrap();
        let stored = Stored::new(kind, &gallery::banded(60, 3, 7).unwrap());
        let sparse = stored.sparse();
        for product in [
            PlannedProduct::Spmv(SpmvAlg::Default),
            PlannedProduct::Spmm(SpmmAlg::Default),
            PlannedProduct::Spgemm(SpgemmAlg::Default),
        ] {
            let first = product.plan(&session, &sparse).unwrap();
            first.analyze(&session).unwrap();
            let bytes = first.decisions(&session).unwrap();
            let second = product.plan(&session, &sparse).unwrap();
            check(&session, &second, &bytes);
            // After refusals, the plan still accepts the right decisions.
            second.set_decisions(&session, &bytes).unwrap();
            second.set_decisions(&session, &[]).unwrap();
            second.analyze(&session).unwrap();
            assert!(!reason(&second).contains("given"));
            let late = second.set_decisions(&session, &bytes).unwrap_err();
            assert_eq!(late.status, Status::InvalidState, "{late}");
            assert_eq!(product.bits(&second, &session, &stored), product.bits(&first, &session, &stored));
        }
    }
}

#[test]
fn every_damaged_byte_and_every_missing_one() {
    with_decisions(|session, plan, bytes| {
        for at in 0..bytes.len() {
            for change in [1, 0x80, 0xff] {
                let mut damaged = bytes.to_vec();
                damaged[at] ^= change;
                let error = plan.set_decisions(session, &damaged).unwrap_err();
                let expected = [Status::InvalidValue, Status::NotSupported];
                assert!(expected.contains(&error.status), "byte {at}: {error}");
            }
            if at > 0 {
                let error = plan.set_decisions(session, &bytes[..at]).unwrap_err();
                assert_eq!(error.status, Status::InvalidValue, "{at} bytes: {error}");
            }
        }
        assert_eq!(plan.info().unwrap().analyzed, 0);
    });
}

#[test]
fn every_sealed_change_is_refused_or_harmless() {
    // With a right checksum, other bytes are accepted only if they name an algorithm that the plan may have.
    let a = gallery::banded(60, 3, 7).unwrap();
    for kind in backends() {
        let session = Session::new(kind).unwrap();
        let stored = Stored::new(kind, &a);
        let sparse = stored.sparse();
        for product in [
            PlannedProduct::Spmv(SpmvAlg::Default),
            PlannedProduct::Spmm(SpmmAlg::Smat),
            PlannedProduct::Spgemm(SpgemmAlg::Default),
        ] {
            let first = product.plan(&session, &sparse).unwrap();
            first.analyze(&session).unwrap();
            let (bytes, expected) =
                (first.decisions(&session).unwrap(), product.bits(&first, &session, &stored));
            for at in 8..bytes.len() - 8 {
                for value in [0, 1, 2, 3, 8, 16, 255] {
                    let mut changed = bytes.clone();
                    changed[at] = value;
                    seal_decisions(&mut changed);
                    let plan = product.plan(&session, &sparse).unwrap();
                    if plan.set_decisions(&session, &changed).is_err() {
                        continue;
                    }
                    plan.analyze(&session).unwrap();
                    let found = product.bits(&plan, &session, &stored);
                    assert_eq!(found.len(), expected.len());
                    if !matches!(product, PlannedProduct::Spgemm(_)) {
                        for (found, expected) in found.iter().zip(&expected) {
                            let (found, expected) = (f64::from_bits(*found), f64::from_bits(*expected));
                            assert!(
                                (found - expected).abs() <= 1e-12 * (1.0 + expected.abs()),
                                "byte {at} = {value}"
                            );
                        }
                    }
                }
            }
        }
    }
}

/// Decisions of another problem are refused with the name of what differs.
#[test]
fn another_problem_is_named() {
    let invalid = Status::InvalidValue;
    for kind in backends() {
        let session = Session::new(kind).unwrap();
        let a = gallery::banded(60, 3, 7).unwrap();
        let stored = Stored::new(kind, &a);
        let sparse = stored.sparse();
        let spmm = |session: &Session, n: i64, order| {
            let orders = (order, Order::Row);
            Plan::spmm(session, (N, N), &sparse, orders, n, (F64, F64), R64, SpmmAlg::Default).unwrap()
        };
        let first = spmm(&session, 8, Order::Row);
        first.analyze(&session).unwrap();
        let bytes = first.decisions(&session).unwrap();

        refused(
            &spmm(&session, 9, Order::Row),
            &session,
            &bytes,
            invalid,
            "nHint is 8 there and 9 in the plan",
        );
        refused(
            &spmm(&session, 8, Order::Col),
            &session,
            &bytes,
            invalid,
            "bOrder is 2 there and 1 in the plan",
        );
        let transposed = {
            let orders = (Order::Row, Order::Row);
            let ops = (Operation::Transpose, N);
            Plan::spmm(&session, ops, &sparse, orders, 8, (F64, F64), R64, SpmmAlg::Default).unwrap()
        };
        refused(&transposed, &session, &bytes, invalid, "opA is 0 there and 1 in the plan");
        let spmv = PlannedProduct::Spmv(SpmvAlg::Default).plan(&session, &sparse).unwrap();
        refused(&spmv, &session, &bytes, invalid, "the operation is SpMM there and SpMV in the plan");
        let updated = spmm(&session, 8, Order::Row);
        updated.set_value_updates(true).unwrap();
        refused(&updated, &session, &bytes, invalid, "valueUpdates is 0 there and 1 in the plan");

        // Analysis finds settings that were changed afterwards.
        let changed = spmm(&session, 8, Order::Row);
        changed.set_decisions(&session, &bytes).unwrap();
        changed.set_value_updates(true).unwrap();
        let error = changed.analyze(&session).unwrap_err();
        assert!(error.status == invalid && error.message.contains("valueUpdates"), "{error}");
        changed.set_value_updates(false).unwrap();
        changed.set_self_contained(true).unwrap();
        let error = changed.analyze(&session).unwrap_err();
        let text = "selfContained is 0 there and 1 in the plan";
        assert!(error.status == invalid && error.message.contains(text), "{error}");
        changed.set_self_contained(false).unwrap();
        changed.analyze(&session).unwrap();

        for (text, other) in other_matrices(&a) {
            let stored = Stored::new(kind, &other);
            let sparse = stored.sparse();
            let orders = (Order::Row, Order::Row);
            let plan =
                Plan::spmm(&session, (N, N), &sparse, orders, 8, (F64, F64), R64, SpmmAlg::Default).unwrap();
            refused(&plan, &session, &bytes, invalid, text);
        }
        // New values do not make it another problem.
        let mut same = Stored::new(kind, &a);
        same.values.write(0, &vec![7.25; a.nnz()]).unwrap();
        let same_sparse = same.sparse();
        let product = PlannedProduct::Spmm(SpmmAlg::Default);
        let orders = (Order::Row, Order::Row);
        let plan =
            Plan::spmm(&session, (N, N), &same_sparse, orders, 8, (F64, F64), R64, SpmmAlg::Default).unwrap();
        plan.set_decisions(&session, &bytes).unwrap();
        plan.analyze(&session).unwrap();
        assert!(product.bits(&plan, &session, &same).iter().all(|&bits| f64::from_bits(bits).is_finite()));
    }
}

/// Returns matrices that differ from this one, with what differs.
fn other_matrices(a: &OwnedCsr<f64>) -> Vec<(&'static str, OwnedCsr<f64>)> {
    let triplets = |rows: usize, cols: usize, change: &dyn Fn(i32, i32) -> (i32, i32)| {
        let mut entries = Vec::new();
        for row in 0..a.rows {
            for (&col, &value) in a.row(row).0.iter().zip(a.row(row).1) {
                let (row, col) = change(row as i32, col);
                entries.push((row, col, value));
            }
        }
        OwnedCsr::from_triplets(rows, cols, entries).unwrap()
    };
    // The last entry of the first row is moved by one column: offsets are the same.
    let last = *a.row(0).0.last().unwrap();
    let moved =
        triplets(a.rows, a.cols, &|row, col| (row, if row == 0 && col == last { col + 1 } else { col }));
    // An entry is moved from the first row to the second: the same column indices, at most in another order.
    let lower = triplets(a.rows, a.cols, &|row, col| if row == 0 && col == 0 { (59, 0) } else { (row, col) });
    let same = |row: i32, col: i32| (row, col);
    vec![
        ("A's columns is 60 there and 61 in the plan", triplets(a.rows, a.cols + 1, &same)),
        ("A's rows is 60 there and 61 in the plan", triplets(a.rows + 1, a.cols, &same)),
        ("A's stored entries is", gallery::banded(60, 2, 7).unwrap()),
        ("the pattern of A is another", moved),
        ("the pattern of A is another", lower),
    ]
}

/// Returns the bytes with other numbers at a position, and a right checksum.
fn patched(bytes: &[u8], at: usize, with: &[u8]) -> Vec<u8> {
    let mut out = bytes.to_vec();
    out[at..at + with.len()].copy_from_slice(with);
    seal_decisions(&mut out);
    out
}

#[test]
fn another_version_backend_and_device_are_named() {
    let not = Status::NotSupported;
    with_decisions(|session, plan, bytes| {
        refused(plan, session, &patched(bytes, 8, &[9]), not, "its format has version 9");
        refused(plan, session, &patched(bytes, 20, &[99]), not, "library version 99.");
        let mine = i32::from_le_bytes(bytes[32..36].try_into().unwrap());
        let other = if mine == 1 { BackendKind::Cuda } else { BackendKind::Host };
        refused(plan, session, &patched(bytes, 32, &[other.code() as u8]), not, other.c_name());
        refused(plan, session, &patched(bytes, 40, b"X"), not, "device X");
        refused(plan, session, b"something else that is long enough", Status::InvalidValue, "does not begin");
    });
}

#[test]
fn an_algorithm_that_the_plan_was_not_created_for() {
    let session = Session::new(crate::common::backend()).unwrap();
    let stored = Stored::new(session.kind(), &gallery::banded(60, 3, 7).unwrap());
    let sparse = stored.sparse();
    let first = PlannedProduct::Spmv(SpmvAlg::Dasp).plan(&session, &sparse).unwrap();
    first.analyze(&session).unwrap();
    let bytes = first.decisions(&session).unwrap();
    let second = PlannedProduct::Spmv(SpmvAlg::Csr).plan(&session, &sparse).unwrap();
    refused(&second, &session, &bytes, Status::InvalidValue, "its decisions are dasp on");
    // A plan that lets the library choose accepts them.
    let third = PlannedProduct::Spmv(SpmvAlg::Default).plan(&session, &sparse).unwrap();
    third.set_decisions(&session, &bytes).unwrap();
    third.analyze(&session).unwrap();
    assert_eq!(third.info().unwrap().algorithm, SpmvAlg::Dasp.code());
}

#[test]
fn sizes_of_the_buffer() {
    use client::check;
    use tarsia::capi::plan::{tarsiaPlan_getDecisions, tarsiaPlan_setDecisions};
    let session = Session::new(crate::common::backend()).unwrap();
    let stored = Stored::new(session.kind(), &gallery::banded(60, 3, 7).unwrap());
    let sparse = stored.sparse();
    let plan = PlannedProduct::Spmv(SpmvAlg::Default).plan(&session, &sparse).unwrap();
    let (mut buffer, mut bytes) = (vec![0xaa_u8; 4096], 0);
    let get = |buffer: *mut u8, room: usize, bytes: &mut usize| -> Result<()> {
        // SAFETY: NULL or an array of at least `room` bytes.
        check(unsafe { tarsiaPlan_getDecisions(session.raw(), plan.raw(), buffer.cast(), room, bytes) })
    };
    let error = get(std::ptr::null_mut(), 0, &mut bytes).unwrap_err();
    assert_eq!(error.status, Status::InvalidState, "{error}");
    plan.analyze(&session).unwrap();
    get(std::ptr::null_mut(), 0, &mut bytes).unwrap();
    let needed = std::mem::take(&mut bytes);
    let error = get(buffer.as_mut_ptr(), needed - 1, &mut bytes).unwrap_err();
    assert_eq!((error.status, bytes), (Status::InsufficientResources, 0), "{error}");
    assert!(
        error.message.contains(&needed.to_string()) && buffer.iter().all(|&byte| byte == 0xaa),
        "{error}"
    );
    get(buffer.as_mut_ptr(), buffer.len(), &mut bytes).unwrap();
    assert_eq!(bytes, needed);
    assert!(buffer[needed..].iter().all(|&byte| byte == 0xaa));
    let other = PlannedProduct::Spmv(SpmvAlg::Default).plan(&session, &sparse).unwrap();
    for (pointer, size, text) in
        [(std::ptr::null(), 5, "buffer: it is NULL"), (buffer.as_ptr(), 0, "bytes: it is 0")]
    {
        // SAFETY: NULL, or an array of more bytes.
        let code = unsafe { tarsiaPlan_setDecisions(session.raw(), other.raw(), pointer.cast(), size) };
        let error = check(code).unwrap_err();
        assert!(error.status == Status::InvalidValue && error.message.starts_with(text), "{error}");
    }
}

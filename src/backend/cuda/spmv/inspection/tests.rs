//! Tests of the inspection on a device against the CPU. Skipped without a device.

use std::sync::Arc;
use std::time::Instant;

use super::*;
use crate::algorithm::{Algorithm, Query};
use crate::backend::cuda::convert::testing::{context, context_of_device};
use crate::backend::cuda::device::DeviceCall;
use crate::backend::cuda::memory::{self, CudaMemory, Fill};
use crate::backend::SpmvExecutor;
use crate::error::Status;
use crate::matrix::testing::pattern;
use crate::matrix::{Compressed, SparseMatrix};
use crate::memory::Allocator;
use crate::memory::Context;
use crate::select::Choice;
use crate::support::{self, Combo};
use crate::types::{BackendKind, Effort, Format, IndexBase, IndexType, OpKind, Operation};
use matrices::gallery::{self, Set};
use matrices::owned::OwnedCsr;

/// A matrix of doubles on the device, with 32-bit offsets from base 0.
struct Stored {
    offsets: DeviceBuffer<i32>,
    _indices: DeviceBuffer<i32>,
    _values: DeviceBuffer<f64>,
    problem: SpmvProblem,
}

impl Stored {
    fn new<V>(cx: &Context, a: &OwnedCsr<V>, value: impl Fn(usize) -> f64) -> Self {
        let offsets: Vec<i32> = a.offsets.iter().map(|&offset| offset as i32).collect();
        let values: Vec<f64> = (0..a.nnz()).map(value).collect();
        let offsets = DeviceBuffer::from_slice(cx, &offsets).unwrap();
        let indices = DeviceBuffer::from_slice(cx, &a.indices[..]).unwrap();
        let values = DeviceBuffer::from_slice(cx, &values).unwrap();
        let csr = Compressed {
            major: a.rows as i64,
            minor: a.cols as i64,
            nnz: a.nnz() as i64,
            offsets: offsets.address(),
            indices: indices.address(),
            values: values.address(),
            offset_type: IndexType::I32,
            index_type: IndexType::I32,
            base: IndexBase::Zero,
            value_type: support::F64::TYPES.a,
        };
        let a = SparseMatrix { arrays: SparseArrays::Csr(csr), writable: false, temporary: false };
        let (op, types) = (Operation::NonTranspose, support::F64::TYPES);
        let problem = SpmvProblem { op, a, types, value_updates: false };
        Stored { offsets, _indices: indices, _values: values, problem }
    }
}

/// Values such as 1 / 3, which no narrower form holds.
fn thirds(at: usize) -> f64 {
    1.0 / (at + 3) as f64
}

fn corpus() -> Vec<(&'static str, OwnedCsr<()>)> {
    let mut out: Vec<_> = ["conf5", "cant", "rmat16", "band64", "mc2depi"]
        .map(|name| (name, gallery::named(name).unwrap()))
        .into_iter()
        .collect();
    out.push(("small", gallery::band(3, 1, 0).unwrap()));
    out
}

fn one_wait<V>(cx: &DeviceCall<'_>, name: &str, a: &OwnedCsr<V>) {
    let stored = Stored::new(cx, a, thirds);
    let SparseArrays::Csr(m) = &stored.problem.a.arrays else { unreachable!() };
    let rows = Rows::of(m);
    let (inspected, statistics) = inspect_in_place(cx, &stored.problem).unwrap();
    let expected = SpmvStatistics::of(&pattern(a), 8);
    assert_eq!(statistics, expected, "{name}");
    assert_eq!(inspected.properties.adjacent, expected.is_adjacent(), "{name}");
    assert_eq!(inspected.properties.shared.map(|entries| entries as u64), expected.shared(), "{name}");
    assert_eq!(inspected.properties.form, Form::Full, "{name}");
    let report = check::inspect(cx, &stored.problem.a, stored.problem.op, "A").unwrap();
    assert_eq!(inspected.report.major, report.major, "{name}");
    assert_eq!(inspected.report.structure.sorted, report.structure.sorted, "{name}");
    // Inspection of rows that are known to be valid.
    let properties = StorageProperties::of_rows(cx, &stored.problem, &rows).unwrap();
    let marks = |properties: &StorageProperties| {
        properties.same.as_ref().map(|same| same.read(0, same.len()).unwrap())
    };
    assert_eq!(
        (properties.form, properties.shared),
        (inspected.properties.form, inspected.properties.shared),
        "{name}"
    );
    assert!(marks(&properties) == marks(&inspected.properties), "{name}");
}

#[test]
fn one_wait_brings_what_four_would() {
    let Some((device, cx)) = context_of_device() else { return };
    let cx = &device.call(&cx).unwrap();
    for (name, a) in corpus() {
        one_wait(cx, name, &a);
    }
    for (rows, cols) in [(0, 0), (0, 7), (40, 0), (2000, 3)] {
        one_wait(cx, "empty", &gallery::empty(rows, cols).unwrap());
    }
    assert_eq!(cx.allocator.live_bytes(), 0);
}

#[test]
fn values_that_will_be_updated_are_not_looked_at() {
    let Some((device, cx)) = context_of_device() else { return };
    let cx = &device.call(&cx).unwrap();
    let a = gallery::named("conf5").unwrap();
    let stored = Stored::new(cx, &a, |_| 1.0);
    let form = |problem: &SpmvProblem| inspect_in_place(cx, problem).unwrap().0.properties.form;
    assert_eq!(form(&stored.problem), Form::Ones);
    // A kernel that read the values would fault.
    let nowhere = stored.problem.a.with_values(Address::NULL);
    assert_eq!(form(&SpmvProblem { a: nowhere, value_updates: true, ..stored.problem }), Form::Full);
    memory::synchronize(cx.stream).unwrap();
}

#[test]
fn an_error_leaves_nothing_behind() {
    let Some((device, cx)) = context_of_device() else { return };
    let cx = &device.call(&cx).unwrap();
    let a = gallery::named("rmat16").unwrap();
    let mut stored = Stored::new(cx, &a, thirds);
    let before = cx.allocator.live_bytes();
    let problem = stored.problem;
    let text = |result: Result<(InspectedMatrix, SpmvStatistics)>| match result {
        Ok(_) => panic!("it is wrong"),
        Err(error) => (error.status, error.to_string()),
    };
    let (_, expected) = inspect_in_place(cx, &problem).unwrap();
    for round in 0..3 {
        // An allocation fails between the kernels.
        let memory = Arc::new(CudaMemory(Arc::clone(&device)));
        let tight = context(Allocator::new(memory, Address::NULL, 1000));
        let (status, _) = text(inspect_in_place(&device.call(&tight).unwrap(), &problem));
        assert_eq!((status, tight.allocator.live_bytes()), (Status::InsufficientResources, 0), "{round}");
        // The pattern is invalid: the error must be that of the check alone.
        let right = stored.offsets.read(0, stored.offsets.len()).unwrap();
        let mut wrong = right.clone();
        (wrong[700], wrong[9000]) = (i32::MIN, i32::MAX);
        memory::upload(stored.offsets.address(), &wrong, cx.stream).unwrap();
        let alone = check::inspect(cx, &problem.a, problem.op, "A").unwrap_err();
        assert_eq!(text(inspect_in_place(cx, &problem)), (alone.status, alone.to_string()), "{round}");
        assert_eq!(cx.allocator.live_bytes(), before, "{round}");
        memory::upload(stored.offsets.address(), &right, cx.stream).unwrap();
        let (_, found) = inspect_in_place(cx, &problem).unwrap();
        assert_eq!(found, expected, "{round}");
        assert_eq!(cx.allocator.live_bytes(), before, "{round}");
    }
    stored.offsets.mark_filled();
}

#[test]
fn a_chosen_plan_is_a_named_one() {
    let Some((device, cx)) = context_of_device() else { return };
    let cx = &device.call(&cx).unwrap();
    for (name, a) in corpus() {
        for value_updates in [false, true] {
            let stored = Stored::new(cx, &a, |at| if name == "cant" { 1.0 } else { thirds(at) });
            let problem = SpmvProblem { value_updates, ..stored.problem };
            let (inspected, _) = inspect_in_place(cx, &problem).unwrap();
            let of = |inspected| sell::arrays_of(cx, &problem, inspected).unwrap();
            assert!(of(Some(&inspected)) == of(None), "{name} {value_updates}");
            // Slices that were begun before the choice are used once; the next plan makes its own.
            let inspection = inspect(cx, &problem).unwrap();
            let inspected: &InspectedMatrix = inspection.backend_state.downcast_ref().unwrap();
            let begun = || inspected.properties.begun.borrow().as_ref().map(|begun| begun.rules);
            let named = of(None);
            assert_eq!(begun(), Some(named.2), "{name} {value_updates}");
            for _ in 0..2 {
                assert!(of(Some(inspected)) == named, "{name} {value_updates}");
                assert!(begun().is_none(), "{name}");
            }
        }
    }
    assert_eq!(cx.allocator.live_bytes(), 0);
}

#[test]
fn slices_that_are_not_chosen_are_given_up() {
    let Some((device, cx)) = context_of_device() else { return };
    let cx = &device.call(&cx).unwrap();
    let (_, a) = corpus().into_iter().next().unwrap();
    let stored = Stored::new(cx, &a, thirds);
    let problem = stored.problem;
    let before = cx.allocator.live_bytes();
    // Dropped while the device makes them, and given up for another layout.
    drop(inspect(cx, &problem).unwrap());
    assert_eq!(cx.allocator.live_bytes(), before);
    let inspection = inspect(cx, &problem).unwrap();
    let choice = Choice::new(Algorithm::Csr, Source::InPlace);
    let _csr = super::super::build(cx, &problem, &choice, Some(&inspection)).unwrap();
    let inspected: &InspectedMatrix = inspection.backend_state.downcast_ref().unwrap();
    assert!(inspected.properties.begun.borrow().is_none());
    // With memory for the marks of rows and not for slices, the inspection succeeds all the same.
    let memory = Arc::new(CudaMemory(Arc::clone(&device)));
    let tight = context(Allocator::new(memory, Address::NULL, a.rows + 1000));
    let inspection = inspect(&device.call(&tight).unwrap(), &problem).unwrap();
    let inspected: &InspectedMatrix = inspection.backend_state.downcast_ref().unwrap();
    assert!(inspected.properties.same.is_some() && inspected.properties.begun.borrow().is_none());
    drop(inspection);
    assert_eq!(tight.allocator.live_bytes(), 0);
}

/// Prints, for the gallery's comparison matrices, the median microseconds of each phase of an analysis with
/// default effort: the inspection with its wait, the choice, the building of the layout, and the release of
/// all memory.
///
/// `unit --ignored --nocapture --test-threads 1 cuda::spmv::inspection::tests::phases`
#[test]
#[ignore = "times phases on a device"]
fn phases() {
    let Some((device, cx)) = context_of_device() else { return };
    let cx = &device.call(&cx).unwrap();
    let (format, types) = (Format::Csr, support::F64::TYPES);
    let query = Query { op: OpKind::Spmv, format, types, backend: BackendKind::Cuda, algorithm: None };
    let rows = query.rows().unwrap();
    println!("{:28} {:>9} {:>9} | check counts choice build drop   | all", "matrix", "rows", "nnz");
    for named in gallery::names().iter().filter(|named| named.set == Set::Comparison) {
        let a = named.pattern().unwrap();
        let stored = Stored::new(cx, &a, thirds);
        let problem = stored.problem;
        let mut times: [Vec<f64>; 6] = Default::default();
        let mut chosen = Algorithm::Sell;
        for round in 0..14 {
            let mut at = Instant::now();
            let mut lap = |phase: usize, times: &mut [Vec<f64>; 6]| {
                let us = at.elapsed().as_secs_f64() * 1e6;
                // The first rounds load kernels and map memory.
                if round >= 5 {
                    times[phase].push(us);
                }
                at = Instant::now();
            };
            check::inspect(cx, &problem.a, problem.op, "A").unwrap();
            lap(0, &mut times);
            let start = Instant::now();
            let inspection = inspect(cx, &problem).unwrap();
            lap(1, &mut times);
            let machine = &crate::select::roofline::Machine::H100;
            let choices =
                select::spmv(&problem, &rows, Effort::Default, machine, Some(&inspection.statistics))
                    .unwrap();
            chosen = choices[0].algorithm();
            lap(2, &mut times);
            let plan: Box<SpmvExecutor> =
                crate::backend::cuda::spmv::build(cx, &problem, &choices[0], Some(&inspection)).unwrap();
            lap(3, &mut times);
            drop(inspection);
            lap(4, &mut times);
            if round >= 5 {
                times[5].push(start.elapsed().as_secs_f64() * 1e6);
            }
            drop(plan);
        }
        let [check, counts, choice, build, dropped, all] = times.map(|mut us| {
            us.sort_by(f64::total_cmp);
            us[us.len() / 2]
        });
        println!(
            "{:28} {:>9} {:>9} | {check:5.0} {counts:6.0} {choice:6.0} {build:5.0} {dropped:4.0} | {all:5.0} {}",
            named.name,
            a.rows,
            a.nnz(),
            chosen.name()
        );
    }
}

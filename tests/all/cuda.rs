//! Tests of features that only the CUDA backend has: streams, scalars on the device, and (in [`capture`])
//! graphs. They run if TARSIA_TEST_BACKEND is cuda.

mod capture;
mod in_flight;
mod products;

use std::process::Command;
use std::ptr::null_mut;

use crate::common::number::{F32, F64};
use client::{arg, check, Plan, Session};
use matrices::SplitMix64;
use tarsia::capi::handle;
use tarsia::facade::{
    BackendKind, ComputeType, Effort, Operation, Order, PointerMode, SpgemmAlg, SpmmAlg, SpmvAlg, Status,
    Stream,
};

use crate::bad_input::bad::invalid;
use crate::common::check::all_close;
use crate::common::dense::Dense;
use crate::common::number::factor;
use crate::common::number::{bits, Numbers, Value};
use crate::common::output::{Output, Target};
use crate::common::pattern::{Pattern, Stored, Style};
use crate::common::staged::{memory, upload, Staging};
use crate::common::{backend, raw, skip};
use crate::memory::heap::Heap;
use testkit::{dense_product, sparse_product, Factor, Number as _, Sum};

const CUDA: BackendKind = BackendKind::Cuda;
const N: Operation = Operation::NonTranspose;

/// Returns whether the tests of CUDA cannot run, and prints that they are skipped.
fn is_skipped(test: &str) -> bool {
    let skipped = backend() != CUDA;
    if skipped {
        skip(format!("cuda::{test}: TARSIA_TEST_BACKEND is not cuda"));
    }
    skipped
}

/// Runs the `count` ignored tests of a module one by one in a process of their own.
fn run_alone(module: &str, count: usize) {
    let module = module.split_once("::").expect("inside a crate").1;
    let output = Command::new(std::env::current_exe().unwrap())
        .args([&format!("{module}::"), "--ignored", "--nocapture", "--test-threads=1"])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.contains(&format!(" {count} passed")), "{text}");
}

/// Handle with a stream of its own, which does not wait for the NULL stream.
struct Lane {
    session: Session,
    stream: Stream,
}

impl Lane {
    fn new() -> Self {
        let (session, stream) = (Session::new(CUDA).unwrap(), Stream::new(0).unwrap());
        check(handle::tarsiaSetStream(session.raw(), stream.address().as_mut_ptr())).unwrap();
        Lane { session, stream }
    }
}

/// Matrix with empty rows, two long rows, and rows of all lengths in between.
struct Problem<V> {
    pattern: Pattern,
    entries: Vec<(usize, usize)>,
    values: Vec<V>,
}

fn random<V: Value>(count: usize, seed: u64) -> Vec<V> {
    let mut rng = SplitMix64::new(seed);
    (0..count).map(|_| V::random(&mut rng)).collect()
}

impl<V: Value> Problem<V> {
    fn new((rows, cols): (usize, usize), count: usize, long: usize) -> Self {
        let mut rng = SplitMix64::new(5);
        let mut below = |n: usize| rng.below(n as u64) as usize;
        // The last eighth of the rows is empty.
        let used = rows - rows / 8;
        let mut places: Vec<_> =
            (0..count).map(|_| (below(used) * below(used) / used, below(cols))).collect();
        places.extend((0..2 * long).map(|at| (used / 2 + at % 2, below(cols))));
        places.sort_unstable();
        places.dedup();
        let pattern = Pattern::new(Style::PLAIN, (rows, cols), &places);
        let (entries, values) = (pattern.entries(), random(places.len(), 6));
        Problem { pattern, entries, values }
    }

    /// Copies the matrix to device memory, ready for any stream.
    fn store(&self) -> Stored<V> {
        let stored = self.pattern.store(CUDA, &self.values);
        memory(CUDA).synchronize().unwrap();
        stored
    }

    fn factor(&self) -> Factor<'_, V> {
        factor(&self.entries, &self.values, N)
    }

    /// Computes A · x.
    fn times(&self, x: &[V]) -> Vec<Sum<V::Wide>> {
        dense_product(&self.factor(), (self.pattern.rows, 1), |k, _| x[k].widen())
    }
}

fn spmv_plan<'a, C: Numbers>(session: &Session, a: &'a Stored<C::A>, effort: Effort) -> Plan<'a> {
    let (types, a) = (C::TYPES, a.open().unwrap());
    let plan = Plan::spmv(session, N, &a, (types.x, types.y), types.compute, SpmvAlg::Default).unwrap();
    plan.set_effort(effort).unwrap();
    plan.set_value_updates(true).unwrap();
    plan.analyze(session).unwrap();
    plan
}

fn spmm_plan<'a, C: Numbers>(session: &Session, a: &'a Stored<C::A>, n: usize) -> Plan<'a> {
    let (types, a, orders) = (C::TYPES, a.open().unwrap(), (Order::Row, Order::Row));
    let (values, alg) = ((types.x, types.y), SpmmAlg::Default);
    let plan = Plan::spmm(session, (N, N), &a, orders, n as i64, values, types.compute, alg).unwrap();
    plan.analyze(session).unwrap();
    plan
}

fn swift_plan<'a>(session: &Session, a: &'a Stored<f32>) -> Plan<'a> {
    let (types, a, orders) = (F32::TYPES, a.open().unwrap(), (Order::Row, Order::Row));
    let (values, alg) = ((types.x, types.y), SpmmAlg::Swift);
    let plan = Plan::spmm(session, (N, N), &a, orders, 40, values, types.compute, alg).unwrap();
    plan.analyze(session).unwrap();
    plan
}

fn spgemm_plan<'a, C: Numbers>(session: &Session, a: &'a Stored<C::A>, b: &'a Stored<C::X>) -> Plan<'a> {
    let (a, b) = (a.open().unwrap(), b.open().unwrap());
    let plan = Plan::spgemm(session, (N, N), &a, &b, C::TYPES.compute, SpgemmAlg::Default).unwrap();
    plan.set_value_updates(true).unwrap();
    plan.analyze(session).unwrap();
    plan
}

const C_TARGET: Target =
    Target { format: Style::PLAIN.format, widths: Style::PLAIN.widths, base: Style::PLAIN.base };

#[test]
fn devices_that_are_not_there() {
    if is_skipped("devices_that_are_not_there") {
        return;
    }
    for device in [-1, 1000] {
        let mut made = null_mut();
        // SAFETY: the answer is valid for a write.
        invalid("create", "device", || unsafe {
            handle::tarsiaCreateWithBackend(&mut made, arg(CUDA), device)
        });
        assert!(made.is_null());
    }
}

/// One plan works on several streams at once, without waits between them.
#[test]
fn streams_share_a_plan() {
    if is_skipped("streams_share_a_plan") {
        return;
    }
    const LANES: usize = 4;
    let problem = Problem::<f64>::new((20_000, 15_000), 300_000, 60_000);
    let stored = problem.store();
    for effort in [Effort::Quick, Effort::Default] {
        let lanes: Vec<Lane> = (0..LANES).map(|_| Lane::new()).collect();
        let plan = spmv_plan::<F64>(&lanes[0].session, &stored, effort);
        let xs: Vec<Vec<f64>> = (0..LANES).map(|which| random(15_000, which as u64)).collect();
        let mut results = Vec::new();
        for (lane, x) in lanes.iter().zip(&xs) {
            plan.prepare(&lane.session).unwrap();
            let (x, y) = (lane.session.upload(x).unwrap(), lane.session.upload(&[f64::NAN; 20_000]).unwrap());
            results.push((x, y));
        }
        for _ in 0..50 {
            for (lane, (x, y)) in lanes.iter().zip(&mut results) {
                plan.run_spmv(&lane.session, 1.0, &*x, 0.0, &mut *y).unwrap();
            }
        }
        for (x, (_, y)) in xs.iter().zip(&results) {
            // The copy is on the lane's stream, behind its products.
            all_close::<F64>(CUDA, y.download().unwrap(), &problem.times(x)).unwrap();
        }
    }
}

/// Threads with a stream and a handle each share one plan.
#[test]
fn threads_with_streams_share_a_plan() {
    if is_skipped("threads_with_streams_share_a_plan") {
        return;
    }
    let problem = Problem::<f64>::new((20_000, 15_000), 300_000, 60_000);
    let (stored, first) = (problem.store(), Lane::new());
    let plan = spmv_plan::<F64>(&first.session, &stored, Effort::Default);
    let run = |session: &Session, seed: u64| {
        plan.prepare(session).unwrap();
        let x = session.upload(&random::<f64>(15_000, seed)).unwrap();
        let mut y = session.upload(&[f64::NAN; 20_000]).unwrap();
        for _ in 0..50 {
            plan.run_spmv(session, 1.0, &x, 0.0, &mut y).unwrap();
        }
        bits(&y.download().unwrap()).to_vec()
    };
    let expected: Vec<_> = (0..4).map(|seed| run(&first.session, seed)).collect();
    std::thread::scope(|scope| {
        for (seed, expected) in expected.iter().enumerate() {
            let run = &run;
            scope.spawn(move || {
                let lane = Lane::new();
                assert!(run(&lane.session, seed as u64) == *expected, "other bits in thread {seed}");
            });
        }
    });
}

/// In mode DEVICE alpha and beta are read when the product runs.
#[test]
fn scalars_on_the_device() {
    if is_skipped("scalars_on_the_device") {
        return;
    }
    let problem = Problem::<f64>::new((3000, 2000), 30_000, 1500);
    let (stored, lane) = (problem.store(), Lane::new());
    let session = &lane.session;
    session.set_pointer_mode(PointerMode::Device).unwrap();
    let (x, y): (Vec<f64>, Vec<f64>) = (random(2000, 1), random(3000, 2));
    let plan = spmv_plan::<F64>(session, &stored, Effort::Default);
    let (device_x, mut scalars) = (session.upload(&x).unwrap(), session.upload(&[0.0, 0.0]).unwrap());
    for (alpha, beta) in [(0.3, 0.7), (1.0, 0.0), (0.0, 1.0), (0.0, 0.0), (-1.0, 1.0)] {
        // With beta = 0, y must not be read.
        let old = if beta == 0.0 { vec![f64::NAN; 3000] } else { y.clone() };
        let mut device_y = session.upload(&old).unwrap();
        scalars.write(0, &[alpha, beta]).unwrap();
        plan.run_spmv(session, scalars.part(0..1), &device_x, scalars.part(1..2), &mut device_y).unwrap();
        let sums = problem.times(&x);
        let expected: Vec<_> = sums.iter().zip(&old).map(|(sum, &y)| sum.combine(alpha, beta, y)).collect();
        all_close::<F64>(CUDA, device_y.download().unwrap(), &expected).unwrap();
    }
}

#[test]
fn a_hundred_runs_have_the_same_bits() {
    if is_skipped("a_hundred_runs_have_the_same_bits") {
        return;
    }
    let (a, b) = (Problem::<f32>::new((4000, 3000), 60_000, 2800), Problem::new((3000, 5000), 9000, 1000));
    let (a_stored, b_stored, lane) = (a.store(), b.store(), Lane::new());
    let session = &lane.session;
    let all_same = |what: &str, run: &dyn Fn() -> Vec<u8>| {
        let first = run();
        for at in 1..100 {
            assert!(run() == first, "{what}: run {at} has other bits");
        }
    };
    for effort in [Effort::Quick, Effort::Default] {
        let plan = spmv_plan::<F32>(session, &a_stored, effort);
        let x: Vec<f32> = random(3000, 3);
        all_same("SpMV", &|| {
            let mut y = vec![f32::NAN; 4000];
            plan.spmv(session, 1.0_f32, &x, 0.0_f32, &mut y).unwrap();
            bits(&y).to_vec()
        });
    }
    let plan = spmm_plan::<F32>(session, &a_stored, 17);
    let (mut dense, mut rng) = (Dense::<f32>::new((3000, 17), Order::Row, 1), SplitMix64::new(4));
    dense.fill(|_, _| f32::random(&mut rng));
    all_same("SpMM", &|| {
        let mut c = Dense::<f32>::new((4000, 17), Order::Row, 2);
        plan.spmm(session, 1.0_f32, &dense, 0.0_f32, &mut c).unwrap();
        bits(&c.values).to_vec()
    });
    // New plans too: analysis is deterministic.
    let product = |reuse: Option<&Plan<'_>>| {
        let fresh = spgemm_plan::<F32>(session, &a_stored, &b_stored);
        let plan = reuse.unwrap_or(&fresh);
        let nnz = plan.symbolic(session).unwrap() as usize;
        let mut c = Output::<f32>::new(C_TARGET, (4000, 5000), nnz);
        c.compute(session, plan, 1.0_f32).unwrap();
        let numbers = [c.offsets.to_vec(), c.indices.to_vec()].concat();
        [bytemuck::cast_slice(&numbers), bits(&c.values)].concat()
    };
    let kept = spgemm_plan::<F32>(session, &a_stored, &b_stored);
    assert!(product(None) == product(Some(&kept)), "two plans give different bits");
    all_same("SpGEMM", &|| product(Some(&kept)));
}

#[test]
fn deterministic_mode_has_a_form_of_swift() {
    if is_skipped("deterministic_mode_has_a_form_of_swift") {
        return;
    }
    let problem = Problem::<f32>::new((3000, 2000), 50_000, 1500);
    let (stored, lane) = (problem.store(), Lane::new());
    let session = &lane.session;
    let mut dense = Dense::<f32>::new((2000, 40), Order::Row, 0);
    let mut rng = SplitMix64::new(4);
    dense.fill(|_, _| f32::random(&mut rng));
    let run = |plan: &Plan<'_>| {
        let mut c = Dense::<f32>::new((3000, 40), Order::Row, 0);
        plan.spmm(session, 1.0_f32, &dense, 0.0_f32, &mut c).map(|_| bits(&c.values).to_vec())
    };
    let other = swift_plan(session, &stored);
    run(&other).unwrap();
    session.set_deterministic(true).unwrap();
    let error = run(&other).unwrap_err();
    assert!(error.status == Status::NotSupported && error.message.starts_with("plan: "), "{error}");
    let plan = swift_plan(session, &stored);
    let first = run(&plan).unwrap();
    for _ in 0..20 {
        assert!(run(&plan).unwrap() == first);
    }
    // Outside of that mode, both are accepted.
    session.set_deterministic(false).unwrap();
    run(&other).unwrap();
    assert!(run(&plan).unwrap() == first);
}

/// Plans that use cublasLt are refused in deterministic mode; a plan that is analyzed in that mode uses the
/// library's own kernels, by name and by default.
#[test]
fn dense_in_deterministic_mode() {
    if is_skipped("dense_in_deterministic_mode") {
        return;
    }
    let problem = Problem::<f32>::new((2048, 2048), 200_000, 1500);
    let (stored, lane) = (problem.store(), Lane::new());
    let session = &lane.session;
    let mut dense = Dense::<f32>::new((2048, 512), Order::Row, 0);
    let mut rng = SplitMix64::new(4);
    dense.fill(|_, _| f32::random(&mut rng));
    let analyzed = |alg: SpmmAlg| {
        let (types, a, orders) = (F32::TYPES, stored.open().unwrap(), (Order::Row, Order::Row));
        let values = (types.x, types.y);
        let plan = Plan::spmm(session, (N, N), &a, orders, 512, values, types.compute, alg).unwrap();
        plan.analyze(session).unwrap();
        plan
    };
    let run = |plan: &Plan<'_>| {
        let mut c = Dense::<f32>::new((2048, 512), Order::Row, 0);
        plan.spmm(session, 1.0_f32, &dense, 0.0_f32, &mut c).map(|_| bits(&c.values).to_vec())
    };
    let reason = |plan: &Plan<'_>| {
        let reason = plan.info().unwrap().reason;
        reason.iter().take_while(|&&byte| byte != 0).map(|&byte| byte as u8 as char).collect::<String>()
    };
    let other = analyzed(SpmmAlg::Dense);
    run(&other).unwrap();
    session.set_deterministic(true).unwrap();
    if reason(&other).contains("by cublasLt") {
        let error = run(&other).unwrap_err();
        assert!(error.status == Status::NotSupported && error.message.contains("cublasLt"), "{error}");
    } else {
        println!("cublasLt is not installed");
    }
    for alg in [SpmmAlg::Dense, SpmmAlg::Default] {
        let plan = analyzed(alg);
        assert!(!reason(&plan).contains("cublasLt"), "{}", reason(&plan));
        assert!(run(&plan).unwrap() == run(&plan).unwrap());
    }
}

/// With a user's allocator and the program's streams, its memory is used for all three products, it is passed
/// the handle's stream, and all memory is freed by it.
#[test]
fn a_users_allocator_on_streams() {
    if is_skipped("a_users_allocator_on_streams") {
        return;
    }
    let a = Problem::<f64>::new((2000, 1500), 20_000, 9000);
    let b = Problem::<f64>::new((1500, 800), 9000, 500);
    let (a_stored, b_stored, heap) = (a.store(), b.store(), Heap::new(CUDA));
    let lanes = [Lane::new(), Lane::new()];
    for (which, lane) in lanes.iter().enumerate() {
        let session = &lane.session;
        heap.serve(session.raw());
        {
            let (plan, x): (_, Vec<f64>) =
                (spmv_plan::<F64>(session, &a_stored, Effort::Default), random(1500, 3));
            let mut y = vec![f64::NAN; 2000];
            plan.spmv(session, 1.0, &x, 0.0, &mut y).unwrap();
            all_close::<F64>(CUDA, y, &a.times(&x)).unwrap();

            let plan = spmm_plan::<F64>(session, &a_stored, 33);
            let (mut dense, mut rng) = (Dense::<f64>::new((1500, 33), Order::Row, 0), SplitMix64::new(4));
            dense.fill(|_, _| f64::random(&mut rng));
            let mut c = Dense::<f64>::new((2000, 33), Order::Row, 1);
            plan.spmm(session, 1.0, &dense, 0.0, &mut c).unwrap();
            let expected = dense_product(&a.factor(), (2000, 33), |k, j| dense.get(k, j));
            let found = (0..2000).flat_map(|i| (0..33).map(move |j| (i, j))).map(|(i, j)| c.get(i, j));
            all_close::<F64>(CUDA, found, &expected).unwrap();

            let plan = spgemm_plan::<F64>(session, &a_stored, &b_stored);
            let nnz = plan.symbolic(session).unwrap() as usize;
            let mut c = Output::<f64>::new(C_TARGET, (2000, 800), nnz);
            c.compute(session, &plan, 1.0).unwrap();
            c.verify::<F64>(CUDA, &sparse_product(&a.factor(), &b.factor())).unwrap();
        }
        let streams = heap.streams();
        let own = lane.stream.address().as_mut_ptr::<u8>().addr();
        assert!(streams.len() > 4, "stream {which}: the allocator was asked {} times", streams.len());
        assert!(streams.iter().all(|&stream| stream == own), "not only {own:x}: {streams:x?}");
    }
    drop(lanes);
    heap.check_empty();
}

#[test]
fn beta_zero_does_not_read_y() {
    if is_skipped("beta_zero_does_not_read_y") {
        return;
    }
    let problem = Problem::<f64>::new((20_000, 3000), 100_000, 2900);
    let (stored, lane) = (problem.store(), Lane::new());
    let (session, x): (_, Vec<f64>) = (&lane.session, random(3000, 7));
    let expected = problem.times(&x);
    for effort in [Effort::Quick, Effort::Default] {
        let plan = spmv_plan::<F64>(session, &stored, effort);
        let mut y = vec![f64::NAN; 20_000];
        plan.spmv(session, 1.0, &x, 0.0, &mut y).unwrap();
        all_close::<F64>(CUDA, y, &expected).unwrap();
    }
    for n in [1, 5, 32] {
        let plan = spmm_plan::<F64>(session, &stored, n);
        let mut b = Dense::<f64>::new((3000, n), Order::Row, 3);
        b.fill(|i, _| x[i]);
        let mut c = Dense::<f64>::new((20_000, n), Order::Row, 1);
        let before = c.clone();
        plan.spmm(session, 1.0, &b, 0.0, &mut c).unwrap();
        c.same_padding(&before).unwrap();
        for j in 0..n {
            all_close::<F64>(CUDA, (0..20_000).map(|i| c.get(i, j)), &expected).unwrap();
        }
    }
}

#[test]
fn workspaces_that_are_too_small() {
    if is_skipped("workspaces_that_are_too_small") {
        return;
    }
    let problem = Problem::<f64>::new((100, 200_000), 5000, 150_000);
    let (stored, lane) = (problem.store(), Lane::new());
    let (session, x): (_, Vec<f64>) = (&lane.session, random(200_000, 8));
    let plan = spmv_plan::<F64>(session, &stored, Effort::Default);
    let needed = plan.workspace_size(1).unwrap();
    if needed <= 16 {
        skip("cuda::workspaces_that_are_too_small: the plan needs no workspace");
        return;
    }
    let (mut small, mut y) = (upload(CUDA, &[0_u128; 1]), vec![f64::NAN; 100]);
    let pointer = small.part_mut(0..1).as_mut_ptr().cast();
    // SAFETY: the memory has that many bytes and stays until it is taken back.
    check(unsafe { handle::tarsiaSetWorkspace(session.raw(), pointer, 16) }).unwrap();
    let error = plan.spmv(session, 1.0, &x, 0.0, &mut y).unwrap_err();
    assert_eq!(error.status, Status::InsufficientResources, "{error}");
    assert!(error.message.contains(&needed.to_string()), "{error} does not say {needed}");
    assert!(y.iter().all(|y| y.is_nan()), "y was written");
    // SAFETY: NULL takes the memory back.
    check(unsafe { handle::tarsiaSetWorkspace(session.raw(), null_mut(), 0) }).unwrap();
    let workspace = raw::UserWorkspace::new(session, needed).unwrap();
    plan.spmv(session, 1.0, &x, 0.0, &mut y).unwrap();
    drop(workspace);
    all_close::<F64>(CUDA, y, &problem.times(&x)).unwrap();
}

//! Tests of one plan in several threads with several handles.

mod lifetimes;
mod thread_counts;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Barrier;
use std::thread;

use crate::common::number::F64;
use client::{Plan, Session};
use matrices::SplitMix64;
use tarsia::facade::{BackendKind, Effort, Operation, Order, SpgemmAlg, SpmmAlg, SpmvAlg, Status};

use crate::common::check::all_close;
use crate::common::dense::Dense;
use crate::common::number::factor;
use crate::common::number::{bits, Numbers, Value};
use crate::common::output::{Output, Target};
use crate::common::pattern::{Pattern, Stored, Style};
use crate::common::staged::{first_workspace, upload, Staging};
use crate::common::{backend, skip};
use testkit::dense_product;

const THREADS: usize = 8;
const CUDA: BackendKind = BackendKind::Cuda;
const N: Operation = Operation::NonTranspose;

/// Random matrix with two rows of `long` entries, which the host splits, with partial sums in the workspace.
struct LongRows<V> {
    pub pattern: Pattern,
    pub values: Vec<V>,
}

impl<V: Value> LongRows<V> {
    pub fn new(style: Style, (rows, cols): (usize, usize), count: usize, long: usize) -> Self {
        let mut rng = SplitMix64::new(11);
        let mut below = |n: usize| rng.below(n as u64) as usize;
        let mut places: Vec<_> = (0..count).map(|_| (below(rows), below(cols))).collect();
        places.extend((0..2 * long).map(|at| (rows / 2 + at % 2, below(cols))));
        let pattern = Pattern::new(style, (rows, cols), &places);
        let values = random(places.len(), 12);
        LongRows { pattern, values }
    }

    pub fn store(&self, kind: BackendKind) -> Stored<V> {
        self.pattern.store(kind, &self.values)
    }
}

fn random<V: Value>(count: usize, seed: u64) -> Vec<V> {
    let mut rng = SplitMix64::new(seed);
    (0..count).map(|_| V::random(&mut rng)).collect()
}

fn spmv_plan<'a>(session: &Session, a: &'a Stored<f64>, effort: Effort) -> Plan<'a> {
    let (types, descr) = (F64::TYPES, a.open().unwrap());
    let plan = Plan::spmv(session, N, &descr, (types.x, types.y), types.compute, SpmvAlg::Default).unwrap();
    plan.set_effort(effort).unwrap();
    plan.set_value_updates(true).unwrap();
    plan.analyze(session).unwrap();
    plan
}

/// Checks that eight threads, each with a handle and a result of its own, get the same bits as one thread
/// before. `execute(session, which)` returns the bits of result number `which`.
fn same_bits_from_all_threads(
    plan: &Plan<'_>,
    session: &Session,
    execute: impl Fn(&Session, usize) -> Vec<u8> + Sync,
) {
    // On a device the workspace depends on the kernels.
    let bytes = plan.info().unwrap().workspaceBytes;
    assert!(bytes > 0 || backend() == CUDA, "the test is about plans that need workspace");
    let alone: Vec<_> = (0..THREADS).map(|which| execute(session, which)).collect();
    assert!(alone[0] != alone[1], "the test is about different results");
    let barrier = Barrier::new(THREADS);
    thread::scope(|scope| {
        for (which, alone) in alone.iter().enumerate() {
            let (barrier, execute) = (&barrier, &execute);
            scope.spawn(move || {
                let session = Session::new(backend()).unwrap();
                plan.prepare(&session).unwrap();
                barrier.wait();
                for run in 0..20 {
                    assert!(execute(&session, which) == *alone, "other bits in run {run} of thread {which}");
                }
            });
        }
    });
}

#[test]
fn handles_share_a_plan_for_spmv() {
    let a = LongRows::new(Style::PLAIN, (4000, 3000), 40_000, 100_000);
    let stored = a.store(backend());
    for effort in [Effort::Quick, Effort::Default] {
        let session = Session::new(backend()).unwrap();
        let plan = spmv_plan(&session, &stored, effort);
        let xs: Vec<Vec<f64>> = (0..THREADS).map(|which| random(3000, which as u64)).collect();
        let entries = a.pattern.entries();
        let factor = factor(&entries, &a.values, N);
        for x in &xs[..2] {
            let mut y = vec![f64::NAN; 4000];
            plan.spmv(&session, 1.0, x, 0.0, &mut y).unwrap();
            all_close::<F64>(backend(), y, &dense_product(&factor, (4000, 1), |k, _| x[k])).unwrap();
        }
        same_bits_from_all_threads(&plan, &session, |session, which| {
            let mut y = vec![f64::NAN; 4000];
            plan.spmv(session, 1.0, &xs[which], 0.0, &mut y).unwrap();
            bits(&y).to_vec()
        });
    }
}

#[test]
fn handles_share_a_plan_for_spmm() {
    let (a, n) = (LongRows::<f64>::new(Style::PLAIN, (900, 700), 6000, 20_000), 9);
    let session = Session::new(backend()).unwrap();
    let stored = a.store(backend());
    let (types, descr) = (F64::TYPES, stored.open().unwrap());
    let orders = (Order::Row, Order::Col);
    let types = ((types.x, types.y), types.compute);
    let plan = Plan::spmm(&session, (N, N), &descr, orders, n, types.0, types.1, SpmmAlg::Default).unwrap();
    plan.analyze(&session).unwrap();
    let matrix = |which| {
        let (mut b, mut rng) = (Dense::new((700, n as usize), orders.0, 1), SplitMix64::new(which as u64));
        b.fill(|_, _| rng.value());
        b
    };
    let bs: Vec<Dense<f64>> = (0..THREADS).map(matrix).collect();
    same_bits_from_all_threads(&plan, &session, |session, which| {
        let mut c = Dense::<f64>::new((900, n as usize), orders.1, 0);
        plan.spmm(session, 1.0, &bs[which], 0.0, &mut c).unwrap();
        bits(&c.values).to_vec()
    });
}

#[test]
fn a_handle_that_is_not_prepared_has_no_workspace() {
    let a = LongRows::new(Style::PLAIN, (10, 3000), 0, 100_000);
    let stored = a.store(backend());
    let session = Session::new(backend()).unwrap();
    let plan = spmv_plan(&session, &stored, Effort::Quick);
    let (other, mut y) = (Session::new(backend()).unwrap(), [f64::NAN; 10]);
    let bytes = plan.workspace_size(1).unwrap();
    if bytes <= first_workspace(backend()) {
        skip(format!("a_handle_that_is_not_prepared_has_no_workspace: {bytes} bytes are always there"));
        return;
    }
    let error = plan.spmv(&other, 1.0, &a.values[..3000], 0.0, &mut y).unwrap_err();
    assert_eq!(error.status, Status::InsufficientResources);
    assert!(error.message.contains(&bytes.to_string()), "{error} does not say {bytes}");
    plan.prepare(&other).unwrap();
    plan.spmv(&other, 1.0, &a.values[..3000], 0.0, &mut y).unwrap();
}

#[test]
fn new_values_come_between_executions() {
    let a = LongRows::new(Style::PLAIN, (2000, 1000), 10_000, 70_000);
    let old = &a.values;
    let new: Vec<f64> = old.iter().map(|value| 3.0 * value).collect();
    let x = &old[..1000];
    let on_device = [old, &new].map(|values| upload(backend(), values));
    let stored = a.store(backend());
    for effort in [Effort::Quick, Effort::Default] {
        let session = Session::new(backend()).unwrap();
        let plan = spmv_plan(&session, &stored, effort);
        let result = |session: &Session| {
            let mut y = vec![f64::NAN; 2000];
            plan.spmv(session, 1.0, x, 0.0, &mut y).unwrap();
            bits(&y).to_vec()
        };
        let of_old = result(&session);
        plan.update_values(&session, &on_device[1]).unwrap();
        let of_new = result(&session);
        assert!(of_old != of_new);
        let done = AtomicBool::new(false);
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let session = Session::new(backend()).unwrap();
                    plan.prepare(&session).unwrap();
                    while !done.load(Ordering::SeqCst) {
                        let found = result(&session);
                        assert!(
                            found == of_old || found == of_new,
                            "a result is neither of old nor of new values"
                        );
                    }
                });
            }
            for values in on_device.iter().cycle().take(40) {
                plan.update_values(&session, values).unwrap();
            }
            done.store(true, Ordering::SeqCst);
        });
    }
}

/// Many threads create, use and destroy handles and plans at once.
#[test]
fn handles_and_plans_come_and_go_in_parallel() {
    let style = Style::PLAIN;
    let places: Vec<_> = (0..30).map(|i| (i % 10, i * 7 % 10)).collect();
    let pattern = Pattern::new(style, (10, 10), &places);
    let target = Target { format: style.format, widths: style.widths, base: style.base };
    let once = |thread: usize| {
        let values: Vec<f64> = random(30, thread as u64);
        let session = Session::new(backend()).unwrap();
        let stored = pattern.store(backend(), &values);
        let a = stored.open().unwrap();
        let types = F64::TYPES;
        let spmv = Plan::spmv(&session, N, &a, (types.x, types.y), types.compute, SpmvAlg::Default).unwrap();
        let spgemm = Plan::spgemm(&session, (N, N), &a, &a, types.compute, SpgemmAlg::Default).unwrap();
        spmv.analyze(&session).unwrap();
        spgemm.analyze(&session).unwrap();
        let mut y = vec![f64::NAN; 10];
        spmv.spmv(&session, 1.0, &values[..10], 0.0, &mut y).unwrap();
        let nnz = spgemm.symbolic(&session).unwrap() as usize;
        let mut c = Output::<f64>::new(target, (10, 10), nnz);
        c.compute(&session, &spgemm, 1.0).unwrap();
        [bits(&y), bits(&c.values)].concat()
    };
    let expected: Vec<_> = (0..THREADS).map(once).collect();
    thread::scope(|scope| {
        for (thread, expected) in expected.iter().enumerate() {
            let once = &once;
            scope.spawn(move || {
                for run in 0..200 {
                    assert!(once(thread) == *expected, "other bits in run {run} of thread {thread}");
                }
            });
        }
    });
}

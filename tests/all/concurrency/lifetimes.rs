//! Tests of what the destroy functions promise: they wait for calls in flight, and afterwards the library
//! does not access the user's memory.

use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Barrier, Condvar, Mutex};
use std::thread;
use std::time::Duration;

use crate::common::number::F64;
use client::{check, Plan, Session, Sparse};
use tarsia::capi::memory::{tarsiaFree, tarsiaMalloc, tarsiaMemcpyToDevice};
use tarsia::capi::{handle, plan as plan_calls};
use tarsia::facade::{Effort, IndexBase, SpmvAlg, Status};

use super::{spmv_plan, LongRows, N, THREADS};
use crate::common::backend;
use crate::common::number::{bits, Numbers};
use crate::common::pattern::Style;
use crate::common::staged::{memory, upload, Staging};

/// Threads execute products until `destroy` has destroyed what they need. Every call gives the right bits or
/// the status `dead`, and none that starts after `destroy` has returned succeeds.
fn destroy_while_others_execute(dead: Status, destroy: impl Fn(&Plan<'_>, &[Session])) {
    let a = LongRows::new(Style::PLAIN, (2000, 1000), 10_000, 70_000);
    let (x, stored) = (&a.values[..1000], a.store(backend()));
    for round in 0..10 {
        let session = Session::new(backend()).unwrap();
        let plan = spmv_plan(&session, &stored, if round % 2 == 0 { Effort::Quick } else { Effort::Default });
        let mut expected = vec![f64::NAN; 2000];
        plan.spmv(&session, 1.0, x, 0.0, &mut expected).unwrap();
        let sessions: Vec<_> = (0..THREADS).map(|_| Session::new(backend()).unwrap()).collect();
        sessions.iter().for_each(|session| plan.prepare(session).unwrap());
        let (gone, barrier) = (AtomicBool::new(false), Barrier::new(THREADS + 1));
        thread::scope(|scope| {
            for session in &sessions {
                scope.spawn(|| {
                    barrier.wait();
                    loop {
                        let was_gone = gone.load(Ordering::SeqCst);
                        let mut y = vec![f64::NAN; 2000];
                        match plan.spmv(session, 1.0, x, 0.0, &mut y) {
                            Ok(()) => {
                                assert!(!was_gone, "a call succeeded after destroy had returned");
                                assert!(bits(&y) == bits(&expected), "a call succeeded with other bits");
                            }
                            Err(error) => {
                                assert_eq!(error.status, dead, "{error}");
                                break;
                            }
                        }
                    }
                });
            }
            barrier.wait();
            thread::sleep(Duration::from_micros(300 * round));
            destroy(&plan, &sessions);
            gone.store(true, Ordering::SeqCst);
        });
    }
}

#[test]
fn a_plan_may_be_destroyed_while_others_execute_it() {
    destroy_while_others_execute(Status::InvalidValue, |plan, _| {
        check(plan_calls::tarsiaPlan_destroy(plan.raw())).unwrap();
        let again = check(plan_calls::tarsiaPlan_destroy(plan.raw())).unwrap_err();
        assert_eq!(again.status, Status::InvalidValue);
    });
}

#[test]
fn handles_may_be_destroyed_while_others_execute_with_them() {
    destroy_while_others_execute(Status::NotInitialized, |_, sessions| {
        for session in sessions {
            check(handle::tarsiaDestroy(session.raw())).unwrap();
        }
    });
}

/// The program may reuse A's memory when destroy has returned, on a device in the order of the streams that
/// the plan has run on (here the NULL stream): a call that another thread had begun before has either
/// finished or fails since the plan is gone.
#[test]
fn nobody_reads_the_matrix_after_its_plan_is_destroyed() {
    const NNZ: usize = 64;
    let (offsets, indices): (Vec<i32>, Vec<i32>) = ((0..=NNZ as i32).collect(), (0..NNZ as i32).collect());
    let (offsets, indices) = (upload(backend(), &offsets), upload(backend(), &indices));
    let (x, types) = (vec![1.0; NNZ], F64::TYPES);
    let nan = [f64::NAN; NNZ];
    for round in 0..300 {
        let mut values = upload(backend(), &[1.0; NNZ]);
        let place = values.part_mut(0..NNZ).as_mut_ptr();
        let session = Session::new(backend()).unwrap();
        let shape = (NNZ as i64, NNZ as i64);
        let a = Sparse::csr(shape, &offsets, &indices, &values, IndexBase::Zero).unwrap();
        let plan = Plan::spmv(&session, N, &a, (types.x, types.y), types.compute, SpmvAlg::Default).unwrap();
        plan.set_effort(Effort::Quick).unwrap();
        plan.analyze(&session).unwrap();
        assert_eq!(plan.info().unwrap().inPlace, 1, "the test is about arrays that are read in place");
        let barrier = Barrier::new(THREADS + 1);
        thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| {
                    let session = Session::new(backend()).unwrap();
                    let mut y = [f64::NAN; NNZ];
                    barrier.wait();
                    while plan.spmv(&session, 1.0, &x, 0.0, &mut y).is_ok() {
                        assert!(
                            y == [1.0; NNZ],
                            "round {round}: a call read the matrix after destroy: y[0] = {}",
                            y[0]
                        );
                    }
                });
            }
            barrier.wait();
            thread::sleep(Duration::from_micros(round));
            check(plan_calls::tarsiaPlan_destroy(plan.raw())).unwrap();
            // SAFETY: the memory holds that many values. The plan alone has read
            // them, and only until it was destroyed: this is what is tested.
            check(unsafe {
                let (h, bytes) = (memory(backend()).raw(), size_of_val(&nan));
                tarsiaMemcpyToDevice(h, place.cast(), nan.as_ptr().cast(), bytes)
            })
            .unwrap();
        });
    }
}

/// Allocator that makes calls of the library wait in their middle.
#[derive(Default)]
struct Gate {
    /// True if a call is waiting, and true if it may go on.
    state: Mutex<(bool, bool)>,
    changed: Condvar,
}

impl Gate {
    /// Allocation function, which waits until the gate is open.
    unsafe extern "C-unwind" fn allocate(
        gate: *mut c_void,
        bytes: usize,
        _stream: *mut c_void,
    ) -> *mut c_void {
        // SAFETY: the test keeps the gate until every object is destroyed.
        let gate = unsafe { &*gate.cast::<Gate>() };
        let mut state = gate.state.lock().unwrap();
        state.0 = true;
        gate.changed.notify_all();
        drop(gate.changed.wait_while(state, |state| !state.1).unwrap());
        let mut out = std::ptr::null_mut();
        // SAFETY: the answer is valid for a write.
        check(unsafe { tarsiaMalloc(memory(backend()).raw(), &mut out, bytes) }).unwrap();
        out
    }

    unsafe extern "C-unwind" fn free(
        _: *mut c_void,
        pointer: *mut c_void,
        _bytes: usize,
        _stream: *mut c_void,
    ) {
        // SAFETY: it came from tarsiaMalloc in `allocate`.
        check(unsafe { tarsiaFree(memory(backend()).raw(), pointer) }).unwrap();
    }

    fn wait_until_somebody_waits(&self) {
        drop(self.changed.wait_while(self.state.lock().unwrap(), |state| !state.0).unwrap());
    }

    fn open(&self) {
        self.state.lock().unwrap().1 = true;
        self.changed.notify_all();
    }
}

/// Checks that `destroy` of the plan or of the handle does not return while an analysis is in flight.
fn destroy_waits(destroy: impl Fn(&Session, &Plan<'_>) + Sync) {
    let gate = Gate::default();
    let a = LongRows::<f64>::new(Style::PLAIN, (50, 40), 200, 0);
    let session = Session::new(backend()).unwrap();
    let context = (&raw const gate).cast_mut().cast();
    // SAFETY: the functions are an allocator, and the gate outlives the
    // handle and the plan.
    let set =
        unsafe { handle::tarsiaSetAllocator(session.raw(), Some(Gate::allocate), Some(Gate::free), context) };
    check(set).unwrap();
    let stored = a.store(backend());
    let (types, descr) = (F64::TYPES, stored.open().unwrap());
    let plan = Plan::spmv(&session, N, &descr, (types.x, types.y), types.compute, SpmvAlg::Default).unwrap();
    let has_returned = AtomicBool::new(false);
    let returned_early = thread::scope(|scope| {
        let analysis = scope.spawn(|| plan.analyze(&session));
        gate.wait_until_somebody_waits();
        let destruction = scope.spawn(|| {
            destroy(&session, &plan);
            has_returned.store(true, Ordering::SeqCst);
        });
        // Long enough for a destroy that does not wait to return.
        thread::sleep(Duration::from_millis(100));
        let returned_early = has_returned.load(Ordering::SeqCst);
        gate.open();
        analysis.join().unwrap().unwrap();
        destruction.join().unwrap();
        returned_early
    });
    drop((plan, session));
    assert!(!returned_early, "destroy returned while an analysis was in flight");
}

#[test]
fn destroying_a_plan_waits_for_its_analysis() {
    destroy_waits(|_, plan| check(plan_calls::tarsiaPlan_destroy(plan.raw())).unwrap());
}

#[test]
fn destroying_a_handle_waits_for_its_calls() {
    destroy_waits(|session, _| check(handle::tarsiaDestroy(session.raw())).unwrap());
}

//! Tests with work in flight: calls that free memory do not wait for it, and streams wait for each other if
//! one changes what the other reads. A stream is blocked by work that the test ends; if a call waits for the
//! stream, this work ends by itself after [`Gate::PATIENCE`], which the test notices.
//!
//! The tests run one by one in a process of their own: if another thread of the process made the driver wait
//! for the device, as the first launch of a kernel does, calls of these tests would wait for that thread.

use client::Array;
use libc::c_void;
use tarsia::capi::memory as memory_calls;
use tarsia::facade::{fill, Gate};

use super::products::{DeviceProduct, World};
use super::*;

#[test]
fn nothing_waits_in_a_process_of_its_own() {
    if !is_skipped("in_flight") {
        run_alone(module_path!(), 7);
    }
}

const ROWS: usize = 3000;
const COLS: usize = 2000;
/// Lengths of arrays that may reuse freed memory.
const SIZES: [usize; 6] = [500, 2_000, 8_000, 30_000, 100_000, 400_000];

fn problem() -> Problem<f64> {
    Problem::new((ROWS, COLS), 30_000, 1500)
}

/// Makes every call once that the tests make while a stream is blocked: the driver loads kernels when they
/// are first needed, and waits for the device then.
fn warm_up(problem: &Problem<f64>, stored: &Stored<f64>) {
    let lane = Lane::new();
    let values = lane.session.upload(&problem.values).unwrap();
    // The driver also allocates memory for copies of this size.
    drop(SIZES.map(|size| lane.session.upload(&vec![f64::NAN; size]).unwrap()));
    for effort in [Effort::Quick, Effort::Default] {
        let plan = spmv_plan::<F64>(&lane.session, stored, effort);
        let x = lane.session.upload(&[1.0; COLS]).unwrap();
        let mut y = lane.session.upload(&[0.0; ROWS]).unwrap();
        plan.run_spmv(&lane.session, 1.0, &x, 0.0, &mut y).unwrap();
        plan.update_values(&lane.session, &values).unwrap();
        lane.session.synchronize().unwrap();
    }
}

/// Plans, handles, memory and streams are destroyed while work that uses them is waiting. This work
/// completes, and other work continues.
#[test]
#[ignore = "the test above runs it, in a process of its own"]
fn destroying_waits_for_no_work() {
    if is_skipped("in_flight::destroying_waits_for_no_work") {
        return;
    }
    let problem = problem();
    let stored = problem.store();
    warm_up(&problem, &stored);
    let keeper = Lane::new();
    let x: Vec<f64> = random(COLS, 1);
    for effort in [Effort::Quick, Effort::Default] {
        let mut y = keeper.session.upload(&[f64::NAN; ROWS]).unwrap();
        let held = Lane::new();
        let device_x = held.session.upload(&x).unwrap();
        let plan = spmv_plan::<F64>(&held.session, &stored, effort);
        let gate = Gate::close(&held.stream).unwrap();
        let held_by = |call: &str| assert!(gate.is_closed(), "{effort:?}: {call} has waited for the stream");
        plan.run_spmv(&held.session, 1.0, &device_x, 0.0, &mut y).unwrap();
        held_by("SpMV");
        drop(plan);
        held_by("Plan_destroy");
        drop(device_x);
        held_by("Free");
        let Lane { session, stream } = held;
        drop(session);
        held_by("Destroy");
        // The driver completes the work of the stream.
        drop(stream);
        held_by("cuStreamDestroy");
        // Freed memory may be reused only after the work that uses it.
        let others: Vec<_> =
            SIZES.iter().map(|&size| keeper.session.upload(&vec![f64::NAN; size]).unwrap()).collect();
        held_by("Malloc and MemcpyToDevice");
        let other = spmv_plan::<F64>(&keeper.session, &stored, effort);
        held_by("analyze");
        let other_x = keeper.session.upload(&x).unwrap();
        let mut other_y = keeper.session.upload(&[f64::NAN; ROWS]).unwrap();
        other.run_spmv(&keeper.session, 1.0, &other_x, 0.0, &mut other_y).unwrap();
        all_close::<F64>(CUDA, other_y.download().unwrap(), &problem.times(&x)).unwrap();
        held_by("SpMV of another stream");
        assert!(y.download().unwrap().iter().all(|y| y.is_nan()), "{effort:?}: the stream was not held");
        assert!(gate.open(), "{effort:?}: a call has waited for the stream");
        wait_for(&y);
        all_close::<F64>(CUDA, y.download().unwrap(), &problem.times(&x)).unwrap();
        drop(others);
    }
}

/// Destroys a plan, and what `let_go` destroys after it, while a product waits on a stream of theirs.
fn is_destroyed_while_it_works(world: &World, product: &DeviceProduct<'_>, let_go: impl Fn()) {
    let keeper = Lane::new();
    let expected = (product.expected)(&world.a.values);
    let result = || keeper.session.upload(&vec![f64::NAN; expected.len()]).unwrap();
    let others = || SIZES.map(|size| keeper.session.upload(&vec![f64::NAN; size]).unwrap());
    // Kernels are loaded and memory is allocated when they are first needed.
    {
        let lane = Lane::new();
        let (plan, mut first) = ((product.plan)(&lane.session), result());
        product.enqueue(&lane.session, &plan, &mut first);
        lane.session.synchronize().unwrap();
        drop(others());
        all_close::<F64>(CUDA, first.download().unwrap(), &expected).unwrap();
    }
    let mut found = result();
    let held = Lane::new();
    let plan = (product.plan)(&held.session);
    let gate = Gate::close(&held.stream).unwrap();
    let name = product.name;
    let held_by = |call: &str| assert!(gate.is_closed(), "{name}: {call} has waited for the stream");
    product.enqueue(&held.session, &plan, &mut found);
    held_by("the product");
    drop(plan);
    held_by("Plan_destroy");
    let_go();
    held_by("DestroySpMat");
    let Lane { session, stream } = held;
    drop(session);
    held_by("Destroy");
    // The stream lives until the work is done: cuStreamDestroy, the driver's own call, waits for some
    // products. These arrays would reuse memory that was freed too early.
    let others = others();
    held_by("Malloc and MemcpyToDevice");
    assert!(found.download().unwrap().iter().all(|value| value.is_nan()), "{name}: the stream was not held");
    assert!(gate.open(), "{name}: a call has waited for the stream");
    wait_for(&found);
    all_close::<F64>(CUDA, found.download().unwrap(), &expected)
        .unwrap_or_else(|error| panic!("{name}: {error}"));
    drop((others, stream));
}

#[test]
#[ignore = "the test above runs it, in a process of its own"]
fn destroying_plans_of_every_product_waits_for_no_work() {
    if is_skipped("in_flight::destroying_plans_of_every_product_waits_for_no_work") {
        return;
    }
    let world = World::new();
    for product in world.products() {
        is_destroyed_while_it_works(&world, &product, || {});
    }
}

/// Tiles have several owners, of which the last may be the plan, or the matrix, if that is destroyed later.
#[test]
#[ignore = "the test above runs it, in a process of its own"]
fn destroying_plans_and_matrices_in_tiles_waits_for_no_work() {
    if is_skipped("in_flight::destroying_plans_and_matrices_in_tiles_waits_for_no_work") {
        return;
    }
    let world = World::new();
    for plan_is_last in [true, false] {
        let (product, matrices) = world.of_tiles(plan_is_last);
        is_destroyed_while_it_works(&world, &product, || matrices.borrow_mut().clear());
    }
}

/// Waits until the result is there; its stream has been destroyed.
fn wait_for(y: &Array<'_, f64>) {
    let start = std::time::Instant::now();
    while y.download().unwrap().iter().any(|y| y.is_nan()) {
        assert!(start.elapsed() < Gate::PATIENCE, "the work was never done");
    }
}

/// Allocator that never reuses memory, and records the stream with which it was freed.
#[derive(Default)]
struct Freed {
    state: std::sync::Mutex<Vec<(usize, usize, usize)>>,
}

impl Freed {
    unsafe extern "C-unwind" fn allocate(_: *mut c_void, bytes: usize, _: *mut c_void) -> *mut c_void {
        let mut out = null_mut();
        // SAFETY: the answer is valid for a write.
        check(unsafe { memory_calls::tarsiaMalloc(memory(CUDA).raw(), &mut out, bytes) }).unwrap();
        out
    }

    unsafe extern "C-unwind" fn free(
        this: *mut c_void,
        memory: *mut c_void,
        bytes: usize,
        stream: *mut c_void,
    ) {
        // SAFETY: the test keeps it until every object is destroyed.
        let this = unsafe { &*this.cast::<Freed>() };
        this.state.lock().unwrap().push((memory.addr(), bytes, stream.addr()));
    }

    fn serve(&self, session: &Session) {
        let ctx = (&raw const *self).cast_mut().cast();
        // SAFETY: as above.
        check(unsafe {
            handle::tarsiaSetAllocator(session.raw(), Some(Freed::allocate), Some(Freed::free), ctx)
        })
        .unwrap();
    }
}

/// Memory from the user's functions is freed at once, with a stream that is made to wait.
#[test]
#[ignore = "the test above runs it, in a process of its own"]
fn a_users_memory_goes_back_in_order() {
    if is_skipped("in_flight::a_users_memory_goes_back_in_order") {
        return;
    }
    let problem = problem();
    let stored = problem.store();
    warm_up(&problem, &stored);
    let (keeper, freed) = (Lane::new(), Freed::default());
    let x: Vec<f64> = random(COLS, 1);
    let device_x = keeper.session.upload(&x).unwrap();
    let mut y = keeper.session.upload(&[f64::NAN; ROWS]).unwrap();
    let (user, owner) = (Lane::new(), Lane::new());
    freed.serve(&owner.session);
    let plan = spmv_plan::<F64>(&owner.session, &stored, Effort::Default);
    plan.prepare(&user.session).unwrap();
    let gate = Gate::close(&user.stream).unwrap();
    plan.run_spmv(&user.session, 1.0, &device_x, 0.0, &mut y).unwrap();
    drop(plan);
    let all = freed.state.lock().unwrap().clone();
    assert!(!all.is_empty(), "the memory was not given back");
    for &(address, bytes, stream) in &all {
        assert_eq!(stream, owner.stream.address().value());
        // That stream has to wait, so that this write comes after the product.
        // SAFETY: the plan had it and has let go of it.
        unsafe { fill(&owner.stream, address, bytes).unwrap() };
    }
    assert!(y.download().unwrap().iter().all(|y| y.is_nan()));
    assert!(gate.open(), "a call has waited for the stream");
    user.session.synchronize().unwrap();
    owner.session.synchronize().unwrap();
    all_close::<F64>(CUDA, y.download().unwrap(), &problem.times(&x)).unwrap();
}

/// A handle that changes its stream keeps its workspace: its next product begins after the last one on the
/// previous stream, which still uses the workspace.
#[test]
#[ignore = "the test above runs it, in a process of its own"]
fn a_handles_workspace_goes_from_stream_to_stream_in_order() {
    if is_skipped("in_flight::a_handles_workspace_goes_from_stream_to_stream_in_order") {
        return;
    }
    let problem = problem();
    let stored = problem.store();
    warm_up(&problem, &stored);
    let (keeper, held, other) = (Lane::new(), Lane::new(), Lane::new());
    let x: Vec<f64> = random(COLS, 1);
    let device_x = keeper.session.upload(&x).unwrap();
    let mut ys: Vec<_> = (0..3).map(|_| keeper.session.upload(&[f64::NAN; ROWS]).unwrap()).collect();
    let plan = spmv_plan::<F64>(&held.session, &stored, Effort::Default);
    let go_to = |lane: &Lane| {
        check(handle::tarsiaSetStream(held.session.raw(), lane.stream.address().as_mut_ptr())).unwrap();
    };
    let gate = Gate::close(&held.stream).unwrap();
    plan.run_spmv(&held.session, 1.0, &device_x, 0.0, &mut ys[0]).unwrap();
    go_to(&other);
    plan.run_spmv(&held.session, 1.0, &device_x, 0.0, &mut ys[1]).unwrap();
    // Another handle has a workspace of its own.
    plan.run_spmv(&keeper.session, 1.0, &device_x, 0.0, &mut ys[2]).unwrap();
    keeper.session.synchronize().unwrap();
    std::thread::sleep(std::time::Duration::from_millis(20));
    for y in &ys[..2] {
        assert!(y.download().unwrap().iter().all(|y| y.is_nan()), "two products had one workspace");
    }
    assert!(gate.open(), "a call has waited for the stream");
    held.session.synchronize().unwrap();
    go_to(&held);
    for y in &ys {
        all_close::<F64>(CUDA, y.download().unwrap(), &problem.times(&x)).unwrap();
    }
}

/// New values on one stream, products on another: each comes after what was enqueued before.
#[test]
#[ignore = "the test above runs it, in a process of its own"]
fn new_values_are_in_order_with_products_of_other_streams() {
    if is_skipped("in_flight::new_values_are_in_order_with_products_of_other_streams") {
        return;
    }
    let problem = problem();
    let stored = problem.store();
    warm_up(&problem, &stored);
    let mut new =
        Problem { pattern: problem.pattern.clone(), entries: problem.entries.clone(), values: vec![] };
    new.values = random(problem.values.len(), 77);
    let x: Vec<f64> = random(COLS, 1);
    let (old_product, new_product) = (problem.times(&x), new.times(&x));
    for effort in [Effort::Quick, Effort::Default] {
        let (one, two, keeper) = (Lane::new(), Lane::new(), Lane::new());
        let device_x = keeper.session.upload(&x).unwrap();
        let values = keeper.session.upload(&new.values).unwrap();
        let old_values = keeper.session.upload(&problem.values).unwrap();
        let plan = spmv_plan::<F64>(&one.session, &stored, effort);
        plan.prepare(&two.session).unwrap();
        let mut ys: Vec<_> = (0..3).map(|_| keeper.session.upload(&[f64::NAN; ROWS]).unwrap()).collect();
        // A product that waits: the new values come after it.
        let gate = Gate::close(&one.stream).unwrap();
        plan.run_spmv(&one.session, 1.0, &device_x, 0.0, &mut ys[0]).unwrap();
        plan.update_values(&two.session, &values).unwrap();
        plan.run_spmv(&two.session, 1.0, &device_x, 0.0, &mut ys[1]).unwrap();
        plan.run_spmv(&one.session, 1.0, &device_x, 0.0, &mut ys[2]).unwrap();
        assert!(gate.open(), "{effort:?}: a call has waited for the stream");
        one.session.synchronize().unwrap();
        two.session.synchronize().unwrap();
        all_close::<F64>(CUDA, ys[0].download().unwrap(), &old_product).unwrap();
        all_close::<F64>(CUDA, ys[1].download().unwrap(), &new_product).unwrap();
        all_close::<F64>(CUDA, ys[2].download().unwrap(), &new_product).unwrap();
        // New values that wait: products of other streams come after them.
        let gate = Gate::close(&two.stream).unwrap();
        plan.update_values(&two.session, &old_values).unwrap();
        plan.run_spmv(&one.session, 1.0, &device_x, 0.0, &mut ys[0]).unwrap();
        assert!(gate.open(), "{effort:?}: a call has waited for the stream");
        one.session.synchronize().unwrap();
        all_close::<F64>(CUDA, ys[0].download().unwrap(), &old_product).unwrap();
    }
}

/// New values and products on different streams, for every product. A numeric phase of SpGEMM changes the
/// plan, so it comes after all that was enqueued before it.
#[test]
#[ignore = "the test above runs it, in a process of its own"]
fn new_values_are_in_order_with_every_product_of_other_streams() {
    if is_skipped("in_flight::new_values_are_in_order_with_every_product_of_other_streams") {
        return;
    }
    let world = World::new();
    let (old_values, new_values) = (world.a.values.clone(), random(world.a.values.len(), 77));
    let (old, new) = (upload(CUDA, &old_values), upload(CUDA, &new_values));
    memory(CUDA).synchronize().unwrap();
    for product in world.products() {
        let (old_product, new_product) = ((product.expected)(&old_values), (product.expected)(&new_values));
        let (one, two, keeper) = (Lane::new(), Lane::new(), Lane::new());
        let mut found: Vec<_> =
            (0..3).map(|_| keeper.session.upload(&vec![f64::NAN; old_product.len()]).unwrap()).collect();
        let plan = (product.plan)(&one.session);
        plan.prepare(&two.session).unwrap();
        // Kernels are loaded when they are first needed.
        for lane in [&one, &two] {
            product.enqueue(&lane.session, &plan, &mut found[0]);
            plan.update_values(&lane.session, &old).unwrap();
            lane.session.synchronize().unwrap();
        }
        found[0].write(0, &vec![f64::NAN; old_product.len()]).unwrap();
        keeper.session.synchronize().unwrap();
        let what = product.name;
        let is = |found: &Array<'_, f64>, expected: &[Sum<f64>], which: &str| {
            all_close::<F64>(CUDA, found.download().unwrap(), expected)
                .unwrap_or_else(|error| panic!("{what}, {which}: {error}"));
        };
        // A product that waits: the new values come after it.
        let gate = Gate::close(&one.stream).unwrap();
        product.enqueue(&one.session, &plan, &mut found[0]);
        plan.update_values(&two.session, &new).unwrap();
        product.enqueue(&two.session, &plan, &mut found[1]);
        product.enqueue(&one.session, &plan, &mut found[2]);
        assert!(gate.open(), "{what}: a call has waited for the stream");
        one.session.synchronize().unwrap();
        two.session.synchronize().unwrap();
        is(&found[0], &old_product, "before the new values");
        is(&found[1], &new_product, "after them on their stream");
        is(&found[2], &new_product, "after them on the other stream");
        // New values that wait: products of other streams come after them.
        let gate = Gate::close(&two.stream).unwrap();
        plan.update_values(&two.session, &old).unwrap();
        product.enqueue(&one.session, &plan, &mut found[0]);
        assert!(gate.open(), "{what}: a call has waited for the stream");
        one.session.synchronize().unwrap();
        is(&found[0], &old_product, "after new values that wait");
    }
}

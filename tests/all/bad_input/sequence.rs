//! Tests of calls in an order that is not allowed, of plans of another backend, and of workspaces that are
//! too small.

use std::ptr::null_mut;

use client::{arg, check, last_message, Array, Memory};
use tarsia::capi::enums::tarsiaStatus_t;
use tarsia::capi::objects::tarsiaPlan_t;
use tarsia::capi::{dnmat, dnvec, handle, plan, spgemm, spmat, spmm, spmv};
use tarsia::facade::{
    BackendKind, ComputeType, DataType, Effort, Format, IndexBase, IndexType, Operation, Order, Reorder,
    SpmmAlg, SpmvAlg, Status,
};

use super::bad::{accepts, failed, forget_message, refuses};
use super::sparse::Create;
use super::world::{made, World};
use crate::common::staged::{first_workspace, upload};
use crate::common::{backend, backends};

const F64: DataType = DataType::R64F;
const N: Operation = Operation::NonTranspose;

/// Makes a call that must fail with `INVALID_STATE` and this reason.
#[track_caller]
fn not_now(what: &str, name: &str, call: impl FnOnce() -> tarsiaStatus_t) {
    refuses(what, Status::InvalidState, name, call);
}

#[test]
fn calls_before_analysis() {
    for kind in backends() {
        let world = World::new(kind);
        let (h, a) = (world.handle, world.a());
        let (one, zero) = ((&raw const world.one).cast(), (&raw const world.zero).cast());
        let (spmv, spmm, spgemm) = (world.new_spmv(), world.new_spmm(), world.new_spgemm());
        // SAFETY: the world's objects describe its arrays, and
        // answers are valid for a write.
        unsafe {
            let values = (&raw const (*a).values).cast();
            let (mut bytes, mut nnz) = (7, 7);
            not_now("SpMV", "plan", || spmv::tarsiaSpMV(h, spmv, one, world.x, zero, world.y));
            not_now("SpMM", "plan", || spmm::tarsiaSpMM(h, spmm, one, world.b, zero, world.c));
            not_now("symbolic", "plan", || spgemm::tarsiaSpGEMM_symbolic(h, spgemm, &mut nnz));
            not_now("numeric", "plan", || spgemm::tarsiaSpGEMM_numeric(h, spgemm, one, world.product));
            not_now("SpGEMM values", "plan", || spgemm::tarsiaSpGEMM_updateValues(h, spgemm, values, values));
            for plan in [spmv, spmm, spgemm] {
                not_now("workspaceSize", "plan", || plan::tarsiaPlan_workspaceSize(plan, 1, &mut bytes));
                not_now("prepare", "plan", || plan::tarsiaPlan_prepare(h, plan));
                not_now("updateValues", "plan", || plan::tarsiaPlan_updateValues(h, plan, values));
            }
            assert_eq!((bytes, nnz), (7, 7), "an answer was written");
            // The numeric phase needs the symbolic one, also after analysis.
            for plan in [spmv, spmm, spgemm] {
                accepts("analyze", plan::tarsiaPlan_analyze(h, plan));
            }
            not_now("numeric", "plan", || spgemm::tarsiaSpGEMM_numeric(h, spgemm, one, world.product));
            accepts("symbolic", spgemm::tarsiaSpGEMM_symbolic(h, spgemm, &mut nnz));
            accepts("symbolic again", spgemm::tarsiaSpGEMM_symbolic(h, spgemm, &mut nnz));
            accepts("numeric", spgemm::tarsiaSpGEMM_numeric(h, spgemm, one, world.product));
            accepts("SpMV", spmv::tarsiaSpMV(h, spmv, one, world.x, zero, world.y));
            accepts("SpMM", spmm::tarsiaSpMM(h, spmm, one, world.b, zero, world.c));
        }
        for plan in [spmv, spmm, spgemm] {
            accepts("destroy", plan::tarsiaPlan_destroy(plan));
            refuses("destroyed twice", Status::InvalidValue, "plan", || plan::tarsiaPlan_destroy(plan));
        }
        world.verify();
    }
}

#[test]
fn settings_after_analysis() {
    for kind in backends() {
        let world = World::new(kind);
        for plan in [world.spmv, world.spmm, world.spgemm] {
            not_now("analyze twice", "plan", || plan::tarsiaPlan_analyze(world.handle, plan));
            not_now("setEffort", "plan", || plan::tarsiaPlan_setEffort(plan, arg(Effort::Quick)));
            not_now("setReorder", "plan", || plan::tarsiaPlan_setReorder(plan, arg(Reorder::None)));
            not_now("setValueUpdates", "plan", || plan::tarsiaPlan_setValueUpdates(plan, 1));
            not_now("setValuesInPlace", "plan", || plan::tarsiaPlan_setValuesInPlace(plan, 1));
            not_now("setExpectedExecutes", "plan", || plan::tarsiaPlan_setExpectedExecutes(plan, 1));
            not_now("setMemoryLimit", "plan", || plan::tarsiaPlan_setMemoryLimit(plan, 1 << 30));
        }
        not_now("setSortedOutput", "plan", || plan::tarsiaPlan_setSortedOutput(world.spgemm, 0));
        not_now("setBlockDims", "plan", || plan::tarsiaPlan_setBlockDims(world.spmm, 16, 8));
        world.verify();
    }
}

#[test]
fn plans_of_another_operation() {
    for kind in backends() {
        let world = World::new(kind);
        let h = world.handle;
        let (one, zero) = ((&raw const world.one).cast(), (&raw const world.zero).cast());
        let wrong = |what: &str, call: &dyn Fn() -> tarsiaStatus_t| {
            refuses(what, Status::InvalidValue, "plan", call);
        };
        let mut nnz = 7;
        let answer = &raw mut nnz;
        // SAFETY: the world's objects describe its arrays, and
        // answers are valid for a write.
        unsafe {
            for plan in [world.spmm, world.spgemm] {
                wrong("SpMV", &|| spmv::tarsiaSpMV(h, plan, one, world.x, zero, world.y));
            }
            for plan in [world.spmv, world.spgemm] {
                wrong("SpMM", &|| spmm::tarsiaSpMM(h, plan, one, world.b, zero, world.c));
            }
            for plan in [world.spmv, world.spmm] {
                wrong("symbolic", &|| spgemm::tarsiaSpGEMM_symbolic(h, plan, answer));
                wrong("numeric", &|| spgemm::tarsiaSpGEMM_numeric(h, plan, one, world.product));
                wrong("values", &|| spgemm::tarsiaSpGEMM_updateValues(h, plan, one, one));
            }
            for plan in [world.fresh_plan(), world.fresh_spgemm()] {
                wrong("setBlockDims", &|| plan::tarsiaPlan_setBlockDims(plan, 16, 8));
            }
        }
        assert_eq!(nnz, 7);
        world.verify();
    }
}

#[test]
fn blocks_that_do_not_exist() {
    for kind in backends() {
        let world = World::new(kind);
        let plan = world.fresh_spmm();
        for (rows, cols, argument) in [
            (16, 0, "colBlockDim"),
            (16, 12, "colBlockDim"),
            (0, 8, "colBlockDim"),
            (8, 8, "rowBlockDim"),
            (-16, 8, "rowBlockDim"),
        ] {
            let what = format!("{rows} × {cols}");
            refuses(&what, Status::InvalidValue, argument, || {
                plan::tarsiaPlan_setBlockDims(plan, rows, cols)
            });
        }
        // The plan has the default algorithm.
        accepts("16 × 8", plan::tarsiaPlan_setBlockDims(plan, 16, 8));
        refuses("by default", Status::NotSupported, "colBlockDim", || {
            plan::tarsiaPlan_analyze(world.handle, plan)
        });
        accepts("0 × 0", plan::tarsiaPlan_setBlockDims(plan, 0, 0));
        accepts("analyze", plan::tarsiaPlan_analyze(world.handle, plan));
        world.verify();
    }
}

#[test]
fn plans_of_another_backend() {
    let (tested, reference) = (World::new(backend()), World::new(BackendKind::Reference));
    for (world, other) in [(&tested, &reference), (&reference, &tested)] {
        let h = other.handle;
        let (one, zero) = ((&raw const world.one).cast(), (&raw const world.zero).cast());
        let wrong = |what: &str, call: &dyn Fn() -> tarsiaStatus_t| {
            refuses(what, Status::InvalidValue, "handle", call);
            for backend in [backend(), BackendKind::Reference].map(BackendKind::c_name) {
                let message = last_message();
                assert!(message.contains(backend), "{what}: `{message}` does not name {backend}");
            }
        };
        let new = world.new_spmv();
        let mut nnz = 7;
        let answer = &raw mut nnz;
        // SAFETY: the world's objects describe its arrays, and
        // answers are valid for a write.
        unsafe {
            let values = (&raw const (*world.a()).values).cast();
            wrong("analyze", &|| plan::tarsiaPlan_analyze(h, new));
            for plan in [world.spmv, world.spmm, world.spgemm] {
                wrong("prepare", &|| plan::tarsiaPlan_prepare(h, plan));
                wrong("updateValues", &|| plan::tarsiaPlan_updateValues(h, plan, values));
            }
            wrong("SpMV", &|| spmv::tarsiaSpMV(h, world.spmv, one, world.x, zero, world.y));
            wrong("SpMM", &|| spmm::tarsiaSpMM(h, world.spmm, one, world.b, zero, world.c));
            wrong("symbolic", &|| spgemm::tarsiaSpGEMM_symbolic(h, world.spgemm, answer));
            wrong("numeric", &|| spgemm::tarsiaSpGEMM_numeric(h, world.spgemm, one, world.product));
            wrong("values", &|| spgemm::tarsiaSpGEMM_updateValues(h, world.spgemm, values, values));
        }
        accepts("destroy", plan::tarsiaPlan_destroy(new));
    }
    tested.verify();
    reference.verify();
}

#[test]
fn backends_and_devices_that_are_not_there() {
    for (backend, device, status, name) in [
        (BackendKind::Host, 1, Status::InvalidValue, "device"),
        (BackendKind::Host, -1, Status::InvalidValue, "device"),
        (BackendKind::Reference, 7, Status::InvalidValue, "device"),
    ] {
        let mut made = null_mut();
        // SAFETY: the answer is valid for a write.
        refuses("create", status, name, || unsafe {
            handle::tarsiaCreateWithBackend(&mut made, arg(backend), device)
        });
        assert!(made.is_null());
    }
    // Support for CUDA depends on the machine: the call returns a handle, or an error that is not the
    // library's fault.
    let mut made = null_mut();
    forget_message();
    // SAFETY: the answer is valid for a write.
    let code = unsafe { handle::tarsiaCreateWithBackend(&mut made, arg(BackendKind::Cuda), 0) };
    if code == tarsiaStatus_t::TARSIA_STATUS_SUCCESS {
        accepts("destroy", handle::tarsiaDestroy(made));
    } else {
        // The driver is missing, or the build has no kernels.
        let status = if cfg!(tarsia_kernels) { Status::NotInitialized } else { Status::NotSupported };
        failed(code, status).unwrap();
        assert!(made.is_null() && last_message().contains("CUDA"), "{}", last_message());
    }
}

/// The allocator of a handle cannot be changed after its first plan.
#[test]
fn allocator_after_a_plan() {
    for kind in backends() {
        let world = World::new(kind);
        let (h, fresh) = (world.handle, world.fresh_handle());
        // SAFETY: both functions are NULL: the library's own are taken.
        let set = |handle| unsafe { handle::tarsiaSetAllocator(handle, None, None, null_mut()) };
        not_now("SetAllocator", "handle", || set(h));
        accepts("SetAllocator", set(fresh));
        // It stays fixed after the plan is destroyed.
        accepts("destroy", plan::tarsiaPlan_destroy(world.new_spmv()));
        not_now("SetAllocator", "handle", || set(h));
        world.verify();
    }
}

#[test]
fn effort_that_deterministic_mode_forbids() {
    for kind in backends() {
        let world = World::new(kind);
        let plan = world.fresh_plan();
        accepts("setEffort", plan::tarsiaPlan_setEffort(plan, arg(Effort::Tuned)));
        accepts("SetDeterministic", handle::tarsiaSetDeterministic(world.handle, 1));
        refuses("analyze", Status::NotSupported, "plan", || plan::tarsiaPlan_analyze(world.handle, plan));
        accepts("SetDeterministic", handle::tarsiaSetDeterministic(world.handle, 0));
        accepts("analyze", plan::tarsiaPlan_analyze(world.handle, plan));
        world.tidy();
    }
}

/// Entries of a row that is so long that every backend splits it.
const LONG: usize = 70_000;

struct LongRow {
    kind: BackendKind,
    plan: [tarsiaPlan_t; 2],
    _arrays: (Array<'static, i32>, Array<'static, i32>, Array<'static, f64>),
}

impl LongRow {
    /// Creates plans for SpMV and for SpMM with 2 columns, without analysis.
    fn new(world: &World) -> Self {
        let kind = world.kind;
        let indices: Vec<i32> = (0..LONG as i32).collect();
        let arrays =
            (upload(kind, &[0, LONG as i32]), upload(kind, &indices), upload(kind, &vec![1.0; LONG]));
        let create = Create {
            shape: (1, LONG as i64),
            nnz: LONG as i64,
            index: IndexType::I32,
            base: IndexBase::Zero,
            arrays: [
                arrays.0.view().as_ptr().expose_provenance(),
                arrays.1.view().as_ptr().expose_provenance(),
                arrays.2.view().as_ptr().expose_provenance(),
            ],
            ..Create::new(Format::Csr)
        };
        let mut a = null_mut();
        accepts("create", create.call(&mut a));
        let (h, f, r, order) = (world.handle, arg(F64), arg(ComputeType::R64F), arg(Order::Col));
        // SAFETY: the answers are valid for a write; the arrays stay.
        let spmv = made(|out| unsafe {
            spmv::tarsiaSpMV_createPlan(h, out, arg(N), a, f, f, r, arg(SpmvAlg::Default))
        });
        // SAFETY: as above.
        let spmm = made(|out| unsafe {
            spmm::tarsiaSpMM_createPlan(
                h,
                out,
                arg(N),
                arg(N),
                a,
                order,
                order,
                2,
                f,
                f,
                r,
                arg(SpmmAlg::Default),
            )
        });
        // Plans outlive the descriptor.
        accepts("destroy", spmat::tarsiaDestroySpMat(a));
        LongRow { kind, plan: [spmv, spmm], _arrays: arrays }
    }

    fn workspace(&self, which: usize, n: i64) -> usize {
        let mut bytes = 0;
        // SAFETY: the answer is valid for a write.
        check(unsafe { plan::tarsiaPlan_workspaceSize(self.plan[which], n, &mut bytes) }).unwrap();
        bytes
    }

    /// Executes a product with `n` columns, whose result must be right.
    fn execute(
        &self,
        handle: tarsia::capi::objects::tarsiaHandle_t,
        which: usize,
        n: usize,
    ) -> tarsiaStatus_t {
        let (one, zero) = (1.0_f64, 0.0_f64);
        let (one, zero) = ((&raw const one).cast(), (&raw const zero).cast());
        let mut b = upload(self.kind, &vec![0.5_f64; LONG * n]);
        let mut c = upload(self.kind, &vec![f64::NAN; n]);
        let (x, y) = (b.part_mut(0..LONG * n).as_mut_ptr().cast(), c.part_mut(0..n).as_mut_ptr().cast());
        let rows = LONG as i64;
        // SAFETY: the descriptors say what the vectors hold; alpha and beta are f64.
        let code = unsafe {
            if which == 0 {
                let x = made(|out| dnvec::tarsiaCreateDnVec(out, rows, x, arg(F64)));
                let y = made(|out| dnvec::tarsiaCreateDnVec(out, 1, y, arg(F64)));
                let code = spmv::tarsiaSpMV(handle, self.plan[0], one, x, zero, y);
                [x, y].into_iter().for_each(|vector| accepts("destroy", dnvec::tarsiaDestroyDnVec(vector)));
                code
            } else {
                let (f, order) = (arg(F64), arg(Order::Col));
                let x = made(|out| dnmat::tarsiaCreateDnMat(out, rows, n as i64, rows, x, f, order));
                let y = made(|out| dnmat::tarsiaCreateDnMat(out, 1, n as i64, 1, y, f, order));
                let code = spmm::tarsiaSpMM(handle, self.plan[1], one, x, zero, y);
                [x, y].into_iter().for_each(|matrix| accepts("destroy", dnmat::tarsiaDestroyDnMat(matrix)));
                code
            }
        };
        let c = c.download().unwrap();
        let expected =
            if code == tarsiaStatus_t::TARSIA_STATUS_SUCCESS { LONG as f64 / 2.0 } else { f64::NAN };
        assert!(c.iter().all(|&sum| sum.to_bits() == expected.to_bits()), "C after {code:?}: {c:?}");
        code
    }
}

impl Drop for LongRow {
    fn drop(&mut self) {
        for plan in self.plan {
            plan::tarsiaPlan_destroy(plan);
        }
    }
}

/// Makes a call that must fail with `INSUFFICIENT_RESOURCES` and the bytes in the text.
#[track_caller]
fn too_small(what: &str, bytes: usize, call: impl FnOnce() -> tarsiaStatus_t) {
    forget_message();
    super::bad::names(call(), Status::InsufficientResources, "handle")
        .unwrap_or_else(|error| panic!("{what}: {error}"));
    let message = last_message();
    let mut words = message.split(|c: char| !c.is_ascii_digit());
    assert!(words.any(|word| word == bytes.to_string()), "{what}: `{message}` does not say {bytes}");
}

#[test]
fn workspaces_that_are_too_small() {
    for kind in backends() {
        let world = World::new(kind);
        let long = LongRow::new(&world);
        // Analysis of the world's own plans has grown the workspace of its handle.
        let handle = world.fresh_handle();
        // The user's workspace is set before analysis, which does not change it.
        let set = |bytes: usize, memory: *mut u8| {
            let memory = if bytes == 0 { null_mut() } else { memory };
            // SAFETY: the memory has at least that many bytes.
            accepts("SetWorkspace", unsafe { handle::tarsiaSetWorkspace(handle, memory.cast(), bytes) });
        };
        const MEMORY: usize = 16 << 20;
        let mut memory = upload(kind, &vec![0_u8; MEMORY]);
        let memory = memory.part_mut(0..MEMORY).as_mut_ptr();
        set(1, memory);
        for (which, n) in [(0, 1), (1, 2), (1, 5)] {
            let plan = long.plan[which];
            if n != 5 {
                accepts("analyze", plan::tarsiaPlan_analyze(handle, plan));
            }
            let what = format!("{kind:?}: plan {which}, {n} columns");
            let needed = long.workspace(which, n as i64);
            if kind == BackendKind::Cuda && needed <= 1 {
                accepts(&what, long.execute(handle, which, n));
                continue;
            }
            assert!(needed > 1, "{what}: a long row needs a workspace");
            assert!(needed <= MEMORY, "{what}: {needed} bytes are more than this test has");
            too_small(&what, needed, || long.execute(handle, which, n));
            set(needed - 1, memory);
            too_small(&what, needed, || long.execute(handle, which, n));
            if n != 5 {
                too_small(&what, needed, || plan::tarsiaPlan_prepare(handle, plan));
            }
            set(needed, memory);
            accepts(&what, long.execute(handle, which, n));
            accepts("prepare", plan::tarsiaPlan_prepare(handle, plan));
            set(1, memory);
        }
        // Back to the handle's own workspace, which has not grown so far.
        set(0, memory);
        let needed = [long.workspace(0, 1), long.workspace(1, 2)];
        if needed[0] > first_workspace(kind) {
            too_small("own", needed[0], || long.execute(handle, 0, 1));
        }
        accepts("prepare", plan::tarsiaPlan_prepare(handle, long.plan[0]));
        accepts("own", long.execute(handle, 0, 1));
        accepts("prepare", plan::tarsiaPlan_prepare(handle, long.plan[1]));
        accepts("own", long.execute(handle, 1, 2));
        // A product that needs less workspace than before succeeds.
        accepts("own", long.execute(handle, 0, 1));
        world.verify();
    }
}

/// Every handle that executes must be prepared, except the one that analyzed.
#[test]
fn handles_that_were_not_prepared() {
    for kind in backends() {
        let world = World::new(kind);
        let long = LongRow::new(&world);
        let other = world.fresh_handle();
        for (which, n) in [(0, 1), (1, 2)] {
            accepts("analyze", plan::tarsiaPlan_analyze(world.handle, long.plan[which]));
            accepts("the handle of analyze", long.execute(world.handle, which, n));
        }
        for (which, n) in [(0, 1), (1, 2)] {
            let needed = long.workspace(which, n as i64);
            let own = if which == 0 { 0 } else { long.workspace(0, 1) }.max(first_workspace(kind));
            if needed > own {
                too_small("another handle", needed, || long.execute(other, which, n));
            }
            accepts("prepare", plan::tarsiaPlan_prepare(other, long.plan[which]));
            accepts("prepared", long.execute(other, which, n));
        }
    }
}

//! Tests with ordinary host memory, which a device cannot use: the library must refuse it, since a kernel
//! that accessed it would destroy the device's context. Arrays of matrices, new values and workspaces are
//! always checked, the operands of products with tarsiaSetChecks.

use std::ptr::{null, null_mut};

use client::{arg, last_message};
use libc::c_void;
use tarsia::capi::enums::tarsiaStatus_t;
use tarsia::capi::objects::tarsiaSpMatDescr_t;
use tarsia::capi::{dnmat, dnvec, handle, plan, spgemm, spmat, spmm, spmv};
use tarsia::facade::{
    BackendKind, ComputeType, DataType, Device, Format, IndexType, Operation, Order, PointerMode, SpgemmAlg,
    SpmmAlg, SpmvAlg, Status,
};

use super::bad::{accepts, forget_message, mentions, names};
use super::sparse::Create;
use super::world::{made, World};
use crate::common::staged::upload;
use crate::common::{backend, backends, skip};

const F64: DataType = DataType::R64F;
const N: Operation = Operation::NonTranspose;
const R64: ComputeType = ComputeType::R64F;

/// Returns whether to skip these tests: they need a device that cannot read host memory.
fn is_skipped() -> bool {
    if backend() != BackendKind::Cuda {
        skip("host_memory: TARSIA_TEST_BACKEND is not cuda");
        return true;
    }
    let reads_all = Device::open(Some(0)).unwrap().properties().pageable_memory;
    if reads_all {
        skip("host_memory: this device reads ordinary host memory");
    }
    reads_all
}

#[test]
fn matrices_in_host_memory() {
    if is_skipped() {
        return;
    }
    let world = World::new(BackendKind::Cuda);
    let h = world.handle;
    // A 4 × 4 matrix with one entry per row; for COO the offsets serve as row indices.
    let (offsets, indices, values) = (vec![0_i32, 1, 2, 3, 4], vec![0_i32, 1, 2, 3], vec![1.0_f64; 4]);
    let host = [
        offsets.as_ptr().expose_provenance(),
        indices.as_ptr().expose_provenance(),
        values.as_ptr().expose_provenance(),
    ];
    let (mut o, mut i, mut v) =
        (upload(world.kind, &offsets), upload(world.kind, &indices), upload(world.kind, &values));
    let device = [
        o.part_mut(0..5).as_mut_ptr().expose_provenance(),
        i.part_mut(0..4).as_mut_ptr().expose_provenance(),
        v.part_mut(0..4).as_mut_ptr().expose_provenance(),
    ];
    let create = |format, arrays| -> tarsiaSpMatDescr_t {
        let (shape, nnz, block) = ((4, 4), 4, (1, 1));
        let create = Create { shape, nnz, block, arrays, index: IndexType::I32, ..Create::new(format) };
        let mut a = null_mut();
        accepts("create", create.call(&mut a));
        a
    };
    for format in [Format::Csr, Format::Csc, Format::Coo, Format::Bsr] {
        for wrong in 0..3 {
            // COO's row indices are the first four offsets.
            let mut arrays = device;
            arrays[wrong] = host[wrong];
            let (a, good) = (create(format, arrays), create(Format::Csr, device));
            let array = Create::new(format).names()[wrong];
            let refused = |what: &str, name: &str, code: tarsiaStatus_t| {
                let what = format!("{what} of {} with {array} in host memory", format.short());
                names(code, Status::InvalidValue, name)
                    .and_then(|()| mentions(code, Status::InvalidValue, array))
                    .unwrap_or_else(|error| panic!("{what}: {error}"));
                assert!(last_message().contains("host memory"), "{what}: {}", last_message());
            };
            let (f, r, order) = (arg(F64), arg(R64), arg(Order::Col));
            let mut plans = Vec::new();
            // SAFETY: answers are valid for a write, and nothing is read
            // through the arrays that are refused.
            unsafe {
                forget_message();
                refused("CheckSpMat", "A", spmat::tarsiaCheckSpMat(h, a, null_mut(), null_mut()));
                let alg = arg(SpmvAlg::Default);
                let spmv = made(|out| spmv::tarsiaSpMV_createPlan(h, out, arg(N), a, f, f, r, alg));
                plans.push(("SpMV", "A", spmv));
                let spmm = made(|out| {
                    let alg = arg(SpmmAlg::Default);
                    spmm::tarsiaSpMM_createPlan(h, out, arg(N), arg(N), a, order, order, 2, f, f, r, alg)
                });
                plans.push(("SpMM", "A", spmm));
                if matches!(format, Format::Csr | Format::Csc) {
                    for (name, left, right) in [("A", a, good), ("B", good, a)] {
                        let plan = made(|out| {
                            let alg = arg(SpgemmAlg::Default);
                            spgemm::tarsiaSpGEMM_createPlan(h, out, arg(N), arg(N), left, right, r, alg)
                        });
                        plans.push(("SpGEMM", name, plan));
                    }
                }
            }
            for (what, name, plan) in plans {
                forget_message();
                refused(what, name, plan::tarsiaPlan_analyze(h, plan));
                accepts("destroy", plan::tarsiaPlan_destroy(plan));
            }
            accepts("destroy", spmat::tarsiaDestroySpMat(a));
            accepts("destroy", spmat::tarsiaDestroySpMat(good));
            world.verify();
        }
    }
}

/// Checks that the call is refused because the device, or the host, cannot use the memory of this argument.
#[track_caller]
fn is_refused(what: &str, name: &str, word: &str, call: impl FnOnce() -> tarsiaStatus_t) {
    forget_message();
    names(call(), Status::InvalidValue, name).unwrap_or_else(|error| panic!("{what}: {error}"));
    assert!(last_message().contains(word), "{what}: {}", last_message());
}

#[test]
fn new_values_and_workspaces_in_host_memory() {
    if is_skipped() {
        return;
    }
    let world = World::new(BackendKind::Cuda);
    let h = world.handle;
    let values = [1.0_f64, 2.0, 3.0, 4.0, 5.0];
    let mut on_device = upload(world.kind, &values);
    let good: *const c_void = on_device.part_mut(0..5).as_mut_ptr().cast_const().cast();
    let bad: *const c_void = values.as_ptr().cast();
    // SAFETY: nothing is read through the addresses that are refused, and the others have all values.
    unsafe {
        for plan in [world.spmv, world.spmm, world.spgemm] {
            let update = |values| plan::tarsiaPlan_updateValues(h, plan, values);
            is_refused("updateValues", "newValues", "host memory", || update(bad));
            accepts("updateValues", update(good));
        }
        let update = |a, b| spgemm::tarsiaSpGEMM_updateValues(h, world.spgemm, a, b);
        is_refused("updateValues of A", "newValuesA", "host memory", || update(bad, good));
        is_refused("updateValues of B", "newValuesB", "host memory", || update(good, bad));
        is_refused("updateValues of B", "newValuesB", "host memory", || update(null(), bad));
        let mut workspace = [0_u128; 64];
        let set = |ptr: *mut u128, bytes| handle::tarsiaSetWorkspace(h, ptr.cast(), bytes);
        is_refused("workspace", "ptr", "host memory", || set(workspace.as_mut_ptr(), 1024));
        let mut workspace = upload(world.kind, &workspace);
        accepts("workspace", set(workspace.part_mut(0..64).as_mut_ptr(), 1024));
        accepts("workspace", set(null_mut(), 0));
    }
    world.verify();
}

/// With checks, operands in host memory are refused before a kernel reads them, and so are scalars in device
/// memory that are read on the host.
#[test]
fn operands_in_host_memory_with_checks() {
    if is_skipped() {
        return;
    }
    let world = World::new(BackendKind::Cuda);
    let h = world.handle;
    let mut host = [1.0_f64; 8];
    let mut on_device = upload(world.kind, &[1.0_f64; 2]);
    let scalar: *const c_void = on_device.part_mut(0..2).as_mut_ptr().cast_const().cast();
    let (one, zero): (*const c_void, *const c_void) =
        ((&raw const world.one).cast(), (&raw const world.zero).cast());
    let (f, op, compute) = (arg(F64), arg(N), arg(R64));
    let vector = |size: i64, values: *mut f64| {
        // SAFETY: the answer is valid for a write.
        made(|out| unsafe { dnvec::tarsiaCreateDnVec(out, size, values.cast(), f) })
    };
    let (x, y) = (vector(4, host.as_mut_ptr()), vector(3, host.as_mut_ptr()));
    let matrix = |rows: i64, values: *mut f64| {
        let order = arg(Order::Col);
        // SAFETY: the answer is valid for a write.
        made(|out| unsafe { dnmat::tarsiaCreateDnMat(out, rows, 2, rows, values.cast(), f, order) })
    };
    let (b, c) = (matrix(4, host.as_mut_ptr()), matrix(3, host.as_mut_ptr()));
    accepts("checks", handle::tarsiaSetChecks(h, 1));
    // The plans were analyzed with checks on.
    // SAFETY: answers are valid for a write.
    let (spmv, spmm, spgemm) = unsafe {
        (
            made(|out| {
                spmv::tarsiaSpMV_createPlan(h, out, op, world.csr, f, f, compute, arg(SpmvAlg::Default))
            }),
            made(|out| {
                let (order, alg) = (arg(Order::Col), arg(SpmmAlg::Default));
                spmm::tarsiaSpMM_createPlan(h, out, op, op, world.csr, order, order, 2, f, f, compute, alg)
            }),
            made(|out| {
                let alg = arg(SpgemmAlg::Default);
                spgemm::tarsiaSpGEMM_createPlan(h, out, op, op, world.csr, world.transposed, compute, alg)
            }),
        )
    };
    for plan in [spmv, spmm, spgemm] {
        accepts("analyze", plan::tarsiaPlan_analyze(h, plan));
    }
    let mut nnz = 0_i64;
    // SAFETY: nothing is read through what is refused; the descriptors' arrays are there, and the scalars.
    unsafe {
        accepts("symbolic", spgemm::tarsiaSpGEMM_symbolic(h, spgemm, &mut nnz));
        let host_mode: [(&str, &dyn Fn() -> tarsiaStatus_t, &str, &str); 11] = [
            ("SpMV", &|| spmv::tarsiaSpMV(h, spmv, one, x, zero, world.y), "x", "host memory"),
            ("SpMV", &|| spmv::tarsiaSpMV(h, spmv, one, world.x, zero, y), "y", "host memory"),
            ("SpMV", &|| spmv::tarsiaSpMV(h, spmv, scalar, world.x, zero, world.y), "alpha", "device memory"),
            ("SpMV", &|| spmv::tarsiaSpMV(h, spmv, one, world.x, scalar, world.y), "beta", "device memory"),
            (
                "SpMV, z",
                &|| spmv::tarsiaSpMV_into(h, spmv, one, world.x, one, y, world.y),
                "y",
                "host memory",
            ),
            (
                "SpMV, once",
                &|| spmv::tarsiaSpMV_once(h, op, one, world.csr, x, zero, world.y, compute),
                "x",
                "host memory",
            ),
            ("SpMM", &|| spmm::tarsiaSpMM(h, spmm, one, b, zero, world.c), "B", "host memory"),
            ("SpMM", &|| spmm::tarsiaSpMM(h, spmm, one, world.b, zero, c), "C", "host memory"),
            (
                "SpMM, D",
                &|| spmm::tarsiaSpMM_into(h, spmm, one, world.b, one, c, world.c),
                "C",
                "host memory",
            ),
            (
                "SpMM, once",
                &|| spmm::tarsiaSpMM_once(h, op, op, one, world.csr, world.b, zero, c, compute),
                "C",
                "host memory",
            ),
            (
                "SpGEMM",
                &|| spgemm::tarsiaSpGEMM_numeric(h, spgemm, scalar, world.product),
                "alpha",
                "device memory",
            ),
        ];
        for (what, call, name, word) in host_mode {
            is_refused(what, name, word, call);
        }
        accepts("SpMV", spmv::tarsiaSpMV(h, spmv, one, world.x, zero, world.y));
        accepts("SpMM", spmm::tarsiaSpMM(h, spmm, one, world.b, zero, world.c));
        accepts("SpGEMM", spgemm::tarsiaSpGEMM_numeric(h, spgemm, one, world.product));
        accepts("mode", handle::tarsiaSetPointerMode(h, arg(PointerMode::Device)));
        let run = |alpha, beta| spmv::tarsiaSpMV(h, spmv, alpha, world.x, beta, world.y);
        is_refused("SpMV", "alpha", "host memory", || run(one, scalar));
        is_refused("SpMV", "beta", "host memory", || run(scalar, one));
        let numeric = |alpha| spgemm::tarsiaSpGEMM_numeric(h, spgemm, alpha, world.product);
        is_refused("SpGEMM", "alpha", "host memory", || numeric(one));
        accepts("SpMV", run(scalar, scalar));
        accepts("mode", handle::tarsiaSetPointerMode(h, arg(PointerMode::Host)));
    }
    accepts("checks", handle::tarsiaSetChecks(h, 0));
    for plan in [spmv, spmm, spgemm] {
        accepts("destroy", plan::tarsiaPlan_destroy(plan));
    }
    [x, y].into_iter().for_each(|x| accepts("destroy", dnvec::tarsiaDestroyDnVec(x)));
    [b, c].into_iter().for_each(|b| accepts("destroy", dnmat::tarsiaDestroyDnMat(b)));
    world.verify();
}

/// Arrays of matrices without entries and of vectors without elements may be anywhere, since they are never
/// read. New values of such a matrix may be anywhere, too, or NULL.
#[test]
fn arrays_without_elements_are_anywhere() {
    for kind in backends() {
        let world = World::new(kind);
        let h = world.handle;
        let mut host = [1.0_f64; 4];
        let mut offsets = upload(kind, &[0_i32; 4]);
        let anywhere = host.as_ptr().expose_provenance();
        let arrays = [offsets.part_mut(0..4).as_mut_ptr().expose_provenance(), anywhere, anywhere];
        let mut a: tarsiaSpMatDescr_t = null_mut();
        accepts("create", Create { nnz: 0, arrays, ..Create::new(Format::Csr) }.call(&mut a));
        let (f, op, compute) = (arg(F64), arg(N), arg(R64));
        let (one, zero): (*const c_void, *const c_void) =
            ((&raw const world.one).cast(), (&raw const world.zero).cast());
        accepts("checks", handle::tarsiaSetChecks(h, 1));
        // SAFETY: answers are valid for a write, the scalars and the vectors' elements are there.
        unsafe {
            accepts("CheckSpMat", spmat::tarsiaCheckSpMat(h, a, null_mut(), null_mut()));
            let alg = arg(SpmvAlg::Default);
            let plan = made(|out| spmv::tarsiaSpMV_createPlan(h, out, op, a, f, f, compute, alg));
            accepts("analyze", plan::tarsiaPlan_analyze(h, plan));
            let run = || spmv::tarsiaSpMV(h, plan, one, world.x, zero, world.y);
            accepts("SpMV", run());
            accepts("new values", plan::tarsiaPlan_updateValues(h, plan, host.as_ptr().cast()));
            accepts("SpMV", run());
            accepts("checks", handle::tarsiaSetChecks(h, 0));
            accepts("new values", plan::tarsiaPlan_updateValues(h, plan, host.as_ptr().cast()));
            accepts("checks", handle::tarsiaSetChecks(h, 1));
            forget_message();
            assert_eq!(run() as i32, Status::InvalidState.code(), "{}", last_message());
            accepts("no new values", plan::tarsiaPlan_updateValues(h, plan, null()));
            accepts("SpMV", run());

            let empty = made(|out| dnvec::tarsiaCreateDnVec(out, 0, host.as_mut_ptr().cast(), f));
            let mut none: tarsiaSpMatDescr_t = null_mut();
            let wide = Create { shape: (0, 4), nnz: 0, arrays, ..Create::new(Format::Csr) };
            accepts("create", wide.call(&mut none));
            accepts("SpMV, once", spmv::tarsiaSpMV_once(h, op, one, none, world.x, zero, empty, compute));
            accepts("destroy", plan::tarsiaPlan_destroy(plan));
            accepts("destroy", dnvec::tarsiaDestroyDnVec(empty));
            accepts("destroy", spmat::tarsiaDestroySpMat(a));
            accepts("destroy", spmat::tarsiaDestroySpMat(none));
            accepts("checks", handle::tarsiaSetChecks(h, 0));
        }
        drop(offsets);
        world.verify();
    }
}

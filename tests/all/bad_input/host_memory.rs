//! Matrices in ordinary host memory, which a device cannot read: analysis must
//! say so, because a kernel that tried would take the device's context with it.

use std::ptr::null_mut;

use client::{arg, last_message};
use tarsia::capi::enums::tarsiaStatus_t;
use tarsia::capi::objects::tarsiaSpMatDescr_t;
use tarsia::capi::{plan, spgemm, spmat, spmm, spmv};
use tarsia::facade::{
    BackendKind, ComputeType, DataType, Device, Format, IndexType, Operation, Order, SpgemmAlg, SpmmAlg,
    SpmvAlg, Status,
};

use super::bad::{accepts, forget_message, mentions, names};
use super::sparse::Create;
use super::world::{made, World};
use crate::common::staged::upload;
use crate::common::{backend, skip};

const F64: DataType = DataType::R64F;
const N: Operation = Operation::NonTranspose;
const R64: ComputeType = ComputeType::R64F;

/// Whether the backend under test is a device that cannot read host memory.
fn is_skipped() -> bool {
    if backend() != BackendKind::Cuda {
        skip("host_memory: TARSIA_TEST_BACKEND is not cuda");
        return true;
    }
    let reads_all = Device::open(Some(0)).unwrap().properties().host_page_tables;
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
    // 4 × 4 with one entry a row; in COO the offsets are indices.
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

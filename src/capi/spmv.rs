//! SpMV: plan creation and products, with a plan and without.

use std::mem::MaybeUninit;
use std::sync::Arc;

use libc::c_void;

use super::boundary::{check_enum, guard_handle, live_plan, out};
use super::enums::{
    tarsiaComputeType_t, tarsiaDataType_t, tarsiaOperation_t, tarsiaSpMVAlg_t, tarsiaStatus_t,
};
use super::objects::{
    self, descriptors, pointer, product, sparse, tarsiaConstDnVecDescr_t, tarsiaConstSpMatDescr_t,
    tarsiaDnVecDescr_t, tarsiaHandle_t, tarsiaPlan_t, vector,
};
use crate::algorithm::Algorithm;
use crate::operation::{Planned, Spmv};
use crate::plan::Plan;
use crate::problem::SpmvProblem;
use crate::support::Types;
use crate::types::Address;

/// Creates a plan for y = alpha · op(A) · x + beta · y.
///
/// A is m × k as stored; op(A) decides which of its dimensions x and y have.
/// The plan copies the descriptor's fields, so A may be destroyed after this
/// call; A's arrays must stay valid, with an unchanged pattern, for the plan's
/// life (with tarsiaPlan_setSelfContained until it is analyzed). xType, yType,
/// computeType: a combination of the table on this header's first page; half types sum
/// in 32 bits and round once at the store. alg: DEFAULT lets the library choose.
///
/// Values: after a program has changed values of A it calls tarsiaPlan_updateValues; until then a product may
/// use the old or the new values, depending on whether the algorithm has a copy of them or reads them in
/// place. tarsiaPlan_setValuesInPlace(plan, 1) makes a plan that reads the present values at every execute,
/// and tarsiaSetChecks finds where a call is missing.
///
/// plan: host. Does not read A's arrays. All algorithms here are deterministic.
///
/// Statuses: NOT_INITIALIZED, INVALID_VALUE (an argument is NULL or not a value
/// of its type), NOT_SUPPORTED (no algorithm takes the combination; the text
/// says which part of it), ALLOC_FAILED.
#[no_mangle]
pub unsafe extern "C" fn tarsiaSpMV_createPlan(
    handle: tarsiaHandle_t,
    plan: *mut tarsiaPlan_t,
    opA: MaybeUninit<tarsiaOperation_t>,
    A: tarsiaConstSpMatDescr_t,
    xType: MaybeUninit<tarsiaDataType_t>,
    yType: MaybeUninit<tarsiaDataType_t>,
    computeType: MaybeUninit<tarsiaComputeType_t>,
    alg: MaybeUninit<tarsiaSpMVAlg_t>,
) -> tarsiaStatus_t {
    guard_handle(handle, |handle| {
        let out = out!(plan);
        let a = sparse("A", A)?;
        let types = Types {
            a: a.value_type(),
            x: check_enum("xType", xType)?,
            y: check_enum("yType", yType)?,
            compute: check_enum("computeType", computeType)?,
        };
        let problem = SpmvProblem { op: check_enum("opA", opA)?, a, types, value_updates: false };
        let algorithm = Algorithm::from_spmv(check_enum("alg", alg)?);
        let planned = Planned::<Spmv>::new(handle.backend().kind(), problem, algorithm)?;
        let plan = Plan::new(handle, planned).watching(descriptors([A, A]));
        out.set(pointer(objects::PLANS.insert(Arc::new(plan))?))
    })
}

/// Computes y = alpha · op(A) · x + beta · y with an analyzed plan.
///
/// x has the columns of op(A), y its rows, both in the types of createPlan and in the backend's memory, not
/// overlapping; y shares no memory with A's arrays either. alpha and beta: one value of the compute type
/// each, not in y, on the host or the device by pointer mode. beta == 0 never reads y; alpha == 0 reads
/// neither A's values nor x. Entries that are not stored never contribute; stored zeros count (0 · Inf is
/// NaN).
///
/// Asynchronous on the handle's stream and capturable; never allocates, never synchronises (synchronous on
/// the CPU backends). Several handles may execute one plan at once, each after tarsiaPlan_prepare with it.
/// Deterministic: the same bits from run to run, whatever the number of threads. With tarsiaSetChecks(handle,
/// 1) it blocks.
///
/// Statuses: NOT_INITIALIZED, INVALID_VALUE (plan, alpha, x, beta or y is NULL,
/// of the wrong length or type, y overlaps x, alpha, beta or an array of A, y is const, handle of
/// another backend or device; with checks on, an operand is in memory that the call cannot use),
/// INVALID_STATE (the plan is not analyzed; with checks on, A's
/// arrays have changed),
/// INSUFFICIENT_RESOURCES (workspace; the text says the bytes needed),
/// EXECUTION_FAILED.
#[no_mangle]
pub unsafe extern "C" fn tarsiaSpMV(
    handle: tarsiaHandle_t,
    plan: tarsiaPlan_t,
    alpha: *const c_void,
    x: tarsiaConstDnVecDescr_t,
    beta: *const c_void,
    y: tarsiaDnVecDescr_t,
) -> tarsiaStatus_t {
    guard_handle(handle, |handle| {
        let plan = live_plan(plan)?;
        product::<Spmv, _>(handle, (alpha, beta), vector, (x, None, y), |run| {
            plan.execute(handle, "tarsiaSpMV", run)
        })
    })
}

/// Computes z = alpha · op(A) · x + beta · y with an analyzed plan: tarsiaSpMV with a separate result, for
/// residuals such as b − A · x.
///
/// y and z have the rows of op(A) and the type yType of createPlan. z may be y, that is, the same array,
/// whichever descriptors they have: then this is tarsiaSpMV, and also a const y is overwritten. Otherwise z
/// shares no memory with y, which is only read, nor with x. alpha and beta are not in z. beta == 0 never uses
/// y's values, but y must still be a vector of the right length and type. Everything else is as for
/// tarsiaSpMV.
///
/// TARSIA_SPMV_ALG_CSR and TARSIA_SPMV_ALG_SELL on CUDA, and all algorithms on the host backend, read y where
/// it is, in the same pass that writes z. Other algorithms copy y to z first, one more pass over both, in the
/// stream's order; so do all algorithms on CUDA for a y that kernels of the device cannot read. Nothing is
/// copied where z is y, or where beta is 0 in host memory. Asynchronous and capturable.
///
/// Statuses: those of tarsiaSpMV, with z in the place of its y, and INVALID_VALUE for y of the wrong length
/// or type, and for z that shares some of y's memory.
#[no_mangle]
pub unsafe extern "C" fn tarsiaSpMV_into(
    handle: tarsiaHandle_t,
    plan: tarsiaPlan_t,
    alpha: *const c_void,
    x: tarsiaConstDnVecDescr_t,
    beta: *const c_void,
    y: tarsiaConstDnVecDescr_t,
    z: tarsiaDnVecDescr_t,
) -> tarsiaStatus_t {
    guard_handle(handle, |handle| {
        let plan = live_plan(plan)?;
        product::<Spmv, _>(handle, (alpha, beta), vector, (x, Some(y), z), |run| {
            plan.execute(handle, "tarsiaSpMV_into", run)
        })
    })
}

/// Computes y = alpha · op(A) · x + beta · y in one call, for a matrix that is used once.
///
/// The types are those of the descriptors; tarsiaSpMV says which operands are read. Deterministic.
///
/// CSR with op N and CSC with op T (for real values also op C) need no conversion: with the CUDA backend this
/// call then only launches one kernel, asynchronously on the handle's stream, may be captured, and does not
/// validate the matrix: a matrix that tarsiaCheckSpMat would refuse is undefined behaviour.
/// For any other input, and on the CPU backends, it builds a temporary plan,
/// which validates, and blocks.
///
/// Statuses: those of tarsiaSpMV_createPlan, tarsiaPlan_analyze and tarsiaSpMV.
#[no_mangle]
pub unsafe extern "C" fn tarsiaSpMV_once(
    handle: tarsiaHandle_t,
    opA: MaybeUninit<tarsiaOperation_t>,
    alpha: *const c_void,
    A: tarsiaConstSpMatDescr_t,
    x: tarsiaConstDnVecDescr_t,
    beta: *const c_void,
    y: tarsiaDnVecDescr_t,
    computeType: MaybeUninit<tarsiaComputeType_t>,
) -> tarsiaStatus_t {
    guard_handle(handle, |handle| {
        let backend = handle.backend();
        let (a, x_vector, y_vector) = (sparse("A", A)?, vector("x", x)?, vector("y", y)?);
        let types = Types {
            a: a.value_type(),
            x: x_vector.value_type,
            y: y_vector.value_type,
            compute: check_enum("computeType", computeType)?,
        };
        let problem = SpmvProblem { op: check_enum("opA", opA)?, a, types, value_updates: false };
        let planned = Planned::<Spmv>::new(backend.kind(), problem, None)?;
        let scalars = (Address::new(alpha), Address::new(beta));
        handle.check_operands(scalars, [("x", x_vector.lines()), ("y", y_vector.lines())])?;
        if handle.with_workspace(|cx, _| planned.once(&*backend, cx, scalars, &x_vector, &y_vector))? {
            return Ok(());
        }
        product::<Spmv, _>(handle, (alpha, beta), vector, (x, None, y), |run| {
            Plan::once(handle, "tarsiaSpMV_once", planned, run)
        })
    })
}

//! SpMM: plan creation and products, with a plan and without.

use std::mem::MaybeUninit;
use std::sync::Arc;

use libc::c_void;

use super::boundary::{check_enum, guard_handle, live_plan, out};
use super::enums::{
    tarsiaComputeType_t, tarsiaDataType_t, tarsiaOperation_t, tarsiaOrder_t, tarsiaSpMMAlg_t, tarsiaStatus_t,
};
use super::objects::{
    self, descriptors, matrix, pointer, product, sparse, tarsiaConstDnMatDescr_t, tarsiaConstSpMatDescr_t,
    tarsiaDnMatDescr_t, tarsiaHandle_t, tarsiaPlan_t,
};
use crate::algorithm::Algorithm;
use crate::operation::{Planned, Spmm};
use crate::plan::Plan;
use crate::problem::SpmmProblem;
use crate::support::Types;
use crate::types::Address;

/// Creates a plan for C = alpha · op(A) · op(B) + beta · C, B and C dense.
///
/// bOrder, cOrder: storage orders of B and C as the user stores them (opB does
/// not change B's order). nHint: the columns of C that the plan is made for; any
/// number of columns may be executed. The plan copies the descriptor's fields,
/// so A may be destroyed after this call; A's arrays must stay valid, with an
/// unchanged pattern, for the plan's life (with tarsiaPlan_setSelfContained until it is
/// analyzed). bType, cType, computeType: a combination of the table on this header's first page.
/// computeType TF32 allows factors to be rounded to TF32; 32F never does.
///
/// Values: after a program has changed values of A it calls tarsiaPlan_updateValues; until then a product may
/// use the old or the new values, depending on whether the algorithm has a copy of them or reads them in
/// place. tarsiaPlan_setValuesInPlace(plan, 1) makes a plan that reads the present values at every execute,
/// and tarsiaSetChecks finds where a call is missing.
///
/// plan: host. Does not read A's arrays. All algorithms here are deterministic, except, on CUDA outside
/// deterministic mode, TARSIA_SPMM_ALG_SWIFT, and TARSIA_SPMM_ALG_DENSE where it uses cublasLt, whose version
/// determines the bits.
///
/// Statuses: NOT_INITIALIZED, INVALID_VALUE (an argument is NULL or not a value
/// of its type, nHint < 0), NOT_SUPPORTED (no algorithm takes the combination; the
/// text says which part of it), ALLOC_FAILED.
#[no_mangle]
pub unsafe extern "C" fn tarsiaSpMM_createPlan(
    handle: tarsiaHandle_t,
    plan: *mut tarsiaPlan_t,
    opA: MaybeUninit<tarsiaOperation_t>,
    opB: MaybeUninit<tarsiaOperation_t>,
    A: tarsiaConstSpMatDescr_t,
    bOrder: MaybeUninit<tarsiaOrder_t>,
    cOrder: MaybeUninit<tarsiaOrder_t>,
    nHint: i64,
    bType: MaybeUninit<tarsiaDataType_t>,
    cType: MaybeUninit<tarsiaDataType_t>,
    computeType: MaybeUninit<tarsiaComputeType_t>,
    alg: MaybeUninit<tarsiaSpMMAlg_t>,
) -> tarsiaStatus_t {
    guard_handle(handle, |handle| {
        let out = out!(plan);
        let (op, op_b) = (check_enum("opA", opA)?, check_enum("opB", opB)?);
        let a = sparse("A", A)?;
        let problem = SpmmProblem {
            op,
            op_b,
            a,
            b_order: check_enum("bOrder", bOrder)?,
            c_order: check_enum("cOrder", cOrder)?,
            n_hint: nHint,
            types: Types {
                a: a.value_type(),
                x: check_enum("bType", bType)?,
                y: check_enum("cType", cType)?,
                compute: check_enum("computeType", computeType)?,
            },
            value_updates: false,
            ieee: false,
        };
        let algorithm = Algorithm::from_spmm(check_enum("alg", alg)?);
        let planned = Planned::<Spmm>::new(handle.backend().kind(), problem, algorithm)?;
        let plan = Plan::new(handle, planned).watching(descriptors([A, A]));
        out.set(pointer(objects::PLANS.insert(Arc::new(plan))?))
    })
}

/// Computes C = alpha · op(A) · op(B) + beta · C with an analyzed plan.
///
/// op(A) is m × k, op(B) k × n, C m × n; B and C have the types and orders of
/// createPlan, any ld, in the backend's memory, sharing no element. alpha and
/// beta: one value of the compute type each, not in C, on the host or the device
/// by pointer mode. beta == 0 never reads C; alpha == 0 reads neither A's values
/// nor B. Entries of A that are not stored never contribute; stored zeros count.
/// Nothing between the columns or rows of C (padding of ld) is touched.
///
/// Asynchronous on the handle's stream and capturable; never allocates, never synchronises (synchronous on
/// the CPU backends). Several handles may execute one plan at once, each after tarsiaPlan_prepare with it.
/// Deterministic, except, on CUDA outside deterministic mode, TARSIA_SPMM_ALG_SWIFT and, where it uses
/// cublasLt, TARSIA_SPMM_ALG_DENSE. With tarsiaSetChecks(handle, 1) it blocks.
///
/// Statuses: NOT_INITIALIZED, INVALID_VALUE (plan, alpha, B, beta or C is NULL,
/// of the wrong shape, type or order, C overlaps B, alpha, beta or an array of A, C is const,
/// handle of another backend or device; with checks on, an operand is in memory that the call
/// cannot use), INVALID_STATE (the plan is not analyzed; with checks
/// on, A's arrays have changed),
/// INSUFFICIENT_RESOURCES (workspace for this n; the text says the bytes
/// needed), NOT_SUPPORTED (a plan of TARSIA_SPMM_ALG_SWIFT that was analyzed outside
/// deterministic mode, in it), EXECUTION_FAILED.
#[no_mangle]
pub unsafe extern "C" fn tarsiaSpMM(
    handle: tarsiaHandle_t,
    plan: tarsiaPlan_t,
    alpha: *const c_void,
    B: tarsiaConstDnMatDescr_t,
    beta: *const c_void,
    C: tarsiaDnMatDescr_t,
) -> tarsiaStatus_t {
    guard_handle(handle, |handle| {
        let plan = live_plan(plan)?;
        product::<Spmm, _>(handle, (alpha, beta), matrix, (B, None, C), |run| {
            plan.execute(handle, "tarsiaSpMM", run)
        })
    })
}

/// Computes D = alpha · op(A) · op(B) + beta · C with an analyzed plan: tarsiaSpMM with a separate result.
///
/// C and D are m × n, of the type cType and the order cOrder of createPlan, each with an ld of its own. D may
/// be C, that is, have the same elements, whichever descriptors they have: then this is tarsiaSpMM, and also
/// a const C is overwritten. Otherwise D shares no element with C, which is only read, nor with B. alpha and
/// beta are not in D. beta == 0 never uses C's values, but C must still be a matrix of the right shape and
/// type. Everything else is as for tarsiaSpMM.
///
/// TARSIA_SPMM_ALG_SELL on CUDA, and all algorithms on the host backend, read C where it is, in the same pass
/// that writes D. Other algorithms copy C to D first, one more pass over both, in the stream's order; so does
/// TARSIA_SPMM_ALG_SELL on CUDA for a C that kernels of the device cannot read, and for a single column that
/// has gaps in C (an ld above 1 in row order) and none in D. Nothing is copied where D is C, or where beta is
/// 0 in host memory. Asynchronous and capturable.
///
/// Statuses: those of tarsiaSpMM, with D in the place of its C, and INVALID_VALUE for C of the wrong shape,
/// type or order, and for D that shares some of C's elements.
#[no_mangle]
pub unsafe extern "C" fn tarsiaSpMM_into(
    handle: tarsiaHandle_t,
    plan: tarsiaPlan_t,
    alpha: *const c_void,
    B: tarsiaConstDnMatDescr_t,
    beta: *const c_void,
    C: tarsiaConstDnMatDescr_t,
    D: tarsiaDnMatDescr_t,
) -> tarsiaStatus_t {
    guard_handle(handle, |handle| {
        let plan = live_plan(plan)?;
        product::<Spmm, _>(handle, (alpha, beta), matrix, (B, Some(C), D), |run| {
            plan.execute(handle, "tarsiaSpMM_into", run)
        })
    })
}

/// Computes C = alpha · op(A) · op(B) + beta · C in one call, for a matrix that is used once.
///
/// Types and orders are those of the descriptors; tarsiaSpMM says which operands are read. Deterministic.
///
/// CSR with op N and CSC with op T (for real values also op C) need no conversion: with the CUDA backend this
/// call then only launches kernels, asynchronously on the handle's stream, may be captured, and does not
/// validate the matrix: a matrix that tarsiaCheckSpMat would refuse is undefined behaviour. It needs
/// workspace: at most 16 MiB for partial sums of long rows, lists of these parts (at most 6 bytes per entry
/// of A), and copies of B and C by rows of at most 64 MiB, or of 32 columns where these are larger. B is
/// copied where op(B) is contiguous by columns or conjugated and has more than 8 columns, and where its rows
/// are long, not aligned to 128 bytes, and read often; C where it is in column order and has more than 8
/// columns, if it has more than 2^19 elements, and in some products of fewer whose C has the type of the sums.
/// In a large product of real values with B and C both by columns, neither is copied if a kernel of the call
/// finds rows to be short and neighbouring rows to have neighbouring columns; the workspace has room for the
/// copies all the same. Where both are by columns and C has 2 to 32 of them, neither is copied if A has real
/// values and at most 2^20 (up to 8 columns), 2^18 (up to 16) or 196,608 entries (up to 32), and the workspace
/// has no room for copies. The handle's own workspace grows to that size, and the call that makes it grow
/// blocks. If a workspace that tarsiaSetWorkspace has set is too small, the call allocates memory of its own
/// and blocks. In a capture neither is possible: call it once before with matrices of the same sizes, or the
/// call in the capture returns INVALID_STATE.
/// For any other input, for a matrix with more than 2^31 - 1 rows and more than 2^31 - 1 entries, and on the
/// CPU backends, it builds a temporary plan, which validates, and blocks.
///
/// Statuses: those of tarsiaSpMM_createPlan, tarsiaPlan_analyze and tarsiaSpMM; INVALID_STATE (see above).
#[no_mangle]
pub unsafe extern "C" fn tarsiaSpMM_once(
    handle: tarsiaHandle_t,
    opA: MaybeUninit<tarsiaOperation_t>,
    opB: MaybeUninit<tarsiaOperation_t>,
    alpha: *const c_void,
    A: tarsiaConstSpMatDescr_t,
    B: tarsiaConstDnMatDescr_t,
    beta: *const c_void,
    C: tarsiaDnMatDescr_t,
    computeType: MaybeUninit<tarsiaComputeType_t>,
) -> tarsiaStatus_t {
    guard_handle(handle, |handle| {
        let (a, b, c) = (sparse("A", A)?, matrix("B", B)?, matrix("C", C)?);
        let problem = SpmmProblem {
            op: check_enum("opA", opA)?,
            op_b: check_enum("opB", opB)?,
            a,
            b_order: b.order,
            c_order: c.order,
            n_hint: c.cols,
            types: Types {
                a: a.value_type(),
                x: b.value_type,
                y: c.value_type,
                compute: check_enum("computeType", computeType)?,
            },
            value_updates: false,
            ieee: false,
        };
        let (backend, name) = (handle.backend(), "tarsiaSpMM_once");
        let planned = Planned::<Spmm>::new(backend.kind(), problem, None)?;
        let scalars = (Address::new(alpha), Address::new(beta));
        handle.check_operands(scalars, [("B", b.lines()), ("C", c.lines())])?;
        if let Some(bytes) = planned.once_bytes(&*backend, &b, &c)? {
            return handle.with_room(name, bytes, |cx| planned.once(&*backend, cx, scalars, &b, &c));
        }
        product::<Spmm, _>(handle, (alpha, beta), matrix, (B, None, C), |run| {
            Plan::once(handle, name, planned, run)
        })
    })
}

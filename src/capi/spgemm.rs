//! SpGEMM: plan creation, symbolic and numeric phase, new values.

use std::mem::MaybeUninit;
use std::sync::Arc;

use libc::c_void;

use super::boundary::{check_enum, guard_handle, live_plan, out};
use super::enums::{tarsiaComputeType_t, tarsiaOperation_t, tarsiaSpGEMMAlg_t, tarsiaStatus_t};
use super::objects::{
    self, descriptors, pointer, sparse_or_tiles, tarsiaConstSpMatDescr_t, tarsiaHandle_t, tarsiaPlan_t,
    tarsiaSpMatDescr_t, Sparse,
};
use crate::algorithm::Algorithm;
use crate::operation::{self, Planned, Spgemm, Task};
use crate::plan::{Plan, Reads};
use crate::problem::SpgemmProblem;
use crate::support::Types;
use crate::types::Address;

/// Creates a plan for C = alpha · op(A) · op(B), all three sparse.
///
/// A and B: CSR, CSC or tiles (tarsiaCreateTile), of one value type; op(A) is m × k and
/// op(B) k × n. C has the compute type as its value type (fp16 and bf16 products give
/// 32-bit C). The plan copies the descriptors' fields; the arrays of A and B must stay
/// valid, with an unchanged pattern, for the plan's life (with tarsiaPlan_setSelfContained
/// until it is analyzed).
///
/// There is no beta: C is the product alone, with its pattern. The sum with another sparse matrix would have
/// another pattern, and is left to the program.
///
/// Values: after a program has changed values of A or B it calls tarsiaSpGEMM_updateValues (for A alone:
/// tarsiaPlan_updateValues); until then a product may use the old or the new values, depending on whether the
/// algorithm has a copy of them or reads them in place. tarsiaPlan_setValuesInPlace(plan, 1) makes a plan
/// that reads the present values at every execute, and tarsiaSetChecks finds where a call is missing.
///
/// plan: host. Does not read the arrays. The order of calls is createPlan,
/// tarsiaPlan_analyze, tarsiaSpGEMM_symbolic, tarsiaSpGEMM_numeric (as often as
/// wanted). With tarsiaPlan_setValueUpdates(plan, 1) the plan keeps C's pattern,
/// and every numeric phase after the first computes values only.
/// tarsiaPlan_setMemoryLimit bounds what the plan may hold besides C, and
/// tarsiaPlan_setSortedOutput(plan, 0) leaves out the sorting of C's rows.
///
/// TARSIA_SPGEMM_ALG_TILE, which DEFAULT then chooses, reads a factor in tiles where it is, without
/// conversion; other algorithms do not take it. Where op transposes the factor, or the tiles of A are by rows
/// and those of B by columns (made from CSC), the plan has a copy of one of them. The plan takes the tiles
/// that the matrix has when it is analyzed, and keeps them when the matrix is filled again or destroyed.
///
/// Sources of the algorithms: F. G. Gustavson, "Two fast algorithms for sparse
/// matrices", ACM TOMS 4(3), 1978 (TARSIA_SPGEMM_ALG_HASH); Y. Niu et al.,
/// "TileSpGEMM: a tiled algorithm for parallel sparse general matrix-matrix
/// multiplication on GPUs", PPoPP 2022, section 3 (TARSIA_SPGEMM_ALG_TILE).
///
/// Statuses: NOT_INITIALIZED, INVALID_VALUE (an argument is NULL or not a value
/// of its type, inner dimensions differ), NOT_SUPPORTED (not in the support
/// table; the text says which part), ALLOC_FAILED.
#[no_mangle]
pub unsafe extern "C" fn tarsiaSpGEMM_createPlan(
    handle: tarsiaHandle_t,
    plan: *mut tarsiaPlan_t,
    opA: MaybeUninit<tarsiaOperation_t>,
    opB: MaybeUninit<tarsiaOperation_t>,
    A: tarsiaConstSpMatDescr_t,
    B: tarsiaConstSpMatDescr_t,
    computeType: MaybeUninit<tarsiaComputeType_t>,
    alg: MaybeUninit<tarsiaSpGEMMAlg_t>,
) -> tarsiaStatus_t {
    guard_handle(handle, |handle| {
        let out = out!(plan);
        let (op_a, op_b) = (check_enum("opA", opA)?, check_enum("opB", opB)?);
        let (a, b) = (sparse_or_tiles("A", A)?, sparse_or_tiles("B", B)?);
        let (a, b, tiles) = (a.matrix(), b.matrix(), [a.tiles(), b.tiles()]);
        let backend = handle.backend();
        for (tiles, name) in tiles.iter().zip(["A", "B"]) {
            if let Some(tiles) = tiles {
                tiles.require_backend(name, backend.kind(), backend.device())?;
            }
        }
        let compute = check_enum("computeType", computeType)?;
        let types = Types { a: a.value_type(), x: b.value_type(), y: compute.scalar(), compute };
        let problem =
            SpgemmProblem { op_a, op_b, a, b, types, value_updates: false, ieee: false, sorted_output: true };
        let algorithm = Algorithm::from_spgemm(check_enum("alg", alg)?);
        let planned = Planned::<Spgemm>::new(backend.kind(), problem, algorithm)?.with_tiles(tiles);
        let plan = Plan::new(handle, planned).watching(descriptors([A, B]));
        out.set(pointer(objects::PLANS.insert(Arc::new(plan))?))
    })
}

/// Counts the stored entries of C, so that the caller can allocate it: entries
/// whose sum cancels to zero are stored. Reads the patterns of A and B only.
///
/// nnzC: host. Blocks; may allocate, in proportion to the rows of C and the longest row
/// (TARSIA_SPGEMM_ALG_TILE: to the tiles of C); not inside a capture. A second call returns the same count
/// without work. For `hash` a device also takes up to 32 bytes for each entry of B while it counts, of which
/// the plan keeps half, and 140 bytes for each 1,024 columns that a row with many products spans; where that
/// memory is missing, it works part by part, or by other methods.
///
/// Statuses: NOT_INITIALIZED, INVALID_VALUE (plan is NULL or not a SpGEMM plan,
/// nnzC is NULL), INVALID_STATE (not analyzed; with checks on, index arrays of A or B
/// have changed), ALLOC_FAILED,
/// INSUFFICIENT_RESOURCES (memory limit, or C is larger than the device's
/// memory; the text says the bytes needed).
#[no_mangle]
pub unsafe extern "C" fn tarsiaSpGEMM_symbolic(
    handle: tarsiaHandle_t,
    plan: tarsiaPlan_t,
    nnzC: *mut i64,
) -> tarsiaStatus_t {
    guard_handle(handle, |handle| {
        let out = out!(nnzC);
        let name = "tarsiaSpGEMM_symbolic";
        handle.backend().require_blocking(handle.stream(), name)?;
        let plan = live_plan(plan)?;
        plan.check_unchanged(handle, name, Reads::Patterns)?;
        out.set(plan.modify(handle, name, |planned: &mut Planned<Spgemm>, cx| planned.symbolic(cx))?)
    })
}

/// Computes C = alpha · op(A) · op(B): writes C's offsets, indices and values.
///
/// C: CSR or CSC with room for the nnzC entries of tarsiaSpGEMM_symbolic, any index types that hold them,
/// either base; rows (columns for CSC) come out sorted, without duplicates. (With
/// tarsiaPlan_setSortedOutput(plan, 0) C is CSR, and its rows are in the order that costs least, the same in
/// every call, without duplicates.) With TARSIA_SPGEMM_ALG_TILE C may also be a matrix of tarsiaCreateTile,
/// whose tiles are replaced: the new ones are in memory of the handle's allocator, not counted in the plan's
/// limit, and C may be A or B, too. Such a call blocks and cannot be captured. alpha: one value of the
/// compute type, on the host or the device by pointer mode; alpha == 0 writes the pattern with zeros and
/// reads no values. C's arrays must not overlap A's or B's, and alpha is in none of them.
///
/// May allocate and block (not, on a device, once the pattern is kept and reused; a memory limit may leave no
/// room for it). C by columns of a product that is computed by rows, or the reverse, takes 28 bytes or more
/// for each entry of C on a device; where these are missing, some rows at a time are computed, twice.
///
/// Deterministic: the same plan and values give the same bits in every call, with C in the same format and,
/// on a device, with the same amount of free memory. On the host every entry of C is summed in the order of
/// A's row. On a device that order depends on the algorithm, on A and B, on C's format and on the memory that
/// is free: TARSIA_SPGEMM_ALG_TILE, which DEFAULT may choose, has an order of its own; TARSIA_SPGEMM_ALG_HASH
/// may sum rows of more than 256 entries of A in parts of 128 or more entries, whose sums it adds in order,
/// and may multiply nearly dense factors by matrix units where C has their format and memory suffices. The
/// sign and payload of a NaN are not specified.
///
/// Statuses: NOT_INITIALIZED, INVALID_VALUE (plan is NULL or not a SpGEMM plan,
/// alpha is NULL, C is NULL, const, of the wrong shape, type or nnz, has a NULL
/// array or one in ordinary host memory on CUDA, or shares memory with A, B, alpha or itself; with checks on,
/// alpha is not where the pointer mode says), NOT_SUPPORTED (format of C: CSC, too, with
/// setSortedOutput(0); tiles from another algorithm),
/// INVALID_STATE (not analyzed, or no symbolic phase yet; with checks on, arrays of A or B
/// have changed), ALLOC_FAILED,
/// INSUFFICIENT_RESOURCES (memory limit).
#[no_mangle]
pub unsafe extern "C" fn tarsiaSpGEMM_numeric(
    handle: tarsiaHandle_t,
    plan: tarsiaPlan_t,
    alpha: *const c_void,
    C: tarsiaSpMatDescr_t,
) -> tarsiaStatus_t {
    guard_handle(handle, |handle| {
        let plan = live_plan(plan)?;
        let name = "tarsiaSpGEMM_numeric";
        plan.check_unchanged(handle, name, Reads::All)?;
        handle.check_alpha(Address::new(alpha))?;
        let c = match sparse_or_tiles("C", C)? {
            Sparse::Arrays { matrix, .. } => matrix,
            Sparse::Tiles(c) => {
                let backend = handle.backend();
                c.require_backend("C", backend.kind(), backend.device())?;
                backend.require_blocking(handle.stream(), name)?;
                // C's memory is allocated by this call's handle, not by the plan's allocator.
                let into = handle.context();
                return plan.modify(handle, name, |planned: &mut Planned<Spgemm>, cx| {
                    planned.numeric_tiles(cx, &into, Address::new(alpha), &c)
                });
            }
        };
        let written = plan.modify(handle, name, |planned: &mut Planned<Spgemm>, cx| {
            planned.numeric(cx, Address::new(alpha), &c)?;
            Ok(planned.sorted_output())
        });
        objects::note_sorted(C, *written.as_ref().unwrap_or(&false));
        written.map(drop)
    })
}

/// Gives the plan new values of A and B, with the same patterns, for the numeric phases that follow. NULL
/// keeps a matrix's present values; where A and B have one value array that changed, it is given twice. The
/// arrays must stay valid until they are replaced, or for the plan's life. Asynchronous for a plan of
/// tarsiaPlan_setValuesInPlace. (tarsiaPlan_updateValues on a SpGEMM plan is this call with newValuesB NULL.)
/// For a factor in tiles NULL takes the values that the matrix has now, whose entries must be at the same
/// positions; both may be NULL then. Such a call blocks and cannot be captured; a graph that has captured
/// numeric phases of a plan with a factor in tiles must be destroyed before.
///
/// newValuesA, newValuesB: in the backend's memory, in the order and type of the
/// descriptors' values.
///
/// A failed call changes nothing, except that after ALLOC_FAILED, where both arrays were given, the plan may
/// have A's new values and B's old ones; the call may then be repeated.
///
/// Statuses: NOT_INITIALIZED, INVALID_VALUE (plan is NULL or not a SpGEMM plan, both arrays are NULL, an
/// array is misaligned or ordinary host memory on CUDA, an array for a factor in tiles, tiles with entries at
/// other positions), INVALID_STATE (not analyzed; while a graph keeps the plan, as tarsiaPlan_updateValues
/// says), ALLOC_FAILED.
#[no_mangle]
pub unsafe extern "C" fn tarsiaSpGEMM_updateValues(
    handle: tarsiaHandle_t,
    plan: tarsiaPlan_t,
    newValuesA: *const c_void,
    newValuesB: *const c_void,
) -> tarsiaStatus_t {
    guard_handle(handle, |handle| {
        let given = [("newValuesA", Address::new(newValuesA)), ("newValuesB", Address::new(newValuesB))];
        let name = "tarsiaSpGEMM_updateValues";
        let plan = live_plan(plan)?;
        let is_product = |task: &dyn Task| operation::planned::<Spgemm>(task, name).map(drop);
        plan.renew(handle, name, given, is_product, |task, cx| {
            operation::planned_mut::<Spgemm>(task, name)?.update_values(cx, given)
        })
    })
}

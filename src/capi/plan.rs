//! Plans: the functions that all operations share.

use std::mem::MaybeUninit;

use libc::{c_char, c_int, c_void};

use super::boundary::{check_enum, cut, guard, guard_handle, live_plan, out};
use super::enums::{tarsiaEffort_t, tarsiaLayout_t, tarsiaOpKind_t, tarsiaReorder_t, tarsiaStatus_t};
use super::objects::{self, tarsiaHandle_t, tarsiaPlan_t};
use crate::error::{refuse_if, Error, Result, Status};
use crate::memory::heap;
use crate::plan::Info;
use crate::types::{Address, OpKind};

/// Converts a 0/1 argument.
pub(super) fn flag(name: &str, value: c_int) -> Result<bool> {
    match value {
        0 => Ok(false),
        1 => Ok(true),
        other => Err(Error::invalid(name, format!("{other} is neither 0 nor 1"))),
    }
}

/// Sets how much tarsiaPlan_analyze may cost; DEFAULT after create.
///
/// Statuses: INVALID_VALUE (plan, effort), INVALID_STATE (analyzed already).
#[no_mangle]
pub extern "C" fn tarsiaPlan_setEffort(
    plan: tarsiaPlan_t,
    effort: MaybeUninit<tarsiaEffort_t>,
) -> tarsiaStatus_t {
    guard(|| {
        let (plan, effort) = (live_plan(plan)?, check_enum("effort", effort)?);
        plan.set(|settings| settings.effort = effort)
    })
}

/// Sets the row reordering; AUTO after create. y and C keep the user's order whatever is chosen: kernels
/// write a row where the user has it.
///
/// AUTO lets SpMM's WINDOW and SMAT put rows with similar columns together. A policy by name is for SpMV's
/// CSR and SpMM's ROW and CSR, and the library then chooses among these; analysis makes a copy of the matrix
/// with its rows in that order (on CUDA too the order is computed on the host, from a copy of the pattern).
/// tarsiaPlan_updateValues keeps the order, and behaves as with setValueUpdates(1).
///
/// LEARNED lets analysis compute 24 features of the pattern (on CUDA on the host, from a copy of it) and use
/// the policy, or the rows' own order, whose product is predicted to be fastest. It serves SpMV's CSR and
/// SpMM's ROW (learned with B and C by rows) and CSR (by columns). It was learned from times in fp32 and with
/// 128 columns on an H100, and is applied to other types, columns, orders of B and C and machines, too.
/// tarsiaPlan_getInfo says which order it is, and its reason that it was predicted.
///
/// Statuses: INVALID_VALUE (plan, reorder), INVALID_STATE (analyzed already).
/// tarsiaPlan_analyze returns NOT_SUPPORTED for a policy by name with another algorithm by
/// name, for SpGEMM, for op(A) of 2^31 rows or columns and more, for RCM where op(A) is not
/// square, and for LEARNED where no times of such products were measured. The reference backend takes every
/// policy and changes nothing.
#[no_mangle]
pub extern "C" fn tarsiaPlan_setReorder(
    plan: tarsiaPlan_t,
    reorder: MaybeUninit<tarsiaReorder_t>,
) -> tarsiaStatus_t {
    guard(|| {
        let (plan, reorder) = (live_plan(plan)?, check_enum("reorder", reorder)?);
        plan.set(|settings| settings.reorder = reorder)
    })
}

/// Sets the block size of TARSIA_SPMM_ALG_SMAT: 16 × 16 (values of 16 bits only) or 16 × 8. 0 × 0 (after
/// create) leaves the choice to a cost model, which uses the number of blocks of each size.
///
/// Statuses: INVALID_VALUE (plan is NULL or not of SpMM, rowBlockDim, colBlockDim),
/// INVALID_STATE (analyzed already). tarsiaPlan_analyze returns NOT_SUPPORTED for a plan
/// of another algorithm, and for blocks that its types do not have.
#[no_mangle]
pub extern "C" fn tarsiaPlan_setBlockDims(
    plan: tarsiaPlan_t,
    rowBlockDim: i64,
    colBlockDim: i64,
) -> tarsiaStatus_t {
    guard(|| {
        let plan = live_plan(plan)?;
        refuse_if!(plan.kind() != OpKind::Spmm, invalid("plan"), "blocks are for SpMM");
        let width = match (rowBlockDim, colBlockDim) {
            (0, 0) => None,
            (16, 8 | 16) => Some(colBlockDim as usize),
            (0 | 16, _) => {
                return Err(Error::invalid("colBlockDim", format!("{colBlockDim} is none of 8, 16 and 0")))
            }
            _ => return Err(Error::invalid("rowBlockDim", format!("{rowBlockDim} is neither 16 nor 0"))),
        };
        plan.set(|settings| settings.block_width = width)
    })
}

/// Sets whether values will change. 1: the plan stores where each value goes, so that tarsiaPlan_updateValues
/// is asynchronous and O(nnz); SpGEMM keeps C's pattern, and on a device, where entries of C have few
/// products, the positions of their factors (8 bytes per product and 4 per entry, up to three times the bytes
/// of C and once those of A and B). 0 (after create): the plan needs less memory, and may store values in
/// fewer bytes where that keeps every bit; updateValues may rebuild and block, and is refused while a graph
/// has captured products that would continue to use the previous arrays. This setting determines what
/// tarsiaPlan_updateValues costs, not when new values take effect: see there.
///
/// Statuses: INVALID_VALUE (plan, valueUpdates not 0 or 1), INVALID_STATE
/// (analyzed already).
#[no_mangle]
pub extern "C" fn tarsiaPlan_setValueUpdates(plan: tarsiaPlan_t, valueUpdates: c_int) -> tarsiaStatus_t {
    guard(|| {
        let (plan, on) = (live_plan(plan)?, flag("valueUpdates", valueUpdates)?);
        plan.set(|settings| settings.value_updates = on)
    })
}

/// Sets whether the plan is self-contained (0 after create). 1: analysis copies all that the plan needs, so
/// that when tarsiaPlan_analyze has returned the caller may change and free the arrays of A (SpGEMM: and of
/// B). Layouts that are copies in any case take no more memory by it; those that read CSR in place become a
/// copy of op(A) in CSR with 32-bit columns. tarsiaPlan_updateValues then needs
/// tarsiaPlan_setValueUpdates(plan, 1), since the pattern cannot be read any more. Factors in tiles belong to
/// the plan in any case.
///
/// Statuses: INVALID_VALUE (plan, selfContained not 0 or 1), INVALID_STATE (analyzed already).
/// tarsiaPlan_analyze returns NOT_SUPPORTED where op(A) has more than 2^31 - 1 columns, since such a matrix
/// is never copied, and with tarsiaPlan_setValuesInPlace(plan, 1); tarsiaPlan_updateValues returns
/// INVALID_STATE without setValueUpdates(1).
#[no_mangle]
pub extern "C" fn tarsiaPlan_setSelfContained(plan: tarsiaPlan_t, selfContained: c_int) -> tarsiaStatus_t {
    guard(|| live_plan(plan)?.set_self_contained(flag("selfContained", selfContained)?))
}

/// Sets whether every execute reads the present values of the user's arrays (0 after create). 1: a program
/// may change values in place when the products that it has enqueued with the plan are done, or in the order
/// of their stream, and needs no further call. Analysis reads the pattern alone (the value array must exist;
/// its values may be anything then). tarsiaPlan_updateValues with another array moves the plan to that array,
/// asynchronously, since only its address changes (a CUDA graph goes on with the address that it was captured
/// with, and as long as there is such a graph the call is refused outside of a capture). With
/// setValueUpdates(1) SpGEMM also keeps C's pattern.
///
/// The algorithms TARSIA_SPMV_ALG_CSR, TARSIA_SPMM_ALG_ROW and TARSIA_SPGEMM_ALG_HASH support it; DEFAULT
/// then takes the one of the operation, whatever the effort. They do for matrices whose values have the order
/// of op(A)'s rows: CSR with op N, CSC with op T, and with op C for real values; for SpGEMM both factors, or
/// both by columns (CSC with op N, CSR with op T).
///
/// On a device a plan of SpMV may then keep columns of its own in 16 bits, which analysis makes from the
/// pattern: with fp64 a product moves 10 bytes per entry instead of 12, with fp32 6 instead of 8, and has the
/// same bits. They count in planBytes: 2 bytes per entry and, where op(A) has more than 65536 columns, 4 per
/// row or 4 per 32 entries. Efforts DEFAULT and TUNED make them where that is predicted to pay, which it does
/// not for small matrices and for few executes (tarsiaPlan_setExpectedExecutes). Where 16 bits cannot hold
/// the distances between columns, or memory is missing, the plan reads the user's columns. tarsiaPlan_getInfo
/// says in reason which it does. Offsets are read in place, so that all arrays of A must stay.
///
/// On the host a plan of SpMM on rows in place, whatever this setting, copies their columns if offsets and
/// indices have 32 bits, B and C are real and of the compute type, and C is stored by rows of up to 256 bytes
/// (by nHint): 2 or 4 bytes per entry, for which products for beta = 0 need not check columns. It does so with
/// efforts DEFAULT and TUNED, if stated executes pay for it, and memory is there.
///
/// Statuses: INVALID_VALUE (plan, valuesInPlace not 0 or 1), INVALID_STATE (analyzed already).
/// tarsiaPlan_analyze returns NOT_SUPPORTED for another algorithm by name, another format or op, a matrix in
/// tiles, and a reordering by name; the text says which, and what would be supported.
#[no_mangle]
pub extern "C" fn tarsiaPlan_setValuesInPlace(plan: tarsiaPlan_t, valuesInPlace: c_int) -> tarsiaStatus_t {
    guard(|| {
        let (plan, on) = (live_plan(plan)?, flag("valuesInPlace", valuesInPlace)?);
        plan.set(|settings| settings.values_in_place = on)
    })
}

/// Sets how often the plan will be executed (SpGEMM: its numeric phase). The choice then minimises the
/// predicted time of analysis and of executes products together, so that a plan for few products converts
/// nothing and reads A in place, as with effort QUICK; effort TUNED builds and times only candidates that may
/// gain more than that takes. A plan may be executed more often, or less; one that was told a few executions
/// and has many can take twice as long for each as one that was told nothing. 0 (after create): not known;
/// the choice minimises the time of one product and ignores that of analysis, as if the plan were executed
/// very often.
///
/// Statuses: INVALID_VALUE (plan, executes < 0), INVALID_STATE (analyzed already).
#[no_mangle]
pub extern "C" fn tarsiaPlan_setExpectedExecutes(plan: tarsiaPlan_t, executes: i64) -> tarsiaStatus_t {
    guard(|| {
        let plan = live_plan(plan)?;
        refuse_if!(executes < 0, invalid("executes"), "{executes} is negative");
        plan.set(|settings| settings.expected_executes = executes)
    })
}

/// Sets whether SpGEMM sorts the columns of each row of C (1 after create). 0: every row of C = alpha · op(A)
/// · op(B) has the same entries with the same bits, but in the order that costs least, which may be ascending
/// for some rows, or for all, and differs between versions, backends and devices. The order is the same in
/// every numeric phase, with any alpha, and in other plans of the same problem and settings; with
/// tarsiaPlan_setValueUpdates(plan, 1) it is kept with the pattern. This suits results whose readers need no
/// order: another product, SpMV and SpMM (all of which take unsorted rows), multigrid, counting of triangles.
///
/// C is then CSR, and DEFAULT takes TARSIA_SPGEMM_ALG_HASH, never TILE. tarsiaSpMatGetSorted says whether a
/// matrix is known to be sorted.
///
/// Statuses: INVALID_VALUE (plan is NULL or not of SpGEMM, sortedOutput not 0 or 1), INVALID_STATE (analyzed
/// already). With 0, tarsiaPlan_analyze returns NOT_SUPPORTED for TARSIA_SPGEMM_ALG_TILE by name and for A or
/// B in tiles, tarsiaSpGEMM_numeric for C in CSC or in tiles.
#[no_mangle]
pub extern "C" fn tarsiaPlan_setSortedOutput(plan: tarsiaPlan_t, sortedOutput: c_int) -> tarsiaStatus_t {
    guard(|| {
        let plan = live_plan(plan)?;
        if plan.kind() != OpKind::Spgemm {
            return Err(Error::invalid("plan", "the order of a sparse result is for SpGEMM"));
        }
        let on = flag("sortedOutput", sortedOutput)?;
        plan.set(|settings| settings.sorted_output = on)
    })
}

/// Sets the most bytes that the plan may hold at one time, including temporary memory of analysis and of
/// SpGEMM's phases, but not C; 0 removes the limit (after create: the memory that the backend has left).
/// SpGEMM on a device works part by part where an intermediate result does not fit as a whole: on some rows
/// of C, or of its tiles, at a time (tarsiaSpGEMM_createPlan says how that may change bits). A call that
/// would still need more returns INSUFFICIENT_RESOURCES and says how much; the plan stays as it was.
///
/// Statuses: INVALID_VALUE (plan), INVALID_STATE (analyzed already).
#[no_mangle]
pub extern "C" fn tarsiaPlan_setMemoryLimit(plan: tarsiaPlan_t, bytes: usize) -> tarsiaStatus_t {
    guard(|| {
        let limit = if bytes == 0 { usize::MAX } else { bytes };
        live_plan(plan)?.set(|settings| settings.memory_limit = limit)
    })
}

/// Reads and validates the matrix (offsets ascend and end at nnz, indices are in range), chooses algorithm
/// and layout, converts, and grows the handle's own workspace to the size that execute will need. Once per
/// plan; a failure leaves the plan as it was, so that the call may be repeated.
///
/// The plan may or may not have copied A's values when this returns: after changing values a program calls
/// tarsiaPlan_updateValues, and until then a product may use the old or the new values (with
/// tarsiaPlan_setValuesInPlace always the new ones, and values are not read here). With
/// tarsiaSetChecks(handle, 1) it takes fingerprints of the arrays.
///
/// Blocks; may allocate; not inside a capture. Never reads alpha or beta.
///
/// Statuses: NOT_INITIALIZED, INVALID_VALUE (plan; A or B has a NULL array or an
/// invalid pattern: the text says where; handle of another backend or device),
/// INVALID_STATE (analyzed already), NOT_SUPPORTED (effort TUNED in
/// deterministic mode; a matrix that must be converted has more than 2^31 - 1
/// columns; values that cannot be read in place, where tarsiaPlan_setValuesInPlace asks for it),
/// ALLOC_FAILED, INSUFFICIENT_RESOURCES (memory limit).
#[no_mangle]
pub extern "C" fn tarsiaPlan_analyze(handle: tarsiaHandle_t, plan: tarsiaPlan_t) -> tarsiaStatus_t {
    guard_handle(handle, |handle| {
        heap::check()?;
        live_plan(plan)?.analyze(handle)
    })
}

/// Writes the decisions of a plan's analysis into a buffer: the algorithm, the layout or the arrays that A
/// and B are read from, reordering and block size, with effort TUNED as measured. They include the order of
/// the rows of op(A) where the host has computed one, which is the slow part of analysis: the order of a
/// policy by name (tarsiaPlan_setReorder; DCSR's is computed again, which takes little), and on the host
/// backend the clusters of SMAT. They do not include clusters that a device finds, pointers, or values of A.
/// A file, a message or a database may keep the decisions: tarsiaPlan_setDecisions gives them to a plan of
/// the same problem, whose analysis then builds the same layout without choosing it.
///
/// buffer: host, of room bytes; NULL only asks for the number of bytes.
/// bytes: host; the size of the decisions: some hundred bytes, and 4 bytes more per row of op(A) with an
/// order of rows; at most 64 KiB and 4 bytes per row.
///
/// Reads A's index arrays (SpGEMM: and B's) once, for a 128-bit fingerprint of their contents; a
/// self-contained plan has kept it. Blocks; not inside a capture.
///
/// Statuses: NOT_INITIALIZED, INVALID_VALUE (plan, bytes is NULL, handle of another backend or device),
/// INVALID_STATE (not analyzed; the stream is being captured), INSUFFICIENT_RESOURCES (buffer is too small;
/// the text says the bytes needed), NOT_SUPPORTED (A or B is in tiles, for which analysis decides nothing).
#[no_mangle]
pub unsafe extern "C" fn tarsiaPlan_getDecisions(
    handle: tarsiaHandle_t,
    plan: tarsiaPlan_t,
    buffer: *mut c_void,
    room: usize,
    bytes: *mut usize,
) -> tarsiaStatus_t {
    guard_handle(handle, |handle| {
        let plan = live_plan(plan)?;
        let out = out!(bytes);
        let decisions = plan.decisions(handle)?;
        if !buffer.is_null() {
            if room < decisions.len() {
                return Err(Error::new(
                    Status::InsufficientResources,
                    format!("room: buffer has {room} bytes, the decisions need {}", decisions.len()),
                ));
            }
            // SAFETY: the caller promises `room` bytes, which nothing else uses during the call.
            unsafe {
                std::ptr::copy_nonoverlapping(decisions.as_ptr(), buffer.cast::<u8>(), decisions.len())
            };
        }
        out.set(decisions.len())
    })
}

/// Gives a plan, before tarsiaPlan_analyze and after its other settings, the decisions of another plan of the
/// same problem. Its analysis then computes no pattern statistics, uses no cost model, times nothing and
/// computes no order of rows that the decisions contain. It builds the layout of the other plan, and its
/// products have the same bits (in deterministic mode `swift` and `dense` on a device have the bits of that
/// mode). Effort may differ from the other plan's: decisions that TUNED has measured may be used with any
/// effort, and in deterministic mode, except those for algorithm `dense` on a device, which have cublasLt's
/// algorithms timed again.
///
/// The same problem means: the same operation, ops, types (computeType too), orders, nHint, format, shape,
/// number of entries, index types, index base, contents of the index arrays, valueUpdates, valuesInPlace,
/// selfContained, expected executes, sortedOutput, reorder and blocks; and the same version of the library,
/// backend and model of the device or processor. The contents of buffer are verified: data that are damaged,
/// cut off, or for another problem are an error whose text says what differs, and the plan stays as it was;
/// an order of rows must have each row of op(A) once.
///
/// buffer: host; NULL with 0 bytes removes decisions that were given before.
/// bytes: the size of buffer, as tarsiaPlan_getDecisions gave it.
///
/// Reads the index arrays once. Blocks; not inside a capture.
///
/// Statuses: NOT_INITIALIZED, INVALID_VALUE (plan, handle of another backend or device; buffer is NULL and
/// bytes is not 0, or the reverse; damaged data; decisions for another problem or other settings; A or B
/// has a NULL array), INVALID_STATE (analyzed already; the stream is being captured), NOT_SUPPORTED
/// (decisions of another version of the library or of the format, of another backend or model of device;
/// A or B is in tiles). tarsiaPlan_analyze returns INVALID_VALUE if the settings have changed after this
/// call.
#[no_mangle]
pub unsafe extern "C" fn tarsiaPlan_setDecisions(
    handle: tarsiaHandle_t,
    plan: tarsiaPlan_t,
    buffer: *const c_void,
    bytes: usize,
) -> tarsiaStatus_t {
    guard_handle(handle, |handle| {
        let plan = live_plan(plan)?;
        let decisions: &[u8] = match (buffer.is_null(), bytes) {
            (true, 0) => &[],
            (true, _) => return Err(Error::invalid("buffer", format!("it is NULL and bytes is {bytes}"))),
            (false, 0) => return Err(Error::invalid("bytes", "it is 0 and buffer is not NULL")),
            (false, _) if bytes > isize::MAX as usize => {
                return Err(Error::invalid("bytes", format!("{bytes} is more than memory can address")))
            }
            // SAFETY: the caller promises that many bytes, unchanged during the call.
            (false, _) => unsafe { std::slice::from_raw_parts(buffer.cast::<u8>(), bytes) },
        };
        plan.decide(handle, decisions)
    })
}

/// Gets the bytes of workspace that execute needs with n columns (SpMM; SpMV and SpGEMM ignore n).
///
/// bytes: host.
///
/// Statuses: INVALID_VALUE (plan, n < 0, bytes is NULL), INVALID_STATE (not
/// analyzed; called by an allocator that a change of this plan has called).
#[no_mangle]
pub unsafe extern "C" fn tarsiaPlan_workspaceSize(
    plan: tarsiaPlan_t,
    n: i64,
    bytes: *mut usize,
) -> tarsiaStatus_t {
    guard(|| {
        let plan = live_plan(plan)?;
        let out = out!(bytes);
        refuse_if!(n < 0, invalid("n"), "{n} is negative");
        out.set(plan.workspace_bytes(n)?)
    })
}

/// Prepares this handle for executes of the plan: grows its own workspace to the plan's need at nHint
/// columns, or checks that the user's is large enough. tarsiaPlan_analyze does this for the handle that it is
/// called with; call this for every other handle.
///
/// Blocks; may allocate; not inside a capture.
///
/// Statuses: NOT_INITIALIZED, INVALID_VALUE (plan, handle of another backend or
/// device), INVALID_STATE (not analyzed), ALLOC_FAILED, INSUFFICIENT_RESOURCES
/// (the user's workspace is too small; the text says the bytes needed).
#[no_mangle]
pub extern "C" fn tarsiaPlan_prepare(handle: tarsiaHandle_t, plan: tarsiaPlan_t) -> tarsiaStatus_t {
    guard_handle(handle, |handle| live_plan(plan)?.prepare(handle))
}

/// Gives the plan new values of A for the same pattern: O(nnz), no new analysis. For SpGEMM these are the
/// values of A alone; tarsiaSpGEMM_updateValues takes those of both factors.
///
/// newValues: in the backend's memory, in the order and type of A's value array. It must stay valid until it
/// is replaced, or for the plan's life (a plan may read it in place); for a self-contained plan until the
/// work of this call is done. May be A's own array after the program changed it.
///
/// After a program has changed values it calls this: until then a product may use the old or the new values,
/// whichever way they changed (in A's array, or by new pointers of the descriptor, which reach no plan). Only
/// a plan of tarsiaPlan_setValuesInPlace needs no call for values that changed in its array.
///
/// With setValueUpdates(1) or setValuesInPlace(1) asynchronous and capturable; else it may allocate and
/// block. Blocks with tarsiaSetChecks(handle, 1), where it renews the fingerprint of the values. Products of
/// other threads use either the old values or the new ones, never some of both.
///
/// Statuses: NOT_INITIALIZED, INVALID_VALUE (plan, newValues is NULL, misaligned or ordinary host memory on
/// CUDA, handle of another backend or device), INVALID_STATE (not analyzed; and while a graph keeps the plan,
/// which goes on with the arrays of its capture: for SpGEMM with a factor in tiles; where newValues is
/// another array than the one that the plan reads in place, unless the call itself is captured, for the calls
/// after it in its graph; and for a plan without setValueUpdates(1) whose own arrays would be replaced),
/// ALLOC_FAILED.
#[no_mangle]
pub unsafe extern "C" fn tarsiaPlan_updateValues(
    handle: tarsiaHandle_t,
    plan: tarsiaPlan_t,
    newValues: *const c_void,
) -> tarsiaStatus_t {
    guard_handle(handle, |handle| live_plan(plan)?.update_values(handle, Address::new(newValues)))
}

/// Answer of tarsiaPlan_getInfo. Later versions append fields.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tarsiaPlanInfo_t {
    /// Input: sizeof(tarsiaPlanInfo_t) of the caller. Must be set before the call.
    pub structSize: usize,
    /// Operation of the plan.
    pub operation: tarsiaOpKind_t,
    /// 1 after tarsiaPlan_analyze has succeeded, else 0.
    pub analyzed: c_int,
    /// Algorithm as a number of the enum of the operation's algorithms; 0 before analysis.
    pub algorithm: c_int,
    /// Layout that analysis built.
    pub layout: tarsiaLayout_t,
    /// Row reordering in use.
    pub reorder: tarsiaReorder_t,
    /// Effort that was set.
    pub effort: tarsiaEffort_t,
    /// 1 if value updates are set, else 0.
    pub valueUpdates: c_int,
    /// 1 if the user's arrays are read in place, perhaps but for the columns, 0 if the plan has a copy.
    pub inPlace: c_int,
    /// Rows of op(A).
    pub rows: i64,
    /// Columns of op(A).
    pub cols: i64,
    /// Stored entries of A (BSR: values of all stored blocks).
    pub nnz: i64,
    /// Stored entries of C of a SpGEMM plan after symbolic, else -1.
    pub nnzC: i64,
    /// Multiplications of a SpGEMM plan, else 0.
    pub products: i64,
    /// Bytes that the plan holds now.
    pub planBytes: usize,
    /// The most bytes that the plan held at one time.
    pub peakBytes: usize,
    /// Bytes of workspace that execute needs (SpMM: at nHint columns).
    pub workspaceBytes: usize,
    /// Slots for values in the layout over stored entries; 1 is no padding.
    pub fill: f64,
    /// Wall time of analysis in seconds.
    pub analysisSeconds: f64,
    /// Seconds of one execute: predicted by the cost model, or measured with effort TUNED; 0 if unknown.
    pub predictedSeconds: f64,
    /// Name of the algorithm, ended by 0.
    pub algorithmName: [c_char; 32],
    /// Reason for the choice, ended by 0. For SpMV with pattern statistics: the bytes that the layout moves,
    /// the limit that bounds it, the predicted seconds of every layout, and the statistics.
    pub reason: [c_char; 480],
    /// Executes that the plan is for (tarsiaPlan_setExpectedExecutes); 0: not known.
    pub expectedExecutes: i64,
    /// 1 if every execute reads the values in the user's arrays, else 0.
    pub valuesInPlace: c_int,
    /// 1 if tarsiaSetChecks was on in analysis, so that executes can be checked, else 0.
    pub checked: c_int,
    /// 1 if the rows of C of a SpGEMM plan come out sorted (tarsiaPlan_setSortedOutput), else 0; 1 for other
    /// plans.
    pub sortedOutput: c_int,
    /// Always 0; reserved for a later version.
    pub reserved: c_int,
}

/// Copies a text into an array, cut to fit and ended by 0.
fn text<const N: usize>(text: &str) -> [c_char; N] {
    let mut out = [0; N];
    for (slot, byte) in out.iter_mut().zip(text[..cut(text, N - 1)].bytes()) {
        *slot = byte as c_char;
    }
    out
}

impl From<&Info> for tarsiaPlanInfo_t {
    fn from(info: &Info) -> Self {
        let report = &info.report;
        tarsiaPlanInfo_t {
            structSize: std::mem::size_of::<tarsiaPlanInfo_t>(),
            operation: info.op.into(),
            analyzed: c_int::from(info.analyzed),
            algorithm: report.algorithm.map_or(0, |algorithm| algorithm.code()),
            layout: report.layout.kind.into(),
            reorder: report.reorder.into(),
            effort: info.settings.effort.into(),
            valueUpdates: c_int::from(info.settings.value_updates),
            inPlace: c_int::from(report.layout.in_place),
            rows: info.shape.0,
            cols: info.shape.1,
            nnz: info.shape.2,
            nnzC: info.nnz_c,
            products: info.products,
            planBytes: info.plan_bytes,
            peakBytes: info.peak_bytes,
            workspaceBytes: info.workspace_bytes,
            fill: report.layout.fill,
            analysisSeconds: report.analysis_seconds,
            predictedSeconds: report.predicted_seconds,
            algorithmName: text(report.algorithm.map_or("none", |algorithm| algorithm.name())),
            reason: text(&report.reason),
            expectedExecutes: info.settings.expected_executes,
            valuesInPlace: c_int::from(info.settings.values_in_place),
            checked: c_int::from(info.checked),
            sortedOutput: c_int::from(info.settings.sorted_output),
            reserved: 0,
        }
    }
}

/// Gets the plan's settings and the choices of its analysis. Allowed before analysis too.
///
/// info: host; the caller sets info->structSize = sizeof(tarsiaPlanInfo_t) first. A smaller (older) struct
/// gets the fields that it has; in a larger (newer) one the rest is zeroed; structSize itself stays.
///
/// Statuses: INVALID_VALUE (plan, info is NULL, structSize below the first
/// field's end or above 64 KiB), INVALID_STATE (called by an allocator that a
/// change of this plan has called).
#[no_mangle]
pub unsafe extern "C" fn tarsiaPlan_getInfo(
    plan: tarsiaPlan_t,
    info: *mut tarsiaPlanInfo_t,
) -> tarsiaStatus_t {
    guard(|| {
        let plan = live_plan(plan)?;
        out!(info);
        // SAFETY: not NULL, aligned; the caller promises that structSize is set.
        let size = unsafe { info.cast::<usize>().read() };
        let field = std::mem::size_of::<usize>();
        refuse_if!(
            !(field..=1 << 16).contains(&size),
            invalid("info"),
            "structSize is {size}; set it to sizeof(tarsiaPlanInfo_t) before the call"
        );
        let mut facts = tarsiaPlanInfo_t::from(&plan.info()?);
        facts.structSize = size;
        let ours = std::mem::size_of::<tarsiaPlanInfo_t>();
        // SAFETY: the caller promises structSize bytes; the copy is cut to them
        // and to the size of `facts`.
        unsafe {
            std::ptr::copy_nonoverlapping((&raw const facts).cast::<u8>(), info.cast::<u8>(), size.min(ours));
            if size > ours {
                info.cast::<u8>().add(ours).write_bytes(0, size - ours);
            }
        }
        Ok(())
    })
}

/// Destroys a plan. NULL does nothing.
///
/// Waits for other threads' calls with the plan to return, but not for their work on a device: the plan's
/// memory, and that of tiles which nothing else uses, is reused only after that work is done. A graph that
/// has captured calls with the plan keeps its memory, and may be launched, until the graph is destroyed and
/// its last launch is done.
/// A's arrays, where the plan reads them in place, and dense operands are the caller's in any case. Streams
/// on which the plan has run may be destroyed before the plan, except for plans whose memory comes from
/// tarsiaSetAllocator's functions: these are called with the stream that the handle had at
/// tarsiaPlan_analyze, which must still exist.
///
/// Statuses: INVALID_VALUE (not a live plan), INVALID_STATE (called by an
/// allocator that a call with this plan has called; a graph keeps the plan, whose memory is from
/// tarsiaSetAllocator's functions; the plan stays).
#[no_mangle]
pub extern "C" fn tarsiaPlan_destroy(plan: tarsiaPlan_t) -> tarsiaStatus_t {
    guard(|| {
        if plan.is_null() {
            return Ok(());
        }
        // A plan whose calls cannot be waited for stays alive.
        live_plan(plan)?.destroy()?;
        objects::PLANS.destroy("plan", plan.addr())
    })
}

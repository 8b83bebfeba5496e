//! Handles: creation, modes, checks, plan cache, allocator, logger and workspace.

use std::ffi::{CStr, CString, OsStr};
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

use libc::{c_char, c_int, c_void};

use super::boundary::{check_enum, guard, guard_handle, live_handle, out, Out};
use super::enums::{tarsiaBackend_t, tarsiaLogLevel_t, tarsiaPointerMode_t, tarsiaStatus_t};
use super::objects::{self, pointer, tarsiaHandle_t};
use crate::backend;
use crate::context::{Handle, Logger};
use crate::error::{refuse_if, Error, Result};
use crate::memory::{heap, RawMemory, UserMemory};
use crate::plan::PlanCache;
use crate::reentrancy;
use crate::types::{Address, BackendKind, LogLevel};

/// A user's allocation function. It returns at least bytes (> 0) bytes of the backend's memory, aligned to
/// 256 bytes, or NULL on failure. Memory with less alignment is passed to the free function at once and
/// counts as a failure; the call that needed it returns ALLOC_FAILED. ctx is the pointer that
/// tarsiaSetAllocator got. stream is, for a plan's memory, the stream that the handle of tarsiaPlan_analyze
/// had then, whenever the memory is taken; for other memory it is the handle's stream. The function may be
/// called from any thread that calls the library, and from the library's own threads, on behalf of a call
/// that waits for them. It must not throw.
///
/// The function is called in the midst of a call of the library. It may call the library itself, with these
/// limits: a call from this thread with the plan that is being made or changed (tarsiaPlan_analyze, new
/// values, tarsiaSpGEMM_symbolic and _numeric, tarsiaPlan_destroy) returns INVALID_STATE, and so does
/// tarsiaDestroy with the call's handle. Such a refused call changes nothing. Other plans and handles may be
/// used without these limits. The function must not wait indefinitely for a thread that waits for this call:
/// a getter of another thread with a plan that this call changes waits for its end, so two allocators that
/// ask for each other's plan while both are analyzed hang. The same holds for the logger where it logs a call
/// that the allocation function made.
pub type tarsiaAllocFn_t =
    Option<unsafe extern "C-unwind" fn(ctx: *mut c_void, bytes: usize, stream: *mut c_void) -> *mut c_void>;

/// A user's function that frees ptr, memory of bytes bytes (the size that was asked for) from its allocation
/// function. stream is the stream that the allocation function got. The memory may be used again behind the
/// work that is on this stream when the function is called; the library has made the stream wait for all
/// other work that uses the memory. The function may call the library as the allocation function may.
pub type tarsiaFreeFn_t = Option<
    unsafe extern "C-unwind" fn(ctx: *mut c_void, ptr: *mut c_void, bytes: usize, stream: *mut c_void),
>;

/// A user's function that receives log lines. message ends with 0, has no newline, and lives until the
/// function returns. No lock is held: the function may call the library, also with the plan and the handle of
/// the call that logs, and may destroy the plan, but not the handle (INVALID_STATE; in another thread
/// tarsiaDestroy waits for the call's end). It must not throw.
pub type tarsiaLogFn_t =
    Option<unsafe extern "C-unwind" fn(ctx: *mut c_void, level: tarsiaLogLevel_t, message: *const c_char)>;

fn create(out: Out<tarsiaHandle_t>, kind: BackendKind, device: i32) -> Result<()> {
    heap::prepare_thread()?;
    let handle = Arc::new(Handle::new(backend::open(kind, device)?)?);
    handle.backend().warm_up();
    out.set(pointer(objects::HANDLES.insert(handle)?))
}

/// Creates a handle: on the device of the calling thread's current CUDA context, else on device 0, else (no
/// CUDA driver or device, or a library built without CUDA) on the host.
///
/// handle: host. Blocks. One handle per concurrent stream; destroy with
/// tarsiaDestroy.
///
/// Statuses: INVALID_VALUE (handle is NULL), ALLOC_FAILED, NOT_SUPPORTED (a
/// device for which there are no kernels, a driver too old for the kernels: a device is
/// never passed over for the host).
#[no_mangle]
pub unsafe extern "C" fn tarsiaCreate(handle: *mut tarsiaHandle_t) -> tarsiaStatus_t {
    guard(|| create(out!(handle), BackendKind::Auto, 0))
}

/// Creates a handle on a backend by name. device is 0 on the CPU backends; with
/// CUDA it is the driver's number of the device.
///
/// With CUDA the library works in the calling thread's current context if that
/// is one of the device, else in the device's primary context (the CUDA
/// runtime's), and every call leaves the caller's current context as it was.
/// The context must outlive the handle and its plans.
///
/// handle: host. Blocks.
///
/// Statuses: INVALID_VALUE (handle is NULL, backend is not a tarsiaBackend_t, no
/// such device), ALLOC_FAILED, NOT_SUPPORTED (the library has no code for this
/// backend or device, a driver that is too old for the kernels), NOT_INITIALIZED (CUDA: no driver,
/// no device; the text says which).
#[no_mangle]
pub unsafe extern "C" fn tarsiaCreateWithBackend(
    handle: *mut tarsiaHandle_t,
    backend: MaybeUninit<tarsiaBackend_t>,
    device: c_int,
) -> tarsiaStatus_t {
    guard(|| create(out!(handle), check_enum("backend", backend)?, device))
}

/// Destroys a handle and its workspace; plans made with it stay usable through other handles of the same
/// backend and device. NULL does nothing.
///
/// Waits for other threads' calls with the handle to return, but not for their work on a device: the
/// workspace is reused only after that work is done, and a graph that has captured calls keeps it until the
/// graph is destroyed and its last launch is done. The stream may be destroyed before the handle, except with
/// tarsiaSetAllocator, which says what must live.
///
/// Statuses: NOT_INITIALIZED (not a live handle), INVALID_STATE (called from the
/// allocator or the logger while it serves a call of this handle; a graph keeps the workspace, which is
/// memory of tarsiaSetAllocator's functions: the handle stays).
#[no_mangle]
pub extern "C" fn tarsiaDestroy(handle: tarsiaHandle_t) -> tarsiaStatus_t {
    guard(|| {
        if handle.is_null() {
            return Ok(());
        }
        let live = live_handle(handle)?;
        if live.is_inside() {
            return Err(Error::state(
                "handle: a callback cannot destroy the handle whose call it is part of",
            ));
        }
        live.check_destroy()?;
        objects::HANDLES.destroy("handle", handle.addr())?;
        live.close();
        Ok(())
    })
}

/// Sets the stream (a cudaStream_t) on which the handle's calls run from now
/// on; NULL is the default stream. The host backend keeps but ignores it.
///
/// The handle's workspace moves to the new stream: an event makes the next product begin after the handle's
/// last one on the previous stream. Products that a graph has captured with a handle use its workspace too,
/// and the library does not order them: the graph must not run at the same time as other work of the handle,
/// or as another graph of it.
///
/// Statuses: NOT_INITIALIZED.
#[no_mangle]
pub extern "C" fn tarsiaSetStream(handle: tarsiaHandle_t, stream: *mut c_void) -> tarsiaStatus_t {
    guard_handle(handle, |handle| {
        handle.set_stream(Address::new(stream));
        Ok(())
    })
}

/// Gets the handle's stream.
///
/// stream: host.
///
/// Statuses: NOT_INITIALIZED, INVALID_VALUE (stream is NULL).
#[no_mangle]
pub unsafe extern "C" fn tarsiaGetStream(handle: tarsiaHandle_t, stream: *mut *mut c_void) -> tarsiaStatus_t {
    guard_handle(handle, |handle| out!(stream).set(handle.stream().as_mut_ptr()))
}

/// Sets whether alpha and beta are on the host or on the device from now on; HOST after create. On the host
/// backend both are host memory.
///
/// Statuses: NOT_INITIALIZED, INVALID_VALUE (mode is not a tarsiaPointerMode_t).
#[no_mangle]
pub extern "C" fn tarsiaSetPointerMode(
    handle: tarsiaHandle_t,
    mode: MaybeUninit<tarsiaPointerMode_t>,
) -> tarsiaStatus_t {
    guard_handle(handle, |handle| {
        let mode = check_enum("mode", mode)?;
        handle.set(|modes| modes.pointer_mode = mode);
        Ok(())
    })
}

/// Gets whether alpha and beta are on the host or on the device.
///
/// mode: host.
///
/// Statuses: NOT_INITIALIZED, INVALID_VALUE (mode is NULL).
#[no_mangle]
pub unsafe extern "C" fn tarsiaGetPointerMode(
    handle: tarsiaHandle_t,
    mode: *mut tarsiaPointerMode_t,
) -> tarsiaStatus_t {
    guard_handle(handle, |handle| out!(mode).set_enum(handle.modes().pointer_mode))
}

/// Sets deterministic mode (0 after create): 1 refuses what cannot give the same bits from run to run, such
/// as effort TUNED. On CUDA, a plan that is analyzed in this mode uses another form of TARSIA_SPMM_ALG_SWIFT,
/// and for TARSIA_SPMM_ALG_DENSE, by name or chosen, the library's own kernels: never cublasLt, whose choice
/// of kernels depends on the version that is installed. Plans of these two algorithms that were analyzed
/// outside of the mode and use atomics or cublasLt are refused in it (NOT_SUPPORTED). A plan that effort
/// TUNED has analyzed outside of the mode is accepted in it: it repeats its own bits, and only the choice of
/// algorithm may differ between runs.
///
/// Everything else is deterministic in either mode, with two exceptions. Arrays must have the same alignment
/// to 16 bytes from run to run: an array that is aligned to less may be read, and summed, in other pieces.
/// And the order in which SpGEMM sums on a device depends on C's format and on the memory that is free
/// (tarsiaSpGEMM_createPlan).
///
/// Statuses: NOT_INITIALIZED, INVALID_VALUE (deterministic is not 0 or 1).
#[no_mangle]
pub extern "C" fn tarsiaSetDeterministic(handle: tarsiaHandle_t, deterministic: c_int) -> tarsiaStatus_t {
    guard_handle(handle, |handle| {
        let on = super::plan::flag("deterministic", deterministic)?;
        handle.set(|modes| modes.deterministic = on);
        Ok(())
    })
}

/// Gets whether deterministic mode is on (1) or off (0).
///
/// deterministic: host.
///
/// Statuses: NOT_INITIALIZED, INVALID_VALUE (deterministic is NULL).
#[no_mangle]
pub unsafe extern "C" fn tarsiaGetDeterministic(
    handle: tarsiaHandle_t,
    deterministic: *mut c_int,
) -> tarsiaStatus_t {
    guard_handle(handle, |handle| out!(deterministic).set(c_int::from(handle.modes().deterministic)))
}

/// Sets checks for development (0 after create): 1 finds values and patterns that were changed without a call
/// that brings them into a plan. tarsiaPlan_analyze then remembers 128-bit fingerprints of the plan's index
/// arrays and values (with tarsiaPlan_setValuesInPlace: of the index arrays only), and the calls with new
/// values renew the fingerprints of the values. Every product with the plan reads the arrays once more
/// (tarsiaSpGEMM_symbolic: the index arrays alone), also where alpha is 0, and returns INVALID_STATE before
/// it computes anything if they have changed; the text says which array, and which call is needed:
/// tarsiaPlan_updateValues for values (tarsiaSpGEMM_updateValues for B's), a new plan for a pattern. The same
/// error is returned if the descriptor that the plan was created from still has the plan's index arrays, but
/// got another value array (tarsiaSpMatSetValues, which reaches no plan) after the plan took its values. A
/// descriptor that got other index arrays counts as another matrix and is not compared. Matrices in tiles are
/// not checked.
///
/// Every product of a plan that was analyzed while checks were off returns INVALID_STATE on a handle with
/// checks on. A self-contained plan reads none of A's arrays and is not compared with them
/// (tarsiaPlanInfo_t.checked is 0). A plan whose values were updated while checks were off returns
/// INVALID_STATE, and says so, until they are updated with checks on.
///
/// On CUDA every product, with a plan or without, also asks the driver where its operands are, and returns
/// INVALID_VALUE, with the argument's name, before a kernel or the program would fault: for x, y, z, B, C and
/// D in ordinary host memory on a device that cannot use it, for alpha and beta in device memory with
/// TARSIA_POINTER_MODE_HOST, and for alpha and beta in ordinary host memory with TARSIA_POINTER_MODE_DEVICE.
///
/// Checked calls block, also in a capture: there the arrays are read at once on a stream of the library's
/// own, so that work which writes them must be done before, and the capture goes on. Replays of the graph are
/// not checked.
///
/// Statuses: NOT_INITIALIZED, INVALID_VALUE (checks is not 0 or 1).
#[no_mangle]
pub extern "C" fn tarsiaSetChecks(handle: tarsiaHandle_t, checks: c_int) -> tarsiaStatus_t {
    guard_handle(handle, |handle| {
        handle.set_checks(super::plan::flag("checks", checks)?);
        Ok(())
    })
}

/// Gets whether checks are on (1) or off (0).
///
/// checks: host.
///
/// Statuses: NOT_INITIALIZED, INVALID_VALUE (checks is NULL).
#[no_mangle]
pub unsafe extern "C" fn tarsiaGetChecks(handle: tarsiaHandle_t, checks: *mut c_int) -> tarsiaStatus_t {
    guard_handle(handle, |handle| out!(checks).set(c_int::from(handle.checks())))
}

/// Sets a folder in which the decisions of tarsiaPlan_analyze are stored for later analyses, also in other
/// processes. An analysis with this handle looks there for the decisions of an earlier analysis of the same
/// problem (all that tarsiaPlan_setDecisions lists, effort and deterministic mode). If it finds them, it
/// builds the same layout without pattern statistics, cost model or timings; else it decides as usual and
/// stores the decisions. To recognise a problem it reads A's index arrays (SpGEMM: and B's) once.
/// tarsiaPlan_getInfo's reason says where decisions came from. Plans that were given decisions by
/// tarsiaPlan_setDecisions do not use the folder.
///
/// The folder has one file per problem, as large as tarsiaPlan_getDecisions says. Any number of processes,
/// also on several machines, may share the folder, and any file in it may be deleted. A damaged file, or one
/// with other contents, is logged as a warning and written again. Where nothing can be written, analysis
/// works as without a folder, logs a warning, and says so in its reason.
///
/// Only users whom the program trusts should be able to write to the folder: the program's own user, or a
/// group that shares its decisions. This is not checked, nor who owns the folder and its files, nor links on
/// the path to the folder. These protections exist: files are made anew under random names and renamed, so
/// that nothing is written through a link; only regular files (no links, devices or FIFOs) of at most 64 KiB
/// and 4 bytes per row of op(A) are read; and their contents are verified like those of
/// tarsiaPlan_setDecisions. Whoever can write there can thus make plans slow, by decisions that are valid and
/// bad, or keep decisions from being stored, and no more. Files that a process left unfinished more than a
/// day ago are removed.
///
/// folder: host; a path that ends with 0; a relative path is resolved now, wherever the process goes later.
/// The folder is created if it does not exist. NULL, as after create: no folder.
///
/// Statuses: NOT_INITIALIZED, INVALID_VALUE (folder: its path is empty, it cannot be made or written to).
#[no_mangle]
pub unsafe extern "C" fn tarsiaSetPlanCache(handle: tarsiaHandle_t, folder: *const c_char) -> tarsiaStatus_t {
    guard_handle(handle, |handle| {
        if folder.is_null() {
            handle.set(|modes| modes.plan_cache = None);
            return Ok(());
        }
        // SAFETY: the caller promises a text that ends with 0, unchanged during the call.
        let path = Path::new(OsStr::from_bytes(unsafe { CStr::from_ptr(folder) }.to_bytes()));
        refuse_if!(path.as_os_str().is_empty(), invalid("folder"), "its path is empty");
        let cache = Arc::new(PlanCache::open(path)?);
        handle.set(|modes| modes.plan_cache = Some(cache));
        Ok(())
    })
}

/// Takes memory for plans, conversions and the handle's own workspace from the user's functions; NULL for
/// both goes back to the library's. Allowed until the first plan is created or analyzed with the handle, or
/// the first product without a plan has allocated. An allocation that fails makes the call that needed it
/// return ALLOC_FAILED and leaves every object usable.
///
/// All memory of a plan comes from the handle that tarsiaPlan_analyze gets, also what later calls with other
/// handles allocate for the plan. The functions and ctx must stay valid until the handle, all plans that were
/// analyzed with it, and the matrices in tiles that it has filled are destroyed. So must every stream that
/// the handle had when it allocated: memory is freed on the stream that it was allocated for, in that
/// stream's order, so that tarsiaDestroy and tarsiaPlan_destroy must not be called while that stream is
/// captured. Some 64 KiB that tarsiaCreate allocates for a handle on a GPU never come from these functions.
///
/// Statuses: NOT_INITIALIZED, INVALID_VALUE (one of the functions is NULL),
/// INVALID_STATE (a plan was created or analyzed already, or a product without a plan has allocated).
#[no_mangle]
pub unsafe extern "C" fn tarsiaSetAllocator(
    handle: tarsiaHandle_t,
    alloc: tarsiaAllocFn_t,
    free: tarsiaFreeFn_t,
    ctx: *mut c_void,
) -> tarsiaStatus_t {
    guard_handle(handle, |handle| {
        let memory: Option<Arc<dyn RawMemory>> = match (alloc, free) {
            (None, None) => None,
            (Some(alloc), Some(free)) => {
                // SAFETY: the caller promises that the functions may be called
                // with ctx for as long as the handle and its plans live.
                Some(Arc::new(unsafe { UserMemory::new(alloc, free, Address::new(ctx)) }))
            }
            (None, Some(_)) => return Err(Error::invalid("alloc", "it is NULL and free is not")),
            (Some(_), None) => return Err(Error::invalid("free", "it is NULL and alloc is not")),
        };
        handle.set_memory(memory)
    })
}

struct UserLogger {
    callback: unsafe extern "C-unwind" fn(*mut c_void, tarsiaLogLevel_t, *const c_char),
    ctx: Address,
}

impl Logger for UserLogger {
    fn log(&self, level: LogLevel, message: &CString) {
        // SAFETY: the caller of tarsiaSetLogger promised that the function may
        // be called with ctx; the text ends with 0 and outlives the call.
        reentrancy::user_function(|| unsafe {
            (self.callback)(self.ctx.as_mut_ptr(), level.into(), message.as_ptr())
        })
    }
}

/// Sends the handle's log lines to callback: calls with this handle that failed (ERROR), failures that the
/// library worked around, such as an unreadable file of the plan cache (WARNING), and what analysis chose and
/// why (INFO). NULL stops it. Calls that take no handle, those on plans and descriptors alone, are not
/// logged; tarsiaGetLastErrorMessage has their text. callback and ctx must stay valid until callback is
/// replaced, or until the handle is destroyed.
///
/// Statuses: NOT_INITIALIZED.
#[no_mangle]
pub unsafe extern "C" fn tarsiaSetLogger(
    handle: tarsiaHandle_t,
    callback: tarsiaLogFn_t,
    ctx: *mut c_void,
) -> tarsiaStatus_t {
    guard_handle(handle, |handle| {
        let logger = |callback| Arc::new(UserLogger { callback, ctx: Address::new(ctx) }) as Arc<dyn Logger>;
        handle.set(|modes| modes.logger = callback.map(logger));
        Ok(())
    })
}

/// Sets the memory that execute uses as workspace: bytes bytes of the backend's memory, aligned to 16 bytes,
/// that nothing else uses while the handle's calls run. NULL with 0 bytes goes back to the handle's own
/// workspace, which tarsiaPlan_analyze, tarsiaPlan_prepare and tarsiaSpMM_once grow.
///
/// Statuses: NOT_INITIALIZED, INVALID_VALUE (ptr without bytes, bytes without
/// ptr, ptr is misaligned, or ordinary host memory on CUDA).
#[no_mangle]
pub unsafe extern "C" fn tarsiaSetWorkspace(
    handle: tarsiaHandle_t,
    ptr: *mut c_void,
    bytes: usize,
) -> tarsiaStatus_t {
    guard_handle(handle, |handle| handle.set_workspace(Address::new(ptr), bytes))
}

/// Gets the handle's backend: HOST, CUDA or REFERENCE.
///
/// backend: host.
///
/// Statuses: NOT_INITIALIZED, INVALID_VALUE (backend is NULL).
#[no_mangle]
pub unsafe extern "C" fn tarsiaGetBackend(
    handle: tarsiaHandle_t,
    backend: *mut tarsiaBackend_t,
) -> tarsiaStatus_t {
    guard_handle(handle, |handle| out!(backend).set_enum(handle.backend().kind()))
}

/// Gets the number of the handle's device; 0 on the CPU backends.
///
/// device: host.
///
/// Statuses: NOT_INITIALIZED, INVALID_VALUE (device is NULL).
#[no_mangle]
pub unsafe extern "C" fn tarsiaGetDevice(handle: tarsiaHandle_t, device: *mut c_int) -> tarsiaStatus_t {
    guard_handle(handle, |handle| out!(device).set(handle.backend().device()))
}

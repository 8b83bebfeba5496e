//! The CUDA driver, opened at run time.
//!
//! `cust` and [`super::driver`] call `cu*` functions as if they linked libcuda. Here each of those symbols is
//! a hidden trampoline that jumps through a slot. [`load`] opens `libcuda.so.1` and fills the slots; until
//! then, and without a driver, every function returns `CUDA_ERROR_SHARED_OBJECT_INIT_FAILED`. So the library
//! links and loads where there is no driver, shares the driver with a program that has linked it, and neither
//! exports a `cu*` symbol nor binds to one that the program exports.

use std::ffi::{c_void, CStr};
use std::sync::atomic::{AtomicPtr, Ordering};

use once_cell::sync::OnceCell;
use parking_lot::Mutex;

/// `CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND`: the driver lacks a function.
pub const SYMBOL_NOT_FOUND: u32 = 302;
/// `CUDA_ERROR_SHARED_OBJECT_INIT_FAILED`: no driver has been opened.
pub const NOT_LOADED: u32 = 303;

extern "C" fn not_loaded() -> u32 {
    NOT_LOADED
}

extern "C" fn symbol_not_found() -> u32 {
    SYMBOL_NOT_FOUND
}

/// Jump to the address in a slot.
#[cfg(target_arch = "x86_64")]
macro_rules! jump {
    () => {
        "endbr64\njmp qword ptr [rip + {slot}]"
    };
}
#[cfg(target_arch = "aarch64")]
macro_rules! jump {
    // `hint #34` is `bti c`, a landing pad of indirect calls.
    () => {
        "hint #34\nadrp x16, {slot}\nldr x16, [x16, :lo12:{slot}]\nbr x16"
    };
}

macro_rules! trampolines {
    ($($name:ident)*) => {
        #[allow(non_upper_case_globals)]
        mod slots {
            use super::*;
            $(pub static $name: AtomicPtr<c_void> = AtomicPtr::new(not_loaded as *mut c_void);)*
        }

        $(
            // The jump keeps every argument register and the stack as they are,
            // so one trampoline serves any signature.
            std::arch::global_asm!(
                concat!(".pushsection .text.", stringify!($name), ",\"ax\",@progbits"),
                concat!(".globl ", stringify!($name)),
                concat!(".hidden ", stringify!($name)),
                concat!(".type ", stringify!($name), ",@function"),
                concat!(stringify!($name), ":"),
                jump!(),
                concat!(".size ", stringify!($name), ", . - ", stringify!($name)),
                ".popsection",
                slot = sym slots::$name,
            );
        )*

        static SYMBOLS: &[(&str, &AtomicPtr<c_void>)] =
            &[$((concat!(stringify!($name), "\0"), &slots::$name),)*];
    };
}

// Functions that cust 0.3.2 refers to.
trampolines! {
    cuArray3DCreate_v2
    cuArray3DGetDescriptor_v2
    cuArrayDestroy
    cuCtxCreate_v2
    cuCtxDestroy_v2
    cuCtxGetApiVersion
    cuCtxGetCacheConfig
    cuCtxGetCurrent
    cuCtxGetDevice
    cuCtxGetFlags
    cuCtxGetLimit
    cuCtxGetSharedMemConfig
    cuCtxGetStreamPriorityRange
    cuCtxPopCurrent_v2
    cuCtxPushCurrent_v2
    cuCtxSetCacheConfig
    cuCtxSetCurrent
    cuCtxSetLimit
    cuCtxSetSharedMemConfig
    cuCtxSynchronize
    cuDestroyExternalMemory
    cuDeviceGet
    cuDeviceGetAttribute
    cuDeviceGetCount
    cuDeviceGetName
    cuDevicePrimaryCtxRelease_v2
    cuDevicePrimaryCtxReset_v2
    cuDevicePrimaryCtxRetain
    cuDevicePrimaryCtxSetFlags_v2
    cuDeviceTotalMem_v2
    cuDriverGetVersion
    cuEventCreate
    cuEventDestroy_v2
    cuEventElapsedTime
    cuEventQuery
    cuEventRecord
    cuEventSynchronize
    cuExternalMemoryGetMappedBuffer
    cuFuncGetAttribute
    cuFuncSetCacheConfig
    cuFuncSetSharedMemConfig
    cuGetErrorString
    cuGraphAddKernelNode
    cuGraphCreate
    cuGraphDebugDotPrint
    cuGraphDestroy
    cuGraphGetEdges
    cuGraphGetNodes
    cuGraphKernelNodeGetParams
    cuGraphNodeGetType
    cuImportExternalMemory
    cuInit
    cuLaunchHostFunc
    cuLaunchKernel
    cuLinkAddData_v2
    cuLinkComplete
    cuLinkCreate_v2
    cuLinkDestroy
    cuMemAdvise
    cuMemAllocAsync
    cuMemAllocHost_v2
    cuMemAllocManaged
    cuMemAlloc_v2
    cuMemFreeAsync
    cuMemFreeHost
    cuMemFree_v2
    cuMemGetInfo_v2
    cuMemPrefetchAsync
    cuMemcpy2D_v2
    cuMemcpyAtoH_v2
    cuMemcpyDtoDAsync_v2
    cuMemcpyDtoD_v2
    cuMemcpyDtoHAsync_v2
    cuMemcpyDtoH_v2
    cuMemcpyHtoA_v2
    cuMemcpyHtoDAsync_v2
    cuMemcpyHtoD_v2
    cuMemsetD16Async
    cuMemsetD16_v2
    cuMemsetD32Async
    cuMemsetD32_v2
    cuMemsetD8Async
    cuMemsetD8_v2
    cuModuleGetFunction
    cuModuleGetGlobal_v2
    cuModuleLoad
    cuModuleLoadData
    cuModuleLoadDataEx
    cuModuleUnload
    cuOccupancyAvailableDynamicSMemPerBlock
    cuOccupancyMaxActiveBlocksPerMultiprocessor
    cuOccupancyMaxPotentialBlockSize
    cuStreamCreateWithPriority
    cuStreamDestroy_v2
    cuStreamGetFlags
    cuStreamGetPriority
    cuStreamQuery
    cuStreamSynchronize
    cuStreamWaitEvent
    cuSurfObjectCreate
    cuSurfObjectDestroy
    cuSurfObjectGetResourceDesc
    cuTexObjectCreate
    cuTexObjectDestroy
    cuTexObjectGetResourceDesc
    cuTexObjectGetResourceViewDesc
    // Further functions that driver.rs calls.
    cuCtxGetId
    cuFuncGetParamInfo
    cuFuncSetAttribute
    cuGetErrorName
    cuGraphExecDestroy
    cuGraphInstantiateWithFlags
    cuGraphLaunch
    cuGraphRetainUserObject
    cuLaunchKernelEx
    cuMemAllocFromPoolAsync
    cuMemPoolCreate
    cuMemPoolSetAttribute
    cuMemcpy2DAsync_v2
    cuMemcpyAsync
    cuPointerGetAttribute
    cuStreamBeginCapture_v2
    cuStreamCreate
    cuStreamEndCapture
    cuStreamGetCaptureInfo_v2
    cuStreamGetId
    cuStreamIsCapturing
    cuThreadExchangeStreamCaptureMode
    cuUserObjectCreate
    cuUserObjectRelease
}

static DRIVER: OnceCell<()> = OnceCell::new();

/// Names of the functions that the opened driver lacks.
static MISSING: Mutex<Vec<&str>> = Mutex::new(Vec::new());

/// Lists the functions that the driver lacks, for an error: the first few by name, and how many more.
pub fn missing() -> String {
    list(&MISSING.lock())
}

fn list(names: &[&str]) -> String {
    const SHOWN: usize = 4;
    let shown = names[..names.len().min(SHOWN)].join(", ");
    match names.len().saturating_sub(SHOWN) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// Opens the driver at the first call; `Err` is the text of the dynamic loader. A failure is not remembered:
/// a driver may be installed while the process runs.
pub fn load() -> Result<(), String> {
    DRIVER.get_or_try_init(open).copied()
}

fn open() -> Result<(), String> {
    // SAFETY: the name is a C string; the library stays open for good, because
    // its threads and the slots outlive any call that could close it.
    let library = unsafe { libc::dlopen(c"libcuda.so.1".as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
    if library.is_null() {
        // SAFETY: dlerror's text is valid until the next call on this thread.
        let text = unsafe {
            let text = libc::dlerror();
            if text.is_null() {
                "libcuda.so.1 cannot be opened".into()
            } else {
                CStr::from_ptr(text).to_string_lossy().into_owned()
            }
        };
        return Err(text);
    }
    let mut missing = Vec::new();
    for (name, slot) in SYMBOLS {
        // SAFETY: `library` is open and the name ends with a zero.
        let symbol = unsafe { libc::dlsym(library, name.as_ptr().cast()) };
        let target = if symbol.is_null() { symbol_not_found as *mut c_void } else { symbol };
        slot.store(target, Ordering::Release);
        if symbol.is_null() {
            missing.push(name.trim_end_matches('\0'));
        }
    }
    *MISSING.lock() = missing;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbols_are_sorted_names_of_the_driver() {
        for (name, _) in SYMBOLS {
            assert!(name.starts_with("cu") && name.ends_with('\0'), "{name:?}");
        }
        let mut names: Vec<_> = SYMBOLS.iter().map(|(name, _)| name).collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), SYMBOLS.len());
    }

    #[test]
    fn what_a_driver_lacks_is_listed_by_name() {
        assert_eq!(list(&["cuA", "cuB"]), "cuA, cuB");
        assert_eq!(list(&["cuA", "cuB", "cuC", "cuD", "cuE", "cuF"]), "cuA, cuB, cuC, cuD and 2 more");
    }
}

//! Functions of the CUDA driver that run on every call. They are declared here and not taken from cust
//! because they return the raw code: cust's enum of results lacks the codes of newer drivers, and an unknown
//! one would be undefined behaviour.

// The functions and their arguments are documented by the CUDA driver API.
#![allow(missing_docs, clippy::missing_safety_doc)]

use std::ffi::{c_char, c_int, c_uint, c_void, CStr};

use super::{device, libcuda};
use crate::error::{Error, Result, Status};
use crate::types::Address;

/// Opaque handle of the driver (CUcontext, CUstream, CUevent, CUfunction, …).
pub type Raw = *mut c_void;
/// The driver's CUdeviceptr.
pub type DevicePtr = u64;

/// The driver's CUmemPoolProps.
#[repr(C)]
pub struct MemPoolProps {
    pub alloc_type: c_int,
    pub handle_types: c_int,
    pub location_type: c_int,
    pub location_id: c_int,
    pub win32_security_attributes: *mut c_void,
    pub max_size: usize,
    pub usage: u16,
    pub reserved: [u8; 54],
}

/// The driver's CUDA_MEMCPY2D.
#[repr(C)]
pub struct Copy2d {
    pub src_x: usize,
    pub src_y: usize,
    pub src_memory_type: c_int,
    pub src_host: *const c_void,
    pub src_device: DevicePtr,
    pub src_array: *const c_void,
    pub src_pitch: usize,
    pub dst_x: usize,
    pub dst_y: usize,
    pub dst_memory_type: c_int,
    pub dst_host: *mut c_void,
    pub dst_device: DevicePtr,
    pub dst_array: *mut c_void,
    pub dst_pitch: usize,
    pub width: usize,
    pub height: usize,
}

impl Copy2d {
    /// A copy between two addresses, where the driver finds out in which memory each is
    /// (CU_MEMORYTYPE_UNIFIED).
    pub const UNIFIED: Copy2d = Copy2d {
        src_x: 0,
        src_y: 0,
        src_memory_type: 4,
        src_host: std::ptr::null(),
        src_device: 0,
        src_array: std::ptr::null(),
        src_pitch: 0,
        dst_x: 0,
        dst_y: 0,
        dst_memory_type: 4,
        dst_host: std::ptr::null_mut(),
        dst_device: 0,
        dst_array: std::ptr::null_mut(),
        dst_pitch: 0,
        width: 0,
        height: 0,
    };
}

/// The driver's CUlaunchAttribute.
#[derive(Clone, Copy)]
#[repr(C, align(8))]
pub struct LaunchAttribute {
    pub id: u32,
    pub padding: u32,
    pub value: [u32; 16],
}

/// The driver's CUlaunchConfig.
#[repr(C)]
pub struct LaunchConfig {
    pub grid: [c_uint; 3],
    pub block: [c_uint; 3],
    pub shared_bytes: c_uint,
    pub stream: Raw,
    pub attributes: *mut LaunchAttribute,
    pub attribute_count: c_uint,
}

extern "C" {
    pub fn cuCtxGetCurrent(context: *mut Raw) -> u32;
    pub fn cuCtxGetDevice(device: *mut c_int) -> u32;
    pub fn cuCtxGetId(context: Raw, id: *mut u64) -> u32;
    pub fn cuCtxPushCurrent_v2(context: Raw) -> u32;
    pub fn cuCtxPopCurrent_v2(context: *mut Raw) -> u32;
    pub fn cuDeviceGetAttribute(value: *mut c_int, attribute: c_int, device: c_int) -> u32;
    pub fn cuDevicePrimaryCtxRetain(context: *mut Raw, device: c_int) -> u32;
    pub fn cuDriverGetVersion(version: *mut c_int) -> u32;
    pub fn cuEventCreate(event: *mut Raw, flags: c_uint) -> u32;
    pub fn cuEventDestroy_v2(event: Raw) -> u32;
    pub fn cuEventElapsedTime(milliseconds: *mut f32, start: Raw, end: Raw) -> u32;
    pub fn cuEventQuery(event: Raw) -> u32;
    pub fn cuEventRecord(event: Raw, stream: Raw) -> u32;
    pub fn cuEventSynchronize(event: Raw) -> u32;
    pub fn cuFuncGetAttribute(value: *mut c_int, attribute: c_int, function: Raw) -> u32;
    pub fn cuFuncGetParamInfo(function: Raw, index: usize, offset: *mut usize, size: *mut usize) -> u32;
    pub fn cuFuncSetAttribute(function: Raw, attribute: c_int, value: c_int) -> u32;
    pub fn cuGetErrorName(error: u32, text: *mut *const c_char) -> u32;
    pub fn cuGetErrorString(error: u32, text: *mut *const c_char) -> u32;
    pub fn cuGraphDestroy(graph: Raw) -> u32;
    pub fn cuGraphExecDestroy(graph: Raw) -> u32;
    pub fn cuGraphInstantiateWithFlags(exec: *mut Raw, graph: Raw, flags: u64) -> u32;
    pub fn cuGraphLaunch(exec: Raw, stream: Raw) -> u32;
    pub fn cuGraphRetainUserObject(graph: Raw, object: Raw, count: c_uint, flags: c_uint) -> u32;
    pub fn cuInit(flags: c_uint) -> u32;
    pub fn cuLaunchHostFunc(
        stream: Raw,
        function: unsafe extern "C" fn(*mut c_void),
        data: *mut c_void,
    ) -> u32;
    pub fn cuLaunchKernel(
        function: Raw,
        grid_x: c_uint,
        grid_y: c_uint,
        grid_z: c_uint,
        block_x: c_uint,
        block_y: c_uint,
        block_z: c_uint,
        shared_bytes: c_uint,
        stream: Raw,
        parameters: *mut *mut c_void,
        extra: *mut *mut c_void,
    ) -> u32;
    pub fn cuLaunchKernelEx(
        config: *const LaunchConfig,
        function: Raw,
        parameters: *mut *mut c_void,
        extra: *mut *mut c_void,
    ) -> u32;
    pub fn cuMemAllocFromPoolAsync(out: *mut DevicePtr, bytes: usize, pool: Raw, stream: Raw) -> u32;
    pub fn cuMemAllocHost_v2(out: *mut *mut c_void, bytes: usize) -> u32;
    pub fn cuMemFreeAsync(address: DevicePtr, stream: Raw) -> u32;
    pub fn cuMemGetInfo_v2(free: *mut usize, total: *mut usize) -> u32;
    pub fn cuMemPoolCreate(pool: *mut Raw, props: *const MemPoolProps) -> u32;
    pub fn cuMemPoolSetAttribute(pool: Raw, attribute: c_int, value: *mut c_void) -> u32;
    pub fn cuMemcpy2DAsync_v2(copy: *const Copy2d, stream: Raw) -> u32;
    pub fn cuMemcpyAsync(dst: DevicePtr, src: DevicePtr, bytes: usize, stream: Raw) -> u32;
    pub fn cuMemsetD8Async(dst: DevicePtr, value: u8, bytes: usize, stream: Raw) -> u32;
    pub fn cuModuleGetFunction(function: *mut Raw, module: Raw, name: *const c_char) -> u32;
    pub fn cuModuleLoadData(module: *mut Raw, image: *const c_void) -> u32;
    pub fn cuOccupancyMaxActiveBlocksPerMultiprocessor(
        blocks: *mut c_int,
        function: Raw,
        block: c_int,
        shared_bytes: usize,
    ) -> u32;
    pub fn cuPointerGetAttribute(data: *mut c_void, attribute: c_int, address: DevicePtr) -> u32;
    pub fn cuStreamBeginCapture_v2(stream: Raw, mode: c_int) -> u32;
    pub fn cuStreamCreate(stream: *mut Raw, flags: c_uint) -> u32;
    pub fn cuStreamDestroy_v2(stream: Raw) -> u32;
    pub fn cuStreamEndCapture(stream: Raw, graph: *mut Raw) -> u32;
    pub fn cuStreamGetCaptureInfo_v2(
        stream: Raw,
        status: *mut c_int,
        id: *mut u64,
        graph: *mut Raw,
        dependencies: *mut *const Raw,
        count: *mut usize,
    ) -> u32;
    pub fn cuStreamGetId(stream: Raw, id: *mut u64) -> u32;
    pub fn cuStreamIsCapturing(stream: Raw, status: *mut c_int) -> u32;
    pub fn cuStreamQuery(stream: Raw) -> u32;
    pub fn cuStreamSynchronize(stream: Raw) -> u32;
    pub fn cuStreamWaitEvent(stream: Raw, event: Raw, flags: c_uint) -> u32;
    pub fn cuThreadExchangeStreamCaptureMode(mode: *mut c_int) -> u32;
    pub fn cuUserObjectCreate(
        object: *mut Raw,
        data: *mut c_void,
        destroy: unsafe extern "C" fn(*mut c_void),
        references: c_uint,
        flags: c_uint,
    ) -> u32;
    pub fn cuUserObjectRelease(object: Raw, count: c_uint) -> u32;
}

/// Converts the address of a stream, or of another object of the driver, to the driver's type.
pub fn raw(address: Address) -> Raw {
    address.as_mut_ptr()
}

/// Converts a device address to the driver's type.
pub fn device_ptr(address: Address) -> DevicePtr {
    address.value() as DevicePtr
}

/// CUDA_ERROR_UNSUPPORTED_PTX_VERSION: the driver's compiler is older than the PTX.
const UNSUPPORTED_PTX: u32 = 222;

/// Returns the text `cudaErrorName: description` for a code of the driver.
pub fn describe(code: u32) -> String {
    match code {
        libcuda::NOT_LOADED => return "no CUDA driver is loaded (error 303)".into(),
        libcuda::SYMBOL_NOT_FOUND => {
            return format!("the CUDA driver is too old: it lacks {} (error 302)", libcuda::missing())
        }
        _ => {}
    }
    let read = |function: unsafe extern "C" fn(u32, *mut *const c_char) -> u32| {
        let mut text: *const c_char = std::ptr::null();
        // SAFETY: `text` is valid for a write; the driver's texts are never freed.
        unsafe {
            if function(code, &mut text) == 0 && !text.is_null() {
                return Some(CStr::from_ptr(text).to_string_lossy().into_owned());
            }
        }
        None
    };
    let said = match (read(cuGetErrorName), read(cuGetErrorString)) {
        (Some(name), Some(text)) => format!("{name}: {text} (error {code})"),
        _ => format!("CUDA error {code}"),
    };
    match code {
        UNSUPPORTED_PTX => format!("{said}; {}", device::needs_for_ptx()),
        _ => said,
    }
}

/// Converts a code of the driver to the library's result; `what` says what was tried.
pub fn check(code: u32, what: &str) -> Result<()> {
    if code == 0 {
        return Ok(());
    }
    let status = match code {
        2 => Status::AllocFailed,
        // Not initialized, no device or an invalid one, no driver.
        3 | 4 | 34 | 35 | 100 | 101 | libcuda::NOT_LOADED | libcuda::SYMBOL_NOT_FOUND => {
            Status::NotInitialized
        }
        // No binary for the device, or PTX that the driver is too old for.
        209 | UNSUPPORTED_PTX => Status::ArchMismatch,
        // Calls that a stream capture forbids, or that have broken it.
        900..=908 => return Err(Error::state(format!("stream: {what}: {}", describe(code)))),
        700..=719 => Status::ExecutionFailed,
        801 => Status::NotSupported,
        _ => Status::InternalError,
    };
    Err(Error::new(status, format!("{what}: {}", describe(code))))
}

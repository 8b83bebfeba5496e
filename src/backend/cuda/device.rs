//! A device and the context in which the library works on it.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use cust::device::{Device as CustDevice, DeviceAttribute};
use cust::error::CudaError;
use once_cell::sync::{Lazy, OnceCell};
use parking_lot::Mutex;

use super::cublaslt::CublasLt;
use super::driver::{self, check, Raw};
use super::in_flight::StreamEvent;
use super::libcuda;
use super::memory::Pool;
use super::module::Modules;
use crate::backend::in_flight::{LastWork, Pending};
use crate::backend::process;
use crate::error::{Error, Result, Status};
use crate::types::Address;

/// What `cuDriverGetVersion` of the oldest driver says that runs kernels of
/// CUDA 13: R580.
const OLDEST_DRIVER: i32 = 13000;
/// CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN
const SHARED_OPTIN: i32 = 97;
/// CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES
const HOST_PAGE_TABLES: i32 = 100;

/// One device in one context. It is made once and lives as long as the process,
/// like the modules in it.
pub struct Device {
    context: Address,
    ordinal: i32,
    properties: Properties,
    modules: Modules,
    pool: OnceCell<Pool>,
    cublaslt: OnceCell<Option<Arc<CublasLt>>>,
    /// The last works of handles, those that are gone among them.
    works: Mutex<Vec<Weak<StreamEvent>>>,
    /// The process that opened it: the driver works in no child that `fork` makes of it.
    process: u64,
}

/// What kernels and launches are shaped by.
#[derive(Clone, Debug)]
pub struct Properties {
    /// Its name.
    pub name: String,
    /// Compute capability, 90 for 9.0.
    pub capability: i32,
    /// Streaming multiprocessors.
    pub multiprocessors: u32,
    /// Bytes of L2.
    pub l2_bytes: usize,
    /// Most shared memory of one block, in bytes.
    pub shared_bytes: usize,
    /// The device reads any host memory through the host's page tables.
    pub host_page_tables: bool,
}

/// The context is current until this is dropped.
pub struct Entered {
    _private: (),
}

impl Drop for Entered {
    fn drop(&mut self) {
        let mut context: Raw = std::ptr::null_mut();
        // SAFETY: `context` is valid for a write; `enter` has pushed one.
        unsafe { driver::cuCtxPopCurrent_v2(&mut context) };
    }
}

/// Contexts are told apart by address and number: an address may come again.
type Key = (Address, u64);
static DEVICES: Lazy<Mutex<HashMap<Key, Arc<Device>>>> = Lazy::new(Mutex::default);

impl Device {
    /// The device of the calling thread's current context, else (`ordinal`
    /// `None`) device 0, in its primary context. `ordinal` names a device; the
    /// current context is used if it is of that device.
    pub fn open(ordinal: Option<i32>) -> Result<Arc<Device>> {
        load_driver()?;
        if let Some((context, current)) = current_context()? {
            if ordinal.is_none_or(|wanted| wanted == current) {
                return Device::in_context(context, current);
            }
        }
        let ordinal = ordinal.unwrap_or(0);
        let count = CustDevice::num_devices().map_err(|error| cust_error("cuDeviceGetCount", error))?;
        if count == 0 {
            return Err(Error::new(Status::NotInitialized, "backend: there is no CUDA device"));
        }
        if !u32::try_from(ordinal).is_ok_and(|ordinal| ordinal < count) {
            return Err(Error::invalid("device", format!("{ordinal}: there are {count} CUDA devices")));
        }
        let mut context: Raw = std::ptr::null_mut();
        // SAFETY: `context` is valid for a write. The reference is kept for
        // good: handles and plans use the context until the process ends.
        let code = unsafe { driver::cuDevicePrimaryCtxRetain(&mut context, ordinal) };
        check(code, "the device's primary context")?;
        Device::in_context(Address::new(context), ordinal)
    }

    fn in_context(context: Address, ordinal: i32) -> Result<Arc<Device>> {
        let mut id = 0;
        // SAFETY: the context is live and `id` is valid for a write.
        check(unsafe { driver::cuCtxGetId(driver::raw(context), &mut id) }, "cuCtxGetId")?;
        let mut devices = DEVICES.lock();
        if let Some(device) = devices.get(&(context, id)) {
            return Ok(Arc::clone(device));
        }
        let properties = Properties::read(ordinal)?;
        let device = Arc::new(Device {
            context,
            ordinal,
            modules: Modules::new(properties.capability)?,
            properties,
            pool: OnceCell::new(),
            cublaslt: OnceCell::new(),
            works: Mutex::default(),
            process: process::generation(),
        });
        devices.insert((context, id), Arc::clone(&device));
        Ok(device)
    }

    /// Makes the context current for this thread until the guard is dropped.
    pub fn enter(&self) -> Result<Entered> {
        if self.process != process::generation() {
            return Err(after_fork("handle: it was made before fork()"));
        }
        // SAFETY: the context is the caller's, who keeps it alive, or a primary
        // context that we hold.
        check(unsafe { driver::cuCtxPushCurrent_v2(driver::raw(self.context)) }, "cuCtxPushCurrent")?;
        Ok(Entered { _private: () })
    }

    /// Its number.
    pub fn ordinal(&self) -> i32 {
        self.ordinal
    }

    /// Its properties.
    pub fn properties(&self) -> &Properties {
        &self.properties
    }

    /// Its kernels.
    pub fn modules(&self) -> &Modules {
        &self.modules
    }

    /// Its memory pool, made when it is first needed.
    pub fn pool(&self) -> Result<&Pool> {
        self.pool.get_or_try_init(|| {
            let _entered = self.enter()?;
            Pool::new(self.ordinal)
        })
    }

    /// cublasLt for it, if that is installed; opened when it is first needed. Its context is
    /// current.
    pub fn cublaslt(&self) -> Option<Arc<CublasLt>> {
        self.cublaslt.get_or_init(CublasLt::new).clone()
    }

    /// A handle's last work, which counts as in flight from here on when it is not done.
    pub fn note_work(&self, work: &Arc<StreamEvent>) {
        let mut works = self.works.lock();
        works.retain(|work| work.strong_count() > 0);
        works.push(Arc::downgrade(work));
    }

    /// All work of handles that is not done.
    pub fn work_in_flight(&self) -> Pending {
        let works: Vec<_> = self.works.lock().iter().filter_map(Weak::upgrade).collect();
        let mut pending = Pending::default();
        works.into_iter().filter(|work| !work.is_done()).for_each(|work| pending.add(work));
        pending
    }
}

/// Lets this thread call what a capture of another stream would forbid, such
/// as allocating; the library never does it on a stream that is captured.
pub struct Relaxed(i32);

impl Relaxed {
    /// Until it is dropped.
    pub fn enter() -> Self {
        // CU_STREAM_CAPTURE_MODE_RELAXED
        let mut mode = 2;
        // SAFETY: `mode` is valid for reading and writing.
        unsafe { driver::cuThreadExchangeStreamCaptureMode(&mut mode) };
        Relaxed(mode)
    }
}

impl Drop for Relaxed {
    fn drop(&mut self) {
        // SAFETY: as above.
        unsafe { driver::cuThreadExchangeStreamCaptureMode(&mut self.0) };
    }
}

/// A message that names the call, from an error of cust. Its own text calls
/// the driver and panics where there is none.
fn cust_error(what: &str, error: CudaError) -> Error {
    match check(error as u32, what) {
        Err(error) => error,
        Ok(()) => Error::new(Status::InternalError, what),
    }
}

/// CUDA_ERROR_NOT_INITIALIZED, which cuInit answers in a child of a process that had called it.
const NOT_INITIALIZED: u32 = 3;

fn after_fork(what: &str) -> Error {
    Error::state(format!(
        "{what}; CUDA does not work in a process that fork() made after its parent had used CUDA: use exec, or \
         fork first (Python: multiprocessing's start method \"spawn\"), or TARSIA_BACKEND_HOST"
    ))
}

fn load_driver() -> Result<()> {
    libcuda::load().map_err(|text| {
        Error::new(
            Status::NotInitialized,
            format!("backend: no CUDA driver: {text}; without an NVIDIA driver use TARSIA_BACKEND_HOST"),
        )
    })?;
    // The number first and then cust: a driver may answer with a code that
    // cust's enum does not have.
    // SAFETY: no preconditions.
    let code = unsafe { driver::cuInit(0) };
    if code == NOT_INITIALIZED {
        // Not what `means_no_device` takes for a machine without one.
        return Err(after_fork("backend: the driver cannot be used in this process"));
    }
    check(code, "backend: cuInit")?;
    cust::init(cust::CudaFlags::empty()).map_err(|error| cust_error("backend: cuInit", error))?;
    let mut version = 0;
    // SAFETY: `version` is valid for a write.
    check(unsafe { driver::cuDriverGetVersion(&mut version) }, "backend: cuDriverGetVersion")?;
    if version < OLDEST_DRIVER {
        return Err(Error::new(
            Status::NotSupported,
            format!(
                "backend: the CUDA driver is for CUDA {}.{}; the kernels need driver R580 or newer (CUDA 13.0)",
                version / 1000,
                version % 1000 / 10
            ),
        ));
    }
    Ok(())
}

/// This thread's current context and its device.
fn current_context() -> Result<Option<(Address, i32)>> {
    let mut context: Raw = std::ptr::null_mut();
    // SAFETY: `context` is valid for a write.
    check(unsafe { driver::cuCtxGetCurrent(&mut context) }, "cuCtxGetCurrent")?;
    if context.is_null() {
        return Ok(None);
    }
    let mut ordinal = 0;
    // SAFETY: `ordinal` is valid for a write and a context is current.
    check(unsafe { driver::cuCtxGetDevice(&mut ordinal) }, "cuCtxGetDevice")?;
    Ok(Some((Address::new(context), ordinal)))
}

impl Properties {
    fn read(ordinal: i32) -> Result<Self> {
        let device =
            CustDevice::get_device(ordinal as u32).map_err(|error| cust_error("cuDeviceGet", error))?;
        let attribute = |attribute| {
            device.get_attribute(attribute).map_err(|error| cust_error("cuDeviceGetAttribute", error))
        };
        let raw_attribute = |attribute| {
            let mut value = 0;
            // SAFETY: `value` is valid for a write.
            let code = unsafe { driver::cuDeviceGetAttribute(&mut value, attribute, ordinal) };
            check(code, "cuDeviceGetAttribute").map(|()| value)
        };
        Ok(Properties {
            name: device.name().map_err(|error| cust_error("cuDeviceGetName", error))?,
            capability: attribute(DeviceAttribute::ComputeCapabilityMajor)? * 10
                + attribute(DeviceAttribute::ComputeCapabilityMinor)?,
            multiprocessors: attribute(DeviceAttribute::MultiprocessorCount)? as u32,
            l2_bytes: attribute(DeviceAttribute::L2CacheSize)? as usize,
            shared_bytes: raw_attribute(SHARED_OPTIN)? as usize,
            host_page_tables: raw_attribute(HOST_PAGE_TABLES)? != 0,
        })
    }
}

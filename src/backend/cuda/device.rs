//! A CUDA device and the context in which the library works on it.

use std::cell::Cell;
use std::collections::HashMap;
use std::marker::PhantomData;
use std::ops::Deref;
use std::sync::{Arc, Weak};

use cust::device::{Device as CustDevice, DeviceAttribute};
use cust::error::CudaError;
use once_cell::sync::{Lazy, OnceCell};
use parking_lot::Mutex;

use super::cublaslt::CublasLt;
use super::driver::{self, check, Raw};
use super::in_flight::StreamEvent;
use super::libcuda;
use super::memory::{self, Pool};
use super::module::Modules;
use crate::backend::CallGuard;
use crate::error::{Error, Result, Status};
use crate::memory::in_flight::{LastWork, Pending};
use crate::memory::{process, Context};
use crate::reentrancy;
use crate::select::device::Attributes;
use crate::select::roofline::Machine;
use crate::types::Address;

/// Version of the CUDA whose compiler has made the kernels, such as `12.9`; the default is for builds without
/// kernels, which open no device.
const KERNELS_CUDA: &str = match option_env!("TARSIA_KERNELS_CUDA") {
    Some(version) => version,
    None => "13.0",
};

/// Returns the oldest driver that runs machine code from the compiler of a CUDA version: its number from
/// `cuDriverGetVersion`, and its name. Within a major version, drivers run the code of every minor version.
fn oldest_driver(cuda: &str) -> (i32, &'static str) {
    match cuda.split('.').next() {
        Some("12") => (12000, "R525"),
        _ => (13000, "R580"),
    }
}

/// Returns the driver that comes with a CUDA version, which compiles the PTX of that version's compiler and
/// of older ones.
fn driver_for_ptx(cuda: &str) -> &'static str {
    match cuda {
        "12.9" => "R575",
        "13.0" => "R580",
        _ => "the one of that CUDA",
    }
}

/// Text for the error that the driver is too old for the kernels' PTX: which driver it needs.
pub fn needs_for_ptx() -> String {
    format!(
        "this build has no machine code for the device, and its PTX, of CUDA {KERNELS_CUDA}, needs a driver from {} on",
        driver_for_ptx(KERNELS_CUDA)
    )
}
/// CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN
const SHARED_OPTIN: i32 = 97;
/// CU_DEVICE_ATTRIBUTE_CLOCK_RATE
const CLOCK_RATE: i32 = 13;
/// CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE
const MEMORY_CLOCK_RATE: i32 = 36;
/// CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH
const MEMORY_BUS_WIDTH: i32 = 37;
/// CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR
const SHARED_OF_MULTIPROCESSOR: i32 = 81;
/// CU_DEVICE_ATTRIBUTE_SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO
const SINGLE_TO_DOUBLE_RATIO: i32 = 87;
/// CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS
const PAGEABLE_MEMORY: i32 = 88;
/// CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES
const HOST_PAGE_TABLES: i32 = 100;

/// One device in one context. It is made once and lives as long as the process, like the modules loaded in
/// it.
pub struct Device {
    context: Address,
    /// The number of the context, of which a process has no second.
    id: u64,
    is_primary: OnceCell<bool>,
    ordinal: i32,
    properties: Properties,
    machine: Machine,
    modules: Modules,
    pool: OnceCell<Pool>,
    cublaslt: OnceCell<Option<Arc<CublasLt>>>,
    /// Events after the last work of every handle, dropped handles included.
    works: Mutex<Vec<Weak<StreamEvent>>>,
    /// Process that opened the device: the driver does not work in children that `fork` makes of it.
    process: u64,
}

/// Properties of a device on which kernels and launches depend.
#[derive(Clone, Debug)]
pub struct Properties {
    /// Name of the device.
    pub name: String,
    /// Compute capability, 90 for 9.0.
    pub capability: i32,
    /// Streaming multiprocessors.
    pub multiprocessors: u32,
    /// Bytes of L2 cache.
    pub l2_bytes: usize,
    /// Most bytes of shared memory that one block can have.
    pub shared_bytes: usize,
    /// True if the device can use any host memory, through the host's page tables or by moving pages.
    pub pageable_memory: bool,
    /// True if it does so through the host's page tables, through which the host can read the device's
    /// memory, too.
    pub host_page_tables: bool,
    /// Clocks and sizes that only the cost model reads; 0 where the driver does not tell them.
    clock_khz: u32,
    memory_khz: u32,
    memory_bits: u32,
    shared_of_multiprocessor: u32,
    singles_per_double: u32,
}

/// Guard that keeps the context current until it is dropped.
pub struct Entered {
    /// False if the context was current already, so that nothing has to be put back.
    has_pushed: bool,
    /// Makes the type neither `Send` nor `Sync`: each thread has a current context of its own.
    thread: PhantomData<*const ()>,
}

impl Drop for Entered {
    fn drop(&mut self) {
        if self.has_pushed {
            let mut context: Raw = std::ptr::null_mut();
            // SAFETY: `context` is valid for a write; `enter` has pushed one.
            unsafe { driver::cuCtxPopCurrent_v2(&mut context) };
        }
    }
}

/// The context that a whole call of this thread works in ([`Device::begin_call`]), and the number of user
/// functions that the thread had run by then. After another such function any context may be current.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Begun {
    context: Address,
    user_functions: u64,
}

thread_local! {
    static BEGUN: Cell<Option<Begun>> = const { Cell::new(None) };
}

/// Ends a call that [`Device::begin_call`] has begun.
fn end_call() {
    BEGUN.set(None);
    let mut context: Raw = std::ptr::null_mut();
    // SAFETY: `context` is valid for a write; `begin_call` has pushed one.
    unsafe { driver::cuCtxPopCurrent_v2(&mut context) };
}

/// Call that works on a device: the context of the call, and the device, whose CUDA context is current until
/// this is dropped.
pub struct DeviceCall<'a> {
    context: &'a Context,
    /// Device on which the call works.
    pub device: &'a Arc<Device>,
    _entered: Entered,
}

impl Deref for DeviceCall<'_> {
    type Target = Context;

    fn deref(&self) -> &Context {
        self.context
    }
}

/// Address and number of a context: an address alone may be reused.
type Key = (Address, u64);
static DEVICES: Lazy<Mutex<HashMap<Key, Arc<Device>>>> = Lazy::new(Mutex::default);

impl Device {
    /// Returns the device of the calling thread's current context. If there is none and `ordinal` is `None`,
    /// it is device 0 in its primary context. If `ordinal` names a device, the current context is used only
    /// if it belongs to that device.
    pub fn open(ordinal: Option<i32>) -> Result<Arc<Device>> {
        load_driver()?;
        if let Some((context, current)) = current_context()? {
            if ordinal.is_none_or(|wanted| wanted == current) {
                return Device::in_context(context, current);
            }
        }
        let ordinal = ordinal.unwrap_or(0);
        let count = number_of_devices()?;
        if count == 0 {
            return Err(Error::new(Status::NotInitialized, "backend: there is no CUDA device"));
        }
        if !u32::try_from(ordinal).is_ok_and(|ordinal| ordinal < count) {
            return Err(Error::invalid("device", format!("{ordinal}: there are {count} CUDA devices")));
        }
        let mut context: Raw = std::ptr::null_mut();
        // SAFETY: `context` is valid for a write. The reference is never released: handles and plans use the
        // context until the process ends.
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
            id,
            is_primary: OnceCell::new(),
            ordinal,
            modules: Modules::new(properties.capability)?,
            machine: Machine::of_device(&properties.attributes()),
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
        self.check_process()?;
        let has_pushed = BEGUN.get() != Some(self.begun_now());
        if has_pushed {
            self.push()?;
        }
        Ok(Entered { has_pushed, thread: PhantomData })
    }

    /// Makes the context current for a whole call of this thread, which lasts until the guard is dropped:
    /// [`Self::enter`] then need not ask the driver, which a product would otherwise do five times for 0.04 µs each.
    pub fn begin_call(&self) -> Result<CallGuard> {
        self.check_process()?;
        let here = self.begun_now();
        if BEGUN.get() == Some(here) {
            return Ok(CallGuard::NOTHING);
        }
        self.push()?;
        BEGUN.set(Some(here));
        Ok(CallGuard::ended_by(end_call))
    }

    /// Returns the value of [`BEGUN`] while a call in this context runs, as long as it has called no user function.
    fn begun_now(&self) -> Begun {
        Begun { context: self.context, user_functions: reentrancy::user_functions() }
    }

    fn push(&self) -> Result<()> {
        // SAFETY: the context belongs to the caller, who keeps it alive, or is a primary context to which we
        // hold a reference.
        check(unsafe { driver::cuCtxPushCurrent_v2(driver::raw(self.context)) }, "cuCtxPushCurrent")
    }

    /// Returns `INVALID_STATE` in a process that `fork` made after the device was opened.
    pub fn check_process(&self) -> Result<()> {
        if self.process != process::generation() {
            return Err(after_fork("handle: it was made before fork()"));
        }
        Ok(())
    }

    /// Begins a call on the device: makes its context current until the result is dropped.
    pub fn call<'a>(self: &'a Arc<Self>, context: &'a Context) -> Result<DeviceCall<'a>> {
        Ok(DeviceCall { _entered: self.enter()?, context, device: self })
    }

    /// Returns whether the calling thread's current context is the device's. A thread without one has the primary context of
    /// device 0 as soon as it calls the CUDA runtime.
    pub fn is_current(&self) -> bool {
        let (mut context, mut id): (Raw, u64) = (std::ptr::null_mut(), 0);
        // SAFETY: `context` is valid for a write.
        if unsafe { driver::cuCtxGetCurrent(&mut context) } != 0 {
            return false;
        }
        if context.is_null() {
            return self.ordinal == 0 && self.is_primary();
        }
        // SAFETY: the context is current, so that it lives, and `id` is valid for a write.
        let code = unsafe { driver::cuCtxGetId(context, &mut id) };
        code == 0 && Address::new(context) == self.context && id == self.id
    }

    /// Returns whether the device's context is its primary one. The driver is asked once, since the reference that it
    /// gives is kept for good.
    fn is_primary(&self) -> bool {
        *self.is_primary.get_or_init(|| {
            let mut context: Raw = std::ptr::null_mut();
            // SAFETY: `context` is valid for a write.
            let code = unsafe { driver::cuDevicePrimaryCtxRetain(&mut context, self.ordinal) };
            code == 0 && Address::new(context) == self.context
        })
    }

    /// Number of the context, which no other context of the process has.
    pub fn context_number(&self) -> u64 {
        self.id
    }

    /// Number of the device.
    pub fn ordinal(&self) -> i32 {
        self.ordinal
    }

    /// Returns `INVALID_VALUE`, which names the argument `name`, unless the address is NULL or in memory that
    /// kernels of the device can use: anything else would end in a fault that destroys the whole context.
    /// `what` names the contents of the memory, in the plural. The context must be current.
    pub fn require_reachable(&self, name: &str, what: &str, address: Address) -> Result<()> {
        if address.is_null() || self.properties.pageable_memory || memory::is_of_driver(address) {
            return Ok(());
        }
        Err(Error::invalid(
            name,
            format!(
                "its {what} are ordinary host memory, which device {} cannot use: expected device, managed or \
                 pinned memory",
                self.ordinal
            ),
        ))
    }

    /// Properties of the device.
    pub fn properties(&self) -> &Properties {
        &self.properties
    }

    /// Rates by which the cost model predicts times on this device.
    pub fn machine(&self) -> &Machine {
        &self.machine
    }

    /// Modules with the library's kernels.
    pub fn modules(&self) -> &Modules {
        &self.modules
    }

    /// Memory pool of the device, made when it is first needed.
    pub fn pool(&self) -> Result<&Pool> {
        self.pool.get_or_try_init(|| {
            let _entered = self.enter()?;
            Pool::new(self.ordinal)
        })
    }

    /// Handle of cublasLt for the device, if that is installed; opened when it is first needed. The context
    /// must be current.
    pub fn cublaslt(&self) -> Option<Arc<CublasLt>> {
        self.cublaslt.get_or_init(CublasLt::new).clone()
    }

    /// Devices that have been opened.
    pub fn all() -> Vec<Arc<Device>> {
        DEVICES.lock().values().map(Arc::clone).collect()
    }

    /// Memory pool of the device, if there has been a need for it.
    pub fn existing_pool(&self) -> Option<&Pool> {
        self.pool.get()
    }

    /// Registers the event after a handle's last work, which counts as in flight from now on until it is
    /// done.
    pub fn note_work(&self, work: &Arc<StreamEvent>) {
        let mut works = self.works.lock();
        works.retain(|work| work.strong_count() > 0);
        works.push(Arc::downgrade(work));
    }

    /// Returns all work of handles that is not done.
    pub fn work_in_flight(&self) -> Pending {
        let works: Vec<_> = self.works.lock().iter().filter_map(Weak::upgrade).collect();
        let mut pending = Pending::default();
        works.into_iter().filter(|work| !work.is_done()).for_each(|work| pending.add(work));
        pending
    }
}

/// Guard that lets this thread call what a capture of another stream would forbid, such as an allocation. The
/// library never does so on a stream that is being captured.
pub struct Relaxed(i32);

impl Relaxed {
    /// Begins the relaxed mode, which lasts until the guard is dropped.
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

/// Makes an error that names the call from an error of cust. The text of cust's error is not used: making it
/// calls the driver and panics where there is none.
fn cust_error(what: &str, error: CudaError) -> Error {
    match check(error as u32, what) {
        Err(error) => error,
        Ok(()) => Error::new(Status::InternalError, what),
    }
}

/// CUDA_ERROR_NOT_INITIALIZED, which cuInit returns in a forked child of a process that had called it.
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
    // The raw code first and cust afterwards: a driver may return a code that cust's enum does not have.
    // SAFETY: no preconditions.
    let code = unsafe { driver::cuInit(0) };
    if code == NOT_INITIALIZED {
        // The text must differ from those that `means_no_device` takes for a machine without a device.
        return Err(after_fork("backend: the driver cannot be used in this process"));
    }
    check(code, "backend: cuInit")?;
    cust::init(cust::CudaFlags::empty()).map_err(|error| cust_error("backend: cuInit", error))?;
    let mut version = 0;
    // SAFETY: `version` is valid for a write.
    check(unsafe { driver::cuDriverGetVersion(&mut version) }, "backend: cuDriverGetVersion")?;
    is_new_enough(version, KERNELS_CUDA)
}

/// Returns the number of devices that the opened driver sees.
fn number_of_devices() -> Result<u32> {
    CustDevice::num_devices().map_err(|error| cust_error("cuDeviceGetCount", error))
}

/// Returns the number of devices; an error tells what is wrong with the driver. No context is made.
pub fn count() -> Result<u32> {
    libcuda::load()
        .map_err(|text| Error::new(Status::NotInitialized, format!("there is no CUDA driver: {text}")))?;
    load_driver()?;
    number_of_devices()
}

/// Checks that a driver of this version (12090 for CUDA 12.9) runs the kernels of a CUDA's compiler.
fn is_new_enough(version: i32, cuda: &str) -> Result<()> {
    let (oldest, name) = oldest_driver(cuda);
    if version >= oldest {
        return Ok(());
    }
    Err(Error::new(
        Status::NotSupported,
        format!(
            "backend: the CUDA driver is for CUDA {}.{}; the kernels, compiled by CUDA {cuda}, need driver {name} \
             or newer (CUDA {}.0)",
            version / 1000,
            version % 1000 / 10,
            oldest / 1000
        ),
    ))
}

/// Returns this thread's current context and its device.
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
        // If the driver does not tell an attribute, the cost model takes the H100's.
        let known = |attribute| raw_attribute(attribute).map_or(0, |value| value.max(0) as u32);
        Ok(Properties {
            name: device.name().map_err(|error| cust_error("cuDeviceGetName", error))?,
            capability: attribute(DeviceAttribute::ComputeCapabilityMajor)? * 10
                + attribute(DeviceAttribute::ComputeCapabilityMinor)?,
            multiprocessors: attribute(DeviceAttribute::MultiprocessorCount)? as u32,
            l2_bytes: attribute(DeviceAttribute::L2CacheSize)? as usize,
            shared_bytes: raw_attribute(SHARED_OPTIN)? as usize,
            pageable_memory: raw_attribute(PAGEABLE_MEMORY)? != 0,
            host_page_tables: raw_attribute(HOST_PAGE_TABLES)? != 0,
            clock_khz: known(CLOCK_RATE),
            memory_khz: known(MEMORY_CLOCK_RATE),
            memory_bits: known(MEMORY_BUS_WIDTH),
            shared_of_multiprocessor: known(SHARED_OF_MULTIPROCESSOR),
            singles_per_double: known(SINGLE_TO_DOUBLE_RATIO),
        })
    }

    fn attributes(&self) -> Attributes {
        Attributes {
            capability: self.capability,
            multiprocessors: self.multiprocessors,
            clock_khz: self.clock_khz,
            memory_khz: self.memory_khz,
            memory_bits: self.memory_bits,
            shared_bytes: self.shared_of_multiprocessor,
            singles_per_double: self.singles_per_double,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::cuda::convert::testing::context_of_device;

    fn current() -> Address {
        let mut context: Raw = std::ptr::null_mut();
        // SAFETY: `context` is valid for a write.
        check(unsafe { driver::cuCtxGetCurrent(&mut context) }, "cuCtxGetCurrent").unwrap();
        Address::new(context)
    }

    #[test]
    fn a_call_asks_the_driver_for_its_context_once_unless_a_user_function_runs() {
        let Some((device, _)) = context_of_device() else { return };
        let before = current();
        assert!(device.enter().unwrap().has_pushed);
        {
            let _call = device.begin_call().unwrap();
            assert_eq!(current(), device.context);
            assert!(!device.enter().unwrap().has_pushed);
            {
                let _inner = device.begin_call().unwrap();
                assert!(!device.enter().unwrap().has_pushed);
            }
            // The outer call still runs.
            assert!(!device.enter().unwrap().has_pushed);
            assert_eq!(current(), device.context);
            reentrancy::user_function(|| ());
            let entered = device.enter().unwrap();
            assert!(entered.has_pushed);
            assert_eq!(current(), device.context);
        }
        assert_eq!(current(), before);
        assert!(device.enter().unwrap().has_pushed);
    }

    #[test]
    fn drivers_that_are_too_old_for_the_compiler_are_told_which_one_is_not() {
        for (cuda, good, bad, name) in [("12.9", 12000, 11080, "R525"), ("13.0", 13000, 12090, "R580")] {
            assert!(is_new_enough(good, cuda).is_ok());
            let error = is_new_enough(bad, cuda).unwrap_err().to_string();
            assert!(error.contains(name) && error.contains(cuda), "{error}");
            assert!(error.contains(&format!("for CUDA {}.{}", bad / 1000, bad % 1000 / 10)), "{error}");
        }
        assert!(is_new_enough(12040, "12.9").is_ok());
        assert_eq!((driver_for_ptx("12.9"), driver_for_ptx("13.0")), ("R575", "R580"));
    }
}

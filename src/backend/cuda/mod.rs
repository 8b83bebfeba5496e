//! Backend for NVIDIA GPUs.
//!
//! [`libcuda`] opens the driver, [`device`] keeps one context per device, [`module`] loads kernels when they
//! are first needed, [`launch`] enqueues them, [`memory`] allocates and releases arrays. Every method of the
//! backend and of its executors makes the device's context current for its duration and leaves the caller's
//! as it was.

mod check;
mod convert;
pub mod cublaslt;
pub mod device;
pub mod driver;
mod fingerprint;
mod in_flight;
pub mod launch;
mod layouts;
pub mod libcuda;
pub mod memory;
pub mod module;
pub mod operand;
mod order;
mod prefetch;
pub mod reorder;
mod scalars;
mod spgemm;
mod spmm;
mod spmv;
pub mod testing;
pub mod timing;

use std::sync::Arc;

use self::device::Device;
use self::in_flight::{StreamEvent, UserObject};
use self::memory::CudaMemory;
use crate::backend::{Backend, CallGuard};
use crate::error::{Error, Result, Status};
use crate::matrix::fingerprint::Fingerprint;
use crate::matrix::{Lines, SparseMatrix, Structure};
use crate::memory::in_flight::{GraphReferences, LastWork, Pending};
use crate::memory::{Context, RawMemory};
use crate::reorder::features::FeatureSet;
use crate::select::roofline::Machine;
use crate::support::Types;
use crate::types::{Address, BackendKind, ComputeType, DataType, Operation, PointerMode};

/// Bytes of workspace that every handle has for calls without a plan.
pub const ONCE_WORKSPACE_BYTES: usize = 64 << 10;

/// Backend that executes on one device.
pub struct Cuda {
    device: Arc<Device>,
}

/// Opens the backend for a device (see [`Device::open`]).
pub fn open(ordinal: Option<i32>) -> Result<Arc<dyn Backend>> {
    module::available()?;
    Ok(Arc::new(Cuda { device: Device::open(ordinal)? }))
}

/// Returns whether an error of [`open`] lets a program that did not ask for CUDA use the host instead: no
/// driver, no device, or a library without kernels. Other errors, such as a device that is too old, are
/// reported.
pub fn means_no_device(error: &Error) -> bool {
    error.status == Status::NotInitialized || module::available().is_err()
}

/// Value types of a product as the names of kernels spell them (kernels/common/types.cuh). TF32 has no
/// kernels of its own on CUDA cores.
pub(crate) fn types_name(types: Types) -> String {
    let short = |value: DataType| match value {
        DataType::R64F => "f64",
        DataType::R32F => "f32",
        DataType::R16F => "f16",
        DataType::R16BF => "bf16",
        DataType::C32F => "c32",
        DataType::C64F => "c64",
        DataType::R8I | DataType::R32I => "none",
    };
    match types.a == types.y {
        true => short(types.a).to_string(),
        false => format!("{}{}", short(types.a), short(types.y)),
    }
}

/// Types of the result and its sums, as the names of kernels that only finish sums spell them.
pub(crate) fn result_name(types: Types) -> String {
    types_name(Types { a: types.y, ..types })
}

impl Backend for Cuda {
    fn kind(&self) -> BackendKind {
        BackendKind::Cuda
    }

    fn device(&self) -> i32 {
        self.device.ordinal()
    }

    fn memory(&self) -> Arc<dyn RawMemory> {
        Arc::new(CudaMemory(Arc::clone(&self.device)))
    }

    fn warm_up(&self) {
        let Ok(_entered) = self.device.enter() else { return };
        let _relaxed = device::Relaxed::enter();
        let _ = self.device.pool().and_then(|pool| memory::prepare(pool, self.device.modules()));
    }

    fn copy_to_device(&self, dst: Address, src: Address, bytes: usize, stream: Address) -> Result<()> {
        self.copy(dst, src, bytes, stream, "tarsiaMemcpyToDevice")
    }

    fn copy_to_host(&self, dst: Address, src: Address, bytes: usize, stream: Address) -> Result<()> {
        self.copy(dst, src, bytes, stream, "tarsiaMemcpyToHost")
    }

    fn synchronize(&self, stream: Address) -> Result<()> {
        let _entered = self.device.enter()?;
        self.require_blocking(stream, "tarsiaSynchronize")?;
        memory::synchronize(stream)
    }

    fn require_blocking(&self, stream: Address, call: &str) -> Result<()> {
        if self.is_capturing(stream)? {
            return Err(Error::state(format!(
                "stream: {call} must wait for the stream, and it is being captured into a graph"
            )));
        }
        Ok(())
    }

    fn is_capturing(&self, stream: Address) -> Result<bool> {
        let _entered = self.device.enter()?;
        memory::is_capturing(stream)
    }

    fn check_process(&self) -> Result<()> {
        self.device.check_process()
    }

    fn begin_call(&self) -> Result<CallGuard> {
        self.device.begin_call()
    }

    fn is_current(&self) -> bool {
        self.device.is_current()
    }

    fn context_number(&self) -> u64 {
        self.device.context_number()
    }

    fn enqueued(&self) -> Option<u64> {
        Some(launch::enqueued())
    }

    fn clear_in_order(&self, cx: &Context, address: Address, bytes: usize) -> Result<()> {
        let cx = &self.device.call(cx)?;
        memory::zero(address, bytes, cx.stream)
    }

    fn last_work(&self, stream: Address) -> Result<Option<Arc<dyn LastWork>>> {
        let _entered = self.device.enter()?;
        let work = Arc::new(StreamEvent::new(&self.device, stream)?);
        self.device.note_work(&work);
        Ok(Some(work))
    }

    fn work_in_flight(&self) -> Pending {
        self.device.work_in_flight()
    }

    fn graph_references(&self) -> Result<Box<dyn GraphReferences>> {
        let _entered = self.device.enter()?;
        Ok(Box::new(UserObject::new(&self.device)?))
    }

    fn is_known_zero(&self, cx: &Context, compute: ComputeType, beta: Address) -> Result<bool> {
        match cx.pointer_mode {
            // SAFETY: the caller of execute promises one value of the compute type there.
            PointerMode::Host => unsafe { crate::memory::is_zero("beta", compute, beta) },
            PointerMode::Device => Ok(false),
        }
    }

    fn can_read(&self, address: Address) -> Result<bool> {
        let _entered = self.device.enter()?;
        // Devices that can read ordinary host memory still cannot read another device's memory.
        let pageable = self.device.properties().pageable_memory;
        Ok(memory::is_readable(address) || pageable && !memory::is_of_driver(address))
    }

    fn require_reachable(&self, name: &str, what: &str, address: Address) -> Result<()> {
        let _entered = self.device.enter()?;
        self.device.require_reachable(name, what, address)
    }

    fn require_readable_by_host(&self, name: &str, address: Address) -> Result<()> {
        let _entered = self.device.enter()?;
        if self.device.properties().host_page_tables || memory::is_readable_by_host(address) {
            return Ok(());
        }
        Err(Error::invalid(
            name,
            "it is device memory, and the pointer mode of the handle is TARSIA_POINTER_MODE_HOST",
        ))
    }

    fn copy_lines(&self, cx: &Context, from: &Lines, to: &Lines) -> Result<()> {
        let cx = &self.device.call(cx)?;
        memory::copy_lines(from, to, cx.stream)
    }

    fn clear(&self, address: Address, bytes: usize) -> Result<()> {
        let _entered = self.device.enter()?;
        let stream = self.device.pool()?.stream();
        let _relaxed = device::Relaxed::enter();
        memory::zero(address, bytes, stream)?;
        memory::synchronize(stream)
    }

    fn once_workspace_bytes(&self) -> usize {
        ONCE_WORKSPACE_BYTES
    }

    fn machine(&self) -> &Machine {
        self.device.machine()
    }

    fn row_features(&self, cx: &Context, a: &SparseMatrix, op: Operation) -> Result<Option<FeatureSet>> {
        let cx = &self.device.call(cx)?;
        self.require_on_device(a, "A")?;
        order::features(cx, a, op).map(Some)
    }

    fn model(&self) -> String {
        let properties = self.device.properties();
        format!("{}, sm_{}", properties.name, properties.capability)
    }

    fn fingerprint(&self, cx: &Context, a: &SparseMatrix, name: &str) -> Result<Fingerprint> {
        let _entered = self.device.enter()?;
        let (cx, _relaxed) = self.outside_capture(cx)?;
        a.require_arrays(name)?;
        self.require_on_device(a, name)?;
        fingerprint::of(&self.device.call(&cx)?, a, name)
    }

    fn fingerprint_values(&self, cx: &Context, a: &SparseMatrix, name: &str) -> Result<Fingerprint> {
        let _entered = self.device.enter()?;
        let (cx, _relaxed) = self.outside_capture(cx)?;
        a.require_arrays(name)?;
        self.require_on_device(a, name)?;
        fingerprint::of_values(&self.device.call(&cx)?, a)
    }

    fn check_sparse(&self, cx: &Context, a: &SparseMatrix, name: &str) -> Result<Structure> {
        let cx = &self.device.call(cx)?;
        a.require_arrays(name)?;
        self.require_on_device(a, name)?;
        check::check_sparse(cx, a, name)
    }
}

impl Cuda {
    /// Returns a context for work that must not become part of a graph. Its stream is the user's, so that the
    /// work comes behind that stream's earlier work; while that stream is being captured, it is the library's
    /// own, as long as the returned guard lives. The device's context must be current.
    fn outside_capture(&self, cx: &Context) -> Result<(Context, Option<device::Relaxed>)> {
        if !memory::is_capturing(cx.stream)? {
            return Ok((cx.clone(), None));
        }
        let stream = self.device.pool()?.stream();
        Ok((Context { stream, ..cx.clone() }, Some(device::Relaxed::enter())))
    }

    /// Copies and waits: the host side may be ordinary memory, which the caller may change or read as soon as
    /// the call returns.
    fn copy(&self, dst: Address, src: Address, bytes: usize, stream: Address, call: &str) -> Result<()> {
        if bytes == 0 {
            return Ok(());
        }
        let _entered = self.device.enter()?;
        self.require_blocking(stream, call)?;
        memory::copy(dst, src, bytes, stream)?;
        memory::synchronize(stream)
    }

    /// Returns an error unless kernels can read the matrix's arrays: a kernel that cannot would end in a
    /// fault that destroys the whole context.
    fn require_on_device(&self, a: &SparseMatrix, name: &str) -> Result<()> {
        let mut arrays = a.user_arrays().into_iter().flatten().filter(|array| array.needed);
        arrays.try_for_each(|array| self.device.require_reachable(name, array.name, array.address))
    }
}

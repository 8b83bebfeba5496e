//! Backends, which execute operations on one kind of machine. A plan calls a backend through [`Backend`] and
//! through the traits of the operations ([`Operations`]), and runs the executors that these build; nothing
//! else in the library does. To add a backend, add a folder here, an arm in [`open`], and its name in the
//! support table.

pub mod cuda;
pub mod host;
pub mod reference;

use std::marker::PhantomData;
use std::sync::Arc;

use once_cell::sync::Lazy;

use crate::error::{refuse_if, Error, Result};
use crate::matrix::fingerprint::Fingerprint;
use crate::matrix::{Lines, SparseMatrix, Structure};
use crate::memory::in_flight::{GraphReferences, LastWork, Pending};
use crate::memory::{self, Context};
use crate::operation::Operations;
pub use crate::operation::{DenseExecutor, SpgemmExecutor, SpmmExecutor, SpmvExecutor};
use crate::reorder::features::FeatureSet;
use crate::select::roofline::Machine;
use crate::types::{Address, BackendKind, ComputeType, LayoutKind, Operation};

/// Description of a layout, for getInfo.
#[derive(Clone, Copy, Debug)]
pub struct LayoutInfo {
    /// Kind of the layout.
    pub kind: LayoutKind,
    /// True if the user's arrays are read in place.
    pub in_place: bool,
    /// Ratio of slots for values in the layout to stored entries (1 = no padding).
    pub fill: f64,
}

/// Guard of a call that enqueues work: keeps what the backend needs in force on this thread until it is dropped.
pub struct CallGuard {
    end: Option<fn()>,
    /// Makes the type neither `Send` nor `Sync`.
    thread: PhantomData<*const ()>,
}

impl CallGuard {
    /// For backends that need nothing.
    pub const NOTHING: Self = CallGuard { end: None, thread: PhantomData };

    /// A guard that calls `end` when it is dropped.
    pub const fn ended_by(end: fn()) -> Self {
        CallGuard { end: Some(end), thread: PhantomData }
    }
}

impl Drop for CallGuard {
    fn drop(&mut self) {
        if let Some(end) = self.end {
            end();
        }
    }
}

/// Interface of a kind of machine to plans and handles. The defaults are for a CPU, whose memory is the
/// process's and whose calls are all synchronous; a device overrides them.
pub trait Backend: Operations + Send + Sync {
    /// Kind of the backend.
    fn kind(&self) -> BackendKind;
    /// Number of the device.
    fn device(&self) -> i32 {
        0
    }
    /// Memory that `tarsiaMalloc` allocates from, and the default of the allocator.
    fn memory(&self) -> Arc<dyn memory::RawMemory> {
        Arc::new(memory::HostMemory)
    }
    /// Copies from host memory to the backend's memory.
    fn copy_to_device(&self, dst: Address, src: Address, bytes: usize, _stream: Address) -> Result<()> {
        memory::copy::copy(dst, src, bytes)
    }
    /// Copies from the backend's memory to host memory.
    fn copy_to_host(&self, dst: Address, src: Address, bytes: usize, _stream: Address) -> Result<()> {
        memory::copy::copy(dst, src, bytes)
    }
    /// Waits for all work of the stream.
    fn synchronize(&self, _stream: Address) -> Result<()> {
        Ok(())
    }
    /// Returns `INVALID_STATE` if the stream cannot be waited for, because it is being captured.
    fn require_blocking(&self, _stream: Address, _call: &str) -> Result<()> {
        Ok(())
    }
    /// Returns whether work that is enqueued on the stream now becomes part of a graph.
    fn is_capturing(&self, _stream: Address) -> Result<bool> {
        Ok(false)
    }
    /// Returns whether the calling thread's current context is the backend's.
    fn is_current(&self) -> bool {
        true
    }
    /// Number of the context in which the backend works. A device may have several, which share neither streams
    /// nor kernels.
    fn context_number(&self) -> u64 {
        0
    }
    /// Prepares what every analysis uses first (on CUDA a page for counts and the kernel that copies it to the host), so
    /// that the first one does not wait for it. What fails is tried again by the analysis, which reports it. Blocks.
    fn warm_up(&self) {}
    /// Number of works that the calling thread has enqueued so far; `None` where every call is synchronous.
    fn enqueued(&self) -> Option<u64> {
        None
    }
    /// Sets memory to zero bytes in the order of the stream. Asynchronous and capturable.
    fn clear_in_order(&self, _cx: &Context, address: Address, bytes: usize) -> Result<()> {
        memory::copy::clear(address, bytes);
        Ok(())
    }
    /// Returns `INVALID_STATE` in a child process that `fork` made after the backend had been used, if the
    /// backend does not work there.
    fn check_process(&self) -> Result<()> {
        Ok(())
    }
    /// Begins a call that enqueues work, and may make several calls of the backend for it. They are correct without
    /// this, and take less of the host's time within it.
    fn begin_call(&self) -> Result<CallGuard> {
        Ok(CallGuard::NOTHING)
    }
    /// Makes an event that follows the last work of a handle on the stream; `None` where every call is
    /// synchronous.
    fn last_work(&self, _stream: Address) -> Result<Option<Arc<dyn LastWork>>> {
        Ok(None)
    }
    /// Returns all unfinished work of the library, of every handle.
    fn work_in_flight(&self) -> Pending {
        Pending::default()
    }
    /// Makes an object that captured graphs hold references to, for memory that must live until the graphs
    /// are destroyed.
    fn graph_references(&self) -> Result<Box<dyn GraphReferences>> {
        Err(Error::unsupported("handle: its backend has no graphs"))
    }
    /// Returns whether products can read the caller's memory at this address; memory that they cannot read is
    /// copied.
    fn can_read(&self, _address: Address) -> Result<bool> {
        Ok(true)
    }
    /// Returns `INVALID_VALUE`, which names the argument `name`, if work of the backend cannot reach an
    /// address. `what` names the contents of the memory, in the plural. NULL is accepted; other checks refuse
    /// it.
    fn require_reachable(&self, _name: &str, _what: &str, _address: Address) -> Result<()> {
        Ok(())
    }
    /// Returns `INVALID_VALUE`, which names the argument `name`, if the host cannot read an address.
    fn require_readable_by_host(&self, _name: &str, _address: Address) -> Result<()> {
        Ok(())
    }
    /// Copies lines of equal length in the order of the stream. `from` and `to` have equally many lines and
    /// share no memory. Asynchronous and capturable.
    fn copy_lines(&self, _cx: &Context, from: &Lines, to: &Lines) -> Result<()> {
        memory::copy::copy_lines(from, to);
        Ok(())
    }
    /// Returns whether beta is known to be 0 before the product runs. On a CPU this is known in both pointer
    /// modes.
    fn is_known_zero(&self, _cx: &Context, compute: ComputeType, beta: Address) -> Result<bool> {
        // SAFETY: the caller of execute promises one value of the compute type there.
        unsafe { memory::is_zero("beta", compute, beta) }
    }
    /// Sets memory of the backend to zero bytes, before all later work on any stream.
    fn clear(&self, address: Address, bytes: usize) -> Result<()> {
        memory::copy::clear(address, bytes);
        Ok(())
    }
    /// Bytes of workspace that every handle has from the start, for calls without a plan.
    fn once_workspace_bytes(&self) -> usize {
        0
    }
    /// Rates by which the cost model predicts times on this machine.
    fn machine(&self) -> &Machine {
        &Machine::HOST
    }
    /// Counts, on the host, the features of op(A)'s rows by which learned orders are chosen, for a matrix
    /// that may have a sorted copy with 32-bit columns. `None` if the backend has no orders. The pattern is
    /// validated; an error names `A`. Blocks.
    fn row_features(&self, _cx: &Context, _a: &SparseMatrix, _op: Operation) -> Result<Option<FeatureSet>> {
        Ok(None)
    }
    /// Model of the machine, for which measured choices hold.
    fn model(&self) -> String {
        memory::processor::model()
    }
    /// Computes a fingerprint that identifies the pattern and is equal on every backend. The pattern need not
    /// be valid; an error names `name`. Blocks.
    fn fingerprint(&self, cx: &Context, a: &SparseMatrix, name: &str) -> Result<Fingerprint>;
    /// Computes a fingerprint of the values, of any type. Blocks.
    fn fingerprint_values(&self, cx: &Context, a: &SparseMatrix, name: &str) -> Result<Fingerprint>;
    /// Validates the whole pattern and returns whether it is sorted and unique; an error names `name`.
    fn check_sparse(&self, cx: &Context, a: &SparseMatrix, name: &str) -> Result<Structure>;
}

static HOST: Lazy<Arc<dyn Backend>> = Lazy::new(|| Arc::new(host::Host));
static REFERENCE: Lazy<Arc<dyn Backend>> = Lazy::new(|| Arc::new(reference::Reference));

/// Opens the backend of a kind. `Auto` takes the device of the calling thread's CUDA context; without one
/// device 0; and without a driver, a device or kernels the host.
pub fn open(kind: BackendKind, device: i32) -> Result<Arc<dyn Backend>> {
    let cpu = |backend: &Lazy<Arc<dyn Backend>>| {
        refuse_if!(device != 0, invalid("device"), "{device}: the CPU backends have device 0 only");
        Ok(Arc::clone(backend))
    };
    match kind {
        BackendKind::Auto => {
            refuse_if!(device != 0, invalid("device"), "{device}: TARSIA_BACKEND_AUTO takes device 0");
            match cuda::open(None) {
                Ok(backend) => Ok(backend),
                // There is no driver, no device, or the library has no kernels.
                Err(error) if cuda::means_no_device(&error) => cpu(&HOST),
                Err(error) => Err(error),
            }
        }
        BackendKind::Host => cpu(&HOST),
        BackendKind::Reference => cpu(&REFERENCE),
        BackendKind::Cuda => cuda::open(Some(device)),
    }
}

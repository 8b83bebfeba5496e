//! Who executes. A plan calls a backend through [`Backend`], what each operation asks for beside
//! ([`Operations`]) and what it builds; nothing else in the library does. Adding a backend is one folder
//! here, an arm in [`open`], and its name in the support table.

pub mod cuda;
pub mod host;
pub mod reference;

use std::sync::Arc;

use once_cell::sync::Lazy;

use crate::error::{Error, Result};
use crate::matrix::fingerprint::Fingerprint;
use crate::matrix::{Lines, SparseMatrix, Structure};
use crate::memory::in_flight::{GraphReferences, LastWork, Pending};
use crate::memory::{self, Context};
use crate::operation::Operations;
pub use crate::operation::{SpgemmExecutor, SpmmExecutor, SpmvExecutor};
use crate::reorder::features::FeatureSet;
use crate::select::roofline::Machine;
use crate::types::{Address, BackendKind, ComputeType, LayoutKind, Operation};

/// What a layout is like, for getInfo.
#[derive(Clone, Copy, Debug)]
pub struct LayoutInfo {
    /// Which.
    pub kind: LayoutKind,
    /// The user's arrays are read in place.
    pub in_place: bool,
    /// Slots for values in the layout, over stored entries (1 = no padding).
    pub fill: f64,
}

/// One kind of machine. What has a default is as on a CPU, whose memory is the process's and whose every call is
/// synchronous; a device overrides it.
pub trait Backend: Operations + Send + Sync {
    /// Which.
    fn kind(&self) -> BackendKind;
    /// Number of the device.
    fn device(&self) -> i32 {
        0
    }
    /// Memory that `tarsiaMalloc` gives, and the default of the allocator.
    fn memory(&self) -> Arc<dyn memory::RawMemory> {
        Arc::new(memory::HostMemory)
    }
    /// Copies from host memory to the backend's.
    fn copy_to_device(&self, dst: Address, src: Address, bytes: usize, _stream: Address) -> Result<()> {
        memory::copy::copy(dst, src, bytes)
    }
    /// Copies from the backend's memory to the host's.
    fn copy_to_host(&self, dst: Address, src: Address, bytes: usize, _stream: Address) -> Result<()> {
        memory::copy::copy(dst, src, bytes)
    }
    /// Waits for the stream.
    fn synchronize(&self, _stream: Address) -> Result<()> {
        Ok(())
    }
    /// `INVALID_STATE` where the stream cannot be waited for: it is captured.
    fn require_blocking(&self, _stream: Address, _call: &str) -> Result<()> {
        Ok(())
    }
    /// Whether what is enqueued on the stream now goes into a graph.
    fn is_capturing(&self, _stream: Address) -> Result<bool> {
        Ok(false)
    }
    /// Whether the calling thread's current context is the backend's.
    fn is_current(&self) -> bool {
        true
    }
    /// Sets memory to zero bytes in the order of the stream. Asynchronous and capturable.
    fn clear_in_order(&self, _cx: &Context, address: Address, bytes: usize) -> Result<()> {
        memory::copy::clear(address, bytes);
        Ok(())
    }
    /// `INVALID_STATE` in a process that `fork` has made of one in which the backend was used, if it does not
    /// work there.
    fn check_process(&self) -> Result<()> {
        Ok(())
    }
    /// What follows the work that a handle puts on the stream; `None` where every call is synchronous.
    fn last_work(&self, _stream: Address) -> Result<Option<Arc<dyn LastWork>>> {
        Ok(None)
    }
    /// All work of the library that is not done, of every handle.
    fn work_in_flight(&self) -> Pending {
        Pending::default()
    }
    /// A list of the memory that a captured graph keeps until the graph is destroyed.
    fn graph_references(&self) -> Result<Box<dyn GraphReferences>> {
        Err(Error::unsupported("handle: its backend has no graphs"))
    }
    /// Whether products can read memory of the caller's where it is; what they cannot read is copied.
    fn can_read(&self, _address: Address) -> Result<bool> {
        Ok(true)
    }
    /// `INVALID_VALUE`, which names the argument `name`, where work of the backend cannot reach an address; `what` is
    /// what lies there, in the plural. NULL is for others to refuse.
    fn require_reachable(&self, _name: &str, _what: &str, _address: Address) -> Result<()> {
        Ok(())
    }
    /// The same where the host is to read the address.
    fn require_readable_by_host(&self, _name: &str, _address: Address) -> Result<()> {
        Ok(())
    }
    /// Copies lines of as many bytes, in the order of the stream; the two share no memory. `from` and `to` are as
    /// many. Asynchronous and capturable.
    fn copy_lines(&self, _cx: &Context, from: &Lines, to: &Lines) -> Result<()> {
        memory::copy::copy_lines(from, to);
        Ok(())
    }
    /// Whether beta is 0, as far as that is known before the product runs. On the CPU it is in both pointer modes.
    fn is_known_zero(&self, _cx: &Context, compute: ComputeType, beta: Address) -> Result<bool> {
        // SAFETY: the caller of execute promises one value of the compute type there.
        unsafe { memory::is_zero("beta", compute, beta) }
    }
    /// Sets memory of the backend to zero bytes, before anything that comes
    /// later on any stream.
    fn clear(&self, address: Address, bytes: usize) -> Result<()> {
        memory::copy::clear(address, bytes);
        Ok(())
    }
    /// Bytes of workspace that every handle has from the start, for the calls
    /// without a plan.
    fn once_workspace_bytes(&self) -> usize {
        0
    }
    /// The rates by which the cost model predicts times on this machine.
    fn machine(&self) -> &Machine {
        &Machine::HOST
    }
    /// The features of the rows of op(A) that learned orders are chosen by, counted on the host, of a matrix that may
    /// have a sorted copy with 32-bit columns; `None`: the backend has no orders. The pattern is validated; the error
    /// names `A`. Blocks.
    fn row_features(&self, _cx: &Context, _a: &SparseMatrix, _op: Operation) -> Result<Option<FeatureSet>> {
        Ok(None)
    }
    /// Its model, for which measured choices hold.
    fn model(&self) -> String {
        memory::processor::model()
    }
    /// What tells the pattern from others: the same on every backend. The pattern need not be valid; the
    /// error names `name`. Blocks.
    fn fingerprint(&self, cx: &Context, a: &SparseMatrix, name: &str) -> Result<Fingerprint>;
    /// The same of the values, of any type. Blocks.
    fn fingerprint_values(&self, cx: &Context, a: &SparseMatrix, name: &str) -> Result<Fingerprint>;
    /// Reads the whole pattern and says what it is like; the error names `name`.
    fn check_sparse(&self, cx: &Context, a: &SparseMatrix, name: &str) -> Result<Structure>;
}

static HOST: Lazy<Arc<dyn Backend>> = Lazy::new(|| Arc::new(host::Host));
static REFERENCE: Lazy<Arc<dyn Backend>> = Lazy::new(|| Arc::new(reference::Reference));

/// The backend of a kind. `Auto` takes the device of the calling thread's
/// CUDA context, else device 0, else (no driver or no device) the host.
pub fn open(kind: BackendKind, device: i32) -> Result<Arc<dyn Backend>> {
    let cpu = |backend: &Lazy<Arc<dyn Backend>>| {
        if device != 0 {
            return Err(Error::invalid("device", format!("{device}: the CPU backends have device 0 only")));
        }
        Ok(Arc::clone(backend))
    };
    match kind {
        BackendKind::Auto => {
            if device != 0 {
                return Err(Error::invalid(
                    "device",
                    format!("{device}: TARSIA_BACKEND_AUTO takes device 0"),
                ));
            }
            match cuda::open(None) {
                Ok(backend) => Ok(backend),
                // No driver, no device, or a library without kernels.
                Err(error) if cuda::means_no_device(&error) => cpu(&HOST),
                Err(error) => Err(error),
            }
        }
        BackendKind::Host => cpu(&HOST),
        BackendKind::Reference => cpu(&REFERENCE),
        BackendKind::Cuda => cuda::open(Some(device)),
    }
}

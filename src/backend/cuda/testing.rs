//! Streams and graphs for tests and examples in Rust. They are safe, and not part of the C API.

use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::device::Device;
use super::driver::{self, check, raw, Raw};
pub use super::timing::Stream;
use crate::error::Result;
use crate::types::Address;

/// Work on a stream that is not done until the gate is opened.
pub struct Gate {
    state: Arc<GateState>,
}

#[derive(Default)]
struct GateState {
    is_open: AtomicBool,
    has_given_up: AtomicBool,
}

unsafe extern "C" fn wait_for_gate(state: *mut c_void) {
    // SAFETY: `Gate::close` gave one reference to this function.
    let state = unsafe { Arc::from_raw(state.cast::<GateState>().cast_const()) };
    let start = Instant::now();
    while !state.is_open.load(Ordering::Acquire) {
        if start.elapsed() > Gate::PATIENCE {
            // A test that waits for the stream fails instead of hanging.
            state.has_given_up.store(true, Ordering::Release);
            return;
        }
        std::thread::sleep(Duration::from_micros(50));
    }
}

impl Gate {
    /// Time after which the gate opens by itself.
    pub const PATIENCE: Duration = Duration::from_secs(60);

    /// Closes a gate: work that is enqueued on the stream from now on waits until the gate opens.
    pub fn close(stream: &Stream) -> Result<Gate> {
        let state = Arc::<GateState>::default();
        let _entered = stream.device().enter()?;
        let given = Arc::into_raw(Arc::clone(&state)).cast_mut().cast();
        // SAFETY: the stream is live; the function takes over the reference.
        let code = unsafe { driver::cuLaunchHostFunc(raw(stream.address()), wait_for_gate, given) };
        check(code, "a function on a stream")?;
        Ok(Gate { state })
    }

    /// Returns whether the gate is still closed: it opens by itself after a time limit.
    pub fn is_closed(&self) -> bool {
        !self.state.has_given_up.load(Ordering::Acquire)
    }

    /// Opens the gate. Returns false if it had opened by itself before.
    pub fn open(self) -> bool {
        self.state.is_open.store(true, Ordering::Release);
        !self.state.has_given_up.load(Ordering::Acquire)
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        self.state.is_open.store(true, Ordering::Release);
    }
}

/// Enqueues filling memory with bytes of 0xff, which are NaN in every format.
///
/// # Safety
/// The memory must be on the device, and used only by work on this stream.
pub unsafe fn fill(stream: &Stream, address: usize, bytes: usize) -> Result<()> {
    let _entered = stream.device().enter()?;
    // SAFETY: the caller's promise.
    check(
        unsafe { driver::cuMemsetD8Async(address as u64, 0xff, bytes, raw(stream.address())) },
        "filling memory",
    )
}

/// CUDA graph that can be launched.
pub struct Graph {
    device: Arc<Device>,
    graph: Address,
    exec: Address,
}

impl Graph {
    /// Begins to capture the stream in the strictest mode, in which any call that could block or allocate
    /// breaks the capture.
    pub fn begin(stream: &Stream) -> Result<()> {
        let _entered = stream.device().enter()?;
        // CU_STREAM_CAPTURE_MODE_GLOBAL
        // SAFETY: the stream is live.
        check(unsafe { driver::cuStreamBeginCapture_v2(raw(stream.address()), 0) }, "beginning a capture")
    }

    /// Ends the capture and makes the graph.
    pub fn end(stream: &Stream) -> Result<Graph> {
        let device = Arc::clone(stream.device());
        let _entered = device.enter()?;
        let (mut graph, mut exec): (Raw, Raw) = (std::ptr::null_mut(), std::ptr::null_mut());
        // SAFETY: the stream is live and is being captured; the answers are valid for writes.
        unsafe {
            check(driver::cuStreamEndCapture(raw(stream.address()), &mut graph), "ending a capture")?;
            check(driver::cuGraphInstantiateWithFlags(&mut exec, graph, 0), "making a graph")?;
        }
        let (graph, exec) = (Address::new(graph), Address::new(exec));
        Ok(Graph { device: Arc::clone(&device), graph, exec })
    }

    /// Ends a capture and discards the graph, if there is one.
    pub fn abandon(stream: &Stream) {
        if let Ok(_entered) = stream.device().enter() {
            let mut graph: Raw = std::ptr::null_mut();
            // SAFETY: the stream is live; a graph that results is destroyed.
            unsafe {
                if driver::cuStreamEndCapture(raw(stream.address()), &mut graph) == 0 && !graph.is_null() {
                    driver::cuGraphDestroy(graph);
                }
            }
        }
    }

    /// Enqueues the graph on a stream.
    pub fn launch(&self, stream: &Stream) -> Result<()> {
        let _entered = self.device.enter()?;
        // SAFETY: graph and stream are live.
        check(unsafe { driver::cuGraphLaunch(raw(self.exec), raw(stream.address())) }, "launching a graph")
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        if let Ok(_entered) = self.device.enter() {
            // SAFETY: made by `end`.
            unsafe {
                driver::cuGraphExecDestroy(raw(self.exec));
                driver::cuGraphDestroy(raw(self.graph));
            }
        }
    }
}

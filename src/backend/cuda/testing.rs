//! Streams and graphs for tests and examples in Rust; safe, and no part of the
//! C API.

use std::sync::Arc;

use super::device::Device;
use super::driver::{self, check, raw, Raw};
pub use super::timing::Stream;
use crate::error::Result;
use crate::types::Address;

/// A graph that can be launched.
pub struct Graph {
    device: Arc<Device>,
    graph: Address,
    exec: Address,
}

impl Graph {
    /// Begins to capture the stream, in the strictest mode: the one in which
    /// any call that could block or allocate breaks the capture.
    pub fn begin(stream: &Stream) -> Result<()> {
        let _entered = stream.device().enter()?;
        // CU_STREAM_CAPTURE_MODE_GLOBAL
        // SAFETY: the stream lives.
        check(unsafe { driver::cuStreamBeginCapture_v2(raw(stream.address()), 0) }, "beginning a capture")
    }

    /// Ends the capture and makes the graph.
    pub fn end(stream: &Stream) -> Result<Graph> {
        let device = Arc::clone(stream.device());
        let _entered = device.enter()?;
        let (mut graph, mut exec): (Raw, Raw) = (std::ptr::null_mut(), std::ptr::null_mut());
        // SAFETY: the stream lives and is being captured; the answers are valid
        // for writes.
        unsafe {
            check(driver::cuStreamEndCapture(raw(stream.address()), &mut graph), "ending a capture")?;
            check(driver::cuGraphInstantiateWithFlags(&mut exec, graph, 0), "making a graph")?;
        }
        let (graph, exec) = (Address::new(graph), Address::new(exec));
        Ok(Graph { device: Arc::clone(&device), graph, exec })
    }

    /// Ends a capture whatever became of it.
    pub fn abandon(stream: &Stream) {
        if let Ok(_entered) = stream.device().enter() {
            let mut graph: Raw = std::ptr::null_mut();
            // SAFETY: the stream lives; a graph that comes out is destroyed.
            unsafe {
                if driver::cuStreamEndCapture(raw(stream.address()), &mut graph) == 0 && !graph.is_null() {
                    driver::cuGraphDestroy(graph);
                }
            }
        }
    }

    /// Enqueues the graph.
    pub fn launch(&self, stream: &Stream) -> Result<()> {
        let _entered = self.device.enter()?;
        // SAFETY: graph and stream live.
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

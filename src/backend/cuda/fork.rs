//! Streams of the library's own beside the call's: kernels of a few blocks, none of which needs another,
//! run at one time.

use std::cell::Cell;
use std::sync::Arc;

use super::device::Device;
use super::driver::{self, check, raw, Raw};
use super::memory;
use crate::error::Result;
use crate::memory::Context;
use crate::types::Address;

/// Streams besides the call's.
pub const SIDES: usize = 3;

/// Streams, an event of each, and one of the call's. They live as long as the device, and one call has
/// them at a time.
pub struct Sides {
    streams: [Address; SIDES],
    events: [Address; SIDES],
    begun: Address,
}

impl Sides {
    fn new() -> Result<Self> {
        // CU_STREAM_NON_BLOCKING, CU_EVENT_DISABLE_TIMING
        const NON_BLOCKING: u32 = 1;
        const DISABLE_TIMING: u32 = 2;
        let stream = || {
            let mut made: Raw = std::ptr::null_mut();
            // SAFETY: a context is current and `made` is valid for a write.
            let code = unsafe { driver::cuStreamCreate(&mut made, NON_BLOCKING) };
            check(code, "making a stream").map(|()| Address::new(made))
        };
        let event = || {
            let mut made: Raw = std::ptr::null_mut();
            // SAFETY: as above.
            let code = unsafe { driver::cuEventCreate(&mut made, DISABLE_TIMING) };
            check(code, "making an event").map(|()| Address::new(made))
        };
        let mut out =
            Sides { streams: [Address::NULL; SIDES], events: [Address::NULL; SIDES], begun: event()? };
        for (to, event_of) in out.streams.iter_mut().zip(&mut out.events) {
            (*to, *event_of) = (stream()?, event()?);
        }
        Ok(out)
    }
}

fn record(event: Address, stream: Address) -> Result<()> {
    // SAFETY: both live and are of the current context.
    check(unsafe { driver::cuEventRecord(raw(event), raw(stream)) }, "recording an event")
}

fn wait_for(stream: Address, event: Address) -> Result<()> {
    // SAFETY: as above.
    check(unsafe { driver::cuStreamWaitEvent(raw(stream), raw(event), 0) }, "waiting for an event")
}

/// Streams that begin when what is on the call's stream is done, and that are joined to it at the end.
/// Memory that their work uses must live until then; what is enqueued on the call's stream after
/// [`Fork::join`] comes behind all of it.
pub struct Fork<'a> {
    cx: &'a Context,
    device: &'a Device,
    sides: Option<Sides>,
    is_joined: Cell<bool>,
}

impl<'a> Fork<'a> {
    /// The context is current until it is dropped.
    pub fn new(cx: &'a Context, device: &'a Arc<Device>) -> Result<Self> {
        let free = device.pool()?.sides().lock().pop();
        let sides = free.map_or_else(Sides::new, Ok)?;
        let out = Fork { cx, device, sides: Some(sides), is_joined: Cell::new(false) };
        let sides = out.sides.as_ref().expect("just made");
        record(sides.begun, cx.stream)?;
        for stream in sides.streams {
            wait_for(stream, sides.begun)?;
        }
        Ok(out)
    }

    /// Without streams of its own: what would be on one is on the call's.
    pub fn none(cx: &'a Context, device: &'a Arc<Device>) -> Self {
        Fork { cx, device, sides: None, is_joined: Cell::new(true) }
    }

    /// The call's context on one of the streams.
    pub fn side(&self, at: usize) -> Context {
        let stream = self.sides.as_ref().map_or(self.cx.stream, |sides| sides.streams[at]);
        Context { stream, ..self.cx.clone() }
    }

    /// The call's stream waits for the others.
    pub fn join(&self) -> Result<()> {
        if let (Some(sides), false) = (&self.sides, self.is_joined.get()) {
            for (&stream, &event) in sides.streams.iter().zip(&sides.events) {
                record(event, stream)?;
                wait_for(self.cx.stream, event)?;
            }
        }
        self.is_joined.set(true);
        Ok(())
    }
}

impl Drop for Fork<'_> {
    fn drop(&mut self) {
        let is_joined = self.join().is_ok();
        let Some(sides) = self.sides.take() else { return };
        // Streams that cannot be waited for are given to nobody again.
        if !is_joined && sides.streams.into_iter().any(|stream| memory::synchronize(stream).is_err()) {
            return;
        }
        if let Ok(pool) = self.device.pool() {
            pool.sides().lock().push(sides);
        }
    }
}

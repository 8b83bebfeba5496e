//! The clock of the CUDA backend: events on the stream around the call.

use tarsia::facade::{Address, Stopwatch};

use super::timer::{Timer, Work};
use crate::Result;

/// Events on the stream that the handle uses.
pub struct EventClock {
    stopwatch: Stopwatch,
}

impl EventClock {
    /// A clock for work on `stream` of this device.
    pub fn new(device: i32, stream: Address) -> Result<Self> {
        Ok(EventClock { stopwatch: Stopwatch::new(device, stream)? })
    }
}

impl EventClock {
    fn between_events(&self, calls: usize, work: &mut Work<'_>) -> Result<f64> {
        self.stopwatch.start()?;
        for _ in 0..calls {
            work()?;
        }
        self.stopwatch.stop()?;
        Ok(self.stopwatch.micros()? / calls.max(1) as f64)
    }
}

impl Timer for EventClock {
    fn cold(&self, work: &mut Work<'_>) -> Result<f64> {
        // Its reads also give the host the time to enqueue what is timed.
        self.stopwatch.flush_l2()?;
        self.between_events(1, work)
    }

    fn warm(&self, calls: usize, work: &mut Work<'_>) -> Result<f64> {
        // As above; the call after it fills the cache again.
        self.stopwatch.flush_l2()?;
        work()?;
        self.between_events(calls, work)
    }
}

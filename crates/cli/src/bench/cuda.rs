//! The clock of the CUDA backend: events on the stream before and after the timed calls.

use tarsia::facade::{Address, Stopwatch};

use super::timer::{Timer, Work};
use crate::Result;

/// Clock that records events on the stream that the handle uses.
pub struct EventClock {
    stopwatch: Stopwatch,
}

impl EventClock {
    /// Makes a clock for work on `stream` of this device.
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
        // Reading the flush buffer also gives the host the time to enqueue the timed work.
        self.stopwatch.flush_l2()?;
        self.between_events(1, work)
    }

    fn warm(&self, calls: usize, work: &mut Work<'_>) -> Result<f64> {
        // Same as in `cold`; the call after the flush fills the cache again.
        self.stopwatch.flush_l2()?;
        work()?;
        self.between_events(calls, work)
    }
}

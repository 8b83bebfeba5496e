//! Clocks: one call with cold caches, many calls with warm ones.

use std::hint::black_box;
use std::time::{Duration, Instant};

use tarsia::capi::client::Session;
use tarsia::types::{Address, BackendKind};

use crate::demo::bandwidth::last_level_cache;
use crate::demo::products::median;
use crate::Result;

/// Calls that do not count: caches of instructions, clocks, pages of the output.
const WARM_UP: usize = 2;
/// No more calls are timed after so long, once there are [`LEAST`].
const PATIENCE: Duration = Duration::from_secs(4);
/// Calls that a median needs at the least.
const LEAST: usize = 3;
/// What takes longer once is timed by that call alone.
const SLOW_US: f64 = 4e6;

/// What executes a product once.
pub type Work<'a> = dyn FnMut() -> Result<()> + 'a;

/// A clock of a backend.
pub trait Timer {
    /// Microseconds of one call that finds nothing in the caches.
    fn cold(&self, work: &mut Work<'_>) -> Result<f64>;
    /// Microseconds of a call, of so many one after the other.
    fn warm(&self, calls: usize, work: &mut Work<'_>) -> Result<f64>;
}

/// The clock for the session's backend.
pub fn of(session: &Session) -> Result<Box<dyn Timer>> {
    match session.kind() {
        // The session is of device 0 and has the NULL stream.
        BackendKind::Cuda => Ok(Box::new(super::cuda::EventClock::new(0, Address::NULL)?)),
        _ => Ok(Box::new(WallClock::new())),
    }
}

/// What was measured.
#[derive(Clone, Copy, Debug)]
pub struct Times {
    /// Median microseconds of a call with cold caches.
    pub cold_us: f64,
    /// Microseconds of a call back to back.
    pub warm_us: f64,
    /// Calls behind the median.
    pub runs: usize,
}

/// Times `work`, at most `repeat` times with cold caches and so often with warm ones.
pub fn measure(timer: &dyn Timer, repeat: usize, work: &mut Work<'_>) -> Result<Times> {
    let first = timer.cold(work)?;
    if first > SLOW_US {
        return Ok(Times { cold_us: first, warm_us: first, runs: 1 });
    }
    for _ in 1..WARM_UP {
        work()?;
    }
    let start = Instant::now();
    let mut cold = Vec::new();
    while cold.len() < repeat && (cold.len() < LEAST || start.elapsed() < PATIENCE) {
        cold.push(timer.cold(work)?);
    }
    let runs = cold.len();
    Ok(Times { cold_us: median(cold), warm_us: timer.warm(runs, work)?, runs })
}

/// The clock of backends whose calls return when the work is done.
struct WallClock {
    /// Three times the last cache: reading it leaves nothing else there.
    flush: Vec<u64>,
}

impl WallClock {
    fn new() -> Self {
        WallClock { flush: vec![1; 3 * last_level_cache() / size_of::<u64>()] }
    }
}

impl Timer for WallClock {
    fn cold(&self, work: &mut Work<'_>) -> Result<f64> {
        black_box(self.flush.iter().fold(0, |sum: u64, word| sum.wrapping_add(*word)));
        self.warm(1, work)
    }

    fn warm(&self, calls: usize, work: &mut Work<'_>) -> Result<f64> {
        let start = Instant::now();
        for _ in 0..calls {
            work()?;
        }
        Ok(1e6 * start.elapsed().as_secs_f64() / calls.max(1) as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_slow_is_not_repeated() {
        struct Fake(f64);
        impl Timer for Fake {
            fn cold(&self, work: &mut Work<'_>) -> Result<f64> {
                work().map(|()| self.0)
            }
            fn warm(&self, _: usize, work: &mut Work<'_>) -> Result<f64> {
                work().map(|()| self.0 / 2.0)
            }
        }
        let run = |micros| {
            let mut calls = 0;
            let times = measure(&Fake(micros), 5, &mut || {
                calls += 1;
                Ok(())
            });
            (times.unwrap(), calls)
        };
        let (times, calls) = run(10.0);
        assert_eq!((times.cold_us, times.warm_us, times.runs, calls), (10.0, 5.0, 5, 8));
        let (times, calls) = run(5e6);
        assert_eq!((times.runs, calls), (1, 1));
    }
}

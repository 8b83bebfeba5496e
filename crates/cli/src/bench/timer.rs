//! Clocks: one call with cold caches, many calls with warm caches.

use std::hint::black_box;
use std::time::{Duration, Instant};

use client::Session;
use rustix::thread::{sched_getaffinity, sched_setaffinity, CpuSet};
use tarsia::facade::{Address, BackendKind};

use crate::demo::bandwidth::{cache_files, last_level_cache, second_level_cache};
use crate::demo::products::median;
use crate::Result;

/// Number of untimed calls: they fill instruction caches, raise clocks and touch the pages of the output.
const WARM_UP: usize = 2;
/// No more calls are timed after this time, once there are [`LEAST`].
const PATIENCE: Duration = Duration::from_secs(4);
/// Least number of calls behind a median.
const LEAST: usize = 3;
/// A work whose first call takes longer than this is timed by that call alone.
const SLOW_US: f64 = 4e6;

/// A closure that executes a product once.
pub type Work<'a> = dyn FnMut() -> Result<()> + 'a;

/// A clock of a backend.
pub trait Timer {
    /// Times one call that finds nothing in the caches; returns microseconds.
    fn cold(&self, work: &mut Work<'_>) -> Result<f64>;
    /// Times `calls` calls, one after the other; returns microseconds per call.
    fn warm(&self, calls: usize, work: &mut Work<'_>) -> Result<f64>;
    /// Returns whether the timed work runs on the cores of this program, so that other contestants are timed
    /// in turns.
    fn shares_cores(&self) -> bool {
        false
    }
}

/// Makes the clock for the session's backend.
pub fn of(session: &Session) -> Result<Box<dyn Timer>> {
    match session.kind() {
        // The session is of device 0 and uses the NULL stream.
        BackendKind::Cuda => Ok(Box::new(super::cuda::EventClock::new(0, Address::NULL)?)),
        _ => Ok(Box::new(WallClock::new())),
    }
}

/// Measured times.
#[derive(Clone, Copy, Debug)]
pub struct Times {
    /// Median microseconds of a call with cold caches.
    pub cold_us: f64,
    /// Microseconds per call of calls back to back.
    pub warm_us: f64,
    /// Number of calls behind the median.
    pub runs: usize,
}

/// Times `work`, at most `repeat` times with cold caches and equally often with warm ones.
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

/// Least time, approximately, that the back-to-back calls of a turn take together.
const LEAST_WARM_US: f64 = 5e3;

/// Number of blocks of runs in which [`race`] times each of its works.
const ROUNDS: usize = 3;

/// Times several works in turns, so that a disturbance that slows the machine down for some seconds slows all
/// of them. `rest` is called before each turn: threads of the previous work must not take cores from the
/// next. Each work has its own result or error.
pub fn race(
    timer: &dyn Timer,
    repeat: usize,
    works: &mut [Box<dyn FnMut() -> Result<()> + '_>],
    rest: &dyn Fn(),
) -> Vec<Result<Times>> {
    if let [work] = works {
        return vec![measure(timer, repeat, &mut **work)];
    }
    let mut lanes: Vec<Result<Lane>> = works.iter().map(|_| Ok(Lane::default())).collect();
    let rounds = ROUNDS.min(repeat).max(1);
    for _ in 0..rounds {
        for (lane, work) in lanes.iter_mut().zip(works.iter_mut()) {
            let Ok(open) = lane else { continue };
            rest();
            if let Err(error) = open.turn(timer, repeat / rounds, &mut **work) {
                *lane = Err(error);
            }
        }
    }
    lanes.into_iter().map(|lane| lane.map(Lane::times)).collect()
}

/// Times of one work of a race so far.
#[derive(Default)]
struct Lane {
    cold: Vec<f64>,
    warm: Vec<f64>,
    is_slow: bool,
}

impl Lane {
    fn turn(&mut self, timer: &dyn Timer, repeat: usize, work: &mut Work<'_>) -> Result<()> {
        if self.is_slow {
            return Ok(());
        }
        // The first call wakes threads and does not count.
        let first = timer.cold(work)?;
        if first > SLOW_US {
            (self.cold, self.warm, self.is_slow) = (vec![first], vec![first], true);
            return Ok(());
        }
        let start = Instant::now();
        let mut runs = 0;
        while runs < repeat && (runs == 0 || start.elapsed() < PATIENCE / ROUNDS as u32) {
            self.cold.push(timer.cold(work)?);
            runs += 1;
        }
        // Long enough that the time to wake threads for the first call does not matter.
        let last = self.cold.last().copied().unwrap_or(first);
        let calls = runs.max((LEAST_WARM_US / last.max(1.0)) as usize);
        self.warm.push(timer.warm(calls, work)?);
        Ok(())
    }

    fn times(self) -> Times {
        let runs = self.cold.len();
        Times { cold_us: median(self.cold), warm_us: median(self.warm), runs }
    }
}

/// The clock of backends whose calls return when their work is done.
struct WallClock {
    /// Three times the size of the last-level cache: reading it evicts everything else.
    flush: Vec<u64>,
    /// CPUs on which helpers may run, whose caches are evicted, too, each with the number of words to read there; none
    /// if one thread works.
    cpus: Vec<(usize, usize)>,
}

impl WallClock {
    fn new() -> Self {
        let words = |bytes: usize| 3 * bytes / size_of::<u64>();
        let flush = vec![1; words(last_level_cache())];
        // Three times the size of a second-level cache evict everything else from that.
        let second_level = words(second_level_cache()).min(flush.len());
        let cpus = if tarsia::facade::pool_size() > 1 { allowed_cpus() } else { Vec::new() };
        // Where there are several last-level caches, one CPU of each reads all words.
        let mut seen = Vec::new();
        let last_levels: Vec<_> = cpus.iter().map(|&cpu| last_level_cpus(cpu)).collect();
        let is_one = last_levels.windows(2).all(|two| two[0] == two[1]);
        let words = |list: &String| match is_one || seen.contains(list) {
            true => second_level,
            false => {
                seen.push(list.clone());
                flush.len()
            }
        };
        let words: Vec<_> = last_levels.iter().map(words).collect();
        WallClock { cpus: cpus.into_iter().zip(words).collect(), flush }
    }

    /// Evicts what caches hold: first from the second-level caches of all CPUs, whose lines may move to the
    /// last-level cache then, and from other last-level caches; afterwards from those of this thread. Where the system
    /// refuses a thread, that CPU's caches stay as they are.
    fn clear_caches(&self) {
        let read = |words: &[u64]| black_box(words.iter().fold(0, |sum: u64, word| sum.wrapping_add(*word)));
        std::thread::scope(|scope| {
            for &(cpu, words) in &self.cpus {
                let _ = std::thread::Builder::new().spawn_scoped(scope, move || {
                    pin_to(cpu);
                    read(&self.flush[..words]);
                });
            }
        });
        read(&self.flush);
    }
}

/// Returns the CPUs that share a last-level cache with this one, as the system writes them.
fn last_level_cpus(cpu: usize) -> String {
    cache_files(cpu, "shared_cpu_list").next_back().unwrap_or_default()
}

/// Returns the CPUs on which the calling thread may run; none if the system does not say.
fn allowed_cpus() -> Vec<usize> {
    let allowed = sched_getaffinity(None).unwrap_or_default();
    (0..CpuSet::MAX_CPU).filter(|&cpu| allowed.is_set(cpu)).collect()
}

/// Moves the calling thread to a CPU. Where that is refused it stays where it is.
fn pin_to(cpu: usize) {
    let mut set = CpuSet::new();
    set.set(cpu);
    let _ = sched_setaffinity(None, &set);
}

impl Timer for WallClock {
    fn cold(&self, work: &mut Work<'_>) -> Result<f64> {
        self.clear_caches();
        self.warm(1, work)
    }

    fn warm(&self, calls: usize, work: &mut Work<'_>) -> Result<f64> {
        let start = Instant::now();
        for _ in 0..calls {
            work()?;
        }
        Ok(1e6 * start.elapsed().as_secs_f64() / calls.max(1) as f64)
    }

    fn shares_cores(&self) -> bool {
        true
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

    #[test]
    fn a_race_keeps_its_works_apart() {
        struct Count;
        impl Timer for Count {
            fn cold(&self, work: &mut Work<'_>) -> Result<f64> {
                let start = Instant::now();
                work()?;
                Ok(if start.elapsed() > Duration::from_millis(1) { 20.0 } else { 10.0 })
            }
            fn warm(&self, calls: usize, work: &mut Work<'_>) -> Result<f64> {
                (0..calls).try_for_each(|_| work())?;
                Ok(5.0)
            }
        }
        let (calls, rests) = (std::cell::Cell::new(0), std::cell::Cell::new(0));
        let mut works: Vec<Box<dyn FnMut() -> Result<()>>> = vec![
            Box::new(|| {
                calls.set(calls.get() + 1);
                Ok(())
            }),
            Box::new(|| Err("broken".into())),
            Box::new(|| {
                std::thread::sleep(Duration::from_millis(2));
                Ok(())
            }),
        ];
        let found = race(&Count, 6, &mut works, &|| rests.set(rests.get() + 1));
        let times = found[0].as_ref().unwrap();
        assert_eq!((times.cold_us, times.warm_us, times.runs), (10.0, 5.0, 6));
        assert_eq!(found[1].as_ref().err().unwrap().to_string(), "broken");
        assert_eq!(found[2].as_ref().unwrap().cold_us, 20.0);
        // A turn is an untimed call, two cold calls, and 5 ms of calls of 10 µs.
        assert_eq!((calls.get(), rests.get()), (3 * 503, 7));
    }
}

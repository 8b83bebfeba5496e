//! Team of threads that start quickly: a product takes 10 µs to some milliseconds, and handing it to a pool
//! whose threads sleep takes 10 to 20 µs.
//!
//! The caller works too. The helpers poll for work for some time after they have had some, and then sleep; a
//! call does not wait for helpers that come late. A call allocates no memory.
//!
//! `state` holds, from high to low, the number of the call (32 bits), whether it is open to helpers (1 bit)
//! and how many of them are inside (31 bits).

use std::any::Any;
use std::cell::UnsafeCell;
use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, Instant};

use super::float_env;

/// Time for which a helper polls for work before it sleeps. Waking it takes the caller 50 to 300 µs on a
/// virtual machine, more than most products, and an iterative solver does vector operations and other work
/// between two products. (The OpenMP of LLVM and Intel polls as long.)
const PATIENCE: Duration = Duration::from_millis(200);

/// First part of that time, in which it polls without yielding its core to other threads: vector operations,
/// the usual work between two products of a solver, take about as long.
const EAGER: Duration = Duration::from_micros(200);

/// Number of polls between two readings of the clock or two yields.
const LOOKS: u32 = 64;

/// Largest number of threads of a team: far below what the state's count of helpers can hold.
const MOST: usize = 1 << 16;

const OPEN: u64 = 1 << 31;
const INSIDE: u64 = OPEN - 1;

/// Pointer to the function that helpers call with their number.
type Job = *const (dyn Fn(usize) + Sync);

/// Items that a thread has not done yet: the first in the upper 32 bits, the end in the lower ones. On a
/// cache line of its own.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Share(AtomicU64);

/// State that the caller and the helpers share. Its locks are those of the standard library: parking_lot
/// keeps its sleeping threads in one table of the process, where a child that `fork` made would find helpers
/// that it does not have.
struct Common {
    state: AtomicU64,
    job: UnsafeCell<Option<Job>>,
    shares: Vec<Share>,
    sleepers: AtomicUsize,
    sleep: Mutex<()>,
    wake: Condvar,
    panic: Mutex<Option<Box<dyn Any + Send>>>,
}

// SAFETY: `job` is written by the thread that holds `Team::turn` while the state
// is closed and nobody is inside, and read by helpers that are inside.
unsafe impl Sync for Common {}
// SAFETY: as above; the pointer is only used while the call that it comes from runs.
unsafe impl Send for Common {}

/// The caller and its helpers.
pub struct Team {
    common: Arc<Common>,
    /// Lock held by the call that has the helpers.
    turn: Mutex<()>,
}

impl Team {
    /// Creates a team of this many threads, the caller among them; of fewer where threads cannot be created.
    /// They live as long as the process.
    pub fn new(threads: usize) -> Self {
        let threads = threads.clamp(1, MOST);
        let common = Arc::new(Common {
            state: AtomicU64::new(0),
            job: UnsafeCell::new(None),
            shares: (0..threads).map(|_| Share::default()).collect(),
            sleepers: AtomicUsize::new(0),
            sleep: Mutex::new(()),
            wake: Condvar::new(),
            panic: Mutex::new(None),
        });
        let begun = Arc::new(AtomicUsize::new(0));
        let mut helpers = 0;
        for helper in 1..threads {
            let (common, begun) = (Arc::clone(&common), Arc::clone(&begun));
            let thread = std::thread::Builder::new().name(format!("tarsia-team-{helper}"));
            let help = move || {
                begun.fetch_add(1, Ordering::Release);
                common.help(helper)
            };
            // The share of a thread that does not exist is done by the others.
            helpers += usize::from(thread.spawn(help).is_ok());
        }
        // The C library's data for the helpers is allocated now, while there is memory for it.
        while begun.load(Ordering::Acquire) < helpers {
            std::thread::yield_now();
        }
        Team { common, turn: Mutex::new(()) }
    }

    /// Calls `f` once for each of 0..len, on all threads; returns false, and does nothing, if another call
    /// has them or `len` needs more than 32 bits. A panic of `f` is resumed here.
    ///
    /// Each thread starts with a run of items of its own, the same in every call, so that its caches still
    /// hold what it read the last time. When it is done, it takes items from the ends of the other threads'
    /// runs.
    pub fn for_each(&self, len: usize, f: &(dyn Fn(usize) + Sync)) -> bool {
        let Ok(len) = u32::try_from(len) else {
            return false;
        };
        let _turn = match self.turn.try_lock() {
            Ok(turn) => turn,
            // A job's panic was resumed in an earlier call; the helpers have left it.
            Err(TryLockError::Poisoned(turn)) => turn.into_inner(),
            Err(TryLockError::WouldBlock) => return false,
        };
        let common = &*self.common;
        let threads = common.shares.len() as u64;
        for (thread, share) in common.shares.iter().enumerate() {
            let cut = |thread: u64| u64::from(len) * thread / threads;
            let (first, end) = (cut(thread as u64), cut(thread as u64 + 1));
            share.0.store(first << 32 | end, Ordering::Relaxed);
        }
        let work = |thread: usize| common.work(thread, f);
        common.run(&work);
        true
    }
}

impl Common {
    /// Calls `work` on this thread and on the helpers that come in time.
    fn run(&self, work: &(dyn Fn(usize) + Sync)) {
        // SAFETY: the lifetime is erased, and nobody uses the pointer after this function: it ends when all
        // helpers that got it have left, and lets none in.
        let job = unsafe { std::mem::transmute::<*const (dyn Fn(usize) + Sync), Job>(work) };
        // SAFETY: the caller holds `turn`, the state is closed, nobody is inside.
        unsafe { *self.job.get() = Some(job) };
        let call = (self.state.load(Ordering::Relaxed) >> 32).wrapping_add(1) & 0xffff_ffff;
        // Sequentially consistent, together with the helpers' count of sleepers: either a helper sees this
        // call before it sleeps, or it is seen here.
        self.state.store(call << 32 | OPEN, Ordering::SeqCst);
        if self.sleepers.load(Ordering::SeqCst) > 0 {
            drop(lock(&self.sleep));
            self.wake.notify_all();
        }
        let mine = catch_unwind(AssertUnwindSafe(|| work(0)));
        self.state.fetch_and(!OPEN, Ordering::AcqRel);
        let mut looks = 0_u32;
        while self.state.load(Ordering::Acquire) & INSIDE != 0 {
            looks += 1;
            if looks % LOOKS == 0 {
                std::thread::yield_now();
            }
            std::hint::spin_loop();
        }
        let theirs = lock(&self.panic).take();
        match (mine, theirs) {
            (Err(panic), _) | (Ok(()), Some(panic)) => resume_unwind(panic),
            (Ok(()), None) => {}
        }
    }

    /// Does items until there are none, first those of this thread's share.
    fn work(&self, thread: usize, f: &(dyn Fn(usize) + Sync)) {
        let threads = self.shares.len();
        for victim in (0..threads).map(|step| (thread + step) % threads) {
            while let Some(item) = self.take(victim, victim == thread) {
                f(item);
            }
        }
    }

    /// Takes the first item of a share, or the last.
    fn take(&self, thread: usize, first: bool) -> Option<usize> {
        let share = &self.shares[thread].0;
        let mut present = share.load(Ordering::Relaxed);
        loop {
            let (start, end) = (present >> 32, present & 0xffff_ffff);
            if start >= end {
                return None;
            }
            let (item, rest) =
                if first { (start, (start + 1) << 32 | end) } else { (end - 1, start << 32 | (end - 1)) };
            // Items carry no data: data that they read was written before the call was opened, and data that
            // they write is read after it is closed.
            match share.compare_exchange_weak(present, rest, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return Some(item as usize),
                Err(now) => present = now,
            }
        }
    }

    /// Main loop of a helper.
    fn help(&self, thread: usize) {
        float_env::reset();
        let mut last_call = 0;
        loop {
            let call = self.enter(last_call);
            last_call = call;
            // SAFETY: this thread is inside, so the call that wrote the job is
            // still running, and with it lives what the job points to.
            let done = unsafe { *self.job.get() }.map(|job| {
                // SAFETY: as above.
                let job = unsafe { &*job };
                catch_unwind(AssertUnwindSafe(|| job(thread)))
            });
            if let Some(Err(panic)) = done {
                *lock(&self.panic) = Some(panic);
            }
            self.state.fetch_sub(1, Ordering::AcqRel);
        }
    }

    /// Waits for an open call other than `last`, joins it and returns its number.
    fn enter(&self, last: u64) -> u64 {
        let mut since = Instant::now();
        loop {
            for _ in 0..LOOKS {
                let state = self.state.load(Ordering::Acquire);
                if state & OPEN != 0
                    && state >> 32 != last
                    && self
                        .state
                        .compare_exchange(state, state + 1, Ordering::AcqRel, Ordering::Relaxed)
                        .is_ok()
                {
                    return state >> 32;
                }
                std::hint::spin_loop();
            }
            let waited = since.elapsed();
            if waited > PATIENCE {
                self.rest(last);
                since = Instant::now();
            } else if waited > EAGER {
                std::thread::yield_now();
            }
        }
    }

    /// Sleeps until a call is open.
    fn rest(&self, last: u64) {
        let lock = lock(&self.sleep);
        self.sleepers.fetch_add(1, Ordering::SeqCst);
        let state = self.state.load(Ordering::SeqCst);
        if state & OPEN == 0 || state >> 32 == last {
            // If woken too early, the helper polls again, as after a call.
            drop(self.wake.wait(lock));
        }
        self.sleepers.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Locks a mutex, even one poisoned by another thread's panic: the data that these locks guard is consistent
/// at any time.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_item_is_done_once_by_any_number_of_threads() {
        for threads in [1, 2, 3, 8] {
            let team = Team::new(threads);
            for len in [0, 1, 2, 7, 1000, 3, 100_000] {
                let counts: Vec<AtomicUsize> = (0..len).map(|_| AtomicUsize::new(0)).collect();
                assert!(team.for_each(len, &|item| {
                    counts[item].fetch_add(1, Ordering::Relaxed);
                }));
                assert!(counts.iter().all(|count| count.load(Ordering::Relaxed) == 1), "{threads}, {len}");
            }
        }
    }

    #[test]
    fn many_short_calls_and_long_pauses() {
        let team = Team::new(3);
        let total = AtomicUsize::new(0);
        for call in 0..20_000 {
            team.for_each(5, &|item| {
                total.fetch_add(item, Ordering::Relaxed);
            });
            if call % 4000 == 0 {
                std::thread::sleep(2 * PATIENCE);
            }
        }
        assert_eq!(total.load(Ordering::Relaxed), 200_000);
    }

    #[test]
    fn helpers_do_take_part() {
        let team = Team::new(2);
        // Each of two items waits for the other one to begin.
        let begun = AtomicUsize::new(0);
        team.for_each(2, &|_| {
            begun.fetch_add(1, Ordering::SeqCst);
            while begun.load(Ordering::SeqCst) < 2 {
                std::thread::yield_now();
            }
        });
        assert_eq!(begun.load(Ordering::SeqCst), 2);
    }

    #[test]
    fn panics_come_back_and_the_team_goes_on() {
        let team = Team::new(4);
        for _ in 0..50 {
            for bad in [0, 50, 99] {
                let caught = catch_unwind(AssertUnwindSafe(|| {
                    team.for_each(100, &|item| assert!(item != bad, "item {bad}"))
                }));
                let text = caught.unwrap_err();
                assert_eq!(text.downcast_ref::<String>().unwrap(), &format!("item {bad}"));
                let total = AtomicUsize::new(0);
                assert!(team.for_each(10, &|item| {
                    total.fetch_add(item, Ordering::Relaxed);
                }));
                assert_eq!(total.load(Ordering::Relaxed), 45);
            }
        }
    }

    #[test]
    fn a_call_inside_a_call_is_refused() {
        let team = Team::new(2);
        assert!(team.for_each(3, &|_| assert!(!team.for_each(1, &|_| unreachable!()))));
    }
}

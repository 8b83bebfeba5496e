//! The library's own threads. They are not rayon's global pool, which a host program in Rust may want to
//! configure itself, and which can be created only once: if that fails, it has failed for the process.
//!
//! Threads are created when a call first needs them. Where that fails (a limit on processes or on address
//! space), the calling thread does the work, and a later call tries again. A process that `fork` made has
//! none of its parent's threads and creates its own.
//!
//! A program may request another number of threads at any time ([`set_wanted`]). Each number that was in use
//! has threads of its own, which sleep while another number is in use: a running call keeps its threads.

use std::io::{self, Write};
use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use rayon::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};

use super::float_env;
use super::team::Team;
use crate::memory::heap;
use crate::memory::process::PerProcess;
use crate::reentrancy::UseList;

/// Number of threads that may be requested on any machine; on larger ones four per core. More would only wait
/// for each other.
const MANY_THREADS: usize = 64;

/// Threads for one requested number of them.
struct Threads {
    /// The requested number; 0: TARSIA_NUM_THREADS or the number of cores.
    wanted: usize,
    /// Pool that runs analysis; it holds `None` where one thread is wanted, which is the caller's.
    pool: PerProcess<Option<ThreadPool>>,
    /// Team that runs products, quicker to start than the pool; `None` as for the pool.
    team: PerProcess<Option<Team>>,
    /// Threads for the next number in the list; created on demand, and never freed.
    next: AtomicPtr<Threads>,
}

/// Head of the list: the threads for the default number; the others follow.
static THREADS: Threads = Threads::new(0);

/// Number of threads that the program has requested; 0: none.
static WANTED: AtomicUsize = AtomicUsize::new(0);

/// Warning for the user, until a handle with a logger has reported it.
static WARNING: Mutex<Option<String>> = Mutex::new(None);
/// True while there is a warning.
static WARNED: AtomicBool = AtomicBool::new(false);

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Returns the largest number of threads that may be requested.
fn most(cores: usize) -> usize {
    MANY_THREADS.max(4 * cores)
}

/// Sets the number of threads for calls that begin from now on, limited to the largest number allowed; 0
/// restores the default.
pub fn set_wanted(threads: usize) {
    WANTED.store(threads.min(most(cores())), Ordering::Relaxed);
}

/// Returns the number of threads that the next call takes: those that exist, or the wanted number if none
/// exist yet.
pub fn next_size() -> usize {
    let threads = Threads::now();
    match threads.pool.made() {
        Some(pool) => pool.as_ref().map_or(1, ThreadPool::current_num_threads),
        None => threads.wanted().0,
    }
}

impl Threads {
    const fn new(wanted: usize) -> Self {
        Threads {
            wanted,
            pool: PerProcess::empty(),
            team: PerProcess::empty(),
            next: AtomicPtr::new(std::ptr::null_mut()),
        }
    }

    /// Returns the threads for the number that is requested now.
    fn now() -> &'static Threads {
        let wanted = WANTED.load(Ordering::Relaxed);
        let mut threads = &THREADS;
        while threads.wanted != wanted {
            threads = threads.next(wanted);
        }
        threads
    }

    /// Returns the next threads of the list; creates them for `wanted` if there are none. (Without a lock,
    /// which another thread may hold while the process forks.)
    fn next(&'static self, wanted: usize) -> &'static Threads {
        let mut next = self.next.load(Ordering::Acquire);
        if next.is_null() {
            let made = Box::into_raw(Box::new(Threads::new(wanted)));
            let (null, release) = (std::ptr::null_mut(), Ordering::AcqRel);
            next = match self.next.compare_exchange(null, made, release, Ordering::Acquire) {
                Ok(_) => made,
                Err(other) => {
                    // SAFETY: it came from `Box::into_raw` above, and nobody else has seen it.
                    drop(unsafe { Box::from_raw(made) });
                    other
                }
            };
        }
        // SAFETY: it is not null, came from `Box::into_raw`, and what is in the list is never freed.
        unsafe { &*next }
    }

    /// Returns the number of threads, and a warning if TARSIA_NUM_THREADS is not valid. It is the requested
    /// number, else TARSIA_NUM_THREADS, else one per core that this process may use. The number changes no
    /// result: work is divided by the matrix alone.
    fn wanted(&self) -> (usize, Option<String>) {
        if self.wanted > 0 {
            return (self.wanted, None);
        }
        let text = std::env::var_os("TARSIA_NUM_THREADS").unwrap_or_default();
        number_of_threads(&text.to_string_lossy(), cores())
    }

    fn pool(&self) -> Option<&ThreadPool> {
        self.pool.get(|failed_before| make_pool(self.wanted(), failed_before))?.as_ref()
    }

    fn team(&self) -> Option<&Team> {
        let make = |_| {
            let pool = self.pool.get(|failed_before| make_pool(self.wanted(), failed_before))?;
            let Some(pool) = pool else { return Some(None) };
            let threads = pool.current_num_threads();
            heap::check_system(threads * heap::PER_THREAD).ok()?;
            Some(Some(Team::new(threads)))
        };
        self.team.get(make)?.as_ref()
    }
}

/// Returns the number of threads that the text of TARSIA_NUM_THREADS requests on a machine of `cores` cores,
/// and a warning if the text is not valid.
fn number_of_threads(text: &str, cores: usize) -> (usize, Option<String>) {
    let (text, most) = (text.trim(), most(cores));
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    // A number with too many digits to parse is too large, too.
    let number = if is_number { text.parse().unwrap_or(usize::MAX) } else { 0 };
    // The text may have any length: only its beginning is shown.
    let shown: String = text.chars().take(40).collect();
    if number > most {
        let warning = format!("TARSIA_NUM_THREADS={shown} is too many: {most} threads are used");
        (most, Some(warning))
    } else if number > 0 {
        (number, None)
    } else if text.is_empty() {
        (cores, None)
    } else {
        let warning = format!(
            "TARSIA_NUM_THREADS={shown} is not a number from 1 to {most}: one thread per core is used, {cores}"
        );
        (cores, Some(warning))
    }
}

fn warn(text: String) {
    let mut warning = WARNING.lock().unwrap_or_else(PoisonError::into_inner);
    *warning = Some(match warning.take() {
        Some(earlier) => format!("{earlier}; {text}"),
        None => text,
    });
    WARNED.store(true, Ordering::Release);
}

/// Returns whether there is a warning that no logger has received.
#[inline]
pub fn has_warning() -> bool {
    WARNED.load(Ordering::Relaxed)
}

/// Takes the warning that no logger has received yet; the next call returns none.
pub fn take_warning() -> Option<String> {
    WARNED.store(false, Ordering::Relaxed);
    WARNING.lock().unwrap_or_else(PoisonError::into_inner).take()
}

/// Creates a pool of as many threads as are wanted, or half as many, and so on; `Some(None)` where one thread
/// is wanted, `None` where not even two can be created.
fn make_pool((wanted, warning): (usize, Option<String>), failed_before: bool) -> Option<Option<ThreadPool>> {
    if let Some(warning) = warning.filter(|_| !failed_before) {
        // A user's mistake, which a program without a logger would hide; one without stderr cannot be told.
        let _ = io::stderr().write_all(format!("tarsia: {warning}\n").as_bytes());
        warn(warning);
    }
    let mut threads = wanted;
    let mut failure = None;
    while threads > 1 {
        let built =
            heap::check_system(threads * heap::PER_THREAD).map_err(|error| error.message).and_then(|()| {
                let builder = ThreadPoolBuilder::new().num_threads(threads);
                let builder = builder.thread_name(|index| format!("tarsia-{index}"));
                let start = |_| {
                    float_env::reset();
                    // The memory for it was available when the threads were created.
                    let _ = heap::prepare_thread();
                };
                builder.start_handler(start).build().map_err(|error| error.to_string())
            });
        match built {
            Ok(pool) => {
                // All threads have started, so the C library's data for them is already allocated.
                pool.broadcast(|_| ());
                if let Some(error) = failure {
                    warn(format!("{threads} of {wanted} threads could be made ({error})"));
                }
                return Some(Some(pool));
            }
            Err(error) => failure = Some(error),
        }
        threads /= 2;
    }
    let Some(error) = failure else {
        return Some(None);
    };
    if !failed_before {
        warn(format!(
            "no threads can be made ({error}): the calling thread does the host backend's work until they can be"
        ));
    }
    None
}

fn pool() -> Option<&'static ThreadPool> {
    Threads::now().pool()
}

fn team() -> Option<&'static Team> {
    Threads::now().team()
}

/// Calls `f` once for each of 0..len, on all threads: on the current pool if called inside one, else on the
/// team, or on the library's pool while another call has the team. (Never inlined: that would compile `f`
/// into each caller a second time.)
#[inline(never)]
pub fn for_each(len: usize, f: &(dyn Fn(usize) + Sync)) {
    if len <= 1 {
        return (0..len).for_each(f);
    }
    let mut all = || (0..len).into_par_iter().for_each(f);
    if rayon::current_thread_index().is_some() {
        all();
    } else if let Some(team) = team() {
        if !team.for_each(len, f) {
            install(&mut all);
        }
    } else {
        (0..len).for_each(f);
    }
}

/// Returns the smallest result of `f` over 0..len, where results for smaller numbers are smaller.
pub fn find_first(len: usize, f: &(dyn Fn(usize) -> Option<usize> + Sync)) -> Option<usize> {
    let (at_least, found) = (AtomicUsize::new(usize::MAX), AtomicUsize::new(usize::MAX));
    for_each(len, &|at| {
        if at < at_least.load(Ordering::Relaxed) {
            if let Some(what) = f(at) {
                at_least.fetch_min(at, Ordering::Relaxed);
                found.fetch_min(what, Ordering::Relaxed);
            }
        }
    });
    Some(found.into_inner()).filter(|&found| found < usize::MAX)
}

/// Runs `f` on the library's threads and waits; a panic of `f` is resumed here. `f` may allocate, though not
/// from within parallel iterators: a user's allocator that calls the library back from there is known to be
/// part of this thread's call.
pub fn run<R: Send>(f: impl FnOnce() -> R + Send) -> R {
    let (mut f, mut result) = (Some(f), None);
    run_on_threads(&mut || result = f.take().map(|f| f()));
    result.expect("it has run")
}

/// Type-erased form of [`run`], so that it is compiled only once.
fn run_on_threads(f: &mut (dyn FnMut() + Send)) {
    let uses = UseList::of_this_thread();
    install(&mut || uses.enter(&mut *f));
}

/// Runs both functions, at the same time where another thread is idle. To be called inside [`run`].
pub fn join(a: impl FnOnce() + Send, b: impl FnOnce() + Send) {
    let (mut a, mut b) = (Some(a), Some(b));
    join_on_threads(&mut || a.take().into_iter().for_each(|a| a()), &mut || {
        b.take().into_iter().for_each(|b| b());
    });
}

fn join_on_threads(a: &mut (dyn FnMut() + Send), b: &mut (dyn FnMut() + Send)) {
    rayon::join(a, b);
}

/// Runs `f`, which must not allocate, on the library's threads and waits.
fn install(f: &mut (dyn FnMut() + Send)) {
    match pool() {
        Some(pool) => pool.install(f),
        None => alone(f),
    }
}

/// Runs `f` on this thread alone, which forms a pool of its own meanwhile: rayon's parallel iterators outside
/// any pool would create the global one.
fn alone(f: &mut (dyn FnMut() + Send)) {
    if rayon::current_thread_index().is_some() {
        return f();
    }
    let mut seat = None;
    let builder = ThreadPoolBuilder::new().num_threads(1).spawn_handler(|thread| {
        seat = Some(thread);
        Ok::<(), io::Error>(())
    });
    let pool = builder.build().expect("its one thread is this one, which is there");
    let mut outcome = None;
    let job = || outcome = Some(catch_unwind(AssertUnwindSafe(f)));
    let job: Box<dyn FnOnce() + Send + '_> = Box::new(job);
    // SAFETY: the job runs before this function goes on: `seat.run` below is the only thread of the
    // pool and returns when the pool is dropped and the job, which keeps it open, is done.
    let job: Box<dyn FnOnce() + Send + 'static> = unsafe { std::mem::transmute(job) };
    pool.spawn(job);
    drop(pool);
    seat.expect("the pool has one thread").run();
    if let Err(panic) = outcome.expect("the job has run") {
        resume_unwind(panic);
    }
}

/// Returns the number of threads that a call has now.
pub fn size() -> usize {
    pool().map_or(1, ThreadPool::current_num_threads)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_threads_are_sane_and_what_is_no_number_is_told() {
        for (text, expected) in [("3", 3), (" 64 ", 64), ("", 2), ("  ", 2)] {
            assert_eq!(number_of_threads(text, 2), (expected, None));
        }
        for text in ["abc", "0", "00", "-3", "+4", "1.5", "0x10", "\u{7f}"] {
            let (threads, warning) = number_of_threads(text, 2);
            assert!(threads == 2 && warning.unwrap().contains("not a number from 1 to 64"), "{text}");
        }
        for text in ["65", "4000000000", "99999999999999999999999999999999"] {
            let (threads, warning) = number_of_threads(text, 2);
            assert!(threads == 64 && warning.unwrap().contains("too many"), "{text}");
        }
        assert_eq!(number_of_threads("400", 100), (400, None));
        let (_, warning) = number_of_threads(&"x".repeat(100_000), 8);
        assert!(warning.unwrap().len() < 200);
    }

    #[test]
    fn one_thread_is_a_pool_and_no_longer_than_needed() {
        let here = std::thread::current().id();
        for round in 0..100_usize {
            let mut sum = 0;
            alone(&mut || {
                assert_eq!(std::thread::current().id(), here);
                assert_eq!(rayon::current_num_threads(), 1);
                // Parallel iterators, and calls inside, stay on this thread.
                let all: usize = (0..1000_usize).into_par_iter().map(|i| i + round).sum();
                alone(&mut || assert_eq!(std::thread::current().id(), here));
                let (left, right) = rayon::join(|| 1, || std::thread::current().id() == here);
                sum = all + left + usize::from(right);
            });
            assert_eq!(sum, 499_500 + 1000 * round + 2);
            assert!(rayon::current_thread_index().is_none(), "this thread is still a pool");
        }
    }

    #[test]
    fn the_first_is_found() {
        for (len, step) in [(0, 1), (1, 1), (1000, 7), (1000, 1001), (5000, 999)] {
            let expected = (step - 1 < len).then_some(10 * (step - 1));
            let find = |at: usize| (at % step == step - 1).then_some(10 * at);
            assert_eq!(find_first(len, &find), expected);
            assert_eq!(run(|| find_first(len, &find)), expected);
        }
    }

    #[test]
    fn panics_of_one_thread_come_back() {
        let caught = catch_unwind(|| {
            alone(&mut || (0..10).into_par_iter().for_each(|i| assert!(i != 7, "item 7")));
        });
        assert_eq!(caught.unwrap_err().downcast_ref::<&str>(), Some(&"item 7"));
        assert_eq!(run(|| 3), 3);
    }
}

//! The library's own threads. They are not rayon's global pool, which a host
//! program in Rust may want to configure itself.

use once_cell::sync::Lazy;
use rayon::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};

use super::team::Team;

/// Threads: TARSIA_NUM_THREADS, else one per core that this process may use.
/// The number changes no result: work is cut into pieces by the matrix alone.
fn threads() -> usize {
    let asked = std::env::var("TARSIA_NUM_THREADS").ok().and_then(|text| text.parse().ok());
    let cores = || std::thread::available_parallelism().map_or(1, usize::from);
    asked.filter(|&n| n > 0).unwrap_or_else(cores)
}

// None where threads cannot be made: the caller's thread then does the work.
static POOL: Lazy<Option<ThreadPool>> = Lazy::new(|| {
    let name = |index| format!("tarsia-{index}");
    ThreadPoolBuilder::new().num_threads(threads()).thread_name(name).build().ok()
});

static TEAM: Lazy<Team> = Lazy::new(|| Team::new(threads()));

/// Calls `f` once for each of 0..len, on all threads: inside a pool on that,
/// else on the team, or on the library's pool while another call has the team.
pub fn for_each(len: usize, f: &(dyn Fn(usize) + Sync)) {
    let all = || (0..len).into_par_iter().for_each(f);
    if rayon::current_thread_index().is_some() {
        all();
    } else if !TEAM.for_each(len, f) {
        run(all);
    }
}

/// Runs `f` on the library's threads and waits; its panics come back here.
pub fn run<R: Send>(f: impl FnOnce() -> R + Send) -> R {
    match &*POOL {
        Some(pool) => pool.install(f),
        None => f(),
    }
}

/// Runs `f` on the library's threads while the caller's thread does `here`, and waits for both.
pub fn beside<A: Send, B>(f: impl FnOnce() -> A + Send, here: impl FnOnce() -> B) -> (A, B) {
    let Some(pool) = &*POOL else {
        return (f(), here());
    };
    let mut out = None;
    let done = pool.in_place_scope(|scope| {
        scope.spawn(|_| out = Some(f()));
        here()
    });
    (out.expect("the scope waits for what it spawns, and passes its panics on"), done)
}

/// Number of threads.
pub fn size() -> usize {
    POOL.as_ref().map_or(1, ThreadPool::current_num_threads)
}

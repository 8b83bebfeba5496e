//! State that belongs to one process and is missing in a child that `fork` made of it: threads, and the CUDA
//! driver's state.
//!
//! A child has a copy of its parent's memory but only the thread that called `fork`. Therefore every value
//! that stands for threads or for the driver is kept with the [`generation`] of the process that made it, and
//! is not used in another one.

use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use std::sync::{Mutex, Once, PoisonError};
use std::time::{Duration, Instant};

static GENERATION: AtomicU64 = AtomicU64::new(0);

/// Time after a failure to make a value before the next call tries again.
const RETRY: Duration = Duration::from_millis(50);

extern "C" fn count_fork() {
    GENERATION.fetch_add(1, Ordering::Relaxed);
}

/// Returns a number that differs between a process and its children by `fork`.
pub fn generation() -> u64 {
    static WATCH: Once = Once::new();
    // A child whose parent is inside this `Once` would wait forever; the header says that a fork while
    // another thread is inside the library is undefined.
    WATCH.call_once(|| {
        // SAFETY: the function may run in a child (it only adds to an atomic), and it stays mapped: the
        // library is linked with -z nodelete. If the handler cannot be registered (no memory), children are
        // treated as if they had not been made by fork; nothing better is possible.
        unsafe { libc::pthread_atfork(None, None, Some(count_fork)) };
    });
    GENERATION.load(Ordering::Relaxed)
}

/// Value that each process makes when it first needs it, and that lives as long as the process.
pub struct PerProcess<T> {
    /// The value and the generation that made it. Made once in each process and never freed: in a child the
    /// parent's value may stand for threads that do not exist, so that dropping it could wait for them.
    present: AtomicPtr<(u64, T)>,
    /// Time of the last failure to make the value, and the process in which it failed.
    failed: Mutex<Option<(u64, Instant)>>,
}

impl<T: Send + Sync> PerProcess<T> {
    /// Creates an empty cell.
    pub const fn empty() -> Self {
        PerProcess { present: AtomicPtr::new(std::ptr::null_mut()), failed: Mutex::new(None) }
    }

    fn present(&self, generation: u64) -> Option<&T> {
        let present = self.present.load(Ordering::Acquire);
        // SAFETY: it is null or came from `Box::into_raw` in `get`, and is never freed.
        let (made_in, value) = unsafe { present.as_ref()? };
        (*made_in == generation).then_some(value)
    }

    /// Returns this process's value, if it has been made.
    pub fn made(&self) -> Option<&T> {
        self.present(generation())
    }

    /// Returns this process's value, made by `make` if there is none yet. `None` where it cannot be made: the
    /// first call after [`RETRY`] tries again. The argument of `make` is true if it failed before.
    pub fn get(&self, make: impl FnOnce(bool) -> Option<T>) -> Option<&T> {
        let generation = generation();
        if let Some(value) = self.present(generation) {
            return Some(value);
        }
        let mut failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(value) = self.present(generation) {
            return Some(value);
        }
        let before = failed.filter(|(process, _)| *process == generation);
        if before.is_some_and(|(_, when)| when.elapsed() < RETRY) {
            return None;
        }
        let Some(value) = make(before.is_some()) else {
            *failed = Some((generation, Instant::now()));
            return None;
        };
        *failed = None;
        self.present.store(Box::into_raw(Box::new((generation, value))), Ordering::Release);
        self.present(generation)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_made_once_and_again_after_a_failure() {
        static VALUE: PerProcess<u32> = PerProcess::empty();
        assert_eq!(
            VALUE.get(|before| {
                assert!(!before);
                None
            }),
            None
        );
        // The failure is remembered for a while, then `make` is tried again.
        assert_eq!(VALUE.get(|_| unreachable!()), None);
        std::thread::sleep(2 * RETRY);
        assert_eq!(VALUE.get(|before| before.then_some(7)), Some(&7));
        assert_eq!(VALUE.get(|_| unreachable!()), Some(&7));
    }
}

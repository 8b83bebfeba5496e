//! Number of threads of the host backend.

use libc::c_int;

use super::boundary::{guard, out};
use super::enums::tarsiaStatus_t;
use crate::error::{Error, Result};
use crate::memory::pool;

/// Sets how many threads the host backend uses for calls that begin from now on, of all handles of the
/// process. n ≥ 1: that many threads, the calling thread among them for products. 0: the default, which is
/// TARSIA_NUM_THREADS (an environment variable) or one per core that the process may use. n, like that
/// variable, is limited to 64, or to four per core where that is more. The number of threads changes no
/// result.
///
/// May be called at any time, from any thread, also while others compute, and from a callback
/// (tarsiaSetAllocator, tarsiaSetLogger): calls that run meanwhile use the old or the new number, which may
/// change between their steps. Threads are created when a call first needs them, up to 2 n for a number n
/// that was not in use before, and stay asleep until the number is set again: a program should use few
/// different numbers. The child of a fork has its parent's number.
///
/// Statuses: INVALID_VALUE (n is negative).
#[no_mangle]
pub extern "C" fn tarsiaSetNumThreads(n: c_int) -> tarsiaStatus_t {
    guard(|| {
        let threads = usize::try_from(n)
            .map_err(|_| Error::invalid("n", format!("{n} is no number of threads; 0 is the default")))?;
        pool::set_wanted(threads);
        Ok(())
    })
}

/// Gets how many threads the next call uses: the number of tarsiaSetNumThreads or the default, or fewer where
/// so many could not be created.
///
/// n: host.
///
/// Statuses: INVALID_VALUE (n is NULL).
#[no_mangle]
pub unsafe extern "C" fn tarsiaGetNumThreads(n: *mut c_int) -> tarsiaStatus_t {
    guard(|| -> Result<()> { out!(n).set(c_int::try_from(pool::next_size()).unwrap_or(c_int::MAX)) })
}

//! Threads of the host backend.

use libc::c_int;

use super::boundary::{guard, out};
use super::enums::tarsiaStatus_t;
use crate::error::{Error, Result};
use crate::memory::pool;

/// How many threads the host backend takes for calls that begin from now on, of all handles of the process:
/// n ≥ 1, the calling thread among them for products; 0: the default again, which is TARSIA_NUM_THREADS
/// (an environment variable) or one per core that the process may use. As of that variable at most 64,
/// or four per core where that is more, are taken: a larger n is this number. It changes no result.
///
/// May be called at any time, from any thread, also while others compute, and from a callback
/// (tarsiaSetAllocator, tarsiaSetLogger): calls that run meanwhile take the one number or the other,
/// from one step to the next. Threads are made when a call first needs them, up to 2 n for a number n that was
/// not in use before, and stay, asleep, for when it is asked for again: a program should ask for few
/// different ones. A child that fork made has the number of its parent.
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

/// How many threads the next call takes: what tarsiaSetNumThreads or the default says, or fewer where so many
/// could not be made.
///
/// n: host.
///
/// Statuses: INVALID_VALUE (n is NULL).
#[no_mangle]
pub unsafe extern "C" fn tarsiaGetNumThreads(n: *mut c_int) -> tarsiaStatus_t {
    guard(|| -> Result<()> {
        out!(n).set(c_int::try_from(pool::next_size()).unwrap_or(c_int::MAX));
        Ok(())
    })
}

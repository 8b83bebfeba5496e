//! Numbers that kernels count and the host waits for.

use std::cell::Cell;
use std::sync::Arc;

use bytemuck::Pod;

use super::{copy, synchronize, zero, Pool};
use crate::backend::cuda::device::{Device, Relaxed};
use crate::backend::cuda::driver::{self, check};
use crate::error::Result;
use crate::memory::Context;
use crate::types::Address;

/// Words of a [`Readback`]: a page.
const WORDS: usize = 512;
const BYTES: usize = WORDS * size_of::<u64>();

/// Words on the device and as many in page-locked memory of the host, which the
/// device writes too. They live as long as the device, like the pool's stream.
pub(super) struct Desk {
    device: Address,
    host: Address,
    /// Words on the device are not zero.
    is_used: bool,
}

/// A page of 64-bit words that kernels write and the host reads after one wait:
/// all counts of a phase together, whichever kernel they come from. A copy to
/// ordinary memory costs 8 to 20 µs a piece on an H100, and each wait 2 to 10.
///
/// Numbers that one thread knows at its end go straight to [`Readback::host`],
/// with no copy. Words on the device ([`Readback::at`]) are zero to begin with,
/// for counts that are added up by atomics; [`Readback::fetch`] enqueues their
/// copy. [`Readback::wait`] has both.
///
/// The page is the library's own (never the user's allocator's) and lent to one
/// analysis at a time, so nothing is allocated but on the first use.
///
/// ```text
/// let mut words = Readback::take(cx, device)?;
/// launch!(…; words.at(0))?;           // atomicAdd(&counts[i], …), i < 4
/// launch!(…; words.host(4))?;         // one thread: *total = sum
/// words.fetch(cx, 4)?;
/// let found = words.wait(cx)?;        // found[0..4], found[4]
/// ```
pub struct Readback {
    owner: Arc<Device>,
    // None only while it is dropped.
    desk: Option<Desk>,
    stream: Address,
    is_pending: Cell<bool>,
    is_used: Cell<bool>,
}

impl Readback {
    /// Words of a page.
    pub const WORDS: usize = WORDS;

    /// A page of zeros. The context must be current until it is dropped, and all
    /// that writes to it be enqueued on the context's stream.
    pub fn take(cx: &Context, device: &Arc<Device>) -> Result<Self> {
        let pool = device.pool()?;
        let desk = Desk::of(pool)?;
        let is_used = desk.is_used;
        // SAFETY: the page has that many words, and whoever had it has waited
        // for what wrote to it.
        unsafe { std::ptr::write_bytes(desk.host.as_mut_ptr::<u64>(), 0, WORDS) };
        let out = Readback {
            owner: Arc::clone(device),
            desk: Some(desk),
            stream: cx.stream,
            is_pending: Cell::new(false),
            is_used: Cell::new(is_used),
        };
        if is_used {
            out.is_pending.set(true);
            zero(out.desk().device, BYTES, cx.stream)?;
            out.is_used.set(false);
        }
        Ok(out)
    }

    fn desk(&self) -> &Desk {
        self.desk.as_ref().expect("there until it is dropped")
    }

    /// Word `at` on the device, and those behind it.
    pub fn at(&self, at: usize) -> Address {
        self.is_used.set(true);
        self.restored(at)
    }

    /// The same for a kernel that leaves zero what it found zero.
    pub fn restored(&self, at: usize) -> Address {
        assert!(at < WORDS);
        self.is_pending.set(true);
        self.desk().device.offset(at * size_of::<u64>())
    }

    /// Word `at` in the host's memory, and those behind it: for plain stores of
    /// one thread each. Words that no kernel writes are 0.
    pub fn host(&self, at: usize) -> Address {
        assert!(at < WORDS);
        self.is_pending.set(true);
        self.desk().host.offset(at * size_of::<u64>())
    }

    /// Enqueues a copy of the first `count` words to the host's.
    pub fn fetch(&self, cx: &Context, count: usize) -> Result<()> {
        assert!(count <= WORDS);
        copy(self.host(0), self.at(0), count * size_of::<u64>(), cx.stream)
    }

    /// Waits for the stream; the host's words.
    pub fn wait(&mut self, cx: &Context) -> Result<&[u64; WORDS]> {
        if self.is_pending.get() {
            synchronize(cx.stream)?;
            self.is_pending.set(false);
        }
        // SAFETY: the page has that many words, which were set when it was taken;
        // the stream has run what writes them, and `&mut self` keeps more from
        // being enqueued while the slice lives.
        Ok(unsafe { &*self.desk().host.as_ptr() })
    }
}

/// `count` elements of device memory, at most a page of them, through page-locked memory.
/// Blocks.
pub fn fetch<T: Pod>(cx: &Context, device: &Device, from: Address, count: usize) -> Result<Vec<T>> {
    let bytes = count * size_of::<T>();
    assert!(bytes <= BYTES);
    let pool = device.pool()?;
    let desk = Desk::of(pool)?;
    // After an error nobody gets the page again: something may write to it yet.
    copy(desk.host, from, bytes, cx.stream)?;
    synchronize(cx.stream)?;
    // SAFETY: the page has these bytes, which were set when it was made, and the copy into
    // it is done.
    let found = unsafe { std::slice::from_raw_parts(desk.host.as_ptr::<u8>(), bytes) };
    let found = bytemuck::cast_slice(found).to_vec();
    pool.desks.lock().push(desk);
    Ok(found)
}

impl Desk {
    /// One that is free, or another.
    fn of(pool: &Pool) -> Result<Self> {
        let free = pool.desks.lock().pop();
        free.map_or_else(|| Desk::new(pool), Ok)
    }

    fn new(pool: &Pool) -> Result<Self> {
        let _relaxed = Relaxed::enter();
        let device = pool.allocate(BYTES)?;
        let mut host: *mut std::ffi::c_void = std::ptr::null_mut();
        // SAFETY: a context is current and `host` is valid for a write.
        let code = unsafe { driver::cuMemAllocHost_v2(&mut host, BYTES) };
        if let Err(error) = check(code, "allocating page-locked memory") {
            pool.release(device);
            return Err(error);
        }
        // SAFETY: it has as many bytes.
        unsafe { std::ptr::write_bytes(host.cast::<u8>(), 0, BYTES) };
        Ok(Desk { device, host: Address::new(host), is_used: true })
    }
}

impl Drop for Readback {
    fn drop(&mut self) {
        // If what writes to the page cannot be waited for, nobody gets it again.
        if self.is_pending.get() && synchronize(self.stream).is_err() {
            return;
        }
        if let (Some(mut desk), Ok(pool)) = (self.desk.take(), self.owner.pool()) {
            desk.is_used = self.is_used.get();
            pool.desks.lock().push(desk);
        }
    }
}

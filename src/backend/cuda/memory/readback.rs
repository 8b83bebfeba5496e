//! Readback of numbers that kernels count and the host waits for.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{synchronize, zero, Pool};
use crate::backend::cuda::device::{Device, DeviceCall, Relaxed};
use crate::backend::cuda::driver::{self, check};
use crate::backend::cuda::launch::{launch_early, Kernel};
use crate::backend::cuda::layouts::kernel_structs;
use crate::backend::cuda::module::Modules;
use crate::error::Result;
use crate::memory::Context;
use crate::types::Address;

/// Number of words of a [`Readback`], which is one page.
const WORDS: usize = 512;
const BYTES: usize = WORDS * size_of::<u64>();

/// Longest time for which a wait watches the page before it asks the driver to wait: most phases of an
/// analysis are shorter, and a wait by the driver returns some 3 µs later than the number of the arrival is
/// there (H100).
const WATCHED: Duration = Duration::from_micros(300);

/// Memory of a page: words on the device and as many in pinned memory of the host, which the device can write
/// as well. They live as long as the device, like the pool's stream.
pub(super) struct Page {
    device: Address,
    /// [`WORDS`] words, and one more: the number of the last arrival.
    host: Address,
    /// True if words on the device may not be zero.
    is_used: bool,
    /// Number of the last arrival that was enqueued.
    arrivals: Cell<u64>,
}

kernel_structs! {
    /// Word of a page by which a kernel tells the host that the page is complete, and the number that it stores there;
    /// the kernels' `Arrival`.
    pub struct Arrival = "common/last_block.cuh Arrival" {
        arrived: Address,
        ticket: u64,
    }
}

/// Page of 64-bit words that kernels write and the host reads after one wait: all counts of a phase together,
/// whichever kernel they come from. On an H100 each copy to ordinary memory costs 8 to 20 µs, and each wait 2
/// to 10.
///
/// Numbers that one thread knows at its end go straight to [`Readback::host`], without a copy. Words on the
/// device ([`Readback::at`]) are zero at first, for counts that are added up by atomics; [`Readback::fetch`]
/// enqueues a kernel that copies them, and makes them zero again. [`Readback::wait`] returns both.
///
/// The page is always the library's own, never from the user's allocator, and lent to one analysis at a time,
/// so nothing is allocated after the first use.
///
/// ```text
/// let mut words = Readback::take(cx)?;
/// launch!(…; words.at(0))?;           // atomicAdd(&counts[i], …), i < 4
/// launch!(…; words.host(4))?;         // one thread: *total = sum
/// words.fetch(cx, 4)?;
/// let found = words.wait(cx)?;        // found[0..4], found[4]
/// ```
pub struct Readback {
    owner: Arc<Device>,
    // `None` only while the page is dropped.
    page: Option<Page>,
    stream: Address,
    is_pending: Cell<bool>,
    is_used: Cell<bool>,
    /// True if the last kernel that was enqueued tells the host of its end ([`Arrival`]).
    arrives: Cell<bool>,
}

impl Readback {
    /// Number of words of a page.
    pub const WORDS: usize = WORDS;

    /// Takes a page of zeros. The context must be current until it is dropped, and all work that writes to it
    /// must be enqueued on the context's stream.
    pub fn take(cx: &DeviceCall<'_>) -> Result<Self> {
        let pool = cx.device.pool()?;
        let page = Page::of(pool)?;
        let is_used = page.is_used;
        // SAFETY: the page has this many words, and its previous owner has waited for all work that wrote to
        // it.
        unsafe { std::ptr::write_bytes(page.host.as_mut_ptr::<u64>(), 0, WORDS) };
        let out = Readback {
            owner: Arc::clone(cx.device),
            page: Some(page),
            stream: cx.stream,
            is_pending: Cell::new(false),
            is_used: Cell::new(is_used),
            arrives: Cell::new(false),
        };
        if is_used {
            out.is_pending.set(true);
            zero(out.page().device, BYTES, cx.stream)?;
            out.is_used.set(false);
        }
        Ok(out)
    }

    fn page(&self) -> &Page {
        self.page.as_ref().expect("there until it is dropped")
    }

    /// Address of word `at` on the device, with the words behind it.
    pub fn at(&self, at: usize) -> Address {
        self.is_used.set(true);
        self.restored(at)
    }

    /// Address of word `at` on the device, for a kernel that resets to zero the words that it uses.
    pub fn restored(&self, at: usize) -> Address {
        assert!(at < WORDS);
        self.is_pending.set(true);
        self.arrives.set(false);
        self.page().device.offset(at * size_of::<u64>())
    }

    /// Address of word `at` in the host's memory, with the words behind it, for plain stores by one thread
    /// each. Words that no kernel writes are 0.
    pub fn host(&self, at: usize) -> Address {
        assert!(at < WORDS);
        self.is_pending.set(true);
        self.arrives.set(false);
        self.page().host.offset(at * size_of::<u64>())
    }

    /// Enqueues a copy of the first `count` words to the host's, and makes all words on the device zero.
    pub fn fetch(&mut self, cx: &Context, count: usize) -> Result<()> {
        self.fetch_with(cx, count, [Address::NULL; 2])
    }

    /// Does the same, and copies the 64-bit numbers at two addresses on the device, where these are not NULL, to
    /// the words `count` and `count + 1` of the host.
    pub fn fetch_with(&mut self, cx: &Context, count: usize, [first, second]: [Address; 2]) -> Result<()> {
        let more = if second.is_null() { usize::from(!first.is_null()) } else { 2 };
        assert!(count + more <= WORDS);
        let owner = Arc::clone(&self.owner);
        let kernel = load_read_back(owner.pool()?, owner.modules())?;
        let arrival = self.arrival();
        let page = self.page();
        // SAFETY: the page has WORDS words on the device and one more on the host, and the callers' numbers are
        // on the device.
        unsafe {
            launch_early!(true, kernel, (1, 1), WORDS as u32, 0, cx.stream;
                page.device, page.host, count as i64, first, second, arrival)?;
        }
        self.is_used.set(false);
        Ok(())
    }

    /// Returns an argument for a kernel that tells the host when all words of the page are there, those of kernels
    /// before it included. It must be the last of the page's addresses that the kernel is given.
    pub fn arrival(&self) -> Arrival {
        let page = self.page();
        let ticket = page.arrivals.get() + 1;
        page.arrivals.set(ticket);
        self.is_pending.set(true);
        self.arrives.set(true);
        Arrival { arrived: page.host.offset(BYTES), ticket }
    }

    /// Returns whether the last arrival, behind which nothing was enqueued, has come within [`WATCHED`].
    fn arrives_soon(&self) -> bool {
        let page = self.page();
        // SAFETY: the host's page has this word behind the others, aligned, and lives as long as the device; the
        // host only reads it here.
        let arrived = unsafe { AtomicU64::from_ptr(page.host.offset(BYTES).as_mut_ptr()) };
        let begin = Instant::now();
        loop {
            for _ in 0..32 {
                if arrived.load(Ordering::Acquire) == page.arrivals.get() {
                    return true;
                }
                std::hint::spin_loop();
            }
            if begin.elapsed() > WATCHED {
                return false;
            }
        }
    }

    /// Waits for the work that was enqueued up to the last arrival, or for all of the stream's if more of the page's
    /// addresses were asked for since, and returns the host's words. Work that is enqueued between an arrival and
    /// this call, which must not use the page, may still be running.
    pub fn wait(&mut self, cx: &Context) -> Result<&[u64; WORDS]> {
        if self.is_pending.get() {
            if !(self.arrives.get() && self.arrives_soon()) {
                synchronize(cx.stream)?;
            }
            self.is_pending.set(false);
        }
        // SAFETY: the page has this many words, which were set when it was taken; the stream has run the work
        // that writes them, and `&mut self` prevents more from being enqueued while the slice lives.
        Ok(unsafe { &*self.page().host.as_ptr() })
    }
}

/// Makes the first page of a device's pool and loads the kernel that brings pages to the host, so that the first
/// analysis does not wait for them (1 to 2 ms on an H200). Blocks. The device's context must be current.
pub fn prepare(pool: &Pool, modules: &Modules) -> Result<()> {
    let mut pages = pool.pages.lock();
    if pool.read_back.get().is_some() {
        return Ok(());
    }
    load_read_back(pool, modules)?;
    let mut page = Page::new(pool)?;
    page.is_used = zero(page.device, BYTES, pool.stream).and_then(|()| synchronize(pool.stream)).is_err();
    pages.push(page);
    Ok(())
}

/// Returns the kernel that brings pages to the host.
fn load_read_back(pool: &Pool, modules: &Modules) -> Result<Kernel> {
    pool.read_back(|| modules.kernel("analysis/check", "read_back"))
}

impl Page {
    /// Returns the words on the device, if they are known to be zero. Blocks.
    #[cfg(test)]
    pub(super) fn words(&self, stream: Address) -> Result<Vec<u64>> {
        assert!(!self.is_used);
        super::download(self.device, WORDS, stream)
    }

    /// Takes a free page, or makes another.
    fn of(pool: &Pool) -> Result<Self> {
        let free = pool.pages.lock().pop();
        free.map_or_else(|| Page::new(pool), Ok)
    }

    fn new(pool: &Pool) -> Result<Self> {
        let _relaxed = Relaxed::enter();
        let device = pool.allocate_of_driver(BYTES)?;
        let mut host: *mut std::ffi::c_void = std::ptr::null_mut();
        // SAFETY: a context is current and `host` is valid for a write.
        let code = unsafe { driver::cuMemAllocHost_v2(&mut host, BYTES + size_of::<u64>()) };
        if let Err(error) = check(code, "allocating page-locked memory") {
            pool.release_to_driver(device);
            return Err(error);
        }
        // SAFETY: the page has this many bytes.
        unsafe { std::ptr::write_bytes(host.cast::<u8>(), 0, BYTES + size_of::<u64>()) };
        Ok(Page { device, host: Address::new(host), is_used: true, arrivals: Cell::new(0) })
    }
}

impl Drop for Readback {
    fn drop(&mut self) {
        // If the work that writes to the page cannot be waited for, the page is not reused.
        if self.is_pending.get() && synchronize(self.stream).is_err() {
            return;
        }
        if let (Some(mut page), Ok(pool)) = (self.page.take(), self.owner.pool()) {
            page.is_used = self.is_used.get();
            pool.pages.lock().push(page);
        }
    }
}

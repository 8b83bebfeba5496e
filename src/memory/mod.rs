//! Memory and threads: the handle's allocator and the one fallible buffer type over it, the context of a
//! call, the record of work in flight, the process (fork), and the threads of the host.

pub mod arena;
pub mod context;
pub mod copy;
pub mod float_env;
pub mod heap;
pub mod in_flight;
pub mod lent;
pub mod pieces;
pub mod pool;
pub mod process;
pub mod processor;
mod team;
#[cfg(test)]
mod tests;

use std::fmt;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;

use bytemuck::Pod;
use libc::c_void;
use parking_lot::Mutex;

use in_flight::Pending;

use crate::error::{refuse_if, require, Error, Result, Status};
use crate::reentrancy;
use crate::types::{Address, ComputeType, DataType};

pub use context::{Context, Workspace, COUNTERS, COUNTER_BYTES, SLOTS};

/// Alignment of memory that the library allocates itself, in bytes: the same as [`ALLOCATOR_ALIGNMENT`]
/// requires of user allocators. It is more than a cache line of a CPU.
pub const ALIGNMENT: usize = ALLOCATOR_ALIGNMENT;

/// Alignment that a user's workspace must have, in bytes.
pub const USER_ALIGNMENT: usize = 16;

/// Alignment that memory from a user's allocator must have, in bytes: that of cudaMalloc and of common memory
/// pools.
pub const ALLOCATOR_ALIGNMENT: usize = 256;

/// Size of a huge page on x86-64 and, with 4 KiB pages, on aarch64.
const HUGE_PAGE: usize = 2 << 20;

/// Source of memory: the system, a device, or a user's allocator.
pub trait RawMemory: Send + Sync {
    /// Allocates at least `bytes` (> 0) bytes, or returns `ALLOC_FAILED`.
    fn allocate(&self, bytes: usize, stream: Address) -> Result<Address>;
    /// Releases memory of `bytes` bytes that `allocate` returned.
    fn release(&self, address: Address, bytes: usize, stream: Address);
    /// Returns `INVALID_STATE` where graphs keep the memory and its release cannot be deferred until they are
    /// gone.
    fn check_release(&self, _pending: &Pending) -> Result<()> {
        Ok(())
    }
    /// Makes `stream` wait for the pending work, so that memory released on it may be used again behind that
    /// work; returns an error as [`Self::check_release`] does.
    fn prepare_release(&self, _stream: Address, _pending: &Pending) -> Result<()> {
        Ok(())
    }
    /// Releases the memory once the pending work is done, without blocking.
    fn release_behind(&self, address: Address, bytes: usize, stream: Address, _pending: &Arc<Pending>) {
        self.release(address, bytes, stream);
    }
    /// Releases the memory once the work that is on the stream now is done, without blocking. Returns false,
    /// and does nothing, where that is not possible.
    fn release_after(&self, _address: Address, _stream: Address) -> bool {
        false
    }
}

/// Memory of the C library's heap.
#[derive(Debug)]
pub struct HostMemory;

impl RawMemory for HostMemory {
    fn allocate(&self, bytes: usize, _stream: Address) -> Result<Address> {
        let mut out: *mut c_void = std::ptr::null_mut();
        // An arena asks for whole huge pages. Of other sizes below two pages too much would be on small ones.
        let huge = bytes >= 2 * HUGE_PAGE || bytes == HUGE_PAGE;
        let alignment = if huge { HUGE_PAGE } else { ALIGNMENT };
        // SAFETY: `out` is valid for a write, and the alignment is a power of two
        // and a multiple of the size of a pointer.
        let status = unsafe { libc::posix_memalign(&mut out, alignment, bytes) };
        if status != 0 || out.is_null() {
            return Err(Error::out_of_memory(bytes));
        }
        #[cfg(target_os = "linux")]
        if huge {
            // Advice, which the system may ignore: first touches of 2 MiB instead of 4 KiB take a tenth of
            // the time, and there are fewer TLB misses.
            // SAFETY: whole huge pages inside the allocation.
            unsafe { libc::madvise(out, bytes / HUGE_PAGE * HUGE_PAGE, libc::MADV_HUGEPAGE) };
        }
        Ok(Address::new(out))
    }

    fn release(&self, address: Address, _bytes: usize, _stream: Address) {
        // SAFETY: `address` came from posix_memalign above and is released once.
        unsafe { libc::free(address.as_mut_ptr()) }
    }
}

/// User's allocation function: returns `bytes` bytes of the backend's memory, aligned to
/// [`ALLOCATOR_ALIGNMENT`] bytes, or NULL.
pub type AllocFn =
    unsafe extern "C-unwind" fn(ctx: *mut c_void, bytes: usize, stream: *mut c_void) -> *mut c_void;
/// User's release function.
pub type FreeFn =
    unsafe extern "C-unwind" fn(ctx: *mut c_void, ptr: *mut c_void, bytes: usize, stream: *mut c_void);

/// Callbacks of `tarsiaSetAllocator`.
#[derive(Clone, Copy)]
pub struct UserMemory {
    alloc: AllocFn,
    free: FreeFn,
    ctx: Address,
}

impl UserMemory {
    /// Wraps a user's allocation and release functions.
    ///
    /// # Safety
    /// The functions may be called from any thread, with `ctx`, for as long as any object made with them
    /// lives.
    pub unsafe fn new(alloc: AllocFn, free: FreeFn, ctx: Address) -> Self {
        UserMemory { alloc, free, ctx }
    }
}

impl RawMemory for UserMemory {
    fn allocate(&self, bytes: usize, stream: Address) -> Result<Address> {
        // SAFETY: the caller of `new` promised that the function may be called.
        let out = reentrancy::user_function(|| unsafe {
            (self.alloc)(self.ctx.as_mut_ptr(), bytes, stream.as_mut_ptr())
        });
        refuse_if!(out.is_null(), new(Status::AllocFailed), "the user's allocator gave no {bytes} bytes");
        let address = Address::new(out);
        if !address.is_aligned(ALLOCATOR_ALIGNMENT) {
            self.release(address, bytes, stream);
            return Err(Error::new(
                Status::AllocFailed,
                format!(
                    "the user's allocator gave memory that is not aligned to {ALLOCATOR_ALIGNMENT} bytes"
                ),
            ));
        }
        Ok(address)
    }

    fn release(&self, address: Address, bytes: usize, stream: Address) {
        // SAFETY: the caller of `new` promised that the function may be called;
        // the address came from the user's allocation function.
        reentrancy::user_function(|| unsafe {
            (self.free)(self.ctx.as_mut_ptr(), address.as_mut_ptr(), bytes, stream.as_mut_ptr())
        });
    }

    fn check_release(&self, pending: &Pending) -> Result<()> {
        require!(
            pending.graphs_are_gone_soon(),
            state,
            "graphs that have captured calls with it are alive or still run, and memory of \
             tarsiaSetAllocator's functions cannot be kept for them: destroy them and wait for their last \
             launch first"
        );
        Ok(())
    }

    fn prepare_release(&self, stream: Address, pending: &Pending) -> Result<()> {
        self.check_release(pending)?;
        pending.hold_back(stream)
    }
}

/// Time at which released memory may be used again.
#[derive(Clone, Default)]
enum Release {
    /// Reuse at once.
    #[default]
    Now,
    /// Reuse after work that may use the memory; the memory's stream already waits for that work.
    Behind(Arc<Pending>),
    /// Reuse after work of several owners; the stream is made to wait for that work when the last owner releases
    /// the memory.
    BehindOwners(Arc<Pending>),
    /// No reuse, since graphs keep the memory for an unknown time.
    Never,
}

/// Allocator for one handle or plan, which counts the bytes and may limit them.
pub struct Allocator {
    memory: Arc<dyn RawMemory>,
    stream: Address,
    limit: usize,
    live: AtomicUsize,
    peak: AtomicUsize,
    /// Time at which memory that is released may be used again.
    release: Mutex<Release>,
}

impl fmt::Debug for Allocator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Allocator({} bytes live, limit {})", self.live_bytes(), self.limit)
    }
}

impl Allocator {
    /// Creates an allocator over `memory` that has at most `limit` bytes allocated at any time.
    pub fn new(memory: Arc<dyn RawMemory>, stream: Address, limit: usize) -> Arc<Self> {
        Arc::new(Allocator {
            memory,
            stream,
            limit,
            live: AtomicUsize::new(0),
            peak: AtomicUsize::new(0),
            release: Mutex::default(),
        })
    }

    /// Returns an allocator over the same memory with a count and a limit of its own.
    pub fn scoped(&self, limit: usize) -> Arc<Self> {
        Allocator::new(Arc::clone(&self.memory), self.stream, limit)
    }

    /// Returns the source of its memory.
    pub fn memory(&self) -> Arc<dyn RawMemory> {
        Arc::clone(&self.memory)
    }

    /// Returns the number of bytes allocated now.
    pub fn live_bytes(&self) -> usize {
        self.live.load(Ordering::Relaxed)
    }

    /// Returns the largest number of bytes that were allocated at one time.
    pub fn peak_bytes(&self) -> usize {
        self.peak.load(Ordering::Relaxed)
    }

    /// Returns the number of bytes that the limit leaves.
    pub fn left(&self) -> usize {
        self.limit.saturating_sub(self.live_bytes())
    }

    fn allocate(&self, bytes: usize) -> Result<Address> {
        /// Subtracts the bytes again if the allocation fails or panics.
        struct Claim<'a>(&'a AtomicUsize, usize);
        impl Drop for Claim<'_> {
            fn drop(&mut self) {
                self.0.fetch_sub(self.1, Ordering::Relaxed);
            }
        }
        let live = self.live.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes);
        let claim = Claim(&self.live, bytes);
        refuse_if!(
            live > self.limit,
            new(Status::InsufficientResources),
            "memoryLimit: {live} bytes are needed at this point and the limit is {} bytes",
            self.limit
        );
        let address = self.memory.allocate(bytes, self.stream)?;
        std::mem::forget(claim);
        self.peak.fetch_max(live, Ordering::Relaxed);
        Ok(address)
    }

    /// Delays each later release of memory until the pending work, which may use the memory, is done.
    pub fn release_behind(&self, pending: Pending) -> Result<()> {
        self.memory.prepare_release(self.stream, &pending)?;
        *self.release.lock() = Release::Behind(Arc::new(pending));
        Ok(())
    }

    /// Adds the work of one of several owners, which may use the memory: whichever owner releases it, now or
    /// later, releases it behind that work, too. Where this is impossible, because graphs keep the memory and
    /// it is not the library's, it is never released.
    pub fn release_also_behind(&self, pending: &Pending) {
        let mut release = self.release.lock();
        *release = match &*release {
            Release::Now => Release::BehindOwners(Arc::new(Pending::default().with(pending))),
            Release::Behind(known) | Release::BehindOwners(known) => {
                Release::BehindOwners(Arc::new(known.with(pending)))
            }
            Release::Never => Release::Never,
        };
    }

    /// Returns `INVALID_STATE` where graphs in the pending work keep the memory and its release cannot be
    /// deferred until they are gone.
    pub fn check_release(&self, pending: &Pending) -> Result<()> {
        self.memory.check_release(pending)
    }

    /// Lets no later release give memory back, since graphs keep it for an unknown time.
    pub fn release_never(&self) {
        *self.release.lock() = Release::Never;
    }

    fn release(&self, address: Address, bytes: usize) {
        let release = self.release.lock().clone();
        match release {
            Release::Now => self.memory.release(address, bytes, self.stream),
            Release::Behind(pending) => self.memory.release_behind(address, bytes, self.stream, &pending),
            Release::BehindOwners(pending) => match self.memory.prepare_release(self.stream, &pending) {
                Ok(()) => self.memory.release_behind(address, bytes, self.stream, &pending),
                // All memory that is released later is kept as well.
                Err(_) => self.release_never(),
            },
            Release::Never => {}
        }
        self.live.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// Number of bytes that one parallel task sets to zero: a huge page.
const CLEAR: usize = HUGE_PAGE;

/// Array in the backend's memory. Every array that grows with the input is a buffer; making one can fail, and
/// dropping it releases the memory.
pub struct Buffer<T: Pod> {
    address: Address,
    len: usize,
    allocator: Arc<Allocator>,
    marker: PhantomData<T>,
}

impl<T: Pod> Buffer<T> {
    /// Allocates an array of `len` elements whose contents are not set. Backends whose memory the host cannot
    /// write (a device's) fill it by kernels.
    fn raw(allocator: &Arc<Allocator>, len: usize) -> Result<Self> {
        assert!(std::mem::align_of::<T>() <= USER_ALIGNMENT);
        let bytes = len.checked_mul(std::mem::size_of::<T>()).filter(|&b| b <= isize::MAX as usize);
        let Some(bytes) = bytes else {
            return Err(Error::out_of_memory(usize::MAX));
        };
        let address = if bytes == 0 { Address::NULL } else { allocator.allocate(bytes)? };
        Ok(Buffer { address, len, allocator: Arc::clone(allocator), marker: PhantomData })
    }

    /// Allocates an array in host memory without setting its contents.
    ///
    /// # Safety
    /// No element is read before it has been written.
    pub unsafe fn unset(allocator: &Arc<Allocator>, len: usize) -> Result<Self> {
        Self::raw(allocator, len)
    }

    /// Allocates an array of zeros in host memory.
    pub fn zeroed(allocator: &Arc<Allocator>, len: usize) -> Result<Self> {
        let buffer = Self::raw(allocator, len)?;
        let (address, bytes) = (buffer.address, buffer.bytes());
        let clear = |piece: usize| {
            let first = piece * CLEAR;
            // SAFETY: inside the allocation, and pieces are disjoint.
            unsafe {
                std::ptr::write_bytes(address.offset(first).as_mut_ptr::<u8>(), 0, CLEAR.min(bytes - first));
            }
        };
        if bytes > 2 * CLEAR {
            crate::memory::pool::for_each(bytes.div_ceil(CLEAR), &clear);
        } else {
            (0..bytes.div_ceil(CLEAR)).for_each(clear);
        }
        Ok(buffer)
    }

    /// Allocates a copy of a slice in host memory.
    pub fn from_slice(allocator: &Arc<Allocator>, slice: &[T]) -> Result<Self> {
        let buffer = Self::raw(allocator, slice.len())?;
        if !buffer.address.is_null() {
            // SAFETY: the allocation holds len elements of T and is new, so the
            // two do not overlap.
            unsafe {
                std::ptr::copy_nonoverlapping(slice.as_ptr(), buffer.address.as_mut_ptr::<T>(), slice.len());
            }
        }
        Ok(buffer)
    }

    /// Returns the address of the first element; NULL if there is none.
    pub fn address(&self) -> Address {
        self.address
    }

    /// Returns the number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the size in bytes.
    pub fn bytes(&self) -> usize {
        self.len * std::mem::size_of::<T>()
    }
}

/// Memory of any backend that the library's host code never reads or writes; its contents are not set.
#[derive(Debug)]
pub struct Block(Buffer<u8>);

impl Block {
    /// Allocates at least this many bytes.
    pub fn new(allocator: &Arc<Allocator>, bytes: usize) -> Result<Self> {
        Buffer::raw(allocator, bytes).map(Block)
    }

    /// Returns the address of the first byte; NULL if it has no bytes.
    pub fn address(&self) -> Address {
        self.0.address()
    }

    /// Releases the memory once the work that is on the stream now is done, without blocking. Returns false,
    /// and does nothing, where that is not possible.
    pub fn release_after(&mut self, stream: Address) -> bool {
        let Buffer { address, len, allocator, .. } = &mut self.0;
        if address.is_null() {
            return true;
        }
        if !allocator.memory.release_after(*address, stream) {
            return false;
        }
        allocator.live.fetch_sub(*len, Ordering::Relaxed);
        (*address, *len) = (Address::NULL, 0);
        true
    }

    /// Prepares for [`Self::release_behind`], and returns an error if that cannot be done.
    pub fn prepare_release(&self, pending: &Pending) -> Result<()> {
        self.0.allocator.memory.prepare_release(self.0.allocator.stream, pending)
    }

    /// Releases the memory behind work that may use it. Where that is impossible, because graphs keep the
    /// memory and it is not the library's, it is never released.
    pub fn release_behind(mut self, pending: &Arc<Pending>) {
        let Buffer { address, len, allocator, .. } = &mut self.0;
        if address.is_null() {
            return;
        }
        if allocator.memory.prepare_release(allocator.stream, pending).is_ok() {
            allocator.memory.release_behind(*address, *len, allocator.stream, pending);
        }
        allocator.live.fetch_sub(*len, Ordering::Relaxed);
        (*address, *len) = (Address::NULL, 0);
    }

    /// Returns the size in bytes.
    pub fn bytes(&self) -> usize {
        self.0.len()
    }
}

impl<T: Pod> std::ops::Deref for Buffer<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        if self.address.is_null() {
            return &[];
        }
        // SAFETY: the allocation holds len elements, every constructor that
        // host code can reach wrote all of them, and `&self` keeps them alive.
        unsafe { std::slice::from_raw_parts(self.address.as_ptr(), self.len) }
    }
}

impl<T: Pod> std::ops::DerefMut for Buffer<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        if self.address.is_null() {
            return &mut [];
        }
        // SAFETY: as in `deref`; `&mut self` makes the access exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.address.as_mut_ptr(), self.len) }
    }
}

impl<T: Pod> Drop for Buffer<T> {
    fn drop(&mut self) {
        if !self.address.is_null() {
            self.allocator.release(self.address, self.bytes());
        }
    }
}

impl<T: Pod> fmt::Debug for Buffer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Buffer({} × {} bytes)", self.len, std::mem::size_of::<T>())
    }
}

/// Opens `len` elements of the user's host memory for reading.
///
/// # Safety
/// The address holds `len` initialised elements that nothing writes while the
/// slice lives. NULL and alignment are checked here; `len` 0 gives an empty slice.
#[inline]
pub unsafe fn open<'a, T: Pod>(name: &str, address: Address, len: usize) -> Result<&'a [T]> {
    if len == 0 {
        return Ok(&[]);
    }
    check_open::<T>(name, address, len)?;
    // SAFETY: not NULL, aligned, of addressable size; the rest is the caller's promise.
    Ok(unsafe { std::slice::from_raw_parts(address.as_ptr(), len) })
}

/// Opens `len` elements of the user's host memory for writing.
///
/// # Safety
/// The requirements are those of [`open`], and nothing else reads or writes the elements while the slice lives.
#[inline]
pub unsafe fn open_mut<'a, T: Pod>(name: &str, address: Address, len: usize) -> Result<&'a mut [T]> {
    if len == 0 {
        return Ok(&mut []);
    }
    check_open::<T>(name, address, len)?;
    // SAFETY: not NULL, aligned, of addressable size; the rest is the caller's promise.
    Ok(unsafe { std::slice::from_raw_parts_mut(address.as_mut_ptr(), len) })
}

#[inline]
fn check_open<T>(name: &str, address: Address, len: usize) -> Result<()> {
    refuse_if!(address.is_null(), invalid(name), "the pointer is NULL");
    refuse_if!(
        !address.is_aligned(std::mem::align_of::<T>()),
        invalid(name),
        "the pointer is not aligned to {} bytes",
        std::mem::align_of::<T>()
    );
    match len.checked_mul(std::mem::size_of::<T>()) {
        Some(bytes) if bytes <= isize::MAX as usize => Ok(()),
        _ => Err(Error::invalid(name, format!("{len} elements are more than memory can address"))),
    }
}

/// Returns whether alpha or beta is 0.
///
/// # Safety
/// `address` is NULL or holds one value of the compute type in host memory; it need not be aligned.
pub unsafe fn is_zero(name: &str, compute: ComputeType, address: Address) -> Result<bool> {
    // SAFETY: the caller's promise.
    unsafe {
        Ok(match compute.scalar() {
            DataType::R64F => read_scalar::<f64>(name, address)? == 0.0,
            DataType::C32F => read_scalar::<[f32; 2]>(name, address)? == [0.0; 2],
            DataType::C64F => read_scalar::<[f64; 2]>(name, address)? == [0.0; 2],
            _ => read_scalar::<f32>(name, address)? == 0.0,
        })
    }
}

/// Returns the value of alpha or beta.
///
/// # Safety
/// `address` is NULL or holds one T in host memory; it need not be aligned.
pub unsafe fn read_scalar<T: Pod>(name: &str, address: Address) -> Result<T> {
    refuse_if!(address.is_null(), invalid(name), "the pointer is NULL");
    // SAFETY: the caller's promise.
    Ok(unsafe { std::ptr::read_unaligned(address.as_ptr()) })
}

//! Device memory: the pool, arrays, and copies.
//!
//! Memory is allocated on a stream of the library's own, on which nothing else runs, so an allocation is
//! ready for every stream when it returns. The price is a rule: **memory is released only when no work uses
//! it any more**. [`DeviceBuffer`] keeps that rule for arrays of an analysis: it releases them in the order
//! of the stream that uses them, or waits for that stream where the memory is from the user's allocator.
//! Plans and handles release memory that executions use once those are done ([`Pending`]).
//!
//! An allocation or a release costs some microseconds, and every wait for a number from the device ten, which
//! is most of the time that the analysis of a small matrix takes. [`Readback`] brings numbers of several
//! kernels to the host in one wait.

mod cache;
mod numbers;
mod readback;
#[cfg(test)]
mod tests;

pub use numbers::Numbers;
pub use readback::{prepare, Readback};

use std::marker::PhantomData;
use std::sync::Arc;

use bytemuck::Pod;
use once_cell::sync::OnceCell;
use parking_lot::Mutex;

use self::cache::Cache;
use super::device::{Device, Relaxed};
use super::driver::{self, check, device_ptr, raw, Copy2d, MemPoolProps, Raw};
use super::launch::{self, Kernel};
use crate::error::{Error, Result, Status};
use crate::matrix::Lines;
use crate::memory::in_flight::Pending;
use crate::memory::{Block, Context, RawMemory};
use crate::types::Address;

/// The pool of a device keeps one part in this many of the device's memory for the next analysis instead of
/// giving it back to the device: fresh memory has to be mapped (an H100 takes 1.4 to 1.8 µs per MiB, and 160
/// µs at least), but other libraries in the process need memory, too. Memory in use counts towards this
/// share, and every wait returns what exceeds it. With a large matrix in the pool, too small a share would
/// therefore mean a mapping for each array of an analysis.
const KEPT_SHARE: usize = 32;
/// Least number of bytes that the pool keeps.
const KEPT_LEAST: usize = 256 << 20;

/// A device's stream-ordered memory pool.
pub struct Pool {
    pool: Address,
    stream: Address,
    /// Released memory that work in flight and graphs may still use. The list is searched for finished work
    /// whenever memory is allocated, or released behind work.
    kept: Mutex<Vec<(Arc<Pending>, Vec<Piece>)>>,
    /// Small pieces of released memory that no work uses.
    cache: Mutex<Cache>,
    /// Bytes of memory of the device.
    total: usize,
    /// Free pages for [`Readback`]s.
    pages: Mutex<Vec<readback::Page>>,
    /// Kernel that brings the words of a page to the host.
    read_back: OnceCell<Kernel>,
}

/// Memory of a pool and its size in bytes, as it was asked for.
type Piece = (Address, usize);

impl Pool {
    /// Makes a pool for the device whose context is current.
    pub fn new(ordinal: i32) -> Result<Self> {
        let props = MemPoolProps {
            // CU_MEM_ALLOCATION_TYPE_PINNED
            alloc_type: 1,
            handle_types: 0,
            // CU_MEM_LOCATION_TYPE_DEVICE
            location_type: 1,
            location_id: ordinal,
            win32_security_attributes: std::ptr::null_mut(),
            max_size: 0,
            usage: 0,
            reserved: [0; 54],
        };
        let (mut pool, mut stream): (Raw, Raw) = (std::ptr::null_mut(), std::ptr::null_mut());
        let (_, total) = free_bytes()?;
        let mut keep = (total / KEPT_SHARE).max(KEPT_LEAST) as u64;
        // CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, CU_STREAM_NON_BLOCKING
        const RELEASE_THRESHOLD: i32 = 4;
        const NON_BLOCKING: u32 = 1;
        // SAFETY: a context is current; every pointer is valid for the call.
        unsafe {
            check(driver::cuMemPoolCreate(&mut pool, &props), "making a memory pool")?;
            let code = driver::cuMemPoolSetAttribute(pool, RELEASE_THRESHOLD, (&raw mut keep).cast());
            check(code, "the memory pool's threshold")?;
            check(driver::cuStreamCreate(&mut stream, NON_BLOCKING), "making a stream")?;
        }
        let pool = Pool {
            pool: Address::new(pool),
            stream: Address::new(stream),
            kept: Mutex::default(),
            cache: Mutex::new(Cache::of_environment()),
            total,
            pages: Mutex::default(),
            read_back: OnceCell::new(),
        };
        pool.let_allocations_wait(false)?;
        Ok(pool)
    }

    /// Sets whether an allocation may get memory that was released behind pending work of another stream. The
    /// driver makes such an allocation wait for that work, and [`Pool::allocate`] waits with it: a long
    /// kernel of one stream would hold up an analysis on another. So this is allowed only where no other
    /// memory is left.
    fn let_allocations_wait(&self, yes: bool) -> Result<()> {
        const REUSE_ALLOW_INTERNAL_DEPENDENCIES: i32 = 3;
        let mut value = i32::from(yes);
        // SAFETY: the pool is live; this attribute is an int.
        let code = unsafe {
            driver::cuMemPoolSetAttribute(
                raw(self.pool),
                REUSE_ALLOW_INTERNAL_DEPENDENCIES,
                (&raw mut value).cast(),
            )
        };
        check(code, "the memory pool's reuse of memory")
    }

    /// Bytes of memory of the device.
    pub fn total(&self) -> usize {
        self.total
    }

    /// Stream on which memory is allocated and released.
    pub fn stream(&self) -> Address {
        self.stream
    }

    /// Returns the kernel of [`Readback::fetch`], which `load` loads once.
    fn read_back(&self, load: impl FnOnce() -> Result<Kernel>) -> Result<Kernel> {
        self.read_back.get_or_try_init(load).copied()
    }

    /// Allocates memory, or takes it from the cache.
    fn allocate(&self, bytes: usize) -> Result<Address> {
        if let Some(address) = self.cache.lock().take(bytes) {
            return Ok(address);
        }
        self.allocate_of_driver(Cache::capacity(bytes))
    }

    fn allocate_of_driver(&self, bytes: usize) -> Result<Address> {
        // Such a request never reaches the driver (R580): one beyond the device's memory was seen to end in
        // faults of other threads' kernels.
        if bytes > self.total {
            return Err(Error::new(
                Status::AllocFailed,
                format!("could not allocate {bytes} bytes of device memory: the device has {}", self.total),
            ));
        }
        let mut out = 0;
        // SAFETY: pool and stream are live; `out` is valid for a write.
        unsafe {
            let code = driver::cuMemAllocFromPoolAsync(&mut out, bytes, raw(self.pool), raw(self.stream));
            if code == 2 {
                return Err(Error::new(
                    Status::AllocFailed,
                    format!("could not allocate {bytes} bytes of device memory{}", free_text()),
                ));
            }
            check(code, "allocating device memory")?;
            check(driver::cuStreamSynchronize(raw(self.stream)), "allocating device memory")?;
        }
        Ok(Address::new(out as usize as *const u8))
    }

    /// Releases memory that no work uses, or keeps it in the cache.
    fn release(&self, (address, bytes): Piece) {
        if !self.cache.lock().keep((address, bytes)) {
            self.release_to_driver(address);
        }
    }

    /// Releases all memory of the cache.
    fn empty_cache(&self) {
        let pieces = self.cache.lock().drain();
        pieces.into_iter().for_each(|address| self.release_to_driver(address));
    }

    fn release_to_driver(&self, address: Address) {
        // SAFETY: the address belongs to this pool, and nothing uses it any more.
        unsafe { driver::cuMemFreeAsync(device_ptr(address), raw(self.stream)) };
    }

    /// Releases memory when the work that may use it is done, on whatever streams and graphs that is.
    fn release_behind(&self, piece: Piece, pending: &Arc<Pending>) {
        if pending.is_done() {
            return self.release(piece);
        }
        let mut kept = self.kept.lock();
        match kept.last_mut() {
            Some((last, pieces)) if Arc::ptr_eq(last, pending) => pieces.push(piece),
            _ => kept.push((Arc::clone(pending), vec![piece])),
        }
    }

    /// Releases the memory in `kept` that no work uses any more.
    fn collect(&self) {
        let done = {
            let mut kept = self.kept.lock();
            if kept.is_empty() {
                return;
            }
            let is_done = |(pending, _): &(Arc<Pending>, Vec<Piece>)| pending.is_done();
            let (done, used) = std::mem::take(&mut *kept).into_iter().partition(is_done);
            *kept = used;
            done
        };
        let done: Vec<(Arc<Pending>, Vec<Piece>)> = done;
        done.into_iter().flat_map(|(_, pieces)| pieces).for_each(|piece| self.release(piece));
    }

    /// Allocates where memory is short: waits for all memory that was released behind pending work.
    fn allocate_and_wait(&self, bytes: usize) -> Result<Address> {
        self.wait_for_releases()?;
        self.empty_cache();
        synchronize(self.stream)?;
        self.let_allocations_wait(true)?;
        let made = self.allocate_of_driver(Cache::capacity(bytes));
        if let Err(error) = self.let_allocations_wait(false) {
            made.into_iter().for_each(|address| self.release_to_driver(address));
            return Err(error);
        }
        made
    }

    /// Waits for the pending work of all memory in `kept`, and releases that memory.
    fn wait_for_releases(&self) -> Result<()> {
        let pending: Vec<_> = self.kept.lock().iter().map(|(pending, _)| Arc::clone(pending)).collect();
        pending.iter().try_for_each(|pending| pending.wait())?;
        self.collect();
        Ok(())
    }

    /// Releases memory behind the work of another stream: the driver reuses it when that work is done.
    fn release_after(&self, address: Address, stream: Address) -> bool {
        // SAFETY: the address belongs to this pool, and only work that is on the stream already uses it.
        unsafe { driver::cuMemFreeAsync(device_ptr(address), raw(stream)) == 0 }
    }
}

fn free_text() -> String {
    match free_bytes() {
        Ok((free, total)) => format!(" ({free} of {total} bytes are free)"),
        Err(_) => String::new(),
    }
}

/// Returns the free and the total bytes of the current context's device.
pub fn free_bytes() -> Result<(usize, usize)> {
    let (mut free, mut total) = (0, 0);
    // SAFETY: both are valid for writes.
    check(unsafe { driver::cuMemGetInfo_v2(&mut free, &mut total) }, "asking for free memory")?;
    Ok((free, total))
}

/// Returns the bytes that the memory limit and the device leave. Memory that the pool keeps for the next
/// analysis comes on top.
pub fn room(cx: &Context) -> Result<usize> {
    Ok(cx.allocator.left().min(free_bytes()?.0))
}

/// Turns an error for lack of memory into `None`.
pub fn optional<T>(made: Result<T>) -> Result<Option<T>> {
    match made {
        Err(error) if error.lacks_memory() => Ok(None),
        made => made.map(Some),
    }
}

/// Releases memory of a device that was released behind work, if that work is done by now. Returns whether none is
/// left. Never blocks.
pub fn release_finished(device: &Device) -> bool {
    let Some(pool) = device.existing_pool().filter(|pool| !pool.kept.lock().is_empty()) else { return true };
    // If the context is gone, so is its memory.
    let Ok(_entered) = device.enter() else { return true };
    let _relaxed = Relaxed::enter();
    pool.collect();
    let is_empty = pool.kept.lock().is_empty();
    is_empty
}

/// Device memory as [`crate::memory::Allocator`] takes it.
pub struct CudaMemory(pub Arc<Device>);

impl RawMemory for CudaMemory {
    fn allocate(&self, bytes: usize, stream: Address) -> Result<Address> {
        let _entered = self.0.enter()?;
        let _relaxed = Relaxed::enter();
        let pool = self.0.pool()?;
        pool.collect();
        match pool.allocate(bytes) {
            // Memory that was released behind work of the stream, or that the cache has, may be missing.
            Err(error)
                if error.status == Status::AllocFailed
                    && bytes <= pool.total
                    && matches!(is_capturing(stream), Ok(false))
                    && synchronize(stream).is_ok() =>
            {
                pool.allocate_and_wait(bytes)
            }
            done => done,
        }
    }

    fn release(&self, address: Address, bytes: usize, _stream: Address) {
        // If the context is gone, so is its memory.
        let (Ok(_entered), Ok(pool)) = (self.0.enter(), self.0.pool()) else {
            return;
        };
        let _relaxed = Relaxed::enter();
        pool.release((address, bytes));
    }

    fn release_behind(&self, address: Address, bytes: usize, _stream: Address, pending: &Arc<Pending>) {
        let (Ok(_entered), Ok(pool)) = (self.0.enter(), self.0.pool()) else {
            return;
        };
        let _relaxed = Relaxed::enter();
        pool.collect();
        pool.release_behind((address, bytes), pending);
    }

    fn release_after(&self, address: Address, stream: Address) -> bool {
        let (Ok(_entered), Ok(pool)) = (self.0.enter(), self.0.pool()) else {
            return false;
        };
        let _relaxed = Relaxed::enter();
        pool.release_after(address, stream)
    }
}

/// Array in device memory, with uninitialized contents at first. Work of one stream fills it during analysis;
/// [`Fill::mark_filled`] records that this work is done. A buffer that is dropped before releases its memory
/// behind that work, or waits for it where the memory is from the user's allocator.
#[derive(Debug)]
pub struct DeviceBuffer<T: Pod> {
    block: Block,
    len: usize,
    pending: Option<Address>,
    marker: PhantomData<T>,
}

impl<T: Pod> DeviceBuffer<T> {
    /// Allocates memory for `len` elements from the call's allocator. The context must be current until the
    /// buffer is marked as filled or dropped.
    pub fn new(cx: &Context, len: usize) -> Result<Self> {
        let bytes = len
            .checked_mul(size_of::<T>())
            .filter(|&bytes| bytes <= isize::MAX as usize)
            .ok_or_else(|| Error::out_of_memory(usize::MAX))?;
        let block = Block::new(&cx.allocator, bytes)?;
        Ok(DeviceBuffer { block, len, pending: Some(cx.stream), marker: PhantomData })
    }

    /// Allocates an array and enqueues filling it with zero bytes.
    pub fn zeroed(cx: &Context, len: usize) -> Result<Self> {
        let buffer = Self::new(cx, len)?;
        zero(buffer.address(), buffer.bytes(), cx.stream)?;
        Ok(buffer)
    }

    /// Copies a slice of host memory to a new array. Blocks.
    pub fn from_slice(cx: &Context, slice: &[T]) -> Result<Self> {
        let buffer = Self::new(cx, slice.len())?;
        upload(buffer.address(), slice, cx.stream)?;
        Ok(buffer)
    }

    /// Marks the buffer as filled if its stream has no work left, so that the library keeps its memory for the next
    /// analysis when it is dropped. Never blocks. Only for buffers of an analysis in progress, whose stream exists.
    pub fn mark_filled_if_idle(&mut self) {
        let _relaxed = Relaxed::enter();
        // SAFETY: the stream is the caller's or NULL.
        let is_idle = |stream: &mut Address| unsafe { driver::cuStreamQuery(raw(*stream)) } == 0;
        _ = self.pending.take_if(is_idle);
    }

    /// Address of the first element; NULL if there is none.
    pub fn address(&self) -> Address {
        self.block.address()
    }

    /// Address of element `at`.
    pub fn at(&self, at: usize) -> Address {
        assert!(at <= self.len);
        self.address().offset(at * size_of::<T>())
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Size in bytes.
    pub fn bytes(&self) -> usize {
        self.block.bytes()
    }

    /// Copies `count` elements from element `at` to the host. Blocks.
    pub fn read(&self, at: usize, count: usize) -> Result<Vec<T>> {
        assert!(at + count <= self.len);
        download(self.at(at), count, self.pending.unwrap_or(Address::NULL))
    }
}

/// Memory that work of one stream fills during analysis.
pub trait Fill {
    /// Records that no such work is pending any more: the stream has been waited for since it was enqueued.
    fn mark_filled(&mut self);
}

impl<T: Pod> Fill for DeviceBuffer<T> {
    fn mark_filled(&mut self) {
        self.pending = None;
    }
}

impl<F: Fill> Fill for Option<F> {
    fn mark_filled(&mut self) {
        self.iter_mut().for_each(Fill::mark_filled);
    }
}

impl<F: Fill, const N: usize> Fill for [F; N] {
    fn mark_filled(&mut self) {
        self.iter_mut().for_each(Fill::mark_filled);
    }
}

/// `filled_members!(Type { member, … })` implements [`Fill`] for a structure whose memory is that of these
/// members; `where T: Trait,` in front declares a parameter of the type.
macro_rules! filled_members {
    ($(where $parameter:ident: $bound:ident,)? $ty:ty { $($member:ident),* $(,)? }) => {
        impl$(<$parameter: $bound>)? $crate::backend::cuda::memory::Fill for $ty {
            fn mark_filled(&mut self) {
                $($crate::backend::cuda::memory::Fill::mark_filled(&mut self.$member);)*
            }
        }
    };
}
pub(super) use filled_members;

/// Waits for the stream that has filled `memory`, so that other streams may use it.
pub fn filled<F: Fill>(cx: &Context, memory: F) -> Result<F> {
    filled_from(cx, memory, ())
}

/// Does the same, and drops what only the analysis has used. Released behind that work, it would go back to the driver;
/// now that nothing uses it the library keeps it for the next analysis.
pub fn filled_from<F: Fill, T: Fill>(cx: &Context, mut memory: F, mut temporary: T) -> Result<F> {
    synchronize(cx.stream)?;
    memory.mark_filled();
    temporary.mark_filled();
    Ok(memory)
}

impl Fill for () {
    fn mark_filled(&mut self) {}
}

impl<T: Pod> Drop for DeviceBuffer<T> {
    fn drop(&mut self) {
        let Some(stream) = self.pending else { return };
        if !self.block.release_after(stream) {
            // An error here comes from earlier work; the next call reports it.
            let _ = synchronize(stream);
        }
    }
}

/// Waits for all work of a stream.
pub fn synchronize(stream: Address) -> Result<()> {
    // SAFETY: the stream is the caller's or NULL.
    check(unsafe { driver::cuStreamSynchronize(raw(stream)) }, "waiting for the stream")
}

/// Returns whether the stream is being captured.
pub fn is_capturing(stream: Address) -> Result<bool> {
    let mut status = 0;
    // SAFETY: `status` is valid for a write.
    let code = unsafe { driver::cuStreamIsCapturing(raw(stream), &mut status) };
    // CUDA_ERROR_STREAM_CAPTURE_IMPLICIT: the query was for the NULL stream while another stream is captured;
    // using the NULL stream would break that capture.
    if code == 906 {
        return Ok(true);
    }
    check(code, "stream")?;
    Ok(status != 0)
}

/// Enqueues filling memory with zero bytes.
pub fn zero(address: Address, bytes: usize, stream: Address) -> Result<()> {
    fill(address, 0, bytes, stream)
}

/// Enqueues setting all bytes to one value.
pub fn fill(address: Address, byte: u8, bytes: usize, stream: Address) -> Result<()> {
    if bytes == 0 {
        return Ok(());
    }
    // SAFETY: callers pass memory of this size.
    let code = unsafe { driver::cuMemsetD8Async(device_ptr(address), byte, bytes, raw(stream)) };
    launch::taken(code, "filling memory")
}

/// Copies a slice to the device. Blocks.
pub fn upload<T: Pod>(to: Address, from: &[T], stream: Address) -> Result<()> {
    copy(to, Address::new(from.as_ptr()), size_of_val(from), stream)?;
    synchronize(stream)
}

/// Copies elements from the device to a vector. Blocks.
pub fn download<T: Pod>(from: Address, count: usize, stream: Address) -> Result<Vec<T>> {
    let mut out = Vec::new();
    out.try_reserve_exact(count).map_err(|_| Error::out_of_memory(count * size_of::<T>()))?;
    out.resize(count, T::zeroed());
    // `Address` carries provenance, so the copy may write the vector.
    copy(Address::new(out.as_mut_ptr()), from, count * size_of::<T>(), stream)?;
    synchronize(stream)?;
    Ok(out)
}

/// Enqueues a copy between any two addresses, host memory included: unified addressing tells them apart.
pub fn copy(to: Address, from: Address, bytes: usize, stream: Address) -> Result<()> {
    if bytes == 0 {
        return Ok(());
    }
    // SAFETY: callers pass memory of this size; the driver finds out in which memory an address is.
    let code = unsafe { driver::cuMemcpyAsync(device_ptr(to), device_ptr(from), bytes, raw(stream)) };
    launch::taken(code, "copying memory")
}

/// Enqueues a copy of equally spaced lines on the device.
pub fn copy_lines(from: &Lines, to: &Lines, stream: Address) -> Result<()> {
    /// The driver's limit on the distance between two lines.
    const MAX_DISTANCE: usize = i32::MAX as usize;
    let Lines { bytes, count, .. } = *from;
    if bytes == 0 || count == 0 {
        return Ok(());
    }
    if count == 1 || (from.distance, to.distance) == (bytes, bytes) {
        return copy(to.address, from.address, bytes * count, stream);
    }
    if from.distance.max(to.distance) > MAX_DISTANCE {
        return (0..count).try_for_each(|line| {
            let (to, from) =
                (to.address.offset(line * to.distance), from.address.offset(line * from.distance));
            copy(to, from, bytes, stream)
        });
    }
    let copy = Copy2d {
        src_device: device_ptr(from.address),
        src_pitch: from.distance,
        dst_device: device_ptr(to.address),
        dst_pitch: to.distance,
        width: bytes,
        height: count,
        ..Copy2d::UNIFIED
    };
    // SAFETY: callers pass memory of these lines.
    launch::taken(unsafe { driver::cuMemcpy2DAsync_v2(&copy, raw(stream)) }, "copying memory")
}

/// Returns whether kernels of the current context can read an address: false for ordinary host memory, and
/// for memory of a device to which the context has no access.
pub fn is_readable(address: Address) -> bool {
    // CU_POINTER_ATTRIBUTE_DEVICE_POINTER: the driver refuses where there is none for the current context.
    const DEVICE_POINTER: i32 = 3;
    let mut device_pointer: u64 = 0;
    // SAFETY: `device_pointer` is valid for a write of a CUdeviceptr.
    let code = unsafe {
        driver::cuPointerGetAttribute((&raw mut device_pointer).cast(), DEVICE_POINTER, device_ptr(address))
    };
    code == 0 && device_pointer == device_ptr(address)
}

/// Returns whether an address is in device, managed, or pinned host memory; the driver does not know ordinary
/// host memory.
pub fn is_of_driver(address: Address) -> bool {
    // CU_POINTER_ATTRIBUTE_MEMORY_TYPE
    const MEMORY_TYPE: i32 = 2;
    let mut kind: u32 = 0;
    // SAFETY: `kind` is valid for a write of an unsigned int.
    let code =
        unsafe { driver::cuPointerGetAttribute((&raw mut kind).cast(), MEMORY_TYPE, device_ptr(address)) };
    code == 0
}

/// Returns whether the host can read an address, as far as the driver knows: false for device memory.
pub fn is_readable_by_host(address: Address) -> bool {
    // CU_POINTER_ATTRIBUTE_HOST_POINTER: the driver refuses where the host cannot access the memory.
    const HOST_POINTER: i32 = 4;
    let mut host_pointer: u64 = 0;
    // SAFETY: `host_pointer` is valid for a write of a pointer.
    let code = unsafe {
        driver::cuPointerGetAttribute((&raw mut host_pointer).cast(), HOST_POINTER, device_ptr(address))
    };
    code == 0 || !is_of_driver(address)
}

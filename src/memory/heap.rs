//! Global allocator of the library: the system's heap, and behind it a small reserve.
//!
//! Rust ends the process where memory for a `Box`, an `Arc` or a `String` is not available, which a library
//! must not do to its caller. Memory in proportion to the input is requested fallibly, and failure becomes
//! `ALLOC_FAILED`. The remaining requests are small, up to [`LARGEST`] bytes: objects, error texts, jobs of
//! threads. Where the system refuses one of these, it is served from a reserve that is part of the library's
//! data, as C++ runtimes do for exceptions. While more than half of the reserve is in use, calls that make
//! objects are refused ([`check`]), so that the rest serves calls until they have returned.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::{Cell, UnsafeCell};
use std::ptr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crate::error::{refuse_if, Error, Result, Status};

/// Largest request that the reserve serves, in bytes.
pub const LARGEST: usize = 4096;

/// Size classes of the reserve: bytes of a block, number of blocks. A block is aligned to its size.
const CLASSES: [(usize, usize); 4] = [(64, 512), (256, 256), (1024, 96), (LARGEST, 32)];

/// Upper bound of the bytes that the C library and Rust's own library allocate for a thread.
pub const PER_THREAD: usize = 8192;

/// Size of the reserve in bytes.
pub const RESERVE: usize = {
    let (mut class, mut sum) = (0, 0);
    while class < CLASSES.len() {
        sum += CLASSES[class].0 * CLASSES[class].1;
        class += 1;
    }
    sum
};

/// Returns the offset of the first block of a class. Larger blocks come first, so that each class begins at a
/// multiple of its block size.
const fn start_of(class: usize) -> usize {
    let (mut larger, mut sum) = (CLASSES.len() - 1, 0);
    while larger > class {
        sum += CLASSES[larger].0 * CLASSES[larger].1;
        larger -= 1;
    }
    sum
}

/// Number of words of the longest bit mask of used blocks.
const WORDS: usize = 8;

#[repr(C, align(4096))]
struct Blocks(UnsafeCell<[u8; RESERVE]>);

/// Memory for small requests that the system has refused.
struct Reserve {
    /// The blocks; the system maps a page of them when it is first written.
    blocks: Blocks,
    /// Bit mask of the blocks in use, for each class.
    used: [[AtomicU64; WORDS]; CLASSES.len()],
    /// Total bytes of the blocks in use.
    in_use: AtomicUsize,
}

// SAFETY: a block belongs to the thread that has set its bit in `used`, until the bit is cleared.
unsafe impl Sync for Reserve {}

impl Reserve {
    const fn new() -> Self {
        Reserve {
            blocks: Blocks(UnsafeCell::new([0; RESERVE])),
            used: [const { [const { AtomicU64::new(0) }; WORDS] }; CLASSES.len()],
            in_use: AtomicUsize::new(0),
        }
    }

    /// Takes a block for a request; NULL if it is too large, or if no block is left.
    fn take(&self, layout: Layout) -> *mut u8 {
        let need = layout.size().max(layout.align());
        for (class, &(bytes, count)) in CLASSES.iter().enumerate().filter(|(_, class)| class.0 >= need) {
            for (word, bits) in self.used[class].iter().enumerate().take(count.div_ceil(64)) {
                let blocks = (count - word * 64).min(64);
                let mut free = !bits.load(Ordering::Relaxed);
                while free != 0 && (free.trailing_zeros() as usize) < blocks {
                    let bit = free.trailing_zeros() as usize;
                    if bits.fetch_or(1 << bit, Ordering::Acquire) & 1 << bit == 0 {
                        self.in_use.fetch_add(bytes, Ordering::Relaxed);
                        let offset = start_of(class) + (word * 64 + bit) * bytes;
                        // SAFETY: it is within the blocks.
                        return unsafe { self.blocks.0.get().cast::<u8>().add(offset) };
                    }
                    free = !bits.load(Ordering::Relaxed);
                }
            }
        }
        ptr::null_mut()
    }

    /// Returns the class and number of the block at an address; `None` for memory of the system.
    fn block_at(&self, pointer: *mut u8) -> Option<(usize, usize)> {
        let start = self.blocks.0.get().addr();
        let offset = pointer.addr().checked_sub(start).filter(|&offset| offset < RESERVE)?;
        let class = (0..CLASSES.len()).find(|&class| offset >= start_of(class))?;
        Some((class, (offset - start_of(class)) / CLASSES[class].0))
    }

    fn give_back(&self, class: usize, block: usize) {
        self.in_use.fetch_sub(CLASSES[class].0, Ordering::Relaxed);
        self.used[class][block / 64].fetch_and(!(1 << (block % 64)), Ordering::Release);
    }

    /// Returns whether more than half of the bytes are in use.
    fn is_low(&self) -> bool {
        self.in_use.load(Ordering::Relaxed) > RESERVE / 2
    }
}

/// Returns `ALLOC_FAILED` while more than half of the reserve is in use. For calls that make objects that
/// outlive them.
pub fn check() -> Result<()> {
    refuse_if!(
        HEAP.0.is_low(),
        new(Status::AllocFailed),
        "the system has no memory left, not even for small objects"
    );
    Ok(())
}

/// Returns `ALLOC_FAILED` if the system cannot allocate this many bytes. The C library and Rust's own library
/// end the process where they have no memory for their data of a thread, a few hundred bytes; so this is
/// called before they allocate it.
pub fn check_system(bytes: usize) -> Result<()> {
    let layout = Layout::array::<u8>(bytes).map_err(|_| Error::out_of_memory(bytes))?;
    if bytes == 0 {
        return Ok(());
    }
    // SAFETY: the size is not zero, and the memory is freed with the same layout.
    unsafe {
        // Hidden from the compiler, which otherwise removes an allocation that is freed unused.
        let pointer = std::hint::black_box(System.alloc(layout));
        if pointer.is_null() {
            return Err(Error::out_of_memory(bytes));
        }
        System.dealloc(pointer, layout);
    }
    Ok(())
}

thread_local! {
    static READY: Cell<bool> = const { Cell::new(false) };
}

/// Allocates the C library's data for a thread that has thread-local data with destructors; `ALLOC_FAILED`
/// where there is no memory for it. For a thread's first call.
#[inline]
pub fn prepare_thread() -> Result<()> {
    match READY.get() {
        true => Ok(()),
        false => prepare_new_thread(),
    }
}

#[cold]
fn prepare_new_thread() -> Result<()> {
    check_system(PER_THREAD)?;
    // The data of rayon's queues: no other data that every call uses has a destructor.
    crossbeam_epoch::is_pinned();
    READY.set(true);
    Ok(())
}

/// Allocator behind Rust's heap: the system's memory, then the reserve.
struct Heap(Reserve);

#[global_allocator]
static HEAP: Heap = Heap(Reserve::new());

// SAFETY: the system's allocator keeps the contract for its memory, and the address tells whether memory is
// its own; `take` returns blocks that nobody else has, large and aligned enough for the layout.
unsafe impl GlobalAlloc for Heap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise on the layout.
        let pointer = unsafe { System.alloc(layout) };
        if pointer.is_null() {
            return self.0.take(layout);
        }
        pointer
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        let mut pointer = unsafe { System.alloc_zeroed(layout) };
        if pointer.is_null() {
            pointer = self.0.take(layout);
            if !pointer.is_null() {
                // SAFETY: the block has that many bytes.
                unsafe { pointer.write_bytes(0, layout.size()) };
            }
        }
        pointer
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        match self.0.block_at(pointer) {
            Some((class, block)) => self.0.give_back(class, block),
            // SAFETY: it was allocated by the system, with this layout.
            None => unsafe { System.dealloc(pointer, layout) },
        }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let own = self.0.block_at(pointer);
        match own {
            Some((class, _)) if size <= CLASSES[class].0 => return pointer,
            Some(_) => {}
            None => {
                // SAFETY: it was allocated by the system, with this layout; the size is as the caller
                // promises.
                let moved = unsafe { System.realloc(pointer, layout, size) };
                if !moved.is_null() {
                    return moved;
                }
            }
        }
        // SAFETY: the caller's promise: the size is not 0 and does not overflow with this alignment.
        let wanted = unsafe { Layout::from_size_align_unchecked(size, layout.align()) };
        // A block that has become too small may be moved to the system's memory again.
        // SAFETY: the layout is valid.
        let moved = if own.is_some() { unsafe { self.alloc(wanted) } } else { self.0.take(wanted) };
        if !moved.is_null() {
            // SAFETY: both have that many bytes, and they are different memory.
            unsafe {
                ptr::copy_nonoverlapping(pointer, moved, layout.size().min(size));
                self.dealloc(pointer, layout);
            }
        }
        moved
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(size: usize, align: usize) -> Layout {
        Layout::from_size_align(size, align).unwrap()
    }

    #[test]
    fn blocks_are_apart_aligned_and_come_back() {
        static HEAP: Heap = Heap(Reserve::new());
        let sizes = [1, 63, 64, 65, 200, 257, 1000, 1025, 4096];
        let mut taken = Vec::new();
        for round in 0..10 {
            for &size in &sizes {
                let layout = layout(size, 16);
                let pointer = HEAP.0.take(layout);
                assert!(
                    !pointer.is_null() && pointer.addr() % size.next_power_of_two().max(64) == 0,
                    "{size}"
                );
                // SAFETY: the block is ours.
                unsafe { pointer.write_bytes(round, size) };
                taken.push((pointer, layout, round));
            }
        }
        for &(pointer, layout, round) in &taken {
            // SAFETY: it was written above.
            let bytes = unsafe { std::slice::from_raw_parts(pointer, layout.size()) };
            assert!(bytes.iter().all(|&byte| byte == round), "blocks overlap");
            // SAFETY: it is given back once.
            unsafe { HEAP.dealloc(pointer, layout) };
        }
        assert_eq!(HEAP.0.in_use.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn it_serves_until_nothing_is_left_and_no_more() {
        static HEAP: Heap = Heap(Reserve::new());
        let mut taken = Vec::new();
        let mut low = 0;
        loop {
            let pointer = HEAP.0.take(layout(64, 1));
            if pointer.is_null() {
                break;
            }
            taken.push(pointer);
            low += usize::from(HEAP.0.is_low());
        }
        let blocks: usize = CLASSES.iter().map(|class| class.1).sum();
        assert_eq!(taken.len(), blocks);
        // Half of the bytes are in the largest blocks, which are taken last.
        assert!(low > 0 && low < blocks / 2, "{low} of {blocks}");
        for pointer in taken {
            // SAFETY: it is given back once.
            unsafe { HEAP.dealloc(pointer, layout(64, 1)) };
        }
        assert!(!HEAP.0.is_low());
        assert!(
            HEAP.0.take(layout(LARGEST + 1, 1)).is_null() && HEAP.0.take(layout(8, LARGEST * 2)).is_null()
        );
    }

    #[test]
    fn a_block_grows_into_another_and_into_the_systems_memory() {
        static HEAP: Heap = Heap(Reserve::new());
        let start = HEAP.0.take(layout(60, 4));
        // SAFETY: the blocks are ours, and are used with the layouts that they were made with.
        unsafe {
            start.write_bytes(7, 60);
            assert_eq!(HEAP.realloc(start, layout(60, 4), 64), start, "it fits where it is");
            let moved = HEAP.realloc(start, layout(64, 4), 100_000);
            assert!(HEAP.0.block_at(moved).is_none());
            assert!((0..60).all(|n| *moved.add(n) == 7));
            HEAP.dealloc(moved, layout(100_000, 4));
        }
        assert_eq!(HEAP.0.in_use.load(Ordering::Relaxed), 0);
    }
}

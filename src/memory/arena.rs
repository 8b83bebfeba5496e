//! Several arrays in one allocation, so that small arrays share huge pages.
//!
//! A product that streams through arrays on pages of 4 KiB waits for the translation of an address at each
//! page, and the processor's own prefetches end there. Huge pages have 2 MiB, which few arrays of a matrix
//! with a million entries fill by themselves.

use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::sync::Arc;

use bytemuck::Pod;

use super::{Allocator, Buffer, HUGE_PAGE};
use crate::error::{Error, Result};

/// Bytes of a cache line, to multiples of which arrays are aligned.
const LINE: usize = 64;

/// Bytes from which on an arena is extended to whole huge pages. So at most three quarters of a page are never
/// used of the first one, and less than a page of others.
const LEAST_HUGE: usize = HUGE_PAGE / 4;

/// One allocation from which arrays are taken.
#[derive(Debug)]
pub struct Arena {
    memory: Arc<Buffer<u64>>,
    taken: usize,
}

/// Bytes that an array of `len` elements takes in an arena.
pub fn bytes<T>(len: usize) -> usize {
    len.saturating_mul(size_of::<T>()).checked_next_multiple_of(LINE).unwrap_or(usize::MAX)
}

impl Arena {
    /// Allocates zeros for arrays of `bytes` bytes in all, the sum of [`bytes`] of each. Large ones get whole
    /// huge pages where the allocator's limit leaves room for that and for one more.
    pub fn zeroed(allocator: &Arc<Allocator>, bytes: usize) -> Result<Self> {
        let fits = |whole: &usize| whole.saturating_add(HUGE_PAGE) <= allocator.left();
        let whole = bytes.checked_next_multiple_of(HUGE_PAGE).filter(fits);
        let bytes = whole.filter(|_| bytes >= LEAST_HUGE).unwrap_or(bytes);
        if bytes > isize::MAX as usize {
            return Err(Error::out_of_memory(bytes));
        }
        let memory = Buffer::zeroed(allocator, bytes.div_ceil(size_of::<u64>()))?;
        Ok(Arena { memory: Arc::new(memory), taken: 0 })
    }

    /// Takes an array of `len` zeros. Panics if the arena is used up.
    pub fn take<T: Pod>(&mut self, len: usize) -> Part<T> {
        assert!(align_of::<T>() <= LINE && bytes::<T>(len) <= self.memory.bytes() - self.taken);
        let first = match bytes::<T>(len) {
            0 => NonNull::dangling(),
            // The allocation is aligned to more than a line.
            _ => NonNull::new(self.memory.address().offset(self.taken).as_mut_ptr())
                .expect("memory has an address"),
        };
        self.taken += bytes::<T>(len);
        Part { first, len, _memory: Arc::clone(&self.memory) }
    }
}

/// Array in an arena, whose memory is released with the last of its arrays.
#[derive(Debug)]
pub struct Part<T> {
    first: NonNull<T>,
    len: usize,
    _memory: Arc<Buffer<u64>>,
}

// SAFETY: it owns its elements, as a vector does.
unsafe impl<T: Send> Send for Part<T> {}
// SAFETY: it owns its elements, as a vector does.
unsafe impl<T: Sync> Sync for Part<T> {}

impl<T> Deref for Part<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: `take` gives these bytes to this array alone; they were set to zero, which is a value of
        // the type.
        unsafe { std::slice::from_raw_parts(self.first.as_ptr(), self.len) }
    }
}

impl<T> DerefMut for Part<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as in `deref`; `&mut self` makes the access exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.first.as_ptr(), self.len) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::HostMemory;
    use crate::types::Address;

    fn allocator(limit: usize) -> Arc<Allocator> {
        Allocator::new(Arc::new(HostMemory), Address::NULL, limit)
    }

    #[test]
    fn arrays_are_disjoint_and_outlive_the_arena() {
        let allocator = allocator(usize::MAX);
        let sizes = bytes::<u16>(33) + bytes::<f64>(5) + bytes::<u8>(0) + bytes::<u32>(16);
        let mut arena = Arena::zeroed(&allocator, sizes).unwrap();
        let mut a: Part<u16> = arena.take(33);
        let mut b: Part<f64> = arena.take(5);
        let none: Part<u8> = arena.take(0);
        let mut c: Part<u32> = arena.take(16);
        drop(arena);
        assert!(a.iter().all(|&v| v == 0) && b.iter().all(|&v| v == 0.0) && none.is_empty());
        a.fill(1);
        b.fill(2.0);
        c.fill(3);
        assert!(a.iter().all(|&v| v == 1) && b.iter().all(|&v| v == 2.0) && c.iter().all(|&v| v == 3));
        for address in [a.as_ptr() as usize, b.as_ptr() as usize, c.as_ptr() as usize] {
            assert_eq!(address % LINE, 0);
        }
        drop((a, b, none));
        assert_eq!(allocator.live_bytes(), sizes);
        drop(c);
        assert_eq!(allocator.live_bytes(), 0);
    }

    #[test]
    #[should_panic]
    fn more_than_it_has_is_refused() {
        let mut arena = Arena::zeroed(&allocator(usize::MAX), bytes::<u16>(33)).unwrap();
        arena.take::<u16>(97);
    }

    #[test]
    fn large_arenas_have_whole_huge_pages_within_the_limit() {
        for (bytes, limit, expected) in [
            (LEAST_HUGE - 64, usize::MAX, LEAST_HUGE - 64),
            (LEAST_HUGE, usize::MAX, HUGE_PAGE),
            (HUGE_PAGE, usize::MAX, HUGE_PAGE),
            (HUGE_PAGE + 64, usize::MAX, 2 * HUGE_PAGE),
            (LEAST_HUGE, 2 * HUGE_PAGE - 1, LEAST_HUGE),
            (LEAST_HUGE, 2 * HUGE_PAGE, HUGE_PAGE),
        ] {
            let allocator = allocator(limit);
            let arena = Arena::zeroed(&allocator, bytes).unwrap();
            assert_eq!(allocator.live_bytes(), expected);
            drop(arena);
            assert_eq!(allocator.live_bytes(), 0);
        }
        assert!(Arena::zeroed(&allocator(usize::MAX), usize::MAX).is_err());
        assert!(Arena::zeroed(&allocator(100), 128).is_err());
    }
}

//! Memory that the caller of a plan lends it. The plan's arrays are placed there while there is room; others come from
//! the plan's ordinary memory.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;

use super::in_flight::Pending;
use super::{RawMemory, ALIGNMENT};
use crate::error::Result;
use crate::types::Address;

/// A region of the backend's memory that a caller lends, and the memory that serves what does not fit there.
///
/// Released memory of the region is given out again at once, without regard to work that is pending, so all work that
/// uses it must be on one stream, or on streams that wait for each other. The region must live as long as its arrays
/// and that work.
pub struct LentMemory {
    region: Address,
    list: Mutex<FreeList>,
    rest: Arc<dyn RawMemory>,
}

/// Pieces of the region: their lengths by their offsets.
struct FreeList {
    /// Free pieces; adjacent ones are merged.
    free: BTreeMap<usize, usize>,
    used: BTreeMap<usize, usize>,
}

impl LentMemory {
    /// Uses the `bytes` bytes at `region`, shortened at both ends to multiples of [`ALIGNMENT`]; what does not fit
    /// there comes from `rest`.
    pub fn new(region: Address, bytes: usize, rest: Arc<dyn RawMemory>) -> Self {
        // Arrays begin at multiples of the alignment.
        let skipped = region.value().wrapping_neg() % ALIGNMENT;
        let whole = bytes.saturating_sub(skipped) / ALIGNMENT * ALIGNMENT;
        let free = (whole > 0).then_some((0, whole)).into_iter().collect();
        let region = if whole > 0 { region.offset(skipped) } else { region };
        LentMemory { region, list: Mutex::new(FreeList { free, used: BTreeMap::new() }), rest }
    }

    /// Takes the piece at an address back; false if it is not of the region.
    fn take_back(&self, address: Address) -> bool {
        let offset = address.value().wrapping_sub(self.region.value());
        self.list.lock().release(offset)
    }
}

impl FreeList {
    /// Takes a piece from the smallest free one that is large enough.
    fn allocate(&mut self, bytes: usize) -> Option<usize> {
        let bytes = bytes.checked_next_multiple_of(ALIGNMENT)?;
        let fitting = self.free.iter().filter(|&(_, &length)| length >= bytes);
        let (&offset, &length) = fitting.min_by_key(|&(_, &length)| length)?;
        self.free.remove(&offset);
        if length > bytes {
            self.free.insert(offset + bytes, length - bytes);
        }
        self.used.insert(offset, bytes);
        Some(offset)
    }

    /// Joins a piece to the free ones; false if none that is in use has this offset.
    fn release(&mut self, offset: usize) -> bool {
        let Some(mut length) = self.used.remove(&offset) else { return false };
        let mut first = offset;
        if let Some(behind) = self.free.remove(&(offset + length)) {
            length += behind;
        }
        let before = self.free.range(..offset).next_back().map(|(&at, &of)| (at, of));
        if let Some((at, of)) = before.filter(|&(at, of)| at + of == offset) {
            (first, length) = (at, of + length);
        }
        self.free.insert(first, length);
        true
    }
}

impl RawMemory for LentMemory {
    fn allocate(&self, bytes: usize, stream: Address) -> Result<Address> {
        let offset = self.list.lock().allocate(bytes);
        match offset {
            Some(offset) => Ok(self.region.offset(offset)),
            None => self.rest.allocate(bytes, stream),
        }
    }

    fn release(&self, address: Address, bytes: usize, stream: Address) {
        if !self.take_back(address) {
            self.rest.release(address, bytes, stream);
        }
    }

    fn check_release(&self, pending: &Pending) -> Result<()> {
        self.rest.check_release(pending)
    }

    fn prepare_release(&self, stream: Address, pending: &Pending) -> Result<()> {
        self.rest.prepare_release(stream, pending)
    }

    fn release_behind(&self, address: Address, bytes: usize, stream: Address, pending: &Arc<Pending>) {
        if !self.take_back(address) {
            self.rest.release_behind(address, bytes, stream, pending);
        }
    }

    fn release_after(&self, address: Address, stream: Address) -> bool {
        self.take_back(address) || self.rest.release_after(address, stream)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::memory::{Allocator, Buffer, HostMemory};

    /// Memory of the host that counts the bytes which are allocated.
    #[derive(Default)]
    struct Counted(AtomicUsize);

    impl RawMemory for Counted {
        fn allocate(&self, bytes: usize, stream: Address) -> Result<Address> {
            self.0.fetch_add(bytes, Ordering::Relaxed);
            HostMemory.allocate(bytes, stream)
        }

        fn release(&self, address: Address, bytes: usize, stream: Address) {
            self.0.fetch_sub(bytes, Ordering::Relaxed);
            HostMemory.release(address, bytes, stream);
        }
    }

    /// Lends `bytes` bytes that begin `shift` bytes behind an aligned address.
    fn lend(bytes: usize, shift: usize) -> (Buffer<u8>, Arc<Counted>, Arc<Allocator>) {
        let heap = Allocator::new(Arc::new(HostMemory), Address::NULL, usize::MAX);
        let region = Buffer::zeroed(&heap, bytes + shift).unwrap();
        let rest = Arc::new(Counted::default());
        let lent = LentMemory::new(region.address().offset(shift), bytes, Arc::clone(&rest) as _);
        (region, rest, Allocator::new(Arc::new(lent), Address::NULL, usize::MAX))
    }

    fn array(allocator: &Arc<Allocator>, bytes: usize) -> Buffer<u8> {
        Buffer::zeroed(allocator, bytes).unwrap()
    }

    #[test]
    fn arrays_are_taken_from_the_region_until_it_is_full() {
        let (region, rest, allocator) = lend(4 * ALIGNMENT, 0);
        let of_rest = || rest.0.load(Ordering::Relaxed);
        let (a, b) = (array(&allocator, 1), array(&allocator, ALIGNMENT + 1));
        assert_eq!(a.address(), region.address());
        assert_eq!(b.address(), region.address().offset(ALIGNMENT));
        let c = array(&allocator, ALIGNMENT + 1);
        assert_eq!(of_rest(), ALIGNMENT + 1);
        let d = array(&allocator, ALIGNMENT);
        assert_eq!(d.address(), region.address().offset(3 * ALIGNMENT));
        drop((b, c));
        assert_eq!(of_rest(), 0);
        let e = array(&allocator, 2 * ALIGNMENT);
        assert_eq!(e.address(), region.address().offset(ALIGNMENT));
        drop((a, d, e));
        // The free pieces have become one again.
        assert_eq!(array(&allocator, 4 * ALIGNMENT).address(), region.address());
        assert_eq!((of_rest(), allocator.live_bytes()), (0, 0));
    }

    #[test]
    fn pieces_join_in_whatever_sequence_they_are_released() {
        for sequence in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
            let (region, rest, allocator) = lend(3 * ALIGNMENT, 0);
            let mut arrays = [(); 3].map(|()| Some(array(&allocator, ALIGNMENT)));
            sequence.into_iter().for_each(|at| drop(arrays[at].take()));
            assert_eq!(array(&allocator, 3 * ALIGNMENT).address(), region.address(), "{sequence:?}");
            assert_eq!(rest.0.load(Ordering::Relaxed), 0);
        }
    }

    #[test]
    fn arrays_are_aligned_and_inside_the_region() {
        let (region, rest, allocator) = lend(3 * ALIGNMENT - 9, 8);
        let a = array(&allocator, 1);
        assert_eq!(a.address(), region.address().offset(ALIGNMENT));
        // The region touches three pieces of this size, of which only the middle one is whole.
        let b = array(&allocator, 1);
        assert_eq!(rest.0.load(Ordering::Relaxed), 1);
        drop((a, b));
        for bytes in [0, 1, ALIGNMENT - 9] {
            let (_region, rest, allocator) = lend(bytes, 8);
            let a = array(&allocator, 1);
            assert_eq!(rest.0.load(Ordering::Relaxed), 1, "{bytes} bytes");
            drop(a);
        }
    }
}

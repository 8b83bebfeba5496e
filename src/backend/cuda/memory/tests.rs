//! Arenas over a heap that counts; pages and the order of frees on a device,
//! skipped without one.

use parking_lot::Mutex;

use super::*;
use crate::backend::cuda::convert::testing::{context, context_of_device};
use crate::backend::cuda::timing::Stream;
use crate::backend::memory::HostMemory;
use crate::backend::Allocator;

/// The host's heap, with what is taken of it.
#[derive(Default)]
struct Heap {
    live: Mutex<Vec<Address>>,
    calls: Mutex<Vec<usize>>,
    /// Allocations of more than this fail.
    most: usize,
}

impl RawMemory for Heap {
    fn allocate(&self, bytes: usize, stream: Address) -> Result<Address> {
        self.calls.lock().push(bytes);
        if bytes > self.most {
            return Err(Error::out_of_memory(bytes));
        }
        let address = HostMemory.allocate(bytes, stream)?;
        self.live.lock().push(address);
        Ok(address)
    }

    fn release(&self, address: Address, stream: Address) {
        let mut live = self.live.lock();
        let at = live.iter().position(|&found| found == address).expect("it was allocated");
        live.swap_remove(at);
        HostMemory.release(address, stream);
    }
}

fn heap(most: usize, limit: usize) -> (Arc<Heap>, Context) {
    let heap = Arc::new(Heap { most, ..Heap::default() });
    let memory: Arc<dyn RawMemory> = Arc::clone(&heap) as Arc<dyn RawMemory>;
    (heap, context(Allocator::new(memory, Address::NULL, limit)))
}

#[test]
fn arrays_of_an_arena_share_one_allocation() {
    let (heap, cx) = heap(usize::MAX, usize::MAX);
    let room = Arena::room::<u64>(100) + Arena::room::<u8>(1) + Arena::room::<u32>(3);
    assert_eq!(room, 1024 + 256 + 256);
    let arena = Arena::new(&cx, room).unwrap();
    let a = DeviceBuffer::<u64>::new(arena.context(), 100).unwrap();
    let none = DeviceBuffer::<u64>::new(arena.context(), 0).unwrap();
    let b = DeviceBuffer::<u8>::new(arena.context(), 1).unwrap();
    let c = DeviceBuffer::<u32>::new(arena.context(), 3).unwrap();
    assert_eq!(*heap.calls.lock(), [room]);
    assert_eq!(
        (b.address().value() - a.address().value(), c.address().value() - b.address().value()),
        (1024, 256)
    );
    assert!(none.address().is_null());
    assert_eq!(cx.allocator.live_bytes(), room);

    // Dropped arrays give nothing back, and the last one everything: one
    // without elements would keep it as well.
    drop((a, b, none));
    assert_eq!(cx.allocator.live_bytes(), room);
    arena.seal();
    drop(arena);
    assert_eq!(cx.allocator.live_bytes(), room);
    drop(c);
    assert_eq!((cx.allocator.live_bytes(), cx.allocator.peak_bytes()), (0, room));
    assert!(heap.live.lock().is_empty());
}

#[test]
fn an_arena_grows_by_what_its_guess_was() {
    let (heap, cx) = heap(usize::MAX, usize::MAX);
    let arena = Arena::new(&cx, 1024).unwrap();
    let arrays: Vec<_> =
        [900, 200, 2000, 5000, 100].map(|len| DeviceBuffer::<u8>::new(arena.context(), len).unwrap()).into();
    // 900 fills the first; 200 and what is left of its follower are too small for 2000.
    assert_eq!(*heap.calls.lock(), [1024, 1024, 2048, 5120, 5120]);
    let mut ranges: Vec<_> =
        arrays.iter().map(|a| (a.address().value(), a.address().value() + a.len())).collect();
    ranges.sort_unstable();
    assert!(ranges.windows(2).all(|w| w[0].1 <= w[1].0));
    drop((arena, arrays));
    assert!(heap.live.lock().is_empty());

    // Nothing is taken before it is needed.
    let arena = Arena::new(&cx, 0).unwrap();
    assert_eq!(heap.calls.lock().len(), 5);
    let array = DeviceBuffer::<u8>::new(arena.context(), 1).unwrap();
    assert_eq!(heap.calls.lock()[5..], [256]);
    drop((arena, array));
    assert_eq!(cx.allocator.live_bytes(), 0);

    let arena = Arena::new(&cx, 8 << 20).unwrap();
    let large = DeviceBuffer::<u8>::new(arena.context(), 8 << 20).unwrap();
    let small = DeviceBuffer::<u8>::new(arena.context(), 1).unwrap();
    assert_eq!(cx.allocator.live_bytes(), 9 << 20);
    drop((arena, large, small));
    assert_eq!(cx.allocator.live_bytes(), 0);
}

#[test]
fn an_arena_that_cannot_grow_says_so_and_keeps_what_it_has() {
    let (heap_of_4096, cx) = heap(4096, usize::MAX);
    assert_eq!(Arena::new(&cx, 5000).err().unwrap().status, Status::AllocFailed);
    let arena = Arena::new(&cx, 1024).unwrap();
    let too_large = DeviceBuffer::<u8>::new(arena.context(), 5000);
    assert_eq!(too_large.unwrap_err().status, Status::AllocFailed);
    let overflow = DeviceBuffer::<u64>::new(arena.context(), usize::MAX / 16);
    assert_eq!(overflow.unwrap_err().status, Status::AllocFailed);
    let array = DeviceBuffer::<u8>::new(arena.context(), 1000).unwrap();
    assert_eq!(cx.allocator.live_bytes(), 1024);
    drop((arena, array));
    assert!(heap_of_4096.live.lock().is_empty());

    let (_, cx) = heap(usize::MAX, 2000);
    let arena = Arena::new(&cx, 1024).unwrap();
    let array = DeviceBuffer::<u8>::new(arena.context(), 1025);
    assert_eq!(array.unwrap_err().status, Status::InsufficientResources);
    drop(arena);
    assert_eq!(cx.allocator.live_bytes(), 0);
}

#[test]
fn a_page_is_zero_whoever_had_it() {
    let Some((device, cx)) = context_of_device() else { return };
    let _entered = device.enter().unwrap();
    let numbers = [3_u64, 1, 4, 1, 5];
    for round in 0..3 {
        let mut words = Readback::take(&cx, &device).unwrap();
        words.fetch(&cx, 512).unwrap();
        assert_eq!(*words.wait(&cx).unwrap(), [0; 512], "{round}");
        upload(words.at(7), &numbers, cx.stream).unwrap();
        // One that is in use is not given out.
        let other = Readback::take(&cx, &device).unwrap();
        assert_ne!(other.at(0), words.at(0));
        assert_ne!(other.host(0), words.host(0));
        // Plain stores of the device into the host's memory.
        copy(words.host(500), words.at(7), 16, cx.stream).unwrap();
        words.fetch(&cx, 12).unwrap();
        let found = words.wait(&cx).unwrap();
        assert_eq!(
            (&found[..7], &found[7..12], &found[500..502]),
            (&[0; 7][..], &numbers[..], &numbers[..2])
        );
        // Dropped with work that nobody has waited for.
        upload(words.at(100), &numbers, cx.stream).unwrap();
        words.fetch(&cx, 512).unwrap();
    }
}

#[test]
fn memory_is_given_out_again_when_work_on_it_is_done() {
    const BYTES: usize = 96 << 20;
    let Some((device, cx)) = context_of_device() else { return };
    let _entered = device.enter().unwrap();
    let streams = [Stream::new(device.ordinal()).unwrap(), Stream::new(device.ordinal()).unwrap()];
    let [mine, other] = [0, 1].map(|i| Context { stream: streams[i].address(), ..cx.clone() });
    let pattern: Vec<u8> = (0..1 << 16).map(|i| (i % 251 + 1) as u8).collect();
    let mut reused = 0;
    for _ in 0..20 {
        let array = DeviceBuffer::<u8>::new(&mine, BYTES).unwrap();
        let first = array.address();
        for _ in 0..20 {
            zero(array.address(), BYTES, mine.stream).unwrap();
        }
        // The writes are under way for some hundred microseconds.
        drop(array);
        let array = DeviceBuffer::<u8>::new(&other, BYTES).unwrap();
        reused += usize::from(array.address() == first);
        upload(array.at(BYTES - pattern.len()), &pattern, other.stream).unwrap();
        synchronize(mine.stream).unwrap();
        assert!(array.read(BYTES - pattern.len(), pattern.len()).unwrap() == pattern);
    }
    println!("{reused} of 20 allocations got the memory that was given back");
    assert_eq!(cx.allocator.live_bytes(), 0);
}

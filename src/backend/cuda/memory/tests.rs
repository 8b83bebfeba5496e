//! Tests of readback pages and of the order of releases on a device. Skipped without a device.

use super::*;
use crate::backend::cuda::convert::testing::context_of_device;
use crate::backend::cuda::testing::Gate;
use crate::backend::cuda::timing::Stream;
use crate::memory::Context;

#[test]
fn a_page_is_zero_whoever_had_it() {
    let Some((device, cx)) = context_of_device() else { return };
    let cx = &device.call(&cx).unwrap();
    let numbers = [3_u64, 1, 4, 1, 5];
    for round in 0..3 {
        let mut words = Readback::take(cx).unwrap();
        words.fetch(cx, 512).unwrap();
        assert_eq!(*words.wait(cx).unwrap(), [0; 512], "{round}");
        upload(words.at(7), &numbers, cx.stream).unwrap();
        // A page in use is not given to another reader.
        let other = Readback::take(cx).unwrap();
        assert_ne!(other.at(0), words.at(0));
        assert_ne!(other.host(0), words.host(0));
        // The copy stands for plain stores of a kernel to the host's memory.
        copy(words.host(500), words.at(7), 16, cx.stream).unwrap();
        words.fetch(cx, 12).unwrap();
        let found = words.wait(cx).unwrap();
        assert_eq!(
            (&found[..7], &found[7..12], &found[500..502]),
            (&[0; 7][..], &numbers[..], &numbers[..2])
        );
        // Dropped with pending work for which nothing has waited.
        upload(words.at(100), &numbers, cx.stream).unwrap();
        words.fetch(cx, 512).unwrap();
    }
}

#[test]
fn a_page_of_zeros_is_there_before_the_first_analysis() {
    let Some((device, _)) = context_of_device() else { return };
    let _entered = device.enter().unwrap();
    // The device's own pool has pages of other tests. This one lives, as that does, until the process ends.
    let pool = Pool::new(device.ordinal()).unwrap();
    assert!(pool.read_back.get().is_none() && pool.pages.lock().is_empty());
    // Handles may be made by several threads.
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let _entered = device.enter().unwrap();
                readback::prepare(&pool, device.modules()).unwrap();
            });
        }
    });
    assert!(pool.read_back.get().is_some());
    let pages = pool.pages.lock();
    assert_eq!(pages.len(), 1);
    assert!(pages[0].words(pool.stream).unwrap().iter().all(|&word| word == 0));
}

#[test]
fn numbers_elsewhere_on_the_device_follow_the_words() {
    let Some((device, cx)) = context_of_device() else { return };
    let cx = &device.call(&cx).unwrap();
    let numbers: Vec<u64> = (0..2048).map(|at| at * 31 + 7).collect();
    let array = DeviceBuffer::from_slice(cx, &numbers).unwrap();
    for (count, first, second) in [(0, 0, 2047), (5, 1, 1), (510, 1999, 49)] {
        let mut words = Readback::take(cx).unwrap();
        words.fetch_with(cx, count, [array.at(first), array.at(second)]).unwrap();
        let found = words.wait(cx).unwrap();
        assert_eq!(found[count..][..2], [numbers[first], numbers[second]], "{count}");
        words.fetch_with(cx, count, [array.at(second), Address::NULL]).unwrap();
        assert_eq!(words.wait(cx).unwrap()[count], numbers[second], "{count}");
    }
}

#[test]
fn memory_is_given_out_again_when_work_on_it_is_done() {
    const BYTES: usize = 96 << 20;
    let Some((device, cx)) = context_of_device() else { return };
    let cx = &device.call(&cx).unwrap();
    let streams = [Stream::new(device.ordinal()).unwrap(), Stream::new(device.ordinal()).unwrap()];
    let [mine, other] = [0, 1].map(|i| Context { stream: streams[i].address(), ..Context::clone(cx) });
    let pattern: Vec<u8> = (0..1 << 16).map(|i| (i % 251 + 1) as u8).collect();
    let mut reused = 0;
    for _ in 0..20 {
        let array = DeviceBuffer::<u8>::new(&mine, BYTES).unwrap();
        let first = array.address();
        for _ in 0..20 {
            zero(array.address(), BYTES, mine.stream).unwrap();
        }
        // The writes are pending for some hundred microseconds.
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

/// Memory released on a stream that a gate holds back is not reused before the gate opens, and no allocation
/// waits for it.
#[test]
fn an_allocation_does_not_wait_for_the_work_of_another_stream() {
    const BYTES: usize = 96 << 20;
    let Some((device, cx)) = context_of_device() else { return };
    let cx = &device.call(&cx).unwrap();
    let streams = [Stream::new(device.ordinal()).unwrap(), Stream::new(device.ordinal()).unwrap()];
    let [mine, other] = [0, 1].map(|i| Context { stream: streams[i].address(), ..Context::clone(cx) });
    for is_short in [false, true, false] {
        let array = DeviceBuffer::<u8>::new(&mine, BYTES).unwrap();
        let first = array.address();
        let gate = Gate::close(&streams[0]).unwrap();
        zero(array.address(), BYTES, mine.stream).unwrap();
        drop(array);
        if is_short {
            // The path of an allocation for which no memory is left: it may wait, and takes any memory it can
            // get.
            std::thread::scope(|scope| {
                let pool = device.pool().unwrap();
                let made = scope.spawn(|| {
                    let _entered = device.enter().unwrap();
                    pool.allocate_and_wait(BYTES).unwrap()
                });
                std::thread::sleep(std::time::Duration::from_millis(20));
                assert!(gate.open());
                pool.release_to_driver(made.join().unwrap());
            });
        } else {
            let array = DeviceBuffer::<u8>::new(&other, BYTES).unwrap();
            zero(array.address(), BYTES, other.stream).unwrap();
            synchronize(other.stream).unwrap();
            assert_ne!(array.address(), first);
            assert!(gate.open(), "the allocation has waited for the other stream");
        }
        synchronize(mine.stream).unwrap();
    }
    assert_eq!(cx.allocator.live_bytes(), 0);
}

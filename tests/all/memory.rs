//! Tests of memory: failures of every allocation, limits, workspaces, tarsiaMalloc.

pub mod heap;
mod limits;
mod scenarios;

use std::ffi::c_void;
use std::ptr::{null, null_mut};

use client::{check, Plan, Session};
use matrices::gallery;
use tarsia::capi::objects::tarsiaHandle_t;
use tarsia::capi::{handle, memory};
use tarsia::facade::{BackendKind, ComputeType, DataType, Operation, SpmvAlg, Status};

use crate::bad_input::bad::{accepts, failed, invalid, names};
use crate::common::backends;
use crate::common::staged::{memory as memory_of, upload, Staged};
use crate::decisions::Stored as Square;
use heap::Heap;

/// Backends whose memory the host can read and that ignore streams.
const CPU: [BackendKind; 2] = [BackendKind::Host, BackendKind::Reference];

fn malloc(handle: tarsiaHandle_t, bytes: usize) -> *mut c_void {
    let mut pointer = std::ptr::dangling_mut();
    // SAFETY: the answer is valid for a write.
    accepts("Malloc", unsafe { memory::tarsiaMalloc(handle, &mut pointer, bytes) });
    pointer
}

#[test]
fn malloc_gives_aligned_memory_that_can_be_used() {
    for kind in backends() {
        let session = Session::new(kind).unwrap();
        let h = session.raw();
        let sizes = [1_usize, 7, 64, 65, 4096, 1 << 20];
        let pointers: Vec<_> = sizes.iter().map(|&bytes| malloc(h, bytes)).collect();
        for (n, (&bytes, &pointer)) in sizes.iter().zip(&pointers).enumerate() {
            assert!(!pointer.is_null() && pointer.addr() % 256 == 0, "{bytes} bytes at {pointer:?}");
            let sent = vec![n as u8 + 1; bytes];
            // SAFETY: both have that many bytes.
            accepts("to device", unsafe {
                memory::tarsiaMemcpyToDevice(h, pointer, sent.as_ptr().cast(), bytes)
            });
        }
        for (n, (&bytes, &pointer)) in sizes.iter().zip(&pointers).enumerate() {
            let mut back = vec![0_u8; bytes];
            // SAFETY: as above.
            unsafe {
                accepts("to host", memory::tarsiaMemcpyToHost(h, back.as_mut_ptr().cast(), pointer, bytes));
                accepts("synchronize", memory::tarsiaSynchronize(h));
                accepts("free", memory::tarsiaFree(h, pointer));
            }
            assert!(back.iter().all(|&byte| byte == n as u8 + 1), "{bytes} bytes came back changed");
        }
    }
}

#[test]
fn malloc_of_nothing_and_of_too_much() {
    for kind in backends() {
        let session = Session::new(kind).unwrap();
        let h = session.raw();
        assert!(malloc(h, 0).is_null());
        // SAFETY: NULL is nothing to free; the answer is valid for a write.
        accepts("free NULL", unsafe { memory::tarsiaFree(h, null_mut()) });
        for bytes in [usize::MAX, isize::MAX as usize, isize::MAX as usize + 1, 1 << 60] {
            let mut pointer = std::ptr::without_provenance_mut(0xa5a5);
            // SAFETY: as above.
            let code = unsafe { memory::tarsiaMalloc(h, &mut pointer, bytes) };
            failed(code, Status::AllocFailed).unwrap();
            assert_eq!(pointer.addr(), 0xa5a5, "an answer was written");
            let message = client::last_message();
            assert!(message.contains(&bytes.to_string()), "{message}");
        }
        accepts("free", unsafe_free(h, malloc(h, 8)));
    }
}

fn unsafe_free(handle: tarsiaHandle_t, pointer: *mut c_void) -> tarsia::capi::enums::tarsiaStatus_t {
    // SAFETY: the callers pass what tarsiaMalloc gave.
    unsafe { memory::tarsiaFree(handle, pointer) }
}

/// Memory from one handle can be freed by another handle of the same backend.
#[test]
fn free_through_another_handle() {
    for kind in backends() {
        let (one, other) = (Session::new(kind).unwrap(), Session::new(kind).unwrap());
        let pointer = malloc(one.raw(), 100);
        drop(one);
        accepts("free", unsafe_free(other.raw(), pointer));
    }
}

#[test]
fn copies_of_nothing_of_too_much_and_onto_themselves() {
    type Copy = unsafe extern "C" fn(
        tarsiaHandle_t,
        *mut c_void,
        *const c_void,
        usize,
    ) -> tarsia::capi::enums::tarsiaStatus_t;
    for kind in backends() {
        let session = Session::new(kind).unwrap();
        let h = session.raw();
        for copy in [memory::tarsiaMemcpyToDevice as Copy, memory::tarsiaMemcpyToHost] {
            let mut bytes = [0_u8, 1, 2, 3, 4, 5, 6, 7];
            let p: *mut u8 = bytes.as_mut_ptr();
            // SAFETY: no byte is copied that is not there.
            unsafe {
                accepts("0 bytes of NULL", copy(h, null_mut(), null(), 0));
                accepts("0 bytes", copy(h, p.cast(), p.cast(), 0));
                invalid("no source", "src", || copy(h, p.cast(), null(), 1));
                invalid("no destination", "dst", || copy(h, null_mut(), p.cast(), 1));
                for huge in [usize::MAX, isize::MAX as usize + 1] {
                    invalid("too much", "bytes", || copy(h, p.cast(), p.cast(), huge));
                }
                // Host and device memory do not overlap.
                if CPU.contains(&kind) {
                    accepts("overlapping", copy(h, p.add(2).cast(), p.cast(), 6));
                    assert_eq!(bytes, [0, 1, 0, 1, 2, 3, 4, 5]);
                } else {
                    assert_eq!(bytes, [0, 1, 2, 3, 4, 5, 6, 7]);
                }
            }
        }
    }
}

/// tarsiaMalloc, which is for the user's arrays, does not call the user's allocator.
#[test]
fn malloc_does_not_use_the_users_allocator() {
    for kind in backends() {
        let (heap, session) = (Heap::new(kind), Session::new(kind).unwrap());
        heap.serve(session.raw());
        accepts("free", unsafe_free(session.raw(), malloc(session.raw(), 100)));
        assert_eq!(heap.calls(), 0);
    }
}

#[test]
fn workspaces_that_cannot_be_one() {
    for kind in backends() {
        let session = Session::new(kind).unwrap();
        let mut array = upload(kind, &[0_u128; 4]);
        let memory: *mut c_void = array.part_mut(0..4).as_mut_ptr().cast();
        // SAFETY: the memory has that many bytes; nothing executes with it.
        let set = |pointer, bytes| unsafe { handle::tarsiaSetWorkspace(session.raw(), pointer, bytes) };
        invalid("bytes without ptr", "ptr", || set(null_mut(), 64));
        invalid("ptr without bytes", "bytes", || set(memory, 0));
        for shift in [1, 4, 8] {
            invalid("misaligned", "ptr", || set(memory.wrapping_byte_add(shift), 32));
        }
        accepts("a workspace", set(memory, 64));
        accepts("16 bytes are aligned enough", set(memory.wrapping_byte_add(16), 1));
        accepts("none", set(null_mut(), 0));
    }
}

#[test]
fn allocator_functions_come_in_pairs() {
    for kind in backends() {
        let session = Session::new(kind).unwrap();
        let heap = Heap::new(kind);
        heap.serve(session.raw());
        // Both functions must be given or none; after an error the earlier ones stay.
        // SAFETY: neither function is kept.
        let code = unsafe { handle::tarsiaSetAllocator(session.raw(), None, Some(unused_free), null_mut()) };
        names(code, Status::InvalidValue, "alloc").unwrap();
        // SAFETY: as above.
        let code = unsafe { handle::tarsiaSetAllocator(session.raw(), Some(unused_alloc), None, null_mut()) };
        names(code, Status::InvalidValue, "free").unwrap();
        scenarios::plan_of_a_long_row(&session);
        assert!(heap.calls() > 0, "the first allocator is gone");
        heap.check_empty_after(session);

        // With both NULL, the library's own allocator is used again.
        let session = Session::new(kind).unwrap();
        heap.fail(heap::Fail::Never);
        heap.serve(session.raw());
        // SAFETY: there are no functions to keep.
        check(unsafe { handle::tarsiaSetAllocator(session.raw(), None, None, null_mut()) }).unwrap();
        scenarios::plan_of_a_long_row(&session);
        assert_eq!(heap.calls(), 0);
    }
}

/// A plan gets its memory from the handle that analyzes it, also if another handle updates its values. The
/// analyzing handle's allocator cannot be changed from then on.
#[test]
fn memory_is_of_the_handle_that_analyzes() {
    for kind in backends() {
        let (creates, analyzes) = (Session::new(kind).unwrap(), Session::new(kind).unwrap());
        let heaps = [Heap::new(kind), Heap::new(kind)];
        heaps[0].serve(creates.raw());
        heaps[1].serve(analyzes.raw());
        let stored = Square::new(kind, &gallery::banded(500, 5, 3).unwrap());
        let a = stored.sparse();
        let (op, types) = (Operation::NonTranspose, (DataType::R64F, DataType::R64F));
        let plan = Plan::spmv(&creates, op, &a, types, ComputeType::R64F, SpmvAlg::Sell).unwrap();
        let (before, none) = (heaps[0].calls(), heaps[1].calls());
        plan.analyze(&analyzes).unwrap();
        assert!(heaps[1].calls() > none, "{kind:?}");
        // SAFETY: there are no functions to keep.
        let code = unsafe { handle::tarsiaSetAllocator(analyzes.raw(), None, None, null_mut()) };
        names(code, Status::InvalidState, "handle").unwrap();
        plan.update_values(&creates, &stored.values).unwrap();
        assert_eq!(heaps[0].calls(), before, "{kind:?}");
        drop(plan);
        heaps[0].check_empty_after(creates);
        heaps[1].check_empty_after(analyzes);
    }
}

unsafe extern "C-unwind" fn unused_alloc(_: *mut c_void, _: usize, _: *mut c_void) -> *mut c_void {
    null_mut()
}

unsafe extern "C-unwind" fn unused_free(_: *mut c_void, _: *mut c_void, _: usize, _: *mut c_void) {}

/// The allocator is passed the stream that the handle has at the time of the call.
#[test]
fn allocator_gets_the_handles_stream() {
    for kind in CPU {
        let (heap, session) = (Heap::new(kind), Session::new(kind).unwrap());
        heap.serve(session.raw());
        // The CPU backends store the stream but ignore it.
        for stream in [0x1110_usize, 0x2220] {
            let pointer = std::ptr::without_provenance_mut(stream);
            accepts("SetStream", handle::tarsiaSetStream(session.raw(), pointer));
            scenarios::plan_of_a_long_row(&session);
            let streams = heap.streams();
            assert!(!streams.is_empty());
            // The workspace, which the first plan left to the handle, may be freed with the stream with which
            // it was allocated.
            let allowed = |found: &usize| *found == stream || *found == 0x1110;
            assert!(streams.contains(&stream) && streams.iter().all(allowed), "{streams:x?}");
        }
        heap.check_empty_after(session);
    }
}

/// The guards of the tests notice a write behind an array in any memory.
#[test]
fn writes_outside_of_an_array_are_noticed() {
    for kind in backends() {
        for place in [-1, 3] {
            let mut staged = Staged::new(kind, &[1.0_f64; 3]);
            let pointer = staged.view_mut().as_mut_ptr().wrapping_offset(place);
            let value = 2.0_f64;
            // SAFETY: the guard is there; the value has that many bytes.
            accepts("to device", unsafe {
                let h = memory_of(kind).raw();
                memory::tarsiaMemcpyToDevice(h, pointer.cast(), (&raw const value).cast(), 8)
            });
            let mut back = [0.0; 3];
            let error = staged.take_back(&mut back).expect_err("a guard was overwritten");
            assert!(error.message.contains("outside"), "{error}");
            assert_eq!(back, [1.0; 3]);
        }
    }
}

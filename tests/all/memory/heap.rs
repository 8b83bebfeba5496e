//! User's allocator that counts, checks, and fails when it is told to.

use std::collections::HashMap;
use std::sync::Mutex;

use client::{check, Session};
use libc::c_void;
use tarsia::capi::objects::tarsiaHandle_t;
use tarsia::capi::{handle, memory};
use tarsia::facade::BackendKind;

use crate::common::staged::memory as source;

/// Allocations that fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fail {
    /// The n-th allocation, counted from 1, returns NULL.
    Once(usize),
    /// All allocations from the n-th on return NULL.
    From(usize),
    /// The n-th allocation panics.
    Panic(usize),
    /// The n-th allocation is not aligned.
    Misalign(usize),
    /// No allocation fails.
    Never,
}

/// Text of [`Fail::Panic`].
pub const PANIC: &str = "the allocator gave up";

/// Allocator, whose functions get it as ctx.
pub struct Heap(Mutex<State>);

struct State {
    /// Backend whose memory it allocates, through another handle.
    kind: BackendKind,
    /// Requested bytes of each address that has not been freed.
    live: HashMap<usize, usize>,
    calls: usize,
    fail: Fail,
    failures: usize,
    /// Errors of the library.
    faults: Vec<String>,
    /// Streams that were passed to the functions.
    streams: Vec<usize>,
}

/// Bytes behind every allocation that must not be written.
const GUARD: usize = 64;
const GUARD_BYTE: u8 = 0xc3;

impl Heap {
    /// Creates an allocator that never fails.
    pub fn new(kind: BackendKind) -> Box<Self> {
        Box::new(Heap(Mutex::new(State {
            kind,
            live: HashMap::new(),
            calls: 0,
            fail: Fail::Never,
            failures: 0,
            faults: Vec::new(),
            streams: Vec::new(),
        })))
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.0.lock().expect("no function panics while it holds the lock")
    }

    /// Resets the counts, and lets these allocations fail.
    pub fn fail(&self, fail: Fail) {
        let mut state = self.state();
        (state.calls, state.fail, state.failures) = (0, fail, 0);
    }

    /// Lets no allocation fail from now on; counts stay.
    pub fn relax(&self) {
        self.state().fail = Fail::Never;
    }

    /// Returns the number of requested allocations.
    pub fn calls(&self) -> usize {
        self.state().calls
    }

    /// Returns the number of allocations that failed.
    pub fn failures(&self) -> usize {
        self.state().failures
    }

    /// Returns the number of allocations that have not been freed, and their bytes.
    pub fn live(&self) -> (usize, usize) {
        let state = self.state();
        (state.live.len(), state.live.values().sum())
    }

    /// Returns the streams that were passed so far.
    pub fn streams(&self) -> Vec<usize> {
        std::mem::take(&mut self.state().streams)
    }

    /// Checks that every allocation was freed exactly once and that nothing was written behind its end.
    #[track_caller]
    pub fn check_empty(&self) {
        let state = self.state();
        assert!(state.faults.is_empty(), "{:?}", state.faults);
        assert!(state.live.is_empty(), "not given back: {:?} bytes", state.live.values());
    }

    /// Sets this allocator for the handle.
    pub fn serve(&self, handle: tarsiaHandle_t) {
        let ctx = std::ptr::from_ref(self).cast_mut().cast();
        // SAFETY: the tests keep the heap until the handle and its plans are gone.
        check(unsafe { handle::tarsiaSetAllocator(handle, Some(allocate), Some(release), ctx) }).unwrap();
    }
}

unsafe extern "C-unwind" fn allocate(ctx: *mut c_void, bytes: usize, stream: *mut c_void) -> *mut c_void {
    // SAFETY: ctx is the heap, which outlives all that is made with it.
    let heap = unsafe { &*ctx.cast_const().cast::<Heap>() };
    let mut state = heap.state();
    state.calls += 1;
    state.streams.push(stream.addr());
    if bytes == 0 {
        state.faults.push("0 bytes were asked for".into());
    }
    let (call, fail) = (state.calls, state.fail);
    let fails = match fail {
        Fail::Once(n) | Fail::Panic(n) | Fail::Misalign(n) => call == n,
        Fail::From(n) => call >= n,
        Fail::Never => false,
    };
    if fails {
        state.failures += 1;
        match fail {
            Fail::Panic(_) => {
                drop(state);
                panic!("{PANIC}");
            }
            Fail::Misalign(_) => {}
            _ => return std::ptr::null_mut(),
        }
    }
    let shift = if fails { 8 } else { 0 };
    let mut memory = std::ptr::null_mut();
    // New memory is not zero, so that reads before writes are noticed.
    let content = [vec![0x5a; shift + bytes], vec![GUARD_BYTE; GUARD]].concat();
    let h = source(state.kind).raw();
    // SAFETY: the answer is valid for a write, and the allocation has room for
    // all that is copied into it.
    let code = unsafe {
        check(memory::tarsiaMalloc(h, &mut memory, content.len())).and_then(|()| {
            check(memory::tarsiaMemcpyToDevice(h, memory, content.as_ptr().cast(), content.len()))
        })
    };
    if code.is_err() {
        return std::ptr::null_mut();
    }
    let memory = memory.wrapping_byte_add(shift);
    state.live.insert(memory.addr(), bytes);
    memory
}

unsafe extern "C-unwind" fn release(
    ctx: *mut c_void,
    pointer: *mut c_void,
    size: usize,
    stream: *mut c_void,
) {
    // SAFETY: as in `allocate`.
    let heap = unsafe { &*ctx.cast_const().cast::<Heap>() };
    let mut state = heap.state();
    state.streams.push(stream.addr());
    let Some(bytes) = state.live.remove(&pointer.addr()) else {
        state.faults.push(format!("{pointer:?} was given back, which nobody has"));
        return;
    };
    if bytes != size {
        state.faults.push(format!("{bytes} bytes were given back as {size}"));
    }
    let h = source(state.kind).raw();
    // Work on the stream may still use the memory.
    let on_stream = Session::new(state.kind).unwrap();
    check(handle::tarsiaSetStream(on_stream.raw(), stream)).unwrap();
    on_stream.synchronize().unwrap();
    let (mut guard, freed) = ([0_u8; GUARD], vec![0xdd_u8; bytes]);
    // SAFETY: `allocate` gave that many bytes and the guard, and nobody else
    // has them any more. The first `shift` bytes were not given out.
    unsafe {
        let behind = pointer.wrapping_byte_add(bytes);
        check(memory::tarsiaMemcpyToHost(h, guard.as_mut_ptr().cast(), behind, GUARD)).unwrap();
        // Freed memory is overwritten, so that later reads are noticed.
        check(memory::tarsiaMemcpyToDevice(h, pointer, freed.as_ptr().cast(), bytes)).unwrap();
        let shift = pointer.addr() % 64;
        check(memory::tarsiaFree(h, pointer.wrapping_byte_sub(shift))).unwrap();
    }
    if guard.iter().any(|&byte| byte != GUARD_BYTE) {
        state.faults.push(format!("an allocation of {bytes} bytes was written behind its end"));
    }
}

impl Heap {
    /// Calls [`Heap::check_empty`] after the last handle with this allocator is destroyed.
    #[track_caller]
    pub fn check_empty_after(&self, session: client::Session) {
        drop(session);
        self.check_empty();
    }
}

//! A user's allocator that counts, checks and fails on command.

use std::collections::HashMap;
use std::sync::Mutex;

use client::{check, Session};
use libc::c_void;
use tarsia::capi::objects::tarsiaHandle_t;
use tarsia::capi::{handle, memory};
use tarsia::facade::BackendKind;

use crate::common::staged::memory as source;

/// When allocations fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fail {
    /// The n-th, counted from 1 on, returns NULL.
    Once(usize),
    /// All from the n-th on return NULL.
    From(usize),
    /// The n-th panics.
    Panic(usize),
    /// The n-th is not aligned.
    Misalign(usize),
    /// None.
    Never,
}

/// Text of [`Fail::Panic`].
pub const PANIC: &str = "the allocator gave up";

/// What the functions of the allocator get as ctx.
pub struct Heap(Mutex<State>);

struct State {
    /// Whose memory it gives out: that of another handle of the same backend.
    kind: BackendKind,
    /// Address → bytes asked for.
    live: HashMap<usize, usize>,
    calls: usize,
    fail: Fail,
    failures: usize,
    /// What the library did wrong.
    faults: Vec<String>,
    /// Streams that were passed.
    streams: Vec<usize>,
}

/// Bytes behind every allocation that nobody may write.
const GUARD: usize = 64;
const GUARD_BYTE: u8 = 0xc3;

impl Heap {
    /// An allocator that never fails.
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

    /// Starts to count again, and to fail like this.
    pub fn fail(&self, fail: Fail) {
        let mut state = self.state();
        (state.calls, state.fail, state.failures) = (0, fail, 0);
    }

    /// Never fails from now on; counts stay.
    pub fn relax(&self) {
        self.state().fail = Fail::Never;
    }

    /// Allocations that were asked for.
    pub fn calls(&self) -> usize {
        self.state().calls
    }

    /// Allocations that failed.
    pub fn failures(&self) -> usize {
        self.state().failures
    }

    /// Allocations that were not given back, and their bytes.
    pub fn live(&self) -> (usize, usize) {
        let state = self.state();
        (state.live.len(), state.live.values().sum())
    }

    /// Streams of the calls so far.
    pub fn streams(&self) -> Vec<usize> {
        std::mem::take(&mut self.state().streams)
    }

    /// All was given back, each once, and nothing was written behind its end.
    #[track_caller]
    pub fn check_empty(&self) {
        let state = self.state();
        assert!(state.faults.is_empty(), "{:?}", state.faults);
        assert!(state.live.is_empty(), "not given back: {:?} bytes", state.live.values());
    }

    /// Gives the handle this allocator.
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
    // What is not set must not be read as if it were zeros.
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
    // What is on the stream may still use it.
    let on_stream = Session::new(state.kind).unwrap();
    check(handle::tarsiaSetStream(on_stream.raw(), stream)).unwrap();
    on_stream.synchronize().unwrap();
    let (mut guard, freed) = ([0_u8; GUARD], vec![0xdd_u8; bytes]);
    // SAFETY: `allocate` gave that many bytes and the guard, and nobody else
    // has them any more. The first `shift` bytes were not given out.
    unsafe {
        let behind = pointer.wrapping_byte_add(bytes);
        check(memory::tarsiaMemcpyToHost(h, guard.as_mut_ptr().cast(), behind, GUARD)).unwrap();
        // What is given back must not be read any more.
        check(memory::tarsiaMemcpyToDevice(h, pointer, freed.as_ptr().cast(), bytes)).unwrap();
        let shift = pointer.addr() % 64;
        check(memory::tarsiaFree(h, pointer.wrapping_byte_sub(shift))).unwrap();
    }
    if guard.iter().any(|&byte| byte != GUARD_BYTE) {
        state.faults.push(format!("an allocation of {bytes} bytes was written behind its end"));
    }
}

impl Heap {
    /// [`Heap::check_empty`] when the handle, the last that was served, is gone.
    #[track_caller]
    pub fn check_empty_after(&self, session: client::Session) {
        drop(session);
        self.check_empty();
    }
}

//! The arguments of a call, as the registers and the stack hold them when it comes.
//!
//! They are read only where the version of cuSPARSE is known, whose functions have the signatures that are
//! written here.

use std::ffi::{c_int, c_void};

/// Saved argument registers and stack of an intercepted call. All arguments of the functions here are
/// integers and pointers.
#[derive(Clone, Copy)]
pub struct Frame(*const u64);

impl Frame {
    /// # Safety
    /// `saved` is `entry::route`'s save area, unchanged until the call is forwarded or answered; the program
    /// has passed as many arguments as are asked for.
    pub unsafe fn new(saved: *const u64) -> Self {
        Frame(saved)
    }

    /// Argument number `at`, from 0: in a register, or in a word of the program's stack.
    fn word(self, at: usize) -> u64 {
        // `entry::route` saves six registers, the low 64 bits of xmm0-7, and the frame pointer; the return
        // address is behind them.
        #[cfg(target_arch = "x86_64")]
        let place = if at < 6 { at } else { 16 + at - 6 };
        // The frame pointer and the return address, eight registers, d0 to d7.
        #[cfg(target_arch = "aarch64")]
        let place = if at < 8 { 2 + at } else { 18 + at - 8 };
        // SAFETY: the promise of `new`.
        unsafe { self.0.add(place).read() }
    }

    fn pointer<T>(self, at: usize) -> *mut T {
        std::ptr::with_exposed_provenance_mut(self.word(at) as usize)
    }

    /// The upper half of an int's word may hold anything.
    fn int(self, at: usize) -> c_int {
        self.word(at) as c_int
    }
}

/// A handle or a descriptor of cuSPARSE's: nothing is known of what is there.
pub type Object = *const c_void;

/// Arguments of `cusparseSpMV`, and of its `_bufferSize`. `last`: the buffer of the former, the size's
/// address of the latter.
#[derive(Clone, Copy, Debug)]
pub struct SpmvArguments {
    pub handle: Object,
    pub op: c_int,
    pub alpha: *const c_void,
    pub a: Object,
    pub x: Object,
    pub beta: *const c_void,
    pub y: Object,
    pub compute: c_int,
    pub algorithm: c_int,
    pub last: *mut c_void,
}

impl From<Frame> for SpmvArguments {
    fn from(frame: Frame) -> Self {
        SpmvArguments {
            handle: frame.pointer(0),
            op: frame.int(1),
            alpha: frame.pointer(2),
            a: frame.pointer(3),
            x: frame.pointer(4),
            beta: frame.pointer(5),
            y: frame.pointer(6),
            compute: frame.int(7),
            algorithm: frame.int(8),
            last: frame.pointer(9),
        }
    }
}

impl SpmvArguments {
    /// Calls the real `cusparseSpMV_bufferSize` with these arguments.
    ///
    /// # Safety
    /// The address is that function's, and the arguments are those of a call of it.
    pub unsafe fn call(&self, address: *const c_void) -> c_int {
        type Real = extern "C" fn(
            Object,
            c_int,
            *const c_void,
            Object,
            Object,
            *const c_void,
            Object,
            c_int,
            c_int,
            *mut c_void,
        ) -> c_int;
        // SAFETY: the caller's promise.
        let real: Real = unsafe { std::mem::transmute(address) };
        let SpmvArguments { handle, op, alpha, a, x, beta, y, compute, algorithm, last } = *self;
        real(handle, op, alpha, a, x, beta, y, compute, algorithm, last)
    }
}

/// Arguments of `cusparseSpMM`, and of its `_bufferSize`. `last`: the buffer of the former, the size's
/// address of the latter.
#[derive(Clone, Copy, Debug)]
pub struct SpmmArguments {
    pub handle: Object,
    pub op_a: c_int,
    pub op_b: c_int,
    pub alpha: *const c_void,
    pub a: Object,
    pub b: Object,
    pub beta: *const c_void,
    pub c: Object,
    pub compute: c_int,
    pub algorithm: c_int,
    pub last: *mut c_void,
}

impl From<Frame> for SpmmArguments {
    fn from(frame: Frame) -> Self {
        SpmmArguments {
            handle: frame.pointer(0),
            op_a: frame.int(1),
            op_b: frame.int(2),
            alpha: frame.pointer(3),
            a: frame.pointer(4),
            b: frame.pointer(5),
            beta: frame.pointer(6),
            c: frame.pointer(7),
            compute: frame.int(8),
            algorithm: frame.int(9),
            last: frame.pointer(10),
        }
    }
}

impl SpmmArguments {
    /// Calls the real `cusparseSpMM_bufferSize` with these arguments.
    ///
    /// # Safety
    /// The address is that function's, and the arguments are those of a call of it.
    pub unsafe fn call(&self, address: *const c_void) -> c_int {
        type Real = extern "C" fn(
            Object,
            c_int,
            c_int,
            *const c_void,
            Object,
            Object,
            *const c_void,
            Object,
            c_int,
            c_int,
            *mut c_void,
        ) -> c_int;
        // SAFETY: the caller's promise.
        let real: Real = unsafe { std::mem::transmute(address) };
        let SpmmArguments { handle, op_a, op_b, alpha, a, b, beta, c, compute, algorithm, last } = *self;
        real(handle, op_a, op_b, alpha, a, b, beta, c, compute, algorithm, last)
    }
}

/// An object among the first arguments, whose places are the same in all versions.
pub fn object(frame: Frame, at: usize) -> Object {
    frame.pointer(at)
}

/// Raises a size that cuSPARSE has answered.
///
/// # Safety
/// NULL, or where cuSPARSE has written a size.
pub unsafe fn raise(size: *mut c_void, least: usize) {
    let size = size.cast::<usize>();
    if !size.is_null() {
        // SAFETY: the caller's promise.
        unsafe { size.write_unaligned(size.read_unaligned().max(least)) };
    }
}

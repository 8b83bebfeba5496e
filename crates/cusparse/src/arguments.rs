//! The arguments of an intercepted call, read from the saved registers and the stack.
//!
//! They are read only if the version of cuSPARSE is known, since other versions may have functions with
//! other signatures than those written here.

use std::ffi::{c_int, c_void};
use std::ptr::null_mut;

/// Saved argument registers and stack of an intercepted call. All arguments of the functions of this module
/// are integers and pointers.
#[derive(Clone, Copy)]
pub struct Frame(*const u64);

impl Frame {
    /// Creates the frame of a call.
    ///
    /// # Safety
    /// `saved` is `entry::route`'s save area, unchanged until the call is forwarded or answered; the program
    /// has passed as many arguments as are asked for.
    pub unsafe fn new(saved: *const u64) -> Self {
        Frame(saved)
    }

    /// Returns argument number `at`, counted from 0, from its register or its word of the stack.
    fn word(self, at: usize) -> u64 {
        // `entry::route` saves six registers, the low 64 bits of xmm0-7, and the frame pointer; then come
        // the return address and the arguments on the stack.
        #[cfg(target_arch = "x86_64")]
        let place = if at < 6 { at } else { 16 + at - 6 };
        // `entry::route` saves the frame pointer and the return address, x0 to x7, and d0 to d7; then come
        // the arguments on the stack.
        #[cfg(target_arch = "aarch64")]
        let place = if at < 8 { 2 + at } else { 18 + at - 8 };
        // SAFETY: the promise of `new`.
        unsafe { self.0.add(place).read() }
    }

    fn pointer<T>(self, at: usize) -> *mut T {
        std::ptr::with_exposed_provenance_mut(self.word(at) as usize)
    }

    /// Returns an argument of type int; the upper half of its word may hold anything.
    fn int(self, at: usize) -> c_int {
        self.word(at) as c_int
    }
}

/// Address of a handle or descriptor of cuSPARSE, whose memory is never read here.
pub type Object = *const c_void;

/// Arguments of `cusparseSpMV` or `cusparseSpMV_bufferSize`. `last` is the buffer of the former, and the
/// address of the size for the latter.
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
    /// Calls the real `cusparseSpMV_bufferSize` or `cusparseSpMV_preprocess` with these arguments.
    ///
    /// # Safety
    /// `address` is that of the function, and the arguments are those of a call to it.
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

/// Arguments of `cusparseSpMM` or `cusparseSpMM_bufferSize`. `last` is the buffer of the former, and the
/// address of the size for the latter.
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
    /// Calls the real `cusparseSpMM_bufferSize` or `cusparseSpMM_preprocess` with these arguments.
    ///
    /// # Safety
    /// `address` is that of the function, and the arguments are those of a call to it.
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

/// Arguments of the steps of `cusparseSpGEMM`. `size` and `buffer` are those of `_workEstimation` and
/// `_compute`, and the third size and buffer of `_estimateMemory`; `_copy` has neither, and they must not be
/// used.
#[derive(Clone, Copy, Debug)]
pub struct SpgemmArguments {
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
    pub descriptor: Object,
    pub size: *mut usize,
    pub buffer: *mut c_void,
}

impl SpgemmArguments {
    /// Reads the arguments of a step; `has_buffer` tells whether it has a size and a buffer.
    pub fn new(frame: Frame, has_buffer: bool) -> Self {
        // The float argument of `_estimateMemory` is in a register of its own and is not counted.
        let last = has_buffer.then(|| (frame.pointer(11), frame.pointer(12)));
        let (size, buffer) = last.unwrap_or((null_mut(), null_mut()));
        SpgemmArguments {
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
            descriptor: frame.pointer(10),
            size,
            buffer,
        }
    }

    /// Calls the real `cusparseSpGEMM_workEstimation` with these arguments.
    ///
    /// # Safety
    /// `address` is that of this function, and the arguments are those of a call to a step; `size` is valid.
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
            Object,
            *mut usize,
            *mut c_void,
        ) -> c_int;
        // SAFETY: the caller's promise.
        let real: Real = unsafe { std::mem::transmute(address) };
        let SpgemmArguments { handle, op_a, op_b, alpha, a, b, beta, c, compute, algorithm, .. } = *self;
        let SpgemmArguments { descriptor, size, buffer, .. } = *self;
        real(handle, op_a, op_b, alpha, a, b, beta, c, compute, algorithm, descriptor, size, buffer)
    }
}

impl Frame {
    /// Calls a real function with the arguments of the call, of which it has up to ten. What follows its last one is
    /// not read by it.
    ///
    /// # Safety
    /// `address` is that of the function, whose arguments are all integers and pointers.
    pub unsafe fn call(self, address: *const c_void) -> c_int {
        type Word = u64;
        type Real = extern "C" fn(Word, Word, Word, Word, Word, Word, Word, Word, Word, Word) -> c_int;
        // SAFETY: the caller's promise. Behind the arguments on the stack are the caller's own words.
        let real: Real = unsafe { std::mem::transmute(address) };
        let [a, b, c, d, e, f, g, h, i, j] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9].map(|at| self.word(at));
        real(a, b, c, d, e, f, g, h, i, j)
    }
}

/// Returns the number of type int that is argument number `at`, under the condition of [`object`].
pub fn number(frame: Frame, at: usize) -> c_int {
    frame.int(at)
}

/// Reads what a function has written to an address.
///
/// # Safety
/// `from` is valid for a read.
pub unsafe fn read<T: Copy>(from: *const T) -> T {
    // SAFETY: the caller's promise.
    unsafe { from.read_unaligned() }
}

/// Returns the handle or descriptor that is argument number `at`. Only for first arguments whose positions
/// are the same in all versions of cuSPARSE.
pub fn object(frame: Frame, at: usize) -> Object {
    frame.pointer(at)
}

/// Returns the address of a result that is argument number `at`, under the same condition.
pub fn result<T>(frame: Frame, at: usize) -> *mut T {
    frame.pointer(at)
}

/// Writes a result to where the program wants it, unless that is NULL.
///
/// # Safety
/// `to` is NULL or valid for a write.
pub unsafe fn write<T>(to: *mut T, value: T) {
    if !to.is_null() {
        // SAFETY: the caller's promise.
        unsafe { to.write_unaligned(value) };
    }
}

/// Returns whether a scalar on the host is zero, which has `parts` parts that are doubles or floats.
///
/// # Safety
/// `at` is valid for reading them.
pub unsafe fn is_zero(at: *const c_void, parts: usize, are_doubles: bool) -> bool {
    (0..parts).all(|part| {
        // SAFETY: the caller's promise.
        unsafe {
            match are_doubles {
                true => at.cast::<f64>().add(part).read_unaligned() == 0.0,
                false => at.cast::<f32>().add(part).read_unaligned() == 0.0,
            }
        }
    })
}

/// Raises the buffer size that cuSPARSE has written to `size` to at least `least` bytes.
///
/// # Safety
/// `size` is NULL, or points to a size that cuSPARSE has written.
pub unsafe fn raise(size: *mut c_void, least: usize) {
    let size = size.cast::<usize>();
    if !size.is_null() {
        // SAFETY: the caller's promise.
        unsafe { size.write_unaligned(size.read_unaligned().max(least)) };
    }
}

//! The arguments of an intercepted call, read from the saved registers and the stack.
//!
//! They are read only if the version of cuSPARSE is known, since other versions may have functions with
//! other signatures than those written here.

use std::ffi::{c_int, c_void};

/// Saved argument registers and stack of an intercepted call. All arguments of the functions of this module
/// are integers and pointers.
#[derive(Clone, Copy)]
pub struct Frame {
    saved: *const u64,
    /// Number of arguments; further ones read as 0.
    count: usize,
}

impl Frame {
    /// Creates the frame of a call.
    ///
    /// # Safety
    /// `saved` is `entry::route`'s save area, unchanged until the call is forwarded or answered; the program
    /// has passed as many arguments as are asked for.
    pub unsafe fn new(saved: *const u64) -> Self {
        Frame { saved, count: usize::MAX }
    }

    /// Returns argument number `at`, counted from 0, from its register or its word of the stack.
    fn word(self, at: usize) -> u64 {
        if at >= self.count {
            return 0;
        }
        // `entry::route` saves six registers, the low 64 bits of xmm0-7, and the frame pointer; then come
        // the return address and the arguments on the stack.
        #[cfg(target_arch = "x86_64")]
        let place = if at < 6 { at } else { 16 + at - 6 };
        // `entry::route` saves the frame pointer and the return address, x0 to x7, and d0 to d7; then come
        // the arguments on the stack.
        #[cfg(target_arch = "aarch64")]
        let place = if at < 8 { 2 + at } else { 18 + at - 8 };
        // SAFETY: the promise of `new`.
        unsafe { self.saved.add(place).read() }
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

/// Type of an argument: an integer or a pointer.
trait Argument {
    /// Reads argument number `at`.
    fn read(frame: Frame, at: usize) -> Self;
}

impl Argument for c_int {
    fn read(frame: Frame, at: usize) -> Self {
        frame.int(at)
    }
}

impl<T> Argument for *const T {
    fn read(frame: Frame, at: usize) -> Self {
        frame.pointer(at)
    }
}

impl<T> Argument for *mut T {
    fn read(frame: Frame, at: usize) -> Self {
        frame.pointer(at)
    }
}

/// Defines the arguments of functions, in the order of their signatures, and the call of the real function.
macro_rules! arguments {
    ($($(#[$doc:meta])* $name:ident { $($field:ident: $type:ty,)* })*) => { $(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub struct $name { $(pub $field: $type,)* }

        impl From<Frame> for $name {
            fn from(frame: Frame) -> Self {
                let mut numbers = 0..;
                let mut next = || numbers.next().unwrap_or(0);
                $name { $($field: Argument::read(frame, next()),)* }
            }
        }

        impl $name {
            /// Calls the real function with these arguments.
            ///
            /// # Safety
            /// `address` is that of a function with this signature, and the arguments are those of a call to it.
            pub unsafe fn call(&self, address: *const c_void) -> c_int {
                // SAFETY: the caller's promise.
                let real: extern "C" fn($($type),*) -> c_int = unsafe { std::mem::transmute(address) };
                real($(self.$field),*)
            }
        }
    )* };
}

arguments! {
    /// Arguments of `cusparseSpMV` or `cusparseSpMV_bufferSize`. `last` is the buffer of the former, and the
    /// address of the size for the latter.
    SpmvArguments {
        handle: Object,
        op: c_int,
        alpha: *const c_void,
        a: Object,
        x: Object,
        beta: *const c_void,
        y: Object,
        compute: c_int,
        algorithm: c_int,
        last: *mut c_void,
    }

    /// Arguments of `cusparseSpMM` or `cusparseSpMM_bufferSize`. `last` is the buffer of the former, and the
    /// address of the size for the latter.
    SpmmArguments {
        handle: Object,
        op_a: c_int,
        op_b: c_int,
        alpha: *const c_void,
        a: Object,
        b: Object,
        beta: *const c_void,
        c: Object,
        compute: c_int,
        algorithm: c_int,
        last: *mut c_void,
    }

    /// Arguments of the steps of `cusparseSpGEMM`. `size` and `buffer` are those of `_workEstimation` and
    /// `_compute`, and the third size and buffer of `_estimateMemory`, whose float argument is in a register
    /// of its own and is not counted; `_copy` has neither, and they must not be used.
    SpgemmArguments {
        handle: Object,
        op_a: c_int,
        op_b: c_int,
        alpha: *const c_void,
        a: Object,
        b: Object,
        beta: *const c_void,
        c: Object,
        compute: c_int,
        algorithm: c_int,
        descriptor: Object,
        size: *mut usize,
        buffer: *mut c_void,
    }
}

impl SpgemmArguments {
    /// Reads the arguments of a step; `has_buffer` tells whether it has a size and a buffer.
    pub fn new(frame: Frame, has_buffer: bool) -> Self {
        Frame { count: if has_buffer { 13 } else { 11 }, ..frame }.into()
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
    Argument::read(frame, at)
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

/// Raises the buffer size that cuSPARSE has written to `size` to at least `least` bytes, and returns it.
///
/// # Safety
/// `size` is NULL, or points to a size that cuSPARSE has written.
pub unsafe fn raise(size: *mut c_void, least: usize) -> usize {
    let size = size.cast::<usize>();
    if size.is_null() {
        return least;
    }
    // SAFETY: the caller's promise.
    unsafe {
        let raised = size.read_unaligned().max(least);
        size.write_unaligned(raised);
        raised
    }
}

//! Memory for descriptors: slices of host memory, and arrays of a handle's backend.

use std::marker::PhantomData;
use std::ops::Range;

use bytemuck::Pod;
use libc::c_void;

use super::{check, Session};
use tarsia::capi::memory;
use tarsia::facade::{BackendKind, DataType, Element, Error, PointerMode, Result};

/// Borrowed elements that a call may read.
#[derive(Debug)]
pub struct View<'a, T> {
    pub(super) pointer: *const T,
    pub(super) len: usize,
    pub(super) place: Place,
    life: PhantomData<&'a [T]>,
}

impl<T> Clone for View<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for View<'_, T> {}

/// Borrowed elements that a call may write.
#[derive(Debug)]
pub struct ViewMut<'a, T> {
    pub(super) pointer: *mut T,
    pub(super) len: usize,
    pub(super) place: Place,
    life: PhantomData<&'a mut [T]>,
}

/// Location of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// The program's own memory, as a slice.
    Slice,
    /// Memory from `tarsiaMalloc` of a backend.
    Of(BackendKind),
}

impl Place {
    fn is_device(self) -> bool {
        self == Place::Of(BackendKind::Cuda)
    }

    /// Returns an error for memory that the session's backend cannot reach: the processor would fault, or the
    /// device would write to a slice that is no longer borrowed.
    pub(super) fn require(self, name: &str, session: &Session) -> Result<()> {
        if self.is_device() == (session.kind == BackendKind::Cuda) {
            return Ok(());
        }
        let (is, wants) = if self.is_device() { ("device", "host") } else { ("host", "device") };
        let backend = session.kind.c_name();
        Err(Error::invalid(name, format!("it is {is} memory, {backend} works on {wants} memory")))
    }

    /// Like `require`, for arrays that analysis reads: refuses device memory on the host only. Host memory is
    /// passed to every backend, since the library must recognise it itself.
    pub(super) fn require_readable(self, name: &str, session: &Session) -> Result<()> {
        if self.is_device() {
            self.require(name, session)
        } else {
            Ok(())
        }
    }

    /// Combines the locations of several arrays: device memory if any of them is.
    pub(super) fn with(self, other: Place) -> Place {
        if other.is_device() {
            other
        } else {
            self
        }
    }
}

impl<'a, T> View<'a, T> {
    pub(super) fn void(&self) -> *const c_void {
        self.pointer.cast()
    }

    /// Returns the number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the address of the first element, which is an address of the backend.
    pub fn as_ptr(&self) -> *const T {
        self.pointer
    }
}

impl<'a, T: Pod> View<'a, T> {
    /// Reinterprets the same bytes as elements of another type; panics unless they are whole elements that
    /// begin at a multiple of its alignment.
    pub fn cast<U: Pod>(self) -> View<'a, U> {
        let (pointer, len) =
            (self.pointer.cast(), elements::<U>(self.pointer.addr(), self.len * size_of::<T>()));
        View { pointer, len, place: self.place, life: PhantomData }
    }
}

impl<'a, T: Pod> ViewMut<'a, T> {
    /// Reinterprets the same bytes as elements of another type, to write; panics where [`View::cast`] does.
    pub fn cast<U: Pod>(self) -> ViewMut<'a, U> {
        let (pointer, len) =
            (self.pointer.cast(), elements::<U>(self.pointer.addr(), self.len * size_of::<T>()));
        ViewMut { pointer, len, place: self.place, life: PhantomData }
    }
}

/// Returns the number of elements in `bytes` bytes at an address.
fn elements<U>(address: usize, bytes: usize) -> usize {
    assert!(address % align_of::<U>() == 0, "{address:#x} is not a multiple of {}", align_of::<U>());
    assert!(bytes % size_of::<U>() == 0, "{bytes} bytes are no whole elements of {}", size_of::<U>());
    bytes / size_of::<U>()
}

impl<'a, T> ViewMut<'a, T> {
    pub(super) fn void(&self) -> *mut c_void {
        self.pointer.cast()
    }

    /// Returns the number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the address of the first element, which is an address of the backend.
    pub fn as_mut_ptr(&self) -> *mut T {
        self.pointer
    }
}

mod sealed {
    pub trait Sealed {}
    /// Separate from `Sealed`: every element is a scalar, and for the compiler a borrowed value might be an
    /// element, too.
    pub trait SealedScalar {}
}
use sealed::{Sealed, SealedScalar};

/// Memory that a call may read: a slice of host memory, or an [`Array`].
pub trait Memory<'a>: Sealed {
    /// Type of the elements.
    type Item: 'a;
    /// Returns the elements, to read.
    fn view(self) -> View<'a, Self::Item>;
}

/// Memory that a call may write: a slice of host memory, or an [`Array`].
pub trait MemoryMut<'a>: Sealed {
    /// Type of the elements.
    type Item: 'a;
    /// Returns the elements, to write.
    fn view_mut(self) -> ViewMut<'a, Self::Item>;
}

macro_rules! slices {
    ($([$($generic:tt)*] $ty:ty;)*) => { $(
        impl<'a, T: 'a, $($generic)*> Sealed for &'a $ty {}
        impl<'a, T: 'a, $($generic)*> Memory<'a> for &'a $ty {
            type Item = T;
            fn view(self) -> View<'a, T> {
                View { pointer: self.as_ptr(), len: self.len(), place: Place::Slice, life: PhantomData }
            }
        }
        impl<'a, T: 'a, $($generic)*> Sealed for &'a mut $ty {}
        impl<'a, T: 'a, $($generic)*> MemoryMut<'a> for &'a mut $ty {
            type Item = T;
            fn view_mut(self) -> ViewMut<'a, T> {
                let (pointer, len) = (self.as_mut_ptr(), self.len());
                ViewMut { pointer, len, place: Place::Slice, life: PhantomData }
            }
        }
    )* };
}
slices! {
    [] [T];
    [] Vec<T>;
    [const N: usize] [T; N];
}

impl<'a, T: 'a> Sealed for View<'a, T> {}
impl<'a, T: 'a> Memory<'a> for View<'a, T> {
    type Item = T;
    fn view(self) -> View<'a, T> {
        self
    }
}

impl<'a, T: 'a> Sealed for ViewMut<'a, T> {}
impl<'a, T: 'a> MemoryMut<'a> for ViewMut<'a, T> {
    type Item = T;
    fn view_mut(self) -> ViewMut<'a, T> {
        self
    }
}

impl<T: Pod> Sealed for &Array<'_, T> {}
impl<'a, T: Pod> Memory<'a> for &'a Array<'_, T> {
    type Item = T;
    fn view(self) -> View<'a, T> {
        self.part(0..self.len)
    }
}

impl<T: Pod> Sealed for &mut Array<'_, T> {}
impl<'a, T: Pod> MemoryMut<'a> for &'a mut Array<'_, T> {
    type Item = T;
    fn view_mut(self) -> ViewMut<'a, T> {
        self.part_mut(0..self.len)
    }
}

/// A value of alpha or beta: a number, or, in pointer mode DEVICE, a view of the memory that holds it.
pub trait Scalar: SealedScalar {
    /// Type of the number.
    const TYPE: DataType;
    /// Pointer mode for which this scalar is.
    const MODE: PointerMode;
    /// Returns the address of the number, valid while it is borrowed.
    fn address(&self) -> *const c_void;
}

impl<T: Element> SealedScalar for T {}
impl<T: Element> Scalar for T {
    const TYPE: DataType = <T as Element>::TYPE;
    const MODE: PointerMode = PointerMode::Host;
    fn address(&self) -> *const c_void {
        std::ptr::from_ref(self).cast()
    }
}

impl<T: Element> SealedScalar for View<'_, T> {}
impl<T: Element> Scalar for View<'_, T> {
    const TYPE: DataType = T::TYPE;
    const MODE: PointerMode = PointerMode::Device;
    fn address(&self) -> *const c_void {
        assert!(self.len > 0, "an empty view has no number");
        self.void()
    }
}

/// Memory of a handle's backend, from `tarsiaMalloc`. Copies to and from it are in the order of that handle's
/// stream; the program must see to it that work on other streams is done.
#[derive(Debug)]
pub struct Array<'s, T: Pod> {
    session: &'s Session,
    pointer: *mut T,
    len: usize,
    /// Bytes of the memory in front of the elements.
    offset: usize,
}

// SAFETY: the memory belongs to the array alone, wherever it is, and is reached
// by calls of the library only, which any thread may make.
unsafe impl<T: Pod + Send> Send for Array<'_, T> {}
// SAFETY: as above; shared, it is only read.
unsafe impl<T: Pod + Sync> Sync for Array<'_, T> {}

impl Session {
    /// Copies the elements to new memory of the backend.
    pub fn upload<T: Pod>(&self, values: &[T]) -> Result<Array<'_, T>> {
        self.upload_behind(0, values)
    }

    /// Copies the elements to new memory of the backend, so many bytes behind the aligned address at which it begins; panics
    /// if that is no multiple of the elements' alignment.
    pub fn upload_behind<T: Pod>(&self, offset: usize, values: &[T]) -> Result<Array<'_, T>> {
        assert!(offset % align_of::<T>() == 0, "{offset} bytes are no multiple of {}", align_of::<T>());
        // At least one byte, so that an empty array has an address too.
        let bytes = offset.saturating_add(size_of_val(values)).max(1);
        let mut pointer = std::ptr::null_mut();
        // SAFETY: the answer is valid for a write.
        check(unsafe { memory::tarsiaMalloc(self.raw(), &mut pointer, bytes) })?;
        let pointer = pointer.wrapping_byte_add(offset).cast();
        let mut array = Array { session: self, pointer, len: values.len(), offset };
        array.write(0, values)?;
        Ok(array)
    }
}

/// Uninitialised memory of a handle's backend: scratch space for others.
#[derive(Debug)]
pub struct Scratch<'s> {
    session: &'s Session,
    pointer: *mut c_void,
    bytes: usize,
}

impl Session {
    /// Calls `tarsiaMalloc` for `bytes` bytes, or one if that is 0.
    pub fn scratch(&self, bytes: usize) -> Result<Scratch<'_>> {
        let mut pointer = std::ptr::null_mut();
        // SAFETY: the answer is valid for a write.
        check(unsafe { memory::tarsiaMalloc(self.raw(), &mut pointer, bytes.max(1)) })?;
        Ok(Scratch { session: self, pointer, bytes })
    }
}

impl Scratch<'_> {
    /// Returns its size in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns its address, which is an address of the backend.
    pub fn as_mut_ptr(&self) -> *mut c_void {
        self.pointer
    }
}

impl Scratch<'_> {
    /// Copies the first `values.len()` elements to the host; panics if there are fewer.
    ///
    /// # Safety
    /// These bytes have been written, with valid values of T.
    pub unsafe fn read<T: Pod>(&self, values: &mut [T]) -> Result<()> {
        let bytes = size_of_val(values);
        assert!(bytes <= self.bytes, "{bytes} of {} bytes", self.bytes);
        // SAFETY: both hold that many bytes; the caller vouches for what they are.
        check(unsafe {
            memory::tarsiaMemcpyToHost(self.session.raw(), values.as_mut_ptr().cast(), self.pointer, bytes)
        })
    }
}

impl Drop for Scratch<'_> {
    fn drop(&mut self) {
        // SAFETY: tarsiaMalloc gave it; tarsiaFree delays its reuse until enqueued work is done.
        unsafe { memory::tarsiaFree(self.session.raw(), self.pointer) };
    }
}

impl<T: Pod> Array<'_, T> {
    /// Returns the number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Overwrites the elements from the `at`-th on.
    pub fn write(&mut self, at: usize, values: &[T]) -> Result<()> {
        let part = self.part_mut(at..at.saturating_add(values.len()));
        let (dst, bytes) = (part.void(), size_of_val(values));
        // SAFETY: both hold that many bytes; the array is borrowed exclusively.
        check(unsafe { memory::tarsiaMemcpyToDevice(self.session.raw(), dst, values.as_ptr().cast(), bytes) })
    }

    /// Copies `values.len()` elements from the `at`-th on to the host.
    pub fn read(&self, at: usize, values: &mut [T]) -> Result<()> {
        let part = self.part(at..at.saturating_add(values.len()));
        let (src, bytes) = (part.void(), size_of_val(values));
        // SAFETY: as in `download_to`.
        check(unsafe {
            memory::tarsiaMemcpyToHost(self.session.raw(), values.as_mut_ptr().cast(), src, bytes)
        })
    }

    /// Copies the first `values.len()` elements to the host.
    pub fn download_to(&self, values: &mut [T]) -> Result<()> {
        let (src, bytes) = (self.part(0..values.len()).void(), size_of_val(values));
        // SAFETY: both hold that many bytes, all of which have been written, and
        // any of which make a T.
        check(unsafe {
            memory::tarsiaMemcpyToHost(self.session.raw(), values.as_mut_ptr().cast(), src, bytes)
        })
    }

    /// Copies all elements to host memory.
    pub fn download(&self) -> Result<Vec<T>> {
        let mut out = vec![T::zeroed(); self.len];
        self.download_to(&mut out)?;
        Ok(out)
    }

    /// Returns a part of the array, to read; panics if `range` is not inside it.
    pub fn part(&self, range: Range<usize>) -> View<'_, T> {
        let (at, len) = self.bounds(&range);
        let pointer = self.pointer.wrapping_add(at).cast_const();
        View { pointer, len, place: Place::Of(self.session.kind), life: PhantomData }
    }

    /// Returns a part of the array, to write; panics if `range` is not inside it.
    pub fn part_mut(&mut self, range: Range<usize>) -> ViewMut<'_, T> {
        let (at, len) = self.bounds(&range);
        let pointer = self.pointer.wrapping_add(at);
        ViewMut { pointer, len, place: Place::Of(self.session.kind), life: PhantomData }
    }

    fn bounds(&self, range: &Range<usize>) -> (usize, usize) {
        let is_part = range.start <= range.end && range.end <= self.len;
        assert!(is_part, "{range:?} is no part of an array of {} elements", self.len);
        (range.start, range.end - range.start)
    }
}

impl<T: Pod> Drop for Array<'_, T> {
    fn drop(&mut self) {
        // SAFETY: tarsiaMalloc gave it, and nothing borrows it any more.
        unsafe { memory::tarsiaFree(self.session.raw(), self.pointer.wrapping_byte_sub(self.offset).cast()) };
    }
}

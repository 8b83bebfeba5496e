//! The backend under test and its memory: calls of the library get copies of the test's arrays in that
//! memory, and results are copied back. For the host backend the copies are in host memory.

use std::cell::Cell;
use std::marker::PhantomData;
use std::ops::Range;
use std::sync::OnceLock;

use bytemuck::Pod;
use client::{check, Array, DenseLayout, MemoryMut, Plan, Scalar, Session, View, ViewMut};
use matrices::SplitMix64;
use tarsia::capi::memory::tarsiaMemcpyToDevice;
use tarsia::facade::{BackendKind, Element, Error, PointerMode, Result, Status};

use super::dense::Dense;
use super::number::Value;

/// Returns the backend under test: that of TARSIA_TEST_BACKEND (host or cuda), or else the host.
pub fn backend() -> BackendKind {
    match std::env::var("TARSIA_TEST_BACKEND").as_deref() {
        Err(std::env::VarError::NotPresent) | Ok("host") => BackendKind::Host,
        Ok("cuda") => BackendKind::Cuda,
        other => panic!("TARSIA_TEST_BACKEND is {other:?}; it may be host or cuda"),
    }
}

/// Returns the reference and the backend under test. The reference is first, so that faults which both have
/// are reported of the reference.
pub fn backends() -> [BackendKind; 2] {
    [BackendKind::Reference, backend()]
}

/// Returns the bytes of workspace that every handle has from the start.
pub fn first_workspace(kind: BackendKind) -> usize {
    if kind == BackendKind::Cuda {
        tarsia::facade::ONCE_WORKSPACE_BYTES
    } else {
        0
    }
}

/// Returns the handle through which arrays are copied. It lives as long as the process, so that it outlives
/// all arrays.
pub fn memory(kind: BackendKind) -> &'static Session {
    static SESSIONS: [OnceLock<Session>; 3] = [const { OnceLock::new() }; 3];
    let which = match kind {
        BackendKind::Host | BackendKind::Auto => 0,
        BackendKind::Reference => 1,
        BackendKind::Cuda => 2,
    };
    let create = || Session::new(kind).unwrap_or_else(|error| panic!("no {}: {error}", kind.c_name()));
    SESSIONS[which].get_or_init(create)
}

/// Copies values to the backend's memory.
pub fn upload<T: Pod>(kind: BackendKind, values: &[T]) -> Array<'static, T> {
    memory(kind).upload(values).expect("there is memory for a test's array")
}

/// Bytes of the guards around every copy: whole cache lines, so that they do not change its alignment.
const GUARD: usize = 64;

/// Alignment of copies. The library requires arrays to be aligned to their elements, or to the parts of
/// complex elements; the unit below is the size of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// All copies begin at a multiple of a cache line.
    Lines,
    /// All copies begin this many units behind such a multiple.
    Behind(usize),
    /// Half of the copies begin at such a multiple, the others anywhere behind one, by this seed. Copies of
    /// one length are placed alike, so that repeated runs give the same bits.
    Anywhere(u64),
}

thread_local! {
    /// Placement of the copies that this thread makes.
    static PLACEMENT: Cell<Placement> = const { Cell::new(Placement::Lines) };
}

/// Runs a test with this placement of copies.
pub fn placed<R>(placement: Placement, test: impl FnOnce() -> R) -> R {
    /// Restores the placement, also if the test panics.
    struct Before(Placement);
    impl Drop for Before {
        fn drop(&mut self) {
            PLACEMENT.set(self.0);
        }
    }
    let _before = Before(PLACEMENT.replace(placement));
    test()
}

/// Returns the bytes between a multiple of a cache line and a copy of `len` elements with this alignment.
fn shift(len: usize, align: usize) -> usize {
    let units = match PLACEMENT.get() {
        Placement::Lines => 0,
        Placement::Behind(units) => units,
        Placement::Anywhere(seed) => {
            let mut rng = SplitMix64::new(seed ^ (len as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15));
            let most = (GUARD / align) as u64;
            if rng.below(2) == 0 {
                0
            } else {
                rng.below(most) as usize
            }
        }
    };
    units * align
}

/// Copy of an array in the backend's memory, with guards around it.
pub struct Staged<T: Pod> {
    /// Guard, bytes that the placement adds, elements, guard.
    bytes: Array<'static, u8>,
    /// Position at which the elements begin.
    at: usize,
    len: usize,
    elements: PhantomData<T>,
}

/// Byte of the guards. All bits are set, which is −1 or NaN in any type.
const GUARDED: u8 = 0xff;

impl<T: Pod> Staged<T> {
    /// Copies values to the backend's memory.
    pub fn new(kind: BackendKind, values: &[T]) -> Self {
        let at = GUARD + shift(values.len(), align_of::<T>());
        let memory = [&vec![GUARDED; at], bytemuck::cast_slice(values), &[GUARDED; GUARD]].concat();
        Staged { bytes: upload(kind, &memory), at, len: values.len(), elements: PhantomData }
    }

    /// Returns the range of bytes of these elements.
    fn bytes_of(&self, range: Range<usize>) -> Range<usize> {
        assert!(range.end <= self.len, "{range:?} of {} elements", self.len);
        self.at + range.start * size_of::<T>()..self.at + range.end * size_of::<T>()
    }

    /// Borrows a part of the copy.
    pub fn part(&self, range: Range<usize>) -> View<'_, T> {
        self.bytes.part(self.bytes_of(range)).cast()
    }

    /// Borrows the whole copy.
    pub fn view(&self) -> View<'_, T> {
        self.part(0..self.len)
    }

    /// Borrows a part of the copy mutably.
    pub fn part_mut(&mut self, range: Range<usize>) -> ViewMut<'_, T> {
        let range = self.bytes_of(range);
        self.bytes.part_mut(range).cast()
    }

    /// Borrows the whole copy mutably.
    pub fn view_mut(&mut self) -> ViewMut<'_, T> {
        self.part_mut(0..self.len)
    }

    /// Overwrites the elements with bytes of 0xff, even while they are borrowed.
    pub fn spoil(&self, session: &Session) {
        let view = self.bytes.part(self.bytes_of(0..self.len));
        let bytes = vec![GUARDED; view.len()];
        // SAFETY: the backend's memory has that many bytes. A borrower is told that they may go.
        check(unsafe {
            let to = view.as_ptr().cast_mut().cast();
            tarsiaMemcpyToDevice(session.raw(), to, bytes.as_ptr().cast(), bytes.len())
        })
        .unwrap();
    }

    /// Returns the elements; an error if the guards were written.
    pub fn download(&self) -> Result<Vec<T>> {
        let mut values = vec![T::zeroed(); self.len];
        self.take_back(&mut values)?;
        Ok(values)
    }

    /// Copies the elements back to `values`; an error if the guards were written.
    pub fn take_back(&self, values: &mut [T]) -> Result<()> {
        let memory = self.bytes.download()?;
        let elements = self.bytes_of(0..self.len);
        let guards = [&memory[..elements.start], &memory[elements.end..]];
        bytemuck::cast_slice_mut(values).copy_from_slice(&memory[elements]);
        if guards.concat().iter().all(|&byte| byte == GUARDED) {
            return Ok(());
        }
        let text = format!("memory outside of an array of {} elements was written: {guards:x?}", self.len);
        Err(Error::new(Status::InternalError, text))
    }
}

/// Array that the library reads, possibly within larger memory of the test.
pub trait Operand {
    /// Type of an element.
    type Item: Pod;
    /// Returns the memory.
    fn memory(&self) -> &[Self::Item];
    /// Returns the range of the elements in it.
    fn range(&self) -> Range<usize> {
        0..self.memory().len()
    }
    /// Copies the memory to a backend.
    fn stage(&self, kind: BackendKind) -> Staged<Self::Item> {
        Staged::new(kind, self.memory())
    }
}

/// Array that the library writes.
pub trait OperandMut: Operand {
    /// Returns the memory.
    fn memory_mut(&mut self) -> &mut [Self::Item];
}

macro_rules! slices {
    ($([$($generic:tt)*] $ty:ty;)*) => { $(
        impl<T: Pod, $($generic)*> Operand for $ty {
            type Item = T;
            fn memory(&self) -> &[T] {
                self
            }
        }
        impl<T: Pod, $($generic)*> OperandMut for $ty {
            fn memory_mut(&mut self) -> &mut [T] {
                self
            }
        }
    )* };
}
slices! {
    [] [T];
    [] Vec<T>;
    [const N: usize] [T; N];
}

/// alpha and beta in the memory that the handle's pointer mode says.
pub enum Scalars<S: Pod> {
    /// In host memory.
    Host(S, S),
    /// In the backend's memory.
    Device(Staged<S>),
}

impl<S: Element> Scalars<S> {
    /// Stores alpha and beta for a call with the session's handle.
    pub fn new(session: &Session, alpha: S, beta: S) -> Result<Self> {
        Ok(match session.pointer_mode()? {
            PointerMode::Host => Scalars::Host(alpha, beta),
            PointerMode::Device => Scalars::Device(Staged::new(session.kind(), &[alpha, beta])),
        })
    }

    /// Returns the addresses of alpha and beta, which are valid while this is borrowed.
    pub fn addresses(&self) -> [*const libc::c_void; 2] {
        match self {
            Scalars::Host(alpha, beta) => [alpha.address(), beta.address()],
            Scalars::Device(array) => [array.part(0..1).address(), array.part(1..2).address()],
        }
    }
}

/// Calls of the client with the test's arrays.
pub trait Staging {
    /// Calls `tarsiaSpMV` and waits for the result.
    fn spmv<S: Element, X: Operand + ?Sized, Y: OperandMut + ?Sized>(
        &self,
        session: &Session,
        alpha: S,
        x: &X,
        beta: S,
        y: &mut Y,
    ) -> Result<()>
    where
        X::Item: Element,
        Y::Item: Element;

    /// Calls `tarsiaSpMM` and waits for the result.
    fn spmm<S: Element, X: Value, Y: Value>(
        &self,
        session: &Session,
        alpha: S,
        b: &Dense<X>,
        beta: S,
        c: &mut Dense<Y>,
    ) -> Result<()>;
}

/// Runs a call on a copy of the array that it writes, waits, and copies the array back, whatever the call
/// returned.
pub fn written<Y: OperandMut + ?Sized>(
    session: &Session,
    y: &mut Y,
    call: impl FnOnce(ViewMut<'_, Y::Item>) -> Result<()>,
) -> Result<()> {
    let (range, mut staged) = (y.range(), y.stage(session.kind()));
    let result = call(staged.part_mut(range));
    // If another thread has destroyed the handle in the meantime, that has waited.
    let waited = if result.is_ok() { session.synchronize() } else { Ok(()) };
    staged.take_back(y.memory_mut())?;
    result.and(waited.or_else(|error| match error.status {
        Status::NotInitialized => Ok(()),
        _ => Err(error),
    }))
}

impl Staging for Plan<'_> {
    fn spmv<S: Element, X: Operand + ?Sized, Y: OperandMut + ?Sized>(
        &self,
        session: &Session,
        alpha: S,
        x: &X,
        beta: S,
        y: &mut Y,
    ) -> Result<()>
    where
        X::Item: Element,
        Y::Item: Element,
    {
        let (x_range, x) = (x.range(), x.stage(session.kind()));
        let x = x.part(x_range);
        let scalars = Scalars::new(session, alpha, beta)?;
        written(session, y, |y| match &scalars {
            Scalars::Host(alpha, beta) => self.run_spmv(session, *alpha, x, *beta, y),
            Scalars::Device(array) => self.run_spmv(session, array.part(0..1), x, array.part(1..2), y),
        })
    }

    fn spmm<S: Element, X: Value, Y: Value>(
        &self,
        session: &Session,
        alpha: S,
        b: &Dense<X>,
        beta: S,
        c: &mut Dense<Y>,
    ) -> Result<()> {
        let staged = b.values.stage(session.kind());
        let (b, shape): (_, DenseLayout) = ((staged.part(b.values.range()), b.shape), c.shape);
        let scalars = Scalars::new(session, alpha, beta)?;
        written(session, &mut c.values, |c| {
            let c = (c.view_mut(), shape);
            match &scalars {
                Scalars::Host(alpha, beta) => self.run_spmm(session, *alpha, b, *beta, c),
                Scalars::Device(array) => self.run_spmm(session, array.part(0..1), b, array.part(1..2), c),
            }
        })
    }
}

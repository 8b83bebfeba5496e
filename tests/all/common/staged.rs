//! The backend under test, and the memory that it works on: a call of the
//! library gets copies of the test's arrays in that backend's memory, and what
//! it wrote is copied back. On the host the same happens in host memory.

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

/// The backend under test: what TARSIA_TEST_BACKEND says, host or cuda; the
/// host without it.
pub fn backend() -> BackendKind {
    match std::env::var("TARSIA_TEST_BACKEND").as_deref() {
        Err(std::env::VarError::NotPresent) | Ok("host") => BackendKind::Host,
        Ok("cuda") => BackendKind::Cuda,
        other => panic!("TARSIA_TEST_BACKEND is {other:?}; it may be host or cuda"),
    }
}

/// The reference and the backend under test; the reference first, so that a
/// fault of the other shows as one of the other.
pub fn backends() -> [BackendKind; 2] {
    [BackendKind::Reference, backend()]
}

/// Bytes of workspace that every handle has before anything is prepared.
pub fn first_workspace(kind: BackendKind) -> usize {
    if kind == BackendKind::Cuda {
        tarsia::facade::ONCE_WORKSPACE_BYTES
    } else {
        0
    }
}

/// The handle through which arrays are copied. It lives as long as the process,
/// so that arrays need no handle that outlives them.
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

/// A copy in the backend's memory.
pub fn upload<T: Pod>(kind: BackendKind, values: &[T]) -> Array<'static, T> {
    memory(kind).upload(values).expect("there is memory for a test's array")
}

/// Bytes around every copy: whole cache lines, so that what is aligned to a
/// line stays so.
const GUARD: usize = 64;

/// Where copies begin. The library asks no more of an array than that it is aligned to its
/// elements, of complex numbers to their parts; this is the unit below.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// All at multiples of a cache line.
    Lines,
    /// All so many units behind one.
    Behind(usize),
    /// Half of them at one, the others anywhere behind, as this seed says: all of one length alike, so that
    /// what is run twice gives the same bits.
    Anywhere(u64),
}

thread_local! {
    /// Where this thread places the copies that it makes.
    static PLACEMENT: Cell<Placement> = const { Cell::new(Placement::Lines) };
}

/// Runs a test whose copies are placed so.
pub fn placed<R>(placement: Placement, test: impl FnOnce() -> R) -> R {
    /// Puts it back, also when the test panics.
    struct Before(Placement);
    impl Drop for Before {
        fn drop(&mut self) {
            PLACEMENT.set(self.0);
        }
    }
    let _before = Before(PLACEMENT.replace(placement));
    test()
}

/// Bytes between a line and a copy of so many elements that are aligned to so many bytes.
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

/// A copy of an array in the backend's memory, with guards around it.
pub struct Staged<T: Pod> {
    /// Guard, what the placement adds, elements, guard.
    bytes: Array<'static, u8>,
    /// Where the elements begin.
    at: usize,
    len: usize,
    elements: PhantomData<T>,
}

/// All bits set: −1, or NaN of any type.
const GUARDED: u8 = 0xff;

impl<T: Pod> Staged<T> {
    /// A copy.
    pub fn new(kind: BackendKind, values: &[T]) -> Self {
        let at = GUARD + shift(values.len(), align_of::<T>());
        let memory = [&vec![GUARDED; at], bytemuck::cast_slice(values), &[GUARDED; GUARD]].concat();
        Staged { bytes: upload(kind, &memory), at, len: values.len(), elements: PhantomData }
    }

    /// Bytes of elements in the memory.
    fn bytes_of(&self, range: Range<usize>) -> Range<usize> {
        assert!(range.end <= self.len, "{range:?} of {} elements", self.len);
        self.at + range.start * size_of::<T>()..self.at + range.end * size_of::<T>()
    }

    /// A part of it.
    pub fn part(&self, range: Range<usize>) -> View<'_, T> {
        self.bytes.part(self.bytes_of(range)).cast()
    }

    /// All of it.
    pub fn view(&self) -> View<'_, T> {
        self.part(0..self.len)
    }

    /// A part of it, to write.
    pub fn part_mut(&mut self, range: Range<usize>) -> ViewMut<'_, T> {
        let range = self.bytes_of(range);
        self.bytes.part_mut(range).cast()
    }

    /// All of it, to write.
    pub fn view_mut(&mut self) -> ViewMut<'_, T> {
        self.part_mut(0..self.len)
    }

    /// Overwrites the elements with bytes of 0xff, whoever has borrowed them.
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

    /// The elements; an error if the guards were written.
    pub fn download(&self) -> Result<Vec<T>> {
        let mut values = vec![T::zeroed(); self.len];
        self.take_back(&mut values)?;
        Ok(values)
    }

    /// Copies it back; an error if the guards were written.
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

/// What the library reads: elements somewhere in memory of the test.
pub trait Operand {
    /// An element.
    type Item: Pod;
    /// The memory.
    fn memory(&self) -> &[Self::Item];
    /// The elements in it.
    fn range(&self) -> Range<usize> {
        0..self.memory().len()
    }
    /// A copy of the memory.
    fn stage(&self, kind: BackendKind) -> Staged<Self::Item> {
        Staged::new(kind, self.memory())
    }
}

/// What the library writes.
pub trait OperandMut: Operand {
    /// The memory.
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

/// alpha and beta where the handle's pointer mode says that they are.
pub enum Scalars<S: Pod> {
    /// Numbers of the host.
    Host(S, S),
    /// The backend's memory.
    Device(Staged<S>),
}

impl<S: Element> Scalars<S> {
    /// (alpha, beta) for a call with the handle.
    pub fn new(session: &Session, alpha: S, beta: S) -> Result<Self> {
        Ok(match session.pointer_mode()? {
            PointerMode::Host => Scalars::Host(alpha, beta),
            PointerMode::Device => Scalars::Device(Staged::new(session.kind(), &[alpha, beta])),
        })
    }

    /// Addresses, valid while this is borrowed.
    pub fn addresses(&self) -> [*const libc::c_void; 2] {
        match self {
            Scalars::Host(alpha, beta) => [alpha.address(), beta.address()],
            Scalars::Device(array) => [array.part(0..1).address(), array.part(1..2).address()],
        }
    }
}

/// The client's calls, with arrays of the test.
pub trait Staging {
    /// `tarsiaSpMV`, finished.
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

    /// `tarsiaSpMM`, finished.
    fn spmm<S: Element, X: Value, Y: Value>(
        &self,
        session: &Session,
        alpha: S,
        b: &Dense<X>,
        beta: S,
        c: &mut Dense<Y>,
    ) -> Result<()>;
}

/// Runs a call on a copy of what it writes, waits, and copies back, whatever
/// the call said.
pub fn written<Y: OperandMut + ?Sized>(
    session: &Session,
    y: &mut Y,
    call: impl FnOnce(ViewMut<'_, Y::Item>) -> Result<()>,
) -> Result<()> {
    let (range, mut staged) = (y.range(), y.stage(session.kind()));
    let result = call(staged.part_mut(range));
    // A handle that another thread has destroyed in the meantime has waited.
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

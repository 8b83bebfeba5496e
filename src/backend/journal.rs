//! What building an executor finds out and leaves behind, so that a later process builds the same
//! without finding it out again.
//!
//! Building is a fixed sequence of steps for a problem and a choice. [`record`] writes down, in the
//! order of the steps, what each one has found (numbers that kernels have counted, arrays that the
//! host has arranged) and at the end what is in the memory that stays. [`restore`] runs the same
//! steps, each of which takes its part of the record instead of doing its work. Steps ask for it
//! where they happen, in a few functions that all executors share: those do not know of it.
//!
//! The journal belongs to the thread that builds; a callback of the user's on the way, which may call
//! the library, finds none ([`suspended`]). Nothing is believed but the contents: a part that is not
//! the one that a step expects, or is left over, is an error.
//!
//! A part is a u64 with its number of bytes and its kind (the highest byte), and the bytes, filled up
//! to whole u64. Behind the last one are the numbers of the allocations that failed, u64 each, and how
//! many these are. All numbers are little endian.

use std::cell::{Cell, RefCell};
use std::mem::ManuallyDrop;
use std::sync::Arc;

use bytemuck::Pod;

use super::{Allocator, Buffer};
use crate::error::{Error, Result, Status};
use crate::types::Address;

/// What the thread's journal is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// There is none.
    None,
    /// Steps are written down.
    Recording,
    /// Steps are answered.
    Restoring,
}

/// What a part is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum Kind {
    /// Numbers that a step has found.
    Found = 1,
    /// An array of the host.
    Array = 2,
    /// What is in memory that stays.
    Contents = 3,
}

const WORD: usize = size_of::<u64>();
const KIND_SHIFT: u32 = 56;

/// The journal of a thread.
struct State {
    /// Parts, while they are recorded.
    parts: Vec<u8>,
    /// Parts that are left, while they are restored.
    rest: *const [u8],
    /// Memory that was allocated and is still there, in that order.
    live: Vec<(Address, usize)>,
    allocations: u64,
    /// Numbers of those that failed.
    failures: Vec<u64>,
    /// Memory that was there when it was recorded is missing.
    lacking: Option<Error>,
}

thread_local! {
    static MODE: Cell<Mode> = const { Cell::new(Mode::None) };
    /// Without a destructor, as [`Before`] puts back the `None` that it begins with: the C library ends
    /// the process where it has no memory to note one.
    static STATE: RefCell<ManuallyDrop<Option<State>>> = const { RefCell::new(ManuallyDrop::new(None)) };
}

/// Puts a journal in the place of the calling thread's; the one that was there.
fn replace(state: Option<State>) -> Option<State> {
    ManuallyDrop::into_inner(STATE.replace(ManuallyDrop::new(state)))
}

/// The mode of the calling thread.
#[inline]
pub fn mode() -> Mode {
    MODE.get()
}

/// Whether steps are answered and not done.
#[inline]
pub fn is_restoring() -> bool {
    MODE.get() == Mode::Restoring
}

/// Something that was recorded is not what is asked for.
fn misfit(what: &str) -> Error {
    Error::invalid("buffer", format!("it does not fit the plan: {what}"))
}

/// Puts the mode and the journal of before back, whatever happens.
struct Before(Mode, Option<State>);

impl Before {
    fn install(mode: Mode, state: State) -> Self {
        Before(MODE.replace(mode), replace(Some(state)))
    }
}

impl Drop for Before {
    fn drop(&mut self) {
        MODE.set(self.0);
        replace(self.1.take());
    }
}

/// Runs `f` with no journal: for what is a step as a whole, and for calls of the user's functions.
pub fn suspended<T>(f: impl FnOnce() -> T) -> T {
    struct Mute(Mode);
    impl Drop for Mute {
        fn drop(&mut self) {
            MODE.set(self.0);
        }
    }
    let _mute = Mute(MODE.replace(Mode::None));
    f()
}

fn with<T>(f: impl FnOnce(&mut State) -> Result<T>) -> Result<T> {
    STATE.with_borrow_mut(|state| match &mut **state {
        Some(state) => f(state),
        None => Err(Error::new(Status::InternalError, "journal: there is none")),
    })
}

impl State {
    fn new(rest: &[u8]) -> Self {
        State {
            parts: Vec::new(),
            rest,
            live: Vec::new(),
            allocations: 0,
            failures: Vec::new(),
            lacking: None,
        }
    }

    /// Room for a part at the end.
    fn push(&mut self, kind: Kind, bytes: usize) -> Result<&mut [u8]> {
        let padded = bytes.next_multiple_of(WORD);
        self.parts.try_reserve(WORD + padded).map_err(|_| Error::out_of_memory(padded))?;
        let head = bytes as u64 | (kind as u64) << KIND_SHIFT;
        self.parts.extend(head.to_le_bytes());
        let start = self.parts.len();
        self.parts.resize(start + padded, 0);
        Ok(&mut self.parts[start..start + bytes])
    }

    /// The next part.
    fn take(&mut self, kind: Kind) -> Result<&'static [u8]> {
        // SAFETY: [`restore`] borrows the bytes for as long as the state is there, and nobody keeps
        // what this returns any longer than the step.
        let rest: &'static [u8] = unsafe { &*self.rest };
        let Some((head, rest)) = rest.split_first_chunk::<WORD>() else {
            return Err(misfit("it ends before all is built"));
        };
        let head = u64::from_le_bytes(*head);
        let bytes = (head & ((1 << KIND_SHIFT) - 1)) as usize;
        if head >> KIND_SHIFT != kind as u64 {
            return Err(misfit("another step was recorded"));
        }
        let padded = bytes.checked_next_multiple_of(WORD).filter(|&padded| padded <= rest.len());
        let Some(padded) = padded else { return Err(misfit("it ends in the midst of an array")) };
        let (part, rest) = rest.split_at(padded);
        self.rest = rest;
        Ok(&part[..bytes])
    }
}

/// Runs `build` and writes its steps down, behind what is there.
pub fn record<T>(behind: Vec<u8>, build: impl FnOnce() -> Result<T>) -> Result<(T, Vec<u8>)> {
    let _before = Before::install(Mode::Recording, State { parts: behind, ..State::new(&[]) });
    let made = build()?;
    let State { mut parts, mut failures, .. } = replace(None).expect("it was installed above");
    failures.push(failures.len() as u64);
    parts.try_reserve(failures.len() * WORD).map_err(|_| Error::out_of_memory(failures.len() * WORD))?;
    failures.iter().for_each(|number| parts.extend(number.to_le_bytes()));
    Ok((made, parts))
}

/// Runs `build` with its steps answered by what [`record`] has written.
pub fn restore<T>(bytes: &[u8], build: impl FnOnce() -> Result<T>) -> Result<T> {
    let split = bytes.split_last_chunk::<WORD>().and_then(|(rest, count)| {
        let bytes = usize::try_from(u64::from_le_bytes(*count)).ok()?.checked_mul(WORD)?;
        rest.split_at_checked(rest.len().checked_sub(bytes)?)
    });
    let (parts, failures) = split.ok_or_else(|| misfit("its end is another"))?;
    let state = State { failures: numbers(failures), ..State::new(parts) };
    let _before = Before::install(Mode::Restoring, state);
    let made = build();
    with(|state| {
        let made = made.and_then(|made| match state.rest.len() {
            0 => Ok(made),
            rest => Err(misfit(&format!("{rest} bytes are left over"))),
        });
        // What went wrong after memory was missing comes of that.
        made.map_err(|error| state.lacking.take().unwrap_or(error))
    })
}

/// The elements of a part, which may be anywhere; fewer bytes than an element are dropped.
fn numbers<T: Pod>(part: &[u8]) -> Vec<T> {
    part.chunks_exact(size_of::<T>()).map(bytemuck::pod_read_unaligned).collect()
}

/// A step that finds numbers: `count` of them, if that is known.
pub fn found<T: Pod>(count: Option<usize>, find: impl FnOnce() -> Result<Vec<T>>) -> Result<Vec<T>> {
    match mode() {
        Mode::None => find(),
        Mode::Recording => {
            let found = find()?;
            let bytes = bytemuck::cast_slice(&found);
            with(|state| {
                state.push(Kind::Found, bytes.len())?.copy_from_slice(bytes);
                Ok(())
            })?;
            Ok(found)
        }
        Mode::Restoring => with(|state| {
            let part = state.take(Kind::Found)?;
            let fits = count.is_none_or(|count| part.len() == count * size_of::<T>());
            match fits && part.len() % size_of::<T>() == 0 {
                true => Ok(numbers(part)),
                false => Err(misfit("another number of counts was recorded")),
            }
        }),
    }
}

/// A step that finds one number.
pub fn found_one<T: Pod>(find: impl FnOnce() -> Result<T>) -> Result<T> {
    if mode() == Mode::None {
        return find();
    }
    Ok(found(Some(1), || Ok(vec![find()?]))?[0])
}

/// Something that a journal can hold.
pub trait Stored: Sized {
    /// Writes its parts.
    fn store(&self, to: &mut Recorder<'_>) -> Result<()>;
    /// Reads them, into memory of this allocator.
    fn load(from: &mut Reader<'_>, allocator: &Arc<Allocator>) -> Result<Self>;
    /// What it says of itself is so, as far as unchecked accesses rely on it.
    fn is_sound(&self) -> bool {
        true
    }
}

/// Takes the parts of something.
pub struct Recorder<'a>(&'a mut State);

/// Gives the parts of something.
pub struct Reader<'a>(&'a mut State);

impl Recorder<'_> {
    /// An array.
    pub fn array<T: Pod>(&mut self, array: &[T]) -> Result<()> {
        let bytes: &[u8] = bytemuck::cast_slice(array);
        self.0.push(Kind::Array, bytes.len())?.copy_from_slice(bytes);
        Ok(())
    }
}

impl Reader<'_> {
    /// An array.
    pub fn array<T: Pod>(&mut self, allocator: &Arc<Allocator>) -> Result<Buffer<T>> {
        let part = self.0.take(Kind::Array)?;
        if part.len() % size_of::<T>().max(1) != 0 {
            return Err(misfit("an array of another type was recorded"));
        }
        let mut out = Buffer::<T>::zeroed(allocator, part.len() / size_of::<T>().max(1))?;
        bytemuck::cast_slice_mut::<T, u8>(&mut out).copy_from_slice(part);
        Ok(out)
    }

    /// A number.
    pub fn number<T: Pod>(&mut self) -> Result<T> {
        let part = self.0.take(Kind::Array)?;
        match part.len() == size_of::<T>() {
            true => Ok(bytemuck::pod_read_unaligned(part)),
            false => Err(misfit("a number of another type was recorded")),
        }
    }

    /// What it holds is not what it may be.
    pub fn refuse<T>(&self, what: &str) -> Result<T> {
        Err(misfit(what))
    }
}

/// A step that makes something on the host.
pub fn made<T: Stored>(allocator: &Arc<Allocator>, make: impl FnOnce() -> Result<T>) -> Result<T> {
    match mode() {
        Mode::None => make(),
        Mode::Recording => {
            let made = suspended(make)?;
            with(|state| made.store(&mut Recorder(state)))?;
            Ok(made)
        }
        Mode::Restoring => {
            // The state is not borrowed while memory is allocated: the user's allocator may call the
            // library.
            let mut state = replace(None);
            let loaded = match &mut state {
                Some(state) => suspended(|| T::load(&mut Reader(state), allocator)),
                None => Err(misfit("there is no journal")),
            };
            replace(state);
            loaded.and_then(|made| match made.is_sound() {
                true => Ok(made),
                false => Err(misfit("what was arranged does not hold together")),
            })
        }
    }
}

/// A step that allocates memory which kernels fill: fails where it failed when it was recorded.
pub fn allocation<T>(
    allocate: impl FnOnce() -> Result<T>,
    what: impl FnOnce(&T) -> (Address, usize),
) -> Result<T> {
    let mode = mode();
    if mode == Mode::None {
        return allocate();
    }
    let number = with(|state| {
        state.allocations += 1;
        Ok(state.allocations - 1)
    })?;
    if mode == Mode::Restoring && with(|state| Ok(state.failures.contains(&number)))? {
        return Err(Error::new(Status::AllocFailed, "memory was missing when the plan was serialized"));
    }
    // Not while the state is borrowed: the user's allocator may call the library.
    let allocated = suspended(allocate);
    with(|state| {
        match &allocated {
            Ok(allocated) => {
                let (address, bytes) = what(allocated);
                if bytes > 0 {
                    state.live.push((address, bytes));
                }
            }
            Err(error) if mode == Mode::Recording && error.lacks_memory() => state.failures.push(number),
            Err(error) => state.lacking = Some(error.clone()),
        }
        Ok(())
    })?;
    allocated
}

/// Memory of [`allocation`] is given back; in a step as a whole, too.
pub fn released(address: Address) {
    STATE.with(|state| {
        if let Ok(mut state) = state.try_borrow_mut() {
            let live = state.as_mut().map(|state| &mut state.live);
            let found = |live: &Vec<(Address, usize)>| live.iter().rposition(|live| live.0 == address);
            if let Some((live, at)) = live.and_then(|live| found(live).map(|at| (live, at))) {
                live.remove(at);
            }
        }
    });
}

/// The last step: the contents of the memory that stays. `copy` takes where they are and the place
/// for them, or (restoring) where they go and what goes there; the bool says which.
pub fn contents(mut copy: impl FnMut(Address, Contents<'_>) -> Result<()>) -> Result<()> {
    match mode() {
        Mode::None => Ok(()),
        Mode::Recording => with(|state| {
            for (address, bytes) in std::mem::take(&mut state.live) {
                copy(address, Contents::Read(state.push(Kind::Contents, bytes)?))?;
            }
            Ok(())
        }),
        Mode::Restoring => with(|state| {
            for (address, bytes) in std::mem::take(&mut state.live) {
                let part = state.take(Kind::Contents)?;
                if part.len() != bytes {
                    return Err(misfit("an array of another size was recorded"));
                }
                copy(address, Contents::Write(part))?;
            }
            Ok(())
        }),
    }
}

/// What [`contents`] wants.
pub enum Contents<'a> {
    /// Of memory, here.
    Read(&'a mut [u8]),
    /// This, in memory.
    Write(&'a [u8]),
}

macro_rules! stored_numbers {
    ($($ty:ty),*) => { $(
        impl Stored for $ty {
            fn store(&self, to: &mut Recorder<'_>) -> Result<()> {
                to.array(&[*self])
            }
            fn load(from: &mut Reader<'_>, _: &Arc<Allocator>) -> Result<Self> {
                from.number()
            }
        }
    )* };
}
stored_numbers!(u32, u64, i64);

impl Stored for usize {
    fn store(&self, to: &mut Recorder<'_>) -> Result<()> {
        (*self as u64).store(to)
    }
    fn load(from: &mut Reader<'_>, _: &Arc<Allocator>) -> Result<Self> {
        let number = from.number::<u64>()?;
        usize::try_from(number).or_else(|_| from.refuse("a number that is too large"))
    }
}

impl Stored for bool {
    fn store(&self, to: &mut Recorder<'_>) -> Result<()> {
        u64::from(*self).store(to)
    }
    fn load(from: &mut Reader<'_>, _: &Arc<Allocator>) -> Result<Self> {
        match from.number::<u64>()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => from.refuse("neither yes nor no"),
        }
    }
}

impl<const N: usize> Stored for [usize; N] {
    fn store(&self, to: &mut Recorder<'_>) -> Result<()> {
        to.array(&self.map(|number| number as u64))
    }
    fn load(from: &mut Reader<'_>, _: &Arc<Allocator>) -> Result<Self> {
        let part = from.0.take(Kind::Array)?;
        let found: Vec<u64> = numbers(part);
        match <[u64; N]>::try_from(found) {
            Ok(numbers) if part.len() == N * WORD => Ok(numbers.map(|number| number as usize)),
            _ => from.refuse("another number of sizes"),
        }
    }
}

impl<T: Pod> Stored for Buffer<T> {
    fn store(&self, to: &mut Recorder<'_>) -> Result<()> {
        to.array(self)
    }
    fn load(from: &mut Reader<'_>, allocator: &Arc<Allocator>) -> Result<Self> {
        from.array(allocator)
    }
}

impl<T: Stored> Stored for Option<T> {
    fn store(&self, to: &mut Recorder<'_>) -> Result<()> {
        self.is_some().store(to)?;
        self.as_ref().map_or(Ok(()), |some| some.store(to))
    }
    fn load(from: &mut Reader<'_>, allocator: &Arc<Allocator>) -> Result<Self> {
        bool::load(from, allocator)?.then(|| T::load(from, allocator)).transpose()
    }
    fn is_sound(&self) -> bool {
        self.as_ref().is_none_or(T::is_sound)
    }
}

impl<T: Stored> Stored for Arc<T> {
    fn store(&self, to: &mut Recorder<'_>) -> Result<()> {
        (**self).store(to)
    }
    fn load(from: &mut Reader<'_>, allocator: &Arc<Allocator>) -> Result<Self> {
        T::load(from, allocator).map(Arc::new)
    }
    fn is_sound(&self) -> bool {
        (**self).is_sound()
    }
}

impl<T: Stored, U: Stored> Stored for (T, U) {
    fn store(&self, to: &mut Recorder<'_>) -> Result<()> {
        self.0.store(to)?;
        self.1.store(to)
    }
    fn load(from: &mut Reader<'_>, allocator: &Arc<Allocator>) -> Result<Self> {
        Ok((T::load(from, allocator)?, U::load(from, allocator)?))
    }
    fn is_sound(&self) -> bool {
        self.0.is_sound() && self.1.is_sound()
    }
}

/// `stored!([V: Bound] Type<V> { field, … })`, with all fields, and optionally `sound` and a closure
/// that checks one that was read.
macro_rules! stored {
    ([$($generics:tt)*] $ty:ty { $($field:ident),* $(,)? } $(sound $sound:expr)?) => {
        impl<$($generics)*> $crate::backend::journal::Stored for $ty {
            fn store(&self, to: &mut $crate::backend::journal::Recorder<'_>) -> $crate::error::Result<()> {
                $(self.$field.store(to)?;)*
                Ok(())
            }
            fn load(
                from: &mut $crate::backend::journal::Reader<'_>,
                allocator: &std::sync::Arc<$crate::backend::Allocator>,
            ) -> $crate::error::Result<Self> {
                Ok(Self { $($field: $crate::backend::journal::Stored::load(from, allocator)?),* })
            }
            $(
                fn is_sound(&self) -> bool {
                    let check: fn(&Self) -> bool = $sound;
                    check(self)
                }
            )?
        }
    };
}
pub(crate) use stored;

#[cfg(test)]
mod tests;

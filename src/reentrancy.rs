//! Record of the objects that the running library calls of a thread use. A user's function that the library
//! calls (above all an allocator) may call the library again; such a nested call is refused if it would wait for
//! a lock that its own thread holds.
//!
//! Each thread has a list of uses. Work that a thread hands to the library's thread pool, which may allocate
//! there, takes the list along ([`UseList`]), since the thread that handed it over waits for it and holds its
//! locks meanwhile.

use std::cell::Cell;
use std::marker::PhantomData;

use crate::error::{require, Result};
use crate::memory::float_env;

/// Access of a call to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Other calls may read the object at the same time.
    Shared,
    /// No other call may use the object.
    Exclusive,
}

/// An object that calls use: its kind and its address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Object {
    /// A handle: a call with it is running.
    Handle(usize),
    /// The workspace of the handle at this address.
    Workspace(usize),
    /// The plan at this address.
    Plan(usize),
}

impl Object {
    /// Returns the object of a handle.
    #[inline]
    pub fn handle(handle: &crate::context::Handle) -> Self {
        Object::Handle(std::ptr::from_ref(handle).addr())
    }

    /// Returns the access that this thread's running calls have to the object; `None` if none of them uses
    /// it.
    #[inline]
    pub fn access(self) -> Option<Access> {
        CALLS.with(|calls| calls.access(self))
    }
}

/// An object and the access of a call to it in one word, which makes a list short and quick to search: the
/// address, then two bits for the kind of object and one that is set for exclusive access. (An address has no more
/// than 57 bits.)
#[derive(Clone, Copy, PartialEq, Eq)]
struct PackedUse(usize);

impl PackedUse {
    #[inline]
    fn new(object: Object, access: Access) -> Self {
        let (address, kind) = match object {
            Object::Handle(address) => (address, 0),
            Object::Workspace(address) => (address, 1),
            Object::Plan(address) => (address, 2),
        };
        PackedUse(address << 3 | kind << 1 | usize::from(access == Access::Exclusive))
    }
}

/// Capacity of a thread's list, in uses.
const CAPACITY: usize = 64;

/// The objects that a thread's running calls use. It is an array, because that needs no allocation, and
/// because a thread-local without a destructor needs no entry in a list of the C library, which ends the
/// process if it has no memory for one. The length lies in front, in a cache line with the uses that are there in
/// most calls.
#[repr(C)]
struct Calls {
    len: Cell<usize>,
    uses: [Cell<PackedUse>; CAPACITY],
}

thread_local! {
    static CALLS: Calls = const { Calls { len: Cell::new(0), uses: [const { Cell::new(PackedUse(0)) }; CAPACITY] } };
}

impl Calls {
    fn uses(&self) -> &[Cell<PackedUse>] {
        &self.uses[..self.len.get().min(CAPACITY)]
    }

    #[inline]
    fn access(&self, object: Object) -> Option<Access> {
        let (shared, exclusive) =
            (PackedUse::new(object, Access::Shared), PackedUse::new(object, Access::Exclusive));
        let mut found = None;
        for recorded in self.uses() {
            if recorded.get() == exclusive {
                return Some(Access::Exclusive);
            }
            if recorded.get() == shared {
                found = Some(Access::Shared);
            }
        }
        found
    }

    /// Adds a use; false if there is no room. `check_depth` keeps room, except on a thread of the pool that takes over
    /// several lists.
    #[inline]
    fn add(&self, this_use: PackedUse) -> bool {
        let len = self.len.get();
        let Some(place) = self.uses.get(len) else { return false };
        place.set(this_use);
        self.len.set(len + 1);
        true
    }

    /// Removes the last entry of the list that is equal to this use.
    #[inline]
    fn remove(&self, this_use: PackedUse) {
        match self.uses().split_last() {
            Some((last, others)) if last.get() == this_use => self.len.set(others.len()),
            _ => self.remove_inner(this_use),
        }
    }

    #[cold]
    fn remove_inner(&self, this_use: PackedUse) {
        let uses = self.uses();
        if let Some(at) = uses.iter().rposition(|other| other.get() == this_use) {
            for (to, from) in uses[at..].iter().zip(&uses[at + 1..]) {
                to.set(from.get());
            }
            self.len.set(uses.len() - 1);
        }
    }
}

thread_local! {
    static USER_FUNCTIONS: Cell<u64> = const { Cell::new(0) };
}

/// Runs a user function that a call of the library calls: it may change this thread's floating-point environment,
/// which is put right afterwards, and anything else that belongs to the thread.
pub fn user_function<R>(f: impl FnOnce() -> R) -> R {
    USER_FUNCTIONS.set(USER_FUNCTIONS.get() + 1);
    float_env::callback(f)
}

/// Number of user functions that this thread has begun to run.
pub fn user_functions() -> u64 {
    USER_FUNCTIONS.get()
}

/// Returns `INVALID_STATE` if the user's functions have called the library at such a depth that the list may
/// have no room for another call.
#[inline]
pub fn check_depth() -> Result<()> {
    let len = CALLS.with(|calls| calls.len.get());
    require!(
        len < CAPACITY / 3,
        state,
        "this call is nested too deep in others: functions of the program that the library calls \
         (tarsiaSetAllocator, tarsiaSetLogger) have called the library again and again; let them not call it"
    );
    Ok(())
}

/// Guard of a call's use of an object: it is in this thread's list until the guard is dropped.
pub struct Use {
    /// `None` if the list had no room.
    recorded: Option<PackedUse>,
    /// Makes the type neither `Send` nor `Sync`: the guard stays with its thread.
    thread: PhantomData<*const ()>,
}

impl Use {
    /// Adds a use of the object to this thread's list.
    #[inline]
    pub fn begin(object: Object, access: Access) -> Self {
        Self::record(PackedUse::new(object, access))
    }

    /// Does as [`Self::begin`], and also returns the access that this thread's running calls had to the object
    /// before.
    #[inline]
    pub fn begin_with_earlier(object: Object, access: Access) -> (Option<Access>, Self) {
        (object.access(), Self::begin(object, access))
    }

    #[inline]
    fn record(this_use: PackedUse) -> Self {
        let added = CALLS.with(|calls| calls.add(this_use));
        Use { recorded: added.then_some(this_use), thread: PhantomData }
    }
}

impl Drop for Use {
    #[inline]
    fn drop(&mut self) {
        if let Some(recorded) = self.recorded {
            CALLS.with(|calls| calls.remove(recorded));
        }
    }
}

/// A copy of a thread's list, for a thread that works on its behalf.
pub struct UseList {
    uses: [PackedUse; CAPACITY],
    len: usize,
}

impl UseList {
    /// Copies the list of this thread.
    pub fn of_this_thread() -> Self {
        CALLS.with(|calls| {
            let mut uses = [PackedUse(0); CAPACITY];
            for (to, from) in uses.iter_mut().zip(calls.uses()) {
                *to = from.get();
            }
            UseList { uses, len: calls.len.get() }
        })
    }

    /// Runs `f` with these uses added to the list of this thread, which keeps its own since it continues with
    /// that work afterwards.
    pub fn enter<R>(&self, f: impl FnOnce() -> R) -> R {
        let mut guards = [const { None }; CAPACITY];
        for (guard, inherited) in guards.iter_mut().zip(&self.uses[..self.len]) {
            *guard = Some(Use::record(*inherited));
        }
        f()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uses_are_recorded_until_they_are_dropped_in_any_order() {
        let (one, other) = (Object::Plan(8), Object::Workspace(8));
        let shared = Use::begin(one, Access::Shared);
        assert_eq!((one.access(), other.access()), (Some(Access::Shared), None));
        let exclusive = Use::begin(one, Access::Exclusive);
        assert_eq!(one.access(), Some(Access::Exclusive));
        drop(shared);
        assert_eq!(one.access(), Some(Access::Exclusive));
        drop(exclusive);
        assert_eq!(one.access(), None);
    }

    #[test]
    fn deep_nests_are_refused_before_the_room_is_used_up() {
        let mut uses = Vec::new();
        while check_depth().is_ok() {
            uses.push(Use::begin(Object::Plan(uses.len()), Access::Shared));
            assert!(uses.len() < CAPACITY - 8, "a call has no room left");
        }
        uses.pop();
        assert!(check_depth().is_ok());
        drop(uses);
        // Uses that exceed the capacity are not recorded, and removing them removes nothing else.
        let _first = Use::begin(Object::Plan(1), Access::Exclusive);
        drop((0..2 * CAPACITY).map(|n| Use::begin(Object::Handle(n), Access::Shared)).collect::<Vec<_>>());
        assert_eq!((Object::Plan(1).access(), Object::Handle(1).access()), (Some(Access::Exclusive), None));
    }

    #[test]
    fn a_list_goes_to_another_thread_and_adds_to_its_own() {
        let (one, other) = (Object::Plan(8), Object::Plan(16));
        let _one = Use::begin(one, Access::Exclusive);
        let list = UseList::of_this_thread();
        std::thread::spawn(move || {
            let _other = Use::begin(other, Access::Shared);
            assert_eq!(one.access(), None);
            list.enter(|| {
                assert_eq!((one.access(), other.access()), (Some(Access::Exclusive), Some(Access::Shared)));
            });
            assert_eq!((one.access(), other.access()), (None, Some(Access::Shared)));
        })
        .join()
        .unwrap();
    }
}

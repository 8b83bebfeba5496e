//! Record of the library calls that a thread is inside of. A user's function that the library calls (above
//! all an allocator) may call the library again; such a call is refused if it would wait for a lock that its
//! own thread holds.
//!
//! Each thread has a list. Work that a thread hands to the library's thread pool, which may allocate there,
//! takes the list along ([`List`]), since the thread that handed it over waits for it and holds its locks
//! meanwhile.

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

/// An object and the access to it in one word, which makes a list short and quick to search: the address, then two bits
/// for the kind of object and one that is set for exclusive access. (An address has no more than 57 bits.)
#[derive(Clone, Copy, PartialEq, Eq)]
struct Item(usize);

impl Item {
    #[inline]
    fn new(object: Object, access: Access) -> Self {
        let (address, kind) = match object {
            Object::Handle(address) => (address, 0),
            Object::Workspace(address) => (address, 1),
            Object::Plan(address) => (address, 2),
        };
        Item(address << 3 | kind << 1 | usize::from(access == Access::Exclusive))
    }
}

/// Capacity of a thread's list.
const MOST: usize = 64;

/// The objects that a thread's running calls use. It is an array, because that needs no allocation, and
/// because a thread-local without a destructor needs no entry in a list of the C library, which ends the
/// process if it has no memory for one. The length lies in front, in a cache line with the items that are there in
/// most calls.
#[repr(C)]
struct Calls {
    len: Cell<usize>,
    items: [Cell<Item>; MOST],
}

thread_local! {
    static CALLS: Calls = const { Calls { len: Cell::new(0), items: [const { Cell::new(Item(0)) }; MOST] } };
}

impl Calls {
    fn items(&self) -> &[Cell<Item>] {
        &self.items[..self.len.get().min(MOST)]
    }

    #[inline]
    fn access(&self, object: Object) -> Option<Access> {
        let (shared, exclusive) = (Item::new(object, Access::Shared), Item::new(object, Access::Exclusive));
        let mut found = None;
        for item in self.items() {
            if item.get() == exclusive {
                return Some(Access::Exclusive);
            }
            if item.get() == shared {
                found = Some(Access::Shared);
            }
        }
        found
    }

    /// Adds an item; false if there is no room. `check_depth` keeps room, except on a thread of the pool that takes over
    /// several lists.
    #[inline]
    fn add(&self, item: Item) -> bool {
        let len = self.len.get();
        let Some(place) = self.items.get(len) else { return false };
        place.set(item);
        self.len.set(len + 1);
        true
    }

    /// Removes the last of these items.
    #[inline]
    fn remove(&self, item: Item) {
        match self.items().split_last() {
            Some((last, others)) if last.get() == item => self.len.set(others.len()),
            _ => self.remove_inner(item),
        }
    }

    #[cold]
    fn remove_inner(&self, item: Item) {
        let items = self.items();
        if let Some(at) = items.iter().rposition(|other| other.get() == item) {
            for (to, from) in items[at..].iter().zip(&items[at + 1..]) {
                to.set(from.get());
            }
            self.len.set(items.len() - 1);
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
        len < MOST / 3,
        state,
        "calls of the library are nested too deep in the functions that it calls"
    );
    Ok(())
}

/// Guard of an entry in this thread's list, which is removed when the guard is dropped.
pub struct Entry {
    item: Option<Item>,
    /// Makes the type neither `Send` nor `Sync`: an entry stays with its thread.
    thread: PhantomData<*const ()>,
}

impl Entry {
    /// Adds an object to this thread's list.
    #[inline]
    pub fn new(object: Object, access: Access) -> Self {
        Self::of(Item::new(object, access))
    }

    /// Like [`Self::new`], and returns the access that this thread's running calls have to the object already.
    #[inline]
    pub fn behind(object: Object, access: Access) -> (Option<Access>, Self) {
        (object.access(), Self::new(object, access))
    }

    #[inline]
    fn of(item: Item) -> Self {
        let added = CALLS.with(|calls| calls.add(item));
        Entry { item: added.then_some(item), thread: PhantomData }
    }
}

impl Drop for Entry {
    #[inline]
    fn drop(&mut self) {
        if let Some(item) = self.item {
            CALLS.with(|calls| calls.remove(item));
        }
    }
}

/// A copy of a thread's list, for a thread that works on its behalf.
pub struct List {
    items: [Item; MOST],
    len: usize,
}

impl List {
    /// Copies the list of this thread.
    pub fn of_this_thread() -> Self {
        CALLS.with(|calls| {
            let mut items = [Item(0); MOST];
            for (to, from) in items.iter_mut().zip(calls.items()) {
                *to = from.get();
            }
            List { items, len: calls.len.get() }
        })
    }

    /// Runs `f` with these entries added to the list of this thread, which keeps its own since it continues
    /// with that work afterwards.
    pub fn enter<R>(&self, f: impl FnOnce() -> R) -> R {
        let mut entries = [const { None }; MOST];
        for (entry, item) in entries.iter_mut().zip(&self.items[..self.len]) {
            *entry = Some(Entry::of(*item));
        }
        f()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_count_until_they_are_dropped_in_any_order() {
        let (one, other) = (Object::Plan(8), Object::Workspace(8));
        let shared = Entry::new(one, Access::Shared);
        assert_eq!((one.access(), other.access()), (Some(Access::Shared), None));
        let exclusive = Entry::new(one, Access::Exclusive);
        assert_eq!(one.access(), Some(Access::Exclusive));
        drop(shared);
        assert_eq!(one.access(), Some(Access::Exclusive));
        drop(exclusive);
        assert_eq!(one.access(), None);
    }

    #[test]
    fn deep_nests_are_refused_before_the_room_is_used_up() {
        let mut entries = Vec::new();
        while check_depth().is_ok() {
            entries.push(Entry::new(Object::Plan(entries.len()), Access::Shared));
            assert!(entries.len() < MOST - 8, "a call has no room left");
        }
        entries.pop();
        assert!(check_depth().is_ok());
        drop(entries);
        // Entries that exceed the capacity are not recorded, and removing them removes nothing else.
        let _first = Entry::new(Object::Plan(1), Access::Exclusive);
        drop((0..2 * MOST).map(|n| Entry::new(Object::Handle(n), Access::Shared)).collect::<Vec<_>>());
        assert_eq!((Object::Plan(1).access(), Object::Handle(1).access()), (Some(Access::Exclusive), None));
    }

    #[test]
    fn a_list_goes_to_another_thread_and_adds_to_its_own() {
        let (one, other) = (Object::Plan(8), Object::Plan(16));
        let _one = Entry::new(one, Access::Exclusive);
        let list = List::of_this_thread();
        std::thread::spawn(move || {
            let _other = Entry::new(other, Access::Shared);
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

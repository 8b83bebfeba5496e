//! Record of the library calls that a thread is inside of. A user's function that the library calls (above
//! all an allocator) may call the library again; such a call is refused if it would wait for a lock that its
//! own thread holds.
//!
//! Each thread has a list. Work that a thread hands to the library's thread pool, which may allocate there,
//! takes the list along ([`List`]), since the thread that handed it over waits for it and holds its locks
//! meanwhile.

use std::cell::{Cell, RefCell};
use std::marker::PhantomData;

use crate::error::{Error, Result};
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
    pub fn handle(handle: &crate::context::Handle) -> Self {
        Object::Handle(std::ptr::from_ref(handle).addr())
    }

    /// Returns the access that this thread's running calls have to the object; `None` if none of them uses
    /// it.
    pub fn access(self) -> Option<Access> {
        INSIDE.with_borrow(|inside| {
            let mut own = inside.iter().filter(|(object, _)| *object == self).map(|(_, access)| access);
            let first = own.next()?;
            Some(if own.any(|access| access == Access::Exclusive) { Access::Exclusive } else { first })
        })
    }
}

/// Capacity of a thread's list.
const MOST: usize = 64;

/// The objects that a thread's running calls use. It is an array, because that needs no allocation, and
/// because a thread-local without a destructor needs no entry in a list of the C library, which ends the
/// process if it has no memory for one.
#[derive(Clone, Copy)]
struct Entries {
    items: [Option<(Object, Access)>; MOST],
    len: usize,
}

impl Entries {
    const NONE: Entries = Entries { items: [None; MOST], len: 0 };

    fn iter(&self) -> impl DoubleEndedIterator<Item = (Object, Access)> + '_ {
        self.items[..self.len].iter().flatten().copied()
    }
}

thread_local! {
    static INSIDE: RefCell<Entries> = const { RefCell::new(Entries::NONE) };
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
pub fn check_depth() -> Result<()> {
    if INSIDE.with_borrow(|inside| inside.len) < MOST / 3 {
        return Ok(());
    }
    Err(Error::state("calls of the library are nested too deep in the functions that it calls"))
}

/// Guard of an entry in this thread's list, which is removed when the guard is dropped.
pub struct Entry {
    item: Option<(Object, Access)>,
    /// Makes the type neither `Send` nor `Sync`: an entry stays with its thread.
    thread: PhantomData<*const ()>,
}

impl Entry {
    /// Adds an object to this thread's list.
    pub fn new(object: Object, access: Access) -> Self {
        let item = INSIDE.with_borrow_mut(|inside| {
            // `check_depth` keeps room, except on a thread of the pool that takes over several lists.
            *inside.items.get_mut(inside.len)? = Some((object, access));
            inside.len += 1;
            Some((object, access))
        });
        Entry { item, thread: PhantomData }
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        let Some(item) = self.item else { return };
        INSIDE.with_borrow_mut(|inside| {
            let len = inside.len;
            if let Some(at) = inside.items[..len].iter().rposition(|other| *other == Some(item)) {
                inside.items.copy_within(at + 1..len, at);
                inside.len -= 1;
            }
        });
    }
}

/// A copy of a thread's list, for a thread that works on its behalf.
pub struct List(Entries);

impl List {
    /// Copies the list of this thread.
    pub fn of_this_thread() -> Self {
        List(INSIDE.with_borrow(|inside| *inside))
    }

    /// Runs `f` with these entries added to the list of this thread, which keeps its own since it continues
    /// with that work afterwards.
    pub fn enter<R>(&self, f: impl FnOnce() -> R) -> R {
        let mut entries = [const { None }; MOST];
        for (entry, (object, access)) in entries.iter_mut().zip(self.0.iter()) {
            *entry = Some(Entry::new(object, access));
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

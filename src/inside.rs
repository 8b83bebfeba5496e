//! What the calls of this thread are in the midst of, so that a function of the user's that such a call
//! runs (an allocator above all) and that calls the library back is refused instead of waiting for a lock
//! that its own thread holds.
//!
//! Each thread has a list. Work that a thread hands to the library's pool, which may allocate there, takes
//! the list along ([`List`]): the thread that handed it over waits for it, and holds its locks meanwhile.

use std::cell::RefCell;
use std::marker::PhantomData;

use crate::error::{Error, Result};

/// How an object is used by a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Others may read it, too.
    Shared,
    /// Nobody else may use it.
    Exclusive,
}

/// A kind of object, with its address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Object {
    /// A handle: a call with it is running.
    Handle(usize),
    /// The workspace of the handle at this address.
    Workspace(usize),
    /// A plan.
    Plan(usize),
}

impl Object {
    /// That of a handle.
    pub fn handle(handle: &crate::context::Handle) -> Self {
        Object::Handle(std::ptr::from_ref(handle).addr())
    }

    /// How this thread is in the midst of using it; `None`: it is not.
    pub fn access(self) -> Option<Access> {
        INSIDE.with_borrow(|inside| {
            let mut own = inside.iter().filter(|(object, _)| *object == self).map(|(_, access)| access);
            let first = own.next()?;
            Some(if own.any(|access| access == Access::Exclusive) { Access::Exclusive } else { first })
        })
    }
}

/// Entries that a thread has room for.
const MOST: usize = 64;

/// What a thread is in the midst of. An array: it needs no memory, and a thread's local without a
/// destructor needs no entry in a list of the C library, which ends the process where it has no memory for
/// one.
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

/// `INVALID_STATE` where functions of the user's have called the library so often from within its calls
/// that there may be no room for what another call uses.
pub fn check_depth() -> Result<()> {
    if INSIDE.with_borrow(|inside| inside.len) < MOST / 3 {
        return Ok(());
    }
    Err(Error::state("calls of the library are nested too deep in the functions that it calls"))
}

/// This thread is in the midst of using an object until this is dropped.
pub struct Entry {
    item: Option<(Object, Access)>,
    /// It stays with its thread.
    thread: PhantomData<*const ()>,
}

impl Entry {
    /// Begins to use it.
    pub fn new(object: Object, access: Access) -> Self {
        let item = INSIDE.with_borrow_mut(|inside| {
            // There is room, by `check_depth`, but on a thread of the pool that helps with several lists.
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

/// A thread's list, for the thread that works for it.
pub struct List(Entries);

impl List {
    /// That of this thread.
    pub fn of_this_thread() -> Self {
        List(INSIDE.with_borrow(|inside| *inside))
    }

    /// Runs `f` as a part of what the list's thread is doing. What this thread was doing before counts, too:
    /// it goes on with that afterwards.
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
        // More entries than there is room for are forgotten, and take nothing with them.
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

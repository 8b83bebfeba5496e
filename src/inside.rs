//! What the calls of this thread are in the midst of, so that a function of the user's that such a call
//! runs (an allocator above all) and that calls the library back is refused instead of waiting for a lock
//! that its own thread holds.
//!
//! Each thread has a list. Work that a thread hands to the library's pool, which may allocate there, takes
//! the list along ([`List`]): the thread that handed it over waits for it, and holds its locks meanwhile.

use std::cell::RefCell;
use std::marker::PhantomData;

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
        let found = INSIDE.try_with(|inside| {
            let inside = inside.borrow();
            let mut own = inside.iter().filter(|(object, _)| *object == self).map(|(_, access)| *access);
            let first = own.next()?;
            Some(if own.any(|access| access == Access::Exclusive) { Access::Exclusive } else { first })
        });
        // A thread that gives up its locals has given up its list.
        found.unwrap_or(None)
    }
}

thread_local! {
    static INSIDE: RefCell<Vec<(Object, Access)>> = const { RefCell::new(Vec::new()) };
}

/// This thread is in the midst of using an object until this is dropped.
pub struct Entry {
    item: (Object, Access),
    /// It stays with its thread.
    thread: PhantomData<*const ()>,
}

impl Entry {
    /// Begins to use it.
    pub fn new(object: Object, access: Access) -> Self {
        let item = (object, access);
        let _ = INSIDE.try_with(|inside| inside.borrow_mut().push(item));
        Entry { item, thread: PhantomData }
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        let _ = INSIDE.try_with(|inside| {
            let mut inside = inside.borrow_mut();
            if let Some(at) = inside.iter().rposition(|item| *item == self.item) {
                inside.remove(at);
            }
        });
    }
}

/// A thread's list, for the thread that works for it.
pub struct List(Vec<(Object, Access)>);

impl List {
    /// That of this thread.
    pub fn of_this_thread() -> Self {
        List(INSIDE.try_with(|inside| inside.borrow().clone()).unwrap_or_default())
    }

    /// Runs `f` as a part of what the list's thread is doing. What this thread was doing before counts, too:
    /// it goes on with that afterwards.
    pub fn enter<R>(self, f: impl FnOnce() -> R) -> R {
        let _entries: Vec<Entry> =
            self.0.into_iter().map(|(object, access)| Entry::new(object, access)).collect();
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

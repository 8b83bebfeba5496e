//! How many orders of rows a thread has computed, for tests that one was not.

use std::cell::Cell;

thread_local! {
    static ORDERS: Cell<usize> = const { Cell::new(0) };
}

pub(crate) fn count() -> usize {
    ORDERS.get()
}

pub(super) fn one_more() {
    ORDERS.set(ORDERS.get() + 1);
}

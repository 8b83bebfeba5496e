//! Counter of the row orders that this thread has computed, by which tests check that none was.

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

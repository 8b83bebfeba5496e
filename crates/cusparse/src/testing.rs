//! Behavior that tests without a device ask for, which only happens where `TARSIA_CUSPARSE_TEST_ON_HOST` is set: a
//! stream that counts as captured into a graph, a panic at a place that `TARSIA_CUSPARSE_TEST_PANIC` names, and fewer
//! entries that offsets of 32 bits count (`TARSIA_CUSPARSE_TEST_MOST`).

use std::sync::atomic::{AtomicBool, Ordering};

use tarsia::facade::Address;

use crate::settings::settings;

/// Address of the stream that counts as captured.
const CAPTURED: usize = 0xca97;

/// Returns whether a stream is the one that counts as captured.
pub fn is_captured(stream: Address) -> bool {
    settings().on_host && stream.value() == CAPTURED
}

/// Panics, without a message, if this is the first time that the named place is reached.
pub fn panic_at(place: &str) {
    let settings = settings();
    static DONE: AtomicBool = AtomicBool::new(false);
    if settings.on_host && settings.panic_at == place && !DONE.swap(true, Ordering::Relaxed) {
        std::panic::resume_unwind(Box::new(()));
    }
}

/// Number of entries of C from which on offsets of 32 bits do not count them.
pub fn most_entries() -> i64 {
    let settings = settings();
    match settings.on_host && settings.most_entries > 0 {
        true => settings.most_entries,
        false => i64::from(i32::MAX),
    }
}

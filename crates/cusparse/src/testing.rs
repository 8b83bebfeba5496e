//! Behavior that tests without a device ask for, which only happens where `TARSIA_CUSPARSE_TEST_ON_HOST` is set: a
//! stream that counts as captured into a graph, and a panic at a place that `TARSIA_CUSPARSE_TEST_PANIC` names.

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

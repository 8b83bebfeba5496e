//! Lines on stderr. A program that is not changed must not notice the drop-in, so that there are few where none are
//! asked for.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::real;
use crate::settings::settings;

/// Writes lines at once, so that those of other threads and processes do not come between.
pub fn lines<'a>(lines: impl IntoIterator<Item = &'a str>) {
    let id = std::process::id();
    let text: String = lines.into_iter().map(|line| format!("libtarsia_cusparse[{id}]: {line}\n")).collect();
    let mut rest = text.as_bytes();
    // Not by the standard library's stderr: its lock may be held for ever in a child that fork has made.
    while !rest.is_empty() {
        // SAFETY: the bytes are valid for reading; a descriptor that is closed is an error.
        let written = unsafe { libc::write(libc::STDERR_FILENO, rest.as_ptr().cast(), rest.len()) };
        match usize::try_from(written) {
            Ok(written @ 1..) => rest = &rest[written..],
            _ => return,
        }
    }
}

/// Writes a line.
pub fn line(text: &str) {
    lines([text]);
}

/// Tells what is wrong with the environment variables and with what is loaded, the first time.
pub fn problems() {
    static TOLD: AtomicBool = AtomicBool::new(false);
    if TOLD.load(Ordering::Relaxed) || TOLD.swap(true, Ordering::Relaxed) {
        return;
    }
    lines(settings().problems.iter().map(String::as_str));
    let loaded = real::loaded();
    if let (Some(cusparse), 2..) = (real::found(), loaded.len()) {
        let all: Vec<_> = loaded.iter().map(|path| path.display().to_string()).collect();
        line(&format!(
            "{} cuSPARSE libraries are loaded ({}): calls are forwarded to {}, those with handles of another one, too, \
             which fails; use one of them, or not this library",
            all.len(),
            all.join(", "),
            cusparse.file
        ));
    }
}

/// Tells that calls cannot be forwarded, the first time.
pub fn no_cusparse() {
    static TOLD: AtomicBool = AtomicBool::new(false);
    if !TOLD.swap(true, Ordering::Relaxed) {
        line("a function of cuSPARSE was called, but no cuSPARSE is loaded that the call could be forwarded to");
    }
}

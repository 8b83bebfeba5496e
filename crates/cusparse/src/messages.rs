//! Messages of the drop-in on stderr. Few are printed unasked, since an unchanged program must not notice the
//! drop-in.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::real;
use crate::settings::settings;

/// Writes lines to stderr in one write, so that other threads' and processes' lines do not come between.
pub fn lines<'a>(lines: impl IntoIterator<Item = &'a str>) {
    let id = std::process::id();
    let text: String = lines.into_iter().map(|line| format!("libtarsia_cusparse[{id}]: {line}\n")).collect();
    let mut rest = text.as_bytes();
    // The standard library's stderr is not used: in a child made by fork its lock may be held for ever.
    while !rest.is_empty() {
        // SAFETY: the bytes are valid for reading; a closed file descriptor only gives an error.
        let written = unsafe { libc::write(libc::STDERR_FILENO, rest.as_ptr().cast(), rest.len()) };
        match usize::try_from(written) {
            Ok(written @ 1..) => rest = &rest[written..],
            _ => return,
        }
    }
}

/// Writes one line to stderr.
pub fn line(text: &str) {
    lines([text]);
}

/// Reports invalid environment variables and several loaded cuSPARSE libraries, at the first call only.
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

/// Reports that calls cannot be forwarded, at the first call only.
pub fn no_cusparse() {
    static TOLD: AtomicBool = AtomicBool::new(false);
    if !TOLD.swap(true, Ordering::Relaxed) {
        line("a function of cuSPARSE was called, but no cuSPARSE is loaded that the call could be forwarded to");
    }
}

//! Progress messages on stderr, for steps so long that a person would wonder.

use std::io::Write;
use std::sync::mpsc::{channel, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

/// A step that is shorter than this prints nothing.
const PATIENCE: Duration = Duration::from_secs(1);

/// Runs `work`. If it takes longer than [`PATIENCE`], a line on stderr says what is being done, and another
/// one, at the end, how long it took.
pub fn step<R>(what: &str, work: impl FnOnce() -> R) -> R {
    // A line that cannot be written is ignored.
    let say = |line: String| drop(writeln!(std::io::stderr(), "{line}"));
    let start = Instant::now();
    let (done, watched) = channel::<()>();
    let out = thread::scope(|scope| {
        let watch = move || {
            if watched.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
                say(format!("… {what}"));
            }
        };
        // If no thread can watch, there is no line; nothing else changes.
        let _watcher = thread::Builder::new().spawn_scoped(scope, watch);
        let out = work();
        drop(done);
        out
    });
    if start.elapsed() > PATIENCE {
        say(format!("… {what}: {:.1} s", start.elapsed().as_secs_f64()));
    }
    out
}

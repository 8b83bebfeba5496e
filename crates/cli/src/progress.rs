//! Progress on stderr: one line that changes in its place, where stderr is a terminal. In a pipe or a file there is
//! none, so that programs read nothing but results.

use std::fmt::{self, Display};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use indicatif::{HumanDuration, ProgressBar, ProgressState, ProgressStyle};

/// Time from one picture of the line to the next: rare enough to leave measurements alone.
const TICK: Duration = Duration::from_millis(200);

/// The line, while there is one. It is shared, so that a step within a step changes its text and does not begin
/// another line.
static LINE: Mutex<Option<ProgressBar>> = Mutex::new(None);

fn line() -> MutexGuard<'static, Option<ProgressBar>> {
    LINE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A bar of parts that are done; it disappears when this is dropped.
pub struct Bar(ProgressBar);

impl Bar {
    /// Shows how many of `count` parts are done, what is being done, and how much time the others will take.
    pub fn new(count: usize) -> Self {
        let template = "[{bar:24}] {pos} of {len}{left}  {wide_msg}";
        Self::show(ProgressBar::new(count as u64), template, "")
    }

    fn show(bar: ProgressBar, template: &str, what: &str) -> Self {
        if !bar.is_hidden() {
            let plain = |_| ProgressStyle::default_bar();
            let style = ProgressStyle::with_template(template).unwrap_or_else(plain);
            bar.set_style(style.progress_chars("=> ").with_key("left", left));
            bar.set_message(what.to_string());
            bar.enable_steady_tick(TICK);
            *line() = Some(bar.clone());
        }
        Bar(bar)
    }

    /// Counts a part as done.
    pub fn advance(&self) {
        self.0.inc(1);
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        if !self.0.is_hidden() {
            *line() = None;
            self.0.finish_and_clear();
        }
    }
}

/// Writes how much time is left, once a part is done by which it can be told.
fn left(state: &ProgressState, out: &mut dyn fmt::Write) {
    if state.pos() > 0 {
        // A line that cannot be written is ignored.
        let _ = write!(out, ", {:#} left", HumanDuration(state.eta()));
    }
}

/// Runs `work`, and shows meanwhile what it does and for how long.
pub fn step<R>(what: &str, work: impl FnOnce() -> R) -> R {
    let outer = line().clone();
    let Some(bar) = outer else {
        let _line = Bar::show(ProgressBar::new_spinner(), "{spinner} {msg}, {elapsed}", what);
        return work();
    };
    let before = bar.message();
    bar.set_message(what.to_string());
    let out = work();
    bar.set_message(before);
    out
}

/// Runs `work`, which prints, while the line is away.
pub fn aside<R>(work: impl FnOnce() -> R) -> R {
    let line = line().clone();
    match line {
        Some(bar) => bar.suspend(work),
        None => work(),
    }
}

/// Prints a line on stderr.
pub fn say(text: impl Display) {
    aside(|| anstream::eprintln!("{text}"));
}

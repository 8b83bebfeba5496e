//! Counts of the calls by function and outcome, which are printed at exit.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::decision::{version, Fate, Outcome};
use crate::functions::Function;
use crate::messages;
use crate::real;
use crate::settings::{settings, Mode, Settings};

/// Number of calls of each function with each outcome.
static CALLS: [[AtomicU64; Outcome::ALL.len()]; Function::ALL.len()] =
    [const { [const { AtomicU64::new(0) }; Outcome::ALL.len()] }; Function::ALL.len()];

/// Counts a call.
pub fn count(function: Function, outcome: Outcome) {
    CALLS[function as usize][outcome as usize].fetch_add(1, Ordering::Relaxed);
}

/// Resets all counts, in a child made by fork: they are the parent's.
pub fn forget() {
    CALLS.iter().flatten().for_each(|calls| calls.store(0, Ordering::Relaxed));
}

/// Prints the summary if the environment asks for it and the process has called or loaded cuSPARSE. Problems
/// that have not been reported yet come first, unless the drop-in is off.
pub fn tell() {
    let settings = settings();
    if settings.mode == Mode::Off {
        return;
    }
    let counts: Vec<(Function, Outcome, u64)> = counts().collect();
    if counts.is_empty() && real::loaded().is_empty() {
        return;
    }
    messages::problems();
    if matches!(settings.mode, Mode::Summary | Mode::Trace | Mode::Force) {
        let lines = text(settings, &counts);
        messages::lines(lines.iter().map(String::as_str));
    }
}

/// Returns all counts that are not zero.
fn counts() -> impl Iterator<Item = (Function, Outcome, u64)> {
    Function::ALL.iter().zip(&CALLS).flat_map(|(&function, calls)| {
        let of_outcome = move |(outcome, calls): (Outcome, &AtomicU64)| {
            let calls = calls.load(Ordering::Relaxed);
            (calls > 0).then_some((function, outcome, calls))
        };
        Outcome::ALL.iter().copied().zip(calls).filter_map(of_outcome)
    })
}

/// Returns the lines of the summary.
fn text(settings: &Settings, counts: &[(Function, Outcome, u64)]) -> Vec<String> {
    let sum = |fate: Fate| -> u64 {
        let counted = counts.iter().filter(|(_, outcome, _)| outcome.fate() == fate);
        counted.map(|(_, _, calls)| calls).sum()
    };
    if counts.is_empty() {
        return vec![
            "summary: cuSPARSE is loaded, but no call of it came this way (functions that a program looks \
                     up by dlsym in cuSPARSE's own handle do not)"
                .to_string(),
        ];
    }
    let cusparse = real::found().map(|cusparse| format!("{} ({})", version(cusparse), cusparse.file));
    let take: Vec<&str> = settings.take.iter().map(|operation| operation.word()).collect();
    let take = if take.is_empty() { "nothing".to_string() } else { take.join(",") };
    let mut lines = vec![
        format!("summary: {}; may take {take}", cusparse.as_deref().unwrap_or("no cuSPARSE")),
        format!(
            "summary: {} taken, {} forwarded, {} answered with an error",
            sum(Fate::Taken),
            sum(Fate::Forwarded),
            sum(Fate::Failed)
        ),
    ];
    lines.extend(counts.iter().map(|(function, outcome, calls)| {
        format!("summary: {calls:>9} {} {}", function.name(), outcome.text())
    }));
    lines
}

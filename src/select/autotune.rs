//! Effort TUNED: build the best candidates of the cost model, time them, keep
//! the fastest. Timing is not reproducible, so deterministic mode refuses it.

use super::Choice;
use crate::error::Result;
use crate::types::Effort;

/// Candidates that are built and timed at the most.
const CANDIDATES: usize = 2;

/// Builds the first choice, or with effort TUNED the fastest of the first ones.
pub fn pick<E>(
    effort: Effort,
    mut choices: Vec<Choice>,
    build: impl Fn(&Choice) -> Result<E>,
    time: impl Fn(&E) -> Result<f64>,
) -> Result<(E, Choice)> {
    if effort == Effort::Tuned {
        return fastest(choices, build, time);
    }
    let choice = choices.swap_remove(0);
    Ok((build(&choice)?, choice))
}

/// Builds and times the first candidates; returns the fastest with its choice,
/// whose reason then says what was measured. `time` returns seconds.
fn fastest<E>(
    choices: Vec<Choice>,
    build: impl Fn(&Choice) -> Result<E>,
    time: impl Fn(&E) -> Result<f64>,
) -> Result<(E, Choice)> {
    let mut best: Option<(E, Choice, f64)> = None;
    let mut measured = Vec::new();
    for mut choice in choices.into_iter().take(CANDIDATES) {
        let executor = build(&choice)?;
        let seconds = time(&executor)?;
        measured.push(format!("{} {seconds:.3e} s", choice.describe()));
        if best.as_ref().is_none_or(|(_, _, least)| seconds < *least) {
            choice.predicted_seconds = seconds;
            best = Some((executor, choice, seconds));
        }
    }
    let (executor, mut choice, _) = best.expect("selection never returns an empty list");
    choice.reason = format!("{} timed: {}", choice.algorithm.name(), measured.join(", "));
    Ok((executor, choice))
}

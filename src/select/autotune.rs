//! Effort TUNED: build the best candidates of the cost model, time them, keep
//! the fastest. Timing is not reproducible, so deterministic mode refuses it.

use super::Choice;
use crate::error::{Result, Status};
use crate::types::Effort;

/// Candidates that are built and timed at the most.
const CANDIDATES: usize = 2;

/// Builds the first choice that can be built, or with effort TUNED the fastest of the first ones.
pub fn pick<E>(
    effort: Effort,
    mut choices: Vec<Choice>,
    build: impl Fn(&Choice) -> Result<E>,
    time: impl Fn(&E) -> Result<f64>,
) -> Result<(E, Choice)> {
    if effort == Effort::Tuned {
        return fastest(choices, build, time);
    }
    // What a layout cannot hold may show while it is built; the next one then serves.
    loop {
        let choice = choices.remove(0);
        match build(&choice) {
            Err(error) if error.status == Status::NotSupported && !choices.is_empty() => {}
            built => return Ok((built?, choice)),
        }
    }
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
    let mut left = choices.len();
    for mut choice in choices {
        left -= 1;
        let executor = match build(&choice) {
            Err(error) if error.status == Status::NotSupported && (left > 0 || best.is_some()) => continue,
            built => built?,
        };
        let seconds = time(&executor)?;
        measured.push(format!("{} {seconds:.3e} s", choice.describe()));
        if best.as_ref().is_none_or(|(_, _, least)| seconds < *least) {
            choice.predicted_seconds = seconds;
            best = Some((executor, choice, seconds));
        }
        if measured.len() == CANDIDATES {
            break;
        }
    }
    let (executor, mut choice, _) = best.expect("selection never returns an empty list");
    choice.reason = format!("{} timed: {}", choice.algorithm.name(), measured.join(", "));
    Ok((executor, choice))
}

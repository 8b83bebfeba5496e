//! Effort TUNED: builds the best candidates of the cost model, times them and keeps the fastest. Timing is
//! not reproducible, so deterministic mode refuses it.

use super::{duration, Choice};
use crate::error::{Result, Status};
use crate::types::Effort;

/// Builds the first choice that can be built or, with effort TUNED, the fastest of the first `most` ones.
pub fn pick<E>(
    effort: Effort,
    most: usize,
    mut choices: Vec<Choice>,
    build: impl Fn(&Choice) -> Result<E>,
    time: impl Fn(&E) -> Result<f64>,
) -> Result<(E, Choice)> {
    if effort == Effort::Tuned {
        return fastest(most, choices, build, time);
    }
    // A layout may turn out to be too small for the matrix only while it is built; the next choice then
    // serves.
    loop {
        let choice = choices.remove(0);
        match build(&choice) {
            Err(error) if error.status == Status::NotSupported && !choices.is_empty() => {}
            built => return Ok((built?, choice)),
        }
    }
}

/// Builds and times the first candidates; returns the fastest with its choice, whose reason lists the
/// measured times. `time` returns seconds.
fn fastest<E>(
    most: usize,
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
            // Memory may also not suffice for a candidate beside the best one so far.
            Err(error)
                if (error.status == Status::NotSupported && (left > 0 || best.is_some()))
                    || (error.lacks_memory() && best.is_some()) =>
            {
                continue
            }
            built => built?,
        };
        let seconds = time(&executor)?;
        let order = match choice.method.reorder().is_named() {
            true => format!(" in the order {}", choice.method.reorder().c_name()),
            false => String::new(),
        };
        measured.push(format!("{}{order} {}", choice.describe(), duration(seconds)));
        if best.as_ref().is_none_or(|(_, _, least)| seconds < *least) {
            choice.predicted_seconds = seconds;
            best = Some((executor, choice, seconds));
        }
        if measured.len() == most {
            break;
        }
    }
    let (executor, mut choice, _) = best.expect("selection never returns an empty list");
    choice.reason = format!("{} timed: {}", choice.algorithm().name(), measured.join(", "));
    Ok((executor, choice))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithm::Algorithm;
    use crate::error::Error;
    use crate::select::Source;

    fn choices(algorithms: &[Algorithm]) -> Vec<Choice> {
        let choice = |&algorithm: &Algorithm| Choice {
            predicted_seconds: 1.0,
            ..Choice::new(algorithm, Source::Canonical)
        };
        algorithms.iter().map(choice).collect()
    }

    const ALL: [Algorithm; 4] = [Algorithm::Row, Algorithm::Window, Algorithm::Smat, Algorithm::SpmmSell];

    /// The choice that `pick` takes, and the algorithms it timed, if the builds of `fail` fail.
    fn taken(effort: Effort, most: usize, fail: &[(Algorithm, Status)]) -> Result<(Choice, Vec<Algorithm>)> {
        let timed = std::cell::RefCell::new(Vec::new());
        let build =
            |choice: &Choice| match fail.iter().find(|(algorithm, _)| *algorithm == choice.algorithm()) {
                Some((_, status)) => Err(Error::new(*status, "")),
                None => Ok(choice.algorithm()),
            };
        let time = |algorithm: &Algorithm| {
            timed.borrow_mut().push(*algorithm);
            // Later algorithms are faster.
            Ok(1.0 / (1 + ALL.iter().position(|other| other == algorithm).unwrap()) as f64)
        };
        let (built, choice) = pick(effort, most, choices(&ALL), build, time)?;
        assert_eq!(built, choice.algorithm());
        Ok((choice, timed.into_inner()))
    }

    #[test]
    fn the_fastest_of_the_first_is_taken() {
        let (choice, timed) = taken(Effort::Tuned, 3, &[]).unwrap();
        assert_eq!((choice.algorithm(), &timed[..]), (Algorithm::Smat, &ALL[..3]));
        assert_eq!(choice.predicted_seconds, 1.0 / 3.0);
        assert!(choice.reason.starts_with("smat timed: ") && choice.reason.contains(" 500.0 ms, "));
        assert_eq!(choice.reason.split(", ").count(), 3, "{}", choice.reason);
        let (choice, timed) = taken(Effort::Default, 3, &[]).unwrap();
        assert_eq!((choice.algorithm(), timed.len()), (Algorithm::Row, 0));
    }

    #[test]
    fn what_cannot_be_built_gives_way() {
        let not = Status::NotSupported;
        let (choice, timed) = taken(Effort::Tuned, 2, &[(Algorithm::Window, not)]).unwrap();
        assert_eq!((choice.algorithm(), timed.len()), (Algorithm::Smat, 2));
        // Lack of memory for a candidate beside another one is no failure; for the first one it is.
        let lacks = Status::InsufficientResources;
        let (choice, _) = taken(Effort::Tuned, 4, &[(Algorithm::SpmmSell, lacks)]).unwrap();
        assert_eq!(choice.algorithm(), Algorithm::Smat);
        assert_eq!(taken(Effort::Tuned, 4, &[(Algorithm::Row, lacks)]).unwrap_err().status, lacks);
        let none = ALL.map(|algorithm| (algorithm, not));
        assert_eq!(taken(Effort::Tuned, 4, &none).unwrap_err().status, not);
    }
}

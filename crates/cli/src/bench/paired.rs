//! Runs of several works in turns, round by round, and the confidence interval of the ratio of two times from
//! such rounds. A disturbance that slows the machine down for some seconds slows both times of a round, so
//! that ratios within a round vary less than times do.

use std::time::{Duration, Instant};

use super::timer::Timer;
use crate::Result;

/// Half width of the normal distribution's 95 % interval, in standard deviations.
const HALF_WIDTH: f64 = 1.96;
/// Least number of rounds, unless they take longer than [`PATIENCE`].
const LEAST_ROUNDS: usize = 25;
/// Time after which no further round begins, once there are [`FEWEST_ROUNDS`].
const PATIENCE: Duration = Duration::from_secs(60);
/// Least number of rounds in any case, so that there is an interval.
const FEWEST_ROUNDS: usize = 3;
/// Number of untimed calls before the first round: they fill instruction caches, raise clocks and touch the
/// pages of the output.
const WARM_UP: usize = 2;
/// Least total time in microseconds of a group of calls back to back, and least and largest number of its
/// calls.
const GROUP_US: f64 = 2e3;
const GROUP_CALLS: (usize, usize) = (4, 1000);

/// Geometric mean of ratios, and its 95 % confidence interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ratio {
    /// exp of the mean m of the n logarithms.
    pub mean: f64,
    /// exp(m − 1.96 · s / √n), s their standard deviation over n − 1.
    pub low: f64,
    /// exp(m + 1.96 · s / √n).
    pub high: f64,
}

/// Returns the ratio theirs/ours of times that were taken in the same rounds. An interval needs at least two
/// rounds with positive times.
pub fn ratio(ours: &[f64], theirs: &[f64]) -> Option<Ratio> {
    let logs: Vec<f64> = ours.iter().zip(theirs).map(|(ours, theirs)| (theirs / ours).ln()).collect();
    if logs.len() < 2 || logs.iter().any(|log| !log.is_finite()) {
        return None;
    }
    let n = logs.len() as f64;
    let mean = logs.iter().sum::<f64>() / n;
    let variance = logs.iter().map(|log| (log - mean).powi(2)).sum::<f64>() / (n - 1.0);
    let half = HALF_WIDTH * (variance / n).sqrt();
    Some(Ratio { mean: mean.exp(), low: (mean - half).exp(), high: (mean + half).exp() })
}

/// Microseconds of each work in each round.
#[derive(Debug, Default)]
pub struct Rounds {
    /// Times of one call with cold caches.
    pub cold: Vec<Vec<f64>>,
    /// Times per call in a group of calls back to back.
    pub warm: Vec<Vec<f64>>,
}

/// Times `works` works in turns: first, second, …, first, second, …, for at least 25 rounds, or fewer if they
/// take longer than a minute. Returns the microseconds of each work in each round. `timed` runs the work with
/// a given number and returns its time; `rest` is called before each turn. An error of one work ends all.
pub fn rounds(
    repeat: usize,
    works: usize,
    rest: &dyn Fn(),
    timed: &mut dyn FnMut(usize) -> Result<f64>,
) -> Result<Vec<Vec<f64>>> {
    let mut times = vec![Vec::new(); works];
    let start = Instant::now();
    for round in 0..repeat.max(LEAST_ROUNDS) {
        if round >= FEWEST_ROUNDS && start.elapsed() > PATIENCE {
            break;
        }
        for (at, times) in times.iter_mut().enumerate() {
            rest();
            times.push(timed(at)?);
        }
    }
    Ok(times)
}

/// Runs the works in turns with cold caches before each, and then again in groups of calls back to back; see
/// [`rounds`].
pub fn in_turns(
    timer: &dyn Timer,
    repeat: usize,
    works: &mut [Box<dyn FnMut() -> Result<()> + '_>],
    rest: &dyn Fn(),
) -> Result<Rounds> {
    for work in works.iter_mut() {
        rest();
        (0..WARM_UP).try_for_each(|_| work())?;
    }
    let cold = rounds(repeat, works.len(), rest, &mut |at| timer.cold(&mut *works[at]))?;
    let calls: Vec<usize> = cold.iter().map(|times| group(times)).collect();
    let warm = rounds(repeat, works.len(), rest, &mut |at| timer.warm(calls[at], &mut *works[at]))?;
    Ok(Rounds { cold, warm })
}

/// Number of calls of a group for a work with these times.
fn group(times: &[f64]) -> usize {
    let least = times.iter().copied().fold(f64::INFINITY, f64::min).max(1e-3);
    ((GROUP_US / least).ceil() as usize).clamp(GROUP_CALLS.0, GROUP_CALLS.1)
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};

    use super::super::timer::Work;
    use super::*;

    fn near(found: f64, expected: f64) -> bool {
        (found / expected - 1.0).abs() < 1e-12
    }

    #[test]
    fn intervals_of_known_ratios() {
        // Logarithms 1, 2 and 3: mean 2, standard deviation 1.
        let theirs: Vec<f64> = [1.0f64, 2.0, 3.0].iter().map(|log| 10.0 * log.exp()).collect();
        let found = ratio(&[10.0; 3], &theirs).unwrap();
        let half = 1.96 / 3f64.sqrt();
        assert!(near(found.mean, 2f64.exp()), "{found:?}");
        assert!(near(found.low, (2.0 - half).exp()) && near(found.high, (2.0 + half).exp()), "{found:?}");
        // The rounds are paired: times that vary together have one ratio.
        let found = ratio(&[1.0, 10.0, 4.0], &[2.0, 20.0, 8.0]).unwrap();
        assert!(near(found.mean, 2.0) && near(found.low, 2.0) && near(found.high, 2.0), "{found:?}");
    }

    #[test]
    fn no_interval_without_two_positive_times() {
        assert_eq!(ratio(&[], &[]), None);
        assert_eq!(ratio(&[1.0], &[2.0]), None);
        assert_eq!(ratio(&[1.0, 0.0], &[2.0, 2.0]), None);
        assert_eq!(ratio(&[1.0, 1.0], &[2.0, f64::NAN]), None);
    }

    /// Timer that records which work has run, and how.
    struct Log(RefCell<Vec<(char, usize)>>, Cell<usize>);

    impl Timer for Log {
        fn cold(&self, work: &mut Work<'_>) -> Result<f64> {
            work()?;
            self.0.borrow_mut().push(('c', self.1.get()));
            Ok(if self.1.get() == 0 { 100.0 } else { 1e9 })
        }

        fn warm(&self, calls: usize, work: &mut Work<'_>) -> Result<f64> {
            work()?;
            self.0.borrow_mut().push(('w', self.1.get()));
            Ok(calls as f64)
        }
    }

    #[test]
    fn works_take_turns_in_every_round() {
        let log = Log(RefCell::default(), Cell::new(9));
        let rests = Cell::new(0);
        let run = |name: usize| {
            let at = &log.1;
            move || {
                at.set(name);
                Ok(())
            }
        };
        let mut works: Vec<Box<dyn FnMut() -> Result<()>>> = vec![Box::new(run(0)), Box::new(run(1))];
        let rounds = in_turns(&log, 3, &mut works, &|| rests.set(rests.get() + 1)).unwrap();
        let turns = log.0.take();
        assert_eq!(turns.len(), 4 * LEAST_ROUNDS);
        for (at, turn) in turns.iter().enumerate() {
            assert_eq!(*turn, (if at < 2 * LEAST_ROUNDS { 'c' } else { 'w' }, at % 2));
        }
        assert_eq!(rests.get(), 2 + 4 * LEAST_ROUNDS);
        assert_eq!(rounds.cold, [vec![100.0; LEAST_ROUNDS], vec![1e9; LEAST_ROUNDS]]);
        // Groups of two milliseconds, and of no fewer than four calls.
        assert_eq!(rounds.warm, [vec![20.0; LEAST_ROUNDS], vec![4.0; LEAST_ROUNDS]]);
        let rounds = in_turns(&log, 30, &mut works, &|| {}).unwrap();
        assert_eq!((rounds.cold[1].len(), rounds.warm[0].len()), (30, 30));
    }

    #[test]
    fn an_error_ends_the_rounds() {
        let log = Log(RefCell::default(), Cell::new(0));
        let mut works: Vec<Box<dyn FnMut() -> Result<()>>> =
            vec![Box::new(|| Ok(())), Box::new(|| Err("broken".into()))];
        let found = in_turns(&log, 3, &mut works, &|| {});
        assert_eq!(found.err().unwrap().to_string(), "broken");
    }
}

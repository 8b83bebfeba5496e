//! Tests of random problems on every backend against the naive loops.
//!
//! Every run is the same unless TARSIA_TEST_SEED (an integer) says otherwise;
//! TARSIA_TEST_CASES sets the number of random cases of each property.
//!
//! Every case carries traps besides its numbers: NaN and Inf in x and B where
//! no stored entry looks, NaN in y and C where beta is 0, NaN in A, x and B
//! where alpha is 0, NaN in the padding of B and C.

pub mod cases;
mod invariants;
mod large;
pub mod spgemm;
pub mod spmm;
pub mod spmv;

use proptest::strategy::Strategy;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestRng, TestRunner};

use crate::common::Outcome;

fn environment(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name} = {text:?} is not a number")))
}

/// Runs `test` on random cases, four times as many in a release build; a
/// failure shows the smallest case found.
pub fn check<S: Strategy>(cases: u32, strategy: S, test: impl Fn(&S::Value) -> Outcome) {
    let seed = environment("TARSIA_TEST_SEED").unwrap_or(20_240_611);
    let cases = if cfg!(debug_assertions) { cases } else { 4 * cases };
    let cases = environment("TARSIA_TEST_CASES").map_or(cases, |cases| cases as u32);
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let config = Config { cases, failure_persistence: None, max_shrink_iters: 4096, ..Config::default() };
    let mut runner = TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &bytes));
    let outcome =
        runner.run(&strategy, |case| test(&case).map_err(|error| TestCaseError::fail(error.to_string())));
    if let Err(error) = outcome {
        panic!("TARSIA_TEST_SEED={seed}: {error}");
    }
}

#[test]
fn spmv_agrees_with_the_naive_loops() {
    check(3000, spmv::strategy(), spmv::run);
}

#[test]
fn spmm_agrees_with_the_naive_loops() {
    check(3000, spmm::strategy(), spmm::run);
}

#[test]
fn spgemm_agrees_with_the_naive_loops() {
    check(2000, spgemm::strategy(), spgemm::run);
}

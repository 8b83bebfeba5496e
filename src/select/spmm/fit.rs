//! Fits the rates to measurements: prints what [`super::rates`] has.

use super::tests::{cases, Case};
use super::*;
use crate::select::layouts::fit::minimize;

/// A place of [`Rates`]: its name, kernels of how many classes, and who takes it.
type Place = (&'static str, usize, fn(&mut Rates, usize) -> &mut Forms);

const PLACES: [Place; 5] = [
    ("row", 3, |rates, at| &mut rates.row[at]),
    ("sell", 3, |rates, at| &mut rates.sell[at]),
    ("window", 4, |rates, at| &mut rates.window[at]),
    ("smat", 3, |rates, at| &mut rates.smat[at]),
    ("dense", 4, |rates, at| &mut rates.dense[at]),
];

/// Where each of a kernel's six numbers starts from, as seconds of one of what it counts.
const STARTS: [f64; 6] = [6e-6, 1e-10, 1.0 / 2.5e12, 1.0 / 8e12, 3e-12, 2e-11];

fn kernel(values: &[f64]) -> Kernel {
    let of = |at: usize| values[at].exp();
    Kernel { start: of(0), serial: of(1), memory: 1.0 / of(2), fetch: 1.0 / of(3), work: of(4), unit: of(5) }
}

/// Errors' squares, linear beyond 15 %: what the terms do not know should not bend all others.
fn error(kernel: &Kernel, cases: &[&Case]) -> f64 {
    let errors = cases.iter().map(|case| {
        let error = (kernel.seconds(&case.work()) * 1e6 / case.us).ln();
        if error.abs() < 0.15 {
            error * error
        } else {
            0.3 * error.abs() - 0.0225
        }
    });
    (errors.sum::<f64>() / cases.len() as f64).sqrt()
}

/// `cargo test --release --lib select::spmm::fit -- --ignored --nocapture`
#[test]
#[ignore = "prints rates that fit benches/results"]
fn fit() {
    let cases = cases();
    for (name, classes, place) in PLACES {
        println!("    {name}: [");
        for class in 0..classes {
            println!("        [");
            for form in 0..2 {
                // A kernel that takes the case's place.
                let is_of = |case: &&Case| {
                    let mut rates = H100;
                    let own = 0.125 + place(&mut rates, class)[form].start;
                    place(&mut rates, class)[form].start = own;
                    rates.of(case.algorithm, case.types, case.n).start == own
                };
                let own: Vec<_> = cases.iter().filter(is_of).collect();
                let mut found: Vec<f64> = STARTS.iter().map(|start| start.ln()).collect();
                let mut best = f64::INFINITY;
                if !own.is_empty() {
                    for _ in 0..8 {
                        found = minimize(&found, 400, |values| error(&kernel(values), &own));
                    }
                    best = error(&kernel(&found), &own);
                }
                let Kernel { start, serial, memory, fetch, work, unit } = kernel(&found);
                println!(
                    "            Kernel {{ start: {start:.3e}, serial: {serial:.3e}, memory: {memory:.3e}, fetch: \
                     {fetch:.3e}, work: {work:.3e}, unit: {unit:.3e} }}, // {:.3} over {}",
                    best,
                    own.len()
                );
            }
            println!("        ],");
        }
        println!("    ],");
    }
}

//! Fits the rates to measurements, and prints them in the form of [`super::rates`].
//!
//! Each kernel is fitted to its own times first; then all kernels of a class of values are fitted together to
//! minimise the loss by wrong choices: effects that the terms leave out put a kernel's predictions off by a
//! fifth, and a choice needs only their order.

use std::collections::BTreeMap;

use super::tests::{cases, Case};
use super::*;
use crate::select::spmv::fit::minimize;

/// Field of [`Rates`]: its name, its number of classes of values, and access to the kernels of a class.
type Place = (&'static str, usize, fn(&Rates, usize) -> &Forms);

const PLACES: [Place; 5] = [
    ("row", 3, |rates, at| &rates.row[at]),
    ("sell", 3, |rates, at| &rates.sell[at]),
    ("window", 4, |rates, at| &rates.window[at]),
    ("smat", 3, |rates, at| &rates.smat[at]),
    ("dense", 4, |rates, at| &rates.dense[at]),
];

/// Count of a kernel's numbers.
const NUMBERS: usize = 7;
/// Start values of the fit, as seconds per unit of what each number counts.
const STARTS: [f64; NUMBERS] = [6e-6, 1e-10, 1.0 / 2.5e12, 1.0 / 8e12, 1.0 / 8e12, 3e-12, 2e-11];

/// Logarithms of a kernel's numbers, in the order of [`STARTS`].
type Logs = [f64; NUMBERS];

/// Index of a kernel in [`H100`].
fn number(kernel: &Kernel) -> usize {
    (std::ptr::from_ref(kernel) as usize - std::ptr::from_ref(&H100) as usize) / size_of::<Kernel>()
}

static H100: Rates = super::H100;

fn kernel(values: &[f64]) -> Kernel {
    let of = |at: usize| values[at].exp();
    Kernel {
        start: of(0),
        serial: of(1),
        memory: 1.0 / of(2),
        fetch: 1.0 / of(3),
        near: 1.0 / of(4),
        work: of(5),
        unit: of(6),
    }
}

/// Square of an error, linear beyond 15 %, so that effects outside the model do not distort the fit.
fn square(error: f64) -> f64 {
    if error.abs() < 0.15 {
        error * error
    } else {
        0.3 * error.abs() - 0.0225
    }
}

fn error(kernel: &Kernel, cases: &[&Case]) -> f64 {
    let errors = cases.iter().map(|case| square((kernel.seconds(&case.work()) * 1e6 / case.us).ln()));
    (errors.sum::<f64>() / cases.len() as f64).sqrt()
}

/// Fit of a kernel to its own times.
fn alone(cases: &[&Case]) -> Logs {
    let mut found: Vec<f64> = STARTS.iter().map(|start| start.ln()).collect();
    if !cases.is_empty() {
        for _ in 0..8 {
            found = minimize(&found, 400, |values| error(&kernel(values), cases));
        }
    }
    std::array::from_fn(|at| found[at])
}

/// Case of a product: index of its kernel, its work, and its measured microseconds.
type FitCase = (usize, Work, f64);

/// The cases of a product.
type FitCases = Vec<FitCase>;

/// Mean logarithmic loss of a choice over these products that prefers faster predictions, softly, and the
/// mean squared error of predictions.
fn losses(products: &[FitCases], kernels: &[Kernel]) -> (f64, f64) {
    /// Difference of logarithms that sets two predictions apart.
    const APART: f64 = 0.04;
    let (mut lost, mut off, mut count) = (0.0, 0.0, 0);
    for product in products {
        let logs: Vec<f64> = product.iter().map(|(of, work, _)| kernels[*of].seconds(work).ln()).collect();
        let least = logs.iter().copied().fold(f64::INFINITY, f64::min);
        let best = product.iter().map(|part| part.2).fold(f64::INFINITY, f64::min);
        let (mut sum, mut all) = (0.0, 0.0);
        for (log, (_, _, us)) in logs.iter().zip(product) {
            let weight = ((least - log) / APART).exp();
            sum += weight * (us / best).ln();
            all += weight;
            off += square(log - (us * 1e-6).ln());
            count += 1;
        }
        lost += sum / all;
    }
    (lost / products.len().max(1) as f64, off / f64::from(count.max(1)))
}

/// Fits all kernels together by random steps of one number at a time, shorter and shorter, keeping those that
/// lose less.
fn together(products: &[FitCases], all: &mut [Logs]) {
    /// Weight of the predictions' error against the loss of a choice.
    const WEIGHT: f64 = 0.3;
    const STEPS: usize = 40_000;
    let mut kernels: Vec<Kernel> = all.iter().map(|logs| kernel(logs)).collect();
    let mut used: Vec<usize> = products.iter().flatten().map(|part| part.0).collect();
    used.sort_unstable();
    used.dedup();
    let of = |kernels: &[Kernel]| {
        let (lost, off) = losses(products, kernels);
        lost + WEIGHT * off
    };
    let mut best = of(&kernels);
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut uniform = move || {
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        (state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11) as f64 / (1_u64 << 53) as f64
    };
    for step in 0..STEPS {
        let (at, which) =
            (used[(uniform() * used.len() as f64) as usize], (uniform() * NUMBERS as f64) as usize);
        let length = 0.6 * (1.0 - step as f64 / STEPS as f64) + 0.02;
        let (before, kernel_before) = (all[at][which], kernels[at]);
        all[at][which] += length * (2.0 * uniform() - 1.0);
        kernels[at] = kernel(&all[at]);
        let now = of(&kernels);
        if now < best {
            best = now;
        } else {
            (all[at][which], kernels[at]) = (before, kernel_before);
        }
    }
}

/// Products by precision, columns of C and matrix.
type Products<'a> = BTreeMap<(&'a str, i64, &'a str), FitCases>;

/// Products grouped by class of values and form, since a group shares kernels; only those of matrices that
/// `takes` accepts.
fn products(cases: &[Case], takes: impl Fn(&str) -> bool) -> Vec<Vec<FitCases>> {
    let mut groups: BTreeMap<(usize, bool), Products<'_>> = BTreeMap::new();
    for case in cases.iter().filter(|case| takes(case.matrix)) {
        let of = number(H100.of(case.algorithm, case.types, case.n));
        let group = groups.entry((case.types.a.size(), case.n > NARROW)).or_default();
        let product = group.entry((case.precision, case.n, case.matrix)).or_default();
        product.push((of, case.work(), case.us));
    }
    groups.into_values().map(|group| group.into_values().collect()).collect()
}

/// Geometric mean of the loss by choosing the fastest prediction of these kernels.
fn hard_loss(groups: &[Vec<FitCases>], kernels: &[Kernel]) -> f64 {
    let products = groups.iter().flatten();
    let of = |product: &FitCases| {
        let predicted = |part: &FitCase| kernels[part.0].seconds(&part.1);
        let chosen = product.iter().min_by(|a, b| predicted(a).total_cmp(&predicted(b))).unwrap();
        (chosen.2 / product.iter().map(|part| part.2).fold(f64::INFINITY, f64::min)).ln()
    };
    (products.clone().map(of).sum::<f64>() / products.count() as f64).exp()
}

/// `cargo test --release --lib select::spmm::fit -- --ignored --nocapture`
#[test]
#[ignore = "prints rates that fit benches/results"]
fn fit() {
    let cases = cases();
    let count = size_of::<Rates>() / size_of::<Kernel>();
    let fitted = |takes: &dyn Fn(&str) -> bool, joint: bool| {
        let own = |at| {
            let is_of = |case: &&Case| {
                takes(case.matrix) && number(H100.of(case.algorithm, case.types, case.n)) == at
            };
            alone(&cases.iter().filter(is_of).collect::<Vec<_>>())
        };
        let mut all: Vec<Logs> = (0..count).map(own).collect();
        for group in products(&cases, takes).iter().filter(|_| joint) {
            together(group, &mut all);
        }
        all
    };
    let kernels = |logs: &[Logs]| logs.iter().map(|logs| kernel(logs)).collect::<Vec<_>>();
    // Cross-validation: rates fitted to one half of the matrices, split by name, are applied to the other
    // half.
    let half = |name: &str| name.bytes().map(u32::from).sum::<u32>() % 2 == 0;
    for joint in [false, true] {
        for even in [false, true] {
            let found = kernels(&fitted(&|name| half(name) == even, joint));
            let of = |own| hard_loss(&products(&cases, |name| (half(name) == even) == own), &found);
            println!(
                "// together {joint}, one half: {:.4}; the other, not fitted to: {:.4}",
                of(true),
                of(false)
            );
        }
    }
    let apart = hard_loss(&products(&cases, |_| true), &kernels(&fitted(&|_| true, false)));
    let found = fitted(&|_| true, true);
    let all = kernels(&found);
    println!("// all: {apart:.4}, together {:.4}", hard_loss(&products(&cases, |_| true), &all));
    for (name, classes, place) in PLACES {
        println!("    {name}: [");
        for class in 0..classes {
            println!("        [");
            for form in &place(&H100, class)[..] {
                let at = number(form);
                let is_of = |case: &&Case| number(H100.of(case.algorithm, case.types, case.n)) == at;
                let own: Vec<_> = cases.iter().filter(is_of).collect();
                let Kernel { start, serial, memory, fetch, near, work, unit } = all[at];
                println!(
                    "            kernel([{start:.3e}, {serial:.3e}, {memory:.2e}, {fetch:.2e}, {near:.2e}, {work:.3e}, \
                     {unit:.3e}]), // {:.3} over {}",
                    if own.is_empty() { f64::INFINITY } else { error(&all[at], &own) },
                    own.len()
                );
            }
            println!("        ],");
        }
        println!("    ],");
    }
}

/// Compares predictions with a second device; see [`compare`](crate::select::device::fit::compare).
#[test]
#[ignore = "reads tables of two devices"]
fn of_a_second_device() {
    use super::tests::{corpus_statistics, ALGORITHMS};
    use crate::select::counted::CountedProblem;
    use crate::select::device::fit::{compare, types, ProductKey};
    use crate::types::BackendKind;
    let corpus_statistics = corpus_statistics();
    let known = |product: &ProductKey| {
        let types = types(&product.0)?;
        Some((types, corpus_statistics.get(&product.1[..])?[usize::from(types.a.size() > 2)]))
    };
    let seconds = |machine: &Machine, product: &ProductKey, name: &str| {
        let (types, statistics) = known(product)?;
        let algorithm = *ALGORITHMS.iter().find(|algorithm| algorithm.name() == name)?;
        Some(estimate(machine.spmm_rates()?, &statistics, algorithm, types, product.2).seconds)
    };
    compare("spmm", seconds, |machine, product| {
        let (types, statistics) = known(product)?;
        let (rows, nnz) = (statistics.counts.rows, statistics.counts.nnz);
        let problem = CountedProblem { rows, cols: statistics.cols, nnz, types, backend: BackendKind::Cuda };
        problem.spmm_on(machine, &statistics, product.2).ok()
    });
}

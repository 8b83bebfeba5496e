//! Fits the rates to measurements, and prints them in the form of [`super::rates`].
//!
//! `row` and `sell` are fitted to the sampled products of benches/training, whose tables hold all that their terms
//! need ([`of_samples`]). `window`, `smat` and `dense` need counts of windows, which are known of the 53 matrices of the
//! comparison ([`fit`]): each kernel is fitted to its own times first; then the kernels of a class of values are fitted
//! together to minimise the loss by wrong choices: effects that the terms leave out put a kernel's predictions off by a
//! fifth, and a choice needs only their order.

use std::collections::BTreeMap;
use std::io::Write;

use super::tests::{cases, memory_ratio, unpacked, Case, RATES};
use super::*;
use crate::select::device::fit::types;
use crate::select::spmv::fit::minimize;

/// Field of [`Rates`]: its name, its number of classes of values, and access to the kernels of a class.
type Place = (&'static str, usize, fn(&Rates, usize) -> &Forms);

/// Kernels that [`of_samples`] fits.
const OF_ROWS: [Place; 3] = [
    ("row", 3, |rates, at| &rates.row[at]),
    ("row_groups", 3, |rates, at| &rates.row_groups[at]),
    ("sell", 3, |rates, at| &rates.sell[at]),
];

/// Kernels that [`fit`] fits.
const OF_WINDOWS: [Place; 3] = [
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

/// Index of a kernel in [`RATES`].
fn number(kernel: &Kernel) -> usize {
    (std::ptr::from_ref(kernel) as usize - std::ptr::from_ref(&RATES) as usize) / size_of::<Kernel>()
}

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

/// Root of the weighted mean of [`square`] of the errors of these cases: work, measured microseconds, and weight.
fn error(kernel: &Kernel, cases: &[(Work, f64, f64)]) -> f64 {
    let of = |(work, us, weight): &(Work, f64, f64)| weight * square((kernel.seconds(work) * 1e6 / us).ln());
    let weights: f64 = cases.iter().map(|case| case.2).sum();
    (cases.iter().map(of).sum::<f64>() / weights).sqrt()
}

/// Fit of a kernel to its own times.
fn alone(cases: &[(Work, f64, f64)]) -> Logs {
    let mut found: Vec<f64> = STARTS.iter().map(|start| start.ln()).collect();
    if !cases.is_empty() {
        for _ in 0..8 {
            found = minimize(&found, 400, |values| error(&kernel(values), cases));
        }
    }
    std::array::from_fn(|at| found[at])
}

/// Prints a kernel in the form of [`super::rates`], with its error.
fn print(kernel: &Kernel, cases: &[(Work, f64, f64)]) {
    let Kernel { start, serial, memory, fetch, near, work, unit } = kernel;
    println!(
        "            kernel([{start:.3e}, {serial:.3e}, {memory:.2e}, {fetch:.2e}, {near:.2e}, {work:.3e}, {unit:.3e}]), \
         // {:.0} % over {}",
        100.0 * error(kernel, cases),
        cases.len()
    );
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
/// lose less. The first `kept` kernels stay as they are.
fn together(products: &[FitCases], all: &mut [Logs], kept: usize) {
    /// Weight of the predictions' error against the loss of a choice.
    const WEIGHT: f64 = 0.3;
    const STEPS: usize = 40_000;
    let mut kernels: Vec<Kernel> = all.iter().map(|logs| kernel(logs)).collect();
    let mut used: Vec<usize> = products.iter().flatten().map(|part| part.0).collect();
    used.retain(|of| *of >= kept);
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
    for case in cases.iter().filter(|case| takes(&case.matrix)) {
        let of = number(case.kernel());
        let group = groups.entry((case.types.a.size(), case.n > NARROW)).or_default();
        let product = group.entry((&case.precision, case.n, &case.matrix)).or_default();
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

/// `cargo test --release --lib select::spmm::fit::fit -- --ignored --nocapture`
#[test]
#[ignore = "prints rates that fit the times of the 53 matrices"]
fn fit() {
    let cases = cases();
    let own = |at: usize, takes: &dyn Fn(&str) -> bool| {
        let is_of = |case: &&Case| takes(&case.matrix) && number(case.kernel()) == at;
        cases.iter().filter(is_of).map(|case| (case.work(), case.us, 1.0)).collect::<Vec<_>>()
    };
    // The kernels of rows keep their rates.
    let all_of = |places: &[Place]| -> Vec<&'static Kernel> {
        let classes =
            places.iter().flat_map(|&(_, classes, place)| (0..classes).map(move |at| place(&RATES, at)));
        classes.flatten().collect()
    };
    let kept: Vec<_> = all_of(&OF_ROWS);
    let fitted = |takes: &dyn Fn(&str) -> bool, joint: bool| {
        let mut all: Vec<Logs> = kept.iter().map(|kernel| logs(kernel)).collect();
        for kernel in all_of(&OF_WINDOWS) {
            all.push(alone(&own(number(kernel), takes)));
        }
        for group in products(&cases, takes).iter().filter(|_| joint) {
            together(group, &mut all, kept.len());
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
    for (name, classes, place) in OF_WINDOWS {
        println!("    {name}: [");
        for class in 0..classes {
            println!("        [");
            for form in place(&RATES, class) {
                print(&all[number(form)], &own(number(form), &|_| true));
            }
            println!("        ],");
        }
        println!("    ],");
    }
}

/// Logarithms of a kernel's numbers; those of a term that takes no time are far below all others.
fn logs(kernel: &Kernel) -> Logs {
    let Kernel { start, serial, memory, fetch, near, work, unit } = kernel;
    [*start, *serial, 1.0 / memory, 1.0 / fetch, 1.0 / near, *work, *unit]
        .map(|number| number.max(1e-30).ln())
}

/// Numbers of a product in the tables of `tarsia sample`, by their names.
fn number_of(numbers: &[f64], name: &str) -> f64 {
    numbers[SpmmStatistics::NAMES.iter().position(|other| *other == name).unwrap()]
}

/// Statistics from the numbers of a product in the tables: what [`work`] needs of them for `row` and `sell`.
fn statistics_of(numbers: &[f64]) -> SpmmStatistics {
    let of = |name: &str| number_of(numbers, name);
    let (rows, nnz) = (of("rows") as usize, of("nnz") as usize);
    let columns = ["reuse_8", "reuse_16", "reuse_32", "reuse_64"];
    let columns = columns.map(|name| (nnz as f64 / of(name)).round() as usize);
    let counts = Counts { rows, nnz, sampled_nnz: nnz, columns, ..Counts::default() };
    SpmmStatistics { cols: of("cols") as usize, longest: of("longest") as usize, counts }
}

/// Returns `row` or `sell`, if the tables call it so.
fn of_rows(name: &str) -> Option<Algorithm> {
    [Algorithm::Row, Algorithm::SpmmSell].into_iter().find(|algorithm| algorithm.name() == name)
}

/// Tables of `tarsia sample` that TARSIA_TABLES names, with the names of their files.
fn tables() -> Vec<(String, String)> {
    let paths = std::env::var("TARSIA_TABLES").expect("TARSIA_TABLES names tables of tarsia sample");
    let read = |path: &str| (path.to_string(), unpacked(&std::fs::read(path).expect("TARSIA_TABLES")));
    paths.split(',').map(read).collect()
}

/// Product of a line of a table: value types, columns of C, statistics, and the fields of the line.
fn product_of(line: &str) -> Option<(Types, i64, SpmmStatistics, Vec<&str>)> {
    let fields: Vec<_> = line.split('\t').collect();
    let (10, Some(&"spmm")) = (fields.len(), fields.get(5)) else { return None };
    let numbers: Vec<f64> = fields[8].split(' ').map(|number| number.parse().unwrap()).collect();
    Some((types(fields[6])?, fields[7].parse().unwrap(), statistics_of(&numbers), fields))
}

/// Prints the rates of `row` and `sell`. A time that is far from the best of its product counts little.
///
/// `TARSIA_TABLES=FIRST,… cargo test --release --lib select::spmm::fit::of_samples -- --ignored --nocapture`
#[test]
#[ignore = "prints rates that fit sampled products"]
fn of_samples() {
    /// Weight of a time that is far from the best.
    const LEAST: f64 = 0.05;
    let mut cases: BTreeMap<*const Kernel, Vec<(Work, f64, f64)>> = BTreeMap::new();
    for (_, text) in tables() {
        let memory = memory_ratio(&text);
        for (types, n, statistics, fields) in text.lines().filter_map(product_of) {
            let times = || fields[9].split(' ').map(|time| time.split(':').collect::<Vec<_>>());
            let us = |parts: &[&str]| parts[2].parse::<f64>().unwrap();
            let best = times().map(|parts| us(&parts)).fold(f64::INFINITY, f64::min);
            for parts in times() {
                let Some(algorithm) = of_rows(parts[0]) else { continue };
                let work = work(&statistics, algorithm, types, n, RATES.multiprocessors);
                let work = Work { bytes: work.bytes / memory, ..work };
                let weight = (best / us(&parts)).powi(2) + LEAST;
                let kernel = RATES.of(algorithm, types, n, counts_of(&statistics));
                cases.entry(kernel).or_default().push((work, us(&parts), weight));
            }
        }
    }
    for (name, classes, place) in OF_ROWS {
        println!("    {name}: [");
        for class in 0..classes {
            println!("        [");
            for form in place(&RATES, class) {
                let own = &cases[&std::ptr::from_ref(form)];
                print(&kernel(&alone(own)), own);
            }
            println!("        ],");
        }
        println!("    ],");
    }
}

/// Writes tables again with the predictions of today's rates for `row` and `sell`, from which the trees learn.
///
/// `TARSIA_TABLES=FIRST,… cargo test --release --lib predictions_again -- --ignored`
#[test]
#[ignore = "writes tables again"]
fn predictions_again() {
    for (path, text) in tables() {
        let rates = super::tests::rates_with(memory_ratio(&text));
        let mut out = String::new();
        for line in text.lines() {
            let Some((types, n, statistics, mut fields)) = product_of(line) else {
                out += line;
                out.push('\n');
                continue;
            };
            let again = |time: &str| {
                let (name, rest) = time.split_once(':').unwrap();
                // 0 marks an algorithm that had no prediction.
                let (before, rest) = rest.split_once(':').unwrap();
                let Some(algorithm) = of_rows(name).filter(|_| before != "0") else {
                    return time.to_string();
                };
                let seconds = estimate(&rates, &statistics, algorithm, types, n).seconds;
                format!("{name}:{}:{rest}", (1e6 * seconds) as f32)
            };
            let times = fields[9].split(' ').map(again).collect::<Vec<_>>().join(" ");
            fields[9] = &times;
            out += &fields.join("\t");
            out.push('\n');
        }
        let file = std::fs::File::create(&path).unwrap();
        let mut packed = flate2::write::GzEncoder::new(file, flate2::Compression::best());
        packed.write_all(out.as_bytes()).unwrap();
        packed.finish().unwrap();
    }
}

/// Compares predictions with a second device; see [`compare`](crate::select::device::fit::compare).
#[test]
#[ignore = "reads tables of two devices"]
fn of_a_second_device() {
    use super::tests::{corpus_statistics, ALGORITHMS};
    use crate::select::counted::CountedProblem;
    use crate::select::device::fit::{compare, ProductKey};
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

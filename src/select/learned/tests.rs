use std::collections::BTreeMap;

use super::*;
use crate::matrix::compressed::Pattern;
use crate::select::spmm::tests::unpacked;
use crate::support::{self, Combo};
use crate::types::DataType;

fn learned(forests: Vec<(Algorithm, Forest)>) -> Learned {
    Learned { bounds: (0.7, 1.3), depth: 2, relative: vec![Algorithm::SpmmSell], forests }
}

fn weights() -> Learned {
    // Half as long where number 6 is at most 2; else as predicted, or longer where the prediction is more
    // than three times the best.
    let made = Forest {
        base: 100,
        inputs: vec![6, 0, 21],
        limits: vec![2.0, f32::INFINITY, 3.0],
        leaves: vec![-7032, -7032, -100, 900],
    };
    // A tenth longer where `sell` takes more than half as long, or was not measured.
    let relative = Forest {
        base: 0,
        inputs: vec![22, 22, 0],
        limits: vec![0.5, 0.0, f32::INFINITY],
        leaves: vec![953, 0, 953, 953],
    };
    learned(vec![(Algorithm::Row, made), (Algorithm::Window, relative)])
}

#[test]
fn trees_are_walked_and_bounded() {
    let weights = weights();
    let of = |number: f32, predicted: f64| {
        let mut numbers = [0.0; NUMBERS];
        numbers[6] = number;
        let all = [(Algorithm::SpmmSell, 1e-6), (Algorithm::Row, predicted)];
        let correction = Correction::new(&weights, &numbers, &all).unwrap();
        // An algorithm without trees is not corrected.
        assert_eq!(correction.seconds(Algorithm::SpmmSell, predicted), predicted);
        correction.seconds(Algorithm::Row, predicted) / predicted
    };
    // A factor of a half is beyond the bound.
    assert_eq!([of(1.0, 2e-6), of(2.0, 2e-6)], [0.7; 2]);
    assert_eq!(of(2.5, 2e-6), 1.0);
    assert!((of(2.5, 4e-6) - 0.1f64.exp()).abs() < 1e-10);
    // Predictions of more than five times the best are not corrected.
    assert!((of(1.0, 4.9e-6) - 0.7).abs() < 1e-10);
    assert_eq!(of(1.0, 5.1e-6), 1.0);
    assert!(Correction::new(&learned(vec![]), &[], &[]).is_none());
}

/// Trees that are walked side by side lead to the leaves that each leads to by itself.
#[test]
fn trees_are_walked_together_as_alone() {
    const DEPTH: u32 = 3;
    let mut random = matrices::SplitMix64::new(5);
    let mut draw = |n: u64| random.below(n);
    let numbers: Vec<f32> = (0..30).map(|_| draw(100) as f32).collect();
    for trees in [0, 1, TOGETHER - 1, TOGETHER, TOGETHER + 1, 3 * TOGETHER + 5] {
        let splits = trees * ((1 << DEPTH) - 1);
        let forest = Forest {
            base: -7,
            // Some inputs have no number, which is 0 then.
            inputs: (0..splits).map(|_| draw(40) as u8).collect(),
            limits: (0..splits).map(|_| draw(100) as f32).collect(),
            leaves: (0..trees << DEPTH).map(|_| draw(60_000) as i16).collect(),
        };
        let alone = (0..trees).map(|tree| {
            let mut place = 0;
            for _ in 0..DEPTH {
                let split = 7 * tree + place;
                let number = numbers.get(usize::from(forest.inputs[split])).copied().unwrap_or(0.0);
                place = 2 * place + if number <= forest.limits[split] { 1 } else { 2 };
            }
            i32::from(forest.leaves[8 * tree + place - 7])
        });
        assert_eq!(forest.log(DEPTH, &numbers), alone.sum::<i32>() - 7, "{trees} trees");
    }
}

#[test]
fn others_times_count() {
    let weights = weights();
    let of = |sell: f64| {
        let all = [(Algorithm::Row, 1e-6), (Algorithm::Window, 2e-6), (Algorithm::SpmmSell, sell)];
        let correction = Correction::new(&weights, &[0.0; NUMBERS], &all).unwrap();
        correction.seconds(Algorithm::Window, 2e-6) / 2e-6
    };
    let longer = |factor: f64| (factor - 0.0953f64.exp()).abs() < 1e-10;
    assert_eq!(of(1e-6), 1.0);
    assert!(longer(of(1.1e-6)) && longer(of(5e-6)) && longer(of(6e-6)));
    assert_eq!(of(0.5e-6), 1.0);
}

#[test]
fn exponentials_are_near() {
    for at in -125..=125 {
        let x = f64::from(at) / 100.0;
        assert!((exponential(x) / x.exp() - 1.0).abs() < 1e-10, "{x}");
    }
}

#[test]
fn a_correction_takes_microseconds() {
    let numbers = [1.0; NUMBERS];
    // A hundred trees of five comparisons for one algorithm, evaluated once for each of five algorithms.
    let forest = Forest { base: 0, inputs: vec![3; 3100], limits: vec![0.5; 3100], leaves: vec![1; 3200] };
    let deep = Learned { depth: 5, ..learned(vec![(Algorithm::SpmmSell, forest)]) };
    let all = [Algorithm::SpmmSell, Algorithm::Row, Algorithm::Window, Algorithm::Smat, Algorithm::Dense];
    let all = all.map(|algorithm| (algorithm, 1.0));
    let (mut sum, mut least) = (0.0, f64::INFINITY);
    for _ in 0..200 {
        // The fastest of many runs counts, since others share the machine.
        let start = std::time::Instant::now();
        let correction = Correction::new(&deep, &numbers, &all).unwrap();
        for _ in 0..5 {
            sum += correction.seconds(Algorithm::SpmmSell, 1.0);
        }
        least = start.elapsed().as_secs_f64().min(least);
    }
    println!("{:.1} µs", 1e6 * least);
    // Optimized builds take less than 20 µs; builds of tests may take longer.
    assert!(sum > 0.0 && least < 2e-3, "{least}");
}

#[test]
fn numbers_are_finite_and_named() {
    let offsets: [i64; 5] = [0, 2, 2, 5, 6];
    let indices = [0, 3, 1, 2, 3, 0];
    let patterns = [
        Pattern {
            major: 4,
            minor: 4,
            base: 0,
            offsets: &offsets[..],
            indices: &indices[..],
            by_columns: false,
        },
        Pattern { major: 1, minor: 0, base: 0, offsets: &[0, 0], indices: &[], by_columns: false },
        Pattern { major: 0, minor: 5, base: 0, offsets: &[0], indices: &[], by_columns: false },
    ];
    for pattern in &patterns {
        let windows = crate::select::spmm::SpmmStatistics::of(pattern, DataType::R32F);
        let of_spmm = windows.numbers(support::F32::TYPES, 32);
        assert!(of_spmm.iter().all(|number| number.is_finite()), "{of_spmm:?}");
    }
    let windows = crate::select::spmm::SpmmStatistics::of(&patterns[0], DataType::R32F);
    let of_spmm = windows.numbers(support::F32::TYPES, 32);
    let of = |name: &str| of_spmm[SpmmStatistics::NAMES.iter().position(|other| *other == name).unwrap()];
    // Six entries in four columns, in one window.
    assert_eq!((of("reuse_8"), of("row_bytes"), of("mean"), of("longest")), (1.5, 128.0, 1.5, 3.0));
}

/// Times of all candidates for products of matrices that nothing was learned from: files, and the comparison
/// of the gallery. SpMM was measured on an H200 and is predicted for one.
const SPMV_MEASURED: &[u8] = include_bytes!("../../../benches/training/h100-test.tsv.gz");
const SPMM_MEASURED: &[u8] = include_bytes!("../../../benches/training/h200-spmm-test.tsv.gz");

/// Product of the table: its numbers, and the predicted and measured microseconds of its algorithms.
struct Measured {
    group: String,
    numbers: Vec<f32>,
    times: Vec<(Algorithm, f64, f64)>,
}

fn measured(op: &str) -> Vec<Measured> {
    let text = unpacked(if op == "spmv" { SPMV_MEASURED } else { SPMM_MEASURED });
    let algorithm = |name: &str| match (op, name) {
        ("spmm", "sell") => Some(Algorithm::SpmmSell),
        ("spmm", "row") => Some(Algorithm::Row),
        ("spmm", "window") => Some(Algorithm::Window),
        ("spmm", "smat") => Some(Algorithm::Smat),
        ("spmm", "dense") => Some(Algorithm::Dense),
        ("spmv", "sell") => Some(Algorithm::Sell),
        ("spmv", "csr") => Some(Algorithm::Csr),
        ("spmv", "stream") => Some(Algorithm::Stream),
        ("spmv", "dasp") => Some(Algorithm::Dasp),
        ("spmv", "mask_block") => Some(Algorithm::MaskBlock),
        _ => None,
    };
    let products = text.lines().filter(|line| !line.starts_with('#'));
    let products = products.map(|line| line.split('\t').collect::<Vec<_>>()).filter(|fields| fields[5] == op);
    let products = products.map(|fields| {
        let times = fields[9].split(' ').filter_map(|time| {
            let parts: Vec<_> = time.split(':').collect();
            Some((algorithm(parts[0])?, parts[1].parse().unwrap(), parts[2].parse().unwrap()))
        });
        Measured {
            group: format!("{op} {} {}", fields[6], fields[7]),
            numbers: fields[8].split(' ').map(|number| number.parse().unwrap()).collect(),
            times: times.collect(),
        }
    });
    products.filter(|product| product.times.len() > 1).collect()
}

/// Speed of the choices over that of the best candidate, in geomean, for each group of products.
fn shares(products: &[Measured], choose: impl Fn(&Measured) -> Algorithm) -> BTreeMap<&str, f64> {
    let mut sums: BTreeMap<&str, (f64, usize)> = BTreeMap::new();
    for product in products {
        let best = product.times.iter().map(|(.., time)| *time).fold(f64::INFINITY, f64::min);
        let chosen = choose(product);
        let (.., taken) = product.times.iter().find(|(algorithm, ..)| *algorithm == chosen).unwrap();
        let sum = sums.entry(&product.group).or_default();
        *sum = (sum.0 + (best / taken).ln(), sum.1 + 1);
    }
    sums.into_iter().map(|(group, (sum, count))| (group, (sum / count as f64).exp())).collect()
}

/// Returns the algorithm with the least seconds, or `kept` unless the former is faster by the margin.
fn best(all: &[(Algorithm, f64)], kept: Option<(Algorithm, f64)>) -> Algorithm {
    let first = all.iter().min_by(|x, y| x.1.total_cmp(&y.1)).unwrap();
    let kept = kept.and_then(|(kept, margin)| {
        let found = all.iter().find(|(algorithm, _)| *algorithm == kept);
        found.filter(|found| first.1 > found.1 * (1.0 - margin))
    });
    kept.unwrap_or(first).0
}

/// Choices are near the best in each group of products: SpMV's by the cost model alone, SpMM's with the
/// learned corrections, which improve them.
#[test]
fn choices_are_near_the_best() {
    let mean = |shares: &BTreeMap<&str, f64>| shares.values().map(|share| share.ln()).sum::<f64>();
    let predicted = |product: &Measured| -> Vec<_> {
        product.times.iter().map(|&(algorithm, us, _)| (algorithm, 1e-6 * us)).collect()
    };
    let (spmv, spmm) = (measured("spmv"), measured("spmm"));
    assert!(spmv.len() > 100 && spmm.len() > 100);
    let kept = Some((Algorithm::Sell, crate::select::spmv::MARGIN));
    let of_spmv = shares(&spmv, |product| best(&predicted(product), kept));
    let plain = shares(&spmm, |product| best(&predicted(product), None));
    let of_spmm = shares(&spmm, |product| {
        let all = predicted(product);
        let correction = Correction::new(file::hopper(), &product.numbers, &all).unwrap();
        let corrected = |&(algorithm, seconds)| (algorithm, correction.seconds(algorithm, seconds));
        best(&all.iter().map(corrected).collect::<Vec<_>>(), None)
    });
    for (group, share) in &of_spmv {
        println!("{group}: {:.2} %", 100.0 * share);
    }
    for (group, share) in &of_spmm {
        println!("{group}: {:.2} %, without corrections {:.2}", 100.0 * share, 100.0 * plain[group]);
    }
    assert_eq!((of_spmv.len(), of_spmm.len()), (3, 15));
    assert!(of_spmv.values().chain(of_spmm.values()).all(|share| *share >= 0.97), "{of_spmv:?} {of_spmm:?}");
    assert!(mean(&of_spmm) > mean(&plain), "{of_spmm:?} {plain:?}");
}

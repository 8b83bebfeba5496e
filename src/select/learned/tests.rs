use std::collections::BTreeMap;
use std::io::Read;

use super::*;
use crate::matrix::compressed::Pattern;
use crate::support::{self, Combo};
use crate::types::DataType;

/// Where number 6 is at most 2, half as long; else as predicted, or longer where what is predicted is more
/// than three times the best.
const MADE: Forest = Forest {
    base: 100,
    inputs: &[6, 0, 20],
    limits: &[2.0, f32::INFINITY, 3.0],
    leaves: &[-7032, -7032, -100, 900],
};
const fn learned(forests: &'static [(Algorithm, Forest)]) -> Learned {
    Learned { bounds: (0.7, 1.3), margin: 0.0, depth: 2, relative: &[Algorithm::Sell], forests }
}
static WEIGHTS: Weights =
    Weights { spmv: learned(&[(Algorithm::Csr, MADE), (Algorithm::Dasp, RELATIVE)]), spmm: learned(&[]) };
/// A tenth longer where `sell` takes more than half as long, or was not looked at.
const RELATIVE: Forest =
    Forest { base: 0, inputs: &[21, 21, 0], limits: &[0.5, 0.0, f32::INFINITY], leaves: &[953, 0, 953, 953] };

#[test]
fn trees_are_walked_and_bounded() {
    let of = |mean: f32, predicted: f64| {
        let mut numbers = [0.0; SPMV.len()];
        numbers[6] = mean;
        let all = [(Algorithm::Sell, 1e-6), (Algorithm::Csr, predicted)];
        let correction = Correction::new(&WEIGHTS.spmv, &numbers, &all).unwrap();
        // What nothing was learned of is left as it is.
        assert_eq!(correction.seconds(Algorithm::Sell, predicted), predicted);
        correction.seconds(Algorithm::Csr, predicted) / predicted
    };
    // A half is beyond the bound.
    assert_eq!([of(1.0, 2e-6), of(2.0, 2e-6)], [0.7; 2]);
    assert_eq!(of(2.5, 2e-6), 1.0);
    assert!((of(2.5, 4e-6) - 0.1f64.exp()).abs() < 1e-10);
    // Five times the best is as far as corrections go.
    assert!((of(1.0, 4.9e-6) - 0.7).abs() < 1e-10);
    assert_eq!(of(1.0, 5.1e-6), 1.0);
    assert!(Correction::new(&WEIGHTS.spmm, &[], &[]).is_none());
}

#[test]
fn others_times_count() {
    let of = |sell: f64| {
        let all = [(Algorithm::Csr, 1e-6), (Algorithm::Dasp, 2e-6), (Algorithm::Sell, sell)];
        let correction = Correction::new(&WEIGHTS.spmv, &[0.0; SPMV.len()], &all).unwrap();
        correction.seconds(Algorithm::Dasp, 2e-6) / 2e-6
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
fn what_was_learned_is_well_formed() {
    for weights in [Some(&WEIGHTS), weights::H100].into_iter().flatten() {
        let numbers = [SPMV.len(), SPMM.len()];
        for (learned, numbers) in [&weights.spmv, &weights.spmm].into_iter().zip(numbers) {
            let (leaves, numbers) = (1 << learned.depth, numbers + 2 + learned.relative.len());
            let (least, most) = learned.bounds;
            assert!((0.3..1.0).contains(&least) && most > 1.0 && most <= 3.0);
            for (algorithm, forest) in learned.forests {
                let trees = forest.leaves.len() / leaves;
                assert_eq!(forest.leaves.len(), trees * leaves, "{algorithm:?}");
                assert_eq!(forest.inputs.len(), trees * (leaves - 1), "{algorithm:?}");
                assert_eq!(forest.limits.len(), forest.inputs.len(), "{algorithm:?}");
                assert!(forest.inputs.iter().all(|&input| usize::from(input) < numbers));
                assert!(forest.limits.iter().all(|limit| !limit.is_nan()));
            }
        }
    }
}

#[test]
fn a_correction_takes_microseconds() {
    let numbers = [1.0; SPMM.len()];
    // A hundred trees of five comparisons an algorithm, five of them.
    static INPUTS: [u8; 3100] = [3; 3100];
    static LIMITS: [f32; 3100] = [0.5; 3100];
    static LEAVES: [i16; 3200] = [1; 3200];
    static FIVE: [(Algorithm, Forest); 1] =
        [(Algorithm::Sell, Forest { base: 0, inputs: &INPUTS, limits: &LIMITS, leaves: &LEAVES })];
    static DEEP: Learned = Learned { depth: 5, ..learned(&FIVE) };
    let all = [Algorithm::Sell, Algorithm::Row, Algorithm::Window, Algorithm::Smat, Algorithm::Dense];
    let all = all.map(|algorithm| (algorithm, 1.0));
    let (mut sum, mut least) = (0.0, f64::INFINITY);
    for _ in 0..200 {
        // The fastest of many: others share the machine.
        let start = std::time::Instant::now();
        let correction = Correction::new(&DEEP, &numbers, &all).unwrap();
        for _ in 0..5 {
            sum += correction.seconds(Algorithm::Sell, 1.0);
        }
        least = start.elapsed().as_secs_f64().min(least);
    }
    println!("{:.1} µs", 1e6 * least);
    // Optimized below 20 µs; tests need not be.
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
        let of_spmv = spmv(&Survey::of(pattern, 8), support::F64::TYPES);
        let windows = crate::select::spmm::Survey::of(pattern, DataType::R32F);
        let of_spmm = spmm(&windows, support::F32::TYPES, 32);
        assert!(of_spmv.iter().chain(&of_spmm).all(|number| number.is_finite()), "{of_spmv:?} {of_spmm:?}");
    }
    let of = |names: &[&str], numbers: &[f32], name: &str| {
        numbers[names.iter().position(|other| *other == name).unwrap()]
    };
    let of_spmv = spmv(&Survey::of(&patterns[0], 8), support::F64::TYPES);
    assert_eq!((of(&SPMV, &of_spmv, "mean"), of(&SPMV, &of_spmv, "longest")), (1.5, 3.0));
    // Lengths 2, 0, 3 and 1: a variance of 5/4.
    assert_eq!(of(&SPMV, &of_spmv, "deviation"), (1.25f64.sqrt() / 1.5) as f32);
    assert_eq!((of(&SPMV, &of_spmv, "empty"), of(&SPMV, &of_spmv, "x_bytes")), (0.25, 32.0));
    let windows = crate::select::spmm::Survey::of(&patterns[0], DataType::R32F);
    let of_spmm = spmm(&windows, support::F32::TYPES, 32);
    // Six entries in four columns, in one window.
    assert_eq!((of(&SPMM, &of_spmm, "reuse_8"), of(&SPMM, &of_spmm, "row_bytes")), (1.5, 128.0));
}

/// All candidates of products of matrices that nothing was learned from: files, and the comparison of the gallery.
const MEASURED: &[u8] = include_bytes!("../../../benches/training/h100-test.tsv.gz");

/// A product of the table: its numbers, and what is predicted and measured of its algorithms, in microseconds.
struct Measured {
    group: String,
    numbers: Vec<f32>,
    times: Vec<(Algorithm, f64, f64)>,
}

fn measured(op: &str) -> Vec<Measured> {
    let mut text = String::new();
    flate2::read::GzDecoder::new(MEASURED).read_to_string(&mut text).unwrap();
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

/// Of each group of products how much of the best candidate's speed choices have, in geomean.
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

#[test]
fn choices_are_near_the_best() {
    let weights = weights::H100.unwrap();
    for (op, learned, kept, margin) in [
        ("spmv", &weights.spmv, Some(Algorithm::Sell), crate::select::layouts::MARGIN),
        ("spmm", &weights.spmm, None, 0.0),
    ] {
        let products = measured(op);
        assert!(products.len() > 100);
        let by = |seconds: &dyn Fn(&Measured, Algorithm, f64) -> f64, margin: f64| {
            shares(&products, |product| {
                let all = product
                    .times
                    .iter()
                    .map(|&(algorithm, us, _)| (algorithm, seconds(product, algorithm, 1e-6 * us)));
                let all: Vec<_> = all.collect();
                let first = *all.iter().min_by(|x, y| x.1.total_cmp(&y.1)).unwrap();
                let kept = all.iter().find(|(algorithm, _)| Some(*algorithm) == kept);
                kept.filter(|kept| first.1 > kept.1 * (1.0 - margin)).unwrap_or(&first).0
            })
        };
        let plain = by(&|_, _, seconds| seconds, margin);
        let corrected = by(
            &|product, algorithm, seconds| {
                let all: Vec<_> = product.times.iter().map(|&(other, us, _)| (other, 1e-6 * us)).collect();
                Correction::new(learned, &product.numbers, &all).unwrap().seconds(algorithm, seconds)
            },
            learned.margin,
        );
        for (group, share) in &corrected {
            println!("{group}: {:.2} %, without corrections {:.2}", 100.0 * share, 100.0 * plain[group]);
        }
        let mean = |shares: &BTreeMap<&str, f64>| shares.values().map(|share| share.ln()).sum::<f64>();
        assert!(corrected.values().all(|share| *share >= 0.97), "{corrected:?}");
        assert!(mean(&corrected) > mean(&plain), "{corrected:?} {plain:?}");
    }
}

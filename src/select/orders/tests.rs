use std::collections::BTreeMap;

use super::*;
use crate::matrix::compressed::Pattern;
use crate::reorder::policy::POLICIES;
use crate::select::spmm::tests::unpacked;

/// Network of one layer, whose outputs are the logarithms of some features, shifted.
fn network(outputs: &[(Reorder, usize, f32)]) -> Network {
    let mut weights = vec![0.0; NUMBERS * outputs.len()];
    for (at, (_, input, _)) in outputs.iter().enumerate() {
        weights[input * outputs.len() + at] = 1.0;
    }
    let biases = outputs.iter().map(|(.., bias)| *bias).collect();
    Network {
        shifts: vec![0.0; NUMBERS],
        scales: vec![1.0; NUMBERS],
        layers: vec![Layer { weights, biases }],
        policies: outputs.iter().map(|(policy, ..)| *policy).collect(),
    }
}

#[test]
fn logarithms_are_those_of_the_library() {
    let steps = (-90..=160).map(|tenth| 10f64.powf(f64::from(tenth) / 10.0));
    for x in steps.chain([0.0, 1.0, 0.5, 3.0, 1023.0, 1e300]) {
        // For a small x, 1 + x drops the low bits of x.
        let near = 4.0 * f64::EPSILON * (1.0 + x.ln_1p());
        assert!((log1p(x) - x.ln_1p()).abs() <= near, "{x}: {} {}", log1p(x), x.ln_1p());
    }
}

#[test]
fn the_order_of_the_least_time_is_chosen() {
    let two = network(&[(Reorder::Lpt, 5, -2.0), (Reorder::Dcsr, 4, -1.0)]);
    let of = |mean: f64, most: f64| {
        let mut numbers = [0.0; NUMBERS];
        (numbers[4], numbers[5]) = (mean, most);
        two.choose(&numbers)
    };
    // ln(1 + 3) − 2 and ln(1 + 1) − 1.
    assert_eq!(of(1.0, 3.0), Reorder::Lpt);
    assert_eq!(of(1.0, 5.0), Reorder::Dcsr);
    // No order is faster than the rows' own.
    assert_eq!(of(2.0, 7.0), Reorder::None);
}

#[test]
fn what_the_matrix_cannot_have_is_not_chosen() {
    let two = network(&[(Reorder::Rcm, 5, -9.0), (Reorder::Dcsr, 4, -1.0)]);
    let mut numbers = [0.0; NUMBERS];
    (numbers[0], numbers[1]) = (7.0, 7.0);
    assert_eq!(two.choose(&numbers), Reorder::Rcm);
    numbers[1] = 8.0;
    assert_eq!(two.choose(&numbers), Reorder::Dcsr);
}

/// Layers feed each other, and only the last keeps negative outputs.
#[test]
fn layers_follow_each_other() {
    let mut deep = network(&[(Reorder::Lpt, 3, 0.0), (Reorder::Dcsr, 4, -1.5)]);
    deep.shifts[3] = 1.0;
    deep.scales[3] = 0.5;
    deep.layers.push(Layer { weights: vec![1.0, -1.0, 10.0, 3.0], biases: vec![0.25, 0.5] });
    let mut numbers = [0.0; NUMBERS];
    numbers[3] = std::f64::consts::E - 1.0;
    numbers[4] = 3.0;
    // (1 − 1)/0.5 and ln 4 − 1.5, which is negative.
    let near = |found: Vec<f64>, expected: [f64; 2]| {
        let far = found.iter().zip(expected).find(|(found, expected)| (*found - expected).abs() > 1e-12);
        assert!(far.is_none(), "{found:?} {expected:?}");
    };
    near(deep.outputs(&numbers), [0.25, 0.5]);
    numbers[3] = std::f64::consts::E.powi(2) - 1.0;
    near(deep.outputs(&numbers), [2.25, -1.5]);
}

#[test]
fn what_nothing_was_learned_of_is_not_supported() {
    let features = FeatureSet::of(&Pattern {
        major: 1,
        minor: 1,
        base: 0,
        offsets: &[0i32, 1][..],
        indices: &[0i32][..],
        by_columns: false,
    });
    let orders = Orders { networks: vec![(Algorithm::Row, network(&[(Reorder::Lpt, 0, -9.0)]))] };
    assert_eq!(orders.choose(Algorithm::Row, &features), Ok(Reorder::Lpt));
    let error = orders.choose(Algorithm::SpmmCsr, &features).unwrap_err();
    assert_eq!(error.status, crate::error::Status::NotSupported);
    for word in ["TARSIA_REORDER_LEARNED", "SpMM csr", "measured"] {
        assert!(error.message.contains(word), "{error}");
    }
}

/// Times of products in all row orders, of sampled matrices that nothing was learned from.
const MEASURED: &[u8] = include_bytes!("../../../benches/training/h100-orders-test.tsv.gz");

/// Features of a matrix, and microseconds of a product in each order; RCM for square matrices only.
type Measured = ([f64; NUMBERS], Vec<(Reorder, f64)>);

/// Order of the name that a table has, such as `none` or `plain_sort`.
fn order_of(name: &str) -> Reorder {
    let is_it = |order: &&Reorder| order.c_name().to_lowercase() == format!("tarsia_reorder_{name}");
    *Reorder::ALL.iter().find(is_it).unwrap()
}

/// Measured products of a form.
fn measured(form: &str) -> Vec<Measured> {
    let text = unpacked(MEASURED);
    let lines = text.lines().filter(|line| !line.starts_with('#') && !line.starts_with("number"));
    let (mut features, mut out) = (BTreeMap::new(), Vec::new());
    for fields in lines.map(|line| line.split('\t').collect::<Vec<_>>()) {
        if fields[5] == "matrix" {
            let numbers: Vec<f64> = fields[8].split(' ').map(|number| number.parse().unwrap()).collect();
            features.insert(fields[0], <[f64; NUMBERS]>::try_from(numbers).unwrap());
        } else if fields[5] == form {
            let time = |time: &str| {
                let parts: Vec<_> = time.split(':').collect();
                (order_of(parts[0]), parts[2].parse().unwrap())
            };
            out.push((features[fields[0]], fields[9].split(' ').map(time).collect()));
        }
    }
    out
}

fn geomean(ratios: &[f64]) -> f64 {
    (ratios.iter().map(|ratio| ratio.ln()).sum::<f64>() / ratios.len() as f64).exp()
}

fn mean(ratios: &[f64]) -> f64 {
    ratios.iter().sum::<f64>() / ratios.len() as f64
}

fn share(ratios: &[f64], is_met: impl Fn(f64) -> bool) -> f64 {
    ratios.iter().filter(|&&ratio| is_met(ratio)).count() as f64 / ratios.len() as f64
}

/// Comparison with the oracle as in the paper (section V.D): the gain of the chosen orders over the rows'
/// own, the gain of the oracle, which knows the times, and the distance of matrices from it. The paper has 96
/// % of the oracle's mean speed-up, and 86 % of matrices within 4 %.
#[test]
fn choices_are_near_the_oracle() {
    // Minimum shares of the oracle's speed and of its gain.
    let forms = [
        ("orders-spmv-csr", Algorithm::Csr, 0.985, 0.2),
        ("orders-spmm-row", Algorithm::Row, 0.98, 0.5),
        ("orders-spmm-csr", Algorithm::SpmmCsr, 0.975, 0.6),
    ];
    for (form, algorithm, least_share, least_gain) in forms {
        let products = measured(form);
        assert_eq!(products.len(), 381, "{form}");
        let network = h100().of(algorithm).unwrap();
        let time_of = |times: &[(Reorder, f64)], order: Reorder| {
            times.iter().find(|(other, _)| *other == order).map(|(_, time)| *time)
        };
        let own = |times: &[(Reorder, f64)]| time_of(times, Reorder::None).unwrap();
        let (mut gains, mut oracle, mut shares) = (Vec::new(), Vec::new(), Vec::new());
        for (features, times) in &products {
            let best = times.iter().map(|(_, time)| *time).fold(f64::INFINITY, f64::min);
            let taken = time_of(times, network.choose(features)).unwrap();
            gains.push(own(times) / taken);
            oracle.push(own(times) / best);
            shares.push(best / taken);
        }
        // A matrix that cannot have the order keeps its own order.
        let always = |policy: &Reorder| {
            let of = |(_, times): &Measured| own(times) / time_of(times, *policy).unwrap_or(own(times));
            geomean(&products.iter().map(of).collect::<Vec<_>>())
        };
        let single = POLICIES.iter().map(always).fold(0.0, f64::max);
        let (all, gained) = (geomean(&shares), geomean(&gains));
        let within = |least: f64| share(&shares, |ratio| ratio >= least);
        println!(
            "{form}: speed-up {gained:.3} in geomean (mean {:.3}), oracle {:.3} ({:.3}), always one policy at most \
             {single:.3}; {:.1} % of the oracle's speed; {:.0} % of matrices the best, {:.0} % within 4 %, {:.0} % within \
             10 %",
            mean(&gains),
            geomean(&oracle),
            mean(&oracle),
            100.0 * all,
            100.0 * within(1.0),
            100.0 * within(0.96),
            100.0 * within(0.9),
        );
        assert!(all >= least_share, "{form}: {all}");
        assert!(gained.ln() >= least_gain * geomean(&oracle).ln() && gained > single, "{form}: {gained}");
        assert!(mean(&gains) >= 0.96 * mean(&oracle), "{form}");
        assert!(within(0.96) >= 0.84 && within(0.9) >= 0.94, "{form}");
    }
}

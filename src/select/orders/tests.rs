use super::*;
use crate::matrix::compressed::Pattern;

/// A network of one layer, which gives the logarithms of some features as outputs.
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
        // Of a small x the bits are gone that 1 + x has no room for.
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
    // Neither is faster than the rows' own.
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

/// Layers are summed up, and only the last has negative outputs.
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

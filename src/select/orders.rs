//! Prediction of the row order for `TARSIA_REORDER_LEARNED`, after Mehrabi et al., "Learning sparse matrix
//! row permutations for efficient SpMM on GPU architectures" (ISPASS 2021), section V. For each form of
//! product that takes orders, a fully connected network with two hidden layers predicts, from the paper's 24
//! features of the pattern ([`features`](crate::reorder::features)), the logarithm of the product's time in
//! each order over that in the rows' own; the order with the least is taken. train/train.py learns the
//! networks from tables of `tarsia sample --orders` and writes them into a binary file ([`file`]).
//!
//! Layers are summed on one thread in the order of their inputs, in additions and multiplications of doubles,
//! and logarithms are computed by a series: the bits are the same on every machine, whatever its number of
//! threads.

mod file;

use crate::algorithm::Algorithm;
use crate::error::{Error, Result};
use crate::reorder::features::{FeatureSet, NUMBERS};
use crate::types::Reorder;

pub use self::file::h100;

/// Layer of a network: each output is a bias plus the sum of all inputs, each times a weight.
#[derive(Clone, Debug, PartialEq)]
struct Layer {
    /// Weights by input, with one for each output.
    weights: Vec<f32>,
    biases: Vec<f32>,
}

impl Layer {
    fn outputs(&self, inputs: &[f64]) -> Vec<f64> {
        let mut sums: Vec<_> = self.biases.iter().map(|&bias| f64::from(bias)).collect();
        for (input, weights) in inputs.iter().zip(self.weights.chunks_exact(sums.len())) {
            for (sum, &weight) in sums.iter_mut().zip(weights) {
                *sum += input * f64::from(weight);
            }
        }
        sums
    }
}

/// Network that was learned for one form of product.
#[derive(Clone, Debug, PartialEq)]
struct Network {
    /// Normalization of the features' logarithms: a shift is subtracted, then the result is divided by a
    /// scale.
    shifts: Vec<f32>,
    scales: Vec<f32>,
    /// Layers; negative outputs of all but the last are set to 0.
    layers: Vec<Layer>,
    /// Order that each output of the last layer stands for.
    policies: Vec<Reorder>,
}

impl Network {
    /// Predicted logarithm of the relative time in each order.
    fn outputs(&self, numbers: &[f64; NUMBERS]) -> Vec<f64> {
        let scaled = numbers.iter().zip(&self.shifts).zip(&self.scales);
        let mut values: Vec<_> =
            scaled.map(|((&x, &shift), &scale)| (log1p(x) - f64::from(shift)) / f64::from(scale)).collect();
        for (at, layer) in self.layers.iter().enumerate() {
            values = layer.outputs(&values);
            if at + 1 < self.layers.len() {
                values.iter_mut().for_each(|value| *value = value.max(0.0));
            }
        }
        values
    }

    /// Order that is predicted to be the fastest; [`Reorder::None`] unless one is faster than the rows' own.
    fn choose(&self, numbers: &[f64; NUMBERS]) -> Reorder {
        let is_square = numbers[0] == numbers[1];
        let all = self.policies.iter().copied().zip(self.outputs(numbers));
        // RCM orders the rows and columns of square matrices only.
        let possible = all.filter(|(policy, _)| is_square || *policy != Reorder::Rcm);
        let own = (Reorder::None, 0.0);
        possible.fold(own, |best, other| if other.1 < best.1 { other } else { best }).0
    }
}

/// ln(1 + x) of a finite x ≥ 0, off by a few units in the last place: ln m + e ln 2 for 1 + x = m · 2^e with
/// m from 1 to 2, where ln m = 2 (s + s³/3 + s⁵/5 + …) with s = (m − 1)/(m + 1) ≤ 1/3.
fn log1p(x: f64) -> f64 {
    let bits = (1.0 + x).to_bits();
    let exponent = (bits >> 52) as i32 - 1023;
    let m = f64::from_bits(bits & ((1 << 52) - 1) | 1023 << 52);
    let s = (m - 1.0) / (m + 1.0);
    let series = (0..17).rev().fold(0.0, |sum, k| sum * s * s + 1.0 / f64::from(2 * k + 1));
    2.0 * s * series + f64::from(exponent) * std::f64::consts::LN_2
}

/// Learned networks by form of product.
#[derive(Clone, Debug, PartialEq)]
pub struct Orders {
    networks: Vec<(Algorithm, Network)>,
}

impl Orders {
    fn of(&self, algorithm: Algorithm) -> Option<&Network> {
        self.networks.iter().find(|(other, _)| *other == algorithm).map(|(_, network)| network)
    }

    /// Returns `NOT_SUPPORTED` if no network was learned for products by an algorithm.
    pub fn require(&self, algorithm: Algorithm) -> Result<()> {
        let (operation, name) = (algorithm.row().op.short(), algorithm.name());
        match self.of(algorithm) {
            Some(_) => Ok(()),
            None => Err(Error::unsupported(format!(
                "reorder: {} has nothing to go by: no times of {operation} {name} in different orders of rows were \
                 measured",
                Reorder::Learned.c_name()
            ))),
        }
    }

    /// Predicted fastest order of rows for an algorithm and a pattern with these features.
    pub fn choose(&self, algorithm: Algorithm, features: &FeatureSet) -> Result<Reorder> {
        self.require(algorithm)?;
        Ok(self.of(algorithm).map_or(Reorder::None, |network| network.choose(&features.numbers())))
    }
}

#[cfg(test)]
mod tests;

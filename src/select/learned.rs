//! How far the cost model's times of SpMM are off: for each algorithm the logarithm of its measured over its
//! predicted time, by boosted trees over what the choice counts in the pattern anyway. train/train.py learns them
//! from tables of `tarsia sample` and writes a binary file for a kind of machine ([`file`]). Where there are no trees
//! for a machine the cost model chooses alone, as it always does for SpMV and SpGEMM.
//!
//! A tree asks [`Learned::depth`] times whether one of a product's numbers is at most a limit; its leaf is a
//! logarithm in whole ten-thousandths, all of which are added. A factor is held between [`Learned::bounds`],
//! so that no correction makes a layout look good that is far off; what is predicted to be [`SENSIBLE`]
//! times the best is left alone. Numbers are rounded to 32 bits, in which they are
//! written down, learned from and compared. Nothing here but the exponential is more than an addition, a
//! multiplication, a division or a square root, and that is a polynomial: the same bits on every machine.

pub(super) mod file;

use super::spmm::copies::PACK;
use super::spmm::{shape, Survey};
use crate::algorithm::Algorithm;
use crate::support::Types;
use crate::types::ComputeType;

/// Numbers of a product ([`Survey::numbers`]), and places among them.
const NUMBERS: usize = 20;
const COLS: usize = 1;
const VALUE_BYTES: usize = 3;

impl Survey {
    /// Raised when a name of [`Self::NAMES`] is added, removed or counted in another way.
    pub const VERSION: u32 = 1;
    /// Names of [`Self::numbers`].
    pub const NAMES: [&str; NUMBERS] = [
        "rows",
        "cols",
        "nnz",
        "value_bytes",
        "tf32",
        "n",
        "row_bytes",
        "b_bytes",
        "c_bytes",
        "mean",
        "longest",
        "skew",
        "density",
        "reuse_8",
        "reuse_16",
        "reuse_32",
        "reuse_64",
        "tile_fill",
        "block_fill",
        "spread",
    ];

    /// Numbers of a product with a dense matrix of `n` columns.
    pub fn numbers(&self, types: Types, n: i64) -> [f32; NUMBERS] {
        let counts = &self.counts;
        let (rows, cols, nnz) =
            (counts.rows.max(1) as f64, self.cols.max(1) as f64, counts.nnz.max(1) as f64);
        let mean = nnz / rows;
        let row_bytes = n.max(1) as f64 * types.x.size() as f64;
        let is_tf32 = types.compute == ComputeType::Tf32;
        let (_, tiles) = counts.all_blocks(16, shape(types.a));
        [
            counts.rows as f64,
            self.cols as f64,
            counts.nnz as f64,
            types.a.size() as f64,
            f64::from(u8::from(is_tf32)),
            n as f64,
            row_bytes,
            row_bytes * cols,
            n.max(1) as f64 * types.y.size() as f64 * rows,
            mean,
            self.longest as f64,
            self.longest as f64 / mean,
            nnz / rows / cols,
            counts.reuse(8),
            counts.reuse(16),
            counts.reuse(32),
            counts.reuse(64),
            nnz / tiles.max(1.0),
            nnz / counts.all_spans(16, true).max(1.0),
            counts.all_columns(64) / (rows / 64.0).max(1.0),
        ]
        .map(|number| number as f32)
    }
}

/// Logarithms beyond these are beyond all bounds.
const FARTHEST: f64 = 1.25;
/// What a leaf counts in.
const UNIT: f64 = 1e-4;

/// What is predicted to take so many times the best is not measured, and not corrected.
pub const SENSIBLE: f64 = 5.0;

/// Trees of one algorithm.
#[derive(Clone, Debug, PartialEq)]
pub struct Forest {
    /// What all trees add to.
    base: i32,
    /// 2^depth − 1 a tree, level after level from its root: which number is compared,
    inputs: Vec<u8>,
    /// with what; at most it: to the left.
    limits: Vec<f32>,
    /// 2^depth a tree, from the left.
    leaves: Vec<i16>,
}

/// Corrections of the cost model of SpMM for one kind of machine, learned from measurements.
#[derive(Clone, Debug, PartialEq)]
pub struct Learned {
    /// Factors are held between these, from 0.3 to 3.
    bounds: (f64, f64),
    /// Comparisons in a tree.
    depth: u32,
    /// Algorithms whose predicted times, over one's own, are numbers of its trees.
    relative: Vec<Algorithm>,
    /// Others are not corrected.
    forests: Vec<(Algorithm, Forest)>,
}

impl Learned {
    /// Numbers that trees compare: [`Survey::NAMES`], the own predicted time in microseconds and over the best one's,
    /// one for each of [`Self::relative`], and [`ends_inside_pack`].
    fn inputs(&self) -> usize {
        NUMBERS + 3 + self.relative.len()
    }
}

impl Forest {
    /// The logarithm of the factor, in ten-thousandths.
    fn log(&self, depth: u32, numbers: &[f32]) -> i32 {
        let leaves = 1_usize << depth;
        let splits = leaves - 1;
        let trees = self.inputs.chunks_exact(splits).zip(self.limits.chunks_exact(splits));
        let trees = trees.zip(self.leaves.chunks_exact(leaves));
        let of_tree = |((inputs, limits), leaves): ((&[u8], &[f32]), &[i16])| {
            let mut place = 0;
            for _ in 0..depth {
                let number = numbers.get(usize::from(inputs[place])).copied().unwrap_or(0.0);
                place = 2 * place + if number <= limits[place] { 1 } else { 2 };
            }
            i32::from(leaves[place - splits])
        };
        trees.map(of_tree).fold(self.base, i32::wrapping_add)
    }
}

/// e^x near 0: Taylor's polynomial, off by less than 10⁻¹⁰ of the result for |x| ≤ [`FARTHEST`].
fn exponential(x: f64) -> f64 {
    (1..=18).rev().fold(1.0, |sum, k| 1.0 + sum * x / f64::from(k))
}

/// 1 where a row of A as a dense matrix ends inside a pack of 16 bytes, so that `dense` multiplies copies, else 0.
fn ends_inside_pack(numbers: &[f32]) -> f32 {
    let (cols, value_bytes) = (numbers[COLS], numbers[VALUE_BYTES]);
    f32::from(u8::from(cols % (PACK as f32 / value_bytes) != 0.0))
}

/// Products of these types are among those that were learned from: real, and all of one type.
fn is_measured(types: Types) -> bool {
    !types.a.is_complex() && [types.x, types.y] == [types.a; 2]
}

/// Corrects what is predicted of one product.
#[derive(Debug)]
pub struct Correction<'a> {
    learned: &'a Learned,
    /// The product's.
    numbers: Vec<f32>,
    /// Seconds that are predicted of algorithms.
    predicted: Vec<(Algorithm, f64)>,
    best: f64,
}

impl<'a> Correction<'a> {
    /// For a product with these numbers, and seconds predicted of its algorithms.
    fn new(learned: &'a Learned, numbers: &[f32], predicted: &[(Algorithm, f64)]) -> Option<Self> {
        let best = predicted.iter().map(|(_, seconds)| *seconds).fold(f64::INFINITY, f64::min);
        let (numbers, predicted) = (numbers.to_vec(), predicted.to_vec());
        (!learned.forests.is_empty()).then_some(Correction { learned, numbers, predicted, best })
    }

    /// For a product with a dense matrix of `n` columns, and seconds predicted of its algorithms; `None`: nothing
    /// was learned of such products.
    pub fn spmm(
        learned: Option<&'a Learned>,
        survey: &Survey,
        types: Types,
        n: i64,
        predicted: &[(Algorithm, f64)],
    ) -> Option<Self> {
        let learned = learned.filter(|_| is_measured(types))?;
        Correction::new(learned, &survey.numbers(types, n), predicted)
    }

    fn is_sensible(&self, predicted: f64) -> bool {
        predicted <= SENSIBLE * self.best
    }

    /// Microseconds of an algorithm as tables have them; 0: it was not measured.
    fn micros(&self, algorithm: Algorithm) -> f32 {
        let found = self.predicted.iter().find(|(other, _)| *other == algorithm);
        found
            .filter(|(_, seconds)| self.is_sensible(*seconds))
            .map_or(0.0, |(_, seconds)| (1e6 * seconds) as f32)
    }

    /// What an algorithm takes that is predicted to take so many seconds. What is far from the best stays so.
    pub fn seconds(&self, algorithm: Algorithm, predicted: f64) -> f64 {
        let found = self.learned.forests.iter().find(|(other, _)| *other == algorithm);
        let Some((_, forest)) = found.filter(|_| self.is_sensible(predicted)) else {
            return predicted;
        };
        let own = (1e6 * predicted) as f32;
        let mut numbers = self.numbers.clone();
        numbers.extend([own, own / (1e6 * self.best) as f32]);
        numbers.extend(self.learned.relative.iter().map(|other| self.micros(*other) / own));
        numbers.push(ends_inside_pack(&self.numbers));
        let log = f64::from(forest.log(self.learned.depth, &numbers)) * UNIT;
        let (least, most) = self.learned.bounds;
        predicted * exponential(log.clamp(-FARTHEST, FARTHEST)).clamp(least, most)
    }
}

#[cfg(test)]
mod tests;

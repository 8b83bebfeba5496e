//! Learned corrections of the cost model's times of SpMM: for each algorithm, boosted trees over the pattern
//! statistics that the choice counts anyway predict the logarithm of its measured over its predicted time.
//! train/train.py learns them from tables of `tarsia sample` and writes a binary file for a kind of machine
//! ([`file`]). Where there are no trees for a machine the cost model chooses alone, as it always does for
//! SpMV and SpGEMM.
//!
//! A tree makes [`Learned::depth`] comparisons of one of a product's numbers with a limit; its leaf is a
//! logarithm in whole ten-thousandths, and the leaves of all trees are added. The factor is clamped to
//! [`Learned::bounds`], so that no correction makes a layout look good that is far off; times predicted to be
//! more than [`SENSIBLE`] times the best are not corrected. Numbers are rounded to 32 bits, in which they are
//! written down, learned from and compared. Apart from the exponential, only additions, multiplications,
//! divisions and square roots are used, and the exponential is a polynomial: the bits are the same on every
//! machine.

pub(super) mod file;

use std::hint::black_box;

use super::spmm::copies::PACK;
use super::spmm::{shape, SpmmStatistics};
use crate::algorithm::Algorithm;
use crate::support::Types;
use crate::types::ComputeType;

/// Count of the numbers of a product ([`SpmmStatistics::numbers`]), and positions of two of them.
const NUMBERS: usize = 20;
const COLS: usize = 1;
const VALUE_BYTES: usize = 3;

impl SpmmStatistics {
    /// Version of the numbers; raised when a name of [`Self::NAMES`] is added, removed or counted in another
    /// way. How many windows are sampled does not count.
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

    /// Statistics of a product with a dense matrix of `n` columns, which are inputs of the trees.
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

/// Largest magnitude of a logarithm that is evaluated; larger ones exceed all bounds.
const FARTHEST: f64 = 1.25;
/// Number of trees that are walked side by side.
const TOGETHER: usize = 8;
/// Unit of a leaf.
const UNIT: f64 = 1e-4;

/// Multiple of the best predicted time beyond which an algorithm is neither measured nor corrected.
pub const SENSIBLE: f64 = 5.0;

/// Boosted trees of one algorithm.
#[derive(Clone, Debug, PartialEq)]
pub struct Forest {
    /// Start value to which the leaves of all trees are added.
    base: i32,
    /// Indices of the compared numbers, 2^depth − 1 per tree, level by level from its root.
    inputs: Vec<u8>,
    /// Limits of the comparisons, in the order of `inputs`; a number that is at most its limit goes to the
    /// left.
    limits: Vec<f32>,
    /// Leaves, 2^depth per tree, from left to right.
    leaves: Vec<i16>,
}

/// Corrections of the cost model of SpMM for one kind of machine, learned from measurements.
#[derive(Clone, Debug, PartialEq)]
pub struct Learned {
    /// Bounds of the correction factors, within 0.3 to 3.
    bounds: (f64, f64),
    /// Number of comparisons from the root of a tree to a leaf.
    depth: u32,
    /// Algorithms whose predicted times, divided by the corrected algorithm's, are inputs of its trees.
    relative: Vec<Algorithm>,
    /// Trees by algorithm; other algorithms are not corrected.
    forests: Vec<(Algorithm, Forest)>,
}

impl Learned {
    /// Number of inputs of the trees: [`SpmmStatistics::NAMES`], the algorithm's predicted time in
    /// microseconds and its ratio to the best one's, one for each of [`Self::relative`], and
    /// [`ends_inside_pack`].
    fn inputs(&self) -> usize {
        NUMBERS + 3 + self.relative.len()
    }

    /// Brings all trees into the processor's caches. A choice compares a few numbers of each cache line of them, in an
    /// order that no processor predicts, and takes several times as long if they come from memory
    /// (docs/algorithms/memory-and-streams.md, "Choices and counts of SpMM").
    pub fn load_into_cache(&self) {
        for (_, forest) in &self.forests {
            forest.inputs.iter().step_by(CACHE_LINE).for_each(|input| _ = black_box(*input));
            forest
                .limits
                .iter()
                .step_by(CACHE_LINE / size_of::<f32>())
                .for_each(|limit| _ = black_box(*limit));
            forest.leaves.iter().step_by(CACHE_LINE / size_of::<i16>()).for_each(|leaf| _ = black_box(*leaf));
        }
    }
}

/// Bytes of a line of a processor's caches.
const CACHE_LINE: usize = 64;

impl Forest {
    /// Sum of the trees' leaves: the logarithm of the factor, in ten-thousandths.
    fn log(&self, depth: u32, numbers: &[f32]) -> i32 {
        // An input is any number of 8 bits; those beyond the given numbers read as 0.
        let mut all = [0.0; 1 << u8::BITS];
        all[..numbers.len()].copy_from_slice(numbers);
        let trees = self.leaves.len() >> depth;
        let whole = trees - trees % TOGETHER;
        let groups = (0..whole).step_by(TOGETHER).map(|first| self.leaves_of::<TOGETHER>(depth, first, &all));
        let others = (whole..trees).map(|tree| self.leaves_of::<1>(depth, tree, &all));
        groups.chain(others).fold(self.base, i32::wrapping_add)
    }

    /// Sum of the leaves that T trees from `first` on lead to. The trees are walked side by side, since the steps of one
    /// wait for each other.
    fn leaves_of<const T: usize>(&self, depth: u32, first: usize, numbers: &[f32; 1 << u8::BITS]) -> i32 {
        let leaves = 1_usize << depth;
        let splits = leaves - 1;
        let inputs = &self.inputs[first * splits..][..T * splits];
        let limits = &self.limits[first * splits..][..T * splits];
        let mut places = [0; T];
        for _ in 0..depth {
            for (tree, place) in places.iter_mut().enumerate() {
                let at = tree * splits + *place;
                let number = numbers[usize::from(inputs[at])];
                *place = 2 * *place + 2 - usize::from(number <= limits[at]);
            }
        }
        let leaf = |(tree, place)| i32::from(self.leaves[(first + tree) * leaves + place - splits]);
        places.into_iter().enumerate().map(leaf).sum()
    }
}

/// e^x near 0 by Taylor's polynomial, off by less than 10⁻¹⁰ of the result for |x| ≤ [`FARTHEST`].
fn exponential(x: f64) -> f64 {
    (1..=18).rev().fold(1.0, |sum, k| 1.0 + sum * x / f64::from(k))
}

/// Returns 1 if a row of A as a dense matrix ends inside a pack of 16 bytes, so that `dense` multiplies
/// copies, else 0.
fn ends_inside_pack(numbers: &[f32]) -> f32 {
    let (cols, value_bytes) = (numbers[COLS], numbers[VALUE_BYTES]);
    f32::from(u8::from(cols % (PACK as f32 / value_bytes) != 0.0))
}

/// Returns whether products of these types are among the learned ones: real, and all of one type.
pub(super) fn is_measured(types: Types) -> bool {
    !types.a.is_complex() && [types.x, types.y] == [types.a; 2]
}

/// Correction of the predicted times of one product.
#[derive(Debug)]
pub struct Correction<'a> {
    learned: &'a Learned,
    /// Statistics of the product ([`SpmmStatistics::numbers`]).
    numbers: Vec<f32>,
    /// Predicted seconds by algorithm.
    predicted: Vec<(Algorithm, f64)>,
    best: f64,
}

impl<'a> Correction<'a> {
    /// Correction for a product with these numbers and these predicted seconds of its algorithms.
    fn new(learned: &'a Learned, numbers: &[f32], predicted: &[(Algorithm, f64)]) -> Option<Self> {
        let best = predicted.iter().map(|(_, seconds)| *seconds).fold(f64::INFINITY, f64::min);
        let (numbers, predicted) = (numbers.to_vec(), predicted.to_vec());
        (!learned.forests.is_empty()).then_some(Correction { learned, numbers, predicted, best })
    }

    /// Correction for a product with a dense matrix of `n` columns and these predicted seconds of its
    /// algorithms; `None` if nothing was learned of such products.
    pub fn spmm(
        learned: Option<&'a Learned>,
        statistics: &SpmmStatistics,
        types: Types,
        n: i64,
        predicted: &[(Algorithm, f64)],
    ) -> Option<Self> {
        let learned = learned.filter(|_| is_measured(types))?;
        Correction::new(learned, &statistics.numbers(types, n), predicted)
    }

    fn is_sensible(&self, predicted: f64) -> bool {
        predicted <= SENSIBLE * self.best
    }

    /// Predicted microseconds of an algorithm, as tables have them; 0 stands for one that was not measured.
    fn micros(&self, algorithm: Algorithm) -> f32 {
        let found = self.predicted.iter().find(|(other, _)| *other == algorithm);
        found
            .filter(|(_, seconds)| self.is_sensible(*seconds))
            .map_or(0.0, |(_, seconds)| (1e6 * seconds) as f32)
    }

    /// Corrected seconds of an algorithm from its predicted seconds. A prediction far from the best is
    /// returned as it is.
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

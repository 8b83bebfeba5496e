//! What was learned of predicted times: how long each algorithm took over what the roofline said, by boosted
//! trees over the counts that choosers have anyway. `train/` learns it from what `tarsia sample` measures;
//! [`weights`] is what comes out. Without weights for a machine its roofline decides alone.
//!
//! A tree asks [`Learned::depth`] times whether one of a product's numbers is at most a limit; its leaf is a
//! logarithm in whole ten-thousandths, all of which are added. A factor is held between [`Learned::bounds`],
//! so that no correction makes a layout look good that is far off; what is predicted to be [`SENSIBLE`]
//! times the best is left alone. Numbers are rounded to 32 bits, in which they are
//! written down, learned from and compared. Nothing here but the exponential is more than an addition, a
//! multiplication, a division or a square root, and that is a polynomial: the same bits on every machine.

pub mod weights;

use super::survey::Survey;
use crate::layout::dasp;
use crate::support::{Algorithm, Types};

/// Raised when a name is added, removed or counted in another way.
pub const VERSION: u32 = 1;

/// Names of [`spmv`]'s numbers.
pub const SPMV: [&str; 19] = [
    "rows",
    "cols",
    "nnz",
    "value_bytes",
    "x_bytes",
    "matrix_bytes",
    "mean",
    "longest",
    "skew",
    "deviation",
    "empty",
    "longest_medium",
    "narrow",
    "shifted",
    "along",
    "across",
    "block",
    "half_block",
    "alike",
];

/// Of a product of a matrix with values and a vector of these types.
pub fn spmv(survey: &Survey, types: Types) -> [f32; SPMV.len()] {
    let (rows, nnz) = (survey.rows.max(1) as f64, survey.nnz.max(1) as f64);
    let (mean, value) = (survey.mean(), types.a.size() as f64);
    let square = |length: u64| (length as f64 - mean) * (length as f64 - mean);
    let squares: f64 = survey.histogram().map(|(length, rows)| square(length) * rows as f64).sum();
    let [twos, threes] = survey.shared();
    [
        survey.rows as f64,
        survey.cols as f64,
        survey.nnz as f64,
        value,
        survey.cols as f64 * types.x.size() as f64,
        nnz * (value + 2.0),
        mean,
        survey.longest() as f64,
        survey.longest() as f64 / mean.max(1e-3),
        (squares / rows).sqrt() / mean.max(1e-3),
        survey.empty_rows() as f64 / rows,
        survey.longest_up_to(dasp::MAX_LEN) as f64,
        survey.narrow(),
        survey.shifted(),
        survey.sectors_along(),
        survey.sectors_across(),
        survey.entries_of_block(),
        survey.entries_of_half_block(),
        twos.max(threes) as f64 / nnz,
    ]
    .map(|number| number as f32)
}

/// Names of [`spmm`]'s numbers.
pub const SPMM: [&str; 20] = [
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

/// Of a product with a dense matrix of `n` columns.
pub fn spmm(survey: &super::spmm::Survey, types: Types, n: i64) -> [f32; SPMM.len()] {
    let counts = &survey.counts;
    let (rows, cols, nnz) = (counts.rows.max(1) as f64, survey.cols.max(1) as f64, counts.nnz.max(1) as f64);
    let mean = nnz / rows;
    let row_bytes = n.max(1) as f64 * types.x.size() as f64;
    let is_tf32 = types.compute == crate::types::ComputeType::Tf32;
    let (_, tiles) = counts.all_blocks(16, super::spmm::shape(types.a));
    [
        counts.rows as f64,
        survey.cols as f64,
        counts.nnz as f64,
        types.a.size() as f64,
        f64::from(u8::from(is_tf32)),
        n as f64,
        row_bytes,
        row_bytes * cols,
        n.max(1) as f64 * types.y.size() as f64 * rows,
        mean,
        survey.longest as f64,
        survey.longest as f64 / mean,
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

/// Logarithms beyond these are beyond all bounds.
const FARTHEST: f64 = 1.25;
/// What a leaf counts in.
const UNIT: f64 = 1e-4;

// Weights for other numbers would be nonsense.
const _: () = assert!(weights::VERSION == VERSION);

/// What is predicted to take so many times the best is not measured, and not corrected.
pub const SENSIBLE: f64 = 5.0;

/// Trees of one algorithm.
#[derive(Debug)]
pub struct Forest {
    /// What all trees add to.
    pub base: i32,
    /// 2^depth − 1 a tree, level after level from its root: which number is compared,
    pub inputs: &'static [u8],
    /// with what; at most it: to the left.
    pub limits: &'static [f32],
    /// 2^depth a tree, from the left.
    pub leaves: &'static [i16],
}

/// What was learned for a kind of machine.
#[derive(Debug)]
pub struct Weights {
    /// SpMV's algorithms.
    pub spmv: Learned,
    /// SpMM's.
    pub spmm: Learned,
}

/// What was learned of an operation.
#[derive(Debug)]
pub struct Learned {
    /// Factors are held between these, from 0.3 to 3.
    pub bounds: (f64, f64),
    /// What is corrected must be faster by than `sell` (SpMV), or than what is predicted to be the best
    /// without corrections (SpMM), to be preferred.
    pub margin: f64,
    /// Comparisons in a tree.
    pub depth: u32,
    /// Algorithms whose predicted times, over one's own, are numbers of its trees.
    pub relative: &'static [Algorithm],
    /// Others are not corrected.
    pub forests: &'static [(Algorithm, Forest)],
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

/// Products of these types are among those that were learned from: real, and all of one type.
fn is_measured(types: Types) -> bool {
    !types.a.is_complex() && [types.x, types.y] == [types.a; 2]
}

/// Corrects what is predicted of one product.
#[derive(Debug)]
pub struct Correction {
    learned: &'static Learned,
    /// The product's.
    numbers: Vec<f32>,
    /// Seconds that are predicted of algorithms.
    predicted: Vec<(Algorithm, f64)>,
    best: f64,
}

impl Correction {
    /// For a product with these numbers, and seconds predicted of its algorithms.
    fn new(learned: &'static Learned, numbers: &[f32], predicted: &[(Algorithm, f64)]) -> Option<Self> {
        let best = predicted.iter().map(|(_, seconds)| *seconds).fold(f64::INFINITY, f64::min);
        let (numbers, predicted) = (numbers.to_vec(), predicted.to_vec());
        (!learned.forests.is_empty()).then_some(Correction { learned, numbers, predicted, best })
    }

    /// Of SpMV, with seconds predicted of its algorithms; `None`: nothing was learned.
    pub fn spmv(
        weights: Option<&'static Weights>,
        survey: &Survey,
        types: Types,
        predicted: &[(Algorithm, f64)],
    ) -> Option<Self> {
        let weights = weights.filter(|_| is_measured(types))?;
        Correction::new(&weights.spmv, &spmv(survey, types), predicted)
    }

    /// Of SpMM, alike.
    pub fn spmm(
        weights: Option<&'static Weights>,
        survey: &super::spmm::Survey,
        types: Types,
        n: i64,
        predicted: &[(Algorithm, f64)],
    ) -> Option<Self> {
        let weights = weights.filter(|_| is_measured(types))?;
        Correction::new(&weights.spmm, &spmm(survey, types, n), predicted)
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
        let log = f64::from(forest.log(self.learned.depth, &numbers)) * UNIT;
        let (least, most) = self.learned.bounds;
        predicted * exponential(log.clamp(-FARTHEST, FARTHEST)).clamp(least, most)
    }
}

#[cfg(test)]
mod tests {
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
    const RELATIVE: Forest = Forest {
        base: 0,
        inputs: &[21, 21, 0],
        limits: &[0.5, 0.0, f32::INFINITY],
        leaves: &[953, 0, 953, 953],
    };

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
        assert_eq!([of(1.0, 5e-6), of(1.0, 5.1e-6)], [0.7, 1.0]);
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
            assert!(
                of_spmv.iter().chain(&of_spmm).all(|number| number.is_finite()),
                "{of_spmv:?} {of_spmm:?}"
            );
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
}

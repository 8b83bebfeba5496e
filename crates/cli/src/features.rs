//! The features by which learned row orders are chosen, and how long computing them takes on this machine's
//! CPU.

use std::time::Instant;

use serde::Serialize;
use tarsia::facade::{run_in_pool, FeatureSet, Pattern};

use crate::demo::products::median;

/// Number of timed runs whose median is reported; the first, untimed run is not among them.
const ROUNDS: usize = 5;

/// The features of a matrix, and the time to compute them.
#[derive(Debug, Serialize)]
pub struct Features {
    /// Version of the list of features: it changes with their definitions.
    pub version: u32,
    /// Median time in microseconds.
    pub micros: f64,
    pub numbers: Vec<Feature>,
}

/// A feature by which a row order is chosen.
#[derive(Debug, Serialize)]
pub struct Feature {
    pub name: &'static str,
    pub value: f64,
    /// True if it is a count, or an estimate of one, which is printed without decimals.
    #[serde(skip)]
    pub is_count: bool,
}

/// Returns whether a feature of [`FeatureSet::NAMES`] is a count: a size, or the least or the most of
/// something. All others are means and a density.
fn is_count(name: &str) -> bool {
    ["rows", "cols"].contains(&name) || name.ends_with("_min") || name.ends_with("_max")
}

impl Features {
    /// Computes and times the features of a CSR matrix with sorted rows, on the host's threads.
    pub fn of((rows, cols): (usize, usize), offsets: &[i64], indices: &[i32]) -> Self {
        let pattern = Pattern { major: rows, minor: cols, base: 0, offsets, indices, by_columns: false };
        run_in_pool(|| {
            let found = FeatureSet::of(&pattern);
            let time = |_| {
                let start = Instant::now();
                std::hint::black_box(FeatureSet::of(&pattern));
                1e6 * start.elapsed().as_secs_f64()
            };
            let times = (0..ROUNDS).map(time).collect();
            let feature = |(name, value)| Feature { name, value, is_count: is_count(name) };
            let numbers = FeatureSet::NAMES.into_iter().zip(found.numbers()).map(feature).collect();
            Features { version: FeatureSet::VERSION, micros: median(times), numbers }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use matrices::gallery;

    #[test]
    fn features_have_names_and_a_time() {
        let a = gallery::band(300, 2, 1).unwrap();
        let found = Features::of((a.rows, a.cols), &a.offsets, &a.indices);
        let of = |name: &str| found.numbers.iter().find(|number| number.name == name).unwrap();
        let (rows, most, mean) = (of("rows"), of("row_entries_max"), of("row_entries_mean"));
        assert_eq!((rows.value, most.value, mean.value), (300.0, 4.0, a.nnz() as f64 / 300.0));
        assert!(rows.is_count && most.is_count && !mean.is_count);
        assert!(found.micros > 0.0);
    }
}

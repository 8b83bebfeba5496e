//! Seconds of an SpMM by each algorithm, from what a [`Survey`] has counted.
//!
//! seconds = start + serial · (entries of the longest row) + bytes of A, B and C / memory
//!           + bytes of rows of B as often as they are fetched / fetch
//!           + work · (entries, tiles or blocks, each for 32 columns of C) + unit · (rows or windows)
//!
//! A sum and not the slowest part: what loads wait for and what is computed overlap only in
//! part, and sums were nearer to the measurements. The rates ([`rates`]) are fitted to
//! benches/results/h100-spmm.tsv (`select::spmm::fit` prints them); `select::spmm::tests` says
//! how near the choice then is to the best.

mod rates;

pub use self::rates::H100;
use crate::layout::masked_window;
use crate::layout::window::{self, Counts, Shape};
use crate::support::{Algorithm, Types};
use crate::types::{ComputeType, DataType};

/// What is known of a matrix.
#[derive(Clone, Copy, Debug)]
pub struct Survey {
    /// Columns of op(A).
    pub cols: usize,
    /// Entries of the longest row.
    pub longest: usize,
    /// Counts of windows, in the shape of the value type ([`shape`]).
    pub counts: Counts,
}

impl Survey {
    /// For the reason of a choice.
    pub fn describe(&self) -> String {
        let counts = &self.counts;
        let of = |height| counts.reuse(height);
        format!(
            "a row of B serves {:.1}, {:.1}, {:.1}, {:.1} entries of windows of 8, 16, 32, 64 rows; longest row {}",
            of(8), of(16), of(32), of(64), self.longest
        )
    }
}

/// The shape of blocks and tiles of windows with these values.
pub fn shape(value: DataType) -> Shape {
    match value.size() {
        2 => crate::layout::window::SHAPE,
        _ => Shape { block: 8, group: 8 },
    }
}

/// How fast a kernel is.
#[derive(Clone, Copy, Debug)]
pub struct Kernel {
    /// Seconds of a product of next to nothing, caches flushed.
    pub start: f64,
    /// Seconds more for each entry of the longest row.
    pub serial: f64,
    /// Bytes a second, each operand once.
    pub memory: f64,
    /// Bytes a second of rows of B, as often as they are fetched.
    pub fetch: f64,
    /// Seconds of an entry, a tile or a block, for 32 columns of C.
    pub work: f64,
    /// Seconds of a row or a window.
    pub unit: f64,
}

/// Columns of C up to which kernels take their narrow form.
pub const NARROW: i64 = 64;

/// A kernel's rates for up to [`NARROW`] columns of C, and for more.
pub type Forms = [Kernel; 2];

/// How fast a kind of machine is.
#[derive(Clone, Copy, Debug)]
pub struct Rates {
    /// `row`, by values of 2, 4 and 8 bytes.
    pub row: [Forms; 3],
    /// `sell`, alike.
    pub sell: [Forms; 3],
    /// `window`: halves, tf32, fp32, fp64.
    pub window: [Forms; 4],
    /// `smat`: halves, tf32, fp64.
    pub smat: [Forms; 3],
    /// `dense`: halves, tf32, fp32, fp64.
    pub dense: [Forms; 4],
}

impl Rates {
    fn of(&self, algorithm: Algorithm, types: Types, n: i64) -> &Kernel {
        let form = usize::from(n > NARROW);
        let bytes = match types.a.size() {
            2 => 0,
            4 => 1,
            _ => 2,
        };
        let unit = match (types.a.size(), types.compute) {
            (2, _) => 0,
            (_, ComputeType::Tf32) => 1,
            (4, ComputeType::R32F) => 2,
            _ => 3,
        };
        match algorithm {
            Algorithm::Window => &self.window[unit][form],
            Algorithm::Smat => &self.smat[[0, 1, 1, 2][unit]][form],
            Algorithm::Dense => &self.dense[unit][form],
            Algorithm::SpmmSell => &self.sell[bytes][form],
            _ => &self.row[bytes][form],
        }
    }
}

/// What an algorithm moves, and how long it takes.
#[derive(Clone, Copy, Debug)]
pub struct Estimate {
    /// Bytes of A, and of B and C once.
    pub bytes: f64,
    /// Seconds.
    pub seconds: f64,
}

/// What a product does: the factors of a kernel's rates, in their order.
#[derive(Clone, Copy, Debug)]
pub struct Work {
    pub longest: f64,
    pub bytes: f64,
    pub fetched: f64,
    pub work: f64,
    pub units: f64,
}

/// What an algorithm does for `n` columns of C.
pub fn work(survey: &Survey, algorithm: Algorithm, types: Types, n: i64) -> Work {
    let counts = &survey.counts;
    let (rows, cols, nnz) = (counts.rows as f64, survey.cols as f64, counts.nnz as f64);
    let (value, columns) = (types.a.size() as f64, n.max(1) as f64);
    let row_of_b = (columns * types.x.size() as f64).max(SECTOR);
    // A tile of 32 columns at the least.
    let tiles = (columns / 32.0).max(1.0);
    let dense = columns * (cols * types.x.size() as f64 + rows * types.y.size() as f64);
    let (matrix, fetched, work, units) = match algorithm {
        Algorithm::Window => {
            let shape = shape(types.a);
            let height = height(counts, types, n);
            let (blocks, group_tiles) = counts.all_blocks(height, shape);
            let matrix = match shape.block {
                16 => blocks * 64.0 + group_tiles * (shape.block * height.min(16)) as f64 * (value + 0.125),
                _ => blocks * (32.0 + height as f64) + nnz * value,
            };
            (matrix, counts.all_columns(height), blocks, rows / height as f64)
        }
        Algorithm::Smat => {
            let blocks = counts.all_spans(16, value == 2.0);
            let width = if value == 2.0 { 16.0 } else { 8.0 };
            let matrix = blocks * (4.0 + 16.0 * width * (value + 0.125));
            (matrix, blocks * width, blocks, rows / 16.0)
        }
        Algorithm::Dense => (rows * cols * value, rows / 128.0 * cols, rows * cols / 256.0, 0.0),
        // Columns of 16 bits, no offsets.
        Algorithm::SpmmSell => (nnz * (value + 2.0) + rows * 8.0, nnz, nnz, rows),
        _ => (nnz * (value + 4.0) + rows * 8.0, nnz, nnz, rows),
    };
    Work {
        longest: survey.longest as f64,
        bytes: matrix + dense,
        fetched: fetched * row_of_b,
        work: work * tiles,
        units: units * tiles,
    }
}

/// Bytes that are read at the least.
const SECTOR: f64 = 32.0;
/// Multiprocessors of the machine that rates are known of.
const MULTIPROCESSORS: usize = 132;

/// Rows of a window.
fn height(counts: &Counts, types: Types, n: i64) -> usize {
    let n = n.max(1) as usize;
    match types.a.size() {
        2 => window::Rules::new(counts, n, MULTIPROCESSORS).height,
        _ if types.compute == ComputeType::R64F => masked_window::Rules::doubles(counts, n).height,
        _ => 16,
    }
}

/// What an algorithm takes on a machine with these rates.
pub fn estimate(rates: &Rates, survey: &Survey, algorithm: Algorithm, types: Types, n: i64) -> Estimate {
    let work = work(survey, algorithm, types, n);
    let kernel = rates.of(algorithm, types, n);
    let seconds = kernel.start
        + kernel.serial * work.longest
        + work.bytes / kernel.memory
        + work.fetched / kernel.fetch
        + kernel.work * work.work
        + kernel.unit * work.units;
    Estimate { bytes: work.bytes, seconds }
}

#[cfg(test)]
mod tests;

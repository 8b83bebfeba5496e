//! Statistics of a pattern for `tarsia inspect`; the library's choices do not use them.
//!
//! [`Features::of`] takes one parallel pass over the offsets and columns; blocks are counted in a sample of
//! the rows. All sums are of integers, so that they do not depend on the number of threads. [`mirrored`] and
//! [`compression`] access entries all over the matrix and are separate.

use std::collections::TryReserveError;
use std::ops::Range;

use rayon::prelude::*;

use tarsia::facade::{is_drawn, Index};

/// Sizes of the blocks that are counted: 2×2 to 8×8.
pub const BLOCKS: Range<usize> = 2..9;
/// Number of buckets of the histogram of row lengths: 0, 1, 2–3, 4–7, … A length is below 2³¹.
pub const BUCKETS: usize = 32;
/// Number of columns that a 16-bit number distinguishes.
pub const NARROW: i64 = 1 << 16;

/// Number of rows of a task: a multiple of every block size, so that no block is in two tasks.
const ROWS_PER_TASK: usize = 840;
/// Approximate number of entries in the sampled rows whose blocks are counted: at 70 to 440 ns an entry, at
/// most half a second of one thread.
const BLOCK_ENTRIES: u128 = 1 << 20;
/// Largest number of rows of the product in the sample of [`compression`].
const SAMPLE: usize = 1024;
/// Largest number of multiplications of these rows (the first row may exceed it): below a second.
const SAMPLE_PRODUCTS: u64 = 1 << 25;
/// Number of columns that are collected before duplicates are dropped: 4 MiB.
const COLLECT: usize = 1 << 20;

/// A pattern in CSR: base 0, columns ascending and unique in each row.
#[derive(Clone, Copy, Debug)]
pub struct Pattern<'a, I, J> {
    /// Number of columns.
    pub cols: usize,
    /// Row offsets: rows + 1 positions in `indices`.
    pub offsets: &'a [I],
    /// Columns of the entries, row by row.
    pub indices: &'a [J],
}

impl<'a, I: Index, J: Index> Pattern<'a, I, J> {
    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Returns the columns of a row.
    pub fn row(&self, row: usize) -> &'a [J] {
        &self.indices[self.offsets[row].to_i64() as usize..self.offsets[row + 1].to_i64() as usize]
    }
}

/// Results of one pass over a pattern. Counts are exact, except that blocks are counted in a sample of the
/// rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Features {
    /// Number of rows.
    pub rows: usize,
    /// Number of columns.
    pub cols: usize,
    /// Number of stored entries.
    pub nnz: u64,
    /// Number of entries of the shortest row; 0 if there is no row.
    pub least: u64,
    /// Number of entries of the longest row.
    pub most: u64,
    /// Σ length², for the variance.
    pub squares: u128,
    /// Number of rows by length: bucket 0 for no entries, bucket k for 2^(k−1) to 2^k − 1.
    pub histogram: [u64; BUCKETS],
    /// max (i − j) and max (j − i) over entries (i, j), at least 0.
    pub bandwidth: (u64, u64),
    /// Number of stored entries (i, i).
    pub diagonal: u64,
    /// Number of blocks of b × b, b in [`BLOCKS`], that hold an entry of the sample; blocks start at
    /// multiples of b.
    pub blocks: [u64; BLOCKS.end - BLOCKS.start],
    /// Number of entries of the sample: all if there are up to 2²⁰, else about that many, in runs of 840
    /// rows. One run is drawn from each of equal parts of the matrix, with a fixed seed.
    pub block_entries: u64,
    /// Number of entries whose column is less than 2¹⁶ behind the row's first.
    pub narrow: u64,
    /// Number of rows for which that holds for all entries, empty ones included.
    pub narrow_rows: u64,
    /// Σ (j' − j) over neighbouring entries j < j' of a row.
    pub distance: u64,
    /// Number of multiplications of A·A: Σ over the entries (i, j) of the length of row j; `None` if A is not
    /// square.
    pub products: Option<u128>,
}

impl Features {
    /// Computes the statistics on the threads of the caller's pool: a few nanoseconds per entry, and for the
    /// blocks of the sample 70 (meshes, web graphs) to 440 (random columns) per entry of it, measured with 2
    /// threads beside other work.
    pub fn of<I: Index, J: Index>(pattern: &Pattern<'_, I, J>) -> Self {
        let (rows, square) = (pattern.rows(), pattern.rows() == pattern.cols);
        let tasks = rows.div_ceil(ROWS_PER_TASK);
        let nnz = pattern.indices.len();
        // Tasks are sampled only if all of them have more entries than wanted.
        let sample = (tasks as u128 * BLOCK_ENTRIES).checked_div(nnz as u128).unwrap_or(0);
        let sample = (sample.min(tasks as u128) as usize).max(1);
        let parts = (0..tasks).into_par_iter().map(|task| {
            let first = task * ROWS_PER_TASK;
            let rows = first..rows.min(first + ROWS_PER_TASK);
            let mut part = Features::of_rows(pattern, rows.clone(), square);
            if is_drawn(task, tasks, sample) {
                part.count_blocks(pattern, rows);
            }
            part
        });
        let mut out = parts.reduce(|| Features::none(square), Features::with);
        (out.rows, out.cols) = (rows, pattern.cols);
        if rows == 0 {
            out.least = 0;
        }
        out
    }

    /// Returns the statistics of no rows.
    fn none(square: bool) -> Self {
        Features {
            rows: 0,
            cols: 0,
            nnz: 0,
            least: u64::MAX,
            most: 0,
            squares: 0,
            histogram: [0; BUCKETS],
            bandwidth: (0, 0),
            diagonal: 0,
            blocks: [0; BLOCKS.end - BLOCKS.start],
            block_entries: 0,
            narrow: 0,
            narrow_rows: 0,
            distance: 0,
            products: square.then_some(0),
        }
    }

    /// Adds the statistics of another part.
    fn with(mut self, other: Self) -> Self {
        let add = |to: &mut [u64], from: &[u64]| to.iter_mut().zip(from).for_each(|(a, b)| *a += b);
        self.nnz += other.nnz;
        self.least = self.least.min(other.least);
        self.most = self.most.max(other.most);
        self.squares += other.squares;
        add(&mut self.histogram, &other.histogram);
        let (below, above) = other.bandwidth;
        self.bandwidth = (self.bandwidth.0.max(below), self.bandwidth.1.max(above));
        self.diagonal += other.diagonal;
        add(&mut self.blocks, &other.blocks);
        self.block_entries += other.block_entries;
        self.narrow += other.narrow;
        self.narrow_rows += other.narrow_rows;
        self.distance += other.distance;
        self.products = self.products.zip(other.products).map(|(a, b)| a + b);
        self
    }

    fn of_rows<I: Index, J: Index>(pattern: &Pattern<'_, I, J>, rows: Range<usize>, square: bool) -> Self {
        let mut out = Features::none(square);
        for row in rows.clone() {
            let cols = pattern.row(row);
            let length = cols.len() as u64;
            out.nnz += length;
            out.least = out.least.min(length);
            out.most = out.most.max(length);
            out.squares += u128::from(length) * u128::from(length);
            out.histogram[bucket(length)] += 1;
            let (Some(first), Some(last)) = (cols.first(), cols.last()) else {
                out.narrow_rows += 1;
                continue;
            };
            let (first, last, here) = (first.to_i64(), last.to_i64(), row as i64);
            out.bandwidth.0 = out.bandwidth.0.max((here - first).max(0) as u64);
            out.bandwidth.1 = out.bandwidth.1.max((last - here).max(0) as u64);
            out.distance += (last - first) as u64;
            let near = cols.partition_point(|col| col.to_i64() - first < NARROW);
            out.narrow += near as u64;
            out.narrow_rows += u64::from(near == cols.len());
            out.diagonal += u64::from(cols.binary_search_by_key(&here, |col| col.to_i64()).is_ok());
            if let Some(products) = &mut out.products {
                *products += u128::from(row_products(cols, pattern));
            }
        }
        out
    }

    /// Counts the blocks of rows whose entries, and no others, `self` has counted.
    fn count_blocks<I: Index, J: Index>(&mut self, pattern: &Pattern<'_, I, J>, rows: Range<usize>) {
        self.block_entries = self.nnz;
        self.blocks = [
            blocks::<2, _, _>(pattern, rows.clone()),
            blocks::<3, _, _>(pattern, rows.clone()),
            blocks::<4, _, _>(pattern, rows.clone()),
            blocks::<5, _, _>(pattern, rows.clone()),
            blocks::<6, _, _>(pattern, rows.clone()),
            blocks::<7, _, _>(pattern, rows.clone()),
            blocks::<8, _, _>(pattern, rows),
        ];
    }

    /// Returns the mean number of entries of a row; 0 without rows.
    pub fn mean(&self) -> f64 {
        share(self.nnz as f64, self.rows as f64)
    }

    /// Returns the variance of the number of entries of a row: mean of the squares less the square of the
    /// mean.
    pub fn variance(&self) -> f64 {
        // n · Σ l² − (Σ l)², exact until the division.
        let (rows, nnz) = (self.rows as u128, u128::from(self.nnz));
        share((rows * self.squares - nnz * nnz) as f64, (rows * rows) as f64)
    }

    /// Returns the number of rows without an entry.
    pub fn empty_rows(&self) -> u64 {
        self.histogram[0]
    }

    /// Returns stored entries over positions in the nonempty `size` × `size` blocks of the sample, `size` in
    /// [`BLOCKS`]: 1 if every block is full, 0 without entries.
    pub fn block_fill(&self, size: usize) -> f64 {
        share(self.block_entries as f64, self.blocks[size - BLOCKS.start] as f64 * (size * size) as f64)
    }

    /// Returns the share of the entries whose column less the row's first takes 16 bits.
    pub fn narrow_share(&self) -> f64 {
        share(self.narrow as f64, self.nnz as f64)
    }

    /// Returns the mean distance in columns of neighbouring entries of a row: 1 if rows are contiguous, 0
    /// without neighbours.
    pub fn mean_distance(&self) -> f64 {
        let nonempty = self.rows as u64 - self.empty_rows();
        share(self.distance as f64, (self.nnz - nonempty) as f64)
    }
}

/// Returns a / b, or 0 if b is 0.
fn share(a: f64, b: f64) -> f64 {
    if b == 0.0 {
        0.0
    } else {
        a / b
    }
}

/// Returns the histogram's bucket of a length.
fn bucket(length: u64) -> usize {
    ((u64::BITS - length.leading_zeros()) as usize).min(BUCKETS - 1)
}

/// Counts the blocks of B × B that hold an entry, in rows that start at a multiple of B, by merging the rows
/// of each block.
fn blocks<const B: usize, I: Index, J: Index>(pattern: &Pattern<'_, I, J>, rows: Range<usize>) -> u64 {
    let mut count = 0;
    for first in rows.clone().step_by(B) {
        let mut rest: [&[J]; B] = [&[]; B];
        for (cols, row) in rest.iter_mut().zip(first..rows.end) {
            *cols = pattern.row(row);
        }
        while let Some(least) = rest.iter().filter_map(|cols| cols.first()).min() {
            count += 1;
            // The first column behind the block.
            let end = (least.to_i64() / B as i64 + 1) * B as i64;
            for cols in &mut rest {
                while let [col, behind @ ..] = cols {
                    if col.to_i64() >= end {
                        break;
                    }
                    *cols = behind;
                }
            }
        }
    }
    count
}

/// Returns the number of multiplications of a row with these columns by a matrix.
fn row_products<I: Index, J: Index, K: Index>(cols: &[K], b: &Pattern<'_, I, J>) -> u64 {
    let length = |&col: &K| {
        let row = col.to_i64() as usize;
        (b.offsets[row + 1].to_i64() - b.offsets[row].to_i64()) as u64
    };
    cols.iter().map(length).sum()
}

/// Counts the entries (i, j), i ≠ j, of a square pattern for which (j, i) is stored too; if that is all of
/// them, the pattern is symmetric. Runs on the threads of the caller's pool; time O(nnz log(longest row)).
pub fn mirrored<I: Index, J: Index>(pattern: &Pattern<'_, I, J>) -> u64 {
    let of_row = |row: usize| {
        let is_mirrored = |&&col: &&J| {
            let col = col.to_i64() as usize;
            let mirror = || pattern.row(col).binary_search_by_key(&(row as i64), |other| other.to_i64());
            col != row && mirror().is_ok()
        };
        pattern.row(row).iter().filter(is_mirrored).count() as u64
    };
    (0..pattern.rows()).into_par_iter().with_min_len(ROWS_PER_TASK).map(of_row).sum()
}

/// Counts of a sample of rows of a product C = A·B.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Compression {
    /// Number of rows in the sample.
    pub rows: usize,
    /// Number of their multiplications.
    pub products: u64,
    /// Number of their entries in C.
    pub entries: u64,
}

impl Compression {
    /// Returns multiplications per entry of C, at least 1; 1 if there are none.
    pub fn ratio(&self) -> f64 {
        if self.entries == 0 {
            1.0
        } else {
            self.products as f64 / self.entries as f64
        }
    }
}

/// Makes the pattern of some rows of A·B, evenly spaced: up to 1,024 rows, as long as they have fewer than
/// 2²⁵ multiplications together. The selection depends on the patterns alone. A has as many columns as B has
/// rows.
///
/// Error: `OutOfMemory` (about 4 bytes per column of B and thread).
pub fn compression<I: Index, J: Index>(
    a: &Pattern<'_, I, J>,
    b: &Pattern<'_, I, J>,
) -> Result<Compression, TryReserveError> {
    let rows = a.rows();
    let count = rows.min(SAMPLE);
    let mut sample = Vec::new();
    sample.try_reserve_exact(count)?;
    let mut budget = SAMPLE_PRODUCTS;
    for k in 0..count {
        // The row in the middle of the k-th of `count` equal parts.
        let row = ((2 * k as u128 + 1) * rows as u128 / (2 * count as u128)) as usize;
        let products = row_products(a.row(row), b);
        if products <= budget || sample.is_empty() {
            budget = budget.saturating_sub(products);
            sample.push(row);
        }
    }
    let counted = sample.par_iter().map_init(Vec::new, |collected: &mut Vec<J>, &row| {
        collected.clear();
        let mut next = COLLECT;
        for col in a.row(row) {
            let part = b.row(col.to_i64() as usize);
            if collected.len() + part.len() > next {
                collected.sort_unstable();
                collected.dedup();
                next = 2 * collected.len() + COLLECT;
            }
            collected.try_reserve(part.len())?;
            collected.extend_from_slice(part);
        }
        collected.sort_unstable();
        collected.dedup();
        Ok(Compression { rows: 1, products: row_products(a.row(row), b), entries: collected.len() as u64 })
    });
    let add = |a: Compression, b: Compression| Compression {
        rows: a.rows + b.rows,
        products: a.products + b.products,
        entries: a.entries + b.entries,
    };
    counted.try_reduce(Compression::default, |a, b| Ok(add(a, b)))
}

#[cfg(test)]
mod tests;

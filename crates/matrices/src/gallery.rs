//! A gallery of matrices: deterministic, and identical on every platform.
//!
//! Three ways to get one:
//! - [`named`] gives the matrices of a fixed list ([`names`]) by name: the 25 of the comparison
//!   tables, and small ones for each other structure;
//! - [`by_name`] gives any matrix of the parametrised [`kinds`], e.g. `poisson7:32`;
//! - the generators are functions: with values where these mean something, else patterns
//!   (`OwnedCsr<()>`), to which [`with_values`] gives values. [`permute`] and [`expand`] make
//!   matrices from others.
//!
//! Pseudo-random matrices come from [`SplitMix64`] and use only integer operations and IEEE additions,
//! multiplications and divisions, never libm; the one exception is `webbase`, which another program defines
//! with `pow` (see `gallery/comparison.rs`). The number of threads changes nothing: a parallel task continues
//! the sequence of draws at its own position ([`SplitMix64::after`]). Random values are uniform in [−1, 1)
//! with full mantissas: values of few bits would hide lost precision. Values are `f64` throughout;
//! [`OwnedCsr::map_values`] converts them to other types. Entries are counted (where lengths are drawn,
//! estimated) and reserved before the first is made, so that a matrix that cannot fit fails at once.
//!
//! Errors of every generator: `TooLarge` (a dimension above
//! [`MAX_DIMENSION`](super::owned::MAX_DIMENSION)), `OutOfMemory`, and `Argument` (a parameter out of its
//! range).

use std::array;

use rayon::prelude::*;

use super::owned::{
    check_dimensions, try_filled, try_reserve, try_with_capacity, MatrixError, OwnedCsr, RowBuilder,
};
use super::random::SplitMix64;

mod build;
mod catalogue;
mod comparison;
mod elasticity;
mod grids;
mod kinds;
mod laplacian;
mod layers;
mod networks;
mod rmat;
#[cfg(test)]
mod tests;
mod transform;

pub use catalogue::{find, name_in_table, named, names, Named, Set, STAND_IN};
pub use elasticity::{elasticity, elasticity_element, elasticity_load, Load};
pub use grids::{arrow, band, hex_mesh, lattice4, markov_triangle, wilson, Reach};
pub use kinds::{by_name, changes, kinds};
pub use laplacian::{is_grid, laplacian};
pub use layers::{hypersparse, pruned, pruned_columns, pruned_skewed};
pub use networks::{circuit, cliques, web, Hubs};
pub use rmat::rmat;
pub use transform::{expand, expand_permutation, permute, random_permutation, window_permutation};

type Result<T> = std::result::Result<T, MatrixError>;

/// Neighbours to which a point of [`poisson`] is coupled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stencil {
    /// 2D, the 4 neighbours along the axes; 4 on the diagonal.
    Five,
    /// 3D, the 6 neighbours along the axes; 6 on the diagonal.
    Seven,
    /// 3D, all 26 neighbours; 26 on the diagonal.
    TwentySeven,
}

/// Returns all points [x, y, z] with `first[d] <= p[d] < end[d]`, x fastest.
fn grid(first: [usize; 3], end: [usize; 3]) -> impl Iterator<Item = [usize; 3]> {
    (first[2]..end[2])
        .flat_map(move |z| (first[1]..end[1]).flat_map(move |y| (first[0]..end[0]).map(move |x| [x, y, z])))
}

/// Returns the points of `grid(first, end)` at most 1 from `p` in every axis, `p` among them.
fn neighbours(p: [usize; 3], first: [usize; 3], end: [usize; 3]) -> impl Iterator<Item = [usize; 3]> {
    let low = array::from_fn(|d| p[d].saturating_sub(1).max(first[d]));
    grid(low, array::from_fn(|d| (p[d] + 2).min(end[d])))
}

/// Returns the number of (point, neighbour) pairs of [`neighbours`] on an axis of `n` points.
fn axis_pairs(n: usize) -> u128 {
    (3 * n as u128).saturating_sub(2)
}

/// Returns the product of the sizes if it is at most [`MAX_DIMENSION`], else `TooLarge`.
fn dimension<const N: usize>(sizes: [usize; N]) -> Result<usize> {
    let product = sizes.iter().fold(1u128, |product, &size| product.saturating_mul(size as u128));
    let rows = usize::try_from(product).unwrap_or(usize::MAX);
    check_dimensions(rows, 0)?;
    Ok(rows)
}

/// The discrete Poisson operator −Δ (times h²) with Dirichlet boundary on a grid of `n` points per axis:
/// (number of neighbours) on the diagonal, −1 for each neighbour in the grid, x fastest. n² or n³ rows.
/// Symmetric positive definite.
pub fn poisson(stencil: Stencil, n: usize) -> Result<OwnedCsr<f64>> {
    let (depth, diagonal) = match stencil {
        Stencil::Five => (1, 4.0),
        Stencil::Seven => (n, 6.0),
        Stencil::TwentySeven => (n, 26.0),
    };
    let rows = dimension([n, n, depth])?;
    let (plane, pairs) = (n as u128 * n as u128, axis_pairs(n));
    let nnz = match stencil {
        Stencil::Five => 2 * pairs * n as u128 - plane,
        Stencil::Seven => 3 * pairs * plane - 2 * plane * n as u128,
        Stencil::TwentySeven => pairs.pow(3),
    };
    let mut matrix = RowBuilder::new(rows, rows, nnz)?;
    let end = [n, n, depth];
    for p in grid([0; 3], end) {
        for q in neighbours(p, [0; 3], end) {
            let distance: usize = (0..3).map(|d| p[d].abs_diff(q[d])).sum();
            if distance <= 1 || stencil == Stencil::TwentySeven {
                let value = if distance == 0 { diagonal } else { -1.0 };
                matrix.push((q[2] * n + q[1]) * n + q[0], value)?;
            }
        }
        matrix.end_row()?;
    }
    Ok(matrix.finish())
}

/// Sampler of sets of distinct columns, sorted.
struct ColumnSampler {
    /// For each column, the number of the draw that took it last.
    taken: Vec<u32>,
    draw: u32,
    picked: Vec<usize>,
}

impl ColumnSampler {
    fn new(cols: usize) -> Result<Self> {
        Ok(Self { taken: try_filled(cols, 0)?, draw: 0, picked: Vec::new() })
    }

    /// Draws `count` ≤ cols columns, every set equally likely (Floyd's algorithm: Bentley, Programming
    /// Pearls, CACM 30(9), 1987), with `count` draws even when nearly all columns are taken.
    fn pick(&mut self, rng: &mut SplitMix64, count: usize) -> Result<&[usize]> {
        // One draw per row and two more, so at most 2^31 + 1, since there are fewer than 2^31 rows.
        self.draw += 1;
        self.picked.clear();
        try_reserve(&mut self.picked, count)?;
        let cols = self.taken.len();
        for last in cols - count..cols {
            let mut col = rng.below(last as u64 + 1) as usize;
            if self.taken[col] == self.draw {
                col = last;
            }
            self.taken[col] = self.draw;
            self.picked.push(col);
        }
        self.picked.sort_unstable();
        Ok(&self.picked)
    }
}

/// Returns an `Argument` error unless `count` ≤ `limit`.
fn at_most(what: &str, count: usize, limit: usize) -> Result<()> {
    if count <= limit {
        return Ok(());
    }
    Err(MatrixError::argument(what, count, format_args!("0 to {limit}")))
}

/// Returns an `Argument` error unless 0 ≤ `value` ≤ 1.
fn probability(what: &str, value: f64) -> Result<()> {
    if (0.0..=1.0).contains(&value) {
        return Ok(());
    }
    Err(MatrixError::argument(what, value, "0 to 1"))
}

/// A full band: every (i, j) with |i − j| ≤ `half_bandwidth`, `n` rows and columns, random values.
pub fn banded(n: usize, half_bandwidth: usize, seed: u64) -> Result<OwnedCsr<f64>> {
    check_dimensions(n, n)?;
    let reach = half_bandwidth.min(n.saturating_sub(1));
    // Entries of the full parallelogram less its two corners.
    let nnz = n as u128 * (2 * reach as u128 + 1) - reach as u128 * (reach as u128 + 1);
    let mut rng = SplitMix64::new(seed);
    let mut matrix = RowBuilder::new(n, n, nnz)?;
    for row in 0..n {
        for col in row.saturating_sub(reach)..(row + reach + 1).min(n) {
            matrix.push(col, rng.value())?;
        }
        matrix.end_row()?;
    }
    Ok(matrix.finish())
}

/// A matrix with exactly `per_row` ≤ `cols` entries in each row, at columns drawn uniformly; random values.
pub fn uniform(rows: usize, cols: usize, per_row: usize, seed: u64) -> Result<OwnedCsr<f64>> {
    at_most("per_row", per_row, cols)?;
    let nnz = rows as u128 * per_row as u128;
    random_rows(rows, cols, nnz, seed, |_, _| per_row)
}

/// A matrix whose row lengths vary: uniform in 0..=2·m for a mean m = `density`·`cols` up to `cols`/2, in 2·m
/// − `cols`..=`cols` above; columns drawn uniformly, random values. 0 ≤ `density` ≤ 1, where 0 gives no
/// entries and 1 a full matrix.
pub fn rectangular(rows: usize, cols: usize, density: f64, seed: u64) -> Result<OwnedCsr<f64>> {
    probability("density", density)?;
    check_dimensions(rows, cols)?;
    let longest = (2.0 * density * cols as f64).round() as usize;
    let shortest = longest.saturating_sub(cols);
    let choices = longest.min(cols) - shortest + 1;
    let mean = (longest as u128 * rows as u128).div_ceil(2);
    random_rows(rows, cols, mean, seed, |_, rng| shortest + rng.below(choices as u64) as usize)
}

/// A matrix without entries.
pub fn empty(rows: usize, cols: usize) -> Result<OwnedCsr<f64>> {
    random_rows(rows, cols, 0, 0, |_, _| 0)
}

/// Like [`uniform`], but each row is empty with probability `empty_fraction` (0 to 1), and the first and the
/// last row always are: such rows reveal errors in the use of offsets.
pub fn with_empty_rows(
    rows: usize,
    cols: usize,
    per_row: usize,
    empty_fraction: f64,
    seed: u64,
) -> Result<OwnedCsr<f64>> {
    at_most("per_row", per_row, cols)?;
    probability("empty_fraction", empty_fraction)?;
    let mean = rows as f64 * per_row as f64 * (1.0 - empty_fraction);
    random_rows(rows, cols, mean as u128, seed, |row, rng| {
        let is_empty = rng.unit() < empty_fraction || row == 0 || row + 1 == rows;
        if is_empty {
            0
        } else {
            per_row
        }
    })
}

/// Makes a matrix whose row i has `length(i, rng)` entries at columns drawn uniformly; `nnz` is an estimate
/// of their sum.
fn random_rows(
    rows: usize,
    cols: usize,
    nnz: u128,
    seed: u64,
    length: impl Fn(usize, &mut SplitMix64) -> usize,
) -> Result<OwnedCsr<f64>> {
    let mut matrix = RowBuilder::new(rows, cols, nnz)?;
    let mut rng = SplitMix64::new(seed);
    let mut sampler = ColumnSampler::new(cols)?;
    for row in 0..rows {
        let count = length(row, &mut rng);
        for &col in sampler.pick(&mut rng, count)? {
            matrix.push(col, rng.value())?;
        }
        matrix.end_row()?;
    }
    Ok(matrix.finish())
}

/// A matrix of `dense_rows` full rows and `dense_cols` full columns, at positions drawn uniformly, on a
/// background of `per_row` entries a row (as in [`uniform`]; overlaps count once). `n` rows and columns,
/// random values.
pub fn dense_rows_cols(
    n: usize,
    dense_rows: usize,
    dense_cols: usize,
    per_row: usize,
    seed: u64,
) -> Result<OwnedCsr<f64>> {
    check_dimensions(n, n)?;
    for (what, count) in [("dense_rows", dense_rows), ("dense_cols", dense_cols), ("per_row", per_row)] {
        at_most(what, count, n)?;
    }
    let sparse_row = (per_row + dense_cols).min(n);
    let nnz = dense_rows as u128 * n as u128 + (n - dense_rows) as u128 * sparse_row as u128;
    let mut matrix = RowBuilder::new(n, n, nnz)?;
    let mut rng = SplitMix64::new(seed);
    let mut sampler = ColumnSampler::new(n)?;
    let mut full_row = try_filled(n, false)?;
    for &row in sampler.pick(&mut rng, dense_rows)? {
        full_row[row] = true;
    }
    let mut full_cols = try_with_capacity(dense_cols)?;
    full_cols.extend_from_slice(sampler.pick(&mut rng, dense_cols)?);
    let mut cols = Vec::new();
    for is_full in full_row {
        cols.clear();
        if is_full {
            try_reserve(&mut cols, n)?;
            cols.extend(0..n);
        } else {
            try_reserve(&mut cols, dense_cols + per_row)?;
            cols.extend_from_slice(&full_cols);
            cols.extend_from_slice(sampler.pick(&mut rng, per_row)?);
            cols.sort_unstable();
            cols.dedup();
        }
        for &col in &cols {
            matrix.push(col, rng.value())?;
        }
        matrix.end_row()?;
    }
    Ok(matrix.finish())
}

/// Gives a pattern values from `seed`, uniform in [−1, 1) with full mantissas. Error: `OutOfMemory`.
pub fn with_values(pattern: OwnedCsr<()>, seed: u64) -> Result<OwnedCsr<f64>> {
    fill_values(pattern, SplitMix64::new(seed))
}

/// Gives a pattern the next values of `rng`, in CSR order.
fn fill_values(pattern: OwnedCsr<()>, rng: SplitMix64) -> Result<OwnedCsr<f64>> {
    /// Number of values of one parallel task, which takes some microseconds.
    const TASK: usize = 1 << 12;
    let mut values = try_filled(pattern.nnz(), 0.0)?;
    values.par_chunks_mut(TASK).enumerate().for_each(|(task, values)| {
        let mut rng = rng.after((task * TASK) as u64);
        values.fill_with(|| rng.value());
    });
    let OwnedCsr { rows, cols, offsets, indices, .. } = pattern;
    Ok(OwnedCsr { rows, cols, offsets, indices, values })
}

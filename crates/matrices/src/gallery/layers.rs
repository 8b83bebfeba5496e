//! Patterns without structure: pruned layers of neural networks, and matrices whose rows are mostly empty.

use super::build::{from_rows, from_rows_in_order, Columns};
use super::{at_most, probability, random_permutation, ColumnSampler, Result};
use crate::owned::{try_filled, MatrixError, OwnedCsr};
use crate::random::SplitMix64;

/// A layer of M = `rows` × K = `cols` weights of which each is pruned with probability `sparsity`
/// (0 to 1), independently of the others: unstructured pruning. About (1 − `sparsity`)·M·K entries.
pub fn pruned(rows: usize, cols: usize, sparsity: f64, seed: u64) -> Result<OwnedCsr<()>> {
    probability("sparsity", sparsity)?;
    kept(rows, cols, 1.0 - sparsity, seed)
}

/// Largest number of weights, M·K, of a layer: one draw for each takes a quarter of an hour on one core.
const MAX_WEIGHTS: u128 = 1 << 40;

/// Returns `TooLarge` if a layer has more weights than [`MAX_WEIGHTS`].
fn check_weights(rows: usize, cols: usize) -> Result<()> {
    let found = rows as u128 * cols as u128;
    if found <= MAX_WEIGHTS {
        return Ok(());
    }
    Err(MatrixError::TooLarge { what: "weights of the layer".into(), found, limit: MAX_WEIGHTS })
}

/// Keeps each entry of a `rows` × `cols` matrix with probability `density`; takes M·K draws.
pub(super) fn kept(rows: usize, cols: usize, density: f64, seed: u64) -> Result<OwnedCsr<()>> {
    check_weights(rows, cols)?;
    let rng = SplitMix64::new(seed);
    from_rows(rows, cols, expected(rows, cols, density), |row, out| {
        keep(cols, density, &mut rng.after(row as u64 * cols as u64), out)
    })
}

/// Like [`pruned`], but a row keeps its weights with the probability (1 − `sparsity`)·(1 − `skew` +
/// 4·`skew`·u³), u uniform in [0, 1), at most 1. This resembles magnitude pruning over a whole layer, which
/// leaves some rows nearly empty and others with a multiple of the mean. `skew` is from 0 (as `pruned`) to 1
/// (row lengths with 1.13 times the mean as standard deviation, up to 4 times the mean). There are fewer
/// entries than in `pruned` where the probability is cut at 1, so for a `sparsity` below 1 − 1 / (1 +
/// 3·`skew`).
pub fn pruned_skewed(rows: usize, cols: usize, sparsity: f64, skew: f64, seed: u64) -> Result<OwnedCsr<()>> {
    probability("sparsity", sparsity)?;
    probability("skew", skew)?;
    check_weights(rows, cols)?;
    let rng = SplitMix64::new(seed);
    from_rows(rows, cols, expected(rows, cols, 1.0 - sparsity), |row, out| {
        let mut rng = rng.after(row as u64 * (cols as u64 + 1));
        let u = rng.unit();
        let weight = 1.0 - skew + 4.0 * skew * (u * u * u);
        keep(cols, (1.0 - sparsity) * weight, &mut rng, out)
    })
}

/// Like [`pruned`], but the column of rank r (from 1; ranks are shuffled) keeps its weights with the
/// probability min(1, s · r^−`exponent`), where s gives (1 − `sparsity`)·M·K entries on average: some
/// features are read by nearly all of the next layer, others by hardly any of it. `exponent` is from 0 (as
/// `pruned`) to 4.
pub fn pruned_columns(
    rows: usize,
    cols: usize,
    sparsity: f64,
    exponent: f64,
    seed: u64,
) -> Result<OwnedCsr<()>> {
    probability("sparsity", sparsity)?;
    if !(0.0..=4.0).contains(&exponent) {
        return Err(MatrixError::argument("exponent", exponent, "0 to 4"));
    }
    check_weights(rows, cols)?;
    super::check_dimensions(rows, cols)?;
    let mut by_rank = try_filled(cols, 0.0)?;
    power_law(&mut by_rank, 1.0 - sparsity, exponent);
    let mut density = try_filled(cols, 0.0)?;
    for (&rank, to) in random_permutation(cols, !seed)?.iter().zip(&mut density) {
        *to = by_rank[rank as usize];
    }
    let rng = SplitMix64::new(seed);
    from_rows(rows, cols, expected(rows, cols, 1.0 - sparsity), |row, out| {
        let mut rng = rng.after(row as u64 * cols as u64);
        (0..cols).filter(|&col| rng.unit() < density[col]).try_for_each(|col| out.push(col))
    })
}

/// Fills `out` with min(1, s · r^−`exponent`) for the ranks r from 1 on, with s such that the mean is `mean`
/// (0 to 1).
fn power_law(out: &mut [f64], mean: f64, exponent: f64) {
    if mean >= 1.0 {
        return out.fill(1.0);
    }
    let total = mean * out.len() as f64;
    for (at, weight) in out.iter_mut().enumerate() {
        *weight = ((at + 1) as f64).powf(-exponent);
    }
    // The first `full` probabilities are 1, and `full` is the least number that leaves s · weight ≤ 1 for the
    // others.
    let mut rest: f64 = out.iter().sum();
    let mut full = 0;
    while full < out.len() && (total - full as f64) * out[full] > rest {
        rest -= out[full];
        full += 1;
    }
    let scale = if rest > 0.0 { (total - full as f64).max(0.0) / rest } else { 0.0 };
    for (at, weight) in out.iter_mut().enumerate() {
        *weight = if at < full { 1.0 } else { (*weight * scale).min(1.0) };
    }
}

fn keep(cols: usize, density: f64, rng: &mut SplitMix64, out: &mut Columns) -> Result<()> {
    (0..cols).filter(|_| rng.unit() < density).try_for_each(|col| out.push(col))
}

/// Number of entries to reserve: their mean and 6 of the skewed layers' standard deviations.
fn expected(rows: usize, cols: usize, density: f64) -> u128 {
    let deviation = 1.0 / (rows as f64).max(1.0).sqrt();
    (rows as f64 * cols as f64 * density * (1.0 + 7.0 * deviation)) as u128
}

/// A matrix of which `filled` rows, drawn uniformly, have `per_row` entries each, at columns drawn uniformly;
/// all other rows are empty.
pub fn hypersparse(
    rows: usize,
    cols: usize,
    filled: usize,
    per_row: usize,
    seed: u64,
) -> Result<OwnedCsr<()>> {
    at_most("filled", filled, rows)?;
    at_most("per_row", per_row, cols)?;
    // Checked before arrays of these sizes are made.
    super::check_dimensions(rows, cols)?;
    let mut rng = SplitMix64::new(seed);
    let mut is_filled = try_filled(rows, false)?;
    for &row in ColumnSampler::new(rows)?.pick(&mut rng, filled)? {
        is_filled[row] = true;
    }
    let mut sampler = ColumnSampler::new(cols)?;
    from_rows_in_order(rows, cols, filled as u128 * per_row as u128, |row, out| {
        if is_filled[row] {
            sampler.pick(&mut rng, per_row)?.iter().try_for_each(|&col| out.push(col))?;
        }
        Ok(())
    })
}

/// Draws `per_row` columns for each row; a column that is drawn again counts once. Each row has draws of its
/// own.
pub(super) fn drawn(rows: usize, cols: usize, per_row: usize, seed: u64) -> Result<OwnedCsr<()>> {
    if cols == 0 && per_row > 0 {
        return Err(MatrixError::argument("cols", cols, "at least 1"));
    }
    let rng = SplitMix64::new(seed);
    from_rows(rows, cols, rows as u128 * per_row as u128, |row, out| {
        let mut rng = rng.after(row as u64 * per_row as u64);
        (0..per_row).try_for_each(|_| out.push(rng.modulo(cols)))
    })
}

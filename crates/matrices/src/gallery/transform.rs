//! Matrices made from other matrices: renumbered, or with several unknowns per node.

use super::build::from_rows;
use super::{dimension, Result};
use crate::owned::{check_dimensions, try_filled, try_reserve, try_with_capacity, MatrixError, OwnedCsr};
use crate::random::SplitMix64;

/// A random permutation of 0..`n` (p\[old\] = new): every one equally likely, up to a bias of
/// n / 2⁴⁸ a draw.
pub fn random_permutation(n: usize, seed: u64) -> Result<Vec<u32>> {
    shuffle(n, n.max(1), &mut SplitMix64::new(seed))
}

/// A permutation that is random inside windows of `window` ≥ 1 numbers and moves no number out of its window:
/// neighbours stay near each other, but not in order.
pub fn window_permutation(n: usize, window: usize, seed: u64) -> Result<Vec<u32>> {
    if window == 0 {
        return Err(MatrixError::argument("window", window, "at least 1"));
    }
    shuffle(n, window, &mut SplitMix64::new(seed))
}

/// Shuffles each window of 0..`n` from its end (Fisher, Yates; Durstenfeld, CACM 7(7), 1964).
pub(super) fn shuffle(n: usize, window: usize, rng: &mut SplitMix64) -> Result<Vec<u32>> {
    check_dimensions(n, n)?;
    let mut permutation = try_with_capacity(n)?;
    permutation.extend(0..n as u32);
    for part in permutation.chunks_mut(window) {
        for last in (1..part.len()).rev() {
            part.swap(last, rng.modulo(last + 1));
        }
    }
    Ok(permutation)
}

/// The permutation of `unknowns` · n numbers that moves the unknowns of node i, which follow each other, to
/// the positions of node p\[i\]'s unknowns.
pub fn expand_permutation(permutation: &[u32], unknowns: usize) -> Result<Vec<u32>> {
    let n = dimension([permutation.len(), unknowns])?;
    let mut out = try_with_capacity(n)?;
    for &to in permutation {
        // An entry of an invalid permutation may overflow; `permute` refuses the result.
        let first = (to as usize).saturating_mul(unknowns);
        out.extend((0..unknowns).map(|d| u32::try_from(first + d).unwrap_or(u32::MAX)));
    }
    Ok(out)
}

/// Computes P A Pᵀ: entry (i, j) of a square matrix moves to (p\[i\], p\[j\]).
///
/// Errors: `Argument` if the matrix is not square or `permutation` is not a permutation of its rows.
pub fn permute<V: Copy>(matrix: &OwnedCsr<V>, permutation: &[u32]) -> Result<OwnedCsr<V>> {
    let n = matrix.rows;
    if matrix.cols != n {
        let found = format_args!("{n} × {}", matrix.cols);
        return Err(MatrixError::argument("shape of the matrix to permute", found, "a square one"));
    }
    let mut old = try_filled(n, u32::MAX)?;
    let mut distinct = 0;
    for (from, &to) in permutation.iter().enumerate() {
        match old.get_mut(to as usize) {
            Some(slot) if *slot == u32::MAX => *slot = from as u32,
            _ => break,
        }
        distinct += 1;
    }
    if distinct != n || permutation.len() != n {
        let found = format_args!("{} numbers, the first {distinct} of them valid", permutation.len());
        let expected = format_args!("each number below {n} once");
        return Err(MatrixError::argument("permutation", found, expected));
    }
    let mut offsets = try_with_capacity(n + 1)?;
    let mut indices = try_with_capacity(matrix.nnz())?;
    let mut values = try_with_capacity(matrix.nnz())?;
    let mut row: Vec<(i32, V)> = Vec::new();
    offsets.push(0);
    for &from in &old {
        let (cols, row_values) = matrix.row(from as usize);
        row.clear();
        try_reserve(&mut row, cols.len())?;
        let moved = cols.iter().map(|&col| permutation[col as usize] as i32);
        row.extend(moved.zip(row_values.iter().copied()));
        row.sort_unstable_by_key(|&(col, _)| col);
        indices.extend(row.iter().map(|&(col, _)| col));
        values.extend(row.iter().map(|&(_, value)| value));
        offsets.push(indices.len() as i64);
    }
    Ok(OwnedCsr { rows: n, cols: n, offsets, indices, values })
}

/// Gives a graph `unknowns` = k unknowns per node: every entry becomes a full k×k block, (i, j) → (k·i + d,
/// k·j + e) for 0 ≤ d, e < k. Returns the pattern only.
pub fn expand<V: Sync>(graph: &OwnedCsr<V>, unknowns: usize) -> Result<OwnedCsr<()>> {
    let rows = dimension([graph.rows, unknowns])?;
    let cols = dimension([graph.cols, unknowns])?;
    let nnz = (graph.nnz() as u128).saturating_mul(unknowns as u128).saturating_mul(unknowns as u128);
    from_rows(rows, cols, nnz, |row, out| {
        for &col in graph.row(row / unknowns).0 {
            let first = col as usize * unknowns;
            out.extend(first, first + unknowns)?;
        }
        Ok(())
    })
}

//! Assembly of the CSR arrays from the entries of a file, by one task for each range of rows.

use std::sync::atomic::{AtomicBool, Ordering};

use rayon::iter::repeat_n;
use rayon::prelude::*;

use super::super::owned::{check_dimensions, sort_row, try_with_capacity, MatrixError, OwnedCsr};
use super::entries::{Pieces, Value};
use super::Result;

/// Makes the matrix of all entries; duplicates are added in the order of the file.
pub(super) fn assemble<V: Value>(rows: usize, cols: usize, pieces: Pieces<V>) -> Result<OwnedCsr<V>> {
    check_dimensions(rows, cols)?;
    let counts = (0..pieces.ranges).map(|range| pieces.pieces.iter().map(|p| p.range(range).len()).sum());
    let counts: Vec<usize> = counts.collect();
    let nnz = counts.iter().sum();
    let mut offsets = filled(rows + 1, 0i64)?;
    let mut indices = filled(nnz, 0i32)?;
    let mut values = filled(nnz, V::default())?;
    offsets[rows] = nnz as i64;

    let mut tasks = Vec::new();
    let (mut rest_indices, mut rest_values) = (&mut indices[..], &mut values[..]);
    let mut start = 0;
    for (range, offsets) in offsets[..rows].chunks_mut(pieces.rows_per_range).enumerate() {
        let (indices, values);
        (indices, rest_indices) = rest_indices.split_at_mut(counts[range]);
        (values, rest_values) = rest_values.split_at_mut(counts[range]);
        tasks.push(Task { range, start, offsets, indices, values });
        start += counts[range];
    }
    let has_duplicates = AtomicBool::new(false);
    let results = tasks.into_par_iter().map(|task| {
        if task.build(&pieces)? {
            // Relaxed is enough: the flag is read after the tasks have ended.
            has_duplicates.store(true, Ordering::Relaxed);
        }
        Ok::<(), MatrixError>(())
    });
    results.collect::<Result<()>>()?;
    let mut matrix = OwnedCsr { rows, cols, offsets, indices, values };
    if has_duplicates.into_inner() {
        matrix.merge();
    }
    Ok(matrix)
}

/// Makes a vector of copies; all threads touch its pages.
fn filled<T: Copy + Send + Sync>(len: usize, value: T) -> Result<Vec<T>> {
    let mut out = try_with_capacity(len)?;
    // Writes into the capacity that is already reserved.
    out.par_extend(repeat_n(value, len));
    Ok(out)
}

/// Assembly of one range of rows.
struct Task<'a, V> {
    range: usize,
    /// Number of entries before this range.
    start: usize,
    /// Offsets of the range's rows; zeros at first.
    offsets: &'a mut [i64],
    indices: &'a mut [i32],
    values: &'a mut [V],
}

impl<V: Value> Task<'_, V> {
    /// Fills the range's part of the arrays; returns whether there are duplicates.
    fn build(self, pieces: &Pieces<V>) -> Result<bool> {
        let Task { range, start, offsets, indices, values } = self;
        let first_row = range * pieces.rows_per_range;
        let entries = || pieces.pieces.iter().flat_map(|piece| piece.range(range));
        // Counting sort by row, as in `OwnedCsr::from_triplets`.
        for &(row, ..) in entries() {
            offsets[row as usize - first_row] += 1;
        }
        let mut sum = start as i64;
        for offset in &mut *offsets {
            (sum, *offset) = (sum + *offset, sum);
        }
        for &(row, col, value) in entries() {
            let slot = &mut offsets[row as usize - first_row];
            let at = *slot as usize - start;
            *slot += 1;
            (indices[at], values[at]) = (col, value);
        }
        // Each offset has now advanced to the start of the next row.
        let mut duplicates = false;
        let (mut scratch, mut begin) = (Vec::new(), 0);
        for offset in offsets {
            let end = *offset as usize - start;
            let row = &mut indices[begin..end];
            sort_row(row, &mut values[begin..end], &mut scratch)?;
            duplicates |= row.windows(2).any(|pair| pair[0] == pair[1]);
            *offset = (start + begin) as i64;
            begin = end;
        }
        Ok(duplicates)
    }
}

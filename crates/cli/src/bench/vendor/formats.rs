//! Conversion of CSR to the formats for which vendors offer kernels: blocks, slices, coordinates.

use matrices::owned::OwnedCsr;
use rayon::prelude::*;

use crate::bench::number::{filled, room, Number};
use crate::Result;

/// Number of rows in a slice.
pub const SLICE: usize = 32;

/// A matrix in square blocks, each row-major; rows and columns that the matrix does not have are zeros.
pub struct Blocks<T> {
    /// Number of rows and of columns of a block.
    pub size: usize,
    /// Number of rows of blocks.
    pub rows: usize,
    /// Number of columns of blocks.
    pub cols: usize,
    /// Start of each row of blocks.
    pub offsets: Vec<i32>,
    /// Column of each block.
    pub indices: Vec<i32>,
    /// Values, size² for each block.
    pub values: Vec<T>,
}

/// A matrix in slices of [`SLICE`] rows, each column-major.
pub struct Slices<T> {
    /// Start of each slice.
    pub offsets: Vec<i32>,
    /// Columns; −1 where there is no entry.
    pub indices: Vec<i32>,
    /// Values; 0 where there is no entry.
    pub values: Vec<T>,
}

/// Returns the columns of blocks in which a row of blocks has entries, ascending.
fn block_columns<V>(a: &OwnedCsr<V>, size: usize, block_row: usize) -> Vec<i32> {
    let rows = block_row * size..a.rows.min((block_row + 1) * size);
    let mut columns: Vec<i32> = Vec::new();
    for row in rows {
        for &col in a.row(row).0 {
            let column = col / size as i32;
            if columns.last() != Some(&column) {
                columns.push(column);
            }
        }
    }
    columns.sort_unstable();
    columns.dedup();
    columns
}

/// Returns the number of values in all blocks over entries.
pub fn block_fill<V: Sync>(a: &OwnedCsr<V>, size: usize) -> f64 {
    let rows = 0..a.rows.div_ceil(size);
    let blocks: usize = rows.into_par_iter().map(|row| block_columns(a, size, row).len()).sum();
    (blocks * size * size) as f64 / a.nnz().max(1) as f64
}

/// Returns the number of slots in all slices over entries.
pub fn slice_fill<V>(a: &OwnedCsr<V>) -> f64 {
    let slots: usize = (0..a.rows).step_by(SLICE).map(|first| SLICE * width(a, first)).sum();
    slots as f64 / a.nnz().max(1) as f64
}

/// Returns the length of the longest row of a slice.
fn width<V>(a: &OwnedCsr<V>, first: usize) -> usize {
    (first..a.rows.min(first + SLICE)).map(|row| a.row(row).0.len()).max().unwrap_or(0)
}

fn offset(value: usize) -> Result<i32> {
    Ok(i32::try_from(value).map_err(|_| "more than 2^31 - 1 slots")?)
}

/// Converts the matrix to blocks.
pub fn blocks<T: Number>(a: &OwnedCsr<T>, size: usize) -> Result<Blocks<T>> {
    let (rows, cols) = (a.rows.div_ceil(size), a.cols.div_ceil(size));
    let columns: Vec<Vec<i32>> = (0..rows).into_par_iter().map(|row| block_columns(a, size, row)).collect();
    let mut offsets = vec![0];
    let mut total = 0;
    for columns in &columns {
        total += columns.len();
        offsets.push(offset(total)?);
    }
    let indices: Vec<i32> = columns.concat();
    let area = size * size;
    let mut values = filled(total * area, T::narrow(0.0))?;
    // Each row of blocks writes its own part.
    let mut parts = Vec::with_capacity(rows);
    let mut rest = values.as_mut_slice();
    for columns in &columns {
        let (part, after) = rest.split_at_mut(columns.len() * area);
        parts.push(part);
        rest = after;
    }
    parts.into_par_iter().enumerate().for_each(|(block_row, part)| {
        for row in block_row * size..a.rows.min((block_row + 1) * size) {
            let (row_cols, row_values) = a.row(row);
            let mut at = 0;
            for (&col, &value) in row_cols.iter().zip(row_values) {
                while columns[block_row][at] < col / size as i32 {
                    at += 1;
                }
                part[at * area + row % size * size + col as usize % size] = value;
            }
        }
    });
    Ok(Blocks { size, rows, cols, offsets, indices, values })
}

/// Converts the matrix to slices.
pub fn slices<T: Number>(a: &OwnedCsr<T>) -> Result<Slices<T>> {
    let mut offsets = vec![0];
    let mut total = 0;
    for first in (0..a.rows).step_by(SLICE) {
        total += SLICE * width(a, first);
        offsets.push(offset(total)?);
    }
    let (mut indices, mut values) = (filled(total, -1)?, filled(total, T::narrow(0.0))?);
    for row in 0..a.rows {
        let start = offsets[row / SLICE] as usize + row % SLICE;
        for (at, (&col, &value)) in a.row(row).0.iter().zip(a.row(row).1).enumerate() {
            indices[start + at * SLICE] = col;
            values[start + at * SLICE] = value;
        }
    }
    Ok(Slices { offsets, indices, values })
}

/// Returns the row of each entry.
pub fn row_indices<V>(a: &OwnedCsr<V>) -> Result<Vec<i32>> {
    let mut out = room(a.nnz())?;
    for row in 0..a.rows {
        out.resize(out.len() + a.row(row).0.len(), row as i32);
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use matrices::gallery::by_name;

    fn dense(a: &OwnedCsr<f64>) -> Vec<Vec<f64>> {
        let mut out = vec![vec![0.0; a.cols]; a.rows];
        for (row, out) in out.iter_mut().enumerate() {
            for (&col, &value) in a.row(row).0.iter().zip(a.row(row).1) {
                out[col as usize] = value;
            }
        }
        out
    }

    #[test]
    fn conversions_keep_every_entry() {
        let mut at = 0.0;
        let a = by_name("uniform:50x43:5").unwrap().map_values(|_| {
            at += 1.0;
            at
        });
        let a = a.unwrap();
        let expected = dense(&a);
        for size in [1, 3, 8, 64] {
            let b = blocks(&a, size).unwrap();
            let mut found = vec![vec![0.0; b.cols * size]; b.rows * size];
            for row in 0..b.rows {
                let range = b.offsets[row] as usize..b.offsets[row + 1] as usize;
                assert!(b.indices[range.clone()].is_sorted_by(|x, y| x < y));
                for block in range {
                    for at in 0..size * size {
                        let (i, j) = (at / size, at % size);
                        found[row * size + i][b.indices[block] as usize * size + j] =
                            b.values[block * size * size + at];
                    }
                }
            }
            for (row, expected) in expected.iter().enumerate() {
                assert_eq!(found[row][..a.cols], expected[..]);
            }
            let fill = b.values.len() as f64 / a.nnz() as f64;
            assert_eq!(block_fill(&a, size), fill);
        }
        let s = slices(&a).unwrap();
        let mut found = vec![vec![0.0; a.cols]; a.rows];
        for slice in 0..s.offsets.len() - 1 {
            for at in s.offsets[slice] as usize..s.offsets[slice + 1] as usize {
                let row = slice * SLICE + (at - s.offsets[slice] as usize) % SLICE;
                if s.indices[at] >= 0 {
                    found[row][s.indices[at] as usize] = s.values[at];
                }
            }
        }
        assert_eq!(found, expected);
        assert_eq!(slice_fill(&a), s.values.len() as f64 / a.nnz() as f64);
        let rows = row_indices(&a).unwrap();
        assert!(rows.len() == a.nnz() && rows.is_sorted() && rows[a.row(0).0.len()] == 1);
    }
}

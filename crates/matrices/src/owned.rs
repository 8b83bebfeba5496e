//! A CSR matrix on the host that owns its arrays, for files, the gallery, tests and benchmarks.
//!
//! The C API borrows the user's arrays; this type is for callers who have none yet. Its arrays are canonical
//! (base 0, columns sorted and unique in a row), and every array that grows with the input is allocated
//! fallibly, so that running out of memory is an error and never aborts the process.

use std::fmt;
use std::ops::{Add, Sub};

use num_complex::Complex;

/// Reason why a matrix could not be made, read or written.
#[derive(Debug)]
pub enum MatrixError {
    /// The allocator refused an array of `bytes` bytes.
    OutOfMemory {
        /// Size of the array that was asked for, in bytes.
        bytes: usize,
    },
    /// A size exceeds the limit of the matrix type, or of the reader for its input.
    TooLarge {
        /// Name of the size, e.g. `columns`.
        what: String,
        /// The size that was asked for, in elements.
        found: u128,
        /// The largest size allowed, in elements.
        limit: u128,
    },
    /// An argument (or a part of a gallery name) is not valid.
    Argument {
        /// Name of the argument.
        what: String,
        /// Value that was given.
        found: String,
        /// Description of the valid values.
        expected: String,
    },
    /// The text of a file does not have the required format.
    Parse {
        /// Line of the file, counted from 1.
        line: u64,
        /// Text that was found there and that was expected.
        message: String,
    },
    /// Reading or writing failed (a truncated gzip stream also ends here).
    Io(std::io::Error),
}

impl MatrixError {
    /// Makes a [`MatrixError::Argument`] from anything that can be displayed.
    pub(crate) fn argument(
        what: impl fmt::Display,
        found: impl fmt::Display,
        expected: impl fmt::Display,
    ) -> Self {
        Self::Argument { what: what.to_string(), found: found.to_string(), expected: expected.to_string() }
    }
}

impl fmt::Display for MatrixError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OutOfMemory { bytes } => write!(f, "out of memory: {bytes} bytes were refused"),
            Self::TooLarge { what, found, limit } => {
                write!(f, "{what}: found {found}, expected at most {limit}")
            }
            Self::Argument { what, found, expected } => {
                write!(f, "{what}: found '{found}', expected {expected}")
            }
            Self::Parse { line, message } => write!(f, "line {line}: {message}"),
            Self::Io(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for MatrixError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            // Display already shows the error itself, so the source is its cause.
            Self::Io(error) => error.source(),
            _ => None,
        }
    }
}

impl From<std::io::Error> for MatrixError {
    fn from(error: std::io::Error) -> Self {
        Self::Io(error)
    }
}

/// Largest number of rows or of columns: columns are stored as `i32`, and the rows of A are the
/// columns of its transpose.
pub const MAX_DIMENSION: usize = i32::MAX as usize;

/// Checks that `rows` and `cols` are at most [`MAX_DIMENSION`]; else [`MatrixError::TooLarge`].
pub(crate) fn check_dimensions(rows: usize, cols: usize) -> Result<(), MatrixError> {
    for (what, size) in [("rows", rows), ("columns", cols)] {
        if size > MAX_DIMENSION {
            return Err(MatrixError::TooLarge {
                what: what.to_string(),
                found: size as u128,
                limit: MAX_DIMENSION as u128,
            });
        }
    }
    Ok(())
}

/// Largest rows + columns that are accepted without entries: a row costs 8 bytes, so 128 MiB.
const FREE_DIMENSIONS: u128 = 1 << 24;
/// rows + columns that are accepted per entry in the file. Real matrices have fewer than 3; 256 leaves room
/// for the emptiest, and an entry takes at least 4 bytes of a Matrix Market file.
const DIMENSIONS_PER_ENTRY: u128 = 256;

/// Checks the sizes that `place`, a part of a file, announces against the number of entries in the file, so
/// that a few digits alone cannot cause long arrays to be allocated; else [`MatrixError::TooLarge`].
pub(crate) fn check_announced(
    place: &str,
    rows: usize,
    cols: usize,
    entries: u64,
) -> Result<(), MatrixError> {
    let found = rows as u128 + cols as u128;
    let limit = FREE_DIMENSIONS + DIMENSIONS_PER_ENTRY * u128::from(entries);
    if found <= limit {
        return Ok(());
    }
    let entries = if entries == 1 { "1 entry" } else { &format!("{entries} entries") };
    let what = format!(
        "rows and columns that {place} announces ({rows} and {cols}; their sum may be 2^24 and 256 more for \
         each entry, so that a short file cannot make the reader allocate long arrays), of a file with {entries}"
    );
    Err(MatrixError::TooLarge { what, found, limit })
}

/// Makes room for `additional` more elements (amortised growth); else [`MatrixError::OutOfMemory`].
pub(crate) fn try_reserve<T>(vec: &mut Vec<T>, additional: usize) -> Result<(), MatrixError> {
    let bytes = vec.len().saturating_add(additional).saturating_mul(size_of::<T>());
    vec.try_reserve(additional).map_err(|_| MatrixError::OutOfMemory { bytes })
}

/// Makes an empty vector with room for exactly `capacity` elements; else [`MatrixError::OutOfMemory`].
pub(crate) fn try_with_capacity<T>(capacity: usize) -> Result<Vec<T>, MatrixError> {
    let mut vec = Vec::new();
    vec.try_reserve_exact(capacity)
        .map_err(|_| MatrixError::OutOfMemory { bytes: capacity.saturating_mul(size_of::<T>()) })?;
    Ok(vec)
}

/// Makes a vector of `len` copies of `value`; else [`MatrixError::OutOfMemory`].
pub(crate) fn try_filled<T: Clone>(len: usize, value: T) -> Result<Vec<T>, MatrixError> {
    let mut vec = try_with_capacity(len)?;
    vec.resize(len, value);
    Ok(vec)
}

/// Like `vec.push(item)`, but reports [`MatrixError::OutOfMemory`].
pub(crate) fn try_push<T>(vec: &mut Vec<T>, item: T) -> Result<(), MatrixError> {
    if vec.len() == vec.capacity() {
        try_reserve(vec, 1)?;
    }
    vec.push(item);
    Ok(())
}

/// A real or complex value of a matrix, which can be compared with its mirror image.
pub trait Entry: Copy + Default + PartialEq + Add<Output = Self> + Sub<Output = Self> {
    /// Returns the complex conjugate; the value itself if it is real.
    fn conj(self) -> Self;
    /// Returns the real part, in f64.
    fn real(self) -> f64;
    /// Returns the absolute value |v|, in f64.
    fn magnitude(self) -> f64;
}

macro_rules! impl_entry {
    ($($real:ty),*) => {$(
        impl Entry for $real {
            fn conj(self) -> Self {
                self
            }
            fn real(self) -> f64 {
                self.into()
            }
            fn magnitude(self) -> f64 {
                self.abs().into()
            }
        }
        impl Entry for Complex<$real> {
            fn conj(self) -> Self {
                Complex::conj(&self)
            }
            fn real(self) -> f64 {
                self.re.into()
            }
            fn magnitude(self) -> f64 {
                self.norm().into()
            }
        }
    )*};
}
impl_entry!(f32, f64);

/// A CSR matrix that owns its arrays: base 0, columns sorted and unique in each row.
///
/// Row i is `indices[offsets[i]..offsets[i+1]]` with the `values` of the same positions. Stored
/// zeros are entries like any other. Code that fills the fields itself can call
/// [`OwnedCsr::validate`].
#[derive(Debug, PartialEq)]
pub struct OwnedCsr<V> {
    /// Number of rows, at most [`MAX_DIMENSION`].
    pub rows: usize,
    /// Number of columns, at most [`MAX_DIMENSION`].
    pub cols: usize,
    /// Row offsets: `rows + 1` positions in `indices`, from 0 to nnz, never decreasing.
    pub offsets: Vec<i64>,
    /// nnz column indices, from 0 to `cols − 1`, strictly increasing in each row.
    pub indices: Vec<i32>,
    /// nnz values.
    pub values: Vec<V>,
}

impl<V: Copy> OwnedCsr<V> {
    /// Makes the `rows` × `cols` matrix with a_ij = Σ v over the `entries` (i, j, v), indices from 0.
    ///
    /// Entries may come in any order; duplicates are added in the order in which they come, so the result has
    /// the same bits for the same input. Time O(rows + nnz log(longest row)); beside the input it needs only
    /// the memory of the result.
    ///
    /// Errors: `TooLarge` (a dimension above [`MAX_DIMENSION`]), `Argument` (an index out of range,
    /// with the entry's position), `OutOfMemory`.
    pub fn from_triplets<I: Copy + Into<i64>>(
        rows: usize,
        cols: usize,
        entries: Vec<(I, I, V)>,
    ) -> Result<Self, MatrixError>
    where
        V: Add<Output = V>,
    {
        check_dimensions(rows, cols)?;
        let mut offsets = try_filled(rows + 1, 0i64)?;
        for (position, &(row, col, _)) in entries.iter().enumerate() {
            for (what, index, size) in [("row", row.into(), rows), ("column", col.into(), cols)] {
                if !(0..size as i64).contains(&index) {
                    return Err(MatrixError::argument(
                        format_args!("{what} index of entry {position}"),
                        index,
                        format_args!("0 <= index < {size}"),
                    ));
                }
            }
            offsets[row.into() as usize + 1] += 1;
        }
        accumulate(&mut offsets);
        let (mut indices, mut values) = (Vec::new(), Vec::new());
        if let Some(&(_, _, any)) = entries.first() {
            indices = try_filled(entries.len(), 0i32)?;
            values = try_filled(entries.len(), any)?;
        }
        for &(row, col, value) in &entries {
            let slot = next_slot(&mut offsets, row.into() as usize);
            indices[slot] = col.into() as i32;
            values[slot] = value;
        }
        drop(entries);
        restore(&mut offsets);
        let mut matrix = Self { rows, cols, offsets, indices, values };
        matrix.sort_and_merge()?;
        Ok(matrix)
    }

    /// Sorts each row by column and adds up duplicates in their present order.
    fn sort_and_merge(&mut self) -> Result<(), MatrixError>
    where
        V: Add<Output = V>,
    {
        let mut scratch = Vec::new();
        for row in 0..self.rows {
            let row = self.offsets[row] as usize..self.offsets[row + 1] as usize;
            sort_row(&mut self.indices[row.clone()], &mut self.values[row], &mut scratch)?;
        }
        self.merge();
        Ok(())
    }

    /// Adds up duplicates in rows that are already sorted, in their present order.
    pub(crate) fn merge(&mut self)
    where
        V: Add<Output = V>,
    {
        let (mut start, mut kept) = (0, 0);
        for row in 0..self.rows {
            let end = self.offsets[row + 1] as usize;
            let row_start = kept;
            for k in start..end {
                if kept > row_start && self.indices[kept - 1] == self.indices[k] {
                    self.values[kept - 1] = self.values[kept - 1] + self.values[k];
                } else {
                    self.indices[kept] = self.indices[k];
                    self.values[kept] = self.values[k];
                    kept += 1;
                }
            }
            self.offsets[row + 1] = kept as i64;
            start = end;
        }
        self.indices.truncate(kept);
        self.values.truncate(kept);
    }

    /// Computes the transpose Aᵀ (`cols` × `rows`, not conjugated). Error: `OutOfMemory`.
    pub fn transpose(&self) -> Result<Self, MatrixError> {
        let mut offsets = try_filled(self.cols + 1, 0i64)?;
        for &col in &self.indices {
            offsets[col as usize + 1] += 1;
        }
        accumulate(&mut offsets);
        let (mut indices, mut values) = (Vec::new(), Vec::new());
        if let Some(&any) = self.values.first() {
            indices = try_filled(self.nnz(), 0i32)?;
            values = try_filled(self.nnz(), any)?;
        }
        // Rows are visited in order, so the new rows come out sorted.
        for row in 0..self.rows {
            let (cols, row_values) = self.row(row);
            for (&col, &value) in cols.iter().zip(row_values) {
                let slot = next_slot(&mut offsets, col as usize);
                indices[slot] = row as i32;
                values[slot] = value;
            }
        }
        restore(&mut offsets);
        Ok(Self { rows: self.cols, cols: self.rows, offsets, indices, values })
    }

    /// Returns the matrix with the same pattern and the values f(a_ij), visited in CSR order. Error:
    /// `OutOfMemory`.
    pub fn map_values<W>(&self, mut f: impl FnMut(V) -> W) -> Result<OwnedCsr<W>, MatrixError> {
        let mut offsets = try_with_capacity(self.offsets.len())?;
        let mut indices = try_with_capacity(self.indices.len())?;
        let mut values = try_with_capacity(self.values.len())?;
        offsets.extend_from_slice(&self.offsets);
        indices.extend_from_slice(&self.indices);
        values.extend(self.values.iter().map(|&value| f(value)));
        Ok(OwnedCsr { rows: self.rows, cols: self.cols, offsets, indices, values })
    }

    /// Copies the matrix. (There is no `Clone`: it could not report `OutOfMemory`.)
    pub fn try_clone(&self) -> Result<Self, MatrixError> {
        self.map_values(|value| value)
    }

    /// Returns the stored value a_ij, or `None` where no entry is stored.
    ///
    /// # Panics
    /// If `row >= rows`.
    pub fn get(&self, row: usize, col: usize) -> Option<V> {
        let (cols, values) = self.row(row);
        let position = cols.binary_search(&i32::try_from(col).ok()?).ok()?;
        Some(values[position])
    }
}

impl<V> OwnedCsr<V> {
    /// Returns the number of stored entries, zeros included.
    pub fn nnz(&self) -> usize {
        self.indices.len()
    }

    /// Returns the columns and the values of row `row`, sorted by column.
    ///
    /// # Panics
    /// If `row >= rows`.
    pub fn row(&self, row: usize) -> (&[i32], &[V]) {
        let range = self.offsets[row] as usize..self.offsets[row + 1] as usize;
        (&self.indices[range.clone()], &self.values[range])
    }

    /// Drops the values; the other arrays are moved.
    pub fn into_pattern(self) -> OwnedCsr<()> {
        let Self { rows, cols, offsets, indices, .. } = self;
        let values = vec![(); indices.len()];
        OwnedCsr { rows, cols, offsets, indices, values }
    }

    /// Checks every invariant of the type's fields; the error, `Argument` or `TooLarge`, names the broken
    /// one.
    pub fn validate(&self) -> Result<(), MatrixError> {
        check_dimensions(self.rows, self.cols)?;
        let nnz = self.indices.len();
        for (what, found, expected) in [
            ("length of offsets", self.offsets.len(), self.rows + 1),
            ("length of values", self.values.len(), nnz),
        ] {
            if found != expected {
                return Err(MatrixError::argument(what, found, expected));
            }
        }
        let ends = (self.offsets[0], self.offsets[self.rows]);
        if ends != (0, nnz as i64) || !self.offsets.is_sorted() {
            return Err(MatrixError::argument(
                "offsets",
                format_args!("{} to {}", ends.0, ends.1),
                format_args!("0 to {nnz}, never decreasing"),
            ));
        }
        for row in 0..self.rows {
            let (cols, _) = self.row(row);
            let in_range = |&col: &i32| (0..self.cols as i64).contains(&i64::from(col));
            // Columns increase strictly, so the first and the last bound the others.
            let ends_valid = cols.first().is_none_or(in_range) && cols.last().is_none_or(in_range);
            if !ends_valid || !cols.is_sorted_by(|a, b| a < b) {
                return Err(MatrixError::argument(
                    format_args!("columns of row {row}"),
                    "unsorted, repeated or out-of-range columns",
                    format_args!("strictly increasing columns below {}", self.cols),
                ));
            }
        }
        Ok(())
    }

    /// Returns whether A is square and (j, i) is stored wherever (i, j) is, whatever the values. Allocates
    /// nothing; time O(nnz log(longest row)).
    pub fn is_structurally_symmetric(&self) -> bool {
        self.rows == self.cols
            && (0..self.rows).all(|row| {
                self.row(row)
                    .0
                    .iter()
                    .all(|&col| self.row(col as usize).0.binary_search(&(row as i32)).is_ok())
            })
    }
}

impl<V: Entry> OwnedCsr<V> {
    /// Returns whether A = Aᴴ (for real values A = Aᵀ) up to rounding: A is square and for every stored (i,
    /// j) |a_ij − conj(a_ji)| ≤ `tol` · max_k |a_ik|. An entry that is not stored counts as 0, so the pattern
    /// may be unsymmetric where values are 0. `tol` = 0 requires equality, about 1e-14 allows for the
    /// rounding of an f64 assembly. A NaN or an infinity anywhere makes it false. Allocates nothing; time
    /// O(nnz log(longest row)).
    pub fn is_hermitian(&self, tol: f64) -> bool {
        self.rows == self.cols
            && (0..self.rows).all(|row| {
                let (cols, values) = self.row(row);
                let largest = values.iter().fold(0.0, |m: f64, v| m.max(v.magnitude()));
                let close = |(&col, &value): (&i32, &V)| {
                    let mirror = self.get(col as usize, row).unwrap_or_default();
                    // The comparison is false for NaN.
                    (value - mirror.conj()).magnitude() <= tol * largest
                };
                largest.is_finite() && cols.iter().zip(values).all(close)
            })
    }

    /// Returns whether conjugate gradients may be tried: [`OwnedCsr::is_hermitian`]`(tol)` and every diagonal
    /// entry has a positive real part. Necessary for a positive definite matrix, not sufficient.
    pub fn is_cg_candidate(&self, tol: f64) -> bool {
        self.is_hermitian(tol) && (0..self.rows).all(|row| self.get(row, row).is_some_and(|v| v.real() > 0.0))
    }
}

/// Builder of an [`OwnedCsr`], row by row, from entries in the order of their columns.
pub(crate) struct RowBuilder<V> {
    matrix: OwnedCsr<V>,
}

impl<V> RowBuilder<V> {
    /// Makes a builder for `rows` × `cols` with room for `nnz` entries (more may be pushed). Errors:
    /// `TooLarge`, `OutOfMemory`.
    pub(crate) fn new(rows: usize, cols: usize, nnz: u128) -> Result<Self, MatrixError> {
        check_dimensions(rows, cols)?;
        let nnz = usize::try_from(nnz).unwrap_or(usize::MAX);
        let mut offsets = try_with_capacity(rows + 1)?;
        offsets.push(0);
        Ok(Self {
            matrix: OwnedCsr {
                rows,
                cols,
                offsets,
                indices: try_with_capacity(nnz)?,
                values: try_with_capacity(nnz)?,
            },
        })
    }

    /// Appends an entry to the current row; `col` is above the row's last one.
    pub(crate) fn push(&mut self, col: usize, value: V) -> Result<(), MatrixError> {
        debug_assert!(col < self.matrix.cols);
        try_push(&mut self.matrix.indices, col as i32)?;
        try_push(&mut self.matrix.values, value)
    }

    /// Ends the current row.
    pub(crate) fn end_row(&mut self) -> Result<(), MatrixError> {
        try_push(&mut self.matrix.offsets, self.matrix.indices.len() as i64)
    }

    /// Returns the matrix, once each row was ended.
    pub(crate) fn finish(self) -> OwnedCsr<V> {
        debug_assert!(self.matrix.validate().is_ok());
        self.matrix
    }
}

/// Sorts a row by column; entries of one column keep their order. `scratch` can be reused for other rows.
pub(crate) fn sort_row<V: Copy>(
    indices: &mut [i32],
    values: &mut [V],
    scratch: &mut Vec<(i32, usize, V)>,
) -> Result<(), MatrixError> {
    if indices.is_sorted() {
        return Ok(());
    }
    scratch.clear();
    try_reserve(scratch, indices.len())?;
    scratch.extend(indices.iter().zip(&*values).enumerate().map(|(k, (&col, &value))| (col, k, value)));
    // The position in the key makes this sort stable; std's stable sorts allocate infallibly.
    scratch.sort_unstable_by_key(|&(col, position, _)| (col, position));
    for ((index, out), &(col, _, value)) in indices.iter_mut().zip(values).zip(&*scratch) {
        *index = col;
        *out = value;
    }
    Ok(())
}

// Counting sort without an array of cursors: count bucket b at b + 1, accumulate so that b holds its start,
// let next_slot advance it (it ends as the start of b + 1), then restore by one shift.

/// Turns counts (of bucket b at b + 1) into the start of each bucket.
fn accumulate(offsets: &mut [i64]) {
    let mut sum = 0;
    for offset in offsets {
        sum += *offset;
        *offset = sum;
    }
}

/// Returns the next free position of `bucket`, and advances it.
fn next_slot(offsets: &mut [i64], bucket: usize) -> usize {
    let slot = offsets[bucket];
    offsets[bucket] += 1;
    slot as usize
}

/// Turns the ends of the buckets back into their starts.
fn restore(offsets: &mut [i64]) {
    let len = offsets.len();
    offsets.copy_within(0..len - 1, 1);
    offsets[0] = 0;
}

#[cfg(test)]
mod tests;

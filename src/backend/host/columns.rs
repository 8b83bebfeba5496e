//! Column indices of A as SpMM `row` reads them: those of the user's array, each of which a product must check, since the
//! user may have changed it after analysis, or a plan's own copy, which is inside of the matrix by construction
//! (docs/algorithms/host.md, "Columns of the plan's own").

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

use bytemuck::Pod;

use crate::backend::host::operand::{Factor, Ints};
use crate::error::{Error, Result};
use crate::memory::{pieces, Allocator, Buffer};

/// Columns that one parallel task copies: about 10 µs of work.
const COPIED: usize = 1 << 14;

/// A plan's copy of the column indices of A, counted from 0 and all inside of the matrix.
#[derive(Debug)]
pub struct OwnColumns {
    columns: Stored,
    /// Number of columns of the matrix, which each index is less than.
    cols: usize,
}

#[derive(Debug)]
enum Stored {
    /// 16 bits, if they can number all columns of the matrix: products read half of the bytes.
    Narrow(Buffer<u16>),
    Wide(Buffer<u32>),
}

/// The columns of [`OwnColumns`] in their type.
#[derive(Clone, Copy)]
pub enum Columns<'a> {
    /// Columns of a matrix with at most 2^16.
    Narrow(&'a [u16]),
    /// Columns of any other matrix.
    Wide(&'a [u32]),
}

impl OwnColumns {
    /// Copies the columns of a validated pattern; `None` if the user's have 64 bits.
    pub fn copy(allocator: &Arc<Allocator>, rows: &Factor<'_>) -> Result<Option<Self>> {
        let Ints::I32(columns) = rows.indices else { return Ok(None) };
        let columns = if rows.cols <= 1 << 16 {
            Stored::Narrow(from_zero(allocator, rows, columns, |column| column as u16)?)
        } else {
            Stored::Wide(from_zero(allocator, rows, columns, |column| column)?)
        };
        Ok(Some(OwnColumns { columns, cols: rows.cols }))
    }

    /// Returns the columns, each of which is less than [`Self::cols`].
    pub fn columns(&self) -> Columns<'_> {
        match &self.columns {
            Stored::Narrow(columns) => Columns::Narrow(columns),
            Stored::Wide(columns) => Columns::Wide(columns),
        }
    }

    /// Returns the number of columns of the matrix.
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// Returns the bits of an index.
    pub fn bits(&self) -> u32 {
        match self.columns {
            Stored::Narrow(_) => u16::BITS,
            Stored::Wide(_) => u32::BITS,
        }
    }
}

/// Returns the columns counted from 0. Each is checked: the user's array may have changed since it was validated.
fn from_zero<T: Pod + Send>(
    allocator: &Arc<Allocator>,
    rows: &Factor<'_>,
    columns: &[i32],
    narrow: impl Fn(u32) -> T + Sync,
) -> Result<Buffer<T>> {
    // SAFETY: all elements are written below.
    let mut own = unsafe { Buffer::unset(allocator, columns.len())? };
    let are_inside = AtomicBool::new(true);
    pieces::for_each(pieces::chunks(&mut own, COPIED), |piece, to| {
        let mut most = 0;
        for (to, column) in to.iter_mut().zip(&columns[piece * COPIED..]) {
            // An index below the base is a large number.
            let column = column.wrapping_sub(rows.base as i32) as u32;
            most = most.max(column);
            *to = narrow(column);
        }
        if most as usize >= rows.cols {
            are_inside.store(false, Ordering::Relaxed);
        }
    });
    match are_inside.into_inner() {
        true => Ok(own),
        false => Err(Error::invalid(
            "A",
            "an index array has changed during analysis: a column is outside of the matrix",
        )),
    }
}

/// A column index of A in an array that products read.
///
/// # Safety
/// Types whose indices products do not check are those of [`Columns`] alone.
pub unsafe trait ColumnIndex: Copy {
    /// True if products must check it.
    const IS_CHECKED: bool;
    /// Returns the number from which such indices count, for a matrix whose user counts from `base`.
    fn base(base: i64) -> i64;
    /// Returns the index as it is stored, counted from [`Self::base`].
    fn index(self) -> usize;
    /// Returns whether these columns are inside of a matrix with so many, whose user counts from `base`, by a loop that
    /// the compiler makes vector code of; true for columns of the plan's own, which are.
    fn are_inside(columns: &[Self], base: i64, cols: usize) -> bool;
}

// SAFETY: they are checked.
unsafe impl ColumnIndex for i32 {
    const IS_CHECKED: bool = true;

    #[inline(always)]
    fn base(base: i64) -> i64 {
        base
    }

    #[inline(always)]
    fn index(self) -> usize {
        self as u32 as usize
    }

    #[inline(always)]
    fn are_inside(columns: &[i32], base: i64, cols: usize) -> bool {
        let base = base as i32;
        let mut most = 0;
        // An index below the base is a large number.
        for &column in columns {
            most = most.max(column.wrapping_sub(base) as u32);
        }
        columns.is_empty() || (most as usize) < cols
    }
}

/// Implements [`ColumnIndex`] for a type of [`Columns`].
macro_rules! own_column {
    ($type:ty) => {
        // SAFETY: it is a type of `Columns`.
        unsafe impl ColumnIndex for $type {
            const IS_CHECKED: bool = false;

            #[inline(always)]
            fn base(_: i64) -> i64 {
                0
            }

            #[inline(always)]
            fn index(self) -> usize {
                self as usize
            }

            #[inline(always)]
            fn are_inside(_: &[Self], _: i64, _: usize) -> bool {
                true
            }
        }
    };
}
own_column!(u16);
own_column!(u32);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::host::testing::context;
    use crate::types::Status;

    fn copy(columns: &[i32], base: i64, cols: usize) -> Result<Option<OwnColumns>> {
        let offsets = [base as i32, base as i32 + columns.len() as i32];
        let rows = Factor { rows: 1, cols, base, offsets: Ints::I32(&offsets), indices: Ints::I32(columns) };
        OwnColumns::copy(&context().allocator, &rows)
    }

    #[test]
    fn columns_count_from_zero_in_the_narrowest_type() {
        let columns: Vec<i32> = (1..=40_000).collect();
        match copy(&columns, 1, 1 << 16).unwrap().unwrap().columns() {
            Columns::Narrow(own) => assert!(own.iter().copied().eq(0..40_000)),
            Columns::Wide(_) => panic!("16 bits hold 65,536 columns"),
        }
        match copy(&columns, 0, (1 << 16) + 1).unwrap().unwrap().columns() {
            Columns::Wide(own) => assert!(own.iter().copied().eq(1..=40_000)),
            Columns::Narrow(_) => panic!("16 bits do not hold 65,537 columns"),
        }
        let none = copy(&[], 1, 0).unwrap().unwrap();
        assert!(matches!(none.columns(), Columns::Narrow([])) && none.cols() == 0 && none.bits() == 16);
    }

    #[test]
    fn columns_that_change_after_validation_are_refused() {
        for (column, base) in [(-1, 0), (10, 0), (0, 1), (11, 1), (i32::MIN, 0), (i32::MIN, 1), (i32::MAX, 0)]
        {
            let mut columns = vec![base as i32; 20_000];
            columns[19_000] = column;
            let error = copy(&columns, base, 10).unwrap_err();
            assert!(error.status == Status::InvalidValue && error.message.starts_with("A: "), "{error:?}");
        }
    }

    #[test]
    fn columns_of_64_bits_are_not_copied() {
        let (offsets, columns) = ([0_i64, 1], [0_i64]);
        let rows =
            Factor { rows: 1, cols: 1, base: 0, offsets: Ints::I64(&offsets), indices: Ints::I64(&columns) };
        assert!(OwnColumns::copy(&context().allocator, &rows).unwrap().is_none());
    }
}

//! All that is counted in a pattern ([`Profile`]), in host memory.

use super::operand::{open_pattern, with_entries, EntriesVisitor};
use crate::error::Result;
use crate::matrix::compressed::{self, Compressed, Pattern};
use crate::matrix::{Entries, SparseArrays, SparseMatrix};
use crate::memory::{pool, Buffer, Context};
use crate::select::features::{check_shape, Profile};
use crate::select::in_place;
use crate::types::{DataType, Index, IndexType, Operation};

/// Of op(A), which is validated; in place where its rows are there and sorted, else of a sorted copy.
pub(crate) fn of(cx: &Context, a: &SparseMatrix, op: Operation, name: &str) -> Result<Profile> {
    a.require_arrays(name)?;
    check_shape(a, op, name)?;
    if let (SparseArrays::Csr(m) | SparseArrays::Csc(m), true) = (&a.arrays, in_place(a, op)) {
        let by_columns = matches!(a.arrays, SparseArrays::Csc(_));
        let found = match (m.offset_type, m.index_type) {
            (IndexType::I32, _) => of_rows::<i32, i32>(m, by_columns, name)?,
            (_, IndexType::I32) => of_rows::<i64, i32>(m, by_columns, name)?,
            _ => of_rows::<i64, i64>(m, by_columns, name)?,
        };
        if let Some(found) = found {
            return Ok(found);
        }
    }
    with_entries(a, name, OfCopy { cx, value: a.value_type(), transposed: op.transposes() })
}

/// `None`: they are not sorted.
fn of_rows<I: Index, J: Index>(m: &Compressed, by_columns: bool, name: &str) -> Result<Option<Profile>> {
    let names = if by_columns { &compressed::CSC } else { &compressed::CSR };
    let pattern = open_pattern::<I, J>(name, m, by_columns)?;
    pool::run(|| {
        pattern.validate(name, names)?;
        Ok(pattern.structure().sorted.then(|| Profile::of(&pattern, m.value_type)))
    })
}

struct OfCopy<'a> {
    cx: &'a Context,
    value: DataType,
    transposed: bool,
}

impl EntriesVisitor for OfCopy<'_> {
    type Output = Profile;
    fn visit<E: Entries>(self, entries: &E) -> Result<Profile> {
        let (rows, cols) = entries.shape();
        let (rows, cols) = if self.transposed { (cols, rows) } else { (rows, cols) };
        let place = |row: usize, col: usize| if self.transposed { (col, row) } else { (row, col) };
        let allocator = &self.cx.allocator;
        let mut offsets = Buffer::<i64>::zeroed(allocator, rows + 1)?;
        entries.for_each(|row, col, _| offsets[place(row, col).0 + 1] += 1);
        for row in 0..rows {
            offsets[row + 1] += offsets[row];
        }
        let mut indices = Buffer::<i32>::zeroed(allocator, entries.len())?;
        let mut next = Buffer::from_slice(allocator, &offsets[..rows])?;
        entries.for_each(|row, col, _| {
            let (row, col) = place(row, col);
            indices[next[row] as usize] = col as i32;
            next[row] += 1;
        });
        for row in 0..rows {
            indices[offsets[row] as usize..offsets[row + 1] as usize].sort_unstable();
        }
        let (offsets, indices) = (&offsets[..], &indices[..]);
        let pattern = Pattern { major: rows, minor: cols, base: 0, offsets, indices, by_columns: false };
        Ok(pool::run(|| Profile::of(&pattern, self.value)))
    }
}

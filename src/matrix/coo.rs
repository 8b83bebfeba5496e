//! COO matrices: three arrays, in any order; entries stored twice add up.

use super::{
    check_align, check_dimension, check_extent, check_index_type, check_not_negative, check_room,
    check_value_type, fault, first_outside, Entries, Structure,
};
use crate::error::Result;
use crate::types::{Address, DataType, Index, IndexBase, IndexType};

/// Borrowed arrays of a COO matrix.
#[derive(Clone, Copy, Debug)]
pub struct Coo {
    /// Number of rows.
    pub rows: i64,
    /// Number of columns.
    pub cols: i64,
    /// Number of stored entries.
    pub nnz: i64,
    /// `nnz` row indices.
    pub row_indices: Address,
    /// `nnz` column indices.
    pub col_indices: Address,
    /// `nnz` values.
    pub values: Address,
    /// Type of both index arrays.
    pub index_type: IndexType,
    /// Number of the first row and column.
    pub base: IndexBase,
    /// Type of the values.
    pub value_type: DataType,
}

impl Coo {
    /// Checks everything that can be checked without reading the arrays.
    pub fn check(&self) -> Result<()> {
        check_index_type("indexType", self.index_type)?;
        check_value_type("valueType", self.value_type)?;
        check_dimension("rows", self.rows, self.index_type, self.base)?;
        check_dimension("cols", self.cols, self.index_type, self.base)?;
        check_not_negative("nnz", self.nnz)?;
        check_room("nnz", self.nnz, (self.rows, self.cols))?;
        check_extent("nnz", self.nnz, self.value_type.size().max(self.index_type.size()))?;
        check_align("rowInd", self.row_indices, self.index_type.size())?;
        check_align("colInd", self.col_indices, self.index_type.size())?;
        check_align("values", self.values, self.value_type.align())
    }
}

/// Typed view of a COO pattern.
#[derive(Clone, Copy, Debug)]
pub struct CooPattern<'a, J> {
    /// Number of rows.
    pub rows: usize,
    /// Number of columns.
    pub cols: usize,
    /// Index base, 0 or 1.
    pub base: i64,
    /// Row index of each entry.
    pub row_indices: &'a [J],
    /// Column index of each entry.
    pub col_indices: &'a [J],
}

impl<J: Index> CooPattern<'_, J> {
    fn check(&self, matrix: &str, name: &str, indices: &[J], extent: usize) -> Result<()> {
        let Some(at) = first_outside(indices, self.base, extent) else { return Ok(()) };
        let (found, base) = (indices[at].to_i64(), self.base);
        let most = extent as i64 - 1 + base;
        Err(fault(matrix, name, at, base, format_args!("= {found} is outside [{base}, {most}]")))
    }

    /// Reads and checks the whole pattern: indices are in range.
    pub fn validate(&self, matrix: &str) -> Result<()> {
        self.check(matrix, "rowInd", self.row_indices, self.rows)?;
        self.check(matrix, "colInd", self.col_indices, self.cols)
    }
}

impl<J: Index> Entries for CooPattern<'_, J> {
    fn shape(&self) -> (usize, usize) {
        (self.rows, self.cols)
    }

    fn len(&self) -> usize {
        self.row_indices.len()
    }

    fn structure(&self) -> Structure {
        let pair = |p: usize| (self.row_indices[p], self.col_indices[p]);
        let mut steps = 1..self.row_indices.len().max(1);
        let sorted = steps.clone().all(|p| pair(p - 1) <= pair(p));
        Structure { sorted, unique: sorted && steps.all(|p| pair(p - 1) < pair(p)) }
    }

    fn for_each(&self, mut f: impl FnMut(usize, usize, usize)) {
        for (position, (row, col)) in self.row_indices.iter().zip(self.col_indices).enumerate() {
            f((row.to_i64() - self.base) as usize, (col.to_i64() - self.base) as usize, position);
        }
    }
}

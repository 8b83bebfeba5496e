//! CSR and CSC matrices: one compressed dimension (`major`) and one indexed dimension (`minor`). For CSR
//! major is the rows, for CSC the columns.

use std::ops::Range;

use super::{
    check_align, check_dimension, check_extent, check_index_type, check_not_negative, check_room,
    check_value_type, fault, first_outside, Entries, Structure,
};
use crate::error::{Error, Result};
use crate::memory::pool;
use crate::types::{Address, DataType, Index, IndexBase, IndexType};

/// Borrowed arrays of a CSR or CSC matrix.
#[derive(Clone, Copy, Debug)]
pub struct Compressed {
    /// Number of rows of CSR, of columns of CSC.
    pub major: i64,
    /// Number of columns of CSR, of rows of CSC.
    pub minor: i64,
    /// Number of stored entries.
    pub nnz: i64,
    /// `major + 1` offsets.
    pub offsets: Address,
    /// `nnz` indices.
    pub indices: Address,
    /// `nnz` values.
    pub values: Address,
    /// Type of the offsets.
    pub offset_type: IndexType,
    /// Type of the indices.
    pub index_type: IndexType,
    /// Number of the first row and column.
    pub base: IndexBase,
    /// Type of the values.
    pub value_type: DataType,
}

/// Names of the C arguments, for error messages.
#[derive(Clone, Copy, Debug)]
pub struct Names {
    /// Name of the major dimension.
    pub major: &'static str,
    /// Name of the minor dimension.
    pub minor: &'static str,
    /// Name of the number of entries.
    pub nnz: &'static str,
    /// Name of the offsets.
    pub offsets: &'static str,
    /// Name of the indices.
    pub indices: &'static str,
}

/// Argument names of CSR.
pub const CSR: Names =
    Names { major: "rows", minor: "cols", nnz: "nnz", offsets: "rowOffsets", indices: "colInd" };
/// Argument names of CSC.
pub const CSC: Names =
    Names { major: "cols", minor: "rows", nnz: "nnz", offsets: "colOffsets", indices: "rowInd" };
/// Argument names of BSR, whose pattern of blocks is a CSR pattern.
pub const BSR: Names = Names {
    major: "blockRows",
    minor: "blockCols",
    nnz: "blockNnz",
    offsets: "rowOffsets",
    indices: "colInd",
};

impl Compressed {
    /// Checks everything that can be checked without reading the arrays.
    pub fn check(&self, names: &Names) -> Result<()> {
        check_index_type("offsetType", self.offset_type)?;
        check_index_type("indexType", self.index_type)?;
        if self.offset_type.size() < self.index_type.size() {
            return Err(Error::unsupported(
                "offsetType, indexType: 32-bit offsets with 64-bit indices are not accepted; \
                 (offset, index) may be 32/32, 64/32 or 64/64 bits",
            ));
        }
        check_value_type("valueType", self.value_type)?;
        check_not_negative(names.major, self.major)?;
        check_dimension(names.minor, self.minor, self.index_type, self.base)?;
        check_dimension(names.nnz, self.nnz, self.offset_type, self.base)?;
        check_room(names.nnz, self.nnz, (self.major, self.minor))?;
        check_extent(names.major, self.major.saturating_add(1), self.offset_type.size())?;
        check_extent(names.nnz, self.nnz, self.value_type.size().max(self.index_type.size()))?;
        check_align(names.offsets, self.offsets, self.offset_type.size())?;
        check_align(names.indices, self.indices, self.index_type.size())?;
        check_align("values", self.values, self.value_type.align())
    }
}

/// Typed view of a compressed pattern.
#[derive(Clone, Copy, Debug)]
pub struct Pattern<'a, I, J> {
    /// Length of the compressed dimension.
    pub major: usize,
    /// Length of the indexed dimension.
    pub minor: usize,
    /// Index base, 0 or 1.
    pub base: i64,
    /// `major + 1` offsets; empty if `major` is 0.
    pub offsets: &'a [I],
    /// Indices of the entries.
    pub indices: &'a [J],
    /// True if the compressed dimension is the columns.
    pub by_columns: bool,
}

impl<I: Index, J: Index> Pattern<'_, I, J> {
    /// Returns the positions of the entries of a row (CSR) or column (CSC).
    #[inline(always)]
    pub fn range(&self, major: usize) -> Range<usize> {
        (self.offsets[major].to_i64() - self.base) as usize
            ..(self.offsets[major + 1].to_i64() - self.base) as usize
    }

    /// Returns the base-0 index of an entry.
    #[inline(always)]
    pub fn index(&self, position: usize) -> usize {
        (self.indices[position].to_i64() - self.base) as usize
    }

    /// Reads and checks the whole pattern: offsets start at the base, never decrease and end at nnz; indices
    /// are in range. `matrix` is the argument that errors name. The first fault by position is the one
    /// reported.
    pub fn validate(&self, matrix: &str, names: &Names) -> Result<()> {
        let fault = |array: &str, at: usize, what: String| Err(fault(matrix, array, at, self.base, what));
        if self.major == 0 {
            return Ok(());
        }
        let first = self.offsets[0].to_i64();
        if first != self.base {
            return fault(names.offsets, 0, format!("= {first}, expected the index base {}", self.base));
        }
        let end = self.indices.len() as i64 + self.base;
        // The search is parallel over chunks: dividing it by single rows would cost 13 ns per row.
        let fall = pool::find_first(self.major.div_ceil(GRAIN), &|chunk| {
            let first = chunk * GRAIN;
            let offsets = &self.offsets[first..(first + GRAIN).min(self.major) + 1];
            let fall = offsets.windows(2).position(|row| row[1] < row[0] || row[1].to_i64() > end);
            fall.map(|row| first + row)
        });
        if let Some(row) = fall {
            let (this, next) = (self.offsets[row].to_i64(), self.offsets[row + 1].to_i64());
            let what = if next < this {
                format!("= {next} is less than {}[{row}] = {this}", names.offsets)
            } else {
                format!("= {next} is more than {} + base = {end}", names.nnz)
            };
            return fault(names.offsets, row + 1, what);
        }
        let last = self.offsets[self.major].to_i64();
        if last != end {
            let what = format!("= {last}, expected {} + base = {end}", names.nnz);
            return fault(names.offsets, self.major, what);
        }
        if let Some(at) = first_outside(self.indices, self.base, self.minor) {
            let index = self.indices[at].to_i64();
            let most = self.minor as i64 - 1 + self.base;
            return fault(names.indices, at, format!("= {index} is outside [{}, {most}]", self.base));
        }
        Ok(())
    }
}

/// Smallest number of rows that one parallel task checks: below this, handing over the task costs more than
/// the check.
const GRAIN: usize = 8192;

impl<I: Index, J: Index> Entries for Pattern<'_, I, J> {
    fn shape(&self) -> (usize, usize) {
        if self.by_columns {
            (self.minor, self.major)
        } else {
            (self.major, self.minor)
        }
    }

    fn len(&self) -> usize {
        self.indices.len()
    }

    fn structure(&self) -> Structure {
        let holds = |of: &(dyn Fn(&[J]) -> bool + Sync)| {
            let falls = |chunk: usize| {
                let mut rows = chunk * GRAIN..self.major.min((chunk + 1) * GRAIN);
                rows.find(|&row| !of(&self.indices[self.range(row)]))
            };
            pool::find_first(self.major.div_ceil(GRAIN), &falls).is_none()
        };
        let unique = holds(&|row| row.windows(2).all(|w| w[0] < w[1]));
        Structure { sorted: unique || holds(&|row| row.windows(2).all(|w| w[0] <= w[1])), unique }
    }

    fn for_each(&self, mut f: impl FnMut(usize, usize, usize)) {
        for major in 0..self.major {
            for position in self.range(major) {
                let minor = self.index(position);
                if self.by_columns {
                    f(minor, major, position);
                } else {
                    f(major, minor, position);
                }
            }
        }
    }
}

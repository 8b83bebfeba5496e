//! Sparse and dense matrices: borrowed descriptions of the user's arrays, and typed views of them.
//!
//! A descriptor holds addresses and never touches the memory behind them; the backend that owns that memory
//! opens the arrays as typed views.

pub mod bsr;
pub mod compressed;
pub mod coo;
pub mod dense;
pub mod fingerprint;
#[cfg(test)]
pub(crate) mod testing;
pub mod tiles;

use std::fmt::Display;

use crate::error::{refuse_if, Error, Result};
use crate::memory::pool;
use crate::types::{Address, DataType, Format, Index, IndexBase, IndexType, Operation};

pub use bsr::Bsr;
pub use compressed::Compressed;
pub use coo::Coo;
pub use dense::{DenseMatrix, DenseVector, Lines};

/// Properties of a matrix in sparse tiles. The library owns its contents (`crate::matrix::tiles`), which are
/// passed from call to call beside this.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TileShape {
    /// Number of rows.
    pub rows: i64,
    /// Number of columns.
    pub cols: i64,
    /// Number of stored entries.
    pub nnz: i64,
    /// Number of tiles that have an entry.
    pub tiles: i64,
    /// Type of the values.
    pub value_type: DataType,
    /// True if the tiles are those of the transpose: made from CSC, or by products that compute columns.
    pub by_columns: bool,
}

impl TileShape {
    /// Returns a descriptor of this matrix in arrays of base 0 with 64-bit offsets: CSR, or CSC where the
    /// tiles are by columns.
    pub fn in_arrays(
        &self,
        offsets: Address,
        (indices, index_type): (Address, IndexType),
        values: Address,
    ) -> SparseMatrix {
        let (major, minor) = if self.by_columns { (self.cols, self.rows) } else { (self.rows, self.cols) };
        let arrays = Compressed {
            major,
            minor,
            nnz: self.nnz,
            offsets,
            indices,
            values,
            offset_type: IndexType::I64,
            index_type,
            base: IndexBase::Zero,
            value_type: self.value_type,
        };
        let arrays = if self.by_columns { SparseArrays::Csc(arrays) } else { SparseArrays::Csr(arrays) };
        SparseMatrix { arrays, writable: true, temporary: false }
    }
}

/// Arrays of a sparse matrix, by format.
#[derive(Clone, Copy, Debug)]
pub enum SparseArrays {
    /// CSR arrays.
    Csr(Compressed),
    /// CSC arrays.
    Csc(Compressed),
    /// COO arrays.
    Coo(Coo),
    /// BSR arrays.
    Bsr(Bsr),
    /// Sparse tiles, which have no arrays of the user: the library owns them.
    Tile(TileShape),
}

/// Sparse matrix descriptor: borrows the user's arrays and copies nothing.
#[derive(Clone, Copy, Debug)]
pub struct SparseMatrix {
    /// Format and arrays.
    pub arrays: SparseArrays,
    /// False if it was made from const pointers.
    pub writable: bool,
    /// True if the caller may free the arrays after analysis, so that a plan must copy those that it needs.
    pub temporary: bool,
}

impl SparseMatrix {
    /// Returns its format.
    pub fn format(&self) -> Format {
        match self.arrays {
            SparseArrays::Csr(_) => Format::Csr,
            SparseArrays::Csc(_) => Format::Csc,
            SparseArrays::Coo(_) => Format::Coo,
            SparseArrays::Bsr(_) => Format::Bsr,
            SparseArrays::Tile(_) => Format::Tile,
        }
    }

    /// Returns (rows, columns, stored entries); for BSR in scalars, not in blocks.
    pub fn shape(&self) -> (i64, i64, i64) {
        match &self.arrays {
            SparseArrays::Csr(m) => (m.major, m.minor, m.nnz),
            SparseArrays::Csc(m) => (m.minor, m.major, m.nnz),
            SparseArrays::Coo(m) => (m.rows, m.cols, m.nnz),
            SparseArrays::Bsr(m) => (m.rows(), m.cols(), m.stored()),
            SparseArrays::Tile(m) => (m.rows, m.cols, m.nnz),
        }
    }

    /// Returns (rows, columns) of op(A) for this matrix A, and its stored entries.
    #[inline]
    pub fn shape_of(&self, op: Operation) -> (i64, i64, i64) {
        let (rows, cols, nnz) = self.shape();
        let (rows, cols) = op.shape(rows, cols);
        (rows, cols, nnz)
    }

    /// Returns the properties that matrices of all formats have: the type of the values, the index base, and
    /// the address of the values.
    #[inline]
    fn common(&self) -> (DataType, IndexBase, Address) {
        match &self.arrays {
            SparseArrays::Csr(m) | SparseArrays::Csc(m) => (m.value_type, m.base, m.values),
            SparseArrays::Coo(m) => (m.value_type, m.base, m.values),
            SparseArrays::Bsr(m) => (m.value_type, m.base, m.values),
            SparseArrays::Tile(m) => (m.value_type, IndexBase::Zero, Address::NULL),
        }
    }

    /// Returns the type of the values.
    #[inline]
    pub fn value_type(&self) -> DataType {
        self.common().0
    }

    /// Returns the index base: the number of the first row and column.
    pub fn base(&self) -> IndexBase {
        self.common().1
    }

    /// Returns the address of the values; NULL for tiles, which the library owns.
    #[inline]
    pub fn values(&self) -> Address {
        self.common().2
    }

    /// Returns this matrix with its values at another address.
    pub fn with_values(mut self, values: Address) -> Self {
        match &mut self.arrays {
            SparseArrays::Csr(m) | SparseArrays::Csc(m) => m.values = values,
            SparseArrays::Coo(m) => m.values = values,
            SparseArrays::Bsr(m) => m.values = values,
            SparseArrays::Tile(_) => {}
        }
        self
    }

    /// Returns the user's arrays: offsets and indices, or the two index arrays of COO, then the values.
    /// `None` for tiles.
    pub fn user_arrays(&self) -> Option<[Array; 3]> {
        let (value_type, values) = (self.value_type(), self.values());
        let of_index = |name, address, count, index_type: IndexType, needed| Array {
            name,
            address,
            count,
            size: index_type.size(),
            needed,
        };
        let compressed = |m: &Compressed, names: &compressed::Names| {
            [
                of_index(names.offsets, m.offsets, m.major + 1, m.offset_type, m.major > 0),
                of_index(names.indices, m.indices, m.nnz, m.index_type, m.nnz > 0),
            ]
        };
        let [first, second] = match &self.arrays {
            SparseArrays::Csr(m) => compressed(m, &compressed::CSR),
            SparseArrays::Csc(m) => compressed(m, &compressed::CSC),
            SparseArrays::Bsr(m) => compressed(&m.pattern(), &compressed::BSR),
            SparseArrays::Coo(m) => [("rowInd", m.row_indices), ("colInd", m.col_indices)]
                .map(|(name, address)| of_index(name, address, m.nnz, m.index_type, m.nnz > 0)),
            SparseArrays::Tile(_) => return None,
        };
        let count = self.shape().2;
        let values =
            Array { name: "values", address: values, count, size: value_type.size(), needed: count > 0 };
        Some([first, second, values])
    }

    /// Returns whether these lines lie, gaps included, outside of the user's arrays, as far as a few comparisons tell:
    /// always false for other formats than CSR and CSC.
    #[inline]
    pub fn is_far_from(&self, lines: &Lines) -> bool {
        let (SparseArrays::Csr(m) | SparseArrays::Csc(m)) = &self.arrays else { return false };
        let is_apart =
            |address, count: i64, size| lines.are_far_from(&Lines::one(address, count as usize * size));
        is_apart(m.offsets, m.major + 1, m.offset_type.size())
            && is_apart(m.indices, m.nnz, m.index_type.size())
            && is_apart(m.values, m.nnz, m.value_type.size())
    }

    /// Returns the name of the user's array that has a byte in common with these lines, if any; `None` for
    /// tiles.
    pub fn array_in(&self, lines: &Lines) -> Option<&'static str> {
        let is_in = |array: &Array| lines.overlaps(&array.lines());
        self.user_arrays()?.into_iter().find(is_in).map(|array| array.name)
    }

    /// Returns an error if an array that is read or written is NULL; `name` is the argument that the error
    /// names.
    pub fn require_arrays(&self, name: &str) -> Result<()> {
        let missing = |array: &Array| array.needed && array.address.is_null();
        match self.user_arrays().into_iter().flatten().find(missing) {
            None => Ok(()),
            Some(Array { name: array, .. }) => Err(Error::invalid(
                name,
                format!("its {array} pointer is NULL: set it before the matrix is used"),
            )),
        }
    }
}

/// User's array that a sparse matrix refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Array {
    /// Name of the C argument.
    pub name: &'static str,
    /// Address of the first element.
    pub address: Address,
    /// Number of elements.
    pub count: i64,
    /// Number of bytes of an element.
    pub size: usize,
    /// True if it is read and must not be NULL, unlike the offsets of a matrix without rows or an array
    /// without elements.
    pub needed: bool,
}

impl Array {
    /// Returns the array's bytes; there are none at a NULL pointer. The check of the descriptor has found that
    /// their number does not overflow.
    #[inline]
    pub fn lines(&self) -> Lines {
        Lines::one(self.address, if self.address.is_null() { 0 } else { self.count as usize * self.size })
    }

    /// Returns the number of elements that are read.
    pub fn read(&self) -> i64 {
        if self.needed {
            self.count
        } else {
            0
        }
    }
}

/// Order of the entries in a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Structure {
    /// True if indices ascend inside every row (CSR, BSR) or column (CSC); for COO, if the entries ascend by
    /// (row, column).
    pub sorted: bool,
    /// True if it is sorted and no entry is stored twice. Always false for an unsorted pattern, even without
    /// duplicates.
    pub unique: bool,
}

/// Entries of a sparse pattern in storage order, from which conversions read.
pub trait Entries: Sync {
    /// Returns (rows, columns).
    fn shape(&self) -> (usize, usize);
    /// Returns the number of stored entries.
    fn len(&self) -> usize;
    /// Returns whether it is sorted and without duplicates; for BSR, whether its blocks are.
    fn structure(&self) -> Structure;
    /// Calls `f(row, column, position in the value array)` for each entry,
    /// base 0, in storage order. The pattern must be valid.
    fn for_each(&self, f: impl FnMut(usize, usize, usize));
}

/// Number of indices that one parallel task checks: a few microseconds of work, and few enough to be in the
/// first-level cache for a second pass where one is outside.
const LOOK: usize = 1 << 12;

/// Returns the position of the first index outside [base, base + extent).
pub(crate) fn first_outside<J: Index>(indices: &[J], base: i64, extent: usize) -> Option<usize> {
    let inside = |index: J| (base..base.saturating_add(extent as i64)).contains(&index.to_i64());
    pool::find_first(indices.len().div_ceil(LOOK), &|at| {
        let chunk = &indices[at * LOOK..indices.len().min((at + 1) * LOOK)];
        // Only the extremes matter, and minima and maxima vectorise.
        let ends = (chunk[0], chunk[0]);
        let (least, most) = chunk.iter().fold(ends, |(least, most), &i| (least.min(i), most.max(i)));
        if inside(least) && inside(most) {
            return None;
        }
        chunk.iter().position(|&index| !inside(index)).map(|inner| at * LOOK + inner)
    })
}

/// Returns the error for an element of a pattern's array. Positions count from 0, as in C; where indices count
/// from 1, as in Fortran, the text says so.
pub(crate) fn fault(matrix: &str, array: &str, at: impl Display, base: i64, what: impl Display) -> Error {
    let counting = if base == 0 { "" } else { " (positions count from 0)" };
    Error::invalid(matrix, format!("{array}[{at}] {what}{counting}"))
}

/// Returns the `NOT_SUPPORTED` error for a function that needs the user's arrays, which a matrix in tiles has
/// not.
pub(crate) fn no_arrays(name: &str) -> Error {
    Error::unsupported(format!(
        "{name}: it is in tiles (tarsiaCreateTile), which this function does not take; tarsiaTileToSparse makes \
         CSR or CSC of it"
    ))
}

pub(crate) fn check_not_negative(name: &str, value: i64) -> Result<()> {
    refuse_if!(value < 0, invalid(name), "{value} is negative");
    Ok(())
}

/// Returns an error if a matrix without rows or columns is said to have entries.
pub(crate) fn check_room(name: &str, nnz: i64, extents: (i64, i64)) -> Result<()> {
    if nnz > 0 && (extents.0 == 0 || extents.1 == 0) {
        return Err(Error::invalid(name, format!("{nnz} entries cannot be in an empty matrix")));
    }
    Ok(())
}

pub(crate) fn check_dimension(name: &str, value: i64, index: IndexType, base: IndexBase) -> Result<()> {
    check_not_negative(name, value)?;
    let most = index.max() - base.code() as i64;
    refuse_if!(
        value > most,
        invalid(name),
        "{value} is more than {}-bit indices of base {} can number ({most})",
        8 * index.size(),
        base.code()
    );
    Ok(())
}

pub(crate) fn check_index_type(name: &str, index: IndexType) -> Result<()> {
    if index == IndexType::U16 {
        return Err(Error::unsupported(format!(
            "{name}: 16-bit indices are not accepted; use 32 or 64 bits"
        )));
    }
    Ok(())
}

pub(crate) fn check_value_type(name: &str, value: DataType) -> Result<()> {
    if matches!(value, DataType::R8I | DataType::R32I) {
        return Err(Error::unsupported(format!("{name}: no operation takes {} values", value.short())));
    }
    Ok(())
}

pub(crate) fn check_align(name: &str, address: Address, align: usize) -> Result<()> {
    refuse_if!(
        !address.is_aligned(align),
        invalid(name),
        "the pointer {:#x} is not a multiple of {align} bytes, to which its elements must be aligned",
        address.value()
    );
    Ok(())
}

/// Returns an error if `count · size` bytes are not addressable.
pub(crate) fn check_extent(name: &str, count: i64, size: usize) -> Result<()> {
    let fits = usize::try_from(count)
        .ok()
        .and_then(|n| n.checked_mul(size))
        .is_some_and(|b| b <= isize::MAX as usize);
    refuse_if!(!fits, invalid(name), "{count} elements of {size} bytes are more than memory can address");
    Ok(())
}

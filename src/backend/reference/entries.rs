//! A sparse matrix of any format as the list of its entries. The oracle reads and checks patterns by its own
//! code, so that it shares none with the backends that it tests.

use bytemuck::{Pod, Zeroable};

use super::arrays::{Indices, Values};
use super::number::{stored, Number};
use crate::error::Result;
use crate::matrix::{fault, no_arrays, Bsr, Compressed, Coo, SparseArrays, SparseMatrix, Structure};
use crate::memory::{Buffer, Context};
use crate::types::{Address, IndexBase, Operation, Order};

/// A stored entry of A, with base 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub(super) struct Entry {
    /// Row in A.
    pub row: usize,
    /// Column in A.
    pub col: usize,
    /// Position of the value in the user's value array.
    pub position: usize,
}

impl Entry {
    /// Returns (row, column) in op(A).
    pub(super) fn place(&self, op: Operation) -> (usize, usize) {
        if op.transposes() {
            (self.col, self.row)
        } else {
            (self.row, self.col)
        }
    }
}

/// The matrix op(A) of a plan: the entries of A, and its values. Every execute reads the values in the user's
/// array, or in a copy if the user may free that array after analysis.
pub(super) struct Factor {
    /// The sparse matrix A.
    pub matrix: SparseMatrix,
    /// Operation on A.
    pub op: Operation,
    /// Entries in storage order.
    pub entries: Buffer<Entry>,
    copy: Option<Buffer<u8>>,
}

impl Factor {
    /// Reads the pattern, and for a self-contained plan copies the values. Errors name the argument `name`.
    pub(super) fn read(cx: &Context, a: &SparseMatrix, op: Operation, name: &str) -> Result<Self> {
        let entries = read(cx, a, name)?;
        let copy = match a.temporary {
            true => Some(Buffer::from_slice(&cx.allocator, Values::read(name, a)?.bytes())?),
            false => None,
        };
        let matrix = copy.as_ref().map_or(*a, |copy| a.with_values(copy.address()));
        Ok(Factor { matrix, op, entries, copy })
    }

    /// Returns the rows and columns of op(A).
    pub(super) fn shape(&self) -> (usize, usize) {
        let (rows, cols, _) = self.matrix.shape_of(self.op);
        (rows as usize, cols as usize)
    }

    /// Opens the values for reading.
    pub(super) fn values(&self, name: &str) -> Result<Values<&[u8]>> {
        Values::read(name, &self.matrix)
    }

    /// Takes new values.
    pub(super) fn renew(&mut self, name: &str, values: Address) -> Result<()> {
        let renewed = self.matrix.with_values(values);
        match &mut self.copy {
            Some(copy) => copy.copy_from_slice(Values::read(name, &renewed)?.bytes()),
            None => self.matrix = renewed,
        }
        Ok(())
    }

    /// Computes sums += op(A) · x. Only stored entries contribute.
    pub(super) fn add_products<N: Number>(
        &self,
        sums: &mut [N],
        values: &Values<&[u8]>,
        x: impl Fn(usize) -> N,
    ) {
        for entry in self.entries.iter() {
            let (row, col) = entry.place(self.op);
            sums[row] += stored::<N>(values, entry.position, self.op) * x(col);
        }
    }
}

/// Reads the entries in storage order, one per stored value. Errors name the argument `name`; only the
/// pattern is read.
pub(super) fn read(cx: &Context, a: &SparseMatrix, name: &str) -> Result<Buffer<Entry>> {
    let mut entries = read_stored(cx, a, name)?;
    match &a.arrays {
        SparseArrays::Csr(_) | SparseArrays::Coo(_) => Ok(entries),
        SparseArrays::Csc(_) => {
            // So far `row` is the index of the compressed dimension, which is the column.
            for entry in entries.iter_mut() {
                std::mem::swap(&mut entry.row, &mut entry.col);
            }
            Ok(entries)
        }
        SparseArrays::Bsr(m) => expand_blocks(cx, m, &entries),
        SparseArrays::Tile(_) => Err(no_arrays(name)),
    }
}

/// Returns whether the stored pattern is sorted and has no duplicates.
pub(super) fn inspect(cx: &Context, a: &SparseMatrix, name: &str) -> Result<Structure> {
    let entries = read_stored(cx, a, name)?;
    let place = |entry: &Entry| (entry.row, entry.col);
    let sorted = entries.windows(2).all(|pair| place(&pair[0]) <= place(&pair[1]));
    let unique = entries.windows(2).all(|pair| place(&pair[0]) < place(&pair[1]));
    Ok(Structure { sorted, unique })
}

/// Reads the index arrays as pairs in storage order: (row, column) for CSR and COO, (column, row) for CSC,
/// (block row, block column) for BSR.
fn read_stored(cx: &Context, a: &SparseMatrix, name: &str) -> Result<Buffer<Entry>> {
    a.require_arrays(name)?;
    match &a.arrays {
        SparseArrays::Csr(m) => read_compressed(cx, m, name, "rowOffsets", "colInd"),
        SparseArrays::Csc(m) => read_compressed(cx, m, name, "colOffsets", "rowInd"),
        SparseArrays::Bsr(m) => read_compressed(cx, &m.pattern(), name, "rowOffsets", "colInd"),
        SparseArrays::Coo(m) => read_coordinates(cx, m, name),
        SparseArrays::Tile(_) => Err(no_arrays(name)),
    }
}

fn read_compressed(
    cx: &Context,
    m: &Compressed,
    name: &str,
    offsets_name: &str,
    indices_name: &str,
) -> Result<Buffer<Entry>> {
    let (major, nnz) = (m.major as usize, m.nnz as usize);
    let mut entries = Buffer::<Entry>::zeroed(&cx.allocator, nnz)?;
    if major == 0 {
        // There are no entries, and the offsets may be NULL.
        return Ok(entries);
    }
    // SAFETY: the descriptor promises major + 1 offsets and nnz indices that nothing changes for the plan's
    // life.
    let (offsets, indices) = unsafe {
        (
            Indices::open(name, m.offsets, major + 1, m.offset_type)?,
            Indices::open(name, m.indices, nnz, m.index_type)?,
        )
    };
    let base = i64::from(m.base.code());
    let fault = |at: usize, expected: String| {
        let found = offsets.get(at);
        Err(fault(name, offsets_name, at, base, format!("= {found}, expected {expected}")))
    };
    if offsets.get(0) != base {
        return fault(0, format!("the index base {base}"));
    }
    for at in 1..=major {
        if offsets.get(at) < offsets.get(at - 1) {
            return fault(at, format!("at least {offsets_name}[{}] = {}", at - 1, offsets.get(at - 1)));
        }
        if offsets.get(at) > m.nnz + base {
            return fault(at, format!("at most the number of entries + base = {}", m.nnz + base));
        }
    }
    if offsets.get(major) != m.nnz + base {
        return fault(major, format!("the number of entries + base = {}", m.nnz + base));
    }
    for row in 0..major {
        let (start, end) = (offsets.get(row) - base, offsets.get(row + 1) - base);
        for position in start as usize..end as usize {
            let col = index(&indices, position, m.base, m.minor, name, indices_name)?;
            entries[position] = Entry { row, col, position };
        }
    }
    Ok(entries)
}

fn read_coordinates(cx: &Context, m: &Coo, name: &str) -> Result<Buffer<Entry>> {
    let nnz = m.nnz as usize;
    let mut entries = Buffer::<Entry>::zeroed(&cx.allocator, nnz)?;
    // SAFETY: the descriptor promises nnz indices in both arrays that nothing changes for the plan's life.
    let (rows, cols) = unsafe {
        (
            Indices::open(name, m.row_indices, nnz, m.index_type)?,
            Indices::open(name, m.col_indices, nnz, m.index_type)?,
        )
    };
    for position in 0..nnz {
        let row = index(&rows, position, m.base, m.rows, name, "rowInd")?;
        let col = index(&cols, position, m.base, m.cols, name, "colInd")?;
        entries[position] = Entry { row, col, position };
    }
    Ok(entries)
}

/// Returns the row or column at a position with base 0; an error if it is outside 0..`extent`.
fn index(
    indices: &Indices<&[u8]>,
    at: usize,
    base: IndexBase,
    extent: i64,
    name: &str,
    array: &str,
) -> Result<usize> {
    let (first, found) = (i64::from(base.code()), indices.get(at));
    if found < first || found - first >= extent {
        let last = extent - 1 + first;
        return Err(fault(name, array, at, first, format!("= {found} is outside [{first}, {last}]")));
    }
    Ok((found - first) as usize)
}

/// Converts stored blocks to stored entries.
fn expand_blocks(cx: &Context, m: &Bsr, blocks: &[Entry]) -> Result<Buffer<Entry>> {
    let (height, width) = (m.row_block as usize, m.col_block as usize);
    let mut entries = Buffer::<Entry>::zeroed(&cx.allocator, blocks.len() * height * width)?;
    let mut count = 0;
    for block in blocks {
        for i in 0..height {
            for j in 0..width {
                let inside = match m.block_order {
                    Order::Row => i * width + j,
                    Order::Col => i + j * height,
                };
                entries[count] = Entry {
                    row: block.row * height + i,
                    col: block.col * width + j,
                    position: block.position * height * width + inside,
                };
                count += 1;
            }
        }
    }
    Ok(entries)
}

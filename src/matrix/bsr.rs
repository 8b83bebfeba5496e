//! BSR matrices: a CSR pattern of dense rectangular blocks. Every value of a stored block is a stored entry,
//! zeros included.

use super::compressed::{self, Compressed, Pattern};
use super::{check_extent, Entries, Structure};
use crate::error::{refuse_if, Error, Result};
use crate::types::{Address, DataType, Index, IndexBase, IndexType, Order};

/// Borrowed arrays of a BSR matrix.
#[derive(Clone, Copy, Debug)]
pub struct Bsr {
    /// Number of rows of blocks.
    pub block_rows: i64,
    /// Number of columns of blocks.
    pub block_cols: i64,
    /// Number of stored blocks.
    pub block_nnz: i64,
    /// Number of rows of one block.
    pub row_block: i64,
    /// Number of columns of one block.
    pub col_block: i64,
    /// `block_rows + 1` offsets, in blocks.
    pub offsets: Address,
    /// `block_nnz` block columns.
    pub indices: Address,
    /// `block_nnz · row_block · col_block` values.
    pub values: Address,
    /// Type of the offsets.
    pub offset_type: IndexType,
    /// Type of the indices.
    pub index_type: IndexType,
    /// Number of the first block row and column.
    pub base: IndexBase,
    /// Type of the values.
    pub value_type: DataType,
    /// Order of the values inside a block.
    pub block_order: Order,
}

impl Bsr {
    /// Returns the number of scalar rows.
    pub fn rows(&self) -> i64 {
        self.block_rows * self.row_block
    }

    /// Returns the number of scalar columns.
    pub fn cols(&self) -> i64 {
        self.block_cols * self.col_block
    }

    /// Returns the number of stored values.
    pub fn stored(&self) -> i64 {
        self.block_nnz * self.row_block * self.col_block
    }

    /// Returns the pattern of blocks as a CSR matrix, whose `values` are those of the blocks.
    pub fn pattern(&self) -> Compressed {
        Compressed {
            major: self.block_rows,
            minor: self.block_cols,
            nnz: self.block_nnz,
            offsets: self.offsets,
            indices: self.indices,
            values: self.values,
            offset_type: self.offset_type,
            index_type: self.index_type,
            base: self.base,
            value_type: self.value_type,
        }
    }

    /// Checks everything that can be checked without reading the arrays.
    pub fn check(&self) -> Result<()> {
        for (name, block) in [("rowBlockSize", self.row_block), ("colBlockSize", self.col_block)] {
            refuse_if!(block < 1, invalid(name), "{block} is less than 1");
        }
        self.pattern().check(&compressed::BSR)?;
        let area = self.row_block.checked_mul(self.col_block);
        let too_many = |name: &str| {
            Error::invalid(name, "the matrix has more rows, columns or values than 64 bits hold")
        };
        self.block_rows.checked_mul(self.row_block).ok_or_else(|| too_many("rowBlockSize"))?;
        self.block_cols.checked_mul(self.col_block).ok_or_else(|| too_many("colBlockSize"))?;
        let stored =
            area.and_then(|area| area.checked_mul(self.block_nnz)).ok_or_else(|| too_many("blockNnz"))?;
        check_extent("blockNnz", stored, self.value_type.size())
    }
}

/// Typed view of a BSR pattern.
#[derive(Clone, Copy, Debug)]
pub struct BsrPattern<'a, I, J> {
    /// Pattern of the blocks.
    pub blocks: Pattern<'a, I, J>,
    /// Number of rows of one block.
    pub row_block: usize,
    /// Number of columns of one block.
    pub col_block: usize,
    /// Order of the values inside a block.
    pub order: Order,
}

impl<I: Index, J: Index> Entries for BsrPattern<'_, I, J> {
    fn shape(&self) -> (usize, usize) {
        (self.blocks.major * self.row_block, self.blocks.minor * self.col_block)
    }

    fn len(&self) -> usize {
        self.blocks.indices.len() * self.row_block * self.col_block
    }

    fn structure(&self) -> Structure {
        self.blocks.structure()
    }

    fn for_each(&self, mut f: impl FnMut(usize, usize, usize)) {
        let (h, w) = (self.row_block, self.col_block);
        for block_row in 0..self.blocks.major {
            for i in 0..h {
                for block in self.blocks.range(block_row) {
                    let block_col = self.blocks.index(block);
                    for j in 0..w {
                        let inside = match self.order {
                            Order::Row => i * w + j,
                            Order::Col => j * h + i,
                        };
                        f(block_row * h + i, block_col * w + j, block * h * w + inside);
                    }
                }
            }
        }
    }
}

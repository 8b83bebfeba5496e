//! Time from bytes: what a product must move, over the bandwidth that the
//! machine sustains, plus what a call costs at the least.

use super::{index_bytes, Source};
use crate::layout::mask_block::Counts;
use crate::layout::stream::{tile_slots, Tile};
use crate::matrix::SparseMatrix;
use crate::types::{DataType, Operation};

/// What the cost model knows of a kind of machine. Constants, so that the
/// choice is the same on every machine of the kind.
#[derive(Clone, Copy, Debug)]
pub struct Machine {
    /// Bytes a second that memory sustains.
    bandwidth: f64,
    /// Multiply-adds a second of a product with dense operands whose rows come
    /// from the caches.
    products: f64,
    /// Seconds that a call takes with nothing to do.
    call: f64,
    /// Seconds of one multiplication of a sparse product: about one random
    /// access to an accumulator.
    sparse_product: f64,
}

impl Machine {
    /// Two threads of a current server processor, in fp64 on a matrix of finite
    /// elements (`tarsia demo` prints what a machine does); a call wakes the
    /// thread pool.
    pub const HOST: Machine =
        Machine { bandwidth: 2.4e10, products: 1.0e10, call: 5.0e-6, sparse_product: 1.2e-9 };
    /// An H100 (HBM3): measured copy rate and empty launch; a product with dense
    /// operands takes a row of B from L2 for each nonzero, at about 5.6 TB/s.
    pub const H100: Machine =
        Machine { bandwidth: 3.03e12, products: 7.0e11, call: 3.6e-6, sparse_product: 5.0e-11 };
}

/// Bytes of A that one product reads.
pub fn matrix_bytes(a: &SparseMatrix, op: Operation, source: Source) -> f64 {
    let (rows, cols, nnz) = a.shape();
    let (index, offset) = index_bytes(a, source);
    let (rows, _) = op.shape(rows, cols);
    nnz as f64 * (a.value_type().size() + index) as f64 + (rows + 1) as f64 * offset as f64
}

/// Bytes of A in slices with 16-bit columns: 32 of a slice's head for 8 rows, and
/// 4 a row for where y goes.
pub fn sell_bytes(a: &SparseMatrix, op: Operation) -> f64 {
    let (rows, cols, nnz) = a.shape();
    let (rows, _) = op.shape(rows, cols);
    nnz as f64 * (a.value_type().size() + 2) as f64 + rows as f64 * 8.0
}

/// Bytes of A in equal tiles with 16-bit columns and no empty rows: whole tiles, a
/// bit a slot for the ends of rows, and 16 of a tile's head.
pub fn stream_bytes(a: &SparseMatrix) -> f64 {
    let value = a.value_type().size();
    let slots = tile_slots(value);
    let tiles = (a.shape().2 as u64).div_ceil(slots as u64);
    tiles as f64 * (slots * (value + size_of::<u16>()) + slots / 8 + size_of::<Tile>()) as f64
}

/// Bytes of A in DASP's blocks, but for padding, which only analysis can tell: 4 a row
/// for where y goes, and of medium rows, which most matrices have, 4 more.
pub fn dasp_bytes(a: &SparseMatrix, op: Operation) -> f64 {
    let (rows, cols, nnz) = a.shape();
    let (rows, _) = op.shape(rows, cols);
    nnz as f64 * (a.value_type().size() + 4) as f64 + rows as f64 * 8.0
}

/// Bytes of A in so many blocks with masks and 16-bit columns, in the size that takes
/// fewer.
pub fn mask_block_bytes(a: &SparseMatrix, counts: &Counts) -> f64 {
    let values = a.shape().2 as f64 * a.value_type().size() as f64;
    values + counts.index_bytes(counts.better_rows()) as f64
}

/// Bytes of the dense operands of `n` columns, each once.
pub fn dense_bytes(a: &SparseMatrix, op: Operation, n: i64, x: DataType, y: DataType) -> f64 {
    let (rows, cols, _) = a.shape();
    let (m, k) = op.shape(rows, cols);
    n as f64 * (k as f64 * x.size() as f64 + m as f64 * y.size() as f64)
}

/// Seconds of a product that must move this many bytes and do this many
/// multiply-adds: the slower of the two.
pub fn seconds(machine: &Machine, bytes: f64, products: f64) -> f64 {
    machine.call + (bytes / machine.bandwidth).max(products / machine.products)
}

/// Seconds of a sparse product with this many multiplications.
pub fn products_seconds(machine: &Machine, products: i64) -> f64 {
    machine.call + products as f64 * machine.sparse_product
}

//! Time from bytes: what a product must move, over the bandwidth that the
//! machine sustains, plus what a call costs at the least.

use super::{index_bytes, Source};
use crate::matrix::SparseMatrix;
use crate::types::{DataType, Operation};

/// Bytes a second that a CPU's memory sustains: what two threads of a current
/// server processor were measured to copy (`tarsia demo` prints what a machine
/// does). A constant, so that the choice is the same on every machine.
const HOST_BANDWIDTH: f64 = 2.4e10;

/// Multiply-adds a second of a product with dense operands whose rows come from
/// the caches: what two threads were measured to do, without wide vectors, in
/// fp64 on a matrix of finite elements.
const HOST_PRODUCTS: f64 = 1.0e10;

/// Seconds that a call takes with nothing to do: waking the thread pool.
const HOST_CALL: f64 = 5.0e-6;

/// Bytes of A that one product reads.
pub fn matrix_bytes(a: &SparseMatrix, op: Operation, source: Source) -> f64 {
    let (rows, cols, nnz) = a.shape();
    let (index, offset) = index_bytes(a, source);
    let (rows, _) = op.shape(rows, cols);
    nnz as f64 * (a.value_type().size() + index) as f64 + (rows + 1) as f64 * offset as f64
}

/// Bytes of the dense operands of `n` columns, each once.
pub fn dense_bytes(a: &SparseMatrix, op: Operation, n: i64, x: DataType, y: DataType) -> f64 {
    let (rows, cols, _) = a.shape();
    let (m, k) = op.shape(rows, cols);
    n as f64 * (k as f64 * x.size() as f64 + m as f64 * y.size() as f64)
}

/// Seconds of a product that must move this many bytes and do this many
/// multiply-adds: the slower of the two.
pub fn seconds(bytes: f64, products: f64) -> f64 {
    HOST_CALL + (bytes / HOST_BANDWIDTH).max(products / HOST_PRODUCTS)
}

/// Seconds of a sparse product with this many multiplications: each costs
/// about one random access to an accumulator.
pub fn products_seconds(products: i64) -> f64 {
    const SECONDS_PER_PRODUCT: f64 = 1.2e-9;
    HOST_CALL + products as f64 * SECONDS_PER_PRODUCT
}

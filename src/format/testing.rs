//! Matrices for tests of layouts and of products with them.

use std::ops::Range;
use std::sync::Arc;

use crate::matrix::compressed::Pattern;
use crate::memory::{Allocator, HostMemory};
use crate::types::{Address, Index};

/// Returns an allocator of host memory without a limit.
pub(crate) fn allocator() -> Arc<Allocator> {
    Allocator::new(Arc::new(HostMemory), Address::NULL, usize::MAX)
}

/// CSR arrays with base 0 or 1, unsorted and with duplicates.
pub(crate) struct TestRows<I, J> {
    pub cols: usize,
    pub base: i64,
    pub offsets: Vec<I>,
    pub columns: Vec<J>,
}

impl<I: Index, J: Index> TestRows<I, J> {
    /// Builds a matrix whose row i has `lengths[i]` entries at the columns that `column(i, k)` returns.
    pub fn new(
        base: i64,
        cols: usize,
        lengths: &[usize],
        mut column: impl FnMut(usize, usize) -> usize,
    ) -> Self {
        let mut rows = TestRows { cols, base, offsets: vec![I::from_i64(base)], columns: vec![] };
        for (row, &length) in lengths.iter().enumerate() {
            for entry in 0..length {
                let column = column(row, entry);
                assert!(column < cols);
                rows.columns.push(J::from_i64(column as i64 + base));
            }
            rows.offsets.push(I::from_i64(rows.columns.len() as i64 + base));
        }
        rows
    }

    /// Returns the number of rows.
    pub fn rows(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Returns the positions of a row's entries.
    pub fn row(&self, row: usize) -> Range<usize> {
        self.pattern().range(row)
    }

    /// Returns the pattern, as layouts take it.
    pub fn pattern(&self) -> Pattern<'_, I, J> {
        Pattern {
            major: self.rows(),
            minor: self.cols,
            base: self.base,
            offsets: &self.offsets,
            indices: &self.columns,
            by_columns: false,
        }
    }
}

/// CSR matrix whose row i has `lengths[i]` entries at the columns that `column(i, k)` returns, sorted.
#[derive(Clone)]
pub(crate) struct TestMatrix {
    pub cols: usize,
    pub base: i64,
    pub offsets: Vec<i64>,
    pub indices: Vec<i64>,
    pub values: Vec<f64>,
}

impl TestMatrix {
    pub(crate) fn new(
        base: i64,
        cols: usize,
        lengths: &[usize],
        column: impl Fn(usize, usize) -> usize,
    ) -> Self {
        let mut matrix = TestMatrix { cols, base, offsets: vec![base], indices: vec![], values: vec![] };
        for (row, &length) in lengths.iter().enumerate() {
            let mut columns: Vec<_> = (0..length).map(|entry| column(row, entry)).collect();
            columns.sort_unstable();
            assert!(columns.iter().all(|&column| column < cols));
            matrix.indices.extend(columns.iter().map(|&column| column as i64 + base));
            matrix.offsets.push(matrix.indices.len() as i64 + base);
        }
        matrix.values = (1..=matrix.indices.len()).map(|value| value as f64).collect();
        matrix
    }

    pub(crate) fn pattern(&self) -> Pattern<'_, i64, i64> {
        Pattern {
            major: self.offsets.len() - 1,
            minor: self.cols,
            base: self.base,
            offsets: &self.offsets,
            indices: &self.indices,
            by_columns: false,
        }
    }
}

//! Dense vectors and matrices: borrowed arrays with a leading dimension.

use super::{check_align, check_extent, check_not_negative, check_value_type};
use crate::error::{Error, Result};
use crate::types::{Address, DataType, Operation, Order};

/// Memory of lines of equal length at equal distances: a vector, or a matrix without its padding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lines {
    /// Start of the first line.
    pub address: Address,
    /// Number of bytes of a line.
    pub bytes: usize,
    /// Bytes from the start of one line to the start of the next.
    pub distance: usize,
    /// Number of lines.
    pub count: usize,
}

impl Lines {
    /// Creates one line of these bytes.
    #[inline]
    pub fn one(address: Address, bytes: usize) -> Self {
        Lines { address, bytes, distance: bytes, count: 1 }
    }

    /// Returns a normal form of the same memory: lines without gaps are one line, and the distance of a
    /// single line is its length.
    fn simplest(self) -> Self {
        match self {
            Lines { bytes: 0, .. } | Lines { count: 0, .. } => {
                Lines { bytes: 0, distance: 0, count: 0, ..self }
            }
            Lines { bytes, distance, count, .. } if bytes == distance => {
                Lines { bytes: bytes * count, distance: bytes * count, count: 1, ..self }
            }
            Lines { count: 1, bytes, .. } => Lines { distance: bytes, ..self },
            other => other,
        }
    }

    /// Returns the range from the first byte to behind the last one, gaps included.
    #[inline]
    fn extent(&self) -> std::ops::Range<usize> {
        let start = self.address.value();
        start..start + self.count.saturating_sub(1) * self.distance + self.bytes
    }

    /// Returns whether both are the same bytes in the same order.
    pub fn are(&self, other: &Lines) -> bool {
        self.simplest() == other.simplest()
    }

    /// Returns whether both have a byte in common. Takes constant time where the distances are equal or one
    /// of the two is a single line, else at most one step per line.
    #[inline]
    pub fn overlaps(&self, other: &Lines) -> bool {
        !self.are_far_from(other) && Self::share_lines(*self, *other)
    }

    /// Returns whether all of one, gaps included, lies before the other, as most memory does.
    #[inline]
    pub fn are_far_from(&self, other: &Lines) -> bool {
        let (a, b) = (self.extent(), other.extent());
        a.end <= b.start || b.end <= a.start
    }

    /// Returns whether both have a byte in common, where their extents have.
    #[inline(never)]
    fn share_lines(a: Lines, b: Lines) -> bool {
        let (a, b) = (a.simplest(), b.simplest());
        let (a_bytes, b_bytes) = (a.extent(), b.extent());
        if a.count == 0 || b.count == 0 || a_bytes.end <= b_bytes.start || b_bytes.end <= a_bytes.start {
            return false;
        }
        // Panels of one matrix, however many lines they have: all lines of the panel that begins later lie at
        // the same distance behind a line of the other.
        if a.distance == b.distance {
            let (low, high) = if a_bytes.start <= b_bytes.start { (&a, &b) } else { (&b, &a) };
            let shift = (high.address.value() - low.address.value()) % a.distance;
            return shift < low.bytes || shift + high.bytes > a.distance;
        }
        // Other distances: one line after the other, skipping those that end before the other's begins.
        // `next` returns the first line that ends behind an address.
        let next = |of: &Lines, at: usize| (at - of.address.value() - of.bytes) / of.distance + 1;
        let (mut i, mut j) = (0, 0);
        while i < a.count && j < b.count {
            let (a_start, b_start) = (a_bytes.start + i * a.distance, b_bytes.start + j * b.distance);
            if a_start + a.bytes <= b_start {
                i = next(&a, b_start);
            } else if b_start + b.bytes <= a_start {
                j = next(&b, a_start);
            } else {
                return true;
            }
        }
        false
    }
}

/// Dense vector descriptor.
#[derive(Clone, Copy, Debug)]
pub struct DenseVector {
    /// Number of elements.
    pub len: i64,
    /// Address of the first element.
    pub values: Address,
    /// Type of the elements.
    pub value_type: DataType,
    /// False if it was made from a const pointer.
    pub writable: bool,
}

impl DenseVector {
    /// Checks everything that can be checked without reading the array.
    pub fn check(&self) -> Result<()> {
        check_value_type("valueType", self.value_type)?;
        check_not_negative("size", self.len)?;
        check_extent("size", self.len, self.value_type.size())?;
        check_align("values", self.values, self.value_type.align())
    }

    /// Returns the memory of its elements.
    #[inline]
    pub fn lines(&self) -> Lines {
        Lines::one(self.values, self.len as usize * self.value_type.size())
    }
}

/// Dense matrix descriptor.
#[derive(Clone, Copy, Debug)]
pub struct DenseMatrix {
    /// Number of rows.
    pub rows: i64,
    /// Number of columns.
    pub cols: i64,
    /// Leading dimension: elements from one column (column-major) or row (row-major) to the next.
    pub ld: i64,
    /// Address of the first element.
    pub values: Address,
    /// Type of the elements.
    pub value_type: DataType,
    /// Storage order.
    pub order: Order,
    /// False if it was made from a const pointer.
    pub writable: bool,
}

impl DenseMatrix {
    /// Checks everything that can be checked without reading the array.
    pub fn check(&self) -> Result<()> {
        check_value_type("valueType", self.value_type)?;
        check_not_negative("rows", self.rows)?;
        check_not_negative("cols", self.cols)?;
        let (inner, outer) = self.lengths();
        let name = if self.order == Order::Col { "rows" } else { "cols" };
        if self.ld < inner.max(1) {
            return Err(Error::invalid(
                "ld",
                format!("{} is less than max(1, {name}) = {}", self.ld, inner.max(1)),
            ));
        }
        let elements = self.ld.checked_mul(outer).unwrap_or(i64::MAX);
        check_extent("ld", elements, self.value_type.size())?;
        check_align("values", self.values, self.value_type.align())
    }

    /// Returns the number of elements of a line (a column, or in row-major order a row), and the number of
    /// lines.
    #[inline]
    fn lengths(&self) -> (i64, i64) {
        match self.order {
            Order::Col => (self.rows, self.cols),
            Order::Row => (self.cols, self.rows),
        }
    }

    /// Returns the number of elements from the first to the last, padding between them included.
    #[inline]
    pub fn extent(&self) -> usize {
        let (inner, outer) = self.lengths();
        if inner == 0 || outer == 0 {
            return 0;
        }
        ((outer - 1) * self.ld + inner) as usize
    }

    /// Returns op of this matrix as a matrix of the swapped order in the same memory. Conjugation is left to
    /// the reader.
    pub fn transposed(self, op: Operation) -> DenseMatrix {
        if !op.transposes() {
            return self;
        }
        let order = match self.order {
            Order::Col => Order::Row,
            Order::Row => Order::Col,
        };
        DenseMatrix { rows: self.cols, cols: self.rows, order, ..self }
    }

    /// Returns (elements between rows, elements between columns).
    pub fn strides(&self) -> (usize, usize) {
        match self.order {
            Order::Col => (1, self.ld as usize),
            Order::Row => (self.ld as usize, 1),
        }
    }

    /// Returns the memory of its lines, without the gaps between them.
    #[inline]
    pub fn lines(&self) -> Lines {
        let size = self.value_type.size();
        let (inner, outer) = self.lengths();
        let (bytes, distance) = (inner as usize * size, self.ld as usize * size);
        Lines { address: self.values, bytes, distance, count: outer as usize }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn panel(address: usize, rows: i64, cols: i64, ld: i64, order: Order) -> DenseMatrix {
        let values = Address::new(std::ptr::without_provenance::<u8>(address));
        DenseMatrix { rows, cols, ld, values, value_type: DataType::R64F, order, writable: true }
    }

    fn overlap(a: &DenseMatrix, b: &DenseMatrix) -> bool {
        let found = a.lines().overlaps(&b.lines());
        assert_eq!(found, b.lines().overlaps(&a.lines()), "{a:?} {b:?}");
        found
    }

    #[test]
    fn panels_of_one_matrix_do_not_overlap() {
        // Row-major 4 × 10: columns 0..4 and 4..10.
        let left = panel(0x1000, 4, 4, 10, Order::Row);
        let right = panel(0x1000 + 32, 4, 6, 10, Order::Row);
        assert!(!overlap(&left, &right));
        let wide = panel(0x1000 + 24, 4, 6, 10, Order::Row);
        assert!(overlap(&left, &wide));
        assert!(overlap(&left, &left));
        // Columns of 4 elements with the same distance are the same memory as rows of 4.
        assert!(overlap(&left, &panel(0x1000, 4, 4, 10, Order::Col)));
        assert!(!overlap(&left, &panel(0x1000, 0, 4, 10, Order::Col)));
    }

    /// Tests all pairs of small matrices against a comparison of their elements one by one.
    #[test]
    fn matrices_overlap_where_they_share_an_element() {
        let elements = |m: &DenseMatrix| {
            let (row, col) = m.strides();
            let start = m.values.value();
            let at = move |i: i64, j: i64| start + 8 * (i as usize * row + j as usize * col);
            let all: std::collections::BTreeSet<usize> =
                (0..m.rows).flat_map(|i| (0..m.cols).map(move |j| at(i, j))).collect();
            all
        };
        let mut all = Vec::new();
        for (at, ld) in [(0, 3), (1, 3), (2, 5), (7, 5), (9, 4), (16, 3), (3, 12), (30, 3)] {
            for (rows, cols) in [(0, 2), (1, 1), (1, 4), (3, 1), (2, 3), (3, 5)] {
                all.extend([Order::Row, Order::Col].into_iter().filter_map(|order| {
                    let inner = if order == Order::Row { cols } else { rows };
                    (ld >= inner).then(|| panel(0x1000 + 8 * at, rows, cols, ld, order))
                }));
            }
        }
        let (mut shared, mut apart) = (0, 0);
        for a in &all {
            for b in &all {
                let expected = !elements(a).is_disjoint(&elements(b));
                assert_eq!(overlap(a, b), expected, "{a:?} {b:?}");
                *if expected { &mut shared } else { &mut apart } += 1;
            }
        }
        assert!(shared > 500 && apart > 500, "{shared} {apart}");
    }

    /// Lines are skipped by arithmetic, not one by one.
    #[test]
    fn many_lines_take_no_time() {
        let many = panel(0x1000, 1, 1 << 40, 2, Order::Col);
        assert!(overlap(&many, &panel(0x1000 + (1 << 42), 1, 1, 1, Order::Row)));
        assert!(!overlap(&many, &panel(0x1000 + (1 << 42) + 8, 1, 1, 1, Order::Row)));
        // Panels of one matrix.
        assert!(!overlap(&many, &panel(0x1000 + 8, 1, 1 << 40, 2, Order::Col)));
        assert!(overlap(&many, &panel(0x1000 + (1 << 42), 1, 1 << 40, 2, Order::Col)));
    }

    #[test]
    fn transposing_swaps_shape_and_order() {
        let m = panel(0x1000, 3, 5, 7, Order::Col).transposed(Operation::Transpose);
        assert_eq!((m.rows, m.cols, m.order, m.strides()), (5, 3, Order::Row, (7, 1)));
        assert_eq!(m.extent(), 4 * 7 + 3);
    }
}

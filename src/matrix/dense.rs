//! Dense vectors and matrices: borrowed arrays with a leading dimension.

use super::{check_align, check_extent, check_value_type};
use crate::error::{Error, Result};
use crate::types::{Address, DataType, Operation, Order};

/// Memory of lines of equal length at equal distances: a vector, or a matrix without its padding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lines {
    /// Where the first begins.
    pub address: Address,
    /// Bytes of a line.
    pub bytes: usize,
    /// Bytes from the start of one to the start of the next.
    pub distance: usize,
    /// How many.
    pub count: usize,
}

/// A dense vector descriptor.
#[derive(Clone, Copy, Debug)]
pub struct DenseVector {
    /// Elements.
    pub len: i64,
    /// Their address.
    pub values: Address,
    /// Their type.
    pub value_type: DataType,
    /// False if it was made from a const pointer.
    pub writable: bool,
}

impl DenseVector {
    /// Checks everything that can be checked without reading the array.
    pub fn check(&self) -> Result<()> {
        check_value_type("valueType", self.value_type)?;
        if self.len < 0 {
            return Err(Error::invalid("size", format!("{} is negative", self.len)));
        }
        check_extent("size", self.len, self.value_type.size())?;
        check_align("values", self.values, self.value_type.align())
    }

    fn bytes(&self) -> std::ops::Range<usize> {
        let start = self.values.value();
        start..start + self.len as usize * self.value_type.size()
    }

    /// Its memory.
    pub fn lines(&self) -> Lines {
        let bytes = self.bytes().len();
        Lines { address: self.values, bytes, distance: bytes, count: 1 }
    }

    /// Whether two vectors share memory.
    pub fn overlaps(&self, other: &DenseVector) -> bool {
        intersect(&self.bytes(), &other.bytes())
    }
}

/// A dense matrix descriptor.
#[derive(Clone, Copy, Debug)]
pub struct DenseMatrix {
    /// Rows.
    pub rows: i64,
    /// Columns.
    pub cols: i64,
    /// Elements between two columns (column-major) or rows (row-major).
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
        for (name, n) in [("rows", self.rows), ("cols", self.cols)] {
            if n < 0 {
                return Err(Error::invalid(name, format!("{n} is negative")));
            }
        }
        let (inner, outer, name) = match self.order {
            Order::Col => (self.rows, self.cols, "rows"),
            Order::Row => (self.cols, self.rows, "cols"),
        };
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

    /// Elements from the first to the last, padding between them included.
    pub fn extent(&self) -> usize {
        let (inner, outer) = match self.order {
            Order::Col => (self.rows, self.cols),
            Order::Row => (self.cols, self.rows),
        };
        if inner == 0 || outer == 0 {
            return 0;
        }
        ((outer - 1) * self.ld + inner) as usize
    }

    /// op of this matrix as one of the swapped order: the same memory.
    /// Conjugation is the reader's work.
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

    /// (elements between rows, elements between columns).
    pub fn strides(&self) -> (usize, usize) {
        match self.order {
            Order::Col => (1, self.ld as usize),
            Order::Row => (self.ld as usize, 1),
        }
    }

    fn bytes(&self) -> std::ops::Range<usize> {
        let start = self.values.value();
        start..start + self.extent() * self.value_type.size()
    }

    /// Its memory.
    pub fn lines(&self) -> Lines {
        let size = self.value_type.size();
        let (inner, outer) = match self.order {
            Order::Col => (self.rows, self.cols),
            Order::Row => (self.cols, self.rows),
        };
        let (bytes, distance) = (inner as usize * size, self.ld as usize * size);
        Lines { address: self.values, bytes, distance, count: outer as usize }
    }

    /// Whether two matrices share an element. Panels of one larger matrix
    /// (same order, ld and type, disjoint rows or columns) do not.
    pub fn overlaps(&self, other: &DenseMatrix) -> bool {
        if !intersect(&self.bytes(), &other.bytes()) {
            return false;
        }
        if self.order != other.order || self.ld != other.ld || self.value_type != other.value_type {
            return true;
        }
        let size = self.value_type.size();
        let (low, high) = if self.values <= other.values { (self, other) } else { (other, self) };
        let distance = high.values.value() - low.values.value();
        if distance % size != 0 {
            return true;
        }
        let inner = |m: &DenseMatrix| if m.order == Order::Col { m.rows } else { m.cols };
        // Inside one stride of ld the lower panel takes [0, inner) and the
        // higher one starts at `shift`; it must end before the next stride.
        let shift = (distance / size) as i64 % self.ld;
        !(shift >= inner(low) && shift + inner(high) <= self.ld)
    }
}

fn intersect(a: &std::ops::Range<usize>, b: &std::ops::Range<usize>) -> bool {
    !a.is_empty() && !b.is_empty() && a.start < b.end && b.start < a.end
}

#[cfg(test)]
mod tests {
    use super::*;

    fn panel(address: usize, rows: i64, cols: i64, ld: i64, order: Order) -> DenseMatrix {
        let values = Address::new(std::ptr::without_provenance::<u8>(address));
        DenseMatrix { rows, cols, ld, values, value_type: DataType::R64F, order, writable: true }
    }

    #[test]
    fn panels_of_one_matrix_do_not_overlap() {
        // Row-major 4 × 10: columns 0..4 and 4..10.
        let left = panel(0x1000, 4, 4, 10, Order::Row);
        let right = panel(0x1000 + 32, 4, 6, 10, Order::Row);
        assert!(!left.overlaps(&right) && !right.overlaps(&left));
        let wide = panel(0x1000 + 24, 4, 6, 10, Order::Row);
        assert!(left.overlaps(&wide) && wide.overlaps(&left));
        assert!(left.overlaps(&left));
        // The same memory in another order is shared.
        assert!(left.overlaps(&panel(0x1000 + 32, 4, 6, 10, Order::Col)));
    }

    #[test]
    fn transposing_swaps_shape_and_order() {
        let m = panel(0x1000, 3, 5, 7, Order::Col).transposed(Operation::Transpose);
        assert_eq!((m.rows, m.cols, m.order, m.strides()), (5, 3, Order::Row, (7, 1)));
        assert_eq!(m.extent(), 4 * 7 + 3);
    }
}

//! Schema of the file of cases, which `tests/data/README.md` describes.

use client::DenseLayout;
use serde::Deserialize;
use tarsia::facade::{Format, IndexBase, Operation, Order, Types};

use crate::common::dense::{Dense, Guarded};
use crate::common::number::{Numbers, Value, Wide};
use crate::common::pattern::{Ints, Pattern, Style, Widths};

#[derive(Deserialize)]
pub struct File {
    pub cases: Vec<Case>,
}

#[derive(Deserialize)]
pub struct Case {
    pub name: String,
    #[serde(rename = "type")]
    type_name: String,
    op_a: String,
    alpha: Vec<f64>,
    beta: Vec<f64>,
    #[serde(flatten)]
    pub a: Sparse,
    #[serde(flatten)]
    pub product: OracleProduct,
}

/// Operation of a case, with the other operands and the expected result.
#[derive(Deserialize)]
#[serde(tag = "op", rename_all = "lowercase")]
pub enum OracleProduct {
    Spmv { x: Vec<f64>, y: Vec<f64>, expected: Vec<f64> },
    Spmm { op_b: String, b: DenseMatrix, c: DenseMatrix, expected: Vec<f64> },
    Spgemm { op_b: String, b: Sparse, expected: SparseResult },
}

#[derive(Deserialize)]
pub struct Sparse {
    format: String,
    base: i32,
    rows: usize,
    cols: usize,
    offsets: Option<Vec<i64>>,
    indices: Option<Vec<i64>>,
    row: Option<Vec<i64>>,
    col: Option<Vec<i64>>,
    block_rows: Option<usize>,
    block_cols: Option<usize>,
    block_order: Option<String>,
    pub values: Vec<f64>,
}

#[derive(Deserialize)]
pub struct DenseMatrix {
    rows: usize,
    cols: usize,
    order: String,
    ld: usize,
    values: Vec<f64>,
}

/// Sparse result: CSR, base 0, sorted, without duplicates.
#[derive(Deserialize)]
pub struct SparseResult {
    pub rows: usize,
    pub cols: usize,
    offsets: Vec<usize>,
    indices: Vec<usize>,
    pub values: Vec<f64>,
}

/// Returns the operation with the name N, T or C.
pub fn operation(name: &str) -> Operation {
    match name {
        "N" => Operation::NonTranspose,
        "T" => Operation::Transpose,
        "C" => Operation::ConjugateTranspose,
        other => panic!("operation {other}"),
    }
}

fn order(name: &str) -> Order {
    match name {
        "row" => Order::Row,
        "col" => Order::Col,
        other => panic!("order {other}"),
    }
}

/// Reads the numbers of a flat array: re, im, re, im if they are complex.
pub fn wide<V: Value>(flat: &[f64]) -> Vec<V::Wide> {
    let width = if V::TYPE.is_complex() { 2 } else { 1 };
    flat.chunks_exact(width).map(|parts| V::Wide::new(parts[0], parts[width - 1])).collect()
}

/// Reads the inputs of a flat array, which are exact in the precision of the case.
pub fn stored<V: Value>(flat: &[f64]) -> Vec<V> {
    let store = |number: V::Wide| {
        let value = V::narrow(number);
        assert_eq!(value.widen(), number, "an input is not a {}", V::TYPE.short());
        value
    };
    wide::<V>(flat).into_iter().map(store).collect()
}

impl Case {
    pub fn types(&self) -> Types {
        match &self.type_name[..] {
            "r64" => <crate::common::number::F64 as Numbers>::TYPES,
            "r32" => <crate::common::number::F32 as Numbers>::TYPES,
            "c64" => <crate::common::number::C64 as Numbers>::TYPES,
            "c32" => <crate::common::number::C32 as Numbers>::TYPES,
            other => panic!("type {other}"),
        }
    }

    pub fn op(&self) -> Operation {
        operation(&self.op_a)
    }

    /// Returns (alpha, beta).
    pub fn scalars<S: Value>(&self) -> (S, S) {
        (stored(&self.alpha)[0], stored(&self.beta)[0])
    }
}

impl Sparse {
    pub fn pattern(&self, widths: Widths) -> Pattern {
        let format = match &self.format[..] {
            "csr" => Format::Csr,
            "csc" => Format::Csc,
            "coo" => Format::Coo,
            "bsr" => Format::Bsr,
            other => panic!("format {other}"),
        };
        let (outer, outer_width, inner) = match format {
            Format::Coo => (&self.row, widths.index(), &self.col),
            _ => (&self.offsets, widths.offset(), &self.indices),
        };
        let numbers = |array: &Option<Vec<i64>>| array.clone().expect("the arrays of the format");
        let style = Style {
            format,
            widths,
            base: IndexBase::from_code(self.base).expect("base 0 or 1"),
            block: (self.block_rows.unwrap_or(1), self.block_cols.unwrap_or(1)),
            block_order: self.block_order.as_deref().map_or(Order::Row, order),
        };
        Pattern {
            style,
            rows: self.rows,
            cols: self.cols,
            outer: Ints::new(outer_width, numbers(outer)),
            inner: Ints::new(widths.index(), numbers(inner)),
        }
    }
}

impl DenseMatrix {
    pub fn load<V: Value>(&self) -> Dense<V> {
        let (rows, cols, ld) = (self.rows as i64, self.cols as i64, self.ld as i64);
        let shape = DenseLayout { rows, cols, ld, order: order(&self.order) };
        Dense { shape, values: Guarded::new(&stored(&self.values), 1) }
    }
}

impl SparseResult {
    /// Returns (row, column) of every value.
    pub fn places(&self) -> Vec<(usize, usize)> {
        let row = |i: usize| self.indices[self.offsets[i]..self.offsets[i + 1]].iter().map(move |&j| (i, j));
        (0..self.rows).flat_map(row).collect()
    }
}

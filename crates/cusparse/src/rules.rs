//! Table of rules by which products that Tarsia could compute are forwarded, because cuSPARSE is known to be
//! faster. `TARSIA_CUSPARSE=force` overrides the rules.
//!
//! Each rule comes from a measurement on a device, which its `why` names. A rule sees the contents of a
//! call's descriptors, but neither arrays nor pointers.

use tarsia::facade::direct::{Compressed, SparseArrays, SparseMatrix};
use tarsia::facade::{DataType, IndexType, Operation, Order, Types};

/// Width and storage orders of the dense matrices of an SpMM.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Dense {
    /// Number of columns of C.
    pub columns: i64,
    /// True if op(B) is stored by rows: B by rows and not transposed, or by columns and transposed.
    pub b_by_rows: bool,
    /// True if C is stored by rows.
    pub c_by_rows: bool,
}

impl Dense {
    /// Creates the description for `columns` columns of C, the operation and order of B, and the order of C.
    pub fn new(columns: i64, (op_b, b_order): (Operation, Order), c_order: Order) -> Self {
        let is_transposed = op_b != Operation::NonTranspose;
        Dense {
            columns,
            b_by_rows: (b_order == Order::Row) != is_transposed,
            c_by_rows: c_order == Order::Row,
        }
    }
}

/// Properties of a product that rules use. The size of its buffer depends on nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Shape {
    /// Number of rows of op(A).
    pub rows: i64,
    /// Number of columns of op(A).
    pub cols: i64,
    /// Number of stored entries of A.
    pub nnz: i64,
    /// Types of the offsets and of the indices of A.
    pub indices: [IndexType; 2],
    /// Types of A, of x or B, of y or C, and of the sums.
    pub types: Types,
    /// Dense matrices of an SpMM; `None` for SpMV.
    pub dense: Option<Dense>,
}

impl Shape {
    /// Creates the shape of a product with a matrix whose rows of op(A) are contiguous; `None` if its format
    /// is neither CSR nor CSC.
    pub fn new(a: &SparseMatrix, types: Types, dense: Option<Dense>) -> Option<Self> {
        let (SparseArrays::Csr(m) | SparseArrays::Csc(m)) = &a.arrays else { return None };
        let &Compressed { major: rows, minor: cols, nnz, offset_type, index_type, .. } = m;
        Some(Shape { rows, cols, nnz, indices: [offset_type, index_type], types, dense })
    }

    /// Returns whether there is a kernel without lists of rows for so many columns of fp32 or fp64 by rows, and the library takes
    /// it if they are aligned to 16 bytes (src/select/spmm/merge.rs).
    fn has_kernel_without_lists(&self, columns: i64) -> bool {
        let (a, x, y) = (self.types.a, self.types.x, self.types.y);
        let bytes = columns.saturating_mul(x.size() as i64);
        let has_types = matches!(x, DataType::R32F | DataType::R64F) && (a, y) == (x, x);
        let is_short = self.nnz < 4 * self.rows && bytes >= 256;
        has_types
            && columns > 4
            && bytes >= 32
            && bytes % 16 == 0
            && self.nnz <= 1024 * self.rows
            && !is_short
    }

    /// Returns whether the types are those with which kernels that read and write columns of B and C where they are
    /// (src/select/spmm/merge.rs) were timed.
    fn has_timed_columns(&self) -> bool {
        let (a, x, y) = (self.types.a, self.types.x, self.types.y);
        (a, y) == (x, x) && matches!(x, DataType::R16F | DataType::R32F | DataType::R64F)
    }

    /// Returns the shape as text, such as
    /// `1000 × 900, 12345 entries, N = 32, op(B) by columns, C by rows, A fp32, …`.
    pub fn describe(&self) -> String {
        let by = |by_rows: bool| if by_rows { "rows" } else { "columns" };
        let dense = self.dense.map_or(String::new(), |dense| {
            let (b, c) = (by(dense.b_by_rows), by(dense.c_by_rows));
            format!(", N = {}, op(B) by {b}, C by {c}", dense.columns)
        });
        format!("{} × {}, {} entries{dense}, {}", self.rows, self.cols, self.nnz, self.types.describe())
    }
}

/// Flag that is true if the program has had cuSPARSE preprocess A.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Preprocessed(pub bool);

/// Rule by which a product is forwarded: a condition under which cuSPARSE is faster.
struct Rule {
    /// Returns whether a product meets the condition.
    is_met: fn(&Shape, Preprocessed) -> bool,
    /// Measurement on which the rule is based.
    why: &'static str,
}

/// Number of entries up to which the library takes kernels for 2 to 7 columns where they are (src/select/spmm/merge.rs).
const MOST_OF_NARROW: i64 = 1 << 20;

/// All rules, in the order in which they are tried.
const RULES: &[Rule] = &[
    Rule {
        is_met: |shape, preprocessed| shape.dense.is_none() && preprocessed.0,
        why: "SpMV after preprocess: 0.97 (fp64), 0.89 (fp32), 1.00 (fp16) of cuSPARSE's speed in the mean, H100",
    },
    Rule {
        is_met: |shape, _| {
            let is_slower = |dense: Dense| match (dense.b_by_rows, dense.c_by_rows) {
                (true, true) => !shape.has_kernel_without_lists(dense.columns),
                (false, false) if shape.has_timed_columns() => !matches!(dense.columns, 9..=32 | 128..),
                _ => dense.columns < 128,
            };
            shape.nnz <= 100_000 && shape.dense.is_some_and(is_slower)
        },
        why: "SpMM with up to 100,000 entries, by columns with N < 128 (where both are, not with N from 9 to 32 in fp16, fp32 \
              and fp64) or without a kernel for aligned rows: 0.5 to 0.9 on most of them, H100 and H200 \
              (docs/algorithms/row.md, Without a plan, Without lists and Few entries by columns)",
    },
    Rule {
        is_met: |shape, _| {
            let is_slower = |dense: Dense| match dense.columns {
                _ if dense.b_by_rows || dense.c_by_rows => false,
                2..=7 => !shape.has_timed_columns() || shape.nnz > MOST_OF_NARROW,
                8 => !shape.has_timed_columns(),
                columns => columns <= 8,
            };
            shape.dense.is_some_and(is_slower)
        },
        why: "SpMM by columns with N = 1, with N = 2 to 7 and more than 2^20 entries, or with N up to 8 and types whose \
              kernels were not timed: fp32 with N = 2 0.8 on the one such matrix, H200 (docs/algorithms/row.md, \
              Few entries by columns)",
    },
];

/// Returns the `why` of the first rule that a product meets; `None` if it meets none.
pub fn slower(shape: &Shape, preprocessed: Preprocessed) -> Option<&'static str> {
    RULES.iter().find(|rule| (rule.is_met)(shape, preprocessed)).map(|rule| rule.why)
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use tarsia::facade::ComputeType;

    /// Shape of an SpMV that no rule forwards.
    pub fn shape() -> Shape {
        let real = DataType::R64F;
        Shape {
            rows: 1 << 20,
            cols: 1 << 20,
            nnz: 7 << 20,
            indices: [IndexType::I32; 2],
            types: Types { a: real, x: real, y: real, compute: ComputeType::R64F },
            dense: None,
        }
    }

    const PLAIN: Preprocessed = Preprocessed(false);
    const BY_COLUMNS: Dense = Dense { columns: 32, b_by_rows: false, c_by_rows: false };

    #[test]
    fn what_no_rule_names_is_taken() {
        for dense in [None, Some(BY_COLUMNS), Some(Dense { columns: 1, b_by_rows: true, c_by_rows: true })] {
            assert_eq!(slower(&Shape { dense, ..shape() }, PLAIN), None);
        }
        // The rule for few entries is for SpMM alone.
        assert_eq!(slower(&Shape { nnz: 10, ..shape() }, PLAIN), None);
    }

    #[test]
    fn rules_hold_up_to_their_limits() {
        let why = |shape: Shape| slower(&shape, PLAIN).unwrap_or_default();
        assert!(slower(&shape(), Preprocessed(true))
            .unwrap_or_default()
            .starts_with("SpMV after preprocess"));
        let dense = Some(BY_COLUMNS);
        let few = |dense| why(Shape { nnz: 100_000, dense: Some(dense), ..shape() });
        let by_columns = |columns| Dense { columns, ..BY_COLUMNS };
        assert_eq!([9, 32, 128].map(|columns| few(by_columns(columns))), [""; 3]);
        assert!([1, 2, 4, 8, 33, 127]
            .iter()
            .all(|&columns| few(by_columns(columns)).contains("100,000 entries")));
        let complex = Types { x: DataType::C64F, a: DataType::C64F, y: DataType::C64F, ..shape().types };
        assert!(why(Shape { nnz: 100_000, dense, types: complex, ..shape() }).contains("100,000 entries"));
        assert_eq!(why(Shape { nnz: 100_001, dense, ..shape() }), "");
        let by_rows = |columns| Dense { columns, b_by_rows: true, c_by_rows: true };
        let medium = |dense| why(Shape { rows: 10_000, nnz: 100_000, dense: Some(dense), ..shape() });
        assert_eq!([6, 8, 32, 128].map(|columns| medium(by_rows(columns))), [""; 4]);
        assert!([1, 4, 5, 33].iter().all(|&columns| medium(by_rows(columns)).contains("100,000 entries")));
        assert!(medium(Dense { c_by_rows: false, ..by_rows(127) }).contains("by columns"));
        assert_eq!(medium(Dense { columns: 128, ..BY_COLUMNS }), "");
        // Rows of 2.5 entries in the mean, and of 1,100.
        assert!(why(Shape { rows: 40_000, nnz: 100_000, dense: Some(by_rows(32)), ..shape() })
            .contains("entries"));
        assert!(why(Shape { rows: 90, nnz: 99_000, dense: Some(by_rows(32)), ..shape() }).contains("entries"));
        let half =
            Types { a: DataType::R16F, x: DataType::R16F, y: DataType::R16F, compute: ComputeType::R32F };
        let dense = Some(by_rows(32));
        assert!(why(Shape { rows: 10_000, nnz: 100_000, dense, types: half, ..shape() }).contains("entries"));
        let narrow = |columns, types| Shape { dense: Some(by_columns(columns)), types, ..shape() };
        for types in [shape().types, half] {
            let few = |columns| why(Shape { nnz: 1 << 20, ..narrow(columns, types) });
            assert_eq!([2, 4, 7, 8].map(few), [""; 4]);
            assert!(few(1).contains("N = 1"));
            assert_eq!(why(narrow(8, types)), "");
            assert!([2, 4, 7].iter().all(|&columns| why(narrow(columns, types)).contains("2^20 entries")));
        }
        assert!([1, 4, 8].iter().all(|&columns| why(narrow(columns, complex)).contains("N = 1")));
        assert_eq!(why(narrow(9, complex)), "");
    }

    #[test]
    fn rules_say_where_they_are_from() {
        assert!(RULES
            .iter()
            .all(|rule| (rule.why.contains("H100") || rule.why.contains("H200")) && rule.why.is_ascii()));
    }

    #[test]
    fn a_transposed_b_lies_the_other_way_round() {
        use Operation::{NonTranspose, Transpose};
        for (op, order, by_rows) in [
            (NonTranspose, Order::Row, true),
            (NonTranspose, Order::Col, false),
            (Transpose, Order::Row, false),
            (Transpose, Order::Col, true),
        ] {
            assert_eq!(Dense::new(3, (op, order), Order::Col).b_by_rows, by_rows, "{op:?} {order:?}");
        }
    }
}

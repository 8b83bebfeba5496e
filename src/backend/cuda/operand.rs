//! Sparse operand as kernels read it: rows of op(A), from the user's arrays or from a canonical copy on the
//! device.

use super::check::{self, PatternReport};
use super::convert::{DeviceCsr, Origins};
use super::device::DeviceCall;
use super::memory::Fill;
use crate::backend::LayoutInfo;
use crate::error::Result;
use crate::matrix::{Compressed, SparseArrays, SparseMatrix};
use crate::select::Source;
use crate::types::{Address, IndexType, LayoutKind, Operation};

/// Rows of a sparse matrix on the device, in CSR.
#[derive(Clone, Copy, Debug)]
pub struct Rows {
    /// Address of `rows` + 1 row offsets, of `offset_type`, counted from `base`.
    pub offsets: Address,
    /// Address of `nnz` column indices, of `index_type`, counted from `base`.
    pub indices: Address,
    /// Address of `nnz` values.
    pub values: Address,
    /// Type of the row offsets.
    pub offset_type: IndexType,
    /// Type of the column indices.
    pub index_type: IndexType,
    /// Index base: number of the first row and column, 0 or 1.
    pub base: i64,
    /// Number of rows of op(A).
    pub rows: i64,
    /// Number of columns of op(A).
    pub cols: i64,
    /// Number of stored entries.
    pub nnz: i64,
}

impl Rows {
    /// Rows of op(A), where they are the compressed dimension of these arrays.
    pub fn of(m: &Compressed) -> Self {
        Rows {
            offsets: m.offsets,
            indices: m.indices,
            values: m.values,
            offset_type: m.offset_type,
            index_type: m.index_type,
            base: i64::from(m.base.code()),
            rows: m.major,
            cols: m.minor,
            nnz: m.nnz,
        }
    }

    /// Types of row offsets and column indices, as a combination that kernels are compiled for.
    pub fn widths(&self) -> Widths {
        match (self.offset_type, self.index_type) {
            (IndexType::I32, _) => Widths::NARROW,
            (_, IndexType::I64) => Widths::WIDE,
            _ => Widths::WIDE_OFFSETS,
        }
    }
}

/// Combination of types of row offsets and column indices that kernels are compiled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Widths {
    pub offsets: IndexType,
    pub columns: IndexType,
}

impl Widths {
    pub const NARROW: Widths = Widths { offsets: IndexType::I32, columns: IndexType::I32 };
    pub const WIDE_OFFSETS: Widths = Widths { offsets: IndexType::I64, columns: IndexType::I32 };
    pub const WIDE: Widths = Widths { offsets: IndexType::I64, columns: IndexType::I64 };
}

/// Statistics of the lengths of op(A)'s rows, by which executors choose their launches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RowStats {
    /// Number of rows.
    pub rows: i64,
    /// Number of stored entries.
    pub nnz: i64,
    /// Entries of the longest row.
    pub max: i64,
    /// Number of rows without entries.
    pub empty: i64,
    /// Number of rows longer than each of [`RowStats::LENGTHS`].
    pub longer: [i64; RowStats::LENGTHS.len()],
}

impl RowStats {
    /// Lengths that bound the classes of rows: short (as in DASP), warp-sized and block-sized.
    /// kernels/analysis/check.cu has the same numbers.
    pub const LENGTHS: [i64; 4] = [4, 32, 256, 2048];

    /// Mean length of a row; 0 for a matrix without rows.
    pub fn mean(&self) -> f64 {
        if self.rows == 0 {
            0.0
        } else {
            self.nnz as f64 / self.rows as f64
        }
    }
}

/// Sparse operand of a plan. A plan has one or two, so the size of the enum does not matter.
#[derive(Debug)]
#[allow(clippy::large_enum_variant)]
pub enum Operand {
    /// The user's arrays, where rows of op(A) are their compressed dimension.
    InPlace(Compressed),
    /// A canonical copy on the device.
    Canonical(DeviceCsr),
}

impl Operand {
    /// Validates the pattern and takes the matrix as `source` says; errors name the argument `name`. Blocks.
    /// The context must be current, A's arrays readable by the device, and all that can be checked without
    /// reading them already checked by the plan.
    pub fn build(
        cx: &DeviceCall<'_>,
        a: &SparseMatrix,
        op: Operation,
        source: Source,
        name: &str,
        value_updates: bool,
    ) -> Result<(Operand, RowStats)> {
        let report = check::inspect(cx, a, op, name)?;
        Operand::inspected(cx, a, op, source, value_updates, &report)
    }

    /// Takes the matrix as `source` says after its pattern has been inspected.
    pub fn inspected(
        cx: &DeviceCall<'_>,
        a: &SparseMatrix,
        op: Operation,
        source: Source,
        value_updates: bool,
        report: &PatternReport,
    ) -> Result<(Operand, RowStats)> {
        match (source, &a.arrays) {
            (Source::InPlace, SparseArrays::Csr(m) | SparseArrays::Csc(m)) => {
                Ok((Operand::InPlace(*m), report.major))
            }
            _ => {
                let copy = DeviceCsr::build(cx, a, op, report, value_updates)?;
                let stats = match (&a.arrays, op.transposes()) {
                    // The rows of the user's offsets have the same lengths.
                    (SparseArrays::Csr(_), false) | (SparseArrays::Csc(_), true) => report.major,
                    _ => check::row_stats(cx, &copy.rows())?,
                };
                Ok((Operand::Canonical(copy), stats))
            }
        }
    }

    /// Rows of op(A), with the addresses of their arrays.
    pub fn rows(&self) -> Rows {
        match self {
            Operand::InPlace(m) => Rows::of(m),
            Operand::Canonical(copy) => copy.rows(),
        }
    }

    /// Takes new values from `values`, which becomes the value array of the matrix `a`. If this fails, `a` is
    /// unchanged and the call can be repeated; errors name the argument `name`. Asynchronous and capturable
    /// where positions were kept (`value_updates`) or are not needed; otherwise it blocks. Addresses in
    /// [`Operand::rows`] stay the same, except that of the values of a matrix in place.
    pub fn update_values(
        &mut self,
        cx: &DeviceCall<'_>,
        (a, op): (&mut SparseMatrix, Operation),
        values: Address,
        name: &str,
    ) -> Result<()> {
        let renewed = a.with_values(values);
        match self {
            Operand::InPlace(m) => m.values = values,
            Operand::Canonical(copy) => {
                if !copy.refill(cx, values)? {
                    copy.rebuild(cx, &renewed, op, &check::inspect(cx, &renewed, op, name)?)?;
                }
            }
        }
        *a = renewed;
        Ok(())
    }

    /// Description of the operand as a layout.
    pub fn layout(&self) -> LayoutInfo {
        LayoutInfo { kind: LayoutKind::Csr, in_place: matches!(self, Operand::InPlace(_)), fill: 1.0 }
    }

    /// Returns what a layout of these rows needs to take new values later, if values will be updated.
    pub fn origins(&self, value_updates: bool) -> Origins<'_> {
        value_updates.then_some(match self {
            Operand::InPlace(_) => None,
            Operand::Canonical(copy) => Some(copy.positions()),
        })
    }
}

impl Fill for Operand {
    fn mark_filled(&mut self) {
        if let Operand::Canonical(copy) = self {
            copy.mark_filled();
        }
    }
}

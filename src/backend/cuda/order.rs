//! Row orders by name (src/reorder/policy.rs), for kernels that work on rows.
//!
//! The order is computed on the host from a copy of the pattern, or of its row offsets if the policy reads
//! only lengths, unless a decision of an earlier analysis has it. The rows are permuted on the device. All of
//! this happens in analysis, and on request only.

use std::sync::Arc;

use super::check;
use super::convert::permute_rows;
use super::device::DeviceCall;
use super::memory::{self, filled_members, DeviceBuffer};
use super::operand::{Operand, Rows};
use crate::error::Result;
use crate::matrix::compressed::Pattern;
use crate::matrix::SparseMatrix;
use crate::memory::{pool, Allocator, Context, HostMemory};
use crate::reorder::features::FeatureSet;
use crate::reorder::{check_rows, is_kept, policy, KeptOrder, Permutation};
use crate::select::{self, RowOrder, Source};
use crate::types::{Address, DataType, Index, IndexType, Operation, Reorder};

/// Row order of an operand: for each of its rows the row of C or y, unless these are equal.
#[derive(Debug)]
pub(super) struct Order {
    policy: Reorder,
    rows: Option<DeviceBuffer<u32>>,
}

impl Order {
    /// Makes the order in which rows keep their places.
    pub(super) fn none() -> Self {
        Order { policy: Reorder::None, rows: None }
    }

    /// Permutes the rows of an operand, which are sorted by column, if the chosen order is one by name. An
    /// operand that is a copy must have kept the positions of its values. Blocks.
    pub(super) fn apply(
        cx: &DeviceCall<'_>,
        operand: Operand,
        value_type: DataType,
        &RowOrder { policy, ref kept }: &RowOrder,
    ) -> Result<(Operand, Self)> {
        if !policy.is_named() {
            return Ok((operand, Order::none()));
        }
        let rows = operand.rows();
        let order = match kept {
            Some(kept) => DeviceBuffer::from_slice(cx, kept.for_rows(rows.rows as usize)?)?,
            None => DeviceBuffer::from_slice(cx, &on_host(cx, &rows, OrderByPolicy(policy))?)?,
        };
        let copy = match &operand {
            Operand::InPlace(_) => permute_rows(cx, &rows, value_type, &order)?,
            Operand::Canonical(copy) => copy.permuted(cx, value_type, &order)?,
        };
        Ok((Operand::Canonical(copy), Order { policy, rows: Some(order) }))
    }

    /// Address of the order for kernels; NULL where rows keep their own order.
    pub(super) fn address(&self) -> Address {
        self.rows.as_ref().map_or(Address::NULL, DeviceBuffer::address)
    }

    /// Name of the order; [`Reorder::None`] where rows keep their own order.
    pub(super) fn policy(&self) -> Reorder {
        self.policy
    }

    /// Downloads the order in the form in which decisions keep it. The context must be current. Blocks.
    pub(super) fn kept(&self, cx: &Context) -> Result<Option<KeptOrder>> {
        match &self.rows {
            Some(rows) if is_kept(self.policy) => {
                KeptOrder::of_rows(&memory::download::<u32>(rows.address(), rows.len(), cx.stream)?)
            }
            _ => Ok(None),
        }
    }
}
filled_members!(Order { rows });

/// Methods of an executor that keeps the rows of op(A) in an operand `operand` with an order `order`.
macro_rules! methods_of_ordered_rows {
    () => {
        fn keeps_arrays(&self) -> bool {
            true
        }

        fn layout(&self) -> $crate::backend::LayoutInfo {
            self.operand.layout()
        }

        fn reorder(&self) -> $crate::types::Reorder {
            self.order.policy()
        }

        fn row_order(&self, cx: &Context) -> Result<Option<$crate::reorder::KeptOrder>> {
            let _entered = self.device.enter()?;
            self.order.kept(cx)
        }
    };
}
pub(super) use methods_of_ordered_rows;

/// Computation on the host that reads a copy of the pattern of some rows.
trait HostComputation {
    type Output;
    /// Returns whether the column indices are copied, too; otherwise the copy has row offsets only.
    fn reads_columns(&self) -> bool;
    fn run<I: Index, J: Index>(self, pattern: &Pattern<'_, I, J>) -> Result<Self::Output>;
}

/// Computation of the order that a policy makes.
struct OrderByPolicy(Reorder);

impl HostComputation for OrderByPolicy {
    type Output = Permutation;
    fn reads_columns(&self) -> bool {
        policy::reads_columns(self.0)
    }
    fn run<I: Index, J: Index>(self, pattern: &Pattern<'_, I, J>) -> Result<Permutation> {
        check_rows(pattern.major)?;
        let allocator = Allocator::new(Arc::new(HostMemory), Address::NULL, usize::MAX);
        policy::order(&allocator, pattern, self.0)
    }
}

/// Computation of the features by which orders are chosen.
struct OrderFeatures;

impl HostComputation for OrderFeatures {
    type Output = FeatureSet;
    fn reads_columns(&self) -> bool {
        true
    }
    fn run<I: Index, J: Index>(self, pattern: &Pattern<'_, I, J>) -> Result<FeatureSet> {
        Ok(pool::run(|| FeatureSet::of(pattern)))
    }
}

/// Computes the features of the rows of op(A), whose pattern is validated and copied to the host. Blocks.
pub(super) fn features(cx: &DeviceCall<'_>, a: &SparseMatrix, op: Operation) -> Result<FeatureSet> {
    let report = check::inspect(cx, a, op, "A")?;
    let is_ready = select::in_place(a, op) && report.structure.sorted;
    let source = if is_ready { Source::InPlace } else { Source::Canonical };
    let (operand, _) = Operand::inspected(cx, a, op, source, false, &report)?;
    on_host(cx, &operand.rows(), OrderFeatures)
}

/// Runs a computation on a copy of the pattern of these rows. Blocks.
fn on_host<T: HostComputation>(cx: &Context, rows: &Rows, computation: T) -> Result<T::Output> {
    match (rows.offset_type, rows.index_type) {
        (IndexType::I32, _) => on_host_in::<i32, i32, T>(cx, rows, computation),
        (_, IndexType::I64) => on_host_in::<i64, i64, T>(cx, rows, computation),
        _ => on_host_in::<i64, i32, T>(cx, rows, computation),
    }
}

fn on_host_in<I: Index, J: Index, T: HostComputation>(
    cx: &Context,
    rows: &Rows,
    computation: T,
) -> Result<T::Output> {
    let count = if rows.rows == 0 { 0 } else { rows.rows as usize + 1 };
    let offsets = memory::download::<I>(rows.offsets, count, cx.stream)?;
    let columns = if computation.reads_columns() { rows.nnz as usize } else { 0 };
    let indices = memory::download::<J>(rows.indices, columns, cx.stream)?;
    let pattern = Pattern {
        major: rows.rows as usize,
        minor: rows.cols as usize,
        base: rows.base,
        offsets: &offsets[..],
        indices: &indices[..],
        by_columns: false,
    };
    computation.run(&pattern)
}

//! Layouts of op(A) for SpMV and SpMM, with their update by new values.

use std::sync::Arc;

use super::columns::OwnColumns;
use super::lanes;
use super::operand::{HostRows, Operand};
use super::schedule::{Grain, Schedule};
use crate::backend::LayoutInfo;
use crate::error::Result;
use crate::format::sell::Origin;
use crate::matrix::SparseMatrix;
use crate::memory::{self, Allocator, Context};
use crate::reorder::{is_kept, KeptOrder, Permutation};
use crate::select::{self, RowOrder, Source};
use crate::types::{Address, Element, LayoutKind, Operation, Reorder};

/// The matrix op(A) of a plan.
#[derive(Clone, Copy, Debug)]
pub(super) struct OpA {
    /// The sparse matrix A.
    pub a: SparseMatrix,
    /// Operation on A.
    pub op: Operation,
    /// True if layouts keep the origin of their values, so that new values can be written in place.
    pub keep: bool,
}

/// A storage format of op(A) that a plan has built.
pub(super) trait Layout: Send + Sync {
    /// Kind of the layout.
    const KIND: LayoutKind;
    /// Takes the new values of `a`, which has the pattern from which the layout was built.
    fn update_values(&mut self, cx: &Context, a: &OpA) -> Result<()>;
    /// Returns the approximate number of entries and rows, which is the work of a product with one column, and
    /// the number of slots for values divided by the number of stored entries.
    fn size(&self) -> (usize, f64);
    /// Returns a description of the layout.
    fn info(&self) -> LayoutInfo {
        LayoutInfo { kind: Self::KIND, in_place: false, fill: self.size().1 }
    }
    /// Returns more details for people; empty if [`LayoutInfo`] says everything.
    fn details(&self) -> String {
        String::new()
    }
    /// Returns the named order of the rows, or [`Reorder::None`].
    fn reorder(&self) -> Reorder {
        Reorder::None
    }
    /// Returns the order of the rows in the form that decisions store, if they store it.
    fn row_order(&self) -> Result<Option<KeptOrder>> {
        Ok(None)
    }
}

impl OpA {
    /// Returns where a layout that accepts unsorted rows reads op(A): in the user's arrays if its rows are
    /// contiguous there, otherwise in a canonical copy.
    pub fn source(&self) -> Source {
        if select::in_place(&self.a, self.op) {
            Source::InPlace
        } else {
            Source::Canonical
        }
    }

    /// Builds the operand with the rows of op(A) from `source`. It is never inlined, since each layout of each
    /// type would have its code.
    #[inline(never)]
    pub fn operand<V: Element>(&self, cx: &Context, source: Source) -> Result<Operand<V>> {
        Operand::build(cx, &self.a, self.op, source, "A", self.keep)
    }

    /// Builds a layout by `build`, which gets the rows of op(A) and the origin of their values.
    pub fn arrange<V: Element, L>(
        &self,
        cx: &Context,
        source: Source,
        build: impl FnOnce(&Arc<Allocator>, &HostRows<'_, V>, Origin<'_>) -> Result<L>,
    ) -> Result<L> {
        let operand = self.operand(cx, source)?;
        operand.with_plain(cx, "A", |rows| build(&cx.allocator, rows, operand.origin(self.keep)))
    }

    /// Updates the values of a layout by `refill`, which gets the values and whether to conjugate them. If it
    /// returns false, because the layout has not kept the origin of its values, the layout is rebuilt by
    /// `arrange`.
    pub fn renew<V: Element, L>(
        &self,
        layout: &mut L,
        refill: impl FnOnce(&mut L, &[V], bool) -> bool,
        arrange: impl FnOnce(&L) -> Result<L>,
    ) -> Result<()> {
        // SAFETY: the descriptor promises that many values, which stay valid and unchanged while a call that
        // reads them runs.
        let values = unsafe { memory::open("A", self.a.values(), self.a.shape().2 as usize)? };
        if !refill(layout, values, self.op.conjugates()) {
            *layout = arrange(layout)?;
        }
        Ok(())
    }

    /// Updates the layout with the new values at this address.
    pub fn update_values(&mut self, cx: &Context, layout: &mut impl Layout, values: Address) -> Result<()> {
        let renewed = OpA { a: self.a.with_values(values), ..*self };
        layout.update_values(cx, &renewed)?;
        *self = renewed;
        Ok(())
    }
}

/// Rows of op(A) in the user's arrays or in canonical CSR, possibly reordered, divided into items of about
/// equal work.
pub(super) struct Csr<V: Element> {
    pub operand: Operand<V>,
    /// Row of op(A) for each stored row; `None` if rows are not reordered.
    pub order: Option<Permutation>,
    policy: Reorder,
    pub schedule: Schedule,
    /// Columns for products of SpMM that need not check them; `None` if they read those of the operand.
    pub own_columns: Option<OwnColumns>,
}

impl<V: Element> Csr<V> {
    pub fn build(cx: &Context, a: &OpA, source: Source, order: &RowOrder, grain: Grain) -> Result<Self> {
        let policy = order.policy;
        let (operand, order) = a.operand(cx, source)?.in_order(cx, order)?;
        let schedule = Schedule::build(&cx.allocator, operand.rows("A")?.0.offsets, grain)?;
        let policy = if order.is_some() { policy } else { Reorder::None };
        Ok(Csr { operand, order, policy, schedule, own_columns: None })
    }

    /// Makes the plan's own copy of the columns, if these are in the user's array, there is memory for it, and products
    /// read it: on x86-64 without AVX2 they do not.
    pub fn keep_columns(self, cx: &Context) -> Result<Self> {
        let copy = match &self.operand {
            Operand::InPlace(_) if cfg!(target_arch = "x86_64") && !lanes::has_avx2() => Ok(None),
            Operand::InPlace(_) => OwnColumns::copy(&cx.allocator, &self.operand.rows("A")?.0),
            Operand::Canonical(_) => Ok(None),
        };
        let own_columns = match copy {
            Err(error) if error.lacks_memory() => None,
            copy => copy?,
        };
        Ok(Csr { own_columns, ..self })
    }
}

impl<V: Element> Layout for Csr<V> {
    const KIND: LayoutKind = LayoutKind::Csr;

    fn update_values(&mut self, cx: &Context, a: &OpA) -> Result<()> {
        self.operand.update_values(cx, &a.a, a.op, "A")
    }

    fn size(&self) -> (usize, f64) {
        (self.schedule.units(), 1.0)
    }

    fn info(&self) -> LayoutInfo {
        self.operand.layout()
    }

    fn details(&self) -> String {
        self.own_columns
            .as_ref()
            .map_or_else(String::new, |own| format!("columns of its own in {} bits", own.bits()))
    }

    fn reorder(&self) -> Reorder {
        self.policy
    }

    fn row_order(&self) -> Result<Option<KeptOrder>> {
        match &self.order {
            Some(order) if is_kept(self.policy) => KeptOrder::of_rows(order),
            _ => Ok(None),
        }
    }
}

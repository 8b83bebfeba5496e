//! op(A) as products of either operation read it: a layout, and how it takes new values.

use std::sync::Arc;

use super::operand::{Operand, Rows};
use super::schedule::{Grain, Schedule};
use crate::backend::LayoutInfo;
use crate::error::Result;
use crate::format::sell::Origin;
use crate::matrix::SparseMatrix;
use crate::memory::{self, Allocator, Context};
use crate::reorder::{is_kept, KeptOrder, Permutation};
use crate::select::{self, RowOrder, Source};
use crate::types::{Address, Element, Operation, Reorder};

/// op(A) of a plan.
#[derive(Clone, Copy, Debug)]
pub(super) struct OpA {
    /// A.
    pub a: SparseMatrix,
    /// op.
    pub op: Operation,
    /// Layouts keep where their values come from, so that new ones are put in place.
    pub keep: bool,
}

/// What op(A) is kept in.
pub(super) trait Layout: Send + Sync {
    /// Takes new values: those of `a`, which has the pattern that the layout was made of.
    fn update_values(&mut self, cx: &Context, a: &OpA) -> Result<()>;
    /// Entries and rows, about: the work of a product with one column.
    fn units(&self) -> usize;
    /// What it is.
    fn info(&self) -> LayoutInfo;
    /// More about it, for people; empty where [`LayoutInfo`] says all.
    fn details(&self) -> String {
        String::new()
    }
    /// The order of its rows.
    fn reorder(&self) -> Reorder {
        Reorder::None
    }
    /// The same as decisions keep it.
    fn row_order(&self) -> Result<Option<KeptOrder>> {
        Ok(None)
    }
}

impl OpA {
    /// Rows that lie in the user's arrays need no copy on the way to a layout that takes them unsorted.
    pub fn source(&self) -> Source {
        if select::in_place(&self.a, self.op) {
            Source::InPlace
        } else {
            Source::Canonical
        }
    }

    /// Its rows, from `source`.
    pub fn operand<V: Element>(&self, cx: &Context, source: Source) -> Result<Operand<V>> {
        Operand::build(cx, &self.a, self.op, source, "A", self.keep)
    }

    /// The layout that `build` makes of its rows.
    pub fn arrange<V: Element, L>(
        &self,
        cx: &Context,
        source: Source,
        build: impl FnOnce(&Arc<Allocator>, &Rows<'_, V>, Origin<'_>) -> Result<L>,
    ) -> Result<L> {
        let operand = self.operand(cx, source)?;
        operand.with_plain(cx, "A", |rows| build(&cx.allocator, rows, operand.origin(self.keep)))
    }

    /// Has a layout take the values: by `refill`, which is given them and whether they are conjugated, or if
    /// that says false, since the layout does not know where they go, by `arrange`.
    pub fn renew<V: Element, L>(
        &self,
        layout: &mut L,
        refill: impl FnOnce(&mut L, &[V], bool) -> bool,
        arrange: impl FnOnce(&L) -> Result<L>,
    ) -> Result<()> {
        // SAFETY: the descriptor promises that many values, which stay valid and
        // unchanged while a call that reads them runs.
        let values = unsafe { memory::open("A", self.a.values(), self.a.shape().2 as usize)? };
        if !refill(layout, values, self.op.conjugates()) {
            *layout = arrange(layout)?;
        }
        Ok(())
    }

    /// Execute has been given new values.
    pub fn update_values(&mut self, cx: &Context, layout: &mut impl Layout, values: Address) -> Result<()> {
        let renewed = OpA { a: self.a.with_values(values), ..*self };
        layout.update_values(cx, &renewed)?;
        *self = renewed;
        Ok(())
    }
}

/// Rows of op(A) where they are or in canonical CSR, maybe in another order, cut into items of about equal work.
pub(super) struct Csr<V: Element> {
    pub operand: Operand<V>,
    /// The row of op(A) of each row, where that is not its own.
    pub order: Option<Permutation>,
    policy: Reorder,
    pub schedule: Schedule,
}

impl<V: Element> Csr<V> {
    pub fn build(cx: &Context, a: &OpA, source: Source, order: &RowOrder, grain: Grain) -> Result<Self> {
        let policy = order.policy;
        let (operand, order) = a.operand(cx, source)?.in_order(cx, order)?;
        let schedule = Schedule::build(&cx.allocator, operand.rows("A")?.0.offsets, grain)?;
        let policy = if order.is_some() { policy } else { Reorder::None };
        Ok(Csr { operand, order, policy, schedule })
    }
}

impl<V: Element> Layout for Csr<V> {
    fn update_values(&mut self, cx: &Context, a: &OpA) -> Result<()> {
        self.operand.update_values(cx, &a.a, a.op, "A")
    }

    fn units(&self) -> usize {
        self.schedule.units()
    }

    fn info(&self) -> LayoutInfo {
        self.operand.layout()
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

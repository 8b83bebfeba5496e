//! SpMV on a copy of op(A) in another layout: what is the same whatever the layout.

use std::marker::PhantomData;

use super::{open, Opened};
use crate::backend::host::operand::Operand;
use crate::backend::host::schedule;
use crate::backend::{LayoutInfo, SpmvExecutor};
use crate::error::Result;
use crate::matrix::DenseVector;
use crate::memory::{self, Context};
use crate::problem::SpmvProblem;
use crate::select::{self, Source};
use crate::support::Combo;
use crate::types::{Address, LayoutKind};

/// A layout and its product.
pub(super) trait Converted<C: Combo>: Sized + Send + Sync {
    /// Its code.
    const KIND: LayoutKind;

    /// Arranges op(A).
    fn arrange(cx: &Context, problem: &SpmvProblem) -> Result<Self>;

    /// Takes new values in the order of the user's array; false if it does not know
    /// where they go, and then nothing changes.
    fn refill(&mut self, values: &[C::A], conjugate: bool) -> bool;

    /// Sums that the workspace must hold.
    fn parts(&self) -> usize;

    /// Entries and rows, about.
    fn units(&self) -> usize;

    /// The product, on all threads or on this one. `opened` has `parts` sums.
    fn multiply(&self, parallel: bool, opened: Opened<'_, C>);

    /// Slots for values over stored entries.
    fn fill_ratio(&self) -> f64;

    /// As [`SpmvExecutor::details`].
    fn details(&self) -> String {
        String::new()
    }
}

/// op(A) as a layout takes it; rows that lie in the user's arrays need no copy on the way.
pub(super) fn operand<C: Combo>(cx: &Context, problem: &SpmvProblem) -> Result<Operand<C::A>> {
    let (a, op) = (&problem.a, problem.op);
    let source = if select::in_place(a, op) { Source::InPlace } else { Source::Canonical };
    Operand::build(cx, a, op, source, "A", problem.value_updates)
}

/// The executor.
pub(super) struct ConvertedSpmv<C, L> {
    problem: SpmvProblem,
    layout: L,
    combo: PhantomData<C>,
}

impl<C: Combo, L: Converted<C>> ConvertedSpmv<C, L> {
    pub(super) fn build(cx: &Context, problem: &SpmvProblem) -> Result<Self> {
        Ok(ConvertedSpmv { problem: *problem, layout: L::arrange(cx, problem)?, combo: PhantomData })
    }

    /// Execute, on all threads or on this one.
    pub(super) fn run(
        &self,
        cx: &Context,
        parallel: bool,
        scalars: (Address, Address),
        x: &DenseVector,
        y: &DenseVector,
    ) -> Result<()> {
        if let Some(opened) = open::<C>(cx, parallel, scalars, (x, y), self.layout.parts())? {
            self.layout.multiply(parallel, opened);
        }
        Ok(())
    }
}

impl<C: Combo, L: Converted<C>> SpmvExecutor for ConvertedSpmv<C, L> {
    fn workspace_bytes(&self) -> usize {
        self.layout.parts() * size_of::<C::Acc>()
    }

    fn execute(
        &self,
        cx: &Context,
        alpha: Address,
        x: &DenseVector,
        beta: Address,
        y: &DenseVector,
    ) -> Result<()> {
        self.run(cx, schedule::is_parallel(self.layout.units()), (alpha, beta), x, y)
    }

    fn update_values(&mut self, cx: &Context, values: Address) -> Result<()> {
        let renewed = SpmvProblem { a: self.problem.a.with_values(values), ..self.problem };
        // SAFETY: the descriptor promises that many values, which stay valid and
        // unchanged while a call that reads them runs.
        let values = unsafe { memory::open("A", values, renewed.a.shape().2 as usize)? };
        if !self.layout.refill(values, renewed.op.conjugates()) {
            self.layout = L::arrange(cx, &renewed)?;
        }
        self.problem = renewed;
        Ok(())
    }

    fn layout(&self) -> LayoutInfo {
        LayoutInfo { kind: L::KIND, in_place: false, fill: self.layout.fill_ratio() }
    }

    fn details(&self) -> String {
        self.layout.details()
    }
}

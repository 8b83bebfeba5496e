//! What analysis knows of op(A) before an algorithm is chosen, which all of them build on.

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use super::window;
use crate::backend::cuda::check::{self, Findings};
use crate::backend::cuda::convert::Positions;
use crate::backend::cuda::device::Device;
use crate::backend::cuda::operand::{Operand, RowStats};
use crate::backend::{Context, SpmmProblem};
use crate::error::Result;
use crate::layout::window::{Counts, Shape};
use crate::select::spmm::Survey;
use crate::select::{self, Source};

/// Sorted rows of op(A), in place or a copy, and their counts.
pub(in crate::backend::cuda) struct Seen {
    device: Arc<Device>,
    /// `None`: an executor keeps them.
    rows: RefCell<Option<Looked>>,
    counts: Cell<Option<(Shape, Counts)>>,
}

/// Rows that have been looked at.
pub(super) struct Looked {
    pub(super) operand: Operand,
    pub(super) stats: RowStats,
    pub(super) findings: Findings,
}

/// A problem on its way to an executor.
pub(super) struct Analysis<'a> {
    pub(super) cx: &'a Context,
    pub(super) device: &'a Arc<Device>,
    pub(super) problem: &'a SpmmProblem,
    pub(super) seen: &'a Seen,
}

impl Seen {
    /// Nothing yet.
    pub(super) fn new(device: &Arc<Device>) -> Self {
        Seen { device: Arc::clone(device), rows: RefCell::new(None), counts: Cell::new(None) }
    }
}

impl Drop for Seen {
    fn drop(&mut self) {
        // A plan drops this. Arrays that the stream still works on go back in its order, in
        // the context.
        let _entered = self.device.enter();
        self.rows.take();
    }
}

impl Analysis<'_> {
    /// Validates the pattern, unless that was done. Blocks.
    fn look(&self) -> Result<()> {
        let mut rows = self.seen.rows.borrow_mut();
        if rows.is_none() {
            let &Analysis { cx, device, problem, .. } = self;
            let (a, op) = (&problem.a, problem.op);
            let findings = check::inspect(cx, device, a, op, "A")?;
            let is_ready = select::in_place(a, op) && findings.structure.sorted;
            let source = if is_ready { Source::InPlace } else { Source::Canonical };
            let updates = problem.value_updates;
            let (operand, stats) = Operand::inspected(cx, device, a, op, source, updates, &findings)?;
            *rows = Some(Looked { operand, stats, findings });
        }
        Ok(())
    }

    /// Calls `f` with the rows and, if values will be updated, where they come from.
    pub(super) fn with_rows<R>(
        &self,
        f: impl FnOnce(&Operand, Option<Option<&Positions>>) -> Result<R>,
    ) -> Result<R> {
        self.look()?;
        let rows = self.seen.rows.borrow();
        let operand = &rows.as_ref().expect("rows were looked at").operand;
        let positions = self.problem.value_updates.then_some(match operand {
            Operand::InPlace(_) => None,
            Operand::Canonical(copy) => Some(copy.positions()),
        });
        f(operand, positions)
    }

    /// The rows, for an executor that keeps them.
    pub(super) fn take_rows(&self) -> Result<Looked> {
        self.look()?;
        Ok(self.seen.rows.borrow_mut().take().expect("rows were looked at"))
    }

    /// The rows from where a choice says: in place they need not be sorted.
    pub(super) fn rows_from(&self, source: Source) -> Result<Looked> {
        let is_kept = self.seen.rows.borrow().as_ref().is_some_and(|looked| {
            matches!(looked.operand, Operand::InPlace(_)) == (source == Source::InPlace)
        });
        if is_kept {
            return self.take_rows();
        }
        let &Analysis { cx, device, problem, seen } = self;
        let (a, op, updates) = (&problem.a, problem.op, problem.value_updates);
        let findings = match &*seen.rows.borrow() {
            Some(looked) => looked.findings,
            None => check::inspect(cx, device, a, op, "A")?,
        };
        let (operand, stats) = Operand::inspected(cx, device, a, op, source, updates, &findings)?;
        Ok(Looked { operand, stats, findings })
    }

    /// The counts in windows of a shape. Blocks unless they were counted before.
    pub(super) fn counts(&self, shape: Shape) -> Result<Counts> {
        if let Some((_, counts)) = self.seen.counts.get().filter(|(of, _)| *of == shape) {
            return Ok(counts);
        }
        let counts = self
            .with_rows(|operand, _| window::number::survey(self.cx, self.device, &operand.rows(), shape))?;
        self.seen.counts.set(Some((shape, counts)));
        Ok(counts)
    }

    /// What the choice goes by.
    pub(super) fn survey(&self) -> Result<Survey> {
        let counts = self.counts(crate::select::spmm::shape(self.problem.types.a))?;
        let rows = self.seen.rows.borrow();
        let Looked { operand, stats, .. } = rows.as_ref().expect("rows were looked at");
        let (cols, longest) = (operand.rows().cols as usize, stats.max as usize);
        Ok(Survey { cols, longest, counts })
    }
}

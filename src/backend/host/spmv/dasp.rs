//! SpMV algorithm `dasp` on the host: y = alpha · op(A) · x + beta · y on [`DaspLayout`].
//!
//! Each row is summed in the order of its entries; a split row is summed by tasks, whose partial sums are
//! added in order. The result does not depend on the number of threads.

use super::{Opened, SpmvProduct};
use crate::backend::host::layout::{Layout, OpA};
use crate::backend::host::schedule;
use crate::error::Result;
use crate::format::dasp::{self, DaspPart, Results, PIECES, ROWS};
use crate::format::DaspLayout;
use crate::memory::Context;
use crate::support::Combo;
use crate::types::{Accumulator, Element, LayoutKind, Storage};

/// Results of rows that are not long, per item: enough work to be worth the cost of taking an item
/// (src/backend/host/slices.rs).
const ITEM_RESULTS: usize = 256;

pub(super) fn arrange<V: Element>(cx: &Context, a: &OpA) -> Result<DaspLayout<V>> {
    a.arrange(cx, a.source(), |allocator, rows, origin| {
        DaspLayout::build(allocator, &rows.pattern, rows.values, origin)
    })
}

impl<V: Element> Layout for DaspLayout<V> {
    const KIND: LayoutKind = LayoutKind::Dasp;

    fn update_values(&mut self, cx: &Context, a: &OpA) -> Result<()> {
        a.renew(self, Self::refill, |_| arrange(cx, a))
    }

    fn size(&self) -> (usize, f64) {
        (self.values.len() + self.row_count, self.fill_ratio())
    }

    fn details(&self) -> String {
        self.shape.describe()
    }
}

impl<C: Combo> SpmvProduct<C> for DaspLayout<C::A> {
    fn sums(&self) -> usize {
        self.split_tasks()
    }

    fn multiply(&self, parallel: bool, opened: Opened<'_, C>) -> Result<()> {
        let product = Running { layout: self, opened };
        let (tasks, results) = (self.tasks.len(), self.shape.result_count());
        schedule::for_each(parallel, tasks + results.div_ceil(ITEM_RESULTS), |item| {
            let Some(item) = item.checked_sub(tasks) else { return product.task(item) };
            let first = item * ITEM_RESULTS;
            (first..results.min(first + ITEM_RESULTS)).for_each(|at| product.result(at));
        });
        for split in self.splits.iter() {
            let (first, tasks) = (split.before as usize, split.tasks as usize);
            product.opened.store(split.row as usize, product.opened.add_up(first..first + tasks));
        }
        Ok(())
    }
}

/// State of one product.
struct Running<'a, C: Combo> {
    layout: &'a DaspLayout<C::A>,
    opened: Opened<'a, C>,
}

impl<C: Combo> Running<'_, C> {
    /// Returns Σ values · x[columns] over the slots that are not padding.
    #[inline(always)]
    fn dot(&self, slots: impl Iterator<Item = usize>) -> C::Acc {
        let mut sum = C::Acc::ZERO;
        for slot in slots {
            if let Ok(column) = usize::try_from(self.layout.columns[slot]) {
                sum += self.layout.values[slot].widen() * self.opened.x[column].widen();
            }
        }
        sum
    }

    fn task(&self, number: usize) {
        let task = &self.layout.tasks[number];
        let sum = self.dot(self.layout.task_slots(task));
        match usize::try_from(task.row) {
            Ok(row) => self.opened.store(row, sum),
            // SAFETY: the task's sum belongs to one item, and nothing reads it before all are done.
            Err(_) => unsafe {
                let split = &self.layout.splits[(-1 - task.row) as usize];
                self.opened.sums.set(split.before as usize + number - split.first as usize, sum);
            },
        }
    }

    /// Computes the result of a row that is not long, or of padding.
    fn result(&self, at: usize) {
        let (layout, shape) = (self.layout, &self.layout.shape);
        let Ok(row) = usize::try_from(layout.order[at]) else { return };
        let (singles, medium) = (shape.results(Results::Single), shape.results(Results::Medium));
        let short = PIECES.into_iter().find(|(results, ..)| shape.results(*results).contains(&at));
        let sum = if let Some((results, part, cut)) = short {
            let (line, places) = dasp::place(cut, at - shape.results(results).start);
            self.dot(layout.short_slots(part, line, places))
        } else if singles.contains(&at) {
            self.dot(std::iter::once(shape.slots(DaspPart::Single).start + at - singles.start))
        } else if medium.contains(&at) {
            let at = at - medium.start;
            self.dot(layout.medium_slots(at / ROWS, at % ROWS))
        } else {
            C::Acc::ZERO
        };
        self.opened.store(row, sum);
    }
}

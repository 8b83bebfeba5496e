//! SpMV algorithm `dasp` on the host: y = alpha · op(A) · x + beta · y on [`DaspLayout`].
//!
//! Each row is summed in the order of its entries; a split row is summed by tasks, whose partial sums are
//! added in order. The result does not depend on the number of threads.

use super::{Opened, SpmvProduct};
use crate::backend::host::layout::{Layout, OpA};
use crate::backend::host::schedule;
use crate::backend::LayoutInfo;
use crate::error::Result;
use crate::format::dasp::{self, DaspPart, Results, PIECES, ROWS};
use crate::format::DaspLayout;
use crate::memory::Context;
use crate::support::Combo;
use crate::types::{Accumulator, Element, LayoutKind, Storage};

/// Row blocks, and results of other rows, per item: enough work to be worth the cost of taking an item
/// (src/backend/host/slices.rs).
const ITEM_ROW_BLOCKS: usize = 32;
const ITEM_RESULTS: usize = 1024;

pub(super) fn arrange<V: Element>(cx: &Context, a: &OpA) -> Result<DaspLayout<V>> {
    a.arrange(cx, a.source(), |allocator, rows, origin| {
        DaspLayout::build(allocator, &rows.pattern, rows.values, origin)
    })
}

impl<V: Element> Layout for DaspLayout<V> {
    fn update_values(&mut self, cx: &Context, a: &OpA) -> Result<()> {
        a.renew(self, Self::refill, |_| arrange(cx, a))
    }

    fn units(&self) -> usize {
        self.values.len() + self.row_count
    }

    fn info(&self) -> LayoutInfo {
        LayoutInfo { kind: LayoutKind::Dasp, in_place: false, fill: self.fill_ratio() }
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
        let shape = &self.shape;
        let row_blocks = shape.classes.row_blocks();
        let counts = [
            self.tasks.len(),
            row_blocks.div_ceil(ITEM_ROW_BLOCKS),
            shape.result_count().div_ceil(ITEM_RESULTS),
        ];
        schedule::for_each(parallel, counts.iter().sum(), |item| {
            if item < counts[0] {
                return product.task(item);
            }
            let item = item - counts[0];
            if item < counts[1] {
                let first = item * ITEM_ROW_BLOCKS;
                return (first..row_blocks.min(first + ITEM_ROW_BLOCKS)).for_each(|at| product.row_block(at));
            }
            let first = (item - counts[1]) * ITEM_RESULTS;
            (first..shape.result_count().min(first + ITEM_RESULTS)).for_each(|at| product.result(at));
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

    fn row_block(&self, number: usize) {
        for r in 0..ROWS {
            if let Some(row) = self.layout.row(Results::Medium, number * ROWS + r) {
                self.opened.store(row, self.dot(self.layout.medium_slots(number, r)));
            }
        }
    }

    /// Computes any result except that of a medium row.
    fn result(&self, at: usize) {
        let (layout, shape) = (self.layout, &self.layout.shape);
        let Ok(row) = usize::try_from(layout.order[at]) else {
            return;
        };
        let (singles, medium) = (shape.results(Results::Single), shape.results(Results::Medium));
        if at < singles.start {
            for (results, part, cut) in PIECES {
                let range = shape.results(results);
                if range.contains(&at) {
                    let (line, places) = dasp::place(cut, at - range.start);
                    self.opened.store(row, self.dot(layout.short_slots(part, line, places)));
                }
            }
        } else if at < singles.end {
            let slot = shape.slots(DaspPart::Single).start + at - singles.start;
            self.opened.store(row, self.dot(std::iter::once(slot)));
        } else if at >= medium.end {
            self.opened.store(row, C::Acc::ZERO);
        }
    }
}

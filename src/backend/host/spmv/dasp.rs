//! SpMV `dasp`: y = alpha · op(A) · x + beta · y on [`DaspLayout`].
//!
//! Each row is summed in its order, a split row by its tasks, whose sums are
//! added in order. Nothing depends on the number of threads.

use crate::backend::host::operand::{Operand, Shared};
use crate::backend::host::scalars::Scalars;
use crate::backend::host::schedule;
use crate::backend::{memory, Context, LayoutInfo, SpmvExecutor, SpmvProblem};
use crate::error::Result;
use crate::layout::dasp::{self, DaspLayout, Part, Results, PIECES, ROWS};
use crate::matrix::DenseVector;
use crate::select::{self, Source};
use crate::support::Combo;
use crate::types::{Accumulator, Address, LayoutKind, Storage};

/// Row-blocks, and results of other rows, of an item: about as long as taking an
/// item is worth (src/backend/host/spmv/sell.rs).
const ITEM_ROW_BLOCKS: usize = 32;
const ITEM_RESULTS: usize = 1024;

/// The executor.
pub(super) struct DaspSpmv<C: Combo> {
    problem: SpmvProblem,
    layout: DaspLayout<C::A>,
}

fn classify<C: Combo>(cx: &Context, problem: &SpmvProblem) -> Result<DaspLayout<C::A>> {
    let (a, op) = (&problem.a, problem.op);
    // Rows that lie in the user's arrays need no copy on the way.
    let source = if select::in_place(a, op) { Source::InPlace } else { Source::Canonical };
    Operand::<C::A>::build(cx, a, op, source, "A", problem.value_updates)?.classify(cx, problem.value_updates)
}

impl<C: Combo> DaspSpmv<C> {
    pub(super) fn build(cx: &Context, problem: &SpmvProblem) -> Result<Self> {
        Ok(DaspSpmv { problem: *problem, layout: classify::<C>(cx, problem)? })
    }

    /// Execute, on all threads or on this one.
    pub(super) fn run(
        &self,
        cx: &Context,
        parallel: bool,
        (alpha, beta): (Address, Address),
        x: &DenseVector,
        y: &DenseVector,
    ) -> Result<()> {
        let scalars = Scalars::<C::Acc>::read(alpha, beta)?;
        let len = y.len as usize;
        // SAFETY: the descriptor promises that many elements, which nothing
        // else uses during the call; the plan has refused an x that overlaps.
        let y = unsafe { memory::open_mut::<C::Y>("y", y.values, len)? };
        if scalars.skip_product() {
            scalars.scale(parallel, y, 1, len, len);
            return Ok(());
        }
        // SAFETY: the descriptor promises that many elements, unchanged during
        // the call.
        let x = unsafe { memory::open::<C::X>("x", x.values, x.len as usize)? };
        cx.workspace.require(self.workspace_bytes())?;
        let sums = self.layout.split_tasks();
        // SAFETY: `require` has checked the size; the handle lends its
        // workspace to one call at a time.
        let sums = unsafe { memory::open_mut::<C::Acc>("workspace", cx.workspace.address, sums)? };
        let layout = &self.layout;
        let product = Product::<C> { layout, x, y: Shared::new(y), sums: Shared::new(sums), scalars };
        let shape = &layout.shape;
        let row_blocks = shape.classes.row_blocks();
        let counts = [
            layout.tasks.len(),
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
        for split in layout.splits.iter() {
            let first = split.before as usize;
            let mut sum = C::Acc::ZERO;
            for task in first..first + split.tasks as usize {
                // SAFETY: all items are done, so nothing writes sums.
                sum += unsafe { product.sums.get(task) };
            }
            product.store(split.row as usize, sum);
        }
        Ok(())
    }
}

impl<C: Combo> SpmvExecutor for DaspSpmv<C> {
    fn workspace_bytes(&self) -> usize {
        self.layout.split_tasks() * size_of::<C::Acc>()
    }

    fn execute(
        &self,
        cx: &Context,
        alpha: Address,
        x: &DenseVector,
        beta: Address,
        y: &DenseVector,
    ) -> Result<()> {
        let units = self.layout.values.len() + self.layout.row_count;
        self.run(cx, schedule::is_parallel(units), (alpha, beta), x, y)
    }

    fn update_values(&mut self, cx: &Context, values: Address) -> Result<()> {
        let renewed = SpmvProblem { a: self.problem.a.with_values(values), ..self.problem };
        // SAFETY: the descriptor promises that many values, which stay valid and
        // unchanged while a call that reads them runs.
        let values = unsafe { memory::open("A", values, renewed.a.shape().2 as usize)? };
        if !self.layout.refill(values, renewed.op.conjugates()) {
            self.layout = classify::<C>(cx, &renewed)?;
        }
        self.problem = renewed;
        Ok(())
    }

    fn layout(&self) -> LayoutInfo {
        LayoutInfo { kind: LayoutKind::Dasp, in_place: false, fill: self.layout.fill_ratio() }
    }

    fn details(&self) -> String {
        self.layout.shape.describe()
    }
}

/// One product while it runs.
struct Product<'a, C: Combo> {
    layout: &'a DaspLayout<C::A>,
    x: &'a [C::X],
    y: Shared<C::Y>,
    /// Of the tasks of split rows.
    sums: Shared<C::Acc>,
    scalars: Scalars<C::Acc>,
}

impl<C: Combo> Product<'_, C> {
    fn store(&self, row: usize, sum: C::Acc) {
        // SAFETY: each row has one result, which one thread has, and y is
        // borrowed until all are done.
        self.scalars.store(sum, &mut unsafe { self.y.part(row..row + 1) }[0]);
    }

    /// Σ values · x[columns] over the slots that are no padding.
    #[inline(always)]
    fn dot(&self, slots: impl Iterator<Item = usize>) -> C::Acc {
        let mut sum = C::Acc::ZERO;
        for slot in slots {
            if let Ok(column) = usize::try_from(self.layout.columns[slot]) {
                sum += self.layout.values[slot].widen() * self.x[column].widen();
            }
        }
        sum
    }

    fn task(&self, number: usize) {
        let task = &self.layout.tasks[number];
        let sum = self.dot(self.layout.task_slots(task));
        match usize::try_from(task.row) {
            Ok(row) => self.store(row, sum),
            // SAFETY: its sum belongs to one item, and nothing reads it before
            // all are done.
            Err(_) => unsafe {
                let split = &self.layout.splits[(-1 - task.row) as usize];
                self.sums.set(split.before as usize + number - split.first as usize, sum);
            },
        }
    }

    fn row_block(&self, number: usize) {
        for r in 0..ROWS {
            if let Some(row) = self.layout.row(Results::Medium, number * ROWS + r) {
                self.store(row, self.dot(self.layout.medium_slots(number, r)));
            }
        }
    }

    /// Any result but of a medium row.
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
                    self.store(row, self.dot(layout.short_slots(part, line, places)));
                }
            }
        } else if at < singles.end {
            let slot = shape.slots(Part::Single).start + at - singles.start;
            self.store(row, self.dot(std::iter::once(slot)));
        } else if at >= medium.end {
            self.store(row, C::Acc::ZERO);
        }
    }
}

//! SpMV. [`sell`] is that on slices, [`stream`] on equal tiles, [`dasp`] on classes of rows, [`mask_block`]
//! on blocks, which are all [`converted`]; here is `csr`: y = alpha · op(A) · x + beta · y on rows of op(A).
//!
//! Items of the [`Schedule`] run in parallel. A row is summed by [`dot`]; a
//! long row is the sum, in order, of the dots of its chunks.

mod converted;
mod dasp;
mod mask_block;
mod sell;
mod stream;

use std::ops::Range;

use self::converted::ConvertedSpmv;
use super::operand::{with_rows, Operand, Rows, Shared};
use super::scalars::Scalars;
use super::schedule::{self, Grain, Schedule, Work};
use super::{timing, Host};
use crate::backend::{LayoutInfo, SpmvExecutor};
use crate::error::Result;
use crate::format::{DaspLayout, MaskBlock, StreamLayout};
use crate::matrix::DenseVector;
use crate::memory::{self, Context};
use crate::operation::SpmvBackend;
use crate::problem::SpmvProblem;
use crate::reorder::{is_kept, KeptOrder, Permutation};
use crate::select::{Choice, Method, RowOrder, Source, Surveyed};
use crate::support::{self, Combo, ComboVisitor};
use crate::types::{Accumulator, Address, Index, Reorder, Storage};

impl SpmvBackend for Host {
    fn build_spmv(
        &self,
        cx: &Context,
        problem: &SpmvProblem,
        choice: &Choice,
        _surveyed: Option<&Surveyed>,
    ) -> Result<Box<dyn SpmvExecutor>> {
        build(cx, problem, choice)
    }

    fn time_spmv(&self, cx: &Context, problem: &SpmvProblem, executor: &dyn SpmvExecutor) -> Result<f64> {
        timing::spmv(cx, problem, executor)
    }
}

/// Builds the executor for the problem's types.
pub(crate) fn build(cx: &Context, problem: &SpmvProblem, choice: &Choice) -> Result<Box<dyn SpmvExecutor>> {
    struct Build<'a>(&'a Context, &'a SpmvProblem, &'a Choice);
    impl ComboVisitor for Build<'_> {
        type Output = Box<dyn SpmvExecutor>;
        fn visit<C: Combo>(self) -> Result<Self::Output> {
            let Build(cx, problem, choice) = self;
            match &choice.method {
                Method::Dasp => Ok(Box::new(ConvertedSpmv::<C, DaspLayout<C::A>>::build(cx, problem)?)),
                Method::Sell => Ok(Box::new(ConvertedSpmv::<C, sell::Slices<C::A>>::build(cx, problem)?)),
                Method::Stream => Ok(Box::new(ConvertedSpmv::<C, StreamLayout<C::A>>::build(cx, problem)?)),
                Method::MaskBlock => Ok(Box::new(ConvertedSpmv::<C, MaskBlock<C::A>>::build(cx, problem)?)),
                Method::Csr(order) => Ok(Box::new(CsrSpmv::<C>::build(cx, problem, choice.a, order)?)),
                other => Err(other.is_of_another_operation()),
            }
        }
    }
    support::dispatch(problem.types, Build(cx, problem, choice))
}

/// What a call works with, whatever the layout.
struct Opened<'a, C: Combo> {
    x: &'a [C::X],
    y: Shared<C::Y>,
    /// The workspace: sums of the pieces of long rows.
    sums: Shared<C::Acc>,
    scalars: Scalars<C::Acc>,
}

impl<C: Combo> Opened<'_, C> {
    /// The sum of pieces, in order, when all are done.
    fn add_up(&self, pieces: Range<usize>) -> C::Acc {
        let mut sum = C::Acc::ZERO;
        for piece in pieces {
            // SAFETY: all items are done, so nothing writes sums.
            sum += unsafe { self.sums.get(piece) };
        }
        sum
    }

    /// Writes y of a row, which this thread has alone.
    fn store(&self, row: usize, sum: C::Acc) {
        // SAFETY: layouts give each row to one thread, and y is borrowed until all
        // are done.
        self.scalars.store(sum, &mut unsafe { self.y.part(row..row + 1) }[0]);
    }
}

/// Opens alpha, beta, x, y and a workspace of `pieces` sums; None if y is beta · y,
/// which it then is already.
fn open<'a, C: Combo>(
    cx: &Context,
    parallel: bool,
    (alpha, beta): (Address, Address),
    (x, y): (&DenseVector, &DenseVector),
    pieces: usize,
) -> Result<Option<Opened<'a, C>>> {
    let scalars = Scalars::<C::Acc>::read(alpha, beta)?;
    let len = y.len as usize;
    // SAFETY: the descriptor promises that many elements, which nothing else
    // uses during the call; the plan has refused an x that overlaps.
    let y = unsafe { memory::open_mut::<C::Y>("y", y.values, len)? };
    if scalars.skip_product() {
        scalars.scale(parallel, y, 1, len, len);
        return Ok(None);
    }
    // SAFETY: the descriptor promises that many elements, unchanged during the call.
    let x = unsafe { memory::open::<C::X>("x", x.values, x.len as usize)? };
    cx.workspace.require(pieces * size_of::<C::Acc>())?;
    // SAFETY: `require` has checked the size; the handle lends its workspace to
    // one call at a time.
    let sums = unsafe { memory::open_mut::<C::Acc>("workspace", cx.workspace.address, pieces)? };
    Ok(Some(Opened { x, y: Shared::new(y), sums: Shared::new(sums), scalars }))
}

/// The executor.
struct CsrSpmv<C: Combo> {
    problem: SpmvProblem,
    operand: Operand<C::A>,
    /// The row of y of each row, where that is not its own.
    order: Option<Permutation>,
    reorder: Reorder,
    schedule: Schedule,
}

impl<C: Combo> CsrSpmv<C> {
    fn build(cx: &Context, problem: &SpmvProblem, source: Source, order: &RowOrder) -> Result<Self> {
        let operand = Operand::build(cx, &problem.a, problem.op, source, "A", problem.value_updates)?;
        let reorder = order.policy;
        let (operand, order) = operand.in_order(cx, order)?;
        let schedule = with_rows!(&operand, "A", rows => {
            let rows: Rows<'_, _, _, C::A> = rows;
            Schedule::build(&cx.allocator, rows.pattern.offsets, Grain::SPMV)?
        });
        let reorder = if order.is_some() { reorder } else { Reorder::None };
        Ok(CsrSpmv { problem: *problem, operand, order, reorder, schedule })
    }

    /// Execute, on all threads or on this one.
    fn run(
        &self,
        cx: &Context,
        parallel: bool,
        (alpha, beta): (Address, Address),
        x: &DenseVector,
        y: &DenseVector,
    ) -> Result<()> {
        let opened = open::<C>(cx, parallel, (alpha, beta), (x, y), self.schedule.slots())?;
        let Some(opened) = opened else {
            return Ok(());
        };
        with_rows!(&self.operand, "A", rows => {
            let order = self.order.as_deref();
            let product = Product::<C, _, _> { rows, order, opened };
            self.schedule.for_each_item(parallel, |work| product.item(work));
            let opened = &product.opened;
            self.schedule.for_each_long_row(parallel, |row, slots| {
                opened.store(order.map_or(row, |order| order[row] as usize), opened.add_up(slots));
            });
        });
        Ok(())
    }
}

impl<C: Combo> SpmvExecutor for CsrSpmv<C> {
    fn workspace_bytes(&self) -> usize {
        self.schedule.slots() * size_of::<C::Acc>()
    }

    fn execute(
        &self,
        cx: &Context,
        alpha: Address,
        x: &DenseVector,
        beta: Address,
        y: &DenseVector,
    ) -> Result<()> {
        let parallel = schedule::is_parallel(self.schedule.units());
        self.run(cx, parallel, (alpha, beta), x, y)
    }

    fn update_values(&mut self, cx: &Context, values: Address) -> Result<()> {
        let a = self.problem.a.with_values(values);
        self.operand.update_values(cx, &a, self.problem.op, "A")?;
        self.problem.a = a;
        Ok(())
    }

    fn layout(&self) -> LayoutInfo {
        self.operand.layout()
    }

    fn reorder(&self) -> Reorder {
        self.reorder
    }

    fn row_order(&self, _: &Context) -> Result<Option<KeptOrder>> {
        match &self.order {
            Some(order) if is_kept(self.reorder) => KeptOrder::of_rows(order),
            _ => Ok(None),
        }
    }
}

/// One product while it runs.
struct Product<'a, C: Combo, I, J> {
    rows: Rows<'a, I, J, C::A>,
    /// The row of y of each row, where that is not its own.
    order: Option<&'a [u32]>,
    opened: Opened<'a, C>,
}

impl<C: Combo, I: Index, J: Index> Product<'_, C, I, J> {
    fn item(&self, work: Work) {
        let pattern = &self.rows.pattern;
        let dot = |positions: Range<usize>| {
            dot::<C, J>(
                &self.rows.values[positions.clone()],
                &pattern.indices[positions],
                pattern.base,
                self.opened.x,
            )
        };
        match (work, self.order) {
            (Work::Rows(rows), Some(order)) => {
                // An order has each row once, as `store` wants it.
                rows.for_each(|row| self.opened.store(order[row] as usize, dot(self.rows.range(row))));
            }
            (Work::Rows(rows), None) => {
                // SAFETY: items have disjoint rows, and y is borrowed until all are done.
                let y = unsafe { self.opened.y.part(rows.clone()) };
                let mut start = self.rows.range(rows.start).start;
                for (y, end) in y.iter_mut().zip(&pattern.offsets[rows.start + 1..]) {
                    let end = (end.to_i64() - pattern.base) as usize;
                    self.opened.scalars.store(dot(start..end), y);
                    start = end;
                }
            }
            // SAFETY: each slot belongs to one item, and nothing reads it
            // before all items are done.
            (Work::Chunk { positions, slot }, _) => unsafe { self.opened.sums.set(slot, dot(positions)) },
        }
    }
}

/// Sums that run side by side in a row: an addition takes four cycles and two
/// may start in each, but memory feeds one in about four cycles.
const LANES: usize = 4;

/// Σ values · x[indices]: entry i goes to sum i mod 4, and the four sums are
/// added pairwise. A row's result depends on its entries alone.
#[inline(always)]
fn dot<C: Combo, J: Index>(values: &[C::A], indices: &[J], base: i64, x: &[C::X]) -> C::Acc {
    // An index outside x (the arrays changed behind the plan's back) panics.
    let product = |value: &C::A, index: &J| value.widen() * x[(index.to_i64() - base) as usize].widen();
    let mut sums = [C::Acc::ZERO; LANES];
    let (mut value_fours, mut index_fours) = (values.chunks_exact(LANES), indices.chunks_exact(LANES));
    for (values, indices) in (&mut value_fours).zip(&mut index_fours) {
        for lane in 0..LANES {
            sums[lane] += product(&values[lane], &indices[lane]);
        }
    }
    let rest = value_fours.remainder().iter().zip(index_fours.remainder());
    for (sum, (value, index)) in sums.iter_mut().zip(rest) {
        *sum += product(value, index);
    }
    (sums[0] + sums[1]) + (sums[2] + sums[3])
}

#[cfg(test)]
mod tests;

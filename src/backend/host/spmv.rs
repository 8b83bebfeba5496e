//! SpMV on the host, y = alpha · op(A) · x + beta · y, by one driver ([`Spmv`]) for all layouts of op(A).
//! Submodule [`sell`] multiplies on slices, [`stream`] on equal tiles, [`dasp`] on classes of rows,
//! [`mask_block`] on blocks; this file is `csr`, on rows of op(A).
//!
//! Items of the [`Schedule`](super::schedule::Schedule) run in parallel. A row is summed by [`dot`]; a long
//! row is the sum, in order, of the dots of its chunks.

mod dasp;
mod mask_block;
mod quads;
mod sell;
mod stream;

use std::marker::PhantomData;
use std::ops::Range;

use super::layout::{Csr, Layout, OpA};
use super::operand::{Factor, Ints, Shared};
use super::scalars::Scalars;
use super::schedule::{self, Grain, Work};
use super::vector::{end_streaming, fill_past_caches, prefetch, PAST_CACHES};
use super::{timing, Host};
use crate::backend::{DenseExecutor, LayoutInfo, SpmvExecutor};
use crate::error::Result;
use crate::matrix::DenseVector;
use crate::memory::{self, Context};
use crate::operation::SpmvBackend;
use crate::problem::SpmvProblem;
use crate::reorder::KeptOrder;
use crate::select::{Choice, Method, SpmvInspection};
use crate::support::{self, Combo, ComboVisitor};
use crate::types::{Accumulator, Address, Index, Reorder, ScalarsAt, Storage};

impl SpmvBackend for Host {
    fn build_spmv(
        &self,
        cx: &Context,
        problem: &SpmvProblem,
        choice: &Choice,
        _inspection: Option<&SpmvInspection>,
    ) -> Result<Box<SpmvExecutor>> {
        build(cx, problem, choice)
    }

    fn time_spmv(&self, cx: &Context, problem: &SpmvProblem, executor: &SpmvExecutor) -> Result<f64> {
        timing::spmv(cx, problem, executor)
    }
}

/// Builds the executor for the problem's types.
pub(crate) fn build(cx: &Context, problem: &SpmvProblem, choice: &Choice) -> Result<Box<SpmvExecutor>> {
    struct Build<'a>(&'a Context, &'a SpmvProblem, &'a Choice);
    impl ComboVisitor for Build<'_> {
        type Output = Box<SpmvExecutor>;
        fn visit<C: Combo>(self) -> Result<Self::Output> {
            let Build(cx, problem, choice) = self;
            let a = OpA { a: problem.a, op: problem.op, keep: problem.value_updates };
            Ok(match &choice.method {
                Method::Dasp => Spmv::<C, _>::boxed(a, dasp::arrange::<C::A>(cx, &a)?),
                Method::Sell => quads::sell::<C>(cx, a)?,
                Method::Stream => Spmv::<C, _>::boxed(a, stream::arrange::<C::A>(cx, &a)?),
                Method::MaskBlock => Spmv::<C, _>::boxed(a, mask_block::arrange::<C::A>(cx, &a)?),
                Method::Csr(order) => {
                    Spmv::<C, _>::boxed(a, Csr::<C::A>::build(cx, &a, choice.a, order, Grain::SPMV)?)
                }
                other => return Err(other.is_of_another_operation()),
            })
        }
    }
    support::dispatch(problem.types, Build(cx, problem, choice))
}

/// Operands and scalars of one call, for any layout.
struct Opened<'a, C: Combo> {
    x: &'a [C::X],
    y: Shared<C::Y>,
    /// Old values of y, if they are elsewhere and are read.
    old: Option<&'a [C::Y]>,
    /// Workspace for the partial sums of long rows.
    sums: Shared<C::Acc>,
    scalars: Scalars<C::Acc>,
}

impl<C: Combo> Opened<'_, C> {
    /// Adds the partial sums of some pieces in order, after all of them are computed.
    fn add_up(&self, pieces: Range<usize>) -> C::Acc {
        let mut sum = C::Acc::ZERO;
        for piece in pieces {
            // SAFETY: all items are done, so nothing writes sums.
            sum += unsafe { self.sums.get(piece) };
        }
        sum
    }

    /// Returns some rows of y, with the old values in them.
    ///
    /// # Safety
    /// No other thread uses these rows.
    #[inline(always)]
    unsafe fn rows<'y>(&self, rows: Range<usize>) -> &'y mut [C::Y] {
        // SAFETY: the caller's promise; y stays borrowed until all threads are done.
        let y = unsafe { self.y.part(rows.clone()) };
        if let Some(old) = self.old {
            y.copy_from_slice(&old[rows]);
        }
        y
    }

    /// Stores one row of y, which no other thread uses.
    fn store(&self, row: usize, sum: C::Acc) {
        // SAFETY: layouts give each row to one thread.
        self.scalars.store(sum, &mut unsafe { self.rows(row..row + 1) }[0]);
    }
}

/// Opens alpha, beta, x, y and a workspace of `pieces` sums. Returns `None` if the result is just beta · y,
/// after storing that. `old` has the old values of y and may be y itself. It is never inlined, since the executor of
/// each layout would have its code.
#[inline(never)]
fn open<'a, C: Combo>(
    cx: &Context,
    parallel: bool,
    (alpha, beta): ScalarsAt,
    (x, old, y): (&DenseVector, &DenseVector, &DenseVector),
    pieces: usize,
) -> Result<Option<Opened<'a, C>>> {
    let scalars = Scalars::<C::Acc>::read(alpha, beta)?;
    let len = y.len as usize;
    let old = match old.values == y.values || scalars.skip_old() {
        true => None,
        // SAFETY: the descriptor promises that many elements, unchanged during the call.
        false => Some(unsafe { memory::open::<C::Y>("y", old.values, len)? }),
    };
    // SAFETY: the descriptor promises that many elements, which nothing else
    // uses during the call; the plan has refused an x that overlaps.
    let y = unsafe { memory::open_mut::<C::Y>("y", y.values, len)? };
    if scalars.skip_product() {
        if let Some(old) = old {
            y.copy_from_slice(old);
        }
        scalars.scale(parallel, y, 1, len, len);
        return Ok(None);
    }
    // SAFETY: the descriptor promises that many elements, unchanged during the call.
    let x = unsafe { memory::open::<C::X>("x", x.values, x.len as usize)? };
    cx.workspace.require(pieces * size_of::<C::Acc>())?;
    // SAFETY: `require` has checked the size; the handle lends its workspace to
    // one call at a time.
    let sums = unsafe { memory::open_mut::<C::Acc>("workspace", cx.workspace.address, pieces)? };
    Ok(Some(Opened { x, y: Shared::new(y), old, sums: Shared::new(sums), scalars }))
}

/// Product that a layout implements.
trait SpmvProduct<C: Combo>: Layout {
    /// Number of partial sums that the workspace must hold.
    fn sums(&self) -> usize;

    /// Multiplies on all threads or on this one; `opened` has room for as many sums as [`Self::sums`] says.
    fn multiply(&self, parallel: bool, opened: Opened<'_, C>) -> Result<()>;
}

/// Executor of SpMV for any layout.
struct Spmv<C, L> {
    a: OpA,
    layout: L,
    combo: PhantomData<C>,
}

impl<C: Combo, L: SpmvProduct<C> + 'static> Spmv<C, L> {
    fn new(a: OpA, layout: L) -> Self {
        Spmv { a, layout, combo: PhantomData }
    }

    fn boxed(a: OpA, layout: L) -> Box<SpmvExecutor> {
        Box::new(Self::new(a, layout))
    }

    /// Multiplies on all threads or on this one; the vectors are x, the old values of y, and y.
    fn run(
        &self,
        cx: &Context,
        parallel: bool,
        scalars: ScalarsAt,
        [x, old, y]: [&DenseVector; 3],
    ) -> Result<()> {
        match open::<C>(cx, parallel, scalars, (x, old, y), self.layout.sums())? {
            Some(opened) => self.layout.multiply(parallel, opened),
            None => Ok(()),
        }
    }
}

impl<C: Combo, L: SpmvProduct<C> + 'static> DenseExecutor<DenseVector> for Spmv<C, L> {
    fn workspace_bytes(&self, _n: usize) -> usize {
        self.layout.sums() * size_of::<C::Acc>()
    }

    fn product(&self, cx: &Context, scalars: ScalarsAt, vectors: [&DenseVector; 3]) -> Result<()> {
        self.run(cx, schedule::is_parallel(self.layout.size().0), scalars, vectors)
    }

    fn reads_elsewhere(&self, _: &DenseVector, _: &DenseVector) -> bool {
        true
    }

    fn update_values(&mut self, cx: &Context, values: Address) -> Result<()> {
        self.a.update_values(cx, &mut self.layout, values)
    }

    fn layout(&self) -> LayoutInfo {
        self.layout.info()
    }

    fn reorder(&self) -> Reorder {
        self.layout.reorder()
    }

    fn row_order(&self, _: &Context) -> Result<Option<KeptOrder>> {
        self.layout.row_order()
    }

    fn details(&self) -> String {
        self.layout.details()
    }
}

impl<C: Combo> SpmvProduct<C> for Csr<C::A> {
    fn sums(&self) -> usize {
        self.schedule.slots()
    }

    fn multiply(&self, parallel: bool, opened: Opened<'_, C>) -> Result<()> {
        let (rows, values) = self.operand.rows("A")?;
        let order = self.order.as_deref();
        let streams = opened.scalars.skip_old() && opened.y.bytes() >= PAST_CACHES;
        let product = CsrProduct::<C> { rows, values, order, opened, streams };
        self.schedule.for_each_item(parallel, |work| match (rows.offsets, rows.indices) {
            (Ints::I32(offsets), Ints::I32(indices)) => product.item(offsets, indices, work),
            (Ints::I64(offsets), Ints::I32(indices)) => product.item(offsets, indices, work),
            (Ints::I64(offsets), Ints::I64(indices)) => product.item(offsets, indices, work),
            (Ints::I32(_), Ints::I64(_)) => unreachable!("columns have at most the bits of offsets"),
        });
        let opened = &product.opened;
        self.schedule.for_each_long_row(parallel, |row, slots| {
            opened.store(order.map_or(row, |order| order[row] as usize), opened.add_up(slots));
        });
        Ok(())
    }
}

/// Entries by which prefetches behind empty rows are ahead.
const AHEAD: usize = 64;

/// State of one product of `csr`.
struct CsrProduct<'a, C: Combo> {
    rows: Factor<'a>,
    values: &'a [C::A],
    /// Row of y for each row, if an order is used.
    order: Option<&'a [u32]>,
    opened: Opened<'a, C>,
    /// True if runs of empty rows are stored past the caches.
    streams: bool,
}

impl<C: Combo> CsrProduct<'_, C> {
    /// Prefetches elements of x for as many entries as a row has, at most [`AHEAD`], that follow this many
    /// entries behind. Behind empty rows they are too far away for the processor to see, and each row would
    /// wait for memory by itself.
    #[inline(always)]
    fn fetch_ahead<J: Index>(&self, indices: &[J], row: Range<usize>) {
        let x = self.opened.x.as_ptr();
        let first = indices.len().min(row.start + AHEAD);
        for index in indices[first..].iter().take(row.len().min(AHEAD)) {
            prefetch(x.wrapping_add((index.to_i64() - self.rows.base) as usize));
        }
    }

    /// Stores consecutive empty rows.
    fn empty_rows(&self, y: &mut [C::Y]) {
        let scalars = &self.opened.scalars;
        if !scalars.skip_old() {
            return y.iter_mut().for_each(|y| scalars.store(C::Acc::ZERO, y));
        }
        let mut value = C::Y::round(C::Acc::ZERO);
        scalars.store(C::Acc::ZERO, &mut value);
        match self.streams {
            true => fill_past_caches(y, value),
            false => y.fill(value),
        }
    }

    /// Computes one item. It is compiled for each pair of index types: with short rows, choosing the type of
    /// offsets at run time would take a fifth of the time.
    fn item<I: Index, J: Index>(&self, offsets: &[I], indices: &[J], work: Work) {
        let base = self.rows.base;
        let position = |offset: I| (offset.to_i64() - base) as usize;
        let dot = |positions: Range<usize>| {
            dot::<C, J>(&self.values[positions.clone()], &indices[positions], base, self.opened.x)
        };
        match (work, self.order) {
            (Work::Rows(range), Some(order)) => {
                // Each row occurs in the order once, as `store` requires.
                range.for_each(|row| {
                    let sum = dot(position(offsets[row])..position(offsets[row + 1]));
                    self.opened.store(order[row] as usize, sum);
                });
            }
            (Work::Rows(range), None) => {
                // SAFETY: items have disjoint rows.
                let y = unsafe { self.opened.rows(range.clone()) };
                let offsets = &offsets[range.start..=range.end];
                let mut row = 0;
                while row < y.len() {
                    let (start, end) = (offsets[row], offsets[row + 1]);
                    if start != end {
                        let sum = dot(position(start)..position(end));
                        self.opened.scalars.store(sum, &mut y[row]);
                        row += 1;
                    } else {
                        let rows = 1 + repetitions(&offsets[row + 2..], end);
                        self.empty_rows(&mut y[row..row + rows]);
                        row += rows;
                        if row < y.len() {
                            self.fetch_ahead(indices, position(offsets[row])..position(offsets[row + 1]));
                        }
                    }
                }
                if self.streams {
                    end_streaming();
                }
            }
            // SAFETY: each slot belongs to one item, and nothing reads it
            // before all items are done.
            (Work::Chunk { positions, slot }, _) => unsafe { self.opened.sums.set(slot, dot(positions)) },
        }
    }
}

/// Returns how many of the first offsets are `value`.
#[inline(always)]
fn repetitions<I: Index>(offsets: &[I], value: I) -> usize {
    const GROUP: usize = 16;
    // Without a branch in a group, so that it becomes vector code.
    let is_equal = |group: &&[I]| group.iter().fold(true, |all, &offset| all & (offset == value));
    let groups = offsets.chunks_exact(GROUP).take_while(is_equal).count() * GROUP;
    groups + offsets[groups..].iter().take_while(|&&offset| offset == value).count()
}

/// Number of sums of a row that run side by side: an addition takes four cycles, and although two may start
/// in each cycle, memory delivers one entry in about four cycles.
const LANES: usize = 4;

/// Returns Σ values · x[indices]: entry i is added to sum i mod 4, and the four sums are added pairwise. The
/// result of a row depends on its entries alone.
#[inline(always)]
fn dot<C: Combo, J: Index>(values: &[C::A], indices: &[J], base: i64, x: &[C::X]) -> C::Acc {
    // An index outside x, from arrays that were changed after analysis, panics.
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

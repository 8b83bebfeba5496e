//! SpMV: y = alpha · op(A) · x + beta · y, by one driver ([`Spmv`]) for all layouts of op(A). [`sell`] is that on
//! slices, [`stream`] on equal tiles, [`dasp`] on classes of rows, [`mask_block`] on blocks; here is `csr`, on rows
//! of op(A).
//!
//! Items of the [`Schedule`](super::schedule::Schedule) run in parallel. A row is summed by [`dot`]; a
//! long row is the sum, in order, of the dots of its chunks.

mod dasp;
mod mask_block;
mod sell;
mod stream;

use std::marker::PhantomData;
use std::ops::Range;

use super::layout::{Csr, Layout, OpA};
use super::operand::{Factor, Ints, Shared};
use super::scalars::Scalars;
use super::schedule::{self, Grain, Work};
use super::slices::Slices;
use super::{timing, Host};
use crate::backend::{LayoutInfo, SpmvExecutor};
use crate::error::Result;
use crate::matrix::DenseVector;
use crate::memory::{self, Context};
use crate::operation::SpmvBackend;
use crate::problem::SpmvProblem;
use crate::reorder::KeptOrder;
use crate::select::{Choice, Method, Surveyed};
use crate::support::{self, Combo, ComboVisitor};
use crate::types::{Accumulator, Address, Index, Reorder, ScalarsAt, Storage};

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
            let a = OpA { a: problem.a, op: problem.op, keep: problem.value_updates };
            Ok(match &choice.method {
                Method::Dasp => Spmv::<C, _>::boxed(a, dasp::arrange::<C::A>(cx, &a)?),
                Method::Sell => Spmv::<C, _>::boxed(a, Slices::<C::A>::arrange(cx, &a)?),
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

/// What a call works with, whatever the layout.
struct Opened<'a, C: Combo> {
    x: &'a [C::X],
    y: Shared<C::Y>,
    /// y's old values, where they are elsewhere and are read.
    old: Option<&'a [C::Y]>,
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

    /// y of some rows, with its old values.
    ///
    /// # Safety
    /// This thread has the rows alone.
    #[inline(always)]
    unsafe fn rows<'y>(&self, rows: Range<usize>) -> &'y mut [C::Y] {
        // SAFETY: the caller's promise, and y is borrowed until all are done.
        let y = unsafe { self.y.part(rows.clone()) };
        if let Some(old) = self.old {
            y.copy_from_slice(&old[rows]);
        }
        y
    }

    /// Writes y of a row, which this thread has alone.
    fn store(&self, row: usize, sum: C::Acc) {
        // SAFETY: layouts give each row to one thread.
        self.scalars.store(sum, &mut unsafe { self.rows(row..row + 1) }[0]);
    }
}

/// Opens alpha, beta, x, y and a workspace of `pieces` sums; None if y is beta · y,
/// which it then is already. y's old values are in `old` if that is not y.
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

/// The product on a layout.
trait Product<C: Combo>: Layout {
    /// Sums that the workspace must hold.
    fn sums(&self) -> usize;

    /// The product, on all threads or on this one. `opened` has that many sums.
    fn multiply(&self, parallel: bool, opened: Opened<'_, C>) -> Result<()>;
}

/// The executor, whatever the layout.
struct Spmv<C, L> {
    a: OpA,
    layout: L,
    combo: PhantomData<C>,
}

impl<C: Combo, L: Product<C> + 'static> Spmv<C, L> {
    fn new(a: OpA, layout: L) -> Self {
        Spmv { a, layout, combo: PhantomData }
    }

    fn boxed(a: OpA, layout: L) -> Box<dyn SpmvExecutor> {
        Box::new(Self::new(a, layout))
    }

    /// The product, on all threads or on this one, of x, y's old values and y.
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

impl<C: Combo, L: Product<C> + 'static> SpmvExecutor for Spmv<C, L> {
    fn workspace_bytes(&self) -> usize {
        self.layout.sums() * size_of::<C::Acc>()
    }

    fn product(&self, cx: &Context, scalars: ScalarsAt, vectors: [&DenseVector; 3]) -> Result<()> {
        self.run(cx, schedule::is_parallel(self.layout.units()), scalars, vectors)
    }

    fn reads_elsewhere(&self) -> bool {
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

impl<C: Combo> Product<C> for Csr<C::A> {
    fn sums(&self) -> usize {
        self.schedule.slots()
    }

    fn multiply(&self, parallel: bool, opened: Opened<'_, C>) -> Result<()> {
        let (rows, values) = self.operand.rows("A")?;
        let order = self.order.as_deref();
        let product = CsrProduct::<C> { rows, values, order, opened };
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

/// One product of `csr` while it runs.
struct CsrProduct<'a, C: Combo> {
    rows: Factor<'a>,
    values: &'a [C::A],
    /// The row of y of each row, where that is not its own.
    order: Option<&'a [u32]>,
    opened: Opened<'a, C>,
}

impl<C: Combo> CsrProduct<'_, C> {
    /// An item, compiled for each pair of types: of short rows, reading offsets of either type would be a fifth of
    /// the time.
    fn item<I: Index, J: Index>(&self, offsets: &[I], indices: &[J], work: Work) {
        let base = self.rows.base;
        let position = |offset: I| (offset.to_i64() - base) as usize;
        let dot = |positions: Range<usize>| {
            dot::<C, J>(&self.values[positions.clone()], &indices[positions], base, self.opened.x)
        };
        match (work, self.order) {
            (Work::Rows(range), Some(order)) => {
                // An order has each row once, as `store` wants it.
                range.for_each(|row| {
                    let sum = dot(position(offsets[row])..position(offsets[row + 1]));
                    self.opened.store(order[row] as usize, sum);
                });
            }
            (Work::Rows(range), None) => {
                // SAFETY: items have disjoint rows.
                let y = unsafe { self.opened.rows(range.clone()) };
                let mut start = position(offsets[range.start]);
                for (y, &end) in y.iter_mut().zip(&offsets[range.start + 1..]) {
                    let end = position(end);
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

//! SpMM: C = alpha · op(A) · op(B) + beta · C, with one executor ([`Spmm`]) for all layouts of op(A). The
//! product is in [`window`] for windows of rows, in [`dense`] for A as a dense matrix, in [`sell`] for slices
//! of rows, in [`bcsr`] for `smat` and in [`swift`] for `swift`. This file has the algorithm `row` on rows of
//! op(A); `csr`, which differs from it only on GPUs, is the same here.
//!
//! Items of the [`Schedule`](super::schedule::Schedule) run in parallel. An item is swept once per block of
//! columns of C: the item's part of A stays in the first-level cache, and rows of B that neighbouring rows of
//! A share are read from there too. Each element of C is one sum in the order of the row's entries; a long
//! row is the sum, in order, of the partial sums of its chunks.

mod bcsr;
mod dense;
mod sell;
mod swift;
mod window;

use std::marker::PhantomData;
use std::ops::Range;

use super::layout::{Csr, Layout, OpA};
use super::operand::{Factor, Ints, Shared};
use super::scalars::Scalars;
use super::schedule::{self, Grain, Work};
use super::slices::Slices;
use super::{lanes, timing, Host};
use crate::backend::{LayoutInfo, SpmmExecutor};
use crate::error::Result;
use crate::format::{MaskedWindow, Window};
use crate::matrix::DenseMatrix;
use crate::memory::{self, Context};
use crate::operation::SpmmBackend;
use crate::problem::SpmmProblem;
use crate::reorder::KeptOrder;
use crate::select::{Choice, Method, SpmmInspection};
use crate::support::{self, Combo, ComboVisitor, Types};
use crate::types::{
    Accumulator, Address, ComputeType, Element, Operation, Order, Reorder, ScalarsAt, Storage,
};

impl SpmmBackend for Host {
    fn build_spmm(
        &self,
        cx: &Context,
        problem: &SpmmProblem,
        choice: &Choice,
        _inspection: Option<&SpmmInspection>,
    ) -> Result<Box<dyn SpmmExecutor>> {
        build(cx, problem, choice)
    }

    fn time_spmm(&self, cx: &Context, problem: &SpmmProblem, executor: &dyn SpmmExecutor) -> Result<f64> {
        timing::spmm(cx, problem, executor)
    }
}

/// Builds the executor for the problem's types.
pub(crate) fn build(cx: &Context, problem: &SpmmProblem, choice: &Choice) -> Result<Box<dyn SpmmExecutor>> {
    /// Visitor for algorithms that support all values: the context, the problem, its op(A), and the choice.
    struct Build<'a>(&'a Context, &'a SpmmProblem, OpA, &'a Choice);
    /// Visitor for algorithms that support real values.
    struct BuildReal<'a>(Build<'a>);
    /// Visitor for algorithms that support fp64 and fp32 alone.
    struct BuildFloat<'a>(Build<'a>);
    impl ComboVisitor for Build<'_> {
        type Output = Box<dyn SpmmExecutor>;
        fn visit<C: Combo>(self) -> Result<Self::Output> {
            let Build(cx, problem, a, choice) = self;
            match &choice.method {
                Method::Row(order) | Method::SpmmCsr(order) => {
                    let layout = Csr::<C::A>::build(cx, &a, choice.a, order, Grain::SPMM)?;
                    Ok(Spmm::<C, _>::boxed(problem, a, layout))
                }
                other => Err(other.is_of_another_operation()),
            }
        }
    }
    impl ComboVisitor for BuildReal<'_> {
        type Output = Box<dyn SpmmExecutor>;
        fn visit<C: Combo>(self) -> Result<Self::Output> {
            let Build(cx, problem, a, choice) = self.0;
            Ok(match &choice.method {
                // The same tiles as in the CUDA backend, so that tests here cover its format.
                Method::Window(_) if size_of::<C::A>() == 2 => {
                    let windows: Window<C::A> = window::arrange(cx, &a)?;
                    Spmm::<C, _>::boxed(problem, a, windows)
                }
                Method::Window(_) => {
                    let windows: MaskedWindow<C::A> = window::arrange(cx, &a)?;
                    Spmm::<C, _>::boxed(problem, a, windows)
                }
                Method::Dense(_) => Spmm::<C, _>::boxed(problem, a, dense::All::<C>::arrange(cx, &a)?),
                Method::Smat { clusters, width } => {
                    let layout = bcsr::arrange::<C::A>(cx, &a, clusters, *width)?;
                    Spmm::<C, _>::boxed(problem, a, layout)
                }
                Method::SpmmSell => Spmm::<C, _>::boxed(problem, a, Slices::<C::A>::arrange(cx, &a)?),
                other => return Err(other.is_of_another_operation()),
            })
        }
    }
    impl ComboVisitor for BuildFloat<'_> {
        type Output = Box<dyn SpmmExecutor>;
        fn visit<C: Combo>(self) -> Result<Self::Output> {
            let Build(cx, problem, a, _) = self.0;
            Ok(Spmm::<C, _>::boxed(problem, a, swift::arrange::<C::A>(cx, &a)?))
        }
    }
    // TF32 allows factors to be rounded but does not require it: fp32 arithmetic is one way to compute it,
    // and a CPU has no faster one.
    let compute = match problem.types.compute {
        ComputeType::Tf32 => ComputeType::R32F,
        other => other,
    };
    let types = Types { compute, ..problem.types };
    let a = OpA { a: problem.a, op: problem.op, keep: problem.value_updates };
    let build = Build(cx, problem, a, choice);
    match &choice.method {
        Method::Window(_) | Method::Dense(_) | Method::Smat { .. } | Method::SpmmSell => {
            support::dispatch_real(types, BuildReal(build))
        }
        Method::Swift { .. } => support::dispatch_float(types, BuildFloat(build)),
        _ => support::dispatch(types, build),
    }
}

/// A layout with its SpMM product.
trait SpmmProduct<C: Combo>: Layout {
    /// Returns the number of partial sums that the workspace must hold for each column of C.
    fn sums(&self) -> usize {
        0
    }

    /// Computes the product, on all threads or on this one. `opened` has space for [`Self::sums`] sums per
    /// column.
    fn multiply(&self, parallel: bool, opened: Opened<'_, C>) -> Result<()>;

    /// Returns the columns of a block, for layouts of blocks.
    fn block_width(&self) -> Option<usize> {
        None
    }
}

/// The executor of SpMM for a layout `L`.
struct Spmm<C, L> {
    a: OpA,
    op_b: Operation,
    layout: L,
    combo: PhantomData<C>,
}

impl<C: Combo, L: SpmmProduct<C> + 'static> Spmm<C, L> {
    fn new(problem: &SpmmProblem, a: OpA, layout: L) -> Self {
        Spmm { a, op_b: problem.op_b, layout, combo: PhantomData }
    }

    fn boxed(problem: &SpmmProblem, a: OpA, layout: L) -> Box<dyn SpmmExecutor> {
        Box::new(Self::new(problem, a, layout))
    }

    /// Computes the product for B, C's old values and C, on all threads or on this one.
    fn run(
        &self,
        cx: &Context,
        parallel: bool,
        scalars: ScalarsAt,
        [b, old, c]: [&DenseMatrix; 3],
    ) -> Result<()> {
        match open::<C>(cx, parallel, scalars, self.op_b, (b, old, c), self.layout.sums())? {
            Some(opened) => self.layout.multiply(parallel, opened),
            None => Ok(()),
        }
    }
}

/// Returns the bytes of workspace. It saturates to a size that no workspace has, so that execute refuses it.
fn workspace_bytes<T>(sums: usize, n: usize) -> usize {
    sums.saturating_mul(n).saturating_mul(size_of::<T>())
}

impl<C: Combo, L: SpmmProduct<C> + 'static> SpmmExecutor for Spmm<C, L> {
    fn workspace_bytes(&self, n: usize) -> usize {
        workspace_bytes::<C::Acc>(self.layout.sums(), n)
    }

    fn product(&self, cx: &Context, scalars: ScalarsAt, matrices: [&DenseMatrix; 3]) -> Result<()> {
        let parallel = schedule::is_parallel(self.layout.size().0.saturating_mul(matrices[2].cols as usize));
        self.run(cx, parallel, scalars, matrices)
    }

    fn reads_elsewhere(&self, _: &DenseMatrix, _: &DenseMatrix) -> bool {
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

    fn block_width(&self) -> Option<usize> {
        self.layout.block_width()
    }

    fn details(&self) -> String {
        self.layout.details()
    }
}

/// C's old values in another array than the result's.
#[derive(Clone, Copy)]
struct Old<'a, Y> {
    values: &'a [Y],
    strides: (usize, usize),
}

/// Opened arguments of a call, for any layout.
struct Opened<'a, C: Combo> {
    b: &'a [C::X],
    /// Elements between rows and between columns of op(B).
    b_strides: (usize, usize),
    conjugate_b: bool,
    c: Shared<C::Y>,
    c_strides: (usize, usize),
    /// C's old values, if they are in another array and are read.
    old: Option<Old<'a, C::Y>>,
    /// Columns of C.
    n: usize,
    /// Workspace with the partial sums that the layout needs for each column of C.
    sums: Shared<C::Acc>,
    scalars: Scalars<C::Acc>,
}

/// Opens alpha, beta, B, C and a workspace of `sums` sums for each column of C. Returns `None` if C is empty
/// or alpha is 0; in the latter case it has computed C = beta · C. `old` is a matrix with C's old values, or
/// C itself.
fn open<'a, C: Combo>(
    cx: &Context,
    parallel: bool,
    (alpha, beta): ScalarsAt,
    op_b: Operation,
    (b, old, c): (&DenseMatrix, &DenseMatrix, &DenseMatrix),
    sums: usize,
) -> Result<Option<Opened<'a, C>>> {
    let scalars = Scalars::<C::Acc>::read(alpha, beta)?;
    // SAFETY: the descriptor promises that extent, which nothing else uses during the call (except for the
    // padding, which is not accessed here); the plan has refused a B that overlaps.
    let c_values = unsafe { memory::open_mut::<C::Y>("C", c.values, c.extent())? };
    if c_values.is_empty() {
        return Ok(None);
    }
    let is_elsewhere = !old.lines().are(&c.lines()) && !scalars.skip_old();
    if scalars.skip_product() {
        if is_elsewhere {
            memory::copy::copy_lines(&old.lines(), &c.lines());
        }
        let (outer, inner) = match c.order {
            Order::Col => (c.cols, c.rows),
            Order::Row => (c.rows, c.cols),
        };
        scalars.scale(parallel, c_values, outer as usize, inner as usize, c.ld as usize);
        return Ok(None);
    }
    // SAFETY: the descriptor promises that extent, unchanged during the call.
    let b_values = unsafe { memory::open::<C::X>("B", b.values, b.extent())? };
    let old = match is_elsewhere {
        true => Some(Old {
            // SAFETY: the same promise as for B.
            values: unsafe { memory::open::<C::Y>("C", old.values, old.extent())? },
            strides: old.strides(),
        }),
        false => None,
    };
    let n = c.cols as usize;
    cx.workspace.require(workspace_bytes::<C::Acc>(sums, n))?;
    // SAFETY: `require` has checked the size, so that the product does not overflow; the handle lends its
    // workspace to one call at a time.
    let sums = unsafe { memory::open_mut::<C::Acc>("workspace", cx.workspace.address, sums * n)? };
    Ok(Some(Opened {
        b: b_values,
        b_strides: b.transposed(op_b).strides(),
        conjugate_b: op_b.conjugates(),
        c: Shared::new(c_values),
        c_strides: c.strides(),
        old,
        n,
        sums: Shared::new(sums),
        scalars,
    }))
}

impl<C: Combo> Opened<'_, C> {
    /// Converts an element of B to one of op(B).
    #[inline(always)]
    fn load(&self, b: C::X) -> C::Acc {
        if self.conjugate_b {
            b.conjugate().widen()
        } else {
            b.widen()
        }
    }

    /// Adds `value` times a part of a row of op(B), from column `first` on, to `sums`. Panics for a row
    /// outside B, which occurs only if the user has changed the index arrays since analysis.
    #[inline(always)]
    fn add(&self, sums: &mut [C::Acc], value: C::Acc, row: usize, first: usize) {
        let at = row * self.b_strides.0 + first * self.b_strides.1;
        if self.b_strides.1 == 1 {
            let b = &self.b[at..at + sums.len()];
            for (sum, &b) in sums.iter_mut().zip(b) {
                *sum += value * self.load(b);
            }
        } else {
            for (lane, sum) in sums.iter_mut().enumerate() {
                *sum += value * self.load(self.b[at + lane * self.b_strides.1]);
            }
        }
    }

    /// Writes an element of C, which no other thread accesses.
    #[inline(always)]
    fn store(&self, row: usize, col: usize, sum: C::Acc) {
        let at = row * self.c_strides.0 + col * self.c_strides.1;
        // SAFETY: layouts give each element to one thread, and C is borrowed until all are done.
        let c = &mut unsafe { self.c.part(at..at + 1) }[0];
        if let Some(Old { values, strides }) = self.old {
            *c = values[row * strides.0 + col * strides.1];
        }
        self.scalars.store(sum, c);
    }

    /// Computes some rows of C, which no other thread accesses, W columns at a time. `add` computes the sums;
    /// its arguments are sums set to zero, the first column and the number of columns. Sums at index i belong
    /// to row `row(i)`, or to none.
    #[inline(always)]
    fn sweep<const ROWS: usize, const W: usize>(
        &self,
        row: impl Fn(usize) -> Option<usize>,
        mut add: impl FnMut(&mut [[C::Acc; W]; ROWS], usize, usize),
    ) {
        for first in (0..self.n).step_by(W) {
            let columns = W.min(self.n - first);
            let mut sums = [[C::Acc::ZERO; W]; ROWS];
            add(&mut sums, first, columns);
            for (at, sums) in sums.iter().enumerate() {
                let Some(row) = row(at) else { continue };
                for (lane, &sum) in sums[..columns].iter().enumerate() {
                    self.store(row, first + lane, sum);
                }
            }
        }
    }
}

impl<C: Combo> SpmmProduct<C> for Csr<C::A> {
    fn sums(&self) -> usize {
        self.schedule.slots()
    }

    fn multiply(&self, parallel: bool, opened: Opened<'_, C>) -> Result<()> {
        let (rows, values) = self.operand.rows("A")?;
        let product = RowProduct::<C> { rows, values, order: self.order.as_deref(), opened };
        self.schedule.for_each_item(parallel, |work| product.item(work));
        self.schedule.for_each_long_row(parallel, |row, slots| product.long_row(row, slots));
        Ok(())
    }
}

/// One running product of the algorithm `row`.
struct RowProduct<'a, C: Combo> {
    rows: Factor<'a>,
    values: &'a [C::A],
    /// Row of C for each stored row; `None` if rows are not reordered.
    order: Option<&'a [u32]>,
    /// Opened arguments, with `n` sums per slot.
    opened: Opened<'a, C>,
}

/// Number of 64-bit columns that are converted at one time.
const FEW: usize = 32;

impl<C: Combo> RowProduct<'_, C> {
    fn item(&self, work: Work) {
        if lanes::has_avx2() {
            // SAFETY: the processor has AVX2, FMA and F16C.
            return unsafe { self.sweep_avx2(&work) };
        }
        self.sweep::<{ cfg!(not(target_arch = "x86_64")) }>(&work);
    }

    /// Calls [`Self::sweep`], compiled for wider vectors. Products are rounded before they are added there
    /// too, so that the bits are the same.
    ///
    /// # Safety
    /// The processor has AVX2, FMA and F16C.
    #[cfg_attr(target_arch = "x86_64", target_feature(enable = "avx2,fma,f16c"))]
    unsafe fn sweep_avx2(&self, work: &Work) {
        self.sweep::<true>(work);
    }

    /// Computes an item, one block of columns after the other.
    ///
    /// 32 sums in fp32 fit into 16 vector registers, and their contiguous elements of B are whole cache
    /// lines. Columns that are ld elements apart cost a cache line each, and if ld is a power of two all of
    /// them share one set of the 8 ways of the first-level cache: hence 8 columns there. Without `ALL`, for
    /// rare processors, the code is compiled for two block widths only.
    #[inline(always)]
    fn sweep<const ALL: bool>(&self, work: &Work) {
        let Opened { b_strides, c_strides, n, .. } = self.opened;
        let (b_contiguous, c_contiguous) = (b_strides.1 == 1, c_strides.1 == 1);
        let mut first = 0;
        while first < n {
            first += match (b_contiguous, n - first) {
                (true, 32..) if ALL && c_contiguous => self.block::<32, true>(work, first),
                (true, 16..) if ALL && c_contiguous => self.block::<16, true>(work, first),
                (true, 8..) if ALL => self.block::<8, true>(work, first),
                (true, 4..) if ALL => self.block::<4, true>(work, first),
                (_, 8..) => self.block::<8, false>(work, first),
                (false, 4..) if ALL => self.block::<4, false>(work, first),
                _ => self.block::<1, false>(work, first),
            };
        }
    }

    /// Computes W columns of an item from column `first` on; returns W.
    #[inline(always)]
    fn block<const W: usize, const CONTIGUOUS: bool>(&self, work: &Work, first: usize) -> usize {
        match work {
            Work::Rows(rows) => {
                for row in rows.clone() {
                    let sums = self.sums::<W, CONTIGUOUS>(self.rows.range(row), first);
                    self.store(row, first, &sums);
                }
            }
            Work::Chunk { positions, slot } => {
                let sums = self.sums::<W, CONTIGUOUS>(positions.clone(), first);
                let at = slot * self.opened.n + first;
                // SAFETY: each slot belongs to one item, and nothing reads it before all items are done.
                unsafe { self.opened.sums.part(at..at + W) }.copy_from_slice(&sums);
            }
        }
        W
    }

    /// Returns the sums over these entries of A, for W columns.
    #[inline(always)]
    fn sums<const W: usize, const CONTIGUOUS: bool>(
        &self,
        positions: Range<usize>,
        first: usize,
    ) -> [C::Acc; W] {
        let (opened, mut rest) = (&self.opened, positions);
        let (row_stride, col_stride) = opened.b_strides;
        let mut sums = [C::Acc::ZERO; W];
        let mut few;
        // 32-bit columns take one iteration. 64-bit columns are converted a few at a time to 32-bit offsets
        // from the first of them, so that the inner loop is compiled once.
        while !rest.is_empty() {
            let (columns, base) = match self.rows.indices {
                Ints::I32(columns) => (&columns[rest.clone()], self.rows.base),
                Ints::I64(columns) => {
                    let columns = &columns[rest.clone()];
                    few = [0; FEW];
                    let mut count = 0;
                    for (to, column) in few.iter_mut().zip(columns) {
                        let Ok(relative) = i32::try_from(column - columns[0]) else { break };
                        *to = relative;
                        count += 1;
                    }
                    (&few[..count], self.rows.base - columns[0])
                }
            };
            let values = &self.values[rest.start..rest.start + columns.len()];
            for (value, &column) in values.iter().zip(columns) {
                let value = value.widen();
                let at = (i64::from(column) - base) as usize * row_stride + first * col_stride;
                // An index outside B (the user has changed the arrays since analysis) panics.
                if CONTIGUOUS {
                    let b: &[C::X] = &opened.b[at..at + W];
                    for lane in 0..W {
                        sums[lane] += value * opened.load(b[lane]);
                    }
                } else {
                    for (lane, sum) in sums.iter_mut().enumerate() {
                        *sum += value * opened.load(opened.b[at + lane * col_stride]);
                    }
                }
            }
            rest.start += columns.len();
        }
        sums
    }

    /// Writes a part of a row of C.
    #[inline(always)]
    fn store(&self, row: usize, first: usize, sums: &[C::Acc]) {
        let Opened { c, c_strides: (row_stride, col_stride), old, scalars, .. } = &self.opened;
        let row = self.order.map_or(row, |order| order[row] as usize);
        // A C of one row may be contiguous although its old values are not.
        if *col_stride == 1 && old.is_none_or(|old| old.strides.1 == 1) {
            let at = row * row_stride + first;
            // SAFETY: an order has each row once; only one item has this row, only this call these columns of
            // it, and C is borrowed until all items are done.
            let c = unsafe { c.part(at..at + sums.len()) };
            if let Some(Old { values, strides }) = old {
                c.copy_from_slice(&values[row * strides.0 + first..][..sums.len()]);
            }
            for (c, sum) in c.iter_mut().zip(sums) {
                scalars.store(*sum, c);
            }
        } else {
            for (lane, sum) in sums.iter().enumerate() {
                self.opened.store(row, first + lane, *sum);
            }
        }
    }

    /// Adds up the partial sums of a row that was divided, and writes the row.
    fn long_row(&self, row: usize, slots: Range<usize>) {
        let n = self.opened.n;
        // SAFETY: all items are done, and no other row has these slots.
        let sums = unsafe { self.opened.sums.part(slots.start * n..slots.end * n) };
        let (sums, others) = sums.split_at_mut(n);
        for other in others.chunks_exact(n) {
            for (sum, other) in sums.iter_mut().zip(other) {
                *sum += *other;
            }
        }
        self.store(row, 0, sums);
    }
}

#[cfg(test)]
mod tests;

//! SpMM. [`window`] is that on windows of rows, [`dense`] on all of A, [`sell`] on slices of rows;
//! this file is `row`, and `csr`, which is a form of it on GPUs alone:
//! C = alpha · op(A) · op(B) + beta · C on rows of op(A).
//!
//! Items of the [`Schedule`] run in parallel. An item is swept once per block
//! of columns of C: the item's part of A stays in the first-level cache, and
//! rows of B that neighbouring rows of A share are read from there too. Each
//! element of C is one sum in the order of the row's entries; a long row is
//! the sum, in order, of the sums of its chunks.

mod bcsr;
mod dense;
mod sell;
mod swift;
mod window;

use std::ops::Range;

use super::operand::{with_rows, Operand, Rows, Shared};
use super::scalars::Scalars;
use super::schedule::{self, Grain, Schedule, Work};
use super::{timing, Host};
use crate::algorithm::Algorithm;
use crate::backend::{LayoutInfo, SpmmExecutor};
use crate::error::Result;
use crate::matrix::DenseMatrix;
use crate::memory::{self, Context};
use crate::operation::SpmmBackend;
use crate::problem::SpmmProblem;
use crate::reorder::{is_kept, KeptOrder, Permutation};
use crate::select::{Choice, SpmmSurveyed};
use crate::support::{self, Combo, ComboVisitor, Types};
use crate::types::{Accumulator, Address, ComputeType, Element, Index, Order, Reorder, Storage};

impl SpmmBackend for Host {
    fn build_spmm(
        &self,
        cx: &Context,
        problem: &SpmmProblem,
        choice: &Choice,
        _surveyed: Option<&SpmmSurveyed>,
    ) -> Result<Box<dyn SpmmExecutor>> {
        build(cx, problem, choice)
    }

    fn time_spmm(&self, cx: &Context, problem: &SpmmProblem, executor: &dyn SpmmExecutor) -> Result<f64> {
        timing::spmm(cx, problem, executor)
    }
}

/// Builds the executor for the problem's types.
pub(crate) fn build(cx: &Context, problem: &SpmmProblem, choice: &Choice) -> Result<Box<dyn SpmmExecutor>> {
    struct Build<'a>(&'a Context, &'a SpmmProblem, &'a Choice);
    impl ComboVisitor for Build<'_> {
        type Output = Box<dyn SpmmExecutor>;
        fn visit<C: Combo>(self) -> Result<Self::Output> {
            Ok(Box::new(RowSpmm::<C>::build(self.0, self.1, self.2)?))
        }
    }
    /// Algorithms for real values.
    struct BuildReal<'a>(&'a Context, &'a SpmmProblem, &'a Choice);
    impl ComboVisitor for BuildReal<'_> {
        type Output = Box<dyn SpmmExecutor>;
        fn visit<C: Combo>(self) -> Result<Self::Output> {
            Ok(match self.2.algorithm {
                Algorithm::Window => Box::new(window::WindowSpmm::<C>::build(self.0, self.1)?),
                Algorithm::Dense => Box::new(dense::DenseSpmm::<C>::build(self.0, self.1)?),
                Algorithm::Smat => Box::new(bcsr::BcsrSpmm::<C>::build(self.0, self.1, self.2)?),
                _ => Box::new(sell::SellSpmm::<C>::build(self.0, self.1)?),
            })
        }
    }
    struct BuildSwift<'a>(&'a Context, &'a SpmmProblem);
    impl ComboVisitor for BuildSwift<'_> {
        type Output = Box<dyn SpmmExecutor>;
        fn visit<C: Combo>(self) -> Result<Self::Output> {
            Ok(Box::new(swift::SwiftSpmm::<C>::build(self.0, self.1)?))
        }
    }
    // TF32 allows factors to be rounded and does not ask for it: fp32
    // arithmetic is one way to compute it, and a CPU has no faster one.
    let compute = match problem.types.compute {
        ComputeType::Tf32 => ComputeType::R32F,
        other => other,
    };
    let types = Types { compute, ..problem.types };
    match choice.algorithm {
        Algorithm::Window | Algorithm::Dense | Algorithm::Smat | Algorithm::SpmmSell => {
            support::dispatch_real(types, BuildReal(cx, problem, choice))
        }
        Algorithm::Swift => support::dispatch_float(types, BuildSwift(cx, problem)),
        _ => support::dispatch(types, Build(cx, problem, choice)),
    }
}

/// The executor.
struct RowSpmm<C: Combo> {
    problem: SpmmProblem,
    operand: Operand<C::A>,
    /// The row of C of each row, where that is not its own.
    order: Option<Permutation>,
    reorder: Reorder,
    schedule: Schedule,
}

impl<C: Combo> RowSpmm<C> {
    fn build(cx: &Context, problem: &SpmmProblem, choice: &Choice) -> Result<Self> {
        let operand = Operand::build(cx, &problem.a, problem.op, choice.a, "A", problem.value_updates)?;
        let (operand, order) = operand.in_order(cx, choice)?;
        let schedule = with_rows!(&operand, "A", rows => {
            let rows: Rows<'_, _, _, C::A> = rows;
            Schedule::build(&cx.allocator, rows.pattern.offsets, Grain::SPMM)?
        });
        let reorder = if order.is_some() { choice.reorder } else { Reorder::None };
        Ok(RowSpmm { problem: *problem, operand, order, reorder, schedule })
    }

    /// Execute, on all threads or on this one.
    fn run(
        &self,
        cx: &Context,
        parallel: bool,
        (alpha, beta): (Address, Address),
        b: &DenseMatrix,
        c: &DenseMatrix,
    ) -> Result<()> {
        let scalars = Scalars::<C::Acc>::read(alpha, beta)?;
        // SAFETY: the descriptor promises that extent, which nothing else uses
        // during the call (but the padding, which no one touches here); the
        // plan has refused a B that overlaps.
        let c_values = unsafe { memory::open_mut::<C::Y>("C", c.values, c.extent())? };
        if c_values.is_empty() {
            return Ok(());
        }
        if scalars.skip_product() {
            let (outer, inner) = match c.order {
                Order::Col => (c.cols, c.rows),
                Order::Row => (c.rows, c.cols),
            };
            scalars.scale(parallel, c_values, outer as usize, inner as usize, c.ld as usize);
            return Ok(());
        }
        // SAFETY: the descriptor promises that extent, unchanged during the call.
        let b_values = unsafe { memory::open::<C::X>("B", b.values, b.extent())? };
        let n = c.cols as usize;
        cx.workspace.require(self.workspace_bytes(n))?;
        // SAFETY: `require` has checked the size, so that the product does not
        // overflow; the handle lends its workspace to one call at a time.
        let slots = unsafe {
            memory::open_mut::<C::Acc>("workspace", cx.workspace.address, self.schedule.slots() * n)?
        };
        let (c_shared, slots) = (Shared::new(c_values), Shared::new(slots));
        with_rows!(&self.operand, "A", rows => {
            let product = Product::<C, _, _> {
                rows,
                order: self.order.as_deref(),
                b: b_values,
                b_strides: b.transposed(self.problem.op_b).strides(),
                conjugate_b: self.problem.op_b.conjugates(),
                c: c_shared,
                c_strides: c.strides(),
                slots,
                n,
                scalars,
            };
            self.schedule.for_each_item(parallel, |work| product.item(work));
            self.schedule.for_each_long_row(parallel, |row, slots| product.long_row(row, slots));
        });
        Ok(())
    }
}

impl<C: Combo> SpmmExecutor for RowSpmm<C> {
    fn workspace_bytes(&self, n: usize) -> usize {
        // Saturates: no workspace has that many bytes, so that execute refuses.
        self.schedule.slots().saturating_mul(n).saturating_mul(size_of::<C::Acc>())
    }

    fn execute(
        &self,
        cx: &Context,
        alpha: Address,
        b: &DenseMatrix,
        beta: Address,
        c: &DenseMatrix,
    ) -> Result<()> {
        let parallel = schedule::is_parallel(self.schedule.units().saturating_mul(c.cols as usize));
        self.run(cx, parallel, (alpha, beta), b, c)
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
    /// The row of C of each row, where that is not its own.
    order: Option<&'a [u32]>,
    b: &'a [C::X],
    /// Elements between rows and between columns of op(B).
    b_strides: (usize, usize),
    conjugate_b: bool,
    c: Shared<C::Y>,
    c_strides: (usize, usize),
    /// `n` sums per slot.
    slots: Shared<C::Acc>,
    n: usize,
    scalars: Scalars<C::Acc>,
}

impl<C: Combo, I: Index, J: Index> Product<'_, C, I, J> {
    fn item(&self, work: Work) {
        #[cfg(target_arch = "x86_64")]
        if crate::backend::host::lanes::Avx2::is_here() {
            // SAFETY: the processor has AVX2, FMA and F16C.
            return unsafe { self.sweep_avx2(&work) };
        }
        self.sweep(&work);
    }

    /// [`Self::sweep`], compiled for wider vectors. Products are rounded before
    /// they are added there too, so that the bits are the same.
    ///
    /// # Safety
    /// The processor has AVX2, FMA and F16C.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn sweep_avx2(&self, work: &Work) {
        self.sweep(work);
    }

    /// Sweeps over an item, block of columns by block of columns.
    ///
    /// 32 sums of a contiguous row of B are what 16 vector registers hold in
    /// fp32, and read whole cache lines. Columns that lie ld apart cost a line
    /// each, and with ld a power of two all of them share one set of the first
    /// level's 8 ways: hence 8 there.
    #[inline(always)]
    fn sweep(&self, work: &Work) {
        let (b_contiguous, c_contiguous) = (self.b_strides.1 == 1, self.c_strides.1 == 1);
        let mut first = 0;
        while first < self.n {
            first += match (b_contiguous, self.n - first) {
                (true, 32..) if c_contiguous => self.block::<32, true>(work, first),
                (true, 16..) if c_contiguous => self.block::<16, true>(work, first),
                (true, 8..) => self.block::<8, true>(work, first),
                (true, 4..) => self.block::<4, true>(work, first),
                (true, _) => self.block::<1, true>(work, first),
                (false, 8..) => self.block::<8, false>(work, first),
                (false, 4..) => self.block::<4, false>(work, first),
                (false, _) => self.block::<1, false>(work, first),
            };
        }
    }

    /// W columns of an item from column `first`; returns W.
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
                let at = slot * self.n + first;
                // SAFETY: each slot belongs to one item, and nothing reads it
                // before all items are done.
                unsafe { self.slots.part(at..at + W) }.copy_from_slice(&sums);
            }
        }
        W
    }

    /// Σ over these entries of A, for W columns.
    #[inline(always)]
    fn sums<const W: usize, const CONTIGUOUS: bool>(
        &self,
        positions: Range<usize>,
        first: usize,
    ) -> [C::Acc; W] {
        let (row_stride, col_stride) = self.b_strides;
        let base = self.rows.pattern.base;
        let load = |b: C::X| if self.conjugate_b { b.conjugate().widen() } else { b.widen() };
        let mut sums = [C::Acc::ZERO; W];
        for (value, index) in
            self.rows.values[positions.clone()].iter().zip(&self.rows.pattern.indices[positions])
        {
            let value = value.widen();
            let at = (index.to_i64() - base) as usize * row_stride + first * col_stride;
            // An index outside B (the arrays changed behind the plan's back) panics.
            if CONTIGUOUS {
                let b: &[C::X] = &self.b[at..at + W];
                for lane in 0..W {
                    sums[lane] += value * load(b[lane]);
                }
            } else {
                for (lane, sum) in sums.iter_mut().enumerate() {
                    *sum += value * load(self.b[at + lane * col_stride]);
                }
            }
        }
        sums
    }

    /// Writes a part of a row of C.
    #[inline(always)]
    fn store(&self, row: usize, first: usize, sums: &[C::Acc]) {
        let (row_stride, col_stride) = self.c_strides;
        let row = self.order.map_or(row, |order| order[row] as usize);
        let at = row * row_stride + first * col_stride;
        if col_stride == 1 {
            // SAFETY: an order has each row once; only one item has this row, only this call these
            // columns of it, and C is borrowed until all items are done.
            for (c, sum) in unsafe { self.c.part(at..at + sums.len()) }.iter_mut().zip(sums) {
                self.scalars.store(*sum, c);
            }
        } else {
            for (lane, sum) in sums.iter().enumerate() {
                let at = at + lane * col_stride;
                // SAFETY: as above.
                self.scalars.store(*sum, &mut unsafe { self.c.part(at..at + 1) }[0]);
            }
        }
    }

    /// Adds up the slots of a row that was cut, and writes the row.
    fn long_row(&self, row: usize, slots: Range<usize>) {
        let n = self.n;
        // SAFETY: all items are done, and no other row has these slots.
        let sums = unsafe { self.slots.part(slots.start * n..slots.end * n) };
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

//! SpMM: C = alpha · op(A) · op(B) + beta · C, with one executor ([`Spmm`]) for all layouts of op(A). The
//! product is in [`row`] for rows of op(A), in [`window`] for windows of rows, in [`dense`] for A as a dense
//! matrix, in [`sell`] for slices of rows, in [`bcsr`] for `smat` and in [`swift`] for `swift`.

mod bcsr;
mod dense;
mod row;
mod sell;
mod swift;
mod window;

use std::marker::PhantomData;

use super::layout::{Csr, Layout, OpA};
use super::operand::Shared;
use super::scalars::Scalars;
use super::schedule::{self, Grain};
use super::slices::Slices;
use super::{timing, Host};
use crate::backend::{DenseExecutor, LayoutInfo, SpmmExecutor};
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
    ) -> Result<Box<SpmmExecutor>> {
        build(cx, problem, choice)
    }

    fn time_spmm(&self, cx: &Context, problem: &SpmmProblem, executor: &SpmmExecutor) -> Result<f64> {
        timing::spmm(cx, problem, executor)
    }
}

/// Builds the executor for the problem's types.
pub(crate) fn build(cx: &Context, problem: &SpmmProblem, choice: &Choice) -> Result<Box<SpmmExecutor>> {
    /// Visitor for algorithms that support all values: the context, the problem, its op(A), and the choice.
    struct Build<'a>(&'a Context, &'a SpmmProblem, OpA, &'a Choice);
    /// Visitor for algorithms that support real values.
    struct BuildReal<'a>(Build<'a>);
    /// Visitor for algorithms that support fp64 and fp32 alone.
    struct BuildFloat<'a>(Build<'a>);
    impl ComboVisitor for Build<'_> {
        type Output = Box<SpmmExecutor>;
        fn visit<C: Combo>(self) -> Result<Self::Output> {
            let Build(cx, problem, a, choice) = self;
            match &choice.method {
                Method::Row(order) | Method::SpmmCsr(order) => {
                    let grain = Grain::spmm(problem.columns().saturating_mul(size_of::<C::Acc>()));
                    let layout = Csr::<C::A>::build(cx, &a, choice.a, order, grain)?;
                    let layout = if choice.keeps_columns { layout.keep_columns(cx)? } else { layout };
                    Ok(Spmm::<C, _>::boxed(problem, a, layout))
                }
                other => Err(other.is_of_another_operation()),
            }
        }
    }
    impl ComboVisitor for BuildReal<'_> {
        type Output = Box<SpmmExecutor>;
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
        type Output = Box<SpmmExecutor>;
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
    /// Returns the number of sums that the workspace must hold for `n` columns of C. It saturates to a number that no
    /// workspace holds, so that execute refuses it.
    fn sums(&self, _n: usize) -> usize {
        0
    }

    /// Returns the number of elements that the workspace must hold behind the sums, for a panel of B.
    fn panel(&self, _by_rows: bool, _n: usize) -> usize {
        0
    }

    /// Computes the product, on all threads or on this one. `opened` has space for [`Self::sums`] and
    /// [`Self::panel`].
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
    /// True if rows of op(B) are contiguous.
    b_by_rows: bool,
    layout: L,
    combo: PhantomData<C>,
}

impl<C: Combo, L: SpmmProduct<C> + 'static> Spmm<C, L> {
    fn new(problem: &SpmmProblem, a: OpA, layout: L) -> Self {
        let b_by_rows = (problem.b_order == Order::Row) != problem.op_b.transposes();
        Spmm { a, op_b: problem.op_b, b_by_rows, layout, combo: PhantomData }
    }

    fn boxed(problem: &SpmmProblem, a: OpA, layout: L) -> Box<SpmmExecutor> {
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
        let n = c.cols as usize;
        let scratch = [self.layout.sums(n), self.layout.panel(self.b_by_rows, n)];
        match open::<C>(cx, parallel, scalars, self.op_b, (b, old, c), scratch)? {
            Some(opened) => self.layout.multiply(parallel, opened),
            None => Ok(()),
        }
    }
}

impl<C: Combo, L: SpmmProduct<C> + 'static> DenseExecutor<DenseMatrix> for Spmm<C, L> {
    fn workspace_bytes(&self, n: usize) -> usize {
        let numbers = self.layout.sums(n).saturating_add(self.layout.panel(self.b_by_rows, n));
        numbers.saturating_mul(size_of::<C::Acc>())
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
    /// Workspace with the sums that the layout needs, and behind them its panel.
    scratch: Shared<C::Acc>,
    /// Numbers of the panel.
    panel: usize,
    scalars: Scalars<C::Acc>,
}

/// Opens alpha, beta, B, C and a workspace of so many sums, and a panel of so many numbers. Returns `None` if C is empty or
/// alpha is 0; in the latter case it has computed C = beta · C. `old` is a matrix with C's old values, or C itself. It is
/// never inlined, since the executor of each layout would have its code.
#[inline(never)]
fn open<'a, C: Combo>(
    cx: &Context,
    parallel: bool,
    (alpha, beta): ScalarsAt,
    op_b: Operation,
    (b, old, c): (&DenseMatrix, &DenseMatrix, &DenseMatrix),
    [sums, panel]: [usize; 2],
) -> Result<Option<Opened<'a, C>>> {
    let scalars = Scalars::<C::Acc>::read(alpha, beta)?;
    // SAFETY: the descriptor promises that extent, which nothing else uses during the call (except for the
    // padding, which is not accessed here); the plan has refused a B that overlaps.
    let c_values = unsafe { memory::open_mut::<C::Y>("C", c.values, c.extent())? };
    if c_values.is_empty() {
        return Ok(None);
    }
    let is_elsewhere = !std::ptr::eq(old, c) && !old.lines().are(&c.lines()) && !scalars.skip_old();
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
    cx.workspace.require(sums.saturating_add(panel).saturating_mul(size_of::<C::Acc>()))?;
    // SAFETY: the workspace has that size; the handle lends it to one call at a time.
    let scratch = unsafe { memory::open_mut::<C::Acc>("workspace", cx.workspace.address, sums + panel)? };
    Ok(Some(Opened {
        b: b_values,
        b_strides: b.transposed(op_b).strides(),
        conjugate_b: op_b.conjugates(),
        c: Shared::new(c_values),
        c_strides: c.strides(),
        old,
        n,
        scratch: Shared::new(scratch),
        panel,
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

#[cfg(test)]
mod tests;

//! SpMM `window`: C = alpha · op(A) · op(B) + beta · C on [`Window`], or with values of 4
//! and more bytes on [`MaskedWindow`]. An item is a window; it is swept once per block of columns of C. Each element of C is one sum in
//! the order of the row's entries, so nothing depends on the number of threads.

use std::ops::Range;

use super::{open, Opened};
use crate::backend::host::operand::Operand;
use crate::backend::host::schedule;
use crate::backend::{LayoutInfo, SpmmExecutor};
use crate::error::Result;
use crate::format::window::HEIGHTS;
use crate::format::{MaskedWindow, Window};
use crate::matrix::DenseMatrix;
use crate::memory::{self, Context};
use crate::problem::SpmmProblem;
use crate::select::{spmm as select, Source};
use crate::support::Combo;
use crate::types::{Accumulator, Address, Element, LayoutKind, Storage};

/// Columns of C that an item has sums of at one time: 64 rows of them are 8 KB of the
/// first level's cache.
const COLUMNS: usize = 32;

/// Calls a method of the layout, whichever it is.
macro_rules! of_layout {
    ($layout:expr, $name:ident => $use:expr) => {
        match $layout {
            Layout::Dense($name) => $use,
            Layout::Masked($name) => $use,
        }
    };
}

/// A layout of windows.
enum Layout<V: Element> {
    Dense(Window<V>),
    Masked(MaskedWindow<V>),
}

impl<V: Element> Layout<V> {
    fn height(&self) -> usize {
        of_layout!(self, layout => layout.height)
    }

    fn row_count(&self) -> usize {
        of_layout!(self, layout => layout.row_count)
    }

    fn items(&self) -> usize {
        of_layout!(self, layout => layout.items.len())
    }

    fn nnz(&self) -> usize {
        match self {
            Layout::Dense(layout) => layout.nnz,
            Layout::Masked(layout) => layout.values.len(),
        }
    }

    fn window_at(&self, item: usize) -> Option<(usize, Range<usize>)> {
        of_layout!(self, layout => layout.window_at(item))
    }

    #[inline(always)]
    fn for_each_of_block(&self, block: usize, f: impl FnMut(usize, usize, V)) {
        of_layout!(self, layout => layout.for_each_of_block(block, f));
    }

    fn fill_ratio(&self) -> f64 {
        match self {
            Layout::Dense(layout) => layout.fill_ratio(),
            Layout::Masked(_) => 1.0,
        }
    }
}

/// The executor.
pub(super) struct WindowSpmm<C: Combo> {
    problem: SpmmProblem,
    layout: Layout<C::A>,
}

fn arrange<C: Combo>(cx: &Context, problem: &SpmmProblem) -> Result<Layout<C::A>> {
    let keep = problem.value_updates;
    // A copy on the way, since the rows must be sorted.
    let operand = Operand::<C::A>::build(cx, &problem.a, problem.op, Source::Canonical, "A", keep)?;
    let origin = operand.origin(keep);
    operand.with_plain(cx, "A", |rows| {
        let (pattern, values) = (&rows.pattern, rows.values);
        // The choice that the CUDA backend makes, so that what it runs is tested here.
        Ok(if size_of::<C::A>() == 2 {
            Layout::Dense(Window::build(
                &cx.allocator,
                pattern,
                values,
                origin,
                select::window::rules_on_host,
            )?)
        } else {
            let rules = select::masked_window::rules_on_host;
            Layout::Masked(MaskedWindow::build(&cx.allocator, pattern, values, origin, rules)?)
        })
    })
}

impl<C: Combo> WindowSpmm<C> {
    pub(super) fn build(cx: &Context, problem: &SpmmProblem) -> Result<Self> {
        Ok(WindowSpmm { problem: *problem, layout: arrange::<C>(cx, problem)? })
    }

    /// Execute, on all threads or on this one.
    pub(super) fn run(
        &self,
        parallel: bool,
        scalars: (Address, Address),
        b: &DenseMatrix,
        c: &DenseMatrix,
    ) -> Result<()> {
        let Some(opened) = open::<C>(parallel, scalars, self.problem.op_b, b, c)? else {
            return Ok(());
        };
        let product = Product::<C> { layout: &self.layout, opened };
        schedule::for_each(parallel, self.layout.items(), |item| product.item(item));
        Ok(())
    }
}

/// One product while it runs.
struct Product<'a, C: Combo> {
    layout: &'a Layout<C::A>,
    opened: Opened<'a, C>,
}

impl<C: Combo> Product<'_, C> {
    fn item(&self, item: usize) {
        let Some((window, blocks)) = self.layout.window_at(item) else { return };
        let height = self.layout.height();
        let rows = window * height..self.layout.row_count().min((window + 1) * height);
        let opened = &self.opened;
        for first in (0..opened.n).step_by(COLUMNS) {
            let columns = COLUMNS.min(opened.n - first);
            let mut sums = [[C::Acc::ZERO; COLUMNS]; HEIGHTS[3]];
            for block in blocks.clone() {
                self.layout.for_each_of_block(block, |row, column, value| {
                    opened.add(&mut sums[row][..columns], value.widen(), column, first);
                });
            }
            for (row, sums) in rows.clone().zip(&sums) {
                for (lane, &sum) in sums[..columns].iter().enumerate() {
                    // SAFETY: only one item has this element.
                    unsafe { opened.store(row, first + lane, sum) };
                }
            }
        }
    }
}

impl<C: Combo> SpmmExecutor for WindowSpmm<C> {
    fn workspace_bytes(&self, _: usize) -> usize {
        0
    }

    fn execute(
        &self,
        _: &Context,
        alpha: Address,
        b: &DenseMatrix,
        beta: Address,
        c: &DenseMatrix,
    ) -> Result<()> {
        let units = (self.layout.nnz() + self.layout.row_count()).saturating_mul(c.cols as usize);
        self.run(schedule::is_parallel(units), (alpha, beta), b, c)
    }

    fn update_values(&mut self, cx: &Context, values: Address) -> Result<()> {
        let renewed = SpmmProblem { a: self.problem.a.with_values(values), ..self.problem };
        // SAFETY: the descriptor promises that many values, which stay valid and
        // unchanged while a call that reads them runs.
        let values = unsafe { memory::open("A", values, renewed.a.shape().2 as usize)? };
        if !of_layout!(&mut self.layout, layout => layout.refill(values, renewed.op.conjugates())) {
            self.layout = arrange::<C>(cx, &renewed)?;
        }
        self.problem = renewed;
        Ok(())
    }

    fn layout(&self) -> LayoutInfo {
        LayoutInfo { kind: LayoutKind::Window, in_place: false, fill: self.layout.fill_ratio() }
    }

    fn details(&self) -> String {
        of_layout!(&self.layout, layout => layout.details())
    }
}

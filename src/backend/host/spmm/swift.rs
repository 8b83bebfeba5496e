//! SpMM `swift` on the host: C = alpha · op(A) · op(B) + beta · C on [`Swift`]. An item is
//! some columns of C, for which one thread adds all blocks, segment by segment, and all
//! pieces, in their order: nothing depends on the number of threads. A row of A may be in
//! many blocks, so that its sums grow in the workspace, and alpha and beta come when they are
//! whole: alpha times a part of a sum may overflow where alpha times the sum does not.

use super::{open, Opened};
use crate::backend::host::operand::{Operand, Shared};
use crate::backend::host::schedule;
use crate::backend::{LayoutInfo, SpmmExecutor};
use crate::error::Result;
use crate::format::Swift;
use crate::matrix::DenseMatrix;
use crate::memory::{self, pool, Context};
use crate::problem::SpmmProblem;
use crate::select::Source;
use crate::support::Combo;
use crate::types::{Accumulator, Address, LayoutKind, Storage};

/// Columns of C that an item has sums of at one time: what a row of B has in 64 bytes of
/// fp64, up to as many as 16 vector registers hold.
const COLUMNS: [usize; 2] = [8, 64];

/// The executor.
pub(super) struct SwiftSpmm<C: Combo> {
    problem: SpmmProblem,
    layout: Swift<C::A>,
}

fn arrange<C: Combo>(cx: &Context, problem: &SpmmProblem) -> Result<Swift<C::A>> {
    let keep = problem.value_updates;
    // Columns of op(A): rows of its transpose.
    let columns = problem.op.flipped();
    let operand = Operand::<C::A>::build(cx, &problem.a, columns, Source::Canonical, "A", keep)?;
    let origin = operand.origin(keep);
    operand.with_plain(cx, "A", |rows| Swift::build(&cx.allocator, &rows.pattern, rows.values, origin))
}

impl<C: Combo> SwiftSpmm<C> {
    pub(super) fn build(cx: &Context, problem: &SpmmProblem) -> Result<Self> {
        Ok(SwiftSpmm { problem: *problem, layout: arrange::<C>(cx, problem)? })
    }

    /// Execute, on all threads or on this one.
    pub(super) fn run(
        &self,
        cx: &Context,
        parallel: bool,
        scalars: (Address, Address),
        b: &DenseMatrix,
        c: &DenseMatrix,
    ) -> Result<()> {
        let Some(opened) = open::<C>(parallel, scalars, self.problem.op_b, b, c)? else {
            return Ok(());
        };
        let n = opened.n;
        cx.workspace.require(self.workspace_bytes(n))?;
        // SAFETY: `require` has checked the size, so that the product does not
        // overflow; the handle lends its workspace to one call at a time.
        let totals = unsafe {
            memory::open_mut::<C::Acc>("workspace", cx.workspace.address, self.layout.row_count * n)?
        };
        let product = Product::<C> { layout: &self.layout, opened, totals: Shared::new(totals) };
        let threads = if parallel { pool::size() } else { 1 };
        let each = n.div_ceil(threads).clamp(COLUMNS[0], COLUMNS[1]);
        schedule::for_each(parallel, n.div_ceil(each), |item| {
            product.columns(item * each, each.min(n - item * each));
        });
        Ok(())
    }
}

/// One product while it runs.
struct Product<'a, C: Combo> {
    layout: &'a Swift<C::A>,
    opened: Opened<'a, C>,
    /// Sums of all elements of C: for each item those of its columns, row after row.
    totals: Shared<C::Acc>,
}

impl<C: Combo> Product<'_, C> {
    /// `count` columns of C from column `first`.
    fn columns(&self, first: usize, count: usize) {
        let mut sums = [C::Acc::ZERO; COLUMNS[1]];
        let sums = &mut sums[..count];
        let (opened, rows) = (&self.opened, self.layout.row_count);
        // SAFETY: only one item has these columns, and the workspace is borrowed until all
        // items are done.
        let totals = unsafe { self.totals.part(first * rows..(first + count) * rows) };
        totals.fill(C::Acc::ZERO);
        for group in 0..self.layout.outline.groups() {
            let mut last = None;
            self.layout.for_each_of_group(group, |column, row, value| {
                if last != Some(row) {
                    add(last.replace(row), totals, sums);
                }
                opened.add(sums, value.widen(), column, first);
            });
            add(last, totals, sums);
        }
        for piece in 0..self.layout.outline.pieces.len() {
            self.layout.for_each_of_piece(piece, |column, row, value| {
                opened.add(sums, value.widen(), column, first);
                add(Some(row), totals, sums);
            });
        }
        for (row, totals) in totals.chunks_exact(count).enumerate() {
            for (lane, &total) in totals.iter().enumerate() {
                // SAFETY: only one item has this element.
                unsafe { opened.store(row, first + lane, total) };
            }
        }
    }
}

/// Adds sums to those of a row, and has them be 0 again.
#[inline(always)]
fn add<T: Accumulator>(row: Option<usize>, totals: &mut [T], sums: &mut [T]) {
    let Some(row) = row else { return };
    for (total, sum) in totals[row * sums.len()..].iter_mut().zip(sums) {
        *total += std::mem::replace(sum, T::ZERO);
    }
}

impl<C: Combo> SpmmExecutor for SwiftSpmm<C> {
    fn workspace_bytes(&self, n: usize) -> usize {
        // Saturates: no workspace has that many bytes, so that execute refuses.
        self.layout.row_count.saturating_mul(n).saturating_mul(size_of::<C::Acc>())
    }

    fn execute(
        &self,
        cx: &Context,
        alpha: Address,
        b: &DenseMatrix,
        beta: Address,
        c: &DenseMatrix,
    ) -> Result<()> {
        let units = (self.layout.outline.nnz + self.layout.row_count).saturating_mul(c.cols as usize);
        self.run(cx, schedule::is_parallel(units), (alpha, beta), b, c)
    }

    fn update_values(&mut self, cx: &Context, values: Address) -> Result<()> {
        let renewed = SpmmProblem { a: self.problem.a.with_values(values), ..self.problem };
        // SAFETY: the descriptor promises that many values, which stay valid and
        // unchanged while a call that reads them runs.
        let values = unsafe { memory::open("A", values, renewed.a.shape().2 as usize)? };
        if !self.layout.refill(values) {
            self.layout = arrange::<C>(cx, &renewed)?;
        }
        self.problem = renewed;
        Ok(())
    }

    fn layout(&self) -> LayoutInfo {
        LayoutInfo { kind: LayoutKind::Swift, in_place: false, fill: 1.0 }
    }

    fn details(&self) -> String {
        self.layout.details()
    }
}

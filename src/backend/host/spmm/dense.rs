//! SpMM `dense`: C = alpha · op(A) · op(B) + beta · C on all of op(A), zeros and all. An item
//! is a block of rows, swept once per block of columns of C, so that a row of B is read once
//! for several rows. What is not finite is computed again from the stored entries, since a 0
//! that is not stored may have met an infinity. Each element of C is one sum in the order of
//! the columns, so nothing depends on the number of threads.

use super::{open, Opened};
use crate::backend::host::operand::Operand;
use crate::backend::host::schedule;
use crate::backend::host::spgemm::rows;
use crate::backend::{LayoutInfo, SpmmExecutor};
use crate::error::Result;
use crate::format::dense::Dense;
use crate::matrix::DenseMatrix;
use crate::memory::Context;
use crate::problem::SpmmProblem;
use crate::select::{self, Source};
use crate::support::Combo;
use crate::types::{Accumulator, Address, LayoutKind, Storage};

/// Rows of an item that share what is read of B.
const ROWS: usize = 4;
/// Columns of C that an item has sums of at one time: 4 rows of 16 floats are 8 of 16 vector
/// registers.
const COLUMNS: usize = 16;
/// Items of one task.
const ITEMS: usize = 4;

/// The executor.
pub(super) struct DenseSpmm<C: Combo> {
    problem: SpmmProblem,
    /// For what is not finite, and for new values.
    operand: Operand<C::A>,
    layout: Dense<C::Acc>,
}

impl<C: Combo> DenseSpmm<C> {
    pub(super) fn build(cx: &Context, problem: &SpmmProblem) -> Result<Self> {
        let in_place = select::in_place(&problem.a, problem.op) && !problem.a.temporary;
        let source = if in_place { Source::InPlace } else { Source::Canonical };
        let operand = Operand::<C::A>::build(cx, &problem.a, problem.op, source, "A", problem.value_updates)?;
        let layout = operand
            .with_plain(cx, "A", |rows| Dense::build::<C, _, _>(&cx.allocator, &rows.pattern, rows.values))?;
        Ok(DenseSpmm { problem: *problem, operand, layout })
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
        let items = self.layout.shape.rows.div_ceil(ROWS);
        let (rows, values) = rows::open(&self.operand, "A")?;
        let stored = |row: usize, col: usize| {
            let mut sum = C::Acc::ZERO;
            for at in rows.range(row) {
                product.opened.add(std::slice::from_mut(&mut sum), values[at].widen(), rows.col(at), col);
            }
            sum
        };
        schedule::for_each(parallel, items.div_ceil(ITEMS), |task| {
            for item in task * ITEMS..items.min((task + 1) * ITEMS) {
                product.item(item, &stored);
            }
        });
        Ok(())
    }
}

/// One product while it runs.
struct Product<'a, C: Combo> {
    layout: &'a Dense<C::Acc>,
    opened: Opened<'a, C>,
}

impl<C: Combo> Product<'_, C> {
    fn item(&self, item: usize, stored: &impl Fn(usize, usize) -> C::Acc) {
        let opened = &self.opened;
        let rows = item * ROWS..self.layout.shape.rows.min((item + 1) * ROWS);
        for first in (0..opened.n).step_by(COLUMNS) {
            let columns = COLUMNS.min(opened.n - first);
            let mut sums = [[C::Acc::ZERO; COLUMNS]; ROWS];
            #[cfg(target_arch = "x86_64")]
            if crate::backend::host::lanes::Avx2::is_here() {
                // SAFETY: the processor has AVX2, FMA and F16C.
                unsafe { self.sums_avx2(rows.start, first, columns, &mut sums) };
            } else {
                self.sums(rows.start, first, columns, &mut sums);
            }
            #[cfg(not(target_arch = "x86_64"))]
            self.sums(rows.start, first, columns, &mut sums);
            for (row, sums) in rows.clone().zip(&sums) {
                for (lane, &sum) in sums[..columns].iter().enumerate() {
                    // An infinity or NaN times 0 is no 0.
                    let is_finite = sum * C::Acc::ZERO == C::Acc::ZERO;
                    let sum = if is_finite { sum } else { stored(row, first + lane) };
                    // SAFETY: only one item has this element.
                    unsafe { opened.store(row, first + lane, sum) };
                }
            }
        }
    }

    /// [`Self::sums`], compiled for wider vectors; the same bits.
    ///
    /// # Safety
    /// The processor has AVX2, FMA and F16C.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn sums_avx2(
        &self,
        row: usize,
        first: usize,
        columns: usize,
        sums: &mut [[C::Acc; COLUMNS]; ROWS],
    ) {
        self.sums(row, first, columns, sums);
    }

    /// Σ over the columns of op(A). Rows beyond the last are the last again.
    #[inline(always)]
    fn sums(&self, row: usize, first: usize, columns: usize, sums: &mut [[C::Acc; COLUMNS]; ROWS]) {
        let (opened, shape) = (&self.opened, &self.layout.shape);
        let a: [&[C::Acc]; ROWS] = std::array::from_fn(|at| {
            let begin = (row + at).min(shape.rows - 1) * shape.ld;
            &self.layout.values[begin..begin + shape.cols]
        });
        let mut b = [C::Acc::ZERO; COLUMNS];
        for k in 0..shape.cols {
            let at = k * opened.b_strides.0 + first * opened.b_strides.1;
            if opened.b_strides.1 == 1 {
                for (b, from) in b.iter_mut().zip(&opened.b[at..at + columns]) {
                    *b = from.widen();
                }
            } else {
                for (lane, b) in b[..columns].iter_mut().enumerate() {
                    *b = opened.b[at + lane * opened.b_strides.1].widen();
                }
            }
            for (sums, a) in sums.iter_mut().zip(&a) {
                for (sum, &b) in sums.iter_mut().zip(&b) {
                    *sum += a[k] * b;
                }
            }
        }
    }
}

impl<C: Combo> SpmmExecutor for DenseSpmm<C> {
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
        let units = self.layout.shape.elements().saturating_mul(c.cols as usize);
        self.run(schedule::is_parallel(units), (alpha, beta), b, c)
    }

    fn update_values(&mut self, cx: &Context, values: Address) -> Result<()> {
        let a = self.problem.a.with_values(values);
        self.operand.update_values(cx, &a, self.problem.op, "A")?;
        self.problem.a = a;
        let layout = &mut self.layout;
        self.operand.with_plain(cx, "A", |rows| {
            layout.refill::<C, _, _>(&rows.pattern, rows.values);
            Ok(())
        })
    }

    fn layout(&self) -> LayoutInfo {
        let fill = self.layout.shape.fill(self.problem.a.shape().2 as usize);
        LayoutInfo { kind: LayoutKind::Dense, in_place: false, fill }
    }

    fn details(&self) -> String {
        self.layout.shape.details(self.problem.a.shape().2 as usize)
    }
}

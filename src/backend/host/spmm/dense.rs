//! SpMM `dense`: C = alpha · op(A) · op(B) + beta · C with op(A) as a dense matrix, zeros included. An item
//! is a block of rows, swept once per block of columns of C, so that a row of B is read once for several
//! rows. Elements of C that are not finite are computed again from the stored entries, since a zero that is
//! not stored may have met an infinity. Each element of C is one sum in the order of the columns, so results
//! do not depend on the number of threads.

use super::{Opened, SpmmProduct};
use crate::backend::host::layout::{Layout, OpA};
use crate::backend::host::operand::Operand;
use crate::backend::host::{lanes, schedule};
use crate::error::Result;
use crate::format::dense::Dense;
use crate::memory::Context;
use crate::select::Source;
use crate::support::Combo;
use crate::types::{Accumulator, LayoutKind, Storage};

/// Rows of an item, which share the loads of B.
const ROWS: usize = 4;
/// Columns of C whose sums an item holds at one time: 4 rows of 16 floats take 8 of 16 vector registers.
const COLUMNS: usize = 16;
/// Number of items in one parallel task.
const ITEMS: usize = 4;

/// op(A) as a dense matrix, with the stored entries.
pub(super) struct All<C: Combo> {
    /// Stored entries, for elements of C that are not finite, and for new values.
    operand: Operand<C::A>,
    dense: Dense<C::Acc>,
    nnz: usize,
}

impl<C: Combo> All<C> {
    pub(super) fn arrange(cx: &Context, a: &OpA) -> Result<Self> {
        let source = if a.a.temporary { Source::Canonical } else { a.source() };
        let operand = a.operand(cx, source)?;
        let dense = operand
            .with_plain(cx, "A", |rows| Dense::build::<C, _, _>(&cx.allocator, &rows.pattern, rows.values))?;
        Ok(All { operand, dense, nnz: a.a.shape().2 as usize })
    }
}

impl<C: Combo> Layout for All<C> {
    const KIND: LayoutKind = LayoutKind::Dense;

    fn update_values(&mut self, cx: &Context, a: &OpA) -> Result<()> {
        self.operand.update_values(cx, &a.a, a.op, "A")?;
        let dense = &mut self.dense;
        self.operand.with_plain(cx, "A", |rows| {
            dense.refill::<C, _, _>(&rows.pattern, rows.values);
            Ok(())
        })
    }

    fn size(&self) -> (usize, f64) {
        (self.dense.shape.elements(), self.dense.shape.fill(self.nnz))
    }

    fn details(&self) -> String {
        self.dense.shape.details(self.nnz)
    }
}

impl<C: Combo> SpmmProduct<C> for All<C> {
    fn multiply(&self, parallel: bool, opened: Opened<'_, C>) -> Result<()> {
        let (dense, items) = (&self.dense, self.dense.shape.rows.div_ceil(ROWS));
        let (rows, values) = self.operand.rows("A")?;
        let stored = |row: usize, col: usize| {
            let mut sum = C::Acc::ZERO;
            for at in rows.range(row) {
                opened.add(std::slice::from_mut(&mut sum), values[at].widen(), rows.col(at), col);
            }
            sum
        };
        let product = Running::<C> { dense, opened: &opened };
        schedule::for_each(parallel, items.div_ceil(ITEMS), |task| {
            for item in task * ITEMS..items.min((task + 1) * ITEMS) {
                let row = |at: usize| Some(item * ROWS + at).filter(|&row| row < dense.shape.rows);
                opened.sweep::<ROWS, COLUMNS>(row, |sums, first, columns| {
                    if lanes::has_avx2() {
                        // SAFETY: the processor has AVX2, FMA and F16C.
                        unsafe { product.sums_avx2(item * ROWS, first, columns, sums) };
                    } else {
                        product.sums(item * ROWS, first, columns, sums);
                    }
                    for (at, sums) in sums.iter_mut().enumerate() {
                        let Some(row) = row(at) else { continue };
                        for (lane, sum) in sums[..columns].iter_mut().enumerate() {
                            // An infinity or NaN times 0 is NaN, not 0.
                            if *sum * C::Acc::ZERO != C::Acc::ZERO {
                                *sum = stored(row, first + lane);
                            }
                        }
                    }
                });
            }
        });
        Ok(())
    }
}

/// One running product.
struct Running<'a, C: Combo> {
    dense: &'a Dense<C::Acc>,
    opened: &'a Opened<'a, C>,
}

impl<C: Combo> Running<'_, C> {
    /// Calls [`Self::sums`], compiled for wider vectors, with the same bits.
    ///
    /// # Safety
    /// The processor has AVX2, FMA and F16C.
    #[cfg_attr(target_arch = "x86_64", target_feature(enable = "avx2,fma,f16c"))]
    unsafe fn sums_avx2(
        &self,
        row: usize,
        first: usize,
        columns: usize,
        sums: &mut [[C::Acc; COLUMNS]; ROWS],
    ) {
        self.sums(row, first, columns, sums);
    }

    /// Adds the products over all columns of op(A) to `sums`. Rows beyond the last one repeat the last one.
    #[inline(always)]
    fn sums(&self, row: usize, first: usize, columns: usize, sums: &mut [[C::Acc; COLUMNS]; ROWS]) {
        let (opened, shape) = (self.opened, &self.dense.shape);
        let a: [&[C::Acc]; ROWS] = std::array::from_fn(|at| {
            let begin = (row + at).min(shape.rows - 1) * shape.ld;
            &self.dense.values[begin..begin + shape.cols]
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

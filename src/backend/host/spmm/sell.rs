//! SpMM `sell`: C = alpha · op(A) · op(B) + beta · C on [`SellLayout`], for few columns. An
//! item is some slices, or a long row; it is swept once per block of columns of C. Each
//! element of C is one sum in the order of the row's entries, so nothing depends on the
//! number of threads.

use std::ops::Range;

use super::{open, Opened};
use crate::backend::host::operand::Operand;
use crate::backend::host::schedule;
use crate::backend::{LayoutInfo, SpmmExecutor};
use crate::error::Result;
use crate::format::narrowing::Holds;
use crate::format::sell::{with_stored, Piece, SellLayout, LANES, NO_ROW};
use crate::matrix::DenseMatrix;
use crate::memory::{self, Context};
use crate::problem::SpmmProblem;
use crate::select::{self, Source};
use crate::support::Combo;
use crate::types::{Accumulator, Address, LayoutKind, Storage};

/// Columns of C that a row has sums of at one time.
const COLUMNS: usize = 16;

/// Work of an item in slots, of which a row costs about [`ROW_WORK`], as SpMV has it.
const ITEM_WORK: usize = 1 << 12;
const ROW_WORK: usize = 4;

/// The executor.
pub(super) struct SellSpmm<C: Combo> {
    problem: SpmmProblem,
    layout: SellLayout<C::A>,
}

fn arrange<C: Combo>(cx: &Context, problem: &SpmmProblem) -> Result<SellLayout<C::A>> {
    let (a, op) = (&problem.a, problem.op);
    let source = if select::in_place(a, op) { Source::InPlace } else { Source::Canonical };
    let operand = Operand::<C::A>::build(cx, a, op, source, "A", problem.value_updates)?;
    operand.arrange(cx, problem.value_updates)
}

impl<C: Combo> SellSpmm<C> {
    pub(super) fn build(cx: &Context, problem: &SpmmProblem) -> Result<Self> {
        Ok(SellSpmm { problem: *problem, layout: arrange::<C>(cx, problem)? })
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
        with_stored!(&self.layout.values, values => {
            let product = Product::<C, _> {
                layout: &self.layout,
                values,
                opened,
            };
            product.run(parallel);
        });
        Ok(())
    }
}

/// Where a row's entries are.
#[derive(Clone, Copy)]
enum Entries<'a> {
    /// A slice, and its lane.
    Lane(usize, usize),
    Pieces(&'a [Piece]),
}

/// One product while it runs.
struct Product<'a, C: Combo, S> {
    layout: &'a SellLayout<C::A>,
    values: &'a [S],
    opened: Opened<'a, C>,
}

impl<C: Combo, S: Holds<C::A>> Product<'_, C, S> {
    fn run(&self, parallel: bool) {
        let SellLayout { slices, long_rows, .. } = self.layout;
        let work = self.values.len() + slices.len() * LANES * ROW_WORK;
        let items = work / ITEM_WORK + 1;
        schedule::for_each(parallel, items + long_rows.len(), |item| {
            if item < items {
                self.slices(self.first_of(item)..self.first_of(item + 1));
            } else {
                let long = &long_rows[item - items];
                let pieces = &self.layout.pieces[long.first as usize..long.last as usize];
                self.row(long.row as usize, Entries::Pieces(pieces));
            }
        });
    }

    /// The first slice with so much work before it.
    fn first_of(&self, item: usize) -> usize {
        let slices = &self.layout.slices;
        let before = |number: usize| slices[number].values as usize + number * LANES * ROW_WORK;
        let (mut low, mut high) = (0, slices.len());
        while low < high {
            let middle = low.midpoint(high);
            if before(middle) < item * ITEM_WORK {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    fn slices(&self, range: Range<usize>) {
        for number in range {
            for lane in 0..LANES {
                let row = self.layout.rows[number * LANES + lane];
                if row != NO_ROW {
                    self.row(row as usize, Entries::Lane(number, lane));
                }
            }
        }
    }

    fn row(&self, row: usize, entries: Entries<'_>) {
        let opened = &self.opened;
        for first in (0..opened.n).step_by(COLUMNS) {
            let columns = COLUMNS.min(opened.n - first);
            let mut sums = [C::Acc::ZERO; COLUMNS];
            let mut add = |place: usize, column: usize| {
                opened.add(&mut sums[..columns], self.values[place].value().widen(), column, first);
            };
            match entries {
                Entries::Lane(slice, lane) => self.layout.for_each_of_lane(slice, lane, add),
                Entries::Pieces(pieces) => {
                    for piece in pieces {
                        self.layout.for_each_of_piece(piece, &mut add);
                    }
                }
            }
            for (lane, &sum) in sums[..columns].iter().enumerate() {
                // SAFETY: only one item has this element.
                unsafe { opened.store(row, first + lane, sum) };
            }
        }
    }
}

impl<C: Combo> SpmmExecutor for SellSpmm<C> {
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
        let units = (self.layout.values.len() + self.layout.row_count).saturating_mul(c.cols as usize);
        self.run(schedule::is_parallel(units), (alpha, beta), b, c)
    }

    fn update_values(&mut self, cx: &Context, values: Address) -> Result<()> {
        let renewed = SpmmProblem { a: self.problem.a.with_values(values), ..self.problem };
        // SAFETY: the descriptor promises that many values, which stay valid and
        // unchanged while a call that reads them runs.
        let values = unsafe { memory::open("A", values, renewed.a.shape().2 as usize)? };
        if !self.layout.refill(values, renewed.op.conjugates()) {
            self.layout = arrange::<C>(cx, &renewed)?;
        }
        self.problem = renewed;
        Ok(())
    }

    fn layout(&self) -> LayoutInfo {
        LayoutInfo { kind: LayoutKind::Sell, in_place: false, fill: self.layout.fill_ratio() }
    }

    fn details(&self) -> String {
        self.layout.values.form().describe().into()
    }
}

//! SpMM `smat` on the host: C = alpha · op(A) · op(B) + beta · C on [`Bcsr`]. An item is
//! a row block; it is swept once per block of columns of C. Each element of C is one sum
//! in the order of the row's entries, so nothing depends on the number of threads.

use super::{open, Opened};
use crate::backend::host::operand::Operand;
use crate::backend::host::schedule;
use crate::backend::{LayoutInfo, SpmmExecutor};
use crate::error::Result;
use crate::format::bcsr::{widest, ROWS};
use crate::format::Bcsr;
use crate::matrix::DenseMatrix;
use crate::memory::{self, Buffer, Context};
use crate::problem::SpmmProblem;
use crate::reorder::jaccard::{cluster, When};
use crate::reorder::{KeptOrder, Shape};
use crate::select::spmm::smat;
use crate::select::{Clusters, Source};
use crate::support::Combo;
use crate::types::{Accumulator, Address, LayoutKind, Reorder, Storage};

/// Columns of C that an item has sums of at one time: 16 rows of them, and the rows of
/// B of a block, are at most 16 KB of the first level's cache.
const COLUMNS: usize = 64;

/// The executor.
pub(super) struct BcsrSpmm<C: Combo> {
    problem: SpmmProblem,
    block_width: Option<usize>,
    layout: Bcsr<C::A>,
}

/// The order of the rows.
enum Wanted<'a> {
    /// Their own.
    AsTheyAre,
    /// Clusters of rows that are alike, if they leave fewer blocks.
    Clusters,
    /// The clusters of an earlier analysis.
    Kept(&'a KeptOrder),
    /// The places of a layout of the same pattern.
    Places(&'a [u32]),
}

fn arrange<C: Combo>(
    cx: &Context,
    problem: &SpmmProblem,
    wanted: Wanted<'_>,
    width: Option<usize>,
) -> Result<Bcsr<C::A>> {
    let keep = problem.value_updates;
    // A copy on the way, since the rows must be sorted.
    let operand = Operand::<C::A>::build(cx, &problem.a, problem.op, Source::Canonical, "A", keep)?;
    let origin = operand.origin(keep);
    let size = size_of::<C::A>();
    let rules = smat::rules(size, width.unwrap_or(widest(size)));
    operand.with_plain(cx, "A", |rows| {
        let allocator = &cx.allocator;
        let places = match wanted {
            Wanted::AsTheyAre => None,
            Wanted::Clusters => {
                let shape = Shape { height: ROWS, width: rules.width };
                let windows = cluster(allocator, &rows.pattern, shape, When::Promising)?.windows;
                windows.map(|windows| windows.places(allocator, ROWS)).transpose()?
            }
            Wanted::Kept(order) => Some(order.places(allocator, rows.pattern.major, ROWS)?),
            Wanted::Places(places) => Some(Buffer::from_slice(allocator, places)?),
        };
        let values = rows.values;
        Bcsr::build(&cx.allocator, &rows.pattern, values, origin, rules, places.as_deref())
    })
}

impl<C: Combo> BcsrSpmm<C> {
    pub(super) fn build(
        cx: &Context,
        problem: &SpmmProblem,
        clusters: &Clusters,
        block_width: Option<usize>,
    ) -> Result<Self> {
        let wanted = match clusters {
            Clusters::Kept(order) => Wanted::Kept(order),
            Clusters::Yes | Clusters::IfFaster => Wanted::Clusters,
            Clusters::No => Wanted::AsTheyAre,
        };
        let layout = arrange::<C>(cx, problem, wanted, block_width)?;
        Ok(BcsrSpmm { problem: *problem, block_width, layout })
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
        schedule::for_each(parallel, self.layout.items.len(), |item| product.item(item));
        Ok(())
    }
}

/// One product while it runs.
struct Product<'a, C: Combo> {
    layout: &'a Bcsr<C::A>,
    opened: Opened<'a, C>,
}

impl<C: Combo> Product<'_, C> {
    fn item(&self, item: usize) {
        let Some((row_block, blocks)) = self.layout.row_block_at(item) else { return };
        let opened = &self.opened;
        for first in (0..opened.n).step_by(COLUMNS) {
            let columns = COLUMNS.min(opened.n - first);
            let mut sums = [[C::Acc::ZERO; COLUMNS]; ROWS];
            for block in blocks.clone() {
                self.layout.for_each_of_block(block, |row, column, value| {
                    opened.add(&mut sums[row][..columns], value.widen(), column, first);
                });
            }
            for (at, sums) in sums.iter().enumerate() {
                let Some(row) = self.layout.row(row_block, at) else { continue };
                for (lane, &sum) in sums[..columns].iter().enumerate() {
                    // SAFETY: only one item has this element.
                    unsafe { opened.store(row, first + lane, sum) };
                }
            }
        }
    }
}

impl<C: Combo> SpmmExecutor for BcsrSpmm<C> {
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
        let units = (self.layout.nnz + self.layout.row_count).saturating_mul(c.cols as usize);
        self.run(schedule::is_parallel(units), (alpha, beta), b, c)
    }

    fn update_values(&mut self, cx: &Context, values: Address) -> Result<()> {
        let renewed = SpmmProblem { a: self.problem.a.with_values(values), ..self.problem };
        // SAFETY: the descriptor promises that many values, which stay valid and
        // unchanged while a call that reads them runs.
        let values = unsafe { memory::open("A", values, renewed.a.shape().2 as usize)? };
        if !self.layout.refill(values, renewed.op.conjugates()) {
            let wanted = self.layout.order.as_ref().map_or(Wanted::AsTheyAre, |order| Wanted::Places(order));
            self.layout = arrange::<C>(cx, &renewed, wanted, self.block_width)?;
        }
        self.problem = renewed;
        Ok(())
    }

    fn reorder(&self) -> Reorder {
        match self.layout.order {
            Some(_) => Reorder::Auto,
            None => Reorder::None,
        }
    }

    fn row_order(&self, _: &Context) -> Result<Option<KeptOrder>> {
        self.layout.order.as_ref().map_or(Ok(None), |order| KeptOrder::of_places(order, ROWS))
    }

    fn block_width(&self) -> Option<usize> {
        Some(self.layout.width)
    }

    fn layout(&self) -> LayoutInfo {
        LayoutInfo { kind: LayoutKind::Bcsr, in_place: false, fill: self.layout.fill_ratio() }
    }

    fn details(&self) -> String {
        self.layout.details()
    }
}

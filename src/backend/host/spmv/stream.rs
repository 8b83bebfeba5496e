//! SpMV `stream`: y = alpha · op(A) · x + beta · y on [`StreamLayout`].
//!
//! Items of [`ITEM_SLOTS`] slots run in parallel. A row that lies in several of
//! them is the sum, in their order, of its parts. Nothing depends on the number
//! of threads.

use crate::backend::host::operand::{Operand, Shared};
use crate::backend::host::scalars::Scalars;
use crate::backend::host::schedule;
use crate::backend::{memory, Context, LayoutInfo, SpmvExecutor, SpmvProblem};
use crate::error::Result;
use crate::layout::stream::{StreamLayout, Tile};
use crate::matrix::DenseVector;
use crate::select::{self, Choice, Source};
use crate::support::Combo;
use crate::types::{Accumulator, Address, LayoutKind, Storage};

/// Slots of an item: about 10 µs of work, against some 30 ns that taking an item
/// costs.
const ITEM_SLOTS: usize = 1 << 13;

/// The executor.
pub(super) struct StreamSpmv<C: Combo> {
    problem: SpmvProblem,
    layout: StreamLayout<C::A>,
}

fn arrange<C: Combo>(cx: &Context, problem: &SpmvProblem) -> Result<StreamLayout<C::A>> {
    let (a, op) = (&problem.a, problem.op);
    // Rows that lie in the user's arrays need no copy on the way.
    let source = if select::in_place(a, op) { Source::InPlace } else { Source::Canonical };
    let keep = problem.value_updates;
    Operand::<C::A>::build(cx, a, op, source, "A", keep)?.arrange_stream(cx, keep)
}

impl<C: Combo> StreamSpmv<C> {
    const ITEM_TILES: usize = ITEM_SLOTS / StreamLayout::<C::A>::TILE;

    pub(super) fn build(cx: &Context, problem: &SpmvProblem, _choice: &Choice) -> Result<Self> {
        Ok(StreamSpmv { problem: *problem, layout: arrange::<C>(cx, problem)? })
    }

    fn items(&self) -> usize {
        self.layout.tiles.len().div_ceil(Self::ITEM_TILES)
    }

    /// Of each item the part of the row that it begins with and the one that it
    /// ends with; no row leaves the only item.
    fn parts(&self) -> usize {
        if self.items() > 1 {
            2 * self.items()
        } else {
            0
        }
    }

    /// Execute, on all threads or on this one.
    pub(super) fn run(
        &self,
        cx: &Context,
        parallel: bool,
        (alpha, beta): (Address, Address),
        x: &DenseVector,
        y: &DenseVector,
    ) -> Result<()> {
        let scalars = Scalars::<C::Acc>::read(alpha, beta)?;
        let len = y.len as usize;
        // SAFETY: the descriptor promises that many elements, which nothing
        // else uses during the call; the plan has refused an x that overlaps.
        let y = unsafe { memory::open_mut::<C::Y>("y", y.values, len)? };
        if scalars.skip_product() {
            scalars.scale(parallel, y, 1, len, len);
            return Ok(());
        }
        // SAFETY: the descriptor promises that many elements, unchanged during
        // the call.
        let x = unsafe { memory::open::<C::X>("x", x.values, x.len as usize)? };
        cx.workspace.require(self.workspace_bytes())?;
        // SAFETY: `require` has checked the size; the handle lends its
        // workspace to one call at a time.
        let parts = unsafe { memory::open_mut::<C::Acc>("workspace", cx.workspace.address, self.parts())? };
        let product =
            Product::<C> { layout: &self.layout, x, y: Shared::new(y), parts: Shared::new(parts), scalars };
        schedule::for_each(parallel, self.items(), |item| product.item(item, Self::ITEM_TILES));
        product.add_parts(self.items(), Self::ITEM_TILES);
        Ok(())
    }
}

impl<C: Combo> SpmvExecutor for StreamSpmv<C> {
    fn workspace_bytes(&self) -> usize {
        self.parts() * size_of::<C::Acc>()
    }

    fn execute(
        &self,
        cx: &Context,
        alpha: Address,
        x: &DenseVector,
        beta: Address,
        y: &DenseVector,
    ) -> Result<()> {
        self.run(cx, schedule::is_parallel(self.layout.slot_count), (alpha, beta), x, y)
    }

    fn update_values(&mut self, cx: &Context, values: Address) -> Result<()> {
        let renewed = SpmvProblem { a: self.problem.a.with_values(values), ..self.problem };
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
        LayoutInfo { kind: LayoutKind::Stream, in_place: false, fill: self.layout.fill_ratio() }
    }
}

/// One product while it runs.
struct Product<'a, C: Combo> {
    layout: &'a StreamLayout<C::A>,
    x: &'a [C::X],
    y: Shared<C::Y>,
    parts: Shared<C::Acc>,
    scalars: Scalars<C::Acc>,
}

impl<C: Combo> Product<'_, C> {
    fn store(&self, row: usize, sum: C::Acc) {
        // SAFETY: each row ends in one item, which stores it unless it joins the
        // item before; those are stored when all items are done.
        self.scalars.store(sum, &mut unsafe { self.y.part(row..row + 1) }[0]);
    }

    /// The tiles of an item.
    fn item(&self, item: usize, item_tiles: usize) {
        let layout = self.layout;
        let tile_slots = StreamLayout::<C::A>::TILE;
        let first_tile = item * item_tiles;
        let tiles = &layout.tiles[first_tile..(first_tile + item_tiles).min(layout.tiles.len())];
        let (mut row, mut joins) = (tiles[0].row(), tiles[0].joins());
        let (mut head, mut sum) = (C::Acc::ZERO, C::Acc::ZERO);
        for (number, tile) in tiles.iter().enumerate() {
            let first = (first_tile + number) * tile_slots;
            for slot in first..(first + tile_slots).min(layout.slot_count) {
                if !layout.is_void(slot) {
                    let x = self.x[layout.column(tile, slot)];
                    sum += layout.values[slot].widen() * x.widen();
                }
                if layout.is_end(slot) {
                    if joins {
                        (head, joins) = (sum, false);
                    } else {
                        self.store(row, sum);
                    }
                    (row, sum) = (row + 1, C::Acc::ZERO);
                }
            }
        }
        let parts = if joins { [sum, C::Acc::ZERO] } else { [head, sum] };
        if layout.tiles.len() > item_tiles {
            for (at, part) in parts.into_iter().enumerate() {
                // SAFETY: an item has two parts of its own, which nothing reads
                // before all are done.
                unsafe { self.parts.set(2 * item + at, part) };
            }
        }
    }

    /// The rows that lie in several items, when all are done.
    fn add_parts(&self, items: usize, item_tiles: usize) {
        let mut open = C::Acc::ZERO;
        for item in 0..if items > 1 { items } else { 0 } {
            let tile = &self.layout.tiles[item * item_tiles];
            let next = self.layout.tiles.get((item + 1) * item_tiles);
            let goes_on = |next: &Tile| next.joins() && next.row() == tile.row();
            // SAFETY: all items are done, so nothing writes parts.
            let (head, tail) = unsafe { (self.parts.get(2 * item), self.parts.get(2 * item + 1)) };
            if !tile.joins() {
                open = tail;
                continue;
            }
            open += head;
            if !next.is_some_and(goes_on) {
                self.store(tile.row(), open);
                open = tail;
            }
        }
    }
}

//! SpMV algorithm `stream` on the host: y = alpha · op(A) · x + beta · y on [`StreamLayout`].
//!
//! Items of [`ITEM_SLOTS`] slots run in parallel. A row in several items is the sum, in their order, of its
//! partial sums. Because of the fixed size of items, the result does not depend on the number of threads.

use super::{Opened, SpmvProduct};
use crate::backend::host::layout::{Layout, OpA};
use crate::backend::host::schedule;
use crate::error::Result;
use crate::format::stream::Tile;
use crate::format::StreamLayout;
use crate::memory::Context;
use crate::support::Combo;
use crate::types::{Accumulator, Element, LayoutKind, Storage};

/// Slots per item: about 10 µs of work, against about 30 ns for taking an item.
const ITEM_SLOTS: usize = 1 << 13;

impl<V: Element> StreamLayout<V> {
    const ITEM_TILES: usize = ITEM_SLOTS / Self::TILE;

    fn items(&self) -> usize {
        self.tiles.len().div_ceil(Self::ITEM_TILES)
    }
}

pub(super) fn arrange<V: Element>(cx: &Context, a: &OpA) -> Result<StreamLayout<V>> {
    a.arrange(cx, a.source(), |allocator, rows, origin| {
        StreamLayout::build(allocator, &rows.pattern, rows.values, origin)
    })
}

impl<V: Element> Layout for StreamLayout<V> {
    const KIND: LayoutKind = LayoutKind::Stream;

    fn update_values(&mut self, cx: &Context, a: &OpA) -> Result<()> {
        a.renew(self, Self::refill, |_| arrange(cx, a))
    }

    fn size(&self) -> (usize, f64) {
        (self.slot_count, self.fill_ratio())
    }
}

impl<C: Combo> SpmvProduct<C> for StreamLayout<C::A> {
    /// Two partial sums per item, of the rows with which it begins and ends; none if there is only one item,
    /// which no row leaves.
    fn sums(&self) -> usize {
        if self.items() > 1 {
            2 * self.items()
        } else {
            0
        }
    }

    fn multiply(&self, parallel: bool, opened: Opened<'_, C>) -> Result<()> {
        let product = Running { layout: self, opened };
        schedule::for_each(parallel, self.items(), |item| product.item(item, Self::ITEM_TILES));
        product.add_parts(self.items(), Self::ITEM_TILES);
        Ok(())
    }
}

/// State of one product.
struct Running<'a, C: Combo> {
    layout: &'a StreamLayout<C::A>,
    opened: Opened<'a, C>,
}

impl<C: Combo> Running<'_, C> {
    /// Computes the tiles of one item.
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
                    let x = self.opened.x[layout.column(tile, slot)];
                    sum += layout.values[slot].widen() * x.widen();
                }
                if layout.is_end(slot) {
                    if joins {
                        (head, joins) = (sum, false);
                    } else {
                        // Stored here unless the row began in an earlier item; such rows are stored when all
                        // items are done.
                        self.opened.store(row, sum);
                    }
                    (row, sum) = (row + 1, C::Acc::ZERO);
                }
            }
        }
        let parts = if joins { [sum, C::Acc::ZERO] } else { [head, sum] };
        if layout.tiles.len() > item_tiles {
            for (at, part) in parts.into_iter().enumerate() {
                // SAFETY: an item has two partial sums of its own, which nothing reads
                // before all are done.
                unsafe { self.opened.sums.set(2 * item + at, part) };
            }
        }
    }

    /// Stores the rows that are in several items, after all items are done.
    fn add_parts(&self, items: usize, item_tiles: usize) {
        let mut open = C::Acc::ZERO;
        for item in 0..if items > 1 { items } else { 0 } {
            let tile = &self.layout.tiles[item * item_tiles];
            let next = self.layout.tiles.get((item + 1) * item_tiles);
            let goes_on = |next: &Tile| next.joins() && next.row() == tile.row();
            // SAFETY: all items are done, so nothing writes partial sums.
            let [head, tail] = [0, 1].map(|part| unsafe { self.opened.sums.get(2 * item + part) });
            if !tile.joins() {
                open = tail;
                continue;
            }
            open += head;
            if !next.is_some_and(goes_on) {
                self.opened.store(tile.row(), open);
                open = tail;
            }
        }
    }
}

//! SpMM `window`: C = alpha · op(A) · op(B) + beta · C with windows of dense tiles
//! ([`Window`](crate::format::Window)), or for values of 4 and more bytes of masked tiles
//! ([`MaskedWindow`](crate::format::MaskedWindow)). An item is a window; it is swept once per block of
//! columns of C. Each element of C is one sum in the order of the row's entries, so results do not depend on
//! the number of threads.

use super::{Opened, SpmmProduct};
use crate::backend::host::layout::{Layout, OpA};
use crate::backend::host::schedule;
use crate::error::Result;
use crate::format::masked_window::MaskedTiles;
use crate::format::window::{Counts, DenseTiles, Rules, TileStore, WindowLayout, HEIGHTS};
use crate::memory::Context;
use crate::select::{spmm as select, Source};
use crate::support::Combo;
use crate::types::{Element, LayoutKind, Storage};

/// Columns of C whose sums an item holds at one time: in fp32 those of 64 rows take 8 KB of the first-level
/// cache.
const COLUMNS: usize = 32;

/// Tiles of windows, with the rules by which the host chooses their shape.
pub(super) trait HostTiles: TileStore + Send + Sync {
    const RULES: fn(&Counts) -> Rules;
}

impl HostTiles for DenseTiles {
    const RULES: fn(&Counts) -> Rules = select::window::rules_on_host;
}

impl HostTiles for MaskedTiles {
    const RULES: fn(&Counts) -> Rules = select::masked_window::rules_on_host;
}

pub(super) fn arrange<V: Element, T: HostTiles>(cx: &Context, a: &OpA) -> Result<WindowLayout<V, T>> {
    // The operand is copied on the way, since the rows must be sorted.
    a.arrange(cx, Source::Canonical, |allocator, rows, origin| {
        WindowLayout::build(allocator, &rows.pattern, rows.values, origin, T::RULES)
    })
}

impl<V: Element, T: HostTiles> Layout for WindowLayout<V, T> {
    const KIND: LayoutKind = LayoutKind::Window;

    fn update_values(&mut self, cx: &Context, a: &OpA) -> Result<()> {
        a.renew(self, WindowLayout::refill, |_| arrange(cx, a))
    }

    fn size(&self) -> (usize, f64) {
        (self.nnz + self.row_count, self.fill_ratio())
    }

    fn details(&self) -> String {
        self.details()
    }
}

impl<C: Combo, T: HostTiles> SpmmProduct<C> for WindowLayout<C::A, T> {
    fn multiply(&self, parallel: bool, opened: Opened<'_, C>) -> Result<()> {
        schedule::for_each(parallel, self.items.len(), |item| {
            let Some((window, blocks)) = self.window_at(item) else { return };
            let row = |at: usize| {
                let row = window * self.height + at;
                (at < self.height && row < self.row_count).then_some(row)
            };
            opened.sweep::<{ HEIGHTS[3] }, COLUMNS>(row, |sums, first, columns| {
                for block in blocks.clone() {
                    self.for_each_of_block(block, |row, column, value| {
                        opened.add(&mut sums[row][..columns], value.widen(), column, first);
                    });
                }
            });
        });
        Ok(())
    }
}

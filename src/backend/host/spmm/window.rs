//! SpMM `window`: C = alpha · op(A) · op(B) + beta · C on [`Window`], or with values of 4
//! and more bytes on [`MaskedWindow`]. An item is a window; it is swept once per block of columns of C. Each element of C is one sum in
//! the order of the row's entries, so nothing depends on the number of threads.

use std::ops::Range;

use super::{Opened, Product};
use crate::backend::host::layout::{Layout, OpA};
use crate::backend::host::schedule;
use crate::backend::LayoutInfo;
use crate::error::Result;
use crate::format::window::HEIGHTS;
use crate::format::{MaskedWindow, Window};
use crate::memory::Context;
use crate::select::{spmm as select, Source};
use crate::support::Combo;
use crate::types::{Element, LayoutKind, Storage};

/// Columns of C that an item has sums of at one time: 64 rows of them are 8 KB of the
/// first level's cache.
const COLUMNS: usize = 32;

/// Calls a method of the layout, whichever it is.
macro_rules! of_layout {
    ($layout:expr, $name:ident => $use:expr) => {
        match $layout {
            Windows::Dense($name) => $use,
            Windows::Masked($name) => $use,
        }
    };
}

/// A layout of windows.
pub(super) enum Windows<V: Element> {
    Dense(Window<V>),
    Masked(MaskedWindow<V>),
}

impl<V: Element> Windows<V> {
    fn row_count(&self) -> usize {
        of_layout!(self, layout => layout.row_count)
    }

    fn window_at(&self, item: usize) -> Option<(usize, Range<usize>)> {
        of_layout!(self, layout => layout.window_at(item))
    }

    #[inline(always)]
    fn for_each_of_block(&self, block: usize, f: impl FnMut(usize, usize, V)) {
        of_layout!(self, layout => layout.for_each_of_block(block, f));
    }
}

pub(super) fn arrange<V: Element>(cx: &Context, a: &OpA) -> Result<Windows<V>> {
    // A copy on the way, since the rows must be sorted.
    a.arrange(cx, Source::Canonical, |allocator, rows, origin| {
        let (pattern, values) = (&rows.pattern, rows.values);
        // The choice that the CUDA backend makes, so that what it runs is tested here.
        Ok(if size_of::<V>() == 2 {
            let rules = select::window::rules_on_host;
            Windows::Dense(Window::build(allocator, pattern, values, origin, rules)?)
        } else {
            let rules = select::masked_window::rules_on_host;
            Windows::Masked(MaskedWindow::build(allocator, pattern, values, origin, rules)?)
        })
    })
}

impl<V: Element> Layout for Windows<V> {
    fn update_values(&mut self, cx: &Context, a: &OpA) -> Result<()> {
        let refill = |windows: &mut Self, values: &[V], conjugate| of_layout!(windows, layout => layout.refill(values, conjugate));
        a.renew(self, refill, |_| arrange(cx, a))
    }

    fn units(&self) -> usize {
        let nnz = match self {
            Windows::Dense(layout) => layout.nnz,
            Windows::Masked(layout) => layout.values.len(),
        };
        nnz + self.row_count()
    }

    fn info(&self) -> LayoutInfo {
        let fill = match self {
            Windows::Dense(layout) => layout.fill_ratio(),
            Windows::Masked(_) => 1.0,
        };
        LayoutInfo { kind: LayoutKind::Window, in_place: false, fill }
    }

    fn details(&self) -> String {
        of_layout!(self, layout => layout.details())
    }
}

impl<C: Combo> Product<C> for Windows<C::A> {
    fn multiply(&self, parallel: bool, opened: Opened<'_, C>) -> Result<()> {
        let height = of_layout!(self, layout => layout.height);
        let items = of_layout!(self, layout => layout.items.len());
        schedule::for_each(parallel, items, |item| {
            let Some((window, blocks)) = self.window_at(item) else { return };
            let row = |at: usize| {
                let row = window * height + at;
                (at < height && row < self.row_count()).then_some(row)
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

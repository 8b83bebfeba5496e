//! SpMM `smat` on the host: C = alpha · op(A) · op(B) + beta · C with the layout [`Bcsr`]. An item is a row
//! block; it is swept once per block of columns of C. Each element of C is one sum in the order of the row's
//! entries, so results do not depend on the number of threads.

use std::sync::Arc;

use super::{Opened, SpmmProduct};
use crate::backend::host::layout::{Layout, OpA};
use crate::backend::host::schedule;
use crate::error::Result;
use crate::format::bcsr::{widest, ROWS};
use crate::format::Bcsr;
use crate::memory::Context;
use crate::reorder::jaccard::{cluster, When};
use crate::reorder::{BlockShape, KeptOrder};
use crate::select::spmm::smat;
use crate::select::{Clusters, Source};
use crate::support::Combo;
use crate::types::{Element, LayoutKind, Reorder, Storage};

/// Columns of C whose sums an item holds at one time: the sums of 16 rows, and the rows of B of a block, take
/// at most 16 KB of the first-level cache.
const COLUMNS: usize = 64;

/// Builds blocks of rows in `clusters`, of `width` columns or, if that is `None`, of the default width for the
/// value type.
pub(super) fn arrange<V: Element>(
    cx: &Context,
    a: &OpA,
    clusters: &Clusters,
    width: Option<usize>,
) -> Result<Bcsr<V>> {
    let rules = smat::rules(size_of::<V>(), width.unwrap_or(widest(size_of::<V>())));
    // The operand is copied on the way, since the rows must be sorted.
    a.arrange(cx, Source::Canonical, |allocator, rows, origin| {
        let places = match clusters {
            Clusters::No => None,
            Clusters::Yes | Clusters::IfFaster => {
                let shape = BlockShape { height: ROWS, width: rules.width };
                let windows = cluster(allocator, &rows.pattern, shape, When::Promising)?.windows;
                windows.map(|windows| windows.places(allocator, ROWS)).transpose()?
            }
            Clusters::Kept(order) => Some(order.places(allocator, rows.pattern.major, ROWS)?),
        };
        Bcsr::build(allocator, &rows.pattern, rows.values, origin, rules, places.as_deref())
    })
}

impl<V: Element> Layout for Bcsr<V> {
    const KIND: LayoutKind = LayoutKind::Bcsr;

    fn update_values(&mut self, cx: &Context, a: &OpA) -> Result<()> {
        a.renew(self, Self::refill, |old| {
            let clusters = old.row_order()?.map_or(Clusters::No, |order| Clusters::Kept(Arc::new(order)));
            arrange(cx, a, &clusters, Some(old.width))
        })
    }

    fn size(&self) -> (usize, f64) {
        (self.nnz + self.row_count, self.fill_ratio())
    }

    fn details(&self) -> String {
        self.details()
    }

    fn reorder(&self) -> Reorder {
        match self.order {
            Some(_) => Reorder::Auto,
            None => Reorder::None,
        }
    }

    fn row_order(&self) -> Result<Option<KeptOrder>> {
        self.order.as_ref().map_or(Ok(None), |order| KeptOrder::of_places(order, ROWS))
    }
}

impl<C: Combo> SpmmProduct<C> for Bcsr<C::A> {
    fn multiply(&self, parallel: bool, opened: Opened<'_, C>) -> Result<()> {
        schedule::for_each(parallel, self.items.len(), |item| {
            let Some((row_block, blocks)) = self.row_block_at(item) else { return };
            opened.sweep::<ROWS, COLUMNS>(
                |at| self.row(row_block, at),
                |sums, first, columns| {
                    for block in blocks.clone() {
                        self.for_each_of_block(block, |row, column, value| {
                            opened.add(&mut sums[row][..columns], value.widen(), column, first);
                        });
                    }
                },
            );
        });
        Ok(())
    }

    fn block_width(&self) -> Option<usize> {
        Some(self.width)
    }
}

//! SpMM `swift` on the host: C = alpha · op(A) · op(B) + beta · C with the layout [`Swift`]. An item is a
//! range of columns of C; for these one thread adds all blocks, segment by segment, and all pieces, in their
//! order, so results do not depend on the number of threads. A row of A may occur in many blocks, so its sums
//! are accumulated in the workspace, and alpha and beta are applied to complete sums: alpha times a partial
//! sum may overflow where alpha times the sum does not.

use super::{Opened, SpmmProduct};
use crate::backend::host::layout::{Layout, OpA};
use crate::backend::host::schedule;
use crate::error::Result;
use crate::format::Swift;
use crate::memory::{pool, Context};
use crate::select::Source;
use crate::support::Combo;
use crate::types::{Accumulator, Element, LayoutKind, Storage};

/// Minimum and maximum number of columns of C whose sums an item holds at one time: the fp64 elements of a
/// row of B in 64 bytes, and the sums that fit into 16 vector registers.
const COLUMNS: [usize; 2] = [8, 64];

pub(super) fn arrange<V: Element>(cx: &Context, a: &OpA) -> Result<Swift<V>> {
    // The layout has columns of op(A): rows of its transpose.
    let columns = OpA { op: a.op.flipped(), ..*a };
    columns.arrange(cx, Source::Canonical, |allocator, rows, origin| {
        Swift::build(allocator, &rows.pattern, rows.values, origin)
    })
}

impl<V: Element> Layout for Swift<V> {
    const KIND: LayoutKind = LayoutKind::Swift;

    fn update_values(&mut self, cx: &Context, a: &OpA) -> Result<()> {
        a.renew(self, |swift, values, _| swift.refill(values), |_| arrange(cx, a))
    }

    fn size(&self) -> (usize, f64) {
        (self.outline.nnz + self.row_count, 1.0)
    }

    fn details(&self) -> String {
        self.details()
    }
}

impl<C: Combo> SpmmProduct<C> for Swift<C::A> {
    /// Returns one sum for each element of C: the workspace holds, for each item, those of its columns, row
    /// after row.
    fn sums(&self, n: usize) -> usize {
        self.row_count.saturating_mul(n)
    }

    fn multiply(&self, parallel: bool, opened: Opened<'_, C>) -> Result<()> {
        let n = opened.n;
        let threads = if parallel { pool::size() } else { 1 };
        let each = n.div_ceil(threads).clamp(COLUMNS[0], COLUMNS[1]);
        schedule::for_each(parallel, n.div_ceil(each), |item| {
            columns(self, &opened, item * each, each.min(n - item * each));
        });
        Ok(())
    }
}

/// Computes `count` columns of C from column `first` on.
fn columns<C: Combo>(layout: &Swift<C::A>, opened: &Opened<'_, C>, first: usize, count: usize) {
    let mut sums = [C::Acc::ZERO; COLUMNS[1]];
    let (sums, rows) = (&mut sums[..count], layout.row_count);
    // SAFETY: only one item has these columns, and the workspace is borrowed until all items are done.
    let totals = unsafe { opened.scratch.part(first * rows..(first + count) * rows) };
    totals.fill(C::Acc::ZERO);
    for group in 0..layout.outline.groups() {
        let mut last = None;
        layout.for_each_of_group(group, |column, row, value| {
            if last != Some(row) {
                add(last.replace(row), totals, sums);
            }
            opened.add(sums, value.widen(), column, first);
        });
        add(last, totals, sums);
    }
    for piece in 0..layout.outline.pieces.len() {
        layout.for_each_of_piece(piece, |column, row, value| {
            opened.add(sums, value.widen(), column, first);
            add(Some(row), totals, sums);
        });
    }
    for (row, totals) in totals.chunks_exact(count).enumerate() {
        for (lane, &total) in totals.iter().enumerate() {
            opened.store(row, first + lane, total);
        }
    }
}

/// Adds `sums` to the totals of a row, and resets `sums` to 0.
#[inline(always)]
fn add<T: Accumulator>(row: Option<usize>, totals: &mut [T], sums: &mut [T]) {
    let Some(row) = row else { return };
    for (total, sum) in totals[row * sums.len()..].iter_mut().zip(sums) {
        *total += std::mem::replace(sum, T::ZERO);
    }
}

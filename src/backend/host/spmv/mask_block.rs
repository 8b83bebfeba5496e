//! SpMV algorithm `mask_block` on the host: y = alpha · op(A) · x + beta · y on [`MaskBlock`], with sums in
//! the order that src/format/mask_block.rs describes and one share per slab or piece. The result does not
//! depend on the number of threads.

use super::{Opened, SpmvProduct};
use crate::backend::host::layout::{Layout, OpA};
use crate::backend::host::schedule;
use crate::error::Result;
use crate::format::mask_block::{BlockHead, COLUMNS, CUT, MOST_ROWS, WORD_ROWS};
use crate::format::MaskBlock;
use crate::memory::Context;
use crate::select::spmv::mask_block as select;
use crate::select::Source;
use crate::support::Combo;
use crate::types::{Accumulator, Element, LayoutKind, Storage};

/// Slabs per item: about 4 µs of work at 25 blocks of 8 rows per slab, against about 30 ns for taking an
/// item.
const ITEM_HEADS: usize = 16;

/// Lanes of a warp: divided by the rows of a block, the number of sums over which a row's blocks are
/// distributed.
const WARP: usize = 32;

pub(super) fn arrange<V: Element>(cx: &Context, a: &OpA) -> Result<MaskBlock<V>> {
    // The rows must be sorted, so they come from a canonical copy.
    a.arrange(cx, Source::Canonical, |allocator, rows, origin| {
        MaskBlock::build(allocator, &rows.pattern, rows.values, origin, select::rules_on_host)
    })
}

impl<V: Element> Layout for MaskBlock<V> {
    const KIND: LayoutKind = LayoutKind::MaskBlock;

    fn update_values(&mut self, cx: &Context, a: &OpA) -> Result<()> {
        a.renew(self, Self::refill, |_| arrange(cx, a))
    }

    fn size(&self) -> (usize, f64) {
        (self.values.len() + self.row_count, self.fill_ratio())
    }

    fn details(&self) -> String {
        self.details()
    }
}

impl<C: Combo> SpmvProduct<C> for MaskBlock<C::A> {
    /// One sum for each row of a piece.
    fn sums(&self) -> usize {
        self.parts.len() * self.block_rows
    }

    fn multiply(&self, parallel: bool, opened: Opened<'_, C>) -> Result<()> {
        let (layout, height) = (self, self.block_rows);
        let Opened { x, sums, scalars, .. } = opened;
        let store = |slab: usize, sums: &[C::Acc; MOST_ROWS]| {
            let rows = slab * height..layout.row_count.min((slab + 1) * height);
            // SAFETY: each slab is stored once.
            let y = unsafe { opened.rows(rows) };
            for (y, &sum) in y.iter_mut().zip(sums) {
                scalars.store(sum, y);
            }
        };
        let slabs = layout.slabs();
        schedule::for_each(parallel, layout.heads.len().div_ceil(ITEM_HEADS), |item| {
            let first = item * ITEM_HEADS;
            for number in first..layout.heads.len().min(first + ITEM_HEADS) {
                let head = &layout.heads[number];
                if head.flags & CUT != 0 {
                    continue;
                }
                let total = sum::<C>(self, head, x);
                match number.checked_sub(slabs) {
                    None => store(number, &total),
                    Some(part) => {
                        for (row, &sum) in total[..height].iter().enumerate() {
                            // SAFETY: the sums of a piece belong to one item, and nothing reads them before
                            // all are done.
                            unsafe { sums.set(part * height + row, sum) };
                        }
                    }
                }
            }
        });
        for (number, part) in layout.parts.iter().enumerate() {
            if part.first as usize != number {
                continue;
            }
            let mut total = [C::Acc::ZERO; MOST_ROWS];
            for part in number..number + part.count as usize {
                for (row, total) in total[..height].iter_mut().enumerate() {
                    // SAFETY: all items are done, so nothing writes sums.
                    *total += unsafe { sums.get(part * height + row) };
                }
            }
            store(part.slab as usize, &total);
        }
        Ok(())
    }
}

/// Returns the sums of the rows of a slab or a piece.
fn sum<C: Combo>(layout: &MaskBlock<C::A>, head: &BlockHead, x: &[C::X]) -> [C::Acc; MOST_ROWS] {
    let strands = WARP / layout.block_rows;
    let mut sums = [[C::Acc::ZERO; MOST_ROWS]; WARP / WORD_ROWS];
    let mut strand = 0;
    layout.for_each_block_of(head, |column, mask, first| {
        let (mut left, mut value) = (mask, first);
        while left != 0 {
            let bit = left.trailing_zeros() as usize;
            let (row, inside) = (bit / COLUMNS, bit % COLUMNS);
            sums[strand][row] += layout.values[value].widen() * x[column + inside].widen();
            value += 1;
            left &= left - 1;
        }
        strand = (strand + 1) % strands;
    });
    let mut step = 1;
    while step < strands {
        for strand in (0..strands).step_by(2 * step) {
            let (left, right) = sums.split_at_mut(strand + step);
            for (sum, &other) in left[strand].iter_mut().zip(&right[0]) {
                *sum += other;
            }
        }
        step *= 2;
    }
    sums[0]
}

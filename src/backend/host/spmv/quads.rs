//! SpMV algorithm `sell` on the host for matrices of small dense blocks: y = alpha · op(A) · x + beta · y on
//! [`Quads`], with AVX-512.
//!
//! Places of a block have a sum each: the 16 places are one register of floats or two of doubles. A block takes
//! one load of four elements of x, which are the same for its rows, and for each register a load of as many
//! values as it holds, which are spread over the mask, and a multiplication and addition under the mask, so that elements of x where a row has no entry never reach its sum. A row is the sum of its four
//! places, (0 + 2) + (1 + 3), and each place the sum of its blocks in their order. The result does not depend
//! on the number of threads.
//!
//! Other processors have a plain loop, which is slow; analysis takes slices there.

use std::any::TypeId;
use std::sync::Arc;

use super::{Opened, Spmv, SpmvProduct};
use crate::backend::host::layout::{Layout, OpA};
use crate::backend::host::operand::HostRows;
use crate::backend::host::schedule;
use crate::backend::host::slices::Slices;
#[cfg(avx512)]
use crate::backend::host::vector::{prefetch, Width};
use crate::backend::SpmvExecutor;
use crate::error::{Error, Result};
use crate::format::narrowing::{Form, Narrow};
use crate::format::quads::{AnyProcessor, Counts, Start, GROUPS, ROW_WORK, SIDE, SLAB};
use crate::format::sell::{Origin, SellLayout};
use crate::format::Quads;
use crate::memory::{Allocator, Context};
use crate::support::Combo;
use crate::types::{Accumulator, LayoutKind, Storage};

// Where the compiler is new enough.
#[cfg(avx512)]
#[allow(clippy::incompatible_msrv)]
mod avx512;
#[cfg(avx512)]
#[allow(clippy::incompatible_msrv)]
mod cut;
#[cfg(test)]
mod tests;

/// Slices or quads.
enum Taken<V: Narrow> {
    Slices(SellLayout<V>),
    Quads(Quads<V>),
}

/// Makes the executor of `sell`, on the layout that is faster.
pub(super) fn sell<C: Combo>(cx: &Context, a: OpA) -> Result<Box<SpmvExecutor>> {
    let keep = a.keep;
    let taken = a.arrange(cx, a.source(), |allocator, rows, origin| {
        let form = Slices::form(rows, keep);
        if form == Form::Full && uses_avx512::<C>() {
            if let Some(quads) = if_faster(allocator, rows, origin)? {
                return Ok(Taken::Quads(quads));
            }
        }
        Ok(Taken::Slices(SellLayout::build(allocator, &rows.pattern, rows.values, form, origin)?))
    })?;
    Ok(match taken {
        Taken::Slices(layout) => Spmv::<C, _>::boxed(a, Slices::deal(cx, layout)?),
        Taken::Quads(layout) => Spmv::<C, _>::boxed(a, layout),
    })
}

/// Returns whether products of these types have code for AVX-512, and the processor has that.
pub(super) fn uses_avx512<C: Combo>() -> bool {
    let is = |id| [TypeId::of::<C::A>(), TypeId::of::<C::X>(), TypeId::of::<C::Acc>()] == [id; 3];
    #[cfg(avx512)]
    let has = Width::widest() == Width::Zmm && is_x86_feature_detected!("popcnt");
    #[cfg(not(avx512))]
    let has = false;
    (is(TypeId::of::<f64>()) || is(TypeId::of::<f32>())) && has
}

/// Returns the largest number of blocks with which quads are faster than slices for elements of this many bytes, by
/// the numbers of entries.
fn most_blocks(bytes: usize, counts: &Counts) -> usize {
    // In the caches a block takes as long as 6 entries of slices (fp64; 4 in fp32), from memory as long as 4.
    // With five, SiH4 had 0.96 of the speed of slices with cleared caches and 0.81 back to back in fp64. An entry
    // of a slice whose rows read x side by side takes a fourth.
    let least = if bytes == size_of::<f64>() { 6 } else { 4 };
    (counts.entries - counts.side_by_side + counts.side_by_side / 4) / least
}

/// Returns whether quads are faster, by these counts.
fn pays(bytes: usize, counts: &Counts) -> bool {
    counts.entries > 0 && counts.blocks <= most_blocks(bytes, counts)
}

/// Calls `build` with the fastest cut that the processor has.
macro_rules! with_cut {
    ($cut:ident => $build:expr) => {{
        #[cfg(avx512)]
        if let Some($cut) = &cut::Avx512::detect() {
            return $build;
        }
        let $cut = &AnyProcessor;
        $build
    }};
}

/// Builds the layout if it is faster.
fn if_faster<V: Narrow>(
    allocator: &Arc<Allocator>,
    rows: &HostRows<'_, V>,
    origin: Origin<'_>,
) -> Result<Option<Quads<V>>> {
    with_cut!(cut => {
        let (pattern, bytes) = (&rows.pattern, size_of::<V>());
        if pattern.minor < SIDE {
            return Ok(None);
        }
        let sample = Counts::sample(pattern, cut);
        if !pays(bytes, &sample) {
            return Ok(None);
        }
        // The sample's part of the entries.
        let entries = pattern.indices.len();
        let side_by_side = (entries as f64 * sample.side_by_side as f64 / sample.entries as f64) as usize;
        let most_blocks = most_blocks(bytes, &Counts { blocks: 0, entries, side_by_side });
        Quads::build(allocator, pattern, rows.values, origin, cut, most_blocks)
    })
}

impl<V: Narrow> Layout for Quads<V> {
    const KIND: LayoutKind = LayoutKind::Sell;

    fn update_values(&mut self, cx: &Context, a: &OpA) -> Result<()> {
        // The new layout has the blocks of the old one.
        a.renew(self, Self::refill, |old: &Self| arrange(cx, a, old.words.len()))
    }

    fn size(&self) -> (usize, f64) {
        (self.entries() + self.row_count * ROW_WORK, 1.0)
    }

    fn details(&self) -> String {
        format!("blocks of {SIDE} × {SIDE}")
    }
}

/// Builds the layout, whether it is faster or not, of rows that it can have with up to so many blocks.
pub(super) fn arrange<V: Narrow>(cx: &Context, a: &OpA, most_blocks: usize) -> Result<Quads<V>> {
    let built = a.arrange(cx, a.source(), |allocator, rows, origin| {
        with_cut!(cut => Quads::build(allocator, &rows.pattern, rows.values, origin, cut, most_blocks))
    })?;
    // The pattern is that of a layout, so that nothing else can be missing.
    built.ok_or_else(|| Error::out_of_memory(most_blocks.saturating_mul(size_of::<u32>())))
}

/// Bytes of values and of words by which they are prefetched ahead, as in slices, and elements by which x is:
/// a cache line of it for a slab. Unlike slices, quads gain by that in any cache (dlmc_rn50_mp050_proj4, whose x
/// takes 8 KiB, in fp32: 1.36 → 1.80 times as fast as slices).
#[cfg(avx512)]
const AHEAD: (usize, usize, usize) = (2048, 512, 4096);

impl<C: Combo> SpmvProduct<C> for Quads<C::A> {
    fn sums(&self) -> usize {
        0
    }

    fn multiply(&self, parallel: bool, opened: Opened<'_, C>) -> Result<()> {
        // The unchecked loads rely on this; the plan has checked it.
        assert!(opened.x.len() >= self.col_count);
        let fast = uses_avx512::<C>();
        schedule::for_each(parallel, self.items.len() - 1, |item| {
            let (start, last) = (self.items[item], self.items[item + 1].slab as usize);
            #[cfg(avx512)]
            if fast {
                // SAFETY: the processor has AVX-512, the types are those that have code for it, and x has all
                // columns.
                return unsafe { avx512::item(self, start, last, &opened) };
            }
            plain(self, start, last, &opened);
        });
        let _ = fast;
        Ok(())
    }
}

/// Stores the rows of a slab.
#[inline(always)]
fn store<C: Combo>(slab: usize, opened: &Opened<'_, C>, rows: usize, sums: &[C::Acc; SLAB]) {
    let rows = slab * SLAB..rows.min((slab + 1) * SLAB);
    // SAFETY: each slab is in one item.
    let y = unsafe { opened.rows(rows) };
    for (y, &sum) in y.iter_mut().zip(sums) {
        opened.scalars.store(sum, y);
    }
}

/// Computes the slabs from the start of an item up to slab `last`, on any processor.
fn plain<C: Combo>(layout: &Quads<C::A>, start: Start, last: usize, opened: &Opened<'_, C>) {
    let (mut word, mut value) = (start.word as usize, start.value as usize);
    for number in start.slab as usize..last {
        let slab = &layout.slabs[number];
        let mut sums = [C::Acc::ZERO; SLAB];
        for group in 0..GROUPS {
            let mut places = [[C::Acc::ZERO; SIDE]; SIDE];
            for _ in 0..slab.blocks(group) {
                let (mask, column) = layout.block(slab, word);
                word += slab.words_per_block();
                let mut left = mask;
                while left != 0 {
                    let bit = left.trailing_zeros() as usize;
                    let (row, inside) = (bit / SIDE, bit % SIDE);
                    let (a, x) = (layout.values[value].widen(), opened.x[column + inside].widen());
                    places[row][inside] = places[row][inside].plus_product(a, x);
                    value += 1;
                    left &= left - 1;
                }
            }
            for (row, p) in places.iter().enumerate() {
                sums[group * SIDE + row] = (p[0] + p[2]) + (p[1] + p[3]);
            }
        }
        store(number, opened, layout.row_count, &sums);
    }
}

//! SpMM `row`: C = alpha · op(A) · op(B) + beta · C on rows of op(A); `csr`, which differs from it only on
//! GPUs, is the same here.
//!
//! Items of the [`Schedule`](crate::backend::host::schedule::Schedule) run in parallel. An item is swept once
//! per block of columns of C, whose sums are in registers: the item's part of A stays in the first-level
//! cache, and rows of B that neighbouring rows of A share are read from the caches too. Where rows of op(B)
//! are not contiguous, panels of it are copied so that they are, one after the other.
//!
//! Registers of AVX2 hold half the columns of those of AVX-512, or fewer. There all blocks of a row are computed before
//! the next row, and the products of four entries are added in one pass over a block's sums, so that rows of B are read
//! as a whole and four side by side: on a Zen 3 core that took two thirds of the time with 128 columns of doubles
//! (docs/algorithms/host.md, "SpMM with AVX2").
//!
//! Each element of C is one sum in the order of the row's entries, or in blocks of a single vector the sum of
//! four, of every fourth entry, and of two in blocks of two registers. With AVX-512, rows of B and C that are contiguous,
//! and a B of real numbers of the sums' type (`lines`) it is two sums, of every other entry, in rows of C of up to two
//! registers, and one sum in longer ones. A long row is the sum, in order, of the partial sums of its chunks.

use std::any::TypeId;
use std::mem::MaybeUninit;
use std::ops::Range;

use super::{Opened, SpmmProduct};
use crate::backend::host::columns::OwnColumns;
use crate::backend::host::layout::Csr;
use crate::backend::host::operand::{Factor, Ints};
use crate::backend::host::schedule::{self, Work};
#[cfg(target_arch = "x86_64")]
use crate::backend::host::vector::Ymm;
#[cfg(avx512)]
use crate::backend::host::vector::Zmm;
use crate::backend::host::vector::{
    end_streaming, prefetch, second_level_cache, Array, Vector, Width, LINE, PAST_CACHES,
};
use crate::error::Result;
use crate::support::Combo;
use crate::types::{Accumulator, Element, Storage};

#[cfg(avx512)]
mod lines;
mod own;
mod plain;
mod store;

/// Bytes of a row of a panel: four of the widest registers, so that a part of a row of op(A) finds its rows
/// of the panel in the first-level cache.
const PANEL_BYTES: usize = 256;
/// Columns of C from which on panels are copied: fewer are computed column by column.
const FEWEST_PACKED: usize = 4;
/// Rows of a panel that one parallel task copies, at least 10 µs of work.
const PACKED_ROWS: usize = 512;
/// Most rows of C that are collected before they are written by columns.
const TILE_ROWS: usize = 16;
/// Most vectors of a row in such a tile.
const TILE_VECTORS: usize = 4;
/// Chains of sums of blocks of a single vector, but for those of `lines`. On Zen 4 a fused multiply-add of AVX-512 takes
/// as long as four begin.
const CHAINS_OF_ONE: usize = 4;
/// Chains of sums of blocks of two registers, but for those of `lines`: one takes as long as four loads, of which there
/// are two.
const CHAINS_OF_TWO: usize = 2;
/// Number of 64-bit columns that are converted at one time. It is a multiple of the chains, so that the same
/// entries are in the same sum as with 32-bit columns.
const FEW: usize = 32;
/// Bytes of a block's part of a row of B from which on it is prefetched: smaller ones arrive in time without, but for
/// blocks that add four entries at a time, which prefetch theirs whatever its size.
const PREFETCHED_BYTES: usize = 512;
/// Bytes of B, in multiples of the second-level cache, from which on its rows are prefetched: prefetches of rows of a
/// smaller B take up to 15 % longer (docs/algorithms/host.md).
const PREFETCHED_B: usize = 4;
/// Bytes of a second-level cache from which on values and columns of A are prefetched; not measured with smaller ones.
const LARGE_L2: usize = 2 << 20;
/// Bytes of B from which on its rows are prefetched where four entries are added at a time, whatever the caches: on Zen 3
/// prefetches of rows of a smaller B cost up to 40 %.
#[cfg(target_arch = "x86_64")]
const PREFETCHED_B_OF_FOUR: usize = 4 << 20;
/// Bytes of a row from which on one that begins behind a cache line may be written past the caches: rows of 32 doubles
/// took up to a quarter longer so (docs/algorithms/host.md, "Rows beside cache lines").
const LONG_ROW: usize = 1024;
/// Entries by which prefetches are ahead.
const AHEAD: usize = 8;
/// Column indices that are checked together, or those of a row that has more.
const CHECKED: usize = 256;
/// Bytes by which prefetches of the values of A are ahead.
const VALUES_AHEAD: usize = 1024;
/// Bytes by which prefetches of the columns of A are ahead: where blocks have one vector the check reads them first.
const COLUMNS_AHEAD: usize = 2048;
/// Most vectors of a block whose rows have a loop of their own, but for AVX2, where all have.
const NARROW: usize = 4;
/// Entries whose products are added at a time in [`RowProduct::add_four`].
const FOUR: usize = 4;
/// Cache lines of a row that are prefetched; the processor's own prefetches take over from there.
const PREFETCHED_LINES: usize = 4;

impl<C: Combo> SpmmProduct<C> for Csr<C::A> {
    fn sums(&self, n: usize) -> usize {
        self.schedule.slots().saturating_mul(n)
    }

    fn panel(&self, b_by_rows: bool, n: usize) -> usize {
        if b_by_rows || n < FEWEST_PACKED {
            return 0;
        }
        let k = self.operand.rows("A").map_or(0, |(rows, _)| rows.cols);
        k.saturating_mul(n.min(panel_columns::<C::Acc>()))
    }

    fn multiply(&self, parallel: bool, opened: Opened<'_, C>) -> Result<()> {
        self.multiply_by(Width::widest(), parallel, &opened)
    }
}

impl<V: Element> Csr<V> {
    /// Computes the product with these vectors, which the processor has.
    pub(super) fn multiply_by<C: Combo<A = V>>(
        &self,
        vectors: Width,
        parallel: bool,
        opened: &Opened<'_, C>,
    ) -> Result<()> {
        let (rows, values) = self.operand.rows("A")?;
        let (n, strides) = (opened.n, opened.b_strides);
        // Unchecked loads rely on this.
        assert!(rows.cols == 0 || opened.b.len() > (rows.cols - 1) * strides.0 + (n - 1) * strides.1);
        assert!(self.own_columns.as_ref().is_none_or(|own| own.cols() == rows.cols));
        let mut product = RowProduct::<C, C::X> {
            rows,
            values,
            order: self.order.as_deref(),
            opened,
            vectors,
            b: opened.b,
            b_strides: strides,
            conjugate: opened.conjugate_b,
            columns: 0..n,
            skipped: 0,
            overwrites: TypeId::of::<C::Y>() == TypeId::of::<C::Acc>()
                && opened.c_strides.1 == 1
                && opened.scalars.skip_old(),
            streams: false,
            own_columns: self.own_columns.as_ref(),
            prefetches: gains_by_prefetch::<C::Acc, _>(vectors, opened.b),
            prefetches_a: second_level_cache() >= LARGE_L2,
        };
        product.skipped = product.elements_behind_line();
        product.streams = product.may_stream();
        if !product.streams {
            // A large C whose own rows are whole lines, unlike those of B, is written past the caches instead.
            let of_b = std::mem::take(&mut product.skipped);
            product.streams = product.may_stream();
            if !product.streams {
                product.skipped = of_b;
            }
        }
        let width = opened.panel / rows.cols.max(1);
        if strides.1 == 1 || width < FEWEST_PACKED {
            self.schedule.for_each_item(parallel, |work| product.item(&work));
        } else {
            let sums = self.schedule.slots() * n;
            for first in (0..n).step_by(width) {
                let columns = first..n.min(first + width);
                pack(parallel, opened, rows.cols, columns.clone(), sums);
                let len = rows.cols * columns.len();
                // SAFETY: behind the partial sums the workspace has the panel, which nothing writes now.
                let b: &[C::Acc] = unsafe { opened.scratch.part(sums..sums + len) };
                let product = product.of_panel(b, columns);
                self.schedule.for_each_item(parallel, |work| product.item(&work));
            }
        }
        self.schedule.for_each_long_row(parallel, |row, slots| product.long_row(row, slots));
        Ok(())
    }
}

/// Returns whether prefetches of B's rows gain time.
fn gains_by_prefetch<T: Accumulator, X>(vectors: Width, b: &[X]) -> bool {
    match vectors {
        #[cfg(target_arch = "x86_64")]
        Width::Ymm if !T::TYPE.is_complex() => size_of_val(b) >= PREFETCHED_B_OF_FOUR,
        _ => size_of_val(b) >= PREFETCHED_B * second_level_cache(),
    }
}

fn panel_columns<T>() -> usize {
    PANEL_BYTES / size_of::<T>()
}

/// Copies columns of op(B), whose columns are contiguous, into a panel at `to` of the workspace, row by row.
fn pack<C: Combo>(parallel: bool, opened: &Opened<'_, C>, k: usize, columns: Range<usize>, to: usize) {
    let (width, line) = (columns.len(), LINE / size_of::<C::X>());
    schedule::for_each(parallel, k.div_ceil(PACKED_ROWS), |task| {
        let rows = task * PACKED_ROWS..k.min((task + 1) * PACKED_ROWS);
        // SAFETY: tasks have different rows, and nothing reads the panel before all are done.
        let to = unsafe { opened.scratch.part(to + rows.start * width..to + rows.end * width) };
        // A cache line of a column at one time: columns may lie at distances that share a set of the cache.
        let mut row = rows.start;
        while row < rows.end {
            let count = line.min(rows.end - row);
            let to = &mut to[(row - rows.start) * width..][..count * width];
            for (at, column) in columns.clone().enumerate() {
                let from = &opened.b[row + column * opened.b_strides.1..][..count];
                for (place, &b) in from.iter().enumerate() {
                    to[place * width + at] = opened.load(b);
                }
            }
            row += count;
        }
    });
}

/// One running product of the algorithm `row`, or of a panel of it.
struct RowProduct<'a, C: Combo, X> {
    rows: Factor<'a>,
    values: &'a [C::A],
    /// Row of C for each stored row; `None` if rows are not reordered.
    order: Option<&'a [u32]>,
    /// Opened arguments, with `n` sums per slot.
    opened: &'a Opened<'a, C>,
    vectors: Width,
    /// op(B) or a panel, from the first of `columns` on.
    b: &'a [X],
    b_strides: (usize, usize),
    conjugate: bool,
    /// Columns of C.
    columns: Range<usize>,
    /// Elements by which rows of B begin behind a cache line, where vectors are whole lines of B.
    skipped: usize,
    /// True if rows of C are contiguous and get alpha times the sums as they are.
    overwrites: bool,
    /// True if they are also written past the caches.
    streams: bool,
    /// The plan's own columns, if it has them.
    own_columns: Option<&'a OwnColumns>,
    /// True if rows of B are prefetched.
    prefetches: bool,
    /// True if values and columns of A are prefetched.
    prefetches_a: bool,
}

/// Columns of C that are computed together.
#[derive(Clone, Copy)]
struct Block {
    /// First column.
    first: usize,
    /// Number of columns: all lanes of the vectors, unless these have masks.
    columns: usize,
    /// Lanes of the first vector in front of the first column.
    skipped: usize,
    /// Number of such blocks, one behind the other, that are computed of a row before the next row: 1 unless
    /// [`adds_four`].
    blocks: usize,
}

impl Block {
    /// Returns the lanes of the columns.
    #[inline(always)]
    fn masks<T: Accumulator, V: Vector<T>, const VECTORS: usize>(&self) -> Masks {
        let end = (self.skipped + self.columns).saturating_sub((VECTORS - 1) * V::LANES);
        let (first, last) = (u64::MAX << self.skipped, (1_u64 << end.min(V::LANES)) - 1);
        let lanes = |mask: u64| mask as u16;
        match VECTORS {
            1 => Masks { first: lanes(first & last), last: lanes(first & last) },
            _ => Masks { first: lanes(first), last: lanes(last) },
        }
    }

    /// Returns the sums of the columns.
    #[inline(always)]
    fn of<'s, T: Accumulator, V: Vector<T>>(&self, sums: &'s [V]) -> &'s [T] {
        &V::as_slice(sums)[self.skipped..][..self.columns]
    }
}

/// Lanes of a block's first and last vector that are computed; those between have all.
#[derive(Clone, Copy)]
struct Masks {
    first: u16,
    last: u16,
}

impl<'a, C: Combo, X: Storage<C::Acc>> RowProduct<'a, C, X> {
    /// Returns the product of a panel.
    fn of_panel<'b>(&'b self, b: &'b [C::Acc], columns: Range<usize>) -> RowProduct<'b, C, C::Acc> {
        let RowProduct {
            rows, values, order, opened, vectors, overwrites, own_columns, prefetches_a, ..
        } = *self;
        let b_strides = (columns.len(), 1);
        let mut product = RowProduct {
            rows,
            values,
            order,
            opened,
            vectors,
            b,
            b_strides,
            conjugate: false,
            columns,
            skipped: 0,
            overwrites,
            streams: false,
            own_columns,
            prefetches: gains_by_prefetch::<C::Acc, _>(vectors, b),
            prefetches_a,
        };
        product.streams = product.may_stream();
        product
    }

    /// Returns by how many elements rows of B begin behind a cache line, where it pays that vectors are whole lines of
    /// B: where vectors have masks, all rows begin alike, and a row has two lines or more. Arrays of the C library
    /// mostly begin 16 bytes behind a line, so that each vector of a row would lie on two lines.
    fn elements_behind_line(&self) -> usize {
        let has_lines = self.has_masks()
            && self.b_strides.0 * size_of::<X>() % LINE == 0
            && self.columns.len() * size_of::<X>() >= 2 * LINE;
        if has_lines {
            self.b.as_ptr().addr() % LINE / size_of::<X>()
        } else {
            0
        }
    }

    /// Returns whether rows of C are computed by vectors whose first and last one are masked where they must be.
    fn has_masks(&self) -> bool {
        #[cfg(avx512)]
        return self.vectors == Width::Zmm
            && TypeId::of::<X>() == TypeId::of::<C::Acc>()
            && !C::Acc::TYPE.is_complex()
            && (self.b_strides.1, self.opened.c_strides.1) == (1, 1);
        #[cfg(not(avx512))]
        false
    }

    /// Returns whether C is so large that it is written past the caches; vectors must be whole lines of it. Of rows that
    /// begin behind a line the first and the last one are not, so that only long rows gain.
    fn may_stream(&self) -> bool {
        let bytes = self.opened.c_strides.0 * size_of::<C::Y>();
        if self.skipped > 0 && self.columns.len() * size_of::<C::Y>() < LONG_ROW {
            return false;
        }
        let first = self.columns.start.wrapping_sub(self.skipped).wrapping_mul(size_of::<C::Y>());
        self.overwrites
            && bytes % LINE == 0
            && self.opened.c.address().value().wrapping_add(first) % LINE == 0
            && self.rows.rows.saturating_mul(bytes) >= PAST_CACHES
    }

    fn item(&self, work: &Work) {
        // SAFETY: the processor has these vectors.
        unsafe {
            match self.vectors {
                #[cfg(avx512)]
                Width::Zmm if const { !C::Acc::TYPE.is_complex() } => match self.has_masks() {
                    true => self.sweep_lines(work),
                    false => self.sweep::<Zmm<C::Acc>, Ymm<C::Acc>>(work),
                },
                #[cfg(target_arch = "x86_64")]
                Width::Ymm if const { !C::Acc::TYPE.is_complex() } => {
                    self.sweep::<Ymm<C::Acc>, Array<C::Acc, 4>>(work);
                }
                _ => self.sweep::<Array<C::Acc, 8>, Array<C::Acc, 4>>(work),
            }
        }
        if self.streams {
            end_streaming();
        }
    }

    /// Computes an item, one block of columns after the other (with AVX2 all blocks of the largest kind together):
    /// blocks of at most [`Vector::MOST`] vectors `V`, and at the end a smaller one `H`, four columns, or single ones.
    ///
    /// # Safety
    /// The processor has the vectors.
    #[inline(always)]
    unsafe fn sweep<V: Vector<C::Acc>, H: Vector<C::Acc>>(&self, work: &Work) {
        let most = match (self.b_strides.1, self.opened.c_strides.1) {
            (1, 1) => V::MOST,
            (1, _) => TILE_VECTORS,
            _ => 0,
        };
        let mut first = self.columns.start;
        while first < self.columns.end {
            let rest = self.columns.end - first;
            // SAFETY: the caller's promise.
            first += unsafe {
                match (rest / V::LANES).min(most) {
                    16.. if V::MOST >= 16 => self.whole::<V, 16, 1>(work, first, 1),
                    8.. if adds_four::<V, C::Acc>(8) => {
                        self.whole::<V, 8, 1>(work, first, rest / (8 * V::LANES))
                    }
                    8.. if V::MOST >= 8 => self.whole::<V, 8, 1>(work, first, 1),
                    4.. => self.whole::<V, 4, 1>(work, first, 1),
                    2.. if V::MOST >= 8 => self.whole::<V, 2, CHAINS_OF_TWO>(work, first, 1),
                    2.. => self.whole::<V, 2, 1>(work, first, 1),
                    1.. => self.whole::<V, 1, CHAINS_OF_ONE>(work, first, 1),
                    _ if most > 0 && rest >= H::LANES => self.whole::<H, 1, CHAINS_OF_ONE>(work, first, 1),
                    _ if most > 0 && rest >= 4 => {
                        self.whole::<Array<C::Acc, 4>, 1, CHAINS_OF_ONE>(work, first, 1)
                    }
                    _ => self.whole::<Array<C::Acc, 1>, 1, CHAINS_OF_ONE>(work, first, 1),
                }
            };
        }
    }

    /// Calls [`Self::compiled`] for blocks without masks, and returns the number of their columns.
    ///
    /// # Safety
    /// The requirements of [`Self::block`].
    #[inline(always)]
    unsafe fn whole<V: Vector<C::Acc>, const VECTORS: usize, const CHAINS: usize>(
        &self,
        work: &Work,
        first: usize,
        blocks: usize,
    ) -> usize {
        let columns = VECTORS * V::LANES;
        // SAFETY: the caller's promise.
        unsafe {
            self.compiled::<V, VECTORS, CHAINS, false>(work, Block { first, columns, skipped: 0, blocks });
        }
        blocks * columns
    }

    /// Calls [`Self::block`], compiled for the processor. Blocks are functions of their own, each with the registers for
    /// itself: together in one, rows of few entries took longer.
    ///
    /// # Safety
    /// The requirements of [`Self::block`].
    unsafe fn compiled<V: Vector<C::Acc>, const VECTORS: usize, const CHAINS: usize, const MASKED: bool>(
        &self,
        work: &Work,
        block: Block,
    ) {
        // SAFETY: the caller's promise.
        unsafe {
            if self.own_item::<V, VECTORS, CHAINS, MASKED>(work, block) {
                return;
            }
            match (V::WIDTH, self.vectors) {
                #[cfg(avx512)]
                (Width::Zmm, _) => self.block_avx512::<V, VECTORS, CHAINS, MASKED>(work, block),
                #[cfg(target_arch = "x86_64")]
                (width, best) if width == Width::Ymm || best >= Width::Ymm => {
                    self.block_avx2::<V, VECTORS, CHAINS, MASKED>(work, block);
                }
                _ => self.block::<V, VECTORS, CHAINS, MASKED>(work, block),
            }
        }
    }

    /// # Safety
    /// The processor has these features.
    #[cfg(avx512)]
    #[target_feature(enable = "avx512f,avx512vl,avx512bw,avx512dq,avx2,fma,f16c")]
    unsafe fn block_avx512<
        V: Vector<C::Acc>,
        const VECTORS: usize,
        const CHAINS: usize,
        const MASKED: bool,
    >(
        &self,
        work: &Work,
        block: Block,
    ) {
        // SAFETY: the caller's promise.
        unsafe { self.block::<V, VECTORS, CHAINS, MASKED>(work, block) };
    }

    /// # Safety
    /// The processor has these features.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn block_avx2<V: Vector<C::Acc>, const VECTORS: usize, const CHAINS: usize, const MASKED: bool>(
        &self,
        work: &Work,
        block: Block,
    ) {
        // SAFETY: the caller's promise.
        unsafe { self.block::<V, VECTORS, CHAINS, MASKED>(work, block) };
    }

    /// Computes these columns of an item: all blocks of a row before the next row. Where columns of C are contiguous
    /// instead of rows, there is one block. With masks only the lanes of the block's columns are read and written.
    ///
    /// # Safety
    /// The processor has the vectors, and C has these columns, which are contiguous in B if there are
    /// several.
    #[inline(always)]
    unsafe fn block<V: Vector<C::Acc>, const VECTORS: usize, const CHAINS: usize, const MASKED: bool>(
        &self,
        work: &Work,
        block: Block,
    ) {
        let is_plain = const { Self::has_plain_rows::<V, VECTORS, MASKED>() };
        if let (true, Work::Rows(rows), Some(pattern)) = (is_plain, work, self.plain_pattern()) {
            // SAFETY: the caller's promise.
            return unsafe {
                self.plain_rows::<V, VECTORS, CHAINS, MASKED, i32>(rows.clone(), pattern, block)
            };
        }
        let (count, by_rows) = match work {
            Work::Rows(rows) => (rows.len(), self.opened.c_strides.1 == 1 || VECTORS > TILE_VECTORS),
            Work::Chunk { .. } => (1, true),
        };
        debug_assert!(by_rows || block.blocks == 1 && !MASKED);
        let tile_rows = (LINE / size_of::<C::Y>()).min(TILE_ROWS);
        let mut tile = [const { MaybeUninit::<[V; VECTORS]>::uninit() }; TILE_ROWS];
        // SAFETY: the caller's promise.
        let alpha = unsafe { V::splat(self.opened.scalars.alpha()) };
        let mut end = match work {
            Work::Rows(rows) => self.rows.start(rows.start),
            Work::Chunk { positions, .. } => positions.start,
        };
        for at in 0..count {
            let begin = end;
            end = match work {
                Work::Rows(rows) => self.rows.start(rows.start + at + 1),
                Work::Chunk { positions, .. } => positions.end,
            };
            for first in (block.first..).step_by(block.columns).take(block.blocks) {
                let block = Block { first, ..block };
                // SAFETY: the caller's promise.
                let sums = unsafe { self.sums::<V, VECTORS, CHAINS, MASKED>(begin..end, block) };
                match work {
                    // SAFETY: as before.
                    Work::Rows(rows) if by_rows => unsafe {
                        self.store::<V, VECTORS, MASKED>(rows.start + at, block, alpha, &sums);
                    },
                    Work::Rows(rows) => {
                        let place = at % tile_rows;
                        tile[place].write(sums);
                        if place + 1 == tile_rows || at + 1 == count {
                            // SAFETY: so many rows have been written.
                            let tile = unsafe {
                                std::slice::from_raw_parts(tile.as_ptr().cast::<[V; VECTORS]>(), place + 1)
                            };
                            self.store_tile(rows.start + at - place, first, tile);
                        }
                    }
                    Work::Chunk { slot, .. } => {
                        let at = slot * self.opened.n + first;
                        let sums = block.of(&sums);
                        // SAFETY: each slot belongs to one item, and nothing reads it before all items are done.
                        unsafe { self.opened.scratch.part(at..at + sums.len()) }.copy_from_slice(sums);
                    }
                }
            }
        }
    }

    /// Returns the sums over these entries of A. Several chains of sums are added in turns where one would
    /// wait for itself.
    ///
    /// # Safety
    /// The requirements of [`Self::block`].
    #[inline(always)]
    unsafe fn sums<V: Vector<C::Acc>, const VECTORS: usize, const CHAINS: usize, const MASKED: bool>(
        &self,
        positions: Range<usize>,
        block: Block,
    ) -> [V; VECTORS] {
        let (row_stride, mut rest) = (self.b_strides.0, positions);
        let (b, masks) = (self.part_of_b(block), block.masks::<C::Acc, V, VECTORS>());
        // SAFETY: the caller's promise.
        let mut sums = [[unsafe { V::splat(C::Acc::ZERO) }; VECTORS]; CHAINS];
        let mut few;
        // 32-bit columns take one iteration. 64-bit columns are converted a few at a time to 32-bit offsets
        // from the first of them, so that the inner loop is compiled once.
        while !rest.is_empty() {
            let (columns, ahead, base) = match self.rows.indices {
                Ints::I32(columns) => {
                    let ahead = &columns[columns.len().min(rest.start + AHEAD)..];
                    (&columns[rest.clone()], ahead, self.rows.base)
                }
                Ints::I64(columns) => {
                    let columns = &columns[rest.clone()];
                    few = [0; FEW];
                    let mut count = 0;
                    for (to, column) in few.iter_mut().zip(columns) {
                        let Ok(relative) = i32::try_from(column - columns[0]) else { break };
                        *to = relative;
                        count += 1;
                    }
                    (&few[..count], &[][..], self.rows.base - columns[0])
                }
            };
            let values = &self.values[rest.start..rest.start + columns.len()];
            let row = |column: i32| (i64::from(column) - base) as usize;
            let mut at = 0;
            // Plain loops: adaptors of several iterators are left as calls where the library is compiled in
            // many parts.
            while adds_four::<V, C::Acc>(VECTORS) && at + FOUR <= columns.len() {
                if self.prefetches && at + FOUR <= ahead.len() {
                    for &column in &ahead[at..at + FOUR] {
                        prefetch_part::<V, C::Acc, X>(
                            b.wrapping_add(row(column).wrapping_mul(row_stride)),
                            VECTORS,
                        );
                    }
                }
                let mut rows = [0; FOUR];
                for (row_of_b, &column) in rows.iter_mut().zip(&columns[at..at + FOUR]) {
                    *row_of_b = row(column);
                    if *row_of_b >= self.rows.cols {
                        outside();
                    }
                }
                // SAFETY: the entries are there, and B has their rows; the rest is the caller's promise.
                unsafe { self.add_four(&mut sums[0], values.as_ptr().add(at), b, rows) };
                at += FOUR;
            }
            while at + CHAINS <= columns.len() {
                if VECTORS * V::LANES * size_of::<X>() >= PREFETCHED_BYTES
                    && self.prefetches
                    && at < ahead.len()
                {
                    prefetch_part::<V, C::Acc, X>(
                        b.wrapping_add(row(ahead[at]).wrapping_mul(row_stride)),
                        VECTORS,
                    );
                }
                for (chain, sums) in sums.iter_mut().enumerate() {
                    let (value, row) = (values[at + chain], row(columns[at + chain]));
                    // SAFETY: the caller's promise.
                    unsafe { self.add::<V, VECTORS, MASKED>(sums, value, b, row, masks) };
                }
                at += CHAINS;
            }
            for (chain, sums) in sums[..CHAINS - 1].iter_mut().enumerate() {
                if at + chain < columns.len() {
                    let (value, row) = (values[at + chain], row(columns[at + chain]));
                    // SAFETY: as before.
                    unsafe { self.add::<V, VECTORS, MASKED>(sums, value, b, row, masks) };
                }
            }
            rest.start += columns.len();
        }
        // SAFETY: the caller's promise.
        unsafe { total(sums) }
    }

    /// Adds `value` times a part of a row of B to the sums; `b` is that part of the first row. It is no
    /// closure: those are not compiled for the processor's vectors.
    ///
    /// # Safety
    /// The requirements of [`Self::block`].
    #[inline(always)]
    unsafe fn add<V: Vector<C::Acc>, const VECTORS: usize, const MASKED: bool>(
        &self,
        sums: &mut [V; VECTORS],
        value: C::A,
        b: *const X,
        row: usize,
        masks: Masks,
    ) {
        if row >= self.rows.cols {
            outside();
        }
        // SAFETY: B has this row; the rest is the caller's promise.
        unsafe { self.add_row::<V, VECTORS, MASKED>(sums, value, b, row, masks) };
    }

    /// Adds `value` times a part of a row of B to the sums; `b` is that part of row 0. With masks lanes that are not
    /// computed are not read.
    ///
    /// # Safety
    /// The requirements of [`Self::block`], and B has the row.
    #[inline(always)]
    unsafe fn add_row<V: Vector<C::Acc>, const VECTORS: usize, const MASKED: bool>(
        &self,
        sums: &mut [V; VECTORS],
        value: C::A,
        b: *const X,
        row: usize,
        masks: Masks,
    ) {
        // SAFETY: from that of `b` on the row has as many columns as the sums, or as the masks have lanes; the rest is the
        // caller's promise.
        unsafe {
            let value = V::splat(value.widen());
            let from = b.wrapping_byte_add(row * self.b_strides.0 * size_of::<X>());
            if !MASKED {
                for (vector, sum) in sums.iter_mut().enumerate() {
                    let part = V::load(from.wrapping_add(vector * V::LANES), self.conjugate);
                    *sum = sum.plus_product(value, part);
                }
                return;
            }
            // The ends by themselves: a loop over 17 vectors with a condition for them is not unrolled, so that sums are in
            // memory, which took three times as long.
            sums[0] = sums[0].plus_product_of_lanes(value, from, masks.first);
            if VECTORS > 1 {
                let last = VECTORS - 1;
                for (vector, sum) in sums[1..last].iter_mut().enumerate() {
                    let part = V::load(from.wrapping_add((1 + vector) * V::LANES), self.conjugate);
                    *sum = sum.plus_product(value, part);
                }
                let part = from.wrapping_add(last * V::LANES);
                sums[last] = sums[last].plus_product_of_lanes(value, part, masks.last);
            }
        }
    }

    /// Returns the block's part of row 0 of B, from the first lane on. B may have no rows.
    #[inline(always)]
    fn part_of_b(&self, block: Block) -> *const X {
        let first = (block.first - self.columns.start) * self.b_strides.1;
        self.b.as_ptr().wrapping_add(first).wrapping_sub(block.skipped)
    }

    /// Adds the products of four entries of A, from that at `values` on, with parts of these rows of B, one vector of
    /// sums after the other, each in the order of the entries: a processor then reads four rows of B side by side.
    ///
    /// # Safety
    /// There are four values, and B has the rows; the requirements of [`Self::block`].
    #[inline(always)]
    unsafe fn add_four<V: Vector<C::Acc>, const VECTORS: usize>(
        &self,
        sums: &mut [V; VECTORS],
        values: *const C::A,
        b: *const X,
        rows: [usize; FOUR],
    ) {
        // SAFETY: from that of `b` on a row has as many columns as the sums; the rest is the caller's promise.
        unsafe {
            let row_bytes = self.b_strides.0 * size_of::<X>();
            let mut factors = [V::splat(C::Acc::ZERO); FOUR];
            let mut parts = [b; FOUR];
            for entry in 0..FOUR {
                factors[entry] = V::splat((*values.add(entry)).widen());
                parts[entry] = b.wrapping_byte_add(rows[entry] * row_bytes);
            }
            for (vector, sum) in sums.iter_mut().enumerate() {
                for entry in 0..FOUR {
                    let part = parts[entry].add(vector * V::LANES);
                    *sum = sum.plus_product(factors[entry], V::load(part, self.conjugate));
                }
            }
        }
    }
}

/// Returns whether blocks of so many vectors add the products of four entries at a time. They do with registers of AVX2,
/// of which eight hold sums and four the values; with AVX-512 a prototype gained nothing.
#[inline(always)]
const fn adds_four<V: Vector<T>, T: Accumulator>(vectors: usize) -> bool {
    #[cfg(target_arch = "x86_64")]
    let are_avx2 = matches!(V::WIDTH, Width::Ymm);
    #[cfg(not(target_arch = "x86_64"))]
    let are_avx2 = false;
    are_avx2 && vectors == V::MOST
}

/// Prefetches the first lines of a part of a row of B that so many vectors hold.
#[inline(always)]
fn prefetch_part<V: Vector<T>, T: Accumulator, X>(part: *const X, vectors: usize) {
    let lines = (vectors * V::LANES * size_of::<X>()).div_ceil(LINE);
    for line in 0..lines.min(PREFETCHED_LINES) {
        prefetch(part.cast::<[u8; LINE]>().wrapping_add(line));
    }
}

/// Returns the sum of chains of sums, whose number is a power of two.
///
/// # Safety
/// The processor has the vectors.
#[inline(always)]
unsafe fn total<T: Accumulator, V: Vector<T>, const VECTORS: usize, const CHAINS: usize>(
    mut sums: [[V; VECTORS]; CHAINS],
) -> [V; VECTORS] {
    // Plain loops, as in `RowProduct::sums`.
    let mut half = CHAINS / 2;
    while half > 0 {
        let mut at = 0;
        while at < half * VECTORS {
            let (chain, vector) = (at / VECTORS, at % VECTORS);
            // SAFETY: the caller's promise.
            sums[chain][vector] = unsafe { sums[chain][vector].plus(sums[chain + half][vector]) };
            at += 1;
        }
        half /= 2;
    }
    sums[0]
}

/// Ends a product whose row offsets or column indices the user has changed since analysis.
#[cold]
fn outside() -> ! {
    panic!("a row offset or a column index of A is outside the matrix")
}

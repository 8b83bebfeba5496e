//! Blocks of columns of C: the sums of a block over the entries of a row, and their place in C, for any indices, order of
//! rows, C and beta. [`plain`](super::plain) has the loops that most products take.

use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ops::Range;

use super::store::store_vectors;
use super::{outside, RowProduct, TILE_VECTORS};
use crate::backend::host::operand::Ints;
use crate::backend::host::schedule::Work;
#[cfg(target_arch = "x86_64")]
use crate::backend::host::vector::Width;
use crate::backend::host::vector::{prefetch, run_compiled, Vector, VectorCode, LINE};
use crate::types::{Accumulator, Storage};

/// Number of 64-bit columns that are converted at one time. It is a multiple of the chains, so that the same
/// entries are in the same sum as with 32-bit columns.
const FEW: usize = 32;
/// Bytes of a block's part of a row of B from which on it is prefetched: smaller ones arrive in time without, but for
/// blocks that add four entries at a time, which prefetch theirs whatever its size.
const PREFETCHED_BYTES: usize = 512;
/// Entries by which prefetches are ahead.
pub(super) const AHEAD: usize = 8;
/// Entries whose products are added at a time in [`RowProduct::add_four`].
pub(super) const FOUR: usize = 4;
/// Cache lines of a row that are prefetched; the processor's own prefetches take over from there.
const PREFETCHED_LINES: usize = 4;
/// Most rows whose sums are collected before they are written, where C is not written by vectors.
pub(super) const TILE_ROWS: usize = 16;

/// Columns of C that are computed together.
#[derive(Clone, Copy)]
pub(super) struct Block {
    /// First column.
    pub first: usize,
    /// Number of columns: all lanes of the vectors, unless these have masks.
    pub columns: usize,
    /// Lanes of the first vector in front of the first column.
    pub skipped: usize,
    /// Number of such blocks, one behind the other, that are computed of a row before the next row: 1 unless
    /// [`adds_four`].
    pub blocks: usize,
}

impl Block {
    /// Returns the lanes of the columns.
    #[inline(always)]
    pub fn masks<T: Accumulator, V: Vector<T>, const VECTORS: usize>(&self) -> Masks {
        let end = (self.skipped + self.columns).saturating_sub((VECTORS - 1) * V::LANES);
        let (first, last) = (u64::MAX << self.skipped, (1_u64 << end.min(V::LANES)) - 1);
        let lanes = |mask: u64| mask as u16;
        match VECTORS {
            1 => Masks { first: lanes(first & last), last: lanes(first & last) },
            _ => Masks { first: lanes(first), last: lanes(last) },
        }
    }
}

/// Lanes of a block's first and last vector that are computed; those between have all.
#[derive(Clone, Copy)]
pub(super) struct Masks {
    pub first: u16,
    pub last: u16,
}

/// [`RowProduct::block`] as code that is compiled for the vectors.
struct BlockCode<'w, V, const VECTORS: usize, const CHAINS: usize, const MASKED: bool> {
    work: &'w Work,
    block: Block,
    vectors: PhantomData<V>,
}

impl<A, X, T, V, const VECTORS: usize, const CHAINS: usize, const MASKED: bool>
    VectorCode<RowProduct<'_, A, X, T>> for BlockCode<'_, V, VECTORS, CHAINS, MASKED>
where
    A: Storage<T>,
    X: Storage<T>,
    T: Accumulator,
    V: Vector<T>,
{
    #[inline(always)]
    unsafe fn run(self, product: &RowProduct<'_, A, X, T>) {
        // SAFETY: the caller's promise.
        unsafe { product.block::<V, VECTORS, CHAINS, MASKED>(self.work, self.block) };
    }
}

impl<A: Storage<T>, X: Storage<T>, T: Accumulator> RowProduct<'_, A, X, T> {
    /// Calls [`Self::block`], compiled for the vectors.
    ///
    /// # Safety
    /// The requirements of [`Self::block`], and on x86-64 the processor has AVX2.
    #[inline(always)]
    pub(super) unsafe fn run_block<
        V: Vector<T>,
        const VECTORS: usize,
        const CHAINS: usize,
        const MASKED: bool,
    >(
        &self,
        work: &Work,
        block: Block,
    ) {
        let code = BlockCode::<V, VECTORS, CHAINS, MASKED> { work, block, vectors: PhantomData };
        // SAFETY: the caller's promise.
        unsafe { run_compiled::<T, V, _>(self, code) };
    }

    /// Computes these columns of an item: all blocks of a row before the next row. With masks only the lanes of the block's
    /// columns are read and written. Where C is not written by vectors, the sums of some rows are collected and stored by a
    /// function for C's type; if columns of C are contiguous, it writes up to a cache line of each at one time.
    ///
    /// # Safety
    /// The processor has the vectors, and C has these columns, which are contiguous in B if there are several.
    #[inline(always)]
    pub(super) unsafe fn block<
        V: Vector<T>,
        const VECTORS: usize,
        const CHAINS: usize,
        const MASKED: bool,
    >(
        &self,
        work: &Work,
        block: Block,
    ) {
        let out = self.output;
        let count = match work {
            Work::Rows(rows) => rows.len(),
            Work::Chunk { .. } => 1,
        };
        let tile_rows = if VECTORS > TILE_VECTORS || block.blocks > 1 { 1 } else { out.tile_rows };
        let mut tile = [const { MaybeUninit::<[V; VECTORS]>::uninit() }; TILE_ROWS];
        let masks = block.masks::<T, V, VECTORS>();
        // SAFETY: the caller's promise.
        let alpha = unsafe { V::splat(out.alpha) };
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
                match (work, out.plain) {
                    (Work::Rows(rows), Some(c)) => {
                        let at = out.row(rows.start + at) * out.strides.0 + first;
                        // SAFETY: an order has each row once; only one item has this row, only this call these columns of
                        // it, and C is borrowed until all items are done. If it is streamed, vectors are whole lines of
                        // it, or blocks begin at multiples of their vectors, since those before had the same or wider ones.
                        unsafe {
                            let to = c.part(at..at + block.columns).as_mut_ptr().wrapping_sub(block.skipped);
                            store_vectors::<_, _, VECTORS, MASKED>(&sums, alpha, to, masks, self.streams);
                        }
                    }
                    (Work::Rows(rows), None) => {
                        let place = at % tile_rows;
                        tile[place].write(sums);
                        if place + 1 == tile_rows || at + 1 == count {
                            // SAFETY: so many rows have been written.
                            let tile = unsafe {
                                std::slice::from_raw_parts(tile.as_ptr().cast::<V>(), (place + 1) * VECTORS)
                            };
                            let (row, sums) = (rows.start + at, &V::as_slice(tile)[block.skipped..]);
                            let columns = first..first + block.columns;
                            out.any.store(row - place..row + 1, columns, sums, VECTORS * V::LANES);
                        }
                    }
                    (Work::Chunk { slot, .. }, _) => {
                        let at = slot * out.n + first;
                        let sums = &V::as_slice(&sums)[block.skipped..][..block.columns];
                        // SAFETY: each slot belongs to one item, and nothing reads it before all items are done.
                        unsafe { out.scratch.part(at..at + sums.len()) }.copy_from_slice(sums);
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
    unsafe fn sums<V: Vector<T>, const VECTORS: usize, const CHAINS: usize, const MASKED: bool>(
        &self,
        positions: Range<usize>,
        block: Block,
    ) -> [V; VECTORS] {
        let (row_stride, mut rest) = (self.b_strides.0, positions);
        let (b, masks) = (self.part_of_b(block), block.masks::<T, V, VECTORS>());
        // SAFETY: the caller's promise.
        let mut sums = [[unsafe { V::splat(T::ZERO) }; VECTORS]; CHAINS];
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
            while adds_four::<V, T>(VECTORS) && at + FOUR <= columns.len() {
                if self.prefetches && at + FOUR <= ahead.len() {
                    for &column in &ahead[at..at + FOUR] {
                        prefetch_part::<V, T, X>(
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
                    prefetch_part::<V, T, X>(
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
    unsafe fn add<V: Vector<T>, const VECTORS: usize, const MASKED: bool>(
        &self,
        sums: &mut [V; VECTORS],
        value: A,
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
    pub(super) unsafe fn add_row<V: Vector<T>, const VECTORS: usize, const MASKED: bool>(
        &self,
        sums: &mut [V; VECTORS],
        value: A,
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
    pub(super) fn part_of_b(&self, block: Block) -> *const X {
        let first = (block.first - self.columns.start) * self.b_strides.1;
        self.b.as_ptr().wrapping_add(first).wrapping_sub(block.skipped)
    }

    /// Adds the products of four entries of A, from that at `values` on, with parts of these rows of B, one vector of
    /// sums after the other, each in the order of the entries: a processor then reads four rows of B side by side.
    ///
    /// # Safety
    /// There are four values, and B has the rows; the requirements of [`Self::block`].
    #[inline(always)]
    pub(super) unsafe fn add_four<V: Vector<T>, const VECTORS: usize>(
        &self,
        sums: &mut [V; VECTORS],
        values: *const A,
        b: *const X,
        rows: [usize; FOUR],
    ) {
        // SAFETY: from that of `b` on a row has as many columns as the sums; the rest is the caller's promise.
        unsafe {
            let row_bytes = self.b_strides.0 * size_of::<X>();
            let mut factors = [V::splat(T::ZERO); FOUR];
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
pub(super) const fn adds_four<V: Vector<T>, T: Accumulator>(vectors: usize) -> bool {
    #[cfg(target_arch = "x86_64")]
    let are_avx2 = matches!(V::WIDTH, Width::Ymm);
    #[cfg(not(target_arch = "x86_64"))]
    let are_avx2 = false;
    are_avx2 && vectors == V::MOST
}

/// Prefetches the first lines of a part of a row of B that so many vectors hold.
#[inline(always)]
pub(super) fn prefetch_part<V: Vector<T>, T: Accumulator, X>(part: *const X, vectors: usize) {
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
pub(super) unsafe fn total<T: Accumulator, V: Vector<T>, const VECTORS: usize, const CHAINS: usize>(
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

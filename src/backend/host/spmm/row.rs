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
//! registers, and one sum in longer ones. On x86-64 without AVX2 it is always the sum of four. A long row is the sum, in
//! order, of the partial sums of its chunks.

#[cfg(avx512)]
use std::any::TypeId;
use std::ops::Range;

use self::blocks::{adds_four, Block};
use self::store::{AnyC, Output};
use super::{Opened, SpmmProduct};
use crate::backend::host::columns::{Columns, OwnColumns};
use crate::backend::host::layout::Csr;
use crate::backend::host::operand::Factor;
use crate::backend::host::schedule::{self, Work};
#[cfg(target_arch = "x86_64")]
use crate::backend::host::vector::Ymm;
#[cfg(avx512)]
use crate::backend::host::vector::Zmm;
use crate::backend::host::vector::{
    end_streaming, second_level_cache, Array, Vector, Width, LINE, PAST_CACHES,
};
use crate::error::Result;
use crate::support::Combo;
use crate::types::{Accumulator, Element, Storage};

mod blocks;
#[cfg(avx512)]
mod lines;
mod plain;
mod store;

/// Bytes of a row of a panel: four of the widest registers, so that a part of a row of op(A) finds its rows
/// of the panel in the first-level cache.
const PANEL_BYTES: usize = 256;
/// Columns of C from which on panels are copied: fewer are computed column by column.
const FEWEST_PACKED: usize = 4;
/// Rows of a panel that one parallel task copies, at least 10 µs of work.
const PACKED_ROWS: usize = 512;
/// Most vectors of a block whose sums are collected for several rows before they are stored, where C is not written by
/// vectors.
const TILE_VECTORS: usize = 4;
/// Chains of sums of blocks of a single vector, but for those of `lines`. On Zen 4 a fused multiply-add of AVX-512 takes
/// as long as four begin.
const CHAINS_OF_ONE: usize = 4;
/// Chains of sums of blocks of two registers, but for those of `lines`: one takes as long as four loads, of which there
/// are two.
const CHAINS_OF_TWO: usize = 2;
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
    ) -> Result<()>
    where
        V: Storage<C::Acc>,
    {
        let (rows, values) = self.operand.rows("A")?;
        let (n, strides) = (opened.n, opened.b_strides);
        // Unchecked loads rely on this.
        assert!(rows.cols == 0 || opened.b.len() > (rows.cols - 1) * strides.0 + (n - 1) * strides.1);
        assert!(self.own_columns.as_ref().is_none_or(|own| own.cols() == rows.cols));
        let any = AnyC { opened, order: self.order.as_deref() };
        let output = Output::new(&any);
        let mut product = RowProduct::<V, C::X, C::Acc> {
            rows,
            values,
            vectors,
            b: opened.b,
            b_strides: strides,
            conjugate: opened.conjugate_b,
            columns: 0..n,
            skipped: 0,
            output: &output,
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
        self.schedule.for_each_long_row(parallel, |row, slots| output.long_row(row, slots));
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

/// One running product of the algorithm `row`, or of a panel of it: of values `A`, elements `X` of B and sums `T`. The type
/// of C is none of its parameters, so that products which differ in it alone share their loops.
struct RowProduct<'a, A, X, T> {
    rows: Factor<'a>,
    values: &'a [A],
    vectors: Width,
    /// op(B) or a panel, from the first of `columns` on.
    b: &'a [X],
    b_strides: (usize, usize),
    conjugate: bool,
    /// Columns of C.
    columns: Range<usize>,
    /// Elements by which rows of B begin behind a cache line, where vectors are whole lines of B.
    skipped: usize,
    output: &'a Output<'a, T>,
    /// True if rows of C are written past the caches.
    streams: bool,
    /// The plan's own columns, if it has them.
    own_columns: Option<&'a OwnColumns>,
    /// True if rows of B are prefetched.
    prefetches: bool,
    /// True if values and columns of A are prefetched.
    prefetches_a: bool,
}

impl<A: Storage<T>, X: Storage<T>, T: Accumulator> RowProduct<'_, A, X, T> {
    /// Returns the product of a panel.
    fn of_panel<'b>(&'b self, b: &'b [T], columns: Range<usize>) -> RowProduct<'b, A, T, T> {
        let RowProduct { rows, values, vectors, output, own_columns, prefetches_a, .. } = *self;
        let mut product = RowProduct {
            rows,
            values,
            vectors,
            b,
            b_strides: (columns.len(), 1),
            conjugate: false,
            columns,
            skipped: 0,
            output,
            streams: false,
            own_columns,
            prefetches: gains_by_prefetch::<T, _>(vectors, b),
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
            && TypeId::of::<X>() == TypeId::of::<T>()
            && !T::TYPE.is_complex()
            && (self.b_strides.1, self.output.strides.1) == (1, 1);
        #[cfg(not(avx512))]
        false
    }

    /// Returns whether C is so large that it is written past the caches; vectors must be whole lines of it. Of rows that
    /// begin behind a line the first and the last one are not, so that only long rows gain.
    fn may_stream(&self) -> bool {
        let Some(c) = self.output.plain else { return false };
        let row_bytes = self.output.strides.0 * size_of::<T>();
        if self.skipped > 0 && self.columns.len() * size_of::<T>() < LONG_ROW {
            return false;
        }
        let first = self.columns.start.wrapping_sub(self.skipped).wrapping_mul(size_of::<T>());
        row_bytes % LINE == 0
            && c.address().value().wrapping_add(first) % LINE == 0
            && self.rows.rows.saturating_mul(row_bytes) >= PAST_CACHES
    }

    fn item(&self, work: &Work) {
        // SAFETY: the processor has these vectors.
        unsafe {
            match self.vectors {
                #[cfg(avx512)]
                Width::Zmm if const { !T::TYPE.is_complex() } => match self.has_masks() {
                    true => self.sweep_lines(work),
                    false => self.sweep::<Zmm<T>, Ymm<T>>(work),
                },
                #[cfg(target_arch = "x86_64")]
                Width::Ymm if const { !T::TYPE.is_complex() } => self.sweep::<Ymm<T>, Array<T, 4>>(work),
                #[cfg(target_arch = "x86_64")]
                Width::Arrays => self.sweep_without_avx2(work),
                _ => self.sweep::<Array<T, 8>, Array<T, 4>>(work),
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
    /// The processor has the vectors, and on x86-64 AVX2.
    #[inline(always)]
    unsafe fn sweep<V: Vector<T>, H: Vector<T>>(&self, work: &Work) {
        let most = match (self.b_strides.1, self.output.strides.1) {
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
                    8.. if adds_four::<V, T>(8) => self.whole::<V, 8, 1>(work, first, rest / (8 * V::LANES)),
                    8.. if V::MOST >= 8 => self.whole::<V, 8, 1>(work, first, 1),
                    4.. => self.whole::<V, 4, 1>(work, first, 1),
                    2.. if V::MOST >= 8 => self.whole::<V, 2, CHAINS_OF_TWO>(work, first, 1),
                    2.. => self.whole::<V, 2, 1>(work, first, 1),
                    1.. => self.whole::<V, 1, CHAINS_OF_ONE>(work, first, 1),
                    _ if most > 0 && rest >= H::LANES => self.whole::<H, 1, CHAINS_OF_ONE>(work, first, 1),
                    _ if most > 0 && rest >= 4 => self.whole::<Array<T, 4>, 1, CHAINS_OF_ONE>(work, first, 1),
                    _ => self.whole::<Array<T, 1>, 1, CHAINS_OF_ONE>(work, first, 1),
                }
            };
        }
    }

    /// Computes an item on an x86-64 processor without AVX2, by blocks of eight columns and of one: such processors are too
    /// old, or too small, for a loop for each number of vectors to be worth its bytes. Columns of the plan's own are not read.
    ///
    /// # Safety
    /// The requirements of [`Self::block`].
    #[cfg(target_arch = "x86_64")]
    unsafe fn sweep_without_avx2(&self, work: &Work) {
        const LANES: usize = 8;
        let mut first = self.columns.start;
        while first < self.columns.end {
            let is_wide = self.b_strides.1 == 1 && self.columns.end - first >= LANES;
            let columns = if is_wide { LANES } else { 1 };
            let block = Block { first, columns, skipped: 0, blocks: 1 };
            // SAFETY: the caller's promise.
            unsafe {
                match is_wide {
                    true => self.block::<Array<T, LANES>, 1, CHAINS_OF_ONE, false>(work, block),
                    false => self.block::<Array<T, 1>, 1, CHAINS_OF_ONE, false>(work, block),
                }
            }
            first += columns;
        }
    }

    /// Calls [`Self::compiled`] for blocks without masks, and returns the number of their columns.
    ///
    /// # Safety
    /// The requirements of [`Self::compiled`].
    #[inline(always)]
    unsafe fn whole<V: Vector<T>, const VECTORS: usize, const CHAINS: usize>(
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

    /// Computes these columns of an item by code that is compiled for the vectors: [`Self::plain_rows`] where it may,
    /// or else [`Self::block`]. Each is a function of its own, with the registers for itself: together in one, rows of few
    /// entries took longer.
    ///
    /// # Safety
    /// The requirements of [`Self::block`], and on x86-64 the processor has AVX2.
    unsafe fn compiled<V: Vector<T>, const VECTORS: usize, const CHAINS: usize, const MASKED: bool>(
        &self,
        work: &Work,
        block: Block,
    ) {
        // SAFETY: the caller's promise. The plan's own columns are less than their matrix's number of columns, which
        // `multiply_by` has compared with the rows of B.
        unsafe {
            if const { Self::has_plain_rows::<V, VECTORS, MASKED>() } {
                if let (Work::Rows(rows), Some(plain)) = (work, self.plain()) {
                    let rows = rows.clone();
                    if const { Self::may_read_own_columns::<V, VECTORS, MASKED>() } {
                        match self.own_columns.map(OwnColumns::columns) {
                            Some(Columns::Narrow(columns)) => {
                                let plain = plain.with(columns);
                                return self.run_plain::<V, VECTORS, CHAINS, MASKED, _>(rows, plain, block);
                            }
                            Some(Columns::Wide(columns)) => {
                                let plain = plain.with(columns);
                                return self.run_plain::<V, VECTORS, CHAINS, MASKED, _>(rows, plain, block);
                            }
                            None => {}
                        }
                    }
                    return self.run_plain::<V, VECTORS, CHAINS, MASKED, _>(rows, plain, block);
                }
            }
            self.run_block::<V, VECTORS, CHAINS, MASKED>(work, block);
        }
    }
}

/// Ends a product whose row offsets or column indices the user has changed since analysis.
#[cold]
fn outside() -> ! {
    panic!("a row offset or a column index of A is outside the matrix")
}

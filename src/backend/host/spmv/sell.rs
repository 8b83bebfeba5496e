//! SpMV algorithm `sell` on the host: y = alpha · op(A) · x + beta · y on [`SellLayout`].
//!
//! The row of a lane is the sum, in order, of its interleaved entries, plus the [`dot`](Running::dot) of its
//! tail; a long row is the sum, in order, of the dots of its pieces. The result does not depend on the number
//! of threads.
//!
//! Sorted rows are not in the order of y and x, which memory then delivers late. While a window's slices are
//! multiplied, the lines of y of the next window's rows are prefetched in their order, and as many lines of x,
//! which these rows read if op(A) has its entries near the diagonal. Values and columns are prefetched some
//! steps ahead, unless x is in the first-level cache ([`SMALL_X`]).

use super::{Opened, SpmvProduct};
use crate::backend::host::lanes::{self, gather, load, Cols, Eight, Narrow, Wide};
use crate::backend::host::schedule;
use crate::backend::host::slices::Slices;
use crate::backend::host::vector::prefetch;
use crate::error::Result;
use crate::format::narrowing::Holds;
use crate::format::sell::{
    with_stored, Columns, Piece, SellLayout, Slice, LANES, NO_LANE, WINDOW, WINDOW_SLICES,
};
use crate::support::Combo;
use crate::types::{Accumulator, Storage};

impl<C: Combo> SpmvProduct<C> for Slices<C::A> {
    fn sums(&self) -> usize {
        self.layout.pieces.len()
    }

    fn multiply(&self, parallel: bool, opened: Opened<'_, C>) -> Result<()> {
        with_stored!(&self.layout.values, values => {
            Running::new(&self.layout, values, opened).run(parallel, &self.items);
        });
        Ok(())
    }
}

/// Bytes of x that a first-level cache holds. Then the values and columns are all that a core waits for, and
/// its own prefetches see nothing else; elements of a larger x come between.
const SMALL_X: usize = 32 << 10;

/// Bytes of values by which they are prefetched ahead: some 100 ns of work, as long as memory takes.
const VALUES_AHEAD: usize = 2048;

/// Bytes of columns by which they are prefetched ahead.
const COLUMNS_AHEAD: usize = 512;

/// State of one product.
struct Running<'a, C: Combo, S> {
    layout: &'a SellLayout<C::A>,
    values: &'a [S],
    opened: Opened<'a, C>,
    /// Columns of op(A) divided by its rows, with [`FRACTION`] bits behind the point.
    columns_per_row: u64,
}

/// Bits behind the point of [`Running::columns_per_row`].
const FRACTION: u32 = 16;

impl<'a, C: Combo, S: Holds<C::A>> Running<'a, C, S> {
    fn new(layout: &'a SellLayout<C::A>, values: &'a [S], opened: Opened<'a, C>) -> Self {
        let columns_per_row = ((layout.col_count as u64) << FRACTION) / layout.row_count.max(1) as u64;
        Running { layout, values, opened, columns_per_row }
    }

    /// Runs the whole product.
    fn run(&self, parallel: bool, items: &[u64]) {
        // The unchecked loads below rely on this; the plan has checked it.
        assert!(self.opened.x.len() >= self.layout.col_count);
        let fetches = self.layout.col_count * size_of::<C::X>() > SMALL_X;
        schedule::for_each(parallel, items.len() - 1 + self.layout.pieces.len(), |item| {
            if lanes::uses_avx2::<C>() {
                // SAFETY: the processor has AVX2, FMA and F16C.
                return unsafe {
                    match fetches {
                        true => self.item_avx2::<true>(items, item),
                        false => self.item_avx2::<false>(items, item),
                    }
                };
            }
            // Plain code gets values in a form that it can read: on x86-64 only the full form, because
            // `lanes::reader` refuses the narrower forms there.
            let is_full = std::any::TypeId::of::<S>() == std::any::TypeId::of::<C::A>();
            assert!(is_full || cfg!(not(target_arch = "x86_64")), "values in a narrower form need AVX2");
            // SAFETY: plain code runs everywhere.
            unsafe { self.item::<false, false>(items, item) }
        });
        self.long_rows();
    }

    /// Stores the long rows, after all of their pieces are computed.
    fn long_rows(&self) {
        for long in self.layout.long_rows.iter() {
            let sum = self.opened.add_up(long.first as usize..long.last as usize);
            self.opened.store(long.row as usize, sum);
        }
    }

    /// # Safety
    /// The processor has AVX2, FMA and F16C.
    #[cfg_attr(target_arch = "x86_64", target_feature(enable = "avx2,fma,f16c"))]
    unsafe fn item_avx2<const FETCH: bool>(&self, items: &[u64], item: usize) {
        // SAFETY: the caller's promise.
        unsafe { self.item::<true, FETCH>(items, item) }
    }

    /// Computes the slices of an item, or, behind the items, a piece. Values and columns are prefetched if
    /// `FETCH` is true.
    ///
    /// # Safety
    /// If `AVX2` is true, the processor must have AVX2, FMA and F16C.
    #[inline(always)]
    unsafe fn item<const AVX2: bool, const FETCH: bool>(&self, items: &[u64], item: usize) {
        if let Some(piece) = (item + 1).checked_sub(items.len()) {
            // SAFETY: the caller's promise.
            return unsafe { self.piece::<AVX2, FETCH>(piece) };
        }
        for number in items[item] as usize..items[item + 1] as usize {
            let slice = &self.layout.slices[number];
            self.fetch_row(number * LANES + WINDOW);
            // SAFETY: analysis has made the slice, with its columns inside x.
            unsafe {
                match slice.columns() {
                    Columns::Narrow => self.slice::<AVX2, FETCH, Narrow>(number, slice),
                    Columns::Wide => self.slice::<AVX2, FETCH, Wide>(number, slice),
                    Columns::Runs => self.runs::<AVX2>(number, slice),
                }
            }
        }
    }

    /// Addresses where a slice's values, its words, and its part of x start.
    #[inline(always)]
    fn open(&self, number: usize, slice: &Slice) -> (*const S, *const u16, *const C::X) {
        let (values, words) = self.layout.starts(number);
        (
            self.values[values..].as_ptr(),
            self.layout.words[words..].as_ptr(),
            self.opened.x[slice.base as usize..].as_ptr(),
        )
    }

    /// Prefetches y at a row, and x as far along as the row is along y.
    #[inline(always)]
    fn fetch_row(&self, row: usize) {
        if row < self.layout.row_count {
            prefetch(self.opened.y.address().as_ptr::<C::Y>().wrapping_add(row));
            let column = (row as u64).wrapping_mul(self.columns_per_row) >> FRACTION;
            prefetch(self.opened.x.as_ptr().wrapping_add((column as usize).min(self.layout.col_count)));
        }
    }

    /// Prefetches the values and columns some steps behind these, if `FETCH` is true.
    #[inline(always)]
    fn fetch_ahead<const FETCH: bool>(values: *const S, columns: *const u16) {
        if !FETCH {
            return;
        }
        if size_of::<S>() > 0 {
            prefetch(values.cast::<u8>().wrapping_add(VALUES_AHEAD));
        }
        prefetch(columns.cast::<u8>().wrapping_add(COLUMNS_AHEAD));
    }

    /// # Safety
    /// The slice must be one of the layout's, with columns of `K`'s width; and the requirements of
    /// [`Self::item`].
    #[inline(always)]
    unsafe fn slice<const AVX2: bool, const FETCH: bool, K: Cols>(&self, number: usize, slice: &Slice) {
        let (values, words, x) = self.open(number, slice);
        let steps = usize::from(slice.steps);
        // SAFETY: the layout has the lanes' rows and lengths here, `steps` × 8 values and columns, all inside
        // x from the base on (padding has column 0), and the tails behind them.
        unsafe {
            let columns = words.add(slice.columns_at());
            let mut lengths = [slice.steps; LANES];
            if !slice.is_equal() {
                lengths = words.add(slice.lengths_at()).cast::<[u16; LANES]>().read();
            }
            let full = usize::from(lengths[LANES - 1]);
            let mut sums = Eight::<AVX2, C::Acc>::new([C::Acc::ZERO; LANES]);
            for step in 0..full {
                Self::fetch_ahead::<FETCH>(
                    values.wrapping_add(step * LANES),
                    columns.wrapping_add(step * LANES * K::WIDTH),
                );
                let xs = gather::<AVX2, C>(x, K::new(columns.add(step * LANES * K::WIDTH)).eight());
                sums.add_products(values.add(step * LANES), xs);
            }
            if slice.is_equal() {
                return self.store(number, slice, words, &sums.get());
            }
            let mut active = LANES;
            for step in full..steps {
                while usize::from(lengths[active - 1]) <= step {
                    active -= 1;
                }
                let columns = K::new(columns.add(step * LANES * K::WIDTH)).eight();
                let xs = gather::<AVX2, C>(x, columns).keep(active);
                sums.add_products(values.add(step * LANES), xs);
            }
            let (mut sums, mut tail) = (sums.get(), steps * LANES);
            for (sum, &length) in sums.iter_mut().zip(&lengths) {
                let rest = usize::from(length).saturating_sub(steps);
                if rest == 0 {
                    // Lengths descend, so no lane behind this one has a tail.
                    break;
                }
                *sum += Self::dot::<AVX2, FETCH, K>(rest, values.add(tail), columns.add(tail * K::WIDTH), x);
                tail += rest;
            }
            self.store(number, slice, words, &sums);
        }
    }

    /// Multiplies a slice whose lanes read consecutive elements of x.
    ///
    /// # Safety
    /// The requirements of [`Self::slice`], for a slice with columns in the form of runs.
    #[inline(always)]
    unsafe fn runs<const AVX2: bool>(&self, number: usize, slice: &Slice) {
        let (values, words, x) = self.open(number, slice);
        // SAFETY: the layout has this many values and columns, and x has eight elements from each column on.
        let sums = unsafe {
            let columns = words.add(slice.columns_at());
            let mut sums = Eight::<AVX2, C::Acc>::new([C::Acc::ZERO; LANES]);
            for step in 0..usize::from(slice.steps) {
                let xs = load::<AVX2, C>(x.add(usize::from(columns.add(step).read())));
                sums.add_products(values.add(step * LANES), xs);
            }
            sums.get()
        };
        // SAFETY: the words are the slice's.
        unsafe { self.store(number, slice, words, &sums) };
    }

    /// Stores the sums of the lanes of a slice.
    ///
    /// # Safety
    /// `words` points to the slice's words.
    #[inline(always)]
    unsafe fn store(&self, number: usize, slice: &Slice, words: *const u16, sums: &[C::Acc; LANES]) {
        let window = number / WINDOW_SLICES * WINDOW;
        if slice.is_even() {
            let first = window + slice.first_row();
            // SAFETY: one thread has the slice's rows.
            let y = unsafe { self.opened.rows(first..first + LANES) };
            for (y, sum) in y.iter_mut().zip(sums) {
                self.opened.scalars.store(*sum, y);
            }
            return;
        }
        // SAFETY: slices that are not even have their rows in front.
        let rows = unsafe { words.cast::<[u16; LANES]>().read() };
        for (sum, row) in sums.iter().zip(rows) {
            if row != NO_LANE {
                self.opened.store(window + usize::from(row), *sum);
            }
        }
    }

    /// # Safety
    /// The requirements of [`Self::item`].
    #[inline(always)]
    unsafe fn piece<const AVX2: bool, const FETCH: bool>(&self, number: usize) {
        let piece: &Piece = &self.layout.pieces[number];
        let (start, len) = (piece.values as usize, piece.len as usize);
        let values = self.values[start..start + len].as_ptr();
        let columns = self.layout.words[piece.words as usize..].as_ptr();
        let x = self.opened.x[piece.base as usize..].as_ptr();
        // SAFETY: analysis has made the piece, with its columns inside x; its
        // sum belongs to one item, and nothing reads it before all are done.
        unsafe {
            let sum = match piece.is_wide() {
                true => Self::dot::<AVX2, FETCH, Wide>(len, values, columns, x),
                false => Self::dot::<AVX2, FETCH, Narrow>(len, values, columns, x),
            };
            self.opened.sums.set(number, sum);
        }
    }

    /// Returns Σ values · x[columns]: eight sums, with entry i in sum i mod 8, are added pairwise, and then
    /// the entries behind the last group of eight.
    ///
    /// # Safety
    /// There must be `len` values and columns, all inside x; and the requirements of [`Self::item`].
    #[inline(always)]
    unsafe fn dot<const AVX2: bool, const FETCH: bool, K: Cols>(
        len: usize,
        values: *const S,
        columns: *const u16,
        x: *const C::X,
    ) -> C::Acc {
        let eights = len / LANES * LANES;
        // SAFETY: the caller's promise.
        unsafe {
            let mut total = C::Acc::ZERO;
            if eights > 0 {
                let mut sums = Eight::<AVX2, C::Acc>::new([C::Acc::ZERO; LANES]);
                for at in (0..eights).step_by(LANES) {
                    Self::fetch_ahead::<FETCH>(values.wrapping_add(at), columns.wrapping_add(at * K::WIDTH));
                    let xs = gather::<AVX2, C>(x, K::new(columns.add(at * K::WIDTH)).eight());
                    sums.add_products(values.add(at), xs);
                }
                let s = sums.get();
                total = ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7]));
            }
            for at in eights..len {
                let x = x.add(K::new(columns).one(at)).read();
                total += values.add(at).read().value().widen() * x.widen();
            }
            total
        }
    }
}

#[cfg(test)]
mod tests;

//! SpMV algorithm `sell` on the host: y = alpha · op(A) · x + beta · y on [`SellLayout`].
//!
//! The row of a lane is the sum, in order, of its interleaved entries, plus the [`dot`](Running::dot) of its
//! tail; a long row is the sum, in order, of the dots of its pieces. The result does not depend on the number
//! of threads.

use super::{Opened, SpmvProduct};
use crate::backend::host::lanes::{self, gather, load, Cols, Eight, Narrow, Wide};
use crate::backend::host::schedule;
use crate::backend::host::slices::Slices;
use crate::error::Result;
use crate::format::narrowing::Holds;
use crate::format::sell::{with_stored, Columns, Piece, SellLayout, Slice, LANES, NO_ROW};
use crate::support::Combo;
use crate::types::{Accumulator, Storage};

impl<C: Combo> SpmvProduct<C> for Slices<C::A> {
    fn sums(&self) -> usize {
        self.layout.pieces.len()
    }

    fn multiply(&self, parallel: bool, opened: Opened<'_, C>) -> Result<()> {
        with_stored!(&self.layout.values, values => {
            Running { layout: &self.layout, values, opened }.run(parallel, &self.items);
        });
        Ok(())
    }
}

/// State of one product.
struct Running<'a, C: Combo, S> {
    layout: &'a SellLayout<C::A>,
    values: &'a [S],
    opened: Opened<'a, C>,
}

impl<C: Combo, S: Holds<C::A>> Running<'_, C, S> {
    /// Runs the whole product.
    fn run(&self, parallel: bool, items: &[u64]) {
        // The unchecked loads below rely on this; the plan has checked it.
        assert!(self.opened.x.len() >= self.layout.col_count);
        schedule::for_each(parallel, items.len() - 1 + self.layout.pieces.len(), |item| {
            if lanes::uses_avx2::<C>() {
                // SAFETY: the processor has AVX2, FMA and F16C.
                return unsafe { self.item_avx2(items, item) };
            }
            // Plain code gets values in a form that it can read: on x86-64 only the full form, because
            // `lanes::reader` refuses the narrower forms there.
            let is_full = std::any::TypeId::of::<S>() == std::any::TypeId::of::<C::A>();
            assert!(is_full || cfg!(not(target_arch = "x86_64")), "values in a narrower form need AVX2");
            // SAFETY: plain code runs everywhere.
            unsafe { self.item::<false>(items, item) }
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
    unsafe fn item_avx2(&self, items: &[u64], item: usize) {
        // SAFETY: the caller's promise.
        unsafe { self.item::<true>(items, item) }
    }

    /// Computes the slices of an item, or, behind the items, a piece.
    ///
    /// # Safety
    /// If `AVX2` is true, the processor must have AVX2, FMA and F16C.
    #[inline(always)]
    unsafe fn item<const AVX2: bool>(&self, items: &[u64], item: usize) {
        if let Some(piece) = (item + 1).checked_sub(items.len()) {
            // SAFETY: the caller's promise.
            return unsafe { self.piece::<AVX2>(piece) };
        }
        for number in items[item] as usize..items[item + 1] as usize {
            let slice = &self.layout.slices[number];
            // SAFETY: analysis has made the slice, with its columns inside x.
            unsafe {
                match slice.columns() {
                    Columns::Narrow => self.slice::<AVX2, Narrow>(number, slice),
                    Columns::Wide => self.slice::<AVX2, Wide>(number, slice),
                    Columns::Runs => self.runs::<AVX2>(number, slice),
                }
            }
        }
    }

    /// Addresses where a slice's values, its columns, and its part of x start.
    #[inline(always)]
    fn open(&self, slice: &Slice) -> (*const S, *const u16, *const C::X) {
        let (values, columns) = (slice.values as usize, slice.indices as usize);
        let layout = self.layout;
        (
            self.values[values..].as_ptr(),
            layout.columns[columns..].as_ptr(),
            self.opened.x[slice.base as usize..].as_ptr(),
        )
    }

    /// # Safety
    /// The slice must be one of the layout's, with columns of `K`'s width; and the requirements of
    /// [`Self::item`].
    #[inline(always)]
    unsafe fn slice<const AVX2: bool, K: Cols>(&self, number: usize, slice: &Slice) {
        let (values, columns, x) = self.open(slice);
        let (full, steps) = (slice.full as usize, slice.steps as usize);
        // SAFETY: the layout has `steps` × 8 values and columns here, all inside
        // x from the base on (padding has column 0), and the tails behind them.
        unsafe {
            let mut sums = Eight::<AVX2, C::Acc>::new([C::Acc::ZERO; LANES]);
            for step in 0..full {
                let xs = gather::<AVX2, C>(x, K::new(columns.add(step * LANES * K::WIDTH)).eight());
                sums.add_products(values.add(step * LANES), xs);
            }
            if slice.is_even() {
                return self.store(number, slice, &sums.get());
            }
            let lanes = number * LANES;
            let lengths = &self.layout.lengths[lanes..lanes + LANES];
            let mut active = LANES;
            for step in full..steps {
                while lengths[active - 1] as usize <= step {
                    active -= 1;
                }
                let columns = K::new(columns.add(step * LANES * K::WIDTH)).eight();
                let xs = gather::<AVX2, C>(x, columns).keep(active);
                sums.add_products(values.add(step * LANES), xs);
            }
            let (mut sums, mut tail) = (sums.get(), steps * LANES);
            for (sum, &length) in sums.iter_mut().zip(lengths) {
                let rest = (length as usize).saturating_sub(steps);
                if rest == 0 {
                    // Lengths descend, so no lane behind this one has a tail.
                    break;
                }
                *sum += Self::dot::<AVX2, K>(rest, values.add(tail), columns.add(tail * K::WIDTH), x);
                tail += rest;
            }
            self.store(number, slice, &sums);
        }
    }

    /// Multiplies a slice whose lanes read consecutive elements of x.
    ///
    /// # Safety
    /// The requirements of [`Self::slice`], for a slice with columns in the form of runs.
    #[inline(always)]
    unsafe fn runs<const AVX2: bool>(&self, number: usize, slice: &Slice) {
        let (values, columns, x) = self.open(slice);
        // SAFETY: the layout has this many values and columns, and x has eight elements from each column on.
        let sums = unsafe {
            let mut sums = Eight::<AVX2, C::Acc>::new([C::Acc::ZERO; LANES]);
            for step in 0..slice.steps as usize {
                let xs = load::<AVX2, C>(x.add(usize::from(columns.add(step).read())));
                sums.add_products(values.add(step * LANES), xs);
            }
            sums.get()
        };
        self.store(number, slice, &sums);
    }

    /// Stores the sums of the lanes of a slice.
    #[inline(always)]
    fn store(&self, number: usize, slice: &Slice, sums: &[C::Acc; LANES]) {
        let rows = &self.layout.rows[number * LANES..(number + 1) * LANES];
        if slice.is_even() {
            let first = rows[0] as usize;
            // SAFETY: one thread has the slice's rows.
            let y = unsafe { self.opened.rows(first..first + LANES) };
            for (y, sum) in y.iter_mut().zip(sums) {
                self.opened.scalars.store(*sum, y);
            }
            return;
        }
        for (sum, &row) in sums.iter().zip(rows) {
            if row != NO_ROW {
                self.opened.store(row as usize, *sum);
            }
        }
    }

    /// # Safety
    /// The requirements of [`Self::item`].
    #[inline(always)]
    unsafe fn piece<const AVX2: bool>(&self, number: usize) {
        let piece: &Piece = &self.layout.pieces[number];
        let (start, len) = (piece.values as usize, piece.len as usize);
        let values = self.values[start..start + len].as_ptr();
        let columns = self.layout.columns[piece.indices as usize..].as_ptr();
        let x = self.opened.x[piece.base as usize..].as_ptr();
        // SAFETY: analysis has made the piece, with its columns inside x; its
        // sum belongs to one item, and nothing reads it before all are done.
        unsafe {
            let sum = match piece.is_wide() {
                true => Self::dot::<AVX2, Wide>(len, values, columns, x),
                false => Self::dot::<AVX2, Narrow>(len, values, columns, x),
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
    unsafe fn dot<const AVX2: bool, K: Cols>(
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

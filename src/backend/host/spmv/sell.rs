//! SpMV `sell`: y = alpha · op(A) · x + beta · y on [`SellLayout`].
//!
//! A lane's row is the sum, in order, of its interleaved entries, plus the
//! [`dot`](Product::dot) of its tail; a long row is the sum, in order, of the
//! dots of its pieces. Nothing depends on the number of threads.

use std::ops::Range;

use super::converted::{operand, Converted};
use super::Opened;
use crate::backend::host::lanes::{Add, Cols, Narrow, Plain, Wide};
use crate::backend::host::schedule;
use crate::error::Result;
use crate::format::narrowing::{self, Holds};
use crate::format::sell::{with_stored, Columns, Piece, SellLayout, Slice, LANES, NO_ROW};
use crate::memory::{Buffer, Context};
use crate::problem::SpmvProblem;
use crate::support::Combo;
use crate::types::{Accumulator, LayoutKind, Storage};

/// Work of an item in slots, of which a row costs about [`ROW_WORK`]: 1 to 2 µs,
/// against some 30 ns that taking an item costs.
const ITEM_WORK: usize = 1 << 12;

/// Storing a row, in slots.
const ROW_WORK: usize = 4;

/// The layout, cut into items.
pub(super) struct Slices<V: narrowing::Narrow> {
    layout: SellLayout<V>,
    /// First slice of each item, and their number.
    items: Buffer<u64>,
    units: usize,
}

impl<C: Combo> Converted<C> for Slices<C::A> {
    const KIND: LayoutKind = LayoutKind::Sell;

    fn arrange(cx: &Context, problem: &SpmvProblem) -> Result<Self> {
        let layout = operand::<C>(cx, problem)?.arrange(cx, problem.value_updates)?;
        let end = layout.values.len();
        let work = |number: usize, slice: &Slice| {
            let next = layout.slices.get(number + 1).map_or(end, |next| next.values as usize);
            next - slice.values as usize + LANES * ROW_WORK
        };
        let cut = |item: &mut dyn FnMut(usize)| {
            let (mut done, mut total) = (ITEM_WORK, 0);
            for (number, slice) in layout.slices.iter().enumerate() {
                if done >= ITEM_WORK {
                    item(number);
                    done = 0;
                }
                let work = work(number, slice);
                done += work;
                total += work;
            }
            item(layout.slices.len());
            total
        };
        let mut count = 0;
        let units = cut(&mut |_| count += 1);
        let mut items = Buffer::<u64>::zeroed(&cx.allocator, count)?;
        let mut next = 0;
        cut(&mut |first| {
            items[next] = first as u64;
            next += 1;
        });
        Ok(Slices { layout, items, units })
    }

    fn refill(&mut self, values: &[C::A], conjugate: bool) -> bool {
        self.layout.refill(values, conjugate)
    }

    fn parts(&self) -> usize {
        self.layout.pieces.len()
    }

    fn units(&self) -> usize {
        self.units
    }

    fn multiply(&self, parallel: bool, opened: Opened<'_, C>) {
        with_stored!(&self.layout.values, values => {
            Product { layout: &self.layout, values, opened }.run(parallel, &self.items);
        });
    }

    fn fill_ratio(&self) -> f64 {
        self.layout.fill_ratio()
    }

    fn details(&self) -> String {
        self.layout.values.form().describe().into()
    }
}

/// One product while it runs.
struct Product<'a, C: Combo, S> {
    layout: &'a SellLayout<C::A>,
    values: &'a [S],
    opened: Opened<'a, C>,
}

/// Runs `avx2::$function` with the product's own types where the processor can and
/// there is code for them; else falls through.
macro_rules! on_avx2 {
    ($product:ident, $function:ident($argument:expr): $($combo:ident($($stored:ty)*))*) => {
        #[cfg(target_arch = "x86_64")]
        if crate::backend::host::lanes::Avx2::is_here() {
            use crate::support::{Bf16, Bf16F32, F16, F16F32, F32, F32F64, F64};
            use half::{bf16, f16};
            use narrowing::One;
            $($(if let Some(product) = $product.recast::<$combo, $stored>() {
                // SAFETY: the processor has AVX2, FMA and F16C.
                return unsafe { avx2::$function(product, $argument) };
            })*)*
        }
    };
    ($product:ident, $function:ident($argument:expr)) => {
        on_avx2!($product, $function($argument):
            F64(f64 f32 f16 One) F32(f32 f16 One) F32F64(f32 f16 One)
            F16(f16 One) F16F32(f16 One) Bf16(bf16 One) Bf16F32(bf16 One));
    };
}

impl<C: Combo, S: Holds<C::A>> Product<'_, C, S> {
    /// Itself, if the types are those.
    #[cfg(target_arch = "x86_64")]
    fn recast<D: Combo, T: 'static>(&self) -> Option<&Product<'_, D, T>> {
        // SAFETY: both types are 'static, and of one id means the same type.
        (std::any::TypeId::of::<(C, S)>() == std::any::TypeId::of::<(D, T)>())
            .then(|| unsafe { &*std::ptr::from_ref(self).cast() })
    }

    /// All of it.
    fn run(&self, parallel: bool, items: &[u64]) {
        // What the unchecked loads below rely on; the plan has checked it.
        assert!(self.opened.x.len() >= self.layout.col_count);
        let slice_items = items.len() - 1;
        schedule::for_each(parallel, slice_items + self.layout.pieces.len(), |item| {
            if item < slice_items {
                self.slices(items[item] as usize..items[item + 1] as usize);
            } else {
                self.piece(item - slice_items);
            }
        });
        self.long_rows();
    }

    /// Long rows from their pieces, when those are done.
    fn long_rows(&self) {
        for long in self.layout.long_rows.iter() {
            let sum = self.opened.add_up(long.first as usize..long.last as usize);
            self.opened.store(long.row as usize, sum);
        }
    }

    /// On x86-64 there is no plain code for narrower forms, which `lanes::reader` refuses there.
    #[inline(always)]
    fn check_plain(&self) {
        let is_full = std::any::TypeId::of::<S>() == std::any::TypeId::of::<C::A>();
        assert!(is_full || cfg!(not(target_arch = "x86_64")), "values in a narrower form need AVX2");
    }

    fn slices(&self, range: Range<usize>) {
        on_avx2!(self, slices(range.clone()));
        self.check_plain();
        // SAFETY: plain code runs everywhere.
        unsafe { self.slices_with::<Plain>(range) }
    }

    fn piece(&self, number: usize) {
        on_avx2!(self, piece(number));
        self.check_plain();
        // SAFETY: plain code runs everywhere.
        unsafe { self.piece_with::<Plain>(number) }
    }

    /// # Safety
    /// The processor has what `L` needs.
    #[inline(always)]
    unsafe fn slices_with<L: Add<C, S>>(&self, range: Range<usize>) {
        for number in range {
            let slice = &self.layout.slices[number];
            // SAFETY: analysis has made the slice, with its columns inside x.
            unsafe {
                match slice.columns() {
                    Columns::Narrow => self.slice::<L, Narrow>(number, slice),
                    Columns::Wide => self.slice::<L, Wide>(number, slice),
                    Columns::Runs => self.runs::<L>(number, slice),
                }
            }
        }
    }

    /// Where a slice's values, columns and part of x start.
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
    /// The slice is one of the layout's and its columns are of `K`'s width; the
    /// processor has what `L` needs.
    #[inline(always)]
    unsafe fn slice<L: Add<C, S>, K: Cols>(&self, number: usize, slice: &Slice) {
        let (values, columns, x) = self.open(slice);
        let (full, steps) = (slice.full as usize, slice.steps as usize);
        // SAFETY: the layout has `steps` × 8 values and columns here, all inside
        // x from the base on (padding has column 0), and the tails behind them.
        unsafe {
            let mut sums = L::zero();
            let at = |step: usize| K::new(columns.add(step * LANES * K::WIDTH));
            for step in 0..full {
                sums = L::add(sums, values.add(step * LANES), L::gather(x, at(step)));
            }
            let lanes = number * LANES;
            if slice.is_even() {
                self.store_even(self.layout.rows[lanes] as usize, &L::get(sums));
                return;
            }
            let lengths = &self.layout.lengths[lanes..lanes + LANES];
            let mut active = LANES;
            for step in full..steps {
                while lengths[active - 1] as usize <= step {
                    active -= 1;
                }
                let xs = L::keep(L::gather(x, at(step)), active);
                sums = L::add(sums, values.add(step * LANES), xs);
            }
            let mut sums = L::get(sums);
            let mut tail = steps * LANES;
            for (sum, &length) in sums.iter_mut().zip(lengths) {
                let rest = (length as usize).saturating_sub(steps);
                if rest == 0 {
                    // Lengths descend.
                    break;
                }
                *sum += Self::dot::<L, K>(rest, values.add(tail), columns.add(tail * K::WIDTH), x);
                tail += rest;
            }
            for (sum, &row) in sums.iter().zip(&self.layout.rows[lanes..lanes + LANES]) {
                if row != NO_ROW {
                    self.opened.store(row as usize, *sum);
                }
            }
        }
    }

    /// A slice whose lanes read x side by side.
    ///
    /// # Safety
    /// As [`Self::slice`], with columns of that form.
    #[inline(always)]
    unsafe fn runs<L: Add<C, S>>(&self, number: usize, slice: &Slice) {
        let (values, columns, x) = self.open(slice);
        // SAFETY: the layout has as many values and columns, and x has eight
        // elements from each column on.
        let sums = unsafe {
            let mut sums = L::zero();
            for step in 0..slice.steps as usize {
                let xs = L::load(x.add(usize::from(columns.add(step).read())));
                sums = L::add(sums, values.add(step * LANES), xs);
            }
            L::get(sums)
        };
        let lanes = number * LANES;
        if slice.is_even() {
            self.store_even(self.layout.rows[lanes] as usize, &sums);
        } else {
            for (sum, &row) in sums.iter().zip(&self.layout.rows[lanes..lanes + LANES]) {
                self.opened.store(row as usize, *sum);
            }
        }
    }

    #[inline(always)]
    fn store_even(&self, first: usize, sums: &[C::Acc; LANES]) {
        // SAFETY: one thread has the slice's rows, and y is borrowed until all are done.
        let y = unsafe { self.opened.y.part(first..first + LANES) };
        for (y, sum) in y.iter_mut().zip(sums) {
            self.opened.scalars.store(*sum, y);
        }
    }

    /// # Safety
    /// The processor has what `L` needs.
    #[inline(always)]
    unsafe fn piece_with<L: Add<C, S>>(&self, number: usize) {
        let piece: &Piece = &self.layout.pieces[number];
        let (start, len) = (piece.values as usize, piece.len as usize);
        let values = self.values[start..start + len].as_ptr();
        let columns = self.layout.columns[piece.indices as usize..].as_ptr();
        let x = self.opened.x[piece.base as usize..].as_ptr();
        // SAFETY: analysis has made the piece, with its columns inside x; its
        // sum belongs to one item, and nothing reads it before all are done.
        unsafe {
            let sum = match piece.is_wide() {
                true => Self::dot::<L, Wide>(len, values, columns, x),
                false => Self::dot::<L, Narrow>(len, values, columns, x),
            };
            self.opened.sums.set(number, sum);
        }
    }

    /// Σ values · x[columns]: eight sums, entry i in sum i mod 8, added
    /// pairwise, and what is left behind the last eight.
    ///
    /// # Safety
    /// There are `len` values and columns, all inside x; the processor has what
    /// `L` needs.
    #[inline(always)]
    unsafe fn dot<L: Add<C, S>, K: Cols>(
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
                let mut sums = L::zero();
                for at in (0..eights).step_by(LANES) {
                    sums = L::add(sums, values.add(at), L::gather(x, K::new(columns.add(at * K::WIDTH))));
                }
                let s = L::get(sums);
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

#[cfg(target_arch = "x86_64")]
mod avx2 {
    //! The entry points that are compiled for the processors.
    use super::{Product, Range};
    use crate::backend::host::lanes::{Add, Avx2};
    use crate::format::narrowing::Holds;
    use crate::support::Combo;

    /// # Safety
    /// The processor has AVX2, FMA and F16C.
    #[target_feature(enable = "avx2,fma,f16c")]
    pub(super) unsafe fn slices<C: Combo, S: Holds<C::A>>(product: &Product<'_, C, S>, range: Range<usize>)
    where
        Avx2: Add<C, S>,
    {
        // SAFETY: the caller's promise.
        unsafe { product.slices_with::<Avx2>(range) }
    }

    /// # Safety
    /// As [`slices`].
    #[target_feature(enable = "avx2,fma,f16c")]
    pub(super) unsafe fn piece<C: Combo, S: Holds<C::A>>(product: &Product<'_, C, S>, number: usize)
    where
        Avx2: Add<C, S>,
    {
        // SAFETY: the caller's promise.
        unsafe { product.piece_with::<Avx2>(number) }
    }
}

#[cfg(test)]
mod tests;

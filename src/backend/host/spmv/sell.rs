//! SpMV `sell`: y = alpha · op(A) · x + beta · y on [`SellLayout`].
//!
//! A lane's row is the sum, in order, of its interleaved entries, plus the
//! [`dot`](Product::dot) of its tail; a long row is the sum, in order, of the
//! dots of its pieces. Nothing depends on the number of threads.

use std::ops::Range;

use super::{open, Opened};
use crate::backend::host::lanes::{Cols, Lanes, Narrow, Plain, Wide};
use crate::backend::host::operand::{Operand, Shared};
use crate::backend::host::scalars::Scalars;
use crate::backend::host::schedule;
use crate::backend::{memory, Buffer, Context, LayoutInfo, SpmvExecutor, SpmvProblem};
use crate::error::Result;
use crate::layout::sell::{Columns, Piece, SellLayout, Slice, LANES, NO_ROW};
use crate::matrix::DenseVector;
use crate::select::{self, Choice, Source};
use crate::support::Combo;
use crate::types::{Accumulator, Address, LayoutKind, Storage};

/// Work of an item in slots, of which a row costs about [`ROW_WORK`]: 1 to 2 µs,
/// against some 30 ns that taking an item costs.
const ITEM_WORK: usize = 1 << 12;

/// Storing a row, in slots.
const ROW_WORK: usize = 4;

/// The executor.
pub(super) struct SellSpmv<C: Combo> {
    problem: SpmvProblem,
    layout: SellLayout<C::A>,
    /// First slice of each item, and their number.
    items: Buffer<u64>,
    units: usize,
}

fn arrange<C: Combo>(cx: &Context, problem: &SpmvProblem) -> Result<SellLayout<C::A>> {
    let (a, op) = (&problem.a, problem.op);
    // Rows that lie in the user's arrays need no copy on the way.
    let source = if select::in_place(a, op) { Source::InPlace } else { Source::Canonical };
    Operand::<C::A>::build(cx, a, op, source, "A", problem.value_updates)?.arrange(cx, problem.value_updates)
}

impl<C: Combo> SellSpmv<C> {
    pub(super) fn build(cx: &Context, problem: &SpmvProblem, _choice: &Choice) -> Result<Self> {
        let layout = arrange::<C>(cx, problem)?;
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
        Ok(SellSpmv { problem: *problem, layout, items, units })
    }

    /// Execute, on all threads or on this one.
    pub(super) fn run(
        &self,
        cx: &Context,
        parallel: bool,
        (alpha, beta): (Address, Address),
        x: &DenseVector,
        y: &DenseVector,
    ) -> Result<()> {
        // What the unchecked loads below rely on; the plan has checked both.
        assert!(x.len as usize >= self.layout.col_count && y.len as usize >= self.layout.row_count);
        let opened = open::<C>(cx, parallel, (alpha, beta), (x, y), self.layout.pieces.len())?;
        let Some(Opened { x, y, sums, scalars }) = opened else {
            return Ok(());
        };
        let product = Product::<C> { layout: &self.layout, x, y, sums, scalars };
        let slice_items = self.items.len() - 1;
        schedule::for_each(parallel, slice_items + self.layout.pieces.len(), |item| {
            if item < slice_items {
                product.slices(self.items[item] as usize..self.items[item + 1] as usize);
            } else {
                product.piece(item - slice_items);
            }
        });
        for long in self.layout.long_rows.iter() {
            let mut sum = C::Acc::ZERO;
            for piece in long.first as usize..long.last as usize {
                // SAFETY: all items are done, so nothing writes sums.
                sum += unsafe { product.sums.get(piece) };
            }
            product.store(long.row as usize, sum);
        }
        Ok(())
    }
}

impl<C: Combo> SpmvExecutor for SellSpmv<C> {
    fn workspace_bytes(&self) -> usize {
        self.layout.pieces.len() * size_of::<C::Acc>()
    }

    fn execute(
        &self,
        cx: &Context,
        alpha: Address,
        x: &DenseVector,
        beta: Address,
        y: &DenseVector,
    ) -> Result<()> {
        self.run(cx, schedule::is_parallel(self.units), (alpha, beta), x, y)
    }

    fn update_values(&mut self, cx: &Context, values: Address) -> Result<()> {
        let renewed = SpmvProblem { a: self.problem.a.with_values(values), ..self.problem };
        // SAFETY: the descriptor promises that many values, which stay valid and
        // unchanged while a call that reads them runs.
        let values = unsafe { memory::open("A", values, renewed.a.shape().2 as usize)? };
        if !self.layout.refill(values, renewed.op.conjugates()) {
            self.layout = arrange::<C>(cx, &renewed)?;
        }
        self.problem = renewed;
        Ok(())
    }

    fn layout(&self) -> LayoutInfo {
        LayoutInfo { kind: LayoutKind::Sell, in_place: false, fill: self.layout.fill_ratio() }
    }
}

/// One product while it runs.
struct Product<'a, C: Combo> {
    layout: &'a SellLayout<C::A>,
    x: &'a [C::X],
    y: Shared<C::Y>,
    /// Of the pieces of long rows.
    sums: Shared<C::Acc>,
    scalars: Scalars<C::Acc>,
}

/// Runs `$method::<Avx2>` with the product's own types where the processor can
/// and there is code for them; else falls through.
macro_rules! on_avx2 {
    ($product:ident, $function:ident($argument:expr): $($combo:ident)*) => {
        #[cfg(target_arch = "x86_64")]
        if crate::backend::host::lanes::Avx2::is_here() {
            $(if let Some(product) = $product.recast::<crate::support::$combo>() {
                // SAFETY: the processor has AVX2, FMA and F16C.
                return unsafe { avx2::$function(product, $argument) };
            })*
        }
    };
}

impl<C: Combo> Product<'_, C> {
    /// Itself, if the types are those of `D`.
    #[cfg(target_arch = "x86_64")]
    fn recast<D: Combo>(&self) -> Option<&Product<'_, D>> {
        // SAFETY: `Combo`s are 'static, and of one id means the same type.
        (std::any::TypeId::of::<C>() == std::any::TypeId::of::<D>())
            .then(|| unsafe { &*std::ptr::from_ref(self).cast() })
    }

    fn slices(&self, range: Range<usize>) {
        on_avx2!(self, slices(range.clone()): F64 F32 F32F64 F16 F16F32 Bf16 Bf16F32);
        // SAFETY: plain code runs everywhere.
        unsafe { self.slices_with::<Plain>(range) }
    }

    fn piece(&self, number: usize) {
        on_avx2!(self, piece(number): F64 F32 F32F64 F16 F16F32 Bf16 Bf16F32);
        // SAFETY: plain code runs everywhere.
        unsafe { self.piece_with::<Plain>(number) }
    }

    fn store(&self, row: usize, sum: C::Acc) {
        // SAFETY: each row is one lane or one long row, which one thread has,
        // and y is borrowed until all are done.
        self.scalars.store(sum, &mut unsafe { self.y.part(row..row + 1) }[0]);
    }

    /// # Safety
    /// The processor has what `L` needs.
    #[inline(always)]
    unsafe fn slices_with<L: Lanes<C>>(&self, range: Range<usize>) {
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
    fn open(&self, slice: &Slice) -> (*const C::A, *const u16, *const C::X) {
        let (values, columns) = (slice.values as usize, slice.indices as usize);
        let layout = self.layout;
        (
            layout.values[values..].as_ptr(),
            layout.columns[columns..].as_ptr(),
            self.x[slice.base as usize..].as_ptr(),
        )
    }

    /// # Safety
    /// The slice is one of the layout's and its columns are of `K`'s width; the
    /// processor has what `L` needs.
    #[inline(always)]
    unsafe fn slice<L: Lanes<C>, K: Cols>(&self, number: usize, slice: &Slice) {
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
                    self.store(row as usize, *sum);
                }
            }
        }
    }

    /// A slice whose lanes read x side by side.
    ///
    /// # Safety
    /// As [`Self::slice`], with columns of that form.
    #[inline(always)]
    unsafe fn runs<L: Lanes<C>>(&self, number: usize, slice: &Slice) {
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
                self.store(row as usize, *sum);
            }
        }
    }

    #[inline(always)]
    fn store_even(&self, first: usize, sums: &[C::Acc; LANES]) {
        // SAFETY: as in `store`.
        let y = unsafe { self.y.part(first..first + LANES) };
        for (y, sum) in y.iter_mut().zip(sums) {
            self.scalars.store(*sum, y);
        }
    }

    /// # Safety
    /// The processor has what `L` needs.
    #[inline(always)]
    unsafe fn piece_with<L: Lanes<C>>(&self, number: usize) {
        let piece: &Piece = &self.layout.pieces[number];
        let (start, len) = (piece.values as usize, piece.len as usize);
        let values = self.layout.values[start..start + len].as_ptr();
        let columns = self.layout.columns[piece.indices as usize..].as_ptr();
        let x = self.x[piece.base as usize..].as_ptr();
        // SAFETY: analysis has made the piece, with its columns inside x; its
        // sum belongs to one item, and nothing reads it before all are done.
        unsafe {
            let sum = match piece.is_wide() {
                true => Self::dot::<L, Wide>(len, values, columns, x),
                false => Self::dot::<L, Narrow>(len, values, columns, x),
            };
            self.sums.set(number, sum);
        }
    }

    /// Σ values · x[columns]: eight sums, entry i in sum i mod 8, added
    /// pairwise, and what is left behind the last eight.
    ///
    /// # Safety
    /// There are `len` values and columns, all inside x; the processor has what
    /// `L` needs.
    #[inline(always)]
    unsafe fn dot<L: Lanes<C>, K: Cols>(
        len: usize,
        values: *const C::A,
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
                total += values.add(at).read().widen() * x.widen();
            }
            total
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    //! The entry points that are compiled for the processors.
    use super::{Product, Range};
    use crate::backend::host::lanes::{Avx2, Lanes};
    use crate::support::Combo;

    /// # Safety
    /// The processor has AVX2, FMA and F16C.
    #[target_feature(enable = "avx2,fma,f16c")]
    pub(super) unsafe fn slices<C: Combo>(product: &Product<'_, C>, range: Range<usize>)
    where
        Avx2: Lanes<C>,
    {
        // SAFETY: the caller's promise.
        unsafe { product.slices_with::<Avx2>(range) }
    }

    /// # Safety
    /// As [`slices`].
    #[target_feature(enable = "avx2,fma,f16c")]
    pub(super) unsafe fn piece<C: Combo>(product: &Product<'_, C>, number: usize)
    where
        Avx2: Lanes<C>,
    {
        // SAFETY: the caller's promise.
        unsafe { product.piece_with::<Avx2>(number) }
    }
}

//! Sums in eight lanes: the inner loops of SELL, in a portable form, of which the compiler makes vector code, and
//! for AVX2.
//!
//! AVX2 code gathers x by eight loads and not by a gather instruction: on a Zen 4 core that takes 0.35 ns per
//! entry instead of 0.55 (16-bit columns, f64, rows of 8 entries), and processors that guard gathers against
//! data sampling are slower still.
//!
//! Nothing here is a closure or takes one: those are functions without the processor's features, and where
//! the compiler does not inline them, each entry costs a call.

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::*;

use bytemuck::{Pod, Zeroable};

use crate::format::narrowing::{Holds, Reader};
use crate::format::sell::LANES;
use crate::support::Combo;
use crate::types::{Accumulator, Element, Storage};

/// Returns whether the processor has AVX2, FMA and F16C. The standard library caches the detection.
#[inline]
pub(super) fn has_avx2() -> bool {
    #[cfg(target_arch = "x86_64")]
    let has = is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("fma")
        && is_x86_feature_detected!("f16c");
    #[cfg(not(target_arch = "x86_64"))]
    let has = false;
    has
}

/// Returns whether sums of these types use the AVX2 code, which fuses products and sums (FMA).
#[inline]
pub(super) fn uses_avx2<C: Combo>() -> bool {
    !C::Acc::TYPE.is_complex() && has_avx2()
}

/// Returns which narrower storage forms of values the kernels can read. `None` on x86-64 without AVX2, so
/// that the code for each form is not compiled twice for the sake of such processors.
pub(super) fn reader() -> Option<Reader> {
    let half = has_avx2();
    // Conversions of fp32 depend on the caller's denormals-are-zero mode, those of fp16 do not.
    (half || cfg!(not(target_arch = "x86_64"))).then_some(Reader { half, subnormal: false })
}

/// Column indices of eight consecutive entries.
pub(super) trait Cols: Copy {
    /// Number of `u16` words per column index.
    const WIDTH: usize;
    /// Creates the view from a pointer to the first index.
    fn new(first: *const u16) -> Self;
    /// Returns the column of one entry.
    ///
    /// # Safety
    /// The column is inside the array that `first` points into.
    unsafe fn one(self, entry: usize) -> usize;
    /// Returns the columns of eight entries.
    ///
    /// # Safety
    /// The safety condition of [`Self::one`], for eight entries.
    #[inline(always)]
    unsafe fn eight(self) -> [usize; LANES] {
        let mut columns = [0; LANES];
        for (entry, column) in columns.iter_mut().enumerate() {
            // SAFETY: the caller's promise.
            *column = unsafe { self.one(entry) };
        }
        columns
    }
}

/// Column indices of 16 bits.
#[derive(Clone, Copy)]
pub(super) struct Narrow(*const u16);

/// Column indices of 32 bits in two 16-bit words, the low one first.
#[derive(Clone, Copy)]
pub(super) struct Wide(*const u16);

impl Cols for Narrow {
    const WIDTH: usize = 1;
    #[inline(always)]
    fn new(first: *const u16) -> Self {
        Narrow(first)
    }
    #[inline(always)]
    unsafe fn one(self, entry: usize) -> usize {
        // SAFETY: the caller's promise.
        usize::from(unsafe { self.0.add(entry).read() })
    }
    #[inline(always)]
    unsafe fn eight(self) -> [usize; LANES] {
        // Two loads instead of eight, since the loop is bound by loads.
        // SAFETY: the caller's promise.
        let words = unsafe { self.0.cast::<[u64; 2]>().read_unaligned() };
        let mut columns = [0; LANES];
        for (entry, column) in columns.iter_mut().enumerate() {
            let word = u64::from_le(words[entry / 4]);
            *column = usize::from(u16::from_le((word >> (entry % 4 * 16)) as u16));
        }
        columns
    }
}

impl Cols for Wide {
    const WIDTH: usize = 2;
    #[inline(always)]
    fn new(first: *const u16) -> Self {
        Wide(first)
    }
    #[inline(always)]
    unsafe fn one(self, entry: usize) -> usize {
        // SAFETY: the caller's promise, for both halves.
        let (low, high) = unsafe { (self.0.add(2 * entry).read(), self.0.add(2 * entry + 1).read()) };
        usize::from(low) | usize::from(high) << 16
    }
}

/// Eight numbers, one per lane.
#[derive(Clone, Copy)]
pub(super) struct Eight<const AVX2: bool, T> {
    /// The numbers, in code without AVX2.
    array: [T; LANES],
    /// The numbers, in code with AVX2: floats in the first vector, or doubles in both. If sums were in an
    /// array, the compiler would take it apart and put it together again in every step of a loop.
    #[cfg(target_arch = "x86_64")]
    vectors: [__m256; 2],
}

/// Loads x at eight columns.
///
/// # Safety
/// All columns are inside x. With `AVX2` the processor has AVX2, FMA and F16C; this applies to all functions
/// here.
#[inline(always)]
pub(super) unsafe fn gather<const AVX2: bool, C: Combo>(
    x: *const C::X,
    columns: [usize; LANES],
) -> Eight<AVX2, C::Acc> {
    // SAFETY: the caller's promise; eight numbers of 16 bits are a vector.
    unsafe {
        #[cfg(target_arch = "x86_64")]
        if AVX2 && size_of::<C::X>() == size_of::<u16>() {
            let halves = gather_halves(x.cast(), columns);
            return widen_x::<AVX2, C>(std::mem::transmute_copy(&halves));
        }
        let mut xs = [C::X::zeroed(); LANES];
        for lane in 0..LANES {
            xs[lane] = x.add(columns[lane]).read();
        }
        widen_x::<AVX2, C>(xs)
    }
}

/// Gathers eight 16-bit numbers into one vector, in two chains of four loads each. With the code that the
/// compiler makes for an array, slices whose rows have different lengths took a third more time.
///
/// # Safety
/// The safety condition of [`gather`].
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn gather_halves(x: *const u16, columns: [usize; LANES]) -> __m128i {
    // SAFETY: the caller's promise.
    unsafe {
        let mut fours = [_mm_setzero_si128(); 2];
        for (at, four) in fours.iter_mut().enumerate() {
            let at = [
                x.add(columns[4 * at]),
                x.add(columns[4 * at + 1]),
                x.add(columns[4 * at + 2]),
                x.add(columns[4 * at + 3]),
            ];
            let two = _mm_insert_epi16::<1>(_mm_cvtsi32_si128(at[0].read().into()), at[1].read().into());
            let three = _mm_insert_epi16::<2>(two, at[2].read().into());
            *four = _mm_insert_epi16::<3>(three, at[3].read().into());
        }
        _mm_unpacklo_epi64(fours[0], fours[1])
    }
}

/// Loads eight consecutive elements of x.
///
/// # Safety
/// The safety condition of [`gather`], for these elements.
#[inline(always)]
pub(super) unsafe fn load<const AVX2: bool, C: Combo>(x: *const C::X) -> Eight<AVX2, C::Acc> {
    // SAFETY: the caller's promise.
    unsafe { widen_x::<AVX2, C>(x.cast::<[C::X; LANES]>().read()) }
}

/// Widens eight elements of x.
///
/// # Safety
/// The safety condition of [`gather`] on the processor.
#[inline(always)]
unsafe fn widen_x<const AVX2: bool, C: Combo>(xs: [C::X; LANES]) -> Eight<AVX2, C::Acc> {
    let mut wide = [C::Acc::ZERO; LANES];
    for lane in 0..LANES {
        wide[lane] = xs[lane].widen();
    }
    // SAFETY: the caller's promise.
    unsafe { Eight::from_stored(xs, wide) }
}

impl<const AVX2: bool, T: Accumulator> Eight<AVX2, T> {
    /// Creates it from an array.
    ///
    /// # Safety
    /// The safety condition of [`gather`] on the processor.
    #[inline(always)]
    pub unsafe fn new(array: [T; LANES]) -> Self {
        Eight {
            array,
            #[cfg(target_arch = "x86_64")]
            // SAFETY: all bits are floats; of floats the array is as large as one vector, of doubles as both.
            vectors: unsafe {
                match size_of::<T>() {
                    4 => [std::mem::transmute_copy(&array), std::mem::zeroed()],
                    _ => std::mem::transmute_copy(&array),
                }
            },
        }
    }

    /// Returns the numbers as an array.
    #[inline(always)]
    pub fn get(self) -> [T; LANES] {
        #[cfg(target_arch = "x86_64")]
        if AVX2 {
            // SAFETY: as in `new`.
            return unsafe { std::mem::transmute_copy(&self.vectors) };
        }
        self.array
    }

    /// Creates it from eight stored numbers, which are also given as `wide`; with AVX2 they are widened by
    /// vector instructions where there are any.
    ///
    /// # Safety
    /// The safety condition of [`gather`] on the processor.
    #[inline(always)]
    unsafe fn from_stored<S: Pod>(from: [S; LANES], wide: [T; LANES]) -> Self {
        #[cfg(target_arch = "x86_64")]
        if AVX2 {
            // SAFETY: the caller's promise.
            unsafe {
                if let Some(singles) = singles(&from) {
                    let vectors = match size_of::<T>() {
                        4 => [singles, _mm256_setzero_ps()],
                        _ => [
                            _mm256_castpd_ps(_mm256_cvtps_pd(_mm256_castps256_ps128(singles))),
                            _mm256_castpd_ps(_mm256_cvtps_pd(_mm256_extractf128_ps::<1>(singles))),
                        ],
                    };
                    return Eight { array: [T::ZERO; LANES], vectors };
                }
            }
        }
        // Other processors have `wide` alone.
        let _ = from;
        // SAFETY: the caller's promise.
        unsafe { Self::new(wide) }
    }

    /// Returns the first `active` numbers, followed by zeros.
    ///
    /// # Safety
    /// `active` is at most 8, and the safety condition of [`gather`] on the processor holds.
    #[inline(always)]
    pub unsafe fn keep(mut self, active: usize) -> Self {
        debug_assert!(active <= LANES);
        #[cfg(target_arch = "x86_64")]
        if AVX2 {
            /// All-ones for two vectors, followed by zeros for two vectors.
            static MASKS: [[i64; 8]; 2] = [[-1; 8], [0; 8]];
            // SAFETY: `active` is at most 8 and a number 8 bytes, so that both loads are inside.
            unsafe {
                let masks = MASKS.as_ptr().cast::<u8>().add(size_of_val(&MASKS[0]) - active * size_of::<T>());
                for (at, vector) in self.vectors.iter_mut().enumerate() {
                    *vector = _mm256_and_ps(*vector, _mm256_loadu_ps(masks.cast::<f32>().add(at * 8)));
                }
            }
            return self;
        }
        for number in &mut self.array[active..] {
            *number = T::ZERO;
        }
        self
    }

    /// Adds the products of eight values of A, stored as S, and `xs`. With AVX2 a product is not rounded
    /// before it is added; else [`Accumulator::plus_product`] says whether it is.
    ///
    /// # Safety
    /// `values` points to eight values, and the safety condition of [`gather`] on the processor holds.
    #[inline(always)]
    pub unsafe fn add_products<V: Storage<T>, S: Holds<V>>(&mut self, values: *const S, xs: Self) {
        // SAFETY: the caller's promise.
        let stored = unsafe { values.cast::<[S; LANES]>().read() };
        let mut wide = [T::ZERO; LANES];
        for lane in 0..LANES {
            wide[lane] = stored[lane].value().widen();
        }
        // SAFETY: the caller's promise.
        let values = unsafe { Self::from_stored(stored, wide) };
        #[cfg(target_arch = "x86_64")]
        if AVX2 {
            for (at, sum) in self.vectors.iter_mut().enumerate() {
                let (a, b) = (values.vectors[at], xs.vectors[at]);
                // SAFETY: the caller's promise.
                *sum = unsafe {
                    match size_of::<T>() {
                        4 => _mm256_fmadd_ps(a, b, *sum),
                        _ => _mm256_castpd_ps(_mm256_fmadd_pd(
                            _mm256_castps_pd(a),
                            _mm256_castps_pd(b),
                            _mm256_castps_pd(*sum),
                        )),
                    }
                };
            }
            return;
        }
        for ((sum, value), x) in self.array.iter_mut().zip(values.array).zip(xs.array) {
            *sum = sum.plus_product(value, x);
        }
    }
}

/// Converts eight numbers of at most 32 bits to floats; `None` for other types.
///
/// # Safety
/// The processor has AVX2 and F16C.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(super) unsafe fn singles<S: Pod>(from: &[S; LANES]) -> Option<__m256> {
    use std::any::TypeId;
    let is = |other| TypeId::of::<S>() == other;
    // SAFETY: the caller's promise, and the types are those.
    unsafe {
        if is(TypeId::of::<f32>()) {
            Some(std::mem::transmute_copy(from))
        } else if is(TypeId::of::<half::f16>()) {
            Some(_mm256_cvtph_ps(std::mem::transmute_copy(from)))
        } else if is(TypeId::of::<half::bf16>()) {
            let bits = _mm256_cvtepu16_epi32(std::mem::transmute_copy(from));
            Some(_mm256_castsi256_ps(_mm256_slli_epi32::<16>(bits)))
        } else {
            None
        }
    }
}

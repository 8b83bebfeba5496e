//! Eight sums side by side: the inner loops of SELL, for any processor and for AVX2.
//!
//! AVX2 code gathers x by eight loads and not by a gather instruction: on a
//! Zen 4 core that takes 0.35 ns an entry instead of 0.55 (16-bit columns, f64,
//! rows of 8 entries), and processors that guard gathers against data sampling
//! are slower still.

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::*;

use bytemuck::Pod;

use crate::format::narrowing::{Holds, Reader};
use crate::format::sell::LANES;
use crate::support::Combo;
use crate::types::{Accumulator, Element, Storage};

/// Whether the processor has AVX2, FMA and F16C. The standard library asks once.
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

/// Whether sums of these types are formed by the code for AVX2, which adds products without rounding them first.
#[inline]
pub(super) fn uses_avx2<C: Combo>() -> bool {
    !C::Acc::TYPE.is_complex() && has_avx2()
}

/// What values in a narrower form are read by; `None`: nothing reads them, which is so on x86-64 without AVX2, for
/// whose sake the code for each form is not compiled twice.
pub(super) fn reader() -> Option<Reader> {
    let half = has_avx2();
    // Conversions of fp32 obey the caller's denormals-are-zero mode, those of fp16 do not.
    (half || cfg!(not(target_arch = "x86_64"))).then_some(Reader { half, subnormal: false })
}

/// Columns of eight entries that follow each other in memory.
pub(super) trait Cols: Copy {
    /// `u16`s an entry.
    const WIDTH: usize;
    /// From the first column on.
    fn new(first: *const u16) -> Self;
    /// Column of one entry.
    ///
    /// # Safety
    /// The column is inside the array that `first` points into.
    unsafe fn one(self, entry: usize) -> usize;
    /// Columns of eight entries.
    ///
    /// # Safety
    /// As [`Self::one`].
    #[inline(always)]
    unsafe fn eight(self) -> [usize; LANES] {
        // SAFETY: the caller's promise.
        std::array::from_fn(|entry| unsafe { self.one(entry) })
    }
}

/// 16 bits a column.
#[derive(Clone, Copy)]
pub(super) struct Narrow(*const u16);

/// 32 bits a column, in two halves, the low one first.
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
        // Two loads instead of eight: loads are what the loop is bound by.
        // SAFETY: the caller's promise.
        let words = unsafe { self.0.cast::<[u64; 2]>().read_unaligned() }.map(u64::from_le);
        std::array::from_fn(|entry| usize::from(u16::from_le((words[entry / 4] >> (entry % 4 * 16)) as u16)))
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

/// Eight numbers.
#[derive(Clone, Copy)]
pub(super) struct Eight<const AVX2: bool, T> {
    /// They, without AVX2.
    array: [T; LANES],
    /// With AVX2: floats in the first vector, or doubles in both. Sums in an array the compiler takes apart and puts
    /// together again in every step of a loop.
    #[cfg(target_arch = "x86_64")]
    vectors: [__m256; 2],
}

/// x at eight columns.
///
/// # Safety
/// All are inside x. With `AVX2` the processor has that, FMA and F16C; so for all functions here.
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
            return Eight::widen(std::mem::transmute_copy::<_, [C::X; LANES]>(&halves), C::X::widen);
        }
        Eight::widen(columns.map(|column| x.add(column).read()), C::X::widen)
    }
}

/// Eight numbers of 16 bits: four loads after each other, and four beside them. With what the compiler makes of an
/// array, slices whose rows have different lengths took a third more time.
///
/// # Safety
/// As [`gather`].
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn gather_halves(x: *const u16, columns: [usize; LANES]) -> __m128i {
    // SAFETY: the caller's promise.
    unsafe {
        let at = |lane: usize| i32::from(x.add(columns[lane]).read());
        let four = |lane: usize| {
            let two = _mm_insert_epi16::<1>(_mm_cvtsi32_si128(at(lane)), at(lane + 1));
            _mm_insert_epi16::<3>(_mm_insert_epi16::<2>(two, at(lane + 2)), at(lane + 3))
        };
        _mm_unpacklo_epi64(four(0), four(4))
    }
}

/// x at eight columns that follow each other.
///
/// # Safety
/// As [`gather`].
#[inline(always)]
pub(super) unsafe fn load<const AVX2: bool, C: Combo>(x: *const C::X) -> Eight<AVX2, C::Acc> {
    // SAFETY: the caller's promise.
    unsafe { Eight::widen(x.cast::<[C::X; LANES]>().read(), C::X::widen) }
}

impl<const AVX2: bool, T: Accumulator> Eight<AVX2, T> {
    /// Of an array.
    ///
    /// # Safety
    /// As [`gather`].
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

    /// As an array.
    #[inline(always)]
    pub fn get(self) -> [T; LANES] {
        #[cfg(target_arch = "x86_64")]
        if AVX2 {
            // SAFETY: as in `new`.
            return unsafe { std::mem::transmute_copy(&self.vectors) };
        }
        self.array
    }

    /// Of eight stored numbers, each widened as `one` does.
    ///
    /// # Safety
    /// As [`gather`].
    #[inline(always)]
    unsafe fn widen<S: Pod>(from: [S; LANES], one: impl Fn(S) -> T) -> Self {
        #[cfg(target_arch = "x86_64")]
        if AVX2 {
            // SAFETY: the caller's promise.
            unsafe {
                if let Some(singles) = singles(&from) {
                    let vectors = match size_of::<T>() {
                        4 => [singles, _mm256_setzero_ps()],
                        _ => [_mm256_castps256_ps128(singles), _mm256_extractf128_ps::<1>(singles)]
                            .map(|half| _mm256_castpd_ps(_mm256_cvtps_pd(half))),
                    };
                    return Eight { array: [T::ZERO; LANES], vectors };
                }
            }
        }
        // SAFETY: the caller's promise.
        unsafe { Self::new(from.map(one)) }
    }

    /// The first `active` of them, and zeros.
    ///
    /// # Safety
    /// `active` is at most 8; as [`gather`].
    #[inline(always)]
    pub unsafe fn keep(mut self, active: usize) -> Self {
        debug_assert!(active <= LANES);
        #[cfg(target_arch = "x86_64")]
        if AVX2 {
            /// Two vectors of ones, and two of zeros.
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
        self.array = std::array::from_fn(|lane| if lane < active { self.array[lane] } else { T::ZERO });
        self
    }

    /// Adds eight values of A, which are stored as S, times `xs`; with AVX2 a product is not rounded before.
    ///
    /// # Safety
    /// There are eight values; as [`gather`].
    #[inline(always)]
    pub unsafe fn add_products<V: Storage<T>, S: Holds<V>>(&mut self, values: *const S, xs: Self) {
        // SAFETY: the caller's promise.
        let values: Self =
            unsafe { Self::widen(values.cast::<[S; LANES]>().read(), |value| value.value().widen()) };
        #[cfg(target_arch = "x86_64")]
        if AVX2 {
            for ((sum, a), b) in self.vectors.iter_mut().zip(values.vectors).zip(xs.vectors) {
                // SAFETY: the caller's promise.
                *sum = unsafe {
                    match size_of::<T>() {
                        4 => _mm256_fmadd_ps(a, b, *sum),
                        _ => {
                            let [a, b, sum] = [a, b, *sum].map(|vector| _mm256_castps_pd(vector));
                            _mm256_castpd_ps(_mm256_fmadd_pd(a, b, sum))
                        }
                    }
                };
            }
            return;
        }
        for ((sum, value), x) in self.array.iter_mut().zip(values.array).zip(xs.array) {
            *sum += value * x;
        }
    }
}

/// Eight numbers of at most 32 bits as floats; `None` of other types.
///
/// # Safety
/// The processor has AVX2 and F16C.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn singles<S: Pod>(from: &[S; LANES]) -> Option<__m256> {
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

//! Eight sums side by side: the inner loops of SELL, in plain code and in AVX2.
//!
//! AVX2 code gathers x by eight loads and not by a gather instruction: on a
//! Zen 4 core that takes 0.35 ns an entry instead of 0.55 (16-bit columns, f64,
//! rows of 8 entries), and processors that guard gathers against data sampling
//! are slower still.

use crate::format::narrowing::{Holds, Reader};
use crate::support::Combo;
use crate::types::{Accumulator, Storage};

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
    /// Columns of four entries from `entry` on.
    ///
    /// # Safety
    /// As [`Self::one`].
    #[inline(always)]
    unsafe fn four(self, entry: usize) -> [usize; 4] {
        // SAFETY: the caller's promise.
        unsafe { [self.one(entry), self.one(entry + 1), self.one(entry + 2), self.one(entry + 3)] }
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
    unsafe fn four(self, entry: usize) -> [usize; 4] {
        // One load instead of four: loads are what the loop is bound by.
        // SAFETY: the caller's promise.
        let word = unsafe { self.0.add(entry).cast::<u64>().read_unaligned() };
        let four = [0, 16, 32, 48].map(|shift| usize::from((word >> shift) as u16));
        if cfg!(target_endian = "big") {
            let [a, b, c, d] = four;
            [d, c, b, a]
        } else {
            four
        }
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

/// Eight sums and eight elements of x.
pub(super) trait Lanes<C: Combo> {
    /// Eight sums.
    type Sums: Copy;
    /// Eight elements of x.
    type Xs: Copy;
    /// Zeros.
    ///
    /// # Safety
    /// The processor has what the implementation needs; so for all functions here.
    unsafe fn zero() -> Self::Sums;
    /// x at eight columns.
    ///
    /// # Safety
    /// All are inside x.
    unsafe fn gather<K: Cols>(x: *const C::X, cols: K) -> Self::Xs;
    /// x at eight columns that follow each other.
    ///
    /// # Safety
    /// All are inside x.
    unsafe fn load(x: *const C::X) -> Self::Xs;
    /// The first `active` of them, and zeros.
    ///
    /// # Safety
    /// `active` is at most 8.
    unsafe fn keep(xs: Self::Xs, active: usize) -> Self::Xs;
    /// The sums.
    ///
    /// # Safety
    /// As [`Self::zero`].
    unsafe fn get(sums: Self::Sums) -> [C::Acc; 8];
}

/// How eight products are added to eight sums, where values of A are stored as S.
pub(super) trait Add<C: Combo, S>: Lanes<C> {
    /// Adds eight values times `xs`.
    ///
    /// # Safety
    /// There are eight values, and the processor has what the implementation needs.
    unsafe fn add(sums: Self::Sums, values: *const S, xs: Self::Xs) -> Self::Sums;
}

/// Any processor.
pub(super) struct Plain;

impl<C: Combo> Lanes<C> for Plain {
    type Sums = [C::Acc; 8];
    type Xs = [C::Acc; 8];
    #[inline(always)]
    unsafe fn zero() -> Self::Sums {
        [C::Acc::ZERO; 8]
    }
    #[inline(always)]
    unsafe fn gather<K: Cols>(x: *const C::X, cols: K) -> Self::Xs {
        // SAFETY: the caller's promise.
        std::array::from_fn(|lane| unsafe { x.add(cols.one(lane)).read() }.widen())
    }
    #[inline(always)]
    unsafe fn load(x: *const C::X) -> Self::Xs {
        // SAFETY: the caller's promise.
        std::array::from_fn(|lane| unsafe { x.add(lane).read() }.widen())
    }
    #[inline(always)]
    unsafe fn keep(xs: Self::Xs, active: usize) -> Self::Xs {
        std::array::from_fn(|lane| if lane < active { xs[lane] } else { C::Acc::ZERO })
    }
    #[inline(always)]
    unsafe fn get(sums: Self::Sums) -> [C::Acc; 8] {
        sums
    }
}

impl<C: Combo, S: Holds<C::A>> Add<C, S> for Plain {
    #[inline(always)]
    unsafe fn add(sums: Self::Sums, values: *const S, xs: Self::Xs) -> Self::Sums {
        // SAFETY: the caller's promise.
        let value = |lane| unsafe { values.add(lane).read() }.value();
        std::array::from_fn(|lane| sums[lane] + value(lane).widen() * xs[lane])
    }
}

/// What values in a narrower form are read by; `None`: nothing reads them, which is so on x86-64 without AVX2, for
/// whose sake the code for each form is not compiled twice.
pub(super) fn reader() -> Option<Reader> {
    #[cfg(target_arch = "x86_64")]
    let half = Avx2::is_here();
    #[cfg(not(target_arch = "x86_64"))]
    let half = false;
    // Conversions of fp32 obey the caller's denormals-are-zero mode, those of fp16 do not.
    (half || cfg!(not(target_arch = "x86_64"))).then_some(Reader { half, subnormal: false })
}

#[cfg(target_arch = "x86_64")]
pub(super) use avx2::Avx2;

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use std::arch::x86_64::*;

    use half::{bf16, f16};

    use super::{Add, Cols, Lanes};
    use crate::format::narrowing::One;
    use crate::support::{Bf16, Bf16F32, F16, F16F32, F32, F32F64, F64};

    /// Processors with AVX2, FMA and F16C.
    pub(crate) struct Avx2;

    impl Avx2 {
        /// Whether this one is. The standard library asks once.
        #[inline]
        pub(crate) fn is_here() -> bool {
            is_x86_feature_detected!("avx2")
                && is_x86_feature_detected!("fma")
                && is_x86_feature_detected!("f16c")
        }
    }

    /// Ones for the first `active` of eight lanes are at 8 − `active`.
    static MASK64: [i64; 16] = [-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0];
    static MASK32: [i32; 16] = [-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0];

    type Doubles = (__m256d, __m256d);

    #[inline(always)]
    unsafe fn gather_four(x: *const f64, [a, b, c, d]: [usize; 4]) -> __m256d {
        // SAFETY: the caller promises AVX2 and that the four are inside x.
        unsafe {
            let low = _mm_loadh_pd(_mm_load_sd(x.add(a)), x.add(b));
            let high = _mm_loadh_pd(_mm_load_sd(x.add(c)), x.add(d));
            _mm256_insertf128_pd::<1>(_mm256_castpd128_pd256(low), high)
        }
    }

    #[inline(always)]
    unsafe fn keep_doubles(xs: Doubles, active: usize) -> Doubles {
        debug_assert!(active <= 8);
        // SAFETY: `active` is at most 8, so both loads end inside the table.
        unsafe {
            let mask = MASK64.as_ptr().add(8 - active).cast::<f64>();
            (_mm256_and_pd(xs.0, _mm256_loadu_pd(mask)), _mm256_and_pd(xs.1, _mm256_loadu_pd(mask.add(4))))
        }
    }

    /// Values of A that are widened to doubles.
    trait FourDoubles {
        unsafe fn load(values: *const Self) -> __m256d;
    }

    impl FourDoubles for f64 {
        #[inline(always)]
        unsafe fn load(values: *const f64) -> __m256d {
            // SAFETY: the caller promises four values.
            unsafe { _mm256_loadu_pd(values) }
        }
    }

    impl FourDoubles for f32 {
        #[inline(always)]
        unsafe fn load(values: *const f32) -> __m256d {
            // SAFETY: the caller promises four values.
            unsafe { _mm256_cvtps_pd(_mm_loadu_ps(values)) }
        }
    }

    impl FourDoubles for f16 {
        #[inline(always)]
        unsafe fn load(values: *const f16) -> __m256d {
            // SAFETY: the caller promises four values.
            unsafe { _mm256_cvtps_pd(_mm_cvtph_ps(_mm_loadl_epi64(values.cast()))) }
        }
    }

    impl FourDoubles for One {
        #[inline(always)]
        unsafe fn load(_: *const One) -> __m256d {
            // SAFETY: the caller promises AVX2.
            unsafe { _mm256_set1_pd(1.0) }
        }
    }

    /// Values of A or x that are widened to singles.
    trait EightSingles {
        unsafe fn load(values: *const Self) -> __m256;
    }

    impl EightSingles for One {
        #[inline(always)]
        unsafe fn load(_: *const One) -> __m256 {
            // SAFETY: the caller promises AVX2.
            unsafe { _mm256_set1_ps(1.0) }
        }
    }

    /// Elements of x that are widened to singles.
    trait GatheredSingles: EightSingles {
        unsafe fn gather<K: Cols>(x: *const Self, cols: K) -> __m256;
    }

    impl EightSingles for f32 {
        #[inline(always)]
        unsafe fn load(values: *const f32) -> __m256 {
            // SAFETY: the caller promises eight values.
            unsafe { _mm256_loadu_ps(values) }
        }
    }

    impl GatheredSingles for f32 {
        #[inline(always)]
        unsafe fn gather<K: Cols>(x: *const f32, cols: K) -> __m256 {
            // SAFETY: the caller promises that all columns are inside x.
            unsafe {
                let four = |[a, b, c, d]: [usize; 4]| {
                    let low = _mm_unpacklo_ps(_mm_load_ss(x.add(a)), _mm_load_ss(x.add(b)));
                    let high = _mm_unpacklo_ps(_mm_load_ss(x.add(c)), _mm_load_ss(x.add(d)));
                    _mm_movelh_ps(low, high)
                };
                let (low, high) = (four(cols.four(0)), four(cols.four(4)));
                _mm256_insertf128_ps::<1>(_mm256_castps128_ps256(low), high)
            }
        }
    }

    /// Eight halves of x, as they are.
    #[inline(always)]
    unsafe fn gather_halves<K: Cols>(x: *const u16, cols: K) -> __m128i {
        // SAFETY: the caller promises AVX2 and that all columns are inside x.
        unsafe {
            let at = |col: usize| i32::from(x.add(col).read());
            let ([a, b, c, d], [e, f, g, h]) = (cols.four(0), cols.four(4));
            let low = _mm_insert_epi16::<1>(_mm_cvtsi32_si128(at(a)), at(b));
            let low = _mm_insert_epi16::<3>(_mm_insert_epi16::<2>(low, at(c)), at(d));
            let high = _mm_insert_epi16::<1>(_mm_cvtsi32_si128(at(e)), at(f));
            let high = _mm_insert_epi16::<3>(_mm_insert_epi16::<2>(high, at(g)), at(h));
            _mm_unpacklo_epi64(low, high)
        }
    }

    #[inline(always)]
    unsafe fn widen_bf16(bits: __m128i) -> __m256 {
        // SAFETY: the caller promises AVX2.
        unsafe { _mm256_castsi256_ps(_mm256_slli_epi32::<16>(_mm256_cvtepu16_epi32(bits))) }
    }

    impl EightSingles for f16 {
        #[inline(always)]
        unsafe fn load(values: *const f16) -> __m256 {
            // SAFETY: the caller promises eight values.
            unsafe { _mm256_cvtph_ps(_mm_loadu_si128(values.cast())) }
        }
    }

    impl GatheredSingles for f16 {
        #[inline(always)]
        unsafe fn gather<K: Cols>(x: *const f16, cols: K) -> __m256 {
            // SAFETY: the caller's promise.
            unsafe { _mm256_cvtph_ps(gather_halves(x.cast(), cols)) }
        }
    }

    impl EightSingles for bf16 {
        #[inline(always)]
        unsafe fn load(values: *const bf16) -> __m256 {
            // SAFETY: the caller promises eight values.
            unsafe { widen_bf16(_mm_loadu_si128(values.cast())) }
        }
    }

    impl GatheredSingles for bf16 {
        #[inline(always)]
        unsafe fn gather<K: Cols>(x: *const bf16, cols: K) -> __m256 {
            // SAFETY: the caller's promise.
            unsafe { widen_bf16(gather_halves(x.cast(), cols)) }
        }
    }

    macro_rules! doubles {
        ($($combo:ident: $($stored:ty)*;)*) => { $(impl Lanes<$combo> for Avx2 {
            type Sums = Doubles;
            type Xs = Doubles;
            #[inline(always)]
            unsafe fn zero() -> Doubles {
                // SAFETY: the caller promises AVX2.
                unsafe { (_mm256_setzero_pd(), _mm256_setzero_pd()) }
            }
            #[inline(always)]
            unsafe fn gather<K: Cols>(x: *const f64, cols: K) -> Doubles {
                // SAFETY: the caller's promise.
                unsafe { (gather_four(x, cols.four(0)), gather_four(x, cols.four(4))) }
            }
            #[inline(always)]
            unsafe fn load(x: *const f64) -> Doubles {
                // SAFETY: the caller's promise.
                unsafe { (_mm256_loadu_pd(x), _mm256_loadu_pd(x.add(4))) }
            }
            #[inline(always)]
            unsafe fn keep(xs: Doubles, active: usize) -> Doubles {
                // SAFETY: the caller's promise.
                unsafe { keep_doubles(xs, active) }
            }
            #[inline(always)]
            unsafe fn get(sums: Doubles) -> [f64; 8] {
                let mut out = [0.0; 8];
                // SAFETY: there is room for eight.
                unsafe {
                    _mm256_storeu_pd(out.as_mut_ptr(), sums.0);
                    _mm256_storeu_pd(out.as_mut_ptr().add(4), sums.1);
                }
                out
            }
        }
        $(impl Add<$combo, $stored> for Avx2 {
            #[inline(always)]
            unsafe fn add(sums: Doubles, values: *const $stored, xs: Doubles) -> Doubles {
                // SAFETY: the caller's promise.
                unsafe {
                    (
                        _mm256_fmadd_pd(<$stored as FourDoubles>::load(values), xs.0, sums.0),
                        _mm256_fmadd_pd(<$stored as FourDoubles>::load(values.add(4)), xs.1, sums.1),
                    )
                }
            }
        })*)* };
    }
    doubles! { F64: f64 f32 f16 One; F32F64: f32 f16 One; }

    macro_rules! singles {
        ($($combo:ident: $x:ty: $($stored:ty)*;)*) => { $(impl Lanes<$combo> for Avx2 {
            type Sums = __m256;
            type Xs = __m256;
            #[inline(always)]
            unsafe fn zero() -> __m256 {
                // SAFETY: the caller promises AVX2.
                unsafe { _mm256_setzero_ps() }
            }
            #[inline(always)]
            unsafe fn gather<K: Cols>(x: *const $x, cols: K) -> __m256 {
                // SAFETY: the caller's promise.
                unsafe { <$x as GatheredSingles>::gather(x, cols) }
            }
            #[inline(always)]
            unsafe fn load(x: *const $x) -> __m256 {
                // SAFETY: the caller's promise.
                unsafe { <$x as EightSingles>::load(x) }
            }
            #[inline(always)]
            unsafe fn keep(xs: __m256, active: usize) -> __m256 {
                debug_assert!(active <= 8);
                // SAFETY: `active` is at most 8, so the load ends inside the table.
                unsafe { _mm256_and_ps(xs, _mm256_loadu_ps(MASK32.as_ptr().add(8 - active).cast())) }
            }
            #[inline(always)]
            unsafe fn get(sums: __m256) -> [f32; 8] {
                let mut out = [0.0; 8];
                // SAFETY: there is room for eight.
                unsafe { _mm256_storeu_ps(out.as_mut_ptr(), sums) };
                out
            }
        }
        $(impl Add<$combo, $stored> for Avx2 {
            #[inline(always)]
            unsafe fn add(sums: __m256, values: *const $stored, xs: __m256) -> __m256 {
                // SAFETY: the caller's promise.
                unsafe { _mm256_fmadd_ps(<$stored as EightSingles>::load(values), xs, sums) }
            }
        })*)* };
    }
    singles! {
        F32: f32: f32 f16 One;
        F16: f16: f16 One;
        F16F32: f16: f16 One;
        Bf16: bf16: bf16 One;
        Bf16F32: bf16: bf16 One;
    }
}

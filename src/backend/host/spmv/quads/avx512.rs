//! The inner loop of [`Quads`] for AVX-512.

use std::arch::x86_64::*;

use super::{prefetch, store, AHEAD};
use crate::backend::host::spmv::Opened;
use crate::format::quads::{Start, GROUPS, SIDE, SLAB};
use crate::format::Quads;
use crate::support::Combo;

/// Sums of the 16 places of four rows.
///
/// # Safety
/// The processor has AVX-512 F, VL, BW and DQ and POPCNT. `values` points to as many numbers as a register
/// holds, and `x` to four.
trait Places: Copy {
    /// Type of the numbers.
    type Number;

    /// Returns zeros.
    unsafe fn zeros() -> Self;

    /// Adds the products of a block, whose mask this is.
    unsafe fn add(&mut self, mask: u32, values: *const Self::Number, x: *const Self::Number);

    /// Returns the sums of the rows of both groups of a slab.
    unsafe fn totals(groups: [Self; GROUPS]) -> [Self::Number; SLAB];
}

/// Floats: a register.
impl Places for __m512 {
    type Number = f32;

    #[inline(always)]
    unsafe fn zeros() -> Self {
        // SAFETY: the caller's promise.
        unsafe { _mm512_setzero_ps() }
    }

    #[inline(always)]
    unsafe fn add(&mut self, mask: u32, values: *const f32, x: *const f32) {
        // SAFETY: the caller's promise.
        unsafe {
            let mask = mask as __mmask16;
            let values = _mm512_maskz_expand_ps(mask, _mm512_loadu_ps(values));
            *self = _mm512_mask3_fmadd_ps(values, _mm512_broadcast_f32x4(_mm_loadu_ps(x)), *self, mask);
        }
    }

    #[inline(always)]
    unsafe fn totals([a, b]: [Self; GROUPS]) -> [f32; SLAB] {
        // SAFETY: the caller's promise.
        unsafe {
            // For each row the sums of places 0 + 2 of a and of b, then those of places 1 + 3; then their sums in both
            // halves.
            let pairs = _mm512_add_ps(_mm512_unpacklo_ps(a, b), _mm512_unpackhi_ps(a, b));
            let sums = _mm512_add_ps(pairs, _mm512_shuffle_ps::<0b01_00_11_10>(pairs, pairs));
            let order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 0, 0, 0, 0, 0, 0, 0, 0);
            let rows = _mm512_castps512_ps256(_mm512_permutexvar_ps(order, sums));
            std::mem::transmute::<__m256, [f32; SLAB]>(rows)
        }
    }
}

/// Doubles: two rows in a register.
impl Places for [__m512d; 2] {
    type Number = f64;

    #[inline(always)]
    unsafe fn zeros() -> Self {
        // SAFETY: the caller's promise.
        unsafe { [_mm512_setzero_pd(); 2] }
    }

    #[inline(always)]
    unsafe fn add(&mut self, mask: u32, values: *const f64, x: *const f64) {
        // SAFETY: the caller's promise; the second two rows have as many values as the whole mask has bits
        // less those of the first two, and padding behind them.
        unsafe {
            let x = _mm512_broadcast_f64x4(_mm256_loadu_pd(x));
            let (low, high) = (mask as __mmask8, (mask >> 8) as __mmask8);
            let behind = values.add((mask & 0xff).count_ones() as usize);
            let (values, behind) = (
                _mm512_maskz_expand_pd(low, _mm512_loadu_pd(values)),
                _mm512_maskz_expand_pd(high, _mm512_loadu_pd(behind)),
            );
            self[0] = _mm512_mask3_fmadd_pd(values, x, self[0], low);
            self[1] = _mm512_mask3_fmadd_pd(behind, x, self[1], high);
        }
    }

    #[inline(always)]
    unsafe fn totals([a, b]: [Self; GROUPS]) -> [f64; SLAB] {
        // SAFETY: the caller's promise.
        unsafe {
            // The sums of places 0 + 2 and of places 1 + 3 of each row.
            let pairs = |[a, b]: Self| {
                let halves = (_mm512_shuffle_f64x2::<0x88>(a, b), _mm512_shuffle_f64x2::<0xdd>(a, b));
                _mm512_add_pd(halves.0, halves.1)
            };
            let (a, b) = (pairs(a), pairs(b));
            // Rows 0, 4, 1, 5, 2, 6, 3, 7.
            let sums = _mm512_add_pd(_mm512_unpacklo_pd(a, b), _mm512_unpackhi_pd(a, b));
            let order = _mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7);
            std::mem::transmute::<__m512d, [f64; SLAB]>(_mm512_permutexvar_pd(order, sums))
        }
    }
}

/// Computes the slabs from the start of an item up to slab `last`.
///
/// # Safety
/// [`super::uses_avx512`] is true for `C`, and x has all columns.
pub(super) unsafe fn item<C: Combo>(layout: &Quads<C::A>, start: Start, last: usize, opened: &Opened<'_, C>) {
    // SAFETY: the caller's promise.
    unsafe {
        match size_of::<C::Acc>() {
            4 => slabs::<C, __m512>(layout, start, last, opened),
            _ => slabs::<C, [__m512d; 2]>(layout, start, last, opened),
        }
    }
}

/// # Safety
/// As for [`item`]; the numbers of `P` are of the types of `C`.
#[target_feature(enable = "avx512f,avx512vl,avx512bw,avx512dq,avx2,fma,f16c,popcnt")]
unsafe fn slabs<C: Combo, P: Places>(
    layout: &Quads<C::A>,
    start: Start,
    last: usize,
    opened: &Opened<'_, C>,
) {
    assert!(size_of::<P::Number>() == size_of::<C::Acc>());
    let mut words = layout.words[start.word as usize..].as_ptr();
    let mut values = layout.values[start.value as usize..].as_ptr().cast::<P::Number>();
    // SAFETY: the layout has a word or two for each block and a value for each bit, and padding behind the
    // last one; four elements of x begin at each column.
    unsafe {
        for number in start.slab as usize..last {
            let slab = &layout.slabs[number];
            let x = opened.x.as_ptr().cast::<P::Number>().add(slab.base as usize);
            prefetch(x.wrapping_add(AHEAD.2));
            let mut groups = [P::zeros(); GROUPS];
            for (group, places) in groups.iter_mut().enumerate() {
                let mut sums = P::zeros();
                let blocks = slab.blocks(group);
                if slab.is_wide() {
                    for _ in 0..blocks {
                        let mask = words.read() >> 16;
                        sums.add(mask, values, x.add(words.add(1).read() as usize));
                        values = values.add(mask.count_ones() as usize);
                        words = words.add(2);
                    }
                } else {
                    for _ in 0..blocks {
                        prefetch(values.cast::<u8>().wrapping_add(AHEAD.0));
                        prefetch(words.cast::<u8>().wrapping_add(AHEAD.1));
                        let word = words.read();
                        sums.add(word >> 16, values, x.add((word & 0xffff) as usize));
                        values = values.add((word >> 16).count_ones() as usize);
                        words = words.add(1);
                    }
                }
                *places = sums;
            }
            let sums = P::totals(groups);
            // Both are eight numbers of one type.
            let sums = std::mem::transmute_copy::<[P::Number; SLAB], [C::Acc; SLAB]>(&sums);
            store(number, opened, layout.row_count, &sums);
        }
    }
}

const _: () = assert!(SIDE == 4 && GROUPS == 2);

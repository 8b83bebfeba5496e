//! The cut of rows into blocks for AVX-512.

use std::arch::x86_64::*;
use std::ops::Range;

use crate::format::quads::{self, AnyProcessor, Cut, SIDE};
use crate::matrix::compressed::Pattern;

/// The cut on a processor that has AVX-512 F and POPCNT.
pub(super) struct Avx512(());

impl Avx512 {
    /// `None` if the processor lacks these instructions.
    pub fn detect() -> Option<Self> {
        (is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("popcnt")).then_some(Avx512(()))
    }
}

impl Cut for Avx512 {
    #[inline(always)]
    fn cut(
        &self,
        pattern: &Pattern<'_, i64, i32>,
        rows: Range<usize>,
        mut block: impl FnMut(usize, u32, &[usize; SIDE], &[usize; SIDE]),
    ) {
        // SAFETY: the processor has the instructions.
        if !quads::ascends(pattern, rows.clone()) || !unsafe { ascending(pattern, rows.clone(), &mut block) }
        {
            AnyProcessor.cut(pattern, rows, block);
        }
    }
}

/// Cuts at most four rows, whose columns ascend strictly. Returns false, without a
/// call of `block`, if fewer than four entries of A follow one of the rows, so that four may not be loaded there.
///
/// # Safety
/// The processor has AVX-512 F and POPCNT.
#[target_feature(enable = "avx512f,popcnt")]
unsafe fn ascending(
    pattern: &Pattern<'_, i64, i32>,
    rows: Range<usize>,
    mut block: impl FnMut(usize, u32, &[usize; SIDE], &[usize; SIDE]),
) -> bool {
    let (mut at, mut end) = ([0; SIDE], [0; SIDE]);
    for (place, row) in rows.enumerate() {
        let range = pattern.range(row);
        (at[place], end[place]) = (range.start, range.end);
    }
    let (indices, base) = (pattern.indices, pattern.base as i32);
    if end.iter().any(|&end| end + SIDE > indices.len()) {
        return false;
    }
    let last = (pattern.minor - SIDE) as i64;
    let mut left: usize = (0..SIDE).map(|row| end[row] - at[row]).sum();
    // One lane for each of the next four entries of each row.
    let entry = _mm512_setr_epi32(0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3);
    let row_bits = _mm512_setr_epi32(0, 0, 0, 0, 4, 4, 4, 4, 8, 8, 8, 8, 12, 12, 12, 12);
    let mut left_of_row = {
        let of = |row: usize| (end[row] - at[row]) as i32;
        let four = _mm_setr_epi32(of(0), of(1), of(2), of(3));
        _mm512_permutexvar_epi32(_mm512_srli_epi32::<2>(row_bits), _mm512_castsi128_si512(four))
    };
    let one = _mm512_set1_epi32(1);
    while left > 0 {
        // SAFETY: no row has come further than its end, from which on there are four entries.
        let four = |row: usize| unsafe { _mm_loadu_si128(indices.as_ptr().add(at[row]).cast()) };
        let low = _mm256_inserti128_si256::<1>(_mm256_castsi128_si256(four(0)), four(1));
        let high = _mm256_inserti128_si256::<1>(_mm256_castsi128_si256(four(2)), four(3));
        let columns = _mm512_inserti64x4::<1>(_mm512_castsi256_si512(low), high);
        let next = |row: usize| if at[row] < end[row] { indices[at[row]] } else { i32::MAX };
        let least = next(0).min(next(1)).min(next(2).min(next(3)));
        let first = (i64::from(least) - i64::from(base)).min(last);
        let places = _mm512_sub_epi32(columns, _mm512_set1_epi32((first as i32).wrapping_add(base)));
        let exists = _mm512_cmpgt_epi32_mask(left_of_row, entry);
        let inside = _mm512_mask_cmplt_epu32_mask(exists, places, _mm512_set1_epi32(SIDE as i32));
        let bits = _mm512_maskz_sllv_epi32(inside, one, _mm512_add_epi32(places, row_bits));
        let mask = _mm512_reduce_or_epi32(bits) as u32;
        // The number of entries of each row in the block, in all lanes of the row.
        let taken = _mm512_maskz_mov_epi32(inside, one);
        let taken = _mm512_add_epi32(taken, _mm512_shuffle_epi32::<0b10_11_00_01>(taken));
        let taken = _mm512_add_epi32(taken, _mm512_shuffle_epi32::<0b01_00_11_10>(taken));
        left_of_row = _mm512_sub_epi32(left_of_row, taken);
        let inside = u32::from(inside);
        let counts: [usize; SIDE] =
            std::array::from_fn(|row| ((inside >> (SIDE * row)) & 0xf).count_ones() as usize);
        assert!(inside != 0, "A has a column that is not inside");
        block(first as usize, mask, &at, &counts);
        for row in 0..SIDE {
            at[row] += counts[row];
        }
        left -= inside.count_ones() as usize;
    }
    true
}

//! Sorting of the columns of a row by vector code: sorting networks of up to 64 columns (Batcher 1968,
//! "Sorting networks and their applications"), whose results are merged eight columns at a time (Inoue,
//! Moriyama, Komatsu, Nakatani 2007, "AA-sort"). There is no branch on a column but one for each eight of a
//! merge; the standard library's sort of columns in no order waits for mispredicted branches most of the
//! time.

use std::arch::x86_64::*;

/// Columns of a vector.
const LANES: usize = 8;
/// Vectors of the largest network.
const VECTORS: usize = 8;
/// Columns of the largest network.
const NETWORK: usize = LANES * VECTORS;

/// Returns the length of the spare memory that [`sort`] needs for `count` columns.
pub const fn spare(count: usize) -> usize {
    if count <= NETWORK {
        0
    } else {
        2 * count.next_multiple_of(NETWORK)
    }
}

/// Sorts columns, with at least [`spare`] elements of spare memory.
///
/// # Safety
/// The processor has AVX2.
#[target_feature(enable = "avx2")]
pub unsafe fn sort(columns: &mut [i32], spare: &mut [i32]) {
    match columns.len() {
        ..=8 => return sort_few::<1>(columns),
        9..=16 => return sort_few::<2>(columns),
        17..=32 => return sort_few::<4>(columns),
        33..=NETWORK => return sort_few::<8>(columns),
        _ => {}
    }
    let (count, whole) = (columns.len(), columns.len().next_multiple_of(NETWORK));
    let (mut from, mut to) = spare[..2 * whole].split_at_mut(whole);
    from[..count].copy_from_slice(columns);
    from[count..].fill(i32::MAX);
    for run in from.chunks_exact_mut(NETWORK) {
        sort_few::<VECTORS>(run);
    }
    let mut run = NETWORK;
    while run < whole {
        for (from, to) in from.chunks(2 * run).zip(to.chunks_mut(2 * run)) {
            match from.split_at_checked(run) {
                Some((left, right)) if !right.is_empty() => merge(left, right, to),
                _ => to.copy_from_slice(from),
            }
        }
        std::mem::swap(&mut from, &mut to);
        run *= 2;
    }
    columns.copy_from_slice(&from[..count]);
}

/// Sorts up to `8 · N` columns.
#[target_feature(enable = "avx2")]
fn sort_few<const N: usize>(columns: &mut [i32]) {
    assert!(columns.len() <= LANES * N);
    // Plain loops, since closures that are passed on may not be compiled into a function for AVX2.
    let lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    let (start, mut inside) = (columns.as_mut_ptr(), [lanes; N]);
    let mut vectors = [_mm256_set1_epi32(i32::MAX); N];
    for (at, (inside, vector)) in inside.iter_mut().zip(&mut vectors).enumerate() {
        let left = columns.len() as i32 - (LANES * at) as i32;
        *inside = _mm256_cmpgt_epi32(_mm256_set1_epi32(left), lanes);
        // SAFETY: the mask leaves out what is beyond the columns.
        let loaded = unsafe { _mm256_maskload_epi32(start.wrapping_add(LANES * at), *inside) };
        *vector = sort_eight(_mm256_blendv_epi8(*vector, loaded, *inside));
    }
    let mut run = 1;
    while run < N {
        for runs in vectors.chunks_exact_mut(2 * run) {
            merge_sorted(runs);
        }
        run *= 2;
    }
    for (at, (inside, vector)) in inside.into_iter().zip(vectors).enumerate() {
        // SAFETY: as above.
        unsafe { _mm256_maskstore_epi32(start.wrapping_add(LANES * at), inside, vector) };
    }
}

/// Compares each lane with the one that `$turned` puts in its place, and keeps the greater one in the lanes
/// of the mask, the smaller one in the others.
macro_rules! exchange {
    ($vector:expr, $turned:expr, $greater:literal) => {{
        let (vector, turned) = ($vector, $turned);
        _mm256_blend_epi32::<$greater>(_mm256_min_epi32(vector, turned), _mm256_max_epi32(vector, turned))
    }};
}

#[inline]
#[target_feature(enable = "avx2")]
fn swap_neighbours(vector: __m256i) -> __m256i {
    _mm256_shuffle_epi32::<0b10_11_00_01>(vector)
}

#[inline]
#[target_feature(enable = "avx2")]
fn reverse(vector: __m256i) -> __m256i {
    let halves = _mm256_shuffle_epi32::<0b00_01_10_11>(vector);
    _mm256_permute2x128_si256::<1>(halves, halves)
}

#[inline]
#[target_feature(enable = "avx2")]
fn sort_eight(vector: __m256i) -> __m256i {
    let pairs = exchange!(vector, swap_neighbours(vector), 0b1010_1010);
    let fours = exchange!(pairs, _mm256_shuffle_epi32::<0b00_01_10_11>(pairs), 0b1100_1100);
    let fours = exchange!(fours, swap_neighbours(fours), 0b1010_1010);
    let eight = exchange!(fours, reverse(fours), 0b1111_0000);
    let eight = exchange!(eight, _mm256_shuffle_epi32::<0b01_00_11_10>(eight), 0b1100_1100);
    exchange!(eight, swap_neighbours(eight), 0b1010_1010)
}

/// Sorts a bitonic vector, one that rises and then falls.
#[inline]
#[target_feature(enable = "avx2")]
fn sort_bitonic(vector: __m256i) -> __m256i {
    let vector = exchange!(vector, _mm256_permute2x128_si256::<1>(vector, vector), 0b1111_0000);
    let vector = exchange!(vector, _mm256_shuffle_epi32::<0b01_00_11_10>(vector), 0b1100_1100);
    exchange!(vector, swap_neighbours(vector), 0b1010_1010)
}

/// Sorts vectors whose first and second half are sorted.
#[inline]
#[target_feature(enable = "avx2")]
fn merge_sorted(vectors: &mut [__m256i]) {
    let count = vectors.len();
    for at in 0..count / 2 {
        let (low, high) = (vectors[at], reverse(vectors[count - 1 - at]));
        vectors[at] = _mm256_min_epi32(low, high);
        vectors[count - 1 - at] = reverse(_mm256_max_epi32(low, high));
    }
    let mut distance = count / 4;
    while distance > 0 {
        for at in 0..count {
            if at & distance != 0 {
                continue;
            }
            let (low, high) = (vectors[at], vectors[at + distance]);
            vectors[at] = _mm256_min_epi32(low, high);
            vectors[at + distance] = _mm256_max_epi32(low, high);
        }
        distance /= 2;
    }
    for vector in vectors {
        *vector = sort_bitonic(*vector);
    }
}

/// Merges two sorted runs, whose lengths are multiples of eight and not zero. A step writes the least eight
/// of sixteen columns, and then takes eight from the run whose next column is less.
#[target_feature(enable = "avx2")]
fn merge(left: &[i32], right: &[i32], to: &mut [i32]) {
    #[inline]
    #[target_feature(enable = "avx2")]
    fn load(columns: &[i32]) -> __m256i {
        // SAFETY: all eight columns are inside the slice.
        unsafe { _mm256_loadu_si256(columns[..LANES].as_ptr().cast()) }
    }
    let (mut next, mut rest) = (load(left), load(right));
    let (mut of_left, mut of_right) = (LANES, LANES);
    let steps = to.len() / LANES;
    for (step, to) in to.chunks_exact_mut(LANES).enumerate() {
        let turned = reverse(next);
        let low = sort_bitonic(_mm256_min_epi32(rest, turned));
        // SAFETY: a chunk has eight columns.
        unsafe { _mm256_storeu_si256(to.as_mut_ptr().cast(), low) };
        rest = sort_bitonic(_mm256_max_epi32(rest, turned));
        if step + 2 >= steps {
            // Both runs have ended, and nothing is less than the rest.
            next = _mm256_set1_epi32(i32::MAX);
            continue;
        }
        // Which run comes next cannot be predicted, so that the choice is not a branch.
        let head = |run: &[i32], at: usize| run.get(at).copied().unwrap_or(i32::MAX);
        let is_left =
            of_left < left.len() && (of_right == right.len() || head(left, of_left) <= head(right, of_right));
        let (from, at) = if is_left { (left, of_left) } else { (right, of_right) };
        next = load(&from[at..]);
        of_left += LANES * usize::from(is_left);
        of_right += LANES * usize::from(!is_left);
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::lanes;
    use super::*;

    #[test]
    fn columns_of_every_count_are_sorted() {
        if !lanes::has_avx2() {
            return;
        }
        let mut random = testkit::Random::new(5);
        for count in (0..=200).chain([255, 256, 257, 511, 640, 1000, 2048, 2049]) {
            for most in [2, 10 * count + 1, i32::MAX as usize] {
                let columns: Vec<i32> = (0..count).map(|_| random.below(most) as i32).collect();
                let (mut found, mut expected) = (columns.clone(), columns);
                let mut memory = vec![-1; spare(count)];
                // SAFETY: the processor has AVX2.
                unsafe { sort(&mut found, &mut memory) };
                expected.sort_unstable();
                assert_eq!(found, expected, "{count} columns below {most}");
            }
        }
    }
}

//! Fingerprints of 128 bits that tell patterns apart: two sums, modulo 2⁶⁴, of a hash of each word of the
//! index arrays with its position. Sums do not depend on the order in which they are formed, so that threads
//! of a CPU and of a GPU get the same result. A fingerprint tells one matrix of a program from another; it is
//! no defence against somebody who searches for two patterns with the same sums.

/// Fingerprint of a pattern: the two sums.
pub type Fingerprint = [u64; 2];

/// Odd multipliers without structure: 2⁶⁴ over the golden ratio, and a multiplier of Steele and Vigna
/// (Computationally easy, spectrally good multipliers, 2021). Two pairs of word and position may have the
/// same hash in one sum, never in both.
const STEPS: [u64; 2] = [0x9e37_79b9_7f4a_7c15, 0xd134_2543_de82_ef95];

/// Applies splitmix64's last steps (Steele, Lea, Flood: Fast splittable pseudorandom number generators,
/// 2014).
#[inline(always)]
pub fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Adds word `at` of array `array` (0 or 1) of a matrix, as kernels/analysis/fingerprint.cu does.
#[inline(always)]
pub fn add(sums: &mut Fingerprint, array: u64, at: u64, word: u64) {
    // Positions of the two arrays are the odd and the even numbers, so that they never coincide.
    let place = (2 * at + array).wrapping_add(1);
    for (sum, step) in sums.iter_mut().zip(STEPS) {
        *sum = sum.wrapping_add(mix(word.wrapping_add(place.wrapping_mul(step))));
    }
}

/// Returns the sums over two sets of words.
pub fn join(a: Fingerprint, b: Fingerprint) -> Fingerprint {
    [a[0].wrapping_add(b[0]), a[1].wrapping_add(b[1])]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(arrays: [&[u64]; 2]) -> Fingerprint {
        let mut sums = [0; 2];
        for (array, words) in arrays.into_iter().enumerate() {
            for (at, &word) in words.iter().enumerate() {
                add(&mut sums, array as u64, at as u64, word);
            }
        }
        sums
    }

    #[test]
    fn words_and_places_count() {
        let all = [
            of([&[0, 1, 2], &[0, 1]]),
            of([&[0, 1, 2], &[1, 0]]),
            of([&[0, 2, 1], &[0, 1]]),
            of([&[0, 1], &[2, 0, 1]]),
            of([&[0, 1, 2], &[0, 1, 0]]),
            of([&[0, 1, 2], &[0, u64::MAX]]),
            of([&[], &[]]),
        ];
        for (at, a) in all.iter().enumerate() {
            // Each half differs by itself, too.
            assert!(all[..at].iter().all(|b| a[0] != b[0] && a[1] != b[1]), "{all:x?}");
        }
    }

    #[test]
    fn parts_add_up() {
        let (mut first, mut second) = ([0; 2], [0; 2]);
        add(&mut first, 0, 0, 5);
        add(&mut second, 0, 1, 7);
        assert_eq!(join(second, first), of([&[5, 7], &[]]));
    }
}

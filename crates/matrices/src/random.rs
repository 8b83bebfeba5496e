//! The generator of pseudo-random numbers.

/// SplitMix64's step: the golden ratio, as an odd number of 64 bits.
const INCREMENT: u64 = 0x9e37_79b9_7f4a_7c15;

/// The generator SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators,
/// OOPSLA 2014, figure 17): equidistributed 64-bit values, any seed is good.
#[derive(Clone, Debug)]
pub struct SplitMix64 {
    state: u64,
}

impl SplitMix64 {
    /// A generator whose sequence is a function of `seed` alone.
    pub fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// Returns the generator in its state after `draws` more draws. Time O(1): the state is a counter.
    pub fn after(&self, draws: u64) -> Self {
        Self { state: self.state.wrapping_add(draws.wrapping_mul(INCREMENT)) }
    }

    /// Returns the next 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        // The variant-13 mixer of the paper.
        self.state = self.state.wrapping_add(INCREMENT);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns an integer in 0..`n` (0 for `n` = 0), with a bias below n / 2⁶⁴.
    pub fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.next_u64()) * u128::from(n)) >> 64) as u64
    }

    /// Returns (draw / 2¹⁶) mod `n`, with a bias below n / 2⁴⁸, the draw that defines the matrices of the
    /// comparison tables. 0 for `n` = 0.
    pub(crate) fn modulo(&mut self, n: usize) -> usize {
        (self.next_u64() >> 16).checked_rem(n as u64).unwrap_or(0) as usize
    }

    /// Returns a multiple of 2⁻⁵³, uniform in [0, 1).
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Returns a multiple of 2⁻⁵², uniform in [−1, 1): the value of a random entry.
    pub fn value(&mut self) -> f64 {
        2.0 * self.unit() - 1.0 // exact
    }
}

//! Random numbers that are the same on every machine.

use matrices::SplitMix64;

/// The gallery's generator, with the kinds of draws that tests need.
#[derive(Clone, Debug)]
pub struct Random(SplitMix64);

impl Random {
    /// Makes a generator whose sequence is a function of the seed alone.
    pub fn new(seed: u64) -> Self {
        Random(SplitMix64::new(seed))
    }

    /// Returns the next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Draws a number from 0 to n − 1; 0 if n is 0.
    pub fn below<N: Count>(&mut self, n: N) -> N {
        N::new(self.0.below(n.get()))
    }

    /// Draws a number in [−1, 1) with a full mantissa.
    pub fn real(&mut self) -> f64 {
        self.0.value()
    }

    /// Draws an integer from −4 to 4, so that sums of products are exact.
    pub fn integer(&mut self) -> f64 {
        self.below(9_u64) as f64 - 4.0
    }
}

/// Returns a generator of 31-bit numbers.
pub fn sequence(seed: u64) -> impl FnMut() -> usize {
    let mut random = Random::new(seed);
    move || random.below(1 << 31)
}

/// An integer type for counts; its values must not be negative.
pub trait Count {
    /// Converts a 64-bit count to this type.
    fn new(count: u64) -> Self;
    /// Converts the count to 64 bits.
    fn get(self) -> u64;
}

macro_rules! counts {
    ($($ty:ty)*) => { $(impl Count for $ty {
        fn new(count: u64) -> Self {
            count as $ty
        }
        fn get(self) -> u64 {
            self as u64
        }
    })* };
}
counts! { usize u64 i64 i32 }

//! Random numbers that are the same on every machine.

use matrices::SplitMix64;

/// The generator of the gallery with the draws that tests want.
#[derive(Clone, Debug)]
pub struct Random(SplitMix64);

impl Random {
    /// A generator whose sequence is a function of the seed alone.
    pub fn new(seed: u64) -> Self {
        Random(SplitMix64::new(seed))
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// From 0 to n − 1; 0 where n is 0.
    pub fn below<N: Count>(&mut self, n: N) -> N {
        N::new(self.0.below(n.get()))
    }

    /// In [−1, 1) with a full mantissa.
    pub fn real(&mut self) -> f64 {
        self.0.value()
    }

    /// An integer from −4 to 4, so that sums of products are exact.
    pub fn integer(&mut self) -> f64 {
        self.below(9_u64) as f64 - 4.0
    }
}

/// A sequence of numbers of 31 bits.
pub fn sequence(seed: u64) -> impl FnMut() -> usize {
    let mut random = Random::new(seed);
    move || random.below(1 << 31)
}

/// A type that counts something; not below 0.
pub trait Count {
    /// The integer type's value of a 64-bit count.
    fn new(count: u64) -> Self;
    /// The number.
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

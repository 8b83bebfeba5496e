//! The two value types of files: f64 and complex f64.

use client::Session;
use matrices::owned::Entry;
use matrices::SplitMix64;
use num_complex::Complex64;
use tarsia::facade::{Accumulator, ComputeType};

use super::rival::{self, Rival};
use crate::Result;

/// A value of the demo's matrices: f64 or complex f64.
pub trait Scalar: Accumulator + Entry {
    /// Compute type of products of this value type.
    const COMPUTE: ComputeType;
    /// Number of real operations of a multiplication and an addition.
    const FLOPS: f64;
    /// c of the tolerance c · (entries of the row) · eps · Σ|a·x|, eps = 2⁻⁵².
    ///
    /// Each of the two results is a sum of n products in some order, so it is
    /// off by at most n · u · Σ|a·x| with u = eps / 2 (to first order in u): one
    /// rounding of the product and n − 1 of additions. The two differ by at
    /// most n · eps · Σ|a·x|: c = 1. A complex product is off by √5 · u (Brent,
    /// Percival, Zimmermann: Error bounds on complex floating-point
    /// multiplication, Math. Comp. 76, 2007), so that the difference is at most
    /// (n + √5 − 1) · eps · Σ|a·x| ≤ 2 · n · eps · Σ|a·x| for n ≥ 2, and both
    /// results round a single product alike: c = 2.
    const LIMIT: f64;
    /// Draws a value with full mantissas: parts uniform in [−1, 1).
    fn random(rng: &mut SplitMix64) -> Self;
    /// Multiplies by a real number.
    fn times(self, factor: f64) -> Self;
    /// Opens the vendor's library with which products of this type are compared.
    fn rival(session: &Session) -> Result<Box<dyn Rival<Self> + '_>>;
}

impl Scalar for f64 {
    const COMPUTE: ComputeType = ComputeType::R64F;
    const FLOPS: f64 = 2.0;
    const LIMIT: f64 = 1.0;

    fn random(rng: &mut SplitMix64) -> Self {
        rng.value()
    }

    fn times(self, factor: f64) -> Self {
        self * factor
    }

    fn rival(session: &Session) -> Result<Box<dyn Rival<Self> + '_>> {
        rival::open(session)
    }
}

impl Scalar for Complex64 {
    const COMPUTE: ComputeType = ComputeType::C64F;
    const FLOPS: f64 = 8.0;
    const LIMIT: f64 = 2.0;

    fn random(rng: &mut SplitMix64) -> Self {
        let re = rng.value();
        Complex64::new(re, rng.value())
    }

    fn times(self, factor: f64) -> Self {
        self * factor
    }

    fn rival(_: &Session) -> Result<Box<dyn Rival<Self> + '_>> {
        Err("products of complex numbers are compared with no other library".into())
    }
}

//! alpha and beta, with the special treatment of zero.

use super::operand::Shared;
use super::schedule;
use crate::error::Result;
use crate::memory;
use crate::types::{Accumulator, Address, Storage};

/// The values of alpha and beta.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scalars<T> {
    alpha: T,
    beta: T,
}

/// Elements that one parallel task scales: a few microseconds of memory traffic, like an item of SpMV.
const SCALE_GRAIN: usize = 1 << 14;

impl<T: Accumulator> Scalars<T> {
    /// Reads both; the error names the one that is NULL.
    #[inline]
    pub fn read(alpha: Address, beta: Address) -> Result<Self> {
        // SAFETY: the caller of execute promises one scalar of the compute type at each address.
        let (alpha, beta) =
            unsafe { (memory::read_scalar("alpha", alpha)?, memory::read_scalar("beta", beta)?) };
        Ok(Scalars { alpha, beta })
    }

    /// Returns whether alpha is 0: then A and the input are not read, and may hold Inf and NaN.
    pub fn skip_product(&self) -> bool {
        self.alpha == T::ZERO
    }

    /// Returns whether beta is 0: then the old values are not read, and may hold Inf and NaN.
    pub fn skip_old(&self) -> bool {
        self.beta == T::ZERO
    }

    /// Returns alpha.
    #[inline(always)]
    pub fn alpha(&self) -> T {
        self.alpha
    }

    /// Computes out = alpha · sum + beta · out, rounded once. If beta is 0 it does not read `out`, which may
    /// hold NaN.
    #[inline(always)]
    pub fn store<Y: Storage<T>>(&self, sum: T, out: &mut Y) {
        let product = self.alpha * sum;
        *out = Y::round(if self.beta == T::ZERO { product } else { product + self.beta * out.widen() });
    }

    /// Computes out = beta · out for `outer` runs of `inner` elements that start `ld` elements apart;
    /// elements between the runs are not accessed.
    pub fn scale<Y: Storage<T>>(&self, parallel: bool, out: &mut [Y], outer: usize, inner: usize, ld: usize) {
        let pieces = inner.div_ceil(SCALE_GRAIN);
        let out = Shared::new(out);
        schedule::for_each(parallel, outer * pieces, |piece| {
            let (run, first) = (piece / pieces, piece % pieces * SCALE_GRAIN);
            let last = inner.min(first + SCALE_GRAIN);
            // SAFETY: pieces are disjoint, since `inner` is at most `ld` if there are several runs, and `out`
            // is borrowed until they are done.
            for value in unsafe { out.part(run * ld + first..run * ld + last) } {
                *value = Y::round(if self.beta == T::ZERO { T::ZERO } else { self.beta * value.widen() });
            }
        });
    }
}

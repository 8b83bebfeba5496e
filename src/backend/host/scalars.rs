//! alpha and beta, and what their zeros mean.

use super::operand::Shared;
use super::schedule;
use crate::error::Result;
use crate::memory;
use crate::types::{Accumulator, Address, Storage};

/// alpha and beta.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scalars<T> {
    alpha: T,
    beta: T,
}

/// Elements that one parallel task scales: a few microseconds of memory
/// traffic, as an item of SpMV.
const SCALE_GRAIN: usize = 1 << 14;

impl<T: Accumulator> Scalars<T> {
    /// Reads both; the error says which is NULL.
    pub fn read(alpha: Address, beta: Address) -> Result<Self> {
        // SAFETY: the caller of execute promises one scalar of the compute
        // type at each address.
        let (alpha, beta) =
            unsafe { (memory::read_scalar("alpha", alpha)?, memory::read_scalar("beta", beta)?) };
        Ok(Scalars { alpha, beta })
    }

    /// alpha is 0: A and the input are not read, they may hold Inf and NaN.
    pub fn skip_product(&self) -> bool {
        self.alpha == T::ZERO
    }

    /// beta is 0: the old values are not read, they may hold Inf and NaN.
    pub fn skip_old(&self) -> bool {
        self.beta == T::ZERO
    }

    /// out = alpha · sum + beta · out, rounded once. beta = 0 does not read
    /// `out`, which may hold NaN.
    #[inline(always)]
    pub fn store<Y: Storage<T>>(&self, sum: T, out: &mut Y) {
        let product = self.alpha * sum;
        *out = Y::round(if self.beta == T::ZERO { product } else { product + self.beta * out.widen() });
    }

    /// out = beta · out for `outer` runs of `inner` elements that start `ld`
    /// elements apart; what lies between the runs is not touched.
    pub fn scale<Y: Storage<T>>(&self, parallel: bool, out: &mut [Y], outer: usize, inner: usize, ld: usize) {
        let pieces = inner.div_ceil(SCALE_GRAIN);
        let out = Shared::new(out);
        schedule::for_each(parallel, outer * pieces, |piece| {
            let (run, first) = (piece / pieces, piece % pieces * SCALE_GRAIN);
            let last = inner.min(first + SCALE_GRAIN);
            // SAFETY: pieces are disjoint, since `inner` is at most `ld` where
            // there are several runs, and `out` is borrowed until they are done.
            for value in unsafe { out.part(run * ld + first..run * ld + last) } {
                *value = Y::round(if self.beta == T::ZERO { T::ZERO } else { self.beta * value.widen() });
            }
        });
    }
}

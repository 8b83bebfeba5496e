//! Blocks of columns for AVX-512: vectors are whole cache lines of B where its rows begin behind one, and the first and
//! the last vector of a row have masks for the lanes that are not the row's.
//!
//! Arrays of the C library mostly begin 16 bytes behind a line. Vectors that begin where rows do then lie on two lines
//! each, and a core reads two lines for each of them: with 128 columns, whose vectors are nearly all whole lines here,
//! products took 1.2 times as long in the mean, and some twice as long (docs/algorithms/host.md, "Rows beside cache lines").

use super::blocks::Block;
use super::RowProduct;
use crate::backend::host::schedule::Work;
use crate::backend::host::vector::{Vector, Ymm, Zmm};
use crate::types::{Accumulator, Storage};

/// Most vectors of a row of C that have two chains of sums: with one chain they would wait for it, and with four chains
/// short rows took longer.
const MOST_OF_TWO_CHAINS: usize = 2;

impl<A: Storage<T>, X: Storage<T>, T: Accumulator> RowProduct<'_, A, X, T> {
    /// Computes an item, one block of columns after the other: blocks of 16, 8, 4, 3, 2 or 1 vectors, the widest that
    /// fits first, and 17, 9 or 5 where so many are left, since a row takes one more where it begins behind a line. Half a
    /// vector is a register of AVX2. The order of an element's sum depends on the number of columns alone (of those of
    /// the panel, where B is copied), and not on where B begins.
    ///
    /// # Safety
    /// The processor has AVX-512, B has the type of the sums, and rows of B and C are contiguous.
    #[inline(always)]
    pub(super) unsafe fn sweep_lines(&self, work: &Work) {
        let (lanes, n) = (Zmm::<T>::LANES, self.columns.len());
        let vectors = n.div_ceil(lanes);
        // SAFETY: the caller's promise.
        unsafe {
            if n == Ymm::<T>::LANES {
                self.whole::<Ymm<T>, 1, 2>(work, self.columns.start, 1);
            } else if vectors <= MOST_OF_TWO_CHAINS {
                self.sweep_masked::<2>(work);
            } else {
                self.sweep_masked::<1>(work);
            }
        }
    }

    /// Computes an item with so many chains of sums.
    ///
    /// # Safety
    /// The requirements of [`Self::sweep_lines`].
    #[inline(always)]
    unsafe fn sweep_masked<const CHAINS: usize>(&self, work: &Work) {
        let lanes = Zmm::<T>::LANES;
        let mut first = self.columns.start;
        while first < self.columns.end {
            let skipped = if first == self.columns.start { self.skipped } else { 0 };
            let (columns, whole) =
                (self.columns.end - first, self.skipped == 0 && (self.columns.end - first) % lanes == 0);
            let vectors = (skipped + columns).div_ceil(lanes);
            // SAFETY: the caller's promise.
            unsafe {
                first += match (vectors, CHAINS) {
                    (1, 2) if whole => self.whole::<Zmm<T>, 1, CHAINS>(work, first, 1),
                    (2, 2) if whole => self.whole::<Zmm<T>, 2, CHAINS>(work, first, 1),
                    (4, 1) if whole => self.whole::<Zmm<T>, 4, CHAINS>(work, first, 1),
                    (8, 1) if whole => self.whole::<Zmm<T>, 8, CHAINS>(work, first, 1),
                    (16 | 18.., 1) if whole => self.whole::<Zmm<T>, 16, CHAINS>(work, first, 1),
                    (1, _) => self.masked::<1, CHAINS>(work, first, skipped),
                    (2, _) => self.masked::<2, CHAINS>(work, first, skipped),
                    (3, _) => self.masked::<3, CHAINS>(work, first, skipped),
                    (5, _) => self.masked::<5, 1>(work, first, skipped),
                    (4..8, _) => self.masked::<4, 1>(work, first, skipped),
                    (9, _) => self.masked::<9, 1>(work, first, skipped),
                    (8..16, _) => self.masked::<8, 1>(work, first, skipped),
                    (17, _) => self.masked::<17, 1>(work, first, skipped),
                    _ => self.masked::<16, 1>(work, first, skipped),
                };
            }
        }
    }

    /// Computes a block of at most so many vectors whose first and last one have masks, and returns the number of its
    /// columns.
    ///
    /// # Safety
    /// The requirements of [`Self::sweep_lines`].
    #[inline(always)]
    unsafe fn masked<const VECTORS: usize, const CHAINS: usize>(
        &self,
        work: &Work,
        first: usize,
        skipped: usize,
    ) -> usize {
        let columns = (VECTORS * Zmm::<T>::LANES - skipped).min(self.columns.end - first);
        let block = Block { first, columns, skipped, blocks: 1 };
        // SAFETY: the caller's promise.
        unsafe { self.compiled::<Zmm<T>, VECTORS, CHAINS, true>(work, block) };
        columns
    }
}

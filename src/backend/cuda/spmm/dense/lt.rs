//! Products by cublasLt: a cache of the algorithms found for them, and the rules when cublasLt is given a
//! copy of B or writes to the workspace.

use std::sync::Arc;

use parking_lot::Mutex;

use super::super::Strides;
use super::packs::{padded, Packs};
use crate::backend::cuda::cublaslt::{CublasLt, Matmul, Sizes};
use crate::backend::cuda::device::Device;
use crate::error::Result;
use crate::problem::SpmmProblem;
use crate::select::spmm::dense as select;
use crate::types::{DataType, Order};

/// Number of products (with different sizes or alignments of B and C) whose algorithm is remembered.
const REMEMBERED: usize = 64;

/// Sizes of products and the algorithms found for them, the latest last; `None` where cublasLt has no algorithm.
type Known = Vec<(Sizes, Option<Arc<Matmul>>)>;

/// Multiplier that uses cublasLt.
pub(super) struct Lt {
    library: Arc<CublasLt>,
    known: Mutex<Known>,
    /// Rank of the algorithm that is taken from the heuristic's list.
    rank: usize,
    /// Kernels that copy B, if any product needs a copy.
    packs: Option<Packs>,
    /// Reasons for which B is copied.
    copied: Copied,
}

/// Reasons for which cublasLt multiplies a copy of B.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Copied {
    /// True if the n columns of B and of the products are padded to whole packs, where rows end inside a pack.
    pub pads_n: bool,
    /// True if the k rows of B are padded with rows of zeros to whole packs ([`select::pads_k`]).
    pub pads_k: bool,
}

impl Copied {
    fn is_any(self) -> bool {
        self.pads_n || self.pads_k
    }
}

impl Lt {
    /// Makes a multiplier that copies a B of this type for the reasons in `copied`.
    pub(super) fn new(
        device: &Device,
        library: Arc<CublasLt>,
        value_type: DataType,
        copied: Copied,
    ) -> Result<Self> {
        let packs = if copied.is_any() { Some(Packs::load(device, value_type)?) } else { None };
        Ok(Lt { library, known: Mutex::default(), rank: 0, packs, copied })
    }

    /// Makes the multiplier for a problem: with copies of B where k is not a number of whole packs, or where
    /// n is not and the product is large enough for a copy to pay.
    pub(super) fn load(
        device: &Device,
        library: Arc<CublasLt>,
        problem: &SpmmProblem,
        work: usize,
    ) -> Result<Self> {
        let n = problem.n_hint.max(0) as usize;
        let copied = Copied {
            pads_n: Self::may_pad_n(problem, n) && select::copies_pay(problem.types, work),
            pads_k: Self::pads_k(problem),
        };
        Self::new(device, library, problem.types.x, copied)
    }

    /// Returns whether k is padded: products then have a larger k than op(A) has columns.
    pub(super) fn pads_k(problem: &SpmmProblem) -> bool {
        select::pads_k(problem.types, problem.a.shape_of(problem.op).1 as usize)
    }

    /// Returns whether n may have to be padded: rows of B and C are contiguous but end inside a pack.
    pub(super) fn may_pad_n(problem: &SpmmProblem, n: usize) -> bool {
        let by_rows = Strides::new(problem.b_order, problem.op_b.transposes(), 0).col == 1
            && problem.c_order == Order::Row;
        by_rows && select::ends_inside_pack(problem.types, n)
    }

    /// Returns the kernels that copy B, if it is copied for a product with so many columns.
    pub(super) fn copies(&self, problem: &SpmmProblem, n: usize) -> Option<&Packs> {
        self.packs.as_ref().filter(|_| self.copied.pads_k || self.pads_n(problem, n))
    }

    /// Returns whether the columns of B and of the products are padded to whole packs, for `n` columns.
    pub(super) fn pads_n(&self, problem: &SpmmProblem, n: usize) -> bool {
        self.copied.pads_n && Self::may_pad_n(problem, n)
    }

    /// Returns the k of the product, padding included, for an op(A) with `k` columns.
    pub(super) fn padded_k(&self, k: usize, size: usize) -> usize {
        if self.copied.pads_k {
            padded(k, size)
        } else {
            k
        }
    }

    /// Returns the number of products with an algorithm, and the rank for other products.
    #[cfg(test)]
    pub(super) fn tuned(&self) -> (usize, usize) {
        (self.known.lock().len(), self.rank)
    }

    /// Returns the product of these sizes, from the cache or from cublasLt's heuristic, which is work of the
    /// host alone.
    pub(super) fn matmul(&self, sizes: &Sizes) -> Option<Arc<Matmul>> {
        let mut known = self.known.lock();
        if let Some((_, found)) = known.iter().find(|(other, _)| other == sizes) {
            return found.clone();
        }
        let found = Matmul::new(&self.library, sizes, self.rank).ok().map(Arc::new);
        if known.len() == REMEMBERED {
            known.remove(0);
        }
        known.push((*sizes, found.clone()));
        found
    }
}

/// Search for the fastest of the heuristic's algorithms: an executor is timed with one rank after the other.
#[derive(Default)]
pub(super) struct Trial {
    next: usize,
    best: Option<(f64, Known)>,
}

impl Trial {
    /// Sets the next rank in `lt`. Returns false when all ranks have been timed; then products of the timed
    /// sizes keep the fastest algorithm.
    pub(super) fn next(&mut self, lt: &mut Lt) -> bool {
        let known = lt.known.get_mut();
        known.clear();
        if self.next < select::LT_CANDIDATES {
            lt.rank = self.next;
            self.next += 1;
            return true;
        }
        lt.rank = 0;
        if let Some((_, best)) = self.best.take() {
            *known = best;
        }
        false
    }

    /// Records the time that the last rank took.
    pub(super) fn took(&mut self, lt: &mut Lt, seconds: f64) {
        if self.best.as_ref().is_none_or(|(least, _)| seconds < *least) {
            self.best = Some((seconds, std::mem::take(lt.known.get_mut())));
        }
    }
}

//! Products of cublasLt with the algorithms that were found for them, and when it is given
//! copies of B or writes to the workspace.

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

/// Products with other sizes or alignments of B and C whose algorithm is remembered.
const REMEMBERED: usize = 64;

/// Products with their algorithms, the latest last; `None`: cublasLt has none.
type Known = Vec<(Sizes, Option<Arc<Matmul>>)>;

/// Products by cublasLt.
pub(super) struct Lt {
    library: Arc<CublasLt>,
    known: Mutex<Known>,
    /// Which of the heuristic's algorithms is taken.
    rank: usize,
    /// Who copies B.
    packs: Option<Packs>,
    /// Why it does.
    copied: Copied,
}

/// Why cublasLt multiplies a copy of B.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Copied {
    /// Its rows are filled up to whole packs, and so are those of the products, where they begin anywhere.
    pub widened: bool,
    /// Rows of zeros make their number one of whole packs ([`select::pads_k`]).
    pub deepened: bool,
}

impl Copied {
    fn is_any(self) -> bool {
        self.widened || self.deepened
    }
}

impl Lt {
    /// With copies of a B of these values, where there is a reason.
    pub(super) fn new(
        device: &Device,
        library: Arc<CublasLt>,
        value_type: DataType,
        copied: Copied,
    ) -> Result<Self> {
        let packs = if copied.is_any() { Some(Packs::load(device, value_type)?) } else { None };
        Ok(Lt { library, known: Mutex::default(), rank: 0, packs, copied })
    }

    /// For the problem: with copies where k is none of whole packs, or n is crooked enough.
    pub(super) fn load(
        device: &Device,
        library: Arc<CublasLt>,
        problem: &SpmmProblem,
        work: usize,
    ) -> Result<Self> {
        let n = problem.n_hint.max(0) as usize;
        let copied = Copied {
            widened: Self::may_widen(problem, n) && select::copies_pay(problem.types, work),
            deepened: Self::deepens(problem),
        };
        Self::new(device, library, problem.types.x, copied)
    }

    /// Whether products have more of k than op(A) has columns.
    pub(super) fn deepens(problem: &SpmmProblem) -> bool {
        select::pads_k(problem.types, problem.a.shape_of(problem.op).1 as usize)
    }

    /// Rows of B and C are contiguous, and not of whole packs.
    pub(super) fn may_widen(problem: &SpmmProblem, n: usize) -> bool {
        let by_rows = Strides::new(problem.b_order, problem.op_b.transposes(), 0).col == 1
            && problem.c_order == Order::Row;
        by_rows && select::ends_inside_pack(problem.types, n)
    }

    /// Where B is copied for a product with so many columns: who does it.
    pub(super) fn copies(&self, problem: &SpmmProblem, n: usize) -> Option<&Packs> {
        self.packs.as_ref().filter(|_| self.copied.deepened || self.widens(problem, n))
    }

    /// Whether rows of B and of the products are filled up to whole packs, for so many columns.
    pub(super) fn widens(&self, problem: &SpmmProblem, n: usize) -> bool {
        self.copied.widened && Self::may_widen(problem, n)
    }

    /// Columns of A, and rows of the copy of B, that it multiplies, where op(A) has `k`.
    pub(super) fn depth(&self, k: usize, size: usize) -> usize {
        if self.copied.deepened {
            padded(k, size)
        } else {
            k
        }
    }

    /// Products with an algorithm, and the rank for others.
    #[cfg(test)]
    pub(super) fn tuned(&self) -> (usize, usize) {
        (self.known.lock().len(), self.rank)
    }

    /// Found before, or asked for now, which is work of the host.
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

/// The algorithms of the products that an executor was timed with, one rank after the other.
#[derive(Default)]
pub(super) struct Trial {
    next: usize,
    best: Option<(f64, Known)>,
}

impl Trial {
    /// Has `lt` take the next rank; `false`: all had their turn, and products of these sizes keep
    /// what was fastest.
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

    /// What the last rank took.
    pub(super) fn took(&mut self, lt: &mut Lt, seconds: f64) {
        if self.best.as_ref().is_none_or(|(least, _)| seconds < *least) {
            self.best = Some((seconds, std::mem::take(lt.known.get_mut())));
        }
    }
}

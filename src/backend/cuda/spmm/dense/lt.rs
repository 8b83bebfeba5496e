//! Products of cublasLt with the algorithms that were found for them, and when it is given
//! copies of B and writes to the workspace.

use std::sync::Arc;

use parking_lot::Mutex;

use super::super::Strides;
use super::packs::Packs;
use crate::backend::cuda::cublaslt::{CublasLt, Matmul, Sizes};
use crate::backend::cuda::device::Device;
use crate::error::Result;
use crate::problem::SpmmProblem;
use crate::select::spmm::dense as select;
use crate::types::Order;

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
    /// Where rows of B and C begin anywhere it multiplies copies in whole packs.
    packs: Option<Packs>,
}

impl Lt {
    pub(super) fn new(library: Arc<CublasLt>, packs: Option<Packs>) -> Self {
        Lt { library, known: Mutex::default(), rank: 0, packs }
    }

    /// For the problem: where its n is crooked enough, with copies.
    pub(super) fn load(
        device: &Device,
        library: Arc<CublasLt>,
        problem: &SpmmProblem,
        work: usize,
    ) -> Result<Self> {
        let n = problem.n_hint.max(0) as usize;
        let copies = Self::may_copy(problem, n) && select::copies_pay(problem.types, work);
        Ok(Self::new(library, if copies { Some(Packs::load(device, problem.types.x)?) } else { None }))
    }

    /// Rows of B and C are contiguous, and not of whole packs.
    pub(super) fn may_copy(problem: &SpmmProblem, n: usize) -> bool {
        let by_rows = Strides::new(problem.b_order, problem.op_b.transposes(), 0).col == 1
            && problem.c_order == Order::Row;
        by_rows && select::ends_inside_pack(problem.types, n)
    }

    /// Where B and the products of so many columns are copied: who does it.
    pub(super) fn copies(&self, problem: &SpmmProblem, n: usize) -> Option<&Packs> {
        self.packs.as_ref().filter(|_| Self::may_copy(problem, n))
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

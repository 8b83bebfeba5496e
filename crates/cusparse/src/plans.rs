//! Plans of matrices that the program has preprocessed: by `cusparseSpMV_preprocess` and
//! `cusparseSpMM_preprocess` it promises that the pattern stays as it is.
//!
//! A plan is made at the second product after the preprocess, since there are programs that preprocess a
//! descriptor for one product, or none (hypre). It is kept by the address of the matrix's descriptor, and goes
//! with the descriptor, or when the program gives it other arrays. It serves the product that it was made for, on
//! the handle that the matrix was preprocessed with; any other product with the matrix is as without it. The
//! values are read in place, unless `TARSIA_CUSPARSE_VALUES` says that they stay, too.
//!
//! This rests on seeing the end of each descriptor. `cusparseDestroySpMat` that comes another way (by `dlsym` in
//! cuSPARSE's own handle) is only safe in a program whose other calls do as well.

use std::collections::BTreeMap;
use std::ffi::c_int;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tarsia::facade::direct::{Product, Spmm, SpmmProblem, Spmv, SpmvProblem};

use crate::arguments::Object;
use crate::functions::Operation;
use crate::handles;

/// Plan for the products of an operation with a matrix.
pub enum Plan {
    Spmv(Product<Spmv>),
    Spmm(Product<Spmm>),
}

impl Plan {
    /// Returns whether the plan is one of this SpMV.
    pub fn serves_spmv(&self, problem: &SpmvProblem) -> bool {
        matches!(self, Plan::Spmv(product) if product.is_of(problem))
    }

    /// Returns whether the plan is one of this SpMM.
    pub fn serves_spmm(&self, problem: &SpmmProblem) -> bool {
        let dense = |p: &SpmmProblem| (p.op_b, p.b_order, p.c_order, p.n_hint);
        matches!(self, Plan::Spmm(product) if product.is_of(problem) && dense(product.problem()) == dense(problem))
    }
}

/// The products that the program's calls have in common with a preprocess: the matrix's descriptor, the
/// operation, the handle, in whose workspace they run, and cuSPARSE's number of the algorithm.
#[derive(Clone, Copy)]
pub struct Key {
    pub matrix: Object,
    pub of: Operation,
    pub handle: Object,
    pub algorithm: c_int,
}

impl Key {
    /// Returns the address of the descriptor, or of a plan of `cusparseSpMVOp`, and whether the plan is SpMM's.
    fn place(&self) -> (usize, bool) {
        (self.matrix.addr(), self.of == Operation::Spmm)
    }

    fn caller(&self) -> (usize, c_int) {
        (self.handle.addr(), self.algorithm)
    }
}

/// What there is for the products with a matrix that was preprocessed.
enum State {
    /// No plan yet, and none before the second product.
    Promised {
        products: u32,
    },
    Made(Arc<Plan>),
    /// No plan: it could not be made, or the program has preprocessed the matrix again. The pattern may have
    /// changed between the two, and a program that does so again and again would get an analysis each time.
    Never,
}

/// Way in which a product of a preprocessed matrix is computed.
pub enum Next {
    /// Use this plan.
    Use(Arc<Plan>),
    /// Make a plan, and keep it.
    Make,
    /// Do without a plan.
    Without,
}

/// Descriptors that were preprocessed, with the handle and algorithm of the call.
type Promises = BTreeMap<(usize, bool), ((usize, c_int), State)>;

static PROMISES: Mutex<Promises> = Mutex::new(BTreeMap::new());

fn promises() -> MutexGuard<'static, Promises> {
    PROMISES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Notes a preprocess of a matrix that cuSPARSE has carried out, and returns whether it is the first one. An earlier one's plan has
/// [expired](expire).
pub fn promise(key: &Key) -> bool {
    let mut promises = promises();
    let is_first = !promises.contains_key(&key.place());
    promises.entry(key.place()).or_insert((key.caller(), State::Promised { products: 0 }));
    is_first
}

fn set(key: &Key, state: State) {
    let earlier = promises().insert(key.place(), (key.caller(), state));
    end(earlier.map(|(_, state)| state));
}

/// Drops states that are no longer in the map, whose lock must not be held: the memory of their plans is freed.
fn end(states: impl IntoIterator<Item = State>) {
    for state in states {
        if matches!(state, State::Made(_)) {
            handles::note_release();
        }
        drop(state);
    }
}

/// Drops the plan of an earlier preprocess of a matrix for an operation.
pub fn expire(matrix: Object, of: Operation) {
    if !handles::is_child() {
        let mut promises = promises();
        let known = promises.get_mut(&(matrix.addr(), of == Operation::Spmm));
        let earlier = known.map(|(_, state)| std::mem::replace(state, State::Never));
        drop(promises);
        end(earlier);
    }
}

/// Returns what a product with a preprocessed matrix is to do.
pub fn next(key: &Key) -> Next {
    match promises().get_mut(&key.place()) {
        Some((caller, state)) if *caller == key.caller() => match state {
            State::Made(plan) => Next::Use(Arc::clone(plan)),
            State::Promised { products: 1 } => Next::Make,
            State::Promised { products } => {
                *products += 1;
                Next::Without
            }
            State::Never => Next::Without,
        },
        _ => Next::Without,
    }
}

/// Keeps the plan that a product has made, or notes that none can be made.
pub fn keep(key: &Key, plan: Option<Arc<Plan>>) {
    set(key, plan.map_or(State::Never, State::Made));
}

/// Drops the plans of a matrix that the program destroys, or gives other arrays.
pub fn forget(matrix: Object) {
    if !handles::is_child() {
        for is_spmm in [false, true] {
            let gone = promises().remove(&(matrix.addr(), is_spmm));
            end(gone.map(|(_, state)| state));
        }
    }
}

/// Drops the plans that were made with a handle that the program destroys: another handle may get its address.
pub fn forget_handle(handle: Object) {
    if !handles::is_child() {
        let mut gone = Vec::new();
        promises().retain(|_, ((of, _), state)| {
            let is_kept = *of != handle.addr();
            if !is_kept {
                gone.push(std::mem::replace(state, State::Never));
            }
            is_kept
        });
        end(gone);
    }
}

/// Returns whether there are no plans or promises, and no thread changes them.
pub fn are_none() -> bool {
    PROMISES.try_lock().is_ok_and(|promises| promises.is_empty())
}

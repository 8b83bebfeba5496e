//! State that the drop-in keeps for cuSPARSE's handles and for preprocessed matrices, by their addresses,
//! which are all that identifies them.
//!
//! Neither pointers to arrays nor values are kept. Shapes only say which buffers are large enough.
//!
//! If an object is destroyed where the drop-in does not see it, its state passes to the next object at the
//! same address. A stale mark of a preprocessed matrix costs speed at most: SpMM is forwarded, SpMV is
//! forwarded or runs without its buffer. The state of a stale handle belongs to the old handle's context,
//! and products are forwarded where another context is current. Its shapes are stale, too: a buffer whose
//! size the program has not asked for with the new handle may be taken as large enough, and be too small.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Once, PoisonError, RwLock};

use tarsia::facade::direct::Direct;
use tarsia::facade::Address;

use crate::arguments::Object;
use crate::decision::Outcome;
use crate::messages;
use crate::plans;
use crate::rules::Shape;
use crate::settings::settings;
use crate::spgemm;
use crate::spmvop;
use crate::testing;

/// Greatest number of shapes that are remembered for a handle. Before more are added, all are forgotten;
/// products without a remembered shape run without the program's buffer, or are forwarded if they need one.
const MOST_SHAPES: usize = 1024;

/// State that the drop-in keeps for one of cuSPARSE's handles.
pub struct HandleState {
    /// Tarsia's products on the handle's device; `None` if Tarsia cannot use the device.
    direct: Option<Direct>,
    /// Shapes for which a `bufferSize` function has answered, with this handle, at least what Tarsia needs.
    /// The buffer of any other shape may be too small, even if a larger one is among these: the program may
    /// have asked for fewer columns.
    sized_shapes: RwLock<HashSet<Shape>>,
    /// True once a `bufferSize` function could not tell what Tarsia needs for a product that may still be
    /// taken later. From then on no product with this handle uses the program's buffer.
    size_unknown: AtomicBool,
}

/// States of all handles that calls have come with, by the handles' addresses.
static HANDLES: RwLock<BTreeMap<usize, Arc<HandleState>>> = RwLock::new(BTreeMap::new());

/// Addresses of sparse matrices that the program has preprocessed: cuSPARSE has stored data in a buffer,
/// which must not be overwritten as long as the matrix lives.
static PREPROCESSED: Mutex<BTreeSet<usize>> = Mutex::new(BTreeSet::new());
/// Number of preprocessed matrices, so that a process without any takes no lock.
static PREPROCESSED_COUNT: AtomicUsize = AtomicUsize::new(0);

/// True in a child that `fork` has made of a process with handles, or during a call of another thread: CUDA does
/// not work in it, and that thread may have held a lock, which is never released in the child.
static IS_CHILD: AtomicBool = AtomicBool::new(false);

/// Number of threads that are inside of an intercepted call. Its orderings make a thread that has a lock one that is
/// counted, in whatever order its processor writes: a child of `fork` sees the memory as it is at one moment.
static INSIDE: AtomicUsize = AtomicUsize::new(0);

/// True once memory of a plan was released that work may still use.
static RELEASES_PENDING: AtomicBool = AtomicBool::new(false);

/// Guard of a call, outside of which a thread neither holds a lock of this library nor initializes anything.
pub struct Inside(());

impl Inside {
    /// Begins a call, which ends when the guard is dropped.
    pub fn enter() -> Self {
        INSIDE.fetch_add(1, Ordering::SeqCst);
        Inside(())
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        INSIDE.fetch_sub(1, Ordering::Release);
    }
}

impl HandleState {
    fn new() -> Self {
        let direct = match Direct::open(settings().on_host) {
            Ok(direct) => Some(direct),
            Err(error) => {
                static TOLD: Once = Once::new();
                TOLD.call_once(|| {
                    let reason = error.message.trim_start_matches("backend: ");
                    messages::line(&format!("calls are forwarded to cuSPARSE: {reason}"));
                });
                None
            }
        };
        HandleState { direct, sized_shapes: RwLock::default(), size_unknown: AtomicBool::new(false) }
    }

    /// Notes that `bufferSize` answered at least what Tarsia needs for a product of this shape.
    pub fn note_sized(&self, shape: &Shape) {
        let mut shapes = self.sized_shapes.write().unwrap_or_else(PoisonError::into_inner);
        if shapes.len() >= MOST_SHAPES {
            shapes.clear();
        }
        shapes.insert(*shape);
    }

    /// Notes that `bufferSize` could not answer what Tarsia needs for a product that may be taken later.
    pub fn note_size_unknown(&self) {
        self.size_unknown.store(true, Ordering::Relaxed);
    }

    /// Returns whether a buffer that the program made for a product of this shape is large enough for Tarsia.
    pub fn is_sized(&self, shape: &Shape) -> bool {
        if self.size_unknown.load(Ordering::Relaxed) {
            return false;
        }
        self.sized_shapes.read().unwrap_or_else(PoisonError::into_inner).contains(shape)
    }

    /// Returns Tarsia's products on the handle's device; fails if the device cannot be used or the calling
    /// thread's current context is another one.
    pub fn direct(&self) -> Result<&Direct, Outcome> {
        let direct = self.direct.as_ref().ok_or(Outcome::NoDevice)?;
        match direct.is_current() {
            true => Ok(direct),
            false => Err(Outcome::OtherContext),
        }
    }

    /// Returns whether the stream is being captured into a graph, as far as that can be told.
    pub fn is_capturing(&self, stream: Address) -> Result<bool, Outcome> {
        let direct = self.direct()?;
        Ok(testing::is_captured(stream) || direct.is_capturing(stream).unwrap_or(true))
    }

    /// Returns Tarsia's products, ready to enqueue work on `stream`. The first call allocates memory and
    /// blocks, and so fails if the stream is being captured.
    pub fn prepared(&self, stream: Address) -> Result<&Direct, Outcome> {
        let direct = self.direct()?;
        if !direct.is_prepared() {
            if self.is_capturing(stream)? {
                return Err(Outcome::FirstInCapture);
            }
            direct.prepare().map_err(|_| Outcome::NoDevice)?;
        }
        Ok(direct)
    }
}

/// Returns whether the process is a child of `fork`, in which no lock may be taken.
pub fn is_child() -> bool {
    IS_CHILD.load(Ordering::Relaxed)
}

/// Returns the state of a handle, which is made at the first call with the handle.
pub fn state_of(handle: Object) -> Result<Arc<HandleState>, Outcome> {
    if is_child() {
        return Err(Outcome::Child);
    }
    let known = HANDLES.read().unwrap_or_else(PoisonError::into_inner).get(&handle.addr()).map(Arc::clone);
    if let Some(state) = known {
        return Ok(state);
    }
    // The state is made without the lock, since that calls the driver. If two threads make one, the first
    // that is inserted stays.
    let new = Arc::new(HandleState::new());
    let mut handles = HANDLES.write().unwrap_or_else(PoisonError::into_inner);
    Ok(Arc::clone(handles.entry(handle.addr()).or_insert(new)))
}

/// Drops the state of a handle that the program destroys. What was made with the handle goes before it.
pub fn forget_handle(handle: Object) {
    if is_child() {
        return;
    }
    let gone = HANDLES.write().unwrap_or_else(PoisonError::into_inner).remove(&handle.addr());
    // Its memory is freed after the lock is released.
    drop(gone);
}

/// Changes the set of preprocessed matrices.
fn preprocessed(change: impl FnOnce(&mut BTreeSet<usize>)) {
    if is_child() {
        return;
    }
    let mut matrices = PREPROCESSED.lock().unwrap_or_else(PoisonError::into_inner);
    change(&mut matrices);
    PREPROCESSED_COUNT.store(matrices.len(), Ordering::Relaxed);
}

/// Notes that the program preprocesses a matrix.
pub fn note_preprocessed(matrix: Object) {
    preprocessed(|matrices| {
        matrices.insert(matrix.addr());
    });
}

/// Removes the mark of a matrix that the program destroys.
pub fn forget_matrix(matrix: Object) {
    if PREPROCESSED_COUNT.load(Ordering::Relaxed) > 0 {
        preprocessed(|matrices| {
            matrices.remove(&matrix.addr());
        });
    }
}

/// Returns whether the program has preprocessed a matrix.
pub fn is_preprocessed(matrix: Object) -> bool {
    // In a child the lock may never be released, if another thread of the parent held it.
    !is_child()
        && PREPROCESSED_COUNT.load(Ordering::Relaxed) > 0
        && PREPROCESSED.lock().unwrap_or_else(PoisonError::into_inner).contains(&matrix.addr())
}

/// Notes that a plan was dropped, whose memory work that is on its way may still use.
pub fn note_release() {
    RELEASES_PENDING.store(true, Ordering::Relaxed);
}

/// Gives back the memory of plans that were dropped, as far as the work that used it is done.
pub fn release_finished() {
    if RELEASES_PENDING.load(Ordering::Relaxed) && !is_child() {
        // A plan that another thread drops meanwhile is noted again.
        RELEASES_PENDING.store(false, Ordering::Relaxed);
        if !tarsia::facade::direct::release_finished() {
            note_release();
        }
    }
}

/// Handler that runs in a child after `fork`, in its only thread: marks the process as a child whose calls
/// are all forwarded, if the parent had handles or plans, or another thread of it was inside of a call. Locks are
/// only tried: one that is held is never released.
pub fn forked() {
    let is_unused = INSIDE.load(Ordering::Relaxed) == 0
        && HANDLES.try_read().is_ok_and(|handles| handles.is_empty())
        && PREPROCESSED.try_lock().is_ok()
        && plans::are_none()
        && spgemm::are_none()
        && spmvop::are_none();
    if !is_unused {
        IS_CHILD.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::{tests::shape, Dense};

    fn state_without_products() -> HandleState {
        HandleState { direct: None, sized_shapes: RwLock::default(), size_unknown: AtomicBool::new(false) }
    }

    /// The size of a larger product's buffer says nothing about the buffer of a smaller product.
    #[test]
    fn buffers_are_sized_for_one_product_alone() {
        let state = state_without_products();
        let of = |columns| {
            let dense = Some(Dense { columns, b_by_rows: true, c_by_rows: true });
            Shape { dense, ..shape() }
        };
        assert!(!state.is_sized(&of(8)));
        state.note_sized(&of(8));
        assert!(state.is_sized(&of(8)));
        for other in [of(7), shape(), Shape { nnz: 1, ..of(8) }] {
            assert!(!state.is_sized(&other), "{other:?}");
        }
        state.note_size_unknown();
        assert!(!state.is_sized(&of(8)));
    }

    #[test]
    fn few_products_are_remembered() {
        let state = state_without_products();
        for nnz in 0..3 * MOST_SHAPES as i64 {
            let shape = Shape { nnz, ..shape() };
            state.note_sized(&shape);
            assert!(state.is_sized(&shape));
        }
        assert!(state.sized_shapes.read().unwrap().len() <= MOST_SHAPES);
    }
}

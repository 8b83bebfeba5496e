//! What is kept beside cuSPARSE's handles and descriptors: little, by their addresses, which are all that
//! identifies them.
//!
//! Neither pointers nor values are kept. Shapes only say which buffers are large enough.
//!
//! An object that is destroyed where the drop-in does not see it leaves what was kept of it to another one
//! that comes at its address. A stale mark of a preprocessed matrix costs speed at the most: SpMM is
//! forwarded, SpMV is forwarded or runs without its buffer. What is kept of a stale handle is for the old
//! one's context, and products are forwarded where another one is current. Its shapes are stale, too: a
//! buffer whose size the program has not asked for with the new handle may be taken as large enough, and be
//! too small.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Once, PoisonError, RwLock};

use tarsia::facade::direct::Direct;
use tarsia::facade::Address;

use crate::arguments::Object;
use crate::decision::Outcome;
use crate::messages;
use crate::rules::Shape;
use crate::settings::settings;

/// Most shapes that are remembered of a handle. At more, all are forgotten; products without a remembered
/// shape run without the program's buffer, or are forwarded if they need one.
const MOST_SHAPES: usize = 1024;

/// What is kept beside a handle.
pub struct HandleState {
    /// Products on the handle's device; `None`: Tarsia cannot use it.
    direct: Option<Direct>,
    /// Shapes for which a `bufferSize` function has answered, with this handle, at least what Tarsia needs.
    /// The buffer of any other shape may be too small, even if a larger one is among these: the program may
    /// have asked for fewer columns.
    sized_shapes: RwLock<HashSet<Shape>>,
    /// True from when a `bufferSize` function could not answer what Tarsia needs for a product that may be
    /// taken later all the same: no product with this handle uses the program's buffer any more.
    size_unknown: AtomicBool,
}

static HANDLES: RwLock<BTreeMap<usize, Arc<HandleState>>> = RwLock::new(BTreeMap::new());

/// Sparse matrices that the program has preprocessed: cuSPARSE has put things of its own into a buffer, which
/// must not be written to as long as the matrix lives.
static PREPROCESSED: Mutex<BTreeSet<usize>> = Mutex::new(BTreeSet::new());
/// How many they are, so that a process without any takes no lock.
static PREPROCESSED_COUNT: AtomicUsize = AtomicUsize::new(0);

/// This process is a child that `fork` has made of one that had handles: CUDA does not work in it, and another thread
/// of the parent's may have held a lock.
static IS_CHILD: AtomicBool = AtomicBool::new(false);

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

    /// Whether a buffer that the program made for a product of this shape has what Tarsia needs.
    pub fn is_sized(&self, shape: &Shape) -> bool {
        if self.size_unknown.load(Ordering::Relaxed) {
            return false;
        }
        self.sized_shapes.read().unwrap_or_else(PoisonError::into_inner).contains(shape)
    }

    /// Products on the handle's device, which the calling thread must be on.
    pub fn direct(&self) -> Result<&Direct, Outcome> {
        let direct = self.direct.as_ref().ok_or(Outcome::NoDevice)?;
        match direct.is_current() {
            true => Ok(direct),
            false => Err(Outcome::OtherContext),
        }
    }

    /// The same for a call that enqueues. The first one that is not captured takes memory, and blocks.
    pub fn prepared(&self, stream: Address) -> Result<&Direct, Outcome> {
        let direct = self.direct()?;
        if !direct.is_prepared() {
            if direct.is_capturing(stream).unwrap_or(true) {
                return Err(Outcome::FirstInCapture);
            }
            direct.prepare().map_err(|_| Outcome::NoDevice)?;
        }
        Ok(direct)
    }
}

/// What is kept beside a handle, made at the first call with it.
pub fn state_of(handle: Object) -> Result<Arc<HandleState>, Outcome> {
    if IS_CHILD.load(Ordering::Relaxed) {
        return Err(Outcome::Child);
    }
    let known = HANDLES.read().unwrap_or_else(PoisonError::into_inner).get(&handle.addr()).map(Arc::clone);
    if let Some(state) = known {
        return Ok(state);
    }
    // Made without the lock: it calls the driver. Of two threads the first one's stays.
    let new = Arc::new(HandleState::new());
    let mut handles = HANDLES.write().unwrap_or_else(PoisonError::into_inner);
    Ok(Arc::clone(handles.entry(handle.addr()).or_insert(new)))
}

/// The program destroys a handle.
pub fn forget_handle(handle: Object) {
    if IS_CHILD.load(Ordering::Relaxed) {
        return;
    }
    let gone = HANDLES.write().unwrap_or_else(PoisonError::into_inner).remove(&handle.addr());
    // Its memory goes back without the lock.
    drop(gone);
}

fn preprocessed(change: impl FnOnce(&mut BTreeSet<usize>)) {
    if IS_CHILD.load(Ordering::Relaxed) {
        return;
    }
    let mut matrices = PREPROCESSED.lock().unwrap_or_else(PoisonError::into_inner);
    change(&mut matrices);
    PREPROCESSED_COUNT.store(matrices.len(), Ordering::Relaxed);
}

/// The program preprocesses a matrix.
pub fn note_preprocessed(matrix: Object) {
    preprocessed(|matrices| {
        matrices.insert(matrix.addr());
    });
}

/// The program destroys a matrix.
pub fn forget_matrix(matrix: Object) {
    if PREPROCESSED_COUNT.load(Ordering::Relaxed) > 0 {
        preprocessed(|matrices| {
            matrices.remove(&matrix.addr());
        });
    }
}

/// Whether the program has preprocessed a matrix.
pub fn is_preprocessed(matrix: Object) -> bool {
    // Another thread of the parent may have held the lock for good.
    !IS_CHILD.load(Ordering::Relaxed)
        && PREPROCESSED_COUNT.load(Ordering::Relaxed) > 0
        && PREPROCESSED.lock().unwrap_or_else(PoisonError::into_inner).contains(&matrix.addr())
}

/// In a child that `fork` has made, which has this thread alone.
pub fn forked() {
    if HANDLES.try_read().map_or(true, |handles| !handles.is_empty()) || PREPROCESSED.try_lock().is_err() {
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

    /// That a larger product's buffer was asked for says nothing of a smaller one's.
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

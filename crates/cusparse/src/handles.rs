//! What is kept beside cuSPARSE's handles and descriptors: little, by their addresses, which are all that identifies them.
//!
//! An object that is destroyed where the drop-in does not see it leaves what was kept of it to another one that comes at
//! its address. Nothing here says anything of what an object describes, so that no result depends on it.

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

/// Shapes that are remembered of a handle. A program that asks for more asks before each product.
const MOST_SHAPES: usize = 1024;

/// What is kept beside a handle.
pub struct Beside {
    /// Products on the handle's device; `None`: Tarsia cannot use it.
    direct: Option<Direct>,
    /// Products of which a `bufferSize` function with this handle has answered what Tarsia needs. For any other a buffer
    /// may be too small, whatever was answered for the largest: a program may have asked with fewer columns.
    told: RwLock<HashSet<Shape>>,
    /// What Tarsia needs could not be answered once, where the product may be taken later all the same: no buffer is relied
    /// on any more.
    untold: AtomicBool,
}

static HANDLES: RwLock<BTreeMap<usize, Arc<Beside>>> = RwLock::new(BTreeMap::new());

/// Sparse matrices that the program has preprocessed: cuSPARSE has put things of its own into a buffer, which must not be
/// written to as long as the matrix lives.
static PREPROCESSED: Mutex<BTreeSet<usize>> = Mutex::new(BTreeSet::new());
/// How many they are, so that a process without any takes no lock.
static PREPROCESSED_COUNT: AtomicUsize = AtomicUsize::new(0);

/// This process is a child that `fork` has made of one that had handles: CUDA does not work in it, and another thread
/// of the parent's may have held a lock.
static IS_CHILD: AtomicBool = AtomicBool::new(false);

impl Beside {
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
        Beside { direct, told: RwLock::default(), untold: AtomicBool::new(false) }
    }

    /// Notes that what Tarsia needs for a product was answered.
    pub fn tell(&self, shape: &Shape) {
        let mut told = self.told.write().unwrap_or_else(PoisonError::into_inner);
        if told.len() >= MOST_SHAPES {
            told.clear();
        }
        told.insert(*shape);
    }

    /// Notes that what Tarsia needs for some product could not be answered.
    pub fn fail_to_tell(&self) {
        self.untold.store(true, Ordering::Relaxed);
    }

    /// Whether a product's buffer has what Tarsia needs.
    pub fn is_told(&self, shape: &Shape) -> bool {
        if self.untold.load(Ordering::Relaxed) {
            return false;
        }
        self.told.read().unwrap_or_else(PoisonError::into_inner).contains(shape)
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
pub fn beside(handle: Object) -> Result<Arc<Beside>, Outcome> {
    if IS_CHILD.load(Ordering::Relaxed) {
        return Err(Outcome::Child);
    }
    let known = HANDLES.read().unwrap_or_else(PoisonError::into_inner).get(&handle.addr()).map(Arc::clone);
    if let Some(beside) = known {
        return Ok(beside);
    }
    // Made without the lock: it calls the driver. Of two threads the first one's stays.
    let new = Arc::new(Beside::new());
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

    fn beside_nothing() -> Beside {
        Beside { direct: None, told: RwLock::default(), untold: AtomicBool::new(false) }
    }

    /// That a larger product's buffer was asked for says nothing of a smaller one's.
    #[test]
    fn buffers_are_told_of_one_product_alone() {
        let beside = beside_nothing();
        let of = |columns| {
            let dense = Some(Dense { columns, b_by_rows: true, c_by_rows: true });
            Shape { dense, ..shape() }
        };
        assert!(!beside.is_told(&of(8)));
        beside.tell(&of(8));
        assert!(beside.is_told(&of(8)));
        for other in [of(7), shape(), Shape { nnz: 1, ..of(8) }] {
            assert!(!beside.is_told(&other), "{other:?}");
        }
        beside.fail_to_tell();
        assert!(!beside.is_told(&of(8)));
    }

    #[test]
    fn few_products_are_remembered() {
        let beside = beside_nothing();
        for nnz in 0..3 * MOST_SHAPES as i64 {
            let shape = Shape { nnz, ..shape() };
            beside.tell(&shape);
            assert!(beside.is_told(&shape));
        }
        assert!(beside.told.read().unwrap().len() <= MOST_SHAPES);
    }
}

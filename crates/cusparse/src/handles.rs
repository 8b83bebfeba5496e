//! What is kept beside cuSPARSE's handles and descriptors: little, by their addresses, which are all that identifies them.
//!
//! An object that is destroyed where the drop-in does not see it leaves what was kept of it to another one that comes at
//! its address. That costs time at the most: nothing here says anything of what an object describes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use tarsia::facade::{Address, Direct};

use crate::arguments::Object;
use crate::decision::Outcome;
use crate::settings::settings;

/// What is kept beside a handle.
pub struct Beside {
    /// Products on the handle's device; `None`: Tarsia cannot use it.
    direct: Option<Direct>,
    /// The most bytes that `cusparseSpMM_bufferSize` with this handle has answered for Tarsia: a buffer cannot be relied on
    /// to have more.
    pub told_spmm: AtomicUsize,
    /// `cusparseSpMV_bufferSize` with this handle has answered what Tarsia needs.
    pub told_spmv: AtomicBool,
    /// The size of a buffer could not be told once: a buffer may be too small from then on.
    pub untold: AtomicBool,
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
        let direct = Direct::open(settings().on_host).ok();
        Beside {
            direct,
            told_spmm: AtomicUsize::new(0),
            told_spmv: AtomicBool::new(false),
            untold: AtomicBool::new(false),
        }
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
    PREPROCESSED_COUNT.load(Ordering::Relaxed) > 0
        && PREPROCESSED.lock().unwrap_or_else(PoisonError::into_inner).contains(&matrix.addr())
}

/// In a child that `fork` has made, which has this thread alone.
pub fn forked() {
    if HANDLES.try_read().map_or(true, |handles| !handles.is_empty()) || PREPROCESSED.try_lock().is_err() {
        IS_CHILD.store(true, Ordering::Relaxed);
    }
}

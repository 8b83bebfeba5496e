//! The opaque objects of the C API. What a program holds is not an address but
//! a token (kind, slot, generation), never used twice: an object that is NULL,
//! destroyed or of another kind is recognised, not dereferenced.

use std::sync::Arc;

use parking_lot::RwLock;

use super::boundary::not_live;
use crate::backend::{heap, TileMatrix};
use crate::context::Handle;
use crate::error::{Error, Result};
use crate::matrix::{DenseMatrix, DenseVector, SparseArrays, SparseMatrix};
use crate::plan::{Descriptors, Plan};

/// What tarsiaHandle_t points to; opaque.
#[allow(non_camel_case_types)]
pub struct tarsiaContext {
    _opaque: (),
}
/// What tarsiaSpMatDescr_t points to; opaque.
#[allow(non_camel_case_types)]
pub struct tarsiaSpMatDescr {
    _opaque: (),
}
/// What tarsiaDnVecDescr_t points to; opaque.
#[allow(non_camel_case_types)]
pub struct tarsiaDnVecDescr {
    _opaque: (),
}
/// What tarsiaDnMatDescr_t points to; opaque.
#[allow(non_camel_case_types)]
pub struct tarsiaDnMatDescr {
    _opaque: (),
}
/// What tarsiaPlan_t points to; opaque.
#[allow(non_camel_case_types)]
pub struct tarsiaPlan {
    _opaque: (),
}

/// The library's context: backend, stream, modes, allocator, workspace. One
/// handle per concurrent stream.
#[allow(non_camel_case_types)]
pub type tarsiaHandle_t = *mut tarsiaContext;
/// A sparse matrix: borrows the user's arrays.
#[allow(non_camel_case_types)]
pub type tarsiaSpMatDescr_t = *mut tarsiaSpMatDescr;
/// A sparse matrix that is only read.
#[allow(non_camel_case_types)]
pub type tarsiaConstSpMatDescr_t = *const tarsiaSpMatDescr;
/// A dense vector: borrows the user's array.
#[allow(non_camel_case_types)]
pub type tarsiaDnVecDescr_t = *mut tarsiaDnVecDescr;
/// A dense vector that is only read.
#[allow(non_camel_case_types)]
pub type tarsiaConstDnVecDescr_t = *const tarsiaDnVecDescr;
/// A dense matrix: borrows the user's array.
#[allow(non_camel_case_types)]
pub type tarsiaDnMatDescr_t = *mut tarsiaDnMatDescr;
/// A dense matrix that is only read.
#[allow(non_camel_case_types)]
pub type tarsiaConstDnMatDescr_t = *const tarsiaDnMatDescr;
/// An operation on one matrix: analyzed once, executed many times.
#[allow(non_camel_case_types)]
pub type tarsiaPlan_t = *mut tarsiaPlan;

/// Low bits of a token that say the kind.
const TAG_BITS: u32 = 4;
/// Bits of the slot's number; the generation has the upper 32.
const SLOT_BITS: u32 = 28;

/// Live objects of one kind.
pub struct Registry<T> {
    tag: usize,
    slots: RwLock<Slots<T>>,
}

struct Slots<T> {
    entries: Vec<Slot<T>>,
    free: Vec<usize>,
}

struct Slot<T> {
    generation: u32,
    value: Option<T>,
}

impl<T: Clone> Registry<T> {
    const fn new(tag: usize) -> Self {
        Registry { tag, slots: RwLock::new(Slots { entries: Vec::new(), free: Vec::new() }) }
    }

    /// Takes an object in; the token is never 0. Refused while memory is so short that small objects come
    /// out of the reserve.
    pub fn insert(&self, value: T) -> Result<usize> {
        heap::check()?;
        let mut slots = self.slots.write();
        let slot = match slots.free.pop() {
            Some(slot) => slot,
            None => {
                let slot = slots.entries.len();
                if slot >> SLOT_BITS != 0 {
                    return Err(Error::new(
                        crate::error::Status::InsufficientResources,
                        "2^28 objects of this kind are alive: destroy some",
                    ));
                }
                let bytes = std::mem::size_of::<Slot<T>>();
                slots.entries.try_reserve(1).map_err(|_| Error::out_of_memory(bytes))?;
                // Room to free it later, so that destroy cannot fail.
                slots.free.try_reserve(slot + 1).map_err(|_| Error::out_of_memory(bytes))?;
                slots.entries.push(Slot { generation: 0, value: None });
                slot
            }
        };
        let entry = &mut slots.entries[slot];
        entry.generation += 1;
        entry.value = Some(value);
        Ok((entry.generation as usize) << 32 | slot << TAG_BITS | self.tag)
    }

    fn slot_of(&self, token: usize) -> Option<(usize, u32)> {
        let slot = (token & 0xffff_ffff) >> TAG_BITS;
        (token & ((1 << TAG_BITS) - 1) == self.tag).then_some((slot, (token >> 32) as u32))
    }

    /// A copy of the object (of its reference, for shared ones).
    pub fn get(&self, token: usize) -> Option<T> {
        let (slot, generation) = self.slot_of(token)?;
        let slots = self.slots.read();
        slots.entries.get(slot).filter(|entry| entry.generation == generation)?.value.clone()
    }

    /// Changes the object in place.
    pub fn update<R>(&self, token: usize, change: impl FnOnce(&mut T) -> R) -> Option<R> {
        let (slot, generation) = self.slot_of(token)?;
        let mut slots = self.slots.write();
        let entry = slots.entries.get_mut(slot).filter(|entry| entry.generation == generation)?;
        entry.value.as_mut().map(change)
    }

    /// Takes the object out; its token is dead from here on.
    pub fn remove(&self, token: usize) -> Option<T> {
        let (slot, generation) = self.slot_of(token)?;
        let mut slots = self.slots.write();
        let entry = slots.entries.get_mut(slot).filter(|entry| entry.generation == generation)?;
        let value = entry.value.take()?;
        // A slot whose generations are used up is never used again.
        if entry.generation < u32::MAX {
            slots.free.push(slot);
        }
        Some(value)
    }
}

/// What a sparse matrix descriptor stands for.
#[derive(Clone)]
pub enum Sparse {
    /// Arrays of the user.
    Arrays(SparseMatrix),
    /// Tiles of the library.
    Tiles(Arc<TileMatrix>),
}

impl Sparse {
    /// What is known of it without its contents.
    pub fn matrix(&self) -> SparseMatrix {
        match self {
            Sparse::Arrays(matrix) => *matrix,
            Sparse::Tiles(tiles) => {
                SparseMatrix { arrays: SparseArrays::Tile(tiles.shape()), writable: true }
            }
        }
    }

    /// The matrix in tiles, if it is one.
    pub fn tiles(self) -> Option<Arc<TileMatrix>> {
        match self {
            Sparse::Arrays(_) => None,
            Sparse::Tiles(tiles) => Some(tiles),
        }
    }
}

/// Live handles.
pub static HANDLES: Registry<Arc<Handle>> = Registry::new(1);
/// Live sparse matrix descriptors.
pub static SPARSE: Registry<Sparse> = Registry::new(2);
/// Live dense vector descriptors.
pub static VECTORS: Registry<DenseVector> = Registry::new(3);
/// Live dense matrix descriptors.
pub static MATRICES: Registry<DenseMatrix> = Registry::new(4);
/// Live plans.
pub static PLANS: Registry<Arc<Plan>> = Registry::new(5);

/// A token as the pointer that a program holds.
pub fn pointer<T>(token: usize) -> *mut T {
    std::ptr::without_provenance_mut(token)
}

/// A token as the const pointer that a program holds.
pub fn const_pointer<T>(token: usize) -> *const T {
    std::ptr::without_provenance(token)
}

/// A sparse matrix argument.
pub fn sparse(name: &str, descr: tarsiaConstSpMatDescr_t) -> Result<SparseMatrix> {
    sparse_or_tiles(name, descr).map(|found| found.matrix())
}

/// What a plan's checks look for its descriptors by: those of A and, of SpGEMM, B.
pub fn descriptors(of: [tarsiaConstSpMatDescr_t; 2]) -> Descriptors {
    Descriptors {
        find: |token| SPARSE.get(token).map(|found| found.matrix()),
        of: of.map(|descr| descr.addr()),
    }
}

/// A sparse matrix argument with its contents, where the library has them.
pub fn sparse_or_tiles(name: &str, descr: tarsiaConstSpMatDescr_t) -> Result<Sparse> {
    SPARSE.get(descr.addr()).ok_or_else(|| not_live(name, descr.is_null(), "sparse matrix descriptor"))
}

/// A dense vector argument.
pub fn vector(name: &str, descr: tarsiaConstDnVecDescr_t) -> Result<DenseVector> {
    VECTORS.get(descr.addr()).ok_or_else(|| not_live(name, descr.is_null(), "dense vector descriptor"))
}

/// A dense matrix argument.
pub fn matrix(name: &str, descr: tarsiaConstDnMatDescr_t) -> Result<DenseMatrix> {
    MATRICES.get(descr.addr()).ok_or_else(|| not_live(name, descr.is_null(), "dense matrix descriptor"))
}

/// Takes out what `token` names; NULL is nothing to do.
pub fn destroy<T: Clone>(registry: &Registry<T>, token: usize, name: &str, kind: &str) -> Result<Option<T>> {
    if token == 0 {
        return Ok(None);
    }
    registry.remove(token).map(Some).ok_or_else(|| not_live(name, false, kind))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_never_used_twice() {
        let registry: Registry<u32> = Registry::new(7);
        let first = registry.insert(1).unwrap();
        assert_eq!(registry.remove(first), Some(1));
        let second = registry.insert(2).unwrap();
        assert_ne!(first, second);
        assert_eq!((registry.get(first), registry.get(second)), (None, Some(2)));
        assert_eq!(registry.remove(first), None);
        assert_eq!(registry.update(second, |v| *v = 3), Some(()));
        assert_eq!(registry.get(second), Some(3));
        // Another kind's token, NULL and rubbish are all refused.
        for token in [0, second ^ 1, usize::MAX, 7] {
            assert_eq!(registry.get(token), None);
        }
    }
}

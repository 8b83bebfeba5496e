//! The opaque objects of the C API. A program does not hold an address but a token (kind, slot, generation)
//! that is never used twice, so that NULL and an object that is destroyed or of another kind are recognised
//! and not dereferenced.

use std::sync::{Arc, OnceLock};

use libc::c_void;
use parking_lot::{Mutex, RwLock};

use crate::context::Handle;
use crate::error::{refuse_if, Error, Result};
use crate::matrix::tiles::TileMatrix;
use crate::matrix::{compressed, DenseMatrix, DenseVector, SparseArrays, SparseMatrix};
use crate::memory::{heap, Context};
use crate::operation::{DenseOperation, Planned};
use crate::plan::{Descriptors, Plan};
use crate::types::Address;

/// Opaque structure behind tarsiaHandle_t.
pub struct tarsiaContext {
    _opaque: (),
}
/// Opaque structure behind tarsiaSpMatDescr_t.
pub struct tarsiaSpMatDescr {
    _opaque: (),
}
/// Opaque structure behind tarsiaDnVecDescr_t.
pub struct tarsiaDnVecDescr {
    _opaque: (),
}
/// Opaque structure behind tarsiaDnMatDescr_t.
pub struct tarsiaDnMatDescr {
    _opaque: (),
}
/// Opaque structure behind tarsiaPlan_t.
pub struct tarsiaPlan {
    _opaque: (),
}

/// Handle of the library: backend, stream, modes, allocator, workspace. One handle per concurrent stream.
pub type tarsiaHandle_t = *mut tarsiaContext;
/// Descriptor of a sparse matrix; it borrows the user's arrays.
pub type tarsiaSpMatDescr_t = *mut tarsiaSpMatDescr;
/// Descriptor of a sparse matrix that is only read.
pub type tarsiaConstSpMatDescr_t = *const tarsiaSpMatDescr;
/// Descriptor of a dense vector; it borrows the user's array.
pub type tarsiaDnVecDescr_t = *mut tarsiaDnVecDescr;
/// Descriptor of a dense vector that is only read.
pub type tarsiaConstDnVecDescr_t = *const tarsiaDnVecDescr;
/// Descriptor of a dense matrix; it borrows the user's array.
pub type tarsiaDnMatDescr_t = *mut tarsiaDnMatDescr;
/// Descriptor of a dense matrix that is only read.
pub type tarsiaConstDnMatDescr_t = *const tarsiaDnMatDescr;
/// Plan of an operation with one sparse matrix (SpGEMM: two): analyzed once, executed many times.
pub type tarsiaPlan_t = *mut tarsiaPlan;

/// Number of low bits of a token that hold the kind of object.
const TAG_BITS: u32 = 4;
/// Number of bits of a token that hold the slot's number; the upper 32 bits hold the generation.
const SLOT_BITS: u32 = 28;

/// Number of slots in the first chunk; each later chunk has twice as many as the one before.
const FIRST_CHUNK: usize = 16;
/// Number of chunks that hold all slots that a token can name.
const CHUNKS: usize = (SLOT_BITS - FIRST_CHUNK.ilog2()) as usize + 1;

/// The live objects of one kind. Slots never move, and each has a lock on cache lines of its own, so that
/// threads that use different objects do not slow each other down.
pub(crate) struct Registry<T> {
    tag: usize,
    /// Name of the kind of object in error messages.
    kind: &'static str,
    chunks: [OnceLock<Box<[Slot<T>]>>; CHUNKS],
    unused: Mutex<Unused>,
}

/// Slots that hold no object.
struct Unused {
    /// Number of slots handed out so far; slots from this number on have never been used.
    count: usize,
    /// Numbers of slots whose object was removed.
    free: Vec<usize>,
}

/// A slot, aligned to two cache lines since processors fetch lines in pairs.
#[repr(align(128))]
struct Slot<T>(RwLock<Entry<T>>);

struct Entry<T> {
    generation: u32,
    value: Option<T>,
}

impl<T: Clone> Registry<T> {
    const fn new(tag: usize, kind: &'static str) -> Self {
        let unused = Unused { count: 0, free: Vec::new() };
        Registry { tag, kind, chunks: [const { OnceLock::new() }; CHUNKS], unused: Mutex::new(unused) }
    }

    /// Stores an object and returns its token, which is never 0. Fails while memory is so short that small
    /// allocations come out of the reserve.
    pub fn insert(&self, value: T) -> Result<usize> {
        heap::check()?;
        let mut unused = self.unused.lock();
        let number = match unused.free.pop() {
            Some(number) => number,
            None => {
                let number = unused.count;
                refuse_if!(
                    number >> SLOT_BITS != 0,
                    new(crate::error::Status::InsufficientResources),
                    "2^28 objects of this kind are alive: destroy some"
                );
                self.make(number)?;
                // Reserves the room to free this slot later, so that destroy cannot fail.
                unused.free.try_reserve(number + 1).map_err(|_| Error::out_of_memory(size_of::<usize>()))?;
                unused.count += 1;
                number
            }
        };
        let slot = self.slot(number).expect("it was made before it was counted");
        let mut entry = slot.0.write();
        entry.generation += 1;
        entry.value = Some(value);
        Ok((entry.generation as usize) << 32 | number << TAG_BITS | self.tag)
    }

    /// Chunk of a slot, and the slot's position in it.
    #[inline]
    fn place(number: usize) -> (usize, usize) {
        let chunk = (number / FIRST_CHUNK + 1).ilog2() as usize;
        (chunk, number - FIRST_CHUNK * ((1 << chunk) - 1))
    }

    /// Allocates the chunk of a slot if it does not exist yet.
    fn make(&self, number: usize) -> Result<()> {
        let (chunk, _) = Self::place(number);
        if self.chunks[chunk].get().is_none() {
            let (mut slots, count) = (Vec::new(), FIRST_CHUNK << chunk);
            let bytes = count * size_of::<Slot<T>>();
            slots.try_reserve_exact(count).map_err(|_| Error::out_of_memory(bytes))?;
            slots.extend((0..count).map(|_| Slot(RwLock::new(Entry { generation: 0, value: None }))));
            // No other thread sets it meanwhile: the caller has `unused` locked.
            let _ = self.chunks[chunk].set(slots.into_boxed_slice());
        }
        Ok(())
    }

    #[inline]
    fn slot(&self, number: usize) -> Option<&Slot<T>> {
        let (chunk, at) = Self::place(number);
        self.chunks.get(chunk)?.get()?.get(at)
    }

    #[inline]
    fn slot_of(&self, token: usize) -> Option<(usize, u32)> {
        let number = (token & 0xffff_ffff) >> TAG_BITS;
        (token & ((1 << TAG_BITS) - 1) == self.tag).then_some((number, (token >> 32) as u32))
    }

    /// Returns a clone of the object (for an `Arc`, of the reference).
    #[inline]
    pub fn get(&self, token: usize) -> Option<T> {
        let (number, generation) = self.slot_of(token)?;
        let entry = self.slot(number)?.0.read();
        (entry.generation == generation).then(|| entry.value.clone()).flatten()
    }

    /// Changes the object in place.
    pub fn update<R>(&self, token: usize, change: impl FnOnce(&mut T) -> R) -> Option<R> {
        let (number, generation) = self.slot_of(token)?;
        let mut entry = self.slot(number)?.0.write();
        (entry.generation == generation).then(|| entry.value.as_mut().map(change)).flatten()
    }

    /// Removes the object; its token is dead from then on.
    pub fn remove(&self, token: usize) -> Option<T> {
        let (number, generation) = self.slot_of(token)?;
        let mut entry = self.slot(number)?.0.write();
        if entry.generation != generation {
            return None;
        }
        let value = entry.value.take()?;
        drop(entry);
        // A slot whose generations are used up is never used again.
        if generation < u32::MAX {
            self.unused.lock().free.push(number);
        }
        Some(value)
    }

    /// Makes the `INVALID_VALUE` error for an argument that is NULL, destroyed or of another kind.
    #[cold]
    fn not_live(&self, name: &str, token: usize) -> Error {
        let not_live = || format!("it is not a live {}", self.kind);
        Error::invalid(name, if token == 0 { "it is NULL".into() } else { not_live() })
    }

    /// Like [`Self::get`], with an error that names the argument.
    #[inline(always)]
    pub fn find(&self, name: &str, token: usize) -> Result<T> {
        self.get(token).ok_or_else(|| self.not_live(name, token))
    }

    /// Removes the object that an argument names; does nothing for NULL.
    pub fn destroy(&self, name: &str, token: usize) -> Result<()> {
        match token {
            0 => Ok(()),
            _ => self.remove(token).map(drop).ok_or_else(|| self.not_live(name, token)),
        }
    }
}

/// The matrix behind a sparse matrix descriptor.
#[derive(Clone)]
pub(crate) enum Sparse {
    /// A matrix in arrays of the user.
    Arrays {
        /// The arrays.
        matrix: SparseMatrix,
        /// True if the indices of each row (CSC: of each column) are known to ascend.
        sorted: bool,
    },
    /// A matrix in tiles, which the library owns.
    Tiles(Arc<TileMatrix>),
}

impl Sparse {
    /// Format, shape and types of the matrix, and the addresses of the user's arrays.
    pub fn matrix(&self) -> SparseMatrix {
        match self {
            Sparse::Arrays { matrix, .. } => *matrix,
            Sparse::Tiles(tiles) => {
                SparseMatrix { arrays: SparseArrays::Tile(tiles.shape()), writable: true, temporary: false }
            }
        }
    }

    /// Returns the matrix in tiles, if it is one.
    pub fn tiles(self) -> Option<Arc<TileMatrix>> {
        match self {
            Sparse::Arrays { .. } => None,
            Sparse::Tiles(tiles) => Some(tiles),
        }
    }
}

/// Live handles.
pub(crate) static HANDLES: Registry<Arc<Handle>> = Registry::new(1, "handle");
/// Live sparse matrix descriptors.
pub(crate) static SPARSE: Registry<Sparse> = Registry::new(2, "sparse matrix descriptor");
/// Live dense vector descriptors.
pub(crate) static VECTORS: Registry<DenseVector> = Registry::new(3, "dense vector descriptor");
/// Live dense matrix descriptors.
pub(crate) static MATRICES: Registry<DenseMatrix> = Registry::new(4, "dense matrix descriptor");
/// Live plans.
pub(crate) static PLANS: Registry<Arc<Plan>> = Registry::new(5, "plan");

/// Converts a token to the pointer that a program holds.
pub(crate) fn pointer<T>(token: usize) -> *mut T {
    std::ptr::without_provenance_mut(token)
}

/// Converts a token to the const pointer that a program holds.
pub(crate) fn const_pointer<T>(token: usize) -> *const T {
    std::ptr::without_provenance(token)
}

/// Looks up a sparse matrix argument, without the contents of tiles.
pub(crate) fn sparse(name: &str, descr: tarsiaConstSpMatDescr_t) -> Result<SparseMatrix> {
    sparse_or_tiles(name, descr).map(|found| found.matrix())
}

/// Descriptors of A and B (SpMV and SpMM: of A twice), for a plan's development checks, which look them up
/// again later.
pub(crate) fn descriptors(of: [tarsiaConstSpMatDescr_t; 2]) -> Descriptors {
    Descriptors {
        find: |token| SPARSE.get(token).map(|found| found.matrix()),
        of: of.map(|descr| descr.addr()),
    }
}

/// Looks up a sparse matrix argument, with its tiles where the library owns them.
pub(crate) fn sparse_or_tiles(name: &str, descr: tarsiaConstSpMatDescr_t) -> Result<Sparse> {
    SPARSE.find(name, descr.addr())
}

/// Returns whether the indices of a sparse matrix are known to ascend; tiles are always sorted.
pub(crate) fn is_sorted(name: &str, descr: tarsiaConstSpMatDescr_t) -> Result<bool> {
    match sparse_or_tiles(name, descr)? {
        Sparse::Arrays { sorted, .. } => Ok(sorted),
        Sparse::Tiles(_) => Ok(true),
    }
}

/// Records whether the indices of a matrix in arrays of the user are known to ascend. Does nothing if another
/// thread has destroyed the descriptor meanwhile.
pub(crate) fn note_sorted(descr: tarsiaConstSpMatDescr_t, is_sorted: bool) {
    SPARSE.update(descr.addr(), |entry| {
        if let Sparse::Arrays { sorted, .. } = entry {
            *sorted = is_sorted;
        }
    });
}

/// Looks up a dense vector argument.
#[inline(always)]
pub(crate) fn vector(name: &str, descr: tarsiaConstDnVecDescr_t) -> Result<DenseVector> {
    VECTORS.find(name, descr.addr())
}

/// Looks up a dense matrix argument.
#[inline(always)]
pub(crate) fn matrix(name: &str, descr: tarsiaConstDnMatDescr_t) -> Result<DenseMatrix> {
    MATRICES.find(name, descr.addr())
}

/// Looks up a product's operands with `find` (the dense factor, the old values if the result is elsewhere, and
/// the result) and checks them as far as descriptors allow; calls `run` with the function that executes the plan
/// with them.
#[inline]
pub(super) fn product<O: DenseOperation, D>(
    handle: &Handle,
    (alpha, beta): (*const c_void, *const c_void),
    find: fn(&str, *const D) -> Result<O::Operand>,
    (factor, old, result): (*const D, Option<*const D>, *mut D),
    run: impl FnOnce(&dyn Fn(&Planned<O>, &Context) -> Result<()>) -> Result<()>,
) -> Result<()> {
    let (factor, scalars) = (find(O::FACTOR, factor)?, (Address::new(alpha), Address::new(beta)));
    let name = O::RESULTS[usize::from(old.is_some())];
    let old = old.map(|old| Ok((handle.backend_ref(), find(O::RESULTS[0], old)?))).transpose()?;
    let result = find(name, result)?;
    if handle.checks() {
        let others = old.iter().map(|(_, old)| (O::RESULTS[0], O::lines(old)));
        let operands = [(O::FACTOR, O::lines(&factor)), (name, O::lines(&result))];
        handle.check_operands(scalars, operands.into_iter().chain(others))?;
    }
    run(&|planned, cx| {
        let old = old.as_ref().map(|(backend, old)| (&***backend, old));
        planned.execute(cx, scalars, &factor, old, &result)
    })
}

/// A structure of the library that a descriptor of src/capi/descriptors.rs stands for: arrays of the user.
pub(super) trait Described: Copy {
    /// Type of the registry's entries.
    type Entry: Clone + From<Self> + 'static;
    /// The arrays' name in error messages.
    const ARRAYS: &'static str;
    /// The registry of these descriptors.
    fn registry() -> &'static Registry<Self::Entry>;
    /// Returns the structure that a registry entry stands for.
    fn of_entry(entry: Self::Entry) -> Self;
    /// Checks everything that can be checked without reading the arrays.
    fn check(&self) -> Result<()>;
    /// Returns whether it was made from arrays that are not const.
    fn is_writable(&self) -> bool;

    /// Checks the structure, stores it in the registry and returns its token.
    fn insert(self) -> Result<usize> {
        self.check()?;
        Self::registry().insert(self.into())
    }

    /// Looks up a live descriptor; with `to_write`, refuses one that was made from const arrays.
    fn of(name: &str, token: usize, to_write: bool) -> Result<Self> {
        let found = Self::of_entry(Self::registry().find(name, token)?);
        if to_write && !found.is_writable() {
            return Err(Error::invalid(
                name,
                format!("it was made from {}; use the Const getter", Self::ARRAYS),
            ));
        }
        Ok(found)
    }

    /// Replaces the structure of a live descriptor by this one.
    fn replace(self, name: &str, token: usize) -> Result<()> {
        self.check()?;
        let registry = Self::registry();
        registry.update(token, |entry| *entry = self.into()).ok_or_else(|| registry.not_live(name, token))
    }
}

impl From<SparseMatrix> for Sparse {
    fn from(matrix: SparseMatrix) -> Self {
        Sparse::Arrays { matrix, sorted: false }
    }
}

impl Described for SparseMatrix {
    type Entry = Sparse;
    const ARRAYS: &'static str = "const arrays";

    fn registry() -> &'static Registry<Sparse> {
        &SPARSE
    }

    fn of_entry(entry: Sparse) -> Self {
        entry.matrix()
    }

    fn check(&self) -> Result<()> {
        match &self.arrays {
            SparseArrays::Csr(m) => m.check(&compressed::CSR),
            SparseArrays::Csc(m) => m.check(&compressed::CSC),
            SparseArrays::Coo(m) => m.check(),
            SparseArrays::Bsr(m) => m.check(),
            SparseArrays::Tile(_) => Ok(()),
        }
    }

    fn is_writable(&self) -> bool {
        self.writable
    }
}

/// Implements [`Described`] for dense operands, whose registry entries are the structures themselves.
macro_rules! dense {
    ($($dense:ident in $registry:ident;)*) => { $(impl Described for $dense {
        type Entry = Self;
        const ARRAYS: &'static str = "a const array";

        fn registry() -> &'static Registry<Self> {
            &$registry
        }

        fn of_entry(entry: Self) -> Self {
            entry
        }

        fn check(&self) -> Result<()> {
            $dense::check(self)
        }

        fn is_writable(&self) -> bool {
            self.writable
        }
    })* };
}
dense! { DenseVector in VECTORS; DenseMatrix in MATRICES; }

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_never_used_twice() {
        let registry: Registry<u32> = Registry::new(7, "number");
        let first = registry.insert(1).unwrap();
        assert_eq!(registry.remove(first), Some(1));
        let second = registry.insert(2).unwrap();
        assert_ne!(first, second);
        assert_eq!((registry.get(first), registry.get(second)), (None, Some(2)));
        assert_eq!(registry.remove(first), None);
        assert_eq!(registry.update(second, |v| *v = 3), Some(()));
        assert_eq!(registry.get(second), Some(3));
        // These are more objects than the first chunks hold; each must be found.
        let tokens: Vec<_> = (0..1000).map(|n| registry.insert(n).unwrap()).collect();
        assert!(tokens.iter().zip(0..).all(|(&token, n)| registry.get(token) == Some(n)));
        assert!(tokens.iter().zip(0..).all(|(&token, n)| registry.remove(token) == Some(n)));
        assert!(tokens.iter().all(|&token| registry.get(token).is_none()));
        // Tokens of another kind, NULL and garbage are all refused.
        for token in [0, second ^ 1, usize::MAX, 7] {
            assert_eq!(registry.get(token), None);
        }
    }
}

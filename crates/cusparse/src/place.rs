//! The place of nnz in cuSPARSE's descriptors of sparse matrices.
//!
//! A program asks for the number of entries of an SpGEMM's result by `cusparseSpMatGetSize`, which reads C's
//! descriptor, and no public function sets it. So the place of this number is looked for in two descriptors
//! that are made for it, with sizes that nothing else has, and what is written there must come back from the
//! public getter. A cuSPARSE in which this fails in any way gets all SpGEMMs itself.

use std::ffi::{c_int, c_void};
use std::ptr::null;
use std::sync::OnceLock;

use tarsia::facade::IndexType;

use crate::arguments::Object;
use crate::decision::Outcome;
use crate::real;

type Create = unsafe extern "C" fn(
    *mut Object,
    i64,
    i64,
    i64,
    *const c_void,
    *const c_void,
    *const c_void,
    c_int,
    c_int,
    c_int,
    c_int,
) -> c_int;
type Destroy = unsafe extern "C" fn(Object) -> c_int;
type GetSize = unsafe extern "C" fn(Object, *mut i64, *mut i64, *mut i64) -> c_int;

/// Number of words of a descriptor that are searched. A descriptor of 12.6.3 has 1,000 bytes, and the place
/// is word 28.
const WORDS: usize = 128;

/// Sizes of the two probes: rows, columns and entries, the second beyond 32 bits. cuSPARSE refuses matrices
/// with more than 2⁶³ − 1 elements.
const PROBES: [(IndexType, [i64; 3]); 2] = [
    (IndexType::I32, [0x2b67_1d93, 0x31f4_5a0d, 0x5a3c_96e1]),
    (IndexType::I64, [0x2_4f81_6b3d, 0x2f1c_95e7, 0x7_53d2_9c8f]),
];
/// Number of entries that is written into the probes.
const OTHER_NNZ: i64 = 0x1e6b_70d5;

/// Place of nnz in a descriptor, with the getter that confirms it.
pub struct Place {
    /// Number of the word.
    word: usize,
    get_size: GetSize,
}

/// Returns the place, which is looked for once; `None` if this cuSPARSE does not show it.
pub fn place() -> Option<&'static Place> {
    static PLACE: OnceLock<Option<Place>> = OnceLock::new();
    PLACE.get_or_init(Place::find).as_ref()
}

impl Place {
    fn find() -> Option<Self> {
        let cusparse = real::cusparse()?;
        macro_rules! find {
            ($function:ty, $name:literal) => {
                // SAFETY: the function of this name has this type in all known versions, see decision.rs.
                unsafe { std::mem::transmute::<*mut c_void, $function>(cusparse.function($name)?.as_ptr()) }
            };
        }
        let create = find!(Create, c"cusparseCreateCsr");
        let destroy = find!(Destroy, c"cusparseDestroySpMat");
        let get_size = find!(GetSize, c"cusparseSpMatGetSize");
        let probes = PROBES.map(|(index, sizes)| Probe::new(create, destroy, index, sizes));
        let [Some(first), Some(second)] = probes else { return None };
        let both = [&first, &second];
        let words = both.map(|probe| words_at(probe.object));
        // Behind a small descriptor there may be copies of one probe's sizes, but hardly of both.
        let is_nnz = |&at: &usize| both.iter().zip(&words).all(|(probe, words)| words[at] == probe.sizes[2]);
        let mut places = (0..WORDS).filter(is_nnz);
        let (Some(word), None) = (places.next(), places.next()) else { return None };
        let place = Place { word, get_size };
        let is_confirmed = |probe: &Probe| {
            place.set(probe.object, OTHER_NNZ).is_ok() && place.set(probe.object, probe.sizes[2]).is_ok()
        };
        let are_confirmed = both.into_iter().all(is_confirmed);
        are_confirmed.then_some(place)
    }

    fn sizes(&self, matrix: Object) -> Result<[i64; 3], Outcome> {
        let [mut rows, mut cols, mut nnz] = [0; 3];
        // SAFETY: the descriptor is live, and the results are valid for writes.
        match unsafe { (self.get_size)(matrix, &mut rows, &mut cols, &mut nnz) } {
            0 => Ok([rows, cols, nnz]),
            _ => Err(Outcome::NotDescribed),
        }
    }

    /// Sets nnz of a matrix. Fails, and changes nothing, if what is at the place is not what the getter says,
    /// before or after.
    pub fn set(&self, matrix: Object, nnz: i64) -> Result<(), Outcome> {
        let [rows, cols, old] = self.sizes(matrix)?;
        let at = matrix.cast::<i64>().cast_mut().wrapping_add(self.word);
        // SAFETY: the probes have shown that a descriptor has this word, and the program uses it in no other
        // thread during a call that writes it.
        unsafe {
            if at.read_volatile() != old {
                return Err(Outcome::Place);
            }
            at.write_volatile(nnz);
            if self.sizes(matrix) != Ok([rows, cols, nnz]) {
                at.write_volatile(old);
                return Err(Outcome::Place);
            }
        }
        Ok(())
    }

    /// Returns an error if nnz of a matrix is not at the place.
    pub fn confirm(&self, matrix: Object) -> Result<(), Outcome> {
        let [.., nnz] = self.sizes(matrix)?;
        self.set(matrix, nnz)
    }
}

/// A descriptor of cuSPARSE whose sizes are known.
struct Probe {
    object: Object,
    sizes: [i64; 3],
    destroy: Destroy,
}

impl Probe {
    fn new(create: Create, destroy: Destroy, index: IndexType, sizes: [i64; 3]) -> Option<Self> {
        // No array is read through a descriptor that no product gets, but NULL is refused.
        static ARRAY: [u64; 2] = [0; 2];
        let (array, mut object): (*const c_void, Object) = ((&raw const ARRAY).cast(), null());
        let ([rows, cols, nnz], index) = (sizes, index as c_int);
        // SAFETY: `object` is valid for a write. Base 0 and values of 64 bits (CUDA_R_64F) exist in all
        // versions.
        let status = unsafe { create(&mut object, rows, cols, nnz, array, array, array, index, index, 0, 1) };
        (status == 0 && !object.is_null()).then_some(Probe { object, sizes, destroy })
    }
}

impl Drop for Probe {
    fn drop(&mut self) {
        // SAFETY: the descriptor is live, and nothing uses it any more.
        unsafe { (self.destroy)(self.object) };
    }
}

/// Returns the words at an address. The kernel copies them, through a pipe, since a descriptor may be smaller:
/// where no memory is, the copy ends, and no signal comes. Words that could not be copied are zero.
fn words_at(object: Object) -> [i64; WORDS] {
    let (mut ends, mut words): ([c_int; 2], _) = ([0; 2], [0; WORDS]);
    // SAFETY: `ends` has room for two file descriptors; the kernel checks the addresses that it reads; `words`
    // has room for as many bytes as are written.
    unsafe {
        if libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) == 0 {
            let written = libc::write(ends[1], object, size_of_val(&words));
            if let Ok(written @ 1..) = usize::try_from(written) {
                libc::read(ends[0], words.as_mut_ptr().cast(), written);
            }
            libc::close(ends[0]);
            libc::close(ends[1]);
        }
    }
    words
}

//! Dense matrix products by cublasLt, which is opened at run time where it is installed.
//!
//! The library does not link cublasLt. Once opened it stays open, with one handle per device. A [`Matmul`] is
//! a product of given sizes with the algorithm that cublasLt's heuristic ranks first among those that fit the
//! workspace; K may be cut into other pieces than the heuristic wants ([`may_drop_columns`]). Finding the
//! algorithm is work of the host alone; running it only launches.
//!
//! The first use costs (cublasLt 13.1, files cached in memory): opening the library 45 to 80 ms, its handle 2
//! ms, the heuristic's first answer for a type of values 80 to 110 ms (halves), 72 to 107 (fp32), 35 to 52
//! (doubles), 11 to 17 more (TF32), the first launch of an algorithm 0.05 to 15; later answers of the
//! heuristic 0.03 to 0.5, without the checks of other pieces, which were not timed. Neither CUDA_MODULE_LOADING
//! nor RTLD_LAZY lowers these times.

use std::ffi::{c_void, CStr};
use std::ptr::null_mut;
use std::sync::Arc;

use once_cell::sync::OnceCell;

use super::device::Relaxed;
use super::driver::{self, Raw};
use super::launch;
use crate::error::{Error, Result, Status};
use crate::select::spmm::dense::{LT_CANDIDATES, LT_WORKSPACE};
use crate::types::{Address, DataType};

/// Names that the dynamic loader is asked for: the versions that run with a driver for CUDA 13.
const NAMES: [&CStr; 2] = [c"libcublasLt.so.13", c"libcublasLt.so.12"];

// Values of cublasLt's enums.
const COMPUTE_32F: i32 = 68;
const COMPUTE_64F: i32 = 70;
const COMPUTE_32F_FAST_TF32: i32 = 77;
const DESC_TRANSA: i32 = 3;
const DESC_TRANSB: i32 = 4;
const PREF_MAX_WORKSPACE_BYTES: i32 = 1;
const PREF_REDUCTION_SCHEME_MASK: i32 = 3;
const PREF_MIN_ALIGNMENT: [i32; 4] = [5, 6, 7, 8];
/// CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE: partial sums over pieces of K are added in the type of the sums,
/// by a step of its own in a fixed order, rather than by counters in the order of arrival or with a rounding
/// to C's type in between.
const REDUCTION_COMPUTE_TYPE: u32 = 2;
/// CUBLASLT_REDUCTION_SCHEME_NONE: K is in one piece.
const REDUCTION_NONE: u32 = 0;
/// CUBLASLT_ALGO_CONFIG_SPLITK_NUM: number of pieces that K is cut into.
const ALGORITHM_PIECES: i32 = 2;
/// Columns of A in a step of cublasLt's kernels for 16-bit values.
const STEP: i64 = 64;

/// The C structure cublasLtMatmulHeuristicResult_t, which begins with a cublasLtMatmulAlgo_t.
#[derive(Clone, Copy)]
#[repr(C)]
struct Heuristic {
    algorithm: [u64; 8],
    workspace_bytes: usize,
    state: i32,
    waves: f32,
    reserved: [i32; 4],
}

impl Heuristic {
    const NONE: Heuristic =
        Heuristic { algorithm: [0; 8], workspace_bytes: 0, state: 0, waves: 0.0, reserved: [0; 4] };
}

macro_rules! functions {
    ($($name:ident: $symbol:literal ($($argument:ty),*);)*) => {
        /// Functions of cublasLt that are used here; all return a cublasStatus_t.
        struct Functions {
            $($name: unsafe extern "C" fn($($argument),*) -> i32,)*
        }

        impl Functions {
            /// # Safety
            /// `library` is an open cublasLt.
            unsafe fn load(library: *mut c_void) -> std::result::Result<Self, String> {
                Ok(Functions {
                    $($name: {
                        // SAFETY: the library is open, the name ends with a zero.
                        let symbol = unsafe { libc::dlsym(library, $symbol.as_ptr()) };
                        if symbol.is_null() {
                            return Err(format!("it has no {}", $symbol.to_string_lossy()));
                        }
                        // SAFETY: cublasLt.h of versions 12 and 13 declares the function with this type.
                        unsafe {
                            std::mem::transmute::<*mut c_void, unsafe extern "C" fn($($argument),*) -> i32>(symbol)
                        }
                    },)*
                })
            }
        }
    };
}

functions! {
    create: c"cublasLtCreate" (*mut Raw);
    matmul: c"cublasLtMatmul"
        (Raw, Raw, *const c_void, *const c_void, Raw, *const c_void, Raw, *const c_void, *const c_void, Raw,
         *mut c_void, Raw, *const u64, *mut c_void, usize, Raw);
    heuristic: c"cublasLtMatmulAlgoGetHeuristic"
        (Raw, Raw, Raw, Raw, Raw, Raw, Raw, i32, *mut Heuristic, *mut i32);
    desc_create: c"cublasLtMatmulDescCreate" (*mut Raw, i32, i32);
    desc_destroy: c"cublasLtMatmulDescDestroy" (Raw);
    desc_set: c"cublasLtMatmulDescSetAttribute" (Raw, i32, *const c_void, usize);
    layout_create: c"cublasLtMatrixLayoutCreate" (*mut Raw, i32, u64, u64, i64);
    layout_destroy: c"cublasLtMatrixLayoutDestroy" (Raw);
    algorithm_get: c"cublasLtMatmulAlgoConfigGetAttribute"
        (*const u64, i32, *mut c_void, usize, *mut usize);
    algorithm_set: c"cublasLtMatmulAlgoConfigSetAttribute" (*mut u64, i32, *const c_void, usize);
    algorithm_check: c"cublasLtMatmulAlgoCheck"
        (Raw, Raw, Raw, Raw, Raw, Raw, *const u64, *mut Heuristic);
    preference_create: c"cublasLtMatmulPreferenceCreate" (*mut Raw);
    preference_destroy: c"cublasLtMatmulPreferenceDestroy" (Raw);
    preference_set: c"cublasLtMatmulPreferenceSetAttribute" (Raw, i32, *const c_void, usize);
}

static LIBRARY: OnceCell<Functions> = OnceCell::new();

/// Opens the library at the first call; an `Err` says why it cannot be used.
fn open() -> std::result::Result<&'static Functions, String> {
    LIBRARY.get_or_try_init(|| {
        for name in NAMES {
            // SAFETY: the name is a C string; the library stays open for good.
            let library = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
            if !library.is_null() {
                // SAFETY: it is open and, by its name, cublasLt.
                return unsafe { Functions::load(library) };
            }
        }
        Err("cublasLt is not installed".into())
    })
}

/// CUBLAS_STATUS_NOT_SUPPORTED.
const NOT_SUPPORTED: i32 = 15;

/// Converts a status of cublasLt to the library's result; `what` says what was tried.
fn check(code: i32, what: &str) -> Result<()> {
    match code {
        0 => Ok(()),
        3 => Err(Error::new(Status::AllocFailed, format!("cublasLt: {what} failed: no memory"))),
        NOT_SUPPORTED => Err(Error::unsupported(format!("cublasLt: {what} failed: not supported"))),
        _ => Err(Error::new(Status::InternalError, format!("cublasLt: {what} failed with status {code}"))),
    }
}

/// Handle of cublasLt for one device. It is never destroyed, like the device's context.
pub struct CublasLt {
    functions: &'static Functions,
    handle: Address,
}

impl CublasLt {
    /// Makes a handle for the device whose context is current; `None` where the library is not installed or
    /// does not work.
    pub fn new() -> Option<Arc<Self>> {
        let functions = open().ok()?;
        let _relaxed = Relaxed::enter();
        let mut handle: Raw = null_mut();
        // SAFETY: `handle` is valid for a write.
        let code = unsafe { (functions.create)(&mut handle) };
        (code == 0).then(|| Arc::new(CublasLt { functions, handle: Address::new(handle) }))
    }
}

/// A matrix that is stored by columns, or its transpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Factor {
    /// Leading dimension: elements from one column to the next.
    pub ld: i64,
    /// True if the matrix in memory is the transpose.
    pub transposed: bool,
    /// Alignment of its address in bytes, a power of two.
    pub alignment: u32,
}

/// Sizes and types of a product D = alpha · A · B, all stored by columns: A is m × k, B is k × n.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// Rows of D.
    pub m: i64,
    /// Columns of D.
    pub n: i64,
    /// Columns of A.
    pub k: i64,
    /// Storage of A.
    pub a: Factor,
    /// Storage of B.
    pub b: Factor,
    /// Storage of D; not transposed.
    pub d: Factor,
    /// Type of the values of A and B.
    pub input: DataType,
    /// Type of the values of D.
    pub output: DataType,
    /// True if fp32 factors may be rounded to TF32.
    pub tf32: bool,
    /// Bytes of workspace that the product may use.
    pub workspace: usize,
}

/// A product that is ready to run.
pub struct Matmul {
    library: Arc<CublasLt>,
    description: OwnedObject,
    a: OwnedObject,
    b: OwnedObject,
    d: OwnedObject,
    algorithm: [u64; 8],
    workspace: usize,
}

/// An object that cublasLt made, destroyed when this is dropped.
struct OwnedObject {
    address: Address,
    destroy: unsafe extern "C" fn(Raw) -> i32,
}

impl OwnedObject {
    fn raw(&self) -> Raw {
        driver::raw(self.address)
    }
}

impl Drop for OwnedObject {
    fn drop(&mut self) {
        // SAFETY: the function that made it belongs to this one, and nothing uses it after its owner.
        unsafe { (self.destroy)(self.raw()) };
    }
}

/// Sets an attribute by one of the functions that take an enum value, an address and a size.
fn set<T: Copy>(
    function: unsafe extern "C" fn(Raw, i32, *const c_void, usize) -> i32,
    of: &OwnedObject,
    attribute: i32,
    value: T,
) -> Result<()> {
    // SAFETY: `of` is live; the value is valid for reads of its size.
    let code = unsafe { function(of.raw(), attribute, (&raw const value).cast(), size_of::<T>()) };
    check(code, "setting an attribute")
}

/// Returns, of the algorithms that run with this much workspace, the one of rank `rank`, or the first where there are
/// fewer.
fn fitting(found: &[Heuristic], workspace: usize, rank: usize) -> Option<&Heuristic> {
    let fits = |found: &&Heuristic| found.state == 0 && found.workspace_bytes <= workspace;
    let fit = || found.iter().filter(fits);
    fit().nth(rank).or_else(|| fit().next())
}

/// Returns whether cublasLt may leave out the last columns of A, and rows of B, when it cuts a K of so many 16-bit
/// values into pieces. Version 13.1 does so with some kernels where its steps of 64 columns can be dealt out evenly to
/// the pieces and a few columns are left, of which up to 24 were seen (219 × 20744 × 128 in 12 pieces: 324 steps and 8
/// columns, which no piece has). docs/algorithms/dense.md says how often. That is a rule from measurements of one version,
/// which is applied to all.
fn may_drop_columns(k: i64, pieces: u32) -> bool {
    pieces > 1 && k % STEP != 0 && (k / STEP) % i64::from(pieces) == 0
}

/// Number of pieces nearest to `pieces` with which no columns of a K of so many values are dropped; 1 if there is none
/// within a fourth of it, and one more.
fn trusted_pieces(k: i64, pieces: u32) -> u32 {
    if k < STEP {
        return 1;
    }
    let near = |apart: u32| [pieces.saturating_sub(apart), pieces.saturating_add(apart)];
    let all = (0..=pieces / 4 + 1).flat_map(near).filter(|&pieces| pieces > 1);
    all.into_iter().find(|&pieces| !may_drop_columns(k, pieces)).unwrap_or(1)
}

/// Search for the algorithm of a product, by its description, its matrices A, B and D, and what is preferred.
struct Search<'a> {
    library: &'a CublasLt,
    sizes: &'a Sizes,
    description: &'a OwnedObject,
    operands: [&'a OwnedObject; 3],
    preference: OwnedObject,
}

impl Search<'_> {
    /// Returns, of the algorithms of the heuristic for this workspace and these reduction schemes, the one of rank `rank`
    /// ([`fitting`]).
    fn ask(&self, workspace: usize, reductions: u32, rank: usize) -> Result<Option<[u64; 8]>> {
        let functions = self.library.functions;
        set(functions.preference_set, &self.preference, PREF_REDUCTION_SCHEME_MASK, reductions)?;
        set(functions.preference_set, &self.preference, PREF_MAX_WORKSPACE_BYTES, workspace)?;
        let mut found = [Heuristic::NONE; LT_CANDIDATES];
        let mut count = 0;
        let [a, b, d] = self.operands;
        // SAFETY: all descriptors are live, and the answers are valid for this many writes.
        let code = unsafe {
            (functions.heuristic)(
                driver::raw(self.library.handle),
                self.description.raw(),
                a.raw(),
                b.raw(),
                d.raw(),
                d.raw(),
                self.preference.raw(),
                LT_CANDIDATES as i32,
                found.as_mut_ptr(),
                &mut count,
            )
        };
        if code == NOT_SUPPORTED {
            return Ok(None);
        }
        check(code, "choosing an algorithm")?;
        let found = &found[..count.clamp(0, LT_CANDIDATES as i32) as usize];
        // One without an algorithm has no attributes either.
        let found: Vec<_> =
            found.iter().filter(|found| found.state == 0).filter_map(|found| self.trusted(found)).collect();
        Ok(fitting(&found, self.sizes.workspace, rank).map(|found| found.algorithm))
    }

    /// Returns the algorithm, or, if it may drop columns, the same with K in other pieces; `None` if it is left out.
    fn trusted(&self, found: &Heuristic) -> Option<Heuristic> {
        if self.sizes.input.size() != 2 {
            return Some(*found);
        }
        let mut pieces = 0_u32;
        let to = (&raw mut pieces).cast();
        // SAFETY: the algorithm is one that the heuristic found, and `pieces` is valid for a write.
        let code = unsafe {
            (self.library.functions.algorithm_get)(
                found.algorithm.as_ptr(),
                ALGORITHM_PIECES,
                to,
                size_of::<u32>(),
                null_mut(),
            )
        };
        match (code, may_drop_columns(self.sizes.k, pieces)) {
            (0, false) => Some(*found),
            (0, true) => match trusted_pieces(self.sizes.k, pieces) {
                1 => None,
                pieces => self.in_pieces(found, pieces),
            },
            _ => None,
        }
    }

    /// Returns the algorithm with K in so many pieces, if cublasLt supports that.
    fn in_pieces(&self, found: &Heuristic, pieces: u32) -> Option<Heuristic> {
        let functions = self.library.functions;
        let (mut changed, mut answer) = (found.algorithm, Heuristic::NONE);
        let value = (&raw const pieces).cast();
        // SAFETY: `changed` is an algorithm of the heuristic, and the value is valid for reads of its size.
        let code = unsafe {
            (functions.algorithm_set)(changed.as_mut_ptr(), ALGORITHM_PIECES, value, size_of::<u32>())
        };
        if code != 0 {
            return None;
        }
        let [a, b, d] = self.operands;
        // SAFETY: all descriptors are live, and the answer is valid for a write.
        let code = unsafe {
            (functions.algorithm_check)(
                driver::raw(self.library.handle),
                self.description.raw(),
                a.raw(),
                b.raw(),
                d.raw(),
                d.raw(),
                changed.as_ptr(),
                &mut answer,
            )
        };
        (code == 0).then_some(Heuristic { algorithm: changed, ..answer })
    }
}

impl Matmul {
    /// Prepares a product with the algorithm of this rank (the first has 0) among those of the heuristic that
    /// run with the workspace, or with the first where there are fewer; if there is none, with one that has K in one
    /// piece. An algorithm that may drop columns ([`may_drop_columns`]) cuts K into other pieces than the heuristic
    /// wants, or is left out. `NOT_SUPPORTED` where none is left. Work of the host alone.
    pub fn new(library: &Arc<CublasLt>, sizes: &Sizes, rank: usize) -> Result<Self> {
        let functions = library.functions;
        let scale = if sizes.input == DataType::R64F { DataType::R64F } else { DataType::R32F };
        let compute = match (scale, sizes.tf32) {
            (DataType::R64F, _) => COMPUTE_64F,
            (_, true) => COMPUTE_32F_FAST_TF32,
            _ => COMPUTE_32F,
        };
        let mut made: Raw = null_mut();
        // SAFETY: `made` is valid for a write.
        let code = unsafe { (functions.desc_create)(&mut made, compute, scale.code()) };
        check(code, "creating a description of a product")?;
        let description = OwnedObject { address: Address::new(made), destroy: functions.desc_destroy };
        for (attribute, factor) in [(DESC_TRANSA, &sizes.a), (DESC_TRANSB, &sizes.b)] {
            set(functions.desc_set, &description, attribute, i32::from(factor.transposed))?;
        }
        let layout = |factor: &Factor, rows: i64, cols: i64, value: DataType| {
            let (rows, cols) = if factor.transposed { (cols, rows) } else { (rows, cols) };
            let mut made: Raw = null_mut();
            // SAFETY: `made` is valid for a write.
            let code = unsafe {
                (functions.layout_create)(&mut made, value.code(), rows as u64, cols as u64, factor.ld)
            };
            check(code, "creating a layout of a matrix")?;
            Ok(OwnedObject { address: Address::new(made), destroy: functions.layout_destroy })
        };
        let a = layout(&sizes.a, sizes.m, sizes.k, sizes.input)?;
        let b = layout(&sizes.b, sizes.k, sizes.n, sizes.input)?;
        let d = layout(&sizes.d, sizes.m, sizes.n, sizes.output)?;

        // SAFETY: `made` is valid for a write.
        check(unsafe { (functions.preference_create)(&mut made) }, "creating a preference")?;
        let preference = OwnedObject { address: Address::new(made), destroy: functions.preference_destroy };
        // C is not read and has the address of D.
        let alignments = [&sizes.a, &sizes.b, &sizes.d, &sizes.d].map(|factor| factor.alignment);
        for (attribute, alignment) in PREF_MIN_ALIGNMENT.into_iter().zip(alignments) {
            set(functions.preference_set, &preference, attribute, alignment)?;
        }
        let search = Search { library, sizes, description: &description, operands: [&a, &b, &d], preference };
        let ask = |workspace: usize, reductions: u32| search.ask(workspace, reductions, rank);
        let mut found = ask(sizes.workspace.max(LT_WORKSPACE), REDUCTION_COMPUTE_TYPE)?;
        if found.is_none() && sizes.workspace < LT_WORKSPACE {
            found = ask(sizes.workspace, REDUCTION_COMPUTE_TYPE)?;
        }
        if found.is_none() {
            found = ask(sizes.workspace, REDUCTION_NONE)?;
        }
        let algorithm =
            found.ok_or_else(|| Error::unsupported("cublasLt: it has no algorithm for this product"))?;
        let (library, workspace) = (Arc::clone(library), sizes.workspace);
        Ok(Matmul { library, description, a, b, d, algorithm, workspace })
    }

    /// Enqueues D = alpha · A · B; alpha is on the host and has the type of the sums. The context must be
    /// current.
    ///
    /// # Safety
    /// The addresses must refer to matrices of these sizes and to a workspace of `Sizes::workspace` bytes,
    /// which nothing else uses, until the stream has run the product.
    pub unsafe fn run(
        &self,
        alpha: &[u8],
        a: Address,
        b: Address,
        d: Address,
        workspace: Address,
        stream: Address,
    ) -> Result<()> {
        // The first launch of an algorithm loads its kernel, which is forbidden while another stream is
        // captured.
        let _relaxed = Relaxed::enter();
        let beta = [0_u64; 2];
        // SAFETY: descriptors are live; alpha has the size of the scale's type; the rest is the caller's
        // promise.
        let code = unsafe {
            (self.library.functions.matmul)(
                driver::raw(self.library.handle),
                self.description.raw(),
                alpha.as_ptr().cast(),
                a.as_ptr(),
                self.a.raw(),
                b.as_ptr(),
                self.b.raw(),
                (&raw const beta).cast(),
                d.as_ptr(),
                self.d.raw(),
                d.as_mut_ptr(),
                self.d.raw(),
                self.algorithm.as_ptr(),
                workspace.as_mut_ptr(),
                self.workspace,
                driver::raw(stream),
            )
        };
        check(code, "launching a product")?;
        launch::note_enqueued();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_algorithm_that_fits_is_taken() {
        let one = |first, workspace_bytes, state| Heuristic {
            algorithm: [first; 8],
            workspace_bytes,
            state,
            ..Heuristic::NONE
        };
        let all = [one(1, 900, 0), one(2, 0, 14), one(3, 100, 0), one(4, 0, 0)];
        let taken = |workspace, rank| fitting(&all, workspace, rank).map(|found| found.algorithm[0]);
        let of_rank = |rank| [1000, 900, 899, 100, 99, 0].map(|workspace| taken(workspace, rank));
        assert_eq!(of_rank(0), [1, 1, 3, 3, 4, 4].map(Some));
        assert_eq!(of_rank(1), [3, 3, 4, 4, 4, 4].map(Some));
        assert_eq!(of_rank(2), [4, 4, 3, 3, 4, 4].map(Some));
        assert!(fitting(&all[..2], 5, 0).is_none() && fitting(&[], 5, 1).is_none());
        // In cublasLt.h: 8 words, a size, a status, a float, 4 ints.
        assert_eq!(size_of::<Heuristic>(), 64 + 8 + 4 + 4 + 16);
    }

    #[test]
    fn pieces_of_whole_steps_and_a_rest_are_refused() {
        // Measured: the first was wrong in 12 pieces and right in 8 and 7.
        assert_eq!(
            [12, 8, 7, 1, 0].map(|pieces| may_drop_columns(20_744, pieces)),
            [true, false, false, false, false]
        );
        assert_eq!([4_801, 20_736, 33_872].map(|k| may_drop_columns(k, 1)), [false; 3]);
        assert!(may_drop_columns(4_801, 75) && may_drop_columns(33_872, 23) && !may_drop_columns(20_736, 12));
    }

    #[test]
    fn other_pieces_leave_steps_over() {
        // 324 steps: in 11 pieces, not in 12; 320 in 19, not in 20; 2 in 3, since one piece is not looked for.
        assert_eq!([(20_744, 12), (20_488, 20), (20_744, 7)].map(|(k, p)| trusted_pieces(k, p)), [11, 19, 7]);
        assert_eq!(trusted_pieces(129, 2), 3);
        for k in (1..3000).chain([33_872, i64::MAX]) {
            for pieces in 2..130 {
                let other = trusted_pieces(k, pieces);
                assert!(other == 1 || !may_drop_columns(k, other), "{k} {pieces} {other}");
            }
        }
    }
}

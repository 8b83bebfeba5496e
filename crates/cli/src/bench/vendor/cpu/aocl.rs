//! AOCL-Sparse's routines, with 32-bit indices.

use std::ffi::{c_char, c_void, CStr};

use super::{Api, Arrays, Call, Exported, Factor, Opened, Raw, Stage, CALLS};
use crate::bench::vendor::library::{loaded, Library, Scope};
use crate::Result;
use tarsia::facade::{DataType, Order};

/// Name under which the loader is asked for AOCL-Sparse.
const NAME: &str = "libaoclsparse.so";

const OPERATIONS: [i32; 2] = [111, 112];

const STATUSES: [&str; 15] = [
    "success",
    "not_implemented",
    "invalid_pointer",
    "invalid_size",
    "internal_error",
    "invalid_value",
    "invalid_index_value",
    "maxit",
    "user_stop",
    "wrong_type",
    "memory_error",
    "numerical_error",
    "invalid_operation",
    "unsorted_input",
    "invalid_kid",
];

type Create = unsafe extern "C" fn(*mut Raw, i32, i32, i32, i32, *mut i32, *mut i32, Raw) -> i32;
type Export = unsafe extern "C" fn(
    Raw,
    *mut i32,
    *mut i32,
    *mut i32,
    *mut i32,
    *mut *mut i32,
    *mut *mut i32,
    *mut Raw,
) -> i32;
type Mv<S> = unsafe extern "C" fn(i32, *const S, Raw, Raw, *const c_void, *const S, Raw) -> i32;
type Mm<S> = unsafe extern "C" fn(i32, S, Raw, Raw, i32, *const c_void, i32, i32, S, Raw, i32) -> i32;

/// AOCL's functions, and the descriptor of a general matrix, which lives as long as the process.
struct Aocl {
    general: Raw,
    /// Functions of doubles and of floats, where types differ in the name alone.
    create: [Create; 2],
    export: [Export; 2],
    mv: (Mv<f64>, Mv<f32>),
    mm: (Mm<f64>, Mm<f32>),
    set_mv_hint: unsafe extern "C" fn(Raw, i32, Raw, i32) -> i32,
    set_mm_hint: unsafe extern "C" fn(Raw, i32, Raw, i32) -> i32,
    optimize: unsafe extern "C" fn(Raw) -> i32,
    sp2m: unsafe extern "C" fn(i32, Raw, Raw, i32, Raw, Raw, i32, *mut Raw) -> i32,
    order: unsafe extern "C" fn(Raw) -> i32,
    destroy: unsafe extern "C" fn(*mut Raw) -> i32,
}

/// Opens AOCL-Sparse, and sets this number of threads.
///
/// Its symbols are global as MKL's are: both have the OpenMP of LLVM, of which a process must have only one,
/// and what is opened second then uses that of the first.
pub(super) fn open(path: Option<&str>, threads: i32) -> Result<Opened> {
    let names = [path.unwrap_or(NAME).to_string()];
    let library = Library::open(&names, Scope::Global).map_err(|error| {
        format!("AOCL cannot be opened; --aocl names its libaoclsparse, LD_LIBRARY_PATH its folder: {error}")
    })?;
    // SAFETY: these are the types of AOCL-Sparse's headers with 32-bit integers, and of OpenMP's; a version
    // is a C string.
    unsafe {
        let version: unsafe extern "C" fn() -> *const c_char = library.required(c"aoclsparse_get_version")?;
        let version = CStr::from_ptr(version()).to_string_lossy().trim().to_string();
        // A build without OpenMP has one thread.
        if let Some(set) = loaded::<unsafe extern "C" fn(i32)>(c"omp_set_num_threads") {
            set(threads);
        }
        let make: unsafe extern "C" fn(*mut Raw) -> i32 = library.required(c"aoclsparse_create_mat_descr")?;
        let mut general = std::ptr::null_mut();
        if make(&mut general) != 0 {
            return Err("AOCL has no memory for a descriptor".into());
        }
        let api = Aocl {
            general,
            create: [
                library.required(c"aoclsparse_create_dcsr")?,
                library.required(c"aoclsparse_create_scsr")?,
            ],
            export: [
                library.required(c"aoclsparse_export_dcsr")?,
                library.required(c"aoclsparse_export_scsr")?,
            ],
            mv: (library.required(c"aoclsparse_dmv")?, library.required(c"aoclsparse_smv")?),
            mm: (library.required(c"aoclsparse_dcsrmm")?, library.required(c"aoclsparse_scsrmm")?),
            set_mv_hint: library.required(c"aoclsparse_set_mv_hint")?,
            set_mm_hint: library.required(c"aoclsparse_set_mm_hint")?,
            optimize: library.required(c"aoclsparse_optimize")?,
            sp2m: library.required(c"aoclsparse_sp2m")?,
            order: library.required(c"aoclsparse_order_mat")?,
            destroy: library.required(c"aoclsparse_destroy")?,
        };
        let number = number(&version);
        Ok(Opened { api: Box::new(api), number, version })
    }
}

/// Returns the number in a text such as "AOCL-Sparse 5.3.0 Build 20260512".
fn number(version: &str) -> String {
    let is_number = |word: &&str| word.starts_with(|first: char| first.is_ascii_digit());
    version.split_whitespace().find(is_number).unwrap_or("unknown").trim_end_matches(',').into()
}

impl Api for Aocl {
    fn statuses(&self) -> (&'static str, &'static [&'static str]) {
        ("aoclsparse_status_", &STATUSES)
    }

    unsafe fn create(&self, raw: &mut Raw, arrays: &Arrays) -> i32 {
        let Arrays { data, rows, cols, nnz, offsets, indices, values } = *arrays;
        let create = self.create[usize::from(data == DataType::R32F)];
        // SAFETY: the caller's promise.
        unsafe { create(raw, 0, rows, cols, nnz, offsets, indices, values) }
    }

    unsafe fn destroy(&self, mut raw: Raw) {
        // SAFETY: the caller's promise.
        unsafe { (self.destroy)(&mut raw) };
    }

    unsafe fn hint_mv(&self, call: Call) -> i32 {
        // SAFETY: the caller's promise.
        unsafe { (self.set_mv_hint)(call.a, OPERATIONS[usize::from(call.transposed)], self.general, CALLS) }
    }

    unsafe fn hint_mm(&self, call: Call, _: &Factor) -> i32 {
        // SAFETY: the caller's promise.
        unsafe { (self.set_mm_hint)(call.a, OPERATIONS[usize::from(call.transposed)], self.general, CALLS) }
    }

    unsafe fn optimize(&self, a: Raw) -> i32 {
        // SAFETY: the caller's promise.
        unsafe { (self.optimize)(a) }
    }

    unsafe fn mv(&self, call: Call, x: *const c_void, y: Raw) -> i32 {
        let (op, a) = (OPERATIONS[usize::from(call.transposed)], call.a);
        // SAFETY: the caller's promise.
        unsafe {
            match call.data {
                DataType::R32F => (self.mv.1)(op, &1.0, a, self.general, x, &0.0, y),
                _ => (self.mv.0)(op, &1.0, a, self.general, x, &0.0, y),
            }
        }
    }

    unsafe fn mm(&self, call: Call, b: &Factor, c: Raw) -> i32 {
        let (op, a, general) = (OPERATIONS[usize::from(call.transposed)], call.a, self.general);
        // aoclsparse_order_row, aoclsparse_order_column
        let order = i32::from(b.order == Order::Col);
        let Factor { values, n, ld, c_ld, .. } = *b;
        // SAFETY: the caller's promise.
        unsafe {
            match call.data {
                DataType::R32F => (self.mm.1)(op, 1.0, a, general, order, values, n, ld, 0.0, c, c_ld),
                _ => (self.mm.0)(op, 1.0, a, general, order, values, n, ld, 0.0, c, c_ld),
            }
        }
    }

    unsafe fn sp2m(&self, a: Raw, b: Raw, stage: Stage, c: &mut Raw) -> i32 {
        // aoclsparse_stage_full_computation, aoclsparse_stage_finalize
        let stage = if stage == Stage::Full { 2 } else { 1 };
        // SAFETY: the caller's promise.
        unsafe { (self.sp2m)(OPERATIONS[0], self.general, a, OPERATIONS[0], self.general, b, stage, c) }
    }

    unsafe fn order(&self, a: Raw) -> i32 {
        // SAFETY: the caller's promise.
        unsafe { (self.order)(a) }
    }

    unsafe fn export(&self, data: DataType, a: Raw, to: &mut Exported) -> i32 {
        let export = self.export[usize::from(data == DataType::R32F)];
        let (mut cols, mut nnz) = (0, 0);
        let Exported { base, rows, starts, ends, indices, values } = to;
        // SAFETY: the caller's promise.
        let status = unsafe { export(a, base, rows, &mut cols, &mut nnz, starts, indices, values) };
        *ends = starts.wrapping_add(1);
        status
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_number_is_a_part_of_the_version() {
        let text = "AOCL-Sparse 5.3.0 Build 20260512";
        assert_eq!((super::number(text).as_str(), super::number("none").as_str()), ("5.3.0", "unknown"));
    }
}

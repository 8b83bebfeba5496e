//! MKL's inspector-executor routines.

use std::ffi::{c_char, c_void, CStr};

use super::{Api, Arrays, Call, Exported, Factor, Opened, Raw, Stage, CALLS};
use crate::bench::vendor::library::{preload, Library, Scope};
use crate::Result;
use tarsia::facade::{DataType, Order};

/// Names under which the loader is asked for MKL.
const NAMES: [&str; 3] = ["libmkl_rt.so.3", "libmkl_rt.so.2", "libmkl_rt.so"];
/// Library of MKL's threads, which lies beside MKL where pip put it.
const NEEDED: [&str; 1] = ["libiomp5.so"];

const OPERATIONS: [i32; 2] = [10, 11];
const GENERAL: MatrixDescr = MatrixDescr { kind: 20, mode: 40, diagonal: 50 };
const ROW_MAJOR: i32 = 101;
const COLUMN_MAJOR: i32 = 102;

const STATUSES: [&str; 7] = [
    "SUCCESS",
    "NOT_INITIALIZED",
    "ALLOC_FAILED",
    "INVALID_VALUE",
    "EXECUTION_FAILED",
    "INTERNAL_ERROR",
    "NOT_SUPPORTED",
];

/// struct matrix_descr
#[repr(C)]
#[derive(Clone, Copy)]
struct MatrixDescr {
    kind: i32,
    mode: i32,
    diagonal: i32,
}

type Create = unsafe extern "C" fn(*mut Raw, i32, i32, i32, *mut i32, *mut i32, *mut i32, Raw) -> i32;
type Export = unsafe extern "C" fn(
    Raw,
    *mut i32,
    *mut i32,
    *mut i32,
    *mut *mut i32,
    *mut *mut i32,
    *mut *mut i32,
    *mut Raw,
) -> i32;
type Mv<S> = unsafe extern "C" fn(i32, S, Raw, MatrixDescr, *const c_void, S, Raw) -> i32;
type Mm<S> = unsafe extern "C" fn(i32, S, Raw, MatrixDescr, i32, *const c_void, i32, i32, S, Raw, i32) -> i32;

/// MKL's functions.
struct Mkl {
    /// Functions of doubles and of floats, where types differ in the name alone.
    create: [Create; 2],
    export: [Export; 2],
    mv: (Mv<f64>, Mv<f32>),
    mm: (Mm<f64>, Mm<f32>),
    set_mv_hint: unsafe extern "C" fn(Raw, i32, MatrixDescr, i32) -> i32,
    set_mm_hint: unsafe extern "C" fn(Raw, i32, MatrixDescr, i32, i32, i32) -> i32,
    optimize: unsafe extern "C" fn(Raw) -> i32,
    sp2m: unsafe extern "C" fn(i32, MatrixDescr, Raw, i32, MatrixDescr, Raw, i32, *mut Raw) -> i32,
    order: unsafe extern "C" fn(Raw) -> i32,
    destroy: unsafe extern "C" fn(Raw) -> i32,
}

/// Opens MKL, and sets 32-bit indices and this number of threads.
pub(super) fn open(path: Option<&str>, threads: i32) -> Result<Opened> {
    let names: Vec<String> = match path {
        Some(path) => vec![path.into()],
        None => NAMES.map(String::from).into(),
    };
    names.iter().for_each(|name| preload(name, &NEEDED, Scope::Global));
    let library = Library::open(&names, Scope::Global).map_err(|error| {
        format!("MKL cannot be opened; --mkl names its libmkl_rt, LD_LIBRARY_PATH its folder: {error}")
    })?;
    // SAFETY: these are the types that MKL's documentation gives, with 32-bit integers, which is what the
    // interface layer is set to.
    unsafe {
        let set: unsafe extern "C" fn(i32) -> i32 = library.required(c"MKL_Set_Interface_Layer")?;
        set(0);
        let set: unsafe extern "C" fn(i32) -> i32 = library.required(c"MKL_Set_Threading_Layer")?;
        set(0);
        let set: unsafe extern "C" fn(i32) = library.required(c"MKL_Set_Dynamic")?;
        set(0);
        let set: unsafe extern "C" fn(i32) = library.required(c"MKL_Set_Num_Threads")?;
        set(threads);
        let mut text = [0 as c_char; 256];
        let version: unsafe extern "C" fn(*mut c_char, i32) = library.required(c"MKL_Get_Version_String")?;
        version(text.as_mut_ptr(), text.len() as i32 - 1);
        let version = CStr::from_ptr(text.as_ptr()).to_string_lossy().trim().to_string();
        let api = Mkl {
            create: [
                library.required(c"mkl_sparse_d_create_csr")?,
                library.required(c"mkl_sparse_s_create_csr")?,
            ],
            export: [
                library.required(c"mkl_sparse_d_export_csr")?,
                library.required(c"mkl_sparse_s_export_csr")?,
            ],
            mv: (library.required(c"mkl_sparse_d_mv")?, library.required(c"mkl_sparse_s_mv")?),
            mm: (library.required(c"mkl_sparse_d_mm")?, library.required(c"mkl_sparse_s_mm")?),
            set_mv_hint: library.required(c"mkl_sparse_set_mv_hint")?,
            set_mm_hint: library.required(c"mkl_sparse_set_mm_hint")?,
            optimize: library.required(c"mkl_sparse_optimize")?,
            sp2m: library.required(c"mkl_sparse_sp2m")?,
            order: library.required(c"mkl_sparse_order")?,
            destroy: library.required(c"mkl_sparse_destroy")?,
        };
        Ok(Opened { api: Box::new(api), number: number(&version), version })
    }
}

/// Returns the number in a text such as "… Version 2026.2-Product Build …".
fn number(version: &str) -> String {
    let word = version.split_whitespace().find(|word| word.starts_with("20")).unwrap_or("unknown");
    word.split('-').next().unwrap_or(word).into()
}

fn major(order: Order) -> i32 {
    match order {
        Order::Row => ROW_MAJOR,
        Order::Col => COLUMN_MAJOR,
    }
}

impl Api for Mkl {
    fn statuses(&self) -> (&'static str, &'static [&'static str]) {
        ("SPARSE_STATUS_", &STATUSES)
    }

    unsafe fn create(&self, raw: &mut Raw, arrays: &Arrays) -> i32 {
        let Arrays { data, rows, cols, offsets, indices, values, .. } = *arrays;
        let create = self.create[usize::from(data == DataType::R32F)];
        // SAFETY: the caller's promise.
        unsafe { create(raw, 0, rows, cols, offsets, offsets.wrapping_add(1), indices, values) }
    }

    unsafe fn destroy(&self, raw: Raw) {
        // SAFETY: the caller's promise.
        unsafe { (self.destroy)(raw) };
    }

    unsafe fn hint_mv(&self, call: Call) -> i32 {
        // SAFETY: the caller's promise.
        unsafe { (self.set_mv_hint)(call.a, OPERATIONS[usize::from(call.transposed)], GENERAL, CALLS) }
    }

    unsafe fn hint_mm(&self, call: Call, b: &Factor) -> i32 {
        let (op, order) = (OPERATIONS[usize::from(call.transposed)], major(b.order));
        // SAFETY: the caller's promise.
        unsafe { (self.set_mm_hint)(call.a, op, GENERAL, order, b.n, CALLS) }
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
                DataType::R32F => (self.mv.1)(op, 1.0, a, GENERAL, x, 0.0, y),
                _ => (self.mv.0)(op, 1.0, a, GENERAL, x, 0.0, y),
            }
        }
    }

    unsafe fn mm(&self, call: Call, b: &Factor, c: Raw) -> i32 {
        let (op, a, order) = (OPERATIONS[usize::from(call.transposed)], call.a, major(b.order));
        let Factor { values, n, ld, c_ld, .. } = *b;
        // SAFETY: the caller's promise.
        unsafe {
            match call.data {
                DataType::R32F => (self.mm.1)(op, 1.0, a, GENERAL, order, values, n, ld, 0.0, c, c_ld),
                _ => (self.mm.0)(op, 1.0, a, GENERAL, order, values, n, ld, 0.0, c, c_ld),
            }
        }
    }

    unsafe fn sp2m(&self, a: Raw, b: Raw, stage: Stage, c: &mut Raw) -> i32 {
        // SPARSE_STAGE_FULL_MULT, SPARSE_STAGE_FINALIZE_MULT
        let stage = if stage == Stage::Full { 90 } else { 92 };
        // SAFETY: the caller's promise.
        unsafe { (self.sp2m)(OPERATIONS[0], GENERAL, a, OPERATIONS[0], GENERAL, b, stage, c) }
    }

    unsafe fn order(&self, a: Raw) -> i32 {
        // SAFETY: the caller's promise.
        unsafe { (self.order)(a) }
    }

    unsafe fn export(&self, data: DataType, a: Raw, to: &mut Exported) -> i32 {
        let export = self.export[usize::from(data == DataType::R32F)];
        let mut cols = 0;
        let Exported { base, rows, starts, ends, indices, values } = to;
        // SAFETY: the caller's promise.
        unsafe { export(a, base, rows, &mut cols, starts, ends, indices, values) }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_number_is_a_part_of_the_version() {
        let text = "oneAPI Math Kernel Library Version 2026.2-Product Build 20260401 for Intel(R) 64";
        assert_eq!((super::number(text).as_str(), super::number("none").as_str()), ("2026.2", "unknown"));
    }
}

//! MKL's inspector-executor routines, opened while the program runs. They use 32-bit indices and as many
//! threads as the library, and are timed after their optimize call.

use std::ffi::{c_char, c_void, CStr};
use std::time::{Duration, Instant};

use client::{Array, Memory, MemoryMut, Session};
use matrices::owned::OwnedCsr;
use tarsia::facade::{pool_size, BackendKind, DataType, IndexType, Order};

use super::library::{preload, Library, Scope};
use super::{Choice, Dense, Prepared, SparseProduct, Vendor};
use crate::bench::number::{blank, room, Number};
use crate::bench::runs::{Layout, MatrixOperand};
use crate::bench::Op;
use crate::Result;

/// Names under which the loader is asked for MKL.
const NAMES: [&str; 3] = ["libmkl_rt.so.3", "libmkl_rt.so.2", "libmkl_rt.so"];
/// Library of MKL's threads, which lies beside MKL where pip put it.
const NEEDED: [&str; 1] = ["libiomp5.so"];
/// Pause after MKL's last call: its threads keep their cores busy for 200 ms unless KMP_BLOCKTIME says
/// otherwise.
const REST: Duration = Duration::from_millis(250);

const NON_TRANSPOSE: i32 = 10;
const GENERAL: MatrixDescr = MatrixDescr { kind: 20, mode: 40, diagonal: 50 };
const ROW_MAJOR: i32 = 101;
const COLUMN_MAJOR: i32 = 102;
/// SPARSE_STAGE_FULL_MULT
const FULL_MULT: i32 = 90;
/// SPARSE_STAGE_FINALIZE_MULT: C has its pattern, and gets values from the factors' present values.
const FINALIZE_MULT: i32 = 92;
/// Number of calls that optimize is told to expect: many, since a plan is executed many times.
const CALLS: i32 = 1000;

type Raw = *mut c_void;

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

/// Routines that differ between value types.
#[derive(Clone, Copy)]
struct Typed {
    create: Create,
    export: Export,
    products: Products,
}

/// Products of the value types, whose signatures differ because scalars are passed by value.
#[derive(Clone, Copy)]
enum Products {
    Double(Mv<f64>, Mm<f64>),
    Single(Mv<f32>, Mm<f32>),
}

/// An open MKL library.
pub struct Mkl {
    double: Typed,
    single: Typed,
    set_mv_hint: unsafe extern "C" fn(Raw, i32, MatrixDescr, i32) -> i32,
    set_mm_hint: unsafe extern "C" fn(Raw, i32, MatrixDescr, i32, i32, i32) -> i32,
    optimize: unsafe extern "C" fn(Raw) -> i32,
    sp2m: unsafe extern "C" fn(i32, MatrixDescr, Raw, i32, MatrixDescr, Raw, i32, *mut Raw) -> i32,
    order: unsafe extern "C" fn(Raw) -> i32,
    destroy: unsafe extern "C" fn(Raw) -> i32,
    version: String,
}

/// MKL's routines for products.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum What {
    /// mkl_sparse_?_mv
    Mv,
    /// mkl_sparse_?_mm
    Mm,
    /// mkl_sparse_sp2m, mkl_sparse_order
    Sp2m,
}

fn check(status: i32, function: &str) -> Result<()> {
    const STATUSES: [&str; 7] = [
        "SUCCESS",
        "NOT_INITIALIZED",
        "ALLOC_FAILED",
        "INVALID_VALUE",
        "EXECUTION_FAILED",
        "INTERNAL_ERROR",
        "NOT_SUPPORTED",
    ];
    match usize::try_from(status).ok().and_then(|at| STATUSES.get(at)) {
        Some(&"SUCCESS") => Ok(()),
        Some(name) => Err(format!("{function} SPARSE_STATUS_{name}").into()),
        None => Err(format!("{function} status {status}").into()),
    }
}

impl Mkl {
    /// Opens the library: `path`, or else where the loader finds it.
    pub fn open(session: &Session, path: Option<&str>) -> Result<Self> {
        if session.kind() != BackendKind::Host {
            return Err("MKL runs on the CPU: --backend host".into());
        }
        let names: Vec<String> = match path {
            Some(path) => vec![path.into()],
            None => NAMES.map(String::from).into(),
        };
        names.iter().for_each(|name| preload(name, &NEEDED, Scope::Global));
        let library = Library::open(&names, Scope::Global).map_err(|error| {
            format!("MKL cannot be opened; --mkl names its libmkl_rt, LD_LIBRARY_PATH its folder: {error}")
        })?;
        // SAFETY: these are the types that MKL's documentation gives, with 32-bit
        // integers, which is what the interface layer is set to.
        unsafe {
            let set: unsafe extern "C" fn(i32) -> i32 = library.required(c"MKL_Set_Interface_Layer")?;
            set(0);
            let set: unsafe extern "C" fn(i32) -> i32 = library.required(c"MKL_Set_Threading_Layer")?;
            set(0);
            let set: unsafe extern "C" fn(i32) = library.required(c"MKL_Set_Dynamic")?;
            set(0);
            let set: unsafe extern "C" fn(i32) = library.required(c"MKL_Set_Num_Threads")?;
            set(pool_size() as i32);
            let mut text = [0 as c_char; 256];
            let version: unsafe extern "C" fn(*mut c_char, i32) =
                library.required(c"MKL_Get_Version_String")?;
            version(text.as_mut_ptr(), text.len() as i32 - 1);
            let version = CStr::from_ptr(text.as_ptr()).to_string_lossy().trim().to_string();
            Ok(Mkl {
                double: Typed {
                    create: library.required(c"mkl_sparse_d_create_csr")?,
                    export: library.required(c"mkl_sparse_d_export_csr")?,
                    products: Products::Double(
                        library.required(c"mkl_sparse_d_mv")?,
                        library.required(c"mkl_sparse_d_mm")?,
                    ),
                },
                single: Typed {
                    create: library.required(c"mkl_sparse_s_create_csr")?,
                    export: library.required(c"mkl_sparse_s_export_csr")?,
                    products: Products::Single(
                        library.required(c"mkl_sparse_s_mv")?,
                        library.required(c"mkl_sparse_s_mm")?,
                    ),
                },
                set_mv_hint: library.required(c"mkl_sparse_set_mv_hint")?,
                set_mm_hint: library.required(c"mkl_sparse_set_mm_hint")?,
                optimize: library.required(c"mkl_sparse_optimize")?,
                sp2m: library.required(c"mkl_sparse_sp2m")?,
                order: library.required(c"mkl_sparse_order")?,
                destroy: library.required(c"mkl_sparse_destroy")?,
                version,
            })
        }
    }

    fn typed<T: Number>(&self) -> Result<&Typed> {
        match T::TYPE {
            DataType::R64F => Ok(&self.double),
            DataType::R32F => Ok(&self.single),
            other => Err(format!("MKL has no products of {}", other.short()).into()),
        }
    }

    fn matrix<'a, T: Number>(&'a self, a: &'a MatrixOperand<'_, T>) -> Result<MklMatrix<'a>> {
        let mut raw = std::ptr::null_mut();
        let (rows, cols) = (i32::try_from(a.host.rows)?, i32::try_from(a.host.cols)?);
        let (offsets, indices) = a.narrow()?;
        let offsets = offsets.view().as_ptr().cast_mut();
        let indices = indices.view().as_ptr().cast_mut();
        let values: *mut T = (&a.values).view().as_ptr().cast_mut();
        let create = self.typed::<T>()?.create;
        // SAFETY: the arrays have these lengths and types, outlive the handle, and
        // are not written: that takes calls that nobody makes.
        let status = unsafe {
            create(&mut raw, 0, rows, cols, offsets, offsets.wrapping_add(1), indices, values.cast())
        };
        check(status, "create_csr")?;
        Ok(MklMatrix { raw, mkl: self })
    }
}

/// MKL's handle of a matrix.
struct MklMatrix<'a> {
    raw: Raw,
    mkl: &'a Mkl,
}

impl Drop for MklMatrix<'_> {
    fn drop(&mut self) {
        // SAFETY: MKL made it.
        unsafe { (self.mkl.destroy)(self.raw) };
    }
}

impl Vendor for Mkl {
    type What = What;

    fn version(&self) -> String {
        self.version.clone()
    }

    fn number(&self) -> String {
        // The text is "… Version 2026.2-Product Build …".
        let number = |word: &&str| word.starts_with("20");
        let word = self.version.split_whitespace().find(number).unwrap_or("unknown");
        word.split('-').next().unwrap_or(word).into()
    }

    fn set_matrix(&mut self, _: &OwnedCsr<()>) -> Result<()> {
        Ok(())
    }

    fn choices<T: Number>(&self, op: Op, a: &MatrixOperand<'_, T>, layout: Layout) -> Vec<Choice<What>> {
        let is_transposed = a.op.transposes() || layout.op_b.transposes();
        if self.typed::<T>().is_err() || is_transposed || a.indices.index() != IndexType::I32 {
            return Vec::new();
        }
        let (alg, what) = match op {
            Op::Spmv => ("mv".into(), What::Mv),
            Op::Spmm => (format!("mm{}", layout.suffix()), What::Mm),
            Op::Spgemm => ("sp2m+order".into(), What::Sp2m),
        };
        vec![Choice { implementation: "mkl".into(), alg, what }]
    }

    fn spmv<'a, T: Number>(
        &'a self,
        _: &What,
        a: &'a MatrixOperand<'_, T>,
        x: &'a Array<'_, T>,
        y: &'a mut Array<'_, T>,
    ) -> Result<Prepared<'a>> {
        let typed = self.typed::<T>()?;
        let start = Instant::now();
        let matrix = self.matrix(a)?;
        // SAFETY: the handle is live.
        unsafe {
            check((self.set_mv_hint)(matrix.raw, NON_TRANSPOSE, GENERAL, CALLS), "set_mv_hint")?;
            check((self.optimize)(matrix.raw), "optimize")?;
        }
        let analysis_ms = 1e3 * start.elapsed().as_secs_f64();
        let x: *const c_void = x.view().as_ptr().cast();
        let y: Raw = y.view_mut().as_mut_ptr().cast();
        let run = move || {
            // Borrowed, so that the closure owns the matrix, and not only its address.
            let matrix = &matrix;
            // SAFETY: x and y are borrowed for as long as this can be called and
            // have the lengths of the matrix; the types are those of the handle.
            let status = unsafe {
                match typed.products {
                    Products::Double(mv, _) => mv(NON_TRANSPOSE, 1.0, matrix.raw, GENERAL, x, 0.0, y),
                    Products::Single(mv, _) => mv(NON_TRANSPOSE, 1.0, matrix.raw, GENERAL, x, 0.0, y),
                }
            };
            check(status, "mv")
        };
        Ok(Prepared { analysis_ms, bytes: -1.0, note: String::new(), run: Box::new(run) })
    }

    fn spmm<'a, T: Number>(
        &'a self,
        _: &What,
        a: &'a MatrixOperand<'_, T>,
        b: Dense<'a, T>,
        c: &'a mut Array<'_, T>,
    ) -> Result<Prepared<'a>> {
        let typed = self.typed::<T>()?;
        let n = i32::try_from(b.cols)?;
        let (layout, b_ld, c_ld) = match b.layout.order {
            Order::Row => (ROW_MAJOR, n, n),
            Order::Col => (COLUMN_MAJOR, i32::try_from(b.rows)?, i32::try_from(a.host.rows)?),
        };
        let start = Instant::now();
        let matrix = self.matrix(a)?;
        // SAFETY: the handle is live.
        unsafe {
            let hint = (self.set_mm_hint)(matrix.raw, NON_TRANSPOSE, GENERAL, layout, n, CALLS);
            check(hint, "set_mm_hint")?;
            check((self.optimize)(matrix.raw), "optimize")?;
        }
        let analysis_ms = 1e3 * start.elapsed().as_secs_f64();
        let b: *const c_void = b.array.view().as_ptr().cast();
        let c: Raw = c.view_mut().as_mut_ptr().cast();
        let run = move || {
            let (matrix, op) = (&matrix, NON_TRANSPOSE);
            // SAFETY: as for SpMV, with arrays of this shape.
            let status = unsafe {
                match typed.products {
                    Products::Double(_, mm) => {
                        mm(op, 1.0, matrix.raw, GENERAL, layout, b, n, b_ld, 0.0, c, c_ld)
                    }
                    Products::Single(_, mm) => {
                        mm(op, 1.0, matrix.raw, GENERAL, layout, b, n, b_ld, 0.0, c, c_ld)
                    }
                }
            };
            check(status, "mm")
        };
        Ok(Prepared { analysis_ms, bytes: -1.0, note: String::new(), run: Box::new(run) })
    }

    fn spgemm<'a, T: Number>(
        &'a self,
        _: &What,
        a: &'a MatrixOperand<'_, T>,
        b: Option<&'a MatrixOperand<'_, T>>,
    ) -> Result<Box<dyn SparseProduct<T> + 'a>> {
        let export = self.typed::<T>()?.export;
        let matrix = self.matrix(a)?;
        let b = b.map(|b| self.matrix(b)).transpose()?;
        Ok(Box::new(MklProduct { mkl: self, export, a: matrix, b, c: None }))
    }

    fn settle(&self) {
        std::thread::sleep(REST);
    }
}

struct MklProduct<'a> {
    mkl: &'a Mkl,
    export: Export,
    a: MklMatrix<'a>,
    b: Option<MklMatrix<'a>>,
    c: Option<MklMatrix<'a>>,
}

impl MklProduct<'_> {
    /// Runs a stage of the product; `raw` is NULL, or C, whose handle stays the same.
    fn multiply(&self, stage: i32, raw: &mut Raw) -> Result<()> {
        let (a, b) = (self.a.raw, self.b.as_ref().unwrap_or(&self.a).raw);
        // SAFETY: the handles are live and the answer is valid for a write.
        let status =
            unsafe { (self.mkl.sp2m)(NON_TRANSPOSE, GENERAL, a, NON_TRANSPOSE, GENERAL, b, stage, raw) };
        check(status, "sp2m")
    }
}

impl<T: Number> SparseProduct<T> for MklProduct<'_> {
    fn run(&mut self) -> Result<f64> {
        self.c = None;
        let mkl = self.mkl;
        let mut raw = std::ptr::null_mut();
        let start = Instant::now();
        self.multiply(FULL_MULT, &mut raw)?;
        let c = MklMatrix { raw, mkl };
        // SAFETY: sp2m made it.
        check(unsafe { (mkl.order)(c.raw) }, "order")?;
        let seconds = start.elapsed().as_secs_f64();
        self.c = Some(c);
        Ok(seconds)
    }

    fn again(&mut self) -> Result<Option<f64>> {
        let c = self.c.as_ref().ok_or("nothing was computed")?;
        let mut raw = c.raw;
        let start = Instant::now();
        self.multiply(FINALIZE_MULT, &mut raw)?;
        let seconds = start.elapsed().as_secs_f64();
        if raw != c.raw {
            return Err("sp2m made another matrix".into());
        }
        Ok(Some(seconds))
    }

    fn result(&mut self) -> Result<(Vec<i32>, Vec<i32>, Vec<T>)> {
        let c = self.c.as_ref().ok_or("nothing was computed")?;
        let (mut base, mut rows, mut cols) = (0, 0, 0);
        let (mut starts, mut ends, mut indices) = [const { std::ptr::null_mut::<i32>() }; 3].into();
        let mut values = std::ptr::null_mut();
        // SAFETY: the handle is live, and the answers are valid for writes.
        let status = unsafe {
            (self.export)(
                c.raw,
                &mut base,
                &mut rows,
                &mut cols,
                &mut starts,
                &mut ends,
                &mut indices,
                &mut values,
            )
        };
        check(status, "export_csr")?;
        let rows = usize::try_from(rows)?;
        if base != 0 || rows == 0 {
            return Err(format!("C has base {base} and {rows} rows").into());
        }
        let (mut offsets, mut out_indices) = (room(rows + 1)?, Vec::new());
        // SAFETY: starts and ends have an element for each row; with ends that are
        // the next starts, so have the arrays up to the last end.
        unsafe {
            let (starts, ends) =
                (std::slice::from_raw_parts(starts, rows), std::slice::from_raw_parts(ends, rows));
            if starts[0] != 0 || starts[1..] != ends[..rows - 1] {
                return Err("C has gaps between its rows".into());
            }
            offsets.extend_from_slice(starts);
            offsets.push(ends[rows - 1]);
            let nnz = usize::try_from(ends[rows - 1])?;
            let mut out_values = blank::<T>(nnz)?;
            if nnz > 0 {
                out_indices.try_reserve_exact(nnz)?;
                out_indices.extend_from_slice(std::slice::from_raw_parts(indices, nnz));
                out_values.copy_from_slice(std::slice::from_raw_parts(values.cast::<T>(), nnz));
            }
            Ok((offsets, out_indices, out_values))
        }
    }

    fn peak_bytes(&self) -> f64 {
        -1.0
    }

    fn note(&self) -> String {
        "C's allocation included".into()
    }
}

//! Libraries on the CPU whose products have an inspector and an executor: [`mkl`] and [`aocl`], opened while
//! the program runs. They use 32-bit indices and as many threads as the library, and are timed after hints
//! and their optimize call.

mod aocl;
mod mkl;

use std::ffi::c_void;
use std::time::{Duration, Instant};

use client::{Array, Memory, MemoryMut, Session};
use tarsia::facade::{pool_size, BackendKind, DataType, IndexType, Order};

use super::{Choice, Dense, Prepared, SparseProduct, Vendor};
use crate::bench::number::{blank, room, Number};
use crate::bench::report::AT_VERSION;
use crate::bench::runs::{Layout, MatrixOperand};
use crate::bench::Op;
use crate::Result;

/// Pause after a call: the threads of both libraries' OpenMP keep their cores busy for 200 ms unless
/// KMP_BLOCKTIME says otherwise.
const REST: Duration = Duration::from_millis(250);
/// Number of calls that optimize is told to expect: many, since a plan is executed many times.
const CALLS: i32 = 1000;

type Raw = *mut c_void;

/// A library of the table.
struct Known {
    /// Name in tables, and in --against.
    name: &'static str,
    open: fn(path: Option<&str>, threads: i32) -> Result<Opened>,
    /// Names of its ways to make a sparse product, and whether each sorts C.
    sparse: &'static [(&'static str, bool)],
    /// True if a C that is sorted stays so when it gets new values.
    stays_sorted: bool,
}

/// The libraries, in the order in which they are opened: MKL finds its own OpenMP only if it is the first.
const KNOWN: [Known; 2] = [
    Known { name: "mkl", open: mkl::open, sparse: &[("sp2m+order", true)], stays_sorted: true },
    Known {
        name: "aocl",
        open: aocl::open,
        sparse: &[("sp2m", false), ("sp2m+order", true)],
        stays_sorted: false,
    },
];

/// A library that has been opened.
struct Opened {
    api: Box<dyn Api>,
    /// Name and version for people.
    version: String,
    /// The version's number.
    number: String,
}

/// A matrix in CSR, counted from 0.
struct Arrays {
    data: DataType,
    rows: i32,
    cols: i32,
    nnz: i32,
    offsets: *mut i32,
    indices: *mut i32,
    values: Raw,
}

/// The matrix of a product: its handle, the type of its values, and whether it is transposed.
#[derive(Clone, Copy)]
struct Call {
    a: Raw,
    data: DataType,
    transposed: bool,
}

/// A dense factor, and the distance between rows or columns of C, which has the same order.
struct Factor {
    order: Order,
    values: *const c_void,
    n: i32,
    ld: i32,
    c_ld: i32,
}

/// Arrays of a matrix that a library has made; a row's end need not be the next row's start.
struct Exported {
    base: i32,
    rows: i32,
    starts: *mut i32,
    ends: *mut i32,
    indices: *mut i32,
    values: Raw,
}

/// Part of a sparse product.
#[derive(Clone, Copy, PartialEq)]
enum Stage {
    /// All of it.
    Full,
    /// C has its pattern, and gets values from the factors' present values.
    Finalize,
}

/// The functions that the libraries have in common; they return the library's status.
///
/// # Safety
/// Handles are live and of the type that the call names; arrays have the lengths that the matrices say, and
/// outlive the handles that are made of them.
trait Api {
    /// Returns what the names of statuses begin with, and the rest of each, by number; 0 is success.
    fn statuses(&self) -> (&'static str, &'static [&'static str]);
    unsafe fn create(&self, raw: &mut Raw, arrays: &Arrays) -> i32;
    unsafe fn destroy(&self, raw: Raw);
    unsafe fn hint_mv(&self, call: Call) -> i32;
    unsafe fn hint_mm(&self, call: Call, b: &Factor) -> i32;
    unsafe fn optimize(&self, a: Raw) -> i32;
    /// Computes y = op(A)·x.
    unsafe fn mv(&self, call: Call, x: *const c_void, y: Raw) -> i32;
    /// Computes C = op(A)·B.
    unsafe fn mm(&self, call: Call, b: &Factor, c: Raw) -> i32;
    /// Computes C = A·B.
    unsafe fn sp2m(&self, a: Raw, b: Raw, stage: Stage, c: &mut Raw) -> i32;
    /// Sorts the rows.
    unsafe fn order(&self, a: Raw) -> i32;
    unsafe fn export(&self, data: DataType, a: Raw, to: &mut Exported) -> i32;
}

impl Opened {
    fn check(&self, status: i32, function: &str) -> Result<()> {
        let (prefix, names) = self.api.statuses();
        match usize::try_from(status).ok().and_then(|at| Some((at, names.get(at)?))) {
            Some((0, _)) => Ok(()),
            Some((_, name)) => Err(format!("{function} {prefix}{name}").into()),
            None => Err(format!("{function} status {status}").into()),
        }
    }

    fn matrix<'a, T: Number>(&'a self, a: &'a MatrixOperand<'_, T>) -> Result<Handle<'a>> {
        let (rows, cols) = a.stored_shape();
        let (offsets, indices) = a.narrow()?;
        let values: *mut T = (&a.values).view().as_ptr().cast_mut();
        let arrays = Arrays {
            data: T::TYPE,
            rows: i32::try_from(rows)?,
            cols: i32::try_from(cols)?,
            nnz: i32::try_from(a.host.nnz())?,
            offsets: offsets.view().as_ptr().cast_mut(),
            indices: indices.view().as_ptr().cast_mut(),
            values: values.cast(),
        };
        let mut raw = std::ptr::null_mut();
        // SAFETY: the arrays have these lengths and types, outlive the handle, and are not written: that
        // takes calls that nobody makes.
        self.check(unsafe { self.api.create(&mut raw, &arrays) }, "create_csr")?;
        Ok(Handle { raw, library: self })
    }
}

/// A library's handle of a matrix.
struct Handle<'a> {
    raw: Raw,
    library: &'a Opened,
}

impl Handle<'_> {
    fn call<T: Number>(&self, a: &MatrixOperand<'_, T>) -> Call {
        Call { a: self.raw, data: T::TYPE, transposed: a.op.transposes() }
    }
}

impl Drop for Handle<'_> {
    fn drop(&mut self) {
        // SAFETY: the library made it.
        unsafe { self.library.api.destroy(self.raw) };
    }
}

/// The libraries that take part.
pub struct Peers(Vec<(&'static Known, Opened)>);

/// A product of a library: its number among [`Peers`], and for sparse products whether C is sorted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct What {
    peer: usize,
    is_sorted: bool,
}

impl Peers {
    /// Opens the libraries of these names: each from its file, or else where the loader finds it.
    pub fn open(session: &Session, wanted: &[(&str, Option<&str>)]) -> Result<Self> {
        if session.kind() != BackendKind::Host {
            let names: Vec<String> = wanted.iter().map(|(name, _)| name.to_uppercase()).collect();
            let run = if names.len() == 1 { "runs" } else { "run" };
            return Err(format!("{} {run} on the CPU: --backend host", names.join(" and ")).into());
        }
        let mut out = Vec::new();
        for known in &KNOWN {
            if let Some((_, path)) = wanted.iter().find(|(name, _)| *name == known.name) {
                out.push((known, (known.open)(*path, pool_size() as i32)?));
            }
        }
        Ok(Peers(out))
    }

    /// Returns the name of a library for tables, with its version where there are several.
    fn implementation(&self, (known, opened): &(&Known, Opened)) -> String {
        match self.0.len() {
            1 => known.name.into(),
            _ => format!("{}{AT_VERSION}{}", known.name, opened.number),
        }
    }
}

impl Vendor for Peers {
    type What = What;

    fn version(&self) -> String {
        self.0.iter().map(|(_, opened)| opened.version.as_str()).collect::<Vec<_>>().join(" · ")
    }

    fn number(&self) -> String {
        self.0.first().map_or_else(String::new, |(_, opened)| opened.number.clone())
    }

    fn choices<T: Number>(&self, op: Op, a: &MatrixOperand<'_, T>, layout: Layout) -> Vec<Choice<What>> {
        let has_type = matches!(T::TYPE, DataType::R64F | DataType::R32F);
        if !has_type || layout.op_b.transposes() || a.indices.index() != IndexType::I32 {
            return Vec::new();
        }
        let of_peer = |(peer, library): (usize, &(&'static Known, Opened))| {
            let algs = match op {
                Op::Spmv => vec![("mv".into(), false)],
                Op::Spmm => vec![(format!("mm{}", layout.suffix()), false)],
                Op::Spgemm => library.0.sparse.iter().map(|(alg, sorts)| ((*alg).into(), *sorts)).collect(),
            };
            let implementation = self.implementation(library);
            algs.into_iter().map(move |(alg, is_sorted)| Choice {
                implementation: implementation.clone(),
                alg,
                what: What { peer, is_sorted },
            })
        };
        self.0.iter().enumerate().flat_map(of_peer).collect()
    }

    fn spmv<'a, T: Number>(
        &'a self,
        what: &What,
        a: &'a MatrixOperand<'_, T>,
        x: &'a Array<'_, T>,
        y: &'a mut Array<'_, T>,
    ) -> Result<Prepared<'a>> {
        let library = &self.0[what.peer].1;
        let start = Instant::now();
        let matrix = library.matrix(a)?;
        let call = matrix.call(a);
        // SAFETY: the handle is live.
        unsafe {
            library.check(library.api.hint_mv(call), "set_mv_hint")?;
            library.check(library.api.optimize(call.a), "optimize")?;
        }
        let analysis_ms = 1e3 * start.elapsed().as_secs_f64();
        let x: *const c_void = x.view().as_ptr().cast();
        let y: Raw = y.view_mut().as_mut_ptr().cast();
        let run = move || {
            let Handle { library, .. } = &matrix;
            // SAFETY: x and y are borrowed for as long as this can be called and have the lengths of the
            // matrix; the types are those of the handle, which the closure owns.
            library.check(unsafe { library.api.mv(call, x, y) }, "mv")
        };
        Ok(Prepared { analysis_ms, bytes: -1.0, note: String::new(), run: Box::new(run) })
    }

    fn spmm<'a, T: Number>(
        &'a self,
        what: &What,
        a: &'a MatrixOperand<'_, T>,
        b: Dense<'a, T>,
        c: &'a mut Array<'_, T>,
    ) -> Result<Prepared<'a>> {
        let library = &self.0[what.peer].1;
        let n = i32::try_from(b.cols)?;
        let (ld, c_ld) = match b.layout.order {
            Order::Row => (n, n),
            Order::Col => (i32::try_from(b.rows)?, i32::try_from(a.host.rows)?),
        };
        let values: *const T = b.array.view().as_ptr();
        let factor = Factor { order: b.layout.order, values: values.cast(), n, ld, c_ld };
        let start = Instant::now();
        let matrix = library.matrix(a)?;
        let call = matrix.call(a);
        // SAFETY: the handle is live.
        unsafe {
            library.check(library.api.hint_mm(call, &factor), "set_mm_hint")?;
            library.check(library.api.optimize(call.a), "optimize")?;
        }
        let analysis_ms = 1e3 * start.elapsed().as_secs_f64();
        let c: Raw = c.view_mut().as_mut_ptr().cast();
        let run = move || {
            let Handle { library, .. } = &matrix;
            // SAFETY: as for SpMV, with arrays of this shape.
            library.check(unsafe { library.api.mm(call, &factor, c) }, "mm")
        };
        Ok(Prepared { analysis_ms, bytes: -1.0, note: String::new(), run: Box::new(run) })
    }

    fn spgemm<'a, T: Number>(
        &'a self,
        what: &What,
        a: &'a MatrixOperand<'_, T>,
        b: Option<&'a MatrixOperand<'_, T>>,
    ) -> Result<Box<dyn SparseProduct<T> + 'a>> {
        let (known, library) = &self.0[what.peer];
        let (a, b) = (library.matrix(a)?, b.map(|b| library.matrix(b)).transpose()?);
        let sorts_again = what.is_sorted && !known.stays_sorted;
        Ok(Box::new(Product { library, sorts: what.is_sorted, sorts_again, a, b, c: None }))
    }

    fn settle(&self) {
        std::thread::sleep(REST);
    }
}

struct Product<'a> {
    library: &'a Opened,
    /// True if rows of C are sorted.
    sorts: bool,
    /// True if they are sorted again after new values.
    sorts_again: bool,
    a: Handle<'a>,
    b: Option<Handle<'a>>,
    c: Option<Handle<'a>>,
}

impl Product<'_> {
    /// Runs a stage of the product, and sorts its rows; `raw` is NULL, or C, whose handle stays the same.
    fn multiply(&self, stage: Stage, sorts: bool, raw: &mut Raw) -> Result<()> {
        let (a, b) = (self.a.raw, self.b.as_ref().unwrap_or(&self.a).raw);
        // SAFETY: the handles are live, and C is one after the product.
        unsafe {
            self.library.check(self.library.api.sp2m(a, b, stage, raw), "sp2m")?;
            if sorts {
                self.library.check(self.library.api.order(*raw), "order")?;
            }
        }
        Ok(())
    }
}

impl<T: Number> SparseProduct<T> for Product<'_> {
    fn run(&mut self) -> Result<f64> {
        self.c = None;
        let mut raw = std::ptr::null_mut();
        let start = Instant::now();
        let done = self.multiply(Stage::Full, self.sorts, &mut raw);
        let seconds = start.elapsed().as_secs_f64();
        self.c = (!raw.is_null()).then_some(Handle { raw, library: self.library });
        done.map(|()| seconds)
    }

    fn again(&mut self) -> Result<Option<f64>> {
        let c = self.c.as_ref().ok_or("nothing was computed")?;
        let mut raw = c.raw;
        let start = Instant::now();
        self.multiply(Stage::Finalize, self.sorts_again, &mut raw)?;
        let seconds = start.elapsed().as_secs_f64();
        if raw != c.raw {
            return Err("sp2m made another matrix".into());
        }
        Ok(Some(seconds))
    }

    fn result(&mut self) -> Result<(Vec<i32>, Vec<i32>, Vec<T>)> {
        let c = self.c.as_ref().ok_or("nothing was computed")?;
        let [starts, ends, indices] = [const { std::ptr::null_mut() }; 3];
        let mut found = Exported { base: 0, rows: 0, starts, ends, indices, values: std::ptr::null_mut() };
        // SAFETY: the handle is live.
        self.library.check(unsafe { self.library.api.export(T::TYPE, c.raw, &mut found) }, "export_csr")?;
        let Exported { base, rows, starts, ends, indices, values } = found;
        let rows = usize::try_from(rows)?;
        if base != 0 || rows == 0 {
            return Err(format!("C has base {base} and {rows} rows").into());
        }
        let (mut offsets, mut out_indices) = (room(rows + 1)?, Vec::new());
        // SAFETY: starts and ends have an element for each row; with ends that are the next starts, so have
        // the arrays up to the last end.
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

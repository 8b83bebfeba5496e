//! cuSPARSE, opened while the program runs.
//!
//! - [`api`]: cuSPARSE's functions
//! - [`libraries`]: one or several versions of it at once
//! - [`dense`]: SpMV and SpMM
//! - [`sparse`]: SpGEMM, phase by phase
//! - [`reuse`]: SpGEMMreuse, whose numeric phase can be run again

mod api;
mod dense;
mod libraries;
mod product;
mod reuse;
mod sparse;

use std::any::{Any, TypeId};
use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::c_void;
use std::rc::Rc;

use bytemuck::Pod;
use client::{Array, Memory, MemoryMut, Session};
use matrices::owned::OwnedCsr;
use tarsia::facade::{Device, Entered, IndexType};

pub use self::libraries::Libraries;

use self::api::{check, Functions, Raw};
use self::libraries::Opened;
use super::formats::{self, block_fill, slice_fill};
use super::{Choice, Dense, Prepared, SparseProduct, Vendor};
use crate::bench::args::NO_PREPROCESS;
use crate::bench::number::Number;
use crate::bench::runs::{Indices, Layout, MatrixOperand};
use crate::bench::Op;
use crate::Result;

/// Largest fill of slices that is tried; the baselines have the same limit.
const MOST_SLICE_FILL: f64 = 8.0;
/// Block sizes that are tried if they divide the matrix's dimensions.
const BLOCKS: [usize; 5] = [3, 6, 8, 16, 32];

/// Converted matrices, by value type and block size (0: slices).
type Conversions = HashMap<(TypeId, usize), Rc<dyn Any>>;

/// An open cuSPARSE with a handle in the session's context.
pub struct Cusparse<'s> {
    functions: Functions,
    handle: Raw,
    session: &'s Session,
    version: String,
    /// Largest fill of blocks that is tried.
    most_fill: f64,
    /// Block sizes with their fill, for the present matrix.
    blocks: Vec<(usize, f64)>,
    slice_fill: f64,
    /// Conversions of the present matrix, which all libraries of a run share.
    converted: Rc<RefCell<Conversions>>,
    // The last field, dropped last: the context stays current until the handle is gone.
    _entered: Entered,
}

/// An algorithm of cuSPARSE with its format and settings.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum What {
    /// CSR, with cuSPARSE's value of the algorithm.
    Csr { alg: i32, preprocess: bool },
    /// COO.
    Coo { alg: i32 },
    /// Sliced ELL.
    Sell,
    /// BSR with blocks of this size.
    Bsr { size: usize },
    /// cusparseSpMVOp.
    Operator { alg: i32 },
    /// SpGEMM; `chunk` is the part of the products in a chunk, for algorithms that need it.
    Sparse { alg: i32, chunk: Option<f32> },
    /// SpGEMMreuse.
    Reuse { alg: i32 },
}

impl<'s> Cusparse<'s> {
    /// Makes a handle of an open library.
    fn new(session: &'s Session, opened: Opened, most_fill: f64) -> Result<Self> {
        // The context stays current for as long as cuSPARSE is used, so that its runtime works in the context
        // of the session and in no other.
        let entered = Device::open(Some(0))?.enter()?;
        let Opened { functions, version, .. } = opened;
        let mut handle = std::ptr::null_mut();
        // SAFETY: the answer is valid for a write; the context is current.
        check(unsafe { (functions.cusparseCreate)(&mut handle) }, "cusparseCreate")?;
        Ok(Cusparse {
            functions,
            handle,
            session,
            version,
            most_fill,
            blocks: Vec::new(),
            slice_fill: 1.0,
            converted: Rc::default(),
            _entered: entered,
        })
    }

    /// Shares the statistics and conversions of the matrix with another library, which has counted and made
    /// them.
    fn share_matrix(&mut self, other: &Self) {
        self.blocks.clone_from(&other.blocks);
        self.slice_fill = other.slice_fill;
        self.converted = Rc::clone(&other.converted);
    }

    /// Returns a conversion of the present matrix, which is made once for each value type.
    fn conversion<R: 'static, T: 'static>(
        &self,
        size: usize,
        make: impl FnOnce() -> Result<R>,
    ) -> Result<Rc<R>> {
        let key = (TypeId::of::<T>(), size);
        if let Some(found) = self.converted.borrow().get(&key) {
            if let Ok(found) = Rc::clone(found).downcast::<R>() {
                return Ok(found);
            }
        }
        let made = Rc::new(make()?);
        self.converted.borrow_mut().insert(key, Rc::clone(&made) as Rc<dyn Any>);
        Ok(made)
    }
}

impl Drop for Cusparse<'_> {
    fn drop(&mut self) {
        // SAFETY: made by `new`, whose context is still current; everything
        // that was made with it borrows this and is gone.
        unsafe { (self.functions.cusparseDestroy)(self.handle) };
    }
}

impl Vendor for Cusparse<'_> {
    type What = What;

    fn version(&self) -> String {
        format!("cuSPARSE {}", self.version)
    }

    fn number(&self) -> String {
        self.version.clone()
    }

    fn set_matrix(&mut self, pattern: &OwnedCsr<()>) -> Result<()> {
        self.converted.borrow_mut().clear();
        self.slice_fill = slice_fill(pattern);
        let divides = |size: &usize| pattern.rows % size == 0 && pattern.cols % size == 0;
        let sizes = BLOCKS.into_iter().filter(divides);
        self.blocks = sizes.map(|size| (size, block_fill(pattern, size))).collect();
        self.blocks.retain(|(_, fill)| *fill <= self.most_fill);
        Ok(())
    }

    fn choices<T: Number>(&self, op: Op, a: &MatrixOperand<'_, T>, layout: Layout) -> Vec<Choice<What>> {
        // Formats other than CSR are offered for the plain case alone.
        let is_plain = a.indices.index() == IndexType::I32 && !a.op.transposes() && !layout.op_b.transposes();
        let suffix = if op == Op::Spmm { layout.suffix() } else { String::new() };
        let mut out = Vec::new();
        let mut add = |implementation: &str, alg: &str, what| {
            if !(is_plain || implementation == "cusparse") {
                return;
            }
            // The baselines have row-major operands, for which names have no suffix.
            let alg = format!("{alg}{suffix}");
            out.push(Choice { implementation: implementation.into(), alg, what });
        };
        let blocks = self.blocks.iter().map(|&(size, _)| (format!("BSR_ALG1_b{size}"), What::Bsr { size }));
        match op {
            Op::Spmv => {
                use api::spmv::{COO_1, COO_2, CSR_1, CSR_2, DEFAULT};
                let csr = |alg, preprocess| What::Csr { alg, preprocess };
                add("cusparse", "DEFAULT+pre", csr(DEFAULT, true));
                add("cusparse", "CSR_ALG1+pre", csr(CSR_1, true));
                add("cusparse", "CSR_ALG2+pre", csr(CSR_2, true));
                add("cusparse", "DEFAULT-nopre", csr(DEFAULT, false));
                add("cusparse", "CSR_ALG2-nopre", csr(CSR_2, false));
                for (alg, name) in (0..).zip(["SpMVOp_DEFAULT", "SpMVOp_ALG1", "SpMVOp_ALG2"]) {
                    add("cusparse", name, What::Operator { alg });
                }
                add("cusparse-coo", "COO_ALG1+pre", What::Coo { alg: COO_1 });
                add("cusparse-coo", "COO_ALG2+pre", What::Coo { alg: COO_2 });
                add("cusparse-sell", "SELL32", What::Sell);
                blocks.for_each(|(name, what)| add("cusparse-bsr", &name, what));
            }
            Op::Spmm => {
                use api::spmm::{CSR_1, CSR_2, CSR_3, DEFAULT};
                let algs =
                    [("CSR_ALG1", CSR_1), ("CSR_ALG2", CSR_2), ("CSR_ALG3", CSR_3), ("DEFAULT", DEFAULT)];
                for (name, alg) in algs {
                    add("cusparse", name, What::Csr { alg, preprocess: true });
                }
                for (name, alg) in algs {
                    add("cusparse", &format!("{name}{NO_PREPROCESS}"), What::Csr { alg, preprocess: false });
                }
                blocks.for_each(|(name, what)| add("cusparse-bsr", &name, what));
            }
            Op::Spgemm => {
                use api::spgemm::{ALG_1, ALG_2, ALG_3, DEFAULT, DETERMINISTIC, NON_DETERMINISTIC};
                add("cusparse", "DEFAULT", What::Sparse { alg: DEFAULT, chunk: None });
                add("cusparse", "ALG1", What::Sparse { alg: ALG_1, chunk: None });
                // ALG2 requires a chunk size as well, and does not use it.
                add("cusparse", "ALG2", What::Sparse { alg: ALG_2, chunk: Some(0.2) });
                add("cusparse", "ALG3_c0.2", What::Sparse { alg: ALG_3, chunk: Some(0.2) });
                add("cusparse", "ALG3_c0.05", What::Sparse { alg: ALG_3, chunk: Some(0.05) });
                for (name, alg) in [
                    ("reuse_DEFAULT", DEFAULT),
                    ("reuse_DETERMINISTIC", DETERMINISTIC),
                    ("reuse_NONDETERMINISTIC", NON_DETERMINISTIC),
                ] {
                    add("cusparse", name, What::Reuse { alg });
                }
            }
        }
        out
    }

    fn spmv<'a, T: Number>(
        &'a self,
        what: &What,
        a: &'a MatrixOperand<'_, T>,
        x: &'a Array<'_, T>,
        y: &'a mut Array<'_, T>,
    ) -> Result<Prepared<'a>> {
        self.prepare_spmv(*what, a, x, y)
    }

    fn spmm<'a, T: Number>(
        &'a self,
        what: &What,
        a: &'a MatrixOperand<'_, T>,
        b: Dense<'a, T>,
        c: &'a mut Array<'_, T>,
    ) -> Result<Prepared<'a>> {
        self.prepare_spmm(*what, a, b, c)
    }

    fn spgemm<'a, T: Number>(
        &'a self,
        what: &What,
        a: &'a MatrixOperand<'_, T>,
        b: Option<&'a MatrixOperand<'_, T>>,
    ) -> Result<Box<dyn SparseProduct<T> + 'a>> {
        match what {
            What::Reuse { .. } => Ok(Box::new(reuse::ReuseProduct::new(self, *what, a, b)?)),
            _ => Ok(Box::new(sparse::CusparseProduct::new(self, *what, a, b)?)),
        }
    }
}

/// A descriptor, and arrays that it owns.
struct Descr<'a> {
    raw: Raw,
    destroy: unsafe extern "C" fn(*const c_void) -> i32,
    _arrays: Vec<Box<dyn Keep + 'a>>,
    /// Bytes of the arrays that it owns.
    bytes: usize,
    note: String,
}

/// Any object that is only kept alive.
trait Keep {}
impl<T> Keep for T {}

impl Drop for Descr<'_> {
    fn drop(&mut self) {
        // SAFETY: it was made with the function that belongs to this one.
        unsafe { (self.destroy)(self.raw) };
    }
}

fn address<T: Pod>(array: &Array<'_, T>) -> *const c_void {
    array.view().as_ptr().cast()
}

fn address_mut<T: Pod>(array: &mut Array<'_, T>) -> *mut c_void {
    array.view_mut().as_mut_ptr().cast()
}

/// Returns the address of a scalar for cuSPARSE's functions.
fn void<S>(value: &S) -> *const c_void {
    std::ptr::from_ref(value).cast()
}

impl<'s> Cusparse<'s> {
    /// Makes a descriptor of a matrix with the call `make`.
    fn matrix<'a>(&self, name: &str, make: impl FnOnce(&mut Raw) -> i32) -> Result<Descr<'a>> {
        let mut raw = std::ptr::null_mut();
        check(make(&mut raw), name)?;
        let destroy = self.functions.cusparseDestroySpMat;
        Ok(Descr { raw, destroy, _arrays: Vec::new(), bytes: 0, note: String::new() })
    }

    fn csr<'a, T: Number>(&self, a: &'a MatrixOperand<'_, T>) -> Result<Descr<'a>> {
        let ((rows, cols), nnz) = (a.stored_shape(), a.host.nnz() as i64);
        let (offsets, columns, index) = match &a.indices {
            Indices::Narrow(offsets, columns) => (address(offsets), address(columns), api::INDEX_32),
            Indices::Wide(offsets, columns) => (address(offsets), address(columns), api::INDEX_64),
        };
        let arrays = (offsets, columns, address(&a.values));
        let make = self.functions.cusparseCreateConstCsr;
        // SAFETY: the arrays have these lengths and types and outlive the descriptor.
        self.matrix("createCsr", |raw| unsafe {
            let base = api::BASE_ZERO;
            make(raw, rows, cols, nnz, arrays.0, arrays.1, arrays.2, index, index, base, T::TYPE.code())
        })
    }

    fn coo<'a, T: Number>(&'a self, a: &'a MatrixOperand<'_, T>) -> Result<Descr<'a>> {
        let (rows, cols, nnz) = (a.host.rows as i64, a.host.cols as i64, a.host.nnz() as i64);
        let row_indices = self.session.upload(&formats::row_indices(&a.host)?)?;
        let arrays = (address(&row_indices), address(a.narrow()?.1), address(&a.values));
        let make = self.functions.cusparseCreateConstCoo;
        // SAFETY: as in `csr`; the descriptor keeps the array that is new.
        let mut descr = self.matrix("createCoo", |raw| unsafe {
            let (index, base) = (api::INDEX_32, api::BASE_ZERO);
            make(raw, rows, cols, nnz, arrays.0, arrays.1, arrays.2, index, base, T::TYPE.code())
        })?;
        descr.bytes = row_indices.len() * size_of::<i32>();
        descr._arrays.push(Box::new(row_indices));
        Ok(descr)
    }

    fn sell<'a, T: Number>(&'a self, a: &'a MatrixOperand<'_, T>) -> Result<Descr<'a>> {
        if self.slice_fill > MOST_SLICE_FILL {
            return Err(format!("skipped: fill={:.1}", self.slice_fill).into());
        }
        let make = api::need(self.functions.cusparseCreateConstSlicedEll, "cusparseCreateConstSlicedEll")?;
        let host = self.conversion::<_, T>(0, || formats::slices(&a.host))?;
        let (rows, cols, nnz) = (a.host.rows as i64, a.host.cols as i64, a.host.nnz() as i64);
        let slots = host.values.len() as i64;
        let arrays = (&host.offsets[..], &host.indices[..], &host.values[..]);
        // SAFETY: as in `csr`; the descriptor keeps the arrays.
        self.converted("createSlicedEll", arrays, a.host.nnz(), |raw, [at, to, of]| unsafe {
            let (index, base, slice) = (api::INDEX_32, api::BASE_ZERO, formats::SLICE as i64);
            make(raw, rows, cols, nnz, slots, slice, at, to, of, index, index, base, T::TYPE.code())
        })
    }

    fn bsr<'a, T: Number>(&'a self, a: &'a MatrixOperand<'_, T>, size: usize) -> Result<Descr<'a>> {
        let make = api::need(self.functions.cusparseCreateConstBsr, "cusparseCreateConstBsr")?;
        let host = self.conversion::<_, T>(size, || formats::blocks(&a.host, size))?;
        let (rows, cols, nnz) = (host.rows as i64, host.cols as i64, host.indices.len() as i64);
        let block = host.size as i64;
        let arrays = (&host.offsets[..], &host.indices[..], &host.values[..]);
        // SAFETY: as in `csr`; the descriptor keeps the arrays.
        self.converted("createBsr", arrays, a.host.nnz(), |raw, [at, to, of]| unsafe {
            let (index, base, order) = (api::INDEX_32, api::BASE_ZERO, api::ORDER_ROW);
            let value = T::TYPE.code();
            make(raw, rows, cols, nnz, block, block, at, to, of, index, index, base, value, order)
        })
    }

    /// Uploads the arrays of a matrix of `nnz` entries in another format than the user's (offsets, indices,
    /// values), and describes it by `make`.
    fn converted<'a, T: Number>(
        &'a self,
        name: &str,
        (offsets, indices, values): (&[i32], &[i32], &[T]),
        nnz: usize,
        make: impl FnOnce(&mut Raw, [*const c_void; 3]) -> i32,
    ) -> Result<Descr<'a>> {
        let bytes = size_of_val(offsets) + size_of_val(indices) + size_of_val(values);
        let note = format!("fill={:.3}", values.len() as f64 / nnz.max(1) as f64);
        let offsets = self.session.upload(offsets)?;
        let (indices, values) = (self.session.upload(indices)?, self.session.upload(values)?);
        let arrays = [address(&offsets), address(&indices), address(&values)];
        let mut descr = self.matrix(name, |raw| make(raw, arrays))?;
        (descr.bytes, descr.note) = (bytes, note);
        descr._arrays = vec![Box::new(offsets), Box::new(indices), Box::new(values)];
        Ok(descr)
    }
}

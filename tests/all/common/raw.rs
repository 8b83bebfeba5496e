//! Calls that the safe client does not make, on the C functions themselves.

use std::ptr::{null, null_mut};

use tarsia::capi::client::{arg, check, Plan, Session, Sparse};
use tarsia::capi::objects::{tarsiaConstDnMatDescr_t, tarsiaConstDnVecDescr_t, tarsiaSpMatDescr_t};
use tarsia::capi::{dnmat, dnvec, handle, spgemm, spmat, spmm, spmv};
use tarsia::error::Result;
use tarsia::types::{ComputeType, Element, IndexBase, Operation};

use super::dense::Dense;
use super::number::Value;
use super::output::Output;

/// A dense vector descriptor. It is made from a pointer to mutable memory;
/// only y is ever written through it.
struct Vector(tarsiaConstDnVecDescr_t);

impl Vector {
    fn new<V: Element>(values: *mut V, len: usize) -> Result<Self> {
        let mut raw = null_mut();
        // SAFETY: the answer is valid for a write; nothing is read here.
        check(unsafe { dnvec::tarsiaCreateDnVec(&mut raw, len as i64, values.cast(), arg(V::TYPE)) })?;
        Ok(Vector(raw))
    }
}

impl Drop for Vector {
    fn drop(&mut self) {
        dnvec::tarsiaDestroyDnVec(self.0);
    }
}

/// As `Vector`, for a dense matrix.
struct Matrix(tarsiaConstDnMatDescr_t);

impl Matrix {
    fn new<V: Value>(of: &Dense<V>, values: *mut V) -> Result<Self> {
        let (s, mut raw) = (of.shape, null_mut());
        // SAFETY: as in `Vector::new`.
        check(unsafe {
            dnmat::tarsiaCreateDnMat(
                &mut raw,
                s.rows,
                s.cols,
                s.ld,
                values.cast(),
                arg(V::TYPE),
                arg(s.order),
            )
        })?;
        Ok(Matrix(raw))
    }
}

impl Drop for Matrix {
    fn drop(&mut self) {
        dnmat::tarsiaDestroyDnMat(self.0);
    }
}

/// Workspace that the test brings, until it is dropped.
pub struct UserWorkspace<'a> {
    session: &'a Session,
    _memory: Vec<u128>,
}

impl<'a> UserWorkspace<'a> {
    /// `tarsiaSetWorkspace` with this many bytes; with 0 the handle's own stays.
    pub fn new(session: &'a Session, bytes: usize) -> Result<Self> {
        let mut memory = vec![u128::MAX; bytes.div_ceil(16)];
        let pointer = if bytes == 0 { null_mut() } else { memory.as_mut_ptr().cast() };
        // SAFETY: the memory has that many bytes and is the handle's until it
        // is taken back.
        check(unsafe { handle::tarsiaSetWorkspace(session.raw(), pointer, bytes) })?;
        Ok(UserWorkspace { session, _memory: memory })
    }
}

impl Drop for UserWorkspace<'_> {
    fn drop(&mut self) {
        // SAFETY: NULL takes the memory back.
        unsafe { handle::tarsiaSetWorkspace(self.session.raw(), null_mut(), 0) };
    }
}

/// `tarsiaSpMV_once`.
pub fn spmv_once<S: Element, X: Element, Y: Element>(
    session: &Session,
    op: Operation,
    (alpha, beta): (S, S),
    a: &Sparse<'_>,
    x: &[X],
    y: &mut [Y],
    compute: ComputeType,
) -> Result<()> {
    let (x, y) = (Vector::new(x.as_ptr().cast_mut(), x.len())?, Vector::new(y.as_mut_ptr(), y.len())?);
    let (alpha, beta) = ((&raw const alpha).cast(), (&raw const beta).cast());
    // SAFETY: the scalars have the compute type, or the call refuses the types
    // before it reads them; descriptors say what the slices are, x is only read.
    check(unsafe {
        spmv::tarsiaSpMV_once(session.raw(), arg(op), alpha, a.raw(), x.0, beta, y.0.cast_mut(), arg(compute))
    })
}

/// `tarsiaSpMM_once`.
pub fn spmm_once<S: Element, X: Value, Y: Value>(
    session: &Session,
    (op_a, op_b): (Operation, Operation),
    (alpha, beta): (S, S),
    a: &Sparse<'_>,
    b: &Dense<X>,
    c: &mut Dense<Y>,
    compute: ComputeType,
) -> Result<()> {
    let c_values = c.values.as_mut_ptr();
    let (b, c) = (Matrix::new(b, b.values.as_ptr().cast_mut())?, Matrix::new(c, c_values)?);
    let (alpha, beta) = ((&raw const alpha).cast(), (&raw const beta).cast());
    // SAFETY: as in `spmv_once`; B is only read.
    check(unsafe {
        spmm::tarsiaSpMM_once(
            session.raw(),
            arg(op_a),
            arg(op_b),
            alpha,
            a.raw(),
            b.0,
            beta,
            c.0.cast_mut(),
            arg(compute),
        )
    })
}

/// `tarsiaSpGEMM_numeric` into a CSC matrix.
pub fn numeric_csc<S: Element, Y: Value>(
    session: &Session,
    plan: &Plan<'_>,
    alpha: S,
    (rows, cols): (i64, i64),
    c: &mut Output<Y>,
    base: IndexBase,
) -> Result<()> {
    let mut raw: tarsiaSpMatDescr_t = null_mut();
    let (nnz, offsets, indices) = (c.values.len() as i64, c.offsets.as_mut_ptr(), c.indices.as_mut_ptr());
    let (offset_type, index_type) = (c.offsets.width(), c.indices.width());
    // SAFETY: `c` has cols + 1 offsets, nnz indices and values of these types,
    // borrowed during the call; the descriptor is gone after it.
    check(unsafe {
        spmat::tarsiaCreateCsc(
            &mut raw,
            rows,
            cols,
            nnz,
            offsets,
            indices,
            c.values.as_mut_ptr().cast(),
            arg(offset_type),
            arg(index_type),
            arg(base),
            arg(Y::TYPE),
        )
    })?;
    // SAFETY: alpha has the compute type; C as above.
    let result = check(unsafe {
        spgemm::tarsiaSpGEMM_numeric(session.raw(), plan.raw(), (&raw const alpha).cast(), raw)
    });
    spmat::tarsiaDestroySpMat(raw);
    result
}

/// `tarsiaSpGEMM_updateValues`; both arrays must be as long as the plan's.
pub fn update_spgemm<'a, A: Element, B: Element>(
    session: &Session,
    plan: &Plan<'a>,
    a: Option<&'a [A]>,
    b: Option<&'a [B]>,
) -> Result<()> {
    let (a, b) = (a.map_or(null(), <[A]>::as_ptr), b.map_or(null(), <[B]>::as_ptr));
    // SAFETY: the slices are as the descriptors' and live as long as the plan.
    check(unsafe { spgemm::tarsiaSpGEMM_updateValues(session.raw(), plan.raw(), a.cast(), b.cast()) })
}

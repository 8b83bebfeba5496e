//! Calls of C functions that the safe client does not make.

use std::ptr::{null, null_mut};

use client::{arg, check, DenseLayout, Plan, Session, Sparse, View, ViewMut};
use libc::c_void;
use tarsia::capi::objects::{tarsiaConstDnMatDescr_t, tarsiaConstDnVecDescr_t, tarsiaSpMatDescr_t};
use tarsia::capi::{dnmat, dnvec, handle, spgemm, spmat, spmm, spmv};
use tarsia::facade::{ComputeType, Element, Index, IndexBase, Operation, Result};

use super::dense::Dense;
use super::number::Value;
use super::staged::{written, Operand, OperandMut, Scalars, Staged};

/// Dense vector descriptor, made from a pointer to mutable memory, through which only y is written.
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

/// Dense matrix descriptor, like `Vector`.
struct DenseDescriptor(tarsiaConstDnMatDescr_t);

impl DenseDescriptor {
    fn new<V: Value>(s: DenseLayout, values: *mut V) -> Result<Self> {
        let mut raw = null_mut();
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
        Ok(DenseDescriptor(raw))
    }
}

impl Drop for DenseDescriptor {
    fn drop(&mut self) {
        dnmat::tarsiaDestroyDnMat(self.0);
    }
}

/// Workspace of the user, which a handle has until this is dropped.
pub struct UserWorkspace<'a> {
    session: &'a Session,
    _memory: Staged<u128>,
}

impl<'a> UserWorkspace<'a> {
    /// Calls `tarsiaSetWorkspace` with this many bytes; with 0 the handle keeps its own workspace.
    pub fn new(session: &'a Session, bytes: usize) -> Result<Self> {
        let mut memory = Staged::new(session.kind(), &vec![u128::MAX; bytes.div_ceil(16)]);
        let pointer = if bytes == 0 { null_mut() } else { memory.view_mut().as_mut_ptr().cast() };
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

/// Calls `tarsiaSpMV_once`.
pub fn spmv_once<S: Element, X: Operand + ?Sized, Y: OperandMut + ?Sized>(
    session: &Session,
    op: Operation,
    (alpha, beta): (S, S),
    a: &Sparse<'_>,
    x: &X,
    y: &mut Y,
    compute: ComputeType,
) -> Result<()>
where
    X::Item: Element,
    Y::Item: Element,
{
    let (x_range, x) = (x.range(), x.stage(session.kind()));
    let x = x.part(x_range);
    let scalars = Scalars::new(session, alpha, beta)?;
    let [alpha, beta] = scalars.addresses();
    written(session, y, |y| {
        let (x, y) = (Vector::new(x.as_ptr().cast_mut(), x.len())?, Vector::new(y.as_mut_ptr(), y.len())?);
        // SAFETY: the scalars have the compute type, or the call refuses the types
        // before it reads them; descriptors say what the arrays are, x is only read.
        check(unsafe {
            let (op, y, compute) = (arg(op), y.0.cast_mut(), arg(compute));
            spmv::tarsiaSpMV_once(session.raw(), op, alpha, a.raw(), x.0, beta, y, compute)
        })
    })
}

/// Calls `tarsiaSpMM_once`.
pub fn spmm_once<S: Element, X: Value, Y: Value>(
    session: &Session,
    (op_a, op_b): (Operation, Operation),
    (alpha, beta): (S, S),
    a: &Sparse<'_>,
    b: &Dense<X>,
    c: &mut Dense<Y>,
    compute: ComputeType,
) -> Result<()> {
    let staged = b.values.stage(session.kind());
    let b = DenseDescriptor::new(b.shape, staged.part(b.values.range()).as_ptr().cast_mut())?;
    let scalars = Scalars::new(session, alpha, beta)?;
    let [alpha, beta] = scalars.addresses();
    let shape = c.shape;
    written(session, &mut c.values, |c| {
        let c = DenseDescriptor::new(shape, c.as_mut_ptr())?;
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
    })
}

/// Calls `tarsiaSpGEMM_numeric` with a CSC matrix as C. alpha is the address of a number of the compute type,
/// in the memory that the handle's pointer mode says.
pub fn numeric_csc<I: Index, J: Index, Y: Element>(
    session: &Session,
    plan: &Plan<'_>,
    alpha: *const c_void,
    (rows, cols): (i64, i64),
    (offsets, indices, values): (ViewMut<'_, I>, ViewMut<'_, J>, ViewMut<'_, Y>),
    base: IndexBase,
) -> Result<()> {
    assert_eq!((offsets.len() as i64, indices.len()), (cols + 1, values.len()));
    let mut raw: tarsiaSpMatDescr_t = null_mut();
    // SAFETY: C has cols + 1 offsets, nnz indices and values of these types,
    // borrowed during the call; the descriptor is gone after it.
    check(unsafe {
        spmat::tarsiaCreateCsc(
            &mut raw,
            rows,
            cols,
            values.len() as i64,
            offsets.as_mut_ptr().cast(),
            indices.as_mut_ptr().cast(),
            values.as_mut_ptr().cast(),
            arg(I::TYPE),
            arg(J::TYPE),
            arg(base),
            arg(Y::TYPE),
        )
    })?;
    // SAFETY: alpha has the compute type; C as above.
    let result = check(unsafe { spgemm::tarsiaSpGEMM_numeric(session.raw(), plan.raw(), alpha, raw) });
    spmat::tarsiaDestroySpMat(raw);
    result
}

/// Calls `tarsiaSpGEMM_updateValues`; both arrays must be as long as the plan's.
pub fn update_spgemm<'a, A: Element, B: Element>(
    session: &Session,
    plan: &Plan<'a>,
    a: Option<View<'a, A>>,
    b: Option<View<'a, B>>,
) -> Result<()> {
    let (a, b) = (a.map_or(null(), |a| a.as_ptr()), b.map_or(null(), |b| b.as_ptr()));
    // SAFETY: the arrays are as the descriptors' and live as long as the plan.
    check(unsafe { spgemm::tarsiaSpGEMM_updateValues(session.raw(), plan.raw(), a.cast(), b.cast()) })
}

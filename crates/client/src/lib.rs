//! A safe Rust client of the C functions, for the command line and the tests. It goes through the same
//! `extern "C"` functions as a C program and adds only the lifetimes that C cannot express.

// The client's functions have the arguments of the C functions.
#![allow(clippy::too_many_arguments)]

mod array;
mod into;
mod once;
mod settings;
mod spgemm_values;
mod tile;

use std::ffi::{c_void, CStr};
use std::marker::PhantomData;
use std::mem::MaybeUninit;

use libc::c_char;

pub use array::{Array, Memory, MemoryMut, Scalar, Scratch, View, ViewMut};

use array::Place;
use tarsia::capi::enums::{tarsiaDataType_t, tarsiaIndexBase_t, tarsiaIndexType_t, tarsiaStatus_t, CEnum};
use tarsia::capi::objects::{
    tarsiaConstDnMatDescr_t, tarsiaConstDnVecDescr_t, tarsiaConstSpMatDescr_t, tarsiaDnMatDescr_t,
    tarsiaDnVecDescr_t, tarsiaHandle_t, tarsiaPlan_t, tarsiaSpMatDescr_t,
};
use tarsia::capi::{dnmat, dnvec, handle, memory, plan, spgemm, spmat, spmm, spmv, status, threads};
use tarsia::facade::{
    BackendKind, ComputeType, DataType, Effort, Element, Error, Index, IndexBase, Operation, Order,
    PointerMode, Reorder, Result, SpgemmAlg, SpmmAlg, SpmvAlg, Status,
};

/// Converts a status, with the thread's last message, to a `Result`.
pub fn check(code: tarsiaStatus_t) -> Result<()> {
    match Status::from_code(code as i32) {
        Some(Status::Success) => Ok(()),
        other => Err(Error::new(other.unwrap_or(Status::InternalError), last_message())),
    }
}

/// Returns the error text of this thread's last failed call.
pub fn last_message() -> String {
    let mut buffer = [0u8; 2048];
    // SAFETY: the buffer holds that many bytes.
    unsafe { status::tarsiaGetLastErrorMessage(buffer.as_mut_ptr().cast::<c_char>(), buffer.len()) };
    let end = buffer.iter().position(|&byte| byte == 0).unwrap_or(buffer.len());
    String::from_utf8_lossy(&buffer[..end]).into_owned()
}

/// Calls `tarsiaSetNumThreads`.
pub fn set_num_threads(threads: i32) -> Result<()> {
    check(threads::tarsiaSetNumThreads(threads))
}

/// Calls `tarsiaGetNumThreads`.
pub fn num_threads() -> Result<i32> {
    let mut threads = 0;
    // SAFETY: the answer is valid for a write.
    check(unsafe { threads::tarsiaGetNumThreads(&mut threads) })?;
    Ok(threads)
}

/// Converts an enum value to the form in which a C caller passes it.
pub fn arg<E: CEnum>(value: E::Value) -> MaybeUninit<E> {
    raw_arg(E::code(value))
}

/// Passes any integer as an enum argument, as a C caller may do.
pub fn raw_arg<E: CEnum>(code: i32) -> MaybeUninit<E> {
    const { assert!(std::mem::size_of::<E>() == std::mem::size_of::<i32>()) };
    let mut out = MaybeUninit::<E>::uninit();
    // SAFETY: a C enum is an int of this size.
    unsafe { out.as_mut_ptr().cast::<i32>().write(code) };
    out
}

/// A handle of the library.
#[derive(Debug)]
pub struct Session {
    raw: tarsiaHandle_t,
    kind: BackendKind,
}

// SAFETY: the handle is a token; the library may be called with it from any thread.
unsafe impl Send for Session {}
// SAFETY: as above; calls that share a handle wait for each other.
unsafe impl Sync for Session {}

impl Session {
    /// Calls `tarsiaCreateWithBackend`.
    pub fn new(backend: BackendKind) -> Result<Self> {
        let mut raw = std::ptr::null_mut();
        // SAFETY: `raw` is valid for a write.
        check(unsafe { handle::tarsiaCreateWithBackend(&mut raw, arg(backend), 0) })?;
        let mut session = Session { raw, kind: backend };
        session.kind = session.backend()?;
        Ok(session)
    }

    /// Returns the handle itself.
    pub fn raw(&self) -> tarsiaHandle_t {
        self.raw
    }

    /// Returns the backend with which the handle was made.
    pub fn kind(&self) -> BackendKind {
        self.kind
    }

    /// Calls `tarsiaGetBackend`.
    pub fn backend(&self) -> Result<BackendKind> {
        let mut code = 0_i32;
        // SAFETY: a C enum is an int of this size; the answer is valid for a write.
        check(unsafe { handle::tarsiaGetBackend(self.raw, (&raw mut code).cast()) })?;
        BackendKind::from_code(code).ok_or_else(|| Error::invalid("backend", format!("{code} is unknown")))
    }

    /// Calls `tarsiaSetPointerMode`.
    pub fn set_pointer_mode(&self, mode: PointerMode) -> Result<()> {
        check(handle::tarsiaSetPointerMode(self.raw, arg(mode)))
    }

    /// Calls `tarsiaGetPointerMode`.
    pub fn pointer_mode(&self) -> Result<PointerMode> {
        let mut code = 0_i32;
        // SAFETY: a C enum is an int of this size; the answer is valid for a write.
        check(unsafe { handle::tarsiaGetPointerMode(self.raw, (&raw mut code).cast()) })?;
        PointerMode::from_code(code).ok_or_else(|| Error::invalid("mode", format!("{code} is unknown")))
    }

    /// Calls `tarsiaSetPlanCache`.
    pub fn set_plan_cache(&self, folder: Option<&CStr>) -> Result<()> {
        // SAFETY: the text ends with 0.
        check(unsafe { handle::tarsiaSetPlanCache(self.raw, folder.map_or(std::ptr::null(), CStr::as_ptr)) })
    }

    /// Calls `tarsiaSetDeterministic`.
    pub fn set_deterministic(&self, on: bool) -> Result<()> {
        check(handle::tarsiaSetDeterministic(self.raw, on.into()))
    }

    /// Calls `tarsiaSynchronize`.
    pub fn synchronize(&self) -> Result<()> {
        check(memory::tarsiaSynchronize(self.raw))
    }

    /// Calls `tarsiaCheckSpMat` and returns (sorted, unique).
    pub fn check_sparse(&self, a: &Sparse) -> Result<(bool, bool)> {
        a.place.require_readable("A", self)?;
        let (mut sorted, mut unique) = (0, 0);
        // SAFETY: the answers are valid for a write; A's arrays are borrowed.
        check(unsafe { spmat::tarsiaCheckSpMat(self.raw, a.raw, &mut sorted, &mut unique) })?;
        Ok((sorted != 0, unique != 0))
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        handle::tarsiaDestroy(self.raw);
    }
}

/// A sparse matrix descriptor over borrowed memory.
#[derive(Debug)]
pub struct Sparse<'a> {
    raw: tarsiaConstSpMatDescr_t,
    value_type: DataType,
    place: Place,
    arrays: PhantomData<&'a [u8]>,
}

/// Type of `tarsiaCreateConstCsr` and `tarsiaCreateConstCsc`.
type CreateCompressed = unsafe extern "C" fn(
    *mut tarsiaConstSpMatDescr_t,
    i64,
    i64,
    i64,
    *const c_void,
    *const c_void,
    *const c_void,
    MaybeUninit<tarsiaIndexType_t>,
    MaybeUninit<tarsiaIndexType_t>,
    MaybeUninit<tarsiaIndexBase_t>,
    MaybeUninit<tarsiaDataType_t>,
) -> tarsiaStatus_t;

fn length(name: &str, found: usize, expected: Option<usize>) -> Result<()> {
    if expected == Some(found) {
        return Ok(());
    }
    Err(Error::invalid(name, format!("the array has {found} elements, expected {expected:?}")))
}

fn extent(n: i64, more: usize) -> Option<usize> {
    usize::try_from(n).ok()?.checked_add(more)
}

impl<'a> Sparse<'a> {
    fn new<V: Element>(
        place: Place,
        create: impl FnOnce(&mut tarsiaConstSpMatDescr_t) -> tarsiaStatus_t,
    ) -> Result<Sparse<'a>> {
        let mut raw = std::ptr::null();
        check(create(&mut raw))?;
        Ok(Sparse { raw, value_type: V::TYPE, place, arrays: PhantomData })
    }

    /// Calls `tarsiaCreateConstCsr`.
    pub fn csr<I: Index, J: Index, V: Element>(
        shape: (i64, i64),
        offsets: impl Memory<'a, Item = I>,
        indices: impl Memory<'a, Item = J>,
        values: impl Memory<'a, Item = V>,
        base: IndexBase,
    ) -> Result<Self> {
        let arrays = (offsets.view(), indices.view(), values.view());
        Self::compressed(spmat::tarsiaCreateConstCsr, shape, ("rowOffsets", shape.0), arrays, base)
    }

    /// Calls `tarsiaCreateConstCsc`.
    pub fn csc<I: Index, J: Index, V: Element>(
        shape: (i64, i64),
        offsets: impl Memory<'a, Item = I>,
        indices: impl Memory<'a, Item = J>,
        values: impl Memory<'a, Item = V>,
        base: IndexBase,
    ) -> Result<Self> {
        let arrays = (offsets.view(), indices.view(), values.view());
        Self::compressed(spmat::tarsiaCreateConstCsc, shape, ("colOffsets", shape.1), arrays, base)
    }

    /// Calls `create` for a matrix in CSR or CSC, whose offsets, called `name`, are those of `major` rows or columns.
    fn compressed<I: Index, J: Index, V: Element>(
        create: CreateCompressed,
        (rows, cols): (i64, i64),
        (name, major): (&str, i64),
        (offsets, indices, values): (View<'a, I>, View<'a, J>, View<'a, V>),
        base: IndexBase,
    ) -> Result<Self> {
        length(name, offsets.len, extent(major, 1))?;
        length("values", values.len, Some(indices.len))?;
        let place = offsets.place.with(indices.place).with(values.place);
        // SAFETY: the arrays have the lengths that the descriptor says and
        // outlive it.
        Self::new::<V>(place, |raw| unsafe {
            create(
                raw,
                rows,
                cols,
                indices.len as i64,
                offsets.void(),
                indices.void(),
                values.void(),
                arg(I::TYPE),
                arg(J::TYPE),
                arg(base),
                arg(V::TYPE),
            )
        })
    }

    /// Calls `tarsiaCreateConstCoo`.
    pub fn coo<J: Index, V: Element>(
        (rows, cols): (i64, i64),
        row_indices: impl Memory<'a, Item = J>,
        col_indices: impl Memory<'a, Item = J>,
        values: impl Memory<'a, Item = V>,
        base: IndexBase,
    ) -> Result<Self> {
        let (row_indices, col_indices, values) = (row_indices.view(), col_indices.view(), values.view());
        length("colInd", col_indices.len, Some(row_indices.len))?;
        length("values", values.len, Some(row_indices.len))?;
        let place = row_indices.place.with(col_indices.place).with(values.place);
        // SAFETY: as in `compressed`.
        Self::new::<V>(place, |raw| unsafe {
            spmat::tarsiaCreateConstCoo(
                raw,
                rows,
                cols,
                values.len as i64,
                row_indices.void(),
                col_indices.void(),
                values.void(),
                arg(J::TYPE),
                arg(base),
                arg(V::TYPE),
            )
        })
    }

    /// Calls `tarsiaCreateConstBsr`; the shape is in blocks.
    pub fn bsr<I: Index, J: Index, V: Element>(
        (block_rows, block_cols): (i64, i64),
        (row_block, col_block): (i64, i64),
        offsets: impl Memory<'a, Item = I>,
        indices: impl Memory<'a, Item = J>,
        values: impl Memory<'a, Item = V>,
        base: IndexBase,
        order: Order,
    ) -> Result<Self> {
        let (offsets, indices, values) = (offsets.view(), indices.view(), values.view());
        length("rowOffsets", offsets.len, extent(block_rows, 1))?;
        let area = row_block.checked_mul(col_block).and_then(|area| usize::try_from(area).ok());
        length("values", values.len, area.and_then(|area| area.checked_mul(indices.len)))?;
        let place = offsets.place.with(indices.place).with(values.place);
        // SAFETY: as in `compressed`.
        Self::new::<V>(place, |raw| unsafe {
            spmat::tarsiaCreateConstBsr(
                raw,
                block_rows,
                block_cols,
                indices.len as i64,
                row_block,
                col_block,
                offsets.void(),
                indices.void(),
                values.void(),
                arg(I::TYPE),
                arg(J::TYPE),
                arg(base),
                arg(V::TYPE),
                arg(order),
            )
        })
    }

    /// Returns the descriptor itself.
    pub fn raw(&self) -> tarsiaConstSpMatDescr_t {
        self.raw
    }
}

impl Drop for Sparse<'_> {
    fn drop(&mut self) {
        spmat::tarsiaDestroySpMat(self.raw);
    }
}

/// Shape, leading dimension and order of a dense matrix over borrowed memory.
#[derive(Clone, Copy, Debug)]
pub struct DenseLayout {
    /// Rows.
    pub rows: i64,
    /// Columns.
    pub cols: i64,
    /// Leading dimension in elements.
    pub ld: i64,
    /// Storage order.
    pub order: Order,
}

impl DenseLayout {
    /// Returns the smallest number of elements that an array of this shape may have.
    pub fn extent(&self) -> usize {
        let (inner, outer) = match self.order {
            Order::Row => (self.cols, self.rows),
            Order::Col => (self.rows, self.cols),
        };
        if inner <= 0 || outer <= 0 {
            return 0;
        }
        usize::try_from((outer as i128 - 1) * self.ld as i128 + inner as i128).unwrap_or(usize::MAX)
    }

    fn check(&self, name: &str, len: usize) -> Result<()> {
        if len >= self.extent() {
            return Ok(());
        }
        Err(Error::invalid(
            name,
            format!("the array has {len} elements, expected at least {}", self.extent()),
        ))
    }
}

/// A plan; `'a` is the lifetime of the arrays that it reads.
#[derive(Debug)]
pub struct Plan<'a> {
    raw: tarsiaPlan_t,
    scalar: DataType,
    value_type: DataType,
    nnz: usize,
    /// Number of stored entries of SpGEMM's second factor.
    nnz_b: usize,
    arrays: PhantomData<&'a [u8]>,
}

// SAFETY: a plan is a token; several threads may execute it at once.
unsafe impl Send for Plan<'_> {}
// SAFETY: as above.
unsafe impl Sync for Plan<'_> {}

impl<'a> Plan<'a> {
    fn new(
        session: &Session,
        a: &Sparse<'a>,
        compute: ComputeType,
        create: impl FnOnce(&mut tarsiaPlan_t) -> tarsiaStatus_t,
    ) -> Result<Self> {
        a.place.require_readable("A", session)?;
        let mut raw = std::ptr::null_mut();
        check(create(&mut raw))?;
        let (scalar, value_type) = (compute.scalar(), a.value_type);
        Ok(Plan { raw, scalar, value_type, nnz: spgemm_values::entries(a)?, nnz_b: 0, arrays: PhantomData })
    }

    /// Calls `tarsiaSpMV_createPlan`.
    pub fn spmv(
        session: &Session,
        op: Operation,
        a: &Sparse<'a>,
        (x, y): (DataType, DataType),
        compute: ComputeType,
        alg: SpmvAlg,
    ) -> Result<Self> {
        // SAFETY: the answer is valid for a write; A's arrays live for 'a.
        Self::new(session, a, compute, |raw| unsafe {
            spmv::tarsiaSpMV_createPlan(
                session.raw,
                raw,
                arg(op),
                a.raw,
                arg(x),
                arg(y),
                arg(compute),
                arg(alg),
            )
        })
    }

    /// Calls `tarsiaSpMM_createPlan`.
    pub fn spmm(
        session: &Session,
        (op_a, op_b): (Operation, Operation),
        a: &Sparse<'a>,
        (b_order, c_order): (Order, Order),
        n_hint: i64,
        (b, c): (DataType, DataType),
        compute: ComputeType,
        alg: SpmmAlg,
    ) -> Result<Self> {
        // SAFETY: the answer is valid for a write; A's arrays live for 'a.
        Self::new(session, a, compute, |raw| unsafe {
            spmm::tarsiaSpMM_createPlan(
                session.raw,
                raw,
                arg(op_a),
                arg(op_b),
                a.raw,
                arg(b_order),
                arg(c_order),
                n_hint,
                arg(b),
                arg(c),
                arg(compute),
                arg(alg),
            )
        })
    }

    /// Calls `tarsiaSpGEMM_createPlan`.
    pub fn spgemm(
        session: &Session,
        (op_a, op_b): (Operation, Operation),
        a: &Sparse<'a>,
        b: &Sparse<'a>,
        compute: ComputeType,
        alg: SpgemmAlg,
    ) -> Result<Self> {
        b.place.require_readable("B", session)?;
        // SAFETY: the answer is valid for a write; the arrays live for 'a.
        let mut plan = Self::new(session, a, compute, |raw| unsafe {
            spgemm::tarsiaSpGEMM_createPlan(
                session.raw,
                raw,
                arg(op_a),
                arg(op_b),
                a.raw,
                b.raw,
                arg(compute),
                arg(alg),
            )
        })?;
        plan.nnz_b = spgemm_values::entries(b)?;
        Ok(plan)
    }

    /// Returns the plan itself.
    pub fn raw(&self) -> tarsiaPlan_t {
        self.raw
    }

    /// Calls `tarsiaPlan_setEffort`.
    pub fn set_effort(&self, effort: Effort) -> Result<()> {
        check(plan::tarsiaPlan_setEffort(self.raw, arg(effort)))
    }

    /// Calls `tarsiaPlan_setReorder`.
    pub fn set_reorder(&self, reorder: Reorder) -> Result<()> {
        check(plan::tarsiaPlan_setReorder(self.raw, arg(reorder)))
    }

    /// Calls `tarsiaPlan_setBlockDims`.
    pub fn set_block_dims(&self, rows: i64, cols: i64) -> Result<()> {
        check(plan::tarsiaPlan_setBlockDims(self.raw, rows, cols))
    }

    /// Calls `tarsiaPlan_setValueUpdates`.
    pub fn set_value_updates(&self, on: bool) -> Result<()> {
        check(plan::tarsiaPlan_setValueUpdates(self.raw, i32::from(on)))
    }

    /// Calls `tarsiaPlan_setSelfContained`.
    pub fn set_self_contained(&self, on: bool) -> Result<()> {
        check(plan::tarsiaPlan_setSelfContained(self.raw, i32::from(on)))
    }

    /// Calls `tarsiaPlan_setMemoryLimit`.
    pub fn set_memory_limit(&self, bytes: usize) -> Result<()> {
        check(plan::tarsiaPlan_setMemoryLimit(self.raw, bytes))
    }

    /// Calls `tarsiaPlan_analyze`.
    pub fn analyze(&self, session: &Session) -> Result<()> {
        check(plan::tarsiaPlan_analyze(session.raw, self.raw))
    }

    /// Calls `tarsiaPlan_getDecisions`.
    pub fn decisions(&self, session: &Session) -> Result<Vec<u8>> {
        let mut size = 0;
        let ask = |buffer: *mut u8, room: usize, size: &mut usize| {
            // SAFETY: NULL, or an array of `room` bytes; the answer is valid for a write.
            check(unsafe { plan::tarsiaPlan_getDecisions(session.raw, self.raw, buffer.cast(), room, size) })
        };
        ask(std::ptr::null_mut(), 0, &mut size)?;
        let mut out = vec![0; size];
        ask(out.as_mut_ptr(), out.len(), &mut size)?;
        Ok(out)
    }

    /// Calls `tarsiaPlan_setDecisions`.
    pub fn set_decisions(&self, session: &Session, bytes: &[u8]) -> Result<()> {
        let buffer = if bytes.is_empty() { std::ptr::null() } else { bytes.as_ptr() };
        // SAFETY: an array of that many bytes.
        check(unsafe { plan::tarsiaPlan_setDecisions(session.raw, self.raw, buffer.cast(), bytes.len()) })
    }

    /// Calls `tarsiaPlan_prepare`.
    pub fn prepare(&self, session: &Session) -> Result<()> {
        check(plan::tarsiaPlan_prepare(session.raw, self.raw))
    }

    /// Calls `tarsiaPlan_workspaceSize`.
    pub fn workspace_size(&self, n: i64) -> Result<usize> {
        let mut bytes = 0;
        // SAFETY: the answer is valid for a write.
        check(unsafe { plan::tarsiaPlan_workspaceSize(self.raw, n, &mut bytes) })?;
        Ok(bytes)
    }

    /// Calls `tarsiaPlan_getInfo`.
    pub fn info(&self) -> Result<plan::tarsiaPlanInfo_t> {
        let mut info = MaybeUninit::<plan::tarsiaPlanInfo_t>::zeroed();
        // SAFETY: the first field is structSize; the call fills the rest, and
        // the struct has no byte that zero does not suit until then.
        unsafe {
            info.as_mut_ptr().cast::<usize>().write(std::mem::size_of::<plan::tarsiaPlanInfo_t>());
            check(plan::tarsiaPlan_getInfo(self.raw, info.as_mut_ptr()))?;
            Ok(info.assume_init())
        }
    }

    /// Calls `tarsiaPlan_updateValues` with values in the order of the descriptor's.
    pub fn update_values<V: Element>(
        &self,
        session: &Session,
        values: impl Memory<'a, Item = V>,
    ) -> Result<()> {
        let values = values.view();
        length("newValues", values.len, Some(self.nnz))?;
        self.same_type("newValues", V::TYPE, self.value_type)?;
        values.place.require("newValues", session)?;
        // SAFETY: the array has the length and type of A's values and lives for 'a.
        check(unsafe { plan::tarsiaPlan_updateValues(session.raw, self.raw, values.void()) })
    }

    fn same_type(&self, name: &str, found: DataType, expected: DataType) -> Result<()> {
        if found == expected {
            return Ok(());
        }
        Err(Error::invalid(name, format!("{} given, {} expected", found.short(), expected.short())))
    }

    /// Checks the scalars' type, and, with CUDA, that they are where the handle's pointer mode says: a device
    /// cannot read host scalars, nor the host device scalars.
    fn check_scalars<S: Scalar>(&self, session: &Session) -> Result<()> {
        self.same_type("alpha", S::TYPE, self.scalar)?;
        if session.kind == BackendKind::Cuda && session.pointer_mode()? != S::MODE {
            let found = S::MODE.c_name();
            return Err(Error::invalid(
                "alpha, beta",
                format!("given for {found}, which is not the handle's"),
            ));
        }
        Ok(())
    }

    /// Calls `tarsiaSpMV`: y = alpha · op(A) · x + beta · y.
    pub fn run_spmv<'x, S: Scalar, X: Element, Y: Element>(
        &self,
        session: &Session,
        alpha: S,
        x: impl Memory<'x, Item = X>,
        beta: S,
        y: impl MemoryMut<'x, Item = Y>,
    ) -> Result<()> {
        self.check_scalars::<S>(session)?;
        let (x, y) = (x.view(), y.view_mut());
        x.place.require("x", session)?;
        y.place.require("y", session)?;
        let (x, y) = (VectorDescr::new(x)?, VectorDescr::new_mut(y)?);
        let (alpha, beta) = (alpha.address(), beta.address());
        // SAFETY: the scalars have the compute type; the descriptors say the
        // lengths and types of the arrays, which are borrowed during the call.
        check(unsafe { spmv::tarsiaSpMV(session.raw, self.raw, alpha, x.raw, beta, y.raw.cast_mut()) })
    }

    /// Calls `tarsiaSpMM`: C = alpha · op(A) · op(B) + beta · C.
    pub fn run_spmm<'x, S: Scalar, B: Element, C: Element>(
        &self,
        session: &Session,
        alpha: S,
        (b, b_shape): (impl Memory<'x, Item = B>, DenseLayout),
        beta: S,
        (c, c_shape): (impl MemoryMut<'x, Item = C>, DenseLayout),
    ) -> Result<()> {
        self.check_scalars::<S>(session)?;
        let (b, c) = (b.view(), c.view_mut());
        b.place.require("B", session)?;
        c.place.require("C", session)?;
        let (b, c) = (MatrixDescr::new(b, b_shape)?, MatrixDescr::new_mut(c, c_shape)?);
        let (alpha, beta) = (alpha.address(), beta.address());
        // SAFETY: as in `run_spmv`.
        check(unsafe { spmm::tarsiaSpMM(session.raw, self.raw, alpha, b.raw, beta, c.raw.cast_mut()) })
    }

    /// Calls `tarsiaSpGEMM_symbolic`.
    pub fn symbolic(&self, session: &Session) -> Result<i64> {
        let mut nnz = 0;
        // SAFETY: the answer is valid for a write.
        check(unsafe { spgemm::tarsiaSpGEMM_symbolic(session.raw, self.raw, &mut nnz) })?;
        Ok(nnz)
    }

    /// Calls `tarsiaSpGEMM_numeric` with a CSR matrix as the result.
    pub fn numeric_csr<'c, S: Scalar, I: Index, J: Index, V: Element>(
        &self,
        session: &Session,
        alpha: S,
        (rows, cols): (i64, i64),
        offsets: impl MemoryMut<'c, Item = I>,
        indices: impl MemoryMut<'c, Item = J>,
        values: impl MemoryMut<'c, Item = V>,
        base: IndexBase,
    ) -> Result<()> {
        let (offsets, indices, values) = (offsets.view_mut(), indices.view_mut(), values.view_mut());
        self.check_scalars::<S>(session)?;
        length("rowOffsets", offsets.len, extent(rows, 1))?;
        length("values", values.len, Some(indices.len))?;
        for place in [offsets.place, indices.place, values.place] {
            place.require("C", session)?;
        }
        let mut raw: tarsiaSpMatDescr_t = std::ptr::null_mut();
        // SAFETY: the arrays have the lengths that the descriptor says, are
        // borrowed during the call, and the descriptor is gone after it.
        check(unsafe {
            spmat::tarsiaCreateCsr(
                &mut raw,
                rows,
                cols,
                indices.len as i64,
                offsets.void(),
                indices.void(),
                values.void(),
                arg(I::TYPE),
                arg(J::TYPE),
                arg(base),
                arg(V::TYPE),
            )
        })?;
        // SAFETY: alpha has the compute type; C as above.
        let code = unsafe { spgemm::tarsiaSpGEMM_numeric(session.raw, self.raw, alpha.address(), raw) };
        let result = check(code);
        spmat::tarsiaDestroySpMat(raw);
        result
    }
}

impl Drop for Plan<'_> {
    fn drop(&mut self) {
        plan::tarsiaPlan_destroy(self.raw);
    }
}

struct VectorDescr {
    raw: tarsiaConstDnVecDescr_t,
}

impl VectorDescr {
    fn new<V: Element>(values: View<'_, V>) -> Result<Self> {
        let mut raw = std::ptr::null();
        // SAFETY: the answer is valid for a write; users keep the memory borrowed.
        check(unsafe {
            dnvec::tarsiaCreateConstDnVec(&mut raw, values.len as i64, values.void(), arg(V::TYPE))
        })?;
        Ok(VectorDescr { raw })
    }

    fn new_mut<V: Element>(values: ViewMut<'_, V>) -> Result<Self> {
        let mut raw: tarsiaDnVecDescr_t = std::ptr::null_mut();
        let (len, pointer) = (values.len as i64, values.void());
        // SAFETY: as in `new`, borrowed exclusively.
        check(unsafe { dnvec::tarsiaCreateDnVec(&mut raw, len, pointer, arg(V::TYPE)) })?;
        Ok(VectorDescr { raw })
    }
}

impl Drop for VectorDescr {
    fn drop(&mut self) {
        dnvec::tarsiaDestroyDnVec(self.raw);
    }
}

struct MatrixDescr {
    raw: tarsiaConstDnMatDescr_t,
}

impl MatrixDescr {
    fn new<V: Element>(values: View<'_, V>, s: DenseLayout) -> Result<Self> {
        s.check("B", values.len)?;
        let mut raw = std::ptr::null();
        // SAFETY: the answer is valid for a write; the array has the shape's
        // extent, and users keep it borrowed.
        check(unsafe {
            dnmat::tarsiaCreateConstDnMat(
                &mut raw,
                s.rows,
                s.cols,
                s.ld,
                values.void(),
                arg(V::TYPE),
                arg(s.order),
            )
        })?;
        Ok(MatrixDescr { raw })
    }

    fn new_mut<V: Element>(values: ViewMut<'_, V>, s: DenseLayout) -> Result<Self> {
        s.check("C", values.len)?;
        let mut raw: tarsiaDnMatDescr_t = std::ptr::null_mut();
        let pointer = values.void();
        // SAFETY: as in `new`, borrowed exclusively.
        check(unsafe {
            dnmat::tarsiaCreateDnMat(&mut raw, s.rows, s.cols, s.ld, pointer, arg(V::TYPE), arg(s.order))
        })?;
        Ok(MatrixDescr { raw })
    }
}

impl Drop for MatrixDescr {
    fn drop(&mut self) {
        dnmat::tarsiaDestroyDnMat(self.raw);
    }
}

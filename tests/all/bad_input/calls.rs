//! Good calls of every function that returns a status; [`Bad::arg`] makes one argument of them bad.

use std::ptr::null_mut;

use client::arg;
use libc::c_void;
use tarsia::capi::enums::{tarsiaLogLevel_t, tarsiaStatus_t};
use tarsia::facade::{
    ComputeType, DataType, Effort, IndexBase, IndexType, Operation, Order, PointerMode, Property, Reorder,
    SpgemmAlg, SpmmAlg, SpmvAlg,
};

use super::bad::Bad;
use super::world::World;

/// Function of the API.
pub struct Call {
    /// Name of the function.
    pub name: &'static str,
    /// Names of its arguments.
    pub args: &'static [&'static str],
    /// Calls the function with good arguments except the bad one.
    pub call: fn(&World, &Bad) -> tarsiaStatus_t,
}

macro_rules! calls {
    (|$w:ident, $b:ident| $($module:ident::$function:ident($($arg:ident = $good:expr),* $(,)?);)*) => {
        vec![$(Call {
            name: stringify!($function),
            args: &[$(stringify!($arg)),*],
            #[allow(unused_unsafe, unused_variables)]
            call: |$w, $b| {
                // SAFETY: the good arguments are of a world whose arrays are as
                // its descriptors say; a bad one is NULL, misaligned, no live
                // object, or no value of its enum, which the library promises
                // to recognise before it reads or writes through any pointer.
                unsafe { tarsia::capi::$module::$function($($b.arg(stringify!($arg), $good)),*) }
            },
        },)*]
    };
}

const I32: IndexType = IndexType::I32;
const F64: DataType = DataType::R64F;
const N: Operation = Operation::NonTranspose;
const ZERO: IndexBase = IndexBase::Zero;
const R64: ComputeType = ComputeType::R64F;

fn v<T>(pointer: *mut T) -> *mut c_void {
    pointer.cast()
}

fn c<T>(pointer: *const T) -> *const c_void {
    pointer.cast()
}

unsafe extern "C-unwind" fn allocate(_: *mut c_void, bytes: usize, _: *mut c_void) -> *mut c_void {
    // SAFETY: the alignment is a power of two; the size is rounded up to a multiple of it.
    unsafe { libc::aligned_alloc(256, bytes.next_multiple_of(256)) }
}

unsafe extern "C-unwind" fn release(_: *mut c_void, pointer: *mut c_void, _: usize, _: *mut c_void) {
    // SAFETY: it came from `allocate`.
    unsafe { libc::free(pointer) }
}

unsafe extern "C-unwind" fn log(_: *mut c_void, _: tarsiaLogLevel_t, _: *const libc::c_char) {}

/// Returns all functions except the two that return a text.
pub fn all() -> Vec<Call> {
    let mut out = basics();
    out.extend(sparse());
    out.extend(getters());
    out.extend(dense());
    out.extend(plans());
    out
}

fn basics() -> Vec<Call> {
    calls! { |w, b|
        status::tarsiaGetLastErrorMessage(buf = (&raw mut (*w.buffers()).text).cast(), len = 1024);
        status::tarsiaGetVersion(version = b.answer());
        status::tarsiaGetProperty(property = arg(Property::Minor), value = b.answer());
        threads::tarsiaSetNumThreads(n = 0);
        threads::tarsiaGetNumThreads(n = b.answer());
        handle::tarsiaCreate(handle = b.answer());
        handle::tarsiaCreateWithBackend(handle = b.answer(), backend = arg(w.kind), device = 0);
        handle::tarsiaDestroy(handle = w.fresh_handle());
        handle::tarsiaSetStream(handle = w.handle, stream = null_mut());
        handle::tarsiaGetStream(handle = w.handle, stream = b.answer());
        handle::tarsiaSetPointerMode(handle = w.handle, mode = arg(PointerMode::Host));
        handle::tarsiaGetPointerMode(handle = w.handle, mode = b.answer());
        handle::tarsiaSetDeterministic(handle = w.handle, deterministic = 0);
        handle::tarsiaGetDeterministic(handle = w.handle, deterministic = b.answer());
        handle::tarsiaSetChecks(handle = w.handle, checks = 0);
        handle::tarsiaGetChecks(handle = w.handle, checks = b.answer());
        handle::tarsiaSetPlanCache(handle = w.fresh_handle(), folder = w.folder.as_ptr());
        handle::tarsiaSetAllocator(
            handle = w.fresh_handle(), alloc = Some(allocate), free = Some(release), ctx = null_mut(),
        );
        handle::tarsiaSetLogger(handle = w.fresh_handle(), callback = Some(log), ctx = null_mut());
        handle::tarsiaSetWorkspace(handle = w.fresh_handle(), ptr = v(&raw mut (*w.a()).scratch), bytes = 256);
        handle::tarsiaGetBackend(handle = w.handle, backend = b.answer());
        handle::tarsiaGetDevice(handle = w.handle, device = b.answer());
        memory::tarsiaMalloc(handle = w.handle, ptr = b.answer(), bytes = 64);
        memory::tarsiaFree(handle = w.handle, ptr = null_mut());
        memory::tarsiaMemcpyToDevice(
            handle = w.handle, dst = v(&raw mut (*w.a()).copied), src = c(&raw const (*w.buffers()).copied),
            bytes = 32,
        );
        memory::tarsiaMemcpyToHost(
            handle = w.handle, dst = v(&raw mut (*w.buffers()).copied), src = c(&raw const (*w.a()).x), bytes = 32,
        );
        memory::tarsiaSynchronize(handle = w.handle);
    }
}

fn sparse() -> Vec<Call> {
    calls! { |w, b|
        spmat::tarsiaCreateCsr(
            A = b.answer(), rows = 3, cols = 4, nnz = 5, rowOffsets = v(&raw mut (*w.a()).offsets),
            colInd = v(&raw mut (*w.a()).indices), values = v(&raw mut (*w.a()).values), offsetType = arg(I32),
            indexType = arg(I32), base = arg(ZERO), valueType = arg(F64),
        );
        spmat::tarsiaCreateConstCsr(
            A = b.answer(), rows = 3, cols = 4, nnz = 5, rowOffsets = c(&raw const (*w.a()).offsets),
            colInd = c(&raw const (*w.a()).indices), values = c(&raw const (*w.a()).values), offsetType = arg(I32),
            indexType = arg(I32), base = arg(ZERO), valueType = arg(F64),
        );
        spmat::tarsiaCreateCsc(
            A = b.answer(), rows = 3, cols = 4, nnz = 5, colOffsets = v(&raw mut (*w.a()).column_offsets),
            rowInd = v(&raw mut (*w.a()).row_indices), values = v(&raw mut (*w.a()).column_values),
            offsetType = arg(I32), indexType = arg(I32), base = arg(ZERO), valueType = arg(F64),
        );
        spmat::tarsiaCreateConstCsc(
            A = b.answer(), rows = 3, cols = 4, nnz = 5, colOffsets = c(&raw const (*w.a()).column_offsets),
            rowInd = c(&raw const (*w.a()).row_indices), values = c(&raw const (*w.a()).column_values),
            offsetType = arg(I32), indexType = arg(I32), base = arg(ZERO), valueType = arg(F64),
        );
        spmat::tarsiaCreateCoo(
            A = b.answer(), rows = 3, cols = 4, nnz = 5, rowInd = v(&raw mut (*w.a()).rows),
            colInd = v(&raw mut (*w.a()).indices), values = v(&raw mut (*w.a()).values), indexType = arg(I32),
            base = arg(ZERO), valueType = arg(F64),
        );
        spmat::tarsiaCreateConstCoo(
            A = b.answer(), rows = 3, cols = 4, nnz = 5, rowInd = c(&raw const (*w.a()).rows),
            colInd = c(&raw const (*w.a()).indices), values = c(&raw const (*w.a()).values), indexType = arg(I32),
            base = arg(ZERO), valueType = arg(F64),
        );
        spmat::tarsiaCreateBsr(
            A = b.answer(), blockRows = 2, blockCols = 2, blockNnz = 2, rowBlockSize = 2, colBlockSize = 2,
            rowOffsets = v(&raw mut (*w.a()).block_offsets), colInd = v(&raw mut (*w.a()).block_indices),
            values = v(&raw mut (*w.a()).block_values), offsetType = arg(I32), indexType = arg(I32),
            base = arg(ZERO), valueType = arg(F64), blockOrder = arg(Order::Row),
        );
        spmat::tarsiaCreateConstBsr(
            A = b.answer(), blockRows = 2, blockCols = 2, blockNnz = 2, rowBlockSize = 2, colBlockSize = 2,
            rowOffsets = c(&raw const (*w.a()).block_offsets), colInd = c(&raw const (*w.a()).block_indices),
            values = c(&raw const (*w.a()).block_values), offsetType = arg(I32), indexType = arg(I32),
            base = arg(ZERO), valueType = arg(F64), blockOrder = arg(Order::Row),
        );
        spmat::tarsiaDestroySpMat(A = w.fresh_csr());
        spmat::tarsiaCheckSpMat(handle = w.handle, A = w.csr, sorted = b.answer(), unique = b.answer());
        tile::tarsiaCreateTile(handle = w.handle, A = b.answer(), rows = 3, cols = 4, valueType = arg(F64));
        tile::tarsiaTileGet(
            A = w.fresh_tile(), rows = b.answer(), cols = b.answer(), nnz = b.answer(),
            tileCount = b.answer(), valueType = b.answer(),
        );
        tile::tarsiaSparseToTile(handle = w.handle, A = w.csr, B = w.fresh_tile());
        tile::tarsiaTileToSparse(handle = w.handle, A = w.fresh_tile(), B = w.csr);
    }
}

fn getters() -> Vec<Call> {
    calls! { |w, b|
        spmat_access::tarsiaCsrGet(
            A = w.csr, rows = b.answer(), cols = b.answer(), nnz = b.answer(), rowOffsets = b.answer(),
            colInd = b.answer(), values = b.answer(), offsetType = b.answer(), indexType = b.answer(),
            base = b.answer(), valueType = b.answer(),
        );
        spmat_access::tarsiaConstCsrGet(
            A = w.const_csr, rows = b.answer(), cols = b.answer(), nnz = b.answer(), rowOffsets = b.answer(),
            colInd = b.answer(), values = b.answer(), offsetType = b.answer(), indexType = b.answer(),
            base = b.answer(), valueType = b.answer(),
        );
        spmat_access::tarsiaCsrSetPointers(
            A = w.fresh_csr(), rowOffsets = v(&raw mut (*w.a()).offsets), colInd = v(&raw mut (*w.a()).indices),
            values = v(&raw mut (*w.a()).values),
        );
        spmat_access::tarsiaCscGet(
            A = w.csc, rows = b.answer(), cols = b.answer(), nnz = b.answer(), colOffsets = b.answer(),
            rowInd = b.answer(), values = b.answer(), offsetType = b.answer(), indexType = b.answer(),
            base = b.answer(), valueType = b.answer(),
        );
        spmat_access::tarsiaConstCscGet(
            A = w.csc, rows = b.answer(), cols = b.answer(), nnz = b.answer(), colOffsets = b.answer(),
            rowInd = b.answer(), values = b.answer(), offsetType = b.answer(), indexType = b.answer(),
            base = b.answer(), valueType = b.answer(),
        );
        spmat_access::tarsiaCscSetPointers(
            A = w.fresh(super::world::csc), colOffsets = v(&raw mut (*w.a()).column_offsets),
            rowInd = v(&raw mut (*w.a()).row_indices), values = v(&raw mut (*w.a()).column_values),
        );
        spmat_access::tarsiaCooGet(
            A = w.coo, rows = b.answer(), cols = b.answer(), nnz = b.answer(), rowInd = b.answer(),
            colInd = b.answer(), values = b.answer(), indexType = b.answer(), base = b.answer(),
            valueType = b.answer(),
        );
        spmat_access::tarsiaConstCooGet(
            A = w.coo, rows = b.answer(), cols = b.answer(), nnz = b.answer(), rowInd = b.answer(),
            colInd = b.answer(), values = b.answer(), indexType = b.answer(), base = b.answer(),
            valueType = b.answer(),
        );
        spmat_access::tarsiaCooSetPointers(
            A = w.fresh(super::world::coo), rowInd = v(&raw mut (*w.a()).rows),
            colInd = v(&raw mut (*w.a()).indices), values = v(&raw mut (*w.a()).values),
        );
        spmat_access::tarsiaBsrGet(
            A = w.bsr, blockRows = b.answer(), blockCols = b.answer(), blockNnz = b.answer(),
            rowBlockSize = b.answer(), colBlockSize = b.answer(), rowOffsets = b.answer(), colInd = b.answer(),
            values = b.answer(), offsetType = b.answer(), indexType = b.answer(), base = b.answer(),
            valueType = b.answer(), blockOrder = b.answer(),
        );
        spmat_access::tarsiaConstBsrGet(
            A = w.bsr, blockRows = b.answer(), blockCols = b.answer(), blockNnz = b.answer(),
            rowBlockSize = b.answer(), colBlockSize = b.answer(), rowOffsets = b.answer(), colInd = b.answer(),
            values = b.answer(), offsetType = b.answer(), indexType = b.answer(), base = b.answer(),
            valueType = b.answer(), blockOrder = b.answer(),
        );
        spmat_access::tarsiaBsrSetPointers(
            A = w.fresh(super::world::bsr), rowOffsets = v(&raw mut (*w.a()).block_offsets),
            colInd = v(&raw mut (*w.a()).block_indices), values = v(&raw mut (*w.a()).block_values),
        );
        spmat_access::tarsiaSpMatGetSize(A = w.bsr, rows = b.answer(), cols = b.answer(), nnz = b.answer());
        spmat_access::tarsiaSpMatGetFormat(A = w.coo, format = b.answer());
        spmat_access::tarsiaSpMatGetSorted(A = w.csr, sorted = b.answer());
        spmat_access::tarsiaSpMatGetIndexBase(A = w.csc, base = b.answer());
        spmat_access::tarsiaSpMatGetValues(A = w.csr, values = b.answer());
        spmat_access::tarsiaConstSpMatGetValues(A = w.const_csr, values = b.answer());
        spmat_access::tarsiaSpMatSetValues(A = w.fresh_csr(), values = v(&raw mut (*w.a()).values));
    }
}

fn dense() -> Vec<Call> {
    calls! { |w, b|
        dnvec::tarsiaCreateDnVec(x = b.answer(), size = 4, values = v(&raw mut (*w.a()).x), valueType = arg(F64));
        dnvec::tarsiaCreateConstDnVec(
            x = b.answer(), size = 4, values = c(&raw const (*w.a()).x), valueType = arg(F64),
        );
        dnvec::tarsiaDestroyDnVec(x = w.fresh_vector());
        dnvec::tarsiaDnVecGet(x = w.x, size = b.answer(), values = b.answer(), valueType = b.answer());
        dnvec::tarsiaConstDnVecGet(x = w.const_y, size = b.answer(), values = b.answer(), valueType = b.answer());
        dnvec::tarsiaDnVecGetValues(x = w.x, values = b.answer());
        dnvec::tarsiaConstDnVecGetValues(x = w.const_y, values = b.answer());
        dnvec::tarsiaDnVecSetValues(x = w.fresh_vector(), values = v(&raw mut (*w.a()).x));
        dnmat::tarsiaCreateDnMat(
            B = b.answer(), rows = 4, cols = 2, ld = 4, values = v(&raw mut (*w.a()).b), valueType = arg(F64),
            order = arg(Order::Col),
        );
        dnmat::tarsiaCreateConstDnMat(
            B = b.answer(), rows = 4, cols = 2, ld = 4, values = c(&raw const (*w.a()).b), valueType = arg(F64),
            order = arg(Order::Col),
        );
        dnmat::tarsiaDestroyDnMat(B = w.fresh_matrix());
        dnmat::tarsiaDnMatGet(
            B = w.b, rows = b.answer(), cols = b.answer(), ld = b.answer(), values = b.answer(),
            valueType = b.answer(), order = b.answer(),
        );
        dnmat::tarsiaConstDnMatGet(
            B = w.const_c, rows = b.answer(), cols = b.answer(), ld = b.answer(), values = b.answer(),
            valueType = b.answer(), order = b.answer(),
        );
        dnmat::tarsiaDnMatGetValues(B = w.b, values = b.answer());
        dnmat::tarsiaConstDnMatGetValues(B = w.const_c, values = b.answer());
        dnmat::tarsiaDnMatSetValues(B = w.fresh_matrix(), values = v(&raw mut (*w.a()).b));
    }
}

fn plans() -> Vec<Call> {
    calls! { |w, b|
        plan::tarsiaPlan_setEffort(plan = w.fresh_plan(), effort = arg(Effort::Quick));
        plan::tarsiaPlan_setReorder(plan = w.fresh_plan(), reorder = arg(Reorder::None));
        plan::tarsiaPlan_setBlockDims(plan = w.fresh_spmm(), rowBlockDim = 16, colBlockDim = 8);
        plan::tarsiaPlan_setValueUpdates(plan = w.fresh_plan(), valueUpdates = 1);
        plan::tarsiaPlan_setValuesInPlace(plan = w.fresh_plan(), valuesInPlace = 1);
        plan::tarsiaPlan_setExpectedExecutes(plan = w.fresh_plan(), executes = 3);
        plan::tarsiaPlan_setSelfContained(plan = w.fresh_plan(), selfContained = 1);
        plan::tarsiaPlan_setSortedOutput(plan = w.early_spgemm(), sortedOutput = 0);
        plan::tarsiaPlan_setMemoryLimit(plan = w.fresh_plan(), bytes = 1 << 20);
        plan::tarsiaPlan_analyze(handle = w.handle, plan = w.fresh_plan());
        plan::tarsiaPlan_workspaceSize(plan = w.spmm, n = 2, bytes = b.answer());
        plan::tarsiaPlan_prepare(handle = w.handle, plan = w.spmm);
        plan::tarsiaPlan_updateValues(handle = w.handle, plan = w.spmv, newValues = c(&raw const (*w.a()).values));
        plan::tarsiaPlan_getInfo(plan = w.spmm, info = w.info());
        plan::tarsiaPlan_getDecisions(
            handle = w.handle, plan = w.spmv, buffer = v(&raw mut (*w.buffers()).text), room = 1024,
            bytes = b.answer(),
        );
        plan::tarsiaPlan_setDecisions(
            handle = w.handle, plan = w.fresh_plan(), buffer = w.decisions.as_ptr().cast(), bytes = w.decisions.len(),
        );
        plan::tarsiaPlan_destroy(plan = w.fresh_plan());
        spmv::tarsiaSpMV_createPlan(
            handle = w.handle, plan = b.answer(), opA = arg(N), A = w.csr, xType = arg(F64), yType = arg(F64),
            computeType = arg(R64), alg = arg(SpmvAlg::Csr),
        );
        spmv::tarsiaSpMV(
            handle = w.handle, plan = w.spmv, alpha = c(&raw const w.one), x = w.x, beta = c(&raw const w.zero),
            y = w.y,
        );
        spmv::tarsiaSpMV_into(
            handle = w.handle, plan = w.spmv, alpha = c(&raw const w.one), x = w.x, beta = c(&raw const w.zero),
            y = w.y, z = w.y,
        );
        spmv::tarsiaSpMV_once(
            handle = w.handle, opA = arg(N), alpha = c(&raw const w.one), A = w.csr, x = w.x,
            beta = c(&raw const w.zero), y = w.y, computeType = arg(R64),
        );
        spmm::tarsiaSpMM_createPlan(
            handle = w.handle, plan = b.answer(), opA = arg(N), opB = arg(N), A = w.csr, bOrder = arg(Order::Col),
            cOrder = arg(Order::Col), nHint = 2, bType = arg(F64), cType = arg(F64), computeType = arg(R64),
            alg = arg(SpmmAlg::Row),
        );
        spmm::tarsiaSpMM(
            handle = w.handle, plan = w.spmm, alpha = c(&raw const w.one), B = w.b, beta = c(&raw const w.zero),
            C = w.c,
        );
        spmm::tarsiaSpMM_into(
            handle = w.handle, plan = w.spmm, alpha = c(&raw const w.one), B = w.b, beta = c(&raw const w.zero),
            C = w.c, D = w.c,
        );
        spmm::tarsiaSpMM_once(
            handle = w.handle, opA = arg(N), opB = arg(N), alpha = c(&raw const w.one), A = w.csr, B = w.b,
            beta = c(&raw const w.zero), C = w.c, computeType = arg(R64),
        );
        spgemm::tarsiaSpGEMM_createPlan(
            handle = w.handle, plan = b.answer(), opA = arg(N), opB = arg(N), A = w.csr, B = w.transposed,
            computeType = arg(R64), alg = arg(SpgemmAlg::Hash),
        );
        spgemm::tarsiaSpGEMM_symbolic(handle = w.handle, plan = w.fresh_spgemm(), nnzC = b.answer());
        spgemm::tarsiaSpGEMM_numeric(
            handle = w.handle, plan = w.spgemm, alpha = c(&raw const w.one), C = w.product,
        );
        spgemm::tarsiaSpGEMM_updateValues(
            handle = w.handle, plan = w.spgemm, newValuesA = c(&raw const (*w.a()).values),
            newValuesB = c(&raw const (*w.a()).column_values),
        );
    }
}

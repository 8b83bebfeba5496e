//! Calls that are taken: cuSPARSE's arguments as Tarsia's, and Tarsia's products. What is not served is declined, with the
//! reason, before anything is done, and then cuSPARSE gets the call.

use std::ffi::{c_int, c_void};
use std::sync::atomic::Ordering;
use std::sync::OnceLock;

use tarsia::facade::{
    Address, Call, ComputeType, DataType, DenseMatrix, DenseVector, Failure, OpKind, Operation as Op,
    SparseArrays, SparseMatrix, SpmmProblem, SpmvProblem, Status, Types, SPMV_BUFFER_BYTES, TABLE,
};

use crate::arguments::{Object, SpmmArguments, SpmvArguments};
use crate::catch;
use crate::decision::{is_slower, Decision, More, Outcome, Shape};
use crate::getters::{getters, Getters};
use crate::handles::{self, Beside};
use crate::settings::settings;

/// cuSPARSE's numbers of algorithms: DEFAULT, CSR_ALG1, CSR_ALG2. Those for COO and sliced ELL are none for CSR and CSC.
const SPMV_ALGORITHMS: [c_int; 3] = [0, 2, 3];
/// DEFAULT, CSR_ALG1, CSR_ALG2, CSR_ALG3.
const SPMM_CSR_ALGORITHMS: [c_int; 4] = [0, 4, 6, 12];
/// DEFAULT, COO_ALG1 to COO_ALG4.
const SPMM_COO_ALGORITHMS: [c_int; 5] = [0, 1, 2, 3, 5];

/// Takes a call of `cusparseSpMV`.
pub fn spmv(call: &SpmvArguments) -> Result<Shape, Decision> {
    let getters = getters().ok_or(Outcome::NotDescribed)?;
    not_null(&[call.alpha, call.beta])?;
    let (problem, x, y) = spmv_problem(getters, call)?;
    let beside = handles::beside(call.handle)?;
    let stream = getters.stream(call.handle)?;
    let direct = beside.prepared(stream)?;
    let (rows, cols, nnz) = problem.a.shape_of(problem.op);
    let shape = Shape { of: OpKind::Spmv, rows, cols, nnz, columns: 1, types: problem.types };
    decide_by_rule(&shape)?;
    // A graph needs a buffer of the program's, of the size that was answered, and that cuSPARSE has no use for.
    let has_buffer = beside.told_spmv.load(Ordering::Relaxed)
        && !beside.untold.load(Ordering::Relaxed)
        && !handles::is_preprocessed(call.a);
    let buffer = if has_buffer { Address::new(call.last) } else { Address::NULL };
    let scalars = (Address::new(call.alpha), Address::new(call.beta));
    let pointer_mode = getters.pointer_mode(call.handle)?;
    caught(|| direct.spmv(&Call { stream, pointer_mode, scalars, buffer }, &problem, &x, &y))?;
    Ok(shape)
}

/// Runs a product. Of one that panics nobody knows how far it came.
fn caught(product: impl FnOnce() -> Result<(), Failure>) -> Result<(), Decision> {
    let result = catch(product).ok_or(Outcome::Broken)?;
    Ok(result?)
}

/// The size that a call of `cusparseSpMV_bufferSize` is to answer at least.
pub fn spmv_buffer_bytes(call: &SpmvArguments) -> Result<usize, Decision> {
    let getters = getters().ok_or(Outcome::NotDescribed)?;
    spmv_problem(getters, call)?;
    let beside = handles::beside(call.handle)?;
    told(&beside, getters, call.handle, |beside| {
        beside.told_spmv.store(true, Ordering::Relaxed);
        Ok(SPMV_BUFFER_BYTES)
    })
}

/// Tells a size by `tell`. Where that fails, and the product may be taken later all the same, no buffer can be relied on any
/// more. What is not supported never is.
fn told(
    beside: &Beside,
    getters: &Getters,
    handle: Object,
    tell: impl FnOnce(&Beside) -> Result<usize, Decision>,
) -> Result<usize, Decision> {
    let bytes = beside.direct().map_err(Decision::from).and_then(|_| tell(beside));
    if bytes.as_ref().is_err_and(|declined| !is_unsupported(declined)) {
        beside.untold.store(true, Ordering::Relaxed);
    }
    // The handle's first call takes memory, unless it is captured.
    if let Ok(stream) = getters.stream(handle) {
        let _ = beside.prepared(stream);
    }
    bytes
}

fn is_unsupported(declined: &Decision) -> bool {
    matches!(&declined.more, More::Error(error) if error.status == Status::NotSupported)
}

/// The problem of a call, if its format, operation, types and algorithm are served. alpha and beta, which say nothing of the
/// size of a buffer, are not looked at: what is declined here is declined by both functions.
fn spmv_problem(
    getters: &Getters,
    call: &SpmvArguments,
) -> Result<(SpmvProblem, DenseVector, DenseVector), Outcome> {
    let &SpmvArguments { handle, op, a, x, y, compute, algorithm, .. } = call;
    not_null(&[handle, a, x, y])?;
    let op = Op::from_code(op).ok_or(Outcome::Operation)?;
    if !SPMV_ALGORITHMS.contains(&algorithm) {
        return Err(Outcome::Algorithm);
    }
    let a = getters.sparse(a)?;
    if matches!(a.arrays, SparseArrays::Coo(_)) {
        return Err(Outcome::Format);
    }
    in_place(&a, op)?;
    let (x, y) = (getters.vector(x, false)?, getters.vector(y, true)?);
    let types = types(OpKind::Spmv, [a.value_type(), x.value_type, y.value_type], compute)?;
    Ok((SpmvProblem { op, a, types, value_updates: false }, x, y))
}

/// Takes a call of `cusparseSpMM`.
pub fn spmm(call: &SpmmArguments) -> Result<Shape, Decision> {
    let getters = getters().ok_or(Outcome::NotDescribed)?;
    not_null(&[call.alpha, call.beta])?;
    let (problem, b, c) = spmm_problem(getters, call)?;
    if handles::is_preprocessed(call.a) {
        return Err(Outcome::Preprocessed.into());
    }
    let beside = handles::beside(call.handle)?;
    let stream = getters.stream(call.handle)?;
    let direct = beside.prepared(stream)?;
    let (rows, cols, nnz) = problem.a.shape_of(problem.op);
    let shape = Shape { of: OpKind::Spmm, rows, cols, nnz, columns: c.cols, types: problem.types };
    decide_by_rule(&shape)?;
    let bytes = direct.spmm_bytes(&problem).map_err(Failure::Refused)?;
    if bytes > beside.told_spmm.load(Ordering::Relaxed) || bytes > 0 && beside.untold.load(Ordering::Relaxed)
    {
        return Err(Outcome::Buffer.into());
    }
    let scalars = (Address::new(call.alpha), Address::new(call.beta));
    let pointer_mode = getters.pointer_mode(call.handle)?;
    let buffer = Address::new(call.last);
    caught(|| direct.spmm(&Call { stream, pointer_mode, scalars, buffer }, &problem, &b, &c))?;
    Ok(shape)
}

/// The size that a call of `cusparseSpMM_bufferSize` is to answer at least.
pub fn spmm_buffer_bytes(call: &SpmmArguments) -> Result<usize, Decision> {
    let getters = getters().ok_or(Outcome::NotDescribed)?;
    let (problem, _, _) = spmm_problem(getters, call)?;
    let beside = handles::beside(call.handle)?;
    told(&beside, getters, call.handle, |beside| {
        let bytes = beside.direct()?.spmm_bytes(&problem).map_err(Failure::Refused)?;
        beside.told_spmm.fetch_max(bytes, Ordering::Relaxed);
        Ok(bytes)
    })
}

/// The same of an SpMM.
fn spmm_problem(
    getters: &Getters,
    call: &SpmmArguments,
) -> Result<(SpmmProblem, DenseMatrix, DenseMatrix), Outcome> {
    let &SpmmArguments { handle, op_a, op_b, a, b, c, compute, algorithm, .. } = call;
    not_null(&[handle, a, b, c])?;
    let op = Op::from_code(op_a).ok_or(Outcome::Operation)?;
    let op_b = Op::from_code(op_b).filter(|&op| op != Op::ConjugateTranspose).ok_or(Outcome::Operation)?;
    let a = getters.sparse(a)?;
    let algorithms = match a.arrays {
        SparseArrays::Coo(_) => &SPMM_COO_ALGORITHMS[..],
        _ => &SPMM_CSR_ALGORITHMS[..],
    };
    if !algorithms.contains(&algorithm) {
        return Err(Outcome::Algorithm);
    }
    in_place(&a, op)?;
    let (b, c) = (getters.matrix(b, false)?, getters.matrix(c, true)?);
    let types = types(OpKind::Spmm, [a.value_type(), b.value_type, c.value_type], compute)?;
    let problem = SpmmProblem {
        op,
        op_b,
        a,
        b_order: b.order,
        c_order: c.order,
        n_hint: c.cols,
        types,
        value_updates: false,
    };
    Ok((problem, b, c))
}

fn not_null(pointers: &[*const c_void]) -> Result<(), Outcome> {
    match pointers.iter().any(|pointer| pointer.is_null()) {
        true => Err(Outcome::Null),
        false => Ok(()),
    }
}

/// The rows of op(A) must be contiguous in A's arrays, or for COO be in order: what else would take a conversion.
fn in_place(a: &SparseMatrix, op: Op) -> Result<(), Outcome> {
    let is_in_place = match &a.arrays {
        SparseArrays::Csr(_) => op == Op::NonTranspose,
        SparseArrays::Coo(m) => op == Op::NonTranspose && m.base.code() == 0,
        SparseArrays::Csc(m) => {
            op == Op::Transpose || op == Op::ConjugateTranspose && !m.value_type.is_complex()
        }
        _ => return Err(Outcome::Format),
    };
    match is_in_place {
        true => Ok(()),
        false => Err(Outcome::Operation),
    }
}

/// The types of a product, if the kernels without a plan have them. Sums of 32 bits are by IEEE operations alone, unless
/// the environment asks for what is faster.
fn types(of: OpKind, [a, x, y]: [DataType; 3], compute: c_int) -> Result<Types, Outcome> {
    static SERVED: OnceLock<[&[Types]; 2]> = OnceLock::new();
    let served = SERVED.get_or_init(|| {
        // Those of the algorithm that is taken without a plan, by its name.
        let of_algorithm = |of: OpKind, name: &str| {
            let row = TABLE.iter().find(|row| row.op == of && row.name == name);
            row.map_or(&[][..], |row| row.types)
        };
        [of_algorithm(OpKind::Spmv, "csr"), of_algorithm(OpKind::Spmm, "row")]
    });
    let compute = ComputeType::from_code(compute).ok_or(Outcome::Types)?;
    let plain = Types { a, x, y, compute };
    if !matches!(compute, ComputeType::R32F | ComputeType::R64F | ComputeType::C32F | ComputeType::C64F)
        || !served[usize::from(of == OpKind::Spmm)].contains(&plain)
    {
        return Err(Outcome::Types);
    }
    let compute = match compute {
        ComputeType::R32F if !settings().fast_fp32 => ComputeType::R32FPedantic,
        other => other,
    };
    Ok(Types { compute, ..plain })
}

fn decide_by_rule(shape: &Shape) -> Result<(), Decision> {
    match !settings().is_forced() && is_slower(shape) {
        true => Err(Decision { outcome: Outcome::Slower, more: More::Shape(*shape) }),
        false => Ok(()),
    }
}

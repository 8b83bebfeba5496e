//! Calls that are taken: translates cuSPARSE's arguments into Tarsia's and runs Tarsia's products.
//! Unsupported calls are declined with a reason before anything is enqueued, and cuSPARSE then gets them.

use std::ffi::{c_int, c_void};
use std::ptr::null_mut;
use std::sync::{Arc, OnceLock};

use tarsia::facade::direct::{
    Call, DenseMatrix, DenseVector, Direct, Failure, SparseArrays, SparseMatrix, SpmmProblem, SpmvProblem,
    SPMV_BUFFER_BYTES,
};
use tarsia::facade::{Address, ComputeType, DataType, Error, OpKind, Operation as Op, Status, Types, TABLE};

use crate::arguments::{Object, SpmmArguments, SpmvArguments};
use crate::catch;
use crate::decision::{Decision, More, Outcome};
use crate::functions::Operation;
use crate::getters::{getters, Getters};
use crate::handles::{self, HandleState};
use crate::plans::{self, Next, Plan};
use crate::rules::{self, Dense, Preprocessed, Shape};
use crate::settings::settings;

/// cuSPARSE's numbers of the SpMV algorithms that CSR and CSC may have: DEFAULT, CSR_ALG1, CSR_ALG2. The
/// others are for COO and sliced ELL.
const SPMV_ALGORITHMS: [c_int; 3] = [0, 2, 3];
/// cuSPARSE's numbers of the SpMM algorithms for CSR and CSC: DEFAULT, CSR_ALG1, CSR_ALG2, CSR_ALG3.
const SPMM_ALGORITHMS: [c_int; 4] = [0, 4, 6, 12];

/// Computes the product of a call of `cusparseSpMV`, or declines the call.
pub fn spmv(call: &SpmvArguments) -> Result<Shape, Decision> {
    let getters = getters().ok_or(Outcome::NotDescribed)?;
    not_null(&[call.alpha, call.beta])?;
    let (problem, shape, x, y) = spmv_problem(getters, call)?;
    let preprocessed = Preprocessed(handles::is_preprocessed(call.a));
    if preprocessed.0 {
        let key = spmv_key(call);
        let plan = plan_of(getters, &key, |direct, stream, is_frozen| {
            Ok(Plan::Spmv(direct.dense(stream, &problem, is_frozen)?))
        })?;
        if let Some(Plan::Spmv(product)) = plan.as_deref().filter(|plan| plan.serves_spmv(&problem)) {
            let scalars = (call.alpha, call.beta, null_mut());
            return take(getters, call.handle, &shape, scalars, |direct, call| {
                direct.planned_spmv(call, product, problem.a.values(), &x, &y)
            });
        }
    }
    decide_by_rule(&shape, preprocessed)?;
    // The buffer of a preprocessed matrix holds data of cuSPARSE, which must not be overwritten.
    let buffer = if preprocessed.0 { null_mut() } else { call.last };
    take(getters, call.handle, &shape, (call.alpha, call.beta, buffer), |direct, call| {
        direct.spmv(call, &problem, &x, &y)
    })
}

/// Computes the product of a call of `cusparseSpMVOp`, or declines the call. `call` is the SpMV with its result as
/// y, which must be where `y` of the call is.
pub fn spmvop(call: &SpmvArguments, y: Object, key: &plans::Key) -> Result<Shape, Decision> {
    let getters = getters().ok_or(Outcome::NotDescribed)?;
    not_null(&[call.alpha, call.beta, y])?;
    let (problem, shape, x, z) = spmv_problem(getters, call)?;
    let y = getters.vector(y, false)?;
    if (y.values, y.len, y.value_type) != (z.values, z.len, z.value_type) {
        return Err(Outcome::Apart.into());
    }
    let plan = plan_of(getters, key, |direct, stream, is_frozen| {
        Ok(Plan::Spmv(direct.dense(stream, &problem, is_frozen)?))
    })?;
    match plan.as_deref().filter(|plan| plan.serves_spmv(&problem)) {
        Some(Plan::Spmv(product)) => {
            let scalars = (call.alpha, call.beta, null_mut());
            take(getters, call.handle, &shape, scalars, |direct, call| {
                direct.planned_spmv(call, product, problem.a.values(), &x, &z)
            })
        }
        _ => Err(Outcome::Preprocessed.into()),
    }
}

/// Returns the least size that a call of `cusparseSpMV_bufferSize` must answer.
pub fn spmv_buffer_bytes(call: &SpmvArguments) -> Result<usize, Decision> {
    let getters = getters().ok_or(Outcome::NotDescribed)?;
    let (_, shape, ..) = spmv_problem(getters, call)?;
    tell(getters, call.handle, &shape, |_| Ok(SPMV_BUFFER_BYTES))
}

/// Returns the problem of an SpMV call if its format, operation, types and algorithm are supported. The
/// product and its bufferSize function share these checks and so decline the same calls; alpha, beta and
/// preprocessing do not affect the size of the buffer and are not checked here.
fn spmv_problem(
    getters: &Getters,
    call: &SpmvArguments,
) -> Result<(SpmvProblem, Shape, DenseVector, DenseVector), Decision> {
    let &SpmvArguments { handle, op, a, x, y, compute, algorithm, .. } = call;
    not_null(&[handle, a, x, y])?;
    let op = Op::from_code(op).ok_or(Outcome::Operation)?;
    if !SPMV_ALGORITHMS.contains(&algorithm) {
        return Err(Outcome::Algorithm.into());
    }
    let matrix = getters.sparse(a)?;
    in_place(&matrix, op)?;
    let (x, y) = (getters.vector(x, false)?, getters.vector(y, true)?);
    let types = types(OpKind::Spmv, [matrix.value_type(), x.value_type, y.value_type], compute)?;
    let shape = Shape::new(&matrix, types, None).ok_or(Outcome::Format)?;
    Ok((SpmvProblem { op, a: matrix, types, value_updates: false }, shape, x, y))
}

/// Computes the product of a call of `cusparseSpMM`, or declines the call.
pub fn spmm(call: &SpmmArguments) -> Result<Shape, Decision> {
    let getters = getters().ok_or(Outcome::NotDescribed)?;
    not_null(&[call.alpha, call.beta])?;
    let (problem, shape, b, c) = spmm_problem(getters, call)?;
    // SpMM may need the buffer, which holds data of cuSPARSE's preprocessing. (SpMV runs without a buffer.)
    if handles::is_preprocessed(call.a) {
        let key = spmm_key(call);
        let plan = plan_of(getters, &key, |direct, stream, is_frozen| {
            Ok(Plan::Spmm(direct.dense(stream, &problem, is_frozen)?))
        })?;
        if let Some(Plan::Spmm(product)) = plan.as_deref().filter(|plan| plan.serves_spmm(&problem)) {
            let scalars = (call.alpha, call.beta, null_mut());
            return take(getters, call.handle, &shape, scalars, |direct, call| {
                direct.planned_spmm(call, product, problem.a.values(), &b, &c)
            });
        }
        return Err(Outcome::Preprocessed.into());
    }
    decide_by_rule(&shape, Preprocessed(false))?;
    take(getters, call.handle, &shape, (call.alpha, call.beta, call.last), |direct, call| {
        direct.spmm(call, &problem, &b, &c)
    })
}

/// Returns the least size that a call of `cusparseSpMM_bufferSize` must answer.
pub fn spmm_buffer_bytes(call: &SpmmArguments) -> Result<usize, Decision> {
    let getters = getters().ok_or(Outcome::NotDescribed)?;
    let (problem, shape, ..) = spmm_problem(getters, call)?;
    tell(getters, call.handle, &shape, |direct| Ok(direct.spmm_bytes(&problem).map_err(Failure::Refused)?))
}

/// Returns the problem of an SpMM call if it is supported, as [`spmv_problem`] does for SpMV.
fn spmm_problem(
    getters: &Getters,
    call: &SpmmArguments,
) -> Result<(SpmmProblem, Shape, DenseMatrix, DenseMatrix), Decision> {
    let &SpmmArguments { handle, op_a, op_b, a, b, c, compute, algorithm, .. } = call;
    not_null(&[handle, a, b, c])?;
    let op = Op::from_code(op_a).ok_or(Outcome::Operation)?;
    let op_b = Op::from_code(op_b).filter(|&op| op != Op::ConjugateTranspose).ok_or(Outcome::Operation)?;
    if !SPMM_ALGORITHMS.contains(&algorithm) {
        return Err(Outcome::Algorithm.into());
    }
    let matrix = getters.sparse(a)?;
    in_place(&matrix, op)?;
    let (b, c) = (getters.matrix(b, false)?, getters.matrix(c, true)?);
    let types = types(OpKind::Spmm, [matrix.value_type(), b.value_type, c.value_type], compute)?;
    let dense = Dense::new(c.cols, (op_b, b.order), c.order);
    let shape = Shape::new(&matrix, types, Some(dense)).ok_or(Outcome::Format)?;
    let problem = SpmmProblem {
        op,
        op_b,
        a: matrix,
        b_order: b.order,
        c_order: c.order,
        n_hint: c.cols,
        types,
        value_updates: false,
        ieee: !settings().fast_fp32,
    };
    Ok((problem, shape, b, c))
}

/// Returns what a preprocess for SpMV promises, if the products of the matrix can be taken.
pub fn preprocess_spmv(call: &SpmvArguments) -> Result<(plans::Key, Shape), Decision> {
    let getters = getters().ok_or(Outcome::NotDescribed)?;
    let (_, shape, ..) = spmv_problem(getters, call)?;
    preprocess(spmv_key(call), shape)
}

/// Returns what a preprocess for SpMM promises, if the products of the matrix can be taken.
pub fn preprocess_spmm(call: &SpmmArguments) -> Result<(plans::Key, Shape), Decision> {
    let getters = getters().ok_or(Outcome::NotDescribed)?;
    let (_, shape, ..) = spmm_problem(getters, call)?;
    preprocess(spmm_key(call), shape)
}

fn spmv_key(call: &SpmvArguments) -> plans::Key {
    let &SpmvArguments { a: matrix, handle, algorithm, .. } = call;
    plans::Key { matrix, of: Operation::Spmv, handle, algorithm }
}

fn spmm_key(call: &SpmmArguments) -> plans::Key {
    let &SpmmArguments { a: matrix, handle, algorithm, .. } = call;
    plans::Key { matrix, of: Operation::Spmm, handle, algorithm }
}

fn preprocess(key: plans::Key, shape: Shape) -> Result<(plans::Key, Shape), Decision> {
    decide_by_rule(&shape, Preprocessed(false))?;
    handles::state_of(key.handle)?.direct()?;
    Ok((key, shape))
}

/// Returns the plan of a preprocessed matrix, which is made if it is due; `None` if there is none, or the
/// stream is being captured: a graph would share the handle's memory with later calls.
fn plan_of(
    getters: &Getters,
    key: &plans::Key,
    make: impl FnOnce(&Direct, Address, bool) -> Result<Plan, Error>,
) -> Result<Option<Arc<Plan>>, Decision> {
    let stream = getters.stream(key.handle)?;
    let state = handles::state_of(key.handle)?;
    if state.is_capturing(stream)? {
        return Ok(None);
    }
    match plans::next(key) {
        Next::Use(plan) => Ok(Some(plan)),
        Next::Without => Ok(None),
        Next::Make => {
            let direct = state.prepared(stream)?;
            // After a panic there is no plan either, and none is tried again.
            let plan = catch(|| make(direct, stream, settings().frozen_values).map(Arc::new));
            let plan = plan.unwrap_or_else(|| {
                let message = "the analysis of a matrix has panicked".to_string();
                Err(Error { status: Status::InternalError, message })
            });
            plans::keep(key, plan.as_ref().ok().map(Arc::clone));
            Ok(Some(plan.map_err(Failure::Refused)?))
        }
    }
}

/// Runs `product` with the given alpha, beta and buffer. A product that panics may have enqueued work, so it
/// is not forwarded but fails with `Outcome::Broken`.
fn take(
    getters: &Getters,
    handle: Object,
    shape: &Shape,
    (alpha, beta, buffer): (*const c_void, *const c_void, *mut c_void),
    product: impl FnOnce(&Direct, &Call) -> Result<(), Failure>,
) -> Result<Shape, Decision> {
    let state = handles::state_of(handle)?;
    let stream = getters.stream(handle)?;
    let direct = state.prepared(stream)?;
    let call = Call {
        stream,
        pointer_mode: getters.pointer_mode(handle)?,
        scalars: (Address::new(alpha), Address::new(beta)),
        buffer: match state.is_sized(shape) {
            true => Address::new(buffer),
            false => Address::NULL,
        },
    };
    match catch(|| product(direct, &call)).ok_or(Outcome::Broken)? {
        Ok(()) => Ok(*shape),
        Err(Failure::Refused(error)) if error.status == Status::InsufficientResources => {
            Err(Decision { outcome: Outcome::Buffer, more: More::Shape(*shape) })
        }
        Err(failure) => Err(failure.into()),
    }
}

/// Returns the size of a product's buffer and remembers that the shape has been sized. Also prepares the
/// handle, whose first call allocates memory, unless the stream is being captured.
fn tell(
    getters: &Getters,
    handle: Object,
    shape: &Shape,
    bytes: impl FnOnce(&Direct) -> Result<usize, Decision>,
) -> Result<usize, Decision> {
    decide_by_rule(shape, Preprocessed(false))?;
    let state: &HandleState = &*handles::state_of(handle)?;
    let answer = catch(|| bytes(state.direct()?)).unwrap_or_else(|| Err(Outcome::Refused.into()));
    let bytes = match answer {
        Ok(bytes) => bytes,
        Err(declined) => {
            // An unsupported product is never taken, so that its unknown size makes no buffer too small.
            if !is_unsupported(&declined) {
                state.note_size_unknown();
            }
            return Err(declined);
        }
    };
    state.note_sized(shape);
    if let Ok(stream) = getters.stream(handle) {
        let _ = state.prepared(stream);
    }
    Ok(bytes)
}

fn is_unsupported(declined: &Decision) -> bool {
    matches!(&declined.more, More::Error(error) if error.status == Status::NotSupported)
}

pub fn not_null(pointers: &[*const c_void]) -> Result<(), Outcome> {
    match pointers.iter().any(|pointer| pointer.is_null()) {
        true => Err(Outcome::Null),
        false => Ok(()),
    }
}

/// Returns an error unless the rows of op(A) are contiguous in A's arrays; otherwise A would have to be
/// converted.
fn in_place(a: &SparseMatrix, op: Op) -> Result<(), Outcome> {
    let is_in_place = match &a.arrays {
        SparseArrays::Csr(_) => op == Op::NonTranspose,
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

/// Returns the types of a product if the algorithms that execute it support them. Real fp32 sums use IEEE
/// operations alone (pedantic), unless `TARSIA_CUSPARSE_FP32` is `fast`.
pub fn types(of: OpKind, [a, x, y]: [DataType; 3], compute: c_int) -> Result<Types, Outcome> {
    static SERVED: OnceLock<[(OpKind, &[Types]); 3]> = OnceLock::new();
    let served = SERVED.get_or_init(|| {
        // Types of the algorithm with this name: SpMV's and SpMM's executes without a plan.
        let of_algorithm = |of: OpKind, name: &str| {
            let row = TABLE.iter().find(|row| row.op == of && row.name == name);
            row.map_or(&[][..], |row| row.types)
        };
        [(OpKind::Spmv, "csr"), (OpKind::Spmm, "row"), (OpKind::Spgemm, "hash")]
            .map(|(of, name)| (of, of_algorithm(of, name)))
    });
    let compute = ComputeType::from_code(compute).ok_or(Outcome::Types)?;
    let plain = Types { a, x, y, compute };
    if !matches!(compute, ComputeType::R32F | ComputeType::R64F | ComputeType::C32F | ComputeType::C64F)
        || !served.iter().any(|(op, types)| *op == of && types.contains(&plain))
    {
        return Err(Outcome::Types);
    }
    let compute = match compute {
        ComputeType::R32F if !settings().fast_fp32 => ComputeType::R32FPedantic,
        other => other,
    };
    Ok(Types { compute, ..plain })
}

/// Declines a product that cuSPARSE is known to compute faster, unless the settings override the rules.
fn decide_by_rule(shape: &Shape, preprocessed: Preprocessed) -> Result<(), Decision> {
    match rules::slower(shape, preprocessed).filter(|_| !settings().is_forced()) {
        Some(why) => Err(Decision { outcome: Outcome::Slower, more: More::Rule(*shape, why) }),
        None => Ok(()),
    }
}

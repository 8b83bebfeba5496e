//! The steps of `cusparseSpGEMM` for products that Tarsia computes.
//!
//! The first call of `_workEstimation`, which asks for the size of a buffer, decides: Tarsia gets all steps of
//! the product or none. The second call is the analysis, `_compute` the symbolic phase, and `_copy`, when the
//! program has made arrays for C, the numeric phase. Where Tarsia cannot compute the product after all, such
//! as for lack of memory, cuSPARSE still gets it as long as the program has no second buffer: cuSPARSE has
//! told the size of the first one, so that its `_workEstimation` can be made up for.
//!
//! The plan reads the index arrays of A and B in place. That they have not changed since the analysis follows
//! from the order of the steps, up to the first `_compute` with a buffer. A `_compute` after that compares
//! fingerprints of the patterns, and a product of other patterns gets a new plan. The first plan goes with
//! `_copy`; one that is made for repeated steps stays.

use std::collections::BTreeMap;
use std::ffi::{c_int, c_void};
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tarsia::facade::direct::{
    Call, Compressed, Direct, Product, SparseArrays, SparseMatrix, Spgemm, SpgemmProblem,
};
use tarsia::facade::{Address, DataType, Error, IndexType, OpKind, Operation as Op, PointerMode, Status};

use crate::arguments::{self, Frame, Object, SpgemmArguments};
use crate::decision::{Decision, More, Outcome, SUCCESS};
use crate::functions::Function;
use crate::getters::{getters, Getters};
use crate::handles::{self, HandleState};
use crate::place::place;
use crate::products::{not_null, types};
use crate::real;

/// cuSPARSE's numbers of the algorithms: DEFAULT, ALG1, ALG2, ALG3. Those between are of SpGEMMreuse.
const ALGORITHMS: [c_int; 4] = [0, 3, 4, 5];
/// Those of them that have the step `_estimateMemory`.
const ESTIMATING: [c_int; 2] = [4, 5];
/// Size in bytes that the program gets for buffers that are not used: with NULL, which it would have for a
/// buffer of no bytes, a step only answers a size.
const LEAST_BYTES: usize = 256;

/// What a step does with a call: the decision, and the status unless the call is forwarded.
type Answer = (Decision, Option<c_int>);

/// A product that Tarsia computes, with how far it is.
#[derive(Default)]
struct Progress {
    /// Plan, from the second call of `_workEstimation` to the first `_copy`, and again once steps are repeated.
    product: Option<Product<Spgemm>>,
    /// Number of multiplications that the analysis has counted.
    multiplications: Option<i64>,
    /// Fingerprints of the patterns that the plan was made of; only if `_compute` was repeated.
    marks: Option<[[u64; 2]; 2]>,
    /// True while the order of the program's steps says that the plan is one of the present patterns.
    is_current: bool,
    /// True if cuSPARSE has told the size of the first buffer.
    is_sized: bool,
    /// Size and address of the first buffer.
    first_buffer: Option<(usize, Address)>,
}

/// Products that Tarsia computes, by the addresses of their `cusparseSpGEMMDescr_t`.
static PRODUCTS: Mutex<BTreeMap<usize, Arc<Mutex<Progress>>>> = Mutex::new(BTreeMap::new());

fn products() -> MutexGuard<'static, BTreeMap<usize, Arc<Mutex<Progress>>>> {
    PRODUCTS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the product of a descriptor, if Tarsia computes it.
fn find(descriptor: Object) -> Result<Arc<Mutex<Progress>>, Outcome> {
    match handles::is_child() {
        true => Err(Outcome::Child),
        false => products().get(&descriptor.addr()).map(Arc::clone).ok_or(Outcome::NotBegun),
    }
}

fn forget(descriptor: Object) {
    if !handles::is_child() {
        let gone = products().remove(&descriptor.addr());
        // The plan is dropped after the lock is released.
        drop(gone);
    }
}

fn lock(progress: &Mutex<Progress>) -> MutexGuard<'_, Progress> {
    progress.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Handles a call of one of the functions, whose real one is at `address`.
pub fn step(function: Function, address: NonNull<c_void>, frame: Frame) -> Answer {
    let call = |has_buffer| SpgemmArguments::new(frame, has_buffer);
    let answer = match function {
        Function::cusparseSpGEMM_workEstimation => work_estimation(&call(true), address),
        Function::cusparseSpGEMM_getNumProducts => {
            num_products(arguments::object(frame, 0), arguments::result(frame, 1))
        }
        Function::cusparseSpGEMM_estimateMemory => estimate_memory(&call(true), arguments::result(frame, 13)),
        Function::cusparseSpGEMM_compute => compute(&call(true)),
        Function::cusparseSpGEMM_copy => copy(&call(false)),
        Function::cusparseSpGEMM_destroyDescr => {
            forget(arguments::object(frame, 0));
            Err(Outcome::Cusparses.into())
        }
        _ => Err(Outcome::Cusparses.into()),
    };
    answer.unwrap_or_else(|forwarded| (forwarded, None))
}

/// The operands of a step, as cuSPARSE's objects describe them when it is called.
struct Operands {
    state: Arc<HandleState>,
    stream: Address,
    mode: PointerMode,
    problem: SpgemmProblem,
    c: Compressed,
}

impl Operands {
    /// Reads the operands; an error if Tarsia does not compute such a product.
    fn new(call: &SpgemmArguments) -> Result<Self, Decision> {
        let getters: &Getters = getters().ok_or(Outcome::NotDescribed)?;
        not_null(&[call.handle, call.alpha, call.a, call.b, call.beta, call.c, call.descriptor])?;
        if [call.op_a, call.op_b].iter().any(|&op| Op::from_code(op) != Some(Op::NonTranspose)) {
            return Err(Outcome::Operation.into());
        }
        if !ALGORITHMS.contains(&call.algorithm) {
            return Err(Outcome::Algorithm.into());
        }
        let (a, b, c) = (getters.sparse(call.a)?, getters.sparse(call.b)?, getters.csr_to_write(call.c)?);
        let (SparseArrays::Csr(of_a), SparseArrays::Csr(of_b)) = (&a.arrays, &b.arrays) else {
            return Err(Outcome::Format.into());
        };
        let types = types(OpKind::Spgemm, [a.value_type(), b.value_type(), c.value_type], call.compute)?;
        if of_a.minor != of_b.major || (c.major, c.minor) != (of_a.major, of_b.minor) {
            return Err(Outcome::Refused.into());
        }
        let mode = getters.pointer_mode(call.handle)?;
        if mode == PointerMode::Host && !is_zero(call.beta, types.y) {
            return Err(Outcome::Beta.into());
        }
        let state = handles::state_of(call.handle)?;
        let stream = getters.stream(call.handle)?;
        let (op_a, op_b) = (Op::NonTranspose, Op::NonTranspose);
        let problem =
            SpgemmProblem { op_a, op_b, a, b, types, value_updates: false, ieee: false, sorted_output: true };
        Ok(Operands { state, stream, mode, problem, c })
    }

    fn direct(&self) -> Result<&Direct, Outcome> {
        self.state.prepared(self.stream)
    }
}

/// Returns whether a scalar on the host is zero, whose type is that of C's values.
fn is_zero(scalar: *const c_void, of: DataType) -> bool {
    let parts = if of.is_complex() { 2 } else { 1 };
    // SAFETY: the pointer is not NULL, and points to a scalar of this type by the pointer mode.
    unsafe { arguments::is_zero(scalar, parts, of.size() / parts == size_of::<f64>()) }
}

impl Progress {
    /// Returns the number of entries of C, counted by a plan of the present patterns.
    fn count(&mut self, operands: &Operands) -> Result<i64, Decision> {
        let (direct, stream, problem) = (operands.direct()?, operands.stream, &operands.problem);
        if !self.is_current || !self.product.as_ref().is_some_and(|product| product.is_of(problem)) {
            let marks = direct.fingerprints(stream, [&problem.a, &problem.b]).map_err(refused)?;
            let is_known = self.product.as_ref().is_some_and(|product| product.is_of(problem));
            if !is_known || self.marks != Some(marks) {
                // Its memory may be needed for the new one.
                (self.product, self.marks) = (None, None);
                self.product = Some(direct.spgemm(stream, problem, true).map_err(refused)?);
                self.marks = Some(marks);
            }
            self.is_current = true;
        }
        let product = self.product.as_ref().ok_or(Outcome::NotBegun)?;
        let nnz = direct.spgemm_symbolic(stream, product).map_err(refused)?;
        if operands.c.offset_type == IndexType::I32 && nnz >= i64::from(i32::MAX) {
            let text = format!("C: its offsets of 32 bits do not count {nnz} entries");
            return Err(refused(Error { status: Status::InsufficientResources, message: text }));
        }
        Ok(nnz)
    }
}

fn refused(error: Error) -> Decision {
    Decision { outcome: Outcome::StepFailed, more: More::Error(error) }
}

fn taken(problem: &SpgemmProblem) -> Answer {
    (Decision { outcome: Outcome::Taken, more: More::Product(Box::new(*problem)) }, Some(SUCCESS))
}

/// Answers a call of a step that Tarsia cannot carry out with an error.
fn failed(decision: Decision) -> Answer {
    let status = match &decision.more {
        More::Error(error) => match error.status {
            // INSUFFICIENT_RESOURCES, upon which programs try an algorithm with less memory.
            Status::AllocFailed | Status::InsufficientResources => 11,
            Status::InvalidValue => 3,
            Status::NotSupported => 10,
            _ => 6,
        },
        // The operands are not those of the first step.
        _ => 3,
    };
    (Decision { outcome: Outcome::StepFailed, ..decision }, Some(status))
}

/// Writes the size of a buffer.
fn answer_size(call: &SpgemmArguments, bytes: usize) {
    // SAFETY: the program gives an address for the size, or NULL.
    unsafe { arguments::write(call.size, bytes) };
}

fn work_estimation(call: &SpgemmArguments, address: NonNull<c_void>) -> Result<Answer, Decision> {
    if !call.buffer.is_null() {
        return analysis(call);
    }
    forget(call.descriptor);
    not_null(&[call.size.cast_const().cast()])?;
    let operands = Operands::new(call)?;
    let direct = operands.direct()?;
    if direct.is_capturing(operands.stream).unwrap_or(true) {
        return Err(Outcome::Captured.into());
    }
    // Whatever beta is on the device, there is nothing of C that it could be multiplied with.
    if operands.mode == PointerMode::Device && operands.c.nnz != 0 {
        return Err(Outcome::Beta.into());
    }
    place().ok_or(Outcome::Place)?.confirm(call.c)?;
    answer_size(call, 0);
    // SAFETY: `address` is that of this function, and the arguments are those of the call.
    let is_sized = unsafe { call.call(address.as_ptr()) } == SUCCESS;
    // SAFETY: the address of the size is not NULL.
    unsafe { arguments::raise(call.size.cast(), LEAST_BYTES) };
    let progress = Progress { is_sized, ..Progress::default() };
    products().insert(call.descriptor.addr(), Arc::new(Mutex::new(progress)));
    let (decision, answer) = taken(&operands.problem);
    let outcome = if is_sized { Outcome::Sized } else { Outcome::Taken };
    Ok((Decision { outcome, ..decision }, answer))
}

/// The second call of `_workEstimation`. If it fails, cuSPARSE gets it, whose buffer is large enough.
fn analysis(call: &SpgemmArguments) -> Result<Answer, Decision> {
    let progress = find(call.descriptor)?;
    let mut progress = lock(&progress);
    let mut analyze = || {
        let operands = Operands::new(call)?;
        *progress = Progress { is_sized: progress.is_sized, ..Progress::default() };
        let product = operands.direct()?.spgemm(operands.stream, &operands.problem, false);
        let product = product.map_err(refused)?;
        progress.multiplications = Some(product.multiplications().map_err(refused)?);
        progress.product = Some(product);
        progress.is_current = true;
        // SAFETY: the program gives an address for the size, or NULL.
        let bytes = unsafe { call.size.as_ref() };
        progress.first_buffer = bytes.map(|&bytes| (bytes, Address::new(call.buffer)));
        Ok(taken(&operands.problem))
    };
    analyze().or_else(|decision: Decision| {
        if !progress.is_sized {
            return Ok(failed(decision));
        }
        forget(call.descriptor);
        Err(Decision { outcome: Outcome::Refused, ..decision })
    })
}

fn num_products(descriptor: Object, number: *mut i64) -> Result<Answer, Decision> {
    let progress = find(descriptor)?;
    let progress = lock(&progress);
    let found = progress.multiplications.ok_or(Outcome::NotBegun)?;
    not_null(&[number.cast_const().cast()])?;
    // SAFETY: the program gives an address for the number.
    unsafe { arguments::write(number, found) };
    Ok((Outcome::Taken.into(), Some(SUCCESS)))
}

fn estimate_memory(call: &SpgemmArguments, second_size: *mut usize) -> Result<Answer, Decision> {
    let progress = find(call.descriptor)?;
    if !ESTIMATING.contains(&call.algorithm) {
        return Err(Outcome::Algorithm.into());
    }
    let mut progress = lock(&progress);
    let mut estimate = || {
        let operands = Operands::new(call)?;
        progress.count(&operands)?;
        answer_size(call, LEAST_BYTES);
        // SAFETY: the program gives an address for the size, or NULL.
        unsafe { arguments::write(second_size, LEAST_BYTES) };
        Ok(taken(&operands.problem))
    };
    estimate().or_else(|decision| late(call, &progress, decision))
}

fn compute(call: &SpgemmArguments) -> Result<Answer, Decision> {
    let progress = find(call.descriptor)?;
    let mut progress = lock(&progress);
    let mut count = || {
        let operands = Operands::new(call)?;
        let nnz = progress.count(&operands)?;
        match call.buffer.is_null() {
            true => answer_size(call, LEAST_BYTES),
            false => {
                place().ok_or(Outcome::Place)?.set(call.c, nnz)?;
                // After this step the program may write other patterns into the arrays.
                progress.is_current = false;
            }
        }
        Ok(taken(&operands.problem))
    };
    count().or_else(|decision| late(call, &progress, decision))
}

/// Gives cuSPARSE a product that Tarsia cannot compute, if the program has only asked for the size of a buffer so
/// far: carries out the step before in cuSPARSE, with the buffer that is still there.
fn late(call: &SpgemmArguments, progress: &Progress, decision: Decision) -> Result<Answer, Decision> {
    let Some((mut bytes, buffer)) = progress.first_buffer.filter(|_| progress.is_sized) else {
        return Ok(failed(decision));
    };
    let estimation = real::find(Function::cusparseSpGEMM_workEstimation);
    let (true, Ok(address)) = (call.buffer.is_null(), estimation) else { return Ok(failed(decision)) };
    let earlier = SpgemmArguments { size: &mut bytes, buffer: buffer.as_ptr::<c_void>().cast_mut(), ..*call };
    // SAFETY: the address is that of the function, and the arguments are those of the program.
    let status = unsafe { earlier.call(address.as_ptr()) };
    if status != SUCCESS {
        return Ok((Outcome::Unanswered.into(), Some(status)));
    }
    forget(call.descriptor);
    Err(Decision { outcome: Outcome::Late, ..decision })
}

fn copy(call: &SpgemmArguments) -> Result<Answer, Decision> {
    let progress = find(call.descriptor)?;
    let mut progress = lock(&progress);
    let mut numeric = || {
        let operands = Operands::new(call)?;
        let problem = &operands.problem;
        // The program may have made other arrays of the same matrix.
        if !progress.product.as_ref().is_some_and(|product| product.is_of(problem)) {
            progress.is_current = false;
            progress.count(&operands)?;
        }
        let product = progress.product.as_ref().ok_or(Outcome::NotBegun)?;
        let numeric = Call {
            stream: operands.stream,
            pointer_mode: operands.mode,
            scalars: (Address::new(call.alpha), Address::NULL),
            buffer: Address::NULL,
        };
        let arrays = SparseArrays::Csr(operands.c);
        let c = SparseMatrix { arrays, writable: true, temporary: false };
        let values = [problem.a.values(), problem.b.values()];
        operands.direct()?.spgemm_numeric(&numeric, product, values, &c).map_err(refused)?;
        // Most products have no repeated steps: the memory of the plan is free after the work.
        if progress.marks.is_none() {
            progress.product = None;
        }
        Ok(taken(problem))
    };
    numeric().or_else(|decision| Ok(failed(decision)))
}

/// Returns the product as text, such as `1000 × 900 of 12345 entries, times 900 × 800 of 5432, A fp64, …`.
pub fn describe(problem: &SpgemmProblem) -> String {
    let ((m, k, of_a), (_, n, of_b)) = (problem.a.shape(), problem.b.shape());
    format!("{m} × {k} of {of_a} entries, times {k} × {n} of {of_b}, {}", problem.types.describe())
}

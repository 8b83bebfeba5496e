//! The steps of `cusparseSpGEMM` for products that Tarsia computes.
//!
//! The first call of `_workEstimation`, which asks for the size of a buffer, decides: Tarsia gets all steps of
//! the product or none. The second call is the analysis, `_compute` the symbolic phase, and `_copy`, when the
//! program has made arrays for C, the numeric phase. Where Tarsia cannot compute the product after all, such
//! as for lack of memory, cuSPARSE still gets it as long as the program has no second buffer: cuSPARSE has
//! told the size of the first one, so that its `_workEstimation` can be made up for.
//!
//! The plan takes its memory from the program's first buffer, which lives until the last `_copy`, and beyond that from
//! memory of Tarsia's own. The second buffer is not used: the symbolic phase, from which its size would follow, needs most of
//! the memory itself. A plan that is made for repeated steps has memory of its own.
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
    Call, Compressed, Direct, Product, Region, SparseArrays, SparseMatrix, Spgemm, SpgemmProblem,
};
use tarsia::facade::{Address, DataType, Error, IndexType, OpKind, Operation as Op, PointerMode, Status};

use crate::arguments::{self, Frame, Object, SpgemmArguments};
use crate::catch;
use crate::decision::{Decision, More, Outcome, SUCCESS};
use crate::functions::Function;
use crate::getters::{getters, Getters};
use crate::handles::{self, HandleState};
use crate::place::place;
use crate::products::{not_null, types};
use crate::real;
use crate::testing;

/// cuSPARSE's numbers of the algorithms: DEFAULT, ALG1, ALG2, ALG3. Those between are of SpGEMMreuse.
const ALGORITHMS: [c_int; 4] = [0, 3, 4, 5];
/// Those of them that have the step `_estimateMemory`.
const ESTIMATING: [c_int; 2] = [4, 5];
/// Size in bytes that the program gets for buffers that are not used: with NULL, which it would have for a
/// buffer of no bytes, a step only answers a size.
const LEAST_BYTES: usize = 256;

/// What a step does with a call: the decision, and the status unless the call is forwarded.
type Answer = (Decision, Option<c_int>);

/// A product that Tarsia computes, with how far it is. After an error or a panic in a step it either stays with
/// Tarsia, whose later steps then begin anew or fail, or goes to cuSPARSE, which has had the steps before.
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
    /// Size in bytes of the first buffer, as it was answered.
    first_size: usize,
    /// True if cuSPARSE has told a size of the first buffer.
    is_sized: bool,
    /// True once `_estimateMemory` was answered with a buffer, a step that cannot be made up for.
    is_estimated: bool,
    /// Size and address of the first buffer.
    first_buffer: Option<(usize, Address)>,
}

/// Products by the addresses of their `cusparseSpGEMMDescr_t`, with the address of the handle of the first step.
type Products = BTreeMap<usize, (usize, Arc<Mutex<Progress>>)>;

/// Products that Tarsia computes.
static PRODUCTS: Mutex<Products> = Mutex::new(BTreeMap::new());

fn products() -> MutexGuard<'static, Products> {
    PRODUCTS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns whether Tarsia computes no product, and no thread begins or ends one.
pub fn are_none() -> bool {
    PRODUCTS.try_lock().is_ok_and(|products| products.is_empty())
}

/// Drops the plans that were made with a handle that the program destroys. Steps with another handle make new ones.
pub fn forget_handle(handle: Object) {
    if !handles::is_child() {
        let of_handle =
            |(of, progress): &(usize, Arc<_>)| (*of == handle.addr()).then(|| Arc::clone(progress));
        let found: Vec<_> = products().values().filter_map(of_handle).collect();
        found.iter().for_each(|progress| lock(progress).restart());
    }
}

/// Returns the product of a descriptor, if Tarsia computes it.
fn find(descriptor: Object) -> Result<Arc<Mutex<Progress>>, Outcome> {
    match handles::is_child() {
        true => Err(Outcome::Child),
        false => {
            products().get(&descriptor.addr()).map(|(_, found)| Arc::clone(found)).ok_or(Outcome::NotBegun)
        }
    }
}

fn forget(descriptor: Object) {
    if !handles::is_child() {
        let gone = products().remove(&descriptor.addr());
        // The plan is dropped after the lock of the map is released.
        if let Some((_, progress)) = gone {
            lock(&progress).end_plan();
        }
    }
}

/// Forgets a product whose lock is held.
fn forget_locked(descriptor: Object, progress: &mut Progress) {
    let gone = products().remove(&descriptor.addr());
    progress.end_plan();
    drop(gone);
}

fn lock(progress: &Mutex<Progress>) -> MutexGuard<'_, Progress> {
    progress.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Handles a call of one of the functions, whose real one is at `address`.
pub fn step(function: Function, address: NonNull<c_void>, frame: Frame) -> Answer {
    let call = |has_buffer| SpgemmArguments::new(frame, has_buffer);
    let steps = || match function {
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
    // Panics inside a step that Tarsia has begun are caught in the step.
    let answer = catch(steps).unwrap_or_else(|| after_panic(function, frame));
    answer.unwrap_or_else(|forwarded| (forwarded, None))
}

/// Ends a call that has panicked: cuSPARSE gets no later step of a product whose earlier ones it has not had.
fn after_panic(function: Function, frame: Frame) -> Result<Answer, Decision> {
    let descriptor = match function {
        Function::cusparseSpGEMM_workEstimation => {
            let call = SpgemmArguments::new(frame, true);
            if call.buffer.is_null() {
                // Also where cuSPARSE has been asked for the size before: it may be asked again.
                catch(|| forget(call.descriptor));
                return Err(Outcome::Refused.into());
            }
            call.descriptor
        }
        Function::cusparseSpGEMM_getNumProducts => arguments::object(frame, 0),
        Function::cusparseSpGEMM_estimateMemory
        | Function::cusparseSpGEMM_compute
        | Function::cusparseSpGEMM_copy => SpgemmArguments::new(frame, false).descriptor,
        _ => return Err(Outcome::Cusparses.into()),
    };
    match catch(|| find(descriptor)) {
        Some(Err(outcome)) => Err(outcome.into()),
        _ => Ok(failed(panicked())),
    }
}

fn panicked() -> Decision {
    let message = "a step of the product has panicked".to_string();
    refused(Error { status: Status::InternalError, message })
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
        // The steps wait for numbers from the device, and a graph would share the plan's memory with later work.
        if state.is_capturing(stream)? {
            return Err(Outcome::Captured.into());
        }
        let (op_a, op_b) = (Op::NonTranspose, Op::NonTranspose);
        let problem =
            SpgemmProblem { op_a, op_b, a, b, types, value_updates: false, ieee: false, sorted_output: true };
        Ok(Operands { state, stream, mode, problem, c })
    }

    /// Reads the operands of a step after the first one, at which C may have entries that beta could be multiplied
    /// with: beta is read where it is on the device, too, and may be another one than in the step before.
    fn of_later(call: &SpgemmArguments) -> Result<Self, Decision> {
        let operands = Operands::new(call)?;
        if operands.may_add_c() {
            let of = operands.problem.types.y;
            let beta = operands.direct()?.read_scalar(operands.stream, Address::new(call.beta), of.size());
            if !is_zero(beta.map_err(refused)?.as_ptr().cast(), of) {
                return Err(Outcome::Beta.into());
            }
        }
        Ok(operands)
    }

    /// Returns whether C has entries and beta is on the device.
    fn may_add_c(&self) -> bool {
        self.mode == PointerMode::Device && self.c.nnz != 0
    }

    fn direct(&self) -> Result<&Direct, Outcome> {
        self.state.prepared(self.stream)
    }
}

/// Returns whether a scalar on the host is zero, whose type is that of C's values.
fn is_zero(scalar: *const c_void, of: DataType) -> bool {
    let parts = if of.is_complex() { 2 } else { 1 };
    // SAFETY: the pointer is not NULL, and points to a scalar of this type: by the pointer mode, or because it was
    // copied to the host.
    unsafe { arguments::is_zero(scalar, parts, of.size() / parts == size_of::<f64>()) }
}

impl Progress {
    /// Runs part of a step. After a panic, which counts as an error of the step, the next one begins anew.
    fn run<T>(&mut self, part: impl FnOnce(&mut Self) -> Result<T, Decision>) -> Result<T, Decision> {
        catch(|| part(self)).unwrap_or_else(|| {
            self.restart();
            Err(panicked())
        })
    }

    /// Drops the plan; a later step makes a new one if it is needed.
    fn restart(&mut self) {
        (self.marks, self.is_current) = (None, false);
        self.end_plan();
    }

    fn end_plan(&mut self) {
        if let Some(plan) = self.product.take() {
            handles::note_release();
            catch(|| drop(plan));
        }
    }

    /// Returns the number of entries of C, counted by a plan of the present patterns.
    fn count(&mut self, operands: &Operands) -> Result<i64, Decision> {
        let (direct, stream, problem) = (operands.direct()?, operands.stream, &operands.problem);
        if !self.is_current || !self.product.as_ref().is_some_and(|product| product.is_of(problem)) {
            let marks = direct.fingerprints(stream, [&problem.a, &problem.b]).map_err(refused)?;
            let is_known = self.product.as_ref().is_some_and(|product| product.is_of(problem));
            if !is_known || self.marks != Some(marks) {
                // Its memory may be needed for the new one.
                self.marks = None;
                self.end_plan();
                self.product = Some(direct.spgemm(stream, problem, None, true).map_err(refused)?);
                self.marks = Some(marks);
            }
            self.is_current = true;
        }
        let product = self.product.as_ref().ok_or(Outcome::NotBegun)?;
        let nnz = direct.spgemm_symbolic(stream, product).map_err(refused)?;
        if operands.c.offset_type == IndexType::I32 && nnz >= testing::most_entries() {
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
        _ => match decision.outcome {
            Outcome::Captured | Outcome::Beta => 10,
            // The operands are not those of the first step.
            _ => 3,
        },
    };
    let more = match decision.more {
        More::Nothing if decision.outcome != Outcome::StepFailed => More::Instead(decision.outcome),
        more => more,
    };
    (Decision { outcome: Outcome::StepFailed, more }, Some(status))
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
    operands.direct()?;
    // Without entries of C there is nothing that beta could be multiplied with. Later steps read it.
    if operands.may_add_c() {
        return Err(Outcome::Beta.into());
    }
    place().ok_or(Outcome::Place)?.confirm(call.c)?;
    answer_size(call, 0);
    // SAFETY: `address` is that of this function, and the arguments are those of the call.
    let is_sized = unsafe { call.call(address.as_ptr()) } == SUCCESS;
    // SAFETY: the address of the size is not NULL.
    let first_size = unsafe { arguments::raise(call.size.cast(), Direct::spgemm_bytes(&operands.problem)) };
    let progress = Progress { first_size, is_sized, ..Progress::default() };
    testing::panic_at("first");
    products().insert(call.descriptor.addr(), (call.handle.addr(), Arc::new(Mutex::new(progress))));
    let (decision, answer) = taken(&operands.problem);
    let outcome = if is_sized { Outcome::Sized } else { Outcome::Taken };
    Ok((Decision { outcome, ..decision }, answer))
}

/// The second call of `_workEstimation`. If it fails, cuSPARSE gets it, whose buffer is large enough.
fn analysis(call: &SpgemmArguments) -> Result<Answer, Decision> {
    let progress = find(call.descriptor)?;
    let mut progress = lock(&progress);
    let analyzed = progress.run(|progress| {
        let operands = Operands::of_later(call)?;
        progress.end_plan();
        let Progress { first_size, is_sized, .. } = *progress;
        *progress = Progress { first_size, is_sized, ..Progress::default() };
        // SAFETY: the program gives an address for the size, or NULL.
        let given = (!call.size.is_null()).then(|| unsafe { call.size.read_unaligned() });
        progress.first_buffer = given.map(|bytes| (bytes, Address::new(call.buffer)));
        let lent =
            progress.first_buffer.map(|(bytes, address)| Region { address, bytes: bytes.min(first_size) });
        let product = operands.direct()?.spgemm(operands.stream, &operands.problem, lent, false);
        let product = product.map_err(refused)?;
        let multiplications = product.multiplications().map_err(refused)?;
        progress.multiplications = Some(multiplications);
        progress.product = Some(product);
        progress.is_current = true;
        // A C that may have too many entries is counted already here, since programs expect at this step that cuSPARSE
        // cannot compute a product by their algorithm: CuPy takes another one then.
        if operands.c.offset_type == IndexType::I32 && multiplications >= testing::most_entries() {
            progress.count(&operands)?;
        }
        testing::panic_at("analysis");
        Ok(taken(&operands.problem))
    });
    analyzed.or_else(|decision| {
        if !progress.is_sized {
            return Ok(failed(decision));
        }
        forget_locked(call.descriptor, &mut progress);
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
    let estimated = progress.run(|progress| {
        let operands = Operands::of_later(call)?;
        progress.count(&operands)?;
        testing::panic_at("estimate");
        answer_size(call, LEAST_BYTES);
        // SAFETY: the program gives an address for the size, or NULL.
        unsafe { arguments::write(second_size, LEAST_BYTES) };
        progress.is_estimated |= !call.buffer.is_null();
        Ok(taken(&operands.problem))
    });
    estimated.or_else(|decision| late(call, &mut progress, decision))
}

fn compute(call: &SpgemmArguments) -> Result<Answer, Decision> {
    let progress = find(call.descriptor)?;
    let mut progress = lock(&progress);
    let counted = progress.run(|progress| {
        let operands = Operands::of_later(call)?;
        let nnz = progress.count(&operands)?;
        testing::panic_at(if call.buffer.is_null() { "size" } else { "compute" });
        match call.buffer.is_null() {
            true => answer_size(call, LEAST_BYTES),
            false => {
                place().ok_or(Outcome::Place)?.set(call.c, nnz)?;
                // After this step the program may write other patterns into the arrays.
                progress.is_current = false;
            }
        }
        Ok(taken(&operands.problem))
    });
    counted.or_else(|decision| late(call, &mut progress, decision))
}

/// Gives cuSPARSE a product that Tarsia cannot compute, if the program has only asked for the size of a buffer so
/// far: carries out the step before in cuSPARSE, with the buffer that is still there.
fn late(call: &SpgemmArguments, progress: &mut Progress, decision: Decision) -> Result<Answer, Decision> {
    let can_be_made_up_for = progress.is_sized && !progress.is_estimated;
    let Some((mut bytes, buffer)) = progress.first_buffer.filter(|_| can_be_made_up_for) else {
        return Ok(failed(decision));
    };
    let estimation = real::find(Function::cusparseSpGEMM_workEstimation);
    let (true, Ok(address)) = (call.buffer.is_null(), estimation) else { return Ok(failed(decision)) };
    // The buffer is cuSPARSE's from here on.
    progress.restart();
    let earlier = SpgemmArguments { size: &mut bytes, buffer: buffer.as_ptr::<c_void>().cast_mut(), ..*call };
    // SAFETY: the address is that of the function, and the arguments are those of the program.
    let status = unsafe { earlier.call(address.as_ptr()) };
    if status != SUCCESS {
        return Ok((Outcome::Unanswered.into(), Some(status)));
    }
    forget_locked(call.descriptor, progress);
    Err(Decision { outcome: Outcome::Late, ..decision })
}

fn copy(call: &SpgemmArguments) -> Result<Answer, Decision> {
    let progress = find(call.descriptor)?;
    let mut progress = lock(&progress);
    let computed = progress.run(|progress| {
        let operands = Operands::of_later(call)?;
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
        testing::panic_at("copy");
        // Most products have no repeated steps: the memory of the plan is free after the work.
        if progress.marks.is_none() {
            progress.end_plan();
        }
        Ok(taken(problem))
    });
    computed.or_else(|decision| Ok(failed(decision)))
}

/// Returns the product as text, such as `1000 × 900 of 12345 entries, times 900 × 800 of 5432, A fp64, …`.
pub fn describe(problem: &SpgemmProblem) -> String {
    let ((m, k, of_a), (_, n, of_b)) = (problem.a.shape(), problem.b.shape());
    format!("{m} × {k} of {of_a} entries, times {k} × {n} of {of_b}, {}", problem.types.describe())
}

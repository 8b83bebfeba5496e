//! `cusparseSpMVOp`, whose plan is a promise that the pattern of A stays: z = α · op(A) · x + β · y, with z and y in
//! the same array. Plans with an epilogue of the program's are cuSPARSE's.
//!
//! Its products are taken with `TARSIA_CUSPARSE=force` alone, since they have not been measured against those of a
//! cuSPARSE that has this function. Without it the calls do not come here.

use std::collections::BTreeMap;
use std::ffi::{c_int, c_void};
use std::ptr::{null_mut, NonNull};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::arguments::{self, Frame, Object, SpmvArguments};
use crate::catch;
use crate::decision::{self, Decision, Outcome, SUCCESS};
use crate::functions::{Function, Operation};
use crate::handles;
use crate::plans;
use crate::products;

/// What a description of cuSPARSE's is of: the arguments that an SpMV has, too.
#[derive(Clone, Copy)]
struct Description {
    handle: Object,
    op: c_int,
    a: Object,
    compute: c_int,
}

// SAFETY: the addresses are only compared, and given to cuSPARSE in calls of the program's.
unsafe impl Send for Description {}

/// Descriptions and plans of cuSPARSE's, by their addresses.
#[derive(Default)]
struct Known {
    descriptions: BTreeMap<usize, Description>,
    plans: BTreeMap<usize, Description>,
}

static KNOWN: Mutex<Known> = Mutex::new(Known { descriptions: BTreeMap::new(), plans: BTreeMap::new() });

fn known() -> MutexGuard<'static, Known> {
    KNOWN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Number of an algorithm that no other product has, for the key of the plans.
const ALGORITHM: c_int = -1;

fn key(plan: Object, handle: Object) -> plans::Key {
    plans::Key { matrix: plan, of: Operation::Spmv, handle, algorithm: ALGORITHM }
}

/// Handles a call of one of the functions, whose real one is at `address`. Returns the decision, and the status
/// unless the call is to be forwarded.
pub fn step(function: Function, address: NonNull<c_void>, frame: Frame) -> (Decision, Option<c_int>) {
    // SAFETY: `address` is that of the function, and the frame that of the call.
    let real = || unsafe { frame.call(address.as_ptr()) };
    let noted = |note: &dyn Fn()| {
        let status = real();
        if status == SUCCESS {
            // cuSPARSE has executed the call: a panic must not cause it to be forwarded a second time.
            catch(note);
        }
        (Outcome::Cusparses.into(), Some(status))
    };
    match function {
        Function::cusparseSpMVOp => decision::product(product(frame)),
        Function::cusparseSpMVOp_createDescr => noted(&|| note_description(frame)),
        Function::cusparseSpMVOp_createPlan => noted(&|| note_plan(frame)),
        Function::cusparseSpMVOp_destroyDescr => {
            known().descriptions.remove(&arguments::object(frame, 0).addr());
            (Outcome::Cusparses.into(), None)
        }
        Function::cusparseSpMVOp_destroyPlan => {
            forget(|plan, _| plan == arguments::object(frame, 0).addr());
            (Outcome::Cusparses.into(), None)
        }
        // Only an epilogue of the program's has data of the program's.
        Function::cusparseSpMVOp_setGlobalUserData => {
            forget(|plan, _| plan == arguments::object(frame, 1).addr());
            (Outcome::Cusparses.into(), None)
        }
        _ => (Outcome::Cusparses.into(), None),
    }
}

fn note_description(frame: Frame) {
    let description = Description {
        handle: arguments::object(frame, 0),
        op: arguments::number(frame, 2),
        a: arguments::object(frame, 3),
        compute: arguments::number(frame, 7),
    };
    // SAFETY: cuSPARSE has written the description's address there.
    let made: Object = unsafe { arguments::read(arguments::result(frame, 1)) };
    known().descriptions.insert(made.addr(), description);
}

fn note_plan(frame: Frame) {
    let (of, code): (Object, Object) = (arguments::object(frame, 1), arguments::object(frame, 3));
    // SAFETY: cuSPARSE has written the plan's address there.
    let made: Object = unsafe { arguments::read(arguments::result(frame, 2)) };
    // A plan that was destroyed where the drop-in did not see it.
    forget(|plan, _| plan == made.addr());
    let mut known = known();
    let description = known.descriptions.get(&of.addr()).copied();
    if let Some(description) = description.filter(|_| code.is_null()) {
        known.plans.insert(made.addr(), description);
        plans::promise(&key(made, description.handle));
    }
}

fn product(frame: Frame) -> Result<crate::rules::Shape, Decision> {
    let [handle, plan, alpha, beta, x, y, z] = [0, 1, 2, 3, 4, 5, 6].map(|at| arguments::object(frame, at));
    let of = known().plans.get(&plan.addr()).copied().ok_or(Outcome::Epilogue)?;
    let Description { op, a, compute, .. } = of;
    let call = SpmvArguments { handle, op, alpha, a, x, beta, y: z, compute, algorithm: 0, last: null_mut() };
    products::spmvop(&call, y, &key(plan, handle))
}

/// Forgets the plans that `is_gone` says, given a plan's address and what it is of.
fn forget(is_gone: impl Fn(usize, &Description) -> bool) {
    if handles::is_child() {
        return;
    }
    let mut gone = Vec::new();
    known().plans.retain(|&plan, of| {
        let is_kept = !is_gone(plan, of);
        if !is_kept {
            gone.push(plan);
        }
        is_kept
    });
    gone.into_iter().for_each(|plan| plans::forget(std::ptr::without_provenance(plan)));
}

/// Forgets the plans of a matrix that the program destroys, or gives other arrays.
pub fn forget_matrix(matrix: Object) {
    forget(|_, of| of.a == matrix);
    if !handles::is_child() {
        known().descriptions.retain(|_, of| of.a != matrix);
    }
}

/// Forgets the plans of a handle that the program destroys.
pub fn forget_handle(handle: Object) {
    forget(|_, of| of.handle == handle);
    if !handles::is_child() {
        known().descriptions.retain(|_, of| of.handle != handle);
    }
}

/// Returns whether there are no plans, and no thread makes one.
pub fn are_none() -> bool {
    KNOWN.try_lock().is_ok_and(|known| known.plans.is_empty())
}

//! The operations of the library, one file each. A plan ([`crate::plan`]) uses an operation only through the
//! trait [`Operation`]; docs/adding-an-operation.md describes the steps of adding one.

pub mod arguments;
mod dense;
mod learned;
mod report;
pub mod spgemm;
pub mod spmm;
pub mod spmv;

use std::any::Any;
use std::sync::Arc;

pub use self::arguments::PlanArguments;
pub use self::dense::{DenseExecutor, DenseOperation};
pub use self::report::{Built, Report};
pub use self::spgemm::{check_result, not_counted, too_many_products, Spgemm, SpgemmBackend, SpgemmExecutor};
pub use self::spmm::{Spmm, SpmmBackend, SpmmExecutor};
pub use self::spmv::{Spmv, SpmvBackend, SpmvExecutor};
use crate::algorithm::{Algorithm, Query, Row};
use crate::backend::Backend;
use crate::error::{refuse_if, require, Error, Result};
use crate::matrix::{Lines, SparseMatrix};
use crate::memory::{Allocator, Context};
use crate::reorder::KeptOrder;
use crate::select::analysis::Amortized;
use crate::select::{self, autotune, in_place, Choice};
use crate::settings::Settings;
use crate::support::Types;
use crate::types::{
    Address, BackendKind, ComputeType, DataType, Effort, OpKind, Operation as Op, Reorder, ScalarsAt,
};

/// Methods that a backend implements for all operations.
pub trait Operations: SpmvBackend + SpmmBackend + SpgemmBackend {}
impl<B: SpmvBackend + SpmmBackend + SpgemmBackend> Operations for B {}

/// Interface of an operation to its plans. A value of the implementing type is the state that a plan of this
/// operation keeps besides the problem and the executor; for most operations it is empty.
pub trait Operation: Default + Send + Sync + 'static {
    /// Value of the operation in the C enum, by which its rows of the table of algorithms are found.
    const KIND: OpKind;
    /// Arguments of createPlan.
    type Problem: Copy + Send + Sync;
    /// Result of analysis, which computes the products: a box of a trait that the backends implement.
    type Executor: Executor;

    /// Returns references to the fields that all problems have.
    fn parts(problem: &mut Self::Problem) -> ProblemFields<'_>;

    /// Notes whether a pedantic compute type was asked for, for operations whose kernels depend on it. The
    /// problem's `types` never say so, and the table of algorithms already excludes algorithms that are not
    /// pedantic.
    fn note_pedantic(_problem: &mut Self::Problem, _is_pedantic: bool) {}

    /// Checks arguments of createPlan other than formats and types, which the table of algorithms covers.
    fn check(_problem: &Self::Problem) -> Result<()> {
        Ok(())
    }

    /// Lists the arguments of createPlan as numbers with names. Decisions apply only to plans with the same
    /// numbers in the same order, so the order must never change.
    fn arguments(planned: &Planned<Self>, arguments: &mut PlanArguments);

    /// Returns `NOT_SUPPORTED` for settings that the operation, or the algorithm that the caller named, does
    /// not support.
    fn check_settings(_planned: &Planned<Self>, _settings: &Settings) -> Result<()> {
        Ok(())
    }

    /// Chooses an algorithm, or takes the choice of an earlier analysis (`decided`), and has the backend
    /// build the executor. The caller has checked the settings and that the matrices have arrays.
    fn analyze(
        planned: &mut Planned<Self>,
        analysis: &Analysis<'_>,
        decided: Option<&Choice>,
    ) -> Result<(Self::Executor, Choice)>;

    /// Returns an error if this plan cannot use a choice that an earlier analysis has made.
    fn admits(planned: &Planned<Self>, choice: &Choice) -> Result<()>;

    /// Takes new values of A for the same pattern, in the order of the user's array
    /// (tarsiaPlan_updateValues).
    fn update_values(planned: &mut Planned<Self>, cx: &Context, values: Address) -> Result<()>;

    /// Returns the bytes of workspace that execute needs. If they depend on the number of columns, they are
    /// for `n` columns, or for those that the plan was created for if `n` is `None`.
    fn workspace_bytes(_problem: &Self::Problem, _executor: &Self::Executor, _n: Option<i64>) -> usize {
        0
    }

    /// Returns the allocators of tiles that the executor reads in place; that memory is freed with the last
    /// of its owners.
    fn shared_memory(_planned: &Planned<Self>) -> Vec<Arc<Allocator>> {
        Vec::new()
    }
}

/// Executor of any operation, as a plan sees it.
pub trait Executor: Send + Sync {
    /// Describes it, for tarsiaPlan_getInfo.
    fn built(&self) -> Built;

    /// Returns, for A and B, whether products read the user's value array. If so, a graph of captured
    /// products keeps reading the array that was given when it was captured.
    fn reads_values(&self) -> [bool; 2];

    /// Returns whether new values leave the plan's arrays at their addresses, so that graphs of captured
    /// products stay valid: the plan has no arrays of its own, or new values are written into the present
    /// ones.
    fn keeps_arrays(&self) -> bool {
        self.built().layout.in_place
    }

    /// Returns whether products have the same bits from run to run.
    fn is_deterministic(&self) -> bool {
        true
    }

    /// Returns the order of the rows of op(A) that the host has computed, if decisions store it. Blocks.
    fn row_order(&self, _cx: &Context) -> Result<Option<KeptOrder>> {
        Ok(None)
    }

    /// Returns the number of multiplications for a sparse result, and its stored entries once they are
    /// counted.
    fn counts(&self) -> (i64, Option<i64>) {
        (0, None)
    }
}

/// References to the fields that all problems have.
pub struct ProblemFields<'a> {
    /// Sparse operands as (name of the argument, op, matrix), A first.
    pub factors: Vec<(&'static str, Op, &'a mut SparseMatrix)>,
    /// Value and compute types.
    pub types: &'a mut Types,
    /// True if new values must be asynchronous (tarsiaPlan_setValueUpdates).
    pub value_updates: &'a mut bool,
}

/// Context of an analysis.
pub struct Analysis<'a> {
    /// Backend that builds and executes.
    pub backend: &'a dyn Backend,
    /// Context with the stream and the allocator.
    pub cx: &'a Context,
    /// Settings of the plan.
    pub settings: &'a Settings,
}

impl Analysis<'_> {
    /// Returns the cost model that tells which steps of an analysis of op(A) the expected number of executes
    /// pays for.
    fn amortized(&self, a: &SparseMatrix, op: Op) -> Amortized {
        Amortized::new(self.backend.machine(), a, op, self.settings.expected_executes)
    }

    /// Builds the first choice that can be built, for a product with dense operands; with effort TUNED the
    /// fastest of the first `most` choices. Named row orders, and those that TUNED tries, are applied here.
    fn pick<E>(
        &self,
        amortized: &Amortized,
        (mut choices, most, rows): (Vec<Choice>, usize, i64),
        build: impl Fn(&Choice) -> Result<E>,
        time: impl Fn(&E) -> Result<f64>,
    ) -> Result<(E, Choice)> {
        let settings = self.settings;
        select::put_in_order(&mut choices, settings.reorder)?;
        let tries = settings.effort == Effort::Tuned && settings.reorder == Reorder::Auto;
        let timed = if tries { select::try_orders(&mut choices, most, rows) } else { most };
        let (effort, choices, timed) = amortized.worth_timing(settings.effort, choices, timed);
        let (executor, mut choice) = autotune::pick(effort, timed, choices, build, time)?;
        amortized.explain(&mut choice);
        Ok((executor, choice))
    }
}

/// An operation's problem and state, as a plan stores them.
pub struct Planned<O: Operation> {
    problem: O::Problem,
    /// Compute type that the user asked for; the problem has its plain form.
    compute: ComputeType,
    /// Rows of the table of algorithms from which analysis chooses.
    rows: Vec<&'static Row>,
    /// Result of analysis; `None` before it.
    executor: Option<O::Executor>,
    /// State of the operation besides these fields.
    more: O,
}

impl<O: Operation> Planned<O> {
    /// Creates it from a problem and looks up the supporting algorithms in the table.
    pub fn new(backend: BackendKind, mut problem: O::Problem, algorithm: Option<Algorithm>) -> Result<Self> {
        let ProblemFields { factors, types, .. } = O::parts(&mut problem);
        let asked = *types;
        let mut rows: Option<Vec<&Row>> = None;
        for (name, _, a) in factors {
            let query = Query { op: O::KIND, format: a.format(), types: asked, backend, algorithm };
            let found = query.rows().map_err(|error| of_factor(error, name))?;
            match &mut rows {
                Some(rows) => rows.retain(|row| row.formats.contains(&query.format)),
                None => rows = Some(found),
            }
        }
        O::check(&problem)?;
        *O::parts(&mut problem).types = asked.plain();
        O::note_pedantic(&mut problem, asked.compute.is_pedantic());
        let (rows, more) = (rows.unwrap_or_default(), O::default());
        Ok(Planned { problem, compute: asked.compute, rows, executor: None, more })
    }

    /// Creates the operation of a product without a plan from a problem whose format and types the table of
    /// algorithms is known to have.
    pub fn known(mut problem: O::Problem) -> Self {
        let types = O::parts(&mut problem).types;
        let asked = *types;
        *types = asked.plain();
        O::note_pedantic(&mut problem, asked.compute.is_pedantic());
        Planned { problem, compute: asked.compute, rows: Vec::new(), executor: None, more: O::default() }
    }

    /// Returns the value and compute types that the user asked for.
    fn types(&self) -> Types {
        let mut problem = self.problem;
        Types { compute: self.compute, ..*O::parts(&mut problem).types }
    }

    /// Returns the only algorithm from which analysis can choose, such as the one that the caller named.
    fn named(&self) -> Option<Algorithm> {
        (self.rows.len() == 1).then(|| self.rows[0].algorithm)
    }

    /// Returns the problem to build for a choice: a named row order needs to keep the origin of its values.
    fn problem_of(&self, choice: &Choice) -> O::Problem {
        let mut problem = self.problem;
        *O::parts(&mut problem).value_updates |= choice.method.reorder().is_named();
        problem
    }

    #[inline]
    fn executor(&self) -> Result<&O::Executor> {
        self.executor.as_ref().ok_or_else(not_analyzed)
    }

    fn executor_mut(&mut self) -> Result<&mut O::Executor> {
        self.executor.as_mut().ok_or_else(not_analyzed)
    }

    /// Checks new values of A and passes them to the executor.
    fn renew_a(
        &mut self,
        values: Address,
        update: impl FnOnce(&mut O::Executor) -> Result<()>,
    ) -> Result<()> {
        let ProblemFields { factors, value_updates, .. } = O::parts(&mut self.problem);
        check_new_values("newValues", factors[0].2, values, *value_updates)?;
        update(self.executor_mut()?)?;
        let a = &mut O::parts(&mut self.problem).factors[0].2;
        **a = a.with_values(values);
        Ok(())
    }
}

/// [`Planned`] without its type parameter: the interface that a plan uses.
pub trait Task: Send + Sync {
    /// Returns `self` for the downcast of [`planned`].
    fn as_any(&self) -> &dyn Any;
    /// Returns `self` for the downcast of [`planned_mut`].
    fn as_any_mut(&mut self) -> &mut dyn Any;
    /// Returns [`Operation::KIND`].
    fn kind(&self) -> OpKind;
    /// Returns the rows of the table of algorithms from which analysis chooses.
    fn rows(&self) -> &[&'static Row];
    /// Returns the numbers that [`Operation::arguments`] lists.
    fn arguments(&self) -> PlanArguments;
    /// Returns the sparse operands as (name of the argument, op, matrix), A first.
    fn factors(&self) -> Vec<(&'static str, Op, SparseMatrix)>;
    /// Returns (rows, columns) of op(A) and the stored entries of A.
    fn shape(&self) -> (i64, i64, i64) {
        let (_, op, a) = self.factors()[0];
        a.shape_of(op)
    }
    /// Sets whether the user may free the arrays of the matrices after analysis.
    fn set_temporary(&mut self, temporary: bool);
    /// Calls [`Operation::admits`].
    fn admits(&self, choice: &Choice) -> Result<()>;
    /// Checks what all operations have in common, and analyzes.
    fn analyze(&mut self, analysis: &Analysis<'_>, decided: Option<&Choice>) -> Result<(Choice, Report)>;
    /// Drops the result of analysis.
    fn reset(&mut self);
    /// Returns [`Executor::built`]; `None` before analysis.
    fn built(&self) -> Option<Built>;
    /// Returns whether products would read other user arrays than now if these values were set (NULL keeps
    /// the present ones).
    fn reads_other_values(&self, given: [Address; 2]) -> bool;
    /// Returns [`Executor::keeps_arrays`]; true before analysis.
    fn keeps_arrays(&self) -> bool;
    /// Calls [`Operation::update_values`].
    fn update_values(&mut self, cx: &Context, values: Address) -> Result<()>;
    /// Returns [`Operation::workspace_bytes`]; 0 before analysis.
    fn workspace_bytes(&self, n: Option<i64>) -> usize;
    /// Returns [`Executor::is_deterministic`]; true before analysis.
    fn is_deterministic(&self) -> bool;
    /// Returns [`Executor::row_order`]; `None` before analysis.
    fn row_order(&self, cx: &Context) -> Result<Option<KeptOrder>>;
    /// Returns [`Executor::counts`]; none before analysis.
    fn counts(&self) -> (i64, Option<i64>);
    /// Returns [`Operation::shared_memory`].
    fn shared_memory(&self) -> Vec<Arc<Allocator>>;
}

impl<O: Operation> Task for Planned<O> {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }

    fn kind(&self) -> OpKind {
        O::KIND
    }

    fn rows(&self) -> &[&'static Row] {
        &self.rows
    }

    fn arguments(&self) -> PlanArguments {
        let mut arguments = Vec::new();
        O::arguments(self, &mut arguments);
        arguments
    }

    fn factors(&self) -> Vec<(&'static str, Op, SparseMatrix)> {
        let mut problem = self.problem;
        O::parts(&mut problem).factors.into_iter().map(|(name, op, a)| (name, op, *a)).collect()
    }

    fn set_temporary(&mut self, temporary: bool) {
        O::parts(&mut self.problem).factors.into_iter().for_each(|(_, _, a)| a.temporary = temporary);
    }

    fn admits(&self, choice: &Choice) -> Result<()> {
        O::admits(self, choice)
    }

    fn analyze(&mut self, analysis: &Analysis<'_>, decided: Option<&Choice>) -> Result<(Choice, Report)> {
        let settings = analysis.settings;
        select::rows_in_order(&self.rows, settings.reorder)?;
        O::check_settings(self, settings)?;
        let factors = self.factors();
        factors.iter().try_for_each(|(name, _, a)| a.require_arrays(name))?;
        // A learned order may turn out to be any, so new values are handled as for a named one.
        *O::parts(&mut self.problem).value_updates =
            settings.value_updates || settings.reorder == Reorder::Learned;
        if settings.values_in_place {
            in_place::require(O::KIND, self.named(), settings.reorder, &factors)?;
            decided.map_or(Ok(()), in_place::require_choice)?;
        }
        let learned = match settings.reorder {
            Reorder::Learned if decided.is_none() => Some(learned::order(analysis, &self.rows, &factors[0])?),
            _ => None,
        };
        let settings = Settings { reorder: learned.unwrap_or(settings.reorder), ..*settings };
        let (executor, mut choice) =
            O::analyze(self, &Analysis { settings: &settings, ..*analysis }, decided)?;
        if let Some(found) = learned {
            learned::explain(found, &mut choice);
        }
        let report = Report::new(&choice, executor.built());
        self.executor = Some(executor);
        Ok((choice, report))
    }

    fn reset(&mut self) {
        self.executor = None;
    }

    fn built(&self) -> Option<Built> {
        self.executor.as_ref().map(Executor::built)
    }

    fn reads_other_values(&self, given: [Address; 2]) -> bool {
        let reads = self.executor.as_ref().map_or([false; 2], Executor::reads_values);
        let mut factors = self.factors().into_iter().zip(given).zip(reads);
        factors.any(|(((_, _, a), given), reads)| {
            reads && a.shape().2 > 0 && !given.is_null() && given != a.values()
        })
    }

    fn keeps_arrays(&self) -> bool {
        self.executor.as_ref().is_none_or(Executor::keeps_arrays)
    }

    fn update_values(&mut self, cx: &Context, values: Address) -> Result<()> {
        O::update_values(self, cx, values)
    }

    fn workspace_bytes(&self, n: Option<i64>) -> usize {
        self.executor.as_ref().map_or(0, |executor| O::workspace_bytes(&self.problem, executor, n))
    }

    fn shared_memory(&self) -> Vec<Arc<Allocator>> {
        O::shared_memory(self)
    }

    fn is_deterministic(&self) -> bool {
        self.executor.as_ref().is_none_or(Executor::is_deterministic)
    }

    fn row_order(&self, cx: &Context) -> Result<Option<KeptOrder>> {
        self.executor.as_ref().map_or(Ok(None), |executor| executor.row_order(cx))
    }

    fn counts(&self) -> (i64, Option<i64>) {
        self.executor.as_ref().map_or((0, None), Executor::counts)
    }
}

/// Returns the operation of a plan for the C function `function`; an error if the plan is of another
/// operation.
#[inline]
pub fn planned<'a, O: Operation>(task: &'a dyn Task, function: &str) -> Result<&'a Planned<O>> {
    task.as_any().downcast_ref().ok_or_else(|| of_another_operation(function))
}

/// Returns the operation of a plan for changes; otherwise as [`planned`].
pub fn planned_mut<'a, O: Operation>(task: &'a mut dyn Task, function: &str) -> Result<&'a mut Planned<O>> {
    task.as_any_mut().downcast_mut().ok_or_else(|| of_another_operation(function))
}

#[cold]
fn of_another_operation(function: &str) -> Error {
    let reason = format!("it is not a plan that {function} takes: it was made for another operation");
    Error::invalid("plan", reason)
}

#[cold]
fn not_analyzed() -> Error {
    Error::state("plan: not analyzed")
}

/// Puts the name of the operand into an error of the table of algorithms, which always says A.
fn of_factor(mut error: Error, name: &str) -> Error {
    if let Some(rest) = error.message.strip_prefix("A:") {
        error.message = format!("{name}:{rest}");
    }
    error
}

/// Checks that alpha and beta are not NULL and do not overlap the result, which may be written before they
/// are read.
#[inline(always)]
fn check_scalars(compute: ComputeType, (alpha, beta): ScalarsAt, name: &str, result: &Lines) -> Result<()> {
    let bytes = compute.scalar().size();
    let check = |scalar, address: Address| {
        refuse_if!(address.is_null(), invalid(scalar), "the pointer is NULL");
        refuse_if!(
            result.overlaps(&Lines::one(address, bytes)),
            invalid(scalar),
            "it lies in {name}, which may be written before it is read"
        );
        Ok(())
    };
    check("alpha", alpha)?;
    check("beta", beta)
}

/// Checks that a result shares no memory with the arrays of A, unless the plan reads none of them.
#[inline(always)]
fn check_apart(name: &str, result: &Lines, a: &SparseMatrix) -> Result<()> {
    if a.temporary || a.is_far_from(result) {
        return Ok(());
    }
    match a.array_in(result) {
        Some(array) => Err(Error::invalid(name, format!("it shares memory with the {array} of A"))),
        None => Ok(()),
    }
}

/// Checks that new values are there, and that a self-contained plan has kept the map from the user's values
/// to its own, since it cannot read the pattern any more. The plan has checked their alignment.
fn check_new_values(name: &str, a: &SparseMatrix, values: Address, value_updates: bool) -> Result<()> {
    refuse_if!(values.is_null() && a.shape().2 > 0, invalid(name), "the pointer is NULL");
    refuse_if!(
        a.temporary && !value_updates,
        state,
        "plan: it is self-contained (tarsiaPlan_setSelfContained), so that new values need \
         tarsiaPlan_setValueUpdates(plan, 1) before analysis"
    );
    Ok(())
}

/// Checks that op(A) has as many columns as op(B) has rows.
#[inline]
fn check_inner(k: i64, b_rows: i64) -> Result<()> {
    if b_rows != k {
        let reason = format!("op(B) has {b_rows} rows, expected the {k} columns of op(A)");
        return Err(Error::invalid("B", reason));
    }
    Ok(())
}

/// Checks that a matrix for the result has the rows of op(A) and the columns of op(B).
#[inline]
fn check_shape(name: &str, (rows, cols): (i64, i64), (m, n): (i64, i64)) -> Result<()> {
    if (rows, cols) != (m, n) {
        let expected = format!("expected {m} × {n} (rows of op(A) × columns of op(B))");
        return Err(Error::invalid(name, format!("it is {rows} × {cols}, {expected}")));
    }
    Ok(())
}

/// Checks that a result is not in const arrays; `by` is the function that makes descriptors of those.
#[inline]
pub fn check_writable(name: &str, writable: bool, by: &str) -> Result<()> {
    require!(writable, invalid(name), "it was made by {by} and cannot be written");
    Ok(())
}

/// Checks that the values of an operand have the type that the plan was created for.
#[inline]
fn check_type(name: &str, found: DataType, expected: DataType) -> Result<()> {
    require!(
        found == expected,
        invalid(name),
        "its values are {}, the plan was created for {}",
        found.short(),
        expected.short()
    );
    Ok(())
}

//! What is computed: the operations of the library, each in a file. A plan ([`crate::plan`]) knows of one what
//! [`Operation`] asks for, and nothing else; docs/adding-an-operation.md says in which order a new one is made.

pub mod facts;
mod into;
mod learned;
mod report;
pub mod spgemm;
pub mod spmm;
pub mod spmv;

use std::any::Any;
use std::sync::Arc;

pub use self::facts::Facts;
pub use self::report::{Built, Report};
pub use self::spgemm::{Spgemm, SpgemmBackend, SpgemmExecutor};
pub use self::spmm::{Spmm, SpmmBackend, SpmmExecutor};
pub use self::spmv::{Spmv, SpmvBackend, SpmvExecutor};
use crate::algorithm::{Algorithm, Query, Row};
use crate::backend::Backend;
use crate::error::{Error, Result};
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

/// What all operations ask of a backend.
pub trait Operations: SpmvBackend + SpmmBackend + SpgemmBackend {}
impl<B: SpmvBackend + SpmmBackend + SpgemmBackend> Operations for B {}

/// What an operation supplies. A value of the type is what its plans keep beside the problem and the executor:
/// for most operations nothing.
pub trait Operation: Default + Send + Sync + 'static {
    /// Its number in the C interface, by which the table of algorithms has its rows.
    const KIND: OpKind;
    /// The arguments of createPlan.
    type Problem: Copy + Send + Sync;
    /// What analysis builds and products are computed with: a box of a trait that the backends implement.
    type Executor: Send + Sync;

    /// What all problems have.
    fn parts(problem: &mut Self::Problem) -> Parts<'_>;

    /// Notes whether a pedantic compute type was asked for, where algorithms must know: `types` are without it, and what
    /// may be chosen is the table's matter.
    fn note_pedantic(_problem: &mut Self::Problem, _is_pedantic: bool) {}

    /// What may be wrong with the arguments of createPlan beside formats and types, which the table of algorithms
    /// lists.
    fn check(_problem: &Self::Problem) -> Result<()> {
        Ok(())
    }

    /// The arguments of createPlan as numbers with their names. Decisions are for plans with the same numbers, in
    /// the same order, so that an order never changes.
    fn facts(planned: &Planned<Self>, facts: &mut Facts);

    /// `NOT_SUPPORTED` for settings that the operation, or the algorithm that the caller named, does not take.
    fn check_settings(_planned: &Planned<Self>, _settings: &Settings) -> Result<()> {
        Ok(())
    }

    /// Chooses an algorithm, unless an earlier analysis has decided, and has the backend build what it executes.
    /// The matrices have their arrays, and the settings were checked.
    fn analyze(
        planned: &mut Planned<Self>,
        analysis: &Analysis<'_>,
        decided: Option<&Choice>,
    ) -> Result<(Self::Executor, Choice)>;

    /// An error unless a choice that an earlier analysis has made can be one of this plan.
    fn admits(planned: &Planned<Self>, choice: &Choice) -> Result<()>;

    /// What was built, for tarsiaPlan_getInfo.
    fn built(executor: &Self::Executor) -> Built;

    /// New values of A for the same pattern, in the order of the user's array: tarsiaPlan_updateValues.
    fn update_values(planned: &mut Planned<Self>, cx: &Context, values: Address) -> Result<()>;

    /// Of A and B, whether products read the caller's array of values: a graph of products then goes on with the array
    /// that was given when it was captured.
    fn reads_values(executor: &Self::Executor) -> [bool; 2] {
        [Self::built(executor).layout.in_place; 2]
    }

    /// Whether new values never move an array of the plan's that products read, so that graphs of products stay right:
    /// there is none, or they are written where the present ones are.
    fn keeps_arrays(executor: &Self::Executor) -> bool {
        Self::built(executor).layout.in_place
    }

    /// Bytes of workspace that execute needs; of an operation for which columns count, for `n` of them, or for
    /// those that the plan was created for.
    fn workspace_bytes(_problem: &Self::Problem, _executor: &Self::Executor, _n: Option<i64>) -> usize {
        0
    }

    /// Whether products have the same bits from run to run.
    fn is_deterministic(_executor: &Self::Executor) -> bool {
        true
    }

    /// The order of the rows of op(A) that the host has computed, where decisions keep it. Blocks.
    fn row_order(_executor: &Self::Executor, _cx: &Context) -> Result<Option<KeptOrder>> {
        Ok(None)
    }

    /// Of a sparse result: multiplications, and stored entries where they are counted.
    fn counts(_executor: &Self::Executor) -> (i64, Option<i64>) {
        (0, None)
    }

    /// The allocators of memory that the executor reads in place, and that goes with the last of its owners:
    /// tiles.
    fn shared_memory(_planned: &Planned<Self>) -> Vec<Arc<Allocator>> {
        Vec::new()
    }
}

/// What all problems have.
pub struct Parts<'a> {
    /// The sparse matrices that are given: the argument's name, the op, the matrix; A first.
    pub factors: Vec<(&'static str, Op, &'a mut SparseMatrix)>,
    /// Value and compute types.
    pub types: &'a mut Types,
    /// Whether new values are to be asynchronous (tarsiaPlan_setValueUpdates).
    pub value_updates: &'a mut bool,
}

/// Where and how a plan is analyzed.
pub struct Analysis<'a> {
    /// Who executes.
    pub backend: &'a dyn Backend,
    /// Stream and allocator.
    pub cx: &'a Context,
    /// What was set of the plan.
    pub settings: &'a Settings,
}

impl Analysis<'_> {
    /// What the executes that are expected make worthwhile in an analysis of op(A).
    fn amortized(&self, a: &SparseMatrix, op: Op) -> Amortized {
        Amortized::new(self.backend.machine(), a, op, self.settings.expected_executes)
    }

    /// Builds the first of the choices for a product with dense operands that can be built; effort TUNED the
    /// fastest of the `most` first ones. Orders by name, and those that TUNED tries, are applied here.
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

/// An operation as a plan keeps it.
pub struct Planned<O: Operation> {
    problem: O::Problem,
    /// As the plan was asked for; the problem has it without what is pedantic, of which the rows take care.
    compute: ComputeType,
    /// The rows of the table of algorithms among which analysis chooses.
    rows: Vec<&'static Row>,
    /// `None` before analysis.
    executor: Option<O::Executor>,
    /// What the operation keeps beside these.
    more: O,
}

impl<O: Operation> Planned<O> {
    /// Looks the problem up in the table of algorithms.
    pub fn new(backend: BackendKind, mut problem: O::Problem, algorithm: Option<Algorithm>) -> Result<Self> {
        let Parts { factors, types, .. } = O::parts(&mut problem);
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

    /// Of a problem whose format and types the table of algorithms is known to have, for products without analysis.
    pub fn known(mut problem: O::Problem) -> Self {
        let types = O::parts(&mut problem).types;
        let asked = *types;
        *types = asked.plain();
        O::note_pedantic(&mut problem, asked.compute.is_pedantic());
        Planned { problem, compute: asked.compute, rows: Vec::new(), executor: None, more: O::default() }
    }

    /// Value and compute types as the plan was asked for.
    fn types(&self) -> Types {
        let mut problem = self.problem;
        Types { compute: self.compute, ..*O::parts(&mut problem).types }
    }

    /// The algorithm that the caller named, or that there is no choice of.
    fn named(&self) -> Option<Algorithm> {
        (self.rows.len() == 1).then(|| self.rows[0].algorithm)
    }

    /// The problem as it is built for a choice: where values come from is kept with an order by name.
    fn problem_of(&self, choice: &Choice) -> O::Problem {
        let mut problem = self.problem;
        *O::parts(&mut problem).value_updates |= choice.method.reorder().is_named();
        problem
    }

    fn executor(&self) -> Result<&O::Executor> {
        self.executor.as_ref().ok_or_else(not_analyzed)
    }

    fn executor_mut(&mut self) -> Result<&mut O::Executor> {
        self.executor.as_mut().ok_or_else(not_analyzed)
    }

    /// Checks new values of A, and has the executor take them.
    fn renew_a(
        &mut self,
        values: Address,
        update: impl FnOnce(&mut O::Executor) -> Result<()>,
    ) -> Result<()> {
        let Parts { factors, value_updates, .. } = O::parts(&mut self.problem);
        check_new_values("newValues", factors[0].2, values, *value_updates)?;
        update(self.executor_mut()?)?;
        let a = &mut O::parts(&mut self.problem).factors[0].2;
        **a = a.with_values(values);
        Ok(())
    }
}

/// [`Planned`] of any operation: all that a plan needs of it.
pub trait Task: Send + Sync {
    /// For [`planned`].
    fn as_any(&self) -> &dyn Any;
    /// For [`planned_mut`].
    fn as_any_mut(&mut self) -> &mut dyn Any;
    /// [`Operation::KIND`].
    fn kind(&self) -> OpKind;
    /// Rows of the table of algorithms among which analysis chooses.
    fn rows(&self) -> &[&'static Row];
    /// [`Operation::facts`].
    fn facts(&self) -> Facts;
    /// The sparse matrices that are given, with the arguments' names and the ops; A first.
    fn factors(&self) -> Vec<(&'static str, Op, SparseMatrix)>;
    /// (rows, columns) of op(A) and stored entries of A.
    fn shape(&self) -> (i64, i64, i64) {
        let (_, op, a) = self.factors()[0];
        a.shape_of(op)
    }
    /// Whether the arrays of the matrices may go after analysis.
    fn set_temporary(&mut self, temporary: bool);
    /// [`Operation::admits`].
    fn admits(&self, choice: &Choice) -> Result<()>;
    /// Checks what is common to all operations, and analyzes.
    fn analyze(&mut self, analysis: &Analysis<'_>, decided: Option<&Choice>) -> Result<(Choice, Report)>;
    /// Forgets what analysis built.
    fn reset(&mut self);
    /// [`Operation::built`]; `None` before analysis.
    fn built(&self) -> Option<Built>;
    /// Whether values at these addresses (NULL: the present ones) would have products read other arrays of the caller's
    /// than they do now.
    fn reads_other_values(&self, given: [Address; 2]) -> bool;
    /// [`Operation::keeps_arrays`]; before analysis there are none.
    fn keeps_arrays(&self) -> bool;
    /// [`Operation::update_values`].
    fn update_values(&mut self, cx: &Context, values: Address) -> Result<()>;
    /// [`Operation::workspace_bytes`]; 0 before analysis.
    fn workspace_bytes(&self, n: Option<i64>) -> usize;
    /// [`Operation::is_deterministic`]; before analysis nothing says otherwise.
    fn is_deterministic(&self) -> bool;
    /// [`Operation::row_order`].
    fn row_order(&self, cx: &Context) -> Result<Option<KeptOrder>>;
    /// [`Operation::counts`].
    fn counts(&self) -> (i64, Option<i64>);
    /// [`Operation::shared_memory`].
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

    fn facts(&self) -> Facts {
        let mut facts = Vec::new();
        O::facts(self, &mut facts);
        facts
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
        // New values are as with a policy by name whichever order is found.
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
        let report = Report::new(&choice, O::built(&executor));
        self.executor = Some(executor);
        Ok((choice, report))
    }

    fn reset(&mut self) {
        self.executor = None;
    }

    fn built(&self) -> Option<Built> {
        self.executor.as_ref().map(O::built)
    }

    fn reads_other_values(&self, given: [Address; 2]) -> bool {
        let reads = self.executor.as_ref().map_or([false; 2], O::reads_values);
        let mut factors = self.factors().into_iter().zip(given).zip(reads);
        factors.any(|(((_, _, a), given), reads)| {
            reads && a.shape().2 > 0 && !given.is_null() && given != a.values()
        })
    }

    fn keeps_arrays(&self) -> bool {
        self.executor.as_ref().is_none_or(O::keeps_arrays)
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
        self.executor.as_ref().is_none_or(O::is_deterministic)
    }

    fn row_order(&self, cx: &Context) -> Result<Option<KeptOrder>> {
        self.executor.as_ref().map_or(Ok(None), |executor| O::row_order(executor, cx))
    }

    fn counts(&self) -> (i64, Option<i64>) {
        self.executor.as_ref().map_or((0, None), O::counts)
    }
}

/// The operation of a plan, for a function that is for this operation.
pub fn planned<'a, O: Operation>(task: &'a dyn Task, function: &str) -> Result<&'a Planned<O>> {
    task.as_any().downcast_ref().ok_or_else(|| of_another_operation(function))
}

/// The same, to change it.
pub fn planned_mut<'a, O: Operation>(task: &'a mut dyn Task, function: &str) -> Result<&'a mut Planned<O>> {
    task.as_any_mut().downcast_mut().ok_or_else(|| of_another_operation(function))
}

fn of_another_operation(function: &str) -> Error {
    let reason = format!("it is not a plan that {function} takes: it was made for another operation");
    Error::invalid("plan", reason)
}

fn not_analyzed() -> Error {
    Error::state("plan: not analyzed")
}

/// An error of the table of algorithms, which names A, about this factor.
fn of_factor(mut error: Error, name: &str) -> Error {
    if let Some(rest) = error.message.strip_prefix("A:") {
        error.message = format!("{name}:{rest}");
    }
    error
}

/// alpha and beta must be there before anything is written, and apart from the result, which may be written before they
/// are read.
fn check_scalars(compute: ComputeType, (alpha, beta): ScalarsAt, name: &str, result: &Lines) -> Result<()> {
    for (scalar, address) in [("alpha", alpha), ("beta", beta)] {
        if address.is_null() {
            return Err(Error::invalid(scalar, "the pointer is NULL"));
        }
        let bytes = compute.scalar().size();
        if result.overlaps(&Lines { address, bytes, distance: bytes, count: 1 }) {
            return Err(Error::invalid(
                scalar,
                format!("it lies in {name}, which may be written before it is read"),
            ));
        }
    }
    Ok(())
}

/// A result shares no memory with the arrays of A, unless the plan reads none of them.
fn check_apart(name: &str, result: &Lines, a: &SparseMatrix) -> Result<()> {
    if a.temporary {
        return Ok(());
    }
    match a.array_in(result) {
        Some(array) => Err(Error::invalid(name, format!("it shares memory with the {array} of A"))),
        None => Ok(()),
    }
}

/// New values must be there, and those of a self-contained plan need to know where they go, since nobody can look in
/// the pattern. The plan has checked that they are aligned.
fn check_new_values(name: &str, a: &SparseMatrix, values: Address, value_updates: bool) -> Result<()> {
    if values.is_null() && a.shape().2 > 0 {
        return Err(Error::invalid(name, "the pointer is NULL"));
    }
    if a.temporary && !value_updates {
        return Err(Error::state(
            "plan: it is self-contained (tarsiaPlan_setSelfContained), so that new values need \
             tarsiaPlan_setValueUpdates(plan, 1) before analysis",
        ));
    }
    Ok(())
}

/// The columns of op(A) are the rows of op(B).
fn check_inner(k: i64, b_rows: i64) -> Result<()> {
    if b_rows != k {
        let reason = format!("op(B) has {b_rows} rows, expected the {k} columns of op(A)");
        return Err(Error::invalid("B", reason));
    }
    Ok(())
}

/// A result in a matrix has the rows of op(A) and the columns of op(B).
fn check_shape(name: &str, (rows, cols): (i64, i64), (m, n): (i64, i64)) -> Result<()> {
    if (rows, cols) != (m, n) {
        let expected = format!("expected {m} × {n} (rows of op(A) × columns of op(B))");
        return Err(Error::invalid(name, format!("it is {rows} × {cols}, {expected}")));
    }
    Ok(())
}

/// A result is not in const arrays; `by` is what makes descriptors of those.
pub fn check_writable(name: &str, writable: bool, by: &str) -> Result<()> {
    match writable {
        true => Ok(()),
        false => Err(Error::invalid(name, format!("it was made by {by} and cannot be written"))),
    }
}

/// Values of an operand are of the type that the plan was created for.
fn check_type(name: &str, found: DataType, expected: DataType) -> Result<()> {
    if found != expected {
        return Err(Error::invalid(
            name,
            format!("its values are {}, the plan was created for {}", found.short(), expected.short()),
        ));
    }
    Ok(())
}

//! SpMV: y = alpha · op(A) · x + beta · y.

use super::decisions::{self, Facts};
use super::learned::Resolved;
use super::{into, Report};
use crate::algorithm::{Algorithm, Query, Row};
use crate::backend::{Backend, SpmvExecutor};
use crate::error::{Error, Result};
use crate::matrix::{DenseVector, SparseMatrix};
use crate::memory::Context;
use crate::problem::SpmvProblem;
use crate::reorder::KeptOrder;
use crate::select::analysis::Amortized;
use crate::select::{self, autotune, in_place, Choice};
use crate::settings::Settings;
use crate::support::Types;
use crate::types::{Address, BackendKind, ComputeType, DataType, Effort, OpKind, Operation, Reorder};

/// Layouts that effort TUNED times at the most.
const TIMED: usize = 2;

/// State of an SpMV plan.
pub struct SpmvPlan {
    problem: SpmvProblem,
    /// As the plan was asked for; the problem has it without what is pedantic, of which the rows take care.
    compute: ComputeType,
    pub(super) rows: Vec<&'static Row>,
    executor: Option<Box<dyn SpmvExecutor>>,
}

impl SpmvPlan {
    /// Looks the problem up in the support table.
    pub fn new(
        backend: BackendKind,
        op: Operation,
        a: SparseMatrix,
        (x, y): (DataType, DataType),
        compute: ComputeType,
        algorithm: Option<Algorithm>,
    ) -> Result<Self> {
        let types = Types { a: a.value_type(), x, y, compute };
        let rows = crate::algorithm::find(&Query {
            op: OpKind::Spmv,
            format: a.format(),
            types,
            backend,
            algorithm,
        })?;
        let problem = SpmvProblem { op, a, types: types.plain(), value_updates: false };
        Ok(SpmvPlan { problem, compute, rows, executor: None })
    }

    pub(super) fn analyze(
        &mut self,
        backend: &dyn Backend,
        cx: &Context,
        settings: &Settings,
        decided: Option<&Choice>,
        report: &mut Report,
    ) -> Result<Choice> {
        self.problem.a.require_arrays("A")?;
        // New values are as with a policy by name whichever order is found.
        self.problem.value_updates = settings.value_updates || settings.reorder == Reorder::Learned;
        if settings.values_in_place {
            let named = self.named();
            in_place::require(
                OpKind::Spmv,
                named,
                settings.reorder,
                &[("A", &self.problem.a, self.problem.op)],
            )?;
            decided.map_or(Ok(()), in_place::require_choice)?;
        }
        let (executor, choice) = match decided {
            Some(choice) => (backend.build_spmv(cx, &self.problem_of(choice), choice, None)?, choice.clone()),
            None => self.choose(backend, cx, settings)?,
        };
        report.set(&choice, executor.layout());
        report.reorder = executor.reorder();
        self.executor = Some(executor);
        Ok(choice)
    }

    /// The problem as it is built for a choice: where values come from is kept with an order by name.
    fn problem_of(&self, choice: &Choice) -> SpmvProblem {
        let value_updates = self.problem.value_updates || choice.reorder.is_named();
        SpmvProblem { value_updates, ..self.problem }
    }

    fn choose(
        &self,
        backend: &dyn Backend,
        cx: &Context,
        settings: &Settings,
    ) -> Result<(Box<dyn SpmvExecutor>, Choice)> {
        let problem = &self.problem;
        let mut rows = select::rows_in_order(&self.rows, settings.reorder)?;
        let resolved = Resolved::new(backend, cx, (&problem.a, problem.op), &rows, settings)?;
        let settings = &resolved.settings;
        let machine = backend.machine();
        let amortized = Amortized::new(machine, &problem.a, problem.op, settings.expected_executes);
        if settings.values_in_place {
            let choices = select::spmv(problem, in_place::rows(&mut rows), Effort::Quick, machine, None)?;
            let mut choice = in_place::choice(choices)?;
            amortized.explain(&mut choice);
            return Ok((backend.build_spmv(cx, problem, &choice, None)?, choice));
        }
        let least = select::seconds_by_shape(&problem.a, problem.op, 1, problem.types, machine);
        // Nothing to decide: a name leaves one row, and QUICK takes the shapes alone.
        let decides = rows.len() > 1 && settings.effort != Effort::Quick && amortized.may_look_spmv(least);
        let surveyed = if decides { backend.survey_spmv(cx, problem)? } else { None };
        let survey = surveyed.as_ref().map(|surveyed| &surveyed.survey);
        let times = (settings.effort, settings.expected_executes);
        let mut choices = select::spmv_times(problem, &rows, times, machine, survey)?;
        select::put_in_order(&mut choices, settings.reorder)?;
        let tries = settings.effort == Effort::Tuned && settings.reorder == Reorder::Auto;
        let timed = if tries { select::try_orders(&mut choices, TIMED, self.shape().0) } else { TIMED };
        let (effort, choices, timed) = amortized.worth_timing(settings.effort, choices, timed);
        let build =
            |choice: &Choice| backend.build_spmv(cx, &self.problem_of(choice), choice, surveyed.as_ref());
        let (executor, mut choice) = autotune::pick(effort, timed, choices, build, |executor| {
            backend.time_spmv(cx, problem, &**executor)
        })?;
        resolved.explain(&mut choice);
        amortized.explain(&mut choice);
        Ok((executor, choice))
    }

    /// The algorithm that the caller named.
    fn named(&self) -> Option<Algorithm> {
        (self.rows.len() == 1).then(|| self.rows[0].algorithm)
    }

    /// The order of rows that analysis has computed on the host, if it has.
    pub(super) fn row_order(&self, cx: &Context) -> Result<Option<KeptOrder>> {
        self.executor.as_ref().map_or(Ok(None), |executor| executor.row_order(cx))
    }

    pub(super) fn facts(&self, facts: &mut Facts) {
        let SpmvProblem { op, a, types, .. } = &self.problem;
        decisions::operation(facts, "opA", *op);
        decisions::matrix(facts, "A", a);
        decisions::types(facts, Types { compute: self.compute, ..*types }, ["xType", "yType"]);
    }

    pub(super) fn matrices(&self) -> Vec<(&'static str, SparseMatrix)> {
        vec![("A", self.problem.a)]
    }

    /// A choice that was made elsewhere is one of this plan's.
    pub(super) fn admits(&self, choice: &Choice) -> Result<()> {
        select::admits_dense(&self.problem.a, self.problem.op, &self.rows, choice)
    }

    /// What may be different after new values.
    pub(super) fn describe(&self, report: &mut Report) {
        if let Some(executor) = &self.executor {
            (report.layout, report.reorder) = (executor.layout(), executor.reorder());
            report.add(&executor.details());
        }
    }

    /// Whether A's arrays may go after analysis.
    pub(super) fn set_temporary(&mut self, temporary: bool) {
        self.problem.a.temporary = temporary;
    }

    /// Forgets what analysis built.
    pub(super) fn reset(&mut self) {
        self.executor = None;
    }

    /// Checks the arguments and executes.
    pub fn execute(
        &self,
        cx: &Context,
        alpha: Address,
        x: &DenseVector,
        beta: Address,
        y: &DenseVector,
    ) -> Result<()> {
        self.check(x, y, "y")?;
        let executor = self.executor()?;
        cx.workspace.require(executor.workspace_bytes())?;
        executor.execute(cx, alpha, x, beta, y)
    }

    /// The same into z, from the old values in y.
    pub fn execute_into(
        &self,
        backend: &dyn Backend,
        cx: &Context,
        (alpha, beta): (Address, Address),
        x: &DenseVector,
        (y, z): (&DenseVector, &DenseVector),
    ) -> Result<()> {
        let (rows, _, _) = self.shape();
        self.check(x, z, "z")?;
        check_vector("y", y, rows, self.problem.types.y, "rows of op(A)")?;
        if y.values != z.values && y.lines().overlaps(&z.lines()) {
            return Err(Error::invalid("z", "it shares memory with y and does not begin where y does"));
        }
        let executor = self.executor()?;
        cx.workspace.require(executor.workspace_bytes())?;
        into::check_scalars(self.problem.types.compute, [alpha, beta], ("z", &z.lines()))?;
        into::put_old_values(backend, cx, (self.problem.types.compute, beta), &y.lines(), &z.lines())?;
        executor.execute(cx, alpha, x, beta, z)
    }

    /// The product without analysis, where the backend can; `false`: analyze
    /// and execute.
    pub fn once(
        &self,
        backend: &dyn Backend,
        cx: &Context,
        scalars: (Address, Address),
        x: &DenseVector,
        y: &DenseVector,
    ) -> Result<bool> {
        let problem = &self.problem;
        if !backend.serves_once(OpKind::Spmv) || !select::in_place(&problem.a, problem.op) {
            return Ok(false);
        }
        problem.a.require_arrays("A")?;
        self.check(x, y, "y")?;
        backend.spmv_once(cx, problem, scalars, x, y).map(|()| true)
    }

    fn check(&self, x: &DenseVector, y: &DenseVector, y_name: &str) -> Result<()> {
        let (rows, cols, _) = self.shape();
        let types = self.problem.types;
        check_vector("x", x, cols, types.x, "columns of op(A)")?;
        check_vector(y_name, y, rows, types.y, "rows of op(A)")?;
        if !y.writable {
            return Err(Error::invalid(
                y_name,
                "it was made by tarsiaCreateConstDnVec and cannot be written",
            ));
        }
        if x.lines().overlaps(&y.lines()) {
            return Err(Error::invalid(y_name, "it shares memory with x"));
        }
        Ok(())
    }

    pub(super) fn update_values(&mut self, cx: &Context, values: Address) -> Result<()> {
        check_new_values("newValues", &self.problem.a, values)?;
        check_renewable(&self.problem.a, self.problem.value_updates)?;
        let executor = self.executor.as_mut().ok_or_else(|| Error::state("plan: not analyzed"))?;
        executor.update_values(cx, values)?;
        self.problem.a = self.problem.a.with_values(values);
        Ok(())
    }

    fn executor(&self) -> Result<&dyn SpmvExecutor> {
        self.executor.as_deref().ok_or_else(|| Error::state("plan: not analyzed"))
    }

    pub(super) fn workspace_bytes(&self) -> usize {
        self.executor.as_ref().map_or(0, |executor| executor.workspace_bytes())
    }

    /// (rows, columns) of op(A) and stored entries.
    pub(super) fn shape(&self) -> (i64, i64, i64) {
        shape_of(&self.problem.a, self.problem.op)
    }
}

pub(super) fn shape_of(a: &SparseMatrix, op: Operation) -> (i64, i64, i64) {
    let (rows, cols, nnz) = a.shape();
    let (rows, cols) = op.shape(rows, cols);
    (rows, cols, nnz)
}

/// New values must be there and aligned like the old.
pub(super) fn check_new_values(name: &str, a: &SparseMatrix, values: Address) -> Result<()> {
    if values.is_null() && a.shape().2 > 0 {
        return Err(Error::invalid(name, "the pointer is NULL"));
    }
    crate::matrix::check_align(name, values, a.value_type().align())
}

/// New values of a self-contained plan need to know where they go: nobody can look in the pattern.
pub(super) fn check_renewable(a: &SparseMatrix, value_updates: bool) -> Result<()> {
    if a.temporary && !value_updates {
        return Err(Error::state(
            "plan: it is self-contained (tarsiaPlan_setSelfContained), so that new values need \
             tarsiaPlan_setValueUpdates(plan, 1) before analysis",
        ));
    }
    Ok(())
}

fn check_vector(name: &str, v: &DenseVector, len: i64, value_type: DataType, what: &str) -> Result<()> {
    if v.len != len {
        return Err(Error::invalid(name, format!("it has {} elements, expected the {len} {what}", v.len)));
    }
    check_type(name, v.value_type, value_type)?;
    if v.values.is_null() && len > 0 {
        return Err(Error::invalid(name, "its values pointer is NULL"));
    }
    Ok(())
}

pub(super) fn check_type(name: &str, found: DataType, expected: DataType) -> Result<()> {
    if found != expected {
        return Err(Error::invalid(
            name,
            format!("its values are {}, the plan was created for {}", found.short(), expected.short()),
        ));
    }
    Ok(())
}

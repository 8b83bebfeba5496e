//! SpMV: y = alpha · op(A) · x + beta · y.

use super::decisions::{self, Facts};
use super::{Report, Settings};
use crate::backend::{Backend, Context, SpmvExecutor, SpmvProblem};
use crate::error::{Error, Result};
use crate::matrix::{DenseVector, SparseMatrix};
use crate::reorder::KeptOrder;
use crate::select::{self, autotune, Choice};
use crate::support::{self, Algorithm, Query, Row, Types};
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
        let rows = support::find(&Query { op: OpKind::Spmv, format: a.format(), types, backend, algorithm })?;
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
        self.problem.value_updates = settings.value_updates;
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
        // Nothing to decide: a name leaves one row, and QUICK takes the shapes alone.
        let rows = select::rows_in_order(&self.rows, settings.reorder)?;
        let decides = rows.len() > 1 && settings.effort != Effort::Quick;
        let surveyed = if decides { backend.survey_spmv(cx, problem)? } else { None };
        let survey = surveyed.as_ref().map(|surveyed| &surveyed.survey);
        let mut choices = select::spmv(problem, &rows, settings.effort, backend.machine(), survey)?;
        select::put_in_order(&mut choices, settings.reorder)?;
        let tries = settings.effort == Effort::Tuned && settings.reorder == Reorder::Auto;
        let timed = if tries { select::try_orders(&mut choices, TIMED, self.shape().0) } else { TIMED };
        let build =
            |choice: &Choice| backend.build_spmv(cx, &self.problem_of(choice), choice, surveyed.as_ref());
        autotune::pick(settings.effort, timed, choices, build, |executor| {
            backend.time_spmv(cx, problem, &**executor)
        })
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
        self.check(x, y)?;
        let executor = self.executor()?;
        cx.workspace.require(executor.workspace_bytes())?;
        executor.execute(cx, alpha, x, beta, y)
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
        self.check(x, y)?;
        backend.spmv_once(cx, problem, scalars, x, y).map(|()| true)
    }

    fn check(&self, x: &DenseVector, y: &DenseVector) -> Result<()> {
        let (rows, cols, _) = self.shape();
        let types = self.problem.types;
        check_vector("x", x, cols, types.x, "columns of op(A)")?;
        check_vector("y", y, rows, types.y, "rows of op(A)")?;
        if !y.writable {
            return Err(Error::invalid("y", "it was made by tarsiaCreateConstDnVec and cannot be written"));
        }
        if x.overlaps(y) {
            return Err(Error::invalid("y", "it shares memory with x"));
        }
        Ok(())
    }

    pub(super) fn update_values(&mut self, cx: &Context, values: Address) -> Result<()> {
        check_new_values("newValues", &self.problem.a, values)?;
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

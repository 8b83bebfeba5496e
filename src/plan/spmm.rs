//! SpMM: C = alpha · op(A) · op(B) + beta · C, B and C dense.

use super::decisions::{self, Facts};
use super::learned::Resolved;
use super::spmv::{check_new_values, check_renewable, check_type, shape_of};
use super::{into, Report};
use crate::algorithm::{Algorithm, Query, Row};
use crate::backend::{Backend, SpmmExecutor};
use crate::error::{Error, Result};
use crate::layout::bcsr;
use crate::matrix::{DenseMatrix, SparseMatrix};
use crate::memory::Context;
use crate::problem::SpmmProblem;
use crate::reorder::KeptOrder;
use crate::select::analysis::Amortized;
use crate::select::{self, autotune, in_place, Choice};
use crate::settings::Settings;
use crate::support::Types;
use crate::types::{Address, BackendKind, ComputeType, DataType, Effort, OpKind, Order, Reorder};

/// Entries below which shapes alone decide: such a product is a launch and little more, and the
/// survey two waits. Where the line is best was not measured.
const FEW_ENTRIES: i64 = 1024;

/// Algorithms that effort TUNED times at the most. What the third brings was not measured.
const TIMED: usize = 3;

/// State of an SpMM plan.
pub struct SpmmPlan {
    problem: SpmmProblem,
    /// As the plan was asked for; the problem has it without what is pedantic, of which the rows take care.
    compute: ComputeType,
    pub(super) rows: Vec<&'static Row>,
    executor: Option<Box<dyn SpmmExecutor>>,
}

impl SpmmPlan {
    /// Looks the problem up in the support table.
    pub fn new(backend: BackendKind, problem: SpmmProblem, algorithm: Option<Algorithm>) -> Result<Self> {
        if problem.n_hint < 0 {
            return Err(Error::invalid("nHint", format!("{} is negative", problem.n_hint)));
        }
        let (format, types) = (problem.a.format(), problem.types);
        let mut rows =
            crate::algorithm::find(&Query { op: OpKind::Spmm, format, types, backend, algorithm })?;
        rows.retain(|row| algorithm.is_some() || !row.algorithm.only_by_name());
        let problem = SpmmProblem { types: types.plain(), ..problem };
        Ok(SpmmPlan { problem, compute: types.compute, rows, executor: None })
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
        let problem = &self.problem;
        if let Some(width) = settings.block_width {
            let named = self.rows.len() == 1 && self.rows[0].algorithm == Algorithm::Smat;
            if !named || width > bcsr::widest(problem.types.a.size()) {
                return Err(Error::unsupported(format!(
                    "colBlockDim: blocks of {width} columns are for algorithm smat by name{}",
                    if width > 8 { ", and for values of 16 bits" } else { "" }
                )));
            }
        }
        if settings.values_in_place {
            let named = (self.rows.len() == 1).then(|| self.rows[0].algorithm);
            in_place::require(OpKind::Spmm, named, settings.reorder, &[("A", &problem.a, problem.op)])?;
            decided.map_or(Ok(()), in_place::require_choice)?;
        }
        let (executor, mut choice) = match decided {
            Some(choice) => {
                let choice = Choice { deterministic: self.by_own_kernels(settings), ..choice.clone() };
                (backend.build_spmm(cx, &self.problem_of(&choice), &choice, None)?, choice)
            }
            None => self.choose(backend, cx, settings)?,
        };
        report.set(&choice, executor.layout());
        report.reorder = executor.reorder();
        // What was allowed, and what came of it.
        choice.reorder = executor.reorder();
        choice.block_width = executor.block_width();
        choice.tuned &= choice.algorithm == Algorithm::Dense;
        self.executor = Some(executor);
        Ok(choice)
    }

    /// Whether `dense` and `swift` take the form of deterministic mode, which is also that of IEEE operations alone.
    fn by_own_kernels(&self, settings: &Settings) -> bool {
        settings.deterministic || self.compute.is_pedantic()
    }

    /// The problem as it is built for a choice: where values come from is kept with an order by name.
    fn problem_of(&self, choice: &Choice) -> SpmmProblem {
        let value_updates = self.problem.value_updates || choice.reorder.is_named();
        SpmmProblem { value_updates, ..self.problem }
    }

    fn choose(
        &self,
        backend: &dyn Backend,
        cx: &Context,
        settings: &Settings,
    ) -> Result<(Box<dyn SpmmExecutor>, Choice)> {
        let problem = &self.problem;
        let mut rows = select::rows_in_order(&self.rows, settings.reorder)?;
        let resolved = Resolved::new(backend, cx, (&problem.a, problem.op), &rows, settings)?;
        let settings = &resolved.settings;
        // Nothing to decide: a name leaves one row, and QUICK takes the shapes alone. Nor is a
        // product of few entries worth a look, which is a launch and little more.
        let is_quick = settings.effort == Effort::Quick || problem.a.shape().2 < FEW_ENTRIES;
        let machine = backend.machine();
        let amortized = Amortized::new(machine, &problem.a, problem.op, settings.expected_executes);
        if settings.values_in_place {
            let settings = Settings { effort: Effort::Quick, expected_executes: 0, ..*settings };
            let rows = in_place::rows(&mut rows);
            let mut choice = in_place::choice(select::spmm(problem, rows, &settings, machine, None)?)?;
            amortized.explain(&mut choice);
            return Ok((backend.build_spmm(cx, problem, &choice, None)?, choice));
        }
        let least =
            select::seconds_by_shape(&problem.a, problem.op, problem.n_hint.max(1), problem.types, machine);
        let decides =
            rows.len() > 1 && !is_quick && !settings.reorder.is_named() && amortized.may_look_spmm(least);
        let all: Vec<_> = rows.iter().map(|row| row.algorithm).collect();
        let clusters =
            settings.reorder == Reorder::Auto && amortized.may_cluster(least, select::spmm::CLUSTERS[0]);
        let among = if clusters { &all[..] } else { &[] };
        let surveyed = if decides { backend.survey_spmm(cx, problem, among)? } else { None };
        let priced = Settings { deterministic: self.by_own_kernels(settings), ..*settings };
        let mut choices = select::spmm(problem, &rows, &priced, machine, surveyed.as_ref())?;
        select::put_in_order(&mut choices, settings.reorder)?;
        for choice in &mut choices {
            choice.tuned = settings.effort == Effort::Tuned;
            choice.deterministic = self.by_own_kernels(settings);
        }
        let tries = settings.effort == Effort::Tuned && settings.reorder == Reorder::Auto;
        let timed = if tries { select::try_orders(&mut choices, TIMED, self.shape().0) } else { TIMED };
        let (effort, choices, timed) = amortized.worth_timing(settings.effort, choices, timed);
        let build =
            |choice: &Choice| backend.build_spmm(cx, &self.problem_of(choice), choice, surveyed.as_ref());
        let (executor, mut choice) = autotune::pick(effort, timed, choices, build, |executor| {
            backend.time_spmm(cx, problem, &**executor)
        })?;
        resolved.explain(&mut choice);
        amortized.explain(&mut choice);
        Ok((executor, choice))
    }

    /// The order of rows that analysis has computed on the host, if it has.
    pub(super) fn row_order(&self, cx: &Context) -> Result<Option<KeptOrder>> {
        self.executor.as_ref().map_or(Ok(None), |executor| executor.row_order(cx))
    }

    pub(super) fn facts(&self, facts: &mut Facts) {
        let SpmmProblem { op, op_b, a, b_order, c_order, n_hint, types, .. } = &self.problem;
        decisions::operation(facts, "opA", *op);
        decisions::operation(facts, "opB", *op_b);
        decisions::matrix(facts, "A", a);
        facts.push(("bOrder".into(), b_order.code().into()));
        facts.push(("cOrder".into(), c_order.code().into()));
        facts.push(("nHint".into(), *n_hint));
        decisions::types(facts, Types { compute: self.compute, ..*types }, ["bType", "cType"]);
    }

    pub(super) fn matrices(&self) -> Vec<(&'static str, SparseMatrix)> {
        vec![("A", self.problem.a)]
    }

    /// A choice that was made elsewhere is one of this plan's.
    pub(super) fn admits(&self, choice: &Choice) -> Result<()> {
        let problem = &self.problem;
        select::admits_dense(&problem.a, problem.op, &self.rows, choice)?;
        let widest = match choice.algorithm {
            Algorithm::Smat => bcsr::widest(problem.types.a.size()),
            _ => 0,
        };
        match choice.block_width {
            Some(width) if width > widest => {
                Err(Error::invalid("buffer", format!("its blocks of {width} columns are none of the plan's")))
            }
            _ => Ok(()),
        }
    }

    /// What may be different after new values.
    pub(super) fn describe(&self, report: &mut Report) {
        if let Some(executor) = &self.executor {
            (report.layout, report.reorder) = (executor.layout(), executor.reorder());
            report.add(&executor.details());
        }
    }

    /// The same bits from run to run; before analysis nothing says otherwise.
    pub(super) fn is_deterministic(&self) -> bool {
        self.executor.as_ref().is_none_or(|executor| executor.is_deterministic())
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
        b: &DenseMatrix,
        beta: Address,
        c: &DenseMatrix,
    ) -> Result<()> {
        self.check(b, c, "C")?;
        self.ready(cx, c)?.execute(cx, alpha, b, beta, c)
    }

    /// The same into D, from the old values in C.
    pub fn execute_into(
        &self,
        backend: &dyn Backend,
        cx: &Context,
        (alpha, beta): (Address, Address),
        b: &DenseMatrix,
        (c, d): (&DenseMatrix, &DenseMatrix),
    ) -> Result<()> {
        self.check(b, d, "D")?;
        self.check_result("C", c, (d.rows, d.cols))?;
        if !c.lines().are(&d.lines()) && c.lines().overlaps(&d.lines()) {
            return Err(Error::invalid("D", "it shares elements with C and is not the same"));
        }
        let executor = self.ready(cx, d)?;
        into::check_scalars(self.problem.types.compute, [alpha, beta], ("D", &d.lines()))?;
        into::put_old_values(backend, cx, (self.problem.types.compute, beta), &c.lines(), &d.lines())?;
        executor.execute(cx, alpha, b, beta, d)
    }

    fn ready(&self, cx: &Context, c: &DenseMatrix) -> Result<&dyn SpmmExecutor> {
        let executor = self.executor.as_deref().ok_or_else(|| Error::state("plan: not analyzed"))?;
        cx.workspace.require(executor.workspace_bytes(c.cols as usize))?;
        Ok(executor)
    }

    /// The product without analysis, where the backend can; `false`: analyze
    /// and execute.
    pub fn once(
        &self,
        backend: &dyn Backend,
        cx: &Context,
        scalars: (Address, Address),
        b: &DenseMatrix,
        c: &DenseMatrix,
    ) -> Result<bool> {
        let problem = &self.problem;
        if !backend.serves_once(OpKind::Spmm) || !select::in_place(&problem.a, problem.op) {
            return Ok(false);
        }
        problem.a.require_arrays("A")?;
        self.check(b, c, "C")?;
        backend.spmm_once(cx, problem, scalars, b, c).map(|()| true)
    }

    fn check(&self, b: &DenseMatrix, c: &DenseMatrix, c_name: &str) -> Result<()> {
        let problem = &self.problem;
        let (m, k, _) = self.shape();
        let (b_rows, n) = problem.op_b.shape(b.rows, b.cols);
        if b_rows != k {
            return Err(Error::invalid(
                "B",
                format!("op(B) has {b_rows} rows, expected the {k} columns of op(A)"),
            ));
        }
        check_operand("B", b, problem.b_order, problem.types.x)?;
        self.check_result(c_name, c, (m, n))?;
        if !c.writable {
            return Err(Error::invalid(
                c_name,
                "it was made by tarsiaCreateConstDnMat and cannot be written",
            ));
        }
        if b.lines().overlaps(&c.lines()) {
            return Err(Error::invalid(c_name, "it shares memory with B"));
        }
        Ok(())
    }

    fn check_result(&self, name: &str, c: &DenseMatrix, (m, n): (i64, i64)) -> Result<()> {
        if (c.rows, c.cols) != (m, n) {
            return Err(Error::invalid(
                name,
                format!(
                    "it is {} × {}, expected {m} × {n} (rows of op(A) × columns of op(B))",
                    c.rows, c.cols
                ),
            ));
        }
        check_operand(name, c, self.problem.c_order, self.problem.types.y)
    }

    pub(super) fn update_values(&mut self, cx: &Context, values: Address) -> Result<()> {
        check_new_values("newValues", &self.problem.a, values)?;
        check_renewable(&self.problem.a, self.problem.value_updates)?;
        let executor = self.executor.as_mut().ok_or_else(|| Error::state("plan: not analyzed"))?;
        executor.update_values(cx, values)?;
        self.problem.a = self.problem.a.with_values(values);
        Ok(())
    }

    /// At `n` columns, or at the plan's nHint.
    pub(super) fn workspace_bytes(&self, n: Option<i64>) -> usize {
        let n = n.unwrap_or(self.problem.n_hint).max(0) as usize;
        self.executor.as_ref().map_or(0, |executor| executor.workspace_bytes(n))
    }

    /// (rows, columns) of op(A) and stored entries.
    pub(super) fn shape(&self) -> (i64, i64, i64) {
        shape_of(&self.problem.a, self.problem.op)
    }
}

fn check_operand(name: &str, matrix: &DenseMatrix, order: Order, value_type: DataType) -> Result<()> {
    check_type(name, matrix.value_type, value_type)?;
    if matrix.order != order {
        let (found, expected) = (matrix.order.c_name(), order.c_name());
        return Err(Error::invalid(
            name,
            format!("its order is {found}, the plan was created for {expected}"),
        ));
    }
    if matrix.values.is_null() && matrix.extent() > 0 {
        return Err(Error::invalid(name, "its values pointer is NULL"));
    }
    Ok(())
}

//! SpMM: C = alpha · op(A) · op(B) + beta · C, B and C dense.

use super::decisions::{self, Facts};
use super::spmv::{check_new_values, check_type, shape_of};
use super::{Report, Settings};
use crate::backend::{Backend, Context, SpmmExecutor, SpmmProblem};
use crate::error::{Error, Result};
use crate::layout::bcsr;
use crate::matrix::{DenseMatrix, SparseMatrix};
use crate::reorder::KeptOrder;
use crate::select::{self, autotune, Choice};
use crate::support::{self, Algorithm, Query, Row, Types};
use crate::types::{Address, BackendKind, ComputeType, Effort, OpKind, Reorder};

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
        let mut rows = support::find(&Query { op: OpKind::Spmm, format, types, backend, algorithm })?;
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
        self.problem.value_updates = settings.value_updates;
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
        // Nothing to decide: a name leaves one row, and QUICK takes the shapes alone. Nor is a
        // product of few entries worth a look, which is a launch and little more.
        let is_quick = settings.effort == Effort::Quick || problem.a.shape().2 < FEW_ENTRIES;
        let rows = select::rows_in_order(&self.rows, settings.reorder)?;
        let decides = rows.len() > 1 && !is_quick && !settings.reorder.is_named();
        let all: Vec<_> = rows.iter().map(|row| row.algorithm).collect();
        let among = if settings.reorder == Reorder::Auto { &all[..] } else { &[] };
        let surveyed = if decides { backend.survey_spmm(cx, problem, among)? } else { None };
        let mut choices = select::spmm(problem, &rows, settings, backend.machine(), surveyed.as_ref())?;
        select::put_in_order(&mut choices, settings.reorder)?;
        for choice in &mut choices {
            choice.tuned = settings.effort == Effort::Tuned;
            choice.deterministic = self.by_own_kernels(settings);
        }
        let tries = settings.effort == Effort::Tuned && settings.reorder == Reorder::Auto;
        let timed = if tries { select::try_orders(&mut choices, TIMED, self.shape().0) } else { TIMED };
        let build =
            |choice: &Choice| backend.build_spmm(cx, &self.problem_of(choice), choice, surveyed.as_ref());
        autotune::pick(settings.effort, timed, choices, build, |executor| {
            backend.time_spmm(cx, problem, &**executor)
        })
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
        self.check(b, c)?;
        let n = c.cols as usize;
        let executor = self.executor.as_deref().ok_or_else(|| Error::state("plan: not analyzed"))?;
        cx.workspace.require(executor.workspace_bytes(n))?;
        executor.execute(cx, alpha, b, beta, c)
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
        self.check(b, c)?;
        backend.spmm_once(cx, problem, scalars, b, c).map(|()| true)
    }

    fn check(&self, b: &DenseMatrix, c: &DenseMatrix) -> Result<()> {
        let problem = &self.problem;
        let (m, k, _) = self.shape();
        let (b_rows, n) = problem.op_b.shape(b.rows, b.cols);
        if b_rows != k {
            return Err(Error::invalid(
                "B",
                format!("op(B) has {b_rows} rows, expected the {k} columns of op(A)"),
            ));
        }
        if (c.rows, c.cols) != (m, n) {
            return Err(Error::invalid(
                "C",
                format!(
                    "it is {} × {}, expected {m} × {n} (rows of op(A) × columns of op(B))",
                    c.rows, c.cols
                ),
            ));
        }
        for (name, matrix, order, value_type) in
            [("B", b, problem.b_order, problem.types.x), ("C", c, problem.c_order, problem.types.y)]
        {
            check_type(name, matrix.value_type, value_type)?;
            if matrix.order != order {
                return Err(Error::invalid(
                    name,
                    format!(
                        "its order is {}, the plan was created for {}",
                        matrix.order.c_name(),
                        order.c_name()
                    ),
                ));
            }
            if matrix.values.is_null() && matrix.extent() > 0 {
                return Err(Error::invalid(name, "its values pointer is NULL"));
            }
        }
        if !c.writable {
            return Err(Error::invalid("C", "it was made by tarsiaCreateConstDnMat and cannot be written"));
        }
        if b.overlaps(c) {
            return Err(Error::invalid("C", "it shares memory with B"));
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

//! SpMM: C = alpha · op(A) · op(B) + beta · C, B and C dense.

use super::arguments::{self, PlanArguments};
use super::{
    check_apart, check_inner, check_scalars, check_shape, check_type, check_writable, Analysis,
    DenseExecutor, DenseOperation, Operation, Planned, ProblemFields,
};
use crate::algorithm::Algorithm;
use crate::backend::Backend;
use crate::error::{refuse_if, Error, Result};
use crate::format::bcsr;
use crate::matrix::{DenseMatrix, Lines};
use crate::memory::Context;
use crate::problem::SpmmProblem;
use crate::select::analysis::Amortized;
use crate::select::spmm::own_columns;
use crate::select::{self, in_place, Choice, Method, Source, SpmmInspection};
use crate::settings::Settings;
use crate::types::{Address, DataType, Effort, OpKind, Order, Reorder, ScalarsAt};

/// Number of stored entries below which the shape alone decides: such a product takes little more than a
/// launch, and gathering statistics waits twice. The best threshold was not measured.
const FEW_ENTRIES: i64 = 1024;

/// Maximum number of algorithms that effort TUNED times. The benefit of the third was not measured.
const TIMED: usize = 3;

/// Methods that a backend implements for SpMM.
pub trait SpmmBackend {
    /// Gathers the pattern statistics of op(A) that decide between layouts; rows of op(A) that are not in
    /// place are converted for it. Returns `None` on the CPU backends, where the shape alone decides. If
    /// `among` is not empty, the choice is among these algorithms, and rows may be clustered if windows of
    /// clustered rows are likely to pay off; if it is empty, rows are not clustered.
    fn inspect_spmm(
        &self,
        _cx: &Context,
        _problem: &SpmmProblem,
        _among: &[Algorithm],
    ) -> Result<Option<SpmmInspection>> {
        Ok(None)
    }
    /// Builds the executor for `choice`. `inspection` is the result of [`Self::inspect_spmm`] for this
    /// problem, if it was called.
    fn build_spmm(
        &self,
        cx: &Context,
        problem: &SpmmProblem,
        choice: &Choice,
        inspection: Option<&SpmmInspection>,
    ) -> Result<Box<SpmmExecutor>>;
    /// Returns the bytes of workspace that [`Self::spmm_once`] needs for this problem with nHint columns;
    /// `None` if the backend cannot multiply it without a plan.
    fn spmm_once_bytes(&self, _problem: &SpmmProblem) -> Result<Option<usize>> {
        Ok(None)
    }
    /// Computes C = alpha · op(A) · op(B) + beta · C without a plan, for a matrix that is read in place.
    /// Like a plan's execute it only launches kernels. The pattern is not validated.
    fn spmm_once(
        &self,
        _cx: &Context,
        _problem: &SpmmProblem,
        _scalars: ScalarsAt,
        _b: &DenseMatrix,
        _c: &DenseMatrix,
    ) -> Result<()> {
        Err(Error::unsupported("A: the backend has no SpMM without a plan"))
    }
    /// Returns the measured seconds of one execute at nHint columns, as
    /// [`SpmvBackend::time_spmv`](super::SpmvBackend::time_spmv) does.
    fn time_spmm(&self, _cx: &Context, _problem: &SpmmProblem, _executor: &SpmmExecutor) -> Result<f64> {
        Ok(0.0)
    }
}

/// A built SpMM.
pub type SpmmExecutor = dyn DenseExecutor<DenseMatrix>;

/// SpMM as an [`Operation`], without state of its own.
#[derive(Default)]
pub struct Spmm;

impl Operation for Spmm {
    const KIND: OpKind = OpKind::Spmm;
    type Problem = SpmmProblem;
    type Executor = Box<SpmmExecutor>;

    fn parts(problem: &mut SpmmProblem) -> ProblemFields<'_> {
        let SpmmProblem { op, a, types, value_updates, .. } = problem;
        ProblemFields { factors: vec![("A", *op, a)], types, value_updates }
    }

    fn check(problem: &SpmmProblem) -> Result<()> {
        refuse_if!(problem.n_hint < 0, invalid("nHint"), "{} is negative", problem.n_hint);
        Ok(())
    }

    fn note_pedantic(problem: &mut SpmmProblem, is_pedantic: bool) {
        problem.ieee = is_pedantic;
    }

    fn arguments(planned: &Planned<Self>, arguments: &mut PlanArguments) {
        let SpmmProblem { op, op_b, a, b_order, c_order, n_hint, .. } = &planned.problem;
        arguments::operation(arguments, "opA", *op);
        arguments::operation(arguments, "opB", *op_b);
        arguments::matrix(arguments, "A", a);
        arguments.push(("bOrder".into(), b_order.code().into()));
        arguments.push(("cOrder".into(), c_order.code().into()));
        arguments.push(("nHint".into(), *n_hint));
        arguments::types(arguments, planned.types(), ["bType", "cType"]);
    }

    fn check_settings(planned: &Planned<Self>, settings: &Settings) -> Result<()> {
        let Some(width) = settings.block_width else { return Ok(()) };
        let named = planned.named() == Some(Algorithm::Smat);
        if !named || width > bcsr::widest(planned.problem.types.a.size()) {
            return Err(Error::unsupported(format!(
                "colBlockDim: blocks of {width} columns are for algorithm smat by name{}",
                if width > 8 { ", and for values of 16 bits" } else { "" }
            )));
        }
        Ok(())
    }

    fn analyze(
        planned: &mut Planned<Self>,
        analysis: &Analysis<'_>,
        decided: Option<&Choice>,
    ) -> Result<(Self::Executor, Choice)> {
        let (executor, mut choice) = match decided {
            Some(choice) => {
                let deterministic = planned.by_own_kernels(analysis.settings);
                let ratios = analysis.backend.machine().ratios(planned.problem.types.compute);
                let method = select::in_mode(&planned.problem, &choice.method, deterministic, &ratios);
                let amortized = analysis.amortized(&planned.problem.a, planned.problem.op);
                let choice = Choice { method, ..choice.clone() };
                let choice = planned.with_own_columns(analysis, &amortized, choice);
                let problem = planned.problem_of(&choice);
                (analysis.backend.build_spmm(analysis.cx, &problem, &choice, None)?, choice)
            }
            None => planned.choose(analysis)?,
        };
        choice.method.settle(executor.reorder(), executor.block_width());
        Ok((executor, choice))
    }

    fn admits(planned: &Planned<Self>, choice: &Choice) -> Result<()> {
        let problem = &planned.problem;
        select::admits_dense(&problem.a, problem.op, &planned.rows, choice)?;
        match choice.method.block_width() {
            Some(width) if width > bcsr::widest(problem.types.a.size()) => {
                Err(Error::invalid("buffer", format!("its blocks of {width} columns are none of the plan's")))
            }
            _ => Ok(()),
        }
    }

    fn update_values(planned: &mut Planned<Self>, cx: &Context, values: Address) -> Result<()> {
        planned.renew_a(values, |executor| executor.update_values(cx, values))
    }

    fn workspace_bytes(problem: &SpmmProblem, executor: &Self::Executor, n: Option<i64>) -> usize {
        executor.workspace_bytes(n.unwrap_or(problem.n_hint).max(0) as usize)
    }
}

impl DenseOperation for Spmm {
    type Operand = DenseMatrix;
    const FACTOR: &'static str = "B";
    const RESULTS: [&'static str; 2] = ["C", "D"];
    const OVERLAP: &'static str = "it shares elements with C and is not the same";

    fn lines(operand: &DenseMatrix) -> Lines {
        operand.lines()
    }

    fn columns(result: &DenseMatrix) -> usize {
        result.cols as usize
    }

    fn check_operands(planned: &Planned<Self>, b: &DenseMatrix, c: &DenseMatrix, name: &str) -> Result<()> {
        planned.check(b, c, name)
    }

    fn check_old(planned: &Planned<Self>, old: &DenseMatrix, c: &DenseMatrix) -> Result<()> {
        planned.check_result("C", old, (c.rows, c.cols))
    }
}

impl Planned<Spmm> {
    /// Returns whether `dense` and `swift` use their form for deterministic mode, which is also their form
    /// for pedantic compute types.
    fn by_own_kernels(&self, settings: &Settings) -> bool {
        settings.deterministic || self.compute.is_pedantic()
    }

    /// Returns the choice with columns of the plan's own if they pay.
    fn with_own_columns(&self, analysis: &Analysis<'_>, amortized: &Amortized, choice: Choice) -> Choice {
        let reads_columns =
            choice.a == Source::InPlace && matches!(choice.method, Method::Row(_) | Method::SpmmCsr(_));
        let (effort, machine) = (analysis.settings.effort, analysis.backend.machine());
        let keeps_columns =
            reads_columns && own_columns::keeps_columns(&self.problem, effort, machine, amortized);
        Choice { keeps_columns, ..choice }
    }

    fn choose(&self, analysis: &Analysis<'_>) -> Result<(Box<SpmmExecutor>, Choice)> {
        let (problem, settings) = (&self.problem, analysis.settings);
        let (backend, cx, machine) = (analysis.backend, analysis.cx, analysis.backend.machine());
        // Pattern statistics are of use only if several algorithms are possible, effort is not QUICK, and the
        // product takes more than a launch.
        let is_quick = settings.effort == Effort::Quick || problem.a.shape().2 < FEW_ENTRIES;
        let mut rows = select::rows_in_order(&self.rows, settings.reorder)?;
        let amortized = analysis.amortized(&problem.a, problem.op);
        if settings.values_in_place {
            let settings = Settings { effort: Effort::Quick, expected_executes: 0, ..*settings };
            let rows = in_place::rows(&mut rows);
            let choice = in_place::choice(select::spmm(problem, rows, &settings, machine, None)?)?;
            let mut choice = self.with_own_columns(analysis, &amortized, choice);
            amortized.explain(&mut choice);
            return Ok((backend.build_spmm(cx, problem, &choice, None)?, choice));
        }
        let least =
            select::seconds_by_shape(&problem.a, problem.op, problem.n_hint.max(1), problem.types, machine);
        let decides =
            rows.len() > 1 && !is_quick && !settings.reorder.is_named() && amortized.may_inspect_spmm(least);
        let all: Vec<_> = rows.iter().map(|row| row.algorithm).collect();
        let clusters =
            settings.reorder == Reorder::Auto && amortized.may_cluster(least, select::spmm::CLUSTERS[0]);
        let among = if clusters { &all[..] } else { &[] };
        let inspection = if decides { backend.inspect_spmm(cx, problem, among)? } else { None };
        let priced = Settings { deterministic: self.by_own_kernels(settings), ..*settings };
        let choices = select::spmm(problem, &rows, &priced, machine, inspection.as_ref())?;
        let choices =
            choices.into_iter().map(|choice| self.with_own_columns(analysis, &amortized, choice)).collect();
        let (m, _, _) = problem.a.shape_of(problem.op);
        let build =
            |choice: &Choice| backend.build_spmm(cx, &self.problem_of(choice), choice, inspection.as_ref());
        analysis.pick(&amortized, (choices, TIMED, m), build, |executor| {
            backend.time_spmm(cx, problem, &**executor)
        })
    }

    /// Checks the arguments of a product without a plan. Returns the bytes of workspace that it needs;
    /// `None` if the backend has to analyze.
    pub fn once_bytes(
        &self,
        backend: &dyn Backend,
        b: &DenseMatrix,
        c: &DenseMatrix,
    ) -> Result<Option<usize>> {
        let problem = &self.problem;
        if !select::in_place(&problem.a, problem.op) {
            return Ok(None);
        }
        problem.a.require_arrays("A")?;
        self.check(b, c, "C")?;
        backend.spmm_once_bytes(problem)
    }

    /// Checks all arguments of the product without a plan.
    pub fn check_once(&self, scalars: ScalarsAt, b: &DenseMatrix, c: &DenseMatrix) -> Result<()> {
        self.problem.a.require_arrays("A")?;
        self.check(b, c, "C")?;
        check_scalars(self.problem.types.compute, scalars, "C", &c.lines())
    }

    /// Computes the product without a plan, after [`Self::once_bytes`].
    pub fn once(
        &self,
        backend: &dyn Backend,
        cx: &Context,
        scalars: ScalarsAt,
        b: &DenseMatrix,
        c: &DenseMatrix,
    ) -> Result<()> {
        check_scalars(self.problem.types.compute, scalars, "C", &c.lines())?;
        backend.spmm_once(cx, &self.problem, scalars, b, c)
    }

    #[inline(always)]
    fn check(&self, b: &DenseMatrix, c: &DenseMatrix, c_name: &str) -> Result<()> {
        let problem = &self.problem;
        let (m, k, _) = problem.a.shape_of(problem.op);
        let (b_rows, n) = problem.op_b.shape(b.rows, b.cols);
        check_inner(k, b_rows)?;
        check_operand("B", b, problem.b_order, problem.types.x)?;
        self.check_result(c_name, c, (m, n))?;
        check_writable(c_name, c.writable, "tarsiaCreateConstDnMat")?;
        refuse_if!(b.lines().overlaps(&c.lines()), invalid(c_name), "it shares memory with B");
        check_apart(c_name, &c.lines(), &problem.a)
    }

    #[inline]
    fn check_result(&self, name: &str, c: &DenseMatrix, shape: (i64, i64)) -> Result<()> {
        check_shape(name, (c.rows, c.cols), shape)?;
        check_operand(name, c, self.problem.c_order, self.problem.types.y)
    }
}

#[inline]
fn check_operand(name: &str, matrix: &DenseMatrix, order: Order, value_type: DataType) -> Result<()> {
    check_type(name, matrix.value_type, value_type)?;
    if matrix.order != order {
        let (found, expected) = (matrix.order.c_name(), order.c_name());
        return Err(Error::invalid(
            name,
            format!("its order is {found}, the plan was created for {expected}"),
        ));
    }
    refuse_if!(matrix.values.is_null() && matrix.extent() > 0, invalid(name), "its values pointer is NULL");
    Ok(())
}

//! SpMV: y = alpha · op(A) · x + beta · y.

use super::arguments::{self, PlanArguments};
use super::{
    check_apart, check_scalars, check_type, check_writable, Analysis, DenseExecutor, DenseOperation,
    Operation, Planned, ProblemFields,
};
use crate::backend::Backend;
use crate::error::{refuse_if, Result};
use crate::matrix::{DenseVector, Lines};
use crate::memory::Context;
use crate::problem::SpmvProblem;
use crate::select::{self, in_place, Choice, SpmvInspection};
use crate::types::{Address, DataType, Effort, OpKind, ScalarsAt};

/// Maximum number of layouts that effort TUNED times.
const TIMED: usize = 2;

/// Methods that a backend implements for SpMV.
pub trait SpmvBackend {
    /// Gathers the pattern statistics of op(A) that decide between layouts, if the rows of op(A) are in
    /// place, so that no conversion is needed. Returns `None` if the shape alone decides: always on the CPU
    /// backends, whose machine model has no rates for pattern statistics. The pattern is validated; errors
    /// name `A`. Blocks.
    fn inspect_spmv(&self, _cx: &Context, _problem: &SpmvProblem) -> Result<Option<SpmvInspection>> {
        Ok(None)
    }
    /// Builds the executor for `choice`. `inspection` is the result of [`Self::inspect_spmv`] for this
    /// problem, if it was called.
    fn build_spmv(
        &self,
        cx: &Context,
        problem: &SpmvProblem,
        choice: &Choice,
        inspection: Option<&SpmvInspection>,
    ) -> Result<Box<SpmvExecutor>>;
    /// Bytes of workspace that [`Self::spmv_once`] needs for this problem: [`Backend::once_workspace_bytes`] at most.
    fn spmv_once_bytes(&self, _problem: &SpmvProblem) -> usize {
        0
    }
    /// Computes y = alpha · op(A) · x + beta · y without a plan, for a matrix that is read in place. Like a
    /// plan's execute it only launches kernels, and it uses a workspace of [`Backend::once_workspace_bytes`].
    /// The pattern is not validated. Returns false if the backend cannot do this.
    fn spmv_once(
        &self,
        _cx: &Context,
        _problem: &SpmvProblem,
        _scalars: ScalarsAt,
        _x: &DenseVector,
        _y: &DenseVector,
    ) -> Result<bool> {
        Ok(false)
    }
    /// Returns the measured seconds of one execute with dense operands that are not zero, for effort TUNED.
    /// The reference backend returns 0, since it has one implementation for all algorithms.
    fn time_spmv(&self, _cx: &Context, _problem: &SpmvProblem, _executor: &SpmvExecutor) -> Result<f64> {
        Ok(0.0)
    }
}

/// A built SpMV.
pub type SpmvExecutor = dyn DenseExecutor<DenseVector>;

/// SpMV as an [`Operation`], without state of its own.
#[derive(Default)]
pub struct Spmv;

impl Operation for Spmv {
    const KIND: OpKind = OpKind::Spmv;
    type Problem = SpmvProblem;
    type Executor = Box<SpmvExecutor>;

    fn parts(problem: &mut SpmvProblem) -> ProblemFields<'_> {
        let SpmvProblem { op, a, types, value_updates } = problem;
        ProblemFields { factors: vec![("A", *op, a)], types, value_updates }
    }

    fn arguments(planned: &Planned<Self>, arguments: &mut PlanArguments) {
        let SpmvProblem { op, a, .. } = &planned.problem;
        arguments::operation(arguments, "opA", *op);
        arguments::matrix(arguments, "A", a);
        arguments::types(arguments, planned.types(), ["xType", "yType"]);
    }

    fn analyze(
        planned: &mut Planned<Self>,
        analysis: &Analysis<'_>,
        decided: Option<&Choice>,
    ) -> Result<(Self::Executor, Choice)> {
        let (problem, settings) = (&planned.problem, analysis.settings);
        let (backend, cx, machine) = (analysis.backend, analysis.cx, analysis.backend.machine());
        let amortized = analysis.amortized(&problem.a, problem.op);
        let keeps_columns = settings.values_in_place
            && in_place::keeps_columns(problem, settings.effort, machine, &amortized);
        if let Some(choice) = decided {
            let choice = Choice { keeps_columns, ..choice.clone() };
            let executor = backend.build_spmv(cx, &planned.problem_of(&choice), &choice, None)?;
            return Ok((executor, choice));
        }
        // Pattern statistics are of use only if several algorithms are possible and effort is not QUICK.
        let mut rows = select::rows_in_order(&planned.rows, settings.reorder)?;
        if settings.values_in_place {
            let choices = select::spmv(problem, in_place::rows(&mut rows), Effort::Quick, machine, None)?;
            let mut choice = Choice { keeps_columns, ..in_place::choice(choices)? };
            amortized.explain(&mut choice);
            return Ok((backend.build_spmv(cx, problem, &choice, None)?, choice));
        }
        let least = select::seconds_by_shape(&problem.a, problem.op, 1, problem.types, machine);
        let decides = rows.len() > 1 && settings.effort != Effort::Quick && amortized.may_inspect_spmv(least);
        let inspection = if decides { backend.inspect_spmv(cx, problem)? } else { None };
        let statistics = inspection.as_ref().map(|inspection| &inspection.statistics);
        let times = (settings.effort, settings.expected_executes);
        let choices = select::spmv_times(problem, &rows, times, machine, statistics)?;
        let (m, _, _) = problem.a.shape_of(problem.op);
        let build = |choice: &Choice| {
            backend.build_spmv(cx, &planned.problem_of(choice), choice, inspection.as_ref())
        };
        analysis.pick(&amortized, (choices, TIMED, m), build, |executor| {
            backend.time_spmv(cx, problem, &**executor)
        })
    }

    fn admits(planned: &Planned<Self>, choice: &Choice) -> Result<()> {
        select::admits_dense(&planned.problem.a, planned.problem.op, &planned.rows, choice)
    }

    fn update_values(planned: &mut Planned<Self>, cx: &Context, values: Address) -> Result<()> {
        planned.renew_a(values, |executor| executor.update_values(cx, values))
    }

    fn workspace_bytes(_problem: &SpmvProblem, executor: &Self::Executor, _n: Option<i64>) -> usize {
        executor.workspace_bytes(1)
    }
}

impl DenseOperation for Spmv {
    type Operand = DenseVector;
    const FACTOR: &'static str = "x";
    const RESULTS: [&'static str; 2] = ["y", "z"];
    const OVERLAP: &'static str = "it shares memory with y and does not begin where y does";

    fn lines(operand: &DenseVector) -> Lines {
        operand.lines()
    }

    fn columns(_result: &DenseVector) -> usize {
        1
    }

    fn check_operands(planned: &Planned<Self>, x: &DenseVector, y: &DenseVector, name: &str) -> Result<()> {
        planned.check(x, y, name)
    }

    fn check_old(_planned: &Planned<Self>, old: &DenseVector, y: &DenseVector) -> Result<()> {
        check_vector("y", old, y.len, y.value_type, "rows of op(A)")
    }
}

impl Planned<Spmv> {
    /// Computes the product without a plan. Returns false if the backend cannot, and the caller has to
    /// analyze and execute.
    pub fn once(
        &self,
        backend: &dyn Backend,
        cx: &Context,
        scalars: ScalarsAt,
        x: &DenseVector,
        y: &DenseVector,
    ) -> Result<bool> {
        let problem = &self.problem;
        if !select::in_place(&problem.a, problem.op) {
            return Ok(false);
        }
        problem.a.require_arrays("A")?;
        self.check(x, y, "y")?;
        check_scalars(problem.types.compute, scalars, "y", &y.lines())?;
        backend.spmv_once(cx, problem, scalars, x, y)
    }

    #[inline(always)]
    fn check(&self, x: &DenseVector, y: &DenseVector, y_name: &str) -> Result<()> {
        let (rows, cols, _) = self.problem.a.shape_of(self.problem.op);
        let types = self.problem.types;
        check_vector("x", x, cols, types.x, "columns of op(A)")?;
        check_vector(y_name, y, rows, types.y, "rows of op(A)")?;
        check_writable(y_name, y.writable, "tarsiaCreateConstDnVec")?;
        refuse_if!(x.lines().overlaps(&y.lines()), invalid(y_name), "it shares memory with x");
        check_apart(y_name, &y.lines(), &self.problem.a)
    }
}

#[inline]
fn check_vector(name: &str, v: &DenseVector, len: i64, value_type: DataType, what: &str) -> Result<()> {
    refuse_if!(v.len != len, invalid(name), "it has {} elements, expected the {len} {what}", v.len);
    check_type(name, v.value_type, value_type)?;
    refuse_if!(v.values.is_null() && len > 0, invalid(name), "its values pointer is NULL");
    Ok(())
}

//! SpMV: y = alpha · op(A) · x + beta · y.

use super::arguments::{self, PlanArguments};
use super::{
    check_apart, check_scalars, check_type, check_writable, into, Analysis, Built, Operation, Planned,
    ProblemFields,
};
use crate::backend::{Backend, LayoutInfo};
use crate::error::{refuse_if, Error, Result};
use crate::matrix::DenseVector;
use crate::memory::Context;
use crate::problem::SpmvProblem;
use crate::reorder::KeptOrder;
use crate::select::{self, in_place, Choice, SpmvInspection};
use crate::types::{Address, DataType, Effort, OpKind, Reorder, ScalarsAt};

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
    ) -> Result<Box<dyn SpmvExecutor>>;
    /// Bytes of workspace that [`Self::spmv_once`] needs for this problem: [`Backend::once_workspace_bytes`] at most.
    fn spmv_once_bytes(&self, _problem: &SpmvProblem) -> usize {
        0
    }
    /// Computes y = alpha · op(A) · x + beta · y without analysis, for a matrix that is read in place. Like a
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
    fn time_spmv(&self, _cx: &Context, _problem: &SpmvProblem, _executor: &dyn SpmvExecutor) -> Result<f64> {
        Ok(0.0)
    }
}

/// A built SpMV, which executes do not change.
pub trait SpmvExecutor: Send + Sync {
    /// Returns the bytes of workspace that execute needs.
    fn workspace_bytes(&self) -> usize;
    /// Computes z = alpha · op(A) · x + beta · y for `scalars` alpha and beta and `vectors` x, y and z. z is
    /// y, or shares no memory with y; the latter requires [`Self::reads_elsewhere`].
    fn product(&self, cx: &Context, scalars: ScalarsAt, vectors: [&DenseVector; 3]) -> Result<()>;
    /// Returns whether the executor can read old values from another array than the result's.
    fn reads_elsewhere(&self) -> bool {
        false
    }
    /// Computes y = alpha · op(A) · x + beta · y.
    fn execute(
        &self,
        cx: &Context,
        alpha: Address,
        x: &DenseVector,
        beta: Address,
        y: &DenseVector,
    ) -> Result<()> {
        self.product(cx, (alpha, beta), [x, y, y])
    }
    /// Returns whether products read the user's value array.
    fn reads_values(&self) -> bool {
        self.layout().in_place
    }
    /// Returns whether new values leave the plan's arrays at their addresses, even if the plan was not asked
    /// to prepare for value updates.
    fn keeps_arrays(&self) -> bool {
        self.layout().in_place
    }
    /// Takes new values for the same pattern, in the order of the user's array.
    fn update_values(&mut self, cx: &Context, values: Address) -> Result<()>;
    /// Returns a description of the layout.
    fn layout(&self) -> LayoutInfo;
    /// Returns the named order of the rows of op(A), or [`Reorder::None`].
    fn reorder(&self) -> Reorder {
        Reorder::None
    }
    /// Returns the order of the rows of op(A) that the host has computed, if decisions store it. Blocks.
    fn row_order(&self, _cx: &Context) -> Result<Option<KeptOrder>> {
        Ok(None)
    }
    /// Returns more details for people; empty if [`LayoutInfo`] says everything.
    fn details(&self) -> String {
        String::new()
    }
}

/// SpMV as an [`Operation`], without state of its own.
#[derive(Default)]
pub struct Spmv;

impl Operation for Spmv {
    const KIND: OpKind = OpKind::Spmv;
    type Problem = SpmvProblem;
    type Executor = Box<dyn SpmvExecutor>;

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
        let narrow_columns = settings.values_in_place
            && in_place::keeps_columns(problem, settings.effort, machine, &amortized);
        if let Some(choice) = decided {
            let choice = Choice { narrow_columns, ..choice.clone() };
            let executor = backend.build_spmv(cx, &planned.problem_of(&choice), &choice, None)?;
            return Ok((executor, choice));
        }
        // Pattern statistics are of use only if several algorithms are possible and effort is not QUICK.
        let mut rows = select::rows_in_order(&planned.rows, settings.reorder)?;
        if settings.values_in_place {
            let choices = select::spmv(problem, in_place::rows(&mut rows), Effort::Quick, machine, None)?;
            let mut choice = Choice { narrow_columns, ..in_place::choice(choices)? };
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

    fn built(executor: &Self::Executor) -> Built {
        Built { layout: executor.layout(), reorder: executor.reorder(), details: executor.details() }
    }

    fn reads_values(executor: &Self::Executor) -> [bool; 2] {
        [executor.reads_values(), false]
    }

    fn keeps_arrays(executor: &Self::Executor) -> bool {
        executor.keeps_arrays()
    }

    fn update_values(planned: &mut Planned<Self>, cx: &Context, values: Address) -> Result<()> {
        planned.renew_a(values, |executor| executor.update_values(cx, values))
    }

    fn workspace_bytes(_problem: &SpmvProblem, executor: &Self::Executor, _n: Option<i64>) -> usize {
        executor.workspace_bytes()
    }

    fn row_order(executor: &Self::Executor, cx: &Context) -> Result<Option<KeptOrder>> {
        executor.row_order(cx)
    }
}

impl Planned<Spmv> {
    /// Checks the arguments and executes. `old` is a vector with the old values, if they are not in y, with
    /// the backend that copies them if need be. In that case error messages call `old` y and the result z.
    pub fn execute(
        &self,
        cx: &Context,
        (alpha, beta): ScalarsAt,
        x: &DenseVector,
        old: Option<(&dyn Backend, &DenseVector)>,
        y: &DenseVector,
    ) -> Result<()> {
        let name = if old.is_some() { "z" } else { "y" };
        self.check(x, y, name)?;
        check_scalars(self.problem.types.compute, (alpha, beta), name, &y.lines())?;
        if let Some((_, old)) = old {
            check_vector("y", old, y.len, y.value_type, "rows of op(A)")?;
            if old.values != y.values && old.lines().overlaps(&y.lines()) {
                return Err(Error::invalid(name, "it shares memory with y and does not begin where y does"));
            }
        }
        let executor = self.executor()?;
        cx.workspace.require(executor.workspace_bytes())?;
        let in_place = || executor.execute(cx, alpha, x, beta, y);
        let Some((backend, old)) = old else { return in_place() };
        let scaling = (self.problem.types.compute, beta);
        let directly =
            executor.reads_elsewhere().then_some(|| executor.product(cx, (alpha, beta), [x, old, y]));
        into::execute(backend, cx, scaling, &old.lines(), &y.lines(), directly, in_place)
    }

    /// Computes the product without analysis. Returns false if the backend cannot, and the caller has to
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

fn check_vector(name: &str, v: &DenseVector, len: i64, value_type: DataType, what: &str) -> Result<()> {
    refuse_if!(v.len != len, invalid(name), "it has {} elements, expected the {len} {what}", v.len);
    check_type(name, v.value_type, value_type)?;
    refuse_if!(v.values.is_null() && len > 0, invalid(name), "its values pointer is NULL");
    Ok(())
}

//! SpGEMM: C = alpha · op(A) · op(B), all sparse. `symbolic` counts C's
//! entries, the caller allocates C, `numeric` writes it.

use super::spmv::{check_new_values, check_type, shape_of};
use super::{Report, Settings};
use crate::backend::{Backend, Context, SpgemmExecutor, SpgemmProblem};
use crate::error::{Error, Result};
use crate::matrix::SparseMatrix;
use crate::select::{self, roofline};
use crate::support::{self, Algorithm, Query, Row};
use crate::types::{Address, BackendKind, OpKind};

/// State of an SpGEMM plan.
pub struct SpgemmPlan {
    problem: SpgemmProblem,
    rows: Vec<&'static Row>,
    executor: Option<Box<dyn SpgemmExecutor>>,
    nnz_c: Option<i64>,
}

impl SpgemmPlan {
    /// Checks the shapes and looks the problem up in the support table.
    pub fn new(backend: BackendKind, problem: SpgemmProblem, algorithm: Option<Algorithm>) -> Result<Self> {
        let types = problem.types;
        let find = |format| support::find(&Query { op: OpKind::Spgemm, format, types, backend, algorithm });
        let rows = find(problem.a.format())?;
        find(problem.b.format()).map_err(|mut error| {
            if let Some(rest) = error.message.strip_prefix("A:") {
                error.message = format!("B:{rest}");
            }
            error
        })?;
        let (_, k, _) = shape_of(&problem.a, problem.op_a);
        let (b_rows, _, _) = shape_of(&problem.b, problem.op_b);
        if k != b_rows {
            return Err(Error::invalid("B", format!("op(B) has {b_rows} rows, expected the {k} columns of op(A)")));
        }
        Ok(SpgemmPlan { problem, rows, executor: None, nnz_c: None })
    }

    pub(super) fn analyze(
        &mut self,
        backend: &dyn Backend,
        cx: &Context,
        settings: &Settings,
        report: &mut Report,
    ) -> Result<()> {
        self.problem.a.require_arrays("A")?;
        self.problem.b.require_arrays("B")?;
        self.problem.value_updates = settings.value_updates;
        // One candidate today, so no effort has anything to time.
        let mut choice = select::spgemm(&self.problem, &self.rows)?.swap_remove(0);
        let executor = backend.build_spgemm(cx, &self.problem, &choice)?;
        choice.predicted_seconds = roofline::products_seconds(executor.products());
        report.set(&choice, executor.layout());
        self.executor = Some(executor);
        Ok(())
    }

    /// Number of stored entries of C.
    pub fn symbolic(&mut self, cx: &Context) -> Result<i64> {
        if let Some(nnz) = self.nnz_c {
            return Ok(nnz);
        }
        let executor = self.executor.as_mut().ok_or_else(|| Error::state("plan: not analyzed"))?;
        let nnz = executor.symbolic(cx)?;
        self.nnz_c = Some(nnz);
        Ok(nnz)
    }

    /// Checks C and writes it.
    pub fn numeric(&mut self, cx: &Context, alpha: Address, c: &SparseMatrix) -> Result<()> {
        let Some(nnz) = self.nnz_c else {
            return Err(Error::state("plan: tarsiaSpGEMM_numeric needs tarsiaSpGEMM_symbolic first"));
        };
        if !c.writable {
            return Err(Error::invalid("C", "it was made by a tarsiaCreateConst function and cannot be written"));
        }
        if !self.rows.iter().any(|row| row.formats.contains(&c.format())) {
            return Err(Error::unsupported(format!("C: SpGEMM does not write format {}", c.format().short())));
        }
        let (m, n) = self.shape_c();
        let (rows, cols, nnz_c) = c.shape();
        if (rows, cols) != (m, n) {
            return Err(Error::invalid(
                "C",
                format!("it is {rows} × {cols}, expected {m} × {n} (rows of op(A) × columns of op(B))"),
            ));
        }
        if nnz_c != nnz {
            return Err(Error::invalid(
                "C",
                format!("it has room for {nnz_c} entries, expected the {nnz} that tarsiaSpGEMM_symbolic counted"),
            ));
        }
        check_type("C", c.value_type(), self.problem.types.y)?;
        c.require_arrays("C")?;
        let executor = self.executor.as_mut().ok_or_else(|| Error::state("plan: not analyzed"))?;
        executor.numeric(cx, alpha, c)
    }

    /// New values; NULL keeps a matrix's present ones.
    pub fn update_values(&mut self, cx: &Context, a: Address, b: Address) -> Result<()> {
        if a.is_null() && b.is_null() && (self.problem.a.shape().2 > 0 || self.problem.b.shape().2 > 0) {
            return Err(Error::invalid("newValues", "no new values were given"));
        }
        if !a.is_null() {
            check_new_values("newValuesA", &self.problem.a, a)?;
        }
        if !b.is_null() {
            check_new_values("newValuesB", &self.problem.b, b)?;
        }
        let executor = self.executor.as_mut().ok_or_else(|| Error::state("plan: not analyzed"))?;
        executor.update_values(cx, a, b)?;
        if !a.is_null() {
            self.problem.a = self.problem.a.with_values(a);
        }
        if !b.is_null() {
            self.problem.b = self.problem.b.with_values(b);
        }
        Ok(())
    }

    fn shape_c(&self) -> (i64, i64) {
        let (m, _, _) = shape_of(&self.problem.a, self.problem.op_a);
        let (_, n, _) = shape_of(&self.problem.b, self.problem.op_b);
        (m, n)
    }

    /// (rows, columns) of op(A) and stored entries of A.
    pub(super) fn shape(&self) -> (i64, i64, i64) {
        shape_of(&self.problem.a, self.problem.op_a)
    }

    pub(super) fn products(&self) -> i64 {
        self.executor.as_ref().map_or(0, |executor| executor.products())
    }

    pub(super) fn nnz_c(&self) -> Option<i64> {
        self.nnz_c
    }
}

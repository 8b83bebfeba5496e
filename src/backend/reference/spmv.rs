//! SpMV: for every entry of op(A), sums[row] += value · x[col].

use super::arrays::{sums, sums_bytes, Kept, Values, ValuesMut};
use super::entries::{self, Entry};
use super::number::{combine, is_complex, scalar, stored, Number};
use super::{triplets, Reference};
use crate::backend::{LayoutInfo, SpmvExecutor};
use crate::error::Result;
use crate::matrix::DenseVector;
use crate::memory::{Buffer, Context};
use crate::operation::SpmvBackend;
use crate::problem::SpmvProblem;
use crate::select::{Choice, Surveyed};
use crate::types::{Address, Operation};
use num_complex::Complex64;

impl SpmvBackend for Reference {
    fn build_spmv(
        &self,
        cx: &Context,
        problem: &SpmvProblem,
        _choice: &Choice,
        _surveyed: Option<&Surveyed>,
    ) -> Result<Box<dyn SpmvExecutor>> {
        Ok(Box::new(Spmv::build(cx, problem)?))
    }
}

/// A plan's entries.
pub(super) struct Spmv {
    problem: SpmvProblem,
    entries: Buffer<Entry>,
    kept: Kept,
}

impl Spmv {
    /// Reads A's pattern.
    pub(super) fn build(cx: &Context, problem: &SpmvProblem) -> Result<Self> {
        let mut problem = *problem;
        let entries = entries::read(cx, &problem.a, "A")?;
        let kept = Kept::new(cx, "A", &mut problem.a)?;
        Ok(Spmv { problem, entries, kept })
    }

    /// Rows of op(A).
    fn rows(&self) -> usize {
        self.problem.a.shape_of(self.problem.op).0 as usize
    }

    fn run<N: Number>(
        &self,
        cx: &Context,
        alpha: Address,
        x: &DenseVector,
        beta: Address,
        y: &DenseVector,
    ) -> Result<()> {
        let problem = &self.problem;
        let alpha: N = scalar("alpha", alpha, problem.types.compute)?;
        let beta: N = scalar("beta", beta, problem.types.compute)?;
        // SAFETY: the only use of the workspace here; the handle lends it to one
        // execute at a time.
        let sums = unsafe { sums::<N>(cx.workspace, self.rows())? };
        if alpha != N::ZERO {
            let values = Values::of_sparse("A", &problem.a)?;
            let x = Values::of_vector("x", x)?;
            add_products(sums, &self.entries, &values, problem.op, |col| N::read(&x, col));
        }
        let mut y = ValuesMut::of_vector("y", y)?;
        for (row, &sum) in sums.iter().enumerate() {
            let result = combine(alpha, sum, beta, || N::read(&y.as_values(), row));
            N::write(&mut y, row, result);
        }
        Ok(())
    }
}

/// sums += op(A) · x. What is not stored does not contribute.
pub(super) fn add_products<N: Number>(
    sums: &mut [N],
    entries: &[Entry],
    values: &Values<'_>,
    op: Operation,
    x: impl Fn(usize) -> N,
) {
    for entry in entries {
        let (row, col) = entry.place(op);
        sums[row] += stored::<N>(values, entry.position, op) * x(col);
    }
}

impl SpmvExecutor for Spmv {
    fn workspace_bytes(&self) -> usize {
        if is_complex(self.problem.types.compute) {
            sums_bytes::<Complex64>(self.rows())
        } else {
            sums_bytes::<f64>(self.rows())
        }
    }

    fn execute(
        &self,
        cx: &Context,
        alpha: Address,
        x: &DenseVector,
        beta: Address,
        y: &DenseVector,
    ) -> Result<()> {
        if is_complex(self.problem.types.compute) {
            self.run::<Complex64>(cx, alpha, x, beta, y)
        } else {
            self.run::<f64>(cx, alpha, x, beta, y)
        }
    }

    fn update_values(&mut self, _cx: &Context, values: Address) -> Result<()> {
        self.kept.renew("A", &mut self.problem.a, values)
    }

    fn layout(&self) -> LayoutInfo {
        triplets()
    }
}

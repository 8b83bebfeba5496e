//! SpMM: one column of C after another, each as in SpMV.

use super::arrays::{sums, sums_bytes, Kept, Values, ValuesMut};
use super::entries::{self, Entry};
use super::number::{combine, is_complex, scalar, stored, Number};
use super::spmv::add_products;
use super::{triplets, Reference};
use crate::backend::{LayoutInfo, SpmmExecutor};
use crate::error::Result;
use crate::matrix::DenseMatrix;
use crate::memory::{Buffer, Context};
use crate::operation::SpmmBackend;
use crate::problem::SpmmProblem;
use crate::select::{Choice, SpmmSurveyed};
use crate::types::Address;
use num_complex::Complex64;

impl SpmmBackend for Reference {
    fn build_spmm(
        &self,
        cx: &Context,
        problem: &SpmmProblem,
        _choice: &Choice,
        _surveyed: Option<&SpmmSurveyed>,
    ) -> Result<Box<dyn SpmmExecutor>> {
        Ok(Box::new(Spmm::build(cx, problem)?))
    }
}

/// A plan's entries.
pub(super) struct Spmm {
    problem: SpmmProblem,
    entries: Buffer<Entry>,
    kept: Kept,
}

impl Spmm {
    /// Reads A's pattern.
    pub(super) fn build(cx: &Context, problem: &SpmmProblem) -> Result<Self> {
        let mut problem = *problem;
        let entries = entries::read(cx, &problem.a, "A")?;
        let kept = Kept::new(cx, "A", &mut problem.a)?;
        Ok(Spmm { problem, entries, kept })
    }

    /// (rows, columns) of op(A).
    fn shape(&self) -> (usize, usize) {
        let (m, k, _) = self.problem.a.shape_of(self.problem.op);
        (m as usize, k as usize)
    }

    fn run<N: Number>(
        &self,
        cx: &Context,
        alpha: Address,
        b: &DenseMatrix,
        beta: Address,
        c: &DenseMatrix,
    ) -> Result<()> {
        let problem = &self.problem;
        let alpha: N = scalar("alpha", alpha, problem.types.compute)?;
        let beta: N = scalar("beta", beta, problem.types.compute)?;
        let (m, k) = self.shape();
        // A column of C before the rounding, and a column of op(B).
        // SAFETY: the only use of the workspace here; the handle lends it to one
        // execute at a time.
        let (sums, column) = unsafe { sums::<N>(cx.workspace, m.saturating_add(k))? }.split_at_mut(m);
        for j in 0..c.cols as usize {
            if alpha != N::ZERO {
                for (i, element) in column.iter_mut().enumerate() {
                    let (row, col) = if problem.op_b.transposes() { (j, i) } else { (i, j) };
                    *element = stored(&Values::of_element("B", b, row, col)?, 0, problem.op_b);
                }
                let values = Values::of_sparse("A", &problem.a)?;
                sums.fill(N::ZERO);
                add_products(sums, &self.entries, &values, problem.op, |col| column[col]);
            }
            for (i, &sum) in sums.iter().enumerate() {
                let mut element = ValuesMut::of_element("C", c, i, j)?;
                let result = combine(alpha, sum, beta, || N::read(&element.as_values(), 0));
                N::write(&mut element, 0, result);
            }
        }
        Ok(())
    }
}

impl SpmmExecutor for Spmm {
    fn workspace_bytes(&self, _n: usize) -> usize {
        let (m, k) = self.shape();
        if is_complex(self.problem.types.compute) {
            sums_bytes::<Complex64>(m.saturating_add(k))
        } else {
            sums_bytes::<f64>(m.saturating_add(k))
        }
    }

    fn execute(
        &self,
        cx: &Context,
        alpha: Address,
        b: &DenseMatrix,
        beta: Address,
        c: &DenseMatrix,
    ) -> Result<()> {
        if is_complex(self.problem.types.compute) {
            self.run::<Complex64>(cx, alpha, b, beta, c)
        } else {
            self.run::<f64>(cx, alpha, b, beta, c)
        }
    }

    fn update_values(&mut self, _cx: &Context, values: Address) -> Result<()> {
        self.kept.renew("A", &mut self.problem.a, values)
    }

    fn layout(&self) -> LayoutInfo {
        triplets()
    }
}

//! SpMM: computes one column of C after another, each like an SpMV.

use super::arrays::{sums, sums_bytes, Place, Values};
use super::entries::Factor;
use super::number::{combine, is_complex, scalar, stored, Number};
use super::{triplets, Reference};
use crate::backend::{DenseExecutor, LayoutInfo, SpmmExecutor};
use crate::error::Result;
use crate::matrix::DenseMatrix;
use crate::memory::Context;
use crate::operation::SpmmBackend;
use crate::problem::SpmmProblem;
use crate::select::{Choice, SpmmInspection};
use crate::types::{Address, ComputeType, Operation, ScalarsAt};
use num_complex::Complex64;

impl SpmmBackend for Reference {
    fn build_spmm(
        &self,
        cx: &Context,
        problem: &SpmmProblem,
        _choice: &Choice,
        _inspection: Option<&SpmmInspection>,
    ) -> Result<Box<SpmmExecutor>> {
        let a = Factor::read(cx, &problem.a, problem.op, "A")?;
        Ok(Box::new(Spmm { a, op_b: problem.op_b, compute: problem.types.compute }))
    }
}

/// A plan for SpMM.
struct Spmm {
    a: Factor,
    op_b: Operation,
    compute: ComputeType,
}

impl Spmm {
    fn run<N: Number>(
        &self,
        cx: &Context,
        (alpha, beta): ScalarsAt,
        b: &DenseMatrix,
        c: &DenseMatrix,
    ) -> Result<()> {
        let alpha: N = scalar("alpha", alpha, self.compute)?;
        let beta: N = scalar("beta", beta, self.compute)?;
        let (m, k) = self.a.shape();
        // `sums` is a column of C before rounding, `column` a column of op(B).
        // SAFETY: this is the only use of the workspace here; the handle lends it to one execute at a time.
        let (sums, column) = unsafe { sums::<N>(cx.workspace, m.saturating_add(k))? }.split_at_mut(m);
        for j in 0..c.cols as usize {
            if alpha != N::ZERO {
                for (i, element) in column.iter_mut().enumerate() {
                    let (row, col) = if self.op_b.transposes() { (j, i) } else { (i, j) };
                    *element = stored(&Values::read("B", Place::of_element(b, row, col))?, 0, self.op_b);
                }
                sums.fill(N::ZERO);
                self.a.add_products(sums, &self.a.values("A")?, |col| column[col]);
            }
            for (i, &sum) in sums.iter().enumerate() {
                let mut element = Values::write("C", Place::of_element(c, i, j))?;
                let result = combine(alpha, sum, beta, || N::of(element.get(0)));
                element.set(0, result.value());
            }
        }
        Ok(())
    }
}

impl DenseExecutor<DenseMatrix> for Spmm {
    fn workspace_bytes(&self, _n: usize) -> usize {
        let (m, k) = self.a.shape();
        sums_bytes(m.saturating_add(k), self.compute)
    }

    fn product(&self, cx: &Context, scalars: ScalarsAt, [b, _, c]: [&DenseMatrix; 3]) -> Result<()> {
        if is_complex(self.compute) {
            self.run::<Complex64>(cx, scalars, b, c)
        } else {
            self.run::<f64>(cx, scalars, b, c)
        }
    }

    fn update_values(&mut self, _cx: &Context, values: Address) -> Result<()> {
        self.a.renew("A", values)
    }

    fn layout(&self) -> LayoutInfo {
        triplets()
    }
}

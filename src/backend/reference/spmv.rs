//! SpMV: for every entry of op(A), sums[row] += value · x[col].

use super::arrays::{sums, sums_bytes, Values};
use super::entries::Factor;
use super::number::{combine, is_complex, scalar, Number};
use super::{triplets, Reference};
use crate::backend::{DenseExecutor, LayoutInfo, SpmvExecutor};
use crate::error::Result;
use crate::matrix::DenseVector;
use crate::memory::Context;
use crate::operation::SpmvBackend;
use crate::problem::SpmvProblem;
use crate::select::{Choice, SpmvInspection};
use crate::types::{Address, ComputeType, ScalarsAt};
use num_complex::Complex64;

impl SpmvBackend for Reference {
    fn build_spmv(
        &self,
        cx: &Context,
        problem: &SpmvProblem,
        _choice: &Choice,
        _inspection: Option<&SpmvInspection>,
    ) -> Result<Box<SpmvExecutor>> {
        Ok(Box::new(Spmv::build(cx, problem)?))
    }
}

/// A plan for SpMV.
pub(super) struct Spmv {
    a: Factor,
    compute: ComputeType,
}

impl Spmv {
    /// Creates a plan, reading A's pattern.
    pub(super) fn build(cx: &Context, problem: &SpmvProblem) -> Result<Self> {
        let a = Factor::read(cx, &problem.a, problem.op, "A")?;
        Ok(Spmv { a, compute: problem.types.compute })
    }

    fn run<N: Number>(
        &self,
        cx: &Context,
        (alpha, beta): ScalarsAt,
        x: &DenseVector,
        y: &DenseVector,
    ) -> Result<()> {
        let alpha: N = scalar("alpha", alpha, self.compute)?;
        let beta: N = scalar("beta", beta, self.compute)?;
        // SAFETY: this is the only use of the workspace here; the handle lends it to one execute at a time.
        let sums = unsafe { sums::<N>(cx.workspace, self.a.shape().0)? };
        if alpha != N::ZERO {
            let (values, x) = (self.a.values("A")?, Values::read("x", x)?);
            self.a.add_products(sums, &values, |col| N::of(x.get(col)));
        }
        let mut y = Values::write("y", y)?;
        for (row, &sum) in sums.iter().enumerate() {
            let result = combine(alpha, sum, beta, || N::of(y.get(row)));
            y.set(row, result.value());
        }
        Ok(())
    }
}

impl DenseExecutor<DenseVector> for Spmv {
    fn workspace_bytes(&self, _n: usize) -> usize {
        sums_bytes(self.a.shape().0, self.compute)
    }

    fn product(&self, cx: &Context, scalars: ScalarsAt, [x, _, y]: [&DenseVector; 3]) -> Result<()> {
        if is_complex(self.compute) {
            self.run::<Complex64>(cx, scalars, x, y)
        } else {
            self.run::<f64>(cx, scalars, x, y)
        }
    }

    fn update_values(&mut self, _cx: &Context, values: Address) -> Result<()> {
        self.a.renew("A", values)
    }

    fn layout(&self) -> LayoutInfo {
        triplets()
    }
}

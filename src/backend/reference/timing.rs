//! One execute on operands of ones, for effort TUNED. The oracle has nothing to
//! choose from, so once is enough.

use std::time::Instant;

use num_complex::Complex64;

use super::arrays::ones;
use super::number::{is_complex, Number};
use crate::backend::{SpmmExecutor, SpmvExecutor};
use crate::error::Result;
use crate::matrix::{DenseMatrix, DenseVector};
use crate::memory::{Buffer, Context, Workspace};
use crate::problem::{SpmmProblem, SpmvProblem};
use crate::support::Types;
use crate::types::{Address, DataType, Order};

/// Seconds of one SpMV.
pub(super) fn spmv(cx: &Context, problem: &SpmvProblem, executor: &dyn SpmvExecutor) -> Result<f64> {
    let (rows, cols, _) = problem.a.shape();
    let (m, k) = problem.op.shape(rows, cols);
    let operands = Operands::new(cx, problem.types, k as usize, m as usize, executor.workspace_bytes())?;
    let vector = |values, len, value_type| DenseVector { len, values, value_type, writable: true };
    let x = vector(operands.input.address(), k, problem.types.x);
    let y = vector(operands.output.address(), m, problem.types.y);
    operands.time(cx, |cx, alpha, beta| executor.execute(cx, alpha, &x, beta, &y))
}

/// Seconds of one SpMM at nHint columns.
pub(super) fn spmm(cx: &Context, problem: &SpmmProblem, executor: &dyn SpmmExecutor) -> Result<f64> {
    let (rows, cols, _) = problem.a.shape();
    let (m, k) = problem.op.shape(rows, cols);
    let n = problem.n_hint;
    let (input, output) = ((k as usize).saturating_mul(n as usize), (m as usize).saturating_mul(n as usize));
    let operands = Operands::new(cx, problem.types, input, output, executor.workspace_bytes(n as usize))?;
    let matrix = |values, value_type: DataType, order, (rows, cols): (i64, i64)| {
        let ld = if order == Order::Col { rows } else { cols };
        DenseMatrix { rows, cols, ld: ld.max(1), values, value_type, order, writable: true }
    };
    let b = matrix(operands.input.address(), problem.types.x, problem.b_order, problem.op_b.shape(k, n));
    let c = matrix(operands.output.address(), problem.types.y, problem.c_order, (m, n));
    operands.time(cx, |cx, alpha, beta| executor.execute(cx, alpha, &b, beta, &c))
}

/// Everything that an execute needs besides the executor.
struct Operands {
    input: Buffer<u8>,
    output: Buffer<u8>,
    one: Buffer<u8>,
    zero: Buffer<u8>,
    workspace: Buffer<u8>,
}

impl Operands {
    fn new(cx: &Context, types: Types, input: usize, output: usize, workspace: usize) -> Result<Self> {
        if is_complex(types.compute) {
            Self::of_ones::<Complex64>(cx, types, input, output, workspace)
        } else {
            Self::of_ones::<f64>(cx, types, input, output, workspace)
        }
    }

    fn of_ones<N: Number>(
        cx: &Context,
        types: Types,
        input: usize,
        output: usize,
        workspace: usize,
    ) -> Result<Self> {
        let scalar = types.compute.scalar();
        Ok(Operands {
            input: ones::<N>(cx, input, types.x)?,
            output: ones::<N>(cx, output, types.y)?,
            one: ones::<N>(cx, 1, scalar)?,
            zero: Buffer::zeroed(&cx.allocator, scalar.size())?,
            workspace: Buffer::zeroed(&cx.allocator, workspace)?,
        })
    }

    fn time(
        &self,
        cx: &Context,
        execute: impl FnOnce(&Context, Address, Address) -> Result<()>,
    ) -> Result<f64> {
        let workspace = Workspace { address: self.workspace.address(), bytes: self.workspace.len() };
        let cx = Context { workspace, ..cx.clone() };
        let start = Instant::now();
        execute(&cx, self.one.address(), self.zero.address())?;
        Ok(start.elapsed().as_secs_f64())
    }
}

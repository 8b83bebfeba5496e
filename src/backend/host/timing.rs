//! Measurement for effort TUNED: the seconds of one execute with operands that the library makes.

use std::time::Instant;

use bytemuck::Pod;

use crate::backend::{SpmmExecutor, SpmvExecutor};
use crate::error::Result;
use crate::matrix::fingerprint::mix;
use crate::matrix::{DenseMatrix, DenseVector};
use crate::memory::{Buffer, Context, Workspace};
use crate::problem::{SpmmProblem, SpmvProblem};
use crate::types::{Address, ComputeType, DataType, Order};

/// Number of timed executes, after one that is not timed. The median of five is not affected by two that were
/// disturbed.
const RUNS: usize = 5;

/// Returns the seconds of one SpMV.
pub(crate) fn spmv(cx: &Context, problem: &SpmvProblem, executor: &SpmvExecutor) -> Result<f64> {
    let (rows, cols, _) = problem.a.shape_of(problem.op);
    let (x, y) = (Operand::new(cx, problem.types.x, cols)?, Operand::new(cx, problem.types.y, rows)?);
    with_workspace(cx, executor.workspace_bytes(1), |cx| {
        let [one, zero] = &scalars(problem.types.compute);
        let (one, zero) = (Address::new(one.as_ptr()), Address::new(zero.as_ptr()));
        median(|| executor.execute(cx, one, &x.vector(), zero, &y.vector()))
    })
}

/// Returns the seconds of one SpMM at nHint columns, or with one column if nHint is 0.
pub(crate) fn spmm(cx: &Context, problem: &SpmmProblem, executor: &SpmmExecutor) -> Result<f64> {
    let (m, k, _) = problem.a.shape_of(problem.op);
    let n = problem.n_hint.max(1);
    // A transposition is its own inverse on shapes, so this is the shape of B.
    let (b_rows, b_cols) = problem.op_b.shape(k, n);
    let b = Operand::new(cx, problem.types.x, b_rows.saturating_mul(b_cols))?;
    let c = Operand::new(cx, problem.types.y, m.saturating_mul(n))?;
    let (b, c) = (b.matrix(b_rows, b_cols, problem.b_order), c.matrix(m, n, problem.c_order));
    with_workspace(cx, executor.workspace_bytes(n as usize), |cx| {
        let [one, zero] = &scalars(problem.types.compute);
        let (one, zero) = (Address::new(one.as_ptr()), Address::new(zero.as_ptr()));
        median(|| executor.execute(cx, one, &b, zero, &c))
    })
}

fn median(mut execute: impl FnMut() -> Result<()>) -> Result<f64> {
    execute()?;
    let mut seconds = [0.0; RUNS];
    for seconds in &mut seconds {
        let start = Instant::now();
        execute()?;
        *seconds = start.elapsed().as_secs_f64();
    }
    seconds.sort_unstable_by(f64::total_cmp);
    Ok(seconds[RUNS / 2])
}

fn with_workspace<R>(cx: &Context, bytes: usize, f: impl FnOnce(&Context) -> Result<R>) -> Result<R> {
    let buffer = Buffer::<u8>::zeroed(&cx.allocator, bytes)?;
    let workspace = Workspace { address: buffer.address(), bytes: buffer.len() };
    f(&Context { workspace, ..cx.clone() })
}

/// Returns the bytes of 1 and 0 in a compute type: the real part is first and the rest is zero.
fn scalars(compute: ComputeType) -> [[u8; 16]; 2] {
    let mut one = [0; 16];
    match compute.scalar() {
        DataType::R64F | DataType::C64F => one[..8].copy_from_slice(&1.0_f64.to_ne_bytes()),
        _ => one[..4].copy_from_slice(&1.0_f32.to_ne_bytes()),
    }
    [one, [0; 16]]
}

/// A dense operand that the library makes.
struct Operand {
    values: Buffer<u8>,
    value_type: DataType,
}

impl Operand {
    /// Creates reproducible values in [1, 2) that use all bits of the mantissa.
    fn new(cx: &Context, value_type: DataType, len: i64) -> Result<Self> {
        let bytes = usize::try_from(len).unwrap_or(usize::MAX).saturating_mul(value_type.size());
        let mut values = Buffer::<u8>::zeroed(&cx.allocator, bytes)?;
        fill(&mut values, value_type);
        Ok(Operand { values, value_type })
    }

    fn vector(&self) -> DenseVector {
        let len = (self.values.len() / self.value_type.size()) as i64;
        DenseVector { len, values: self.values.address(), value_type: self.value_type, writable: true }
    }

    fn matrix(&self, rows: i64, cols: i64, order: Order) -> DenseMatrix {
        let inner = if order == Order::Col { rows } else { cols };
        let (values, value_type) = (self.values.address(), self.value_type);
        DenseMatrix { rows, cols, ld: inner.max(1), values, value_type, order, writable: true }
    }
}

/// Writes floating-point numbers in [1, 2): the exponent of 1, hashed bits in the mantissa, and its last bit
/// set.
fn fill(values: &mut [u8], value_type: DataType) {
    fn write<W: Pod>(values: &mut [u8], word: impl Fn(u64) -> W) {
        // An empty slice need not be aligned for the cast.
        if !values.is_empty() {
            let words = bytemuck::cast_slice_mut::<u8, W>(values).iter_mut();
            words.zip(1..).for_each(|(to, number)| *to = word(mix(number)));
        }
    }
    match value_type {
        DataType::R64F | DataType::C64F => write(values, |bits| 1.0_f64.to_bits() | bits >> 12 | 1),
        DataType::R32F | DataType::C32F => write(values, |bits| 1.0_f32.to_bits() | (bits >> 41) as u32 | 1),
        DataType::R16F => write(values, |bits| half::f16::ONE.to_bits() | (bits >> 54) as u16 | 1),
        DataType::R16BF => write(values, |bits| half::bf16::ONE.to_bits() | (bits >> 57) as u16 | 1),
        // No operation supports integers.
        DataType::R8I | DataType::R32I => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filled_values_use_the_whole_mantissa() {
        let mut doubles = [0.0_f64; 100];
        fill(bytemuck::cast_slice_mut(&mut doubles), DataType::R64F);
        assert!(doubles.iter().all(|v| (1.0..2.0).contains(v) && v.to_bits() & 1 == 1));
        let mut singles = [0.0_f32; 100];
        fill(bytemuck::cast_slice_mut(&mut singles), DataType::C32F);
        assert!(singles.iter().all(|v| (1.0..2.0).contains(v) && v.to_bits() & 1 == 1));
        let mut halves = [half::f16::ZERO; 100];
        fill(bytemuck::cast_slice_mut(&mut halves), DataType::R16F);
        assert!(halves.iter().all(|v| (1.0..2.0).contains(&v.to_f32())));
        let mut brains = [half::bf16::ZERO; 100];
        fill(bytemuck::cast_slice_mut(&mut brains), DataType::R16BF);
        assert!(brains.iter().all(|v| (1.0..2.0).contains(&v.to_f32())));
        assert!(doubles.windows(2).all(|w| w[0] != w[1]));
    }
}

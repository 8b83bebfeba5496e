//! SpMV and SpMM: descriptors, buffer and preprocess are prepared beforehand; one call is timed.

use std::ffi::c_void;
use std::time::Instant;

use client::{Array, DenseLayout};
use tarsia::facade::{Accumulator, Order};

use super::api::{self, check, Raw};
use super::{address, address_mut, void, Cusparse, Descr, What};
use crate::bench::number::Number;
use crate::bench::runs::{dense_shape, MatrixOperand};
use crate::bench::vendor::{Dense, Prepared};
use crate::Result;

/// Returns cuSPARSE's value for the order of a dense matrix.
fn order(shape: DenseLayout) -> i32 {
    match shape.order {
        Order::Row => api::ORDER_ROW,
        Order::Col => api::ORDER_COL,
    }
}

fn milliseconds(start: Instant) -> f64 {
    1e3 * start.elapsed().as_secs_f64()
}

/// Formats a note: `buf=12` for a matrix without a note of its own, else the matrix's note.
fn note(buffer: Option<usize>, descr: &Descr<'_>) -> String {
    match buffer {
        Some(bytes) if descr.note.is_empty() => format!("buf={bytes}"),
        _ => descr.note.clone(),
    }
}

impl<'s> Cusparse<'s> {
    fn vector<'a, T: Number>(&self, x: &'a Array<'_, T>) -> Result<Descr<'a>> {
        let mut raw = std::ptr::null_mut();
        let make = self.functions.cusparseCreateConstDnVec;
        // SAFETY: the array has this length and type and outlives the descriptor.
        check(unsafe { make(&mut raw, x.len() as i64, address(x), T::TYPE.code()) }, "createDnVec")?;
        Ok(self.dense_descr(raw, self.functions.cusparseDestroyDnVec))
    }

    fn vector_mut<'a, T: Number>(&self, y: &'a mut Array<'_, T>) -> Result<Descr<'a>> {
        let mut raw = std::ptr::null_mut();
        let make = self.functions.cusparseCreateDnVec;
        // SAFETY: as in `vector`, borrowed exclusively.
        check(unsafe { make(&mut raw, y.len() as i64, address_mut(y), T::TYPE.code()) }, "createDnVec")?;
        Ok(self.dense_descr(raw, self.functions.cusparseDestroyDnVec))
    }

    fn dense_descr<'a>(&self, raw: Raw, destroy: unsafe extern "C" fn(*const c_void) -> i32) -> Descr<'a> {
        Descr { raw, destroy, _arrays: Vec::new(), bytes: 0, note: String::new() }
    }

    /// Makes the matrix in the format that is asked for; returns it with the value of the algorithm, and
    /// whether it is preprocessed.
    fn format<'a, T: Number>(
        &'a self,
        what: What,
        a: &'a MatrixOperand<'_, T>,
        bsr: i32,
    ) -> Result<(Descr<'a>, i32, bool)> {
        Ok(match what {
            What::Csr { alg, preprocess } => (self.csr(a)?, alg, preprocess),
            What::Coo { alg } => (self.coo(a)?, alg, true),
            What::Sell => (self.sell(a)?, api::spmv::SELL, false),
            What::Bsr { size } => (self.bsr(a, size)?, bsr, false),
            What::Operator { .. } | What::Sparse { .. } | What::Reuse { .. } => {
                return Err("no such algorithm".into())
            }
        })
    }

    /// Prepares y = A·x.
    pub(super) fn prepare_spmv<'a, T: Number>(
        &'a self,
        what: What,
        a: &'a MatrixOperand<'_, T>,
        x: &'a Array<'_, T>,
        y: &'a mut Array<'_, T>,
    ) -> Result<Prepared<'a>> {
        if let What::Operator { alg } = what {
            return self.prepare_operator(alg, a, x, y);
        }
        let (matrix, alg, preprocess) = self.format(what, a, api::spmv::BSR)?;
        let (x, y) = (self.vector(x)?, self.vector_mut(y)?);
        let (one, zero) = (<T::Sum as Accumulator>::ONE, <T::Sum as Accumulator>::ZERO);
        let (op, sums, handle) = (api::operation(a.op), a.precision.compute().scalar().code(), self.handle);
        let functions = &self.functions;
        let mut bytes = 0;
        // SAFETY: the descriptors live and describe arrays that do; the scalars
        // have the type of the sums; the answer is valid for a write.
        let status = unsafe {
            let (a, x, y) = (matrix.raw, x.raw, y.raw);
            let (one, zero) = (void(&one), void(&zero));
            (functions.cusparseSpMV_bufferSize)(handle, op, one, a, x, zero, y, sums, alg, &mut bytes)
        };
        check(status, "bufferSize")?;
        let buffer = self.session.scratch(bytes)?;
        let mut analysis_ms = 0.0;
        // Versions before 12.3 have no preprocess, and work without it.
        if let Some(function) = functions.cusparseSpMV_preprocess.filter(|_| preprocess) {
            self.session.synchronize()?;
            let start = Instant::now();
            // SAFETY: as above; the buffer has the size that was asked for.
            let status = unsafe {
                let (a, x, y, buffer) = (matrix.raw, x.raw, y.raw, buffer.as_mut_ptr());
                function(handle, op, void(&one), a, x, void(&zero), y, sums, alg, buffer)
            };
            check(status, "preprocess")?;
            self.session.synchronize()?;
            analysis_ms = milliseconds(start);
        }
        let note = note(Some(bytes), &matrix);
        let held = (bytes + matrix.bytes) as f64;
        let run = move || {
            // Borrowed whole, so that the closure owns the descriptors, and not only their addresses.
            let (matrix, x, y, buffer) = (&matrix, &x, &y, &buffer);
            // SAFETY: as above; the closure keeps what is described, and the
            // buffer, for as long as it can be called.
            let status = unsafe {
                let (a, x, y, buffer) = (matrix.raw, x.raw, y.raw, buffer.as_mut_ptr());
                (functions.cusparseSpMV)(handle, op, void(&one), a, x, void(&zero), y, sums, alg, buffer)
            };
            check(status, "SpMV")
        };
        Ok(Prepared { analysis_ms, bytes: held, note, run: Box::new(run) })
    }

    /// Prepares z = A·x + 0·y by cusparseSpMVOp. The argument z is the benchmark's y; cuSPARSE's y is a
    /// vector of zeros.
    fn prepare_operator<'a, T: Number>(
        &'a self,
        alg: i32,
        a: &'a MatrixOperand<'_, T>,
        x: &'a Array<'_, T>,
        z: &'a mut Array<'_, T>,
    ) -> Result<Prepared<'a>> {
        let functions = &self.functions;
        let execute = api::need(functions.cusparseSpMVOp, "cusparseSpMVOp")?;
        let buffer_size = api::need(functions.cusparseSpMVOp_bufferSize, "cusparseSpMVOp_bufferSize")?;
        let create = api::need(functions.cusparseSpMVOp_createDescr, "cusparseSpMVOp_createDescr")?;
        let create_plan = api::need(functions.cusparseSpMVOp_createPlan, "cusparseSpMVOp_createPlan")?;
        let destroy = api::need(functions.cusparseSpMVOp_destroyDescr, "cusparseSpMVOp_destroyDescr")?;
        let destroy_plan = api::need(functions.cusparseSpMVOp_destroyPlan, "cusparseSpMVOp_destroyPlan")?;
        let mut zeros = self.session.upload(&vec![T::narrow(0.0); z.len()])?;
        let matrix = self.csr(a)?;
        let (x, z) = (self.vector(x)?, self.vector_mut(z)?);
        let mut y = std::ptr::null_mut();
        let make = functions.cusparseCreateDnVec;
        let (len, values) = (zeros.len() as i64, address_mut(&mut zeros));
        // SAFETY: the array has this length and type; the descriptor keeps it.
        check(unsafe { make(&mut y, len, values, T::TYPE.code()) }, "createDnVec")?;
        let mut y = self.dense_descr(y, functions.cusparseDestroyDnVec);
        y._arrays.push(Box::new(zeros));

        let (op, sums, handle) = (api::operation(a.op), a.precision.compute().scalar().code(), self.handle);
        self.session.synchronize()?;
        let start = Instant::now();
        let mut bytes = 0;
        // SAFETY: the descriptors live and describe arrays that do; the answer
        // is valid for a write.
        let status =
            unsafe { buffer_size(handle, op, matrix.raw, x.raw, y.raw, z.raw, sums, alg, &mut bytes) };
        check(status, "bufferSize")?;
        let asked = milliseconds(start);
        let buffer = self.session.scratch(bytes)?;
        let start = Instant::now();
        let mut made =
            Operator { descr: std::ptr::null_mut(), plan: std::ptr::null_mut(), destroy, destroy_plan };
        // SAFETY: as above; the buffer has the size that was asked for.
        let status = unsafe {
            let (a, x, y, z, buffer) = (matrix.raw, x.raw, y.raw, z.raw, buffer.as_mut_ptr());
            create(handle, &mut made.descr, op, a, x, y, z, sums, alg, buffer)
        };
        check(status, "createDescr")?;
        // SAFETY: without code of one's own the plan is that of the plain product.
        let status = unsafe { create_plan(handle, made.descr, &mut made.plan, std::ptr::null(), 0) };
        check(status, "createPlan")?;
        self.session.synchronize()?;
        let analysis_ms = asked + milliseconds(start);
        let (one, zero) = (<T::Sum as Accumulator>::ONE, <T::Sum as Accumulator>::ZERO);
        let run = move || {
            // Borrowed whole, as for the other algorithms, so that the closure owns the objects. Everything
            // that the plan reads is dropped after the plan, in the order of this list.
            let (made, x, y, z, _, _) = (&made, &x, &y, &z, &matrix, &buffer);
            // SAFETY: the closure keeps what is described, plan and buffer.
            let status = unsafe { execute(handle, made.plan, void(&one), void(&zero), x.raw, y.raw, z.raw) };
            check(status, "SpMVOp")
        };
        Ok(Prepared { analysis_ms, bytes: bytes as f64, note: format!("buf={bytes}"), run: Box::new(run) })
    }

    /// Prepares C = A·op(B).
    pub(super) fn prepare_spmm<'a, T: Number>(
        &'a self,
        what: What,
        a: &'a MatrixOperand<'_, T>,
        b: Dense<'a, T>,
        c: &'a mut Array<'_, T>,
    ) -> Result<Prepared<'a>> {
        let (matrix, alg, preprocess) = self.format(what, a, api::spmm::BSR)?;
        let functions = &self.functions;
        let (op, op_b) = (api::operation(a.op), api::operation(b.layout.op_b));
        let (of_b, of_c) = (b.shape(), dense_shape(a.host.rows, b.cols, b.layout.order));
        let (value, mut raw) = (T::TYPE.code(), std::ptr::null_mut());
        let (make, DenseLayout { rows, cols, ld, .. }) = (functions.cusparseCreateConstDnMat, of_b);
        // SAFETY: the array has this shape and type and outlives the descriptor.
        let status = unsafe { make(&mut raw, rows, cols, ld, address(b.array), value, order(of_b)) };
        check(status, "createDnMat")?;
        let b = self.dense_descr(raw, functions.cusparseDestroyDnMat);
        let (make, DenseLayout { rows, cols, ld, .. }) = (functions.cusparseCreateDnMat, of_c);
        // SAFETY: as above, borrowed exclusively.
        let status = unsafe { make(&mut raw, rows, cols, ld, address_mut(c), value, order(of_c)) };
        check(status, "createDnMat")?;
        let c = self.dense_descr(raw, functions.cusparseDestroyDnMat);

        let (one, zero) = (<T::Sum as Accumulator>::ONE, <T::Sum as Accumulator>::ZERO);
        let (sums, handle) = (a.precision.compute().scalar().code(), self.handle);
        let mut bytes = 0;
        // SAFETY: the descriptors live and describe arrays that do; the scalars
        // have the type of the sums; the answer is valid for a write.
        let status = unsafe {
            let (a, b, c, out) = (matrix.raw, b.raw, c.raw, &mut bytes);
            let (one, zero) = (void(&one), void(&zero));
            (functions.cusparseSpMM_bufferSize)(handle, op, op_b, one, a, b, zero, c, sums, alg, out)
        };
        check(status, "bufferSize")?;
        let buffer = self.session.scratch(bytes)?;
        let mut analysis_ms = 0.0;
        if preprocess {
            self.session.synchronize()?;
            let start = Instant::now();
            // SAFETY: as above; the buffer has the size that was asked for.
            let status = unsafe {
                let (a, b, c, buffer) = (matrix.raw, b.raw, c.raw, buffer.as_mut_ptr());
                let (one, zero) = (void(&one), void(&zero));
                (functions.cusparseSpMM_preprocess)(handle, op, op_b, one, a, b, zero, c, sums, alg, buffer)
            };
            check(status, "preprocess")?;
            self.session.synchronize()?;
            analysis_ms = milliseconds(start);
        }
        let note = note(Some(bytes), &matrix);
        let held = (bytes + matrix.bytes) as f64;
        let run = move || {
            // Borrowed whole, as for SpMV, so that the closure owns the descriptors.
            let (matrix, b, c, buffer) = (&matrix, &b, &c, &buffer);
            // SAFETY: as above; the closure keeps what is described, and the
            // buffer, for as long as it can be called.
            let status = unsafe {
                let (a, b, c, buffer) = (matrix.raw, b.raw, c.raw, buffer.as_mut_ptr());
                let (one, zero) = (void(&one), void(&zero));
                (functions.cusparseSpMM)(handle, op, op_b, one, a, b, zero, c, sums, alg, buffer)
            };
            check(status, "SpMM")
        };
        Ok(Prepared { analysis_ms, bytes: held, note, run: Box::new(run) })
    }
}

/// Descriptor and plan of cusparseSpMVOp.
struct Operator {
    descr: Raw,
    plan: Raw,
    destroy: unsafe extern "C" fn(Raw) -> i32,
    destroy_plan: unsafe extern "C" fn(Raw) -> i32,
}

impl Drop for Operator {
    fn drop(&mut self) {
        if !self.plan.is_null() {
            // SAFETY: made by createPlan.
            unsafe { (self.destroy_plan)(self.plan) };
        }
        if !self.descr.is_null() {
            // SAFETY: made by createDescr.
            unsafe { (self.destroy)(self.descr) };
        }
    }
}

#[cfg(test)]
mod tests {
    use tarsia::facade::Operation;

    use super::*;

    #[test]
    fn operands_are_described_by_the_numbers_of_cusparse() {
        // CUSPARSE_OPERATION_NON_TRANSPOSE and _TRANSPOSE, CUSPARSE_ORDER_ROW and _COL.
        let ops = [Operation::NonTranspose, Operation::Transpose].map(api::operation);
        assert_eq!(ops, [0, 1]);
        assert_eq!([Order::Row, Order::Col].map(|of| order(dense_shape(3, 2, of))), [2, 1]);
    }
}

//! SpGEMM, with all phases each time.

use std::time::Instant;

use tarsia::facade::Element;

use super::api::{self, check, Raw};
use super::product::{Clock, Product, Run};
use super::{void, Cusparse, What};
use crate::bench::number::Number;
use crate::bench::runs::MatrixOperand;
use crate::bench::vendor::SparseProduct;
use crate::Result;

/// Buffer of `cusparseSpGEMM_workEstimation`: its place in [`Product::buffers`].
const WORK: usize = 0;
/// Buffer of `cusparseSpGEMM_compute`.
const COMPUTE: usize = 1;
/// Buffer of `cusparseSpGEMM_estimateMemory`, which is called for algorithms with a chunk fraction.
const ESTIMATE: usize = 2;

/// A product C = A·B, with everything that is kept from one run to the next.
pub struct CusparseProduct<'a, T: Number> {
    /// Buffers at [`WORK`], [`COMPUTE`] and [`ESTIMATE`].
    product: Product<'a, T, 3>,
    chunk: Option<f32>,
    peak: usize,
    /// True if there is no room for the buffer of memory estimation beside that of the computation.
    is_tight: bool,
    /// Milliseconds of the last run's computation and of the call that asks for C's size after it.
    last_compute_ms: f64,
}

impl<'a, T: Number> CusparseProduct<'a, T> {
    /// Allocates C's offsets; nothing is computed yet.
    pub fn new(
        vendor: &'a Cusparse<'a>,
        what: What,
        a: &'a MatrixOperand<'_, T>,
        b: Option<&'a MatrixOperand<'_, T>>,
    ) -> Result<Self> {
        let What::Sparse { alg, chunk } = what else {
            return Err("no such algorithm".into());
        };
        let product = Product::new(vendor, alg, a, b)?;
        Ok(CusparseProduct { product, chunk, peak: 0, is_tight: false, last_compute_ms: 0.0 })
    }

    /// Returns the buffer of the computation. If there is no room for it, that of memory estimation is freed
    /// first, which the documentation allows at this point.
    fn compute_buffer(&mut self, bytes: usize, clock: &mut Clock) -> Result<Raw> {
        let made = self.product.buffer(COMPUTE, bytes, clock);
        if made.is_err() && self.product.buffers[ESTIMATE].take().is_some() {
            self.is_tight = true;
            return self.product.buffer(COMPUTE, bytes, clock);
        }
        made
    }

    fn see_peak(&mut self) {
        let (offsets, entries) = self.product.c_bytes();
        self.peak = self.peak.max(self.product.held(0..3) + offsets + entries);
    }

    /// Runs all phases from a new descriptor on, and returns their seconds, without those of allocating.
    fn phases(&mut self) -> Result<f64> {
        let vendor = self.product.vendor;
        let (f, handle, session) = (&vendor.functions, vendor.handle, vendor.session);
        let (n, alg, null) = (api::NON_TRANSPOSE, self.product.alg, std::ptr::null_mut());
        let sums = <T::Sum as Element>::TYPE.code();
        let (a, b) = self.product.factors();
        let (one, zero) = (self.product.one, self.product.zero);
        let (one, zero) = (void(&one), void(&zero));
        // Buffers kept from the last run must not take the memory that this one needs.
        if self.is_tight {
            self.product.buffers[COMPUTE] = None;
        }
        session.synchronize()?;

        let mut clock = Clock::start();
        let c = self.product.empty_c()?;
        let run = Run::new(vendor)?;
        let descr = run.raw();

        let mut bytes = 0;
        let estimate = f.cusparseSpGEMM_workEstimation;
        // SAFETY: the descriptors live and describe arrays that do; the scalars
        // have the type of the sums; without a buffer the size is the answer.
        let ask =
            unsafe { estimate(handle, n, n, one, a, b, zero, c.raw, sums, alg, descr, &mut bytes, null) };
        check(ask, "workEst")?;
        let buffer = self.product.buffer(WORK, bytes, &mut clock)?;
        // SAFETY: as above, with a buffer of that size, kept until C is copied.
        let status =
            unsafe { estimate(handle, n, n, one, a, b, zero, c.raw, sums, alg, descr, &mut bytes, buffer) };
        check(status, "workEst")?;

        let mut bytes2 = 0;
        let compute = f.cusparseSpGEMM_compute;
        if let Some(chunk) = self.chunk {
            let estimate = api::need(f.cusparseSpGEMM_estimateMemory, "cusparseSpGEMM_estimateMemory")?;
            let mut bytes3 = 0;
            // SAFETY: as for the work's estimate.
            let ask = unsafe {
                let (size, out) = (&mut bytes3, std::ptr::null_mut());
                estimate(handle, n, n, one, a, b, zero, c.raw, sums, alg, descr, chunk, size, null, out)
            };
            check(ask, "estMem")?;
            let buffer = self.product.buffer(ESTIMATE, bytes3, &mut clock)?;
            // SAFETY: as above, with a buffer of that size.
            let status = unsafe {
                let (size, out) = (&mut bytes3, &mut bytes2);
                estimate(handle, n, n, one, a, b, zero, c.raw, sums, alg, descr, chunk, size, buffer, out)
            };
            check(status, "estMem")?;
            self.see_peak();
            if self.is_tight {
                clock.pause();
                self.product.buffers[ESTIMATE] = None;
                clock.resume();
            }
        } else {
            // SAFETY: as for the work's estimate.
            let ask =
                unsafe { compute(handle, n, n, one, a, b, zero, c.raw, sums, alg, descr, &mut bytes2, null) };
            check(ask, "compute")?;
        }
        let buffer = self.compute_buffer(bytes2, &mut clock)?;
        let compute_start = Instant::now();
        // SAFETY: as above, with a buffer of that size, kept until C is copied.
        let status =
            unsafe { compute(handle, n, n, one, a, b, zero, c.raw, sums, alg, descr, &mut bytes2, buffer) };
        check(status, "compute")?;
        let nnz = self.product.count(&c)?;
        self.last_compute_ms = 1e3 * compute_start.elapsed().as_secs_f64();
        self.product.give_room(&c, nnz, &mut clock)?;
        // SAFETY: as above; C has its arrays now.
        let status =
            unsafe { (f.cusparseSpGEMM_copy)(handle, n, n, one, a, b, zero, c.raw, sums, alg, descr) };
        check(status, "copy")?;
        session.synchronize()?;
        clock.pause();
        self.see_peak();
        drop(run);
        Ok(clock.spent())
    }
}

impl<T: Number> SparseProduct<T> for CusparseProduct<'_, T> {
    fn run(&mut self) -> Result<f64> {
        let out = self.phases();
        if out.is_err() {
            // The next product needs the memory.
            self.product.buffers = [const { None }; 3];
        }
        out
    }

    fn result(&mut self) -> Result<(Vec<i32>, Vec<i32>, Vec<T>)> {
        self.product.result()
    }

    fn peak_bytes(&self) -> f64 {
        self.peak as f64
    }

    fn note(&self) -> String {
        format!("peak_MB={};last_compute_ms={:.3}", self.peak / 1_000_000, self.last_compute_ms)
    }

    fn suffix(&self) -> &'static str {
        // The third buffer (b3 in errors) was freed before the computation.
        if self.is_tight {
            "_freeb3"
        } else {
            ""
        }
    }
}

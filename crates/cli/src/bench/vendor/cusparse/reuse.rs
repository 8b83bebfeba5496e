//! SpGEMMreuse: a product whose numeric phase can be run again with new values.

use tarsia::facade::Element;

use super::api::{self, check, need};
use super::product::{Clock, Product, Run};
use super::{void, Cusparse, Descr, What};
use crate::bench::number::Number;
use crate::bench::runs::MatrixOperand;
use crate::bench::vendor::SparseProduct;
use crate::Result;

/// A product C = A·B, with all that the numeric phase needs.
pub struct ReuseProduct<'a, T: Number> {
    /// Descriptors of C and of the product, from the last run.
    last: Option<(Descr<'a>, Run)>,
    /// Buffers by the documentation's numbers, less one: buffer 1 is for work estimation, 2, 3 and 4 for the
    /// count of entries, 5 for the pattern. The last two are also used by the numeric phase.
    product: Product<'a, T, 5>,
}

impl<'a, T: Number> ReuseProduct<'a, T> {
    /// Allocates C's offsets; nothing is computed yet.
    pub fn new(
        vendor: &'a Cusparse<'a>,
        what: What,
        a: &'a MatrixOperand<'_, T>,
        b: Option<&'a MatrixOperand<'_, T>>,
    ) -> Result<Self> {
        let What::Reuse { alg } = what else {
            return Err("no such algorithm".into());
        };
        Ok(ReuseProduct { last: None, product: Product::new(vendor, alg, a, b)? })
    }

    fn phases(&mut self) -> Result<f64> {
        let vendor = self.product.vendor;
        let (f, handle, session) = (&vendor.functions, vendor.handle, vendor.session);
        let estimate = need(f.cusparseSpGEMMreuse_workEstimation, "cusparseSpGEMMreuse_workEstimation")?;
        let count = need(f.cusparseSpGEMMreuse_nnz, "cusparseSpGEMMreuse_nnz")?;
        let copy = need(f.cusparseSpGEMMreuse_copy, "cusparseSpGEMMreuse_copy")?;
        let (n, alg, (a, b)) = (api::NON_TRANSPOSE, self.product.alg, self.product.factors());
        let null = std::ptr::null_mut();
        // The descriptors of the last run refer to the buffers that this run fills.
        self.last = None;
        session.synchronize()?;

        let mut clock = Clock::start();
        let c = self.product.empty_c()?;
        let run = Run::new(vendor)?;
        let descr = run.raw();

        let mut bytes = 0;
        // SAFETY: the descriptors live and describe arrays that do; without a buffer the size is the answer.
        let ask = unsafe { estimate(handle, n, n, a, b, c.raw, alg, descr, &mut bytes, null) };
        check(ask, "reuse_workEst")?;
        let buffer = self.product.buffer(0, bytes, &mut clock)?;
        // SAFETY: as above, with a buffer of that size, kept with the descriptor.
        let status = unsafe { estimate(handle, n, n, a, b, c.raw, alg, descr, &mut bytes, buffer) };
        check(status, "reuse_workEst")?;

        let [mut bytes2, mut bytes3, mut bytes4] = [0; 3];
        let (size2, size3, size4) = (&mut bytes2, &mut bytes3, &mut bytes4);
        // SAFETY: as for the work's estimate.
        let ask =
            unsafe { count(handle, n, n, a, b, c.raw, alg, descr, size2, null, size3, null, size4, null) };
        check(ask, "reuse_nnz")?;
        let buffer2 = self.product.buffer(1, bytes2, &mut clock)?;
        let buffer3 = self.product.buffer(2, bytes3, &mut clock)?;
        let buffer4 = self.product.buffer(3, bytes4, &mut clock)?;
        let (size2, size3, size4) = (&mut bytes2, &mut bytes3, &mut bytes4);
        // SAFETY: as above, with buffers of those sizes, kept with the descriptor.
        let status = unsafe {
            count(handle, n, n, a, b, c.raw, alg, descr, size2, buffer2, size3, buffer3, size4, buffer4)
        };
        check(status, "reuse_nnz")?;
        let nnz = self.product.count(&c)?;
        self.product.give_room(&c, nnz, &mut clock)?;

        let mut bytes5 = 0;
        // SAFETY: as for the work's estimate; C has its arrays now.
        let ask = unsafe { copy(handle, n, n, a, b, c.raw, alg, descr, &mut bytes5, null) };
        check(ask, "reuse_copy")?;
        let buffer5 = self.product.buffer(4, bytes5, &mut clock)?;
        // SAFETY: as above, with a buffer of that size, kept with the descriptor.
        let status = unsafe { copy(handle, n, n, a, b, c.raw, alg, descr, &mut bytes5, buffer5) };
        check(status, "reuse_copy")?;
        self.last = Some((c, run));
        self.compute()?;
        session.synchronize()?;
        clock.pause();
        Ok(clock.spent())
    }

    /// Enqueues the numeric phase.
    fn compute(&mut self) -> Result<()> {
        let Product { vendor, alg, one, zero, .. } = &self.product;
        let compute = vendor.functions.cusparseSpGEMMreuse_compute;
        let compute = need(compute, "cusparseSpGEMMreuse_compute")?;
        let Some((c, run)) = &self.last else {
            return Err("there is no pattern yet".into());
        };
        let (n, sums, (a, b)) =
            (api::NON_TRANSPOSE, <T::Sum as Element>::TYPE.code(), self.product.factors());
        let (one, zero) = (void(one), void(zero));
        let (handle, alg, descr) = (vendor.handle, *alg, run.raw());
        // SAFETY: the phases before have succeeded with these descriptors, whose arrays and buffers are kept;
        // the scalars have the type of the sums.
        let status = unsafe { compute(handle, n, n, one, a, b, zero, c.raw, sums, alg, descr) };
        check(status, "reuse_compute")
    }
}

impl<T: Number> SparseProduct<T> for ReuseProduct<'_, T> {
    fn run(&mut self) -> Result<f64> {
        let out = self.phases();
        if out.is_err() {
            // The next product needs the memory.
            self.last = None;
            self.product.buffers = [const { None }; 5];
        }
        out
    }

    fn again(&mut self) -> Result<Option<f64>> {
        let session = self.product.vendor.session;
        session.synchronize()?;
        let mut clock = Clock::start();
        self.compute()?;
        session.synchronize()?;
        clock.pause();
        Ok(Some(clock.spent()))
    }

    fn result(&mut self) -> Result<(Vec<i32>, Vec<i32>, Vec<T>)> {
        self.last.as_ref().ok_or("nothing was computed")?;
        self.product.result()
    }

    /// Counts buffers until the documentation allows to free them: the first two until the entries are
    /// counted, the third until C has its pattern.
    fn peak_bytes(&self) -> f64 {
        let (offsets, entries) = self.product.c_bytes();
        let (counting, copying) = (self.product.held(0..4), self.product.held(2..5) + entries);
        (offsets + counting.max(copying)) as f64
    }

    fn note(&self) -> String {
        let peak = SparseProduct::<T>::peak_bytes(self) as usize;
        format!("peak_MB={};reuse_MB={}", peak / 1_000_000, self.product.held(3..5) / 1_000_000)
    }
}

//! SpGEMMreuse: a product whose numeric phase can be run again with new values. Buffers are allocated,
//! outside the timed part, when a phase first reports their sizes, and are kept for the next run.

use std::ffi::c_void;

use client::Scratch;
use tarsia::facade::{Accumulator, Element};

use super::api::{self, check, need, Raw};
use super::sparse::{void, Clock, Run};
use super::{Cusparse, Descr, What};
use crate::bench::number::{blank, room, Number};
use crate::bench::runs::MatrixOperand;
use crate::bench::vendor::SparseProduct;
use crate::Result;

/// A product C = A·B, with all that the numeric phase needs.
pub struct ReuseProduct<'a, T: Number> {
    /// Descriptors of C and of the product, from the last run.
    last: Option<(Descr<'a>, Run)>,
    vendor: &'a Cusparse<'a>,
    alg: i32,
    a: Descr<'a>,
    b: Option<Descr<'a>>,
    one: T::Sum,
    zero: T::Sum,
    shape: (usize, usize),
    /// Buffers by the documentation's numbers, less one: buffer 1 is for work estimation, 2, 3 and 4 for the
    /// count of entries, 5 for the pattern. The last two are also used by the numeric phase.
    buffers: [Option<Scratch<'a>>; 5],
    offsets: Scratch<'a>,
    indices: Option<Scratch<'a>>,
    values: Option<Scratch<'a>>,
    nnz: usize,
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
        let shape = (a.host.rows, b.map_or(a.host.cols, |b| b.host.cols));
        Ok(ReuseProduct {
            last: None,
            vendor,
            alg,
            a: vendor.csr(a)?,
            b: b.map(|b| vendor.csr(b)).transpose()?,
            one: <T::Sum as Accumulator>::ONE,
            zero: <T::Sum as Accumulator>::ZERO,
            shape,
            buffers: [const { None }; 5],
            offsets: vendor.session.scratch((shape.0 + 1) * size_of::<i32>())?,
            indices: None,
            values: None,
            nnz: 0,
        })
    }

    fn factors(&self) -> (*const c_void, *const c_void) {
        (self.a.raw, self.b.as_ref().map_or(self.a.raw, |b| b.raw))
    }

    /// Returns a buffer, which is allocated with the clock paused if it is missing or too small.
    fn buffer(&mut self, which: usize, bytes: usize, clock: &mut Clock) -> Result<Raw> {
        let has = |scratch: &&Scratch<'_>| scratch.bytes() >= bytes;
        if let Some(scratch) = self.buffers[which].as_ref().filter(has) {
            return Ok(scratch.as_mut_ptr());
        }
        clock.pause();
        self.buffers[which] = None;
        let made = self.vendor.session.scratch(bytes);
        let made = made.map_err(|error| format!("OOM b{}: {error}", which + 1))?;
        let address = made.as_mut_ptr();
        self.buffers[which] = Some(made);
        clock.resume();
        Ok(address)
    }

    /// Returns room for the columns and values of C, which is allocated with the clock paused if it is
    /// missing.
    fn take_c(&mut self, nnz: usize, clock: &mut Clock) -> Result<(Raw, Raw)> {
        if self.indices.is_none() || nnz != self.nnz {
            clock.pause();
            (self.indices, self.values) = (None, None);
            let room = |width: usize| {
                let made = self.vendor.session.scratch(nnz * width);
                made.map_err(|error| format!("OOM C: {error}"))
            };
            self.indices = Some(room(size_of::<i32>())?);
            self.values = Some(room(size_of::<T>())?);
            self.nnz = nnz;
            clock.resume();
        }
        let address = |scratch: &Option<Scratch<'_>>| {
            scratch.as_ref().map_or(std::ptr::null_mut(), Scratch::as_mut_ptr)
        };
        Ok((address(&self.indices), address(&self.values)))
    }

    fn phases(&mut self) -> Result<f64> {
        let vendor = self.vendor;
        let (f, handle, session) = (&vendor.functions, vendor.handle, vendor.session);
        let estimate = need(f.cusparseSpGEMMreuse_workEstimation, "cusparseSpGEMMreuse_workEstimation")?;
        let count = need(f.cusparseSpGEMMreuse_nnz, "cusparseSpGEMMreuse_nnz")?;
        let copy = need(f.cusparseSpGEMMreuse_copy, "cusparseSpGEMMreuse_copy")?;
        let (n, alg, (a, b)) = (api::NON_TRANSPOSE, self.alg, self.factors());
        // The descriptors of the last run refer to the buffers that this run fills.
        self.last = None;
        session.synchronize()?;

        let mut clock = Clock::start();
        let (rows, cols) = (self.shape.0 as i64, self.shape.1 as i64);
        let (offsets, null) = (self.offsets.as_mut_ptr(), std::ptr::null_mut());
        let make = f.cusparseCreateCsr;
        // SAFETY: there is room for the offsets; C has no entries yet.
        let c = vendor.matrix("createCsr", |raw| unsafe {
            let (index, base, value) = (api::INDEX_32, api::BASE_ZERO, T::TYPE.code());
            make(raw, rows, cols, 0, offsets, null, null, index, index, base, value)
        })?;
        let run = Run::new(vendor)?;
        let descr = run.raw();

        let mut bytes = 0;
        // SAFETY: the descriptors live and describe arrays that do; without a buffer the size is the answer.
        let ask = unsafe { estimate(handle, n, n, a, b, c.raw, alg, descr, &mut bytes, null) };
        check(ask, "reuse_workEst")?;
        let buffer = self.buffer(0, bytes, &mut clock)?;
        // SAFETY: as above, with a buffer of that size, kept with the descriptor.
        let status = unsafe { estimate(handle, n, n, a, b, c.raw, alg, descr, &mut bytes, buffer) };
        check(status, "reuse_workEst")?;

        let [mut bytes2, mut bytes3, mut bytes4] = [0; 3];
        let (size2, size3, size4) = (&mut bytes2, &mut bytes3, &mut bytes4);
        // SAFETY: as for the work's estimate.
        let ask =
            unsafe { count(handle, n, n, a, b, c.raw, alg, descr, size2, null, size3, null, size4, null) };
        check(ask, "reuse_nnz")?;
        let buffer2 = self.buffer(1, bytes2, &mut clock)?;
        let buffer3 = self.buffer(2, bytes3, &mut clock)?;
        let buffer4 = self.buffer(3, bytes4, &mut clock)?;
        let (size2, size3, size4) = (&mut bytes2, &mut bytes3, &mut bytes4);
        // SAFETY: as above, with buffers of those sizes, kept with the descriptor.
        let status = unsafe {
            count(handle, n, n, a, b, c.raw, alg, descr, size2, buffer2, size3, buffer3, size4, buffer4)
        };
        check(status, "reuse_nnz")?;
        let (mut c_rows, mut c_cols, mut nnz) = (0, 0, 0);
        // SAFETY: the answers are valid for writes.
        let status = unsafe { (f.cusparseSpMatGetSize)(c.raw, &mut c_rows, &mut c_cols, &mut nnz) };
        check(status, "getSize")?;
        let (indices, values) = self.take_c(usize::try_from(nnz)?, &mut clock)?;
        // SAFETY: there is room for so many entries.
        check(unsafe { (f.cusparseCsrSetPointers)(c.raw, offsets, indices, values) }, "setPointers")?;

        let mut bytes5 = 0;
        // SAFETY: as for the work's estimate; C has its arrays now.
        let ask = unsafe { copy(handle, n, n, a, b, c.raw, alg, descr, &mut bytes5, null) };
        check(ask, "reuse_copy")?;
        let buffer5 = self.buffer(4, bytes5, &mut clock)?;
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
        let compute = self.vendor.functions.cusparseSpGEMMreuse_compute;
        let compute = need(compute, "cusparseSpGEMMreuse_compute")?;
        let Some((c, run)) = &self.last else {
            return Err("there is no pattern yet".into());
        };
        let (n, sums, (a, b)) = (api::NON_TRANSPOSE, <T::Sum as Element>::TYPE.code(), self.factors());
        let (one, zero) = (self.one, self.zero);
        let (one, zero) = (void(&one), void(&zero));
        let (handle, alg, descr) = (self.vendor.handle, self.alg, run.raw());
        // SAFETY: the phases before have succeeded with these descriptors, whose arrays and buffers are kept;
        // the scalars have the type of the sums.
        let status = unsafe { compute(handle, n, n, one, a, b, zero, c.raw, sums, alg, descr) };
        check(status, "reuse_compute")
    }

    fn held(&self, buffers: std::ops::Range<usize>) -> usize {
        self.buffers[buffers].iter().flatten().map(Scratch::bytes).sum()
    }
}

impl<T: Number> SparseProduct<T> for ReuseProduct<'_, T> {
    fn run(&mut self) -> Result<f64> {
        let out = self.phases();
        if out.is_err() {
            // The next product needs the memory.
            self.last = None;
            self.buffers = [const { None }; 5];
        }
        out
    }

    fn again(&mut self) -> Result<Option<f64>> {
        self.vendor.session.synchronize()?;
        let mut clock = Clock::start();
        self.compute()?;
        self.vendor.session.synchronize()?;
        clock.pause();
        Ok(Some(clock.spent()))
    }

    fn result(&mut self) -> Result<(Vec<i32>, Vec<i32>, Vec<T>)> {
        let mut offsets = vec![0; self.shape.0 + 1];
        let mut indices: Vec<i32> = room(self.nnz)?;
        indices.resize(self.nnz, 0);
        let mut values = blank::<T>(self.nnz)?;
        let (Some(_), Some(of_indices), Some(of_values)) = (&self.last, &self.indices, &self.values) else {
            return Err("nothing was computed".into());
        };
        // SAFETY: a run that succeeded has written all three.
        unsafe {
            self.offsets.read(&mut offsets)?;
            of_indices.read(&mut indices)?;
            of_values.read(&mut values)?;
        }
        Ok((offsets, indices, values))
    }

    /// Counts buffers until the documentation allows to free them: the first two until the entries are
    /// counted, the third until C has its pattern.
    fn peak_bytes(&self) -> f64 {
        let c = [self.indices.as_ref(), self.values.as_ref()].into_iter().flatten().map(Scratch::bytes);
        let counting = self.held(0..4);
        let copying = self.held(2..5) + c.sum::<usize>();
        (self.offsets.bytes() + counting.max(copying)) as f64
    }

    fn note(&self) -> String {
        let peak = SparseProduct::<T>::peak_bytes(self) as usize;
        format!("peak_MB={};reuse_MB={}", peak / 1_000_000, self.held(3..5) / 1_000_000)
    }
}

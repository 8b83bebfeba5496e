//! SpGEMM, with all phases each time. Buffers are allocated, outside the timed part, when a phase first
//! reports their sizes, and are kept for the next run.

use std::ffi::c_void;
use std::time::Instant;

use client::Scratch;
use tarsia::facade::Accumulator;

use super::api::{self, check, Raw};
use super::{Cusparse, Descr, What};
use crate::bench::number::{blank, room, Number};
use crate::bench::runs::MatrixOperand;
use crate::bench::vendor::SparseProduct;
use crate::Result;

/// Buffer of `cusparseSpGEMM_workEstimation`: its place in [`CusparseProduct::buffers`].
const WORK: usize = 0;
/// Buffer of `cusparseSpGEMM_compute`.
const COMPUTE: usize = 1;
/// Buffer of `cusparseSpGEMM_estimateMemory`, which is called for algorithms with a chunk fraction.
const ESTIMATE: usize = 2;

/// A product C = A·B, with everything that is kept from one run to the next.
pub struct CusparseProduct<'a, T: Number> {
    vendor: &'a Cusparse<'a>,
    alg: i32,
    chunk: Option<f32>,
    a: Descr<'a>,
    b: Option<Descr<'a>>,
    one: T::Sum,
    zero: T::Sum,
    shape: (usize, usize),
    /// Buffers at [`WORK`], [`COMPUTE`] and [`ESTIMATE`].
    buffers: [Option<Scratch<'a>>; 3],
    offsets: Scratch<'a>,
    indices: Option<Scratch<'a>>,
    values: Option<Scratch<'a>>,
    nnz: usize,
    peak: usize,
    /// True if there is no room for the buffer of memory estimation beside that of the computation.
    is_tight: bool,
    /// Milliseconds of the last run's computation and of the call that asks for C's size after it.
    last_compute_ms: f64,
}

/// Clock that is paused while memory is allocated.
pub struct Clock {
    spent: f64,
    start: Instant,
}

impl Clock {
    /// Makes a clock that runs from now on.
    pub fn start() -> Self {
        Clock { spent: 0.0, start: Instant::now() }
    }

    /// Stops the clock until [`resume`](Self::resume).
    pub fn pause(&mut self) {
        self.spent += self.start.elapsed().as_secs_f64();
    }

    /// Lets the clock run again.
    pub fn resume(&mut self) {
        self.start = Instant::now();
    }

    /// Returns the seconds that the clock ran, up to the last pause.
    pub fn spent(&self) -> f64 {
        self.spent
    }
}

/// The SpGEMM descriptor of one run.
pub struct Run {
    raw: Raw,
    destroy: unsafe extern "C" fn(Raw) -> i32,
}

impl Run {
    /// Makes a new descriptor.
    pub fn new(vendor: &Cusparse<'_>) -> Result<Self> {
        let (f, mut raw) = (&vendor.functions, std::ptr::null_mut());
        // SAFETY: the answer is valid for a write.
        check(unsafe { (f.cusparseSpGEMM_createDescr)(&mut raw) }, "createDescr")?;
        Ok(Run { raw, destroy: f.cusparseSpGEMM_destroyDescr })
    }

    /// Returns the pointer for cuSPARSE's functions.
    pub fn raw(&self) -> Raw {
        self.raw
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        // SAFETY: made by createDescr.
        unsafe { (self.destroy)(self.raw) };
    }
}

/// Returns the address of a scalar for cuSPARSE's functions.
pub fn void<S>(value: &S) -> *const c_void {
    std::ptr::from_ref(value).cast()
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
        let shape = (a.host.rows, b.map_or(a.host.cols, |b| b.host.cols));
        Ok(CusparseProduct {
            vendor,
            alg,
            chunk,
            a: vendor.csr(a)?,
            b: b.map(|b| vendor.csr(b)).transpose()?,
            one: <T::Sum as Accumulator>::ONE,
            zero: <T::Sum as Accumulator>::ZERO,
            shape,
            buffers: [None, None, None],
            offsets: vendor.session.scratch((shape.0 + 1) * size_of::<i32>())?,
            indices: None,
            values: None,
            nnz: 0,
            peak: 0,
            is_tight: false,
            last_compute_ms: 0.0,
        })
    }

    /// Returns a buffer, which is allocated with the clock paused if it is missing or too small.
    fn buffer(&mut self, which: usize, bytes: usize, clock: &mut Clock) -> Result<Raw> {
        let has = |scratch: &&Scratch<'_>| scratch.bytes() >= bytes;
        if let Some(scratch) = self.buffers[which].as_ref().filter(has) {
            return Ok(scratch.as_mut_ptr());
        }
        clock.pause();
        self.buffers[which] = None;
        let mut made = self.vendor.session.scratch(bytes);
        if made.is_err() && which == COMPUTE && self.buffers[ESTIMATE].is_some() {
            // The documentation allows to free the buffer of memory estimation at this point.
            self.buffers[ESTIMATE] = None;
            self.is_tight = true;
            made = self.vendor.session.scratch(bytes);
        }
        let made = made.map_err(|error| format!("OOM b{}: {error}", which + 1))?;
        let address = made.as_mut_ptr();
        self.buffers[which] = Some(made);
        clock.resume();
        Ok(address)
    }

    fn held(&self) -> usize {
        let c = [Some(&self.offsets), self.indices.as_ref(), self.values.as_ref()];
        let buffers = self.buffers.iter().map(Option::as_ref);
        buffers.chain(c).flatten().map(Scratch::bytes).sum()
    }

    fn see_peak(&mut self) {
        self.peak = self.peak.max(self.held());
    }

    /// Runs all phases from a new descriptor on, and returns their seconds, without those of allocating.
    fn phases(&mut self) -> Result<f64> {
        let vendor = self.vendor;
        let (f, handle, session) = (&vendor.functions, vendor.handle, vendor.session);
        let (n, alg) = (api::NON_TRANSPOSE, self.alg);
        let sums = <T::Sum as tarsia::facade::Element>::TYPE.code();
        let (a, b) = (self.a.raw, self.b.as_ref().map_or(self.a.raw, |b| b.raw));
        let (one, zero) = (self.one, self.zero);
        let (one, zero) = (void(&one), void(&zero));
        // Buffers kept from the last run must not take the memory that this one needs.
        if self.is_tight {
            self.buffers[COMPUTE] = None;
        }
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
        let estimate = f.cusparseSpGEMM_workEstimation;
        // SAFETY: the descriptors live and describe arrays that do; the scalars
        // have the type of the sums; without a buffer the size is the answer.
        let ask =
            unsafe { estimate(handle, n, n, one, a, b, zero, c.raw, sums, alg, descr, &mut bytes, null) };
        check(ask, "workEst")?;
        let buffer = self.buffer(WORK, bytes, &mut clock)?;
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
                let out = std::ptr::null_mut();
                estimate(
                    handle,
                    n,
                    n,
                    one,
                    a,
                    b,
                    zero,
                    c.raw,
                    sums,
                    alg,
                    descr,
                    chunk,
                    &mut bytes3,
                    null,
                    out,
                )
            };
            check(ask, "estMem")?;
            let buffer = self.buffer(ESTIMATE, bytes3, &mut clock)?;
            // SAFETY: as above, with a buffer of that size.
            let status = unsafe {
                let (size, out) = (&mut bytes3, &mut bytes2);
                estimate(handle, n, n, one, a, b, zero, c.raw, sums, alg, descr, chunk, size, buffer, out)
            };
            check(status, "estMem")?;
            self.see_peak();
            if self.is_tight {
                clock.pause();
                self.buffers[ESTIMATE] = None;
                clock.resume();
            }
        } else {
            // SAFETY: as for the work's estimate.
            let ask =
                unsafe { compute(handle, n, n, one, a, b, zero, c.raw, sums, alg, descr, &mut bytes2, null) };
            check(ask, "compute")?;
        }
        let buffer = self.buffer(COMPUTE, bytes2, &mut clock)?;
        let compute_start = Instant::now();
        // SAFETY: as above, with a buffer of that size, kept until C is copied.
        let status =
            unsafe { compute(handle, n, n, one, a, b, zero, c.raw, sums, alg, descr, &mut bytes2, buffer) };
        check(status, "compute")?;
        let (mut c_rows, mut c_cols, mut nnz) = (0, 0, 0);
        // SAFETY: the answers are valid for writes.
        let status = unsafe { (f.cusparseSpMatGetSize)(c.raw, &mut c_rows, &mut c_cols, &mut nnz) };
        check(status, "getSize")?;
        self.last_compute_ms = 1e3 * compute_start.elapsed().as_secs_f64();
        let nnz = usize::try_from(nnz)?;
        if self.indices.is_none() || nnz != self.nnz {
            clock.pause();
            (self.indices, self.values) = (None, None);
            let room = |width: usize| {
                let made = session.scratch(nnz * width);
                made.map_err(|error| format!("OOM C: {error}"))
            };
            self.indices = Some(room(size_of::<i32>())?);
            self.values = Some(room(size_of::<T>())?);
            self.nnz = nnz;
            clock.resume();
        }
        let pointer = |scratch: &Option<Scratch<'_>>| scratch.as_ref().map_or(null, Scratch::as_mut_ptr);
        let (indices, values) = (pointer(&self.indices), pointer(&self.values));
        // SAFETY: there is room for so many entries.
        check(unsafe { (f.cusparseCsrSetPointers)(c.raw, offsets, indices, values) }, "setPointers")?;
        // SAFETY: as above; C has its arrays now.
        let status =
            unsafe { (f.cusparseSpGEMM_copy)(handle, n, n, one, a, b, zero, c.raw, sums, alg, descr) };
        check(status, "copy")?;
        session.synchronize()?;
        clock.pause();
        self.see_peak();
        drop(run);
        Ok(clock.spent)
    }
}

impl<T: Number> SparseProduct<T> for CusparseProduct<'_, T> {
    fn run(&mut self) -> Result<f64> {
        let out = self.phases();
        if out.is_err() {
            // The next product needs the memory.
            self.buffers = [None, None, None];
        }
        out
    }

    fn result(&mut self) -> Result<(Vec<i32>, Vec<i32>, Vec<T>)> {
        let mut offsets = vec![0; self.shape.0 + 1];
        let mut indices: Vec<i32> = room(self.nnz)?;
        indices.resize(self.nnz, 0);
        let mut values = blank::<T>(self.nnz)?;
        let (Some(of_indices), Some(of_values)) = (&self.indices, &self.values) else {
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

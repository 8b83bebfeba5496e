//! What both ways of computing C = A·B keep from one run to the next: the factors, C and the buffers. Memory
//! is allocated outside the timed part, when a phase first reports a size, and is kept.

use std::ffi::c_void;
use std::ops::Range;
use std::time::Instant;

use client::Scratch;
use tarsia::facade::Accumulator;

use super::api::{self, check, Raw};
use super::{Cusparse, Descr};
use crate::bench::number::{blank, room, Number};
use crate::bench::runs::MatrixOperand;
use crate::Result;

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

/// A product C = A·B by one algorithm, with so many buffers.
pub struct Product<'a, T: Number, const BUFFERS: usize> {
    pub vendor: &'a Cusparse<'a>,
    pub alg: i32,
    pub one: T::Sum,
    pub zero: T::Sum,
    pub buffers: [Option<Scratch<'a>>; BUFFERS],
    a: Descr<'a>,
    b: Option<Descr<'a>>,
    shape: (usize, usize),
    offsets: Scratch<'a>,
    /// Columns and values of C, once its size is known.
    entries: Option<[Scratch<'a>; 2]>,
    nnz: usize,
}

impl<'a, T: Number, const BUFFERS: usize> Product<'a, T, BUFFERS> {
    /// Allocates C's offsets; nothing is computed yet.
    pub fn new(
        vendor: &'a Cusparse<'a>,
        alg: i32,
        a: &'a MatrixOperand<'_, T>,
        b: Option<&'a MatrixOperand<'_, T>>,
    ) -> Result<Self> {
        let shape = (a.host.rows, b.map_or(a.host.cols, |b| b.host.cols));
        Ok(Product {
            vendor,
            alg,
            one: <T::Sum as Accumulator>::ONE,
            zero: <T::Sum as Accumulator>::ZERO,
            buffers: [const { None }; BUFFERS],
            a: vendor.csr(a)?,
            b: b.map(|b| vendor.csr(b)).transpose()?,
            shape,
            offsets: vendor.session.scratch((shape.0 + 1) * size_of::<i32>())?,
            entries: None,
            nnz: 0,
        })
    }

    /// Returns the descriptors of A and B.
    pub fn factors(&self) -> (*const c_void, *const c_void) {
        (self.a.raw, self.b.as_ref().map_or(self.a.raw, |b| b.raw))
    }

    /// Makes a descriptor of C, which has no entries yet.
    pub fn empty_c(&self) -> Result<Descr<'a>> {
        let (rows, cols) = (self.shape.0 as i64, self.shape.1 as i64);
        let (offsets, null) = (self.offsets.as_mut_ptr(), std::ptr::null_mut());
        let make = self.vendor.functions.cusparseCreateCsr;
        // SAFETY: there is room for the offsets.
        self.vendor.matrix("createCsr", |raw| unsafe {
            let (index, base, value) = (api::INDEX_32, api::BASE_ZERO, T::TYPE.code());
            make(raw, rows, cols, 0, offsets, null, null, index, index, base, value)
        })
    }

    /// Returns a buffer, which is allocated with the clock paused if it is missing or too small.
    pub fn buffer(&mut self, which: usize, bytes: usize, clock: &mut Clock) -> Result<Raw> {
        let has = |scratch: &&Scratch<'_>| scratch.bytes() >= bytes;
        if let Some(scratch) = self.buffers[which].as_ref().filter(has) {
            return Ok(scratch.as_mut_ptr());
        }
        clock.pause();
        self.buffers[which] = None;
        let made = self.vendor.session.scratch(bytes);
        clock.resume();
        let made = made.map_err(|error| format!("OOM b{}: {error}", which + 1))?;
        Ok(self.buffers[which].insert(made).as_mut_ptr())
    }

    /// Returns the entries of C, once they are counted.
    pub fn count(&self, c: &Descr<'_>) -> Result<usize> {
        let (mut rows, mut cols, mut nnz) = (0, 0, 0);
        let size = self.vendor.functions.cusparseSpMatGetSize;
        // SAFETY: the answers are valid for writes.
        check(unsafe { size(c.raw, &mut rows, &mut cols, &mut nnz) }, "getSize")?;
        Ok(usize::try_from(nnz)?)
    }

    /// Gives C room for so many entries, which is allocated with the clock paused if it is missing.
    pub fn give_room(&mut self, c: &Descr<'_>, nnz: usize, clock: &mut Clock) -> Result<()> {
        if nnz != self.nnz {
            self.entries = None;
        }
        let [indices, values] = match &self.entries {
            Some(entries) => entries,
            None => {
                clock.pause();
                let room = |width: usize| {
                    let made = self.vendor.session.scratch(nnz * width);
                    made.map_err(|error| format!("OOM C: {error}"))
                };
                let made = [room(size_of::<i32>())?, room(size_of::<T>())?];
                self.nnz = nnz;
                clock.resume();
                self.entries.insert(made)
            }
        };
        let set = self.vendor.functions.cusparseCsrSetPointers;
        let (offsets, indices, values) =
            (self.offsets.as_mut_ptr(), indices.as_mut_ptr(), values.as_mut_ptr());
        // SAFETY: there is room for so many entries.
        check(unsafe { set(c.raw, offsets, indices, values) }, "setPointers")
    }

    /// Returns the bytes of some buffers.
    pub fn held(&self, buffers: Range<usize>) -> usize {
        self.buffers[buffers].iter().flatten().map(Scratch::bytes).sum()
    }

    /// Returns the bytes of C's offsets, and of its columns and values.
    pub fn c_bytes(&self) -> (usize, usize) {
        (self.offsets.bytes(), self.entries.iter().flatten().map(Scratch::bytes).sum())
    }

    /// Returns C of the last run, which has succeeded.
    pub fn result(&self) -> Result<(Vec<i32>, Vec<i32>, Vec<T>)> {
        let mut offsets = vec![0; self.shape.0 + 1];
        let mut indices: Vec<i32> = room(self.nnz)?;
        indices.resize(self.nnz, 0);
        let mut values = blank::<T>(self.nnz)?;
        let [of_indices, of_values] = self.entries.as_ref().ok_or("nothing was computed")?;
        // SAFETY: a run that succeeded has written all three.
        unsafe {
            self.offsets.read(&mut offsets)?;
            of_indices.read(&mut indices)?;
            of_values.read(&mut values)?;
        }
        Ok((offsets, indices, values))
    }
}

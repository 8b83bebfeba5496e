//! Calls without a plan.

use std::time::{Duration, Instant};

use super::{arg, check, Memory, MemoryMut, Scalar, Session, Sparse, VectorDescr};
use tarsia::capi::{memory, spmv};
use tarsia::facade::{BackendKind, ComputeType, Element, Error, Operation, Result};

impl Session {
    /// `tarsiaSpMV_once`: y = alpha · op(A) · x + beta · y.
    pub fn spmv_once<'x, S: Scalar, X: Element, Y: Element>(
        &self,
        op: Operation,
        alpha: S,
        a: &Sparse<'_>,
        x: impl Memory<'x, Item = X>,
        beta: S,
        y: impl MemoryMut<'x, Item = Y>,
        compute: ComputeType,
    ) -> Result<()> {
        // Read as what they are said to be, and from where.
        if S::TYPE != compute.scalar() {
            return Err(Error::invalid("alpha, beta", format!("{} given", S::TYPE.short())));
        }
        if self.kind == BackendKind::Cuda && self.pointer_mode()? != S::MODE {
            return Err(Error::invalid("alpha, beta", "not where the handle's pointer mode says"));
        }
        a.place.require_readable("A", self)?;
        let (x, y) = (x.view(), y.view_mut());
        x.place.require("x", self)?;
        y.place.require("y", self)?;
        let (x, y) = (VectorDescr::new(x)?, VectorDescr::new_mut(y)?);
        let (alpha, beta) = (alpha.address(), beta.address());
        // SAFETY: the scalars have the compute type; the descriptors say the
        // lengths and types of the arrays, which are borrowed during the call.
        check(unsafe {
            spmv::tarsiaSpMV_once(
                self.raw,
                arg(op),
                alpha,
                a.raw,
                x.raw,
                beta,
                y.raw.cast_mut(),
                arg(compute),
            )
        })
    }

    /// How long `tarsiaMalloc` of so many bytes takes.
    pub fn time_allocation(&self, bytes: usize) -> Result<Duration> {
        let (start, mut pointer) = (Instant::now(), std::ptr::null_mut());
        // SAFETY: the answer is valid for a write.
        check(unsafe { memory::tarsiaMalloc(self.raw, &mut pointer, bytes) })?;
        let elapsed = start.elapsed();
        // SAFETY: it was just allocated, and nobody else knows it.
        check(unsafe { memory::tarsiaFree(self.raw, pointer) })?;
        Ok(elapsed)
    }
}

//! Products without a plan.

use std::time::{Duration, Instant};

use super::{arg, check, DenseLayout, MatrixDescr, Memory, MemoryMut, Scalar, Session, Sparse, VectorDescr};
use tarsia::capi::{memory, spmm, spmv};
use tarsia::facade::{BackendKind, ComputeType, Element, Error, Operation, Result};

impl Session {
    /// Calls `tarsiaSpMV_once`: y = alpha · op(A) · x + beta · y.
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
        self.check_scalars::<S>(compute)?;
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

    /// Calls `tarsiaSpMM_once`: C = alpha · op(A) · op(B) + beta · C.
    pub fn spmm_once<'x, S: Scalar, B: Element, C: Element>(
        &self,
        (op_a, op_b): (Operation, Operation),
        alpha: S,
        a: &Sparse<'_>,
        (b, b_shape): (impl Memory<'x, Item = B>, DenseLayout),
        beta: S,
        (c, c_shape): (impl MemoryMut<'x, Item = C>, DenseLayout),
        compute: ComputeType,
    ) -> Result<()> {
        self.check_scalars::<S>(compute)?;
        a.place.require_readable("A", self)?;
        let (b, c) = (b.view(), c.view_mut());
        b.place.require("B", self)?;
        c.place.require("C", self)?;
        let (b, c) = (MatrixDescr::new(b, b_shape)?, MatrixDescr::new_mut(c, c_shape)?);
        let (alpha, beta) = (alpha.address(), beta.address());
        let (ops, compute) = ((arg(op_a), arg(op_b)), arg(compute));
        // SAFETY: as in `spmv_once`.
        check(unsafe {
            spmm::tarsiaSpMM_once(
                self.raw,
                ops.0,
                ops.1,
                alpha,
                a.raw,
                b.raw,
                beta,
                c.raw.cast_mut(),
                compute,
            )
        })
    }

    /// Checks that the scalars have the compute type, and, with CUDA, are where the pointer mode says.
    fn check_scalars<S: Scalar>(&self, compute: ComputeType) -> Result<()> {
        if S::TYPE != compute.scalar() {
            return Err(Error::invalid("alpha, beta", format!("{} given", S::TYPE.short())));
        }
        if self.kind == BackendKind::Cuda && self.pointer_mode()? != S::MODE {
            return Err(Error::invalid("alpha, beta", "not where the handle's pointer mode says"));
        }
        Ok(())
    }

    /// Measures how long `tarsiaMalloc` of `bytes` bytes takes.
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

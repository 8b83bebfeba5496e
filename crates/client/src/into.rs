//! Products with a separate result: z = alpha · op(A) · x + beta · y, D = alpha · op(A) · op(B) + beta · C.

use super::{
    check, spmm, spmv, DenseLayout, MatrixDescr, Memory, MemoryMut, Plan, Scalar, Session, VectorDescr,
};
use tarsia::facade::{Element, Result};

impl Plan<'_> {
    /// Calls `tarsiaSpMV_into`: z = alpha · op(A) · x + beta · y.
    pub fn run_spmv_into<'x, S: Scalar, X: Element, Y: Element>(
        &self,
        session: &Session,
        (alpha, beta): (S, S),
        x: impl Memory<'x, Item = X>,
        y: impl Memory<'x, Item = Y>,
        z: impl MemoryMut<'x, Item = Y>,
    ) -> Result<()> {
        self.check_scalars::<S>(session)?;
        let (x, y, z) = (x.view(), y.view(), z.view_mut());
        x.place.require("x", session)?;
        y.place.require("y", session)?;
        z.place.require("z", session)?;
        let (x, y, z) = (VectorDescr::new(x)?, VectorDescr::new(y)?, VectorDescr::new_mut(z)?);
        let (alpha, beta) = (alpha.address(), beta.address());
        // SAFETY: as in `run_spmv`.
        check(unsafe {
            spmv::tarsiaSpMV_into(session.raw, self.raw, alpha, x.raw, beta, y.raw, z.raw.cast_mut())
        })
    }

    /// Calls `tarsiaSpMM_into`: D = alpha · op(A) · op(B) + beta · C.
    pub fn run_spmm_into<'x, S: Scalar, B: Element, C: Element>(
        &self,
        session: &Session,
        (alpha, beta): (S, S),
        (b, b_shape): (impl Memory<'x, Item = B>, DenseLayout),
        (c, c_shape): (impl Memory<'x, Item = C>, DenseLayout),
        (d, d_shape): (impl MemoryMut<'x, Item = C>, DenseLayout),
    ) -> Result<()> {
        self.check_scalars::<S>(session)?;
        let (b, c, d) = (b.view(), c.view(), d.view_mut());
        b.place.require("B", session)?;
        c.place.require("C", session)?;
        d.place.require("D", session)?;
        let b = MatrixDescr::new(b, b_shape)?;
        let (c, d) = (MatrixDescr::new(c, c_shape)?, MatrixDescr::new_mut(d, d_shape)?);
        let (alpha, beta) = (alpha.address(), beta.address());
        // SAFETY: as in `run_spmv`.
        check(unsafe {
            spmm::tarsiaSpMM_into(session.raw, self.raw, alpha, b.raw, beta, c.raw, d.raw.cast_mut())
        })
    }
}

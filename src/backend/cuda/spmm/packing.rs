//! Copy of B in the workspace, in rows of whole packs of 16 bytes, for kernels that need or prefer such rows:
//! where B's columns are contiguous, and where its rows are unaligned and are read often.

use super::{copy_b, saturating_product, Strides};
use crate::backend::cuda::device::Device;
use crate::backend::cuda::launch::Kernel;
use crate::error::{Error, Result};
use crate::matrix::DenseMatrix;
use crate::memory::Context;
use crate::problem::SpmmProblem;
use crate::select::spmm::copies::{self, PACK};
use crate::types::{Address, Order};

/// Rules and kernel for the copy of B of one plan.
pub(super) struct Packing {
    kernel: Kernel,
    /// Bytes of an element.
    size: usize,
    order: Order,
    transposed: bool,
    /// Number of rows of op(B).
    inner: i64,
    reads: Reads,
}

/// Estimate of how often rows of B are read.
enum Reads {
    /// True if rows are read often and are likely to be unaligned. It depends on nHint alone: fewer columns
    /// must not need more workspace.
    Hinted(bool),
    /// Number of entries of a matrix in windows with 16-bit values, from which the reads of rows follow.
    OfWindows(i64),
}

/// Rows of B for a kernel.
pub(super) struct Packed {
    pub(super) address: Address,
    /// Leading dimension, in elements.
    pub(super) ld: i64,
    /// True if each row has memory up to a multiple of 16 bytes.
    pub(super) padded: bool,
}

impl Packing {
    /// Makes the rules for the problem's B, which has real values, and a kernel that reads `reads` rows of it
    /// for each column of C.
    pub(super) fn new(device: &Device, problem: &SpmmProblem, reads: i64) -> Result<Self> {
        let (size, inner) = (problem.types.x.size(), problem.a.shape_of(problem.op).1);
        let aligns = copies::aligns(problem.n_hint as usize, size, (reads, inner));
        Self::with(device, problem, Reads::Hinted(aligns))
    }

    /// Makes the rules for windows of a matrix with so many entries and 16-bit values.
    pub(super) fn of_windows(device: &Device, problem: &SpmmProblem, entries: i64) -> Result<Self> {
        Self::with(device, problem, Reads::OfWindows(entries))
    }

    fn with(device: &Device, problem: &SpmmProblem, reads: Reads) -> Result<Self> {
        Ok(Packing {
            kernel: super::kernels::pack_kernel(device, problem.types.x)?,
            size: problem.types.x.size(),
            order: problem.b_order,
            transposed: problem.op_b.transposes(),
            inner: problem.a.shape_of(problem.op).1,
            reads,
        })
    }

    /// Returns whether the columns of op(B), not its rows, are contiguous.
    pub(super) fn gathers(&self) -> bool {
        Strides::new(self.order, self.transposed, 0).col != 1
    }

    /// Returns whether the workspace has room for a copy.
    fn may_copy(&self, n: usize) -> bool {
        match self.reads {
            Reads::Hinted(aligns) => copies::may_copy(n, self.size, self.gathers(), aligns),
            Reads::OfWindows(entries) => copies::window_may_copy(n, self.gathers(), (entries, self.inner)),
        }
    }

    fn ld(&self, n: usize) -> usize {
        let each = PACK / self.size;
        n.div_ceil(each).saturating_mul(each)
    }

    /// Bytes of the copy; saturates.
    pub(super) fn bytes(&self, n: usize) -> usize {
        match self.may_copy(n) {
            true => saturating_product(&[self.inner as usize, self.ld(n), self.size]),
            false => 0,
        }
    }

    /// Returns the rows of op(B), copied to `to` if the rules require a copy.
    pub(super) fn rows(
        &self,
        cx: &Context,
        b: &DenseMatrix,
        n: usize,
        to: Address,
        algorithm: &str,
    ) -> Result<Packed> {
        let from = Strides::new(b.order, self.transposed, b.ld);
        let mut out = Packed { address: b.values, ld: from.row, padded: false };
        let has_packs = is_wide(b.values, from.row, self.size);
        if self.inner > 0 && copies::copies(self.gathers(), self.may_copy(n), has_packs) {
            out = Packed { address: to, ld: self.ld(n) as i64, padded: true };
            copy_b(
                cx,
                &self.kernel,
                (b.values, from, self.size),
                (self.inner, n),
                (to, out.ld),
                0,
                Address::NULL,
            )?;
        }
        if out.ld.saturating_mul(self.size as i64) > i64::from(i32::MAX) {
            return Err(Error::unsupported(format!(
                "B: algorithm {algorithm} takes rows that are less than 2^31 bytes apart"
            )));
        }
        Ok(out)
    }
}

/// Returns whether rows with this leading dimension and size of elements all begin at multiples of a pack.
pub(super) fn is_wide(address: Address, ld: i64, size: usize) -> bool {
    address.is_aligned(PACK) && (ld as usize).wrapping_mul(size) % PACK == 0
}

//! 16-bit columns that a plan keeps for rows in place (kernels/spmv/narrow.cuh). They are made once from the
//! pattern, while every execution reads row offsets and values in place.

use super::{NARROW_CHUNKS, NARROW_ROWS};
use crate::backend::cuda::device::DeviceCall;
use crate::backend::cuda::launch::launch;
use crate::backend::cuda::memory::{self, filled_members, DeviceBuffer, Fill, Readback};
use crate::backend::cuda::operand::Rows;
use crate::error::Result;
use crate::memory::Context;
use crate::select::grids;
use crate::select::spmv::csr::{Form, Origins, THREADS};
use crate::types::Address;

/// 16-bit columns of all entries, counted from origins.
pub(super) struct NarrowColumns {
    columns: DeviceBuffer<u16>,
    /// Empty if columns are counted from 0.
    origins: DeviceBuffer<u32>,
    kind: Origins,
}
filled_members!(NarrowColumns { columns, origins });

impl NarrowColumns {
    /// Makes them from rows that are valid, with at most 2^31 − 1 columns. Returns `None` if a column is too
    /// far from its origin, or if memory is missing: then the user's columns are read. Blocks.
    pub(super) fn build(cx: &DeviceCall<'_>, rows: &Rows, form: Form) -> Result<Option<Self>> {
        if rows.nnz == 0 {
            return Ok(None);
        }
        let Some(mut made) = memory::optional(Self::allocate(cx, rows, form))? else { return Ok(None) };
        let mut words = Readback::take(cx)?;
        made.fill(cx, rows, form, words.at(0))?;
        words.fetch(cx, 1)?;
        let is_far = words.wait(cx)?[0] != 0;
        made.mark_filled();
        Ok((!is_far).then_some(made))
    }

    fn allocate(cx: &Context, rows: &Rows, form: Form) -> Result<Self> {
        let kind = Origins::of(form, rows.cols);
        Ok(NarrowColumns {
            columns: DeviceBuffer::new(cx, rows.nnz as usize)?,
            origins: DeviceBuffer::new(cx, kind.count(rows.rows, rows.nnz) as usize)?,
            kind,
        })
    }

    /// Enqueues the kernel that fills the arrays; it sets `far` if a column is too far from its origin.
    fn fill(&self, cx: &DeviceCall<'_>, rows: &Rows, form: Form, far: Address) -> Result<()> {
        let (columns, origins) = self.addresses();
        if self.kind == Origins::Rows {
            let (lanes_log2, blocks) = form.lanes_of_pass(rows.rows);
            let kernel = NARROW_ROWS.load(cx.device, (rows.widths(),))?;
            // SAFETY: there are rows + 1 offsets and nnz columns of these types, room for nnz 16-bit columns
            // and for one origin per row, and a word.
            return unsafe {
                launch!(kernel, blocks, THREADS, 0, cx.stream;
                    rows.rows, rows.offsets, rows.indices, rows.base as i32, lanes_log2, columns, origins, far)
            };
        }
        let kernel = NARROW_CHUNKS.load(cx.device, (rows.index_type,))?;
        let grid = grids::blocks(rows.nnz as u64, THREADS.into(), cx.device.properties().multiprocessors);
        // SAFETY: there are nnz columns of this type, room for nnz 16-bit columns, room for one origin per
        // chunk or NULL, and a word.
        unsafe {
            launch!(kernel, grid, THREADS, 0, cx.stream;
                rows.nnz, rows.indices, rows.base as i32, columns, origins, far)
        }
    }

    /// Addresses of the columns, and of the origins or NULL.
    pub(super) fn addresses(&self) -> (Address, Address) {
        (self.columns.address(), self.origins.address())
    }

    /// Copies both arrays to the host.
    #[cfg(test)]
    pub(super) fn arrays(&self) -> (Vec<u16>, Vec<u32>) {
        let (columns, origins) = (&self.columns, &self.origins);
        (columns.read(0, columns.len()).unwrap(), origins.read(0, origins.len()).unwrap())
    }

    /// Kind of origins that the columns are counted from.
    pub(super) fn origins(&self) -> Origins {
        self.kind
    }
}

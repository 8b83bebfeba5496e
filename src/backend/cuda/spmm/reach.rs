//! Distances of a matrix's entries from its diagonal, on which [`Reach`] is based.

use crate::backend::cuda::device::DeviceCall;
use crate::backend::cuda::launch::{launch_overlapping, Overlap};
use crate::backend::cuda::module::kinds::kernel_kinds;
use crate::backend::cuda::operand::Rows;
use crate::error::Result;
use crate::select::spmm::reach::{sample_step, Reach, BINS};
use crate::types::{Address, IndexType};

kernel_kinds! { "spmm/tasks" { REACH(IndexType) = "reach" for [index_types()]; } }

/// Number of words of a readback page that the counts take.
pub(super) const WORDS: usize = BINS;

/// Enqueues counting the distances in a sample of the rows, which adds to these words of a page. The pattern
/// may be invalid.
pub(super) fn enqueue(cx: &DeviceCall<'_>, rows: &Rows, words: Address, overlap: &Overlap) -> Result<()> {
    if rows.nnz == 0 {
        return Ok(());
    }
    let kernel = REACH.load(cx.device, (rows.index_type,))?;
    let step = sample_step(rows.rows, rows.nnz / rows.rows.max(1));
    let sampled = (rows.rows + step - 1) / step;
    let wide = rows.offset_type.wide();
    // SAFETY: the kernel reads rows below `rows.rows`, of their entries those that exist, and has a word for
    // each distance.
    unsafe {
        launch_overlapping!(overlap, kernel, (sampled as u32).div_ceil(8), 256, 0, cx.stream;
            rows.offsets, wide, rows.indices, rows.base, rows.rows, rows.cols, rows.nnz, step, words)
    }
}

/// Reach of rows with these counts.
pub(super) fn of(cx: &DeviceCall<'_>, rows: &Rows, longest: i64, counts: &[u64]) -> Reach {
    let bins = if rows.nnz == 0 { Vec::new() } else { counts.to_vec() };
    Reach::new((rows.rows, rows.cols, rows.nnz), longest, bins, cx.device.properties().l2_bytes)
}

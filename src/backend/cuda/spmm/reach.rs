//! Distances of a matrix's entries from its diagonal, on which [`Reach`] is based.

use crate::backend::cuda::device::DeviceCall;
use crate::backend::cuda::launch::launch;
use crate::backend::cuda::memory::DeviceBuffer;
use crate::backend::cuda::module::kinds::kernel_kinds;
use crate::backend::cuda::operand::{RowStats, Rows};
use crate::error::Result;
use crate::select::spmm::reach::{sample_step, Reach, BINS};
use crate::types::IndexType;

kernel_kinds! { "spmm/tasks" { REACH(IndexType) = "reach" for [index_types()]; } }

/// Counts the distances in a sample of the rows. Blocks.
pub(super) fn measure(cx: &DeviceCall<'_>, rows: &Rows, stats: &RowStats) -> Result<Reach> {
    let mean = rows.nnz / rows.rows.max(1);
    let sizes = (rows.rows, rows.cols, rows.nnz);
    let reach = |bins| Reach::new(sizes, stats.max, bins, cx.device.properties().l2_bytes);
    if rows.nnz == 0 {
        return Ok(reach(Vec::new()));
    }
    let kernel = REACH.load(cx.device, (rows.index_type,))?;
    let counts = DeviceBuffer::<u64>::zeroed(cx, BINS)?;
    let step = sample_step(rows.rows, mean);
    let sampled = (rows.rows + step - 1) / step;
    let wide = rows.offset_type.wide();
    // SAFETY: the pattern was checked; the kernel reads rows below `rows.rows`.
    unsafe {
        launch!(kernel, (sampled as u32).div_ceil(8), 256, 0, cx.stream;
            rows.offsets, wide, rows.indices, rows.base, rows.rows, rows.cols, step, counts.address())?;
    }
    Ok(reach(counts.read(0, BINS)?))
}

//! SpMV algorithm `stream`: y = alpha · op(A) · x + beta · y on equal tiles of nonzeros
//! (src/format/stream.rs), in one launch (kernels/spmv/stream.cu).
//!
//! Each split row has a counter, by which the last of its blocks to arrive recognizes that it is the last and
//! adds the partial sums. If there are more split rows than counters, a second launch adds the partial sums
//! instead.

use super::inspection::{self, InspectedMatrix};
use super::SpmvLayout;
use crate::backend::cuda::convert::stream::DeviceStream;
use crate::backend::cuda::device::DeviceCall;
use crate::backend::cuda::launch::{launch, launch_product, Kernel};
use crate::backend::cuda::memory::filled;
use crate::backend::cuda::module::kinds::kernel_kinds;
use crate::backend::cuda::scalars::Scalar;
use crate::backend::cuda::{result_name, types_name};
use crate::backend::LayoutInfo;
use crate::error::Result;
use crate::format::fill_ratio;
use crate::format::stream::BLOCK_TILES;
use crate::matrix::DenseVector;
use crate::memory::COUNTERS;
use crate::problem::SpmvProblem;
use crate::select;
use crate::support::Types;
use crate::types::{Address, LayoutKind};

kernel_kinds! { "spmv/stream" {
    PRODUCT(&'static str, String) = "product" for [["none", "some", "all"], types(Algorithm::Stream)];
    FINISH(String) = "finish" for [results(Algorithm::Stream)];
} }
/// Threads of a block, as in kernels/spmv/stream.cuh.
const THREADS: u32 = 128;
/// Largest number of split rows for which there are counters.
const MOST_COUNTED: usize = COUNTERS;

/// Layout and kernels of SpMV `stream`.
pub(super) struct StreamSpmv {
    layout: DeviceStream,
    kernel: Kernel,
    /// Kernel of the second launch, if there are too many split rows.
    finish: Option<Kernel>,
    /// True if the matrix does not fit into L2 beside x and y.
    evict_first: bool,
}

impl SpmvLayout for StreamSpmv {
    fn make(cx: &DeviceCall<'_>, problem: &SpmvProblem, inspected: Option<&InspectedMatrix>) -> Result<Self> {
        let (op, keep, value_type) = (problem.op, problem.value_updates, problem.types.a);
        let (operand, stats) = inspection::operand(cx, problem, inspected, inspection::nearest(problem))?;
        let layout = DeviceStream::build(cx, &operand, &stats, value_type, op.conjugates(), keep)?;
        let layout = filled(cx, layout)?;
        let kernel = PRODUCT.load(cx.device, (layout.high(), types_name(problem.types)))?;
        let finish = if layout.splits.len() > most_counted() {
            Some(FINISH.load(cx.device, (result_name(problem.types),))?)
        } else {
            None
        };
        let bytes = layout.values.bytes() + layout.lows.bytes() + layout.highs.bytes();
        Ok(StreamSpmv {
            evict_first: select::spmv::reads_past_l2(bytes as u64, cx.device.properties().l2_bytes),
            layout,
            kernel,
            finish,
        })
    }

    fn workspace_bytes(&self, types: Types) -> usize {
        self.layout.parts * types.compute.scalar().size()
    }

    fn multiply(
        &self,
        cx: &DeviceCall<'_>,
        _: Types,
        (alpha, beta): (Scalar, Scalar),
        [x, _, y]: [&DenseVector; 3],
    ) -> Result<()> {
        let a = &self.layout;
        // The number of tiles is less than 2^31.
        let tiles = a.tiles.len();
        let grid = tiles.div_ceil(BLOCK_TILES) as u32;
        let last_slots = a.slots as usize - tiles.saturating_sub(1) * a.tile;
        let counters = if self.finish.is_some() { Address::NULL } else { cx.counters };
        // SAFETY: analysis has made the layout's arrays; the descriptors promise x and y until the stream has
        // run the kernel, and the plan has checked that they fit and do not overlap; the workspace has been
        // checked, the handle lends it and its counters to one call at a time, and there are no more
        // split rows than counters, or no counters.
        unsafe {
            launch_product!(self.kernel, grid, THREADS, 0, cx.stream;
                a.rows, tiles as u32, last_slots as u32, a.tiles.address(), a.ends.address(), a.voids.address(),
                a.lows.address(), a.highs.address(), a.values.address(), a.splits.address(),
                x.values, y.values, alpha, beta,
                i32::from(a.entries > 0), i32::from(self.evict_first), cx.workspace.address, counters)?;
            if let Some(finish) = &self.finish {
                launch!(finish, a.splits.len() as u32, THREADS, 0, cx.stream;
                    a.splits.address(), cx.workspace.address, y.values, alpha, beta)?;
            }
        }
        Ok(())
    }

    fn refill(&self, cx: &DeviceCall<'_>, values: Address) -> Result<bool> {
        self.layout.refill(cx, values)
    }

    fn info(&self) -> LayoutInfo {
        let slots = self.layout.tiles.len() * self.layout.tile;
        let fill = fill_ratio(slots, self.layout.entries as usize);
        LayoutInfo { kind: LayoutKind::Stream, in_place: false, fill }
    }
}

/// Returns [`MOST_COUNTED`], or 0 if a test asks for the second launch.
fn most_counted() -> usize {
    #[cfg(test)]
    if tests::UNCOUNTED.get() {
        return 0;
    }
    MOST_COUNTED
}

#[cfg(test)]
mod tests;

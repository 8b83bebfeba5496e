//! Lists of the windows of `window`, the row blocks of `smat` and the bands of `swift`, some of which are split
//! into parts (src/format/window.rs has the rules): the lists are made on the device, with the data that kernels
//! need to add up the parts' sums.

use crate::backend::cuda::convert::device_wide;
use crate::backend::cuda::device::DeviceCall;
use crate::backend::cuda::launch::{blocks_of_grid, launch};
use crate::backend::cuda::layouts::{kernel_structs, same_elements};
use crate::backend::cuda::memory::{filled_members, DeviceBuffer};
use crate::error::Result;
use crate::format::window::{WindowPart, WorkItem};
use crate::memory::Context;
use crate::select::spmm::tiles;
use crate::types::Address;

same_elements!(WorkItem = "format/window.cuh WorkItem" { window, first, end, part });
same_elements!(WindowPart = "format/window.cuh Part" { window, first, count, counter });

/// Threads of a block of the conversion.
const THREADS: u32 = 256;

kernel_structs! {
    /// Workspace for joining the parts of split windows, laid out as the kernels' `Join`.
    pub(super) struct Join = "spmm/parts.cuh Join" {
        sums: Address,
        counters: Address,
        part_count: i64,
        counter_count: i64,
    }
}

/// Windows (row blocks in `smat`, bands in `swift`) of a matrix as a launch takes them.
pub(crate) struct WindowLists {
    /// Whole windows, and parts of those that are split.
    pub(crate) items: DeviceBuffer<WorkItem>,
    /// Parts of split windows.
    pub(crate) parts: DeviceBuffer<WindowPart>,
    /// Number of windows that are split into parts.
    pub(crate) split_count: i64,
}
filled_members!(WindowLists { items, parts });

impl WindowLists {
    /// Makes empty lists.
    pub(super) fn none(cx: &Context) -> Result<Self> {
        Ok(WindowLists { items: DeviceBuffer::new(cx, 0)?, parts: DeviceBuffer::new(cx, 0)?, split_count: 0 })
    }

    /// Number of tiles along N in one launch, which the counters for split windows limit.
    pub(super) fn tiles_at_once(&self) -> usize {
        tiles::at_once(self.split_count as usize, tiles::COUNTERS)
    }

    /// Returns the workspace for the parts, whose sums are at `sums`.
    pub(super) fn join(&self, cx: &Context, sums: Address) -> Join {
        let part_count = self.parts.len() as i64;
        Join { sums, counters: cx.counters, part_count, counter_count: self.split_count }
    }
}

/// Number of thread blocks for `count` items of a conversion to the layout of `algorithm`, with `each` of them
/// per thread block.
pub(super) fn grid(count: i64, each: u32, algorithm: &str) -> Result<u32> {
    blocks_of_grid(
        (count as u64).div_ceil(u64::from(each)),
        format_args!("A: it is too large for algorithm {algorithm}, which converts it in one launch"),
    )
}

/// Makes the lists for `algorithm`, and splits the windows (row blocks in `smat`, bands in `swift`) of more than
/// `limit` blocks (entries in `swift`). `first` has the number of blocks before each window, and behind them the
/// total, `blocks`.
pub(super) fn schedule(
    cx: &DeviceCall<'_>,
    algorithm: &str,
    first: &DeviceBuffer<i64>,
    windows: i64,
    blocks: i64,
    limit: usize,
) -> Result<WindowLists> {
    if windows == 0 {
        return WindowLists::none(cx);
    }
    // The kernels also take a limit on the number of windows that are split; this one never applies, since each
    // such window has a block.
    let (limit, most_split) = (limit as i64, blocks.max(1));
    let each = windows as usize + 1;
    let counts = DeviceBuffer::<i64>::new(cx, 3 * each)?;
    let kernel = |name| cx.device.modules().kernel("format/window", name);
    let count_items = kernel("window_count_items")?;
    // SAFETY: there are three numbers per window, and three more; no columns are counted.
    unsafe {
        launch!(count_items, grid(windows + 1, THREADS, algorithm)?, THREADS, 0, cx.stream;
            windows, first.address(), Address::NULL, limit, most_split, counts.address(), Address::NULL)?;
        device_wide::scan_in_place(cx, counts.address(), counts.len())?;
    }
    let part_count = counts.read(each - 1, 1)?[0];
    let split_count = counts.read(2 * each - 1, 1)?[0] - part_count;
    let items = DeviceBuffer::<WorkItem>::new(cx, (part_count + windows - split_count) as usize)?;
    let parts = DeviceBuffer::<WindowPart>::new(cx, part_count as usize)?;
    let write_items = kernel("window_items")?;
    // SAFETY: the sums say where each window's items and parts go.
    unsafe {
        launch!(write_items, grid(windows, THREADS, algorithm)?, THREADS, 0, cx.stream;
            windows, first.address(), limit, most_split, counts.address(), items.address(), parts.address())?;
    }
    Ok(WindowLists { items, parts, split_count })
}

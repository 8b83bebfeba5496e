//! Lists of windows, or row blocks, that are cut into pieces (src/format/window.rs has the rules): the lists
//! are made on the device, with the data that kernels need to add up the pieces' sums.

use crate::backend::cuda::convert::device_wide;
use crate::backend::cuda::device::Device;
use crate::backend::cuda::launch::{blocks_of_grid, launch};
use crate::backend::cuda::layouts::{same_elements, same_layout};
use crate::backend::cuda::memory::DeviceBuffer;
use crate::error::Result;
use crate::format::window::{Item, WindowPart};
use crate::memory::Context;
use crate::types::Address;

same_elements!(Item = "format/window.cuh Item" { window, first, end, part });
same_elements!(WindowPart = "format/window.cuh Part" { window, first, count, counter });

/// Threads of a block of the conversion.
const THREADS: u32 = 256;

/// Workspace for joining the pieces of cut windows, laid out as the kernels' `Join`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(super) struct Join {
    pub(super) sums: Address,
    pub(super) counters: Address,
    pub(super) part_count: i64,
    pub(super) counter_count: i64,
}
same_layout!(Join = "spmm/parts.cuh Join" { sums, counters, part_count, counter_count });

/// Number of blocks for `count` items with `each` of them per block.
pub(super) fn grid(count: i64, each: u32, algorithm: &str) -> Result<u32> {
    blocks_of_grid(
        (count as u64).div_ceil(u64::from(each)),
        format_args!("A: algorithm {algorithm} has too much for one launch to convert"),
    )
}

/// Replaces `len` counts from `at` on by their exclusive prefix sums; returns the last one, which is the
/// total if the last count is 0.
pub(super) fn starts(cx: &Context, counts: &DeviceBuffer<i64>, at: usize, len: usize) -> Result<i64> {
    // SAFETY: the buffer is on the device of the current context and has these elements.
    unsafe { device_wide::exclusive_scan(cx, counts.at(at), counts.at(at), len)? };
    Ok(counts.read(at + len - 1, 1)?[0])
}

/// Makes the lists of items and of pieces, and counts the windows that are cut: those of more than `limit`
/// blocks. `first` has the number of blocks before each window, and behind them the total, `blocks`.
pub(super) fn schedule(
    cx: &Context,
    device: &Device,
    first: &DeviceBuffer<i64>,
    windows: i64,
    blocks: i64,
    limit: usize,
) -> Result<(DeviceBuffer<Item>, DeviceBuffer<WindowPart>, i64)> {
    // The kernels also take a limit on the number of windows that are cut; this one never applies, since each
    // such window has a block.
    let (limit, most_cut) = (limit as i64, blocks.max(1));
    let each = windows as usize + 1;
    let counts = DeviceBuffer::<i64>::new(cx, 3 * each)?;
    let kernel = |name| device.modules().kernel("format/window", name);
    let count_items = kernel("window_count_items")?;
    // SAFETY: there are three numbers per window, and three more; no columns are counted.
    unsafe {
        launch!(count_items, grid(windows + 1, THREADS, "window")?, THREADS, 0, cx.stream;
            windows, first.address(), Address::NULL, limit, most_cut, counts.address(), Address::NULL)?;
        device_wide::exclusive_scan(cx, counts.address(), counts.address(), counts.len())?;
    }
    let part_count = counts.read(each - 1, 1)?[0];
    let cut = counts.read(2 * each - 1, 1)?[0] - part_count;
    let items = DeviceBuffer::<Item>::new(cx, (part_count + windows - cut) as usize)?;
    let parts = DeviceBuffer::<WindowPart>::new(cx, part_count as usize)?;
    let write_items = kernel("window_items")?;
    // SAFETY: the sums say where each window's items and pieces go.
    unsafe {
        launch!(write_items, grid(windows, THREADS, "window")?, THREADS, 0, cx.stream;
            windows, first.address(), limit, most_cut, counts.address(), items.address(), parts.address())?;
    }
    Ok((items, parts, cut))
}

//! Numbering of the columns of windows on the device (kernels/format/window_ranks.cuh), and the numbers of
//! blocks, tiles, parts and items, which follow from it alone. It takes one wait and no sort.

use crate::backend::cuda::convert::device_wide;
use crate::backend::cuda::device::DeviceCall;
use crate::backend::cuda::launch::{blocks_of_grid, launch};
use crate::backend::cuda::layouts::kernel_structs;
use crate::backend::cuda::memory::{filled_members, DeviceBuffer, Readback};
use crate::backend::cuda::module::kinds::kernel_kinds;
use crate::backend::cuda::operand::{Rows, Widths};
use crate::backend::cuda::spmm::parts::WindowLists;
use crate::error::Result;
use crate::format::window::statistics::samples;
use crate::format::window::{check_count, Counts, WindowPart, WindowShape, WorkItem, HEIGHTS, MOST_SPLIT};
use crate::select::spmm::window::{keys_at_once, threads_of};
use crate::types::Address;

pub(crate) const CONVERT: &str = "format/window";
/// Threads of a block of kernels with one thread per item.
const THREADS: u32 = 256;
/// Words of the pattern statistics: 16 for each height, then the number of entries that were counted.
const STATISTICS_STEP: usize = 16;
/// Windows of all heights in the rows of a sample: one of the highest, and twice as many of each next height.
const WINDOWS_OF_SAMPLE: u32 = (1 << HEIGHTS.len()) - 1;
pub(crate) const STATISTICS_WORDS: usize = STATISTICS_STEP * HEIGHTS.len() + 1;

/// Checks the number of blocks of a launch.
fn grid(blocks: u64) -> Result<u32> {
    blocks_of_grid(blocks, "A: algorithm window has too many windows for one launch")
}

/// Number of blocks of a launch with one thread per item.
fn threads(count: i64) -> Result<u32> {
    grid((count as u64).div_ceil(u64::from(THREADS)))
}

/// Number of windows of `height` rows.
pub(crate) fn windows_of(rows: i64, height: usize) -> i64 {
    (rows as u64).div_ceil(height as u64) as i64
}

kernel_structs! {
    /// Shape of windows, laid out as the kernels' `Shape`.
    struct KernelShape = "format/window_ranks.cuh Shape" {
        height: i32,
        block_log2: i32,
        group_log2: i32,
        words: i32,
    }
}

impl KernelShape {
    /// Makes the parameter for rows of `cols` columns; also returns the bytes of shared memory.
    fn new(shape: WindowShape, height: usize, cols: i64) -> (Self, u32) {
        let keys = keys_at_once(cols);
        // One bit per key, a sum for every four words of bits, a mask per block, and one mask that two chunks
        // share.
        let masks = if height > shape.group { keys / shape.block + 8 } else { 0 };
        let bytes = keys / 8 + keys / 32 + masks.next_multiple_of(4);
        let out = KernelShape {
            height: height as i32,
            block_log2: shape.block.ilog2() as i32,
            group_log2: shape.group.ilog2() as i32,
            words: (keys / 32) as i32,
        };
        (out, bytes as u32)
    }
}

kernel_kinds! { "format/window" {
    STATISTICS(Widths) = "statistics" for [widths()];
    RANKS(Widths) = "ranks" for [widths()];
    pub(super) FILL(Widths) = "fill" for [widths()];
} }

/// Counts the pattern statistics by which heights are chosen, in rows that are sorted. Blocks.
pub(crate) fn count_windows(cx: &DeviceCall<'_>, rows: &Rows, shape: WindowShape) -> Result<Counts> {
    let mut words = Readback::take(cx)?;
    enqueue_statistics(cx, rows, shape, Address::NULL, words.at(0))?;
    words.fetch(cx, STATISTICS_WORDS)?;
    Ok(counts(rows, words.wait(cx)?))
}

/// Enqueues the counting: one launch, which adds to words that must be zero. It counts nothing if the word at
/// `sorted`, unless that is NULL, is 0.
pub(crate) fn enqueue_statistics(
    cx: &DeviceCall<'_>,
    rows: &Rows,
    shape: WindowShape,
    sorted: Address,
    words: Address,
) -> Result<()> {
    if rows.nnz == 0 {
        return Ok(());
    }
    let (windows, samples_log2) = samples(rows.rows as usize);
    let blocks = samples_log2.map_or(windows, |log2| 1 << log2) as u32;
    let kernel = STATISTICS.load(cx.device, (rows.widths(),))?;
    let (shape, shared) = KernelShape::new(shape, HEIGHTS[3], rows.cols);
    // SAFETY: there are rows + 1 offsets and nnz columns of these types, and STATISTICS_WORDS words.
    unsafe {
        launch!(kernel, (blocks, WINDOWS_OF_SAMPLE), threads_of(rows.nnz, blocks.into()), shared, cx.stream;
            rows.offsets, rows.indices, rows.base, rows.rows, rows.nnz,
            samples_log2.map_or(-1, |log2| log2 as i32), windows as i64, shape, sorted, words)
    }
}

/// Turns the words that the kernel has counted into counts.
pub(crate) fn counts(rows: &Rows, words: &[u64]) -> Counts {
    let of = |kind: usize| std::array::from_fn(|at| words[at * STATISTICS_STEP + kind] as usize);
    Counts {
        rows: rows.rows as usize,
        nnz: rows.nnz as usize,
        sampled_nnz: words[STATISTICS_WORDS - 1] as usize,
        columns: of(0),
        blocks: of(1),
        tiles: of(2),
        spans_16: of(3),
        spans_8: of(4),
    }
}

kernel_structs! {
    /// Numbering for kernels that fill blocks, laid out as the kernels' `Numbers`.
    pub(crate) struct Numbers = "format/window_fill.cuh Numbers" {
        ranks: Address,
        list: Address,
        distinct: Address,
        masks: Address,
        starts: Address,
    }
}

/// Numbering of the columns of all windows of one height.
pub(crate) struct Numbering {
    pub(crate) windows: i64,
    /// Number of columns of all windows together.
    pub(crate) distinct: i64,
    pub(crate) blocks: i64,
    pub(crate) tiles: i64,
    pub(crate) lists: WindowLists,
    pub(crate) arrays: NumberingArrays,
}

/// Arrays that kernels which fill a layout read, and which go when it is filled.
pub(crate) struct NumberingArrays {
    /// For each entry, the rank of its column among its window's columns.
    ranks: DeviceBuffer<u32>,
    /// Columns of each window, stored from the position of its first entry on.
    list: DeviceBuffer<u32>,
    /// Number of columns of each window.
    of_windows: DeviceBuffer<u32>,
    /// For each block a byte that tells which groups of rows have an entry in it.
    masks: DeviceBuffer<u8>,
    /// Number of blocks before each window. If there are masks, the tiles before each window follow,
    /// continuing the sums.
    starts: DeviceBuffer<i64>,
    /// Parts, split windows and long windows before each window, one after another, with their sums behind each.
    before: DeviceBuffer<i64>,
}
filled_members!(NumberingArrays { ranks, list, of_windows, masks, starts, before });

impl Numbering {
    /// Numbers the columns, and splits windows into parts of at most `most` blocks
    /// ([`crate::format::window::Rules::most`]). The rows must be sorted, with at least one entry and fewer
    /// than 2^32 entries. Blocks.
    pub(crate) fn new(
        cx: &DeviceCall<'_>,
        rows: &Rows,
        shape: WindowShape,
        height: usize,
        most: usize,
    ) -> Result<Self> {
        let (windows, nnz) = (windows_of(rows.rows, height), rows.nnz as usize);
        let each = windows as usize + 1;
        let blocks = grid(windows as u64)?;
        let has_masks = height > shape.group;
        let ranks = DeviceBuffer::<u32>::new(cx, nnz)?;
        let list = DeviceBuffer::<u32>::new(cx, nnz)?;
        let of_windows = DeviceBuffer::<u32>::new(cx, windows as usize)?;
        let masks = DeviceBuffer::<u8>::new(cx, if has_masks { nnz / shape.block + each } else { 0 })?;
        let starts = DeviceBuffer::<i64>::new(cx, if has_masks { 2 * each } else { each })?;
        let before = DeviceBuffer::<i64>::new(cx, 3 * each)?;
        let mut words = Readback::take(cx)?;
        let kernel = RANKS.load(cx.device, (rows.widths(),))?;
        let kernel_of = |name: &str| cx.device.modules().kernel(CONVERT, name);
        let (kernel_shape, shared) = KernelShape::new(shape, height, rows.cols);
        let (most, most_split) = (most as i64, MOST_SPLIT as i64);
        // SAFETY: the arrays have these lengths; a window's masks begin at the number of entries before the
        // window, divided by the columns of a block, plus the window's number.
        unsafe {
            launch!(kernel, blocks, threads_of(rows.nnz, windows), shared, cx.stream;
                rows.offsets, rows.indices, rows.base, rows.rows, rows.nnz, windows, kernel_shape,
                ranks.address(), list.address(), masks.address(), of_windows.address(), starts.address())?;
            device_wide::scan_in_place(cx, starts.address(), starts.len())?;
            launch!(kernel_of("window_count_items")?, threads(windows + 1)?, THREADS, 0, cx.stream;
                windows, starts.address(), of_windows.address(), most, most_split, before.address(), words.at(0))?;
            device_wide::scan_in_place(cx, before.address(), before.len())?;
            launch!(kernel_of("window_totals")?, 1, 1, 0, cx.stream;
                windows, starts.address(), i32::from(has_masks), before.address(), words.host(1))?;
        }
        words.fetch(cx, 1)?;
        let &[distinct, blocks, tiles, part_count, split_count] =
            words.wait(cx)?.first_chunk().expect("a page");
        check_count("blocks", blocks as usize)?;
        check_count("tiles", tiles as usize)?;
        let items =
            DeviceBuffer::<WorkItem>::new(cx, part_count as usize + windows as usize - split_count as usize)?;
        let parts = DeviceBuffer::<WindowPart>::new(cx, part_count as usize)?;
        // SAFETY: the sums say where each window's items and parts go.
        unsafe {
            launch!(kernel_of("window_items")?, threads(windows)?, THREADS, 0, cx.stream;
                windows, starts.address(), most, most_split, before.address(), items.address(), parts.address())?;
        }
        Ok(Numbering {
            windows,
            distinct: distinct as i64,
            blocks: blocks as i64,
            tiles: tiles as i64,
            lists: WindowLists { items, parts, split_count: split_count as i64 },
            arrays: NumberingArrays { ranks, list, of_windows, masks, starts, before },
        })
    }

    /// Parameter for kernels that fill blocks.
    pub(crate) fn numbers(&self) -> Numbers {
        let NumberingArrays { ranks, list, of_windows, masks, starts, .. } = &self.arrays;
        Numbers {
            ranks: ranks.address(),
            list: list.address(),
            distinct: of_windows.address(),
            masks: masks.address(),
            starts: starts.address(),
        }
    }
}

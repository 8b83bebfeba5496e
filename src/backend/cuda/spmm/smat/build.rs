//! Builder of the blocks of src/format/bcsr.rs on the device (kernels/format/bcsr.cu).

use super::super::parts::{self, grid, WindowLists};
use crate::backend::cuda::convert::device_wide::starts;
use crate::backend::cuda::convert::values::Slots;
use crate::backend::cuda::convert::{bits_of_values, origins_address, Origins};
use crate::backend::cuda::device::DeviceCall;
use crate::backend::cuda::launch::launch;
use crate::backend::cuda::layouts::kernel_structs;
use crate::backend::cuda::memory::{filled, filled_members, DeviceBuffer};
use crate::backend::cuda::module::kinds::kernel_kinds;
use crate::backend::cuda::operand::{Rows, Widths};
use crate::error::Result;
use crate::format::bcsr::{check_count, Rules, ROWS};
use crate::types::{Address, DataType};

kernel_kinds! { "format/bcsr" {
    FILL(&'static str, Widths) = "fill" for [["16", "32", "64"], widths()];
    COUNT(Widths) = "count" for [widths()];
    SEGMENTS(Widths) = "segments" for [widths()];
} }

const CONVERT: &str = "format/bcsr";
/// Threads of a block of the conversion, and its warps, each of which works on a segment of a row block.
const THREADS: u32 = 256;
const WARPS: u32 = THREADS / 32;

/// Layout `bcsr` on the device.
pub(super) struct Arrays {
    pub(super) width: usize,
    pub(super) row_count: i64,
    pub(super) col_count: i64,
    pub(super) nnz: i64,
    pub(super) order: Option<DeviceBuffer<u32>>,
    pub(super) lists: WindowLists,
    pub(super) columns: DeviceBuffer<u32>,
    /// Values of the matrix's type, as bytes.
    pub(super) values: DeviceBuffer<u8>,
    pub(super) masks: DeviceBuffer<u8>,
    pub(super) slots: Option<Slots>,
}

/// Rows and order from which the arrays are made.
pub(super) struct Source<'a> {
    /// Validated and sorted rows.
    pub(super) rows: &'a Rows,
    /// Type of the values.
    pub(super) value_type: DataType,
    /// Row at each place of the layout, as [`crate::format::Bcsr::order`].
    pub(super) order: Option<DeviceBuffer<u32>>,
    /// Given if values will be updated: positions of the values in the user's array.
    pub(super) positions: Origins<'a>,
}

/// Segments into which row blocks are cut for the conversion; a warp converts one.
pub(super) struct Cut {
    /// Number of segments before each row block.
    before: DeviceBuffer<i64>,
    row_blocks: i64,
    count: i64,
}

kernel_structs! {
    /// Segments, laid out as the kernels' `Segments`.
    struct Segments = "format/bcsr.cu Segments" {
        before: Address,
        row_blocks: i64,
        count: i64,
    }
}

impl Cut {
    fn segments(&self) -> Segments {
        Segments { before: self.before.address(), row_blocks: self.row_blocks, count: self.count }
    }
}

/// Blocks before each segment, and the number of all blocks.
pub(super) struct Counted {
    starts: DeviceBuffer<i64>,
    pub(super) blocks: usize,
}

impl Source<'_> {
    fn row_blocks(&self) -> i64 {
        let places = self.order.as_ref().map_or(self.rows.rows, |order| order.len() as i64);
        (places as u64).div_ceil(ROWS as u64) as i64
    }

    fn order_at(&self) -> Address {
        self.order.as_ref().map_or(Address::NULL, DeviceBuffer::address)
    }

    /// Cuts the row blocks into segments. Blocks.
    pub(super) fn cut(&self, cx: &DeviceCall<'_>) -> Result<Cut> {
        let (rows, row_blocks) = (self.rows, self.row_blocks());
        let before = DeviceBuffer::<i64>::zeroed(cx, row_blocks as usize + 1)?;
        if rows.nnz > 0 {
            let kernel = SEGMENTS.load(cx.device, (rows.widths(),))?;
            // SAFETY: there are rows + 1 offsets of the type, one number per row block, and one more.
            unsafe {
                launch!(kernel, grid(row_blocks + 1, THREADS, "smat")?, THREADS, 0, cx.stream;
                    rows.offsets, rows.indices, rows.base, rows.rows, self.order_at(), row_blocks,
                    before.address())?;
            }
        }
        let count = starts(cx, &before)?;
        Ok(Cut { before, row_blocks, count })
    }

    /// Counts the blocks of so many columns. Blocks.
    pub(super) fn count(&self, cx: &DeviceCall<'_>, cut: &Cut, width: usize) -> Result<Counted> {
        let (rows, segments) = (self.rows, cut.segments());
        let counts = DeviceBuffer::<i64>::zeroed(cx, cut.count as usize + 1)?;
        if rows.nnz > 0 {
            let kernel = COUNT.load(cx.device, (rows.widths(),))?;
            let shift = width.trailing_zeros() as i32;
            // SAFETY: there are rows + 1 offsets and nnz columns of these types, one number per segment, and
            // one more.
            unsafe {
                launch!(kernel, grid(cut.count + 1, WARPS, "smat")?, THREADS, 0, cx.stream;
                    rows.offsets, rows.indices, rows.base, rows.rows, self.order_at(), segments, shift,
                    counts.address())?;
            }
        }
        let blocks = starts(cx, &counts)? as usize;
        Ok(Counted { starts: counts, blocks })
    }
}

impl Arrays {
    /// Makes the layout; `counted` must be for blocks of the rules' width. Blocks.
    pub(super) fn build(
        cx: &DeviceCall<'_>,
        source: Source<'_>,
        cut: &Cut,
        counted: Counted,
        rules: Rules,
    ) -> Result<Self> {
        let (row_blocks, order_at, segments) = (cut.row_blocks, source.order_at(), cut.segments());
        let Source { rows, value_type, order, positions } = source;
        let Counted { starts, blocks } = counted;
        let size = value_type.size();
        let shift = rules.width.trailing_zeros() as i32;
        check_count(blocks)?;
        let limit = rules.limit(blocks, row_blocks as usize);
        let first = DeviceBuffer::<i64>::zeroed(cx, row_blocks as usize + 1)?;
        if rows.nnz > 0 {
            let kernel = cx.device.modules().kernel(CONVERT, "bcsr_starts")?;
            // SAFETY: there is one number per segment and per row block, and one more of each.
            unsafe {
                launch!(kernel, grid(row_blocks + 1, THREADS, "smat")?, THREADS, 0, cx.stream;
                    segments, starts.address(), first.address())?;
            }
        }
        let lists = parts::schedule(cx, "smat", &first, row_blocks, blocks as i64, limit)?;
        let columns = DeviceBuffer::<u32>::new(cx, blocks)?;
        let bytes = blocks.saturating_mul(rules.places()).saturating_mul(size);
        let values = DeviceBuffer::<u8>::zeroed(cx, bytes)?;
        let masks = DeviceBuffer::<u8>::new(cx, blocks.saturating_mul(rules.places() / 8))?;
        let slots = Slots::new(cx, rows.nnz as usize, size, positions)?;
        if rows.nnz > 0 {
            let (from, to) = (origins_address(positions), Slots::address(slots.as_ref()));
            let fill = FILL.load(cx.device, (bits_of_values(value_type)?, rows.widths()))?;
            // SAFETY: as above, with nnz values of the type; the sums say where each segment's blocks go.
            unsafe {
                launch!(fill, grid(cut.count, WARPS, "smat")?, THREADS, 0, cx.stream;
                    rows.offsets, rows.indices, rows.values, rows.base, rows.rows, order_at, segments,
                    shift, starts.address(), columns.address(), values.address(), masks.address(), from,
                    to)?;
            }
        }
        let out = Arrays {
            width: rules.width,
            row_count: rows.rows,
            col_count: rows.cols,
            nnz: rows.nnz,
            order,
            lists,
            columns,
            values,
            masks,
            slots,
        };
        filled(cx, out)
    }
}
filled_members!(Arrays { order, lists, columns, values, masks, slots });

//! SpMV algorithm `mask_block`: y = alpha · op(A) · x + beta · y on the blocks of src/format/mask_block.rs,
//! with one or several warps per slab of 8 or 4 rows (kernels/spmv/mask_block.cu). Analysis makes the blocks
//! on the device (kernels/format/mask_block.cu).

use super::inspection::{self, InspectedMatrix};
use super::sell::{self, blocks_of_warps, CONVERT_THREADS};
use super::SpmvLayout;
use crate::backend::cuda::convert::device_wide::starts;
use crate::backend::cuda::convert::{bits_of_values, Origins};
use crate::backend::cuda::device::DeviceCall;
use crate::backend::cuda::launch::{blocks_of_grid, launch, launch_product, Kernel};
use crate::backend::cuda::layouts::same_elements;
use crate::backend::cuda::memory::{self, filled, filled_members, DeviceBuffer, Numbers};
use crate::backend::cuda::module::kinds::kernel_kinds;
use crate::backend::cuda::operand::{Rows, Widths};
use crate::backend::cuda::scalars::Scalar;
use crate::backend::cuda::types_name;
use crate::backend::LayoutInfo;
use crate::error::{Error, Result};
use crate::format::mask_block::{self, fill_ratio, BlockHead, Counts, PartHead, Rules, MOST_ROWS, WORD_ROWS};
use crate::matrix::DenseVector;
use crate::memory::COUNTERS;
use crate::problem::SpmvProblem;
use crate::select::spmv::mask_block as select;
use crate::support::Types;
use crate::types::{Address, DataType, LayoutKind};

same_elements!(BlockHead = "format/mask_block.cuh BlockHead" { first, block, base, count, values, flags, unused });
same_elements!(PartHead = "format/mask_block.cuh PartHead" { slab, first, count, counter });

const CONVERT: &str = "format/mask_block";

kernel_kinds! {
    "spmv/mask_block" { PRODUCT(usize, String) = "product" for [[8, 4], types(Algorithm::MaskBlock)]; }
    "format/mask_block" {
        COUNT_PIECES(Widths) = "pieces" for [widths()];
        COUNT(Widths) = "count" for [widths()];
        FILL(&'static str, Widths, &'static str) = "fill"
            for [BITS, widths(), ["32"]], [BITS, wide_offsets(), ["64"]];
    }
}
/// Threads and warps of a block of kernels/spmv/mask_block.cu.
const THREADS: u32 = 128;
const WARPS: u64 = 4;

/// Bytes of values that a lane copies at a time.
const COPY_BYTES: usize = 16;

/// Layout `mask_block` on the device.
pub(super) struct Arrays {
    rows: i64,
    cols: i64,
    /// Number of rows of a block.
    block_rows: usize,
    /// log2 of the number of shares of a slab.
    shares_log2: u32,
    nnz: i64,
    heads: DeviceBuffer<BlockHead>,
    parts: DeviceBuffer<PartHead>,
    masks: DeviceBuffer<u16>,
    /// Values, padded to a multiple of [`COPY_BYTES`].
    values: DeviceBuffer<u8>,
    narrow: DeviceBuffer<u16>,
    wide: DeviceBuffer<u32>,
    origins: Option<Numbers>,
}

/// Number of blocks of a launch with one thread per item.
fn threads(count: i64) -> Result<u32> {
    blocks_of_grid((count as u64).div_ceil(u64::from(CONVERT_THREADS)), "A: too many slabs for one launch")
}

/// Number of slabs of 8 rows.
fn groups_of(rows: i64) -> i64 {
    (rows as u64).div_ceil(MOST_ROWS as u64) as i64
}

/// Call and rows for the kernels of the conversion.
struct Build<'a> {
    cx: &'a DeviceCall<'a>,
    rows: &'a Rows,
    /// Number of groups of 8 rows.
    groups: i64,
    /// Number of pieces before those of each group of 8 rows; `None` if each group is one piece.
    pieces: Option<DeviceBuffer<i64>>,
    /// Number of all pieces.
    items: i64,
}

/// First block of each piece, number of blocks, and most blocks of a slab in one piece.
struct Counted {
    block_rows: usize,
    slabs: i64,
    starts: DeviceBuffer<i64>,
    blocks: i64,
    longest: i64,
    rules: Rules,
}

/// Number of pieces of split slabs, and number of split slabs, before each slab.
struct SplitSlabs {
    parts: DeviceBuffer<i64>,
    cuts: DeviceBuffer<i64>,
    count: i64,
}

impl<'a> Build<'a> {
    /// Cuts the rows into pieces; `longest` is the number of entries of the longest row.
    fn new(cx: &'a DeviceCall<'_>, rows: &'a Rows, longest: i64) -> Result<Self> {
        let groups = groups_of(rows.rows);
        let mut out = Build { cx, rows, groups, pieces: None, items: groups };
        if select::shares_rows(longest) {
            let pieces = out.counts(groups)?;
            let kernel = COUNT_PIECES.load(cx.device, (rows.widths(),))?;
            // SAFETY: there are rows + 1 offsets of this type, and a number for each group of eight rows.
            unsafe {
                launch!(kernel, threads(groups)?, CONVERT_THREADS, 0, cx.stream;
                    rows.offsets, rows.indices, rows.base, rows.rows, groups, pieces.address())?;
            }
            out.items = starts(cx, &pieces)?;
            out.pieces = Some(pieces);
        }
        Ok(out)
    }

    fn kernel(&self, name: &str) -> Result<Kernel> {
        self.cx.device.modules().kernel(CONVERT, name)
    }

    fn counts(&self, count: i64) -> Result<DeviceBuffer<i64>> {
        DeviceBuffer::zeroed(self.cx, count as usize + 1)
    }

    fn pieces(&self) -> Address {
        self.pieces.as_ref().map_or(Address::NULL, DeviceBuffer::address)
    }

    fn count(&self, rules: impl Fn(&Counts) -> Rules) -> Result<Counted> {
        let Build { cx, rows, groups, items, .. } = *self;
        let (eights, fours) = (self.counts(items)?, self.counts(2 * items)?);
        let longest = DeviceBuffer::<u64>::zeroed(cx, 2)?;
        let kernel = COUNT.load(self.cx.device, (rows.widths(),))?;
        // SAFETY: there are rows + 1 offsets and nnz columns of these types, one number per piece in the
        // first array, two in the second, and two numbers for the maxima.
        unsafe {
            launch!(kernel, blocks_of_warps(items)?, CONVERT_THREADS, 0, cx.stream;
                rows.offsets, rows.indices, rows.base, rows.rows, self.pieces(), groups, items,
                eights.address(), fours.address(), longest.address())?;
        }
        let counts = Counts {
            rows: rows.rows as usize,
            eights: starts(cx, &eights)? as usize,
            fours: starts(cx, &fours)? as usize,
        };
        let rules = rules(&counts);
        let block_rows = rules.block_rows;
        let blocks = counts.blocks(block_rows) as i64;
        if blocks > i64::from(u32::MAX) {
            return Err(mask_block::too_many_blocks(blocks));
        }
        let (starts, size) = if block_rows == MOST_ROWS { (eights, 0) } else { (fours, 1) };
        let longest = longest.read(size, 1)?[0] as i64;
        let slabs = counts.rows.div_ceil(block_rows) as i64;
        Ok(Counted { block_rows, slabs, starts, blocks, longest, rules })
    }

    /// Counts the pieces of split slabs; `None` if no slab is split.
    fn parts(&self, counted: &Counted) -> Result<Option<SplitSlabs>> {
        let cx = self.cx;
        let &Counted { block_rows, slabs, rules, .. } = counted;
        if self.pieces.is_none() && counted.longest <= rules.limit() as i64 {
            return Ok(None);
        }
        let (parts, cuts) = (self.counts(slabs)?, self.counts(slabs)?);
        let kernel = self.kernel("mask_block_parts")?;
        // SAFETY: `starts` has one number per piece, and the pieces one per group of eight rows, each with
        // one more behind the last; the other arrays have one number per slab.
        unsafe {
            launch!(kernel, threads(slabs)?, CONVERT_THREADS, 0, cx.stream;
                self.pieces(), counted.starts.address(), i32::from(block_rows == WORD_ROWS), slabs,
                rules.shares_log2 as i32, rules.limit_log2 as i32, parts.address(), cuts.address())?;
        }
        let (count, cut) = (starts(cx, &parts)?, starts(cx, &cuts)?);
        if cut > COUNTERS as i64 {
            return Err(Error::unsupported(format!(
                "A: algorithm mask_block takes at most {COUNTERS} times {block_rows} rows with more than {} blocks",
                rules.limit()
            )));
        }
        Ok(Some(SplitSlabs { parts, cuts, count }))
    }

    /// Makes the columns of the heads in their final width from 32-bit columns.
    fn columns(
        &self,
        columns: &DeviceBuffer<u32>,
        masks: &DeviceBuffer<u16>,
        block_rows: usize,
        heads: &DeviceBuffer<BlockHead>,
    ) -> Result<(DeviceBuffer<u16>, DeviceBuffer<u32>)> {
        let cx = self.cx;
        let count = heads.len() as i64;
        let counts = self.counts(count)?;
        let kernel = self.kernel("mask_block_measure")?;
        // SAFETY: the heads' blocks are in `columns`; there is one number per head.
        unsafe {
            launch!(kernel, threads(count)?, CONVERT_THREADS, 0, cx.stream;
                count, columns.address(), heads.address(), counts.address())?;
        }
        let wide_count = starts(cx, &counts)?;
        let narrow = DeviceBuffer::<u16>::new(cx, columns.len())?;
        let wide = DeviceBuffer::<u32>::new(cx, wide_count as usize)?;
        let kernel = self.kernel("mask_block_columns")?;
        // SAFETY: as above; there is one mask and one narrow column per block, and room for a wide column for
        // each block of a wide head.
        unsafe {
            launch!(kernel, blocks_of_warps(count)?, CONVERT_THREADS, 0, cx.stream;
                count, columns.address(), masks.address(), i32::from(block_rows == WORD_ROWS),
                counts.address(), heads.address(), narrow.address(), wide.address())?;
        }
        Ok((narrow, wide))
    }

    fn run(
        &self,
        value_type: DataType,
        rules: impl Fn(&Counts) -> Rules,
        origins: Origins<'_>,
    ) -> Result<Arrays> {
        let Build { cx, rows, groups, items, .. } = *self;
        let counted = self.count(rules)?;
        let &Counted { block_rows, slabs, rules, .. } = &counted;
        let parts = self.parts(&counted)?;
        let part_count = parts.as_ref().map_or(0, |parts| parts.count);
        let (part_starts, cuts) = parts
            .as_ref()
            .map_or((Address::NULL, Address::NULL), |parts| (parts.parts.address(), parts.cuts.address()));

        let heads = (slabs as usize) << rules.shares_log2;
        let heads = DeviceBuffer::<BlockHead>::zeroed(cx, heads + part_count as usize)?;
        let part_heads = DeviceBuffer::<PartHead>::new(cx, part_count as usize)?;
        let blocks = counted.blocks as usize;
        let masks = DeviceBuffer::<u16>::new(cx, blocks * (block_rows / WORD_ROWS))?;
        let columns = DeviceBuffer::<u32>::new(cx, blocks)?;
        let slots = rows.nnz as usize;
        // The allocator aligns this memory for any type.
        let used = slots.saturating_mul(value_type.size());
        let padding = used.wrapping_neg() % COPY_BYTES;
        let values = DeviceBuffer::<u8>::new(cx, used.saturating_add(padding))?;
        memory::zero(values.at(used), padding, cx.stream)?;
        let (origins, from) = sell::origins_of(cx, slots, rows.nnz, origins)?;
        let (to, position) = sell::address_and_bits(origins.as_ref());
        let kernel = FILL.load(self.cx.device, (bits_of_values(value_type)?, rows.widths(), position))?;
        // SAFETY: the rows' arrays are as above, with nnz values; starts have one number per piece, parts and
        // cuts one per slab, and each a last one; they say how many heads, parts, masks and columns come out;
        // there is one value and one position per entry, and `from` has one position per entry.
        unsafe {
            launch!(kernel, blocks_of_warps(items)?, CONVERT_THREADS, 0, cx.stream;
                rows.offsets, rows.indices, rows.values, rows.base, rows.rows, self.pieces(), groups, items,
                counted.starts.address(), i32::from(block_rows == WORD_ROWS), rules.shares_log2 as i32,
                rules.limit_log2 as i32, part_starts, cuts, heads.address(), part_heads.address(),
                masks.address(), columns.address(), values.address(), from, to)?;
        }
        let (narrow, wide) = self.columns(&columns, &masks, block_rows, &heads)?;
        let out = Arrays {
            rows: rows.rows,
            cols: rows.cols,
            block_rows,
            shares_log2: rules.shares_log2,
            nnz: rows.nnz,
            heads,
            parts: part_heads,
            masks,
            values,
            narrow,
            wide,
            origins,
        };
        filled(cx, out)
    }
}

impl Arrays {
    /// Makes the layout of rows that have been validated and are sorted; the longest has `longest` entries.
    /// `rules` chooses the rules by the numbers of blocks. `origins` is given if values will be updated, with
    /// the positions of the user's values. Blocks.
    pub(super) fn build(
        cx: &DeviceCall<'_>,
        rows: &Rows,
        longest: i64,
        value_type: DataType,
        rules: impl Fn(&Counts) -> Rules,
        origins: Origins<'_>,
    ) -> Result<Self> {
        if rows.rows == 0 {
            let Rules { block_rows, shares_log2, .. } = rules(&Counts::default());
            return Ok(Arrays {
                rows: 0,
                cols: rows.cols,
                block_rows,
                shares_log2,
                nnz: 0,
                heads: DeviceBuffer::new(cx, 0)?,
                parts: DeviceBuffer::new(cx, 0)?,
                masks: DeviceBuffer::new(cx, 0)?,
                values: DeviceBuffer::new(cx, 0)?,
                narrow: DeviceBuffer::new(cx, 0)?,
                wide: DeviceBuffer::new(cx, 0)?,
                origins: sell::origins_of(cx, 0, 0, origins)?.0,
            });
        }
        Build::new(cx, rows, longest)?.run(value_type, rules, origins)
    }

    fn blocks(&self) -> usize {
        self.narrow.len()
    }
}
filled_members!(Arrays { heads, parts, masks, values, narrow, wide, origins });

/// Layout and kernel of SpMV `mask_block`.
pub(super) struct MaskBlockSpmv {
    arrays: Arrays,
    grid: u32,
    kernel: Kernel,
    refill: sell::Refill,
}

impl SpmvLayout for MaskBlockSpmv {
    fn make(cx: &DeviceCall<'_>, problem: &SpmvProblem, inspected: Option<&InspectedMatrix>) -> Result<Self> {
        let types = problem.types;
        let (operand, stats) = inspection::sorted_operand(cx, problem, inspected)?;
        let origins = operand.origins(problem.value_updates);
        let warps = select::warps_at_once(cx.device.properties().multiprocessors as usize);
        let rules = |counts: &Counts| select::rules(counts, warps, COUNTERS);
        let arrays = Arrays::build(cx, &operand.rows(), stats.max, types.a, rules, origins)?;
        let kernel = PRODUCT.load(cx.device, (arrays.block_rows, types_name(types)))?;
        let refill = sell::Refill::new(cx.device, (problem.op, types.a), arrays.origins.as_ref())?;
        // The number of blocks fits: there are fewer than 2^31 rows, few of which have several shares, and
        // pieces consist of entries that are in memory.
        let grid = (arrays.heads.len() as u64).div_ceil(WARPS) as u32;
        Ok(MaskBlockSpmv { arrays, grid, kernel, refill })
    }

    fn workspace_bytes(&self, types: Types) -> usize {
        self.arrays.parts.len() * self.arrays.block_rows * types.compute.scalar().size()
    }

    fn multiply(
        &self,
        cx: &DeviceCall<'_>,
        _: Types,
        (alpha, beta): (Scalar, Scalar),
        [x, _, y]: [&DenseVector; 3],
    ) -> Result<()> {
        let Arrays { rows, cols, heads, parts, masks, values, narrow, wide, .. } = &self.arrays;
        // SAFETY: analysis has made the arrays; the descriptors promise x and y of these sizes until the
        // stream has run the kernel, and the plan promises that they do not overlap; the workspace
        // has been checked, and the handle lends it and its counters, one for each split slab, to one call at a
        // time.
        unsafe {
            launch_product!(self.kernel, self.grid, THREADS, 0, cx.stream;
                *rows, *cols, (heads.len() - parts.len()) as i64, heads.len() as i64, heads.address(), parts.address(), masks.address(), values.address(),
                narrow.address(), wide.address(), x.values, y.values, alpha, beta, self.arrays.shares_log2 as i32,
                cx.workspace.address, cx.counters)
        }
    }

    fn refill(&self, cx: &DeviceCall<'_>, values: Address) -> Result<bool> {
        let to = (self.arrays.nnz as usize, self.arrays.values.address());
        self.refill.run(cx, (values, self.arrays.origins.as_ref()), to)
    }

    fn info(&self) -> LayoutInfo {
        let fill = fill_ratio(self.arrays.blocks(), self.arrays.block_rows, self.arrays.nnz as usize);
        LayoutInfo { kind: LayoutKind::MaskBlock, in_place: false, fill }
    }

    fn details(&self) -> String {
        mask_block::details(self.arrays.block_rows)
    }
}

#[cfg(test)]
mod tests;

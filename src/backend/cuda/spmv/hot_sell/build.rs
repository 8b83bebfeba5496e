//! Builder of the arrays of src/format/hot_sell.rs on the device (kernels/format/hot_sell.cu).

use crate::backend::cuda::check::blocks;
use crate::backend::cuda::convert::device_wide::{self, starts, Narrow};
use crate::backend::cuda::convert::{bits_of_values, Origins};
use crate::backend::cuda::device::DeviceCall;
use crate::backend::cuda::launch::{launch, Kernel};
use crate::backend::cuda::layouts::same_elements;
use crate::backend::cuda::memory::{filled, filled_members, DeviceBuffer, Numbers};
use crate::backend::cuda::module::kinds::kernel_kinds;
use crate::backend::cuda::operand::{Rows, Widths};
use crate::backend::cuda::spmv::sell::{self, blocks_of_warps, CONVERT_THREADS};
use crate::error::{Error, Result};
use crate::format::hot_sell::{Classes, HotLimit, LongRow, Rules, SliceHead, BUCKETS, CLASSES, STEP};
use crate::select::spmv::hot_sell::SAMPLE;
use crate::types::{DataType, IndexType};

same_elements!(SliceHead = "format/hot_sell.cuh SliceHead" { first, place, steps, lanes_log2, items });
same_elements!(LongRow = "format/hot_sell.cuh LongRow" { row, first, count, unused });

const CONVERT: &str = "format/hot_sell";

kernel_kinds! { "format/hot_sell" {
    COUNT(IndexType) = "count" for [index_types()];
    KEYS(IndexType) = "keys" for [index_types()];
    PARTS(IndexType) = "parts" for [index_types()];
    HEADS(IndexType) = "heads" for [index_types()];
    FILL(&'static str, Widths, &'static str) = "fill"
            for [BITS, widths(), ["32"]], [BITS, wide_offsets(), ["64"]];
} }

/// Hot columns and their codes.
pub(super) struct HotColumns {
    /// Hot columns, ascending.
    pub list: DeviceBuffer<u32>,
    /// Code that is stored for padding, then the code for each column.
    codes: DeviceBuffer<u32>,
}

/// Layout `hot_sell` on the device.
pub(super) struct Arrays {
    pub rows: i64,
    pub nnz: i64,
    pub filled: u64,
    pub order: DeviceBuffer<u32>,
    pub heads: DeviceBuffer<SliceHead>,
    /// Number of slices that are pieces of split rows.
    pub parts: usize,
    pub long_rows: DeviceBuffer<LongRow>,
    pub values: DeviceBuffer<u8>,
    pub columns: DeviceBuffer<u32>,
    pub hot: DeviceBuffer<u32>,
    pub origins: Option<Numbers>,
}

/// Call and rows for the kernels of the conversion.
pub(super) struct Build<'a> {
    pub cx: &'a DeviceCall<'a>,
    pub rows: &'a Rows,
}

impl Build<'_> {
    fn kernel(&self, name: &str) -> Result<Kernel> {
        self.cx.device.modules().kernel(CONVERT, name)
    }

    /// Counts the entries of each column among every `stride`-th entry, and how many columns have each count.
    fn count(&self, stride: i64) -> Result<(DeviceBuffer<u32>, Vec<u32>)> {
        let (cx, rows) = (self.cx, self.rows);
        let counts = DeviceBuffer::<u32>::zeroed(cx, rows.cols as usize)?;
        let buckets = DeviceBuffer::<u32>::zeroed(cx, BUCKETS)?;
        let count = COUNT.load(self.cx.device, (rows.index_type,))?;
        let histogram = self.kernel("hot_histogram")?;
        let grid = blocks(self.cx.device, rows.nnz.div_euclid(stride) + 1);
        // SAFETY: there are nnz columns of this type, which have been validated, one count per column, and
        // BUCKETS buckets.
        unsafe {
            launch!(count, grid, CONVERT_THREADS, 0, cx.stream;
                rows.indices, rows.base, rows.nnz, stride, counts.address())?;
            launch!(histogram, blocks(self.cx.device, rows.cols), CONVERT_THREADS, 0, cx.stream;
                counts.address(), rows.cols, buckets.address())?;
        }
        let buckets = buckets.read(0, BUCKETS)?;
        Ok((counts, buckets))
    }

    /// Finds up to `most` hot columns; `None` unless they have at least this share of the entries. Blocks.
    pub(super) fn hot_columns(&self, most: usize, least_share: f64) -> Result<Option<HotColumns>> {
        let (cx, rows) = (self.cx, self.rows);
        let is_enough = |limit: &HotLimit, entries: i64| {
            let hot = entries as f64 - limit.cold as f64;
            limit.count > 0 && hot >= least_share * entries as f64
        };
        let (_, buckets) = self.count(SAMPLE)?;
        let sampled = (rows.nnz + SAMPLE - 1) / SAMPLE;
        if !is_enough(&HotLimit::new(&buckets, most), sampled) {
            return Ok(None);
        }
        let (counts, buckets) = self.count(1)?;
        let limit = HotLimit::new(&buckets, most);
        if !is_enough(&limit, rows.nnz) {
            return Ok(None);
        }
        let (bucket, ties, count) = (limit.bucket as u32, limit.ties as u32, limit.count as u32);
        let before = DeviceBuffer::<i64>::new(cx, rows.cols as usize)?;
        let list = DeviceBuffer::<u32>::new(cx, limit.count)?;
        let codes = DeviceBuffer::<u32>::new(cx, rows.cols as usize + 1)?;
        let grid = blocks(self.cx.device, rows.cols);
        let (flags, encode) = (self.kernel("hot_flags")?, self.kernel("hot_codes")?);
        // SAFETY: there is one count and one number per column, and one more code than columns; the histogram
        // of the counts says how many columns are hot.
        unsafe {
            launch!(flags, grid, CONVERT_THREADS, 0, cx.stream;
                counts.address(), rows.cols, bucket, before.address())?;
            device_wide::scan(cx, &before)?;
            launch!(encode, grid, CONVERT_THREADS, 0, cx.stream;
                counts.address(), rows.cols, bucket, ties, count, before.address(), list.address(),
                codes.address())?;
        }
        Ok(Some(HotColumns { list, codes }))
    }

    /// Sorts the rows by descending length, and counts the rows that are longer than each bound.
    fn order(&self, rules: Rules, longest: i64) -> Result<(DeviceBuffer<u32>, [u64; CLASSES + 1])> {
        let (cx, rows) = (self.cx, self.rows);
        let count = rows.rows as usize;
        let key_bits = (longest as u64).checked_ilog2().map_or(1, |log2| log2 + 1);
        let (keys, order) = device_wide::sorted::<Narrow>(cx, count, key_bits, |keys, numbers| {
            let kernel = KEYS.load(self.cx.device, (rows.offset_type,))?;
            // SAFETY: there are rows + 1 offsets, and one key and one number per row.
            unsafe {
                launch!(kernel, blocks(self.cx.device, rows.rows), CONVERT_THREADS, 0, cx.stream;
                    rows.offsets, rows.rows, longest, keys, numbers)
            }
        })?;
        // A row is longer than a bound if its key is less than the longest row's length minus the bound.
        let bounds: Vec<i64> = rules.bounds().iter().map(|&bound| longest - bound as i64).collect();
        let bounds = DeviceBuffer::from_slice(cx, &bounds)?;
        let longer = DeviceBuffer::<u64>::new(cx, CLASSES + 1)?;
        // SAFETY: there are the sorted keys, and as many bounds and counts as threads.
        unsafe {
            launch!(self.kernel("hot_classes")?, 1, (CLASSES + 1) as u32, 0, cx.stream;
                keys.address(), rows.rows, bounds.address(), longer.address())?;
        }
        let longer = longer.read(0, CLASSES + 1)?;
        Ok((order, std::array::from_fn(|bound| longer[bound])))
    }

    /// Makes the layout of rows that have been validated, the longest of which has `longest` entries; without
    /// `rows.values` no values are stored. `origins` is given if values will be updated, with the positions
    /// of the user's values. `None` if more than `most_cut` rows are split, or if a number exceeds the
    /// layout's limits. Blocks.
    pub(super) fn run(
        &self,
        rules: Rules,
        longest: i64,
        most_cut: usize,
        hot: HotColumns,
        value_type: DataType,
        origins: Origins<'_>,
    ) -> Result<Option<Arrays>> {
        let Build { cx, rows } = *self;
        let limit = rules.limit as i32;
        if longest > i64::from(u32::MAX) {
            return Ok(None);
        }
        let (order, longer) = self.order(rules, longest)?;
        let (classes, of_classes) = rules.classes(longer);
        let cut = classes.cut as i64;
        if cut > most_cut as i64 {
            return Ok(None);
        }
        let parts_before = DeviceBuffer::<i64>::zeroed(cx, cut as usize + 1)?;
        let kernel = PARTS.load(cx.device, (rows.offset_type,))?;
        // SAFETY: there are rows + 1 offsets, one row per element of `order`, and one number for each split
        // row.
        unsafe {
            launch!(kernel, blocks(cx.device, cut), CONVERT_THREADS, 0, cx.stream;
                rows.offsets, order.address(), cut, limit, parts_before.address())?;
        }
        let parts = starts(cx, &parts_before)?;
        let slices = parts + of_classes as i64;
        if slices > i64::from(i32::MAX) {
            return Ok(None);
        }
        let heads = DeviceBuffer::<SliceHead>::new(cx, slices as usize)?;
        let long_rows = DeviceBuffer::<LongRow>::new(cx, cut as usize)?;
        let steps = DeviceBuffer::<i64>::zeroed(cx, slices as usize + 1)?;
        let classes_there = DeviceBuffer::<Classes>::from_slice(cx, &[classes])?;
        let kernel = HEADS.load(cx.device, (rows.offset_type,))?;
        // SAFETY: as above; the classes and the pieces say how many slices there are.
        unsafe {
            launch!(kernel, blocks(cx.device, slices), CONVERT_THREADS, 0, cx.stream;
                rows.offsets, order.address(), classes_there.address(), limit, parts_before.address(),
                slices, heads.address(), long_rows.address(), steps.address())?;
        }
        let slots = (starts(cx, &steps)? as usize)
            .checked_mul(STEP)
            .ok_or_else(|| Error::unsupported("A: too many values for this layout"))?;
        let value_bytes = if rows.values.is_null() { 0 } else { value_type.size() };
        let values = DeviceBuffer::<u8>::new(cx, slots.saturating_mul(value_bytes))?;
        let columns = DeviceBuffer::<u32>::new(cx, slots)?;
        let (origins, from) = sell::origins_of(cx, slots, rows.nnz, origins)?;
        let (to, position) = sell::address_and_bits(origins.as_ref());
        let kernel = FILL.load(cx.device, (bits_of_values(value_type)?, rows.widths(), position))?;
        // SAFETY: as above; values (both arrays or none), columns and positions have one element per slot,
        // and `from` has one position per entry.
        unsafe {
            launch!(kernel, blocks_of_warps(slices)?, CONVERT_THREADS, 0, cx.stream;
                rows.offsets, rows.indices, rows.values, rows.base, order.address(), limit, slices,
                steps.address(), long_rows.address(), hot.codes.address(), heads.address(),
                values.address(), columns.address(), from, to)?;
        }
        let out = Arrays {
            rows: rows.rows,
            nnz: rows.nnz,
            filled: classes.filled,
            order,
            heads,
            parts: parts as usize,
            long_rows,
            values,
            columns,
            hot: hot.list,
            origins,
        };
        filled(cx, out).map(Some)
    }
}

impl Arrays {
    /// Number of slots for values.
    pub(super) fn slots(&self) -> usize {
        self.columns.len()
    }
}
filled_members!(Arrays { order, heads, long_rows, values, columns, hot, origins });

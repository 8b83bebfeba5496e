//! Builder of DASP's arrays on the device. They are those that src/format/dasp.rs describes, bit-identical to
//! the host's, made by kernels/format/dasp.cu, one sort of the rows, and scans over long rows and row blocks.
//! Only counts are copied to the host.

use bytemuck::{Pod, Zeroable};

use crate::backend::cuda::check::blocks;
use crate::backend::cuda::convert::device_wide::{self, starts, Narrow};
use crate::backend::cuda::convert::values::Gather;
use crate::backend::cuda::convert::{Origins, Positions};
use crate::backend::cuda::device::DeviceCall;
use crate::backend::cuda::launch::{launch, Kernel, Parameter};
use crate::backend::cuda::layouts::same_elements;
use crate::backend::cuda::memory::{self, filled_members, DeviceBuffer, Numbers};
use crate::backend::cuda::module::kinds::kernel_kinds;
use crate::backend::cuda::operand::{Operand, Rows};
use crate::error::Result;
use crate::format::dasp::{
    self, Classes, DaspPart, DaspShape, Results, Split, Task, GROUP, KEYS, PIECES, ROWS, RUN,
};
use crate::types::{Address, DataType, IndexType};

same_elements!(dasp::Task = "format/dasp.cuh Task" { first, groups, row });
same_elements!(dasp::Split = "format/dasp.cuh Split" { first, before, tasks, row });

const MODULE: &str = "format/dasp";

kernel_kinds! { "format/dasp" {
    KEYS_OF_ROWS(IndexType) = "keys" for [index_types()];
    COUNT_LONG(IndexType) = "count_long" for [index_types()];
    COUNT_ROW_BLOCKS(IndexType) = "count_row_blocks" for [index_types()];
    MAP_LONG(IndexType, &'static str) = "map_long"
            for [index_types(), ["32"]], [[IndexType::I64], ["64"]];
    MAP_MEDIUM(IndexType, &'static str) = "map_medium"
            for [index_types(), ["32"]], [[IndexType::I64], ["64"]];
    MAP_SHORT(IndexType, &'static str) = "map_short"
            for [index_types(), ["32"]], [[IndexType::I64], ["64"]];
    COLUMNS(IndexType, &'static str) = "columns" for [index_types(), ["32", "64"]];
    COMPOSE(&'static str) = "compose" for [["32", "64"]];
} }
/// Bits of a row's sort key.
const KEY_BITS: u32 = (KEYS - 1).ilog2() + 1;
/// Lanes that work on a group or a row block.
const WARP: usize = 32;

/// Returns whether a test asks for 64-bit maps, which only matrices too large for a test would need.
fn is_wide() -> bool {
    #[cfg(test)]
    return super::tests::WIDE.get();
    #[cfg(not(test))]
    false
}

/// DASP's arrays on the device.
pub(super) struct DeviceDasp {
    value_type: DataType,
    entries: i64,
    /// Number of rows of op(A).
    pub rows: i64,
    pub shape: DaspShape,
    /// Number of rows with each key.
    pub histogram: Vec<u64>,
    pub values: DeviceBuffer<u8>,
    pub columns: DeviceBuffer<i32>,
    pub order: DeviceBuffer<i32>,
    pub runs: DeviceBuffer<i32>,
    pub tasks: DeviceBuffer<Task>,
    pub splits: DeviceBuffer<Split>,
    pub regular: DeviceBuffer<i64>,
    pub irregular: DeviceBuffer<i64>,
    pub ends: DeviceBuffer<u16>,
    /// Number of tasks of split rows.
    pub split_tasks: usize,
    /// True if new values from the user are conjugated.
    pub conjugate: bool,
    /// Kernel that gathers values through the map.
    gather: Gather,
    /// Map from slots to the user's values; `None` if values will not be updated.
    map: Option<Numbers>,
}

/// All arrays except values and columns.
struct Structure {
    shape: DaspShape,
    histogram: Vec<u64>,
    /// Number of the entry that each slot takes; all ones for padding.
    map: Numbers,
    order: DeviceBuffer<i32>,
    runs: DeviceBuffer<i32>,
    long: Long,
    medium: Medium,
}

/// Long rows, their groups and their tasks.
struct Long {
    /// First group of each long row, and the number of all groups.
    groups: DeviceBuffer<i64>,
    group_count: usize,
    tasks: DeviceBuffer<Task>,
    splits: DeviceBuffer<Split>,
    split_tasks: usize,
}

/// Row blocks of medium rows.
struct Medium {
    regular: DeviceBuffer<i64>,
    irregular: DeviceBuffer<i64>,
    ends: DeviceBuffer<u16>,
    /// Numbers of regular blocks and of irregular entries.
    totals: (usize, usize),
}

/// Order of the results, laid out as the kernels' `Order`.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Order {
    ends: [i64; 6],
    first: [i64; 6],
    count: [i64; 6],
    threes: i64,
}

// SAFETY: the kernel's structure has the same members, all of 8 bytes.
unsafe impl Parameter for Order {}

impl DeviceDasp {
    /// Builds the layout from rows of op(A); `keep_map`: [`DeviceDasp::refill`] will be used. Blocks, but
    /// kernels that fill the arrays may still be pending. The operand must live until the stream has been
    /// waited for.
    ///
    /// Temporary memory: 16 bytes per row, 24 per long row, and 4 per slot (8 from 2^32 entries on) where the
    /// map is not kept.
    pub fn build(
        cx: &DeviceCall<'_>,
        operand: &Operand,
        value_type: DataType,
        keep_map: bool,
    ) -> Result<Self> {
        let tools = Tools { cx };
        let rows = operand.rows();
        let Structure { shape, histogram, mut map, order, runs, long, medium } = tools.structure(&rows)?;
        let columns = DeviceBuffer::<i32>::new(cx, shape.slot_count())?;
        tools.columns(&rows, &map, &columns)?;
        let values = DeviceBuffer::<u8>::new(cx, shape.slot_count().saturating_mul(value_type.size()))?;
        let gather = Gather::load(cx.device, value_type, map.bits())?;
        // The rows have been conjugated already.
        let to = (shape.slot_count() as i64, values.address());
        gather.launch(cx, (rows.values, map.at(0)), false, to)?;
        tools.compose(operand.origins(keep_map), &mut map, shape.slot_count())?;
        Ok(DeviceDasp {
            value_type,
            entries: rows.nnz,
            rows: rows.rows,
            shape,
            histogram,
            values,
            columns,
            order,
            runs,
            tasks: long.tasks,
            splits: long.splits,
            regular: medium.regular,
            irregular: medium.irregular,
            ends: medium.ends,
            split_tasks: long.split_tasks,
            conjugate: false,
            gather,
            map: keep_map.then_some(map),
        })
    }

    /// Enqueues the gathering of new values from an array in the user's order, without allocation or wait.
    /// Returns false, and does nothing, if the map was not kept.
    pub fn refill(&self, cx: &DeviceCall<'_>, values: Address) -> Result<bool> {
        let Some(map) = &self.map else {
            return Ok(false);
        };
        self.gather.launch(cx, (values, map.at(0)), self.conjugate, self.slots())?;
        Ok(true)
    }

    /// Refills the values from rows of op(A) with the same pattern where the map was not kept, by making the
    /// map again. The arrays stay where they are. Blocks.
    pub fn rebuild(&self, cx: &DeviceCall<'_>, operand: &Operand) -> Result<()> {
        let tools = Tools { cx };
        let rows = operand.rows();
        let map = tools.structure(&rows)?.map;
        let gather = Gather::load(cx.device, self.value_type, map.bits())?;
        gather.launch(cx, (rows.values, map.at(0)), false, self.slots())?;
        memory::synchronize(cx.stream)
    }

    /// Ratio of slots for values to stored entries.
    pub fn fill_ratio(&self) -> f64 {
        self.shape.fill_ratio(self.entries as usize)
    }

    /// Number of slots for values, and their address.
    fn slots(&self) -> (i64, Address) {
        (self.shape.slot_count() as i64, self.values.address())
    }
}
filled_members!(DeviceDasp { values, columns, order, runs, tasks, splits, regular, irregular, ends, map });

/// Kernels of the conversion, in a call.
struct Tools<'a> {
    cx: &'a DeviceCall<'a>,
}

impl Tools<'_> {
    fn kernel(&self, name: &str) -> Result<Kernel> {
        self.cx.device.modules().kernel(MODULE, name)
    }

    fn blocks(&self, count: usize) -> u32 {
        blocks(self.cx.device, count as i64)
    }

    fn structure(&self, rows: &Rows) -> Result<Structure> {
        let (sorted, histogram) = self.sort(rows)?;
        let classes = Classes::new(&histogram);
        let long = self.long_rows(rows, &sorted, classes.long)?;
        let medium = self.row_blocks(rows, &sorted, &classes)?;
        let shape = DaspShape::new(classes, long.group_count, medium.totals.0, medium.totals.1);
        let order = self.order(&shape, &sorted)?;
        let runs = self.runs(&order)?;
        let map = self.map(rows, &shape, &sorted, &order, &long, &medium)?;
        Ok(Structure { shape, histogram, map, order, runs, long, medium })
    }

    /// Sorts the rows by descending length, where long rows come first in their own order, and counts the
    /// rows with each key.
    fn sort(&self, rows: &Rows) -> Result<(DeviceBuffer<u32>, Vec<u64>)> {
        let (cx, n) = (self.cx, rows.rows as usize);
        let histogram = DeviceBuffer::<u64>::zeroed(cx, KEYS)?;
        let (_, numbers) = device_wide::sorted::<Narrow>(cx, n, KEY_BITS, |keys, numbers| {
            if n == 0 {
                return Ok(());
            }
            let kernel = KEYS_OF_ROWS.load(self.cx.device, (rows.offset_type,))?;
            // SAFETY: there are rows + 1 offsets of this type, n keys and numbers, and KEYS counts.
            unsafe {
                launch!(kernel, self.blocks(n), 256, 0, cx.stream;
                    rows.offsets, rows.rows, keys, numbers, histogram.address())
            }
        })?;
        Ok((numbers, histogram.read(0, KEYS)?))
    }

    fn long_rows(&self, rows: &Rows, sorted: &DeviceBuffer<u32>, count: usize) -> Result<Long> {
        let cx = self.cx;
        let numbers = || DeviceBuffer::<i64>::new(cx, if count == 0 { 0 } else { count + 1 });
        let (groups, task_starts, split_starts) = (numbers()?, numbers()?, numbers()?);
        if count == 0 {
            let (tasks, splits) = (DeviceBuffer::new(cx, 0)?, DeviceBuffer::new(cx, 0)?);
            return Ok(Long { groups, group_count: 0, tasks, splits, split_tasks: 0 });
        }
        let kernel = COUNT_LONG.load(self.cx.device, (rows.offset_type,))?;
        // SAFETY: the first `count` of the sorted rows are long; each array has `count` + 1 numbers.
        unsafe {
            launch!(kernel, self.blocks(count + 1), 256, 0, cx.stream;
                rows.offsets, sorted.address(), count as i64, groups.address(), task_starts.address(),
                split_starts.address())?;
        }
        let group_count = starts(cx, &groups)? as usize;
        let task_count = starts(cx, &task_starts)? as usize;
        let split_count = starts(cx, &split_starts)? as usize;
        let tasks = DeviceBuffer::<Task>::new(cx, task_count)?;
        let splits = DeviceBuffer::<Split>::new(cx, split_count)?;
        let kernel = self.kernel("dasp_tasks")?;
        // SAFETY: the scans say how many tasks and split rows there are.
        unsafe {
            launch!(kernel, self.blocks(task_count), 256, 0, cx.stream;
                sorted.address(), count as i64, groups.address(), task_starts.address(), split_starts.address(),
                task_count as i64, tasks.address(), splits.address())?;
        }
        // Each row that is not split has one task.
        let split_tasks = task_count - (count - split_count);
        Ok(Long { groups, group_count, tasks, splits, split_tasks })
    }

    fn row_blocks(&self, rows: &Rows, sorted: &DeviceBuffer<u32>, classes: &Classes) -> Result<Medium> {
        let (cx, count) = (self.cx, classes.row_blocks());
        let regular = DeviceBuffer::<i64>::zeroed(cx, count + 1)?;
        let irregular = DeviceBuffer::<i64>::zeroed(cx, count + 1)?;
        let ends = DeviceBuffer::<u16>::new(cx, count * ROWS)?;
        let mut totals = (0, 0);
        if count > 0 {
            let kernel = COUNT_ROW_BLOCKS.load(self.cx.device, (rows.offset_type,))?;
            // SAFETY: the sorted rows behind the long ones are medium; there are `count` + 1 numbers of each
            // kind, and 8 · `count` ends.
            unsafe {
                launch!(kernel, self.blocks(4 * count + 1), 256, 0, cx.stream;
                    rows.offsets, sorted.at(classes.long), classes.medium as i64, count as i64,
                    regular.address(), irregular.address(), ends.address())?;
            }
            totals = (starts(cx, &regular)? as usize, starts(cx, &irregular)? as usize);
        }
        Ok(Medium { regular, irregular, ends, totals })
    }

    /// Lists the rows in the order of the results.
    fn order(&self, shape: &DaspShape, sorted: &DeviceBuffer<u32>) -> Result<DeviceBuffer<i32>> {
        let out = DeviceBuffer::<i32>::new(self.cx, shape.result_count())?;
        let parts = [
            Results::OneThree,
            Results::TwoTwo,
            Results::Four,
            Results::Single,
            Results::Medium,
            Results::Empty,
        ];
        let sources = shape.sources();
        let order = Order {
            ends: parts.map(|part| shape.results(part).end as i64),
            first: sources.map(|(first, _)| first as i64),
            count: sources.map(|(_, count)| count as i64),
            threes: shape.threes() as i64,
        };
        let kernel = self.kernel("dasp_order")?;
        // SAFETY: the sources are ranges of the sorted rows.
        unsafe {
            launch!(kernel, self.blocks(out.len()), 256, 0, self.cx.stream; sorted.address(), order, out.address())?;
        }
        Ok(out)
    }

    /// Lists, for each run of results, the first row if the rows of the run are consecutive.
    fn runs(&self, order: &DeviceBuffer<i32>) -> Result<DeviceBuffer<i32>> {
        let out = DeviceBuffer::<i32>::new(self.cx, order.len().div_ceil(RUN))?;
        let kernel = self.kernel("dasp_runs")?;
        // SAFETY: there is one run for each 32 results, or for the rest of them.
        unsafe {
            launch!(kernel, self.blocks(4 * order.len()), 256, 0, self.cx.stream;
                order.address(), order.len() as i64, out.address())?;
        }
        Ok(out)
    }

    fn map(
        &self,
        rows: &Rows,
        shape: &DaspShape,
        sorted: &DeviceBuffer<u32>,
        order: &DeviceBuffer<i32>,
        long: &Long,
        medium: &Medium,
    ) -> Result<Numbers> {
        let stream = self.cx.stream;
        // The largest number marks padding.
        let is_wide = rows.nnz >= i64::from(u32::MAX) || is_wide();
        let map = Numbers::new(self.cx, shape.slot_count(), is_wide)?;
        let (widths, classes) = ((rows.offset_type, map.bits()), &shape.classes);
        let of = |part: DaspPart| map.at(shape.slots(part).start);
        if long.group_count > 0 {
            let kernel = MAP_LONG.load(self.cx.device, widths)?;
            let grid = self.blocks(long.group_count.saturating_mul(GROUP));
            // SAFETY: there are rows + 1 offsets of this type; the part has 64 slots per group.
            unsafe {
                launch!(kernel, grid, 256, 0, stream;
                    rows.offsets, rows.base, sorted.address(), classes.long as i64, long.groups.address(),
                    long.group_count as i64, of(DaspPart::Long))?;
            }
        }
        if classes.medium > 0 {
            let kernel = MAP_MEDIUM.load(self.cx.device, widths)?;
            let grid = self.blocks(classes.row_blocks().saturating_mul(4 * WARP));
            // SAFETY: as above; the parts have as many slots as the scans say.
            unsafe {
                launch!(kernel, grid, 256, 0, stream;
                    rows.offsets, rows.base, sorted.at(classes.long), classes.medium as i64,
                    classes.row_blocks() as i64, dasp::loops(classes.medium) as i32, medium.regular.address(),
                    medium.irregular.address(),
                    of(DaspPart::Regular), of(DaspPart::Irregular))?;
            }
        }
        let kernel = MAP_SHORT.load(self.cx.device, widths)?;
        let pieces = PIECES.map(|(results, part, cut)| (results, part, cut.unwrap_or(0) as i32));
        for (results, part, cut) in pieces.into_iter().chain([(Results::Single, DaspPart::Single, -1)]) {
            let slots = shape.slots(part).len();
            // SAFETY: the part has these slots, and `order` their rows.
            unsafe {
                launch!(kernel, self.blocks(slots), 256, 0, stream;
                    rows.offsets, rows.base, order.at(shape.results(results).start), cut, slots as i64, of(part))?;
            }
        }
        Ok(map)
    }

    fn columns(&self, rows: &Rows, map: &Numbers, columns: &DeviceBuffer<i32>) -> Result<()> {
        let kernel = COLUMNS.load(self.cx.device, (rows.index_type, map.bits()))?;
        let slots = columns.len();
        // SAFETY: for each slot the map has a position among the columns, or padding.
        unsafe {
            launch!(kernel, self.blocks(slots), 256, 0, self.cx.stream;
                rows.indices, rows.base, map.at(0), slots as i64, columns.address())
        }
    }

    /// Changes the map from positions in the canonical copy to positions in the user's array.
    fn compose(&self, origins: Origins<'_>, map: &mut Numbers, slots: usize) -> Result<()> {
        let Some(Some(Positions::Kept(positions))) = origins else {
            return Ok(());
        };
        let kernel = COMPOSE.load(self.cx.device, (map.bits(),))?;
        // SAFETY: there are nnz positions; for each slot the map has an index into them, or padding.
        unsafe {
            launch!(kernel, self.blocks(slots), 256, 0, self.cx.stream;
                positions.address(), slots as i64, map.at(0))
        }
    }
}

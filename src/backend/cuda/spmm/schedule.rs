//! Lists of equal work that `row` makes of the rows' lengths (kernels/spmm/tasks.cu).
//!
//! Where rows are short on average, neighbours are packed into runs of about as many entries for a
//! group of lanes each; longer rows go to warps, and long ones are cut into parts for blocks, which
//! the last block of a row adds in their order. Where rows are long on average they are runs, too,
//! unless they are of about one length: then there are no lists.

use bytemuck::{Pod, Zeroable};

use crate::backend::cuda::convert::device_wide;
use crate::backend::cuda::device::Device;
use crate::backend::cuda::launch::launch;
use crate::backend::cuda::layouts::same_layout;
use crate::backend::cuda::memory::DeviceBuffer;
use crate::backend::cuda::operand::{RowStats, Rows};
use crate::error::{Error, Result};
use crate::memory::{Context, COUNTER_BYTES};
use crate::select::spmm::row::{warps_at_once, Limits, WARPS};
use crate::types::{Address, IndexType};

/// Rows of a window, and lists and other things that are counted (tasks.cu).
const WINDOW: usize = 256;
const LISTS: usize = 5;
/// Tiles along N that one launch takes.
const MOST_TILES: usize = 65535;

/// Kernels' `Tasks`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(super) struct Tasks {
    parts: Address,
    part_count: i64,
    warps: Address,
    warp_count: i64,
    runs: Address,
    count: i64,
    spread: i64,
    counters: Address,
    counter_count: i64,
}
same_layout!(Tasks = "spmm/row.cuh Tasks" { parts, part_count, warps, warp_count, runs, count, spread, counters, counter_count });

same_layout!(Limits = "spmm/tasks.cu Limits" { most, part, alone, quota });

/// Kernels' `Run`.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C, align(16))]
struct Run {
    begin: i64,
    row: i32,
    rows: u16,
    length: u16,
}

/// Kernels' `Part`.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C, align(16))]
struct Part {
    begin: i64,
    length: i32,
    row: i32,
    first: i32,
    count: i32,
    index: i32,
    counter: i32,
}

/// What analysis made of the rows' lengths.
pub(super) struct Schedule {
    lists: Option<Lists>,
    is_packed: bool,
    pub(super) row_count: i64,
    /// Runs, or rows.
    count: i64,
    warp_count: i64,
    part_count: i64,
    /// Sums of parts that are added.
    pub(super) slots: i64,
    counter_count: i64,
}

struct Lists {
    runs: DeviceBuffer<Run>,
    warps: DeviceBuffer<Run>,
    parts: DeviceBuffer<Part>,
}

impl Schedule {
    /// Blocks.
    pub(super) fn build(cx: &Context, device: &Device, rows: &Rows, stats: &RowStats) -> Result<Self> {
        let plain = Schedule {
            lists: None,
            is_packed: false,
            row_count: rows.rows,
            count: rows.rows,
            warp_count: 0,
            part_count: 0,
            slots: 0,
            counter_count: 0,
        };
        // Lists number rows by 32 bits; more rows go as they are.
        let Ok(count) = i32::try_from(rows.rows) else {
            if stats.max > i64::from(i32::MAX) {
                return Err(Error::unsupported(
                    "A: more than 2^31 - 1 rows and more than 2^31 - 1 entries in one of them",
                ));
            }
            return Ok(plain);
        };
        let at_once = warps_at_once(i64::from(device.properties().multiprocessors));
        let limits = match Limits::new(rows.rows, rows.nnz, stats.max, at_once) {
            Some(limits) if count > 0 => limits,
            _ => return Ok(plain),
        };
        let windows = (count as usize).div_ceil(WINDOW);
        let kernel = |name| device.modules().kernel("spmm/tasks", name);
        let (counting, filling) = (kernel("spmm_tasks_count")?, kernel("spmm_tasks_fill")?);
        let wide = i64::from(rows.offset_type == IndexType::I64);
        let (grid, block) = (windows as u32, WINDOW as u32);
        let counts = DeviceBuffer::<i64>::zeroed(cx, LISTS * windows + 1)?;
        let lengths = DeviceBuffer::<i64>::new(cx, LISTS)?;
        // SAFETY: counts has a place for each list and window of rows.
        unsafe {
            launch!(counting, grid, block, 0, cx.stream;
                rows.offsets, wide, rows.base, rows.rows, limits, counts.address())?;
            device_wide::exclusive_scan(cx, counts.address(), counts.address(), counts.len())?;
            launch!(kernel("spmm_tasks_lengths")?, 1, 32, 0, cx.stream;
                counts.address(), windows as i64, lengths.address())?;
        }
        let lengths = lengths.read(0, LISTS)?;
        let [count, warp_count, part_count, slots, counter_count] = [0, 1, 2, 3, 4].map(|list| lengths[list]);
        let runs = DeviceBuffer::<Run>::new(cx, count as usize)?;
        let warps = DeviceBuffer::<Run>::new(cx, warp_count as usize)?;
        let parts = DeviceBuffer::<Part>::new(cx, part_count as usize)?;
        // SAFETY: the lists hold what was counted.
        unsafe {
            launch!(filling, grid, block, 0, cx.stream;
                rows.offsets, wide, rows.base, rows.rows, limits, counts.address(), runs.address(),
                warps.address(), parts.address())?;
        }
        Ok(Schedule {
            lists: Some(Lists { runs, warps, parts }),
            is_packed: limits.quota > 0,
            row_count: rows.rows,
            count,
            warp_count,
            part_count,
            slots,
            counter_count,
        })
    }

    pub(super) fn seal(&mut self) {
        if let Some(Lists { runs, warps, parts }) = &mut self.lists {
            runs.seal();
            warps.seal();
            parts.seal();
        }
    }

    /// Runs have several rows.
    pub(super) fn is_packed(&self) -> bool {
        self.is_packed
    }

    /// Tiles along N of one launch: the counters of its cut rows are there.
    pub(super) fn tiles_at_once(&self) -> usize {
        match self.counter_count {
            0 => MOST_TILES,
            count => (COUNTER_BYTES / size_of::<u32>() / count as usize).clamp(1, MOST_TILES),
        }
    }

    /// Blocks whose warps take so many runs.
    pub(super) fn blocks(&self, runs_a_warp: i64) -> i64 {
        let ceil = |count: i64, by: i64| count / by + i64::from(count % by != 0);
        self.part_count + ceil(self.warp_count + ceil(self.count, runs_a_warp), WARPS)
    }

    /// For a launch in which `spread` groups share a run.
    pub(super) fn tasks(&self, spread: i64, counters: Address) -> Tasks {
        let (runs, warps, parts) = self
            .lists
            .as_ref()
            .map_or((Address::NULL, Address::NULL, Address::NULL), |Lists { runs, warps, parts }| {
                (runs.address(), warps.address(), parts.address())
            });
        Tasks {
            parts,
            part_count: self.part_count,
            warps,
            warp_count: self.warp_count,
            runs,
            count: self.count,
            spread,
            counters,
            counter_count: self.counter_count,
        }
    }
}

#[cfg(test)]
mod tests;

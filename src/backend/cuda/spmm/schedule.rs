//! Lists of equal work into which `row` divides the rows by their lengths (kernels/spmm/tasks.cu).
//!
//! Where rows are short on average, neighbours are packed into runs of about equally many entries, each for a
//! group of lanes; all groups of a warp share a longer row, and long ones are split into parts for blocks, whose
//! partial sums the last block of a row adds in order. Where rows are long on average each of them is a run, unless they
//! all have about the same length: then there are no lists. For groups of lanes on aligned rows of B and C
//! ([`RowLimits::of_groups`]) there are always lists: a short row is a run of its own, two or four groups share a row
//! of middle length, and long rows are split.
//!
//! Without a plan every run has equally many neighbouring rows, and one launch before the product lists, in
//! the workspace, the rows of those runs that are too long ([`Unanalyzed`]).

use bytemuck::{Pod, Zeroable};

use crate::backend::cuda::device::{Device, DeviceCall};
use crate::backend::cuda::launch::{launch, launch_overlapping, Kernel, Overlap};
use crate::backend::cuda::layouts::{kernel_structs, same_layout};
use crate::backend::cuda::memory::{DeviceBuffer, Fill};
use crate::backend::cuda::operand::Rows;
use crate::error::{Error, Result};
use crate::memory::COUNTER_BYTES;
use crate::select::spmm::row::{warps_at_once, Groups, RowLimits, Unanalyzed, WARPS};
use crate::select::spmm::tiles;
use crate::types::Address;

/// Rows of a window, and number of lists and other things that are counted (tasks.cu).
const WINDOW: usize = 256;
const LISTS: usize = 6;
/// Rows that one block reads to make lists without a plan (tasks.cu).
const LISTED: usize = 1024;
/// Number of the handle's counters, the last ones, by which lists without a plan are counted.
const STATE_WORDS: usize = 8;

/// Bytes in the workspace for the lengths of the lists and the decision of `columns`, which precede the lists.
const LENGTHS_BYTES: usize = 32;

kernel_structs! {
    /// Lists of rows for a launch, laid out as the kernels' `Tasks`.
    pub(super) struct Tasks = "spmm/row.cuh Tasks" {
        parts: Address,
        part_count: i64,
        shared_rows: Address,
        shared_count: i64,
        runs: Address,
        count: i64,
        spread: i64,
        counters: Address,
        counter_count: i64,
        rows: i64,
        rows_a_run: i64,
        run_limit: i64,
        lengths: Address,
    }

    /// Lists of rows for a launch of kernels with groups, laid out as the kernels' `GroupTasks`.
    pub(super) struct GroupTasks = "spmm/row_groups.cuh GroupTasks" {
        parts: Address,
        quads: Address,
        pairs: Address,
        rows: Address,
        quad_count: i64,
        pair_count: i64,
        row_count: i64,
        quads_from: u32,
        pairs_from: u32,
        rows_from: u32,
        counter_count: u32,
        counters: Address,
    }
}

same_layout!(RowLimits = "spmm/tasks.cu RowLimits" { longest_unsplit_row, longest_part, longest_row_in_run, run_length, longest_row_of_pair });

/// Run of rows, laid out as the kernels' `Run`.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C, align(16))]
struct Run {
    begin: i64,
    row: i32,
    rows: u16,
    length: u16,
}

/// Part of a split row, laid out as the kernels' `Part`.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C, align(16))]
struct RowPart {
    begin: i64,
    length: i32,
    row: i32,
    first: i32,
    count: i32,
    index: i32,
    counter: i32,
}

/// Loads the kernel that makes lists before a product.
fn making(device: &Device) -> Result<Kernel> {
    device.modules().kernel("spmm/tasks", "spmm_tasks_unanalyzed")
}

/// Numbers on which the limits of the lists are based.
#[derive(Clone, Copy, Debug)]
pub(super) enum Lengths {
    /// Groups of lanes for rows of B and C that are aligned.
    OfGroups(Groups),
    /// Entries of the longest row, for all other kernels: the rows must have been validated.
    Longest(i64),
}

/// Distribution of the rows of a matrix over warps and blocks.
pub(super) struct Schedule {
    lists: Lists,
    is_packed: bool,
    pub(super) row_count: i64,
    /// Number of runs.
    count: i64,
    rows_a_run: i64,
    shared_count: i64,
    /// Number of rows that four groups of a block share; they come first in the list of shared rows. `None` if
    /// the lists are not for groups of a block, so that all groups of a warp share each of these rows.
    quads: Option<i64>,
    part_count: i64,
    /// Number of partial sums of split rows.
    pub(super) slots: i64,
    counter_count: i64,
}

enum Lists {
    /// No lists: every row is a run, or every run has equally many neighbouring rows.
    None,
    /// Lists that analysis has made.
    Kept { runs: DeviceBuffer<Run>, shared_rows: DeviceBuffer<Run>, parts: DeviceBuffer<RowPart> },
    /// Lists that are made in the workspace before each product; `blocks` blocks multiply the rows in them.
    Made { unanalyzed: Unanalyzed, blocks: i64 },
}

/// Addresses of lists that are made before a product: lengths, shared rows, and parts.
struct MadeAt {
    lengths: Address,
    shared_rows: Address,
    parts: Address,
}

/// Counts of the lists' elements; [`Counting::fill`] makes the lists when they are known.
pub(super) struct Counting {
    limits: RowLimits,
    is_for_groups: bool,
    /// Elements of each list in the windows before each window, and in all (spmm_tasks_scan).
    counts: DeviceBuffer<i64>,
}

impl Counting {
    /// Number of words of a readback page that the lengths of the lists take.
    pub(super) const WORDS: usize = LISTS;

    /// Allocates the counts for these rows, whose pattern may be invalid; `None` if they need no lists.
    pub(super) fn new(cx: &DeviceCall<'_>, rows: &Rows, by: Lengths) -> Result<Option<Self>> {
        // Lists number rows by 32 bits; a matrix with more rows has no lists.
        let Ok(count) = i32::try_from(rows.rows) else { return Ok(None) };
        let multiprocessors = i64::from(cx.device.properties().multiprocessors);
        let limits = match by {
            Lengths::OfGroups(groups) => {
                Some(RowLimits::of_groups((rows.rows, rows.nnz), groups, multiprocessors))
            }
            Lengths::Longest(longest) => {
                RowLimits::new(rows.rows, rows.nnz, longest, warps_at_once(multiprocessors))
            }
        };
        let Some(limits) = limits.filter(|_| count > 0) else { return Ok(None) };
        let windows = (count as usize).div_ceil(WINDOW);
        let counts = DeviceBuffer::<i64>::new(cx, LISTS * (windows + 1))?;
        Ok(Some(Counting { limits, is_for_groups: matches!(by, Lengths::OfGroups(_)), counts }))
    }

    /// Enqueues the counts, and the lengths of the lists to these words of a page. The second of its kernels waits
    /// for all before it, and so ends the overlap.
    pub(super) fn enqueue(
        &self,
        cx: &DeviceCall<'_>,
        rows: &Rows,
        words: Address,
        overlap: &Overlap,
    ) -> Result<()> {
        let kernel = |name| cx.device.modules().kernel("spmm/tasks", name);
        let (counting, scan) = (kernel("spmm_tasks_count")?, kernel("spmm_tasks_scan")?);
        let windows = (rows.rows as usize).div_ceil(WINDOW);
        let counts = self.counts.address();
        // SAFETY: `counts` has an element for each list and window of rows, and one more for each list.
        unsafe {
            launch_overlapping!(overlap, counting, windows as u32, WINDOW as u32, 0, cx.stream;
                rows.offsets, rows.offset_type.wide(), rows.base, rows.rows, self.limits, counts)?;
            launch!(scan, LISTS as u32, 1024, 0, cx.stream; counts, windows as i64, words)
        }
    }

    /// Makes the lists of rows that are valid, given their lengths. Also returns the counts, which the kernel that
    /// has been enqueued reads.
    pub(super) fn fill(
        self,
        cx: &DeviceCall<'_>,
        rows: &Rows,
        lengths: &[u64],
    ) -> Result<(Schedule, DeviceBuffer<i64>)> {
        let [count, quads, part_count, slots, counter_count, pairs] =
            [0, 1, 2, 3, 4, 5].map(|list| lengths[list] as i64);
        let shared_count = quads + pairs;
        let runs = DeviceBuffer::<Run>::new(cx, count as usize)?;
        let shared_rows = DeviceBuffer::<Run>::new(cx, shared_count as usize)?;
        let parts = DeviceBuffer::<RowPart>::new(cx, part_count as usize)?;
        let kernel = cx.device.modules().kernel("spmm/tasks", "spmm_tasks_fill")?;
        let windows = (rows.rows as usize).div_ceil(WINDOW);
        // SAFETY: the lists have room for everything that was counted.
        unsafe {
            launch!(kernel, windows as u32, WINDOW as u32, 0, cx.stream;
                rows.offsets, rows.offset_type.wide(), rows.base, rows.rows, self.limits, self.counts.address(),
                runs.address(), shared_rows.address(), parts.address())?;
        }
        let schedule = Schedule {
            lists: Lists::Kept { runs, shared_rows, parts },
            is_packed: self.limits.run_length > 0,
            row_count: rows.rows,
            count,
            rows_a_run: 1,
            shared_count,
            quads: self.is_for_groups.then_some(quads),
            part_count,
            slots,
            counter_count,
        };
        Ok((schedule, self.counts))
    }
}

impl Schedule {
    /// Makes a schedule in which every row is a run. Kernels without lists count the entries of a row by 32 bits
    /// where more are needed for the number of rows.
    pub(super) fn without_lists(rows: &Rows, longest: i64) -> Result<Self> {
        if rows.rows.min(longest) > i64::from(i32::MAX) {
            return Err(Error::unsupported(
                "A: more than 2^31 - 1 rows and more than 2^31 - 1 entries in one of them",
            ));
        }
        Ok(Schedule::plain(rows.rows))
    }

    /// Makes a schedule without lists in which every row is a run.
    fn plain(rows: i64) -> Self {
        Schedule {
            lists: Lists::None,
            is_packed: false,
            row_count: rows,
            count: rows,
            rows_a_run: 1,
            shared_count: 0,
            quads: None,
            part_count: 0,
            slots: 0,
            counter_count: 0,
        }
    }

    /// Makes the schedule for a product without a plan, with `row_bytes` bytes of sums per row of C. A
    /// matrix with more than 2³¹ − 1 rows must have fewer entries than that.
    pub(super) fn unanalyzed(device: &Device, rows: &Rows, row_bytes: usize) -> Self {
        let plain = Schedule::plain(rows.rows);
        // Lists number rows by 32 bits; a matrix with more rows has no lists.
        if rows.rows > i64::from(i32::MAX) {
            return plain;
        }
        let multiprocessors = i64::from(device.properties().multiprocessors);
        let row_bytes = i64::try_from(row_bytes).unwrap_or(i64::MAX);
        let unanalyzed = Unanalyzed::new(rows.rows, rows.nnz, row_bytes, warps_at_once(multiprocessors));
        let Unanalyzed { rows_a_run, slots, counters, .. } = unanalyzed;
        let is_packed = rows_a_run > 1;
        let count = (rows.rows + rows_a_run - 1) / rows_a_run;
        if unanalyzed.has_no_lists() {
            return Schedule { is_packed, count, rows_a_run, ..plain };
        }
        let blocks = unanalyzed.list_blocks(rows.rows, multiprocessors);
        let lists = Lists::Made { unanalyzed, blocks };
        Schedule { lists, is_packed, count, rows_a_run, slots, counter_count: counters, ..plain }
    }

    /// Loads the kernel that [`Self::make`] launches.
    pub(super) fn load_making(device: &Device) -> Result<()> {
        making(device).map(|_| ())
    }

    /// Number of blocks that multiply the rows in lists that are made before each product.
    pub(super) fn list_blocks(&self) -> i64 {
        match self.lists {
            Lists::Made { blocks, .. } => blocks,
            _ => 0,
        }
    }

    /// Bytes of workspace for lists.
    pub(super) fn list_bytes(&self) -> usize {
        match &self.lists {
            Lists::Made { unanalyzed: Unanalyzed { shared_rows, parts, .. }, .. } => {
                LENGTHS_BYTES
                    + *shared_rows as usize * size_of::<Run>()
                    + *parts as usize * size_of::<RowPart>()
            }
            _ => 0,
        }
    }

    fn made_at(&self, lists: Address) -> Option<MadeAt> {
        let Lists::Made { unanalyzed, .. } = &self.lists else { return None };
        let parts = lists.offset(LENGTHS_BYTES);
        let shared_rows = parts.offset(unanalyzed.parts as usize * size_of::<RowPart>());
        Some(MadeAt { lengths: lists, shared_rows, parts })
    }

    /// Words of the handle's counters that count lists without a plan; zero before and after.
    pub(super) fn state(&self, cx: &DeviceCall<'_>) -> Address {
        cx.counters.offset(COUNTER_BYTES - STATE_WORDS * size_of::<u32>())
    }

    /// Enqueues the launch that makes the lists before a product, at this address in the workspace. `has_decision`: the
    /// third of the numbers there is not zero if the product needs no lists.
    pub(super) fn make(
        &self,
        cx: &DeviceCall<'_>,
        rows: &Rows,
        lists: Address,
        has_decision: bool,
    ) -> Result<()> {
        let (Lists::Made { unanalyzed, .. }, Some(at)) = (&self.lists, self.made_at(lists)) else {
            return Ok(());
        };
        let kernel = making(cx.device)?;
        let wide = rows.offset_type.wide();
        let blocks = (self.row_count as usize).div_ceil(LISTED) as u32;
        // SAFETY: the lists have room for all that rows with this many entries can give, and the handle lends
        // its counters to one call at a time.
        unsafe {
            launch!(kernel, blocks, LISTED as u32, 0, cx.stream;
                rows.offsets, wide, rows.base, rows.rows, unanalyzed.rows_a_run, unanalyzed.limits, at.shared_rows, at.parts,
                self.state(cx), at.lengths, i64::from(has_decision))
        }
    }

    /// Returns whether runs have several rows.
    pub(super) fn is_packed(&self) -> bool {
        self.is_packed
    }

    /// Number of tiles along N in one launch, which the counters for split rows limit.
    pub(super) fn tiles_at_once(&self) -> usize {
        tiles::at_once(self.counter_count as usize, tiles::COUNTERS - STATE_WORDS)
    }

    /// Number of blocks of a launch in which each warp takes `runs_a_warp` runs.
    pub(super) fn blocks(&self, runs_a_warp: i64) -> i64 {
        let ceil = |count: i64, by: i64| count / by + i64::from(count % by != 0);
        self.part_count + ceil(self.shared_count + ceil(self.count, runs_a_warp), WARPS)
    }

    /// Lists for a launch of kernels with groups of so many lanes, and its number of blocks; `None` if the
    /// lists are not for these kernels.
    pub(super) fn groups(&self, lanes: usize, counters: Address) -> Option<(GroupTasks, i64)> {
        let (Some(quad_count), Lists::Kept { runs, shared_rows, parts }) = (self.quads, &self.lists) else {
            return None;
        };
        let a_block = i64::from(super::ROW_THREADS) / lanes as i64;
        let blocks = |count: i64, sharing: i64| (count + a_block / sharing - 1) / (a_block / sharing);
        let pair_count = self.shared_count - quad_count;
        let pairs_from = self.part_count + blocks(quad_count, 4);
        let rows_from = pairs_from + blocks(pair_count, 2);
        let tasks = GroupTasks {
            parts: parts.address(),
            quads: shared_rows.address(),
            pairs: shared_rows.address().offset(quad_count as usize * size_of::<Run>()),
            rows: runs.address(),
            quad_count,
            pair_count,
            row_count: self.count,
            quads_from: self.part_count as u32,
            pairs_from: pairs_from as u32,
            rows_from: rows_from as u32,
            counter_count: self.counter_count as u32,
            counters,
        };
        Some((tasks, rows_from + blocks(self.count, 1)))
    }

    /// Returns whether the lists are for groups.
    pub(super) fn has_groups(&self) -> bool {
        self.quads.is_some()
    }

    /// Lists for a launch in which `spread` groups share a run; `lists` is the address where [`Self::make`]
    /// has made them.
    pub(super) fn tasks(&self, spread: i64, counters: Address, lists: Address) -> Tasks {
        let none = Tasks {
            parts: Address::NULL,
            part_count: self.part_count,
            shared_rows: Address::NULL,
            shared_count: self.shared_count,
            runs: Address::NULL,
            count: self.count,
            spread,
            counters,
            counter_count: self.counter_count,
            rows: self.row_count,
            rows_a_run: self.rows_a_run,
            run_limit: i64::MAX,
            lengths: Address::NULL,
        };
        match (&self.lists, self.made_at(lists)) {
            (Lists::Kept { runs, shared_rows, parts }, _) => Tasks {
                runs: runs.address(),
                shared_rows: shared_rows.address(),
                parts: parts.address(),
                ..none
            },
            (Lists::Made { unanalyzed, .. }, Some(MadeAt { lengths, shared_rows, parts })) => {
                Tasks { parts, shared_rows, lengths, run_limit: unanalyzed.limits.longest_row_in_run, ..none }
            }
            _ => none,
        }
    }
}

impl Fill for Schedule {
    fn mark_filled(&mut self) {
        if let Lists::Kept { runs, shared_rows, parts } = &mut self.lists {
            runs.mark_filled();
            shared_rows.mark_filled();
            parts.mark_filled();
        }
    }
}

#[cfg(test)]
mod tests;

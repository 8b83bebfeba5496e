//! Wide rows of C, which are processed by windows of columns: a task is one window of one row and is
//! processed by a warp. The symbolic phase finds the columns of each task, and keeps them for the numeric
//! phase. If there is no memory for all tasks at one time, both phases process them part by part, and the
//! numeric phase finds the columns again.

use std::ops::Range;

use bytemuck::{Pod, Zeroable};

use super::bins::ProductRowStatsAt;
use super::kernels::Name;
use super::rows::{warp_blocks, Factor, Ints, Kernels, Output, WARPS_BLOCK};
use crate::backend::cuda::check::blocks;
use crate::backend::cuda::convert::device_wide::{scan_in_place, SCANNED_BY_A_BLOCK};
use crate::backend::cuda::device::DeviceCall;
use crate::backend::cuda::launch::{launch, launch_overlapping, Overlap};
use crate::backend::cuda::layouts::{kernel_structs, same_elements};
use crate::backend::cuda::memory::{self, filled_members, optional, DeviceBuffer, Fill};
use crate::backend::cuda::operand::Rows;
use crate::backend::cuda::scalars::Scalar;
use crate::error::Result;
use crate::memory::Context;
use crate::select::spgemm::rows::is_short;
use crate::select::spgemm::wide::{bits_pay, starts_pay, Cut};
use crate::types::Address;

/// Number of columns of a window; kernels/spgemm/tasks.cuh has the same constant.
pub const WINDOW: i64 = 1024;
/// Number of 32-bit words of the bit mask of a window.
const WORDS: usize = WINDOW as usize / 32;
/// Bytes that are stored for a task: [`Task`], mask of its columns, number of entries before it.
const TASK_BYTES: usize = size_of::<Task>() + 4 * WORDS + 4;

/// Window of a row, or of a piece of a split row; the kernels' `Task`.
#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct Task {
    row: u32,
    window: u32,
    part: u32,
    index: u32,
}
same_elements!(Task = "spgemm/tasks.cuh Task" { row, window, part, index });

/// Returns the number of windows of the right factor's columns.
pub fn windows(right: &Rows) -> i64 {
    // `div_ceil` of i64 is not stable.
    (right.cols as u64).div_ceil(WINDOW as u64) as i64
}

/// Returns whether rows can be processed by windows: whether the starts of windows in the right factor's rows
/// are worth their memory, and columns fit into 32 bits, so that the number of entries of a row does, too.
pub fn is_possible(right: &Rows) -> bool {
    u32::try_from(right.cols).is_ok() && starts_pay((right.rows, windows(right)), right.nnz)
}

kernel_structs! {
    /// Starts of windows in the rows of the right factor; the kernels' `Starts`.
    struct StartsAt = "spgemm/dense_windows.cu Starts" {
        data: Address,
        windows: i64,
    }

    /// Addresses of partial sums; the kernels' `Partial`.
    struct PartialAt = "spgemm/dense_windows.cu Partial" {
        before: Address,
        sums: Address,
    }
}

/// Partial sums of split rows. The first piece of a row has none: it writes into C.
struct Partial {
    /// Number of partial sums before each row of the list, and of all.
    before: DeviceBuffer<i64>,
    /// Memory for the sums; `None` until there is some.
    sums: Option<DeviceBuffer<u8>>,
    /// Bytes of a sum.
    size: usize,
    /// True if `sums` is large enough for all rows.
    is_settled: bool,
}

impl Partial {
    fn new(product: &Product<'_>, rows: usize) -> Result<Self> {
        let size = product.kernels.value_size();
        // All but the last number are written before they are scanned by one block, which does not read that.
        let before = match rows < SCANNED_BY_A_BLOCK {
            true => DeviceBuffer::new(product.cx, rows + 1)?,
            false => DeviceBuffer::zeroed(product.cx, rows + 1)?,
        };
        Ok(Partial { before, sums: None, size, is_settled: false })
    }

    fn at(&self) -> PartialAt {
        let sums = self.sums.as_ref().map_or(Address::NULL, DeviceBuffer::address);
        PartialAt { before: self.before.address(), sums }
    }

    /// Makes room for the sums of the first `rows` rows, which have been counted. Blocks unless settled.
    fn make_room_for_rows(&mut self, cx: &Context, rows: usize) -> Result<()> {
        if self.is_settled {
            return Ok(());
        }
        let sums = self.before.read(rows, 1)?[0] as usize;
        self.make_room(cx, sums)
    }

    /// Makes room for `sums` sums.
    fn make_room(&mut self, cx: &Context, sums: usize) -> Result<()> {
        let bytes = super::bytes(sums, self.size)?;
        if self.sums.as_ref().map_or(0, DeviceBuffer::bytes) < bytes {
            self.sums = None;
            self.sums = Some(DeviceBuffer::new(cx, bytes)?);
        }
        Ok(())
    }
}

/// Product whose wide rows are computed: the call, its factors, the statistics of its rows, and the kernels.
#[derive(Clone, Copy)]
pub struct Product<'a> {
    pub cx: &'a DeviceCall<'a>,
    pub kernels: &'a Kernels,
    pub left: &'a Rows,
    pub right: &'a Rows,
    pub statistics: ProductRowStatsAt,
}

impl Product<'_> {
    /// Returns the row offsets of the left factor and the limits for splitting its rows, as kernel
    /// parameters.
    fn cut(&self) -> (Ints, Cut) {
        (Factor::of(self.left).offsets(), self.statistics.cut)
    }

    /// Returns whether some rows of the left factor are split.
    fn is_cut(&self) -> bool {
        self.statistics.cut != Cut::NONE
    }
}

/// Memory for the tasks of all wide rows or of some at a time.
pub struct Tasks {
    tasks: DeviceBuffer<Task>,
    /// Mask of the columns that each task's row has in its window.
    masks: DeviceBuffer<u32>,
    /// Number of entries of each task, and once these are summed, of those that its row has before its window.
    entry_starts: DeviceBuffer<u32>,
    /// Partial sums, if some rows are split.
    partial: Option<Partial>,
}

impl Tasks {
    /// Allocates memory for `count` tasks of up to `rows` rows.
    fn new(product: &Product<'_>, count: usize, rows: usize) -> Result<Self> {
        let partial = if product.is_cut() { Some(Partial::new(product, rows)?) } else { None };
        Ok(Tasks {
            tasks: DeviceBuffer::new(product.cx, count)?,
            masks: DeviceBuffer::new(product.cx, count.saturating_mul(WORDS))?,
            entry_starts: DeviceBuffer::new(product.cx, count)?,
            partial,
        })
    }

    /// Turns the numbers of partial sums of `rows` rows into the position of each row's first one. Only
    /// launches.
    fn sum_parts(&self, product: &Product<'_>, rows: usize) -> Result<()> {
        if let Some(partial) = &self.partial {
            let before = partial.before.address();
            // SAFETY: `before` has an element for each row and one more.
            unsafe { scan_in_place(product.cx, before, rows + 1)? };
        }
        Ok(())
    }

    fn partial(&self) -> PartialAt {
        self.partial.as_ref().map_or(PartialAt { before: Address::NULL, sums: Address::NULL }, Partial::at)
    }

    /// Returns the addresses of the tasks, of the masks of their columns, and of the numbers of entries
    /// before them.
    pub fn addresses(&self) -> [Address; 3] {
        [self.tasks.address(), self.masks.address(), self.entry_starts.address()]
    }

    /// Allocates memory for as many tasks as fit, up to `most`, of up to `rows` rows; `None` if less than
    /// `least` fit.
    fn fit(product: &Product<'_>, (least, most): (usize, usize), rows: usize) -> Result<Option<Self>> {
        let mut count = most.min(memory::room(product.cx)? / TASK_BYTES);
        while count >= least {
            if let Some(tasks) = optional(Tasks::new(product, count, rows))? {
                return Ok(Some(tasks));
            }
            count /= 2;
        }
        Ok(None)
    }
}
filled_members!(Partial { before, sums });
filled_members!(Tasks { tasks, masks, entry_starts, partial });

/// Range of the rows of a list, and range of their tasks.
struct Part {
    rows: Range<usize>,
    tasks: Range<i64>,
}

/// Number of rows from which on several blocks count the windows of wide rows.
const NUMBERED_BY_A_BLOCK: i64 = 4096;

/// List of wide rows, with the number of the first task of each.
struct Listed {
    /// Copy of the list, if the original is dropped before this.
    copy: Option<DeviceBuffer<u32>>,
    list: Address,
    first: DeviceBuffer<i64>,
    /// Copy of `first` on the host, if tasks are processed part by part.
    firsts: Vec<i64>,
}

impl Listed {
    /// Counts the windows of the rows of a list, and numbers their tasks.
    fn new(product: &Product<'_>, (list, rows): (Address, i64)) -> Result<Self> {
        // `first` has one element more than rows, for the number of all tasks.
        let few = rows < NUMBERED_BY_A_BLOCK;
        let first = match few {
            true => DeviceBuffer::<i64>::new(product.cx, rows as usize + 1)?,
            false => DeviceBuffer::zeroed(product.cx, rows as usize + 1)?,
        };
        let (blocks, threads) = if few { (1, 1024) } else { ((rows as u64).div_ceil(256) as u32, 256) };
        let statistics = &product.statistics;
        let (offsets, cut) = product.cut();
        // SAFETY: the list has `rows` rows, of which there are statistics, and `first` has an element for
        // each and one more.
        unsafe {
            launch!(product.kernels.get(Name::DenseWindowsTaskCounts)?, blocks, threads, 0, product.cx.stream;
                offsets, cut, list, rows, statistics.lows, statistics.spans, i32::from(few), first.address())?;
            if !few {
                scan_in_place(product.cx, first.address(), first.len())?;
            }
        }
        Ok(Listed { copy: None, list, first, firsts: Vec::new() })
    }

    /// Copies the numbers of the first tasks to the host. Blocks.
    fn fetch(&mut self) -> Result<()> {
        if self.firsts.is_empty() {
            self.firsts = self.first.read(0, self.first.len())?;
        }
        Ok(())
    }

    /// Copies the list, so that the original may be dropped.
    fn own(&mut self, cx: &Context) -> Result<()> {
        let copy = DeviceBuffer::<u32>::new(cx, self.first.len() - 1)?;
        memory::copy(copy.address(), self.list, copy.bytes(), cx.stream)?;
        self.list = copy.address();
        self.copy = Some(copy);
        Ok(())
    }

    /// Returns the number of tasks of the row with the most.
    fn longest(&self) -> usize {
        self.firsts.windows(2).map(|row| (row[1] - row[0]) as usize).max().unwrap_or(0)
    }

    /// Divides the rows into parts of up to `most` tasks; no row may have more.
    fn parts(&self, most: usize) -> impl Iterator<Item = Part> + '_ {
        let rows = self.firsts.len() - 1;
        let mut begin = 0;
        std::iter::from_fn(move || {
            if begin == rows {
                return None;
            }
            let from = self.firsts[begin];
            let end = self.firsts.partition_point(|&first| first <= from + most as i64) - 1;
            let part = Part { rows: begin..end, tasks: from..self.firsts[end] };
            begin = end;
            Some(part)
        })
    }

    /// Returns the part of all rows, which have `count` tasks.
    fn all(&self, count: i64) -> Part {
        Part { rows: 0..self.first.len() - 1, tasks: 0..count }
    }
}

/// Wide rows of a product, as the symbolic phase has found them.
pub struct Wide {
    /// Starts of windows in the rows of the right factor, if there are several windows.
    starts: Option<DeviceBuffer<u32>>,
    windows: i64,
    /// Number of tasks of all rows.
    count: i64,
    rows: Listed,
    /// Tasks of all rows, if they are kept.
    whole: Option<Tasks>,
    /// Bitmaps of the right factor's rows while columns are counted by them.
    bits: Option<DeviceBuffer<u32>>,
}

impl Wide {
    /// Counts the entries of the wide rows, to `counts`, by a kernel of `overlap`; [`Wide::end_count`] must
    /// follow, behind the other kernels of this sequence. `list` has these rows, with `count` tasks. Returns
    /// `None` if there are no such rows, or no memory for their windows, so that blocks with a bitmap must
    /// process them.
    pub fn count(
        product: &Product<'_>,
        list: (Address, i64),
        count: usize,
        counts: Address,
        overlap: &Overlap,
    ) -> Result<Option<Wide>> {
        if count == 0 {
            return Ok(None);
        }
        optional(Self::try_count(product, list, count, counts, overlap)).map(Option::flatten)
    }

    fn try_count(
        product: &Product<'_>,
        list: (Address, i64),
        count: usize,
        counts: Address,
        overlap: &Overlap,
    ) -> Result<Option<Wide>> {
        let Product { cx, kernels, right, .. } = *product;
        let windows = windows(right);
        let starts = match windows {
            1 => None,
            _ => Some(DeviceBuffer::new(product.cx, right.rows as usize * (windows as usize + 1))?),
        };
        let rows = Listed::new(product, list)?;
        let mut wide = Wide { starts, windows, count: count as i64, rows, whole: None, bits: None };
        let words = right.rows.saturating_mul(windows).saturating_mul(WORDS as i64);
        // The bits only make it faster, so it does without them if there is no memory.
        let bits = match bits_pay(words, right.nnz) {
            true => optional(DeviceBuffer::<u32>::zeroed(product.cx, words as usize))?,
            false => None,
        };
        let bits_at = bits.as_ref().map_or(Address::NULL, DeviceBuffer::address);
        let of_right = Factor::of(right);
        // SAFETY: the pattern has been validated and its columns ascend; `starts` has an element for each
        // window of each row and one more per row, and `bits` has WORDS words for each.
        unsafe {
            if let Some(starts) = &wide.starts {
                launch!(kernels.get(Name::DenseWindowsStarts)?, blocks(cx.device, starts.len() as i64), 256,
                    0, product.cx.stream;
                    of_right, right.rows, windows, starts.address())?;
            }
            if !bits_at.is_null() {
                launch!(kernels.get(Name::DenseWindowsBits)?, blocks(cx.device, 32 * right.rows), 256,
                    0, product.cx.stream;
                    of_right, right.rows, windows, bits_at)?;
            }
        }
        let listed = wide.rows.first.len() - 1;
        if let Some(tasks) = optional(Tasks::new(product, count, listed))? {
            let all = wide.rows.all(wide.count);
            wide.count_tasks(product, (&wide.rows, &all, &tasks), bits_at, overlap)?;
            (wide.whole, wide.bits) = (Some(tasks), bits);
            return Ok(Some(wide));
        }
        wide.rows.own(product.cx)?;
        wide.rows.fetch()?;
        let Some(tasks) = Tasks::fit(product, (wide.rows.longest(), count), listed)? else {
            return Ok(None);
        };
        for part in wide.rows.parts(tasks.tasks.len()) {
            wide.find(product, &wide.rows, &part, &tasks, bits_at, counts)?;
        }
        Ok(Some(wide))
    }

    /// Ends what [`Wide::count`] has begun, behind the other kernels of its sequence. Only launches.
    pub fn end_count(&mut self, product: &Product<'_>, counts: Address) -> Result<()> {
        if let Some(tasks) = &self.whole {
            Self::sum_tasks(product, (&self.rows, &self.rows.all(self.count), tasks), counts)?;
            tasks.sum_parts(product, self.rows.first.len() - 1)?;
        }
        // Freed here: between the kernels of a sequence it would keep the next one from beginning early.
        self.bits = None;
        Ok(())
    }

    /// Finds the tasks of some rows: their columns, and the numbers of entries before them. The numbers of
    /// entries of the rows go to `counts`, unless that is NULL. Only launches.
    #[allow(clippy::too_many_arguments)]
    fn find(
        &self,
        product: &Product<'_>,
        rows: &Listed,
        part: &Part,
        tasks: &Tasks,
        bits: Address,
        counts: Address,
    ) -> Result<()> {
        self.count_tasks(product, (rows, part, tasks), bits, &Overlap::new(false))?;
        Self::sum_tasks(product, (rows, part, tasks), counts)
    }

    /// Finds the columns of the tasks of some rows, as one of the kernels of `overlap`. Only launches.
    fn count_tasks(
        &self,
        product: &Product<'_>,
        (rows, part, tasks): (&Listed, &Part, &Tasks),
        bits: Address,
        overlap: &Overlap,
    ) -> Result<()> {
        let Product { kernels, left, right, statistics, .. } = *product;
        let (offsets, cut) = product.cut();
        let (listed, count) = (part.rows.len() as i64, part.tasks.end - part.tasks.start);
        let list = rows.list.offset(part.rows.start * size_of::<u32>());
        let first = rows.first.at(part.rows.start);
        // Tasks are numbered from the first of all rows, so the address of the part's tasks is moved back.
        let places = tasks.tasks.address().rebased(part.tasks.start as usize * size_of::<Task>());
        // SAFETY: the patterns have been validated, and the right factor's columns ascend; each array has the
        // elements that the kernels access, by the number of tasks that was counted for the part.
        unsafe {
            launch!(kernels.get(Name::DenseWindowsTasks)?, warp_blocks(listed, 256), 256, 0, product.cx.stream;
                offsets, cut, list, listed, statistics.lows, first, places)?;
            launch_overlapping!(overlap, kernels.get(Name::DenseWindowsCount)?, warp_blocks(count, WARPS_BLOCK),
                WARPS_BLOCK, 0, product.cx.stream;
                Factor::of(left), Factor::of(right), cut, self.starts(), bits, tasks.tasks.address(), count,
                tasks.masks.address(), tasks.entry_starts.address())
        }
    }

    /// Adds up the numbers of entries of tasks whose columns have been found. Only launches.
    fn sum_tasks(
        product: &Product<'_>,
        (rows, part, tasks): (&Listed, &Part, &Tasks),
        counts: Address,
    ) -> Result<()> {
        let kernels = product.kernels;
        let (offsets, cut) = product.cut();
        let (listed, count) = (part.rows.len() as i64, part.tasks.end - part.tasks.start);
        let list = rows.list.offset(part.rows.start * size_of::<u32>());
        let first = rows.first.at(part.rows.start);
        let sums = tasks.entry_starts.address().rebased(part.tasks.start as usize * 4);
        // SAFETY: as for the tasks' columns, which are there.
        unsafe {
            if product.is_cut() {
                launch!(kernels.get(Name::DenseWindowsMerge)?, warp_blocks(count, WARPS_BLOCK), WARPS_BLOCK,
                    0, product.cx.stream;
                    offsets, cut, tasks.tasks.address(), count, tasks.masks.address(), tasks.entry_starts.address())?;
            }
            launch!(kernels.get(Name::DenseWindowsSums)?, warp_blocks(listed, 256), 256, 0, product.cx.stream;
                offsets, cut, list, listed, first, sums, counts, tasks.partial().before)
        }
    }

    fn starts(&self) -> StartsAt {
        let data = self.starts.as_ref().map_or(Address::NULL, DeviceBuffer::address);
        StartsAt { data, windows: self.windows }
    }

    /// Frees the tasks, which the numeric phase can find again. The list that [`Wide::count`] was given must
    /// still exist, and may be dropped afterwards. Blocks.
    pub fn shrink(&mut self, cx: &Context) -> Result<()> {
        if self.whole.is_some() {
            self.rows.fetch()?;
            if self.rows.copy.is_none() {
                self.rows.own(cx)?;
            }
            memory::synchronize(cx.stream)?;
            self.whole = None;
        }
        Ok(())
    }

    /// Writes column indices and values of the wide rows, up to the partial sums of split rows, which
    /// [`Wide::add_parts`] adds afterwards. Returns false, without having written anything, if there is no
    /// memory for the tasks. Only launches if the tasks are kept; otherwise `kept` receives memory for some
    /// of them.
    pub fn multiply(
        &self,
        product: &Product<'_>,
        alpha: Scalar,
        output: &Output,
        kept: &mut Option<Tasks>,
        overlap: &Overlap,
    ) -> Result<bool> {
        if let Some(tasks) = &self.whole {
            self.multiply_tasks(product, alpha, output, (tasks, self.count), overlap)?;
            return Ok(true);
        }
        self.multiply_parts(product, &self.rows, alpha, output, kept)
    }

    /// Writes column indices and values of the wide rows in `list`, partial sums included, for a part of the
    /// product whose rows have numbers of their own. Returns false if there is no memory for the tasks.
    pub fn multiply_listed(
        &self,
        product: &Product<'_>,
        list: (Address, i64),
        alpha: Scalar,
        output: &Output,
    ) -> Result<bool> {
        if list.1 == 0 {
            return Ok(true);
        }
        let Some(mut rows) = optional(Listed::new(product, list))? else {
            return Ok(false);
        };
        rows.fetch()?;
        self.multiply_parts(product, &rows, alpha, output, &mut None)
    }

    /// Processes the tasks of `rows` part by part, with the memory in `kept`.
    fn multiply_parts(
        &self,
        product: &Product<'_>,
        rows: &Listed,
        alpha: Scalar,
        output: &Output,
        kept: &mut Option<Tasks>,
    ) -> Result<bool> {
        if kept.is_none() {
            let most = rows.firsts.last().map_or(0, |&last| last as usize);
            *kept = Tasks::fit(product, (rows.longest(), most), rows.firsts.len() - 1)?;
        }
        let Some(tasks) = kept else {
            return Ok(false);
        };
        for part in rows.parts(tasks.tasks.len()) {
            self.find(product, rows, &part, tasks, Address::NULL, Address::NULL)?;
            tasks.sum_parts(product, part.rows.len())?;
            if let Some(partial) = &mut tasks.partial {
                partial.make_room_for_rows(product.cx, part.rows.len())?;
            }
            let count = part.tasks.end - part.tasks.start;
            // Not beside other kernels, since the next part overwrites these tasks.
            self.multiply_tasks(product, alpha, output, (tasks, count), &Overlap::new(false))?;
            self.add_parts_of(product, alpha, output, (tasks, count))?;
        }
        tasks.partial.iter_mut().for_each(|partial| partial.is_settled = true);
        Ok(true)
    }

    fn multiply_tasks(
        &self,
        product: &Product<'_>,
        alpha: Scalar,
        output: &Output,
        (tasks, count): (&Tasks, i64),
        overlap: &Overlap,
    ) -> Result<()> {
        let Product { kernels, left, right, statistics, .. } = *product;
        let blocks = warp_blocks(count, WARPS_BLOCK);
        let short = is_short(right.nnz as f64 / (right.rows as f64 * self.windows as f64));
        let partial = tasks.partial();
        // SAFETY: the patterns have been validated and C has room for the entries that were counted by these
        // masks; the shared memory is what the kernel needs.
        unsafe {
            launch_overlapping!(overlap, kernels.get(Name::DenseWindowsMultiply)?, blocks, WARPS_BLOCK,
                kernels.wide_shared(), product.cx.stream;
                Factor::of(left), Factor::of(right), left.values, right.values, alpha, statistics.cut, self.starts(),
                i32::from(short), tasks.tasks.address(), count, tasks.masks.address(), tasks.entry_starts.address(),
                partial, *output)
        }
    }

    /// Returns all tasks and their number, if they are kept.
    pub fn whole(&self) -> Option<(&Tasks, i64)> {
        self.whole.as_ref().map(|tasks| (tasks, self.count))
    }

    /// Returns the bytes of the memory that is kept.
    pub fn bytes(&self) -> usize {
        let of_tasks = |tasks: &Tasks| {
            let partial = tasks.partial.as_ref().and_then(|partial| partial.sums.as_ref());
            tasks.tasks.len() * TASK_BYTES + partial.map_or(0, DeviceBuffer::bytes)
        };
        self.starts.as_ref().map_or(0, DeviceBuffer::bytes) + self.whole.as_ref().map_or(0, of_tasks)
    }

    /// Adds the partial sums of split rows to C, if all tasks are kept. Runs after [`Wide::multiply`], and
    /// after the kernels of the other rows, so that these can run beside it.
    pub fn add_parts(&self, product: &Product<'_>, alpha: Scalar, output: &Output) -> Result<()> {
        match &self.whole {
            Some(tasks) => self.add_parts_of(product, alpha, output, (tasks, self.count)),
            None => Ok(()),
        }
    }

    fn add_parts_of(
        &self,
        product: &Product<'_>,
        alpha: Scalar,
        output: &Output,
        (tasks, count): (&Tasks, i64),
    ) -> Result<()> {
        let partial = tasks.partial();
        if partial.sums.is_null() {
            return Ok(());
        }
        let (offsets, cut) = product.cut();
        // SAFETY: as above; the kernels before have written the partial sums.
        unsafe {
            launch!(product.kernels.get(Name::DenseWindowsParts)?, warp_blocks(count, WARPS_BLOCK), WARPS_BLOCK,
                0, product.cx.stream;
                offsets, alpha, cut, tasks.tasks.address(), count, tasks.masks.address(), tasks.entry_starts.address(),
                partial, *output)
        }
    }

    /// Returns whether some rows are split, whose sums are added in another order.
    pub fn has_parts(&self, statistics: &ProductRowStatsAt) -> bool {
        match &self.whole {
            Some(tasks) => !tasks.partial().sums.is_null(),
            None => statistics.cut != Cut::NONE,
        }
    }

    /// Returns the address of the number of partial sums of split rows, after these have been counted, or
    /// NULL if no row is split or tasks are not kept.
    pub fn number_of_partial_sums(&self) -> Address {
        let partial = self.whole.as_ref().and_then(|tasks| tasks.partial.as_ref());
        partial.map_or(Address::NULL, |partial| partial.before.at(partial.before.len() - 1))
    }

    /// Makes room for `sums` partial sums of split rows ([`Wide::number_of_partial_sums`]). The stream must
    /// have been synchronized. Blocks if there is no memory for them.
    pub fn settle(&mut self, cx: &Context, kernels: &Kernels, sums: usize) -> Result<()> {
        if let Some(tasks) = &mut self.whole {
            if let Some(partial) = &mut tasks.partial {
                kernels.get(Name::DenseWindowsParts)?;
                if optional(partial.make_room(cx, sums))?.is_none() {
                    // Tasks are then processed part by part.
                    self.whole = None;
                    self.rows.fetch()?;
                    if self.rows.copy.is_none() {
                        self.rows.own(cx)?;
                        memory::synchronize(cx.stream)?;
                    }
                }
            }
        }
        self.mark_filled();
        Ok(())
    }
}
filled_members!(Listed { first, copy });
filled_members!(Wide { starts, rows, whole });

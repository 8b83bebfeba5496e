//! Wide rows: windows of columns, each a warp's task, with what the symbolic
//! phase finds for the numeric one. Where there is no memory for all tasks at one
//! time, both phases take them part by part, and the numeric one finds again what
//! was not kept.

use std::ops::Range;

use bytemuck::{Pod, Zeroable};

use super::bins::FactsAt;
use super::kernels::Name;
use super::rows::{scan, warp_blocks, Factor, Ints, Kernels, Output, SCANNED_BY_A_BLOCK, WARPS_BLOCK};
use crate::backend::cuda::check::blocks;
use crate::backend::cuda::device::Device;
use crate::backend::cuda::launch::{launch, launch_beside, Beside};
use crate::backend::cuda::layouts::{same_elements, same_layout};
use crate::backend::cuda::memory::{self, optional, DeviceBuffer};
use crate::backend::cuda::operand::Rows;
use crate::backend::cuda::scalars::Scalar;
use crate::error::Result;
use crate::memory::Context;
use crate::select::spgemm::rows::is_short;
use crate::select::spgemm::wide::{bits_pay, starts_pay, Cut};
use crate::types::Address;

/// Columns of a window; kernels/spgemm/wide.cu has the same.
pub const WINDOW: i64 = 1024;
/// Words of bits of a window.
const WORDS: usize = WINDOW as usize / 32;
/// Bytes of a task: what it is, columns, entries before.
const TASK_BYTES: usize = size_of::<Task>() + 4 * WORDS + 4;

/// The kernels' `Task`.
#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct Task {
    row: u32,
    window: u32,
    part: u32,
    index: u32,
}
same_elements!(Task = "spgemm/tasks.cuh Task" { row, window, part, index });

/// Windows of the columns of the right factor.
pub fn windows(right: &Rows) -> i64 {
    // Not `div_ceil` of i64, which is not stable.
    (right.cols as u64).div_ceil(WINDOW as u64) as i64
}

/// Whether the starts of windows are worth their memory. Columns fit 32 bits, since so
/// do the entries of a row then.
pub fn is_possible(right: &Rows) -> bool {
    u32::try_from(right.cols).is_ok() && starts_pay((right.rows, windows(right)), right.nnz)
}

/// The kernels' `Starts`.
#[repr(C)]
#[derive(Clone, Copy)]
struct StartsAt {
    data: Address,
    windows: i64,
}

same_layout!(StartsAt = "spgemm/wide.cu Starts" { data, windows });

/// The kernels' `Partial`.
#[repr(C)]
#[derive(Clone, Copy)]
struct PartialAt {
    before: Address,
    sums: Address,
}

same_layout!(PartialAt = "spgemm/wide.cu Partial" { before, sums });

/// Sums of the parts after the first of rows that are cut.
struct Partial {
    /// How many come before each row of the list, and all.
    before: DeviceBuffer<i64>,
    /// None while there is no room for any.
    sums: Option<DeviceBuffer<u8>>,
    /// Bytes of a sum.
    size: usize,
    /// There is room for all that will be.
    is_settled: bool,
}

impl Partial {
    fn new(cx: &Context, product: &Product<'_>, rows: usize) -> Result<Self> {
        let size = product.kernels.value_size();
        Ok(Partial { before: DeviceBuffer::zeroed(cx, rows + 1)?, sums: None, size, is_settled: false })
    }

    fn at(&self) -> PartialAt {
        let sums = self.sums.as_ref().map_or(Address::NULL, DeviceBuffer::address);
        PartialAt { before: self.before.address(), sums }
    }

    /// Makes room for the sums of so many rows, which have been counted. Blocks, until it is settled.
    fn make_room_for_rows(&mut self, cx: &Context, rows: usize) -> Result<()> {
        if self.is_settled {
            return Ok(());
        }
        let sums = self.before.read(rows, 1)?[0] as usize;
        self.make_room(cx, sums)
    }

    /// Makes room for so many sums.
    fn make_room(&mut self, cx: &Context, sums: usize) -> Result<()> {
        let bytes = super::bytes(sums, self.size)?;
        if self.sums.as_ref().map_or(0, DeviceBuffer::bytes) < bytes {
            self.sums = None;
            self.sums = Some(DeviceBuffer::new(cx, bytes)?);
        }
        Ok(())
    }
}

/// What a product's tasks are made of.
#[derive(Clone, Copy)]
pub struct Product<'a> {
    pub device: &'a Device,
    pub kernels: &'a Kernels,
    pub left: &'a Rows,
    pub right: &'a Rows,
    pub facts: FactsAt,
}

impl Product<'_> {
    /// Offsets of the left factor, and how its rows are cut, for kernels.
    fn cut(&self) -> (Ints, Cut) {
        (Factor::of(self.left).offsets(), self.facts.cut)
    }

    /// Whether some rows of the left factor are cut into parts.
    fn is_cut(&self) -> bool {
        self.facts.cut != Cut::NONE
    }
}

/// Rows and what is found of their windows, for some of them at a time.
pub struct Tasks {
    tasks: DeviceBuffer<Task>,
    /// Columns that the task's row has in its window.
    masks: DeviceBuffer<u32>,
    /// Entries of the row before the window.
    before: DeviceBuffer<u32>,
    /// Where some rows are cut.
    partial: Option<Partial>,
}

impl Tasks {
    /// So many, of up to so many rows.
    fn new(cx: &Context, product: &Product<'_>, count: usize, rows: usize) -> Result<Self> {
        let partial = if product.is_cut() { Some(Partial::new(cx, product, rows)?) } else { None };
        Ok(Tasks {
            tasks: DeviceBuffer::new(cx, count)?,
            masks: DeviceBuffer::new(cx, count.saturating_mul(WORDS))?,
            before: DeviceBuffer::new(cx, count)?,
            partial,
        })
    }

    /// How many entries the parts after the first of so many rows have, to their places. Only launches.
    fn sum_parts(&self, cx: &Context, product: &Product<'_>, rows: usize) -> Result<()> {
        if let Some(partial) = &self.partial {
            let before = partial.before.address();
            // SAFETY: there is a number for each row and one more.
            unsafe { scan(cx, product.kernels, before, rows + 1)? };
        }
        Ok(())
    }

    fn partial(&self) -> PartialAt {
        self.partial.as_ref().map_or(PartialAt { before: Address::NULL, sums: Address::NULL }, Partial::at)
    }

    /// The tasks, their columns, and the entries before each.
    pub fn addresses(&self) -> [Address; 3] {
        [self.tasks.address(), self.masks.address(), self.before.address()]
    }

    /// Room for as many as there is memory for, up to `most`, of up to so many rows; `None`: for less than `least`.
    fn fit(
        cx: &Context,
        product: &Product<'_>,
        (least, most): (usize, usize),
        rows: usize,
    ) -> Result<Option<Self>> {
        let mut count = most.min(memory::room(cx)? / TASK_BYTES);
        while count >= least {
            if let Some(tasks) = optional(Tasks::new(cx, product, count, rows))? {
                return Ok(Some(tasks));
            }
            count /= 2;
        }
        Ok(None)
    }

    pub fn seal(&mut self) {
        self.tasks.seal();
        self.masks.seal();
        self.before.seal();
        if let Some(partial) = &mut self.partial {
            partial.before.seal();
            partial.sums.iter_mut().for_each(DeviceBuffer::seal);
        }
    }
}

/// Some of the rows of a list, and their tasks.
struct Part {
    rows: Range<usize>,
    tasks: Range<i64>,
}

/// Wide rows, with the number of the first task of each.
struct Listed {
    /// A copy, where the list is another's and goes before this.
    copy: Option<DeviceBuffer<u32>>,
    list: Address,
    first: DeviceBuffer<i64>,
    /// The same on the host, where tasks are taken part by part.
    firsts: Vec<i64>,
}

impl Listed {
    /// The windows of the rows of a list.
    fn new(cx: &Context, product: &Product<'_>, (list, rows): (Address, i64)) -> Result<Self> {
        // One number more than rows, for the sum of all.
        let few = rows < SCANNED_BY_A_BLOCK as i64;
        let first = match few {
            true => DeviceBuffer::<i64>::new(cx, rows as usize + 1)?,
            false => DeviceBuffer::zeroed(cx, rows as usize + 1)?,
        };
        let (blocks, threads) = if few { (1, 1024) } else { ((rows as u64).div_ceil(256) as u32, 256) };
        let facts = &product.facts;
        let (offsets, cut) = product.cut();
        // SAFETY: the list has so many rows, of which there are facts, and there is a
        // number for each and one more.
        unsafe {
            launch!(product.kernels.get(Name::WideWindows)?, blocks, threads, 0, cx.stream;
                offsets, cut, list, rows, facts.lows, facts.spans, i32::from(few), first.address())?;
            if !few {
                scan(cx, product.kernels, first.address(), first.len())?;
            }
        }
        Ok(Listed { copy: None, list, first, firsts: Vec::new() })
    }

    /// Brings the numbers to the host. Blocks.
    fn fetch(&mut self) -> Result<()> {
        if self.firsts.is_empty() {
            self.firsts = self.first.read(0, self.first.len())?;
        }
        Ok(())
    }

    /// The list becomes this one's own.
    fn own(&mut self, cx: &Context) -> Result<()> {
        let copy = DeviceBuffer::<u32>::new(cx, self.first.len() - 1)?;
        memory::copy(copy.address(), self.list, copy.bytes(), cx.stream)?;
        self.list = copy.address();
        self.copy = Some(copy);
        Ok(())
    }

    /// Most windows of a row.
    fn longest(&self) -> usize {
        self.firsts.windows(2).map(|row| (row[1] - row[0]) as usize).max().unwrap_or(0)
    }

    /// Rows whose tasks are up to `most`, which each row's own are.
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

    /// All rows.
    fn all(&self, count: i64) -> Part {
        Part { rows: 0..self.first.len() - 1, tasks: 0..count }
    }
}

/// Wide rows of a product.
pub struct Wide {
    /// Starts of windows in the rows of the right factor, where there are several.
    starts: Option<DeviceBuffer<u32>>,
    windows: i64,
    /// Tasks of all rows.
    count: i64,
    rows: Listed,
    /// Of all rows, where they are kept.
    whole: Option<Tasks>,
}

impl Wide {
    /// Counts the entries of the wide rows into `counts`; `None` if there are none, or
    /// the memory for it is missing, so that another way must be taken. `list` has
    /// those rows, with `count` windows.
    pub fn count(
        cx: &Context,
        product: &Product<'_>,
        list: (Address, i64),
        count: usize,
        counts: Address,
    ) -> Result<Option<Wide>> {
        if count == 0 {
            return Ok(None);
        }
        optional(Self::try_count(cx, product, list, count, counts)).map(Option::flatten)
    }

    fn try_count(
        cx: &Context,
        product: &Product<'_>,
        list: (Address, i64),
        count: usize,
        counts: Address,
    ) -> Result<Option<Wide>> {
        let Product { device, kernels, right, .. } = *product;
        let windows = windows(right);
        let starts = match windows {
            1 => None,
            _ => Some(DeviceBuffer::new(cx, right.rows as usize * (windows as usize + 1))?),
        };
        let rows = Listed::new(cx, product, list)?;
        let mut wide = Wide { starts, windows, count: count as i64, rows, whole: None };
        let words = right.rows.saturating_mul(windows).saturating_mul(WORDS as i64);
        // Only faster with them, so their memory may be missing.
        let bits = match bits_pay(words, right.nnz) {
            true => optional(DeviceBuffer::<u32>::zeroed(cx, words as usize))?,
            false => None,
        };
        let bits = bits.as_ref().map_or(Address::NULL, DeviceBuffer::address);
        let of_right = Factor::of(right);
        // SAFETY: the pattern has been validated and its columns ascend; the arrays have
        // a number and words for each row and window.
        unsafe {
            if let Some(starts) = &wide.starts {
                launch!(kernels.get(Name::WideStarts)?, blocks(device, starts.len() as i64), 256, 0, cx.stream;
                    of_right, right.rows, windows, starts.address())?;
            }
            if !bits.is_null() {
                launch!(kernels.get(Name::WideBits)?, blocks(device, 32 * right.rows), 256, 0, cx.stream;
                    of_right, right.rows, windows, bits)?;
            }
        }
        let listed = wide.rows.first.len() - 1;
        if let Some(tasks) = optional(Tasks::new(cx, product, count, listed))? {
            wide.find(cx, product, &wide.rows, &wide.rows.all(wide.count), &tasks, bits, counts)?;
            tasks.sum_parts(cx, product, listed)?;
            wide.whole = Some(tasks);
            return Ok(Some(wide));
        }
        wide.rows.own(cx)?;
        wide.rows.fetch()?;
        let Some(tasks) = Tasks::fit(cx, product, (wide.rows.longest(), count), listed)? else {
            return Ok(None);
        };
        for part in wide.rows.parts(tasks.tasks.len()) {
            wide.find(cx, product, &wide.rows, &part, &tasks, bits, counts)?;
        }
        Ok(Some(wide))
    }

    /// The tasks of some rows: their columns, the entries before them, and those of
    /// the rows in `counts`, unless that is NULL. Only launches.
    #[allow(clippy::too_many_arguments)]
    fn find(
        &self,
        cx: &Context,
        product: &Product<'_>,
        rows: &Listed,
        part: &Part,
        tasks: &Tasks,
        bits: Address,
        counts: Address,
    ) -> Result<()> {
        let Product { kernels, left, right, facts, .. } = *product;
        let (offsets, cut) = product.cut();
        let extra = tasks.partial().before;
        let (listed, count) = (part.rows.len() as i64, part.tasks.end - part.tasks.start);
        let list = rows.list.offset(part.rows.start * size_of::<u32>());
        let first = rows.first.at(part.rows.start);
        let (blocks, warps) = (warp_blocks(listed, 256), warp_blocks(count, WARPS_BLOCK));
        let before = part.tasks.start as usize;
        // Tasks are numbered from the first of all rows.
        let (places, sums) = (
            tasks.tasks.address().rebased(before * size_of::<Task>()),
            tasks.before.address().rebased(before * 4),
        );
        // SAFETY: the patterns have been validated, and the right factor's columns
        // ascend; each array has the elements that the kernels say, by the number of
        // windows that was counted for the rows of the list, less those before.
        unsafe {
            launch!(kernels.get(Name::WideTasks)?, blocks, 256, 0, cx.stream;
                offsets, cut, list, listed, facts.lows, first, places)?;
            launch!(kernels.get(Name::WideCount)?, warps, WARPS_BLOCK, 0, cx.stream;
                Factor::of(left), Factor::of(right), cut, self.starts(), bits, tasks.tasks.address(), count,
                tasks.masks.address(), tasks.before.address())?;
            if product.is_cut() {
                launch!(kernels.get(Name::WideMerge)?, warps, WARPS_BLOCK, 0, cx.stream;
                    offsets, cut, tasks.tasks.address(), count, tasks.masks.address(), tasks.before.address())?;
            }
            launch!(kernels.get(Name::WideSums)?, blocks, 256, 0, cx.stream;
                offsets, cut, list, listed, first, sums, counts, extra)
        }
    }

    fn starts(&self) -> StartsAt {
        let data = self.starts.as_ref().map_or(Address::NULL, DeviceBuffer::address);
        StartsAt { data, windows: self.windows }
    }

    /// Gives back what the numeric phase can find again. `list` has the rows as
    /// before; it may go afterwards. Blocks.
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

    /// Columns and values of the wide rows; false, and nothing is done, where the memory
    /// for it is missing, which rows in parts need more of. `kept` is for what is made on the way. Only
    /// launches, but where memory is. Then [`Wide::add_parts`].
    pub fn multiply(
        &self,
        cx: &Context,
        product: &Product<'_>,
        alpha: Scalar,
        output: &Output,
        kept: &mut Option<Tasks>,
        beside: &Beside,
    ) -> Result<bool> {
        if let Some(tasks) = &self.whole {
            self.multiply_tasks(cx, product, alpha, output, (tasks, self.count), beside)?;
            return Ok(true);
        }
        self.multiply_parts(cx, product, &self.rows, alpha, output, kept)
    }

    /// The same of other rows, some of the product's, whose numbers begin elsewhere.
    pub fn multiply_listed(
        &self,
        cx: &Context,
        product: &Product<'_>,
        list: (Address, i64),
        alpha: Scalar,
        output: &Output,
    ) -> Result<bool> {
        if list.1 == 0 {
            return Ok(true);
        }
        let Some(mut rows) = optional(Listed::new(cx, product, list))? else {
            return Ok(false);
        };
        rows.fetch()?;
        self.multiply_parts(cx, product, &rows, alpha, output, &mut None)
    }

    fn multiply_parts(
        &self,
        cx: &Context,
        product: &Product<'_>,
        rows: &Listed,
        alpha: Scalar,
        output: &Output,
        kept: &mut Option<Tasks>,
    ) -> Result<bool> {
        if kept.is_none() {
            let most = rows.firsts.last().map_or(0, |&last| last as usize);
            *kept = Tasks::fit(cx, product, (rows.longest(), most), rows.firsts.len() - 1)?;
        }
        let Some(tasks) = kept else {
            return Ok(false);
        };
        for part in rows.parts(tasks.tasks.len()) {
            self.find(cx, product, rows, &part, tasks, Address::NULL, Address::NULL)?;
            tasks.sum_parts(cx, product, part.rows.len())?;
            if let Some(partial) = &mut tasks.partial {
                partial.make_room_for_rows(cx, part.rows.len())?;
            }
            let count = part.tasks.end - part.tasks.start;
            // The next tasks take the place of these.
            self.multiply_tasks(cx, product, alpha, output, (tasks, count), &Beside::new(false))?;
            self.add_parts_of(cx, product, alpha, output, (tasks, count))?;
        }
        tasks.partial.iter_mut().for_each(|partial| partial.is_settled = true);
        Ok(true)
    }

    fn multiply_tasks(
        &self,
        cx: &Context,
        product: &Product<'_>,
        alpha: Scalar,
        output: &Output,
        (tasks, count): (&Tasks, i64),
        beside: &Beside,
    ) -> Result<()> {
        let Product { kernels, left, right, facts, .. } = *product;
        let blocks = warp_blocks(count, WARPS_BLOCK);
        let short = is_short(right.nnz as f64 / (right.rows as f64 * self.windows as f64));
        let partial = tasks.partial();
        // SAFETY: the patterns have been validated and C has room for what was
        // counted, by these masks; the shared memory is what the kernel says.
        unsafe {
            launch_beside!(beside, kernels.get(Name::WideMultiply)?, blocks, WARPS_BLOCK, kernels.wide_shared(), cx.stream;
                Factor::of(left), Factor::of(right), left.values, right.values, alpha, facts.cut, self.starts(),
                i32::from(short), tasks.tasks.address(), count, tasks.masks.address(), tasks.before.address(),
                partial, *output)
        }
    }

    /// All tasks, where they are kept.
    pub fn whole(&self) -> Option<(&Tasks, i64)> {
        self.whole.as_ref().map(|tasks| (tasks, self.count))
    }

    /// Bytes of what is kept.
    pub fn bytes(&self) -> usize {
        let of_tasks = |tasks: &Tasks| {
            let partial = tasks.partial.as_ref().and_then(|partial| partial.sums.as_ref());
            tasks.tasks.len() * TASK_BYTES + partial.map_or(0, DeviceBuffer::bytes)
        };
        self.starts.as_ref().map_or(0, DeviceBuffer::bytes) + self.whole.as_ref().map_or(0, of_tasks)
    }

    /// After [`Wide::multiply`] and whatever other rows are taken by: adds up the sums of rows in parts.
    pub fn add_parts(
        &self,
        cx: &Context,
        product: &Product<'_>,
        alpha: Scalar,
        output: &Output,
    ) -> Result<()> {
        match &self.whole {
            Some(tasks) => self.add_parts_of(cx, product, alpha, output, (tasks, self.count)),
            None => Ok(()),
        }
    }

    fn add_parts_of(
        &self,
        cx: &Context,
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
        // SAFETY: as above; the parts have written their sums.
        unsafe {
            launch!(product.kernels.get(Name::WideParts)?, warp_blocks(count, WARPS_BLOCK), WARPS_BLOCK, 0, cx.stream;
                offsets, alpha, cut, tasks.tasks.address(), count, tasks.masks.address(), tasks.before.address(),
                partial, *output)
        }
    }

    /// Some rows are in parts, whose sums have an order of their own.
    pub fn has_parts(&self, facts: &FactsAt) -> bool {
        match &self.whole {
            Some(tasks) => !tasks.partial().sums.is_null(),
            None => facts.cut != Cut::NONE,
        }
    }

    /// Returns the address of the number of partial sums of split rows, once these have been counted, or NULL where no
    /// row is split or tasks are not kept.
    pub fn number_of_partial_sums(&self) -> Address {
        let partial = self.whole.as_ref().and_then(|tasks| tasks.partial.as_ref());
        partial.map_or(Address::NULL, |partial| partial.before.at(partial.before.len() - 1))
    }

    /// Makes room for `sums` partial sums of split rows ([`Wide::number_of_partial_sums`]). The stream has been waited
    /// for. Blocks where the memory for it is missing.
    pub fn settle(&mut self, cx: &Context, kernels: &Kernels, sums: usize) -> Result<()> {
        if let Some(tasks) = &mut self.whole {
            if let Some(partial) = &mut tasks.partial {
                kernels.get(Name::WideParts)?;
                if optional(partial.make_room(cx, sums))?.is_none() {
                    // They are taken part by part.
                    self.whole = None;
                    self.rows.fetch()?;
                    if self.rows.copy.is_none() {
                        self.rows.own(cx)?;
                    }
                }
            }
        }
        self.seal();
        Ok(())
    }

    /// The stream has been waited for.
    fn seal(&mut self) {
        self.starts.iter_mut().for_each(DeviceBuffer::seal);
        self.rows.first.seal();
        self.rows.copy.iter_mut().for_each(DeviceBuffer::seal);
        self.whole.iter_mut().for_each(Tasks::seal);
    }
}

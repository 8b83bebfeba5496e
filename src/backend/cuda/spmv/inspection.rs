//! Inspection of a matrix for SpMV before an algorithm is chosen and built: whether the pattern is valid, the
//! pattern statistics, the forms that hold the values, and the rows that share their columns. All kernels are
//! enqueued together, for a pattern that may be invalid, and their results come back on one readback page
//! after one wait. The results are passed on to the executors' builders.

use std::cell::RefCell;
use std::sync::Arc;

use super::sell::{self, BegunSlices};
use crate::backend::cuda::check::{self, PatternReport};
use crate::backend::cuda::convert::{statistics, values};
use crate::backend::cuda::device::{Device, DeviceCall};
use crate::backend::cuda::launch::{launch, launch_overlapping, Overlap};
use crate::backend::cuda::memory::{DeviceBuffer, Fill, Readback};
use crate::backend::cuda::module::kinds::kernel_kinds;
use crate::backend::cuda::operand::{Operand, RowStats, Rows, Widths};
use crate::error::{Error, Result};
use crate::format::narrowing::Form;
use crate::format::warp_sell::{MOST_ITEM_ROWS, MOST_SHARED, WINDOW};
use crate::matrix::SparseArrays;
use crate::memory::Context;
use crate::problem::SpmvProblem;
use crate::select::spmv::sell::{may_share, rows_per_warp_log2};
use crate::select::spmv::statistics::{SpmvStatistics, SHARED, WORDS};
use crate::select::{self, grids, Source, SpmvInspection};
use crate::types::{Address, DataType, IndexType};

kernel_kinds! { "analysis/shared" {
    SAME_ROWS(Widths) = "same_rows" for [widths()];
    SHARED_ENTRIES(IndexType) = "shared_entries" for [index_types()];
} }

/// Words of the readback page: first those of the pattern statistics, the last two of which count what rows
/// share; then the forms that do not hold the values; then the report of the check, which is not copied.
const LOST: usize = WORDS;
const FETCHED: usize = LOST + 1;
const CHECK: usize = FETCHED;
/// The entries that rows share are the last words of the statistics, so kernels can write them as an array.
const _: () = assert!(SHARED + MOST_ITEM_ROWS - 1 == WORDS);
const _: () = assert!(CHECK + check::DEVICE_WORDS <= Readback::WORDS);

/// Properties of values and columns that builders need.
pub(crate) struct StorageProperties {
    /// Form of fewest bytes that holds the values; [`Form::Full`] if they will be updated, because new values
    /// need not fit a narrower form, and for SpMM, which stores them as they are.
    pub(super) form: Form,
    /// For each row a byte that is 1 if the row has 1 to [`MOST_SHARED`] entries and the columns of the row before.
    /// `None` if rows have few entries, if values are complex, or if rows or columns are numbered by more than 32 bits.
    pub(super) same: Option<DeviceBuffer<u8>>,
    /// Number of entries in items of 2 and of 3 rows of `sell`, if K were that number.
    pub(super) shared: [usize; MOST_ITEM_ROWS - 1],
    /// True if the columns of nearly all entries are consecutive; false for a copy, where this is not known.
    pub(super) adjacent: bool,
    /// Slices for `sell` that the device is making of the rows.
    pub(crate) begun: RefCell<Option<BegunSlices>>,
}

/// Results of inspecting a matrix whose rows of op(A) are in place.
pub(super) struct InspectedMatrix {
    device: Arc<Device>,
    report: PatternReport,
    properties: StorageProperties,
}

impl Drop for InspectedMatrix {
    fn drop(&mut self) {
        // Arrays that the stream still works on are released in its order, in their context. The stream has no work
        // left if a builder has waited for its own.
        let _entered = self.device.enter();
        self.properties.release();
        self.properties.same = None;
    }
}

impl InspectedMatrix {
    pub(super) fn properties(&self) -> &StorageProperties {
        &self.properties
    }
}

/// Marks the rows of up to [`MOST_SHARED`] entries that have the columns of the row before, and adds the
/// entries of items of 2 and of 3 rows to two words. The pattern need not be valid. The second of its kernels
/// waits for all before it, and so ends the overlap. `same` has a byte for each row; it is allocated before the first
/// kernel of the overlap, since an allocator of the user's may give memory in the order of the stream.
pub(crate) fn enqueue_shared(
    cx: &DeviceCall<'_>,
    rows: &Rows,
    same: &DeviceBuffer<u8>,
    entries: Address,
    overlap: &Overlap,
) -> Result<()> {
    let count = rows.rows as u64;
    let multiprocessors = cx.device.properties().multiprocessors;
    let rows_log2 = rows_per_warp_log2(count, multiprocessors.into());
    let per_block = u64::from(sell::CONVERT_THREADS / sell::WARP) << rows_log2;
    let grid = grids::blocks(count, per_block, multiprocessors);
    let kernel = SAME_ROWS.load(cx.device, (rows.widths(),))?;
    // SAFETY: there are rows + 1 offsets and nnz columns of these types, and one byte per row; offsets are
    // clamped to nnz before they are used as indices.
    unsafe {
        launch_overlapping!(overlap, kernel, grid, sell::CONVERT_THREADS, 0, cx.stream;
            rows.offsets, rows.indices, rows.base, rows.rows, rows.nnz, MOST_SHARED as i64, rows_log2 as i32,
            same.address())?;
    }
    let least_window = (WINDOW / MOST_ITEM_ROWS * MOST_ITEM_ROWS) as u64;
    let windows = u32::try_from(count.div_ceil(least_window))
        .map_err(|_| Error::unsupported("A: too many rows for one launch"))?;
    let kernel = SHARED_ENTRIES.load(cx.device, (rows.offset_type,))?;
    // SAFETY: there are rows + 1 offsets, one byte per row, and room for both numbers.
    unsafe {
        launch!(kernel, (windows, (MOST_ITEM_ROWS - 1) as u32), sell::CONVERT_THREADS, 0, cx.stream;
            rows.offsets, same.address(), rows.base, rows.rows, rows.nnz, WINDOW as i32, entries)
    }
}

/// Allocates a byte for each row where kernels may take rows that share columns; `None` elsewhere.
fn marks_of_same_rows(
    cx: &DeviceCall<'_>,
    value_type: DataType,
    rows: &Rows,
) -> Result<Option<DeviceBuffer<u8>>> {
    // Complex kernels take single rows only, and converted layouts number rows by 32 bits.
    let numbered = rows.rows.max(rows.cols) <= i64::from(i32::MAX);
    let is_real = !value_type.is_complex();
    let wanted = numbered && is_real && may_share(rows.rows as usize, rows.nnz as usize);
    (wanted && rows.rows > 0).then(|| DeviceBuffer::new(cx, rows.rows as usize)).transpose()
}

/// Enqueues the kernels that inspect the values and, if there are marks for it, what rows share.
fn enqueue(
    cx: &DeviceCall<'_>,
    problem: &SpmvProblem,
    rows: &Rows,
    same: Option<&DeviceBuffer<u8>>,
    words: &Readback,
    overlap: &Overlap,
) -> Result<()> {
    if !problem.value_updates {
        values::enqueue(cx, rows.values, rows.nnz, problem.types.a, words.at(LOST), overlap)?;
    }
    match same {
        Some(same) => enqueue_shared(cx, rows, same, words.at(SHARED), overlap),
        None => Ok(()),
    }
}

impl StorageProperties {
    fn new(problem: &SpmvProblem, nnz: i64, same: Option<DeviceBuffer<u8>>, words: &[u64]) -> Self {
        let form = match problem.value_updates {
            true => Form::Full,
            false => values::narrowest(nnz, problem.types.a, words[LOST] as u32),
        };
        StorageProperties { form, ..StorageProperties::of_shared(same, &words[SHARED..]) }
    }

    /// Properties of values in the form that they have, from the words that [`enqueue_shared`] has counted.
    fn of_shared(same: Option<DeviceBuffer<u8>>, words: &[u64]) -> Self {
        let shared = std::array::from_fn(|at| words[at] as usize);
        StorageProperties { form: Form::Full, same, shared, adjacent: false, begun: RefCell::new(None) }
    }

    /// Inspects rows that are valid. Blocks.
    pub(super) fn of_rows(cx: &DeviceCall<'_>, problem: &SpmvProblem, rows: &Rows) -> Result<Self> {
        let same = marks_of_same_rows(cx, problem.types.a, rows)?;
        if problem.value_updates && same.is_none() {
            return Ok(StorageProperties::of_shared(None, &[0; MOST_ITEM_ROWS - 1]));
        }
        let mut words = Readback::take(cx)?;
        enqueue(cx, problem, rows, same.as_ref(), &words, &Overlap::new(true))?;
        words.fetch(cx, FETCHED)?;
        Ok(StorageProperties::new(problem, rows.nnz, same, words.wait(cx)?))
    }

    /// Gives up the slices that were begun, since another algorithm has been chosen. Blocks if there are any.
    pub(crate) fn discard_slices(&self, cx: &Context) {
        if let Some(begun) = self.begun.take() {
            begun.discard(cx);
        }
    }

    /// Records that the stream has been waited for since the last work that reads the marks was enqueued.
    pub(super) fn mark_filled(&mut self) {
        self.same.mark_filled();
    }

    /// Drops slices that were begun, which waits for their kernels, and marks the marks as filled if the stream has no
    /// work left. For the end of an analysis, with the device's context current.
    pub(crate) fn release(&mut self) {
        self.begun.take();
        self.same.iter_mut().for_each(DeviceBuffer::mark_filled_if_idle);
    }
}

/// Marks of rows whose columns are counted together with other things ([`enqueue_shared`]); they become properties
/// when the counts are there.
pub(crate) struct SharedColumns {
    same: DeviceBuffer<u8>,
}

impl SharedColumns {
    /// Number of words of the counts.
    pub(crate) const WORDS: usize = MOST_ITEM_ROWS - 1;

    /// Allocates the marks; `None` where kernels take single rows only.
    pub(crate) fn new(cx: &DeviceCall<'_>, value_type: DataType, rows: &Rows) -> Result<Option<Self>> {
        Ok(marks_of_same_rows(cx, value_type, rows)?.map(|same| SharedColumns { same }))
    }

    /// Enqueues the counting in the words at `entries`, which must be zero; ends the overlap.
    pub(crate) fn enqueue(
        &self,
        cx: &DeviceCall<'_>,
        rows: &Rows,
        entries: Address,
        overlap: &Overlap,
    ) -> Result<()> {
        enqueue_shared(cx, rows, &self.same, entries, overlap)
    }

    /// Properties of values in the form that they have, from the words as they have been counted.
    pub(crate) fn properties(self, words: &[u64]) -> StorageProperties {
        StorageProperties::of_shared(Some(self.same), words)
    }
}

/// Rows of op(A), which are in place.
fn rows_in_place(problem: &SpmvProblem) -> Rows {
    let (SparseArrays::Csr(m) | SparseArrays::Csc(m)) = &problem.a.arrays else {
        unreachable!("rows are in place in compressed arrays only")
    };
    Rows::of(m)
}

/// Inspects a matrix whose rows of op(A) are in place, and validates its pattern; counts the pattern statistics if
/// they are `wanted`. Blocks.
fn inspect_rows(
    cx: &DeviceCall<'_>,
    problem: &SpmvProblem,
    wanted: bool,
) -> Result<(InspectedMatrix, Option<SpmvStatistics>)> {
    let rows = rows_in_place(problem);
    let x_bytes = problem.types.x.size();
    let same = marks_of_same_rows(cx, problem.types.a, &rows)?;
    let mut words = Readback::take(cx)?;
    let overlap = &Overlap::new(true);
    check::enqueue_rows(cx, &rows, &words, CHECK, None, overlap)?;
    if wanted {
        statistics::enqueue(cx, &rows, x_bytes, words.at(0), overlap)?;
    }
    enqueue(cx, problem, &rows, same.as_ref(), &words, overlap)?;
    words.fetch(cx, FETCHED)?;
    let words = words.wait(cx)?;
    let report = check::pattern_report(cx, &problem.a, problem.op, "A", &words[CHECK..][..check::WORDS])?;
    let sizes = (rows.rows as u64, rows.cols as u64, rows.nnz as u64);
    let statistics = wanted.then(|| SpmvStatistics::new(sizes, x_bytes, words[..WORDS].to_vec()));
    let adjacent = statistics.as_ref().is_some_and(SpmvStatistics::is_adjacent);
    let properties = StorageProperties { adjacent, ..StorageProperties::new(problem, rows.nnz, same, words) };
    Ok((InspectedMatrix { device: Arc::clone(cx.device), report, properties }, statistics))
}

/// Inspects a matrix whose rows of op(A) are in place, and validates its pattern. Blocks.
pub(super) fn inspect_in_place(
    cx: &DeviceCall<'_>,
    problem: &SpmvProblem,
) -> Result<(InspectedMatrix, SpmvStatistics)> {
    let (inspected, statistics) = inspect_rows(cx, problem, true)?;
    Ok((inspected, statistics.expect("they were wanted")))
}

/// Validates a matrix whose rows of op(A) are in place, and inspects its values and what rows share, without
/// pattern statistics. Returns `None` if its rows are not in place. Blocks.
pub(super) fn check_if_in_place(
    cx: &DeviceCall<'_>,
    problem: &SpmvProblem,
) -> Result<Option<InspectedMatrix>> {
    match nearest(problem) {
        Source::InPlace => Ok(Some(inspect_rows(cx, problem, false)?.0)),
        Source::Canonical => Ok(None),
    }
}

/// Inspects a matrix if its rows of op(A) are in place; otherwise returns `None`.
pub(super) fn inspect_if_in_place(
    cx: &DeviceCall<'_>,
    problem: &SpmvProblem,
) -> Result<Option<InspectedMatrix>> {
    match nearest(problem) {
        Source::InPlace => Ok(Some(inspect_in_place(cx, problem)?.0)),
        Source::Canonical => Ok(None),
    }
}

/// Inspects a matrix whose rows of op(A) are in place, for the choice of an algorithm, and begins to make slices for
/// `sell`, which nearly all matrices take: the device makes them while the host chooses.
pub(crate) fn inspect(cx: &DeviceCall<'_>, problem: &SpmvProblem) -> Result<SpmvInspection> {
    let (inspected, statistics) = inspect_in_place(cx, problem)?;
    let rows = rows_in_place(problem);
    // An error is ignored here: if `sell` is chosen, the layout is made anew, and that reports it.
    let begun = sell::begin(cx, problem, &rows, &inspected.properties).ok().flatten();
    inspected.properties.begun.replace(begun);
    Ok(SpmvInspection { statistics, backend_state: Box::new(inspected) })
}

/// Takes the operand of a problem from the source that depends on the pattern's properties; blocks if the
/// pattern has not been inspected.
fn operand_of(
    cx: &DeviceCall<'_>,
    problem: &SpmvProblem,
    inspected: Option<&InspectedMatrix>,
    source: impl Fn(&PatternReport) -> Source,
) -> Result<(Operand, RowStats)> {
    let (a, op) = (&problem.a, problem.op);
    let report = match inspected {
        Some(inspected) => inspected.report,
        None => check::inspect(cx, a, op, "A")?,
    };
    Operand::inspected(cx, a, op, source(&report), problem.value_updates, &report)
}

/// Takes the operand from `source`.
pub(super) fn operand(
    cx: &DeviceCall<'_>,
    problem: &SpmvProblem,
    inspected: Option<&InspectedMatrix>,
    source: Source,
) -> Result<(Operand, RowStats)> {
    operand_of(cx, problem, inspected, |_| source)
}

/// Source of rows that need not be sorted: in place where the rows of op(A) are in the user's arrays, which
/// saves a copy.
pub(super) fn nearest(problem: &SpmvProblem) -> Source {
    match select::in_place(&problem.a, problem.op) {
        true => Source::InPlace,
        false => Source::Canonical,
    }
}

/// Takes the operand with rows sorted by column: in place if the user's rows are sorted and in place.
pub(super) fn sorted_operand(
    cx: &DeviceCall<'_>,
    problem: &SpmvProblem,
    inspected: Option<&InspectedMatrix>,
) -> Result<(Operand, RowStats)> {
    operand_of(cx, problem, inspected, |report| match report.structure.sorted {
        true => nearest(problem),
        false => Source::Canonical,
    })
}

#[cfg(test)]
mod tests;

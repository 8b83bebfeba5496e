//! What analysis of SpMV looks at before it chooses and builds: whether the pattern is
//! valid, the counts of the survey, forms that hold the values, rows that share their
//! columns. All of it is enqueued together, for a pattern that may be wrong, and comes
//! back on one page after one wait; what is found goes on to the executors' builders.

use std::sync::Arc;

use super::sell;
use crate::backend::cuda::check::{self, Findings};
use crate::backend::cuda::convert::{survey, values};
use crate::backend::cuda::device::Device;
use crate::backend::cuda::launch::launch;
use crate::backend::cuda::memory::{DeviceBuffer, Readback};
use crate::backend::cuda::module::kinds::kernel_kinds;
use crate::backend::cuda::operand::{Operand, RowStats, Rows, Widths};
use crate::error::{Error, Result};
use crate::format::narrowing::Form;
use crate::format::warp_sell::{MOST_ITEM_ROWS, MOST_SHARED, WINDOW};
use crate::matrix::SparseArrays;
use crate::memory::Context;
use crate::problem::SpmvProblem;
use crate::select::spmv::sell::{looked_rows_log2, may_share};
use crate::select::spmv::survey::{Survey, SHARED, WORDS};
use crate::select::{self, grids, Source, Surveyed};
use crate::types::{Address, IndexType};

kernel_kinds! { "analysis/shared" {
    SAME_ROWS(Widths) = "same_rows" for [widths()];
    SHARED_ENTRIES(IndexType) = "shared_entries" for [index_types()];
} }

/// Words of the page: the survey's, of which the last two say what rows share, the forms
/// that do not hold the values, and, not copied, the check's.
const LOST: usize = WORDS;
const FETCHED: usize = LOST + 1;
const CHECK: usize = FETCHED;
/// Where an array of the page has what rows share.
const _: () = assert!(SHARED + MOST_ITEM_ROWS - 1 == WORDS);
const _: () = assert!(CHECK + check::DEVICE_WORDS <= Readback::WORDS);

/// What values and columns are like.
pub(super) struct Seen {
    /// The form of fewest bytes that holds the values; [`Form::Full`] where they will be
    /// updated: what fits now need not fit then.
    pub(super) form: Form,
    /// A byte a row: it has the columns of the row before. `None`: nobody looked, since
    /// rows have few entries or kernels take single rows only.
    pub(super) same: Option<DeviceBuffer<u8>>,
    /// Entries of items of 2 and of 3 rows of `sell`, were K that.
    pub(super) shared: [usize; MOST_ITEM_ROWS - 1],
    /// Columns of nearly all entries follow each other; not known of a copy.
    pub(super) adjacent: bool,
}

/// What a matrix is like whose rows of op(A) are in place.
pub(super) struct Looked {
    device: Arc<Device>,
    findings: Findings,
    seen: Seen,
}

impl Drop for Looked {
    fn drop(&mut self) {
        // Arrays that the stream still works on go back in its order, in the context.
        let _entered = self.device.enter();
        self.seen.same = None;
    }
}

impl Looked {
    pub(super) fn seen(&self) -> &Seen {
        &self.seen
    }
}

/// Marks rows that have the columns of the row before, whatever limits they have in a
/// layout, and adds the entries of items of 2 and of 3 rows to two words. The pattern need not be valid.
pub(crate) fn enqueue_shared(
    cx: &Context,
    device: &Device,
    rows: &Rows,
    entries: Address,
) -> Result<DeviceBuffer<u8>> {
    let same = DeviceBuffer::<u8>::new(cx, rows.rows as usize)?;
    let count = rows.rows as u64;
    let multiprocessors = device.properties().multiprocessors;
    let rows_log2 = looked_rows_log2(count, multiprocessors.into());
    let per_block = u64::from(sell::CONVERT_THREADS / sell::WARP) << rows_log2;
    let grid = grids::blocks(count, per_block, multiprocessors);
    let kernel = SAME_ROWS.load(device, (rows.widths(),))?;
    // SAFETY: rows + 1 offsets and nnz columns of these types, a byte a row; offsets are cut to
    // nnz before they are used as places.
    unsafe {
        launch!(kernel, grid, sell::CONVERT_THREADS, 0, cx.stream;
            rows.offsets, rows.indices, rows.base, rows.rows, rows.nnz, MOST_SHARED as i64, rows_log2 as i32,
            same.address())?;
    }
    let least_window = (WINDOW / MOST_ITEM_ROWS * MOST_ITEM_ROWS) as u64;
    let windows = u32::try_from(count.div_ceil(least_window))
        .map_err(|_| Error::unsupported("A: too many rows for one launch"))?;
    let kernel = SHARED_ENTRIES.load(device, (rows.offset_type,))?;
    // SAFETY: rows + 1 offsets, a byte a row, room for both numbers.
    unsafe {
        launch!(kernel, (windows, (MOST_ITEM_ROWS - 1) as u32), sell::CONVERT_THREADS, 0, cx.stream;
            rows.offsets, same.address(), rows.base, rows.rows, rows.nnz, WINDOW as i32, entries)?;
    }
    Ok(same)
}

/// Enqueues the looks at values and at what rows share.
fn enqueue(
    cx: &Context,
    device: &Device,
    problem: &SpmvProblem,
    rows: &Rows,
    words: &Readback,
) -> Result<Option<DeviceBuffer<u8>>> {
    let value_type = problem.types.a;
    if !problem.value_updates {
        values::enqueue(cx, device, rows.values, rows.nnz, value_type, words.at(LOST))?;
    }
    // Complex kernels have single rows only, and converted layouts rows of 32-bit numbers.
    let numbered = rows.rows.max(rows.cols) <= i64::from(i32::MAX);
    let wanted = numbered && !value_type.is_complex() && may_share(rows.rows as usize, rows.nnz as usize);
    match wanted && rows.rows > 0 {
        true => enqueue_shared(cx, device, rows, words.at(SHARED)).map(Some),
        false => Ok(None),
    }
}

impl Seen {
    fn new(problem: &SpmvProblem, nnz: i64, same: Option<DeviceBuffer<u8>>, words: &[u64]) -> Self {
        let form = match problem.value_updates {
            true => Form::Full,
            false => values::narrowest(nnz, problem.types.a, words[LOST] as u32),
        };
        let shared = [words[SHARED] as usize, words[SHARED + 1] as usize];
        Seen { form, same, shared, adjacent: false }
    }

    /// Of rows that are valid. Blocks.
    pub(super) fn of_rows(
        cx: &Context,
        device: &Arc<Device>,
        problem: &SpmvProblem,
        rows: &Rows,
    ) -> Result<Self> {
        let mut words = Readback::take(cx, device)?;
        let same = enqueue(cx, device, problem, rows, &words)?;
        words.fetch(cx, FETCHED)?;
        Ok(Seen::new(problem, rows.nnz, same, words.wait(cx)?))
    }
}

/// Looks at a matrix whose rows of op(A) are in place, and validates its pattern. Blocks.
pub(super) fn look(cx: &Context, device: &Arc<Device>, problem: &SpmvProblem) -> Result<(Looked, Survey)> {
    let (SparseArrays::Csr(m) | SparseArrays::Csc(m)) = &problem.a.arrays else {
        unreachable!("rows are in place in compressed arrays only")
    };
    let rows = Rows::of(m);
    let mut words = Readback::take(cx, device)?;
    check::enqueue(cx, device, &problem.a, problem.op, &words, CHECK)?;
    let x_bytes = problem.types.x.size();
    survey::enqueue(cx, device, &rows, x_bytes, words.at(0))?;
    let same = enqueue(cx, device, problem, &rows, &words)?;
    words.fetch(cx, FETCHED)?;
    let words = words.wait(cx)?;
    let findings = check::findings(cx, &problem.a, problem.op, "A", &words[CHECK..][..check::WORDS])?;
    let sizes = (rows.rows as u64, rows.cols as u64, rows.nnz as u64);
    let survey = Survey::new(sizes, x_bytes, words[..WORDS].to_vec());
    let adjacent = survey.is_adjacent();
    let seen = Seen { adjacent, ..Seen::new(problem, rows.nnz, same, words) };
    Ok((Looked { device: Arc::clone(device), findings, seen }, survey))
}

/// The same where rows of op(A) are in place.
pub(super) fn in_place(cx: &Context, device: &Arc<Device>, problem: &SpmvProblem) -> Result<Option<Looked>> {
    match nearest(problem) {
        Source::InPlace => Ok(Some(look(cx, device, problem)?.0)),
        Source::Canonical => Ok(None),
    }
}

/// The same for the choice.
pub(crate) fn survey(cx: &Context, device: &Arc<Device>, problem: &SpmvProblem) -> Result<Surveyed> {
    let (looked, survey) = look(cx, device, problem)?;
    Ok(Surveyed { survey, seen: Box::new(looked) })
}

/// The operand of a problem, sorted by column if that is asked for; blocks where the pattern
/// has not been looked at.
fn operand_of(
    cx: &Context,
    device: &Arc<Device>,
    problem: &SpmvProblem,
    looked: Option<&Looked>,
    source: impl Fn(&Findings) -> Source,
) -> Result<(Operand, RowStats)> {
    let (a, op) = (&problem.a, problem.op);
    let findings = match looked {
        Some(looked) => looked.findings,
        None => check::inspect(cx, device, a, op, "A")?,
    };
    Operand::inspected(cx, device, a, op, source(&findings), problem.value_updates, &findings)
}

/// The operand as `source` says.
pub(super) fn operand(
    cx: &Context,
    device: &Arc<Device>,
    problem: &SpmvProblem,
    looked: Option<&Looked>,
    source: Source,
) -> Result<(Operand, RowStats)> {
    operand_of(cx, device, problem, looked, |_| source)
}

/// In place where rows of op(A) lie in the user's arrays: they need no copy on the way.
pub(super) fn nearest(problem: &SpmvProblem) -> Source {
    match select::in_place(&problem.a, problem.op) {
        true => Source::InPlace,
        false => Source::Canonical,
    }
}

/// The operand with rows that are sorted by column: in place where the user's are.
pub(super) fn sorted_operand(
    cx: &Context,
    device: &Arc<Device>,
    problem: &SpmvProblem,
    looked: Option<&Looked>,
) -> Result<(Operand, RowStats)> {
    operand_of(cx, device, problem, looked, |findings| match findings.structure.sorted {
        true => nearest(problem),
        false => Source::Canonical,
    })
}

#[cfg(test)]
mod tests;

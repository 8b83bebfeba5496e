//! All that is counted in a pattern ([`Profile`]) on the device, the same as the host's.
//!
//! Two waits: for what says that the pattern is valid and its rows are sorted, with SpMV's survey; and for
//! all that needs this (a third and a copy where op(A)'s rows are not in place or not sorted).

use std::sync::Arc;

use super::check::{self, blocks};
use super::device::Device;
use super::launch::{launch, Parameter};
use super::memory::{zero, DeviceBuffer, Readback};
use super::operand::{Operand, Rows};
use super::spmm::window::number;
use super::{convert, spmv};
use crate::backend::Context;
use crate::error::Result;
use crate::layout::warp_sell::may_share;
use crate::matrix::{SparseArrays, SparseMatrix};
use crate::select::features::distinct::{self, Distinct};
use crate::select::features::{check_shape, Profile};
use crate::select::spmm::shape;
use crate::select::striped::{word, Sample, Striped};
use crate::select::survey::{Survey, SHARED, WORDS};
use crate::select::{in_place, Source};
use crate::types::{Address, DataType, Operation};

/// Threads of a block of kernels/convert/striped.cu, and its warps; threads of one of distinct.cu.
const THREADS: u32 = 256;
const WARPS: u64 = THREADS as u64 / 32;
const DISTINCT_THREADS: u32 = 1024;

/// Words of the first page: the survey's, then the check's.
const CHECK: usize = WORDS;
const _: () = assert!(CHECK + check::DEVICE_WORDS <= Readback::WORDS);
/// Words of the second: of the striped rows, of windows, and of columns that come again.
const WINDOWS: usize = word::COUNT;
const DISTINCT: usize = WINDOWS + number::SURVEY_WORDS;
const FETCHED: usize = DISTINCT + 2 * DISTINCT_WORDS;
const DISTINCT_WORDS: usize = 3;
const _: () = assert!(FETCHED <= Readback::WORDS);

/// Lines of a column of B that have a place each (of 8 bytes: 16 MB); of more only those that are
/// requested.
const MOST_LINES: usize = 1 << 21;
/// Entries of a row up to which a lane takes it, as kernels/convert/striped.cu has it, and counts of a strip
/// with a longer one.
const MOST_SHORT: u64 = 64;
const COUNTS: usize = 65;

/// Kernels' `Lines`.
#[derive(Clone, Copy)]
#[repr(C)]
struct Lines {
    at: Address,
    keys: Address,
    places: i64,
}
// SAFETY: the kernels' structure has the same members.
unsafe impl Parameter for Lines {}

/// Kernels' `Queue`.
#[derive(Clone, Copy)]
#[repr(C)]
struct Queue {
    before: Address,
    strips: Address,
    counts: Address,
}
// SAFETY: the kernels' structure has the same members.
unsafe impl Parameter for Queue {}

/// Memory of the kernels of striped rows.
struct Scratch {
    lines: Lines,
    queue: Queue,
    _words: DeviceBuffer<u64>,
}

impl Scratch {
    /// With a place for each line, or for so many.
    fn new(cx: &Context, rows: &Rows, sample: &Sample, places: Option<usize>) -> Result<Self> {
        let count = places.unwrap_or_else(|| lines_of(rows));
        // An entry of a long row puts one strip or two in the queue.
        let slots = (2 * rows.nnz as u64 / (MOST_SHORT + 1) + 1).min(sample.drawn) as usize;
        let keys = if places.is_some() { count.div_ceil(2) } else { 0 };
        let zeroed = count + keys;
        let (strips, counts) = (zeroed + slots, zeroed + slots + slots.div_ceil(2));
        let words = DeviceBuffer::<u64>::new(cx, counts + (slots * COUNTS).div_ceil(2))?;
        zero(words.address(), zeroed * size_of::<u64>(), cx.stream)?;
        let keys = if places.is_some() { words.at(count) } else { Address::NULL };
        Ok(Scratch {
            lines: Lines { at: words.address(), keys, places: count as i64 },
            queue: Queue { before: words.at(zeroed), strips: words.at(strips), counts: words.at(counts) },
            _words: words,
        })
    }
}

/// Lines of a column of B.
fn lines_of(rows: &Rows) -> usize {
    (rows.cols as usize).div_ceil(32)
}

/// Adds to words that are zero before.
fn enqueue_striped(
    cx: &Context,
    device: &Device,
    rows: &Rows,
    places: Option<usize>,
    words: &Readback,
) -> Result<Option<Scratch>> {
    if rows.rows == 0 {
        return Ok(None);
    }
    let sample = Sample::new(rows.rows as u64, rows.nnz as u64);
    let scratch = Scratch::new(cx, rows, &sample, places)?;
    let (lines, queue) = (scratch.lines, scratch.queue);
    let kernel = |name: &str| device.modules().kernel("convert/striped", name);
    let most = u64::from(device.properties().multiprocessors) * 8;
    let grid_of = |warps: u64| warps.div_ceil(WARPS).clamp(1, most) as u32;
    let square = i32::from(rows.rows == rows.cols);
    let rows_grid = grid_of(sample.drawn).max(blocks(device, rows.rows));
    // Of all entries that pieces can have.
    let pieces_grid = grid_of((rows.nnz as u64).div_ceil(128));
    let totals_grid = grid_of((lines.places as u64).div_ceil(32).max(sample.drawn));
    let of_rows = kernel(&format!("striped_rows_{}", rows.widths()))?;
    let of_pieces = kernel(&format!("striped_pieces_{}", rows.widths()))?;
    let totals = kernel("striped_totals")?;
    // SAFETY: valid rows of these types whose columns have places or find them; the queue has room for
    // every strip with a long row; word::COUNT words.
    unsafe {
        launch!(of_rows, rows_grid, THREADS, 0, cx.stream;
            rows.offsets, rows.indices, rows.base, rows.rows, rows.nnz, square, sample.strips as i64,
            sample.drawn as i64, lines, queue, words.at(0))?;
        if rows.nnz as u64 > MOST_SHORT {
            launch!(of_pieces, pieces_grid, THREADS, 0, cx.stream;
                rows.offsets, rows.indices, rows.base, rows.rows, rows.nnz, square, lines, queue, words.at(0))?;
        }
        launch!(totals, totals_grid, THREADS, 0, cx.stream; rows.rows, lines, queue, words.at(0))?;
    }
    Ok(Some(scratch))
}

/// The same of columns that come again, with six words.
fn enqueue_distinct(cx: &Context, device: &Device, rows: &Rows, words: Address) -> Result<()> {
    let windows = distinct::window_samples(rows.rows as usize);
    let products = distinct::product_samples(rows.rows as usize, rows.cols as usize);
    if rows.nnz == 0 {
        return Ok(());
    }
    let kernel = device.modules().kernel("convert/distinct", &format!("distinct_{}", rows.widths()))?;
    // SAFETY: valid rows of these types; six words.
    unsafe {
        launch!(kernel, (windows + products) as u32, DISTINCT_THREADS, 0, cx.stream;
            rows.offsets, rows.indices, rows.base, rows.rows, windows as i64, products as i64, words)
    }
}

fn sizes(rows: &Rows) -> (u64, u64, u64) {
    (rows.rows as u64, rows.cols as u64, rows.nnz as u64)
}

/// SpMV's survey, of rows that need not be valid, on a page; what it marks is of no use here.
fn enqueue_survey(
    cx: &Context,
    device: &Device,
    rows: &Rows,
    x_bytes: usize,
    words: &Readback,
) -> Result<Option<DeviceBuffer<u8>>> {
    convert::survey::enqueue(cx, device, rows, x_bytes, words.at(0))?;
    let wanted = rows.rows > 0 && may_share(rows.rows as usize, rows.nnz as usize);
    wanted.then(|| spmv::enqueue_shared(cx, device, rows, words.at(SHARED))).transpose()
}

/// What is counted in valid, sorted rows besides the survey. `most_lines`: [`MOST_LINES`]. Blocks.
fn of_rows(
    cx: &Context,
    device: &Arc<Device>,
    rows: &Rows,
    value: DataType,
    survey: Survey,
    most_lines: usize,
) -> Result<Profile> {
    let lines = lines_of(rows);
    // Two for each line that an entry of the sample can have; that may be more, if few rows have most.
    let wanted = 2 * (rows.nnz as usize).min(1 << 20);
    let mut places = (lines > most_lines).then(|| wanted.next_power_of_two());
    loop {
        let mut words = Readback::take(cx, device)?;
        let scratch = enqueue_striped(cx, device, rows, places, &words)?;
        number::enqueue_survey(cx, device, rows, shape(value), words.at(WINDOWS))?;
        enqueue_distinct(cx, device, rows, words.at(DISTINCT))?;
        words.fetch(cx, FETCHED)?;
        let words = words.wait(cx)?;
        drop(scratch);
        if words[word::LOST] > 0 {
            places = places.map(|places| places * 4).filter(|&places| places < lines);
            continue;
        }
        let shape = (rows.rows as usize, rows.cols as usize, rows.nnz as u64);
        let [reuse, compression] =
            [DISTINCT, DISTINCT + DISTINCT_WORDS].map(|at| Distinct::of_words(&words[at..]));
        return Ok(Profile {
            survey,
            windows: number::counts(rows, &words[WINDOWS..]),
            striped: Striped::of_words(shape, words),
            reuse,
            compression,
        });
    }
}

/// Of op(A), which is validated; errors name the argument `name`. Blocks. The context is current and the
/// arrays can be read by the device.
pub(super) fn of(
    cx: &Context,
    device: &Arc<Device>,
    a: &SparseMatrix,
    op: Operation,
    name: &str,
) -> Result<Profile> {
    check_shape(a, op, name)?;
    let value = a.value_type();
    let findings = match &a.arrays {
        SparseArrays::Csr(m) | SparseArrays::Csc(m) if in_place(a, op) => {
            let rows = Rows::of(m);
            let mut words = Readback::take(cx, device)?;
            check::enqueue(cx, device, a, op, &words, CHECK)?;
            let same = enqueue_survey(cx, device, &rows, value.size(), &words)?;
            words.fetch(cx, WORDS)?;
            let words = words.wait(cx)?;
            drop(same);
            let findings = check::findings(cx, a, op, name, &words[CHECK..][..check::WORDS])?;
            if findings.structure.sorted {
                let survey = Survey::new(sizes(&rows), value.size(), words[..WORDS].to_vec());
                return of_rows(cx, device, &rows, value, survey, MOST_LINES);
            }
            findings
        }
        _ => check::inspect(cx, device, a, op, name)?,
    };
    let (copy, _) = Operand::inspected(cx, device, a, op, Source::Canonical, false, &findings)?;
    let rows = copy.rows();
    let mut words = Readback::take(cx, device)?;
    let same = enqueue_survey(cx, device, &rows, value.size(), &words)?;
    words.fetch(cx, WORDS)?;
    let survey = Survey::new(sizes(&rows), value.size(), words.wait(cx)?[..WORDS].to_vec());
    drop(same);
    of_rows(cx, device, &rows, value, survey, MOST_LINES)
}

#[cfg(test)]
mod tests;

//! All that is counted in a pattern ([`Profile`]) on the device, the same as the host's.
//!
//! All parts are enqueued at one time, on several streams, with what says whether the pattern is valid and
//! its rows are sorted: none trusts it. So there is one wait, and where op(A)'s rows are not in place or not
//! sorted another for their copy.

use std::sync::Arc;

use super::check::{self, blocks, Findings};
use super::device::Device;
use super::fork::Fork;
use super::launch::{launch, Parameter};
use super::memory::{zero, DeviceBuffer, Readback};
use super::operand::{Operand, Rows};
use super::{convert, spmv};
use crate::error::Result;
use crate::layout::warp_sell::may_share;
use crate::matrix::{SparseArrays, SparseMatrix};
use crate::memory::Context;
use crate::select::features::distinct::{self, Repeats};
use crate::select::features::{check_shape, Profile};
use crate::select::striped::{word, Sample, Striped};
use crate::select::survey::{Survey, SHARED, WORDS};
use crate::select::{in_place, Source};
use crate::types::{Address, DataType, Operation};

/// Threads of a block of kernels/convert/striped.cu, and its warps; threads of one of distinct.cu.
const THREADS: u32 = 256;
const WARPS: u64 = THREADS as u64 / 32;
const DISTINCT_THREADS: u32 = 512;

/// Words of the page: SpMV's survey, striped rows, columns that come again, and the check's, which come to
/// the host by themselves.
const STRIPED: usize = WORDS;
const DISTINCT: usize = STRIPED + word::COUNT;
const CHECK: usize = DISTINCT + distinct::WORDS;
const _: () = assert!(CHECK + check::DEVICE_WORDS <= Readback::WORDS);

/// Lines of a column of B that have a place each (of 8 bytes: 16 MB); of more only those that are
/// requested.
const MOST_LINES: usize = 1 << 21;
/// Entries of a row up to which a lane takes it, as kernels/convert/striped.cu has it, and counts of a strip
/// with a longer one.
const MOST_SHORT: u64 = 64;
const COUNTS: usize = 65;
/// log2 of the entries of a piece of a longer one.
const PIECE_LOG2: u32 = 8;

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
    slots: i64,
    pieces: i64,
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
        // Each of a strip's rows and the one before it ends with a piece that is not whole, and is of two strips.
        let pieces = ((2 * rows.nnz as u64) >> PIECE_LOG2) + 33 * slots as u64;
        let queue = Queue {
            before: words.at(zeroed),
            strips: words.at(strips),
            counts: words.at(counts),
            slots: slots as i64,
            pieces: pieces as i64,
        };
        Ok(Scratch { lines: Lines { at: words.address(), keys, places: count as i64 }, queue, _words: words })
    }
}

/// Lines of a column of B.
fn lines_of(rows: &Rows) -> usize {
    (rows.cols as usize).div_ceil(32)
}

/// Of rows that need not be valid, as all that follows; adds to words that are zero before.
fn enqueue_striped(
    cx: &Context,
    device: &Device,
    rows: &Rows,
    places: Option<usize>,
    words: Address,
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
    // SAFETY: rows + 1 offsets and nnz columns of these types, which the kernels compare with the arrays'
    // lengths before they use them as places; the queue says what there is room for; word::COUNT words.
    unsafe {
        launch!(of_rows, rows_grid, THREADS, 0, cx.stream;
            rows.offsets, rows.indices, rows.base, rows.rows, rows.nnz, square, sample.strips as i64,
            sample.drawn as i64, lines, queue, words)?;
        if rows.nnz as u64 > MOST_SHORT {
            launch!(of_pieces, pieces_grid, THREADS, 0, cx.stream;
                rows.offsets, rows.indices, rows.base, rows.rows, rows.nnz, square, lines, queue, words)?;
        }
        launch!(totals, totals_grid, THREADS, 0, cx.stream; rows.rows, lines, queue, words)?;
    }
    Ok(Some(scratch))
}

/// The same of columns that come again.
fn enqueue_distinct(cx: &Context, device: &Device, rows: &Rows, words: Address) -> Result<()> {
    let windows = distinct::window_samples(rows.rows as usize);
    let products = distinct::product_samples(rows.rows as usize, rows.cols as usize);
    if rows.nnz == 0 {
        return Ok(());
    }
    let kernel = device.modules().kernel("convert/distinct", &format!("distinct_{}", rows.widths()))?;
    let groups = distinct::WINDOW_KINDS * windows + products;
    // SAFETY: as above; distinct::WORDS words.
    unsafe {
        launch!(kernel, groups as u32, DISTINCT_THREADS, 0, cx.stream;
            rows.offsets, rows.indices, rows.base, rows.rows, rows.nnz, windows as i64, products as i64, words)
    }
}

fn sizes(rows: &Rows) -> (u64, u64, u64) {
    (rows.rows as u64, rows.cols as u64, rows.nnz as u64)
}

/// SpMV's survey, but for what rows share.
fn enqueue_survey(
    cx: &Context,
    device: &Device,
    rows: &Rows,
    x_bytes: usize,
    words: &Readback,
) -> Result<()> {
    convert::survey::enqueue(cx, device, rows, x_bytes, words.at(0))
}

/// What rows share; what it marks is of no use here.
fn enqueue_shared(
    cx: &Context,
    device: &Device,
    rows: &Rows,
    words: &Readback,
) -> Result<Option<DeviceBuffer<u8>>> {
    let wanted = rows.rows > 0 && may_share(rows.rows as usize, rows.nnz as usize);
    wanted.then(|| spmv::enqueue_shared(cx, device, rows, words.at(SHARED))).transpose()
}

/// What is counted, and where it is checked what was found: `None` if rows are not sorted.
type Checked = (Option<Profile>, Option<Findings>);

/// How it is counted.
#[derive(Clone, Copy)]
struct How {
    /// [`MOST_LINES`].
    most_lines: usize,
    /// On several streams.
    is_beside: bool,
}

const HOW: How = How { most_lines: MOST_LINES, is_beside: true };

/// Counts in rows, which need not be valid or sorted if they are checked as those of op(`checked`). Blocks.
fn of_rows(
    cx: &Context,
    device: &Arc<Device>,
    rows: &Rows,
    value: DataType,
    checked: Option<(&SparseMatrix, Operation, &str)>,
    how: How,
) -> Result<Checked> {
    let lines = lines_of(rows);
    // Two for each line that an entry of the sample can have; that may be more, if few rows have most.
    let wanted = 2 * (rows.nnz as usize).min(1 << 20);
    let mut places = (lines > how.most_lines).then(|| wanted.next_power_of_two());
    loop {
        let mut words = Readback::take(cx, device)?;
        let zeroed = words.at(0);
        let fork = if how.is_beside { Fork::new(cx, device)? } else { Fork::none(cx, device) };
        // What takes longest comes first, and last what fills the device.
        let scratch = enqueue_striped(&fork.side(0), device, rows, places, zeroed.offset(8 * STRIPED))?;
        let same = enqueue_shared(&fork.side(1), device, rows, &words)?;
        enqueue_distinct(&fork.side(2), device, rows, words.at(DISTINCT))?;
        enqueue_survey(cx, device, rows, value.size(), &words)?;
        if let Some((a, op, _)) = checked {
            check::enqueue(cx, device, a, op, &words, CHECK)?;
        }
        fork.join()?;
        words.fetch(cx, CHECK)?;
        let words = words.wait(cx)?;
        drop((scratch, same));
        let findings = match checked {
            Some((a, op, name)) => Some(check::findings(cx, a, op, name, &words[CHECK..][..check::WORDS])?),
            None => None,
        };
        if findings.is_some_and(|findings| !findings.structure.sorted) {
            return Ok((None, findings));
        }
        if words[STRIPED + word::LOST] > 0 {
            places = places.map(|places| places * 4).filter(|&places| places < lines);
            continue;
        }
        let shape = (rows.rows as usize, rows.cols as usize, rows.nnz as u64);
        let profile = Profile {
            survey: Survey::new(sizes(rows), value.size(), words[..WORDS].to_vec()),
            striped: Striped::of_words(shape, &words[STRIPED..]),
            repeats: Repeats::of_words(&words[DISTINCT..]),
        };
        return Ok((Some(profile), findings));
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
    counted(cx, device, a, op, name, HOW)
}

fn counted(
    cx: &Context,
    device: &Arc<Device>,
    a: &SparseMatrix,
    op: Operation,
    name: &str,
    how: How,
) -> Result<Profile> {
    let value = a.value_type();
    let findings = match &a.arrays {
        SparseArrays::Csr(m) | SparseArrays::Csc(m) if in_place(a, op) => {
            match of_rows(cx, device, &Rows::of(m), value, Some((a, op, name)), how)? {
                (Some(profile), _) => return Ok(profile),
                (None, findings) => findings.expect("of what is checked"),
            }
        }
        _ => check::inspect(cx, device, a, op, name)?,
    };
    let (copy, _) = Operand::inspected(cx, device, a, op, Source::Canonical, false, &findings)?;
    let (profile, _) = of_rows(cx, device, &copy.rows(), value, None, how)?;
    Ok(profile.expect("of rows that are sorted"))
}

#[cfg(test)]
mod tests;

//! Checks a sparse pattern on the device: whether it is valid, whether its entries are sorted, and how long
//! its rows are. One kernel writes its report to pinned host memory, so the host waits once.

use super::device::{Device, DeviceCall};
use super::launch::{launch, launch_overlapping, Overlap};
use super::memory::{self, Readback};
use super::operand::{RowStats, Rows, Widths};
use crate::backend::cuda::module::kinds::kernel_kinds;
use crate::error::Result;
use crate::matrix::compressed::{self, Compressed, Names};
use crate::matrix::{fault, no_arrays, Coo, SparseArrays, SparseMatrix, Structure};
use crate::memory::Context;
use crate::select::grids;
use crate::types::{Address, IndexType, Operation};

kernel_kinds! { "analysis/check" {
    COMPRESSED(Widths) = "compressed" for [widths()];
    PAIRS(IndexType) = "pairs" for [index_types()];
} }

/// Indices of the words of the report, as kernels/analysis/check.cu numbers them. Positions of faults are
/// stored inverted, so that 0 means "no fault" and the first fault is the largest number.
mod word {
    pub const BAD_OFFSET: usize = 0;
    pub const FIRST_OFFSET: usize = 1;
    pub const LAST_OFFSET: usize = 2;
    pub const LONGEST: usize = 3;
    pub const EMPTY: usize = 4;
    pub const LONGER: usize = 5;
    pub const BREAKS: usize = 9;
    pub const REPEATS: usize = 10;
    pub const OUTSIDE: usize = 11;
    pub const OUTSIDE_SECOND: usize = 12;
    pub const DESCENTS: usize = 13;
    pub const PLATEAUS: usize = 14;
    pub const MINOR_DESCENTS: usize = 15;
    pub const COUNT: usize = 16;
}

/// Properties of a valid pattern that the check found.
#[derive(Clone, Copy, Debug)]
pub struct PatternReport {
    /// Sortedness and uniqueness of the entries; for COO by (row, column) of op(A).
    pub structure: Structure,
    /// COO only: true if columns of op(A) never decrease over the whole matrix.
    pub columns_ascend: bool,
    /// Statistics of row lengths along the compressed dimension (in blocks for BSR); zeros for COO.
    pub major: RowStats,
}

impl PatternReport {
    const EMPTY: PatternReport = PatternReport {
        structure: Structure { sorted: true, unique: true },
        columns_ascend: true,
        major: RowStats { rows: 0, nnz: 0, max: 0, empty: 0, longer: [0; RowStats::LENGTHS.len()] },
    };
}

/// Validates the pattern for `tarsiaCheckSpMat` and returns whether it is sorted and unique. The context must
/// be current and A's arrays readable by the device.
pub fn check_sparse(cx: &DeviceCall<'_>, a: &SparseMatrix, name: &str) -> Result<Structure> {
    Ok(inspect(cx, a, Operation::NonTranspose, name)?.structure)
}

/// Validates the pattern and returns its properties. Errors name the argument `name` and have the text of the
/// host backend.
pub(super) fn inspect(
    cx: &DeviceCall<'_>,
    a: &SparseMatrix,
    op: Operation,
    name: &str,
) -> Result<PatternReport> {
    let mut words = Readback::take(cx)?;
    enqueue(cx, a, op, &words, 0)?;
    pattern_report(cx, a, op, name, &words.wait(cx)?[..WORDS])
}

/// Number of words of a readback page that [`pattern_report`] reads.
pub(super) const WORDS: usize = word::COUNT;
/// Number of words on the device that [`enqueue`] takes: one more, which counts the blocks that are done.
pub(super) const DEVICE_WORDS: usize = WORDS + 1;

/// Enqueues the check of [`inspect`] without waiting; its report goes to the words of a page from `at` on.
pub(super) fn enqueue(
    cx: &DeviceCall<'_>,
    a: &SparseMatrix,
    op: Operation,
    words: &Readback,
    at: usize,
) -> Result<()> {
    let alone = &Overlap::new(false);
    match &a.arrays {
        SparseArrays::Csr(m) | SparseArrays::Csc(m) => enqueue_rows(cx, &Rows::of(m), words, at, None, alone),
        SparseArrays::Bsr(m) => enqueue_rows(cx, &Rows::of(&m.pattern()), words, at, None, alone),
        SparseArrays::Coo(m) => check_pairs(cx, m, op, words, at),
        SparseArrays::Tile(_) => Err(no_arrays("A")),
    }
}

/// Enqueues the check of rows, like [`enqueue`]. Word `sorted` of the device's page becomes 1 if they are valid
/// and sorted by column, for kernels that are enqueued behind the check before its report is known.
pub(super) fn enqueue_rows(
    cx: &DeviceCall<'_>,
    rows: &Rows,
    words: &Readback,
    at: usize,
    sorted: Option<usize>,
    overlap: &Overlap,
) -> Result<()> {
    let sorted = sorted.map_or(Address::NULL, |word| words.at(word));
    check_rows(cx, rows, false, sorted, (words, at), overlap)
}

/// Turns the report of [`enqueue`], for which the caller has waited, into properties or an error.
pub(super) fn pattern_report(
    cx: &Context,
    a: &SparseMatrix,
    op: Operation,
    name: &str,
    words: &[u64],
) -> Result<PatternReport> {
    match &a.arrays {
        SparseArrays::Csr(m) => compressed(cx, m, name, &compressed::CSR, words),
        SparseArrays::Csc(m) => compressed(cx, m, name, &compressed::CSC, words),
        SparseArrays::Bsr(m) => compressed(cx, &m.pattern(), name, &compressed::BSR, words),
        SparseArrays::Coo(m) => coordinates(cx, m, op, name, words),
        SparseArrays::Tile(_) => Err(no_arrays(name)),
    }
}

/// Measures the lengths of rows whose offsets are valid.
pub(super) fn row_stats(cx: &DeviceCall<'_>, rows: &Rows) -> Result<RowStats> {
    if rows.rows == 0 {
        return Ok(RowStats::default());
    }
    let mut words = Readback::take(cx)?;
    check_rows(cx, rows, true, Address::NULL, (&words, 0), &Overlap::new(false))?;
    Ok(stats(words.wait(cx)?, rows.rows, rows.nnz))
}

/// Returns the number of blocks of 256 threads for a grid-stride loop over `count` items: at least four items
/// per thread while there are few, and at most what fills the device.
pub(super) fn blocks(device: &Device, count: i64) -> u32 {
    grids::of_items(count, device.properties().multiprocessors)
}

fn check_rows(
    cx: &DeviceCall<'_>,
    rows: &Rows,
    lengths_only: bool,
    sorted: Address,
    (words, at): (&Readback, usize),
    overlap: &Overlap,
) -> Result<()> {
    if rows.rows == 0 {
        return Ok(());
    }
    let kernel = COMPRESSED.load(cx.device, (rows.widths(),))?;
    let offset_blocks = blocks(cx.device, rows.rows);
    let index_blocks = if lengths_only { 0 } else { blocks(cx.device, rows.nnz) };
    // SAFETY: the arrays have rows + 1 and nnz elements of these types; the kernel checks every number that
    // it reads before it uses it as an index. The page has room for the report on the device and on the host.
    unsafe {
        launch_overlapping!(overlap, kernel, offset_blocks + index_blocks, 256, 0, cx.stream;
            rows.offsets, rows.indices, rows.base, rows.rows, rows.cols, rows.nnz, i32::from(lengths_only),
            offset_blocks, sorted, words.restored(at), words.host(at), words.arrival())
    }
}

/// Returns the coordinate arrays of the rows and the columns of op(A), each with its extent.
fn by_rows(m: &Coo, op: Operation) -> [(Address, i64); 2] {
    let (rows, cols) = ((m.row_indices, m.rows), (m.col_indices, m.cols));
    if op.transposes() {
        [cols, rows]
    } else {
        [rows, cols]
    }
}

fn check_pairs(cx: &DeviceCall<'_>, m: &Coo, op: Operation, words: &Readback, at: usize) -> Result<()> {
    if m.nnz == 0 {
        return Ok(());
    }
    let kernel = PAIRS.load(cx.device, (m.index_type,))?;
    let [major, minor] = by_rows(m, op);
    // SAFETY: both arrays have nnz elements of this type; as above.
    unsafe {
        launch!(kernel, blocks(cx.device, m.nnz), 256, 0, cx.stream;
            major.0, minor.0, i64::from(m.base.code()), major.1, minor.1, m.nnz, words.restored(at), words.host(at),
            words.arrival())
    }
}

fn stats(words: &[u64], rows: i64, nnz: i64) -> RowStats {
    let mut longer = [0; RowStats::LENGTHS.len()];
    for (count, &found) in longer.iter_mut().zip(&words[word::LONGER..]) {
        *count = found as i64;
    }
    RowStats { rows, nnz, max: words[word::LONGEST] as i64, empty: words[word::EMPTY] as i64, longer }
}

/// Reads element `at` of one of the user's arrays, for an error message.
fn element(cx: &Context, array: Address, index: IndexType, at: i64) -> Result<i64> {
    let address = array.offset(at as usize * index.size());
    Ok(match index {
        IndexType::I64 => memory::download::<i64>(address, 1, cx.stream)?[0],
        _ => i64::from(memory::download::<i32>(address, 1, cx.stream)?[0]),
    })
}

/// Position of the first fault, from a word that holds it inverted.
fn first(word: u64) -> Option<i64> {
    (word != 0).then_some(!word as i64)
}

fn compressed(
    cx: &Context,
    m: &Compressed,
    name: &str,
    names: &Names,
    words: &[u64],
) -> Result<PatternReport> {
    if m.major == 0 {
        return Ok(PatternReport::EMPTY);
    }
    let base = i64::from(m.base.code());
    let fault = |array: &str, at: i64, what: String| Err(fault(name, array, at, base, what));
    let found = words[word::FIRST_OFFSET] as i64;
    if found != base {
        return fault(names.offsets, 0, format!("= {found}, expected the index base {base}"));
    }
    let end = m.nnz + base;
    if let Some(row) = first(words[word::BAD_OFFSET]) {
        let this = element(cx, m.offsets, m.offset_type, row)?;
        let next = element(cx, m.offsets, m.offset_type, row + 1)?;
        let what = if next < this {
            format!("= {next} is less than {}[{row}] = {this}", names.offsets)
        } else {
            format!("= {next} is more than {} + base = {end}", names.nnz)
        };
        return fault(names.offsets, row + 1, what);
    }
    let last = words[word::LAST_OFFSET] as i64;
    if last != end {
        return fault(names.offsets, m.major, format!("= {last}, expected {} + base = {end}", names.nnz));
    }
    if let Some(at) = first(words[word::OUTSIDE]) {
        let index = element(cx, m.indices, m.index_type, at)?;
        let most = m.minor - 1 + base;
        return fault(names.indices, at, format!("= {index} is outside [{base}, {most}]"));
    }
    let structure = Structure {
        sorted: words[word::DESCENTS] == words[word::BREAKS],
        unique: words[word::PLATEAUS] == words[word::REPEATS],
    };
    Ok(PatternReport { structure, columns_ascend: false, major: stats(words, m.major, m.nnz) })
}

fn coordinates(cx: &Context, m: &Coo, op: Operation, name: &str, words: &[u64]) -> Result<PatternReport> {
    if m.nnz == 0 {
        return Ok(PatternReport::EMPTY);
    }
    let base = i64::from(m.base.code());
    let [rows_at, cols_at] = match op.transposes() {
        false => [word::OUTSIDE, word::OUTSIDE_SECOND],
        true => [word::OUTSIDE_SECOND, word::OUTSIDE],
    };
    let rows = ("rowInd", m.row_indices, m.rows, rows_at);
    let cols = ("colInd", m.col_indices, m.cols, cols_at);
    for (array, address, extent, word) in [rows, cols] {
        if let Some(at) = first(words[word]) {
            let (index, most) = (element(cx, address, m.index_type, at)?, extent - 1 + base);
            return Err(fault(name, array, at, base, format!("= {index} is outside [{base}, {most}]")));
        }
    }
    Ok(PatternReport {
        structure: Structure { sorted: words[word::DESCENTS] == 0, unique: words[word::PLATEAUS] == 0 },
        columns_ascend: words[word::MINOR_DESCENTS] == 0,
        major: RowStats::default(),
    })
}

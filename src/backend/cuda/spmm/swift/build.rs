//! Builder of the blocks and bands of src/format/swift.rs on the device (kernels/format/swift.cu).

use std::sync::Arc;

use super::super::parts::{self, grid, WindowLists};
use crate::backend::cuda::check::{self, blocks};
use crate::backend::cuda::convert::device_wide::{sorted, Narrow};
use crate::backend::cuda::convert::values::Slots;
use crate::backend::cuda::convert::{bits_of, bits_of_values, origins_address, Origins};
use crate::backend::cuda::device::DeviceCall;
use crate::backend::cuda::launch::launch;
use crate::backend::cuda::layouts::{kernel_structs, same_elements};
use crate::backend::cuda::memory::{filled, filled_members, DeviceBuffer};
use crate::backend::cuda::module::kinds::kernel_kinds;
use crate::backend::cuda::operand::{Operand, Rows};
use crate::error::Result;
use crate::format::swift::bands::{self, ROWS};
use crate::format::swift::{self, Outline, Piece, Run, Set};
use crate::memory::{Allocator, Context, HostMemory};
use crate::problem::SpmmProblem;
use crate::select::Source;
use crate::types::{Address, DataType};

same_elements!(Set = "format/swift.cu Set" { first, column, height, taken, zero });
same_elements!(Run = "format/swift.cu Run" { first, column, taken });
same_elements!(Piece = "spmm/swift.cuh Piece" { start, stop, column, zero });

kernel_kinds! { "format/swift" {
    FILL(&'static str) = "fill" for [["32", "64"]];
    IRREGULAR(&'static str) = "irregular" for [["32", "64"]];
    BANDS(&'static str) = "bands" for [["32", "64"]];
} }

const CONVERT: &str = "format/swift";
const THREADS: u32 = 256;

/// Columns of op(A), each sorted by row.
pub(super) struct Sorted<'a> {
    /// Columns of op(A) as rows of its transpose, with 64-bit offsets, 32-bit indices and base 0.
    pub(super) columns: Rows,
    pub(super) value_type: DataType,
    /// Number of entries of the longest column.
    pub(super) longest: i64,
    /// Given if values will be updated: positions of the values in the user's array.
    pub(super) positions: Origins<'a>,
}

/// Calls `f` with the columns of op(A). Blocks.
pub(super) fn with_columns<R>(
    cx: &DeviceCall<'_>,
    problem: &SpmmProblem,
    f: impl FnOnce(&Sorted<'_>) -> Result<R>,
) -> Result<R> {
    let (a, op) = (&problem.a, problem.op.flipped());
    let report = check::inspect(cx, a, op, "A")?;
    let updates = problem.value_updates;
    let (operand, stats) = Operand::inspected(cx, a, op, Source::Canonical, updates, &report)?;
    let positions = operand.origins(updates);
    f(&Sorted { columns: operand.rows(), value_type: problem.types.a, longest: stats.max, positions })
}

kernel_structs! {
    /// Columns of op(A), laid out as the kernels' `Columns`.
    struct Columns = "format/swift.cu Columns" {
        offsets: Address,
        indices: Address,
        count: i64,
        nnz: i64,
    }

    /// Positions of values and their slots, laid out as the kernels' `Slots`.
    struct SlotsAt = "format/swift.cu Slots" {
        from: Address,
        to: Address,
    }
}

impl Sorted<'_> {
    fn parameter(&self) -> Columns {
        let Rows { offsets, indices, rows, nnz, .. } = self.columns;
        Columns { offsets, indices, count: rows, nnz }
    }

    fn slots(&self, cx: &DeviceCall<'_>) -> Result<Option<Slots>> {
        Slots::new(cx, self.columns.nnz as usize, self.value_type.size(), self.positions)
    }

    fn slots_parameter(&self, slots: &Option<Slots>) -> SlotsAt {
        SlotsAt { from: origins_address(self.positions), to: Slots::address(slots.as_ref()) }
    }

    fn values(&self, cx: &Context) -> Result<DeviceBuffer<u8>> {
        DeviceBuffer::new(cx, (self.columns.nnz as usize).saturating_mul(self.value_type.size()))
    }
}

/// Form [`crate::format::Swift`] (blocks) on the device.
pub(super) struct BlockArrays {
    pub(super) blocks: i64,
    pub(super) cols: i64,
    pub(super) order: DeviceBuffer<u32>,
    pub(super) columns: DeviceBuffer<u32>,
    /// Values of the matrix's type, as bytes.
    pub(super) values: DeviceBuffer<u8>,
    pub(super) rows: DeviceBuffer<u32>,
    pub(super) positions: DeviceBuffer<u8>,
    pub(super) offsets: DeviceBuffer<i16>,
    pub(super) pieces: DeviceBuffer<Piece>,
    pub(super) slots: Option<Slots>,
    /// Description of the layout for users.
    pub(super) details: String,
}

impl BlockArrays {
    /// Makes the layout. Blocks.
    pub(super) fn build(cx: &DeviceCall<'_>, a: &Sorted<'_>) -> Result<Self> {
        let Rows { offsets, rows: cols, cols: rows, nnz, values, .. } = a.columns;
        swift::check_counts(rows as usize, cols as usize, a.longest as usize)?;
        let (lengths, order) = sorted::<Narrow>(
            cx,
            cols as usize,
            bits_of(a.longest + 1),
            |keys, numbers| {
                let kernel = cx.device.modules().kernel(CONVERT, "swift_lengths")?;
                // SAFETY: there is one more offset than columns, and a key and a number for each column.
                unsafe {
                    launch!(kernel, blocks(cx.device, cols), THREADS, 0, cx.stream; offsets, cols, keys, numbers)
                }
            },
        )?;
        // The sets are few, and each depends on the one before, so the host makes them, in memory of its own.
        let host = Allocator::new(Arc::new(HostMemory), Address::NULL, usize::MAX);
        let outline = Outline::new(&host, &lengths.read(0, cols as usize)?)?;
        drop(lengths);
        let (regular, irregular) = (outline.regular(), outline.irregular());
        let sets = DeviceBuffer::<Set>::from_slice(cx, &outline.sets)?;
        let runs = DeviceBuffer::<Run>::from_slice(cx, &outline.runs)?;
        let pieces = DeviceBuffer::<Piece>::from_slice(cx, &outline.pieces)?;
        let columns = DeviceBuffer::<u32>::new(cx, outline.blocks)?;
        let stored = a.values(cx)?;
        let all_rows = DeviceBuffer::<u32>::new(cx, nnz as usize)?;
        let positions = DeviceBuffer::<u8>::new(cx, regular)?;
        let segment_offsets = DeviceBuffer::<i16>::new(cx, regular)?;
        let slots = a.slots(cx)?;
        let segments = DeviceBuffer::<u64>::zeroed(cx, 1)?;
        let note = a.slots_parameter(&slots);
        let (block_count, set_count) = (outline.blocks as i64, outline.sets.len() as i64);
        let fill = FILL.load(cx.device, (bits_of_values(a.value_type)?,))?;
        // SAFETY: the columns are sorted and have nnz values; the outline says how many blocks they have.
        unsafe {
            launch!(fill, grid(outline.groups() as i64, 1, "swift")?, THREADS, 0, cx.stream;
                a.parameter(), values, order.address(), sets.address(), set_count, block_count,
                columns.address(), stored.address(), all_rows.address(), positions.address(),
                segment_offsets.address(), segments.address(), note)?;
        }
        let rest = IRREGULAR.load(cx.device, (bits_of_values(a.value_type)?,))?;
        let (run_count, regular) = (outline.runs.len() as i64, regular as i64);
        if irregular > 0 {
            // SAFETY: as above; the runs have all entries that are not regular.
            unsafe {
                launch!(rest, blocks(cx.device, irregular as i64), THREADS, 0, cx.stream;
                    a.parameter(), values, order.address(), runs.address(), run_count, regular,
                    irregular as i64, stored.address(), all_rows.address(), note)?;
            }
        }
        let segments = segments.read(0, 1)?[0] as usize;
        let out = BlockArrays {
            blocks: block_count,
            cols,
            order,
            columns,
            values: stored,
            rows: all_rows,
            positions,
            offsets: segment_offsets,
            pieces,
            slots,
            details: swift::details(&outline, segments),
        };
        filled(cx, out)
    }
}
filled_members!(BlockArrays { order, columns, values, rows, positions, offsets, pieces, slots });

/// Form `crate::format::swift::bands::Bands` on the device.
pub(super) struct BandArrays {
    pub(super) row_count: i64,
    pub(super) lists: WindowLists,
    pub(super) columns: DeviceBuffer<u32>,
    pub(super) rows: DeviceBuffer<u8>,
    /// Values of the matrix's type, as bytes.
    pub(super) values: DeviceBuffer<u8>,
    pub(super) slots: Option<Slots>,
}

impl BandArrays {
    /// Makes the layout. Blocks.
    pub(super) fn build(cx: &DeviceCall<'_>, a: &Sorted<'_>) -> Result<Self> {
        let Rows { indices, cols: row_count, nnz, values, .. } = a.columns;
        bands::check_count(nnz as usize)?;
        let band_count = (row_count as u64).div_ceil(ROWS as u64) as i64;
        let (keys, numbers) = sorted::<Narrow>(cx, nnz as usize, bits_of(band_count), |keys, numbers| {
            let kernel = cx.device.modules().kernel(CONVERT, "swift_band_keys")?;
            // SAFETY: there are nnz rows of op(A), and a key and a number for each.
            unsafe {
                launch!(kernel, blocks(cx.device, nnz), THREADS, 0, cx.stream; indices, nnz, keys, numbers)
            }
        })?;
        let first = DeviceBuffer::<i64>::new(cx, band_count as usize + 1)?;
        let starts = cx.device.modules().kernel(CONVERT, "swift_band_starts")?;
        // SAFETY: the nnz keys are sorted; there is one number per band, and one more.
        unsafe {
            launch!(starts, blocks(cx.device, band_count + 1), THREADS, 0, cx.stream;
                keys.address(), nnz, band_count, first.address())?;
        }
        drop(keys);
        let limit = bands::limit(nnz as usize);
        let lists = parts::schedule(cx, "swift", &first, band_count, nnz, limit)?;
        let columns = DeviceBuffer::<u32>::new(cx, nnz as usize)?;
        let rows = DeviceBuffer::<u8>::new(cx, nnz as usize)?;
        let stored = a.values(cx)?;
        let slots = a.slots(cx)?;
        let fill = BANDS.load(cx.device, (bits_of_values(a.value_type)?,))?;
        let note = a.slots_parameter(&slots);
        // SAFETY: the columns are sorted and have nnz values, and there are the numbers of their entries.
        unsafe {
            launch!(fill, blocks(cx.device, nnz), THREADS, 0, cx.stream;
                a.parameter(), values, numbers.address(), columns.address(), stored.address(), rows.address(),
                note)?;
        }
        filled(cx, BandArrays { row_count, lists, columns, rows, values: stored, slots })
    }
}
filled_members!(BandArrays { lists, columns, rows, values, slots });

//! Builder of the blocks and bands of src/format/swift.rs on the device (kernels/format/swift.cu).

use std::sync::Arc;

use super::super::parts::{self, grid};
use crate::backend::cuda::check::{self, blocks};
use crate::backend::cuda::convert::device_wide::{self, Narrow};
use crate::backend::cuda::convert::{bits_of, bits_of_values, Positions};
use crate::backend::cuda::device::Device;
use crate::backend::cuda::launch::launch;
use crate::backend::cuda::layouts::{same_elements, same_layout};
use crate::backend::cuda::memory::{self, DeviceBuffer};
use crate::backend::cuda::module::kinds::kernel_kinds;
use crate::backend::cuda::operand::{Operand, Rows};
use crate::error::Result;
use crate::format::swift::bands::{self, ROWS};
use crate::format::swift::{self, Outline, Piece, Run, Set};
use crate::format::window::{Item, WindowPart};
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
    pub(super) positions: Option<Option<&'a Positions>>,
}

/// Calls `f` with the columns of op(A). Blocks.
pub(super) fn with_columns<R>(
    cx: &Context,
    device: &Arc<Device>,
    problem: &SpmmProblem,
    f: impl FnOnce(&Sorted<'_>) -> Result<R>,
) -> Result<R> {
    let (a, op) = (&problem.a, problem.op.flipped());
    let report = check::inspect(cx, device, a, op, "A")?;
    let updates = problem.value_updates;
    let (operand, stats) = Operand::inspected(cx, device, a, op, Source::Canonical, updates, &report)?;
    let positions = updates.then_some(match &operand {
        Operand::InPlace(_) => None,
        Operand::Canonical(copy) => Some(copy.positions()),
    });
    f(&Sorted { columns: operand.rows(), value_type: problem.types.a, longest: stats.max, positions })
}

/// Columns of op(A), laid out as the kernels' `Columns`.
#[derive(Clone, Copy)]
#[repr(C)]
struct Columns {
    offsets: Address,
    indices: Address,
    count: i64,
    nnz: i64,
}
same_layout!(Columns = "format/swift.cu Columns" { offsets, indices, count, nnz });

/// Positions of values and their slots, laid out as the kernels' `Slots`.
#[derive(Clone, Copy)]
#[repr(C)]
struct Slots {
    from: Address,
    to: Address,
}
same_layout!(Slots = "format/swift.cu Slots" { from, to });

impl Sorted<'_> {
    fn parameter(&self) -> Columns {
        let Rows { offsets, indices, rows, nnz, .. } = self.columns;
        Columns { offsets, indices, count: rows, nnz }
    }

    fn slots(&self, cx: &Context) -> Result<Option<DeviceBuffer<u64>>> {
        self.positions.map(|_| DeviceBuffer::new(cx, self.columns.nnz as usize)).transpose()
    }

    fn slots_parameter(&self, slots: &Option<DeviceBuffer<u64>>) -> Slots {
        let from = match self.positions {
            Some(Some(Positions::Kept(from))) => from.address(),
            _ => Address::NULL,
        };
        Slots { from, to: slots.as_ref().map_or(Address::NULL, DeviceBuffer::address) }
    }

    fn values(&self, cx: &Context) -> Result<DeviceBuffer<u8>> {
        DeviceBuffer::new(cx, (self.columns.nnz as usize).saturating_mul(self.value_type.size()))
    }
}

/// Sorts numbers by keys; `fill` writes both arrays. Returns the sorted keys and numbers.
fn sorted(
    cx: &Context,
    count: usize,
    bits: u32,
    fill: impl FnOnce(Address, Address) -> Result<()>,
) -> Result<(DeviceBuffer<u32>, DeviceBuffer<u32>)> {
    let buffer = || DeviceBuffer::<u32>::new(cx, count);
    let [keys, other_keys] = [buffer()?, buffer()?];
    let [numbers, other_numbers] = [buffer()?, buffer()?];
    fill(keys.address(), numbers.address())?;
    let pairs = ([&keys, &other_keys], [&numbers, &other_numbers]);
    Ok(match device_wide::sort_pairs::<Narrow>(cx, pairs.0, pairs.1, count, bits)? {
        0 => (keys, numbers),
        _ => (other_keys, other_numbers),
    })
}

/// Form [`crate::format::Swift`] (blocks) on the device.
pub(super) struct BlockArrays {
    pub(super) blocks: i64,
    pub(super) nnz: i64,
    pub(super) cols: i64,
    pub(super) order: DeviceBuffer<u32>,
    pub(super) columns: DeviceBuffer<u32>,
    /// Values of the matrix's type, as bytes.
    pub(super) values: DeviceBuffer<u8>,
    pub(super) rows: DeviceBuffer<u32>,
    pub(super) positions: DeviceBuffer<u8>,
    pub(super) offsets: DeviceBuffer<i16>,
    pub(super) pieces: DeviceBuffer<Piece>,
    pub(super) slots: Option<DeviceBuffer<u64>>,
    /// Description of the layout for users.
    pub(super) details: String,
}

impl BlockArrays {
    /// Makes the layout. Blocks.
    pub(super) fn build(cx: &Context, device: &Device, a: &Sorted<'_>) -> Result<Self> {
        let Rows { offsets, rows: cols, cols: rows, nnz, values, .. } = a.columns;
        swift::check_counts(rows as usize, cols as usize, a.longest as usize)?;
        let (lengths, mut order) = sorted(cx, cols as usize, bits_of(a.longest + 1), |keys, numbers| {
            let kernel = device.modules().kernel(CONVERT, "swift_lengths")?;
            // SAFETY: there is one more offset than columns, and a key and a number for each column.
            unsafe {
                launch!(kernel, blocks(device, cols), THREADS, 0, cx.stream; offsets, cols, keys, numbers)
            }
        })?;
        // The sets are few, and each depends on the one before, so the host makes them, in memory of its own.
        let host = Allocator::new(Arc::new(HostMemory), Address::NULL, usize::MAX);
        let outline = Outline::new(&host, &lengths.read(0, cols as usize)?)?;
        drop(lengths);
        let (regular, irregular) = (outline.regular(), outline.irregular());
        let sets = DeviceBuffer::<Set>::from_slice(cx, &outline.sets)?;
        let runs = DeviceBuffer::<Run>::from_slice(cx, &outline.runs)?;
        let mut pieces = DeviceBuffer::<Piece>::from_slice(cx, &outline.pieces)?;
        let mut columns = DeviceBuffer::<u32>::new(cx, outline.blocks)?;
        let mut out = a.values(cx)?;
        let mut all_rows = DeviceBuffer::<u32>::new(cx, nnz as usize)?;
        let mut positions = DeviceBuffer::<u8>::new(cx, regular)?;
        let mut segment_offsets = DeviceBuffer::<i16>::new(cx, regular)?;
        let mut slots = a.slots(cx)?;
        let segments = DeviceBuffer::<u64>::zeroed(cx, 1)?;
        let note = a.slots_parameter(&slots);
        let (block_count, set_count) = (outline.blocks as i64, outline.sets.len() as i64);
        let fill = FILL.load(device, (bits_of_values(a.value_type)?,))?;
        // SAFETY: the columns are sorted and have nnz values; the outline says how many blocks they have.
        unsafe {
            launch!(fill, grid(outline.groups() as i64, 1, "swift")?, THREADS, 0, cx.stream;
                a.parameter(), values, order.address(), sets.address(), set_count, block_count,
                columns.address(), out.address(), all_rows.address(), positions.address(),
                segment_offsets.address(), segments.address(), note)?;
        }
        let rest = IRREGULAR.load(device, (bits_of_values(a.value_type)?,))?;
        let (run_count, regular) = (outline.runs.len() as i64, regular as i64);
        if irregular > 0 {
            // SAFETY: as above; the runs have all entries that are not regular.
            unsafe {
                launch!(rest, blocks(device, irregular as i64), THREADS, 0, cx.stream;
                    a.parameter(), values, order.address(), runs.address(), run_count, regular,
                    irregular as i64, out.address(), all_rows.address(), note)?;
            }
        }
        let segments = segments.read(0, 1)?[0] as usize;
        memory::synchronize(cx.stream)?;
        order.seal();
        columns.seal();
        out.seal();
        all_rows.seal();
        positions.seal();
        segment_offsets.seal();
        pieces.seal();
        if let Some(slots) = &mut slots {
            slots.seal();
        }
        Ok(BlockArrays {
            blocks: block_count,
            nnz,
            cols,
            order,
            columns,
            values: out,
            rows: all_rows,
            positions,
            offsets: segment_offsets,
            pieces,
            slots,
            details: swift::details(&outline, segments),
        })
    }
}

/// Form `crate::format::swift::bands::Bands` on the device.
pub(super) struct BandArrays {
    pub(super) row_count: i64,
    pub(super) nnz: i64,
    pub(super) items: DeviceBuffer<Item>,
    pub(super) parts: DeviceBuffer<WindowPart>,
    /// Number of bands that are cut into pieces.
    pub(super) cut: i64,
    pub(super) columns: DeviceBuffer<u32>,
    pub(super) rows: DeviceBuffer<u8>,
    /// Values of the matrix's type, as bytes.
    pub(super) values: DeviceBuffer<u8>,
    pub(super) slots: Option<DeviceBuffer<u64>>,
}

impl BandArrays {
    /// Makes the layout. Blocks.
    pub(super) fn build(cx: &Context, device: &Device, a: &Sorted<'_>) -> Result<Self> {
        let Rows { indices, cols: row_count, nnz, values, .. } = a.columns;
        bands::check_count(nnz as usize)?;
        let band_count = (row_count as u64).div_ceil(ROWS as u64) as i64;
        let (keys, numbers) = sorted(cx, nnz as usize, bits_of(band_count), |keys, numbers| {
            let kernel = device.modules().kernel(CONVERT, "swift_band_keys")?;
            // SAFETY: there are nnz rows of op(A), and a key and a number for each.
            unsafe {
                launch!(kernel, blocks(device, nnz), THREADS, 0, cx.stream; indices, nnz, keys, numbers)
            }
        })?;
        let first = DeviceBuffer::<i64>::new(cx, band_count as usize + 1)?;
        let starts = device.modules().kernel(CONVERT, "swift_band_starts")?;
        // SAFETY: the nnz keys are sorted; there is one number per band, and one more.
        unsafe {
            launch!(starts, blocks(device, band_count + 1), THREADS, 0, cx.stream;
                keys.address(), nnz, band_count, first.address())?;
        }
        drop(keys);
        let limit = bands::limit(nnz as usize);
        let (mut items, mut parts, cut) = match band_count {
            0 => (DeviceBuffer::new(cx, 0)?, DeviceBuffer::new(cx, 0)?, 0),
            _ => parts::schedule(cx, device, &first, band_count, nnz, limit)?,
        };
        let mut columns = DeviceBuffer::<u32>::new(cx, nnz as usize)?;
        let mut rows = DeviceBuffer::<u8>::new(cx, nnz as usize)?;
        let mut out = a.values(cx)?;
        let mut slots = a.slots(cx)?;
        let fill = BANDS.load(device, (bits_of_values(a.value_type)?,))?;
        let note = a.slots_parameter(&slots);
        // SAFETY: the columns are sorted and have nnz values, and there are the numbers of their entries.
        unsafe {
            launch!(fill, blocks(device, nnz), THREADS, 0, cx.stream;
                a.parameter(), values, numbers.address(), columns.address(), out.address(), rows.address(),
                note)?;
        }
        memory::synchronize(cx.stream)?;
        items.seal();
        parts.seal();
        columns.seal();
        rows.seal();
        out.seal();
        if let Some(slots) = &mut slots {
            slots.seal();
        }
        Ok(BandArrays { row_count, nnz, items, parts, cut, columns, rows, values: out, slots })
    }
}

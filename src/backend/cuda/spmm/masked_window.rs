//! Builder of masked windows on the device (kernels/format/masked_window.cu), bit-identical to
//! [`crate::format::MaskedWindow::build`].

use std::sync::Arc;

use super::window::number::{windows_of, Numbering, Numbers};
use crate::backend::cuda::check::blocks;
use crate::backend::cuda::convert::{self, Positions};
use crate::backend::cuda::device::Device;
use crate::backend::cuda::launch::launch;
use crate::backend::cuda::layouts::same_layout;
use crate::backend::cuda::memory::{self, DeviceBuffer};
use crate::backend::cuda::module::kinds::kernel_kinds;
use crate::backend::cuda::operand::{Rows, Widths};
use crate::error::Result;
use crate::format::masked_window::{check_entries, Rules, BLOCK};
use crate::format::window::{Item, WindowPart, WindowShape, HEIGHTS, WHOLE};
use crate::memory::Context;
use crate::select::spmm::window::threads_for;
use crate::types::Address;

kernel_kinds! { "format/masked_window" { FILL(usize, Widths) = "fill" for [[32, 64], widths()]; } }
/// Threads of a block of kernels with one thread per entry.
const THREADS: u32 = 256;
/// Bytes of a pack, in which values are read.
const PACK: usize = 16;
/// Shape for numbering columns only: the masks replace the information which groups of rows have a tile, so
/// one group covers any window.
const NUMBERED: WindowShape = WindowShape { block: BLOCK, group: HEIGHTS[3] };

/// Arrays to fill, laid out as the kernels' `Arrays`.
#[derive(Clone, Copy)]
#[repr(C)]
struct Filled {
    columns: Address,
    masks: Address,
    starts: Address,
    values: Address,
    from: Address,
    slots: Address,
}
same_layout!(Filled = "format/masked_window.cu Arrays" { columns, masks, starts, values, from, slots });

/// Masked windows on the device.
pub(super) struct Arrays {
    pub(super) height: usize,
    pub(super) row_count: i64,
    pub(super) nnz: i64,
    /// Number of columns of all windows together.
    pub(super) distinct: i64,
    pub(super) items: DeviceBuffer<Item>,
    pub(super) parts: DeviceBuffer<WindowPart>,
    /// Number of windows that are cut into pieces.
    pub(super) cut: i64,
    pub(super) columns: DeviceBuffer<u32>,
    pub(super) masks: DeviceBuffer<u64>,
    pub(super) starts: DeviceBuffer<u32>,
    /// Values as bytes, padded to a multiple of 16.
    pub(super) values: DeviceBuffer<u8>,
    /// Bytes of a value.
    pub(super) size: usize,
    pub(super) slots: Option<DeviceBuffer<u64>>,
}

impl Arrays {
    /// Makes the layout of rows that have been validated and are sorted, with values of `size` bytes, 4 or 8.
    /// `positions` is given if values will be updated, with the positions of the user's values. Blocks.
    pub(super) fn build(
        cx: &Context,
        device: &Arc<Device>,
        rows: &Rows,
        size: usize,
        rules: Rules,
        positions: Option<Option<&Positions>>,
    ) -> Result<Self> {
        check_entries(rows.nnz as usize)?;
        if rows.rows == 0 || rows.nnz == 0 {
            return Arrays::empty(cx, rows, size, rules.height, positions.is_some());
        }
        let (height, nnz) = (rules.height, rows.nnz as usize);
        let found = Numbering::new(cx, device, rows, NUMBERED, height, rules.most)?;
        let tiles = found.blocks as usize * (height / BLOCK);
        let columns = DeviceBuffer::<u32>::new(cx, found.blocks as usize * BLOCK)?;
        let masks = DeviceBuffer::<u64>::zeroed(cx, tiles)?;
        let starts = DeviceBuffer::<u32>::new(cx, tiles + 1)?;
        let values = DeviceBuffer::<u8>::new(cx, (nnz * size).next_multiple_of(PACK))?;
        // Kernels copy whole packs; nothing uses the bytes behind the last value.
        memory::zero(values.at(nnz * size), values.len() - nnz * size, cx.stream)?;
        let slots = positions.map(|_| DeviceBuffer::<u64>::new(cx, nnz)).transpose()?;
        let from = match positions {
            Some(Some(Positions::Kept(from))) => from.address(),
            _ => Address::NULL,
        };
        let filled = Filled {
            columns: columns.address(),
            masks: masks.address(),
            starts: starts.address(),
            values: values.address(),
            from,
            slots: slots.as_ref().map_or(Address::NULL, DeviceBuffer::address),
        };
        let numbers: Numbers = found.numbers();
        let kernel = FILL.load(device, (8 * size, rows.widths()))?;
        // SAFETY: the arrays have the lengths that the numbering says, with nnz values of this size.
        unsafe {
            launch!(kernel, found.windows as u32, threads_for(rows.nnz / found.windows), 0, cx.stream;
                rows.offsets, rows.indices, rows.values, rows.base, rows.rows, rows.nnz, found.windows,
                height as i32, numbers, filled)?;
        }
        memory::synchronize(cx.stream)?;
        let (distinct, cut) = (found.distinct, found.cut);
        let (items, parts) = found.schedule();
        let mut out = Arrays {
            height,
            row_count: rows.rows,
            nnz: rows.nnz,
            distinct,
            items,
            parts,
            cut,
            columns,
            masks,
            starts,
            values,
            size,
            slots,
        };
        out.seal();
        Ok(out)
    }

    /// Makes the layout of a matrix without entries: every window has no blocks.
    fn empty(cx: &Context, rows: &Rows, size: usize, height: usize, keep: bool) -> Result<Self> {
        let windows = windows_of(rows.rows, height) as u32;
        let part = WHOLE;
        let items: Vec<_> = (0..windows).map(|window| Item { window, first: 0, end: 0, part }).collect();
        let mut out = Arrays {
            height,
            row_count: rows.rows,
            nnz: 0,
            distinct: 0,
            items: DeviceBuffer::from_slice(cx, &items)?,
            parts: DeviceBuffer::new(cx, 0)?,
            cut: 0,
            columns: DeviceBuffer::new(cx, 0)?,
            masks: DeviceBuffer::new(cx, 0)?,
            starts: DeviceBuffer::zeroed(cx, 1)?,
            values: DeviceBuffer::new(cx, 0)?,
            size,
            slots: if keep { Some(DeviceBuffer::new(cx, 0)?) } else { None },
        };
        memory::synchronize(cx.stream)?;
        out.seal();
        Ok(out)
    }

    /// Takes new values in the order of the user's array; returns false if the layout has not kept where they
    /// go.
    pub(super) fn refill(&self, cx: &Context, device: &Device, values: Address) -> Result<bool> {
        let Some(slots) = &self.slots else { return Ok(false) };
        if self.nnz == 0 {
            return Ok(true);
        }
        let kernel = convert::values::scatter(device, self.size)?;
        // SAFETY: there is a slot among our values for each of the user's values.
        unsafe {
            launch!(kernel, blocks(device, self.nnz), THREADS, 0, cx.stream;
                values, slots.address(), self.nnz, self.values.address())?;
        }
        Ok(true)
    }

    fn seal(&mut self) {
        self.items.seal();
        self.parts.seal();
        self.columns.seal();
        self.masks.seal();
        self.starts.seal();
        self.values.seal();
        if let Some(slots) = &mut self.slots {
            slots.seal();
        }
    }
}

#[cfg(test)]
mod tests;

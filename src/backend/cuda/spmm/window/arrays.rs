//! Builder of windows on the device, bit-identical to [`crate::format::Window::build`].

use std::sync::Arc;

use super::number::{windows_of, Numbering, FILL};
use crate::backend::cuda::convert::Positions;
use crate::backend::cuda::device::Device;
use crate::backend::cuda::launch::launch;
use crate::backend::cuda::memory::{self, DeviceBuffer};
use crate::backend::cuda::operand::Rows;
use crate::error::{Error, Result};
use crate::format::window::{tile_values, Item, Rules, WindowPart, BLOCK, LANES, SHAPE, WHOLE};
use crate::memory::Context;
use crate::select::spmm::window::threads_of;
use crate::types::Address;

/// Layout `window` on the device.
pub(super) struct Arrays {
    pub(super) height: usize,
    pub(super) row_count: i64,
    pub(super) nnz: i64,
    /// Number of columns of all windows together.
    pub(super) distinct: i64,
    /// Number of warps that share a window in the direct form.
    pub(super) sharing: usize,
    pub(super) items: DeviceBuffer<Item>,
    pub(super) parts: DeviceBuffer<WindowPart>,
    /// Number of windows that are cut into pieces.
    pub(super) cut: i64,
    pub(super) columns: DeviceBuffer<u32>,
    pub(super) tiles: DeviceBuffer<u32>,
    pub(super) values: DeviceBuffer<u16>,
    pub(super) stored: DeviceBuffer<u8>,
    pub(super) slots: Option<DeviceBuffer<u64>>,
}

impl Arrays {
    /// Makes the layout of rows that have been validated and are sorted, with 16-bit values. `positions` is
    /// given if values will be updated, with the positions of the user's values. Blocks.
    pub(super) fn build(
        cx: &Context,
        device: &Arc<Device>,
        rows: &Rows,
        rules: Rules,
        positions: Option<Option<&Positions>>,
    ) -> Result<Self> {
        if u32::try_from(rows.nnz).is_err() {
            return Err(Error::unsupported(format!(
                "A: algorithm window takes at most {} entries",
                u32::MAX
            )));
        }
        if rows.rows == 0 || rows.nnz == 0 {
            return Arrays::empty(cx, rows, rules, positions.is_some());
        }
        let height = rules.height;
        let found = Numbering::new(cx, device, rows, SHAPE, height, rules.most)?;
        let (blocks, tile_count) = (found.blocks as usize, found.tiles as usize);
        let columns = DeviceBuffer::<u32>::new(cx, blocks * BLOCK)?;
        let tiles = DeviceBuffer::<u32>::new(cx, if height > 16 { blocks } else { 0 })?;
        let values = DeviceBuffer::<u16>::zeroed(cx, tile_count * tile_values(height))?;
        let stored = DeviceBuffer::<u8>::zeroed(cx, tile_count * LANES)?;
        let slots = positions.map(|_| DeviceBuffer::<u64>::new(cx, rows.nnz as usize)).transpose()?;
        let from = match positions {
            Some(Some(Positions::Kept(from))) => from.address(),
            _ => Address::NULL,
        };
        let to = slots.as_ref().map_or(Address::NULL, DeviceBuffer::address);
        let kernel = FILL.load(device, (rows.widths(),))?;
        // SAFETY: the arrays have the lengths that the numbering says, with nnz 16-bit values.
        unsafe {
            launch!(kernel, found.windows as u32, threads_of(rows.nnz, found.windows), 0, cx.stream;
                rows.offsets, rows.indices, rows.values, rows.base, rows.rows, rows.nnz, found.windows,
                height as i32, found.numbers(), columns.address(), tiles.address(), values.address(),
                stored.address(), from, to)?;
        }
        memory::synchronize(cx.stream)?;
        let (distinct, cut) = (found.distinct, found.cut);
        let (items, parts) = found.schedule();
        let mut out = Arrays {
            height,
            row_count: rows.rows,
            nnz: rows.nnz,
            distinct,
            sharing: rules.sharing,
            items,
            parts,
            cut,
            columns,
            tiles,
            values,
            stored,
            slots,
        };
        out.seal();
        Ok(out)
    }

    /// Makes the layout of a matrix without entries: every window has no blocks.
    fn empty(cx: &Context, rows: &Rows, rules: Rules, keep: bool) -> Result<Self> {
        let Rules { height, sharing, .. } = rules;
        let windows = windows_of(rows.rows, height) as u32;
        let part = WHOLE;
        let items: Vec<_> = (0..windows).map(|window| Item { window, first: 0, end: 0, part }).collect();
        let mut out = Arrays {
            height,
            row_count: rows.rows,
            nnz: 0,
            distinct: 0,
            sharing,
            items: DeviceBuffer::from_slice(cx, &items)?,
            parts: DeviceBuffer::new(cx, 0)?,
            cut: 0,
            columns: DeviceBuffer::new(cx, 0)?,
            tiles: DeviceBuffer::new(cx, 0)?,
            values: DeviceBuffer::new(cx, 0)?,
            stored: DeviceBuffer::new(cx, 0)?,
            slots: if keep { Some(DeviceBuffer::new(cx, 0)?) } else { None },
        };
        memory::synchronize(cx.stream)?;
        out.seal();
        Ok(out)
    }

    fn seal(&mut self) {
        self.items.seal();
        self.parts.seal();
        self.columns.seal();
        self.tiles.seal();
        self.values.seal();
        self.stored.seal();
        if let Some(slots) = &mut self.slots {
            slots.seal();
        }
    }
}

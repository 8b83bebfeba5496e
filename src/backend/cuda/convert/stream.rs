//! Conversion to the layout `stream` on the device: kernels (kernels/format/stream.cu) make the arrays that
//! src/format/stream.rs describes, bit-identical to the host's. The host reads back two numbers: how many
//! tiles have high halves of columns, and how many rows are split.

use super::values::Gather;
use super::{bits_of_values, device_wide, origins_address, Positions};
use crate::backend::cuda::check::blocks;
use crate::backend::cuda::device::DeviceCall;
use crate::backend::cuda::launch::{launch, Kernel};
use crate::backend::cuda::layouts::same_elements;
use crate::backend::cuda::memory::{self, filled_members, DeviceBuffer, Fill, Numbers};
use crate::backend::cuda::module::kinds::kernel_kinds;
use crate::backend::cuda::operand::{Operand, RowStats, Rows, Widths};
use crate::error::{Error, Result};
use crate::format::stream::{tile_slots, Split, Tile, BLOCK_TILES, WIDE_OF};
use crate::types::{Address, DataType, IndexType};

same_elements!(Tile = "common/stream_tiles.cuh Tile" { row, base, high, link });
same_elements!(Split = "common/stream_tiles.cuh Split" { row, first_block, first_part, parts });

const MODULE: &str = "format/stream";

kernel_kinds! { "format/stream" {
    ROW_SLOTS(IndexType) = "row_slots" for [index_types()];
    FILL(Widths, &'static str) = "fill" for [widths(), BITS];
    HIGHS(Widths, usize) = "highs" for [widths(), tiles()];
    POSITIONS(IndexType, usize, &'static str) = "positions"
            for [index_types(), tiles(), ["32"]], [[IndexType::I64], tiles(), ["64"]];
} }
/// Threads of a block of these kernels.
const THREADS: u32 = 256;
/// Tiles that a block of `fill` works on, as in the kernel.
const FILL_TILES: u32 = 4;

/// Matrix on the device in the layout `stream`: tiles of equally many nonzeros.
pub struct DeviceStream {
    /// Rows of op(A).
    pub rows: i64,
    /// Stored entries.
    pub entries: i64,
    /// Slots without those that pad the last tile.
    pub slots: i64,
    /// Slots per tile.
    pub tile: usize,
    /// Heads of the tiles.
    pub tiles: DeviceBuffer<Tile>,
    /// Bit per slot that marks the end of a row.
    pub ends: DeviceBuffer<u32>,
    /// Bit per slot that marks the slot of an empty row; no element where no row is empty.
    pub voids: DeviceBuffer<u32>,
    /// Low 16 bits of the columns.
    pub lows: DeviceBuffer<u16>,
    /// High 16 bits of the columns, for the tiles that need them.
    pub highs: DeviceBuffer<u16>,
    /// Values, one per slot.
    pub values: DeviceBuffer<u8>,
    /// Rows that are split between blocks.
    pub splits: DeviceBuffer<Split>,
    /// Number of partial sums of split rows.
    pub parts: usize,
    positions: DeviceSlotPositions,
    refill: Refill,
}

/// Source of the values: positions in the user's array, slot by slot.
enum DeviceSlotPositions {
    /// Each slot has the value of the same position.
    Identity,
    /// Position for each slot, all ones for a slot without an entry; 64 bits wide from 2^32 − 1 values on.
    Kept(Numbers),
    /// No positions, since the caller did not ask to keep them.
    Dropped,
}

impl Fill for DeviceSlotPositions {
    fn mark_filled(&mut self) {
        if let DeviceSlotPositions::Kept(positions) = self {
            positions.mark_filled();
        }
    }
}

/// Method of taking new values.
struct Refill {
    gather: Gather,
    conjugate: bool,
    /// True if a plain copy is enough.
    plain: bool,
    value_bytes: usize,
}

impl DeviceStream {
    /// Builds the layout from the rows of `operand`. `keep_positions`: [`DeviceStream::refill`] will be used.
    /// `conjugate`: op conjugates, and the operand's values are conjugated already. Blocks.
    ///
    /// Temporary memory: 8 bytes per row, 8 per tile and 8 per block.
    pub fn build(
        cx: &DeviceCall<'_>,
        operand: &Operand,
        stats: &RowStats,
        value_type: DataType,
        conjugate: bool,
        keep_positions: bool,
    ) -> Result<Self> {
        let rows = operand.rows();
        let tile = tile_slots(value_type.size());
        let slots = rows.nnz + stats.empty;
        let tile_count = (slots as u64).div_ceil(tile as u64);
        if tile_count >= 1 << 31 {
            return Err(Error::unsupported(format!(
                "A: algorithm stream numbers {tile_count} tiles by 31 bits"
            )));
        }
        let tools = Tools { cx, rows, slots, tile, tiles: tile_count as u32 };
        let count = tile_count as usize;
        let padded = count * tile;
        let starts = tools.starts()?;
        let bytes = padded.checked_mul(value_type.size()).ok_or_else(|| Error::out_of_memory(usize::MAX))?;
        let mut out = DeviceStream {
            rows: rows.rows,
            entries: rows.nnz,
            slots,
            tile,
            tiles: DeviceBuffer::new(cx, count)?,
            ends: DeviceBuffer::new(cx, padded / 32)?,
            voids: DeviceBuffer::new(cx, if stats.empty > 0 { padded / 32 } else { 0 })?,
            lows: DeviceBuffer::new(cx, padded)?,
            highs: DeviceBuffer::new(cx, 0)?,
            values: DeviceBuffer::new(cx, bytes)?,
            splits: DeviceBuffer::new(cx, 0)?,
            parts: 0,
            positions: DeviceSlotPositions::Dropped,
            refill: Refill {
                gather: Gather::load(cx.device, value_type, "32")?,
                conjugate: conjugate && value_type.is_complex(),
                plain: false,
                value_bytes: value_type.size(),
            },
        };
        let wide = tools.fill(&mut out, &starts, value_type)?;
        tools.link(&mut out, &starts, &wide)?;
        tools.find_positions(&mut out, &starts, operand, stats, value_type, keep_positions)?;
        Ok(out)
    }

    /// Returns which tiles store the high halves of their columns, in the word that the names of kernels have
    /// for it.
    pub fn high(&self) -> &'static str {
        match self.highs.len() {
            0 => "none",
            all if all == self.lows.len() => "all",
            _ => "some",
        }
    }

    /// Enqueues the gathering of new values from an array in the user's order, without allocation or wait.
    /// Returns false, and does nothing, if positions were not kept.
    pub fn refill(&self, cx: &DeviceCall<'_>, values: Address) -> Result<bool> {
        let (positions, slots) = match &self.positions {
            DeviceSlotPositions::Dropped => return Ok(false),
            DeviceSlotPositions::Identity if self.refill.plain => {
                let bytes = self.entries as usize * self.refill.value_bytes;
                memory::copy(self.values.address(), values, bytes, cx.stream)?;
                return Ok(true);
            }
            DeviceSlotPositions::Identity => (Address::NULL, self.slots),
            DeviceSlotPositions::Kept(positions) => (positions.address(), positions.len() as i64),
        };
        // Positions are those of the user's nnz values or all ones; the layout has as many slots as there are
        // positions, or as entries if there are none.
        let (from, to) = ((values, positions), (slots, self.values.address()));
        self.refill.gather.launch(cx, from, self.refill.conjugate, to)?;
        Ok(true)
    }
}
filled_members!(DeviceStream { tiles, ends, voids, lows, highs, values, splits, positions });

/// Call and sizes for the kernels of the conversion.
struct Tools<'a> {
    cx: &'a DeviceCall<'a>,
    rows: Rows,
    slots: i64,
    tile: usize,
    tiles: u32,
}

impl Tools<'_> {
    fn kernel(&self, name: &str) -> Result<Kernel> {
        self.cx.device.modules().kernel(MODULE, name)
    }

    /// Computes the first slot of each row and, behind them, the number of slots.
    fn starts(&self) -> Result<DeviceBuffer<i64>> {
        let (rows, stream) = (self.rows, self.cx.stream);
        let count = rows.rows as usize + 1;
        let starts = DeviceBuffer::<i64>::new(self.cx, count)?;
        if rows.rows > 0 {
            let kernel = ROW_SLOTS.load(self.cx.device, (rows.offset_type,))?;
            // SAFETY: there are rows + 1 offsets of this type, and room for as many numbers.
            unsafe {
                launch!(kernel, blocks(self.cx.device, rows.rows + 1), THREADS, 0, stream;
                    rows.offsets, rows.rows, starts.address())?;
                device_wide::scan(self.cx, &starts)?;
            }
        }
        Ok(starts)
    }

    /// Fills everything but high halves of columns, positions, and how blocks share rows. Returns for each
    /// tile whether it is wide (0 or 1), with a 0 behind the last.
    fn fill(
        &self,
        out: &mut DeviceStream,
        starts: &DeviceBuffer<i64>,
        value_type: DataType,
    ) -> Result<DeviceBuffer<i64>> {
        let (rows, stream) = (self.rows, self.cx.stream);
        let wide = DeviceBuffer::<i64>::new(self.cx, self.tiles as usize + 1)?;
        let tile_rows = self.kernel("stream_tile_rows")?;
        let fill = FILL.load(self.cx.device, (rows.widths(), bits_of_values(value_type)?))?;
        // SAFETY: the arrays are the operand's; starts has rows + 1 numbers, the layout's arrays have room
        // for `tiles` tiles, and wide for one more.
        unsafe {
            launch!(tile_rows, blocks(self.cx.device, rows.rows), THREADS, 0, stream;
                starts.address(), rows.rows, self.tile as i64, out.tiles.address())?;
            launch!(fill, self.tiles.div_ceil(FILL_TILES), THREADS, 0, stream;
                rows.offsets, rows.indices, rows.base, rows.rows, starts.address(), self.slots, rows.values,
                i64::from(self.tiles), out.tiles.address(), out.ends.address(), out.voids.address(), out.lows.address(),
                out.values.address(), wide.address())?;
        }
        Ok(wide)
    }

    /// Fills the high halves of columns, the split rows, and the links of tiles.
    fn link(
        &self,
        out: &mut DeviceStream,
        starts: &DeviceBuffer<i64>,
        wide: &DeviceBuffer<i64>,
    ) -> Result<()> {
        let (cx, rows, stream) = (self.cx, self.rows, self.cx.stream);
        if self.tiles == 0 {
            return Ok(());
        }
        let (tiles, tile) = (i64::from(self.tiles), self.tile as i32);
        let blocks_of_tiles = (self.tiles as usize).div_ceil(BLOCK_TILES);
        let counts = DeviceBuffer::<i64>::new(cx, blocks_of_tiles + 1)?;
        let count = self.kernel("stream_count_splits")?;
        // SAFETY: the arrays have tiles, rows + 1 and blocks + 1 elements.
        unsafe {
            launch!(count, blocks(self.cx.device, counts.len() as i64), THREADS, 0, stream;
                out.tiles.address(), tiles, starts.address(), tile, counts.address())?;
            device_wide::scan(cx, &counts)?;
            device_wide::scan(cx, wide)?;
        }
        let total = counts.read(blocks_of_tiles, 1)?[0];
        let wide_tiles = wide.read(self.tiles as usize, 1)?[0] as usize;
        let all = wide_tiles > 0 && wide_tiles * WIDE_OF >= self.tiles as usize;
        out.splits = DeviceBuffer::new(cx, (total & 0xffff_ffff) as usize)?;
        out.parts = (total >> 32) as usize;
        let high_tiles = if all { self.tiles as usize } else { wide_tiles };
        out.highs = DeviceBuffer::new(cx, high_tiles * self.tile)?;
        let link = self.kernel("stream_link")?;
        let highs = HIGHS.load(self.cx.device, (rows.widths(), self.tile))?;
        // SAFETY: as above; there is room for each split row that was counted, and for a tile of high halves
        // for each number that `link` gives.
        unsafe {
            launch!(link, blocks(self.cx.device, tiles), THREADS, 0, stream;
                out.tiles.address(), tiles, starts.address(), tile, wide.address(), counts.address(),
                i32::from(all), out.splits.address())?;
            if high_tiles > 0 {
                launch!(highs, self.tiles, THREADS, 0, stream;
                    rows.offsets, rows.indices, rows.base, rows.rows, starts.address(), self.slots,
                    out.tiles.address(), out.voids.address(), out.highs.address())?;
            }
        }
        Ok(())
    }

    /// Finds the positions of values in the user's array.
    fn find_positions(
        &self,
        out: &mut DeviceStream,
        starts: &DeviceBuffer<i64>,
        operand: &Operand,
        stats: &RowStats,
        value_type: DataType,
        keep: bool,
    ) -> Result<()> {
        let origins = operand.origins(true);
        if let Some(Some(Positions::Dropped)) = origins {
            return Ok(());
        }
        let from = origins_address(origins);
        if from.is_null() && stats.empty == 0 {
            out.positions = DeviceSlotPositions::Identity;
            out.refill.plain = !out.refill.conjugate;
            out.refill.gather = Gather::load(self.cx.device, value_type, "64")?;
            return Ok(());
        }
        if !keep {
            return Ok(());
        }
        let (rows, padded) = (self.rows, self.tiles as usize * self.tile);
        // All ones means that the slot has no entry.
        let is_wide = rows.nnz >= i64::from(u32::MAX) || is_wide();
        let positions = Numbers::new(self.cx, padded, is_wide)?;
        let kernel = POSITIONS.load(self.cx.device, (rows.offset_type, self.tile, positions.bits()))?;
        // SAFETY: the arrays are the operand's, with nnz positions or NULL, and there is room for a number
        // for each slot, padding included.
        unsafe {
            launch!(kernel, self.tiles, THREADS, 0, self.cx.stream;
                rows.offsets, rows.base, rows.rows, starts.address(), self.slots, out.tiles.address(),
                out.voids.address(), from, positions.address())?;
        }
        if is_wide {
            out.refill.gather = Gather::load(self.cx.device, value_type, positions.bits())?;
        }
        out.positions = DeviceSlotPositions::Kept(positions);
        Ok(())
    }
}

/// Returns whether a test asks for wide positions, however many there are.
fn is_wide() -> bool {
    #[cfg(test)]
    if super::tests::WIDE.get() {
        return true;
    }
    false
}

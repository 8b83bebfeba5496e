//! Algorithm `tile` with less memory than all tiles of C take: some rows of tiles at a time. The symbolic
//! phase finds their tiles to count the entries, and the numeric phase finds them again.

use std::ops::Range;

use super::super::columns::{Origin, Part, Wanted};
use super::super::target;
use super::{grid, CudaTile, Output, Product, WARPS};
use crate::backend::cuda::convert::device_wide::starts;
use crate::backend::cuda::device::DeviceCall;
use crate::backend::cuda::launch::launch;
use crate::backend::cuda::memory::{self, optional, DeviceBuffer, Fill};
use crate::backend::cuda::scalars::Scalar;
use crate::error::{Error, Result, Status};
use crate::format::tile::SIDE;
use crate::matrix::Compressed;
use crate::memory::Context;
use crate::types::Address;

/// Bytes of a tile that C may have: column and row, masks, number of entries, and entries_before of its rows.
const TILE_BYTES: usize = 4 + 4 + 2 * SIDE + 4 + 4 * SIDE;

/// Number of tiles that C may have before each row of tiles, and in all.
struct PossibleTiles {
    on_device: DeviceBuffer<i64>,
    on_host: Vec<i64>,
}

/// Memory for the tiles of some rows of tiles.
struct TileMemory {
    /// Number of tiles for which there is memory.
    most: usize,
    columns: DeviceBuffer<u32>,
    tile_rows: DeviceBuffer<u32>,
    masks: DeviceBuffer<u16>,
    counts: DeviceBuffer<u32>,
    entries_before: DeviceBuffer<u32>,
    /// Receives the number of entries of each row of C, which the numeric phase knows already.
    entries: DeviceBuffer<i64>,
}

impl TileMemory {
    /// Allocates memory for `most` tiles. `rows` is the number of all rows of tiles, since a part may have
    /// any.
    fn new(cx: &Context, most: usize, rows: usize) -> Result<Self> {
        Ok(TileMemory {
            most,
            columns: DeviceBuffer::new(cx, most)?,
            tile_rows: DeviceBuffer::new(cx, most)?,
            masks: DeviceBuffer::new(cx, most * SIDE)?,
            counts: DeviceBuffer::new(cx, most)?,
            entries_before: DeviceBuffer::new(cx, most * SIDE)?,
            entries: DeviceBuffer::new(cx, rows * SIDE)?,
        })
    }

    /// Allocates memory for as many tiles as fit into the free memory divided by `share`, at least those of the
    /// longest row of tiles, at most all. `tiles_before` is [`PossibleTiles::on_host`].
    fn fit(cx: &Context, tiles_before: &[i64], share: usize) -> Result<Self> {
        let (rows, all) = (tiles_before.len() - 1, tiles_before[tiles_before.len() - 1] as usize);
        let longest = tiles_before.windows(2).map(|row| (row[1] - row[0]) as usize).max().unwrap_or(0);
        let mut most = (memory::room(cx)? / share / TILE_BYTES).clamp(longest, all.max(longest));
        loop {
            match optional(TileMemory::new(cx, most, rows))? {
                Some(work) => return Ok(work),
                None if most > longest => most = (most / 2).max(longest),
                None => {
                    let bytes = longest * TILE_BYTES + rows * SIDE * 8 + cx.allocator.live_bytes();
                    return Err(Error::new(
                        Status::InsufficientResources,
                        format!(
                            "C: the {longest} tiles of one row of tiles need at least {bytes} bytes in all"
                        ),
                    ));
                }
            }
        }
    }
}

impl CudaTile {
    /// Counts the tiles that C may have. Blocks.
    fn possible_tiles(&self, cx: &Context) -> Result<PossibleTiles> {
        let on_device = self.count_tiles(cx)?;
        let on_host = on_device.read(0, on_device.len())?;
        Ok(PossibleTiles { on_device, on_host })
    }

    /// Finds the tiles of some rows of tiles (steps 1 and 2 of kernels/spgemm/tile.cu), and writes the number of entries of their rows of C to
    /// `entries`.
    fn find_part(
        &self,
        cx: &Context,
        possible: &PossibleTiles,
        part: &Part,
        work: &TileMemory,
        entries: Address,
    ) -> Result<()> {
        let before = part.entries.start as usize;
        let rows = possible.on_device.at(part.rows.start);
        let m = self.shape.0 - (part.rows.start * SIDE) as i64;
        let arrays = [work.tile_rows.address(), work.columns.address()];
        self.fill_tiles(cx, part, rows, arrays, [work.masks.address(), work.counts.address()])?;
        // SAFETY: tiles are numbered from the first of all, so the addresses of the part's arrays are moved back
        // accordingly; these have room for the tiles that were counted.
        unsafe {
            launch!(self.kernels.entries_before, part.rows.len() as u32, 256, 0, cx.stream;
                rows, work.masks.address().rebased(before * SIDE * 2), m,
                work.entries_before.address().rebased(before * SIDE * 4), entries)
        }
    }

    /// Runs the symbolic phase part by part. Blocks.
    pub(super) fn find_parts(&self, cx: &Context) -> Result<Product> {
        let possible = self.possible_tiles(cx)?;
        let m = self.shape.0 as usize;
        let row_starts = DeviceBuffer::<i64>::zeroed(cx, m + 1)?;
        let work = TileMemory::fit(cx, &possible.on_host, 1)?;
        for part in Part::cut(&possible.on_host, 1, work.most as i64) {
            self.find_part(cx, &possible, &part, &work, row_starts.at(part.rows.start * SIDE))?;
        }
        let nnz = starts(cx, &row_starts)?;
        let mut product = Product {
            tiles: 0,
            tile_rows: DeviceBuffer::new(cx, 0)?,
            columns: DeviceBuffer::new(cx, 0)?,
            masks: DeviceBuffer::new(cx, 0)?,
            entries_before: DeviceBuffer::new(cx, 0)?,
            row_starts,
            nnz,
            by_parts: true,
        };
        product.mark_filled();
        Ok(product)
    }

    /// Computes the rows of C of some rows of tiles, as many at a time as there is memory for.
    fn multiply_parts(
        &self,
        cx: &Context,
        alpha: Scalar,
        (possible, tile_rows, work): (&PossibleTiles, Range<usize>, &TileMemory),
        product: &Product,
        out: &Output,
    ) -> Result<()> {
        let first = tile_rows.start;
        for part in Part::cut(&possible.on_host[first..=tile_rows.end], 1, work.most as i64) {
            let part = Part { rows: part.rows.start + first..part.rows.end + first, ..part };
            self.find_part(cx, possible, &part, work, work.entries.address())?;
            let many = grid((part.count() as usize).div_ceil(WARPS), "the tiles of C")?;
            let out = Output {
                row_starts: product.row_starts.at(part.rows.start * SIDE),
                entries_before: work.entries_before.address(),
                ..*out
            };
            // SAFETY: the kernels made the tiles of these rows, and the output arrays have room for the
            // entries that were counted.
            unsafe {
                launch!(self.kernels.multiply, many, 32 * WARPS as u32, 0, cx.stream;
                    self.left_from(part.rows.start), self.right().view(), self.by_columns.view(),
                    self.left.values.address(), self.right().values.address(), alpha,
                    work.tile_rows.address(), work.columns.address(), work.masks.address(), part.count(), out)?;
            }
        }
        Ok(())
    }

    /// Runs the numeric phase part by part. Blocks.
    pub(super) fn write_parts(
        &self,
        cx: &DeviceCall<'_>,
        alpha: Scalar,
        c: &Compressed,
        direct: bool,
        product: &Product,
    ) -> Result<()> {
        let base = i64::from(c.base.code());
        let possible = self.possible_tiles(cx)?;
        // Rows of C that are transposed need memory as well as their tiles.
        let work = TileMemory::fit(cx, &possible.on_host, if direct { 1 } else { 3 })?;
        let out = Output {
            row_starts: Address::NULL,
            entries_before: Address::NULL,
            columns: c.indices,
            values: c.values,
            wide: c.index_type.wide(),
            base,
        };
        if direct {
            self.multiply_parts(cx, alpha, (&possible, 0..self.left.tile_rows, &work), product, &out)?;
            let starts = product.row_starts.address();
            target::write_offsets(cx, &self.shared_kernels, starts, c)?;
            return memory::synchronize(cx.stream);
        }
        let by_parts = self.by_parts(cx, product, SIDE, usize::MAX);
        let compute = &mut |part: &Part, wanted, [columns, values]: [Address; 2]| {
            let alpha = match wanted {
                Wanted::Product => alpha,
                Wanted::Pattern => Scalar::real(self.problem.types.compute.scalar(), 0.0),
            };
            let out = Output { columns, values, wide: 0, base: 0, ..out };
            let tile_rows = part.rows.start / SIDE..part.rows.end.div_ceil(SIDE);
            self.multiply_parts(cx, alpha, (&possible, tile_rows, &work), product, &out)
        };
        by_parts.write(c, Origin::Computed(compute))
    }
}

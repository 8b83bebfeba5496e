//! Algorithm `tile` with less memory than all tiles of C take: some rows of tiles at a time. Their
//! tiles are found in the symbolic phase, to count entries, and again in the numeric one.

use std::ops::Range;

use super::super::columns::{ByParts, Origin, Part, Wanted};
use super::super::target;
use super::super::tiles::TilesView;
use super::{grid, CudaTile, Output, Product, BLOCK, WARPS};
use crate::backend::cuda::convert::device_wide::exclusive_scan;
use crate::backend::cuda::launch::launch;
use crate::backend::cuda::memory::{self, optional, DeviceBuffer};
use crate::backend::cuda::scalars::Scalar;
use crate::error::{Error, Result, Status};
use crate::format::tile::SIDE;
use crate::matrix::Compressed;
use crate::memory::Context;
use crate::select::spgemm::tiles::SetShape;
use crate::types::Address;

/// Bytes of a tile that C may have: its column and row, masks, entries, and their places.
const TILE_BYTES: usize = 4 + 4 + 2 * SIDE + 4 + 4 * SIDE;

/// Tiles of C in the rows of tiles before each, on the device and on the host.
struct Met {
    rows: DeviceBuffer<i64>,
    host: Vec<i64>,
}

/// Memory for the tiles of some rows of tiles.
struct Work {
    most: usize,
    columns: DeviceBuffer<u32>,
    tile_rows: DeviceBuffer<u32>,
    masks: DeviceBuffer<u16>,
    counts: DeviceBuffer<u32>,
    places: DeviceBuffer<u32>,
    /// Entries of the rows of C, which the numeric phase knows already.
    entries: DeviceBuffer<i64>,
}

impl Work {
    /// For so many tiles, of so many rows of tiles in all: parts may begin anywhere.
    fn new(cx: &Context, most: usize, rows: usize) -> Result<Self> {
        Ok(Work {
            most,
            columns: DeviceBuffer::new(cx, most)?,
            tile_rows: DeviceBuffer::new(cx, most)?,
            masks: DeviceBuffer::new(cx, most * SIDE)?,
            counts: DeviceBuffer::new(cx, most)?,
            places: DeviceBuffer::new(cx, most * SIDE)?,
            entries: DeviceBuffer::new(cx, rows * SIDE)?,
        })
    }

    /// As large as there is memory for, up to what all need.
    fn fit(cx: &Context, met: &[i64], share: usize) -> Result<Self> {
        let (rows, all) = (met.len() - 1, met[met.len() - 1] as usize);
        let longest = met.windows(2).map(|row| (row[1] - row[0]) as usize).max().unwrap_or(0);
        let mut most = (memory::room(cx)? / share / TILE_BYTES).clamp(longest, all.max(longest));
        loop {
            match optional(Work::new(cx, most, rows))? {
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
    fn met(&self, cx: &Context) -> Result<Met> {
        let rows = self.count_tiles(cx)?;
        let host = rows.read(0, rows.len())?;
        Ok(Met { rows, host })
    }

    /// The left factor's tiles from a row of tiles on.
    fn left_from(&self, tile_row: usize) -> TilesView {
        let view = self.left.view();
        TilesView { rows: view.rows.offset(tile_row * size_of::<i64>()), ..view }
    }

    /// Steps 1 and 2 of some rows of tiles, and the entries of their rows of C.
    fn find_part(&self, cx: &Context, met: &Met, part: &Part, work: &Work, entries: Address) -> Result<()> {
        let (left, right) = (self.left_from(part.rows.start), self.right().view());
        let set = SetShape::of(self.right().tile_cols);
        let rows = met.rows.at(part.rows.start);
        let (count, before) = (part.count(), part.entries.start as usize);
        let many = grid((count as usize).div_ceil(WARPS), "the tiles of C")?;
        let m = self.shape.0 - (part.rows.start * SIDE) as i64;
        let tile_rows = part.rows.len() as u32;
        // SAFETY: rows of tiles of the left factor are as the kernels read them, from the part's
        // first on; tiles are numbered from the first of all, so that arrays for those of the part
        // begin before; they have room for what was counted; the shared memory is what the kernel
        // says.
        unsafe {
            launch!(self.kernels.fill, tile_rows, BLOCK, set.fill, cx.stream;
                left.rows, left.columns, right.rows, right.columns, self.lanes(), set.bits, rows,
                work.columns.address().rebased(before * 4), work.tile_rows.address().rebased(before * 4))?;
            launch!(self.kernels.masks, many, 32 * WARPS as u32, 0, cx.stream;
                left, right, self.by_columns.view(), work.tile_rows.address(), work.columns.address(), count,
                work.masks.address(), work.counts.address())?;
            launch!(self.kernels.places, tile_rows, 256, 0, cx.stream;
                rows, work.masks.address().rebased(before * SIDE * 2), m,
                work.places.address().rebased(before * SIDE * 4), entries)
        }
    }

    /// The symbolic phase. Blocks.
    pub(super) fn find_parts(&self, cx: &Context) -> Result<Product> {
        let met = self.met(cx)?;
        let m = self.shape.0 as usize;
        let row_starts = DeviceBuffer::<i64>::zeroed(cx, m + 1)?;
        let work = Work::fit(cx, &met.host, 1)?;
        for part in Part::cut(&met.host, 1, work.most as i64) {
            self.find_part(cx, &met, &part, &work, row_starts.at(part.rows.start * SIDE))?;
        }
        // SAFETY: there is a count for each row of C and one more.
        unsafe { exclusive_scan(cx, row_starts.address(), row_starts.address(), m + 1)? };
        let nnz = row_starts.read(m, 1)?[0];
        let mut product = Product {
            tiles: 0,
            tile_rows: DeviceBuffer::new(cx, 0)?,
            columns: DeviceBuffer::new(cx, 0)?,
            masks: DeviceBuffer::new(cx, 0)?,
            places: DeviceBuffer::new(cx, 0)?,
            row_starts,
            nnz,
            by_parts: true,
        };
        product.seal();
        Ok(product)
    }

    /// Rows of C from some rows of tiles.
    fn multiply_parts(
        &self,
        cx: &Context,
        alpha: Scalar,
        (met, tile_rows, work): (&Met, Range<usize>, &Work),
        product: &Product,
        out: &Output,
    ) -> Result<()> {
        let first = tile_rows.start;
        for part in Part::cut(&met.host[first..=tile_rows.end], 1, work.most as i64) {
            let part = Part { rows: part.rows.start + first..part.rows.end + first, ..part };
            self.find_part(cx, met, &part, work, work.entries.address())?;
            let many = grid((part.count() as usize).div_ceil(WARPS), "the tiles of C")?;
            let out = Output {
                row_starts: product.row_starts.at(part.rows.start * SIDE),
                places: work.places.address(),
                ..*out
            };
            // SAFETY: the tiles are what the kernels made of these rows, and where the entries go
            // has room for those that were counted.
            unsafe {
                launch!(self.kernels.multiply, many, 32 * WARPS as u32, 0, cx.stream;
                    self.left_from(part.rows.start), self.right().view(), self.by_columns.view(),
                    self.left.values.address(), self.right().values.address(), alpha,
                    work.tile_rows.address(), work.columns.address(), work.masks.address(), part.count(), out)?;
            }
        }
        Ok(())
    }

    /// The numeric phase. Blocks.
    pub(super) fn write_parts(
        &self,
        cx: &Context,
        alpha: Scalar,
        c: &Compressed,
        direct: bool,
        product: &Product,
    ) -> Result<()> {
        let base = i64::from(c.base.code());
        let met = self.met(cx)?;
        // Rows of C that are transposed need as much as their tiles.
        let work = Work::fit(cx, &met.host, if direct { 1 } else { 3 })?;
        let out = Output {
            row_starts: Address::NULL,
            places: Address::NULL,
            columns: c.indices,
            values: c.values,
            wide: c.index_type.wide(),
            base,
        };
        if direct {
            self.multiply_parts(cx, alpha, (&met, 0..self.left.tile_rows, &work), product, &out)?;
            let starts = product.row_starts.address();
            target::write_offsets(cx, &self.device, &self.shared_kernels, starts, c)?;
            return memory::synchronize(cx.stream);
        }
        let by_parts = ByParts {
            cx,
            device: &self.device,
            kernels: &self.shared_kernels,
            rows: self.staging(product),
            offsets: &product.row_starts,
            step: SIDE,
            room: usize::MAX,
        };
        let compute = &mut |part: &Part, wanted, [columns, values]: [Address; 2]| {
            let alpha = match wanted {
                Wanted::Product => alpha,
                Wanted::Pattern => Scalar::real(self.problem.types.compute.scalar(), 0.0),
            };
            let out = Output { columns, values, wide: 0, base: 0, ..out };
            let tile_rows = part.rows.start / SIDE..part.rows.end.div_ceil(SIDE);
            self.multiply_parts(cx, alpha, (&met, tile_rows, &work), product, &out)
        };
        by_parts.write(c, Origin::Computed(compute))
    }
}

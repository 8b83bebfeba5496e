//! `row` where rows are short, of about one length, and near their neighbours' columns, as those
//! of grids are (kernels/spmm/near.cu says how).

use super::reach::Reach;
use super::Strides;
use crate::backend::cuda::device::Device;
use crate::backend::cuda::launch::{launch, Kernel, Parameter, Scalar};
use crate::backend::cuda::operand::{RowStats, Rows};
use crate::backend::Context;
use crate::error::Result;
use crate::support::Combo;
use crate::types::{Address, DataType, Element, IndexType};

/// Lanes of a group, by kernel. Groups of 32, tiles of 512 bytes, were slower throughout.
const GROUPS: [usize; 3] = [4, 8, 16];
/// Bytes that a lane reads of a row of B.
const PACK: usize = 16;
/// Bytes of a line of the caches.
const LINE: usize = 128;
/// Rows of a warp's piece of a chunk; of a chunk each warp has one piece. More rows a block are
/// more that must stay in L2 until rows a plane of a grid away come back to them: fp64, N = 32,
/// on a grid of 160³ points 1,246 µs with 8, 1,282 with 16.
const PIECE: i64 = 8;
/// As many where a group has 4 lanes: fewer bytes a row, and a warp has 8 groups.
const PIECE_OF_FEW: i64 = 16;
/// Entries of a row at the most: more are fetched with nothing else under way.
const LONGEST: i64 = 32;
/// log2 of the tiles along N that follow each other on a chunk, at the most.
const MOST_TOGETHER: u32 = 3;
/// Tiles along N that one launch takes.
const MOST_TILES: usize = 65535;

/// Kernels' `Dealt`.
#[derive(Clone, Copy)]
#[repr(C)]
struct Dealt {
    rows: i32,
    piece: i32,
    pieces: i32,
    chunks: i32,
    together: i32,
}
// SAFETY: the kernels' structure has the same members.
unsafe impl Parameter for Dealt {}

/// Kernels' `Offsets`.
#[derive(Clone, Copy)]
#[repr(C)]
struct Offsets {
    pointer: Address,
    wide: i64,
}
// SAFETY: the kernels' structure has the same members.
unsafe impl Parameter for Offsets {}

/// The kernels, for a matrix that they take.
pub(super) struct Near {
    kernels: [Kernel; GROUPS.len()],
    /// Warps of a block of each.
    warps: [u32; GROUPS.len()],
    multiprocessors: u32,
    rows: i32,
}

/// A launch over some of the columns.
pub(super) struct NearStep {
    at: usize,
    pub(super) columns: usize,
    dealt: Dealt,
    grid: (u32, u32),
}

/// What a launch works on.
pub(super) struct Operands {
    pub(super) b: Address,
    /// Bytes between rows.
    pub(super) b_row: i64,
    pub(super) c: Address,
    pub(super) to: Strides,
    /// Of near.cu.
    pub(super) flags: i64,
}

impl Near {
    /// `None` where the matrix, or the types, are none for it.
    pub(super) fn new<C: Combo>(
        device: &Device,
        rows: &Rows,
        stats: &RowStats,
        reach: &Reach,
    ) -> Result<Option<Self>> {
        let real =
            [C::A::TYPE, C::X::TYPE, C::Y::TYPE].iter().all(|t| matches!(t, DataType::R32F | DataType::R64F));
        let fits = rows.index_type == IndexType::I32
            && i32::try_from(rows.nnz).is_ok()
            && i32::try_from(rows.rows).is_ok_and(|rows| rows < i32::MAX / 2);
        let multiprocessors = device.properties().multiprocessors;
        if !(real && fits && suits(rows, stats, i64::from(multiprocessors)) && reach.repeats()) {
            return Ok(None);
        }
        let name = crate::backend::cuda::types_name(C::TYPES);
        let kernel =
            |group: usize| device.modules().kernel("spmm/near", &format!("spmm_near_{name}_{group}"));
        // As near.cu's WARPS.
        let warps = match device.properties().capability {
            ..90 => [24; GROUPS.len()],
            _ => [28, 32, 32],
        };
        Ok(Some(Near {
            kernels: [kernel(GROUPS[0])?, kernel(GROUPS[1])?, kernel(GROUPS[2])?],
            warps,
            multiprocessors,
            rows: rows.rows as i32,
        }))
    }

    /// The launch for the first of `n` columns of elements of `size` bytes, a multiple of what a
    /// lane reads. `follow`: tiles of a row follow each other.
    pub(super) fn step(&self, n: usize, size: usize, most_bytes: usize, follow: bool) -> NearStep {
        let pack = PACK / size;
        let covers = |&group: &usize| group * pack >= n;
        let mut at = GROUPS.iter().position(covers).unwrap_or(GROUPS.len() - 1);
        while GROUPS[at] * PACK > most_bytes.max(LINE) {
            at -= 1;
        }
        let tile = GROUPS[at] * pack;
        let columns = (n - n % pack).min(MOST_TILES * tile);
        let tiles = columns.div_ceil(tile) as u32;
        let together = if follow { tiles.next_power_of_two().trailing_zeros().min(MOST_TOGETHER) } else { 0 };
        let piece = if at == 0 { PIECE_OF_FEW } else { PIECE };
        let pieces = i64::from(self.warps[at]);
        let chunks = (i64::from(self.rows) + piece * pieces - 1) / (piece * pieces);
        let items = u64::try_from(chunks << together).unwrap_or(0);
        NearStep {
            at,
            columns,
            dealt: Dealt {
                rows: self.rows,
                piece: piece as i32,
                pieces: pieces as i32,
                chunks: chunks as i32,
                together: together as i32,
            },
            grid: (items.clamp(1, u64::from(self.multiprocessors)) as u32, tiles.div_ceil(1 << together)),
        }
    }

    /// # Safety
    ///
    /// The operands must be as the kernels expect them: rows of B and of A's pattern that were
    /// checked, memory for all of C.
    pub(super) unsafe fn launch<C: Combo>(
        &self,
        cx: &Context,
        step: &NearStep,
        rows: &Rows,
        operands: &Operands,
        (alpha, beta): (Scalar<C::Acc>, Scalar<C::Acc>),
    ) -> Result<()> {
        let offsets = Offsets { pointer: rows.offsets, wide: i64::from(rows.offset_type == IndexType::I64) };
        let &Operands { b, b_row, c, to, flags } = operands;
        // SAFETY: as this function's.
        unsafe {
            launch!(self.kernels[step.at], (step.grid.0, step.grid.1), 32 * self.warps[step.at], 0, cx.stream;
                offsets, rows.indices, rows.values, rows.base, step.dealt, b, b_row, c, to.row, to.col,
                step.columns as i64, alpha, beta, flags)
        }
    }
}

/// Short rows of about one length, and so many of them that blocks come round several times.
fn suits(rows: &Rows, stats: &RowStats, multiprocessors: i64) -> bool {
    let mean = rows.nnz / rows.rows.max(1);
    mean < super::SHORT
        && stats.max <= (mean + mean / 2 + 4).min(LONGEST)
        && rows.rows >= multiprocessors * ROUNDS * PIECE * 32
}

/// Chunks a block from which on it is worth it.
const ROUNDS: i64 = 2;

#[cfg(test)]
mod tests;

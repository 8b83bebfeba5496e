//! Decisions of SpMM `smat` (src/format/bcsr.rs): whether rows are put in clusters, how wide blocks are, and
//! where row blocks are split. The first two minimise the predicted time of a product on dense blocks, given
//! their number, by SMaT's model T = T_e · n_e + T_init (Okanovic et al., SC 2024, equation 1), where n_e is
//! the number of blocks that hold an entry, and T_e and T_init are fitted to measurements.

use crate::format::bcsr::{widest, Rules, MOST_BLOCKS, ROWS};
use crate::problem::SpmmProblem;
use crate::reorder::BlockShape;
use crate::select::device::Ratios;
use crate::types::ComputeType;

/// Rates of one kind of blocks on an H100.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rates {
    /// Seconds of a product without blocks: T_init.
    pub start: f64,
    /// Seconds per block, T_e, for numbers of columns of B in ascending order.
    pub block: [(i64, f64); 4],
}

/// Bytes a second of an H100's memory.
const MEMORY: f64 = 3.03e12;

/// Results of [`fit`] for 16 to 20 of the comparison matrices in their own order, at each number of columns
/// (L2 flushed). The mean error is 3 to 11 %; the largest, 54 %, is of matrices with few blocks. T_init came
/// out as 6.8 to 8.4 µs (for fp64 7.2 to 11), whatever the number of columns.
const HALF_8: Rates =
    Rates { start: 7.3e-6, block: [(8, 0.097e-9), (32, 0.128e-9), (128, 0.393e-9), (512, 1.57e-9)] };
const HALF_16: Rates =
    Rates { start: 7.3e-6, block: [(8, 0.190e-9), (32, 0.240e-9), (128, 0.713e-9), (512, 2.83e-9)] };
const TF32_8: Rates =
    Rates { start: 7.9e-6, block: [(8, 0.190e-9), (32, 0.250e-9), (128, 0.781e-9), (512, 3.12e-9)] };
const FP64_8: Rates =
    Rates { start: 9.2e-6, block: [(8, 0.383e-9), (32, 0.515e-9), (128, 1.70e-9), (512, 6.8e-9)] };

impl Rates {
    /// Rates for a compute type (halves: fp32) and the size of a value of A; `None` where matrix units have
    /// no such blocks.
    pub fn of(compute: ComputeType, value_bytes: usize, shape: BlockShape) -> Option<&'static Rates> {
        match (compute, value_bytes, shape) {
            (ComputeType::R32F, 2, BlockShape { height: 16, width: 8 }) => Some(&HALF_8),
            (ComputeType::R32F, 2, BlockShape { height: 16, width: 16 }) => Some(&HALF_16),
            (ComputeType::Tf32, 4, BlockShape { height: 16, width: 8 }) => Some(&TF32_8),
            (ComputeType::R64F, 8, BlockShape { height: 16, width: 8 }) => Some(&FP64_8),
            _ => None,
        }
    }

    /// Rates on a device with these ratios to an H100, for blocks of this shape with values of `value_bytes`:
    /// the part of T_e that moves the bytes of a block (for 8 columns nearly all of it) follows memory; rows
    /// of B and instructions are the rest.
    pub fn scaled(&self, value_bytes: usize, shape: BlockShape, device: &Ratios) -> Rates {
        let places = (shape.height * shape.width) as f64;
        let moving = (4.0 + places * (value_bytes as f64 + 0.125)) / MEMORY;
        let of = |(n, seconds): (i64, f64)| {
            (n, device.seconds(seconds, moving) + places * n as f64 * device.doubles[1])
        };
        Rates { start: self.start, block: self.block.map(of) }
    }

    /// Seconds of a product with B of `n` columns: T_e is linear between the measured numbers, constant below
    /// the least, and proportional to `n` above the greatest.
    pub fn seconds(&self, blocks: u64, n: i64) -> f64 {
        let (least, most) = (self.block[0], self.block[self.block.len() - 1]);
        let of_block = if n <= least.0 {
            least.1
        } else if n >= most.0 {
            most.1 * n as f64 / most.0 as f64
        } else {
            let upper = self.block.iter().position(|&(columns, _)| columns > n).unwrap_or(1);
            let ((from, low), (to, high)) = (self.block[upper - 1], self.block[upper]);
            low + (high - low) * (n - from) as f64 / (to - from) as f64
        };
        self.start + of_block * blocks as f64
    }
}

/// Returns whether a product of halves with `n` columns of B is faster with `narrow` blocks of 16 × 8 than
/// with `wide` blocks of 16 × 16.
fn narrow_are_faster(narrow: u64, wide: u64, n: i64, device: &Ratios) -> bool {
    let of = |rates: &Rates, width| rates.scaled(2, BlockShape { height: ROWS, width }, device);
    of(&HALF_8, 8).seconds(narrow, n) < of(&HALF_16, 16).seconds(wide, n)
}

/// Returns whether blocks of halves have 8 columns instead of 16, given the numbers of narrow and wide blocks
/// of a matrix with `nnz` entries. `reads_columns` says that op(B) has contiguous columns, more than the
/// smallest kernel takes: reads have 32 bytes, of which narrow blocks use half.
pub fn takes_narrow_blocks(
    nnz: usize,
    (narrow, wide): (usize, usize),
    n: i64,
    reads_columns: bool,
    device: &Ratios,
) -> bool {
    let stays = reads_columns && is_filled(nnz, wide, 16);
    !stays && narrow_are_faster(narrow as u64, wide as u64, n, device)
}

/// Returns whether blocks are so full that columns of B may be read without a copy: 128 columns in fp16 took
/// cant (25 %) 60 µs, 72 with a copy by rows, conf5 (14 %) 57 and 66, consph (6 %) 410 and 335; 32 columns in
/// TF32 tsopf (60 %) 65 and 66, consph (8 %) 204 and 172.
fn is_filled(nnz: usize, blocks: usize, width: usize) -> bool {
    10 * nnz >= blocks.saturating_mul(ROWS * width)
}

/// Columns of C that a warp takes, by kernel, for values of `size` bytes.
fn columns_of(size: usize) -> [usize; 3] {
    match size {
        2 | 4 => [8, 32, 64],
        _ => [8, 32, 32],
    }
}

/// Columns of C of the kernel for few.
pub fn columns_of_few(size: usize) -> usize {
    columns_of(size)[0]
}

/// Columns of C of the kernel for many.
pub fn columns_of_many(size: usize) -> usize {
    columns_of(size)[2]
}

/// Columns of C of the kernels for a B by rows, or by columns; narrow blocks of halves have only the first
/// kernel for a B by columns.
pub fn forms(size: usize, width: usize, by_columns: bool) -> [usize; 3] {
    match width < widest(size) && by_columns {
        true => [columns_of_few(size); 3],
        false => columns_of(size),
    }
}

/// Index of the kernel for `n` columns of C: up to the first one's, up to the second one's, more.
pub fn form_of(forms: [usize; 3], n: usize) -> usize {
    let [few, some, _] = forms;
    match n {
        _ if n <= few => 0,
        _ if n <= some => 1,
        _ => 2,
    }
}

/// Returns whether kernels should read a B with contiguous columns without a copy, for `n` columns of C: if
/// these are few, or the widest blocks well filled. `blocks` is the number of blocks of the `nnz` entries,
/// and `width` their columns.
pub fn columns_pay(n: usize, size: usize, nnz: usize, (blocks, width): (usize, usize)) -> bool {
    n <= columns_of_few(size) || width == widest(size) && is_filled(nnz, blocks, width)
}

/// Number of an item's tiles that are neighbours in a block of `warps` warps, since they read the same blocks
/// of A.
pub fn tiles_of_item(tiles: usize, warps: usize) -> usize {
    tiles.next_power_of_two().min(warps)
}

/// Shape of the blocks whose number clusters of rows minimise: the narrow ones for halves, too, since
/// clusters save most of them.
pub const CLUSTER: BlockShape = BlockShape { height: ROWS, width: 8 };

/// Largest share of a product's predicted time that clusters of rows may leave to be taken.
const GAIN: f64 = 0.97;

/// Returns whether rows are put in clusters, given the numbers of blocks before and after.
pub fn clusters_gain(
    problem: &SpmmProblem,
    shape: BlockShape,
    (before, after): (u64, u64),
    device: &Ratios,
) -> bool {
    let size = problem.types.a.size();
    let model = Rates::of(problem.types.compute, size, shape).map(|rates| rates.scaled(size, shape, device));
    let seconds = |blocks| model.as_ref().map_or(0.0, |rates| rates.seconds(blocks, problem.n_hint.max(1)));
    seconds(after) < GAIN * seconds(before)
}

/// Number of warps per multiprocessor that should have an item: band1024 (64 blocks in each of 1024 row
/// blocks) took 8 columns of fp16 in 22.7 µs with whole row blocks, 20.8 with halves of them, 22.9 with
/// quarters.
const WARPS: usize = 9;

/// Rules for values of `bytes` bytes in blocks of `width` columns: 8, or 16 where one MMA takes as many
/// ([`crate::format::bcsr::widest`]).
pub fn rules(bytes: usize, width: usize) -> Rules {
    let most = MOST_BLOCKS * if bytes == 2 { 16 / width } else { 1 };
    Rules { width, most, wanted: 1 }
}

/// Rules for a device with this number of multiprocessors, on which `tiles` warps share an item, each with
/// columns of its own.
pub fn rules_on_device(rules: Rules, multiprocessors: usize, tiles: usize) -> Rules {
    Rules { wanted: (WARPS * multiprocessors / tiles.max(1)).max(1), ..rules }
}

/// Fits (T_init, T_e) to (n_e, T) of some matrices by least squares of relative errors; `None` if there are
/// fewer than two different numbers of blocks.
#[cfg(test)]
pub fn fit(points: &[(u64, f64)]) -> Option<(f64, f64)> {
    let (mut w, mut wn, mut wnn, mut wt, mut wnt) = (0.0, 0.0, 0.0, 0.0, 0.0);
    for &(blocks, seconds) in points {
        let (n, weight) = (blocks as f64, 1.0 / (seconds * seconds));
        w += weight;
        wn += weight * n;
        wnn += weight * n * n;
        wt += weight * seconds;
        wnt += weight * n * seconds;
    }
    let determinant = w * wnn - wn * wn;
    // Equal numbers of blocks leave rounding errors of about this size.
    if determinant.is_nan() || determinant <= 1e-9 * w * wnn {
        return None;
    }
    Some(((wt * wnn - wnt * wn) / determinant, (wnt * w - wt * wn) / determinant))
}

#[cfg(test)]
mod tests;

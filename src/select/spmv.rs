//! Cost model of SpMV: seconds in each layout, from the pattern statistics in a [`SpmvStatistics`]: exact
//! bytes, sectors of x and pieces of work, over measured rates.
//!
//! seconds = start + long · (long rows) + wide · (share of wide columns)
//!           + serial · (longest medium row) + max(bytes / bandwidth, sectors, work)
//!
//! The rates of [`H100`] are fitted to 53 matrices in fp64, fp32 and fp16, measured in the run before that of
//! benches/results/h100-spmv.tsv with the same kernels, by least squares of the errors' logarithms, linear
//! beyond 15 % (`select::spmv::fit` prints them for the table). `select::spmv::tests` checks how near the
//! choice then is to the best; with `--nocapture` it prints every prediction beside its measurement, so that
//! the effect of a change of a kernel can be followed there.

pub mod csr;
pub mod dasp;
pub mod hot_sell;
pub mod mask_block;
pub mod sell;
pub mod statistics;

use self::statistics::SpmvStatistics;
use super::device::Ratios;
use super::{index_bytes, Source};
use crate::algorithm::Algorithm;
use crate::format::dasp::{GROUP, MAX_LEN, TASK_GROUPS};
use crate::format::mask_block::{BlockHead, MOST_ROWS};
use crate::format::stream::{overhang, tile_slots, Tile};
use crate::format::warp_sell::SliceHead;
use crate::matrix::SparseMatrix;
use crate::memory::SLOTS;
use crate::problem::SpmvProblem;
use crate::support::Types;
use crate::types::{ComputeType, Operation};

/// Returns whether a device reads a matrix of this size without keeping it in L2, which is left to x and y
/// because the matrix does not fit beside them.
pub fn reads_past_l2(matrix_bytes: u64, l2_bytes: usize) -> bool {
    matrix_bytes > l2_bytes as u64 / 2
}

/// Rates of an SpMV layout.
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    /// Seconds of a product with almost no work, with flushed caches: the launch and dependent loads.
    start: f64,
    /// Additional seconds if rows are split into pieces whose partial sums have to be added.
    long: f64,
    /// Additional seconds if all columns take 32 bits.
    wide: f64,
    /// Additional seconds for each entry of the longest row of up to 256.
    serial: f64,
    /// Bytes a second.
    bandwidth: f64,
    /// Seconds of instructions per entry, slot or block, if nothing else bounds the product.
    entry: f64,
    /// Seconds of instructions per row, slice or slab.
    unit: f64,
    /// Additional seconds per row, slice or slab if all columns take 32 bits.
    wide_unit: f64,
    /// Sectors of x a second from L2.
    far_sectors: f64,
    /// Sectors of x a second from L1.
    near_sectors: f64,
}

/// Rates of all layouts on a kind of machine.
#[derive(Clone, Copy, Debug)]
pub struct Rates {
    /// Number of lanes that run at one time, which determines how `sell` splits rows.
    lanes: usize,
    /// Bytes of x that stay in L1.
    near_bytes: f64,
    /// Additional seconds per multiply-add of doubles beyond the rates of instructions.
    doubles: f64,
    csr: Layout,
    sell: Layout,
    stream: Layout,
    dasp: Layout,
    mask_block: Layout,
}

impl Layout {
    fn scaled(&self, ratios: &Ratios) -> Self {
        Layout {
            bandwidth: self.bandwidth * ratios.memory,
            entry: self.entry / ratios.cycles,
            unit: self.unit / ratios.cycles,
            wide_unit: self.wide_unit / ratios.cycles,
            far_sectors: self.far_sectors * ratios.cycles,
            near_sectors: self.near_sectors * ratios.cycles,
            ..*self
        }
    }
}

impl Rates {
    /// Rates scaled by the ratios of a device to an H100.
    pub fn scaled(&self, ratios: &Ratios) -> Self {
        Rates {
            lanes: (self.lanes as f64 * ratios.multiprocessors).round() as usize,
            near_bytes: self.near_bytes * ratios.near,
            doubles: ratios.doubles[0],
            csr: self.csr.scaled(ratios),
            sell: self.sell.scaled(ratios),
            stream: self.stream.scaled(ratios),
            dasp: self.dasp.scaled(ratios),
            mask_block: self.mask_block.scaled(ratios),
        }
    }

    /// Additional seconds per multiply-add in this compute type.
    fn doubles_of(&self, compute: ComputeType) -> f64 {
        match compute {
            ComputeType::R64F => self.doubles,
            ComputeType::C64F => 4.0 * self.doubles,
            _ => 0.0,
        }
    }
}

/// A layout of the table below, in the order of the fields of [`Layout`]: microseconds, bytes a second,
/// picoseconds, sectors a second.
const fn layout(
    [start, long, wide, serial]: [f64; 4],
    bandwidth: f64,
    [entry, unit, wide_unit]: [f64; 3],
    [far_sectors, near_sectors]: [f64; 2],
) -> Layout {
    const US: f64 = 1e-6;
    const PS: f64 = 1e-12;
    Layout {
        start: start * US,
        long: long * US,
        wide: wide * US,
        serial: serial * US,
        bandwidth,
        entry: entry * PS,
        unit: unit * PS,
        wide_unit: wide_unit * PS,
        far_sectors,
        near_sectors,
    }
}

/// An H100 with 132 multiprocessors of 1,024 lanes, and 256 KiB of L1, of which x gets what the stream of the
/// matrix leaves. Rates of x from L2 and L1 show on uniform, cop20k and rmat20 (x of 0.2 to 8 MB, each entry
/// in a sector of its own): 110 to 120 and 230 to 250 thousand million sectors a second; a layout with a
/// lower rate has fewer loads in flight.
pub const H100: Rates = Rates {
    lanes: 132 * 1024,
    near_bytes: 2.0e5,
    doubles: 0.0,
    // The mean error is 12 %, since there are two kernels, one of them for even rows.
    csr: layout([5.15, 2.02, 2.2, 0.0061], 2.53e12, [2.6, 8.25, 0.0], [1.21e11, 1.58e11]),
    // The mean error is 9 %. A step of 64 slots takes 27 ps, a slice 267, and 0.6 as much again where columns
    // are loaded from elsewhere (webbase). Sums of long rows are handed over while other warps work.
    sell: layout([5.33, 0.0, 1.22, 0.00067], 3.09e12, [0.42, 267.0, 170.0], [1.43e11, 2.30e11]),
    // The mean error is 11 %. Its scan through shared memory costs the same for every entry.
    stream: layout([5.25, 2.12, 0.33, 0.0016], 2.18e12, [2.55, 0.0, 3.9], [1.08e11, 1.47e11]),
    // The mean error is 13 %. A warp takes eight medium rows, whatever their length, unless they are many
    // blocks: rows of some 250 entries hold the launch for 4 µs.
    dasp: layout([6.04, 0.0, 2.24, 0.0144], 3.06e12, [2.16, 5.6, 0.67], [1.17e11, 3.27e11]),
    // The mean error is 13 %. Instructions bound it: 18 ps a block, 433 a slab.
    mask_block: layout([4.87, 0.03, 4.95, 0.0107], 2.33e12, [17.9, 433.0, 49.7], [5.6e10, 9.3e10]),
};

/// Minimum predicted gain over `sell` for another layout to be preferred: less is within the errors of the
/// predictions. docs/algorithms/choice.md has the loss by this margin.
pub const MARGIN: f64 = 0.12;

/// Resource that bounds a product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// Bytes of matrix, x and y.
    Bytes,
    /// Loads of x.
    Sectors,
    /// Instructions.
    Work,
}

impl Bound {
    /// Name of the resource for a sentence.
    pub fn describe(self) -> &'static str {
        match self {
            Bound::Bytes => "bytes",
            Bound::Sectors => "sectors of x",
            Bound::Work => "instructions",
        }
    }
}

/// Predicted traffic and time of a layout.
#[derive(Clone, Copy, Debug)]
pub struct Estimate {
    /// Bytes of matrix, x and y.
    pub bytes: f64,
    /// Seconds.
    pub seconds: f64,
    /// Resource that takes most of the time.
    pub bound: Bound,
}

/// Work of a product in a layout.
struct Work {
    /// Bytes of A.
    bytes: f64,
    /// Sectors of x per entry.
    sectors: f64,
    /// Numbers of entries, slots or blocks, and of rows, slices or slabs.
    entries: f64,
    units: f64,
    has_long: bool,
}

/// Widths of values and indices of a problem.
#[derive(Clone, Copy, Debug)]
pub struct Widths {
    /// Value types.
    pub types: Types,
    /// Bytes of a column index and of a row offset where `csr` reads the matrix.
    pub index: (usize, usize),
}

impl Widths {
    /// Widths of a problem whose `csr` reads A from `source`.
    pub fn of(problem: &SpmvProblem, source: Source) -> Self {
        Widths { types: problem.types, index: index_bytes(&problem.a, source) }
    }
}

/// Predicted traffic and time of an SpMV algorithm on a machine with these rates.
pub fn estimate(
    rates: &Rates,
    statistics: &SpmvStatistics,
    algorithm: Algorithm,
    widths: &Widths,
) -> Estimate {
    let value = widths.types.a.size();
    let (rows, nnz) = (statistics.rows as f64, statistics.nnz as f64);
    let wide = 1.0 - statistics.narrow();
    let column = 2.0 + 2.0 * wide;
    // Neighbouring lanes are in different rows if rows are short, and in one row if they are long.
    let mixed = (statistics.sectors_along() * statistics.sectors_across()).sqrt();
    let (layout, work) = match algorithm {
        Algorithm::Sell => {
            let (count, entries) = (statistics.rows as usize, statistics.nnz as usize);
            let (shared, adjacent) = match widths.types.a.is_complex() {
                true => ([0, 0], false),
                false => (statistics.shared().map(|entries| entries as usize), statistics.is_adjacent()),
            };
            let rules = sell::rules(count, entries, value, rates.lanes, SLOTS, shared, adjacent);
            let (slots, slices) = statistics.sell_slots(&rules);
            // Share of the columns that are stored, and of the elements of x that are read: an item of K rows
            // has them once.
            let once = match rules.item_rows {
                1 => 1.0,
                k => 1.0 - shared[k - 2] as f64 / nnz.max(1.0) * (1.0 - 1.0 / k as f64),
            };
            // Slices with one lane per row may derive their columns from those of lane 0.
            let is_single = statistics.mean() <= rules.entries as f64;
            let told = if is_single { 1.0 - statistics.shifted() } else { 1.0 };
            let bytes = slots * (value as f64 + column * told * once)
                + slices * size_of::<SliceHead>() as f64
                + rows * 4.0 * told;
            let has_long = statistics.longest() > rules.limit() as u64;
            (rates.sell, Work { bytes, sectors: mixed * once, entries: slots, units: slices, has_long })
        }
        Algorithm::Stream => {
            let slots = tile_slots(value) as f64;
            let taken = nnz + statistics.empty_rows() as f64;
            let marks = if statistics.empty_rows() > 0 { 2.0 } else { 1.0 };
            let tile = slots * (value as f64 + column) + marks * slots / 8.0 + size_of::<Tile>() as f64;
            let bytes = (taken / slots).ceil() * tile;
            let has_long = statistics.longest() > overhang(value) as u64;
            let sectors = statistics.sectors_along();
            (rates.stream, Work { bytes, sectors, entries: taken, units: rows, has_long })
        }
        Algorithm::Dasp => {
            let (slots, results) = statistics.dasp_slots();
            let (slots, medium) = (slots as f64, statistics.medium_rows() as f64);
            // 8 rows have two numbers of 8 bytes and 8 row ends.
            let bytes = slots * (value + 4) as f64 + results as f64 * 4.0 + medium * 4.0;
            let has_long = statistics.longest() > (TASK_GROUPS * GROUP) as u64;
            (rates.dasp, Work { bytes, sectors: mixed, entries: slots, units: rows, has_long })
        }
        Algorithm::MaskBlock => {
            let blocks = nnz / statistics.entries_of_block();
            let slabs = rows / MOST_ROWS as f64;
            let bytes = nnz * value as f64 + blocks * (4.0 + column) + slabs * size_of::<BlockHead>() as f64;
            let sectors = statistics.sectors_across();
            (rates.mask_block, Work { bytes, sectors, entries: blocks, units: slabs, has_long: false })
        }
        _ => {
            let (index, offset) = widths.index;
            let bytes = nnz * (value + index) as f64 + (rows + 1.0) * offset as f64;
            // No row of an even matrix is split.
            let has_long = statistics.longest() as f64 > 2.0 * statistics.mean();
            let sectors = statistics.sectors_along();
            (rates.csr, Work { bytes, sectors, entries: nnz, units: rows, has_long })
        }
    };
    let x_bytes = statistics.cols as f64 * widths.types.x.size() as f64;
    let bytes = work.bytes + x_bytes + rows * widths.types.y.size() as f64;
    let far = (1.0 - rates.near_bytes / x_bytes.max(1.0)).max(0.0);
    let sectors = nnz * work.sectors;
    let of_bytes = bytes / layout.bandwidth;
    let of_sectors = sectors * (far / layout.far_sectors + (1.0 - far) / layout.near_sectors);
    let doubles = rates.doubles_of(widths.types.compute);
    let of_work =
        work.entries * layout.entry + work.units * (layout.unit + layout.wide_unit * wide) + nnz * doubles;
    let most = of_bytes.max(of_sectors).max(of_work);
    let bound = match most {
        _ if most == of_bytes => Bound::Bytes,
        _ if most == of_sectors => Bound::Sectors,
        _ => Bound::Work,
    };
    let seconds = layout.start
        + if work.has_long { layout.long } else { 0.0 }
        + layout.wide * wide
        + layout.serial * statistics.longest_up_to(MAX_LEN) as f64
        + most;
    Estimate { bytes, seconds, bound }
}

/// Bytes of A where only its shape is known. Slices with 16-bit columns have a head of 16 bytes for 32 rows,
/// more heads if rows are long, and 4 bytes a row for its position in y.
pub fn bytes_by_shape(a: &SparseMatrix, op: Operation, algorithm: Algorithm) -> f64 {
    let (rows, _, nnz) = a.shape_of(op);
    let (rows, nnz) = (rows as f64, nnz as f64);
    let value = a.value_type().size() as f64;
    match algorithm {
        Algorithm::Stream => {
            let slots = tile_slots(a.value_type().size()) as f64;
            (nnz / slots).ceil() * (slots * (value + 2.0) + slots / 8.0 + size_of::<Tile>() as f64)
        }
        Algorithm::Dasp => nnz * (value + 4.0) + rows * 8.0,
        // Blocks are assumed to be half full until they are counted.
        Algorithm::MaskBlock => nnz * value + nnz / 16.0 * 6.0 + rows * 2.0,
        _ => nnz * (value + 2.0) + rows * 8.0,
    }
}

#[cfg(test)]
pub(super) mod fit;
#[cfg(test)]
pub(super) mod tests;

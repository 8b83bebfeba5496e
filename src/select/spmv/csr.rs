//! Distribution of rows over the threads of a device for SpMV `csr` (kernels/spmv/csr.cu), and decision
//! whether it keeps 16-bit columns of its own for rows that it reads in place.

use super::{Rates, Widths};
use crate::memory::COUNTERS;
use crate::types::DataType;

/// Threads of a block; kernels/spmv/dot.cuh has the same constant.
pub const THREADS: u32 = 256;
/// Warps of a block.
pub const WARPS: u64 = 8;

/// Form `rows`: entries of a row that one lane reads at one time; ROW_UNROLL of kernels/spmv/rows.cuh. A row
/// of mean length takes one step.
const ENTRIES_PER_LANE: i64 = 4;
/// Maximum number of entries for which form `rows` serves without a plan: it starts about 2 µs sooner than
/// `balanced`, and if one row has all entries its block takes at most 16 steps of about 1 µs.
const ONCE_ROWS_ENTRIES: i64 = 1 << 14;
/// Largest ratio of the longest row to the mean for which form `rows` serves with analysis: a warp then does
/// not wait long for its longest row.
const EVEN: i64 = 2;

/// Maximum number of entries for which form `rows` serves with analysis; more only if rows have at least
/// [`ROWS_MEAN`] entries in the mean.
const ROWS_ENTRIES: i64 = 1 << 22;
const ROWS_MEAN: i64 = 200;

/// Form `balanced`: minimum number of rows and entries of a warp, half a tile. Fewer would take as long, and
/// more blocks would search.
const LEAST_SHARE: u64 = 128;
/// Form `balanced`: entries by which a row may reach beyond its block's end, or half a warp's share if that
/// is more, before blocks divide it: two tiles of one warp cost less than a hand-over between blocks.
const LEAST_OVERHANG: u64 = 512;
/// Maximum number of blocks of form `balanced`, which has a counter for each.
const MOST_BLOCKS: u64 = COUNTERS as u64;

/// Form `long_rows`: largest number of threads of a row. kernels/spmv/long_rows.cuh has this constant and the next.
pub const MOST_LANES: u64 = 512;
/// Form `long_rows`: rows of a block where a warp is enough for a row.
const WARPS_OF_ROWS: u64 = 4;
/// Form `long_rows`: minimum mean length of a row: a row gets at least a warp, and shorter ones leave too many lanes
/// idle.
const LEAST_MEAN: u64 = 12;
/// Form `long_rows`: least number of entries of a piece, in all and per thread of a row. Rows of up to twice the
/// length of a piece are not cut.
const LEAST_PIECE: u64 = 512;
const PIECE_BY_LANE: u64 = 8;
/// Form `long_rows`: largest number of pieces of a matrix. Two sums of 16 bytes for each fill the workspace of a
/// product without a plan, 64 KiB.
pub const MOST_PIECES: u64 = 2048;
/// Form `long_rows`: maximum number of rows per multiprocessor and entry of a mean row: each row has a fixed cost
/// that only long rows pay for.
const ROWS_BY_MEAN: u64 = 8;

const THREADS_OF_MULTIPROCESSOR: u64 = 2048;

/// Capacity of a device for one product: blocks that run at one time, and whether L2 keeps the matrix.
#[derive(Clone, Copy, Debug)]
pub struct Capacity {
    multiprocessors: u64,
    /// Blocks of `balanced` that run at one time.
    balanced_blocks: u64,
    /// True if values and columns take at most half of L2, so that they stay there from one product to the next.
    is_cached: bool,
}

impl Capacity {
    /// Capacity for sums of this type; BALANCED_BLOCKS of kernels/spmv/csr.cu is the number of blocks of
    /// `balanced` on one multiprocessor.
    pub fn new(accumulator: DataType, multiprocessors: u32, is_cached: bool) -> Self {
        let multiprocessors = u64::from(multiprocessors);
        let balanced_blocks = multiprocessors * if accumulator.size() <= 4 { 4 } else { 3 };
        Capacity { multiprocessors, balanced_blocks, is_cached }
    }
}

/// Way in which rows are distributed over threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// 2^`lanes_log2` lanes take a row.
    Rows { lanes_log2: i32, blocks: u32 },
    /// `lanes` threads, a warp or a block, take a row; rows of more than `most` entries are cut into pieces.
    LongRows { lanes: i32, piece: i64, most: i64, blocks: u32 },
    /// A warp takes `share` rows and entries together.
    Balanced { share: i64, overhang: i64, blocks: u32 },
}

impl Form {
    /// Form without a plan.
    pub fn unanalyzed(rows: i64, nnz: i64, capacity: Capacity) -> Self {
        if let Some(form) = Form::long_rows(rows, nnz, None, capacity) {
            return form;
        }
        match Form::rows(rows, nnz) {
            Some(form) if nnz <= ONCE_ROWS_ENTRIES => form,
            _ => Form::balanced(rows, nnz, capacity),
        }
    }

    /// Form for rows whose longest length is known.
    pub fn analyzed((rows, nnz, longest): (i64, i64, i64), capacity: Capacity) -> Self {
        // longest ≤ EVEN · nnz / rows, or no more than a lane reads at one time.
        let even = i128::from(longest) * i128::from(rows) <= i128::from(EVEN) * i128::from(nnz);
        let is_even = even || longest <= ENTRIES_PER_LANE;
        // For large matrices `balanced`, which loads several entries at once, is faster although rows are even.
        let is_small = nnz <= ROWS_ENTRIES || i128::from(nnz) >= i128::from(ROWS_MEAN) * i128::from(rows);
        let is_even = is_even && is_small;
        match (Form::rows(rows, nnz), Form::long_rows(rows, nnz, Some(longest), capacity)) {
            // A warp is enough for a row of either form, and `rows` gives short rows fewer lanes.
            (Some(form), Some(Form::LongRows { lanes: 32, .. }) | None) if is_even => form,
            (_, Some(form)) => form,
            _ => Form::balanced(rows, nnz, capacity),
        }
    }

    /// Form `rows`; `None` if a grid has too few threads for the rows.
    pub fn rows(rows: i64, nnz: i64) -> Option<Self> {
        // Rounded to the power of two nearest to what gives each lane its entries: both neighbours measured
        // slower.
        let lanes = nnz as f64 / rows.max(1) as f64 / ENTRIES_PER_LANE as f64;
        let lanes_log2 = lanes.max(2.0).log2().round().min(5.0) as i32;
        let blocks = rows.unsigned_abs().checked_mul(1 << lanes_log2)?.div_ceil(u64::from(THREADS));
        let blocks = u32::try_from(blocks).ok().filter(|&blocks| blocks <= i32::MAX as u32)?;
        Some(Form::Rows { lanes_log2, blocks })
    }

    /// Form `long_rows`, with threads for pieces of cut rows if the longest row is not known or is cut; `None`
    /// if rows are short or many for it, or the matrix is too large for L2: then `balanced` is as fast or
    /// faster.
    pub fn long_rows(rows: i64, nnz: i64, longest: Option<i64>, capacity: Capacity) -> Option<Self> {
        let (rows, nnz) = (rows.unsigned_abs(), nnz.unsigned_abs());
        let mean = nnz.checked_div(rows)?;
        let is_wide = u128::from(rows) * u128::from(rows)
            <= u128::from(ROWS_BY_MEAN * capacity.multiprocessors) * u128::from(nnz);
        if mean < LEAST_MEAN || !is_wide || !capacity.is_cached {
            return None;
        }
        let lanes = mean.min(capacity.multiprocessors * THREADS_OF_MULTIPROCESSOR / rows);
        let lanes = lanes.checked_ilog2().map_or(32, |log2| 1 << log2).clamp(32, MOST_LANES);
        let piece = LEAST_PIECE.max(PIECE_BY_LANE * lanes).max(nnz.div_ceil(MOST_PIECES));
        let (most, cuts) = match longest {
            Some(longest) if longest.unsigned_abs() <= 2 * piece => (i64::MAX as u64, 0),
            _ => (2 * piece, (nnz - 1) / piece),
        };
        let blocks = (rows + cuts).div_ceil(if lanes == 32 { WARPS_OF_ROWS } else { 1 });
        let blocks = u32::try_from(blocks).ok().filter(|&blocks| blocks <= i32::MAX as u32)?;
        Some(Form::LongRows { lanes: lanes as i32, piece: piece as i64, most: most as i64, blocks })
    }

    pub fn balanced(rows: i64, nnz: i64, capacity: Capacity) -> Self {
        // Arrays of both lengths are in memory, so that the sum is far below 2^63.
        let positions = (rows + nnz).unsigned_abs();
        let warps = capacity.balanced_blocks.min(MOST_BLOCKS) * WARPS;
        let share = positions.div_ceil(warps).max(LEAST_SHARE);
        let overhang = LEAST_OVERHANG.max(share / 2);
        let blocks = positions.div_ceil(share * WARPS) as u32;
        Form::Balanced { share: share as i64, overhang: overhang as i64, blocks }
    }

    /// Threads of a block.
    pub fn threads(self) -> u32 {
        match self {
            Form::LongRows { lanes: 32, .. } => 32 * WARPS_OF_ROWS as u32,
            Form::LongRows { lanes, .. } => lanes as u32,
            Form::Rows { .. } | Form::Balanced { .. } => THREADS,
        }
    }

    /// Binary logarithm of the lanes of a row, and number of blocks, for a kernel that goes over the rows once
    /// before products do.
    pub fn lanes_of_pass(self, rows: i64) -> (i32, u32) {
        match self {
            Form::Rows { lanes_log2, blocks } => (lanes_log2, blocks),
            Form::LongRows { .. } | Form::Balanced { .. } => (5, rows.unsigned_abs().div_ceil(WARPS) as u32),
        }
    }

    /// Number of partial sums in the workspace, of rows that several blocks or groups share; `nnz` is the
    /// matrix's number of entries.
    pub fn parts(self, nnz: i64) -> usize {
        match self {
            Form::Rows { .. } => 0,
            Form::LongRows { most: i64::MAX, .. } => 0,
            Form::LongRows { piece, .. } => 2 * nnz.unsigned_abs().div_ceil(piece as u64) as usize,
            Form::Balanced { blocks, .. } => 2 * blocks as usize,
        }
    }
}

/// Number of columns that 16 bits can number.
pub const NARROW_COLUMNS: i64 = 1 << 16;
/// Number of entries that share an origin in form `balanced`; kernels/spmv/narrow.cuh has the same constant.
pub const CHUNK: i64 = 32;
/// Minimum share of a product's time that 16-bit columns must be predicted to save: less is within the noise
/// of a measurement, and costs the same memory.
const LEAST_GAIN: f64 = 0.05;

/// Origins that 16-bit columns are relative to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origins {
    /// 0, if no column exceeds 16 bits.
    Zero,
    /// Smallest column index of the row, which lanes of forms `rows` and `long_rows` know.
    Rows,
    /// Smallest column index of [`CHUNK`] entries: warps of form `balanced` load a chunk at a time, whatever
    /// its rows.
    Chunks,
}

impl Origins {
    /// Origins for a matrix with this number of columns.
    pub fn of(form: Form, cols: i64) -> Self {
        match form {
            _ if cols <= NARROW_COLUMNS => Origins::Zero,
            Form::Rows { .. } | Form::LongRows { .. } => Origins::Rows,
            Form::Balanced { .. } => Origins::Chunks,
        }
    }

    /// Number of origins of a matrix.
    pub fn count(self, rows: i64, nnz: i64) -> i64 {
        match self {
            Origins::Zero => 0,
            Origins::Rows => rows,
            Origins::Chunks => nnz.unsigned_abs().div_ceil(CHUNK as u64) as i64,
        }
    }

    /// Name of the origins for a sentence.
    pub fn describe(self) -> &'static str {
        match self {
            Origins::Zero => "0",
            Origins::Rows => "the least of each row",
            Origins::Chunks => "the least of each 32 entries",
        }
    }
}

/// Seconds that 16-bit columns are predicted to save a product of a matrix of (rows, cols, nnz) whose rows
/// are read in place; `None` if that is too little. They save bytes only: nothing if instructions take as
/// long, and little of a product that is mostly launch.
pub fn narrow_gain(rates: &Rates, (rows, cols, nnz): (i64, i64, i64), widths: &Widths) -> Option<f64> {
    let (types, (index, offset)) = (widths.types, widths.index);
    // The form is not known yet: the larger number of origins is assumed.
    let origins = match cols <= NARROW_COLUMNS {
        true => 0,
        false => rows.max(Origins::Chunks.count(rows, nnz)),
    };
    let (rows, cols, nnz) = (rows as f64, cols as f64, nnz as f64);
    let others = nnz * types.a.size() as f64
        + (rows + 1.0) * offset as f64
        + cols * types.x.size() as f64
        + rows * types.y.size() as f64;
    let wide = others + nnz * index as f64;
    let narrow = others + nnz * 2.0 + origins as f64 * 4.0;
    let layout = &rates.csr;
    let work = nnz * (layout.entry + rates.doubles_of(types.compute)) + rows * layout.unit;
    let seconds = |bytes: f64| layout.start + (bytes / layout.bandwidth).max(work);
    let gain = seconds(wide) - seconds(narrow);
    (gain >= LEAST_GAIN * seconds(wide)).then_some(gain)
}

#[cfg(test)]
mod tests {
    use super::super::H100;
    use super::*;
    use crate::support::{self, Combo, Types};

    /// A device with the multiprocessors of an H100, for sums of doubles.
    const DOUBLES: Capacity = Capacity { multiprocessors: 132, balanced_blocks: 396, is_cached: true };

    #[test]
    fn sums_of_doubles_leave_room_for_fewer_blocks() {
        let blocks = |sums| Capacity::new(sums, 132, true).balanced_blocks;
        assert_eq!([DataType::R32F, DataType::R64F].map(blocks), [528, 396]);
    }

    #[test]
    fn shares_cover_all_positions() {
        let sizes = [(1, 0), (1, 1), (1000, 3), (62_451, 4_007_383), (1 << 33, 1 << 34), (5, 1 << 40)];
        for (rows, nnz) in sizes {
            let Form::Balanced { share, overhang, blocks } = Form::balanced(rows, nnz, DOUBLES) else {
                unreachable!()
            };
            let span = WARPS as i64 * share;
            assert!(i64::from(blocks) * span >= rows + nnz);
            assert!(blocks <= 396 && share as u64 >= LEAST_SHARE);
            // The kernel's rule for split rows relies on this.
            assert!(overhang < span);
        }
        assert!(matches!(Form::balanced(0, 0, DOUBLES), Form::Balanced { blocks: 0, .. }));
    }

    #[test]
    fn lanes_follow_the_mean() {
        let lanes = |rows, nnz| match Form::rows(rows, nnz) {
            Some(Form::Rows { lanes_log2, blocks }) => (1 << lanes_log2, blocks),
            _ => (0, 0),
        };
        assert_eq!(lanes(0, 0), (2, 0));
        assert_eq!(lanes(1000, 3000), (2, 8));
        assert_eq!(lanes(1000, 16_000), (4, 16));
        assert_eq!(lanes(1000, 27_000), (8, 32));
        assert_eq!(lanes(10, 1_000_000), (32, 2));
        assert!(Form::rows(1 << 40, 1 << 40).is_none());
    }

    #[test]
    fn skewed_rows_are_balanced() {
        assert!(matches!(Form::analyzed((1000, 27_000, 27), DOUBLES), Form::Rows { .. }));
        assert!(matches!(Form::analyzed((116_835, 766_396, 114_190), DOUBLES), Form::Balanced { .. }));
        assert!(matches!(Form::unanalyzed(1000, 5000, DOUBLES), Form::Rows { .. }));
        assert!(matches!(Form::unanalyzed(116_835, 766_396, DOUBLES), Form::Balanced { .. }));
    }

    fn lanes_of(form: Form) -> i32 {
        match form {
            Form::LongRows { lanes, .. } => lanes,
            _ => 0,
        }
    }

    #[test]
    fn long_rows_fill_their_threads() {
        let lanes = |rows, nnz| lanes_of(Form::unanalyzed(rows, nnz, DOUBLES));
        // Too short, too many, and empty.
        assert_eq!(
            [(5000, 55_000), (100_000, 2_000_000), (0, 0), (10, 0)].map(|(m, nnz)| lanes(m, nnz)),
            [0; 4]
        );
        assert_eq!(lanes(5000, 60_000), 32);
        assert_eq!(lanes(2048, 400_000), 128);
        assert_eq!(lanes(507, 409_349), 512);
        assert_eq!(lanes(600, 150_000), 128);
        assert_eq!(lanes(1, 1_000_000), 512);
        let too_large = Capacity { is_cached: false, ..DOUBLES };
        assert!(matches!(Form::unanalyzed(507, 409_349, too_large), Form::Balanced { .. }));
    }

    #[test]
    fn known_lengths_leave_out_threads_for_pieces() {
        let form = |longest| Form::analyzed((507, 409_349, longest), DOUBLES);
        assert!(matches!(form(8192), Form::LongRows { most: i64::MAX, blocks: 507, .. }));
        assert_eq!(form(8192).parts(409_349), 0);
        assert!(matches!(form(8193), Form::LongRows { piece: 4096, most: 8192, blocks: 606, .. }));
        // A warp is enough for even rows of 60 entries, fewer lanes for those of 12.
        assert!(matches!(Form::analyzed((5000, 300_000, 81), DOUBLES), Form::Rows { .. }));
        assert_eq!(lanes_of(Form::analyzed((5000, 300_000, 130), DOUBLES)), 32);
    }

    #[test]
    fn pieces_have_counters_and_parts() {
        let shapes = [
            (1, 12),
            (1, 512),
            (1, 513),
            (3, 40_000_000),
            (7, (1 << 40) + 3),
            (20_000, 2_100_000),
            (90_000, 8_404_478),
            (20_000, 1 << 20),
            (20_000, (1 << 20) + 1),
        ];
        for (rows, nnz) in shapes {
            let form = Form::long_rows(rows, nnz, None, DOUBLES).unwrap();
            let Form::LongRows { piece, most, blocks, .. } = form else { unreachable!() };
            let last = (nnz - 1) / piece;
            assert!(last < MOST_PIECES as i64 && last < COUNTERS as i64 && most >= piece, "{rows} {nnz}");
            assert_eq!(form.parts(nnz) as i64, 2 * (last + 1));
            assert!(form.parts(nnz) as u64 <= 2 * MOST_PIECES);
            let groups = if lanes_of(form) == 32 { 4 } else { 1 };
            assert!(i64::from(blocks) * groups >= rows + last);
        }
    }

    fn gain(types: Types, sizes: (i64, i64, i64)) -> Option<f64> {
        narrow_gain(&H100, sizes, &Widths { types, index: (4, 4) })
    }

    #[test]
    fn columns_are_narrowed_where_bytes_bound_a_product() {
        let (f64s, f32s) = (support::F64::TYPES, support::F32::TYPES);
        // For cant they save 2 of 12 bytes, of a product of about 24 µs.
        let cant = (62_451, 62_451, 4_007_383);
        let found = gain(f64s, cant).unwrap();
        assert!((2e-6..4e-6).contains(&found), "{found}");
        assert!(gain(f32s, cant).is_some());
        // A matrix with an origin for each row.
        assert!(gain(f64s, (1_000_000, 1_000_000, 27_000_000)).is_some());
        // For halves instructions take as long as 6 bytes.
        assert!(gain(support::F16F32::TYPES, cant).is_none());
        // The launch takes most of a small product.
        assert!(gain(f64s, (5000, 5000, 50_000)).is_none());
        assert!(gain(f64s, (0, 0, 0)).is_none());
        // Origins take as many bytes as the columns save.
        assert!(gain(f64s, (10_000_000, 10_000_000, 20_000_000)).is_none());
        // 64-bit columns save three times as much.
        let wide = narrow_gain(&H100, cant, &Widths { types: f64s, index: (8, 8) }).unwrap();
        assert!(wide > 2.5 * found, "{wide}");
    }

    #[test]
    fn origins_are_what_a_form_knows() {
        let rows = Form::rows(1000, 27_000).unwrap();
        let balanced = Form::balanced(1000, 27_000, DOUBLES);
        assert_eq!([rows, balanced].map(|form| Origins::of(form, 1 << 16)), [Origins::Zero; 2]);
        assert_eq!(Origins::of(rows, (1 << 16) + 1), Origins::Rows);
        assert_eq!(Origins::of(balanced, (1 << 16) + 1), Origins::Chunks);
        assert_eq!(Origins::Zero.count(1000, 27_001), 0);
        assert_eq!(Origins::Rows.count(1000, 27_001), 1000);
        assert_eq!(Origins::Chunks.count(1000, 27_001), 844);
    }
}

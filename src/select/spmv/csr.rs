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
/// Maximum number of entries for which form `rows` serves without analysis: it starts about 2 µs sooner than
/// `balanced`, and if one row has all entries its block takes at most 16 steps of about 1 µs.
const ONCE_ROWS_ENTRIES: i64 = 1 << 14;
/// Form `rows` without analysis for longer rows: smallest mean length, and maximum number of entries. There are
/// then so few rows that `balanced` would cut nearly all of them, after a search of its own for each block.
/// Larger matrices hide both behind their bytes.
const CUT_MEAN: i64 = 128;
const CUT_ENTRIES: i64 = 1 << 20;
/// Number of entries beyond which a row is then cut: a thread of a block takes them in one step.
const CUT: i64 = 1024;
/// Largest ratio of the longest row to the mean for which form `rows` serves with analysis: a warp then does
/// not wait long for its longest row.
const EVEN: i64 = 2;

/// Form `balanced`: minimum number of rows and entries of a warp, half a tile. Fewer would take as long, and
/// more blocks would search.
const LEAST_SHARE: u64 = 128;
/// Form `balanced`: entries by which a row may reach beyond its block's end, or half a warp's share if that
/// is more, before blocks divide it: two tiles of one warp cost less than a hand-over between blocks.
const LEAST_OVERHANG: u64 = 512;
/// Maximum number of blocks of form `balanced`, which has a counter for each.
const MOST_BLOCKS: u64 = COUNTERS as u64;

/// Blocks of `balanced` that run at one time on a device, with sums of this type; BALANCED_BLOCKS of
/// kernels/spmv/csr.cu is the same number per multiprocessor.
pub fn balanced_blocks(accumulator: DataType, multiprocessors: u32) -> u64 {
    u64::from(multiprocessors) * if accumulator.size() <= 4 { 4 } else { 3 }
}

/// Way in which rows are distributed over threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// 2^`lanes_log2` lanes take a row, in `blocks` blocks; `items` more blocks take parts of rows of more than
    /// `limit` entries (kernels/spmv/rows.cuh Cuts).
    Rows { lanes_log2: i32, blocks: u32, limit: i32, items: i32 },
    /// A warp takes `share` rows and entries together.
    Balanced { share: i64, overhang: i64, blocks: u32 },
}

impl Form {
    /// Form without analysis.
    pub fn unanalyzed(rows: i64, nnz: i64, most_blocks: u64) -> Self {
        match Form::rows(rows, nnz) {
            Some(form) if nnz <= ONCE_ROWS_ENTRIES => form,
            _ if nnz <= CUT_ENTRIES && nnz / rows.max(1) >= CUT_MEAN => Form::cut(rows, nnz, most_blocks),
            _ => Form::balanced(rows, nnz, most_blocks),
        }
    }

    /// Form for up to [`CUT_ENTRIES`] entries in rows of at least [`CUT_MEAN`], which may have any length.
    fn cut(rows: i64, nnz: i64, most_blocks: u64) -> Self {
        // A block takes a row where the device has room for all of these blocks at one time, else a warp.
        let lanes_log2 = if rows.unsigned_abs() <= 2 * most_blocks { THREADS.ilog2() } else { 5 };
        let blocks = (rows as u32).div_ceil(THREADS >> lanes_log2);
        let items = (nnz as u64).div_ceil(CUT as u64) as i32;
        Form::Rows { lanes_log2: lanes_log2 as i32, blocks, limit: CUT as i32, items }
    }

    /// Form for rows whose longest length is known.
    pub fn analyzed((rows, nnz, longest): (i64, i64, i64), most_blocks: u64) -> Self {
        // longest ≤ EVEN · nnz / rows, or no more than a lane reads at one time.
        let even = i128::from(longest) * i128::from(rows) <= i128::from(EVEN) * i128::from(nnz);
        match Form::rows(rows, nnz) {
            Some(form) if even || longest <= ENTRIES_PER_LANE => form,
            _ => Form::balanced(rows, nnz, most_blocks),
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
        Some(Form::Rows { lanes_log2, blocks, limit: 0, items: 0 })
    }

    pub fn balanced(rows: i64, nnz: i64, most_blocks: u64) -> Self {
        // Arrays of both lengths are in memory, so that the sum is far below 2^63.
        let positions = (rows + nnz).unsigned_abs();
        let warps = most_blocks.min(MOST_BLOCKS) * WARPS;
        let share = positions.div_ceil(warps).max(LEAST_SHARE);
        let overhang = LEAST_OVERHANG.max(share / 2);
        let blocks = positions.div_ceil(share * WARPS) as u32;
        Form::Balanced { share: share as i64, overhang: overhang as i64, blocks }
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
    /// Smallest column index of the row, which lanes of form `rows` know.
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
            Form::Rows { .. } => Origins::Rows,
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

    #[test]
    fn sums_of_doubles_leave_room_for_fewer_blocks() {
        assert_eq!([DataType::R32F, DataType::R64F].map(|sums| balanced_blocks(sums, 132)), [528, 396]);
    }

    #[test]
    fn shares_cover_all_positions() {
        let sizes = [(1, 0), (1, 1), (1000, 3), (62_451, 4_007_383), (1 << 33, 1 << 34), (5, 1 << 40)];
        for (rows, nnz) in sizes {
            let Form::Balanced { share, overhang, blocks } = Form::balanced(rows, nnz, 396) else {
                unreachable!()
            };
            let span = WARPS as i64 * share;
            assert!(i64::from(blocks) * span >= rows + nnz);
            assert!(blocks <= 396 && share as u64 >= LEAST_SHARE);
            // The kernel's rule for split rows relies on this.
            assert!(overhang < span);
        }
        assert!(matches!(Form::balanced(0, 0, 396), Form::Balanced { blocks: 0, .. }));
    }

    #[test]
    fn lanes_follow_the_mean() {
        let lanes = |rows, nnz| match Form::rows(rows, nnz) {
            Some(Form::Rows { lanes_log2, blocks, items: 0, .. }) => (1 << lanes_log2, blocks),
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
        assert!(matches!(Form::analyzed((1000, 27_000, 27), 396), Form::Rows { .. }));
        assert!(matches!(Form::analyzed((116_835, 766_396, 114_190), 396), Form::Balanced { .. }));
        assert!(matches!(Form::unanalyzed(1000, 5000, 396), Form::Rows { .. }));
        assert!(matches!(Form::unanalyzed(10_000, 500_000, 396), Form::Balanced { .. }));
    }

    #[test]
    fn rows_that_are_few_and_long_are_cut() {
        let of = |rows, nnz| match Form::unanalyzed(rows, nnz, 528) {
            Form::Rows { lanes_log2, blocks, limit, items } => (1 << lanes_log2, blocks, limit, items),
            Form::Balanced { .. } => (0, 0, 0, 0),
        };
        // fast0507 and a pruned layer.
        assert_eq!([of(507, 409_349), of(2048, 1 << 20)], [(256, 507, 1024, 400), (32, 256, 1024, 1024)]);
        assert_eq!(of(1, 1 << 20), (256, 1, 1024, 1024));
        assert_eq!([of(2048, (1 << 20) + 1), of(1000, 127_999)], [(0, 0, 0, 0); 2]);
        // A small matrix is not cut.
        assert_eq!(of(10, 1 << 14), (32, 2, 0, 0));
        // Each part of a row has an item and a counter, wherever the row begins.
        for length in (CUT + 1)..20 * CUT {
            assert!((length + 2 * CUT - 1) / (2 * CUT) <= length / CUT);
        }
        assert!(
            CUT_ENTRIES.div_euclid(CUT) <= MOST_BLOCKS as i64
                && CUT_ENTRIES / CUT_MEAN <= i64::from(i32::MAX)
        );
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
        let balanced = Form::balanced(1000, 27_000, 396);
        assert_eq!([rows, balanced].map(|form| Origins::of(form, 1 << 16)), [Origins::Zero; 2]);
        assert_eq!(Origins::of(rows, (1 << 16) + 1), Origins::Rows);
        assert_eq!(Origins::of(balanced, (1 << 16) + 1), Origins::Chunks);
        assert_eq!(Origins::Zero.count(1000, 27_001), 0);
        assert_eq!(Origins::Rows.count(1000, 27_001), 1000);
        assert_eq!(Origins::Chunks.count(1000, 27_001), 844);
    }
}

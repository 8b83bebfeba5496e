//! How SpMV `csr` deals rows out to the threads of a device (kernels/spmv/csr.cu).

use crate::memory::COUNTERS;

/// Threads of a block; kernels/spmv/dot.cuh has the same.
pub const THREADS: u32 = 256;
/// Warps of a block.
pub const WARPS: u64 = 8;

/// `rows`: entries of a row that one lane reads at one time; ROW_UNROLL of
/// kernels/spmv/rows.cuh. A row of mean length takes one step.
const ENTRIES_PER_LANE: i64 = 4;
/// Without analysis `rows` serves matrices up to this many entries: it starts
/// about 2 µs sooner than `balanced`, and if one row has all entries its block
/// takes at most 16 steps of about 1 µs.
const ONCE_ROWS_ENTRIES: i64 = 1 << 14;
/// With analysis `rows` serves matrices whose longest row has at most this many
/// times the mean: a warp then waits for its longest row, not for long.
const EVEN: i64 = 2;

/// `balanced`: rows and entries of a warp, at the least: half a tile. Fewer
/// would take as long, and more blocks would search.
const LEAST_SHARE: u64 = 128;
/// `balanced`: a row may reach over its block's end by this much, or by half a
/// warp's share if that is more, before blocks divide it: two tiles of one warp
/// cost less than a hand-over between blocks.
const LEAST_OVERHANG: u64 = 512;
/// Blocks that `balanced` has counters for.
const MOST_BLOCKS: u64 = COUNTERS as u64;

/// How rows become work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// 2^`lanes_log2` lanes a row.
    Rows { lanes_log2: i32, blocks: u32 },
    /// `share` rows and entries a warp.
    Balanced { share: i64, overhang: i64, blocks: u32 },
}

impl Form {
    /// Without analysis.
    pub fn unanalyzed(rows: i64, nnz: i64, most_blocks: u64) -> Self {
        match Form::rows(rows, nnz) {
            Some(form) if nnz <= ONCE_ROWS_ENTRIES => form,
            _ => Form::balanced(rows, nnz, most_blocks),
        }
    }

    /// With the lengths of the rows.
    pub fn analyzed((rows, nnz, longest): (i64, i64, i64), most_blocks: u64) -> Self {
        // longest ≤ EVEN · nnz / rows, or no more than a lane reads at one time
        let even = i128::from(longest) * i128::from(rows) <= i128::from(EVEN) * i128::from(nnz);
        match Form::rows(rows, nnz) {
            Some(form) if even || longest <= ENTRIES_PER_LANE => form,
            _ => Form::balanced(rows, nnz, most_blocks),
        }
    }

    /// `None` for more rows than a grid has threads for.
    pub fn rows(rows: i64, nnz: i64) -> Option<Self> {
        // The power of two nearest to what gives each lane its entries: measured,
        // both neighbours are slower.
        let lanes = nnz as f64 / rows.max(1) as f64 / ENTRIES_PER_LANE as f64;
        let lanes_log2 = lanes.max(2.0).log2().round().min(5.0) as i32;
        let blocks = rows.unsigned_abs().checked_mul(1 << lanes_log2)?.div_ceil(u64::from(THREADS));
        let blocks = u32::try_from(blocks).ok().filter(|&blocks| blocks <= i32::MAX as u32)?;
        Some(Form::Rows { lanes_log2, blocks })
    }

    pub fn balanced(rows: i64, nnz: i64, most_blocks: u64) -> Self {
        // Arrays of both lengths are in memory: the sum is far below 2^63.
        let positions = (rows + nnz).unsigned_abs();
        let warps = most_blocks.min(MOST_BLOCKS) * WARPS;
        let share = positions.div_ceil(warps).max(LEAST_SHARE);
        let overhang = LEAST_OVERHANG.max(share / 2);
        let blocks = positions.div_ceil(share * WARPS) as u32;
        Form::Balanced { share: share as i64, overhang: overhang as i64, blocks }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
            // What the kernel's rule for split rows relies on.
            assert!(overhang < span);
        }
        assert!(matches!(Form::balanced(0, 0, 396), Form::Balanced { blocks: 0, .. }));
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
        assert!(matches!(Form::analyzed((1000, 27_000, 27), 396), Form::Rows { .. }));
        assert!(matches!(Form::analyzed((116_835, 766_396, 114_190), 396), Form::Balanced { .. }));
        assert!(matches!(Form::unanalyzed(1000, 5000, 396), Form::Rows { .. }));
        assert!(matches!(Form::unanalyzed(1000, 500_000, 396), Form::Balanced { .. }));
    }
}

//! Limits by which the rows of a product of SpGEMM `hash` are put into bins, each of which is processed by
//! one launch (kernels/spgemm/rows.cu sorts the rows, and src/backend/cuda/spgemm/bins.rs lists the kinds of
//! bins).

/// Widest column range of a group of rows, which 16 bits can number; kernels/spgemm/rows.cu has the same
/// constant.
pub const GROUP_SPAN: i64 = 1 << 16;
/// Groups of rows end at multiples of this number; kernels/spgemm/same_pattern.cu has the same constant.
pub const GROUP_CUT: usize = 48;
/// Maximum number of rows that are put into bins in one pass: each bin then has room for every row, 3 MB in
/// all.
const FEW_ROWS: i64 = 1 << 15;

/// Slots of each bin in a list of `rows` rows, so that bins need not be counted first; 0 if each bin gets as
/// many slots as it has rows.
pub fn stride(rows: i64) -> i64 {
    if rows <= FEW_ROWS {
        rows
    } else {
        0
    }
}

/// Limits by which rows are put into the bins of each kind, and the number of bins used of each kind.
/// kernels/spgemm/rows.cu has the same structure.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Bins {
    pub limits: [i64; 6],
    pub count: i64,
    pub few: i64,
    pub medium: i64,
    pub group_limits: [i64; 5],
    pub groups: i64,
    pub value: i64,
    pub tiny: i64,
    pub shifted_run_limits: [i64; 5],
    pub shifted_runs: i64,
    pub block_limits: [i64; 2],
    pub blocks: i64,
}

/// Products of a row that a warp holds in its lanes at once.
const TINY: i64 = 32;

/// Returns whether the right factor has so many columns that blocks with a bitmap would go through many
/// windows of them.
pub fn is_far(cols: i64) -> bool {
    // With more columns, the tables of blocks have no bits for a slot beside a column.
    cols > 1 << 19 && cols < 1 << 47
}

impl Bins {
    /// Bins of the symbolic phase: rows by products, which bound their entries, and groups by their column
    /// range. A warp's table for more than 1024 would leave a multiprocessor of an H100 fewer than 28 warps.
    /// `distinct` says that each row of the right factor has distinct columns, so that teams take the rows
    /// with tables.
    ///
    /// `far` says that the right factor has so many columns that blocks with a bitmap would go through many
    /// windows; a block then has one table if possible, or else more threads.
    pub const fn symbolic(distinct: bool, far: bool) -> Bins {
        Bins {
            limits: [TINY, 128, 512, 1024, 0, 0],
            count: 4,
            few: if far { 512 } else { 1024 },
            medium: if far { 1 << 13 } else { 1 << 14 },
            group_limits: [1 << 11, 1 << 14, GROUP_SPAN, 0, 0],
            groups: 3,
            value: 0,
            tiny: if distinct { 0 } else { TINY },
            shifted_run_limits: [0; 5],
            shifted_runs: 0,
            block_limits: [2048, 8192],
            blocks: if far { 2 } else { 0 },
        }
    }

    /// Bins of the numeric phase: rows by entries of C with values of `value` bytes, and groups by bytes of
    /// shared memory, of which the largest leave a multiprocessor of an H100 eight warps. A single warp is
    /// too slow for more than `few` products whatever number of entries they add up to, and small blocks for
    /// more than `medium`.
    pub const fn numeric(distinct: bool, key: usize, value: usize, far: bool) -> Bins {
        Bins {
            limits: [if distinct { 16 } else { 0 }, 32, 64, 128, 256, 512],
            count: 6,
            few: 1 << 15,
            medium: if far { 1 << 12 } else { 1 << 16 },
            group_limits: [4 << 10, 6 << 10, 9 << 10, 14 << 10, 27 << 10],
            groups: 5,
            value: value as i64,
            tiny: if distinct { 0 } else { TINY },
            shifted_run_limits: [16, 32, 64, 128, 256],
            shifted_runs: 5,
            // Shared memory limits these tables for values of 16 bytes and for keys of 8.
            block_limits: [1024, if key + value <= 12 { 4096 } else { 2048 }],
            blocks: if far { 2 } else { 0 },
        }
    }

    /// Returns whether teams of lanes take the rows of the small bins.
    pub fn by_teams(&self) -> bool {
        self.tiny == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bins for all combinations of parameters.
    fn all() -> impl Iterator<Item = Bins> {
        let flags = || [false, true].into_iter();
        let pairs = move || flags().flat_map(move |distinct| flags().map(move |far| (distinct, far)));
        let sizes = || [4, 8].into_iter().flat_map(|key| [4, 8, 16].map(|value| (key, value)));
        let symbolic = pairs().map(|(distinct, far)| Bins::symbolic(distinct, far));
        let numeric =
            move |(distinct, far)| sizes().map(move |(key, value)| Bins::numeric(distinct, key, value, far));
        symbolic.chain(pairs().flat_map(numeric))
    }

    #[test]
    fn limits_ascend() {
        let ascends =
            |limits: &[i64], used: i64| limits[..used as usize].windows(2).all(|two| two[0] < two[1]);
        for bins in all() {
            assert!(
                ascends(&bins.limits, bins.count) && ascends(&bins.group_limits, bins.groups),
                "{bins:?}"
            );
            assert!(
                ascends(&bins.shifted_run_limits, bins.shifted_runs)
                    && ascends(&bins.block_limits, bins.blocks)
            );
            assert!(bins.few <= bins.medium || bins.blocks > 0, "{bins:?}");
            // Either teams take the rows with tables, or warps that hold all products of a short row in their
            // lanes.
            assert_eq!(bins.by_teams(), bins.tiny == 0);
        }
        assert!(all().any(|bins| bins.by_teams()) && all().any(|bins| !bins.by_teams()));
    }

    #[test]
    fn few_rows_have_a_place_in_each_bin() {
        assert_eq!([0, 1, 1 << 15, (1 << 15) + 1].map(stride), [0, 1, 1 << 15, 0]);
    }

    #[test]
    fn far_columns_have_blocks_with_one_table() {
        assert_eq!([1 << 19, (1 << 19) + 1, (1 << 47) - 1, 1 << 47].map(is_far), [false, true, true, false]);
        let (near, far) = (Bins::symbolic(true, false), Bins::symbolic(true, true));
        assert_eq!((near.blocks, near.few, far.blocks, far.few), (0, 1024, 2, 512));
        // Shared memory has room for fewer large values, or keys.
        let most = |key, value| Bins::numeric(true, key, value, true).block_limits[1];
        assert_eq!(
            [most(4, 8), most(4, 4), most(4, 16), most(8, 8), most(8, 4)],
            [4096, 4096, 2048, 2048, 4096]
        );
    }
}

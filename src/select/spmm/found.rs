//! Distribution of the rows of a small matrix for SpMM `row` without analysis, where blocks find the longer rows
//! (kernels/spmm/row.cuh find_rows).

use super::row::{UNANALYZED_SUMS, WARPS};

/// Maximum number of entries, and of rows, of a matrix for which a product without analysis needs no lists: its
/// blocks find the longer rows themselves. What they search grows with the entries, and to list rows costs
/// two more launches.
const FOUND: i64 = 1 << 18;
/// Number of entries that a group of lanes should take one after another at most: with four in flight this is
/// a chain of twelve waits for L2, about as long as the rest of a small product.
const CHAIN: i64 = 48;

/// Distribution of the rows of a small matrix without lists: a group, or `spread` of them, takes a row of up to
/// `run_limit` entries, a warp one of up to `warp_limit`, and blocks take parts of longer ones
/// (kernels/spmm/row.cuh find_rows).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    rows: i64,
    nnz: i64,
    /// Smallest `warp_limit`.
    least: i64,
    /// Number of warps that make half of the device busy.
    busy: i64,
}

/// [`Found`] for a kernel with so many groups a warp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FoundLimits {
    pub run_limit: i64,
    pub warp_limit: i64,
    pub part_limit: i64,
    /// Number of warps and of blocks that search.
    pub warps: i64,
    pub parts: i64,
}

impl Found {
    /// Distribution for a matrix of this size and rows of C whose sums take `row_bytes`; `None` if it needs
    /// lists.
    pub fn new(rows: i64, nnz: i64, row_bytes: i64, multiprocessors: i64) -> Option<Self> {
        let sums = (nnz as f64 / UNANALYZED_SUMS as f64 * row_bytes as f64).ceil() as i64;
        // A group that is a whole warp takes two chains: more items would search than multiply.
        let (least, busy) = ((2 * CHAIN).max(sums), multiprocessors * 16);
        (rows <= FOUND && nnz <= FOUND).then_some(Found { rows, nnz, least, busy })
    }

    /// Maximum number of partial sums, and of counters.
    pub fn slots(&self) -> i64 {
        self.items(self.least)
    }

    /// Number of items that find the rows of more than `limit` entries.
    fn items(&self, limit: i64) -> i64 {
        self.nnz.unsigned_abs().div_ceil(limit.unsigned_abs()) as i64
    }

    /// Limits for a launch of so many tiles, by a kernel with `groups` groups a warp, `spread` of which share a
    /// row.
    pub fn limits(&self, groups: i64, spread: i64, tiles: i64) -> FoundLimits {
        let mean = self.nnz / self.rows.max(1);
        // Rows of about the mean length are not searched for, unless they are long and few.
        let is_busy = (self.rows * spread / groups).saturating_mul(tiles) >= self.busy;
        let run_limit = (CHAIN * spread).max(if is_busy { 2 * mean } else { mean / 2 });
        let warp_limit = (CHAIN * groups).max(run_limit).max(self.least);
        // A whole warp has no warp's rows beside its own.
        let run_limit = if spread == groups { warp_limit } else { run_limit };
        FoundLimits {
            run_limit,
            warp_limit,
            part_limit: WARPS * warp_limit,
            warps: if run_limit < warp_limit { self.items(run_limit) } else { 0 },
            parts: self.items(warp_limit),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::COUNTER_BYTES;

    #[test]
    fn longer_rows_of_small_matrices_are_found() {
        let of = |rows, nnz| Found::new(rows, nnz, 128, 132);
        assert!(of(FOUND + 1, 10).is_none() && of(10, FOUND + 1).is_none() && of(0, 0).is_some());
        // bayer10, with groups of 8 lanes: groups, warps and blocks have chains of one length.
        let bayer10 = of(13_436, 94_926).unwrap().limits(4, 1, 1);
        assert_eq!((bayer10.run_limit, bayer10.warp_limit, bayer10.part_limit), (48, 192, 768));
        assert_eq!((bayer10.warps, bayer10.parts), (1978, 495));
        // Groups of a warp, and groups that share a row, leave nothing to warps.
        assert_eq!(
            [(1, 1), (4, 4)]
                .map(|(groups, spread)| of(3136, 144_848).unwrap().limits(groups, spread, 1).warps),
            [0; 2]
        );
        // Rows of nearly one length that fill the device; longer ones that do not.
        assert_eq!(of(3000, 240_000).unwrap().limits(1, 1, 1).run_limit, 160);
        assert_eq!(of(512, 209_715).unwrap().limits(1, 1, 1).run_limit, 204);
        for nnz in [0, 1, 47, 48, 49, 1 << 16, FOUND] {
            for (rows, row_bytes) in [(1, 4), (100, 1 << 15), (FOUND, 1 << 20)] {
                let found = Found::new(rows, nnz, row_bytes, 132).unwrap();
                assert!((found.slots() - 1) * row_bytes <= UNANALYZED_SUMS);
                assert!(found.slots() <= (COUNTER_BYTES / 4) as i64 - 8);
                for (groups, spread, tiles) in [(1, 1, 1), (4, 1, 3), (8, 8, 1), (8, 2, 65_535)] {
                    let limits = found.limits(groups, spread, tiles);
                    assert!(limits.parts <= found.slots() && limits.run_limit <= limits.warp_limit);
                    // A row of every length has an item for each part, and counters for all of them.
                    for length in (limits.warp_limit + 1..).step_by(37).take(2000) {
                        let parts = (length + limits.part_limit - 1) / limits.part_limit;
                        let counters = if parts > 1 { (parts + 15) / 16 + 1 } else { 0 };
                        assert!(parts.max(counters) <= length / limits.warp_limit);
                    }
                }
            }
        }
    }
}

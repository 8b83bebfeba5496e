//! Choice of the kernels of SpMM `swift` for a number of columns of C on a device (kernels/spmm/swift.cuh,
//! kernels/spmm/swift_bands.cuh).

use crate::format::swift::LANES;

/// Index of the group for `n` columns, given the columns that each group takes, in ascending order: the
/// smallest group that takes all `n`, or the largest.
pub fn group_of(columns: impl ExactSizeIterator<Item = usize>, n: usize) -> usize {
    let last = columns.len() - 1;
    columns.enumerate().find(|&(_, of_group)| of_group >= n).map_or(last, |(at, _)| at)
}

/// Returns whether lanes of bands read `n` columns in packs of `pack` elements, where rows of B and C begin
/// with packs (`are_aligned`). With fewer columns some lanes would have none.
pub fn bands_have_packs(n: usize, pack: usize, are_aligned: bool) -> bool {
    n > LANES && n % pack == 0 && are_aligned
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_group_that_has_all_columns_takes_them() {
        // Groups of 8, 16 and 32 lanes with packs of four.
        let group = |n| group_of([32, 64, 128].into_iter(), n);
        assert_eq!([1, 32, 33, 64, 65, 128, 129, 4096].map(group), [0, 0, 1, 1, 2, 2, 2, 2]);
    }

    #[test]
    fn bands_have_packs_where_all_lanes_have_columns() {
        let packs = |n| bands_have_packs(n, 4, true);
        assert_eq!([LANES, LANES + 2, LANES + 4, 128].map(packs), [false, false, true, true]);
        assert!(!bands_have_packs(128, 4, false));
    }
}

//! Number of tiles along the columns of C that one launch of an SpMM kernel takes.

use crate::memory::COUNTER_BYTES;

/// Maximum number of tiles, which are blocks of a grid along y.
pub const MOST: usize = 65535;
/// Number of counters that a handle lends to a launch.
pub const COUNTERS: usize = COUNTER_BYTES / size_of::<u32>();

/// Maximum number of tiles of one launch, out of `counters`, if each tile has a counter for each of `cut`
/// split windows, row blocks or rows.
pub fn at_once(cut: usize, counters: usize) -> usize {
    match cut {
        0 => MOST,
        cut => (counters / cut).clamp(1, MOST),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_have_their_counters() {
        let at_once = |cut| at_once(cut, COUNTERS);
        assert_eq!([0, 1, 4, 5].map(at_once), [MOST, MOST, MOST, COUNTERS / 5]);
        assert_eq!([COUNTERS / 2, COUNTERS, COUNTERS + 1, usize::MAX].map(at_once), [2, 1, 1, 1]);
    }
}

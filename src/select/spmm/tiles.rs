//! How many tiles along the columns of C one launch of a kernel of SpMM takes.

use crate::memory::COUNTER_BYTES;

/// Tiles at the most: blocks of a grid along y.
pub const MOST: usize = 65535;
/// Counters that a handle lends to a launch.
pub const COUNTERS: usize = COUNTER_BYTES / size_of::<u32>();

/// Tiles of one launch where each has a counter for each of so many cut windows, row blocks or rows, of so many
/// counters.
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

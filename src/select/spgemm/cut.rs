//! Whether SpGEMM `hash` cuts the long rows of the left factor into parts (src/backend/cuda/spgemm/cut.rs).

/// How rows of the left factor are cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// Entries of the longest row that is not cut.
    pub longest: i64,
    /// Entries of a part of one that is.
    pub part: i64,
}

/// Rows of more entries than this are cut, where any are.
const LONGEST: i64 = 512;
/// Entries of a part.
const PART: i64 = 128;
/// Microseconds that both phases take for each entry of the longest row, which are taken one after the other: 0.6 to
/// 2.4 on an H100 over the 28 real matrices.
const ENTRY_OF_LONGEST: f64 = 1.0;
/// Microseconds of the launches and waits of a second product, of copying an entry of a factor, and of a multiplication
/// of long rows, whose results are written and read once more.
const SECOND: f64 = 200.0;
const COPIED: f64 = 3e-5;
const ADDED: f64 = 5e-5;

impl Cut {
    /// For factors of so many entries, with so many in the longest row of the left one, which has so many rows of more
    /// than 256 and of more than 2,048; rows of the right one have so many in the mean. `None`: rows are taken whole.
    pub fn new(
        entries: [i64; 2],
        left_longest: i64,
        [long, longer]: [i64; 2],
        right_mean: f64,
    ) -> Option<Self> {
        let saved = ENTRY_OF_LONGEST * (left_longest - LONGEST) as f64;
        // Rows of more than 256 entries have some 700 in the mean.
        let in_long_rows = longer as f64 * left_longest as f64 + (long - longer) as f64 * 700.0;
        let copied = COPIED * (entries[0] + entries[1]) as f64;
        let cost = SECOND + copied + ADDED * in_long_rows.min(entries[0] as f64) * right_mean;
        (saved > cost).then_some(Cut { longest: LONGEST, part: PART })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_cut_where_the_longest_takes_longer_than_a_second_product() {
        let cut = Some(Cut { longest: LONGEST, part: PART });
        // 18 × 93,261 with 31,000 entries in a row, times its transpose; 507 × 63,009; a pruned layer; a mesh.
        assert_eq!(Cut::new([558_985; 2], 31_000, [18, 18], 6.0), cut);
        assert_eq!(Cut::new([409_349; 2], 7_800, [300, 30], 6.5), cut);
        assert_eq!(Cut::new([1 << 20; 2], 600, [2048, 0], 512.0), None);
        assert_eq!(Cut::new([4_000_000; 2], 81, [0; 2], 64.0), None);
        // Rows are no shorter than what is cut.
        assert_eq!(Cut::new([LONGEST; 2], LONGEST, [1, 0], 1.0), None);
    }
}

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

/// What the choice goes by.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Lengths {
    /// Entries of the left and of the right factor.
    pub entries: [i64; 2],
    /// Entries of the left factor's longest row.
    pub longest: i64,
    /// Its rows of more than 256 entries, and of more than 2,048.
    pub long: [i64; 2],
    /// Entries of a row of the right factor in the mean.
    pub right_mean: f64,
    /// Columns of the product.
    pub cols: i64,
}

/// Columns of the product for each multiplication of a row up to which warps take the row, a window of its columns each
/// (kernels/spgemm/wide.cu). Blocks that take other long rows are not in need of parts: webbase's rows of 4,700 entries
/// took 1,048 µs in all, and 2,046 in parts.
const WIDE_RANGE: f64 = 4.0;

impl Cut {
    /// `None`: rows are taken whole.
    pub fn new(lengths: &Lengths) -> Option<Self> {
        let Lengths { entries, longest, long: [long, longer], right_mean, cols } = *lengths;
        let is_wide = longest as f64 * right_mean * WIDE_RANGE >= cols as f64;
        let saved = ENTRY_OF_LONGEST * (longest - LONGEST) as f64;
        // Rows of more than 256 entries have some 700 in the mean.
        let in_long_rows = longer as f64 * longest as f64 + (long - longer) as f64 * 700.0;
        let copied = COPIED * (entries[0] + entries[1]) as f64;
        let cost = SECOND + copied + ADDED * in_long_rows.min(entries[0] as f64) * right_mean;
        (is_wide && saved > cost).then_some(Cut { longest: LONGEST, part: PART })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_cut_where_the_longest_takes_longer_than_a_second_product() {
        let cut = Some(Cut { longest: LONGEST, part: PART });
        let of = |entries, longest, long, right_mean, cols| {
            Cut::new(&Lengths { entries: [entries; 2], longest, long, right_mean, cols })
        };
        // 18 × 93,261 with 31,000 entries in a row, times its transpose; 507 × 63,009; a circuit.
        assert_eq!(of(558_985, 31_000, [18, 18], 6.0, 18), cut);
        assert_eq!(of(409_349, 7_800, [300, 30], 6.5, 507), cut);
        assert_eq!(of(43_250, 3_469, [8, 1], 6.3, 6_833), cut);
        // A pruned layer; a mesh; the web, whose rows have few products for so many columns.
        assert_eq!(of(1 << 20, 600, [2048, 0], 512.0, 1024), None);
        assert_eq!(of(4_000_000, 81, [0; 2], 64.0, 62_451), None);
        assert_eq!(of(3_105_536, 4_700, [100, 28], 3.1, 1_000_005), None);
        // Rows are no shorter than what is cut.
        assert_eq!(of(LONGEST, LONGEST, [1, 0], 1.0, 1), None);
    }
}

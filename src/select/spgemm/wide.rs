//! Decisions on the wide rows of SpGEMM `hash`, which warps take by windows of columns
//! (kernels/spgemm/dense_windows.cu): whether the data that this keeps of the right factor are worth their
//! memory, and which rows are split, so that several warps share a window.

/// Limits for splitting rows of the left factor with very many entries; the kernels' `Cut`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// Entries of the longest row that is not split.
    pub longest: i64,
    /// Entries of a part of a split row.
    pub part: i64,
}

/// Number of entries up to which a row is never split: a warp takes 32 of them in about a microsecond.
const LONGEST: i64 = 256;
/// Number of windows that an H100 processes at one time, 24 on each multiprocessor. It does not follow the
/// device in use: how rows are split determines the bits of sums, which are the same on all devices.
const AT_ONCE: i64 = 132 * 24;

impl Cut {
    /// Limits by which no row is split.
    pub const NONE: Cut = Cut { longest: i64::MAX, part: i64::MAX };

    /// Limits for a left factor with `in_long_rows` entries in long rows and `longest` in the longest one,
    /// and a right factor of `windows` windows of columns. A row is split if it takes more than twice as long
    /// as all long rows together take on the whole device.
    pub fn new(in_long_rows: i64, longest: i64, windows: i64) -> Cut {
        let limit = LONGEST.max(in_long_rows.saturating_mul(windows) / AT_ONCE * 2);
        match longest > limit {
            true => Cut { longest: limit, part: limit / 64 * 32 },
            false => Cut::NONE,
        }
    }
}

/// Estimated entries in the long rows of a factor, given its entries, its rows of more than 256 and of more
/// than 2,048 entries, and the entries of the longest row.
pub fn in_long_rows(entries: i64, [long, longer]: [i64; 2], longest: i64) -> i64 {
    // Rows of 257 to 2,048 entries are assumed to have 700 in the mean.
    let of_longer = longer.saturating_mul(longest);
    (long - longer).saturating_mul(700).saturating_add(of_longer).min(entries)
}

/// Bytes per entry of the right factor that the starts of its windows may take: about as much as the factor
/// itself. The bits of its rows may take as much again.
const BYTES_AN_ENTRY: i64 = 16;
/// Bytes that each of these arrays may take in any case.
const LEAST_BYTES: i64 = 1 << 20;

/// Maximum number of bytes of an array with elements for each row of the right factor.
fn budget(entries: i64) -> i64 {
    entries.saturating_mul(BYTES_AN_ENTRY).max(LEAST_BYTES)
}

/// Returns whether the starts of all windows in each row of the right factor, and the rows' ends, are worth
/// their memory.
pub fn starts_pay((rows, windows): (i64, i64), entries: i64) -> bool {
    (windows + 1).saturating_mul(rows).saturating_mul(4) <= budget(entries)
}

/// Returns whether the bits of the right factor, one for each column of each window, are worth their memory
/// in `words`.
pub fn bits_pay(words: i64, entries: i64) -> bool {
    words.saturating_mul(4) <= budget(entries)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_cut_that_are_longer_than_all_others_together() {
        let cut = |longest, part| Cut { longest, part };
        // 18 × 93,261 with 31,000 entries in a row, times its transpose; 507 × 63,009; a circuit of 6,833
        // columns.
        assert_eq!(Cut::new(in_long_rows(558_985, [18, 18], 31_000), 31_000, 1), cut(352, 160));
        assert_eq!(Cut::new(in_long_rows(409_349, [300, 30], 7_800), 7_800, 1), cut(258, 128));
        assert_eq!(Cut::new(in_long_rows(43_250, [8, 0], 1_442), 1_442, 7), cut(256, 128));
        // A pruned layer, and rows at and just above the limit.
        assert_eq!(Cut::new(in_long_rows(3_355_041, [4096, 0], 900), 900, 4), Cut::NONE);
        assert_eq!([Cut::new(0, 256, 1), Cut::new(0, 257, 1)], [Cut::NONE, cut(256, 128)]);
        assert_eq!(Cut::new(i64::MAX, i64::MAX - 1, i64::MAX).part % 32, 0);
    }

    #[test]
    fn what_is_kept_takes_no_more_than_the_factor_or_a_megabyte() {
        // 977 windows of a million columns: small factors; webbase, with three entries a row; 1,000 entries a
        // row.
        assert!(starts_pay((268, 977), 0) && !starts_pay((269, 977), 0));
        assert!(!starts_pay((1_000_005, 977), 3_105_536) && starts_pay((1_000_005, 977), 1_000_000_000));
        assert!(!starts_pay((i64::MAX / 2, 977), i64::MAX / 32) && !bits_pay(i64::MAX, 1000));
        assert!(bits_pay(1 << 18, 0) && !bits_pay((1 << 18) + 1, 0) && bits_pay(4 << 20, 1 << 20));
    }
}

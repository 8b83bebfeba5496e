//! Whether warps take the wide rows of SpGEMM `hash` by windows of columns (kernels/spgemm/wide.cu): what is kept of the
//! right factor for that must be worth its memory. And which of these rows are cut into parts, so that several warps take
//! a window.

/// Rows of very many entries of the left factor in parts; the kernels' `Cut`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// Entries of the longest row that is not cut.
    pub longest: i64,
    /// Entries of a part of one that is.
    pub part: i64,
}

/// Entries of a row that is cut, at the least: a warp takes 32 of them in about a microsecond.
const LONGEST: i64 = 256;
/// Windows that an H100 takes at one time, 24 on each multiprocessor. Not of the device in use: how rows are cut decides
/// on the bits of sums, and these are the same on all devices.
const AT_ONCE: i64 = 132 * 24;

impl Cut {
    /// Rows are whole.
    pub const NONE: Cut = Cut { longest: i64::MAX, part: i64::MAX };

    /// For a left factor with so many entries in long rows, of which the longest has so many, and a right factor of so
    /// many windows of columns: a row is cut where it takes longer than twice as long as all long rows together.
    pub fn new(in_long_rows: i64, longest: i64, windows: i64) -> Cut {
        let limit = LONGEST.max(in_long_rows.saturating_mul(windows) / AT_ONCE * 2);
        match longest > limit {
            true => Cut { longest: limit, part: limit / 64 * 32 },
            false => Cut::NONE,
        }
    }
}

/// Entries of the long rows of a factor, about, with so many entries, rows of more than 256 entries, rows of more than
/// 2,048, and entries of the longest row.
pub fn in_long_rows(entries: i64, [long, longer]: [i64; 2], longest: i64) -> i64 {
    // Rows of more than 256 entries have some 700 in the mean.
    let of_longer = longer.saturating_mul(longest);
    (long - longer).saturating_mul(700).saturating_add(of_longer).min(entries)
}

/// Bytes an entry of the right factor that the starts of its windows may take:
/// about what the factor takes itself. The bits of its rows may take as much.
const BYTES_AN_ENTRY: i64 = 16;
/// Bytes that they may take in any case.
const LEAST_BYTES: i64 = 1 << 20;

/// Bytes that an array with elements for each row of the right factor may take.
fn budget(entries: i64) -> i64 {
    entries.saturating_mul(BYTES_AN_ENTRY).max(LEAST_BYTES)
}

/// Whether the starts of so many windows in each of so many rows of the right factor, and the end, are worth their
/// memory.
pub fn starts_pay((rows, windows): (i64, i64), entries: i64) -> bool {
    (windows + 1).saturating_mul(rows).saturating_mul(4) <= budget(entries)
}

/// The same of so many words of bits, a bit for each column of each window.
pub fn bits_pay(words: i64, entries: i64) -> bool {
    words.saturating_mul(4) <= budget(entries)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_cut_that_are_longer_than_all_others_together() {
        let cut = |longest, part| Cut { longest, part };
        // 18 × 93,261 with 31,000 entries in a row, times its transpose; 507 × 63,009; a circuit of 6,833 columns.
        assert_eq!(Cut::new(in_long_rows(558_985, [18, 18], 31_000), 31_000, 1), cut(352, 160));
        assert_eq!(Cut::new(in_long_rows(409_349, [300, 30], 7_800), 7_800, 1), cut(258, 128));
        assert_eq!(Cut::new(in_long_rows(43_250, [8, 0], 1_442), 1_442, 7), cut(256, 128));
        // A pruned layer, and rows just as long as the limit.
        assert_eq!(Cut::new(in_long_rows(3_355_041, [4096, 0], 900), 900, 4), Cut::NONE);
        assert_eq!([Cut::new(0, 256, 1), Cut::new(0, 257, 1)], [Cut::NONE, cut(256, 128)]);
        assert_eq!(Cut::new(i64::MAX, i64::MAX - 1, i64::MAX).part % 32, 0);
    }

    #[test]
    fn what_is_kept_takes_no_more_than_the_factor_or_a_megabyte() {
        // 977 windows of a million columns: small factors; webbase, with three entries a row; 1,000 a row.
        assert!(starts_pay((268, 977), 0) && !starts_pay((269, 977), 0));
        assert!(!starts_pay((1_000_005, 977), 3_105_536) && starts_pay((1_000_005, 977), 1_000_000_000));
        assert!(!starts_pay((i64::MAX / 2, 977), i64::MAX / 32) && !bits_pay(i64::MAX, 1000));
        assert!(bits_pay(1 << 18, 0) && !bits_pay((1 << 18) + 1, 0) && bits_pay(4 << 20, 1 << 20));
    }
}

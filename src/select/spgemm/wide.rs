//! Whether warps take the wide rows of SpGEMM `hash` by windows of columns (kernels/spgemm/wide.cu): what is kept of the
//! right factor for that must be worth its memory.

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
    fn what_is_kept_takes_no_more_than_the_factor_or_a_megabyte() {
        // 977 windows of a million columns: small factors; webbase, with three entries a row; 1,000 a row.
        assert!(starts_pay((268, 977), 0) && !starts_pay((269, 977), 0));
        assert!(!starts_pay((1_000_005, 977), 3_105_536) && starts_pay((1_000_005, 977), 1_000_000_000));
        assert!(!starts_pay((i64::MAX / 2, 977), i64::MAX / 32) && !bits_pay(i64::MAX, 1000));
        assert!(bits_pay(1 << 18, 0) && !bits_pay((1 << 18) + 1, 0) && bits_pay(4 << 20, 1 << 20));
    }
}

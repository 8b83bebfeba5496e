//! When SpMV `sell` keeps x of hot columns in shared memory (src/format/hot_sell.rs).

use crate::format::hot_sell::Rules;

/// For the matrices that this is for, which have slices enough for all multiprocessors.
pub const RULES: Rules = Rules { entries: 32, limit: 1024 };

/// When it pays. Measured on an H100; other devices with less of a gap between the rates of L2 and
/// of shared memory have not been.
#[derive(Clone, Copy, Debug)]
pub struct Demands {
    /// Entries: fewer do not pay for collecting and copying x of the hot columns (webbase, 2.9 million, 26 %
    /// of them hot: fp64 31.9 µs without, 45.9 with).
    pub entries: i64,
    /// Bytes of x: smaller ones come from L2 and L1 fast enough (uniform, fp64, 1.6 MB: 34.4 µs without, 36.7 with).
    pub x_bytes: i64,
    /// Share of the entries that hot columns have.
    pub share: f64,
    /// Hot columns at the most, besides what shared memory has room for.
    pub most: usize,
    /// How rows become slices.
    pub rules: Rules,
}

impl Demands {
    /// Whether a matrix of so many entries, whose x has so many elements of so many bytes, is large enough.
    pub fn has_size(&self, entries: i64, (elements, size): (i64, usize)) -> bool {
        entries >= self.entries && elements.saturating_mul(size as i64) >= self.x_bytes
    }

    /// Hot columns at the most, whose x of elements of `size` bytes has so many bytes of shared memory, with the zero
    /// behind it.
    pub fn most_columns(&self, bytes: usize, size: usize) -> usize {
        (bytes / size).saturating_sub(1).min(self.most)
    }
}

/// Of so many entries analysis looks at one first, to see how many are in hot columns.
pub const SAMPLE: i64 = 16;

pub const DEMANDS: Demands =
    Demands { entries: 4_000_000, x_bytes: 2_000_000, share: 0.4, most: usize::MAX, rules: RULES };

/// Bytes of a multiprocessor's shared memory that x of the hot columns has, of so many. Loads under way need L1, which is
/// what shared memory leaves: all of it for hot columns took 107 µs on rmat20 in fp64, three quarters 94, half 100.
pub fn hot_bytes(shared_bytes: usize) -> usize {
    shared_bytes / 64 * 48
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_matrices_and_small_x_have_no_hot_columns() {
        // webbase and uniform, of the comments above; rmat20 in fp64 and in fp16.
        assert!(!DEMANDS.has_size(2_930_000, (1_000_000, 8)));
        assert!(!DEMANDS.has_size(3_200_000, (200_000, 8)) && !DEMANDS.has_size(30_000_000, (200_000, 8)));
        assert!(DEMANDS.has_size(8_000_000, (1 << 20, 8)) && DEMANDS.has_size(8_000_000, (1 << 20, 2)));
        assert!(DEMANDS.has_size(4_000_000, (1_000_000, 2)) && !DEMANDS.has_size(4_000_000, (999_999, 2)));
        assert!(DEMANDS.has_size(i64::MAX, (i64::MAX, 16)));
    }

    #[test]
    fn hot_columns_leave_a_quarter_of_shared_memory_and_one_place() {
        let bytes = hot_bytes(227 << 10);
        assert_eq!(bytes, (227 << 10) / 4 * 3);
        assert_eq!([8, 2].map(|size| DEMANDS.most_columns(bytes, size)), [21_791, 87_167]);
        assert_eq!(Demands { most: 100, ..DEMANDS }.most_columns(bytes, 8), 100);
        assert_eq!(DEMANDS.most_columns(0, 8), 0);
    }
}

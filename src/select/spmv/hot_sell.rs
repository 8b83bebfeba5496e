//! Decision whether SpMV `sell` keeps x of hot columns in shared memory (src/format/hot_sell.rs).

use crate::format::hot_sell::Rules;

/// Rules for the matrices that hot columns are for, which have enough slices for all multiprocessors.
pub const RULES: Rules = Rules { entries: 32, limit: 1024 };

/// Conditions under which hot columns pay, measured on an H100. Devices with a smaller gap between the rates
/// of L2 and of shared memory have not been measured.
#[derive(Clone, Copy, Debug)]
pub struct Demands {
    /// Minimum number of entries: fewer do not pay for collecting and copying x of the hot columns (webbase,
    /// 2.9 million, 26 % of them hot: fp64 31.9 µs without, 45.9 with).
    pub entries: i64,
    /// Minimum number of bytes of x: a smaller x comes from L2 and L1 fast enough (uniform, fp64, 1.6 MB:
    /// 34.4 µs without, 36.7 with).
    pub x_bytes: i64,
    /// Minimum share of the entries that hot columns have.
    pub share: f64,
    /// Maximum number of hot columns, if shared memory has room for more.
    pub most: usize,
    /// Rules by which rows become slices.
    pub rules: Rules,
}

impl Demands {
    /// Returns whether a matrix is large enough, given its entries, and the number and size of the elements
    /// of x.
    pub fn has_size(&self, entries: i64, (elements, size): (i64, usize)) -> bool {
        entries >= self.entries && elements.saturating_mul(size as i64) >= self.x_bytes
    }

    /// Maximum number of hot columns if their x, with elements of `size` bytes and a zero behind it, has this
    /// many bytes of shared memory.
    pub fn most_columns(&self, bytes: usize, size: usize) -> usize {
        (bytes / size).saturating_sub(1).min(self.most)
    }
}

/// Sampling step by which analysis first estimates how many entries are in hot columns: one of so many is
/// counted.
pub const SAMPLE: i64 = 16;

pub const DEMANDS: Demands =
    Demands { entries: 4_000_000, x_bytes: 2_000_000, share: 0.4, most: usize::MAX, rules: RULES };

/// Bytes of a multiprocessor's shared memory that hold x of the hot columns. Loads in flight need L1, which
/// is what shared memory leaves: using all of it took 107 µs on rmat20 in fp64, three quarters 94, half 100.
pub fn hot_bytes(shared_bytes: usize) -> usize {
    shared_bytes / 64 * 48
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_matrices_and_small_x_have_no_hot_columns() {
        // webbase and uniform from the comments above; rmat20 in fp64 and in fp16.
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

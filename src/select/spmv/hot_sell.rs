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

pub const DEMANDS: Demands =
    Demands { entries: 4_000_000, x_bytes: 2_000_000, share: 0.4, most: usize::MAX, rules: RULES };

/// Bytes of a multiprocessor's shared memory that x of the hot columns has, of so many. Loads under way need L1, which is
/// what shared memory leaves: all of it for hot columns took 107 µs on rmat20 in fp64, three quarters 94, half 100.
pub fn hot_bytes(shared_bytes: usize) -> usize {
    shared_bytes / 64 * 48
}

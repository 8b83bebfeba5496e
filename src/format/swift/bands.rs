//! The form of `swift` without atomics: [`ROWS`] neighbouring rows of op(A) are a *band*, whose
//! entries are sorted by column, those of a column by row. Whoever has a band has all sums of
//! its rows, and adds each entry to one of them.
//!
//! Arrays:
//! - `items` and `parts`: as of src/format/window.rs, whose windows are the bands here and
//!   whose blocks are entries, cut where they have more than [`limit`]
//! - `columns`: u32 an entry
//! - `rows`: u8 an entry, which row of the band
//! - `values`: one an entry
//! - `slots` (only where values will be updated): u64 an entry, in the order of the user's
//!   values: its place in `values`
//!
//! The inverse is `Bands::for_each_entry`. The CUDA backend makes the arrays on the device
//! (kernels/format/swift.cu), bit for bit as `Bands::build`.

use crate::error::{Error, Result};
use crate::format::window;

/// Rows of a band: sums of 128 columns of fp32 of so many rows are 8 KiB of shared memory, of
/// which 7 blocks of 4 warps fit a multiprocessor.
pub const ROWS: usize = 16;
/// Entries of the longest part: the launch ends with it.
const MOST: usize = 2048;

/// Entries of the longest band that is not cut, of a matrix of so many.
pub fn limit(nnz: usize) -> usize {
    window::limit(MOST, nnz)
}

/// Refuses what 32 bits do not number.
pub fn check_count(nnz: usize) -> Result<()> {
    if u32::try_from(nnz).is_ok() {
        return Ok(());
    }
    Err(Error::unsupported(format!(
        "A: algorithm swift in deterministic mode takes at most {} entries",
        u32::MAX
    )))
}

#[cfg(test)]
mod host;

#[cfg(test)]
pub use host::Bands;

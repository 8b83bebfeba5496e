//! Layout of `swift` without atomics: [`ROWS`] neighbouring rows of op(A) are a *band*, whose entries are
//! sorted by column, and those of a column by row. One warp has all sums of a band's rows, and adds each
//! entry to one of them.
//!
//! Arrays:
//! - `items` and `parts`: as in src/format/window.rs, whose windows are the bands here and whose blocks are
//!   entries, split where they have more than [`limit`]
//! - `columns`: u32 per entry
//! - `rows`: u8 per entry, its row in the band
//! - `values`: one per entry
//! - `slots` (only where values will be updated): u64 per entry, in the order of the user's values: its index
//!   in `values`
//!
//! The inverse is `Bands::for_each_entry`. The CUDA backend builds the arrays on the device
//! (kernels/format/swift.cu), bit for bit as `Bands::build` does.

use crate::error::{Error, Result};
use crate::format::window;

/// Number of rows of a band: fp32 sums of so many rows and 128 columns take 8 KiB of shared memory, so that 7
/// blocks of 4 warps fit a multiprocessor.
pub const ROWS: usize = 16;
/// Number of entries of the longest part of a split band: the launch ends with it.
const MOST: usize = 2048;

/// Returns the number of entries of the longest band that is not split, for a matrix of `nnz` entries.
pub fn limit(nnz: usize) -> usize {
    window::limit(MOST, nnz)
}

/// Returns an error if 32 bits cannot number the entries.
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

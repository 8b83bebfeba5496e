//! Orders of rows that bring rows with similar columns together.
//!
//! The time of a product on dense blocks ([`BlockShape`]: h rows × w columns, the operands of matrix units)
//! depends on the number of blocks that hold an entry. So rows that have entries in the same block columns
//! should be in the same window of h rows: [`jaccard`] finds such rows. Nothing changes for the user: the
//! kernel writes its result for position p to row [`Windows::order`]`[p]` of C.
//!
//! Kernels on rows (CSR) gain from other orders, which are selected by name: [`policy`]. [`features`] are the
//! numbers by which the paper behind some of these orders chooses among them.
//!
//! All functions take rows of op(A) that are sorted by column; columns may repeat. There must be fewer than
//! 2³¹ rows. src/backend/cuda/reorder.rs does the work of [`jaccard`] on the device, with the same result.

mod chain;
mod clusters;
#[cfg(test)]
pub(crate) mod computed;
pub mod features;
mod gray;
pub mod jaccard;
mod kept;
pub mod masks;
mod permutation;
pub mod policy;
pub mod promise;
mod rcm;
#[cfg(test)]
pub(crate) mod tests;

pub use kept::{is_kept, KeptOrder};
pub use permutation::{Permutation, Windows};

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::matrix::compressed::Pattern;
use crate::matrix::fingerprint::mix;
use crate::memory::{pieces, pool, Allocator, Buffer};
use crate::types::Index;

/// Rows and columns of a dense block; blocks start at multiples of `width`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockShape {
    /// Number of rows of a window, 1 to [`BlockShape::MOST_ROWS`].
    pub height: usize,
    /// Number of columns of a block, at least 1.
    pub width: usize,
}

impl BlockShape {
    /// Largest number of rows of a window.
    pub const MOST_ROWS: usize = 64;

    /// Returns an error if the height is out of range or the width is 0.
    pub(crate) fn check(&self) -> Result<()> {
        if (1..=Self::MOST_ROWS).contains(&self.height) && self.width > 0 {
            return Ok(());
        }
        Err(Error::invalid("shape", format!("{} × {} is no block", self.height, self.width)))
    }
}

/// Returns the number of rows of a pattern, or an error if 31 bits cannot number them.
pub(crate) fn row_count<I: Index, J: Index>(pattern: &Pattern<'_, I, J>) -> Result<usize> {
    check_rows(pattern.major)?;
    Ok(pattern.major)
}

/// Returns the numbers 0, 1, … up to `count`, exclusive.
fn numbers(allocator: &Arc<Allocator>, count: usize) -> Result<Buffer<u32>> {
    let mut out = Buffer::<u32>::zeroed(allocator, count)?;
    out.iter_mut().zip(0..).for_each(|(to, number)| *to = number);
    Ok(out)
}

/// Iterates over the blocks of `width` columns in which a row that is sorted by column has an entry,
/// ascending.
fn block_columns<'a, I: Index, J: Index>(
    pattern: &'a Pattern<'_, I, J>,
    row: usize,
    width: usize,
) -> impl Iterator<Item = usize> + 'a {
    let mut last = usize::MAX;
    let blocks = pattern.range(row).map(move |at| pattern.index(at) / width);
    blocks.filter(move |&block| std::mem::replace(&mut last, block) != block)
}

/// Returns `NOT_SUPPORTED` if 31 bits cannot number the rows.
pub(crate) fn check_rows(rows: usize) -> Result<()> {
    if rows < 1 << 31 {
        return Ok(());
    }
    Err(Error::unsupported(format!("A: rows are put in order by numbers of 31 bits; there are {rows} rows")))
}

/// Returns the output of the generator SplitMix64 with this seed after `draws` draws (Steele, Lea, Flood:
/// Fast splittable pseudorandom number generators, OOPSLA 2014, figure 17).
fn split_mix(seed: u64, draws: u64) -> u64 {
    const INCREMENT: u64 = 0x9e37_79b9_7f4a_7c15;
    mix(seed.wrapping_add(draws.wrapping_add(1).wrapping_mul(INCREMENT)))
}

/// Smallest number of windows that a task of [`blocks`] counts: with fewer, clearing its marks would
/// dominate.
const PIECE: usize = 1 << 10;

/// Returns the number of blocks of this shape that hold an entry, in `windows` or (`None`) in every `height`
/// rows in the user's order. O(nnz); takes 4 bytes per block column for each thread.
pub fn blocks<I: Index, J: Index>(
    allocator: &Arc<Allocator>,
    pattern: &Pattern<'_, I, J>,
    windows: Option<&Windows>,
    shape: BlockShape,
) -> Result<u64> {
    shape.check()?;
    let rows = row_count(pattern)?;
    let count = windows.map_or(rows.div_ceil(shape.height), Windows::count);
    let pieces = count.div_ceil(PIECE).clamp(1, pool::size());
    let block_columns = pattern.minor.div_ceil(shape.width);
    // A mark is the last window that had the block column; windows are numbered from 1.
    let mut marks = Buffer::<u32>::zeroed(allocator, pieces * block_columns)?;
    let total = AtomicU64::new(0);
    let piece = |number: usize, marks: &mut [u32]| {
        let mut found = 0;
        for window in count * number / pieces..count * (number + 1) / pieces {
            let positions = match windows {
                Some(windows) => windows.range(window),
                None => window * shape.height..rows.min((window + 1) * shape.height),
            };
            for position in positions {
                let row = windows.map_or(position, |windows| windows.order[position] as usize);
                for at in pattern.range(row) {
                    let mark = &mut marks[pattern.index(at) / shape.width];
                    found += u64::from(*mark != window as u32 + 1);
                    *mark = window as u32 + 1;
                }
            }
        }
        total.fetch_add(found, Ordering::Relaxed);
    };
    if block_columns > 0 {
        pieces::for_each(pieces::chunks(&mut marks, block_columns), piece);
    }
    Ok(total.into_inner())
}

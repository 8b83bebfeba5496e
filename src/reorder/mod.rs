//! Orders of rows that bring rows of like columns together.
//!
//! A product on dense blocks ([`Shape`]: h rows × w columns, as matrix units take them)
//! costs time by the number of blocks that hold an entry. Rows that have entries in the
//! same block columns should be in the same window of h rows, then: [`jaccard`] finds
//! such rows. Nothing changes for the user: what multiplies writes row [`Windows::order`]`[p]`
//! of C where it has computed position p.
//!
//! Kernels on rows (CSR) gain from other orders, by name: [`policy`]. [`features`] are what the paper behind some of
//! them chooses an order by.
//!
//! Rows of op(A), sorted by column; columns may repeat. Fewer than 2³¹ rows.
//! src/backend/cuda/reorder.rs does what [`jaccard`] does on the device, with the same result.

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
pub struct Shape {
    /// Rows of a window, 1 to [`Shape::MOST_ROWS`].
    pub height: usize,
    /// Columns of a block, at least 1.
    pub width: usize,
}

impl Shape {
    /// The most rows of a window.
    pub const MOST_ROWS: usize = 64;

    /// A height out of range or a width of 0 is a fault of the caller's.
    pub(crate) fn check(&self) -> Result<()> {
        if (1..=Self::MOST_ROWS).contains(&self.height) && self.width > 0 {
            return Ok(());
        }
        Err(Error::invalid("shape", format!("{} × {} is no block", self.height, self.width)))
    }
}

/// Rows of a pattern, which 31 bits must number.
pub(crate) fn row_count<I: Index, J: Index>(pattern: &Pattern<'_, I, J>) -> Result<usize> {
    check_rows(pattern.major)?;
    Ok(pattern.major)
}

/// The numbers 0, 1, … of so many.
fn numbers(allocator: &Arc<Allocator>, count: usize) -> Result<Buffer<u32>> {
    let mut out = Buffer::<u32>::zeroed(allocator, count)?;
    out.iter_mut().zip(0..).for_each(|(to, number)| *to = number);
    Ok(out)
}

/// The blocks of `width` columns in which a row that is sorted by column has an entry, ascending.
fn block_columns<'a, I: Index, J: Index>(
    pattern: &'a Pattern<'_, I, J>,
    row: usize,
    width: usize,
) -> impl Iterator<Item = usize> + 'a {
    let mut last = usize::MAX;
    let blocks = pattern.range(row).map(move |at| pattern.index(at) / width);
    blocks.filter(move |&block| std::mem::replace(&mut last, block) != block)
}

/// `NOT_SUPPORTED` for rows that 31 bits do not number.
pub(crate) fn check_rows(rows: usize) -> Result<()> {
    if rows < 1 << 31 {
        return Ok(());
    }
    Err(Error::unsupported(format!("A: rows are put in order by numbers of 31 bits; there are {rows} rows")))
}

/// The generator SplitMix64 with this seed, after so many draws (Steele, Lea, Flood: Fast splittable pseudorandom
/// number generators, OOPSLA 2014, figure 17).
fn split_mix(seed: u64, draws: u64) -> u64 {
    const INCREMENT: u64 = 0x9e37_79b9_7f4a_7c15;
    mix(seed.wrapping_add(draws.wrapping_add(1).wrapping_mul(INCREMENT)))
}

/// Windows of a piece of [`blocks`]: less would spend its time on clearing marks.
const PIECE: usize = 1 << 10;

/// Blocks of this shape that hold an entry: of `windows`, or (`None`) of every `height`
/// rows in their own order. O(nnz); takes 4 bytes a block column for each thread.
pub fn blocks<I: Index, J: Index>(
    allocator: &Arc<Allocator>,
    pattern: &Pattern<'_, I, J>,
    windows: Option<&Windows>,
    shape: Shape,
) -> Result<u64> {
    shape.check()?;
    let rows = row_count(pattern)?;
    let count = windows.map_or(rows.div_ceil(shape.height), Windows::count);
    let pieces = count.div_ceil(PIECE).clamp(1, pool::size());
    let block_columns = pattern.minor.div_ceil(shape.width);
    // A mark says which window had the block column last; windows are numbered from 1.
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

//! Warp loads and bit masks of rows, by which the policies of [`policy`](super::policy) order them (Mehrabi
//! et al., "Learning sparse matrix row permutations for efficient SpMM on GPU architectures", sections II-C
//! and III-B).

use std::sync::Arc;

use super::{block_columns, row_count};
use crate::error::Result;
use crate::matrix::compressed::Pattern;
use crate::memory::{pieces, Allocator, Buffer};
use crate::types::Index;

/// Number of warps of a block, N_w: warp i mod 32 takes row i of an order.
pub const WARPS: usize = 32;
/// Number of lanes of a warp, N_t, and of columns per bit of a mask: 32 numbers of fp32 are a line of 128
/// bytes.
pub const LANES: usize = 32;

/// Returns the warp load of a row of `entries` entries, ⌈nnz / 32⌉: how many steps its warp takes.
pub fn warp_load(entries: usize) -> u32 {
    entries.div_ceil(LANES).min(u32::MAX as usize) as u32
}

/// Returns the warp loads of all rows.
pub fn loads<I: Index, J: Index>(
    allocator: &Arc<Allocator>,
    pattern: &Pattern<'_, I, J>,
) -> Result<Buffer<u32>> {
    let mut loads = Buffer::<u32>::zeroed(allocator, row_count(pattern)?)?;
    loads.iter_mut().enumerate().for_each(|(row, load)| *load = warp_load(pattern.range(row).len()));
    Ok(loads)
}

/// Bit masks of the rows: bit b of a row is 1 where it has an entry in columns 32·b to 32·b + 31, whose rows
/// of B are one cache line of each column. Stored as the numbers of the bits that are 1, ascending.
#[derive(Debug)]
pub struct Masks {
    starts: Buffer<u64>,
    bits: Buffer<u32>,
}

impl Masks {
    /// Computes the masks of rows that are sorted by column.
    pub fn new<I: Index, J: Index>(allocator: &Arc<Allocator>, pattern: &Pattern<'_, I, J>) -> Result<Self> {
        /// Number of rows of one parallel task: some 10 µs of work.
        const ROWS: usize = 512;
        let rows = row_count(pattern)?;
        let bits_of = |row: usize| block_columns(pattern, row, LANES).map(|bit| bit as u32);
        let mut starts = Buffer::<u64>::zeroed(allocator, rows + 1)?;
        pieces::for_each(pieces::chunks(&mut starts[1..], ROWS), |at, starts| {
            for (row, start) in starts.iter_mut().enumerate() {
                *start = bits_of(at * ROWS + row).count() as u64;
            }
        });
        for row in 0..rows {
            starts[row + 1] += starts[row];
        }
        let mut bits = Buffer::<u32>::zeroed(allocator, starts[rows] as usize)?;
        bits.iter_mut().zip((0..rows).flat_map(bits_of)).for_each(|(to, bit)| *to = bit);
        Ok(Masks { starts, bits })
    }

    /// Returns the number of rows.
    pub fn rows(&self) -> usize {
        self.starts.len() - 1
    }

    /// Returns the numbers of the bits of a row that are 1.
    pub fn of(&self, row: u32) -> &[u32] {
        &self.bits[self.starts[row as usize] as usize..self.starts[row as usize + 1] as usize]
    }

    /// Returns the Hamming distance of two rows: the number of cache lines that one needs and the other does
    /// not.
    pub fn distance(&self, a: u32, b: u32) -> u32 {
        distance(self.of(a), self.of(b)) as u32
    }

    /// Returns a lower bound of [`Masks::distance`].
    pub fn distance_at_least(&self, a: u32, b: u32) -> u32 {
        self.of(a).len().abs_diff(self.of(b).len()) as u32
    }
}

/// Ratio of lengths above which the shorter list is looked up in the longer one by bisection, instead of both
/// being read.
const FAR_LONGER: usize = 16;

/// Returns how many numbers are in only one of two ascending lists.
pub(super) fn distance<T: Ord>(a: &[T], b: &[T]) -> usize {
    a.len() + b.len() - 2 * shared(a, b)
}

/// Returns how many numbers two ascending lists share.
fn shared<T: Ord>(a: &[T], b: &[T]) -> usize {
    let (short, mut long) = if a.len() <= b.len() { (a, b) } else { (b, a) };
    let mut count = 0;
    if long.len() > FAR_LONGER * short.len() {
        for bit in short {
            let at = long.partition_point(|other| other < bit);
            long = &long[at..];
            count += usize::from(long.first() == Some(bit));
        }
        return count;
    }
    let (mut i, mut j) = (0, 0);
    while i < short.len() && j < long.len() {
        let (x, y) = (&short[i], &long[j]);
        count += usize::from(x == y);
        i += usize::from(x <= y);
        j += usize::from(y <= x);
    }
    count
}

/// Returns the sum of the distances between each row of an order and the one `reach` positions before. The
/// cache-aware policies minimize it, with a reach of 1 (CTA-aware) or [`WARPS`] (warp-aware).
#[cfg(test)]
pub fn transitions(masks: &Masks, order: &[u32], reach: usize) -> u64 {
    order.windows(reach + 1).map(|rows| u64::from(masks.distance(rows[0], rows[reach]))).sum()
}

/// Returns the load of each warp: the sum over its rows.
#[cfg(test)]
pub fn warp_sums(loads: &[u32], order: &[u32]) -> [u64; WARPS] {
    let mut sums = [0; WARPS];
    order.iter().enumerate().for_each(|(at, &row)| sums[at % WARPS] += u64::from(loads[row as usize]));
    sums
}

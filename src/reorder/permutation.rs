//! Permutations of rows, and windows of consecutive positions.

use std::ops::{Deref, Range};
use std::sync::Arc;

use super::numbers;
use crate::error::{Error, Result, Status};
use crate::memory::{Allocator, Buffer};

/// Order of n < 2³² rows: position p has the user's row `self[p]`.
#[derive(Debug)]
pub struct Permutation {
    order: Buffer<u32>,
}

impl Deref for Permutation {
    type Target = [u32];

    fn deref(&self) -> &[u32] {
        &self.order
    }
}

/// Describes the first position whose row is not below `rows` or has occurred before; `None` if there is
/// none. `seen` must have a zero bit for each row.
pub(super) fn fault_of(order: impl Iterator<Item = u32>, rows: usize, seen: &mut [u64]) -> Option<String> {
    for (position, row) in order.enumerate() {
        let row = row as usize;
        if row >= rows {
            return Some(format!("position {position} has row {row} of {rows}"));
        }
        if seen[row / 64] >> (row % 64) & 1 == 1 {
            return Some(format!("position {position} has row {row} again"));
        }
        seen[row / 64] |= 1 << (row % 64);
    }
    None
}

impl Permutation {
    /// Creates the permutation that leaves every row in its place.
    pub fn identity(allocator: &Arc<Allocator>, rows: usize) -> Result<Self> {
        Ok(Permutation { order: numbers(allocator, rows)? })
    }

    /// Creates a permutation from `order`, which must have each number below its length once;
    /// `INTERNAL_ERROR` names a position that violates this.
    pub fn new(allocator: &Arc<Allocator>, order: Buffer<u32>) -> Result<Self> {
        let rows = order.len();
        let mut seen = Buffer::<u64>::zeroed(allocator, rows.div_ceil(64))?;
        match fault_of(order.iter().copied(), rows, &mut seen) {
            Some(what) => Err(Error::new(Status::InternalError, format!("permutation: {what}"))),
            None => Ok(Permutation { order }),
        }
    }
}

/// Order of rows divided into windows: window v has the rows `order[p]` of the positions `starts[v]` ≤ p <
/// `starts[v + 1]`, at least one.
#[derive(Debug)]
pub struct Windows {
    /// Order of the rows.
    pub order: Permutation,
    /// First position of each window, and the number of rows.
    pub starts: Buffer<u32>,
}

impl Windows {
    /// Creates windows of `height` positions each; the last one may have fewer.
    #[cfg(test)]
    pub fn of_height(allocator: &Arc<Allocator>, order: Permutation, height: usize) -> Result<Self> {
        let rows = order.len();
        let mut starts = Buffer::<u32>::zeroed(allocator, rows.div_ceil(height) + 1)?;
        for (window, start) in starts.iter_mut().enumerate() {
            *start = rows.min(window * height) as u32;
        }
        Ok(Windows { order, starts })
    }

    /// Returns the number of windows.
    pub fn count(&self) -> usize {
        self.starts.len() - 1
    }

    /// Returns the positions of a window.
    pub fn range(&self, window: usize) -> Range<usize> {
        self.starts[window] as usize..self.starts[window + 1] as usize
    }

    /// Returns `height` slots for each window: the rows of its positions, and [`Windows::HOLE`] in the
    /// remaining slots.
    pub fn places(&self, allocator: &Arc<Allocator>, height: usize) -> Result<Buffer<u32>> {
        let mut places = Buffer::<u32>::zeroed(allocator, self.count() * height)?;
        for (window, places) in places.chunks_mut(height).enumerate() {
            let rows = &self.order[self.range(window)];
            places[..rows.len()].copy_from_slice(rows);
            places[rows.len()..].fill(Self::HOLE);
        }
        Ok(places)
    }

    /// Slot of a window that has no row.
    pub const HOLE: u32 = u32::MAX;
}

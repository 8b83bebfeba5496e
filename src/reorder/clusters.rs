//! Passes of the clustering in [`super::jaccard`], on the CPU.

use std::sync::Arc;

use rayon::prelude::*;

use super::jaccard::{Signature, TILE};
use super::promise::Promise;
use super::{block_columns, numbers, row_count, BlockShape, Permutation, Windows};
use crate::error::Result;
use crate::matrix::compressed::Pattern;
use crate::memory::{pieces, Allocator, Buffer};
use crate::types::Index;

/// State of the clustering.
pub(super) struct Clusters {
    height: usize,
    /// Signature of each cluster, at its first row.
    pub(super) signatures: Buffer<Signature>,
    /// Number of rows of each cluster, at its first row.
    sizes: Buffer<u8>,
    /// For each row, the first row of the cluster that took in the row's cluster, or the row itself.
    parents: Buffer<u32>,
    /// First rows of the clusters that may grow, ascending; `active_count` of them are valid.
    active: Buffer<u32>,
    active_count: usize,
    /// Sort key of each active cluster: band key · 2³² + first row.
    keys: Buffer<u64>,
    /// Position, in its tile, of the cluster that took in each cluster, or its own position.
    takers: Buffer<u8>,
}

impl Clusters {
    pub(super) fn new<I: Index, J: Index>(
        allocator: &Arc<Allocator>,
        pattern: &Pattern<'_, I, J>,
        shape: BlockShape,
    ) -> Result<Self> {
        let rows = row_count(pattern)?;
        let mut out = Clusters {
            height: shape.height,
            signatures: Buffer::zeroed(allocator, rows)?,
            sizes: Buffer::zeroed(allocator, rows)?,
            parents: numbers(allocator, rows)?,
            active: numbers(allocator, rows)?,
            active_count: rows,
            keys: Buffer::zeroed(allocator, rows)?,
            takers: Buffer::zeroed(allocator, rows)?,
        };
        pieces::for_each(pieces::each(&mut out.signatures), |row, signature| {
            *signature = Signature::of(block_columns(pattern, row, shape.width));
        });
        out.sizes.fill(1);
        Ok(out)
    }

    /// Returns the estimate that a sample gives; to be called before the first pass.
    pub(super) fn promise(&mut self) -> Promise {
        Promise::of(&self.signatures, self.height, &mut self.keys)
    }

    /// Removes from the active clusters those that were taken in or are full.
    fn retain(&mut self) {
        let mut kept = 0;
        for at in 0..self.active_count {
            let first = self.active[at];
            if self.parents[first as usize] == first && usize::from(self.sizes[first as usize]) < self.height
            {
                self.active[kept] = first;
                kept += 1;
            }
        }
        self.active_count = kept;
    }

    /// Makes one pass over the active clusters, sorted by the slots of `band` or (`None`) by their first
    /// rows: joins those of a tile that agree in `needed` slots. Returns how many were taken in, and how many
    /// there were.
    pub(super) fn pass(&mut self, band: Option<usize>, needed: u32) -> (usize, usize) {
        self.retain();
        let Clusters { height, signatures, sizes, parents, active, active_count, keys, takers } = self;
        let count = *active_count;
        let keys = &mut keys[..count];
        for (key, &first) in keys.iter_mut().zip(active.iter()) {
            let high = band.map_or(0, |band| signatures[first as usize].key(band));
            *key = u64::from(high) << 32 | u64::from(first);
        }
        if band.is_some() {
            keys.par_sort_unstable();
        }
        let takers = &mut takers[..count];
        pieces::for_each(pieces::chunks(takers, TILE), |at, takers| {
            let keys = &keys[at * TILE..][..takers.len()];
            join_tile(takers, keys, signatures, sizes, *height, needed);
        });
        let mut joined = 0;
        for (takers, keys) in takers.chunks(TILE).zip(keys.chunks(TILE)) {
            // First row of the cluster at each position.
            let mut firsts = [0u32; TILE];
            for (place, (&taker, &key)) in takers.iter().zip(keys).enumerate() {
                firsts[place] = key as u32;
                let taker = usize::from(taker);
                if taker == place {
                    continue;
                }
                let (low, high) = (firsts[taker].min(firsts[place]), firsts[taker].max(firsts[place]));
                firsts[taker] = low;
                let other = signatures[high as usize];
                signatures[low as usize].join(&other);
                sizes[low as usize] += sizes[high as usize];
                parents[high as usize] = low;
                joined += 1;
            }
        }
        (joined, count)
    }

    /// Makes each cluster a window.
    pub(super) fn windows(mut self, allocator: &Arc<Allocator>) -> Result<Windows> {
        let rows = self.parents.len();
        let mut count = 0;
        for row in 0..rows {
            // A parent has a smaller number, so its own parent is already final.
            self.parents[row] = self.parents[self.parents[row] as usize];
            count += usize::from(self.parents[row] as usize == row);
        }
        let mut starts = Buffer::<u32>::zeroed(allocator, count + 1)?;
        let mut order = Buffer::<u32>::zeroed(allocator, rows)?;
        // Next position in `order` for each cluster, at its first row.
        let next = &mut self.active;
        let mut window = 0;
        for row in 0..rows {
            let first = self.parents[row] as usize;
            if first == row {
                next[row] = starts[window];
                starts[window + 1] = starts[window] + u32::from(self.sizes[row]);
                window += 1;
            }
            order[next[first] as usize] = row as u32;
            next[first] += 1;
        }
        Ok(Windows { order: Permutation::new(allocator, order)?, starts })
    }
}

/// Clusters one tile greedily: sets in `takers` which cluster takes in which.
fn join_tile(
    takers: &mut [u8],
    keys: &[u64],
    signatures: &[Signature],
    sizes: &[u8],
    height: usize,
    needed: u32,
) {
    let mut tile = [Signature::default(); TILE];
    let mut rows = [0usize; TILE];
    for (place, &key) in keys.iter().enumerate() {
        let first = key as u32 as usize;
        (tile[place], rows[place]) = (signatures[first], usize::from(sizes[first]));
        takers[place] = place as u8;
    }
    for taker in 0..keys.len() {
        if usize::from(takers[taker]) != taker {
            continue;
        }
        let mut union = tile[taker];
        for place in taker + 1..keys.len() {
            if usize::from(takers[place]) == place
                && rows[taker] + rows[place] <= height
                && union.agreeing(&tile[place]) >= needed
            {
                takers[place] = taker as u8;
                rows[taker] += rows[place];
                union.join(&tile[place]);
            }
        }
    }
}

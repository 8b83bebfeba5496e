//! Clusters of rows with similar patterns, after SMaT (Okanovic et al., SC 2024, section IV-C; the greedy
//! scheme is Sylos Labini's).
//!
//! The pattern of a row is the set of block columns in which it has an entry; that of a cluster is the union
//! over its rows. The Jaccard distance of patterns p and q is 1 − |p ∩ q| / |p ∪ q|.
//!
//! `exact` is the paper's form: O(rows²), a reference for small inputs. Plans use [`cluster`], which is near
//! linear in the number of entries:
//!
//! 1. A row's [`Signature`] has [`SLOTS`] numbers: slot s is the minimum of hash_s over its pattern. Two rows
//!    agree in a slot with the probability |p ∩ q| / |p ∪ q|; so the number of slots in which they agree
//!    estimates that ratio. The signature of a union is the minimum in each slot (MinHash: Broder, 1997).
//! 2. Clusters with fewer rows than a window, at first single rows, are sorted by two slots (a *band*; each
//!    time two others), so that similar clusters are neighbours.
//! 3. Each [`TILE`] neighbours are clustered greedily: the first takes in, one after the other, each later
//!    cluster that agrees in enough slots with the union so far and fits the window; then the next one that
//!    was not taken in does the same; and so on. That is the paper's form, within a tile. A tile takes at
//!    most [`TILE`]² comparisons, whatever the matrix.
//! 4. Steps 2 and 3 are repeated for the next band; [`LEVELS`] says how many slots must agree: many at first.
//!    A level begins with the clusters in the order of their first rows instead of by slots: many matrices
//!    come with similar rows next to each other. It ends when a band joins few clusters.
//! 5. The remaining clusters are joined in the order of their first rows as they fit windows, similar or not.
//!
//! Before step 2 a sample tells whether clustering is worth its time ([`Promise`]).
//!
//! Each cluster is a window, of at most `height` rows; windows are in the order of their first rows, and rows
//! ascend in a window. All of it is integers in a fixed order, so that the device gets the same windows.
//! Measured on small matrices, [`cluster`] leaves fewer blocks than `exact` (docs/algorithms/orders.md): its threshold
//! falls by levels, and windows do not straddle clusters.

use std::sync::Arc;

use bytemuck::{Pod, Zeroable};

use super::clusters::Clusters;
use super::promise::Promise;
#[cfg(test)]
use super::{block_columns, numbers, row_count, Permutation};
use super::{blocks, BlockShape, Windows};
use crate::error::Result;
use crate::matrix::compressed::Pattern;
#[cfg(test)]
use crate::memory::Buffer;
use crate::memory::{pool, Allocator};
use crate::types::Index;

/// Distance below which `exact` joins a row with a cluster, if nothing else is known. Of 0.3, 0.5, 0.7, 0.8,
/// 0.9 and 0.95, 0.8 left the fewest blocks on meshes in random order, 0.5 where only rows were shuffled
/// (docs/algorithms/orders.md); the paper gives no value.
#[cfg(test)]
pub const DISTANCE: f64 = 0.8;
/// Number of slots of a signature. 16 left 4 to 6 % more blocks (on cop20k 0.401 of the original blocks
/// instead of 0.382).
pub const SLOTS: usize = 32;
/// Number of clusters that are compared with each other. 32 left 1.5 % more blocks, 128 left 1 % fewer at
/// twice the work.
pub const TILE: usize = 64;
/// Number of slots that must agree, level by level. Three levels (16, 8, 4) left up to 5 % more blocks, six
/// (23, 16, 10, 6, 4, 2) as many.
pub const LEVELS: [u32; 5] = [20, 13, 8, 5, 3];
/// Largest number of bands of a level.
pub const BANDS: usize = 4;
/// A level ends with a band that joins fewer than one cluster in so many: on cop20k that makes 16 passes
/// instead of 31 for 0.3 % more blocks (mip1: 8 %).
pub const FEW: usize = 16;

/// Bit that makes the random numbers of the sample differ from those of the sort keys.
pub const DRAW: u32 = 1 << 31;

/// Seeds of the slots' hash functions.
pub const SEEDS: [u32; SLOTS] = {
    let mut out = [0; SLOTS];
    let mut slot = 0;
    while slot < SLOTS {
        out[slot] = mix(0x9e37_79b9_u32.wrapping_mul(slot as u32 + 1));
        slot += 1;
    }
    out
};

/// Mixes 32 bits bijectively so that each affects all others (with constants of the kind that C. Wellons'
/// search for low bias finds).
pub const fn mix(mut bits: u32) -> u32 {
    bits ^= bits >> 16;
    bits = bits.wrapping_mul(0x7feb_352d);
    bits ^= bits >> 15;
    bits = bits.wrapping_mul(0x846c_a68b);
    bits ^ bits >> 16
}

/// Minima of a pattern's hashes, shortened to 16 bits in the same order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C, align(16))]
pub struct Signature([u16; SLOTS]);

/// Shortens 32 bits to the position of the first set bit and the 11 bits that follow. Two different numbers
/// of the same magnitude are equal afterwards with a probability of 2⁻¹¹, whether the pattern is large (small
/// minima) or not.
fn shorten(bits: u32) -> u16 {
    let first = 31 - (bits | 1).leading_zeros();
    let next = if first >= 11 { bits >> (first - 11) } else { bits << (11 - first) };
    (first << 11 | next & 0x7ff) as u16
}

impl Signature {
    /// Returns the signature of a set of block columns.
    pub(super) fn of(block_columns: impl Iterator<Item = usize>) -> Self {
        let mut least = [u32::MAX; SLOTS];
        for column in block_columns {
            let spread = mix(column as u32);
            for (least, seed) in least.iter_mut().zip(SEEDS) {
                let mut bits = (spread ^ seed).wrapping_mul(0x9e37_79b1);
                bits ^= bits >> 15;
                bits = bits.wrapping_mul(0x85eb_ca6b);
                *least = (*least).min(bits ^ bits >> 13);
            }
        }
        Signature(least.map(shorten))
    }

    /// Returns the number of slots in which two signatures agree.
    pub(super) fn agreeing(&self, other: &Self) -> u32 {
        self.0.iter().zip(&other.0).map(|(a, b)| u32::from(a == b)).sum()
    }

    /// Replaces the signature by that of the union.
    pub(super) fn join(&mut self, other: &Self) {
        self.0.iter_mut().zip(&other.0).for_each(|(a, &b)| *a = (*a).min(b));
    }

    /// Returns whether a row is in a sample of one row in `one_in` (a power of two), which has all or none of
    /// the rows with the same first slot of `band`.
    pub(super) fn is_drawn(&self, band: usize, one_in: usize) -> bool {
        mix(u32::from(self.0[slots_of(band).0]) | DRAW) as usize & (one_in - 1) == 0
    }

    /// Returns the sort key of a band: 20 bits from one slot, 11 from another.
    pub(super) fn key(&self, band: usize) -> u32 {
        let (first, second) = slots_of(band);
        mix(u32::from(self.0[first])) >> 12 << 11 | mix(u32::from(self.0[second])) >> 21
    }
}

/// Returns the two slots of a band: always different ones, and no pair twice among the bands in use.
pub fn slots_of(band: usize) -> (usize, usize) {
    (band % SLOTS, (7 * band + 3 + band / SLOTS) % SLOTS)
}

/// Result of [`cluster`].
#[derive(Debug)]
pub struct Clustered {
    /// The windows; `None` if the user's order leaves no more blocks.
    pub windows: Option<Windows>,
    /// Number of blocks of the user's order.
    #[cfg_attr(not(test), expect(dead_code, reason = "tests say how much is gained"))]
    pub before: u64,
    /// Number of blocks of the windows (`before` if there are none).
    #[cfg_attr(not(test), expect(dead_code, reason = "tests say how much is gained"))]
    pub after: u64,
}

/// Condition on a sample of the rows under which [`cluster`] goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// Goes on only if sampled rows have better neighbours than those that they have now.
    Promising,
    /// Goes on only if the sample promises far fewer blocks
    /// ([`Promise::is_strong`](super::promise::Promise)).
    Strongly,
    /// Goes on without a sample.
    #[cfg(test)]
    Always,
}

impl When {
    /// Returns whether to go on; takes the sample only if it matters.
    pub(crate) fn goes_on(self, sample: impl FnOnce() -> Result<Promise>) -> Result<bool> {
        Ok(match self {
            When::Promising => sample()?.is_kept(),
            When::Strongly => sample()?.is_strong(),
            #[cfg(test)]
            When::Always => true,
        })
    }
}

/// Computes windows of similar rows; the rows must be sorted. The module's documentation has the method. Time
/// O(nnz + rows log rows), memory 86 bytes per row and 4 bytes per block column for each thread.
pub fn cluster<I: Index, J: Index>(
    allocator: &Arc<Allocator>,
    pattern: &Pattern<'_, I, J>,
    shape: BlockShape,
    when: When,
) -> Result<Clustered> {
    #[cfg(test)]
    super::computed::one_more();
    let before = blocks(allocator, pattern, None, shape)?;
    let none = Clustered { windows: None, before, after: before };
    let windows = pool::run(|| -> Result<Option<Windows>> {
        let mut clusters = Clusters::new(allocator, pattern, shape)?;
        if !when.goes_on(|| Ok(clusters.promise()))? {
            return Ok(None);
        }
        let mut band = 0;
        let mut in_order = true;
        for needed in LEVELS {
            let is_few = |(joined, of): (usize, usize)| joined * FEW < of;
            in_order = in_order && !is_few(clusters.pass(None, needed));
            for _ in 0..BANDS {
                band += 1;
                if is_few(clusters.pass(Some(band - 1), needed)) {
                    break;
                }
            }
        }
        clusters.pass(None, 0);
        clusters.windows(allocator).map(Some)
    })?;
    let Some(windows) = windows else {
        return Ok(none);
    };
    let after = blocks(allocator, pattern, Some(&windows), shape)?;
    Ok(if after < before { Clustered { windows: Some(windows), before, after } } else { none })
}

/// Returns the estimate that a sample of the rows gives.
#[cfg(test)]
pub fn promise<I: Index, J: Index>(
    allocator: &Arc<Allocator>,
    pattern: &Pattern<'_, I, J>,
    shape: BlockShape,
) -> Result<Promise> {
    shape.check()?;
    pool::run(|| Ok(Clusters::new(allocator, pattern, shape)?.promise()))
}

/// Computes the paper's form: the first row that is in no cluster yet begins one, which takes in, one after
/// the other, each later such row whose distance from the union so far is less than `distance`. Clusters
/// follow each other in the order in which they were begun. O(rows · nnz) at worst: for small inputs.
#[cfg(test)]
pub fn exact<I: Index, J: Index>(
    allocator: &Arc<Allocator>,
    pattern: &Pattern<'_, I, J>,
    shape: BlockShape,
    distance: f64,
) -> Result<Permutation> {
    shape.check()?;
    let rows = row_count(pattern)?;
    let mut order = Buffer::<u32>::zeroed(allocator, rows)?;
    // Rows that are in no cluster, ascending.
    let mut left = numbers(allocator, rows)?;
    // Last cluster whose union has the block column; clusters are numbered from 1.
    let mut has = Buffer::<u32>::zeroed(allocator, pattern.minor.div_ceil(shape.width))?;
    let (mut left_count, mut placed, mut cluster) = (rows, 0, 0);
    while left_count > 0 {
        cluster += 1;
        let (mut kept, mut union) = (0, 0);
        for at in 0..left_count {
            let row = left[at];
            let (mut shared, mut own) = (0usize, 0usize);
            for column in block_columns(pattern, row as usize, shape.width) {
                own += 1;
                shared += usize::from(has[column] == cluster);
            }
            let either = union + own - shared;
            // Two rows without entries have distance 0.
            let apart = if either == 0 { 0.0 } else { 1.0 - shared as f64 / either as f64 };
            if at == 0 || apart < distance {
                order[placed] = row;
                placed += 1;
                union = either;
                block_columns(pattern, row as usize, shape.width).for_each(|column| has[column] = cluster);
            } else {
                left[kept] = row;
                kept += 1;
            }
        }
        left_count = kept;
    }
    Permutation::new(allocator, order)
}

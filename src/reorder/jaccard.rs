//! Clusters of rows whose patterns are alike, after SMaT (Okanovic et al., SC 2024, section
//! IV-C; the greedy scheme is Sylos Labini's).
//!
//! A row's pattern is the set of block columns in which it has an entry; that of a cluster is
//! the union of its rows'. Patterns p and q are 1 − |p ∩ q| / |p ∪ q| apart (Jaccard).
//!
//! `exact` is the paper's form: O(rows²), a reference for small inputs. [`cluster`] is what
//! plans use, near linear in the number of entries:
//!
//! 1. A row's [`Signature`] has [`SLOTS`] numbers: slot s is the least of hash_s over its
//!    pattern. Two rows agree in a slot with the probability |p ∩ q| / |p ∪ q|; so the number of slots
//!    in which they agree estimates it. The signature of a union is the lesser number in each
//!    slot (MinHash: Broder, 1997).
//! 2. Clusters, at first the rows, of fewer rows than a window has are sorted by two slots (a
//!    *band*; each time two others), so that clusters that are alike are neighbours.
//! 3. Each [`TILE`] neighbours are clustered greedily: the first takes in each later one, as
//!    they come, that agrees with what it is by then in enough slots and fits the window; then
//!    the next that was not taken in; and so on. That is the paper's form, in a tile.
//!    A tile takes at most [`TILE`]² comparisons, whatever the matrix.
//! 4. 2 and 3 again for the next band; [`LEVELS`] say how many slots must agree: many at first.
//!    A level begins with the clusters in the order of their first rows instead of by slots: many
//!    matrices come with neighbours that are alike. It ends when a band joins few.
//! 5. What is left is joined in the order of the first rows as it fits windows, alike or not.
//!
//! Before 2 a sample tells whether that is worth its time ([`Promise`]).
//!
//! Each cluster is a window, of at most `height` rows; windows are in the order of their first
//! rows, and rows in a window in their own. All of it is integers in a fixed order, so that the
//! device comes to the same windows. Measured on small matrices, [`cluster`] has fewer blocks
//! left than `exact` (docs/algorithms/orders.md): it has the threshold fall by levels, and windows
//! do not straddle clusters.

use std::sync::Arc;

use bytemuck::{Pod, Zeroable};

use super::clusters::Clusters;
use super::promise::Promise;
#[cfg(test)]
use super::{block_columns, numbers, row_count, Permutation};
use super::{blocks, Shape, Windows};
use crate::error::Result;
use crate::matrix::compressed::Pattern;
#[cfg(test)]
use crate::memory::Buffer;
use crate::memory::{pool, Allocator};
use crate::types::Index;

/// Distance below which `exact` joins a row with a cluster, if nothing else is known: 0.8 left
/// the fewest blocks of 0.3, 0.5, 0.7, 0.8, 0.9 and 0.95 on meshes in random order, 0.5 where only rows
/// were shuffled (docs/algorithms/orders.md); the paper names none.
#[cfg(test)]
pub const DISTANCE: f64 = 0.8;
/// Numbers of a signature. 16 left 4 to 6 % more blocks (cop20k 0.401 and 0.382 of those before).
pub const SLOTS: usize = 32;
/// Clusters that are compared with each other. 32 left 1.5 % more blocks, 128 1 % fewer at twice
/// the work.
pub const TILE: usize = 64;
/// Slots that must agree, level by level. Three levels (16, 8, 4) left up to 5 % more blocks,
/// six (23, 16, 10, 6, 4, 2) as many.
pub const LEVELS: [u32; 5] = [20, 13, 8, 5, 3];
/// Bands of a level, at the most.
pub const BANDS: usize = 4;
/// A level ends with a band that joins fewer than one cluster in so many: 16 passes instead of 31
/// on cop20k for 0.3 % more blocks (mip1: 8 %).
pub const FEW: usize = 16;

/// Makes draws of other numbers than keys.
pub const DRAW: u32 = 1 << 31;

/// What the slots' hash functions differ by.
pub const SEEDS: [u32; SLOTS] = {
    let mut out = [0; SLOTS];
    let mut slot = 0;
    while slot < SLOTS {
        out[slot] = mix(0x9e37_79b9_u32.wrapping_mul(slot as u32 + 1));
        slot += 1;
    }
    out
};

/// A bijection of 32 bits that spreads each of them (constants of the kind that C. Wellons' search
/// for low bias gives).
pub const fn mix(mut bits: u32) -> u32 {
    bits ^= bits >> 16;
    bits = bits.wrapping_mul(0x7feb_352d);
    bits ^= bits >> 15;
    bits = bits.wrapping_mul(0x846c_a68b);
    bits ^ bits >> 16
}

/// The least numbers of a pattern's hashes, in 16 bits that are in the same order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C, align(16))]
pub struct Signature([u16; SLOTS]);

/// Of 32 bits: place of the first bit, and the 11 that follow. Two numbers of one size are the same
/// with a probability of 2⁻¹¹, be the pattern large (small least numbers) or not.
fn shorten(bits: u32) -> u16 {
    let first = 31 - (bits | 1).leading_zeros();
    let next = if first >= 11 { bits >> (first - 11) } else { bits << (11 - first) };
    (first << 11 | next & 0x7ff) as u16
}

impl Signature {
    /// Of these block columns.
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

    /// Slots that agree.
    pub(super) fn agreeing(&self, other: &Self) -> u32 {
        self.0.iter().zip(&other.0).map(|(a, b)| u32::from(a == b)).sum()
    }

    /// Of the union.
    pub(super) fn join(&mut self, other: &Self) {
        self.0.iter_mut().zip(&other.0).for_each(|(a, &b)| *a = (*a).min(b));
    }

    /// Whether a row is in a sample of one in `one_in` (a power of two): all or none of those that
    /// have this first slot of `band`.
    pub(super) fn is_drawn(&self, band: usize, one_in: usize) -> bool {
        mix(u32::from(self.0[slots_of(band).0]) | DRAW) as usize & (one_in - 1) == 0
    }

    /// What a band sorts by: 20 bits of one slot, 11 of another.
    pub(super) fn key(&self, band: usize) -> u32 {
        let (first, second) = slots_of(band);
        mix(u32::from(self.0[first])) >> 12 << 11 | mix(u32::from(self.0[second])) >> 21
    }
}

/// The two slots of a band: never one twice, no pair again in the bands that there are.
pub fn slots_of(band: usize) -> (usize, usize) {
    (band % SLOTS, (7 * band + 3 + band / SLOTS) % SLOTS)
}

/// What [`cluster`] found.
#[derive(Debug)]
pub struct Clustered {
    /// The windows; `None`: the user's order leaves no more blocks.
    pub windows: Option<Windows>,
    /// Blocks of the user's order.
    #[cfg_attr(not(test), expect(dead_code, reason = "tests say how much is gained"))]
    pub before: u64,
    /// Blocks of the windows (`before` if there are none).
    #[cfg_attr(not(test), expect(dead_code, reason = "tests say how much is gained"))]
    pub after: u64,
}

/// Whether [`cluster`] may stop after a look at a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// Only where a sample of the rows has better neighbours than those that they have.
    Promising,
    /// Only where a sample promises far fewer blocks ([`Promise::is_strong`](super::promise::Promise)).
    Strongly,
    /// Always.
    #[cfg(test)]
    Always,
}

impl When {
    /// Whether to go on, by a sample that is taken if it matters.
    pub(crate) fn goes_on(self, sample: impl FnOnce() -> Result<Promise>) -> Result<bool> {
        Ok(match self {
            When::Promising => sample()?.is_kept(),
            When::Strongly => sample()?.is_strong(),
            #[cfg(test)]
            When::Always => true,
        })
    }
}

/// Windows of rows that are alike, of sorted rows; see the module. Time O(nnz + rows log rows),
/// memory 86 bytes a row and 4 bytes a block column for each thread.
pub fn cluster<I: Index, J: Index>(
    allocator: &Arc<Allocator>,
    pattern: &Pattern<'_, I, J>,
    shape: Shape,
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

/// What a sample of the rows says of their order.
#[cfg(test)]
pub fn promise<I: Index, J: Index>(
    allocator: &Arc<Allocator>,
    pattern: &Pattern<'_, I, J>,
    shape: Shape,
) -> Result<Promise> {
    shape.check()?;
    pool::run(|| Ok(Clusters::new(allocator, pattern, shape)?.promise()))
}

/// The paper's form: the first row that is in no cluster yet begins one, which takes in each
/// later such row, as they come, that is less than `distance` from what the cluster is by then.
/// Clusters follow each other in the order in which they were begun. O(rows · nnz) at the worst:
/// for small inputs.
#[cfg(test)]
pub fn exact<I: Index, J: Index>(
    allocator: &Arc<Allocator>,
    pattern: &Pattern<'_, I, J>,
    shape: Shape,
    distance: f64,
) -> Result<Permutation> {
    shape.check()?;
    let rows = row_count(pattern)?;
    let mut order = Buffer::<u32>::zeroed(allocator, rows)?;
    // Rows that are in no cluster, ascending.
    let mut left = numbers(allocator, rows)?;
    // The cluster whose union has the block column; they are numbered from 1.
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
            // Two rows without entries are alike.
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

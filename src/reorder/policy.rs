//! Orders of rows for kernels on rows (CSR), selected by name ([`Reorder`]).
//!
//! After Mehrabi, Lee, Chatterjee, Sorin, Lee and O'Connor, "Learning sparse matrix row permutations for
//! efficient SpMM on GPU architectures" (ISPASS 2021), section III: a kernel whose blocks have 32 warps gives
//! row i of the order to warp i mod 32, and the lanes of a warp take the entries of a row. Then the time of a
//! warp depends on the loads of its rows ([`warp_load`](super::masks::warp_load)), and the hits in caches on
//! how similar neighbouring rows of the order are ([`Masks`]).
//!
//! | policy | position p has | section |
//! |---|---|---|
//! | plain sort | rows by falling load | III-A |
//! | flipped sort | rows by falling load, every second group of 32 positions reversed | III-A |
//! | longest processing time | in falling load, each row for the warp with the least load so far | III-A |
//! | warp-aware | the row nearest to that of p − 32; at first the 32 rows of least load | III-B |
//! | CTA-aware | the row nearest to that of p − 1; at first that of least load | III-B |
//! | hybrid 1 | rows by falling load; of equal load the one nearest to that of p − 1 | III-C |
//! | hybrid 2.1 | CTA-aware; of equally near rows that of a load nearest to that of p − 1's | III-C |
//! | hybrid 2.2 | CTA-aware; of equally near rows the one nearest to that of p − 32 | III-C |
//! | hybrid 2.3 | warp-aware; of equally near rows that of a load nearest to that of p − 1's | III-C |
//! | DCSR | rows with entries, then those without, each in their own order | II-A |
//! | RCM | reverse Cuthill-McKee of A + Aᵀ, for square matrices | VI |
//! | Gray code | rows ascending by the numbers whose Gray codes are their masks | |
//!
//! "Near" refers to the Hamming distance of the masks; remaining ties are broken by the rows' numbers. The
//! paper leaves open which row a CTA-aware order begins with, in which direction plain sort goes, and how
//! loads break ties: the table has our interpretation. The paper's LPT may give warps different numbers of
//! rows, which no order of rows can express: here a warp that has its share gets no more.
//!
//! The paper's cache-aware policies compare a row with all remaining ones: O(rows²). [`order`] is near linear
//! ([`chain`](super::chain)). The order of entries inside a row never changes.

use std::sync::Arc;

use rayon::prelude::*;

use super::chain::{self, Rule, Tie};
use super::kept::room;
use super::masks::{loads, Masks, WARPS};
use super::{gray, rcm, row_count, Permutation};
use crate::error::{Error, Result};
use crate::matrix::compressed::Pattern;
use crate::memory::{pool, Allocator, Buffer, HostMemory};
use crate::types::{Address, Index, Reorder};

/// All policies.
#[cfg(test)]
pub const POLICIES: [Reorder; 12] = [
    Reorder::PlainSort,
    Reorder::FlippedSort,
    Reorder::Lpt,
    Reorder::WarpAware,
    Reorder::CtaAware,
    Reorder::Hybrid1,
    Reorder::Hybrid21,
    Reorder::Hybrid22,
    Reorder::Hybrid23,
    Reorder::Dcsr,
    Reorder::Rcm,
    Reorder::GrayCode,
];

/// Returns whether a policy reads column indices; the others read only the offsets.
pub fn reads_columns(policy: Reorder) -> bool {
    use Reorder::*;
    !matches!(policy, Auto | None | PlainSort | FlippedSort | Lpt | Dcsr)
}

/// Returns the rule of a policy that puts near rows together; `None` for other policies.
pub fn rule(policy: Reorder) -> Option<Rule> {
    let (reach, tie, by_load) = match policy {
        Reorder::WarpAware => (WARPS, Tie::Number, false),
        Reorder::CtaAware => (1, Tie::Number, false),
        Reorder::Hybrid1 => (1, Tie::Number, true),
        Reorder::Hybrid21 => (1, Tie::Load, false),
        Reorder::Hybrid22 => (1, Tie::Warp, false),
        Reorder::Hybrid23 => (WARPS, Tie::Load, false),
        _ => return None,
    };
    Some(Rule { reach, tie, by_load })
}

/// Computes the order of a policy for rows that are sorted by column, in time near linear in their entries.
///
/// Errors: `NOT_SUPPORTED` (2³¹ rows and more; RCM of a matrix that is not square); `INVALID_VALUE` for a
/// [`Reorder`] that names no order; out of memory.
pub fn order<I: Index, J: Index>(
    allocator: &Arc<Allocator>,
    pattern: &Pattern<'_, I, J>,
    policy: Reorder,
) -> Result<Permutation> {
    #[cfg(test)]
    super::computed::one_more();
    let order = match policy {
        Reorder::Auto | Reorder::None | Reorder::Learned => {
            return Err(Error::invalid("reorder", format!("{} names no order", policy.c_name())));
        }
        Reorder::PlainSort => by_load(allocator, &loads(allocator, pattern)?)?,
        Reorder::FlippedSort => {
            let mut order = by_load(allocator, &loads(allocator, pattern)?)?;
            order.chunks_mut(WARPS).skip(1).step_by(2).for_each(<[u32]>::reverse);
            order
        }
        Reorder::Lpt => longest_first(allocator, &loads(allocator, pattern)?)?,
        Reorder::Dcsr => densified(allocator, pattern)?,
        Reorder::Rcm => rcm::order(allocator, pattern)?,
        Reorder::GrayCode => gray::order(allocator, &Masks::new(allocator, pattern)?)?,
        _ => {
            let rule = rule(policy).expect("the others have no rule");
            let (masks, loads) = (Masks::new(allocator, pattern)?, loads(allocator, pattern)?);
            let sorted = by_load(allocator, &loads)?;
            chain::order(allocator, &masks, &loads, &sorted, &rule)?
        }
    };
    Permutation::new(allocator, order)
}

/// Returns the rows of a pattern in host memory in the order of a policy, or in the user's order for
/// [`Reorder::None`].
pub fn ordered_rows<I: Index, J: Index>(pattern: &Pattern<'_, I, J>, policy: Reorder) -> Result<Vec<u32>> {
    let allocator = Allocator::new(Arc::new(HostMemory), Address::NULL, usize::MAX);
    let order = match policy {
        Reorder::None => Permutation::identity(&allocator, pattern.major)?,
        policy => order(&allocator, pattern, policy)?,
    };
    let mut rows = room(order.len())?;
    rows.extend_from_slice(&order);
    Ok(rows)
}

/// Returns the rows by falling load, equal ones by their numbers.
fn by_load(allocator: &Arc<Allocator>, loads: &[u32]) -> Result<Buffer<u32>> {
    let mut keys = Buffer::<u64>::zeroed(allocator, loads.len())?;
    for (row, (key, &load)) in keys.iter_mut().zip(loads).enumerate() {
        *key = u64::from(!load) << 32 | row as u64;
    }
    pool::run(|| keys.par_sort_unstable());
    let mut order = Buffer::<u32>::zeroed(allocator, loads.len())?;
    order.iter_mut().zip(keys.iter()).for_each(|(row, &key)| *row = key as u32);
    Ok(order)
}

/// Returns the order by longest processing time.
fn longest_first(allocator: &Arc<Allocator>, loads: &[u32]) -> Result<Buffer<u32>> {
    use std::cmp::Reverse;
    use std::collections::BinaryHeap;
    let rows = loads.len();
    let sorted = by_load(allocator, loads)?;
    let mut order = Buffer::<u32>::zeroed(allocator, rows)?;
    // (load so far, warp, its next position); a warp whose positions are used up is not in the heap.
    let mut warps: BinaryHeap<_> = (0..WARPS.min(rows)).map(|warp| Reverse((0u64, warp, warp))).collect();
    for &row in sorted.iter() {
        // There are as many positions as rows.
        let Some(Reverse((load, warp, position))) = warps.pop() else { break };
        order[position] = row;
        if position + WARPS < rows {
            warps.push(Reverse((load + u64::from(loads[row as usize]), warp, position + WARPS)));
        }
    }
    Ok(order)
}

/// Returns the rows with entries, followed by those without.
fn densified<I: Index, J: Index>(
    allocator: &Arc<Allocator>,
    pattern: &Pattern<'_, I, J>,
) -> Result<Buffer<u32>> {
    let rows = row_count(pattern)?;
    let mut order = Buffer::<u32>::zeroed(allocator, rows)?;
    let filled = (0..rows).filter(|&row| !pattern.range(row).is_empty());
    let empty = (0..rows).filter(|&row| pattern.range(row).is_empty());
    order.iter_mut().zip(filled.chain(empty)).for_each(|(to, row)| *to = row as u32);
    Ok(order)
}

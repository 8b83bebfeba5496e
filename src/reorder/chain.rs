//! Cache-aware orders: each next row is the remaining one whose mask is nearest to that of an earlier row.
//!
//! The paper compares with all remaining rows: O(rows²). [`order`] compares with a few candidates, the
//! nearest remaining rows in [`LISTS`] lists in which near rows are neighbours:
//!
//! - by the minima of three hashes over the ones of the mask (MinHash, Broder 1997: two rows have the same
//!   minimum with the probability J, where they share the fraction J of all ones that at least one of them
//!   has); four such lists, each beginning with another hash; equal masks are neighbours in all of them;
//! - by Gray code ([`gray`](super::gray)): neighbours share long prefixes;
//! - in the user's order: many matrices come with similar rows next to each other;
//! - by the number of ones: among rows with which a row shares nothing, the shortest is nearest, so the
//!   shortest of all remaining rows are always candidates.
//!
//! In each list, the next [`STEPS`] remaining rows on both sides of the earlier row are candidates. Taken
//! rows are skipped by links that are shortened whenever they are followed, so that a step takes no longer at
//! the end. All of it is integers in a fixed order on one thread; only the lists are sorted on all threads.

use std::sync::Arc;

use rayon::prelude::*;

use super::gray;
use super::masks::Masks;
use super::{numbers, split_mix};
use crate::error::Result;
use crate::memory::{pieces, pool, Allocator, Buffer};

/// Rule by which the next row is chosen.
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    /// Distance in positions to the earlier row that the next row has to be near to.
    pub reach: usize,
    /// Choice among equally near rows.
    pub tie: Tie,
    /// True if rows are in the order of falling load, and nearness decides only among equal loads.
    pub by_load: bool,
}

/// Choice among equally near rows; if that is equal, too, the smallest row number decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tie {
    /// Row of the smallest number.
    Number,
    /// Row whose load is nearest to that of the row one position before.
    Load,
    /// Row whose mask is nearest to that of the row 32 positions before.
    Warp,
}

/// Number of hashes, and of lists sorted by them. Two lists that began with two hashes each left 3 to 5 %
/// longer distances.
const HASHES: usize = 4;
/// Number of lists of rows.
const LISTS: usize = HASHES + 3;
/// Number of candidates on each side of a position in a list. 4 left 3 to 5 % longer distances in two thirds
/// of the time, 16 (with two lists by hashes) shorter ones in some cases and longer ones in others
/// (docs/algorithms/orders.md).
const STEPS: usize = 8;

/// Data by which candidates are judged.
struct Criteria<'a> {
    masks: &'a Masks,
    loads: &'a [u32],
    rule: &'a Rule,
}

impl Criteria<'_> {
    /// Returns the cost of a candidate for position `at`, of which the least is taken; a row whose distance
    /// is above that of `best` gets the greatest cost.
    fn judge(&self, order: &[u32], at: usize, row: u32, best: (u32, u32, u32)) -> (u32, u32, u32) {
        let Some(before) = at.checked_sub(self.rule.reach) else { return (0, 0, row) };
        let before = order[before];
        if self.masks.distance_at_least(row, before) > best.0 {
            return (u32::MAX, u32::MAX, u32::MAX);
        }
        let distance = self.masks.distance(row, before);
        if distance > best.0 {
            return (u32::MAX, u32::MAX, u32::MAX);
        }
        let tie = match self.rule.tie {
            Tie::Number => 0,
            Tie::Load => self.loads[row as usize].abs_diff(self.loads[order[at - 1] as usize]),
            Tie::Warp => {
                at.checked_sub(super::masks::WARPS).map_or(0, |at| self.masks.distance(row, order[at]))
            }
        };
        (distance, tie, row)
    }
}

/// Returns the order by a rule. `sorted` has the rows by falling load, equal ones by their numbers.
pub(super) fn order(
    allocator: &Arc<Allocator>,
    masks: &Masks,
    loads: &[u32],
    sorted: &[u32],
    rule: &Rule,
) -> Result<Buffer<u32>> {
    let criteria = Criteria { masks, loads, rule };
    let mut left = Near::new(allocator, &criteria)?;
    let mut order = Buffer::<u32>::zeroed(allocator, sorted.len())?;
    let mut at = 0;
    let same_load = |a: &u32, b: &u32| loads[*a as usize] == loads[*b as usize];
    for class in sorted.chunk_by(|a, b| !rule.by_load || same_load(a, b)) {
        left.open(class.len() as u32);
        let end = at + class.len();
        if at == 0 && !rule.by_load {
            // Begin with the rows of least load, by their numbers where that is equal.
            for &row in sorted.chunk_by(same_load).rev().flatten().take(rule.reach) {
                left.take(row);
                order[at] = row;
                at += 1;
            }
        }
        while at < end {
            let before = at.checked_sub(rule.reach).map(|before| order[before]);
            let mut best = (u32::MAX, u32::MAX, u32::MAX);
            left.candidates(before, |row| best = best.min(criteria.judge(&order, at, row, best)));
            left.take(best.2);
            order[at] = best.2;
            at += 1;
        }
    }
    Ok(order)
}

/// List of all rows in a sorted order, from which rows are taken.
struct List {
    /// Row at each position, and position of each row.
    rows: Buffer<u32>,
    places: Buffer<u32>,
    /// Link from each position to one at or after it, which leads to the next remaining row; `rows.len()` at
    /// the end.
    next: Buffer<u32>,
    /// Link from one more than each position to one more than a position at or before it, which leads to the
    /// previous remaining row; 0 at the beginning.
    before: Buffer<u32>,
}

/// Follows links to a position that links to itself, and shortens them on the way.
fn follow(links: &mut [u32], mut at: u32) -> u32 {
    while links[at as usize] != at {
        let on = links[links[at as usize] as usize];
        links[at as usize] = on;
        at = on;
    }
    at
}

impl List {
    /// Builds the list of rows sorted by falling load, if `by_load`, then by `key`, then by number.
    fn new(
        allocator: &Arc<Allocator>,
        criteria: &Criteria<'_>,
        key: impl Fn(u32, u32) -> std::cmp::Ordering + Sync,
    ) -> Result<Self> {
        let count = criteria.loads.len();
        let mut rows = numbers(allocator, count)?;
        let class = |row: u32| if criteria.rule.by_load { !criteria.loads[row as usize] } else { 0 };
        pool::run(|| {
            rows.par_sort_unstable_by(|&a, &b| {
                class(a).cmp(&class(b)).then_with(|| key(a, b)).then(a.cmp(&b))
            });
        });
        let mut places = Buffer::<u32>::zeroed(allocator, count)?;
        rows.iter().enumerate().for_each(|(place, &row)| places[row as usize] = place as u32);
        Ok(List {
            rows,
            places,
            next: numbers(allocator, count + 1)?,
            before: numbers(allocator, count + 1)?,
        })
    }

    fn take(&mut self, row: u32) {
        let place = self.places[row as usize];
        self.next[place as usize] = place + 1;
        self.before[place as usize + 1] = place;
    }

    /// Calls `f` with up to `steps` remaining rows at positions from `first` on and before `end`.
    fn forward(&mut self, first: u32, end: u32, steps: usize, mut f: impl FnMut(u32)) {
        let mut place = first;
        for _ in 0..steps {
            place = follow(&mut self.next, place);
            if place >= end {
                return;
            }
            f(self.rows[place as usize]);
            place += 1;
        }
    }

    /// Calls `f` with up to `steps` remaining rows at positions before `end` and not before `first`, in
    /// descending order.
    fn backward(&mut self, first: u32, end: u32, steps: usize, mut f: impl FnMut(u32)) {
        let mut after = end;
        for _ in 0..steps {
            after = follow(&mut self.before, after);
            if after <= first {
                return;
            }
            f(self.rows[after as usize - 1]);
            after -= 1;
        }
    }
}

/// Finder of candidates: remaining rows that are near in one of the lists.
struct Near {
    lists: Vec<List>,
    /// Range of positions of the current load class, the same in all lists.
    class: std::ops::Range<u32>,
    /// Step at which each row was last a candidate.
    seen: Buffer<u32>,
    now: u32,
}

/// Index of the last of [`LISTS`], sorted by the number of ones.
const BY_ONES: usize = LISTS - 1;

impl Near {
    fn new(allocator: &Arc<Allocator>, criteria: &Criteria<'_>) -> Result<Self> {
        let masks = criteria.masks;
        let rows = masks.rows();
        let mut hashes = Buffer::<[u32; HASHES]>::zeroed(allocator, rows)?;
        pieces::for_each(pieces::each(&mut hashes), |row, least| *least = hashes_of(masks.of(row as u32)));
        let three = |row: u32, at: usize| {
            let least = &hashes[row as usize];
            [least[at % HASHES], least[(at + 1) % HASHES], least[(at + 2) % HASHES]]
        };
        let mut lists = Vec::with_capacity(LISTS);
        for at in 0..HASHES {
            lists.push(List::new(allocator, criteria, |a, b| three(a, at).cmp(&three(b, at)))?);
        }
        lists.push(List::new(allocator, criteria, |a, b| gray::compare(masks.of(a), masks.of(b)))?);
        lists.push(List::new(allocator, criteria, |_, _| std::cmp::Ordering::Equal)?);
        lists.push(List::new(allocator, criteria, |a, b| masks.of(a).len().cmp(&masks.of(b).len()))?);
        Ok(Near { lists, class: 0..0, seen: Buffer::zeroed(allocator, rows)?, now: 0 })
    }

    /// Restricts candidates to the next `rows` rows by falling load.
    fn open(&mut self, rows: u32) {
        self.class = self.class.end..self.class.end + rows;
    }

    /// Calls `f` once with each remaining row that may be near `before`, or with the first rows of the lists
    /// if there is no row before.
    fn candidates(&mut self, before: Option<u32>, mut f: impl FnMut(u32)) {
        let Near { lists, class, seen, now } = self;
        // `now` cannot overflow: there are fewer than 2³¹ rows, and one step for each.
        *now += 1;
        let mut new = |row: u32| {
            if seen[row as usize] != *now {
                seen[row as usize] = *now;
                f(row);
            }
        };
        for (at, list) in lists.iter_mut().enumerate() {
            if let Some(before) = before {
                let place = list.places[before as usize].clamp(class.start, class.end);
                list.forward(place, class.end, STEPS, &mut new);
                list.backward(class.start, place, STEPS, &mut new);
            }
            if at == BY_ONES || before.is_none() {
                list.forward(class.start, class.end, STEPS, &mut new);
            }
        }
    }

    fn take(&mut self, row: u32) {
        self.lists.iter_mut().for_each(|list| list.take(row));
    }
}

/// Returns the minimum of each hash over the ones of a mask.
fn hashes_of(ones: &[u32]) -> [u32; HASHES] {
    let mut least = [u32::MAX; HASHES];
    for &bit in ones {
        for (seed, least) in least.iter_mut().enumerate() {
            let hash = split_mix(u64::from(bit) << 2 | seed as u64, 0);
            *least = (*least).min(hash as u32);
        }
    }
    least
}

//! The symbolic phase: finds the distinct columns of each row of the product, counts them, and keeps them where
//! memory permits. It is generic over index types alone.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Instant;

use super::lists::{self, Form, Lists, Room};
use super::numeric::is_wide;
use super::places::{list_new, order, pattern_changed, Key, Places, Rule};
use super::rows::{find_steps, follows, is_far, product_step, Ahead, Array, NEW, SAME};
use super::scratch::{Needs, Scratch, Set};
use super::window;
use crate::backend::host::operand::{Factor, Shared};
use crate::error::Result;
use crate::memory::{Buffer, Context};

/// Result of the symbolic phase.
#[derive(Debug)]
pub struct Counted {
    /// Row offsets of the product: rows + 1, with base 0.
    pub offsets: Buffer<i64>,
    /// Step from the row before to each row ([`Factor::step`]).
    pub steps: Buffer<u8>,
    /// Step from the row before to each row of the right factor; empty if no row of the left factor follows from
    /// the row before.
    pub right_steps: Buffer<u8>,
    /// True if many rows of the right factor repeat the row before.
    pub repeats: bool,
    /// Fingerprint of the factors' patterns.
    pub fingerprint: u64,
}

/// Returns the fingerprint of two factors' patterns.
pub fn fingerprint(left: &Factor, right: &Factor) -> u64 {
    left.fingerprint().wrapping_mul(5).wrapping_add(right.fingerprint())
}

/// Finds the columns of rows of a product. Their order depends on the matrices alone: that of the first
/// products, except for rows found in a window, which ascend; or all rows ascend.
#[derive(Clone, Copy)]
pub struct Finder<'a, K> {
    left: &'a Factor<'a>,
    right: &'a Factor<'a>,
    /// Column indices of the right factor.
    indices: &'a [K],
    /// Steps of the right factor's rows, if so many of them repeat the row before that repeated rows are left out.
    repeats: Option<&'a [u8]>,
    rule: Rule,
    sorted: bool,
    /// True if rows of the right factor are prefetched.
    far: bool,
}

impl<'a, K: Key> Finder<'a, K> {
    /// Creates it for left · right.
    pub fn new(
        left: &'a Factor,
        right: &'a Factor,
        indices: &'a [K],
        repeats: Option<&'a [u8]>,
        (rule, sorted): (Rule, bool),
    ) -> Self {
        let far = is_far(left, right);
        let mut finder = Finder { left, right, indices, repeats, rule, sorted, far };
        let row_of = |row| (finder.most(row), finder.widest(finder.most(row)));
        if is_wide::<K>() || !window::suits(left, right, indices, !sorted, row_of) {
            finder.rule.window = 0;
        }
        finder
    }

    /// Returns the largest number of columns that a row may have by its number of products.
    pub fn most(&self, row: usize) -> usize {
        let met = self.left.range(row).map(|position| self.right.range(self.left.col(position)).len());
        met.fold(0, usize::saturating_add).min(self.right.cols)
    }

    /// Returns the widest window of a row of at most `most` entries.
    fn widest(&self, most: usize) -> usize {
        let spread = if self.sorted { window::SPREAD_SORTED } else { window::SPREAD };
        self.rule.window.min(most.saturating_mul(spread))
    }

    /// Returns the look-up of rows of the right factor.
    #[inline(always)]
    pub fn ahead(&self) -> Ahead<'_> {
        let array = [Array::of(self.indices)];
        Ahead::new(self.left, self.right, if self.far { &array } else { &[] })
    }

    /// Writes the columns of a row of at most `most` to the thread's list, where there is room for `room` and one
    /// more, and returns their number.
    #[inline]
    pub fn find<const BRANCH: bool, T>(
        &self,
        set: &mut Set<'_, K, T>,
        ahead: &mut Ahead<'_>,
        row: usize,
        most: usize,
        room: usize,
    ) -> usize {
        let list = &mut set.row.list[..room + 1];
        let (right, indices) = (self.right, self.indices);
        if !is_wide::<K>() && self.rule.window > 0 {
            let span = window::span((self.left, right), ahead, row, indices, most, self.widest(most));
            let of_right = (indices, right.base, right.cols);
            let count = span.and_then(|span| set.window.list(ahead, row, of_right, span, list));
            if let Some(count) = count {
                return count;
            }
        }
        let count = if self.rule.array(room, right.cols) {
            self.walk::<BRANCH, _>(&mut set.array, ahead, row, room, list)
        } else {
            self.walk::<false, _>(&mut set.hash, ahead, row, room, list)
        };
        if self.sorted {
            order(&mut list[..count], set.row.bits, set.row.spare);
        }
        count
    }

    fn walk<const BRANCH: bool, P: Places<K>>(
        &self,
        places: &mut P,
        ahead: &mut Ahead<'_>,
        row: usize,
        room: usize,
        list: &mut [K],
    ) -> usize {
        places.begin(room);
        let base = self.right.base;
        match self.repeats {
            Some(steps) => self.left.meet_groups(row, (self.right, steps), usize::MAX, |_, entries, _| {
                places.list::<BRANCH, _>(&self.indices[entries], base, list);
            }),
            None => ahead.walk(row, self.indices, |row| places.list::<BRANCH, _>(row, base, list)),
        }
        if places.count() > room {
            pattern_changed();
        }
        places.count()
    }

    /// Returns whether [`Self::find_rows`] finds all rows.
    fn is_plain(&self) -> bool {
        self.rule.window == 0 && self.repeats.is_none() && self.rule.array(0, self.right.cols)
    }

    /// Does the same for several rows, without what rows may need otherwise: windows, a table, or looking for rows
    /// of the right factor that repeat. It writes the columns to `to`, row behind row or, with `again`, each row at
    /// its start, and calls `found(row, columns)`.
    #[inline(always)]
    fn find_rows<const BRANCH: bool, T>(
        &self,
        set: &mut Set<'_, K, T>,
        rows: Range<usize>,
        (to, again): (&mut [K], bool),
        mut found: impl FnMut(usize, &[K]),
    ) {
        let (base, mut at, mut ahead) = (self.right.base, 0, self.ahead());
        for row in rows {
            let (slots, mark) = set.array.stamp();
            let (list, mut count) = (&mut to[at..], 0);
            ahead.walk(row, self.indices, |row| {
                count = list_new::<BRANCH, _, _>(slots, mark, (row, base), list, count);
            });
            let list = &mut list[..count];
            if self.sorted {
                order(list, set.row.bits, set.row.spare);
            }
            found(row, list);
            at += if again { 0 } else { count };
        }
    }
}

/// Finds out which of two codes is faster that give the same results: some items of rows take turns, at first and
/// from time to time. No property of a matrix tells which, and the first rows of a mesh are not like all others.
#[derive(Debug)]
struct Trial {
    begun: AtomicUsize,
    /// Least time of each code.
    least: [AtomicU64; 2],
}

impl Trial {
    /// Items that are not measured, since memory is used for the first time there.
    const WARM: usize = 2;
    /// Items that take turns.
    const ITEMS: usize = 8;
    /// Items after which others take turns.
    const PERIOD: usize = 256;

    const fn new() -> Self {
        Trial { begun: AtomicUsize::new(0), least: [const { AtomicU64::new(u64::MAX) }; 2] }
    }

    /// Calls `work` with the code for an item of this much work.
    #[inline(always)]
    fn run<R>(&self, size: usize, work: impl FnOnce(bool) -> R) -> R {
        let [first, second] = &self.least;
        let turn = self.begun.fetch_add(1, Ordering::Relaxed) % Self::PERIOD;
        if turn >= Self::ITEMS {
            return work(second.load(Ordering::Relaxed) < first.load(Ordering::Relaxed));
        }
        if turn == 0 {
            self.least.iter().for_each(|least| least.store(u64::MAX, Ordering::Relaxed));
        }
        let start = Instant::now();
        let result = work(turn % 2 == 1);
        // In units of which a product takes some thousands.
        let time = (start.elapsed().as_nanos() as u64).saturating_mul(1 << 10) / (size as u64).max(1);
        if turn >= Self::WARM {
            self.least[turn % 2].fetch_min(time, Ordering::Relaxed);
        }
        result
    }
}

/// Least numbers for which room is allocated: 64 KiB.
const LEAST: i64 = 1 << 15;

/// Returns the room that the rest of the items will take, in proportion to what those that are done took, and a
/// twentieth more; `None` if none is done. Where that was too little before, at least an eighth is added.
fn expect(listed: i64, done: i64, rest: i64) -> Option<i64> {
    let share = listed as f64 / done as f64;
    (listed > 0 && done > 0).then(|| ((rest as f64 * share * 1.05) as i64).max(listed / 8))
}

/// Counts the entries of left · right, and lists their columns where there is memory for them. `products`
/// bounds those of each row. It allocates the result, one byte per row of `right`, and `sets` accumulators for
/// the largest row and lists of the largest item.
pub fn count_entries<K: Key>(
    cx: &Context,
    (left, right): (&Factor, &Factor),
    products: &[i64],
    items: &[i64],
    sets: usize,
    (rule, form): (Rule, Form),
) -> Result<(Counted, Option<Lists>)> {
    let cols = right.cols;
    let most = |row: usize| (products[row] as usize).min(cols);
    let follow = follows(left, right, |row| products[row] as usize);
    let right_steps = if follow { find_steps(cx, right)? } else { Buffer::zeroed(&cx.allocator, 0)? };
    let mut copy = None;
    let indices = right.indices.to_slice(cx, &mut copy)?;
    let mut offsets = Buffer::<i64>::zeroed(&cx.allocator, left.rows + 1)?;
    let mut steps = Buffer::<u8>::zeroed(&cx.allocator, left.rows)?;
    // Rows are added together only if none has a column twice, whose sums would change their order.
    let repeats = 8 * right_steps.iter().filter(|&&step| step == SAME).count() > right.rows
        && (0..right.rows).all(|row| indices[right.range(row)].is_sorted_by(|col, next| col < next));
    let finder = Finder::new(left, right, indices, repeats.then_some(&right_steps[..]), (rule, form.sorted));

    let count = items.len() - 1;
    let rows_of = |item: usize| items[item] as usize..items[item + 1] as usize;
    // The most numbers that the columns of each item may take.
    let mut bounds = Buffer::<i64>::zeroed(&cx.allocator, count)?;
    for (item, bound) in bounds.iter_mut().enumerate() {
        *bound = rows_of(item).map(|row| lists::most::<K>(most(row))).fold(0, usize::saturating_add) as i64;
    }
    let largest = bounds.iter().max().map_or(0, |&bound| bound as usize);
    let needs = Needs::of::<K>((0..left.rows).map(most), cols, finder.rule).to_find(largest, form.sorted);
    let mut scratch = Scratch::<K, u8>::new(cx, sets, needs)?;
    let mut lists = match scratch.packs(largest).then(|| Lists::new(cx, count, form)) {
        Some(Err(error)) if !error.lacks_memory() => return Err(error),
        lists => lists.and_then(Result::ok),
    };

    let (counts, shared_steps) = (Shared::new(&mut offsets[1..]), Shared::new(&mut steps));
    // Finds the columns of an item, and with `keep` packs them and returns how many numbers they take.
    let find_plain = |set: &mut Set<'_, K, u8>, rows: Range<usize>, keep: bool, branch: bool| {
        let mut at = 0;
        // The memory is taken out for the time of the item.
        let (packed, list) = (std::mem::take(&mut set.packed), std::mem::take(&mut set.row.list));
        let in_place = keep && form.is_plain();
        let (columns, rest): (&mut [K], &mut [u16]) = match in_place {
            true => (lists::columns(&mut packed[..]), &mut []),
            false => (&mut list[..], &mut packed[..]),
        };
        let found = |row: usize, columns: &[K]| {
            if columns.len() > most(row) {
                pattern_changed();
            }
            at += match (keep, in_place) {
                (_, true) => lists::numbers::<K>() * columns.len(),
                (true, false) => form.pack(columns, &mut rest[at..]),
                (false, false) => 0,
            };
            // SAFETY: as below.
            unsafe { counts.set(row, columns.len() as i64) };
        };
        match branch {
            true => finder.find_rows::<true, _>(set, rows, (columns, !in_place), found),
            false => finder.find_rows::<false, _>(set, rows, (columns, !in_place), found),
        }
        (set.packed, set.row.list) = (packed, list);
        at
    };
    let plain = !follow && finder.is_plain();
    let find_item = |set: &mut Set<'_, K, u8>, item: usize, keep: bool, branch: bool| {
        let rows = rows_of(item);
        if plain {
            return find_plain(set, rows, keep, branch);
        }
        let (mut at, mut previous, mut ahead) = (0, 0, finder.ahead());
        let first = rows.start;
        for row in rows {
            let most = most(row);
            let step = if most == 0 || !follow { NEW } else { product_step(left, row, &right_steps) };
            let count = match most {
                0 => 0,
                _ if row > first && step != NEW => {
                    set.row.follow(previous, step);
                    previous
                }
                _ if branch => finder.find::<true, _>(set, &mut ahead, row, most, most),
                _ => finder.find::<false, _>(set, &mut ahead, row, most, most),
            };
            previous = count;
            if keep {
                at += form.pack(&set.row.list[..count], &mut set.packed[at..]);
            }
            // SAFETY: both are borrowed until all rows are counted, and each row is in one item, which one
            // thread processes.
            unsafe {
                counts.set(row, count as i64);
                shared_steps.set(row, step);
            }
        }
        at
    };
    // Rounds, each with room for columns that the calling thread has allocated. The items before `begun` are
    // done but for those in `again`, whose columns had no room.
    let (mut begun, mut again, mut listed, trial) = (0, Vec::new(), 0, Trial::new());
    let all = bounds.iter().sum::<i64>();
    while begun < count || !again.is_empty() {
        let of_again = again.iter().map(|&item: &usize| bounds[item]);
        let (least, rest) = (of_again.clone().max(), bounds[begun..].iter().copied().chain(of_again).sum());
        let room = lists.as_mut().map(|lists| {
            let first = (left.indices.len() + right.indices.len()) as i64;
            let guess = expect(listed, all - rest, rest).unwrap_or(first).max(LEAST).max(least.unwrap_or(0));
            lists.grow(cx, guess.min(rest) as usize)
        });
        let room = match room {
            Some(Ok(room)) => Some(room),
            Some(Err(error)) if !error.lacks_memory() => return Err(error),
            _ => {
                lists = None;
                again.clear();
                None
            }
        };
        let (next, used, full) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicBool::new(false));
        let item_at = |turn: usize| match again.get(turn) {
            Some(&item) => Some(item),
            None => Some(begun + turn - again.len()).filter(|&item| item < count),
        };
        let take = || match full.load(Ordering::Relaxed) {
            true => None,
            false => item_at(next.fetch_add(1, Ordering::Relaxed)),
        };
        scratch.for_each(take, |set, item| {
            let size = products[rows_of(item)].iter().sum::<i64>() as usize;
            let found = trial.run(size, |branch| find_item(set, item, room.is_some(), branch));
            let Some(Room { count, .. }) = room else { return };
            let at = used.fetch_add(found, Ordering::Relaxed);
            if found > 0 && at + found <= count {
                // SAFETY: one thread has the item and this part of the room, and the lists are not used until
                // all threads are done.
                unsafe { room.as_ref().expect("it is there").write(item, at, &set.packed[..found]) };
            } else if found > 0 {
                full.store(true, Ordering::Relaxed);
            }
        });
        let turns = next.into_inner();
        let taken: Vec<usize> = (0..turns.min(again.len())).map(|turn| again[turn]).collect();
        let new = begun..(begun + turns.saturating_sub(again.len())).min(count);
        begun = new.end;
        again.drain(..taken.len());
        if let Some(lists) = &lists {
            let unlisted = taken.into_iter().chain(new).filter(|&item| {
                let rows = rows_of(item);
                lists.lacks(item) && rows.clone().any(|row| offsets[row + 1] > 0)
            });
            again.extend(unlisted.collect::<Vec<_>>());
        }
        listed += used.into_inner() as i64;
    }
    // The sum is at most the number of products, which fits.
    for row in 0..left.rows {
        offsets[row + 1] += offsets[row];
    }
    let fingerprint = fingerprint(left, right);
    Ok((Counted { offsets, steps, right_steps, repeats, fingerprint }, lists))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trial_chooses_the_code_that_takes_less_time() {
        let trial = Trial::new();
        let pause = || std::thread::sleep(std::time::Duration::from_millis(2));
        // Later items may be of another kind.
        for slow in [false, true, false] {
            for _ in 0..Trial::ITEMS {
                trial.run(1, |branch| {
                    if branch == slow {
                        pause()
                    }
                });
            }
            for _ in Trial::ITEMS..Trial::PERIOD {
                assert_eq!(trial.run(1, |branch| branch), !slow);
            }
        }
    }
}

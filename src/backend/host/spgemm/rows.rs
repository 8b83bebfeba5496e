//! The two factors with accesses for Gustavson's algorithm, the multiplications that each row needs, and the
//! division of rows into items of work.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::places::pattern_changed;
use crate::backend::host::operand::{Factor, Ints, Shared};
use crate::backend::host::vector::prefetch;
use crate::error::Result;
use crate::memory::{pieces, pool, Buffer, Context};
use crate::operation::too_many_products;
use crate::types::{Index, IndexType};

/// Distance in entries of the left factor between the entry that is multiplied and the one whose row of the
/// right factor is prefetched into the cache. Rows of the right factor are accessed in no order, and one row
/// is too short to hide the next one's misses: on scattered rows of 4 to 8 entries the prefetch halves the
/// time, on stencils it costs 5%. Distances from 4 to 10 perform alike.
const AHEAD: usize = 6;

/// Minimum number of entries of a right factor whose rows are prefetched: about 12 MiB in fp64.
const FAR: usize = 1 << 20;
/// Minimum number of entries of such a right factor if its rows are short: about 1 MiB in fp64.
const NEAR: usize = 1 << 16;
/// Mean number of entries below which rows are short.
const SHORT: usize = 4;
/// Largest distance of rows of the right factor that count as neighbours: the rows that one row of a stencil needs
/// are next to those that the row before needs.
const CLOSE: usize = 16;

/// Number of entries of the left factor whose rows of the right factor are looked up together, also those of the
/// next rows, by code that is compiled for the types of indices alone: looking up one by one, each with a branch
/// on these types, took half of the time of products whose rows have 5 to 30 entries.
const GROUP: usize = 64;
/// Number of such entries where rows of the right factor are prefetched.
const GROUP_FAR: usize = 16;

/// Numbers of which one task computes the fingerprint.
const FINGERPRINT: usize = 1 << 16;
/// Lanes of a fingerprint: four vectors of any x86-64 processor.
const LANES: usize = 16;

/// Address and element size of an array whose elements are prefetched.
#[derive(Clone, Copy)]
pub struct Array(*const u8, usize);

impl Array {
    /// Describes a slice.
    #[inline(always)]
    pub fn of<T>(slice: &[T]) -> Self {
        Array(slice.as_ptr().cast(), size_of::<T>())
    }

    /// Prefetches an element into the cache; `at` may be out of bounds.
    #[inline(always)]
    fn fetch(self, at: usize) {
        let Array(start, size) = self;
        prefetch(start.wrapping_add(at.wrapping_mul(size)));
    }
}

/// Step of a row whose columns do not follow from those of the row before.
pub const NEW: u8 = 0;
/// Step of a row with the columns of the row before.
pub const SAME: u8 = 1;
/// Step of a row with the columns of the row before, each plus one.
pub const NEXT: u8 = 2;

impl Factor<'_> {
    /// Returns how a row's columns, in their order, follow from those of the row before: [`SAME`] as in a
    /// mesh with several unknowns per node, [`NEXT`] as in a grid, or [`NEW`].
    #[inline]
    pub fn step(&self, row: usize) -> u8 {
        fn step<J: Index>(before: &[J], this: &[J]) -> u8 {
            let by = match (before.first(), this.first()) {
                _ if before.len() != this.len() => return NEW,
                (Some(before), Some(this)) => this.to_i64().wrapping_sub(before.to_i64()),
                _ => return NEXT,
            };
            // Rows that do not follow usually differ in their first or last column.
            let moved = |(before, this): (&J, &J)| this.to_i64() == before.to_i64() + by;
            let ends = before.last().zip(this.last()).is_some_and(moved);
            match by {
                0 if ends && before == this => SAME,
                1 if ends && before.iter().zip(this).all(moved) => NEXT,
                _ => NEW,
            }
        }
        let (before, this) = (self.range(row - 1), self.range(row));
        match self.indices {
            Ints::I32(slice) => step(&slice[before], &slice[this]),
            Ints::I64(slice) => step(&slice[before], &slice[this]),
        }
    }

    /// Calls `f(position, entries, count)` for each group of up to `most` entries of a row, with the positions of
    /// the entries of `right` that its first one multiplies. The entries of a group multiply `count` rows of
    /// `right`, one after the other, that have the same columns; `steps` are those of `right`.
    #[inline(always)]
    pub fn meet_groups(
        &self,
        row: usize,
        (right, steps): (&Factor, &[u8]),
        most: usize,
        mut f: impl FnMut(usize, Range<usize>, usize),
    ) {
        let (mut position, end) = (self.range(row).start, self.range(row).end);
        while position < end {
            let met = self.col(position);
            let mut count = 1;
            while count < most
                && position + count < end
                && steps.get(met + count) == Some(&SAME)
                && self.col(position + count) == met + count
            {
                count += 1;
            }
            f(position, right.range(met), count);
            position += count;
        }
    }

    /// Returns a number that depends on every index and offset and its position.
    pub fn fingerprint(&self) -> u64 {
        fn fingerprint<J: Index>(numbers: &[J]) -> u64 {
            let sum = AtomicU64::new(0);
            pool::for_each(numbers.len().div_ceil(FINGERPRINT), &|piece| {
                let start = piece * FINGERPRINT;
                let numbers = &numbers[start..numbers.len().min(start + FINGERPRINT)];
                // Sums of the numbers, and sums that are rotated before each addition, in lanes for vector code: a
                // single change is never lost, and several ones that leave a sum as it is change the other.
                let (mut sums, mut turned) = ([1_u32; LANES], [0_u32; LANES]);
                let groups = numbers.chunks_exact(LANES);
                let rest = groups.remainder();
                for group in groups {
                    for ((sum, turned), number) in sums.iter_mut().zip(&mut turned).zip(group) {
                        let number = number.to_i64();
                        let number = match J::TYPE {
                            // Vector code would otherwise widen them, which takes most of the time.
                            IndexType::I32 => number as u32,
                            _ => number as u32 ^ (number >> 32) as u32,
                        };
                        *sum = sum.wrapping_add(number);
                        *turned = turned.rotate_left(7).wrapping_add(number);
                    }
                }
                let mut all = piece as u64;
                let lanes = sums.into_iter().chain(turned).map(u64::from);
                for number in lanes.chain(rest.iter().map(|number| number.to_i64() as u64)) {
                    all = (all ^ number).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29);
                }
                sum.fetch_add(all, Ordering::Relaxed);
            });
            sum.into_inner()
        }
        let of = |ints: Ints| match ints {
            Ints::I32(slice) => fingerprint(slice),
            Ints::I64(slice) => fingerprint(slice),
        };
        of(self.offsets).wrapping_mul(3).wrapping_add(of(self.indices))
    }
}

/// Returns whether rows of the right factor are prefetched: where it is larger than second-level caches and its
/// rows are short, or than third-level caches may be, unless most of a sample of rows of `left` meet neighbours of
/// the rows that the row before met. Elsewhere prefetches cost more than they gain.
pub fn is_far(left: &Factor, right: &Factor) -> bool {
    let entries = right.indices.len();
    if entries < FAR && (entries < NEAR || entries >= SHORT * right.rows) {
        return false;
    }
    let (mut all, mut near) = (0, 0);
    for row in sample(left.rows).filter(|&row| row > 0) {
        let (before, this) = (left.range(row - 1), left.range(row));
        all += this.len();
        let close = |&(before, this): &(usize, usize)| left.col(before).abs_diff(left.col(this)) <= CLOSE;
        near += before.zip(this).filter(close).count();
    }
    2 * near <= all
}

/// Rows of the right factor that entries of a row of the left one and of the next rows multiply, looked up together.
pub struct Ahead<'a> {
    left: &'a Factor<'a>,
    right: &'a Factor<'a>,
    /// Arrays of the right factor whose elements are prefetched, the first `fetched` of these.
    arrays: [Array; 2],
    fetched: usize,
    /// First positions and ends of the rows that entries from `first` to `end` multiply.
    found: [[usize; 2]; GROUP],
    first: usize,
    end: usize,
}

impl<'a> Ahead<'a> {
    /// Creates it for left · right. Elements of `arrays`, up to two, at the positions of later entries are
    /// prefetched.
    #[inline(always)]
    pub fn new(left: &'a Factor<'a>, right: &'a Factor<'a>, arrays: &[Array]) -> Self {
        let mut all = [Array::of::<u8>(&[]); 2];
        all[..arrays.len()].copy_from_slice(arrays);
        Ahead { left, right, arrays: all, fetched: arrays.len(), found: [[0; 2]; GROUP], first: 0, end: 0 }
    }

    /// Calls `f(position, entries)` for each entry of a row of the left factor, with the positions of the entries of
    /// the right one that it multiplies. It is fastest if rows come in order.
    #[inline(always)]
    pub fn meet(&mut self, row: usize, mut f: impl FnMut(usize, Range<usize>)) {
        let mut positions = self.left.range(row);
        while !positions.is_empty() {
            if positions.start < self.first || positions.end > self.end {
                self.look_up(positions.start);
            }
            let end = positions.end.min(self.end);
            let found = &self.found[positions.start - self.first..end - self.first];
            for (position, &[first, end]) in (positions.start..).zip(found) {
                f(position, first..end);
            }
            positions.start = end;
        }
    }

    /// Calls `f` with the indices of each row of the right factor that corresponds to an entry of a row of the left
    /// one, in the order of the entries; `indices` are those of the right factor.
    #[inline(always)]
    pub fn walk<J: Index>(&mut self, row: usize, indices: &[J], mut f: impl FnMut(&[J])) {
        self.meet(row, |_, entries| f(&indices[entries]));
    }

    /// Looks up the rows that entries from the one at `start` on multiply.
    #[inline(never)]
    fn look_up(&mut self, start: usize) {
        fn look_up<J: Index, I: Index>(
            (cols, base): (&[J], i64),
            (offsets, right_base): (&[I], i64),
            start: usize,
            arrays: &[Array],
            found: &mut [[usize; 2]],
        ) {
            let row = |position: usize| (cols[position].to_i64() - base) as usize;
            let offset = |row: usize| (offsets[row].to_i64() - right_base) as usize;
            if arrays.is_empty() {
                let (cols, rows) = (&cols[start..start + found.len()], offsets.len().saturating_sub(1));
                for (found, col) in found.iter_mut().zip(cols) {
                    let row = (col.to_i64() - base) as usize;
                    // The compiler needs no other test then.
                    assert!(row < rows);
                    *found = [offset(row), offset(row + 1)];
                }
                return;
            }
            for (position, found) in (start..).zip(found) {
                // First the row offset is fetched, later the row's entries.
                if let Some(far) = cols.get(position + 2 * AHEAD) {
                    Array::of(offsets).fetch((far.to_i64() - base) as usize);
                    let start = offset(row(position + AHEAD));
                    arrays.iter().for_each(|array| array.fetch(start));
                }
                let row = row(position);
                *found = [offset(row), offset(row + 1)];
            }
        }
        if start >= self.left.indices.len() {
            pattern_changed();
        }
        let most = if self.fetched == 0 { GROUP } else { GROUP_FAR };
        let count = most.min(self.left.indices.len() - start);
        (self.first, self.end) = (start, start + count);
        let (base, right_base) = (self.left.base, self.right.base);
        let (arrays, found) = (&self.arrays[..self.fetched], &mut self.found[..count]);
        match (self.left.indices, self.right.offsets) {
            (Ints::I32(cols), Ints::I32(to)) => look_up((cols, base), (to, right_base), start, arrays, found),
            (Ints::I32(cols), Ints::I64(to)) => look_up((cols, base), (to, right_base), start, arrays, found),
            (Ints::I64(cols), Ints::I32(to)) => look_up((cols, base), (to, right_base), start, arrays, found),
            (Ints::I64(cols), Ints::I64(to)) => look_up((cols, base), (to, right_base), start, arrays, found),
        }
    }
}

/// Rows of one parallel task that counts multiplications or compares rows.
const ROWS: usize = 1024;

/// Returns the number of multiplications of each row of left · right, and their sum.
pub fn count_products(cx: &Context, left: &Factor, right: &Factor) -> Result<(Buffer<i64>, i64)> {
    let mut products = Buffer::<i64>::zeroed(&cx.allocator, left.rows)?;
    let too_many = AtomicBool::new(false);
    pieces::for_each(pieces::chunks(&mut products, ROWS), |chunk, counts| {
        let first = chunk * ROWS;
        let fits = match (left.indices, right.offsets) {
            (Ints::I32(cols), Ints::I32(offsets)) => count_met(left, cols, offsets, first, counts),
            (Ints::I32(cols), Ints::I64(offsets)) => count_met(left, cols, offsets, first, counts),
            (Ints::I64(cols), Ints::I32(offsets)) => count_met(left, cols, offsets, first, counts),
            (Ints::I64(cols), Ints::I64(offsets)) => count_met(left, cols, offsets, first, counts),
        };
        if !fits {
            too_many.store(true, Ordering::Relaxed);
        }
    });
    match checked_sum(products.iter().map(|&count| count as usize)) {
        Some(total) if !too_many.into_inner() => Ok((products, total)),
        _ => Err(too_many_products()),
    }
}

/// Writes the number of multiplications of each row from `first` on; `cols` are the columns of `left`, `offsets` those
/// of the right factor. Returns false if a number is larger than 2^63 − 1.
fn count_met<J: Index, I: Index>(
    left: &Factor,
    cols: &[J],
    offsets: &[I],
    first: usize,
    counts: &mut [i64],
) -> bool {
    let (mut all, rows) = (true, offsets.len().saturating_sub(1));
    for (row, count) in (first..).zip(counts) {
        let met = cols[left.range(row)].iter().map(|col| {
            let met = (col.to_i64() - left.base) as usize;
            assert!(met < rows);
            (offsets[met + 1].to_i64() - offsets[met].to_i64()) as usize
        });
        let sum = checked_sum(met);
        all &= sum.is_some();
        *count = sum.unwrap_or(0);
    }
    all
}

/// Returns the sum; `None` if it is larger than 2^63 − 1.
#[inline(always)]
fn checked_sum(terms: impl Iterator<Item = usize>) -> Option<i64> {
    // Without a branch for each term.
    i64::try_from(terms.fold(0_u64, |sum, term| sum.saturating_add(term as u64))).ok()
}

/// Returns a sample of up to 256 of `rows` rows, at distances in the golden ratio: equal distances would meet
/// the same place of every line of a grid.
pub fn sample(rows: usize) -> impl Iterator<Item = usize> {
    (0..rows.min(256) as u64).map(move |i| {
        let part = u128::from(i.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        ((part * rows as u128) >> 64) as usize
    })
}

/// Products a row that rows which follow must save for comparing all rows to pay.
const SAVED: usize = 64;

/// Returns whether it pays to look for rows of left · right that follow from the row before: more than a third
/// of a sample do, or those that do save enough `products`, of which a row has this many.
pub fn follows(left: &Factor, right: &Factor, products: impl Fn(usize) -> usize) -> bool {
    let (mut followers, mut saved, mut all) = (0, 0, 0_usize);
    // Steps of the right factor are only looked for where it has this many entries ([`find_steps`]).
    let has_steps = right.indices.len() / 2 >= right.rows;
    let next = |row: usize| has_steps && row > 0 && right.step(row) == NEXT;
    for row in sample(left.rows).filter(|&row| row > 0) {
        if !left.range(row).is_empty() && step_of_product(left, row, next) != NEW {
            followers += 1;
            saved += products(row);
        }
        all += 1;
    }
    3 * followers > all || saved / SAVED > all
}

/// Returns the step of each row of a factor ([`Factor::step`]). The result is empty for a factor with fewer
/// than two entries per row, where following a row saves nothing.
pub fn find_steps(cx: &Context, factor: &Factor) -> Result<Buffer<u8>> {
    let worth = factor.indices.len() / 2 >= factor.rows;
    let mut steps = Buffer::<u8>::zeroed(&cx.allocator, if worth { factor.rows } else { 0 })?;
    let rows = steps.len();
    let shared = Shared::new(&mut steps);
    // This uses the team of threads for products, since handing over to the analysis pool would take most of
    // the time.
    pool::for_each(rows.div_ceil(ROWS), &|chunk| {
        for row in (chunk * ROWS).max(1)..rows.min((chunk + 1) * ROWS) {
            // SAFETY: `steps` is borrowed until all are done, and chunks are disjoint.
            unsafe { shared.set(row, factor.step(row)) };
        }
    });
    Ok(steps)
}

/// Returns the step of a row of left · right, whose products are then also in the same order as those of the
/// row before; `steps` are those of the right factor.
#[inline]
pub fn product_step(left: &Factor, row: usize, steps: &[u8]) -> u8 {
    step_of_product(left, row, |met| steps.get(met) == Some(&NEXT))
}

/// The same; `next` tells whether the step of a row of the right factor is [`NEXT`].
#[inline]
fn step_of_product(left: &Factor, row: usize, next: impl Fn(usize) -> bool) -> u8 {
    match if row == 0 { NEW } else { left.step(row) } {
        NEXT if !left.range(row).all(|position| next(left.col(position))) => NEW,
        step => step,
    }
}

/// Minimum work of an item: about 20 µs, compared with at most a microsecond for handing it to a thread.
const ITEM_WORK: i64 = 1 << 14;

/// Maximum number of items: enough to balance the load of some hundred threads.
const ITEMS: i64 = 4096;

/// Work of a row besides its multiplications (begin, sort, write), in multiplications, so that empty rows are
/// distributed as well.
const ROW_WORK: i64 = 8;

/// Divides the rows into items of about the same work; item i is the rows `items[i]..items[i + 1]`. The
/// division depends on the matrices alone. `total` is the sum of `products`.
pub fn cut_items(cx: &Context, products: &[i64], total: i64) -> Result<Buffer<i64>> {
    let total = total.saturating_add(ROW_WORK.saturating_mul(products.len() as i64));
    let target = ITEM_WORK.max(total / ITEMS);
    // Every item but the last has at least this much work.
    let mut items = Buffer::<i64>::zeroed(&cx.allocator, (total / target) as usize + 2)?;
    let (mut count, mut work) = (0, 0i64);
    for (row, &products) in products.iter().enumerate() {
        work = work.saturating_add(products.saturating_add(ROW_WORK));
        if work >= target {
            count += 1;
            items[count] = row as i64 + 1;
            work = 0;
        }
    }
    // The remaining items are empty.
    items[count + 1..].fill(products.len() as i64);
    Ok(items)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Calls `f` with a factor that has these rows.
    fn with_rows_of(rows: &[&[i32]], f: impl FnOnce(Factor)) {
        let indices: Vec<i32> = rows.concat();
        let ends = rows.iter().scan(0, |end, row| {
            *end += row.len() as i64;
            Some(*end)
        });
        let offsets: Vec<i64> = std::iter::once(0).chain(ends).collect();
        let (offsets, indices) = (offsets[..].into(), indices[..].into());
        f(Factor { rows: rows.len(), cols: 100, base: 0, offsets, indices });
    }

    #[test]
    fn steps_compare_every_column() {
        let rows: [(&[i32], u8); 12] = [
            (&[1, 4, 9], NEW),
            (&[1, 4, 9], SAME),
            (&[2, 5, 10], NEXT),
            (&[3, 7, 11], NEW),
            (&[3, 8, 11], NEW),
            (&[3, 8], NEW),
            (&[5, 10], NEW),
            (&[10, 5], NEW),
            (&[11, 6], NEXT),
            (&[], NEW),
            (&[], NEXT),
            (&[7], NEW),
        ];
        let (columns, steps): (Vec<_>, Vec<_>) = rows.into_iter().unzip();
        with_rows_of(&columns, |factor| {
            let found: Vec<_> = (1..columns.len()).map(|row| factor.step(row)).collect();
            assert_eq!(found, steps[1..]);
        });
    }

    #[test]
    fn rows_of_a_product_follow_where_both_factors_do() {
        let right: [&[i32]; 5] = [&[0, 8], &[1, 9], &[2, 10], &[3, 12], &[4, 13]];
        let left: [&[i32]; 5] = [&[0, 2], &[1, 3], &[1, 3], &[0, 3], &[1, 4]];
        with_rows_of(&right, |right| {
            let steps: Vec<_> =
                (0..right.rows).map(|row| if row == 0 { NEW } else { right.step(row) }).collect();
            assert_eq!(steps, [NEW, NEXT, NEXT, NEW, NEXT]);
            with_rows_of(&left, |left| {
                let found: Vec<_> = (0..left.rows).map(|row| product_step(&left, row, &steps)).collect();
                // Row 1 of `left` multiplies row 3 of `right`, which does not follow from its predecessor.
                assert_eq!(found, [NEW, NEW, SAME, NEW, NEXT]);
                assert!((0..left.rows).all(|row| product_step(&left, row, &[]) != NEXT));
            });
        });
    }

    #[test]
    fn rows_are_looked_up_in_any_order() {
        // Row i of the right factor has i entries, and row i of the left one multiplies 3 · i of its rows.
        let right: Vec<Vec<i32>> = (0..40).map(|row| (0..row).collect()).collect();
        let left: Vec<Vec<i32>> =
            (0..60).map(|row| (0..3 * row).map(|at| (row + 7 * at) % 40).collect()).collect();
        let slices = |rows: &'static [Vec<i32>]| -> Vec<&[i32]> { rows.iter().map(Vec::as_slice).collect() };
        let (left, right): (&'static [_], &'static [_]) = (left.leak(), right.leak());
        with_rows_of(&slices(right), |right_factor| {
            with_rows_of(&slices(left), |left_factor| {
                let arrays = [Array::of::<i32>(&[])];
                for arrays in [&[][..], &arrays] {
                    let mut ahead = Ahead::new(&left_factor, &right_factor, arrays);
                    for row in (0..60).chain([3, 50, 2, 58, 59, 0]) {
                        let mut found = Vec::new();
                        ahead.meet(row, |position, entries| {
                            assert_eq!(position, left_factor.start(row) + found.len());
                            assert_eq!(entries.start, right_factor.start(entries.len()));
                            found.push(entries.len() as i32);
                        });
                        assert_eq!(found, left[row]);
                    }
                }
            });
        });
    }

    #[test]
    fn neighbours_are_not_prefetched() {
        let n = 1 << 16;
        let (offsets, ones): (Vec<i32>, Vec<i32>) = ((0..=n).collect(), vec![0; n as usize]);
        let right = Factor {
            rows: n as usize,
            cols: 1,
            base: 0,
            offsets: offsets[..].into(),
            indices: ones[..].into(),
        };
        let is_far = |indices: &[i32], right: &Factor| {
            let left = Factor { cols: n as usize, indices: indices.into(), ..*right };
            super::is_far(&left, right)
        };
        let near: Vec<i32> = (0..n).collect();
        let far: Vec<i32> = (0..n).map(|row| (i64::from(row) * 7919 % i64::from(n)) as i32).collect();
        assert!(is_far(&far, &right));
        assert!(!is_far(&near, &right));
        // A small factor is in the cache.
        let small = Factor { rows: n as usize - 1, indices: ones[1..].into(), ..right };
        assert!(!super::is_far(&Factor { cols: small.rows, ..small }, &small));
    }

    #[test]
    fn items_are_whole_and_of_about_the_same_work() {
        let cx = super::super::tests::unlimited();
        for (products, items) in [
            (vec![], vec![0, 0]),
            (vec![1; 10], vec![0, 10]),
            (vec![ITEM_WORK - ROW_WORK, 0, ITEM_WORK, 3], vec![0, 1, 3, 4]),
            (vec![5, ITEM_WORK], vec![0, 2, 2]),
        ] {
            let total = products.iter().sum();
            assert_eq!(cut_items(&cx, &products, total).unwrap()[..], items);
        }
        let products = vec![i64::MAX / 3; 3];
        let items = cut_items(&cx, &products, i64::MAX).unwrap();
        assert_eq!((items[0], items[1], items[2], items[3]), (0, 1, 2, 3));
        assert!(items[3..].iter().all(|&end| end == 3));
    }

    #[test]
    fn sums_that_overflow_are_noticed() {
        assert_eq!(checked_sum([1, 2, 3].into_iter()), Some(6));
        assert_eq!(checked_sum([i64::MAX as usize, 1].into_iter()), None);
        assert_eq!(checked_sum([usize::MAX].into_iter()), None);
    }
}

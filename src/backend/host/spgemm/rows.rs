//! The two factors with accesses for Gustavson's algorithm, the multiplications that each row needs, and the
//! division of rows into items of work.

use std::mem::MaybeUninit;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::backend::host::operand::{Factor, Ints, Shared};
use crate::backend::host::vector::prefetch;
use crate::error::Result;
use crate::memory::{pieces, pool, Buffer, Context};
use crate::operation::too_many_products;
use crate::types::Index;

/// Distance in entries of the left factor between the entry that is multiplied and the one whose row of the
/// right factor is prefetched into the cache. Rows of the right factor are accessed in no order, and one row
/// is too short to hide the next one's misses: on scattered rows of 4 to 8 entries the prefetch halves the
/// time, on stencils it costs 5%. Distances from 4 to 10 perform alike.
const AHEAD: usize = 6;

/// Entries of a right factor that is prefetched: about 12 MiB in fp64.
const FAR: usize = 1 << 20;
/// Entries from which on a right factor of short rows is prefetched: about 1 MiB in fp64.
const NEAR: usize = 1 << 16;
/// Entries a row below which rows are short.
const SHORT: usize = 4;

/// Number of entries of the left factor whose rows of the right factor are looked up together, by code that
/// is compiled for the types of indices alone: looking up one by one, each with a branch on these types, took
/// half of the time of products whose rows have 5 to 30 entries.
const GROUP: usize = 16;

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

    /// Calls `f(position, entries)` for each entry of a row, with the positions of the entries of `right`
    /// that it multiplies. Elements of `arrays` at the positions of later entries are prefetched.
    #[inline(always)]
    pub fn meet(&self, row: usize, right: &Factor, arrays: &[Array], mut f: impl FnMut(usize, Range<usize>)) {
        let (mut found, positions) = ([const { MaybeUninit::uninit() }; GROUP], self.range(row));
        let mut start = positions.start;
        while start < positions.end {
            let found = self.look_up(start, right, arrays, &mut found[..(positions.end - start).min(GROUP)]);
            for (position, &[first, end]) in (start..).zip(found) {
                f(position, first..end);
            }
            start += found.len();
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
                        let number = number as u32 ^ (number >> 32) as u32;
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

    /// Returns whether this right factor's rows are prefetched: where it is larger than second-level caches and
    /// its rows are short, or than third-level caches may be. Elsewhere prefetches cost more than they gain.
    #[inline(always)]
    fn is_far(&self) -> bool {
        let entries = self.indices.len();
        entries >= FAR || entries >= NEAR && entries < SHORT * self.rows
    }

    /// Returns the first position and the end of the rows of `right` that entries from the one at `start` on
    /// multiply, written to
    /// `found`.
    fn look_up<'f>(
        &self,
        start: usize,
        right: &Factor,
        arrays: &[Array],
        found: &'f mut [MaybeUninit<[usize; 2]>],
    ) -> &'f [[usize; 2]] {
        fn look_up<J: Index, I: Index>(
            (cols, base): (&[J], i64),
            (offsets, right_base): (&[I], i64),
            (start, far): (usize, bool),
            arrays: &[Array],
            found: &mut [MaybeUninit<[usize; 2]>],
        ) {
            let row = |position: usize| (cols[position].to_i64() - base) as usize;
            let offset = |row: usize| (offsets[row].to_i64() - right_base) as usize;
            if !far {
                let cols = &cols[start..start + found.len()];
                for (found, col) in found.iter_mut().zip(cols) {
                    let row = (col.to_i64() - base) as usize;
                    found.write([offset(row), offset(row + 1)]);
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
                found.write([offset(row), offset(row + 1)]);
            }
        }
        let (base, right_base, at) = (self.base, right.base, (start, right.is_far()));
        match (self.indices, right.offsets) {
            (Ints::I32(cols), Ints::I32(to)) => look_up((cols, base), (to, right_base), at, arrays, found),
            (Ints::I32(cols), Ints::I64(to)) => look_up((cols, base), (to, right_base), at, arrays, found),
            (Ints::I64(cols), Ints::I32(to)) => look_up((cols, base), (to, right_base), at, arrays, found),
            (Ints::I64(cols), Ints::I64(to)) => look_up((cols, base), (to, right_base), at, arrays, found),
        }
        // SAFETY: all of them have been written.
        unsafe { std::slice::from_raw_parts(found.as_ptr().cast(), found.len()) }
    }
}

/// Calls `f` with the indices of each row of `right` that corresponds to an entry of a row of `left`, in the
/// order of the entries; `indices` are those of `right`.
#[inline(always)]
pub fn walk<J: Index>(left: &Factor, row: usize, right: &Factor, indices: &[J], mut f: impl FnMut(&[J])) {
    left.meet(row, right, &[Array::of(indices)], |_, entries| f(&indices[entries]));
}

/// Rows of one parallel task that counts multiplications or compares rows.
const ROWS: usize = 1024;

/// Returns the number of multiplications of each row of left · right, and their sum.
pub fn count_products(cx: &Context, left: &Factor, right: &Factor) -> Result<(Buffer<i64>, i64)> {
    let mut products = Buffer::<i64>::zeroed(&cx.allocator, left.rows)?;
    let too_many = AtomicBool::new(false);
    pieces::for_each(pieces::chunks(&mut products, ROWS), |chunk, counts| {
        for (i, count) in counts.iter_mut().enumerate() {
            let met = left.range(chunk * ROWS + i).map(|position| right.range(left.col(position)).len());
            *count = checked_sum(met).unwrap_or_else(|| {
                too_many.store(true, Ordering::Relaxed);
                0
            });
        }
    });
    match checked_sum(products.iter().map(|&count| count as usize)) {
        Some(total) if !too_many.into_inner() => Ok((products, total)),
        _ => Err(too_many_products()),
    }
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

/// Returns whether it pays to look for rows that follow from the row before: more than a third of a sample
/// do, or those that do save enough `products`, of which a row has this many.
pub fn follows(factor: &Factor, products: impl Fn(usize) -> usize) -> bool {
    let (mut followers, mut saved, mut all) = (0, 0, 0_usize);
    for row in sample(factor.rows).filter(|&row| row > 0) {
        if !factor.range(row).is_empty() && factor.step(row) != NEW {
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
    match if row == 0 { NEW } else { left.step(row) } {
        NEXT if !left.range(row).all(|position| steps.get(left.col(position)) == Some(&NEXT)) => NEW,
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

//! Accumulators of one row of a product. They assign each distinct column a *place*, a number 0, 1, 2 … in
//! the order of discovery, which is the index of the column's sum. They do not contain the sums, so the
//! symbolic and numeric phases share them.
//!
//! - [`HashPlaces`]: hash table with a power of two of slots, multiplicative hash and linear probing
//!   (Nagasaka, Matsuoka, Azad, Buluç 2018, "High-performance sparse matrix-matrix products on Intel KNL and
//!   multicore architectures").
//! - [`ArrayPlaces`]: array with one slot per column of the product, which is not cleared between rows (the
//!   dense accumulator of Gustavson 1978 with generation stamps).

#[cfg(vector_sort)]
use super::sort;
use super::window::{is_run, WINDOW};
#[cfg(vector_sort)]
use crate::backend::host::lanes;
use crate::types::{Accumulator, Index, Storage};

/// A column index in the type that accumulators store.
pub trait Key: Index {
    /// Marker of an empty slot.
    const NONE: Self;
    /// Returns the top `64 - shift` bits of the column times 2^64 / φ: Fibonacci hashing (Knuth, TAOCP 3,
    /// 6.4), which spreads runs and arithmetic progressions of columns evenly.
    #[inline(always)]
    fn hash(self, shift: u32) -> usize {
        ((self.to_i64() as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> shift) as usize
    }
    /// Returns `self - first + bias`, or a number of more than 16 bits where that has more.
    fn apart(self, first: Self, bias: u16) -> u32;
    /// Returns the column that is this many, less `bias`, behind this one.
    fn moved(self, by: u16, bias: u16) -> Self;
}

impl Key for i32 {
    const NONE: Self = -1;
    #[inline(always)]
    fn apart(self, first: Self, bias: u16) -> u32 {
        self.wrapping_sub(first).wrapping_add(i32::from(bias)) as u32
    }
    #[inline(always)]
    fn moved(self, by: u16, bias: u16) -> Self {
        self.wrapping_add(i32::from(by) - i32::from(bias))
    }
}

impl Key for i64 {
    const NONE: Self = -1;
    #[inline(always)]
    fn apart(self, first: Self, bias: u16) -> u32 {
        u32::try_from(self - first + i64::from(bias)).unwrap_or(u32::MAX)
    }
    #[inline(always)]
    fn moved(self, by: u16, bias: u16) -> Self {
        self + i64::from(by) - i64::from(bias)
    }
}

/// An accumulator: a map from columns to places.
pub trait Places<K: Key> {
    /// Starts a row of at most `most` distinct columns.
    fn begin(&mut self, most: usize);
    /// Calls `f(i, column, place, new)` for the columns `indices[i] - base`; `new` is true for a column that
    /// has just got its place.
    ///
    /// Implementations copy their fields to local variables: fields behind a reference would be read again
    /// after every store, since the compiler cannot know that the sums do not overlap them, which takes twice
    /// the time of the rest.
    fn each<J: Index>(&mut self, indices: &[J], base: i64, f: impl FnMut(usize, K, usize, bool));
    /// Returns the number of distinct columns so far.
    fn count(&self) -> usize;

    /// Writes the new columns of a row of the right factor to `list` at their places; it needs room for one more
    /// than there are. BRANCH selects one of two codes ([`list_new`]).
    #[inline(always)]
    fn list<const BRANCH: bool, J: Index>(&mut self, indices: &[J], base: i64, list: &mut [K]) {
        self.each(indices, base, |_, col, place, new| {
            if new {
                list[place] = col;
            }
        });
    }
}

/// Panics because a row has more columns than analysis or the symbolic phase counted.
#[cold]
pub fn pattern_changed() -> ! {
    panic!("the pattern of A or B changed after tarsiaPlan_analyze");
}

/// Number of slots of the smallest table: a cache line or two.
const MIN_SLOTS: usize = 16;

/// A hash table from columns to places.
#[derive(Debug)]
pub struct HashPlaces<'a, K> {
    /// (column, place) pairs.
    slots: &'a mut [[K; 2]],
    mask: usize,
    shift: u32,
    count: usize,
    most: usize,
}

impl<'a, K: Key> HashPlaces<'a, K> {
    /// Returns the number of slots for at most `most` distinct columns: at most half of them are filled, so
    /// that a probe reads 1.5 slots on average.
    pub fn slots(most: usize) -> usize {
        most.saturating_mul(2).next_power_of_two().max(MIN_SLOTS)
    }

    /// Creates a table in memory for the largest row.
    pub fn new(slots: &'a mut [[K; 2]]) -> Self {
        HashPlaces { slots, mask: 0, shift: 0, count: 0, most: 0 }
    }
}

impl<K: Key> Places<K> for HashPlaces<'_, K> {
    fn begin(&mut self, most: usize) {
        let slots = Self::slots(most);
        self.slots[..slots].fill([K::NONE; 2]);
        (self.mask, self.shift, self.count, self.most) = (slots - 1, 64 - slots.trailing_zeros(), 0, most);
    }

    #[inline(always)]
    fn each<J: Index>(&mut self, indices: &[J], base: i64, mut f: impl FnMut(usize, K, usize, bool)) {
        let (slots, mask, shift, most) = (&mut *self.slots, self.mask, self.shift, self.most);
        let mut count = self.count;
        for (i, index) in indices.iter().enumerate() {
            let col = K::from_i64(index.to_i64() - base);
            let mut at = col.hash(shift);
            let (place, new) = loop {
                let slot = &mut slots[at];
                if slot[0] == col {
                    break (slot[1].to_i64() as usize, false);
                }
                if slot[0] == K::NONE {
                    if count == most {
                        pattern_changed();
                    }
                    *slot = [col, K::from_i64(count as i64)];
                    count += 1;
                    break (count - 1, true);
                }
                at = (at + 1) & mask;
            };
            f(i, col, place, new);
        }
        self.count = count;
    }

    fn count(&self) -> usize {
        self.count
    }
}

/// An array from columns to places, with an element for every column of the product.
#[derive(Debug)]
pub struct ArrayPlaces<'a> {
    /// `start + place` for columns of the present row, less for others.
    places: &'a mut [u32],
    start: u32,
    count: u32,
}

impl<'a> ArrayPlaces<'a> {
    /// Creates an array in zeroed memory of one element per column, of at most `i32::MAX` columns.
    pub fn new(places: &'a mut [u32]) -> Self {
        ArrayPlaces { places, start: 1, count: 0 }
    }
}

impl ArrayPlaces<'_> {
    /// Starts a row whose columns [`list_new`] finds, and returns its memory and mark.
    #[inline(always)]
    pub fn stamp(&mut self) -> (&mut [u32], u32) {
        Places::<i32>::begin(self, 1);
        self.count = 1;
        (&mut *self.places, self.start)
    }
}

/// Writes those of the columns `indices[i] - base` to `list` from the place `count` on whose slots are less than
/// `mark`, sets these to it, and returns the number of columns in the list then. Slots are not more than the mark.
///
/// With BRANCH, it branches on whether a column is new. In meshes and stencils, where this can be predicted, it
/// takes two thirds of the time, in graphs twice as long.
#[inline(always)]
pub fn list_new<const BRANCH: bool, K: Key, J: Index>(
    slots: &mut [u32],
    mark: u32,
    (indices, base): (&[J], i64),
    list: &mut [K],
    mut count: usize,
) -> usize {
    // Where the products fit, no column is compared with the room.
    if count + indices.len() < list.len() {
        let list = list.as_mut_ptr();
        for index in indices {
            let col = index.to_i64() - base;
            let slot = &mut slots[col as usize];
            // SAFETY: the list has room for as many columns as there are indices.
            let next = unsafe { &mut *list.add(count) };
            if !BRANCH {
                *next = K::from_i64(col);
                count += usize::from(*slot < mark);
                *slot = mark;
            } else if *slot < mark {
                *slot = mark;
                *next = K::from_i64(col);
                count += 1;
            }
        }
        return count;
    }
    for index in indices {
        let col = index.to_i64() - base;
        let slot = &mut slots[col as usize];
        let Some(next) = list.get_mut(count) else { pattern_changed() };
        *next = K::from_i64(col);
        count += usize::from(*slot < mark);
        *slot = mark;
    }
    count
}

impl<K: Key> Places<K> for ArrayPlaces<'_> {
    #[inline(always)]
    fn begin(&mut self, most: usize) {
        match self.start.checked_add(self.count).filter(|&start| start as usize + most <= u32::MAX as usize) {
            Some(start) => self.start = start,
            None => {
                self.places.fill(0);
                self.start = 1;
            }
        }
        self.count = 0;
    }

    #[inline(always)]
    fn each<J: Index>(&mut self, indices: &[J], base: i64, mut f: impl FnMut(usize, K, usize, bool)) {
        let (places, start, mut count) = (&mut *self.places, self.start, self.count);
        for (i, index) in indices.iter().enumerate() {
            let col = index.to_i64() - base;
            let slot = &mut places[col as usize];
            let new = *slot < start;
            if new {
                *slot = start + count;
                count += 1;
            }
            f(i, K::from_i64(col), (*slot - start) as usize, new);
        }
        self.count = count;
    }

    #[inline(always)]
    fn list<const BRANCH: bool, J: Index>(&mut self, indices: &[J], base: i64, list: &mut [K]) {
        let count = self.count as usize;
        self.count = list_new::<BRANCH, _, _>(self.places, self.start, (indices, base), list, count) as u32;
    }

    fn count(&self) -> usize {
        self.count as usize
    }
}

/// Sums that are kept by column, one for each column of the product; all are zero between rows.
pub struct Sums<'a, T>(pub &'a mut [T]);

impl<T: Accumulator> Sums<'_, T> {
    /// Returns the sum of a column, which is zero then.
    #[inline(always)]
    pub fn take<K: Key>(&mut self, col: K) -> T {
        std::mem::replace(&mut self.0[col.to_i64() as usize], T::ZERO)
    }

    /// Adds `factor` times a row of the right factor, with RUNS by vector code if it has consecutive columns.
    #[inline(always)]
    pub fn add<const RUNS: bool, J: Index, R: Storage<T>>(
        &mut self,
        (indices, base, values): (&[J], i64, &[R]),
        factor: T,
    ) {
        let (sums, values) = (&mut *self.0, &values[..indices.len()]);
        if RUNS && is_run(indices) {
            let at = (indices[0].to_i64() - base) as usize;
            let Some(sums) = sums.get_mut(at..at.wrapping_add(indices.len())) else { pattern_changed() };
            for (sum, value) in sums.iter_mut().zip(values) {
                *sum += factor * value.widen();
            }
            return;
        }
        for (index, value) in indices.iter().zip(values) {
            let Some(sum) = sums.get_mut((index.to_i64() - base) as usize) else { pattern_changed() };
            *sum += factor * value.widen();
        }
    }

    /// Adds N rows of the right factor that have the same columns, each with its factor, one after the other.
    #[inline(always)]
    pub fn add_rows<const N: usize, J: Index, R: Storage<T>>(
        &mut self,
        (indices, base): (&[J], i64),
        values: [&[R]; N],
        factors: [T; N],
    ) {
        let (sums, values) = (&mut *self.0, values.map(|values| &values[..indices.len()]));
        for (at, index) in indices.iter().enumerate() {
            let Some(slot) = sums.get_mut((index.to_i64() - base) as usize) else { pattern_changed() };
            let mut sum = *slot;
            for (values, factor) in values.iter().zip(factors) {
                sum += factor * values[at].widen();
            }
            *slot = sum;
        }
    }
}

/// Most bytes of the arrays of all threads, and of their sums by column.
pub const ARRAY_BYTES: usize = 256 << 20;

/// Largest number of columns for which a thread keeps a sum of each: 4 MiB in fp64, some of which stay in its
/// second-level cache.
pub const SUMMED_COLS: usize = 1 << 19;

/// Largest number of columns with a sum of each where most rows of the right factor are runs of columns, which
/// vector code adds.
pub const SUMMED_RUNS: usize = 1 << 22;

/// The rule that chooses the accumulator of a row from the maximum number of its entries and the number of
/// columns. Results do not depend on the choice, only time and memory do.
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    /// Products of at most this many columns always use the array.
    pub small_cols: usize,
    /// Rows that may have at least one of every `ratio` columns use the array too.
    pub ratio: usize,
    /// Rows whose columns span at most this many, with few columns per entry, use a window instead
    /// ([`super::window`]).
    pub window: usize,
}

impl Rule {
    /// Returns the library's rule for this number of threads. The rows of an item have columns close to each
    /// other, or reuse few of them: on each of the measured matrices of more than 2^17 columns an array of
    /// 2^20 columns (4 MiB) was faster than the table, by 1.1 (a web) to 2 times (a mesh). The arrays of all
    /// threads take at most 256 MiB, for up to 512 threads. With more columns the array is used if it takes
    /// at most twice the table's memory: 4 bytes per column against 16 to 32 bytes per entry.
    pub fn of(threads: usize) -> Rule {
        let cols = ARRAY_BYTES / size_of::<u32>() / threads.max(1);
        Rule { small_cols: cols.clamp(1 << 17, 1 << 22), ratio: 8, window: WINDOW }
    }

    /// Returns whether a row of at most `most` distinct columns of `cols` uses the array; otherwise it uses
    /// the hash table.
    #[inline]
    pub fn array(&self, most: usize, cols: usize) -> bool {
        cols <= self.small_cols || (cols <= i32::MAX as usize && cols / self.ratio <= most)
    }
}

/// Largest number of columns that are sorted by vector code, which needs memory in proportion.
const VECTOR_SORTED: usize = 2048;

/// Returns the length of the spare memory that [`order`] needs for rows of at most `most` columns.
pub fn spare<K: Key>(most: usize) -> usize {
    let most = most.min(VECTOR_SORTED);
    #[cfg(vector_sort)]
    if size_of::<K>() == size_of::<i32>() && lanes::has_avx2() {
        return sort::spare(most);
    }
    let _ = most;
    0
}

/// Sorts distinct columns. If there are more than 64 and their span is at most 64 times their number, they
/// are set in a bitmap and read in order: in that case this takes 2 to 4 ns per column. Sorting takes 1.5 to
/// 3 by vector code, and 2 (of 12 columns) to 8 by the standard library. `bits` is all zeros before and
/// after.
pub fn order<K: Key>(cols: &mut [K], bits: &mut [u64], spare: &mut [K]) {
    // Neighbouring diagonals are found in order.
    if cols.is_sorted() {
        return;
    }
    if cols.len() > 64 && order_near(cols, bits) {
        return;
    }
    #[cfg(vector_sort)]
    if (13..=VECTOR_SORTED).contains(&cols.len()) && size_of::<K>() == size_of::<i32>() && lanes::has_avx2() {
        // SAFETY: the processor has AVX2.
        unsafe { sort::sort(bytemuck::cast_slice_mut(cols), bytemuck::cast_slice_mut(spare)) };
        return;
    }
    let _ = spare;
    cols.sort_unstable();
}

/// Sorts columns by a bitmap if their span is at most 64 times their number, and returns whether it is.
fn order_near<K: Key>(cols: &mut [K], bits: &mut [u64]) -> bool {
    let (Some(&first), Some(&last)) = (cols.iter().min(), cols.iter().max()) else {
        return false;
    };
    let first = first.to_i64();
    let words = ((last.to_i64() - first) / 64) as usize + 1;
    if words > bits.len().min(cols.len()) {
        return false;
    }
    for col in &*cols {
        let bit = (col.to_i64() - first) as usize;
        bits[bit / 64] |= 1 << (bit % 64);
    }
    let mut at = 0;
    for (i, word) in bits[..words].iter_mut().enumerate() {
        let mut rest = std::mem::take(word);
        while rest != 0 {
            cols[at] = K::from_i64(first + (64 * i) as i64 + i64::from(rest.trailing_zeros()));
            at += 1;
            rest &= rest - 1;
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_sorted_near_and_far() {
        fn check<K: Key>(count: i64, step: i64) {
            let sorted: Vec<K> = (0..count).map(|i| K::from_i64(7 + i * step)).collect();
            // 4001 is prime, so that the multiples of 7 reach every number.
            let all = (0..4001).map(|i| i * 7 % 4001).filter(|&i| i < count);
            let mut shuffled: Vec<K> = all.map(|i| K::from_i64(7 + i * step)).collect();
            let (mut bits, mut memory) = ([0u64; 40], vec![K::NONE; spare::<K>(count as usize)]);
            assert_eq!(shuffled.len(), sorted.len());
            order(&mut shuffled, &mut bits, &mut memory);
            assert_eq!(shuffled, sorted, "{count} columns, step {step}");
            assert_eq!(bits, [0; 40]);
        }
        for step in [1, 2, 63, 64, 65, 1000, 1 << 19] {
            for count in [0, 1, 2, 3, 8, 9, 12, 13, 16, 17, 32, 33, 40, 64, 65, 400, 2048, 2049, 4001] {
                check::<i64>(count, step);
                check::<i32>(count, step);
            }
        }
    }

    fn fill<K: Key>(places: &mut impl Places<K>, cols: &[i64]) {
        places.begin(cols.len());
        for (place, &col) in cols.iter().enumerate() {
            places.each(&[col + 1, cols[0] + 1], 1, |i, found, at, new| match i {
                0 => assert_eq!((found, at, new), (K::from_i64(col), place, true)),
                _ => assert_eq!((found, at, new), (K::from_i64(cols[0]), 0, false)),
            });
        }
        assert_eq!(places.count(), cols.len());
        for (place, &col) in cols.iter().enumerate() {
            places.each(&[col], 0, |_, _, at, new| assert_eq!((at, new), (place, false)));
        }
    }

    #[test]
    fn tables_hold_columns_that_collide() {
        let mut slots = [[0i64; 2]; 64];
        let mut table = HashPlaces::new(&mut slots);
        // All of these have the same home slot of the largest table.
        let same: Vec<i64> = (0..i64::MAX).filter(|col| col.hash(64 - 6) == 63).take(32).collect();
        for count in [32, 1, 17, 32] {
            fill(&mut table, &same[..count]);
        }
        let mut slots = [[0i32; 2]; 64];
        fill(&mut HashPlaces::new(&mut slots), &[5, 0, i64::from(i32::MAX)]);
    }

    #[test]
    #[should_panic(expected = "pattern of A or B changed")]
    fn one_column_too_many_is_noticed() {
        let mut slots = [[0i32; 2]; 16];
        let mut table = HashPlaces::new(&mut slots);
        table.begin(2);
        table.each(&[0, 1, 2], 0, |_, _, _, new| assert!(new));
    }

    #[test]
    fn sums_by_column_are_zero_after() {
        let run: Vec<i32> = (2..10).collect();
        let mut memory = [0.0; 9];
        let mut sums = Sums(&mut memory);
        for _ in 0..2 {
            sums.add::<false, _, _>((&[8, 3], 1, &[1.0, 2.0]), 0.5);
            sums.add::<true, _, _>((&[3, 9], 1, &[4.0, 8.0]), 0.5);
            sums.add::<true, _, _>((&run, 1, &[2.0; 8]), 0.5);
            sums.add_rows((&[1, 9], 1), [&[1.0, 2.0], &[4.0, 8.0], &[16.0, 32.0]], [1.0, 0.5, 0.25]);
            let taken: Vec<f64> = [8, 0, 1, 2, 3, 4, 5, 6, 7].iter().map(|&col| sums.take(col)).collect();
            assert_eq!(taken, [19.0, 7.0, 1.0, 4.0, 1.0, 1.0, 1.0, 1.0, 1.5]);
            assert_eq!(*sums.0, [0.0; 9]);
        }
    }

    #[test]
    fn columns_outside_are_noticed() {
        let run = |start: i32| (start..start + 8).collect::<Vec<_>>();
        for outside in [&[1, 0][..], &[21], &[1, -1], &run(-3), &run(14), &run(30)] {
            for way in 0..3 {
                let add = || {
                    let (mut memory, values) = ([0.0; 20], &[1.0; 20][..outside.len()]);
                    let mut sums = Sums(&mut memory);
                    match way {
                        0 => sums.add::<false, _, _>((outside, 1, values), 1.0),
                        1 => sums.add::<true, _, _>((outside, 1, values), 1.0),
                        _ => sums.add_rows((outside, 1), [values, values], [1.0; 2]),
                    }
                };
                let panic = std::panic::catch_unwind(add).unwrap_err();
                let text = panic.downcast_ref::<&str>().unwrap();
                assert!(text.contains("pattern of A or B changed"), "{outside:?}: {text}");
            }
        }
    }

    #[test]
    #[should_panic(expected = "pattern of A or B changed")]
    fn more_columns_than_the_list_has_room_for_are_noticed() {
        let (mut slots, mut list) = ([0; 9], [0; 3]);
        let mut array = ArrayPlaces::new(&mut slots);
        Places::<i32>::begin(&mut array, 2);
        array.list::<false, _>(&[4, 5, 5, 4, 6], 0, &mut list);
        assert_eq!((Places::<i32>::count(&array), list[..2].to_vec()), (3, vec![4, 5]));
        array.list::<false, _>(&[7], 0, &mut list);
    }

    #[test]
    fn new_columns_are_listed_with_and_without_a_branch() {
        fn list<const BRANCH: bool>(rows: &[&[i32]], room: usize) -> Vec<i32> {
            let (mut slots, mut list) = ([0; 9], vec![-1; room]);
            let mut array = ArrayPlaces::new(&mut slots);
            // An earlier row leaves its marks.
            let (slots, mark) = array.stamp();
            list_new::<BRANCH, _, _>(slots, mark, (&[1, 2, 3], 1), &mut list, 0);
            let (slots, mark) = array.stamp();
            let count = rows
                .iter()
                .fold(0, |count, row| list_new::<BRANCH, _, _>(slots, mark, (row, 1), &mut list, count));
            list[..count].to_vec()
        }
        let rows: [&[i32]; 4] = [&[5, 1, 5, 9], &[], &[9, 2, 1], &[2, 4]];
        // With little room, columns are compared with it.
        for room in [6, 7, 20] {
            assert_eq!(list::<true>(&rows, room), [4, 0, 8, 1, 3]);
            assert_eq!(list::<false>(&rows, room), [4, 0, 8, 1, 3]);
        }
    }

    #[test]
    fn arrays_start_again_when_generations_run_out() {
        let mut slots = [0; 8];
        let mut array = ArrayPlaces::new(&mut slots);
        fill::<i32>(&mut array, &[3, 1, 4]);
        fill::<i32>(&mut array, &[4, 3]);
        array.start = u32::MAX - 4;
        array.count = 0;
        fill::<i32>(&mut array, &[7, 0, 1, 3]);
        assert_eq!(array.start, u32::MAX - 4);
        fill::<i32>(&mut array, &[7, 0]);
        assert_eq!(array.start, 1);
    }

    #[test]
    fn the_rule_bounds_memory() {
        assert_eq!(Rule::of(1).small_cols, 1 << 22);
        assert_eq!(Rule::of(1 << 20).small_cols, 1 << 17);
        let rule = Rule::of(64);
        assert_eq!(rule.small_cols * 64 * size_of::<u32>(), 256 << 20);
        assert!(rule.array(1, 1000));
        assert!(!rule.array(1, 1 << 21));
        for (most, cols) in [(1 << 18, 1 << 21), (1 << 20, 1 << 23), (1 << 19, 1 << 22)] {
            assert!(rule.array(most, cols));
            assert!(4 * cols <= 2 * 8 * HashPlaces::<i32>::slots(most));
        }
        assert!(!rule.array(usize::MAX, 1 << 40), "places are 32 bits");
    }
}

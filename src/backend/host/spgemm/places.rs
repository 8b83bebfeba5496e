//! Accumulators of one row of a product: they give each distinct column a
//! place, 0, 1, 2 … in the order of discovery, and the row's sums lie at those
//! places. They know nothing of values, so symbolic and numeric share them.
//!
//! - [`HashPlaces`]: power of two of slots, multiplicative hash, linear
//!   probing (Nagasaka, Matsuoka, Azad, Buluç 2018, "High-performance sparse
//!   matrix-matrix products on Intel KNL and multicore architectures").
//! - [`ArrayPlaces`]: one slot a column of the product, never cleared between
//!   rows (the dense accumulator of Gustavson 1978 with generation stamps).

use super::window::WINDOW;
use crate::types::{Accumulator, Index, Storage};

/// A column as accumulators store it.
pub trait Key: Index {
    /// No column.
    const NONE: Self;
    /// The top `64 - shift` bits of the column times 2^64 / φ: Fibonacci
    /// hashing (Knuth, TAOCP 3, 6.4), which spreads runs and arithmetic
    /// progressions of columns evenly.
    #[inline(always)]
    fn hash(self, shift: u32) -> usize {
        ((self.to_i64() as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> shift) as usize
    }
}

impl Key for i32 {
    const NONE: Self = -1;
}

impl Key for i64 {
    const NONE: Self = -1;
}

/// Gives columns places.
pub trait Places<K: Key> {
    /// Starts a row of at most `most` distinct columns.
    fn begin(&mut self, most: usize);
    /// Calls `f(i, column, place, new)` for the columns `indices[i] - base`.
    ///
    /// What it works with lies on the stack meanwhile: fields behind a reference
    /// would be read again after every store, since the compiler cannot know that
    /// sums do not lie on them, which costs twice the time of the rest.
    fn each<J: Index>(&mut self, indices: &[J], base: i64, f: impl FnMut(usize, K, usize, bool));
    /// The place of a column that has one.
    fn find(&self, col: K) -> usize;
    /// Distinct columns so far.
    fn count(&self) -> usize;

    /// Gives the columns of a row of the right factor places.
    #[inline(always)]
    fn mark<J: Index>(&mut self, indices: &[J], base: i64) {
        self.each(indices, base, |_, _, _, _| ());
    }

    /// The same, and the columns that are new go to `list`, by place.
    #[inline(always)]
    fn list<J: Index>(&mut self, indices: &[J], base: i64, list: &mut [K]) {
        self.each(indices, base, |_, col, place, new| {
            if new {
                list[place] = col;
            }
        });
    }

    /// The same, and adds `factor` times the row to `sums`, by place; `list` has
    /// the length of `sums`.
    #[inline(always)]
    fn add<J: Index, R: Storage<T>, T: Accumulator>(
        &mut self,
        (indices, base, values): (&[J], i64, &[R]),
        factor: T,
        list: &mut [K],
        sums: &mut [T],
    ) {
        let values = &values[..indices.len()];
        self.each(indices, base, |i, col, place, new| {
            if new {
                list[place] = col;
            }
            sums[place] += factor * values[i].widen();
        });
    }
}

/// A row brings more columns than analysis or symbolic counted.
#[cold]
pub fn pattern_changed() -> ! {
    panic!("the pattern of A or B changed after tarsiaPlan_analyze");
}

/// Slots of the smallest table: a cache line or two.
const MIN_SLOTS: usize = 16;

/// A hash table from columns to places.
#[derive(Debug)]
pub struct HashPlaces<'a, K> {
    /// (column, place).
    slots: &'a mut [[K; 2]],
    mask: usize,
    shift: u32,
    count: usize,
    most: usize,
}

impl<'a, K: Key> HashPlaces<'a, K> {
    /// Slots for at most `most` distinct columns: at most half of them fill,
    /// so that a probe looks at 1.5 slots on average.
    pub fn slots(most: usize) -> usize {
        most.saturating_mul(2).next_power_of_two().max(MIN_SLOTS)
    }

    /// Over memory for the largest row.
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

    #[inline(always)]
    fn find(&self, col: K) -> usize {
        let mut at = col.hash(self.shift);
        while self.slots[at][0] != col {
            at = (at + 1) & self.mask;
        }
        self.slots[at][1].to_i64() as usize
    }

    fn count(&self) -> usize {
        self.count
    }
}

/// A place for every column of the product.
#[derive(Debug)]
pub struct ArrayPlaces<'a> {
    /// `start + place` where the present row has the column; less elsewhere.
    places: &'a mut [u32],
    start: u32,
    count: u32,
}

impl<'a> ArrayPlaces<'a> {
    /// Over one zeroed slot a column; at most `i32::MAX` columns.
    pub fn new(places: &'a mut [u32]) -> Self {
        ArrayPlaces { places, start: 1, count: 0 }
    }
}

impl<K: Key> Places<K> for ArrayPlaces<'_> {
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
    fn find(&self, col: K) -> usize {
        (self.places[col.to_i64() as usize] - self.start) as usize
    }

    fn count(&self) -> usize {
        self.count as usize
    }
}

/// Which accumulator a row takes: a pure function of the row's bound and the
/// number of columns. Results do not depend on it, only time and memory do.
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    /// Products of at most so many columns always use the array.
    pub small_cols: usize,
    /// So do rows of which at least one column in `ratio` may fill.
    pub ratio: usize,
    /// Rows whose columns span at most so many, and few a column, use neither
    /// ([`super::window`]).
    pub window: usize,
}

impl Rule {
    /// The library's rule for this number of threads. Rows of one item meet
    /// columns near to each other, or few of them more than once: an array of
    /// 2^20 columns (4 MiB) was faster than the table on each of the matrices of
    /// more than 2^17 that were measured, by 1.1 (a web) to 2 times (a mesh).
    /// Its memory is bounded, 256 MiB for all threads. Beyond, the array is used
    /// where it takes at most twice the table's memory: 4 bytes a column against
    /// 16 to 32 bytes an entry.
    pub fn of(threads: usize) -> Rule {
        const BYTES: usize = 256 << 20;
        let cols = BYTES / size_of::<u32>() / threads.max(1);
        Rule { small_cols: cols.clamp(1 << 17, 1 << 22), ratio: 8, window: WINDOW }
    }

    /// Whether a row of at most `most` distinct columns of `cols` uses the
    /// array; else it uses the hash table.
    #[inline]
    pub fn array(&self, most: usize, cols: usize) -> bool {
        cols <= self.small_cols || (cols <= i32::MAX as usize && cols / self.ratio <= most)
    }
}

/// Sorts distinct columns. Where they are more than 32 and their span is at most 64 times
/// their number, bits are set and read off in order; there that takes 2 to 4 ns a column and
/// sorting 4 to 8, and a wider span would turn it round. `bits` is all zeros
/// before and after.
pub fn order<K: Key>(cols: &mut [K], bits: &mut [u64]) {
    // Diagonals beside each other are found in order.
    if cols.is_sorted() {
        return;
    }
    // The standard library sorts few in 2 to 4 ns each.
    if cols.len() <= 32 {
        return cols.sort_unstable();
    }
    let (Some(&first), Some(&last)) = (cols.iter().min(), cols.iter().max()) else {
        return;
    };
    let first = first.to_i64();
    let words = ((last.to_i64() - first) / 64) as usize + 1;
    if words > bits.len().min(cols.len()) {
        cols.sort_unstable();
        return;
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_sorted_near_and_far() {
        let mut bits = [0u64; 40];
        for step in [1, 2, 63, 64, 65, 1000, 1 << 20] {
            for count in [0, 1, 2, 3, 8, 9, 16, 17, 32, 33, 40, 400] {
                let sorted: Vec<i64> = (0..count).map(|i| 7 + i * step).collect();
                // 401 is prime, so that the multiples of 7 visit every place.
                let mut shuffled: Vec<i64> =
                    (0..401).map(|i| i * 7 % 401).filter(|&i| i < count).map(|i| 7 + i * step).collect();
                assert_eq!(shuffled.len(), sorted.len());
                order(&mut shuffled, &mut bits);
                assert_eq!(shuffled, sorted, "{count} columns, step {step}");
                assert_eq!(bits, [0; 40]);
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
            assert_eq!(places.find(K::from_i64(col)), place);
        }
    }

    #[test]
    fn tables_hold_columns_that_collide() {
        let mut slots = [[0i64; 2]; 64];
        let mut table = HashPlaces::new(&mut slots);
        // All of one home slot of the largest table.
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

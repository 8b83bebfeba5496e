//! Tests of SELL for warps: the inverse gives the matrix back, and the arrays agree with the heads.

use testkit::sequence;

use super::*;
use crate::matrix::compressed::Pattern;

/// CSR matrix whose row i has `lengths[i]` entries at the columns that `column(i, k)` returns.
pub(crate) struct WarpSellTestMatrix {
    pub cols: usize,
    pub base: i64,
    pub offsets: Vec<i64>,
    pub indices: Vec<i64>,
    pub values: Vec<f64>,
}

impl WarpSellTestMatrix {
    pub(crate) fn new(
        base: i64,
        cols: usize,
        lengths: &[usize],
        column: impl Fn(usize, usize) -> usize,
    ) -> Self {
        let mut matrix =
            WarpSellTestMatrix { cols, base, offsets: vec![base], indices: vec![], values: vec![] };
        for (row, &length) in lengths.iter().enumerate() {
            for entry in 0..length {
                let col = column(row, entry);
                assert!(col < cols);
                matrix.indices.push(col as i64 + base);
                matrix.values.push(1.0 + matrix.values.len() as f64);
            }
            matrix.offsets.push(matrix.indices.len() as i64 + base);
        }
        matrix
    }

    pub(crate) fn pattern(&self) -> Pattern<'_, i64, i64> {
        Pattern {
            major: self.offsets.len() - 1,
            minor: self.cols,
            base: self.base,
            offsets: &self.offsets,
            indices: &self.indices,
            by_columns: false,
        }
    }

    pub(crate) fn build(&self, rules: Rules) -> WarpSell<f64> {
        WarpSell::build(&self.pattern(), &self.values, rules)
    }

    /// Checks that every entry comes back from one slot and that every row is stored once.
    fn check(&self, rules: Rules) -> WarpSell<f64> {
        let layout = self.build(rules);
        let mut found = vec![None; self.values.len()];
        let pattern = self.pattern();
        layout.for_each_entry(|row, entry, column, value| {
            let at = pattern.range(row).start + entry;
            assert!(entry < pattern.range(row).len() && found[at].is_none());
            found[at] = Some((column, value));
        });
        for (at, found) in found.iter().enumerate() {
            assert_eq!(*found, Some((pattern.index(at), self.values[at])), "entry {at}");
        }
        let total: f64 = layout.values.iter().sum();
        assert_eq!(total, self.values.iter().sum::<f64>(), "padding is zero");
        let mut stores = vec![0; layout.row_count];
        for (slice, head) in layout.heads.iter().enumerate() {
            for item in layout.items(slice, head) {
                let is_first = head.flags & PART == 0 || slice == head.place as usize * BLOCK_PARTS;
                for count in &mut stores[item.row..item.row + item.rows] {
                    *count += usize::from(is_first);
                }
            }
        }
        assert!(stores.iter().all(|&count| count == 1), "{stores:?}");
        assert!(layout.heads.len() <= rules.most_slices(layout.row_count, self.values.len()));
        let parts = layout.heads.iter().take_while(|head| head.flags & PART != 0).count();
        assert!(parts <= rules.most_parts(self.values.len()) && parts % BLOCK_PARTS == 0);
        assert!(layout.heads[parts..].iter().all(|head| head.flags & PART == 0));
        layout
    }
}

/// Returns a matrix of groups of `k` rows of `lengths[group]` entries, with the same columns in most groups.
pub(crate) fn grouped(base: i64, k: usize, lengths: &[usize]) -> WarpSellTestMatrix {
    let of_rows: Vec<usize> = lengths.iter().flat_map(|&length| std::iter::repeat_n(length, k)).collect();
    // Every seventh group has a row that differs in its last column.
    let column = |row: usize, entry: usize| {
        let differs = (row / k) % 7 == 3 && row % k == 1 && entry + 1 == of_rows[row];
        row / k + 3 * entry + usize::from(differs)
    };
    WarpSellTestMatrix::new(base, 100_000, &of_rows, column)
}

pub(crate) const SMALL: Rules =
    Rules { window: 64, item_rows: 1, entries: 8, group_log2: 1, limit_log2: 9, halves: true };
pub(crate) const FOURS: Rules = Rules { group_log2: 2, halves: false, ..SMALL };
pub(crate) const TWOS: Rules = Rules { item_rows: 2, ..SMALL };
pub(crate) const THREES: Rules = Rules { item_rows: 3, window: 63, ..SMALL };

#[test]
fn every_entry_comes_back() {
    for base in [0, 1] {
        for rows in [0, 1, 31, 32, 33, 63, 64, 65, 200, 1025] {
            let mut next = sequence(rows as u64 + 1);
            let lengths: Vec<usize> = (0..rows).map(|_| next() % 5 * (next() % 19)).collect();
            let matrix =
                WarpSellTestMatrix::new(base, 1000, &lengths, |row, entry| (row * 7 + entry * 131) % 1000);
            for rules in [SMALL, FOURS, TWOS, THREES, Rules { window: 1024, entries: 60, ..FOURS }] {
                matrix.check(rules);
            }
            for k in [2, 3, 6] {
                let matrix = grouped(base, k, &lengths);
                matrix.check(SMALL);
                matrix.check(Rules { window: 1024, ..TWOS });
                matrix.check(Rules { window: 1023, entries: 40, ..THREES });
            }
        }
    }
}

#[test]
fn rows_take_lanes_by_their_length() {
    // 64 rows of a window: one of 300 entries (32 lanes), two of 16 (2 lanes
    // each), which share a slice with 14 of the rest, and 47 of 3, of which the last 15 have 2 lanes.
    let mut lengths = vec![3; 64];
    (lengths[10], lengths[20], lengths[63]) = (300, 16, 16);
    let layout = WarpSellTestMatrix::new(0, 400, &lengths, |row, entry| row + entry).check(SMALL);
    let heads: Vec<_> =
        layout.heads.iter().map(|h| (h.lanes_log2, h.items, h.steps, h.flags & (EVEN | HALF))).collect();
    // 300 = 4 · 64 + 44; 3 entries are a step and a half of a lane, or a step of two.
    assert_eq!(heads, [(5, 1, 5, 0), (1, 16, 4, 0), (0, 32, 1, HALF), (1, 15, 1, 0)]);
    // Rows of one length, consecutive in the matrix, with consecutive columns.
    let layout = WarpSellTestMatrix::new(1, 100, &[5; 64], |row, entry| row + 7 * entry).check(SMALL);
    let even = EVEN | RUNS | HALF;
    assert!(layout.heads.iter().all(|h| (h.flags, h.steps, h.length) == (even, 2, 5)));
    assert_eq!((layout.heads[1].row, layout.values.len(), layout.narrow.len()), (32, 320, 64));
}

#[test]
fn rows_that_share_columns_store_them_once() {
    let lengths = [10; 420];
    let matrix = grouped(0, 3, &lengths);
    let layout = matrix.check(Rules { window: 1023, entries: 64, ..THREES });
    let several: usize =
        layout.heads.iter().filter(|h| h.flags & ROWS != 0).map(|h| usize::from(h.items)).sum();
    // In one group of seven, a row differs.
    assert_eq!(several, 360);
    let columns = layout.narrow.len();
    assert!(columns < matrix.check(Rules { window: 1024, ..SMALL }).narrow.len() / 2, "{columns}");
    // Consecutive columns: one is stored per group of two.
    let band = WarpSellTestMatrix::new(0, 500, &[32; 64], |row, entry| row / 2 + entry);
    let layout = band.check(TWOS);
    assert!(layout.heads.iter().all(|head| head.flags == ROWS | ADJACENT));
    assert_eq!(layout.narrow.len() * 4, layout.values.len());
}

#[test]
fn spans_choose_the_width() {
    let column = |row: usize, entry: usize| match (row / LANES, entry) {
        (_, 0) => 5,
        (0, _) => 5 + 0xffff,
        _ => 5 + 0x10000 + row,
    };
    let layout = WarpSellTestMatrix::new(0, 1 << 17, &[2; 64], column).check(SMALL);
    let wide: Vec<_> = layout.heads.iter().map(|head| head.flags & WIDE).collect();
    assert_eq!(wide, [0, WIDE]);
    assert_eq!((layout.wide.len(), layout.narrow.len()), (64, 64));
}

#[test]
fn long_rows_are_cut() {
    let lengths = [3, 512, 513, 0, 5 * 512 + 7, 1];
    let matrix =
        WarpSellTestMatrix::new(1, 200_000, &lengths, |row, entry| entry * if row == 4 { 70 } else { 1 });
    let layout = matrix.check(SMALL);
    let parts: Vec<_> = layout
        .heads
        .iter()
        .take_while(|h| h.flags & PART != 0)
        .map(|h| (h.row, h.place, h.length, h.flags & LAST != 0))
        .collect();
    // 2,567 entries are two blocks of four parts: 321 each, up to whole steps 384; 513 are 129, 192.
    let lengths = [384, 384, 384, 384, 384, 384, 263, 0];
    assert_eq!(parts[..8], std::array::from_fn::<_, 8, _>(|i| (4, 0, lengths[i], i >= 4)));
    let lengths = [192, 192, 129, 0];
    assert_eq!(parts[8..], std::array::from_fn::<_, 4, _>(|i| (2, 2, lengths[i], true)));
    // 263 = 4 · 64 + 7: the last 7 entries are in a half step.
    let of_rest = layout.heads[6];
    assert_eq!((of_rest.steps, of_rest.flags & (PART | HALF)), (4, PART | HALF));
    // Rows of more than 2^16 entries do not fit `order`, which pieces do not read.
    WarpSellTestMatrix::new(0, 70_001, &[1, 70_000], |_, entry| entry).check(SMALL);
}

//! The inverse gives the matrix back, and the arrays are what the heads say.

use super::*;

/// CSR arrays of this base, row i with `lengths[i]` entries at the columns that
/// `column(i, k)` gives.
pub(crate) struct Matrix {
    pub cols: usize,
    pub base: i64,
    pub offsets: Vec<i64>,
    pub indices: Vec<i64>,
    pub values: Vec<f64>,
}

impl Matrix {
    pub(crate) fn new(
        base: i64,
        cols: usize,
        lengths: &[usize],
        column: impl Fn(usize, usize) -> usize,
    ) -> Self {
        let mut matrix = Matrix { cols, base, offsets: vec![base], indices: vec![], values: vec![] };
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

    fn pattern(&self) -> Pattern<'_, i64, i64> {
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

    /// Every entry comes back from one slot, every row has one store.
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
        for head in &layout.heads {
            for number in 0..LANES {
                let Some(lane) = layout.lane(head, number) else { continue };
                let is_first =
                    head.flags & PART == 0 || layout.parts[head.place as usize].first == head.place;
                stores[lane.row] += usize::from(lane.rank == 0 && is_first);
            }
        }
        assert!(stores.iter().all(|&count| count == 1), "{stores:?}");
        assert_eq!(layout.values.len(), layout.narrow.len());
        layout
    }
}

pub(crate) fn sequence(seed: u64) -> impl FnMut() -> usize {
    let mut state = seed;
    move || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) as usize
    }
}

pub(crate) const SMALL: Rules = Rules { window_log2: 6, entries: 8, group_log2: 1, limit_log2: 9 };
pub(crate) const FOURS: Rules = Rules { group_log2: 2, ..SMALL };

#[test]
fn every_entry_comes_back() {
    for base in [0, 1] {
        for rows in [0, 1, 31, 32, 33, 63, 64, 65, 200, 1025] {
            let mut next = sequence(rows as u64 + 1);
            let lengths: Vec<usize> = (0..rows).map(|_| next() % 5 * (next() % 19)).collect();
            let matrix = Matrix::new(base, 1000, &lengths, |row, entry| (row * 7 + entry * 131) % 1000);
            matrix.check(SMALL);
            matrix.check(FOURS);
            matrix.check(Rules { window_log2: 10, entries: 60, ..FOURS });
        }
    }
}

#[test]
fn rows_take_lanes_by_their_length() {
    // 64 rows of a window: one of 300 entries (32 lanes), two of 16 (2 lanes
    // each), which share a slice with 14 of the rest, and 47 of 3.
    let mut lengths = vec![3; 64];
    (lengths[10], lengths[20], lengths[63]) = (300, 16, 16);
    let layout = Matrix::new(0, 400, &lengths, |row, entry| row + entry).check(SMALL);
    let heads: Vec<_> = layout.heads.iter().map(|h| (h.detail, h.steps, h.flags & EVEN)).collect();
    assert_eq!(heads[..2], [(5, 5, 0), (1, 4, 0)]);
    assert_eq!(heads.len(), 4);
    // All of one length: rows that follow each other, and their columns too.
    let layout = Matrix::new(1, 100, &[5; 64], |row, entry| row + 7 * entry).check(SMALL);
    assert!(layout.heads.iter().all(|h| (h.flags, h.steps, h.detail) == (EVEN | RUNS, 3, 1)));
    assert_eq!(layout.heads[1].place, 32);
}

#[test]
fn spans_choose_the_width() {
    let column = |row: usize, entry: usize| match (row / LANES, entry) {
        (_, 0) => 5,
        (0, _) => 5 + 0xffff,
        _ => 5 + 0x10000 + row,
    };
    let layout = Matrix::new(0, 1 << 17, &[2; 64], column).check(SMALL);
    let wide: Vec<_> = layout.heads.iter().map(|head| head.flags & WIDE).collect();
    assert_eq!(wide, [0, WIDE]);
    assert_eq!(layout.wide.len(), 64);
}

#[test]
fn long_rows_are_cut() {
    let lengths = [3, 512, 513, 0, 5 * 512 + 7, 1];
    let matrix = Matrix::new(1, 200_000, &lengths, |row, entry| entry * if row == 4 { 70 } else { 1 });
    let layout = matrix.check(SMALL);
    let parts: Vec<_> = layout.parts.iter().map(|p| (p.row, p.first, p.count, p.counter)).collect();
    assert_eq!(parts[..2], [(4, 0, 6, 0), (4, 0, 6, 0)]);
    assert_eq!(parts[6..], [(2, 6, 2, 1), (2, 6, 2, 1)]);
    // 7 entries: 57 of the last step's 64 slots are padding.
    assert_eq!((layout.heads[5].steps, layout.heads[5].detail), (1, 57));
    // Rows over 2^16 entries do not fit `order`, which parts do not read.
    Matrix::new(0, 70_001, &[1, 70_000], |_, entry| entry).check(SMALL);
}

#[test]
fn rules_follow_the_size() {
    let lanes = 132 * 1024;
    let entries = |nnz| Rules::new(1, nnz, 8, lanes, 1 << 14).entries;
    assert_eq!([494_132, 1_047_552, 1_678_790, 6_342_336, 55_742_968].map(entries), [8, 16, 26, 94, 64]);
    let limit = |nnz| Rules::new(1, nnz, 8, lanes, 1 << 14).limit();
    assert_eq!([1000, 500_000, 5_000_000, 55_000_000, 1 << 40].map(limit), [512, 512, 1024, 4096, 1 << 15]);
    let group = |rows, bytes| Rules::new(rows, 10_000, bytes, lanes, 1 << 14).group();
    let cases = [(400, 8), (400, 4), (500, 4), (1250, 2), (1300, 2), (0, 16)];
    assert_eq!(cases.map(|(rows, bytes)| group(rows, bytes)), [2, 4, 2, 4, 2, 2]);
    // Values that are not stored.
    assert_eq!([1250, 1300].map(|rows| group(rows, 0)), [4, 2]);
}

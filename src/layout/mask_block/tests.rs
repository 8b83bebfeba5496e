//! The inverse gives the matrix back, and the arrays are what the heads say.

use super::*;
use crate::backend::memory::HostMemory;
use crate::types::Address;

/// CSR arrays of this base, row i with `lengths[i]` entries at the columns that
/// `column(i, k)` gives, sorted.
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
            let mut columns: Vec<_> = (0..length).map(|entry| column(row, entry)).collect();
            columns.sort_unstable();
            assert!(columns.iter().all(|&column| column < cols));
            matrix.indices.extend(columns.iter().map(|&column| column as i64 + base));
            matrix.offsets.push(matrix.indices.len() as i64 + base);
        }
        matrix.values = (1..=matrix.indices.len()).map(|value| value as f64).collect();
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

    pub(crate) fn build(&self, rules: Rules) -> MaskBlock<f64> {
        let origin = Origin { keep: true, positions: None };
        let allocator = Allocator::new(Arc::new(HostMemory), Address::NULL, usize::MAX);
        MaskBlock::build(&allocator, &self.pattern(), &self.values, origin, |_| rules).unwrap()
    }

    /// Every entry comes back in its place, every block and slab is used once.
    fn check(&self, rules: Rules) -> MaskBlock<f64> {
        let layout = self.build(rules);
        let pattern = self.pattern();
        let mut found = Vec::new();
        layout.for_each_entry(|row, entry, column, value| {
            let at = pattern.range(row).start + entry;
            assert!(entry < pattern.range(row).len());
            found.push((at, column, value));
        });
        found.sort_by_key(|&(at, _, _)| at);
        let expected = (0..self.values.len()).map(|at| (at, pattern.index(at), self.values[at]));
        assert!(found.iter().copied().eq(expected));
        let positions = layout.positions.as_ref().unwrap();
        assert!(layout.values.iter().zip(positions.iter()).all(|(&v, &at)| v == self.values[at as usize]));

        let (mut blocks, mut values) = (0, 0);
        let own = layout.heads.iter().enumerate().filter(|(_, head)| head.flags & CUT == 0);
        let mut in_order: Vec<_> =
            own.map(|(number, head)| (layout.slab_of(number), head.block, head)).collect();
        in_order.sort_by_key(|&(slab, block, _)| (slab, block));
        for (_, _, head) in in_order {
            assert_eq!((head.block, head.first_value()), (blocks, values), "{head:?}");
            assert!(usize::from(head.count) <= rules.limit());
            let masks = &layout.masks[head.blocks()];
            assert!(masks.iter().all(|&mask| mask != 0));
            blocks += u32::from(head.count);
            values += masks.iter().map(|mask| mask.count_ones() as usize).sum::<usize>();
        }
        assert_eq!((blocks as usize, values), (layout.masks.len(), self.values.len()));
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

/// Cuts slabs of more than 16 blocks.
pub(crate) const SMALL: Rules = Rules { limit_log2: 4 };

#[test]
fn every_entry_comes_back() {
    for base in [0, 1] {
        for rows in [0, 1, 7, 8, 9, 16, 31, 100, 500] {
            let mut next = sequence(rows as u64 + 1);
            let lengths: Vec<usize> = (0..rows).map(|_| next() % 4 * (next() % 19)).collect();
            // 997 is prime and not a multiple of 4; with 40 columns many repeat.
            for cols in [997, 40] {
                let matrix = Matrix::new(base, cols, &lengths, |row, entry| (row * 7 + entry * 131) % cols);
                matrix.check(SMALL);
                matrix.check(Rules::HOST);
            }
        }
    }
}

#[test]
fn blocks_are_what_they_say() {
    // Rows 0 and 1 have columns 1, 2; row 9 column 11, the last of its block.
    let mut lengths = vec![0; 10];
    (lengths[0], lengths[1], lengths[9]) = (2, 2, 1);
    let layout =
        Matrix::new(1, 12, &lengths, |row, entry| if row == 9 { 11 } else { 1 + entry }).check(SMALL);
    assert_eq!(layout.masks[..], [0x66, 1 << 7]);
    assert_eq!(layout.narrow[..], [0, 0]);
    assert_eq!((layout.heads[0].base, layout.heads[1].base), (0, 2));
    assert_eq!(layout.fill_ratio(), 64.0 / 5.0);
}

#[test]
fn entries_stored_twice_keep_their_order() {
    // Row 0: 4 4 4 5, row 1: 5.
    let column = |row: usize, entry: usize| if row == 1 || entry == 3 { 5 } else { 4 };
    let layout = Matrix::new(0, 9, &[4, 1], column).check(SMALL);
    assert_eq!(layout.masks[..], [0x21, 0x01, 0x03]);
    assert_eq!(layout.values[..], [1.0, 5.0, 2.0, 3.0, 4.0]);
}

#[test]
fn spans_choose_the_width() {
    let far = 4 * 0x10000;
    let column = |row: usize, entry: usize| match (row / ROWS, entry) {
        (_, 0) => 3,
        (0, _) => far - 1,
        _ => far + 2,
    };
    let layout = Matrix::new(0, far + 3, &[2; 16], column).check(SMALL);
    assert_eq!((layout.heads[0].flags, layout.heads[1].flags), (0, WIDE));
    assert_eq!(layout.narrow[..], [0, 0xffff, 0, 0]);
    assert_eq!(layout.wide[..], [0, 0x10000]);
}

#[test]
fn long_slabs_are_cut_evenly() {
    // 16, 17 and 3 · 16 + 1 blocks.
    let mut lengths = vec![0; 24];
    (lengths[0], lengths[9], lengths[16]) = (16, 17, 49);
    let layout = Matrix::new(1, 200, &lengths, |_, entry| 4 * entry).check(SMALL);
    let counts: Vec<_> = layout.heads.iter().map(|head| head.count).collect();
    assert_eq!(counts, [16, 0, 0, 16, 1, 16, 16, 16, 1]);
    let parts: Vec<_> = layout.parts.iter().map(|p| (p.slab, p.first, p.count, p.counter)).collect();
    assert_eq!(parts, [(1, 0, 2, 0), (1, 0, 2, 0), (2, 2, 4, 1), (2, 2, 4, 1), (2, 2, 4, 1), (2, 2, 4, 1)]);
    // More blocks than 16 bits count, and parts far from each other.
    let layout = Matrix::new(0, 1 << 20, &[1, 100_000], |_, entry| 8 * entry).check(Rules::HOST);
    assert_eq!((layout.heads[0].flags, layout.parts.len()), (CUT, 4));
}

#[test]
fn rules_follow_the_size() {
    let limit = |blocks| Rules::new(blocks, 4224, 1 << 14).limit();
    assert_eq!([0, 1000, 500_000, 5_000_000, 1 << 31].map(limit), [64, 64, 128, 512, 1 << 15]);
    // Slabs that are cut, of which there are fewer than blocks / limit, fit the counters.
    for blocks in [1 << 20, (1 << 22) + 1, 1 << 28] {
        assert!(blocks / limit(blocks) <= 1 << 14);
    }
    for blocks in 65..1000 {
        let (parts, size) = Rules { limit_log2: 6 }.parts(blocks);
        assert!(size <= 64 && (parts - 1) * size < blocks && parts * size >= blocks);
    }
}

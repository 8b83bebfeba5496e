//! Tests of mask blocks: the inverse gives the matrix back, and the arrays agree with the heads.

use testkit::sequence;

use super::*;
use crate::format::testing::TestMatrix;
use crate::memory::HostMemory;
use crate::select::spmv::mask_block::rules_on_host;
use crate::types::Address;

impl TestMatrix {
    pub(crate) fn build(&self, rules: Rules) -> MaskBlock<f64> {
        let origin = Origin { keep: true, positions: None };
        let allocator = Allocator::new(Arc::new(HostMemory), Address::NULL, usize::MAX);
        MaskBlock::build(&allocator, &self.pattern(), &self.values, origin, |_| rules).unwrap()
    }

    /// Checks that every entry comes back and that every block and slab is used once.
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

        let (mut block, mut value, mut parts) = (0, 0, 0);
        for slab in 0..layout.slabs() {
            let heads = layout.heads_of(slab, parts);
            let shares = &layout.heads[slab << rules.shares_log2..][..1 << rules.shares_log2];
            if shares[0].flags & CUT != 0 {
                parts += heads.len();
                assert!(shares.iter().all(|&head| head == BlockHead { flags: CUT, ..BlockHead::default() }));
            }
            // Shares and parts have equal numbers of blocks, but for the last ones.
            let own = &layout.heads[heads];
            let size = own[0].count;
            assert!(size as usize <= 1 << rules.limit_log2, "{own:?}");
            assert!(own.windows(2).all(|pair| pair[0].count == size || pair[1].count == 0));
            for head in own.iter().filter(|head| head.count > 0) {
                assert_eq!((head.block, head.first), (block, value), "{head:?}");
                assert!(head.count <= size);
                let masks = head.blocks().map(|block| layout.mask(block));
                assert!(masks.clone().all(|mask| mask != 0));
                assert_eq!(head.values, masks.map(u32::count_ones).sum::<u32>());
                block += head.count;
                value += u64::from(head.values);
            }
        }
        assert_eq!((block as usize, value as usize), (layout.blocks(), self.values.len()));
        assert_eq!((parts, layout.blocks() * rules.block_rows / 4), (layout.parts.len(), layout.masks.len()));
        layout
    }
}

/// Rules that split slabs of more than 16 blocks.
pub(crate) const SMALL: Rules = Rules { block_rows: 8, shares_log2: 0, limit_log2: 4 };
/// Rules for blocks of 4 rows, with two shares per slab and slabs split above 32 blocks.
pub(crate) const SMALL_FOURS: Rules = Rules { block_rows: 4, shares_log2: 1, limit_log2: 4 };
/// Rules of all kinds, some with limits that leave most slabs whole.
pub(crate) const ALL: [Rules; 6] = [
    SMALL,
    SMALL_FOURS,
    Rules { block_rows: 8, shares_log2: 2, limit_log2: 4 },
    Rules { block_rows: 4, shares_log2: 0, limit_log2: 5 },
    Rules { block_rows: 8, shares_log2: 0, limit_log2: 15 },
    Rules { block_rows: 4, shares_log2: 2, limit_log2: 15 },
];

#[test]
fn every_entry_comes_back() {
    for base in [0, 1] {
        for rows in [0, 1, 4, 5, 7, 8, 9, 12, 13, 16, 31, 100, 500] {
            let mut next = sequence(rows as u64 + 1);
            let lengths: Vec<usize> = (0..rows).map(|_| next() % 4 * (next() % 19)).collect();
            // 997 is prime, so not a multiple of 4; with 40 columns many entries repeat.
            for cols in [997, 40] {
                let matrix =
                    TestMatrix::new(base, cols, &lengths, |row, entry| (row * 7 + entry * 131) % cols);
                for rules in ALL {
                    matrix.check(rules);
                }
            }
        }
    }
}

#[test]
fn blocks_are_what_they_say() {
    // Rows 0 and 1 have columns 1, 2; row 5 column 2; row 9 column 11, the last of its block.
    let mut lengths = vec![0; 10];
    (lengths[0], lengths[1], lengths[5], lengths[9]) = (2, 2, 1, 1);
    let column = |row: usize, entry: usize| match row {
        9 => 11,
        5 => 2,
        _ => 1 + entry,
    };
    let matrix = TestMatrix::new(1, 12, &lengths, column);
    let layout = matrix.check(SMALL);
    assert_eq!(layout.masks[..], [0x66, 0x40, 1 << 7, 0]);
    assert_eq!(layout.narrow[..], [0, 0]);
    assert_eq!((layout.heads[0].base, layout.heads[1].base), (0, 2));
    assert_eq!((layout.fill_ratio(), layout.details().as_str()), (64.0 / 6.0, "blocks of 8 × 4"));
    let layout = matrix.check(SMALL_FOURS);
    assert_eq!(layout.masks[..], [0x66, 0x40, 1 << 7]);
    assert_eq!((layout.heads[0].base, layout.heads[2].base, layout.heads[4].base), (0, 0, 2));
    assert_eq!((layout.fill_ratio(), layout.details().as_str()), (48.0 / 6.0, "blocks of 4 × 4"));
}

#[test]
fn entries_stored_twice_keep_their_order() {
    // Row 0: 4 4 4 5, rows 1 and 4: 5.
    let column = |row: usize, entry: usize| if row > 0 || entry == 3 { 5 } else { 4 };
    let matrix = TestMatrix::new(0, 9, &[4, 1, 0, 0, 1], column);
    let layout = matrix.check(SMALL);
    assert_eq!(layout.masks[..], [0x21, 0x02, 0x01, 0, 0x03, 0]);
    assert_eq!(layout.values[..], [1.0, 5.0, 6.0, 2.0, 3.0, 4.0]);
    let layout = matrix.check(SMALL_FOURS);
    assert_eq!(layout.masks[..], [0x21, 0x01, 0x03, 0x02]);
    assert_eq!(layout.values[..], [1.0, 5.0, 2.0, 3.0, 4.0, 6.0]);
}

#[test]
fn spans_choose_the_width() {
    for rules in [SMALL, Rules { shares_log2: 0, ..SMALL_FOURS }] {
        let far = 4 * 0x10000;
        let column = |row: usize, entry: usize| match (row / rules.block_rows, entry) {
            (_, 0) => 3,
            (0, _) => far - 1,
            _ => far + 2,
        };
        let layout = TestMatrix::new(0, far + 3, &vec![2; 2 * rules.block_rows], column).check(rules);
        assert_eq!((layout.heads[0].flags, layout.heads[1].flags), (0, WIDE));
        assert_eq!(layout.narrow[..], [0, 0xffff, 0, 0]);
        assert_eq!(layout.wide[..], [0, 0x10000]);
    }
}

#[test]
fn long_slabs_are_cut_evenly() {
    // 16, 17 and 3 · 16 + 1 blocks.
    let mut lengths = vec![0; 24];
    (lengths[0], lengths[9], lengths[16]) = (16, 17, 49);
    let matrix = TestMatrix::new(1, 200, &lengths, |_, entry| 4 * entry);
    let counts_of = |layout: &MaskBlock<f64>| layout.heads.iter().map(|head| head.count).collect::<Vec<_>>();
    let layout = matrix.check(SMALL);
    assert_eq!(counts_of(&layout), [16, 0, 0, 16, 1, 16, 16, 16, 1]);
    let parts: Vec<_> = layout.parts.iter().map(|p| (p.slab, p.first, p.count, p.counter)).collect();
    assert_eq!(parts, [(1, 0, 2, 0), (1, 0, 2, 0), (2, 2, 4, 1), (2, 2, 4, 1), (2, 2, 4, 1), (2, 2, 4, 1)]);
    // With two shares, slabs of up to 32 blocks are not split.
    let layout = matrix.check(SMALL_FOURS);
    assert_eq!(counts_of(&layout), [8, 8, 0, 0, 16, 1, 0, 0, 0, 0, 0, 0, 16, 16, 16, 1]);
    assert!(layout.parts.iter().all(|part| (part.slab, part.count) == (4, 4)));
    // A slab of many blocks, whose parts are far from each other.
    let layout = TestMatrix::new(0, 1 << 20, &[1, 100_000], |_, entry| 8 * entry).check(ALL[4]);
    assert_eq!((layout.heads[0].flags, layout.parts.len()), (CUT, 4));
}

#[test]
fn the_smaller_of_both_sizes_is_taken() {
    let rows_of = |matrix: &TestMatrix| {
        let chosen = std::cell::Cell::new(0);
        let origin = Origin { keep: false, positions: None };
        let allocator = Allocator::new(Arc::new(HostMemory), Address::NULL, usize::MAX);
        let rules = |counts: &Counts| {
            // The counts are those of both layouts.
            for block_rows in [8, 4] {
                let layout = matrix.build(Rules { block_rows, shares_log2: 0, limit_log2: 15 });
                assert_eq!(layout.blocks(), counts.blocks(block_rows));
                let bytes = 2 * (layout.masks.len() + layout.narrow.len()) + 32 * layout.heads.len();
                assert_eq!(bytes, counts.index_bytes(block_rows));
            }
            let rules = rules_on_host(counts);
            chosen.set(rules.block_rows);
            rules
        };
        MaskBlock::build(&allocator, &matrix.pattern(), &matrix.values, origin, rules).unwrap();
        chosen.get()
    };
    // A band matrix gets blocks of 8 rows, entries far from each other blocks of 4.
    assert_eq!(rows_of(&TestMatrix::new(0, 200, &[40; 100], |row, entry| row + entry)), 8);
    assert_eq!(
        rows_of(&TestMatrix::new(0, 4000, &[40; 100], |row, entry| (row * 997 + entry * 131) % 4000)),
        4
    );
    assert_eq!(rows_of(&TestMatrix::new(0, 1, &[], |_, _| 0)), 8);
}

#[test]
fn parts_have_all_blocks() {
    for blocks in 65..1000 {
        let rules = Rules { block_rows: 8, shares_log2: 0, limit_log2: 6 };
        let Division { parts, size } = rules.division(blocks);
        assert!(size <= 64 && (parts - 1) * size < blocks && parts * size >= blocks);
    }
}

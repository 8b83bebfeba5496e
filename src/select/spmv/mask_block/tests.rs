use super::*;

#[test]
fn warps_share_rows_that_are_long() {
    assert_eq!([0, 512, 513].map(shares_rows), [false, false, true]);
    // Registers of the kernels allow 32 warps a multiprocessor.
    assert_eq!(warps_at_once(132), 4224);
}

#[test]
fn rules_follow_the_size() {
    let counts = |rows, eights, fours| Counts { rows, eights, fours };
    let rules = |counts: Counts| rules(&counts, 4224, 1 << 14);
    // Many rows: a slab has one share.
    let limit = |blocks| rules(counts(1 << 24, blocks, 2 * blocks)).limit_log2;
    assert_eq!([0, 1000, 500_000, 5_000_000, 1 << 31].map(limit), [6, 6, 7, 9, 15]);
    // Split slabs, of which there are fewer than blocks / limit, fit the counters.
    for blocks in [1 << 20, (1 << 22) + 1, 1 << 28] {
        assert!(blocks >> limit(blocks) <= 1 << 14);
    }
    // Blocks of 4 rows have half the size.
    assert_eq!(
        rules(counts(40_000, 500_000, 500_000)),
        Rules { block_rows: 4, shares_log2: 0, limit_log2: 7 }
    );
    // Enough slabs; just enough; few; few and short; not many and long.
    let shares = |slabs: usize, blocks: usize| rules(counts(8 * slabs, blocks, 2 * blocks)).shares_log2;
    assert_eq!([shares(7800, 200_000), shares(2113, 60_000), shares(1000, 25_000)], [0, 0, 2]);
    assert_eq!([shares(1000, 7000), shares(1000, 9000), shares(2000, 60_000), shares(0, 0)], [0, 1, 1, 0]);
    assert_eq!([shares(4765, 600_000), shares(1500, 750_000), shares(9000, 2_000_000)], [1, 2, 0]);
}

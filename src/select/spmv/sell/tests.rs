use super::*;

#[test]
fn rules_follow_the_size() {
    let lanes = 132 * 1024;
    let new = |rows, nnz, bytes, shared| rules(rows, nnz, bytes, lanes, 1 << 15, shared, false);
    let entries = |(rows, nnz)| new(rows, nnz, 8, [0, 0]).entries;
    // The limit is a lane's share of a row (all, half, … of it) and an eighth more, for items a quarter more,
    // but at least 8 to 16. All slices run at one time except for the last three matrices.
    let cases = [(65_536, 494_132), (16_384, 1_047_552), (16_384, 4_177_920), (18, 558_985)];
    assert_eq!(cases.map(entries), [8, 16, 36, 10]);
    assert_eq!(
        [(66_463, 12_162_315), (38_120, 15_490_745), (2_097_152, 55_742_968)].map(entries),
        [26, 29, 30]
    );
    let of_threes = |nnz| new(3 * (nnz / 159), nnz, 8, [0, nnz]);
    assert_eq!(
        [7_518_564, 11_675_808].map(|nnz| (of_threes(nnz).item_rows, of_threes(nnz).entries)),
        [(3, 100), (3, 50)]
    );
    // Rows of usual length are not split, if they are enough for all multiprocessors.
    let limit = |rows, nnz| new(rows, nnz, 8, [0, 0]).limit();
    assert_eq!([limit(2048, 1_048_576), limit(512, 209_715), limit(4096, 3_355_041)], [1024, 256, 2048]);
    let limit = |nnz| new(nnz / 16, nnz, 8, [0, 0]).limit();
    assert_eq!([1000, 500_000, 5_000_000, 55_000_000, 1 << 40].map(limit), [256, 256, 1024, 4096, 1 << 15]);
    // A warp takes two slices of single short rows with a narrow x and narrow values.
    let pairs = |rows, longest, value, x| {
        takes_pairs(&new(rows, 4 * rows, value, [0, 0]), rows, longest, value, x, lanes)
    };
    let rows = 2 * lanes;
    assert!(pairs(rows, 8, 2, 4) && !pairs(rows - 1, 8, 2, 4));
    assert_eq!([pairs(rows, 9, 2, 4), pairs(rows, 8, 4, 4), pairs(rows, 8, 2, 8)], [false; 3]);
    assert!(!takes_pairs(&new(rows, 4 * rows, 2, [4 * rows, 4 * rows]), rows, 4, 2, 2, lanes));
    let group = |rows, bytes| new(rows, 10_000, bytes, [0, 0]).group();
    // Values of 0 bytes are all 1.
    let cases = [(400, 8), (400, 4), (500, 4), (1250, 2), (1300, 2), (1250, 0), (0, 16)];
    assert_eq!(cases.map(|(rows, bytes)| group(rows, bytes)), [2, 4, 2, 4, 2, 4, 2]);
    // fp64 has groups of four where columns follow each other.
    let fp64 = |rows, bytes, adjacent| rules(rows, 10_000, bytes, lanes, 1 << 15, [0, 0], adjacent).group();
    assert_eq!(
        [fp64(200, 8, true), fp64(200, 8, false), fp64(300, 8, true), fp64(200, 16, true)],
        [4, 2, 2, 2]
    );
    let shared = |bytes, shared| {
        let rules = new(100, 10_000, bytes, shared);
        (rules.item_rows, rules.group(), rules.window)
    };
    assert_eq!(new(100, 0, 8, [0, 0]).item_rows, 1);
    assert_eq!(shared(4, [7400, 7400]), (1, 4, 1024));
    assert_eq!(shared(8, [6000, 4400]), (2, 2, 1024));
    assert_eq!(shared(2, [10_000, 10_000]), (3, 2, 1023));
    // Rows that are alike in fours: items of three would leave one of four alone.
    assert_eq!(shared(2, [10_000, 7500]), (3, 2, 1023));
    assert_eq!(shared(2, [10_000, 7400]), (2, 2, 1024));
}

#[test]
fn warps_look_through_one_row_or_up_to_32() {
    let log2 = |rows| rows_per_warp_log2(rows, 132);
    assert_eq!(
        [0, 1, 64 * 132, 64 * 132 + 1, 3 * 64 * 132, 32 * 64 * 132, u64::MAX].map(log2),
        [0, 0, 0, 1, 2, 5, 5]
    );
}

use super::*;
use crate::types::DataType;

#[test]
fn heights_go_by_what_rows_share() {
    // Numbers of distinct columns in windows of 8, 16, 32 and 64 rows.
    let counts = |columns: [usize; 4]| Counts {
        rows: 1 << 16,
        nnz: 1 << 22,
        sampled_nnz: 1 << 22,
        columns,
        ..Counts::default()
    };
    let height = |columns: [usize; 4], n: usize| rules_of_doubles(&counts(columns), n).height;
    // Rows that share no columns: ρ is 1.
    let nothing = [1 << 22; 4];
    // Rows that all have the same columns.
    let all = [1 << 19, 1 << 18, 1 << 17, 1 << 16];
    // Reuse that grows by half with each doubling, as for cant.
    let some = [960_000, 735_000, 494_000, 338_000];
    assert_eq!([8, 32, 128, 512].map(|n| height(nothing, n)), [16; 4]);
    assert_eq!([8, 32, 128, 512].map(|n| height(all, n)), [16, 64, 64, 64]);
    assert_eq!([8, 32, 128, 512].map(|n| height(some, n)), [16, 32, 32, 32]);
    assert_eq!([32, 128].map(|n| rules_of_doubles(&counts(some), n).most), [64, 128]);
}

#[test]
fn tiles_leave_few_columns_idle() {
    // Tiles of the fp32 kernels, and of those for windows of 32 rows in fp64.
    let columns = |of: &[usize], n| of[form_of(of.iter().copied(), n)];
    let singles = |n| columns(&[8, 32, 64, 128], n);
    assert_eq!(
        [1, 8, 9, 32, 33, 64, 65, 96, 100, 128, 512].map(singles),
        [8, 8, 32, 32, 64, 64, 32, 32, 128, 128, 128]
    );
    let doubles = |n| columns(&[8, 32, 128], n);
    assert_eq!(
        [8, 9, 33, 64, 65, 100, 128, 160, 320, 352].map(doubles),
        [8, 32, 32, 32, 32, 128, 128, 32, 32, 128]
    );
    // Only narrow tiles; no tile of more than 8 columns; the largest number of columns.
    assert_eq!(columns(&[8, 32], 512), 32);
    assert_eq!(columns(&[8], 512), 8);
    assert_eq!(singles(usize::MAX), 32);
}

#[test]
fn tiles_of_an_item_are_neighbours_but_in_doubles() {
    assert_eq!([1, 8, 9].map(|tiles| neighbours(tiles, false)), [1, 8, 8]);
    assert_eq!([1, 8, 9].map(|tiles| neighbours(tiles, true)), [1; 3]);
}

/// The matrices that the comment of `has_narrow_tiles` names, with a B of which L2 does not hold 64 columns.
#[test]
fn tiles_are_narrow_where_rows_share_nothing_and_b_is_large() {
    let types = |a, compute| Types { a, x: a, y: a, compute };
    let doubles = types(DataType::R64F, ComputeType::R64F);
    let widest = |types, sizes| widest_tile(types, sizes, 50 << 20);
    // uniform and cop20k; mac_econ and mc2depi, which read rows of B less often.
    assert_eq!(widest(doubles, (3_200_000, 3_190_000, 200_000)), NARROW_TILE);
    assert_eq!(widest(doubles, (2_170_000, 2_000_000, 120_000)), NARROW_TILE);
    assert_eq!(widest(doubles, (1_270_000, 1_200_000, 206_500)), usize::MAX);
    assert_eq!(widest(doubles, (2_100_000, 2_000_000, 525_825)), usize::MAX);
    // Rows that share columns; a B that fits into L2; singles.
    assert_eq!(widest(doubles, (3_200_000, 1_600_000, 200_000)), usize::MAX);
    assert_eq!(widest(doubles, (1_600_000, 1_590_000, 100_000)), usize::MAX);
    let singles = types(DataType::R32F, ComputeType::R32F);
    assert_eq!(widest(singles, (6_400_000, 6_390_000, 400_000)), usize::MAX);
}

use super::*;

#[test]
fn heights_go_by_what_rows_share() {
    // Of windows of 8, 16, 32 and 64 rows.
    let counts = |columns: [usize; 4]| Counts {
        rows: 1 << 16,
        nnz: 1 << 22,
        looked: 1 << 22,
        columns,
        ..Counts::default()
    };
    let height = |columns: [usize; 4], n: usize| rules_of_doubles(&counts(columns), n).height;
    // Nothing: ρ is 1.
    let nothing = [1 << 22; 4];
    // Each row has the columns of all others.
    let all = [1 << 19, 1 << 18, 1 << 17, 1 << 16];
    // Half as much more with each doubling, as cant.
    let some = [960_000, 735_000, 494_000, 338_000];
    assert_eq!([8, 32, 128, 512].map(|n| height(nothing, n)), [16; 4]);
    assert_eq!([8, 32, 128, 512].map(|n| height(all, n)), [16, 64, 64, 64]);
    assert_eq!([8, 32, 128, 512].map(|n| height(some, n)), [16, 32, 32, 32]);
    assert_eq!([32, 128].map(|n| rules_of_doubles(&counts(some), n).most), [64, 128]);
}

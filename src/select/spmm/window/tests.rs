use super::*;

#[test]
fn heights_go_by_what_rows_share() {
    // All rows have the same 16 columns, in 8, 4, 2 or one window.
    let counts =
        Counts { rows: 64, nnz: 1024, sampled_nnz: 1024, columns: [128, 64, 32, 16], ..Counts::default() };
    assert_eq!([128, 512].map(|n| rules(&counts, n, 132).height), [64, 64]);
    // Four windows of one block.
    let found = rules(&counts, 32, 132);
    assert_eq!((found.height, found.sharing, found.limit(4)), (16, 1, 32));
    // No two rows share a column.
    let counts = Counts { columns: [1024; 4], ..counts };
    assert_eq!([32, 64, 128].map(|n| rules(&counts, n, 132).height), [8; 3]);
}

#[test]
fn few_long_windows_are_shared() {
    let long = Counts {
        rows: 64,
        nnz: 64 * 4096,
        sampled_nnz: 64 * 4096,
        columns: [8 * 4096, 4 * 4096, 2 * 4096, 4096],
        ..Counts::default()
    };
    let found = rules(&long, 32, 132);
    assert_eq!((found.sharing, found.limit(4 * 256)), (8, 256));
    let found = rules(&long, 128, 132);
    assert_eq!((found.height, found.sharing, found.limit(1 << 20)), (64, 1, 64));
    // A handle has 2^18 counters.
    assert_eq!(found.limit(1 << 28), 1024);
}

#[test]
fn few_windows_are_cut_to_fill_the_device() {
    // 256 windows of 67 blocks, two a multiprocessor: splitting them costs more than it gains.
    assert_eq!([1, 2, 4].map(|tiles| staged_most(256.0 * 67.0, 256, tiles, 132)), [83; 3]);
    // 64 windows of 256 blocks: as many parts as fill the device, and fewer with more tiles.
    assert_eq!([1, 2, 4].map(|tiles| staged_most(64.0 * 256.0, 64, tiles, 132)), [64, 80, 160]);
    // Enough windows: only those much longer than the mean are split.
    assert_eq!(staged_most(1e6, 10_000, 1, 132), 125);
    assert_eq!(staged_most(0.0, 0, 1, 0), 64);
}

/// Numbers of columns that overflow must choose what very many columns choose: a count that wrapped around
/// would look like few.
#[test]
fn any_number_of_columns_is_asked_about() {
    let staged = Counts {
        rows: 1 << 31,
        nnz: 1 << 40,
        sampled_nnz: 1 << 20,
        columns: [1 << 20, 1 << 19, 1 << 18, 1 << 17],
        ..Counts::default()
    };
    // 32 windows of 8 rows that share no columns: with few columns of B, warps share windows.
    let direct =
        Counts { rows: 256, nnz: 1 << 20, sampled_nnz: 1 << 20, columns: [1 << 20; 4], ..Counts::default() };
    assert_eq!(rules(&direct, 32, 132).sharing, 8);
    for counts in [staged, direct] {
        let many = rules(&counts, 1 << 30, 132);
        assert_eq!(many.sharing, 1);
        for n in [1 << 40, usize::MAX / 2, usize::MAX] {
            assert_eq!(rules(&counts, n, 132), many, "{n} columns");
        }
    }
}

#[test]
fn kernels_go_by_the_columns_of_c() {
    let of = |height| {
        [1, 32, 33, 64, 65, 128, 129, 256, 257, 384, 512, 513, 641].map(|n| forms(height)[form_of(n)])
    };
    use Form::{Direct, Staged};
    let (few, some, many, wide) = (Direct(32), Direct(64), Staged(128), Staged(256));
    // Tiles of 256 columns are taken if they are full, or many.
    assert_eq!(of(16), [few, few, some, some, many, many, wide, wide, many, many, wide, wide, wide]);
    assert_eq!(of(8), [few, few, some, some, some, some, some, some, some, some, some, some, some]);
    assert_eq!(of(32)[..8], [many, many, many, many, many, many, wide, wide]);
    assert_eq!(of(64), [many; 13]);
}

#[test]
fn parts_have_a_kernel_where_there_are_many() {
    // webbase with one part in 580 items; one in 255; windows of 32 rows, which have no such kernel.
    assert!(!has_many_parts(16, [100, 58_000]) && has_many_parts(16, [100, 25_500]));
    assert!(!has_many_parts(16, [0, 1000]) && !has_many_parts(32, [100, 1000]));
}

#[test]
fn few_windows_are_numbered_by_many_threads() {
    // dc2, whose longest window decides; a mesh; a pruned layer.
    assert_eq!(threads_of(760_000, 7302), 256);
    assert_eq!(
        [threads_of(16_384 * 16, 16_384), threads_of(1 << 21, 16_384), threads_of(1 << 26, 16_384)],
        [64, 128, 256]
    );
}

#[test]
fn blocks_mark_columns_in_whole_words_of_words() {
    assert_eq!([0, 1, 128, 129, 1 << 17, i64::MAX].map(keys_at_once), [128, 128, 128, 256, 1 << 17, 1 << 17]);
}

//! Decisions on the copies of op(B) that a product makes in the workspace of a device before it multiplies,
//! with rows of whole packs or lines, where the kernels would otherwise gather single elements. The workspace
//! has room for a copy wherever one may be needed, since its size is queried before the operands are known.

/// Bytes of a cache line.
pub const LINE: usize = 128;
/// Bytes of a pack, which a lane reads at one time.
pub const PACK: usize = 16;

/// Minimum number of entries per column of A for which a copy of B costs little beside the product of `row`:
/// with 819 it gained 18 %, with 69 it lost 22 %; nothing in between was measured.
const ROW_REUSE: i64 = 256;
/// Minimum number of entries per column of A for which `window`, with 16-bit values, copies a B with
/// unaligned rows: gathering elements of 2 bytes took cant's 100 columns (69 entries a column) from 45 µs to
/// 107.
const WINDOW_REUSE: i64 = 8;
/// Minimum number of times that a row of B is read for `smat`, and other kernels with a copy of their own, to
/// copy a B with unaligned rows: gathering elements of 2 bytes took `smat` from 57 µs to 141 with cant's 100
/// columns, whose rows of B are read 15 times, and from 227 to 641 with mac_econ's (19 times).
const READ_OFTEN: i64 = 4;

/// Maximum number of columns, and of entries, for which `row` gathers elements of a B by columns in any case:
/// each element of a row is a sector of L2, of which there are then 5 to 8 in an entry instead of one or two.
const GATHERED: usize = super::row::NARROW / 2;
const FEW_ENTRIES: i64 = 1 << 17;

/// Mean number of entries per column.
fn reuse(entries: i64, cols: i64) -> i64 {
    entries / cols.max(1)
}

/// Returns whether `row` copies op(B) by rows for `n` columns, because rows of op(B) are not contiguous, or are
/// conjugated. Few columns are gathered where that reads little more than a copy, or takes no longer than its
/// launch.
pub fn row_needs_rows(n: usize, by_rows: bool, conjugates: bool, (entries, cols): (i64, i64)) -> bool {
    let gathers_much = n > GATHERED && entries > FEW_ENTRIES && reuse(entries, cols) >= READ_OFTEN;
    if n > super::row::NARROW {
        !by_rows || conjugates
    } else {
        !by_rows && gathers_much
    }
}

/// Returns whether `row` copies B into rows of whole cache lines if rows of `n` elements of `size` bytes are
/// not: this pays where a row of B is read often.
pub fn row_aligns(n: usize, size: usize, (entries, cols): (i64, i64)) -> bool {
    let bytes = n.saturating_mul(size);
    bytes > 2 * LINE && bytes % LINE != 0 && reuse(entries, cols) >= ROW_REUSE
}

/// Returns whether the workspace has room for a copy of B for `window` with 16-bit values: if its columns are
/// contiguous (`gathers`), or its rows are likely to be unaligned and are read often.
pub fn window_may_copy(n: usize, gathers: bool, (entries, cols): (i64, i64)) -> bool {
    gathers || n > 8 && n % 8 != 0 && reuse(entries, cols) >= WINDOW_REUSE
}

/// Returns whether rows of B with `n` elements of `size` bytes are likely to be unaligned and are read often,
/// `reads` times altogether for each column of C. It depends on nHint only: fewer columns may not need more
/// workspace.
pub fn aligns(n: usize, size: usize, (reads, rows): (i64, i64)) -> bool {
    n % (PACK / size) != 0 && reuse(reads, rows) >= READ_OFTEN
}

/// Returns whether the workspace has room for a copy of `n` columns, where rows of B are gathered, or aligned
/// ([`aligns`]).
pub fn may_copy(n: usize, size: usize, gathers: bool, aligns: bool) -> bool {
    gathers || aligns && n > PACK / size
}

/// Returns whether B is copied, given that there may be room (`may_copy`): if its columns are contiguous
/// (`gathers`), or not all of its rows begin with whole packs.
pub fn copies(gathers: bool, may_copy: bool, has_packs: bool) -> bool {
    gathers || may_copy && !has_packs
}

/// Returns whether `sell` reads B without a copy, for `n` columns of which a lane takes `columns_of_lane`:
/// rows are contiguous, aligned to a lane's loads (`is_aligned`) and at most 2^31 − 1 bytes apart, and no
/// lane has columns beyond `n`.
pub fn sell_reads_b(
    n: usize,
    columns_of_lane: usize,
    by_rows: bool,
    is_aligned: bool,
    row_bytes: i64,
) -> bool {
    by_rows && is_aligned && n % columns_of_lane == 0 && row_bytes <= i64::from(i32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn row_copies_what_is_read_often() {
        // 1000 columns with 819 or 69 entries each.
        let aligns = |n, size, entries: i64| row_aligns(n, size, (1000 * entries, 1000));
        assert!(aligns(100, 4, 819) && !aligns(100, 4, 69) && aligns(100, 4, 256));
        // Rows of whole lines, and of no more than two lines.
        assert!(!aligns(96, 4, 819) && !aligns(63, 4, 819) && aligns(65, 4, 819));
        assert!(row_aligns(usize::MAX, 4, (1 << 40, 1)) && !row_aligns(100, 4, (0, 0)));
        let needs = |n, by_rows, conjugates| row_needs_rows(n, by_rows, conjugates, (1000, 1000));
        assert!(needs(9, false, false) && needs(9, true, true));
        assert!(!needs(9, true, false) && !needs(8, false, true));
        // Finite elements with few columns, and fewer entries, or reads of a row of B.
        let few = |n, by_rows, sizes| row_needs_rows(n, by_rows, true, sizes);
        assert!(few(8, false, (500_000, 10_000)) && few(5, false, (500_000, 125_000)));
        assert!(!few(8, true, (500_000, 10_000)) && !few(4, false, (500_000, 10_000)));
        assert!(!few(8, false, (100_000, 10_000)) && !few(8, false, (500_000, 125_001)));
    }

    #[test]
    fn rows_that_begin_anywhere_are_copied_where_they_are_read_often() {
        // cant's 100 columns with 69 entries per column of A, and mac_econ's 33 with 6.
        assert!(window_may_copy(100, false, (69 * 62_451, 62_451)));
        assert!(!window_may_copy(33, false, (6 * 206_500, 206_500)));
        // Rows of whole packs of eight halves, and of no more than one.
        assert!([8, 7, 96].iter().all(|&n| !window_may_copy(n, false, (1 << 40, 1))));
        assert!(window_may_copy(96, true, (0, 0)));
        // The blocks of `smat` read cant's rows 15 times, and mac_econ's 19 times.
        assert!(aligns(100, 2, (15 * 62_451, 62_451)) && aligns(100, 2, (19 * 206_500, 206_500)));
        assert!(!aligns(100, 2, (3 * 62_451, 62_451)) && !aligns(96, 2, (1 << 40, 1)));
        assert!(!aligns(100, 4, (1 << 40, 1)) && aligns(101, 8, (1 << 40, 1)));
        // Rows shorter than a pack are read without a copy.
        assert!(!may_copy(8, 2, false, true) && may_copy(9, 2, false, true) && may_copy(1, 2, true, false));
        // A B by columns is copied in any case, and one whose rows begin with packs is not.
        assert!(copies(true, true, true) && copies(false, true, false));
        assert!(!copies(false, true, true) && !copies(false, false, false));
    }

    #[test]
    fn sell_reads_whole_loads() {
        assert!(sell_reads_b(8, 4, true, true, 32) && !sell_reads_b(6, 4, true, true, 32));
        assert!(!sell_reads_b(8, 4, false, true, 32) && !sell_reads_b(8, 4, true, false, 32));
        assert!(!sell_reads_b(8, 4, true, true, 1 << 31));
    }
}

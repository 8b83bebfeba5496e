//! Tests of SELL with hot columns: the inverse gives the matrix back, and the arrays agree with the heads.

use super::*;
use crate::format::warp_sell::tests::WarpSellTestMatrix;
use crate::select::spmv::hot_sell::RULES;
use testkit::sequence;

pub(crate) const SMALL: Rules = Rules { entries: 4, limit: 64 };

/// Matrix of rows of up to some hundred entries, most of them short, with most entries in a few columns that
/// are spread over all.
pub(crate) fn skewed(base: i64, rows: usize, cols: usize, longest: usize) -> WarpSellTestMatrix {
    let mut next = sequence((rows + cols) as u64);
    let lengths: Vec<usize> = (0..rows)
        .map(|row| match next() % 16 {
            0..4 => 0,
            4 if row % 5 == 0 => next() % (longest + 1),
            _ => next() % 24,
        })
        .collect();
    let column = |row: usize, entry: usize| {
        let random = sequence((row * 1000 + entry) as u64)() % (1 << 24);
        let share = random as f64 / f64::from(1 << 24);
        ((share.powi(4) * cols as f64) as usize * 7919) % cols
    };
    WarpSellTestMatrix::new(base, cols, &lengths, column)
}

fn check(matrix: &WarpSellTestMatrix, rules: Rules, most: usize) -> HotSell<f64> {
    let pattern = matrix.pattern();
    let layout = HotSell::build(&pattern, &matrix.values, rules, most);
    let mut found = vec![None; matrix.values.len()];
    layout.for_each_entry(|row, entry, column, value| {
        let at = pattern.range(row).start + entry;
        assert!(entry < pattern.range(row).len() && found[at].is_none());
        found[at] = Some((column, value));
    });
    for (at, found) in found.iter().enumerate() {
        assert_eq!(*found, Some((pattern.index(at), matrix.values[at])), "entry {at}");
    }
    let total: f64 = layout.values.iter().sum();
    assert_eq!(total, matrix.values.iter().sum::<f64>(), "padding is zero");
    // Every row with entries is in one slice or is split; rows without entries come last.
    let rows = layout.order.len();
    let mut stores = vec![0; rows];
    for (number, head) in layout.heads.iter().enumerate() {
        for item in layout.items(number) {
            stores[item.row] += usize::from(head.items > 0 || item.before == 0);
            let longest = pattern.range(item.row).len().div_ceil(1 << head.lanes_log2);
            assert!(head.items == 0 || head.lanes_log2 == 5 || longest <= rules.entries);
        }
    }
    for &row in &layout.order[layout.filled..] {
        assert!(pattern.range(row as usize).is_empty());
        stores[row as usize] += 1;
    }
    assert!(stores.iter().all(|&count| count == 1), "{stores:?}");
    // No column has more entries than a hot one.
    let mut counts = vec![0; matrix.cols];
    (0..matrix.indices.len()).for_each(|at| counts[pattern.index(at)] += 1);
    let is_hot = |column: usize| layout.hot.binary_search(&(column as u32)).is_ok();
    let least = layout.hot.iter().map(|&column| counts[column as usize]).min().unwrap_or(usize::MAX);
    assert!(least > 0 && layout.hot.len() <= most);
    for (column, &count) in counts.iter().enumerate() {
        assert!(is_hot(column) || count == 0 || layout.hot.len() == most && count <= least);
    }
    layout
}

#[test]
fn every_entry_comes_back() {
    for base in [0, 1] {
        for rows in [0, 1, 31, 32, 33, 64, 65, 1000, 2500] {
            let matrix = skewed(base, rows, 5000, 700);
            for most in [1, 16, 300, 100_000] {
                check(&matrix, SMALL, most);
            }
            check(&matrix, RULES, 100);
            check(&matrix, Rules { entries: 1, limit: 128 }, 100);
        }
    }
}

#[test]
fn rows_are_cut_and_share_slices() {
    // One row in three pieces, then slices with 16, 2 and 1 lanes per row.
    let mut lengths = vec![3; 44];
    (lengths[5], lengths[6], lengths[7], lengths[8], lengths[9]) = (130, 50, 8, 8, 7);
    lengths.extend([0, 0]);
    let layout = check(&WarpSellTestMatrix::new(0, 200, &lengths, |_, entry| entry), SMALL, 2);
    let heads: Vec<_> =
        layout.heads.iter().map(|h| (h.first, h.place, h.steps, h.lanes_log2, h.items)).collect();
    let parts = [(0, 0, 1, 5, 0), (1, 0, 1, 5, 0), (2, 0, 1, 5, 0)];
    let slices = [(3, 1, 2, 4, 2), (5, 3, 2, 1, 16), (7, 19, 2, 0, 25)];
    assert_eq!(heads, [&parts[..], &slices].concat());
    assert_eq!(layout.long_rows, [LongRow { row: 5, first: 0, count: 3, unused: 0 }]);
    assert_eq!((layout.filled, &layout.order[44..], &layout.hot[..]), (44, &[44, 45][..], &[0, 1][..]));
}

#[test]
fn limits_are_of_the_buckets() {
    let mut buckets = vec![0; BUCKETS];
    (buckets[0], buckets[1], buckets[7], buckets[BUCKETS - 1]) = (1000, 50, 20, 3);
    let limit = |most| HotLimit::new(&buckets, most);
    let expected = |bucket, ties, count, cold| HotLimit { bucket, ties, count, cold };
    assert_eq!(limit(2), expected(BUCKETS - 1, 2, 2, 50 + 140 + 4095));
    assert_eq!(limit(3), expected(7, 0, 3, 50 + 140));
    assert_eq!(limit(10), expected(7, 7, 10, 50 + 13 * 7));
    assert_eq!(limit(23), expected(1, 0, 23, 50));
    // Columns without entries are never hot.
    assert_eq!(limit(5000), expected(1, 50, 73, 0));
}

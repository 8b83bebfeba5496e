//! Tests of masked windows: the inverse gives the matrix back, and the arrays agree with the work items.

use super::*;
use crate::format::sell::Origin;
use crate::format::testing::TestMatrix;
use crate::format::window::{Counts, HEIGHTS, PADDING, WHOLE};
use crate::memory::HostMemory;
use crate::types::Address;
use testkit::sequence;

/// Rules for windows of all heights, split above 2, 6 and 128 blocks.
pub(crate) fn all_rules() -> impl Iterator<Item = Rules> {
    HEIGHTS.into_iter().flat_map(|height| [2, 5, 128].map(|most| Rules { height, most, sharing: 1 }))
}

pub(crate) fn build(matrix: &TestMatrix, rules: impl Fn(&Counts) -> Rules) -> MaskedWindow<f64> {
    let origin = Origin { keep: true, positions: None };
    let allocator = Allocator::new(Arc::new(HostMemory), Address::NULL, usize::MAX);
    MaskedWindow::build(&allocator, &matrix.pattern(), &matrix.values, origin, rules).unwrap()
}

/// Checks that every entry comes back, that every block and item is used once, and that padding is marked.
fn check(matrix: &TestMatrix, rules: Rules) -> MaskedWindow<f64> {
    let layout = build(matrix, |_| rules);
    let pattern = matrix.pattern();
    let mut found = Vec::new();
    layout.for_each_entry(|row, entry, column, value| {
        let at = pattern.range(row).start + entry;
        assert!(entry < pattern.range(row).len());
        found.push((at, column, value));
    });
    found.sort_by_key(|&(at, _, _)| at);
    let expected = (0..matrix.values.len()).map(|at| (at, pattern.index(at), matrix.values[at]));
    assert!(found.iter().copied().eq(expected), "{rules:?}");
    let slots = layout.slots.as_ref().unwrap();
    assert!(slots.iter().zip(&matrix.values).all(|(&at, &v)| layout.values[at as usize] == v));
    assert_eq!(layout.values.len(), matrix.values.len());
    let groups = rules.height / BLOCK;
    assert_eq!(layout.store.masks.len(), layout.blocks() * groups);
    assert_eq!(layout.store.starts.len(), layout.store.masks.len() + 1);
    for (tile, mask) in layout.store.masks.iter().enumerate() {
        assert_eq!(layout.store.starts[tile] + mask.count_ones(), layout.store.starts[tile + 1]);
    }

    let limit = rules.limit(layout.blocks());
    let mut owner = vec![None; layout.blocks()];
    let mut seen = vec![false; layout.row_count.div_ceil(rules.height)];
    for (number, item) in layout.items.iter().enumerate() {
        assert!((item.end - item.first) as usize <= limit);
        assert_eq!(item.part == WHOLE, number >= layout.parts.len());
        for block in item.first..item.end {
            assert_eq!(owner[block as usize].replace(item.window), None);
        }
        if let Some((window, blocks)) = layout.window_at(number) {
            assert!(!std::mem::replace(&mut seen[window], true));
            let columns = &layout.columns[blocks.start * BLOCK..blocks.end * BLOCK];
            let real = columns.iter().take_while(|&&column| column & PADDING == 0).count();
            assert!(columns[..real].is_sorted());
            assert!(columns.len() - real < BLOCK);
            assert!(columns[real..].iter().all(|&column| column == columns[real - 1] | PADDING));
            for block in blocks {
                // Only padding columns have no entry.
                let used =
                    layout.store.masks[block * groups..][..groups].iter().fold(0, |all, mask| all | mask);
                for k in 0..BLOCK {
                    let is_used = (0..BLOCK).any(|row| used >> bit(row, k) & 1 != 0);
                    assert_eq!(is_used, layout.columns[block * BLOCK + k] & PADDING == 0);
                }
            }
        }
    }
    assert!(owner.iter().all(Option::is_some) && seen.iter().all(|&seen| seen));
    layout
}

#[test]
fn every_entry_comes_back() {
    for base in [0, 1] {
        for rows in [0, 1, 7, 8, 9, 16, 17, 31, 63, 64, 65, 200] {
            let mut next = sequence(rows as u64 + 1);
            let lengths: Vec<usize> = (0..rows).map(|_| next() % 4 * (next() % 19)).collect();
            for cols in [997, 40] {
                // With 40 columns, many columns repeat in a row.
                let matrix =
                    TestMatrix::new(base, cols, &lengths, |row, entry| (row * 7 + entry * 131) % cols);
                for rules in all_rules() {
                    check(&matrix, rules);
                }
            }
        }
    }
}

#[test]
fn long_windows_are_cut() {
    let mut lengths = vec![3; 500];
    (lengths[130], lengths[300], lengths[301]) = (3000, 400, 300);
    let matrix = TestMatrix::new(0, 60_000, &lengths, |row, entry| row + entry * 17);
    for rules in all_rules() {
        let layout = check(&matrix, rules);
        assert!(layout.parts.iter().any(|part| part.window as usize == 130 / rules.height));
    }
}

#[test]
fn a_lane_has_its_bit_in_both_words_of_a_mask() {
    // Row 9 has the columns 0 to 9, row 0 has 3 and 8.
    let mut lengths = [0; 10];
    (lengths[0], lengths[9]) = (2, 10);
    let matrix = TestMatrix::new(0, 20, &lengths, |row, entry| if row == 0 { 3 + entry * 5 } else { entry });
    let layout = check(&matrix, Rules { height: 16, most: 8, sharing: 1 });
    assert_eq!(layout.store.masks[..], [1 << 3, 0xf0 << 32 | 0xf0, 1, 0x30]);
    assert_eq!(layout.store.starts[..], [0, 1, 9, 10, 12]);
    let (short, long) = matrix.values.split_at(2);
    assert_eq!(layout.values[..], [&short[..1], &long[..8], &short[1..], &long[8..]].concat());
    assert_eq!(layout.details(), "windows of 16 rows, 1.20 entries a column");
}

#[test]
fn a_column_that_a_row_stores_twice_has_two_places() {
    let matrix = TestMatrix::new(0, 100, &[3, 1, 2], |row, entry| if row == 0 { 5 } else { 5 + entry });
    let layout = check(&matrix, Rules { height: 8, most: 8, sharing: 1 });
    assert_eq!(layout.columns[..5], [5, 5, 5, 6, 6 | PADDING]);
    assert_eq!(layout.distinct, 4);
}

#[test]
fn new_values_go_to_their_places() {
    let matrix = TestMatrix::new(1, 300, &[5, 0, 40, 3], |row, entry| row * 9 + entry * 3);
    for rules in all_rules() {
        let mut layout = build(&matrix, |_| rules);
        let new: Vec<f64> = matrix.values.iter().map(|v| -v).collect();
        assert!(layout.refill(&new, false));
        let expected = build(&TestMatrix { values: new, ..matrix.clone() }, |_| rules);
        assert_eq!(layout.values[..], expected.values[..]);
    }
}

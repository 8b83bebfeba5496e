//! Tests of windows: the inverse gives the matrix back, and the arrays agree with the work items.

use super::*;
use crate::format::testing::TestMatrix;
use crate::memory::HostMemory;
use crate::types::Address;
use testkit::sequence;

/// Number of blocks above which only really long windows are split.
const MOST_BLOCKS: usize = 128;
const WHOLE_WINDOWS: Rules = Rules { height: 16, most: MOST_BLOCKS, sharing: 1 };

/// Rules for windows of all heights, split above 2, 6 and 128 blocks.
pub(crate) fn all_rules() -> impl Iterator<Item = Rules> {
    HEIGHTS.into_iter().flat_map(|height| {
        [(2, 1), (5, 8), (MOST_BLOCKS, 1)].map(|(most, sharing)| Rules { height, most, sharing })
    })
}

pub(crate) fn build(matrix: &TestMatrix, rules: impl Fn(&Counts) -> Rules) -> Window<f64> {
    let origin = Origin { keep: true, positions: None };
    let allocator = Allocator::new(Arc::new(HostMemory), Address::NULL, usize::MAX);
    Window::build(&allocator, &matrix.pattern(), &matrix.values, origin, rules).unwrap()
}

/// Checks that every entry comes back, that every block and item is used once, that padding is marked, and
/// that all other slots without an entry are 0.
fn check(matrix: &TestMatrix, rules: Rules) -> Window<f64> {
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
    let stored: u32 = layout.store.stored.iter().map(|mask| mask.count_ones()).sum();
    assert_eq!(stored as usize, matrix.values.len());
    let others = layout.values.iter().filter(|&&v| v == 0.0).count();
    assert_eq!(others + matrix.values.len(), layout.values.len());

    let limit = rules.limit(layout.blocks());
    let mut owner = vec![None; layout.blocks()];
    let mut seen = vec![false; layout.row_count.div_ceil(rules.height)];
    for (number, item) in layout.items.iter().enumerate() {
        assert!((item.end - item.first) as usize <= limit);
        if item.part == WHOLE {
            assert!(number >= layout.parts.len());
        } else {
            assert_eq!(item.part as usize, number);
            let part = layout.parts[number];
            assert_eq!(part.window, item.window);
            assert!((part.first..part.first + part.count).contains(&item.part));
            // Each part but the last has an even number of blocks, and none is empty.
            assert!(item.end > item.first);
            assert!(item.part + 1 == part.first + part.count || (item.end - item.first) % 2 == 0);
        }
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
                let mut used = [false; BLOCK];
                layout.for_each_of_block(block, |_, column, _| {
                    for (at, used) in used.iter_mut().enumerate() {
                        *used |= layout.columns[block * BLOCK + at] as usize == column;
                    }
                });
                // Only padding columns have no entry, and every tile has one.
                assert!((0..BLOCK).all(|k| used[k] == (layout.columns[block * BLOCK + k] & PADDING == 0)));
            }
        }
    }
    assert!(owner.iter().all(Option::is_some) && seen.iter().all(|&seen| seen));
    assert!(layout.store.stored.chunks(LANES).all(|tile| tile.iter().any(|&mask| mask != 0)));
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
fn long_windows_come_first_and_are_cut() {
    let mut lengths = vec![3; 500];
    (lengths[130], lengths[300], lengths[301]) = (3000, 400, 300);
    let matrix = TestMatrix::new(0, 60_000, &lengths, |row, entry| row + entry * 17);
    for rules in all_rules() {
        let layout = check(&matrix, rules);
        let first = layout.items[0].window as usize;
        assert!(first == 130 / rules.height || rules.most < MOST_BLOCKS);
        assert!(!layout.parts.is_empty());
        if rules.most == MOST_BLOCKS && rules.height == 8 {
            // A window of 44 blocks, where 5 are the mean.
            let whole = &layout.items[layout.parts.len()..];
            assert_eq!(whole[0].window, 37);
            assert!(whole[1..].is_sorted_by_key(|item| item.window));
        }
    }
}

#[test]
fn a_column_that_a_row_stores_twice_has_two_places() {
    let matrix = TestMatrix::new(0, 100, &[3, 1, 2], |row, entry| if row == 0 { 5 } else { 5 + entry });
    let layout = check(&matrix, WHOLE_WINDOWS);
    assert_eq!(layout.columns[..5], [5, 5, 5, 6, 6 | PADDING]);
    assert_eq!(layout.distinct, 4);
}

#[test]
fn tiles_without_entries_are_left_out() {
    // Rows 0 to 15 share no column with rows 48 to 63.
    let mut lengths = vec![0; 64];
    lengths[..16].fill(2);
    lengths[48..].fill(20);
    let matrix = TestMatrix::new(0, 500, &lengths, |row, entry| if row < 16 { entry } else { 300 + entry });
    let layout = check(&matrix, Rules { height: 64, ..WHOLE_WINDOWS });
    assert_eq!(layout.store.tiles[..], [0b1001, 2 << 4 | 0b1000]);
    assert_eq!(layout.values.len(), 3 * 256);
    assert!(layout.details().starts_with("windows of 64 rows, 16."));
}

#[test]
fn counts_say_how_often_a_row_of_b_is_used() {
    // All rows have the same 16 columns.
    let matrix = TestMatrix::new(0, 100, &[16; 64], |_, entry| entry * 5);
    build(&matrix, |counts| {
        assert_eq!(counts.columns, [128, 64, 32, 16]);
        assert_eq!((counts.blocks, counts.tiles), ([8, 4, 2, 1], [8, 4, 4, 4]));
        assert_eq!((counts.spans_16, counts.spans_8), ([40, 20, 10, 5], [80, 40, 20, 10]));
        assert_eq!(HEIGHTS.map(|height| counts.reuse(height)), [8.0, 16.0, 32.0, 64.0]);
        WHOLE_WINDOWS
    });
    // No two rows share a column.
    let matrix = TestMatrix::new(0, 1024, &[16; 64], |row, entry| row * 16 + entry);
    build(&matrix, |counts| {
        assert_eq!(counts.columns, [1024; 4]);
        WHOLE_WINDOWS
    });
}

/// In a large matrix where every third window has rows of two entries and all others have rows of one, the counts of
/// the sample scale to nearly those of all windows.
#[test]
fn a_sample_of_a_large_matrix_is_counted() {
    let rows = 64 * 20_000;
    let mut lengths = vec![1; rows];
    for window in (0..20_000).step_by(3) {
        lengths[window * 64..][..64].fill(2);
    }
    let matrix = TestMatrix::new(0, rows, &lengths, |row, entry| row / 64 * 64 + entry);
    let pattern = matrix.pattern();
    let mut scratch = vec![[0; 2]; 64 * 2];
    let counts = Counts::of(&pattern, rows, SHAPE, &mut scratch);
    assert_eq!(statistics::samples(rows), (20_000, Some(6)));
    // A third of 64 windows, give or take a third of these.
    assert!((64 * (64 + 14)..64 * (64 + 29)).contains(&counts.sampled_nnz), "{}", counts.sampled_nnz);
    assert_eq!(counts.all_columns(8), matrix.values.len() as f64 / counts.reuse(8));
    let (blocks, tiles) = counts.all_blocks(16, SHAPE);
    assert!(blocks == tiles && (blocks / (rows as f64 / 16.0) - 1.0).abs() < 0.1, "{blocks}");
    // Windows of too many entries are not sampled.
    let dense = TestMatrix::new(0, 3000, &[2100; 64], |_, entry| entry);
    let counts = Counts::of(&dense.pattern(), 64, SHAPE, &mut []);
    assert_eq!((counts.sampled_nnz, counts.reuse(64), counts.all_columns(64)), (0, 1.0, 64.0 * 2100.0));
}

#[test]
fn a_window_of_each_part_is_looked_at() {
    for rows in [1, 64 * 63, 64 * 64, 64 * 65, 64 * 3000 - 5, 100_000] {
        let (windows, log2) = statistics::samples(rows);
        assert_eq!(windows, rows.div_ceil(64));
        let count = log2.map_or(windows, |log2| 1 << log2);
        assert_eq!((count, log2), (windows.min(64), (windows > 64).then_some(6)));
        let found: Vec<_> = (0..count).map(|k| statistics::window_of(k, log2, windows)).collect();
        let of_part = |k: usize| k * windows / count..(k + 1) * windows / count;
        assert!(found.iter().enumerate().all(|(k, window)| of_part(k).contains(window)), "{found:?}");
    }
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

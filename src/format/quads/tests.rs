//! Tests of quads: the inverse gives the matrix back, and blocks, slabs and items agree.

use testkit::Random;

use super::*;
use crate::format::testing::{allocator, TestRows};

type Rows = TestRows<i64, i32>;

fn build(rows: &Rows, keep: bool) -> Option<Quads<f64>> {
    let values: Vec<f64> = (1..=rows.columns.len()).map(|value| value as f64).collect();
    let origin = Origin { keep, positions: None };
    Quads::build(&allocator(), &rows.pattern(), &values, origin, &AnyProcessor, usize::MAX).unwrap()
}

/// Checks that every entry comes back in the order of its row, and that blocks and items are where they may be.
fn check(rows: &Rows) -> Quads<f64> {
    let (layout, pattern) = (build(rows, true).unwrap(), rows.pattern());
    let mut next: Vec<_> = (0..rows.rows()).map(|row| rows.row(row).start).collect();
    layout.for_each_entry(|row, column, value| {
        let at = next[row];
        assert_eq!((pattern.index(at), at as f64 + 1.0), (column, value), "row {row}");
        next[row] += 1;
    });
    assert!((0..rows.rows()).all(|row| next[row] == rows.row(row).end));
    let positions = layout.positions.as_ref().unwrap();
    assert!(layout.values.iter().zip(positions.iter()).all(|(&value, &at)| value == at as f64 + 1.0));
    assert!(layout.values[layout.entries()..].iter().all(|&value| value == 0.0));

    let (mut word, mut value, mut item) = (0, 0, 0);
    for (number, slab) in layout.slabs.iter().enumerate() {
        if layout.items[item].slab == number as u64 {
            let expected = Start { slab: number as u64, value: value as u64, word: word as u64 };
            assert_eq!(layout.items[item], expected);
            item += 1;
        }
        for _ in 0..(0..GROUPS).map(|group| slab.blocks(group)).sum() {
            let (mask, column) = layout.block(slab, word);
            assert!(mask != 0 && mask <= 0xffff && column + SIDE <= rows.cols, "{mask:x} at {column}");
            value += mask.count_ones() as usize;
            word += slab.words_per_block();
        }
    }
    assert_eq!((item + 1, word), (layout.items.len(), layout.words.len()));
    let end = Start { slab: layout.slabs.len() as u64, value: value as u64, word: word as u64 };
    assert_eq!((layout.items[item], value), (end, rows.columns.len()));
    layout
}

#[test]
fn every_entry_comes_back() {
    let mut random = Random::new(3);
    for base in [0, 1] {
        for cols in [4, 5, 11, 300, 1 << 20] {
            // Unsorted, with columns that are stored twice, empty rows and rows of all lengths; also fewer than
            // eight rows behind the last full slab.
            let lengths: Vec<_> = (0..501).map(|_| random.below(30) * random.below(3)).collect();
            let rows = Rows::new(base, cols, &lengths, |_, _| random.below(cols));
            let wide = check(&rows).slabs.iter().filter(|slab| slab.is_wide()).count();
            assert_eq!(wide > 0, cols > 1 << 16);
        }
    }
    for lengths in [&[][..], &[0; 9], &[LONGEST, 0, LONGEST, 1]] {
        check(&Rows::new(0, 1 << 18, lengths, |_, entry| entry * 64));
    }
}

#[test]
fn sorted_rows_have_the_same_blocks_in_any_case() {
    let mut random = Random::new(13);
    for cols in [4, 6, 70, 500] {
        let lengths: Vec<_> = (0..333).map(|_| random.below(cols.min(60))).collect();
        let mut rows = Rows::new(1, cols, &lengths, |_, entry| entry * cols / 60.min(cols));
        let pattern = rows.pattern();
        assert!(ascends(&pattern, 0..rows.rows()));
        for first in (0..rows.rows()).step_by(SIDE) {
            let group = first..rows.rows().min(first + SIDE);
            let (mut by_columns, mut in_any_order) = (Vec::new(), Vec::new());
            sweep::<true>(&pattern, group.clone(), |column, mask, starts, counts| {
                by_columns.push((column, mask, *starts, *counts));
            });
            sweep::<false>(&pattern, group, |column, mask, starts, counts| {
                in_any_order.push((column, mask, *starts, *counts));
            });
            assert_eq!(by_columns, in_any_order);
        }
        let sorted = check(&rows);
        // One row that does not ascend, in the last slab.
        for last in [1, 0] {
            rows.columns.extend([2, 2 + last, 2]);
            rows.offsets.push(rows.columns.len() as i64 + 1);
            assert!(!ascends(&rows.pattern(), 0..rows.rows()));
        }
        assert!(check(&rows).words.starts_with(&sorted.words[..sorted.words.len() / 2]));
    }
}

#[test]
fn dense_rows_have_full_blocks() {
    // Blocks of 6 × 6 at columns that no power of two divides: 4 + 2 columns of 4 + 2 rows.
    let rows = Rows::new(1, 6001, &[12; 600], |row, entry| row / 6 * 9 + entry % 6 + entry / 6 * 101);
    let layout = check(&rows);
    let full = layout.slabs.iter().map(|slab| slab.blocks(0) + slab.blocks(1)).sum::<usize>();
    assert_eq!(full, layout.words.len());
    assert!(7200.0 / full as f64 > 7.0, "{full} blocks");
    // A row of 4 places at the last columns.
    check(&Rows::new(0, 7, &[3; 8], |_, entry| 4 + entry));
}

#[test]
fn what_does_not_fit_is_refused() {
    assert!(build(&Rows::new(0, 3, &[3; 8], |_, entry| entry), false).is_none());
    assert!(build(&Rows::new(0, 9000, &[LONGEST + 1], |_, entry| entry), false).is_none());
    let rows = Rows::new(0, 8, &[4, 4, 4, 4, 1], |_, entry| entry);
    let built = |most_blocks| {
        let origin = Origin { keep: false, positions: None };
        let (pattern, values) = (rows.pattern(), [1.0; 17]);
        Quads::build(&allocator(), &pattern, &values, origin, &AnyProcessor, most_blocks).unwrap()
    };
    assert!(built(0).is_none() && built(1).is_none());
    assert_eq!(built(2).unwrap().words.len(), 2);
}

#[test]
fn new_values_go_to_their_places() {
    let mut random = Random::new(5);
    let rows = Rows::new(0, 100, &[20; 50], |_, _| random.below(100));
    let values: Vec<f64> = (0..1000).map(|at| f64::from(at) * 3.0 + 7.0).collect();
    let mut layout = build(&rows, true).unwrap();
    let before = layout.values[..1000].to_vec();
    assert!(layout.refill(&values, false));
    assert!(layout.values.iter().zip(before).all(|(&new, old)| new == (old - 1.0) * 3.0 + 7.0));
    assert!(!build(&rows, false).unwrap().refill(&values, false));
}

#[test]
fn the_sample_counts_like_the_layout() {
    let few = |lengths: &[usize], column: &mut dyn FnMut(usize, usize) -> usize| {
        let rows = Rows::new(1, 400, lengths, column);
        let layout = check(&rows);
        let blocks = layout.slabs.iter().map(|slab| slab.blocks(0) + slab.blocks(1)).sum::<usize>();
        let sample = Counts::sample(&rows.pattern(), &AnyProcessor);
        assert_eq!((sample.blocks, sample.entries), (blocks, rows.columns.len()));
        sample.side_by_side
    };
    let mut random = Random::new(9);
    assert_eq!(few(&[9; 100], &mut |_, _| random.below(400)), 0);
    assert_eq!(few(&[5; 100], &mut |row, entry| row + entry * 3), 500);
    // All but the slab with another length.
    let lengths: Vec<_> = (0..100).map(|row| if row == 17 { 4 } else { 5 }).collect();
    assert_eq!(few(&lengths, &mut |row, entry| row + entry * 3), 460);
    assert_eq!(few(&[], &mut |_, _| 0), 0);
}

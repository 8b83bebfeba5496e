//! Tests of DASP: the inverse gives the matrix back, and the arrays are as the module's documentation says.

use std::sync::Arc;

use super::*;
use crate::format::sell::Origin;
use crate::format::testing::{allocator, TestRows};
use crate::memory::{Allocator, HostMemory};
use crate::types::Address;
use testkit::Random;

struct DaspTestMatrix {
    rows: TestRows<i64, i32>,
    values: Vec<f64>,
}

impl DaspTestMatrix {
    /// Row i has `lengths[i]` entries, unsorted and with duplicates.
    fn new(base: i64, cols: usize, lengths: &[usize]) -> Self {
        let column = |row, entry| (row * 7 + entry * 131 + entry / 3 * 17) % cols;
        let rows = TestRows::new(base, cols, lengths, column);
        DaspTestMatrix { values: (1..=rows.columns.len()).map(|value| value as f64).collect(), rows }
    }

    fn build(&self, keep: bool) -> DaspLayout<f64> {
        let origin = Origin { keep, positions: None };
        DaspLayout::build(&allocator(), &self.rows.pattern(), &self.values, origin).unwrap()
    }

    /// Checks that the layout gives every entry back, rows in their order, and that its arrays keep the
    /// rules.
    fn check(&self) -> DaspLayout<f64> {
        let mut layout = self.build(true);
        let mut rows = vec![vec![]; self.rows.rows()];
        layout.for_each_entry(|row, col, value| rows[row].push((col as i64, value)));
        for (row, found) in rows.iter().enumerate() {
            let range = self.rows.row(row);
            let expected: Vec<_> = range
                .map(|at| (i64::from(self.rows.columns[at]) - self.rows.base, self.values[at]))
                .collect();
            assert_eq!(found, &expected, "row {row}");
        }
        self.check_arrays(&layout);
        let doubled: Vec<f64> = self.values.iter().map(|v| 2.0 * v).collect();
        assert!(layout.refill(&doubled, false));
        let sum: f64 = layout.values.iter().sum();
        assert_eq!(sum, doubled.iter().sum::<f64>(), "padding stays zero");
        assert!(!self.build(false).refill(&doubled, false));
        assert!(layout.refill(&self.values, false));
        layout
    }

    fn length(&self, row: usize) -> usize {
        self.rows.row(row).len()
    }

    fn check_arrays(&self, layout: &DaspLayout<f64>) {
        let (rows, shape) = (self.rows.rows(), &layout.shape);
        let mut seen = vec![0; rows];
        // Long rows, in ascending order, in groups that follow each other.
        let (mut group, mut last, mut before) = (0, None, 0);
        for (number, task) in layout.tasks.iter().enumerate() {
            assert_eq!(task.first, group);
            assert!((1..=TASK_GROUPS as i32).contains(&task.groups));
            group += i64::from(task.groups);
            if let Ok(row) = usize::try_from(task.row) {
                assert!(self.length(row) > MAX_LEN && last < Some(row));
                seen[row] += 1;
                last = Some(row);
            } else {
                let split = &layout.splits[(-1 - task.row) as usize];
                let row = split.row as usize;
                assert!(self.length(row) > TASK_GROUPS * GROUP && split.tasks > 1);
                assert!((split.first..split.first + i64::from(split.tasks)).contains(&(number as i64)));
                if split.first == number as i64 {
                    assert!(last < Some(row) && split.before == before);
                    before += i64::from(split.tasks);
                    seen[row] += 1;
                    last = Some(row);
                }
            }
        }
        assert_eq!(layout.split_tasks() as i64, before);
        assert_eq!(shape.slots(DaspPart::Long), 0..group as usize * GROUP);
        // All other rows occur once, in the class of their length.
        let of = |results: Results| &layout.order[shape.results(results)];
        let pieced = |results: Results| of(results).chunks(2 * ROWS).map(|rows| rows.split_at(ROWS));
        for row in layout.order.iter().filter(|&&row| row != NO_ROW) {
            seen[*row as usize] += 1;
        }
        assert!(seen.iter().all(|&count| count == 1), "{seen:?}");
        let all = |rows: &[i32], lengths: Range<usize>| {
            let mut there = rows.iter().filter(|&&row| row != NO_ROW);
            assert!(there.all(|&row| lengths.contains(&self.length(row as usize))), "{rows:?} {lengths:?}");
        };
        for (ones, threes) in pieced(Results::OneThree) {
            all(ones, 1..2);
            all(threes, 3..4);
            assert_eq!(ones[0] == NO_ROW, threes[ROWS - 1] == NO_ROW, "whole blocks");
        }
        all(of(Results::TwoTwo), 2..3);
        all(of(Results::Four), 3..5);
        all(of(Results::Single), 1..2);
        all(of(Results::Empty), 0..1);
        let left = |results: Results, length: usize| {
            of(results).iter().filter(|&&row| row >= 0 && self.length(row as usize) == length).count()
        };
        assert!(left(Results::Single, 1).min(left(Results::Four, 3)) < ROWS);
        let medium = of(Results::Medium);
        all(medium, SHORT + 1..MAX_LEN + 1);
        let length = |row: i32| if row == NO_ROW { 0 } else { self.length(row as usize) };
        let sorted =
            |a: &i32, b: &i32| *b == NO_ROW || length(*a) > length(*b) || (length(*a) == length(*b) && a < b);
        assert!(medium.is_sorted_by(sorted));
        // Regular blocks are at least three quarters full, and the block after the last one is not.
        let row_blocks = shape.classes.row_blocks();
        assert!(medium[row_blocks * ROWS..].iter().all(|&row| row == NO_ROW));
        for (number, rows) in medium.chunks(ROWS).enumerate().take(row_blocks) {
            let blocks = (layout.regular[number + 1] - layout.regular[number]) as usize;
            let taken = |block: usize| -> usize {
                rows.iter().map(|&row| length(row).saturating_sub(block * PLACES).min(PLACES)).sum()
            };
            assert!(blocks == 0 || 4 * taken(blocks - 1) >= 3 * BLOCK);
            assert!(4 * taken(blocks) < 3 * BLOCK);
        }
        // Padding is marked, and values of padding are 0.
        let padding = layout.columns.iter().filter(|&&column| column == NO_COLUMN).count();
        assert_eq!(layout.values.len() - padding, self.rows.columns.len());
        let pairs = layout.columns.iter().zip(layout.values.iter());
        assert!(pairs.into_iter().all(|(&column, &value)| (column == NO_COLUMN) == (value == 0.0)));
        let irregular = &layout.columns[shape.slots(DaspPart::Irregular)];
        assert!(irregular.iter().all(|&column| column >= 0));
        for part in [DaspPart::OneThree, DaspPart::TwoTwo, DaspPart::Four, DaspPart::Single] {
            let slots = shape.slots(part);
            assert!(slots.len() % UNIT == 0 && slots.start % BLOCK == 0);
        }
    }
}

#[test]
fn every_entry_comes_back() {
    for base in [0, 1] {
        for rows in [0, 1, 7, 8, 9, 64, 100, 1000, 3333] {
            let mut random = Random::new(rows as u64 + 1);
            let lengths: Vec<usize> = (0..rows)
                .map(|_| match random.below(16) {
                    0 => random.below(300),
                    1..4 => 5 + random.below(30),
                    _ => random.below(5),
                })
                .collect();
            DaspTestMatrix::new(base, 1000, &lengths).check();
        }
    }
}

#[test]
fn every_length_comes_back() {
    let lengths: Vec<usize> = (0..2 * MAX_LEN).rev().collect();
    let layout = DaspTestMatrix::new(1, 777, &lengths).check();
    let rows = layout.shape.classes;
    assert_eq!((rows.long, rows.medium), (MAX_LEN - 1, MAX_LEN - SHORT));
    assert_eq!(rows.short, [1; 5]);
}

#[test]
fn empty_rows_and_empty_matrices() {
    let layout = DaspTestMatrix::new(1, 5, &[0; 20]).check();
    assert!(layout.values.is_empty() && layout.fill_ratio() == 1.0);
    assert_eq!(layout.order.len(), 20);
    DaspTestMatrix::new(0, 1, &[]).check();
    DaspTestMatrix::new(0, 3, &[0, 0, 3, 0, 0, 0, 0, 0, 0, 1]).check();
}

#[test]
fn rows_of_one_and_three_are_pieced_together() {
    // 21 rows of 1 and 30 of 3: two blocks of pairs, 5 single rows, 14 rows padded to 4.
    let lengths: Vec<usize> = (0..51).map(|row| if row < 21 { 1 } else { 3 }).collect();
    let layout = DaspTestMatrix::new(0, 99, &lengths).check();
    let shape = &layout.shape;
    assert_eq!(shape.classes.pairs(), 16);
    assert_eq!(shape.slots(DaspPart::OneThree).len(), UNIT);
    assert_eq!(layout.order[..8], [0, 1, 2, 3, 4, 5, 6, 7]);
    assert_eq!(layout.order[8..16], [35, 36, 37, 38, 39, 40, 41, 42]);
    assert_eq!(layout.row(Results::Four, 0), Some(21));
    assert_eq!(layout.row(Results::Single, 0), Some(16));
    assert_eq!(layout.row(Results::Single, 5), None);
    // Fewer than fill a block are not paired.
    let layout = DaspTestMatrix::new(0, 99, &[1, 3, 1, 3, 1, 3]).check();
    assert!(layout.shape.slots(DaspPart::OneThree).is_empty());
}

#[test]
fn neighbouring_blocks_are_stored_together() {
    // 8 rows of 13: blocks 0 to 2 are full, the fourth has 8 of 32 entries.
    let layout = DaspTestMatrix::new(0, 50, &[13; 8]).check();
    assert_eq!(layout.regular[..], [0, 3]);
    assert_eq!(layout.irregular[..], [0, 8]);
    assert_eq!(layout.ends[..], [1, 2, 3, 4, 5, 6, 7, 8]);
    let slots: Vec<usize> = layout.medium_slots(0, 1).collect();
    assert_eq!(slots[..4], [8, 10, 12, 14]);
    assert_eq!(slots[4..8], [9, 11, 13, 15]);
    assert_eq!(slots[8..], [68, 69, 70, 71, 97]);
    // Three quarters of the second block's slots are enough, one entry less is not.
    let layout = DaspTestMatrix::new(0, 50, &[7; 8]).check();
    assert_eq!(layout.regular[..], [0, 2]);
    let layout = DaspTestMatrix::new(0, 50, &[7, 7, 7, 7, 7, 7, 7, 6]).check();
    assert_eq!(layout.regular[..], [0, 1]);
}

#[test]
fn blocks_are_paired_over_the_row_blocks_of_a_warp() {
    // Two row-blocks of one block each per warp, and the last row-block with six rows.
    let rows = 59_990;
    let layout = DaspTestMatrix::new(0, 50, &vec![5; rows]).check();
    let slots = |row_block: usize, r: usize| -> Vec<usize> { layout.medium_slots(row_block, r).collect() };
    let irregular = rows.div_ceil(ROWS) * BLOCK;
    assert_eq!(slots(0, 1), [8, 10, 12, 14, irregular + 1]);
    assert_eq!(slots(1, 1), [9, 11, 13, 15, irregular + 9]);
    assert_eq!(slots(2, 0)[..4], [64, 66, 68, 70]);
    let alone = rows / ROWS * BLOCK;
    assert_eq!(slots(rows / ROWS, 0)[..4], [alone, alone + 1, alone + 2, alone + 3]);
}

#[test]
fn long_rows_are_cut() {
    let most = TASK_GROUPS * GROUP;
    let lengths = [3, MAX_LEN, MAX_LEN + 1, 0, most, most + 1, 5 * most + 7, 1, 300];
    let layout = DaspTestMatrix::new(1, 10_000, &lengths).check();
    let names: Vec<i32> = layout.tasks.iter().map(|task| task.row).collect();
    assert_eq!(names, [2, 4, -1, -1, -2, -2, -2, -2, -2, -2, 8]);
    // 17 groups in two tasks, as evenly as possible.
    assert_eq!((layout.tasks[2].groups, layout.tasks[3].groups), (8, 9));
    let split = |first, before, tasks, row| Split { first, before, tasks, row };
    assert_eq!(layout.splits[..], [split(2, 0, 2, 5), split(4, 2, 6, 6)]);
    assert_eq!(layout.split_tasks(), 8);
    assert!(layout.shape.describe().starts_with("rows: 5 long, 1 medium, 2 short, 1 empty; slots: "));
}

/// Returns the array `runs` for an `order`, as only devices have it.
pub(crate) fn runs(order: &[i32]) -> Vec<i32> {
    let run = |rows: &[i32]| {
        let expected: Vec<i32> = (rows[0]..).take(RUN).collect();
        if rows[0] >= 0 && rows == expected {
            rows[0]
        } else {
            NO_ROW
        }
    };
    order.chunks(RUN).map(run).collect()
}

#[test]
fn rows_that_follow_each_other_are_runs() {
    // 40 empty rows, 70 of 9 entries, one of 4, one of 2, and 64 of 4.
    let lengths: Vec<usize> =
        [(40, 0), (70, 9), (1, 4), (1, 2), (64, 4)].iter().flat_map(|&(n, length)| vec![length; n]).collect();
    let layout = DaspTestMatrix::new(0, 99, &lengths).check();
    // Run of the row of two: padding. Rows of four: 110, 112 …; rows of nine: 40 and 72, then six and
    // padding.
    assert_eq!(runs(&layout.order), [NO_ROW, NO_ROW, NO_ROW, 143, NO_ROW, 40, 72, NO_ROW, 0, NO_ROW]);
}

#[test]
fn warps_take_more_row_blocks_where_there_are_many() {
    let found = [0, 59_989, 59_990, 399_999, 400_000, usize::MAX].map(loops);
    assert_eq!(found, [1, 1, 2, 2, 4, 4]);
}

#[test]
fn out_of_memory_is_an_error() {
    let lengths: Vec<usize> = (0..60).map(|row| row * row % 301).collect();
    let matrix = DaspTestMatrix::new(0, 100, &lengths);
    let origin = Origin { keep: true, positions: None };
    let whole = allocator();
    drop(DaspLayout::build(&whole, &matrix.rows.pattern(), &matrix.values, origin).unwrap());
    for limit in (0..whole.peak_bytes()).step_by(997) {
        let limited = Allocator::new(Arc::new(HostMemory), Address::NULL, limit);
        assert!(DaspLayout::build(&limited, &matrix.rows.pattern(), &matrix.values, origin).is_err());
        assert_eq!(limited.live_bytes(), 0);
    }
}

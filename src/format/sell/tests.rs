//! Tests of SELL-C-σ: reading all entries of the layout back gives the matrix, and the arrays are as the
//! module's documentation says.

use super::*;
use crate::format::testing::{allocator, TestRows};
use crate::memory::HostMemory;
use crate::types::Address;
use testkit::Random;

struct SellTestMatrix {
    rows: TestRows<i64, i32>,
    values: Vec<f64>,
}

impl SellTestMatrix {
    fn new(base: i64, cols: usize, lengths: &[usize], column: impl Fn(usize, usize) -> usize) -> Self {
        let rows = TestRows::new(base, cols, lengths, column);
        SellTestMatrix { values: (1..=rows.columns.len()).map(|value| value as f64).collect(), rows }
    }

    fn build(&self, values: &[f64], form: Form, keep: bool) -> SellLayout<f64> {
        let origin = Origin { keep, positions: None };
        SellLayout::build(&allocator(), &self.rows.pattern(), values, form, origin).unwrap()
    }

    /// Checks that the layout gives every entry back, rows in their order.
    fn check_entries(&self, layout: &SellLayout<f64>, values: &[f64]) {
        let mut rows = vec![vec![]; self.rows.rows()];
        layout.for_each_entry(|row, col, value| rows[row].push((col as i64, value)));
        for (row, found) in rows.iter().enumerate() {
            let range = self.rows.row(row);
            let expected: Vec<_> =
                range.map(|at| (i64::from(self.rows.columns[at]) - self.rows.base, values[at])).collect();
            assert_eq!(found, &expected, "row {row}, {:?}", layout.values.form());
        }
    }

    /// Checks that the arrays keep the layout's rules and hold values in all forms.
    fn check(&self) -> SellLayout<f64> {
        let mut layout = self.build(&self.values, Form::Full, true);
        self.check_entries(&layout, &self.values);
        self.check_arrays(&layout);
        let doubled: Vec<f64> = self.values.iter().map(|v| 2.0 * v).collect();
        assert!(layout.refill(&doubled, false));
        let sum: f64 = (0..layout.values.len()).map(|slot| layout.values.get(slot)).sum();
        assert_eq!(sum, doubled.iter().sum::<f64>(), "padding stays zero");
        assert!(!self.build(&self.values, Form::Full, false).refill(&doubled, false));
        assert!(layout.refill(&self.values, false));
        for (form, most) in [(Form::Single, 1 << 24), (Form::Half, 1 << 11), (Form::Ones, 1)] {
            let values: Vec<_> = (0..self.values.len()).map(|at| (1 + at % most) as f64).collect();
            let mut narrow = self.build(&values, form, false);
            assert_eq!((narrow.values.form(), narrow.values.len()), (form, layout.values.len()));
            assert_eq!(narrow.words[..], layout.words[..]);
            self.check_entries(&narrow, &values);
            assert!(!narrow.refill(&doubled, false));
            self.check_entries(&narrow, &values);
        }
        layout
    }

    fn check_arrays(&self, layout: &SellLayout<f64>) {
        let rows = self.rows.rows();
        assert_eq!(layout.slices.len(), rows.div_ceil(LANES));
        let mut seen = vec![0; rows];
        for long in layout.long_rows.iter() {
            seen[long.row as usize] += 1;
            let lens = layout.pieces[long.first as usize..long.last as usize].iter().map(|p| p.len as usize);
            assert_eq!(lens.sum::<usize>(), self.rows.row(long.row as usize).len());
        }
        for (number, slice) in layout.slices.iter().enumerate() {
            let (rows, lengths) = (layout.rows(number), layout.lengths(number));
            assert!(lengths.is_sorted_by(|a, b| a >= b));
            assert_eq!(u32::from(slice.steps), lengths[3]);
            assert_eq!(slice.is_equal(), lengths[0] == lengths[7]);
            assert!(layout.starts(number).0 % LANES == 0);
            for (row, length) in rows.into_iter().zip(lengths) {
                if row == NO_ROW {
                    assert_eq!(length, 0);
                } else {
                    seen[row as usize] += 1;
                    assert_eq!(row as usize / WINDOW, number * LANES / WINDOW);
                    assert_eq!(length as usize, self.rows.row(row as usize).len());
                }
            }
        }
        assert!(seen.iter().all(|&count| count == 1));
    }
}

#[test]
fn every_entry_comes_back() {
    for base in [0, 1] {
        for rows in [0, 1, 7, 8, 9, 64, 100, WINDOW - 1, WINDOW, WINDOW + 1, 3 * WINDOW + 13] {
            let mut random = Random::new(rows as u64 + 1);
            let lengths: Vec<usize> = (0..rows).map(|_| random.below(5) * random.below(7)).collect();
            SellTestMatrix::new(base, 1000, &lengths, |row, entry| (row * 7 + entry * 131) % 1000).check();
        }
    }
}

#[test]
fn empty_rows_and_empty_matrices() {
    let layout = SellTestMatrix::new(1, 5, &[0; 20], |_, _| 0).check();
    assert!(layout.values.len() == 0 && layout.fill_ratio() == 1.0);
    SellTestMatrix::new(0, 0, &[], |_, _| 0).check();
    SellTestMatrix::new(0, 3, &[0, 0, 3, 0, 0, 0, 0, 0, 0, 1], |_, entry| entry).check();
}

#[test]
fn spans_choose_the_width() {
    // The first slice spans 2^16 columns, the second one more.
    let layout = SellTestMatrix::new(0, 1 << 17, &[2; 16], |row, entry| match (row / LANES, entry) {
        (_, 0) => 5,
        (0, _) => 5 + 0xffff,
        _ => 5 + 0x10000 + row,
    })
    .check();
    let forms: Vec<_> = layout.slices.iter().map(|slice| slice.columns()).collect();
    assert_eq!(forms, [Columns::Narrow, Columns::Wide]);
    // Both slices are even, so that they have no words but their columns.
    assert_eq!(layout.words.len(), 16 + 32);
}

#[test]
fn neighbours_become_runs() {
    // Three diagonals: neighbouring rows of a slice read neighbouring elements of x, except in the slices
    // with the shorter first and last rows.
    let rows = 80;
    let lengths: Vec<usize> = (0..rows).map(|row| if row == 0 || row == rows - 1 { 2 } else { 3 }).collect();
    let layout = SellTestMatrix::new(0, rows, &lengths, |row, entry| row.max(1) - 1 + entry).check();
    let runs = layout.slices.iter().filter(|slice| slice.columns() == Columns::Runs).count();
    assert_eq!(runs, 9);
    assert!(layout.slices[0].is_even() && !layout.slices[9].is_even());
    // Decreasing columns in a row may still be runs over the lanes.
    let layout = SellTestMatrix::new(1, 100, &[3; 8], |row, entry| row + 10 * (2 - entry)).check();
    assert_eq!(layout.slices[0].columns(), Columns::Runs);
}

#[test]
fn padding_is_bounded_and_tails_follow() {
    let layout = SellTestMatrix::new(0, 50, &[40, 1, 2, 30, 3, 3, 2, 1], |_, entry| entry).check();
    let slice = &layout.slices[0];
    assert_eq!((layout.lengths(0)[LANES - 1], slice.steps), (1, 3));
    // 3 steps of 8 slots, tails of 37 and 27.
    assert_eq!(layout.values.len(), (3 * 8 + 37 + 27_usize).next_multiple_of(8));
    assert_eq!(layout.places(0, 0).nth(3), Some(24));
    assert_eq!(layout.places(0, 1).nth(3), Some(24 + 37));
}

#[test]
fn long_rows_are_cut() {
    let lengths = [3, LONG, LONG + 1, 0, 5 * LONG + 7, 1];
    // The second long row spans more than 2^16 columns in some pieces.
    let column = |row: usize, entry: usize| if row == 4 { entry * 3 } else { entry };
    let layout = SellTestMatrix::new(1, 6 * 3 * LONG, &lengths, column).check();
    assert_eq!(layout.long_rows.len(), 2);
    assert_eq!(layout.pieces.len(), 2 + 6);
    let hopping = |row: usize, entry: usize| entry % 2 * 100_000 + row;
    let layout = SellTestMatrix::new(0, 200_000, &[LONG + 5, 2], hopping).check();
    assert!(layout.pieces.iter().all(Piece::is_wide));
}

#[test]
fn out_of_memory_is_an_error() {
    let matrix = SellTestMatrix::new(0, 100, &[3; 100], |row, entry| (row + entry) % 100);
    let origin = Origin { keep: false, positions: None };
    let whole = allocator();
    drop(SellLayout::build(&whole, &matrix.rows.pattern(), &matrix.values, Form::Full, origin).unwrap());
    for limit in (0..whole.peak_bytes()).step_by(97) {
        let limited = Allocator::new(Arc::new(HostMemory), Address::NULL, limit);
        assert!(
            SellLayout::build(&limited, &matrix.rows.pattern(), &matrix.values, Form::Full, origin).is_err()
        );
        assert_eq!(limited.live_bytes(), 0);
    }
}

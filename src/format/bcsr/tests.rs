//! Tests of BCSR: the inverse gives the matrix back, and the arrays agree with the work items.

use half::f16;

use super::*;
use crate::format::testing::allocator;
use crate::format::testing::TestMatrix;
use crate::format::window::WHOLE;
use crate::select::spmm::smat::rules;
use testkit::sequence;

/// Rules of both widths that values of `bytes` bytes may have, which split row blocks above 2, 6 and 64
/// blocks.
pub(crate) fn all_rules(bytes: usize) -> impl Iterator<Item = Rules> {
    let widths = WIDTHS.into_iter().filter(move |&width| width == 8 || bytes == 2);
    widths.flat_map(|width| [2, 5, MOST_BLOCKS].map(|most| Rules { width, most, wanted: 1 }))
}

/// Returns an irregular order of `rows` rows with holes: every third row block has some, and one has nothing
/// else.
pub(crate) fn scattered(rows: usize) -> Vec<u32> {
    let mut next = sequence(rows as u64 + 17);
    let mut order: Vec<u32> = (0..rows as u32).collect();
    for at in (1..rows).rev() {
        order.swap(at, next() % (at + 1));
    }
    let mut out = vec![HOLE; ROWS];
    for row in order {
        if out.len() / ROWS % 3 == 0 && next() % 4 == 0 {
            out.push(HOLE);
        }
        out.push(row);
    }
    out.resize(out.len().next_multiple_of(ROWS), HOLE);
    out
}

pub(crate) fn build<V: Element>(
    matrix: &TestMatrix,
    values: &[V],
    rules: Rules,
    order: Option<&[u32]>,
) -> Bcsr<V> {
    let origin = Origin { keep: true, positions: None };
    Bcsr::build(&allocator(), &matrix.pattern(), values, origin, rules, order).unwrap()
}

/// Checks that every entry comes back in its place, that every block and item is used once, that columns
/// ascend, and that slots without an entry are 0.
fn check<V: Element + PartialEq>(
    matrix: &TestMatrix,
    values: &[V],
    rules: Rules,
    order: Option<&[u32]>,
) -> Bcsr<V> {
    let what = format!("{rules:?} {}", order.is_some());
    let layout = build(matrix, values, rules, order);
    let pattern = matrix.pattern();
    let mut found = Vec::new();
    layout.for_each_entry(|row, entry, column, value| {
        assert!(entry < pattern.range(row).len());
        found.push((pattern.range(row).start + entry, column, value));
    });
    found.sort_by_key(|&(at, _, _)| at);
    let expected = (0..values.len()).map(|at| (at, pattern.index(at), values[at]));
    assert!(found.iter().copied().eq(expected), "{what}");
    let slots = layout.slots.as_ref().unwrap();
    assert!(slots.iter().zip(values).all(|(&at, &v)| layout.values[at as usize] == v), "{what}");
    let stored: u32 = layout.masks.iter().map(|mask| mask.count_ones()).sum();
    assert_eq!(stored as usize, values.len(), "{what}");
    let zero = <V as bytemuck::Zeroable>::zeroed();
    let others = layout.values.iter().filter(|&&v| v == zero).count();
    assert_eq!(others + values.len(), layout.values.len(), "{what}");

    let blocks = layout.columns.len();
    let limit = rules.limit(blocks, layout.row_blocks);
    assert_eq!(layout.values.len(), blocks * rules.places());
    let mut used = vec![false; blocks];
    let mut seen = vec![false; layout.row_blocks];
    for (number, item) in layout.items.iter().enumerate() {
        assert!((item.end - item.first) as usize <= limit);
        assert_eq!(item.part == WHOLE, number >= layout.parts.len());
        for block in item.first..item.end {
            assert!(!std::mem::replace(&mut used[block as usize], true));
        }
        let Some((row_block, blocks)) = layout.row_block_at(number) else { continue };
        assert!(!std::mem::replace(&mut seen[row_block], true));
        assert!(layout.columns[blocks.clone()].is_sorted());
        for block in blocks {
            let mut entries = 0;
            layout.for_each_of_block(block, |row, column, _| {
                assert!(layout.row(row_block, row).is_some());
                assert_eq!(column / rules.width, layout.columns[block] as usize);
                entries += 1;
            });
            assert!(entries > 0);
        }
    }
    assert!(used.iter().all(|&used| used) && seen.iter().all(|&seen| seen));
    layout
}

fn halves(matrix: &TestMatrix) -> Vec<f16> {
    (0..matrix.values.len()).map(|at| f16::from_f64((at % 1999 + 1) as f64 / 64.0)).collect()
}

fn check_all(matrix: &TestMatrix) {
    let order = scattered(matrix.offsets.len() - 1);
    for order in [None, Some(&order[..])] {
        for rules in all_rules(8) {
            check(matrix, &matrix.values, rules, order);
        }
        for rules in all_rules(2) {
            check(matrix, &halves(matrix), rules, order);
        }
    }
}

#[test]
fn every_entry_comes_back() {
    for base in [0, 1] {
        for rows in [0, 1, 15, 16, 17, 31, 32, 33, 200] {
            let mut next = sequence(rows as u64 + 1);
            let lengths: Vec<usize> = (0..rows).map(|_| next() % 4 * (next() % 19)).collect();
            for cols in [997, 40] {
                // With 40 columns, many columns repeat in a row.
                check_all(&TestMatrix::new(base, cols, &lengths, |row, entry| {
                    (row * 7 + entry * 131) % cols
                }));
            }
        }
    }
}

#[test]
fn long_row_blocks_are_cut() {
    let mut lengths = vec![3; 500];
    (lengths[130], lengths[300], lengths[301]) = (3000, 400, 300);
    let matrix = TestMatrix::new(0, 60_000, &lengths, |row, entry| row + entry * 17);
    check_all(&matrix);
    let layout = check(&matrix, &matrix.values, rules(8, 8), None);
    assert!(layout.parts.len() > 40);
    assert_eq!(layout.items[0].window, 130 / 16);
}

#[test]
fn a_column_that_a_row_stores_twice_makes_two_blocks() {
    let matrix = TestMatrix::new(0, 100, &[3, 1, 2], |row, entry| if row == 0 { 5 } else { 5 + entry });
    let layout = check(&matrix, &matrix.values, rules(8, 8), None);
    assert_eq!(layout.columns[..], [0, 0, 0]);
    let masks = |block: usize| &layout.masks[block * ROWS..block * ROWS + 3];
    assert_eq!([masks(0), masks(1), masks(2)], [[32, 32, 96], [32, 0, 0], [32, 0, 0]]);
}

#[test]
fn values_lie_as_lanes_hold_them() {
    // Every slot of a block is used once, in the order of mma's operand A: each of the four words holds two
    // columns of two rows.
    for (bytes, width) in [(2, 16), (2, 8), (4, 8), (8, 8)] {
        let mut seen = vec![false; ROWS * width];
        for row in 0..ROWS {
            for k in 0..width {
                assert!(!std::mem::replace(&mut seen[place(bytes, width, row, k)], true));
            }
        }
        assert!(seen.iter().all(|&seen| seen));
    }
    assert_eq!(place(2, 16, 9, 11), (4 + 1) * 8 + 7);
    assert_eq!(place(2, 8, 9, 3), (4 + 1) * 4 + 3);
    assert_eq!(place(8, 8, 9, 5), (4 + 1) * 4 + 3);
    assert_eq!([2, 4, 8].map(widest), [16, 8, 8]);
}

#[test]
fn a_full_matrix_has_full_blocks() {
    let matrix = TestMatrix::new(0, 64, &[64; 32], |_, entry| entry);
    let layout = check(&matrix, &matrix.values, rules(8, 8), None);
    assert_eq!((layout.columns.len(), layout.fill_ratio()), (16, 1.0));
    assert_eq!(layout.details(), "16 blocks of 16 × 8, 100.0 % full, rows as they are");
    let layout = check(&matrix, &halves(&matrix), rules(2, 16), None);
    assert_eq!((layout.columns.len(), layout.fill_ratio()), (8, 1.0));
}

#[test]
fn new_values_go_to_their_places() {
    let matrix = TestMatrix::new(1, 300, &[5, 0, 40, 3], |row, entry| row * 9 + entry * 3);
    let order = scattered(4);
    for order in [None, Some(&order[..])] {
        for rules in all_rules(8) {
            let mut layout = build(&matrix, &matrix.values, rules, order);
            let new: Vec<f64> = matrix.values.iter().map(|v| -v).collect();
            assert!(layout.refill(&new, false));
            assert_eq!(layout.values[..], build(&matrix, &new, rules, order).values[..]);
        }
    }
}

//! Tests of the invariants of orders and windows, against sets computed row by row.

pub(crate) mod families;
mod policies;

use std::collections::BTreeSet;

use super::jaccard::{cluster, exact, When, DISTANCE, LEVELS};
use super::*;
use crate::format::testing::{allocator, TestRows};
use testkit::Random;

pub(super) const HALF: BlockShape = BlockShape { height: 16, width: 16 };
pub(super) const NARROW: BlockShape = BlockShape { height: 16, width: 8 };

pub(super) fn permutation(numbers: &[u32]) -> Result<Permutation> {
    Permutation::new(&allocator(), Buffer::from_slice(&allocator(), numbers)?)
}

/// Returns a random order.
pub(crate) fn shuffled(rows: usize, seed: u64) -> Vec<u32> {
    let mut random = Random::new(seed);
    let mut order: Vec<u32> = (0..rows as u32).collect();
    for at in (1..rows).rev() {
        order.swap(at, random.below(at + 1));
    }
    order
}

/// Returns the sorted rows `row(order[0])`, `row(order[1])` and so on.
pub(crate) fn rows_of(cols: usize, order: &[u32], row: impl Fn(usize) -> Vec<usize>) -> TestRows<i32, i32> {
    let rows: Vec<Vec<usize>> = order
        .iter()
        .map(|&at| {
            let mut columns = row(at as usize);
            columns.sort_unstable();
            columns
        })
        .collect();
    let lengths: Vec<usize> = rows.iter().map(Vec::len).collect();
    TestRows::new(0, cols, &lengths, |row, entry| rows[row][entry])
}

fn pattern_of(matrix: &TestRows<i32, i32>, row: u32, shape: BlockShape) -> BTreeSet<usize> {
    matrix.row(row as usize).map(|at| matrix.columns[at] as usize / shape.width).collect()
}

/// Returns the number of blocks of groups of rows.
fn counted<'a>(
    matrix: &TestRows<i32, i32>,
    groups: impl Iterator<Item = &'a [u32]>,
    shape: BlockShape,
) -> u64 {
    groups
        .map(|rows| {
            let union: BTreeSet<usize> =
                rows.iter().flat_map(|&row| pattern_of(matrix, row, shape)).collect();
            union.len() as u64
        })
        .sum()
}

/// Clusters the matrix and checks the invariants of every result; returns the result.
pub(super) fn check(matrix: &TestRows<i32, i32>, shape: BlockShape, when: When) -> jaccard::Clustered {
    let found = cluster(&allocator(), &matrix.pattern(), shape, when).unwrap();
    let identity: Vec<u32> = (0..matrix.rows() as u32).collect();
    assert_eq!(found.before, counted(matrix, identity.chunks(shape.height), shape));
    let Some(windows) = &found.windows else {
        assert_eq!(found.after, found.before);
        return found;
    };
    assert!(found.after < found.before);
    let groups: Vec<&[u32]> =
        (0..windows.count()).map(|window| &windows.order[windows.range(window)]).collect();
    assert_eq!(found.after, counted(matrix, groups.iter().copied(), shape));
    // Every row occurs once; rows ascend in a window, and windows by their first rows.
    assert!(permutation(&windows.order).is_ok());
    assert_eq!(windows.starts[0], 0);
    assert_eq!(windows.starts[windows.count()] as usize, matrix.rows());
    assert!(groups.iter().all(|rows| (1..=shape.height).contains(&rows.len()) && rows.is_sorted()));
    assert!(groups.windows(2).all(|two| two[0][0] < two[1][0]));
    let places = windows.places(&allocator(), shape.height).unwrap();
    for (places, rows) in places.chunks(shape.height).zip(&groups) {
        assert_eq!(&places[..rows.len()], *rows);
        assert!(places[rows.len()..].iter().all(|&place| place == Windows::HOLE));
    }
    // A second run on the same matrix with 64-bit indices and base 1 has the same result.
    let wide = TestRows::<i64, i64> {
        cols: matrix.cols,
        base: 1,
        offsets: matrix.offsets.iter().map(|&at| i64::from(at) + 1).collect(),
        columns: matrix.columns.iter().map(|&at| i64::from(at) + 1).collect(),
    };
    let again = cluster(&allocator(), &wide.pattern(), shape, when).unwrap().windows.unwrap();
    assert!(again.order[..] == windows.order[..] && again.starts[..] == windows.starts[..]);
    found
}

/// Returns whether the order leaves every row at its own position.
fn is_identity(order: &[u32]) -> bool {
    order.iter().enumerate().all(|(position, &row)| row as usize == position)
}

#[test]
fn what_is_no_permutation_is_refused() {
    assert!(permutation(&[]).unwrap().is_empty());
    assert!(is_identity(&Permutation::identity(&allocator(), 5).unwrap()));
    for (numbers, words) in
        [(&[0, 1, 1][..], "position 2 has row 1 again"), (&[3, 0, 1], "position 0 has row 3 of 3")]
    {
        assert!(permutation(numbers).unwrap_err().message.contains(words));
    }
}

#[test]
fn shapes_out_of_range_are_refused() {
    let matrix = rows_of(4, &[0, 1], |row| vec![row]);
    for shape in [
        BlockShape { height: 0, width: 8 },
        BlockShape { height: 65, width: 8 },
        BlockShape { height: 8, width: 0 },
    ] {
        assert!(blocks(&allocator(), &matrix.pattern(), None, shape).is_err());
        assert!(cluster(&allocator(), &matrix.pattern(), shape, When::Always).is_err());
        assert!(exact(&allocator(), &matrix.pattern(), shape, DISTANCE).is_err());
    }
}

/// Returns the shuffled rows of a random matrix in which each `alike` consecutive rows share most columns.
pub(crate) fn neighbours(rows: usize, alike: usize, seed: u64) -> TestRows<i32, i32> {
    let cols = 16 * rows;
    rows_of(cols, &shuffled(rows, seed), |row| {
        let mut random = Random::new(seed + (row / alike) as u64);
        let mut own = Random::new(row as u64);
        // Some columns repeat.
        (0..12).map(|_| random.below(cols)).chain((0..4).map(|_| own.below(cols / 64))).collect()
    })
}

#[test]
fn the_exact_form_is_the_papers() {
    let matrix = neighbours(300, 7, 5);
    for distance in [0.0, 0.4, DISTANCE, 1.0, 2.0] {
        let order = exact(&allocator(), &matrix.pattern(), HALF, distance).unwrap();
        // The greedy scheme, written out literally.
        let mut left: Vec<u32> = (0..300).collect();
        let mut expected = vec![];
        while !left.is_empty() {
            let seed = left.remove(0);
            let mut union = pattern_of(&matrix, seed, HALF);
            expected.push(seed);
            left.retain(|&row| {
                let own = pattern_of(&matrix, row, HALF);
                let shared = own.intersection(&union).count() as f64;
                let apart = 1.0 - shared / own.union(&union).count() as f64;
                if apart < distance {
                    expected.push(row);
                    union.extend(own);
                }
                apart >= distance
            });
        }
        assert_eq!(order[..], expected[..], "{distance}");
        // No row is nearer than 0, so each row is a cluster. All are nearer than 2, so there is one cluster.
        assert!(is_identity(&order) || (distance != 0.0 && distance != 2.0));
        assert!(!is_identity(&order) || distance != DISTANCE);
    }
}

#[test]
fn rows_that_are_alike_become_windows() {
    // 200 groups of 16 equal rows that share nothing with other groups.
    for shape in [HALF, NARROW] {
        let order = shuffled(3200, 1);
        let matrix = rows_of(200 * 64, &order, |row| (0..5).map(|at| row / 16 * 64 + at * 13).collect());
        let found = check(&matrix, shape, When::Promising);
        let each = (0..5).map(|at| at * 13 / shape.width).collect::<BTreeSet<_>>().len() as u64;
        // The 64 columns of a group begin at a block, and each group is a window.
        assert_eq!(found.after, 200 * each);
        let windows = found.windows.unwrap();
        assert_eq!(windows.count(), 200);
        // The paper's form finds the same clusters in the same order.
        let paper = exact(&allocator(), &matrix.pattern(), shape, DISTANCE).unwrap();
        assert_eq!(paper[..], windows.order[..]);
    }
}

#[test]
fn clusters_end_at_windows_and_leave_holes() {
    // Groups of 12 rows: one per window, since no row of another group fits it.
    let matrix = rows_of(100 * 64, &shuffled(1200, 2), |row| vec![row / 12 * 64, row / 12 * 64 + 20]);
    let found = check(&matrix, HALF, When::Always);
    assert_eq!((found.after, found.windows.unwrap().count()), (200, 100));
}

#[test]
fn nothing_is_permuted_where_nothing_is_gained() {
    // A band in its own order, and in reverse.
    for reverse in [false, true] {
        let order: Vec<u32> = (0..1000).map(|row| if reverse { 999 - row } else { row }).collect();
        let matrix = rows_of(1100, &order, |row| (row..row + 100).collect());
        for when in [When::Always, When::Promising] {
            assert!(check(&matrix, HALF, when).windows.is_none());
        }
    }
}

#[test]
fn degenerate_matrices() {
    for when in [When::Always, When::Promising] {
        let none = TestRows::<i32, i32> { cols: 10, base: 0, offsets: vec![0], columns: vec![] };
        assert_eq!(check(&none, HALF, when).before, 0);
        let missing = Pattern::<i32, i32> {
            major: 0,
            minor: 10,
            base: 0,
            offsets: &[],
            indices: &[],
            by_columns: false,
        };
        assert_eq!(cluster(&allocator(), &missing, HALF, when).unwrap().before, 0);
        assert_eq!(exact(&allocator(), &missing, HALF, DISTANCE).unwrap().len(), 0);
        for shape in [HALF, NARROW, BlockShape { height: 1, width: 1 }, BlockShape { height: 64, width: 3 }] {
            let all = |rows: usize| (0..rows as u32).collect::<Vec<_>>();
            assert_eq!(check(&rows_of(0, &all(40), |_| vec![]), shape, when).after, 0);
            check(&rows_of(100, &all(1), |_| vec![3, 3, 3, 50]), shape, when);
            check(&rows_of(1000, &all(1), |_| (0..1000).collect()), shape, when);
            check(&rows_of(100, &all(500), |_| vec![7, 7, 60]), shape, when);
            // A full row among empty and short ones.
            let mixed = |row: usize| match row % 50 {
                7 => (0..2000).collect(),
                8..20 => vec![],
                _ => vec![row % 13 * 150],
            };
            check(&rows_of(2000, &all(777), mixed), shape, when);
            check(&neighbours(999, 5, 9), shape, when);
        }
    }
}

#[test]
fn equal_rows_take_linear_time() {
    // Comparing each row with each other would take 10^12 comparisons, half an hour.
    let matrix = rows_of(64, &(0..1 << 20).collect::<Vec<_>>(), |_| vec![5]);
    let found = check_large(&matrix);
    assert_eq!(found.before, found.after);
    // Two different rows alternate, so that clustering gains.
    let matrix = rows_of(64, &(0..1 << 18).collect::<Vec<_>>(), |row| vec![row % 2 * 32]);
    let found = check_large(&matrix);
    assert_eq!((found.before, found.after), (1 << 15, 1 << 14));
}

fn check_large(matrix: &TestRows<i32, i32>) -> jaccard::Clustered {
    cluster(&allocator(), &matrix.pattern(), HALF, When::Always).unwrap()
}

#[test]
fn memory_is_asked_for_and_given_back() {
    let matrix = neighbours(4000, 6, 3);
    let counted = allocator();
    drop(cluster(&counted, &matrix.pattern(), HALF, When::Always).unwrap());
    assert_eq!(counted.live_bytes(), 0);
    assert!(counted.peak_bytes() < 90 * 4000 + 4 * 16 * 4000 / 16 * 2 * crate::memory::pool::size());
    let memory = Arc::new(crate::memory::HostMemory);
    for limit in [0, 1000, 100_000, 300_000] {
        let small = Allocator::new(Arc::clone(&memory) as _, crate::types::Address::NULL, limit);
        assert!(cluster(&small, &matrix.pattern(), HALF, When::Always).is_err());
        assert_eq!(small.live_bytes(), 0);
    }
}

#[test]
fn levels_fall_and_bands_differ() {
    assert!(LEVELS.windows(2).all(|two| two[0] > two[1]));
    let pairs: BTreeSet<_> = (0..jaccard::BANDS * LEVELS.len()).map(jaccard::slots_of).collect();
    assert_eq!(pairs.len(), jaccard::BANDS * LEVELS.len());
    assert!(pairs.iter().all(|(a, b)| a != b));
}

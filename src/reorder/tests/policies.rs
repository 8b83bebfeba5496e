//! Tests of orders by name: by hand on small examples, against the paper's greedy form, and of the properties
//! of all.

use super::families::families;
use super::*;
use crate::reorder::chain::Tie;
use crate::reorder::masks::{loads, transitions, warp_load, warp_sums, Masks, LANES, WARPS};
use crate::reorder::policy::{order, reads_columns, rule, POLICIES};
use crate::types::Reorder;

fn by(matrix: &TestRows<i32, i32>, policy: Reorder) -> Permutation {
    order(&allocator(), &matrix.pattern(), policy).unwrap()
}

fn masks(matrix: &TestRows<i32, i32>) -> Masks {
    Masks::new(&allocator(), &matrix.pattern()).unwrap()
}

/// Returns rows of these lengths, with columns from 0 on.
fn of_lengths(lengths: &[usize]) -> TestRows<i32, i32> {
    let cols = lengths.iter().copied().max().unwrap_or(0).max(1);
    TestRows::new(0, cols, lengths, |_, entry| entry)
}

/// Returns rows with one entry in each of the given blocks of 32 columns.
fn of_blocks(blocks: &[&[usize]]) -> TestRows<i32, i32> {
    let all: Vec<u32> = (0..blocks.len() as u32).collect();
    rows_of(64 * LANES, &all, |row| {
        blocks[row].iter().enumerate().map(|(at, &block)| block * LANES + (row + at) % LANES).collect()
    })
}

/// Returns rows of mixed lengths, some of them empty, with columns of some locality.
fn mixed(rows: usize, seed: u64) -> TestRows<i32, i32> {
    let cols = 40 * LANES;
    let all: Vec<u32> = (0..rows as u32).collect();
    rows_of(cols, &all, |row| {
        let mut random = Random::new(seed + row as u64);
        let length = match random.below(8) {
            0 => 0,
            1 => random.below(300),
            _ => random.below(40),
        };
        let first = random.below(30) * LANES;
        (0..length).map(|_| (first + random.below(random_width(row))) % cols).collect()
    })
}

fn random_width(row: usize) -> usize {
    [64, 200, 1280][row % 3]
}

/// Computes the order of a policy that looks for near rows in the paper's form, which compares a row with all
/// remaining ones; for other policies calls [`order`].
fn greedy(
    allocator: &Arc<Allocator>,
    pattern: &Pattern<'_, i32, i32>,
    policy: Reorder,
) -> Result<Permutation> {
    let Some(rule) = rule(policy) else { return order(allocator, pattern, policy) };
    let (masks, loads) = (Masks::new(allocator, pattern)?, loads(allocator, pattern)?);
    let load = |row: u32| loads[row as usize];
    let mut left: Vec<u32> = (0..pattern.major as u32).collect();
    let mut found: Vec<u32> = Vec::new();
    while !left.is_empty() {
        let at = found.len();
        let cost = |row: u32| {
            let class = if rule.by_load { !load(row) } else { 0 };
            let Some(before) = at.checked_sub(rule.reach) else {
                return (class, if rule.by_load { 0 } else { load(row) }, 0, row);
            };
            let tie = match rule.tie {
                Tie::Number => 0,
                Tie::Load => load(row).abs_diff(load(found[at - 1])),
                Tie::Warp => at.checked_sub(WARPS).map_or(0, |at| masks.distance(row, found[at])),
            };
            (class, masks.distance(row, found[before]), tie, row)
        };
        let next = (0..left.len()).min_by_key(|&place| cost(left[place])).unwrap();
        found.push(left.swap_remove(next));
    }
    permutation(&found)
}

#[test]
fn warp_loads_are_the_papers() {
    // Section II-C: rows of 33 and of 64 entries have load 2.
    let found: Vec<u32> = [0, 1, 32, 33, 64, 65].into_iter().map(warp_load).collect();
    assert_eq!(found, [0, 1, 1, 2, 2, 3]);
    let matrix = of_lengths(&[33, 0, 64, 7]);
    assert_eq!(loads(&allocator(), &matrix.pattern()).unwrap()[..], [2, 0, 2, 1]);
}

#[test]
fn masks_have_a_bit_for_32_columns() {
    let matrix = rows_of(200, &[0, 1, 2], |row| match row {
        0 => vec![0, 0, 31, 32, 199],
        1 => vec![],
        _ => vec![33, 95, 96],
    });
    let masks = masks(&matrix);
    assert_eq!((masks.of(0), masks.of(1), masks.of(2)), (&[0, 1, 6][..], &[][..], &[1, 2, 3][..]));
    assert_eq!([masks.distance(0, 1), masks.distance(0, 2), masks.distance(2, 2)], [3, 4, 0]);
    assert_eq!(transitions(&masks, &[0, 1, 2], 1), 3 + 3);
    assert_eq!(transitions(&masks, &[0, 1, 2], 2), 4);
    assert_eq!(transitions(&masks, &[0, 1, 2], 3), 0);
}

#[test]
fn distances_of_short_and_long_rows_are_those_of_sets() {
    let all: Vec<u32> = (0..40).collect();
    let matrix = rows_of(4000 * LANES, &all, |row| {
        let mut random = Random::new(row as u64);
        (0..[1, 3, 50, 2000][row % 4]).map(|_| random.below(4000 * LANES)).collect()
    });
    let masks = masks(&matrix);
    for a in 0..40 {
        for b in 0..40 {
            let of = |row: u32| masks.of(row).iter().copied().collect::<BTreeSet<u32>>();
            let distance = of(a).symmetric_difference(&of(b)).count() as u32;
            assert_eq!(masks.distance(a, b), distance);
            assert!(masks.distance_at_least(a, b) <= distance);
        }
    }
}

#[test]
fn sorts_by_load() {
    // Loads 1 2 0 2 1 3.
    let matrix = of_lengths(&[32, 33, 0, 64, 1, 96]);
    assert_eq!(by(&matrix, Reorder::PlainSort)[..], [5, 1, 3, 0, 4, 2]);
    assert_eq!(by(&matrix, Reorder::Dcsr)[..], [0, 1, 3, 4, 5, 2]);
    // Loads 70, 69, … 1: the second 32 of them reversed, the last 6 not.
    let lengths: Vec<usize> = (0..70).map(|row| (70 - row) * LANES).collect();
    let flipped = by(&of_lengths(&lengths), Reorder::FlippedSort);
    let expected: Vec<u32> = (0..32).chain((32..64).rev()).chain(64..70).collect();
    assert_eq!(flipped[..], expected);
}

#[test]
fn longest_processing_time_evens_out() {
    // 64 rows: one of load 40, and 63 of load 1. Its warp gets the last row, for which no other warp has
    // room.
    let mut lengths = vec![1; 64];
    lengths[20] = 40 * LANES;
    let matrix = of_lengths(&lengths);
    let order = by(&matrix, Reorder::Lpt);
    assert_eq!((order[0], order[32]), (20, 63));
    // Loads 64 … 1: plain sort gives warp 0 the largest loads; with two rows per warp the others give each
    // warp 65.
    let lengths: Vec<usize> = (0..64).map(|row| (64 - row) * LANES).collect();
    let matrix = of_lengths(&lengths);
    let loads = loads(&allocator(), &matrix.pattern()).unwrap();
    assert!(warp_sums(&loads, &by(&matrix, Reorder::Lpt)).iter().all(|&sum| sum == 65));
    assert!(warp_sums(&loads, &by(&matrix, Reorder::FlippedSort)).iter().all(|&sum| sum == 65));
    assert_eq!(warp_sums(&loads, &by(&matrix, Reorder::PlainSort))[0], 64 + 32);
    // For any rows, its longest warp is no longer than that of plain sort, and above the mean by at most one
    // row.
    for seed in 0..20 {
        let matrix = mixed(500 + seed as usize, seed);
        let loads = crate::reorder::masks::loads(&allocator(), &matrix.pattern()).unwrap();
        let most = |policy| *warp_sums(&loads, &by(&matrix, policy)).iter().max().unwrap();
        let longest = u64::from(*loads.iter().max().unwrap());
        let mean = loads.iter().map(|&load| u64::from(load)).sum::<u64>() / WARPS as u64;
        assert!(most(Reorder::Lpt) <= most(Reorder::PlainSort) && most(Reorder::Lpt) <= mean + longest);
    }
}

#[test]
fn cache_aware_orders_by_hand() {
    // All rows of one load: the order begins with row 0. From {0} the nearest is {0, 1} (1 away), then {1}
    // (1), then {1, 2} (1), then {2, 3}, then {9}.
    let matrix = of_blocks(&[&[0], &[2, 3], &[0, 1], &[9], &[1], &[1, 2]]);
    for policy in [Reorder::CtaAware, Reorder::Hybrid21, Reorder::Hybrid22, Reorder::Hybrid1] {
        for form in [greedy, order] {
            let found = form(&allocator(), &matrix.pattern(), policy).unwrap();
            assert_eq!(found[..], [0, 2, 4, 5, 1, 3], "{policy:?}");
        }
    }
    // 32 rows with a pattern each, then rows with the same patterns in another order: each warp's second row
    // is to equal its first.
    let blocks: Vec<Vec<usize>> =
        (0..64).map(|row| vec![if row < 32 { row } else { (row * 5) % 32 }]).collect();
    let blocks: Vec<&[usize]> = blocks.iter().map(Vec::as_slice).collect();
    let matrix = of_blocks(&blocks);
    for policy in [Reorder::WarpAware, Reorder::Hybrid23] {
        for form in [greedy, order] {
            let found = form(&allocator(), &matrix.pattern(), policy).unwrap();
            assert_eq!(found[..32], (0..32).collect::<Vec<u32>>()[..]);
            assert_eq!(transitions(&masks(&matrix), &found, WARPS), 0, "{policy:?}");
        }
    }
}

#[test]
fn ties_go_by_load_or_by_the_warps_row() {
    // From {0} (load 1) rows 1 and 2 are both 1 away, with loads 2 and 1.
    let lengths = [1, LANES + 1, 2];
    let matrix = TestRows::new(0, 64 * LANES, &lengths, |row, entry| match (row, entry) {
        (0, _) => 0,
        (1, LANES) => LANES,
        (1, entry) => entry,
        (_, entry) => entry * 2 * LANES,
    });
    assert_eq!(by(&matrix, Reorder::CtaAware)[..], [0, 1, 2]);
    assert_eq!(by(&matrix, Reorder::Hybrid21)[..], [0, 2, 1]);
    assert_eq!(by(&matrix, Reorder::Hybrid1)[..], [1, 0, 2]);
    // Gray code, bit 0 first: 000 001 011 010 110 111 101 100 are 0 to 7 with bit 0 the highest.
    let all: [&[usize]; 8] = [&[0, 1, 2], &[0], &[1], &[], &[2], &[0, 1], &[1, 2], &[0, 2]];
    assert_eq!(by(&of_blocks(&all), Reorder::GrayCode)[..], [3, 4, 6, 2, 5, 0, 7, 1]);
}

#[test]
fn rcm_finds_the_band() {
    // A path whose vertices are shuffled becomes a path again, in every component.
    let places = shuffled(90, 4);
    let mut row_of = vec![0; 90];
    places.iter().enumerate().for_each(|(row, &place)| row_of[place as usize] = row);
    let all: Vec<u32> = (0..90).collect();
    let matrix = rows_of(90, &all, |row| {
        let place = places[row] as usize;
        let near = [place.checked_sub(1), Some(place), Some(place + 1)];
        let near = near.into_iter().flatten().filter(|near| near / 30 == place / 30);
        near.map(|near| row_of[near]).collect()
    });
    let order = by(&matrix, Reorder::Rcm);
    let found: Vec<i64> = order.iter().map(|&row| i64::from(places[row as usize])).collect();
    for component in found.chunks(30) {
        assert!(component.windows(2).all(|two| (two[0] - two[1]).abs() == 1), "{component:?}");
    }
    let wide = of_lengths(&[1, 2]);
    let wide = TestRows { cols: 3, ..wide };
    let error = super::policy::order(&allocator(), &wide.pattern(), Reorder::Rcm).unwrap_err();
    assert!(error.message.contains("square"), "{}", error.message);
}

#[test]
fn every_policy_is_a_permutation_and_the_same_again() {
    let mut cases: Vec<TestRows<i32, i32>> =
        [1, 2, 31, 32, 33, 64, 65, 700].map(|rows| mixed(rows, 9)).into();
    // No rows; no entries; rows all alike; one long row.
    cases.push(TestRows { cols: 10, base: 0, offsets: vec![0], columns: vec![] });
    cases.push(of_lengths(&[0; 100]));
    cases.push(of_lengths(&[5; 100]));
    cases.push(of_lengths(&[1, 0, 5000, 0, 1]));
    for mut matrix in cases {
        for policy in POLICIES {
            if policy == Reorder::Rcm {
                // RCM needs a square matrix, so columns are wrapped to the number of rows.
                let rows = matrix.rows();
                matrix.columns.iter_mut().for_each(|column| *column %= rows.max(1) as i32);
                matrix.cols = rows;
                for row in 0..rows {
                    let range = matrix.row(row);
                    matrix.columns[range].sort_unstable();
                }
            }
            let found = by(&matrix, policy);
            assert_eq!(found.len(), matrix.rows());
            assert!(permutation(&found).is_ok());
            // The same order results with 64-bit indices and base 1.
            let wide = TestRows::<i64, i64> {
                cols: matrix.cols,
                base: 1,
                offsets: matrix.offsets.iter().map(|&at| i64::from(at) + 1).collect(),
                columns: matrix.columns.iter().map(|&at| i64::from(at) + 1).collect(),
            };
            assert!(order(&allocator(), &wide.pattern(), policy).unwrap()[..] == found[..], "{policy:?}");
            assert!(permutation(&greedy(&allocator(), &matrix.pattern(), policy).unwrap()).is_ok());
            if !reads_columns(policy) {
                let lengths: Vec<usize> = (0..matrix.rows()).map(|row| matrix.row(row).len()).collect();
                assert!(by(&of_lengths(&lengths), policy)[..] == found[..], "{policy:?}");
            }
        }
    }
}

#[test]
fn no_order_and_no_memory_are_errors() {
    let matrix = mixed(100, 1);
    for policy in [Reorder::Auto, Reorder::None] {
        assert!(order(&allocator(), &matrix.pattern(), policy).is_err());
    }
    for policy in POLICIES {
        let matrix = of_lengths(&[1; 1]);
        let limited = Allocator::new(Arc::new(crate::memory::HostMemory), crate::types::Address::NULL, 3);
        assert!(order(&limited, &matrix.pattern(), policy).is_err(), "{policy:?}");
        assert_eq!(limited.live_bytes(), 0);
    }
}

/// Returns the sum that a policy is to make small: distances at the reach of its rule.
fn cost(matrix: &TestRows<i32, i32>, policy: Reorder, order: &[u32]) -> u64 {
    transitions(&masks(matrix), order, rule(policy).unwrap().reach)
}

/// Returns the policies that look for near rows.
fn chained() -> impl Iterator<Item = Reorder> {
    POLICIES.into_iter().filter(|&policy| rule(policy).is_some())
}

#[test]
fn the_near_linear_form_loses_little() {
    // Measured: docs/algorithms/orders.md.
    for (name, matrix, _) in families() {
        let matrix = first_rows(matrix, GREEDY_ROWS);
        for policy in chained() {
            let [near, all] = [order, greedy]
                .map(|form| cost(&matrix, policy, &form(&allocator(), &matrix.pattern(), policy).unwrap()));
            let identity: Vec<u32> = (0..matrix.rows() as u32).collect();
            let before = cost(&matrix, policy, &identity);
            let ratio = near as f64 / (all as f64).max(1.0);
            println!("{name}\t{policy:?}\t{before}\t{all}\t{near}\t{ratio:.3}");
            assert!(ratio <= MOST, "{name}, {policy:?}: {near} for {all}");
        }
    }
}

/// Number of rows that the greedy form puts in order.
const GREEDY_ROWS: usize = 600;

fn first_rows(mut matrix: TestRows<i32, i32>, count: usize) -> TestRows<i32, i32> {
    matrix.offsets.truncate(count + 1);
    matrix.columns.truncate(*matrix.offsets.last().unwrap() as usize);
    matrix
}

/// Largest ratio of the near-linear form's distances to those of the greedy form.
const MOST: f64 = 2.0;

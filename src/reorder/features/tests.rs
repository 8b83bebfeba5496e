//! Tests of `features`: against counting by sets, and against the numbers in committed tables.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;

use super::*;
use crate::matrix::testing::pattern;
use matrices::gallery;
use matrices::owned::OwnedCsr;
use matrices::SplitMix64;

fn of_rows(cols: usize, rows: impl IntoIterator<Item = BTreeSet<usize>>) -> OwnedCsr<()> {
    let (mut offsets, mut indices) = (vec![0], vec![]);
    for row in rows {
        indices.extend(row.iter().map(|&col| col as i32));
        offsets.push(indices.len() as i64);
    }
    OwnedCsr { rows: offsets.len() - 1, cols, values: vec![(); indices.len()], offsets, indices }
}

fn random(rows: usize, cols: usize, most: u64) -> OwnedCsr<()> {
    let mut rng = SplitMix64::new(rows as u64 * 31 + cols as u64);
    let rows = (0..rows).map(|_| {
        let length = rng.below(most + 1) * rng.below(3);
        (0..length).map(|_| rng.below(cols as u64) as usize).collect()
    });
    of_rows(cols, rows)
}

/// Computes the features by their definitions, from sets of columns and cache lines.
fn naive(matrix: &OwnedCsr<()>) -> FeatureSet {
    let pattern = pattern(matrix);
    let rows = matrix.rows;
    let cols = |row: usize| pattern.range(row).map(|at| pattern.index(at));
    let masks: Vec<BTreeSet<u64>> =
        (0..rows).map(|row| cols(row).map(|col| col as u64 / 32).collect()).collect();
    let length = |row: usize| pattern.range(row).len() as u64;
    let of_warp = |warp: usize| (warp..rows).step_by(32);
    let mut lines: BTreeMap<u64, u64> = (0..matrix.cols.div_ceil(32)).map(|line| (line as u64, 0)).collect();
    masks.iter().flatten().for_each(|line| *lines.get_mut(line).unwrap() += 1);
    FeatureSet {
        rows,
        cols: matrix.cols,
        nnz: matrix.indices.len() as u64,
        sampled_rows: rows,
        row_entries: Summary::of((0..rows).map(length)),
        row_blocks: Summary::of(masks.iter().map(|mask| mask.len() as u64)),
        warp_load: Summary::of((0..32).map(|warp| of_warp(warp).map(|row| length(row).div_ceil(32)).sum())),
        line_requests: Summary::of(lines.into_values()),
        warp_lines: Summary::of((0..32).map(|warp| {
            of_warp(warp).flat_map(|row| masks[row].iter().copied()).collect::<BTreeSet<_>>().len() as u64
        })),
        warp_requests: Summary::of(
            (0..32).map(|warp| of_warp(warp).map(|row| masks[row].len() as u64).sum()),
        ),
        neighbour_distance: Summary::of(
            masks.windows(2).map(|two| two[0].symmetric_difference(&two[1]).count() as u64),
        ),
    }
}

#[test]
fn counts_are_those_of_sets() {
    for (rows, cols, most) in [
        (1, 1, 1),
        (31, 40, 5),
        (32, 32, 32),
        (33, 100, 90),
        (300, 300, 40),
        (200, 1000, 40),
        (700, 65, 9),
        (100, 5000, 300),
    ] {
        let matrix = random(rows, cols, most);
        let expected = naive(&matrix);
        assert_eq!(FeatureSet::of(&pattern(&matrix)), expected, "{rows} × {cols}");
        // The same pattern with base 1 and other index widths.
        let offsets: Vec<i32> = matrix.offsets.iter().map(|&offset| offset as i32 + 1).collect();
        let indices: Vec<i64> = matrix.indices.iter().map(|&index| i64::from(index) + 1).collect();
        let (offsets, indices) = (&offsets[..], &indices[..]);
        let other = Pattern { major: rows, minor: cols, base: 1, offsets, indices, by_columns: false };
        assert_eq!(FeatureSet::of(&other), expected, "{rows} × {cols} from base 1");
    }
    for (rows, cols) in [(0, 0), (0, 70), (5, 0), (40, 33)] {
        let empty = of_rows(cols, (0..rows).map(|_| BTreeSet::new()));
        assert_eq!(FeatureSet::of(&pattern(&empty)), naive(&empty), "{rows} × {cols} of nothing");
        assert!(FeatureSet::of(&pattern(&empty)).numbers().iter().all(|number| number.is_finite()));
    }
}

/// Rows of 33 and of 64 entries take two steps of a warp each (section II.C).
#[test]
fn the_papers_example() {
    let matrix = of_rows(2048, [(0..33).collect(), (0..64).map(|at| at * 32).collect()]);
    let found = FeatureSet::of(&pattern(&matrix));
    assert_eq!((found.warp_load.most, found.warp_load.sum, found.warp_load.count), (2, 4, 32));
    // 32 consecutive columns are one line, and 64 distant ones are 64.
    assert_eq!((found.row_blocks.least, found.row_blocks.most), (2, 64));
    assert_eq!(found.neighbour_distance, Summary { least: 62, sum: 62, most: 62, count: 1 });
    let numbers = found.numbers();
    let number = |name: &str| numbers[FeatureSet::NAMES.iter().position(|other| *other == name).unwrap()];
    assert_eq!((number("rows"), number("cols"), number("density")), (2.0, 2048.0, 97.0 / 4096.0));
    assert_eq!((number("row_entries_mean"), number("line_requests_max")), (48.5, 2.0));
    assert_eq!((number("warp_requests_mean"), number("warp_lines_max")), (66.0 / 32.0, 64.0));
}

#[test]
fn a_sample_is_near_the_whole() {
    let matrix = random(40_000, 3000, 20);
    let all = FeatureSet::of(&pattern(&matrix));
    let sample = || FeatureSet::with_sample(&pattern(&matrix), 60_000);
    let some = sample();
    assert_eq!(all.sampled_rows, 40_000);
    let share = some.sampled_rows as f64 / 40_000.0;
    assert!((share * all.nnz as f64 / 60_000.0 - 1.0).abs() < 0.05, "{share}");
    assert_eq!((some.row_entries, some.rows, some.nnz), (all.row_entries, all.rows, all.nnz));
    for ((name, found), wanted) in FeatureSet::NAMES.into_iter().zip(some.numbers()).zip(all.numbers()) {
        if name.ends_with("mean") && name != "warp_lines_mean" {
            assert!((found / wanted - 1.0).abs() < 0.05, "{name}: {found} of {wanted}");
        }
    }
    // Other numbers of threads draw the same rows.
    for threads in [1, 3] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        assert_eq!(pool.install(sample), some, "{threads} threads");
    }
}

#[test]
fn a_sample_has_one_part_of_each_range() {
    for (all, count) in [(1, 1), (7, 7), (7, 1), (100, 30), (1_000_000, 999), (1000, 999)] {
        let drawn: Vec<_> = (0..all).filter(|&at| is_drawn(at, all, count)).collect();
        assert_eq!(drawn.len(), count, "{count} of {all}");
        for (range, &at) in drawn.iter().enumerate() {
            assert_eq!(at * count / all, range);
        }
    }
    // The drawn part is not always the first or the last of its range.
    let places: BTreeSet<_> = (0..1000).filter(|&at| is_drawn(at, 1000, 100)).map(|at| at % 10).collect();
    assert_eq!(places.len(), 10);
    assert_eq!(
        [(0, 100), (5, 0), (5, 1 << 20), (5, 10)].map(|(strips, nnz)| drawn_strips(strips, nnz, 4)),
        [0, 5, 1, 2]
    );
}

#[test]
fn names_are_of_one_number_each() {
    assert_eq!(FeatureSet::NAMES.iter().collect::<BTreeSet<_>>().len(), NUMBERS);
}

/// The features are those in the tables that the networks were trained on: two matrices with all rows, two
/// with a sample.
#[test]
fn numbers_are_those_of_the_measured_tables() {
    let table: &[u8] = include_bytes!("../../../benches/training/h100-test.tsv.gz");
    let mut text = String::new();
    flate2::read::GzDecoder::new(table).read_to_string(&mut text).unwrap();
    for (name, is_sampled) in [("rmat16", false), ("dc2", false), ("mac_econ", true), ("mc2depi", true)] {
        let matrix = gallery::named(name).unwrap();
        let found = FeatureSet::of(&pattern(&matrix));
        assert_eq!(found.sampled_rows < found.rows, is_sampled, "{name}");
        let line = text.lines().map(|line| line.split('\t').collect::<Vec<_>>());
        let line =
            line.into_iter().find(|line| line[1..].first() == Some(&name) && line[5] == "matrix").unwrap();
        let expected: Vec<f32> = line[8].split(' ').map(|number| number.parse().unwrap()).collect();
        assert_eq!(found.numbers().map(|number| number as f32), expected[..NUMBERS], "{name}");
    }
}

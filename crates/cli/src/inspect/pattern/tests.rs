//! Tests of `pattern`, against simple counting.

use std::collections::BTreeSet;

use super::*;
use matrices::gallery::{banded, poisson, rmat, uniform, Stencil};
use matrices::owned::OwnedCsr;
use matrices::SplitMix64;

fn pattern<V>(a: &OwnedCsr<V>) -> Pattern<'_, i64, i32> {
    Pattern { cols: a.cols, offsets: &a.offsets, indices: &a.indices }
}

/// Computes the features from a set of positions, one definition at a time.
fn naive(rows: usize, cols: usize, places: &BTreeSet<(i64, i64)>) -> Features {
    let mut lengths = vec![0u64; rows];
    places.iter().for_each(|&(i, _)| lengths[i as usize] += 1);
    let row = |i: usize| places.range((i as i64, 0)..(i as i64 + 1, 0)).map(|&(_, j)| j);
    let near = |i: usize| row(i).filter(|j| j - row(i).next().unwrap() < 65536).count() as u64;
    let mut histogram = [0; BUCKETS];
    for &length in &lengths {
        let bucket = (0..).find(|&k| length < 1 << k).unwrap();
        histogram[bucket as usize] += 1;
    }
    let blocks = BLOCKS.map(|b| {
        let b = b as i64;
        places.iter().map(|&(i, j)| (i / b, j / b)).collect::<BTreeSet<_>>().len() as u64
    });
    let pairs = (0..rows).flat_map(|i| row(i).zip(row(i).skip(1)));
    Features {
        rows,
        cols,
        nnz: places.len() as u64,
        least: lengths.iter().copied().min().unwrap_or(0),
        most: lengths.iter().copied().max().unwrap_or(0),
        squares: lengths.iter().map(|&l| u128::from(l * l)).sum(),
        histogram,
        bandwidth: (
            places.iter().map(|(i, j)| (i - j).max(0) as u64).max().unwrap_or(0),
            places.iter().map(|(i, j)| (j - i).max(0) as u64).max().unwrap_or(0),
        ),
        diagonal: places.iter().filter(|(i, j)| i == j).count() as u64,
        blocks: blocks.collect::<Vec<_>>().try_into().unwrap(),
        block_entries: places.len() as u64,
        narrow: (0..rows).map(near).sum(),
        narrow_rows: (0..rows).filter(|&i| near(i) == lengths[i]).count() as u64,
        distance: pairs.map(|(j, next)| (next - j) as u64).sum(),
        products: (rows == cols).then(|| places.iter().map(|&(_, j)| u128::from(lengths[j as usize])).sum()),
    }
}

fn places<V>(a: &OwnedCsr<V>) -> BTreeSet<(i64, i64)> {
    let row = |i: usize| pattern(a).row(i).iter().map(move |&j| (i as i64, i64::from(j)));
    (0..a.rows).flat_map(row).collect()
}

#[test]
fn features_are_what_counting_finds() {
    let mut matrices = vec![
        poisson(Stencil::Seven, 11).unwrap(),
        banded(2000, 4, 3).unwrap(),
        rmat(10, 8, 0.57, 0.19, 0.19, 1).unwrap(),
        // More rows than a task has, and more columns than 16 bits distinguish.
        uniform(1700, 300_000, 9, 2).unwrap(),
        uniform(841, 7, 3, 2).unwrap(),
    ];
    let mut rng = SplitMix64::new(5);
    for (rows, cols) in [(0, 0), (0, 5), (5, 0), (1, 1), (9, 9), (17, 70_000), (839, 841), (2500, 2500)] {
        let count = if rows * cols == 0 { 0 } else { rng.below(3000) };
        let entry = |_| (rng.below(rows as u64) as i64, rng.below(cols as u64) as i64, 1.0);
        let entries = (0..count).map(entry).collect();
        matrices.push(OwnedCsr::from_triplets(rows, cols, entries).unwrap());
    }
    for a in &matrices {
        let expected = naive(a.rows, a.cols, &places(a));
        let found = Features::of(&pattern(a));
        assert_eq!(found, expected, "{} x {}", a.rows, a.cols);
        // Other index widths give the same numbers.
        let offsets: Vec<i32> = a.offsets.iter().map(|&at| at as i32).collect();
        let indices: Vec<i64> = a.indices.iter().map(|&col| col.into()).collect();
        let wide = Pattern { cols: a.cols, offsets: &offsets, indices: &indices };
        assert_eq!(Features::of(&wide), expected);
    }
}

#[test]
fn shares_of_a_known_matrix() {
    // Rows of 2, 0, 4 entries.
    let entries = vec![(0, 0, 1.0), (0, 1, 1.0), (2, 0, 1.0), (2, 1, 1.0), (2, 2, 1.0), (2, 70_000, 1.0)];
    let a = OwnedCsr::from_triplets(3, 70_001, entries).unwrap();
    let f = Features::of(&pattern(&a));
    assert_eq!((f.mean(), f.empty_rows(), f.least, f.most), (2.0, 1, 0, 4));
    assert!((f.variance() - 8.0 / 3.0).abs() < 1e-15);
    assert_eq!((f.narrow, f.narrow_rows, f.narrow_share()), (5, 2, 5.0 / 6.0));
    assert_eq!(f.mean_distance(), 70_001.0 / 4.0);
    // Blocks of 2: (0,0), (1,0), (1,1), (1,35000).
    assert_eq!((f.blocks[0], f.block_fill(2)), (4, 6.0 / 16.0));
    assert_eq!((f.bandwidth, f.diagonal, f.products), ((2, 69_998), 2, None));
    let none = Features::of(&Pattern::<i32, i32> { cols: 0, offsets: &[0], indices: &[] });
    let zeros = [none.mean(), none.variance(), none.block_fill(3), none.narrow_share(), none.mean_distance()];
    assert_eq!(zeros, [0.0; 5]);
}

#[test]
fn mirrored_entries_are_found() {
    for a in [poisson(Stencil::Five, 30).unwrap(), uniform(900, 900, 30, 1).unwrap()] {
        let places = places(&a);
        let expected = places.iter().filter(|&&(i, j)| i != j && places.contains(&(j, i))).count();
        assert!(expected > 0);
        assert_eq!(mirrored(&pattern(&a)), expected as u64);
    }
}

#[test]
fn compression_is_that_of_the_product() {
    for (a, b) in [
        (poisson(Stencil::Five, 20).unwrap(), poisson(Stencil::Five, 20).unwrap()),
        (uniform(300, 500, 20, 1).unwrap(), uniform(500, 90, 11, 2).unwrap()),
        (uniform(1, 3, 3, 1).unwrap(), uniform(3, 1_500_000, 400_000, 2).unwrap()),
    ] {
        let found = compression(&pattern(&a), &pattern(&b)).unwrap();
        let mut products = 0;
        let mut entries = BTreeSet::new();
        for (i, k) in places(&a) {
            let row = pattern(&b).row(k as usize);
            products += row.len() as u64;
            entries.extend(row.iter().map(|&j| (i, j)));
        }
        assert_eq!(found, Compression { rows: a.rows, products, entries: entries.len() as u64 });
        assert_eq!(found.ratio(), products as f64 / entries.len() as f64);
    }
    // A sample of many rows; the ratio of all rows of A·A of a band is known.
    let a = banded(50_000, 3, 1).unwrap();
    let found = compression(&pattern(&a), &pattern(&a)).unwrap();
    assert!(found.rows == SAMPLE && (found.ratio() - 49.0 / 13.0).abs() < 0.01, "{found:?}");
    assert_eq!(Compression::default().ratio(), 1.0);
}

#[test]
fn blocks_of_many_entries_are_sampled() {
    // 6 million entries in full blocks of 3 × 3, four blocks per row of blocks.
    let nodes = 166_670;
    let cols = 3 * nodes;
    let offsets: Vec<i64> = (0..=cols as i64).map(|row| 12 * row).collect();
    let indices: Vec<i32> = (0..cols)
        .flat_map(|row| {
            (0..4).flat_map(move |k| (0..3).map(move |j| (3 * ((row / 3 + 41_000 * k) % nodes) + j) as i32))
        })
        .collect();
    let mut sorted = indices;
    sorted.chunks_mut(12).for_each(|row| row.sort_unstable());
    let pattern = Pattern { cols, offsets: &offsets, indices: &sorted };
    let f = Features::of(&pattern);
    assert_eq!(f.nnz, 12 * cols as u64);
    assert!((900_000..1_100_000).contains(&f.block_entries), "{} entries", f.block_entries);
    assert_eq!((f.block_fill(3), f.blocks[1]), (1.0, f.block_entries / 9));
    assert!(f.block_fill(2) < 0.8);
    assert_eq!(Features::of(&pattern), f);
}

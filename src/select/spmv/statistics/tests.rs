//! Tests of `statistics`.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::*;
use crate::format::dasp::DaspLayout;
use crate::format::sell::Origin;
use crate::matrix::testing::pattern;
use crate::memory::{Allocator, HostMemory};
use crate::types::Address;
use matrices::gallery::{self, Set};
use matrices::market::{read_market_file, MarketValues};
use matrices::owned::OwnedCsr;

/// Writes `surveys.tsv` for the matrices of benches/results/h100-spmv.tsv: those of the gallery, and files of
/// a folder.
///
/// `TARSIA_MATRICES=folder TARSIA_SURVEYS=file cargo test --release --lib select::spmv::statistics::tests::of_the_corpus -- --ignored`
#[test]
#[ignore = "reads a folder of matrices"]
fn of_the_corpus() {
    use std::fmt::Write;
    let mut out = String::from("matrix\trows\tcols\tnnz\talong\tacross\twords\n");
    let mut add = |name: &str, pattern: Pattern<'_, i64, i32>| {
        let widths = [8, 4, 2].map(|x| SpmvStatistics::of(&pattern, x));
        let s = &widths[0];
        let of = |word: Word| widths.iter().map(|s| s.count(word).to_string()).collect::<Vec<_>>().join(",");
        let words = s.words.iter().enumerate().filter(|(_, &n)| n > 0).map(|(at, n)| format!("{at}:{n}"));
        let words = words.collect::<Vec<_>>().join(" ");
        let (along, across) = (of(Word::AlongSectors), of(Word::AcrossSectors));
        writeln!(out, "{name}\t{}\t{}\t{}\t{along}\t{across}\t{words}", s.rows, s.cols, s.nnz).unwrap();
    };
    for named in gallery::names().iter().filter(|named| named.set == Set::Comparison) {
        let a = named.pattern().unwrap();
        add(named.name, pattern(&a));
    }
    let folder = std::env::var("TARSIA_MATRICES").expect("TARSIA_MATRICES is set");
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    for path in files {
        let name = path.file_name().unwrap().to_string_lossy();
        let Some(name) = name.strip_suffix(".mtx.gz") else { continue };
        match read_market_file(&path).unwrap().values {
            MarketValues::Real(a) => add(name, pattern(&a)),
            MarketValues::Complex(a) => add(name, pattern(&a)),
        }
    }
    std::fs::write(std::env::var("TARSIA_SURVEYS").expect("TARSIA_SURVEYS is set"), out).unwrap();
}

/// Entries of items of k rows, in windows: an item begins at the first row that is in no item before.
fn naive_shared(rows: &[Vec<i64>], k: usize) -> u64 {
    let mut entries = 0;
    for window in rows.chunks(1024 / k * k) {
        let mut row = 0;
        while row < window.len() {
            let item = window.get(row..row + k).filter(|item| item.iter().all(|row| *row == item[0]));
            entries += item.map_or(0, |item| k * item[0].len()) as u64;
            row += item.map_or(1, |_| k);
        }
    }
    entries
}

/// The counts from a list of rows, each by its definition; every run is sampled.
fn naive(rows: &[Vec<i64>], x_bytes: usize) -> Vec<u64> {
    let mut words = vec![0; WORDS];
    let distinct = |keys: &mut dyn Iterator<Item = i64>| keys.collect::<BTreeSet<_>>().len() as u64;
    let sector = |column: i64| column * x_bytes as i64 / 32;
    let entries: Vec<i64> = rows.concat();
    for row in rows {
        let length = row.len() as u64;
        let bucket = (0..BUCKETS).rev().find(|&at| {
            let first =
                if at < 257 { at as u64 } else { (4 + (at as u64 - 257) % 4) << ((at - 257) / 4 + 6) };
            first <= length
        });
        words[bucket.unwrap()] += 1;
        if length > 256 {
            words[Word::LongEntries as usize] += length;
            words[Word::LongGroups as usize] += length.div_ceil(64);
        }
    }
    words[Word::Longest as usize] = rows.iter().map(|row| row.len() as u64).max().unwrap_or(0);
    words[Word::Entries as usize] = entries.len() as u64;
    if entries.len() >= 2 * rows.len() {
        words[Word::Twos as usize] = naive_shared(rows, 2);
        words[Word::Threes as usize] = naive_shared(rows, 3);
    }
    let mut start = 0;
    for run in rows.chunks(32) {
        let all = run.concat();
        let (count, filled) = (all.len() as u64, run.iter().filter(|row| !row.is_empty()));
        let span = all.iter().max().unwrap_or(&0) - all.iter().min().unwrap_or(&0);
        words[Word::Narrow as usize] += if span < 65536 { count } else { 0 };
        let shifted: Vec<Vec<i64>> =
            (0..32).map(|lane| run[0].iter().map(|column| column + lane).collect()).collect();
        words[Word::Shifted as usize] += if run == shifted { count } else { 0 };
        let along = &entries[start..entries.len().min(start + 32)];
        start += all.len();
        words[Word::Along as usize] += along.len() as u64;
        words[Word::AlongSectors as usize] += distinct(&mut along.iter().map(|&column| sector(column)));
        words[Word::Across as usize] += filled.clone().count() as u64;
        words[Word::AcrossSectors as usize] += distinct(&mut filled.map(|row| sector(row[row.len() / 2])));
        for slab in run.chunks(8) {
            let blocks =
                |rows: &[Vec<i64>]| rows.iter().flatten().map(|column| column / 4).collect::<BTreeSet<_>>();
            // Of many blocks those of the first columns are counted.
            let counted: BTreeSet<_> = blocks(slab).into_iter().take(MOST_BLOCKS).collect();
            let entries = slab.iter().flatten().filter(|&column| counted.contains(&(column / 4)));
            words[Word::BlockEntries as usize] += entries.count() as u64;
            words[Word::Blocks8 as usize] += counted.len() as u64;
            let halves = slab.chunks(4).map(|half| blocks(half).intersection(&counted).count() as u64);
            words[Word::Blocks4 as usize] += halves.sum::<u64>();
        }
    }
    words
}

fn lines<V>(a: &OwnedCsr<V>) -> Vec<Vec<i64>> {
    (0..a.rows).map(|row| a.row(row).0.iter().map(|&column| i64::from(column)).collect()).collect()
}

#[test]
fn counts_are_what_counting_finds() {
    let matrices = [
        gallery::poisson(gallery::Stencil::Seven, 12).unwrap(),
        gallery::banded(3000, 9, 3).unwrap(),
        gallery::uniform(2000, 90_000, 4, 5).unwrap(),
        gallery::uniform(33, 5, 2, 5).unwrap(),
        gallery::with_empty_rows(1500, 1500, 4, 0.3, 9).unwrap(),
        gallery::empty(70, 4).unwrap(),
    ];
    for a in &matrices {
        let rows = lines(a);
        for x_bytes in [2, 4, 8, 16] {
            let found = SpmvStatistics::of(&pattern(a), x_bytes);
            assert_eq!(found.words(), naive(&rows, x_bytes), "{} × {}, {x_bytes}", a.rows, a.cols);
        }
    }
    // Long rows, whose blocks are not all counted.
    let a = gallery::dense_rows_cols(5000, 3, 2, 4, 7).unwrap();
    let (found, expected) = (SpmvStatistics::of(&pattern(&a), 8), naive(&lines(&a), 8));
    assert!(found.longest() > 2000);
    assert_eq!(found.words(), expected);
}

#[test]
fn buckets_hold_their_middles() {
    for at in 0..BUCKETS {
        assert_eq!(bucket(length_of(at)), at);
    }
    assert_eq!(bucket(u64::from(u32::MAX) * 5), BUCKETS - 1);
    assert_eq!([256, 257, 319, 320, 511, 512].map(bucket), [256, 257, 257, 258, 260, 261]);
}

#[test]
fn one_run_of_each_part_is_looked_at() {
    for rows in [1, 31, 33, 32 * 1024, 32 * 1024 + 1, 4_096_000, 1 << 31] {
        let (runs, samples) = samples(rows);
        let mut last = None;
        for k in 0..samples {
            let run = run_of(k, samples, runs);
            assert!(run < runs && last.is_none_or(|last| run > last), "{rows}: {k}");
            // Each run is in its own part.
            let (start, end) = (k * runs / samples, (k + 1) * runs / samples);
            assert!((start..end).contains(&run), "{rows}: {k}");
            last = Some(run);
        }
        assert!(samples == runs || samples == SAMPLES as u64);
    }
}

#[test]
fn wrong_patterns_are_no_fault() {
    let offsets = [3, -5, i64::MAX, 2, i64::MIN, 9];
    let indices = [i64::MAX, i64::MIN, -1, 0, 7];
    for base in [0, 1] {
        let (major, minor, by_columns) = (5, 4, false);
        let pattern = Pattern { major, minor, base, offsets: &offsets, indices: &indices, by_columns };
        let found = SpmvStatistics::of(&pattern, 8);
        assert_eq!(found.words()[..BUCKETS].iter().sum::<u64>(), 5);
        found.dasp_slots();
    }
}

#[test]
fn rows_that_share_columns_are_counted() {
    // Groups of rows, with lengths that differ from group to group; some groups cross the border of a window.
    let mut rows: Vec<Vec<i64>> = Vec::new();
    for (group, count) in [1, 2, 3, 4, 5, 6, 7, 600, 600, 2, 3, 900].into_iter().enumerate() {
        let columns = (0..1 + group as i64 % 5).map(|at| 7 * at + group as i64).collect::<Vec<_>>();
        rows.extend((0..count).map(|_| columns.clone()));
    }
    // Rows of other lengths, and empty rows.
    rows.extend([(0..30).collect(), (0..30).collect(), vec![], vec![]]);
    let offsets: Vec<i64> = (0..=rows.len()).map(|row| rows[..row].concat().len() as i64).collect();
    let indices: Vec<i32> = rows.concat().iter().map(|&column| column as i32).collect();
    let (offsets, indices) = (&offsets[..], &indices[..]);
    let pattern = Pattern { major: rows.len(), minor: 100, base: 0, offsets, indices, by_columns: false };
    let statistics = SpmvStatistics::of(&pattern, 8);
    assert_eq!(statistics.shared(), [2, 3].map(|k| naive_shared(&rows, k)));
    let values = vec![1.0_f64; indices.len()];
    // The numbers that the layout has.
    for k in [2, 3] {
        let rules = crate::select::spmv::sell::rules(rows.len(), indices.len(), 8, 1, 1 << 14, [0, 0], false);
        let rules = warp_sell::Rules { item_rows: k, window: 1024 / k * k, ..rules };
        let layout = warp_sell::WarpSell::build(&pattern, &values, rules);
        let items = layout.heads.iter().filter(|head| head.flags & warp_sell::ROWS != 0);
        let words = items.flat_map(|head| &layout.order[head.place as usize..][..usize::from(head.items)]);
        let entries = words.map(|word| (word >> 16) as usize * k).sum::<usize>();
        assert_eq!(statistics.shared()[k - 2], entries as u64, "{k}");
    }
}

#[test]
fn slots_are_those_of_the_layouts() {
    for name in ["scircuit", "dc2", "mc2depi", "rmat16", "webbase", "band64"] {
        let a = gallery::named(name).unwrap();
        let (pattern, statistics) = (pattern(&a), SpmvStatistics::of(&pattern(&a), 8));
        let values = vec![1.0_f64; a.nnz()];
        let rules = crate::select::spmv::sell::rules(a.rows, a.nnz(), 8, 132 * 1024, 1 << 14, [0, 0], false);
        let sell = warp_sell::WarpSell::build(&pattern, &values, rules);
        let (slots, slices) = statistics.sell_slots(&rules);
        let ratios = (slots / sell.values.len() as f64, slices / sell.heads.len() as f64);
        let origin = Origin { keep: false, positions: None };
        let allocator = Allocator::new(Arc::new(HostMemory), Address::NULL, usize::MAX);
        let dasp = DaspLayout::build(&allocator, &pattern, &values, origin).unwrap();
        let expected = (dasp.shape.slot_count() as u64, dasp.shape.result_count() as u64);
        assert_eq!(statistics.dasp_slots(), expected, "{name}");
        assert!((0.95..1.05).contains(&ratios.0) && (0.8..1.25).contains(&ratios.1), "{name}: {ratios:?}");
    }
}

//! Loss of the choice by the H100's rates against the best algorithm, from the pattern statistics of 53
//! matrices and of 18 pruned layers, and the measured times of each algorithm.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use super::*;
use crate::format::window::SHAPE;
use crate::matrix::compressed::Pattern;
use crate::matrix::testing::pattern;
use crate::support::{self, Combo};
use matrices::gallery::{self, Set};
use matrices::market::{read_market_file, MarketValues};

const STATISTICS: &str = include_str!("../../../benches/results/spmm-surveys.tsv");
const MEASURED: [(&str, &str); 2] = [
    ("h100-spmm.tsv", include_str!("../../../benches/results/h100-spmm.tsv")),
    ("h100-spmm-pruned.tsv", include_str!("../../../benches/results/h100-spmm-pruned.tsv")),
];
pub(crate) const ALGORITHMS: [Algorithm; 5] =
    [Algorithm::Row, Algorithm::SpmmSell, Algorithm::Window, Algorithm::Smat, Algorithm::Dense];

/// Table built into the test, or the file of this name in the folder TARSIA_RESULTS, so that a fit to new
/// ones needs no new build.
fn table(name: &str, built_in: &'static str) -> &'static str {
    match std::env::var_os("TARSIA_RESULTS") {
        Some(folder) => std::fs::read_to_string(std::path::Path::new(&folder).join(name)).expect(name).leak(),
        None => built_in,
    }
}

/// Measured time of an algorithm for a product.
pub(super) struct Case {
    pub precision: &'static str,
    pub matrix: &'static str,
    pub algorithm: Algorithm,
    pub types: Types,
    pub n: i64,
    pub us: f64,
    pub statistics: SpmmStatistics,
}

impl Case {
    pub fn work(&self) -> Work {
        work(&self.statistics, self.algorithm, self.types, self.n, H100.multiprocessors)
    }
}

/// Pattern statistics by matrix: for values of 2 bytes, and for wider ones.
pub(crate) fn corpus_statistics() -> BTreeMap<&'static str, [SpmmStatistics; 2]> {
    let number = |text: &str| text.parse::<usize>().unwrap();
    let of_line = |line: &'static str| {
        let fields: Vec<_> = line.split('\t').collect();
        let list = |at: usize| {
            let numbers: Vec<_> = fields[at].split(',').map(number).collect();
            <[usize; 4]>::try_from(numbers).unwrap()
        };
        let of = |blocks, tiles| SpmmStatistics {
            cols: number(fields[2]),
            longest: number(fields[4]),
            counts: Counts {
                rows: number(fields[1]),
                nnz: number(fields[3]),
                sampled_nnz: number(fields[5]),
                columns: list(6),
                blocks: list(blocks),
                tiles: list(tiles),
                spans_16: list(9),
                spans_8: list(10),
            },
        };
        (fields[0], [of(7, 8), of(11, 12)])
    };
    table("spmm-surveys.tsv", STATISTICS).lines().skip(1).map(of_line).collect()
}

/// Measured times of each algorithm that is known by name.
pub(super) fn cases() -> Vec<Case> {
    let corpus_statistics = corpus_statistics();
    let of_line = |line: &'static str| {
        let fields: Vec<_> = line.split('\t').collect();
        let types = match fields[1] {
            "f16" => support::F16::TYPES,
            "f32" => support::F32::TYPES,
            "tf32" => support::Tf32::TYPES,
            "f64" => support::F64::TYPES,
            _ => return None,
        };
        let algorithm = *ALGORITHMS.iter().find(|algorithm| algorithm.name() == fields[7])?;
        let us: f64 = fields[8].parse().unwrap();
        let statistics = corpus_statistics.get(fields[3])?[usize::from(types.a.size() > 2)];
        let is_one = fields[0] == "spmm" && fields[6] == "tarsia" && us > 0.0;
        let (precision, matrix, n) = (fields[1], fields[3], fields[2].parse().unwrap());
        is_one.then_some(Case { precision, matrix, algorithm, types, n, us, statistics })
    };
    let lines = |&(name, built_in): &(&str, _)| table(name, built_in).lines().skip(1);
    MEASURED.iter().flat_map(lines).filter_map(of_line).collect()
}

#[test]
fn the_choice_is_near_the_best() {
    let mut products: BTreeMap<(&str, i64, &str), Vec<Case>> = BTreeMap::new();
    for case in cases() {
        products.entry((case.precision, case.n, case.matrix)).or_default().push(case);
    }
    let mut sums: BTreeMap<(&str, i64), (f64, usize)> = BTreeMap::new();
    let (mut all, mut worst, mut table) = (0.0, Vec::new(), String::new());
    for (&(precision, n, matrix), cases) in &products {
        let predicted =
            |case: &Case| estimate(&H100, &case.statistics, case.algorithm, case.types, n).seconds * 1e6;
        let chosen = cases.iter().min_by(|a, b| predicted(a).total_cmp(&predicted(b))).unwrap();
        let best = cases.iter().min_by(|a, b| a.us.total_cmp(&b.us)).unwrap();
        write!(table, "{precision} {n} {matrix:28}").unwrap();
        for case in cases {
            write!(table, " | {} {:.1} {:.1}", case.algorithm.name(), predicted(case), case.us).unwrap();
        }
        writeln!(table, " | {} {:.3}", chosen.algorithm.name(), chosen.us / best.us).unwrap();
        let sum = sums.entry((precision, n)).or_default();
        *sum = (sum.0 + (chosen.us / best.us).ln(), sum.1 + 1);
        all += (chosen.us / best.us).ln();
        if chosen.us > 1.2 * best.us && chosen.us > best.us + 2.0 {
            let (chosen_name, best_name) = (chosen.algorithm.name(), best.algorithm.name());
            worst.push(format!(
                "{precision} {n} {matrix}: {chosen_name} {:.1}, {best_name} {:.1}",
                chosen.us, best.us
            ));
        }
    }
    print!("{table}");
    for ((precision, n), (sum, count)) in sums {
        println!("{precision} N = {n}: {:.4} of the best over {count}", (sum / count as f64).exp());
    }
    let mean = (all / products.len() as f64).exp();
    println!("{} products, {mean:.4} of the best in geomean; {worst:#?}", products.len());
    assert!(products.len() >= 53 * 12);
    assert!(mean < MEAN, "{mean}");
    assert!(worst.len() <= MISSES, "{worst:#?}");
}

/// Bounds on the geometric mean of the choice's loss, and on the number of losses of more than a fifth, as in
/// docs/algorithms/choice.md.
const MEAN: f64 = 1.02;
const MISSES: usize = 20;

#[test]
fn estimates_grow_with_columns() {
    for (matrix, [halves, wide]) in corpus_statistics() {
        let all = [
            (halves, support::F16::TYPES),
            (wide, support::F32::TYPES),
            (wide, support::Tf32::TYPES),
            (wide, support::F64::TYPES),
        ];
        for (statistics, types) in all {
            // `dense` is not considered for nearly empty matrices.
            let filled =
                64.0 * statistics.counts.nnz as f64 > statistics.counts.rows as f64 * statistics.cols as f64;
            for algorithm in ALGORITHMS {
                if algorithm == Algorithm::Dense && !filled {
                    continue;
                }
                let of = |n| estimate(&H100, &statistics, algorithm, types, n);
                let (few, many) = (of(8), of(4096));
                assert!(
                    many.bytes > few.bytes && many.seconds > few.seconds,
                    "{matrix} {algorithm:?} {types:?}"
                );
                assert!(few.seconds.is_finite() && few.seconds > 1e-6, "{matrix} {algorithm:?}");
            }
        }
    }
}

/// Writes `spmm-surveys.tsv` for the matrices of benches/results/h100-spmm.tsv and h100-spmm-pruned.tsv:
/// those of the gallery, and files of a folder.
///
/// `TARSIA_MATRICES=folder TARSIA_SURVEYS=file cargo test --release --lib select::spmm::tests::of_the_corpus -- --ignored`
#[test]
#[ignore = "reads a folder of matrices"]
fn of_the_corpus() {
    let mut out = String::from("matrix\trows\tcols\tnnz\tlongest\tlooked\tcolumns\tblocks16\ttiles16\tspans16\tspans8\tblocks8\ttiles8\n");
    let mut add = |name: &str, p: Pattern<'_, i64, i32>| {
        let rows = p.major;
        let most = (0..rows.div_ceil(64))
            .map(|w| p.range((w * 64 + 63).min(rows - 1)).end - p.range(w * 64).start)
            .max();
        let mut scratch = vec![[0_u64; 2]; most.unwrap_or(0)];
        let of_16 = Counts::of(&p, rows, SHAPE, &mut scratch);
        let of_8 = Counts::of(&p, rows, WindowShape { block: 8, group: 8 }, &mut scratch);
        let longest = (0..rows).map(|row| p.range(row).len()).max().unwrap_or(0);
        write!(out, "{name}\t{rows}\t{}\t{}\t{longest}\t{}", p.minor, of_16.nnz, of_16.sampled_nnz).unwrap();
        for list in
            [of_16.columns, of_16.blocks, of_16.tiles, of_16.spans_16, of_16.spans_8, of_8.blocks, of_8.tiles]
        {
            let text = list.map(|n| n.to_string()).join(",");
            write!(out, "\t{text}").unwrap();
        }
        out.push('\n');
    };
    for named in gallery::names().iter().filter(|named| named.set == Set::Comparison) {
        let a = named.pattern().unwrap();
        add(named.name, pattern(&a));
    }
    let named = |line: &'static str| line.split('\t').nth(3).filter(|name| name.contains(':'));
    let kinds: BTreeSet<_> = MEASURED[1].1.lines().filter_map(named).collect();
    for name in kinds {
        let a = gallery::named(name).unwrap();
        add(name, pattern(&a));
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

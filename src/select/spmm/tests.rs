//! Surveys of the corpus.

use std::fmt::Write;

use super::*;
use crate::layout::window::SHAPE;
use crate::matrix::compressed::Pattern;
use crate::matrix::gallery::{self, Set};
use crate::matrix::market::{read_market_file, MarketValues};
use crate::select::survey::tests::pattern;

/// Writes `spmm-surveys.tsv` of the matrices of benches/results/h100-spmm.tsv: those of the
/// gallery, and files of a folder.
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
        let of_8 = Counts::of(&p, rows, Shape { block: 8, group: 8 }, &mut scratch);
        let longest = (0..rows).map(|row| p.range(row).len()).max().unwrap_or(0);
        write!(out, "{name}\t{rows}\t{}\t{}\t{longest}\t{}", p.minor, of_16.nnz, of_16.looked).unwrap();
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

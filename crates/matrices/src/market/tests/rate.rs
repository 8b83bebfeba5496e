//! Rate at which files are read. This is no test: it prints figures for `cargo test --release --lib
//! market::tests::rate -- --ignored --nocapture`.

use std::io::{Seek, Write};
use std::time::Instant;

use super::*;
use crate::gallery::{poisson, uniform, Stencil};

/// Number of runs, of which the best counts.
const RUNS: usize = 7;

/// Measures 2-D and 3-D grids and random columns; 17 digits, integers, no values; plain and gzipped.
#[test]
#[ignore = "prints figures"]
fn reading_rate() {
    let full = |a: OwnedCsr<f64>| {
        let mut rng = SplitMix64::new(3);
        a.map_values(|_| rng.value()).unwrap()
    };
    let grid = full(poisson(Stencil::TwentySeven, 60).unwrap());
    let scattered = full(uniform(400_000, 400_000, 12, 5).unwrap());
    for (name, matrix) in [("27-point grid", &grid), ("uniform random", &scattered)] {
        for kind in ["real general", "real general, by columns", "integer general", "pattern symmetric"] {
            measure(&format!("{name}, {kind}"), &text(matrix, kind));
        }
    }
}

fn text(a: &OwnedCsr<f64>, kind: &str) -> Vec<u8> {
    let transposed = a.transpose().unwrap();
    let (a, swap) = if kind.ends_with("columns") { (&transposed, true) } else { (a, false) };
    let lower = kind.ends_with("symmetric");
    let mut out = Vec::new();
    let mut count = 0;
    for row in 0..a.rows {
        for (&col, &value) in a.row(row).0.iter().zip(a.row(row).1) {
            let (i, j) = if swap { (col as usize + 1, row + 1) } else { (row + 1, col as usize + 1) };
            if lower && i < j {
                continue;
            }
            count += 1;
            match kind.split_whitespace().next() {
                Some("real") => writeln!(out, "{i} {j} {value:.16e}").unwrap(),
                Some("integer") => writeln!(out, "{i} {j} {}", (value * 1000.0) as i64).unwrap(),
                _ => writeln!(out, "{i} {j}").unwrap(),
            }
        }
    }
    let kind = kind.trim_end_matches(", by columns");
    let head = format!("%%MatrixMarket matrix coordinate {kind}\n{} {} {count}\n", a.rows, a.cols);
    [head.as_bytes(), &out].concat()
}

fn measure(what: &str, text: &[u8]) {
    // Measured with files, since users have files; they stay in the system's cache.
    for (form, bytes) in [("plain", text.to_vec()), ("gzip", gzip(text))] {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&bytes).unwrap();
        let mut best = f64::INFINITY;
        for _ in 0..RUNS {
            file.rewind().unwrap();
            let start = Instant::now();
            let matrix = read_market(&file).unwrap();
            best = best.min(start.elapsed().as_secs_f64());
            assert!(matrix.rows > 0);
        }
        let megabytes = text.len() as f64 / 1e6;
        println!("{what}: {megabytes:.0} MB of text, {form}: {best:.3} s, {:.0} MB/s", megabytes / best);
    }
}

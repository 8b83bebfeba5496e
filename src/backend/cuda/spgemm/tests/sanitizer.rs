//! Tests that run each kernel with few enough rows for compute-sanitizer.

use super::*;
use crate::select::spgemm::row_structures::SHIFTED_RUN_ROWS;

/// Returns factors with rows in most bins, for the kernels of tables, or of teams if columns are distinct.
fn rows_of_bins(kind: Kind) -> (Stored, Stored) {
    let mut rng = Random::new(91);
    let a = lengths(&mut rng, 40, 3, &[20, 60, 190]);
    let a = Stored::random::<f64>(&mut rng, Format::Csr, 200, &a, kind, IndexBase::One, WIDTHS[0]);
    let b = lengths(&mut rng, 200, 5, &[700, 200]);
    let b = Stored::random::<f64>(&mut rng, Format::Csr, 1500, &b, kind, IndexBase::Zero, WIDTHS[2]);
    (a, b)
}

fn square(rows: &[Vec<i64>], turn: usize) {
    let mut rng = Random::new(92);
    let order = rows.len() as i64;
    let a = Stored::of_rows::<f64>(&mut rng, Format::Csr, order, rows, IndexBase::Zero, WIDTHS[turn]);
    compare::<F64>("A · A", (N, N), &a, &a, 0.5, turn);
}

#[test]
fn sanitizer_tables() {
    let (a, b) = rows_of_bins(Kind::Any);
    compare::<F64>("tables", (N, N), &a, &b, 0.5, 0);
}

#[test]
fn sanitizer_teams() {
    let (a, b) = rows_of_bins(Kind::Distinct);
    compare::<F64>("teams", (N, N), &a, &b, 0.5, 1);
}

#[test]
fn sanitizer_singles() {
    let (a, b) = singles::factors::<f64, f64>(300, 500, 3000);
    compare::<F64>("singles", (N, N), &a, &b, 0.5, 1);
}

/// Rows whose columns are divided among several blocks.
#[test]
fn sanitizer_windows() {
    let mut rng = Random::new(94);
    for kind in [Kind::Any, Kind::Distinct] {
        let a = Stored::random::<f64>(&mut rng, Format::Csr, 300, &[250, 3], kind, IndexBase::One, WIDTHS[0]);
        let b = vec![12; 300];
        let b = Stored::random::<f64>(&mut rng, Format::Csr, 30_000, &b, kind, IndexBase::Zero, WIDTHS[1]);
        compare::<F64>("windows", (N, N), &a, &b, 0.5, 0);
    }
}

#[test]
fn sanitizer_groups() {
    square(&classes::nodes(40, 3, &[-13, -5, -1, 0, 1, 5, 13]), 0);
}

#[test]
fn sanitizer_wide_rows() {
    let near = |row: i64| (row - 25..row + 25).filter(|at| (0..400).contains(at)).collect();
    let rows: Vec<Vec<i64>> = (0..400).map(near).collect();
    let few: Vec<Vec<i64>> = (0..6).map(|row| (row * 60..row * 60 + 90).collect()).collect();
    let mut rng = Random::new(93);
    let a = Stored::of_rows::<f64>(&mut rng, Format::Csr, 400, &few, IndexBase::One, WIDTHS[1]);
    let b = Stored::of_rows::<f64>(&mut rng, Format::Csr, 400, &rows, IndexBase::Zero, WIDTHS[0]);
    compare::<F64>("wide", (N, N), &a, &b, 1.25, 2);
}

/// Split rows of one window and of several, and very long rows, whose statistics are gathered in slices.
#[test]
fn sanitizer_parts() {
    let mut rng = Random::new(95);
    for (cols, turn) in [(40, 0), (1500, 1)] {
        let (kind, zero) = (Kind::Distinct, IndexBase::Zero);
        let a = Stored::random::<f64>(&mut rng, Format::Csr, 5000, &[4200, 3, 600], kind, zero, WIDTHS[0]);
        let b = lengths(&mut rng, 5000, 2, &[30]);
        let b = Stored::random::<f64>(&mut rng, Format::Csr, cols, &b, kind, IndexBase::One, WIDTHS[1]);
        cut::check::<F64, F64>("parts", (&a, &b, kind), (1.0, 0.5), turn);
    }
}

#[test]
fn sanitizer_shifted_runs() {
    square(&shifted_runs::grid([SHIFTED_RUN_ROWS / 64, 8, 8], &shifted_runs::steps(1, 1)), 1);
}

#[test]
fn sanitizer_tiles() {
    let (a, b) = rows_of_bins(Kind::Sorted);
    tile::compare_tile::<F64>("tiles", (N, N), (&a, &b), (0.5, 0.5), (1000, 1));
}

/// Nearly dense factors, which are multiplied as dense matrices; entries that are not finite are computed
/// again.
#[test]
fn sanitizer_dense_factors() {
    let mut rng = Random::new(96);
    let mut a = dense_factors::pruned::<f64>(&mut rng, (400, 500), 40, IndexBase::Zero);
    let b = dense_factors::pruned::<f64>(&mut rng, (500, 600), 40, IndexBase::One);
    a.arrays[2].words[77] = f64::INFINITY.to_bits();
    assert!(dense_factors::compare_close::<F64>("dense", (&a, &b), 0.5, 1e-11));
}

/// Small product, whose bins are lists of rows with lengths that only the device knows.
#[test]
fn sanitizer_small_products() {
    if device().is_none() {
        return;
    }
    let mut rng = Random::new(97);
    let of_right: Vec<Vec<i64>> =
        (0..120).map(|row| (row..row + if row < 60 { 300 } else { 1 }).collect()).collect();
    let of_left = [0, 1, 2, 20, 58].map(|count| (0..count).collect::<Vec<i64>>()).into_iter();
    let of_left: Vec<Vec<i64>> =
        of_left.chain((0..2000).map(|row| vec![60 + row % 60; (row % 2) as usize])).collect();
    let a = small_products::csr(&mut rng, 120, &of_left);
    let b = small_products::csr(&mut rng, 420, &of_right);
    assert!(small_products::is_taken("small", &a, &b));
}

/// Maps of products, with which later numeric phases multiply: with few and with many products per entry, and
/// with split rows.
#[test]
fn sanitizer_lists_of_products() {
    let few = map::Shape { of_a: (60, 6, &[20]), of_b: (40, 20, &[100]), cols: 2000 };
    map::again::<F64, F64>((1.0, 0.3), &few, 0);
    let many = map::Shape { of_a: (60, 12, &[20]), of_b: (40, 40, &[60]), cols: 100 };
    map::again::<F32, F32>((1.0, 0.3), &many, 1);
    let parts = map::Shape { of_a: (20, 30, &[4_200, 300]), of_b: (5_000, 3, &[30]), cols: 1500 };
    map::again::<F64, F64>((1.0, -1.7), &parts, 2);
}

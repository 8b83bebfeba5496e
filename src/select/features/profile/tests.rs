//! Tests of `profile`.

use super::*;
use crate::matrix::testing::pattern;
use matrices::gallery;
use matrices::owned::{MatrixError, OwnedCsr};

/// Matrices of all families, and those at the edges: nothing at all, one row, one column, rows and columns
/// without entries, few entries in many rows, rows that are cut for a GPU.
pub(crate) fn families() -> Vec<(String, OwnedCsr<()>)> {
    let mut out = Vec::new();
    let mut add = |name: &str, a: std::result::Result<OwnedCsr<()>, MatrixError>| {
        out.push((name.to_string(), a.unwrap()))
    };
    for (rows, cols) in [(0, 0), (0, 7), (40, 0), (2000, 3), (1, 1)] {
        add("nothing", gallery::empty(rows, cols).map(OwnedCsr::into_pattern));
    }
    for (rows, cols, length) in [
        (1, 1, 1),
        (1, 100_000, 5000),
        (1, 70, 33),
        (5000, 1, 1),
        (31, 40, 5),
        (33, 1000, 90),
        (100, 5000, 300),
        (300, 300, 70),
        (64, 40_000, 9000),
        (1000, 700_000, 3),
    ] {
        add("uniform", gallery::uniform(rows, cols, length, 3).map(OwnedCsr::into_pattern));
    }
    add("band", gallery::band(3000, 40, 3));
    add("mesh", gallery::hex_mesh([9, 10, 11], gallery::Reach::Corners));
    add("markov", gallery::markov_triangle(60));
    add("lattice", gallery::lattice4([4, 4, 4, 4], 3));
    add("circuit", gallery::named("scircuit"));
    add("pruned", gallery::pruned(512, 700, 0.8, 1));
    add("web", gallery::web(20_000, 0.45, 0.5, 1));
    add("powers", gallery::rmat(13, 8, 0.57, 0.19, 0.19, 1).map(OwnedCsr::into_pattern));
    let triplets = |rows, cols, places: Vec<(i32, i32)>| {
        let places = places.into_iter().map(|(row, col)| (row, col, 1.0));
        OwnedCsr::from_triplets(rows, cols, places.collect::<Vec<_>>()).unwrap().into_pattern()
    };
    // An arrow, whose first row and column are full.
    let arrow = (1..20_000).flat_map(|at| [(0, at), (at, 0), (at, at)]).collect();
    out.push(("arrow".into(), triplets(20_000, 20_000, arrow)));
    let sparse = (0..900).map(|at| (at * 991 % 900_000, at * 7919 % 3_000_000)).collect();
    out.push(("hypersparse".into(), triplets(900_000, 3_000_000, sparse)));
    let rows =
        (0..3000).filter(|row| row % 7 < 2).flat_map(|row| (0..row % 90).map(move |at| (row, 33 * at)));
    out.push(("gaps".into(), triplets(3001, 3001, rows.collect())));
    out
}

#[test]
fn features_are_finite_and_named_once() {
    let mut names = NAMES.to_vec();
    names.sort_unstable();
    names.dedup();
    assert_eq!((names.len(), NAMES[0], NAMES[NUMBERS - 1]), (NUMBERS, "rows", "compression"));
    for (name, a) in families() {
        let found = Profile::of(&pattern(&a), DataType::R64F);
        assert!(found.list().all(|(_, number)| number.is_finite() && number >= 0.0), "{name}: {found:?}");
        assert_eq!(found, Profile::of(&pattern(&a), DataType::R64F), "{name}");
    }
}

#[test]
fn features_say_what_a_matrix_is_like() {
    let count = |a: &OwnedCsr<()>| Profile::of(&pattern(a), DataType::R64F);
    let of = |found: &Profile, name: &str| {
        let number = found.list().find(|(other, _)| *other == name);
        number.unwrap_or_else(|| panic!("{name}")).1
    };
    let near =
        |found: f64, expected: f64| assert!((found / expected - 1.0).abs() < 0.02, "{found} {expected}");
    // 65 of 8192 columns.
    let band = count(&gallery::band(8192, 32, 32).unwrap());
    near(of(&band, "row_entries_mean"), 65.0);
    near(of(&band, "rows_to_256"), 1.0);
    near(of(&band, "reuse_128"), 128.0 * 65.0 / (64.0 + 128.0));
    near(of(&band, "reuse_16"), 16.0 * 65.0 / (64.0 + 16.0));
    near(of(&band, "products"), 65.0);
    near(of(&band, "compression"), 65.0 * 65.0 / 129.0);
    near(of(&band, "narrow"), 1.0);
    near(of(&band, "neighbour_distance_mean"), 2.0 / 32.0);
    assert!(of(&band, "row_entries_variance") < 6.0);
    let empty = count(&gallery::empty(50, 50).unwrap().into_pattern());
    assert_eq!(
        (of(&empty, "rows_empty"), of(&empty, "products"), of(&empty, "compression")),
        (1.0, 0.0, 1.0)
    );
    // Nothing is shared.
    let uniform = count(&gallery::uniform(4000, 1_000_000, 4, 1).unwrap().into_pattern());
    near(of(&uniform, "reuse_128"), 1.0);
    near(of(&uniform, "fill_16x16"), 1.0 / 256.0);
    near(of(&uniform, "x_sectors_along"), 1.0);
}

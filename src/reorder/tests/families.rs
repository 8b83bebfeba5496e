//! Tests, on small matrices of the gallery, of how many blocks [`cluster`] leaves compared with the paper's
//! form.

use super::*;
use matrices::gallery::{
    band, circuit, elasticity, expand, hex_mesh, permute, pruned, pruned_skewed, random_permutation, rmat,
    uniform, web, window_permutation, Hubs, Reach,
};
use matrices::owned::OwnedCsr;

/// Returns the rows of a matrix in another order.
fn rows(matrix: &OwnedCsr<()>, order: &[u32]) -> TestRows<i32, i32> {
    rows_of(matrix.cols, order, |row| matrix.row(row).0.iter().map(|&column| column as usize).collect())
}

fn symmetric(matrix: OwnedCsr<()>, seed: u64) -> TestRows<i32, i32> {
    let permuted = permute(&matrix, &random_permutation(matrix.rows, seed).unwrap()).unwrap();
    plain(&permuted)
}

fn plain(matrix: &OwnedCsr<()>) -> TestRows<i32, i32> {
    rows(matrix, &(0..matrix.rows as u32).collect::<Vec<_>>())
}

fn by_rows(matrix: OwnedCsr<()>, seed: u64) -> TestRows<i32, i32> {
    rows(&matrix, &shuffled(matrix.rows, seed))
}

/// Returns names, matrices, and the largest fraction of the blocks of the user's order that [`cluster`] may
/// leave.
pub(crate) fn families() -> Vec<(&'static str, TestRows<i32, i32>, f64)> {
    let stencil = || hex_mesh([14; 3], Reach::Corners).unwrap();
    let windowed = |window| {
        let graph = stencil();
        permute(&graph, &window_permutation(graph.rows, window, 8).unwrap()).unwrap()
    };
    vec![
        ("band of 41, rows shuffled", by_rows(band(3000, 20, 20).unwrap(), 1), 0.12),
        ("band of 41, shuffled", symmetric(band(3000, 20, 20).unwrap(), 1), 0.37),
        ("27-point stencil, rows shuffled", by_rows(stencil(), 2), 0.17),
        ("27-point stencil, shuffled", symmetric(stencil(), 2), 0.55),
        ("27-point stencil, windows of 128", plain(&windowed(128)), 0.93),
        ("27-point stencil", plain(&stencil()), 1.0),
        ("7-point stencil, shuffled", symmetric(hex_mesh([15; 3], Reach::Faces).unwrap(), 3), 0.79),
        (
            "elasticity, rows shuffled",
            by_rows(elasticity(8, 8, 8, 1.0, 0.3).unwrap().into_pattern(), 4),
            0.21,
        ),
        (
            "6 unknowns a node, nodes in windows of 64",
            plain(
                &expand(
                    &{
                        let graph = hex_mesh([24, 24, 1], Reach::Corners).unwrap();
                        permute(&graph, &window_permutation(576, 64, 5).unwrap()).unwrap()
                    },
                    6,
                )
                .unwrap(),
            ),
            0.75,
        ),
        (
            "dense blocks of 16 × 16, rows shuffled",
            by_rows(expand(&hex_mesh([14, 14, 1], Reach::Faces).unwrap(), 16).unwrap(), 6),
            0.08,
        ),
        ("R-MAT", plain(&rmat(11, 8, 0.57, 0.19, 0.19, 7).unwrap().into_pattern()), 0.72),
        ("web by copying", plain(&web(3000, 0.37, 0.6, 8).unwrap()), 0.90),
        (
            "circuit with nets",
            plain(&circuit(3000, 2, Hubs::Random { count: 12, shortest: 50, spread: 200 }, 9).unwrap()),
            0.86,
        ),
        ("pruned layer, 10 % kept", plain(&pruned(1024, 1024, 0.9, 10).unwrap()), 1.0),
        ("pruned layer, 5 % kept, skewed", plain(&pruned_skewed(1024, 2048, 0.95, 1.0, 11).unwrap()), 0.79),
        ("8 random columns a row", plain(&uniform(2000, 4000, 8, 12).unwrap().into_pattern()), 0.80),
    ]
}

#[test]
fn few_blocks_are_left() {
    let mut faults = Vec::new();
    println!("matrix\trows\tblocks\texact 0.5\texact 0.8\texact 0.9\tclustered\tholes");
    for (name, matrix, most) in families() {
        let found = check(&matrix, HALF, When::Always);
        let share = |blocks: u64| blocks as f64 / found.before as f64;
        let paper = [0.5, DISTANCE, 0.9].map(|distance| {
            let order = exact(&allocator(), &matrix.pattern(), HALF, distance).unwrap();
            let windows = Windows::of_height(&allocator(), order, 16).unwrap();
            share(blocks(&allocator(), &matrix.pattern(), Some(&windows), HALF).unwrap())
        });
        let [half, default, most_of] = paper;
        let after = share(found.after);
        let windows = found.windows.as_ref().map_or(0.0, |w| w.count() as f64 * 16.0 / matrix.rows() as f64);
        println!(
            "{name}\t{}\t{}\t{half:.3}\t{default:.3}\t{most_of:.3}\t{after:.3}\t{windows:.2}",
            matrix.rows(),
            found.before
        );
        let least = paper.into_iter().fold(1.0, f64::min);
        // A sample detects where clustering gains.
        let sampled = check(&matrix, HALF, When::Promising);
        if after > most || after > 1.03 * least || (sampled.after > found.after && after < 0.97) {
            faults.push(format!("{name}: {after:.3} is left, sampled {:.3}", share(sampled.after)));
        }
    }
    assert!(faults.is_empty(), "{faults:#?}");
}

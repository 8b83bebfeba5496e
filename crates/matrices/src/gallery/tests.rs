//! Tests of `gallery`.

use std::array;

use super::elasticity::assemble_elasticity;
use super::*;

mod list;
mod patterns;

/// Returns whether all pivots of a symmetric matrix (Gaussian elimination, no pivoting) exceed `floor`, that
/// is, whether it is safely positive definite.
fn is_definite(mut a: Vec<Vec<f64>>, floor: f64) -> bool {
    for k in 0..a.len() {
        let pivot_row = a[k].clone();
        if pivot_row[k] <= floor {
            return false;
        }
        for row in &mut a[k + 1..] {
            let factor = row[k] / pivot_row[k];
            (0..row.len()).for_each(|j| row[j] -= factor * pivot_row[j]);
        }
    }
    true
}

fn dense(a: &OwnedCsr<f64>) -> Vec<Vec<f64>> {
    let row = |i| (0..a.cols).map(|j| a.get(i, j).unwrap_or(0.0)).collect();
    (0..a.rows).map(row).collect()
}

fn times(a: &OwnedCsr<f64>, x: &[f64]) -> Vec<f64> {
    dense(a).iter().map(|row| dot(row, x)).collect()
}

fn dot(x: &[f64], y: &[f64]) -> f64 {
    x.iter().zip(y).map(|(x, y)| x * y).sum()
}

/// Returns max |x − y|.
fn distance(x: &[f64], y: &[f64]) -> f64 {
    assert_eq!(x.len(), y.len());
    let differences = x.iter().zip(y).map(|(x, y)| (x - y).abs());
    differences.fold(0.0, f64::max)
}

/// Evaluates a field of 3 values on the nodes of a brick with x ≥ `first`.
fn field(elements: [usize; 3], first: usize, at: impl Fn([f64; 3]) -> [f64; 3]) -> Vec<f64> {
    grid([first, 0, 0], elements.map(|n| n + 1)).flat_map(|p| at(p.map(|p| p as f64))).collect()
}

fn rigid_modes(elements: [usize; 3]) -> [Vec<f64>; 6] {
    let mode = |number: usize| {
        move |p: [f64; 3]| {
            let mut u = [0.0; 3];
            let (d, e) = (number % 3, (number + 1) % 3);
            if number < 3 {
                u[d] = 1.0;
            } else {
                (u[d], u[e]) = (-p[e], p[d]);
            }
            u
        }
    };
    array::from_fn(|number| field(elements, 0, mode(number)))
}

/// Returns Lamé's constants (λ, μ).
fn lame(young: f64, nu: f64) -> (f64, f64) {
    let mu = young / (2.0 * (1.0 + nu));
    (2.0 * mu * nu / (1.0 - 2.0 * nu), mu)
}

#[test]
fn splitmix_gives_the_published_sequence() {
    let mut rng = SplitMix64::new(1234567);
    let expected = [6457827717110365317, 3203168211198807973, 9817491932198370423];
    assert_eq!(expected.map(|_| rng.next_u64()), expected);
    let values: Vec<f64> = (0..4000).map(|_| rng.value()).collect();
    assert!(values.iter().all(|v| (-1.0..1.0).contains(v)));
    // The sum's standard deviation is √(4000/3) = 36.5.
    assert!(values.iter().sum::<f64>().abs() < 150.0);
    let full = |v: &&f64| v.to_bits().trailing_zeros() < 4;
    assert!(values.iter().filter(full).count() > 2000);
    assert!((0..1000).all(|_| rng.below(3) < 3) && rng.below(0) == 0);
}

#[test]
fn poisson_is_the_operator() {
    for (stencil, points, n) in [
        (Stencil::Five, 5, 6),
        (Stencil::Seven, 7, 4),
        (Stencil::TwentySeven, 27, 4),
        (Stencil::Seven, 7, 1),
        (Stencil::Five, 5, 0),
    ] {
        let a = poisson(stencil, n).unwrap();
        a.validate().unwrap();
        assert_eq!(a.values.capacity(), a.nnz(), "the count was exact");
        let rows = if points == 5 { n * n } else { n * n * n };
        assert_eq!((a.rows, a.cols), (rows, rows));
        let at = |p: usize| [p % n, p / n % n, p / n / n];
        for (i, j) in (0..rows * rows).map(|k| (k / rows, k % rows)) {
            let steps: [usize; 3] = array::from_fn(|d| at(i)[d].abs_diff(at(j)[d]));
            let sum: usize = steps.iter().sum();
            let is_near = steps.iter().all(|&s| s <= 1) && (points == 27 || sum == 1);
            let off_diagonal = is_near.then_some(-1.0);
            let diagonal = Some(points as f64 - 1.0);
            assert_eq!(a.get(i, j), if i == j { diagonal } else { off_diagonal });
        }
        assert!(a.is_cg_candidate(0.0) && is_definite(dense(&a), 1e-3));
    }
}

#[test]
fn element_matrix_is_right() {
    let k = elasticity_element(2.5, 0.3).unwrap();
    // Compared with the closed form ∫ λ g_a ⊗ g_b + μ (g_b ⊗ g_a + g_a·g_b I), g = ∇N, and the integrals of
    // products of linear functions: ∫ N N = 1/3 or 1/6, ∫ N' N = ±1/2.
    let (lambda, mu) = lame(2.5, 0.3);
    for (i, j) in (0..24 * 24).map(|k| (k / 24, k % 24)) {
        let (a, r, b, c) = (i / 3, i % 3, j / 3, j % 3);
        let sign = |node: usize, d: usize| if node >> d & 1 == 1 { 1.0 } else { -1.0 };
        // ∫ ∂N_a/∂x_r ∂N_b/∂x_c
        let gradients = |r: usize, c: usize| -> f64 {
            let factor = |d: usize| match (d == r, d == c) {
                (true, true) => sign(a, d) * sign(b, d),
                (true, false) => sign(a, d) / 2.0,
                (false, true) => sign(b, d) / 2.0,
                (false, false) if (a ^ b) >> d & 1 == 0 => 1.0 / 3.0,
                (false, false) => 1.0 / 6.0,
            };
            (0..3).map(factor).product()
        };
        let laplacian: f64 = (0..3).map(|d| gradients(d, d)).sum();
        let same = if r == c { mu * laplacian } else { 0.0 };
        let expected = lambda * gradients(r, c) + mu * gradients(c, r) + same;
        assert!((k[i][j] - expected).abs() < 1e-14, "{i} {j}");
        assert_eq!(k[i][j].to_bits(), k[j][i].to_bits());
    }
    // Its null space is the rigid modes, and nothing else: K + Σ m mᵀ is definite.
    let mut filled: Vec<Vec<f64>> = k.iter().map(|row| row.to_vec()).collect();
    assert!(!is_definite(filled.clone(), 1e-12));
    for mode in rigid_modes([1, 1, 1]) {
        for i in 0..24 {
            assert!(dot(&k[i], &mode).abs() < 1e-14);
            (0..24).for_each(|j| filled[i][j] += mode[i] * mode[j]);
        }
    }
    assert!(is_definite(filled, 1e-3));
}

#[test]
fn free_brick_passes_the_patch_test() {
    let elements = [4, 3, 2];
    let free = assemble_elasticity(elements, 3.0, 0.3, 0).unwrap();
    assert!(free.is_hermitian(0.0) && free.is_structurally_symmetric());
    assert_eq!((free.rows, free.nnz()), (180, 9 * 13 * 10 * 7));
    assert_eq!(free.values.capacity(), free.nnz(), "the count was exact");
    for mode in rigid_modes(elements) {
        assert!(distance(&times(&free, &mode), &[0.0; 180]) < 1e-13);
    }
    // u = G x: constant strain, so no force inside, and the energy of the continuum.
    let g = [[0.3, -0.7, 0.2], [0.5, 0.9, -0.4], [-0.1, 0.6, 0.8]];
    let u = field(elements, 0, |x| g.map(|row| dot(&row, &x)));
    let forces = times(&free, &u);
    let inside = field(elements, 0, |p| {
        let is_inside = |d: usize| p[d] > 0.0 && p[d] < elements[d] as f64;
        [f64::from((0..3).all(is_inside)); 3]
    });
    assert_eq!(inside.iter().sum::<f64>(), 18.0);
    for (force, flag) in forces.iter().zip(&inside) {
        assert!((force * flag).abs() < 1e-13, "{force}");
    }
    let (lambda, mu) = lame(3.0, 0.3);
    let strain = |k: usize| (g[k / 3][k % 3] + g[k % 3][k / 3]) / 2.0;
    let squares: f64 = (0..9).map(|k| strain(k).powi(2)).sum();
    let trace = g[0][0] + g[1][1] + g[2][2];
    let energy = 24.0 * (lambda * trace * trace + 2.0 * mu * squares);
    assert!((dot(&u, &forces) / energy - 1.0).abs() < 1e-13);
}

#[test]
fn clamped_brick_is_definite_and_stretches_as_theory_says() {
    let a = elasticity(4, 2, 3, 10.0, 0.0).unwrap();
    a.validate().unwrap();
    assert_eq!(a.rows, 3 * 4 * 3 * 4);
    // With ν = 0 the bar is one-dimensional, where linear elements are exact at the nodes:
    // E u = t x under traction t, E u = b (L x − x² / 2) under body force b.
    let field = |at: fn(f64) -> f64| field([4, 2, 3], 1, |[x, _, _]| [at(x), 0.0, 0.0]);
    for (load, exact) in [
        (Load::Traction([7.0, 0.0, 0.0]), field(|x| 0.7 * x)),
        (Load::Body([7.0, 0.0, 0.0]), field(|x| 0.7 * (4.0 * x - x * x / 2.0))),
    ] {
        let force = elasticity_load(4, 2, 3, load).unwrap();
        assert!(distance(&times(&a, &exact), &force) < 1e-12, "{load:?}");
    }
    // The total forces are the face's area, and the volume less the clamped nodes' half layer.
    let total = |load| elasticity_load(4, 2, 3, load).unwrap().iter().sum::<f64>();
    assert_eq!(total(Load::Traction([0.0, 0.0, 1.0])), 6.0);
    assert_eq!(total(Load::Body([0.0, 1.0, 0.0])), 24.0 - 3.0);
    for nu in [0.0, 0.3, 0.49, -0.5] {
        let a = elasticity(3, 2, 1, 1.0, nu).unwrap();
        assert!(a.is_cg_candidate(0.0) && is_definite(dense(&a), 1e-3));
    }
}

#[test]
fn random_patterns_are_what_they_say() {
    let lengths = |a: &OwnedCsr<f64>| -> Vec<usize> {
        a.validate().unwrap();
        (0..a.rows).map(|i| a.row(i).0.len()).collect()
    };
    let a = uniform(50, 20, 7, 3).unwrap();
    assert_eq!(lengths(&a), [7; 50]);
    // Each column holds 17.5 entries on average, standard deviation 3.4.
    let col_lengths = lengths(&a.transpose().unwrap());
    assert!(col_lengths.iter().all(|n| (4..32).contains(n)), "{col_lengths:?}");
    assert_eq!(uniform(4, 9, 9, 3).unwrap().nnz(), 36);

    let a = banded(10, 2, 3).unwrap();
    assert_eq!(a.values.capacity(), a.nnz(), "the count was exact");
    let is_right = |k: usize| a.get(k / 10, k % 10).is_some() == ((k / 10).abs_diff(k % 10) <= 2);
    assert!((0..100).all(is_right));
    assert_eq!(banded(4, usize::MAX, 1).unwrap().nnz(), 16);

    let a = dense_rows_cols(40, 3, 2, 4, 5).unwrap();
    let full = |a: &OwnedCsr<f64>| lengths(a).iter().filter(|&&n| n == 40).count();
    assert_eq!((full(&a), full(&a.transpose().unwrap())), (3, 2));
    assert!(lengths(&a).iter().all(|n| [4, 5, 6, 40].contains(n)));

    let gaps = lengths(&with_empty_rows(200, 30, 5, 0.4, 9).unwrap());
    assert!(gaps.iter().all(|n| [0, 5].contains(n)) && gaps[0] + gaps[199] == 0);
    let empty = gaps.iter().filter(|&&n| n == 0).count();
    assert!((52..112).contains(&empty), "80 ± 7: {empty}");

    for density in [0.0, 0.1, 0.5, 0.9, 1.0] {
        let found = rectangular(300, 200, density, 4).unwrap().nnz() as f64 / 60000.0;
        // Row lengths are uniform, so the mean of 300 is off by 1/30 (1/√(3·300)) of it.
        assert!((found - density).abs() <= 0.13 * density.min(1.0 - density), "{found}");
    }
}

#[test]
fn rmat_has_the_distribution() {
    let (a, b, c) = (0.5, 0.3, 0.15);
    let matrix = rmat(6, 8, a, b, c, 2).unwrap();
    // Cell (i, j) is hit with probability Π over bits, and kept if any of 512 draws hits it.
    let (mut found, mut expected) = ([0.0; 4], [0.0; 4]);
    for (i, j) in (0..4096).map(|k| (k / 64, k % 64)) {
        let quadrant = |bit: usize| 2 * (i >> bit & 1) + (j >> bit & 1);
        let hit: f64 = (0..6).map(|bit| [a, b, c, 1.0 - a - b - c][quadrant(bit)]).product();
        expected[quadrant(5)] += 1.0 - (1.0 - hit).powi(512);
        found[quadrant(5)] += f64::from(matrix.get(i, j).is_some());
    }
    for (found, expected) in found.iter().zip(expected) {
        // Counts vary less than Poisson's: 4 standard deviations.
        assert!((found - expected).abs() < 4.0 * expected.sqrt(), "{found} {expected}");
    }
    let corner = rmat(3, 5, 0.0, 0.0, 1.0, 1).unwrap();
    assert_eq!((corner.nnz(), corner.row(7).0), (1, &[0][..]));
}

#[test]
fn names_and_bits_never_change() {
    // FNV-1a over offsets, indices and value bits: a change here silently changes what every
    // test and benchmark elsewhere measures.
    let examples = [
        ("poisson5:20", 0x9783_4cd3_b812_3927),
        ("poisson7:8", 0x68b4_98c0_6e43_3403),
        ("poisson27:8", 0xb720_4f3a_4c21_242f),
        ("elasticity:4x3x2", 0x126b_cb8d_3ca7_3df6),
        ("rmat:8:8", 0xcfe9_e423_8783_cdfd),
        ("banded:50:3", 0x5b40_dc8c_826a_c309),
        ("uniform:40x60:5", 0xd585_3244_f2a6_b633),
        ("rectangular:30x90:0.1", 0x1480_8957_1c38_5f57),
        ("dense:50:2:3:4", 0xe92e_ea2d_52ec_c026),
        ("empty:5x7", 0xd7e4_fcfa_299d_713d),
        ("gaps:50x50:4:0.5", 0x701d_c8ae_f6e8_259a),
        ("mesh:4x3x2:2", 0x2a75_7194_1524_6e01),
        ("lattice4:3x3x2x1:2", 0xc3cc_0fd9_8dcb_89fb),
        ("wilson:3x2x1x3", 0x5c5f_7558_da3e_f509),
        ("markov:9", 0x5166_d687_1863_5cb2),
        ("arrow:20:2:1", 0xcfb9_3fa7_44a7_eaaf),
        ("web:80:0.4:0.5", 0x36db_5867_601c_d089),
        ("circuit:90:2:2:30", 0xe79b_3e59_7467_f071),
        ("pruned:30x40:0.8", 0x5a60_ab6f_eec6_9137),
        ("skewed:30x40:0.8:1", 0x499c_3a02_a796_0524),
        ("columns:30x40:0.8:1", 0x08e5_815f_0b0d_1b17),
        ("hypersparse:90x80:7:5", 0x559b_c248_124c_36a9),
        ("cliques:80:9:12:0.5", 0x3f0c_54a9_1045_f4a5),
    ];
    assert_eq!(examples.len(), kinds().len());
    let mut wrong = String::new();
    for (name, expected) in examples {
        let a = by_name(name).unwrap();
        a.validate().unwrap();
        let words = a.offsets.iter().map(|&offset| offset as u64);
        let words = words.chain(a.indices.iter().map(|&col| col as u64));
        let words = words.chain(a.values.iter().map(|value| value.to_bits()));
        let sum =
            words.fold(0xcbf2_9ce4_8422_2325u64, |sum, word| (sum ^ word).wrapping_mul(0x0100_0000_01b3));
        if sum != expected {
            wrong += &format!("\n(\"{name}\", {sum:#018x})");
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    let seeded = by_name("uniform:40x60:5:1").unwrap();
    assert_eq!(seeded, by_name("uniform:40x60:5").unwrap());
    assert_ne!(seeded, by_name("uniform:40x60:5:2").unwrap());
    // In some kinds the seed determines pattern and values, in others the values alone.
    let pattern = |name| by_name(name).unwrap().into_pattern();
    assert_ne!(pattern("web:80:0.4:0.5:2"), pattern("web:80:0.4:0.5"));
    assert_eq!(pattern("markov:9:2"), pattern("markov:9"));
    assert_ne!(by_name("markov:9:2").unwrap(), by_name("markov:9").unwrap());
    let stiff = by_name("elasticity:2x1x1:5:0.2").unwrap();
    assert_eq!(stiff, elasticity(2, 1, 1, 5.0, 0.2).unwrap());
}

#[test]
fn bad_names_and_sizes_are_errors() {
    for (name, part) in [
        ("", "kind of matrix: found ''"),
        ("poison7:3", "found 'poison7', expected one of poisson5:N, "),
        ("poisson7", "N of poisson7:N: found 'the end', expected a whole number that is not negative"),
        ("poisson7:", "N of poisson7:N: found ''"),
        ("rectangular:3x4:y", "DENSITY[:SEED]: found 'y', expected a number"),
        ("poisson7:-3", "N of poisson7:N: found '-3'"),
        ("poisson7:3:4", "poisson7:N: found '4', expected no more arguments"),
        ("poisson7:2000", "rows: found 8000000000, expected at most 2147483647"),
        ("poisson5:18446744073709551615", "rows: found"),
        ("elasticity:3x3", "NZ of elasticity:NXxNYxNZ[:E:NU]: found 'the end'"),
        ("elasticity:3x0x3", "ny: found '0'"),
        ("elasticity:2000x2000x2000", "rows: found"),
        ("elasticity:3x3x18446744073709551615", "nz: found"),
        ("elasticity:1x1x1:-1:0.3", "young: found '-1'"),
        ("elasticity:1x1x1:1:0.5", "poisson_ratio: found '0.5'"),
        ("elasticity:1x1x1:1:nan", "poisson_ratio: found 'NaN'"),
        ("rmat:31:1", "rows: found 2147483648"),
        ("rmat:99:1", "rows: found"),
        ("rmat:20:18446744073709551615", "out of memory"),
        ("banded:2147483647:2147483647", "out of memory"),
        ("banded:2147483648:1", "rows: found"),
        ("uniform:3x4:5", "per_row: found '5', expected 0 to 4"),
        ("uniform:3x99999999999:5", "columns: found 99999999999"),
        ("rectangular:3x4:1.5", "density: found '1.5'"),
        ("rectangular:3x4:nan", "density: found 'NaN'"),
        ("dense:9:10:0:0", "dense_rows: found '10'"),
        ("empty:5", "COLS of empty:ROWSxCOLS: found 'the end'"),
        ("gaps:5x5:1:y", "FRACTION of gaps:"),
        ("gaps:5x5:1:0.5:", "SEED of gaps:ROWSxCOLS:K:FRACTION[:SEED]: found ''"),
        ("mesh:4294967296x4294967296x4294967296:1", "rows: found"),
        ("mesh:2000x1000x1000:3", "rows: found 6000000000"),
        ("lattice4:300x300x300x300:1", "rows: found 8100000000"),
        ("lattice4:3x3x3x3:99999999999", "rows: found"),
        ("wilson:300x300x100x100", "rows: found 10800000000"),
        ("markov:18446744073709551615", "rows: found"),
        ("markov:65536", "rows: found 2147516416"),
        ("arrow:5:6:0", "width: found '6', expected 0 to 5"),
        ("arrow:2147483647:2147483647:18446744073709551615", "out of memory"),
        ("web:10:0.5:0.1", "growth: found '0.5'"),
        ("web:10:nan:0.1", "growth: found 'NaN'"),
        ("web:10:0.1:2", "local: found '2'"),
        ("circuit:0:1:2:3", "pins of a hub: found '3', expected 0 to 0"),
        ("circuit:9:1:2:18446744073709551615", "pins of a hub: found '18446744073709551615'"),
        ("circuit:9:1:18446744073709551615:9", "out of memory"),
        ("pruned:2147483647x2147483647:1", "weights of the layer: found 46116860"),
        ("skewed:2147483647x2147483647:1:0", "weights of the layer: found"),
        ("circuit:2147483647:18446744073709551615:0:0", "out of memory"),
        ("pruned:5x5:-0.1", "sparsity: found '-0.1'"),
        ("skewed:5x5:0.1:1.1", "skew: found '1.1'"),
        ("columns:2147483647x2147483647:1:0", "weights of the layer: found"),
        ("columns:5x5:0.1:-1", "exponent: found '-1', expected 0 to 4"),
        ("columns:5x5:0.1:NaN", "exponent: found 'NaN'"),
        ("hypersparse:5x9:6:1", "filled: found '6', expected 0 to 5"),
        ("hypersparse:5x9:1:10", "per_row: found '10', expected 0 to 9"),
        ("hypersparse:99999999999x9:1:1", "rows: found 99999999999"),
        ("cliques:9:1:1:0.5", "members of the largest group: found '1'"),
        ("cliques:9:1:10:0.5", "members of the largest group: found '10', expected 0 to 9"),
        ("cliques:9:1:5:1.5", "near: found '1.5'"),
        ("cliques:9:18446744073709551615:9:1", "out of memory"),
    ] {
        let text = by_name(name).unwrap_err().to_string();
        assert!(text.contains(part), "{name}: {text}");
    }
    assert!(rmat(4, 2, 0.5, 0.3, 0.3, 1).is_err() && rmat(4, 2, f64::NAN, 0.0, 0.0, 1).is_err());
}

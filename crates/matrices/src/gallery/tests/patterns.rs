//! Tests of the generators of patterns, against their definitions.

use super::*;

/// Validates a pattern and returns its row lengths.
#[track_caller]
fn lengths(a: &OwnedCsr<()>) -> Vec<usize> {
    a.validate().unwrap();
    (0..a.rows).map(|i| a.row(i).0.len()).collect()
}

/// Checks that the pattern has exactly the entries for which `is_entry` holds.
#[track_caller]
fn assert_entries(a: &OwnedCsr<()>, is_entry: impl Fn(usize, usize) -> bool) {
    a.validate().unwrap();
    for (i, j) in (0..a.rows).flat_map(|i| (0..a.cols).map(move |j| (i, j))) {
        assert_eq!(a.get(i, j).is_some(), is_entry(i, j), "({i}, {j})");
    }
}

/// Returns the digits of `k` in the bases `dims`, the lowest digit first.
fn digits<const N: usize>(k: usize, dims: [usize; N]) -> [usize; N] {
    let mut rest = k;
    dims.map(|n| {
        let digit = rest % n;
        rest /= n;
        digit
    })
}

#[test]
fn draws_can_be_skipped() {
    let start = SplitMix64::new(77);
    let mut walked = start.clone();
    for draws in 0..50 {
        assert_eq!(start.after(draws).next_u64(), walked.next_u64());
    }
    let mut rng = SplitMix64::new(5);
    let mut seen = [0; 7];
    (0..7000).for_each(|_| seen[rng.modulo(7)] += 1);
    // Each number is expected 1000 ± 29 times.
    assert!(seen.iter().all(|&count| (880..1120).contains(&count)), "{seen:?}");
    assert_eq!(rng.modulo(0), 0);
}

#[test]
fn meshes_couple_neighbours() {
    for dims in [[4, 3, 5], [5, 4, 1], [1, 1, 3], [2, 2, 2]] {
        for (reach, most) in [(Reach::Faces, 1), (Reach::Edges, 2), (Reach::Corners, 3)] {
            let a = hex_mesh(dims, reach).unwrap();
            assert_eq!(a.rows, dims.iter().product::<usize>());
            assert_entries(&a, |i, j| {
                let (p, q) = (digits(i, dims), digits(j, dims));
                let steps = [0, 1, 2].map(|d| p[d].abs_diff(q[d]));
                steps.iter().all(|&s| s <= 1) && steps.iter().sum::<usize>() <= most
            });
        }
    }
    for dims in [[0, 4, 4], [usize::MAX, usize::MAX, 0]] {
        assert_eq!(hex_mesh(dims, Reach::Corners).unwrap().rows, 0);
    }
}

#[test]
fn lattices_are_periodic() {
    // Number of steps along each axis, the short way round.
    let steps = |a: usize, b: usize, dims: [usize; 4]| {
        let (x, y) = (digits(a, dims), digits(b, dims));
        [0, 1, 2, 3].map(|d| x[d].abs_diff(y[d]).min(dims[d] - x[d].abs_diff(y[d])))
    };
    for dims in [[3, 4, 3, 5], [1, 2, 3, 4], [1; 4]] {
        let sites: usize = dims.iter().product();
        let a = lattice4(dims, 2).unwrap();
        assert_eq!(a.rows, 2 * sites);
        assert_entries(&a, |i, j| steps(i / 2, j / 2, dims).iter().sum::<usize>() <= 1);
    }
    let dims = [3, 4, 3, 4];
    let a = wilson(dims).unwrap();
    assert_eq!(lengths(&a), vec![39; 12 * 144]);
    assert!(a.is_structurally_symmetric());
    assert_entries(&a, |i, j| {
        let partner = (i / 3 % 4) ^ (j / 3 % 4);
        match steps(i / 12, j / 12, dims) {
            [0, 0, 0, 0] | [1, 0, 0, 0] | [0, 1, 0, 0] => partner == 0,
            [0, 0, 1, 0] => partner <= 1,
            [0, 0, 0, 1] => partner == 0 || partner == 2,
            _ => false,
        }
    });
}

#[test]
fn the_markov_chain_steps_as_it_says() {
    for n in [0, 1, 2, 7] {
        let states: Vec<(usize, usize)> = (0..n).flat_map(|i| (0..n - i).map(move |j| (i, j))).collect();
        let a = markov_triangle(n).unwrap();
        assert_eq!((a.rows, a.cols), (states.len(), states.len()));
        assert_entries(&a, |row, col| {
            let ((i, j), to) = (states[row], states[col]);
            to == (i, j) || to == (i + 1, j) || (to.0 + 1, to.1) == (i, j) || (to.0, to.1 + 1) == (i, j)
        });
    }
}

#[test]
fn bands_and_arrows() {
    for (n, below, above) in [(9, 2, 1), (9, 0, 3), (5, 99, 0), (1, 0, 0), (6, usize::MAX, usize::MAX)] {
        let a = band(n, below, above).unwrap();
        assert_entries(&a, |i, j| i.saturating_sub(below) <= j && j <= i.saturating_add(above));
    }
    for (n, width, half) in [(9, 2, 1), (9, 0, 1), (7, 7, 0), (8, 1, 0), (6, 2, usize::MAX)] {
        let a = arrow(n, width, half).unwrap();
        assert_entries(&a, |i, j| i < width || j < width || i.abs_diff(j) <= half);
    }
}

#[test]
fn permutations_move_entries_and_values() {
    let a = uniform(60, 60, 5, 3).unwrap();
    let p = random_permutation(60, 8).unwrap();
    let moved = permute(&a, &p).unwrap();
    moved.validate().unwrap();
    for (i, j) in (0..3600).map(|k| (k / 60, k % 60)) {
        assert_eq!(moved.get(p[i] as usize, p[j] as usize), a.get(i, j));
    }
    assert_ne!(moved, a);

    let windows = window_permutation(100, 16, 4).unwrap();
    assert!((0..100).all(|i| windows[i] / 16 == i as u32 / 16));
    let mut sorted = windows.clone();
    sorted.sort_unstable();
    assert!(sorted.iter().copied().eq(0..100) && sorted != windows);
    assert!(window_permutation(9, 1, 4).unwrap().into_iter().eq(0..9));
    assert_eq!(random_permutation(0, 1).unwrap(), [0_u32; 0]);
    // Each of the 3! permutations is expected 100 ± 9 times.
    let mut orders = std::collections::BTreeMap::new();
    (0..600).for_each(|seed| *orders.entry(random_permutation(3, seed).unwrap()).or_insert(0) += 1);
    assert!(orders.len() == 6 && orders.values().all(|n| (60..140).contains(n)), "{orders:?}");

    let text = |p: &[u32]| permute(&a, p).unwrap_err().to_string();
    assert!(text(&p[1..]).contains("permutation: found '59 numbers"), "{}", text(&p[1..]));
    let mut twice = p.clone();
    twice[40] = twice[3];
    assert!(text(&twice).contains("the first 40 of them valid"), "{}", text(&twice));
    twice[40] = 60;
    assert!(text(&twice).contains("each number below 60 once"));
    assert!(permute(&empty(3, 4).unwrap(), &[0, 1, 2]).unwrap_err().to_string().contains("3 × 4"));
    assert!(window_permutation(5, 0, 1).is_err());
}

#[test]
fn expansion_makes_blocks() {
    let graph = uniform(12, 9, 3, 6).unwrap();
    let a = expand(&graph, 4).unwrap();
    assert_eq!((a.rows, a.cols), (48, 36));
    assert_entries(&a, |i, j| graph.get(i / 4, j / 4).is_some());
    assert_eq!(expand(&graph, 0).unwrap().rows, 0);
    // Permuting nodes before or after the expansion gives the same matrix.
    let graph = hex_mesh([5, 4, 1], Reach::Faces).unwrap();
    let p = random_permutation(20, 2).unwrap();
    let early = expand(&permute(&graph, &p).unwrap(), 3).unwrap();
    let late = permute(&expand(&graph, 3).unwrap(), &expand_permutation(&p, 3).unwrap()).unwrap();
    assert_eq!(early, late);
    // Numbers that are no permutation are refused, and do not wrap around.
    let wrong = expand_permutation(&[0, u32::MAX], 2).unwrap();
    assert!(permute(&hex_mesh([4, 1, 1], Reach::Faces).unwrap(), &wrong).is_err());
}

#[test]
fn pruned_layers_keep_what_they_say() {
    let deviation = |lengths: &[usize], mean: f64| {
        let squares: f64 = lengths.iter().map(|&n| (n as f64 - mean).powi(2)).sum();
        (squares / lengths.len() as f64).sqrt()
    };
    let (rows, cols, density) = (800, 600, 0.1);
    let even = lengths(&pruned(rows, cols, 1.0 - density, 3).unwrap());
    // A row keeps 60 ± 7.3 entries, all rows together 48,000 ± 208.
    let mean = even.iter().sum::<usize>() as f64 / rows as f64;
    assert!((mean - 60.0).abs() < 1.1, "{mean}");
    assert!((deviation(&even, mean) - 7.35).abs() < 0.8);
    let skewed = lengths(&pruned_skewed(rows, cols, 1.0 - density, 1.0, 3).unwrap());
    // A row keeps 60 ± 68 entries, and the mean of 800 rows varies by 2.4.
    let mean = skewed.iter().sum::<usize>() as f64 / rows as f64;
    assert!((mean - 60.0).abs() < 10.0, "{mean}");
    assert!((deviation(&skewed, mean) - 68.0).abs() < 7.0, "{}", deviation(&skewed, mean));
    assert!(skewed.iter().any(|&n| n < 4) && skewed.iter().any(|&n| n > 210));
    // Columns are equally likely: 80 ± 8.5 entries each.
    let by_col = lengths(&pruned(rows, cols, 1.0 - density, 3).unwrap().transpose().unwrap());
    assert!(by_col.iter().all(|n| (40..125).contains(n)));
    assert_eq!(pruned(20, 30, 0.0, 1).unwrap().nnz(), 600);
    assert_eq!(pruned(20, 30, 1.0, 1).unwrap().nnz(), 0);
    assert!(lengths(&pruned_skewed(300, 50, 0.0, 1.0, 1).unwrap()).contains(&50), "cut at 1");
}

#[test]
fn columns_of_a_layer_follow_their_power_law() {
    let (rows, cols, density, exponent) = (1500, 400, 0.1, 1.0);
    let layer = |exponent| pruned_columns(rows, cols, 1.0 - density, exponent, 3).unwrap();
    let mut counts = lengths(&layer(exponent).transpose().unwrap());
    assert!(!counts.is_sorted_by(|a, b| a >= b) && counts[0] < rows, "ranks are shuffled");
    counts.sort_unstable_by(|a, b| b.cmp(a));
    // 40 of 400 columns full on average; s solves full + s · (H(400) − H(full)) = 40.
    let harmonic = |n: usize| (1..=n).map(|r| 1.0 / r as f64).sum::<f64>();
    let full = (0..40).find(|&f| (40 - f) as f64 <= (f + 1) as f64 * (harmonic(400) - harmonic(f))).unwrap();
    let scale = (40 - full) as f64 / (harmonic(400) - harmonic(full));
    assert!(full > 3 && counts[..full].iter().all(|&n| n == rows) && counts[full + 2] < rows, "{full}");
    let at = |rank: usize| scale / rank as f64 * rows as f64;
    for rank in [30, 60, 120, 240] {
        // 5 standard deviations of a binomial, and an allowance for ranks that change places.
        let (found, mean) = (counts[rank - 1] as f64, at(rank));
        assert!((found - mean).abs() < 5.0 * mean.sqrt() + 0.04 * mean, "{rank}: {found} for {mean}");
    }
    let nnz: usize = counts.iter().sum();
    assert!((nnz as f64 - 60_000.0).abs() < 1000.0, "{nnz}");
    // Rows are equally likely: 40 ± 5.3 entries each.
    assert!(lengths(&layer(exponent)).iter().all(|n| (10..75).contains(n)));
    // Exponent 0 gives the distribution of `pruned`.
    assert!(lengths(&layer(0.0).transpose().unwrap()).iter().all(|n| (90..220).contains(n)));
    assert_eq!(pruned_columns(20, 30, 0.0, 2.0, 1).unwrap().nnz(), 600);
    assert_eq!(pruned_columns(20, 30, 1.0, 2.0, 1).unwrap().nnz(), 0);
    assert_eq!(pruned_columns(0, 0, 0.5, 2.0, 1).unwrap().nnz(), 0);
}

#[test]
fn hypersparse_rows_are_empty() {
    let a = lengths(&hypersparse(5000, 90, 70, 6, 4).unwrap());
    assert_eq!(a.iter().filter(|&&n| n == 6).count(), 70);
    assert_eq!(a.iter().sum::<usize>(), 420);
    assert_eq!(lengths(&hypersparse(8, 3, 8, 3, 4).unwrap()), [3; 8]);
}

#[test]
fn cliques_couple_all_members() {
    let near = cliques(3000, 40, 30, 1.0, 5).unwrap();
    assert!(near.is_structurally_symmetric() && (0..3000).all(|i| near.get(i, i).is_some()));
    // Members follow each other, so no entry is farther from the diagonal than the largest group is wide.
    let distance = |a: &OwnedCsr<()>| {
        (0..a.rows).flat_map(|i| a.row(i).0.iter().map(move |&j| i.abs_diff(j as usize))).max().unwrap()
    };
    assert!((10..30).contains(&distance(&near)), "{}", distance(&near));
    let far = cliques(3000, 40, 30, 0.0, 5).unwrap();
    assert!(far.is_structurally_symmetric() && distance(&far) > 1000);
    // A row is the union of its groups, so all rows of a group that meets no other are equal.
    let one = cliques(3000, 1, 3000, 1.0, 5).unwrap();
    let long = lengths(&one).into_iter().filter(|&n| n > 1).collect::<Vec<_>>();
    assert!(long.iter().all(|&n| n == long.len()) && !long.is_empty(), "{long:?}");
    assert_eq!(cliques(5, 0, 2, 0.5, 5).unwrap().nnz(), 5);
}

#[test]
fn circuits_have_hubs() {
    let hubs = [(11, 1900), (700, 900)];
    let a = circuit(2000, 2, Hubs::Spread(&hubs), 6).unwrap();
    let spread = lengths(&a);
    assert!(a.is_structurally_symmetric() && (0..2000).all(|i| a.get(i, i).is_some()));
    for (hub, pins) in hubs {
        assert!((pins..pins + 150).contains(&spread[hub]), "{}", spread[hub]);
        assert!((0..pins).all(|pin| a.get(hub, pin * 2000 / pins).is_some()));
    }
    // Links to before the first node go to node 0, which makes it long, too.
    assert!((0..2000).filter(|&i| spread[i] > 200).eq([0, 11, 700]));
    let plain = circuit(2000, 2, Hubs::Spread(&[]), 6).unwrap();
    // 2.25 elements per node, few of which are parallel.
    let links = (plain.nnz() - 2000) / 2;
    assert!((4100..4600).contains(&links), "{links}");
    let near = (0..2000).flat_map(|i| plain.row(i).0.iter().map(move |&j| i.abs_diff(j as usize)));
    assert!(near.filter(|&d| (1..=60).contains(&d)).count() > plain.nnz() / 2);
    let random = circuit(3000, 0, Hubs::Random { count: 3, shortest: 500, spread: 100 }, 6).unwrap();
    // 500 to 599 pins each, of which 8% coincide.
    assert_eq!(lengths(&random).iter().filter(|&&n| n > 420).count(), 3);
    assert_eq!(circuit(0, 2, Hubs::Spread(&[]), 6).unwrap().nnz(), 0);
    assert_eq!(circuit(1, 2, Hubs::Spread(&[(0, 1)]), 6).unwrap().nnz(), 1);
    for (hub, part) in [
        ((2000, 3), "hub: found '2000', expected a node below 2000"),
        ((3, 2001), "pins of a hub: found '2001'"),
    ] {
        let text = circuit(2000, 1, Hubs::Spread(&[hub]), 6).unwrap_err().to_string();
        assert!(text.contains(part), "{text}");
    }
    assert!(circuit(5, 1, Hubs::Random { count: 1, shortest: 1, spread: 0 }, 6).is_err());
    assert!(circuit(0, 1, Hubs::Spread(&[(0, 0)]), 6).is_err());
}

#[test]
fn webs_have_power_laws() {
    let (pages, growth) = (40_000, 0.35);
    let a = web(pages, growth, 0.0, 5).unwrap();
    let out = lengths(&a);
    assert!((0..pages).all(|i| a.get(i, i).is_some()));
    // Few links coincide except in the longest rows: P(2^k links or more) is growth^k. 14 to 1715 pages are
    // expected; 5 standard deviations are allowed.
    for k in 3..9 {
        let found = out.iter().filter(|&&n| n > 1 << k).count() as f64;
        let expected = pages as f64 * growth.powi(k);
        assert!(
            (found - expected).abs() < 5.0 * expected.sqrt() + 0.05 * expected,
            "{k}: {found} {expected}"
        );
    }
    // In-degrees: P(n or more) ~ n^(-4/3), so 21 times fewer pages have 10 times as many links.
    let into = lengths(&a.transpose().unwrap());
    let above = |n: usize| into.iter().filter(|&&length| length >= n).count() as f64;
    let ratio = above(20) / above(200);
    assert!((10.0..45.0).contains(&ratio), "{ratio}");
    let local = web(pages, growth, 1.0, 5).unwrap();
    assert!((0..pages).all(|i| local.row(i).0.iter().all(|&j| i.abs_diff(j as usize) <= 64)));
    assert_eq!((web(0, 0.3, 0.3, 1).unwrap().nnz(), web(1, 0.3, 0.3, 1).unwrap().nnz()), (0, 1));
}

#[test]
fn threads_change_nothing() {
    let make = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            [
                pruned(3000, 700, 0.9, 2),
                pruned_skewed(700, 300, 0.9, 0.5, 2),
                pruned_columns(700, 300, 0.9, 0.5, 2),
                rmat(13, 5, 0.5, 0.2, 0.2, 7).map(OwnedCsr::into_pattern),
                hex_mesh([30, 20, 21], Reach::Edges),
                layers::drawn(20_000, 500, 7, 2),
            ]
            .map(Result::unwrap)
        })
    };
    let alone = make(1);
    assert_eq!(alone, make(3));
    // The result is also that of a single sequence of draws.
    let mut rng = SplitMix64::new(2);
    assert_entries_in_order(&alone[0], || rng.unit() < 1.0 - 0.9);
    let values = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| by_name("uniform:900x80:7").unwrap().into_pattern()).map_values(|()| 0.0).unwrap()
    };
    let filled = with_values(values(2).into_pattern(), 9).unwrap();
    let mut rng = SplitMix64::new(9);
    assert!(filled.values.iter().all(|&value| value == rng.value()));
}

/// Checks each position in CSR order: it is an entry if `next` returns true.
#[track_caller]
fn assert_entries_in_order(a: &OwnedCsr<()>, mut next: impl FnMut() -> bool) {
    for row in 0..a.rows {
        let kept: Vec<i32> = (0..a.cols as i32).filter(|_| next()).collect();
        assert_eq!(a.row(row).0, kept, "row {row}");
    }
}
